//! Rewritten subgraphs: what one is, and that it fits the model.
//!
//! Tensors that stay keep their indices, so operators, signatures and the subgraph's inputs and
//! outputs that name them stay as they are. A tensor that is gone gives its place to a new one; the
//! other new tensors come behind the original's.
//!
//! ```text
//! tensors     | 0 | 1 | new in place of 2 | 3 |  added 4 | added 5 |
//!               '---'----- the original's ---'
//! operators   | original 0 | like 1 | slice | like 1 | concatenation | original 2 |
//! ```

use std::collections::BTreeMap;

use super::PatchError;
use super::error::TensorUse;
use super::survey::{Steps, Survey};
use crate::view::{Model, Operator, SubGraph, Table, Tables, Tensor, Vector};

/// Slots of a subgraph's table known here, the last being `debug_metadata_index`.
pub(super) const SUBGRAPH_SLOTS: u16 = 6;
/// Slots of a tensor's table known here, the last being `external_buffer`.
const TENSOR_SLOTS: u16 = 11;
/// Slots of an operator's table known here, the last being `debug_metadata_index`.
pub(super) const OPERATOR_SLOTS: u16 = 14;

/// `BuiltinOperator` of the operators that can be added.
pub(super) const CONCATENATION: i32 = 2;
pub(super) const SLICE: i32 = 65;

/// Other tensors and operators for a subgraph.
///
/// Inputs, outputs, signatures and operators that stay may not name a tensor that is replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// Index of the subgraph.
    pub subgraph: usize,
    /// New tensors in the place of tensors of the original that are gone: index in the subgraph, in
    /// any order, and tensor.
    pub replaced: Vec<(u32, NewTensor)>,
    /// New tensors behind the original's.
    pub added: Vec<NewTensor>,
    /// All operators of the subgraph, in their order. A tensor's index is its place among the
    /// original's tensors, with some of them replaced, and the ones added.
    pub operators: Vec<NewOperator>,
}

/// A tensor of a [`Rewrite`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewTensor {
    /// A tensor that is computed, of the type and quantization of another one.
    ///
    /// It is no variable and has no `shape_signature`. Where constant data is (`buffer`,
    /// `external_buffer`) and how it is packed (`sparsity`) is not taken over.
    Like {
        /// The tensor of the original, by its index in this subgraph.
        original: u32,
        /// The dimensions, outermost first, none of them negative.
        shape: Vec<i32>,
        /// The name; an empty one is left out of the file.
        name: String,
    },
    /// A constant of 32-bit integers.
    Constant {
        /// The dimensions, outermost first, none of them negative; empty for a scalar.
        shape: Vec<i32>,
        /// The elements in row-major order, as many as the shape says.
        values: Vec<i32>,
        /// The name; an empty one is left out of the file.
        name: String,
    },
}

/// An operator of a [`Rewrite`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewOperator {
    /// The operator of the original that has this index in the subgraph, as it is. At most once.
    Original(u32),
    /// A copy of an operator of the original on other tensors: the same in everything else, its
    /// options and custom options being those of the original by reference.
    Like {
        /// The operator of the original, by its index in this subgraph.
        original: u32,
        /// Indices of the input tensors; -1 for an optional one that is not given.
        inputs: Vec<i32>,
        /// Indices of the output tensors.
        outputs: Vec<i32>,
    },
    /// `SLICE`.
    Slice {
        /// Indices of the source, the first indices to take, and how many.
        inputs: [i32; 3],
        /// Index of the output tensor.
        output: i32,
    },
    /// `CONCATENATION` without activation.
    Concatenation {
        /// The dimension along which the inputs are put together.
        axis: i32,
        /// Indices of the input tensors.
        inputs: Vec<i32>,
        /// Index of the output tensor.
        output: i32,
    },
}

/// The rewrites of an edit, which fit the model.
pub(super) struct Rewrites<'e> {
    pub(super) of_subgraph: BTreeMap<usize, &'e Rewrite>,
    pub(super) codes: Codes,
    /// Tensors that come behind the original's, of all subgraphs.
    pub(super) added_tensors: usize,
    /// Whether a tensor that names buffer 0 has no data, as is the convention.
    pub(super) empty_first_buffer: bool,
}

