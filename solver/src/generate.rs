//! Random problems, for tests and benchmarks. The same seed gives the same problem everywhere.

use core::ops::Range;

use crate::search::Random;
use crate::{Buffer, BufferId, Conflict, Error, Lifetime, Problem};

/// What random buffers look like.
#[derive(Clone, Debug)]
pub struct Shape {
    /// How many buffers.
    pub buffers: usize,
    /// Points in time are from 0 up to but not including this, which is at least 1.
    pub times: i32,
    /// Lifetimes have at most this many points, at least 1.
    pub longest: i32,
    /// Sizes are 0 (rarely) to this many steps.
    pub largest: u64,
    /// Bytes of a step, to which sizes and fixed offsets are rounded.
    pub step: u64,
    /// Alignments are powers of two up to this one, which is one as well.
    pub align: u64,
    /// How many of a hundred buffers have a fixed offset. They may contradict each other.
    pub fixed_percent: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            buffers: 6,
            times: 8,
            longest: 4,
            largest: 8,
            step: 1,
            align: 1,
            fixed_percent: 0,
        }
    }
}

/// Random buffers.
pub fn buffers(shape: &Shape, seed: u64) -> Vec<Buffer> {
    let mut random = Random::new(seed);
    let mut below = |bound: u64| random.below(bound as usize) as u64;
    let make = |_| {
        let first = below(shape.times as u64) as i32;
        let last = (first + below(shape.longest as u64) as i32).min(shape.times - 1);
        let size = below(shape.largest + 1) * shape.step;
        let align = 1 << below(u64::from(shape.align.ilog2()) + 1);
        let fixed =
            (below(100) < shape.fixed_percent).then(|| below(shape.largest * 2 + 1) * shape.step);
        Buffer {
            size,
            align,
            lifetime: Lifetime::new(first, last),
            fixed,
        }
    };
    (0..shape.buffers).map(make).collect()
}

/// A random problem in which buffers alive at once share no byte.
///
/// # Errors
/// As [`Problem::from_lifetimes`].
pub fn intervals(shape: &Shape, seed: u64) -> Result<Problem, Error> {
    Problem::from_lifetimes(buffers(shape, seed))
}

/// A random problem with some conflicts left out and some separations reduced, as aliasing and
/// overlap of operators do, and a few raised.
///
/// # Errors
/// As [`Problem::add_conflict`].
pub fn overlaps(shape: &Shape, seed: u64) -> Result<Problem, Error> {
    let whole = intervals(shape, seed)?;
    let mut random = Random::new(seed ^ 0x5EED);
    let mut problem = Problem::new();
    for (_, buffer) in whole.buffers() {
        problem.add_buffer(*buffer);
    }
    for (a, b, conflict) in whole.conflicts() {
        let mut change = |full: i64| match random.below(8) {
            0 | 1 => random.below(full as usize + 1) as i64,
            2 => full + random.below(4) as i64 * shape.step as i64,
            _ => full,
        };
        let conflict = Conflict {
            a_below_b: change(conflict.a_below_b),
            b_below_a: change(conflict.b_below_a),
        };
        if random.below(8) > 0 {
            problem.add_conflict(a, b, conflict)?;
        }
    }
    Ok(problem)
}

/// A range of a buffer's bytes with a lifetime of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Counted from the start of the buffer.
    pub bytes: Range<u64>,
    /// When they are in use.
    pub lifetime: Lifetime,
}

