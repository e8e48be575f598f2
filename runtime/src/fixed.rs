//! Fixed-point arithmetic of quantized kernels.
//!
//! The rules are those of TFLM's reference kernels (`kernels/internal/quantization_util.cc`, `common.h`, and gemmlowp's
//! `fixedpoint.h`), to the bit.

use core::num::NonZeroU32;

use crate::error::Fault;
use crate::node::Tensor;
use crate::types::Type;

pub mod exp;
pub mod logistic;

/// A real factor as `multiplier / 2^31 * 2^shift`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Multiplier {
    /// In the upper half of what 31 bits hold, or 0.
    pub multiplier: i32,
    /// Left when positive; at least -31.
    pub shift: i32,
}

impl Multiplier {
    /// The nearest to `real`, as `QuantizeMultiplier` has it. What it refuses to represent (not a number, infinite, above
    /// 2^31) saturates.
    pub fn new(real: f64) -> Self {
        let bits = real.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as i32;
        let fraction = bits & ((1 << 52) - 1);
        let negative = bits >> 63 != 0;
        // Subnormal numbers are far below 2^-31, where everything becomes 0.
        if exponent == 0 {
            return Self::default();
        }
        let mut shift = exponent - 1022;
        // 53 significant bits to 31, half away from zero.
        let mut fixed = ((fraction | (1 << 52)) + (1 << 21)) >> 22;
        if fixed == 1 << 31 {
            fixed = 1 << 30;
            shift += 1;
        }
        if shift < -31 {
            return Self::default();
        }
        let fixed = fixed as i32;
        Self {
            multiplier: if negative { -fixed } else { fixed },
            shift: shift.min(31),
        }
    }

    /// As [`new`](Self::new) of `a * b / c` in f64, to the bit. Infinite scales saturate.
    #[inline]
    pub fn of_scales(a: f32, b: f32, c: f32) -> Self {
        // Hosts have instructions for f64.
        if cfg!(target_pointer_width = "64") {
            let real = f64::from(a) * f64::from(b) / f64::from(c);
            if real.is_finite() && c.is_finite() {
                return Self::new(real);
            }
        }
        Self::of_scales_in_integers(a, b, c)
    }

    /// As [`of_scales`](Self::of_scales), without f64 arithmetic.
    #[doc(hidden)]
    #[inline(never)]
    pub fn of_scales_in_integers(a: f32, b: f32, c: f32) -> Self {
        let (Some((a_bits, a_exponent)), Some((b_bits, b_exponent))) = (split(a), split(b)) else {
            return Self::default();
        };
        let sign = (a.to_bits() ^ b.to_bits() ^ c.to_bits()) >> 31;
        let Some((c_bits, c_exponent)) = split(c) else {
            return Self {
                multiplier: 1 << 30,
                shift: 31,
            };
        };
        let mut product = u64::from(a_bits.get()) * u64::from(b_bits.get());
        let mut shift = a_exponent + b_exponent - c_exponent + 24;
        if product < 1 << 47 {
            product <<= 1;
            shift -= 1;
        }
        // Long division, 8 bits of the quotient at a time, since the remainder has 24: 56 bits, or 57.
        let mut rest = (product >> 24) as u32;
        let mut digits = (product as u32) << 8;
        let mut quotient = u64::from(rest / c_bits);
        rest %= c_bits;
        for _ in 0..7 {
            rest = (rest << 8) | (digits >> 24);
            digits <<= 8;
            quotient = (quotient << 8) | u64::from(rest / c_bits);
            rest %= c_bits;
        }
        // To the 53 bits of an f64, half to even, where what remains is more than nothing.
        let extra = 64 - quotient.leading_zeros() - 53;
        shift += extra as i32 - 3;
        let below = quotient & ((1 << extra) - 1);
        let mut bits = quotient >> extra;
        let half = 1 << (extra - 1);
        if below > half || (below == half && (rest != 0 || bits & 1 != 0)) {
            bits += 1;
        }
        // To 31 bits, half away from zero.
        let mut fixed = ((bits + (1 << 21)) >> 22) as u32;
        if fixed == 1 << 31 {
            fixed = 1 << 30;
            shift += 1;
        }
        if shift < -31 {
            return Self::default();
        }
        let fixed = fixed as i32;
        Self {
            multiplier: if sign != 0 { -fixed } else { fixed },
            shift: shift.min(31),
        }
    }

    /// `x` times the factor, rounded twice as `MultiplyByQuantizedMultiplier` does.
    #[inline(always)]
    pub fn apply(self, x: i32) -> i32 {
        let left = self.shift.max(0) as u32;
        let right = (-self.shift).max(0) as u32;
        rounding_shift_right(self.high(x.wrapping_shl(left)), right)
    }

    /// As [`apply`](Self::apply), of a factor whose shift is not to the left:
    /// `MultiplyByQuantizedMultiplierSmallerThanOneExp`.
    #[inline(always)]
    pub fn shrink(self, x: i32) -> i32 {
        rounding_shift_right(self.high(x), self.shift.wrapping_neg() as u32)
    }

    /// As [`doubling_high`], which has a case for a multiplier that there is not, the least number.
    #[inline(always)]
    fn high(self, x: i32) -> i32 {
        ((i64::from(x) * i64::from(self.multiplier) + (1 << 30)) >> 31) as i32
    }

    /// As [`apply`](Self::apply), of an `i64` in 48 bits, which is rounded once: 16-bit kernels.
    #[inline(always)]
    pub fn apply_wide(self, x: i64) -> i32 {
        let reduced = if self.multiplier < 0x7fff_0000 {
            (self.multiplier + (1 << 15)) >> 16
        } else {
            0x7fff
        };
        // From -16 to 46.
        let total = (15 - self.shift).clamp(1, 63) as u32;
        let product = x.wrapping_mul(i64::from(reduced));
        (product.wrapping_add(1 << (total - 1)) >> total) as i32
    }
}

