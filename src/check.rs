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

/// A fault of a layout. Offsets and lengths are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A tensor that needs a place in the arena has none.
    NoPlace {
        /// The tensor.
        tensor: TensorId,
    },
    /// A tensor or scratch buffer does not start at a multiple of the alignment.
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
        /// The tensor that is read.
        tensor: TensorId,
        /// When it is read.
        at: Place,
        /// Offset of the first byte that is not the tensor's any more.
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
pub enum Place {
    /// An operator reads its input, or its output is found damaged when it ends.
    Operator(OpId),
    /// The outputs of a subgraph are read at its end.
    EndOf(u32),
    /// The application reads after the invoke.
    AfterInvoke,
}

/// Owner of bytes in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tag {
    /// A tensor.
    Tensor(TensorId),
    /// Scratch memory of an operator's kernel.
    Scratch(OpId),
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
}

/// A layout to check.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Places of tensors and scratch buffers, in any order.
    pub pieces: Vec<Piece>,
    /// Bytes of the head.
    pub head: u64,
    /// What offsets must be multiples of.
    pub align: u64,
    /// Tensors that the application reads after an invoke besides the outputs.
    pub keep: Vec<TensorId>,
}

/// Faults found, worst first in the sense that structural ones come before those found by walking. At most 100.
pub fn check(graph: &Graph<'_>, layout: &Layout) -> Vec<Violation> {
    let mut checker = Checker {
        graph,
        place: vec![None; graph.tensors.len()],
        scratch: BTreeMap::new(),
        arena: BTreeMap::new(),
        written: vec![false; graph.tensors.len()],
        found: Vec::new(),
        steps: 0,
    };
    checker.structure(layout);
    checker.run(layout);
    checker.found
}

const MAX_FOUND: usize = 100;
const MAX_STEPS: usize = 4_000_000;
const MAX_DEPTH: usize = 70;

/// Tagged intervals: start -> (end, tag). They never overlap.
type Arena = BTreeMap<u64, (u64, Tag)>;

