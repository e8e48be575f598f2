//! Exponentials, logarithms and reciprocals of fixed-point numbers.
//!
//! A number with `n` integer bits is an `i32` whose unit is `2^(n - 31)`. The steps are those of gemmlowp's `fixedpoint.h`
//! and of TFLM's `kernels/internal/common.h`, to the bit.

use super::{doubling_high, rounding_shift_right};

/// `x * 2^bits`, or the nearest that there is: `SaturatingRoundingMultiplyByPOT` of a positive exponent below 32.
#[inline]
pub fn saturating_shift_left(x: i32, bits: u32) -> i32 {
    let wide = i64::from(x).wrapping_shl(bits);
    match i32::try_from(wide) {
        Ok(shifted) => shifted,
        Err(_) if x < 0 => i32::MIN,
        Err(_) => i32::MAX,
    }
}

/// `(a + b) / 2`, half away from zero: `RoundingHalfSum`.
#[inline]
pub fn half_sum(a: i32, b: i32) -> i32 {
    let sum = i64::from(a) + i64::from(b);
    let sign = if sum >= 0 { 1 } else { -1 };
    ((sum + sign) / 2) as i32
}

/// `e^x` with 0 integer bits, of an `x` from -1/4 to below 0 with 0 integer bits.
fn exp_of_quarter(x: i32) -> i32 {
    const EXP_OF_MINUS_EIGHTH: i32 = 1_895_147_668;
    const THIRD: i32 = 715_827_883;
    // Four terms of the series around -1/8.
    let x = x.wrapping_add(1 << 28);
    let x2 = doubling_high(x, x);
    let x3 = doubling_high(x2, x);
    let x4 = doubling_high(x2, x2);
    let third = doubling_high(rounding_shift_right(x4, 2).wrapping_add(x3), THIRD);
    let half = rounding_shift_right(third.wrapping_add(x2), 1);
    doubling_high(EXP_OF_MINUS_EIGHTH, x.wrapping_add(half)).wrapping_add(EXP_OF_MINUS_EIGHTH)
}

/// `e^x` with 0 integer bits, of an `x` not above 0 with `integer_bits`, which are at most 28: `exp_on_negative_values`.
#[inline(never)]
pub fn exp_of_negative(x: i32, integer_bits: u32) -> i32 {
    // e^-(2^k) with 0 integer bits, for k from -2 on.
    const FACTORS: [i32; 7] = [
        1_672_461_947,
        1_302_514_674,
        790_015_084,
        290_630_308,
        39_332_535,
        720_401,
        242,
    ];
    if x == 0 {
        return i32::MAX;
    }
    let quarter_bits = 29u32.wrapping_sub(integer_bits);
    let quarter = 1i32.wrapping_shl(quarter_bits);
    let rest = (x & (quarter - 1)) - quarter;
    let mut result = exp_of_quarter(saturating_shift_left(rest, integer_bits));
    let quarters = rest.wrapping_sub(x).wrapping_shr(quarter_bits);
    // Bits from that of the greatest whole power of two on belong to the sign.
    for (k, factor) in (0..integer_bits + 2).zip(FACTORS) {
        if quarters >> k & 1 != 0 {
            result = doubling_high(result, factor);
        }
    }
    if integer_bits > 5 && x < -(1i32.wrapping_shl(quarter_bits + 7)) {
        return 0;
    }
    result
}

/// `1 / (1 + x)` with 0 integer bits, of an `x` from 0 to below 1 with 0 integer bits:
/// `one_over_one_plus_x_for_x_in_0_1`.
#[inline(never)]
pub fn reciprocal_of_one_plus(x: i32) -> i32 {
    saturating_shift_left(newton(half_sum(x, i32::MAX)), 1)
}

/// `1 / x` with 2 integer bits, of an `x` from 1/2 to below 1 with 0 integer bits.
pub(super) fn newton(x: i32) -> i32 {
    // With 2 integer bits.
    const START: i32 = 1_515_870_810;
    const SLOPE: i32 = -1_010_580_540;
    const ONE: i32 = 1 << 29;
    let mut estimate = doubling_high(x, SLOPE).wrapping_add(START);
    for _ in 0..3 {
        let error = ONE.wrapping_sub(doubling_high(x, estimate));
        let step = saturating_shift_left(doubling_high(estimate, error), 2);
        estimate = estimate.wrapping_add(step);
    }
    estimate
}

/// `1 / x` as a number with 0 integer bits from 1/2 on, and by which power of two it is to be divided: `GetReciprocal`, of
/// an `x` above 0 with `integer_bits`.
#[inline]
pub fn reciprocal(x: i32, integer_bits: u32) -> (i32, i32) {
    let zeros = x.leading_zeros();
    let fraction = (x as u32).wrapping_shl(zeros).wrapping_sub(1 << 31);
    (
        reciprocal_of_one_plus(fraction as i32),
        integer_bits as i32 - zeros as i32,
    )
}

