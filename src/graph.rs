//! The model as the planner sees it: operators, tensors, and where each tensor's bytes live.
//!
//! Tensors of all subgraphs are numbered through in file order. That number, [`TensorId`], is the position of the
//! tensor's entry in the `OfflineMemoryAllocation` metadata.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use arenaplan_schema::tflite;

use crate::error::Error;
use crate::model::Model;

/// A tensor, by its position in the concatenation of all subgraphs' tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(pub u32);

impl TensorId {
    /// The position as an index into a slice with an entry per tensor.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An operator, by subgraph and position in that subgraph's operator list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId {
    /// The subgraph that holds the operator.
    pub subgraph: u32,
    /// Position in that subgraph's operator vector, in file order.
    pub index: u32,
}

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operator {} of subgraph {}", self.index, self.subgraph)
    }
}

/// Where the bytes of a tensor are, which decides whether the planner gives it a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Storage {
    /// In the arena's head: gets an offset.
    Arena,
    /// Constant data inside the file: read from flash.
    Constant,
    /// Constant data outside the FlatBuffer (`Buffer.offset`, `Tensor.external_buffer`). TFLM cannot read it: it takes
    /// the tensor for one without data and gives it room in the head.
    OutsideConstant,
    /// Keeps its value between invokes: TFLM puts it into the tail.
    Variable,
    /// The output of VAR_HANDLE: a number kept with the operator's data, no arena.
    ResourceHandle,
    /// No bytes at all (a dimension is 0).
    Empty,
    /// A dimension of -1 in `shape`: the size is known only at run time, and left to the device.
    DynamicShape,
    /// A type without a fixed element size (STRING, VARIANT, or one newer than this tool).
    UnknownType,
}

/// A tensor of some subgraph.
#[derive(Clone, Debug)]
pub struct Tensor<'a> {
    /// Number in the concatenated list.
    pub id: TensorId,
    /// The subgraph it belongs to.
    pub subgraph: u32,
    /// Position in that subgraph's tensor vector.
    pub index: u32,
    /// Name as stored; empty when there is none.
    pub name: &'a str,
    /// Element type.
    pub ty: tflite::TensorType,
    /// `shape` as stored; empty for a scalar.
    pub shape: Vec<i32>,
    /// Bytes by TFLM's count: product of the dimensions times the element size. 0 where that is unknown. A RESHAPE's
    /// output with one open dimension has the bytes of its input.
    pub bytes: u64,
    /// Where those bytes live.
    pub storage: Storage,
    /// The table in the file, for what is not repeated here (quantization, signature).
    pub table: tflite::Tensor<'a>,
}

impl Tensor<'_> {
    /// Whether the planner places this tensor in the arena's head.
    pub fn is_planned(&self) -> bool {
        self.storage == Storage::Arena
    }

    /// Whether TFLM gives this tensor room in the head although no plan has an offset for it: a constant that it
    /// cannot read, or an open shape that it can fill in.
    pub fn is_left_to_tflm(&self) -> bool {
        matches!(
            self.storage,
            Storage::OutsideConstant | Storage::DynamicShape
        ) && self.bytes != 0
    }

    /// The dimension at `axis`, counted from the end when negative, or 1 outside the shape.
    pub fn dim(&self, axis: isize) -> i64 {
        let rank = self.shape.len() as isize;
        let at = if axis < 0 { rank + axis } else { axis };
        usize::try_from(at)
            .ok()
            .and_then(|i| self.shape.get(i))
            .map_or(1, |&d| i64::from(d))
    }

    /// Product of all dimensions; 0 when one of them is unknown or the product overflows.
    pub fn elements(&self) -> u64 {
        elements(&self.shape).unwrap_or(0)
    }

    /// Number of quantization scales: 0 without quantization, 1 per tensor, one for each channel otherwise.
    pub fn scales(&self) -> usize {
        self.table
            .quantization()
            .and_then(|q| q.scale())
            .map_or(0, |s| s.len())
    }

    /// `tensor 7 "name"`, with the subgraph when it is not the first.
    pub fn label(&self) -> String {
        let mut text = format!("tensor {}", self.index);
        if !self.name.is_empty() {
            text.push_str(&format!(" {:?}", self.name));
        }
        if self.subgraph != 0 {
            text.push_str(&format!(" of subgraph {}", self.subgraph));
        }
        text
    }
}

