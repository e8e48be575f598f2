//! Operators that take a box out of a tensor.

use core::num::NonZeroU32;

use crate::contract::Contract;
use crate::error::{Fault, Operand};
use crate::kernel::{Code, Kernel};
use crate::node::{Node, Tensor, found};

use super::moves::Moves;
use super::{Numbers, element_bytes};

/// `SLICE`: a box of the input, of any type, with at most 8 dimensions. Begin and size are int32 or int64.
pub const SLICE: Kernel = Kernel::builtin(Code::SLICE, slice).with_contract(Contract::Slice);
/// `STRIDED_SLICE`: every so many elements of a box of the input, of any type, with at most 8 dimensions. Begin, end and
/// strides are int32 or int64; as in TFLM, each has a number for each dimension of the input
/// (`kernels/strided_slice_common.cc`).
pub const STRIDED_SLICE: Kernel =
    Kernel::builtin(Code::STRIDED_SLICE, strided_slice).with_contract(Contract::StridedSlice);

fn slice(node: &Node<'_>) -> Result<(), Fault> {
    const BEGIN: usize = 1;
    const SIZE: usize = 2;
    let (input, output) = (&node.input(0), &node.output(0));
    let (input, output) = (found(input)?, found(output)?);
    let (shape, out) = (input.shape(), output.shape());
    let begins = numbers(node, BEGIN, shape.rank())?;
    let sizes = numbers(node, SIZE, shape.rank())?;
    let wrong = |index| Fault::Value(Operand::Input(index as u8));
    if out.rank() != shape.rank() {
        return Err(output.wrong_shape());
    }
    let mut axes = Axes::of(input, output)?;
    for axis in 0..shape.rank() {
        let dim = shape.dim(axis);
        let start = usize::try_from(begins.get(axis)).map_err(|_| wrong(BEGIN))?;
        let rest = dim.checked_sub(start).ok_or(wrong(BEGIN))?;
        let count = match sizes.get(axis) {
            -1 => rest,
            count => usize::try_from(count).map_err(|_| wrong(SIZE))?,
        };
        if count > rest {
            return Err(wrong(SIZE));
        }
        if out.dim(axis) != count {
            return Err(output.wrong_shape());
        }
        axes.push(axis, start, count, 1);
    }
    axes.run()
}

fn strided_slice(node: &Node<'_>) -> Result<(), Fault> {
    const BEGIN_MASK: u16 = 0;
    const END_MASK: u16 = 1;
    const ELLIPSIS_MASK: u16 = 2;
    const NEW_AXIS_MASK: u16 = 3;
    const SHRINK_AXIS_MASK: u16 = 4;
    const OFFSET: u16 = 5;
    const STRIDES: usize = 3;
    let options = node.options()?;
    for slot in [ELLIPSIS_MASK, NEW_AXIS_MASK] {
        if options.i32(slot, 0)? != 0 {
            return Err(Fault::Unsupported(slot as u8));
        }
    }
    if options.bool(OFFSET, false)? {
        return Err(Fault::Unsupported(OFFSET as u8));
    }
    let begin_mask = options.i32(BEGIN_MASK, 0)?;
    let end_mask = options.i32(END_MASK, 0)?;
    let shrink_mask = options.i32(SHRINK_AXIS_MASK, 0)?;

    let (input, output) = (&node.input(0), &node.output(0));
    let (input, output) = (found(input)?, found(output)?);
    let (shape, out) = (input.shape(), output.shape());
    let begins = numbers(node, 1, shape.rank())?;
    let ends = numbers(node, 2, shape.rank())?;
    let steps = numbers(node, STRIDES, shape.rank())?;
    let mut axes = Axes::of(input, output)?;
    let mut out_axis = 0;
    for axis in 0..shape.rank() {
        let is_set = |mask: i32| mask & 1i32.wrapping_shl(axis as u32) != 0;
        let dim = shape.dim(axis) as i32;
        let step = steps.get(axis);
        let distance = NonZeroU32::new(step.unsigned_abs())
            .ok_or(Fault::Value(Operand::Input(STRIDES as u8)))?;
        let forward = step > 0;
        // Where a slice can start and end: one before the first element, when it goes down.
        let (least, largest) = if forward { (0, dim) } else { (-1, dim - 1) };
        let bound = |number: i32| {
            let from_start = if number < 0 {
                number.wrapping_add(dim)
            } else {
                number
            };
            from_start.min(largest).max(least)
        };
        let start = match is_set(begin_mask) {
            true if forward => 0,
            true => dim - 1,
            false => bound(begins.get(axis)),
        };
        if is_set(shrink_mask) {
            if start < 0 || start >= dim {
                return Err(input.wrong_shape());
            }
            axes.push(axis, start as usize, 1, 1);
            continue;
        }
        let end = match is_set(end_mask) {
            true if forward => dim,
            true => -1,
            false => bound(ends.get(axis)),
        };
        let span = if forward { end - start } else { start - end };
        let count = (span.max(0) as u32).wrapping_add(distance.get() - 1) / distance;
        if out.dim(out_axis) != count as usize {
            return Err(output.wrong_shape());
        }
        out_axis += 1;
        axes.push(axis, start.max(0) as usize, count as usize, step as isize);
    }
    if out_axis != out.rank() {
        return Err(output.wrong_shape());
    }
    axes.run()
}

/// The numbers in the input `index`, of which there are `len`.
#[inline(never)]
fn numbers<'a>(node: &Node<'a>, index: usize, len: usize) -> Result<Numbers<'a>, Fault> {
    let tensor = node.input(index);
    let tensor = found(&tensor)?;
    let numbers = Numbers::of(tensor)?;
    match numbers.len() == len {
        true => Ok(numbers),
        false => Err(tensor.wrong_shape()),
    }
}

/// What is taken along each axis.
struct Axes<'t, 'a> {
    input: &'t Tensor<'a>,
    output: &'t Tensor<'a>,
    element: usize,
    start: usize,
    moves: Moves,
}

impl<'t, 'a> Axes<'t, 'a> {
    fn of(input: &'t Tensor<'a>, output: &'t Tensor<'a>) -> Result<Self, Fault> {
        Ok(Self {
            input,
            output,
            element: element_bytes(input, output)?,
            start: 0,
            moves: Moves::new(),
        })
    }

    #[inline(never)]
    fn push(&mut self, axis: usize, start: usize, count: usize, step: isize) {
        let shape = self.input.shape();
        let within = shape.product(axis + 1, shape.rank()).unwrap_or(0);
        let bytes = within.wrapping_mul(self.element);
        self.start = self.start.wrapping_add(start.wrapping_mul(bytes));
        self.moves.push(count, step.wrapping_mul(bytes as isize));
    }

    fn run(&mut self) -> Result<(), Fault> {
        self.moves.start_at(self.start);
        let (input, output) = (self.input.bytes()?, self.output.bytes_mut()?);
        match self.moves.run(input, output, self.element) {
            true => Ok(()),
            false => Err(self.output.wrong_shape()),
        }
    }
}
