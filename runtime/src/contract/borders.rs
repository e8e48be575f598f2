//! Operators that put a border around a tensor.
//!
//! The output is written in order. Where index `o` of an axis comes from index `i` of the input, all before it was written,
//! and what comes from it is read within it; so the axis asks for the most that `o` of its indices in the output take above
//! `i` of them in the input, and within that index the next axis asks for the same.
//!
//! ```text
//! input      |i = 0|i = 1|i = 2|
//! output     |border  |i = 0|border  |i = 1|border  |i = 2|border  |
//!                                                  ^ is written when i = 2 is moved
//! ```

use super::moves::constant;
use super::{Contract, Overlap, Pair};
use crate::error::Fault;
use crate::node::{Node, Tensor};

/// The most dimensions that the kernels take.
const RANK: usize = 5;

/// `last` has, for an axis of `dim` indices and what is before and behind them, the index of the output that asks for most,
/// and that of the input from which it comes.
fn border(
    node: &Node<'_>,
    pair: &Pair<'_>,
    last: impl Fn(usize, usize, usize) -> Option<(usize, usize)>,
) -> Option<Overlap> {
    let paddings = constant(node, 1)?;
    let (from, to) = (pair.from, pair.to);
    let ty = |tensor: Result<Tensor<'_>, Fault>| tensor.ok().map(|tensor| tensor.element_type());
    let is_same = ty(node.input(0)) == ty(node.output(0)) && from.rank() == to.rank();
    if pair.input != 0 || !is_same || from.rank() > RANK || paddings.len() != 2 * from.rank() {
        return None;
    }
    // Bytes of an index of the axis.
    let (mut from_step, mut to_step) = (pair.from_size, pair.to_size);
    let mut above = 0usize;
    for axis in (0..from.rank()).rev() {
        let dim = from.dim(axis);
        let number = |index| usize::try_from(paddings.get(index)?).ok();
        let (before, after) = (number(2 * axis)?, number(2 * axis + 1)?);
        if dim.checked_add(before)?.checked_add(after)? != to.dim(axis) {
            return None;
        }
        let (o, i) = last(dim, before, after)?;
        let shift = o
            .checked_mul(to_step)?
            .checked_sub(i.checked_mul(from_step)?)?;
        above = above.checked_add(shift)?;
        from_step = from_step.checked_mul(dim)?;
        to_step = to_step.checked_mul(to.dim(axis))?;
    }
    Some(match above {
        // Nothing is written before all of the input is moved, at once.
        0 => Overlap::ANY,
        _ => pair.above(above),
    })
}

/// The input's indices move up as they come.
fn inside(dim: usize, before: usize) -> Option<(usize, usize)> {
    let last = dim.checked_sub(1)?;
    Some((before.checked_add(last)?, last))
}

pub(super) fn padding(_: Contract, node: &Node<'_>, pair: &Pair<'_>) -> Option<Overlap> {
    border(node, pair, |dim, before, _| inside(dim, before))
}

pub(super) fn mirror_padding(_: Contract, node: &Node<'_>, pair: &Pair<'_>) -> Option<Overlap> {
    let reflect = match node.options().ok()?.i8(0, 0).ok()? {
        0 => 1,
        1 => 0,
        _ => return None,
    };
    border(node, pair, |dim, before, after| {
        // Behind the input's indices it goes down again.
        let behind = dim.checked_sub(after.checked_add(reflect)?);
        match after.checked_sub(1) {
            None => inside(dim, before),
            Some(more) => Some((before.checked_add(dim)?.checked_add(more)?, behind?)),
        }
    })
}
