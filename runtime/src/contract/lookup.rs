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
    with(model, kernels, (subgraph, operator), &|node, kernel| {
        overlap(kernel.contract, node, input, output)
    })
}

/// Bytes of scratch memory that the kernel in `kernels` takes for operator `operator` in subgraph `subgraph`.
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
    with(model, kernels, (subgraph, operator), &|node, kernel| {
        kernel.scratch.map_or(Ok(0), |scratch| scratch(node))
    })
}

type Asked<'f, T> = dyn Fn(&Node<'_>, &Kernel) -> Result<T, Fault> + 'f;

fn with<T>(
    model: &[u8],
    kernels: &[Kernel],
    (subgraph, operator): (usize, usize),
    ask: &Asked<'_, T>,
) -> Result<T, Error> {
    let run = Run {
        model: view::Model::new(model)?,
        kernels,
        head: ViewMut::default(),
        tail: ViewMut::default(),
        words: ViewMut::default(),
        tensors: 0,
        operators: 0,
        observer: None,
        depth: Cell::new(0),
    };
    let lists = run.lists(subgraph as u32)?;
    let node = run.node(&lists, operator)?;
    let kernel = run.kernel_or_error(&node)?;
    ask(&node, kernel).map_err(|fault| Error::Operator {
        subgraph: node.subgraph(),
        operator: node.index,
        fault,
    })
}