/// `ln x` with 5 integer bits, of an `x` from 1 on with 12 integer bits: `log_x_for_x_greater_than_or_equal_to_1`.
#[inline(never)]
pub fn log(x: i32) -> i32 {
    const LOG_2: i32 = 1_488_522_236;
    const SQRT_HALF: i32 = 1_518_500_250;
    const SQRT_SQRT_HALF: i32 = 1_805_811_301;
    const ALPHA_N: i32 = 117_049_297;
    const ALPHA_D: i32 = 127_690_142;
    const ALPHA_I: i32 = 1_057_819_769;
    const ALPHA_F: i32 = 638_450_708;
    // Powers of two with 6 integer bits, where a quarter is 2^23.
    const INPUT_BITS: i32 = 12;
    const QUARTER: i32 = 1 << 23;
    let power = |bits: i32| saturating_shift_left(bits, 25);

    // Two ways to normalise x, the second after a division by the square root of two.
    let zeros = x.leading_zeros() as i32;
    let shifted = shift(x, zeros - 1);
    let mantissa_a = shift(doubling_high(shifted, SQRT_HALF), 1);
    let power_a = power(INPUT_BITS - zeros).saturating_add(QUARTER);
    let headroom = doubling_high(x, SQRT_HALF).leading_zeros() as i32 - 1;
    let mantissa_b = shift(x, headroom);
    let power_b = power(INPUT_BITS - headroom).saturating_sub(QUARTER);

    let r = mantissa_a.min(mantissa_b);
    let power = power_a.max(power_b);
    let p = half_sum(r, SQRT_SQRT_HALF);
    let q = r.wrapping_sub(SQRT_SQRT_HALF);
    let q = q.wrapping_add(q);
    let square = doubling_high(q, q);
    let numerator =
        doubling_high(q, r).wrapping_add(doubling_high(doubling_high(q, square), ALPHA_N));
    let sum = ALPHA_I
        .wrapping_add(q)
        .wrapping_add(doubling_high(ALPHA_D, square));
    let denominator = doubling_high(p, sum).wrapping_add(doubling_high(ALPHA_F, q));
    let quotient = doubling_high(
        rounding_shift_right(numerator, 6),
        reciprocal_of_one_plus(denominator),
    );
    saturating_shift_left(doubling_high(power, LOG_2).wrapping_add(quotient), 1)
}

/// `x * 2^bits`, saturating: `SaturatingRoundingMultiplyByPOTParam`, without rounding where bits are lost.
fn shift(x: i32, bits: i32) -> i32 {
    match u32::try_from(bits) {
        Ok(bits) => saturating_shift_left(x, bits),
        Err(_) => rounding_shift_right(x, (-bits) as u32),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    fn close(got: i32, unit: f64, expected: f64, most: f64) {
        let off = f64::from(got) * unit - expected;
        assert!(
            off.abs() <= most,
            "{} is not {expected}",
            f64::from(got) * unit
        );
    }

    #[test]
    fn exp_is_near_the_real_one() {
        for integer_bits in [0, 4, 5, 6] {
            let unit = (f64::from(integer_bits) - 31.0).exp2();
            for k in 0..10_000 {
                let x = -(i64::from(k) * i64::from(k) * 21) as i32;
                let expected = (f64::from(x) * unit).exp();
                let got = exp_of_negative(x, integer_bits);
                close(got, (-31f64).exp2(), expected, 1e-6);
            }
        }
        assert_eq!(exp_of_negative(0, 5), i32::MAX);
        assert_eq!(exp_of_negative(i32::MIN, 6), 0);
    }

    #[test]
    fn reciprocals_are_near_the_real_ones() {
        for k in 1..10_000 {
            let x = k * 200_003;
            let unit = (-31f64).exp2();
            let of_one_plus = 1.0 / (1.0 + f64::from(x) * unit);
            close(reciprocal_of_one_plus(x), unit, of_one_plus, 1e-7);
            let (half_up, power) = reciprocal(x, 12);
            let expected = (31f64 - 12.0).exp2() / f64::from(x);
            close(
                half_up,
                unit * f64::from(-power).exp2(),
                expected,
                expected * 1e-6,
            );
        }
    }

    #[test]
    fn log_is_near_the_real_one() {
        for k in 1..4_000 {
            // From 1 on with 12 integer bits.
            let x = (1 << 19) + k * 531_001;
            let expected = (f64::from(x) * (-19f64).exp2()).ln();
            close(log(x), (-26f64).exp2(), expected, 1e-5);
        }
    }
}
