//! The interference graph: which buffers may not share bytes.
//!
//! Nodes are the planned tensors and the kernels' scratch requests, edges join those that are alive at the same time.
//! It is the petgraph graph inside the solver's [`Problem`]; this module builds it from a [`Graph`] and its
//! [`Lifetimes`] and remembers what each node stands for.

use std::fmt::Write as _;

use arenaplan_solver::{Buffer, BufferId, Lifetime, Problem};
use petgraph::visit::EdgeRef;

use crate::aliasing::{Member, Piece, Promises, Sharing, merge};
use crate::contract::Overlap;
use crate::error::Error;
use crate::graph::{Graph, OpId, TensorId};
use crate::lifetimes::{Lifetimes, Span};
use crate::scratch::Scratch;
use crate::target::Library;
use crate::tflm;

/// What a node of the interference graph stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Node {
    /// A tensor in the arena's head.
    Tensor(TensorId),
    /// Several tensors that are views of each other, each with its distance from the start of the buffer.
    Merged(Vec<Member>),
    /// The `request`-th scratch buffer that an operator's kernel asks for.
    Scratch {
        /// The operator.
        operator: OpId,
        /// Position among the operator's requests.
        request: u32,
    },
    /// The same with another library in its place: it shares the head with the tensors, and not with other libraries'
    /// scratch memory. The buffer is smaller than the request by what that library may take above the head.
    OtherScratch {
        /// The library.
        library: Library,
        /// The operator.
        operator: OpId,
        /// Position among the operator's requests.
        request: u32,
        /// Bytes of the request, rounded up.
        bytes: u64,
    },
}

impl Node {
    /// The tensors that it stands for, each with its distance from the start of the buffer.
    pub fn tensors(&self) -> impl Iterator<Item = (TensorId, u64)> {
        let (one, several): (Option<TensorId>, &[Member]) = match self {
            Node::Tensor(t) => (Some(*t), &[]),
            Node::Merged(members) => (None, members),
            Node::Scratch { .. } | Node::OtherScratch { .. } => (None, &[]),
        };
        let one = one.into_iter().map(|t| (t, 0));
        one.chain(several.iter().map(|m| (m.tensor, m.at)))
    }
}

/// The solver's problem together with the meaning of its buffers.
#[derive(Clone, Debug)]
pub struct Interference {
    /// Sizes, lifetimes and conflicts, as the solvers read them.
    pub problem: Problem,
    /// What each buffer stands for, by [`arenaplan_solver::BufferId`].
    pub nodes: Vec<Node>,
    /// Tensors of which byte ranges have lifetimes of their own, each with these, in the order of their numbers.
    pub pieces: Vec<(TensorId, Vec<Piece>)>,
    /// Liveness bound in bytes: what is alive at one time, with as much of it shared as may be.
    pub bound: u64,
    /// The clock at which so much is needed; `None` when the bound is the size of one buffer.
    pub bound_clock: Option<i32>,
}

/// What the interference graph is built for.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'r> {
    /// Offsets of planned tensors are multiples of this; at least 1.
    pub align: u64,
    /// Sizes are rounded up to a multiple of this, and what the device places itself starts at one: 16 for TFLM.
    pub granule: u64,
    /// Also what the device places itself around the plan: this scratch memory, and tensors without an offset.
    /// `None` leaves all that out.
    pub online: Option<&'r Scratch>,
    /// Tensors that stay alive to the end of the model, sorted.
    pub keep: &'r [TensorId],
    /// Other libraries that may run the model, which need room as well.
    pub others: &'r [Other],
    /// What may share bytes.
    pub promises: &'r Promises,
    /// Whether views of a part of a tensor are merged, and not only those of a whole one.
    pub parts: bool,
    /// Tensors that have their offset already, in bytes.
    pub fixed: &'r [(TensorId, u64)],
}

/// A library that may be on the device instead of the one whose scratch memory is [`Rules::online`].
#[derive(Clone, Debug)]
pub struct Other {
    /// What its kernels ask for.
    pub scratch: Scratch,
    /// By how many bytes the head may be higher with it.
    pub slack: u64,
}

