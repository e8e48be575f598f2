//! Promises and scratch memory of an operator in a file, for compilers: nothing is placed, and nothing runs.

use core::cell::Cell;

use arenaplan_schema::view;

use super::{Overlap, overlap};
use crate::error::{Error, Fault};
use crate::kernel::Kernel;
use crate::memory::ViewMut;
use crate::node::Node;
use crate::run::Run;

/// What the kernel in `kernels` promises of input `input` and output `output` of operator `operator` in subgraph
/// `subgraph`, as [`overlap`].
///
/// The bytes of the model may have any alignment.
///
/// # Errors
/// If the file is damaged, there is no such operator or kernel, or as [`overlap`].
pub fn overlap_of(
    model: &[u8],
    kernels: &[Kernel],
    subgraph: usize,
    operator: usize,
    input: usize,
    output: usize,
) -> Result<Overlap, Error> {
    with(model, kernels, (subgraph, operator), &mut |node, kernel| {
        overlap(kernel.contract, node, input, output)
    })
}

/// Bytes of scratch memory that the kernel in `kernels` takes for operator `operator` in subgraph `subgraph`, without
/// [prepared data](crate::prepared).
///
/// Kernels may read constants for it, which they find only where these are aligned, as they are in a file that is loaded
/// to a multiple of 16.
///
/// # Errors
/// If the file is damaged, there is no such operator or kernel, or the kernel refuses it.
pub fn scratch_of(
    model: &[u8],
    kernels: &[Kernel],
    subgraph: usize,
    operator: usize,
) -> Result<usize, Error> {
    with(model, kernels, (subgraph, operator), &mut |node, kernel| {
        kernel.scratch.map_or(Ok(0), |scratch| scratch(node))
    })
}

type Asked<'f, T> = dyn FnMut(&Node<'_>, &Kernel) -> Result<T, Fault> + 'f;

/// Asks for something about an operator and its kernel.
pub(crate) fn with<T>(
    model: &[u8],
    kernels: &[Kernel],
    (subgraph, operator): (usize, usize),
    ask: &mut Asked<'_, T>,
) -> Result<T, Error> {
    let model = view::Model::new(model)?;
    let run = unplaced(&model, kernels);
    let lists = run.lists(subgraph as u32)?;
    let node = run.node(&lists, operator)?;
    let kernel = run.kernel_or_error(&node)?;
    ask(&node, kernel).map_err(|fault| Error::Operator {
        subgraph: node.subgraph(),
        operator: node.index,
        fault,
    })
}

/// What a model is looked at with, before anything has a place.
pub(crate) fn unplaced<'a>(model: &'a view::Model<'a>, kernels: &'a [Kernel]) -> Run<'a> {
    Run {
        model,
        kernels,
        head: ViewMut::default(),
        tail: ViewMut::default(),
        words: ViewMut::default(),
        tensors: 0,
        operators: 0,
        observer: None,
        depth: Cell::new(0),
    }
}
