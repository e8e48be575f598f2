//! What tensors hold while a model runs.

use std::cell::RefCell;
use std::collections::BTreeMap;

use arenaplan_runtime::{Observer, ViewMut};

use super::{ExecuteError, Figures, Memory, Setting, Source, Values, outputs, said, set, start};
use crate::graph::{Graph, TensorId};
use crate::model::Model;

/// What an invoke computed.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// The bytes of each tensor that was watched and is in the head, as its operator left them.
    pub(crate) tensors: BTreeMap<TensorId, Vec<u8>>,
    /// The outputs at the end.
    pub(crate) outputs: Vec<Values>,
}

/// Runs `model`, and notes what those of its main subgraph's tensors hold that `is_watched` names.
///
/// # Errors
/// A model that the runtime cannot run.
pub(crate) fn traces(
    model: &[u8],
    setting: &Setting<'_>,
    is_watched: impl Fn(TensorId) -> bool,
) -> Result<Vec<Trace>, ExecuteError> {
    let graph = Graph::read(Model::parse(model)?)?;
    let model = Memory::holding(model);
    let mut arena = Memory::new(0);
    let mut it = start(&graph, &model, &mut arena, setting)?;
    let figures = Figures::of(&it).map_err(|e| said(&graph, e))?;
    let mut watch = Watch::default();
    for op in &graph.subgraphs[0].operators {
        let placed = |&t: &TensorId| {
            let at = it.session().head_offset(t.0).filter(|_| is_watched(t))?;
            Some((t, at, graph.tensor(t).bytes as usize))
        };
        let written: Vec<_> = op.outputs.iter().filter_map(placed).collect();
        watch.written.insert(op.id.index, written);
    }
    let mut source = Source::new(&setting.feed, &figures.inputs)?;
    let mut traces = Vec::new();
    for _ in 0..setting.invokes {
        for (index, port) in figures.inputs.iter().enumerate() {
            set(&mut it, index, &source.next(index, port)?, &graph)?;
        }
        it.invoke_observed(&watch).map_err(|e| said(&graph, e))?;
        traces.push(Trace {
            tensors: watch.found.take(),
            outputs: outputs(&mut it, &figures.outputs, &graph)?,
        });
    }
    Ok(traces)
}

/// Notes what operators of the main subgraph leave.
#[derive(Default)]
struct Watch {
    /// For each operator, the tensors that it writes: where they start in the head, and their bytes.
    written: BTreeMap<u32, Vec<(TensorId, usize, usize)>>,
    found: RefCell<BTreeMap<TensorId, Vec<u8>>>,
}

impl Observer for Watch {
    fn after(&self, subgraph: u32, operator: u32, head: ViewMut<'_, u8>) {
        let written = (subgraph == 0)
            .then(|| self.written.get(&operator))
            .flatten();
        for &(tensor, at, bytes) in written.into_iter().flatten() {
            let held = (at..at + bytes).map(|k| head.get(k)).collect();
            self.found.borrow_mut().insert(tensor, held);
        }
    }
}
