//! What is there at a moment, in words.

use super::{Closeness, Moment, Present, Role};
use crate::contract::Overlap;
use crate::graph::{Graph, TensorId};
use crate::target::Target;
use crate::text::{shown, thousands};

/// A tensor by its number.
pub(crate) fn name(graph: &Graph<'_>, tensor: TensorId) -> String {
    let tensor = graph.tensor(tensor);
    match tensor.subgraph {
        0 => format!("tensor {}", tensor.index),
        subgraph => format!("tensor {subgraph}:{}", tensor.index),
    }
}

/// What is there at a moment.
pub(crate) fn present(graph: &Graph<'_>, kernels: Target, moment: &Moment) -> String {
    let mut text = String::new();
    let mut line = |sign: &str, bytes: u64, what: &str| {
        text.push_str(&format!("  {sign}{:>12}  {what}\n", thousands(bytes)));
    };
    for tensor in &moment.tensors {
        line(" ", tensor.bytes, &role(graph, kernels, tensor));
    }
    for (operator, bytes) in &moment.scratch {
        line(
            " ",
            *bytes,
            &format!("scratch memory of {}", shown(operator)),
        );
    }
    if moment.shared_bytes > 0 {
        line("-", moment.shared_bytes, "in common");
    }
    text
}

fn role(graph: &Graph<'_>, kernels: Target, present: &Present) -> String {
    let label = graph.tensor(present.tensor).label();
    match &present.role {
        Role::LastRead => format!("{label}, read for the last time"),
        Role::Needed(Some(reader)) => format!("{label}, needed by {}", shown(reader)),
        Role::Needed(None) => format!("{label}, needed to the end"),
        Role::Held(operator) => format!("{label}, held by {}, which is running", shown(operator)),
        Role::Written(inputs) => {
            let reasons: Vec<String> = inputs
                .iter()
                .map(|&(input, closeness)| {
                    reason(graph, kernels, (input, present.tensor), closeness)
                })
                .collect();
            match reasons.is_empty() {
                true => format!("{label}, written"),
                false => format!("{label}, written; {}", reasons.join("; ")),
            }
        }
    }
}

/// Why an output is not nearer to an input.
fn reason(
    graph: &Graph<'_>,
    kernels: Target,
    (input, output): (TensorId, TensorId),
    closeness: Closeness,
) -> String {
    let shown = name(graph, input);
    match closeness {
        Closeness::Merged => format!("one block with {shown}"),
        Closeness::Nothing if kernels == Target::Tflm => {
            format!("not over {shown}, which not every kernel allows")
        }
        Closeness::Nothing => format!("not over {shown}, which the kernel does not allow"),
        Closeness::NeededLater => format!("not over {shown}, which is needed later"),
        Closeness::Repeated => {
            format!("not over {shown}: the operator runs again, or another one writes")
        }
        Closeness::Apart(promise) => apart(graph, promise, input, output),
    }
}

/// The distances that a kernel keeps, those that allow something.
fn apart(graph: &Graph<'_>, promise: Overlap, input: TensorId, output: TensorId) -> String {
    let mut sides = Vec::new();
    if promise.input_above_output < graph.tensor(output).bytes {
        sides.push(format!(
            "{} bytes below",
            thousands(promise.input_above_output)
        ));
    }
    if promise.output_above_input < graph.tensor(input).bytes {
        sides.push(format!(
            "{} bytes above",
            thousands(promise.output_above_input)
        ));
    }
    format!(
        "at least {} {}, or the kernel overwrites what it still reads",
        sides.join(" or "),
        name(graph, input)
    )
}
