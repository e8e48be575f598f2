//! An integer program for each part of the problem that the fast planners leave above its bound.
//!
//! ```text
//! part -> first fit and best fit over all orders; what fits anyway is left out; local search
//!      -> orders and stacks in whole numbers: nothing below the best placement? proven
//!      -> integer program from there up to the best placement: the orders of all pairs
//!      -> pushed down with these orders, and what was left out put back
//! ```
//! Of a solution only the orders count, so that offsets and heights are exact. That nothing is
//! lower is the word of a solver that calculates in floating point: it is taken only if the search
//! has ended by itself, and with a good part of a unit, the least difference of two heights, in
//! doubt. What whole numbers tell needs no such trust.

mod backend;
mod model;
mod orders;
mod stack;
mod symmetry;

use self::backend::{Allowance, Answer, BACKENDS};
use self::model::{MAX_HEIGHT, Model};
use self::orders::{Chain, Orders};
use self::stack::Stacks;
use crate::auto::{Best, Core, by_parts};
use crate::budget::Budget;
use crate::instance::Instance;
use crate::pairs::{Order, pairs};
use crate::solve::{Found, Planner, Stop, Task};

/// The nodes of `ilp`: some seconds.
const NODES: u64 = 50_000;

/// Parts with more conflicts than this, after what fits anyway is left out, are not looked at.
const MAX_PAIRS: usize = 600;

/// Programs with more open orders than this are not solved.
const MAX_OPEN: usize = 200;

/// The most nodes of one program, whose open ones are all in memory.
const MAX_NODES: u64 = 100_000;

/// How often a program is solved again with the chains that its last solution did not know.
const MAX_ROUNDS: usize = 400;

/// The work of a node is the square of the rows of its linear program over this.
const ROWS_SQUARED_PER_WORK: u64 = 50;

/// The best placement found, and what is known about it. Never above the greedy planner's.
pub(crate) fn place(task: &Task<'_>) -> Found {
    by_parts(task, NODES, improve)
}

/// Lowers the placement of a part; see [`by_parts`].
fn improve(
    best: &mut Best,
    part: &Instance,
    target: u64,
    decide: bool,
    budget: &mut Budget,
) -> u64 {
    let orders = best.try_orders(part, target, budget);
    if best.height <= target || budget.is_over() {
        return target;
    }
    let core = Core::of(part, target);
    best.search_a_while(&core, orders, target, budget);
    if best.height <= target || budget.is_over() {
        return target;
    }
    let seed = core.members.iter().map(|&x| best.offsets[x as usize]);
    let mut search = Search::new(&core.inner, seed.collect(), target);
    search.run(decide, budget);
    best.offer(part, &core.put_back(&search.best), Planner::Ilp);
    search.proven
}

/// The search for the lowest placement of the core of a part.
struct Search<'a> {
    instance: &'a Instance,
    target: u64,
    /// The best placement and its height.
    best: Vec<u64>,
    height: u64,
    /// It is proven that there is no placement from the target up to but not including this height.
    proven: u64,
    /// Orders that may be taken as they are in the seed.
    choices: Vec<(usize, Order)>,
    chains: Vec<Chain>,
}

impl<'a> Search<'a> {
    fn new(instance: &'a Instance, seed: Vec<u64>, target: u64) -> Self {
        Self {
            instance,
            target,
            height: instance.height(&seed),
            best: seed,
            proven: target,
            choices: Vec::new(),
            chains: Vec::new(),
        }
    }

    fn run(&mut self, decide: bool, budget: &mut Budget) {
        if self.is_done(decide) {
            return;
        }
        if self.instance.entries() / 2 > MAX_PAIRS {
            return budget.give_up();
        }
        let pairs = pairs(self.instance);
        if !self.instance.is_signed() {
            self.choices = symmetry::free_choices(self.instance, &pairs, &self.best);
        }
        self.prove();
        let certain = self.proven;
        let mut rounds = 0;
        while !self.is_done(decide) && self.round(budget) {
            rounds += 1;
            if rounds == MAX_ROUNDS {
                budget.give_up();
                break;
            }
        }
        if self.proven > self.height.max(self.target) {
            self.proven = certain; // there is a placement below: the backend was wrong
        }
    }

    fn is_done(&self, decide: bool) -> bool {
        self.proven >= self.height || decide && self.proven > self.target
    }

