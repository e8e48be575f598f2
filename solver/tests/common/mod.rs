//! Exhaustive searches for small problems, which share nothing with the planners, for all test
//! files.

// Each test file is a program of its own and uses some of these.
#![allow(dead_code)]

pub(crate) mod random;

use arenaplan_solver::{Buffer, Error, Problem};

/// Per buffer, its conflicts as `(other, below, above)`.
pub(crate) type Rows = Vec<Vec<(usize, i64, i64)>>;

/// The conflicts of each buffer.
pub(crate) fn rows(problem: &Problem) -> Rows {
    let mut rows = vec![Vec::new(); problem.len()];
    for (a, b, conflict) in problem.conflicts() {
        rows[a.index()].push((b.index(), conflict.a_below_b, conflict.b_below_a));
        rows[b.index()].push((a.index(), conflict.b_below_a, conflict.a_below_b));
    }
    rows
}

/// Whether `x` at `offset` keeps all its conflicts with buffers that have an offset.
pub(crate) fn allowed(rows: &Rows, x: usize, offset: u64, offsets: &[Option<u64>]) -> bool {
    rows[x].iter().all(|&(other, below, above)| {
        let Some(at) = offsets[other] else {
            return true;
        };
        let (offset, at) = (offset as i64, at as i64);
        offset + below <= at || at + above <= offset
    })
}

/// The best height by brute force: a best placement can be pushed down, and then each buffer is at
/// the lowest offset allowed by those before it in some order. All orders are tried. Not for
/// problems that are [`is_circular`].
pub(crate) fn best_height(problem: &Problem) -> u64 {
    struct All {
        buffers: Vec<Buffer>,
        rows: Rows,
        offsets: Vec<Option<u64>>,
        best: u64,
    }
    impl All {
        fn go(&mut self, height: u64) {
            if height >= self.best {
                return;
            }
            if self.offsets.iter().all(Option::is_some) {
                self.best = height;
                return;
            }
            for x in 0..self.buffers.len() {
                if self.offsets[x].is_none() {
                    let buffer = self.buffers[x];
                    let mut lowest = 0;
                    while !allowed(&self.rows, x, lowest, &self.offsets) {
                        lowest += buffer.align;
                    }
                    self.offsets[x] = Some(lowest);
                    self.go(height.max(lowest + buffer.size));
                    self.offsets[x] = None;
                }
            }
        }
    }
    let buffers: Vec<Buffer> = problem.buffers().map(|(_, b)| *b).collect();
    let offsets = buffers.iter().map(|b| b.fixed).collect();
    let fixed = buffers
        .iter()
        .filter_map(|b| b.fixed.map(|f| f + b.size))
        .max();
    let mut all = All {
        buffers,
        rows: rows(problem),
        offsets,
        best: u64::MAX,
    };
    all.go(fixed.unwrap_or(0));
    all.best
}

/// The best height by branch and bound over which of two buffers in conflict is the lower one, or
/// `None` if fixed offsets contradict each other or their alignment. Each such choice is an arc;
/// the least offsets that keep all arcs so far are a placement once they keep every conflict.
/// Faster than [`best_height`], shares nothing with it, and holds for every problem.
pub(crate) fn lowest_height(problem: &Problem) -> Option<u64> {
    let mut sides = Sides {
        buffers: problem.buffers().map(|(_, b)| *b).collect(),
        conflicts: Vec::new(),
        arcs: Vec::new(),
        best: 1,
    };
    let mut reach: Vec<u64> = sides.buffers.iter().map(|b| b.size).collect();
    for (a, b, conflict) in problem.conflicts() {
        let (a, b) = (a.index(), b.index());
        sides
            .conflicts
            .push([(a, b, conflict.a_below_b), (b, a, conflict.b_below_a)]);
        reach[a] = reach[a].max(conflict.a_below_b.max(0) as u64);
        reach[b] = reach[b].max(conflict.b_below_a.max(0) as u64);
    }
    // Everything on top of each other, above the highest fixed one.
    let top = |(b, reach): (&Buffer, &u64)| b.fixed.map(|fixed| fixed + reach);
    sides.best += sides
        .buffers
        .iter()
        .zip(&reach)
        .filter_map(top)
        .max()
        .unwrap_or(0);
    for (buffer, reach) in sides.buffers.iter().zip(&reach) {
        sides.best += buffer.align + reach;
        if buffer.fixed.is_some_and(|fixed| fixed % buffer.align != 0) {
            return None;
        }
    }
    let hopeless = sides.best;
    let offsets: Vec<u64> = sides.buffers.iter().map(|b| b.fixed.unwrap_or(0)).collect();
    sides.go(&offsets);
    (sides.best < hopeless).then_some(sides.best)
}

