//! Whether a plan keeps apart what must be apart.
//!
//! Two buffers clash when both are in use at one step of the clock and have bytes in common. A plan is right when every two
//! that clash are of one of these kinds; scratch memory is of none.
//!
//! # One takes over from the other
//! An operator reads `x` for the last time and writes `y` for the first time, and its kernel allows the distance between the
//! two, in every position in which they are among its inputs and outputs. Then `x` is read before it is destroyed, and never
//! after, unless it is an output of its subgraph, which is read when the last operator has run.
//!
//! That the operator is the one whose step both spans share follows from the spans: this must be true of all operators
//! that write `y`, so that it starts where this operator runs first; an operator that calls subgraphs ends later than it
//! starts, so that its inputs do, too. If a subgraph is called again, its tensors' spans reach to the second call, and share
//! more than one step.
//!
//! # One takes over bytes that the other is done with
//! Two tensors of the first subgraph, whose operators run once and in order: `x` is written by one operator or given, and
//! later one operator writes `y`. SLICE reads a part of its input and nothing else. If no operator from the one that writes
//! `y` on reads a byte of `x` that `y` has, and `x` is no output, nobody misses these bytes. The operator that writes `y` may
//! read some of them, where its kernel allows the distance between the two, as above.
//!
//! # Both are the same
//! A kernel may promise that with its input just there it copies bytes onto themselves (`view_at`). Where that distance is
//! met, and the input was written before, the two tensors are linked. All of their common bytes are then the same in both.
//! Two buffers may clash when a chain of links goes from one to the other through tensors that all have the bytes that those
//! two share. To see why, look at one byte of the memory, and at all tensors that a chain connects and that have the byte:
//!
//! - Each is written by one operator, or by who calls the subgraph, once whenever the subgraph runs. (Tensors with several
//!   writers have no links.) An output's byte comes from one byte of one input, so that links make a tree: at its root a tensor
//!   whose byte was computed, copied from elsewhere, or given by the caller, and from there on each was written later than the
//!   one it was copied from.
//! - So the root is written first. Every other write is the copy of a byte onto itself, while the tensor that it is copied from
//!   is in use, and changes nothing.
//! - The tensors of a tree are of one subgraph, since an operator has tensors of its own subgraph only, and subgraphs do not
//!   call themselves: what is said of one call holds for the next, be it in a loop or from somewhere else. All inputs are
//!   given before the first operator runs, and all outputs taken after the last one and before the next inputs are given.
//! - A tensor outside of the tree that is written there meanwhile is in use together with one that is in the tree, and clashes
//!   with it; that pair is looked at, too. So is it where the one in the tree is done with the byte: whoever copies the byte
//!   from it reads it, and did so before.
//!
//! # What IF and WHILE copy
//! Inputs of the calling operator are in use until the called subgraphs have ended, its outputs from before they begin, and
//! a subgraph's inputs and outputs each at one step all together. So nothing that is still to be copied can be where a copy
//! goes to: whatever is copied goes from the caller's tensors to the subgraph's, or the other way around, and WHILE keeps what
//! goes from one round to the next in its outputs.

use crate::contract::{Overlap, Pair};
use crate::error::Error;
use crate::greedy::Buffers;
use crate::node::Node;
use crate::prepare::for_each_node;
use crate::records::{Flag, Records};
use crate::run::{Numbers, Run};

mod parts;

use parts::parts;
pub(crate) use parts::{PARTS, Parts};

/// Checks that no two buffers clash, but where that is right. All are placed; words are numbers of records.
pub(crate) fn plan(run: &Run<'_>, records: Records<'_>) -> Result<(), Error> {
    let mut check = Check {
        run,
        records,
        parts: parts(run.kernels),
    };
    check.flags()?;
    check.pairs()?;
    check.successions()
}

pub(crate) struct Check<'c> {
    run: &'c Run<'c>,
    records: Records<'c>,
    parts: Option<&'static Parts>,
}

