//! SVDF, a recurrent layer of a rank-limited filter over time.
//!
//! The rules are those of TFLM's `svdf_common.cc`. TFLM keeps what filters give in scratch memory; here each output is
//! summed up at once, and none is needed.

use super::{
    INPUT, OUTPUT, dims, dot, dot_of_bytes, dot_of_floats, quantization, read, read_optional,
    state, type_of, write,
};
use crate::contract::Contract;
use crate::error::{Fault, Operand};
use crate::fixed::{Multiplier, clamp};
use crate::kernel::{Code, Kernel};
use crate::memory::{Element, View, ViewMut};
use crate::node::Node;
use crate::types::Type;

/// `SVDF`: input `[batch, size]`, feature weights `[filters, size]`, time weights `[filters, memory]`, bias `[units]` or
/// none, state `[batch, filters * memory]`, output `[batch, units]`. Of int8 with a state and time weights of int8 or int16,
/// or of float32.
///
/// All of the input goes into the state before the output is written.
pub const SVDF: Kernel = Kernel::builtin(Code::SVDF, svdf).with_contract(Contract::Whole);
/// [`SVDF`] of int8 with a state of int8 or int16.
pub const SVDF_INT8: Kernel = Kernel::builtin(Code::SVDF, svdf_int8).with_contract(Contract::Whole);
/// [`SVDF`] of float32 alone.
pub const SVDF_FLOAT32: Kernel =
    Kernel::builtin(Code::SVDF, svdf_float).with_contract(Contract::Whole);

fn svdf(node: &Node<'_>) -> Result<(), Fault> {
    match type_of(node, INPUT)? {
        Type::INT8 => svdf_int8(node),
        Type::FLOAT32 => svdf_float(node),
        _ => Err(Fault::ElementType(INPUT)),
    }
}

/// The operator's sizes.
#[derive(Clone, Copy, Debug)]
struct Layer {
    batches: usize,
    size: usize,
    filters: usize,
    memory: usize,
    rank: usize,
    units: usize,
}

const FEATURES: Operand = Operand::Input(1);
const TIME: Operand = Operand::Input(2);
const BIAS: Operand = Operand::Input(3);
const STATE: Operand = Operand::Input(4);

impl Layer {
    #[inline(never)]
    fn new(node: &Node<'_>) -> Result<Self, Fault> {
        let [batches, size] = dims(node, INPUT)?;
        let [filters, feature_size] = dims(node, FEATURES)?;
        let [time_filters, memory] = dims(node, TIME)?;
        if feature_size != size {
            return Err(Fault::Shape(FEATURES));
        }
        if time_filters != filters {
            return Err(Fault::Shape(TIME));
        }
        let rank = usize::try_from(node.options()?.i32(0, 0)?).unwrap_or(0);
        let units = filters.checked_div(rank).unwrap_or(0);
        if units * rank != filters {
            return Err(Fault::Unsupported(0));
        }
        if dims(node, STATE)? != [batches, memory.saturating_mul(filters)] {
            return Err(Fault::Shape(STATE));
        }
        if dims(node, OUTPUT)? != [batches, units] {
            return Err(Fault::Shape(OUTPUT));
        }
        Ok(Self {
            batches,
            size,
            filters,
            memory,
            rank,
            units,
        })
    }

    /// Elements of the state.
    fn state_len(&self) -> usize {
        self.batches * self.filters * self.memory
    }

    /// Moves the state on by one step, and puts what `feature` makes of each row of the input and of the weights there.
    #[inline(always)]
    fn remember<'a, T: Element, S: Element>(
        &self,
        input: View<'a, T>,
        features: View<'a, T>,
        state: ViewMut<'a, S>,
        feature: impl Fn(View<'a, T>, View<'a, T>) -> S,
    ) -> Option<()> {
        if let Some(len) = state.len().checked_sub(1) {
            state.copy_from(state.view().part(1, len)?);
        }
        let mut at = self.memory - 1;
        let mut row = 0;
        while at < state.len() {
            let input = input.part(row, self.size)?;
            for filter in 0..self.filters {
                let weights = features.part(filter * self.size, self.size)?;
                state.set(at, feature(weights, input));
                at += self.memory;
            }
            row += self.size;
        }
        Some(())
    }

    /// The rows of the time weights for filter `own`, and of the state for `filter` of all batches' filters.
    #[inline(always)]
    fn row<'a, S: Element>(
        &self,
        time: View<'a, S>,
        state: View<'a, S>,
        (filter, own): (usize, usize),
    ) -> Option<(View<'a, S>, View<'a, S>)> {
        Some((
            time.part(own * self.memory, self.memory)?,
            state.part(filter * self.memory, self.memory)?,
        ))
    }

    /// The filter behind one, of all batches' filters and of its batch's.
    #[inline(always)]
    fn next(&self, (filter, own): (usize, usize)) -> (usize, usize) {
        (filter + 1, if own + 1 < self.filters { own + 1 } else { 0 })
    }
}

fn svdf_int8(node: &Node<'_>) -> Result<(), Fault> {
    let layer = Layer::new(node)?;
    match type_of(node, TIME)? {
        Type::INT8 => integers::<i8>(node, &layer, Type::INT8),
        Type::INT16 => integers::<i16>(node, &layer, Type::INT16),
        _ => Err(Fault::ElementType(TIME)),
    }
}

