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

use super::MAX_STRIPES;
use super::estimate::{Estimate, Program, estimate};
use super::found::Cut;
use super::kernels::{Kernels, Mode};
use super::net::{Net, NetTensor, Reason, Rule};
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
    /// Bytes of the head, by a quick placement.
    pub(crate) head: u64,
    /// No plan is expected to have a smaller head. Where it was chosen for its placement, that.
    pub(crate) least: u64,
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

/// What a search found: some nets, the most promising first, or nothing and why.
pub(crate) type Outcome = Result<Vec<Found>, Nothing>;

/// Operators that may be generated and looked at.
pub(super) const WORK: u64 = 12_000_000;
/// Operators of one region.
const LONGEST: usize = 64;
/// Wrong rows that are carried along at most, from none that need not be to many.
pub(super) const TRIMS: [i64; 4] = [0, 1, 2, 4];
/// Choices kept for each position.
const LABELS: usize = 8;
/// What time counts against memory, in thousandths: all of the time as much as so many of the arena.
pub(crate) const WEIGHT: u64 = 300;
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
    let answers = search.best(solutions);
    if answers.is_empty() {
        return Err(search.reason());
    }
    Ok(answers)
}

/// A way to cut a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) cuts: Vec<i64>,
    pub(super) trim: i64,
    /// Bytes alive at most, what is around the region included.
    pub(super) peak: u64,
    time: i64,
    macs: i64,
    tail: i64,
    surplus: i64,
}

/// A region that may be cut.
pub(super) struct Candidate {
    pub(super) region: Region,
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
pub(super) struct Solution {
    pub(super) peak: u64,
    pub(super) time: i64,
    pub(super) macs: i64,
    pub(super) tail: i64,
    pub(super) ways: Vec<(usize, Way)>,
}

pub(super) struct Search<'s, 'k, 'a> {
    pub(super) net: &'s Net,
    pub(super) costs: &'s Costs,
    pub(super) goal: &'s Goal<'k, 'a>,
    /// Most time that may be added.
    pub(super) budget: i64,
    pub(super) base: Estimate,
    pub(super) candidates: Vec<Candidate>,
    /// Candidates by their first operator.
    pub(super) by_start: Vec<Vec<usize>>,
    pub(super) work: u64,
    /// The solver's nodes left for changes.
    pub(super) placing: u64,
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
            placing: 0,
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
    pub(super) fn cut(&mut self, index: usize, cuts: Vec<i64>, trim: i64) -> Option<Way> {
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
        for (trim, &surplus) in TRIMS.iter().enumerate() {
            for n in 0..stripes.saturating_sub(1) {
                if self.candidates[index].ways[trim].len() <= n {
                    if self.candidates[index].closed[trim] {
                        break;
                    }
                    let way = match self.is_new(index, trim, n) {
                        true => self.cut(index, even(rows, n as i64 + 2), surplus),
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

    pub(super) fn total(&self, ways: Vec<(usize, Way)>) -> Solution {
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
    pub(super) fn objective(&self, peak: u64, tail: i64, time: i64) -> u128 {
        let weight = match self.goal.budget {
            Budget::UpTo(_) => TIE,
            Budget::Auto => WEIGHT,
        };
        let bytes = (peak + self.costs.whole.tail).saturating_add_signed(tail);
        let whole = self.costs.whole.time.max(1) as u128;
        let factor = 1000 * whole + u128::from(weight) * time.max(0) as u128;
        u128::from(bytes) * 1000 * factor / whole
    }

    pub(super) fn value(&self, solution: &Solution) -> u128 {
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

/// Cuts for stripes of equal rows, as far as possible.
pub(super) fn even(rows: i64, parts: i64) -> Vec<i64> {
    let cuts = (0..=parts).map(|k| (2 * k * rows + parts) / (2 * parts));
    cuts.collect()
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
    let nets = solutions.into_iter().filter_map(|s| {
        let peak = s.peak;
        Some((peak, search.build(s, 100)?.found.net))
    });
    nets.collect()
}
