//! The planners `exact` and `auto` against exhaustive searches that share nothing with them: all
//! problems of a few buffers, random ones with all that conflicts allow, limits, and the order in
//! which buffers come.

// Helpers outside of test functions panic as well.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use arenaplan_solver::generate::{self, Shape};
use arenaplan_solver::{
    Buffer, BufferId, Conflict, Lifetime, Limits, Planner, Problem, Solution, Stop, check, solve,
    solve_within,
};
use common::random::{any_problem, rewritten};
use common::{best_height, is_circular, is_contradiction, lowest_height};

/// `exact` gives the best height with its proof, or says that fixed offsets contradict each other.
/// Problems that are circular need not be proven. Gives that height.
fn verify(problem: &Problem, what: &str) -> Option<u64> {
    let best = lowest_height(problem);
    let solution = match solve(problem, Planner::Exact, &Limits::default()) {
        Ok(solution) => solution,
        Err(error) => {
            assert!(is_contradiction(&error), "{what}: {error}");
            assert_eq!(best, None, "{what}: {error}");
            return None;
        }
    };
    let bounds = (solution.lower_bound, solution.placement.height);
    assert_eq!(check(problem, &solution.placement), [], "{what}");
    if is_circular(problem) && !solution.optimal() {
        assert!(
            Some(bounds.0) <= best && best <= Some(bounds.1),
            "{what}: {bounds:?}"
        );
        assert_eq!(solution.stopped, Some(Stop::Work), "{what}");
    } else {
        assert_eq!(Some(bounds), best.map(|best| (best, best)), "{what}");
        assert_eq!(solution.stopped, None, "{what}");
    }
    best
}

/// How many problems were looked at, in how many of them fixed offsets contradict each other, and
/// how many have a best height above the liveness bound: there a search must prove something.
#[derive(Debug, Default)]
struct Count {
    problems: usize,
    contradictory: usize,
    above: usize,
}

impl Count {
    fn verify(&mut self, problem: &Problem, what: &str) {
        let best = verify(problem, what);
        self.problems += 1;
        self.contradictory += usize::from(best.is_none());
        self.above += usize::from(best > Some(problem.liveness_bound()));
    }

    fn assert(&self, problems: usize, contradictory: usize, least_above: usize) {
        let counted = (self.problems, self.contradictory);
        assert_eq!(counted, (problems, contradictory), "{self:?}");
        assert!(self.above >= least_above, "{self:?}");
    }
}

/// All ways to pick one of `choices` for each of `count`, as indices.
fn all_choices(choices: usize, count: usize) -> impl Iterator<Item = Vec<usize>> {
    let digit = move |all: usize, place: usize| all / choices.pow(place as u32) % choices;
    (0..choices.pow(count as u32)).map(move |all| (0..count).map(|at| digit(all, at)).collect())
}

