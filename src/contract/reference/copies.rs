//! Operators that put parts of tensors together, or take them apart.
//!
//! A loop that copies element by element keeps its order where source and destination overlap. `memcpy` does not, so that
//! each single call needs them apart, or at one address: copying bytes onto themselves changes nothing.

use arenaplan_schema::tflite::BuiltinOperator as Op;

use super::order::{Loop, Needs, Nest};
use super::pair::{Pair, axis, product, strides};
use crate::contract::Overlap;

/// reshape.cc, squeeze.cc: one `memcpy`, which RESHAPE leaves out when both are at one address.
pub(super) fn whole(pair: &Pair<'_, '_>) -> Option<Overlap> {
    (pair.input == 0 && pair.same_type() && pair.from.bytes == pair.to.bytes)
        .then(|| pair.whole_copy())
}

/// How a tensor falls into blocks at an axis.
struct Blocks {
    /// Blocks of the whole tensor.
    outer: i64,
    /// Bytes of a block of the whole, of the part in question, and of what comes before that part.
    whole: i64,
    part: i64,
    before: i64,
}

impl Blocks {
    /// The part at `index` of `parts`, which lie along `at` in `whole`.
    fn of(whole: &[i64], parts: &[Vec<i64>], index: usize, at: usize, size: i64) -> Option<Self> {
        let fits = |p: &Vec<i64>| {
            p.len() == whole.len() && (0..p.len()).all(|k| k == at || p[k] == whole[k])
        };
        let mut total = 0i64;
        for part in parts {
            total = total.checked_add(*part.get(at)?)?;
        }
        if !parts.iter().all(fits) || total != *whole.get(at)? {
            return None;
        }
        let inner = product(&whole[at + 1..]) * size;
        Some(Self {
            outer: product(&whole[..at]),
            whole: whole[at] * inner,
            part: parts[index][at] * inner,
            before: parts[..index].iter().map(|p| p[at] * inner).sum(),
        })
    }

    /// The same where a part has no dimension at the axis.
    fn of_unit(
        whole: &[i64],
        part: &[i64],
        count: usize,
        index: usize,
        at: usize,
        size: i64,
    ) -> Option<Self> {
        let mut kept = whole.to_vec();
        if kept.remove(at) != count as i64 || kept != part {
            return None;
        }
        let part = product(&whole[at + 1..]) * size;
        Some(Self {
            outer: product(&whole[..at]),
            whole: part * count as i64,
            part,
            before: part * index as i64,
        })
    }

    /// Where a part lies in the whole, if it is in one piece.
    fn view(&self) -> Option<i64> {
        (self.outer == 1 || self.part == self.whole).then_some(self.before)
    }
}

/// The shapes of all inputs, which have the input's type.
fn inputs(pair: &Pair<'_, '_>) -> Option<Vec<Vec<i64>>> {
    (0..pair.op.inputs.len())
        .map(|k| {
            let same = pair.tensor(k)?.ty == pair.from.ty;
            pair.dims(k).filter(|_| same)
        })
        .collect()
}

/// The shapes of all outputs, which have the output's type.
fn outputs(pair: &Pair<'_, '_>) -> Option<Vec<Vec<i64>>> {
    let tensors = pair.op.outputs.iter().map(|&t| pair.graph.tensor(t));
    tensors
        .map(|t| {
            let shape = t.prepared_shape.as_ref().unwrap_or(&t.shape);
            let dims: Vec<i64> = shape.iter().map(|&d| d.into()).collect();
            (t.ty == pair.to.ty && dims.iter().all(|&d| d > 0)).then_some(dims)
        })
        .collect()
}

/// concatenation.h: block by block, a `memcpy` from each input in turn. Before an input is read, all of the output up
/// to its place is written.
pub(super) fn concatenation(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let options = pair.op.table.builtin_options_as_concatenation_options();
    let at = axis(options.map_or(0, |o| o.axis()).into(), pair.to_dims.len())?;
    if !pair.same_type() {
        return None;
    }
    let blocks = Blocks::of(&pair.to_dims, &inputs(pair)?, pair.input, at, pair.to_size)?;
    let last = (blocks.outer - 1) * (blocks.whole - blocks.part);
    let needs = Needs {
        input_above: Some(last + blocks.before + blocks.part),
        output_above: Some(blocks.outer * blocks.part),
    };
    Some(Overlap {
        view_at: blocks.view(),
        ..pair.overlap(needs)
    })
}

