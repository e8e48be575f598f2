//! Operators whose output elements come from places of the input that follow from tables or formulas.

use arenaplan_schema::tflite::{MirrorPadMode, TensorType as Type};

use super::order::{Backwards, Loop, Nest};
use super::pair::{MOST, Pair, axis, product, strides};
use crate::contract::Overlap;

/// A loop that reads at one place a round.
fn gathering(write: i64, step: i64, places: impl Iterator<Item = i64>) -> Loop {
    Loop::table(write, places.map(|p| Some((p * step, p * step))).collect())
}

/// gather.cc: one `memcpy` for each position.
pub(super) fn gather(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let options = pair.op.table.builtin_options_as_gather_options();
    let positions = pair.constant(1)?;
    let (from, positions_dims) = (&pair.from_dims, pair.dims(1)?);
    let at = axis(options.map_or(0, |o| o.axis()).into(), from.len())?;
    let batch_dims = options.map_or(0, |o| o.batch_dims());
    // Positions for each batch are another table for each round of the outermost loop.
    if pair.input != 0 || !pair.same_type() || batch_dims != 0 {
        return None;
    }
    let expected = [&from[..at], &positions_dims, &from[at + 1..]].concat();
    let inside = positions.iter().all(|p| (0..from[at]).contains(p));
    if expected != pair.to_dims || !inside {
        return None;
    }
    let inner = product(&from[at + 1..]) * pair.from_size;
    let count = positions.len() as i64;
    Some(pair.nest(&Nest {
        block: true,
        ..Nest::copying(
            vec![
                Loop::new(product(&from[..at]), count * inner, from[at] * inner),
                gathering(inner, inner, positions.into_iter()),
            ],
            inner,
        )
    }))
}

/// mirror_pad.cc: the output from its start to its end, each element from its mirror image.
pub(super) fn mirror_pad(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let options = pair.op.table.builtin_options_as_mirror_pad_options();
    let offset = match options.map_or(MirrorPadMode::REFLECT, |o| o.mode()) {
        MirrorPadMode::REFLECT => 1,
        MirrorPadMode::SYMMETRIC => 0,
        _ => return None,
    };
    let margins = pair.constant(1)?;
    let rank = pair.from_dims.len();
    let whole = margins.len() == 2 * rank && pair.to_dims.len() == rank;
    if pair.input != 0 || !pair.same_type() || !whole {
        return None;
    }
    let reads = strides(&pair.from_dims, pair.from_size);
    let writes = strides(&pair.to_dims, pair.to_size);
    let mut loops = Vec::new();
    for k in 0..rank {
        let (before, after, dim) = (margins[2 * k], margins[2 * k + 1], pair.from_dims[k]);
        let fits = |margin: i64| (0..=dim - offset).contains(&margin);
        if !fits(before)
            || !fits(after)
            || before + dim + after != pair.to_dims[k]
            || pair.to_dims[k] > MOST
        {
            return None;
        }
        let places = (0..pair.to_dims[k]).map(|x| {
            if x < before {
                before + offset - 1 - x
            } else if x < before + dim {
                x - before
            } else {
                dim - 1 - offset - (x - before - dim)
            }
        });
        loops.push(gathering(writes[k], reads[k], places));
    }
    Some(pair.nest(&Nest::copying(loops, pair.from_size)))
}

/// broadcast_to.h: the output from its start to its end, by `memcpy`.
///
/// Newer versions copy single elements; older ones copy the dimensions behind the last repeated one at once, and repeat
/// what they have written instead of reading it again. The promise holds for both.
pub(super) fn broadcast_to(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let (from, to) = (&pair.from_dims, &pair.to_dims);
    if pair.input != 0 || !pair.same_type() || from.len() > to.len() {
        return None;
    }
    let mut loops = super::rows::spread(to, from, pair.to_size, pair.from_size)?;
    let missing = to.len() - from.len();
    let repeated = (0..to.len())
        .rev()
        .find(|&k| k < missing || from[k - missing] != to[k]);
    let kept = repeated.map_or(0, |k| k + 1);
    loops.truncate(kept);
    Some(pair.nest(&Nest {
        block: true,
        ..Nest::copying(loops, product(&to[kept..]) * pair.to_size)
    }))
}

/// How an image of batch, height, width and channels is resized.
struct Resize {
    /// Batches; bytes of a pixel.
    batches: i64,
    pixel: i64,
    /// Height and width, of input and output.
    from: [i64; 2],
    to: [i64; 2],
}

