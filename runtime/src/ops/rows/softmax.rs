//! SOFTMAX and LOG_SOFTMAX.
//!
//! The rules are those of TFLM's `softmax_common.cc`, `log_softmax.cc`, `reference/softmax.h` and
//! `reference/log_softmax.h`.

use super::lookup::{EXP, RECIPROCAL_OF_ONE_PLUS, look_up};
use super::{INPUT, OUTPUT, quantization, read, rows_of, tensor, type_of, write};
use crate::contract::Contract;
use crate::error::Fault;
use crate::fixed::exp::{exp_of_negative, log, reciprocal};
use crate::fixed::{Multiplier, clamp, doubling_high, rounding_shift_right};
use crate::kernel::{Code, Kernel};
use crate::memory::{Element, View, ViewMut};
use crate::node::Node;
use crate::types::Type;

/// `SOFTMAX` along the last axis: int8 to int8 or int16, int16 to int16, float32.
pub const SOFTMAX: Kernel =
    Kernel::builtin(Code::SOFTMAX, softmax).with_contract(Contract::RowsInPlace);
/// [`SOFTMAX`] of int8 to int8 alone.
pub const SOFTMAX_INT8: Kernel =
    Kernel::builtin(Code::SOFTMAX, softmax_int8).with_contract(Contract::RowsInPlace);
/// [`SOFTMAX`] of int16 alone.
pub const SOFTMAX_INT16: Kernel =
    Kernel::builtin(Code::SOFTMAX, softmax_int16).with_contract(Contract::RowsInPlace);
/// [`SOFTMAX`] of float32 alone.
pub const SOFTMAX_FLOAT32: Kernel =
    Kernel::builtin(Code::SOFTMAX, softmax_float).with_contract(Contract::RowsInPlace);
/// `LOG_SOFTMAX` along the last axis: int8 or float32.
pub const LOG_SOFTMAX: Kernel =
    Kernel::builtin(Code::LOG_SOFTMAX, log_softmax).with_contract(Contract::RowsInPlace);

/// Integer bits of what `exp` is computed of, and of sums of it.
const DIFFERENCE_BITS: u32 = 5;
const SUM_BITS: u32 = 12;

fn softmax(node: &Node<'_>) -> Result<(), Fault> {
    match (type_of(node, INPUT)?, type_of(node, OUTPUT)?) {
        (Type::INT8, Type::INT8) => softmax_int8(node),
        (Type::INT8, Type::INT16) => int8::<i16>(node, Type::INT16, 1.0 / 65536.0, 0.001),
        (Type::INT16, Type::INT16) => softmax_int16(node),
        (Type::FLOAT32, Type::FLOAT32) => softmax_float(node),
        _ => Err(Fault::ElementType(OUTPUT)),
    }
}

fn softmax_int8(node: &Node<'_>) -> Result<(), Fault> {
    int8::<i8>(node, Type::INT8, 1.0 / 256.0, 0.0)
}

/// The option, by which differences are multiplied.
fn beta(node: &Node<'_>) -> Result<f32, Fault> {
    node.options()?.f32(0, 0.0)
}

/// Whether the output has the scale, which may be off by a part, and the zero point.
#[inline(never)]
fn expect_output(node: &Node<'_>, scale: f32, off: f32, zero_point: i32) -> Result<(), Fault> {
    let (found, zero) = quantization(node, OUTPUT)?;
    match zero == zero_point && (found - scale).abs() <= scale * off {
        true => Ok(()),
        false => Err(Fault::Quantization(OUTPUT)),
    }
}

/// What a difference to a row's largest element is as a number with 5 integer bits.
#[derive(Clone, Copy, Debug)]
struct Scaling {
    multiplier: Multiplier,
    /// Differences below are taken for minus infinity.
    least: i32,
}

impl Scaling {
    /// As `PreprocessSoftmaxScaling` and `CalculateInputRadius` have it.
    #[inline(never)]
    fn new(node: &Node<'_>, beta: f32) -> Result<Self, Fault> {
        const UNIT: f32 = 1.0 / (1u32 << (31 - DIFFERENCE_BITS)) as f32;
        let (scale, _) = quantization(node, INPUT)?;
        // TFLM limits it to 2^31, where nothing but a row's largest elements counts any more.
        let multiplier = Multiplier::of_scales(beta, scale, UNIT);
        if multiplier.multiplier <= 0 || multiplier.shift < 1 {
            return Err(Fault::Quantization(INPUT));
        }
        let radius = (31u32 << (31 - DIFFERENCE_BITS)) >> multiplier.shift;
        Ok(Self {
            multiplier,
            least: -(radius as i32),
        })
    }

