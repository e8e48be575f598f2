//! The front door: which planner, how long, and what comes out.

use core::fmt;
use core::str::FromStr;

use crate::check::check;
use crate::instance::Instance;
use crate::{Error, Placement, Problem};
use crate::{auto, best_fit, bound, greedy, linear};

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
    /// All of the fast planners over several orders, then local search, until the height is proven
    /// or the [`Limits`] are reached. Never above `Greedy`. The default.
    #[default]
    Auto,
}

impl Planner {
    /// All planners.
    pub const ALL: &'static [Self] = &[Self::Linear, Self::Greedy, Self::BestFit, Self::Auto];

    /// The name: `linear`, `greedy`, `best-fit` or `auto`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Greedy => "greedy",
            Self::BestFit => "best-fit",
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

/// When to stop a search that has not proven its placement. Counted, never timed, so that the
/// result does not depend on the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The most moves of the local search, over all parts of the problem. 0 turns it off.
    pub iterations: u64,
}

impl Limits {
    /// The default limits with another number of moves.
    pub fn with_iterations(mut self, iterations: u64) -> Self {
        self.iterations = iterations;
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            iterations: 100_000,
        }
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
}

impl Solution {
    /// Whether the placement is proven to be as low as possible.
    pub fn optimal(&self) -> bool {
        self.placement.height == self.lower_bound
    }
}

/// Finds a placement for `problem`.
///
/// # Errors
/// What [`Problem::validate`] finds; [`Error::FixedMisaligned`] and [`Error::FixedConflict`] if no
/// placement can be right; [`Error::BadPlacement`] if a planner made a mistake.
pub fn solve(problem: &Problem, planner: Planner, limits: &Limits) -> Result<Solution, Error> {
    let instance = Instance::new(problem)?;
    instance.check_fixed()?;
    let lower_bound = bound::lower_bound(&instance);
    let (offsets, planner) = match planner {
        Planner::Linear => (linear::place(&instance), planner),
        Planner::Greedy => (greedy::place(&instance), planner),
        Planner::BestFit => (best_fit::place(&instance), planner),
        Planner::Auto => auto::place(&instance, lower_bound, limits),
    };
    let placement = instance.placement(&offsets);
    if let Some(violation) = check(problem, &placement).into_iter().next() {
        return Err(Error::BadPlacement { violation });
    }
    Ok(Solution {
        placement,
        lower_bound: lower_bound * instance.unit,
        planner,
    })
}
