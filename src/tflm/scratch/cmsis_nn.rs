//! Scratch memory that TFLM's CMSIS-NN kernels request, where it is not what the reference kernels request.
//!
//! Built by GCC or LLVM, with `KERNELS_OPTIMIZED_FOR_SPEED` as by TFLM's own makefile: sums of constant weights are
//! then kept ([`kept_sums`]) and not requested. Rows name the function of CMSIS-NN that gives the size. armclang asks for
//! 4 bytes more for each input channel of a pointwise convolution on cores with DSP.

use arenaplan_schema::tflite::{BuiltinOperator as Op, TensorType as Type};

use super::dim;
use crate::graph::{Graph, Operator, Storage, Tensor};
use crate::target::Core;
use crate::tflm::cmsis_nn::{
    Conv, DEPTHWISE_BLOCK_MVE, Depthwise, conv, depthwise, fully_connected_as_conv,
    is_reversed_conv,
};
use crate::tflm::tail::quantized_channels;
use crate::tflm::window::{Window, product};

/// The requests of `op`, or `None` where they are the reference kernel's.
pub(super) fn requests(core: Core, graph: &Graph<'_>, op: &Operator<'_>) -> Option<Vec<u64>> {
    let input = |i: usize| op.inputs.get(i).copied().flatten().map(|t| graph.tensor(t));
    let output = |i: usize| op.outputs.get(i).map(|&t| graph.tensor(t));
    match (op.code, kernel_input(graph, op)?.ty) {
        (Op::CONV_2D, Type::INT8) => Some(some(conv_s8(core, &Window::of(graph, op)?))),
        (Op::CONV_2D, Type::INT16) => Some(some(conv_s16(core, &Window::of(graph, op)?))),
        (Op::DEPTHWISE_CONV_2D, Type::INT8) => {
            let packed = input(1)?.ty == Type::INT4;
            Some(some(depthwise_s8(core, &Window::of(graph, op)?, packed)))
        }
        // A multiplier and a shift for each channel, where the weights have one for all.
        (Op::FULLY_CONNECTED, Type::INT8) => Some(match fully_connected_as_conv(graph, op) {
            Some(product) if !is_per_channel(input(1)?) => {
                some(product.out_channels.saturating_mul(8))
            }
            Some(_) => vec![],
            // arm_fully_connected_s8_get_buffer_size
            None => {
                let sums = core == Core::Mve && input(1)?.ty == Type::INT8;
                match sums && kept_sums(core, graph, op).is_empty() {
                    true => some(sum_bytes(output(0)?)?),
                    false => vec![],
                }
            }
        }),
        // arm_avgpool_s8_get_buffer_size, arm_avgpool_s16_get_buffer_size
        (Op::AVERAGE_POOL_2D, Type::INT8 | Type::INT16) if core == Core::Dsp => {
            Some(some(dim(output(0)?, 3)?.saturating_mul(4)))
        }
        // arm_transpose_conv_s8_get_buffer_size, arm_transpose_conv_s8_get_reverse_conv_buffer_size: two in any case.
        (Op::TRANSPOSE_CONV, Type::INT8) => {
            let w = Window::of(graph, op)?;
            Some(match is_reversed_conv(&w) {
                true => vec![
                    im2col_s8(core, &w),
                    w.volume().saturating_mul(w.out_channels),
                ],
                // The width with the vertical stride: so it is in CMSIS-NN.
                false => {
                    let width = (w.in_w - 1) * w.stride_w + w.kernel_w.max(w.stride_h);
                    let rows = w.kernel_h.max(w.stride_h);
                    vec![product(&[4, width, w.out_channels, rows]), 0]
                }
            })
        }
        // unidirectional_sequence_lstm.cc: three of the four gates' buffers of the reference kernel.
        (Op::UNIDIRECTIONAL_SEQUENCE_LSTM, Type::INT8 | Type::INT16) => {
            let mut list = super::reference(graph, op)?;
            list.truncate(3);
            Some(list)
        }
        // arm_fully_connected_s8_get_buffer_size
        (Op::BATCH_MATMUL, Type::INT8) if core == Core::Mve => Some(some(sum_bytes(output(0)?)?)),
        _ => None,
    }
}

/// Buffers with sums of constant weights, which a kernel computes once and keeps in the tail: FULLY_CONNECTED and SVDF on
/// cores with vectors, UNIDIRECTIONAL_SEQUENCE_LSTM on all (a sum for each unit, of eight matrices).
pub(crate) fn kept_sums(core: Core, graph: &Graph<'_>, op: &Operator<'_>) -> Vec<u64> {
    kept(core, graph, op).unwrap_or_default()
}

