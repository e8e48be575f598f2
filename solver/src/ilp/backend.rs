//! Solvers of integer programs behind good_lp.

use std::time::Duration;

use microlp::{SolveOptions, TerminationReason};

use super::model::{HEIGHT, Model};
use crate::solve::Stop;

/// Two heights differ by a unit at least, so a proof may leave this much of one.
const GAP: f64 = 0.9;

/// How much a proof may be wrong, in units. Tolerances of solvers are far less, see
/// [`MAX_HEIGHT`](super::model::MAX_HEIGHT).
const NOISE: f64 = 0.05;

/// What a backend may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    pub(crate) nodes: u64,
    pub(crate) time: Option<Duration>,
}

/// What a backend found.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The values of the columns in the best solution.
    pub(crate) values: Option<Vec<f64>>,
    /// The limit that ended the search, or `None` if no solution is lower by [`GAP`] units.
    pub(crate) stopped: Option<Stop>,
    pub(crate) nodes: u64,
}

impl Answer {
    /// A height in units that no placement is below, if that is proven.
    pub(crate) fn bound(&self, model: &Model) -> Option<u64> {
        let values = self.values.as_ref().filter(|_| self.stopped.is_none())?;
        let least = (values[HEIGHT] / model.unit - GAP - NOISE).ceil();
        Some(least.max(0.0) as u64)
    }
}

/// A solver of integer programs. `None` if it failed, as by a loss of precision.
pub(crate) type Backend = fn(&Model, Allowance) -> Option<Answer>;

/// The backends, each for what those before it failed on.
pub(crate) const BACKENDS: &[Backend] = &[
    #[cfg(feature = "highs")]
    highs,
    microlp,
];

/// The solver in Rust. good_lp passes no limit of nodes on, so its model is solved directly.
pub(crate) fn microlp(model: &Model, allowance: Allowance) -> Option<Answer> {
    let (built, _) = model.build(good_lp::microlp);
    let mut options = SolveOptions::default();
    options.node_limit = Some(allowance.nodes);
    options.time_limit = allowance.time;
    // The cutoff is relative to heights above 1.
    let gap = GAP * model.unit;
    options.tolerances.prune_epsilon = gap / model.columns[HEIGHT].greatest.max(1.0);
    // Its variables are numbers in the order of creation, which can be had from any problem.
    let mut other = microlp::Problem::new(microlp::OptimizationDirection::Minimize);
    let seed = model.columns.iter().map(|column| column.seed);
    options.warm_start = Some(
        seed.map(|value| (other.add_var(0.0, (0.0, 0.0)), value))
            .collect(),
    );
    let outcome = built.as_inner().solve_with(options).ok()?;
    let stopped = match outcome.termination_reason() {
        TerminationReason::ProvenOptimal => None,
        TerminationReason::TimeLimit => Some(Stop::Time),
        _ => Some(Stop::Work),
    };
    let values = outcome
        .solution()
        .map(|solution| solution.iter().map(|(_, value)| value).collect());
    Some(Answer {
        values,
        stopped,
        nodes: outcome.stats().nodes_solved,
    })
}

/// HiGHS, in one thread. good_lp does not tell how many nodes it looked at.
#[cfg(feature = "highs")]
pub(crate) fn highs(model: &Model, allowance: Allowance) -> Option<Answer> {
    use good_lp::solvers::highs::HighsParallelType;
    use good_lp::solvers::{ResolutionError, SolutionStatus};
    use good_lp::{Solution, SolverModel, WithTimeLimit};

    let (built, columns) = model.build(good_lp::highs);
    let mut built = built
        .set_parallel(HighsParallelType::Off)
        .set_threads(1)
        .set_option(
            "mip_max_nodes",
            i32::try_from(allowance.nodes).unwrap_or(i32::MAX),
        )
        .set_option("mip_rel_gap", 0.0)
        .set_option("mip_abs_gap", GAP * model.unit);
    if let Some(time) = allowance.time {
        built = built.with_time_limit(time.as_secs_f64());
    }
    let start = std::time::Instant::now();
    let solved = built.solve();
    let limit = if allowance.time.is_some_and(|time| start.elapsed() >= time) {
        Stop::Time
    } else {
        Stop::Work
    };
    match solved {
        Ok(solution) => {
            let stopped = match solution.status() {
                // Within the gap that was asked for.
                SolutionStatus::Optimal | SolutionStatus::GapLimit => None,
                SolutionStatus::TimeLimit => Some(limit),
            };
            let values = columns
                .iter()
                .map(|&column| solution.value(column))
                .collect();
            Some(Answer {
                values: Some(values),
                stopped,
                nodes: 0,
            })
        }
        Err(ResolutionError::Other("NoSolutionFound")) => Some(Answer {
            values: None,
            stopped: Some(limit),
            nodes: 0,
        }),
        Err(_) => None,
    }
}
