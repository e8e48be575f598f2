//! Prepared data: the factors that the bundled runtime would compute on the device, computed here and stored with the model.
//!
//! The layout of the entry, and what a device does with it, is in [`arenaplan_runtime::prepared`]; the arithmetic is the
//! runtime's, which is asked for the factors of each operator.

use arenaplan_runtime as runtime;
use arenaplan_runtime::fixed::Multiplier;
use arenaplan_schema::view::{self, PREPARED_NAME};

use crate::execute::Memory;
use crate::graph::{Graph, OpId, Operator};
use crate::own;

/// Which operators find their factors in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prepared<'a> {
    /// None.
    Nothing,
    /// Those that have them in this entry, whose operators are in the graph's order.
    Entry(&'a [u8]),
    /// All that can.
    All,
}

impl<'a> Prepared<'a> {
    /// What the graph's file has.
    pub(crate) fn stored(graph: &Graph<'a>) -> Self {
        stored(graph).map_or(Prepared::Nothing, Prepared::Entry)
    }

    /// Whether `op` finds its factors in the file.
    pub(crate) fn has(self, graph: &Graph<'_>, op: &Operator<'_>) -> bool {
        match self {
            Prepared::Nothing => false,
            Prepared::Entry(entry) => channels_in(entry, graph, op) != 0,
            Prepared::All => channels(graph, op, &mut |_, _| {}) != 0,
        }
    }
}

/// Shows the factors to store for `op`, and returns how many they are.
fn channels(graph: &Graph<'_>, op: &Operator<'_>, each: &mut dyn FnMut(usize, Multiplier)) -> u16 {
    let place = own::place(graph, op);
    let found = place.and_then(|place| {
        let bytes = graph.model.bytes();
        runtime::prepared::factors_of(bytes, runtime::ops::ALL, place, each).ok()
    });
    // What the layout cannot count is computed on the device.
    found.map_or(0, |found| u16::try_from(found).unwrap_or(0))
}

/// The entry for the operators in the order of `graph`; `None` where no operator has data.
pub(crate) fn entry(graph: &Graph<'_>) -> Option<Vec<u8>> {
    let (mut counts, mut tables) = (Vec::new(), Vec::new());
    for op in graph.operators() {
        let (mut multipliers, mut shifts) = (Vec::new(), Vec::new());
        let count = channels(graph, op, &mut |_, factor| {
            let (multiplier, shift) = runtime::prepared::row(factor);
            multipliers.extend(multiplier.to_le_bytes());
            shifts.push(shift as u8);
        });
        counts.push(count);
        if count != 0 {
            tables.append(&mut multipliers);
            tables.append(&mut shifts);
            pad(&mut tables);
        }
    }
    if tables.is_empty() {
        return None;
    }
    let operators = u32::try_from(counts.len()).ok()?;
    let mut entry = Vec::new();
    entry.extend(runtime::prepared::VERSION.to_le_bytes());
    entry.extend(operators.to_le_bytes());
    entry.extend(counts.iter().flat_map(|count| count.to_le_bytes()));
    pad(&mut entry);
    entry.append(&mut tables);
    Some(entry)
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// The entry in the graph's file.
pub(crate) fn stored<'a>(graph: &Graph<'a>) -> Option<&'a [u8]> {
    let model = view::Model::new(graph.model.bytes()).ok()?;
    model.metadata_bytes(PREPARED_NAME).ok()?
}

/// Bytes of the entry in a file; 0 without one.
pub(crate) fn stored_bytes(file: &[u8]) -> usize {
    let model = view::Model::new(file);
    let entry = model.and_then(|model| model.metadata_bytes(PREPARED_NAME));
    entry.ok().flatten().map_or(0, <[u8]>::len)
}

/// Channels of `op` in an entry.
fn channels_in(entry: &[u8], graph: &Graph<'_>, op: &Operator<'_>) -> u16 {
    let before = graph.subgraphs.iter().take(op.id.subgraph as usize);
    let before: usize = before.map(|s| s.operators.len()).sum();
    let OpId { index, .. } = op.id;
    let at = 8 + 2 * (before + index as usize);
    let count = entry.get(at..).and_then(<[u8]>::first_chunk);
    count.map_or(0, |count| u16::from_le_bytes(*count))
}

/// Why the entry in the graph's file is wrong, if there is one and it is.
pub(crate) fn fault(graph: &Graph<'_>) -> Option<String> {
    stored(graph)?;
    let file = Memory::holding(graph.model.bytes());
    let checked = runtime::prepared::check(file.as_slice(), runtime::ops::ALL);
    checked.err().map(|error| error.to_string())
}
