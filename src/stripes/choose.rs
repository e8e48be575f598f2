//! Chooses among what the search found: moves cuts, places the nets, and changes those that are placed lowest.

use std::collections::BTreeMap;

use super::MAX_STRIPES;
use super::estimate::{Program, estimate};
use super::found::Cut;
use super::place;
use super::search::{Found, Search, Solution, TRIMS, WORK, even};

/// Choices of which the cuts are moved.
const REFINED: usize = 20;
/// Choices that are placed.
const PLACED: usize = 40;
/// Choices of the same regions among them, before cuts are moved.
const ALIKE: usize = 4;
/// The solver's nodes for each.
const NODES: u64 = 20_000;
/// Choices that are changed as long as it helps.
const CLIMBED: usize = 6;
/// The solver's nodes for each change.
const CLIMBING: u64 = 6_000;
/// The solver's nodes for all changes.
const PLACING: u64 = 1_000_000;
/// Nodes that take as long as all but the solver does for one operator.
const OPERATOR: u64 = 25;
/// How many operators a region may be changed by.
const FARTHEST: usize = 2;

/// Answers that were changed, at most.
const CHANGED: usize = 3;
/// Answers that were not, at most.
const UNCHANGED: usize = 3;

/// One part in so many of a head may be gained by a plan that merges fewer views than the placement here.
const SLACK: u64 = 8;

/// A choice, its net, and what is made small.
pub(super) struct Placed {
    pub(super) value: u128,
    pub(super) found: Found,
    pub(super) solution: Solution,
}

impl Solution {
    fn regions(&self) -> Vec<usize> {
        self.ways.iter().map(|(index, _)| *index).collect()
    }
}

/// What to plan, in this order: what was changed and what was not, since a plan may place the one better than it was placed
/// here, and the other worse.
fn answers(mut changed: Vec<Placed>, mut others: Vec<Placed>) -> Vec<Placed> {
    changed.sort_by_key(|p| p.value);
    let mut seen: Vec<Vec<Cut>> = Vec::new();
    for placed in [&mut changed, &mut others] {
        // No more than two with the same regions.
        let mut counts: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        placed.retain(|p| {
            let count = counts.entry(p.solution.regions()).or_default();
            *count += 1;
            let is_new = *count <= 2 && !seen.contains(&p.found.regions);
            seen.push(p.found.regions.clone());
            is_new
        });
    }
    let mut all = Vec::new();
    let mut others = others.into_iter().take(UNCHANGED);
    for changed in changed.into_iter().take(CHANGED) {
        all.push(changed);
        all.extend(others.next());
    }
    all.extend(others);
    all
}

