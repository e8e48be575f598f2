//! Writes new tables for the subgraphs that are rewritten or get a new operator order, beside
//! references to those that stay.

use std::collections::{BTreeMap, BTreeSet};

use super::prefix::{Label, Prefix, Value};
use super::rewrite::{
    CONCATENATION, Codes, NewOperator, NewTensor, OPERATOR_SLOTS, Rewrite, Rewrites, SLICE,
    SUBGRAPH_SLOTS,
};
use super::survey::Survey;
use super::{PatchError, byte, int, of_original, referred, scalar};
use crate::view::{SubGraph, Table};

/// Members of the union `BuiltinOptions`.
const CONCATENATION_OPTIONS: u8 = 10;
const SLICE_OPTIONS: u8 = 48;
/// `TensorType` of the constants.
const INT32: u8 = 2;

/// What new tables refer to and what has to be written behind them, each thing once.
pub(super) struct Shared {
    /// Index of the first new buffer.
    first_buffer: usize,
    /// Whether buffer 0 has no data.
    empty_first_buffer: bool,
    buffers: Vec<NewBuffer>,
    /// The buffers with data, by the data.
    constants: BTreeMap<Vec<i32>, u32>,
    empty: Option<u32>,
    /// Vectors of 32-bit integers: shapes, and the tensors of operators.
    ints: BTreeMap<Vec<i32>, Label>,
    texts: BTreeMap<String, Label>,
    slice_options: Option<Label>,
    concatenation_options: BTreeMap<i32, Label>,
}

/// A buffer for new tensors.
struct NewBuffer {
    table: Label,
    data: Option<(Label, Vec<i32>)>,
}

impl Shared {
    pub(super) fn new(survey: &Survey<'_>, rewrites: &Rewrites<'_>) -> Self {
        Self {
            // A model without buffers gets an empty one first.
            first_buffer: survey.buffers.len().max(1),
            empty_first_buffer: rewrites.empty_first_buffer,
            buffers: Vec::new(),
            constants: BTreeMap::new(),
            empty: None,
            ints: BTreeMap::new(),
            texts: BTreeMap::new(),
            slice_options: None,
            concatenation_options: BTreeMap::new(),
        }
    }

    /// References to the new buffers, which come behind the original's.
    pub(super) fn buffers(&self) -> impl Iterator<Item = Value> {
        self.buffers.iter().map(|buffer| Value::To(buffer.table))
    }

    fn ints(&mut self, prefix: &mut Prefix, ints: &[i32]) -> Value {
        let known = self.ints.get(ints).copied();
        let label = known.unwrap_or_else(|| {
            let label = prefix.label();
            self.ints.insert(ints.to_vec(), label);
            label
        });
        Value::To(label)
    }

    fn text(&mut self, prefix: &mut Prefix, text: &str) -> Value {
        if text.is_empty() {
            return Value::Absent;
        }
        let known = self.texts.get(text).copied();
        let label = known.unwrap_or_else(|| {
            let label = prefix.label();
            self.texts.insert(text.to_owned(), label);
            label
        });
        Value::To(label)
    }

    /// Adds a buffer and gives its index.
    fn add(&mut self, prefix: &mut Prefix, data: Option<Vec<i32>>) -> Result<u32, PatchError> {
        let index = u32::try_from(self.first_buffer + self.buffers.len())
            .map_err(|_| PatchError::TooLarge)?;
        self.buffers.push(NewBuffer {
            table: prefix.label(),
            data: data.map(|data| (prefix.label(), data)),
        });
        Ok(index)
    }

    /// The buffer of a tensor without data.
    fn empty_buffer(&mut self, prefix: &mut Prefix) -> Result<Value, PatchError> {
        if self.empty_first_buffer {
            return Ok(Value::Absent);
        }
        let index = match self.empty {
            Some(index) => index,
            None => self.add(prefix, None)?,
        };
        self.empty = Some(index);
        Ok(Value::Scalar(index.to_le_bytes()))
    }

    /// The buffer of a constant.
    fn constant(&mut self, prefix: &mut Prefix, values: &[i32]) -> Result<Value, PatchError> {
        let index = match self.constants.get(values) {
            Some(index) => *index,
            None => {
                let index = self.add(prefix, Some(values.to_vec()))?;
                self.constants.insert(values.to_vec(), index);
                index
            }
        };
        Ok(Value::Scalar(index.to_le_bytes()))
    }

