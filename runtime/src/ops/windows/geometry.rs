//! Where windows are: shapes, strides, dilation and padding of convolutions.

use core::num::NonZeroUsize;

use crate::error::{Fault, Operand};
use crate::node::{Node, Tensor};

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
    #[inline(never)]
    fn set(
        &mut self,
        (stride, stride_slot): (i32, u8),
        (dilation, dilation_slot): (i32, u8),
        padding: i8,
    ) -> Result<(), Fault> {
        let Self { input, filter, .. } = *self;
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
        (self.stride, self.dilation, self.padding) = (stride.get(), dilation, padding);
        Ok(())
    }

    /// The first and one past the last element of the filter that lie on the input for output `at`, and where the first
    /// one does.
    #[inline(never)]
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

impl Default for Direction {
    fn default() -> Self {
        Self {
            input: 0,
            filter: 0,
            output: 0,
            stride: 0,
            dilation: NonZeroUsize::MIN,
            padding: 0,
        }
    }
}

/// A convolution's shapes and options. Filled in place, since stacks are small.
#[derive(Debug, Default)]
pub(super) struct Geometry {
    pub(super) batches: usize,
    pub(super) height: Direction,
    pub(super) width: Direction,
    /// Input channels.
    pub(super) depth: usize,
    /// Input channels of a filter.
    pub(super) filter_depth: usize,
    /// Groups of input channels, which have filters of their own.
    pub(super) groups: usize,
    /// Output channels.
    pub(super) channels: usize,
    /// The fused activation, and its slot.
    pub(super) activation: (i8, u8),
}

impl Geometry {
    /// Reads the shapes, of DEPTHWISE_CONV_2D or of CONV_2D.
    #[inline(never)]
    pub(super) fn shapes(&mut self, node: &Node<'_>, depthwise: bool) -> Result<(), Fault> {
        let [batches, in_h, in_w, depth] = dims(&node.input(0))?;
        (self.batches, self.depth) = (batches, depth);
        (self.height.input, self.width.input) = (in_h, in_w);
        let [outer, filter_h, filter_w, inner] = dims(&node.input(1))?;
        (self.height.filter, self.width.filter) = (filter_h, filter_w);
        (self.channels, self.filter_depth) = match depthwise {
            false => (outer, inner),
            true if outer == 1 => (inner, 1),
            true => return Err(Fault::Shape(Operand::Input(1))),
        };
        let [out_batches, out_h, out_w, channels] = dims(&node.output(0))?;
        (self.height.output, self.width.output) = (out_h, out_w);
        if self.batches != out_batches || channels != self.channels || channels == 0 {
            return Err(Fault::Shape(Operand::Output(0)));
        }
        // Without pixels, there is nothing to walk through, however many rows of nothing there are.
        if out_h == 0 || out_w == 0 {
            self.batches = 0;
        } else if in_h == 0 || in_w == 0 {
            return Err(Fault::Shape(Operand::Input(0)));
        }
        // Groups of as many channels, each with as many filters.
        self.groups = self.depth.checked_div(self.filter_depth).unwrap_or(0);
        let per_group = channels.checked_div(self.groups).unwrap_or(0);
        let whole =
            self.groups * self.filter_depth == self.depth && per_group * self.groups == channels;
        if per_group == 0 || !whole {
            return Err(Fault::Shape(Operand::Input(1)));
        }
        Ok(())
    }

    /// The number of output pixels, if it can be counted.
    pub(super) fn outputs(&self) -> Option<usize> {
        let lines = self.batches.checked_mul(self.height.output)?;
        lines.checked_mul(self.width.output)
    }

    /// Reads the options; the slots are those of `Conv2DOptions` and `DepthwiseConv2DOptions`.
    #[inline(never)]
    pub(super) fn options(&mut self, node: &Node<'_>, depthwise: bool) -> Result<(), Fault> {
        let options = node.options()?;
        let activation = 3 + u16::from(depthwise);
        self.activation = (options.i8(activation, 0)?, activation as u8);
        for (direction, stride, dilation) in [
            (&mut self.height, 2, activation + 2),
            (&mut self.width, 1, activation + 1),
        ] {
            let stride = (options.i32(stride, 0)?, stride as u8);
            let dilation = (options.i32(dilation, 1)?, dilation as u8);
            direction.set(stride, dilation, options.i8(0, 0)?)?;
        }
        Ok(())
    }
}

#[inline(never)]
fn dims(tensor: &Result<Tensor<'_>, Fault>) -> Result<[usize; 4], Fault> {
    let tensor = super::found(tensor)?;
    tensor.shape().dims().ok_or(tensor.wrong_shape())
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
