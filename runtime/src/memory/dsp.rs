//! The sums with Arm's DSP instructions, which multiply two pairs of 16 bits at a time.

use core::arch::asm;

#[allow(unused_imports, reason = "for the documentation")]
use super::Factor;
use super::{LANES, Runs};

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
}

/// # Safety
/// As [`Factor::dot4`].
#[inline(always)]
pub(super) unsafe fn dot4(
    input: *const i8,
    weights: *const i8,
    stride: usize,
    len: usize,
    offset: i32,
    sums: &mut [i32; 4],
) {
    // SAFETY: as of this function: `len` elements are read, in words as long as there are four. r6 and r7, which no operand
    // may be in, are as before at the end.
    unsafe {
        asm!(
            "push {{r3, r5, r6, r7}}",
            "bic r3, r3, #3",
            "add r3, r0",
            // The sums of four rows of weights; r1 and r12 are where the first two of them are.
            "ldm r5, {{r8, r9, r10, r11}}",
            "add r12, r1, r2",
            "cmp r0, r3",
            "beq 3f",
            "2:",
            "ldr r7, [r0], #4",
            "ldr r5, [r1], #4",
            "sxtab16 r6, r4, r7",
            "sxtab16 r7, r4, r7, ror #8",
            "sxtb16 lr, r5",
            "sxtb16 r5, r5, ror #8",
            "smlad r8, r6, lr, r8",
            "smlad r8, r7, r5, r8",
            "ldr r5, [r12, r2]",
            "sxtb16 lr, r5",
            "sxtb16 r5, r5, ror #8",
            "smlad r10, r6, lr, r10",
            "smlad r10, r7, r5, r10",
            "ldr r5, [r12, r2, lsl #1]",
            "sxtb16 lr, r5",
            "sxtb16 r5, r5, ror #8",
            "smlad r11, r6, lr, r11",
            "smlad r11, r7, r5, r11",
            "ldr r5, [r12], #4",
            "sxtb16 lr, r5",
            "sxtb16 r5, r5, ror #8",
            "smlad r9, r6, lr, r9",
            "smlad r9, r7, r5, r9",
            "cmp r0, r3",
            "bne 2b",
            "3:",
            "pop {{r3}}",
            "ands r3, r3, #3",
            "beq 5f",
            "4:",
            "ldrsb r7, [r0], #1",
            "ldrsb r5, [r1], #1",
            "add r7, r4",
            "ldrsb r6, [r12, r2]",
            "smlabb r8, r7, r5, r8",
            "ldrsb r5, [r12, r2, lsl #1]",
            "smlabb r10, r7, r6, r10",
            "ldrsb r6, [r12], #1",
            "smlabb r11, r7, r5, r11",
            "smlabb r9, r7, r6, r9",
            "subs r3, #1",
            "bne 4b",
            "5:",
            "pop {{r5, r6, r7}}",
            "stm r5, {{r8, r9, r10, r11}}",
            inout("r0") input => _,
            inout("r1") weights => _,
            in("r2") stride,
            inout("r3") len => _,
            in("r4") twice(offset),
            in("r5") sums.as_mut_ptr(),
            out("r8") _,
            out("r9") _,
            out("r10") _,
            out("r11") _,
            out("r12") _,
            out("lr") _,
        );
    }
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
    window: &Runs<'_, i8>,
    (offset, spread): (i32, bool),
    sums: &mut [i32; LANES],
) {
    let (mut rows, mut cols, steps) = (window.rows, window.cols, window.steps);
    let (mut input_col, mut weight_col) = (steps.input_col, steps.weight_col);
    if cols == 1 {
        // A column is a row, with other steps.
        (input_col, weight_col) = (steps.input_row, steps.weight_row);
        (rows, cols) = (rows.min(1), rows);
    }
    let (mut input, mut weights) = (window.input, window.weights);
    if rows == 0 {
        return;
    }
    // SAFETY: as of this function; a window with rows has columns.
    unsafe {
        if spread {
            for _ in 0..rows {
                spread_row(input, weights, (input_col, weight_col, cols), offset, sums);
                input = input.wrapping_add(steps.input_row);
                weights = weights.wrapping_add(steps.weight_row);
            }
        } else if cols == 3 && input_col == weight_col {
            let steps = (input_col, steps.input_row, steps.weight_row);
            rows_of_three(input, weights, rows, steps, offset, sums);
        } else {
            let rest = Rest {
                cols,
                input: steps.input_row.wrapping_sub(cols.wrapping_mul(input_col)),
                weights: steps.weight_row.wrapping_sub(cols.wrapping_mul(weight_col)),
                rows,
                sums,
            };
            rows_of_taps(input, weights, (input_col, weight_col), offset, &rest);
        }
    }
}

/// What [`rows_of_taps`] needs at the end of a row.
#[repr(C)]
struct Rest<'a> {
    cols: usize,
    input: usize,
    weights: usize,
    rows: usize,
    sums: &'a mut [i32; 4],
}

