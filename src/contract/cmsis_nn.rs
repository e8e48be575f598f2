//! What TFLM's CMSIS-NN kernels promise.
//!
//! CMSIS-NN reads in blocks what the reference kernels read element by element, and writes a block when all of it is read.
//! So the reference kernel's distance is right for it too, with the exceptions below. All was swept on Cortex-M3, M4 and
//! M55: every distance, for hundreds of single operators of these classes. Sweeps and sources are of CMSIS-NN 4ab83cc,
//! TFLM's pin of 2026.
//!
//! Of outputs above their inputs nothing is promised for CMSIS-NN's own kernels: MAX_POOL_2D, for one, collects in the
//! output what the reference kernel collects in a register. Operators and types that CMSIS-NN has no kernel for run on
//! TFLM's reference kernels.

use arenaplan_schema::tflite::{BuiltinOperator as Op, TensorType as Type};

use super::{Overlap, reference};
use crate::graph::{Graph, Operator, Tensor};
use crate::target::Core;
use crate::tflm::cmsis_nn::{
    Conv, DEPTHWISE_BLOCK_MVE, Depthwise, RowSplit, conv, depthwise, fully_connected_as_conv,
    is_reversed_conv,
};
use crate::tflm::window::Window;

/// What a kernel promises, compared with the reference kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Row {
    /// It is the reference kernel.
    Reference,
    /// It reads earlier, or as early: the reference kernel's distance is right.
    Within,
    /// A distance of its own for inputs above the output; 0 where it is negative.
    Distance(i128),
    /// The larger of that and the reference kernel's.
    AtLeast(i128),
    /// The reference kernel's, and these bytes more: so many are copied by `memcpy`, which is right on the same bytes and on
    /// bytes apart, and of which nothing is known for others, although it went well wherever it was tried.
    Copying(u64),
    /// No overlap.
    Nothing,
}

impl Row {
    /// The promise, given the reference kernel's, and the sizes of input and output.
    pub(super) fn overlap(self, reference: Overlap, bytes: [u64; 2]) -> Option<Overlap> {
        let [from, to] = bytes;
        let least = |d: i128| u64::try_from(d.max(0)).unwrap_or(u64::MAX).min(to);
        let input_above_output = match self {
            Row::Reference => return Some(reference),
            Row::Nothing => return None,
            Row::Within => reference.input_above_output,
            Row::Distance(d) => least(d),
            Row::AtLeast(d) => least(d).max(reference.input_above_output),
            Row::Copying(block) => reference.input_above_output.saturating_add(block).min(to),
        };
        Some(Overlap {
            input_above_output,
            output_above_input: from,
            view_at: None,
        })
    }
}

/// What the kernel of `op` promises of an input and an output; `None` where that is nothing, as where the reference kernel
/// promises nothing: then shapes do not belong together, or there is no kernel.
pub(super) fn overlap(
    core: Core,
    graph: &Graph<'_>,
    op: &Operator<'_>,
    input: usize,
    output: usize,
) -> Option<Overlap> {
    let reference = reference::overlap(graph, op, input, output)?;
    let from = graph.tensor(op.inputs.get(input).copied().flatten()?);
    let to = graph.tensor(*op.outputs.get(output)?);
    row(core, graph, op, input)?.overlap(reference, [from.bytes, to.bytes])
}

