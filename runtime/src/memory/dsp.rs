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

/// What [`dot4`] needs around each run.
#[repr(C)]
struct Line {
    /// Bytes that are read as words, and those that are left.
    words: usize,
    left: usize,
    runs: usize,
    /// From the end of a run to the next one.
    input: usize,
    weights: usize,
}

/// # Safety
/// As [`Factor::dot4`].
#[inline(always)]
pub(super) unsafe fn dot4(
    runs: &Runs<'_, i8>,
    stride: usize,
    len: usize,
    offset: i32,
    sums: &mut [i32; 4],
) {
    let line = Line {
        words: len & !3,
        left: len & 3,
        runs: runs.cols,
        input: runs.steps.input_col.wrapping_sub(len),
        weights: runs.steps.weight_col.wrapping_sub(len),
    };
    let offsets = twice(offset);
    // SAFETY: as of this function; a row has a run.
    runs.each_row(|x, w| unsafe { dot4_of_row(x, w, stride, offsets, &line, sums) });
}

/// # Safety
/// There is a run, and all that `line` says can be read.
#[inline(always)]
unsafe fn dot4_of_row(
    input: *const i8,
    weights: *const i8,
    stride: usize,
    offsets: u32,
    line: &Line,
    sums: &mut [i32; 4],
) {
    // SAFETY: as of this function. r6 and r7, which no operand may be in, and the stack are as before at the end.
    unsafe {
        asm!(
            "push {{r3, r6, r7}}",
            "ldr r6, [r5, #8]",
            "push {{r5, r6}}",
            // The sums of four rows of weights; r1 and r12 are where the first two of them are.
            "ldm r3, {{r8, r9, r10, r11}}",
            "add r12, r1, r2",
            "2:",
            "ldr r3, [r5]",
            "cbz r3, 4f",
            "add r3, r0",
            "3:",
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
            "bne 3b",
            "ldr r5, [sp]",
            "4:",
            "ldr r3, [r5, #4]",
            "cbz r3, 6f",
            "5:",
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
            "bne 5b",
            "ldr r5, [sp]",
            "6:",
            "ldr r6, [sp, #4]",
            "subs r6, #1",
            "beq 7f",
            "str r6, [sp, #4]",
            "ldrd r6, r7, [r5, #12]",
            "add r0, r6",
            "add r1, r7",
            "add r12, r7",
            "b 2b",
            "7:",
            "add sp, #8",
            "pop {{r3, r6, r7}}",
            "stm r3, {{r8, r9, r10, r11}}",
            inout("r0") input => _,
            inout("r1") weights => _,
            in("r2") stride,
            in("r3") sums.as_mut_ptr(),
            in("r4") offsets,
            inout("r5") line => _,
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
    let Runs {
        input,
        weights,
        rows,
        cols,
        steps,
        ..
    } = *window;
    if rows == 0 {
        return;
    }
    let cols_apart = (steps.input_col, steps.weight_col);
    // SAFETY: as of this function; a window with rows has columns.
    unsafe {
        if spread {
            window.each_row(|x, w| {
                spread_row(x, w, (cols_apart.0, cols_apart.1, cols), offset, sums)
            });
        } else if cols == 3 && cols_apart.0 == cols_apart.1 {
            let steps = (cols_apart.0, steps.input_row, steps.weight_row);
            rows_of_three(input, weights, rows, steps, offset, sums);
        } else {
            let rest = Rest {
                cols,
                input: steps
                    .input_row
                    .wrapping_sub(cols.wrapping_mul(cols_apart.0)),
                weights: steps
                    .weight_row
                    .wrapping_sub(cols.wrapping_mul(cols_apart.1)),
                rows,
                sums,
            };
            rows_of_taps(input, weights, cols_apart, offset, &rest);
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
