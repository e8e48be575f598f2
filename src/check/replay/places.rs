//! Kernels whose output comes from places of the input that tables or formulas name.

use arenaplan_schema::tflite::{BuiltinOperator as Op, MirrorPadMode};

use super::{Kernel, element_bytes, product, shape};

/// The kernel takes input and output for tensors of one type.
fn same_type(k: &mut Kernel<'_, '_, '_>) -> Option<u64> {
    let input = k.input(0)?;
    k.streamed[0] = true;
    (input.ty == k.output(0)?.ty).then_some(element_bytes(input)?)
}

/// gather.cc: a `memcpy` for each position, which must be known.
pub(super) fn gather(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let options = k.op.table.builtin_options_as_gather_options();
    let positions = k.constant(1)?;
    let (from, coordinates) = (shape(k.input(0)?)?, shape(k.input(1)?)?);
    let from_end = |n: i32, rank: usize| {
        let n = i64::from(n);
        usize::try_from(if n < 0 { n + rank as i64 } else { n }).ok()
    };
    let axis = from_end(options.map_or(0, |o| o.axis()), from.len())?;
    let batched = from_end(options.map_or(0, |o| o.batch_dims()), coordinates.len())?;
    let bytes = same_type(k)?;
    let inner = product(from.get(axis + 1..)?)?.checked_mul(bytes)?;
    let size = *from.get(axis)?;
    let (batches, outer) = (
        product(from.get(..batched)?)?,
        product(from.get(batched..axis)?)?,
    );
    let count = product(coordinates.get(batched..)?)?;
    let mut to = 0;
    for batch in 0..batches {
        for block in 0..outer {
            for i in 0..count {
                let at = usize::try_from(batch * count + i).ok()?;
                let position = u64::try_from(*positions.get(at)?).ok()?;
                if position >= size {
                    return None;
                }
                let row = (batch * outer + block) * size + position;
                k.copy(0, row * inner, 0, to, inner)?;
                to += inner;
            }
        }
    }
    Some(())
}

/// Calls `run` for each element of `dims` in order, with its place in a tensor in which index `i` of dimension `d` is at
/// `tables[d][i]`.
fn each_place<'g, 'a, 'e>(
    k: &mut Kernel<'g, 'a, 'e>,
    tables: &[Vec<u64>],
    mut run: impl FnMut(&mut Kernel<'g, 'a, 'e>, u64, u64) -> Option<()>,
) -> Option<()> {
    let mut index = vec![0usize; tables.len()];
    let all = tables
        .iter()
        .try_fold(1u64, |n, t| n.checked_mul(t.len() as u64))?;
    for element in 0..all {
        k.step(1)?;
        let place = index.iter().zip(tables).map(|(&i, table)| table[i]).sum();
        run(k, element, place)?;
        for (i, table) in index.iter_mut().zip(tables).rev() {
            *i += 1;
            if *i < table.len() {
                break;
            }
            *i = 0;
        }
    }
    Some(())
}

/// Elements from one position of each dimension to the next.
fn strides(dims: &[u64]) -> Option<Vec<u64>> {
    let mut strides = vec![1u64; dims.len()];
    for d in (1..dims.len()).rev() {
        strides[d - 1] = strides[d].checked_mul(dims[d])?;
    }
    Some(strides)
}

/// mirror_pad.cc: every output element in order, from its mirror image.
pub(super) fn mirror_pad(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let options = k.op.table.builtin_options_as_mirror_pad_options();
    let offset = match options.map_or(MirrorPadMode::REFLECT, |o| o.mode()) {
        MirrorPadMode::REFLECT => 1,
        _ => 0,
    };
    let paddings = k.constant(1)?;
    let (from, to) = (shape(k.input(0)?)?, shape(k.output(0)?)?);
    if from.len() != to.len() || paddings.len() != 2 * from.len() {
        return None;
    }
    let bytes = same_type(k)?;
    k.step(to.iter().try_fold(0u64, |n, &d| n.checked_add(d))?)?;
    let strides = strides(&from)?;
    let mut tables = Vec::new();
    for d in 0..from.len() {
        let (left, size) = (paddings[2 * d], i64::try_from(from[d]).ok()?);
        if !(0..=to[d] as i64).contains(&left) {
            return None;
        }
        let mirrored = |at: i64| {
            let last = size - 1 - offset;
            match at - left {
                before if before < 0 => left + offset - 1 - at,
                behind if behind >= size => last - (behind - size).min(last),
                inside => inside,
            }
        };
        let table = (0..to[d] as i64).map(|at| {
            let at = u64::try_from(mirrored(at))
                .ok()
                .filter(|&at| at < from[d])?;
            Some(at * strides[d])
        });
        tables.push(table.collect::<Option<Vec<_>>>()?);
    }
    each_place(k, &tables, |k, element, place| {
        k.read(0, place * bytes, (place + 1) * bytes)?;
        k.write(0, element * bytes, (element + 1) * bytes)
    })
}

