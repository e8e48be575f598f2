//! Kernels that work through their input row by row: matrix products, sums over axes.

use arenaplan_schema::tflite::TensorType as Type;

use super::{Kernel, element_bytes, extended, image, product, shape};

/// fully_connected.cc: a row of outputs for each row of inputs, which is read for each of them.
pub(super) fn fully_connected(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let (input, output) = (k.input(0)?, k.output(0)?);
    let depth = *shape(k.input(1)?)?.last()?;
    let to = shape(output)?;
    let (&columns, rows) = to.split_last()?;
    let (read, written) = (
        depth.checked_mul(element_bytes(input)?)?,
        element_bytes(output)?,
    );
    k.stream(0, output)?;
    for row in 0..product(rows)? {
        let start = row.checked_mul(columns)?.checked_mul(written)?;
        let last = start + columns.checked_sub(1)? * written;
        k.write(0, start, last)?;
        k.read(0, row.checked_mul(read)?, (row + 1).checked_mul(read)?)?;
        k.write(0, last, last + written)?;
    }
    Some(())
}

/// svdf_common.cc: everything is read into the state, or into scratch memory, before anything is written.
pub(super) fn consume_then_write(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    k.stream(0, k.output(0)?)?;
    k.read_all(0)?;
    k.write_all(0)
}

/// reduce_common.cc. Outputs are set to a first value before anything is read, even where sums are kept elsewhere; only
/// the mean over an image of numbers with a point is written channel by channel.
pub(super) fn reduce(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    use arenaplan_schema::tflite::BuiltinOperator as Op;
    let (input, output) = (k.input(0)?, k.output(0)?);
    let keeps =
        k.op.table
            .builtin_options_as_reducer_options()
            .is_some_and(|o| o.keep_dims());
    let over_image = || {
        let axes = k.constant(1)?;
        (axes == [1, 2] || axes == [2, 1]).then_some(image(input)?)
    };
    if k.op.code == Op::MEAN
        && input.ty == Type::FLOAT32
        && keeps
        && let Some([batches, height, width, channels]) = over_image()
    {
        let bytes = element_bytes(input)?;
        k.stream(0, output)?;
        for batch in 0..batches {
            for channel in 0..channels {
                for pixel in 0..height * width {
                    let at = ((batch * height * width + pixel) * channels + channel) * bytes;
                    k.read(0, at, at + bytes)?;
                }
                let at = (batch * channels + channel) * bytes;
                k.write(0, at, at + bytes)?;
            }
        }
        return Some(());
    }
    k.write_all(0)
}

/// arg_min_max.h: for each place outside of the axis, all values along the axis.
pub(super) fn arg(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let (input, output) = (k.input(0)?, k.output(0)?);
    let from = shape(input)?;
    let axis = *k.constant(1)?.first()?;
    let axis = if axis < 0 {
        axis + from.len() as i64
    } else {
        axis
    };
    let axis = usize::try_from(axis).ok().filter(|&a| a < from.len())?;
    let (outer, inner) = (product(&from[..axis])?, product(&from[axis + 1..])?);
    let (read, written) = (element_bytes(input)?, element_bytes(output)?);
    k.stream(0, output)?;
    for o in 0..outer {
        for i in 0..inner {
            for a in 0..from[axis] {
                let at = ((o * from[axis] + a) * inner + i) * read;
                k.read(0, at, at + read)?;
            }
            let at = (o * inner + i) * written;
            k.write(0, at, at + written)?;
        }
    }
    Some(())
}

