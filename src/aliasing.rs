//! Which tensors may share bytes, and how.
//!
//! Two tensors that are alive at once share bytes in two ways. A *view* makes them one buffer: an operator that only copies
//! bytes (RESHAPE, CONCATENATION, SPLIT, ...) copies them onto themselves, so that its input and its output lie at a
//! fixed distance. An *overlap* lets an output run into an input that its operator reads for the last time:
//!
//! ```text
//! view      [ a ][ b  ]      <- inputs of a CONCATENATION, produced in their slots
//!           [ output  ]
//! overlap        [ input    ]
//!           [ output ]       <- at least `input_above_output` bytes apart, and nobody reads the input later
//! ```
//!
//! A tensor of which operators take parts lives in [`Piece`]s, byte range by byte range.
//!
//! [`Promises`] are what the kernels of a target allow; `merge` turns views into [`Block`]s; the interference graph gets
//! its separations from [`Rules`].

mod conflicts;
mod merge;
mod pieces;
mod taken;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use arenaplan_schema::tflite::BuiltinOperator;

use crate::contract::{self, Overlap};
use crate::graph::{Graph, OpId, Tensor, TensorId};
use crate::interference::Rules;
use crate::lifetimes::{Lifetimes, NEVER, Span};
use crate::plan::Options;
use crate::target::Target;

pub(crate) use conflicts::{Interval, joined};
pub(crate) use merge::merge;
pub use pieces::Piece;
pub use taken::{Kind, Taken, special, taken};

/// How much of a target's promises a plan takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing: tensors that are alive at once share no byte.
    None,
    /// Copies onto themselves.
    Views,
    /// Also outputs that may start where their input starts.
    InPlace,
    /// Also outputs that run behind their input at a distance.
    Overlap,
}

impl Level {
    /// All levels, each containing the ones before it.
    pub const ALL: [Level; 4] = [Level::None, Level::Views, Level::InPlace, Level::Overlap];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Level::None => "none",
            Level::Views => "views",
            Level::InPlace => "in-place",
            Level::Overlap => "overlap",
        }
    }

    /// What a target takes unless told otherwise: all that its kernels promise.
    pub fn of(target: Target) -> Self {
        match target {
            Target::Tflm => Level::Views,
            _ => Level::Overlap,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A level's name that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLevel(String);

impl fmt::Display for UnknownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = Level::ALL.iter().map(|l| l.name()).collect();
        write!(f, "unknown level {:?}; known: {}", self.0, known.join(", "))
    }
}

impl std::error::Error for UnknownLevel {}

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Level::ALL.into_iter().find(|l| l.name() == text);
        found.ok_or_else(|| UnknownLevel(text.to_owned()))
    }
}

/// What kernels promise of each input and output of one operator that both lie in the head. They hold in any order of
/// operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// By input and output.
    pairs: BTreeMap<(TensorId, TensorId), Overlap>,
    /// Start and end of what is read of an input, where that is a part, by input and output.
    parts: BTreeMap<(TensorId, TensorId), (u64, u64)>,
    /// Where there are parts: tensors that the device places itself, though a plan could.
    online: Vec<TensorId>,
}

impl Promises {
    /// No promise at all.
    pub const NONE: Self = Self {
        pairs: BTreeMap::new(),
        parts: BTreeMap::new(),
        online: Vec::new(),
    };

    /// What `target` promises, for pairs that `may_share` lets through: tensors that the device places itself cannot.
    pub fn of(graph: &Graph<'_>, target: Target, may_share: impl Fn(TensorId) -> bool) -> Self {
        let mut pairs = BTreeMap::new();
        for op in graph.operators() {
            for &output in op.outputs.iter().filter(|&&t| may_share(t)) {
                for &input in op.inputs.iter().flatten().filter(|&&t| may_share(t)) {
                    if input == output || pairs.contains_key(&(input, output)) {
                        continue;
                    }
                    let promise = contract::between(target, graph, op, input, output);
                    if promise != nothing(graph, input, output) {
                        pairs.insert((input, output), promise);
                    }
                }
            }
        }
        let parts = pieces::parts_read(graph, &may_share);
        let is_online = |t: &&Tensor<'_>| t.is_planned() && !may_share(t.id);
        let online = match parts.is_empty() {
            true => Vec::new(),
            false => {
                let tensors = graph.tensors.iter().filter(is_online);
                tensors.map(|t| t.id).collect()
            }
        };
        Self {
            pairs,
            parts,
            online,
        }
    }

