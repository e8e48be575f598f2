//! The exact search for buffers with holes: which one of each pair is the lower one.
//!
//! Where a separation is negative, a buffer may keep up another one that starts below it, so no
//! order of placing them from the bottom up finds all placements ([`crate::exact`] is of no use).
//! Here each conflict is a choice between two sides:
//! ```text
//! x below y:   least[y]    >= least[x]    + below, rounded up to the alignment of y
//!              greatest[x] <= greatest[y] - below, rounded down to the alignment of x
//! y below x:   the same with `above`
//! ```
//! What a side asks for may leave other conflicts one side only. Once the least offsets keep all
//! conflicts, they are a placement; until then one that they do not keep is decided, both ways in
//! turn. So "no" is a proof, for any conflicts and alignments.

use core::ops::Range;

use crate::budget::Budget;
use crate::instance::Instance;
use crate::pairs::{Order, Pair, pairs, up};

/// Nodes in the first round, per buffer.
const NODES_PER_BUFFER: u64 = 2;

/// Conflicts at most, so that a node does not take too long.
const MOST_PAIRS: usize = 1 << 16;

/// Conflicts looked at before the clock is read again.
const WORK_PER_LOOK: u64 = 1 << 18;

/// What came of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    Unknown,
}

/// What was changed, to be taken back.
#[derive(Clone, Copy, Debug)]
enum Change {
    Order(u32),
    Least(u32, i64),
    Greatest(u32, i64),
}

/// A conflict that is being tried, and the side that is left.
#[derive(Clone, Copy, Debug)]
struct Frame {
    pair: u32,
    other: Order,
    trail: usize,
}

/// The search for the lowest placement of one part, between the heights that are of use.
#[derive(Debug)]
pub(crate) struct Sides<'a> {
    instance: &'a Instance,
    pairs: Vec<Pair>,
    /// Per pair: the range of those of the same two buffers.
    same: Vec<(u32, u32)>,
    /// Pairs of buffer `x`: `of[row[x]..row[x + 1]]`.
    row: Vec<u32>,
    of: Vec<u32>,
    /// Per pair: how often it could not be kept.
    weight: Vec<u64>,
    least: Vec<i64>,
    greatest: Vec<i64>,
    trail: Vec<Change>,
    frames: Vec<Frame>,
    waiting: Vec<u32>,
    is_waiting: Vec<bool>,
    nodes: u64,
    work: u64,
    target: u64,
    proven: u64,
    height: u64,
    found: Option<Vec<u64>>,
}

impl<'a> Sides<'a> {
    /// A search for heights from `target` up to but not including `height`, or `None` if the part
    /// is too large for one.
    pub(crate) fn new(instance: &'a Instance, target: u64, height: u64) -> Option<Self> {
        if instance.entries() / 2 > MOST_PAIRS {
            return None;
        }
        let n = instance.len();
        let pairs = pairs(instance);
        let mut same = Vec::with_capacity(pairs.len());
        for group in pairs.chunk_by(|a, b| (a.x, a.y) == (b.x, b.y)) {
            let from = same.len();
            same.resize(
                from + group.len(),
                (from as u32, (from + group.len()) as u32),
            );
        }
        let mut row = vec![0u32; n + 1];
        for pair in &pairs {
            row[pair.x + 1] += 1;
            row[pair.y + 1] += 1;
        }
        for x in 0..n {
            row[x + 1] += row[x];
        }
        let mut next = row.clone();
        let mut of = vec![0; 2 * pairs.len()];
        for (at, pair) in pairs.iter().enumerate() {
            for x in [pair.x, pair.y] {
                of[next[x] as usize] = at as u32;
                next[x] += 1;
            }
        }
        Some(Self {
            instance,
            weight: vec![1; pairs.len()],
            pairs,
            same,
            row,
            of,
            least: vec![0; n],
            greatest: vec![0; n],
            trail: Vec::new(),
            frames: Vec::new(),
            waiting: Vec::new(),
            is_waiting: vec![false; n],
            nodes: 0,
            work: 0,
            target,
            proven: target,
            height,
            found: None,
        })
    }

    /// The offsets of the lowest placement found, if there is one.
    pub(crate) fn found(&self) -> Option<&[u64]> {
        self.found.as_deref()
    }

    /// It is proven that there is no placement from the target up to but not including this height.
    pub(crate) fn proven(&self) -> u64 {
        self.proven
    }

    /// Whether nothing is left to find.
    pub(crate) fn is_done(&self) -> bool {
        self.proven >= self.height
    }

