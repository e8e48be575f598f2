//! Best heights that OR-tools proved, of problems whose best height is above the bytes alive at once.
//!
//! `testdata/optima.csv` has a row per problem: what `arenaplan_solver::generate` makes it
//! from, the most bytes alive at once (or the top of a fixed buffer), and the best height.
//! `tests/oracle/optima.py` writes it.

// Helpers outside of test functions panic as well.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use arenaplan_solver::generate::{self, Shape};
use arenaplan_solver::{Limits, Planner, Problem, Stop, check, csv, solve, solve_within};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/optima.csv");

/// How many of them default limits leave open at most.
const OPEN: usize = 1;

struct Row {
    /// The row as text.
    line: String,
    problem: Problem,
    /// The bytes alive at once and the best height, if the row has them.
    known: Option<(u64, u64)>,
}

/// The rows of a table: `kind,buffers,times,longest,largest,step,align,fixed_percent,seed`, perhaps
/// followed by `bound,optimum`.
fn read(path: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(path).unwrap();
    let row = |line: &str| {
        let (kind, numbers) = line.split_once(',').unwrap();
        let numbers: Vec<u64> = numbers.split(',').map(|n| n.parse().unwrap()).collect();
        let shape = Shape {
            buffers: numbers[0] as usize,
            times: numbers[1] as i32,
            longest: numbers[2] as i32,
            largest: numbers[3],
            step: numbers[4],
            align: numbers[5],
            fixed_percent: numbers[6],
        };
        let buffers = match kind {
            "intervals" => generate::buffers(&shape, numbers[7]),
            "filled" => generate::filled(&shape, numbers[7]),
            _ => panic!("unknown kind in {line}"),
        };
        Row {
            line: line.to_owned(),
            problem: Problem::from_lifetimes(buffers).unwrap(),
            known: numbers.get(8).map(|&bound| (bound, numbers[9])),
        }
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn exact_gives_the_optima_that_or_tools_proved() {
    let rows = read(Path::new(TABLE));
    assert!(rows.len() >= 100);
    let mut open = Vec::new();
    for Row {
        line,
        problem,
        known,
    } in &rows
    {
        let (bound, best) = known.unwrap();
        // It also counts what alignments take, which the table does not.
        let liveness = problem.liveness_bound();
        assert!(bound <= liveness && liveness <= best, "{line}: {liveness}");
        let solution = solve(problem, Planner::Exact, &Limits::default()).unwrap();
        let bounds = (solution.lower_bound, solution.placement.height);
        assert!(bounds.0 <= best && bounds.1 >= best, "{line}: {bounds:?}");
        assert_eq!(check(problem, &solution.placement), [], "{line}");
        if solution.optimal() {
            assert_eq!(solution.stopped, None, "{line}");
        } else {
            assert_eq!(solution.stopped, Some(Stop::Work), "{line}");
            open.push(format!("{line}: {bounds:?}"));
        }
    }
    assert!(open.len() <= OPEN, "{} not proven: {open:#?}", open.len());
}

#[test]
fn auto_contradicts_no_optimum() {
    let mut reached = 0;
    let rows = read(Path::new(TABLE));
    for Row {
        line,
        problem,
        known,
    } in &rows
    {
        let (_, best) = known.unwrap();
        let limits = Limits::default().with_nodes(10_000);
        let solution = solve(problem, Planner::Auto, &limits).unwrap();
        let height = solution.placement.height;
        assert!(solution.lower_bound <= best && best <= height, "{line}");
        reached += usize::from(height == best);
        for (capacity, fits) in [(best - 1, false), (best, true)] {
            let solution = solve_within(problem, Planner::Auto, capacity, &limits).unwrap();
            assert_ne!(
                solution.fits(capacity),
                Some(!fits),
                "{line}: within {capacity}"
            );
        }
    }
    assert!(
        reached * 100 >= rows.len() * 80,
        "{reached} of {}",
        rows.len()
    );
}

/// With `OPTIMA_FOLDER`, the name of a folder: writes a problem for each row of its `table.csv`, as
/// `0.csv` and so on, for `tests/oracle/optima.py`.
#[test]
fn problems_are_written() {
    let Some(folder) = std::env::var_os("OPTIMA_FOLDER") else {
        return;
    };
    let folder = Path::new(&folder);
    for (index, row) in read(&folder.join("table.csv")).iter().enumerate() {
        std::fs::write(
            folder.join(format!("{index}.csv")),
            csv::write(&row.problem),
        )
        .unwrap();
    }
}
