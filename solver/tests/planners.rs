//! The planners against sources that share nothing with them: TFLM's rules written down again,
//! exhaustive search, and problems whose best height is known.

// Helpers outside of test functions panic as well.
#![allow(clippy::unwrap_used)]

mod common;

use arenaplan_solver::generate::{self, Shape};
use arenaplan_solver::{
    Buffer, BufferId, Conflict, Error, Lifetime, Limits, Placement, Planner, Problem, Violation,
    check, csv, greedy, solve,
};
use common::{Rows, allowed, best_height, is_contradiction, rows};

/// TFLM's greedy planner from its rules: fixed ones, then the rest by size, later ones first among
/// equals, each at the lowest offset that overlaps nothing alive with it.
fn greedy_by_the_rules(buffers: &[Buffer]) -> Vec<u64> {
    let mut offsets: Vec<Option<u64>> = buffers.iter().map(|b| b.fixed).collect();
    let free = buffers.iter().filter(|b| b.fixed.is_none()).count();
    for _ in 0..free {
        let mut next = None;
        for (index, buffer) in buffers.iter().enumerate() {
            let waits = offsets[index].is_none();
            if waits && next.is_none_or(|n: usize| buffer.size >= buffers[n].size) {
                next = Some(index);
            }
        }
        let next = next.unwrap();
        let wanted = buffers[next];
        let collides = |offset: u64| {
            buffers.iter().zip(&offsets).any(|(other, at)| {
                let together = wanted.lifetime.first <= other.lifetime.last
                    && other.lifetime.first <= wanted.lifetime.last;
                at.is_some_and(|at| {
                    together && offset + wanted.size > at && at + other.size > offset
                })
            })
        };
        offsets[next] = (0..).find(|&offset| !collides(offset));
    }
    offsets.into_iter().map(Option::unwrap).collect()
}

/// Whether some placement fits into `height`: every offset of every buffer is tried.
fn fits(problem: &Problem, rows: &Rows, height: u64, offsets: &mut Vec<Option<u64>>) -> bool {
    let Some(x) = offsets.iter().position(Option::is_none) else {
        return problem
            .buffers()
            .all(|(id, b)| offsets[id.index()].unwrap() + b.size <= height);
    };
    let buffer = *problem.buffer(BufferId(x as u32)).unwrap();
    for offset in (0..=height.saturating_sub(buffer.size)).step_by(buffer.align as usize) {
        if allowed(rows, x, offset, offsets) {
            offsets[x] = Some(offset);
            let found = fits(problem, rows, height, offsets);
            offsets[x] = None;
            if found {
                return true;
            }
        }
    }
    false
}

/// Few moves: small problems do not need more, and tests are not optimised.
fn limits() -> Limits {
    Limits::default().with_nodes(3000)
}

/// bound <= best <= every planner, auto <= greedy, and every placement passes the checker.
fn verify_against_brute_force(problem: &Problem, what: &str) -> bool {
    let bound = problem.liveness_bound();
    let first = solve(problem, Planner::Greedy, &limits());
    if let Err(error) = &first {
        assert!(is_contradiction(error), "{what}: {error}");
        return false;
    }
    let best = best_height(problem);
    assert!(
        bound <= best,
        "{what}: bound {bound} above the best height {best}"
    );
    for &planner in Planner::ALL {
        let limits = match planner {
            Planner::Exact => Limits::default(),
            _ => limits(),
        };
        let solution = solve(problem, planner, &limits).unwrap();
        let height = solution.placement.height;
        match planner {
            Planner::Exact => assert_eq!((height, solution.lower_bound), (best, best), "{what}"),
            Planner::Auto | Planner::Ilp => {
                assert!((bound..=best).contains(&solution.lower_bound), "{what}");
            }
            _ => assert_eq!(solution.lower_bound, bound, "{what}"),
        }
        assert!(
            height >= best,
            "{what}: {planner} gives {height}, impossible below {best}"
        );
        assert_eq!(check(problem, &solution.placement), [], "{what}: {planner}");
        let tops = problem
            .buffers()
            .zip(&solution.placement.offsets)
            .map(|((_, b), o)| o + b.size);
        assert_eq!(height, tops.max().unwrap_or(0), "{what}: {planner}");
        if matches!(planner, Planner::Auto | Planner::Ilp) {
            assert!(height <= first.as_ref().unwrap().placement.height, "{what}");
        }
    }
    true
}