fn kept(core: Core, graph: &Graph<'_>, op: &Operator<'_>) -> Option<Vec<u64>> {
    let input = |i: usize| op.inputs.get(i).copied().flatten().map(|t| graph.tensor(t));
    let image = input(0)?.ty;
    match op.code {
        Op::FULLY_CONNECTED if core == Core::Mve && image == Type::INT8 => {
            let constant = |t: &Tensor<'_>| t.storage == Storage::Constant;
            let kept = input(1)?.ty == Type::INT8
                && constant(input(1)?)
                && input(2).is_none_or(constant)
                && fully_connected_as_conv(graph, op).is_none();
            kept.then(|| sum_bytes(graph.tensor(*op.outputs.first()?)))?
                .map(|bytes| vec![bytes])
        }
        Op::SVDF if core == Core::Mve && image == Type::INT8 => {
            Some(vec![dim(input(1)?, 0)?.saturating_mul(4)])
        }
        Op::UNIDIRECTIONAL_SEQUENCE_LSTM => {
            let sum = match image {
                Type::INT8 => 4,
                Type::INT16 => 8,
                _ => return None,
            };
            Some(vec![dim(input(18)?, 1)?.saturating_mul(sum); 8])
        }
        _ => None,
    }
}

/// The input that decides which kernel runs.
fn kernel_input<'g, 'a>(graph: &'g Graph<'a>, op: &Operator<'_>) -> Option<&'g Tensor<'a>> {
    let position = match op.code {
        Op::TRANSPOSE_CONV => 2,
        _ => 0,
    };
    let input = op.inputs.get(position).copied().flatten()?;
    Some(graph.tensor(input))
}

/// A kernel that needs no scratch does not ask.
fn some(bytes: u64) -> Vec<u64> {
    match bytes {
        0 => vec![],
        _ => vec![bytes],
    }
}

/// arm_convolve_wrapper_s8_get_buffer_size, also asked where the weights have 4 bits.
fn conv_s8(core: Core, w: &Window) -> u64 {
    match conv(core, w) {
        Conv::Pointwise | Conv::StridedPointwise => 0,
        Conv::Im2col => im2col_s8(core, w),
        // arm_convolve_1_x_n_s8_get_buffer_size_mve: the input's first columns behind the padding, or the last before it.
        Conv::Row(split) => {
            let after = match split.total_pad % 2 {
                0 => w.pad_left,
                _ => split.right,
            };
            let columns = (w.kernel_w + w.pad_left).max(w.kernel_w - 1 + after);
            columns.saturating_mul(w.in_channels)
        }
    }
}

/// arm_convolve_s8_get_buffer_size: two windows of 16 bits, or four of 8, each rounded up.
fn im2col_s8(core: Core, w: &Window) -> u64 {
    match core {
        Core::Plain | Core::Dsp => w.volume().div_ceil(4).saturating_mul(16),
        Core::Mve => w.volume().div_ceil(16).saturating_mul(64),
    }
}

/// arm_convolve_s16_get_buffer_size: two windows, or four rounded up.
fn conv_s16(core: Core, w: &Window) -> u64 {
    match core {
        Core::Plain | Core::Dsp => w.volume().saturating_mul(4),
        Core::Mve => w.volume().div_ceil(8).saturating_mul(64),
    }
}

/// arm_depthwise_conv_wrapper_s8_get_buffer_size, arm_depthwise_conv_wrapper_s4_get_buffer_size
fn depthwise_s8(core: Core, w: &Window, packed: bool) -> u64 {
    let area = w.kernel_h.saturating_mul(w.kernel_w);
    match (depthwise(core, w, packed), core) {
        // The filter, transposed, behind what the convolution asks for.
        (Depthwise::Conv(_), _) => {
            conv_s8(core, w).saturating_add(area.saturating_mul(w.out_channels))
        }
        (Depthwise::Optimised, Core::Mve) => area.saturating_mul(4 * DEPTHWISE_BLOCK_MVE),
        (Depthwise::Optimised, Core::Plain) if !packed => 0,
        (Depthwise::Optimised, _) => product(&[2, w.in_channels, area]),
        (Depthwise::ThreeByThree | Depthwise::Generic, _) => 0,
    }
}

/// A sum for each unit of the output.
fn sum_bytes(output: &Tensor<'_>) -> Option<u64> {
    dim(output, output.shape.len().checked_sub(1)?).map(|units| units.saturating_mul(4))
}

/// fully_connected_common.cc: more than one scale.
fn is_per_channel(filter: &Tensor<'_>) -> bool {
    quantized_channels(filter).is_some_and(|channels| channels > 1)
}
