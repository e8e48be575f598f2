//! LOGISTIC and TANH.

use super::sigmoid_table::SIGMOID;
use super::{Pair, Quantized, elementwise, expect_zero_point};
use crate::error::Fault;
use crate::fixed::logistic::{logistic, tanh};
use crate::fixed::{Multiplier, rounding_shift_right};
use crate::kernel::{Code, Kernel};
use crate::node::{Node, Tensor};
use crate::types::Type;

/// `LOGISTIC`, of int8, int16 and float32 (`logistic.cc`).
///
/// The output's zero point is -128 for int8. For int16 zero points are 0 and the output's scale is `2^-15`.
pub const LOGISTIC: Kernel = elementwise(Code::LOGISTIC, |node| {
    let (pair, element_type) = Pair::of_one_type(node)?;
    match element_type {
        Type::INT8 => logistic_i8(&pair),
        Type::INT16 => logistic_i16(&pair),
        _ => logistic_f32(&pair),
    }
});
/// [`LOGISTIC`] of int8 alone.
pub const LOGISTIC_INT8: Kernel = elementwise(Code::LOGISTIC, |node| {
    logistic_i8(&of_type(node, Type::INT8)?)
});
/// [`LOGISTIC`] of int16 alone.
pub const LOGISTIC_INT16: Kernel = elementwise(Code::LOGISTIC, |node| {
    logistic_i16(&of_type(node, Type::INT16)?)
});
/// [`LOGISTIC`] of float32 alone.
pub const LOGISTIC_FLOAT32: Kernel = elementwise(Code::LOGISTIC, |node| {
    logistic_f32(&of_type(node, Type::FLOAT32)?)
});
/// `TANH`, of int8, int16 and float32 (`tanh.cc`).
///
/// int8 gives 128 units for 1, whatever the output's scale is. For int16 zero points are 0 and the output's scale is `2^-15`.
pub const TANH: Kernel = elementwise(Code::TANH, |node| {
    let (pair, element_type) = Pair::of_one_type(node)?;
    match element_type {
        Type::INT8 => tanh_i8(&pair),
        Type::INT16 => tanh_i16(&pair),
        _ => tanh_f32(&pair),
    }
});
/// [`TANH`] of int8 alone.
pub const TANH_INT8: Kernel = elementwise(Code::TANH, |node| tanh_i8(&of_type(node, Type::INT8)?));
/// [`TANH`] of int16 alone.
pub const TANH_INT16: Kernel =
    elementwise(Code::TANH, |node| tanh_i16(&of_type(node, Type::INT16)?));
/// [`TANH`] of float32 alone.
pub const TANH_FLOAT32: Kernel =
    elementwise(Code::TANH, |node| tanh_f32(&of_type(node, Type::FLOAT32)?));

#[inline(never)]
fn of_type<'a>(node: &Node<'a>, element_type: Type) -> Result<Pair<'a>, Fault> {
    let (pair, found) = Pair::of_one_type(node)?;
    match found == element_type {
        true => Ok(pair),
        false => Err(pair.input.wrong_type()),
    }
}

/// Numbers of int8 as fixed-point numbers with 4 integer bits.
#[derive(Clone, Copy)]
struct Input {
    zero_point: i32,
    factor: Multiplier,
    /// From here on, both ways, there is nothing but the ends of the output.
    radius: i32,
}

impl Input {
    #[inline(never)]
    fn new(input: &Tensor<'_>) -> Result<Self, Fault> {
        let factor = Multiplier::of_scales(input.scale()?, (1 << 27) as f32, 1.0);
        // What comes to 15 or more with 4 integer bits. A smaller scale would be no number with 27 bits after the point.
        let Ok(left) = u32::try_from(factor.shift) else {
            return Err(Fault::Quantization(input.operand()));
        };
        Ok(Self {
            zero_point: input.zero_point(),
            factor,
            radius: (15i32 << 27) >> left.min(31),
        })
    }

    /// `f` of `x`, which has 0 integer bits, as `bits` bits after the point, and `zero`; saturating.
    #[inline(always)]
    fn output(&self, x: i8, f: fn(i32) -> i32, bits: u32, zero: i32) -> i8 {
        let x = i32::from(x).wrapping_sub(self.zero_point);
        if x <= -self.radius {
            i8::MIN
        } else if x >= self.radius {
            i8::MAX
        } else {
            let y = rounding_shift_right(f(self.factor.apply(x)), 31 - bits);
            i8::saturated(y + zero)
        }
    }
}

fn logistic_i8(pair: &Pair<'_>) -> Result<(), Fault> {
    expect_zero_point(&pair.output, i8::MIN.into())?;
    let input = Input::new(&pair.input)?;
    pair.compute(|x: i8| input.output(x, logistic, 8, i8::MIN.into()))
}

fn tanh_i8(pair: &Pair<'_>) -> Result<(), Fault> {
    let input = Input::new(&pair.input)?;
    pair.compute(|x: i8| input.output(x, tanh, 7, 0))
}

