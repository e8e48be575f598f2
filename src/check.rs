//! The independent checker: is a layout of the arena right for this model?
//!
//! It shares nothing with what it checks: no lifetimes, no interference graph, no planner. It walks the operators in the
//! order in which TFLM runs them and keeps a map of the arena: each write leaves its tensor's tag on the bytes it
//! covers, each read demands that tag on every byte of the tensor.
//!
//! ```text
//! before an operator   its inputs carry their tags
//! while it runs        outputs and scratch are written; inputs and outputs must all still be whole, since a kernel
//!                      may read any input byte after any output byte is written
//! IF                   both branches are tried from the same state; bytes that differ afterwards belong to nobody
//! WHILE                the body is tried not at all, once, and twice; CALL_ONCE not at all, and once
//! Ethos-U           its tensors lie over each other as its compiler arranged; only what others left there is checked
//! two invokes          inputs are set before each; a variable that lives in the arena must survive from one to the next
//! ```

use std::collections::BTreeMap;
use std::fmt;

use arenaplan_schema::tflite::BuiltinOperator;

use crate::graph::{Graph, OpId, Operator, Storage, TensorId};
use crate::target::Library;

pub mod order;

/// A fault of a layout. Offsets and lengths are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A tensor that needs a place in the arena has none.
    NoPlace {
        /// The tensor.
        tensor: TensorId,
    },
    /// The layout has a place for something that the model does not have, or two for one thing.
    Unexpected {
        /// What the place is for.
        tag: Tag,
    },
    /// A place is smaller than the tensor in it.
    TooShort {
        /// The tensor.
        tensor: TensorId,
        /// Bytes of the place.
        bytes: u64,
        /// Bytes of the tensor.
        needed: u64,
    },
    /// A tensor or scratch buffer does not start at a multiple of its alignment.
    Misaligned {
        /// What lies there.
        tag: Tag,
        /// Its offset.
        offset: u64,
        /// The alignment asked for.
        align: u64,
    },
    /// A tensor or scratch buffer reaches behind the end of the head.
    OutOfBounds {
        /// What lies there.
        tag: Tag,
        /// Its end.
        end: u64,
        /// The size of the head.
        head: u64,
    },
    /// A read finds bytes that something else has overwritten.
    Overwritten {
        /// The tensor or scratch buffer that is read.
        tag: Tag,
        /// When it is read.
        at: Place,
        /// Offset of the first byte that is not its own any more.
        offset: u64,
        /// What lies there now; `None` when different paths leave different things there.
        by: Option<Tag>,
    },
    /// The model's calls nest too deeply, or take too many steps, to be checked.
    TooDeep {
        /// The operator at which the walk gave up.
        operator: OpId,
    },
}

/// When a read happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// The application has set all inputs.
    BeforeInvoke,
    /// An operator reads its input, or its output is found damaged when it ends.
    Operator(OpId),
    /// Values are copied into or out of a subgraph.
    EndOf(u32),
    /// The application reads after the invoke.
    AfterInvoke,
}

/// Owner of bytes in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Tag {
    /// A tensor.
    Tensor(TensorId),
    /// Scratch memory of an operator's kernel.
    Scratch {
        /// The operator.
        operator: OpId,
        /// Position among its requests.
        request: u32,
    },
}

/// A piece of the arena with its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Who owns it.
    pub tag: Tag,
    /// First byte.
    pub offset: u64,
    /// Length in bytes; 0 is allowed and covers nothing.
    pub bytes: u64,
    /// What the offset must be a multiple of.
    pub align: u64,
}

/// A layout to check.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Places of tensors and scratch buffers, in any order.
    pub pieces: Vec<Piece>,
    /// Bytes of the head.
    pub head: u64,
    /// Tensors that the application reads after an invoke besides the outputs.
    pub keep: Vec<TensorId>,
    /// The kernel libraries for each of which it must be right.
    pub libraries: &'static [Library],
}

