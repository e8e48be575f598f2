//! Operators that read rows of their input, or reduce along an axis.

use arenaplan_schema::tflite::TensorType as Type;

use super::order::{Loop, Nest};
use super::pair::{Pair, axis, product, strides};
use crate::contract::Overlap;

/// fully_connected.h: for each row of the input, each output reads the whole row.
pub(super) fn fully_connected(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let filter = pair.dims(1)?;
    let &[.., outputs, inputs] = &filter[..] else {
        return None;
    };
    let rows = pair.elements_out() / outputs;
    let whole =
        *pair.to_dims.last()? == outputs && rows.checked_mul(inputs) == Some(pair.elements_in());
    if pair.input != 0 || !pair.same_type() || !whole {
        return None;
    }
    let size = pair.from_size;
    Some(pair.nest(&Nest {
        loops: vec![
            Loop::new(rows, outputs * size, inputs * size),
            Loop::new(outputs, size, 0),
        ],
        write_at: 0,
        read_at: 0,
        read_bytes: inputs * size,
        write_bytes: size,
        block: false,
    }))
}

/// batch_matmul.h, called with the two sides changed over: for each row of the left side, each row of the transposed right
/// side. Sides that are not stored so are transposed into memory of their own before anything is written.
pub(super) fn batch_matmul(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let options = pair.op.table.builtin_options_as_batch_mat_mul_options();
    let adjoint = |left: bool| options.is_some_and(|o| if left { o.adj_x() } else { o.adj_y() });
    let is_left = match pair.input {
        0 => true,
        1 => false,
        _ => return None,
    };
    let supported = matches!(pair.from.ty, Type::INT8 | Type::INT16 | Type::FLOAT32);
    if !pair.same_type() || !supported {
        return None;
    }
    let (from, to) = (&pair.from_dims, &pair.to_dims);
    let &[.., rows, columns] = &to[..] else {
        return None;
    };
    let &[.., a, b] = &from[..] else {
        return None;
    };
    if to.len() > 5 || from.len() > to.len() {
        return None;
    }
    // The rows of the side in question, and how long one is.
    let stored_as_rows = adjoint(is_left) != is_left;
    let (count, length) = if stored_as_rows { (a, b) } else { (b, a) };
    if count != if is_left { rows } else { columns } {
        return None;
    }
    if !stored_as_rows {
        return Some(pair.any());
    }
    let size = pair.from_size;
    let mut loops = spread(
        &to[..to.len() - 2],
        &from[..from.len() - 2],
        rows * columns * size,
        count * length * size,
    )?;
    let (over_rows, over_columns) = if is_left {
        (length * size, 0)
    } else {
        (0, length * size)
    };
    loops.push(Loop::new(rows, columns * size, over_rows));
    loops.push(Loop::new(columns, size, over_columns));
    Some(pair.nest(&Nest {
        loops,
        write_at: 0,
        read_at: 0,
        read_bytes: length * size,
        write_bytes: size,
        block: false,
    }))
}

/// A loop for each dimension of the output, in which the input moves along or stays where its dimension is 1.
pub(super) fn spread(
    to: &[i64],
    from: &[i64],
    write_bytes: i64,
    read_bytes: i64,
) -> Option<Vec<Loop>> {
    let missing = to.len().checked_sub(from.len())?;
    let (writes, reads) = (strides(to, write_bytes), strides(from, read_bytes));
    to.iter()
        .enumerate()
        .map(|(k, &count)| {
            let read = match k.checked_sub(missing) {
                Some(at) if from[at] == count => reads[at],
                Some(at) if from[at] != 1 => return None,
                _ => 0,
            };
            Some(Loop::new(count, writes[k], read))
        })
        .collect()
}

/// arg_min_max.h: for each element of the output the axis of the input is read.
pub(super) fn arg(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let &[along] = &pair.constant(1)?[..] else {
        return None;
    };
    let at = axis(along, pair.from_dims.len())?;
    let (outer, inner) = (
        product(&pair.from_dims[..at]),
        product(&pair.from_dims[at + 1..]),
    );
    if pair.input != 0 || !pair.ordered_types() || outer * inner != pair.elements_out() {
        return None;
    }
    let (from, to, count) = (pair.from_size, pair.to_size, pair.from_dims[at]);
    Some(pair.nest(&Nest {
        loops: vec![
            Loop::new(outer, inner * to, count * inner * from),
            Loop::new(inner, to, from),
        ],
        write_at: 0,
        read_at: 0,
        read_bytes: (count - 1) * inner * from + from,
        write_bytes: to,
        block: false,
    }))
}

