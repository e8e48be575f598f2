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
//!   known kernels      where outputs lie over inputs, the kernel's reads and writes are run in its order
//! SLICE                only the bytes that it takes must be its input's; what lies on the others is nobody's concern until
//!                      somebody reads them
//! copies               bytes that an operator copies onto themselves keep their tag, and belong to both tensors
//! IF                   both branches are tried from the same state; bytes that differ afterwards belong to nobody
//! WHILE                the body is tried not at all, once, and twice; CALL_ONCE not at all, and once
//! Ethos-U           its tensors lie over each other as its compiler arranged; only what others left there is checked
//! two invokes          inputs are set before each; a variable that lives in the arena must survive from one to the next
//! ```

mod in_order;
pub mod order;
mod replay;
mod violation;

use std::collections::{BTreeMap, BTreeSet};

use arenaplan_schema::tflite::{BuiltinOperator, TensorType};

use crate::graph::{Graph, OpId, Operator, Storage, TensorId};
use crate::target::Library;
use in_order::View;
use replay::part_read;

pub use violation::{Place, Tag, Violation};

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
    /// The kernel libraries with which the layout must be right. With none nothing is known of any kernel's order: an
    /// operator may read any input byte after it has written any output byte.
    pub libraries: &'static [Library],
    /// Of what the libraries allow, only copies of bytes onto themselves are right: what a kernel that nobody has looked
    /// at will also keep.
    pub views_only: bool,
}

/// What is known of a graph's operators wherever their tensors lie, for several layouts of one graph.
#[derive(Debug, Default)]
pub struct Known {
    /// What the kernel of a library copies, by library and operator.
    copies: BTreeMap<(Library, OpId), Vec<Copied>>,
}

/// An input, an output, and how far the input lies above the output where bytes are copied onto themselves.
type Copied = (usize, usize, i64);

/// Faults found: first those of the layout alone, then those found by walking. At most 100.
pub fn check(graph: &Graph<'_>, layout: &Layout) -> Vec<Violation> {
    check_again(graph, layout, &mut Known::default())
}

/// As [`check`], with what checks of other layouts of the same graph have found out.
pub fn check_again(graph: &Graph<'_>, layout: &Layout, known: &mut Known) -> Vec<Violation> {
    let mut checker = Checker {
        graph,
        known,
        place: vec![None; graph.tensors.len()],
        holds: vec![None; graph.tensors.len()],
        viewers: BTreeMap::new(),
        libraries: layout.libraries,
        views_only: layout.views_only,
        orders: BTreeMap::new(),
        known_views: BTreeMap::new(),
        known_parts: BTreeMap::new(),
        order_steps: MAX_ORDER_STEPS,
        scratch: BTreeMap::new(),
        arena: BTreeMap::new(),
        written: vec![false; graph.tensors.len()],
        has_value: Vec::new(),
        found: Vec::new(),
        steps: 0,
    };
    checker.structure(layout);
    checker.run(layout);
    checker.found
}

const MAX_FOUND: usize = 100;
/// Writes, reads and copied intervals. More than any model for a microcontroller takes, and about a second of work.
const MAX_STEPS: usize = 2_000_000;
const MAX_DEPTH: usize = 70;
/// Steps of all kernels that are run in their order, together.
const MAX_ORDER_STEPS: u64 = 200_000_000;

/// Tagged intervals: start -> (end, tag). They never overlap.
type Arena = BTreeMap<u64, (u64, Tag)>;

/// A piece of a tensor: start and end in the arena, and the tag that it carries.
type Held = (u64, u64, Tag);

