//! Sums, differences, products and quotients.

use super::broadcast::Operands;
use super::{Quantized, below_one, elementwise, expect_zero_point};
use crate::error::{Fault, Operand};
use crate::fixed::exp::reciprocal;
use crate::fixed::{Multiplier, activation, activation_range, activation_range_f32, clamp};
use crate::fixed::{doubling_high, rounding_shift_right};
use crate::kernel::{Code, Kernel};
use crate::memory::{Element, View, ViewMut};
use crate::node::{Node, Tensor};
use crate::types::Type;

/// `ADD`, of int8, int16, int32 and float32 (`add.cc`). int32 has no fused activation.
pub const ADD: Kernel = elementwise(Code::ADD, add);
/// [`ADD`] of int8 alone.
pub const ADD_INT8: Kernel = elementwise(Code::ADD, |node| {
    // Looked at where it is, since stacks are small.
    let t = Operands::new(node);
    let t = t.as_ref().map_err(|fault| *fault)?;
    t.output.expect(Type::INT8)?;
    add_quantized::<i8>(node, t)
});
/// `SUB`, of int8, int16, int32 and float32 (`sub.cc`).
pub const SUB: Kernel = elementwise(Code::SUB, sub);
/// `MUL`, of int8, int16, int32 and float32 (`mul.cc`). The zero points of int16 are 0.
pub const MUL: Kernel = elementwise(Code::MUL, mul);
/// [`MUL`] of int8 alone.
pub const MUL_INT8: Kernel = elementwise(Code::MUL, |node| {
    // Looked at where it is, since stacks are small.
    let t = Operands::new(node);
    let t = t.as_ref().map_err(|fault| *fault)?;
    t.output.expect(Type::INT8)?;
    mul_quantized::<i8>(node, t)
});
/// `DIV`, of int8, int32 and float32 (`div.cc`). No int32 is divided by 0.
pub const DIV: Kernel = elementwise(Code::DIV, div);
/// `FLOOR_DIV`, of float32 (`floor_div.cc`). Nothing is divided by 0.
pub const FLOOR_DIV: Kernel = elementwise(Code::FLOOR_DIV, floor_div);
/// `FLOOR_MOD`, of float32 (`floor_mod.cc`).
pub const FLOOR_MOD: Kernel = elementwise(Code::FLOOR_MOD, floor_mod);
/// `SQUARED_DIFFERENCE`, of int8, int16, int32 and float32 (`squared_difference.cc`). The zero points of int16 are 0.
pub const SQUARED_DIFFERENCE: Kernel = elementwise(Code::SQUARED_DIFFERENCE, squared_difference);
/// `ADD_N`, the sum of two or more tensors of one shape, of int8 with one quantization, and of float32 (`add_n.cc`).
pub const ADD_N: Kernel = elementwise(Code::ADD_N, add_n);

/// Where the options of ADD, SUB, MUL and DIV have the fused activation.
const ACTIVATION: u8 = 0;

fn fused(node: &Node<'_>) -> Result<i8, Fault> {
    node.options()?.i8(u16::from(ACTIVATION), activation::NONE)
}

fn range_i32(activation: i8) -> Result<(i32, i32), Fault> {
    Ok(match activation {
        activation::NONE => (i32::MIN, i32::MAX),
        activation::RELU => (0, i32::MAX),
        activation::RELU_N1_TO_1 => (-1, 1),
        activation::RELU6 => (0, 6),
        _ => return Err(Fault::Unsupported(ACTIVATION)),
    })
}

fn unquantized(tensor: &Tensor<'_>) -> Result<(), Fault> {
    match tensor.scales().is_empty() {
        true => Ok(()),
        false => Err(Fault::Quantization(tensor.operand())),
    }
}

/// `f` of two floats, in the range of the fused activation.
#[inline(always)]
fn of_floats(node: &Node<'_>, t: &Operands<'_>, f: impl Fn(f32, f32) -> f32) -> Result<(), Fault> {
    let (least, largest) = activation_range_f32(fused(node)?, ACTIVATION)?;
    t.compute(|a, b| clamp(f(a, b), least, largest))
}

/// `f` of two int32, in the range of the fused activation.
#[inline(always)]
fn of_integers(
    node: &Node<'_>,
    t: &Operands<'_>,
    f: impl Fn(i32, i32) -> i32,
) -> Result<(), Fault> {
    let (least, largest) = range_i32(fused(node)?)?;
    t.compute(|a, b| clamp(f(a, b), least, largest))
}

