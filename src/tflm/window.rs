//! Sliding windows as TFLM's kernels see them: sizes from the tensors, padding as they compute it themselves.

use arenaplan_schema::tflite::{BuiltinOperator as Op, Padding};

use crate::graph::{Graph, Operator, Tensor};

/// The window of a CONV_2D, DEPTHWISE_CONV_2D or TRANSPOSE_CONV over tensors of four dimensions.
///
/// Every size is at least 1 and below 2^31, every padding below 2^63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) batches: u64,
    pub(crate) in_h: u64,
    pub(crate) in_w: u64,
    pub(crate) in_channels: u64,
    pub(crate) out_h: u64,
    pub(crate) out_w: u64,
    pub(crate) out_channels: u64,
    pub(crate) kernel_h: u64,
    pub(crate) kernel_w: u64,
    /// Channels that one output channel reads: fewer than the input's where the convolution is grouped.
    pub(crate) filter_channels: u64,
    pub(crate) stride_h: u64,
    pub(crate) stride_w: u64,
    pub(crate) dilation_h: u64,
    pub(crate) dilation_w: u64,
    pub(crate) pad_top: u64,
    pub(crate) pad_left: u64,
}

impl Window {
    /// The window of `op`; `None` for another operator, for tensors without four known dimensions, and where an option
    /// that decides is missing or not positive.
    pub(crate) fn of(graph: &Graph<'_>, op: &Operator<'_>) -> Option<Self> {
        let input = |i: usize| op.inputs.get(i).copied().flatten().map(|t| graph.tensor(t));
        let output = graph.tensor(*op.outputs.first()?);
        let (image, steps, padding) = match op.code {
            Op::CONV_2D => {
                let o = op.table.builtin_options_as_conv_2_doptions()?;
                let dilation = [o.dilation_h_factor(), o.dilation_w_factor()];
                (
                    input(0)?,
                    ([o.stride_h(), o.stride_w()], dilation),
                    o.padding(),
                )
            }
            Op::DEPTHWISE_CONV_2D => {
                let o = op.table.builtin_options_as_depthwise_conv_2_doptions()?;
                let dilation = [o.dilation_h_factor(), o.dilation_w_factor()];
                (
                    input(0)?,
                    ([o.stride_h(), o.stride_w()], dilation),
                    o.padding(),
                )
            }
            Op::TRANSPOSE_CONV => {
                let o = op.table.builtin_options_as_transpose_conv_options()?;
                (
                    input(2)?,
                    ([o.stride_h(), o.stride_w()], [1, 1]),
                    o.padding(),
                )
            }
            _ => return None,
        };
        let [batches, in_h, in_w, in_channels] = four(image)?;
        let [_, out_h, out_w, out_channels] = four(output)?;
        // A depthwise filter is [1, height, width, output channels], the others' end in the channels they read.
        let filter = four(input(1)?)?;
        let [_, kernel_h, kernel_w, last] = filter;
        let filter_channels = match op.code {
            Op::DEPTHWISE_CONV_2D => filter[0],
            _ => last,
        };
        let positive = |n: i32| u64::try_from(n).ok().filter(|&n| n > 0);
        let [stride_h, stride_w] = steps.0.map(positive);
        let [dilation_h, dilation_w] = steps.1.map(positive);
        let (stride_h, stride_w) = (stride_h?, stride_w?);
        let (dilation_h, dilation_w) = (dilation_h?, dilation_w?);
        // A transposed convolution is padded like the convolution that would undo it.
        let (padded_h, padded_w) = match op.code {
            Op::TRANSPOSE_CONV => (out_h, out_w),
            _ => (in_h, in_w),
        };
        Some(Self {
            batches,
            in_h,
            in_w,
            in_channels,
            out_h,
            out_w,
            out_channels,
            kernel_h,
            kernel_w,
            filter_channels,
            stride_h,
            stride_w,
            dilation_h,
            dilation_w,
            pad_top: pad_before(padding, padded_h, kernel_h, stride_h, dilation_h),
            pad_left: pad_before(padding, padded_w, kernel_w, stride_w, dilation_w),
        })
    }

    /// Bytes of an 8-bit window: all that one output of an ungrouped convolution reads. Saturates.
    pub(crate) fn volume(&self) -> u64 {
        product(&[self.kernel_h, self.kernel_w, self.in_channels])
    }

    /// Whether every dilation is 1.
    pub(crate) fn is_dense(&self) -> bool {
        self.dilation_h == 1 && self.dilation_w == 1
    }

    /// Whether some row or column is added before the first one of the input.
    pub(crate) fn is_padded(&self) -> bool {
        self.pad_top != 0 || self.pad_left != 0
    }

    /// Whether every step goes to the next pixel.
    pub(crate) fn is_unit_stride(&self) -> bool {
        self.stride_h == 1 && self.stride_w == 1
    }
}

/// `ComputePaddingHeightWidth` of `tensorflow/lite/kernels/padding.h`: rows or columns before the first.
fn pad_before(padding: Padding, size: u64, kernel: u64, stride: u64, dilation: u64) -> u64 {
    let reach = (kernel - 1) * dilation + 1;
    let steps = match padding {
        Padding::SAME => size.div_ceil(stride),
        Padding::VALID => match (size + stride).checked_sub(reach) {
            Some(rest) => rest / stride,
            None => return 0,
        },
        _ => return 0,
    };
    match steps.checked_sub(1) {
        Some(steps) => (steps * stride + reach).saturating_sub(size) / 2,
        None => 0,
    }
}

/// Product that stops at the largest number.
pub(crate) fn product(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |n, &f| n.saturating_mul(f))
}

/// The four dimensions of a tensor that has four, none of them 0 or open.
pub(crate) fn four(tensor: &Tensor<'_>) -> Option<[u64; 4]> {
    let dims: [i32; 4] = tensor.shape.as_slice().try_into().ok()?;
    let known = dims.iter().all(|&d| d > 0);
    known.then(|| dims.map(|d| u64::from(d.unsigned_abs())))
}
