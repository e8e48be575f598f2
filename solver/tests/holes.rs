//! Buffers made of pieces, which may lie in holes of each other: conflicts with separations of both
//! signs, several between two buffers. All planners against examples worked by hand and against
//! trying all offsets.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use arenaplan_solver::generate::{self, Piece, Shape};
use arenaplan_solver::{
    Buffer, BufferId, Conflict, Error, Lifetime, Limits, Placement, Planner, Problem, Solution,
    Violation, check, solve, solve_above, solve_within,
};
use common::random::{self, Random};

/// The range of bytes and the lifetime of a piece, as `(from, to, first, last)`.
type Row = (u64, u64, i32, i32);

/// The problem of buffers given by their pieces, all with the same alignment.
fn problem_of(align: u64, buffers: &[&[Row]]) -> Problem {
    let mut problem = Problem::new();
    for rows in buffers {
        let first = rows.iter().map(|r| r.2).min().unwrap();
        let last = rows.iter().map(|r| r.3).max().unwrap();
        let size = rows.iter().map(|r| r.1).max().unwrap();
        problem.add_buffer(Buffer {
            align,
            ..Buffer::new(size, Lifetime::new(first, last))
        });
    }
    for (b, of_b) in buffers.iter().enumerate() {
        for (a, of_a) in buffers[..b].iter().enumerate() {
            for p in *of_a {
                for q in *of_b {
                    if p.2 <= q.3 && q.2 <= p.3 {
                        let conflict = Conflict::of_ranges(p.0..p.1, q.0..q.1);
                        let (a, b) = (BufferId(a as u32), BufferId(b as u32));
                        problem.add_conflict(a, b, conflict).unwrap();
                    }
                }
            }
        }
    }
    problem
}

fn solved(problem: &Problem, planner: Planner) -> Solution {
    let solution = solve(problem, planner, &Limits::default()).unwrap();
    assert_eq!(check(problem, &solution.placement), [], "{planner}");
    solution
}

/// Each planner but the one without reuse finds the offsets, and the searches prove it.
#[track_caller]
fn expect(problem: &Problem, offsets: &[u64], height: u64) {
    for &planner in Planner::ALL.iter().filter(|&&p| p != Planner::Linear) {
        let solution = solved(problem, planner);
        assert_eq!(solution.placement.offsets, offsets, "{planner}");
        assert_eq!(solution.placement.height, height, "{planner}");
    }
    for planner in [Planner::Exact, Planner::Auto, Planner::Ilp] {
        assert!(solved(problem, planner).optimal(), "{planner}");
    }
}

#[test]
fn a_buffer_in_the_dead_rows_of_another() {
    // The first 60 bytes of a die before b is born.
    let problem = problem_of(1, &[&[(0, 60, 0, 1), (60, 100, 0, 3)], &[(0, 60, 2, 3)]]);
    let conflicts: Vec<_> = problem.conflicts().map(|(_, _, c)| *c).collect();
    let conflict = Conflict {
        a_below_b: 100,
        b_below_a: 0,
    };
    assert_eq!(conflicts, [conflict]);
    expect(&problem, &[0, 0], 100);
    // The last 40 die: b is 60 bytes above the start of a, which its separation does not reach.
    let problem = problem_of(1, &[&[(0, 60, 0, 3), (60, 100, 0, 1)], &[(0, 30, 2, 3)]]);
    expect(&problem, &[0, 60], 100);
    // Two of them share the dead rows, and the separation of b below a is negative.
    let rows: &[Row] = &[(0, 60, 0, 1), (60, 100, 0, 3)];
    let problem = problem_of(1, &[rows, &[(0, 35, 2, 3)], &[(0, 25, 2, 3)]]);
    assert_eq!(
        problem.conflicts().next().map(|(_, _, c)| c.b_below_a),
        Some(-25)
    );
    expect(&problem, &[0, 0, 35], 100);
}

#[test]
fn rows_that_die_while_others_are_born() {
    // Row r of a is read at r + 1 for the last time, slot r of b is written then. With b one row
    // below a each slot takes the row that died before: 5 rows instead of 8.
    let a: Vec<Row> = (0..4)
        .map(|r| (10 * r, 10 * r + 10, 0, r as i32 + 1))
        .collect();
    let b: Vec<Row> = (0..4)
        .map(|r| (10 * r, 10 * r + 10, r as i32 + 1, 6))
        .collect();
    let problem = problem_of(1, &[&a, &b]);
    for planner in [Planner::Exact, Planner::Auto, Planner::Ilp] {
        let solution = solved(&problem, planner);
        assert_eq!(solution.placement.offsets, [10, 0], "{planner}");
        assert!(solution.optimal(), "{planner}");
    }
}

