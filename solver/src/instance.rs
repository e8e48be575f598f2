//! A problem as flat arrays, in the form planners work on.
//!
//! Everything is divided by the greatest unit that loses nothing: any placement can be pushed down
//! until each offset is 0, a fixed offset, or an aligned sum of separations, so if all of those are
//! multiples of a unit (usually 16 bytes), then some best placement is as well.

use std::borrow::Cow;

use crate::{BufferId, Error, Placement, Problem};

/// Marks a buffer that has no fixed offset, or no offset yet.
pub(crate) const NONE: u64 = u64::MAX;

/// The arrays of a problem. A buffer is its index; sizes and offsets count `unit` bytes.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    /// Bytes per unit, at least 1.
    pub(crate) unit: u64,
    pub(crate) size: Vec<u64>,
    pub(crate) align: Vec<u64>,
    /// The fixed offset or [`NONE`].
    pub(crate) fixed: Vec<u64>,
    /// First and last point in time, as in the problem.
    pub(crate) first: Vec<i32>,
    pub(crate) last: Vec<i32>,
    /// Row `x` of `neighbours` is `row[x]..row[x + 1]`: who conflicts with `x`, in the order of the
    /// conflicts.
    row: Vec<u32>,
    neighbours: Vec<u32>,
    /// For each entry of `neighbours`: how far `x` must stay below, and above, that neighbour.
    /// Empty if all separations are the sizes.
    separations: Vec<(i64, i64)>,
    /// Whether a separation is negative. The conflicts of two buffers are next to each other then,
    /// and the ranges that they forbid do not overlap.
    signed: bool,
}

impl Instance {
    /// The arrays of `problem`, after [`Problem::validate`].
    pub(crate) fn new(problem: &Problem) -> Result<Self, Error> {
        problem.validate()?;
        let n = problem.len();
        let mut row = vec![0u32; n + 1];
        let mut plain = true;
        for (a, b, conflict) in problem.conflicts() {
            row[a.index() + 1] += 1;
            row[b.index() + 1] += 1;
            let sizes = [a, b].map(|id| problem.buffer(id).map(|b| b.size as i64));
            plain &= sizes == [Some(conflict.a_below_b), Some(conflict.b_below_a)];
        }
        for i in 0..n {
            row[i + 1] += row[i];
        }
        let entries = row[n] as usize;
        let mut instance = Self {
            unit: 1,
            size: Vec::with_capacity(n),
            align: Vec::with_capacity(n),
            fixed: Vec::with_capacity(n),
            first: Vec::with_capacity(n),
            last: Vec::with_capacity(n),
            row,
            neighbours: vec![0; entries],
            separations: if plain {
                Vec::new()
            } else {
                vec![(0, 0); entries]
            },
            signed: false,
        };
        for (_, buffer) in problem.buffers() {
            instance.size.push(buffer.size);
            instance.align.push(buffer.align);
            instance.fixed.push(buffer.fixed.unwrap_or(NONE));
            instance.first.push(buffer.lifetime.first);
            instance.last.push(buffer.lifetime.last);
        }
        let mut next = instance.row.clone();
        for (a, b, conflict) in problem.conflicts() {
            let ends = [
                (a.index(), b.0, (conflict.a_below_b, conflict.b_below_a)),
                (b.index(), a.0, (conflict.b_below_a, conflict.a_below_b)),
            ];
            for (x, y, separation) in ends {
                let entry = next[x] as usize;
                next[x] += 1;
                instance.neighbours[entry] = y;
                if !plain {
                    instance.separations[entry] = separation;
                }
            }
        }
        if instance.any_negative() {
            instance = instance.join_ranges();
        }
        instance.scale();
        Ok(instance)
    }

    fn any_negative(&self) -> bool {
        let mut separations = self.separations.iter();
        separations.any(|&(below, above)| below < 0 || above < 0)
    }

    /// Joins the ranges that the conflicts of two buffers forbid where they overlap, as far as the
    /// offsets that alignments allow tell. Sorts the conflicts of each buffer.
    fn join_ranges(&self) -> Self {
        // What each possible offset is a multiple of.
        let grid = |x: usize| match self.fixed[x] {
            NONE => self.align[x],
            offset => gcd(self.align[x], offset),
        };
        self.rebuild(|x, y, ranges| {
            let step = gcd(grid(x), grid(y)).max(1) as i64;
            // Forbidden is what is strictly between the ends, so they can be moved to multiples.
            let down = |end: i64| end - end.rem_euclid(step);
            for range in ranges.iter_mut() {
                *range = (down(range.0), -down(-range.1));
            }
            ranges.retain(|&(lo, hi)| hi - lo > 1);
            ranges.sort_unstable();
            ranges.dedup_by(|next, kept| {
                let overlap = next.0 < kept.1;
                if overlap {
                    kept.1 = kept.1.max(next.1);
                }
                overlap
            });
        })
    }

