//! Operators that put the elements of a tensor in another order, or repeat them.

use crate::error::Fault;
use crate::kernel::{Code, Kernel};
use crate::node::{Node, Tensor};

use super::moves::Moves;
use super::{Numbers, element_bytes};

/// `TRANSPOSE`: the axes in another order, of any type, at most 8.
pub const TRANSPOSE: Kernel = Kernel::builtin(Code::TRANSPOSE, transpose);
/// `BROADCAST_TO`: dimensions of 1 repeated, of any type, at most 8.
pub const BROADCAST_TO: Kernel = Kernel::builtin(Code::BROADCAST_TO, broadcast_to);
/// `TILE`: the whole repeated along each axis, of any type; at most 8 dimensions above 1, counting a repeated axis twice.
///
/// TFLM has no such kernel; this is LiteRT's (`kernels/tile.cc`).
pub const TILE: Kernel = Kernel::builtin(Code::TILE, tile);
/// `SPACE_TO_DEPTH`: blocks of pixels as channels of one, of any type.
pub const SPACE_TO_DEPTH: Kernel = Kernel::builtin(Code::SPACE_TO_DEPTH, space_to_depth);
/// `DEPTH_TO_SPACE`: channels of a pixel as a block of pixels, of any type.
pub const DEPTH_TO_SPACE: Kernel = Kernel::builtin(Code::DEPTH_TO_SPACE, depth_to_space);

fn run(moves: &mut Moves, input: &Tensor<'_>, output: &Tensor<'_>) -> Result<(), Fault> {
    let element = element_bytes(input, output)?;
    match moves.run(input.bytes()?, output.bytes_mut()?, element) {
        true => Ok(()),
        false => Err(output.wrong_shape()),
    }
}

/// Bytes from one index of an axis to the next.
fn step(tensor: &Tensor<'_>, element: usize, axis: usize) -> isize {
    let shape = tensor.shape();
    let within = shape.product(axis + 1, shape.rank()).unwrap_or(0);
    within.wrapping_mul(element) as isize
}

fn transpose(node: &Node<'_>) -> Result<(), Fault> {
    let (input, output, permutation) = (node.input(0)?, node.output(0)?, node.input(1)?);
    let element = element_bytes(&input, &output)?;
    let (shape, out) = (input.shape(), output.shape());
    let axes = Numbers::of(&permutation)?;
    if axes.len() != shape.rank() {
        return Err(permutation.wrong_shape());
    }
    if out.rank() != shape.rank() {
        return Err(output.wrong_shape());
    }
    let mut moves = Moves::new();
    let mut seen = 0u32;
    for k in 0..out.rank() {
        let axis = super::axis(axes.get(k), shape.rank()).ok_or(permutation.wrong_value())?;
        seen |= 1u32.wrapping_shl(axis as u32);
        if out.dim(k) != shape.dim(axis) {
            return Err(output.wrong_shape());
        }
        moves.push(out.dim(k), step(&input, element, axis));
    }
    if seen.count_ones() as usize != shape.rank() {
        return Err(permutation.wrong_value());
    }
    run(&mut moves, &input, &output)
}

fn broadcast_to(node: &Node<'_>) -> Result<(), Fault> {
    let (input, output, target) = (node.input(0)?, node.output(0)?, node.input(1)?);
    let element = element_bytes(&input, &output)?;
    let (shape, out) = (input.shape(), output.shape());
    let dims = Numbers::of(&target)?;
    let Some(new) = out.rank().checked_sub(shape.rank()) else {
        return Err(output.wrong_shape());
    };
    if dims.len() != out.rank() {
        return Err(target.wrong_shape());
    }
    let mut moves = Moves::new();
    for k in 0..out.rank() {
        let count = out.dim(k);
        if usize::try_from(dims.get(k)) != Ok(count) {
            return Err(target.wrong_value());
        }
        let axis = k.checked_sub(new);
        let step = match axis.map_or(1, |axis| shape.dim(axis)) {
            dim if dim == count => step(&input, element, axis.unwrap_or(0)),
            1 => 0,
            _ => return Err(input.wrong_shape()),
        };
        moves.push(count, step);
    }
    run(&mut moves, &input, &output)
}

fn tile(node: &Node<'_>) -> Result<(), Fault> {
    let (input, output, multiples) = (node.input(0)?, node.output(0)?, node.input(1)?);
    let element = element_bytes(&input, &output)?;
    let (shape, out) = (input.shape(), output.shape());
    let times = Numbers::of(&multiples)?;
    if times.len() != shape.rank() {
        return Err(multiples.wrong_shape());
    }
    if out.rank() != shape.rank() {
        return Err(output.wrong_shape());
    }
    let mut moves = Moves::new();
    for axis in 0..shape.rank() {
        let times = usize::try_from(times.get(axis)).map_err(|_| multiples.wrong_value())?;
        let dim = shape.dim(axis);
        if dim.checked_mul(times) != Some(out.dim(axis)) {
            return Err(output.wrong_shape());
        }
        moves.push(times, 0);
        moves.push(dim, step(&input, element, axis));
    }
    run(&mut moves, &input, &output)
}

/// Height and width of `small` times the block are those of `large`, and its channels are as many times more.
fn block(node: &Node<'_>, small: &Tensor<'_>, large: &Tensor<'_>) -> Result<usize, Fault> {
    const BLOCK_SIZE: u16 = 0;
    let size = node.options()?.i32(BLOCK_SIZE, 0)?;
    let wrong = Fault::Unsupported(BLOCK_SIZE as u8);
    let size = usize::try_from(size).map_err(|_| wrong)?;
    if size == 0 {
        return Err(wrong);
    }
    let dims = (small.shape().dims::<4>(), large.shape().dims::<4>());
    let (Some([n, h, w, c]), Some([large_n, large_h, large_w, large_c])) = dims else {
        return Err(small.wrong_shape());
    };
    let times = |dim: usize| dim.checked_mul(size);
    let fits = n == large_n
        && times(h) == Some(large_h)
        && times(w) == Some(large_w)
        && times(large_c).and_then(times) == Some(c);
    if fits {
        Ok(size)
    } else {
        Err(small.wrong_shape())
    }
}

fn space_to_depth(node: &Node<'_>) -> Result<(), Fault> {
    let (input, output) = (node.input(0)?, node.output(0)?);
    let element = element_bytes(&input, &output)?;
    let block = block(node, &output, &input)?;
    let (row, pixel) = (step(&input, element, 1), step(&input, element, 2));
    let out = output.shape();
    let mut moves = Moves::new();
    moves.push(
        out.product(0, 2).unwrap_or(0),
        row.wrapping_mul(block as isize),
    );
    moves.push(out.dim(2), pixel.wrapping_mul(block as isize));
    moves.push(block, row);
    moves.push(block.wrapping_mul(input.shape().dim(3)), element as isize);
    run(&mut moves, &input, &output)
}

fn depth_to_space(node: &Node<'_>) -> Result<(), Fault> {
    let (input, output) = (node.input(0)?, node.output(0)?);
    let element = element_bytes(&input, &output)?;
    let block = block(node, &input, &output)?;
    let (row, pixel) = (step(&input, element, 1), step(&input, element, 2));
    let piece = block.wrapping_mul(output.shape().dim(3));
    let shape = input.shape();
    let mut moves = Moves::new();
    moves.push(shape.product(0, 2).unwrap_or(0), row);
    moves.push(block, piece.wrapping_mul(element) as isize);
    moves.push(shape.dim(2), pixel);
    moves.push(piece, element as isize);
    run(&mut moves, &input, &output)
}
