//! Fixed-point arithmetic against the definitions that TFLM's `quantization_util.cc` and gemmlowp's `fixedpoint.h` give, in
//! floating point and in wider integers.

#![allow(clippy::indexing_slicing)]

mod common;

use arenaplan_runtime::fixed::{self, Multiplier};
use common::Random;

/// `QuantizeMultiplier`, by its definition: 31 bits of the fraction, half away from zero, and the exponent.
fn quantize(real: f64) -> Multiplier {
    let (fraction, mut shift) = libm::frexp(real);
    let mut multiplier = (fraction * f64::from(1u32 << 31)).round() as i64;
    if multiplier == 1 << 31 {
        multiplier /= 2;
        shift += 1;
    }
    if shift < -31 {
        (multiplier, shift) = (0, 0);
    }
    Multiplier {
        multiplier: multiplier as i32,
        shift,
    }
}

/// A factor between `2^-range` and `2^range`; with ones or zeros at its end now and then.
fn factor(random: &mut Random, range: i32) -> f64 {
    let bits = match random.below(4) {
        0 => random.next() | ((1 << 40) - 1),
        1 => random.next() & !((1 << 40) - 1),
        2 => [0, u64::MAX, 1, 1 << 51][random.below(4)],
        _ => random.next(),
    };
    let exponent = 1023 - range + random.below(2 * range as usize) as i32;
    f64::from_bits((bits & ((1 << 52) - 1)) | ((exponent as u64) << 52))
}

#[test]
fn multipliers_are_those_of_the_definition() {
    let mut random = Random(1);
    for _ in 0..200_000 {
        let real = factor(&mut random, 30);
        assert_eq!(Multiplier::new(real), quantize(real), "{real:e}");
    }
    for real in [0.0, 1.0, 0.5, 2f64.powi(-32), 2f64.powi(-33), 1e-30, 5e-324] {
        assert_eq!(Multiplier::new(real), quantize(real), "{real:e}");
    }
}

#[test]
fn multipliers_of_scales_are_those_of_doubles() {
    let mut random = Random(2);
    for _ in 0..500_000 {
        let [a, b, c] = [12, 12, 6].map(|range| factor(&mut random, range) as f32);
        let real = f64::from(a) * f64::from(b) / f64::from(c);
        for of_scales in [Multiplier::of_scales, Multiplier::of_scales_in_integers] {
            assert_eq!(of_scales(a, b, c), quantize(real), "{a:e} {b:e} {c:e}");
        }
    }
    // Quotients that are exact, and scales without a leading one.
    for (a, b, c) in [
        (0.1, 1.0, 0.1),
        (0.25, 0.5, 2.0),
        (3e-40, 1.0, 3e-40),
        (1e-40, 1.0, 0.5),
        (0.0, 0.1, 0.2),
        (1.0, 1.0, 3.0),
        (0.1, 0.1, 0.1),
    ] {
        let real = f64::from(a) * f64::from(b) / f64::from(c);
        for of_scales in [Multiplier::of_scales, Multiplier::of_scales_in_integers] {
            assert_eq!(of_scales(a, b, c), quantize(real), "{a:e} {b:e} {c:e}");
        }
    }
}

/// An integer of any size, often at an end of its range.
fn integer(random: &mut Random) -> i32 {
    match random.below(4) {
        0 => [
            i32::MIN,
            i32::MAX,
            0,
            -1,
            1,
            1 << 30,
            -(1 << 30),
            i32::MIN + 1,
        ][random.below(8)],
        _ => (random.next() as i32) >> random.below(31),
    }
}

/// `a / b`, half away from zero.
fn nearest(a: i128, b: i128) -> i128 {
    (a.abs() * 2 + b) / (2 * b) * a.signum()
}

#[test]
fn products_are_rounded_as_gemmlowp_does() {
    let mut random = Random(3);
    for _ in 0..500_000 {
        let (a, b) = (integer(&mut random), integer(&mut random));
        // Half of 2^31, or one less below zero, and a division towards zero.
        let product = i64::from(a) * i64::from(b);
        let nudge = if product >= 0 { 1 << 30 } else { 1 - (1 << 30) };
        let high = ((product + nudge) / (1 << 31)).min(i64::from(i32::MAX)) as i32;
        assert_eq!(fixed::doubling_high(a, b), high, "{a} {b}");

        let exponent = random.below(32) as u32;
        let shifted = nearest(i128::from(a), 1 << exponent) as i32;
        assert_eq!(
            fixed::rounding_shift_right(a, exponent),
            shifted,
            "{a} {exponent}"
        );
    }
}

#[test]
fn factors_are_applied_in_two_steps_and_wide_ones_in_one() {
    let mut random = Random(4);
    for _ in 0..500_000 {
        let multiplier = Multiplier {
            multiplier: (1 << 30) + random.below(1 << 30) as i32,
            shift: random.below(31 + 8) as i32 - 31,
        };
        let left = multiplier.shift.max(0);
        // What is shifted left fits, as kernels have it.
        let x = integer(&mut random) >> left;
        let high = fixed::doubling_high(x << left, multiplier.multiplier);
        let expected = nearest(i128::from(high), 1 << (-multiplier.shift).max(0)) as i32;
        assert_eq!(multiplier.apply(x), expected, "{multiplier:?} {x}");

        // 16 bits of the factor, and one rounding, half up.
        let reduced = ((i64::from(multiplier.multiplier) + (1 << 15)) >> 16).min(0x7fff);
        let wide = (random.next() as i64) >> (17 + random.below(46));
        let total = 15 - multiplier.shift;
        let product = i128::from(wide) * i128::from(reduced) * 2 + (1i128 << total);
        let expected = product.div_euclid(1i128 << (total + 1));
        if let Ok(expected) = i32::try_from(expected) {
            assert_eq!(
                multiplier.apply_wide(wide),
                expected,
                "{multiplier:?} {wide}"
            );
        }
    }
}
