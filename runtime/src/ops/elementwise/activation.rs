//! RELU and its kin.

use super::broadcast::Operands;
use super::{Pair, Quantized, elementwise, expect_zero_point};
use crate::error::Fault;
use crate::fixed::{Multiplier, clamp, rounding_shift_right};
use crate::kernel::{Code, Kernel};
use crate::node::Node;
use crate::types::Type;

/// `RELU`, of int8, int16 and float32 (`activations.cc`). The zero points of int16 are 0.
pub const RELU: Kernel = elementwise(Code::RELU, relu);
/// `RELU6`, of int8, int16 and float32, which leaves the scale as it is (`activations.cc`).
pub const RELU6: Kernel = elementwise(Code::RELU6, relu6);
/// `LEAKY_RELU`, of int8, int16 and float32 (`leaky_relu.cc`).
pub const LEAKY_RELU: Kernel = elementwise(Code::LEAKY_RELU, leaky_relu);
/// `PRELU`, of int8, int16 with factors of int8, and float32 (`prelu.cc`).
pub const PRELU: Kernel = elementwise(Code::PRELU, prelu);
/// `HARD_SWISH`, of int8 and float32 (`hard_swish.cc`).
pub const HARD_SWISH: Kernel = elementwise(Code::HARD_SWISH, hard_swish);
/// `ELU`, of int8 and float32 (`elu.cc`).
///
/// Scratch memory for int8, where there are more elements than numbers: the function of all 256.
pub const ELU: Kernel = elementwise(Code::ELU, elu).with_scratch(elu_scratch);

fn relu_quantized<T: Quantized>(pair: &Pair<'_>) -> Result<(), Fault> {
    let factor = pair.ratio(1.0)?;
    let (from, to) = (pair.input.zero_point(), pair.output.zero_point());
    let least = to.max(T::LEAST);
    pair.compute(|x: T| {
        let scaled = factor.apply(x.into().wrapping_sub(from));
        T::truncated(clamp(scaled.wrapping_add(to), least, T::LARGEST))
    })
}

fn relu(node: &Node<'_>) -> Result<(), Fault> {
    let (pair, element_type) = Pair::of_one_type(node)?;
    match element_type {
        Type::INT8 => relu_quantized::<i8>(&pair),
        Type::INT16 => {
            expect_zero_point(&pair.input, 0)?;
            expect_zero_point(&pair.output, 0)?;
            relu_quantized::<i16>(&pair)
        }
        Type::FLOAT32 => pair.compute(|x: f32| if x < 0.0 { 0.0 } else { x }),
        _ => Err(pair.input.wrong_type()),
    }
}

fn relu6_quantized<T: Quantized>(pair: &Pair<'_>) -> Result<(), Fault> {
    let zero = pair.input.zero_point();
    let six = (libm::roundf(6.0 / pair.input.scale()?) as i32).saturating_add(zero);
    let (least, largest) = (T::truncated(zero).into(), six.min(T::LARGEST));
    pair.compute(|x: T| {
        let x: i32 = x.into();
        T::truncated(match x > largest {
            true => largest,
            false => x.max(least),
        })
    })
}

fn relu6(node: &Node<'_>) -> Result<(), Fault> {
    let (pair, element_type) = Pair::of_one_type(node)?;
    match element_type {
        Type::INT8 => relu6_quantized::<i8>(&pair),
        Type::INT16 => relu6_quantized::<i16>(&pair),
        Type::FLOAT32 => pair.compute(|x: f32| clamp(x, 0.0, 6.0)),
        _ => Err(pair.input.wrong_type()),
    }
}

fn leaky_relu_quantized<T: Quantized>(pair: &Pair<'_>, alpha: f32) -> Result<(), Fault> {
    let of_negative = pair.ratio(alpha)?;
    let of_positive = pair.ratio(1.0)?;
    // What is negative is rounded as if it was not.
    let sign = of_negative.multiplier.signum();
    let of_negative = Multiplier {
        multiplier: of_negative.multiplier.wrapping_abs(),
        ..of_negative
    };
    let (from, to) = (pair.input.zero_point(), pair.output.zero_point());
    pair.compute(|x: T| {
        let x = x.into().wrapping_sub(from);
        let scaled = match x >= 0 {
            true => of_positive.apply(x),
            false => of_negative.apply(x).wrapping_mul(sign),
        };
        T::saturated(scaled.wrapping_add(to))
    })
}

fn leaky_relu(node: &Node<'_>) -> Result<(), Fault> {
    let (pair, element_type) = Pair::of_one_type(node)?;
    let alpha = node.options()?.f32(0, 0.0)?;
    match element_type {
        Type::INT8 => leaky_relu_quantized::<i8>(&pair, alpha),
        Type::INT16 => leaky_relu_quantized::<i16>(&pair, alpha),
        Type::FLOAT32 => pair.compute(|x: f32| if x > 0.0 { x } else { x * alpha }),
        _ => Err(pair.input.wrong_type()),
    }
}

fn prelu_quantized<T: Quantized>(t: &Operands<'_>) -> Result<(), Fault> {
    let (input, output) = (t.a.scale()?, t.output.scale()?);
    let of_positive = Multiplier::of_scales(input, 1.0, output);
    let of_negative = Multiplier::of_scales(input, t.b.scale()?, output);
    let (from, to, of_alpha) = (t.a.zero_point(), t.output.zero_point(), t.b.zero_point());
    t.compute(|x: T, alpha: i8| {
        let x = x.into().wrapping_sub(from);
        let scaled = match x >= 0 {
            true => of_positive.apply(x),
            false => of_negative.apply(x.wrapping_mul(i32::from(alpha).wrapping_sub(of_alpha))),
        };
        T::saturated(scaled.wrapping_add(to))
    })
}