/// The exponent of the power of two that a scale is, or nearly is: `CheckedLog2`.
fn log2(scale: f32) -> Option<i32> {
    // A thousandth of a power of two above and below.
    const ABOVE: f32 = 1.000_693_4;
    const BELOW: f32 = 1.998_614_2;
    let bits = scale.to_bits();
    let exponent = (bits >> 23) as i32 - 127;
    let mantissa = f32::from_bits(bits & 0x007f_ffff | 0x3f80_0000);
    match (mantissa < ABOVE, mantissa > BELOW) {
        (true, _) => Some(exponent),
        (_, true) => Some(exponent + 1),
        _ => None,
    }
}

/// The factor and the shift to the right that take numbers of int16 to units of 1 / (3 * 2^12). At scales of
/// `2^-12 * 2^k`, for `k` up to `powers`, nothing is lost.
#[inline(never)]
fn prepare_i16(pair: &Pair<'_>, powers: i32) -> Result<(i32, u32), Fault> {
    expect_zero_point(&pair.input, 0)?;
    expect_zero_point(&pair.output, 0)?;
    if log2(pair.output.scale()?) != Some(-15) {
        return Err(Fault::Quantization(pair.output.operand()));
    }
    let scale = pair.input.scale()?;
    let power = log2(scale).map_or(-1, |log2| log2 + 12);
    if (0..=powers).contains(&power) {
        return Ok((3 << power, 0));
    }
    let (mut factor, mut right) = (f64::from(scale) * 4096.0 * 3.0, 0);
    while factor <= 32767.0 / 2.0 && right <= 30 {
        factor *= 2.0;
        right += 1;
    }
    Ok((factor as i32, right))
}

/// The table's function of the absolute value of `x`, with `bits` bits between entries, in units of `2^-(16 + bits)`; `last`
/// beyond the table.
#[inline(always)]
fn interpolate(x: i32, bits: u32, last: i32) -> i32 {
    let x = x.unsigned_abs();
    let at = (x >> bits) as usize;
    match (SIGMOID.get(at), SIGMOID.get(at + 1)) {
        (Some(&a), Some(&b)) => {
            let (a, b) = (i32::from(a), i32::from(b));
            let rest = (x & ((1 << bits) - 1)) as i32;
            (a << bits) + rest * (b - a)
        }
        _ => last,
    }
}

/// `x` in units of 1 / (3 * 2^12).
#[inline(always)]
pub(in crate::ops) fn scaled_i16(x: i16, factor: i32, right: u32) -> i32 {
    let half = 1i32.wrapping_shl(right) >> 1;
    (i32::from(x).wrapping_mul(factor).wrapping_add(half)).wrapping_shr(right)
}

/// The logistic function of a number in units of 1 / (3 * 2^12), in units of 2^-15.
#[inline(always)]
pub(in crate::ops) fn logistic_of_scaled(x: i32) -> i32 {
    let y = interpolate(x, 9, 0x7fff << 10);
    let y = match x >= 0 {
        true => y + (1 << 9),
        false => (1 << 25) - y + (1 << 9) - 1,
    };
    y >> 10
}

/// The hyperbolic tangent of a number in units of 1 / (3 * 2^12), in units of 2^-15.
#[inline(always)]
pub(in crate::ops) fn tanh_of_scaled(x: i32) -> i32 {
    // Twice the logistic function of twice the number, less 1.
    let y = interpolate(x, 8, 0xffff << 8) - (1 << 23);
    let y = match x >= 0 {
        true => y + (1 << 7),
        false => -y + (1 << 7) - 1,
    };
    y >> 8
}

/// The logistic function.
#[inline(always)]
pub(in crate::ops) fn logistic_of_float(x: f32) -> f32 {
    // Here 1 + e^-x is 1, and there 1 / (1 + e^-x) is e^x, nearly.
    if x > 16.619_047 {
        1.0
    } else if x < -9.0 {
        libm::expf(x)
    } else {
        1.0 / (1.0 + libm::expf(-x))
    }
}

fn logistic_i16(pair: &Pair<'_>) -> Result<(), Fault> {
    let (factor, right) = prepare_i16(pair, 0)?;
    pair.compute(|x: i16| i16::truncated(logistic_of_scaled(scaled_i16(x, factor, right))))
}

fn tanh_i16(pair: &Pair<'_>) -> Result<(), Fault> {
    let (factor, right) = prepare_i16(pair, 1)?;
    pair.compute(|x: i16| i16::truncated(tanh_of_scaled(scaled_i16(x, factor, right))))
}

fn logistic_f32(pair: &Pair<'_>) -> Result<(), Fault> {
    pair.input.expect(Type::FLOAT32)?;
    pair.compute(logistic_of_float)
}

fn tanh_f32(pair: &Pair<'_>) -> Result<(), Fault> {
    pair.input.expect(Type::FLOAT32)?;
    pair.compute(libm::tanhf)
}
