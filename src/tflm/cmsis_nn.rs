//! Which of CMSIS-NN's functions an operator gets: the choices of TFLM's kernels and of CMSIS-NN's wrappers.
//!
//! As of CMSIS-NN 4ab83cc (TFLM's pin of 2026) built by GCC or LLVM: `arm_convolve_wrapper_s8.c`,
//! `arm_depthwise_conv_wrapper_s8.c`, `arm_transpose_conv_wrapper_s8.c`, `arm_nnsupportfunctions.h`, and
//! `tensorflow/lite/micro/kernels/cmsis_nn/*.cc`. Both the scratch and the order of reads and writes follow from it.

use arenaplan_schema::tflite::{BuiltinOperator as Op, TensorType as Type};

use super::window::Window;
use crate::graph::{Graph, Operator};
use crate::target::Core;

/// Channels that a depthwise convolution handles at a time on cores with vectors: `CH_IN_BLOCK_MVE`.
pub(crate) const DEPTHWISE_BLOCK_MVE: u64 = 124;

/// The functions for 8-bit and 4-bit CONV_2D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conv {
    /// `arm_convolve_1x1_*_fast`: one matrix product.
    Pointwise,
    /// `arm_convolve_1x1_*`: a matrix product for each output row.
    StridedPointwise,
    /// `arm_convolve_1_x_n_*`, on cores with vectors: straight from the input, but for the outputs at the ends.
    Row(RowSplit),
    /// `arm_convolve_*`: a few windows are copied, then multiplied.
    Im2col,
}

/// The outputs of a row that reach over its left end, over none, and over its right end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowSplit {
    pub(crate) left: u64,
    pub(crate) middle: u64,
    pub(crate) right: u64,
    /// Columns that the outputs reach over the input's, both sides together; negative where some are not used.
    pub(crate) total_pad: i64,
}

impl RowSplit {
    /// As `arm_convolve_1_x_n_s8` splits; `None` where the parts do not add up and it takes the general way.
    fn of(w: &Window) -> Option<Self> {
        let [out, stride, kernel, size] = [w.out_w, w.stride_w, w.kernel_w, w.in_w].map(i128::from);
        let pad = i128::from(w.pad_left);
        let total = (out - 1) * stride + kernel - size;
        let after = pad + total % 2;
        let steps = |columns: i128| match columns {
            0 => 0,
            _ => ((columns + stride - 1) / stride).max(1),
        };
        let (left, right) = (steps(pad), steps(after));
        let middle = (out - left - right).max(0);
        let part = |n: i128| u64::try_from(n).ok();
        (left + middle + right == out).then_some(Self {
            left: part(left)?,
            middle: part(middle)?,
            right: part(right)?,
            total_pad: i64::try_from(total).ok()?,
        })
    }
}

/// The function for a CONV_2D with 8-bit input and weights of 8 or 4 bits.
pub(crate) fn conv(core: Core, w: &Window) -> Conv {
    let whole = w.filter_channels == w.in_channels;
    if w.kernel_h == 1 && w.kernel_w == 1 && !w.is_padded() && w.is_dense() && whole {
        return match w.is_unit_stride() {
            true => Conv::Pointwise,
            false => Conv::StridedPointwise,
        };
    }
    let is_row = w.in_h == 1
        && w.kernel_h == 1
        && w.dilation_w == 1
        && (w.stride_w * w.in_channels).is_multiple_of(4)
        && whole;
    match RowSplit::of(w) {
        Some(split) if is_row && core == Core::Mve => Conv::Row(split),
        _ => Conv::Im2col,
    }
}

/// The functions for 8-bit and 4-bit DEPTHWISE_CONV_2D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depthwise {
    /// As a CONV_2D: one input channel, on cores with vectors. armclang does so only for more than 8 output channels.
    Conv(Conv),
    /// `arm_depthwise_conv_3x3_s8`.
    ThreeByThree,
    /// `arm_depthwise_conv_s8_opt`, `arm_depthwise_conv_s4_opt`.
    Optimised,
    /// `arm_depthwise_conv_s8`, `arm_depthwise_conv_s4`.
    Generic,
}

/// The function for a DEPTHWISE_CONV_2D with 8-bit input and weights of 8 bits, or of 4 (`packed`).
pub(crate) fn depthwise(core: Core, w: &Window, packed: bool) -> Depthwise {
    if !packed && core == Core::Mve && w.in_channels == 1 && w.out_channels > 1 {
        return Depthwise::Conv(conv(core, w));
    }
    if w.in_channels != w.out_channels || w.batches != 1 || !w.is_dense() {
        return Depthwise::Generic;
    }
    let small = w.kernel_h == 3 && w.kernel_w == 3 && w.pad_top <= 1 && w.pad_left <= 1;
    match small && !packed && core != Core::Mve {
        true => Depthwise::ThreeByThree,
        false => Depthwise::Optimised,
    }
}

/// Whether an 8-bit TRANSPOSE_CONV is a CONV_2D over its input spread out, with the filter turned around.
pub(crate) fn is_reversed_conv(w: &Window) -> bool {
    w.stride_h <= 2 && w.stride_w <= 2 && w.in_channels > 16
}

/// An 8-bit FULLY_CONNECTED that TFLM hands to the pointwise convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PointwiseProduct {
    /// Rows of the input, each an output pixel.
    pub(crate) rows: u64,
    pub(crate) in_channels: u64,
    pub(crate) out_channels: u64,
}

/// The pointwise convolution that `op` is computed by, if it is a FULLY_CONNECTED of that kind: an output of more than
/// two dimensions, and a multiple of four values in each input row.
pub(crate) fn fully_connected_as_conv(
    graph: &Graph<'_>,
    op: &Operator<'_>,
) -> Option<PointwiseProduct> {
    if op.code != Op::FULLY_CONNECTED {
        return None;
    }
    let input = |i: usize| op.inputs.get(i).copied().flatten().map(|t| graph.tensor(t));
    let (image, filter) = (input(0)?, input(1)?);
    let output = graph.tensor(*op.outputs.first()?);
    let last = |shape: &[i32]| u64::try_from(*shape.last()?).ok();
    let (in_channels, out_channels) = (last(&filter.shape)?, last(&output.shape)?);
    let taken = image.ty == Type::INT8
        && filter.ty == Type::INT8
        && output.shape.len() > 2
        && in_channels.is_multiple_of(4);
    taken.then_some(PointwiseProduct {
        rows: output.elements().checked_div(out_channels)?,
        in_channels,
        out_channels,
    })
}
