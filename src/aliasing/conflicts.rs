//! What sharing means for the solver: a buffer per block, the least separations of each two, and a lower bound.

use std::collections::BTreeMap;

use arenaplan_solver::{Buffer, BufferId, Conflict, Lifetime, Problem};

use super::{Apart, Block, Sharing};
use crate::error::Error;
use crate::graph::TensorId;
use crate::interference::{Node, solver_error};
use crate::lifetimes::Span;
use crate::target::Library;

/// A part of a buffer with a lifetime of its own.
#[derive(Clone, Copy)]
struct Item {
    node: u32,
    /// Bytes from the start of the buffer.
    at: u64,
    size: u64,
    span: Span,
    /// `None` for scratch memory.
    tensor: Option<TensorId>,
    /// The library that asks for it, where that is one of several that may be there.
    library: Option<Library>,
}

impl Item {
    /// Whether both can be in the arena in one invoke.
    fn meets(&self, other: &Item) -> bool {
        // The library that all else is made for has no name here.
        let of_scratch = |i: &Item| i.tensor.is_none().then_some(i.library);
        match (of_scratch(self), of_scratch(other)) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        }
    }

    fn apart(&self, other: &Item, sharing: &Sharing<'_, '_>) -> Apart {
        match (self.tensor, other.tensor) {
            (Some(a), Some(b)) => sharing.apart(a, b),
            _ => Apart {
                first_below: self.size,
                second_below: other.size,
            },
        }
    }
}

/// A lower bound of all placements, and what gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The bound.
    pub(crate) bytes: u64,
    /// The moment at which so much is needed; `None` when only one buffer is as large.
    pub(crate) clock: Option<i32>,
}

impl Sharing<'_, '_> {
    /// The buffer for a block: as large as all its tensors together, in use while any of them is.
    pub(crate) fn buffer(&self, block: &Block) -> Buffer {
        let members = || block.members.iter();
        let spans = || members().map(|m| self.span(m.tensor));
        let is_planned = members().all(|m| self.graph.tensor(m.tensor).is_planned());
        Buffer {
            size: members()
                .map(|m| m.at + self.rounded(m.tensor))
                .max()
                .unwrap_or(0),
            align: match is_planned {
                true => self.rules.align,
                false => self.rules.granule,
            },
            lifetime: Lifetime {
                first: spans().map(|s| s.first).min().unwrap_or(0),
                last: spans().map(|s| s.last).max().unwrap_or(0),
            },
            fixed: members().find_map(|m| self.fixed(m.tensor)?.checked_sub(m.at)),
        }
    }

    /// The parts of all buffers, by first use.
    fn items(&self, nodes: &[Node], buffers: &[Buffer]) -> Vec<Item> {
        let mut items = Vec::new();
        for (index, (node, buffer)) in nodes.iter().zip(buffers).enumerate() {
            let mut push = |at, size, span, tensor| {
                items.push(Item {
                    node: index as u32,
                    at,
                    size,
                    span,
                    tensor,
                    library: match node {
                        Node::OtherScratch { library, .. } => Some(*library),
                        _ => None,
                    },
                });
            };
            match node {
                Node::Tensor(t) => push(0, buffer.size, self.span(*t), Some(*t)),
                Node::Merged(members) => members.iter().for_each(|m| {
                    push(
                        m.at,
                        self.rounded(m.tensor),
                        self.span(m.tensor),
                        Some(m.tensor),
                    )
                }),
                Node::Scratch { operator, .. } => {
                    push(0, buffer.size, self.lifetimes.operator(*operator), None);
                }
                Node::OtherScratch {
                    operator, bytes, ..
                } => {
                    push(0, *bytes, self.lifetimes.operator(*operator), None);
                }
            }
        }
        items.sort_by_key(|i| i.span.first);
        items
    }

