//! A better order for the operators of a model: the one with the least peak of bytes alive.
//!
//! The order of the operators in a file is one of many that compute the same. Each subgraph is ordered by itself, called
//! ones first, since what is alive inside a call counts at the calling operator. State keeps its order (`effects.rs`).
//!
//! ```text
//! Graph -> Task (objects with bytes, operators with precedence) -> search -> settle -> Schedule -> Graph::reordered
//! ```

use std::collections::BTreeMap;

use crate::graph::{Graph, TensorId};
use crate::scratch::Scratch;
use crate::tflm::ALIGNMENT;

mod beam;
mod effects;
mod exact;
mod model;
mod parts;
mod reach;
mod search;
mod sets;
mod settle;
mod task;
#[cfg(test)]
mod tests;

pub use search::{Budget, Found, search};
pub use settle::settle;
pub use task::{Object, Step, Task};

/// An order of the operators of each subgraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// For each subgraph and new position, the position that the operator had.
    pub orders: Vec<Vec<u32>>,
    /// Whether no order of the operators has a lower peak, scratch memory included.
    pub is_proved: bool,
    /// That peak, in bytes.
    pub peak: u64,
}

impl Schedule {
    /// Whether all operators are where they were.
    pub fn is_unchanged(&self) -> bool {
        self.orders.iter().all(|order| order.is_sorted())
    }
}

/// Which tensors share memory by design, and how much each piece takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// For each tensor, by [`TensorId`], its object; `None` for one that takes no memory in the head.
    pub of: Vec<Option<u32>>,
    /// Bytes of each object, rounding included.
    pub bytes: Vec<u64>,
    /// Inputs that outputs of their operators may lie over, with the bytes that this saves if nobody needs the input later.
    pub overlaps: BTreeMap<(TensorId, TensorId), u64>,
    /// Overlaps count only where nobody needs the input later in any order: another order may come of it, and no proof.
    pub is_cautious: bool,
}

impl Objects {
    /// Each tensor that TFLM gives room in the head is an object of its own.
    pub fn of_tensors(graph: &Graph<'_>) -> Self {
        let mut objects = Self::default();
        for tensor in &graph.tensors {
            let takes_room = tensor.is_planned() || tensor.is_left_to_tflm();
            objects
                .of
                .push(takes_room.then_some(objects.bytes.len() as u32));
            if takes_room {
                objects.bytes.push(tensor.bytes.next_multiple_of(ALIGNMENT));
            }
        }
        objects
    }
}

/// Looks for the order of operators with the least peak. Tensors in `keep` stay alive to the end.
///
/// Subgraphs that nothing runs, and those with operators that have arena offsets compiled in, are left as they are. The
/// graph's calls must end, as [`crate::lifetimes::Lifetimes::of`] makes sure.
pub fn schedule(
    graph: &Graph<'_>,
    objects: &Objects,
    scratch: &Scratch,
    keep: &[TensorId],
) -> Schedule {
    model::schedule(graph, objects, scratch, keep)
}
