//! What the search knows of a problem before it starts, as flat arrays.
//!
//! Time is cut at the points where something starts after something ended. The buffers alive at
//! such a point, as far as each two of them conflict, form a *stack*: sorted by offset, each is at
//! least its weight above the one below it, so what is still to be placed there needs a room that
//! is known in advance. The weight is the least separation below another one of the stack, rounded
//! up to what all alignments there share, and at most the rounded size; of the top one the whole
//! size counts, which the stack's `slack` makes up for.

use ::core::cmp::Reverse;

use crate::bound;
use crate::instance::{Instance, NONE, gcd};

/// A conflict of a buffer, seen from that buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) to: u32,
    /// Whether both may have the same offset.
    pub(super) equal: bool,
    /// How far the other one's offset is at least above, if it is above.
    pub(super) below: u64,
    /// How far the other one's offset is at least below, if it is below.
    pub(super) above: u64,
}

/// The arrays. A buffer is its index in the instance; numbers count units.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(super) size: Vec<u64>,
    pub(super) align: Vec<u64>,
    /// The fixed offset or [`NONE`].
    pub(super) fixed: Vec<u64>,
    /// The distance above its offset at which nothing is in conflict with it any more.
    pub(super) reach: Vec<u64>,
    /// Points in time from the first to the last one, as in the problem.
    pub(super) width: Vec<u64>,
    /// The first and last cut of time at which it matters: all its conflicts overlap this span.
    pub(super) first: Vec<u32>,
    pub(super) last: Vec<u32>,
    /// The range of buffers, itself among them, that are like this one in all respects.
    pub(super) twins: Vec<(u32, u32)>,
    /// The number of cuts of time.
    pub(super) cuts: usize,
    /// Per stack: the sum of weights may be this much above the room there is.
    pub(super) slack: Vec<i64>,
    /// Per cut of time: its stacks, which are numbered by cut.
    stacks_at: Vec<u32>,
    edge_row: Vec<u32>,
    edges: Vec<Edge>,
    stack_row: Vec<u32>,
    stacks: Vec<Entry>,
    member_row: Vec<u32>,
    members: Vec<u32>,
    lift_row: Vec<u32>,
    /// Per buffer: the entries of others that weigh less as long as it is not placed.
    lifts: Vec<u32>,
}

/// A buffer in a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) buffer: u32,
    pub(super) stack: u32,
    /// How far the next one in the stack is at least above it.
    pub(super) weight: u64,
    /// The same once all buffers that may be closer than usual are placed.
    pub(super) full: u64,
    /// How many of those there are.
    pub(super) closer: u32,
}

impl Tables {
    pub(super) fn new(instance: &Instance) -> Self {
        let n = instance.len();
        let points = cuts(instance);
        let (first, last) = spans(instance, &points);
        let mut edge_row = vec![0];
        let mut edges = Vec::with_capacity(instance.entries());
        for x in 0..n {
            for (y, below, above) in instance.conflicts(x) {
                edges.push(Edge {
                    to: y as u32,
                    equal: below == 0 || above == 0,
                    below: below as u64,
                    above: above as u64,
                });
            }
            edge_row.push(edges.len() as u32);
        }
        let width = |x: usize| {
            u64::try_from(i64::from(instance.last[x]) - i64::from(instance.first[x]) + 1)
        };
        let mut core = Self {
            size: instance.size.clone(),
            align: instance.align.clone(),
            fixed: instance.fixed.clone(),
            reach: Vec::new(),
            width: (0..n).map(|x| width(x).unwrap_or(0)).collect(),
            first,
            last,
            twins: Vec::new(),
            cuts: points.len(),
            slack: Vec::new(),
            stacks_at: Vec::new(),
            edge_row,
            edges,
            stack_row: Vec::new(),
            stacks: Vec::new(),
            member_row: Vec::new(),
            members: Vec::new(),
            lift_row: Vec::new(),
            lifts: Vec::new(),
        };
        core.reach = (0..n)
            .map(|x| core.edges(x).iter().map(|e| e.below).max().unwrap_or(0))
            .collect();
        core.find_twins();
        core.find_stacks(instance, &points);
        core
    }

    pub(super) fn len(&self) -> usize {
        self.size.len()
    }

