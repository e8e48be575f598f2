//! `CONV_2D`.

use crate::contract::Contract;
use crate::error::{Fault, Operand};
use crate::kernel::{Code, Kernel};
use crate::memory::dot::{self, Extent, Factor, Field, Steps};
use crate::memory::{View, ViewMut};
use crate::node::Node;
use crate::types::Type;

use super::geometry::{Geometry, Spot};
use super::scale::scratch;
use super::{
    Arithmetic, Float, Int8, Int16, Setup, Uneven, accumulator, channels, elements, elements_mut,
};

const SAME: Contract = Contract::Convolution { pixels: 1 };

/// `CONV_2D`: input `[n, h, w, c]`, filter `[c', kh, kw, c / groups]`, bias `[c']` or none.
///
/// int8 with weights of int8 or int4 and a bias of int32, int16 with weights of int8 and a bias of int64 or int32, float32;
/// filters are quantized as a whole or for each output channel. The rules are those of TFLM's `kernels/conv.cc`.
pub const CONV_2D: Kernel = Kernel::builtin(Code::CONV_2D, all)
    .with_contract(SAME)
    .with_scratch(scratch)
    .with_prepared_factors();

/// [`CONV_2D`] of int8 with weights of int8 alone.
pub const CONV_2D_INT8: Kernel = Kernel::builtin(Code::CONV_2D, int8)
    .with_contract(SAME)
    .with_scratch(scratch)
    .with_prepared_factors();

fn all(node: &Node<'_>) -> Result<(), Fault> {
    match (node.input(0)?.element_type(), node.input(1)?.element_type()) {
        (Type::INT8, Type::INT4) => int4(node),
        (Type::INT16, _) => int16(node),
        (Type::FLOAT32, _) => float(node),
        _ => int8(node),
    }
}

fn int8(node: &Node<'_>) -> Result<(), Fault> {
    let (mut setup, mut g) = (Setup::default(), Geometry::default());
    setup.convolution(node, &mut g, [Type::INT8, Type::INT8, Type::INT32], false)?;
    pixels_int8(&setup, &g)
}

// Apart from what was needed to get here, since stacks are small.
#[inline(never)]
fn pixels_int8(setup: &Setup<'_>, g: &Geometry) -> Result<(), Fault> {
    convolve(setup, g, &Int8::of(setup))
}

fn int16(node: &Node<'_>) -> Result<(), Fault> {
    let (mut setup, mut g) = (Setup::default(), Geometry::default());
    let accumulator = accumulator(node, 6)?;
    setup.convolution(node, &mut g, [Type::INT16, Type::INT8, accumulator], false)?;
    convolve(&setup, &g, &Int16::of(&setup, accumulator))
}

fn float(node: &Node<'_>) -> Result<(), Fault> {
    let (mut setup, mut g) = (Setup::default(), Geometry::default());
    setup.convolution(node, &mut g, [Type::FLOAT32; 3], false)?;
    convolve(&setup, &g, &Float::of(&setup, g.activation)?)
}

fn int4(node: &Node<'_>) -> Result<(), Fault> {
    let (mut setup, mut g) = (Setup::default(), Geometry::default());
    setup.convolution(node, &mut g, [Type::INT8, Type::INT4, Type::INT32], false)?;
    let arithmetic = Int8::of(&setup);
    let weights = Uneven {
        weights: setup.filter,
        packed: true,
        zero_point: 0,
    };
    let (input, output) = (elements(setup.input), elements_mut::<i8>(setup.output));
    let input_row = g.width.input.wrapping_mul(g.height.dilation.get());
    let filter_row = g.width.filter;
    let per_filter = g.height.filter.wrapping_mul(filter_row);
    let filters = g.channels.checked_div(g.groups).unwrap_or(0);
    g.each(|spot| {
        for channel in 0..g.channels {
            let mut sum = arithmetic.start(channel);
            let group = channel.checked_div(filters).unwrap_or(0) * g.filter_depth;
            for row in 0..spot.rows {
                for col in 0..spot.cols {
                    let at = spot.start + row * input_row + col * g.width.dilation.get();
                    let weight = (spot.row + row) * filter_row + spot.col + col;
                    let weight = (channel * per_filter + weight) * g.filter_depth;
                    let part = input.part(at * g.depth + group, g.filter_depth);
                    let part = part.unwrap_or_default();
                    sum = sum.wrapping_add(weights.dot(part, weight, setup.offset));
                }
            }
            let value = arithmetic.finish(channel, sum);
            output.set(spot.pixel * g.channels + channel, value);
        }
        Ok(())
    })
}

