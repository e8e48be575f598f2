//! Kernels of another order: what an operator would compute if its kernel did not keep the order that the plan needs.
//!
//! The model runs without its plan, in the plan's order of operators, so that all tensors lie apart. Where the plan has an
//! output over an input, the input's bytes are overwritten with what the output would have there, before the operator reads
//! them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use arenaplan_runtime::{Observer, Session, ViewMut};

use crate::aliasing::{Kind, Promises, taken};
use crate::error::Error;
use crate::graph::{Graph, OpId};
use crate::lifetimes::Lifetimes;
use crate::scratch::Scratch;
use crate::stored::{StoredPlan, made_for};
use crate::target::{Library, Target};
use crate::tflm;

/// An order in which a kernel might compute its output, other than what plans count on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    /// All of the output is written, and computed again from what is then there: as by a kernel that goes over its input once
    /// for each channel.
    Again,
    /// The second half of the output comes before the first: as by a kernel that runs backwards, or two that share the work.
    Halves,
}

impl Order {
    /// All of them.
    pub const ALL: [Order; 2] = [Order::Again, Order::Halves];
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Order::Again => "output computed again over itself",
            Order::Halves => "second half before the first",
        })
    }
}

/// An operator with outputs over its inputs.
pub(super) struct Sharing {
    pub(super) operator: OpId,
    pub(super) label: String,
    pieces: Vec<Piece>,
}

/// Bytes that an input has in common with an output.
struct Piece {
    input: u32,
    output: u32,
    /// The first of them, in the input and in the output.
    in_input: usize,
    in_output: usize,
    len: usize,
    /// Bytes of the first half of the output, whole elements.
    half: usize,
}

/// The target that the plan was made for.
pub(super) fn target(planned: &[u8]) -> Option<Target> {
    made_for(planned).map(|(target, _)| target)
}

/// The operators of a planned model that have outputs over inputs, but for copies onto themselves.
pub(super) fn sharings(graph: &Graph<'_>) -> Result<Vec<Sharing>, Error> {
    let StoredPlan::Offsets(offsets) = StoredPlan::read(graph) else {
        return Ok(Vec::new());
    };
    let target = target(graph.model.bytes()).unwrap_or(Target::TflmReference);
    let library = target
        .libraries()
        .first()
        .copied()
        .unwrap_or(Library::Reference);
    let lifetimes = Lifetimes::of(graph)?;
    let scratch = Scratch::of(library, graph);
    let simulation = tflm::simulate(graph, &lifetimes, &scratch, Some(&offsets))?;
    let place = |tensor| simulation.tensor(tensor).map(|placed| placed.offset);
    let promises = Promises::of(graph, target, |tensor| graph.tensor(tensor).is_planned());
    let mut found: BTreeMap<OpId, Vec<Piece>> = BTreeMap::new();
    for shared in taken(graph, &promises, place) {
        if shared.kind == Kind::View {
            continue;
        }
        let output = graph.tensor(shared.output);
        let element_type = arenaplan_runtime::Type(output.ty.0);
        let size = element_type.bytes().unwrap_or(1).max(1);
        let elements = output.bytes as usize / size;
        found.entry(shared.operator).or_default().push(Piece {
            input: shared.input.0,
            output: shared.output.0,
            in_input: usize::try_from(-shared.distance).unwrap_or(0),
            in_output: usize::try_from(shared.distance).unwrap_or(0),
            len: shared.bytes as usize,
            half: elements / 2 * size,
        });
    }
    let sharings = found.into_iter().map(|(operator, pieces)| Sharing {
        operator,
        label: graph.operator(operator).label(),
        pieces,
    });
    Ok(sharings.collect())
}

/// The outputs of operators, one run of each after the other: those of all invokes.
#[derive(Default)]
pub(super) struct Recording {
    outputs: RefCell<BTreeMap<OpId, Vec<Vec<u8>>>>,
    /// For each operator that is recorded, the bytes of the head that its outputs have.
    places: BTreeMap<OpId, Vec<Range<usize>>>,
}

impl Recording {
    /// Of the operators in `sharings`, whose tensors are where the session has them.
    pub(super) fn new(graph: &Graph<'_>, session: &Session<'_, '_>, sharings: &[Sharing]) -> Self {
        let places = sharings.iter().map(|sharing| {
            let outputs = graph.operator(sharing.operator).outputs.iter();
            let ranges = outputs.filter_map(|&output| {
                let start = session.head_offset(output.0)?;
                Some(start..start + graph.tensor(output).bytes as usize)
            });
            (sharing.operator, ranges.collect())
        });
        Self {
            places: places.collect(),
            ..Self::default()
        }
    }

