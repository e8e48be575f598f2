//! `FULLY_CONNECTED`.

use crate::contract::Contract;
use crate::error::Fault;
use crate::fixed::Multiplier;
use crate::kernel::{Code, Kernel};
use crate::memory::dot::{Factor, Reach, Window};
use crate::memory::{View, ViewMut};
use crate::node::Node;
use crate::types::Type;

use super::scale::{FACTOR_BYTES, Scale};
use super::{Arithmetic, Bias, Float, Int8, Int16, Operands, Uneven, channels};

/// `FULLY_CONNECTED`: filter `[.., c, k]`, output `[.., c]`, an input of `k` elements for each of the output's rows, bias
/// `[c]` or none.
///
/// int8 with weights of int8 or int4 and a bias of int32, int16 with weights of int8 and a bias of int64 or int32, float32;
/// filters are quantized as a whole or, but for int4, for each output channel. The rules are those of TFLM's
/// `kernels/fully_connected.cc`.
pub const FULLY_CONNECTED: Kernel = Kernel::builtin(Code::FULLY_CONNECTED, all)
    .with_contract(Contract::Rows)
    .with_scratch(scratch);

/// [`FULLY_CONNECTED`] of int8 with weights of int8 alone, whose zero point is 0.
pub const FULLY_CONNECTED_INT8: Kernel = Kernel::builtin(Code::FULLY_CONNECTED, int8)
    .with_contract(Contract::Rows)
    .with_scratch(scratch);

fn all(node: &Node<'_>) -> Result<(), Fault> {
    let (input, filter) = (node.input(0)?, node.input(1)?);
    match (input.element_type(), filter.element_type()) {
        (Type::INT8, Type::INT4) => uneven(node),
        (Type::INT8, _) if filter.zero_point() != 0 => uneven(node),
        (Type::INT16, _) => int16(node),
        (Type::FLOAT32, _) => float(node),
        _ => int8(node),
    }
}

/// The factors of the channels, where each is used more than once.
fn scratch(node: &Node<'_>) -> Result<usize, Fault> {
    let operands = Operands::of(node)?;
    let output = operands.output.shape();
    let rows = output.product(0, output.rank().saturating_sub(1));
    match Scale::needs_table(&operands) && rows != Some(1) {
        true => output
            .dim_from_end(0)
            .checked_mul(FACTOR_BYTES)
            .ok_or(Fault::Scratch),
        false => Ok(0),
    }
}

/// Rows, elements of a row, and outputs of a row.
#[derive(Clone, Copy)]
struct Sizes {
    rows: usize,
    depth: usize,
    channels: usize,
    activation: (i8, u8),
}

impl Sizes {
    #[inline(never)]
    fn of(node: &Node<'_>, operands: &Operands<'_>) -> Result<Self, Fault> {
        let (filter, output) = (operands.filter.shape(), operands.output.shape());
        if filter.rank() < 2 {
            return Err(operands.filter.wrong_shape());
        }
        let (depth, filters) = (filter.dim_from_end(0), filter.dim_from_end(1));
        let channels = output.dim_from_end(0);
        let rows = output.product(0, output.rank().saturating_sub(1));
        let rows = rows.ok_or(operands.output.wrong_shape())?;
        if output.rank() == 0 || channels > filters {
            return Err(operands.output.wrong_shape());
        }
        match rows.checked_mul(depth) {
            Some(len) if len <= operands.input.len() => Ok(Self {
                rows,
                depth,
                channels,
                activation: (node.options()?.i8(0, 0)?, 0),
            }),
            _ => Err(operands.input.wrong_shape()),
        }
    }
}

/// The scale of a filter that is quantized as a whole has a rule of its own: `GetQuantizedConvolutionMultipler` of TFLM's
/// `kernel_util.cc`, which multiplies the scales in f32.
fn scale<'a>(node: &Node<'a>, operands: &Operands<'a>, sizes: &Sizes) -> Result<Scale<'a>, Fault> {
    if Scale::needs_table(operands) {
        let axis = operands.filter.shape().rank().saturating_sub(2) as i32;
        let table = node.scratch().ok();
        return Scale::of(operands, (sizes.channels, axis), table, sizes.activation);
    }
    let product = operands.input.scale()? * operands.filter.scale()?;
    let output = operands.output.scale()?;
    let fault = Fault::Quantization(operands.filter.operand());
    if product < 0.0 {
        return Err(fault);
    }
    if let Some(bias) = &operands.bias {
        let bias = bias.scales().get(0).unwrap_or(0.0);
        // The bias is counted in units of the product's scale.
        if libm::fabsf(product - bias) > output * 0.02 {
            return Err(fault);
        }
    }
    let factor = Multiplier::of_scales(product, 1.0, output);
    Scale::with_factor(operands, factor, sizes.activation)
}

