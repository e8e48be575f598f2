//! `cargo bench -p arenaplan-benches`: each planner on problems that it ends with quickly.
#![allow(clippy::print_stderr, missing_docs, reason = "a program that talks")]

use core::time::Duration;

use arenaplan_benches::{CAPACITY, MINIMALLOC, MOST_FOR_ILP, Named, OWN, root};
use arenaplan_solver::generate::Large;
use arenaplan_solver::{Limits, Planner, csv};
use criterion::Criterion;

/// One problem by some planners. Only solving is measured; the table is read before.
fn bench(
    criterion: &mut Criterion,
    group: &str,
    problem: &Named,
    planners: &[Planner],
    capacity: Option<u64>,
) {
    let name = format!("{group}/{}", problem.name);
    let limits = Limits::default();
    let table = match csv::parse(&problem.text) {
        Ok(table) => table,
        Err(error) => return eprintln!("{name} is left out: {error}"),
    };
    if let Err(error) = table.solve(Planner::Greedy, None, &limits) {
        return eprintln!("{name} is left out: {error}");
    }
    for &planner in planners {
        if planner == Planner::Ilp && table.problem.len() > MOST_FOR_ILP {
            continue;
        }
        criterion.bench_function(&format!("{name}/{planner}"), |bencher| {
            bencher.iter(|| table.solve(planner, capacity, &limits));
        });
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    for problem in Named::folder(&root().join(OWN)) {
        bench(&mut criterion, "testdata", &problem, Planner::ALL, None);
    }
    let planners = [Planner::Greedy, Planner::BestFit, Planner::Auto];
    for large in Large::ALL {
        match Named::large(large) {
            Ok(problem) => bench(&mut criterion, "large", &problem, &planners, None),
            Err(error) => eprintln!("large/{} is left out: {error}", large.name()),
        }
    }
    let problems = Named::minimalloc(&root().join(MINIMALLOC));
    if problems.is_empty() {
        eprintln!("MiniMalloc's problems are left out: they are not in {MINIMALLOC}");
    }
    let planners = [Planner::Exact, Planner::Auto];
    for problem in &problems {
        bench(
            &mut criterion,
            "minimalloc",
            problem,
            &planners,
            Some(CAPACITY),
        );
    }
    criterion.final_summary();
}