    /// The scaled difference, of one that is not below the least.
    #[inline(always)]
    fn scale(self, difference: i32) -> i32 {
        let shifted = difference.wrapping_shl(self.multiplier.shift as u32);
        doubling_high(shifted, self.multiplier.multiplier)
    }

    /// The sum of `exp` over a row, with 12 integer bits, and the row's largest element.
    #[inline(never)]
    fn sum(self, row: View<'_, i8>) -> (i32, i32) {
        let max = row
            .iter()
            .fold(i8::MIN, |max, x| if x > max { x } else { max });
        let max = i32::from(max);
        let mut sum = 0i32;
        for x in row {
            let difference = i32::from(x) - max;
            if difference >= self.least {
                let exp = exp_of_negative(self.scale(difference), DIFFERENCE_BITS);
                sum = sum.wrapping_add(rounding_shift_right(exp, SUM_BITS));
            }
        }
        (sum, max)
    }
}

/// An integer that SOFTMAX gives.
trait Output: Element {
    fn narrow(x: i32) -> Self;
}

impl Output for i8 {
    #[inline(always)]
    fn narrow(x: i32) -> Self {
        x as i8
    }
}

impl Output for i16 {
    #[inline(always)]
    fn narrow(x: i32) -> Self {
        x as i16
    }
}

/// Of an output with a scale, which may be off by a part.
fn int8<O: Output>(node: &Node<'_>, out: Type, scale: f32, off: f32) -> Result<(), Fault> {
    let least = -1i32 << (8 * size_of::<O>() - 1);
    expect_output(node, scale, off, least)?;
    let scaling = Scaling::new(node, beta(node)?)?;
    let from = read::<i8>(node, 0, Type::INT8)?;
    let to = write::<O>(node, OUTPUT, out)?;
    let bits = 8 * size_of::<O>() as i32;
    rows_of(node, &mut |start, depth| {
        let (row, to) = (from.part(start, depth)?, to.part(start, depth)?);
        let (sum, max) = scaling.sum(row);
        let (factor, over_unit) = reciprocal(sum, SUM_BITS);
        // Rows of too many equal elements: TFLM stops here.
        let exponent = u32::try_from(over_unit + 31 - bits)
            .ok()
            .filter(|&e| e <= 31)?;
        for (k, x) in row.iter().enumerate() {
            let difference = i32::from(x) - max;
            let value = if difference >= scaling.least {
                let exp = exp_of_negative(scaling.scale(difference), DIFFERENCE_BITS);
                let value = rounding_shift_right(doubling_high(factor, exp), exponent);
                value.wrapping_add(least).min(-1 - least)
            } else {
                least
            };
            to.set(k, O::narrow(value.max(least)));
        }
        Some(())
    })
}

fn softmax_int16(node: &Node<'_>) -> Result<(), Fault> {
    const SCALE: f32 = 1.0 / 32768.0;
    let (scale, zero_point) = quantization(node, INPUT)?;
    if zero_point != 0 {
        return Err(Fault::Quantization(INPUT));
    }
    expect_output(node, SCALE, 0.001, 0)?;
    // The table goes down to -10.
    let real = f64::from(scale) * f64::from(beta(node)?) / (10.0 / 65535.0);
    let multiplier = Multiplier::new(real);
    let from = read::<i16>(node, 0, Type::INT16)?;
    let to = write::<i16>(node, OUTPUT, Type::INT16)?;
    rows_of(node, &mut |start, depth| {
        let (row, to) = (from.part(start, depth)?, to.part(start, depth)?);
        softmax_of_int16(row, to, multiplier)
    })
}

