//! Looks for the regions to cut, and how.
//!
//! Regions of the file's operators are cut independently of each other: what is alive around a region does not change when
//! others are cut, and inside it only its own stripes count. So for a peak that must not be exceeded, the cheapest choice
//! is a shortest path over the operators,
//!
//! ```text
//! start --op--> . --op--> . -----region in 4 stripes-----> . --op--> end
//!                  `---------longer region in 3-----------------^
//! ```
//!
//! with an edge for each operator at which no more than that is alive, and for each way to cut a region in which no more
//! is. The search does this for falling peaks, and then moves the cuts of the best choices. Limits are counted in work, never
//! in time.

use std::collections::BTreeMap;

use super::MAX_STRIPES;
use super::estimate::{Estimate, Kernels, Mode, Program, estimate};
use super::found::Cut;
use super::net::{Net, NetTensor, Reason, Rule};
use super::place;
use super::region::Region;
use super::spent::{Costs, Spent};

/// How much more work a search may give to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Budget {
    /// At most so many thousandths of the whole model's; within it the arena alone counts.
    UpTo(u32),
    /// As much as is in proportion to what it saves.
    Auto,
}

/// What is looked for.
pub(crate) struct Goal<'k, 'a> {
    pub(crate) kernels: &'k Kernels<'a>,
    pub(crate) mode: Mode,
    pub(crate) budget: Budget,
}

/// A net with stripes.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) net: Net,
    /// Bytes alive at most.
    pub(crate) peak: u64,
    /// Bytes of the head, by a quick placement.
    pub(crate) head: u64,
    /// Estimated bytes that the tail has more, on 32 bits.
    pub(crate) tail: i64,
    /// More time, in the unit of the costs.
    pub(crate) extra_time: i64,
    /// More multiplications.
    pub(crate) extra_macs: i64,
    /// What was cut.
    pub(crate) regions: Vec<Cut>,
}

/// Why nothing is worth cutting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Nothing {
    /// Nothing is in the arena's head.
    Empty,
    /// The model's inputs are whole at the start, and need as much as the peak.
    Inputs {
        /// Their bytes.
        bytes: u64,
    },
    /// The model's outputs are whole at the end.
    Outputs {
        /// Their bytes.
        bytes: u64,
    },
    /// The operator at the peak cannot be cut.
    Operator {
        /// Its number in the file.
        operator: u32,
        /// Why.
        reason: Reason,
    },
    /// No region around the peak has smaller borders than the peak.
    Regions {
        /// The operator at the peak.
        operator: u32,
    },
    /// What gains costs more than the budget.
    Budget {
        /// The least cost that gains, in thousandths of the whole model's.
        least: u32,
        /// The peak that it gives, in bytes.
        peak: u64,
    },
    /// The tail would grow by more than the head shrinks.
    Tail {
        /// Bytes that the head would have less.
        saved: u64,
        /// Bytes that the tail would have more.
        tail: u64,
    },
}

/// What a search found: the best first, or nothing and why.
pub(crate) type Outcome = Result<Vec<Found>, Nothing>;

/// Operators that may be generated and looked at.
const WORK: u64 = 12_000_000;
/// Operators of one region.
const LONGEST: usize = 64;
/// Wrong rows that are carried along at most, from none that need not be to many.
const TRIMS: [i64; 4] = [0, 1, 2, 4];
/// Choices kept for each position.
const LABELS: usize = 8;
/// Answers.
const ANSWERS: usize = 6;
/// Choices of which the cuts are moved.
const REFINED: usize = 20;
/// Choices that are placed.
const PLACED: usize = 40;
/// Choices of the same regions among them, before cuts are moved.
const ALIKE: usize = 4;
/// The solver's nodes for each.
const NODES: u64 = 20_000;
/// What time counts against memory, in thousandths: all of the time as much as so many of the arena.
const WEIGHT: u64 = 300;
/// The same where a budget was given: equal arenas go by time.
const TIE: u64 = 20;
/// The budget when none was given, in thousandths.
const MOST: u32 = 1000;

