//! A light model of a graph's main subgraph, which can be cut into stripes again and again.
//!
//! Operators are the file's, or copies of them that compute some rows, or the SLICEs and CONCATENATIONs around those.
//! Tensors are the file's, or hold some rows of one.

use std::collections::BTreeSet;
use std::sync::Arc;

use arenaplan_schema::tflite::{BuiltinOperator, Padding, TensorType};

use super::rows::Window;
use crate::graph::{Graph, Operator, Storage, Tensor, TensorId};

/// What an operator of the file does with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// An output row needs a window of input rows: extent, stride, and whether the padding is SAME.
    Window {
        extent: i64,
        stride: i64,
        same: bool,
    },
    /// An output row needs the same row of each input.
    EachRow,
    /// Rows are added at the top and at the bottom.
    Pad { top: i64, bottom: i64 },
    /// It cannot be cut, and why.
    Whole(Reason),
}

/// Why an operator cannot be cut into stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// Operators of its kind are not known to work row by row.
    Kind,
    /// A tensor is not of four dimensions with a batch of one.
    Shape,
    /// SLICE and CONCATENATION of TFLM do not take the tensor's type.
    Type(TensorType),
    /// More than one input, or weights, are computed by the model.
    Inputs,
    /// A constant operand differs from row to row.
    Operand,
    /// The shape in the file is not the one that the kernel computes.
    Stored,
}

/// An operator of the file.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) rule: Rule,
}

/// A tensor of the net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NetTensor {
    /// The file's tensor, by its index in the subgraph, that it is or of which it holds rows.
    pub(crate) of: u32,
    /// Whether it is that tensor.
    pub(crate) is_whole: bool,
    /// Whether it has a place in the arena's head.
    pub(crate) is_placed: bool,
    /// Whether it must stay as it is.
    pub(crate) is_pinned: bool,
    /// The first of its rows, counted in the file's tensor.
    pub(crate) first: i64,
    /// How many rows; 0 for a tensor that is not of four dimensions with a batch of one.
    pub(crate) rows: i64,
    /// Bytes of a row, or of all of a tensor without rows.
    pub(crate) row_bytes: u64,
    /// Type of the elements.
    pub(crate) ty: TensorType,
}

impl NetTensor {
    /// Bytes of all rows.
    pub(crate) fn bytes(&self) -> u64 {
        match self.rows {
            0 => self.row_bytes,
            rows => rows as u64 * self.row_bytes,
        }
    }
}

/// What an operator of the net is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The file's operator, or a copy that computes some rows.
    Layer { index: u32, is_copy: bool },
    /// A copy of a PAD with rows of its own at the top and at the bottom.
    Pad { index: u32, top: i64, bottom: i64 },
    /// Takes the rows from `from` on, counted in the source.
    Slice { from: i64 },
    /// Joins rows.
    Concatenation,
}

/// An operator of the net. Tensors are indices into [`Net::tensors`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetOperator {
    pub(crate) kind: Kind,
    /// Inputs, constants among them; `None` for one that is absent. A slice has its source alone.
    pub(crate) inputs: Vec<Option<u32>>,
    pub(crate) outputs: Vec<u32>,
}

impl NetOperator {
    /// The operator of the file that it is or copies.
    pub(crate) fn layer(&self) -> Option<u32> {
        match self.kind {
            Kind::Layer { index, .. } | Kind::Pad { index, .. } => Some(index),
            _ => None,
        }
    }
}

/// The main subgraph.
#[derive(Clone, Debug)]
pub struct Net {
    /// The file's operators.
    pub(crate) layers: Arc<[Layer]>,
    /// The file's tensors in their order, then those made here. Some are not used any more.
    pub(crate) tensors: Vec<NetTensor>,
    pub(crate) operators: Vec<NetOperator>,
    pub(crate) inputs: Vec<u32>,
    pub(crate) outputs: Vec<u32>,
    /// How many tensors the file has.
    pub(crate) file_tensors: usize,
}