    /// Writes all that new tables refer to.
    pub(super) fn write(self, prefix: &mut Prefix) -> Result<(), PatchError> {
        if let Some(options) = self.slice_options {
            prefix.table(options, &[])?;
        }
        for (axis, options) in self.concatenation_options {
            prefix.table(options, &[int(axis)])?;
        }
        for buffer in &self.buffers {
            let data = buffer.data.as_ref();
            let field = data.map_or(Value::Absent, |(label, _)| Value::To(*label));
            prefix.table(buffer.table, &[field])?;
        }
        for (ints, label) in self.ints {
            prefix.vector(label, ints.into_iter().map(|value| Ok(int(value))))?;
        }
        for (text, label) in self.texts {
            prefix.string(label, &text)?;
        }
        for (label, values) in self.buffers.into_iter().filter_map(|buffer| buffer.data) {
            let bytes: Vec<u8> = values.into_iter().flat_map(i32::to_le_bytes).collect();
            prefix.data(label, &bytes, 16)?;
        }
        Ok(())
    }
}

/// Writes the subgraph vector, with new tables for the subgraphs that are rewritten or reordered.
pub(super) fn write(
    prefix: &mut Prefix,
    vector: Label,
    survey: &Survey<'_>,
    rewrites: &Rewrites<'_>,
    orders: &BTreeMap<usize, &[u32]>,
    shared: &mut Shared,
) -> Result<(), PatchError> {
    let changed = rewrites.of_subgraph.keys().chain(orders.keys());
    let changed: BTreeSet<usize> = changed.copied().collect();
    let labels: BTreeMap<usize, Label> = changed
        .into_iter()
        .map(|subgraph| (subgraph, prefix.label()))
        .collect();
    let elements = survey
        .subgraphs
        .iter()
        .enumerate()
        .map(|(index, subgraph)| {
            Ok(match labels.get(&index) {
                Some(label) => Value::To(*label),
                None => Value::Original(subgraph?.table().position()),
            })
        });
    prefix.vector(vector, elements)?;
    for (index, label) in labels {
        let subgraph = survey.subgraphs.get(index)?;
        let rewrite = rewrites.of_subgraph.get(&index).copied();
        let tensors = rewrite.map(|_| prefix.label());
        let operators = prefix.label();
        let mut fields = [Value::Absent; SUBGRAPH_SLOTS as usize];
        for (slot, field) in (0..).zip(&mut fields) {
            *field = match (slot, tensors) {
                (0, Some(tensors)) => Value::To(tensors),
                (3, _) => Value::To(operators),
                (5, _) => scalar(subgraph.table(), slot)?,
                _ => referred(subgraph.table(), slot)?,
            };
        }
        prefix.table(label, &fields)?;
        let (elements, new_operators) = match rewrite {
            Some(rewrite) => rewritten(prefix, subgraph, rewrite)?,
            None => (
                of_original(&operator_tables(subgraph)?).collect(),
                Vec::new(),
            ),
        };
        let order = orders.get(&index).copied();
        let ordered = (0..elements.len()).map(|position| {
            let from = order.and_then(|order| order.get(position));
            let from = from.map_or(position, |from| *from as usize);
            Ok(elements.get(from).copied().unwrap_or(Value::Absent))
        });
        prefix.vector(operators, ordered)?;
        let (Some(rewrite), Some(tensors)) = (rewrite, tensors) else {
            continue;
        };
        write_tensors(prefix, tensors, subgraph, rewrite, shared)?;
        for (operator, label) in new_operators {
            write_operator(prefix, label, subgraph, operator, rewrites, shared)?;
        }
    }
    Ok(())
}

fn operator_tables(subgraph: SubGraph<'_>) -> Result<Vec<usize>, PatchError> {
    let operators = subgraph.operators()?;
    let tables = operators.iter().map(|o| Ok(o?.table().position()));
    tables.collect()
}

