//! Where windows are: shapes, strides, dilation and padding of convolutions.

use core::num::NonZeroUsize;

use crate::error::Fault;
use crate::node::{Node, Options};

use super::Operands;

/// One direction of a convolution, height or width.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direction {
    pub(super) input: usize,
    pub(super) filter: usize,
    pub(super) output: usize,
    pub(super) stride: usize,
    pub(super) dilation: NonZeroUsize,
    /// Before the input.
    pub(super) padding: usize,
}

impl Direction {
    /// The padding is that of TFLM's `kernels/padding.h`: with the schema's SAME half of what is missing, rounded down.
    fn new(
        (input, filter, output): (usize, usize, usize),
        (stride, stride_slot): (i32, u8),
        (dilation, dilation_slot): (i32, u8),
        padding: i8,
    ) -> Result<Self, Fault> {
        // As many as fit 15 bits, so that no product of them with a position overflows 32 bits.
        let number = |x: i32| usize::from(u16::try_from(x).unwrap_or(0).min(0x7fff));
        let dilation = NonZeroUsize::new(number(dilation));
        let dilation = dilation.ok_or(Fault::Unsupported(dilation_slot))?;
        let stride = NonZeroUsize::new(number(stride)).ok_or(Fault::Unsupported(stride_slot))?;
        let size = filter
            .saturating_sub(1)
            .saturating_mul(dilation.get())
            .saturating_add(1);
        let padding = match padding {
            0 => {
                let outputs = input.saturating_add(stride.get() - 1) / stride;
                let covered = outputs.saturating_sub(1).saturating_mul(stride.get());
                covered.saturating_add(size).saturating_sub(input) / 2
            }
            1 => 0,
            _ => return Err(Fault::Unsupported(0)),
        };
        Ok(Self {
            input,
            filter,
            output,
            stride: stride.get(),
            dilation,
            padding,
        })
    }

    /// The first and one past the last element of the filter that lie on the input for output `at`, and where the first
    /// one does.
    #[inline(always)]
    pub(super) fn range(&self, at: usize) -> (usize, usize, usize) {
        let from = at.wrapping_mul(self.stride);
        let before = self.padding.saturating_sub(from);
        let first = if self.dilation.get() == 1 {
            before
        } else {
            before.div_ceil(self.dilation.get())
        };
        let start = from
            .wrapping_add(first.wrapping_mul(self.dilation.get()))
            .wrapping_sub(self.padding);
        let room = self.input.saturating_sub(start);
        let fit = if self.dilation.get() == 1 {
            room
        } else {
            room.div_ceil(self.dilation.get())
        };
        let end = first.saturating_add(fit).min(self.filter);
        if first < end {
            (first, end, start)
        } else {
            (0, 0, 0)
        }
    }
}

/// A convolution's shapes and options.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    pub(super) batches: usize,
    pub(super) height: Direction,
    pub(super) width: Direction,
    /// Input channels.
    pub(super) depth: usize,
    /// Input channels of a filter.
    pub(super) filter_depth: usize,
    /// Output channels.
    pub(super) channels: usize,
    /// The fused activation, and its slot.
    pub(super) activation: (i8, u8),
}

impl Geometry {
    #[inline(never)]
    fn of(operands: &Operands<'_>, options: &Options<'_>, slots: [u16; 3]) -> Result<Self, Fault> {
        let [activation, dilation_w, dilation_h] = slots;
        let Operands {
            input,
            filter,
            output,
            ..
        } = operands;
        let [batches, in_h, in_w, depth] = input.shape().dims().ok_or(input.wrong_shape())?;
        let [outer, filter_h, filter_w, inner] =
            filter.shape().dims().ok_or(filter.wrong_shape())?;
        let [out_batches, out_h, out_w, channels] =
            output.shape().dims().ok_or(output.wrong_shape())?;
        let depthwise = activation == 4;
        let (filters, filter_depth) = if depthwise {
            (inner, 1)
        } else {
            (outer, inner)
        };
        if batches != out_batches || channels != filters || channels == 0 {
            return Err(output.wrong_shape());
        }
        // Groups of as many channels, each with as many filters.
        let groups = depth.checked_div(filter_depth).unwrap_or(0);
        let filters = channels.checked_div(groups).unwrap_or(0);
        if groups * filter_depth != depth
            || filters == 0
            || filters * groups != channels
            || (depthwise && outer != 1)
        {
            return Err(filter.wrong_shape());
        }
        let padding = options.i8(0, 0)?;
        let direction = |sizes, stride: u16, dilation: u16| {
            let stride = (options.i32(stride, 0)?, stride as u8);
            let dilation = (options.i32(dilation, 1)?, dilation as u8);
            Direction::new(sizes, stride, dilation, padding)
        };
        Ok(Self {
            batches,
            height: direction((in_h, filter_h, out_h), 2, dilation_h)?,
            width: direction((in_w, filter_w, out_w), 1, dilation_w)?,
            depth,
            filter_depth,
            channels,
            activation: (options.i8(activation, 0)?, activation as u8),
        })
    }

    /// Of CONV_2D; the slots are those of `Conv2DOptions`.
    pub(super) fn convolution(node: &Node<'_>, operands: &Operands<'_>) -> Result<Self, Fault> {
        Self::of(operands, &node.options()?, [3, 4, 5])
    }

    /// Of DEPTHWISE_CONV_2D; the slots are those of `DepthwiseConv2DOptions`.
    pub(super) fn depthwise(node: &Node<'_>, operands: &Operands<'_>) -> Result<Self, Fault> {
        Self::of(operands, &node.options()?, [4, 5, 6])
    }

    /// Output pixels.
    pub(super) fn pixels(&self) -> usize {
        let pixels = self.height.output.checked_mul(self.width.output);
        pixels
            .and_then(|p| p.checked_mul(self.batches))
            .unwrap_or(0)
    }
}

/// The part of a filter that lies on the input, for one output pixel; empty if `rows` or `cols` is 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    /// The number of the output pixel.
    pub(super) pixel: usize,
    /// The number of the input pixel under the first element.
    pub(super) start: usize,
    /// The first element's row and column in the filter.
    pub(super) row: usize,
    pub(super) col: usize,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

impl Geometry {
    /// Calls `visit` for each output pixel in order, until there is an error.
    #[inline(always)]
    pub(super) fn each(
        &self,
        mut visit: impl FnMut(Spot) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut pixel = 0;
        for batch in 0..self.batches {
            for y in 0..self.height.output {
                let (row, row_end, in_y) = self.height.range(y);
                let line = batch.wrapping_mul(self.height.input).wrapping_add(in_y);
                let line = line.wrapping_mul(self.width.input);
                for x in 0..self.width.output {
                    let (col, col_end, in_x) = self.width.range(x);
                    visit(Spot {
                        pixel,
                        start: line.wrapping_add(in_x),
                        row,
                        col,
                        rows: row_end - row,
                        cols: col_end - col,
                    })?;
                    pixel += 1;
                }
            }
        }
        Ok(())
    }
}
