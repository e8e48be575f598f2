//! The integer program against exhaustive search, and against packings of loads without a gap.

// Helpers outside of test functions panic as well.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use arenaplan_solver::generate::{self, Shape};
use arenaplan_solver::{
    Buffer, Conflict, Lifetime, Limits, Planner, Problem, Solution, Stop, solve, solve_within,
};
use common::{best_height, is_contradiction};

fn ilp(problem: &Problem) -> Solution {
    solve(problem, Planner::Ilp, &Limits::default()).unwrap()
}

/// Problems of these seeds are proven to be as high as exhaustive search says.
fn verify_against_brute_force(make: impl Fn(&Shape, u64) -> Problem, seeds: Range<u64>) {
    let mut above_bound = 0;
    for seed in seeds.clone() {
        let shape = Shape {
            buffers: 2 + seed as usize % 6,
            times: 2 + (seed % 5) as i32,
            largest: 1 + seed % 13,
            align: [1, 1, 4, 16][seed as usize % 4],
            fixed_percent: if seed % 5 == 0 { 25 } else { 0 },
            ..Shape::default()
        };
        let problem = make(&shape, seed);
        let solution = match solve(&problem, Planner::Ilp, &Limits::default()) {
            Ok(solution) => solution,
            Err(error) => {
                assert!(is_contradiction(&error), "seed {seed}: {error}");
                continue;
            }
        };
        let best = best_height(&problem);
        assert_eq!(solution.placement.height, best, "seed {seed}");
        assert_eq!(solution.lower_bound, best, "seed {seed}: not proven");
        assert_eq!(solution.stopped, None, "seed {seed}");
        above_bound += u64::from(best > problem.liveness_bound());
    }
    let total = seeds.end - seeds.start;
    assert!(
        above_bound * 10 > total,
        "{above_bound} of {total} above their bound"
    );
}

#[test]
fn small_interval_problems_are_proven() {
    verify_against_brute_force(
        |shape, seed| generate::intervals(shape, seed).unwrap(),
        0..1500,
    );
}

#[test]
fn small_overlapping_problems_are_proven() {
    verify_against_brute_force(
        |shape, seed| generate::overlaps(shape, seed).unwrap(),
        0..1500,
    );
}

#[test]
fn several_conflicts_between_two_buffers_all_hold() {
    let make = |shape: &Shape, seed| {
        // Two conflicts can ask two buffers to be at one offset. Pushing down one by one, as the
        // exhaustive search does, then finds the best height only without alignments.
        let shape = Shape {
            align: 1,
            ..shape.clone()
        };
        let buffers = generate::buffers(&shape, seed);
        let full = Problem::from_lifetimes(buffers.clone()).unwrap();
        let mut problem = Problem::new();
        for buffer in buffers {
            problem.add_buffer(buffer);
        }
        let mut random = Random(seed | 1);
        for (a, b, conflict) in full.conflicts() {
            for _ in 0..1 + random.below(2) {
                let conflict = Conflict {
                    a_below_b: random.below(conflict.a_below_b as u64 + 2) as i64,
                    b_below_a: random.below(conflict.b_below_a as u64 + 2) as i64,
                };
                problem.add_conflict(a, b, conflict).unwrap();
            }
        }
        problem
    };
    verify_against_brute_force(make, 0..1500);
}

/// A small generator (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// About `count` buffers of which `load` bytes are alive at each point in time: some end, and
/// others of the same size together start. Only a packing without any gap is as low as the load,
/// and there often is none.
fn full_load(count: usize, load: u64, seed: u64) -> Vec<Buffer> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let (mut ended, mut alive) = (Vec::new(), Vec::new());
    let mut free = load;
    for time in 0.. {
        for started in 1.. {
            if free == 0 {
                break;
            }
            let size = if started < 4 {
                1 + random.below(free)
            } else {
                free
            };
            alive.push(Buffer::new(size, Lifetime::new(time, time)));
            free -= size;
        }
        if ended.len() + alive.len() >= count {
            break;
        }
        for mut buffer in std::mem::take(&mut alive) {
            if random.below(100) < 40 {
                free += buffer.size;
                ended.push(buffer);
            } else {
                buffer.lifetime.last += 1;
                alive.push(buffer);
            }
        }
    }
    ended.extend(alive);
    ended
}