impl Resize {
    fn of(pair: &Pair<'_, '_>) -> Option<Self> {
        let (&[n, h, w, c], &[to_n, oh, ow, to_c]) = (&pair.from_dims[..], &pair.to_dims[..])
        else {
            return None;
        };
        let alike = pair.same_type() && n == to_n && c == to_c;
        // TFLM takes the size from this input, and does not compare.
        let stated = pair.constant(1)? == [oh, ow];
        if pair.input != 0 || !alike || !stated || oh > MOST || ow > MOST {
            return None;
        }
        Some(Self {
            batches: n,
            pixel: c * pair.from_size,
            from: [h, w],
            to: [oh, ow],
        })
    }

    /// Batch, row and column; `places` are the first and last row or column that each output row or column reads.
    fn loops(&self, places: [Vec<(i64, i64)>; 2]) -> Vec<Loop> {
        let &Self {
            batches,
            pixel,
            from: [h, w],
            to: [oh, ow],
        } = self;
        let table = |write, step, places: Vec<(i64, i64)>| {
            let at = |(a, b): (i64, i64)| Some((a.min(b) * step, a.max(b) * step));
            Loop::table(write, places.into_iter().map(at).collect())
        };
        let [rows, columns] = places;
        vec![
            Loop::new(batches, oh * ow * pixel, h * w * pixel),
            table(ow * pixel, w * pixel, rows),
            table(pixel, pixel, columns),
        ]
    }
}

/// resize_nearest_neighbor.h: one `memcpy` a pixel.
pub(super) fn resize_nearest(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let options = pair
        .op
        .table
        .builtin_options_as_resize_nearest_neighbor_options();
    let (corners, centers) = (
        options.is_some_and(|o| o.align_corners()),
        options.is_some_and(|o| o.half_pixel_centers()),
    );
    let resize = Resize::of(pair)?;
    let places = |k: usize| -> Option<Vec<(i64, i64)>> {
        let (from, to) = (resize.from[k], resize.to[k]);
        let scale = match corners && to > 1 {
            true => (from - 1) as f32 / (to - 1) as f32,
            false => from as f32 / to as f32,
        };
        let offset = if centers { 0.5 } else { 0.0 };
        (0..to)
            .map(|x| {
                let place = (x as f32 + offset) * scale;
                let place = if corners {
                    place.round()
                } else {
                    place.floor()
                };
                let place = (place as i64).min(from - 1);
                (place >= 0).then_some((place, place))
            })
            .collect()
    };
    let loops = resize.loops([places(0)?, places(1)?]);
    Some(pair.nest(&Nest {
        block: true,
        ..Nest::copying(loops, resize.pixel)
    }))
}

/// resize_bilinear.h: each channel from up to four pixels.
pub(super) fn resize_bilinear(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let options = pair.op.table.builtin_options_as_resize_bilinear_options();
    let (corners, centers) = (
        options.is_some_and(|o| o.align_corners()),
        options.is_some_and(|o| o.half_pixel_centers()),
    );
    let resize = Resize::of(pair)?;
    let places = |k: usize| -> Option<Vec<(i64, i64)>> {
        let (from, to) = (resize.from[k], resize.to[k]);
        let inside = |low: i64, high: i64| {
            let (low, high) = (low.max(0), high.min(from - 1));
            (low < from && high >= 0).then_some((low, high))
        };
        let reach = |x: i64| match pair.from.ty {
            Type::FLOAT32 => bilinear_float(x, from, to, corners, centers),
            Type::INT8 => bilinear_integer(x, from, to, corners, centers),
            _ => None,
        };
        (0..to)
            .map(|x| reach(x).and_then(|(low, high)| inside(low, high)))
            .collect()
    };
    let mut loops = resize.loops([places(0)?, places(1)?]);
    let size = pair.from_size;
    loops.push(Loop::new(resize.pixel / size, size, size));
    Some(pair.nest(&Nest::copying(loops, size)))
}

/// `ComputeInterpolationValues`: the first and the last place, before they are brought inside.
fn bilinear_float(x: i64, from: i64, to: i64, corners: bool, centers: bool) -> Option<(i64, i64)> {
    let scale = match corners && to > 1 {
        true => (from - 1) as f32 / (to - 1) as f32,
        false => from as f32 / to as f32,
    };
    if !centers {
        let place = x as f32 * scale;
        return Some((place.floor() as i64, place.ceil() as i64));
    }
    // A compiler may round once or twice here.
    let center = x as f32 + 0.5;
    let (twice, once) = (center * scale - 0.5, center.mul_add(scale, -0.5));
    let (low, high) = (twice.min(once), twice.max(once));
    Some((low.floor() as i64, high.ceil() as i64))
}

