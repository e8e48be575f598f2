//! The sums with Arm's DSP instructions, which multiply two pairs of 16 bits at a time.

use core::arch::asm;

use super::{Factor, LANES, Reach};

/// `offset` in both halves of a word.
#[inline(always)]
fn twice(offset: i32) -> u32 {
    (offset as u32 & 0xffff).wrapping_mul(0x1_0001)
}

/// Bytes 0 and 2 of `x` as 16 bits, each added to a half of `to`.
#[inline(always)]
fn add_even(to: u32, x: u32) -> u32 {
    let sum;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("sxtab16 {}, {}, {}", lateout(reg) sum, in(reg) to, in(reg) x, options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

/// Bytes 1 and 3 of `x` as 16 bits, each added to a half of `to`.
#[inline(always)]
fn add_odd(to: u32, x: u32) -> u32 {
    let sum;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("sxtab16 {}, {}, {}, ror #8", lateout(reg) sum, in(reg) to, in(reg) x, options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

/// Bytes 0 and 2 of `x` as 16 bits.
#[inline(always)]
fn even(x: u32) -> u32 {
    let halves;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("sxtb16 {}, {}", lateout(reg) halves, in(reg) x, options(pure, nomem, nostack, preserves_flags));
    }
    halves
}

/// Bytes 1 and 3 of `x` as 16 bits.
#[inline(always)]
fn odd(x: u32) -> u32 {
    let halves;
    // SAFETY: arithmetic on registers.
    unsafe {
        asm!("sxtb16 {}, {}, ror #8", lateout(reg) halves, in(reg) x, options(pure, nomem, nostack, preserves_flags));
    }
    halves
}

macro_rules! multiply {
    ($($(#[$doc:meta])* $name:ident $instruction:literal;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        fn $name(x: u32, y: u32, sum: i32) -> i32 {
            let result;
            // SAFETY: arithmetic on registers; the flag of saturation, which it may set, is not used.
            unsafe {
                asm!(
                    concat!($instruction, " {}, {}, {}, {}"),
                    lateout(reg) result, in(reg) x, in(reg) y, in(reg) sum,
                    options(pure, nomem, nostack)
                );
            }
            result
        }
    )*};
}

multiply! {
    /// Both products of halves.
    both "smlad";
    /// The product of the low halves.
    low "smlabb";
    /// The product of the high halves.
    high "smlatt";
    /// The product of the low half of `x` and the high one of `y`.
    low_high "smlabt";
}

/// # Safety
/// As [`Factor::dot4`].
#[inline(always)]
pub(super) unsafe fn dot4(
    mut input: *const i8,
    weights: *const i8,
    stride: usize,
    len: usize,
    offset: i32,
    sums: &mut [i32; 4],
) {
    let offsets = twice(offset);
    let [mut a, mut b, mut c, mut d] = *sums;
    let (mut w0, mut w1) = (weights, weights.wrapping_add(stride));
    let (mut w2, mut w3) = (w1.wrapping_add(stride), w1.wrapping_add(2 * stride));
    let end = input.wrapping_add(len & !3);
    // SAFETY: as of this function; all are read from their start to before their end.
    unsafe {
        while input != end {
            let x = input.cast::<u32>().read_unaligned();
            let (x0, x1) = (add_even(offsets, x), add_odd(offsets, x));
            let w = w0.cast::<u32>().read_unaligned();
            a = both(x1, odd(w), both(x0, even(w), a));
            let w = w1.cast::<u32>().read_unaligned();
            b = both(x1, odd(w), both(x0, even(w), b));
            let w = w2.cast::<u32>().read_unaligned();
            c = both(x1, odd(w), both(x0, even(w), c));
            let w = w3.cast::<u32>().read_unaligned();
            d = both(x1, odd(w), both(x0, even(w), d));
            input = input.add(4);
            (w0, w1, w2, w3) = (w0.add(4), w1.add(4), w2.add(4), w3.add(4));
        }
        for k in 0..len & 3 {
            let x = input.add(k).read();
            a = i8::product(x, w0.add(k).read(), offset, a);
            b = i8::product(x, w1.add(k).read(), offset, b);
            c = i8::product(x, w2.add(k).read(), offset, c);
            d = i8::product(x, w3.add(k).read(), offset, d);
        }
    }
    *sums = [a, b, c, d];
}

/// # Safety
/// As [`Factor::dot`].
#[inline(always)]
pub(super) unsafe fn dot(
    mut input: *const i8,
    mut weights: *const i8,
    len: usize,
    offset: i32,
    sum: &mut i32,
) {
    let offsets = twice(offset);
    let end = input.wrapping_add(len & !3);
    // SAFETY: as of this function; both are read from their start to before their end.
    unsafe {
        while input != end {
            let x = input.cast::<u32>().read_unaligned();
            let w = weights.cast::<u32>().read_unaligned();
            *sum = both(add_even(offsets, x), even(w), *sum);
            *sum = both(add_odd(offsets, x), odd(w), *sum);
            (input, weights) = (input.add(4), weights.add(4));
        }
        for k in 0..len & 3 {
            *sum = i8::product(input.add(k).read(), weights.add(k).read(), offset, *sum);
        }
    }
}

/// # Safety
/// As [`Factor::taps`].
#[inline(always)]
pub(super) unsafe fn taps(
    mut input: *const i8,
    mut weights: *const i8,
    reach: &Reach,
    (offset, spread): (i32, bool),
    sums: &mut [i32; LANES],
) {
    let offsets = twice(offset);
    let [mut a, mut b, mut c, mut d] = *sums;
    for _ in 0..reach.rows {
        let (mut x, mut w) = (input, weights);
        for _ in 0..reach.cols {
            // SAFETY: as of this function.
            unsafe {
                let four = w.cast::<u32>().read_unaligned();
                let (w0, w1) = (even(four), odd(four));
                if spread {
                    let x = i32::from(x.read()).wrapping_add(offset) as u32;
                    (a, b) = (low(x, w0, a), low(x, w1, b));
                    (c, d) = (low_high(x, w0, c), low_high(x, w1, d));
                } else {
                    let x = x.cast::<u32>().read_unaligned();
                    let (x0, x1) = (add_even(offsets, x), add_odd(offsets, x));
                    (a, b) = (low(x0, w0, a), low(x1, w1, b));
                    (c, d) = (high(x0, w0, c), high(x1, w1, d));
                }
            }
            x = x.wrapping_add(reach.input_col);
            w = w.wrapping_add(reach.weight_col);
        }
        input = input.wrapping_add(reach.input_row);
        weights = weights.wrapping_add(reach.weight_row);
    }
    *sums = [a, b, c, d];
}
