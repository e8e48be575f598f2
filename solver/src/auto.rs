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

use crate::gaps::Gaps;
use crate::instance::{Instance, NONE};
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

/// The parts of the free buffers that no conflict connects, each with the fixed buffers it
/// conflicts with; the parts with the most bytes first.
fn parts(instance: &Instance) -> Vec<Vec<u32>> {
    let n = instance.len();
    let mut seen = vec![false; n];
    let mut parts: Vec<(u128, Vec<u32>)> = Vec::new();
    for start in (0..n).filter(|&x| instance.is_free(x)) {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let mut members = vec![start as u32];
        let mut next = 0;
        while let Some(&x) = members.get(next) {
            next += 1;
            if !instance.is_free(x as usize) {
                continue;
            }
            for &y in instance.neighbours(x as usize) {
                if !seen[y as usize] {
                    seen[y as usize] = true;
                    members.push(y);
                }
            }
        }
        members.sort_unstable();
        for &x in &members {
            seen[x as usize] = instance.is_free(x as usize); // other parts see the fixed ones too
        }
        let bytes = members
            .iter()
            .map(|&x| u128::from(instance.size[x as usize]))
            .sum();
        parts.push((bytes, members));
    }
    parts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    parts.into_iter().map(|(_, members)| members).collect()
}

/// Splits the buffers into those worth a search and the free ones that fit below `target`
/// wherever the others are, in the order in which they are to be put back.
///
/// A conflict takes at most a certain number of aligned offsets away. If all conflicts of a buffer
/// together take away fewer than there are below the target, one is left; and without that buffer
/// others may become as easy.
fn peel(instance: &Instance, target: u64) -> (Vec<u32>, Vec<u32>) {
    let n = instance.len();
    let taken = |x: usize, below: u64, above: u64| {
        u128::from(
            (below + above)
                .saturating_sub(1)
                .div_ceil(instance.align[x]),
        )
    };
    let mut room: Vec<i128> = (0..n)
        .map(|x| {
            let Some(highest) = target.checked_sub(instance.size[x]) else {
                return i128::MIN / 2; // never, whoever leaves
            };
            let offsets = u128::from(highest / instance.align[x]) + 1;
            let all: u128 = instance.conflicts(x).map(|(_, b, a)| taken(x, b, a)).sum();
            offsets as i128 - all as i128
        })
        .collect();
    let mut easy: Vec<u32> = (0..n as u32)
        .filter(|&x| instance.is_free(x as usize) && room[x as usize] > 0)
        .collect();
    let mut is_easy = vec![false; n];
    for &x in &easy {
        is_easy[x as usize] = true;
    }
    let mut next = 0;
    while let Some(&x) = easy.get(next) {
        next += 1;
        for (y, below, above) in instance.conflicts(x as usize) {
            if is_easy[y] || !instance.is_free(y) {
                continue;
            }
            room[y] += taken(y, above, below) as i128;
            if room[y] > 0 {
                is_easy[y] = true;
                easy.push(y as u32);
            }
        }
    }
    easy.reverse();
    (
        (0..n as u32).filter(|&x| !is_easy[x as usize]).collect(),
        easy,
    )
}

/// The placement of all from that of the core.
fn put_back(instance: &Instance, core: &[u32], easy: &[u32], offsets: &[u64]) -> Vec<u64> {
    let mut whole = vec![NONE; instance.len()];
    for (&x, &offset) in core.iter().zip(offsets) {
        whole[x as usize] = offset;
    }
    let mut gaps = Gaps::default();
    for &x in easy {
        let x = x as usize;
        gaps.collect(instance, x, |y| Some(whole[y]).filter(|&o| o != NONE));
        whole[x] = gaps.first_fit(instance.align[x]);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{self, Shape};

    /// Whatever order the core is placed in, the others end at or below the target.
    #[test]
    fn what_is_left_out_fits_below_the_target() {
        let (mut tight, mut left_out) = (0, 0);
        for seed in 0..4000 {
            let shape = Shape {
                buffers: 4 + seed as usize % 5,
                times: 4,
                largest: 4,
                align: if seed % 3 == 0 { 4 } else { 1 },
                fixed_percent: if seed % 4 == 0 { 20 } else { 0 },
                ..Shape::default()
            };
            let problem = generate::overlaps(&shape, seed).unwrap();
            let instance = Instance::new(&problem).unwrap();
            let mut random = Random::new(seed);
            let target = 1 + random.below(24) as u64;
            let (core, easy) = peel(&instance, target);
            left_out += easy.len();
            let inner = instance.part(&core, &mut Vec::new());
            for _ in 0..5 {
                let mut order = order_of(&inner, &vec![0; inner.len()]);
                for i in (1..order.len()).rev() {
                    order.swap(i, random.below(i + 1));
                }
                let offsets = greedy::first_fit(&inner, &order);
                let whole = put_back(&instance, &core, &easy, &offsets);
                for &x in &easy {
                    let top = whole[x as usize] + instance.size[x as usize];
                    assert!(
                        top <= target,
                        "seed {seed}: {x} ends at {top}, above {target}"
                    );
                    tight += usize::from(top == target);
                }
            }
        }
        assert!(
            left_out > 2000 && tight > 100,
            "{left_out} left out, {tight} of them tight"
        );
    }

    #[test]
    fn parts_share_no_conflict_and_miss_no_buffer() {
        for seed in 0..200 {
            let shape = Shape {
                buffers: 20,
                times: 30,
                fixed_percent: 10,
                ..Shape::default()
            };
            let problem = generate::intervals(&shape, seed).unwrap();
            let instance = Instance::new(&problem).unwrap();
            let mut part_of = vec![None; instance.len()];
            for (index, members) in parts(&instance).iter().enumerate() {
                for &x in members.iter().filter(|&&x| instance.is_free(x as usize)) {
                    assert_eq!(part_of[x as usize].replace(index), None, "seed {seed}");
                    for y in instance.neighbours(x as usize) {
                        assert!(members.contains(y), "seed {seed}: {y} is not with {x}");
                    }
                }
            }
            for x in (0..instance.len()).filter(|&x| instance.is_free(x)) {
                assert!(part_of[x].is_some(), "seed {seed}: {x} is in no part");
            }
        }
    }
}