    /// Raises what is proven as far as whole numbers tell.
    fn prove(&mut self) {
        // All that is left first, then always half of it.
        let (mut most, mut next) = (self.height, self.height);
        while self.proven < most {
            if self.is_least(next) {
                self.proven = next;
            } else {
                most = next - 1;
            }
            next = self.proven + (most - self.proven).div_ceil(2);
        }
    }

    /// Whether whole numbers tell that no placement is below a height.
    fn is_least(&self, height: u64) -> bool {
        self.orders(height - 1).is_none_or(|orders| {
            let stacks = Stacks::new(self.instance, &orders);
            let fits = |stack: &Vec<usize>| {
                let least = stacks.least_height(stack);
                least.is_some_and(|least| least < height)
            };
            !stacks.all().iter().all(fits)
        })
    }

    /// What holds up to a height, `None` if there is no such placement.
    fn orders(&self, height: u64) -> Option<Orders> {
        let mut orders = Orders::new(self.instance, height)?;
        let mut choices = self.choices.iter();
        let left = choices.all(|&(at, order)| orders.assume(at, order)) && orders.probe();
        left.then_some(orders)
    }

    /// Solves a program. False if another one is of no use.
    fn round(&mut self, budget: &mut Budget) -> bool {
        // Up to the height of the best placement, so that it is a solution.
        let orders = self.orders(self.height);
        let orders = orders.filter(|orders| orders.count_open() <= MAX_OPEN);
        let Some(orders) = orders.filter(|_| self.height <= MAX_HEIGHT) else {
            budget.give_up();
            return false;
        };
        let mut model = Model::new(self.instance, &orders, self.proven, &self.best);
        for chain in &self.chains {
            model.add_chain(chain);
        }
        let Some(answer) = solve(&model, budget) else {
            return false;
        };
        self.proven = self.proven.max(answer.bound(&model).unwrap_or(0));
        let Some(values) = answer.values else {
            return false;
        };
        let chosen = model.orders(&values);
        let Some(pushed) = orders.push_down(self.instance, &chosen) else {
            return false;
        };
        let height = self.instance.height(&pushed.offsets);
        if pushed.fits && height < self.height {
            self.best.clone_from(&pushed.offsets);
            self.height = height;
        }
        if self.instance.is_signed() {
            // What lies in a hole may keep up what keeps it up, with different alignments.
            if self.height > self.proven {
                budget.give_up();
            }
            return false;
        }
        let known = self.chains.len();
        let chains = pushed.chains(&orders, &chosen);
        self.chains
            .extend(chains.filter(|chain| model.violates(&values, chain)));
        answer.stopped.is_none() && self.chains.len() > known
    }
}

