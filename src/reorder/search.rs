//! The order with the least peak.
//!
//! ```text
//! join what runs together, split at cuts              parts.rs
//! the own order of a part is no worse than needed     keep it
//! beam of 100, reaching the bound of every order      done, mostly
//! best-first search over sets of operators            exact.rs, proves its result
//! limits hit: beam of 1,000                           not proved
//! move operators back while the peak does not grow    settle.rs
//! ```
//!
//! Limits are counted in work, not in time, so that the same task always gives the same order.

use super::beam::beam;
use super::exact::{Outcome, best_first};
use super::parts::{Joined, split_at_cuts};
use super::reach::{Reach, least_peak};
use super::settle::settle;
use super::task::Task;

/// An order found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The operators in the order in which they are to run.
    pub order: Vec<u32>,
    /// The most bytes alive at one time in it.
    pub peak: u64,
    /// A number of bytes that no order's peak is below.
    pub bound: u64,
}

impl Found {
    /// Whether no order has a lower peak.
    pub fn is_proved(&self) -> bool {
        self.bound >= self.peak
    }
}

/// With more operators the order is left as it is: what is related to what would take too much memory.
const MAX_OPERATORS: usize = 8192;
/// With more tensors touched, too.
const MAX_TOUCHES: usize = 200_000;

/// How much more a search may look at; all parts of a model share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Touched objects and who touches them.
    pub(super) left: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: 200_000_000 }
    }
}

impl Budget {
    /// Takes some off; `false` when there is not that much.
    pub(super) fn spend(&mut self, work: usize) -> bool {
        let enough = work <= self.left;
        self.left = self.left.saturating_sub(work);
        enough
    }
}

const NARROW: usize = 100;
const WIDE: usize = 1000;

/// The order with the least peak, as far as the limits let it be found; of orders equal in that, one close to the
/// operators' own, and that itself if its peak is the least.
pub fn search(task: &Task, budget: &mut Budget) -> Found {
    let own = task.own_order();
    let own_peak = task.peak(&own);
    if task.len() > MAX_OPERATORS || task.touches() > MAX_TOUCHES {
        return Found {
            order: own,
            peak: own_peak,
            bound: 0,
        };
    }
    let joined = Joined::of(task, &Reach::of(task));
    let (order, bound) = search_parts(&joined.task, budget);
    let order = joined.expand(&order);
    let peak = task.peak(&order);
    if own_peak <= peak || !task.allows(&order) {
        return Found {
            order: own,
            peak: own_peak,
            bound,
        };
    }
    Found {
        order: settle(task, order, peak),
        peak,
        bound,
    }
}

/// What lies between two cuts.
struct Part {
    members: Vec<u32>,
    task: Task,
    reach: Reach,
    own_peak: u64,
    /// Found so far; the own order at first.
    order: Vec<u32>,
    peak: u64,
}

/// An order, and a bound on the peak of every order.
fn search_parts(task: &Task, budget: &mut Budget) -> (Vec<u32>, u64) {
    let own = task.own_order();
    let walked = task.walk(&own);
    let start = task.start();
    let mut floor = start.0;
    let mut parts = Vec::new();
    let mut live = start.1;
    for members in split_at_cuts(task) {
        let (Some(&from), Some(&to)) = (members.first(), members.last()) else {
            continue;
        };
        let own_peak = (from..=to).map(|k| walked[k as usize].0).max().unwrap_or(0);
        let before = std::mem::replace(&mut live, walked[to as usize].1);
        if members.len() == 1 {
            floor = floor.max(own_peak);
            continue;
        }
        let inner = task.part(&members, |k| k < from, before);
        let reach = Reach::of(&inner);
        floor = floor.max(least_peak(&inner, &reach));
        parts.push(Part {
            order: inner.own_order(),
            peak: own_peak,
            members,
            task: inner,
            reach,
            own_peak,
        });
    }
    let mut bound = floor;
    for part in &mut parts {
        // What the whole needs anyway, no part has to stay below.
        if part.own_peak > floor {
            bound = bound.max(part.search(floor, budget));
            floor = floor.max(part.peak);
        }
    }
    let mut order = own;
    for part in &parts {
        if part.own_peak > floor {
            for (&at, &k) in part.members.iter().zip(&part.order) {
                order[at as usize] = part.members[k as usize];
            }
        }
    }
    (order, bound)
}

impl Part {
    /// Looks for an order with a peak of at most `floor`, or else the least; gives a bound on the peak of every order.
    fn search(&mut self, floor: u64, budget: &mut Budget) -> u64 {
        self.take(beam(&self.task, NARROW, floor, self.peak, budget));
        if self.peak <= floor {
            return 0;
        }
        match best_first(&self.task, &self.reach, floor, self.peak, budget) {
            Outcome::Least(order) => {
                self.take(order);
                self.peak
            }
            Outcome::GivenUp { bound } => {
                self.take(beam(&self.task, WIDE, floor, self.peak, budget));
                bound
            }
        }
    }

    /// Takes a better order.
    fn take(&mut self, order: Option<Vec<u32>>) {
        if let Some(order) = order {
            let peak = self.task.peak(&order);
            if peak < self.peak {
                (self.order, self.peak) = (order, peak);
            }
        }
    }
}
