//! From a graph to tasks, and from what was found back to an order for each subgraph.

use std::collections::{BTreeMap, BTreeSet};

use super::effects::Precedence;
use super::reach::Reach;
use super::search::{Budget, Found, search};
use super::settle::settle;
use super::task::{Object, Step, Task};
use super::{Objects, Schedule};
use crate::graph::{Graph, OpId, Operator, TensorId};
use crate::scratch::Scratch;
use crate::tflm::ALIGNMENT;

/// Subgraphs with more operators are ordered without what outputs over inputs save: rows of bits would take too much.
const MAX_STEPS: usize = 8192;

/// All that is the same for each subgraph.
struct Orders<'g, 'a> {
    graph: &'g Graph<'a>,
    objects: &'g Objects,
    scratch: BTreeMap<OpId, u64>,
    keep: &'g [TensorId],
    precedence: Precedence<'g, 'a>,
    budget: Budget,
    /// For each subgraph that runs, its task and what was found.
    found: Vec<Option<Ordered>>,
    /// Subgraphs in the order in which they were done, called ones before their callers.
    done: Vec<u32>,
    /// Calls from one subgraph to another, each place once.
    calls: usize,
}

/// A subgraph with an order.
struct Ordered {
    task: Task,
    best: Found,
    /// The task is all that there is to the lifetimes.
    is_exact: bool,
}

pub(super) fn schedule(
    graph: &Graph<'_>,
    objects: &Objects,
    scratch: &Scratch,
    keep: &[TensorId],
) -> Schedule {
    let mut bytes: BTreeMap<OpId, u64> = BTreeMap::new();
    for request in scratch.requests() {
        *bytes.entry(request.operator).or_default() += request.bytes.next_multiple_of(ALIGNMENT);
    }
    let mut orders = Orders {
        graph,
        objects,
        scratch: bytes,
        keep,
        precedence: Precedence::new(graph),
        budget: Budget::default(),
        found: graph.subgraphs.iter().map(|_| None).collect(),
        done: Vec::new(),
        calls: 0,
    };
    orders.visit(0);
    orders.finish()
}

impl Orders<'_, '_> {
    /// Orders a subgraph and all that it calls.
    fn visit(&mut self, subgraph: u32) {
        if self.found[subgraph as usize].is_some() {
            return;
        }
        let graph = self.graph;
        for op in &graph.subgraphs[subgraph as usize].operators {
            for &called in &op.calls {
                self.calls += 1;
                self.visit(called);
            }
        }
        let (task, is_exact) = self.task(subgraph);
        let is_compiled = graph.subgraphs[subgraph as usize]
            .operators
            .iter()
            .any(|o| o.has_compiled_offsets());
        let best = if is_compiled {
            let order = task.own_order();
            let peak = task.peak(&order);
            Found {
                order,
                peak,
                bound: peak,
            }
        } else {
            search(&task, &mut self.budget)
        };
        self.found[subgraph as usize] = Some(Ordered {
            task,
            best,
            is_exact,
        });
        self.done.push(subgraph);
    }

    /// The task of ordering a subgraph's operators, and whether it is all that there is to the lifetimes.
    fn task(&mut self, subgraph: u32) -> (Task, bool) {
        let graph = self.graph;
        let operators = &graph.subgraphs[subgraph as usize].operators;
        let after = self.precedence.of(subgraph);
        // Objects of the subgraph, numbered as they are met.
        let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
        let mut objects: Vec<Object> = Vec::new();
        let mut object = |t: TensorId| {
            let o = self.objects.of[t.index()]?;
            Some(*numbers.entry(o).or_insert_with(|| {
                objects.push(Object {
                    bytes: self.objects.bytes[o as usize],
                    ..Object::default()
                });
                objects.len() as u32 - 1
            }))
        };
        let inputs = &graph.subgraphs[subgraph as usize].inputs;
        let outputs = &graph.subgraphs[subgraph as usize].outputs;
        let at_start: Vec<u32> = inputs.iter().filter_map(|&t| object(t)).collect();
        let kept = self
            .keep
            .iter()
            .filter(|&&t| graph.tensor(t).subgraph == subgraph);
        let at_end: Vec<u32> = outputs
            .iter()
            .chain(kept)
            .filter_map(|&t| object(t))
            .collect();
        let mut written = vec![false; graph.tensors.len()];
        for t in operators.iter().flat_map(|o| &o.outputs).chain(inputs) {
            written[t.index()] = true;
        }
        // What is read and never written is there all the time before.
        let unwritten = operators.iter().flat_map(|o| o.inputs.iter().flatten());
        let unwritten: Vec<u32> = unwritten
            .filter(|t| !written[t.index()])
            .filter_map(|&t| object(t))
            .collect();
        // TFLM has an output that nobody writes alive at the last operator, whichever that is.
        let is_exact = outputs
            .iter()
            .all(|t| written[t.index()] || self.objects.of[t.index()].is_none());
        let mut steps = Vec::new();
        for (op, after) in operators.iter().zip(after) {
            let scratch = self.scratch.get(&op.id).copied().unwrap_or(0);
            let tensors = op.inputs.iter().flatten().chain(&op.outputs);
            steps.push(Step {
                touches: tensors.filter_map(|&t| object(t)).collect(),
                after,
                extra_bytes: scratch + self.largest_peak(&op.calls),
                ..Step::default()
            });
        }
        for &o in at_start.iter().chain(&unwritten) {
            objects[o as usize].at_start = true;
        }
        for &o in &at_end {
            objects[o as usize].at_end = true;
        }
        let mut task = Task::new(objects, steps);
        let numbers = |t: TensorId| {
            let object = self.objects.of[t.index()]?;
            numbers.get(&object).copied()
        };
        let is_all = self.save(&mut task, operators, numbers);
        (task, is_exact && is_all)
    }

