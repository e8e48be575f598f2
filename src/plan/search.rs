//! The search for a plan: which order, how much sharing, with how much room for scratch memory.
//!
//! Each way to plan has a lower bound of its own. Ways are tried from the lowest bound up, until no bound is below the best
//! head found; what TFLM will make of each placement is simulated, and the independent checker has the last word. Of plans
//! with equal heads the one that asks least of the device wins: less sharing, then the file's own order.

use std::borrow::Cow;
use std::time::Duration;

use arenaplan_solver::{Limits, Planner, Problem, Solution, Stop, solve_above};

use super::Job;
use super::scene::Scene;
use crate::aliasing::{Level, Promises};
use crate::check::{self, Tag, Violation};
use crate::error::Error;
use crate::graph::TensorId;
use crate::interference::{Interference, Node, Other, Rules, solver_error};
use crate::scratch::Scratch;
use crate::tflm::{self, Simulation};

/// An offset that nothing else reaches.
const OUT_OF_THE_WAY: u64 = 1 << 30;

/// How often room for all libraries of a target is looked for.
const ROOM_ROUNDS: usize = 10;

/// Nodes of a search that is one of many.
const BRIEF: u64 = 4_000;

/// How many views are taken back on trial.
const MAX_DROPPED: usize = 32;

/// A plan with what TFLM makes of it.
pub(super) struct Candidate {
    /// Which order of operators.
    pub(super) scene: usize,
    /// How much is shared at most.
    pub(super) level: Level,
    pub(super) offsets: Vec<i32>,
    /// What each library of the target makes of it.
    pub(super) simulations: Vec<Simulation>,
    pub(super) planner: Planner,
    /// Whether the time limit ended the search.
    pub(super) is_late: bool,
    /// No plan of this way is below, in bytes of head; of the best one, no plan of any way.
    pub(super) bound: u64,
    /// The liveness bound of this order with this sharing.
    pub(super) least: u64,
}

impl Candidate {
    /// The head with the library that figures are for.
    pub(super) fn head(&self) -> u64 {
        self.simulations[0].head
    }
}

/// Which views are merged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Merged {
    /// Those of whole tensors.
    Whole,
    /// Also parts in what they are taken from or joined to, but not what a joined part is taken from: the tensor around it
    /// would have to fit there as well.
    Slots,
    /// Also that.
    Parts,
}

/// A way to plan.
struct Way<'p> {
    scene: usize,
    level: Level,
    merged: Merged,
    /// One of many that are tried for a moment.
    is_brief: bool,
    promises: Cow<'p, Promises>,
    interference: Interference,
}

/// How much a plan shares, which views are merged, and whether operators are reordered.
type Demand = (Level, Merged, bool);

/// What a placement has to leave room for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// Nothing but what every plan needs: a bound of the placement is one of the plan.
    Least,
    /// More than that.
    More,
}

impl Way<'_> {
    /// What is asked of the device, least first.
    fn demand(&self) -> Demand {
        (self.level, self.merged, self.scene > 0)
    }
}

/// Whether limits let a search go on for longer than it would without them: then it begins with what it would do without,
/// so that it never ends with less.
fn goes_on_longer(limits: &Limits) -> bool {
    limits.nodes.is_none()
        && limits
            .time
            .is_some_and(|time| time >= Duration::from_secs(1))
}

/// The best plan so far, and what happened on the way there.
#[derive(Default)]
struct Best {
    /// The plan, with what it asks of the device.
    found: Option<(Candidate, Demand)>,
    /// Why a plan was not right.
    fault: Option<Error>,
    /// Whether a time limit ended some search.
    is_late: bool,
}

