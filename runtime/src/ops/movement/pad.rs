//! Operators that put something around a tensor.

use crate::contract::Contract;
use crate::error::Fault;
use crate::kernel::{Code, Kernel};
use crate::memory::{Element, ViewMut};
use crate::node::{Node, Tensor};
use crate::types::Type;

use super::moves::row;
use super::{Numbers, element_bytes};

/// `PAD`: the input within zeros, or within the value of a third input; of any type, with at most 5 dimensions.
///
/// As in TFLM (`kernels/pad.cc`), the zero of an int8 or uint8 output is its zero point.
///
/// The output is written in its order, and each row of the input is moved as a whole.
pub const PAD: Kernel = Kernel::builtin(Code::PAD, pad).with_contract(Contract::Padding);
/// `PADV2`: as [`PAD`].
pub const PADV2: Kernel = Kernel::builtin(Code::PADV2, pad).with_contract(Contract::Padding);
/// `MIRROR_PAD`: the input within its mirror images; of any type, with at most 5 dimensions.
pub const MIRROR_PAD: Kernel =
    Kernel::builtin(Code::MIRROR_PAD, mirror_pad).with_contract(Contract::MirrorPadding);

const RANK: usize = 5;

/// An axis: indices of the input, and what is before them in the output and behind.
#[derive(Clone, Copy)]
struct Axis {
    dim: usize,
    before: usize,
    after: usize,
}

impl Axis {
    const NONE: Axis = Axis {
        dim: 1,
        before: 0,
        after: 0,
    };

    fn out(self) -> usize {
        self.before.wrapping_add(self.dim).wrapping_add(self.after)
    }
}

/// What is done: loops over all axes, and within them over pieces.
struct Padding {
    /// The innermost one first.
    axes: [Axis; RANK],
    /// Bytes of an index of the innermost axis: of all axes within it, which are not padded.
    piece: usize,
}

impl Padding {
    /// Each axis has at most its extent less `border` on each side, if there is one.
    fn new(
        input: &Tensor<'_>,
        output: &Tensor<'_>,
        paddings: &Tensor<'_>,
        border: Option<usize>,
    ) -> Result<Self, Fault> {
        let element = element_bytes(input, output)?;
        let numbers = Numbers::of(paddings)?;
        let (shape, out) = (input.shape(), output.shape());
        if shape.rank() > RANK {
            return Err(input.wrong_shape());
        }
        if numbers.len() != 2 * shape.rank() {
            return Err(paddings.wrong_shape());
        }
        if out.rank() != shape.rank() {
            return Err(output.wrong_shape());
        }
        let mut axes = [Axis::NONE; RANK];
        let mut rest = axes.iter_mut();
        let mut piece = element;
        let mut within = true;
        for axis in (0..shape.rank()).rev() {
            let dim = shape.dim(axis);
            let number = |index: usize| {
                let number = usize::try_from(numbers.get(index)).ok();
                let most = border.map_or(usize::MAX, |border| dim.saturating_sub(border));
                number.filter(|&number| number <= most)
            };
            let (Some(before), Some(after)) = (number(2 * axis), number(2 * axis + 1)) else {
                return Err(paddings.wrong_value());
            };
            let sum = dim
                .checked_add(before)
                .and_then(|sum| sum.checked_add(after));
            if sum != Some(out.dim(axis)) {
                return Err(output.wrong_shape());
            }
            within &= sum == Some(dim);
            if within {
                piece = piece.wrapping_mul(dim);
            } else if let Some(at) = rest.next() {
                *at = Axis { dim, before, after };
            }
        }
        Ok(Self { axes, piece })
    }
}

fn pad(node: &Node<'_>) -> Result<(), Fault> {
    let (input, output) = (node.input(0)?, node.output(0)?);
    let Padding { axes, piece } = Padding::new(&input, &output, &node.input(1)?, None)?;
    let element = element_bytes(&input, &output)?;
    let value = match node.optional_input(2)? {
        Some(value) => constant(&value, &output, element)?,
        None => zero(&output)?,
    };
    let (from, to) = (input.bytes()?, output.bytes_mut()?);
    if to.is_empty() {
        return Ok(());
    }
    let [innermost, outer @ ..] = axes;
    let (mut at, mut out) = (0usize, 0usize);
    let mut take = |len: usize| {
        let (start, len) = (out, len.wrapping_mul(piece));
        out = out.wrapping_add(len);
        to.part(start, len).ok_or(output.wrong_shape())
    };
    let mut turns = [0usize; RANK - 1];
    loop {
        let padded = turns
            .iter()
            .zip(&outer)
            .any(|(&turn, axis)| turn < axis.before || turn >= axis.before.wrapping_add(axis.dim));
        if padded {
            fill(take(innermost.out())?, element, value);
        } else {
            fill(take(innermost.before)?, element, value);
            let row = take(innermost.dim)?;
            row.copy_from(from.part(at, row.len()).ok_or(input.wrong_shape())?);
            at = at.wrapping_add(row.len());
            fill(take(innermost.after)?, element, value);
        }
        if !advance(&mut turns, &outer) {
            return Ok(());
        }
    }
}

