//! Kernels that move elements and compute nothing.

use arenaplan_schema::tflite::BuiltinOperator as Op;

use super::{Kernel, element_bytes, extended, image, product, shape};

/// Several tensors that make one: it has `outer` blocks, each with `inner[i]` bytes of tensor `i`.
struct Parts {
    outer: u64,
    inner: Vec<u64>,
}

/// An axis of a shape of `rank` dimensions.
fn axis(axis: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?;
    let axis = if axis < 0 { axis + rank } else { axis };
    (0..rank).contains(&axis).then_some(axis as usize)
}

/// concatenation.cc
fn concatenated(k: &Kernel<'_, '_, '_>) -> Option<Parts> {
    let options = k.op.table.builtin_options_as_concatenation_options()?;
    let output = k.output(0)?;
    let to = shape(output)?;
    let axis = axis(options.axis().into(), to.len())?;
    let bytes = product(&to[axis + 1..])?.checked_mul(element_bytes(output)?)?;
    let mut inner = Vec::new();
    let mut sum = 0;
    for i in 0..k.op.inputs.len() {
        let from = shape(k.input(i)?)?;
        let others_agree =
            from.len() == to.len() && (0..to.len()).all(|d| d == axis || from[d] == to[d]);
        if !others_agree {
            return None;
        }
        inner.push(from[axis].checked_mul(bytes)?);
        sum += from[axis];
    }
    (sum == to[axis]).then_some(Parts {
        outer: product(&to[..axis])?,
        inner,
    })
}

/// pack.cc
fn packed(k: &Kernel<'_, '_, '_>) -> Option<Parts> {
    let options = k.op.table.builtin_options_as_pack_options()?;
    let output = k.output(0)?;
    let to = shape(output)?;
    let axis = axis(options.axis().into(), to.len())?;
    let bytes = product(&to[axis + 1..])?.checked_mul(element_bytes(output)?)?;
    let outer = product(&to[..axis])?;
    let fits = |i: usize| {
        k.input(i)
            .is_some_and(|t| Some(t.bytes) == outer.checked_mul(bytes))
    };
    let count = k.op.inputs.len();
    (count as u64 == to[axis] && (0..count).all(fits)).then_some(Parts {
        outer,
        inner: vec![bytes; count],
    })
}

fn data_input(code: Op) -> usize {
    usize::from(code == Op::SPLIT)
}

/// split.cc, split_v.cc: the axis is another input.
fn splitted(k: &Kernel<'_, '_, '_>) -> Option<Parts> {
    let at = if k.op.code == Op::SPLIT { 0 } else { 2 };
    let input = k.input(data_input(k.op.code))?;
    let from = shape(input)?;
    let axis = axis(*k.constant(at)?.first()?, from.len())?;
    let bytes = product(&from[axis + 1..])?.checked_mul(element_bytes(input)?)?;
    let mut inner = Vec::new();
    let mut sum = 0;
    for o in 0..k.op.outputs.len() {
        let to = shape(k.output(o)?)?;
        let size = *to.get(axis)?;
        inner.push(size.checked_mul(bytes)?);
        sum += size;
    }
    (sum == from[axis]).then_some(Parts {
        outer: product(&from[..axis])?,
        inner,
    })
}

/// unpack.cc
fn unpacked(k: &Kernel<'_, '_, '_>) -> Option<Parts> {
    let options = k.op.table.builtin_options_as_unpack_options()?;
    let input = k.input(0)?;
    let from = shape(input)?;
    let axis = axis(options.axis().into(), from.len())?;
    let bytes = product(&from[axis + 1..])?.checked_mul(element_bytes(input)?)?;
    let count = k.op.outputs.len();
    (count as u64 == from[axis]).then_some(Parts {
        outer: product(&from[..axis])?,
        inner: vec![bytes; count],
    })
}

/// The bytes that an operator copies as they are.
pub(super) fn memcpy(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let bytes = k.input(0)?.bytes;
    k.streamed[0] = true;
    k.copy(0, 0, 0, 0, bytes)
}

