//! Operators that make images larger or smaller.

use crate::error::Fault;
use crate::kernel::{Code, Kernel};
use crate::memory::{View, ViewMut};
use crate::node::{Node, Tensor};
use crate::types::Type;

use super::{Numbers, element_bytes};

/// `RESIZE_NEAREST_NEIGHBOR`: of any type.
pub const RESIZE_NEAREST_NEIGHBOR: Kernel =
    Kernel::builtin(Code::RESIZE_NEAREST_NEIGHBOR, nearest_neighbor);
/// `RESIZE_BILINEAR`: int8, with weights in 1/1024, and float32.
pub const RESIZE_BILINEAR: Kernel = Kernel::builtin(Code::RESIZE_BILINEAR, bilinear);

/// A resized image, as bytes.
struct Resize<'a> {
    batches: usize,
    height: usize,
    width: usize,
    depth: usize,
    out_height: usize,
    out_width: usize,
    element: usize,
    align_corners: bool,
    half_pixel_centers: bool,
    from: View<'a, u8>,
    to: ViewMut<'a, u8>,
}

impl<'a> Resize<'a> {
    /// `slots` are those of the options "align corners" and "half pixel centers".
    fn new(
        node: &Node<'a>,
        input: &Tensor<'a>,
        output: &Tensor<'a>,
        slots: (u16, u16),
    ) -> Result<Self, Fault> {
        let options = node.options()?;
        let element = element_bytes(input, output)?;
        let size = node.input(1)?;
        let [batches, height, width, depth] = input.shape().dims().ok_or(input.wrong_shape())?;
        let [n, out_height, out_width, channels] =
            output.shape().dims().ok_or(output.wrong_shape())?;
        let asked = Numbers::of(&size)?;
        let is = |index, dim| usize::try_from(asked.get(index)) == Ok(dim);
        if asked.len() != 2 || !is(0, out_height) || !is(1, out_width) {
            return Err(size.wrong_value());
        }
        if n != batches || channels != depth {
            return Err(output.wrong_shape());
        }
        if input.is_empty() && !output.is_empty() {
            return Err(input.wrong_shape());
        }
        Ok(Self {
            // Nothing to walk through, however many rows of nothing there are.
            batches: if output.is_empty() { 0 } else { batches },
            height,
            width,
            depth,
            out_height,
            out_width,
            element,
            align_corners: options.bool(slots.0, false)?,
            half_pixel_centers: options.bool(slots.1, false)?,
            from: input.bytes()?,
            to: output.bytes_mut()?,
        })
    }

    /// The ratio of the sizes: of those between the centers of the first and the last pixel, if corners are aligned.
    fn ratio(&self, size: usize, out_size: usize) -> (usize, usize) {
        match self.align_corners && out_size > 1 {
            true => (size.wrapping_sub(1), out_size.wrapping_sub(1)),
            false => (size, out_size),
        }
    }

    /// Pixel `x` of row `y` of the input of batch `n`, by its number.
    fn pixel(&self, n: usize, y: usize, x: usize) -> usize {
        let row = n.wrapping_mul(self.height).wrapping_add(y);
        row.wrapping_mul(self.width).wrapping_add(x)
    }
}

fn nearest_neighbor(node: &Node<'_>) -> Result<(), Fault> {
    const ALIGN_CORNERS: u16 = 0;
    const HALF_PIXEL_CENTERS: u16 = 1;
    let (input, output) = (node.input(0)?, node.output(0)?);
    let slots = (ALIGN_CORNERS, HALF_PIXEL_CENTERS);
    let resize = Resize::new(node, &input, &output, slots)?;
    // `GetNearestNeighbor` in TFLM's resize_nearest_neighbor.h.
    let offset = if resize.half_pixel_centers { 0.5 } else { 0.0 };
    let scale = |size: usize, out_size: usize| {
        let (size, out_size) = resize.ratio(size, out_size);
        size as f32 / out_size as f32
    };
    let nearest = |value: usize, scale: f32, size: usize| {
        let scaled = (value as f32 + offset) * scale;
        let scaled = match resize.align_corners {
            true => libm::roundf(scaled),
            // Not negative, so that this rounds down.
            false => scaled,
        };
        (scaled as usize).min(size.saturating_sub(1))
    };
    let row_scale = scale(resize.height, resize.out_height);
    let column_scale = scale(resize.width, resize.out_width);
    let bytes = resize.depth.wrapping_mul(resize.element);
    let mut out = 0usize;
    for n in 0..resize.batches {
        for y in 0..resize.out_height {
            let y = nearest(y, row_scale, resize.height);
            for x in 0..resize.out_width {
                let x = nearest(x, column_scale, resize.width);
                let from = resize.pixel(n, y, x).wrapping_mul(bytes);
                let parts = (resize.from.part(from, bytes), resize.to.part(out, bytes));
                let (Some(from), Some(to)) = parts else {
                    return Err(output.wrong_shape());
                };
                to.copy_from(from);
                out = out.wrapping_add(bytes);
            }
        }
    }
    Ok(())
}

fn bilinear(node: &Node<'_>) -> Result<(), Fault> {
    // Before them are a height and a width that are no longer used.
    const ALIGN_CORNERS: u16 = 2;
    const HALF_PIXEL_CENTERS: u16 = 3;
    let (input, output) = (node.input(0)?, node.output(0)?);
    let slots = (ALIGN_CORNERS, HALF_PIXEL_CENTERS);
    let resize = Resize::new(node, &input, &output, slots)?;
    if resize.half_pixel_centers && resize.align_corners {
        return Err(Fault::Unsupported(HALF_PIXEL_CENTERS as u8));
    }
    match output.element_type() {
        Type::INT8 => integers(&resize),
        Type::FLOAT32 => floats(&resize),
        _ => return Err(output.wrong_type()),
    }
    Ok(())
}

