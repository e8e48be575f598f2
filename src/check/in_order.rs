//! An operator whose outputs lie over its inputs, run in its kernel's order.

use super::Known;
use super::replay::{Event, copies, is_reference, replay_within};
use crate::graph::{Graph, Operator, Storage, TensorId};
use crate::target::Library;

/// Start and end of each tensor in the arena, by tensor.
type Places = [Option<(u64, u64)>];

/// An input byte that is read after an output was written over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) input: TensorId,
    pub(super) output: TensorId,
    pub(super) library: Library,
    /// Offset in the arena.
    pub(super) offset: u64,
}

/// Bytes of an output that are bytes of an input, because the two lie so that the operator copies them onto themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    /// Positions in the operator's lists.
    pub(super) input: usize,
    pub(super) output: usize,
    /// Where in the arena, `start..end`.
    pub(super) start: u64,
    pub(super) end: u64,
}

/// What `op` need not copy with any of `libraries`. `steps` is what all runs together may take, but for what is known.
pub(super) fn views(
    libraries: &[Library],
    graph: &Graph<'_>,
    op: &Operator<'_>,
    places: &Places,
    steps: &mut u64,
    known: &mut Known,
) -> Vec<View> {
    // Most operators have all of their tensors apart.
    if Run::new(op, places, &[]).is_none() {
        return Vec::new();
    }
    let mut kernels = kernels(libraries, op);
    let Some(first) = kernels.next() else {
        return Vec::new();
    };
    let mut copied = |library| {
        let all = known.copies.entry((library, op.id));
        all.or_insert_with(|| copies(library, graph, op, steps))
            .clone()
    };
    let mut pairs = copied(first);
    for library in kernels {
        let also = copied(library);
        pairs.retain(|pair| also.contains(pair));
    }
    let in_arena = |t: TensorId| {
        let is_planned = graph.tensor(t).storage == Storage::Arena;
        places[t.index()].filter(|_| is_planned)
    };
    pairs
        .iter()
        .filter_map(|&(input, output, at)| {
            let (from, from_end) = in_arena(op.inputs[input]?)?;
            let (to, to_end) = in_arena(op.outputs[output])?;
            let (start, end) = (from.max(to), from_end.min(to_end));
            let lies_there = to.checked_add_signed(at) == Some(from);
            (lies_there && start < end).then_some(View {
                input,
                output,
                start,
                end,
            })
        })
        .collect()
}

/// Libraries with different kernels of `op`: where some have none of their own, one of them is enough.
pub(super) fn kernels<'l>(
    libraries: &'l [Library],
    op: &Operator<'_>,
) -> impl Iterator<Item = Library> + use<'l> {
    let code = op.code;
    let portable = libraries.iter().position(|&l| is_reference(l, code));
    let all = libraries.iter().enumerate();
    all.filter(move |&(i, &l)| !is_reference(l, code) || Some(i) == portable)
        .map(|(_, &library)| library)
}

/// More of an arena than any overlap of tensors takes up on a microcontroller.
const MAX_BYTES: u64 = 1 << 26;

/// The first fault of `op` with the kernels of `library`, if there is one. `steps` is what all runs together may take.
pub(super) fn fault(
    library: Library,
    graph: &Graph<'_>,
    op: &Operator<'_>,
    places: &Places,
    views: &[View],
    steps: &mut u64,
) -> Option<Fault> {
    let run = Run::new(op, places, views)?;
    let found = |(input, offset): (usize, u64)| {
        let output = run.writer(offset)?;
        Some(Fault {
            input: op.inputs[input]?,
            output: op.outputs[output],
            library,
            offset,
        })
    };
    if run.end - run.start > MAX_BYTES {
        return run.any().and_then(found);
    }
    let mut written = Written {
        run: &run,
        bytes: vec![false; (run.end - run.start) as usize],
        fault: None,
    };
    let is_known = replay_within(library, graph, op, steps, &mut |event| written.take(event));
    let fault = if is_known { written.fault } else { run.any() };
    fault.and_then(found)
}

/// Where the tensors of an operator are, and which of them meet.
struct Run<'v> {
    inputs: Vec<Option<(u64, u64)>>,
    outputs: Vec<Option<(u64, u64)>>,
    views: &'v [View],
    /// Outputs that the model itself has among the inputs: they may damage their own old value only.
    is_input: Vec<bool>,
    /// The part of the arena that has inputs and outputs.
    start: u64,
    end: u64,
}