/// reduce.h. The mean of a float image over height and width, with dimensions kept, has a loop of its own: for each
/// channel it sums in a register. All others fill the output with zeros first.
pub(super) fn mean(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let options = pair.op.table.builtin_options_as_reducer_options()?;
    let (&[n, h, w, c], &[to_n, 1, 1, to_c]) = (&pair.from_dims[..], &pair.to_dims[..]) else {
        return None;
    };
    let axes = pair.constant(1)?;
    // Only as they are written: the kernel does not resolve negative ones here.
    let over_image = axes == [1, 2] || axes == [2, 1];
    let float = pair.same_type() && pair.from.ty == Type::FLOAT32;
    if pair.input != 0 || !options.keep_dims() || !over_image || !float || n != to_n || c != to_c {
        return None;
    }
    let size = pair.from_size;
    Some(pair.nest(&Nest {
        loops: vec![
            Loop::new(n, c * size, h * w * c * size),
            Loop::new(c, size, size),
        ],
        write_at: 0,
        read_at: 0,
        read_bytes: (h * w - 1) * c * size + size,
        write_bytes: size,
        block: false,
    }))
}

/// cumsum.h: along the axis innermost, the last dimensions outermost. A float sum that leaves its own element out is
/// written before that element is read.
pub(super) fn cumsum(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let options = pair.op.table.builtin_options_as_cumsum_options();
    let &[along] = &pair.constant(1)?[..] else {
        return None;
    };
    let at = axis(along, pair.from_dims.len())?;
    if pair.input != 0 || !pair.same_type() || pair.from_dims != pair.to_dims {
        return None;
    }
    let (before, after) = (
        product(&pair.from_dims[..at]),
        product(&pair.from_dims[at + 1..]),
    );
    let (size, count) = (pair.from_size, pair.from_dims[at]);
    let forward = if options.is_some_and(|o| o.reverse()) {
        -1
    } else {
        1
    };
    let step = |count, bytes: i64| Loop::new(count, bytes * forward, bytes * forward);
    Some(pair.nest(&Nest {
        block: options.is_some_and(|o| o.exclusive()) && pair.from.ty == Type::FLOAT32,
        ..Nest::copying(
            vec![
                step(after, size),
                step(before, count * after * size),
                step(count, after * size),
            ],
            size,
        )
    }))
}

/// svdf_common.cc: the whole input goes into the state, the state into scratch, and scratch into the output.
pub(super) fn svdf(pair: &Pair<'_, '_>) -> Option<Overlap> {
    (pair.input == 0 && pair.same_type()).then(|| pair.any())
}

/// transpose_conv.h: quantized sums are collected in scratch, and written when the input has been read. Floats are
/// collected in the output, which is filled with zeros first.
pub(super) fn transpose_convolution(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let quantized = matches!(pair.from.ty, Type::INT8 | Type::INT16);
    (pair.input == 2 && pair.same_type() && quantized).then(|| pair.any())
}

/// lstm_eval.h: each step reads its inputs for four gates, and writes its outputs when all are done. Steps follow each
/// other in memory in either order of batch and time. The state between them is in variables.
pub(super) fn lstm(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let options = pair
        .op
        .table
        .builtin_options_as_unidirectional_sequence_lstmoptions()?;
    let (&[a, b, inputs], &[to_a, to_b, outputs]) = (&pair.from_dims[..], &pair.to_dims[..]) else {
        return None;
    };
    if pair.input != 0 || !pair.same_type() || (a, b) != (to_a, to_b) {
        return None;
    }
    // One step takes all batches at once when time comes first.
    let (steps, batch) = if options.time_major() {
        (a, b)
    } else {
        (a * b, 1)
    };
    let size = batch * pair.from_size;
    Some(pair.nest(&Nest {
        loops: vec![Loop::new(steps, outputs * size, inputs * size)],
        write_at: 0,
        read_at: 0,
        read_bytes: inputs * size,
        write_bytes: outputs * size,
        block: false,
    }))
}
