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
//!                   where an order from the bottom up does not tell all: the one over sides
//!                 put back what fits anyway
//! ```
//! The target is the lower bound, or the capacity that is asked for.

use std::borrow::Cow;

use crate::budget::Budget;
use crate::exact::Exact;
use crate::instance::Instance;
use crate::parts::{parts, peel, put_back};
use crate::search::{Random, Search, order_of};
use crate::sides::Sides;
use crate::solve::{Found, Planner, Task};
use crate::{best_fit, canonical, greedy, orders};

/// The nodes of `auto`: about a tenth of a second.
pub(crate) const AUTO: u64 = 100_000;

/// The nodes of `exact`: some seconds.
pub(crate) const EXACT: u64 = 5_000_000;

/// Conflicts that may be looked at before no further orders are tried.
const ORDERS_WORK: usize = 1 << 24;

/// Rounds of the exact search before local search.
const FIRST_ROUNDS: u32 = 1;

/// Rounds of the search over sides before local search.
const FIRST_ROUNDS_OF_SIDES: u32 = 7;

/// Moves of one local search, per buffer, before the next one starts from another order.
const MOVES_PER_START: u64 = 150;

/// Moves of one local search before the clock is read again.
const MOVES_PER_LOOK: u64 = 1_000;

/// Moves of all local searches of one part, per buffer: a few buffers have few orders.
const MOVES_PER_BUFFER: u64 = 1_000;

/// Local search gets one of this many parts of the limits.
const SEARCH_SHARE: u64 = 3;

/// A conflict that local search looks at takes as long as this many that a search tree looks at.
const SEARCH_WORK: u64 = 10;

/// Orders from which local search starts, in turn.
const STARTS: usize = 4;

/// The best placement found, and what is known about it. Never above the greedy planner's.
pub(crate) fn place(task: &Task<'_>, nodes: u64) -> Found {
    by_parts(task, nodes, Best::improve)
}