impl Net {
    /// Reads subgraph 0. Tensors in `pinned` stay as they are.
    pub fn read(graph: &Graph<'_>, pinned: &[TensorId]) -> Self {
        let subgraph = &graph.subgraphs[0];
        let first = subgraph.first_tensor.0;
        let local = |t: TensorId| t.0 - first;
        let count = subgraph.tensor_count;
        let mut writers = vec![0u32; count as usize];
        for &t in subgraph.operators.iter().flat_map(|op| &op.outputs) {
            writers[local(t) as usize] += 1;
        }
        let named = named(graph);
        let tensors = (0..count).map(|index| {
            let tensor = graph.tensor(TensorId(first + index));
            let rows = rows_of(tensor);
            NetTensor {
                of: index,
                is_whole: true,
                is_placed: tensor.storage == Storage::Arena,
                is_pinned: pinned.contains(&tensor.id)
                    || subgraph.outputs.contains(&tensor.id)
                    || subgraph.inputs.contains(&tensor.id)
                    || named.contains(&index)
                    || writers[index as usize] > 1,
                first: 0,
                rows: rows.unwrap_or(0),
                row_bytes: rows.map_or(tensor.bytes, |rows| tensor.bytes / rows as u64),
                ty: tensor.ty,
            }
        });
        let layers = subgraph.operators.iter().map(|op| Layer {
            rule: rule(graph, op),
        });
        let operators = subgraph
            .operators
            .iter()
            .zip(0..)
            .map(|(op, index)| NetOperator {
                kind: Kind::Layer {
                    index,
                    is_copy: false,
                },
                inputs: op.inputs.iter().map(|t| t.map(local)).collect(),
                outputs: op.outputs.iter().map(|&t| local(t)).collect(),
            });
        Self {
            layers: layers.collect(),
            tensors: tensors.collect(),
            operators: operators.collect(),
            inputs: subgraph.inputs.iter().map(|&t| local(t)).collect(),
            outputs: subgraph.outputs.iter().map(|&t| local(t)).collect(),
            file_tensors: count as usize,
        }
    }

    pub(crate) fn tensor(&self, index: u32) -> &NetTensor {
        &self.tensors[index as usize]
    }

    /// The inputs of an operator that are in the arena, each once.
    pub(crate) fn placed_inputs(&self, op: &NetOperator) -> Vec<u32> {
        let mut placed: Vec<u32> = Vec::new();
        for &input in op.inputs.iter().flatten() {
            if self.tensor(input).is_placed && !placed.contains(&input) {
                placed.push(input);
            }
        }
        placed
    }

    /// What an operator does with rows; the rule of a copy is that of its original.
    pub(crate) fn rule(&self, op: &NetOperator) -> Rule {
        match op.kind {
            Kind::Layer { index, .. } => self.layers[index as usize].rule,
            Kind::Pad { top, bottom, .. } => Rule::Pad { top, bottom },
            Kind::Slice { .. } | Kind::Concatenation => Rule::Whole(Reason::Kind),
        }
    }

    /// The window of an operator with the rows that it has here.
    pub(crate) fn window(&self, op: &NetOperator) -> Option<Window> {
        let Rule::Window {
            extent,
            stride,
            same,
        } = self.rule(op)
        else {
            return None;
        };
        Some(Window {
            extent,
            stride,
            same,
            rows_in: self.tensor(op.inputs.first().copied()??).rows,
            rows_out: self.tensor(*op.outputs.first()?).rows,
        })
    }
}

/// Tensors that signatures name, or operators beside their inputs and outputs. In a rewritten file the names still stand.
fn named(graph: &Graph<'_>) -> BTreeSet<u32> {
    let model = graph.model.root();
    let signatures = model.signature_defs().into_iter().flatten();
    let maps = signatures
        .filter(|signature| signature.subgraph_index() == 0)
        .flat_map(|signature| [signature.inputs(), signature.outputs()]);
    let tensors = maps
        .flat_map(|maps| maps.into_iter().flatten())
        .map(|map| map.tensor_index());
    let operators = graph.subgraphs[0].operators.iter();
    let intermediates = operators
        .flat_map(|op| op.table.intermediates().into_iter().flatten())
        .filter_map(|t| u32::try_from(t).ok());
    tensors.chain(intermediates).collect()
}