impl Search<'_, '_, '_> {
    /// Moves the cuts of the best choices, and makes nets of them. The best are placed, since some leave gaps, and changed
    /// further as long as that is placed lower.
    pub(super) fn best(&mut self, mut solutions: Vec<Solution>) -> Vec<Found> {
        self.sort(&mut solutions);
        self.work = self.work.max(WORK / 8);
        let mut all = Vec::new();
        for (count, solution) in self.distinct(solutions).into_iter().enumerate() {
            if count < REFINED {
                all.push(self.refine(solution.clone()));
            }
            all.push(solution);
        }
        self.sort(&mut all);
        let nothing = self.objective(self.base.peak().0, 0, 0);
        let mut placed: Vec<Placed> = Vec::new();
        for solution in all.into_iter().take(PLACED) {
            if self.value(&solution) < nothing {
                placed.extend(self.build(solution, NODES));
            }
        }
        placed.sort_by_key(|p| p.value);
        let climbed = self.climbed(&placed);
        let answers = answers(climbed, placed).into_iter();
        answers.map(|p| p.found).collect()
    }

    /// Changes the best choices of different regions, as long as what comes of it is placed lower.
    fn climbed(&mut self, placed: &[Placed]) -> Vec<Placed> {
        let mut starts: Vec<&Placed> = Vec::new();
        for p in placed {
            let regions = p.solution.regions();
            if starts.iter().all(|s| s.solution.regions() != regions) {
                starts.push(p);
            }
        }
        self.work = self.work.max(WORK / 8);
        self.placing = PLACING;
        let starts = starts.into_iter().take(CLIMBED);
        let mut found: Vec<Placed> = starts.filter_map(|start| self.climb(start)).collect();
        for placed in &mut found {
            placed.found.least = placed.found.head;
        }
        found
    }

    fn climb(&mut self, start: &Placed) -> Option<Placed> {
        let mut best: Option<Placed> = None;
        let mut failed = 0;
        let mut k = 0;
        loop {
            let now = best.as_ref().unwrap_or(start);
            let solution = now.solution.clone();
            let value = now.value;
            if failed >= solution.ways.len() {
                return best;
            }
            k %= solution.ways.len();
            let mut next = None;
            for (merged, index, cuts, trim) in self.changes(&solution, k) {
                let Some(way) = self.cut(index, cuts, trim).filter(|w| w.peak < u64::MAX) else {
                    continue;
                };
                let mut ways = solution.ways.clone();
                ways.splice(k..=k + merged, [(index, way)]);
                let changed = self.total(ways);
                // No head is below the bytes alive.
                if changed.time > self.budget || self.value(&changed) >= value {
                    continue;
                }
                if self.placing == 0 {
                    return best;
                }
                if let Some(p) = self.build(changed, CLIMBING).filter(|p| p.value < value) {
                    next = Some(p);
                    break;
                }
            }
            match next {
                Some(p) => (best, failed) = (Some(p), 0),
                None => (failed, k) = (failed + 1, k + 1),
            }
        }
    }

    /// Other ways for the `k`th one of a choice: how many of those that follow it replaces as well, the candidate, cuts, and
    /// trim.
    fn changes(&self, solution: &Solution, k: usize) -> Vec<(usize, usize, Vec<i64>, i64)> {
        let mut changes = Vec::new();
        let (index, way) = &solution.ways[k];
        let (index, trim) = (*index, way.trim);
        let parts = way.cuts.len() as i64 - 1;
        let range = |index: usize| {
            let operators = &self.candidates[index].region.operators;
            (*operators.start(), *operators.end())
        };
        let (first, last) = range(index);
        // More and fewer stripes, and other regions.
        let after_before = (k.checked_sub(1)).map_or(0, |k| range(solution.ways[k].0).1 + 1);
        let next = |k: usize| (solution.ways.get(k)).map(|w| range(w.0));
        let end = self.net.operators.len();
        for start in first.saturating_sub(FARTHEST).max(after_before)..=first + FARTHEST {
            for &other in self.by_start.get(start).into_iter().flatten() {
                let to = range(other).1;
                let is_near = start.abs_diff(first) + to.abs_diff(last) <= FARTHEST;
                let merged = match next(k + 1) {
                    Some((_, end)) if to == end => 1,
                    Some((next, _)) if to >= next => continue,
                    _ => 0,
                };
                if to >= end || !is_near && merged == 0 {
                    continue;
                }
                let rows = self.net.rows_of_result(&self.candidates[other].region);
                for parts in [parts, parts + 1, parts - 1] {
                    let stripes = 2..=rows.min(MAX_STRIPES as i64);
                    if stripes.contains(&parts) {
                        changes.push((merged, other, even(rows, parts), trim));
                    }
                }
            }
        }
        for other in TRIMS {
            if other != trim {
                changes.push((0, index, way.cuts.clone(), other));
            }
        }
        for q in 1..way.cuts.len() - 1 {
            for by in [0, -1, 1, -2, 2, -4, 4] {
                let mut cuts = way.cuts.clone();
                match by {
                    0 => drop(cuts.remove(q)),
                    by => cuts[q] += by,
                }
                changes.push((0, index, cuts, trim));
            }
        }
        changes
    }

    fn sort(&self, solutions: &mut Vec<Solution>) {
        solutions.sort_by_cached_key(|s| (self.value(s), s.ways.len()));
        solutions.dedup();
    }

    /// The best choices, few for the same regions.
    fn distinct(&self, solutions: Vec<Solution>) -> Vec<Solution> {
        let mut counts: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        let mut is_new = |s: &Solution| {
            let count = counts.entry(s.regions()).or_default();
            *count += 1;
            *count <= ALIKE
        };
        let distinct = solutions.into_iter().filter(|s| is_new(s));
        distinct.take(PLACED).collect()
    }

    fn refine(&mut self, mut best: Solution) -> Solution {
        let key = |search: &Self, s: &Solution| {
            let sum: u64 = s.ways.iter().map(|(_, w)| w.peak).sum();
            (search.value(s), sum)
        };
        let mut value = key(self, &best);
        loop {
            let mut is_better = false;
            for k in 0..best.ways.len() {
                let mut q = 1;
                while q + 1 < best.ways[k].1.cuts.len() {
                    for by in [0, -1, 1, -2, 2, -4, 4] {
                        let (index, way) = &best.ways[k];
                        let mut cuts = way.cuts.clone();
                        match by {
                            0 => drop(cuts.remove(q)),
                            by => cuts[q] += by,
                        }
                        let (index, trim) = (*index, way.trim);
                        let Some(way) = self.cut(index, cuts, trim) else {
                            continue;
                        };
                        if way.peak == u64::MAX {
                            continue;
                        }
                        let mut ways = best.ways.clone();
                        ways[k].1 = way;
                        let next = self.total(ways);
                        let next_value = key(self, &next);
                        if next.time <= self.budget && next_value < value {
                            (best, value, is_better) = (next, next_value, true);
                            if q + 1 >= best.ways[k].1.cuts.len() {
                                break;
                            }
                        }
                    }
                    q += 1;
                }
            }
            if !is_better {
                return best;
            }
        }
    }

    /// Makes a net of a choice and places it, with so many nodes.
    pub(super) fn build(&mut self, solution: Solution, nodes: u64) -> Option<Placed> {
        let mut net = self.net.clone();
        let mut regions = Vec::new();
        for (index, way) in solution.ways.iter().rev() {
            let region = &self.candidates[*index].region;
            net = net.split(region, &way.cuts, way.trim)?;
            let layer = |at: usize| self.net.operators[at].layer();
            regions.push(Cut {
                operators: (
                    layer(*region.operators.start())?,
                    layer(*region.operators.end())?,
                ),
                layers: region.operators().count(),
                cuts: way.cuts.clone(),
            });
        }
        regions.reverse();
        let program = Program::of(&net);
        let estimate = estimate(&program, self.goal.kernels);
        let peak = estimate.peak().0;
        let (head, took) = place::head(&program, self.goal.kernels, &estimate, nodes)?;
        let took = took + program.operators.len() as u64 * OPERATOR;
        self.placing = self.placing.saturating_sub(took);
        let found = Found {
            net,
            head,
            least: peak.max(head - head / SLACK),
            tail: solution.tail,
            extra_time: solution.time,
            extra_macs: solution.macs,
            regions,
        };
        Some(Placed {
            value: self.objective(head, solution.tail, solution.time),
            found,
            solution,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Graph;
    use crate::model::Model;
    use crate::stripes::Net;

    /// A choice without ways, of this value, whose one region is cut at `at`.
    fn placed(net: &Net, value: u128, at: i64) -> Placed {
        let cut = Cut {
            operators: (0, 1),
            layers: 2,
            cuts: vec![0, at, 8],
        };
        Placed {
            value,
            found: Found {
                net: net.clone(),
                head: 0,
                least: 0,
                tail: 0,
                extra_time: 0,
                extra_macs: 0,
                regions: vec![cut],
            },
            solution: Solution {
                peak: 0,
                time: 0,
                macs: 0,
                tail: 0,
                ways: Vec::new(),
            },
        }
    }

    #[test]
    fn changed_and_unchanged_choices_take_turns() {
        let root = env!("CARGO_MANIFEST_DIR");
        let bytes = std::fs::read(format!("{root}/testdata/models/conv_int8.tflite")).unwrap();
        let graph = Model::parse(&bytes).and_then(Graph::read).unwrap();
        let net = Net::read(&graph, &[]);
        let make = |all: &[(u128, i64)]| -> Vec<Placed> {
            all.iter()
                .map(|&(value, at)| placed(&net, value, at))
                .collect()
        };
        let values = |changed: &[(u128, i64)], others: &[(u128, i64)]| -> Vec<u128> {
            let all = answers(make(changed), make(others));
            all.iter().map(|p| p.value).collect()
        };
        // The best changed one first, although it came last; two with the same regions of each kind.
        assert_eq!(
            values(&[(7, 1), (9, 2), (5, 3)], &[(6, 4), (8, 5), (10, 6)]),
            [5, 6, 7, 8]
        );
        // The same cuts once.
        assert_eq!(values(&[(5, 3)], &[(5, 3), (8, 5)]), [5, 8]);
        assert_eq!(values(&[], &[(6, 4), (8, 5)]), [6, 8]);
    }

    #[test]
    fn stripes_of_equal_rows() {
        assert_eq!(even(8, 2), [0, 4, 8]);
        assert_eq!(even(10, 4), [0, 3, 5, 8, 10]);
        assert_eq!(even(3, 3), [0, 1, 2, 3]);
    }
}
