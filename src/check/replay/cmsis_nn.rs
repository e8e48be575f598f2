//! CMSIS-NN's kernels, where TFLM calls them (`micro/kernels/cmsis_nn/*.cc`).
//!
//! Where a kernel only reads in larger blocks than the reference kernel before it writes, it is run as the reference kernel
//! is: what is right there is right here. Those below do something else, as compiled by GCC or LLVM.

use arenaplan_schema::tflite::{BuiltinOperator as Op, TensorType as Type};

use super::window::{Convolution, Depthwise, Frame, Window, pool_frame};
use super::{Kernel, element, image, moves, product, rows, shape};
use crate::target::Core;

/// Whether there is a kernel of its own for this operator.
pub(super) fn has(code: Op) -> bool {
    matches!(
        code,
        Op::CONV_2D
            | Op::DEPTHWISE_CONV_2D
            | Op::FULLY_CONNECTED
            | Op::MAX_POOL_2D
            | Op::MAXIMUM
            | Op::MINIMUM
            | Op::TRANSPOSE_CONV
            | Op::BATCH_MATMUL
            | Op::PAD
            | Op::PADV2
            | Op::TRANSPOSE
    )
}

pub(super) fn run(k: &mut Kernel<'_, '_, '_>, core: Core) -> Option<()> {
    let data = if k.op.code == Op::TRANSPOSE_CONV {
        2
    } else {
        0
    };
    let ty = k.input(data)?.ty;
    match (k.op.code, ty) {
        (Op::CONV_2D, Type::INT8 | Type::INT16) => convolution(k, core, ty),
        (Op::DEPTHWISE_CONV_2D, Type::INT8) => depthwise(k, core),
        (Op::FULLY_CONNECTED, Type::INT8) => fully_connected(k, core),
        (Op::MAX_POOL_2D, Type::INT8 | Type::INT16) => max_pool(k),
        (Op::MAXIMUM | Op::MINIMUM, Type::INT8) => larger_or_smaller(k),
        (Op::TRANSPOSE_CONV, Type::INT8) => transpose_convolution(k, core),
        (Op::BATCH_MATMUL, Type::INT8 | Type::INT16) => rows::batch_matmul(k, false),
        (Op::PAD | Op::PADV2, Type::INT8) => pad(k),
        // Several ways through the input.
        (Op::TRANSPOSE, Type::INT8) => k.write_all(0),
        _ => super::reference(k),
    }
}

/// Pixels whose windows are copied together (`arm_convolve_s8` and its like).
fn block(core: Core) -> u64 {
    match core {
        Core::Plain | Core::Dsp => 2,
        Core::Mve => 4,
    }
}

/// arm_convolve_wrapper_s8.c, _s4.c, _s16.c
fn convolution(k: &mut Kernel<'_, '_, '_>, core: Core, ty: Type) -> Option<()> {
    let conv = Convolution::read(k)?;
    let is_packed = k.input(1)?.ty == Type::INT4;
    if ty == Type::INT8 && conv.is_pointwise() {
        if is_packed && core != Core::Mve {
            // Four output channels at a time, in two passes over the input.
            k.streamed[0] = false;
            return k.write_all(0);
        }
        return pointwise(k, core, &conv, is_packed);
    }
    let frame = &conv.frame;
    let is_row = ty == Type::INT8
        && frame.height == 1
        && conv.vertical.size == 1
        && conv.horizontal.dilation == 1
        && conv.groups == 1
        && (conv.horizontal.stride * frame.ci).is_multiple_of(4);
    if is_row && core == Core::Mve {
        return row(k, frame, conv.horizontal, is_packed);
    }
    let (read, written) = (frame.ci / conv.groups, frame.co / conv.groups);
    let slices: Vec<_> = (0..conv.groups)
        .map(|g| [(g * read, (g + 1) * read), (g * written, (g + 1) * written)])
        .collect();
    frame.in_blocks(k, block(core), &slices)
}