/// pack.cc: input after input, element by element into the input's place in each block. Before an input is read, the
/// places of all inputs before it are written.
pub(super) fn pack(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let options = pair.op.table.builtin_options_as_pack_options();
    let at = axis(options.map_or(0, |o| o.axis()).into(), pair.to_dims.len())?;
    let count = pair.op.inputs.len();
    let all = options.is_some_and(|o| usize::try_from(o.values_count()) == Ok(count));
    let alike = inputs(pair)?.iter().all(|dims| *dims == pair.from_dims);
    if !pair.same_type() || !all || !alike {
        return None;
    }
    let (whole, part) = (&pair.to_dims, &pair.from_dims);
    let blocks = Blocks::of_unit(whole, part, count, pair.input, at, pair.to_size)?;
    let size = pair.from_size;
    let nest = Nest {
        write_at: blocks.before,
        ..Nest::copying(
            vec![
                Loop::new(blocks.outer, blocks.whole, blocks.part),
                Loop::new(blocks.part / size, size, size),
            ],
            size,
        )
    };
    let mut needs = nest.needs();
    if pair.input > 0 {
        needs.add(Needs {
            input_above: Some((blocks.outer - 1) * blocks.whole + blocks.before),
            output_above: Some(blocks.outer * blocks.part),
        });
    }
    Some(Overlap {
        view_at: blocks.view(),
        ..pair.overlap(needs)
    })
}

/// split.cc, split_v.cc: the input is read from its start to its end, and each element is written to its part at once.
pub(super) fn split(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let (value, along) = match pair.op.code {
        Op::SPLIT => (1, 0),
        _ => (0, 2),
    };
    let &[along] = &pair.constant(along)?[..] else {
        return None;
    };
    let at = axis(along, pair.from_dims.len())?;
    let parts = outputs(pair)?;
    if pair.input != value || !pair.same_type() {
        return None;
    }
    // SPLIT takes the first output's size for all of them.
    if pair.op.code == Op::SPLIT && parts.iter().any(|p| Some(p) != parts.first()) {
        return None;
    }
    let blocks = Blocks::of(&pair.from_dims, &parts, pair.output, at, pair.from_size)?;
    let size = pair.from_size;
    let end = blocks.outer * blocks.whole;
    // The output's first element is written when the input is read up to there.
    let read_on = blocks.before + size < end;
    let needs = Needs {
        input_above: None,
        output_above: read_on.then_some(end),
    };
    Some(Overlap {
        view_at: blocks.view().map(|at| -at),
        ..pair.overlap(needs)
    })
}

/// unpack.cc: output after output, so that the input is read once for each, with gaps.
pub(super) fn unpack(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let options = pair.op.table.builtin_options_as_unpack_options()?;
    let at = axis(options.axis().into(), pair.from_dims.len())?;
    let parts = outputs(pair)?;
    let count = parts.len();
    let alike = parts.iter().all(|p| *p == pair.to_dims);
    if pair.input != 0 || !pair.same_type() || usize::try_from(options.num()) != Ok(count) || !alike
    {
        return None;
    }
    let (whole, part) = (&pair.from_dims, &pair.to_dims);
    let blocks = Blocks::of_unit(whole, part, count, pair.output, at, pair.from_size)?;
    let size = pair.from_size;
    let nest = Nest {
        read_at: blocks.before,
        ..Nest::copying(
            vec![
                Loop::new(blocks.outer, blocks.part, blocks.whole),
                Loop::new(blocks.part / size, size, size),
            ],
            size,
        )
    };
    let mut needs = nest.needs();
    if pair.output + 1 < count {
        needs.add(Needs {
            input_above: Some(blocks.outer * blocks.part - blocks.before - blocks.part),
            output_above: Some(blocks.outer * blocks.whole),
        });
    }
    Some(Overlap {
        view_at: blocks.view().map(|at| -at),
        ..pair.overlap(needs)
    })
}

