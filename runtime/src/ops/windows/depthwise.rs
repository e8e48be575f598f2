//! `DEPTHWISE_CONV_2D`.

use crate::contract::Contract;
use crate::error::Fault;
use crate::kernel::{Code, Kernel};
use crate::memory::dot::{Factor, LANES, Reach, Taps};
use crate::memory::{View, ViewMut};
use crate::node::Node;
use crate::types::Type;

use super::geometry::Geometry;
use super::scale::{FACTOR_BYTES, Scale};
use super::{Arithmetic, Bias, Float, Int8, Int16, Operands, Uneven};

const SAME: Contract = Contract::Depthwise { pixels: 1 };

/// `DEPTHWISE_CONV_2D`: input `[n, h, w, c]`, filter `[1, kh, kw, c * multiplier]`, bias `[c * multiplier]` or none.
///
/// int8 with weights of int8 or int4 and a bias of int32, int16 with weights of int8 and a bias of int64, float32; filters
/// are quantized as a whole or for each output channel. The rules are those of TFLM's `kernels/depthwise_conv.cc`.
pub const DEPTHWISE_CONV_2D: Kernel = Kernel::builtin(Code::DEPTHWISE_CONV_2D, all)
    .with_contract(SAME)
    .with_scratch(scratch);

/// [`DEPTHWISE_CONV_2D`] of int8 with weights of int8 alone.
pub const DEPTHWISE_CONV_2D_INT8: Kernel = Kernel::builtin(Code::DEPTHWISE_CONV_2D, int8)
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
    Scale::of(operands, (g.channels, 3), table, g.activation)
}

fn int8(node: &Node<'_>) -> Result<(), Fault> {
    let operands = Operands::of(node)?;
    operands.expect(Type::INT8, Type::INT8)?;
    let g = Geometry::depthwise(node, &operands)?;
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
    let g = Geometry::depthwise(node, &operands)?;
    let arithmetic = Int16 {
        offset: 0,
        bias: Bias::Int64(operands.bias(Type::INT64, g.channels)?),
        scale: scale(node, &operands, &g)?,
    };
    convolve(&operands, &g, &arithmetic)
}

fn float(node: &Node<'_>) -> Result<(), Fault> {
    let operands = Operands::of(node)?;
    let g = Geometry::depthwise(node, &operands)?;
    let arithmetic = Float::of(&operands, g.channels, g.activation)?;
    convolve(&operands, &g, &arithmetic)
}

fn int4(node: &Node<'_>) -> Result<(), Fault> {
    let operands = Operands::of(node)?;
    operands.expect(Type::INT8, Type::INT4)?;
    let g = Geometry::depthwise(node, &operands)?;
    let offset = -operands.zero_point()?;
    let bias = operands.bias::<i32>(Type::INT32, g.channels)?;
    let scale = scale(node, &operands, &g)?;
    let weights = Uneven::of(&operands.filter, 0)?;
    let (input, output) = (operands.input.read::<i8>()?, operands.output.write::<i8>()?);
    let input_row = g.width.input * g.height.dilation.get();
    let multiplier = g.channels.checked_div(g.depth).unwrap_or(0);
    g.each(|spot| {
        for channel in 0..g.channels {
            let mut sum = bias.get(channel);
            let input_channel = channel.checked_div(multiplier).unwrap_or(0);
            for row in 0..spot.rows {
                for col in 0..spot.cols {
                    let at = spot.start + row * input_row + col * g.width.dilation.get();
                    let weight = (spot.row + row) * g.width.filter + spot.col + col;
                    let part = input.part(at * g.depth + input_channel, 1);
                    let part = part.ok_or(operands.input.wrong_shape())?;
                    sum =
                        sum.wrapping_add(weights.dot(part, weight * g.channels + channel, offset));
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

/// Pixel by pixel, with [`LANES`] channels at a time.
#[inline(always)]
fn convolve<A: Arithmetic>(
    operands: &Operands<'_>,
    g: &Geometry,
    arithmetic: &A,
) -> Result<(), Fault> {
    let input: View<'_, A::Data> = operands.input.read()?;
    let weights: View<'_, <A::Data as Factor>::Weight> = operands.filter.read()?;
    let output: ViewMut<'_, A::Data> = operands.output.write()?;
    let (depth, len) = (g.depth, g.channels);
    let multiplier = len.checked_div(depth).unwrap_or(0);
    let weight_row = g.width.filter.wrapping_mul(len);
    let input_row = g.width.input.wrapping_mul(depth);
    let steps = Reach {
        rows: 0,
        cols: 0,
        len,
        input_row: input_row.wrapping_mul(g.height.dilation.get()),
        input_col: depth.wrapping_mul(g.width.dilation.get()),
        weight_row,
        weight_col: len,
    };
    // One run over all channels, or for each input channel over those that come from it.
    let (runs, lanes) = if multiplier == 1 {
        (1, len)
    } else {
        (depth, multiplier)
    };
    let wrong = operands.input.wrong_shape();
    g.each(|spot| {
        let at = spot.start.wrapping_mul(depth);
        let first = spot
            .row
            .wrapping_mul(weight_row)
            .wrapping_add(spot.col.wrapping_mul(len));
        let reach = Reach {
            rows: spot.rows,
            cols: spot.cols,
            ..steps
        };
        let taps =
            Taps::new((input, at), (weights, first), (depth, multiplier), reach).ok_or(wrong)?;
        let out = output
            .part(spot.pixel.wrapping_mul(len), len)
            .ok_or(wrong)?;
        let mut channel = 0;
        for run in 0..runs {
            let mut lane = 0;
            while lane < lanes {
                let count = (lanes - lane).min(LANES);
                let mut sums = [arithmetic.start(channel); LANES];
                for (k, sum) in sums.iter_mut().take(count).enumerate() {
                    *sum = arithmetic.start(channel + k);
                }
                taps.add((run, lane), count, arithmetic.offset(), &mut sums);
                for (k, sum) in sums.into_iter().take(count).enumerate() {
                    out.set(channel + k, arithmetic.finish(channel + k, sum));
                }
                lane += count;
                channel += count;
            }
        }
        Ok(())
    })
}
