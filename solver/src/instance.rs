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
    /// Row `x` of `neighbours` is `row[x]..row[x + 1]`: who conflicts with `x`, in the order of the conflicts.
    row: Vec<u32>,
    neighbours: Vec<u32>,
    /// For each entry of `neighbours`: how far `x` must stay below, and above, that neighbour.
    /// Empty if all separations are the sizes.
    separations: Vec<(u64, u64)>,
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
            plain &= problem
                .buffer(a)
                .is_some_and(|a| a.size == conflict.a_below_b)
                && problem
                    .buffer(b)
                    .is_some_and(|b| b.size == conflict.b_below_a);
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
        instance.scale();
        Ok(instance)
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
            let mut entries: Vec<(u32, (u64, u64))> = others.zip(distances).collect();
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
            .flat_map(|&(below, above)| [below, above]);
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
            *below /= unit;
            *above /= unit;
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

    /// Who conflicts with `x`; twice in the list if two conflicts are to hold.
    pub(crate) fn neighbours(&self, x: usize) -> &[u32] {
        &self.neighbours[self.row[x] as usize..self.row[x + 1] as usize]
    }

    /// Each conflict of `x` as `(y, below, above)`: the offset of `x` must be at least `below`
    /// under that of `y`, or at least `above` over it.
    pub(crate) fn conflicts(&self, x: usize) -> impl Iterator<Item = (usize, u64, u64)> {
        let entries = self.row[x] as usize..self.row[x + 1] as usize;
        entries.map(move |entry| {
            let y = self.neighbours[entry] as usize;
            match self.separations.get(entry) {
                Some(&(below, above)) => (y, below, above),
                None => (y, self.size[x], self.size[y]),
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
                if offset + below > other && other + above > offset {
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