/// arm_convolve_1x1_s8_fast.c with stride 1, where all pixels are rows of one matrix; else arm_convolve_1x1_s8.c, where
/// those of each output row are.
fn pointwise(
    k: &mut Kernel<'_, '_, '_>,
    core: Core,
    conv: &Convolution,
    is_packed: bool,
) -> Option<()> {
    let frame = &conv.frame;
    let mut matrix = Matrix {
        rows: frame.batches * frame.pixels(),
        from: 0,
        step: frame.ci,
        depth: frame.ci,
        to: 0,
        columns: frame.co,
        is_packed,
    };
    if conv.vertical.stride == 1 && conv.horizontal.stride == 1 {
        return matrix.multiply(k, core);
    }
    let (columns, height) = (
        frame.row_pixels(),
        frame.pixels() / frame.row_pixels().max(1),
    );
    matrix.rows = columns;
    matrix.step = frame.ci * conv.horizontal.stride;
    for batch in 0..frame.batches {
        for y in 0..height {
            let row = batch * frame.height + y * conv.vertical.stride;
            matrix.from = row * frame.width * frame.ci;
            matrix.to = (batch * height + y) * columns * frame.co;
            matrix.multiply(k, core)?;
        }
    }
    Some(())
}

/// The left operand of a product of matrices of bytes, row by row, and where the product goes.
struct Matrix {
    rows: u64,
    /// Where the first row starts, how far it is to the next, and how long it is.
    from: u64,
    step: u64,
    depth: u64,
    /// Where the product starts.
    to: u64,
    columns: u64,
    /// The right operand has four bits for each element.
    is_packed: bool,
}

impl Matrix {
    /// arm_nn_mat_mult_nt_t_s8.c, and _s4.c with vectors.
    fn multiply(&self, k: &mut Kernel<'_, '_, '_>, core: Core) -> Option<()> {
        let Self { rows, columns, .. } = *self;
        if core == Core::Mve {
            // Four rows at a time, column by column. Then s8 goes row by row, and s4 takes what is left at once.
            let mut row = 0;
            while row < rows {
                let left = rows - row;
                let count = match left {
                    4.. => 4,
                    _ if self.is_packed => left,
                    _ => 1,
                };
                // A single row is written when four columns are done, and at its end.
                let last = match count {
                    1 => columns.checked_sub(1)? / 4 * 4,
                    _ => columns.checked_sub(1)?,
                };
                for r in row..row + count {
                    self.write(k, r, 0, last)?;
                }
                for r in row..row + count {
                    self.read(k, r)?;
                }
                for r in row..row + count {
                    self.write(k, r, last, columns)?;
                }
                row += count;
            }
            return Some(());
        }
        // Two columns at a time, and for each of them all rows, two at a time; an odd column alone, row by row.
        let (last, together) = match columns % 2 {
            0 => (columns.checked_sub(2)?, 2),
            _ => (columns - 1, 1),
        };
        for row in 0..rows {
            self.write(k, row, 0, last)?;
        }
        let mut row = 0;
        while row < rows {
            let end = rows.min(row + together);
            for r in row..end {
                self.read(k, r)?;
            }
            for r in row..end {
                self.write(k, r, last, columns)?;
            }
            row = end;
        }
        Some(())
    }

    fn read(&self, k: &mut Kernel<'_, '_, '_>, row: u64) -> Option<()> {
        let start = self.from + row * self.step;
        k.read(0, start, start + self.depth)
    }

    fn write(&self, k: &mut Kernel<'_, '_, '_>, row: u64, first: u64, end: u64) -> Option<()> {
        let start = self.to + row * self.columns;
        k.write(0, start + first, start + end)
    }
}