    /// Whether an operator has run.
    pub(super) fn has_run(&self, operator: OpId) -> bool {
        self.outputs.borrow().contains_key(&operator)
    }

    /// The bytes of all outputs of an operator.
    fn read(&self, operator: OpId, head: ViewMut<'_, u8>) -> Vec<u8> {
        let ranges = self.places.get(&operator).into_iter().flatten();
        let all = ranges.flat_map(|range| range.clone());
        all.map(|at| head.get(at)).collect()
    }
}

impl Observer for Recording {
    fn after(&self, subgraph: u32, index: u32, head: ViewMut<'_, u8>) {
        let operator = OpId { subgraph, index };
        if self.places.contains_key(&operator) {
            let bytes = self.read(operator, head);
            let mut outputs = self.outputs.borrow_mut();
            outputs.entry(operator).or_default().push(bytes);
        }
    }
}

/// An operator whose kernel has another order.
pub(super) struct Disorder<'r> {
    operator: OpId,
    order: Order,
    recording: &'r Recording,
    /// Bytes of the head, and where in the output's bytes it is what comes there before the operator reads.
    spoilt: Vec<(Range<usize>, usize)>,
    /// Bytes of the head, and where in the outputs' bytes it is what was written before the rest.
    early: Vec<(Range<usize>, usize)>,
    /// Runs of the operator so far.
    runs: Cell<usize>,
    has_harmed: Cell<bool>,
}

impl<'r> Disorder<'r> {
    pub(super) fn new(
        sharing: &Sharing,
        order: Order,
        recording: &'r Recording,
        session: &Session<'_, '_>,
    ) -> Self {
        // Outputs are recorded one after the other.
        let mut at = 0;
        let mut starts = BTreeMap::new();
        for range in recording
            .places
            .get(&sharing.operator)
            .into_iter()
            .flatten()
        {
            starts.insert(range.start, at);
            at += range.len();
        }
        let recorded = |output: u32| {
            let start = session.head_offset(output)?;
            Some((start, *starts.get(&start)?))
        };
        let (mut spoilt, mut early) = (Vec::new(), Vec::new());
        for piece in &sharing.pieces {
            let (Some(input), Some((output, at))) =
                (session.head_offset(piece.input), recorded(piece.output))
            else {
                continue;
            };
            let first = match order {
                Order::Again => piece.in_output,
                Order::Halves => piece.in_output.max(piece.half),
            };
            let skipped = (first - piece.in_output).min(piece.len);
            let start = input + piece.in_input + skipped;
            spoilt.push((start..start + piece.len - skipped, at + first));
            let end = recording.places[&sharing.operator]
                .iter()
                .find(|range| range.start == output);
            if let (Order::Halves, Some(range)) = (order, end) {
                early.push((output + piece.half..range.end, at + piece.half));
            }
        }
        Self {
            operator: sharing.operator,
            order,
            recording,
            spoilt,
            early,
            runs: Cell::new(0),
            has_harmed: Cell::new(false),
        }
    }

    /// Whether the operator has computed something else than with the right order.
    pub(super) fn has_harmed(&self) -> bool {
        self.has_harmed.get()
    }

    fn is_it(&self, subgraph: u32, index: u32) -> bool {
        self.operator == (OpId { subgraph, index })
    }

    /// What the operator's outputs were in this run, with the right order.
    fn right(&self, with: impl FnOnce(&[u8])) {
        let outputs = self.recording.outputs.borrow();
        let runs = outputs.get(&self.operator);
        if let Some(bytes) = runs.and_then(|runs| runs.get(self.runs.get())) {
            with(bytes);
        }
    }
}

fn write(head: ViewMut<'_, u8>, pieces: &[(Range<usize>, usize)], bytes: &[u8]) {
    for (range, from) in pieces {
        for (at, &byte) in range.clone().zip(bytes.iter().skip(*from)) {
            head.set(at, byte);
        }
    }
}

impl Observer for Disorder<'_> {
    fn before(&self, subgraph: u32, index: u32, head: ViewMut<'_, u8>) {
        if self.is_it(subgraph, index) {
            self.right(|bytes| write(head, &self.spoilt, bytes));
        }
    }

    fn after(&self, subgraph: u32, index: u32, head: ViewMut<'_, u8>) {
        if !self.is_it(subgraph, index) {
            return;
        }
        self.right(|bytes| {
            if self.order == Order::Halves {
                write(head, &self.early, bytes);
            }
            if self.recording.read(self.operator, head) != bytes {
                self.has_harmed.set(true);
            }
        });
        self.runs.set(self.runs.get() + 1);
    }
}
