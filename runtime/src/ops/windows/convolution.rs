//! `CONV_2D`.

use crate::contract::Contract;
use crate::error::Fault;
use crate::kernel::{Code, Kernel};
use crate::memory::dot::{Factor, Reach, Window};
use crate::memory::{View, ViewMut};
use crate::node::Node;
use crate::types::Type;

use super::geometry::{Geometry, Spot};
use super::scale::{FACTOR_BYTES, Scale};
use super::{Arithmetic, Bias, Float, Int8, Int16, Operands, Uneven, channels};

const SAME: Contract = Contract::Convolution { pixels: 1 };

/// `CONV_2D`: input `[n, h, w, c]`, filter `[c', kh, kw, c / groups]`, bias `[c']` or none.
///
/// int8 with weights of int8 or int4 and a bias of int32, int16 with weights of int8 and a bias of int64 or int32, float32;
/// filters are quantized as a whole or for each output channel. The rules are those of TFLM's `kernels/conv.cc`.
pub const CONV_2D: Kernel = Kernel::builtin(Code::CONV_2D, all)
    .with_contract(SAME)
    .with_scratch(scratch);

/// [`CONV_2D`] of int8 with weights of int8 alone.
pub const CONV_2D_INT8: Kernel = Kernel::builtin(Code::CONV_2D, int8)
    .with_contract(SAME)
    .with_scratch(scratch);

fn all(node: &Node<'_>) -> Result<(), Fault> {
    match (node.input(0)?.element_type(), node.input(1)?.element_type()) {
        (Type::INT8, Type::INT4) => int4(node),
        (Type::INT16, _) => int16(node),
        (Type::FLOAT32, _) => float(node),
        _ => int8(node),
    }
}

/// The factors of the channels, where each is used more than once.
fn scratch(node: &Node<'_>) -> Result<usize, Fault> {
    let operands = Operands::of(node)?;
    let output = operands.output.shape();
    match Scale::needs_table(&operands) && output.product(0, 3) != Some(1) {
        true => output
            .dim(3)
            .checked_mul(FACTOR_BYTES)
            .ok_or(Fault::Scratch),
        false => Ok(0),
    }
}

fn scale<'a>(node: &Node<'a>, operands: &Operands<'a>, g: &Geometry) -> Result<Scale<'a>, Fault> {
    let table = node.scratch().ok();
    Scale::of(operands, (g.channels, 0), table, g.activation)
}

fn int8(node: &Node<'_>) -> Result<(), Fault> {
    let operands = Operands::of(node)?;
    operands.expect(Type::INT8, Type::INT8)?;
    let g = Geometry::convolution(node, &operands)?;
    let arithmetic = Int8 {
        offset: -operands.zero_point()?,
        bias: operands.bias(Type::INT32, g.channels)?,
        scale: scale(node, &operands, &g)?,
    };
    convolve(&operands, &g, &arithmetic)
}

fn int16(node: &Node<'_>) -> Result<(), Fault> {
    let operands = Operands::of(node)?;
    operands.expect(Type::INT16, Type::INT8)?;
    let g = Geometry::convolution(node, &operands)?;
    let arithmetic = Int16 {
        offset: 0,
        bias: Bias::of(&operands, g.channels, node.options()?.i8(6, 0)?)?,
        scale: scale(node, &operands, &g)?,
    };
    convolve(&operands, &g, &arithmetic)
}

fn float(node: &Node<'_>) -> Result<(), Fault> {
    let operands = Operands::of(node)?;
    let g = Geometry::convolution(node, &operands)?;
    let arithmetic = Float::of(&operands, g.channels, g.activation)?;
    convolve(&operands, &g, &arithmetic)
}

fn int4(node: &Node<'_>) -> Result<(), Fault> {
    let operands = Operands::of(node)?;
    operands.expect(Type::INT8, Type::INT4)?;
    let g = Geometry::convolution(node, &operands)?;
    let offset = -operands.zero_point()?;
    let bias = operands.bias::<i32>(Type::INT32, g.channels)?;
    let scale = scale(node, &operands, &g)?;
    let weights = Uneven::of(&operands.filter, 0)?;
    let (input, output) = (operands.input.read::<i8>()?, operands.output.write::<i8>()?);
    let (input_row, filter_row) = (g.width.input * g.height.dilation.get(), g.width.filter);
    let per_filter = g.height.filter * filter_row;
    let filters = g.channels / (g.depth / g.filter_depth.max(1)).max(1);
    g.each(|spot| {
        for channel in 0..g.channels {
            let mut sum = bias.get(channel);
            let group = channel.checked_div(filters).unwrap_or(0) * g.filter_depth;
            for row in 0..spot.rows {
                for col in 0..spot.cols {
                    let at = spot.start + row * input_row + col * g.width.dilation.get();
                    let weight = (spot.row + row) * filter_row + spot.col + col;
                    let weight = (channel * per_filter + weight) * g.filter_depth;
                    let part = input.part(at * g.depth + group, g.filter_depth);
                    let part = part.ok_or(operands.input.wrong_shape())?;
                    sum = sum.wrapping_add(weights.dot(part, weight, offset));
                }
            }
            output.set(
                spot.pixel * g.channels + channel,
                scale.narrow(channel, sum) as i8,
            );
        }
        Ok(())
    })
}

