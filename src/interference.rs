//! The interference graph: which buffers may not share bytes.
//!
//! Nodes are the planned tensors and the kernels' scratch requests, edges join those that are alive at the same time.
//! It is the petgraph graph inside the solver's [`Problem`]; this module builds it from a [`Graph`] and its
//! [`Lifetimes`] and remembers what each node stands for.

use std::fmt::Write as _;

use arenaplan_solver::{Buffer, Lifetime, Problem};
use petgraph::visit::EdgeRef;

use crate::error::Error;
use crate::graph::{Graph, OpId, TensorId};
use crate::lifetimes::{Lifetimes, Span};
use crate::scratch::Scratch;

/// What a node of the interference graph stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Node {
    /// A tensor in the arena's head.
    Tensor(TensorId),
    /// The `request`-th scratch buffer that an operator's kernel asks for.
    Scratch {
        /// The operator.
        operator: OpId,
        /// Position among the operator's requests.
        request: u32,
    },
}

/// The solver's problem together with the meaning of its buffers.
#[derive(Clone, Debug)]
pub struct Interference {
    /// Sizes, lifetimes and conflicts, as the solvers read them.
    pub problem: Problem,
    /// What each buffer stands for, by [`arenaplan_solver::BufferId`].
    pub nodes: Vec<Node>,
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
        let mut nodes = Vec::new();
        let mut buffers = Vec::new();
        let mut push = |node, bytes: u64, align: u64, span: Span| {
            nodes.push(node);
            buffers.push(Buffer {
                size: bytes.next_multiple_of(rules.granule),
                align,
                lifetime: Lifetime {
                    first: span.first,
                    last: span.last,
                },
                fixed: None,
            });
        };
        for tensor in &graph.tensors {
            if !tensor.is_planned() && (rules.online.is_none() || !tensor.is_left_to_tflm()) {
                continue;
            }
            let mut span = lifetimes.tensor(tensor.id);
            if rules.keep.binary_search(&tensor.id).is_ok() {
                span.last = lifetimes.end;
            }
            let align = if tensor.is_planned() {
                rules.align
            } else {
                rules.granule
            };
            push(Node::Tensor(tensor.id), tensor.bytes, align, span);
        }
        if let Some(scratch) = rules.online {
            for request in scratch.requests() {
                let node = Node::Scratch {
                    operator: request.operator,
                    request: request.index,
                };
                push(
                    node,
                    request.bytes,
                    rules.granule,
                    lifetimes.operator(request.operator),
                );
            }
        }
        let problem = Problem::from_lifetimes(buffers).map_err(solver_error)?;
        Ok(Self { problem, nodes })
    }

    /// The graph in Graphviz' DOT: a node per buffer with name, bytes and lifetime, an edge per conflict.
    pub fn to_dot(&self, graph: &Graph<'_>) -> String {
        let mut text = String::from("graph interference {\n  node [shape=box];\n");
        let buffers = self.problem.graph().node_weights();
        for (i, (node, buffer)) in self.nodes.iter().zip(buffers).enumerate() {
            let what = match *node {
                Node::Tensor(t) => graph.tensor(t).label(),
                Node::Scratch { operator, request } => {
                    format!("scratch {request} of {}", graph.operator(operator).label())
                }
            };
            let label = format!(
                "{what}\n{} bytes, alive {}..={}",
                buffer.size, buffer.lifetime.first, buffer.lifetime.last
            );
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  n{i} [label={}];", quoted(&label));
        }
        for edge in self.problem.graph().edge_references() {
            let _ = writeln!(
                text,
                "  n{} -- n{};",
                edge.source().index(),
                edge.target().index()
            );
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
