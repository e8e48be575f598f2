//! What is to be placed in the head, while a session is prepared.

use crate::error::Error;
use crate::greedy::Buffers;
use crate::memory::ViewMut;
use crate::prepare::{ALIGNMENT, rounded};

/// Buffers in records of four words:
///
/// ```text
/// size, rounded | offset | first and last use | next one, flags, and what the size was rounded up by
/// ```
#[derive(Clone, Copy)]
pub(crate) struct Records<'a> {
    words: ViewMut<'a, u32>,
    len: usize,
}

/// Bytes of a record.
pub(crate) const RECORD: usize = 16;

/// The offset of a buffer without one.
pub(crate) const UNPLACED: u32 = u32::MAX;
const NO_NEXT: u32 = u16::MAX as u32;
const MASK: u32 = ALIGNMENT as u32 - 1;

/// In the last word, above the next one.
const SLACK_SHIFT: u32 = 28;

/// What the check has to know of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flag(u32);

impl Flag {
    /// An operator writes it.
    pub(crate) const WRITTEN: Flag = Flag(1 << 16);
    /// It is an input of a subgraph.
    pub(crate) const GIVEN: Flag = Flag(1 << 17);
    /// Two operators write it, or an operator and who calls the subgraph.
    pub(crate) const SHARED: Flag = Flag(1 << 18);
    /// It is an output of a subgraph.
    pub(crate) const KEPT: Flag = Flag(1 << 19);
    /// A SLICE of the first subgraph reads it.
    pub(crate) const PARTED: Flag = Flag(1 << 21);
    /// Found in a search.
    pub(crate) const FOUND: Flag = Flag(1 << 20);
}

impl<'a> Records<'a> {
    /// No buffers yet, with room for as many as fit `words`.
    pub(crate) fn new(words: ViewMut<'a, u32>) -> Self {
        Self { words, len: 0 }
    }

    /// Adds a buffer that is never in use so far.
    ///
    /// Where there is no room for it, it is counted, and lost.
    pub(crate) fn push(&mut self, bytes: usize, offset: u32) -> Result<u32, Error> {
        let index = self.len;
        if index >= NO_NEXT as usize {
            return Err(Error::TooLarge);
        }
        let size = rounded(bytes)?;
        let slack = size.wrapping_sub(bytes) as u32;
        let size = u32::try_from(size).map_err(|_| Error::TooLarge)?;
        self.len += 1;
        self.words.set(index * 4, size);
        self.words.set(index * 4 + 1, offset);
        self.words.set(index * 4 + 2, 0);
        self.words
            .set(index * 4 + 3, NO_NEXT | (slack << SLACK_SHIFT));
        Ok(index as u32)
    }

    /// Makes it a buffer without bytes.
    pub(crate) fn drop_bytes(&mut self, index: usize) {
        self.words.set(index * 4, 0);
    }

    /// First and last use, by the clock and one; 0 for never.
    pub(crate) fn span(&self, index: usize) -> (u16, u16) {
        let word = self.words.get(index * 4 + 2);
        ((word >> 16) as u16, word as u16)
    }

    pub(crate) fn set_span(&mut self, index: usize, first: u16, last: u16) {
        self.words
            .set(index * 4 + 2, (u32::from(first) << 16) | u32::from(last));
    }

    /// The first byte of a placed buffer, and the first behind it; without what its size was rounded up by.
    pub(crate) fn range(&self, index: usize) -> (u32, u32) {
        let start = self.words.get(index * 4 + 1);
        let slack = self.words.get(index * 4 + 3) >> SLACK_SHIFT;
        let bytes = self.words.get(index * 4).saturating_sub(slack);
        (start, start.saturating_add(bytes))
    }

    pub(crate) fn set(&mut self, index: usize, flag: Flag, value: bool) {
        let at = index * 4 + 3;
        let word = self.words.get(at) & !flag.0;
        self.words.set(at, word | if value { flag.0 } else { 0 });
    }

    pub(crate) fn has(&self, index: usize, flag: Flag) -> bool {
        self.words.get(index * 4 + 3) & flag.0 != 0
    }
}

/// For the planner, a buffer that a plan puts between multiples of the alignment takes all from the one to the other, so
/// that whatever it places is aligned.
impl Buffers for Records<'_> {
    type Bytes = u32;

    fn len(&self) -> usize {
        self.len
    }

    fn size(&self, index: usize) -> u32 {
        match self.offset(index) {
            Some(offset) => {
                let end = self.range(index).1.saturating_add(MASK) & !MASK;
                end.saturating_sub(offset)
            }
            None => self.words.get(index * 4),
        }
    }

    fn conflict(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.span(a), self.span(b));
        a.0 <= b.1 && b.0 <= a.1
    }

    fn offset(&self, index: usize) -> Option<u32> {
        let offset = self.words.get(index * 4 + 1);
        (offset != UNPLACED).then_some(offset & !MASK)
    }

    fn place(&mut self, index: usize, offset: u32) {
        self.words.set(index * 4 + 1, offset);
    }

    fn next(&self, index: usize) -> Option<usize> {
        let next = self.words.get(index * 4 + 3) & NO_NEXT;
        (next != NO_NEXT).then_some(next as usize)
    }

    fn set_next(&mut self, index: usize, next: Option<usize>) {
        let next = next.map_or(NO_NEXT, |next| next as u32);
        let others = self.words.get(index * 4 + 3) & !NO_NEXT;
        self.words.set(index * 4 + 3, others | next);
    }
}
