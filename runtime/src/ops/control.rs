//! Control flow and resources.
//!
//! What is copied where, and in which order, is what TFLM's `if.cc`, `while.cc` and `call_once.cc` do, since plans count on
//! it: two tensors may lie over each other because one is copied before the other is written.

use crate::error::Fault;
use crate::kernel::{Code, Kernel};
use crate::memory::ViewMut;
use crate::node::{Node, Tensor};
use crate::run::Place;
use crate::types::Type;

/// `CALL_ONCE`: runs a subgraph at its first inference after a reset.
pub const CALL_ONCE: Kernel = Kernel::builtin(Code::CALL_ONCE, call_once);
/// `IF`: runs one of two subgraphs.
pub const IF: Kernel = Kernel::builtin(Code::IF, if_);
/// `WHILE`: runs a subgraph as long as another one says so.
pub const WHILE: Kernel = Kernel::builtin(Code::WHILE, while_);
/// `VAR_HANDLE`: names a resource, while the model is prepared.
pub const VAR_HANDLE: Kernel = Kernel::builtin(Code::VAR_HANDLE, var_handle);
/// `READ_VARIABLE`: copies a resource's value.
pub const READ_VARIABLE: Kernel = Kernel::builtin(Code::READ_VARIABLE, read_variable);
/// `ASSIGN_VARIABLE`: sets a resource's value.
pub const ASSIGN_VARIABLE: Kernel = Kernel::builtin(Code::ASSIGN_VARIABLE, assign_variable);

pub(super) const KERNELS: &[Kernel] = &[
    ASSIGN_VARIABLE,
    CALL_ONCE,
    IF,
    READ_VARIABLE,
    VAR_HANDLE,
    WHILE,
];

fn copy(from: &Tensor<'_>, to: &Tensor<'_>) -> Result<(), Fault> {
    if from.element_type() != to.element_type() || from.len() != to.len() {
        return Err(Fault::Subgraph);
    }
    // A resource is the same whoever names it.
    if from.element_type() == Type::RESOURCE {
        return Ok(());
    }
    to.bytes_mut()?.copy_from(from.bytes()?);
    Ok(())
}

fn called(node: &Node<'_>, slot: u16) -> Result<u32, Fault> {
    u32::try_from(node.options()?.i32(slot, 0)?).map_err(|_| Fault::Subgraph)
}

fn is_true(tensor: &Tensor<'_>) -> Result<bool, Fault> {
    tensor.expect(Type::BOOL)?;
    Ok(tensor.read::<u8>()?.get(0) != 0)
}

fn call_once(node: &Node<'_>) -> Result<(), Fault> {
    if node.run.operator_word(node.number()) != Place::DONE.0 {
        node.call(called(node, 0)?)?;
        node.run.set_operator_word(node.number(), Place::DONE.0);
    }
    Ok(())
}

fn if_(node: &Node<'_>) -> Result<(), Fault> {
    let subgraph = match is_true(&node.input(0)?)? {
        true => called(node, 0)?,
        false => called(node, 1)?,
    };
    let (inputs, outputs) = node.subgraph_sizes(subgraph)?;
    if inputs + 1 != node.inputs() || outputs != node.outputs() {
        return Err(Fault::Subgraph);
    }
    for k in 0..inputs {
        copy(&node.input(k + 1)?, &node.subgraph_input(subgraph, k)?)?;
    }
    node.call(subgraph)?;
    for k in 0..outputs {
        copy(&node.subgraph_output(subgraph, k)?, &node.output(k)?)?;
    }
    Ok(())
}

fn while_(node: &Node<'_>) -> Result<(), Fault> {
    let (condition, body) = (called(node, 0)?, called(node, 1)?);
    let len = node.inputs();
    if node.outputs() != len
        || node.subgraph_sizes(condition)? != (len, 1)
        || node.subgraph_sizes(body)? != (len, len)
    {
        return Err(Fault::Subgraph);
    }
    for k in 0..len {
        copy(&node.input(k)?, &node.subgraph_input(condition, k)?)?;
    }
    for k in 0..len {
        copy(&node.input(k)?, &node.output(k)?)?;
    }
    loop {
        node.call(condition)?;
        if !is_true(&node.subgraph_output(condition, 0)?)? {
            return Ok(());
        }
        for k in 0..len {
            copy(&node.output(k)?, &node.subgraph_input(body, k)?)?;
        }
        node.call(body)?;
        for k in 0..len {
            copy(&node.subgraph_output(body, k)?, &node.output(k)?)?;
        }
        for k in 0..len {
            copy(&node.output(k)?, &node.subgraph_input(condition, k)?)?;
        }
    }
}

fn var_handle(_: &Node<'_>) -> Result<(), Fault> {
    Ok(())
}

fn value<'a>(node: &Node<'a>) -> Result<ViewMut<'a, u8>, Fault> {
    let handle = node.input(0)?;
    let place = Place(node.run.tensor_word(handle.id()));
    let value = place
        .as_resource()
        .and_then(|number| node.run.resource(number));
    value.ok_or(handle.wrong_value())
}

fn read_variable(node: &Node<'_>) -> Result<(), Fault> {
    let (value, output) = (value(node)?, node.output(0)?);
    let to = output.bytes_mut()?;
    if to.len() != value.len() {
        return Err(output.wrong_shape());
    }
    to.copy_from(value.view());
    Ok(())
}

fn assign_variable(node: &Node<'_>) -> Result<(), Fault> {
    let (value, input) = (value(node)?, node.input(1)?);
    let from = input.bytes()?;
    if from.len() != value.len() {
        return Err(input.wrong_shape());
    }
    value.copy_from(from);
    Ok(())
}
