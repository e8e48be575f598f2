//! Which operators come before and after which in every order: a row of bits each.

use super::task::{Step, Task};

/// A square of bits: row `k` has a bit for each operator that is related to `k`.
pub(super) struct Rows {
    words: usize,
    bits: Vec<u64>,
}

impl Rows {
    fn new(n: usize) -> Self {
        let words = n.div_ceil(64);
        Self {
            words,
            bits: vec![0; words * n],
        }
    }

    /// Row `k`, 64 operators a word.
    pub(super) fn row(&self, k: u32) -> &[u64] {
        &self.bits[k as usize * self.words..][..self.words]
    }

    /// Whether the bit for `other` is set in row `k`.
    pub(super) fn has(&self, k: u32, other: u32) -> bool {
        has(self.row(k), other)
    }

    /// Adds `other` and all of its row to row `k`.
    fn absorb(&mut self, k: u32, other: u32) {
        let (to, from) = (k as usize * self.words, other as usize * self.words);
        for w in 0..self.words {
            self.bits[to + w] |= self.bits[from + w];
        }
        set(&mut self.bits[to..to + self.words], other);
    }
}

/// Whether a row has the bit for `k`.
pub(super) fn has(row: &[u64], k: u32) -> bool {
    row[k as usize / 64] >> (k % 64) & 1 == 1
}

/// Sets the bit for `k`.
pub(super) fn set(row: &mut [u64], k: u32) {
    row[k as usize / 64] |= 1 << (k % 64);
}

/// Clears the bit for `k`.
pub(super) fn clear(row: &mut [u64], k: u32) {
    row[k as usize / 64] &= !(1 << (k % 64));
}

/// For each operator, those that come before it in every order, and those that come after.
pub(super) struct Reach {
    /// What must have run.
    pub(super) ancestors: Rows,
    /// What cannot have run.
    pub(super) descendants: Rows,
}

impl Reach {
    pub(super) fn of(task: &Task) -> Self {
        let n = task.len();
        let (mut ancestors, mut descendants) = (Rows::new(n), Rows::new(n));
        for k in 0..n as u32 {
            for &p in &task.steps()[k as usize].after {
                ancestors.absorb(k, p);
            }
        }
        for k in (0..n as u32).rev() {
            for &s in task.before(k) {
                descendants.absorb(k, s);
            }
        }
        Self {
            ancestors,
            descendants,
        }
    }
}

/// A number of bytes that the peak of no order is below.
///
/// Alive at an operator in every order is what it touches, and what an ancestor of it (or the start) has touched that a
/// descendant (or the end) still needs.
pub(super) fn least_peak(task: &Task, reach: &Reach) -> u64 {
    let n = task.len();
    let words = n.div_ceil(64);
    let base = task.base();
    let mut forced: Vec<u64> = task.steps().iter().map(|s| base + s.extra_bytes).collect();
    let mut end = base;
    let (mut begun, mut needed) = (vec![0u64; words], vec![0u64; words]);
    for (o, object) in (0u32..).zip(task.objects()) {
        begun.fill(if object.at_start { u64::MAX } else { 0 });
        needed.fill(if object.at_end { u64::MAX } else { 0 });
        for &t in task.touched_by(o) {
            for (w, (b, a)) in begun.iter_mut().zip(&mut needed).enumerate() {
                *b |= reach.descendants.row(t)[w];
                *a |= reach.ancestors.row(t)[w];
            }
        }
        for &t in task.touched_by(o) {
            set(&mut begun, t);
            set(&mut needed, t);
        }
        for (w, (b, a)) in begun.iter().zip(&needed).enumerate() {
            let mut both = b & a;
            while both != 0 {
                let k = w * 64 + both.trailing_zeros() as usize;
                both &= both - 1;
                if let Some(sum) = forced.get_mut(k) {
                    *sum += object.bytes;
                }
            }
        }
        if object.at_end {
            end += object.bytes;
        }
    }
    let start = task.start().0;
    let saved = task.steps().iter().map(Step::possible_saving);
    let forced = forced.into_iter().zip(saved);
    let forced = forced.map(|(sum, saved)| sum.saturating_sub(saved));
    forced.fold(start.max(end), u64::max)
}
