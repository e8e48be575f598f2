//! All planners in turn, part by part, until the height is proven or a limit is reached.
//!
//! ```text
//! problem --+-- greedy: at the target? done
//!           +-- parts that no conflict connects, each:
//!                 first fit and best fit over all orders; at the target? done
//!                 leave out what fits anyway
//!                 the exact search, for a moment: most are at the target now
//!                 local search from several orders, where buffers may overlap
//!                 the exact search, with all that is left of the limits
//!                 put back what fits anyway
//! ```
//! The target is the lower bound, or the capacity that is asked for.

use crate::budget::Budget;
use crate::exact::Exact;
use crate::instance::{Instance, NONE};
use crate::parts::{parts, peel, put_back};
use crate::search::{Random, Search, order_of};
use crate::solve::{Found, Planner, Task};
use crate::{best_fit, canonical, greedy, orders};

/// The nodes of `auto`: about a tenth of a second.
pub(crate) const AUTO: u64 = 60_000;

/// The nodes of `exact`: some seconds.
pub(crate) const EXACT: u64 = 5_000_000;

/// Conflicts that may be looked at before no further orders are tried.
const ORDERS_WORK: usize = 1 << 25;

/// Rounds of the exact search before local search.
const FIRST_ROUNDS: u32 = 2;

/// Moves of one local search, per buffer, before the next one starts from another order.
const MOVES_PER_START: u64 = 150;

/// Moves of all local searches of one part, per buffer: a few buffers have few orders.
const MOVES_PER_BUFFER: u64 = 1_000;

/// Orders from which local search starts, in turn.
const STARTS: usize = 4;

/// The best placement found, and what is known about it. Never above the greedy planner's.
pub(crate) fn place(task: &Task<'_>, nodes: u64) -> Found {
    let given = task.instance;
    let plain = greedy::place(given);
    let plain_height = given.height(&plain);
    let mut found = Found {
        offsets: plain,
        planner: Planner::Greedy,
        bound: task.bound,
        nodes: 0,
        stopped: None,
    };
    if plain_height <= task.target {
        return found;
    }
    let mut index = Vec::new();
    let order = canonical::order(given);
    let instance = given.part(&order, &mut index);
    let mut budget = Budget::new(task.nodes(nodes), task.deadline);
    let mut offsets = greedy::place(&instance);
    let mut planner = Planner::Greedy;
    // Nothing is won by a part below what the fixed buffers or another part need.
    let mut target = task.target;
    for members in parts(&instance) {
        let top = |&x: &u32| offsets[x as usize] + instance.size[x as usize];
        if members.iter().map(top).max() <= Some(target) {
            continue;
        }
        let part = instance.part(&members, &mut index);
        let start: Vec<u64> = members.iter().map(|&x| offsets[x as usize]).collect();
        let mut best = Best {
            height: part.height(&start),
            offsets: start,
            planner: Planner::Greedy,
        };
        let proven = best.improve(&part, target, task.decide, &mut budget);
        if proven > target {
            found.bound = found.bound.max(proven);
        }
        for (&x, &offset) in members.iter().zip(&best.offsets) {
            offsets[x as usize] = offset;
        }
        target = target.max(best.height);
        planner = planner.max(best.planner);
        if task.decide && best.height > task.target {
            break; // the answer is no, or not known
        }
    }
    if instance.height(&offsets) < plain_height {
        for (&x, &offset) in order.iter().zip(&offsets) {
            found.offsets[x as usize] = offset;
        }
        found.planner = planner;
    }
    found.nodes = budget.used();
    let is_open = given.height(&found.offsets) > found.bound.max(task.target);
    let is_proven_not_to_fit = task.decide && found.bound > task.target;
    found.stopped = budget
        .stopped()
        .filter(|_| is_open && !is_proven_not_to_fit);
    found
}

/// The best placement of a part so far.
struct Best {
    offsets: Vec<u64>,
    height: u64,
    planner: Planner,
}

impl Best {
    fn offer(&mut self, instance: &Instance, offsets: &[u64], planner: Planner) {
        let height = instance.height(offsets);
        if height < self.height {
            *self = Self {
                offsets: offsets.to_vec(),
                height,
                planner,
            };
        }
    }