#[test]
fn greedy_places_as_tflm_does() {
    for seed in 0..10_000 {
        let shape = Shape {
            buffers: 1 + seed as usize % 12,
            times: 1 + (seed % 9) as i32,
            largest: 1 + seed % 7,
            fixed_percent: [0, 0, 20, 60][seed as usize % 4],
            ..Shape::default()
        };
        let buffers = generate::buffers(&shape, seed);
        let expected = greedy_by_the_rules(&buffers);
        let placement = greedy(&Problem::from_lifetimes(buffers).unwrap()).unwrap();
        assert_eq!(placement.offsets, expected, "seed {seed}");
    }
}

#[test]
fn equal_sizes_go_to_the_higher_index_first() {
    // TFLM fills its list from the tail, and its sort keeps the order of equals.
    let at_once = Lifetime::new(0, 3);
    let buffers = [16, 32, 16, 32].map(|size| Buffer::new(size, at_once));
    let placement = greedy(&Problem::from_lifetimes(buffers.to_vec()).unwrap()).unwrap();
    assert_eq!(placement.offsets, [80, 32, 64, 0]);
}

#[test]
fn greedy_takes_contradictory_fixed_offsets_as_tflm_does() {
    let at = |size, offset| Buffer {
        fixed: offset,
        ..Buffer::new(size, Lifetime::new(0, 1))
    };
    // Two fixed ones that overlap, and a gap of 16 between the upper of them and a third.
    let buffers = vec![
        at(48, Some(0)),
        at(16, None),
        at(32, Some(32)),
        at(16, Some(80)),
    ];
    let problem = Problem::from_lifetimes(buffers).unwrap();
    assert_eq!(greedy(&problem).unwrap().offsets, [0, 64, 32, 80]);
    let expected = Error::FixedConflict {
        a: BufferId(0),
        b: BufferId(2),
    };
    assert_eq!(solve(&problem, Planner::Greedy, &limits()), Err(expected));
}

#[test]
fn small_interval_problems_against_brute_force() {
    let mut optimal = 0;
    for seed in 0..3000 {
        let shape = Shape {
            buffers: 2 + seed as usize % 6,
            times: 2 + (seed % 6) as i32,
            align: if seed % 3 == 0 { 4 } else { 1 },
            fixed_percent: if seed % 5 == 0 { 25 } else { 0 },
            ..Shape::default()
        };
        let problem = generate::intervals(&shape, seed).unwrap();
        if verify_against_brute_force(&problem, &format!("seed {seed}")) {
            optimal += 1;
        }
    }
    assert!(
        optimal > 2500,
        "only {optimal} problems had a solution to look at"
    );
}

#[test]
fn small_overlapping_problems_against_brute_force() {
    for seed in 0..3000 {
        let shape = Shape {
            buffers: 2 + seed as usize % 6,
            times: 2 + (seed % 5) as i32,
            align: if seed % 4 == 0 { 4 } else { 1 },
            fixed_percent: if seed % 5 == 0 { 25 } else { 0 },
            ..Shape::default()
        };
        let problem = generate::overlaps(&shape, seed).unwrap();
        verify_against_brute_force(&problem, &format!("seed {seed}"));
    }
}

#[test]
fn pushing_down_loses_nothing() {
    // What `best_height` builds on, checked without it: no offsets at all fit one byte lower.
    for seed in 0..150 {
        let shape = Shape {
            buffers: 2 + seed as usize % 4,
            times: 4,
            largest: 4,
            align: if seed % 3 == 0 { 2 } else { 1 },
            ..Shape::default()
        };
        let problem = generate::overlaps(&shape, seed).unwrap();
        let best = best_height(&problem);
        let rows = rows(&problem);
        let mut offsets = vec![None; problem.len()];
        assert!(fits(&problem, &rows, best, &mut offsets), "seed {seed}");
        assert!(
            best == 0 || !fits(&problem, &rows, best - 1, &mut offsets),
            "seed {seed}"
        );
    }
}

