//! What the ESP-NN kernels of `esp-tflite-micro` promise.
//!
//! They read a pixel, a block of channels or the whole input before they write, so that the reference kernel's distance is
//! right for them too, with the exceptions below. This is from their sources (ESP-NN d45b843, esp-tflite-micro 99f49e1,
//! 2026), and was not run. Of outputs above their inputs nothing is promised for ESP-NN's own kernels.
//!
//! Vector instructions of the ESP32-S3 ignore the low bits of addresses: tensors must start at multiples of 16, as TFLM
//! and this tool place them.

use arenaplan_schema::tflite::{BuiltinOperator as Op, TensorType as Type};

use super::cmsis_nn::{Row, blocks};
use super::{Overlap, reference};
use crate::graph::{Graph, Operator};
use crate::target::Chip;
use crate::tflm::window::Window;

/// What the kernel of `op` promises of an input and an output; `None` where that is nothing, as where the reference kernel
/// promises nothing.
pub(super) fn overlap(
    chip: Chip,
    graph: &Graph<'_>,
    op: &Operator<'_>,
    input: usize,
    output: usize,
) -> Option<Overlap> {
    let reference = reference::overlap(graph, op, input, output)?;
    let from = graph.tensor(op.inputs.get(input).copied().flatten()?);
    let to = graph.tensor(*op.outputs.get(output)?);
    row(chip, graph, op)?.overlap(reference, [from.bytes, to.bytes])
}

fn row(chip: Chip, graph: &Graph<'_>, op: &Operator<'_>) -> Option<Row> {
    let ty = |i: usize| {
        op.inputs
            .get(i)
            .copied()
            .flatten()
            .map(|t| graph.tensor(t).ty)
    };
    if ty(0)? != Type::INT8 {
        return Some(Row::Reference);
    }
    // Weights of 4 bits are unpacked for the reference kernels.
    let packed = || Some(ty(1)? == Type::INT4);
    Some(match op.code {
        Op::CONV_2D if !packed()? => {
            let w = Window::of(graph, op)?;
            match chip {
                _ if !w.is_dense() => Row::Reference,
                // Grouped: not all chips look whether it is.
                _ if w.filter_channels != w.in_channels => Row::Nothing,
                // Channels that do not fill a block of eight are read again from the input for each output channel of a
                // block of eight pixels.
                Chip::S3 if is_pointwise(&w) && !w.in_channels.is_multiple_of(8) => {
                    let [n, ci, co] =
                        [w.in_h * w.in_w, w.in_channels, w.out_channels].map(i128::from);
                    let batch = blocks(8, n, ci, co).into_iter().fold(0, i128::max);
                    let later = i128::from(w.batches - 1) * n * (co - ci);
                    Row::AtLeast(batch.max(batch + later))
                }
                _ => Row::Within,
            }
        }
        // Pixel by pixel, some channels at a time, or after the whole input, or the rows of a window, are copied.
        Op::DEPTHWISE_CONV_2D if !packed()? => Row::Within,
        // Output by output.
        Op::FULLY_CONNECTED if !packed()? => Row::Within,
        // Some channels at a time, collected outside the output.
        Op::AVERAGE_POOL_2D | Op::MAX_POOL_2D => Row::Within,
        // Forwards; broadcasting is left to the reference kernels.
        Op::ADD | Op::MUL => Row::Within,
        Op::SOFTMAX => {
            let output = graph.tensor(*op.outputs.first()?);
            match (output.ty, output.shape.len()) {
                // Row by row, the last pass forwards.
                (Type::INT8, 2) => Row::Within,
                // The kernel writes behind its scratch.
                (Type::INT8, _) => Row::Nothing,
                _ => Row::Reference,
            }
        }
        _ => Row::Reference,
    })
}

fn is_pointwise(w: &Window) -> bool {
    w.kernel_h == 1 && w.kernel_w == 1 && !w.is_padded() && w.is_unit_stride()
}