/// arm_convolve_1_x_n_s8.c and _s4.c with vectors: a row of pixels, the windows that reach over an end apart. s8 copies what
/// these need; s4 reads it pixel by pixel.
fn row(k: &mut Kernel<'_, '_, '_>, frame: &Frame, window: Window, is_packed: bool) -> Option<()> {
    let (outputs, pad, stride) = (
        frame.row_pixels() as i64,
        window.pad as i64,
        window.stride as i64,
    );
    if frame.pixels() != frame.row_pixels() {
        return None;
    }
    let (size, inputs) = (window.size as i64, frame.width as i64);
    let total = (outputs - 1) * stride + size - inputs;
    let uneven = total % 2;
    // Then the kernel gives up, and the output is never written.
    if pad * 2 + uneven != total {
        return None;
    }
    let windows = |pad: i64| match pad {
        0 => 0,
        _ => ((pad + stride - 1) / stride).max(1),
    };
    let (left, right) = (windows(pad), windows(pad + uneven));
    let middle = (outputs - left - right).max(0);
    if left + middle + right != outputs {
        return match is_packed {
            true => None,
            false => frame.in_blocks(k, block(Core::Mve), &frame.whole()),
        };
    }
    let (ci, co) = (frame.ci, frame.co);
    let positive = |n: i64| u64::try_from(n).ok();
    let starts = |output: i64| positive(output * stride - pad);
    for batch in 0..frame.batches {
        let from = batch * frame.width * ci;
        let first = batch * frame.pixels();
        let write = |k: &mut Kernel<'_, '_, '_>, pixel: i64, channel: u64, end: u64| {
            frame.write(k, first + positive(pixel)?, channel, end)
        };
        if is_packed {
            for pixel in 0..left {
                write(k, pixel, 0, co - 1)?;
                let seen = positive(size - pad + pixel * stride)?;
                k.read(0, from, from + seen * ci)?;
                write(k, pixel, co - 1, co)?;
            }
        } else {
            if left > 0 {
                k.read(0, from, from + window.size * ci)?;
            }
            for pixel in 0..left {
                write(k, pixel, 0, co)?;
            }
        }
        if middle > 0 {
            let matrix = Matrix {
                rows: positive(middle)?,
                from: from + starts(left)? * ci,
                step: window.stride * ci,
                depth: window.size * ci,
                to: (first + positive(left)?) * co,
                columns: co,
                is_packed,
            };
            matrix.multiply(k, Core::Mve)?;
        }
        if is_packed {
            for pixel in left + middle..outputs {
                write(k, pixel, 0, co - 1)?;
                let start = starts(pixel)?;
                let end = frame.width.min(start + window.size);
                k.read(0, from + start * ci, from + end.max(start) * ci)?;
                write(k, pixel, co - 1, co)?;
            }
        } else if right > 0 {
            let start = from + starts(left + middle)? * ci;
            k.read(0, start, start + (window.size - 1) * ci)?;
            for pixel in left + middle..outputs {
                write(k, pixel, 0, co)?;
            }
        }
    }
    Some(())
}

/// Channels that vectors take at once (`CH_IN_BLOCK_MVE`).
const VECTOR_CHANNELS: u64 = 124;

/// arm_depthwise_conv_wrapper_s8.c, _s4.c
fn depthwise(k: &mut Kernel<'_, '_, '_>, core: Core) -> Option<()> {
    let conv = Depthwise::read(k)?;
    let frame = &conv.frame;
    let is_packed = k.input(1)?.ty == Type::INT4;
    if core == Core::Mve && !is_packed && frame.ci == 1 && frame.co > 1 {
        // The filter is turned, and the rest is a convolution.
        let conv = Convolution::of_depthwise(conv);
        return convolution_of_one_channel(k, core, &conv);
    }
    let undilated = conv.vertical.dilation == 1 && conv.horizontal.dilation == 1;
    if core == Core::Mve && conv.multiplier == 1 && frame.batches == 1 && undilated {
        let mut slices = Vec::new();
        let mut first = 0;
        while first < frame.ci {
            let end = frame.ci.min(first + VECTOR_CHANNELS);
            slices.push([(first, end); 2]);
            first = end;
        }
        return frame.in_blocks(k, 4, &slices);
    }
    frame.by_input_channel(k, conv.multiplier)
}