/// All sets of `count` lifetimes over `times` points in time, but for those that are the same as
/// others: something starts and something ends at each point, and something is alive from each
/// point to the next.
fn all_lifetimes(count: usize, times: i32) -> Vec<Vec<Lifetime>> {
    let single = |first: i32| (first..times).map(move |last| Lifetime::new(first, last));
    let single: Vec<Lifetime> = (0..times).flat_map(single).collect();
    let mut all = vec![Vec::new()];
    for _ in 0..count {
        let longer = |chosen: Vec<Lifetime>| {
            let from = chosen.last().copied();
            let next = single.iter().filter(move |&&l| Some(l) >= from);
            next.map(|&l| [&chosen[..], &[l]].concat())
                .collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all.retain(|chosen| {
        (0..times).all(|t| {
            chosen.iter().any(|l| l.first == t)
                && chosen.iter().any(|l| l.last == t)
                && (t + 1 == times || chosen.iter().any(|l| l.first <= t && t < l.last))
        })
    });
    all
}

/// All problems of up to six buffers of these kinds whose conflicts follow from lifetimes, up to
/// the order of buffers and the direction of time, that are no two problems side by side.
fn all_interval_problems(kinds: &[Buffer]) -> Count {
    let mut count = Count::default();
    for buffers in 1..=6 {
        for times in 1..=buffers as i32 {
            for lifetimes in all_lifetimes(buffers, times) {
                for chosen in all_choices(kinds.len(), buffers) {
                    let rows: Vec<_> = lifetimes.iter().copied().zip(chosen).collect();
                    let last = times - 1;
                    let turned = |l: Lifetime| Lifetime::new(last - l.last, last - l.first);
                    let mut other: Vec<_> = rows.iter().map(|r| (turned(r.0), r.1)).collect();
                    other.sort_unstable();
                    if !rows.is_sorted() || other < rows {
                        continue; // another order, or the other direction
                    }
                    let buffers = rows.iter().map(|&(lifetime, kind)| Buffer {
                        lifetime,
                        ..kinds[kind]
                    });
                    let problem = Problem::from_lifetimes(buffers.collect()).unwrap();
                    count.verify(&problem, &format!("{rows:?}"));
                }
            }
        }
    }
    count
}

/// A buffer whose lifetime does not matter, or not yet.
fn kind(size: u64, align: u64, fixed: Option<u64>) -> Buffer {
    Buffer {
        align,
        fixed,
        ..Buffer::new(size, Lifetime::new(0, 0))
    }
}

#[test]
fn all_small_problems_with_alignment() {
    let large = kind(3, 1, None);
    let kinds = [kind(1, 1, None), kind(2, 1, None), large, kind(1, 4, None)];
    all_interval_problems(&kinds).assert(147_981, 0, 10_000);
}

#[test]
fn all_small_problems_with_fixed_offsets() {
    let large = kind(3, 1, None);
    let kinds = [
        kind(1, 1, None),
        kind(2, 2, None),
        large,
        kind(1, 1, Some(1)),
    ];
    all_interval_problems(&kinds).assert(147_981, 44_787, 20_000);
}

/// All problems of three buffers of size 1 or 2 and alignment 1 or 2, up to their order, in which
/// each two have no conflict or one with separations of 0, 1 or 3. Lifetimes change nothing in
/// them, but the search makes use of lifetimes: all at once, or one after the other.
#[test]
fn all_small_problems_with_other_separations() {
    let kinds = [1, 2].map(|size| [1, 2].map(|align| kind(size, align, None)));
    let kinds = kinds.as_flattened();
    let mut count = Count::default();
    for chosen in all_choices(kinds.len(), 3).filter(|chosen| chosen.is_sorted()) {
        for pairs in all_choices(10, 3) {
            for step in [0, 1] {
                let mut problem = Problem::new();
                let ids = [0, 1, 2].map(|x| {
                    let time = step * x as i32;
                    problem.add_buffer(Buffer {
                        lifetime: Lifetime::new(time, time),
                        ..kinds[chosen[x]]
                    })
                });
                for (&pair, (a, b)) in pairs.iter().zip([(0, 1), (0, 2), (1, 2)]) {
                    if pair == 9 {
                        continue;
                    }
                    let conflict = Conflict {
                        a_below_b: [0, 1, 3][pair / 3],
                        b_below_a: [0, 1, 3][pair % 3],
                    };
                    problem.add_conflict(ids[a], ids[b], conflict).unwrap();
                }
                count.verify(&problem, &format!("{chosen:?} {pairs:?} times {step}"));
            }
        }
    }
    count.assert(40_000, 0, 10_000);
}

/// All problems of four buffers, of size 1, 1, 2 and 2, in which each two have no conflict, may
/// not share a byte, or may do so if one of them is the lower one, or may share one byte.
#[test]
fn all_small_problems_with_overlap() {
    let mut count = Count::default();
    let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    for chosen in all_choices(5, pairs.len()) {
        let mut problem = Problem::new();
        let ids = [1, 1, 2, 2].map(|size| problem.add_buffer(kind(size, 1, None)));
        for (&choice, (a, b)) in chosen.iter().zip(pairs) {
            let (a, b) = (ids[a], ids[b]);
            let [first, second] = [a, b].map(|id| problem.buffer(id).unwrap());
            let mut conflict = Conflict::disjoint(first, second);
            match choice {
                0 => continue,
                1 => {}
                2 => conflict.a_below_b = 0,
                3 => conflict.b_below_a = 0,
                _ => conflict.a_below_b -= 1,
            }
            problem.add_conflict(a, b, conflict).unwrap();
        }
        count.verify(&problem, &format!("{chosen:?}"));
    }
    count.assert(15_625, 0, 1_000);
}

#[test]
fn random_problems_of_up_to_nine_buffers() {
    let mut count = Count::default();
    for seed in 0..5000 {
        let problem = any_problem(2 + seed as usize % 8, seed);
        count.verify(&problem, &format!("seed {seed}"));
    }
    assert!(
        count.problems > 4500 && count.contradictory < 300,
        "{count:?}"
    );
    assert!(count.above > 1000, "{count:?}");
}

/// Two buffers at one offset, each there because of the other: nothing is proven wrongly.
#[test]
fn circles_of_different_alignments() {
    type Row = (u32, u32, i64, i64);
    let problem = |buffers: &[(u64, u64)], conflicts: &[Row]| {
        let mut problem = Problem::new();
        for &(size, align) in buffers {
            problem.add_buffer(kind(size, align, None));
        }
        for &(a, b, a_below_b, b_below_a) in conflicts {
            let conflict = Conflict {
                a_below_b,
                b_below_a,
            };
            let added = problem.add_conflict(BufferId(a), BufferId(b), conflict);
            added.unwrap();
        }
        problem
    };
    // 1 at 0, so 0 at 25 or more; 0 and 2 at the same offset, or further apart than it pays.
    let two = problem(
        &[(0, 1), (0, 1), (0, 6)],
        &[(1, 0, 25, 31), (0, 2, 0, 31), (0, 2, 6, 0)],
    );
    let three = problem(
        &[(5, 1), (0, 4), (5, 1), (2, 4)],
        &[
            (0, 1, 9, 0),
            (0, 2, 0, 5),
            (2, 1, 1, 1),
            (0, 3, 5, 0),
            (3, 2, 5, 0),
        ],
    );
    for (problem, best) in [(two, 30), (three, 9)] {
        assert!(is_circular(&problem));
        assert_eq!(verify(&problem, "circle"), Some(best));
        for capacity in [best, best + 1] {
            for planner in [Planner::Exact, Planner::Auto] {
                let solution = solve_within(&problem, planner, capacity, &Limits::default());
                assert_ne!(solution.unwrap().fits(capacity), Some(false), "{planner}");
            }
        }
    }
}

#[test]
fn two_ways_to_the_best_height_agree() {
    let mut compared = 0;
    for seed in 0..4000 {
        let problem = any_problem(2 + seed as usize % 4, seed);
        let best = lowest_height(&problem);
        if !is_circular(&problem) && best.is_some() {
            assert_eq!(best, Some(best_height(&problem)), "seed {seed}");
            compared += 1;
        }
    }
    assert!(compared > 3500, "only {compared}");
}

/// Problems whose best heights small trees do not prove.
fn hard_problems() -> Vec<Problem> {
    let filled = |seed| {
        let shape = Shape {
            buffers: 10 + seed as usize % 5,
            times: 10,
            longest: 5,
            largest: 20,
            ..Shape::default()
        };
        Problem::from_lifetimes(generate::filled(&shape, seed)).unwrap()
    };
    let aligned = |seed| {
        let shape = Shape {
            buffers: 14,
            times: 8,
            longest: 5,
            largest: 6,
            align: 4,
            ..Shape::default()
        };
        generate::intervals(&shape, seed).unwrap()
    };
    let problems = (0..20).map(filled).chain((0..20).map(aligned));
    problems.collect()
}

#[test]
fn capacities_around_the_best_height() {
    let mut proven = 0;
    let mut decide = |problem: &Problem, best: u64, what: &str| {
        let capacities = [
            0,
            best / 2,
            best.saturating_sub(1),
            best,
            best + 1,
            best + 15,
        ];
        for (capacity, planner) in capacities
            .iter()
            .flat_map(|&c| [(c, Planner::Exact), (c, Planner::Auto)])
        {
            let limits = Limits::default();
            let solution = solve_within(problem, planner, capacity, &limits).unwrap();
            let what = format!("{what}: best {best}, {planner} within {capacity}");
            assert_eq!(solution.fits(capacity), Some(capacity >= best), "{what}");
            assert!(
                solution.lower_bound <= best,
                "{what}: {}",
                solution.lower_bound
            );
            assert!(solution.placement.height >= best, "{what}");
            assert_eq!(solution.stopped, None, "{what}");
            assert_eq!(check(problem, &solution.placement), [], "{what}");
            let searched = (problem.liveness_bound()..best).contains(&capacity);
            proven += usize::from(searched);
        }
    };
    for seed in 10_000..12_000 {
        let problem = any_problem(2 + seed as usize % 7, seed);
        if !is_circular(&problem)
            && let Some(best) = lowest_height(&problem)
        {
            decide(&problem, best, &format!("seed {seed}"));
        }
    }
    for (index, problem) in hard_problems().iter().enumerate() {
        let best = solve(problem, Planner::Exact, &Limits::default()).unwrap();
        assert!(best.optimal(), "problem {index}");
        decide(problem, best.lower_bound, &format!("problem {index}"));
    }
    assert!(proven > 500, "only {proven} capacities to disprove");
}

#[test]
fn a_capacity_need_not_be_a_multiple_of_the_unit() {
    // Sizes are multiples of 16: 112 bytes alive at once, of which some need a multiple of 64.
    let alive = Lifetime::new(0, 1);
    let buffer = |size, align| Buffer {
        align,
        ..Buffer::new(size, alive)
    };
    let buffers = vec![buffer(16, 64), buffer(32, 64), buffer(64, 16)];
    let problem = Problem::from_lifetimes(buffers).unwrap();
    for planner in [Planner::Exact, Planner::Auto] {
        for capacity in 0..200 {
            let solution = solve_within(&problem, planner, capacity, &Limits::default()).unwrap();
            assert_eq!(
                solution.fits(capacity),
                Some(capacity >= 144),
                "{planner} {capacity}"
            );
        }
    }
}

#[test]
fn limits_give_the_best_found_and_a_bound() {
    const NODES: [u64; 14] = [
        0, 1, 2, 3, 5, 10, 30, 100, 200, 300, 500, 1000, 3000, 10_000,
    ];
    let mut ended = 0;
    for (index, problem) in hard_problems().iter().enumerate() {
        let whole = solve(problem, Planner::Exact, &Limits::default()).unwrap();
        let best = whole.lower_bound;
        let enough = Limits::default().with_nodes(whole.nodes);
        assert_eq!(solve(problem, Planner::Exact, &enough), Ok(whole));
        let greedy = solve(problem, Planner::Greedy, &Limits::default()).unwrap();
        for planner in [Planner::Exact, Planner::Auto] {
            let mut before: Option<Solution> = None;
            for nodes in NODES {
                let what = format!("problem {index}: {planner} with {nodes} nodes");
                let limits = Limits::default().with_nodes(nodes);
                let solution = solve(problem, planner, &limits).unwrap();
                let height = solution.placement.height;
                assert!((best..=greedy.placement.height).contains(&height), "{what}");
                assert!(
                    (problem.liveness_bound()..=best).contains(&solution.lower_bound),
                    "{what}"
                );
                assert_eq!(
                    solution.stopped,
                    (!solution.optimal()).then_some(Stop::Work),
                    "{what}"
                );
                assert!(solution.nodes <= nodes, "{what}: {}", solution.nodes);
                assert_eq!(check(problem, &solution.placement), [], "{what}");
                ended += usize::from(!solution.optimal());
                if let Some(before) = before {
                    assert!(height <= before.placement.height, "{what}");
                    assert!(solution.lower_bound >= before.lower_bound, "{what}");
                }
                before = Some(solution);
                let within = solve_within(problem, planner, best - 1, &limits).unwrap();
                let stopped = within.fits(best - 1).is_none();
                assert_eq!(within.stopped, stopped.then_some(Stop::Work), "{what}");
                assert!(within.nodes <= nodes, "{what}");
            }
        }
    }
    assert!(ended > 200, "only {ended} were ended by a limit");
}

#[test]
fn any_order_of_buffers_has_the_same_best_height() {
    for seed in 0..1000 {
        let problem = any_problem(2 + seed as usize % 8, seed);
        let other = rewritten(&problem, seed);
        let bounds = [&problem, &other].map(Problem::liveness_bound);
        assert_eq!(bounds[0], bounds[1], "seed {seed}");
        for planner in [Planner::Exact, Planner::Auto] {
            let what = format!("seed {seed}: {planner}");
            match [&problem, &other].map(|p| solve(p, planner, &Limits::default())) {
                [Ok(one), Ok(two)] => {
                    assert_eq!(one.lower_bound, two.lower_bound, "{what}");
                    let proven = one.optimal() && two.optimal();
                    assert!(proven || is_circular(&problem), "{what}");
                }
                both => assert!(both.iter().all(Result::is_err), "{what}: {both:?}"),
            }
        }
    }
}

/// Sizes, times and offsets of all buffers, whatever their order.
fn rows(problem: &Problem, solution: &Solution) -> Vec<(u64, Lifetime, Option<u64>, u64)> {
    let rows = problem.buffers().zip(&solution.placement.offsets);
    let rows = rows.map(|((_, b), &offset)| (b.size, b.lifetime, b.fixed, offset));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    rows
}

/// The greedy planner's ties are about the order of buffers, so nothing is said of a problem for
/// which nothing better is found.
#[test]
fn any_order_of_buffers_is_searched_in_the_same_way() {
    let mut compared = 0;
    let mut compare = |problem: &Problem, seed: u64, what: &str| {
        let other = rewritten(problem, seed);
        for planner in [Planner::Exact, Planner::Auto] {
            for nodes in [10, 100, 1000, 5000] {
                let what = format!("{what}: {planner} with {nodes} nodes, seed {seed}");
                let limits = Limits::default().with_nodes(nodes);
                let [one, two] = [problem, &other].map(|p| solve(p, planner, &limits).unwrap());
                if ![one.planner, two.planner].contains(&Planner::Greedy) {
                    assert_eq!(rows(problem, &one), rows(&other, &two), "{what}");
                    assert_eq!(one.lower_bound, two.lower_bound, "{what}");
                    assert_eq!(one.stopped, two.stopped, "{what}");
                    assert_eq!(one.nodes, two.nodes, "{what}");
                    compared += 1;
                }
            }
        }
    };
    for (index, problem) in hard_problems().iter().enumerate() {
        for seed in 0..4 {
            compare(problem, seed, &format!("problem {index}"));
        }
    }
    for seed in 0..60 {
        let shape = Shape {
            buffers: 30,
            times: 18,
            longest: 7,
            largest: 12,
            align: [1, 4][seed as usize % 2],
            ..Shape::default()
        };
        let problem = generate::intervals(&shape, seed).unwrap();
        compare(&problem, seed, &format!("intervals, seed {seed}"));
        let problem = generate::overlaps(&shape, seed).unwrap();
        compare(&problem, seed, &format!("overlaps, seed {seed}"));
    }
    assert!(compared > 1000, "only {compared}");
}

#[test]
fn neither_threads_nor_the_clock_matter() {
    let problems = hard_problems();
    let solve_all = |limits: &Limits| {
        let planners = [Planner::Exact, Planner::Auto];
        let solve = |problem| planners.map(|planner| solve(problem, planner, limits).unwrap());
        problems.iter().map(solve).collect::<Vec<_>>()
    };
    for nodes in [300, 3000] {
        let limits = Limits::default().with_nodes(nodes);
        let alone = solve_all(&limits);
        let together = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(|| solve_all(&limits)));
            threads.map(|thread| thread.join().unwrap())
        });
        for solutions in together {
            assert_eq!(solutions, alone);
        }
        let limits = limits.with_time(Duration::from_secs(3600));
        assert_eq!(
            solve_all(&limits),
            alone,
            "a time limit that is not reached"
        );
    }
}
