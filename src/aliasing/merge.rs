//! Merging views: tensors that keep their distance because an operator copies bytes of one onto those of the other.

use std::collections::BTreeMap;

use arenaplan_schema::tflite::BuiltinOperator;

use super::{Block, Member, Piece, Sharing};
use crate::graph::{OpId, TensorId};

/// Blocks do not grow beyond this: each merge looks at all pairs.
const MAX_MEMBERS: usize = 256;

/// Merges the tensors in `tensors` into blocks, by the views among them: one after the other in the order of the operators
/// that copy (with pieces, CONCATENATIONs first), each only if everything in the block stays right.
pub(crate) fn merge(sharing: &Sharing<'_, '_>, tensors: &[TensorId]) -> Vec<Block> {
    let mut merging = Merging {
        sharing,
        block_of: vec![usize::MAX; sharing.graph.tensors.len()],
        blocks: tensors.iter().map(|&t| Some(Block::single(t))).collect(),
        views: BTreeMap::new(),
    };
    for (index, &t) in tensors.iter().enumerate() {
        merging.block_of[t.index()] = index;
    }
    let rules = &sharing.rules;
    let mut views: Vec<(OpId, TensorId, TensorId, i64)> = rules
        .promises
        .iter()
        .filter_map(|(input, output, promise)| {
            let at = promise.view_at?;
            let is_whole = at == 0 && sharing.bytes(input) == sharing.bytes(output);
            let op = sharing.writer[output.index()]?;
            let is_stable = !sharing.is_rewritten[input.index()];
            (is_stable && (is_whole || rules.parts)).then_some((op, input, output, at))
        })
        .collect();
    // A part that is joined with others is better off in its slot than where it was taken from: it then is where it is for
    // longer, and the whole is not there twice.
    let slots_first = sharing.has_pieces();
    let is_late =
        |op: OpId| slots_first && sharing.graph.operator(op).code != BuiltinOperator::CONCATENATION;
    views.sort_unstable_by_key(|&(op, input, output, at)| (is_late(op), op, input, output, at));
    for (_, input, output, at) in views {
        merging.join(input, output, at);
    }
    merging.blocks.into_iter().flatten().collect()
}

struct Merging<'s, 'r, 'a> {
    sharing: &'s Sharing<'r, 'a>,
    /// The block of each tensor; `usize::MAX` for one that is not to be merged.
    block_of: Vec<usize>,
    blocks: Vec<Option<Block>>,
    /// Views taken, from both ends.
    views: BTreeMap<TensorId, Vec<TensorId>>,
}

