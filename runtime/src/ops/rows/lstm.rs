//! UNIDIRECTIONAL_SEQUENCE_LSTM.
//!
//! The rules are those of TFLM's `unidirectional_sequence_lstm.cc`, `lstm_eval.cc` and `lstm_eval_common.cc`: the standard
//! cell, with four gates and without peepholes, projection or normalisation. TFLM computes each gate for all units, in
//! scratch memory; here a unit's gates are computed together, and the output is where the new hidden state stays until the
//! old one is not read any more, so that none is needed.

use super::{dot, dot_of_floats, dot_wide};
use crate::error::{Fault, Operand};
use crate::fixed::{Multiplier, clamp};
use crate::kernel::{Code, Kernel};
use crate::memory::{Element, View};
use crate::node::{Node, Tensor};
use crate::ops::elementwise::{logistic_of_float, logistic_of_scaled, scaled_i16, tanh_of_scaled};
use crate::types::Type;

/// `UNIDIRECTIONAL_SEQUENCE_LSTM`: input `[batch, time, size]`, or with the time first, output `[batch, time, units]`,
/// hidden and cell state `[batch, units]`.
///
/// int8 with weights of int8, biases of int32 and a cell state of int16; int16 with weights of int8, biases of int64 and a
/// cell state of int16; float32.
pub const UNIDIRECTIONAL_SEQUENCE_LSTM: Kernel =
    Kernel::builtin(Code::UNIDIRECTIONAL_SEQUENCE_LSTM, |node| {
        let layer = Layer::new(node)?;
        match layer.input.element_type() {
            Type::INT8 => integers::<i8>(&layer),
            Type::INT16 => integers::<i16>(&layer),
            Type::FLOAT32 => floats(&layer),
            _ => Err(Fault::ElementType(Operand::Input(0))),
        }
    });
/// [`UNIDIRECTIONAL_SEQUENCE_LSTM`] of int8 alone.
pub const UNIDIRECTIONAL_SEQUENCE_LSTM_INT8: Kernel =
    Kernel::builtin(Code::UNIDIRECTIONAL_SEQUENCE_LSTM, |node| {
        integers::<i8>(&Layer::new(node)?)
    });
/// [`UNIDIRECTIONAL_SEQUENCE_LSTM`] of int16 alone.
pub const UNIDIRECTIONAL_SEQUENCE_LSTM_INT16: Kernel =
    Kernel::builtin(Code::UNIDIRECTIONAL_SEQUENCE_LSTM, |node| {
        integers::<i16>(&Layer::new(node)?)
    });
/// [`UNIDIRECTIONAL_SEQUENCE_LSTM`] of float32 alone.
pub const UNIDIRECTIONAL_SEQUENCE_LSTM_FLOAT32: Kernel =
    Kernel::builtin(Code::UNIDIRECTIONAL_SEQUENCE_LSTM, |node| {
        floats(&Layer::new(node)?)
    });

// Positions in the operator's inputs; those of the input's weights, the recurrent weights and the biases are of the input
// gate, and the forget, cell and output gates' follow.
const INPUT_WEIGHTS: usize = 1;
const RECURRENT_WEIGHTS: usize = 5;
const BIASES: usize = 12;
const HIDDEN_STATE: usize = 18;
const CELL_STATE: usize = 19;
const INPUTS: usize = 24;

const OPTION_ACTIVATION: u16 = 0;
const OPTION_CELL_CLIP: u16 = 1;
const OPTION_TIME_MAJOR: u16 = 3;
const ACTIVATION_TANH: i8 = 4;

/// The operator's tensors and sizes.
#[derive(Clone, Copy, Debug)]
struct Layer<'n, 'a> {
    node: &'n Node<'a>,
    input: Tensor<'a>,
    hidden: Tensor<'a>,
    cell: Tensor<'a>,
    output: Tensor<'a>,
    clip: f32,
    time_major: bool,
    batches: usize,
    steps: usize,
    size: usize,
    units: usize,
}