    pub(super) fn edges(&self, x: usize) -> &[Edge] {
        &self.edges[self.edge_row[x] as usize..self.edge_row[x + 1] as usize]
    }

    /// The numbers of the entries of a buffer, one per stack.
    pub(super) fn entries(&self, x: usize) -> ::core::ops::Range<usize> {
        self.stack_row[x] as usize..self.stack_row[x + 1] as usize
    }

    /// All entries, by buffer.
    pub(super) fn all_entries(&self) -> &[Entry] {
        &self.stacks
    }

    /// The entries of others that weigh less as long as this buffer is not placed.
    pub(super) fn lifts(&self, x: usize) -> &[u32] {
        &self.lifts[self.lift_row[x] as usize..self.lift_row[x + 1] as usize]
    }

    pub(super) fn members(&self, stack: usize) -> &[u32] {
        &self.members[self.member_row[stack] as usize..self.member_row[stack + 1] as usize]
    }

    /// All stacks at the cuts of time `first..=last`.
    pub(super) fn stacks_between(&self, first: u32, last: u32) -> ::core::ops::Range<usize> {
        self.stacks_at[first as usize] as usize..self.stacks_at[last as usize + 1] as usize
    }

    /// The least offset that is at least `offset` and aligned for `x`.
    pub(super) fn aligned(&self, x: usize, offset: u64) -> u64 {
        match self.align[x] {
            1 => offset,
            align => offset.next_multiple_of(align),
        }
    }

    /// Finds buffers that can be exchanged for each other without any change. Only neighbours are
    /// compared: in the canonical order buffers that are alike are.
    fn find_twins(&mut self) {
        let n = self.len();
        let mut from = 0;
        for x in 1..=n {
            if x == n || !self.are_twins(x - 1, x) {
                self.twins.resize(x, (from as u32, x as u32));
                from = x;
            }
        }
    }

    fn are_twins(&self, x: usize, y: usize) -> bool {
        let alike = self.fixed[x] == NONE
            && self.fixed[y] == NONE
            && self.size[x] == self.size[y]
            && self.align[x] == self.align[y]
            && (self.first[x], self.last[x]) == (self.first[y], self.last[y])
            && self.edges(x).len() == self.edges(y).len();
        if !alike {
            return false;
        }
        // Apart from each other, they see the same buffers at the same distances.
        let others = |x: usize, y: usize| {
            let edges = self.edges(x).iter().filter(|e| e.to as usize != y);
            let mut others: Vec<_> = edges.map(|e| (e.to, e.below, e.above)).collect();
            others.sort_unstable();
            others
        };
        let mut between = self.edges(x).iter().filter(|e| e.to as usize == y);
        between.all(|e| e.below == e.above) && others(x, y) == others(y, x)
    }