impl<'c> Check<'c> {
    /// The record of a tensor, by its index in a subgraph with `tensors` of them.
    fn record(&self, first: u32, tensors: usize, index: i32) -> Option<usize> {
        let index = usize::try_from(index).ok().filter(|&at| at < tensors)?;
        let word = self.run.tensor_word(first.saturating_add(index as u32)) as usize;
        (word < self.records.len()).then_some(word)
    }

    #[inline(never)]
    fn record_of(&self, node: &Node<'_>, index: i32) -> Option<usize> {
        self.record(node.first_tensor(), node.tensors().len(), index)
    }

    fn flags(&mut self) -> Result<(), Error> {
        let mut numbers = Numbers::default();
        let subgraphs = self.run.model.subgraphs()?;
        for index in 0..subgraphs.len() {
            let subgraph = subgraphs.get(index)?;
            let tensors = subgraph.tensors()?.len();
            for tensor in subgraph.inputs()? {
                if let Some(given) = self.record(numbers.tensor, tensors, tensor) {
                    self.write(given, Flag::GIVEN);
                }
            }
            for tensor in subgraph.outputs()? {
                if let Some(kept) = self.record(numbers.tensor, tensors, tensor) {
                    self.records.set(kept, Flag::KEPT, true);
                }
            }
            numbers.skip(&subgraph)?;
        }
        for_each_node(self.run, &mut |node| {
            for tensor in node.outputs {
                if let Some(written) = self.record_of(node, tensor) {
                    self.write(written, Flag::WRITTEN);
                }
            }
            if let Some(parts) = self.parts {
                (parts.mark)(self, node);
            }
            Ok(())
        })
    }

    fn write(&mut self, record: usize, by: Flag) {
        let again =
            self.records.has(record, Flag::WRITTEN) || self.records.has(record, Flag::GIVEN);
        if again {
            self.records.set(record, Flag::SHARED, true);
        }
        self.records.set(record, by, true);
    }

    /// Two at a time.
    fn pairs(&mut self) -> Result<(), Error> {
        for b in 1..self.records.len() {
            for a in 0..b {
                if self.clash(a, b)
                    && !self.meet(a, b)
                    && !self.meet(b, a)
                    && !self.is_done_with(a, b)?
                    && !self.is_done_with(b, a)?
                    && !self.same_bytes(a, b)?
                {
                    return Err(self.overlap(a, b));
                }
            }
        }
        Ok(())
    }

    /// Those pairs that meet at an operator.
    fn successions(&mut self) -> Result<(), Error> {
        for_each_node(self.run, &mut |node| {
            for tensor in node.outputs {
                let Some(y) = self.record_of(node, tensor) else {
                    continue;
                };
                for x in 0..self.records.len() {
                    if self.meet(x, y)
                        && self.clash(x, y)
                        && !self.takes_over(node, x, y)
                        && !self.is_done_with(x, y)?
                        && !self.same_bytes(x, y)?
                    {
                        return Err(self.overlap(x, y));
                    }
                }
            }
            Ok(())
        })
    }

    fn clash(&self, a: usize, b: usize) -> bool {
        let (from_a, to_a) = self.records.range(a);
        let (from_b, to_b) = self.records.range(b);
        // What is never in use clashes with nothing.
        let used = self.records.span(a).1 != 0 && self.records.span(b).1 != 0;
        a != b && from_a < to_b && from_b < to_a && used && self.records.conflict(a, b)
    }

    /// Whether `x` ends at the step at which `y` starts, where an operator writes it.
    fn meet(&self, x: usize, y: usize) -> bool {
        let ((_, last), (start, _)) = (self.records.span(x), self.records.span(y));
        last == start && !self.records.has(x, Flag::KEPT) && self.records.has(y, Flag::WRITTEN)
    }

    /// How far `x` is above `y`.
    fn distance(&self, x: usize, y: usize) -> isize {
        // Offsets in the head are below 2^30.
        let start = |record| self.records.range(record).0 as i32;
        start(x).wrapping_sub(start(y)) as isize
    }