/// The elements of the operator vector, and the operators that get tables.
#[allow(clippy::type_complexity)]
fn rewritten<'e>(
    prefix: &mut Prefix,
    subgraph: SubGraph<'_>,
    rewrite: &'e Rewrite,
) -> Result<(Vec<Value>, Vec<(&'e NewOperator, Label)>), PatchError> {
    let originals = subgraph.operators()?;
    let (mut elements, mut new) = (Vec::new(), Vec::new());
    for operator in &rewrite.operators {
        elements.push(match operator {
            NewOperator::Original(original) => {
                Value::Original(originals.get(*original as usize)?.table().position())
            }
            _ => {
                let label = prefix.label();
                new.push((operator, label));
                Value::To(label)
            }
        });
    }
    Ok((elements, new))
}

/// Writes the tensor vector and the new tensors.
fn write_tensors(
    prefix: &mut Prefix,
    vector: Label,
    subgraph: SubGraph<'_>,
    rewrite: &Rewrite,
    shared: &mut Shared,
) -> Result<(), PatchError> {
    let originals = subgraph.tensors()?;
    let mut new: BTreeMap<usize, (&NewTensor, Label)> = BTreeMap::new();
    for (index, tensor) in &rewrite.replaced {
        new.insert(*index as usize, (tensor, prefix.label()));
    }
    for (index, tensor) in (originals.len()..).zip(&rewrite.added) {
        new.insert(index, (tensor, prefix.label()));
    }
    let elements = (0..originals.len() + rewrite.added.len()).map(|index| {
        Ok(match new.get(&index) {
            Some((_, label)) => Value::To(*label),
            None => Value::Original(originals.get(index)?.table().position()),
        })
    });
    prefix.vector(vector, elements)?;
    for (tensor, label) in new.into_values() {
        let fields = match tensor {
            NewTensor::Like {
                original,
                shape,
                name,
            } => {
                let like = originals.get(*original as usize)?.table();
                [
                    shared.ints(prefix, shape),
                    byte_of(like, 1)?,
                    shared.empty_buffer(prefix)?,
                    shared.text(prefix, name),
                    referred(like, 4)?,
                    Value::Absent,
                    Value::Absent,
                    Value::Absent,
                    byte_of(like, 8)?,
                    referred(like, 9)?,
                ]
            }
            NewTensor::Constant {
                shape,
                values,
                name,
            } => {
                let mut fields = [Value::Absent; 10];
                let known = [
                    shared.ints(prefix, shape),
                    byte(INT32),
                    shared.constant(prefix, values)?,
                    shared.text(prefix, name),
                ];
                for (field, known) in fields.iter_mut().zip(known) {
                    *field = known;
                }
                if let (true, Some(has_rank)) = (shape.is_empty(), fields.get_mut(8)) {
                    *has_rank = byte(1);
                }
                fields
            }
        };
        prefix.table(label, &fields)?;
    }
    Ok(())
}

fn write_operator(
    prefix: &mut Prefix,
    label: Label,
    subgraph: SubGraph<'_>,
    operator: &NewOperator,
    rewrites: &Rewrites<'_>,
    shared: &mut Shared,
) -> Result<(), PatchError> {
    let code = |code| Value::Scalar(rewrites.codes.index(code).to_le_bytes());
    match operator {
        // It stays where it is.
        NewOperator::Original(_) => Ok(()),
        NewOperator::Like {
            original,
            inputs,
            outputs,
        } => {
            let like = subgraph.operators()?.get(*original as usize)?.table();
            let mut fields = [Value::Absent; OPERATOR_SLOTS as usize];
            for (slot, field) in (0..).zip(&mut fields) {
                *field = match slot {
                    1 => shared.ints(prefix, inputs),
                    2 => shared.ints(prefix, outputs),
                    0 | 13 => scalar(like, slot)?,
                    3 | 6 | 11 => byte_of(like, slot)?,
                    // Custom options outside the FlatBuffer: there are none.
                    9 | 10 => Value::Absent,
                    _ => referred(like, slot)?,
                };
            }
            prefix.table(label, &fields)
        }
        NewOperator::Slice { inputs, output } => {
            let options = *shared.slice_options.get_or_insert_with(|| prefix.label());
            let fields = [
                code(SLICE),
                shared.ints(prefix, inputs),
                shared.ints(prefix, &[*output]),
                byte(SLICE_OPTIONS),
                Value::To(options),
            ];
            prefix.table(label, &fields)
        }
        NewOperator::Concatenation {
            axis,
            inputs,
            output,
        } => {
            let options = shared.concatenation_options.entry(*axis);
            let options = *options.or_insert_with(|| prefix.label());
            let fields = [
                code(CONCATENATION),
                shared.ints(prefix, inputs),
                shared.ints(prefix, &[*output]),
                byte(CONCATENATION_OPTIONS),
                Value::To(options),
            ];
            prefix.table(label, &fields)
        }
    }
}

/// Writes the operator code vector: the original's entries, then those appended.
pub(super) fn write_codes(
    prefix: &mut Prefix,
    vector: Label,
    codes: &Codes,
) -> Result<(), PatchError> {
    let labels: Vec<Label> = codes.appended.iter().map(|_| prefix.label()).collect();
    let new = labels.iter().map(|label| Value::To(*label));
    prefix.vector(vector, of_original(&codes.originals).chain(new).map(Ok))?;
    for (code, label) in codes.appended.iter().zip(labels) {
        // Both codes are below 127, so the byte holds them too.
        let [first, ..] = code.to_le_bytes();
        let fields = [byte(first), Value::Absent, int(1), int(*code)];
        prefix.table(label, &fields)?;
    }
    Ok(())
}

/// The 1-byte scalar in field `slot`, as it is.
fn byte_of(table: Table<'_>, slot: u16) -> Result<Value, PatchError> {
    Ok(if table.has(slot) {
        byte(table.u8(slot, 0)?)
    } else {
        Value::Absent
    })
}