impl Merging<'_, '_, '_> {
    /// Brings `input` to `at` bytes above the start of `output`, if that leaves everything right.
    fn join(&mut self, input: TensorId, output: TensorId, at: i64) {
        let (from, to) = (self.block_of[input.index()], self.block_of[output.index()]);
        if from == usize::MAX || to == usize::MAX {
            return;
        }
        let place = |block: &Option<Block>, tensor| {
            let members = block.iter().flat_map(|b| &b.members);
            members
                .filter(|m| m.tensor == tensor)
                .map(|m| m.at as i64)
                .next()
        };
        let (Some(input_at), Some(output_at)) = (
            place(&self.blocks[from], input),
            place(&self.blocks[to], output),
        ) else {
            return;
        };
        if from == to {
            // Already there by other views, or to stay copied.
            if input_at == output_at + at {
                self.note(input, output);
            }
            return;
        }
        // Where the block of the input starts in that of the output.
        let shift = output_at + at - input_at;
        if shift.rem_euclid(self.sharing.rules.align.max(1) as i64) != 0 {
            return;
        }
        let moved = |m: &Member, by: i64| (m.tensor, m.at as i64 + by);
        let mut all: Vec<(TensorId, i64)> = Vec::new();
        all.extend(
            self.blocks[from]
                .iter()
                .flat_map(|b| &b.members)
                .map(|m| moved(m, shift)),
        );
        let count = all.len();
        all.extend(
            self.blocks[to]
                .iter()
                .flat_map(|b| &b.members)
                .map(|m| moved(m, 0)),
        );
        if all.len() > MAX_MEMBERS {
            return;
        }
        let lowest = all.iter().map(|&(_, at)| at).min().unwrap_or(0);
        if !self.can_start(&all, lowest) {
            return;
        }
        self.note(input, output);
        let is_right =
            (0..count).all(|i| (count..all.len()).all(|j| self.fits(all[i], all[j], &all)));
        if !is_right {
            self.forget(input, output);
            return;
        }
        let mut members: Vec<Member> = all
            .iter()
            .map(|&(tensor, at)| Member {
                tensor,
                at: (at - lowest) as u64,
            })
            .collect();
        members.sort_unstable();
        for m in &members {
            self.block_of[m.tensor.index()] = to;
        }
        self.blocks[from] = None;
        self.blocks[to] = Some(Block { members });
    }

    /// Whether the tensors that have their offsets already agree on where a block of these tensors starts.
    fn can_start(&self, all: &[(TensorId, i64)], lowest: i64) -> bool {
        let fixed = |&(tensor, at): &(TensorId, i64)| {
            let offset = self.sharing.fixed(tensor)?;
            Some(offset as i64 - (at - lowest))
        };
        let mut starts = all.iter().filter_map(fixed);
        let align = self.sharing.rules.align.max(1) as i64;
        starts.next().is_none_or(|first| {
            first >= 0 && first % align == 0 && starts.all(|other| other == first)
        })
    }

    fn note(&mut self, a: TensorId, b: TensorId) {
        self.views.entry(a).or_default().push(b);
        self.views.entry(b).or_default().push(a);
    }

    fn forget(&mut self, a: TensorId, b: TensorId) {
        for (from, to) in [(a, b), (b, a)] {
            if let Some(list) = self.views.get_mut(&from) {
                list.retain(|&t| t != to);
            }
        }
    }

    /// Whether two tensors may lie where they are in `all`: of each two pieces, not alive at once, apart, the same bytes, or
    /// over each other as their operator allows.
    fn fits(&self, a: (TensorId, i64), b: (TensorId, i64), all: &[(TensorId, i64)]) -> bool {
        let ((a, a_at), (b, b_at)) = (a, b);
        let sharing = self.sharing;
        if !sharing.span(a).overlaps(sharing.span(b)) {
            return true;
        }
        // Pieces that are apart are so by what sizes are rounded up to: the device's own planner counts that.
        let distance = a_at - b_at;
        sharing.pieces(a).all(|of_a| {
            sharing.pieces(b).all(|of_b| {
                let forbidden = sharing.forbidden((a, &of_a), (b, &of_b));
                if forbidden.is_none_or(|(least, most)| distance <= least || most <= distance) {
                    return true;
                }
                let end = |at: i64, piece: &Piece, tensor| {
                    at + (piece.end().min(sharing.bytes(tensor))) as i64
                };
                let common = (
                    (a_at + of_a.at as i64).max(b_at + of_b.at as i64),
                    end(a_at, &of_a, a).min(end(b_at, &of_b, b)),
                );
                common.0 < common.1 && self.same_bytes(a, b, common, all)
            })
        })
    }

    /// Whether copies lead from one to the other, each tensor on the way holding all bytes of `range`. Each copy reads them,
    /// so that they are alive for as long as it takes.
    fn same_bytes(
        &self,
        a: TensorId,
        b: TensorId,
        range: (i64, i64),
        all: &[(TensorId, i64)],
    ) -> bool {
        let covers = |t: TensorId| {
            all.iter().any(|&(x, at)| {
                x == t && at <= range.0 && range.1 <= at + self.sharing.bytes(t) as i64
            })
        };
        let mut seen = vec![a];
        let mut next = 0;
        while let Some(&t) = seen.get(next) {
            next += 1;
            if t == b {
                return true;
            }
            for &other in self.views.get(&t).into_iter().flatten() {
                if covers(other) && !seen.contains(&other) {
                    seen.push(other);
                }
            }
        }
        false
    }
}
