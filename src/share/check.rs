//! Are planned files right for models that take turns on one arena?
//!
//! It starts from the files, and shares no code with what planned them. Each model by itself goes through
//! [`check::check`](crate::check::check) as the device will lay it out, with each kernel library of the target: an output is
//! whole at the end, and an input is whole from the start of an invoke to its last reader, scratch memory and what the device
//! places included. What is linked then only has to be the same bytes on both sides, and to survive the models between the two.

use std::collections::BTreeSet;

use super::{Error, Link, Member, graphs};
use crate::aliasing::Level;
use crate::check::{self, Tag};
use crate::graph::{Graph, Storage, TensorId};
use crate::lifetimes::Lifetimes;
use crate::plan::Options;
use crate::prepared::Prepared;
use crate::stored::StoredPlan;
use crate::tflm::{self, Simulation};

/// What is wrong with planned files that share an arena, one line for each fault.
///
/// # Errors
/// A file cannot be read, or a link leads to something that is not there.
pub fn check(
    members: &[Member<'_>],
    links: &[Link],
    options: &Options,
) -> Result<Vec<String>, Error> {
    let graphs = graphs(members)?;
    let mut models = Vec::new();
    for (member, graph) in members.iter().zip(&graphs) {
        models.push(Laid::of(graph, options).map_err(|error| Error::of(member, error))?);
    }
    let mut ends = Vec::new();
    for &link in links {
        let tensor = |list: Option<&Vec<TensorId>>, index: usize| list?.get(index).copied();
        let subgraph = |model: usize| graphs.get(model).map(|g| &g.subgraphs[0]);
        let from = tensor(
            subgraph(link.from.model).map(|s| &s.outputs),
            link.from.index,
        );
        let to = tensor(subgraph(link.to.model).map(|s| &s.inputs), link.to.index);
        match (from, to) {
            (Some(from), Some(to)) => ends.push((link, from, to)),
            _ => {
                return Err(Error::Link {
                    link: link.text(members),
                    reason: "there is no such output or input".into(),
                });
            }
        }
    }
    let mut faults = Vec::new();
    // What has to survive a model's whole invoke: start and end.
    let mut held: Vec<BTreeSet<(u64, u64)>> = vec![BTreeSet::new(); members.len()];
    for &(link, from, to) in &ends {
        let text = link.text(members);
        let (a, b) = (link.from.model, link.to.model);
        let places = [(a, from), (b, to)].map(|(model, tensor)| models[model].place(tensor));
        match places {
            [Some(from), Some(to)] if from == to => {
                let linked = linked_with(a, links, members.len());
                for between in (a + 1..b).filter(|m| linked.contains(m)) {
                    held[between].insert(from);
                }
            }
            [Some((from, _)), Some((to, _))] => faults.push(format!(
                "link {text}: the output lies at {from}, the input at {to}"
            )),
            _ => faults.push(format!(
                "link {text}: both ends need an offset in the plans, so that they are in one place with every kernel library"
            )),
        }
    }
    for ((member, model), held) in members.iter().zip(&models).zip(&held) {
        let found = model.faults(held, options).into_iter();
        faults.extend(found.map(|fault| format!("{}: {fault}", member.name)));
    }
    Ok(faults)
}

/// The models that run one after the other with this one.
pub(crate) fn linked_with(model: usize, links: &[Link], models: usize) -> BTreeSet<usize> {
    let mut all = BTreeSet::from([model]);
    for _ in 0..models {
        for link in links {
            let pair = [link.from.model, link.to.model];
            if pair.iter().any(|m| all.contains(m)) {
                all.extend(pair);
            }
        }
    }
    all
}

/// A model as the device lays it out.
struct Laid<'g, 'a> {
    graph: &'g Graph<'a>,
    /// The plan in the file.
    offsets: Option<Vec<i32>>,
    /// Why that cannot be used.
    broken: Option<String>,
    /// For each library of the target.
    simulations: Vec<Simulation>,
}

impl<'g, 'a> Laid<'g, 'a> {
    fn of(graph: &'g Graph<'a>, options: &Options) -> Result<Self, crate::Error> {
        let (offsets, broken) = match StoredPlan::read(graph) {
            StoredPlan::Offsets(offsets) => (Some(offsets), None),
            StoredPlan::Broken { reason } => (None, Some(reason)),
            StoredPlan::Absent => (None, None),
        };
        let lifetimes = Lifetimes::of(graph)?;
        let all = options.scratch_by_library(graph, Prepared::stored(graph))?;
        let simulate = |scratch| tflm::simulate(graph, &lifetimes, scratch, offsets.as_deref());
        Ok(Self {
            simulations: all.iter().map(simulate).collect::<Result<_, _>>()?,
            graph,
            offsets,
            broken,
        })
    }

    /// Start and end of a tensor, if the plan says where it is.
    fn place(&self, tensor: TensorId) -> Option<(u64, u64)> {
        let offset = *self.offsets.as_ref()?.get(tensor.index())?;
        let start = u64::try_from(offset).ok()?;
        let tensor = self.graph.tensor(tensor);
        (tensor.storage == Storage::Arena).then(|| (start, start + tensor.bytes))
    }

    /// What is wrong with this model, when the bytes in `held` must be the same before and after each invoke.
    fn faults(&self, held: &BTreeSet<(u64, u64)>, options: &Options) -> Vec<String> {
        let mut faults: Vec<String> = self.broken.iter().cloned().collect();
        let graph = self.graph;
        for tensor in &graph.tensors {
            let offset = self.offsets.as_ref().and_then(|o| o.get(tensor.id.index()));
            if tensor.storage == Storage::Variable && offset.is_some_and(|&o| o != -1) {
                faults.push(format!(
                    "{} is a variable in the head, where other models overwrite it",
                    tensor.label()
                ));
            }
        }
        let updated = graph.operators().filter(|op| op.updates_its_output());
        for &tensor in updated.flat_map(|op| &op.outputs) {
            if graph.tensor(tensor).is_planned() {
                faults.push(format!(
                    "{} holds state in the head, where other models overwrite it",
                    graph.tensor(tensor).label()
                ));
            }
        }
        // An input in exactly these bytes can hold them to the end.
        let keepers: Vec<Option<TensorId>> = held
            .iter()
            .map(|&range| {
                let inputs = &graph.subgraphs[0].inputs;
                inputs
                    .iter()
                    .copied()
                    .find(|&t| self.place(t) == Some(range))
            })
            .collect();
        let keep: Vec<TensorId> = keepers.iter().flatten().copied().collect();
        let libraries = options.kernels().libraries();
        for (k, simulation) in self.simulations.iter().enumerate() {
            if self.simulations[..k].contains(simulation) {
                continue;
            }
            let mut layout = simulation.layout(options.alignment(), &keep);
            layout.libraries = libraries;
            layout.views_only = Level::of(options.kernels()) <= Level::Views;
            let found = check::check(graph, &layout);
            faults.extend(found.iter().map(|fault| fault.describe(graph)));
            for (&(start, end), _) in held.iter().zip(&keepers).filter(|(_, k)| k.is_none()) {
                let pieces = layout.pieces.iter();
                let mut hit = pieces.filter(|p| p.offset < end && start < p.offset + p.bytes);
                if let Some(piece) = hit.next() {
                    let what = match piece.tag {
                        Tag::Tensor(t) => graph.tensor(t).label(),
                        Tag::Scratch { operator, .. } => {
                            format!("scratch memory of {}", graph.operator(operator).label())
                        }
                    };
                    faults.push(format!(
                        "{what} lies on the bytes from {start} to {end}, which a later model reads"
                    ));
                }
            }
        }
        faults.dedup();
        faults
    }
}
