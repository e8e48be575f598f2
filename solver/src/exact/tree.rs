//! The search tree: can a set of buffers be placed below a capacity?
//!
//! Buffers are placed from the bottom up. A buffer's *earliest* offset is what those placed so far
//! leave it; the next one is whichever has the least, ties by the order of the group. It is placed
//! there, and if that fails it is *postponed*: its offset must be higher, so another buffer must
//! come under it first, and its *floor* is the least top of those that could. (Le Pape et al.,
//! "Time-versus-capacity compromises in project scheduling", 1994, branch like this on start
//! times.) Every placement that cannot be pushed down is found in this way, and only once.
//!
//! What prunes:
//! - a floor above the last offset at which the buffer ends within the capacity;
//! - a stack whose lowest floor plus what is still to be placed is above the capacity;
//! - a postponed buffer that would not have been in the way of anything placed since;
//! - a buffer that nothing can be placed on any more: if the rest fails, it fails without it too;
//! - a state that has failed before (`memo`), and a twin of a buffer that has just failed.
//!
//! After each placement, the cuts of time that no buffer crosses any more split the rest into
//! groups, solved one by one: if one fails, the others need not be tried again.

use super::memo::{Key, Memo};
use super::order::Order;
use super::tables::Tables;
use crate::instance::NONE;
use crate::solve::Deadline;

/// What came of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Everything is placed.
    Yes,
    /// There is no placement.
    No,
    /// A limit was reached.
    Unknown,
}

/// What is known of a buffer in a state.
#[derive(Clone, Copy, Debug)]
struct State {
    /// The least offset that those placed so far leave it; its offset once it is placed.
    est: u64,
    /// No placement that is still to be tried has it below this.
    floor: u64,
    /// If it is not placed at `est`, then not below this; 0 if that says nothing.
    pending: u64,
    /// The buffer that gives a postponed one its floor, and how far above it that is.
    support: u32,
    lift: u64,
    postponed: bool,
    placed: bool,
}

/// A group of buffers that is being placed.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Where its buffers are in `groups`.
    from: usize,
    to: usize,
    /// The lengths of `log` and `trail` before it.
    log: usize,
    trail: usize,
    key: Key,
    /// The buffer being tried, and the lengths of `log` and `trail` before it was placed.
    choice: u32,
    choice_log: usize,
    choice_trail: usize,
    /// Whether something may be placed on the choice.
    carries: bool,
    /// The length of `groups` before what follows from it.
    groups: usize,
    /// Where the groups that are left after the choice are in `parts`, and which is next.
    parts: usize,
    parts_end: usize,
    next: usize,
}

/// How much may be looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    pub(super) nodes: u64,
    /// Conflicts and buffers looked at.
    pub(super) work: u64,
    pub(super) deadline: Deadline,
}

/// Conflicts and buffers looked at before the clock is read again.
const WORK_PER_LOOK: u64 = 1 << 20;

/// The search, with room to work in that is used again from run to run.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    core: &'a Tables,
    capacity: u64,
    states: Vec<State>,
    /// Per buffer: the last offset at which it is within the capacity.
    latest: Vec<u64>,
    /// Per stack: the weights of its buffers that are not placed.
    left: Vec<u64>,
    /// Per entry: how many buffers not placed may be closer than usual.
    closer: Vec<u32>,
    /// Per stack: the buffer that showed last that the rest may fit.
    witness: Vec<u32>,
    /// Per cut of time but the last: buffers not placed that are alive there and at the next one.
    crossing: Vec<u32>,
    log: Vec<(u32, State)>,
    trail: Vec<u32>,
    groups: Vec<u32>,
    parts: Vec<(usize, usize)>,
    frames: Vec<Frame>,
    pub(super) memo: Memo,
    pub(super) nodes: u64,
    pub(super) work: u64,
}

