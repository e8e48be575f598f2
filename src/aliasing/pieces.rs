//! Bytes of a tensor that die before the tensor does.
//!
//! An operator that takes a part of a tensor reads only that part. Of a tensor that is read so, each byte is needed until
//! the last operator that reads it, and no longer:
//!
//! ```text
//! rows 0..8     |=========|                written whole, then taken in stripes with a halo of one row
//! rows 8..9     |=================|
//! rows 9..16    |=================|
//!               written   SLICE   SLICE
//! ```
//!
//! Bytes that nobody reads die where they are born. What runs once, in the first subgraph, and is written once has such
//! pieces; all other tensors are one.

use std::collections::BTreeMap;

use arenaplan_schema::tflite::BuiltinOperator as Op;

use super::{Apart, Sharing};
use crate::contract;
use crate::graph::{Graph, Operator, TensorId};
use crate::interference::Node;
use crate::lifetimes::Span;
use crate::target::Library;

/// A range of a tensor's bytes that lives and dies together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bytes from the start of the tensor.
    pub at: u64,
    /// Bytes; the last piece has what the tensor's size is rounded up by.
    pub size: u64,
    /// When they are alive.
    pub span: Span,
}

impl Piece {
    /// The first byte behind it, from the start of the tensor.
    pub fn end(&self) -> u64 {
        self.at + self.size
    }
}

/// Start and end of the bytes that `op` reads of its `input`-th input, where that is a part in one piece: a SLICE, whose
/// kernel reads what it copies and nothing else, in every library.
pub(super) fn part_read(graph: &Graph<'_>, op: &Operator<'_>, input: usize) -> Option<(u64, u64)> {
    if op.code != Op::SLICE || input != 0 {
        return None;
    }
    let promise = contract::overlap(Library::Reference, graph, op, 0, 0);
    let start = u64::try_from(promise.view_at?.checked_neg()?).ok()?;
    Some((start, start + graph.tensor(*op.outputs.first()?).bytes))
}

/// The parts that operators read of tensors that `may_share` lets through, by input and output: they hold in any order of
/// operators.
pub(super) fn parts_read(
    graph: &Graph<'_>,
    may_share: impl Fn(TensorId) -> bool,
) -> BTreeMap<(TensorId, TensorId), (u64, u64)> {
    let mut parts: BTreeMap<(TensorId, TensorId), (u64, u64)> = BTreeMap::new();
    for op in graph.operators().filter(|op| op.code == Op::SLICE) {
        let (Some(&Some(input)), Some(&output)) = (op.inputs.first(), op.outputs.first()) else {
            continue;
        };
        if let Some((start, end)) = part_read(graph, op, 0).filter(|_| may_share(input)) {
            let all = parts.entry((input, output)).or_insert((start, end));
            *all = (all.0.min(start), all.1.max(end));
        }
    }
    parts
}

/// The reads of one tensor: bytes, and the clock until which they are needed.
type Reads = Vec<(u64, u64, i32)>;

impl Sharing<'_, '_> {
    /// The pieces of all tensors, by tensor; none for one that is whole.
    pub(super) fn find_pieces(&self) -> Vec<Vec<Piece>> {
        let mut pieces = vec![Vec::new(); self.graph.tensors.len()];
        let mut reads: BTreeMap<TensorId, Reads> = BTreeMap::new();
        for &(tensor, _) in self.rules.promises.parts.keys() {
            if self.can_have_pieces(tensor) {
                reads.entry(tensor).or_default();
            }
        }
        if reads.is_empty() {
            return pieces;
        }
        for op in &self.graph.subgraphs[0].operators {
            let until = self.lifetimes.operator(op.id).last;
            for (position, input) in op.inputs.iter().enumerate() {
                let Some(reads) = input.and_then(|t| reads.get_mut(&t)) else {
                    continue;
                };
                let part = match part_read(self.graph, op, position) {
                    Some((start, end)) => (start, end, until),
                    None => (0, u64::MAX, until),
                };
                reads.push(part);
            }
        }
        for (tensor, reads) in reads {
            let found = self.cut(tensor, &reads);
            if found.len() > 1 {
                pieces[tensor.index()] = found;
            }
        }
        pieces
    }

    /// Whether what is read of a tensor says all about how long its bytes are needed.
    fn can_have_pieces(&self, tensor: TensorId) -> bool {
        let graph = self.graph;
        let (at, found) = (tensor.index(), graph.tensor(tensor));
        let is_input = graph.subgraphs[0].inputs.contains(&tensor);
        found.is_planned()
            && found.subgraph == 0
            && (self.writer[at].is_some() || is_input)
            && !self.is_rewritten[at]
            && !self.is_state[at]
            && !self.is_read_at_end[at]
    }

