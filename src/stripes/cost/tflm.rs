//! Instructions of TFLM's kernels on a Cortex-M4: a few rates, fitted to whole models.
//!
//! Seven models with counted instructions (GCC 12, `-O2`) come out within 5 % with CMSIS-NN, and within 3 % with the reference
//! kernels.

use arenaplan_schema::tflite::{BuiltinOperator as Op, TensorType as Type};

use super::{Machine, Parts, Windows, elements, input, rows, signed};
use crate::graph::{Graph, Operator};

/// Hundredths of instructions.
struct Rates {
    /// A MAC of a convolution, of a depthwise convolution, of FULLY_CONNECTED.
    mac: i64,
    depthwise_mac: i64,
    connected_mac: i64,
    /// A tap of a convolution's window, for each output.
    window_tap: i64,
    /// An output of a convolution, of a depthwise convolution.
    output: i64,
    depthwise_output: i64,
    /// An element of a pooling window.
    tap: i64,
    /// An element of an operator that computes each by itself.
    element: i64,
    /// An element that is compared, or moved.
    simple: i64,
    /// A call.
    call: i64,
    /// A pixel that SLICE moves, and a byte of SLICE and of CONCATENATION along rows.
    pixel: i64,
    byte: i64,
}

const CMSIS_NN: Rates = Rates {
    mac: 223,
    depthwise_mac: 425,
    connected_mac: 219,
    window_tap: 0,
    output: 1_760,
    depthwise_output: 2_470,
    tap: 330,
    element: 1_600,
    simple: 660,
    call: 40_000,
    pixel: 2_640,
    byte: 55,
};

const REFERENCE: Rates = Rates {
    mac: 634,
    depthwise_mac: 2_710,
    connected_mac: 737,
    window_tap: 3_047,
    output: 10_480,
    depthwise_output: 13_640,
    tap: 1_560,
    element: 4_000,
    simple: 1_500,
    call: 40_000,
    pixel: 2_640,
    byte: 55,
};

fn rates(machine: Machine) -> &'static Rates {
    match machine {
        Machine::Reference => &REFERENCE,
        _ => &CMSIS_NN,
    }
}

pub(super) fn slice(machine: Machine, pixels: i64, bytes: i64) -> i64 {
    let rates = rates(machine);
    rates
        .call
        .saturating_add(pixels.saturating_mul(rates.pixel))
        .saturating_add(bytes.saturating_mul(rates.byte))
}

pub(super) fn concatenation(machine: Machine, parts: i64, bytes: i64) -> i64 {
    let rates = rates(machine);
    // Each part is a block, of which the kernel asks the tensor's place.
    rates
        .call
        .saturating_add(parts.saturating_mul(rates.pixel))
        .saturating_add(bytes.saturating_mul(rates.byte))
}

pub(super) fn of(machine: Machine, graph: &Graph<'_>, op: &Operator<'_>) -> Parts {
    let Some(output) = op.outputs.first().map(|&t| graph.tensor(t)) else {
        return Parts::default();
    };
    let first = input(graph, op, 0);
    // CMSIS-NN has no kernels for floats.
    let rates = match first {
        Some(tensor) if tensor.ty == Type::FLOAT32 => &REFERENCE,
        _ => rates(machine),
    };
    let count = elements(output);
    let windows = Windows::of(graph, op);
    let of_all = match (op.code, &windows) {
        (Op::CONV_2D | Op::DEPTHWISE_CONV_2D, Some(w)) => {
            let taps = w.taps();
            let output = match op.code {
                Op::CONV_2D => {
                    let tap = w.filter_depth.saturating_mul(rates.mac);
                    let tap = tap.saturating_add(rates.window_tap);
                    rates.output.saturating_add(taps.saturating_mul(tap))
                }
                _ => rates
                    .depthwise_output
                    .saturating_add(taps.saturating_mul(rates.depthwise_mac)),
            };
            count.saturating_mul(output)
        }
        (_, Some(w)) => count.saturating_mul(w.taps().saturating_mul(rates.tap)),
        (Op::FULLY_CONNECTED, _) => {
            let depth = input(graph, op, 1).map_or(0, |weights| weights.dim(-1));
            count
                .saturating_mul(depth)
                .saturating_mul(rates.connected_mac)
        }
        (Op::TRANSPOSE_CONV, _) => {
            let weights = input(graph, op, 1).map_or(0, elements);
            let image = input(graph, op, 2);
            let pixels = image.map_or(0, |t| elements(t) / t.dim(-1).max(1));
            pixels.saturating_mul(weights).saturating_mul(rates.mac)
        }
        (Op::SLICE, _) => {
            let pixels = count / output.dim(-1).max(1);
            let bytes = signed(output.bytes).saturating_mul(rates.byte);
            pixels.saturating_mul(rates.pixel).saturating_add(bytes)
        }
        (Op::RESHAPE | Op::SQUEEZE | Op::EXPAND_DIMS, _) => {
            signed(output.bytes).saturating_mul(rates.byte)
        }
        (
            Op::RELU
            | Op::RELU6
            | Op::MAXIMUM
            | Op::MINIMUM
            | Op::PAD
            | Op::PADV2
            | Op::CONCATENATION
            | Op::TRANSPOSE
            | Op::PACK
            | Op::UNPACK
            | Op::SPLIT
            | Op::SPLIT_V,
            _,
        ) => count.saturating_mul(rates.simple),
        (Op::MEAN | Op::SUM | Op::REDUCE_MAX | Op::REDUCE_MIN, _) => {
            first.map_or(0, elements).saturating_mul(rates.simple)
        }
        _ => count.saturating_mul(rates.element),
    };
    Parts::spread(rates.call, of_all, rows(output))
}
