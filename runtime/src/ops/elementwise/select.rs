//! SELECT_V2 and ZEROS_LIKE.

use super::broadcast::Runs;
use super::{Pair, elementwise};
use crate::contract::Contract;
use crate::error::{Fault, Operand};
use crate::kernel::{Code, Kernel};
use crate::memory::Element;
use crate::node::Node;
use crate::types::Type;

/// `SELECT_V2`: elements of the second or of the third input, as the first one says; of int8, int16 and float32
/// (`select.cc`).
pub const SELECT_V2: Kernel = elementwise(Code::SELECT_V2, select);
/// `ZEROS_LIKE`: as many zeros, of int8, int32, int64 and float32 (`zeros_like.cc`).
pub const ZEROS_LIKE: Kernel =
    // Nothing is read.
    Kernel::builtin(Code::ZEROS_LIKE, zeros_like).with_contract(Contract::Whole);

/// The type of the elements, of one byte each in the condition.
#[inline(never)]
fn one_type(node: &Node<'_>) -> Result<Type, Fault> {
    let element_type = node.output(0)?.element_type();
    node.input(0)?.expect(Type::BOOL)?;
    node.input(1)?.expect(element_type)?;
    node.input(2)?.expect(element_type)?;
    Ok(element_type)
}

fn select(node: &Node<'_>) -> Result<(), Fault> {
    match one_type(node)? {
        Type::INT8 => select_of::<i8>(node),
        Type::INT16 => select_of::<i16>(node),
        Type::FLOAT32 => select_of::<u32>(node),
        _ => Err(Fault::ElementType(Operand::Output(0))),
    }
}

/// Of elements of the size of `T`.
#[inline(never)]
fn select_of<T: Element>(node: &Node<'_>) -> Result<(), Fault> {
    let (condition, x, y) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let mut runs = Runs::NONE;
    runs.set(&node.output(0)?, &[&condition, &x, &y])?;
    let output = node.output(0)?.write::<T>()?;
    let (condition, x, y) = (condition.read::<u8>()?, x.read::<T>()?, y.read::<T>()?);
    while let Some(start) = runs.next(output.len()) {
        let ([at_condition, at_x, at_y], [step, step_x, step_y]) = (runs.at, runs.steps());
        if let Some(output) = output.part(start, runs.len()) {
            let condition = (condition.skip(at_condition), step);
            output.select(condition, (x.skip(at_x), step_x), (y.skip(at_y), step_y));
        }
    }
    Ok(())
}

fn zeros_like(node: &Node<'_>) -> Result<(), Fault> {
    let (pair, element_type) = Pair::of_one_type(node)?;
    match element_type {
        Type::INT8 | Type::INT32 | Type::INT64 | Type::FLOAT32 => {
            pair.output.bytes_mut()?.fill(0);
            Ok(())
        }
        _ => Err(pair.input.wrong_type()),
    }
}