/// An operator of some subgraph.
#[derive(Clone, Debug)]
pub struct Operator<'a> {
    /// Subgraph and position.
    pub id: OpId,
    /// The operator, by the rule that the larger of the two stored codes counts.
    pub code: tflite::BuiltinOperator,
    /// The newer of the two stored codes alone, which is all that older versions of TFLM's lifetime pass look at.
    pub stored_code: tflite::BuiltinOperator,
    /// Name of a custom operator.
    pub custom: Option<&'a str>,
    /// Inputs; `None` for an optional input that is absent.
    pub inputs: Vec<Option<TensorId>>,
    /// Outputs.
    pub outputs: Vec<TensorId>,
    /// Subgraphs that it runs, in the order in which TFLM walks them: IF then, else; WHILE cond, body; CALL_ONCE init.
    pub calls: Vec<u32>,
    /// The table in the file, for its options.
    pub table: tflite::Operator<'a>,
}

impl Operator<'_> {
    /// The operator's name: `CONV_2D`, the name of a custom operator, or `BUILTIN_N` for one newer than this tool.
    pub fn name(&self) -> String {
        match self.custom {
            Some(name) if self.code == tflite::BuiltinOperator::CUSTOM => name.to_owned(),
            _ => arenaplan_schema::names::operator_name(self.code).to_string(),
        }
    }

    /// Whether arena offsets are compiled into the operator, so that its tensors must stay where its compiler put them.
    ///
    /// Arm's Vela turns layers into a command stream for the Ethos-U, which reaches its inputs and outputs as offsets
    /// from the arena (TFLM's `kernels/ethos_u/ethosu.cc`); they lie inside the operator's own scratch tensors.
    pub fn has_compiled_offsets(&self) -> bool {
        self.code == tflite::BuiltinOperator::CUSTOM && self.custom == Some("ethos-u")
    }

    /// `operator 3 CONV_2D`, with the subgraph when it is not the first.
    pub fn label(&self) -> String {
        let mut text = format!("operator {} {}", self.id.index, self.name());
        if self.id.subgraph != 0 {
            text.push_str(&format!(" of subgraph {}", self.id.subgraph));
        }
        text
    }
}

/// A subgraph: its operators in execution order, and what goes in and out.
#[derive(Clone, Debug)]
pub struct Subgraph<'a> {
    /// Name as stored; empty when there is none.
    pub name: &'a str,
    /// The first of its tensors in the concatenated list.
    pub first_tensor: TensorId,
    /// How many tensors it has.
    pub tensor_count: u32,
    /// Inputs, in order.
    pub inputs: Vec<TensorId>,
    /// Outputs, in order.
    pub outputs: Vec<TensorId>,
    /// Operators, in file order.
    pub operators: Vec<Operator<'a>>,
}

/// All subgraphs of a model; subgraph 0 is the one that an invoke runs.
#[derive(Clone, Debug)]
pub struct Graph<'a> {
    /// The model it was read from.
    pub model: Model<'a>,
    /// Every tensor of every subgraph, by [`TensorId`].
    pub tensors: Vec<Tensor<'a>>,
    /// The subgraphs, in file order.
    pub subgraphs: Vec<Subgraph<'a>>,
}