fn prelu(node: &Node<'_>) -> Result<(), Fault> {
    // Looked at where it is, since stacks are small.
    let t = Operands::new(node);
    let t = t.as_ref().map_err(|fault| *fault)?;
    t.output.expect(t.a.element_type())?;
    match t.a.element_type() {
        Type::FLOAT32 => {
            t.b.expect(Type::FLOAT32)?;
            t.compute(|x: f32, alpha: f32| if x >= 0.0 { x } else { x * alpha })
        }
        Type::INT8 => {
            t.b.expect(Type::INT8)?;
            prelu_quantized::<i8>(t)
        }
        Type::INT16 => {
            t.b.expect(Type::INT8)?;
            prelu_quantized::<i16>(t)
        }
        _ => Err(t.a.wrong_type()),
    }
}

/// A factor with 16 bits, and its shift to the left: `DownScaleInt32ToInt16Multiplier`.
fn short(factor: Multiplier) -> (i32, i32) {
    let multiplier = match factor.multiplier >= i32::MAX - (1 << 15) {
        true => i16::MAX.into(),
        false => (factor.multiplier + (1 << 15)) >> 16,
    };
    (multiplier, factor.shift)
}

/// As [`doubling_high`](crate::fixed::doubling_high), of 16 bits.
#[inline(always)]
fn doubling_high_16(a: i32, b: i32) -> i32 {
    ((a * b + (1 << 14)) >> 15).min(i16::MAX.into())
}

/// `x * 2^bits` in 16 bits, or the nearest that there is.
#[inline(always)]
fn shift_left_16(x: i32, bits: u32) -> i32 {
    i16::saturated(x.wrapping_shl(bits)).into()
}

fn hard_swish_quantized(pair: &Pair<'_>) -> Result<(), Fault> {
    const FINE: f32 = 1.0 / 128.0;
    let (output, output_shift) = short(pair.ratio(FINE)?);
    let reluish = Multiplier::of_scales(pair.input.scale()?, FINE, 3.0 / 32768.0);
    let (reluish, reluish_shift) = short(reluish);
    if output_shift > 0 {
        return Err(Fault::Quantization(pair.output.operand()));
    }
    // Beyond 16 bits all is shifted out.
    let (left, right) = (
        reluish_shift.clamp(0, 16) as u32,
        (-reluish_shift).clamp(0, 16) as u32,
    );
    let (from, to) = (pair.input.zero_point(), pair.output.zero_point());
    pair.compute(|x: i8| {
        let x: i32 = i16::truncated(i32::from(x).wrapping_sub(from) << 7).into();
        // The last bit to the left only after the factor, where alone it may saturate.
        let relu = match left {
            0 => x,
            _ => shift_left_16(x, left - 1),
        };
        let relu = doubling_high_16(relu, reluish);
        let relu = match left {
            0 => rounding_shift_right(relu, right),
            _ => shift_left_16(relu, 1),
        };
        // From -1 to 1, with 16 bits, to from 0 to 1.
        let relu = (relu + (1 << 15)) >> 1;
        // Towards 0, which the rounding above makes up for.
        let product = relu * doubling_high_16(x, output) / (1 << 15);
        let scaled = rounding_shift_right(product, output_shift.unsigned_abs());
        i8::saturated(i16::truncated(scaled.wrapping_add(to)).into())
    })
}

fn hard_swish(node: &Node<'_>) -> Result<(), Fault> {
    let (pair, element_type) = Pair::of_one_type(node)?;
    match element_type {
        Type::INT8 => hard_swish_quantized(&pair),
        Type::FLOAT32 => pair.compute(|x: f32| x * clamp(x + 3.0, 0.0, 6.0) / 6.0),
        _ => Err(pair.input.wrong_type()),
    }
}

const NUMBERS: usize = 256;

fn elu_scratch(node: &Node<'_>) -> Result<usize, Fault> {
    let input = node.input(0)?;
    match input.element_type() == Type::INT8 && input.len() > NUMBERS {
        true => Ok(NUMBERS),
        false => Ok(0),
    }
}

fn elu(node: &Node<'_>) -> Result<(), Fault> {
    let (pair, element_type) = Pair::of_one_type(node)?;
    match element_type {
        Type::FLOAT32 => pair.compute(|x: f32| if x < 0.0 { libm::expm1f(x) } else { x }),
        Type::INT8 => {
            let scale = pair.input.scale()?;
            let inverse = 1.0 / pair.output.scale()?;
            let (from, to) = (pair.input.zero_point(), pair.output.zero_point() as f32);
            let of = |x: i8| {
                let x = scale * i32::from(x).wrapping_sub(from) as f32;
                let y = if x < 0.0 { libm::expf(x) - 1.0 } else { x };
                i8::saturated((libm::roundf(y * inverse) + to) as i32)
            };
            if pair.input.len() <= NUMBERS {
                return pair.compute(of);
            }
            let table = node.scratch::<i8>()?;
            for x in i8::MIN..=i8::MAX {
                table.set(usize::from(x as u8), of(x));
            }
            pair.compute(|x: i8| table.get(usize::from(x as u8)))
        }
        _ => Err(pair.input.wrong_type()),
    }
}