/// Whether the buffers can be packed into `height`, from the bottom up: at the lowest place of the
/// skyline, the leftmost of equals, either a buffer lies or a byte is wasted. With a full load few
/// bytes may be wasted, so this ends soon; it has nothing in common with the planners.
fn packs(buffers: &[Buffer], height: u64) -> bool {
    struct Packer<'a> {
        buffers: &'a [Buffer],
        skyline: Vec<u64>,
        /// Bytes that may still be wasted at each point in time.
        waste: Vec<u64>,
        failed: HashSet<(u32, Vec<u64>)>,
    }
    impl Packer<'_> {
        /// `left` has a bit for each buffer that is to be packed.
        fn go(&mut self, left: u32) -> bool {
            if left == 0 {
                return true;
            }
            if self.failed.contains(&(left, self.skyline.clone())) {
                return false;
            }
            let level = *self.skyline.iter().min().unwrap();
            let low = self.skyline.iter().position(|&s| s == level).unwrap();
            for x in (0..self.buffers.len()).filter(|x| left >> x & 1 == 1) {
                let lifetime = self.buffers[x].lifetime;
                let span = lifetime.first as usize..lifetime.last as usize + 1;
                let flat = |skyline: &[u64]| skyline.iter().all(|&s| s == level);
                if span.contains(&low) && flat(&self.skyline[span.clone()]) {
                    self.skyline[span.clone()].fill(level + self.buffers[x].size);
                    let fits = self.go(left & !(1 << x));
                    self.skyline[span].fill(level);
                    if fits {
                        return true;
                    }
                }
            }
            if self.waste[low] > 0 {
                self.waste[low] -= 1;
                self.skyline[low] += 1;
                let fits = self.go(left);
                self.skyline[low] -= 1;
                self.waste[low] += 1;
                if fits {
                    return true;
                }
            }
            self.failed.insert((left, self.skyline.clone()));
            false
        }
    }
    let last = buffers.iter().map(|b| b.lifetime.last).max().unwrap();
    let load = |time: i32| {
        let alive = |b: &&Buffer| b.lifetime.overlaps(Lifetime::new(time, time));
        buffers.iter().filter(alive).map(|b| b.size).sum::<u64>()
    };
    let mut packer = Packer {
        buffers,
        skyline: vec![0; last as usize + 1],
        waste: (0..=last).map(|time| height - load(time)).collect(),
        failed: HashSet::new(),
    };
    packer.go((1 << buffers.len()) - 1)
}

/// Full loads of some 15 buffers that the fast planners leave above their bound, and the heights
/// that are proven for them.
fn above_their_bound(seeds: Range<u64>) -> Vec<(Vec<Buffer>, Problem, u64)> {
    let mut found = Vec::new();
    for seed in seeds {
        let buffers = full_load(15, 1000, seed);
        let problem = Problem::from_lifetimes(buffers.clone()).unwrap();
        let solution = ilp(&problem);
        assert!(solution.optimal(), "seed {seed}: {solution:?}");
        assert_eq!(solution.stopped, None, "seed {seed}");
        if solution.placement.height > 1000 {
            found.push((buffers, problem, solution.placement.height));
        }
    }
    found
}

#[test]
fn fifteen_buffers_above_their_bound_are_proven() {
    let found = above_their_bound(0..60);
    assert!(found.len() >= 4, "only {} found", found.len());
    for (buffers, problem, height) in found {
        assert!(buffers.len() >= 15);
        // The higher ones take long to pack.
        if height <= 1003 {
            assert!(packs(&buffers, height), "{buffers:?} in {height}");
            assert!(
                !packs(&buffers, height - 1),
                "{buffers:?} in {}",
                height - 1
            );
        }
        for (capacity, fits) in [(height - 1, false), (height, true)] {
            let limits = Limits::default();
            let solution = solve_within(&problem, Planner::Ilp, capacity, &limits).unwrap();
            assert_eq!(solution.fits(capacity), Some(fits), "{buffers:?}");
            assert_eq!(solution.stopped, None);
        }
    }
}

