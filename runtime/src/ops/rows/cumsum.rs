//! CUMSUM, sums of all elements up to each.
//!
//! The rules are those of TFLM's `cumsum.cc` and `reference/cumsum.h`.

use super::{INPUT, OUTPUT, along, quantization, read, tensor, type_of, write};
use crate::error::{Fault, Operand};
use crate::fixed::{Multiplier, clamp};
use crate::kernel::{Code, Kernel};
use crate::memory::Element;
use crate::node::Node;
use crate::types::Type;

/// `CUMSUM` along an axis (input 1, one int32), with or without the element itself, in either direction: int8 or float32.
pub const CUMSUM: Kernel = Kernel::builtin(Code::CUMSUM, cumsum);

const OPTION_EXCLUSIVE: u16 = 0;
const OPTION_REVERSE: u16 = 1;

fn cumsum(node: &Node<'_>) -> Result<(), Fault> {
    if tensor(node, INPUT)?.shape() != tensor(node, OUTPUT)?.shape() {
        return Err(Fault::Shape(OUTPUT));
    }
    match type_of(node, INPUT)? {
        Type::INT8 => int8(node),
        Type::FLOAT32 => {
            let add = |sum: f32, x: f32| sum + x;
            accumulate(node, Type::FLOAT32, 0.0, add, |sum| sum)
        }
        _ => Err(Fault::ElementType(INPUT)),
    }
}

fn int8(node: &Node<'_>) -> Result<(), Fault> {
    const SHIFT: u32 = 20;
    let (in_scale, in_zero) = quantization(node, INPUT)?;
    let (out_scale, zero_point) = quantization(node, OUTPUT)?;
    let twice = 2.0 * f64::from(in_scale);
    let real = twice / (f64::from(1u32 << SHIFT) * f64::from(out_scale));
    let in_range = real > 0.0 && real < 1.0;
    let factor = Multiplier::new(real);
    if !in_range || factor.shift > 0 {
        return Err(Fault::Quantization(OUTPUT));
    }
    // Half, which is the input's scale over twice the input's scale.
    let half = Multiplier {
        multiplier: 1 << 30,
        shift: 0,
    };
    let offset = in_zero.wrapping_neg();
    let scaled = |x: i32| half.apply(x.wrapping_shl(SHIFT));
    accumulate(
        node,
        Type::INT8,
        // TFLM starts here, not at 0.
        scaled(offset),
        |sum, x: i8| sum.wrapping_add(scaled(offset.wrapping_add(x.into()))),
        |sum| clamp(factor.apply(sum).wrapping_add(zero_point), -128, 127) as i8,
    )
}

fn accumulate<T: Element, A: Copy>(
    node: &Node<'_>,
    element_type: Type,
    start: A,
    add: impl Fn(A, T) -> A,
    result: impl Fn(A) -> T,
) -> Result<(), Fault> {
    if read::<i32>(node, 1, Type::INT32)?.len() != 1 {
        return Err(Fault::Shape(Operand::Input(1)));
    }
    let options = node.options()?;
    let exclusive = options.bool(OPTION_EXCLUSIVE, false)?;
    let reverse = options.bool(OPTION_REVERSE, false)?;
    let from = read::<T>(node, 0, element_type)?;
    let to = write::<T>(node, OUTPUT, element_type)?;
    let (outer, len, inner) = along(node)?;
    let step = if reverse { inner.wrapping_neg() } else { inner };
    for k in 0..outer {
        for j in 0..inner {
            let first = if reverse { len - 1 } else { 0 };
            let mut at = (k * len + first) * inner + j;
            let mut sum = start;
            for _ in 0..len {
                let before = sum;
                sum = add(sum, from.get(at));
                to.set(at, result(if exclusive { before } else { sum }));
                at = at.wrapping_add(step);
            }
        }
    }
    Ok(())
}