    /// Notes what operators save by outputs that lie over inputs which they are the last to touch. Gives whether that is all
    /// that there is to save.
    fn save(
        &self,
        task: &mut Task,
        operators: &[Operator<'_>],
        number: impl Fn(TensorId) -> Option<u32>,
    ) -> bool {
        if self.objects.overlaps.is_empty() {
            return true;
        }
        if task.len() > MAX_STEPS {
            return false;
        }
        let reach = Reach::of(task);
        let mut is_all = true;
        for (k, op) in (0u32..).zip(operators) {
            let (mut savings, mut most) = (Vec::new(), 0);
            for &to in &op.outputs {
                let Some(y) = number(to) else { continue };
                let mut others = task.touched_by(y).iter().filter(|&&other| other != k);
                // What begins with another operator may begin in any order.
                let begins = !task.objects()[y as usize].at_start
                    && others.all(|&other| reach.descendants.has(k, other));
                let inputs: BTreeSet<_> = op.inputs.iter().flatten().collect();
                for &from in inputs {
                    let bytes = self.objects.overlaps.get(&(from, to)).copied();
                    let is_last = |x: u32| {
                        let mut others = task.touched_by(x).iter().filter(|&&other| other != k);
                        others.all(|&other| reach.ancestors.has(k, other))
                    };
                    let x = number(from).filter(|&x| x != y && begins);
                    let x = x.filter(|&x| !self.objects.is_cautious || is_last(x));
                    match (bytes, x) {
                        (Some(bytes), Some(x)) => savings.push((x, bytes)),
                        (Some(_), None) => is_all = false,
                        (None, _) => {}
                    }
                }
                if begins {
                    most += task.objects()[y as usize].bytes;
                }
            }
            // With several outputs the limit of each one is not told apart.
            is_all &= savings.is_empty() || op.outputs.len() == 1;
            if !savings.is_empty() {
                task.save(k, savings, most);
            }
        }
        is_all
    }

    /// Where the file's order is good enough it is kept, of subgraphs that are called as well.
    fn finish(self) -> Schedule {
        let graph = self.graph;
        let mut orders: Vec<Vec<u32>> = graph
            .subgraphs
            .iter()
            .map(|s| (0..s.operators.len() as u32).collect())
            .collect();
        // The most that each subgraph may need without making the whole need more.
        let mut limits: Vec<Option<u64>> = vec![None; graph.subgraphs.len()];
        for &subgraph in self.done.iter().rev() {
            let Some(Ordered { task, best, .. }) = &self.found[subgraph as usize] else {
                continue;
            };
            let limit = limits[subgraph as usize]
                .unwrap_or(best.peak)
                .max(best.peak);
            let own = task.own_order();
            let order = match task.peak(&own) <= limit {
                true => own,
                false => settle(task, best.order.clone(), limit),
            };
            let levels = task.levels(&order);
            for (&k, &level) in order.iter().zip(&levels) {
                let calls = &graph.subgraphs[subgraph as usize].operators[k as usize].calls;
                // Of several calls the largest counts, so that each may be as large as leaves the limit.
                let others = level.saturating_sub(self.largest_peak(calls));
                for &called in calls {
                    let allowed = limit.saturating_sub(others);
                    let known = &mut limits[called as usize];
                    *known = Some(known.map_or(allowed, |l| l.min(allowed)));
                }
            }
            orders[subgraph as usize] = order;
        }
        // What is called from two places lives on in between, which no task here knows.
        let called_once = self.calls + 1 == self.done.len();
        let kept_outside = self.keep.iter().all(|&t| graph.tensor(t).subgraph == 0);
        let all = self
            .found
            .iter()
            .flatten()
            .all(|f| f.is_exact && f.best.is_proved());
        Schedule {
            orders,
            is_proved: called_once && kept_outside && all,
            peak: self.largest_peak(&[0]),
        }
    }

    /// The most that one of these subgraphs needs.
    fn largest_peak(&self, subgraphs: &[u32]) -> u64 {
        let found = subgraphs
            .iter()
            .filter_map(|&s| self.found[s as usize].as_ref());
        found.map(|f| f.best.peak).max().unwrap_or(0)
    }
}