/// Rows of a tensor of four dimensions with a batch of one.
fn rows_of(tensor: &Tensor<'_>) -> Option<i64> {
    match tensor.shape[..] {
        [1, rows, _, _] if rows > 0 && tensor.bytes > 0 && tensor.prepared_shape.is_none() => {
            Some(rows.into())
        }
        _ => None,
    }
}

/// Whether TFLM's SLICE and CONCATENATION take the type (`kernels/slice.cc`, `kernels/concatenation.cc`).
fn can_be_cut(ty: TensorType) -> bool {
    matches!(
        ty,
        TensorType::FLOAT32 | TensorType::INT8 | TensorType::INT16 | TensorType::INT32
    )
}

fn rule(graph: &Graph<'_>, op: &Operator<'_>) -> Rule {
    match find_rule(graph, op) {
        Ok(rule) => rule,
        Err(reason) => Rule::Whole(reason),
    }
}

fn find_rule(graph: &Graph<'_>, op: &Operator<'_>) -> Result<Rule, Reason> {
    use BuiltinOperator as Op;
    let is_known = matches!(
        op.code,
        Op::CONV_2D
            | Op::DEPTHWISE_CONV_2D
            | Op::MAX_POOL_2D
            | Op::AVERAGE_POOL_2D
            | Op::PAD
            | Op::PADV2
            | Op::CONCATENATION
    );
    let operands = operands(op.code);
    if !is_known && operands == 0 {
        return Err(Reason::Kind);
    }
    let [output] = op.outputs[..] else {
        return Err(Reason::Kind);
    };
    let output = graph.tensor(output);
    let is_constant = |t: TensorId| graph.tensor(t).storage == Storage::Constant;
    let mut computed: Vec<&Tensor<'_>> = Vec::new();
    for &input in op.inputs.iter().flatten() {
        if !is_constant(input) {
            computed.push(graph.tensor(input));
        }
    }
    for tensor in computed.iter().copied().chain([output]) {
        if tensor.storage != Storage::Arena || rows_of(tensor).is_none() {
            return Err(Reason::Shape);
        }
        if !can_be_cut(tensor.ty) {
            return Err(Reason::Type(tensor.ty));
        }
    }
    let constant = |at: usize| {
        let input = op.inputs.get(at).copied().flatten();
        input.filter(|&t| is_constant(t)).map(|t| graph.tensor(t))
    };
    match op.code {
        Op::CONV_2D | Op::DEPTHWISE_CONV_2D | Op::MAX_POOL_2D | Op::AVERAGE_POOL_2D => {
            let ([input], Some(first)) = (&computed[..], op.inputs.first().copied().flatten())
            else {
                return Err(Reason::Inputs);
            };
            if first != input.id {
                return Err(Reason::Inputs);
            }
            let (extent, stride, padding) = window(op, constant(1)).ok_or(Reason::Stored)?;
            if extent < 1 || stride < 1 {
                return Err(Reason::Stored);
            }
            let window = Window {
                extent,
                stride,
                same: padding == Padding::SAME,
                rows_in: input.dim(1),
                rows_out: output.dim(1),
            };
            if window.rows_out_of(window.rows_in) != window.rows_out {
                return Err(Reason::Stored);
            }
            Ok(Rule::Window {
                extent,
                stride,
                same: window.same,
            })
        }
        Op::PAD | Op::PADV2 => {
            let [input] = computed[..] else {
                return Err(Reason::Inputs);
            };
            let paddings = constant(1).ok_or(Reason::Inputs)?;
            let values = integers(graph, paddings).ok_or(Reason::Inputs)?;
            let [0, 0, top, bottom, ..] = values[..] else {
                return Err(Reason::Shape);
            };
            let fits = values.len() == 8
                && values
                    .iter()
                    .all(|&v| (0..=i64::from(i32::MAX)).contains(&v))
                && input.dim(1) + top + bottom == output.dim(1);
            fits.then_some(Rule::Pad { top, bottom })
                .ok_or(Reason::Stored)
        }
        Op::CONCATENATION => {
            let options = op.table.builtin_options_as_concatenation_options();
            let axis = options.map_or(0, |o| o.axis());
            if axis != 3 && axis != -1 {
                return Err(Reason::Kind);
            }
            if computed.len() != op.inputs.len() {
                return Err(Reason::Inputs);
            }
            let same_rows = computed.iter().all(|t| t.dim(1) == output.dim(1));
            same_rows.then_some(Rule::EachRow).ok_or(Reason::Stored)
        }
        _ => {
            if computed.is_empty() || op.inputs.len() > operands {
                return Err(Reason::Inputs);
            }
            if computed.iter().any(|t| t.shape != output.shape) {
                return Err(Reason::Operand);
            }
            // A constant with fewer dimensions is broadcast over the rows.
            let varies = |t: TensorId| is_constant(t) && graph.tensor(t).dim(-3) != 1;
            match op.inputs.iter().flatten().any(|&t| varies(t)) {
                true => Err(Reason::Operand),
                false => Ok(Rule::EachRow),
            }
        }
    }
}

