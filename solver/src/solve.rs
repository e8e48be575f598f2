//! The front door: which planner, how long, and what comes out.

use core::fmt;
use core::str::FromStr;
use std::time::{Duration, Instant};

use crate::check::check;
use crate::instance::Instance;
use crate::{Error, Placement, Problem};
use crate::{auto, best_fit, bound, greedy, ilp, linear};

/// A way to find a placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Planner {
    /// No reuse: each buffer behind the one before, above all fixed ones. For debugging.
    Linear,
    /// What TensorFlow Lite Micro does on the device; see [`greedy`](crate::greedy()).
    Greedy,
    /// The smallest gap that fits, over several orders, the best of them.
    BestFit,
    /// A search that ends with the lowest placement and the proof that there is no lower one, or at
    /// a limit with the best found and a lower bound. Where separations are negative, it is one
    /// over which buffer of each pair is the lower one.
    Exact,
    /// The fast planners and local search, then an integer program: the same as `Exact` for some
    /// twenty buffers, in another way. Larger problems are left as they are.
    Ilp,
    /// All of the fast planners over several orders, then local search, until the height is proven
    /// or the [`Limits`] are reached. Never above `Greedy`. The default.
    #[default]
    Auto,
}

impl Planner {
    /// All planners.
    pub const ALL: &'static [Self] = &[
        Self::Linear,
        Self::Greedy,
        Self::BestFit,
        Self::Exact,
        Self::Ilp,
        Self::Auto,
    ];

    /// The name: `linear`, `greedy`, `best-fit`, `exact`, `ilp` or `auto`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Greedy => "greedy",
            Self::BestFit => "best-fit",
            Self::Exact => "exact",
            Self::Ilp => "ilp",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Planner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Planner {
    type Err = ParsePlannerError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL
            .iter()
            .copied()
            .find(|planner| planner.name() == name);
        found.ok_or_else(|| ParsePlannerError {
            name: name.to_owned(),
        })
    }
}

/// A planner's name that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePlannerError {
    name: String,
}

impl fmt::Display for ParsePlannerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no planner is called {:?}, expected one of", self.name)?;
        for (index, planner) in Planner::ALL.iter().enumerate() {
            write!(f, "{} {planner}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl core::error::Error for ParsePlannerError {}

/// When to stop a search that has not proven its placement. All but [`Self::time`] is counted, so
/// that the result does not depend on the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most nodes of search trees and moves of local search, over all parts of the problem.
    /// Nodes of large problems, which take longer, count for several. `None`: about a tenth of a
    /// second for `auto`, some seconds for `exact` and `ilp`; with [`Self::time`], as many as that
    /// allows.
    pub nodes: Option<u64>,
    /// The most time, or `None`. With a time limit the result may differ from run to run;
    /// [`Solution::stopped`] tells whether it did stop the search.
    pub time: Option<Duration>,
}

impl Limits {
    /// These limits with another number of nodes.
    pub fn with_nodes(mut self, nodes: u64) -> Self {
        self.nodes = Some(nodes);
        self
    }

    /// These limits with a time limit.
    pub fn with_time(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }
}

/// The limit that ended a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// [`Limits::nodes`], or a limit of the planner's own: the same on each machine.
    Work,
    /// [`Limits::time`].
    Time,
}

/// The end of the time that a search may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) fn after(time: Option<Duration>) -> Self {
        Self(time.and_then(|time| Instant::now().checked_add(time)))
    }

    /// Whether it has passed. Reads the clock only if there is a limit; even so, not to be called
    /// at each node.
    pub(crate) fn passed(self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }

    /// The time left, if there is a limit.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0
            .map(|end| end.saturating_duration_since(Instant::now()))
    }
}

/// A placement and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Solution {
    /// Where the buffers are. It has passed [`check`](crate::check()).
    pub placement: Placement,
    /// No placement has a height below this, in bytes.
    pub lower_bound: u64,
    /// The planner that made the placement: never `Auto` unless its search found it.
    pub planner: Planner,
    /// Nodes of search trees that were looked at.
    pub nodes: u64,
    /// The limit that ended the search, or `None` if it ended by itself.
    pub stopped: Option<Stop>,
}

impl Solution {
    /// Whether the placement is proven to be as low as possible.
    pub fn optimal(&self) -> bool {
        self.placement.height == self.lower_bound
    }

    /// Whether the problem fits into `capacity` bytes: `Some(true)` if this placement does,
    /// `Some(false)` if it is proven that none does, `None` if the search was ended before.
    pub fn fits(&self, capacity: u64) -> Option<bool> {
        if self.placement.height <= capacity {
            Some(true)
        } else if self.lower_bound > capacity {
            Some(false)
        } else {
            None
        }
    }
}

