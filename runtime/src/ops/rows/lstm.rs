//! UNIDIRECTIONAL_SEQUENCE_LSTM.
//!
//! The rules are those of TFLM's `unidirectional_sequence_lstm.cc`, `lstm_eval.cc` and `lstm_eval_common.cc`: the standard
//! cell, with four gates and without peepholes, projection or normalisation. TFLM computes each gate for all units, in
//! scratch memory; here a unit's gates are computed together, and the output is where the new hidden state stays until the
//! old one is not read any more, so that none is needed.

use super::{
    INPUT, OUTPUT, dims, dot, dot_of_bytes, dot_wide, four_dots_of_floats, quantization, read,
    state, tensor, type_of, write,
};
use crate::error::{Fault, Operand};
use crate::fixed::{Multiplier, clamp};
use crate::kernel::{Code, Kernel};
use crate::memory::{Element, View};
use crate::node::Node;
use crate::ops::elementwise::{logistic_of_float, logistic_of_scaled, scaled_i16, tanh_of_scaled};
use crate::types::Type;

/// `UNIDIRECTIONAL_SEQUENCE_LSTM`: input `[batch, time, size]`, or with the time first, output `[batch, time, units]`,
/// hidden and cell state `[batch, units]`.
///
/// int8 with weights of int8, biases of int32 and a cell state of int16; int16 with weights of int8, biases of int64 and a
/// cell state of int16; float32.
pub const UNIDIRECTIONAL_SEQUENCE_LSTM: Kernel =
    Kernel::builtin(Code::UNIDIRECTIONAL_SEQUENCE_LSTM, |node| {
        match type_of(node, INPUT)? {
            Type::INT8 => integers::<i8>(node),
            Type::INT16 => integers::<i16>(node),
            Type::FLOAT32 => floats(node),
            _ => Err(Fault::ElementType(INPUT)),
        }
    });
/// [`UNIDIRECTIONAL_SEQUENCE_LSTM`] of int8 alone.
pub const UNIDIRECTIONAL_SEQUENCE_LSTM_INT8: Kernel =
    Kernel::builtin(Code::UNIDIRECTIONAL_SEQUENCE_LSTM, integers::<i8>);
/// [`UNIDIRECTIONAL_SEQUENCE_LSTM`] of int16 alone.
pub const UNIDIRECTIONAL_SEQUENCE_LSTM_INT16: Kernel =
    Kernel::builtin(Code::UNIDIRECTIONAL_SEQUENCE_LSTM, integers::<i16>);
/// [`UNIDIRECTIONAL_SEQUENCE_LSTM`] of float32 alone.
pub const UNIDIRECTIONAL_SEQUENCE_LSTM_FLOAT32: Kernel =
    Kernel::builtin(Code::UNIDIRECTIONAL_SEQUENCE_LSTM, floats);

// Positions in the operator's inputs; those of the input's weights, the recurrent weights and the biases are of the input
// gate, and the forget, cell and output gates' follow.
const INPUT_WEIGHTS: u8 = 1;
const RECURRENT_WEIGHTS: u8 = 5;
const BIASES: u8 = 12;
const HIDDEN_STATE: u8 = 18;
const CELL_STATE: u8 = 19;
const INPUTS: usize = 24;

const OPTION_ACTIVATION: u16 = 0;
const OPTION_CELL_CLIP: u16 = 1;
const OPTION_TIME_MAJOR: u16 = 3;
const ACTIVATION_TANH: i8 = 4;

/// The operator's sizes and options.
#[derive(Clone, Copy, Debug)]
struct Layer {
    clip: f32,
    time_major: bool,
    batches: usize,
    steps: usize,
    size: usize,
    units: usize,
}

impl Layer {
    #[inline(never)]
    fn new(node: &Node<'_>) -> Result<Self, Fault> {
        let options = node.options()?;
        if options.i8(OPTION_ACTIVATION, 0)? != ACTIVATION_TANH {
            return Err(Fault::Unsupported(OPTION_ACTIVATION as u8));
        }
        let time_major = options.bool(OPTION_TIME_MAJOR, false)?;
        let [first, second, size] = dims(node, INPUT)?;
        let (batches, steps) = if time_major {
            (second, first)
        } else {
            (first, second)
        };
        let hidden = Operand::Input(HIDDEN_STATE);
        let units = tensor(node, hidden)?.shape().dim(1);
        if dims(node, OUTPUT)? != [first, second, units] {
            return Err(Fault::Shape(OUTPUT));
        }
        if node.inputs() != INPUTS {
            return Err(Fault::Missing(Operand::Input(INPUTS as u8 - 1)));
        }
        // Peepholes, a projection, normalisations of layers.
        for position in [9, 10, 11, 16, 17, 20, 21, 22, 23] {
            if is_given(node, position)? {
                return Err(Fault::Value(Operand::Input(position)));
            }
        }
        Ok(Self {
            clip: options.f32(OPTION_CELL_CLIP, 0.0)?,
            time_major,
            batches,
            steps,
            size,
            units,
        })
    }