/// Faults found: first those of the layout alone, then those found by walking. At most 100.
pub fn check(graph: &Graph<'_>, layout: &Layout) -> Vec<Violation> {
    let mut checker = Checker {
        graph,
        place: vec![None; graph.tensors.len()],
        same_as: graph.tensors.iter().map(|t| t.id).collect(),
        scratch: BTreeMap::new(),
        arena: BTreeMap::new(),
        written: vec![false; graph.tensors.len()],
        has_value: Vec::new(),
        found: Vec::new(),
        steps: 0,
    };
    checker.structure(layout);
    checker.views();
    checker.run(layout);
    checker.found
}

const MAX_FOUND: usize = 100;
/// Writes, reads and copied intervals. More than any model for a microcontroller takes, and about a second of work.
const MAX_STEPS: usize = 2_000_000;
const MAX_DEPTH: usize = 70;

/// Tagged intervals: start -> (end, tag). They never overlap.
type Arena = BTreeMap<u64, (u64, Tag)>;

struct Checker<'g, 'a> {
    graph: &'g Graph<'a>,
    /// Start and end of each tensor in the arena.
    place: Vec<Option<(u64, u64)>>,
    /// The tensor whose tag a tensor's bytes carry: itself, or the one that it is a view of.
    same_as: Vec<TensorId>,
    /// Start and end of each operator's scratch buffers, by request.
    scratch: BTreeMap<OpId, BTreeMap<u32, (u64, u64)>>,
    arena: Arena,
    /// Tensors that some operator or the application writes.
    written: Vec<bool>,
    /// Those, and the ones that operators read without anyone writing them.
    has_value: Vec<bool>,
    found: Vec<Violation>,
    steps: usize,
}

