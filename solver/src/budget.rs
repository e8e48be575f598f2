//! What the searches of one call may look at, together.

use crate::solve::{Deadline, Stop};

/// Conflicts and buffers that may be looked at per node on average, so that the nodes of large
/// problems, which take longer, are fewer.
const WORK_PER_NODE: u64 = 400;

/// What is left of the limits.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Nodes of search trees and moves of local search.
    pub(crate) nodes: u64,
    /// Conflicts and buffers.
    pub(crate) work: u64,
    pub(crate) deadline: Deadline,
    used: u64,
    stopped: Option<Stop>,
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

    /// Takes off what was looked at.
    pub(crate) fn spend(&mut self, nodes: u64, work: u64) {
        self.nodes = self.nodes.saturating_sub(nodes);
        self.work = self.work.saturating_sub(work);
        self.used += nodes;
    }

    /// A part of what is left for a search that takes `cost` times as long for what it looks at.
    pub(crate) fn share(&self, divisor: u64, cost: u64) -> Self {
        Self {
            nodes: self.nodes / divisor,
            work: self.work / divisor / cost,
            used: 0,
            ..*self
        }
    }

    /// Takes off what was looked at of a share.
    pub(crate) fn take_back(&mut self, share: &Self, divisor: u64, cost: u64) {
        let work = (self.work / divisor / cost).saturating_sub(share.work);
        self.spend(share.used, work.saturating_mul(cost));
        if share.stopped == Some(Stop::Time) {
            self.stopped = share.stopped;
        }
    }

    /// Notes that the problem is too large for what could still be done.
    pub(crate) fn give_up(&mut self) {
        self.stopped = self.stopped.or(Some(Stop::Work));
    }

    /// Whether nothing is left, or the time is over.
    pub(crate) fn is_over(&mut self) -> bool {
        if self.stopped.is_none() {
            if self.deadline.passed() {
                self.stopped = Some(Stop::Time);
            } else if self.nodes == 0 || self.work == 0 {
                self.stopped = Some(Stop::Work);
            }
        }
        self.stopped.is_some()
    }

    /// Nodes and moves looked at.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// What ended a search.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.stopped
    }
}