/// What the first backend that does not fail makes of a program.
fn solve(model: &Model, budget: &mut Budget) -> Option<Answer> {
    let rows = model.rows.len() as u64;
    let work = (rows * rows / ROWS_SQUARED_PER_WORK).max(1);
    let allowance = Allowance {
        nodes: budget.nodes.min(budget.work / work).min(MAX_NODES),
        time: budget.deadline.left(),
    };
    if budget.is_over() {
        return None;
    }
    let answer = BACKENDS.iter().find_map(|solve| solve(model, allowance));
    let Some(answer) = answer else {
        budget.give_up();
        return None;
    };
    let nodes = match answer.stopped {
        Some(Stop::Work) => allowance.nodes,
        _ => answer.nodes.max(1),
    };
    budget.spend(nodes, nodes.saturating_mul(work));
    if answer.stopped.is_some() && !budget.is_over() {
        budget.give_up();
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{self, Shape};
    use crate::solve::Deadline;
    use crate::{Conflict, Limits, Problem, bound, check, linear, solve};

    /// A search that starts from the worst placement there is.
    fn search<'a>(instance: &'a Instance, nodes: u64) -> (Search<'a>, Budget) {
        let seed = linear::place(instance);
        let mut search = Search::new(instance, seed, bound::lower_bound(instance));
        let mut budget = Budget::new(nodes, Deadline::after(None));
        search.run(false, &mut budget);
        (search, budget)
    }

    fn shape(seed: u64) -> Shape {
        Shape {
            buffers: 3 + seed as usize % 6,
            times: 2 + (seed / 7 % 6) as i32,
            longest: 2 + (seed % 4) as i32,
            largest: [3, 20, 200][seed as usize % 3],
            align: [1, 1, 2, 8, 16][seed as usize % 5],
            fixed_percent: if seed.is_multiple_of(6) { 20 } else { 0 },
            ..Shape::default()
        }
    }

    /// The exact search knows nothing of integer programs. Gives how many orders were chosen.
    fn verify_against_the_exact_search(make: impl Fn(&Shape, u64) -> Problem) -> usize {
        let (mut total, mut done, mut searched, mut choices, mut open) = (0, 0, 0, 0, 0);
        for seed in 0..200 {
            let problem = make(&shape(seed), seed);
            let Ok(exact) = solve(&problem, Planner::Exact, &Limits::default()) else {
                continue; // contradicting fixed offsets
            };
            if !exact.optimal() {
                open += 1; // a circle of different alignments
                continue;
            }
            let instance = Instance::new(&problem).unwrap();
            let (search, budget) = search(&instance, 10_000);
            let placement = instance.placement(&search.best);
            assert_eq!(check(&problem, &placement), [], "seed {seed}");
            let proven = search.proven * instance.unit;
            let best = exact.placement.height;
            assert!(proven <= best, "seed {seed}: {proven} proven, {best} found");
            if search.is_done(false) {
                assert_eq!(placement.height, best, "seed {seed}");
                assert_eq!(budget.stopped(), None, "seed {seed}");
                done += 1;
            }
            total += 1;
            searched += usize::from(budget.used() > 0);
            choices += search.choices.len();
        }
        assert!(open < 5, "{open} not proven by the exact search");
        assert!(done * 100 >= total * 98, "{done} of {total} proven");
        assert!(searched * 5 > total, "{searched} of {total} had a program");
        choices
    }

    #[test]
    fn finds_and_proves_what_the_exact_search_does() {
        let make = |shape: &Shape, seed| generate::intervals(shape, seed).unwrap();
        let choices = verify_against_the_exact_search(make);
        assert!(choices > 60, "{choices} choices by symmetry");
        let make = |shape: &Shape, seed| generate::overlaps(shape, seed).unwrap();
        verify_against_the_exact_search(make);
        // Several conflicts between two buffers: all hold.
        let make = |shape: &Shape, seed| {
            let mut problem = generate::overlaps(shape, seed).unwrap();
            let conflicts: Vec<_> = problem.conflicts().map(|(a, b, c)| (a, b, *c)).collect();
            for (
                a,
                b,
                Conflict {
                    a_below_b,
                    b_below_a,
                },
            ) in conflicts
            {
                let other = Conflict {
                    a_below_b: a_below_b * 2 % 7,
                    b_below_a: b_below_a * 3 % 5,
                };
                problem.add_conflict(a, b, other).unwrap();
            }
            problem
        };
        verify_against_the_exact_search(make);
    }

    /// Blocks without a hole: even the greatest heights are proven, a unit above them nothing is
    /// tried.
    #[test]
    fn heights_of_many_units() {
        for seed in 0..20 {
            let height = [1_000, 50_000, 3_000_001, MAX_HEIGHT / 4][seed as usize % 4];
            let problem = generate::cut_block(10, height, 9, 1, seed).unwrap();
            let instance = Instance::new(&problem).unwrap();
            let before = instance.height(&linear::place(&instance));
            let (search, budget) = search(&instance, NODES);
            let height = height / instance.unit;
            if before <= MAX_HEIGHT {
                assert_eq!(
                    (search.height, search.proven),
                    (height, height),
                    "seed {seed}"
                );
            } else {
                assert_eq!(
                    (search.height, search.proven),
                    (before, height),
                    "seed {seed}"
                );
                assert_eq!(budget.stopped(), Some(Stop::Work), "seed {seed}");
            }
        }
    }

    /// HiGHS does not tell its nodes.
    #[test]
    #[cfg(not(feature = "highs"))]
    fn limits_end_the_search() {
        let problem = generate::cut_block(12, 1000, 14, 1, 5).unwrap();
        let instance = Instance::new(&problem).unwrap();
        let before = instance.height(&linear::place(&instance));
        let (whole, budget) = search(&instance, NODES);
        assert_eq!((whole.height, budget.stopped()), (1000, None));
        let needed = budget.used();
        for nodes in [0, 1, needed / 2] {
            let (search, budget) = search(&instance, nodes);
            assert_eq!(budget.stopped(), Some(Stop::Work), "{nodes} nodes");
            assert!(budget.used() <= nodes, "{nodes} nodes");
            assert!(
                search.height > 1000 && search.height <= before,
                "{nodes} nodes"
            );
            assert_eq!(search.proven, 1000);
        }
    }
}