impl<'a> Checker<'_, 'a> {
    fn report(&mut self, violation: Violation) {
        if self.found.len() < MAX_FOUND && !self.found.contains(&violation) {
            self.found.push(violation);
        }
    }

    /// What can be said without running anything; also notes the places.
    fn structure(&mut self, layout: &Layout) {
        for piece in &layout.pieces {
            let &Piece {
                tag,
                offset,
                bytes,
                align,
            } = piece;
            let end = offset.saturating_add(bytes);
            if align > 1 && !offset.is_multiple_of(align) {
                self.report(Violation::Misaligned { tag, offset, align });
            }
            if end > layout.head {
                self.report(Violation::OutOfBounds {
                    tag,
                    end,
                    head: layout.head,
                });
            }
            let old = match tag {
                Tag::Tensor(t) => match self.graph.tensors.get(t.index()) {
                    None => {
                        self.report(Violation::Unexpected { tag });
                        continue;
                    }
                    // The room that TFLM gives a constant it cannot read holds nothing that could be damaged.
                    Some(tensor) if tensor.storage == Storage::OutsideConstant => continue,
                    Some(tensor) => {
                        let needed = tensor.bytes;
                        if bytes < needed {
                            self.report(Violation::TooShort {
                                tensor: t,
                                bytes,
                                needed,
                            });
                        }
                        self.place[t.index()].replace((offset, end))
                    }
                },
                Tag::Scratch { operator, request } => self
                    .scratch
                    .entry(operator)
                    .or_default()
                    .insert(request, (offset, end)),
            };
            if old.is_some() {
                self.report(Violation::Unexpected { tag });
            }
        }
        for tensor in &self.graph.tensors {
            if tensor.storage == Storage::Arena && self.place[tensor.id.index()].is_none() {
                self.report(Violation::NoPlace { tensor: tensor.id });
            }
        }
    }

    /// Outputs of RESHAPE that lie exactly on their input.
    fn views(&mut self) {
        for op in self
            .graph
            .operators()
            .filter(|o| o.code == BuiltinOperator::RESHAPE)
        {
            if let (Some(&Some(input)), [output]) = (op.inputs.first(), &op.outputs[..])
                && self.place[input.index()].is_some()
                && self.place[input.index()] == self.place[output.index()]
            {
                self.same_as[output.index()] = self.same_as[input.index()];
            }
        }
    }

    fn run(&mut self, layout: &Layout) {
        let graph = self.graph;
        for s in &graph.subgraphs {
            for t in s
                .inputs
                .iter()
                .chain(s.operators.iter().flat_map(|o| &o.outputs))
            {
                self.written[t.index()] = true;
            }
        }
        // What nothing in the model writes has its value, if any, from before the first invoke.
        let orphans: Vec<TensorId> = graph
            .operators()
            .flat_map(|o| o.inputs.iter().flatten().copied())
            .filter(|t| !self.written[t.index()])
            .collect();
        self.has_value.clone_from(&self.written);
        for t in &orphans {
            self.has_value[t.index()] = true;
        }
        let known = |t: &&TensorId| t.index() < graph.tensors.len();
        for invoke in 0..2 {
            for &t in &orphans {
                // A variable in the arena must survive from one invoke to the next.
                if invoke == 0 || graph.tensor(t).storage == Storage::Arena {
                    self.write(t);
                }
            }
            // The application may set inputs in any order, so none may lie on another.
            for &t in &graph.subgraphs[0].inputs {
                self.write(t);
            }
            for &t in &graph.subgraphs[0].inputs {
                self.read(t, Place::BeforeInvoke);
            }
            self.subgraph(0, 0);
            for &t in graph.subgraphs[0]
                .outputs
                .iter()
                .chain(layout.keep.iter().filter(known))
            {
                self.read(t, Place::AfterInvoke);
            }
        }
    }

    fn subgraph(&mut self, index: u32, depth: usize) {
        let graph = self.graph;
        let subgraph = &graph.subgraphs[index as usize];
        for op in &subgraph.operators {
            if depth > MAX_DEPTH || self.steps > MAX_STEPS {
                self.report(Violation::TooDeep { operator: op.id });
                return;
            }
            for &t in op.inputs.iter().flatten() {
                // Scratch tensors of a compiled operator are inputs that nobody writes.
                if !op.has_compiled_offsets() || self.written[t.index()] {
                    self.read(t, Place::Operator(op.id));
                }
            }
            let scratch = self.scratch.get(&op.id).cloned().unwrap_or_default();
            for (&request, &(start, end)) in &scratch {
                self.put(
                    start,
                    end,
                    Tag::Scratch {
                        operator: op.id,
                        request,
                    },
                );
            }
            match op.code {
                BuiltinOperator::IF if op.calls.len() == 2 => self.branch(op, depth),
                BuiltinOperator::WHILE if op.calls.len() == 2 => self.repeat(op, depth),
                BuiltinOperator::CALL_ONCE if op.calls.len() == 1 => {
                    let before = self.arena.clone();
                    self.subgraph(op.calls[0], depth + 1);
                    self.agree_with(&before);
                }
                // Its scratch tensors cover inputs and outputs; the outputs are what is left there in the end.
                _ if op.has_compiled_offsets() => {
                    for &t in op.inputs.iter().flatten().chain(&op.outputs) {
                        self.write(t);
                    }
                }
                _ => self.plain(op),
            }
            if !op.has_compiled_offsets() {
                for (&request, &range) in &scratch {
                    let tag = Tag::Scratch {
                        operator: op.id,
                        request,
                    };
                    self.demand(range, tag, Place::Operator(op.id));
                }
            }
        }
        for &t in &subgraph.outputs {
            self.read(t, Place::EndOf(index));
        }
    }

    /// An operator without subgraphs: everything it touches is needed at once.
    fn plain(&mut self, op: &Operator<'a>) {
        for &t in &op.outputs {
            self.write(t);
        }
        for &t in op.inputs.iter().flatten().chain(&op.outputs) {
            self.read(t, Place::Operator(op.id));
        }
        // A variable input is updated by its operator.
        for &t in op.inputs.iter().flatten() {
            if self.graph.tensor(t).storage == Storage::Variable {
                self.write(t);
            }
        }
    }

    /// IF (`if.cc`): inputs after the condition are copied in, one branch runs, its outputs are copied out.
    fn branch(&mut self, op: &Operator<'a>, depth: usize) {
        let start = self.arena.clone();
        let mut end: Option<Arena> = None;
        for &called in &op.calls {
            self.steps += start.len();
            self.arena = start.clone();
            self.copy_in(op.inputs.get(1..).unwrap_or_default(), called);
            self.subgraph(called, depth + 1);
            self.copy_out(op, called);
            if let Some(other) = end.take() {
                self.agree_with(&other);
            }
            end = Some(self.arena.clone());
        }
    }

    /// WHILE (`while.cc`): inputs go to the condition and to the operator's outputs; the body reads and writes those.
    fn repeat(&mut self, op: &Operator<'a>, depth: usize) {
        let (condition, body) = (op.calls[0], op.calls[1]);
        let at = Place::Operator(op.id);
        self.copy_in(&op.inputs, condition);
        for (&from, &to) in op.inputs.iter().zip(&op.outputs) {
            self.copy(from, to, at);
        }
        self.subgraph(condition, depth + 1);
        // Versions of TFLM before the copy to the outputs was moved up read the inputs again here.
        for (&from, &to) in op.inputs.iter().zip(&op.outputs) {
            if let Some(from) = from
                && self.place[from.index()] != self.place[to.index()]
            {
                self.read(from, at);
            }
        }
        let mut ends = vec![self.arena.clone()];
        let outputs: Vec<_> = op.outputs.iter().copied().map(Some).collect();
        for _round in 0..2 {
            self.copy_in(&outputs, body);
            self.subgraph(body, depth + 1);
            self.copy_out(op, body);
            self.copy_in(&outputs, condition);
            self.subgraph(condition, depth + 1);
            self.steps += self.arena.len();
            // A round that changes nothing would change nothing the next time either.
            if ends.last() == Some(&self.arena) {
                break;
            }
            ends.push(self.arena.clone());
        }
        for &t in &op.outputs {
            self.read(t, at);
        }
        for end in ends {
            self.agree_with(&end);
        }
    }

    /// Leaves only the bytes on which the arena and another state of it agree.
    fn agree_with(&mut self, other: &Arena) {
        self.steps += self.arena.len() + other.len();
        self.arena = agreement(std::mem::take(&mut self.arena), other);
    }

    fn copy_in(&mut self, from: &[Option<TensorId>], called: u32) {
        let graph = self.graph;
        for (&source, &target) in from.iter().zip(&graph.subgraphs[called as usize].inputs) {
            self.copy(source, target, Place::EndOf(called));
        }
    }

    fn copy_out(&mut self, op: &Operator<'a>, called: u32) {
        let graph = self.graph;
        for (&target, &source) in op
            .outputs
            .iter()
            .zip(&graph.subgraphs[called as usize].outputs)
        {
            self.copy(Some(source), target, Place::EndOf(called));
        }
    }

    /// TFLM's copy of a tensor: nothing when both are in one place, else `memcpy`, whose ranges must not meet.
    fn copy(&mut self, from: Option<TensorId>, to: TensorId, at: Place) {
        if let Some(from) = from {
            self.read(from, at);
        }
        self.write(to);
        if let Some(from) = from
            && self.place[from.index()] != self.place[to.index()]
        {
            self.read(from, at);
        }
    }

    fn write(&mut self, tensor: TensorId) {
        if let Some((start, end)) = self.place[tensor.index()] {
            self.put(start, end, Tag::Tensor(self.same_as[tensor.index()]));
        }
    }

    /// Covers `start..end` with `tag`, cutting what was there.
    fn put(&mut self, start: u64, end: u64, tag: Tag) {
        self.steps += 1;
        if start >= end {
            return;
        }
        if let Some((&s, &(e, old))) = self.arena.range(..start).next_back()
            && e > start
        {
            self.arena.insert(s, (start, old));
            if e > end {
                self.arena.insert(end, (e, old));
            }
        }
        while let Some((&s, &(e, old))) = self.arena.range(start..end).next() {
            self.arena.remove(&s);
            if e > end {
                self.arena.insert(end, (e, old));
            }
        }
        self.arena.insert(start, (end, tag));
    }

    fn read(&mut self, tensor: TensorId, at: Place) {
        // An output that nobody writes has no value to lose.
        if let Some(range) = self.place[tensor.index()]
            && self.has_value[tensor.index()]
        {
            self.demand(range, Tag::Tensor(self.same_as[tensor.index()]), at);
        }
    }

    /// Every byte of the range must carry the tag.
    fn demand(&mut self, (start, end): (u64, u64), tag: Tag, at: Place) {
        self.steps += 1;
        let mut next = start;
        while next < end {
            let found = self.arena.range(..=next).next_back().map(|(_, &v)| v);
            match found.filter(|&(e, _)| e > next) {
                Some((e, owner)) if owner == tag => next = e,
                other => {
                    let by = other.map(|(_, owner)| owner);
                    self.report(Violation::Overwritten {
                        tag,
                        at,
                        offset: next,
                        by,
                    });
                    return;
                }
            }
        }
    }
}

