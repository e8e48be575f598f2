//! What TensorFlow Lite Micro will do with a model: where it puts things, and how much room it takes.
//!
//! [`simulate`] repeats TFLM's planning of the head with or without an offline plan, [`scratch`] knows what the kernels of
//! each library ask for, [`tail`] estimates what persists, and [`room`] what planning itself needs.

use std::collections::BTreeSet;

use crate::graph::{Graph, TensorId};

pub(crate) mod cmsis_nn;
pub mod room;
pub mod scratch;
mod simulate;
pub mod tail;
pub(crate) mod window;

pub use simulate::{ALIGNMENT, Placed, Simulation, simulate};

/// Entries that must be -1 because TFLM reads them for a variable of another subgraph: `AllocateVariables` looks up
/// the `i`-th variable of any subgraph in the `i`-th entry of the whole list. Where that is not -1, a variable of a
/// later subgraph never gets memory.
pub fn entries_read_for_variables(graph: &Graph<'_>) -> BTreeSet<TensorId> {
    let variables = graph
        .tensors
        .iter()
        .filter(|t| t.subgraph != 0 && t.table.is_variable());
    variables.map(|t| TensorId(t.index)).collect()
}