/// Operator codes for the operators that are added.
#[derive(Default)]
pub(super) struct Codes {
    /// `BuiltinOperator`s that the model has no entry for, to be put behind its own.
    pub(super) appended: Vec<i32>,
    /// Where the model's own entries are, if there is something to put behind them.
    pub(super) originals: Vec<usize>,
    /// The entry of each operator that is added.
    index: BTreeMap<i32, u32>,
}

impl Codes {
    /// Index of the entry for an operator that some rewrite adds.
    pub(super) fn index(&self, code: i32) -> u32 {
        self.index.get(&code).copied().unwrap_or(0)
    }
}

impl<'e> Rewrites<'e> {
    /// Checks that `rewrites` fit the model.
    pub(super) fn new(
        model: &Model<'_>,
        survey: &Survey<'_>,
        rewrites: &'e [Rewrite],
    ) -> Result<Self, PatchError> {
        let mut of_subgraph = BTreeMap::new();
        let mut added_tensors = 0_usize;
        for rewrite in rewrites {
            let subgraph = rewrite.subgraph;
            if subgraph >= survey.subgraphs.len() {
                return Err(PatchError::RewriteSubgraph {
                    subgraph,
                    subgraphs: survey.subgraphs.len(),
                });
            }
            if of_subgraph.insert(subgraph, rewrite).is_some() {
                return Err(PatchError::RewriteTwice { subgraph });
            }
            Check::new(model, survey, rewrite)?.all()?;
            added_tensors = added_tensors.saturating_add(rewrite.added.len());
        }
        Ok(Self {
            codes: codes(model, rewrites)?,
            empty_first_buffer: of_subgraph.is_empty() || empty_first_buffer(model)?,
            of_subgraph,
            added_tensors,
        })
    }
}

fn codes(model: &Model<'_>, rewrites: &[Rewrite]) -> Result<Codes, PatchError> {
    let mut codes = Codes::default();
    let entries = model.operator_codes()?;
    for code in [SLICE, CONCATENATION] {
        let is_added = |operator: &NewOperator| match operator {
            NewOperator::Slice { .. } => code == SLICE,
            NewOperator::Concatenation { .. } => code == CONCATENATION,
            NewOperator::Original(_) | NewOperator::Like { .. } => false,
        };
        if !rewrites.iter().any(|r| r.operators.iter().any(is_added)) {
            continue;
        }
        let mut found = None;
        for (index, entry) in entries.iter().enumerate() {
            if entry?.builtin_code()? == code {
                found = Some(index);
                break;
            }
        }
        let index = found.unwrap_or_else(|| {
            codes.appended.push(code);
            entries.len() + codes.appended.len() - 1
        });
        let index = u32::try_from(index).map_err(|_| PatchError::TooLarge)?;
        codes.index.insert(code, index);
    }
    if !codes.appended.is_empty() {
        let tables = entries.iter().map(|entry| Ok(entry?.table().position()));
        codes.originals = tables.collect::<Result<_, PatchError>>()?;
    }
    Ok(codes)
}

fn empty_first_buffer(model: &Model<'_>) -> Result<bool, PatchError> {
    Ok(match model.buffers()?.iter().next().transpose()? {
        Some(first) => first.data()?.is_none_or(<[u8]>::is_empty) && first.offset()? <= 1,
        // The patch puts an empty one there.
        None => true,
    })
}

/// The check of one rewrite.
struct Check<'a, 'e> {
    model: Model<'a>,
    rewrite: &'e Rewrite,
    view: SubGraph<'a>,
    tensors: Tables<'a, Tensor<'a>>,
    operators: Tables<'a, Operator<'a>>,
    replaced: BTreeMap<u32, &'e NewTensor>,
    /// Tensors with those added.
    count: usize,
    steps: Steps,
}

