//! When each tensor is alive, by TensorFlow Lite Micro's own clock.
//!
//! One clock runs through the whole model. It is 0 at the start and moves by one before each operator, and by one more
//! before each subgraph that an operator calls. Spans include both ends. The rules are those of TFLM's
//! `AllocationInfoBuilder` (`micro_allocation_info.cc`):
//!
//! ```text
//! graph input         first = clock at entry           last = last reader, at least the entry
//! operator output     first = the operator's clock     last = last reader, at least the clock after nested subgraphs
//! operator input                                       last = the clock after the operator's nested subgraphs
//! subgraph output     first = end, if never produced   last = the clock at the subgraph's end
//! scratch             first = the operator's clock     last = the clock after nested subgraphs
//! untouched           (-1, -1): conflicts only with what is also alive at -1
//! ```
//!
//! An operator is what the larger of its two codes says. TFLM did not always do so here: older versions look at the newer
//! code alone, and overlook the subgraphs of an operator that has only the older one.
//!
//! A subgraph that is called twice is walked twice, and its spans grow. Graph inputs do not stay alive to the end.

use crate::error::Error;
use crate::graph::{Graph, OpId, TensorId};

/// The clock value of something that is never created or never used.
pub const NEVER: i32 = -1;

/// The clock values between which something is alive, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// First use.
    pub first: i32,
    /// Last use.
    pub last: i32,
}

impl Span {
    /// Alive at no operator at all.
    pub const UNTOUCHED: Span = Span {
        first: NEVER,
        last: NEVER,
    };

    /// Whether the two are alive at the same time.
    pub fn overlaps(self, other: Span) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Whether it is alive at `clock`.
    pub fn contains(self, clock: i32) -> bool {
        self.first <= clock && clock <= self.last
    }

    fn create(&mut self, clock: i32) {
        if self.first == NEVER {
            self.first = clock;
        }
    }
}

/// One step of the clock that belongs to an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The clock when the operator starts.
    pub clock: i32,
    /// The operator.
    pub operator: OpId,
    /// How many calls lie between subgraph 0 and it.
    pub depth: u32,
}

/// Spans of all tensors and operators of a graph.
#[derive(Clone, Debug)]
pub struct Lifetimes {
    /// A span per tensor, by [`TensorId`].
    pub tensors: Vec<Span>,
    /// A span per operator, by subgraph and position: when its scratch memory is alive.
    pub operators: Vec<Vec<Span>>,
    /// Operators in the order in which the clock meets them; one in a subgraph called twice occurs twice.
    pub visits: Vec<Visit>,
    /// The clock at the end.
    pub end: i32,
}

/// Deeper or longer than this and no device runs it; a hostile file could otherwise double the work with each subgraph.
const MAX_DEPTH: u32 = 64;
const MAX_STEPS: usize = 2_000_000;

impl Lifetimes {
    /// Walks `graph` from subgraph 0.
    ///
    /// # Errors
    /// [`Error::Recursion`] when subgraphs call each other in a circle or more than 64 deep, [`Error::TooManySteps`] when
    /// more than two million operators visited and tensors touched are needed.
    pub fn of(graph: &Graph<'_>) -> Result<Self, Error> {
        let mut walk = Walk {
            graph,
            clock: 0,
            running: vec![false; graph.subgraphs.len()],
            steps: 0,
            out: Lifetimes {
                tensors: vec![Span::UNTOUCHED; graph.tensors.len()],
                operators: graph
                    .subgraphs
                    .iter()
                    .map(|s| vec![Span::UNTOUCHED; s.operators.len()])
                    .collect(),
                visits: Vec::new(),
                end: 0,
            },
        };
        walk.subgraph(0, 0)?;
        walk.out.end = walk.clock;
        Ok(walk.out)
    }

    /// The span of a tensor.
    pub fn tensor(&self, id: TensorId) -> Span {
        self.tensors[id.index()]
    }

    /// The span of an operator's scratch memory.
    pub fn operator(&self, id: OpId) -> Span {
        self.operators[id.subgraph as usize][id.index as usize]
    }
}

struct Walk<'g, 'a> {
    graph: &'g Graph<'a>,
    clock: i32,
    running: Vec<bool>,
    /// Operators visited, and tensors touched.
    steps: usize,
    out: Lifetimes,
}

impl Walk<'_, '_> {
    fn subgraph(&mut self, index: u32, depth: u32) -> Result<(), Error> {
        let graph = self.graph;
        let subgraph = &graph.subgraphs[index as usize];
        self.running[index as usize] = true;
        self.steps += 1 + subgraph.inputs.len() + subgraph.outputs.len();
        for &t in &subgraph.inputs {
            self.touch(t);
        }
        for op in &subgraph.operators {
            self.clock += 1;
            let start = self.clock;
            self.steps += 1 + op.inputs.len() + op.outputs.len();
            if self.steps > MAX_STEPS {
                return Err(Error::TooManySteps { operator: op.id });
            }
            self.out.visits.push(Visit {
                clock: start,
                operator: op.id,
                depth,
            });
            for &t in &op.outputs {
                self.out.tensors[t.index()].create(start);
            }
            for &called in &op.calls {
                if self.running[called as usize] || depth >= MAX_DEPTH {
                    return Err(Error::Recursion {
                        operator: op.id,
                        subgraph: called,
                    });
                }
                self.clock += 1;
                self.subgraph(called, depth + 1)?;
            }
            for &t in op.inputs.iter().flatten().chain(&op.outputs) {
                self.out.tensors[t.index()].last = self.clock;
            }
            let span = &mut self.out.operators[index as usize][op.id.index as usize];
            span.create(start);
            span.last = self.clock;
        }
        for &t in &subgraph.outputs {
            self.touch(t);
        }
        self.running[index as usize] = false;
        Ok(())
    }

    fn touch(&mut self, t: TensorId) {
        let span = &mut self.out.tensors[t.index()];
        span.create(self.clock);
        span.last = self.clock;
    }
}
