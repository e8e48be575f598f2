//! Operators that put tensors together or take them apart, in pieces that are each moved as a whole.

use super::{Contract, Overlap, Pair};
use crate::node::{Node, Shape};
use crate::types::Type;

/// How a tensor falls into blocks at an axis, each with a piece of every part. All in bytes, but for the first.
struct Blocks {
    /// Blocks of the whole tensor.
    outer: usize,
    /// A block of the whole.
    whole: usize,
    /// The piece of the part in question, and the pieces before it.
    part: usize,
    before: usize,
}

impl Blocks {
    /// Parts along `axis` of `whole`; `count` tells how many there are, `dim` how much each takes along the axis.
    fn of(
        whole: Shape<'_>,
        axis: i32,
        size: usize,
        count: usize,
        index: usize,
        dim: impl Fn(usize, usize) -> Option<usize>,
    ) -> Option<Self> {
        let axis = resolve(axis, whole.rank())?;
        let inner = whole.product(axis + 1, whole.rank())?.checked_mul(size)?;
        let whole_dim = whole.dim(axis);
        let (mut before, mut part, mut all) = (0, 0, 0usize);
        for k in 0..count {
            let this = dim(k, axis)?;
            if k == index {
                (before, part) = (all, this);
            }
            all = all.checked_add(this)?;
        }
        // No more than the whole, which is in memory.
        let blocks = Self {
            outer: whole.product(0, axis)?,
            whole: whole_dim.checked_mul(inner)?,
            part: part.checked_mul(inner)?,
            before: before.checked_mul(inner)?,
        };
        (all == whole_dim).then_some(blocks)
    }

    /// Where the part starts in the whole, if it is in one piece.
    fn start(&self) -> Option<isize> {
        let contiguous = self.outer == 1 || self.part == self.whole;
        isize::try_from(self.before).ok().filter(|_| contiguous)
    }

    /// The part is read, and the whole is written block by block: before its piece of a block, all of the whole up to there.
    fn joined(&self, pair: &Pair<'_>) -> Option<Overlap> {
        if self.outer.checked_mul(self.part)? != pair.from_bytes
            || self.outer.checked_mul(self.whole)? != pair.to_bytes
        {
            return None;
        }
        // The first piece of all is moved before anything is written.
        if self.before == 0 && self.outer == 1 {
            return Some(Overlap {
                view_at: Some(0),
                ..Overlap::ANY
            });
        }
        let blocks = self.outer.saturating_sub(1) * self.whole.saturating_sub(self.part);
        Some(Overlap {
            view_at: self.start(),
            ..pair.above(blocks.saturating_add(self.before))
        })
    }

    /// The whole is read in its order, and the part is written, so that each piece is further on in the input than in the
    /// output.
    fn parted(&self, pair: &Pair<'_>) -> Option<Overlap> {
        if self.outer.checked_mul(self.part)? != pair.to_bytes
            || self.outer.checked_mul(self.whole)? != pair.from_bytes
        {
            return None;
        }
        // The last piece of all is moved when nothing is read any more.
        let alone = self.outer == 1 && self.before.checked_add(self.part)? == self.whole;
        Some(Overlap {
            view_at: self.start().map(|at| -at),
            ..match alone {
                true => Overlap::ANY,
                false => pair.above(0),
            }
        })
    }
}

fn resolve(axis: i32, rank: usize) -> Option<usize> {
    let axis = match usize::try_from(axis) {
        Ok(axis) => axis,
        Err(_) => rank.checked_sub(axis.unsigned_abs() as usize)?,
    };
    (axis < rank).then_some(axis)
}

/// Numbers in the file, which may have any alignment.
pub(super) struct Constant<'a> {
    bytes: &'a [u8],
    wide: bool,
}

impl Constant<'_> {
    pub(super) fn len(&self) -> usize {
        self.bytes.len() / if self.wide { 8 } else { 4 }
    }

    /// The number at `index`, if it has no more than 32 bits.
    pub(super) fn get(&self, index: usize) -> Option<i32> {
        match self.wide {
            false => {
                let bytes = self.bytes.get(index.checked_mul(4)?..)?.first_chunk()?;
                Some(i32::from_le_bytes(*bytes))
            }
            true => {
                let bytes = self.bytes.get(index.checked_mul(8)?..)?.first_chunk()?;
                i32::try_from(i64::from_le_bytes(*bytes)).ok()
            }
        }
    }
}

/// The values of an input that is constant.
pub(super) fn constant<'a>(node: &Node<'a>, input: usize) -> Option<Constant<'a>> {
    let tensor = node.input(input).ok()?;
    let bytes = tensor.constant()?.get(..tensor.byte_len()?)?;
    match tensor.element_type() {
        Type::INT32 => Some(Constant { bytes, wide: false }),
        Type::INT64 => Some(Constant { bytes, wide: true }),
        _ => None,
    }
}

pub(super) fn concatenation(_: Contract, node: &Node<'_>, pair: &Pair<'_>) -> Option<Overlap> {
    let axis = node.options().ok()?.i32(0, 0).ok()?;
    let whole = pair.to;
    let dim = |k, axis| Some(node.input(k).ok()?.shape().dim(axis));
    let blocks = Blocks::of(whole, axis, pair.to_size, node.inputs(), pair.input, dim)?;
    blocks.joined(pair)
}

pub(super) fn pack(_: Contract, node: &Node<'_>, pair: &Pair<'_>) -> Option<Overlap> {
    let axis = node.options().ok()?.i32(1, 0).ok()?;
    let (whole, count) = (pair.to, node.inputs());
    let blocks = Blocks::of(whole, axis, pair.to_size, count, pair.input, |_, _| Some(1))?;
    blocks.joined(pair)
}

