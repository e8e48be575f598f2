//! The target `arenaplan`: what the bundled runtime promises and takes, told by the runtime itself.
//!
//! Contracts and scratch memory are data and functions beside the runtime's kernels; here they are asked for each operator of
//! a [`Graph`]. What the device does with a plan is what it does for TFLM: fixed offsets first, then the greedy planner
//! around them, which is one piece of code ([`arenaplan_runtime::greedy`]).

use arenaplan_runtime as runtime;
use arenaplan_schema::view;

use crate::contract::Overlap;
use crate::execute::Memory;
use crate::graph::{Graph, Operator};
use crate::prepared::Prepared;
use crate::report::Arena;
use crate::scratch::Scratch;

/// Bytes that the runtime needs for each buffer in the head while it prepares a model.
const RECORD: u64 = 16;

/// What the runtime's kernel of `op` promises; `None` where there is none, or where it refuses the operator.
pub(crate) fn overlap(
    graph: &Graph<'_>,
    op: &Operator<'_>,
    input: usize,
    output: usize,
) -> Option<Overlap> {
    // The runtime goes by stored shapes.
    let tensors = op.inputs.iter().flatten().chain(&op.outputs);
    let mut tensors = tensors.map(|&tensor| graph.tensor(tensor));
    if tensors.any(|tensor| tensor.prepared_shape.is_some()) {
        return None;
    }
    let (subgraph, operator) = place(graph, op)?;
    let found = runtime::contract::overlap_of(
        graph.model.bytes(),
        runtime::ops::ALL,
        subgraph,
        operator,
        input,
        output,
    );
    let found = found.ok()?;
    Some(Overlap {
        input_above_output: found.input_above_output as u64,
        output_above_input: found.output_above_input as u64,
        view_at: found.view_at.map(|at| at as i64),
    })
}

/// Bytes of scratch memory that the runtime's kernel of `op` asks for: none, or one request.
pub(crate) fn scratch(graph: &Graph<'_>, op: &Operator<'_>, prepared: Prepared<'_>) -> Vec<u64> {
    if prepared.has(graph, op) {
        return Vec::new();
    }
    let bytes = place(graph, op).and_then(|(subgraph, operator)| {
        // Kernels read constants, which must be aligned as they are on a device.
        let copy;
        let bytes = match graph.model.bytes() {
            bytes if bytes.as_ptr().addr().is_multiple_of(16) => bytes,
            bytes => {
                copy = Memory::holding(bytes);
                copy.as_slice()
            }
        };
        runtime::contract::scratch_of(bytes, runtime::ops::ALL, subgraph, operator).ok()
    });
    match bytes {
        None | Some(0) => Vec::new(),
        Some(bytes) => vec![bytes as u64],
    }
}

/// Whether the runtime has a kernel for `op`.
pub(crate) fn is_known(op: &Operator<'_>) -> bool {
    runtime::ops::find(runtime::ops::ALL, runtime::Code(op.code.0)).is_some()
}

/// What an arena needs with this head. The tail is exact, on devices of any width.
pub(crate) fn arena(graph: &Graph<'_>, scratch: &Scratch, head: u64) -> Arena {
    let tail_bytes = runtime::tail_bytes(graph.model.bytes(), runtime::ops::ALL);
    let tail_bytes = tail_bytes.map_or(0, |bytes| bytes as u64);
    let tensors = graph
        .tensors
        .iter()
        .filter(|t| t.is_planned() || t.is_left_to_tflm());
    let planning_bytes = (tensors.count() as u64 + scratch.len() as u64) * RECORD;
    let head = head.max(planning_bytes).next_multiple_of(16);
    Arena {
        tail_bytes,
        planning_bytes,
        arena_bytes: head.saturating_add(tail_bytes),
    }
}

/// Where `op` is in the file, which may have its operators in another order than the graph.
pub(crate) fn place(graph: &Graph<'_>, op: &Operator<'_>) -> Option<(usize, usize)> {
    let model = view::Model::new(graph.model.bytes()).ok()?;
    let subgraph = op.id.subgraph as usize;
    let operators = model
        .subgraphs()
        .ok()?
        .get(subgraph)
        .ok()?
        .operators()
        .ok()?;
    let position = op.table._tab.loc();
    let is_it = |&index: &usize| {
        let found = operators.get(index);
        found.is_ok_and(|found| found.table().position() == position)
    };
    let likely = [op.id.index as usize, op.original as usize];
    let mut all = likely.into_iter().chain(0..operators.len());
    all.find(is_it).map(|operator| (subgraph, operator))
}