impl<'a, 'e> Check<'a, 'e> {
    fn new(
        model: &Model<'a>,
        survey: &Survey<'a>,
        rewrite: &'e Rewrite,
    ) -> Result<Self, PatchError> {
        let subgraph = rewrite.subgraph;
        let view = survey.subgraphs.get(subgraph)?;
        if let Some(slot) = newer_field(view.table(), SUBGRAPH_SLOTS) {
            return Err(PatchError::NewerSubgraphField { subgraph, slot });
        }
        let tensors = view.tensors()?;
        let mut replaced = BTreeMap::new();
        for (tensor, new) in &rewrite.replaced {
            if *tensor as usize >= tensors.len() {
                return Err(PatchError::RewriteReplaced {
                    subgraph,
                    tensor: *tensor,
                    tensors: tensors.len(),
                });
            }
            if replaced.insert(*tensor, new).is_some() {
                return Err(PatchError::RewriteReplacedTwice {
                    subgraph,
                    tensor: *tensor,
                });
            }
        }
        let count = tensors.len().saturating_add(rewrite.added.len());
        // Operators name tensors by signed numbers.
        if i32::try_from(count).is_err() {
            return Err(PatchError::TooLarge);
        }
        Ok(Self {
            model: *model,
            rewrite,
            view,
            tensors,
            operators: view.operators()?,
            replaced,
            count,
            steps: Steps::for_file(model.as_bytes()),
        })
    }

    fn all(&mut self) -> Result<(), PatchError> {
        for (tensor, new) in &self.rewrite.replaced {
            self.tensor(*tensor as usize, new)?;
        }
        for (tensor, new) in (self.tensors.len()..).zip(&self.rewrite.added) {
            self.tensor(tensor, new)?;
        }
        let mut kept = vec![false; self.operators.len()];
        for (position, operator) in self.rewrite.operators.iter().enumerate() {
            if let NewOperator::Original(original) = operator
                && let Some(kept) = kept.get_mut(*original as usize)
                && std::mem::replace(kept, true)
            {
                return Err(PatchError::RewriteOriginalTwice {
                    subgraph: self.rewrite.subgraph,
                    position,
                    operator: *original,
                });
            }
            self.operator(position, operator)?;
        }
        self.kept_list(self.view.inputs()?, TensorUse::Input)?;
        self.kept_list(self.view.outputs()?, TensorUse::Output)?;
        self.signatures()
    }

    fn tensor(&self, tensor: usize, new: &NewTensor) -> Result<(), PatchError> {
        let subgraph = self.rewrite.subgraph;
        let (NewTensor::Like { shape, .. } | NewTensor::Constant { shape, .. }) = new;
        if let Some(&dimension) = shape.iter().find(|dimension| **dimension < 0) {
            return Err(PatchError::RewriteDimension {
                subgraph,
                tensor,
                dimension,
            });
        }
        match new {
            NewTensor::Like { original, .. } => {
                let original = *original;
                if original as usize >= self.tensors.len() {
                    return Err(PatchError::RewriteLikeTensor {
                        subgraph,
                        tensor,
                        original,
                        tensors: self.tensors.len(),
                    });
                }
                let view = self.tensors.get(original as usize)?;
                if let Some(slot) = newer_field(view.table(), TENSOR_SLOTS) {
                    return Err(PatchError::NewerTensorField {
                        subgraph,
                        tensor: original,
                        slot,
                    });
                }
                self.channels(tensor, view, shape)
            }
            NewTensor::Constant { values, .. } => {
                let elements = shape
                    .iter()
                    .try_fold(1_usize, |product, dimension| {
                        product.checked_mul(usize::try_from(*dimension).ok()?)
                    })
                    .unwrap_or(usize::MAX);
                if elements != values.len() {
                    return Err(PatchError::RewriteConstant {
                        subgraph,
                        tensor,
                        elements,
                        values: values.len(),
                    });
                }
                Ok(())
            }
        }
    }

    /// Where there is a scale for each index of a dimension, the new shape must have that dimension.
    fn channels(&self, tensor: usize, like: Tensor<'_>, shape: &[i32]) -> Result<(), PatchError> {
        let Some(quantization) = like.quantization()? else {
            return Ok(());
        };
        let scales = quantization.scale()?.len();
        let dimension = quantization.quantized_dimension()?;
        let found = usize::try_from(dimension)
            .ok()
            .and_then(|dimension| shape.get(dimension));
        if scales > 1 && found.is_none_or(|found| usize::try_from(*found) != Ok(scales)) {
            return Err(PatchError::RewriteChannels {
                subgraph: self.rewrite.subgraph,
                tensor,
                scales,
                dimension,
            });
        }
        Ok(())
    }