impl<'a> Graph<'a> {
    /// Reads the graph of `model`.
    ///
    /// # Errors
    /// An index out of range (tensor, operator code, buffer, called subgraph), no subgraph at all, or a tensor too
    /// large for the arena's 31-bit offsets; each with its place.
    pub fn read(model: Model<'a>) -> Result<Self, Error> {
        let root = model.root();
        let tables = root
            .subgraphs()
            .filter(|s| !s.is_empty())
            .ok_or_else(|| Error::Missing {
                what: "subgraphs".into(),
            })?;
        let mut graph = Graph {
            model,
            tensors: Vec::new(),
            subgraphs: Vec::new(),
        };
        for (s, table) in tables.iter().enumerate() {
            let first_tensor = TensorId(graph.tensors.len() as u32);
            for (index, tensor) in table.tensors().into_iter().flatten().enumerate() {
                let id = TensorId(graph.tensors.len() as u32);
                let tensor = read_tensor(&model, id, s as u32, index as u32, tensor)?;
                graph.tensors.push(tensor);
            }
            let tensor_count = graph.tensors.len() as u32 - first_tensor.0;
            let scope = Scope {
                first_tensor,
                tensor_count,
                subgraphs: tables.len(),
            };
            let named =
                |what: &str, list: Option<arenaplan_schema::flatbuffers::Vector<'a, i32>>| {
                    list.into_iter()
                        .flatten()
                        .enumerate()
                        .map(|(k, t)| scope.tensor(t, || format!("{what} {k} of subgraph {s}")))
                        .collect::<Result<Vec<_>, _>>()
                };
            let inputs = named("input", table.inputs())?;
            let outputs = named("output", table.outputs())?;
            let mut operators = Vec::new();
            for (index, op) in table.operators().into_iter().flatten().enumerate() {
                let id = OpId {
                    subgraph: s as u32,
                    index: index as u32,
                };
                operators.push(read_operator(&model, id, &scope, op)?);
            }
            for op in &operators {
                if op.code == tflite::BuiltinOperator::VAR_HANDLE {
                    for t in &op.outputs {
                        let tensor = &mut graph.tensors[t.index()];
                        if tensor.is_planned() {
                            tensor.storage = Storage::ResourceHandle;
                        }
                    }
                }
            }
            graph.size_open_reshapes(&operators);
            graph.check_order(&inputs, &operators)?;
            graph.subgraphs.push(Subgraph {
                name: table.name().unwrap_or(""),
                first_tensor,
                tensor_count,
                inputs,
                outputs,
                operators,
            });
        }
        graph.check_calls()?;
        Ok(graph)
    }

    /// Operators and the subgraphs they run must agree on how many values go in and out, as TFLM's kernels demand.
    fn check_calls(&self) -> Result<(), Error> {
        for op in self.operators().filter(|o| !o.calls.is_empty()) {
            let (inputs, outputs) = (op.inputs.len(), op.outputs.len());
            let code = op.code;
            for (k, &called) in op.calls.iter().enumerate() {
                let subgraph = &self.subgraphs[called as usize];
                let (takes, gives) = (subgraph.inputs.len(), subgraph.outputs.len());
                let fits = match (code, k) {
                    (tflite::BuiltinOperator::IF, _) => takes + 1 == inputs && gives == outputs,
                    (tflite::BuiltinOperator::WHILE, 0) => {
                        takes == inputs && inputs == outputs && gives >= 1
                    }
                    (tflite::BuiltinOperator::WHILE, _) => takes == inputs && gives == outputs,
                    _ => inputs == 0 && outputs == 0,
                };
                if !fits {
                    return Err(Error::CallMismatch {
                        operator: op.label(),
                        reason: format!(
                            "its {inputs} inputs and {outputs} outputs do not fit subgraph {called}, which has \
                             {takes} and {gives}"
                        ),
                    });
                }
            }
        }
        Ok(())
    }

    /// TFLM's RESHAPE fills in one open dimension of its output from the size of its input (`reshape_common.cc`), and
    /// so can give that tensor room.
    fn size_open_reshapes(&mut self, operators: &[Operator<'a>]) {
        for op in operators
            .iter()
            .filter(|o| o.code == tflite::BuiltinOperator::RESHAPE)
        {
            let (Some(&Some(input)), [output]) = (op.inputs.first(), &op.outputs[..]) else {
                continue;
            };
            let input = self.tensor(input);
            let (ty, bytes) = (input.ty, input.bytes);
            let output = &mut self.tensors[output.index()];
            let open = output.shape.iter().filter(|&&d| d == -1).count();
            let others = output.shape.iter().filter(|&&d| d != -1);
            let known = others
                .map(|&d| u64::try_from(d).ok())
                .try_fold(1u64, |n, d| n.checked_mul(d?));
            if output.storage == Storage::DynamicShape && open == 1 && ty == output.ty {
                let element = arenaplan_schema::names::tensor_type_size(ty).map_or(0, u64::from);
                let row = known
                    .and_then(|n| n.checked_mul(element))
                    .filter(|&row| row > 0);
                output.bytes = if row.is_some_and(|row| bytes.is_multiple_of(row)) {
                    bytes
                } else {
                    0
                };
            }
        }
    }

    /// Refuses an operator that reads what only itself or a later one writes: nothing could run that.
    fn check_order(&self, inputs: &[TensorId], operators: &[Operator<'a>]) -> Result<(), Error> {
        let inputs: BTreeSet<_> = inputs.iter().copied().collect();
        let mut writer = BTreeMap::new();
        for op in operators {
            for &t in &op.outputs {
                writer.entry(t).or_insert(op);
            }
        }
        for op in operators {
            for t in op.inputs.iter().flatten().filter(|t| !inputs.contains(t)) {
                let tensor = self.tensor(*t);
                if let Some(first) = writer.get(t)
                    && first.id >= op.id
                    && tensor.is_planned()
                {
                    return Err(Error::ReadBeforeWritten {
                        tensor: tensor.label(),
                        reader: op.label(),
                        writer: first.label(),
                    });
                }
            }
        }
        Ok(())
    }

    /// The tensor with number `id`.
    pub fn tensor(&self, id: TensorId) -> &Tensor<'a> {
        &self.tensors[id.index()]
    }

    /// The operator at `id`.
    pub fn operator(&self, id: OpId) -> &Operator<'a> {
        &self.subgraphs[id.subgraph as usize].operators[id.index as usize]
    }

    /// Every operator of every subgraph, in file order.
    pub fn operators(&self) -> impl Iterator<Item = &Operator<'a>> {
        self.subgraphs.iter().flat_map(|s| &s.operators)
    }

    /// Finds a tensor by `SUBGRAPH:INDEX`, by name (first subgraph that has it wins), or by index in subgraph 0.
    ///
    /// # Errors
    /// [`Error::NoSuchTensor`].
    pub fn find_tensor(&self, text: &str) -> Result<TensorId, Error> {
        if let Some(tensor) = self
            .tensors
            .iter()
            .find(|t| !t.name.is_empty() && t.name == text)
        {
            return Ok(tensor.id);
        }
        let (subgraph, index) = match text.split_once(':') {
            Some((s, i)) => (s.parse().ok(), i.parse().ok()),
            None => (Some(0u32), text.parse().ok()),
        };
        self.tensors
            .iter()
            .find(|t| Some(t.subgraph) == subgraph && Some(t.index) == index)
            .map(|t| t.id)
            .ok_or_else(|| Error::NoSuchTensor {
                name: text.to_owned(),
            })
    }
}