/// What [`convolution`] does when it is called for a depthwise convolution.
fn convolution_of_one_channel(
    k: &mut Kernel<'_, '_, '_>,
    core: Core,
    conv: &Convolution,
) -> Option<()> {
    let frame = &conv.frame;
    if conv.is_pointwise() {
        return pointwise(k, core, conv, false);
    }
    let is_row = frame.height == 1
        && conv.vertical.size == 1
        && conv.horizontal.dilation == 1
        && conv.horizontal.stride.is_multiple_of(4);
    if is_row {
        return row(k, frame, conv.horizontal, false);
    }
    frame.in_blocks(k, block(core), &frame.whole())
}

/// cmsis_nn/fully_connected.cc: outputs of more than two dimensions are made as a convolution with a filter of one pixel.
fn fully_connected(k: &mut Kernel<'_, '_, '_>, core: Core) -> Option<()> {
    let (input, output) = (k.input(0)?, k.output(0)?);
    let filter = k.input(1)?;
    let depth = *shape(filter)?.last()?;
    let to = shape(output)?;
    if to.len() <= 2 || !depth.is_multiple_of(4) || filter.ty != Type::INT8 {
        return rows::fully_connected(k);
    }
    let (&columns, rows) = to.split_last()?;
    let rows = product(rows)?;
    if rows.checked_mul(depth)? > input.bytes || output.ty != Type::INT8 {
        return None;
    }
    k.stream(0, output)?;
    let matrix = Matrix {
        rows,
        from: 0,
        step: depth,
        depth,
        to: 0,
        columns,
        is_packed: false,
    };
    matrix.multiply(k, core)
}

/// arm_max_pool_s8.c, _s16.c: the first pixel of a window is copied to the output, where the others are compared with it.
fn max_pool(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let (frame, [vertical, horizontal]) = pool_frame(k)?;
    let bytes = frame.ci * frame.from;
    if frame.from != frame.to {
        return None;
    }
    let (all, columns) = (frame.pixels(), frame.row_pixels());
    frame.each(k, |k, pixel, dead| {
        let (batch, in_batch) = (pixel / all, pixel % all);
        let first = |o: u64, w: Window| (o * w.stride).saturating_sub(w.pad);
        let y = first(in_batch / columns, vertical);
        let x = first(in_batch % columns, horizontal);
        // A window without any pixel.
        if y >= frame.height || x >= frame.width {
            return None;
        }
        let start = (batch * frame.height + y) * frame.width + x;
        k.copy(0, start * bytes, 0, pixel * bytes, bytes)?;
        let others: Vec<u64> = dead.iter().copied().filter(|&p| p != start).collect();
        for channel in 0..frame.ci {
            frame.read(k, &others, channel, channel + 1)?;
        }
        Some(())
    })
}

/// cmsis_nn/maximum_minimum.cc: loops of its own where an operand is smaller than the output, which is then read again.
fn larger_or_smaller(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let output = k.output(0)?;
    let full: Vec<usize> = (0..2)
        .filter(|&i| k.input(i).is_some_and(|t| t.bytes == output.bytes))
        .collect();
    if k.input(0)?.ty != k.input(1)?.ty || output.ty != Type::INT8 {
        return None;
    }
    element::same_shape(k, &full, 1)
}

/// Input channels above which the input is taken for a larger one with gaps (`REVERSE_TCOL_EFFICIENT_THRESHOLD`).
const EFFICIENT_CHANNELS: u64 = 16;