/// Two quantized inputs at one scale.
#[derive(Clone, Copy, Default)]
pub(super) struct Scaled {
    zero_points: [i32; 2],
    left: u32,
    factors: [Multiplier; 2],
}

impl Scaled {
    /// The inputs as integers of `2^left` units each, at a scale of `unit`, which is above theirs.
    pub(super) fn new(t: &Operands<'_>, left: u32, unit: f32) -> Result<Self, Fault> {
        let mut scaled = Self::default();
        scaled.set(t, left, unit)?;
        Ok(scaled)
    }

    #[inline(always)]
    fn set(&mut self, t: &Operands<'_>, left: u32, unit: f32) -> Result<(), Fault> {
        let ([zero_a, zero_b], [factor_a, factor_b]) = (&mut self.zero_points, &mut self.factors);
        Self::one(zero_a, factor_a, &t.a, unit)?;
        Self::one(zero_b, factor_b, &t.b, unit)?;
        self.left = left;
        Ok(())
    }

    #[inline(never)]
    fn one(
        zero_point: &mut i32,
        factor: &mut Multiplier,
        tensor: &Tensor<'_>,
        unit: f32,
    ) -> Result<(), Fault> {
        *zero_point = tensor.zero_point();
        *factor = below_one(tensor.scale()?, 1.0, unit, tensor)?;
        Ok(())
    }

    #[inline(always)]
    pub(super) fn of(&self, a: i32, b: i32) -> (i32, i32) {
        let scaled = |x: i32, zero_point: i32, factor: Multiplier| {
            let shifted = x.wrapping_sub(zero_point).wrapping_shl(self.left);
            factor.shrink(shifted)
        };
        let ([zero_a, zero_b], [factor_a, factor_b]) = (self.zero_points, self.factors);
        (scaled(a, zero_a, factor_a), scaled(b, zero_b, factor_b))
    }
}

/// A quantized result: factor, zero point, least, largest.
#[derive(Clone, Copy, Default)]
struct Out {
    factor: Multiplier,
    zero_point: i32,
    least: i32,
    largest: i32,
}

impl Out {
    fn new(factor: Multiplier, output: &Tensor<'_>, activation: i8) -> Result<Self, Fault> {
        let mut out = Self {
            factor,
            ..Self::default()
        };
        out.range(output, activation)?;
        Ok(out)
    }

    #[inline(never)]
    fn range(&mut self, output: &Tensor<'_>, activation: i8) -> Result<(), Fault> {
        (self.least, self.largest) = activation_range(output, activation, ACTIVATION)?;
        self.zero_point = output.zero_point();
        Ok(())
    }

    #[inline(always)]
    fn clamp<T: Quantized>(&self, x: i32) -> T {
        T::truncated(clamp(
            x.wrapping_add(self.zero_point),
            self.least,
            self.largest,
        ))
    }
}

/// `2^-exponent`, of a small exponent.
fn unit(exponent: u32) -> f32 {
    1.0 / 1u32.wrapping_shl(exponent) as f32
}

/// Twice the larger scale of the two inputs.
fn twice_larger(t: &Operands<'_>) -> Result<f32, Fault> {
    let (a, b) = (t.a.scale()?, t.b.scale()?);
    Ok(2.0 * if a < b { b } else { a })
}

/// What a quantized sum takes. Filled in place, since stacks are small.
#[derive(Default)]
struct Sum {
    scaled: Scaled,
    out: Out,
}

impl Sum {
    #[inline(never)]
    fn set(&mut self, node: &Node<'_>, t: &Operands<'_>) -> Result<(), Fault> {
        // 16 bits and their sign leave 15.
        let left = match t.output.element_type() {
            Type::INT16 => 15,
            _ => 20,
        };
        let twice = twice_larger(t)?;
        self.scaled.set(t, left, twice)?;
        self.out.factor = below_one(twice, unit(left), t.output.scale()?, &t.output)?;
        self.out.range(&t.output, fused(node)?)
    }
}

fn add_quantized<T: Quantized>(node: &Node<'_>, t: &Operands<'_>) -> Result<(), Fault> {
    t.one_type()?;
    let mut sum = Sum::default();
    sum.set(node, t)?;
    let (scaled, out) = (&sum.scaled, &sum.out);
    t.compute(|a: T, b: T| -> T {
        let (a, b) = scaled.of(a.into(), b.into());
        out.clamp(out.factor.shrink(a.wrapping_add(b)))
    })
}