/// The bytes on which two states agree.
fn agreement(a: Arena, b: &Arena) -> Arena {
    let mut both = Arena::new();
    for (start, (end, tag)) in a {
        let before = b.range(..start).next_back().map(|(&s, &v)| (s, v));
        for (s, (e, t)) in before
            .into_iter()
            .chain(b.range(start..end).map(|(&s, &v)| (s, v)))
        {
            let (from, to) = (s.max(start), e.min(end));
            if t == tag && from < to {
                both.insert(from, (to, tag));
            }
        }
    }
    both
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::BeforeInvoke => write!(f, "when all inputs are set"),
            Place::Operator(op) => write!(f, "at {op}"),
            Place::EndOf(subgraph) => write!(f, "when subgraph {subgraph} is entered or left"),
            Place::AfterInvoke => write!(f, "after the invoke"),
        }
    }
}

impl Violation {
    /// The fault in words, with the names of tensors and operators.
    pub fn describe(&self, graph: &Graph<'_>) -> String {
        let operator = |op: OpId| {
            let found = graph.subgraphs.get(op.subgraph as usize);
            let found = found.and_then(|s| s.operators.get(op.index as usize));
            found.map_or_else(|| op.to_string(), Operator::label)
        };
        let tensor = |t: TensorId| match graph.tensors.get(t.index()) {
            Some(tensor) => tensor.label(),
            None => format!("tensor number {}, which the model does not have", t.0),
        };
        let name = |tag: &Tag| match *tag {
            Tag::Tensor(t) => tensor(t),
            Tag::Scratch {
                operator: op,
                request,
            } => {
                format!("scratch memory {request} of {}", operator(op))
            }
        };
        match self {
            Violation::NoPlace { tensor: t } => format!("{} has no place in the arena", tensor(*t)),
            Violation::Unexpected { tag } => {
                format!("there is a place too many, for {}", name(tag))
            }
            Violation::TooShort {
                tensor: t,
                bytes,
                needed,
            } => {
                format!(
                    "{} has a place of {bytes} bytes, and needs {needed}",
                    tensor(*t)
                )
            }
            Violation::Misaligned { tag, offset, align } => {
                format!(
                    "{} starts at {offset}, which is not a multiple of {align}",
                    name(tag)
                )
            }
            Violation::OutOfBounds { tag, end, head } => {
                format!(
                    "{} ends at {end}, behind the head of {head} bytes",
                    name(tag)
                )
            }
            Violation::Overwritten {
                tag,
                at,
                offset,
                by,
            } => {
                let at = match at {
                    Place::Operator(op) => format!("at {}", operator(*op)),
                    other => other.to_string(),
                };
                let by = match by {
                    Some(tag) => format!("{} lies there", name(tag)),
                    None => "what lies there depends on the path taken".into(),
                };
                format!(
                    "{} is needed {at}, but at byte {offset} of the arena {by}",
                    name(tag)
                )
            }
            Violation::TooDeep { operator: op } => {
                format!(
                    "calls nest too deeply or take too long to check at {}",
                    operator(*op)
                )
            }
        }
    }
}