    /// Takes over a height that was found in another way.
    pub(crate) fn lower(&mut self, height: u64) {
        if height < self.height {
            self.height = height;
            self.found = None;
        }
    }

    /// Searches only for a placement at the target.
    pub(crate) fn reach_target(&mut self, rounds: Range<u32>, budget: &mut Budget) {
        for round in rounds {
            if self.is_done() || budget.is_over() {
                break;
            }
            match self.decide(self.target, round, budget) {
                Answer::Yes => break,
                Answer::No => {
                    self.proven = self.proven.max(self.target + 1);
                    break;
                }
                Answer::Unknown => {}
            }
        }
    }

    /// Searches for lower and lower placements, in sweeps over the heights that are open, each with
    /// twice the nodes of the one before. A height that takes longer counts as hopeless for the
    /// rest of the sweep.
    pub(crate) fn minimise(&mut self, rounds: Range<u32>, budget: &mut Budget) {
        for round in rounds {
            let mut hopeless = self.proven;
            let mut capacity = self.proven;
            while !self.is_done() && hopeless < self.height && !budget.is_over() {
                match self.decide(capacity, round, budget) {
                    Answer::Yes => {}
                    Answer::No => self.proven = capacity + 1,
                    Answer::Unknown => hopeless = capacity + 1,
                }
                hopeless = hopeless.max(self.proven);
                capacity = hopeless + self.height.saturating_sub(hopeless + 1) / 2;
            }
            if self.is_done() || budget.is_over() {
                break;
            }
        }
    }

    fn decide(&mut self, capacity: u64, round: u32, budget: &mut Budget) -> Answer {
        let nodes = (NODES_PER_BUFFER * self.instance.len() as u64) << round.min(32);
        let (nodes_before, work_before) = (self.nodes, self.work);
        let answer = self.run(capacity, nodes.min(budget.nodes), budget);
        budget.spend(self.nodes - nodes_before, self.work - work_before);
        if answer == Answer::Yes {
            let offsets: Vec<u64> = self.least.iter().map(|&o| o as u64).collect();
            self.height = self.instance.height(&offsets).max(self.target);
            self.found = Some(offsets);
        }
        answer
    }

    /// Whether all buffers fit into `capacity`.
    fn run(&mut self, capacity: u64, nodes: u64, budget: &mut Budget) -> Answer {
        self.trail.clear();
        self.frames.clear();
        self.pairs
            .iter_mut()
            .for_each(|pair| pair.order = Order::Open);
        for x in 0..self.instance.len() {
            let (size, align) = (self.instance.size[x], self.instance.align[x]);
            let Some(highest) = capacity.checked_sub(size) else {
                return Answer::No;
            };
            let fixed = self.instance.fixed[x];
            if !self.instance.is_free(x) && fixed > highest {
                return Answer::No;
            }
            (self.least[x], self.greatest[x]) = match self.instance.is_free(x) {
                true => (0, (highest - highest % align) as i64),
                false => (fixed as i64, fixed as i64),
            };
            self.wait(x);
        }
        let nodes_end = self.nodes.saturating_add(nodes);
        let work_end = self.work.saturating_add(budget.work);
        let mut next_look = self.work + WORK_PER_LOOK;
        let mut fits = self.follow(work_end);
        loop {
            match fits {
                None => return Answer::Unknown,
                Some(true) => {
                    let Some((pair, order)) = self.choose() else {
                        return Answer::Yes;
                    };
                    if self.nodes >= nodes_end || self.work >= work_end {
                        return Answer::Unknown;
                    }
                    if self.work >= next_look {
                        if budget.deadline.passed() {
                            return Answer::Unknown;
                        }
                        next_look = self.work + WORK_PER_LOOK;
                    }
                    self.nodes += 1;
                    let other = match order {
                        Order::Below => Order::Above,
                        _ => Order::Below,
                    };
                    let trail = self.trail.len();
                    self.frames.push(Frame { pair, other, trail });
                    fits = self.assume(pair as usize, order, work_end);
                }
                Some(false) => {
                    let Some(frame) = self.frames.pop() else {
                        return Answer::No;
                    };
                    self.undo(frame.trail);
                    fits = self.assume(frame.pair as usize, frame.other, work_end);
                }
            }
        }
    }

    fn undo(&mut self, trail: usize) {
        for change in self.trail.drain(trail..).rev() {
            match change {
                Change::Order(pair) => self.pairs[pair as usize].order = Order::Open,
                Change::Least(x, old) => self.least[x as usize] = old,
                Change::Greatest(x, old) => self.greatest[x as usize] = old,
            }
        }
    }

