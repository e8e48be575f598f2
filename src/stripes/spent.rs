//! What operators cost: time in quarters of a multiplication, and bytes that they keep in the arena's tail.

use arenaplan_schema::tflite::BuiltinOperator as Op;

use super::net::{Kind, Net, NetOperator, NetTensor};
use crate::graph::{Graph, Operator, Storage, TensorId};

/// What an operator of the file costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Time, whatever the rows.
    pub(crate) fixed: u64,
    /// Time for each row of the output; all of them are one row where there are none.
    pub(crate) per_row: u64,
    /// Multiplications for each row of the output.
    pub(crate) macs_per_row: u64,
    /// Bytes in the tail, the operator's and its output's entries included.
    pub(crate) tail: u64,
}

/// What all operators of a net cost.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    layers: Vec<Cost>,
    /// Bytes of a pixel of the file's tensors.
    pixels: Vec<u64>,
    /// Time of the file's operators.
    pub(crate) whole: u64,
    /// Multiplications of the file's operators.
    pub(crate) whole_macs: u64,
    /// Bytes that they keep in the tail.
    pub(crate) whole_tail: u64,
}

/// Time and tail of operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) time: u64,
    pub(crate) macs: u64,
    pub(crate) tail: u64,
}

impl Spent {
    pub(crate) fn add(&mut self, other: Spent) {
        self.time += other.time;
        self.macs += other.macs;
        self.tail += other.tail;
    }
}

const CALL: u64 = 800;

impl Costs {
    /// Those of subgraph 0.
    pub(crate) fn read(graph: &Graph<'_>, net: &Net) -> Self {
        let subgraph = &graph.subgraphs[0];
        let tensors = (0..subgraph.tensor_count).map(|t| {
            let tensor = graph.tensor(TensorId(subgraph.first_tensor.0 + t));
            let pixels = tensor.dim(1).max(1) as u64 * tensor.dim(2).max(1) as u64;
            (tensor.bytes / pixels).max(1)
        });
        let mut costs = Self {
            layers: subgraph.operators.iter().map(|o| cost(graph, o)).collect(),
            pixels: tensors.collect(),
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
        match op.kind {
            Kind::Layer { index, .. } | Kind::Pad { index, .. } => {
                let cost = self.layers[index as usize];
                let rows = output.rows.max(1) as u64;
                Spent {
                    time: cost.fixed + rows * cost.per_row,
                    macs: rows * cost.macs_per_row,
                    tail: cost.tail,
                }
            }
            Kind::Slice { .. } => {
                let pixels = output.bytes() / self.pixels[output.of as usize];
                Spent {
                    time: CALL + 48 * pixels + output.bytes(),
                    macs: 0,
                    tail: 44 + 28,
                }
            }
            Kind::Concatenation => Spent {
                time: CALL + output.bytes(),
                macs: 0,
                tail: 44,
            },
        }
    }
}

fn cost(graph: &Graph<'_>, op: &Operator<'_>) -> Cost {
    let tensor = |t: Option<&Option<TensorId>>| t.copied().flatten().map(|t| graph.tensor(t));
    let Some(output) = op.outputs.first().map(|&t| graph.tensor(t)) else {
        return Cost::default();
    };
    let rows = match output.shape[..] {
        [1, rows, _, _] if rows > 0 => rows as u64,
        _ => 1,
    };
    let elements = output.elements() / rows;
    let dims = tensor(op.inputs.get(1)).map(|w| [w.dim(0), w.dim(1), w.dim(2), w.dim(3)]);
    let window = |used: &[usize]| -> u64 {
        let dims = dims.unwrap_or([1; 4]);
        used.iter().map(|&d| dims[d].max(1) as u64).product()
    };
    let (macs, time, tail) = match op.code {
        Op::CONV_2D => {
            let macs = elements * window(&[1, 2, 3]);
            (
                macs,
                4 * macs + 16 * elements,
                100 + 8 * output.dim(-1) as u64,
            )
        }
        Op::DEPTHWISE_CONV_2D => {
            let macs = elements * window(&[1, 2]);
            (
                macs,
                6 * macs + 16 * elements,
                100 + 8 * output.dim(-1) as u64,
            )
        }
        Op::FULLY_CONNECTED => {
            let macs = elements * window(&[1]);
            (macs, 4 * macs + 16 * elements, 60)
        }
        Op::MAX_POOL_2D | Op::AVERAGE_POOL_2D => {
            let options = op.table.builtin_options_as_pool_2_doptions();
            let taps = options.map_or(1, |o| {
                o.filter_height().max(1) as u64 * o.filter_width().max(1) as u64
            });
            (0, 4 * elements * taps, 60)
        }
        Op::PAD | Op::PADV2 | Op::CONCATENATION => (0, 4 * elements, 60),
        Op::RELU | Op::RELU6 => (0, 12 * elements, 60),
        _ => {
            // Other products of a model: at least as much as their weights.
            let weights = op.inputs.iter().flatten().map(|&t| graph.tensor(t));
            let weights = weights.filter(|t| t.storage == Storage::Constant);
            let weights = weights.map(|t| t.elements()).max().unwrap_or(0);
            (0, 32 * elements + 4 * weights, 60)
        }
    };
    Cost {
        fixed: CALL,
        per_row: time,
        macs_per_row: macs,
        tail: 44 + tail,
    }
}