/// Bytes of a window that is copied to the stack.
const COPIED: usize = 128;

/// Pixel by pixel, with four channels at a time: all of a pixel's window is read for each of them.
///
/// Windows with few elements in a row are copied together first.
#[inline(always)]
fn convolve<A: Arithmetic>(
    operands: &Operands<'_>,
    g: &Geometry,
    arithmetic: &A,
) -> Result<(), Fault> {
    let input: View<'_, A::Data> = operands.input.read()?;
    let weights: View<'_, <A::Data as Factor>::Weight> = operands.filter.read()?;
    let output: ViewMut<'_, A::Data> = operands.output.write()?;
    let (depth, run) = (g.depth, g.filter_depth);
    // The filter's bytes were found in the file, so that these are no more.
    let weight_row = g.width.filter.wrapping_mul(run);
    let per_filter = g.height.filter.wrapping_mul(weight_row);
    let whole = run == depth;
    let dilation = (g.height.dilation.get(), g.width.dilation.get());
    let joined = whole && dilation.1 == 1;
    let input_row = g.width.input.wrapping_mul(depth);
    let steps = Reach {
        rows: 0,
        cols: 0,
        len: run,
        input_row: input_row.wrapping_mul(dilation.0),
        input_col: depth.wrapping_mul(dilation.1),
        weight_row,
        weight_col: run,
    };
    let mut buffer = [0u64; COPIED / 8];
    let buffer: ViewMut<'_, A::Data> = ViewMut::of(&mut buffer).cast().unwrap_or_default();
    let copied = size_of::<A::Data>() == 1
        && whole
        && g.height.filter > 1
        && weight_row < 16
        && per_filter <= buffer.len();
    let wrong = operands.input.wrong_shape();
    g.each(|spot| {
        let Spot { rows, cols, .. } = spot;
        let at = spot.start.wrapping_mul(depth);
        let first = spot
            .row
            .wrapping_mul(weight_row)
            .wrapping_add(spot.col.wrapping_mul(run));
        let mut reach = Reach {
            rows,
            cols,
            ..steps
        };
        if joined {
            reach.len = cols.wrapping_mul(run);
            reach.cols = 1;
            if reach.len == reach.input_row && reach.len == weight_row {
                reach.len = reach.len.wrapping_mul(rows);
                reach.rows = 1;
            }
        }
        let mut out = output;
        let from = spot.pixel.wrapping_mul(g.channels);
        out = out
            .part(from, g.channels)
            .ok_or(operands.output.wrong_shape())?;
        let write = |channel, value| out.set(channel, value);
        if copied {
            let len = copy(
                input,
                at,
                first,
                &reach,
                buffer.part(0, per_filter).ok_or(wrong)?,
                arithmetic.padding(),
            );
            reach = Reach {
                rows: 1,
                cols: 1,
                len: per_filter,
                ..reach
            };
            len.ok_or(wrong)?;
            let window = Window::new(
                (buffer.view(), 0),
                (weights, 0),
                (g.channels, per_filter),
                reach,
            );
            channels(arithmetic, &window.ok_or(wrong)?, 0, g.channels, write);
            return Ok(());
        }
        let groups = if whole {
            1
        } else {
            depth.checked_div(run).unwrap_or(1)
        };
        let filters = g.channels.checked_div(groups).unwrap_or(0);
        for group in 0..groups {
            let start = at.wrapping_add(group.wrapping_mul(run));
            let window = Window::new(
                (input, start),
                (weights, first),
                (g.channels, per_filter),
                reach,
            );
            let (from, to) = (group * filters, (group + 1) * filters);
            channels(arithmetic, &window.ok_or(wrong)?, from, to, write);
        }
        Ok(())
    })
}

/// Copies a window to `to`, as the filter has it, with `padding` where there is no input.
#[inline(never)]
fn copy<T: Factor>(
    input: View<'_, T>,
    mut at: usize,
    mut first: usize,
    reach: &Reach,
    to: ViewMut<'_, T>,
    padding: T,
) -> Option<()> {
    if reach.rows.wrapping_mul(reach.cols).wrapping_mul(reach.len) != to.len() {
        to.fill(padding);
    }
    for _ in 0..reach.rows {
        for col in 0..reach.cols {
            let from = input.part(
                at.wrapping_add(col.wrapping_mul(reach.input_col)),
                reach.len,
            )?;
            let place = first.wrapping_add(col.wrapping_mul(reach.weight_col));
            let to = to.part(place, reach.len)?;
            for (k, x) in from.iter().enumerate() {
                to.set(k, x);
            }
        }
        at = at.wrapping_add(reach.input_row);
        first = first.wrapping_add(reach.weight_row);
    }
    Some(())
}
