//! What TFLM's reference kernels promise: a row for each operator, from the loops of its kernel.
//!
//! Rows name the file of TFLM's `tensorflow/lite/kernels/internal/reference` or `tensorflow/lite/micro/kernels` whose
//! loops they follow. An operator without a row promises nothing; the reasons are in [`row`]. `tests/oracle/contracts.py`
//! tries the distances in TensorFlow Lite Micro itself.
//!
//! The order of the loops in the source is the order in the machine only where a compiler must take the two tensors for
//! possible aliases: see `Pair::ordered_types`. No kernel here has `restrict` parameters.

use arenaplan_schema::tflite::BuiltinOperator as Op;

use super::Overlap;
use crate::graph::{Graph, Operator};
use pair::Pair;

mod copies;
mod elementwise;
mod order;
mod pair;
mod rows;
mod sampling;
mod windows;

/// What the kernel of `op` promises of an input and an output; `None` where that is nothing.
pub(super) fn overlap(
    graph: &Graph<'_>,
    op: &Operator<'_>,
    input: usize,
    output: usize,
) -> Option<Overlap> {
    row(&Pair::new(graph, op, input, output)?)
}

fn row(pair: &Pair<'_, '_>) -> Option<Overlap> {
    // All others have one output.
    let parts = matches!(pair.op.code, Op::SPLIT | Op::SPLIT_V | Op::UNPACK);
    if pair.op.outputs.len() != 1 && !parts {
        return None;
    }
    match pair.op.code {
        Op::CONV_2D => windows::convolution(pair),
        Op::DEPTHWISE_CONV_2D => windows::depthwise(pair),
        Op::AVERAGE_POOL_2D | Op::MAX_POOL_2D | Op::L2_POOL_2D => windows::pooling(pair),

        Op::FULLY_CONNECTED => rows::fully_connected(pair),
        Op::BATCH_MATMUL => rows::batch_matmul(pair),
        Op::ARG_MAX | Op::ARG_MIN => rows::arg(pair),
        Op::MEAN => rows::mean(pair),
        Op::CUMSUM => rows::cumsum(pair),
        Op::SVDF => rows::svdf(pair),
        Op::TRANSPOSE_CONV => rows::transpose_convolution(pair),
        Op::UNIDIRECTIONAL_SEQUENCE_LSTM => rows::lstm(pair),

        Op::ABS
        | Op::CEIL
        | Op::COS
        | Op::ELU
        | Op::EXP
        | Op::FLOOR
        | Op::HARD_SWISH
        | Op::LEAKY_RELU
        | Op::LOG
        | Op::LOGICAL_NOT
        | Op::LOGISTIC
        | Op::NEG
        | Op::RELU
        | Op::RELU6
        | Op::ROUND
        | Op::RSQRT
        | Op::SIN
        | Op::SQRT
        | Op::SQUARE
        | Op::TANH
        | Op::CAST
        | Op::DEQUANTIZE
        | Op::QUANTIZE
        | Op::SOFTMAX
        | Op::LOG_SOFTMAX
        | Op::L2_NORMALIZATION => elementwise::unary(pair),
        Op::ADD
        | Op::SUB
        | Op::MUL
        | Op::DIV
        | Op::FLOOR_DIV
        | Op::FLOOR_MOD
        | Op::MAXIMUM
        | Op::MINIMUM
        | Op::SQUARED_DIFFERENCE
        | Op::PRELU
        | Op::LOGICAL_AND
        | Op::LOGICAL_OR
        | Op::EQUAL
        | Op::NOT_EQUAL
        | Op::GREATER
        | Op::GREATER_EQUAL
        | Op::LESS
        | Op::LESS_EQUAL => elementwise::binary(pair),
        Op::ADD_N => elementwise::add_n(pair),
        Op::SELECT_V2 => elementwise::select(pair),
        Op::ZEROS_LIKE => elementwise::zeros_like(pair),

        Op::RESHAPE | Op::SQUEEZE => copies::whole(pair),
        Op::EXPAND_DIMS => elementwise::expand_dims(pair),
        Op::CONCATENATION => copies::concatenation(pair),
        Op::PACK => copies::pack(pair),
        Op::SPLIT | Op::SPLIT_V => copies::split(pair),
        Op::UNPACK => copies::unpack(pair),
        Op::SLICE => copies::slice(pair),
        Op::STRIDED_SLICE => copies::strided_slice(pair),
        Op::PAD | Op::PADV2 => copies::pad(pair),
        Op::TRANSPOSE => copies::transpose(pair),
        Op::DEPTH_TO_SPACE | Op::SPACE_TO_DEPTH => copies::between_depth_and_space(pair),

        Op::GATHER => sampling::gather(pair),
        Op::MIRROR_PAD => sampling::mirror_pad(pair),
        Op::BROADCAST_TO => sampling::broadcast_to(pair),
        Op::RESIZE_BILINEAR => sampling::resize_bilinear(pair),
        Op::RESIZE_NEAREST_NEIGHBOR => sampling::resize_nearest(pair),
        Op::SPACE_TO_BATCH_ND => sampling::between_space_and_batch(pair, true),
        Op::BATCH_TO_SPACE_ND => sampling::between_space_and_batch(pair, false),

        // SUM, REDUCE_ALL, REDUCE_MAX, REDUCE_MIN: fill the whole output first, and collect in it.
        // FILL, SHAPE, VAR_HANDLE: what they read is a word, or nothing.
        // REVERSE_V2, DYNAMIC_UPDATE_SLICE: copy to and fro in an order that depends on their other inputs.
        // GATHER_ND, EMBEDDING_LOOKUP: read wherever an input says.
        // BROADCAST_ARGS: shapes, a few words.
        // ASSIGN_VARIABLE, READ_VARIABLE, CALL_ONCE, IF, WHILE: copy to and from what is not the operator's.
        // Custom operators, and those that TFLM does not know.
        _ => None,
    }
}
