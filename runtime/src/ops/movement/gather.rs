//! Operators that pick pieces by their index.

use crate::error::Fault;
use crate::kernel::{Code, Kernel};
use crate::node::{Node, Tensor};

use super::{Numbers, element_bytes};

/// `GATHER`: pieces along an axis, of any type, by int32 or int64 indices.
pub const GATHER: Kernel = Kernel::builtin(Code::GATHER, gather);
/// `GATHER_ND`: pieces by indices of several axes, of any type, by int32 or int64 indices.
pub const GATHER_ND: Kernel = Kernel::builtin(Code::GATHER_ND, gather_nd);

fn gather(node: &Node<'_>) -> Result<(), Fault> {
    const AXIS: u16 = 0;
    const BATCH_DIMS: u16 = 1;
    let options = node.options()?;
    let (input, indices, output) = (node.input(0)?, node.input(1)?, node.output(0)?);
    let element = element_bytes(&input, &output)?;
    let (shape, of_indices) = (input.shape(), indices.shape());
    let axis =
        super::axis(options.i32(AXIS, 0)?, shape.rank()).ok_or(Fault::Unsupported(AXIS as u8))?;
    // One more than the last axis is right here.
    let batch_dims = match options.i32(BATCH_DIMS, 0)? {
        dims if dims < 0 => super::axis(dims, of_indices.rank()),
        dims => super::axis(dims, of_indices.rank() + 1),
    };
    let batch_dims = batch_dims
        .filter(|&dims| dims <= axis)
        .ok_or(Fault::Unsupported(BATCH_DIMS as u8))?;
    for k in 0..batch_dims {
        if shape.dim(k) != of_indices.dim(k) {
            return Err(indices.wrong_shape());
        }
    }
    let products = (
        shape.product(0, batch_dims),
        shape.product(batch_dims, axis),
        of_indices.product(batch_dims, of_indices.rank()),
        shape.product(axis + 1, shape.rank()),
    );
    let (Some(batches), Some(outer), Some(count), Some(inner)) = products else {
        return Err(input.wrong_shape());
    };
    let piece = inner.wrapping_mul(element);
    let picks = Numbers::of(&indices)?;
    let pieces = Pieces::new(&input, &output, piece)?;
    let sum = (batches.checked_mul(outer)).and_then(|sum| sum.checked_mul(count));
    pieces.expect(sum)?;
    if output.is_empty() {
        return Ok(());
    }
    let dim = shape.dim(axis);
    let (mut to, mut first) = (0, 0usize);
    for batch in 0..batches {
        for _ in 0..outer {
            for k in 0..count {
                let pick = usize::try_from(picks.get(batch.wrapping_mul(count).wrapping_add(k)));
                let pick = pick.ok().filter(|&pick| pick < dim);
                let pick = pick.ok_or(indices.wrong_value())?;
                pieces.move_one(first.wrapping_add(pick), to)?;
                to += 1;
            }
            first = first.wrapping_add(dim);
        }
    }
    Ok(())
}

fn gather_nd(node: &Node<'_>) -> Result<(), Fault> {
    let (input, indices, output) = (node.input(0)?, node.input(1)?, node.output(0)?);
    let element = element_bytes(&input, &output)?;
    let (shape, of_indices) = (input.shape(), indices.shape());
    let Some(last) = of_indices.rank().checked_sub(1) else {
        return Err(indices.wrong_shape());
    };
    let depth = of_indices.dim(last);
    if depth > shape.rank() {
        return Err(indices.wrong_shape());
    }
    let products = (
        of_indices.product(0, last),
        shape.product(depth, shape.rank()),
    );
    let (Some(count), Some(inner)) = products else {
        return Err(input.wrong_shape());
    };
    let picks = Numbers::of(&indices)?;
    let pieces = Pieces::new(&input, &output, inner.wrapping_mul(element))?;
    pieces.expect(Some(count))?;
    if output.is_empty() {
        return Ok(());
    }
    let mut at = 0;
    for to in 0..count {
        let mut from = 0usize;
        for axis in 0..depth {
            let dim = shape.dim(axis);
            let pick = usize::try_from(picks.get(at))
                .ok()
                .filter(|&pick| pick < dim);
            from = from
                .wrapping_mul(dim)
                .wrapping_add(pick.ok_or(indices.wrong_value())?);
            at += 1;
        }
        pieces.move_one(from, to)?;
    }
    Ok(())
}

/// Moves pieces of one size.
struct Pieces<'t, 'a> {
    input: crate::memory::View<'a, u8>,
    output: crate::memory::ViewMut<'a, u8>,
    to: &'t Tensor<'a>,
    bytes: usize,
}

impl<'t, 'a> Pieces<'t, 'a> {
    fn new(input: &Tensor<'a>, output: &'t Tensor<'a>, bytes: usize) -> Result<Self, Fault> {
        Ok(Self {
            input: input.bytes()?,
            output: output.bytes_mut()?,
            to: output,
            bytes,
        })
    }

    /// The output has `count` pieces.
    fn expect(&self, count: Option<usize>) -> Result<(), Fault> {
        match count.and_then(|count| count.checked_mul(self.bytes)) == Some(self.output.len()) {
            true => Ok(()),
            false => Err(self.to.wrong_shape()),
        }
    }

    #[inline(never)]
    fn move_one(&self, from: usize, to: usize) -> Result<(), Fault> {
        let bytes = self.bytes;
        let from = self.input.part(from.wrapping_mul(bytes), bytes);
        let out = self.output.part(to.wrapping_mul(bytes), bytes);
        let (Some(from), Some(out)) = (from, out) else {
            return Err(self.to.wrong_shape());
        };
        out.copy_from(from);
        Ok(())
    }
}