/// How many operands an operator has that computes each element from the elements at the same place; 0 for others.
fn operands(code: BuiltinOperator) -> usize {
    use BuiltinOperator as Op;
    match code {
        Op::RELU
        | Op::RELU6
        | Op::RELU_N1_TO_1
        | Op::RELU_0_TO_1
        | Op::LEAKY_RELU
        | Op::ELU
        | Op::LOGISTIC
        | Op::TANH
        | Op::HARD_SWISH
        | Op::QUANTIZE
        | Op::DEQUANTIZE
        | Op::ABS
        | Op::NEG
        | Op::SQUARE
        | Op::SQRT
        | Op::RSQRT
        | Op::EXP
        | Op::LOG
        | Op::SIN
        | Op::COS
        | Op::FLOOR
        | Op::CEIL
        | Op::ROUND => 1,
        Op::ADD
        | Op::SUB
        | Op::MUL
        | Op::DIV
        | Op::MAXIMUM
        | Op::MINIMUM
        | Op::SQUARED_DIFFERENCE
        | Op::PRELU => 2,
        _ => 0,
    }
}

/// Extent and stride in rows, and the padding.
fn window(op: &Operator<'_>, weights: Option<&Tensor<'_>>) -> Option<(i64, i64, Padding)> {
    use BuiltinOperator as Op;
    let dilated = |kernel: i64, dilation: i32| (kernel - 1) * i64::from(dilation) + 1;
    match op.code {
        Op::CONV_2D => {
            let options = op.table.builtin_options_as_conv_2_doptions()?;
            let kernel = weights?.dim(1);
            let extent = dilated(kernel, options.dilation_h_factor());
            Some((extent, options.stride_h().into(), options.padding()))
        }
        Op::DEPTHWISE_CONV_2D => {
            let options = op.table.builtin_options_as_depthwise_conv_2_doptions()?;
            let kernel = weights?.dim(1);
            let extent = dilated(kernel, options.dilation_h_factor());
            Some((extent, options.stride_h().into(), options.padding()))
        }
        _ => {
            let options = op.table.builtin_options_as_pool_2_doptions()?;
            let extent = options.filter_height().into();
            Some((extent, options.stride_h().into(), options.padding()))
        }
    }
}

/// The values of a constant of 32- or 64-bit integers.
pub(crate) fn integers(graph: &Graph<'_>, tensor: &Tensor<'_>) -> Option<Vec<i64>> {
    let bytes = graph.model.buffer_data(tensor.table.buffer())?;
    let values = match tensor.ty {
        TensorType::INT32 => bytes
            .as_chunks::<4>()
            .0
            .iter()
            .map(|c| i64::from(i32::from_le_bytes(*c)))
            .collect(),
        TensorType::INT64 => bytes
            .as_chunks::<8>()
            .0
            .iter()
            .map(|c| i64::from_le_bytes(*c))
            .collect(),
        _ => return None,
    };
    let values: Vec<i64> = values;
    (values.len() as u64 == tensor.elements()).then_some(values)
}
