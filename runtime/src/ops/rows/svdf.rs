//! SVDF, a recurrent layer of a rank-limited filter over time.
//!
//! The rules are those of TFLM's `svdf_common.cc`. TFLM keeps what filters give in scratch memory; here each output is
//! summed up at once, and none is needed.

use super::{dot, dot_of_floats};
use crate::contract::Contract;
use crate::error::{Fault, Operand};
use crate::fixed::{Multiplier, clamp};
use crate::kernel::{Code, Kernel};
use crate::memory::{Element, View, ViewMut};
use crate::node::{Node, Tensor};
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
    match node.input(0)?.element_type() {
        Type::INT8 => svdf_int8(node),
        Type::FLOAT32 => svdf_float(node),
        _ => Err(Fault::ElementType(Operand::Input(0))),
    }
}

/// The operator's tensors, of which types are not checked, and their sizes.
#[derive(Clone, Copy, Debug)]
struct Layer<'a> {
    input: Tensor<'a>,
    features: Tensor<'a>,
    time: Tensor<'a>,
    bias: Option<Tensor<'a>>,
    state: Tensor<'a>,
    output: Tensor<'a>,
    size: usize,
    filters: usize,
    memory: usize,
    rank: usize,
    units: usize,
}

impl<'a> Layer<'a> {
    #[inline(never)]
    fn new(node: &Node<'a>) -> Result<Self, Fault> {
        let (input, features, time) = (node.input(0)?, node.input(1)?, node.input(2)?);
        let (bias, state, output) = (node.optional_input(3)?, node.input(4)?, node.output(0)?);
        let [batches, size] = input.shape().dims().ok_or(input.wrong_shape())?;
        let [filters, feature_size] = features.shape().dims().ok_or(features.wrong_shape())?;
        if feature_size != size || filters == 0 {
            return Err(features.wrong_shape());
        }
        let [time_filters, memory] = time.shape().dims().ok_or(time.wrong_shape())?;
        if time_filters != filters || memory == 0 {
            return Err(time.wrong_shape());
        }
        let rank = usize::try_from(node.options()?.i32(0, 0)?).unwrap_or(0);
        let units = filters.checked_div(rank).unwrap_or(0);
        if units * rank != filters {
            return Err(Fault::Unsupported(0));
        }
        if bias.is_some_and(|bias| bias.len() != units) {
            return Err(Fault::Shape(Operand::Input(3)));
        }
        if state.shape().dims() != Some([batches, memory.saturating_mul(filters)]) {
            return Err(state.wrong_shape());
        }
        if output.shape().dims() != Some([batches, units]) {
            return Err(output.wrong_shape());
        }
        if !state.table().is_variable()? {
            return Err(state.wrong_value());
        }
        Ok(Self {
            input,
            features,
            time,
            bias,
            state,
            output,
            size,
            filters,
            memory,
            rank,
            units,
        })
    }