/// Two neighbours in the input, and how far from the first one towards the second.
#[derive(Clone, Copy)]
struct Between<T> {
    first: usize,
    second: usize,
    weight: T,
}

/// `ResizeBilinearInteger` in TFLM's resize_bilinear.h.
fn integers(resize: &Resize<'_>) {
    let scale = |size: usize, out_size: usize| {
        let (size, out_size) = resize.ratio(size, out_size);
        let (size, out_size) = (size as i32, out_size as i32);
        let sum = size.wrapping_mul(1 << 10).wrapping_add(out_size / 2);
        sum.checked_div(out_size).unwrap_or(0)
    };
    let between = |value: usize, scale: i32, size: usize| {
        let scaled = (value as i32).wrapping_mul(scale);
        let scaled = match resize.half_pixel_centers {
            true => scaled.wrapping_add(scale / 2).wrapping_sub(1 << 9),
            false => scaled,
        };
        let last = (size as i32).wrapping_sub(1);
        let first = (scaled / (1 << 10)).max(0);
        let second = (scaled.wrapping_add((1 << 10) - 1) / (1 << 10)).min(last);
        Between {
            first: first.min(last).max(0) as usize,
            second: second.max(0) as usize,
            weight: scaled.wrapping_sub(first.wrapping_mul(1 << 10)),
        }
    };
    let (Some(from), Some(to)) = (resize.from.cast::<i8>(), resize.to.cast::<i8>()) else {
        return;
    };
    let row_scale = scale(resize.height, resize.out_height);
    let column_scale = scale(resize.width, resize.out_width);
    let depth = resize.depth;
    let mut out = 0usize;
    for n in 0..resize.batches {
        for y in 0..resize.out_height {
            let rows = between(y, row_scale, resize.height);
            for x in 0..resize.out_width {
                let columns = between(x, column_scale, resize.width);
                let pixel = |y, x| {
                    let start = resize.pixel(n, y, x).wrapping_mul(depth);
                    from.part(start, depth).unwrap_or_default()
                };
                let corners = [
                    pixel(rows.first, columns.first),
                    pixel(rows.second, columns.first),
                    pixel(rows.first, columns.second),
                    pixel(rows.second, columns.second),
                ];
                let (down, right) = (rows.weight, columns.weight);
                let (up, left) = (
                    (1i32 << 10).wrapping_sub(down),
                    (1i32 << 10).wrapping_sub(right),
                );
                let weights = [
                    up.wrapping_mul(left),
                    down.wrapping_mul(left),
                    up.wrapping_mul(right),
                    down.wrapping_mul(right),
                ];
                for channel in 0..depth {
                    let mut sum = 0i32;
                    for (corner, weight) in corners.iter().zip(weights) {
                        sum = sum.wrapping_add(i32::from(corner.get(channel)).wrapping_mul(weight));
                    }
                    let half = if sum > 0 { 1 << 19 } else { -(1 << 19) };
                    to.set(out, (sum.wrapping_add(half) / (1 << 20)) as i8);
                    out += 1;
                }
            }
        }
    }
}

/// `ResizeBilinear` in TFLM's resize_bilinear.h.
fn floats(resize: &Resize<'_>) {
    let scale = |size: usize, out_size: usize| {
        let (size, out_size) = resize.ratio(size, out_size);
        size as f32 / out_size as f32
    };
    let between = |value: usize, scale: f32, size: usize| {
        let scaled = match resize.half_pixel_centers {
            true => (value as f32 + 0.5) * scale - 0.5,
            false => value as f32 * scale,
        };
        let last = size.saturating_sub(1);
        // What is negative becomes 0.
        let first = libm::floorf(scaled) as usize;
        Between {
            first: first.min(last),
            second: (libm::ceilf(scaled) as usize).min(last),
            weight: scaled - first as f32,
        }
    };
    let (Some(from), Some(to)) = (resize.from.cast::<f32>(), resize.to.cast::<f32>()) else {
        return;
    };
    let row_scale = scale(resize.height, resize.out_height);
    let column_scale = scale(resize.width, resize.out_width);
    let depth = resize.depth;
    let mut out = 0usize;
    for n in 0..resize.batches {
        for y in 0..resize.out_height {
            let rows = between(y, row_scale, resize.height);
            for x in 0..resize.out_width {
                let columns = between(x, column_scale, resize.width);
                let pixel = |y, x| {
                    let start = resize.pixel(n, y, x).wrapping_mul(depth);
                    from.part(start, depth).unwrap_or_default()
                };
                let corners = [
                    pixel(rows.first, columns.first),
                    pixel(rows.second, columns.first),
                    pixel(rows.first, columns.second),
                    pixel(rows.second, columns.second),
                ];
                let (down, right) = (rows.weight, columns.weight);
                let (up, left) = (1.0 - down, 1.0 - right);
                for channel in 0..depth {
                    let [a, b, c, d] = corners.map(|corner| corner.get(channel));
                    let sum = a * up * left + b * down * left + c * up * right + d * down * right;
                    to.set(out, sum);
                    out += 1;
                }
            }
        }
    }
}