/// `offset[.0] + .2 <= offset[.1]`
type Arc = (usize, usize, i64);

struct Sides {
    buffers: Vec<Buffer>,
    conflicts: Vec<[Arc; 2]>,
    arcs: Vec<Arc>,
    best: u64,
}

impl Sides {
    /// Tries all sides of the conflicts that `offsets`, the least that keep the arcs, do not keep.
    fn go(&mut self, offsets: &[u64]) {
        let height = offsets
            .iter()
            .zip(&self.buffers)
            .map(|(o, b)| o + b.size)
            .max();
        let height = height.unwrap_or(0);
        if height >= self.best {
            return;
        }
        let at = |x: usize| offsets[x] as i64;
        let lacks = |&(a, b, least): &Arc| (at(a) + least - at(b)).max(0);
        let open = |sides: &&[Arc; 2]| sides.iter().all(|arc| lacks(arc) > 0);
        // The one that costs most whichever side it takes.
        let cost = |sides: &&[Arc; 2]| sides.iter().map(lacks).min();
        let Some(&(mut sides)) = self.conflicts.iter().filter(open).max_by_key(cost) else {
            self.best = height;
            return;
        };
        sides.sort_by_key(lacks);
        for arc in sides {
            self.arcs.push(arc);
            let mut next = offsets.to_vec();
            if self.settle(&mut next) {
                self.go(&next);
            }
            self.arcs.pop();
        }
    }

    /// Raises offsets until all arcs are kept. False if that is no lower than the best known.
    fn settle(&self, offsets: &mut [u64]) -> bool {
        let mut moved = true;
        while moved {
            moved = false;
            for &(a, b, least) in &self.arcs {
                let buffer = self.buffers[b];
                let least = (offsets[a] as i64 + least).max(0) as u64;
                let offset = least.next_multiple_of(buffer.align);
                if offset > offsets[b] {
                    if buffer.fixed.is_some() || offset + buffer.size >= self.best {
                        return false;
                    }
                    offsets[b] = offset;
                    moved = true;
                }
            }
        }
        true
    }
}

/// Whether some buffers of different alignments are in a circle in which each may be at the offset
/// of the next one, but not above it: then one may lie higher than what is below it demands, at the
/// offset of another one that is aligned.
pub(crate) fn is_circular(problem: &Problem) -> bool {
    let n = problem.len();
    let mut reaches = vec![vec![false; n]; n];
    for (a, b, conflict) in problem.conflicts() {
        let (a, b) = (a.index(), b.index());
        reaches[a][b] |= conflict.a_below_b == 0 && conflict.b_below_a > 0;
        reaches[b][a] |= conflict.b_below_a == 0 && conflict.a_below_b > 0;
    }
    for via in 0..n {
        for a in 0..n {
            for b in 0..n {
                reaches[a][b] |= reaches[a][via] && reaches[via][b];
            }
        }
    }
    let align: Vec<u64> = problem.buffers().map(|(_, b)| b.align).collect();
    let circle = |a: usize, b: usize| reaches[a][b] && reaches[b][a] && align[a] != align[b];
    (0..n).any(|a| (0..a).any(|b| circle(a, b)))
}

/// Whether fixed offsets contradict each other or their alignment, so that there is no placement.
pub(crate) fn is_contradiction(error: &Error) -> bool {
    matches!(
        error,
        Error::FixedConflict { .. } | Error::FixedMisaligned { .. }
    )
}
