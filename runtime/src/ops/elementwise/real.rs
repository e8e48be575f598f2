//! Functions of real numbers.

use super::{Pair, Quantized, elementwise, expect_zero_point};
use crate::error::Fault;
use crate::fixed::Multiplier;
use crate::fixed::logistic::inverse_sqrt;
use crate::kernel::{Code, Kernel};
use crate::node::Node;
use crate::types::Type;

macro_rules! functions {
    ($($name:ident $f:expr, $doc:literal;)*) => {$(
        #[doc = $doc]
        pub const $name: Kernel = elementwise(Code::$name, |node| floats(node)?.compute($f));
    )*};
}

functions! {
    EXP libm::expf, "`EXP`, of float32 (`exp.cc`).";
    LOG libm::logf, "`LOG`, of float32 (`elementwise.cc`).";
    SIN libm::sinf, "`SIN`, of float32 (`elementwise.cc`).";
    COS libm::cosf, "`COS`, of float32 (`elementwise.cc`).";
    SQRT libm::sqrtf, "`SQRT`, of float32 (`elementwise.cc`).";
    SQUARE |x: f32| x * x, "`SQUARE`, of float32 (`elementwise.cc`).";
    NEG |x: f32| -x, "`NEG`, of float32 (`neg.cc`).";
    ROUND libm::rintf, "`ROUND`, of float32: to the nearest, half to even (`round.cc`).";
    FLOOR libm::floorf, "`FLOOR`, of float32 (`floor.cc`).";
    CEIL libm::ceilf, "`CEIL`, of float32 (`ceil.cc`).";
}

/// `ABS`, of int8, int16 and float32 (`elementwise.cc`). The zero points of int16 are 0, and it may have no scale.
pub const ABS: Kernel = elementwise(Code::ABS, abs);
/// `RSQRT`, 1 over the square root, of int8 and int16 not below the zero point, and float32 (`elementwise.cc`). The zero
/// points of int16 are 0.
pub const RSQRT: Kernel = elementwise(Code::RSQRT, rsqrt);

#[inline(never)]
fn floats<'a>(node: &Node<'a>) -> Result<Pair<'a>, Fault> {
    let (pair, element_type) = Pair::of_one_type(node)?;
    match element_type {
        Type::FLOAT32 => Ok(pair),
        _ => Err(pair.input.wrong_type()),
    }
}

fn abs_quantized<T: Quantized>(pair: &Pair<'_>) -> Result<(), Fault> {
    // A factor of 1 changes nothing.
    let factor = pair.ratio(1.0)?;
    let (from, to) = (pair.input.zero_point(), pair.output.zero_point());
    pair.compute(|x: T| {
        let scaled = factor.apply(x.into().wrapping_sub(from).wrapping_abs());
        T::saturated(scaled.wrapping_add(to))
    })
}

fn abs(node: &Node<'_>) -> Result<(), Fault> {
    let (pair, element_type) = Pair::of_one_type(node)?;
    match element_type {
        Type::INT8 => abs_quantized::<i8>(&pair),
        Type::INT16 if pair.input.scales().is_empty() => pair.compute(i16::wrapping_abs),
        Type::INT16 => {
            expect_zero_point(&pair.input, 0)?;
            expect_zero_point(&pair.output, 0)?;
            abs_quantized::<i16>(&pair)
        }
        Type::FLOAT32 => pair.compute(f32::abs),
        _ => Err(pair.input.wrong_type()),
    }
}

fn rsqrt_quantized<T: Quantized>(pair: &Pair<'_>) -> Result<(), Fault> {
    // Bits that keep the value an integer.
    const SHIFT: i32 = 20;
    let root = libm::sqrt(f64::from(pair.input.scale()?));
    let mut factor = Multiplier::new(1.0 / (root * f64::from(pair.output.scale()?)));
    factor.shift = (factor.shift - SHIFT).max(-31);
    let (from, to) = (pair.input.zero_point(), pair.output.zero_point());
    let mut input = pair.input.read::<T>()?.iter();
    if input.any(|x| x.into() < from) {
        return Err(pair.input.wrong_value());
    }
    pair.compute(|x: T| match x.into().wrapping_sub(from) {
        0 => T::truncated(T::LARGEST),
        x => {
            let (multiplier, shift) = inverse_sqrt(x);
            let shift = shift + SHIFT;
            let inverse = Multiplier { multiplier, shift }.apply(1);
            T::saturated(factor.apply(inverse).wrapping_add(to))
        }
    })
}

fn rsqrt(node: &Node<'_>) -> Result<(), Fault> {
    let (pair, element_type) = Pair::of_one_type(node)?;
    match element_type {
        Type::FLOAT32 => pair.compute(|x: f32| 1.0 / libm::sqrtf(x)),
        Type::INT8 => rsqrt_quantized::<i8>(&pair),
        Type::INT16 => {
            expect_zero_point(&pair.input, 0)?;
            expect_zero_point(&pair.output, 0)?;
            rsqrt_quantized::<i16>(&pair)
        }
        _ => Err(pair.input.wrong_type()),
    }
}
