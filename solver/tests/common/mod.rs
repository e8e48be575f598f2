//! Exhaustive search for small problems, which shares nothing with the planners, for all test files.

// Each test file is a program of its own and uses some of these.
#![allow(dead_code)]

use arenaplan_solver::{Buffer, Error, Problem};

/// Per buffer, its conflicts as `(other, below, above)`.
pub(crate) type Rows = Vec<Vec<(usize, u64, u64)>>;

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
        offset + below <= at || at + above <= offset
    })
}

/// The best height by brute force: a best placement can be pushed down, and then each buffer is at
/// the lowest offset allowed by those before it in some order. All orders are tried.
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

/// Whether fixed offsets contradict each other or their alignment, so that there is no placement.
pub(crate) fn is_contradiction(error: &Error) -> bool {
    matches!(
        error,
        Error::FixedConflict { .. } | Error::FixedMisaligned { .. }
    )
}