/// Bytes of a window that is copied to the stack.
const COPIED: usize = 40;

/// What is the same for all pixels.
struct Pixels<'a, A: Arithmetic> {
    g: &'a Geometry,
    arithmetic: &'a A,
    input: View<'a, A::Data>,
    output: ViewMut<'a, A::Data>,
    /// Where windows are copied to.
    copied: Option<ViewMut<'a, A::Data>>,
    field: Field<'a, A::Data>,
}

/// Pixel by pixel, with four channels at a time: all of a pixel's window is read for each of them.
///
/// Windows with few elements in a row are copied together first.
#[inline(always)]
fn convolve<A: Arithmetic>(setup: &Setup<'_>, g: &Geometry, arithmetic: &A) -> Result<(), Fault> {
    let mut buffer = [0u64; COPIED / 8];
    let wrong = Fault::Shape(Operand::Input(0));
    let mut pixels = Pixels {
        g,
        arithmetic,
        input: elements(setup.input),
        output: elements_mut(setup.output),
        copied: None,
        field: Field::default(),
    };
    pixels.set(setup, &mut buffer).ok_or(wrong)?;
    g.each(|spot| pixels.pixel(&spot).ok_or(wrong))
}

impl<'a, A: Arithmetic> Pixels<'a, A> {
    #[inline(never)]
    fn set(&mut self, setup: &'a Setup<'_>, buffer: &'a mut [u64; COPIED / 8]) -> Option<()> {
        let g = self.g;
        let weights: View<'_, <A::Data as Factor>::Weight> = elements(setup.filter);
        let run = g.filter_depth;
        // The filter's bytes were found in the file, so that these are no more.
        let weight_row = g.width.filter.wrapping_mul(run);
        let per_filter = g.height.filter.wrapping_mul(weight_row);
        let input_row = g.width.input.wrapping_mul(g.depth);
        let steps = Steps {
            input_row: input_row.wrapping_mul(g.height.dilation.get()),
            input_col: g.depth.wrapping_mul(g.width.dilation.get()),
            weight_row,
            weight_col: run,
        };
        let most = Extent {
            rows: g.height.filter,
            cols: g.width.filter,
            len: per_filter,
        };
        let buffer: ViewMut<'_, A::Data> = ViewMut::of(buffer).cast().unwrap_or_default();
        let bytes = size_of::<A::Data>() == 1;
        let narrow = g.groups == 1 && g.height.filter > 1 && weight_row < 16;
        self.copied = buffer.part(0, per_filter).filter(|_| bytes && narrow);
        let source = self.copied.map_or(self.input, ViewMut::view);
        let sizes = (g.channels, per_filter);
        self.field.set((source, weights), sizes, most, steps)
    }

    #[inline(always)]
    fn pixel(&self, spot: &Spot) -> Option<()> {
        let (g, steps) = (self.g, self.field.steps());
        let run = g.filter_depth;
        let mut start = spot.start.wrapping_mul(g.depth);
        let first = spot.row.wrapping_mul(steps.weight_row);
        let mut first = first.wrapping_add(spot.col.wrapping_mul(run));
        let mut extent = Extent {
            rows: spot.rows,
            cols: spot.cols,
            len: run,
        };
        // Runs without gaps are one.
        if g.groups == 1 && g.width.dilation.get() == 1 {
            extent.len = spot.cols.wrapping_mul(run);
            extent.cols = 1;
            if extent.len == steps.input_row && extent.len == steps.weight_row {
                extent.len = extent.len.wrapping_mul(spot.rows);
                extent.rows = 1;
            }
        }
        if let Some(to) = self.copied {
            let padding = self.arithmetic.padding();
            dot::copy((self.input, start), (extent, steps), (to, first), padding)?;
            extent.len = to.len();
            (extent.rows, extent.cols) = (1, 1);
            (start, first) = (0, 0);
        }
        let pixel = (self.output).part(spot.pixel.wrapping_mul(g.channels), g.channels)?;
        // As many for each group.
        let (mut from, mut to) = (0, g.channels);
        if g.groups != 1 {
            to = g.channels.checked_div(g.groups)?;
        }
        let filters = to;
        while to <= g.channels {
            let window = self.field.window(start, first, extent)?;
            channels(self.arithmetic, &window, (from, to), pixel);
            (from, to) = (to, to.wrapping_add(filters));
            start = start.wrapping_add(run);
        }
        Some(())
    }
}
