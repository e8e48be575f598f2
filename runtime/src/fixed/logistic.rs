//! The logistic function, the hyperbolic tangent and the inverse square root of fixed-point numbers.
//!
//! As in [`exp`](super::exp), to the bit of gemmlowp's `fixedpoint.h` and TFLM's `kernels/internal/common.h`.

use super::exp::{exp_of_negative, half_sum, reciprocal_of_one_plus, saturating_shift_left};
use super::{doubling_high, rounding_shift_right};

/// `1 / (1 + e^-x)` with 0 integer bits, of an `x` with 4: `logistic`.
#[inline(never)]
pub fn logistic(x: i32) -> i32 {
    if x == 0 {
        return 1 << 30;
    }
    let of_positive = reciprocal_of_one_plus(exp_of_negative(negative(x), 4));
    match x > 0 {
        true => of_positive,
        false => i32::MAX.wrapping_sub(of_positive),
    }
}

/// `tanh x` with 0 integer bits, of an `x` with 4: `tanh`.
#[inline(never)]
pub fn tanh(x: i32) -> i32 {
    if x == 0 {
        return 0;
    }
    // The same bits with one integer bit more are twice as much.
    let of_positive = one_minus_over_one_plus(exp_of_negative(negative(x), 5));
    match x > 0 {
        true => of_positive,
        false => of_positive.wrapping_neg(),
    }
}

fn negative(x: i32) -> i32 {
    match x > 0 {
        true => -x,
        false => x,
    }
}

/// `(1 - x) / (1 + x)` with 0 integer bits, of an `x` from 0 to below 1 with 0 integer bits:
/// `one_minus_x_over_one_plus_x_for_x_in_0_1`.
fn one_minus_over_one_plus(x: i32) -> i32 {
    let estimate = super::exp::newton(half_sum(x, i32::MAX));
    saturating_shift_left(estimate.wrapping_sub(1 << 29), 2)
}

/// `1 / sqrt(x)` as a multiplier and its shift, which is 0 or left and negative:
/// `GetInvSqrtQuantizedMultiplierExp` with `kReverseShift`. Of 0 as of 1.
#[inline(never)]
pub fn inverse_sqrt(x: i32) -> (i32, i32) {
    const HALF_SQRT_2: i32 = 1_518_500_250;
    if x <= 1 {
        return (i32::MAX, 0);
    }
    let (mut x, mut right) = (x, 11i32);
    while x >= 1 << 29 {
        x /= 4;
        right += 1;
    }
    let pairs = (x.leading_zeros().saturating_sub(1) / 2).saturating_sub(1);
    right -= pairs as i32;
    // From here on with 3 integer bits.
    let input = x.wrapping_shl(2 * pairs) >> 1;
    let half = rounding_shift_right(input, 1);
    let mut root = 1i32 << 28;
    for _ in 0..5 {
        let cube = doubling_high(doubling_high(root, root), root);
        let cube = saturating_shift_left(cube, 6);
        let next =
            doubling_high((1 << 28) + (1 << 27), root).wrapping_sub(doubling_high(half, cube));
        root = saturating_shift_left(next, 3);
    }
    root = doubling_high(root, HALF_SQRT_2);
    if right < 0 {
        root = root.wrapping_shl(right.unsigned_abs());
        right = 0;
    }
    (root, -right)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers with 4 integer bits over their whole range.
    fn numbers() -> impl Iterator<Item = i32> {
        (i32::MIN + 1..=i32::MAX).step_by(104_729)
    }

    fn near(found: i32, expected: f64) {
        let found = f64::from(found) / f64::from(1u32 << 31);
        assert!((found - expected).abs() < 2e-7, "{found} {expected}");
    }

    #[test]
    fn logistic_and_tanh_are_near_the_functions() {
        for x in numbers().chain([-1, 0, 1]) {
            let real = f64::from(x) / f64::from(1 << 27);
            near(logistic(x), 1.0 / (1.0 + libm::exp(-real)));
            near(tanh(x), libm::tanh(real));
        }
    }

    #[test]
    fn inverse_sqrt_is_near_the_function() {
        for x in (2..1 << 20).step_by(37).chain([1 << 29, i32::MAX]) {
            let (multiplier, shift) = inverse_sqrt(x);
            let found = libm::ldexp(f64::from(multiplier), shift - 31);
            let expected = 1.0 / libm::sqrt(f64::from(x));
            assert!(
                (found / expected - 1.0).abs() < 2e-5,
                "{x} {found} {expected}"
            );
        }
    }
}