/// What an index inside a subgraph may refer to.
struct Scope {
    first_tensor: TensorId,
    tensor_count: u32,
    subgraphs: usize,
}

impl Scope {
    fn tensor(&self, index: i32, place: impl FnOnce() -> String) -> Result<TensorId, Error> {
        match u32::try_from(index) {
            Ok(i) if i < self.tensor_count => Ok(TensorId(self.first_tensor.0 + i)),
            _ => Err(Error::IndexOutOfRange {
                place: place(),
                index: index.into(),
                length: self.tensor_count as usize,
            }),
        }
    }

    fn subgraph(&self, index: i32, operator: impl FnOnce() -> String) -> Result<u32, Error> {
        u32::try_from(index)
            .ok()
            .filter(|&i| (i as usize) < self.subgraphs)
            .ok_or_else(|| Error::IndexOutOfRange {
                place: format!("{}, subgraph to call", operator()),
                index: index.into(),
                length: self.subgraphs,
            })
    }
}

fn read_tensor<'a>(
    model: &Model<'a>,
    id: TensorId,
    subgraph: u32,
    index: u32,
    table: tflite::Tensor<'a>,
) -> Result<Tensor<'a>, Error> {
    let shape: Vec<i32> = table.shape().into_iter().flatten().collect();
    let mut tensor = Tensor {
        id,
        subgraph,
        index,
        name: table.name().unwrap_or(""),
        ty: table.type_(),
        bytes: 0,
        storage: Storage::Arena,
        shape,
        table,
    };
    let buffers = model.root().buffers();
    let buffer_count = buffers.map_or(0, |b| b.len());
    let buffer = table.buffer() as usize;
    // A model without any buffer can only say 0, "none".
    if buffer >= buffer_count && buffer != 0 {
        return Err(Error::IndexOutOfRange {
            place: format!("buffer of {}", tensor.label()),
            index: buffer as i64,
            length: buffer_count,
        });
    }
    let buffer = buffers.filter(|b| buffer < b.len()).map(|b| b.get(buffer));
    let inside = buffer.and_then(|b| b.data()).is_some_and(|d| !d.is_empty());
    let outside = buffer.is_some_and(|b| b.offset() > 1) || table.external_buffer() != 0;

    let element = arenaplan_schema::names::tensor_type_size(table.type_());
    let count = elements(&tensor.shape);
    let size = match (count, element) {
        (Some(n), Some(e)) => n.checked_mul(u64::from(e)),
        _ => Some(0),
    };
    tensor.storage = if inside {
        Storage::Constant
    } else if outside {
        Storage::OutsideConstant
    } else if table.is_variable() {
        Storage::Variable
    } else if element.is_none() {
        Storage::UnknownType
    } else if tensor.shape.iter().any(|&d| d < 0) {
        Storage::DynamicShape
    } else if tensor.shape.contains(&0) {
        Storage::Empty
    } else {
        Storage::Arena
    };
    // TFLM counts elements and offsets in 32-bit signed numbers.
    let takes_memory = matches!(tensor.storage, Storage::Arena | Storage::Variable);
    let open = tensor.shape.iter().any(|&d| d < 0);
    match size {
        Some(bytes) if bytes <= MAX_BYTES && (count.is_some() || open) => tensor.bytes = bytes,
        _ if takes_memory => {
            return Err(Error::TooLarge {
                what: tensor.label(),
            });
        }
        _ => {}
    }
    Ok(tensor)
}

