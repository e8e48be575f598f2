//! What the kernels of a target promise and ask for, of the file's operators and of copies with other rows.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::contract::{self, Overlap};
use crate::graph::{Graph, Operator, TensorId};
use crate::target::{Library, Target};
use crate::tflm::ALIGNMENT;
use crate::tflm::scratch::scratch_requests;

/// How a net will be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Without any plan: tensors are whole, and the device places them.
    Greedy,
    /// Copies onto themselves, as every library keeps them, and ranges of bytes with lifetimes of their own.
    Views,
    /// Also outputs that run into inputs, as far as the target's kernels allow.
    Overlap,
}

/// An operator of the file, its input and output, and how many rows they have.
type Asked = (u32, [u32; 2], i64, i64);

/// What the kernels of a target promise and ask for, of the file's operators and of copies with other rows.
pub(crate) struct Kernels<'a> {
    pub(super) mode: Mode,
    target: Target,
    library: Library,
    /// Its shapes are changed to those of a copy, and back.
    graph: RefCell<Graph<'a>>,
    operators: Vec<Operator<'a>>,
    first_tensor: u32,
    /// By operator of the file, input and output, and rows of inputs and output.
    promises: RefCell<BTreeMap<Asked, Overlap>>,
    /// By operator of the file, and rows of inputs and output.
    scratch: RefCell<BTreeMap<(u32, i64, i64), u64>>,
    /// For each operator of the file, which input and output are views of each other: input, output, where the input is.
    pub(super) views: Vec<Vec<(u32, u32, i64)>>,
    /// Tensors that keep their values to the end.
    pub(super) kept: Vec<u32>,
}

impl<'a> Kernels<'a> {
    /// Those of `target`, for `graph`. Tensors in `kept` keep their values to the end.
    pub(crate) fn new(graph: &Graph<'a>, target: Target, mode: Mode, kept: &[TensorId]) -> Self {
        let subgraph = &graph.subgraphs[0];
        let first_tensor = subgraph.first_tensor.0;
        let views = subgraph.operators.iter().map(|op| {
            let mut views = Vec::new();
            for &input in op.inputs.iter().flatten() {
                for &output in &op.outputs {
                    let places = [input, output].map(|t| graph.tensor(t).is_planned());
                    if mode == Mode::Greedy || places != [true, true] {
                        continue;
                    }
                    if let Some(at) = contract::between(target, graph, op, input, output).view_at {
                        views.push((input.0 - first_tensor, output.0 - first_tensor, at));
                    }
                }
            }
            views
        });
        let views = views.collect();
        Self {
            mode,
            target,
            library: target.libraries()[0],
            operators: subgraph.operators.clone(),
            first_tensor,
            promises: RefCell::default(),
            scratch: RefCell::default(),
            views,
            kept: kept.iter().map(|t| t.0 - first_tensor).collect(),
            graph: RefCell::new(graph.clone()),
        }
    }

    /// How the net will be planned.
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Does something with the graph while an operator has these rows; `None` leaves the file's.
    fn with_rows<R>(
        &self,
        layer: u32,
        rows: Option<(i64, i64)>,
        work: impl FnOnce(&Graph<'a>, &Operator<'a>) -> R,
    ) -> R {
        let op = &self.operators[layer as usize];
        let mut changed: Vec<(TensorId, Vec<i32>, u64)> = Vec::new();
        let mut graph = self.graph.borrow_mut();
        if let Some((rows_in, rows_out)) = rows {
            let inputs = op.inputs.iter().flatten().map(|&t| (t, rows_in));
            for (t, rows) in inputs.chain(op.outputs.iter().map(|&t| (t, rows_out))) {
                let tensor = &mut graph.tensors[t.index()];
                if !tensor.is_planned() || changed.iter().any(|c| c.0 == t) {
                    continue;
                }
                changed.push((t, tensor.shape.clone(), tensor.bytes));
                if let [_, height, ..] = &mut tensor.shape[..] {
                    let whole = u64::try_from(*height).unwrap_or(1).max(1);
                    let rows = rows.clamp(1, i64::from(*height));
                    tensor.bytes = tensor.bytes / whole * rows as u64;
                    *height = rows as i32;
                }
            }
        }
        let result = work(&graph, op);
        for (t, shape, bytes) in changed {
            let tensor = &mut graph.tensors[t.index()];
            (tensor.shape, tensor.bytes) = (shape, bytes);
        }
        result
    }

    /// What is promised of an input and the output of the file's operator, or of a copy with other rows.
    pub(super) fn promise(
        &self,
        layer: u32,
        input: u32,
        output: u32,
        rows: Option<(i64, i64)>,
    ) -> Overlap {
        let (rows_in, rows_out) = rows.unwrap_or_default();
        let key = (layer, [input, output], rows_in, rows_out);
        if let Some(known) = self.promises.borrow().get(&key) {
            return *known;
        }
        let id = |t: u32| TensorId(self.first_tensor + t);
        // Our own kernels are asked by the file, which has no copies: their distances are near those of the reference.
        let target = match (self.target, rows) {
            (Target::Arenaplan, Some(_)) => Target::TflmReference,
            (target, _) => target,
        };
        let found = self.with_rows(layer, rows, |graph, op| {
            contract::between(target, graph, op, id(input), id(output))
        });
        self.promises.borrow_mut().insert(key, found);
        found
    }

    /// Scratch memory of the file's operator, or of a copy with other rows, in bytes.
    pub(super) fn scratch(&self, layer: u32, rows: Option<(i64, i64)>) -> u64 {
        let (rows_in, rows_out) = rows.unwrap_or_default();
        let key = (layer, rows_in, rows_out);
        if let Some(known) = self.scratch.borrow().get(&key) {
            return *known;
        }
        let rows = rows.filter(|_| self.library != Library::Arenaplan);
        let found = self.with_rows(layer, rows, |graph, op| {
            let requests = scratch_requests(self.library, graph, op).into_iter();
            requests
                .map(|bytes| bytes.next_multiple_of(ALIGNMENT))
                .sum()
        });
        self.scratch.borrow_mut().insert(key, found);
        found
    }
}