    /// Whether the kernel allows `x` among its inputs and `y` among its outputs to lie as they do.
    fn takes_over(&self, node: &Node<'_>, x: usize, y: usize) -> bool {
        let distance = self.distance(x, y);
        let mut found = false;
        for (input, from) in node.inputs.into_iter().enumerate() {
            if self.record_of(node, from) != Some(x) {
                continue;
            }
            for (output, to) in node.outputs.into_iter().enumerate() {
                if self.record_of(node, to) != Some(y) {
                    continue;
                }
                let overlap = promised(node, input, output);
                let allowed = overlap.is_some_and(|overlap| overlap.allows(distance));
                if !allowed {
                    return false;
                }
                found = true;
            }
        }
        found
    }

    /// Whether `y` is written when nobody reads the bytes of `x` any more that both have.
    fn is_done_with(&self, x: usize, y: usize) -> Result<bool, Error> {
        match self.parts {
            Some(parts) => (parts.is_done_with)(self, x, y),
            None => Ok(false),
        }
    }

    /// Whether a chain of links goes from `a` to `b`.
    fn same_bytes(&mut self, a: usize, b: usize) -> Result<bool, Error> {
        let (from_a, to_a) = self.records.range(a);
        let (from_b, to_b) = self.records.range(b);
        let shared = (from_a.max(from_b), to_a.min(to_b));
        for record in 0..self.records.len() {
            self.records.set(record, Flag::FOUND, record == a);
        }
        // Operators come in order, so that a chain is most often found at once.
        loop {
            let mut more = false;
            for_each_node(self.run, &mut |node| {
                more |= self.follow(node, shared);
                Ok(())
            })?;
            if self.records.has(b, Flag::FOUND) {
                return Ok(true);
            }
            if !more {
                return Ok(false);
            }
        }
    }

    /// Finds what `node` links with what has been found; whether there was anything.
    fn follow(&mut self, node: &Node<'_>, shared: (u32, u32)) -> bool {
        let mut more = false;
        for (output, to) in node.outputs.into_iter().enumerate() {
            let Some(to) = self
                .record_of(node, to)
                .filter(|&to| self.can_link(to, shared))
            else {
                continue;
            };
            for (input, from) in node.inputs.into_iter().enumerate() {
                let Some(from) = self.record_of(node, from) else {
                    continue;
                };
                let found = |record| self.records.has(record, Flag::FOUND);
                let start = |record| self.records.span(record).0;
                if found(from) == found(to)
                    || start(from) >= start(to)
                    || !self.can_link(from, shared)
                {
                    continue;
                }
                let view_at = promised(node, input, output).and_then(|overlap| overlap.view_at);
                if view_at == Some(self.distance(from, to)) {
                    self.records.set(from, Flag::FOUND, true);
                    self.records.set(to, Flag::FOUND, true);
                    more = true;
                }
            }
        }
        more
    }

    fn can_link(&self, record: usize, shared: (u32, u32)) -> bool {
        let (start, end) = self.records.range(record);
        start <= shared.0 && shared.1 <= end && !self.records.has(record, Flag::SHARED)
    }

    /// The error that names the two.
    fn overlap(&self, a: usize, b: usize) -> Error {
        let tensor = |record: usize| {
            let mut tensors = 0..self.run.tensors;
            tensors.find(|&tensor| self.run.tensor_word(tensor) as usize == record)
        };
        let (a, b) = (tensor(a), tensor(b));
        let named = |tensor: Option<u32>| tensor.unwrap_or(Error::SCRATCH);
        // Scratch memory first, then the lower number.
        let (first, second) = match (a, b) {
            (Some(a), Some(b)) => (Some(a.min(b)), Some(a.max(b))),
            (Some(a), None) => (None, Some(a)),
            (None, b) => (None, b),
        };
        Error::PlanOverlap {
            first: named(first),
            second: named(second),
        }
    }
}

/// What the kernel of `node` promises of an input and an output.
#[inline(never)]
fn promised(node: &Node<'_>, input: usize, output: usize) -> Option<Overlap> {
    match &Pair::of(node, input, output) {
        Ok(pair) => Some(pair.promised_by(node.run.kernel(node)?, node)),
        Err(_) => None,
    }
}