    /// Elements of a state.
    fn state_len(&self) -> usize {
        self.batches * self.units
    }

    /// The weights in input `index`, of rows of `len` elements for each unit.
    #[inline(never)]
    fn weights<'a, W: Element>(
        &self,
        node: &Node<'a>,
        index: u8,
        len: usize,
        weights: Type,
    ) -> Result<View<'a, W>, Fault> {
        if dims(node, Operand::Input(index))? != [self.units, len] {
            return Err(Fault::Shape(Operand::Input(index)));
        }
        read(node, index, weights)
    }

    /// The biases of gate `gate`.
    #[inline(never)]
    fn biases<'a, B: Element>(
        &self,
        node: &Node<'a>,
        gate: u8,
        bias: Type,
    ) -> Result<View<'a, B>, Fault> {
        if dims(node, Operand::Input(BIASES + gate))? != [self.units] {
            return Err(Fault::Shape(Operand::Input(BIASES + gate)));
        }
        read(node, BIASES + gate, bias)
    }

    /// Calls `unit` for each unit at each step, with the input's row, the hidden state's, and the places of the unit in the
    /// gates and in the cell state; what it gives is the unit's hidden state.
    #[inline(always)]
    fn each<'a, T: Element>(
        &self,
        node: &Node<'a>,
        element_type: Type,
        mut unit: impl FnMut(View<'a, T>, View<'a, T>, usize, usize) -> Option<T>,
    ) -> Result<(), Fault> {
        let input = read::<T>(node, 0, element_type)?;
        let output = write::<T>(node, OUTPUT, element_type)?;
        let state = state::<T>(node, HIDDEN_STATE, element_type, self.state_len())?;
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
            run().ok_or(Fault::Shape(INPUT))?;
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

/// Whether an input is given.
#[inline(never)]
fn is_given(node: &Node<'_>, index: u8) -> Result<bool, Fault> {
    Ok(node.optional_input(index.into())?.is_some())
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
        let sum = match weights_offset {
            0 => dot_of_bytes(row, offset, weights),
            _ => dot(row, offset, weights, weights_offset),
        };
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
    /// Of weights in input `index` for rows of `len` elements like those of `operand`. The result is in units of 2^-12.
    #[inline(never)]
    fn new(
        node: &Node<'a>,
        layer: &Layer,
        operand: Operand,
        index: u8,
        len: usize,
    ) -> Result<Self, Fault> {
        let (scale, zero_point) = quantization(node, operand)?;
        let (weights_scale, weights_zero) = quantization(node, Operand::Input(index))?;
        Ok(Self {
            weights: layer.weights(node, index, len, Type::INT8)?,
            weights_offset: weights_zero.wrapping_neg(),
            offset: zero_point.wrapping_neg(),
            factor: Multiplier::of_scales(scale, weights_scale, 1.0 / 4096.0),
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

/// How products and the cell state are scaled.
#[derive(Clone, Copy, Debug)]
struct Scaling {
    forget: Multiplier,
    input: Multiplier,
    output: Multiplier,
    zero_point: i32,
    clip: i32,
    /// What takes the cell state to units of 1 / (3 * 2^12): a factor and a shift to the right.
    cell: (i32, u32),
}

impl Scaling {
    #[inline(never)]
    fn new(node: &Node<'_>, clip: f32) -> Result<Self, Fault> {
        // Of what gates give.
        const UNIT: f32 = 1.0 / 32768.0;
        let (cell, _) = quantization(node, Operand::Input(CELL_STATE))?;
        let (hidden, zero_point) = quantization(node, Operand::Input(HIDDEN_STATE))?;
        let clip = f64::from(clip) / f64::from(cell);
        Ok(Self {
            forget: Multiplier::of_scales(UNIT, cell, cell),
            input: Multiplier::of_scales(UNIT, UNIT, cell),
            output: Multiplier::of_scales(UNIT, UNIT, hidden),
            zero_point,
            clip: clamp(clip, -32768.0, 32767.0) as i32,
            cell: match log2(cell) + 12 {
                left @ 0.. => (3i32.wrapping_shl(left as u32), 0),
                left => (3, left.unsigned_abs()),
            },
        })
    }
}

fn integers<T: Activation>(node: &Node<'_>) -> Result<(), Fault> {
    let layer = Layer::new(node)?;
    let mut halves = [Half::default(); 8];
    let mut biases = [View::<T::Bias>::default(); 4];
    for (gate, (pair, bias)) in (0..).zip(halves.chunks_exact_mut(2).zip(&mut biases)) {
        if let [of_input, of_hidden] = pair {
            let hidden = Operand::Input(HIDDEN_STATE);
            let (index, recurrent) = (INPUT_WEIGHTS + gate, RECURRENT_WEIGHTS + gate);
            *of_input = Half::new(node, &layer, INPUT, index, layer.size)?;
            *of_hidden = Half::new(node, &layer, hidden, recurrent, layer.units)?;
        }
        *bias = layer.biases(node, gate, T::BIAS)?;
    }
    let scaling = Scaling::new(node, layer.clip)?;
    let cell = state::<i16>(node, CELL_STATE, Type::INT16, layer.state_len())?;

    layer.each::<T>(node, T::TYPE, |row, hidden, unit, at| {
        let gate = |gate: usize| -> Option<i32> {
            let [of_input, of_hidden] = halves.as_chunks::<2>().0.get(gate)?;
            let from_input = of_input.connect(row, unit, biases.get(gate)?.get(unit))?;
            let from_hidden = of_hidden.connect(hidden, unit, T::Bias::default())?;
            Some(3 * saturate(from_input + from_hidden))
        };
        let forget = logistic_of_scaled(gate(1)?);
        let accept = logistic_of_scaled(gate(0)?);
        let candidate = tanh_of_scaled(gate(2)?);
        let kept = saturate(multiply(forget, cell.get(at).into(), scaling.forget));
        let added = saturate(multiply(accept, candidate, scaling.input));
        let mut next = saturate(kept + added);
        if layer.clip > 0.0 {
            next = clamp(next, -scaling.clip, scaling.clip);
        }
        cell.set(at, next as i16);
        let show = logistic_of_scaled(gate(3)?);
        let squashed = tanh_of_scaled(scaled_i16(next as i16, scaling.cell.0, scaling.cell.1));
        let shown = multiply(squashed, show, scaling.output).wrapping_add(scaling.zero_point);
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

fn floats(node: &Node<'_>) -> Result<(), Fault> {
    let layer = Layer::new(node)?;
    let [mut weights, mut recurrent, mut biases] = [[View::<f32>::default(); 4]; 3];
    for (gate, weights) in (0..).zip(&mut weights) {
        *weights = layer.weights(node, INPUT_WEIGHTS + gate, layer.size, Type::FLOAT32)?;
    }
    for (gate, weights) in (0..).zip(&mut recurrent) {
        *weights = layer.weights(node, RECURRENT_WEIGHTS + gate, layer.units, Type::FLOAT32)?;
    }
    for (gate, biases) in (0..).zip(&mut biases) {
        *biases = layer.biases(node, gate, Type::FLOAT32)?;
    }
    let clip = layer.clip;
    let cell = state::<f32>(node, CELL_STATE, Type::FLOAT32, layer.state_len())?;
    layer.each::<f32>(node, Type::FLOAT32, |row, hidden, unit, at| {
        // Sums of all four gates at a time, since each of them waits for itself.
        let sums = |row: View<'_, f32>, weights: &[View<'_, f32>; 4]| {
            let mut parts = [View::default(); 4];
            for (part, weights) in parts.iter_mut().zip(weights) {
                *part = weights.part(unit * row.len(), row.len())?;
            }
            Some(four_dots_of_floats(row, &parts))
        };
        let from_hidden = sums(hidden, &recurrent)?;
        let mut gates = sums(row, &weights)?;
        for ((gate, bias), from_hidden) in gates.iter_mut().zip(&biases).zip(from_hidden) {
            *gate = (*gate + bias.get(unit)) + from_hidden;
        }
        let [accept, forget, candidate, show] = gates;
        let kept = logistic_of_float(forget) * cell.get(at);
        let mut next = kept + logistic_of_float(accept) * libm::tanhf(candidate);
        if clip > 0.0 {
            next = clamp(next, -clip, clip);
        }
        cell.set(at, next);
        Some(libm::tanhf(next) * logistic_of_float(show))
    })
}