impl Rules<'_> {
    /// The least separations that a promise leaves between an input and an output of these sizes: with the output the
    /// lower one, and with the input the lower one.
    pub(crate) fn apart(&self, promise: &Overlap, input: u64, output: u64) -> (u64, u64) {
        let aligned = |bytes: u64| bytes.next_multiple_of(self.align.max(1));
        (
            aligned(promise.input_above_output).min(output),
            aligned(promise.output_above_input).min(input),
        )
    }

    /// What the model needs whatever the plan is: without scratch memory, alignment and aliasing.
    pub fn tensors_alone() -> Self {
        const NONE: &Promises = &Promises::NONE;
        Self {
            align: 1,
            granule: tflm::ALIGNMENT,
            online: None,
            keep: &[],
            others: &[],
            promises: NONE,
            parts: false,
            fixed: &[],
        }
    }
}

impl Interference {
    /// Builds the graph of everything that needs a place in the head.
    ///
    /// # Errors
    /// [`Error::TooLarge`] or [`Error::Solver`] when sizes do not add up to something addressable.
    pub fn build(
        graph: &Graph<'_>,
        lifetimes: &Lifetimes,
        rules: Rules<'_>,
    ) -> Result<Self, Error> {
        let sharing = Sharing::new(graph, lifetimes, rules);
        let mut nodes = Vec::new();
        let mut buffers = Vec::new();
        for block in merge(&sharing, &sharing.placed()) {
            buffers.push(sharing.buffer(&block));
            nodes.push(match &block.members[..] {
                [only] => Node::Tensor(only.tensor),
                _ => Node::Merged(block.members),
            });
        }
        for request in rules.online.into_iter().flat_map(Scratch::requests) {
            let span = lifetimes.operator(request.operator);
            nodes.push(Node::Scratch {
                operator: request.operator,
                request: request.index,
            });
            buffers.push(Buffer {
                size: request.bytes.next_multiple_of(rules.granule),
                align: rules.granule,
                lifetime: Lifetime::new(span.first, span.last),
                fixed: None,
            });
        }
        let bound = sharing.bound(&nodes, &buffers);
        for other in rules.others {
            for request in other.scratch.requests() {
                let span = lifetimes.operator(request.operator);
                let bytes = request.bytes.next_multiple_of(rules.granule);
                nodes.push(Node::OtherScratch {
                    library: other.scratch.library(),
                    operator: request.operator,
                    request: request.index,
                    bytes,
                });
                buffers.push(Buffer {
                    size: bytes.saturating_sub(other.slack),
                    align: rules.granule,
                    lifetime: Lifetime::new(span.first, span.last),
                    fixed: None,
                });
            }
        }
        let problem = match rules.promises.is_empty() && rules.others.is_empty() {
            true => Problem::from_lifetimes(buffers).map_err(solver_error)?,
            false => sharing.problem(&nodes, buffers)?,
        };
        Ok(Self {
            pieces: sharing.all_pieces(&nodes),
            problem,
            nodes,
            bound: bound.bytes,
            bound_clock: bound.clock,
        })
    }

    /// The graph with the lower bound of two: views of parts merged, or not. `rules.parts` does not count.
    ///
    /// # Errors
    /// As [`Interference::build`].
    pub fn with_least_bound(
        graph: &Graph<'_>,
        lifetimes: &Lifetimes,
        rules: Rules<'_>,
    ) -> Result<Self, Error> {
        let with = |parts| Self::build(graph, lifetimes, Rules { parts, ..rules });
        let whole = with(false)?;
        if rules.promises.partial_views(graph).is_empty() {
            return Ok(whole);
        }
        let parts = with(true)?;
        Ok(match parts.bound < whole.bound {
            true => parts,
            false => whole,
        })
    }

