//! Lower bounds on the height of any placement.
//!
//! The liveness bound: what is alive at one point in time lies in one stack, if each two of them
//! are in conflict. Sorted by offset, each buffer is at least the separation above the one below
//! it, and separations that are no multiple of what all alignments share are rounded up:
//! ```text
//! height >= sum of step[x] over all x of the stack but the top one + size[top]
//! step[x] = the least separation of x below another one of the stack, rounded up, but not
//!           above the rounded size
//! ```
//! The top one is whichever makes this least. With the sizes as separations and no alignment it is
//! the sum of the sizes.

use crate::canonical;
use crate::instance::{Instance, NONE, gcd};
use crate::problem::{Lifetime, overlapping_pairs};

/// How many conflicts may be looked at to find the point in time with the highest bound. Points
/// are tried by descending bytes alive, so the rest is unlikely to give more.
const WORK: usize = 1 << 24;

/// The bound in units. Valid for each problem whose fixed offsets do not contradict its conflicts.
pub(crate) fn lower_bound(instance: &Instance) -> u64 {
    let instance = &*instance.relaxed();
    let n = instance.len();
    // One buffer, where it is fixed; two buffers that conflict.
    let mut best = 0;
    for x in 0..n {
        let offset = if instance.is_free(x) {
            0
        } else {
            instance.fixed[x]
        };
        best = best.max(offset + instance.size[x]);
        for (y, below, above) in instance.conflicts(x) {
            let [over_x, over_y] = [below, above].map(|distance| distance as u64);
            best = best.max((over_x + instance.size[y]).min(over_y + instance.size[x]));
        }
    }
    let mut bounder = Bounder::new(instance);
    let mut work = 0;
    for (most, time) in bounder.points() {
        if most <= u128::from(best) || work > WORK {
            break;
        }
        let (bound, seen) = bounder.at(time);
        best = best.max(bound);
        work += seen;
    }
    best
}

/// Whether any two buffers whose lifetimes overlap are in conflict.
pub(crate) fn all_overlaps_conflict(instance: &Instance) -> bool {
    let lifetime = |x: usize| Lifetime::new(instance.first[x], instance.last[x]);
    let mut seen = vec![usize::MAX; instance.len()];
    let mut conflicts = 0u64;
    for x in 0..instance.len() {
        for &y in instance.neighbours(x) {
            let y = y as usize;
            if seen[y] != x {
                seen[y] = x;
                conflicts += u64::from(lifetime(x).overlaps(lifetime(y)));
            }
        }
    }
    conflicts == 2 * overlapping_pairs((0..instance.len()).map(lifetime))
}

struct Bounder<'a> {
    instance: &'a Instance,
    /// What every possible offset of a buffer is a multiple of.
    grid: Vec<u64>,
    /// Whether all buffers alive at once are in conflict and may share nothing.
    complete: bool,
    /// If not: the place of each buffer in an order that does not depend on the problem's own.
    rank: Vec<u32>,
    /// Per buffer: with how many of the chosen ones it is in conflict.
    hits: Vec<u32>,
    /// Per buffer: the last round in which it was counted.
    stamp: Vec<u32>,
    rounds: u32,
}

impl<'a> Bounder<'a> {
    fn new(instance: &'a Instance) -> Self {
        let n = instance.len();
        let grid = (0..n).map(|x| match instance.fixed[x] {
            NONE => instance.align[x],
            offset => gcd(instance.align[x], offset),
        });
        let mut bounder = Self {
            instance,
            grid: grid.collect(),
            complete: false,
            rank: Vec::new(),
            hits: vec![0; n],
            stamp: vec![0; n],
            rounds: 0,
        };
        bounder.complete = instance.is_plain() && all_overlaps_conflict(instance);
        if !bounder.complete {
            bounder.rank = vec![0; n];
            for (rank, x) in (0..).zip(canonical::order(instance)) {
                bounder.rank[x as usize] = rank;
            }
        }
        bounder
    }

    fn lifetime(&self, x: usize) -> Lifetime {
        Lifetime::new(self.instance.first[x], self.instance.last[x])
    }

    fn step(&self, separation: u64, grid: u64) -> u64 {
        if grid <= 1 {
            separation
        } else {
            separation.next_multiple_of(grid)
        }
    }

    /// The points in time at which something starts, each with an upper limit of its bound, by
    /// descending limit.
    fn points(&self) -> Vec<(u128, i32)> {
        let n = self.instance.len();
        let mut events: Vec<(i32, bool, u64)> = Vec::with_capacity(2 * n);
        for x in (0..n).filter(|&x| self.instance.first[x] <= self.instance.last[x]) {
            let most = self.step(self.instance.size[x], self.grid[x]);
            events.push((self.instance.first[x], false, most));
            events.push((self.instance.last[x], true, most));
        }
        events.sort_unstable(); // at one point in time: starts before ends
        let mut alive = 0u128;
        let mut points: Vec<(u128, i32)> = Vec::new();
        for (index, &(time, ends, most)) in events.iter().enumerate() {
            if ends {
                alive -= u128::from(most);
                continue;
            }
            alive += u128::from(most);
            // Only the last start before an end: the set before it is part of this one.
            if events.get(index + 1).is_some_and(|next| next.1) {
                points.push((alive, time));
            }
        }
        points.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        points
    }

    /// The bound of one point in time, and how much was looked at.
    fn at(&mut self, time: i32) -> (u64, usize) {
        let now = Lifetime::new(time, time);
        let n = self.instance.len();
        let alive: Vec<usize> = (0..n).filter(|&x| self.lifetime(x).overlaps(now)).collect();
        if self.complete {
            return (self.stack(&alive, |x| self.instance.size[x]), n);
        }
        let (clique, seen) = self.clique(alive);
        let mut inside = vec![false; n];
        for &x in &clique {
            inside[x] = true;
        }
        let least_below = |x: usize| {
            let others = self.instance.conflicts(x).filter(|&(y, _, _)| inside[y]);
            others.map(|(_, below, _)| below as u64).min().unwrap_or(0)
        };
        (self.stack(&clique, least_below), n + 2 * seen)
    }

    /// The bound of a set of buffers each two of which are in conflict.
    fn stack(&self, clique: &[usize], least_below: impl Fn(usize) -> u64) -> u64 {
        let grid = clique.iter().fold(0, |grid, &x| gcd(grid, self.grid[x]));
        let (mut sum, mut least_top) = (0u64, i64::MAX);
        for &x in clique {
            let size = self.instance.size[x];
            let step = self.step(least_below(x).min(size), grid);
            sum += step;
            least_top = least_top.min(size as i64 - step as i64);
        }
        if clique.is_empty() {
            0
        } else {
            sum.saturating_add_signed(least_top)
        }
    }

    /// A subset of which each two are in conflict: the largest buffers first, each one that
    /// conflicts with all before it. Also how many conflicts were looked at.
    fn clique(&mut self, mut alive: Vec<usize>) -> (Vec<usize>, usize) {
        alive.sort_by_key(|&x| (core::cmp::Reverse(self.instance.size[x]), self.rank[x]));
        let mut seen = 0;
        let mut clique = Vec::new();
        for &x in &alive {
            if self.hits[x] as usize != clique.len() {
                continue;
            }
            clique.push(x);
            self.rounds += 1;
            for &y in self.instance.neighbours(x) {
                seen += 1;
                let y = y as usize;
                if self.stamp[y] != self.rounds {
                    self.stamp[y] = self.rounds;
                    self.hits[y] += 1;
                }
            }
        }
        self.hits.fill(0);
        (clique, seen)
    }
}