fn add(node: &Node<'_>) -> Result<(), Fault> {
    // Looked at where it is, since stacks are small.
    let t = Operands::new(node);
    let t = t.as_ref().map_err(|fault| *fault)?;
    match t.one_type()? {
        Type::INT8 => add_quantized::<i8>(node, t),
        Type::INT16 => add_quantized::<i16>(node, t),
        Type::FLOAT32 => of_floats(node, t, |a, b| a + b),
        Type::INT32 => {
            unquantized(&t.a)?;
            unquantized(&t.b)?;
            t.compute(i32::wrapping_add)
        }
        _ => Err(t.output.wrong_type()),
    }
}

fn sub_quantized<T: Quantized>(node: &Node<'_>, t: &Operands<'_>) -> Result<(), Fault> {
    let mut sum = Sum::default();
    sum.set(node, t)?;
    let (scaled, out) = (&sum.scaled, &sum.out);
    t.compute(|a: T, b: T| -> T {
        let (a, b) = scaled.of(a.into(), b.into());
        out.clamp(out.factor.shrink(a.wrapping_sub(b)))
    })
}

fn sub(node: &Node<'_>) -> Result<(), Fault> {
    // Looked at where it is, since stacks are small.
    let t = Operands::new(node);
    let t = t.as_ref().map_err(|fault| *fault)?;
    match t.one_type()? {
        Type::INT8 => sub_quantized::<i8>(node, t),
        Type::INT16 => sub_quantized::<i16>(node, t),
        Type::FLOAT32 => of_floats(node, t, |a, b| a - b),
        Type::INT32 => {
            unquantized(&t.a)?;
            unquantized(&t.b)?;
            unquantized(&t.output)?;
            of_integers(node, t, i32::wrapping_sub)
        }
        _ => Err(t.output.wrong_type()),
    }
}

#[inline(never)]
fn mul_prepare(node: &Node<'_>, t: &Operands<'_>) -> Result<Out, Fault> {
    let factor = Multiplier::of_scales(t.a.scale()?, t.b.scale()?, t.output.scale()?);
    Out::new(factor, &t.output, fused(node)?)
}

fn mul_quantized<T: Quantized>(node: &Node<'_>, t: &Operands<'_>) -> Result<(), Fault> {
    t.one_type()?;
    let out = mul_prepare(node, t)?;
    let (zero_a, zero_b) = (t.a.zero_point(), t.b.zero_point());
    t.compute(|a: T, b: T| -> T {
        let (a, b) = (a.into().wrapping_sub(zero_a), b.into().wrapping_sub(zero_b));
        out.clamp(out.factor.apply(a.wrapping_mul(b)))
    })
}

fn mul(node: &Node<'_>) -> Result<(), Fault> {
    // Looked at where it is, since stacks are small.
    let t = Operands::new(node);
    let t = t.as_ref().map_err(|fault| *fault)?;
    match t.one_type()? {
        Type::INT8 => mul_quantized::<i8>(node, t),
        Type::INT16 => {
            for tensor in [&t.a, &t.b, &t.output] {
                expect_zero_point(tensor, 0)?;
            }
            mul_quantized::<i16>(node, t)
        }
        Type::FLOAT32 => of_floats(node, t, |a, b| a * b),
        Type::INT32 => of_integers(node, t, i32::wrapping_mul),
        _ => Err(t.output.wrong_type()),
    }
}

/// One quotient of `div.h`.
#[inline(never)]
fn quotient(a: i32, b: i32, factor: Multiplier) -> i32 {
    let (a, b) = match b < 0 {
        true => (a.wrapping_neg(), b.wrapping_neg()),
        false => (a, b),
    };
    let (inverse, right) = reciprocal(b, 31);
    // As far to the left as the sign leaves room.
    let headroom = match a {
        0 => 31,
        _ => (a ^ (a >> 31)).leading_zeros().wrapping_sub(1),
    };
    let unscaled = doubling_high(a.wrapping_shl(headroom), inverse);
    let scaled = doubling_high(unscaled, factor.multiplier);
    let shift = (right + headroom as i32 - factor.shift).max(0) as u32;
    match shift {
        0..=31 => rounding_shift_right(scaled, shift),
        // Undefined in C++: what TFLM makes of small quotients on x86-64.
        _ => scaled.wrapping_shr(shift) + i32::from(scaled >= 0),
    }
}

