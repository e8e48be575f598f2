//! Tables of functions for int16 numbers.
//!
//! TFLM's `LUTPopulate` (`kernels/internal/common.h`) fills them in RAM while a model is prepared; none of them depends on
//! the model, so that here they are made by the compiler, and are in flash.

/// The function at 512 steps over all int16 numbers and at their end, to be interpolated.
pub(super) type Table = [i16; 513];

/// `e^x` from -10 to 0, in units of 2^-15.
pub(super) static EXP: Table = table(10.0 / 65535.0, i16::MAX, Function::Exp);
/// `1 / (1 + x)` from 0 to 1, in units of 2^-15.
pub(super) static RECIPROCAL_OF_ONE_PLUS: Table =
    table(1.0 / 65535.0, i16::MIN, Function::ReciprocalOfOnePlus);

/// Interpolates between two entries: `LUTLookup`.
#[inline]
pub(super) fn look_up(table: &Table, x: i16) -> i16 {
    let index = (256 + (i32::from(x) >> 7)) as usize;
    let (Some(&base), Some(&next)) = (table.get(index), table.get(index + 1)) else {
        return 0;
    };
    let slope = i32::from(next.wrapping_sub(base));
    let delta = (slope * i32::from(x & 0x7f) + 64) >> 7;
    i32::from(base).wrapping_add(delta) as i16
}

#[derive(Clone, Copy)]
enum Function {
    Exp,
    ReciprocalOfOnePlus,
}

impl Function {
    const fn of(self, x: f32) -> f32 {
        match self {
            Function::Exp => exp(x as f64) as f32,
            Function::ReciprocalOfOnePlus => 1.0 / (1.0 + x),
        }
    }
}

/// `e^x`, to more digits than a `f32` has.
const fn exp(x: f64) -> f64 {
    let small = x / 1024.0;
    let mut sum = 1.0;
    let mut term = 1.0;
    let mut k = 1;
    while k < 10 {
        term = term * small / k as f64;
        sum += term;
        k += 1;
    }
    let mut doublings = 0;
    while doublings < 10 {
        sum *= sum;
        doublings += 1;
    }
    sum
}

// Runs in the compiler, in `f32` and in the order that makes the same entries as TFLM's.
#[allow(clippy::indexing_slicing)]
const fn table(input_scale: f32, input_zero_point: i16, function: Function) -> Table {
    const OUTPUT_SCALE: f32 = 2.0 / 65535.0;
    let zero = input_zero_point as i32;
    let input_min = input_scale * (i16::MIN as i32 - zero) as f32;
    let input_max = input_scale * (i16::MAX as i32 - zero) as f32;
    let output_min = OUTPUT_SCALE * i16::MIN as f32;
    let output_max = OUTPUT_SCALE * i16::MAX as f32;
    let step = (input_max - input_min) / 512.0;
    let half_step = step / 2.0;
    let factor = 65536.0 / (output_max - output_min);
    let mut table = [0; 513];
    let mut k = 0;
    while k < 512 {
        let start = input_min + k as f32 * step;
        let value = round(function.of(start) * factor);
        let next = function.of(input_min + (k + 1) as f32 * step) * factor;
        // Half of what a straight line is off in the middle.
        let line = round((next + value) / 2.0);
        let middle = round(function.of(start + half_step) * factor);
        table[k] = saturate(value - round((line - middle) / 2.0));
        k += 1;
    }
    table[512] = saturate(round(function.of(input_max) * factor));
    table
}

/// Half away from zero, of a number that fits an `i32`.
const fn round(x: f32) -> f32 {
    let whole = x as i32 as f32;
    let rest = x - whole;
    if rest >= 0.5 {
        whole + 1.0
    } else if rest <= -0.5 {
        whole - 1.0
    } else {
        whole
    }
}

const fn saturate(x: f32) -> i16 {
    x as i16
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    /// The entries as `LUTPopulate` computes them with the platform's `expf`.
    fn expected(scale: f32, zero_point: i32, function: impl Fn(f32) -> f32) -> std::vec::Vec<i16> {
        let output_scale = 2.0f32 / 65535.0;
        let min = scale * (-32768 - zero_point) as f32;
        let max = scale * (32767 - zero_point) as f32;
        let step = (max - min) / 512.0;
        let factor = 65536.0 / (output_scale * 32767.0 - output_scale * -32768.0);
        let at = |k: usize| function(min + k as f32 * step) * factor;
        let mut entries = std::vec![];
        for k in 0..512 {
            let middle = function(min + k as f32 * step + step / 2.0) * factor;
            let line = ((at(k + 1) + at(k).round()) / 2.0).round();
            let bias = ((line - middle.round()) / 2.0).round();
            entries.push((at(k).round() - bias).clamp(-32768.0, 32767.0) as i16);
        }
        entries.push((function(max) * factor).round().clamp(-32768.0, 32767.0) as i16);
        entries
    }

    #[test]
    fn tables_are_those_that_tflm_computes() {
        assert_eq!(EXP.to_vec(), expected(10.0 / 65535.0, 32767, f32::exp));
        let reciprocal = expected(1.0 / 65535.0, -32768, |x| 1.0 / (1.0 + x));
        assert_eq!(RECIPROCAL_OF_ONE_PLUS.to_vec(), reciprocal);
    }
}
