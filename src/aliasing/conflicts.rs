//! What sharing means for the solver: a buffer per block, the least separations of each two, and a lower bound.

use std::collections::BTreeMap;

use arenaplan_solver::{Buffer, BufferId, Conflict, Lifetime, Problem};

use super::{Apart, Block, Sharing};
use crate::error::Error;
use crate::graph::TensorId;
use crate::interference::{Node, solver_error};
use crate::lifetimes::Span;
use crate::target::Library;

/// A part of a buffer with a lifetime of its own: a tensor, or scratch memory.
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

    /// One such interval for a model without pieces: that of two buffers of which neither starts above the other and below it
    /// at once.
    fn hull(&self, other: &Item, sharing: &Sharing<'_, '_>) -> Option<Interval> {
        let apart = match (self.tensor, other.tensor) {
            (Some(a), Some(b)) => sharing.apart(a, b),
            _ => Apart {
                first_below: self.size,
                second_below: other.size,
            },
        };
        let this_below = (self.at + apart.first_below).saturating_sub(other.at);
        let other_below = (other.at + apart.second_below).saturating_sub(self.at);
        let hull = (-(this_below as i64), other_below as i64);
        (hull != (0, 0)).then_some(hull)
    }

    /// The differences of the offsets of the two buffers, this one's less the other's, that they must not have: open
    /// intervals, in any order.
    fn forbidden(&self, other: &Item, sharing: &Sharing<'_, '_>) -> Vec<Interval> {
        let tensor = |i: &Item| i.tensor.filter(|&t| sharing.knows_pieces(t));
        let all = match (tensor(self), tensor(other), self.tensor, other.tensor) {
            (Some(a), Some(b), _, _) => sharing.all_forbidden(a, b),
            (_, _, Some(a), Some(b)) => {
                let apart = sharing.apart(a, b);
                vec![(-(apart.first_below as i64), apart.second_below as i64)]
            }
            _ => vec![(-(self.size as i64), other.size as i64)],
        };
        let by = other.at as i64 - self.at as i64;
        let moved = all.into_iter().map(|(least, most)| (least + by, most + by));
        moved.collect()
    }
}

/// Differences of two offsets that must not be, without the ends.
pub(crate) type Interval = (i64, i64);

/// Joins the intervals that no difference is between that is a multiple of `step`.
pub(crate) fn joined(mut intervals: Vec<Interval>, step: u64) -> Vec<Interval> {
    let step = i64::try_from(step).unwrap_or(1).max(1);
    intervals.sort_unstable();
    let mut all: Vec<Interval> = Vec::new();
    for (least, most) in intervals {
        match all.last_mut() {
            // The first multiple from the end of the one on.
            Some(last) if last.1 + (-last.1).rem_euclid(step) > least => last.1 = last.1.max(most),
            _ => all.push((least, most)),
        }
    }
    all
}

