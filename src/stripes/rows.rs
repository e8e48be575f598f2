//! Row arithmetic: which rows come out of a layer that is fed some rows of its input.
//!
//! The layer keeps its options, so that a SAME layer pads what it is given at the top and at the bottom although these may
//! be no borders of the image. Rows next to such a cut come out wrong; they ride along, and what is *right* is tracked.
//!
//! ```text
//! rows of the whole input    0 ....... p [ given ] q ....... rows_in
//! rows of the whole output        first [ wrong | right | wrong ] end
//! ```

/// Rows of a tensor, counted in the whole: `first..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rows {
    /// The first row.
    pub first: i64,
    /// The row behind the last one.
    pub end: i64,
}

impl Rows {
    /// The rows `first..end`.
    pub fn new(first: i64, end: i64) -> Self {
        Self { first, end }
    }

    /// How many.
    pub fn count(self) -> i64 {
        self.end - self.first
    }

    /// Whether all of `other` is among them.
    pub fn contain(self, other: Self) -> bool {
        self.first <= other.first && other.end <= self.end
    }

    /// The least range with both.
    pub(crate) fn hull(self, other: Self) -> Self {
        Self::new(self.first.min(other.first), self.end.max(other.end))
    }

    /// What both have; it may be less than nothing.
    pub(crate) fn common(self, other: Self) -> Self {
        Self::new(self.first.max(other.first), self.end.min(other.end))
    }
}

/// Rows that are there, and those among them that hold what the whole layer would compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// All rows.
    pub rows: Rows,
    /// The right ones.
    pub right: Rows,
}

impl Given {
    /// Rows that are all right.
    pub fn right(rows: Rows) -> Self {
        Self { rows, right: rows }
    }
}

/// A layer that computes each output row from a window of input rows: convolutions and pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Input rows from the first to the last tap of one output row, both included.
    pub extent: i64,
    /// Input rows from one output row to the next.
    pub stride: i64,
    /// Whether the padding is SAME.
    pub same: bool,
    /// Rows of the input.
    pub rows_in: i64,
    /// Rows of the output.
    pub rows_out: i64,
}

impl Window {
    /// The rows that come out of so many input rows, as TFLM's `ComputeOutSize` (`kernels/padding.h`); 0 or less when too few.
    pub fn rows_out_of(&self, rows: i64) -> i64 {
        match self.same {
            true => (rows + self.stride - 1).div_euclid(self.stride),
            false => (rows - self.extent).div_euclid(self.stride) + 1,
        }
    }

    /// Rows that the layer pads at the top of so many input rows (`ComputePaddingWithOffset`).
    fn pad_top(&self, rows_in: i64, rows_out: i64) -> i64 {
        match self.same {
            true => ((rows_out - 1) * self.stride + self.extent - rows_in).max(0) / 2,
            false => 0,
        }
    }

    fn whole_pad(&self) -> i64 {
        self.pad_top(self.rows_in, self.rows_out)
    }

    /// What comes out of a tensor with these rows; `None` where output rows would lie between those of the whole.
    pub fn forward(&self, given: Given) -> Option<Given> {
        let Rows { first: p, end: q } = given.rows;
        let count = self.rows_out_of(q - p);
        if count <= 0 {
            return None;
        }
        // The first tap of the first output row, as a row of the whole input, and that of the whole's row 0.
        let start = p - self.pad_top(q - p, count);
        let pad = self.whole_pad();
        if (start + pad).rem_euclid(self.stride) != 0 {
            return None;
        }
        let first = (start + pad).div_euclid(self.stride);
        let rows = Rows::new(first, first + count);
        if first < 0 || rows.end > self.rows_out {
            return None;
        }
        // At the image's border both pad; elsewhere all taps must be on rows that are there and right.
        let (top, bottom) = (given.right.first, given.right.end);
        let from = |row: i64| (row + pad + self.stride - 1).div_euclid(self.stride);
        let to = |row: i64| (row - self.extent + pad).div_euclid(self.stride) + 1;
        let mut right = rows;
        if top > 0 {
            right.first = right.first.max(from(top));
        }
        if bottom < self.rows_in {
            right.end = right.end.min(to(bottom));
        }
        Some(Given { rows, right })
    }

    /// The least input rows from which these output rows come out right; `None` where there are none.
    pub fn backward(&self, wanted: Rows) -> Option<Rows> {
        let pad = self.whole_pad();
        let least = Rows::new(
            (wanted.first * self.stride - pad).max(0),
            ((wanted.end - 1) * self.stride - pad + self.extent).min(self.rows_in),
        );
        // Moving a border by a stride shifts the layer's own padding through all that it can be. For a number of rows that
        // padding is known, and with it, up to strides, where they may begin.
        let most = least.count() + 4 * self.stride;
        for count in least.count()..=most.min(self.rows_in) {
            let moved = (least.first - self.pad_top(count, self.rows_out_of(count)) + pad)
                .rem_euclid(self.stride);
            for first in (0..3).map(|k| least.first - moved - k * self.stride) {
                let rows = Rows::new(first, first + count);
                let is_near = first >= (least.first - 2 * self.stride).max(0)
                    && rows.end >= least.end
                    && rows.end <= (least.end + 2 * self.stride).min(self.rows_in);
                if !is_near {
                    continue;
                }
                let made = self.forward(Given::right(rows));
                if made.is_some_and(|m| m.right.contain(wanted)) {
                    return Some(rows);
                }
            }
        }
        None
    }
}