/// Taps of four channels.
///
/// # Safety
/// There is a tap, and four elements can be read for each of them.
#[inline(always)]
unsafe fn rows_of_taps(
    input: *const i8,
    weights: *const i8,
    (input_col, weight_col): (usize, usize),
    offset: i32,
    rest: &Rest<'_>,
) {
    // SAFETY: as of this function: four bytes are read of each tap. r6 and r7, which no operand may be in, are as before at
    // the end.
    unsafe {
        asm!(
            "push {{r6, r7}}",
            "ldr r6, [r5, #12]",
            "push {{r5, r6}}",
            "ldr r6, [r5, #16]",
            "ldm r6, {{r8, r9, r10, r11}}",
            "2:",
            "ldr r12, [r5]",
            "3:",
            "ldr r5, [r0]",
            "ldr r6, [r1]",
            "sxtab16 r7, r4, r5",
            "sxtab16 r5, r4, r5, ror #8",
            "sxtb16 lr, r6",
            "sxtb16 r6, r6, ror #8",
            "smlabb r8, r7, lr, r8",
            "smlatt r10, r7, lr, r10",
            "smlabb r9, r5, r6, r9",
            "smlatt r11, r5, r6, r11",
            "add r0, r2",
            "add r1, r3",
            "subs r12, #1",
            "bne 3b",
            "ldrd r5, r6, [sp]",
            "ldrd r7, lr, [r5, #4]",
            "add r0, r7",
            "add r1, lr",
            "subs r6, #1",
            "str r6, [sp, #4]",
            "bne 2b",
            "ldr r6, [r5, #16]",
            "stm r6, {{r8, r9, r10, r11}}",
            "add sp, #8",
            "pop {{r6, r7}}",
            inout("r0") input => _,
            inout("r1") weights => _,
            in("r2") input_col,
            in("r3") weight_col,
            in("r4") twice(offset),
            inout("r5") rest => _,
            out("r8") _,
            out("r9") _,
            out("r10") _,
            out("r11") _,
            out("r12") _,
            out("lr") _,
        );
    }
}

/// Rows of three taps of four channels, which are `col` apart in input and weights.
///
/// # Safety
/// There is a row, and four elements can be read for each tap.
#[inline(always)]
unsafe fn rows_of_three(
    input: *const i8,
    weights: *const i8,
    rows: usize,
    (col, input_row, weight_row): (usize, usize, usize),
    offset: i32,
    sums: &mut [i32; 4],
) {
    // SAFETY: as of this function and in `rows_of_taps`.
    unsafe {
        asm!(
            "push {{r5, r6, r7, lr}}",
            "ldm r5, {{r8, r9, r10, r11}}",
            "2:",
            "ldr r5, [r0]",
            "ldr r6, [r1]",
            "sxtab16 r7, r4, r5",
            "sxtab16 r5, r4, r5, ror #8",
            "sxtb16 lr, r6",
            "sxtb16 r6, r6, ror #8",
            "smlabb r8, r7, lr, r8",
            "smlatt r10, r7, lr, r10",
            "smlabb r9, r5, r6, r9",
            "smlatt r11, r5, r6, r11",
            "ldr r5, [r0, r2]",
            "ldr r6, [r1, r2]",
            "sxtab16 r7, r4, r5",
            "sxtab16 r5, r4, r5, ror #8",
            "sxtb16 lr, r6",
            "sxtb16 r6, r6, ror #8",
            "smlabb r8, r7, lr, r8",
            "smlatt r10, r7, lr, r10",
            "smlabb r9, r5, r6, r9",
            "smlatt r11, r5, r6, r11",
            "ldr r5, [r0, r2, lsl #1]",
            "ldr r6, [r1, r2, lsl #1]",
            "sxtab16 r7, r4, r5",
            "sxtab16 r5, r4, r5, ror #8",
            "sxtb16 lr, r6",
            "sxtb16 r6, r6, ror #8",
            "smlabb r8, r7, lr, r8",
            "smlatt r10, r7, lr, r10",
            "smlabb r9, r5, r6, r9",
            "smlatt r11, r5, r6, r11",
            "add r0, r3",
            "add r1, r12",
            "ldr r5, [sp, #12]",
            "subs r5, #1",
            "str r5, [sp, #12]",
            "bne 2b",
            "pop {{r5, r6, r7, lr}}",
            "stm r5, {{r8, r9, r10, r11}}",
            inout("r0") input => _,
            inout("r1") weights => _,
            in("r2") col,
            in("r3") input_row,
            in("r4") twice(offset),
            in("r5") sums.as_mut_ptr(),
            out("r8") _,
            out("r9") _,
            out("r10") _,
            out("r11") _,
            in("r12") weight_row,
            inout("lr") rows => _,
        );
    }
}

/// `cols` taps in a row, with one element of the input for four channels.
///
/// # Safety
/// There is a tap, and one element of the input and four weights can be read for each of them.
#[inline(always)]
unsafe fn spread_row(
    input: *const i8,
    weights: *const i8,
    (input_col, weight_col, cols): (usize, usize, usize),
    offset: i32,
    sums: &mut [i32; 4],
) {
    // SAFETY: as of this function and in `rows_of_taps`.
    unsafe {
        asm!(
            "push {{r5, r6}}",
            "ldm r5, {{r8, r9, r10, r11}}",
            "2:",
            "ldrsb r5, [r0]",
            "ldr r6, [r1]",
            "add r5, r4",
            "sxtb16 lr, r6",
            "sxtb16 r6, r6, ror #8",
            "smlabb r8, r5, lr, r8",
            "smlabt r10, r5, lr, r10",
            "smlabb r9, r5, r6, r9",
            "smlabt r11, r5, r6, r11",
            "add r0, r2",
            "add r1, r3",
            "subs r12, #1",
            "bne 2b",
            "pop {{r5, r6}}",
            "stm r5, {{r8, r9, r10, r11}}",
            inout("r0") input => _,
            inout("r1") weights => _,
            in("r2") input_col,
            in("r3") weight_col,
            in("r4") offset,
            in("r5") sums.as_mut_ptr(),
            out("r8") _,
            out("r9") _,
            out("r10") _,
            out("r11") _,
            inout("r12") cols => _,
            out("lr") _,
        );
    }
}