    /// What a plan with these options may take of tensors that have an offset.
    pub fn allowed(graph: &Graph<'_>, options: &Options) -> Self {
        match options.level() {
            Level::None => Self::NONE,
            level => Self::of(graph, options.kernels(), |t| graph.tensor(t).is_planned())
                .up_to(level, graph),
        }
    }

    /// What is left of the promises up to a level.
    pub fn up_to(&self, level: Level, graph: &Graph<'_>) -> Self {
        let mut pairs = self.pairs.clone();
        pairs.retain(|&(input, output), promise| {
            let full = nothing(graph, input, output);
            if level < Level::Overlap && promise.input_above_output != 0 {
                promise.input_above_output = full.input_above_output;
            }
            if level < Level::Overlap && promise.output_above_input != 0 {
                promise.output_above_input = full.output_above_input;
            }
            if level < Level::InPlace {
                promise.input_above_output = full.input_above_output;
                promise.output_above_input = full.output_above_input;
            }
            if level < Level::Views {
                promise.view_at = None;
            }
            *promise != full
        });
        match level {
            Level::None => Self::NONE,
            _ => Self {
                pairs,
                ..self.clone()
            },
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.parts.is_empty()
    }

    /// Inputs and outputs of which one is a view of a part of the other.
    pub fn partial_views(&self, graph: &Graph<'_>) -> Vec<(TensorId, TensorId)> {
        let views = self.iter().filter(|&(input, output, promise)| {
            let sizes = [input, output].map(|t| graph.tensor(t).bytes);
            (promise.view_at).is_some_and(|at| at != 0 || sizes[0] != sizes[1])
        });
        views.map(|(input, output, _)| (input, output)).collect()
    }

    /// The same without one view.
    pub fn without_view(&self, graph: &Graph<'_>, input: TensorId, output: TensorId) -> Self {
        let mut pairs = self.pairs.clone();
        if let Some(promise) = pairs.get_mut(&(input, output)) {
            promise.view_at = None;
            if *promise == nothing(graph, input, output) {
                pairs.remove(&(input, output));
            }
        }
        Self {
            pairs,
            ..self.clone()
        }
    }

    /// The same without views of parts on what they are taken from, where a CONCATENATION has a slot for them.
    pub(crate) fn without_sources_of_slots(&self, graph: &Graph<'_>) -> Self {
        let joins = graph
            .operators()
            .filter(|op| op.code == BuiltinOperator::CONCATENATION);
        let mut slots = BTreeSet::new();
        for op in joins {
            for &input in op.inputs.iter().flatten() {
                let output = op.outputs.first().and_then(|&t| self.get(input, t));
                if output.is_some_and(|promise| promise.view_at.is_some()) {
                    slots.insert(input);
                }
            }
        }
        let taken = self.parts.keys().filter(|(_, part)| slots.contains(part));
        taken.fold(self.clone(), |left, &(source, part)| {
            left.without_view(graph, source, part)
        })
    }

    /// The promise of an operator that reads `input` and writes `output`.
    pub fn get(&self, input: TensorId, output: TensorId) -> Option<&Overlap> {
        self.pairs.get(&(input, output))
    }

    /// All promises, by input and output.
    pub fn iter(&self) -> impl Iterator<Item = (TensorId, TensorId, &Overlap)> {
        self.pairs.iter().map(|(&(i, o), promise)| (i, o, promise))
    }
}

impl FromIterator<(TensorId, TensorId, Overlap)> for Promises {
    fn from_iter<I: IntoIterator<Item = (TensorId, TensorId, Overlap)>>(all: I) -> Self {
        let pairs = all
            .into_iter()
            .map(|(input, output, promise)| ((input, output), promise));
        Self {
            pairs: pairs.collect(),
            ..Self::NONE
        }
    }
}

fn nothing(graph: &Graph<'_>, input: TensorId, output: TensorId) -> Overlap {
    Overlap::none(graph.tensor(input).bytes, graph.tensor(output).bytes)
}

/// A tensor within a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// The tensor.
    pub tensor: TensorId,
    /// Bytes from the start of the block.
    pub at: u64,
}