impl<'n, 'a> Layer<'n, 'a> {
    #[inline(never)]
    fn new(node: &'n Node<'a>) -> Result<Self, Fault> {
        let (input, output) = (node.input(0)?, node.output(0)?);
        let (hidden, cell) = (node.input(HIDDEN_STATE)?, node.input(CELL_STATE)?);
        let options = node.options()?;
        if options.i8(OPTION_ACTIVATION, 0)? != ACTIVATION_TANH {
            return Err(Fault::Unsupported(OPTION_ACTIVATION as u8));
        }
        let time_major = options.bool(OPTION_TIME_MAJOR, false)?;
        let [first, second, size] = input.shape().dims().ok_or(input.wrong_shape())?;
        let (batches, steps) = if time_major {
            (second, first)
        } else {
            (first, second)
        };
        let units = hidden.shape().dim(1);
        if output.shape().dims() != Some([first, second, units]) || output.is_empty() {
            return Err(output.wrong_shape());
        }
        for state in [&hidden, &cell] {
            if state.len() != batches * units {
                return Err(state.wrong_shape());
            }
            if !state.table().is_variable()? {
                return Err(state.wrong_value());
            }
        }
        hidden.expect(input.element_type())?;
        output.expect(input.element_type())?;
        if node.inputs() != INPUTS {
            return Err(Fault::Missing(Operand::Input(INPUTS as u8 - 1)));
        }
        // Peepholes, a projection, normalisations of layers.
        for position in [9, 10, 11, 16, 17, 20, 21, 22, 23] {
            if node.optional_input(position)?.is_some() {
                return Err(Fault::Value(Operand::Input(position as u8)));
            }
        }
        Ok(Self {
            node,
            input,
            hidden,
            cell,
            output,
            clip: options.f32(OPTION_CELL_CLIP, 0.0)?,
            time_major,
            batches,
            steps,
            size,
            units,
        })
    }

    /// The tensors of gate `gate`: input weights, recurrent weights, and the bias.
    #[inline(never)]
    fn gate(&self, gate: usize, weights: Type, bias: Type) -> Result<[Tensor<'a>; 3], Fault> {
        let input = self.node.input(INPUT_WEIGHTS + gate)?;
        let recurrent = self.node.input(RECURRENT_WEIGHTS + gate)?;
        let biases = self.node.input(BIASES + gate)?;
        input.expect(weights)?;
        recurrent.expect(weights)?;
        biases.expect(bias)?;
        if input.shape().dims() != Some([self.units, self.size]) {
            return Err(input.wrong_shape());
        }
        if recurrent.shape().dims() != Some([self.units, self.units]) {
            return Err(recurrent.wrong_shape());
        }
        if biases.shape().dims() != Some([self.units]) {
            return Err(biases.wrong_shape());
        }
        Ok([input, recurrent, biases])
    }

    /// Calls `unit` for each unit at each step, with the input's row, the hidden state's, and the places of the unit in the
    /// gates and in the cell state; what it gives is the unit's hidden state.
    #[inline(always)]
    fn each<T: Element>(
        &self,
        mut unit: impl FnMut(View<'a, T>, View<'a, T>, usize, usize) -> Option<T>,
    ) -> Result<(), Fault> {
        let (input, output) = (self.input.read::<T>()?, self.output.write::<T>()?);
        let state = self.hidden.write::<T>()?;
        let (mut batch, mut step) = (0, 0);
        for row in 0..self.batches * self.steps {
            let mut run = || {
                let from = input.part(row * self.size, self.size)?;
                let start = batch * self.units;
                let hidden = state.part(start, self.units)?;
                let to = output.part(row * self.units, self.units)?;
                for k in 0..self.units {
                    to.set(k, unit(from, hidden.view(), k, start + k)?);
                }
                hidden.copy_from(to.view());
                Some(())
            };
            run().ok_or(self.input.wrong_shape())?;
            if self.time_major {
                batch += 1;
                if batch == self.batches {
                    batch = 0;
                }
            } else {
                step += 1;
                if step == self.steps {
                    (batch, step) = (batch + 1, 0);
                }
            }
        }
        Ok(())
    }
}

