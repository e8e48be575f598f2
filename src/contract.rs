//! What kernels promise about memory: how far an operator's output may lie over its inputs while it runs.
//!
//! For an operator with one input and one output in question, let `d = address(input) - address(output)` in bytes. The
//! kernel's loops read and write in some order, and a layout is right when no output byte is written over an input byte
//! that is still to be read:
//!
//! ```text
//! d >= input_above_output      right: the output runs behind what the kernel has read
//! -d >= output_above_input     right: the other way around
//! d == view_at                 right, and the operator then leaves both with the same bytes in common
//! ```
//!
//! Distances are exact to the element: 0 where input and output may start at one address, the whole size where the kernel
//! promises nothing.

use crate::graph::{Graph, Operator, TensorId};
use crate::target::{Library, Target};

/// What a kernel promises of one of its inputs and one of its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// Every layout with the input at least this many bytes above the output is right. At most the output's bytes, which
    /// is always right. 0 also stands for a kernel that would allow less than 0.
    pub input_above_output: u64,
    /// Every layout with the output at least this many bytes above the input is right. At most the input's bytes.
    pub output_above_input: u64,
    /// Where the input may start, in bytes above the output's start (below it when negative), so that the operator
    /// copies bytes onto themselves: they then belong to both, for as long as either is in use.
    pub view_at: Option<i64>,
}

impl Overlap {
    /// Nothing is promised: the two share no byte.
    pub fn none(input_bytes: u64, output_bytes: u64) -> Self {
        Self {
            input_above_output: output_bytes,
            output_above_input: input_bytes,
            view_at: None,
        }
    }
}

/// What `library` promises of input `input` and output `output` (positions in the operator's lists) of `op`.
///
/// Tensors that are absent, constant, or otherwise not in the arena get [`Overlap::none`].
pub fn overlap(
    library: Library,
    graph: &Graph<'_>,
    op: &Operator<'_>,
    input: usize,
    output: usize,
) -> Overlap {
    let _ = library;
    let bytes = |t| graph.tensor(t).bytes;
    let from = op.inputs.get(input).copied().flatten().map_or(0, bytes);
    let to = op.outputs.get(output).copied().map_or(0, bytes);
    Overlap::none(from, to)
}

/// What every library of `target` promises of the operator that reads `from` and writes `to`, at each position at which it
/// reads `from`: the largest distances, and a view only where all have it.
pub fn between(
    target: Target,
    graph: &Graph<'_>,
    op: &Operator<'_>,
    from: TensorId,
    to: TensorId,
) -> Overlap {
    let nothing = Overlap::none(graph.tensor(from).bytes, graph.tensor(to).bytes);
    let _ = (target, op);
    nothing
}