/// Looks for the best nets with stripes.
pub(crate) fn search(net: &Net, costs: &Costs, goal: &Goal<'_, '_>) -> Outcome {
    let limit = match goal.budget {
        Budget::UpTo(thousandths) => thousandths,
        Budget::Auto => MOST,
    };
    let mut search = Search::new(net, costs, goal, limit);
    let solutions = search.sweep();
    let mut answers = search.best(solutions);
    if answers.is_empty() {
        return Err(search.reason());
    }
    answers.truncate(ANSWERS);
    Ok(answers)
}

/// A way to cut a region.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Way {
    cuts: Vec<i64>,
    trim: i64,
    /// Bytes alive at most, what is around the region included.
    peak: u64,
    time: i64,
    macs: i64,
    tail: i64,
    surplus: i64,
}

/// A region that may be cut.
struct Candidate {
    region: Region,
    /// Bytes alive during all of it that are none of its tensors.
    around: u64,
    /// Whether its source is read later.
    stays: bool,
    /// What it needs whatever the cuts: its source at the start, its result at the end.
    floor: u64,
    own: Spent,
    /// Ways found so far, for each trim by the number of stripes from 2 on; `None` where it cannot be cut so.
    ways: [Vec<Option<Way>>; TRIMS.len()],
    /// Trims for which more stripes cost too much.
    closed: [bool; TRIMS.len()],
}

/// A path so far.
#[derive(Clone, Copy)]
struct Label {
    time: i64,
    tail: i64,
    /// The label before, by position and index; itself at the start.
    before: (usize, usize),
    /// The candidate, trim and number of stripes on the way here.
    way: Option<(usize, usize, usize)>,
}

/// A choice of regions and ways.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Solution {
    peak: u64,
    time: i64,
    macs: i64,
    tail: i64,
    ways: Vec<(usize, Way)>,
}

struct Search<'s, 'k, 'a> {
    net: &'s Net,
    costs: &'s Costs,
    goal: &'s Goal<'k, 'a>,
    /// Most time that may be added.
    budget: i64,
    base: Estimate,
    candidates: Vec<Candidate>,
    /// Candidates by their first operator.
    by_start: Vec<Vec<usize>>,
    work: u64,
}

impl<'s, 'k, 'a> Search<'s, 'k, 'a> {
    fn new(net: &'s Net, costs: &'s Costs, goal: &'s Goal<'k, 'a>, limit: u32) -> Self {
        let base = estimate(&Program::of(net), goal.kernels);
        let mut search = Self {
            net,
            costs,
            goal,
            budget: (i128::from(costs.whole.time) * i128::from(limit) / 1000) as i64,
            base,
            candidates: Vec::new(),
            by_start: vec![Vec::new(); net.operators.len()],
            work: WORK,
        };
        let peak = search.base.peak().0;
        for region in net.regions() {
            let (first, last) = (*region.operators.start(), *region.operators.end());
            if last - first >= LONGEST {
                continue;
            }
            let candidate = search.candidate(region);
            if candidate.floor < peak {
                search.by_start[first].push(search.candidates.len());
                search.candidates.push(candidate);
            }
        }
        search
    }

    fn candidate(&self, region: Region) -> Candidate {
        let (first, last) = (*region.operators.start(), *region.operators.end());
        // The region's operators run at these clocks.
        let (from, to) = (first as u32 + 1, last as u32 + 1);
        let [source, result] = [region.source, region.result].map(|t| {
            let bytes = self.net.tensor(t).bytes();
            (self.base.places[t as usize], bytes)
        });
        let mut around = 0;
        let mut stays = false;
        for piece in &self.base.alive {
            if piece.first >= from || piece.last < to {
                continue;
            }
            let mut bytes = piece.to - piece.from;
            if let (Some(place), size) = source
                && place.buffer == piece.buffer
            {
                let common = piece.to.min(place.at + size as i64) - piece.from.max(place.at);
                if common > 0 {
                    stays |= piece.last > to;
                    bytes -= common;
                }
            }
            around += bytes as u64;
        }
        let floor = match self.goal.mode {
            Mode::Greedy => source.1.max(2 * result.1),
            _ => source.1.max(result.1),
        };
        let operators = &self.net.operators[first..=last];
        let own = self.costs.of(operators, |t| self.net.tensor(t));
        Candidate {
            floor: floor + around,
            region,
            around,
            stays,
            own,
            ways: Default::default(),
            closed: Default::default(),
        }
    }