/// An integer that goes in and out.
trait Activation: Element + Into<i32> {
    /// The type of biases.
    type Bias: Element;
    const TYPE: Type;
    const BIAS: Type;
    const LEAST: i32;

    fn narrow(x: i32) -> Self;

    /// What a row gives with the weights of one unit.
    fn connect(
        row: View<'_, Self>,
        offset: i32,
        weights: View<'_, i8>,
        weights_offset: i32,
        bias: Self::Bias,
        factor: Multiplier,
    ) -> i32;
}

impl Activation for i8 {
    type Bias = i32;
    const TYPE: Type = Type::INT8;
    const BIAS: Type = Type::INT32;
    const LEAST: i32 = -128;

    fn narrow(x: i32) -> Self {
        x as i8
    }

    #[inline(never)]
    fn connect(
        row: View<'_, i8>,
        offset: i32,
        weights: View<'_, i8>,
        weights_offset: i32,
        bias: i32,
        factor: Multiplier,
    ) -> i32 {
        let sum = dot(row, offset, weights, weights_offset);
        saturate(factor.apply(sum.wrapping_add(bias)))
    }
}

impl Activation for i16 {
    type Bias = i64;
    const TYPE: Type = Type::INT16;
    const BIAS: Type = Type::INT64;
    const LEAST: i32 = -32768;

    fn narrow(x: i32) -> Self {
        x as i16
    }

    #[inline(never)]
    fn connect(
        row: View<'_, i16>,
        offset: i32,
        weights: View<'_, i8>,
        weights_offset: i32,
        bias: i64,
        factor: Multiplier,
    ) -> i32 {
        let sum = dot_wide(row, offset, weights, weights_offset);
        saturate(factor.apply_wide(sum.wrapping_add(bias)))
    }
}

/// To the range of 16 bits.
#[inline(always)]
fn saturate(x: i32) -> i32 {
    clamp(x, -32768, 32767)
}

/// One half of a gate: weights of the input's row or of the hidden state's.
#[derive(Clone, Copy, Debug, Default)]
struct Half<'a> {
    weights: View<'a, i8>,
    weights_offset: i32,
    offset: i32,
    factor: Multiplier,
}

impl<'a> Half<'a> {
    /// The result is in units of 2^-12.
    fn new(input: &Tensor<'a>, weights: &Tensor<'a>) -> Result<Self, Fault> {
        let product = input.scale()? * weights.scale()?;
        Ok(Self {
            weights: weights.read::<i8>()?,
            weights_offset: weights.zero_point().wrapping_neg(),
            offset: input.zero_point().wrapping_neg(),
            factor: Multiplier::new(f64::from(product) * 4096.0),
        })
    }

    #[inline(always)]
    fn connect<T: Activation>(&self, row: View<'_, T>, unit: usize, bias: T::Bias) -> Option<i32> {
        let weights = self.weights.part(unit * row.len(), row.len())?;
        let (offset, weights_offset) = (self.offset, self.weights_offset);
        Some(T::connect(
            row,
            offset,
            weights,
            weights_offset,
            bias,
            self.factor,
        ))
    }
}

/// The product of two numbers in fixed point.
#[inline(always)]
fn multiply(a: i32, b: i32, factor: Multiplier) -> i32 {
    factor.apply(a.wrapping_mul(b))
}