fn row(core: Core, graph: &Graph<'_>, op: &Operator<'_>, input: usize) -> Option<Row> {
    let tensor = |i: usize| op.inputs.get(i).copied().flatten().map(|t| graph.tensor(t));
    let ty = tensor(input)?.ty;
    Some(match op.code {
        // Not looked into; every overlap that was tried went wrong.
        Op::MEAN => Row::Nothing,
        _ if !matches!(ty, Type::INT8 | Type::INT16) => Row::Reference,

        Op::CONV_2D => {
            let w = Window::of(graph, op)?;
            let packed = tensor(1)?.ty == Type::INT4;
            match ty {
                // Group by group, so that all of the input is read again after some of each pixel is written. 16 bits were
                // not looked into.
                _ if w.filter_channels != w.in_channels => Row::Nothing,
                // Two windows are copied, with vectors four, and then their outputs are written.
                Type::INT16 => Row::Within,
                _ => convolution(core, &w, packed),
            }
        }
        Op::DEPTHWISE_CONV_2D => {
            let w = Window::of(graph, op)?;
            let packed = tensor(1)?.ty == Type::INT4;
            match (ty, depthwise(core, &w, packed)) {
                // One by one, as the reference kernel.
                (Type::INT16, _) => Row::Within,
                // Compilers differ in whether this way is taken.
                (_, Depthwise::Conv(_)) => match convolution(core, &w, packed) {
                    Row::Distance(d) => Row::AtLeast(d),
                    other => other,
                },
                // Blocks of channels outermost: the image is read again for each. Right only for distances of whole
                // pixels, which is not a bound.
                (_, Depthwise::Optimised)
                    if core == Core::Mve && w.in_channels > DEPTHWISE_BLOCK_MVE =>
                {
                    Row::Nothing
                }
                // Pixel by pixel, some channels at a time, of which the windows are read before anything is written.
                _ => Row::Within,
            }
        }
        Op::FULLY_CONNECTED => match fully_connected_as_conv(graph, op) {
            Some(p) => pointwise(core, false, p.rows, p.in_channels, p.out_channels),
            // Row by row, a few outputs at a time.
            None => Row::Within,
        },
        // Writes row by row, where the reference kernel collects everything in scratch.
        Op::TRANSPOSE_CONV if ty == Type::INT8 => transpose_conv(core, &Window::of(graph, op)?),
        // The reference kernel.
        Op::TRANSPOSE_CONV => Row::Reference,
        Op::BATCH_MATMUL => batch_matmul(graph, op, input)?,

        // Some channels at a time, or a pixel.
        Op::AVERAGE_POOL_2D => Row::Within,
        // The first pixel of a window is copied to the output before the others are read, which are behind it.
        Op::MAX_POOL_2D => Row::Copying(tail(tensor(input)?, 1)?),
        // Forwards, a few elements at a time; broadcasting is left to the reference kernels.
        Op::ADD | Op::MUL => Row::Within,
        // Loops of their own, which read a broadcast operand again.
        Op::MAXIMUM | Op::MINIMUM if ty == Type::INT8 => {
            let output = graph.tensor(*op.outputs.first()?);
            match output.shape.len() <= 4 && tensor(input)?.shape == output.shape {
                true => Row::Within,
                false => Row::Nothing,
            }
        }
        // Row by row: two passes that only read, and a forward one.
        Op::SOFTMAX => Row::Within,
        // The whole input goes into the state first.
        Op::SVDF => Row::Reference,
        // Each step reads all of its input, then writes its output, where the next one finds it as its state. 16 bits were
        // not looked into.
        Op::UNIDIRECTIONAL_SEQUENCE_LSTM => match ty {
            Type::INT8 => Row::Within,
            _ => Row::Nothing,
        },
        // Row by row forwards, of four dimensions; pixel by pixel where channels are added.
        Op::PAD | Op::PADV2 if ty == Type::INT8 => {
            let (from, to) = (tensor(0)?, graph.tensor(*op.outputs.first()?));
            match from.shape.len() <= 4 {
                true if from.shape.last() == to.shape.last() => Row::Copying(tail(from, 2)?),
                true => Row::Copying(tail(from, 1)?),
                false => Row::Nothing,
            }
        }
        // To and fro.
        Op::TRANSPOSE if ty == Type::INT8 => Row::Nothing,
        _ => Row::Reference,
    })
}

/// Bytes of what lies in the last `dims` dimensions of a tensor.
fn tail(tensor: &Tensor<'_>, dims: usize) -> Option<u64> {
    let size = arenaplan_schema::names::tensor_type_size(tensor.ty)?;
    let last = tensor.shape.iter().rev().take(dims);
    last.map(|&d| u64::try_from(d).ok())
        .try_fold(u64::from(size), |n, d| n.checked_mul(d?))
}