    /// Cuts a candidate so.
    fn cut(&mut self, index: usize, cuts: Vec<i64>, trim: i64) -> Option<Way> {
        let candidate = &self.candidates[index];
        let region = &candidate.region;
        let count = (region.operators.end() + 1 - region.operators.start()) * (cuts.len() + 1);
        self.work = self.work.checked_sub(count as u64)?;
        let stripes = self.net.stripes(region, &cuts, trim)?;
        let here = |t: u32| -> &NetTensor {
            match (t as usize).checked_sub(self.net.tensors.len()) {
                Some(added) => &stripes.tensors[added],
                None => self.net.tensor(t),
            }
        };
        let all = self.costs.of(&stripes.operators, here);
        let time = all.time - candidate.own.time;
        let mut way = Way {
            cuts,
            trim,
            peak: u64::MAX,
            time,
            macs: all.macs as i64 - candidate.own.macs as i64,
            tail: all.tail as i64 - candidate.own.tail as i64,
            surplus: stripes.surplus,
        };
        // It need not be looked at.
        if time > self.budget {
            return Some(way);
        }
        let after = [region.result, region.source];
        let program = Program {
            net: self.net,
            added: &stripes.tensors,
            operators: &stripes.operators,
            before: &[region.source],
            after: match candidate.stays {
                true => &after,
                false => &after[..1],
            },
        };
        self.work = self.work.saturating_sub(2 * stripes.operators.len() as u64);
        let inside = estimate(&program, self.goal.kernels);
        let peak = inside.curve[1..].iter().copied().max().unwrap_or(0);
        way.peak = peak + candidate.around;
        Some(way)
    }

