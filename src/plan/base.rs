//! What is planned: the file that came in, or a rewriting of it.

use arenaplan_schema::patch::Rewrite;

use crate::graph::Graph;
use crate::report::Report;

/// One form of a model.
pub(super) struct Base<'b, 'a> {
    /// The operators and tensors to plan.
    pub(super) graph: &'b Graph<'a>,
    /// Bytes of the file that came in.
    pub(super) original: &'b [u8],
    /// What is rewritten of it.
    pub(super) rewrite: Vec<Rewrite>,
    /// The figures of the file that came in, for a rewriting.
    pub(super) before: Option<&'b Report>,
}

impl<'b, 'a> Base<'b, 'a> {
    /// The file as it came in.
    pub(super) fn of_file(graph: &'b Graph<'a>) -> Self {
        Self {
            graph,
            original: graph.model.bytes(),
            rewrite: Vec::new(),
            before: None,
        }
    }

    /// Whether operators are others than in the file.
    pub(super) fn is_rewritten(&self) -> bool {
        !self.rewrite.is_empty()
    }

    /// For each library of the target, the head without any plan that a plan must not be above, in bytes.
    pub(super) fn greedy_heads(&self) -> Option<Vec<u64>> {
        let libraries = &self.before?.libraries;
        Some(libraries.iter().map(|l| l.greedy_head_bytes).collect())
    }
}