/// arm_transpose_conv_wrapper_s8.c
fn transpose_convolution(k: &mut Kernel<'_, '_, '_>, core: Core) -> Option<()> {
    let options = k.op.table.builtin_options_as_transpose_conv_options()?;
    let (filter, input, output) = (
        image(k.input(1)?)?,
        image(k.input(2)?)?,
        image(k.output(0)?)?,
    );
    let padding = options.padding();
    // The paddings of the convolution from the output to the input.
    let window = |d: usize, stride| Window::new(output[d], filter[d], stride, 1, padding);
    let (vertical, horizontal) = (
        window(1, options.stride_h())?,
        window(2, options.stride_w())?,
    );
    if filter[0] != output[3] || filter[3] != input[3] || output[0] != input[0] {
        return None;
    }
    let is_upscaled =
        vertical.stride <= 2 && horizontal.stride <= 2 && input[3] > EFFICIENT_CHANNELS;
    if is_upscaled {
        let axis = |w: Window, inputs: u64| {
            // Windows over the input with its gaps, which have nothing to read.
            let pad = w.size as i64 - 1 - w.pad as i64;
            let (size, stride) = (w.size as i64, w.stride as i64);
            let end = inputs as i64 * stride;
            (pad >= 0).then_some(move |o: u64, list: &mut Vec<i64>| {
                let places = (0..size).map(|f| o as i64 - pad + f);
                list.extend(
                    places
                        .filter(|p| (0..end).contains(p) && p % stride == 0)
                        .map(|p| p / stride),
                );
            })
        };
        k.step(output[1].checked_mul(vertical.size)?)?;
        k.step(output[2].checked_mul(horizontal.size)?)?;
        let (rows, columns) = (axis(vertical, input[1])?, axis(horizontal, input[2])?);
        let frame = Frame::custom(k, 2, rows, columns)?;
        return frame.in_blocks(k, block(core), &frame.whole());
    }
    k.stream(2, k.output(0)?)?;
    let (read, written) = (input[2] * input[3], output[2] * output[3]);
    let (mut from, mut to) = (0, 0);
    let mut emit = |k: &mut Kernel<'_, '_, '_>| {
        k.write(0, to, to + written)?;
        to += written;
        Some(())
    };
    for _batch in 0..input[0] {
        for row in 0..input[1] {
            k.read(2, from, from + read)?;
            from += read;
            if row * vertical.stride >= vertical.pad {
                for _ in 0..vertical.stride {
                    emit(k)?;
                }
            }
        }
        for row in 0..vertical.size.saturating_sub(vertical.stride) {
            let at = input[1] * vertical.stride + row;
            if at >= vertical.pad && at < vertical.pad + output[1] {
                emit(k)?;
            }
        }
    }
    Some(())
}

/// arm_pad_s8.c: rows with their channels whole are copied at once, others pixel by pixel.
fn pad(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let (from, to, front) = moves::padded(k)?;
    if k.input(0)?.ty != k.output(0)?.ty || from[0] != to[0] || from[0] != 1 {
        return None;
    }
    k.streamed[0] = true;
    let is_whole = from[4] == to[4];
    let (mut next, mut at) = (0, 0);
    let skip = |k: &mut Kernel<'_, '_, '_>, at: &mut u64, bytes: u64| {
        k.write(0, *at, *at + bytes)?;
        *at += bytes;
        Some(())
    };
    for plane in 0..to[1] {
        for line in 0..to[2] {
            k.step(1)?;
            let inside = (front[1]..front[1] + from[1]).contains(&plane)
                && (front[2]..front[2] + from[2]).contains(&line);
            if !inside {
                skip(k, &mut at, to[3] * to[4])?;
                continue;
            }
            skip(k, &mut at, front[3] * to[4])?;
            if is_whole {
                let bytes = from[3] * from[4];
                k.copy(0, next, 0, at, bytes)?;
                (next, at) = (next + bytes, at + bytes);
            } else {
                for _ in 0..from[3] {
                    skip(k, &mut at, front[4])?;
                    k.copy(0, next, 0, at, from[4])?;
                    (next, at) = (next + from[4], at + from[4]);
                    skip(k, &mut at, to[4] - front[4] - from[4])?;
                }
            }
            skip(k, &mut at, (to[3] - front[3] - from[3]) * to[4])?;
        }
    }
    Some(())
}