    /// Lowers the placement of `part` towards `target`. Gives a height below which it is proven,
    /// or of no use, that there is none.
    fn improve(&mut self, part: &Instance, target: u64, decide: bool, budget: &mut Budget) -> u64 {
        let orders = self.try_orders(part, target);
        if self.height <= target || budget.is_over() {
            return target;
        }
        let mut index = Vec::new();
        let (core, easy) = peel(part, target);
        let inner = part.part(&core, &mut index);
        let Some(tables) = Exact::tables(&inner) else {
            self.search(
                part,
                &inner,
                (&core, &easy),
                orders,
                target,
                u64::MAX,
                budget,
            );
            return target;
        };
        let mut exact = Exact::new(&tables, target, self.height);
        exact.reach_target(FIRST_ROUNDS, budget);
        if !exact.is_done() {
            // Where the separations are the sizes, the exact search finds more in the same time.
            if !inner.is_plain() {
                let moves = budget.nodes / 3;
                self.search(part, &inner, (&core, &easy), orders, target, moves, budget);
                exact.lower(self.height);
            }
            match decide {
                true => exact.reach_target(u32::MAX, budget),
                false => exact.minimise(budget),
            }
        }
        if let Some(offsets) = exact.found() {
            let whole = put_back(part, &core, &easy, offsets);
            self.offer(part, &whole, Planner::Exact);
        }
        exact.proven()
    }

    /// First fit and best fit over all orders. Gives the orders with the heights of first fit.
    fn try_orders(&mut self, part: &Instance, target: u64) -> Vec<(u64, Vec<u32>)> {
        let mut tried = Vec::new();
        let mut work = 0;
        for order in orders::all(part) {
            let offsets = best_fit::place_in_order(part, &order);
            self.offer(part, &offsets, Planner::BestFit);
            let offsets = greedy::first_fit(part, &order);
            self.offer(part, &offsets, Planner::Auto);
            tried.push((part.height(&offsets), order));
            work += 2 * (part.len() + part.entries());
            if self.height <= target || work > ORDERS_WORK {
                break;
            }
        }
        tried
    }

    /// Local search over orders, on the buffers of `core`.
    fn search(
        &mut self,
        part: &Instance,
        inner: &Instance,
        (core, easy): (&[u32], &[u32]),
        mut orders: Vec<(u64, Vec<u32>)>,
        target: u64,
        moves: u64,
        budget: &mut Budget,
    ) {
        // The best placement, in case best fit made it, then the orders by what they gave.
        orders.sort_by_key(|&(height, _)| height);
        orders.insert(0, (self.height, order_of(part, &self.offsets)));
        orders.truncate(STARTS);
        // Only buffers of the core have a new number.
        let mut number = vec![NONE; part.len()];
        for (new, &old) in (0..).zip(core) {
            number[old as usize] = new;
        }
        let renumber = |&x: &u32| Some(number[x as usize]).filter(|&x| x != NONE);
        let starts = orders.iter().map(|(_, order)| {
            let inner = order.iter().filter_map(renumber).map(|x| x as u32);
            inner.collect::<Vec<u32>>()
        });
        let starts: Vec<Vec<u32>> = starts.collect();
        let mut search = Search::new(inner);
        let mut left = moves.min(core.len() as u64 * MOVES_PER_BUFFER);
        for seed in 0.. {
            if left == 0 || self.height <= target || budget.is_over() {
                break;
            }
            let before = search.work;
            search.start(&starts[seed as usize % starts.len()]);
            let moves = (core.len() as u64 * MOVES_PER_START)
                .min(left)
                .min(budget.nodes);
            let tried = search.run(&mut Random::new(seed + 1), target, moves, budget.work);
            budget.spend(tried, search.work - before);
            left -= tried;
            if search.height.max(target) < self.height {
                let whole = put_back(part, core, easy, search.offsets());
                self.offer(part, &whole, Planner::Auto);
            }
            if tried == 0 {
                break;
            }
        }
    }
}
