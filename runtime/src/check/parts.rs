//! Operators that read a part of their input: when is who reads the rest done with it?
//!
//! Firmware whose kernels have no SLICE links nothing of this.

use super::{Check, promised};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::node::Node;
use crate::records::Flag;
use crate::run::Numbers;

/// What is done with parts, reached through the kernel of SLICE.
pub(crate) struct Parts {
    /// Marks what an operator reads a part of.
    pub(super) mark: fn(&mut Check<'_>, &Node<'_>),
    pub(super) is_done_with: fn(&Check<'_>, usize, usize) -> Result<bool, Error>,
}

pub(crate) static PARTS: Parts = Parts { mark, is_done_with };

/// The functions, if one of the kernels needs them.
pub(super) fn parts(kernels: &[Kernel]) -> Option<&'static Parts> {
    kernels.iter().find_map(|kernel| kernel.parts)
}

fn mark(check: &mut Check<'_>, node: &Node<'_>) {
    if node.subgraph() == 0
        && takes_part(node)
        && let Some(read) = node.inputs.into_iter().next()
        && let Some(read) = check.record_of(node, read)
    {
        check.records.set(read, Flag::PARTED, true);
    }
}

/// Whether the kernel of `node` reads a part of its first input, and of all that it reads no more.
fn takes_part(node: &Node<'_>) -> bool {
    let kernel = node.run.kernel(node);
    kernel.is_some_and(|kernel| kernel.parts.is_some())
}

/// Whether `y` is written when nobody reads the bytes of `x` any more that both have.
fn is_done_with(check: &Check<'_>, x: usize, y: usize) -> Result<bool, Error> {
    let is_one =
        |record, flag| check.records.has(record, flag) && !check.records.has(record, Flag::SHARED);
    if !is_one(x, Flag::PARTED)
        || !is_one(y, Flag::WRITTEN)
        || check.records.has(x, Flag::KEPT)
        || !(check.records.has(x, Flag::WRITTEN) || check.records.has(x, Flag::GIVEN))
        || check.records.span(x).0 >= check.records.span(y).0
    {
        return Ok(false);
    }
    // Whether `y` is written, and nothing is missed.
    let (mut written, mut done) = (false, true);
    let (subgraph, first) = Numbers::of(check.run.model, 0)?;
    check
        .run
        .for_each_node_of(0, &subgraph, first, &mut |node| {
            let mut outputs = node.outputs.into_iter();
            let writes = outputs.any(|tensor| check.record_of(node, tensor) == Some(y));
            written |= writes;
            if written && reads(check, node, x, y) {
                done &= writes && check.takes_over(node, x, y);
            }
            Ok(())
        })?;
    Ok(written && done)
}

/// Whether `node` reads bytes of `x` that `y` has, too.
fn reads(check: &Check<'_>, node: &Node<'_>, x: usize, y: usize) -> bool {
    let (start, end) = check.records.range(y);
    let mut inputs = node.inputs.into_iter().enumerate();
    inputs.any(|(input, tensor)| {
        if check.record_of(node, tensor) != Some(x) {
            return false;
        }
        let (mut from, mut to) = check.records.range(x);
        if input == 0
            && takes_part(node)
            && let Some(at) = promised(node, 0, 0).and_then(|overlap| overlap.view_at)
            && let Some(bytes) = node.output(0).ok().and_then(|part| part.byte_len())
        {
            // Where the part would be a view of the input; offsets in the head are below 2^30.
            from = from.wrapping_sub(at as u32);
            to = from.saturating_add(bytes as u32).min(to);
        }
        from < end && start < to
    })
}