    fn wait(&mut self, x: usize) {
        if !self.is_waiting[x] {
            self.is_waiting[x] = true;
            self.waiting.push(x as u32);
        }
    }

    /// A conflict that the least offsets do not keep, and its cheaper side; `None` if they keep
    /// all.
    fn choose(&mut self) -> Option<(u32, Order)> {
        let mut best = None;
        let mut most = 0;
        self.work += self.pairs.len() as u64;
        for (at, pair) in self.pairs.iter().enumerate() {
            if pair.order != Order::Open {
                continue;
            }
            let below = self.least[pair.x] + pair.below - self.least[pair.y];
            let above = self.least[pair.y] + pair.above - self.least[pair.x];
            if below <= 0 || above <= 0 {
                continue;
            }
            let value = u128::from(self.weight[at]) * below.min(above) as u128;
            if value > most {
                most = value;
                let order = if below <= above {
                    Order::Below
                } else {
                    Order::Above
                };
                best = Some((at as u32, order));
            }
        }
        best
    }

    /// Decides a conflict and draws all conclusions. False if nothing is left, `None` at the limit
    /// of work.
    fn assume(&mut self, at: usize, order: Order, work_end: u64) -> Option<bool> {
        if !self.set(at, order) || !self.keep(at) {
            self.weight[at] += 1;
            self.stop();
            return Some(false);
        }
        self.follow(work_end)
    }

    fn stop(&mut self) {
        while let Some(x) = self.waiting.pop() {
            self.is_waiting[x as usize] = false;
        }
    }

    /// Notes the order of a pair, and of the others of the same two buffers that follow from it.
    fn set(&mut self, at: usize, order: Order) -> bool {
        let (from, to) = self.same[at];
        let Pair { below, above, .. } = self.pairs[at];
        for other in from as usize..to as usize {
            let pair = &mut self.pairs[other];
            // The offset of x minus that of y is at most -below, or at least above.
            let follows = match order {
                Order::Below => pair.below <= below,
                _ => pair.above <= above,
            };
            if !follows || pair.order == order {
                continue;
            }
            if pair.order != Order::Open {
                return false; // both sides of what lies between
            }
            pair.order = order;
            self.trail.push(Change::Order(other as u32));
        }
        true
    }

    /// Narrows the offsets of a pair that is decided. False if nothing is left.
    fn keep(&mut self, at: usize) -> bool {
        let pair = &self.pairs[at];
        let (lower, upper, distance) = pair.ends(pair.order);
        let least = up(
            self.least[lower] + distance,
            self.instance.align[upper] as i64,
        );
        let greatest = self.greatest[upper] - distance;
        let greatest = greatest - greatest.rem_euclid(self.instance.align[lower] as i64);
        if least > self.least[upper] {
            self.trail
                .push(Change::Least(upper as u32, self.least[upper]));
            self.least[upper] = least;
            self.wait(upper);
        }
        if greatest < self.greatest[lower] {
            self.trail
                .push(Change::Greatest(lower as u32, self.greatest[lower]));
            self.greatest[lower] = greatest;
            self.wait(lower);
        }
        self.least[upper] <= self.greatest[upper] && self.least[lower] <= self.greatest[lower]
    }

    /// Draws all conclusions for what is waiting.
    fn follow(&mut self, work_end: u64) -> Option<bool> {
        while let Some(x) = self.waiting.pop() {
            let x = x as usize;
            self.is_waiting[x] = false;
            let range = self.row[x] as usize..self.row[x + 1] as usize;
            self.work += range.len() as u64;
            if self.work > work_end {
                self.stop();
                return None;
            }
            for index in range {
                let at = self.of[index] as usize;
                let pair = &self.pairs[at];
                let mut fits = true;
                if pair.order == Order::Open {
                    let can_below = self.least[pair.x] + pair.below <= self.greatest[pair.y];
                    let can_above = self.least[pair.y] + pair.above <= self.greatest[pair.x];
                    let order = match (can_below, can_above) {
                        (true, true) => continue,
                        (_, false) => Order::Below,
                        (false, true) => Order::Above,
                    };
                    fits = (can_below || can_above) && self.set(at, order);
                }
                if !fits || !self.keep(at) {
                    self.weight[at] += 1;
                    self.stop();
                    return Some(false);
                }
            }
        }
        Some(true)
    }
}
