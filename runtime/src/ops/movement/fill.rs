//! Operators whose output depends on no elements, or on one.

use crate::contract::Contract;
use crate::error::Fault;
use crate::kernel::{Code, Kernel};
use crate::node::Node;
use crate::types::Type;

use super::pad::{fill, low};
use super::{Numbers, element_bytes};

/// `FILL`: one value everywhere, of any type.
pub const FILL: Kernel = Kernel::builtin(Code::FILL, fill_all).with_contract(Contract::Whole);
/// `SHAPE`: the dimensions of the input, as int32.
pub const SHAPE: Kernel = Kernel::builtin(Code::SHAPE, shape).with_contract(Contract::Whole);

fn fill_all(node: &Node<'_>) -> Result<(), Fault> {
    let (dims, value, output) = (node.input(0)?, node.input(1)?, node.output(0)?);
    let element = element_bytes(&value, &output)?;
    if value.len() != 1 {
        return Err(value.wrong_shape());
    }
    let numbers = Numbers::of(&dims)?;
    if numbers.len() != output.shape().rank() {
        return Err(dims.wrong_shape());
    }
    for axis in 0..numbers.len() {
        if usize::try_from(numbers.get(axis)) != Ok(output.shape().dim(axis)) {
            return Err(dims.wrong_value());
        }
    }
    fill(output.bytes_mut()?, element, low(&value, element)?);
    Ok(())
}

fn shape(node: &Node<'_>) -> Result<(), Fault> {
    let (shape, output) = (node.input(0)?.shape(), node.output(0)?);
    output.expect(Type::INT32)?;
    let dims = output.write::<i32>()?;
    if dims.len() != shape.rank() {
        return Err(output.wrong_shape());
    }
    for axis in 0..shape.rank() {
        dims.set(axis, shape.dim(axis) as i32);
    }
    Ok(())
}