/// The value of a tensor of one element, which is quantized as the output is.
fn constant(value: &Tensor<'_>, output: &Tensor<'_>, element: usize) -> Result<u64, Fault> {
    value.expect(output.element_type())?;
    if value.len() != 1 {
        return Err(value.wrong_shape());
    }
    let scale = |tensor: &Tensor<'_>| tensor.scales().get(0).unwrap_or(0.0);
    if matches!(output.element_type(), Type::INT8 | Type::UINT8)
        && (value.zero_point() != output.zero_point() || scale(value) != scale(output))
    {
        return Err(Fault::Quantization(value.operand()));
    }
    low(value, element)
}

/// The first element, by its bytes.
pub(super) fn low(value: &Tensor<'_>, element: usize) -> Result<u64, Fault> {
    Ok(match element {
        1 => u64::from(value.read::<u8>()?.get(0)),
        2 => u64::from(value.read::<u16>()?.get(0)),
        4 => u64::from(value.read::<u32>()?.get(0)),
        _ => value.read::<u64>()?.get(0),
    })
}

/// What stands for zero in a tensor.
pub(super) fn zero(output: &Tensor<'_>) -> Result<u64, Fault> {
    let (least, largest) = match output.element_type() {
        Type::INT8 => (-128, 127),
        Type::UINT8 => (0, 255),
        _ => return Ok(0),
    };
    match output.zero_point() {
        zero if zero >= least && zero <= largest => Ok(zero as u64),
        _ => Err(Fault::Quantization(output.operand())),
    }
}

/// The next row; false after the last one.
fn advance(turns: &mut [usize; RANK - 1], outer: &[Axis; RANK - 1]) -> bool {
    for (turn, axis) in turns.iter_mut().zip(outer) {
        *turn += 1;
        if *turn < axis.out() {
            return true;
        }
        *turn = 0;
    }
    false
}

/// Writes the low bytes of `value` to each element of `element` bytes.
#[inline(never)]
pub(super) fn fill(bytes: ViewMut<'_, u8>, element: usize, value: u64) {
    fn all<T: Element>(bytes: ViewMut<'_, u8>, value: T) {
        if let Some(elements) = bytes.cast::<T>() {
            elements.fill(value);
        }
    }
    match element {
        1 => all(bytes, value as u8),
        2 => all(bytes, value as u16),
        4 => all(bytes, value as u32),
        _ => all(bytes, value),
    }
}

fn mirror_pad(node: &Node<'_>) -> Result<(), Fault> {
    const MODE: u16 = 0;
    // Whether the border is not repeated.
    let reflect = match node.options()?.i8(MODE, 0)? {
        0 => 1,
        1 => 0,
        _ => return Err(Fault::Unsupported(MODE as u8)),
    };
    let (input, output) = (node.input(0)?, node.output(0)?);
    let Padding { axes, piece } = Padding::new(&input, &output, &node.input(1)?, Some(reflect))?;
    let (from, to) = (input.bytes()?, output.bytes_mut()?);
    if to.is_empty() {
        return Ok(());
    }
    let [innermost, outer @ ..] = axes;
    let back = (piece as isize).wrapping_neg();
    // Index of the element before the first one, and that behind the last one.
    let before = |axis: Axis, turn: usize| {
        (axis.before.wrapping_add(reflect)).wrapping_sub(turn.wrapping_add(1))
    };
    let behind = |axis: Axis, turn: usize| {
        axis.dim
            .wrapping_sub(turn.wrapping_add(1).wrapping_add(reflect))
    };
    let mut out = 0usize;
    let mut turns = [0usize; RANK - 1];
    loop {
        let mut start = 0usize;
        let mut bytes = innermost.dim.wrapping_mul(piece);
        for (&turn, &axis) in turns.iter().zip(&outer) {
            let index = match turn.checked_sub(axis.before) {
                None => before(axis, turn),
                Some(index) if index < axis.dim => index,
                Some(index) => behind(axis, index.wrapping_sub(axis.dim)),
            };
            start = start.wrapping_add(index.wrapping_mul(bytes));
            bytes = bytes.wrapping_mul(axis.dim);
        }
        for (first, count, step) in [
            (before(innermost, 0), innermost.before, back),
            (0, innermost.dim, piece as isize),
            (behind(innermost, 0), innermost.after, back),
        ] {
            let len = count.wrapping_mul(piece);
            let part = to.part(out, len).ok_or(output.wrong_shape())?;
            let first = start.wrapping_add(first.wrapping_mul(piece));
            if !row(from, part, first, step, piece) {
                return Err(input.wrong_shape());
            }
            out = out.wrapping_add(len);
        }
        if !advance(&mut turns, &outer) {
            return Ok(());
        }
    }
}
