//! What kernels promise about memory: how far an operator's output may lie over its inputs while it runs.
//!
//! For an operator with one input and one output in question, let `d = address(input) - address(output)` in bytes. The
//! kernel's loops read and write in some order, and a layout is right when no output byte is written over an input byte
//! that is still to be read:
//!
//! ```text
//! d >= input_above_output      right: the output runs behind what the kernel has read
//! -d >= output_above_input     right: the other way around
//! d == view_at                 right, and the operator then leaves both with the same bytes in common
//! ```
//!
//! Distances are exact to the element: 0 where input and output may start at one address, the whole size where the kernel
//! promises nothing.

use arenaplan_schema::tflite::{BuiltinOperator as Op, TensorType};

use crate::graph::{Graph, Operator, TensorId};
use crate::own;
use crate::target::{Library, Target};

mod cmsis_nn;
mod esp_nn;
mod reference;

/// What a kernel promises of one of its inputs and one of its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// Every layout with the input at least this many bytes above the output is right. At most the output's bytes, which
    /// is always right. 0 also stands for a kernel that would allow less than 0.
    pub input_above_output: u64,
    /// Every layout with the output at least this many bytes above the input is right. At most the input's bytes.
    pub output_above_input: u64,
    /// Where the input may start, in bytes above the output's start (below it when negative), so that the operator
    /// copies bytes onto themselves: they then belong to both, for as long as either is in use.
    pub view_at: Option<i64>,
}

impl Overlap {
    /// Nothing is promised: the two share no byte.
    pub fn none(input_bytes: u64, output_bytes: u64) -> Self {
        Self {
            input_above_output: output_bytes,
            output_above_input: input_bytes,
            view_at: None,
        }
    }
}

/// What `library` promises of input `input` and output `output` (positions in the operator's lists) of `op`.
///
/// Where one tensor is several inputs of an operator, the promise is about its use in this position alone; [`between`]
/// brings all positions together. Tensors that are absent, constant, or otherwise not in the arena get [`Overlap::none`].
pub fn overlap(
    library: Library,
    graph: &Graph<'_>,
    op: &Operator<'_>,
    input: usize,
    output: usize,
) -> Overlap {
    let found = match library {
        Library::Reference => reference::overlap(graph, op, input, output),
        Library::CmsisNn(core) => cmsis_nn::overlap(core, graph, op, input, output),
        Library::EspNn(chip) => esp_nn::overlap(chip, graph, op, input, output),
        Library::Arenaplan => own::overlap(graph, op, input, output),
    };
    found.unwrap_or_else(|| {
        let bytes = |t| graph.tensor(t).bytes;
        let from = op.inputs.get(input).copied().flatten().map_or(0, bytes);
        let to = op.outputs.get(output).copied().map_or(0, bytes);
        Overlap::none(from, to)
    })
}

/// What every library that `target` stands for promises of two tensors of `op`, in every position in which `from` is an
/// input and `to` an output: the largest distances, and a view where all have the same one.
///
/// For [`Target::Tflm`], whose libraries are not all known, these are the views that [`every_library_keeps`], and nothing
/// else.
pub fn between(
    target: Target,
    graph: &Graph<'_>,
    op: &Operator<'_>,
    from: TensorId,
    to: TensorId,
) -> Overlap {
    let none = Overlap::none(graph.tensor(from).bytes, graph.tensor(to).bytes);
    let anything = target == Target::Tflm;
    let libraries: &[Library] = match anything {
        true if !every_library_keeps(graph, op) => return none,
        true => &[Library::Reference],
        false => target.libraries(),
    };
    let inputs = (0..op.inputs.len()).filter(|&k| op.inputs[k] == Some(from));
    let outputs = (0..op.outputs.len()).filter(|&k| op.outputs[k] == to);
    let positions = inputs.flat_map(|i| outputs.clone().map(move |o| (i, o)));
    let promises = positions.flat_map(|(i, o)| {
        let all = libraries.iter();
        all.map(move |&library| overlap(library, graph, op, i, o))
    });
    let weakest = promises.reduce(|a, b| Overlap {
        input_above_output: a.input_above_output.max(b.input_above_output),
        output_above_input: a.output_above_input.max(b.output_above_input),
        view_at: a.view_at.filter(|_| a.view_at == b.view_at),
    });
    match weakest {
        Some(weakest) if anything => Overlap {
            view_at: weakest.view_at,
            ..none
        },
        Some(weakest) => weakest,
        None => none,
    }
}

/// Whether every kernel library of TFLM, known or not, runs `op` with the reference kernel, which copies bytes as they
/// are and may copy them onto themselves, or with one that does the same.
///
/// None of the folders `arc_mli`, `ceva`, `cmsis_nn`, `ethos_u` and `xtensa` in `tensorflow/lite/micro/kernels`, nor
/// ESP-NN, has a kernel of its own for these operators, with two exceptions: Xtensa's RESHAPE, which does nothing either
/// when input and output are at one address, and its STRIDED_SLICE of int16, which leaves the order to a closed library.
///
/// CONCATENATION, SQUEEZE and a STRIDED_SLICE call `memcpy` with equal addresses then. C does not promise that this works;
/// compilers rely on it themselves when they assign a structure, so that no `memcpy` can afford to fail.
pub fn every_library_keeps(graph: &Graph<'_>, op: &Operator<'_>) -> bool {
    match op.code {
        Op::RESHAPE
        | Op::SQUEEZE
        | Op::EXPAND_DIMS
        | Op::CONCATENATION
        | Op::PACK
        | Op::SPLIT
        | Op::SPLIT_V
        | Op::UNPACK
        | Op::SLICE => true,
        Op::STRIDED_SLICE => {
            let mut outputs = op.outputs.iter().map(|&t| graph.tensor(t));
            outputs.all(|t| t.ty != TensorType::INT16)
        }
        _ => false,
    }
}