fn div(node: &Node<'_>) -> Result<(), Fault> {
    // Looked at where it is, since stacks are small.
    let t = Operands::new(node);
    let t = t.as_ref().map_err(|fault| *fault)?;
    match t.one_type()? {
        Type::INT8 => {
            let product = f64::from(t.b.scale()?) * f64::from(t.output.scale()?);
            let factor = Multiplier::new(f64::from(t.a.scale()?) / product);
            let out = Out::new(factor, &t.output, fused(node)?)?;
            let (zero_a, zero_b) = (t.a.zero_point(), t.b.zero_point());
            t.compute(|a: i8, b: i8| -> i8 {
                let a = i32::from(a).wrapping_sub(zero_a);
                let b = i32::from(b).wrapping_sub(zero_b);
                out.clamp(quotient(a, b, out.factor))
            })
        }
        Type::FLOAT32 => of_floats(node, t, |a, b| a / b),
        Type::INT32 => {
            unquantized(&t.a)?;
            unquantized(&t.b)?;
            if t.b.read::<i32>()?.iter().any(|divisor| divisor == 0) {
                return Err(t.b.wrong_value());
            }
            of_integers(node, t, |a, b| match b {
                0 => 0,
                _ => a.wrapping_div(b),
            })
        }
        _ => Err(t.output.wrong_type()),
    }
}

fn floor_div(node: &Node<'_>) -> Result<(), Fault> {
    // Looked at where it is, since stacks are small.
    let t = Operands::new(node);
    let t = t.as_ref().map_err(|fault| *fault)?;
    if t.one_type()? != Type::FLOAT32 {
        return Err(t.output.wrong_type());
    }
    if t.b.read::<f32>()?.iter().any(|divisor| divisor == 0.0) {
        return Err(t.b.wrong_value());
    }
    // A quotient of floats may be rounded up to the next whole number, one of doubles is not, unless it is whole.
    t.compute(|a: f32, b: f32| libm::floor(f64::from(a) / f64::from(b)) as f32)
}

fn floor_mod(node: &Node<'_>) -> Result<(), Fault> {
    // Looked at where it is, since stacks are small.
    let t = Operands::new(node);
    let t = t.as_ref().map_err(|fault| *fault)?;
    if t.one_type()? != Type::FLOAT32 {
        return Err(t.output.wrong_type());
    }
    t.compute(|a: f32, b: f32| {
        let rest = remainder(a, b);
        match rest != 0.0 && (b < 0.0) != (rest < 0.0) {
            true => rest + b,
            false => rest,
        }
    })
}

/// What a division of `a` by `b` leaves whose quotient is rounded to zero, without an error: C's `fmodf`.
///
/// For the compiler, the one of `libm` can panic.
#[inline(never)]
fn remainder(a: f32, b: f32) -> f32 {
    if !a.is_finite() || b.is_nan() || b == 0.0 {
        return f32::NAN;
    }
    // As f64, they are normal, and have room for each shift.
    let (mut rest, divisor) = (f64::from(a.abs()), f64::from(b.abs()));
    let exponent = |x: f64| (x.to_bits() >> 52) as i32;
    let shifts = exponent(rest).wrapping_sub(exponent(divisor));
    for shift in (0..shifts.wrapping_add(1)).rev() {
        let shifted = divisor.to_bits().wrapping_add((shift as u64) << 52);
        let step = f64::from_bits(shifted);
        if step <= rest {
            rest -= step;
        }
    }
    (rest as f32).copysign(a)
}

#[inline(never)]
fn squared_difference_prepare(t: &Operands<'_>) -> Result<(Scaled, Out), Fault> {
    let (left, least, largest) = match t.output.element_type() {
        Type::INT16 => (0, 0, 0),
        _ => (7, i32::from(i8::MIN), i32::from(i8::MAX)),
    };
    for tensor in [&t.a, &t.b, &t.output] {
        let zero_point = tensor.zero_point();
        if zero_point < least || zero_point > largest {
            return Err(Fault::Quantization(tensor.operand()));
        }
    }
    let twice = twice_larger(t)?;
    let factor = Multiplier::of_scales(twice, twice * unit(2 * left), t.output.scale()?);
    let out = Out::new(factor, &t.output, activation::NONE)?;
    Ok((Scaled::new(t, left, twice)?, out))
}

fn squared_difference_quantized<T: Quantized>(t: &Operands<'_>) -> Result<(), Fault> {
    let (scaled, out) = squared_difference_prepare(t)?;
    t.compute(|a: T, b: T| -> T {
        let (a, b) = scaled.of(a.into(), b.into());
        let difference = a.wrapping_sub(b);
        out.clamp(out.factor.apply(difference.wrapping_mul(difference)))
    })
}

