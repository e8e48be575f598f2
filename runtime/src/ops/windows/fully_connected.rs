//! `FULLY_CONNECTED`.

use crate::contract::Contract;
use crate::error::{Fault, Operand};
use crate::kernel::{Code, Kernel};
use crate::memory::dot::{Extent, Factor, Field, Steps};
use crate::memory::{View, ViewMut};
use crate::node::{Node, Tensor};
use crate::types::Type;

use super::scale::{scales_of_filter, scratch};
use super::{
    Arithmetic, Float, Int8, Int16, Setup, Uneven, accumulator, channels, elements, elements_mut,
    found,
};

/// `FULLY_CONNECTED`: filter `[.., c, k]`, output `[.., c]`, an input of `k` elements for each of the output's rows, bias
/// `[c]` or none.
///
/// int8 with weights of int8 or int4 and a bias of int32, int16 with weights of int8 and a bias of int64 or int32, float32;
/// filters are quantized as a whole or, but for int4, for each output channel. The rules are those of TFLM's
/// `kernels/fully_connected.cc`.
pub const FULLY_CONNECTED: Kernel = Kernel::builtin(Code::FULLY_CONNECTED, all)
    .with_contract(Contract::Rows)
    .with_scratch(scratch)
    .with_prepared_factors();

/// [`FULLY_CONNECTED`] of int8 with weights of int8 alone, whose zero point is 0.
pub const FULLY_CONNECTED_INT8: Kernel = Kernel::builtin(Code::FULLY_CONNECTED, int8)
    .with_contract(Contract::Rows)
    .with_scratch(scratch)
    .with_prepared_factors();

/// [`FULLY_CONNECTED_INT8`] of filters that are quantized as a whole alone.
pub const FULLY_CONNECTED_INT8_ONE_SCALE: Kernel =
    Kernel::builtin(Code::FULLY_CONNECTED, int8_one_scale).with_contract(Contract::Rows);

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

/// Rows, elements of a row, and outputs of a row. Filled in place, since stacks are small.
#[derive(Default)]
struct Sizes {
    rows: usize,
    depth: usize,
    channels: usize,
    activation: (i8, u8),
    /// The filter's dimension of outputs.
    axis: i32,
}

impl Sizes {
    fn read(&mut self, node: &Node<'_>) -> Result<(), Fault> {
        let filters = self.filter(node)?;
        self.output(node, filters)?;
        let len = self.rows.checked_mul(self.depth);
        if len.is_none_or(|len| len > input_len(node)) {
            return Err(Fault::Shape(Operand::Input(0)));
        }
        self.activation = (node.options()?.i8(0, 0)?, 0);
        Ok(())
    }

    /// Reads the filter's shape, and returns the number of filters.
    #[inline(never)]
    fn filter(&mut self, node: &Node<'_>) -> Result<usize, Fault> {
        let filter = node.input(1);
        let filter = found(&filter)?.shape();
        if filter.rank() < 2 {
            return Err(Fault::Shape(Operand::Input(1)));
        }
        self.depth = filter.dim_from_end(0);
        // Counted from the outermost one.
        self.axis = filter.rank() as i32 - 2;
        Ok(filter.dim_from_end(1))
    }

    #[inline(never)]
    fn output(&mut self, node: &Node<'_>, filters: usize) -> Result<(), Fault> {
        let output = node.output(0);
        let output = found(&output)?.shape();
        self.channels = output.dim_from_end(0);
        let rows = output.product(0, output.rank().saturating_sub(1));
        match rows {
            Some(rows) if output.rank() != 0 && self.channels <= filters => self.rows = rows,
            _ => return Err(Fault::Shape(Operand::Output(0))),
        }
        Ok(())
    }
}

#[inline(never)]
fn input_len(node: &Node<'_>) -> usize {
    node.input(0).as_ref().map_or(0, Tensor::len)
}

/// Reads all but what depends on the type, of a filter with one scale where there is none for `CHANNELS`.
fn read<'a, const CHANNELS: bool>(
    node: &Node<'a>,
    setup: &mut Setup<'a>,
    sizes: &mut Sizes,
    [data, filter, bias]: [Type; 3],
) -> Result<(), Fault> {
    setup.operands(node, data, filter)?;
    sizes.read(node)?;
    setup.bias(node, bias, sizes.channels)?;
    if data == Type::FLOAT32 {
        return Ok(());
    }
    let (channels, activation) = ((sizes.channels, sizes.axis), sizes.activation);
    match scales_of_filter(node)? {
        0 | 1 => setup.scale.read_rounded(node, activation),
        _ if filter == Type::INT4 || !CHANNELS => Err(Fault::Quantization(Operand::Input(1))),
        _ => (setup.scale).read(node, channels, Some(sizes.rows), activation),
    }
}