/// Factors of what features give and of the output, and zero points of input, state and output.
#[inline(never)]
fn scaling(node: &Node<'_>) -> Result<([Multiplier; 2], [i32; 3]), Fault> {
    let (in_scale, in_zero) = quantization(node, INPUT)?;
    let (state_scale, state_zero) = quantization(node, STATE)?;
    let (out_scale, out_zero) = quantization(node, OUTPUT)?;
    let time = quantization(node, TIME)?.0;
    let products = state_scale * time;
    let feature = quantization(node, FEATURES)?.0;
    if let Some(bias) = node.optional_input(3)? {
        // TFLM compares in f64.
        let off = f64::from(bias.scale()?) - f64::from(products);
        if !(-1e-5..1e-5).contains(&off) {
            return Err(Fault::Quantization(BIAS));
        }
    }
    // In doubles throughout, as the wheel has them, though TFLM's source multiplied floats before.
    let factors = [
        Multiplier::of_scales(in_scale, feature, state_scale),
        Multiplier::of_scales(state_scale, time, out_scale),
    ];
    Ok((factors, [in_zero, state_zero, out_zero]))
}

fn integers<S: Element + Into<i32> + TryFrom<i32>>(
    node: &Node<'_>,
    layer: &Layer,
    state_type: Type,
) -> Result<(), Fault> {
    let ([feature_factor, output_factor], [in_zero, state_zero, out_zero]) = scaling(node)?;
    let input = read::<i8>(node, 0, Type::INT8)?;
    let features = read::<i8>(node, 1, Type::INT8)?;
    let time = read::<S>(node, 2, state_type)?;
    let bias = read_optional::<i32>(node, 3, Type::INT32, layer.units)?;
    let state = state::<S>(node, 4, state_type, layer.state_len())?;
    let to = write::<i8>(node, OUTPUT, Type::INT8)?;
    let input_offset = in_zero.wrapping_neg();
    let largest = (1i32 << (8 * size_of::<S>() - 1)) - 1;

    let remembered = layer.remember(input, features, state, |weights, input| {
        let scaled = feature_factor.apply(dot_of_bytes(input, input_offset, weights));
        let limited = clamp(scaled, -1 - largest, largest).wrapping_add(state_zero);
        // As a conversion in C: the low bits.
        let bits = 32 - 8 * size_of::<S>() as u32;
        S::try_from(limited << bits >> bits).unwrap_or_default()
    });
    remembered.ok_or(Fault::Shape(INPUT))?;

    let mut filter = (0, 0);
    let mut unit = 0;
    for k in 0..to.len() {
        let mut sum = bias.map_or(0, |bias| bias.get(unit));
        for _ in 0..layer.rank {
            let rows = layer.row(time, state.view(), filter);
            let (weights, past) = rows.ok_or(Fault::Shape(OUTPUT))?;
            sum = sum.wrapping_add(dot(weights, 0, past, state_zero.wrapping_neg()));
            filter = layer.next(filter);
        }
        let scaled = output_factor.apply(sum).wrapping_add(out_zero);
        to.set(k, clamp(scaled, -128, 127) as i8);
        unit = if unit + 1 < layer.units { unit + 1 } else { 0 };
    }
    Ok(())
}

fn svdf_float(node: &Node<'_>) -> Result<(), Fault> {
    let layer = Layer::new(node)?;
    let input = read::<f32>(node, 0, Type::FLOAT32)?;
    let features = read::<f32>(node, 1, Type::FLOAT32)?;
    let time = read::<f32>(node, 2, Type::FLOAT32)?;
    let bias = read_optional::<f32>(node, 3, Type::FLOAT32, layer.units)?;
    let state = state::<f32>(node, 4, Type::FLOAT32, layer.state_len())?;
    let to = write::<f32>(node, OUTPUT, Type::FLOAT32)?;
    let activation = node.options()?.i8(1, 0)?;
    let remembered = layer.remember(input, features, state, |weights, input| {
        dot_of_floats(0.0, weights, input)
    });
    remembered.ok_or(Fault::Shape(INPUT))?;

    let mut filter = (0, 0);
    let mut unit = 0;
    for k in 0..to.len() {
        let mut sum = bias.map_or(0.0, |bias| bias.get(unit));
        for _ in 0..layer.rank {
            let rows = layer.row(time, state.view(), filter);
            let (weights, past) = rows.ok_or(Fault::Shape(OUTPUT))?;
            sum += dot_of_floats(0.0, weights, past);
            filter = layer.next(filter);
        }
        to.set(k, activate(activation, sum).ok_or(Fault::Unsupported(1))?);
        unit = if unit + 1 < layer.units { unit + 1 } else { 0 };
    }
    Ok(())
}

/// An activation of the schema's `ActivationFunctionType`.
fn activate(activation: i8, x: f32) -> Option<f32> {
    Some(match activation {
        0 => x,
        1 => x.max(0.0),
        2 => clamp(x, -1.0, 1.0),
        3 => clamp(x, 0.0, 6.0),
        4 => libm::tanhf(x),
        5 => f32::from(u8::from(x.is_sign_negative())),
        _ => return None,
    })
}
