//! Where a buffer may go among those that are placed already.
//!
//! A conflict with a placed buffer `y` forbids the offsets strictly between
//! `offset[y] - below` and `offset[y] + above`:
//! ```text
//!            lo                 hi
//!  ..allowed |xxxxx forbidden xx| allowed..        lo = offset[y] - below, hi = offset[y] + above
//! ```
//! Sorted by `lo`, the free gaps show up in one pass.

use crate::instance::Instance;

/// The forbidden ranges of one buffer, kept to reuse the memory.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    ranges: Vec<(i64, i64)>,
}

impl Gaps {
    /// Collects what `placed` neighbours of `x` forbid; `placed` gives an offset or `None`.
    pub(crate) fn collect(
        &mut self,
        instance: &Instance,
        x: usize,
        placed: impl Fn(usize) -> Option<u64>,
    ) {
        self.ranges.clear();
        for (y, below, above) in instance.conflicts(x) {
            // Ranges without an integer inside forbid nothing.
            if below + above > 1
                && let Some(offset) = placed(y)
            {
                // `Problem::validate` keeps all sums far below the range of `i64`.
                let offset = offset as i64;
                self.ranges.push((offset - below, offset + above));
            }
        }
        self.ranges.sort_unstable();
    }

    /// The lowest offset that is allowed.
    pub(crate) fn first_fit(&self, align: u64) -> u64 {
        let mut candidate = 0;
        for &(lo, hi) in &self.ranges {
            if lo >= candidate as i64 {
                break;
            }
            if hi > candidate as i64 {
                candidate = align_up(hi as u64, align);
            }
        }
        candidate
    }

    /// The start of the gap with the least room to spare, the lowest of equal ones. The room above
    /// all ranges counts as a gap that ends at `top`, and as the largest one if `size` does not
    /// fit under `top`.
    pub(crate) fn best_fit(&self, size: u64, align: u64, top: u64) -> u64 {
        let mut candidate = 0;
        let mut best: Option<(u64, u64)> = None; // (room to spare, offset)
        for &(lo, hi) in &self.ranges {
            if lo >= candidate as i64 {
                let spare = lo as u64 - candidate;
                if best.is_none_or(|(least, _)| spare < least) {
                    best = Some((spare, candidate));
                }
            }
            if hi > candidate as i64 {
                candidate = align_up(hi as u64, align);
            }
        }
        let spare = top.checked_sub(candidate + size);
        match (best, spare) {
            (Some((least, offset)), Some(spare)) if least <= spare => offset,
            (Some((_, offset)), None) => offset,
            _ => candidate,
        }
    }
}

/// `value` rounded up to a multiple of `align`.
pub(crate) fn align_up(value: u64, align: u64) -> u64 {
    if align == 1 {
        value
    } else {
        value.next_multiple_of(align)
    }
}
