//! What the operators of a net take: instructions, multiplications, and bytes of the tail.

use std::collections::BTreeSet;

use super::cost::{self, Cost, Machine};
use super::net::{Kind, Net, NetOperator, NetTensor};
use super::tail::Tail;
use crate::graph::{Graph, TensorId};
use crate::target::Target;
use crate::tflm::ALIGNMENT;

/// Time, multiplications and tail of operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Instructions.
    pub(crate) time: i64,
    /// Multiplications of an input with a weight.
    pub(crate) macs: u64,
    /// Bytes in the tail, for the operators, for what they write, and for the constants of SLICEs.
    pub(crate) tail: u64,
}

/// What all operators of a net take.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    machine: Machine,
    tail: Tail,
    /// Whether SLICE and CONCATENATION lie on what they copy, where they can.
    views: bool,
    /// By operator of the file: its cost, and bytes in the tail.
    layers: Vec<(Cost, u64)>,
    /// Pixels in a row of each of the file's tensors.
    widths: Vec<u64>,
    /// What the file's operators take.
    pub(crate) whole: Spent,
}

impl Costs {
    /// Those of subgraph 0, for a target; with `views` where a plan lets SLICE and CONCATENATION lie on what they copy.
    pub(crate) fn read(graph: &Graph<'_>, net: &Net, target: Target, views: bool) -> Self {
        let subgraph = &graph.subgraphs[0];
        let (machine, tail) = (Machine::of(target), Tail::of(target));
        let layers = subgraph.operators.iter();
        let layers = layers.map(|op| (cost::of(machine, graph, op), tail.operator(graph, op)));
        let tensors = (0..subgraph.tensor_count).map(|t| TensorId(subgraph.first_tensor.0 + t));
        let width = |t: TensorId| u64::try_from(graph.tensor(t).dim(2)).unwrap_or(1);
        let mut costs = Self {
            machine,
            tail,
            views,
            layers: layers.collect(),
            widths: tensors.map(width).collect(),
            whole: Spent::default(),
        };
        costs.whole = costs.of(&net.operators, |t| net.tensor(t));
        costs
    }

    /// What operators take, given their tensors.
    pub(crate) fn of<'t>(
        &self,
        operators: &[NetOperator],
        tensor: impl Fn(u32) -> &'t NetTensor,
    ) -> Spent {
        let mut all = Spent::default();
        // SLICEs share constants: where they begin, and the shapes.
        let mut begins: BTreeSet<i64> = BTreeSet::new();
        let mut shapes: BTreeSet<(u32, i64)> = BTreeSet::new();
        for op in operators {
            let Some(output) = op.outputs.first().map(|&t| tensor(t)) else {
                continue;
            };
            all.tail += self.tail.tensor() * op.outputs.len() as u64;
            match op.kind {
                Kind::Layer { index, .. } | Kind::Pad { index, .. } => {
                    let (cost, tail) = &self.layers[index as usize];
                    let rows = u64::try_from(output.rows).unwrap_or(0);
                    all.time = all.time.saturating_add(cost.instructions(rows));
                    all.macs = all.macs.saturating_add(cost.macs(rows));
                    all.tail += tail;
                }
                Kind::Slice { from } => {
                    let at = from.unsigned_abs() * output.row_bytes;
                    let pixels = output.rows.unsigned_abs() * self.widths[output.of as usize];
                    let in_place = self.views && at.is_multiple_of(ALIGNMENT);
                    all.time += cost::slice(self.machine, pixels, output.bytes(), in_place);
                    all.tail += self.tail.slice();
                    begins.insert(from);
                    shapes.insert((output.of, output.rows));
                }
                Kind::Concatenation => {
                    let (mut at, mut in_place) = (0u64, self.views);
                    for &part in op.inputs.iter().flatten() {
                        in_place &= at.is_multiple_of(ALIGNMENT);
                        at += tensor(part).bytes();
                    }
                    let count = op.inputs.len() as u64;
                    all.time += cost::concatenation(self.machine, count, output.bytes(), in_place);
                    all.tail += self.tail.concatenation();
                }
            }
        }
        all.tail += self.tail.tensor() * (begins.len() + shapes.len()) as u64;
        all
    }
}