    /// Bytes that must be there at each of `clocks`, with as much shared as `rules` allow; the most of them is the lower bound of
    /// [`Interference::with_least_bound`], if it is needed at one of the clocks.
    ///
    /// # Errors
    /// As [`Interference::build`].
    pub fn needed(
        graph: &Graph<'_>,
        lifetimes: &Lifetimes,
        rules: Rules<'_>,
        clocks: &[i32],
    ) -> Result<Vec<u64>, Error> {
        let with = |parts| {
            let rules = Rules { parts, ..rules };
            Self::build(graph, lifetimes, rules).map(|found| (found, rules))
        };
        let mut best = with(false)?;
        if !rules.promises.partial_views(graph).is_empty() {
            let parts = with(true)?;
            if parts.0.bound < best.0.bound {
                best = parts;
            }
        }
        let (found, rules) = best;
        let buffers: Vec<Buffer> = found.problem.graph().node_weights().copied().collect();
        let sharing = Sharing::new(graph, lifetimes, rules);
        Ok(sharing.needed(&found.nodes, &buffers, clocks))
    }

    /// The buffer of a node.
    pub fn buffer(&self, node: usize) -> Option<&Buffer> {
        self.problem.buffer(BufferId(u32::try_from(node).ok()?))
    }

    /// The graph in Graphviz' DOT: a node per buffer with name, bytes and lifetime, and its pieces where it has several; an
    /// edge per conflict.
    pub fn to_dot(&self, graph: &Graph<'_>) -> String {
        let mut text = String::from("graph interference {\n  node [shape=box];\n");
        let buffers = self.problem.graph().node_weights();
        for (i, (node, buffer)) in self.nodes.iter().zip(buffers).enumerate() {
            let what = match node {
                Node::Tensor(t) => graph.tensor(*t).label(),
                Node::Merged(members) => {
                    let members = members
                        .iter()
                        .map(|m| format!("{} at {}", graph.tensor(m.tensor).label(), m.at));
                    members.collect::<Vec<_>>().join("\n")
                }
                Node::Scratch { operator, request } => {
                    format!("scratch {request} of {}", graph.operator(*operator).label())
                }
                Node::OtherScratch {
                    library,
                    operator,
                    request,
                    ..
                } => {
                    let operator = graph.operator(*operator).label();
                    format!("scratch {request} of {operator} with {library}")
                }
            };
            let mut label = format!(
                "{what}\n{} bytes, alive {}..={}",
                buffer.size, buffer.lifetime.first, buffer.lifetime.last
            );
            for (tensor, at) in node.tensors() {
                let known = self.pieces.binary_search_by_key(&tensor, |p| p.0);
                for piece in known.into_iter().flat_map(|k| &self.pieces[k].1) {
                    let (start, end) = (at + piece.at, at + piece.end());
                    let Span { first, last } = piece.span;
                    // Writing to a string cannot fail.
                    let _ = write!(
                        label,
                        "\n{start}..{end} of {}: {first}..={last}",
                        graph.tensor(tensor).label()
                    );
                }
            }
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  n{i} [label={}];", quoted(&label));
        }
        for edge in self.problem.graph().edge_references() {
            let (a, b) = (edge.source().index(), edge.target().index());
            let conflict = edge.weight();
            let sizes = [a, b].map(|x| self.buffer(x).map_or(0, |b| b.size as i64));
            let _ = match sizes == [conflict.a_below_b, conflict.b_below_a] {
                true => writeln!(text, "  n{a} -- n{b};"),
                false => writeln!(
                    text,
                    "  n{a} -- n{b} [label=\"{} / {}\"];",
                    conflict.a_below_b, conflict.b_below_a
                ),
            };
        }
        text.push_str("}\n");
        text
    }
}

/// A DOT string literal: quotes and backslashes escaped, line breaks kept as `\n`.
fn quoted(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n");
    format!("\"{escaped}\"")
}

/// The solver's error in this crate's terms.
pub(crate) fn solver_error(error: arenaplan_solver::Error) -> Error {
    Error::Solver {
        reason: error.to_string(),
    }
}