    /// The pieces that these reads leave.
    fn cut(&self, tensor: TensorId, reads: &Reads) -> Vec<Piece> {
        let (bytes, rounded) = (self.bytes(tensor), self.rounded(tensor));
        let first = self.span(tensor).first;
        // An operator writes until it ends.
        let written = match self.writer[tensor.index()] {
            Some(op) => self.lifetimes.operator(op).last,
            None => first,
        };
        let ends = reads.iter().flat_map(|&(start, end, _)| [start, end]);
        let mut borders: Vec<u64> = ends.filter(|&at| at < bytes).collect();
        borders.extend([0, bytes]);
        borders.sort_unstable();
        borders.dedup();
        let mut pieces: Vec<Piece> = Vec::new();
        for pair in borders.windows(2) {
            let (at, end) = (pair[0], pair[1]);
            let covers = |r: &&(u64, u64, i32)| r.0 <= at && end <= r.1;
            let needed = reads.iter().filter(covers).map(|r| r.2);
            let span = Span {
                first,
                last: needed.fold(written, i32::max),
            };
            let end = if end == bytes { rounded } else { end };
            match pieces.last_mut() {
                Some(before) if before.span == span => before.size = end - before.at,
                _ => pieces.push(Piece {
                    at,
                    size: end - at,
                    span,
                }),
            }
        }
        pieces
    }

    /// The pieces of a tensor that has several; else none.
    pub(crate) fn cut_pieces(&self, tensor: TensorId) -> &[Piece] {
        &self.pieces[tensor.index()]
    }

    /// The pieces of a tensor, which may be all of it.
    pub(crate) fn pieces(&self, tensor: TensorId) -> impl Iterator<Item = Piece> + '_ {
        let cut = self.cut_pieces(tensor);
        let whole = cut.is_empty().then(|| Piece {
            at: 0,
            size: self.rounded(tensor),
            span: self.span(tensor),
        });
        whole.into_iter().chain(cut.iter().copied())
    }

    /// The tensors of `nodes` that have several pieces, with these, in the order of their numbers.
    pub(crate) fn all_pieces(&self, nodes: &[Node]) -> Vec<(TensorId, Vec<Piece>)> {
        let tensors = nodes.iter().flat_map(Node::tensors).map(|(t, _)| t);
        let cut = tensors.filter(|&t| !self.cut_pieces(t).is_empty());
        let mut all: Vec<_> = cut.map(|t| (t, self.cut_pieces(t).to_vec())).collect();
        all.sort_by_key(|(t, _)| *t);
        all
    }

    /// Whether the plan has a say in where a tensor is. What the device places itself keeps away from whole tensors, since
    /// its planner knows of no pieces.
    pub(crate) fn knows_pieces(&self, tensor: TensorId) -> bool {
        self.graph.tensor(tensor).is_planned() && !self.rules.promises.online.contains(&tensor)
    }

    /// Whether any tensor has several pieces.
    pub(crate) fn has_pieces(&self) -> bool {
        self.pieces.iter().any(|p| !p.is_empty())
    }

    /// The differences of two tensors' offsets, `a` less `b`, at which these pieces of them are on each other and must not
    /// be: an open interval. `None` where nothing is wrong.
    pub(super) fn forbidden(
        &self,
        (a, of_a): (TensorId, &Piece),
        (b, of_b): (TensorId, &Piece),
    ) -> Option<(i64, i64)> {
        if !of_a.span.overlaps(of_b.span) {
            return None;
        }
        let Apart {
            first_below,
            second_below,
        } = self.apart_of((a, of_a.span), (b, of_b.span));
        // Sizes are below 2^61.
        let meets = (
            of_b.at as i64 - of_a.end() as i64,
            of_b.end() as i64 - of_a.at as i64,
        );
        let least = meets.0.max(-(first_below as i64));
        let most = meets.1.min(second_below as i64);
        (least < most).then_some((least, most))
    }

    /// The same for all pieces of two tensors.
    pub(super) fn all_forbidden(&self, a: TensorId, b: TensorId) -> Vec<(i64, i64)> {
        let pairs = self.pieces(a).flat_map(|of_a| {
            let pairs = self.pieces(b).map(move |of_b| (of_a, of_b));
            pairs.filter_map(move |(of_a, of_b)| self.forbidden((a, &of_a), (b, &of_b)))
        });
        pairs.collect()
    }

    /// The most bytes that `output`, which is written at `now`, may share with bytes of `input` that die there.
    pub(super) fn most_shared(&self, input: TensorId, output: TensorId, now: i32) -> u64 {
        let size = self.rounded(output) as i64;
        let dying: Vec<(i64, i64)> = (self.pieces(input))
            .filter(|p| p.span.last == now)
            .map(|p| (p.at as i64, p.end() as i64))
            .collect();
        let forbidden = self.all_forbidden(input, output);
        // The sum of common bytes is linear between these distances.
        let borders = dying
            .iter()
            .flat_map(|&(at, end)| [-at, -end, size - at, size - end]);
        let ends = forbidden.iter().flat_map(|&(least, most)| [least, most]);
        let shared = |above: i64| -> i64 {
            let common = |&(at, end): &(i64, i64)| (above + end).min(size) - (above + at).max(0);
            dying.iter().map(|p| common(p).max(0)).sum()
        };
        let is_right = |d: &i64| {
            !forbidden
                .iter()
                .any(|&(least, most)| least < *d && *d < most)
        };
        let most = borders.chain(ends).filter(is_right).map(shared).max();
        most.unwrap_or(0).max(0) as u64
    }
}