/// `ComputeInterpolationValuesInteger`, in steps of 1/1024; `None` where 32 bits do not hold them.
fn bilinear_integer(
    x: i64,
    from: i64,
    to: i64,
    corners: bool,
    centers: bool,
) -> Option<(i64, i64)> {
    let (from, to) = match corners && to > 1 {
        true => (from - 1, to - 1),
        false => (from, to),
    };
    let scaled = from.checked_mul(1024)?.checked_add(to / 2)?;
    let scale = scaled / to;
    let place = x.checked_mul(scale)? + if centers { scale / 2 - 512 } else { 0 };
    let fits = |n: i64| i32::try_from(n).is_ok();
    (fits(scaled) && fits(place + 1023)).then_some((place / 1024, (place + 1023) / 1024))
}

/// An image, or a row of pixels, as the two operators between space and batch take it: batch, height, width, channels.
fn image(dims: &[i64]) -> Option<[i64; 4]> {
    match *dims {
        [n, h, w, c] => Some([n, h, w, c]),
        [n, h, c] => Some([n, h, 1, c]),
        _ => None,
    }
}

/// Block sizes, and what is added before or cut off: each of height and width.
fn block_and_margins(pair: &Pair<'_, '_>) -> Option<([i64; 2], [i64; 2])> {
    let (block, margins) = (pair.constant(1)?, pair.constant(2)?);
    let (block, margins) = match (pair.from_dims.len(), &block[..], &margins[..]) {
        (4, &[h, w], &[top, _, left, _]) => ([h, w], [top, left]),
        (3, &[h], &[top, _]) => ([h, 1], [top, 0]),
        _ => return None,
    };
    let small = |n: &i64| (0..=MOST).contains(n);
    (block.iter().all(|&b| b > 0) && block.iter().chain(&margins).all(small))
        .then_some((block, margins))
}

/// space_to_batch_nd.h: the output pixel by pixel, by `memset` where it is padding, by `memcpy` elsewhere.
/// batch_to_space_nd.h: the input pixel by pixel, by `memcpy` except where it is cropped.
pub(super) fn between_space_and_batch(pair: &Pair<'_, '_>, into_batch: bool) -> Option<Overlap> {
    let ([block_h, block_w], [top, left]) = block_and_margins(pair)?;
    let (from, to) = (image(&pair.from_dims)?, image(&pair.to_dims)?);
    let (many, wide) = if into_batch { (to, from) } else { (from, to) };
    let ([batches, h, w, depth], [wide_batches, wide_h, wide_w, wide_depth]) = (many, wide);
    let rows = batches * h;
    let fits = wide_batches
        .checked_mul(block_h * block_w)
        .is_some_and(|n| n == batches);
    let alike = pair.same_type() && pair.from_dims.len() == pair.to_dims.len();
    if pair.input != 0 || !alike || !fits || depth != wide_depth || rows > MOST {
        return None;
    }
    let bytes = depth * pair.from_size;
    let mut order = Backwards::default();
    for row in (0..rows).rev() {
        let (y, batch) = (row % h, row / h);
        let shift = batch / wide_batches;
        let wide_y = y * block_h + shift / block_w - top;
        let wide_x = |x: i64| x * block_w + shift % block_w - left;
        // Along a row everything is linear, so that the first and the last pixel of each kind decide.
        let inside = |x: i64| {
            (0..wide_h).contains(&wide_y) && (0..w).contains(&x) && (0..wide_w).contains(&wide_x(x))
        };
        let first = (left - shift % block_w + block_w - 1).max(0) / block_w;
        let last = (wide_w - 1 + left - shift % block_w).div_euclid(block_w);
        let mut columns = [0, first, last.min(w - 1), w - 1];
        columns.sort_unstable();
        for x in columns.into_iter().rev().filter(|x| (0..w).contains(x)) {
            let wide_row = batch % wide_batches * wide_h + wide_y;
            let wide_at = (wide_row * wide_w + wide_x(x)) * bytes;
            let many_at = (row * w + x) * bytes;
            match (inside(x), into_batch) {
                (true, true) => order.copy(many_at, wide_at, bytes),
                (true, false) => order.copy(wide_at, many_at, bytes),
                (false, true) => order.write(many_at, bytes),
                (false, false) => {}
            }
        }
    }
    Some(pair.overlap(order.needs()))
}
