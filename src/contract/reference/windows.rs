//! Operators that slide a window over an image: convolutions and pooling.
//!
//! Loops: batch, output row, output column, output channel. For each output element its window is read, of all input
//! channels or of a group of them, and then the element is written. So an output pixel may lie over what no later
//! window reads: about one row of windows behind.

use arenaplan_schema::tflite::Padding;

use super::order::{Loop, Nest};
use super::pair::{MOST, Pair};
use crate::contract::Overlap;

/// How a window moves along one axis.
struct Axis {
    /// Elements of the input and of the output.
    input: i64,
    output: i64,
    /// Elements of the window, and how far apart they are.
    window: i64,
    dilation: i64,
    stride: i64,
}

impl Axis {
    /// First and last element that each window reads, each times `bytes`; `None` for a window in the padding.
    fn reads(&self, padding: Padding, bytes: i64) -> Option<Vec<Option<(i64, i64)>>> {
        let &Axis {
            input,
            output,
            window,
            dilation,
            stride,
        } = self;
        if window < 1 || dilation < 1 || stride < 1 || output > MOST {
            return None;
        }
        // padding.h: ComputeOutSize, ComputePaddingWithOffset.
        let span = (window - 1).checked_mul(dilation)?.checked_add(1)?;
        let expected = match padding {
            Padding::SAME => (input + stride - 1) / stride,
            Padding::VALID => (input + stride - span) / stride,
            _ => return None,
        };
        if expected != output {
            return None;
        }
        let before = ((output - 1) * stride + span - input).max(0) / 2;
        let reads = (0..output).map(|x| {
            let origin = x * stride - before;
            let first = ((-origin).max(0) + dilation - 1) / dilation;
            let last = (window - 1).min((input - 1 - origin).div_euclid(dilation));
            let at = |tap: i64| (origin + tap * dilation) * bytes;
            (first <= last).then(|| (at(first), at(last)))
        });
        Some(reads.collect())
    }
}

/// What moves over the image.
struct Window {
    height: i64,
    width: i64,
    stride_h: i64,
    stride_w: i64,
    dilation_h: i64,
    dilation_w: i64,
    padding: Padding,
    /// How many output channels in a row read the same input channels, and how many those are.
    outputs_per_group: i64,
    inputs_per_group: i64,
}

impl Window {
    fn overlap(&self, pair: &Pair<'_, '_>) -> Option<Overlap> {
        let (&[n, h, w, ci], &[to_n, oh, ow, co]) = (&pair.from_dims[..], &pair.to_dims[..]) else {
            return None;
        };
        let (inputs, outputs) = (self.inputs_per_group, self.outputs_per_group);
        let whole_groups = inputs > 0
            && outputs > 0
            && ci % inputs == 0
            && (ci / inputs).checked_mul(outputs) == Some(co);
        if !pair.same_type() || n != to_n || !whole_groups {
            return None;
        }
        let size = pair.from_size;
        let (pixel_in, pixel_out) = (ci * size, co * size);
        let rows = Axis {
            input: h,
            output: oh,
            window: self.height,
            dilation: self.dilation_h,
            stride: self.stride_h,
        };
        let columns = Axis {
            input: w,
            output: ow,
            window: self.width,
            dilation: self.dilation_w,
            stride: self.stride_w,
        };
        let loops = vec![
            Loop::new(n, oh * ow * pixel_out, h * w * pixel_in),
            Loop::table(ow * pixel_out, rows.reads(self.padding, w * pixel_in)?),
            Loop::table(pixel_out, columns.reads(self.padding, pixel_in)?),
            Loop::new(ci / inputs, outputs * size, inputs * size),
            Loop::new(outputs, size, 0),
        ];
        Some(pair.nest(&Nest {
            loops,
            write_at: 0,
            read_at: 0,
            read_bytes: inputs * size,
            write_bytes: size,
            block: false,
        }))
    }
}

/// conv.h, integer_ops/conv.h: each output channel reads the whole window of its group. Weights of 4 bits are unpacked
/// into scratch first. Filter and bias are read again for each pixel, so that only the image may overlap.
pub(super) fn convolution(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let options = pair.op.table.builtin_options_as_conv_2_doptions()?;
    let &[filters, height, width, inputs_per_group] = &pair.dims(1)?[..] else {
        return None;
    };
    let (&ci, &co) = (pair.from_dims.last()?, pair.to_dims.last()?);
    if pair.input != 0 || filters != co {
        return None;
    }
    Window {
        height,
        width,
        stride_h: options.stride_h().into(),
        stride_w: options.stride_w().into(),
        dilation_h: options.dilation_h_factor().into(),
        dilation_w: options.dilation_w_factor().into(),
        padding: options.padding(),
        outputs_per_group: co.checked_div(ci / inputs_per_group)?,
        inputs_per_group,
    }
    .overlap(pair)
}

/// depthwiseconv_float.h, integer_ops/depthwise_conv.h: each output channel reads the window of its one input channel.
pub(super) fn depthwise(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let options = pair
        .op
        .table
        .builtin_options_as_depthwise_conv_2_doptions()?;
    let &[1, height, width, filters] = &pair.dims(1)?[..] else {
        return None;
    };
    if pair.input != 0 || filters != *pair.to_dims.last()? {
        return None;
    }
    Window {
        height,
        width,
        stride_h: options.stride_h().into(),
        stride_w: options.stride_w().into(),
        dilation_h: options.dilation_h_factor().into(),
        dilation_w: options.dilation_w_factor().into(),
        padding: options.padding(),
        outputs_per_group: options.depth_multiplier().into(),
        inputs_per_group: 1,
    }
    .overlap(pair)
}

/// pooling.h, integer_ops/pooling.h: each channel reads its own window, and keeps the sum or the maximum in a register.
pub(super) fn pooling(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let options = pair.op.table.builtin_options_as_pool_2_doptions()?;
    Window {
        height: options.filter_height().into(),
        width: options.filter_width().into(),
        stride_h: options.stride_h().into(),
        stride_w: options.stride_w().into(),
        dilation_h: 1,
        dilation_w: 1,
        padding: options.padding(),
        outputs_per_group: 1,
        inputs_per_group: 1,
    }
    .overlap(pair)
}