impl Job<'_, '_, '_> {
    /// The best plan of all ways.
    pub(super) fn best_candidate(&self) -> Result<Candidate, Error> {
        let mut ways = self.ways()?;
        ways.sort_by_key(|w| (w.interference.bound, w.demand()));
        let mut best = Best::default();
        let mut least = 0;
        let mut passes = vec![Limits::default(), self.options.limits.clone()];
        if !goes_on_longer(&passes[1]) {
            passes.remove(0);
        }
        for limits in &passes {
            let mut bound = u64::MAX;
            for way in &ways {
                bound = bound.min(self.try_way(way, limits, &mut best)?);
            }
            self.drop_views(&ways, limits, &mut best)?;
            self.try_file_order(&ways, limits, &mut best)?;
            least = bound.max(least);
        }
        match best.found {
            // Also what lost might have won with more time.
            Some((found, _)) => Ok(Candidate {
                is_late: best.is_late,
                bound: least.min(found.head()),
                ..found
            }),
            None => Err(best.fault.unwrap_or(Error::Internal {
                reason: "no planner gave an answer".into(),
            })),
        }
    }

    /// Plans one way, unless nothing can be won by it, and gives a height below which it has no plan.
    fn try_way(&self, way: &Way<'_>, limits: &Limits, best: &mut Best) -> Result<u64, Error> {
        let mut least = way.interference.bound;
        if let Some((found, demand)) = &best.found {
            let head = found.head();
            let is_hopeless = least > head || least == head && way.demand() >= *demand;
            if is_hopeless && self.excess(found) == 0 {
                return Ok(least);
            }
        }
        let tries = match self.tries(way, limits) {
            // Two offsets that are given may be too close for this much sharing, and right with more.
            Err(e @ Error::Solver { .. }) if !self.options.fixed.is_empty() => {
                best.fault = best.fault.take().or(Some(e));
                return Ok(least);
            }
            tries => tries?,
        };
        for candidate in tries {
            best.is_late |= candidate.is_late;
            least = candidate.bound.max(least);
            let new = self.rank(&candidate, way.demand());
            if (best.found.as_ref()).is_some_and(|(b, demand)| self.rank(b, *demand) <= new) {
                continue;
            }
            match self.check(&candidate) {
                Ok(()) => best.found = Some((candidate, way.demand())),
                Err(e @ (Error::TooManySteps { .. } | Error::Internal { .. })) => return Err(e),
                Err(e) => best.fault = best.fault.take().or(Some(e)),
            }
        }
        Ok(least)
    }

    /// What makes a plan better than another one: the lesser rank.
    fn rank(&self, candidate: &Candidate, demand: Demand) -> (u64, u64, u64, Demand) {
        let heads = candidate.simulations.iter().map(|s| s.head).sum();
        (self.excess(candidate), candidate.head(), heads, demand)
    }

    /// Plans the file's own order as if there were no other one, where that might end below the best plan: what is taken
    /// back of another order's views says nothing of this one's.
    fn try_file_order(
        &self,
        ways: &[Way<'_>],
        limits: &Limits,
        best: &mut Best,
    ) -> Result<(), Error> {
        let Some((found, _)) = &best.found else {
            return Ok(());
        };
        let of_file = || ways.iter().filter(|w| w.scene == 0);
        let is_open = of_file().any(|w| w.interference.bound < found.head());
        if found.scene == 0 || !self.has_partial_views || !is_open {
            return Ok(());
        }
        let mut own = Best::default();
        for way in of_file() {
            self.try_way(way, limits, &mut own)?;
        }
        self.drop_views(ways, limits, &mut own)?;
        self.take_better(own, best);
        Ok(())
    }

    /// Takes views of parts back, one after the other, where that lowers the head: what is merged is also less free.
    fn drop_views(&self, ways: &[Way<'_>], limits: &Limits, best: &mut Best) -> Result<(), Error> {
        let Some((found, demand)) = &best.found else {
            return Ok(());
        };
        let (scene, level, merged) = (found.scene, found.level, demand.1);
        if merged == Merged::Whole {
            return Ok(());
        }
        let is_like =
            |w: &&Way<'_>| (w.scene, w.level) == (scene, level) && w.merged > Merged::Whole;
        let mut alike: Vec<&Way<'_>> = ways.iter().filter(is_like).collect();
        alike.sort_by_key(|w| w.merged != merged);
        for (k, way) in alike.into_iter().enumerate() {
            if k == 0 {
                self.drop_views_of(way, limits, best)?;
                continue;
            }
            let is_open =
                (best.found.as_ref()).is_some_and(|b| way.interference.bound < b.0.head());
            if is_open {
                let mut own = Best::default();
                self.try_way(way, limits, &mut own)?;
                self.drop_views_of(way, limits, &mut own)?;
                self.take_better(own, best);
            }
        }
        Ok(())
    }

    /// Takes the plan of another search where that is the better one.
    fn take_better(&self, other: Best, best: &mut Best) {
        let rank = |best: &Best| best.found.as_ref().map(|(c, d)| self.rank(c, *d));
        let is_better = match (rank(&other), rank(best)) {
            (Some(other), Some(best)) => other < best,
            (other, _) => other.is_some(),
        };
        if is_better {
            best.found = other.found;
        }
        best.is_late |= other.is_late;
    }

    fn drop_views_of(&self, way: &Way<'_>, limits: &Limits, best: &mut Best) -> Result<(), Error> {
        let mut promises = way.promises.clone();
        let parts = promises.partial_views(self.graph);
        for (input, output) in parts.into_iter().take(MAX_DROPPED) {
            let head = match &best.found {
                Some((found, _)) if found.head() > way.interference.bound => found.head(),
                _ => break,
            };
            let without = Cow::Owned(promises.without_view(self.graph, input, output));
            let mut other = self.way(way.scene, way.level, way.merged, without)?;
            other.is_brief = true;
            self.try_way(&other, limits, best)?;
            if best
                .found
                .as_ref()
                .is_some_and(|(found, _)| found.head() < head)
            {
                promises = other.promises;
            }
        }
        Ok(())
    }

    /// Bytes by which a plan's head is above what a library needs without a plan, the worst of all libraries but the
    /// first.
    fn excess(&self, candidate: &Candidate) -> u64 {
        let heads = candidate.simulations.iter().zip(&self.greedy_heads).skip(1);
        let over = heads.map(|(with, without)| with.head.saturating_sub(*without));
        over.max().unwrap_or(0)
    }

    /// All ways: each order with each level of sharing that adds something.
    fn ways(&self) -> Result<Vec<Way<'_>>, Error> {
        let mut ways = Vec::new();
        for (scene, _) in self.scenes.iter().enumerate() {
            let mut before = None;
            for (k, promises) in self.promises.iter().enumerate() {
                // A level that promises no more than the one before it is the same.
                if before.is_some_and(|p| p == promises) {
                    continue;
                }
                before = Some(promises);
                let level = Level::ALL[k];
                let borrowed = Cow::Borrowed(promises);
                ways.push(self.way(scene, level, Merged::Whole, borrowed.clone())?);
                if k == 0 || !self.has_partial_views {
                    continue;
                }
                let slots = promises.without_sources_of_slots(self.graph);
                if slots != *promises {
                    ways.push(self.way(scene, level, Merged::Slots, Cow::Owned(slots))?);
                }
                ways.push(self.way(scene, level, Merged::Parts, borrowed)?);
            }
        }
        Ok(ways)
    }

    fn way<'p>(
        &self,
        scene: usize,
        level: Level,
        merged: Merged,
        promises: Cow<'p, Promises>,
    ) -> Result<Way<'p>, Error> {
        let rules = self.rules(scene, &promises, merged);
        Ok(Way {
            scene,
            level,
            merged,
            is_brief: false,
            interference: self.interference(scene, rules)?,
            promises,
        })
    }

    fn rules<'r>(&'r self, scene: usize, promises: &'r Promises, merged: Merged) -> Rules<'r> {
        Rules {
            align: self.options.alignment(),
            granule: tflm::ALIGNMENT,
            online: Some(self.scenes[scene].first_scratch()),
            keep: &self.keep,
            others: &[],
            promises,
            parts: merged > Merged::Whole,
            fixed: &self.options.fixed,
        }
    }

    fn interference(&self, scene: usize, rules: Rules<'_>) -> Result<Interference, Error> {
        let scene = &self.scenes[scene];
        Interference::build(&scene.graph, &scene.lifetimes, rules)
    }

    /// Plans of one way: with room for scratch memory, and, where TFLM's own placing of it ends above the bound, in
    /// other ways.
    fn tries(&self, way: &Way<'_>, limits: &Limits) -> Result<Vec<Candidate>, Error> {
        let scene = &self.scenes[way.scene];
        let rules = self.rules(way.scene, &way.promises, way.merged);
        let bound = way.interference.bound;
        let mut tries = vec![self.solve(way, &way.interference, &[], Room::Least, limits)?];
        let is_enough = |tries: &[Candidate]| {
            tries
                .iter()
                .any(|c| c.head() == bound && self.excess(c) == 0)
        };
        if !is_enough(&tries) && !scene.first_scratch().is_empty() {
            let alone = self.interference(
                way.scene,
                Rules {
                    online: None,
                    ..rules
                },
            )?;
            tries.push(self.solve(way, &alone, &[], Room::Least, limits)?);
        }
        self.leave_room(way, limits, &mut tries)?;
        if !self.keep.is_empty() {
            // TFLM frees a kept tensor after its last reader, and puts scratch into the lowest gap. Above everything
            // else a kept tensor is safe from that.
            tries.push(self.solve(way, &way.interference, &self.keep, Room::More, limits)?);
        }
        Ok(tries)
    }

    /// Where the best plan would need more than no plan with some library of the target, tries to lower that: all
    /// libraries' scratch memory gets room at once, each below what the library needs without a plan.
    fn leave_room(
        &self,
        way: &Way<'_>,
        limits: &Limits,
        tries: &mut Vec<Candidate>,
    ) -> Result<(), Error> {
        let scene = &self.scenes[way.scene];
        let rules = self.rules(way.scene, &way.promises, way.merged);
        let best = |tries: &[Candidate]| {
            let ranks = tries.iter().map(|c| (self.excess(c), c.head()));
            ranks.min().unwrap_or((0, 0))
        };
        // Without a plan all libraries have what they need; with the head of the best plan at least one has not.
        let (mut least, mut most) = (best(tries).1, self.greedy_heads[0]);
        let mut head = least;
        for _ in 0..ROOM_ROUNDS {
            if best(tries).0 == 0 && least + tflm::ALIGNMENT >= most || least > most {
                break;
            }
            let mut others: Vec<Other> = Vec::new();
            let all = scene.scratch.iter().zip(&self.greedy_heads).skip(1);
            for (scratch, greedy) in all {
                let slack = greedy.saturating_sub(head);
                let is_same = |s: &Scratch| s.requests() == scratch.requests();
                let known = others
                    .iter()
                    .any(|o| is_same(&o.scratch) && o.slack <= slack);
                if !known && !is_same(scene.first_scratch()) {
                    let scratch = scratch.clone();
                    others.push(Other { scratch, slack });
                }
            }
            let others = &others[..];
            let mut roomy = self.interference(way.scene, Rules { others, ..rules })?;
            roomy.bound = head;
            let found = self.solve(way, &roomy, &[], Room::More, limits)?;
            match self.excess(&found) {
                0 => most = found.head().min(head),
                _ => least = head + tflm::ALIGNMENT,
            }
            tries.push(found);
            head = (least + (most.saturating_sub(least)) / 2).next_multiple_of(tflm::ALIGNMENT);
        }
        Ok(())
    }

    /// What is left of the limits.
    fn left_of(&self, limits: &Limits) -> Limits {
        let limits = limits.clone();
        match limits.time {
            Some(time) => limits.with_time(time.saturating_sub(self.start.elapsed())),
            None => limits,
        }
    }

    /// Places the nodes and simulates the plan; nodes with tensors in `above` go on top of all others.
    fn solve(
        &self,
        way: &Way<'_>,
        interference: &Interference,
        above: &[TensorId],
        room: Room,
        limits: &Limits,
    ) -> Result<Candidate, Error> {
        let scene = &self.scenes[way.scene];
        let is_fixed = |t| self.options.fixed.iter().any(|&(fixed, _)| fixed == t);
        let is_above = |node: &Node| {
            let tensors = || node.tensors().map(|(t, _)| t);
            tensors().any(|t| above.contains(&t)) && !tensors().any(is_fixed)
        };
        let below: Vec<usize> = (0..interference.nodes.len())
            .filter(|&i| !is_above(&interference.nodes[i]))
            .collect();
        let is_merged = |n: &Node| matches!(n, Node::Merged(_));
        let has_merged = interference.nodes.iter().any(is_merged);
        let solution = self.place(
            interference,
            &below,
            limits,
            way.is_brief || room == Room::More,
        )?;
        let mut offsets = vec![-1; scene.graph.tensors.len()];
        for (&i, &offset) in below.iter().zip(&solution.placement.offsets) {
            self.set(&mut offsets, &interference.nodes[i], offset)?;
        }
        if !above.is_empty() {
            self.lift(scene, interference, &is_above, &mut offsets)?;
        }
        Ok(Candidate {
            scene: way.scene,
            level: way.level,
            least: way.interference.bound,
            simulations: scene.simulate(Some(&offsets))?,
            offsets,
            planner: solution.planner,
            is_late: solution.stopped == Some(Stop::Time),
            bound: match room {
                // Merged otherwise, the same tensors may go lower than the solver can tell.
                Room::Least if !has_merged => way.interference.bound.max(solution.lower_bound),
                _ => way.interference.bound,
            },
        })
    }

    /// Solves the part of the problem with the nodes in `below`.
    fn place(
        &self,
        interference: &Interference,
        below: &[usize],
        limits: &Limits,
        is_brief: bool,
    ) -> Result<Solution, Error> {
        let problem = &interference.problem;
        let (planner, mut limits) = (self.options.solver, self.left_of(limits));
        if is_brief && limits.time.is_none() {
            limits.nodes = Some(limits.nodes.unwrap_or(BRIEF).min(BRIEF));
        }
        if below.len() == problem.len() {
            return solve_above(problem, planner, interference.bound, &limits)
                .map_err(solver_error);
        }
        let mut part = Problem::new();
        let mut number = vec![None; problem.len()];
        for &i in below {
            if let Some(buffer) = interference.buffer(i) {
                number[i] = Some(part.add_buffer(*buffer));
            }
        }
        for (a, b, conflict) in problem.conflicts() {
            if let (Some(a), Some(b)) = (number[a.index()], number[b.index()]) {
                part.add_conflict(a, b, *conflict).map_err(solver_error)?;
            }
        }
        solve_above(&part, planner, 0, &limits).map_err(solver_error)
    }

    /// Puts the nodes that are to be above all others there.
    fn lift(
        &self,
        scene: &Scene<'_, '_>,
        interference: &Interference,
        is_above: &dyn Fn(&Node) -> bool,
        offsets: &mut [i32],
    ) -> Result<(), Error> {
        let stack = |offsets: &mut [i32], mut top: u64| -> Result<(), Error> {
            for (i, node) in interference.nodes.iter().enumerate() {
                if let Some(buffer) = interference.buffer(i).filter(|_| is_above(node)) {
                    top = top.next_multiple_of(buffer.align);
                    self.set(offsets, node, top)?;
                    top += buffer.size;
                }
            }
            Ok(())
        };
        // Where TFLM ends that knows nothing of them, which may be higher than planned.
        stack(offsets, OUT_OF_THE_WAY)?;
        let lifted: Vec<TensorId> = interference
            .nodes
            .iter()
            .filter(|n| is_above(n))
            .flat_map(|n| n.tensors().map(|(t, _)| t))
            .collect();
        let mut top = 0;
        for others in scene.simulate(Some(offsets))? {
            let tensors = others.tensors.iter().filter(|p| !lifted.contains(&p.what));
            let tensors = tensors.map(|p| p.offset + p.bytes);
            let tops = tensors.chain(others.scratch.iter().map(|p| p.offset + p.bytes));
            top = tops.fold(top, u64::max);
        }
        stack(offsets, top)
    }

    /// Notes the offsets of a node's tensors, those that the plan may place.
    fn set(&self, offsets: &mut [i32], node: &Node, offset: u64) -> Result<(), Error> {
        for (t, at) in node.tensors() {
            let tensor = self.graph.tensor(t);
            if tensor.is_planned() && !self.online.contains(&t) {
                offsets[t.index()] = i32::try_from(offset + at).map_err(|_| Error::TooLarge {
                    what: tensor.label(),
                })?;
            }
        }
        Ok(())
    }

    /// The independent check of what TFLM will make of a plan, and that this is the plan.
    fn check(&self, candidate: &Candidate) -> Result<(), Error> {
        let internal = |reason| Err(Error::Internal { reason });
        let graph = &self.scenes[candidate.scene].graph;
        for &(tensor, offset) in &self.options.fixed {
            let found = candidate.offsets.get(tensor.index()).copied();
            if found.map(i64::from) != i64::try_from(offset).ok() {
                let label = graph.tensor(tensor).label();
                return internal(format!("{label} is not at {offset}, where it must be"));
            }
        }
        for (k, simulation) in candidate.simulations.iter().enumerate() {
            if candidate.simulations[..k].iter().any(|s| s == simulation) {
                continue; // the same layout
            }
            for (tensor, &offset) in graph.tensors.iter().zip(&candidate.offsets) {
                let placed = simulation.tensor(tensor.id).map(|p| p.offset as i64);
                if offset != -1 && placed != Some(offset.into()) {
                    return internal(format!("{} is not where the plan puts it", tensor.label()));
                }
            }
            let mut layout = simulation.layout(self.options.alignment(), &self.keep);
            layout.libraries = self.options.kernels().libraries();
            layout.views_only = Level::of(self.options.kernels()) <= Level::Views;
            let mut known = self.known.borrow_mut();
            let known = known.entry(candidate.scene).or_default();
            match check::check_again(graph, &layout, known).into_iter().next() {
                None => {}
                Some(Violation::TooDeep { operator }) => {
                    return Err(Error::TooManySteps { operator });
                }
                // TFLM frees a kept tensor after its last reader; something it places itself may then come to lie there.
                Some(
                    fault @ Violation::Overwritten {
                        tag: Tag::Tensor(tensor),
                        ..
                    },
                ) if self.keep.contains(&tensor) => {
                    return Err(Error::CannotKeep {
                        tensor: graph.tensor(tensor).label(),
                        reason: fault.describe(graph),
                    });
                }
                Some(fault) => return internal(fault.describe(graph)),
            }
        }
        Ok(())
    }
}