impl<'a> Tree<'a> {
    pub(super) fn new(core: &'a Tables) -> Self {
        let n = core.len();
        let state = State {
            est: 0,
            floor: 0,
            pending: 0,
            support: 0,
            lift: 0,
            postponed: false,
            placed: false,
        };
        let mut states = vec![state; n];
        for (state, &fixed) in states.iter_mut().zip(&core.fixed) {
            if fixed != NONE {
                (state.est, state.floor) = (fixed, fixed);
            }
        }
        let mut tree = Self {
            core,
            capacity: 0,
            states,
            latest: vec![0; n],
            left: vec![0; core.slack.len()],
            closer: core.all_entries().iter().map(|e| e.closer).collect(),
            witness: vec![0; core.slack.len()],
            crossing: vec![0; core.cuts],
            log: Vec::new(),
            trail: Vec::new(),
            groups: Vec::new(),
            parts: Vec::new(),
            frames: Vec::new(),
            memo: Memo::default(),
            nodes: 0,
            work: 0,
        };
        for x in 0..n {
            for entry in core.entries(x) {
                tree.left[core.all_entries()[entry].stack as usize] += tree.weight(entry);
            }
            for cut in core.first[x]..core.last[x] {
                tree.crossing[cut as usize] += 1;
            }
        }
        for stack in 0..core.slack.len() {
            tree.witness[stack] = core.members(stack)[0];
        }
        tree
    }

    /// The offsets found by the last run that answered yes.
    pub(super) fn offsets(&self) -> Vec<u64> {
        self.states.iter().map(|s| s.est).collect()
    }

    /// Whether all buffers fit into `capacity`. Ties are broken by `order`, then by `rank`, which
    /// has one entry per buffer.
    pub(super) fn run(
        &mut self,
        capacity: u64,
        order: Order,
        rank: &[u32],
        allowance: Allowance,
    ) -> Answer {
        self.undo(0, 0);
        self.groups.clear();
        self.parts.clear();
        self.frames.clear();
        self.capacity = capacity;
        for x in 0..self.core.len() {
            let fixed = self.core.fixed[x];
            let Some(latest) = capacity.checked_sub(self.core.size[x]) else {
                return Answer::No;
            };
            if fixed != NONE && fixed > latest {
                return Answer::No;
            }
            self.latest[x] = if fixed == NONE { latest } else { fixed };
        }
        if !self.core.slack.is_empty()
            && !(0..self.core.slack.len()).all(|stack| self.stack_fits(stack))
        {
            return Answer::No;
        }
        if self.core.len() == 0 {
            return Answer::Yes;
        }
        self.groups.extend(0..self.core.len() as u32);
        self.sort(0, self.core.len(), order, rank);
        let nodes_end = self.nodes.saturating_add(allowance.nodes);
        let work_end = self.work.saturating_add(allowance.work);
        let mut next_look = self.work + WORK_PER_LOOK;
        let mut answer = match self.enter(0, self.core.len()) {
            true => Answer::Unknown,
            false => return Answer::No,
        };
        // Invariant: `answer` is what is known of the frame above the top one, or unknown.
        loop {
            let Some(at) = self.frames.len().checked_sub(1) else {
                return answer;
            };
            match answer {
                Answer::Yes => self.frames[at].next += 1,
                Answer::No => {
                    self.take_back(at);
                    let frame = self.frames[at];
                    if !frame.carries || !self.postpone(frame.choice as usize) {
                        self.leave(at);
                        continue; // no
                    }
                    answer = Answer::Unknown;
                }
                Answer::Unknown => {}
            }
            if answer == Answer::Unknown {
                if self.nodes >= nodes_end || self.work >= work_end {
                    return Answer::Unknown;
                }
                if self.work >= next_look {
                    if allowance.deadline.passed() {
                        return Answer::Unknown;
                    }
                    next_look = self.work + WORK_PER_LOOK;
                }
                self.nodes += 1;
                match self.choose(at) {
                    None => {
                        self.leave(at);
                        answer = Answer::No;
                        continue;
                    }
                    Some(x) => {
                        let frame = &mut self.frames[at];
                        frame.choice = x;
                        frame.choice_log = self.log.len();
                        frame.choice_trail = self.trail.len();
                        if !self.place(at, x as usize) {
                            answer = Answer::No;
                            continue;
                        }
                        self.split(at, x, order, rank);
                    }
                }
            }
            // The next group that is left after the choice, if there is one.
            let frame = self.frames[at];
            if frame.next == frame.parts_end {
                self.frames.pop();
                answer = Answer::Yes;
                continue;
            }
            let (from, to) = self.parts[frame.next];
            answer = match self.enter(from, to) {
                true => Answer::Unknown,
                false => Answer::No,
            };
        }
    }

