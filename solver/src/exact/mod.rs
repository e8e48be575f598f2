//! The exact search: decides a capacity, and minimises by deciding one after the other.
//!
//! ```text
//! problem, in an order that does not depend on its own
//!   -> parts that no conflict connects
//!        -> what fits anyway is left out
//!             -> is there a placement of the rest below a capacity?      `tree`
//! ```
//! Where buffers may lie in holes of others (negative separations), or circles of different
//! alignments keep each other up, that tree does not find all placements: [`crate::sides`] does.
//!
//! How long one run of the tree takes depends wildly on how ties are broken: most are found in a
//! few hundred nodes or not in a million. So runs are short at first, each with another order
//! (`order`) and other ties, and become longer in rounds. What one run has proven to fail is known
//! to the next (`memo`).

mod circles;
mod memo;
mod order;
mod tables;
mod tree;

use ::core::ops::Range;

use self::order::ORDERS;
use self::tree::{Allowance, Answer, Tree};
use crate::budget::Budget;
use crate::instance::Instance;
use crate::search::Random;

pub(crate) use self::tables::Tables;

/// Nodes of a run in the first round, per buffer.
const NODES_PER_BUFFER: u64 = 2;

/// Buffers and conflicts (seen from both sides) at most.
const MOST_BUFFERS: usize = 10_000;
const MOST_CONFLICTS: usize = 1 << 22;

/// The search for the lowest placement of one part, between the heights that are of use.
#[derive(Debug)]
pub(crate) struct Exact<'a> {
    tables: &'a Tables,
    tree: Tree<'a>,
    target: u64,
    proven: u64,
    height: u64,
    found: Option<Vec<u64>>,
    random: Random,
    rank: Vec<u32>,
}

impl<'a> Exact<'a> {
    /// What a search needs to know, or `None` if the part is too large for one, or its best
    /// placement may be one that the search does not come by. No separation is negative.
    pub(crate) fn tables(part: &Instance) -> Option<Tables> {
        let fits = part.len() <= MOST_BUFFERS && part.entries() <= MOST_CONFLICTS;
        (fits && !circles::any_uneven(part)).then(|| Tables::new(part))
    }

    /// A search for heights from `target` up to but not including `height`.
    pub(crate) fn new(tables: &'a Tables, target: u64, height: u64) -> Self {
        Self {
            tables,
            tree: Tree::new(tables),
            target,
            proven: target,
            height,
            found: None,
            random: Random::new(1),
            rank: (0..tables.len() as u32).collect(),
        }
    }

    /// The offsets of the lowest placement found, if there is one.
    pub(crate) fn found(&self) -> Option<&[u64]> {
        self.found.as_deref()
    }

    /// It is proven that there is no placement from the target up to but not including this height.
    pub(crate) fn proven(&self) -> u64 {
        self.proven
    }

    /// Whether nothing is left to find.
    pub(crate) fn is_done(&self) -> bool {
        self.proven >= self.height
    }

    /// Takes over a height that was found in another way.
    pub(crate) fn lower(&mut self, height: u64) {
        if height < self.height {
            self.height = height;
            self.found = None;
        }
    }

    /// Searches only for a placement at the target.
    pub(crate) fn reach_target(&mut self, rounds: Range<u32>, budget: &mut Budget) {
        if !self.is_done() && self.decide(self.target, rounds, budget) == Answer::No {
            self.proven = self.proven.max(self.target + 1);
        }
    }

    /// Searches for lower and lower placements, in sweeps from round `from` on. A sweep tries the
    /// lowest capacity that is open, then one in the middle between the lowest one that is not
    /// known to be hopeless and the lowest placement found, and so on. One that takes longer than
    /// a round counts as hopeless for the rest of the sweep.
    pub(crate) fn minimise(&mut self, from: u32, budget: &mut Budget) {
        for round in from.. {
            let mut hopeless = self.proven;
            let mut capacity = self.proven;
            while !self.is_done() && hopeless < self.height && !budget.is_over() {
                match self.decide(capacity, round..round + 1, budget) {
                    Answer::Yes => {}
                    Answer::No => self.proven = capacity + 1,
                    Answer::Unknown => hopeless = capacity + 1,
                }
                hopeless = hopeless.max(self.proven);
                capacity = hopeless + self.height.saturating_sub(hopeless + 1) / 2;
            }
            if self.is_done() || budget.is_over() {
                break;
            }
        }
    }

    /// Runs over all orders, in rounds, each with twice the nodes of the one before.
    fn decide(&mut self, capacity: u64, rounds: Range<u32>, budget: &mut Budget) -> Answer {
        for round in rounds {
            for &order in ORDERS {
                if budget.is_over() {
                    return Answer::Unknown;
                }
                if round > 0 {
                    for i in (1..self.rank.len()).rev() {
                        self.rank.swap(i, self.random.below(i + 1));
                    }
                }
                let nodes = (NODES_PER_BUFFER * self.tables.len() as u64) << round.min(32);
                let allowance = Allowance {
                    nodes: nodes.min(budget.nodes),
                    work: budget.work,
                    deadline: budget.deadline,
                };
                let (nodes, work) = (self.tree.nodes, self.tree.work);
                let answer = self.tree.run(capacity, order, &self.rank, allowance);
                budget.spend(self.tree.nodes - nodes, self.tree.work - work);
                match answer {
                    Answer::Unknown => continue,
                    Answer::No => {}
                    Answer::Yes => {
                        let offsets = self.tree.offsets();
                        let tops = offsets.iter().zip(&self.tables.size).map(|(o, s)| o + s);
                        self.height = tops.max().unwrap_or(0).max(self.target);
                        self.found = Some(offsets);
                    }
                }
                return answer;
            }
        }
        Answer::Unknown
    }
}