    /// The solver's problem: a conflict for each two buffers of which parts are alive at once and may not lie anyhow.
    pub(crate) fn problem(&self, nodes: &[Node], buffers: Vec<Buffer>) -> Result<Problem, Error> {
        let items = self.items(nodes, &buffers);
        let mut problem = Problem::new();
        for buffer in buffers {
            problem.add_buffer(buffer);
        }
        let is_merged = |item: &Item| matches!(nodes[item.node as usize], Node::Merged(_));
        // What several parts of two buffers need; each pair once.
        let mut merged: BTreeMap<(u32, u32), Conflict> = BTreeMap::new();
        let mut alive: Vec<Item> = Vec::new();
        for item in items {
            alive.retain(|a| a.span.last >= item.span.first);
            for other in alive
                .iter()
                .filter(|a| a.node != item.node && a.meets(&item))
            {
                let (a, b) = match item.node < other.node {
                    true => (&item, other),
                    false => (other, &item),
                };
                let apart = a.apart(b, self);
                let conflict = Conflict {
                    a_below_b: (a.at + apart.first_below).saturating_sub(b.at) as i64,
                    b_below_a: (b.at + apart.second_below).saturating_sub(a.at) as i64,
                };
                if (conflict.a_below_b, conflict.b_below_a) == (0, 0) {
                    continue;
                }
                if is_merged(a) || is_merged(b) {
                    let all = merged.entry((a.node, b.node)).or_insert(conflict);
                    all.a_below_b = all.a_below_b.max(conflict.a_below_b);
                    all.b_below_a = all.b_below_a.max(conflict.b_below_a);
                } else {
                    problem
                        .add_conflict(BufferId(a.node), BufferId(b.node), conflict)
                        .map_err(solver_error)?;
                }
            }
            alive.push(item);
        }
        for ((a, b), conflict) in merged {
            problem
                .add_conflict(BufferId(a), BufferId(b), conflict)
                .map_err(solver_error)?;
        }
        problem.validate().map_err(solver_error)?;
        Ok(problem)
    }

    /// Bytes that no placement is below: at the start of each operator what is alive, with outputs running into inputs as
    /// far as they may. Inputs are apart from each other, and outputs too, so that no byte is saved twice.
    pub(crate) fn bound(&self, nodes: &[Node], buffers: &[Buffer]) -> Bound {
        let items = self.items(nodes, buffers);
        let mut alive: Vec<Item> = Vec::new();
        let mut bound = Bound {
            bytes: (buffers.iter())
                .map(|b| b.size + b.fixed.unwrap_or(0))
                .max()
                .unwrap_or(0),
            clock: None,
        };
        let mut next = 0;
        while let Some(&Item {
            span: Span { first: now, .. },
            ..
        }) = items.get(next)
        {
            alive.retain(|a| a.span.last >= now);
            while let Some(item) = items.get(next).filter(|i| i.span.first == now) {
                alive.push(*item);
                next += 1;
            }
            let bytes = self.covered(&mut alive, nodes);
            // A moment that needs no less than the largest buffer says more than that.
            let least = bound.bytes + u64::from(bound.clock.is_some());
            if bytes >= least {
                let bytes = bytes - self.shared(&alive, now);
                if bytes >= least {
                    bound = Bound {
                        bytes,
                        clock: Some(now),
                    };
                }
            }
        }
        bound
    }

    /// Bytes of all buffers that some part alive covers.
    fn covered(&self, alive: &mut [Item], nodes: &[Node]) -> u64 {
        // Parts of one buffer lie over each other only where buffers are merged.
        alive.sort_unstable_by_key(|i| (i.node, i.at, i.tensor));
        let mut bytes = 0;
        let mut last = None;
        for item in alive.iter() {
            if !matches!(nodes[item.node as usize], Node::Merged(_)) {
                bytes += item.size;
                continue;
            }
            let from = match last {
                Some((node, end)) if node == item.node => item.at.max(end),
                _ => item.at,
            };
            let end = (item.at + item.size).max(from);
            bytes += end - from;
            last = Some((item.node, end));
        }
        bytes
    }

    /// The most bytes that outputs written at `now` may share with inputs read at `now` for the last time.
    fn shared(&self, alive: &[Item], now: i32) -> u64 {
        let mut shared = 0;
        for output in alive.iter().filter(|i| i.span.first == now) {
            let mut most = 0;
            for input in alive
                .iter()
                .filter(|i| i.span.last == now && i.node != output.node)
            {
                let (Some(from), Some(to)) = (input.tensor, output.tensor) else {
                    continue;
                };
                if self
                    .overlap(from, to)
                    .is_none_or(|(input, _, _)| input != from)
                {
                    continue;
                }
                let apart = self.apart(from, to);
                let input_below = (apart.first_below + output.size).max(input.size);
                let output_below = (apart.second_below + input.size).max(output.size);
                most += (input.size + output.size)
                    - input_below.min(output_below).min(input.size + output.size);
            }
            shared += most.min(output.size);
        }
        shared
    }
}
