//! What a layout shares: for people, and to know which kernels a plan depends on.

use super::pieces::part_read;
use super::{Level, Promises};
use crate::graph::{Graph, OpId, TensorId};
use crate::target::Target;

/// How two tensors of one operator share bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The operator copies bytes onto themselves.
    View,
    /// The output starts where the input starts, or below it, which the kernel allows at any distance.
    InPlace,
    /// The output lies over the input at a distance that the kernel needs.
    Overlap,
}

impl Kind {
    /// The level that this kind needs.
    pub fn level(self) -> Level {
        match self {
            Kind::View => Level::Views,
            Kind::InPlace => Level::InPlace,
            Kind::Overlap => Level::Overlap,
        }
    }
}

/// An output that shares bytes with an input of its operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Taken {
    /// The operator.
    pub operator: OpId,
    /// Its input.
    pub input: TensorId,
    /// Its output.
    pub output: TensorId,
    /// How they share.
    pub kind: Kind,
    /// Bytes that belong to both.
    pub bytes: u64,
    /// Bytes from the start of the output up to that of the input; negative when the input starts below.
    pub distance: i64,
}

/// What the tensors at these places share, operator by operator. `place` gives the offset of a tensor in the head.
pub fn taken(
    graph: &Graph<'_>,
    promises: &Promises,
    place: impl Fn(TensorId) -> Option<u64>,
) -> Vec<Taken> {
    let mut found = Vec::new();
    for op in graph.operators() {
        let mut seen = Vec::new();
        for &output in &op.outputs {
            for &input in op.inputs.iter().flatten() {
                let (Some(from), Some(to)) = (place(input), place(output)) else {
                    continue;
                };
                // What an operator does not read of its input, its output may lie on.
                let positions = (0..op.inputs.len()).filter(|&k| op.inputs[k] == Some(input));
                let whole = (0, graph.tensor(input).bytes);
                let read = |k| part_read(graph, op, k).unwrap_or(whole);
                let read = positions
                    .map(read)
                    .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
                let (start, end) = read.unwrap_or(whole);
                let bytes = (from + end)
                    .min(to + graph.tensor(output).bytes)
                    .saturating_sub(to.max(from + start));
                if bytes == 0 || input == output || seen.contains(&(input, output)) {
                    continue;
                }
                seen.push((input, output));
                let distance = from as i64 - to as i64;
                let promise = promises.get(input, output);
                let kind = match promise {
                    Some(p) if p.view_at == Some(distance) => Kind::View,
                    Some(p) if distance >= 0 && p.input_above_output == 0 => Kind::InPlace,
                    Some(p) if distance <= 0 && p.output_above_input == 0 => Kind::InPlace,
                    _ => Kind::Overlap,
                };
                found.push(Taken {
                    operator: op.id,
                    input,
                    output,
                    kind,
                    bytes,
                    distance,
                });
            }
        }
    }
    found
}

/// Those of `taken` that not every kernel library keeps: a layout that has some is right with certain kernels only.
pub fn special<'t>(graph: &Graph<'_>, taken: &'t [Taken]) -> Vec<&'t Taken> {
    let everywhere = Promises::of(graph, Target::Tflm, |_| true);
    let is_kept = |t: &&Taken| {
        let promise = everywhere.get(t.input, t.output);
        promise.is_some_and(|p| p.view_at == Some(t.distance))
    };
    taken.iter().filter(|t| !is_kept(t)).collect()
}
