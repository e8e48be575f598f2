//! Operators that make batches of every so many pixels, and images of those.

use crate::error::Fault;
use crate::kernel::{Code, Kernel};
use crate::node::{Node, Shape, Tensor};

use super::pad::{fill, zero};
use super::{Numbers, element_bytes};

/// `SPACE_TO_BATCH_ND`: of any type, with 3 or 4 dimensions: batch, height, width (not with 3), channels.
///
/// What lies outside of the input is zero, or the zero point of an int8 or uint8 output.
pub const SPACE_TO_BATCH_ND: Kernel = Kernel::builtin(Code::SPACE_TO_BATCH_ND, space_to_batch);
/// `BATCH_TO_SPACE_ND`: of any type, with 3 or 4 dimensions: batch, height, width (not with 3), channels.
pub const BATCH_TO_SPACE_ND: Kernel = Kernel::builtin(Code::BATCH_TO_SPACE_ND, batch_to_space);

/// Batch, height, width and channels.
fn dims(tensor: &Tensor<'_>) -> Result<[usize; 4], Fault> {
    let shape: Shape<'_> = tensor.shape();
    if let Some([n, h, c]) = shape.dims() {
        return Ok([n, h, 1, c]);
    }
    shape.dims().ok_or(tensor.wrong_shape())
}

/// The small batches' pixels, and where they are in the large images.
struct Grid {
    /// Of the tensor with the large images.
    large: [usize; 4],
    /// Of the tensor with more batches.
    small: [usize; 4],
    block: [usize; 2],
    /// Rows and columns of the grid before the first one of the large images.
    before: [usize; 2],
    /// Bytes of a pixel.
    pixel: usize,
}

impl Grid {
    fn new(node: &Node<'_>, large: &Tensor<'_>, small: &Tensor<'_>) -> Result<Self, Fault> {
        let element = element_bytes(large, small)?;
        let (blocks, borders) = (node.input(1)?, node.input(2)?);
        let spatial = large.shape().rank().saturating_sub(2);
        let (sizes, edges) = (Numbers::of(&blocks)?, Numbers::of(&borders)?);
        if sizes.len() != spatial {
            return Err(blocks.wrong_shape());
        }
        if edges.len() != 2 * spatial {
            return Err(borders.wrong_shape());
        }
        let mut grid = Self {
            large: dims(large)?,
            small: dims(small)?,
            block: [1; 2],
            before: [0; 2],
            pixel: 0,
        };
        let [n, height, width, channels] = grid.large;
        let [small_n, small_height, small_width, small_channels] = grid.small;
        let axes = [(height, small_height), (width, small_width)];
        let of_axes = grid.block.iter_mut().zip(&mut grid.before).zip(axes);
        for (k, ((block, before), (large, small_dim))) in of_axes.enumerate().take(spatial) {
            let number = |found: i32| usize::try_from(found).ok();
            *block = number(sizes.get(k))
                .filter(|&size| size != 0)
                .ok_or(blocks.wrong_value())?;
            let edges = (number(edges.get(2 * k)), number(edges.get(2 * k + 1)));
            let (Some(first), Some(last)) = edges else {
                return Err(borders.wrong_value());
            };
            *before = first;
            let all = large
                .checked_add(first)
                .and_then(|sum| sum.checked_add(last));
            if all.is_none() || all != small_dim.checked_mul(*block) {
                return Err(small.wrong_shape());
            }
        }
        let [block_height, block_width] = grid.block;
        let times = (n.checked_mul(block_height)).and_then(|n| n.checked_mul(block_width));
        if times != Some(small_n) || channels != small_channels {
            return Err(small.wrong_shape());
        }
        grid.pixel = channels.wrapping_mul(element);
        Ok(grid)
    }

    /// Number of a pixel.
    fn number([_, height, width, _]: [usize; 4], n: usize, y: usize, x: usize) -> usize {
        n.wrapping_mul(height)
            .wrapping_add(y)
            .wrapping_mul(width)
            .wrapping_add(x)
    }
}

fn space_to_batch(node: &Node<'_>) -> Result<(), Fault> {
    let (input, output) = (node.input(0)?, node.output(0)?);
    let grid = Grid::new(node, &input, &output)?;
    let element = element_bytes(&input, &output)?;
    let zero = zero(&output)?;
    let (from, to) = (input.bytes()?, output.bytes_mut()?);
    if to.is_empty() {
        return Ok(());
    }
    let Grid {
        large,
        small,
        pixel,
        ..
    } = grid;
    let [batches, height, width, _] = large;
    let [_, out_height, out_width, _] = small;
    let [block_height, block_width] = grid.block;
    let [top, left] = grid.before;
    let mut out = 0usize;
    for shift_y in 0..block_height {
        for shift_x in 0..block_width {
            for n in 0..batches {
                for y in 0..out_height {
                    let y = (y.wrapping_mul(block_height).wrapping_add(shift_y)).checked_sub(top);
                    for x in 0..out_width {
                        let x =
                            (x.wrapping_mul(block_width).wrapping_add(shift_x)).checked_sub(left);
                        let part = to.part(out, pixel).ok_or(output.wrong_shape())?;
                        out = out.wrapping_add(pixel);
                        match (y.filter(|&y| y < height), x.filter(|&x| x < width)) {
                            (Some(y), Some(x)) => {
                                let at = Grid::number(large, n, y, x).wrapping_mul(pixel);
                                let bytes = from.part(at, pixel);
                                part.copy_from(bytes.ok_or(input.wrong_shape())?);
                            }
                            _ => fill(part, element, zero),
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

fn batch_to_space(node: &Node<'_>) -> Result<(), Fault> {
    let (input, output) = (node.input(0)?, node.output(0)?);
    let grid = Grid::new(node, &output, &input)?;
    let (from, to) = (input.bytes()?, output.bytes_mut()?);
    if to.is_empty() {
        return Ok(());
    }
    let Grid {
        large,
        small,
        pixel,
        ..
    } = grid;
    let [batches, height, width, _] = large;
    let [block_height, block_width] = grid.block;
    let [top, left] = grid.before;
    let divided = |x: usize, block: usize| {
        let quotient = x.checked_div(block).unwrap_or(0);
        (quotient, x.wrapping_sub(quotient.wrapping_mul(block)))
    };
    let mut out = 0usize;
    for n in 0..batches {
        for y in 0..height {
            let (y, shift_y) = divided(y.wrapping_add(top), block_height);
            for x in 0..width {
                let (x, shift_x) = divided(x.wrapping_add(left), block_width);
                let shift = shift_y.wrapping_mul(block_width).wrapping_add(shift_x);
                let batch = shift.wrapping_mul(batches).wrapping_add(n);
                let at = Grid::number(small, batch, y, x).wrapping_mul(pixel);
                let parts = (from.part(at, pixel), to.part(out, pixel));
                let (Some(bytes), Some(part)) = parts else {
                    return Err(output.wrong_shape());
                };
                part.copy_from(bytes);
                out = out.wrapping_add(pixel);
            }
        }
    }
    Ok(())
}