/// concatenation.h: block by block, a `memcpy` from each input.
pub(super) fn concatenation(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let parts = concatenated(k)?;
    let ty = k.output(0)?.ty;
    for i in 0..parts.inner.len() {
        k.streamed[i] = true;
        if k.input(i)?.ty != ty {
            return None;
        }
    }
    let mut to = 0;
    for block in 0..parts.outer {
        for (i, &bytes) in parts.inner.iter().enumerate() {
            k.copy(i, block * bytes, 0, to, bytes)?;
            to += bytes;
        }
    }
    Some(())
}

/// `count` elements, one after the other.
fn elements(
    k: &mut Kernel<'_, '_, '_>,
    (input, from): (usize, u64),
    (output, to): (usize, u64),
    count: u64,
    bytes: u64,
) -> Option<()> {
    if k.is_own {
        return k.copy(input, from, output, to, count.checked_mul(bytes)?);
    }
    for i in 0..count {
        let (from, to) = (from + i * bytes, to + i * bytes);
        k.read(input, from, from + bytes)?;
        k.write(output, to, to + bytes)?;
    }
    Some(())
}

/// Input by input, and block by block in each.
pub(super) fn pack(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let parts = packed(k)?;
    let output = k.output(0)?;
    let bytes = element_bytes(output)?;
    let block_bytes: u64 = parts.inner.iter().sum();
    for i in 0..parts.inner.len() {
        k.stream(i, output)?;
    }
    let mut first = 0;
    for (i, &part) in parts.inner.iter().enumerate() {
        for block in 0..parts.outer {
            let to = block * block_bytes + first;
            elements(k, (i, block * part), (0, to), part / bytes, bytes)?;
        }
        first += part;
    }
    Some(())
}

/// Block by block, and input by input in each.
pub(super) fn pack_by_blocks(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let parts = packed(k)?;
    let output = k.output(0)?;
    for i in 0..parts.inner.len() {
        k.stream(i, output)?;
    }
    let mut to = 0;
    for block in 0..parts.outer {
        for (i, &part) in parts.inner.iter().enumerate() {
            k.copy(i, block * part, 0, to, part)?;
            to += part;
        }
    }
    Some(())
}

/// Block by block, and output by output in each.
pub(super) fn unpack_by_blocks(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let parts = unpacked(k)?;
    same_types(k, 0)?;
    let mut from = 0;
    for block in 0..parts.outer {
        for (o, &part) in parts.inner.iter().enumerate() {
            k.copy(0, from, o, block * part, part)?;
            from += part;
        }
    }
    Some(())
}

/// Block by block, and output by output in each.
pub(super) fn split(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let parts = splitted(k)?;
    let input = data_input(k.op.code);
    let bytes = element_bytes(k.input(input)?)?;
    same_types(k, input)?;
    let mut from = 0;
    for block in 0..parts.outer {
        for (o, &part) in parts.inner.iter().enumerate() {
            elements(k, (input, from), (o, block * part), part / bytes, bytes)?;
            from += part;
        }
    }
    Some(())
}

/// Output by output, and block by block in each.
pub(super) fn unpack(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let parts = unpacked(k)?;
    let bytes = element_bytes(k.input(0)?)?;
    same_types(k, 0)?;
    let block_bytes: u64 = parts.inner.iter().sum();
    let mut first = 0;
    for (o, &part) in parts.inner.iter().enumerate() {
        for block in 0..parts.outer {
            let from = block * block_bytes + first;
            elements(k, (0, from), (o, block * part), part / bytes, bytes)?;
        }
        first += part;
    }
    Some(())
}

/// The kernel takes the type of the input for that of all outputs.
fn same_types(k: &mut Kernel<'_, '_, '_>, input: usize) -> Option<()> {
    let ty = k.input(input)?.ty;
    k.streamed[input] = true;
    (0..k.op.outputs.len())
        .all(|o| k.output(o).is_some_and(|t| t.ty == ty))
        .then_some(())
}

/// pad.h: every output element in order, from the next input element or the value.
pub(super) fn pad(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let (input, output) = (k.input(0)?, k.output(0)?);
    let bytes = element_bytes(output)?;
    if input.ty != output.ty {
        return None;
    }
    let (from, to, front) = padded(k)?;
    k.streamed[0] = true;
    let mut next = 0;
    let mut at = 0;
    for row in 0..product(&to[..4])? {
        k.step(1)?;
        if is_inside(row, &from[..4], &to[..4], &front[..4]) {
            k.write(0, at, at + front[4] * bytes)?;
            at += front[4] * bytes;
            elements(k, (0, next), (0, at), from[4], bytes)?;
            next += from[4] * bytes;
            at += from[4] * bytes;
            let back = to[4] - front[4] - from[4];
            k.write(0, at, at + back * bytes)?;
            at += back * bytes;
        } else {
            k.write(0, at, at + to[4] * bytes)?;
            at += to[4] * bytes;
        }
    }
    Some(())
}