    fn operator(&mut self, position: usize, operator: &NewOperator) -> Result<(), PatchError> {
        let subgraph = self.rewrite.subgraph;
        let by = TensorUse::Operator(position);
        match operator {
            NewOperator::Original(original) => {
                let view = self.original_operator(position, *original)?;
                self.kept_list(view.inputs()?, by)?;
                self.kept_list(view.outputs()?, by)?;
                self.kept_list(view.intermediates()?, by)
            }
            NewOperator::Like {
                original,
                inputs,
                outputs,
            } => {
                let view = self.original_operator(position, *original)?;
                if let Some(slot) = newer_field(view.table(), OPERATOR_SLOTS) {
                    return Err(PatchError::NewerOperatorField {
                        subgraph,
                        operator: *original,
                        slot,
                    });
                }
                if view.large_custom_options_offset()? > 1 {
                    return Err(PatchError::RewriteLargeOptions {
                        subgraph,
                        operator: *original,
                    });
                }
                for &index in inputs.iter().filter(|index| **index != -1) {
                    self.new_index(index, by)?;
                }
                self.new_indices(outputs, by)?;
                self.kept_list(view.intermediates()?, by)
            }
            NewOperator::Slice { inputs, output } => {
                self.new_indices(inputs, by)?;
                self.new_index(*output, by)
            }
            NewOperator::Concatenation { inputs, output, .. } => {
                if inputs.is_empty() {
                    return Err(PatchError::RewriteNoInputs { subgraph, position });
                }
                self.new_indices(inputs, by)?;
                self.new_index(*output, by)
            }
        }
    }

    fn original_operator(
        &self,
        position: usize,
        operator: u32,
    ) -> Result<Operator<'a>, PatchError> {
        if operator as usize >= self.operators.len() {
            return Err(PatchError::RewriteOperator {
                subgraph: self.rewrite.subgraph,
                position,
                operator,
                operators: self.operators.len(),
            });
        }
        Ok(self.operators.get(operator as usize)?)
    }

    fn new_indices(&self, indices: &[i32], by: TensorUse) -> Result<(), PatchError> {
        indices
            .iter()
            .try_for_each(|index| self.new_index(*index, by))
    }

    fn new_index(&self, index: i32, by: TensorUse) -> Result<(), PatchError> {
        match usize::try_from(index) {
            Ok(index) if index < self.count => Ok(()),
            _ => Err(self.no_tensor(index.into(), self.count, by)),
        }
    }

    fn no_tensor(&self, index: i64, tensors: usize, by: TensorUse) -> PatchError {
        PatchError::RewriteTensor {
            subgraph: self.rewrite.subgraph,
            by,
            index,
            tensors,
        }
    }

    /// Indices that stay in the file as they are; -1 stands for no tensor.
    fn kept_list(&mut self, indices: Vector<'a, i32>, by: TensorUse) -> Result<(), PatchError> {
        let start = indices.as_bytes().as_ptr() as usize;
        if !self.steps.enter(start, indices.len())? {
            return Ok(());
        }
        indices
            .iter()
            .filter(|index| *index != -1)
            .try_for_each(|index| self.kept_index(index.into(), by))
    }

    /// An index that stays in the file as it is: beyond the original's tensors it would come to mean
    /// one that is added.
    fn kept_index(&self, index: i64, by: TensorUse) -> Result<(), PatchError> {
        let tensor = u32::try_from(index).ok();
        match tensor.filter(|tensor| (*tensor as usize) < self.tensors.len()) {
            None => Err(self.no_tensor(index, self.tensors.len(), by)),
            Some(tensor) if self.replaced.contains_key(&tensor) => {
                Err(PatchError::RewriteReplacedInUse {
                    subgraph: self.rewrite.subgraph,
                    tensor,
                    by,
                })
            }
            Some(_) => Ok(()),
        }
    }

    fn signatures(&mut self) -> Result<(), PatchError> {
        let signatures = self.model.signature_defs()?;
        self.steps.take(signatures.len())?;
        for (index, signature) in signatures.iter().enumerate() {
            let signature = signature?;
            if signature.subgraph_index()? as usize != self.rewrite.subgraph {
                continue;
            }
            for maps in [signature.inputs()?, signature.outputs()?] {
                if !self.steps.enter(maps.start(), maps.len())? {
                    continue;
                }
                for map in maps {
                    let tensor = map?.tensor_index()?;
                    self.kept_index(tensor.into(), TensorUse::Signature(index))?;
                }
            }
        }
        Ok(())
    }
}

/// A field of `table` beyond those known here.
pub(super) fn newer_field(table: Table<'_>, known: u16) -> Option<u16> {
    (known..table.slots()).find(|slot| table.has(*slot))
}