/// slice.h: five loops over the part, element by element.
pub(super) fn slice(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let (begin, size) = (pair.constant(1)?, pair.constant(2)?);
    let rank = pair.from_dims.len();
    let whole = [begin.len(), size.len(), pair.to_dims.len()] == [rank; 3];
    if pair.input != 0 || !pair.same_type() || rank > 5 || !whole {
        return None;
    }
    let reads = strides(&pair.from_dims, pair.from_size);
    let writes = strides(&pair.to_dims, pair.to_size);
    let mut loops = Vec::new();
    let mut read_at = 0;
    for k in 0..rank {
        let (start, dim) = (begin[k], pair.from_dims[k]);
        let count = if size[k] == -1 {
            dim.checked_sub(start)?
        } else {
            size[k]
        };
        let inside = start >= 0 && start.checked_add(count).is_some_and(|end| end <= dim);
        if !inside || count != pair.to_dims[k] {
            return None;
        }
        read_at += start * reads[k];
        loops.push(Loop::new(count, writes[k], reads[k]));
    }
    Some(pair.copy(&Nest {
        read_at,
        ..Nest::copying(loops, pair.from_size)
    }))
}

/// strided_slice.h: five loops over the part; the last is one `memcpy` where its stride is 1.
pub(super) fn strided_slice(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let options = pair.op.table.builtin_options_as_strided_slice_options();
    let mask = |f: fn(&arenaplan_schema::tflite::StridedSliceOptions<'_>) -> i32| {
        options.as_ref().map_or(0, f)
    };
    let (begin, end, stride) = (pair.constant(1)?, pair.constant(2)?, pair.constant(3)?);
    let rank = pair.from_dims.len();
    let whole = [begin.len(), end.len(), stride.len()] == [rank; 3] && (1..=4).contains(&rank);
    // The kernel does not know these.
    let other =
        mask(|o| o.ellipsis_mask() | o.new_axis_mask()) != 0 || options.is_some_and(|o| o.offset());
    if pair.input != 0 || !pair.same_type() || !whole || other {
        return None;
    }
    let has = |mask: i32, k: usize| mask >> k & 1 == 1;
    let mut counts = Vec::new();
    let mut starts = Vec::new();
    let mut kept = Vec::new();
    for k in 0..rank {
        let (dim, step) = (pair.from_dims[k], stride[k]);
        // Both ends, as strided_slice_logic.h finds them: from the end when negative, then into the dimension.
        let (low, high) = if step > 0 { (0, dim) } else { (-1, dim - 1) };
        let clamped = |at: i64| (if at < 0 { at.saturating_add(dim) } else { at }).clamp(low, high);
        let start = match has(mask(|o| o.begin_mask()), k) {
            true if step > 0 => 0,
            true => dim - 1,
            false => clamped(begin[k]),
        };
        let shrinks = has(mask(|o| o.shrink_axis_mask()), k);
        let stop = match has(mask(|o| o.end_mask()), k) {
            _ if shrinks => start + 1,
            true if step > 0 => dim,
            true => -1,
            false => clamped(end[k]),
        };
        let count = if shrinks {
            1
        } else if step > 0 {
            (stop - start + step - 1) / step
        } else {
            (start - stop)
                .checked_add(step.checked_neg()?)?
                .checked_sub(1)?
                .checked_div(-step)?
        };
        if count < 1 || !(0..dim).contains(&start) || step.checked_abs()? > i32::MAX.into() {
            return None;
        }
        counts.push(count);
        starts.push(start);
        if !shrinks {
            kept.push(count);
        }
    }
    if kept != pair.to_dims {
        return None;
    }
    let reads = strides(&pair.from_dims, pair.from_size);
    let writes = strides(&counts, pair.to_size);
    let read_at = (0..rank).map(|k| starts[k] * reads[k]).sum();
    let mut loops: Vec<Loop> = (0..rank)
        .map(|k| {
            Loop::new(
                counts[k],
                writes[k],
                if counts[k] == 1 {
                    0
                } else {
                    reads[k] * stride[k]
                },
            )
        })
        .collect();
    let mut bytes = pair.from_size;
    let block = stride[rank - 1] == 1;
    if block {
        loops.pop();
        bytes *= counts[rank - 1];
    }
    Some(pair.copy(&Nest {
        read_at,
        block,
        ..Nest::copying(loops, bytes)
    }))
}