/// Largest tensor or arena that 32-bit signed offsets can address, less room for rounding up.
pub(crate) const MAX_BYTES: u64 = i32::MAX as u64 - 4096;

/// Product of the dimensions; `None` when one is negative or the product overflows.
fn elements(shape: &[i32]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape
        .iter()
        .try_fold(1u64, |n, &d| n.checked_mul(u64::try_from(d).ok()?))
}

fn read_operator<'a>(
    model: &Model<'a>,
    id: OpId,
    scope: &Scope,
    table: tflite::Operator<'a>,
) -> Result<Operator<'a>, Error> {
    let codes = model.root().operator_codes();
    let count = codes.map_or(0, |c| c.len());
    let index = table.opcode_index() as usize;
    let Some(code) = codes.filter(|_| index < count).map(|c| c.get(index)) else {
        return Err(Error::IndexOutOfRange {
            place: format!("operator code of {id}"),
            index: index as i64,
            length: count,
        });
    };
    let stored_code = code.builtin_code();
    let resolved = tflite::BuiltinOperator(arenaplan_schema::names::builtin_code(
        code.deprecated_builtin_code(),
        stored_code.0,
    ));
    let mut operator = Operator {
        id,
        code: resolved,
        stored_code,
        custom: code.custom_code(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        calls: Vec::new(),
        table,
    };
    let label = || operator.label();
    let inputs = table
        .inputs()
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(k, t)| match t {
            -1 => Ok(None),
            _ => scope
                .tensor(t, || format!("{}, input {k}", label()))
                .map(Some),
        });
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let outputs = table.outputs().into_iter().flatten().enumerate();
    let outputs = outputs
        .map(|(k, t)| scope.tensor(t, || format!("{}, output {k}", label())))
        .collect::<Result<Vec<_>, _>>()?;
    let calls = called_subgraphs(&operator)
        .into_iter()
        .map(|s| scope.subgraph(s, label));
    let calls = calls.collect::<Result<Vec<_>, _>>()?;
    (operator.inputs, operator.outputs, operator.calls) = (inputs, outputs, calls);
    Ok(operator)
}

/// Subgraphs that a control-flow operator runs. One without options is read as calling subgraph 0, as the format's
/// defaults say, which the recursion check then refuses.
fn called_subgraphs(op: &Operator<'_>) -> Vec<i32> {
    match op.code {
        tflite::BuiltinOperator::IF => {
            let o = op.table.builtin_options_as_if_options();
            vec![
                o.map_or(0, |o| o.then_subgraph_index()),
                o.map_or(0, |o| o.else_subgraph_index()),
            ]
        }
        tflite::BuiltinOperator::WHILE => {
            let o = op.table.builtin_options_as_while_options();
            vec![
                o.map_or(0, |o| o.cond_subgraph_index()),
                o.map_or(0, |o| o.body_subgraph_index()),
            ]
        }
        tflite::BuiltinOperator::CALL_ONCE => {
            vec![
                op.table
                    .builtin_options_as_call_once_options()
                    .map_or(0, |o| o.init_subgraph_index()),
            ]
        }
        _ => Vec::new(),
    }
}