fn squared_difference(node: &Node<'_>) -> Result<(), Fault> {
    // Looked at where it is, since stacks are small.
    let t = Operands::new(node);
    let t = t.as_ref().map_err(|fault| *fault)?;
    match t.one_type()? {
        Type::INT8 => squared_difference_quantized::<i8>(t),
        Type::INT16 => squared_difference_quantized::<i16>(t),
        Type::FLOAT32 => t.compute(|a: f32, b: f32| (a - b) * (a - b)),
        Type::INT32 => t.compute(|a: i32, b: i32| {
            let difference = a.wrapping_sub(b);
            difference.wrapping_mul(difference)
        }),
        _ => Err(t.output.wrong_type()),
    }
}

/// Elements that ADD_N sums before it writes them.
const LANES: usize = 32;

/// Calls `sum` with each input's elements of a block, then `write` with the output's, block by block.
fn blocks<T: Element, S: Copy>(
    node: &Node<'_>,
    zero: S,
    sum: impl Fn(&mut [S; LANES], View<'_, T>),
    write: impl Fn(&[S; LANES], ViewMut<'_, T>),
) -> Result<(), Fault> {
    let output = node.output(0)?.write::<T>()?;
    let mut start = 0;
    while start < output.len() {
        let len = LANES.min(output.len() - start);
        let mut sums = [zero; LANES];
        for k in 0..node.inputs() {
            let input = node.input(k)?;
            let part = input.read::<T>()?.part(start, len);
            sum(&mut sums, part.ok_or(input.wrong_shape())?);
        }
        if let Some(output) = output.part(start, len) {
            write(&sums, output);
        }
        start += len;
    }
    Ok(())
}

fn add_n(node: &Node<'_>) -> Result<(), Fault> {
    let (first, output) = (node.input(0)?, node.output(0)?);
    if node.inputs() < 2 {
        return Err(Fault::Missing(Operand::Input(1)));
    }
    output.expect(first.element_type())?;
    if output.len() != first.len() {
        return Err(output.wrong_shape());
    }
    for k in 1..node.inputs() {
        let input = node.input(k)?;
        input.expect(first.element_type())?;
        if input.shape() != first.shape() {
            return Err(input.wrong_shape());
        }
        if first.element_type() == Type::INT8
            && (input.zero_point() != first.zero_point() || input.scale()? != first.scale()?)
        {
            return Err(Fault::Quantization(input.operand()));
        }
    }
    match first.element_type() {
        Type::FLOAT32 => blocks::<f32, f32>(
            node,
            0.0,
            |sums, input| {
                for (sum, x) in sums.iter_mut().zip(input) {
                    *sum += x;
                }
            },
            |sums, output| {
                for (k, sum) in sums.iter().enumerate() {
                    output.set(k, *sum);
                }
            },
        ),
        Type::INT8 => {
            let twice = 2.0 * first.scale()?;
            let input = below_one(first.scale()?, 1.0, twice, &first)?;
            let factor = below_one(twice, unit(20), output.scale()?, &output)?;
            let out = Out::new(factor, &output, activation::NONE)?;
            let zero_point = first.zero_point();
            let scaled = |x: i32| input.shrink(x.wrapping_sub(zero_point).wrapping_shl(20));
            blocks::<i8, i32>(
                node,
                scaled(0),
                |sums, input| {
                    for (sum, x) in sums.iter_mut().zip(input) {
                        *sum = sum.wrapping_add(scaled(x.into()));
                    }
                },
                |sums, output| {
                    for (k, sum) in sums.iter().enumerate() {
                        output.set(k, out.clamp(out.factor.shrink(*sum)));
                    }
                },
            )
        }
        _ => Err(first.wrong_type()),
    }
}

#[cfg(test)]
mod tests {
    use super::remainder;

    /// Against the operator of the language, which is C's `fmodf`.
    #[test]
    fn remainders() {
        let ends = [
            0.0,
            1.0,
            1.5,
            3.0,
            f32::MIN_POSITIVE,
            1e-45,
            f32::MAX,
            f32::INFINITY,
            f32::NAN,
        ];
        let ends = ends.map(|x: f32| [x, -x]);
        let mut seed = 1u64;
        let mut random = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            f32::from_bits((seed >> 32) as u32)
        };
        let random = core::array::from_fn::<_, 300, _>(|_| random());
        for &a in ends.as_flattened().iter().chain(&random) {
            for &b in ends.as_flattened().iter().chain(&random) {
                let (found, right) = (remainder(a, b), a % b);
                let same = found.to_bits() == right.to_bits() || found.is_nan() && right.is_nan();
                assert!(same, "{a:e} by {b:e}: {found:e} for {right:e}");
            }
        }
    }
}
