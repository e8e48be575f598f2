//! The order in which a kernel's loops read and write, and the least distances that this order allows.
//!
//! A kernel that writes its output once, in nested loops, is a [`Nest`]: in each round of the innermost loop it reads some
//! bytes of its input, then writes some bytes of its output, and where they are is a sum with a term for each loop. Let `i`
//! be one round and `j` a later one. With the input `d` bytes above the output, the bytes written in round `i` are read in
//! round `j` unless
//!
//! ```text
//! d >= end of what i writes - start of what j reads      (the input is above: it is overwritten from below)
//! -d >= end of what j reads - start of what i writes     (the output is above)
//! ```
//!
//! so that the largest right sides over all pairs of rounds are the distances. Round `j` is later when the two agree in
//! the outer loops, `j` is further in one loop, and the loops inside that one are anywhere: for each loop the maximum is a
//! sum of maxima, which need no search over rounds.

/// Where a loop's rounds read, in bytes, relative to what the other loops add.
pub(super) enum Reads {
    /// Round `x` reads at `x` times this many bytes.
    Step(i64),
    /// Round `x` reads from the first to the second position, or nothing.
    Table(Vec<Option<(i64, i64)>>),
}

/// One loop of a nest.
pub(super) struct Loop {
    /// How many rounds it has, at least one.
    count: i64,
    /// How many bytes further each round writes.
    write: i64,
    reads: Reads,
}

impl Loop {
    /// A loop in which reads and writes move by so many bytes a round.
    pub(super) fn new(count: i64, write: i64, read: i64) -> Self {
        Self {
            count,
            write,
            reads: Reads::Step(read),
        }
    }

    /// A loop that reads where the table says.
    pub(super) fn table(write: i64, reads: Vec<Option<(i64, i64)>>) -> Self {
        Self {
            count: reads.len() as i64,
            write,
            reads: Reads::Table(reads),
        }
    }

    fn extremes(&self) -> Extremes {
        let (n, w) = (self.count, self.write);
        let mut found = Extremes {
            write_high: (w * (n - 1)).max(0),
            write_low: (w * (n - 1)).min(0),
            ..Extremes::default()
        };
        match &self.reads {
            // Everything is linear, so that the corners decide.
            &Reads::Step(r) => {
                for x in [0, n - 1] {
                    found.reads_with(w * x, r * x, r * x);
                }
                if n > 1 {
                    for (x, y) in [(0, 1), (0, n - 1), (n - 2, n - 1)] {
                        found.reads_after(w * x, r * y, r * y);
                    }
                }
            }
            Reads::Table(table) => {
                for (y, entry) in table.iter().enumerate() {
                    let Some((low, high)) = *entry else {
                        continue;
                    };
                    let y = y as i64;
                    found.reads_with(w * y, low, high);
                    if y > 0 {
                        found.reads_after(0, low, high);
                        found.reads_after(w * (y - 1), low, high);
                    }
                }
            }
        }
        found
    }
}

/// What a loop contributes. `None` where no round reads.
#[derive(Default)]
struct Extremes {
    write_high: i64,
    write_low: i64,
    read_low: Option<i64>,
    read_high: Option<i64>,
    /// Writes above reads, and reads above writes, of one round.
    same: Option<(i64, i64)>,
    /// The same of a round and a later one that reads.
    later: Option<(i64, i64)>,
}

impl Extremes {
    fn reads_with(&mut self, write: i64, low: i64, high: i64) {
        self.read_low = Some(self.read_low.map_or(low, |l| l.min(low)));
        self.read_high = self.read_high.max(Some(high));
        self.same = largest(self.same, (write - low, high - write));
    }

    fn reads_after(&mut self, write: i64, low: i64, high: i64) {
        self.later = largest(self.later, (write - low, high - write));
    }
}

fn largest(known: Option<(i64, i64)>, new: (i64, i64)) -> Option<(i64, i64)> {
    Some(known.map_or(new, |(a, b)| (a.max(new.0), b.max(new.1))))
}

/// The loops of a kernel, outermost first.
pub(super) struct Nest {
    pub(super) loops: Vec<Loop>,
    /// Where the first round writes and reads.
    pub(super) write_at: i64,
    pub(super) read_at: i64,
    /// How many bytes a round reads, and writes.
    pub(super) read_bytes: i64,
    pub(super) write_bytes: i64,
    /// A round is one `memcpy`, or writes before it reads: its own bytes must not overlap either.
    pub(super) block: bool,
}

impl Nest {
    /// Rounds that read `bytes`, then write as many.
    pub(super) fn copying(loops: Vec<Loop>, bytes: i64) -> Self {
        Self {
            loops,
            write_at: 0,
            read_at: 0,
            read_bytes: bytes,
            write_bytes: bytes,
            block: false,
        }
    }