fn int8(node: &Node<'_>) -> Result<(), Fault> {
    let operands = Operands::of(node)?;
    operands.expect(Type::INT8, Type::INT8)?;
    if operands.filter.zero_point() != 0 {
        return Err(Fault::Quantization(operands.filter.operand()));
    }
    let sizes = Sizes::of(node, &operands)?;
    let arithmetic = Int8 {
        offset: -operands.zero_point()?,
        bias: operands.bias(Type::INT32, sizes.channels)?,
        scale: scale(node, &operands, &sizes)?,
    };
    connect(&operands, &sizes, &arithmetic)
}

fn int16(node: &Node<'_>) -> Result<(), Fault> {
    let operands = Operands::of(node)?;
    operands.expect(Type::INT16, Type::INT8)?;
    if operands.filter.zero_point() != 0 {
        return Err(Fault::Quantization(operands.filter.operand()));
    }
    let offset = i16::try_from(operands.input.zero_point());
    let offset = offset.map_err(|_| Fault::Quantization(operands.input.operand()))?;
    let sizes = Sizes::of(node, &operands)?;
    let arithmetic = Int16 {
        offset: -i32::from(offset),
        bias: Bias::of(&operands, sizes.channels, node.options()?.i8(4, 0)?)?,
        scale: scale(node, &operands, &sizes)?,
    };
    connect(&operands, &sizes, &arithmetic)
}

fn float(node: &Node<'_>) -> Result<(), Fault> {
    let operands = Operands::of(node)?;
    let sizes = Sizes::of(node, &operands)?;
    let arithmetic = Float::of(&operands, sizes.channels, sizes.activation)?;
    connect(&operands, &sizes, &arithmetic)
}

fn uneven(node: &Node<'_>) -> Result<(), Fault> {
    let operands = Operands::of(node)?;
    operands.expect(Type::INT8, operands.filter.element_type())?;
    let sizes = Sizes::of(node, &operands)?;
    let per_channel = Scale::needs_table(&operands);
    if per_channel && operands.filter.element_type() == Type::INT4 {
        return Err(Fault::Quantization(operands.filter.operand()));
    }
    // Zero points of channels are 0 by definition, whatever the file says.
    let zero_point = if per_channel {
        0
    } else {
        operands.filter.zero_point()
    };
    let weights = Uneven::of(&operands.filter, zero_point)?;
    let offset = -operands.zero_point()?;
    let bias = operands.bias::<i32>(Type::INT32, sizes.channels)?;
    let scale = scale(node, &operands, &sizes)?;
    let (input, output) = (operands.input.read::<i8>()?, operands.output.write::<i8>()?);
    for row in 0..sizes.rows {
        let part = input.part(row * sizes.depth, sizes.depth);
        let part = part.ok_or(operands.input.wrong_shape())?;
        for channel in 0..sizes.channels {
            let sum = weights.dot(part, channel * sizes.depth, offset);
            let sum = sum.wrapping_add(bias.get(channel));
            output.set(
                row * sizes.channels + channel,
                scale.narrow(channel, sum) as i8,
            );
        }
    }
    Ok(())
}

/// Row by row, with four outputs at a time: all of a row is read for each of them.
#[inline(always)]
fn connect<A: Arithmetic>(
    operands: &Operands<'_>,
    sizes: &Sizes,
    arithmetic: &A,
) -> Result<(), Fault> {
    let input: View<'_, A::Data> = operands.input.read()?;
    let weights: View<'_, <A::Data as Factor>::Weight> = operands.filter.read()?;
    let output: ViewMut<'_, A::Data> = operands.output.write()?;
    let wrong = operands.input.wrong_shape();
    let reach = Reach {
        rows: 1,
        cols: 1,
        len: sizes.depth,
        input_row: 0,
        input_col: 0,
        weight_row: 0,
        weight_col: 0,
    };
    for row in 0..sizes.rows {
        let at = row.wrapping_mul(sizes.depth);
        let window = Window::new(
            (input, at),
            (weights, 0),
            (sizes.channels, sizes.depth),
            reach,
        );
        let out = output
            .part(row.wrapping_mul(sizes.channels), sizes.channels)
            .ok_or(wrong)?;
        channels(
            arithmetic,
            &window.ok_or(wrong)?,
            0,
            sizes.channels,
            |channel, value| out.set(channel, value),
        );
    }
    Ok(())
}