#[test]
fn a_hole_in_the_middle() {
    let whole: &[Row] = &[(0, 50, 0, 5), (50, 80, 0, 1), (80, 130, 0, 5)];
    let exactly = problem_of(1, &[whole, &[(0, 30, 2, 5)]]);
    expect(&exactly, &[0, 50], 130);
    // A byte too much: there is no place but above, or below.
    let too_large = problem_of(1, &[whole, &[(0, 31, 2, 5)]]);
    for &planner in Planner::ALL {
        assert_eq!(
            solved(&too_large, planner).placement.height,
            161,
            "{planner}"
        );
    }
    // Multiples of 16 in the hole: 64 only, which leaves 16 bytes.
    expect(&problem_of(16, &[whole, &[(0, 16, 2, 5)]]), &[0, 64], 130);
    let no_room = problem_of(16, &[whole, &[(0, 17, 2, 5)]]);
    let best = solved(&no_room, Planner::Auto);
    // Below, with the other one at 32; above, it would end at 144 + 17.
    assert_eq!((best.placement.height, best.optimal()), (161, true));
}

#[test]
fn a_buffer_that_is_kept_up_by_what_lies_in_its_hole() {
    // a has a hole from 20 to 60; b is fixed at 50 and 30 long: a at 20 to 30, or wholly above.
    let mut problem = Problem::new();
    let a = problem.add_buffer(Buffer::new(100, Lifetime::new(0, 9)));
    let b = problem.add_buffer(Buffer {
        fixed: Some(50),
        ..Buffer::new(30, Lifetime::new(0, 9))
    });
    for range in [0..20, 60..100] {
        let conflict = Conflict::of_ranges(range, 0..30);
        problem.add_conflict(a, b, conflict).unwrap();
    }
    expect(&problem, &[20, 50], 120);
    let fits = |capacity| {
        let solution = solve_within(&problem, Planner::Auto, capacity, &Limits::default());
        solution.unwrap().fits(capacity)
    };
    assert_eq!((fits(119), fits(120)), (Some(false), Some(true)));
}

/// The ranges of offsets that the checker forbids, one by one.
#[test]
fn the_checker_knows_holes() {
    let whole: &[Row] = &[(0, 5, 0, 5), (5, 8, 0, 1), (8, 13, 0, 5)];
    let problem = problem_of(1, &[whole, &[(0, 2, 2, 5)]]);
    let allowed = |a: u64, b: u64| {
        let placement = Placement::from_offsets(&problem, vec![a, b]).unwrap();
        check(&problem, &placement).is_empty()
    };
    let free: Vec<u64> = (0..20).filter(|&b| allowed(3, b)).collect();
    assert_eq!(free, [0, 1, 8, 9, 16, 17, 18, 19]);
    let placement = Placement::from_offsets(&problem, vec![3, 10]).unwrap();
    let violations = check(&problem, &placement);
    assert_eq!(
        violations.iter().map(|v| v.to_string()).collect::<Vec<_>>(),
        [
            "buffers 0 at 3 and 1 at 10 are too close: expected 1 at least 13 bytes above 0, or 0 at most 6 \
             bytes below 1"
        ]
    );
}

#[test]
fn separations_of_any_size() {
    let two = |a_below_b, b_below_a| {
        let mut problem = Problem::new();
        let a = problem.add_buffer(Buffer::new(4, Lifetime::new(0, 1)));
        let b = problem.add_buffer(Buffer::new(4, Lifetime::new(0, 1)));
        let conflict = Conflict {
            a_below_b,
            b_below_a,
        };
        problem.add_conflict(a, b, conflict).unwrap();
        problem
    };
    let height = |problem: &Problem, planner| {
        solve(problem, planner, &Limits::default()).map(|s| s.placement.height)
    };
    for &planner in Planner::ALL.iter().filter(|&&p| p != Planner::Linear) {
        // Nothing is forbidden.
        for empty in [
            (i64::MIN, i64::MIN),
            (i64::MIN, i64::MAX),
            (i64::MAX, i64::MIN),
            (-5, 5),
            (-5, 6),
        ] {
            assert_eq!(height(&two(empty.0, empty.1), planner), Ok(4), "{planner}");
        }
        // Only a 6 above b is forbidden.
        assert_eq!(height(&two(-5, 7), planner), Ok(4), "{planner}");
        for huge in [(i64::MAX, 1), (i64::MAX, i64::MAX), (1, i64::MAX)] {
            let error = height(&two(huge.0, huge.1), planner);
            assert!(matches!(error, Err(Error::TooLarge { .. })), "{planner}");
        }
    }
}

/// Per pair and conflict, the differences of offsets that are forbidden, one by one.
fn is_allowed(problem: &Problem, a: usize, b: usize, difference: i64) -> bool {
    problem.conflicts().all(|(from, to, conflict)| {
        let difference = match (from.index(), to.index()) {
            ends if ends == (a, b) => difference,
            ends if ends == (b, a) => -difference,
            _ => return true,
        };
        !((1 - conflict.a_below_b)..conflict.b_below_a).contains(&difference)
    })
}