/// Shapes of input and output, and how much is put in front, in five dimensions.
pub(super) fn padded(k: &Kernel<'_, '_, '_>) -> Option<([u64; 5], [u64; 5], [u64; 5])> {
    let from = shape(k.input(0)?)?;
    let paddings = k.constant(1)?;
    if paddings.len() != 2 * from.len() {
        return None;
    }
    let (from, to) = (extended::<5>(&from)?, extended::<5>(&shape(k.output(0)?)?)?);
    let mut front = [0; 5];
    let skipped = 5 - paddings.len() / 2;
    for (d, pair) in paddings.chunks_exact(2).enumerate() {
        let [before, after] = [pair[0], pair[1]].map(|n| u64::try_from(n).ok());
        let d = d + skipped;
        front[d] = before?;
        if from[d].checked_add(before?)?.checked_add(after?)? != to[d] {
            return None;
        }
    }
    (0..skipped)
        .all(|d| from[d] == to[d])
        .then_some((from, to, front))
}

/// Whether a row of the output, counted over its outer dimensions, has elements of the input.
pub(super) fn is_inside(row: u64, from: &[u64], to: &[u64], front: &[u64]) -> bool {
    let mut rest = row;
    (0..to.len()).rev().all(|d| {
        let index = rest % to[d];
        rest /= to[d];
        index >= front[d] && index < front[d] + from[d]
    })
}

/// One dimension of a slice: first position, step, number of positions.
#[derive(Clone, Copy)]
struct Positions {
    first: i64,
    step: i64,
    count: u64,
}

impl Positions {
    /// All of them inside of `0..size`?
    fn fit(self, size: u64) -> bool {
        let last = (self.count as i64 - 1)
            .checked_mul(self.step)
            .and_then(|n| n.checked_add(self.first));
        let inside = |n: i64| u64::try_from(n).is_ok_and(|n| n < size);
        self.count == 0 || (inside(self.first) && last.is_some_and(inside))
    }
}

/// slice.cc, slice.h: begin and size, where a size of -1 takes the whole dimension from its start (sic).
fn sliced(k: &Kernel<'_, '_, '_>) -> Option<[Positions; 5]> {
    let from = shape(k.input(0)?)?;
    let (begin, size) = (k.constant(1)?, k.constant(2)?);
    if begin.len() != from.len() || size.len() != from.len() {
        return None;
    }
    let skipped = 5usize.checked_sub(from.len())?;
    let mut axes = [Positions {
        first: 0,
        step: 1,
        count: 1,
    }; 5];
    for d in 0..from.len() {
        let end = match size[d] {
            -1 => i64::try_from(from[d]).ok()?,
            n => begin[d].checked_add(n)?,
        };
        axes[skipped + d] = Positions {
            first: begin[d],
            step: 1,
            count: u64::try_from(end.checked_sub(begin[d])?).unwrap_or(0),
        };
    }
    let from = extended::<5>(&from)?;
    (0..5).all(|d| axes[d].fit(from[d])).then_some(axes)
}

