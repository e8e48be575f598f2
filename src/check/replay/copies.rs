//! Operators that leave bytes where they are, if their tensors lie right.

use std::collections::BTreeMap;

use arenaplan_schema::tflite::BuiltinOperator as Op;

use super::{Event, replay_moves};
use crate::graph::{Graph, Operator};
use crate::target::Library;

/// Whether every byte that the kernel writes is one that it has just read, or padding.
fn only_moves(code: Op) -> bool {
    matches!(
        code,
        Op::RESHAPE
            | Op::SQUEEZE
            | Op::EXPAND_DIMS
            | Op::CONCATENATION
            | Op::PACK
            | Op::SPLIT
            | Op::SPLIT_V
            | Op::UNPACK
            | Op::PAD
            | Op::PADV2
            | Op::SLICE
            | Op::STRIDED_SLICE
            | Op::TRANSPOSE
            | Op::SPACE_TO_DEPTH
            | Op::DEPTH_TO_SPACE
            | Op::SPACE_TO_BATCH_ND
            | Op::BATCH_TO_SPACE_ND
            | Op::GATHER
            | Op::MIRROR_PAD
            | Op::BROADCAST_TO
            | Op::RESIZE_NEAREST_NEIGHBOR
    )
}

/// For a copying operator: triples (input, output, at) whose bytes are the same ones when the input starts `at` bytes above
/// the output, below it where negative: everything that the kernel moves from the one to the other goes the same way, so
/// that it then copies each byte onto itself. `steps` is what the run may take.
pub(crate) fn copies(
    library: Library,
    graph: &Graph<'_>,
    op: &Operator<'_>,
    steps: &mut u64,
) -> Vec<(usize, usize, i64)> {
    let mut pairs = Pairs::default();
    if only_moves(op.code) && replay_moves(library, graph, op, steps, &mut |e| pairs.take(e)) {
        pairs.settled()
    } else {
        Vec::new()
    }
}

#[derive(Default)]
struct Pairs {
    /// The way from an input to an output; `None` if there are several.
    ways: BTreeMap<(usize, usize), Option<i64>>,
    /// Outputs that get bytes from elsewhere too.
    padded: Vec<usize>,
    /// What was read last and not yet written.
    last: Option<(usize, u64, u64)>,
}

impl Pairs {
    fn take(&mut self, event: Event) {
        match event {
            Event::Read { input, start, end } => self.last = Some((input, start, end)),
            Event::Write { output, start, end } => match self.last.take() {
                Some((input, from, from_end)) if from_end - from == end - start => {
                    self.moved(input, from, output, start);
                }
                _ => self.padded.push(output),
            },
            Event::Copy {
                input,
                from,
                output,
                to,
                ..
            }
            | Event::Move {
                input,
                from,
                output,
                to,
                ..
            } => self.moved(input, from, output, to),
        }
    }

    fn moved(&mut self, input: usize, from: u64, output: usize, to: u64) {
        let way = to as i64 - from as i64;
        let known = self.ways.entry((input, output)).or_insert(Some(way));
        *known = known.filter(|&w| w == way);
    }

    fn settled(self) -> Vec<(usize, usize, i64)> {
        let ways = self.ways.into_iter();
        ways.filter(|((_, output), _)| !self.padded.contains(output))
            .filter_map(|((input, output), way)| Some((input, output, way?)))
            .collect()
    }
}