    /// Starts on a group. False if its state has failed before.
    fn enter(&mut self, from: usize, to: usize) -> bool {
        let mut key = Key::default();
        for &x in &self.groups[from..to] {
            let state = &self.states[x as usize];
            key.add(x, state.est, state.pending, state.postponed);
        }
        self.work += (to - from) as u64;
        if self.memo.fails(key, self.capacity) {
            return false;
        }
        self.frames.push(Frame {
            from,
            to,
            log: self.log.len(),
            trail: self.trail.len(),
            key,
            choice: 0,
            choice_log: 0,
            choice_trail: 0,
            carries: true,
            groups: self.groups.len(),
            parts: self.parts.len(),
            parts_end: self.parts.len(),
            next: self.parts.len(),
        });
        true
    }

    /// Gives a group up: it has no placement.
    fn leave(&mut self, at: usize) {
        let frame = self.frames[at];
        self.undo(frame.log, frame.trail);
        self.memo.note(frame.key, self.capacity);
        self.frames.pop();
    }

    /// Takes the choice of a frame back, and all that was placed after it.
    fn take_back(&mut self, at: usize) {
        let frame = self.frames[at];
        self.undo(frame.choice_log, frame.choice_trail);
        self.groups.truncate(frame.groups);
        self.parts.truncate(frame.parts);
        let frame = &mut self.frames[at];
        frame.parts_end = frame.parts;
        frame.next = frame.parts;
    }

    fn undo(&mut self, log: usize, trail: usize) {
        while self.trail.len() > trail {
            let Some(x) = self.trail.pop() else { break };
            let x = x as usize;
            self.states[x].placed = false;
            self.put_into_stacks(x);
            for cut in self.core.first[x]..self.core.last[x] {
                self.crossing[cut as usize] += 1;
            }
        }
        while self.log.len() > log {
            let Some((x, state)) = self.log.pop() else {
                break;
            };
            self.states[x as usize] = state;
        }
    }

    /// The buffer of a group to place next, or `None` if the group has no placement.
    fn choose(&mut self, at: usize) -> Option<u32> {
        let frame = &self.frames[at];
        self.work += (frame.to - frame.from) as u64;
        let mut best = None;
        let mut least = NONE;
        let mut missed = NONE;
        for &x in &self.groups[frame.from..frame.to] {
            let state = &self.states[x as usize];
            if state.postponed {
                // Above this it would not have been in the way of anything.
                missed = missed.min(state.est + self.core.reach[x as usize]);
            } else if state.est < least {
                least = state.est;
                best = Some(x);
            }
        }
        best.filter(|_| least < missed)
    }