#[test]
fn never_above_greedy() {
    let limits = Limits::default().with_nodes(1000);
    let (mut lower, mut stopped) = (0, 0);
    for seed in 0..120 {
        let shape = Shape {
            buffers: 10 + seed as usize % 50,
            times: 10 + (seed % 20) as i32,
            longest: 2 + (seed % 9) as i32,
            largest: [10, 1000][seed as usize % 2],
            align: [1, 1, 16][seed as usize % 3],
            ..Shape::default()
        };
        let problem = match seed % 4 {
            0 => generate::intervals(&shape, seed),
            1 => generate::overlaps(&shape, seed),
            2 => generate::cut_block(12, 900, 15 + seed as usize % 40, 1, seed),
            _ => Problem::from_lifetimes(full_load(15 + seed as usize % 20, 500, seed)),
        };
        let problem = problem.unwrap();
        let greedy = solve(&problem, Planner::Greedy, &limits).unwrap();
        let solution = solve(&problem, Planner::Ilp, &limits).unwrap();
        let height = solution.placement.height;
        assert!(height <= greedy.placement.height, "seed {seed}");
        assert!(greedy.lower_bound <= solution.lower_bound, "seed {seed}");
        assert!(solution.lower_bound <= height, "seed {seed}");
        assert!(solution.nodes <= 1000, "seed {seed}");
        assert_eq!(
            solution.stopped,
            (!solution.optimal()).then_some(Stop::Work),
            "seed {seed}"
        );
        lower += usize::from(height < greedy.placement.height);
        stopped += usize::from(solution.stopped.is_some());
    }
    assert!(lower > 50, "{lower} below greedy");
    assert!(stopped > 25, "{stopped} stopped");
}

#[test]
fn limits_keep_the_best_placement_and_no_false_bound() {
    let found = above_their_bound(0..16);
    assert!(found.len() >= 2);
    for (_, problem, height) in &found {
        for nodes in [0, 1000, 16_000] {
            let limits = Limits::default().with_nodes(nodes);
            let solution = solve(problem, Planner::Ilp, &limits).unwrap();
            assert!(solution.placement.height >= *height);
            assert!((1000..=*height).contains(&solution.lower_bound));
            assert!(solution.nodes <= nodes);
            if !solution.optimal() {
                assert_eq!(solution.stopped, Some(Stop::Work), "{nodes} nodes");
            }
            let again = solve(problem, Planner::Ilp, &limits).unwrap();
            assert_eq!(solution, again, "{nodes} nodes: a second run differs");
        }
        let limits = Limits::default().with_time(Duration::ZERO);
        let solution = solve(problem, Planner::Ilp, &limits).unwrap();
        assert_eq!(solution.stopped, Some(Stop::Time));
        assert_eq!(solution.lower_bound, 1000);
    }
}

#[test]
fn large_parts_are_left_as_they_are() {
    for (pieces, seed) in [(80, 1), (400, 2)] {
        let problem = generate::cut_block(60, 1000, pieces, 16, seed).unwrap();
        let solution = ilp(&problem);
        assert_eq!(solution.lower_bound, 16_000, "{pieces}");
        assert_ne!(solution.planner, Planner::Ilp, "{pieces}");
        assert!(solution.placement.height > 16_000, "{pieces}");
        assert_eq!(solution.stopped, Some(Stop::Work), "{pieces}");
    }
}

#[test]
fn a_large_part_does_not_keep_a_small_one_from_its_best_height() {
    // The small part is the higher one, so its proof is the proof of the whole.
    let (buffers, _, height) = above_their_bound(0..3).remove(0);
    let small = buffers.len();
    let end = buffers.iter().map(|b| b.lifetime.last).max().unwrap();
    let large = generate::cut_block(60, 700, 400, 1, 1).unwrap();
    let later = large.buffers().map(|(_, buffer)| {
        let Lifetime { first, last } = buffer.lifetime;
        Buffer::new(buffer.size, Lifetime::new(first + end + 1, last + end + 1))
    });
    let problem = Problem::from_lifetimes(buffers.iter().copied().chain(later).collect()).unwrap();
    assert!(problem.len() > 300 + small);
    let solution = ilp(&problem);
    assert_eq!(solution.placement.height, height);
    assert!(solution.optimal());
    assert_eq!(solution.stopped, None);
}