#[test]
fn auto_finds_most_best_heights() {
    // Random small problems are often above their bound, so this is about the search.
    let (mut found, mut total) = (0, 0);
    for seed in 10_000..10_400 {
        let shape = Shape {
            buffers: 7,
            times: 7,
            longest: 4,
            ..Shape::default()
        };
        let problem = generate::intervals(&shape, seed).unwrap();
        let solution = solve(&problem, Planner::Auto, &limits()).unwrap();
        total += 1;
        found += usize::from(solution.placement.height == best_height(&problem));
    }
    assert!(found * 100 >= total * 99, "{found} of {total}");
}

#[test]
fn the_bound_is_the_greatest_sum_alive() {
    for seed in 0..500 {
        let shape = Shape {
            buffers: 12,
            times: 9,
            largest: 20,
            ..Shape::default()
        };
        let buffers = generate::buffers(&shape, seed);
        let alive = |t: i32| {
            let alive = buffers
                .iter()
                .filter(|b| b.lifetime.first <= t && t <= b.lifetime.last);
            alive.map(|b| b.size).sum::<u64>()
        };
        let expected = (0..shape.times).map(alive).max().unwrap();
        let problem = Problem::from_lifetimes(buffers.clone()).unwrap();
        assert_eq!(problem.liveness_bound(), expected, "seed {seed}");
    }
}

#[test]
fn the_bound_counts_overlap_and_alignment() {
    let alive = Lifetime::new(0, 0);
    let mut problem = Problem::new();
    let input = problem.add_buffer(Buffer::new(100, alive));
    let output = problem.add_buffer(Buffer::new(100, alive));
    assert_eq!(
        problem.liveness_bound(),
        100,
        "without a conflict they may share all bytes"
    );
    let conflict = Conflict {
        a_below_b: 100,
        b_below_a: 20,
    };
    problem.add_conflict(input, output, conflict).unwrap();
    assert_eq!(
        problem.liveness_bound(),
        120,
        "the output may start 20 bytes below the input"
    );
    assert_eq!(
        solve(&problem, Planner::Auto, &limits())
            .unwrap()
            .placement
            .height,
        120
    );

    let three = [10, 10, 10].map(|size| Buffer {
        align: 16,
        ..Buffer::new(size, alive)
    });
    let problem = Problem::from_lifetimes(three.to_vec()).unwrap();
    assert_eq!(problem.liveness_bound(), 42, "at 0, 16 and 32");
    assert_eq!(
        solve(&problem, Planner::Auto, &limits())
            .unwrap()
            .placement
            .height,
        42
    );

    let fixed = Buffer {
        fixed: Some(1000),
        ..Buffer::new(24, alive)
    };
    let problem = Problem::from_lifetimes(vec![fixed]).unwrap();
    assert_eq!(problem.liveness_bound(), 1024);
}

#[test]
fn blocks_cut_to_pieces_have_a_known_best_height() {
    let mut reached = 0;
    for seed in 0..40 {
        let problem = generate::cut_block(12, 40, 14, 16, seed).unwrap();
        let solution = solve(&problem, Planner::Auto, &Limits::default()).unwrap();
        assert_eq!(
            solution.lower_bound, 640,
            "seed {seed}: nothing of the block is empty"
        );
        assert!(solution.placement.height >= 640);
        reached += usize::from(solution.optimal());
    }
    assert!(reached >= 38, "{reached} of 40");
}

#[test]
fn the_height_of_an_optimum_does_not_depend_on_the_order_of_buffers() {
    for seed in 0..30 {
        let shape = Shape {
            buffers: 25,
            times: 14,
            largest: 50,
            step: 16,
            ..Shape::default()
        };
        let buffers = generate::buffers(&shape, seed);
        let (other, _) = generate::shuffled(&buffers, seed + 1);
        let solve_one = |buffers| {
            let problem = Problem::from_lifetimes(buffers).unwrap();
            solve(&problem, Planner::Auto, &limits()).unwrap()
        };
        let (a, b) = (solve_one(buffers.clone()), solve_one(other));
        assert_eq!(a.lower_bound, b.lower_bound, "seed {seed}");
        if a.optimal() && b.optimal() {
            assert_eq!(a.placement.height, b.placement.height, "seed {seed}");
        }
        assert_eq!(a, solve_one(buffers), "seed {seed}: a second run differs");
    }
}