/// Tensors that keep their distances: views of each other, or one tensor alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The tensors, in the order of their numbers.
    pub members: Vec<Member>,
}

impl Block {
    fn single(tensor: TensorId) -> Self {
        Self {
            members: vec![Member { tensor, at: 0 }],
        }
    }
}

/// What may share bytes in one order of the operators.
pub(crate) struct Sharing<'r, 'a> {
    graph: &'r Graph<'a>,
    lifetimes: &'r Lifetimes,
    rules: Rules<'r>,
    /// The only operator that writes a tensor, if nothing else does.
    writer: Vec<Option<OpId>>,
    /// Tensors that get more than one value in an invoke: what was copied from one of them differs from it later.
    is_rewritten: Vec<bool>,
    /// Tensors whose values are needed in the next invoke.
    is_state: Vec<bool>,
    /// Tensors whose values are needed after the last operator.
    is_read_at_end: Vec<bool>,
    /// The pieces of each tensor that has several.
    pieces: Vec<Vec<Piece>>,
}

/// How far two tensors that are alive at once must keep apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apart {
    /// From the first one's start up to the second one's, when the first is the lower one.
    pub first_below: u64,
    /// The other way around.
    pub second_below: u64,
}

/// The tensors that get a place in the head, in blocks by the views among them, each with its bytes.
pub(crate) fn blocks(
    graph: &Graph<'_>,
    lifetimes: &Lifetimes,
    rules: Rules<'_>,
) -> Vec<(Block, u64)> {
    let sharing = Sharing::new(graph, lifetimes, rules);
    let blocks = merge(&sharing, &sharing.placed()).into_iter();
    let sized = blocks.map(|block| {
        let bytes = sharing.buffer(&block).size;
        (block, bytes)
    });
    sized.collect()
}

/// For each input and output with a promise: how many bytes less they need together than apart.
pub(crate) fn savings(graph: &Graph<'_>, rules: &Rules<'_>) -> BTreeMap<(TensorId, TensorId), u64> {
    let saved = rules.promises.iter().map(|(input, output, promise)| {
        let rounded = |t| graph.tensor(t).bytes.next_multiple_of(rules.granule);
        let (from, to) = (rounded(input), rounded(output));
        let (below, above) = rules.apart(promise, from, to);
        let together = (below + from).max(to).min((above + to).max(from));
        ((input, output), (from + to).saturating_sub(together))
    });
    saved.filter(|&(_, bytes)| bytes > 0).collect()
}

impl<'r, 'a> Sharing<'r, 'a> {
    pub(crate) fn new(graph: &'r Graph<'a>, lifetimes: &'r Lifetimes, rules: Rules<'r>) -> Self {
        let mut writers = vec![0u32; graph.tensors.len()];
        let mut writer = vec![None; graph.tensors.len()];
        let mut is_read_at_end = vec![false; graph.tensors.len()];
        let mut is_state = vec![false; graph.tensors.len()];
        for op in graph.operators() {
            for t in &op.outputs {
                writers[t.index()] += 1;
                writer[t.index()] = Some(op.id);
                is_state[t.index()] |= op.updates_its_output();
                is_read_at_end[t.index()] |= op.updates_its_output();
            }
        }
        for subgraph in &graph.subgraphs {
            for t in &subgraph.inputs {
                writers[t.index()] += 1;
            }
            for t in &subgraph.outputs {
                is_read_at_end[t.index()] = true;
            }
        }
        for t in rules.keep {
            is_read_at_end[t.index()] = true;
        }
        for (writer, &count) in writer.iter_mut().zip(&writers) {
            *writer = writer.filter(|_| count == 1);
        }
        let is_rewritten = writers.iter().map(|&count| count > 1).collect();
        let mut sharing = Self {
            graph,
            lifetimes,
            rules,
            writer,
            is_rewritten,
            is_state,
            is_read_at_end,
            pieces: Vec::new(),
        };
        sharing.pieces = sharing.find_pieces();
        sharing
    }