fn integers<T: Activation>(layer: &Layer<'_, '_>) -> Result<(), Fault> {
    // Of what gates give.
    const UNIT: f64 = 1.0 / 32768.0;
    let (input, hidden, cell) = (&layer.input, &layer.hidden, &layer.cell);
    input.expect(T::TYPE)?;
    cell.expect(Type::INT16)?;
    let mut halves = [Half::default(); 8];
    let mut biases = [View::<T::Bias>::default(); 4];
    for (gate, (pair, bias)) in halves.chunks_exact_mut(2).zip(&mut biases).enumerate() {
        let [weights, recurrent, tensor] = layer.gate(gate, Type::INT8, T::BIAS)?;
        if let [of_input, of_hidden] = pair {
            *of_input = Half::new(input, &weights)?;
            *of_hidden = Half::new(hidden, &recurrent)?;
        }
        *bias = tensor.read::<T::Bias>()?;
    }
    let cell_scale = f64::from(cell.scale()?);
    let forget_factor = Multiplier::new(UNIT * cell_scale / cell_scale);
    let input_factor = Multiplier::new(UNIT * UNIT / cell_scale);
    let output_factor = Multiplier::new(UNIT * UNIT / f64::from(hidden.scale()?));
    let zero_point = hidden.zero_point();
    let clip = clamp(f64::from(layer.clip) / cell_scale, -32768.0, 32767.0) as i32;
    let (factor, right) = match log2(cell.scale()?) + 12 {
        left @ 0.. => (3i32.wrapping_shl(left as u32), 0),
        left => (3, left.unsigned_abs()),
    };
    let cell = cell.write::<i16>()?;

    layer.each::<T>(|row, hidden, unit, at| {
        let gate = |gate: usize| -> Option<i32> {
            let [of_input, of_hidden] = halves.as_chunks::<2>().0.get(gate)?;
            let from_input = of_input.connect(row, unit, biases.get(gate)?.get(unit))?;
            let from_hidden = of_hidden.connect(hidden, unit, T::Bias::default())?;
            Some(3 * saturate(from_input + from_hidden))
        };
        let forget = logistic_of_scaled(gate(1)?);
        let accept = logistic_of_scaled(gate(0)?);
        let candidate = tanh_of_scaled(gate(2)?);
        let kept = saturate(multiply(forget, cell.get(at).into(), forget_factor));
        let added = saturate(multiply(accept, candidate, input_factor));
        let mut next = saturate(kept + added);
        if layer.clip > 0.0 {
            next = clamp(next, -clip, clip);
        }
        cell.set(at, next as i16);
        let show = logistic_of_scaled(gate(3)?);
        let squashed = tanh_of_scaled(scaled_i16(next as i16, factor, right));
        let shown = multiply(squashed, show, output_factor).wrapping_add(zero_point);
        Some(T::narrow(clamp(shown, T::LEAST, -1 - T::LEAST)))
    })
}

/// The exponent of the power of two that is nearest to a scale.
fn log2(scale: f32) -> i32 {
    let bits = scale.to_bits();
    let exponent = (bits >> 23 & 0xff) as i32 - 127;
    let mantissa = f32::from_bits(bits & 0x007f_ffff | 0x3f80_0000);
    exponent + i32::from(mantissa > core::f32::consts::SQRT_2)
}

fn floats(layer: &Layer<'_, '_>) -> Result<(), Fault> {
    layer.input.expect(Type::FLOAT32)?;
    layer.cell.expect(Type::FLOAT32)?;
    let mut gates = [[View::<f32>::default(); 3]; 4];
    for (gate, views) in gates.iter_mut().enumerate() {
        let tensors = layer.gate(gate, Type::FLOAT32, Type::FLOAT32)?;
        for (view, tensor) in views.iter_mut().zip(tensors) {
            *view = tensor.read::<f32>()?;
        }
    }
    let clip = layer.clip;
    let cell = layer.cell.write::<f32>()?;
    layer.each::<f32>(|row, hidden, unit, at| {
        let gate = |gate: usize| -> Option<f32> {
            let [weights, recurrent, bias] = gates.get(gate)?;
            let weights = weights.part(unit * row.len(), row.len())?;
            let recurrent = recurrent.part(unit * hidden.len(), hidden.len())?;
            let from_input = dot_of_floats(0.0, row, weights) + bias.get(unit);
            Some(from_input + dot_of_floats(0.0, hidden, recurrent))
        };
        let kept = logistic_of_float(gate(1)?) * cell.get(at);
        let mut next = kept + logistic_of_float(gate(0)?) * libm::tanhf(gate(2)?);
        if clip > 0.0 {
            next = clamp(next, -clip, clip);
        }
        cell.set(at, next);
        Some(libm::tanhf(next) * logistic_of_float(gate(3)?))
    })
}