impl<'v> Run<'v> {
    /// `None` when no output lies over an input.
    fn new(op: &Operator<'_>, places: &Places, views: &'v [View]) -> Option<Self> {
        let place = |t: TensorId| places[t.index()].filter(|(start, end)| start < end);
        let mut run = Self {
            inputs: op.inputs.iter().map(|t| t.and_then(place)).collect(),
            outputs: op.outputs.iter().map(|&t| place(t)).collect(),
            views,
            is_input: op
                .outputs
                .iter()
                .map(|t| op.inputs.contains(&Some(*t)))
                .collect(),
            start: u64::MAX,
            end: 0,
        };
        for input in run.inputs.iter().flatten() {
            for output in run.outputs.iter().flatten() {
                let (start, end) = (input.0.max(output.0), input.1.min(output.1));
                if start < end {
                    run.start = run.start.min(start);
                    run.end = run.end.max(end);
                }
            }
        }
        (run.start < run.end).then_some(run)
    }

    /// Calls `put` with the parts of `start..end` in which writing `output` changes something.
    fn changed(&self, output: usize, start: u64, end: u64, put: &mut dyn FnMut(u64, u64)) {
        if self.is_input[output] {
            return;
        }
        let mut next = start;
        // Views of one output are its slots, which do not overlap and come in order.
        for view in self.views.iter().filter(|v| v.output == output) {
            let (from, to) = (view.start.clamp(next, end), view.end.clamp(next, end));
            if from < to {
                put(next, from);
                next = to;
            }
        }
        put(next, end);
    }

    /// The output that overwrites the byte at `offset`.
    fn writer(&self, offset: u64) -> Option<usize> {
        (0..self.outputs.len()).find(|&o| {
            let mut writes = false;
            if self.outputs[o].is_some_and(|(start, end)| (start..end).contains(&offset)) {
                self.changed(o, offset, offset + 1, &mut |a, b| writes |= a < b);
            }
            writes
        })
    }

    /// The first byte of an input that any output overwrites, for a kernel that may read everything last.
    fn any(&self) -> Option<(usize, u64)> {
        for (i, input) in self.inputs.iter().enumerate() {
            for (o, output) in self.outputs.iter().enumerate() {
                let (Some(input), Some(output)) = (input, output) else {
                    continue;
                };
                let (start, end) = (input.0.max(output.0), input.1.min(output.1));
                let mut first = None;
                if start < end {
                    self.changed(o, start, end, &mut |a, b| {
                        if a < b && first.is_none() {
                            first = Some(a);
                        }
                    });
                }
                if let Some(offset) = first {
                    return Some((i, offset));
                }
            }
        }
        None
    }
}

/// Which bytes of the arena the operator has written.
struct Written<'r, 'v> {
    run: &'r Run<'v>,
    bytes: Vec<bool>,
    /// The first input, by position, that was read too late, and the byte.
    fault: Option<(usize, u64)>,
}

impl Written<'_, '_> {
    fn take(&mut self, event: Event) {
        if self.fault.is_some() {
            return;
        }
        match event {
            Event::Read { input, start, end } => {
                if let Some((place, _)) = self.run.inputs[input] {
                    self.read(input, place + start, place + end);
                }
            }
            Event::Write { output, start, end } => {
                if let Some((place, _)) = self.run.outputs[output] {
                    self.write(output, place + start, place + end);
                }
            }
            Event::Copy {
                input,
                from,
                output,
                to,
                bytes,
            } => {
                let source = self.run.inputs[input].map(|(place, _)| place + from);
                let target = self.run.outputs[output].map(|(place, _)| place + to);
                if let Some(source) = source {
                    self.read(input, source, source + bytes);
                }
                match (source, target) {
                    (Some(source), Some(target)) if source == target => {}
                    (Some(source), Some(target)) if source.abs_diff(target) < bytes => {
                        let already = self.fault;
                        self.fault = already.or(Some((input, source.max(target))));
                    }
                    (_, Some(target)) => self.write(output, target, target + bytes),
                    (_, None) => {}
                }
            }
            Event::Move {
                input,
                from,
                output,
                to,
                bytes,
            } => {
                let source = self.run.inputs[input].map(|(place, _)| place + from);
                let target = self.run.outputs[output].map(|(place, _)| place + to);
                if let Some(source) = source {
                    self.read(input, source, source + bytes);
                }
                if let Some(target) = target.filter(|_| source != target) {
                    self.write(output, target, target + bytes);
                }
            }
        }
    }

    /// The part of the map for a piece of the arena, which may lie outside.
    fn range(&self, start: u64, end: u64) -> std::ops::Range<usize> {
        let run = self.run;
        let at = |offset: u64| (offset.clamp(run.start, run.end) - run.start) as usize;
        at(start)..at(end).max(at(start))
    }

    fn read(&mut self, input: usize, start: u64, end: u64) {
        let range = self.range(start, end);
        let first = range.start as u64 + self.run.start;
        if let Some(at) = self.bytes[range].iter().position(|&b| b) {
            self.fault = Some((input, first + at as u64));
        }
    }

    fn write(&mut self, output: usize, start: u64, end: u64) {
        let run = self.run;
        run.changed(output, start, end, &mut |start, end| {
            let range = self.range(start, end);
            self.bytes[range].fill(true);
        });
    }
}
