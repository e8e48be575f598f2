//! A table of two columns, words and bytes, whose rows are checked once for both.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::{View, ViewMut, load};

/// A word and a byte for each row, in memory that others may change meanwhile: all words come first.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    words: NonNull<i32>,
    bytes: NonNull<i8>,
    len: usize,
    of: PhantomData<&'a Cell<i32>>,
}

impl Default for Columns<'_> {
    fn default() -> Self {
        Self {
            words: NonNull::dangling(),
            bytes: NonNull::dangling(),
            len: 0,
            of: PhantomData,
        }
    }
}

/// Bytes of so many rows.
pub(crate) fn bytes_of_rows(rows: usize) -> Option<usize> {
    rows.checked_mul(5)
}

impl<'a> Columns<'a> {
    /// The first `rows` rows of a table in `bytes`; `None` where there are fewer, or where words are not aligned.
    #[inline(never)]
    pub(crate) fn of(bytes: View<'a, u8>, rows: usize) -> Option<Self> {
        let split = rows.checked_mul(4)?;
        let words: View<'_, i32> = bytes.part(0, split)?.cast()?;
        let bytes: View<'_, i8> = bytes.part(split, rows)?.cast()?;
        Some(Self {
            words: words.start,
            bytes: bytes.start,
            len: rows,
            of: PhantomData,
        })
    }

    /// `len` rows from `start` on, if the table has them.
    #[inline(always)]
    pub(crate) fn part(self, start: usize, len: usize) -> Option<Self> {
        if start > self.len || len > self.len - start {
            return None;
        }
        // SAFETY: both columns have `self.len` elements from their starts on.
        let (words, bytes) = unsafe { (self.words.add(start), self.bytes.add(start)) };
        Some(Self {
            words,
            bytes,
            len,
            of: PhantomData,
        })
    }

    /// The row `index`; zeros for one that the table does not have.
    #[inline(always)]
    pub(crate) fn get(self, index: usize) -> (i32, i8) {
        if index >= self.len {
            return (0, 0);
        }
        // SAFETY: within both columns, whose bytes may be read for `'a`; words are aligned.
        unsafe { (load(self.words.add(index)), load(self.bytes.add(index))) }
    }
}

/// Sets the row `index` of a table with `rows` rows in `bytes`.
pub(crate) fn set_row(
    bytes: ViewMut<'_, u8>,
    rows: usize,
    index: usize,
    (word, byte): (i32, i8),
) -> Option<()> {
    let split = rows.checked_mul(4)?;
    let words = bytes.part(0, split)?.cast::<i32>()?;
    let bytes = bytes.part(split, rows)?;
    words.set(index, word);
    bytes.set(index, byte as u8);
    Some(())
}