    fn find_stacks(&mut self, instance: &Instance, points: &[i32]) {
        let n = self.len();
        let complete = instance.is_plain() && bound::all_overlaps_conflict(instance);
        let mut of: Vec<Vec<Entry>> = vec![Vec::new(); n];
        // Who may be closer than usual: (the one that is, the buffer, its stack).
        let mut closer: Vec<(u32, u32, u32)> = Vec::new();
        let mut inside = vec![u32::MAX; n];
        let mut hits = vec![0u32; n];
        self.member_row.push(0);
        for &point in points {
            self.stacks_at.push(self.slack.len() as u32);
            let mut alive: Vec<u32> = (0..n as u32)
                .filter(|&x| {
                    instance.first[x as usize] <= point && instance.last[x as usize] >= point
                })
                .collect();
            alive.sort_by_key(|&x| (Reverse(self.size[x as usize]), x));
            // What does not fit into the first stack of a point may fit into a second one.
            for _ in 0..2 {
                let (stack, rest) = match complete {
                    true => (alive, Vec::new()),
                    false => self.clique(&alive, &mut hits),
                };
                if stack.is_empty() {
                    break;
                }
                let number = self.slack.len() as u32;
                for &x in &stack {
                    inside[x as usize] = number;
                }
                let grid = stack.iter().fold(0, |grid, &x| {
                    let fixed = Some(self.fixed[x as usize]).filter(|&f| f != NONE);
                    gcd(grid, gcd(self.align[x as usize], fixed.unwrap_or(0)))
                });
                let mut slack = i64::MIN;
                for &x in &stack {
                    let size = self.size[x as usize];
                    let mut entry = Entry {
                        buffer: x,
                        stack: number,
                        weight: size.next_multiple_of(grid),
                        full: size.next_multiple_of(grid),
                        closer: 0,
                    };
                    if !complete {
                        let edges = self.edges(x as usize).iter();
                        for edge in edges.filter(|e| inside[e.to as usize] == number) {
                            let least = edge.below.min(size).next_multiple_of(grid);
                            entry.weight = entry.weight.min(least);
                            if least < entry.full {
                                closer.push((edge.to, x, number));
                                entry.closer += 1;
                            }
                        }
                    }
                    slack = slack.max(entry.full as i64 - size as i64);
                    of[x as usize].push(entry);
                }
                self.slack.push(slack);
                self.members.extend(&stack);
                self.member_row.push(self.members.len() as u32);
                alive = rest;
                if alive.is_empty() {
                    break;
                }
            }
        }
        self.stacks_at.push(self.slack.len() as u32);
        self.stack_row.push(0);
        for entries in of {
            self.stacks.extend(entries);
            self.stack_row.push(self.stacks.len() as u32);
        }
        closer.sort_unstable();
        self.lift_row.push(0);
        let mut next = 0;
        for y in 0..n as u32 {
            while let Some(&(_, x, stack)) = closer.get(next).filter(|c| c.0 == y) {
                let entry = self
                    .entries(x as usize)
                    .find(|&e| self.stacks[e].stack == stack);
                self.lifts.extend(entry.map(|e| e as u32));
                next += 1;
            }
            self.lift_row.push(self.lifts.len() as u32);
        }
    }

    /// Buffers of which each two conflict: each one, in this order, that conflicts with all before
    /// it; and the others.
    fn clique(&self, alive: &[u32], hits: &mut [u32]) -> (Vec<u32>, Vec<u32>) {
        let mut stack: Vec<u32> = Vec::new();
        let mut rest = Vec::new();
        hits.fill(0);
        for &x in alive {
            if hits[x as usize] as usize != stack.len() {
                rest.push(x);
                continue;
            }
            stack.push(x);
            let mut seen: Vec<u32> = self.edges(x as usize).iter().map(|e| e.to).collect();
            seen.sort_unstable();
            seen.dedup();
            for y in seen {
                hits[y as usize] += 1;
            }
        }
        (stack, rest)
    }
}

/// The points in time at which what is alive is not part of what is alive at another point.
fn cuts(instance: &Instance) -> Vec<i32> {
    let n = instance.len();
    let mut events: Vec<(i32, bool)> = Vec::with_capacity(2 * n);
    for x in (0..n).filter(|&x| instance.first[x] <= instance.last[x]) {
        events.push((instance.first[x], false));
        events.push((instance.last[x], true));
    }
    events.sort_unstable(); // at one point in time: starts before ends
    let mut points: Vec<i32> = Vec::new();
    for (index, &(time, ends)) in events.iter().enumerate() {
        if !ends && events.get(index + 1).is_some_and(|next| next.1) {
            points.push(time);
        }
    }
    if points.is_empty() {
        points.push(0);
    }
    points
}

/// The cuts at which each buffer is alive, made longer where a conflict needs it: so that buffers
/// in conflict have a cut in common.
fn spans(instance: &Instance, points: &[i32]) -> (Vec<u32>, Vec<u32>) {
    let n = instance.len();
    let end = points.len() as u32 - 1;
    let mut first: Vec<u32> = Vec::with_capacity(n);
    let mut last: Vec<u32> = Vec::with_capacity(n);
    for x in 0..n {
        let from = points.partition_point(|&p| p < instance.first[x]) as u32;
        let until = points.partition_point(|&p| p <= instance.last[x]) as u32;
        first.push(from.min(end));
        last.push(until.saturating_sub(1).clamp(from.min(end), end));
    }
    for (x, last) in last.iter_mut().enumerate() {
        let others = instance.neighbours(x).iter().map(|&y| first[y as usize]);
        *last = others.fold(*last, u32::max);
    }
    (first, last)
}