/// batch_matmul.cc: rows of the left operand times rows of the right one. An operand that lies the other way is
/// transposed into memory of its own before anything is written.
///
/// Where `is_by_element`, the right operand's rows are read one for each output; else nothing is said of their order.
pub(super) fn batch_matmul(k: &mut Kernel<'_, '_, '_>, is_by_element: bool) -> Option<()> {
    let options = k.op.table.builtin_options_as_batch_mat_mul_options()?;
    let (left, right, output) = (k.input(0)?, k.input(1)?, k.output(0)?);
    let [to, from_left, from_right] = [output, left, right].map(shape);
    let to = extended::<5>(&to?)?;
    let [from_left, from_right] = [extended::<5>(&from_left?)?, extended::<5>(&from_right?)?];
    let [.., rows, columns] = to;
    let batches = product(&to[..3])?;
    let turned = |[.., a, b]: [u64; 5], is_turned: bool| if is_turned { [b, a] } else { [a, b] };
    let [left_rows, depth] = turned(from_left, options.adj_x());
    if left_rows != rows || turned(from_right, !options.adj_y()) != [columns, depth] {
        return None;
    }
    // Bytes of a row, and whether all batches read the same rows.
    let mut row_bytes = [None, None];
    for (i, (tensor, from, is_transposed)) in [
        (left, from_left, options.adj_x()),
        (right, from_right, !options.adj_y()),
    ]
    .into_iter()
    .enumerate()
    {
        if is_transposed {
            k.stream(i, output)?;
            k.read_all(i)?;
        } else if i == 0 || is_by_element {
            let is_shared = from[..3] == [1; 3];
            if is_shared || from[..3] == to[..3] {
                k.stream(i, output)?;
                row_bytes[i] = Some((depth.checked_mul(element_bytes(tensor)?)?, is_shared));
            }
        }
    }
    let bytes = element_bytes(output)?;
    for batch in 0..batches {
        // Where an operand's rows are read for the last time: their bytes, and the batch that they count from.
        let last = |operand: Option<(u64, bool)>| match operand {
            Some((_, true)) if batch + 1 != batches => None,
            Some((bytes, is_shared)) => Some((bytes, if is_shared { 0 } else { batch })),
            None => None,
        };
        let [left, right] = row_bytes.map(last);
        for row in 0..rows {
            let at = (batch * rows + row) * columns * bytes;
            let mut next = 0;
            // In the last row, each row of the right operand is read for the last time.
            if let Some((read, batch)) = right.filter(|_| row + 1 == rows) {
                for column in 0..columns {
                    k.write(0, at + next * bytes, at + column * bytes)?;
                    let start = (batch * columns + column) * read;
                    k.read(1, start, start + read)?;
                    next = column;
                }
            }
            if let Some((read, batch)) = left {
                k.write(0, at + next * bytes, at + columns.checked_sub(1)? * bytes)?;
                let start = (batch * rows + row) * read;
                k.read(0, start, start + read)?;
                next = columns - 1;
            }
            k.write(0, at + next * bytes, at + columns * bytes)?;
        }
    }
    Some(())
}

/// cumsum.h: sums along an axis, one after the other; in reverse from the end of the tensor.
pub(super) fn cumulative_sum(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let options = k.op.table.builtin_options_as_cumsum_options();
    let (exclusive, reverse) = options.map_or((false, false), |o| (o.exclusive(), o.reverse()));
    let (input, output) = (k.input(0)?, k.output(0)?);
    let dims = shape(input)?;
    let axis = *k.constant(1)?.first()?;
    let axis = if axis < 0 {
        axis + dims.len() as i64
    } else {
        axis
    };
    let axis = usize::try_from(axis).ok().filter(|&a| a < dims.len())?;
    let (inner, outer) = (product(&dims[..axis])?, product(&dims[axis + 1..])?);
    let depth = dims[axis];
    let bytes = element_bytes(input)?;
    // A sum that leaves its element out may be written before that element is read.
    if input.ty != output.ty {
        return None;
    }
    k.stream(0, output)?;
    let turned = |i: u64, n: u64| if reverse { n - 1 - i } else { i };
    for o in 0..outer {
        for i in 0..inner {
            for d in 0..depth {
                let element =
                    turned(o, outer) + (turned(i, inner) * depth + turned(d, depth)) * outer;
                let (start, end) = (element * bytes, (element + 1) * bytes);
                if exclusive && input.ty != Type::INT8 {
                    k.write(0, start, end)?;
                    k.read(0, start, end)?;
                } else {
                    k.read(0, start, end)?;
                    k.write(0, start, end)?;
                }
            }
        }
    }
    Some(())
}

/// lstm_eval.h: in each step the gates read the step's input; then the output is copied from the state.
pub(super) fn lstm(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let options =
        k.op.table
            .builtin_options_as_unidirectional_sequence_lstmoptions()?;
    let (input, output) = (k.input(0)?, k.output(0)?);
    let [first, second, depth] = shape(input)?[..] else {
        return None;
    };
    let [to_first, to_second, state] = shape(output)?[..] else {
        return None;
    };
    if (first, second) != (to_first, to_second) || input.ty != output.ty {
        return None;
    }
    // Steps of all batches at once, or of one batch after the other.
    let (steps, together) = if options.time_major() {
        (first, second)
    } else {
        (first.checked_mul(second)?, 1)
    };
    let bytes = element_bytes(input)? * together;
    k.stream(0, output)?;
    for step in 0..steps {
        k.read(0, step * depth * bytes, (step + 1) * depth * bytes)?;
        k.write(0, step * state * bytes, (step + 1) * state * bytes)?;
    }
    Some(())
}