/// The filter's zero point; those of a filter with a scale for each channel are 0 by definition.
#[inline(never)]
fn filter_zero_point(node: &Node<'_>) -> Result<i32, Fault> {
    let filter = node.input(1);
    let filter = found(&filter)?;
    match filter.scales().len() {
        0 | 1 => Ok(filter.zero_point()),
        _ => Ok(0),
    }
}

fn int8(node: &Node<'_>) -> Result<(), Fault> {
    bytes::<true>(node)
}

fn int8_one_scale(node: &Node<'_>) -> Result<(), Fault> {
    bytes::<false>(node)
}

#[inline(always)]
fn bytes<const CHANNELS: bool>(node: &Node<'_>) -> Result<(), Fault> {
    let (mut setup, mut sizes) = (Setup::default(), Sizes::default());
    read::<CHANNELS>(
        node,
        &mut setup,
        &mut sizes,
        [Type::INT8, Type::INT8, Type::INT32],
    )?;
    setup.zero_point(node)?;
    if filter_zero_point(node)? != 0 {
        return Err(Fault::Quantization(Operand::Input(1)));
    }
    connect(&setup, &sizes, &Int8::of(&setup))
}

fn int16(node: &Node<'_>) -> Result<(), Fault> {
    let (mut setup, mut sizes) = (Setup::default(), Sizes::default());
    let accumulator = accumulator(node, 4)?;
    read::<true>(
        node,
        &mut setup,
        &mut sizes,
        [Type::INT16, Type::INT8, accumulator],
    )?;
    if filter_zero_point(node)? != 0 {
        return Err(Fault::Quantization(Operand::Input(1)));
    }
    match i16::try_from(node.input(0)?.zero_point()) {
        Ok(zero) => setup.offset = -i32::from(zero),
        Err(_) => return Err(Fault::Quantization(Operand::Input(0))),
    }
    connect(&setup, &sizes, &Int16::of(&setup, accumulator))
}

fn float(node: &Node<'_>) -> Result<(), Fault> {
    let (mut setup, mut sizes) = (Setup::default(), Sizes::default());
    read::<true>(node, &mut setup, &mut sizes, [Type::FLOAT32; 3])?;
    connect(&setup, &sizes, &Float::of(&setup, sizes.activation)?)
}

fn uneven(node: &Node<'_>) -> Result<(), Fault> {
    let (mut setup, mut sizes) = (Setup::default(), Sizes::default());
    let filter = node.input(1)?.element_type();
    read::<true>(
        node,
        &mut setup,
        &mut sizes,
        [Type::INT8, filter, Type::INT32],
    )?;
    setup.zero_point(node)?;
    let weights = Uneven {
        weights: setup.filter,
        packed: filter == Type::INT4,
        zero_point: filter_zero_point(node)?,
    };
    let arithmetic = Int8::of(&setup);
    let (input, output) = (
        elements::<i8>(setup.input),
        elements_mut::<i8>(setup.output),
    );
    for row in 0..sizes.rows {
        let part = input
            .part(row * sizes.depth, sizes.depth)
            .unwrap_or_default();
        for channel in 0..sizes.channels {
            let sum = weights.dot(part, channel * sizes.depth, setup.offset);
            let sum = sum.wrapping_add(arithmetic.start(channel));
            output.set(
                row * sizes.channels + channel,
                arithmetic.finish(channel, sum),
            );
        }
    }
    Ok(())
}

/// Row by row, with four outputs at a time: all of a row is read for each of them.
#[inline(never)]
fn connect<A: Arithmetic>(setup: &Setup<'_>, sizes: &Sizes, arithmetic: &A) -> Result<(), Fault> {
    let input: View<'_, A::Data> = elements(setup.input);
    let weights: View<'_, <A::Data as Factor>::Weight> = elements(setup.filter);
    let output: ViewMut<'_, A::Data> = elements_mut(setup.output);
    let wrong = Fault::Shape(Operand::Input(0));
    let steps = Steps::default();
    let (depth, len) = (sizes.depth, sizes.channels);
    let extent = Extent {
        rows: 1,
        cols: 1,
        len: depth,
    };
    if len == 0 {
        return Ok(());
    }
    let mut field = Field::default();
    field
        .set((input, weights), (len, depth), extent, steps)
        .ok_or(wrong)?;
    let (mut start, mut out) = (0usize, 0usize);
    for _ in 0..sizes.rows {
        let window = field.window(start, 0, extent).ok_or(wrong)?;
        let row = output.part(out, len).ok_or(wrong)?;
        channels(arithmetic, &window, (0, len), row);
        start = start.wrapping_add(depth);
        out = out.wrapping_add(len);
    }
    Ok(())
}