/// strided_slice_common.cc, strided_slice_logic.h: `StridedSliceStartForAxis`, `StridedSliceEndForAxis`.
fn sliced_in_strides(k: &Kernel<'_, '_, '_>) -> Option<[Positions; 5]> {
    let options = k.op.table.builtin_options_as_strided_slice_options()?;
    let from = shape(k.input(0)?)?;
    let [begin, end, strides] = [k.constant(1)?, k.constant(2)?, k.constant(3)?];
    let rank = from.len();
    // Masks for an ellipsis and for new axes are refused by the kernel's parser, an offset is not read.
    if rank > 5
        || [&begin, &end, &strides].iter().any(|l| l.len() != rank)
        || options.ellipsis_mask() != 0
        || options.new_axis_mask() != 0
        || options.offset()
    {
        return None;
    }
    let mut axes = [Positions {
        first: 0,
        step: 1,
        count: 1,
    }; 5];
    for d in 0..rank {
        let size = i64::try_from(from[d]).ok()?;
        let has = |mask: i32| mask & (1 << d) != 0;
        let step = strides[d];
        let forward = step > 0;
        let (low, high) = if forward { (0, size) } else { (-1, size - 1) };
        let clamped = |n: i64| {
            let n = if n < 0 { n + size } else { n };
            if n > high { high } else { n.max(low) }
        };
        let first = match has(options.begin_mask()) {
            true if forward => 0,
            true => size - 1,
            false => clamped(begin[d]),
        };
        let stop = if has(options.shrink_axis_mask()) {
            if first >= size { first } else { first + 1 }
        } else if has(options.end_mask()) {
            if forward { size } else { -1 }
        } else {
            clamped(end[d])
        };
        let distance = if forward { stop - first } else { first - stop };
        let count = u64::try_from(distance).unwrap_or(0);
        axes[5 - rank + d] = Positions {
            first,
            step,
            count: count.div_ceil(step.unsigned_abs().max(1)),
        };
        if step == 0 {
            return None;
        }
    }
    let from = extended::<5>(&from)?;
    (0..5).all(|d| axes[d].fit(from[d])).then_some(axes)
}

/// Calls `run` with the first element of each innermost row of the slice.
fn slice_rows<'g, 'a, 'e>(
    k: &mut Kernel<'g, 'a, 'e>,
    axes: &[Positions; 5],
    from: &[u64; 5],
    mut run: impl FnMut(&mut Kernel<'g, 'a, 'e>, i64) -> Option<()>,
) -> Option<()> {
    let rows = axes[..4]
        .iter()
        .try_fold(1u64, |n, a| n.checked_mul(a.count))?;
    for row in 0..rows {
        k.step(1)?;
        let (mut rest, mut at, mut stride) = (row, axes[4].first, i64::try_from(from[4]).ok()?);
        for d in (0..4).rev() {
            let index = (rest % axes[d].count) as i64;
            rest /= axes[d].count;
            at += (axes[d].first + index * axes[d].step) * stride;
            stride *= i64::try_from(from[d]).ok()?;
        }
        run(k, at)?;
    }
    Some(())
}

/// slice.cc: element by element.
pub(super) fn slice(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let mut axes = sliced(k)?;
    same_types(k, 0)?;
    let input = k.input(0)?;
    let (mut from, bytes) = (extended::<5>(&shape(input)?)?, element_bytes(input)?);
    if k.is_coarse {
        join_whole(&mut axes, &mut from)?;
    }
    let mut to = 0;
    slice_rows(k, &axes, &from, |k, at| {
        let at = u64::try_from(at).ok()? * bytes;
        match k.is_coarse {
            true => k.copy(0, at, 0, to, axes[4].count.checked_mul(bytes)?)?,
            false => elements(k, (0, at), (0, to), axes[4].count, bytes)?,
        }
        to += axes[4].count * bytes;
        Some(())
    })
}

/// Makes axes that are taken whole one with the axis in front of them.
fn join_whole(axes: &mut [Positions; 5], from: &mut [u64; 5]) -> Option<()> {
    for _ in 0..4 {
        let (last, before) = (axes[4], axes[3]);
        let is_whole = last.first == 0 && last.step == 1 && last.count == from[4];
        if !is_whole || before.step != 1 {
            return Some(());
        }
        let width = i64::try_from(from[4]).ok()?;
        axes[4].first = before.first.checked_mul(width)?;
        axes[4].count = before.count.checked_mul(from[4])?;
        from[4] = from[4].checked_mul(from[3])?;
        axes.copy_within(0..3, 1);
        from.copy_within(0..3, 1);
        (axes[0].first, axes[0].step, axes[0].count) = (0, 1, 1);
        from[0] = 1;
    }
    Some(())
}

