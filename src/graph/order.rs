//! The same graph with its operators in another order, and the order that a file had before this tool changed it.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use arenaplan_schema::{patch, view};

use super::{Graph, OpId, Operator};

impl<'a> Graph<'a> {
    /// The graph with the operators of each subgraph in another order: for each subgraph and new position, the position
    /// that the operator has now. Tensors keep their numbers. A subgraph whose entry is not a permutation is left as it is.
    pub fn reordered(&self, orders: &[Vec<u32>]) -> Self {
        let mut graph = self.clone();
        for (subgraph, order) in graph.subgraphs.iter_mut().zip(orders) {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if !sorted
                .iter()
                .copied()
                .eq(0..subgraph.operators.len() as u32)
            {
                continue;
            }
            let moved = order.iter().enumerate().map(|(at, &k)| {
                let operator = &subgraph.operators[k as usize];
                Operator {
                    id: OpId {
                        index: at as u32,
                        ..operator.id
                    },
                    ..operator.clone()
                }
            });
            subgraph.operators = moved.collect();
        }
        graph
    }

    /// The graph with its operators where they were before this tool planned the file.
    pub fn in_original_order(&self) -> Cow<'_, Self> {
        if !self.is_reordered() {
            return Cow::Borrowed(self);
        }
        let order_of = |subgraph: &super::Subgraph<'_>| {
            let mut order: Vec<&Operator<'_>> = subgraph.operators.iter().collect();
            order.sort_by_key(|op| op.original);
            order.iter().map(|op| op.id.index).collect()
        };
        let orders: Vec<Vec<u32>> = self.subgraphs.iter().map(order_of).collect();
        Cow::Owned(self.reordered(&orders))
    }

    /// Whether operators are not where they were before this tool planned the file.
    pub fn is_reordered(&self) -> bool {
        self.operators().any(|op| op.id.index != op.original)
    }

    /// Fills in where each operator was before this tool planned the file. Whatever does not fit is left as it is: the
    /// numbers are for people.
    pub(super) fn note_original_order(&mut self) {
        let bytes = self.model.bytes();
        let Ok(Some(provenance)) = patch::inspect_provenance(bytes) else {
            return;
        };
        let length = usize::try_from(provenance.original_bytes).ok();
        let Some(start) = length.and_then(|length| bytes.len().checked_sub(length)) else {
            return;
        };
        let Ok(subgraphs) = view::Model::new(&bytes[start..]).and_then(|m| m.subgraphs()) else {
            return;
        };
        for (s, subgraph) in self.subgraphs.iter_mut().enumerate() {
            let Ok(operators) = subgraphs.get(s).and_then(|s| s.operators()) else {
                continue;
            };
            // One table may stand for several operators.
            let mut known: BTreeMap<usize, VecDeque<u32>> = BTreeMap::new();
            for (k, operator) in (0u32..).zip(operators.iter()) {
                if let Ok(operator) = operator {
                    let at = start + operator.table().position();
                    known.entry(at).or_default().push_back(k);
                }
            }
            let original = |op: &Operator<'_>| known.get_mut(&op.table._tab.loc())?.pop_front();
            let originals: Option<Vec<u32>> = subgraph.operators.iter().map(original).collect();
            for (op, original) in subgraph
                .operators
                .iter_mut()
                .zip(originals.into_iter().flatten())
            {
                op.original = original;
            }
        }
    }
}