/// The lowest height over all offsets, by trying them; `None` if fixed offsets leave none.
fn lowest(problem: &Problem, above: u64, limit: u64) -> Option<u64> {
    let buffers: Vec<Buffer> = problem.buffers().map(|(_, b)| *b).collect();
    let n = buffers.len();
    // allowed[a][b][difference + limit]
    let span = |a: usize, b: usize| {
        let differences = -(limit as i64)..=limit as i64;
        let all = differences.map(|d| is_allowed(problem, a, b, d));
        all.collect::<Vec<bool>>()
    };
    let allowed: Vec<Vec<Vec<bool>>> = (0..n)
        .map(|a| (0..a).map(|b| span(a, b)).collect())
        .collect();
    fn go(
        buffers: &[Buffer],
        allowed: &[Vec<Vec<bool>>],
        offsets: &mut Vec<u64>,
        height: u64,
        limit: u64,
    ) -> bool {
        let a = offsets.len();
        let Some(buffer) = buffers.get(a) else {
            return true;
        };
        let Some(highest) = height.checked_sub(buffer.size) else {
            return false;
        };
        let range = match buffer.fixed {
            Some(fixed) if fixed > highest => return false,
            Some(fixed) => fixed..=fixed,
            None => 0..=highest,
        };
        for offset in range.step_by(buffer.align as usize) {
            let fits = |(b, &at): (usize, &u64)| allowed[a][b][(offset + limit - at) as usize];
            if offsets.iter().enumerate().all(fits) {
                offsets.push(offset);
                if go(buffers, allowed, offsets, height, limit) {
                    return true;
                }
                offsets.pop();
            }
        }
        false
    }
    (above..=limit).find(|&height| go(&buffers, &allowed, &mut Vec::new(), height, limit))
}

#[derive(Debug, Default)]
struct Count {
    problems: usize,
    signed: usize,
    searched: usize,
    above_greedy: usize,
    proven: [usize; 3],
}

/// All planners against the lowest height over all offsets. `bound` is known from elsewhere.
fn verify(problem: &Problem, bound: u64, what: &str, count: &mut Count) {
    let greedy = match solve(problem, Planner::Greedy, &Limits::default()) {
        Ok(solution) => solution.placement.height,
        Err(error) => {
            assert!(common::is_contradiction(&error), "{what}: {error}");
            return;
        }
    };
    let Some(best) = lowest(problem, 0, greedy) else {
        panic!("{what}: greedy at {greedy}, none found");
    };
    count.problems += 1;
    count.signed += usize::from(
        problem
            .conflicts()
            .any(|(_, _, c)| !c.is_empty() && c.a_below_b.min(c.b_below_a) < 0),
    );
    count.above_greedy += usize::from(best < greedy);
    assert!(problem.liveness_bound() <= best, "{what}: bound");
    assert!(bound <= best, "{what}: bound of pieces");
    for &planner in Planner::ALL {
        let solution = solve_above(problem, planner, bound, &Limits::default()).unwrap();
        let height = solution.placement.height;
        assert_eq!(check(problem, &solution.placement), [], "{what}: {planner}");
        assert!(
            height >= best,
            "{what}: {planner} at {height}, below {best}"
        );
        assert!(solution.lower_bound <= best, "{what}: {planner} bound");
        let search = [Planner::Exact, Planner::Auto, Planner::Ilp];
        if let Some(at) = search.iter().position(|&p| p == planner) {
            assert!(height <= greedy, "{what}: {planner}");
            count.proven[at] += usize::from(solution.optimal());
        }
        count.searched += usize::from(planner == Planner::Exact && solution.nodes > 0);
    }
    for capacity in [best.saturating_sub(1), best] {
        let solution = solve_within(problem, Planner::Auto, capacity, &Limits::default()).unwrap();
        let fits = solution.fits(capacity);
        assert!(
            fits.is_none_or(|fits| fits == (capacity >= best)),
            "{what}: {fits:?}"
        );
    }
}

#[test]
fn random_separations_of_both_signs() {
    let mut count = Count::default();
    for seed in 0..3000 {
        let problem = random::signed(2 + seed as usize % 4, seed);
        verify(&problem, 0, &format!("seed {seed}"), &mut count);
    }
    let Count { problems, .. } = count;
    assert!(
        problems > 2000 && count.signed * 10 > problems * 4,
        "{count:?}"
    );
    assert!(
        count.searched > 200 && count.above_greedy > 400,
        "{count:?}"
    );
    let [exact, auto, ilp] = count.proven;
    assert!(
        exact.min(auto) == problems && ilp * 100 >= problems * 97,
        "{count:?}"
    );
}