/// Start and end of all bytes that a slice takes from its input, in order; what joins is one range.
pub(super) fn slice_ranges(k: &mut Kernel<'_, '_, '_>) -> Option<Vec<(u64, u64)>> {
    let mut axes = sliced(k)?;
    let input = k.input(0)?;
    let (mut from, bytes) = (extended::<5>(&shape(input)?)?, element_bytes(input)?);
    join_whole(&mut axes, &mut from)?;
    let row = axes[4].count * bytes;
    let mut taken = 0;
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    slice_rows(k, &axes, &from, |_, at| {
        let start = u64::try_from(at).ok()? * bytes;
        taken += row;
        match ranges.last_mut() {
            Some(last) if last.1 == start => last.1 += row,
            _ => ranges.push((start, start + row)),
        }
        Some(())
    })?;
    (taken == k.output(0)?.bytes && same_types(k, 0).is_some()).then_some(ranges)
}

/// strided_slice.cc: with an innermost stride of 1 each row is a `memcpy`, else element by element.
pub(super) fn strided_slice(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let axes = sliced_in_strides(k)?;
    same_types(k, 0)?;
    let input = k.input(0)?;
    let (from, bytes) = (extended::<5>(&shape(input)?)?, element_bytes(input)?);
    let mut to = 0;
    slice_rows(k, &axes, &from, |k, at| {
        let row = axes[4];
        if row.step == 1 {
            let at = u64::try_from(at).ok()? * bytes;
            k.copy(0, at, 0, to, row.count * bytes)?;
            to += row.count * bytes;
            return Some(());
        }
        for i in 0..row.count as i64 {
            let at = u64::try_from(at + i * row.step).ok()? * bytes;
            elements(k, (0, at), (0, to), 1, bytes)?;
            to += bytes;
        }
        Some(())
    })
}

/// transpose.h: the output in order, from the input element that belongs there.
pub(super) fn transpose(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let permutation = k.constant(1)?;
    same_types(k, 0)?;
    let input = k.input(0)?;
    let (from, to) = (shape(input)?, shape(k.output(0)?)?);
    let bytes = element_bytes(input)?;
    let rank = from.len();
    if permutation.len() != rank || to.len() != rank {
        return None;
    }
    let mut strides = vec![1; rank];
    for d in (1..rank).rev() {
        strides[d - 1] = strides[d] * from[d];
    }
    let mut moves = Vec::new();
    for (d, &p) in permutation.iter().enumerate() {
        let p = usize::try_from(p).ok().filter(|&p| p < rank)?;
        if from[p] != to[d] {
            return None;
        }
        moves.push(strides[p]);
    }
    let mut index = vec![0u64; rank];
    let mut at = 0u64;
    for element in 0..product(&to)? {
        elements(k, (0, at * bytes), (0, element * bytes), 1, bytes)?;
        for d in (0..rank).rev() {
            index[d] += 1;
            at += moves[d];
            if index[d] < to[d] {
                break;
            }
            at -= moves[d] * to[d];
            index[d] = 0;
        }
    }
    Some(())
}

/// space_to_depth.h walks the input, depth_to_space.h the output; the other side is where the blocks say.
pub(super) fn blocks(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let to_depth = k.op.code == Op::SPACE_TO_DEPTH;
    let size = if to_depth {
        k.op.table
            .builtin_options_as_space_to_depth_options()?
            .block_size()
    } else {
        k.op.table
            .builtin_options_as_depth_to_space_options()?
            .block_size()
    };
    let size = u64::try_from(size).ok().filter(|&n| n > 0)?;
    same_types(k, 0)?;
    let bytes = element_bytes(k.input(0)?)?;
    let (from, to) = (image(k.input(0)?)?, image(k.output(0)?)?);
    // The wide side has the pixels, the deep side the blocks.
    let (wide, deep) = if to_depth { (from, to) } else { (to, from) };
    let [batches, height, width, depth] = wide;
    if [
        batches,
        height.div_ceil(size),
        width.div_ceil(size),
        depth.checked_mul(size.checked_mul(size)?)?,
    ] != deep
    {
        return None;
    }
    let mut next = 0;
    for batch in 0..batches {
        for y in 0..height {
            for x in 0..width {
                let block = (batch * deep[1] + y / size) * deep[2] + x / size;
                let at = block * deep[3] + ((y % size) * size + x % size) * depth;
                let (at, here) = (at * bytes, next * bytes);
                if to_depth {
                    elements(k, (0, here), (0, at), depth, bytes)?;
                } else {
                    elements(k, (0, at), (0, here), depth, bytes)?;
                }
                next += depth;
            }
        }
    }
    Some(())
}