/// What a planner is asked for, in units of the instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task<'a> {
    pub(crate) instance: &'a Instance,
    /// No placement is lower.
    pub(crate) bound: u64,
    /// A placement of this height is good enough: the bound, or the capacity, which is not lower.
    pub(crate) target: u64,
    /// Whether the only question is if the target can be reached.
    pub(crate) decide: bool,
    pub(crate) limits: &'a Limits,
    pub(crate) deadline: Deadline,
}

impl Task<'_> {
    /// The most nodes, for a planner with this default.
    pub(crate) fn nodes(&self, default: u64) -> u64 {
        match (self.limits.nodes, self.limits.time) {
            (Some(nodes), _) => nodes,
            (None, Some(_)) => u64::MAX,
            (None, None) => default,
        }
    }
}

/// What a planner found, in units of the instance.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) offsets: Vec<u64>,
    pub(crate) planner: Planner,
    /// No placement is lower. Not below the task's bound.
    pub(crate) bound: u64,
    pub(crate) nodes: u64,
    pub(crate) stopped: Option<Stop>,
}

/// Finds a placement for `problem` that is as low as possible.
///
/// # Errors
/// What [`Problem::validate`] finds; [`Error::FixedMisaligned`] and [`Error::FixedConflict`] if no
/// placement can be right; [`Error::BadPlacement`] if a planner made a mistake.
pub fn solve(problem: &Problem, planner: Planner, limits: &Limits) -> Result<Solution, Error> {
    solve_known(problem, planner, None, 0, limits)
}

/// Finds a placement for `problem` that fits into `capacity` bytes; the search ends when it has
/// one, or the proof that there is none. [`Solution::fits`] tells which of them. There is a
/// placement in any case, if only one that is too high.
///
/// # Errors
/// As [`solve`].
pub fn solve_within(
    problem: &Problem,
    planner: Planner,
    capacity: u64,
    limits: &Limits,
) -> Result<Solution, Error> {
    solve_known(problem, planner, Some(capacity), 0, limits)
}

/// Finds a placement for `problem` that is as low as possible, knowing from elsewhere that none is
/// below `known_bound` bytes: the search ends when it has one of that height.
///
/// # Errors
/// As [`solve`].
pub fn solve_above(
    problem: &Problem,
    planner: Planner,
    known_bound: u64,
    limits: &Limits,
) -> Result<Solution, Error> {
    solve_known(problem, planner, None, known_bound, limits)
}

/// Finds a placement, as low as possible or within a capacity, knowing from elsewhere that none is
/// below `known_bound` bytes.
pub(crate) fn solve_known(
    problem: &Problem,
    planner: Planner,
    capacity: Option<u64>,
    known_bound: u64,
    limits: &Limits,
) -> Result<Solution, Error> {
    let deadline = Deadline::after(limits.time);
    let instance = Instance::new(problem)?;
    instance.check_fixed()?;
    let bound = bound::lower_bound(&instance).max(known_bound.div_ceil(instance.unit));
    let capacity = capacity.map(|capacity| capacity / instance.unit);
    let fast = |planner, offsets: Vec<u64>| Found {
        offsets,
        planner,
        bound,
        nodes: 0,
        stopped: None,
    };
    let task = Task {
        instance: &instance,
        bound,
        target: bound.max(capacity.unwrap_or(0)),
        decide: capacity.is_some(),
        limits,
        deadline,
    };
    let found = match planner {
        // The answer is no, so any placement will do.
        _ if capacity.is_some_and(|capacity| capacity < bound) => {
            fast(Planner::Greedy, greedy::place(&instance))
        }
        Planner::Linear => fast(planner, linear::place(&instance)),
        Planner::Greedy => fast(planner, greedy::place(&instance)),
        Planner::BestFit => fast(planner, best_fit::place(&instance)),
        Planner::Exact => auto::place(&task, auto::EXACT),
        Planner::Ilp => ilp::place(&task),
        Planner::Auto => auto::place(&task, auto::AUTO),
    };
    let placement = instance.placement(&found.offsets);
    if let Some(violation) = check(problem, &placement).into_iter().next() {
        return Err(Error::BadPlacement { violation });
    }
    Ok(Solution {
        placement,
        lower_bound: found.bound * instance.unit,
        planner: found.planner,
        nodes: found.nodes,
        stopped: found.stopped,
    })
}
