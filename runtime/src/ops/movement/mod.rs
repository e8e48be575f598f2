//! Operators that move elements and leave them as they are.
//!
//! Elements have a size here, and no meaning: a kernel takes every type whose elements have a fixed size, also where TFLM
//! has code for some of them only. All kernels write their output in order, each byte once.

use crate::contract::Contract;
use crate::error::Fault;
use crate::kernel::{Code, Kernel};
use crate::memory::View;
use crate::node::{Node, Tensor, found};
use crate::types::Type;

mod batches;
mod fill;
mod gather;
mod join;
mod moves;
mod pad;
mod rearrange;
mod resize;
mod slice;

pub use batches::{BATCH_TO_SPACE_ND, SPACE_TO_BATCH_ND};
pub use fill::{FILL, SHAPE};
pub use gather::{GATHER, GATHER_ND};
pub use join::{CONCATENATION, PACK, SPLIT, SPLIT_V, UNPACK};
pub use pad::{MIRROR_PAD, PAD, PADV2};
pub use rearrange::{BROADCAST_TO, DEPTH_TO_SPACE, SPACE_TO_DEPTH, TILE, TRANSPOSE};
pub use resize::{RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR};
pub use slice::{SLICE, STRIDED_SLICE};

pub(super) const KERNELS: &[Kernel] = &[
    BATCH_TO_SPACE_ND,
    BROADCAST_TO,
    CONCATENATION,
    DEPTH_TO_SPACE,
    EXPAND_DIMS,
    FILL,
    GATHER,
    GATHER_ND,
    MIRROR_PAD,
    PACK,
    PAD,
    PADV2,
    RESHAPE,
    RESIZE_BILINEAR,
    RESIZE_NEAREST_NEIGHBOR,
    SHAPE,
    SLICE,
    SPACE_TO_BATCH_ND,
    SPACE_TO_DEPTH,
    SPLIT,
    SPLIT_V,
    SQUEEZE,
    STRIDED_SLICE,
    TILE,
    TRANSPOSE,
    UNPACK,
];

/// `RESHAPE`: the same elements, with another shape. Of any type.
pub const RESHAPE: Kernel = Kernel::builtin(Code::RESHAPE, whole).with_contract(Contract::View);
/// `SQUEEZE`: the same elements, without dimensions of 1. Of any type.
pub const SQUEEZE: Kernel = Kernel::builtin(Code::SQUEEZE, whole).with_contract(Contract::View);
/// `EXPAND_DIMS`: the same elements, with one more dimension of 1. Of any type.
pub const EXPAND_DIMS: Kernel =
    Kernel::builtin(Code::EXPAND_DIMS, whole).with_contract(Contract::View);

fn whole(node: &Node<'_>) -> Result<(), Fault> {
    let (input, output) = (&node.input(0), &node.output(0));
    let (input, output) = (found(input)?, found(output)?);
    element_bytes(input, output)?;
    if input.len() != output.len() {
        return Err(output.wrong_shape());
    }
    output.bytes_mut()?.copy_from(input.bytes()?);
    Ok(())
}

/// Bytes of an element of both, which have one type.
fn element_bytes(input: &Tensor<'_>, output: &Tensor<'_>) -> Result<usize, Fault> {
    output.expect(input.element_type())?;
    input.element_type().bytes().ok_or(input.wrong_type())
}

/// The axis that `axis` stands for, which may be counted from the end: `None` outside of the rank.
fn axis(axis: i32, rank: usize) -> Option<usize> {
    let from_end = if axis < 0 { rank as i32 } else { 0 };
    let axis = usize::try_from(axis.checked_add(from_end)?).ok()?;
    (axis < rank).then_some(axis)
}

/// Numbers that an operator is steered by: int32 or int64.
#[derive(Clone, Copy)]
enum Numbers<'a> {
    Short(View<'a, i32>),
    Long(View<'a, i64>),
}

impl<'a> Numbers<'a> {
    fn of(tensor: &Tensor<'a>) -> Result<Self, Fault> {
        match tensor.element_type() {
            Type::INT32 => Ok(Numbers::Short(tensor.read()?)),
            Type::INT64 => Ok(Numbers::Long(tensor.read()?)),
            _ => Err(tensor.wrong_type()),
        }
    }

    fn len(self) -> usize {
        match self {
            Numbers::Short(view) => view.len(),
            Numbers::Long(view) => view.len(),
        }
    }

    /// Number `index`; -1 for one that is larger than an `i32`, which nothing here can be.
    #[inline(never)]
    fn get(self, index: usize) -> i32 {
        match self {
            Numbers::Short(view) => view.get(index),
            Numbers::Long(view) => i32::try_from(view.get(index)).unwrap_or(-1),
        }
    }
}