struct Checker<'g, 'a> {
    graph: &'g Graph<'a>,
    known: &'g mut Known,
    /// Start and end of each tensor in the arena.
    place: Vec<Option<(u64, u64)>>,
    /// What a tensor's bytes carry: its own tag, or, for one that is a view of others, pieces with theirs.
    holds: Vec<Option<Vec<Held>>>,
    /// The tensors that have pieces with a tensor's tag.
    viewers: BTreeMap<TensorId, BTreeSet<TensorId>>,
    libraries: &'static [Library],
    views_only: bool,
    /// What came out when an operator was run in its kernel's order, which depends on places alone.
    orders: BTreeMap<OpId, Vec<Violation>>,
    /// What an operator copies onto itself, which does so too.
    known_views: BTreeMap<OpId, Vec<View>>,
    /// Start and end of the bytes that an operator reads of its first input, where that is not all of it.
    known_parts: BTreeMap<OpId, Option<Vec<(u64, u64)>>>,
    order_steps: u64,
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
            // What an operator adds to must survive as well.
            for op in graph
                .operators()
                .filter(|op| invoke == 0 && op.updates_its_output())
            {
                op.outputs.iter().for_each(|&t| self.write(t));
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
            for (position, &input) in op.inputs.iter().enumerate() {
                // Scratch tensors of a compiled operator are inputs that nobody writes.
                if input.is_some_and(|t| !op.has_compiled_offsets() || self.written[t.index()]) {
                    self.read_input(op, position);
                }
            }
            if op.updates_its_output() {
                for &t in &op.outputs {
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
                    self.demand(range, tag, tag, Place::Operator(op.id));
                }
            }
        }
        for &t in &subgraph.outputs {
            self.read(t, Place::EndOf(index));
        }
    }

    /// An operator without subgraphs. What an operator leaves of an input that its outputs lie over is found by whoever
    /// reads that input next; whether the operator itself has read it in time is a question to its kernel's order.
    fn plain(&mut self, op: &Operator<'a>) {
        let at = Place::Operator(op.id);
        let views = self.views(op);
        let mut last: Vec<usize> = (0..op.inputs.len()).collect();
        if !self.libraries.is_empty() && !self.views_only {
            // Scratch memory is written by now.
            for &position in &last {
                self.read_input(op, position);
            }
            for violation in self.in_order(op, &views) {
                self.report(violation);
            }
            // State that the operator updates must be whole to the end, whatever the kernel's order.
            let is_state = |t| self.graph.tensor(t).storage == Storage::Variable;
            last.retain(|&position| op.inputs[position].is_some_and(is_state));
        }
        let held: Vec<_> = views
            .iter()
            .map(|v| (v.output, self.held(op.inputs[v.input], v.start, v.end)))
            .collect();
        for (o, &t) in op.outputs.iter().enumerate() {
            let shared: Vec<Held> = held
                .iter()
                .filter(|(output, _)| *output == o)
                .flat_map(|(_, pieces)| pieces.iter().copied())
                .collect();
            self.write_around(t, shared);
        }
        for &position in &last {
            self.read_input(op, position);
        }
        for &t in &op.outputs {
            self.read(t, at);
        }
        // A variable input is updated by its operator.
        for &t in op.inputs.iter().flatten() {
            if self.graph.tensor(t).storage == Storage::Variable {
                self.write(t);
            }
        }
    }

    /// The bytes that `op` copies onto themselves. A RESHAPE does with every library, known or not.
    fn views(&mut self, op: &Operator<'a>) -> Vec<View> {
        if let Some(known) = self.known_views.get(&op.id) {
            return known.clone();
        }
        let libraries: &[Library] = match self.libraries {
            [] if op.code == BuiltinOperator::RESHAPE => &[Library::Reference],
            _ if self.views_only && !self.copies_everywhere(op) => &[],
            libraries => libraries,
        };
        let steps = &mut self.order_steps;
        let views = in_order::views(libraries, self.graph, op, &self.place, steps, self.known);
        self.known_views.insert(op.id, views.clone());
        views
    }

    /// Whether no library, known or not, has a kernel for `op` that would mind copying bytes onto themselves. (Xtensa's
    /// STRIDED_SLICE of int16 is one that nobody can look at.)
    fn copies_everywhere(&self, op: &Operator<'a>) -> bool {
        use BuiltinOperator as Op;
        let int16 = |t: &TensorId| self.graph.tensor(*t).ty == TensorType::INT16;
        match op.code {
            Op::RESHAPE
            | Op::SQUEEZE
            | Op::EXPAND_DIMS
            | Op::CONCATENATION
            | Op::PACK
            | Op::SPLIT
            | Op::SPLIT_V
            | Op::UNPACK
            | Op::SLICE => true,
            Op::STRIDED_SLICE => !op.outputs.iter().any(int16),
            _ => false,
        }
    }

    /// Faults of an operator run in the order of each library's kernel.
    fn in_order(&mut self, op: &Operator<'a>, views: &[View]) -> Vec<Violation> {
        if let Some(known) = self.orders.get(&op.id) {
            return known.clone();
        }
        let mut found = Vec::new();
        for library in in_order::kernels(self.libraries, op) {
            let steps = &mut self.order_steps;
            let fault = in_order::fault(library, self.graph, op, &self.place, views, steps);
            found.extend(fault.map(|f| Violation::ReadTooLate {
                tensor: f.input,
                operator: op.id,
                library: f.library,
                offset: f.offset,
                by: f.output,
            }));
        }
        self.orders.insert(op.id, found.clone());
        found
    }

    /// What a tensor carries in `start..end`.
    fn held(&self, tensor: Option<TensorId>, start: u64, end: u64) -> Vec<Held> {
        let Some(tensor) = tensor else {
            return Vec::new();
        };
        let own = [(start, end, Tag::Tensor(tensor))];
        let pieces = self.holds[tensor.index()].as_deref().unwrap_or(&own);
        let cut = pieces
            .iter()
            .map(|&(s, e, tag)| (s.max(start), e.min(end), tag));
        cut.filter(|(s, e, _)| s < e).collect()
    }

    /// Writes a tensor of which some pieces are there already.
    fn write_around(&mut self, tensor: TensorId, mut shared: Vec<Held>) {
        self.forget(tensor);
        let Some((start, end)) = self.place[tensor.index()] else {
            return;
        };
        let own = Tag::Tensor(tensor);
        if shared.is_empty() {
            self.put(start, end, own);
            return;
        }
        shared.sort_unstable();
        let mut pieces = Vec::new();
        let mut next = start;
        for (s, e, tag) in shared {
            if next < s {
                self.put(next, s, own);
                pieces.push((next, s, own));
            }
            pieces.push((s, e, tag));
            if let Tag::Tensor(root) = tag {
                self.viewers.entry(root).or_default().insert(tensor);
            }
            next = e;
        }
        if next < end {
            self.put(next, end, own);
            pieces.push((next, end, own));
        }
        self.holds[tensor.index()] = Some(pieces);
    }

    /// A tensor gets a new value: it is no view any more, and what was a view of it has lost those pieces.
    fn forget(&mut self, tensor: TensorId) {
        self.holds[tensor.index()] = None;
        for viewer in self.viewers.remove(&tensor).unwrap_or_default() {
            for (_, _, tag) in self.holds[viewer.index()].iter_mut().flatten() {
                if *tag == Tag::Tensor(tensor) {
                    // A tag that nothing in the arena carries there.
                    *tag = Tag::Tensor(viewer);
                }
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
        self.write_around(tensor, Vec::new());
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

    /// Reads what an operator needs of one of its inputs.
    fn read_input(&mut self, op: &Operator<'a>, position: usize) {
        let Some(tensor) = op.inputs[position] else {
            return;
        };
        let at = Place::Operator(op.id);
        if op.code != BuiltinOperator::SLICE || position != 0 {
            return self.read(tensor, at);
        }
        let steps = &mut self.order_steps;
        let known = self.known_parts.entry(op.id);
        let part = known.or_insert_with(|| part_read(self.graph, op, position, steps));
        match part.clone() {
            None => self.read(tensor, at),
            Some(ranges) => {
                for range in ranges {
                    self.read_range(tensor, range, at);
                }
            }
        }
    }

    fn read(&mut self, tensor: TensorId, at: Place) {
        self.read_range(tensor, (0, u64::MAX), at);
    }

    /// Reads bytes of a tensor, `start..end` from its start.
    fn read_range(&mut self, tensor: TensorId, (start, end): (u64, u64), at: Place) {
        // An output that nobody writes has no value to lose.
        if let Some((first, behind)) = self.place[tensor.index()]
            && self.has_value[tensor.index()]
        {
            let start = first.saturating_add(start);
            let end = first.saturating_add(end).min(behind);
            for (start, end, tag) in self.held(Some(tensor), start, end) {
                if !self.demand((start, end), tag, Tag::Tensor(tensor), at) {
                    return;
                }
            }
        }
    }

    /// Every byte of the range must carry the tag, or `what` has lost it.
    fn demand(&mut self, (start, end): (u64, u64), tag: Tag, what: Tag, at: Place) -> bool {
        self.steps += 1;
        let mut next = start;
        while next < end {
            let found = self.arena.range(..=next).next_back().map(|(_, &v)| v);
            match found.filter(|&(e, _)| e > next) {
                Some((e, owner)) if owner == tag => next = e,
                other => {
                    let by = other.map(|(_, owner)| owner);
                    self.report(Violation::Overwritten {
                        tag: what,
                        at,
                        offset: next,
                        by,
                    });
                    return false;
                }
            }
        }
        true
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
