//! A new operator order: new tables for the subgraphs, whose operator vectors refer to the
//! original's operators.

use std::collections::{BTreeMap, BTreeSet};

use super::prefix::{Label, Prefix, Value};
use super::survey::Survey;
use super::{OperatorOrder, PatchError, referred, scalar};

/// Slots of a subgraph's table known here, the last being `debug_metadata_index`.
const SUBGRAPH_SLOTS: u16 = 6;

/// For each subgraph with an order other than its own: where the original's operator tables are, in
/// the new order.
pub(super) fn operator_tables(
    survey: &Survey<'_>,
    orders: &[OperatorOrder],
) -> Result<BTreeMap<usize, Vec<usize>>, PatchError> {
    let mut ordered = BTreeMap::new();
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
        let operators = view.operators()?;
        if order.len() != operators.len() {
            return Err(PatchError::OrderLength {
                subgraph,
                given: order.len(),
                operators: operators.len(),
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
        let table = view.table();
        if let Some(slot) = (SUBGRAPH_SLOTS..table.slots()).find(|slot| table.has(*slot)) {
            return Err(PatchError::NewerSubgraphField { subgraph, slot });
        }
        let tables: Result<Vec<usize>, PatchError> = order
            .iter()
            .map(|&operator| Ok(operators.get(operator as usize)?.table().position()))
            .collect();
        ordered.insert(subgraph, tables?);
    }
    Ok(ordered)
}

/// Writes the subgraph vector, with new tables and operator vectors for the subgraphs in `orders`.
pub(super) fn write_subgraphs(
    prefix: &mut Prefix,
    vector: Label,
    survey: &Survey<'_>,
    orders: &BTreeMap<usize, Vec<usize>>,
) -> Result<(), PatchError> {
    let labels: BTreeMap<usize, Label> = orders
        .keys()
        .map(|subgraph| (*subgraph, prefix.label()))
        .collect();
    let elements = survey
        .subgraphs
        .iter()
        .enumerate()
        .map(|(index, subgraph)| {
            Ok(match labels.get(&index) {
                Some(label) => Value::To(*label),
                None => Value::Original(subgraph?.table().position()),
            })
        });
    prefix.vector(vector, elements)?;
    for ((index, operators), label) in orders.iter().zip(labels.values()) {
        let subgraph = survey.subgraphs.get(*index)?.table();
        let operator_vector = prefix.label();
        let mut fields = [Value::Absent; SUBGRAPH_SLOTS as usize];
        for (slot, field) in (0..).zip(&mut fields) {
            *field = match slot {
                3 => Value::To(operator_vector),
                5 => scalar(subgraph, slot)?,
                _ => referred(subgraph, slot)?,
            };
        }
        prefix.table(*label, &fields)?;
        let elements = operators.iter().map(|table| Ok(Value::Original(*table)));
        prefix.vector(operator_vector, elements)?;
    }
    Ok(())
}