/// CONV_2D of 8 bits, with weights of 8 bits or of 4 (`packed`).
fn convolution(core: Core, w: &Window, packed: bool) -> Row {
    let pixels = w.in_h * w.in_w;
    match conv(core, w) {
        Conv::Pointwise => {
            let pixels = w.batches.saturating_mul(pixels);
            pointwise(core, packed, pixels, w.in_channels, w.out_channels)
        }
        // A matrix product for each output row. The first row of each batch and the last decide, since both positions grow
        // evenly.
        Conv::StridedPointwise => {
            let written = i128::from(w.out_w) * i128::from(w.out_channels);
            let read = i128::from(w.in_w) * i128::from(w.in_channels);
            let rows = |batch: u64, y: u64| {
                let before = i128::from(batch * w.out_h + y + 1);
                let from = i128::from(batch * w.in_h + y * w.stride_h);
                before * written - from * read
            };
            let corners = [
                (0, 0),
                (0, w.out_h - 1),
                (w.batches - 1, 0),
                (w.batches - 1, w.out_h - 1),
            ];
            largest(corners.map(|(batch, y)| rows(batch, y)))
        }
        // Outputs in the padding read the input one by one; not worked out.
        Conv::Row(_) if packed => Row::Nothing,
        Conv::Row(split) => row_convolution(w, &split),
        Conv::Im2col => Row::Within,
    }
}

fn largest(distances: impl IntoIterator<Item = i128>) -> Row {
    Row::Distance(distances.into_iter().fold(0, i128::max))
}

/// A matrix product of input pixels: pairs of output channels outermost, with vectors blocks of four pixels outermost.
fn pointwise(core: Core, packed: bool, pixels: u64, from: u64, to: u64) -> Row {
    let (n, ci, co) = (i128::from(pixels), i128::from(from), i128::from(to));
    match core {
        Core::Mve => largest(blocks(4, n, ci, co)),
        // Four channels, of which the last ones come one by one.
        _ if packed => Row::Nothing,
        // All channels at once, two pixels at a time.
        _ if co <= 2 => largest([(n - 1) / 2 * 2 * (co - ci)]),
        // All but the last channels of all pixels are written before the first pixel is read the last time.
        _ => Row::Distance(n * co - if co % 2 == 0 { 2 } else { 1 }),
    }
}

/// Blocks of `size` pixels, each read again for each output channel: all of its outputs but the last may be written
/// before its first byte is read the last time. Evenly spaced, so that the first, the last and the last full one decide.
pub(super) fn blocks(size: i128, n: i128, ci: i128, co: i128) -> [i128; 3] {
    let last = (n - 1).max(0) / size;
    [0, (last - 1).max(0), last].map(|b| ((b + 1) * size).min(n) * co - b * size * ci)
}

/// A window that slides along one row: padded outputs from scratch, the others straight from the input, four at a time.
fn row_convolution(w: &Window, split: &RowSplit) -> Row {
    let [ci, co, stride, kernel, size, out] = [
        w.in_channels,
        w.out_channels,
        w.stride_w,
        w.kernel_w,
        w.in_w,
        w.out_w,
    ]
    .map(i128::from);
    let [left, middle, right, pad] =
        [split.left, split.middle, split.right, w.pad_left].map(i128::from);
    let total = i128::from(split.total_pad);
    // First columns that the middle and the outputs on the right read.
    let (start, end) = (stride * left - pad, stride * (left + middle) - pad);
    // With columns left over it fails; it copies fixed numbers of columns, which must be there.
    let fits = total >= 0
        && 2 * pad + total % 2 == total
        && start >= 0
        && (left == 0 || kernel <= size)
        && (middle == 0 || end - stride + kernel <= size)
        && (right == 0 || end + kernel - 1 <= size);
    if !fits {
        return Row::Nothing;
    }
    // Within one batch: the middle is read after the left is written. What the right reads is behind what the last of the
    // middle reads, and is read after the same writes.
    let before = left * co - start * ci;
    let within = match middle {
        0 => before.max(0),
        _ => blocks(4, middle, stride * ci, co)
            .into_iter()
            .fold(0, |most, d| most.max(before + d)),
    };
    let later = i128::from(w.batches - 1) * (out * co - size * ci);
    largest([within, within + later])
}

/// TRANSPOSE_CONV of 8 bits: a convolution of the input spread out, or row by row of the input.
fn transpose_conv(core: Core, w: &Window) -> Row {
    let [n, h, wide, ci] = [w.batches, w.in_h, w.in_w, w.in_channels].map(i128::from);
    let [oh, ow, co] = [w.out_h, w.out_w, w.out_channels].map(i128::from);
    let (stride, pad) = (i128::from(w.stride_h), i128::from(w.pad_top));
    let later = (n - 1) * (oh * ow * co - h * wide * ci);
    let within = match is_reversed_conv(w) {
        true => spread_convolution(core, w),
        // Input row j is read whole, then the output rows are written that no later one adds to. Versions differ where
        // the padding is no multiple of the stride: some then leave rows out.
        false if pad % stride != 0 || h * stride - pad > oh => None,
        false => {
            let after = |j: i128| ((j + 1) * stride - pad).max(0) * ow * co - (j + 1) * wide * ci;
            // Convex in j: the first or the last row that is followed by another.
            Some(if h > 1 { after(0).max(after(h - 2)) } else { 0 })
        }
    };
    match within {
        Some(within) => largest([within, within + later, later]),
        None => Row::Nothing,
    }
}

