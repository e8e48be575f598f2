//! `DEPTHWISE_CONV_2D`.

use crate::contract::Contract;
use crate::error::{Fault, Operand};
use crate::kernel::{Code, Kernel};
use crate::memory::dot::{Extent, Factor, Field, LANES, Steps, Taps};
use crate::memory::{View, ViewMut};
use crate::node::Node;
use crate::types::Type;

use super::geometry::Geometry;
use super::scale::scratch;
use super::{Arithmetic, Float, Int8, Int16, Setup, Uneven, elements, elements_mut};

const SAME: Contract = Contract::Depthwise { pixels: 1 };

/// `DEPTHWISE_CONV_2D`: input `[n, h, w, c]`, filter `[1, kh, kw, c * multiplier]`, bias `[c * multiplier]` or none.
///
/// int8 with weights of int8 or int4 and a bias of int32, int16 with weights of int8 and a bias of int64, float32; filters
/// are quantized as a whole or for each output channel. The rules are those of TFLM's `kernels/depthwise_conv.cc`.
pub const DEPTHWISE_CONV_2D: Kernel = Kernel::builtin(Code::DEPTHWISE_CONV_2D, all)
    .with_contract(SAME)
    .with_scratch(scratch)
    .with_prepared_factors();

/// [`DEPTHWISE_CONV_2D`] of int8 with weights of int8 alone.
pub const DEPTHWISE_CONV_2D_INT8: Kernel = Kernel::builtin(Code::DEPTHWISE_CONV_2D, int8)
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
    setup.convolution(node, &mut g, [Type::INT8, Type::INT8, Type::INT32], true)?;
    pixels_int8(&setup, &g)
}

// Apart from what was needed to get here, since stacks are small.
#[inline(never)]
fn pixels_int8(setup: &Setup<'_>, g: &Geometry) -> Result<(), Fault> {
    convolve(setup, g, &Int8::of(setup))
}

fn int16(node: &Node<'_>) -> Result<(), Fault> {
    let (mut setup, mut g) = (Setup::default(), Geometry::default());
    setup.convolution(node, &mut g, [Type::INT16, Type::INT8, Type::INT64], true)?;
    convolve(&setup, &g, &Int16::of(&setup, Type::INT64))
}

fn float(node: &Node<'_>) -> Result<(), Fault> {
    let (mut setup, mut g) = (Setup::default(), Geometry::default());
    setup.convolution(node, &mut g, [Type::FLOAT32; 3], true)?;
    convolve(&setup, &g, &Float::of(&setup, g.activation)?)
}

fn int4(node: &Node<'_>) -> Result<(), Fault> {
    let (mut setup, mut g) = (Setup::default(), Geometry::default());
    setup.convolution(node, &mut g, [Type::INT8, Type::INT4, Type::INT32], true)?;
    let arithmetic = Int8::of(&setup);
    let weights = Uneven {
        weights: setup.filter,
        packed: true,
        zero_point: 0,
    };
    let (input, output) = (elements(setup.input), elements_mut::<i8>(setup.output));
    let input_row = g.width.input.wrapping_mul(g.height.dilation.get());
    let multiplier = g.channels.checked_div(g.depth).unwrap_or(0);
    g.each(|spot| {
        for channel in 0..g.channels {
            let mut sum = arithmetic.start(channel);
            let input_channel = channel.checked_div(multiplier).unwrap_or(0);
            for row in 0..spot.rows {
                for col in 0..spot.cols {
                    let at = spot.start + row * input_row + col * g.width.dilation.get();
                    let weight = (spot.row + row) * g.width.filter + spot.col + col;
                    let part = input.part(at * g.depth + input_channel, 1);
                    let (part, weight) = (part.unwrap_or_default(), weight * g.channels + channel);
                    sum = sum.wrapping_add(weights.dot(part, weight, setup.offset));
                }
            }
            let value = arithmetic.finish(channel, sum);
            output.set(spot.pixel * g.channels + channel, value);
        }
        Ok(())
    })
}

/// Pixel by pixel, with [`LANES`] channels at a time.
#[inline(always)]
fn convolve<A: Arithmetic>(setup: &Setup<'_>, g: &Geometry, arithmetic: &A) -> Result<(), Fault> {
    let input: View<'_, A::Data> = elements(setup.input);
    let weights: View<'_, <A::Data as Factor>::Weight> = elements(setup.filter);
    let output: ViewMut<'_, A::Data> = elements_mut(setup.output);
    let (depth, len) = (g.depth, g.channels);
    let multiplier = len.checked_div(depth).unwrap_or(0);
    let weight_row = g.width.filter.wrapping_mul(len);
    let input_row = g.width.input.wrapping_mul(depth);
    let steps = Steps {
        input_row: input_row.wrapping_mul(g.height.dilation.get()),
        input_col: depth.wrapping_mul(g.width.dilation.get()),
        weight_row,
        weight_col: len,
    };
    let most = Extent {
        rows: g.height.filter,
        cols: g.width.filter,
        len,
    };
    let wrong = Fault::Shape(Operand::Input(0));
    let mut field = Field::default();
    field
        .set((input, weights), (1, 0), most, steps)
        .ok_or(wrong)?;
    // One run over all channels, or for each input channel over those that come from it.
    let (runs, lanes) = if multiplier == 1 {
        (1, len)
    } else {
        (depth, multiplier)
    };
    let mut out = 0usize;
    g.each(|spot| {
        let start = spot.start.wrapping_mul(depth);
        let first = spot.row.wrapping_mul(weight_row);
        let first = first.wrapping_add(spot.col.wrapping_mul(len));
        let extent = (spot.rows, spot.cols);
        let taps = field
            .taps(start, first, extent, (depth, multiplier))
            .ok_or(wrong)?;
        let pixel = output.part(out, len).ok_or(wrong)?;
        out = out.wrapping_add(len);
        let mut channel = 0;
        for run in 0..runs {
            let mut lane = 0;
            while lane < lanes {
                let count = (lanes - lane).min(LANES);
                if count == LANES {
                    whole(arithmetic, &taps, (run, lane), channel, pixel);
                } else {
                    part(arithmetic, &taps, (run, lane), (channel, count), pixel);
                }
                lane += count;
                channel += count;
            }
        }
        Ok(())
    })
}

/// [`LANES`] output channels from `channel` on.
#[inline(never)]
fn whole<A: Arithmetic>(
    arithmetic: &A,
    taps: &Taps<'_, A::Data>,
    lane: (usize, usize),
    channel: usize,
    out: ViewMut<'_, A::Data>,
) {
    let mut sums = [arithmetic.start(channel); LANES];
    for (k, sums) in sums.as_chunks_mut().0.iter_mut().enumerate() {
        *sums = arithmetic.start4(channel + 4 * k);
    }
    taps.add(lane, LANES, arithmetic.offset(), &mut sums);
    for (k, sums) in sums.as_chunks().0.iter().enumerate() {
        arithmetic.finish4(channel + 4 * k, sums, out);
    }
}

/// Fewer output channels, `count`.
#[inline(never)]
fn part<A: Arithmetic>(
    arithmetic: &A,
    taps: &Taps<'_, A::Data>,
    lane: (usize, usize),
    (channel, count): (usize, usize),
    out: ViewMut<'_, A::Data>,
) {
    let mut sums: [_; LANES] = core::array::from_fn(|k| arithmetic.start(channel + k));
    taps.add(lane, count, arithmetic.offset(), &mut sums);
    for (k, sum) in sums.into_iter().take(count).enumerate() {
        out.set(channel + k, arithmetic.finish(channel + k, sum));
    }
}
