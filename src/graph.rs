//! The model as the planner sees it: operators, tensors, and where each tensor's bytes live.
//!
//! Tensors of all subgraphs are numbered through in file order. That number, [`TensorId`], is the position of the
//! tensor's entry in the `OfflineMemoryAllocation` metadata.

use std::fmt;

use arenaplan_schema::tflite;

use crate::error::Error;
use crate::model::Model;
use crate::text::shortened;

mod order;
mod read;
mod shapes;

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
    /// Position in that subgraph's list of operators.
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
    /// The shape that TFLM's kernel gives this output while it prepares, where that is another one.
    pub prepared_shape: Option<Vec<i32>>,
    /// Bytes by TFLM's count: product of the dimensions, of the prepared shape where there is one, times the element
    /// size. 0 where that is unknown.
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
    /// cannot read, an open shape that it can fill in, or `[0]` that an old RESHAPE means for a scalar.
    pub fn is_left_to_tflm(&self) -> bool {
        self.bytes != 0
            && matches!(
                self.storage,
                Storage::OutsideConstant | Storage::DynamicShape | Storage::Empty
            )
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
            // Converters join the names of all that they fused.
            text.push_str(&format!(" {:?}", shortened(self.name, 60)));
        }
        if self.subgraph != 0 {
            text.push_str(&format!(" of subgraph {}", self.subgraph));
        }
        text
    }
}

/// Where the table of an operator comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The model as it was before this tool planned it.
    File,
    /// This tool, which copied an operator of the model to compute a part of what that one did.
    Copy,
    /// This tool, which added it, or copied it from an operator that cannot be told from others.
    Added,
}

/// An operator of some subgraph.
#[derive(Clone, Debug)]
pub struct Operator<'a> {
    /// Subgraph and position.
    pub id: OpId,
    /// Position before this tool planned the file; of a copy, that of the operator copied. The same as in `id` where nothing
    /// was changed, and of an operator added.
    pub original: u32,
    /// Whether the model had this operator before.
    pub origin: Origin,
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

    /// Whether the operator adds to what its output still holds from the invoke before.
    ///
    /// TFLM's CIRCULAR_BUFFER (`kernels/circular_buffer.cc`) moves its output up by one slot and fills the last one.
    pub fn updates_its_output(&self) -> bool {
        self.code == tflite::BuiltinOperator::CUSTOM && self.custom == Some("CIRCULAR_BUFFER")
    }

    /// `operator 3 CONV_2D`, with the subgraph when it is not the first, and the position before planning where that is
    /// another one.
    pub fn label(&self) -> String {
        let mut text = format!("operator {} {}", self.id.index, self.name());
        match self.origin {
            Origin::Copy => {
                text.push_str(&format!(" (a part of {} before planning)", self.original))
            }
            Origin::File if self.original != self.id.index => {
                text.push_str(&format!(" ({} before planning)", self.original));
            }
            Origin::File | Origin::Added => {}
        }
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
    /// Operators, in the order in which they run.
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
    /// Where the file begins that this tool planned.
    original_at: usize,
}

impl<'a> Graph<'a> {
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
