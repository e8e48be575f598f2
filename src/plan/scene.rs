//! One order of the operators, and what follows from it.

use std::borrow::Cow;

use arenaplan_schema::patch::OperatorOrder;

use crate::aliasing::{self, Level, Promises};
use crate::check;
use crate::error::Error;
use crate::graph::{Graph, TensorId};
use crate::interference::Rules;
use crate::lifetimes::Lifetimes;
use crate::plan::Options;
use crate::reorder::{Objects, Schedule, schedule};
use crate::scratch::Scratch;
use crate::tflm::{self, Simulation};

/// One order of the operators.
pub(super) struct Scene<'g, 'a> {
    /// The model with its operators in this order.
    pub(super) graph: Cow<'g, Graph<'a>>,
    pub(super) lifetimes: Lifetimes,
    /// For each subgraph that is not in the file's order, the order.
    pub(super) orders: Vec<OperatorOrder>,
    /// Levels of sharing, each with bytes that no order of the operators needs less than with it.
    pub(super) proved: Vec<(Level, u64)>,
    /// What the kernels of each library of the target ask for.
    pub(super) scratch: Vec<Scratch>,
}

impl<'g, 'a> Scene<'g, 'a> {
    /// The model as it is.
    pub(super) fn of_file(graph: &'g Graph<'a>, options: &Options) -> Result<Self, Error> {
        Ok(Self {
            orders: Vec::new(),
            proved: Vec::new(),
            lifetimes: Lifetimes::of(graph)?,
            scratch: options.scratch_by_library(graph, options.prepared())?,
            graph: Cow::Borrowed(graph),
        })
    }

    /// The model with its operators in another order.
    fn in_order(graph: &Graph<'a>, schedule: &Schedule, options: &Options) -> Result<Self, Error> {
        let graph = graph.reordered(&schedule.orders);
        let orders = (0..)
            .zip(&schedule.orders)
            .filter(|(_, order)| !order.is_sorted());
        let orders = orders.map(|(subgraph, order)| OperatorOrder {
            subgraph,
            order: order.clone(),
        });
        Ok(Self {
            orders: orders.collect(),
            proved: Vec::new(),
            lifetimes: Lifetimes::of(&graph)?,
            scratch: options.scratch_by_library(&graph, options.prepared())?,
            graph: Cow::Owned(graph),
        })
    }

    /// Whether a written file has this order, and computes what `original` does.
    pub(super) fn check_written(
        &self,
        original: &Graph<'_>,
        written: &Graph<'_>,
    ) -> Result<(), Error> {
        if !check::order::is_same(&self.graph, written) {
            let reason = "the operators are not written in the order planned".into();
            return Err(Error::Internal { reason });
        }
        match check::order::compare(original, written).first() {
            None => Ok(()),
            Some(difference) => Err(Error::Internal {
                reason: difference.to_string(),
            }),
        }
    }

    /// What TFLM makes of these offsets with each library of the target; without offsets, what it plans itself.
    pub(super) fn simulate(&self, offsets: Option<&[i32]>) -> Result<Vec<Simulation>, Error> {
        simulate(&self.graph, &self.lifetimes, &self.scratch, offsets)
    }

    /// Scratch memory of the library that figures are for.
    pub(super) fn first_scratch(&self) -> &Scratch {
        &self.scratch[0]
    }
}

/// As [`Scene::simulate`], of libraries that ask for `scratch`.
pub(super) fn simulate(
    graph: &Graph<'_>,
    lifetimes: &Lifetimes,
    scratch: &[Scratch],
    offsets: Option<&[i32]>,
) -> Result<Vec<Simulation>, Error> {
    let mut simulations: Vec<Simulation> = Vec::with_capacity(scratch.len());
    for (k, asked) in scratch.iter().enumerate() {
        // Most operators ask for the same with several libraries.
        let mut before = scratch[..k].iter();
        let known = before.position(|s| s.requests() == asked.requests());
        simulations.push(match known {
            Some(same) => simulations[same].clone(),
            None => tflm::simulate(graph, lifetimes, asked, offsets)?,
        });
    }
    Ok(simulations)
}

/// The orders of operators that are worth a trial, the file's first: the one with the least peak with nothing shared, and
/// those with the least peak if views are merged and outputs lie over inputs as each of `promises` allows.
pub(super) fn scenes<'g, 'a>(
    graph: &'g Graph<'a>,
    options: &Options,
    keep: &[TensorId],
    promises: &[(Level, &Promises)],
) -> Result<Vec<Scene<'g, 'a>>, Error> {
    let mut file = Scene::of_file(graph, options)?;
    if !options.reorder {
        return Ok(vec![file]);
    }
    let mut objects = vec![(Level::None, true, Objects::of_tensors(graph))];
    // The highest level, and views alone: what is best with overlaps may leave other libraries no room.
    for &(level, promises) in promises.iter().rev() {
        for parts in [true, false] {
            let rules = Rules {
                align: options.alignment(),
                online: Some(file.first_scratch()),
                keep,
                promises,
                parts,
                ..Rules::tensors_alone()
            };
            let shared = objects_of(graph, &file.lifetimes, rules);
            // A block with parts is not alive as a whole, which the search does not know; and in another order more may be
            // merged.
            let is_whole =
                promises.partial_views(graph).is_empty() && shared.has_all_views(promises);
            if level > Level::Views {
                let cautious = Objects {
                    is_cautious: true,
                    ..shared.clone()
                };
                objects.push((level, false, cautious));
            }
            objects.push((level, is_whole, shared));
        }
    }
    let mut schedules: Vec<(Schedule, Vec<(Level, u64)>)> = Vec::new();
    let mut done: Vec<(&Objects, Schedule)> = Vec::new();
    for (level, is_whole, objects) in &objects {
        let known = done
            .iter()
            .find(|(o, _)| *o == objects)
            .map(|(_, found)| found.clone());
        let found = match known {
            Some(found) => found,
            None => schedule(graph, objects, file.first_scratch(), keep),
        };
        done.push((objects, found.clone()));
        let proved = (found.is_proved && *is_whole).then_some((*level, found.peak));
        if found.is_unchanged() {
            file.proved.extend(proved);
            continue;
        }
        match schedules.iter_mut().find(|(s, _)| s.orders == found.orders) {
            Some((_, levels)) => levels.extend(proved),
            None => schedules.push((found, proved.into_iter().collect())),
        }
    }
    let mut scenes = vec![file];
    for (schedule, proved) in schedules {
        let scene = Scene::in_order(graph, &schedule, options)?;
        scenes.push(Scene { proved, ..scene });
    }
    Ok(scenes)
}

impl Objects {
    /// Whether all tensors that may be views of each other are one object.
    fn has_all_views(&self, promises: &Promises) -> bool {
        let mut views = promises.iter().filter(|(_, _, p)| p.view_at.is_some());
        views.all(|(input, output, _)| self.of[input.index()] == self.of[output.index()])
    }
}

/// The blocks of tensors as objects, with what outputs over inputs save.
fn objects_of(graph: &Graph<'_>, lifetimes: &Lifetimes, rules: Rules<'_>) -> Objects {
    let mut objects = Objects {
        of: vec![None; graph.tensors.len()],
        overlaps: aliasing::savings(graph, &rules),
        ..Objects::default()
    };
    for (number, (block, bytes)) in (0..).zip(aliasing::blocks(graph, lifetimes, rules)) {
        for member in &block.members {
            objects.of[member.tensor.index()] = Some(number);
        }
        objects.bytes.push(bytes);
    }
    objects
}