/// broadcast_to.h: what lies behind the last dimension that is spread is one `memcpy` for each repetition. Further ones may
/// be copied from the output, or from the input again; the latter asks for more.
pub(super) fn broadcast_to(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let (from, to) = (shape(k.input(0)?)?, shape(k.output(0)?)?);
    let bytes = same_type(k)?;
    let missing = to.len().checked_sub(from.len())?;
    let from = [vec![1; missing], from].concat();
    let spread = (0..to.len()).rev().find(|&d| from[d] != to[d]);
    let kept = spread.map_or(0, |d| d + 1);
    let block = product(&to[kept..])?.checked_mul(bytes)?;
    k.step(to.iter().try_fold(0u64, |n, &d| n.checked_add(d))?)?;
    let strides = strides(&from)?;
    let mut tables = Vec::new();
    for d in 0..kept {
        let step = match from[d] {
            n if n == to[d] => strides[d],
            1 => 0,
            _ => return None,
        };
        tables.push((0..to[d]).map(|i| i * step).collect::<Vec<_>>());
    }
    each_place(k, &tables, |k, element, place| {
        k.copy(0, place * bytes, 0, element * block, block)
    })
}

/// An image, or a row of pixels, as the two operators between space and batch take it.
fn image_or_row(dims: &[u64]) -> Option<[u64; 4]> {
    match *dims {
        [n, h, w, c] => Some([n, h, w, c]),
        [n, h, c] => Some([n, h, 1, c]),
        _ => None,
    }
}

/// space_to_batch_nd.h walks the output, batch_to_space_nd.h the input: a `memcpy` for each pixel that lies inside of the
/// other, and `memset` for padding.
pub(super) fn space_and_batch(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let (block, margins) = (k.constant(1)?, k.constant(2)?);
    let (from, to) = (shape(k.input(0)?)?, shape(k.output(0)?)?);
    let rank = from.len();
    let ([block_h, block_w], [top, left]) = match (rank, &block[..], &margins[..]) {
        (4, &[h, w], &[top, _, left, _]) => ([h, w], [top, left]),
        (3, &[h], &[top, _]) => ([h, 1], [top, 0]),
        _ => return None,
    };
    let small = |n: i64| (0..=1 << 20).contains(&n);
    if to.len() != rank
        || block_h < 1
        || block_w < 1
        || ![block_h, block_w, top, left].into_iter().all(small)
    {
        return None;
    }
    let to_batch = k.op.code == Op::SPACE_TO_BATCH_ND;
    let (from, to) = (image_or_row(&from)?, image_or_row(&to)?);
    let (many, wide) = if to_batch { (to, from) } else { (from, to) };
    if many[3] != wide[3] || wide[0] == 0 {
        return None;
    }
    let bytes = many[3].checked_mul(same_type(k)?)?;
    let mut here = 0;
    for batch in 0..many[0] {
        let shift = (batch / wide[0]) as i64;
        for y in 0..many[1] {
            for x in 0..many[2] {
                k.step(1)?;
                let wide_y = y as i64 * block_h + shift / block_w - top;
                let wide_x = x as i64 * block_w + shift % block_w - left;
                let inside = |n: i64, size: u64| u64::try_from(n).ok().filter(|&n| n < size);
                match (inside(wide_y, wide[1]), inside(wide_x, wide[2])) {
                    (Some(wide_y), Some(wide_x)) => {
                        let pixel = (batch % wide[0] * wide[1] + wide_y) * wide[2] + wide_x;
                        let there = pixel * bytes;
                        if to_batch {
                            k.copy(0, there, 0, here, bytes)?;
                        } else {
                            k.copy(0, here, 0, there, bytes)?;
                        }
                    }
                    _ if to_batch => k.write(0, here, here + bytes)?,
                    _ => {}
                }
                here += bytes;
            }
        }
    }
    Some(())
}