/// The largest number that divides both.
fn divisor(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => divisor(b, a % b),
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

    /// The solver's problem: a conflict for each two buffers of which parts are alive at once and may not lie anyhow. Where
    /// tensors have pieces, two buffers have one for each gap that they may lie in.
    pub(crate) fn problem(&self, nodes: &[Node], buffers: Vec<Buffer>) -> Result<Problem, Error> {
        let items = self.items(nodes, &buffers);
        let is_exact = self.has_pieces();
        // What two offsets that are given differ by may be anything.
        let step = |a: u32, b: u32| match (&buffers[a as usize], &buffers[b as usize]) {
            (a, b) if a.fixed.is_none() && b.fixed.is_none() => divisor(a.align, b.align),
            _ => 1,
        };
        let mut problem = Problem::new();
        for buffer in &buffers {
            problem.add_buffer(*buffer);
        }
        let mut add = |(a, b): (u32, u32), (least, most): Interval| {
            let conflict = Conflict {
                a_below_b: -least,
                b_below_a: most,
            };
            let added = problem.add_conflict(BufferId(a), BufferId(b), conflict);
            added.map_err(solver_error)
        };
        let is_merged = |item: &Item| matches!(nodes[item.node as usize], Node::Merged(_));
        // What several parts of two buffers need; each pair once.
        let mut merged: BTreeMap<(u32, u32), Vec<Interval>> = BTreeMap::new();
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
                let pair = (a.node, b.node);
                if is_exact {
                    let forbidden = a.forbidden(b, self);
                    if !forbidden.is_empty() {
                        merged.entry(pair).or_default().extend(forbidden);
                    }
                } else if let Some(hull) = a.hull(b, self) {
                    match is_merged(a) || is_merged(b) {
                        false => add(pair, hull)?,
                        true => {
                            let all = merged.entry(pair).or_insert_with(|| vec![hull]);
                            for one in all {
                                *one = (one.0.min(hull.0), one.1.max(hull.1));
                            }
                        }
                    }
                }
            }
            alive.push(item);
        }
        for ((a, b), intervals) in merged {
            for interval in joined(intervals, step(a, b)) {
                add((a, b), interval)?;
            }
        }
        problem.validate().map_err(solver_error)?;
        Ok(problem)
    }

    /// Bytes that no placement is below: at the start of each operator what is alive, with outputs running into inputs as
    /// far as they may. Inputs are apart from each other, and outputs too, so that no byte is saved twice.
    pub(crate) fn bound(&self, nodes: &[Node], buffers: &[Buffer]) -> Bound {
        let items = self.in_pieces(self.items(nodes, buffers));
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

    /// Bytes that must be there at each of `clocks`, counted as by [`Sharing::bound`].
    pub(crate) fn needed(&self, nodes: &[Node], buffers: &[Buffer], clocks: &[i32]) -> Vec<u64> {
        let items = self.in_pieces(self.items(nodes, buffers));
        let needed = |&now: &i32| {
            let alive = items.iter().filter(|i| i.span.contains(now));
            let mut alive: Vec<Item> = alive.copied().collect();
            self.covered(&mut alive, nodes) - self.shared(&alive, now)
        };
        clocks.iter().map(needed).collect()
    }

    /// The items, those of tensors with pieces by piece.
    fn in_pieces(&self, items: Vec<Item>) -> Vec<Item> {
        let pieces = |item: Item| {
            let cut = item.tensor.map_or(&[][..], |t| self.cut_pieces(t));
            let whole = cut.is_empty().then_some(item);
            let cut = cut.iter().map(move |piece| Item {
                at: item.at + piece.at,
                size: piece.size,
                span: piece.span,
                ..item
            });
            whole.into_iter().chain(cut)
        };
        items.into_iter().flat_map(pieces).collect()
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
        for (k, output) in alive.iter().enumerate() {
            let Some(to) = output.tensor.filter(|_| output.span.first == now) else {
                continue;
            };
            // Of the pieces of a tensor one stands for all.
            let is_cut = |t: TensorId| !self.cut_pieces(t).is_empty();
            if is_cut(to) && alive[..k].iter().any(|i| i.tensor == Some(to)) {
                continue;
            }
            let mut most = 0;
            let mut seen: Vec<TensorId> = Vec::new();
            for input in alive
                .iter()
                .filter(|i| i.span.last == now && i.node != output.node)
            {
                let Some(from) = input.tensor else {
                    continue;
                };
                let (read, written) = ((from, input.span), (to, output.span));
                if self
                    .overlap_of(read, written)
                    .is_none_or(|(input, _, _)| input != from)
                {
                    continue;
                }
                if is_cut(from) || is_cut(to) {
                    if !seen.contains(&from) {
                        seen.push(from);
                        most += self.most_shared(from, to, now);
                    }
                    continue;
                }
                let apart = self.apart(from, to);
                let input_below = (apart.first_below + output.size).max(input.size);
                let output_below = (apart.second_below + input.size).max(output.size);
                most += (input.size + output.size)
                    - input_below.min(output_below).min(input.size + output.size);
            }
            let size = match is_cut(to) {
                true => self.rounded(to),
                false => output.size,
            };
            shared += most.min(size);
        }
        shared
    }
}
