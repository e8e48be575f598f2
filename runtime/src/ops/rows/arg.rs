//! ARG_MAX and ARG_MIN.
//!
//! The rules are those of TFLM's `arg_min_max.cc` and `reference/arg_min_max.h`: of equal elements, the first counts.

use super::{INPUT, OUTPUT, along, read, type_of, write};
use crate::error::Fault;
use crate::kernel::{Code, Kernel};
use crate::memory::Element;
use crate::node::Node;
use crate::types::Type;

/// `ARG_MAX`: indices (int32) of the largest elements along an axis (input 1, int32), of int8 or float32.
pub const ARG_MAX: Kernel = Kernel::builtin(Code::ARG_MAX, |node| arg(node, true));
/// `ARG_MIN`: indices (int32) of the least elements along an axis (input 1, int32), of int8 or float32.
pub const ARG_MIN: Kernel = Kernel::builtin(Code::ARG_MIN, |node| arg(node, false));

fn arg(node: &Node<'_>, max: bool) -> Result<(), Fault> {
    match type_of(node, INPUT)? {
        Type::INT8 => arg_of::<i8>(node, Type::INT8, max),
        Type::FLOAT32 => arg_of::<f32>(node, Type::FLOAT32, max),
        _ => Err(Fault::ElementType(INPUT)),
    }
}

fn arg_of<T: Element + PartialOrd>(
    node: &Node<'_>,
    element_type: Type,
    max: bool,
) -> Result<(), Fault> {
    let (outer, len, inner) = along(node)?;
    let from = read::<T>(node, 0, element_type)?;
    let to = write::<i32>(node, OUTPUT, Type::INT32)?;
    if to.len() != outer * inner {
        return Err(Fault::Shape(OUTPUT));
    }
    for k in 0..outer {
        for j in 0..inner {
            let mut at = k * len * inner + j;
            let mut best = (0, from.get(at));
            for index in 1..len {
                at += inner;
                let x = from.get(at);
                if if max { x > best.1 } else { x < best.1 } {
                    best = (index, x);
                }
            }
            to.set(k * inner + j, best.0 as i32);
        }
    }
    Ok(())
}