#[test]
fn planted_violations_are_found() {
    let mut planted = 0;
    for seed in 0..300 {
        let shape = Shape {
            buffers: 10,
            times: 6,
            largest: 9,
            ..Shape::default()
        };
        let problem = generate::overlaps(&shape, seed).unwrap();
        let good = solve(&problem, Planner::Auto, &limits()).unwrap().placement;
        let rows = rows(&problem);
        // Buffers that rest on another one: one byte lower must be an overlap with it.
        for (id, _) in problem.buffers() {
            let mut bad = good.clone();
            let Some(lower) = bad.offsets[id.index()].checked_sub(1) else {
                continue;
            };
            bad.offsets[id.index()] = lower;
            let others: Vec<Option<u64>> = good.offsets.iter().map(|&o| Some(o)).collect();
            let overlap = |v: &Violation| matches!(v, Violation::Overlap { a, b, .. } if *a == id || *b == id);
            let found = check(&problem, &bad);
            let expected = !allowed(&rows, id.index(), lower, &others);
            assert_eq!(
                found.iter().any(overlap),
                expected,
                "seed {seed}, buffer {id}"
            );
            assert_eq!(
                found.is_empty(),
                !expected,
                "seed {seed}, buffer {id}: {found:?}"
            );
            planted += usize::from(expected);
        }
    }
    assert!(planted > 500, "only {planted} violations planted");
}

#[test]
fn the_checker_names_every_kind() {
    let alive = Lifetime::new(0, 0);
    let buffers = vec![
        Buffer {
            align: 8,
            ..Buffer::new(8, alive)
        },
        Buffer {
            fixed: Some(32),
            ..Buffer::new(8, alive)
        },
        Buffer::new(8, alive),
        Buffer::new(8, alive),
    ];
    let problem = Problem::from_lifetimes(buffers).unwrap();
    let placement = Placement {
        offsets: vec![4, 33, 10, u64::MAX],
        height: 40,
    };
    let id = BufferId;
    let overlap = |a, b, offset_a, offset_b| {
        let (a_below_b, b_below_a) = (8, 8);
        Violation::Overlap {
            a: id(a),
            b: id(b),
            offset_a,
            offset_b,
            a_below_b,
            b_below_a,
        }
    };
    let expected = [
        Violation::Misaligned {
            id: id(0),
            offset: 4,
            align: 8,
        },
        Violation::NotAtFixed {
            id: id(1),
            offset: 33,
            fixed: 32,
        },
        Violation::HeightTooSmall {
            id: id(1),
            end: 41,
            height: 40,
        },
        Violation::HeightTooSmall {
            id: id(3),
            end: u128::from(u64::MAX) + 8,
            height: 40,
        },
        overlap(0, 2, 4, 10),
    ];
    assert_eq!(check(&problem, &placement), expected);
    let short = Placement {
        offsets: vec![0, 32, 8],
        height: 40,
    };
    assert_eq!(
        check(&problem, &short),
        [Violation::MissingOffset { id: id(3) }]
    );
    let long = Placement {
        offsets: vec![0, 32, 8, 16, 24],
        height: 40,
    };
    assert_eq!(
        check(&problem, &long),
        [Violation::ExtraOffsets {
            offsets: 5,
            buffers: 4
        }]
    );
}

#[test]
fn hostile_numbers_are_errors() {
    let alive = Lifetime::new(i32::MIN, i32::MAX);
    let huge = Buffer::new(u64::MAX, alive);
    let large = Buffer::new(Problem::MAX_BYTES / 2, alive);
    let id = BufferId;
    for (buffers, at) in [
        (vec![huge], 0),
        (vec![large, large, large], 1), // the alignments count as well
        (
            vec![Buffer {
                fixed: Some(u64::MAX),
                ..Buffer::new(1, alive)
            }],
            0,
        ),
        (
            vec![
                Buffer::new(1, alive),
                Buffer {
                    align: u64::MAX,
                    ..Buffer::new(1, alive)
                },
            ],
            1,
        ),
    ] {
        let error = Problem::from_lifetimes(buffers.clone()).unwrap_err();
        assert_eq!(error, Error::TooLarge { id: id(at) });
        let mut problem = Problem::new();
        for buffer in buffers {
            problem.add_buffer(buffer);
        }
        assert_eq!(
            solve(&problem, Planner::Auto, &limits()),
            Err(error.clone())
        );
        assert_eq!(greedy(&problem), Err(error));
        assert_eq!(problem.liveness_bound(), 0);
    }
    let zero = Buffer {
        align: 0,
        ..Buffer::new(1, alive)
    };
    assert_eq!(
        Problem::from_lifetimes(vec![zero]).unwrap_err(),
        Error::ZeroAlignment { id: id(0) }
    );
    let inverted = Buffer::new(1, Lifetime::new(3, 2));
    let error = Error::InvertedLifetime {
        id: id(0),
        first: 3,
        last: 2,
    };
    assert_eq!(Problem::from_lifetimes(vec![inverted]).unwrap_err(), error);
    let mut problem = Problem::new();
    problem.add_buffer(inverted);
    assert_eq!(problem.validate(), Err(error));
    let many = vec![Buffer::new(1, alive); 100_000];
    assert_eq!(
        Problem::from_lifetimes(many).unwrap_err(),
        Error::TooManyConflicts {
            count: 100_000 * 99_999 / 2
        }
    );
}