    /// Places a buffer at its earliest offset. False if the rest cannot be placed then.
    fn place(&mut self, at: usize, x: usize) -> bool {
        let core = self.core;
        let offset = self.states[x].est;
        self.states[x].placed = true;
        self.trail.push(x as u32);
        self.take_from_stacks(x);
        for cut in core.first[x]..core.last[x] {
            self.crossing[cut as usize] -= 1;
        }
        let (mut first, mut last) = (core.first[x], core.last[x]);
        let mut carries = false;
        let edges = core.edges(x);
        self.work += edges.len() as u64;
        for edge in edges {
            let y = edge.to as usize;
            let state = self.states[y];
            if state.placed {
                continue;
            }
            carries |= edge.below > 0;
            let above = core.aligned(y, offset + edge.below);
            if above <= state.est {
                continue;
            }
            first = first.min(core.first[y]);
            last = last.max(core.last[y]);
            let at_offset = edge.equal
                && core.aligned(y, offset) == offset
                && (state.est < offset || (state.est == offset && !state.postponed));
            if at_offset {
                // It may still be placed at the same offset, but not between.
                self.log.push((y as u32, state));
                let new = &mut self.states[y];
                if state.est < offset {
                    new.est = offset;
                    new.floor = new.floor.max(offset);
                    new.postponed = false;
                }
                new.pending = new.pending.max(above);
                if offset > self.latest[y] {
                    self.frames[at].carries = true;
                    return false;
                }
            } else if !self.raise(y, above) {
                self.frames[at].carries = true;
                return false;
            }
        }
        self.frames[at].carries = carries;
        // Postponed buffers whose support has been placed, or has risen.
        let (from, to) = (self.frames[at].from, self.frames[at].to);
        for index in from..to {
            let y = self.groups[index] as usize;
            let state = self.states[y];
            if !state.postponed || state.placed {
                continue;
            }
            let support = &self.states[state.support as usize];
            if !support.placed && core.aligned(y, support.floor + state.lift) <= state.floor {
                continue;
            }
            let (floor, support, lift) = self.floor_of(y);
            if floor > self.latest[y] {
                return false;
            }
            self.log.push((y as u32, state));
            let new = &mut self.states[y];
            (new.support, new.lift) = (support, lift);
            if floor > state.floor {
                new.floor = floor;
                first = first.min(core.first[y]);
                last = last.max(core.last[y]);
            }
        }
        core.stacks_between(first, last)
            .all(|stack| self.stack_fits(stack))
    }

    /// What an entry weighs now.
    fn weight(&self, entry: usize) -> u64 {
        let known = &self.core.all_entries()[entry];
        match self.closer[entry] {
            0 => known.full,
            _ => known.weight,
        }
    }

    /// Counts a buffer that has just been placed out of its stacks.
    fn take_from_stacks(&mut self, x: usize) {
        let core = self.core;
        for entry in core.entries(x) {
            self.left[core.all_entries()[entry].stack as usize] -= self.weight(entry);
        }
        for &entry in core.lifts(x) {
            let known = &core.all_entries()[entry as usize];
            self.closer[entry as usize] -= 1;
            if self.closer[entry as usize] == 0 && !self.states[known.buffer as usize].placed {
                self.left[known.stack as usize] += known.full - known.weight;
            }
        }
    }

    /// The reverse, in the reverse order.
    fn put_into_stacks(&mut self, x: usize) {
        let core = self.core;
        for &entry in core.lifts(x) {
            let known = &core.all_entries()[entry as usize];
            if self.closer[entry as usize] == 0 && !self.states[known.buffer as usize].placed {
                self.left[known.stack as usize] -= known.full - known.weight;
            }
            self.closer[entry as usize] += 1;
        }
        for entry in core.entries(x) {
            self.left[core.all_entries()[entry].stack as usize] += self.weight(entry);
        }
    }

    /// Raises the earliest offset of a buffer. False if it is above the latest one.
    fn raise(&mut self, y: usize, est: u64) -> bool {
        let old = self.states[y];
        let est = est.max(old.pending);
        if est > self.latest[y] {
            return false;
        }
        self.log.push((y as u32, old));
        let new = &mut self.states[y];
        new.est = est;
        new.floor = new.floor.max(est);
        new.pending = 0;
        new.postponed = false;
        true
    }

