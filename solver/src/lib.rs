//! Buffers and conflicts in, offsets out.
//!
//! A [`Problem`] is a graph: nodes are buffers (size, alignment, lifetime, perhaps a fixed offset),
//! an edge says which two may not share memory, or how far they must keep apart. A [`Placement`]
//! gives each buffer an offset. [`solve`] makes one with a [`Planner`], together with a lower bound
//! that no placement can be below, and [`check`](check()) finds everything that is wrong with one,
//! without any code of the planners.
//!
//! ```
//! use arenaplan_solver::{Buffer, Lifetime, Limits, Planner, Problem, solve};
//!
//! // Three tensors of a chain: the first and the last are never alive together.
//! let problem = Problem::from_lifetimes(vec![
//!     Buffer::new(400, Lifetime::new(0, 1)),
//!     Buffer::new(600, Lifetime::new(1, 2)),
//!     Buffer::new(300, Lifetime::new(2, 3)),
//! ])?;
//! let solution = solve(&problem, Planner::Auto, &Limits::default())?;
//! assert_eq!(solution.placement.height, 1000);
//! assert!(solution.optimal());
//! # Ok::<(), arenaplan_solver::Error>(())
//! ```
//!
//! The same problem gives the same offsets on every machine. In another order of its buffers, `exact`,
//! `ilp` and `auto` search it in the same way; only where they find nothing below `greedy`, whose
//! ties TFLM breaks by that order, the placement is the one it gives.

mod auto;
mod best_fit;
mod bound;
mod budget;
mod canonical;
mod check;
pub mod csv;
mod error;
mod exact;
mod gaps;
#[cfg(any(test, feature = "testing"))]
pub mod generate;
mod greedy;
mod ilp;
mod instance;
mod linear;
mod orders;
mod pairs;
mod parts;
mod problem;
mod search;
mod sides;
mod solve;

pub use check::{Violation, check};
pub use error::Error;
pub use greedy::greedy;
pub use problem::{Buffer, BufferId, Conflict, Lifetime, Placement, Problem};
pub use solve::{
    Limits, ParsePlannerError, Planner, Solution, Stop, solve, solve_above, solve_within,
};