/// The same with another way to lower the placement of a part: given are the part, the target,
/// whether the only question is if that can be reached, and the limits; it gives a height below
/// which it is proven, or of no use, that there is no placement.
pub(crate) fn by_parts(
    task: &Task<'_>,
    nodes: u64,
    improve: impl Fn(&mut Best, &Instance, u64, bool, &mut Budget) -> u64,
) -> Found {
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
    let instance = given.ordered(&order);
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
        let part = instance.cut(&members, &mut index);
        let start: Vec<u64> = members.iter().map(|&x| offsets[x as usize]).collect();
        let mut best = Best {
            height: part.height(&start),
            offsets: start,
            planner: Planner::Greedy,
        };
        let proven = improve(&mut best, &part, target, task.decide, &mut budget);
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
pub(crate) struct Best {
    pub(crate) offsets: Vec<u64>,
    pub(crate) height: u64,
    planner: Planner,
}

impl Best {
    pub(crate) fn offer(&mut self, instance: &Instance, offsets: &[u64], planner: Planner) {
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
        let orders = self.try_orders(part, target, budget);
        if self.height <= target || budget.is_over() {
            return target;
        }
        let core = Core::of(part, target);
        let tables = match core.inner.is_signed() {
            true => None,
            false => Exact::tables(&core.inner),
        };
        let Some(tables) = tables else {
            return self.improve_by_sides(&core, orders, target, decide, budget);
        };
        let mut exact = Exact::new(&tables, target, self.height);
        exact.reach_target(0..FIRST_ROUNDS, budget);
        // Where the separations are the sizes, the exact search finds more in the same time.
        if !exact.is_done() && !part.is_plain() {
            self.search_a_while(&core, orders, target, budget);
        }
        exact.lower(self.height);
        match decide {
            true => exact.reach_target(FIRST_ROUNDS..u32::MAX, budget),
            false => exact.minimise(FIRST_ROUNDS, budget),
        }
        if let Some(offsets) = exact.found() {
            self.offer(part, &core.put_back(offsets), Planner::Exact);
        }
        exact.proven()
    }

    /// The same where buffers may lie in holes of others, or be kept up by what they keep up.
    fn improve_by_sides(
        &mut self,
        core: &Core<'_>,
        orders: Vec<(u64, Vec<u32>)>,
        target: u64,
        decide: bool,
        budget: &mut Budget,
    ) -> u64 {
        let mut sides = Sides::new(&core.inner, target, self.height);
        for rounds in [0..FIRST_ROUNDS_OF_SIDES, FIRST_ROUNDS_OF_SIDES..u32::MAX] {
            let is_first = rounds.start == 0;
            if let Some(sides) = &mut sides {
                match decide {
                    true => sides.reach_target(rounds, budget),
                    false => sides.minimise(rounds, budget),
                }
                if let Some(offsets) = sides.found() {
                    self.offer(core.whole, &core.put_back(offsets), Planner::Exact);
                }
                if self.height <= target || sides.is_done() || budget.is_over() {
                    break;
                }
            }
            if is_first {
                self.search_a_while(core, orders.clone(), target, budget);
            }
            if let Some(sides) = &mut sides {
                sides.lower(self.height);
            }
        }
        let Some(sides) = sides else {
            budget.give_up(); // too large
            return target;
        };
        sides.proven()
    }

    /// First fit and best fit over all orders. Gives the orders with the heights of first fit.
    pub(crate) fn try_orders(
        &mut self,
        part: &Instance,
        target: u64,
        budget: &mut Budget,
    ) -> Vec<(u64, Vec<u32>)> {
        let mut tried = Vec::new();
        let mut work = 0;
        for order in orders::all(part) {
            let offsets = best_fit::place_in_order(part, &order);
            self.offer(part, &offsets, Planner::BestFit);
            let offsets = greedy::first_fit(part, &order);
            self.offer(part, &offsets, Planner::Auto);
            tried.push((part.height(&offsets), order));
            work += 2 * (part.len() + part.entries());
            if self.height <= target || work > ORDERS_WORK || budget.deadline.passed() {
                break;
            }
        }
        tried
    }

    /// Local search with its share of the limits.
    pub(crate) fn search_a_while(
        &mut self,
        core: &Core<'_>,
        orders: Vec<(u64, Vec<u32>)>,
        target: u64,
        budget: &mut Budget,
    ) {
        let mut share = budget.share(SEARCH_SHARE, SEARCH_WORK);
        self.search(core, orders, target, &mut share);
        budget.take_back(&share, SEARCH_SHARE, SEARCH_WORK);
    }

    /// Local search over orders, on the buffers of the core.
    fn search(
        &mut self,
        core: &Core<'_>,
        mut orders: Vec<(u64, Vec<u32>)>,
        target: u64,
        budget: &mut Budget,
    ) {
        // The best placement, in case best fit made it, then the orders by what they gave.
        orders.sort_by_key(|&(height, _)| height);
        orders.insert(0, (self.height, order_of(core.whole, &self.offsets)));
        orders.truncate(STARTS);
        let starts: Vec<Vec<u32>> = orders.iter().map(|(_, order)| core.order(order)).collect();
        let mut search = Search::new(&core.inner);
        let mut left = core.inner.len() as u64 * MOVES_PER_BUFFER;
        let mut seed = 0;
        while left > 0 && self.height > target && !budget.is_over() {
            let before = search.work;
            search.start(&starts[seed as usize % starts.len()]);
            budget.spend(0, search.work - before);
            seed += 1;
            let mut random = Random::new(seed);
            let mut moves = left.min(core.inner.len() as u64 * MOVES_PER_START);
            let mut tried = 0;
            // In pieces, between which the clock is read.
            while moves > 0 && search.height > target && !budget.is_over() {
                let before = search.work;
                let piece = moves.min(MOVES_PER_LOOK).min(budget.nodes);
                let made = search.run(&mut random, target, piece, budget.work);
                budget.spend(made, search.work - before);
                tried += made;
                if made < piece {
                    break;
                }
                moves -= made;
            }
            left -= tried;
            if search.height.max(target) < self.height {
                self.offer(core.whole, &core.put_back(search.offsets()), Planner::Auto);
            }
            if tried == 0 {
                break;
            }
        }
    }
}

/// What is worth a search of a part.
pub(crate) struct Core<'a> {
    whole: &'a Instance,
    /// The buffers that are searched, and the part made of them.
    pub(crate) members: Vec<u32>,
    pub(crate) inner: Cow<'a, Instance>,
    /// Those that fit below the target anyway.
    easy: Vec<u32>,
}

impl<'a> Core<'a> {
    pub(crate) fn of(whole: &'a Instance, target: u64) -> Self {
        let (members, easy) = peel(whole, target);
        Self {
            whole,
            inner: whole.cut(&members, &mut Vec::new()),
            members,
            easy,
        }
    }

    /// The placement of the whole part.
    pub(crate) fn put_back(&self, offsets: &[u64]) -> Vec<u64> {
        put_back(self.whole, &self.members, &self.easy, offsets)
    }

    /// An order of the whole part as one of the core.
    fn order(&self, order: &[u32]) -> Vec<u32> {
        let mut number = vec![u32::MAX; self.whole.len()];
        for (new, &old) in (0..).zip(&self.members) {
            number[old as usize] = new;
        }
        let inner = order.iter().map(|&x| number[x as usize]);
        inner.filter(|&x| x != u32::MAX).collect()
    }
}
