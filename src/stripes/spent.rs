//! What the operators of a net cost: instructions, MACs, and bytes that they keep in the arena's tail.

use super::cost::{self, Cost, Machine};
use super::net::{Kind, Net, NetOperator, NetTensor};
use super::tail::Tail;
use crate::graph::{Graph, TensorId};
use crate::target::Target;
use crate::tflm::ALIGNMENT;

/// What all operators of a net cost.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    machine: Machine,
    /// Whether SLICE and CONCATENATION lie on what they copy, where they can.
    views: bool,
    layers: Vec<Layer>,
    /// Bytes of a pixel of the file's tensors.
    pixels: Vec<u64>,
    /// Bytes in the tail of a SLICE with its tensors, and of a CONCATENATION; its output is there anyway.
    slice_tail: u64,
    join_tail: u64,
    /// Instructions of the file's operators.
    pub(crate) whole: u64,
    /// MACs of the file's operators.
    pub(crate) whole_macs: u64,
    /// Bytes that they keep in the tail.
    pub(crate) whole_tail: u64,
}

/// What an operator of the file costs.
#[derive(Clone, Copy, Debug)]
struct Layer {
    cost: Cost,
    /// Bytes in the tail, the operator's and its output's entries included.
    tail: u64,
}

/// Instructions, MACs and tail of operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) time: u64,
    pub(crate) macs: u64,
    pub(crate) tail: u64,
}

impl Spent {
    pub(crate) fn add(&mut self, other: Spent) {
        self.time = self.time.saturating_add(other.time);
        self.macs = self.macs.saturating_add(other.macs);
        self.tail = self.tail.saturating_add(other.tail);
    }
}

impl Costs {
    /// Those of subgraph 0, for a target; with `views` where a plan lets SLICE and CONCATENATION lie on what they copy.
    pub(crate) fn read(graph: &Graph<'_>, net: &Net, target: Target, views: bool) -> Self {
        let subgraph = &graph.subgraphs[0];
        let (machine, kept) = (Machine::of(target), Tail::of(target));
        let tensors = (0..subgraph.tensor_count).map(|t| {
            let tensor = graph.tensor(TensorId(subgraph.first_tensor.0 + t));
            let pixels = tensor.dim(1).max(1).saturating_mul(tensor.dim(2).max(1));
            (tensor.bytes / pixels.unsigned_abs()).max(1)
        });
        let layers = subgraph.operators.iter().map(|op| Layer {
            cost: cost::of(machine, graph, op),
            tail: kept.operator(graph, op) + kept.tensor() * op.outputs.len() as u64,
        });
        let mut costs = Self {
            machine,
            views,
            layers: layers.collect(),
            pixels: tensors.collect(),
            // Its output and where it starts; how many rows it takes is mostly there already.
            slice_tail: kept.slice() + 2 * kept.tensor(),
            join_tail: kept.concatenation(),
            whole: 0,
            whole_macs: 0,
            whole_tail: 0,
        };
        let mut all = Spent::default();
        for op in &net.operators {
            all.add(costs.of(op, |t| net.tensor(t)));
        }
        (costs.whole, costs.whole_macs, costs.whole_tail) = (all.time.max(1), all.macs, all.tail);
        costs
    }

    /// What an operator costs, given its tensors.
    pub(crate) fn of<'t>(&self, op: &NetOperator, tensor: impl Fn(u32) -> &'t NetTensor) -> Spent {
        let Some(output) = op.outputs.first().map(|&t| tensor(t)) else {
            return Spent::default();
        };
        let inputs = || op.inputs.iter().flatten().map(|&t| tensor(t));
        let (instructions, macs, tail) = match op.kind {
            Kind::Layer { index, .. } | Kind::Pad { index, .. } => {
                let Layer { cost, tail } = self.layers[index as usize];
                let rows = output.rows.unsigned_abs();
                (cost.instructions(rows), cost.macs(rows), tail)
            }
            Kind::Slice { from } => {
                let before = from.unsigned_abs() * output.row_bytes;
                let in_place = self.views && before.is_multiple_of(ALIGNMENT);
                let bytes = output.bytes();
                let pixels = bytes / self.pixels[output.of as usize];
                let instructions = cost::slice(self.machine, pixels, bytes, in_place);
                (instructions, 0, self.slice_tail)
            }
            Kind::Concatenation => {
                let mut at = 0;
                let mut in_place = self.views;
                for part in inputs() {
                    in_place &= u64::is_multiple_of(at, ALIGNMENT);
                    at += part.bytes();
                }
                let parts = op.inputs.len() as u64;
                let instructions = cost::concatenation(self.machine, parts, at, in_place);
                (instructions, 0, self.join_tail)
            }
        };
        Spent {
            time: instructions.max(0).unsigned_abs(),
            macs,
            tail,
        }
    }
}