    /// The least offset a postponed buffer can have, what it lies on then and how far above that:
    /// [`NONE`] if there is nothing for it to lie on.
    fn floor_of(&mut self, y: usize) -> (u64, u32, u64) {
        let edges = self.core.edges(y);
        self.work += edges.len() as u64;
        let mut best = (NONE, 0, 0);
        for edge in edges {
            let below = &self.states[edge.to as usize];
            if !below.placed && below.floor + edge.above < best.0 {
                best = (below.floor + edge.above, edge.to, edge.above);
            }
        }
        if best.0 != NONE {
            best.0 = self.core.aligned(y, best.0);
        }
        best
    }

    /// Excludes that the buffer that has just been taken back is at its earliest offset, and its
    /// twins. False if the group has no placement then.
    fn postpone(&mut self, x: usize) -> bool {
        let core = self.core;
        let state = self.states[x];
        if core.fixed[x] != NONE {
            return false;
        }
        if state.pending > 0 {
            return self.raise(x, state.pending)
                && core
                    .stacks_between(core.first[x], core.last[x])
                    .all(|stack| self.stack_fits(stack));
        }
        let (from, to) = core.twins[x];
        for y in from..to {
            let y = y as usize;
            let twin = self.states[y];
            if twin.placed || twin.postponed || twin.est != state.est || twin.pending > 0 {
                continue;
            }
            let (floor, support, lift) = self.floor_of(y);
            let floor = floor.max(core.aligned(y, twin.est + 1));
            if floor > self.latest[y] {
                return false;
            }
            self.log.push((y as u32, twin));
            let new = &mut self.states[y];
            (new.floor, new.support, new.lift) = (floor, support, lift);
            new.postponed = true;
        }
        core.stacks_between(core.first[x], core.last[x])
            .all(|stack| self.stack_fits(stack))
    }

    /// Whether what is left of a stack may fit above its lowest floor.
    fn stack_fits(&mut self, stack: usize) -> bool {
        let left = self.left[stack];
        if left == 0 {
            return true;
        }
        let room = self.capacity as i64 + self.core.slack[stack] - left as i64;
        let fits = |x: u32| {
            let state = &self.states[x as usize];
            !state.placed && state.floor as i64 <= room
        };
        if fits(self.witness[stack]) {
            return true;
        }
        self.work += self.core.members(stack).len() as u64;
        match self.core.members(stack).iter().find(|&&x| fits(x)) {
            Some(&x) => {
                self.witness[stack] = x;
                true
            }
            None => false,
        }
    }

    /// Notes the groups that are left of a group after a buffer has been placed, the smallest
    /// first.
    fn split(&mut self, at: usize, x: u32, order: Order, rank: &[u32]) {
        let core = self.core;
        let (from, to) = (self.frames[at].from, self.frames[at].to);
        let span = core.first[x as usize]..core.last[x as usize];
        let mut start = 0;
        let parts = self.parts.len();
        for cut in span
            .filter(|&cut| self.crossing[cut as usize] == 0)
            .chain([u32::MAX])
        {
            let begin = self.groups.len();
            for index in from..to {
                let y = self.groups[index];
                let first = core.first[y as usize];
                if y != x && start <= first && first <= cut {
                    self.groups.push(y);
                }
            }
            start = cut.wrapping_add(1);
            if self.groups.len() > begin {
                self.parts.push((begin, self.groups.len()));
            }
        }
        self.work += (to - from) as u64;
        if self.parts.len() > parts + 1 {
            for index in parts..self.parts.len() {
                let (begin, end) = self.parts[index];
                self.sort(begin, end, order, rank);
            }
            self.parts[parts..].sort_by_key(|&(begin, end)| end - begin);
        }
        self.frames[at].parts_end = self.parts.len();
    }

    /// Sorts a group by an order, ties by rank.
    fn sort(&mut self, from: usize, to: usize, order: Order, rank: &[u32]) {
        let core = self.core;
        let states = &self.states;
        let left = &self.left;
        let key = |&x: &u32| {
            let x = x as usize;
            (order.key(core, x, left, |y| !states[y].placed), rank[x])
        };
        self.groups[from..to].sort_by_cached_key(key);
    }
}