    /// When a tensor is alive.
    pub(crate) fn span(&self, tensor: TensorId) -> Span {
        let mut span = self.lifetimes.tensor(tensor);
        if self.rules.keep.binary_search(&tensor).is_ok() {
            span.last = self.lifetimes.end;
        }
        if self.is_state[tensor.index()] {
            span = Span {
                first: NEVER,
                last: self.lifetimes.end,
            };
        }
        span
    }

    pub(crate) fn graph(&self) -> &'r Graph<'a> {
        self.graph
    }

    pub(crate) fn promises(&self) -> &'r Promises {
        self.rules.promises
    }

    /// Whether a tensor's value is needed after the last operator.
    pub(crate) fn is_read_at_end(&self, tensor: TensorId) -> bool {
        self.is_read_at_end[tensor.index()]
    }

    fn bytes(&self, tensor: TensorId) -> u64 {
        self.graph.tensor(tensor).bytes
    }

    /// The offset that a tensor has already.
    fn fixed(&self, tensor: TensorId) -> Option<u64> {
        let mut fixed = self.rules.fixed.iter();
        fixed.find(|f| f.0 == tensor).map(|f| f.1)
    }

    fn rounded(&self, tensor: TensorId) -> u64 {
        self.bytes(tensor).next_multiple_of(self.rules.granule)
    }

    /// The tensors that get a place in the head.
    pub(crate) fn placed(&self) -> Vec<TensorId> {
        let is_placed = |t: &&Tensor<'_>| {
            t.is_planned() || (self.rules.online.is_some() && t.is_left_to_tflm())
        };
        let tensors = self.graph.tensors.iter().filter(is_placed);
        tensors.map(|t| t.id).collect()
    }

    /// The promise that counts for two tensors, as (input, output, promise): the operator that writes the one reads the
    /// other for the last time, and runs once.
    pub(crate) fn overlap(
        &self,
        a: TensorId,
        b: TensorId,
    ) -> Option<(TensorId, TensorId, Overlap)> {
        self.overlap_of((a, self.span(a)), (b, self.span(b)))
    }

    /// The same of bytes of two tensors that are alive at these times.
    fn overlap_of(
        &self,
        a: (TensorId, Span),
        b: (TensorId, Span),
    ) -> Option<(TensorId, TensorId, Overlap)> {
        let one_way = |(input, read): (TensorId, Span), (output, written): (TensorId, Span)| {
            let promise = self.rules.promises.get(input, output)?;
            let step = self.lifetimes.operator(self.writer[output.index()]?);
            let runs_once = step.first == step.last;
            let meets =
                read.first < step.first && read.last == step.first && written.first == step.first;
            let is_last_reader = meets && runs_once && !self.is_read_at_end[input.index()];
            is_last_reader.then_some((input, output, *promise))
        };
        one_way(a, b).or_else(|| one_way(b, a))
    }

    /// The least separations of two tensors of which bytes that are alive at these times are alive at once.
    fn apart_of(&self, a: (TensorId, Span), b: (TensorId, Span)) -> Apart {
        let full = Apart {
            first_below: self.rounded(a.0),
            second_below: self.rounded(b.0),
        };
        let Some((input, output, promise)) = self.overlap_of(a, b) else {
            return full;
        };
        let (output_below, input_below) =
            (self.rules).apart(&promise, self.rounded(input), self.rounded(output));
        match input == a.0 {
            true => Apart {
                first_below: input_below,
                second_below: output_below,
            },
            false => Apart {
                first_below: output_below,
                second_below: input_below,
            },
        }
    }

    /// The least separations of two tensors that are alive at once.
    pub(crate) fn apart(&self, a: TensorId, b: TensorId) -> Apart {
        self.apart_of((a, self.span(a)), (b, self.span(b)))
    }
}
