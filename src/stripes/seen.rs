//! The row stripes that a file already has.

use std::collections::BTreeMap;

use crate::graph::{Graph, Origin};

/// What of a file is computed in parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Runs of operators of the model before planning that are computed in as many parts each.
    pub layers: Vec<SeenLayers>,
    /// Operators that were added and are no copies, by name, with how many there are.
    pub added: BTreeMap<String, usize>,
    /// Operators before planning.
    pub operators_before: usize,
    /// Operators now.
    pub operators: usize,
}

/// Neighbours among the operators of the model before planning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenLayers {
    /// Position of the first one.
    pub first: u32,
    /// Position of the last one.
    pub last: u32,
    /// Name of the first one.
    pub first_name: String,
    /// Name of the last one.
    pub last_name: String,
    /// In how many parts each is computed.
    pub parts: usize,
}

/// The stripes of the file of `graph`; `None` where this tool added no operators.
pub fn seen(graph: &Graph<'_>) -> Option<Seen> {
    if !graph.is_rewritten() {
        return None;
    }
    let before = graph.in_original_order();
    let mut seen = Seen {
        operators_before: before.operators().count(),
        operators: graph.operators().count(),
        ..Seen::default()
    };
    let mut parts: BTreeMap<(u32, u32), (usize, String)> = BTreeMap::new();
    for op in graph.operators() {
        match op.origin {
            Origin::File => {}
            Origin::Added => *seen.added.entry(op.name()).or_default() += 1,
            Origin::Copy => {
                let place = (op.id.subgraph, op.original);
                parts.entry(place).or_insert((0, op.name())).0 += 1;
            }
        }
    }
    for ((_, at), (parts, name)) in parts {
        match seen.layers.last_mut() {
            Some(run) if run.parts == parts && run.last.checked_add(1) == Some(at) => {
                (run.last, run.last_name) = (at, name);
            }
            _ => seen.layers.push(SeenLayers {
                first: at,
                last: at,
                first_name: name.clone(),
                last_name: name,
                parts,
            }),
        }
    }
    Some(seen)
}