    /// Moves the state on by one step, and puts what `feature` makes of each row of the input and of the weights there.
    #[inline(always)]
    fn remember<T: Element, S: Element>(
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

    /// The rows of the time weights and of the state for `filter` of all batches' filters.
    #[inline(always)]
    fn row<S: Element>(
        &self,
        time: View<'a, S>,
        state: View<'a, S>,
        filter: usize,
    ) -> Option<(View<'a, S>, View<'a, S>)> {
        let weights = filter.checked_rem(self.filters)? * self.memory;
        Some((
            time.part(weights, self.memory)?,
            state.part(filter * self.memory, self.memory)?,
        ))
    }
}

fn svdf_int8(node: &Node<'_>) -> Result<(), Fault> {
    let layer = Layer::new(node)?;
    match layer.time.element_type() {
        Type::INT8 => integers::<i8>(&layer),
        Type::INT16 => integers::<i16>(&layer),
        _ => Err(layer.time.wrong_type()),
    }
}

fn integers<'a, S: Element + Into<i32> + TryFrom<i32>>(layer: &Layer<'a>) -> Result<(), Fault> {
    let &Layer {
        input,
        features,
        time,
        bias,
        state,
        output,
        ..
    } = layer;
    for tensor in [&input, &features, &output] {
        tensor.expect(Type::INT8)?;
    }
    state.expect(time.element_type())?;
    let state_scale = state.scale()?;
    let products = state_scale * time.scale()?;
    // In doubles throughout, as the wheel has them, though TFLM's source multiplies floats.
    let feature_factor =
        f64::from(input.scale()?) * f64::from(features.scale()?) / f64::from(state_scale);
    let feature_factor = Multiplier::new(feature_factor);
    let output_factor = Multiplier::new(
        f64::from(state_scale) * f64::from(time.scale()?) / f64::from(output.scale()?),
    );
    let bias = match bias {
        Some(bias) => {
            bias.expect(Type::INT32)?;
            let off = f64::from(bias.scale()?) - f64::from(products);
            if !(-1e-5..1e-5).contains(&off) {
                return Err(Fault::Quantization(bias.operand()));
            }
            Some(bias.read::<i32>()?)
        }
        None => None,
    };
    let input_offset = input.zero_point().wrapping_neg();
    let state_zero = state.zero_point();
    let output_zero = output.zero_point();
    let (time, state) = (time.read::<S>()?, state.write::<S>()?);
    let largest = (1i32 << (8 * size_of::<S>() - 1)) - 1;

    let remembered = layer.remember(
        input.read::<i8>()?,
        features.read::<i8>()?,
        state,
        |weights, input| {
            let scaled = feature_factor.apply(dot(weights, 0, input, input_offset));
            let limited = clamp(scaled, -1 - largest, largest).wrapping_add(state_zero);
            // As a conversion in C: the low bits.
            let bits = 32 - 8 * size_of::<S>() as u32;
            S::try_from(limited << bits >> bits).unwrap_or_default()
        },
    );
    remembered.ok_or(input.wrong_shape())?;

    let to = output.write::<i8>()?;
    let mut filter = 0;
    let mut unit = 0;
    for k in 0..to.len() {
        let mut sum = bias.map_or(0, |bias| bias.get(unit));
        for _ in 0..layer.rank {
            let rows = layer.row(time, state.view(), filter);
            let (weights, past) = rows.ok_or(output.wrong_shape())?;
            sum = sum.wrapping_add(dot(weights, 0, past, state_zero.wrapping_neg()));
            filter += 1;
        }
        let scaled = output_factor.apply(sum).wrapping_add(output_zero);
        to.set(k, clamp(scaled, -128, 127) as i8);
        unit = if unit + 1 < layer.units { unit + 1 } else { 0 };
    }
    Ok(())
}

fn svdf_float(node: &Node<'_>) -> Result<(), Fault> {
    let layer = Layer::new(node)?;
    let Layer {
        input,
        features,
        time,
        bias,
        state,
        output,
        ..
    } = layer;
    for tensor in [&input, &features, &time, &state, &output] {
        tensor.expect(Type::FLOAT32)?;
    }
    let activation = node.options()?.i8(1, 0)?;
    let bias = match bias {
        Some(bias) => {
            bias.expect(Type::FLOAT32)?;
            Some(bias.read::<f32>()?)
        }
        None => None,
    };
    let (time, state) = (time.read::<f32>()?, state.write::<f32>()?);
    let remembered = layer.remember(
        input.read::<f32>()?,
        features.read::<f32>()?,
        state,
        |weights, input| dot_of_floats(0.0, weights, input),
    );
    remembered.ok_or(input.wrong_shape())?;

    let to = output.write::<f32>()?;
    let mut filter = 0;
    let mut unit = 0;
    for k in 0..to.len() {
        let mut sum = bias.map_or(0.0, |bias| bias.get(unit));
        for _ in 0..layer.rank {
            let rows = layer.row(time, state.view(), filter);
            let (weights, past) = rows.ok_or(output.wrong_shape())?;
            sum += dot_of_floats(0.0, weights, past);
            filter += 1;
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