/// A random problem of buffers made of pieces, and the pieces of each buffer: what [`buffers`]
/// gives, some of them cut into rows that die or are born one by one from either end, as the inputs
/// and outputs of operators that run in stripes, some into random pieces, or with a hole. Pieces in
/// use at once share no byte.
///
/// # Errors
/// As [`Problem::add_conflict`].
pub fn pieces(shape: &Shape, seed: u64) -> Result<(Problem, Vec<Vec<Piece>>), Error> {
    let mut random = Random::new(seed ^ 0x0091_ECE5);
    let all = buffers(shape, seed);
    let cut = |buffer: &Buffer| {
        let Lifetime { first, last } = buffer.lifetime;
        let kind = random.below(6);
        let count = if kind == 0 {
            1
        } else {
            1 + random.below(4) as u64
        };
        let part = |rank: u64| {
            let moment =
                |rank| first + ((i64::from(last - first) * rank as i64) / count as i64) as i32;
            match kind {
                1 => Lifetime::new(first, moment(rank + 1)), // dies from the start
                2 => Lifetime::new(first, moment(count - rank)), // dies from the end
                3 => Lifetime::new(moment(rank), last),      // is born from the start
                4 if rank == count / 2 => Lifetime::new(first, moment(1)), // a hole
                _ => buffer.lifetime,
            }
        };
        let mut pieces: Vec<Piece> = Vec::new();
        for rank in 0..count {
            let bytes = buffer.size * rank / count..buffer.size * (rank + 1) / count;
            let lifetime = match kind {
                5 => {
                    let first = first + random.below((last - first) as usize + 1) as i32;
                    Lifetime::new(
                        first,
                        first + random.below((last - first) as usize + 1) as i32,
                    )
                }
                _ => part(rank),
            };
            pieces.push(Piece { bytes, lifetime });
        }
        pieces
    };
    let pieces: Vec<Vec<Piece>> = all.iter().map(cut).collect();
    let mut problem = Problem::new();
    for buffer in all {
        problem.add_buffer(buffer);
    }
    for b in 1..pieces.len() {
        for a in 0..b {
            for of_a in &pieces[a] {
                for of_b in &pieces[b] {
                    if of_a.lifetime.overlaps(of_b.lifetime)
                        && !of_a.bytes.is_empty()
                        && !of_b.bytes.is_empty()
                    {
                        let conflict = Conflict::of_ranges(of_a.bytes.clone(), of_b.bytes.clone());
                        problem.add_conflict(BufferId(a as u32), BufferId(b as u32), conflict)?;
                    }
                }
            }
        }
    }
    Ok((problem, pieces))
}

/// The buffers of [`buffers`], and more of them, alignment 1 and not fixed, so that as many bytes
/// are alive at each point in time: a placement at the liveness bound has no hole anywhere. Most
/// problems made of them have none, which is hard to prove.
pub fn filled(shape: &Shape, seed: u64) -> Vec<Buffer> {
    let mut filled = buffers(shape, seed);
    let alive = |filled: &[Buffer], time: i32| {
        let now = Lifetime::new(time, time);
        let alive = filled.iter().filter(|b| b.lifetime.overlaps(now));
        alive.map(|b| b.size).sum::<u64>()
    };
    let most = (0..shape.times).map(|time| alive(&filled, time)).max();
    let most = most.unwrap_or(0);
    for first in 0..shape.times {
        let missing = most - alive(&filled, first);
        if missing > 0 {
            // As long as it does not make any point higher than the highest.
            let mut last = first;
            while last + 1 < shape.times && alive(&filled, last + 1) + missing <= most {
                last += 1;
            }
            filled.push(Buffer::new(missing, Lifetime::new(first, last)));
        }
    }
    filled
}

/// A chain as in a network without branches, with a skip connection now and then: each buffer is
/// alive until the next one is written, some a few steps longer.
///
/// # Errors
/// As [`Problem::from_lifetimes`].
pub fn chain(length: usize, seed: u64) -> Result<Problem, Error> {
    let mut random = Random::new(seed);
    let buffers = (0..length as i32).map(|first| {
        let skip = if random.below(6) == 0 {
            random.below(12) as i32
        } else {
            0
        };
        let size = 16 * (1 + random.below(4096) as u64);
        Buffer {
            align: 16,
            ..Buffer::new(size, Lifetime::new(first, first + 1 + skip))
        }
    });
    Problem::from_lifetimes(buffers.collect())
}

