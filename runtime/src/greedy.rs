//! The planner of TensorFlow Lite Micro (`GreedyMemoryPlanner`), without an allocator.
//!
//! The device places with it what a plan leaves open, and the compiler predicts with it what a device will do.
//!
//! Buffers with fixed offsets count as placed first, whatever they lie over. The others follow by descending size, of equal
//! ones the later first. Each goes to the lowest offset at which it fits between those placed ones that are alive at
//! the same time.

/// Bytes: `u32` on a device, `u64` where sizes are not yet known to be small.
pub trait Bytes: Copy + Ord {
    /// Nothing.
    const ZERO: Self;

    /// The sum, or the largest number where that is none.
    #[must_use]
    fn plus(self, other: Self) -> Self;
}

impl Bytes for u32 {
    const ZERO: u32 = 0;

    fn plus(self, other: u32) -> u32 {
        self.saturating_add(other)
    }
}

impl Bytes for u64 {
    const ZERO: u64 = 0;

    fn plus(self, other: u64) -> u64 {
        self.saturating_add(other)
    }
}

/// What is to be placed, wherever it is kept. Indices are below [`len`](Self::len).
pub trait Buffers {
    /// How bytes are counted.
    type Bytes: Bytes;

    /// How many buffers there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the buffer takes, rounded as they shall be.
    fn size(&self, index: usize) -> Self::Bytes;

    /// Whether the two are alive at the same time.
    fn conflict(&self, a: usize, b: usize) -> bool;

    /// The buffer's offset, once it has one.
    fn offset(&self, index: usize) -> Option<Self::Bytes>;

    /// Gives the buffer its offset.
    fn place(&mut self, index: usize, offset: Self::Bytes);

    /// The buffer that follows in the order of offsets; the number that was last set.
    fn next(&self, index: usize) -> Option<usize>;

    /// Sets what [`next`](Self::next) gives.
    fn set_next(&mut self, index: usize, next: Option<usize>);
}

/// Gives each buffer without an offset the one that TensorFlow Lite Micro would give it; the result is the height of
/// all.
///
/// Takes a number of steps that grows with the square of the number of buffers.
pub fn greedy<B: Buffers>(buffers: &mut B) -> B::Bytes {
    let len = buffers.len();
    let mut first = None;
    for index in 0..len {
        if buffers.offset(index).is_some() {
            link(buffers, &mut first, index);
        }
    }
    // Of the last one placed; what is larger, or as large and later, has been placed before.
    let mut last: Option<(B::Bytes, usize)> = None;
    while let Some(index) = largest_below(buffers, last) {
        let size = buffers.size(index);
        last = Some((size, index));
        if buffers.offset(index).is_none() {
            let offset = lowest(buffers, first, index);
            buffers.place(index, offset);
            link(buffers, &mut first, index);
        }
    }
    let mut height = B::Bytes::ZERO;
    for index in 0..len {
        if let Some(offset) = buffers.offset(index) {
            height = height.max(offset.plus(buffers.size(index)));
        }
    }
    height
}

/// The next one in the order of placing: the largest that is below `last`, of equal ones the latest.
fn largest_below<B: Buffers>(buffers: &B, last: Option<(B::Bytes, usize)>) -> Option<usize> {
    let mut found: Option<(B::Bytes, usize)> = None;
    for index in 0..buffers.len() {
        let this = (buffers.size(index), index);
        if last.is_none_or(|last| this < last) && found.is_none_or(|found| this > found) {
            found = Some(this);
        }
    }
    found.map(|(_, index)| index)
}

/// The lowest offset at which `index` fits.
fn lowest<B: Buffers>(buffers: &B, first: Option<usize>, index: usize) -> B::Bytes {
    let size = buffers.size(index);
    let mut candidate = B::Bytes::ZERO;
    let mut at = first;
    while let Some(placed) = at {
        at = buffers.next(placed);
        let Some(offset) = buffers.offset(placed) else {
            continue;
        };
        if !buffers.conflict(placed, index) {
            continue;
        }
        if candidate.plus(size) <= offset {
            break;
        }
        candidate = candidate.max(offset.plus(buffers.size(placed)));
    }
    candidate
}

/// Puts `index` into the list of those placed, behind those with the same offset.
fn link<B: Buffers>(buffers: &mut B, first: &mut Option<usize>, index: usize) {
    let offset = buffers.offset(index);
    let mut before = None;
    let mut at = *first;
    while let Some(placed) = at
        && buffers.offset(placed) <= offset
    {
        before = at;
        at = buffers.next(placed);
    }
    buffers.set_next(index, at);
    match before {
        Some(before) => buffers.set_next(before, Some(index)),
        None => *first = Some(index),
    }
}
