//! A model cut in two, so that one half goes on with what the other has left.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test binary uses a part of it"
)]

use arenaplan_schema::flatbuffers::{Table, VOffsetT};
use arenaplan_schema::tflite::{SubGraph, Tensor};
use arenaplan_schema::verify;

/// Both halves of a model with one subgraph, one input and one output: the operators before `operator`, and those from it on.
/// The second half's input is the first half's output. `None` where more than one tensor passes the cut.
///
/// Nothing is written anew: the lists of operators get shorter, and tensors that a half has no use for lose their bytes.
pub fn split(model: &[u8], operator: usize) -> Option<[Vec<u8>; 2]> {
    let root = verify::root(model).ok()?;
    let subgraph = root.subgraphs()?.get(0);
    let operators = subgraph.operators()?;
    let tensors = subgraph.tensors()?;
    let uses = |range: std::ops::Range<usize>, written: bool| -> Vec<i32> {
        let lists = range.filter_map(|k| match written {
            true => operators.get(k).outputs(),
            false => operators.get(k).inputs(),
        });
        lists.flat_map(|list| list.iter()).collect()
    };
    let count = operators.len();
    if !(1..count).contains(&operator) {
        return None;
    }
    let input = subgraph.inputs()?.get(0);
    let mut before = uses(0..operator, true);
    before.push(input);
    let mut after = uses(operator..count, false);
    after.extend(subgraph.outputs()?.iter());
    let mut passing: Vec<i32> = before.into_iter().filter(|t| after.contains(t)).collect();
    passing.sort_unstable();
    passing.dedup();
    let &[cut] = &passing[..] else { return None };

    let field = |table: Table<'_>, name: VOffsetT| {
        let slot = usize::from(table.vtable().get(name));
        (slot != 0).then_some(table.loc() + slot)
    };
    let target = |bytes: &[u8], at: usize| {
        at + u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
    };
    let put = |bytes: &mut Vec<u8>, at: usize, value: u32| {
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    };
    let halves = [0..operator, operator..count].map(|range| {
        let mut bytes = model.to_vec();
        let list = field(subgraph._tab, SubGraph::VT_OPERATORS)?;
        let first = target(&bytes, list) + 4 * range.start;
        // What was the element before the first becomes the length.
        put(&mut bytes, first, range.len() as u32);
        put(&mut bytes, list, (first - list) as u32);
        let port = match range.start {
            0 => SubGraph::VT_OUTPUTS,
            _ => SubGraph::VT_INPUTS,
        };
        let port = target(&bytes, field(subgraph._tab, port)?) + 4;
        put(&mut bytes, port, cut as u32);
        let mut used = uses(range.clone(), true);
        used.extend(uses(range.clone(), false));
        used.extend([cut, input].iter().filter(|_| range.start == 0));
        for unused in (0..tensors.len()).filter(|&t| !used.contains(&(t as i32))) {
            let table = tensors.get(unused)._tab;
            let data = root
                .buffers()?
                .get(tensors.get(unused).buffer() as usize)
                .data();
            if let Some(shape) = field(table, Tensor::VT_SHAPE) {
                let shape = target(&bytes, shape);
                let dimensions = u32::from_le_bytes(bytes[shape..shape + 4].try_into().ok()?);
                if dimensions > 0 && data.is_none_or(|d| d.is_empty()) {
                    put(&mut bytes, shape + 4, 0);
                }
            }
        }
        Some(bytes)
    });
    let [first, second] = halves;
    Some([first?, second?])
}