    /// The problem with only those conflicts that forbid what is around the same offset: each
    /// placement of this problem is one of it. Itself, if no separation is negative.
    pub(crate) fn relaxed(&self) -> Cow<'_, Self> {
        match self.signed {
            false => Cow::Borrowed(self),
            true => Cow::Owned(
                self.rebuild(|_, _, ranges| ranges.retain(|&(lo, hi)| lo <= 0 && hi >= 0)),
            ),
        }
    }

    /// Changes the ranges that are forbidden for the offset of `x` minus that of `y`, for all `x`
    /// and `y` in conflict. They are given as the ends of the ranges, which are allowed.
    fn rebuild(&self, change: impl Fn(usize, usize, &mut Vec<(i64, i64)>)) -> Self {
        let mut changed = self.clone();
        changed.row = vec![0];
        changed.neighbours.clear();
        changed.separations.clear();
        let mut entries: Vec<(usize, i64, i64)> = Vec::new();
        let mut ranges = Vec::new();
        for x in 0..self.len() {
            entries.clear();
            entries.extend(
                self.conflicts(x)
                    .filter(|&(_, below, above)| below.saturating_add(above) > 1),
            );
            entries.sort_unstable();
            for same in entries.chunk_by(|a, b| a.0 == b.0) {
                let y = same[0].0;
                ranges.clear();
                ranges.extend(same.iter().map(|&(_, below, above)| (-below, above)));
                change(x, y, &mut ranges);
                changed.neighbours.extend(ranges.iter().map(|_| y as u32));
                changed
                    .separations
                    .extend(ranges.iter().map(|&(lo, hi)| (-lo, hi)));
            }
            changed.row.push(changed.neighbours.len() as u32);
        }
        changed.signed = changed.any_negative();
        changed
    }

    /// As [`Self::part`], for members in ascending order. The whole is not copied.
    pub(crate) fn cut(&self, members: &[u32], index: &mut Vec<u32>) -> Cow<'_, Self> {
        match members.len() == self.len() {
            true => Cow::Borrowed(self),
            false => Cow::Owned(self.part(members, index)),
        }
    }

    /// The part of the problem with these buffers, which become `0..members.len()`. `index` is
    /// room to work in: empty at first, and given back for the next part of the same problem.
    pub(crate) fn part(&self, members: &[u32], index: &mut Vec<u32>) -> Self {
        index.resize(self.len(), u32::MAX);
        for (new, &old) in members.iter().enumerate() {
            index[old as usize] = new as u32;
        }
        let pick = |values: &[u64]| members.iter().map(|&x| values[x as usize]).collect();
        let time = |values: &[i32]| members.iter().map(|&x| values[x as usize]).collect();
        let mut part = Self {
            unit: self.unit,
            size: pick(&self.size),
            align: pick(&self.align),
            fixed: pick(&self.fixed),
            first: time(&self.first),
            last: time(&self.last),
            row: vec![0],
            neighbours: Vec::new(),
            separations: Vec::new(),
            signed: false,
        };
        for &x in members {
            let x = x as usize;
            for entry in self.row[x] as usize..self.row[x + 1] as usize {
                let y = index[self.neighbours[entry] as usize];
                if y != u32::MAX {
                    part.neighbours.push(y);
                    part.separations.extend(self.separations.get(entry));
                }
            }
            part.row.push(part.neighbours.len() as u32);
        }
        part.signed = self.signed && part.any_negative();
        for &x in members {
            index[x as usize] = u32::MAX;
        }
        part
    }

    /// The buffers in another order, which become `0..n`, and the conflicts of each in the order
    /// that follows from it.
    pub(crate) fn ordered(&self, order: &[u32]) -> Self {
        let mut ordered = self.part(order, &mut Vec::new());
        for x in 0..ordered.len() {
            let row = ordered.row[x] as usize..ordered.row[x + 1] as usize;
            if ordered.is_plain() {
                ordered.neighbours[row].sort_unstable();
                continue;
            }
            let others = ordered.neighbours[row.clone()].iter().copied();
            let distances = ordered.separations[row.clone()].iter().copied();
            let mut entries: Vec<(u32, (i64, i64))> = others.zip(distances).collect();
            entries.sort_unstable();
            for (at, (other, distance)) in row.zip(entries) {
                ordered.neighbours[at] = other;
                ordered.separations[at] = distance;
            }
        }
        ordered
    }

    /// Divides all numbers by their greatest unit.
    fn scale(&mut self) {
        let sizes = self
            .size
            .iter()
            .chain(self.fixed.iter().filter(|&&f| f != NONE))
            .copied();
        let separations = self
            .separations
            .iter()
            .flat_map(|&(below, above)| [below.unsigned_abs(), above.unsigned_abs()]);
        let mut unit = sizes.chain(separations).fold(0, gcd);
        if unit == 0 {
            return; // all sizes are 0, alignment has nothing to shift
        }
        // An alignment that divides the unit is met for free; the others must stay whole units.
        while let Some(&align) = self
            .align
            .iter()
            .find(|&&a| !unit.is_multiple_of(a) && !a.is_multiple_of(unit))
        {
            unit = gcd(unit, align);
        }
        self.unit = unit;
        self.size.iter_mut().for_each(|s| *s /= unit);
        self.fixed
            .iter_mut()
            .filter(|f| **f != NONE)
            .for_each(|f| *f /= unit);
        self.align.iter_mut().for_each(|a| *a = (*a / unit).max(1));
        for (below, above) in &mut self.separations {
            *below /= unit as i64;
            *above /= unit as i64;
        }
    }

    /// The number of buffers.
    pub(crate) fn len(&self) -> usize {
        self.size.len()
    }

    /// The number of conflicts, each seen from both sides.
    pub(crate) fn entries(&self) -> usize {
        self.neighbours.len()
    }

    /// Whether all separations are the sizes.
    pub(crate) fn is_plain(&self) -> bool {
        self.separations.is_empty()
    }

    /// Whether a separation is negative, so that buffers may be placed in holes of others.
    pub(crate) fn is_signed(&self) -> bool {
        self.signed
    }

    /// Who conflicts with `x`; twice in the list if two conflicts are to hold.
    pub(crate) fn neighbours(&self, x: usize) -> &[u32] {
        &self.neighbours[self.row[x] as usize..self.row[x + 1] as usize]
    }

    /// Each conflict of `x` as `(y, below, above)`: the offset of `x` must be at least `below`
    /// under that of `y`, or at least `above` over it.
    pub(crate) fn conflicts(&self, x: usize) -> impl Iterator<Item = (usize, i64, i64)> {
        let entries = self.row[x] as usize..self.row[x + 1] as usize;
        entries.map(move |entry| {
            let y = self.neighbours[entry] as usize;
            match self.separations.get(entry) {
                Some(&(below, above)) => (y, below, above),
                None => (y, self.size[x] as i64, self.size[y] as i64),
            }
        })
    }

    /// Whether the planner may choose the offset of `x`.
    pub(crate) fn is_free(&self, x: usize) -> bool {
        self.fixed[x] == NONE
    }

    /// The top of the highest buffer.
    pub(crate) fn height(&self, offsets: &[u64]) -> u64 {
        self.size
            .iter()
            .zip(offsets)
            .map(|(size, offset)| size + offset)
            .max()
            .unwrap_or(0)
    }

    /// The placement in bytes.
    pub(crate) fn placement(&self, offsets: &[u64]) -> Placement {
        Placement {
            offsets: offsets.iter().map(|o| o * self.unit).collect(),
            height: self.height(offsets) * self.unit,
        }
    }

    /// That the buffers with fixed offsets contradict neither their alignment nor each other.
    ///
    /// # Errors
    /// [`Error::FixedMisaligned`], [`Error::FixedConflict`].
    pub(crate) fn check_fixed(&self) -> Result<(), Error> {
        let fixed = |x: usize| Some(self.fixed[x]).filter(|&f| f != NONE);
        for x in 0..self.len() {
            let Some(offset) = fixed(x) else { continue };
            let id = BufferId(x as u32);
            if offset % self.align[x] != 0 {
                let (offset, align) = (offset * self.unit, self.align[x] * self.unit);
                return Err(Error::FixedMisaligned { id, offset, align });
            }
            for (y, below, above) in self.conflicts(x) {
                let Some(other) = fixed(y).filter(|_| y > x) else {
                    continue;
                };
                let distance = offset as i64 - other as i64;
                if -below < distance && distance < above {
                    return Err(Error::FixedConflict {
                        a: id,
                        b: BufferId(y as u32),
                    });
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