    /// The cheapest ways to cut a candidate with no more than `most` bytes, one for each trim at most.
    fn ways_within(&mut self, index: usize, most: u64) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        if self.candidates[index].floor > most {
            return found;
        }
        let rows = self.net.rows_of_result(&self.candidates[index].region);
        let stripes = (rows as usize).min(MAX_STRIPES);
        for trim in 0..TRIMS.len() {
            for n in 0..stripes.saturating_sub(1) {
                if self.candidates[index].ways[trim].len() <= n {
                    if self.candidates[index].closed[trim] {
                        break;
                    }
                    let way = match self.is_new(index, trim, n) {
                        true => {
                            let parts = n as i64 + 2;
                            let cuts = (0..=parts).map(|k| (2 * k * rows + parts) / (2 * parts));
                            self.cut(index, cuts.collect(), TRIMS[trim])
                        }
                        false => None,
                    };
                    if way.as_ref().is_some_and(|w| w.time > self.budget) && n > 1 {
                        self.candidates[index].closed[trim] = true;
                    }
                    self.candidates[index].ways[trim].push(way);
                }
                let way = self.candidates[index].ways[trim][n].as_ref();
                if way.is_some_and(|w| w.peak <= most && w.time <= self.budget) {
                    found.push((trim, n));
                    break;
                }
            }
        }
        found
    }

    /// Whether a trim changes anything with so many stripes.
    fn is_new(&self, index: usize, trim: usize, n: usize) -> bool {
        let without = self.candidates[index].ways[0].get(n);
        match (trim, without) {
            (0, _) => true,
            (_, Some(Some(without))) => without.surplus >= TRIMS[trim],
            _ => true,
        }
    }

    /// The cheapest choices with no more than `most` bytes.
    fn cover(&mut self, most: u64) -> Vec<Solution> {
        let count = self.net.operators.len();
        let fits: Vec<bool> = self.base.curve.iter().map(|&b| b <= most).collect();
        if !fits[0] {
            return Vec::new();
        }
        // How many clocks before this one do not fit.
        let mut before = vec![0usize];
        for fits in &fits {
            before.push(before[before.len() - 1] + usize::from(!fits));
        }
        let mut labels: Vec<Vec<Label>> = vec![Vec::new(); count + 1];
        labels[0].push(Label {
            time: 0,
            tail: 0,
            before: (0, 0),
            way: None,
        });
        for at in 0..count {
            if labels[at].is_empty() {
                continue;
            }
            if fits[at + 1] {
                for k in 0..labels[at].len() {
                    let label = Label {
                        before: (at, k),
                        way: None,
                        ..labels[at][k]
                    };
                    insert(&mut labels[at + 1], label);
                }
            }
            for c in 0..self.by_start[at].len() {
                let index = self.by_start[at][c];
                let last = *self.candidates[index].region.operators.end();
                // Clocks from `at + 1` to `last + 1`.
                if before[last + 2] == before[at + 1] {
                    continue;
                }
                for (trim, n) in self.ways_within(index, most) {
                    let Some(way) = &self.candidates[index].ways[trim][n] else {
                        continue;
                    };
                    for k in 0..labels[at].len() {
                        let label = Label {
                            time: labels[at][k].time + way.time,
                            tail: labels[at][k].tail + way.tail,
                            before: (at, k),
                            way: Some((index, trim, n)),
                        };
                        if label.time <= self.budget {
                            insert(&mut labels[last + 1], label);
                        }
                    }
                }
            }
        }
        let ends = 0..labels[count].len();
        ends.map(|k| self.solution(&labels, (count, k))).collect()
    }

    fn solution(&self, labels: &[Vec<Label>], end: (usize, usize)) -> Solution {
        let mut ways = Vec::new();
        let mut at = end;
        while at.0 > 0 {
            let label = labels[at.0][at.1];
            if let Some((index, trim, n)) = label.way
                && let Some(way) = &self.candidates[index].ways[trim][n]
            {
                ways.push((index, way.clone()));
            }
            at = label.before;
        }
        ways.reverse();
        self.total(ways)
    }

    fn total(&self, ways: Vec<(usize, Way)>) -> Solution {
        let mut is_cut = vec![false; self.base.curve.len()];
        for (index, _) in &ways {
            for op in self.candidates[*index].region.operators() {
                is_cut[op + 1] = true;
            }
        }
        let uncut = self
            .base
            .curve
            .iter()
            .zip(&is_cut)
            .filter(|(_, cut)| !**cut);
        let peak = uncut.map(|(&bytes, _)| bytes).max().unwrap_or(0);
        Solution {
            peak: ways.iter().map(|(_, w)| w.peak).fold(peak, u64::max),
            time: ways.iter().map(|(_, w)| w.time).sum(),
            macs: ways.iter().map(|(_, w)| w.macs).sum(),
            tail: ways.iter().map(|(_, w)| w.tail).sum(),
            ways,
        }
    }

    /// What is made small.
    fn objective(&self, peak: u64, tail: i64, time: i64) -> u128 {
        let weight = match self.goal.budget {
            Budget::UpTo(_) => TIE,
            Budget::Auto => WEIGHT,
        };
        let bytes = (peak + self.costs.whole.tail).saturating_add_signed(tail);
        let whole = self.costs.whole.time.max(1) as u128;
        let factor = 1000 * whole + u128::from(weight) * time.max(0) as u128;
        u128::from(bytes) * 1000 * factor / whole
    }

    fn value(&self, solution: &Solution) -> u128 {
        self.objective(solution.peak, solution.tail, solution.time)
    }

    /// Choices for falling peaks.
    fn sweep(&mut self) -> Vec<Solution> {
        let start = self.base.peak().0;
        let mut found: Vec<Solution> = Vec::new();
        let mut most = start.saturating_sub(1);
        let mut failed = 0;
        loop {
            let solutions = self.cover(most);
            match solutions.iter().map(|s| s.peak).max() {
                Some(peak) => {
                    found.extend(solutions);
                    let next = match failed {
                        0 => peak.min(most) * 985 / 1000,
                        low => (peak.min(most) + low) / 2,
                    };
                    most = next.min(peak.saturating_sub(1));
                }
                None => {
                    let last = found.iter().map(|s| s.peak).min().unwrap_or(start);
                    failed = most;
                    most = (last + failed) / 2;
                }
            }
            let last = found.iter().map(|s| s.peak).min().unwrap_or(start);
            if failed > 0 && most.saturating_sub(failed) * 500 < last || most == 0 {
                break;
            }
        }
        found
    }

    /// Moves the cuts of the best choices, and makes nets of them. The best are placed, since some leave gaps.
    fn best(&mut self, mut solutions: Vec<Solution>) -> Vec<Found> {
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
        let mut answers: Vec<(u128, Found)> = Vec::new();
        let nothing = self.objective(self.base.peak().0, 0, 0);
        for solution in all.into_iter().take(PLACED) {
            if let Some(found) = self.build(&solution) {
                let value = self.objective(found.head, solution.tail, solution.time);
                if self.value(&solution) < nothing {
                    answers.push((value, found));
                }
            }
        }
        answers.sort_by_key(|a| a.0);
        // Whoever plans them has time for a few: no more than two with the same regions.
        let mut counts: BTreeMap<Vec<(u32, u32)>, usize> = BTreeMap::new();
        let mut seen: Vec<Vec<Cut>> = Vec::new();
        answers.retain(|(_, found)| {
            let regions = found.regions.iter().map(|c| c.operators).collect();
            let count = counts.entry(regions).or_default();
            *count += 1;
            let is_new = *count <= 2 && !seen.contains(&found.regions);
            seen.push(found.regions.clone());
            is_new
        });
        answers.into_iter().map(|a| a.1).collect()
    }

    fn sort(&self, solutions: &mut Vec<Solution>) {
        solutions.sort_by_cached_key(|s| (self.value(s), s.ways.len()));
        solutions.dedup();
    }

    /// The best choices, few for the same regions.
    fn distinct(&self, solutions: Vec<Solution>) -> Vec<Solution> {
        let mut counts: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        let mut is_new = |s: &Solution| {
            let regions = s.ways.iter().map(|(index, _)| *index).collect();
            let count = counts.entry(regions).or_default();
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

    fn build(&self, solution: &Solution) -> Option<Found> {
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
        let head = place::head(&program, self.goal.kernels, &estimate, NODES).unwrap_or(peak);
        Some(Found {
            net,
            peak,
            head,
            tail: solution.tail,
            extra_time: solution.time,
            extra_macs: solution.macs,
            regions,
        })
    }

    /// Why there is no answer.
    fn reason(&mut self) -> Nothing {
        let (peak, clock) = self.base.peak();
        let last = self.base.curve.len() - 1;
        let bytes_of = |tensors: &[u32]| -> u64 {
            let bytes = tensors.iter().map(|&t| self.net.tensor(t).bytes());
            bytes.sum()
        };
        if peak == 0 {
            return Nothing::Empty;
        }
        if self.base.curve[0] >= peak {
            return Nothing::Inputs {
                bytes: bytes_of(&self.net.inputs),
            };
        }
        if clock == last && bytes_of(&self.net.outputs) >= peak {
            return Nothing::Outputs {
                bytes: bytes_of(&self.net.outputs),
            };
        }
        let op = &self.net.operators[clock - 1];
        let operator = op.layer().unwrap_or(0);
        if let Rule::Whole(reason) = self.net.rule(op) {
            return Nothing::Operator { operator, reason };
        }
        let cheapest = |s: &mut Self| {
            let solutions = s.cover(peak - 1);
            solutions.into_iter().min_by_key(|s| (s.time, s.tail))
        };
        if let Some(solution) = cheapest(self) {
            return Nothing::Tail {
                saved: peak - solution.peak,
                tail: solution.tail.max(0) as u64,
            };
        }
        let mut without = Search::new(self.net, self.costs, self.goal, 100_000);
        match cheapest(&mut without) {
            Some(solution) => Nothing::Budget {
                least: (solution.time.max(0) as u128 * 1000)
                    .div_ceil(self.costs.whole.time.max(1) as u128) as u32,
                peak: solution.peak,
            },
            None => Nothing::Regions { operator },
        }
    }
}

/// Adds a label unless another one is as good in everything.
fn insert(labels: &mut Vec<Label>, new: Label) {
    if labels
        .iter()
        .any(|l| l.time <= new.time && l.tail <= new.tail)
    {
        return;
    }
    labels.retain(|l| l.time < new.time || l.tail < new.tail);
    labels.push(new);
    if labels.len() > LABELS {
        labels.sort_by_key(|l| (l.tail, l.time));
        labels.remove(LABELS / 2);
    }
}

/// All choices that are looked at before cuts are moved: their peaks and nets.
#[cfg(test)]
pub(crate) fn peaks(net: &Net, costs: &Costs, goal: &Goal<'_, '_>) -> Vec<(u64, Net)> {
    let Budget::UpTo(limit) = goal.budget else {
        return Vec::new();
    };
    let mut search = Search::new(net, costs, goal, limit);
    let solutions = search.sweep();
    let nets = solutions.iter().filter_map(|s| {
        let found = search.build(s)?;
        Some((s.peak, found.net))
    });
    nets.collect()
}