#[test]
fn conflicts_need_two_buffers_that_exist() {
    let mut problem = Problem::new();
    let a = problem.add_buffer(Buffer::new(1, Lifetime::new(0, 0)));
    let conflict = Conflict {
        a_below_b: 1,
        b_below_a: 1,
    };
    assert_eq!(
        problem.add_conflict(a, a, conflict),
        Err(Error::SelfConflict { id: a })
    );
    let id = BufferId(1);
    let unknown = Error::UnknownBuffer { id, len: 1 };
    assert_eq!(problem.add_conflict(a, id, conflict), Err(unknown));
}

#[test]
fn no_buffers_and_empty_buffers() {
    for sizes in [vec![], vec![0], vec![0, 0, 0]] {
        let alive = Lifetime::new(-1, -1);
        let buffers: Vec<Buffer> = sizes.iter().map(|&size| Buffer::new(size, alive)).collect();
        let problem = Problem::from_lifetimes(buffers).unwrap();
        for &planner in Planner::ALL {
            let solution = solve(&problem, planner, &limits()).unwrap();
            assert_eq!(solution.placement.height, 0);
            assert!(solution.optimal());
        }
    }
}

#[test]
fn planners_have_names() {
    for &planner in Planner::ALL {
        assert_eq!(planner.to_string().parse(), Ok(planner));
    }
    let error = "fastest".parse::<Planner>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "no planner is called \"fastest\", expected one of linear, greedy, best-fit, exact, ilp, auto"
    );
}

/// The problems in testdata: how they were made, and what an independent implementation of TFLM's
/// rules and of the liveness bound says about them: `(name, problem, greedy height, bound)`.
fn files() -> Vec<(&'static str, Problem, u64, u64)> {
    let branches = Shape {
        buffers: 80,
        times: 50,
        longest: 12,
        largest: 1000,
        step: 16,
        ..Shape::default()
    };
    let fixed = Shape {
        buffers: 40,
        fixed_percent: 15,
        ..branches.clone()
    };
    vec![
        ("chain", generate::chain(60, 1).unwrap(), 284_992, 275_008),
        (
            "branches",
            generate::intervals(&branches, 1).unwrap(),
            132_480,
            114_960,
        ),
        (
            "fixed",
            generate::intervals(&fixed, 3).unwrap(),
            83_232,
            74_128,
        ),
        (
            "block",
            generate::cut_block(20, 64, 24, 64, 1).unwrap(),
            5_696,
            4_096,
        ),
    ]
}

#[test]
fn problem_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/problems");
    if std::env::var_os("UPDATE_PROBLEMS").is_some() {
        for (name, made, ..) in files() {
            std::fs::write(format!("{folder}/{name}.csv"), csv::write(&made)).unwrap();
        }
    }
    for (name, made, greedy_height, bound) in files() {
        let path = format!("{folder}/{name}.csv");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            csv::write(&made),
            "{name}: the generator makes something else"
        );
        let problem = csv::parse(&text).unwrap().problem;
        assert_eq!(greedy(&problem).unwrap().height, greedy_height, "{name}");
        assert_eq!(problem.liveness_bound(), bound, "{name}");
        match solve(&problem, Planner::Auto, &Limits::default().with_nodes(3000)) {
            Ok(solution) => assert!(solution.optimal(), "{name}: {}", solution.placement.height),
            Err(error) => assert!(
                name == "fixed" && is_contradiction(&error),
                "{name}: {error}"
            ),
        }
    }
}