/// A problem whose best height is known: a block of `width` points in time and `height` steps,
/// cut at random into `pieces` buffers that fill it without a hole. Few planners find it again.
///
/// # Errors
/// As [`Problem::from_lifetimes`].
pub fn cut_block(
    width: i32,
    height: u64,
    pieces: usize,
    step: u64,
    seed: u64,
) -> Result<Problem, Error> {
    let mut random = Random::new(seed);
    let mut cut: Vec<(i32, i32, u64)> = vec![(0, width, height)]; // first, points, steps
    while cut.len() < pieces {
        // Cut the piece with the greatest area, so that no piece stays huge.
        let area = |p: &(i32, i32, u64)| p.1 as u64 * p.2;
        let Some(at) = (0..cut.len()).max_by_key(|&i| (area(&cut[i]), i)) else {
            break;
        };
        let (first, points, steps) = cut.swap_remove(at);
        let across = steps < 2 || (points >= 2 && random.below(2) == 0);
        if across && points < 2 {
            cut.push((first, points, steps));
            break; // every piece is a single cell
        }
        if across {
            let left = 1 + random.below(points as usize - 1) as i32;
            cut.extend([(first, left, steps), (first + left, points - left, steps)]);
        } else {
            let low = 1 + random.below(steps as usize - 1) as u64;
            cut.extend([(first, points, low), (first, points, steps - low)]);
        }
    }
    for i in (1..cut.len()).rev() {
        cut.swap(i, random.below(i + 1));
    }
    let buffers = cut.into_iter().map(|(first, points, steps)| {
        Buffer::new(steps * step, Lifetime::new(first, first + points - 1))
    });
    Problem::from_lifetimes(buffers.collect())
}

/// Buffers with random sizes that are all alive at once.
///
/// # Errors
/// As [`Problem::from_lifetimes`].
pub fn all_at_once(count: usize, seed: u64) -> Result<Problem, Error> {
    let shape = Shape {
        buffers: count,
        times: 1,
        longest: 1,
        ..Shape::default()
    };
    intervals(
        &Shape {
            largest: 1000,
            step: 16,
            ..shape
        },
        seed,
    )
}

/// Buffers with random sizes of which no two are alive at once.
///
/// # Errors
/// As [`Problem::from_lifetimes`].
pub fn apart(count: usize, seed: u64) -> Result<Problem, Error> {
    let mut random = Random::new(seed);
    let buffers = (0..count as i32).map(|at| {
        let size = 16 * (1 + random.below(4096) as u64);
        Buffer::new(size, Lifetime::new(at, at))
    });
    Problem::from_lifetimes(buffers.collect())
}

/// Large problems, to measure time and memory with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Large {
    /// A [`chain`] of 5,000 buffers.
    Chain,
    /// 5,000 buffers [`apart`].
    Apart,
    /// 2,000 buffers [`all_at_once`].
    AtOnce,
    /// 300 random [`intervals`], about fifty of them alive at once: hard to prove.
    Intervals,
}

impl Large {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Chain, Self::Apart, Self::AtOnce, Self::Intervals];

    /// A name of one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::Apart => "apart",
            Self::AtOnce => "at-once",
            Self::Intervals => "intervals",
        }
    }

    /// The problem, always the same.
    ///
    /// # Errors
    /// None is known: the numbers are fixed.
    pub fn problem(self) -> Result<Problem, Error> {
        match self {
            Self::Chain => chain(5_000, 1),
            Self::Apart => apart(5_000, 1),
            Self::AtOnce => all_at_once(2_000, 1),
            Self::Intervals => {
                let shape = Shape {
                    buffers: 300,
                    times: 300,
                    longest: 100,
                    largest: 1000,
                    step: 16,
                    ..Shape::default()
                };
                intervals(&shape, 1)
            }
        }
    }
}

/// The same problem with its buffers in another order, and for each new id the old one.
pub fn shuffled(buffers: &[Buffer], seed: u64) -> (Vec<Buffer>, Vec<BufferId>) {
    let mut random = Random::new(seed);
    let mut ids: Vec<BufferId> = (0..buffers.len() as u32).map(BufferId).collect();
    for i in (1..ids.len()).rev() {
        ids.swap(i, random.below(i + 1));
    }
    (ids.iter().map(|id| buffers[id.index()]).collect(), ids)
}