    /// The least distances.
    pub(super) fn needs(&self) -> Needs {
        let loops: Vec<Extremes> = self.loops.iter().map(Loop::extremes).collect();
        let above = self.write_at + self.write_bytes - self.read_at;
        let below = self.read_at + self.read_bytes - self.write_at;
        let mut needs = Needs::default();
        // What the loops outside the one in hand add while both rounds agree in them.
        let mut outer = Some((0, 0));
        for (k, at) in loops.iter().enumerate() {
            let inner = loops[k + 1..].iter().try_fold((0, 0), |(a, b), l| {
                Some((
                    a + l.write_high - l.read_low?,
                    b + l.read_high? - l.write_low,
                ))
            });
            if let (Some(outer), Some(later), Some(inner)) = (outer, at.later, inner) {
                needs.add(Needs {
                    input_above: Some(above + outer.0 + later.0 + inner.0),
                    output_above: Some(below + outer.1 + later.1 + inner.1),
                });
            }
            outer = outer
                .zip(at.same)
                .map(|(outer, same)| (outer.0 + same.0, outer.1 + same.1));
        }
        if let (true, Some(same)) = (self.block, outer) {
            needs.add(Needs {
                input_above: Some(above + same.0),
                output_above: Some(below + same.1),
            });
        }
        needs
    }

    /// Where the input lies over the output when every round copies its bytes onto themselves.
    pub(super) fn view(&self) -> Option<i64> {
        let alike = |l: &Loop| match l.reads {
            Reads::Step(read) => l.count == 1 || read == l.write,
            Reads::Table(_) => false,
        };
        (self.read_bytes == self.write_bytes && self.loops.iter().all(alike))
            .then_some(self.write_at - self.read_at)
    }
}

/// The least distances that an order of reads and writes needs, in bytes; `None` where it needs none at all.
#[derive(Clone, Copy, Default)]
pub(super) struct Needs {
    /// Of an input above the output.
    pub(super) input_above: Option<i64>,
    /// Of an output above the input.
    pub(super) output_above: Option<i64>,
}

impl Needs {
    /// Also what `other` needs.
    pub(super) fn add(&mut self, other: Needs) {
        self.input_above = self.input_above.max(other.input_above);
        self.output_above = self.output_above.max(other.output_above);
    }
}

/// Reads and writes one by one, from the last to the first, for kernels whose rounds are no sum over loops.
#[derive(Default)]
pub(super) struct Backwards {
    needs: Needs,
    low: Option<i64>,
    high: Option<i64>,
}

impl Backwards {
    /// `memcpy` of `bytes` from `read` to `write`, after all that this has been told before.
    pub(super) fn copy(&mut self, write: i64, read: i64, bytes: i64) {
        self.low = Some(self.low.map_or(read, |l| l.min(read)));
        self.high = self.high.max(Some(read + bytes));
        self.write(write, bytes);
    }

    /// Writes without reading.
    pub(super) fn write(&mut self, write: i64, bytes: i64) {
        self.needs.add(Needs {
            input_above: self.low.map(|low| write + bytes - low),
            output_above: self.high.map(|high| high - write),
        });
    }

    /// The least distances of all that it has been told.
    pub(super) fn needs(self) -> Needs {
        self.needs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, the same each time.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> i64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ((self.0 >> 33) % n) as i64
        }
    }

    /// Start of what a round writes, and start and end of what it reads.
    type Round = (i64, Option<(i64, i64)>);

    /// The rounds of a nest, one by one.
    fn rounds(nest: &Nest) -> Vec<Round> {
        let first = (nest.write_at, Some((nest.read_at, nest.read_at)));
        let starts = nest.loops.iter().fold(vec![first], |outer, at| {
            let round = |&(write, read): &Round, x: i64| {
                let here = match &at.reads {
                    &Reads::Step(step) => Some((step * x, step * x)),
                    Reads::Table(table) => table[x as usize],
                };
                let read = read.zip(here).map(|((a, b), (c, d))| (a + c, b + d));
                (write + at.write * x, read)
            };
            outer
                .iter()
                .flat_map(|before| (0..at.count).map(move |x| round(before, x)))
                .collect()
        });
        let end = |(low, high)| (low, high + nest.read_bytes);
        starts.into_iter().map(|(w, r)| (w, r.map(end))).collect()
    }

    #[test]
    fn sums_of_maxima_are_the_maximum_over_all_pairs_of_rounds() {
        let mut random = Random(1);
        for _ in 0..4000 {
            let loops = (0..random.below(5)).map(|_| {
                let (count, write) = (1 + random.below(4), random.below(9));
                if random.below(3) == 0 {
                    let entry = |random: &mut Random| {
                        let low = random.below(12);
                        (random.below(4) > 0).then(|| (low, low + random.below(3)))
                    };
                    Loop::table(write, (0..count).map(|_| entry(&mut random)).collect())
                } else {
                    let sign = if random.below(4) == 0 { -1 } else { 1 };
                    Loop::new(count, write * sign, random.below(9) * (random.below(3) - 1))
                }
            });
            let nest = Nest {
                loops: loops.collect(),
                write_at: random.below(5),
                read_at: random.below(5),
                read_bytes: 1 + random.below(4),
                write_bytes: 1 + random.below(4),
                block: random.below(2) == 0,
            };
            let rounds = rounds(&nest);
            let mut expected = Needs::default();
            for (i, &(write, _)) in rounds.iter().enumerate() {
                let later = if nest.block { i } else { i + 1 };
                for &(low, high) in rounds[later..].iter().filter_map(|(_, read)| read.as_ref()) {
                    expected.add(Needs {
                        input_above: Some(write + nest.write_bytes - low),
                        output_above: Some(high - write),
                    });
                }
            }
            let needs = nest.needs();
            assert_eq!(needs.input_above, expected.input_above);
            assert_eq!(needs.output_above, expected.output_above);
        }
    }
}
