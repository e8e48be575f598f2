//! All fast planners, then local search, part by part.
//!
//! ```text
//! problem --+-- greedy: at the bound? done
//!           +-- parts that no conflict connects, each:
//!                 first fit and best fit over all orders; at the bound? done
//!                 leave out what fits anyway
//!                 local search on the rest, from several orders
//!                 put back what fits anyway
//! ```
//! Buffers with fixed offsets connect nothing, since they do not move; each part sees them.

use crate::instance::{Instance, NONE};
use crate::parts::{parts, peel, put_back};
use crate::search::{Random, Search, order_of};
use crate::solve::{Deadline, Found, Planner, Stop, Task};
use crate::{best_fit, greedy, orders};

/// Conflicts that may be looked at before no further orders are tried.
const ORDERS_WORK: usize = 1 << 25;

/// Moves of one local search, per buffer, before the next one starts from another order.
const MOVES_PER_START: u64 = 150;

/// Moves of all local searches of one part, per buffer: a few buffers have few orders.
const MOVES_PER_BUFFER: u64 = 2_000;

/// Orders from which local search starts, in turn.
const STARTS: usize = 4;

/// Conflicts that may be looked at per move on average, so that the moves of large problems, which
/// take longer, are fewer.
const WORK_PER_MOVE: u64 = 200;

/// The best placement found, and what is known about it.
pub(crate) fn place(task: &Task<'_>) -> Found {
    let mut budget = Budget {
        moves: task.limits.iterations,
        work: task.limits.iterations.saturating_mul(WORK_PER_MOVE),
        deadline: task.deadline,
        stopped: None,
    };
    let (offsets, planner) = search(task, &mut budget);
    let reached = task.instance.height(&offsets) <= task.target;
    Found {
        offsets,
        planner,
        bound: task.bound,
        nodes: 0,
        stopped: budget.stopped.filter(|_| !reached),
    }
}

fn search(task: &Task<'_>, budget: &mut Budget) -> (Vec<u64>, Planner) {
    let instance = task.instance;
    let plain = greedy::place(instance);
    let greedy_height = instance.height(&plain);
    if greedy_height <= task.target {
        return (plain, Planner::Greedy);
    }
    let mut offsets = plain.clone();
    let mut planner = Planner::Greedy;
    // Nothing is won by a part below what the fixed buffers or another part need.
    let mut target = task.target;
    let mut index = Vec::new();
    for members in parts(instance) {
        let top = |&x: &u32| plain[x as usize] + instance.size[x as usize];
        if members.iter().map(top).max() <= Some(target) {
            continue;
        }
        let part = instance.part(&members, &mut index);
        let start: Vec<u64> = members.iter().map(|&x| plain[x as usize]).collect();
        let found = place_part(&part, start, target, budget, &mut index);
        for (&x, &offset) in members.iter().zip(&found.offsets) {
            offsets[x as usize] = offset;
        }
        target = target.max(found.height);
        planner = match (planner, found.planner) {
            (Planner::Auto, _) | (_, Planner::Auto) => Planner::Auto,
            (Planner::BestFit, _) | (_, Planner::BestFit) => Planner::BestFit,
            _ => Planner::Greedy,
        };
    }
    if instance.height(&offsets) < greedy_height {
        (offsets, planner)
    } else {
        (plain, Planner::Greedy)
    }
}

/// What is left of the limits.
struct Budget {
    moves: u64,
    work: u64,
    deadline: Deadline,
    stopped: Option<Stop>,
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
}

fn place_part(
    part: &Instance,
    start: Vec<u64>,
    target: u64,
    budget: &mut Budget,
    index: &mut Vec<u32>,
) -> Best {
    let height = part.height(&start);
    let mut best = Best {
        offsets: start,
        height,
        planner: Planner::Greedy,
    };
    if best.height <= target {
        return best;
    }
    let mut starts: Vec<(u64, Vec<u32>)> = Vec::new();
    let mut work = 0;
    for order in orders::all(part) {
        best.offer(
            part,
            &best_fit::place_in_order(part, &order),
            Planner::BestFit,
        );
        let offsets = greedy::first_fit(part, &order);
        best.offer(part, &offsets, Planner::Auto);
        if best.height <= target {
            return best;
        }
        starts.push((part.height(&offsets), order));
        work += 2 * (part.len() + part.entries());
        if work > ORDERS_WORK {
            break;
        }
    }
    // The best placement, in case best fit made it, then the orders by what they gave.
    starts.sort_by_key(|&(height, _)| height);
    starts.insert(0, (best.height, order_of(part, &best.offsets)));
    starts.truncate(STARTS);
    let (core, easy) = peel(part, target);
    let inner = part.part(&core, index);
    let starts: Vec<Vec<u32>> = {
        // Only fixed buffers, or those of the core, have a new number.
        let mut number = vec![NONE; part.len()];
        (0..)
            .zip(&core)
            .for_each(|(new, &old)| number[old as usize] = new);
        let renumber = |&x: &u32| Some(number[x as usize]).filter(|&x| x != NONE);
        let inner = |(_, order): &(u64, Vec<u32>)| {
            order
                .iter()
                .filter_map(renumber)
                .map(|x| x as u32)
                .collect()
        };
        starts.iter().map(inner).collect()
    };
    let mut search = Search::new(&inner);
    let mut seed = 0;
    let mut left = core.len() as u64 * MOVES_PER_BUFFER;
    let mut done = false;
    while !done {
        search.start(&starts[seed as usize % starts.len()]);
        seed += 1;
        let before = search.work;
        let mut random = Random::new(seed);
        let moves = budget
            .moves
            .min(core.len() as u64 * MOVES_PER_START)
            .min(left);
        let tried = search.run(&mut random, target, moves, budget.work);
        budget.moves -= tried;
        left -= tried;
        budget.work = budget.work.saturating_sub(search.work - before);
        if search.height.max(target) < best.height {
            let whole = put_back(part, &core, &easy, search.offsets());
            best.offer(part, &whole, Planner::Auto);
        }
        let late = budget.deadline.passed();
        if late {
            budget.stopped = Some(Stop::Time);
        } else if budget.work == 0 || tried == 0 {
            budget.stopped = budget.stopped.or(Some(Stop::Work));
        }
        done = best.height <= target || budget.work == 0 || tried == 0 || late;
    }
    best
}