/// The most bytes of pieces in use at one time.
fn bytes_alive(pieces: &[Vec<Piece>]) -> u64 {
    let alive = |time: i32| {
        let all = pieces.iter().flatten();
        let now = all.filter(|p| p.lifetime.first <= time && time <= p.lifetime.last);
        now.map(|p| p.bytes.end - p.bytes.start).sum::<u64>()
    };
    (0..100).map(alive).max().unwrap_or(0)
}

/// That no byte belongs to two pieces at one time, byte by byte.
fn is_apart(pieces: &[Vec<Piece>], offsets: &[u64], height: u64) -> bool {
    (0..12).all(|time| {
        let mut taken = vec![false; height as usize];
        for (pieces, offset) in pieces.iter().zip(offsets) {
            let now = pieces
                .iter()
                .filter(|p| p.lifetime.first <= time && time <= p.lifetime.last);
            for byte in now.flat_map(|p| p.bytes.clone()) {
                if core::mem::replace(&mut taken[(offset + byte) as usize], true) {
                    return false;
                }
            }
        }
        true
    })
}

#[test]
fn random_pieces() {
    let mut count = Count::default();
    let (mut right, mut wrong) = (0, 0);
    for seed in 0..1500 {
        let shape = Shape {
            buffers: 2 + seed as usize % 4,
            times: 8,
            longest: 6,
            largest: 9,
            align: [1, 1, 2, 4][seed as usize / 4 % 4],
            ..Shape::default()
        };
        let (problem, pieces) = generate::pieces(&shape, seed).unwrap();
        verify(
            &problem,
            bytes_alive(&pieces),
            &format!("seed {seed}"),
            &mut count,
        );
        // The checker, and with it the conflicts, against bytes.
        let mut random = Random(seed);
        for _ in 0..20 {
            let offset = |(_, b): (BufferId, &Buffer)| random.below(12) / b.align * b.align;
            let offsets = problem.buffers().map(offset).collect();
            let placement = Placement::from_offsets(&problem, offsets).unwrap();
            let violations = check(&problem, &placement);
            let overlaps = |v: &Violation| matches!(v, Violation::Overlap { .. });
            let is_right = is_apart(&pieces, &placement.offsets, placement.height);
            assert_eq!(!violations.iter().any(overlaps), is_right, "seed {seed}");
            right += usize::from(is_right);
            wrong += usize::from(!is_right);
        }
    }
    assert!(right > 3000 && wrong > 3000, "{right} right, {wrong} wrong");
    let Count { problems, .. } = count;
    assert!(problems == 1500 && count.signed > 500, "{count:?}");
    assert!(
        count.searched > 100 && count.above_greedy > 200,
        "{count:?}"
    );
    let [exact, auto, ilp] = count.proven;
    assert!(
        exact.min(auto) == problems && ilp * 100 >= problems * 97,
        "{count:?}"
    );
}

/// Another order of the same buffers and conflicts changes no height that a search finds, and each
/// result is the same again.
#[test]
fn the_order_of_buffers_does_not_matter() {
    for seed in 0..60 {
        let shape = Shape {
            buffers: 25,
            times: 20,
            longest: 10,
            largest: 40,
            step: 16,
            align: 16,
            ..Shape::default()
        };
        let (problem, _) = generate::pieces(&shape, seed).unwrap();
        let limits = Limits::default().with_nodes(2000);
        let first = solve(&problem, Planner::Exact, &limits).unwrap();
        assert_eq!(first, solve(&problem, Planner::Exact, &limits).unwrap());
        let other = random::rewritten(&problem, seed);
        let second = solve(&other, Planner::Exact, &limits).unwrap();
        if first.optimal() && second.optimal() {
            assert_eq!(
                first.placement.height, second.placement.height,
                "seed {seed}"
            );
        }
        assert_eq!(first.optimal(), second.optimal(), "seed {seed}");
    }
}

/// The integer program and the search over sides share no proof: each is a test of the other.
#[test]
fn two_proofs_agree() {
    let (mut proven, mut searched) = (0, 0);
    for seed in 0..200 {
        let problem = random::signed(7 + seed as usize % 4, seed);
        let limits = Limits::default().with_nodes(3000);
        let Ok(exact) = solve(&problem, Planner::Exact, &limits) else {
            continue; // contradicting fixed offsets
        };
        let ilp = solve(&problem, Planner::Ilp, &limits).unwrap();
        for (one, other) in [(&exact, &ilp), (&ilp, &exact)] {
            let height = other.placement.height;
            assert!(one.lower_bound <= height, "seed {seed}: {one:?} {other:?}");
        }
        proven += usize::from(exact.optimal() && ilp.optimal());
        searched += usize::from(exact.nodes > 0);
    }
    assert!(
        proven > 100 && searched > 50,
        "{proven} proven, {searched} searched"
    );
}