/// pad.h: the output from its start to its end, and with it the input. Before an element is read, the output is written
/// up to that element's place.
pub(super) fn pad(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let margins = pair.constant(1)?;
    let rank = pair.from_dims.len();
    let whole = margins.len() == 2 * rank && pair.to_dims.len() == rank && rank <= 5;
    if pair.input != 0 || !pair.same_type() || !whole {
        return None;
    }
    let writes = strides(&pair.to_dims, pair.to_size);
    let (mut first, mut last) = (0, 0);
    for k in 0..rank {
        let (before, after, dim) = (margins[2 * k], margins[2 * k + 1], pair.from_dims[k]);
        let width = before.checked_add(dim)?.checked_add(after)?;
        if before < 0 || after < 0 || width != pair.to_dims[k] {
            return None;
        }
        first += before * writes[k];
        last += (before + dim - 1) * writes[k];
    }
    let size = pair.from_size;
    let bytes = pair.elements_in() * size;
    let later = first > 0 || bytes > size;
    Some(pair.overlap(Needs {
        input_above: later.then_some(last - (bytes - size)),
        output_above: later.then_some(bytes),
    }))
}

/// transpose.h: the output from its start to its end; the input with its dimensions changed over.
pub(super) fn transpose(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let order = pair.constant(1)?;
    let rank = pair.from_dims.len();
    if pair.input != 0 || !pair.same_type() || order.len() != rank || pair.to_dims.len() != rank {
        return None;
    }
    let reads = strides(&pair.from_dims, pair.from_size);
    let writes = strides(&pair.to_dims, pair.to_size);
    let mut used = vec![false; rank];
    let mut loops = Vec::new();
    for k in 0..rank {
        let at = axis(order[k], rank)?;
        if std::mem::replace(&mut used[at], true) || pair.from_dims[at] != pair.to_dims[k] {
            return None;
        }
        loops.push(Loop::new(pair.to_dims[k], writes[k], reads[at]));
    }
    Some(pair.copy(&Nest::copying(loops, pair.from_size)))
}

/// depth_to_space.h: the output in its order, each pixel from one of the parts of a deep one. space_to_depth.h: the input
/// in its order, each pixel into such a part.
pub(super) fn between_depth_and_space(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let table = &pair.op.table;
    let into_depth = pair.op.code == Op::SPACE_TO_DEPTH;
    let block = if into_depth {
        table
            .builtin_options_as_space_to_depth_options()?
            .block_size()
    } else {
        table
            .builtin_options_as_depth_to_space_options()?
            .block_size()
    };
    let block = i64::from(block);
    let (deep, wide) = if into_depth {
        (&pair.to_dims, &pair.from_dims)
    } else {
        (&pair.from_dims, &pair.to_dims)
    };
    let (&[n, h, w, depth], &[_, _, _, thin]) = (&deep[..], &wide[..]) else {
        return None;
    };
    let expected = [
        Some(n),
        h.checked_mul(block),
        w.checked_mul(block),
        depth.checked_div(block.checked_mul(block)?),
    ];
    let fits = (0..4).all(|k| expected[k] == Some(wide[k]));
    if pair.input != 0 || !pair.same_type() || block < 1 || !fits || thin * block * block != depth {
        return None;
    }
    // Batch, row, row in the block, column, column in the block, channel.
    let size = pair.from_size;
    let counts = [n, h, block, w, block, thin];
    let wide_steps = strides(&counts, size);
    let deep_row = w * depth * size;
    let part = thin * size;
    let deep_steps = [
        h * deep_row,
        deep_row,
        block * part,
        depth * size,
        part,
        size,
    ];
    let loops = (0..6).map(|k| {
        let (wide, deep) = (wide_steps[k], deep_steps[k]);
        let (write, read) = if into_depth {
            (deep, wide)
        } else {
            (wide, deep)
        };
        Loop::new(counts[k], write, read)
    });
    Some(pair.copy(&Nest::copying(loops.collect(), size)))
}
