//! Operators that move elements and leave them as they are.

use crate::contract::Contract;
use crate::error::Fault;
use crate::kernel::{Code, Kernel};
use crate::node::Node;

pub(super) const KERNELS: &[Kernel] = &[EXPAND_DIMS, RESHAPE, SQUEEZE];

/// `RESHAPE`: the same elements, with another shape. Of any type.
pub const RESHAPE: Kernel = Kernel::builtin(Code::RESHAPE, whole).with_contract(Contract::View);
/// `SQUEEZE`: the same elements, without dimensions of 1. Of any type.
pub const SQUEEZE: Kernel = Kernel::builtin(Code::SQUEEZE, whole).with_contract(Contract::View);
/// `EXPAND_DIMS`: the same elements, with one more dimension of 1. Of any type.
pub const EXPAND_DIMS: Kernel =
    Kernel::builtin(Code::EXPAND_DIMS, whole).with_contract(Contract::View);

fn whole(node: &Node<'_>) -> Result<(), Fault> {
    let (input, output) = (node.input(0)?, node.output(0)?);
    if input.element_type() != output.element_type() {
        return Err(output.wrong_type());
    }
    if input.len() != output.len() {
        return Err(output.wrong_shape());
    }
    output.bytes_mut()?.copy_from(input.bytes()?);
    Ok(())
}