/// The distance of the convolution that reads the input with zeros between its rows and columns: two windows are copied,
/// with vectors four, then their outputs are written; what is left over at the end of a batch is written then.
fn spread_convolution(core: Core, w: &Window) -> Option<i128> {
    /// Output pixels that are looked at one by one.
    const MOST: u64 = 1 << 22;
    // The kernel counts in 16 bits, and pads what the filter reaches over.
    let narrow = [
        w.in_h * w.stride_h,
        w.in_w * w.stride_w,
        w.out_h,
        w.out_w,
        w.kernel_h,
        w.kernel_w,
    ];
    if narrow.iter().any(|&n| n > u64::from(u16::MAX)) || w.out_h * w.out_w > MOST {
        return None;
    }
    let before_h = (w.kernel_h - 1).checked_sub(w.pad_top)?;
    let before_w = (w.kernel_w - 1).checked_sub(w.pad_left)?;
    // The first row or column that the window at `at` reads, if there is one.
    let first = |at: u64, before: u64, kernel: u64, stride: u64, size: u64| {
        let from = at.saturating_sub(before).div_ceil(stride);
        (from < size && from * stride < at + kernel - before).then_some(from)
    };
    let rows: Vec<_> = (0..w.out_h)
        .map(|y| first(y, before_h, w.kernel_h, w.stride_h, w.in_h))
        .collect();
    let columns: Vec<_> = (0..w.out_w)
        .map(|x| first(x, before_w, w.kernel_w, w.stride_w, w.in_w))
        .collect();
    let block = if core == Core::Mve { 4 } else { 2 };
    let mut found = 0;
    // The lowest byte that this pixel or a later one reads, from the last pixel backwards.
    let mut lowest: Option<u64> = None;
    for (y, row) in rows.iter().enumerate().rev() {
        for (x, column) in columns.iter().enumerate().rev() {
            if let (Some(row), Some(column)) = (row, column) {
                let at = (row * w.in_w + column) * w.in_channels;
                lowest = Some(lowest.map_or(at, |l| l.min(at)));
            }
            let pixel = y as u64 * w.out_w + x as u64;
            if let Some(lowest) = lowest.filter(|_| pixel.is_multiple_of(block)) {
                found = found.max(i128::from(pixel * w.out_channels) - i128::from(lowest));
            }
        }
    }
    Some(found)
}

/// BATCH_MATMUL: each row of the left side, for a few rows of the right side at a time. Sides that are not stored so are
/// transposed into memory of their own first, by TFLM.
fn batch_matmul(graph: &Graph<'_>, op: &Operator<'_>, input: usize) -> Option<Row> {
    let o = op.table.builtin_options_as_batch_mat_mul_options();
    let (adj_x, adj_y) = o.map_or((false, false), |o| (o.adj_x(), o.adj_y()));
    let (side, output) = (
        graph.tensor(op.inputs.get(input).copied().flatten()?),
        graph.tensor(*op.outputs.first()?),
    );
    Some(match input {
        0 if adj_x => Row::Reference,
        1 if !adj_y => Row::Reference,
        // Read again for each row of the left side.
        1 => Row::Nothing,
        // A left side that is spread over several right ones is read again.
        _ => {
            let length = |shape: &[i32]| u64::try_from(*shape.last()?).ok();
            let (from, to) = (length(&side.shape)?, length(&output.shape)?);
            let rows = side.elements().checked_div(from)?;
            if Some(rows) != output.elements().checked_div(to) {
                return Some(Row::Nothing);
            }
            // The last row, or the first, before whose end all but one output is written.
            let (rows, from, to) = (i128::from(rows), i128::from(from), i128::from(to));
            let size = i128::from(side.bytes.checked_div(side.elements())?);
            let row = |i: i128| (i * (to - from) + to - 1) * size;
            largest([row(0), row(rows - 1)])
        }
    })
}
