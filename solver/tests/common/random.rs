//! Random problems with all that conflicts allow, and the same problems written down differently.

use arenaplan_solver::generate::{self, Shape};
use arenaplan_solver::{Buffer, BufferId, Conflict, Lifetime, Problem};

/// A small generator (splitmix64; Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (x ^ (x >> 31)) % bound
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

/// Separations of 0, below the size and above it, several conflicts between two buffers, conflicts
/// between buffers that are never alive together, buffers that are and have none, buffers of size
/// 0, alignments that differ, fixed offsets.
pub(crate) fn tangled(buffers: usize, seed: u64) -> Problem {
    let mut random = Random(seed);
    let times = 1 + random.below(8);
    let longest = 1 + random.below(times);
    let largest = random.pick(&[1, 2, 3, 5, 8, 12]);
    let step = random.pick(&[1, 1, 1, 4, 16]);
    let aligns: &[u64] = random.pick(&[
        &[1],
        &[1],
        &[16],
        &[1, 4],
        &[1, 2, 4, 8],
        &[1, 4, 16, 64],
        &[1, 2, 3, 6],
    ]);
    let fixed_percent = random.pick(&[0, 0, 0, 10, 30]);
    let without_percent = random.pick(&[0, 0, 10, 40]);
    let apart_percent = random.pick(&[0, 0, 25]);
    let changed_percent = random.pick(&[0, 10, 30, 80]);
    let twice_percent = random.pick(&[0, 0, 16]);
    let mut problem = Problem::new();
    for _ in 0..buffers {
        let first = random.below(times);
        let last = (first + random.below(longest)).min(times - 1);
        let size = match random.below(12) {
            0 => 0,
            _ => (1 + random.below(largest)) * step,
        };
        let align = random.pick(aligns);
        let fixed = (random.below(2 * largest + 1) * step).next_multiple_of(align);
        problem.add_buffer(Buffer {
            size,
            align,
            lifetime: Lifetime::new(first as i32, last as i32),
            fixed: (random.below(100) < fixed_percent).then_some(fixed),
        });
    }
    let all: Vec<Buffer> = problem.buffers().map(|(_, b)| *b).collect();
    for y in 1..buffers {
        for x in 0..y {
            let (a, b) = random.pick(&[(x, y), (y, x)]);
            let missing = match all[a].lifetime.overlaps(all[b].lifetime) {
                true => without_percent,
                false => 100 - apart_percent,
            };
            if random.below(100) < missing {
                continue;
            }
            for _ in 0..=u64::from(random.below(100) < twice_percent) {
                let mut separation = |size: u64| -> i64 {
                    let bytes = match random.below(100) < changed_percent {
                        false => size,
                        true => match random.below(6) {
                            0 | 1 => 0,
                            2 | 3 => random.below(size + 1),
                            4 => size + random.below(4) * step,
                            _ => random.below(size / step + 1) * step,
                        },
                    };
                    bytes as i64
                };
                let conflict = Conflict {
                    a_below_b: separation(all[a].size),
                    b_below_a: separation(all[b].size),
                };
                let (a, b) = (BufferId(a as u32), BufferId(b as u32));
                problem.add_conflict(a, b, conflict).unwrap();
            }
        }
    }
    problem
}

/// A problem of this many buffers, in turn with conflicts from lifetimes, with some of them
/// changed, and [`tangled`].
pub(crate) fn any_problem(buffers: usize, seed: u64) -> Problem {
    let shape = Shape {
        buffers,
        times: 2 + (seed % 7) as i32,
        longest: 2 + (seed % 4) as i32,
        align: [1, 1, 4, 64][(seed / 3 % 4) as usize],
        step: [1, 1, 16][(seed / 12 % 3) as usize],
        fixed_percent: [0, 0, 0, 15][(seed / 36 % 4) as usize],
        ..Shape::default()
    };
    match seed % 3 {
        0 => generate::intervals(&shape, seed).unwrap(),
        1 => generate::overlaps(&shape, seed).unwrap(),
        _ => tangled(buffers, seed),
    }
}

/// The same problem with its buffers and conflicts in another order, and either buffer of a
/// conflict named first.
pub(crate) fn rewritten(problem: &Problem, seed: u64) -> Problem {
    let mut random = Random(seed);
    let mut old: Vec<(BufferId, Buffer)> = problem.buffers().map(|(id, b)| (id, *b)).collect();
    random.shuffle(&mut old);
    let mut conflicts: Vec<_> = problem.conflicts().collect();
    random.shuffle(&mut conflicts);
    let mut other = Problem::new();
    let mut new = vec![BufferId(0); old.len()];
    for (id, buffer) in old {
        new[id.index()] = other.add_buffer(buffer);
    }
    for (a, b, conflict) in conflicts {
        let (a, b) = (new[a.index()], new[b.index()]);
        let turned = Conflict {
            a_below_b: conflict.b_below_a,
            b_below_a: conflict.a_below_b,
        };
        let (a, b, conflict) = random.pick(&[(a, b, *conflict), (b, a, turned)]);
        other.add_conflict(a, b, conflict).unwrap();
    }
    other
}

/// Up to three conflicts between two buffers, with separations of both signs: holes of any width,
/// conflicts that forbid nothing, alignments that differ, fixed offsets.
pub(crate) fn signed(buffers: usize, seed: u64) -> Problem {
    let mut random = Random(seed);
    let largest = random.pick(&[2, 4, 7]);
    let aligns: &[u64] = random.pick(&[&[1], &[1], &[2], &[4], &[1, 2, 4], &[1, 2, 3]]);
    let fixed_percent = random.pick(&[0, 0, 20]);
    let most = random.pick(&[1, 2, 3]);
    let mut problem = Problem::new();
    for _ in 0..buffers {
        let align = random.pick(aligns);
        let fixed = random.below(2 * largest).next_multiple_of(align);
        let first = random.below(3) as i32;
        problem.add_buffer(Buffer {
            size: random.below(largest + 1),
            align,
            lifetime: Lifetime::new(first, first + random.below(3) as i32),
            fixed: (random.below(100) < fixed_percent).then_some(fixed),
        });
    }
    for b in 1..buffers {
        for a in 0..b {
            for _ in 0..random.below(most + 1) {
                let mut separation = || random.below(3 * largest) as i64 - largest as i64;
                let conflict = Conflict {
                    a_below_b: separation(),
                    b_below_a: separation(),
                };
                let (a, b) = random.pick(&[(a, b), (b, a)]);
                let (a, b) = (BufferId(a as u32), BufferId(b as u32));
                problem.add_conflict(a, b, conflict).unwrap();
            }
        }
    }
    problem
}