struct Checker<'g, 'a> {
    graph: &'g Graph<'a>,
    place: Vec<Option<(u64, u64)>>,
    scratch: BTreeMap<OpId, Vec<(u64, u64)>>,
    arena: Arena,
    /// Tensors that some operator or the application writes.
    written: Vec<bool>,
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
            let end = piece.offset.saturating_add(piece.bytes);
            if layout.align > 1 && piece.offset % layout.align != 0 {
                self.report(Violation::Misaligned {
                    tag: piece.tag,
                    offset: piece.offset,
                    align: layout.align,
                });
            }
            if end > layout.head {
                self.report(Violation::OutOfBounds {
                    tag: piece.tag,
                    end,
                    head: layout.head,
                });
            }
            match piece.tag {
                // The room that TFLM gives a constant it cannot read holds nothing that could be damaged.
                Tag::Tensor(t) if self.graph.tensor(t).storage == Storage::OutsideConstant => {}
                Tag::Tensor(t) => self.place[t.index()] = Some((piece.offset, end)),
                Tag::Scratch(op) => {
                    self.scratch
                        .entry(op)
                        .or_default()
                        .push((piece.offset, end));
                }
            }
        }
        for tensor in &self.graph.tensors {
            if tensor.storage == Storage::Arena && self.place[tensor.id.index()].is_none() {
                self.report(Violation::NoPlace { tensor: tensor.id });
            }
        }
    }

    fn run(&mut self, layout: &Layout) {
        let graph = self.graph;
        // What nothing in the model writes has its value, if any, from before the first invoke.
        for s in &graph.subgraphs {
            for t in s
                .inputs
                .iter()
                .chain(s.operators.iter().flat_map(|o| &o.outputs))
            {
                self.written[t.index()] = true;
            }
        }
        let read: Vec<TensorId> = graph
            .operators()
            .flat_map(|o| o.inputs.iter().flatten().copied())
            .filter(|t| !self.written[t.index()])
            .collect();
        for invoke in 0..2 {
            for &t in read
                .iter()
                .filter(|t| graph.tensor(**t).storage == Storage::Arena)
            {
                self.write(t);
            }
            if invoke == 0 {
                for &t in read
                    .iter()
                    .filter(|t| graph.tensor(**t).storage != Storage::Arena)
                {
                    self.write(t);
                }
            }
            for &t in &graph.subgraphs[0].inputs {
                self.write(t);
            }
            self.subgraph(0, 0);
            for &t in graph.subgraphs[0].outputs.iter().chain(&layout.keep) {
                self.read(t, Place::AfterInvoke);
            }
        }
    }

    fn subgraph(&mut self, index: u32, depth: usize) {
        let graph = self.graph;
        let subgraph = &graph.subgraphs[index as usize];
        for op in &subgraph.operators {
            self.steps += 1;
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
            match op.code {
                BuiltinOperator::IF if op.calls.len() == 2 => self.branch(op, depth),
                BuiltinOperator::WHILE if op.calls.len() == 2 => self.repeat(op, depth),
                BuiltinOperator::CALL_ONCE if op.calls.len() == 1 => {
                    let before = self.arena.clone();
                    self.subgraph(op.calls[0], depth + 1);
                    self.arena = agreement(before, &self.arena);
                }
                _ if op.has_compiled_offsets() => {
                    // Its scratch tensors cover inputs and outputs; the outputs are what is left there in the end.
                    for &t in op.inputs.iter().flatten().chain(&op.outputs) {
                        self.write(t);
                    }
                }
                _ => self.plain(op),
            }
        }
        for &t in &subgraph.outputs {
            self.read(t, Place::EndOf(index));
        }
    }

    /// An operator without subgraphs: everything it touches is needed at once.
    fn plain(&mut self, op: &Operator<'a>) {
        let at = Place::Operator(op.id);
        for &t in &op.outputs {
            self.write(t);
        }
        for (start, end) in self.scratch.get(&op.id).cloned().unwrap_or_default() {
            self.put(start, end, Tag::Scratch(op.id));
        }
        for &t in op.inputs.iter().flatten().chain(&op.outputs) {
            self.read(t, at);
        }
        // Two scratch buffers of one operator must not meet either.
        for (start, end) in self.scratch.get(&op.id).cloned().unwrap_or_default() {
            let others = self.scratch[&op.id]
                .iter()
                .filter(|&&(s, e)| s < end && start < e)
                .count();
            if others > 1 {
                let tag = Tag::Scratch(op.id);
                let tensor = op.outputs.first().copied().unwrap_or(TensorId(0));
                self.report(Violation::Overwritten {
                    tensor,
                    at,
                    offset: start,
                    by: Some(tag),
                });
            }
        }
        // A variable input is updated by its operator.
        for &t in op.inputs.iter().flatten() {
            if self.graph.tensor(t).storage == Storage::Variable {
                self.write(t);
            }
        }
    }

    /// IF: inputs after the condition are copied in, one branch runs, its outputs are copied out.
    fn branch(&mut self, op: &Operator<'a>, depth: usize) {
        let start = self.arena.clone();
        let mut end: Option<Arena> = None;
        for &called in &op.calls {
            self.arena = start.clone();
            self.copy_in(op.inputs.get(1..).unwrap_or_default(), called);
            self.subgraph(called, depth + 1);
            self.copy_out(op, called);
            end = Some(match end {
                None => self.arena.clone(),
                Some(other) => agreement(other, &self.arena),
            });
        }
        self.arena = end.unwrap_or(start);
    }

    /// WHILE: inputs go to the condition and to the operator's outputs; the body reads and writes those outputs.
    fn repeat(&mut self, op: &Operator<'a>, depth: usize) {
        let (condition, body) = (op.calls[0], op.calls[1]);
        self.copy_in(&op.inputs, condition);
        for &t in &op.outputs {
            self.write(t);
        }
        self.subgraph(condition, depth + 1);
        let mut end = self.arena.clone();
        let outputs: Vec<_> = op.outputs.iter().copied().map(Some).collect();
        for _round in 0..2 {
            self.read_outputs(op);
            self.copy_in(&outputs, body);
            self.subgraph(body, depth + 1);
            self.copy_out(op, body);
            self.copy_in(&outputs, condition);
            self.subgraph(condition, depth + 1);
            end = agreement(end, &self.arena);
        }
        self.read_outputs(op);
        self.arena = end;
    }

    fn read_outputs(&mut self, op: &Operator<'a>) {
        for &t in &op.outputs {
            self.read(t, Place::Operator(op.id));
        }
    }

    /// Copies one by one, as TFLM does: a value must not be overwritten by an earlier copy.
    fn copy_in(&mut self, from: &[Option<TensorId>], called: u32) {
        let graph = self.graph;
        let at = Place::EndOf(called);
        for (source, &target) in from.iter().zip(&graph.subgraphs[called as usize].inputs) {
            if let Some(source) = *source {
                self.read(source, at);
            }
            self.write(target);
        }
    }

    fn copy_out(&mut self, op: &Operator<'a>, called: u32) {
        let graph = self.graph;
        for (&target, &source) in op
            .outputs
            .iter()
            .zip(&graph.subgraphs[called as usize].outputs)
        {
            self.read(source, Place::EndOf(called));
            self.write(target);
        }
    }

    fn write(&mut self, tensor: TensorId) {
        if let Some((start, end)) = self.place[tensor.index()] {
            self.put(start, end, Tag::Tensor(tensor));
        }
    }

    /// Covers `start..end` with `tag`, cutting what was there.
    fn put(&mut self, start: u64, end: u64, tag: Tag) {
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
        let Some((start, end)) = self.place[tensor.index()] else {
            return;
        };
        let tag = Tag::Tensor(tensor);
        let mut next = start;
        while next < end {
            match self.arena.range(..=next).next_back() {
                Some((_, &(e, found))) if e > next && found == tag => next = e,
                Some((_, &(e, found))) if e > next => {
                    self.report(Violation::Overwritten {
                        tensor,
                        at,
                        offset: next,
                        by: Some(found),
                    });
                    return;
                }
                _ => {
                    self.report(Violation::Overwritten {
                        tensor,
                        at,
                        offset: next,
                        by: None,
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
            Place::Operator(op) => write!(f, "at {op}"),
            Place::EndOf(subgraph) => write!(f, "when subgraph {subgraph} is entered or left"),
            Place::AfterInvoke => write!(f, "after the invoke"),
        }
    }
}

impl Violation {
    /// The fault in words, with the names of tensors and operators.
    pub fn describe(&self, graph: &Graph<'_>) -> String {
        let name = |tag: &Tag| match *tag {
            Tag::Tensor(t) => graph.tensor(t).label(),
            Tag::Scratch(op) => format!("scratch memory of {}", graph.operator(op).label()),
        };
        match self {
            Violation::NoPlace { tensor } => {
                format!(
                    "{} has no place in the arena",
                    graph.tensor(*tensor).label()
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
                tensor,
                at,
                offset,
                by,
            } => {
                let at = match at {
                    Place::Operator(op) => format!("at {}", graph.operator(*op).label()),
                    other => other.to_string(),
                };
                let by = match by {
                    Some(tag) => format!("{} lies there", name(tag)),
                    None => "nothing certain lies there".into(),
                };
                format!(
                    "{} is needed {at}, but at byte {offset} of the arena {by}",
                    graph.tensor(*tensor).label()
                )
            }
            Violation::TooDeep { operator } => format!(
                "calls nest too deeply or take too long to check at {}",
                graph.operator(*operator).label()
            ),
        }
    }
}