pub(super) fn split(_: Contract, node: &Node<'_>, pair: &Pair<'_>) -> Option<Overlap> {
    // SPLIT has the axis first, SPLIT_V the sizes and the axis behind.
    let (value, axis) = match node.inputs() {
        2 => (1, 0),
        3 => (0, 2),
        _ => return None,
    };
    let axis = constant(node, axis)?.get(0)?;
    let whole = pair.from;
    let dim = |k, axis| Some(node.output(k).ok()?.shape().dim(axis));
    let blocks = Blocks::of(
        whole,
        axis,
        pair.from_size,
        node.outputs(),
        pair.output,
        dim,
    )?;
    (pair.input == value).then(|| blocks.parted(pair)).flatten()
}

pub(super) fn unpack(_: Contract, node: &Node<'_>, pair: &Pair<'_>) -> Option<Overlap> {
    let axis = node.options().ok()?.i32(1, 0).ok()?;
    let (whole, count) = (pair.from, node.outputs());
    let blocks = Blocks::of(whole, axis, pair.from_size, count, pair.output, |_, _| {
        Some(1)
    })?;
    blocks.parted(pair)
}

/// Where a box of a tensor is, in bytes, if its elements follow each other upwards.
struct Extent {
    /// Start of its first element, and of its last.
    first: usize,
    last: usize,
    /// Bytes of all its elements.
    bytes: usize,
    /// Bytes of all dimensions inside of those that were added.
    stride: usize,
}

impl Extent {
    fn new(size: usize) -> Self {
        Self {
            first: 0,
            last: 0,
            bytes: size,
            stride: size,
        }
    }

    /// Adds the next outer dimension: of its `dim` elements `count`, from `start` on, `step` apart.
    fn add(&mut self, dim: usize, start: i32, count: i32, step: i32) -> Option<()> {
        if count < 1 || (count > 1 && step < 1) {
            return None;
        }
        let (start, more) = (usize::try_from(start).ok()?, count as usize - 1);
        let last = match more {
            0 => start,
            _ => start.checked_add(more.checked_mul(step as usize)?)?,
        };
        if last >= dim {
            return None;
        }
        // Within the tensor, which is in memory.
        self.first += start * self.stride;
        self.last += last * self.stride;
        self.bytes = self.bytes.checked_mul(more + 1)?;
        self.stride = self.stride.checked_mul(dim)?;
        Some(())
    }

    /// An element is further on in the input than in the output, and more so the later it comes.
    fn overlap(&self, pair: &Pair<'_>, size: usize) -> Option<Overlap> {
        let apart = self.last.checked_sub(self.first)?;
        let contiguous = apart.checked_add(size)? == self.bytes;
        if pair.input != 0 || self.bytes != pair.to_bytes {
            return None;
        }
        Some(Overlap {
            view_at: match contiguous {
                true => isize::try_from(self.first).ok().map(|at| -at),
                false => None,
            },
            ..pair.above(0)
        })
    }
}

pub(super) fn slice(_: Contract, node: &Node<'_>, pair: &Pair<'_>) -> Option<Overlap> {
    let (begin, size) = (constant(node, 1)?, constant(node, 2)?);
    let shape = pair.from;
    let mut extent = Extent::new(pair.from_size);
    for axis in (0..shape.rank()).rev() {
        let (start, dim) = (begin.get(axis)?, shape.dim(axis));
        let count = match size.get(axis)? {
            -1 => i32::try_from(dim).ok()?.checked_sub(start)?,
            count => count,
        };
        extent.add(dim, start, count, 1)?;
    }
    extent.overlap(pair, pair.from_size)
}

/// The box as TFLM finds it (`strided_slice_logic.h`). Nothing is promised with ellipses and new axes.
pub(super) fn strided_slice(_: Contract, node: &Node<'_>, pair: &Pair<'_>) -> Option<Overlap> {
    let options = node.options().ok()?;
    let mask = |slot| options.i32(slot, 0).ok();
    let (begin_mask, end_mask, shrink_mask) = (mask(0)?, mask(1)?, mask(4)?);
    if mask(2)? != 0 || mask(3)? != 0 || options.bool(5, false).ok()? {
        return None;
    }
    let (begin, end, strides) = (constant(node, 1)?, constant(node, 2)?, constant(node, 3)?);
    let shape = pair.from;
    let mut extent = Extent::new(pair.from_size);
    for axis in (0..shape.rank()).rev() {
        let has = |mask: i32| mask.checked_shr(axis as u32).unwrap_or(0) & 1 == 1;
        let (stored, step) = (shape.dim(axis), strides.get(axis)?);
        let dim = i32::try_from(stored).ok()?;
        let (low, high) = match step > 0 {
            true => (0, dim),
            false => (-1, dim.checked_sub(1)?),
        };
        let clamped = |at: i32| {
            let at = if at < 0 { at.saturating_add(dim) } else { at };
            at.max(low).min(high)
        };
        let start = match (has(begin_mask), step > 0) {
            (true, true) => 0,
            (true, false) => dim.checked_sub(1)?,
            _ => clamped(begin.get(axis)?),
        };
        let stop = match (has(end_mask), step > 0) {
            _ if has(shrink_mask) => start.checked_add(1)?,
            (true, true) => dim,
            (true, false) => -1,
            _ => clamped(end.get(axis)?),
        };
        let distance = stop.checked_sub(start)?;
        let count = match step > 0 {
            // Rounded up.
            true => distance
                .checked_add(step.checked_sub(1)?)?
                .checked_div(step)?,
            // More than one is none that is promised anything.
            false if distance == -1 || has(shrink_mask) => 1,
            false => return None,
        };
        extent.add(stored, start, count, step)?;
    }
    extent.overlap(pair, pair.from_size)
}
