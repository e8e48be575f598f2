//! The exact search: decides a capacity, and minimises by deciding one after the other.
//!
//! ```text
//! problem, in an order that does not depend on its own
//!   -> parts that no conflict connects
//!        -> what fits anyway is left out
//!             -> is there a placement of the rest below a capacity?      `tree`
//! ```
//! How long one run of the tree takes depends wildly on how ties are broken: most are found in a
//! few hundred nodes or not in a million. So runs are short at first, each with another order
//! (`order`) and other ties, and become longer in rounds. What one run has proven to fail is known
//! to the next (`memo`).

mod arrays;
mod memo;
mod order;
mod tree;

use self::arrays::Core;
use self::order::ORDERS;
use self::tree::{Allowance, Answer, Tree};
use crate::instance::Instance;
use crate::parts::{parts, peel, put_back};
use crate::search::Random;
use crate::solve::{Deadline, Stop};

/// Conflicts and buffers that may be looked at per node on average, so that the nodes of large
/// problems, which take longer, are fewer.
const WORK_PER_NODE: u64 = 4_000;

/// Nodes of a run in the first round, per buffer.
const NODES_PER_BUFFER: u64 = 2;

/// Buffers and conflicts (seen from both sides) of a part at most.
const MOST_BUFFERS: usize = 10_000;
const MOST_CONFLICTS: usize = 1 << 22;

/// What is left of the limits.
#[derive(Debug)]
pub(crate) struct Budget {
    nodes: u64,
    work: u64,
    deadline: Deadline,
    /// Nodes looked at.
    pub(crate) used: u64,
    /// What ended the search.
    pub(crate) stopped: Option<Stop>,
}

impl Budget {
    pub(crate) fn new(nodes: u64, deadline: Deadline) -> Self {
        Self {
            nodes,
            work: nodes.saturating_mul(WORK_PER_NODE),
            deadline,
            used: 0,
            stopped: None,
        }
    }
}

/// Lowers a placement towards `target`, or only decides whether it can be reached. Gives the best
/// offsets found, and a height below which it is proven that there is none: 0 if nothing is.
pub(crate) fn improve(
    instance: &Instance,
    start: Vec<u64>,
    target: u64,
    decide: bool,
    budget: &mut Budget,
) -> (Vec<u64>, u64) {
    let mut offsets = start;
    let mut bound = 0;
    let mut target = target;
    let mut index = Vec::new();
    for members in parts(instance) {
        let top = |&x: &u32| offsets[x as usize] + instance.size[x as usize];
        let height = members.iter().map(top).max().unwrap_or(0);
        if height <= target {
            continue;
        }
        let part = instance.part(&members, &mut index);
        let (core, easy) = peel(&part, target);
        let inner = part.part(&core, &mut index);
        if inner.len() > MOST_BUFFERS || inner.entries() > MOST_CONFLICTS {
            budget.stopped = budget.stopped.or(Some(Stop::Work));
            target = target.max(height);
            continue;
        }
        let arrays = Core::new(&inner);
        let mut search = Minimise::new(&arrays, height, target);
        search.run(budget, decide);
        if search.proven > target {
            bound = bound.max(search.proven);
        }
        if let Some(found) = search.found {
            let whole = put_back(&part, &core, &easy, &found);
            for (&x, &offset) in members.iter().zip(&whole) {
                offsets[x as usize] = offset;
            }
        }
        target = target.max(search.height);
    }
    (offsets, bound)
}

/// The search for the lowest placement of one part.
struct Minimise<'a> {
    core: &'a Core,
    tree: Tree<'a>,
    /// Nothing below this is proven to exist, or of use.
    proven: u64,
    /// The best height so far.
    height: u64,
    found: Option<Vec<u64>>,
    random: Random,
    rank: Vec<u32>,
}

impl<'a> Minimise<'a> {
    fn new(core: &'a Core, height: u64, target: u64) -> Self {
        Self {
            core,
            tree: Tree::new(core),
            proven: target,
            height,
            found: None,
            random: Random::new(1),
            rank: (0..core.len() as u32).collect(),
        }
    }

    fn run(&mut self, budget: &mut Budget, decide: bool) {
        let target = self.proven;
        let mut hopeless = target; // below this nothing was found
        let mut rounds = 1;
        let mut capacity = target;
        while self.proven < self.height && budget.stopped.is_none() {
            match self.decide(capacity, if decide { u32::MAX } else { rounds }, budget) {
                Answer::Yes => {}
                Answer::No => self.proven = capacity + 1,
                Answer::Unknown => hopeless = capacity + 1,
            }
            if decide {
                break;
            }
            hopeless = hopeless.max(self.proven);
            if hopeless >= self.height {
                hopeless = self.proven;
                rounds += 1;
            }
            capacity = hopeless + (self.height.saturating_sub(1).saturating_sub(hopeless)) / 2;
        }
    }

    /// Runs over all orders, in rounds, each with twice the nodes of the one before.
    fn decide(&mut self, capacity: u64, rounds: u32, budget: &mut Budget) -> Answer {
        for round in 0..rounds {
            for &order in ORDERS {
                if budget.deadline.passed() {
                    budget.stopped = Some(Stop::Time);
                } else if budget.nodes == 0 || budget.work == 0 {
                    budget.stopped = Some(Stop::Work);
                }
                if budget.stopped.is_some() {
                    return Answer::Unknown;
                }
                if round > 0 {
                    for i in (1..self.rank.len()).rev() {
                        self.rank.swap(i, self.random.below(i + 1));
                    }
                }
                let nodes = (NODES_PER_BUFFER * self.core.len() as u64) << round.min(32);
                let allowance = Allowance {
                    nodes: nodes.min(budget.nodes),
                    work: budget.work,
                };
                let (nodes, work) = (self.tree.nodes, self.tree.work);
                let answer = self.tree.run(capacity, order, &self.rank, allowance);
                budget.nodes -= self.tree.nodes - nodes;
                budget.used += self.tree.nodes - nodes;
                budget.work = budget.work.saturating_sub(self.tree.work - work);
                match answer {
                    Answer::Yes => {
                        let offsets = self.tree.offsets();
                        let tops = offsets.iter().zip(&self.core.size).map(|(o, s)| o + s);
                        self.height = tops.max().unwrap_or(0);
                        self.found = Some(offsets);
                        return answer;
                    }
                    Answer::No => return answer,
                    Answer::Unknown => {}
                }
            }
        }
        Answer::Unknown
    }
}