fn softmax_of_int16(
    row: View<'_, i16>,
    to: ViewMut<'_, i16>,
    multiplier: Multiplier,
) -> Option<()> {
    let max = row
        .iter()
        .fold(i16::MIN, |max, x| if x > max { x } else { max });
    // The output holds the exponentials meanwhile.
    let mut sum = 0i32;
    for (k, x) in row.iter().enumerate() {
        let scaled = multiplier.apply(i32::from(x) - i32::from(max));
        let centered = clamp(scaled.wrapping_add(32767), -32768, 32767);
        let exp = look_up(&EXP, centered as i16);
        sum = sum.wrapping_add(i32::from(exp));
        to.set(k, exp);
    }
    if sum <= 1 {
        return None;
    }
    let zeros = sum.leading_zeros();
    let mantissa = ((i64::from(sum) << (zeros - 1)) + (1 << 13)) >> 14;
    let centered = clamp(mantissa as i32 - (3 << 15), -32768, 32767);
    let factor = i32::from(look_up(&RECIPROCAL_OF_ONE_PLUS, centered as i16));
    let shift = 31 - zeros;
    for (k, exp) in to.view().iter().enumerate() {
        let value = (i32::from(exp) * factor + (1 << (shift - 1))) >> shift;
        to.set(k, clamp(value, 0, 32767) as i16);
    }
    Some(())
}

fn softmax_float(node: &Node<'_>) -> Result<(), Fault> {
    let beta = beta(node)?;
    let from = read::<f32>(node, 0, Type::FLOAT32)?;
    let to = write::<f32>(node, OUTPUT, Type::FLOAT32)?;
    rows_of(node, &mut |start, depth| {
        let (row, to) = (from.part(start, depth)?, to.part(start, depth)?);
        let max = largest(row);
        let mut sum = 0.0;
        for (k, x) in row.iter().enumerate() {
            let exp = libm::expf((x - max) * beta);
            sum += exp;
            to.set(k, exp);
        }
        for (k, exp) in to.view().iter().enumerate() {
            to.set(k, exp / sum);
        }
        Some(())
    })
}

fn largest(row: View<'_, f32>) -> f32 {
    row.iter()
        .fold(f32::MIN, |max, x| if x > max { x } else { max })
}

fn log_softmax(node: &Node<'_>) -> Result<(), Fault> {
    if tensor(node, INPUT)?.shape() != tensor(node, OUTPUT)?.shape() {
        return Err(Fault::Shape(OUTPUT));
    }
    match type_of(node, INPUT)? {
        Type::INT8 => log_int8(node),
        Type::FLOAT32 => log_float(node),
        _ => Err(Fault::ElementType(INPUT)),
    }
}

fn log_int8(node: &Node<'_>) -> Result<(), Fault> {
    expect_output(node, 16.0 / 256.0, 0.0, 127)?;
    let scaling = Scaling::new(node, 1.0)?;
    let unit = 1u32.wrapping_shl((31 - scaling.multiplier.shift) as u32);
    let back = Multiplier::new(f64::from(unit) / f64::from(scaling.multiplier.multiplier));
    let from = read::<i8>(node, 0, Type::INT8)?;
    let to = write::<i8>(node, OUTPUT, Type::INT8)?;
    rows_of(node, &mut |start, depth| {
        let (row, to) = (from.part(start, depth)?, to.part(start, depth)?);
        let (sum, max) = scaling.sum(row);
        let log_of_sum = log(sum);
        // Differences whose result is no number with 5 integer bits.
        let least = back
            .apply(log_of_sum.wrapping_add(i32::MIN))
            .max(scaling.least - 1);
        for (k, x) in row.iter().enumerate() {
            let difference = i32::from(x) - max;
            let mut value = i32::from(i8::MIN);
            if difference > least {
                let result = scaling.scale(difference).wrapping_sub(log_of_sum);
                let rounded = rounding_shift_right(result, 31 - DIFFERENCE_BITS - 4);
                value = clamp(rounded.wrapping_add(127), -128, 127);
            }
            to.set(k, value as i8);
        }
        Some(())
    })
}

fn log_float(node: &Node<'_>) -> Result<(), Fault> {
    let from = read::<f32>(node, 0, Type::FLOAT32)?;
    let to = write::<f32>(node, OUTPUT, Type::FLOAT32)?;
    rows_of(node, &mut |start, depth| {
        let (row, to) = (from.part(start, depth)?, to.part(start, depth)?);
        let max = largest(row);
        let sum = row.iter().fold(0.0, |sum, x| sum + libm::expf(x - max));
        let log = libm::logf(sum);
        for (k, x) in row.iter().enumerate() {
            to.set(k, x - max - log);
        }
        Some(())
    })
}
