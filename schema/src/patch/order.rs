//! A new operator order: that it fits the model.

use std::collections::{BTreeMap, BTreeSet};

use super::rewrite::{Rewrites, SUBGRAPH_SLOTS, newer_field};
use super::survey::Survey;
use super::{OperatorOrder, PatchError};

/// The orders other than the order that a subgraph has, by subgraph.
pub(super) fn other_orders<'e>(
    survey: &Survey<'_>,
    rewrites: &Rewrites<'_>,
    orders: &'e [OperatorOrder],
) -> Result<BTreeMap<usize, &'e [u32]>, PatchError> {
    let mut other = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for OperatorOrder { subgraph, order } in orders {
        let subgraph = *subgraph;
        if subgraph >= survey.subgraphs.len() {
            return Err(PatchError::OrderSubgraph {
                subgraph,
                subgraphs: survey.subgraphs.len(),
            });
        }
        if !seen.insert(subgraph) {
            return Err(PatchError::OrderTwice { subgraph });
        }
        let view = survey.subgraphs.get(subgraph)?;
        let operators = match rewrites.of_subgraph.get(&subgraph) {
            Some(rewrite) => rewrite.operators.len(),
            None => view.operators()?.len(),
        };
        if order.len() != operators {
            return Err(PatchError::OrderLength {
                subgraph,
                given: order.len(),
                operators,
            });
        }
        let mut named = vec![false; order.len()];
        for (position, &operator) in order.iter().enumerate() {
            match named.get_mut(operator as usize) {
                Some(named) if !*named => *named = true,
                _ => {
                    return Err(PatchError::OrderNotPermutation {
                        subgraph,
                        position,
                        operator,
                    });
                }
            }
        }
        if order.is_sorted() {
            continue;
        }
        if let Some(slot) = newer_field(view.table(), SUBGRAPH_SLOTS) {
            return Err(PatchError::NewerSubgraphField { subgraph, slot });
        }
        other.insert(subgraph, order.as_slice());
    }
    Ok(other)
}
