//! ARG_MAX and ARG_MIN.
//!
//! The rules are those of TFLM's `arg_min_max.cc` and `reference/arg_min_max.h`: of equal elements, the first counts.

use super::along;
use crate::error::{Fault, Operand};
use crate::kernel::{Code, Kernel};
use crate::memory::Element;
use crate::node::{Node, Tensor};
use crate::types::Type;

/// `ARG_MAX`: indices (int32) of the largest elements along an axis (input 1, int32), of int8 or float32.
pub const ARG_MAX: Kernel = Kernel::builtin(Code::ARG_MAX, |node| arg(node, true));
/// `ARG_MIN`: indices (int32) of the least elements along an axis (input 1, int32), of int8 or float32.
pub const ARG_MIN: Kernel = Kernel::builtin(Code::ARG_MIN, |node| arg(node, false));

fn arg(node: &Node<'_>, max: bool) -> Result<(), Fault> {
    let (input, output) = (node.input(0)?, node.output(0)?);
    output.expect(Type::INT32)?;
    match input.element_type() {
        Type::INT8 => arg_of::<i8>(node, &input, &output, max),
        Type::FLOAT32 => arg_of::<f32>(node, &input, &output, max),
        _ => Err(Fault::ElementType(Operand::Input(0))),
    }
}

fn arg_of<T: Element + PartialOrd>(
    node: &Node<'_>,
    input: &Tensor<'_>,
    output: &Tensor<'_>,
    max: bool,
) -> Result<(), Fault> {
    let (outer, len, inner) = along(node, input)?;
    if output.len() != outer * inner {
        return Err(output.wrong_shape());
    }
    let (from, to) = (input.read::<T>()?, output.write::<i32>()?);
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
