//! Large problems, and those of MiniMalloc: solved in a time that nobody minds. Run with
//! `--release -- --nocapture --test-threads 1` for the figures.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

use std::path::PathBuf;
use std::time::Instant;

use arenaplan_solver::generate::Large;
use arenaplan_solver::{Buffer, Limits, Planner, Problem, Solution, check, csv, greedy, solve};

/// Without optimisation it takes longer, and nobody plans that way.
const TIMED: bool = !cfg!(debug_assertions);

/// The most bytes alive at one time.
fn most_alive(problem: &Problem) -> u64 {
    let buffers: Vec<Buffer> = problem.buffers().map(|(_, b)| *b).collect();
    let mut changes: Vec<(i64, i128)> = Vec::new();
    for b in &buffers {
        let size = i128::from(b.size);
        changes.push((b.lifetime.first.into(), size));
        changes.push((i64::from(b.lifetime.last) + 1, -size));
    }
    changes.sort_unstable(); // at one time, ends come before starts
    let alive = changes.iter().scan(0, |alive, &(_, change)| {
        *alive += change;
        Some(*alive)
    });
    alive.max().unwrap_or(0) as u64
}

/// The most memory that this process had, in bytes, where the system tells.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[test]
fn large_problems() {
    for large in Large::ALL {
        let name = large.name();
        let start = Instant::now();
        let problem = large.problem().unwrap();
        let solution = solve(&problem, Planner::Auto, &Limits::default()).unwrap();
        let seconds = start.elapsed().as_secs_f64();
        // Of all problems so far together, so that each of them needed at most this.
        let peak = peak();
        let height = solution.placement.height;
        println!(
            "{name}: {seconds:.3} s, {:.0} MB, height {height}, bound {}",
            peak.unwrap_or(0) as f64 / 1e6,
            solution.lower_bound
        );
        assert!(!TIMED || seconds < 5.0, "{name}: {seconds} s");
        assert!(
            peak.is_none_or(|bytes| bytes < 500_000_000),
            "{name}: {peak:?}"
        );
        assert_eq!(check(&problem, &solution.placement), [], "{name}");

        let least = most_alive(&problem);
        assert!(solution.lower_bound >= least, "{name}");
        match large {
            Large::Intervals => assert!(height <= greedy(&problem).unwrap().height, "{name}"),
            _ => assert_eq!(height, least, "{name}"),
        }
    }
}

/// The capacity of MiniMalloc's problems.
const CAPACITY: u64 = 1 << 20;

/// MiniMalloc's problems, and the seconds that it needs for each.
const MINIMALLOC: [(&str, f64); 11] = [
    ("A", 7.3),
    ("B", 5.4),
    ("C", 1.1),
    ("D", 6.2),
    ("E", 5.2),
    ("F", 7.7),
    ("G", 1.6),
    ("H", 2.3),
    ("I", 5.3),
    ("J", 2.0),
    ("K", 0.7),
];

/// One of MiniMalloc's problems solved, with the seconds that it took; `None` without the folder.
fn minimalloc(name: &str, planner: Planner, capacity: Option<u64>) -> Option<(Solution, f64)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/problems");
    if !folder.is_dir() {
        println!("skipped: no folder ../shared/problems beside the project");
        return None;
    }
    let text = std::fs::read_to_string(folder.join(format!("{name}.{CAPACITY}.csv"))).unwrap();
    let start = Instant::now();
    let table = csv::parse(&text).unwrap();
    let solution = table.solve(planner, capacity, &Limits::default()).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{name}, {planner}: {seconds:.3} s, {} nodes, height {}, bound {}",
        solution.nodes, solution.placement.height, solution.lower_bound
    );
    assert_eq!(check(&table.problem, &solution.placement), [], "{name}");
    Some((solution, seconds))
}

#[test]
fn problems_of_minimalloc_in_less_than_its_time() {
    for planner in [Planner::Exact, Planner::Auto] {
        let mut sum = 0.0;
        for (name, most) in MINIMALLOC {
            let Some((solution, seconds)) = minimalloc(name, planner, Some(CAPACITY)) else {
                return;
            };
            assert_eq!(solution.fits(CAPACITY), Some(true), "{name}, {planner}");
            assert!(!TIMED || seconds < most, "{name}, {planner}: {seconds} s");
            sum += seconds;
        }
        println!("all, {planner}: {sum:.3} s");
        assert!(!TIMED || sum < 10.0, "{planner}: {sum} s");
    }
}

#[test]
fn problem_c_of_minimalloc_is_minimised() {
    for planner in [Planner::Exact, Planner::Auto] {
        let Some((solution, seconds)) = minimalloc("C", planner, None) else {
            return;
        };
        assert_eq!(solution.placement.height, 1_039_360, "{planner}");
        assert!(solution.optimal(), "{planner}");
        assert!(!TIMED || seconds < 1.0, "{planner}: {seconds} s");
    }
}