/// 24 bits, the first of which is set, and the exponent of 2 that they are multiplied with; `None` for 0.
fn split(x: f32) -> Option<(NonZeroU32, i32)> {
    let bits = x.to_bits() & 0x7fff_ffff;
    let (fraction, exponent) = (bits & 0x7f_ffff, (bits >> 23) as i32);
    if exponent != 0 {
        return Some((NonZeroU32::new(fraction | 0x80_0000)?, exponent - 150));
    }
    let zeros = fraction.leading_zeros().saturating_sub(8);
    Some((NonZeroU32::new(fraction << zeros)?, -149 - zeros as i32))
}

/// The high half of `2 * a * b`, rounded to nearest: `SaturatingRoundingDoublingHighMul`.
#[inline(always)]
pub fn doubling_high(a: i32, b: i32) -> i32 {
    if a == i32::MIN && b == i32::MIN {
        return i32::MAX;
    }
    // gemmlowp adds half of 2^31, or 1 less than that below 0, and divides towards 0, which is this for every product.
    ((i64::from(a) * i64::from(b) + (1 << 30)) >> 31) as i32
}

/// `x / 2^exponent`, half away from zero: `RoundingDivideByPOT`. Exponents are at most 31.
#[inline(always)]
pub fn rounding_shift_right(x: i32, exponent: u32) -> i32 {
    let mask = (1i32.wrapping_shl(exponent)).wrapping_sub(1);
    let remainder = x & mask;
    let threshold = (mask >> 1) + i32::from(x < 0);
    x.wrapping_shr(exponent) + i32::from(remainder > threshold)
}

/// The fused activation of an operator, by the schema's `ActivationFunctionType`.
pub mod activation {
    /// No activation.
    pub const NONE: i8 = 0;
    /// Not below 0.
    pub const RELU: i8 = 1;
    /// From -1 to 1.
    pub const RELU_N1_TO_1: i8 = 2;
    /// From 0 to 6.
    pub const RELU6: i8 = 3;
}

/// The least and the largest value that `activation` leaves of a quantized output.
///
/// # Errors
/// A type other than int8, uint8 and int16, an unknown activation (slot `slot`), or no quantization.
pub fn activation_range(
    output: &Tensor<'_>,
    activation: i8,
    slot: u8,
) -> Result<(i32, i32), Fault> {
    let (least, largest) = match output.element_type() {
        Type::INT8 => (i32::from(i8::MIN), i32::from(i8::MAX)),
        Type::UINT8 => (0, i32::from(u8::MAX)),
        Type::INT16 => (i32::from(i16::MIN), i32::from(i16::MAX)),
        _ => return Err(Fault::ElementType(output.operand())),
    };
    let quantized = |real: f32| -> Result<i32, Fault> {
        let scaled = libm::roundf(real / output.scale()?);
        Ok(output.zero_point().saturating_add(scaled as i32))
    };
    Ok(match activation {
        activation::NONE => (least, largest),
        activation::RELU => (least.max(quantized(0.0)?), largest),
        activation::RELU_N1_TO_1 => (least.max(quantized(-1.0)?), largest.min(quantized(1.0)?)),
        activation::RELU6 => (least.max(quantized(0.0)?), largest.min(quantized(6.0)?)),
        _ => return Err(Fault::Unsupported(slot)),
    })
}

/// The least and the largest value that `activation` leaves of an output of floats.
///
/// # Errors
/// An unknown activation (slot `slot`).
pub fn activation_range_f32(activation: i8, slot: u8) -> Result<(f32, f32), Fault> {
    Ok(match activation {
        activation::NONE => (f32::MIN, f32::MAX),
        activation::RELU => (0.0, f32::MAX),
        activation::RELU_N1_TO_1 => (-1.0, 1.0),
        activation::RELU6 => (0.0, 6.0),
        _ => return Err(Fault::Unsupported(slot)),
    })
}

/// `x`, not below `least` nor above `largest`; without the panic of `clamp` where those are the wrong way around.
#[inline(always)]
pub fn clamp<T: PartialOrd>(x: T, least: T, largest: T) -> T {
    let x = if x < least { least } else { x };
    if x > largest { largest } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As gemmlowp writes it.
    fn halves_away_from_zero(a: i32, b: i32) -> i32 {
        let product = i64::from(a) * i64::from(b);
        let nudge = if product >= 0 { 1 << 30 } else { 1 - (1 << 30) };
        i32::try_from((product + nudge) / (1 << 31)).unwrap_or(i32::MAX)
    }

    #[test]
    fn doubling_high_rounds_as_gemmlowp_does() {
        let ends = [i32::MIN, i32::MIN + 1, -1, 0, 1, i32::MAX - 1, i32::MAX];
        // Products that end in half of 2^31, and near it.
        let halves = [
            -(1 << 30),
            (1 << 30) - 1,
            1 << 30,
            3 << 29,
            1 << 15,
            -(1 << 15),
        ];
        let mut x = 1u32;
        let noise = core::array::from_fn::<_, 2000, _>(|_| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            x as i32 >> (x % 32)
        });
        for &a in ends.iter().chain(&halves).chain(&noise) {
            for &b in ends.iter().chain(&halves).chain(noise.iter().take(200)) {
                assert_eq!(doubling_high(a, b), halves_away_from_zero(a, b), "{a} {b}");
            }
        }
    }
}
