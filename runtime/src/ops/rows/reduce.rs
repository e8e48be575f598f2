//! MEAN, SUM, REDUCE_MAX and REDUCE_MIN.
//!
//! The rules are those of TFLM's `reduce_common.cc` and `reference/reduce.h`. TFLM keeps a sum for each output in scratch
//! memory; here each output is computed at once, and none is needed.

use super::{Number, OUTPUT, quantization, read, tensor, write};
use crate::error::{Fault, Operand};
use crate::fixed::{Multiplier, clamp};
use crate::kernel::{Code, Kernel};
use crate::memory::View;
use crate::node::Node;
use crate::types::Type;

/// `MEAN` over axes (input 1, int32): int8, int16 or float32.
pub const MEAN: Kernel = Kernel::builtin(Code::MEAN, |node| sum(node, true));
/// [`MEAN`] of int8 alone.
pub const MEAN_INT8: Kernel = Kernel::builtin(Code::MEAN, |node| sum_int8(node, true));
/// [`MEAN`] of int16 alone.
pub const MEAN_INT16: Kernel = Kernel::builtin(Code::MEAN, |node| sum_int16(node, true));
/// [`MEAN`] of float32 alone.
pub const MEAN_FLOAT32: Kernel = Kernel::builtin(Code::MEAN, |node| sum_float(node, true));
/// `SUM` over axes (input 1, int32): int8, int16 or float32.
pub const SUM: Kernel = Kernel::builtin(Code::SUM, |node| sum(node, false));
/// [`SUM`] of int8 alone.
pub const SUM_INT8: Kernel = Kernel::builtin(Code::SUM, |node| sum_int8(node, false));
/// [`SUM`] of int16 alone.
pub const SUM_INT16: Kernel = Kernel::builtin(Code::SUM, |node| sum_int16(node, false));
/// [`SUM`] of float32 alone.
pub const SUM_FLOAT32: Kernel = Kernel::builtin(Code::SUM, |node| sum_float(node, false));
/// `REDUCE_MAX` over axes (input 1, int32): int8 or float32.
pub const REDUCE_MAX: Kernel = Kernel::builtin(Code::REDUCE_MAX, |node| extreme(node, true));
/// [`REDUCE_MAX`] of int8 alone.
pub const REDUCE_MAX_INT8: Kernel =
    Kernel::builtin(Code::REDUCE_MAX, |node| extreme_int8(node, true));
/// [`REDUCE_MAX`] of float32 alone.
pub const REDUCE_MAX_FLOAT32: Kernel =
    Kernel::builtin(Code::REDUCE_MAX, |node| extreme_float(node, true));
/// `REDUCE_MIN` over axes (input 1, int32): int8 or float32.
pub const REDUCE_MIN: Kernel = Kernel::builtin(Code::REDUCE_MIN, |node| extreme(node, false));
/// [`REDUCE_MIN`] of int8 alone.
pub const REDUCE_MIN_INT8: Kernel =
    Kernel::builtin(Code::REDUCE_MIN, |node| extreme_int8(node, false));
/// [`REDUCE_MIN`] of float32 alone.
pub const REDUCE_MIN_FLOAT32: Kernel =
    Kernel::builtin(Code::REDUCE_MIN, |node| extreme_float(node, false));

const INPUT: Operand = Operand::Input(0);

/// Axes that are kept, or that are reduced; neighbours are one. Outermost first.
#[derive(Clone, Copy, Debug, Default)]
struct Axes {
    count: usize,
    axes: [Axis; 4],
}

#[derive(Clone, Copy, Debug, Default)]
struct Axis {
    len: usize,
    /// Elements from one index to the next.
    stride: usize,
}

impl Axes {
    fn axes(&self) -> &[Axis] {
        self.axes.get(..self.count).unwrap_or_default()
    }

    /// Puts an axis in front, or makes the first one longer. `None` if there are too many.
    fn put(&mut self, axis: Axis, longer: bool) -> Option<()> {
        if longer {
            let first = self.axes.first_mut()?;
            first.len *= axis.len;
            return Some(());
        }
        if self.count == self.axes.len() {
            return None;
        }
        self.axes.rotate_right(1);
        *self.axes.first_mut()? = axis;
        self.count += 1;
        Some(())
    }

    /// The innermost axis, which is taken out; one of length 1 if there is none.
    fn pop(&mut self) -> Axis {
        let last = self.axes().last().copied();
        self.count = self.count.saturating_sub(1);
        last.unwrap_or(Axis { len: 1, stride: 1 })
    }

    #[inline(never)]
    fn len(&self) -> usize {
        self.axes().iter().map(|axis| axis.len).product()
    }

    /// The element at index `index` of all that the axes span.
    #[inline(never)]
    fn offset(&self, mut index: usize) -> usize {
        let mut offset = 0;
        for axis in self.axes().iter().rev() {
            offset += index.checked_rem(axis.len).unwrap_or(0) * axis.stride;
            index = index.checked_div(axis.len).unwrap_or(0);
        }
        offset
    }
}

/// How an input is reduced.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    kept: Axes,
    reduced: Axes,
}

impl Reduction {
    /// Of an input that has elements.
    #[inline(never)]
    fn new(node: &Node<'_>) -> Result<Self, Fault> {
        let numbers = read::<i32>(node, 1, Type::INT32)?;
        let shape = tensor(node, INPUT)?.shape();
        let rank = shape.rank() as i32;
        let mut kept = Axes::default();
        let mut reduced = Axes::default();
        // For a scalar, TFLM does not look at the axes.
        if rank > 0 && numbers.iter().any(|axis| axis < -rank || axis >= rank) {
            return Err(Fault::Value(Operand::Input(1)));
        }
        let mut stride = 1;
        let mut before = None;
        for axis in (0..rank).rev() {
            let len = shape.dim(axis as usize);
            if len == 1 {
                continue;
            }
            let is_reduced = numbers.iter().any(|a| a == axis || a == axis - rank);
            let axes = if is_reduced { &mut reduced } else { &mut kept };
            let longer = before == Some(is_reduced);
            axes.put(Axis { len, stride }, longer)
                .ok_or(Fault::Shape(INPUT))?;
            before = Some(is_reduced);
            stride *= len;
        }
        match kept.len() == tensor(node, OUTPUT)?.len() {
            true => Ok(Self { kept, reduced }),
            false => Err(Fault::Shape(OUTPUT)),
        }
    }

    /// Reduces, and gives the result for each output in order to `each`.
    #[inline(always)]
    fn fold<T: Number, A: Copy>(
        mut self,
        from: View<'_, T>,
        zero: A,
        step: impl Fn(A, T) -> A,
        mut each: impl FnMut(usize, A),
    ) -> Option<()> {
        const BLOCK: usize = if cfg!(target_pointer_width = "32") {
            4
        } else {
            16
        };
        let inner = self.reduced.pop();
        let outer = self.reduced.len();
        let channels = match self.kept.axes().last() {
            Some(axis) if axis.stride == 1 => self.kept.pop().len,
            _ => 1,
        };
        let mut output = 0;
        for kept in 0..self.kept.len() {
            let start = self.kept.offset(kept);
            let mut channel = 0;
            while channels - channel >= BLOCK {
                let mut block = [zero; BLOCK];
                for reduced in 0..outer {
                    let mut at = start + channel + self.reduced.offset(reduced);
                    for _ in 0..inner.len {
                        let elements = from.part(at, BLOCK)?;
                        for (k, folded) in block.iter_mut().enumerate() {
                            *folded = step(*folded, elements.get(k));
                        }
                        at += inner.stride;
                    }
                }
                for folded in block {
                    each(output, folded);
                    output += 1;
                }
                channel += BLOCK;
            }
            while channel < channels {
                let mut folded = zero;
                for reduced in 0..outer {
                    let mut at = start + channel + self.reduced.offset(reduced);
                    for _ in 0..inner.len {
                        folded = step(folded, from.get(at));
                        at += inner.stride;
                    }
                }
                each(output, folded);
                output += 1;
                channel += 1;
            }
        }
        Some(())
    }
}

fn sum(node: &Node<'_>, mean: bool) -> Result<(), Fault> {
    match node.input(0)?.element_type() {
        Type::INT8 => sum_int8(node, mean),
        Type::INT16 => sum_int16(node, mean),
        Type::FLOAT32 => sum_float(node, mean),
        _ => Err(Fault::ElementType(Operand::Input(0))),
    }
}

fn sum_int8(node: &Node<'_>, mean: bool) -> Result<(), Fault> {
    sum_of_integers::<i8>(node, mean, Type::INT8, i8::MIN.into())
}

fn sum_int16(node: &Node<'_>, mean: bool) -> Result<(), Fault> {
    sum_of_integers::<i16>(node, mean, Type::INT16, i16::MIN.into())
}

/// Of a type whose least value is `least`.
fn sum_of_integers<T: Number<Sum = i32> + TryFrom<i32>>(
    node: &Node<'_>,
    mean: bool,
    element_type: Type,
    least: i32,
) -> Result<(), Fault> {
    let from = read::<T>(node, 0, element_type)?;
    let to = write::<T>(node, OUTPUT, element_type)?;
    if from.is_empty() {
        to.fill(T::default());
        return Ok(());
    }
    let reduction = Reduction::new(node)?;
    let (factor, zeros, zero_point) = scaling(node, mean, reduction.reduced.len() as i64)?;
    let folded = reduction.fold(from, 0, T::add, |k, sum| {
        let centered = i64::from(sum).wrapping_sub(zeros) as i32;
        let scaled = factor.apply(centered).wrapping_add(zero_point);
        to.set(
            k,
            T::try_from(clamp(scaled, least, -1 - least)).unwrap_or_default(),
        );
    });
    folded.ok_or(Fault::Shape(INPUT))
}

/// The factor of sums of `count` elements, their sum at the input's zero point, and the output's zero point.
#[inline(never)]
fn scaling(node: &Node<'_>, mean: bool, count: i64) -> Result<(Multiplier, i64, i32), Fault> {
    let (in_scale, in_zero) = quantization(node, INPUT)?;
    let (out_scale, zero_point) = quantization(node, OUTPUT)?;
    let mut factor = Multiplier::of_scales(in_scale, 1.0, out_scale);
    if mean {
        // Divides by the number of elements, with as many bits as there are.
        let bits = count.checked_ilog2().unwrap_or(0);
        let shift = bits.min(32).min((31 + factor.shift) as u32);
        let divided = (i64::from(factor.multiplier) << shift) / count.max(1);
        factor.multiplier = divided as i32;
        factor.shift -= shift as i32;
    }
    Ok((factor, i64::from(in_zero).wrapping_mul(count), zero_point))
}

fn sum_float(node: &Node<'_>, mean: bool) -> Result<(), Fault> {
    let from = read::<f32>(node, 0, Type::FLOAT32)?;
    let to = write::<f32>(node, OUTPUT, Type::FLOAT32)?;
    if from.is_empty() {
        to.fill(0.0);
        return Ok(());
    }
    let reduction = Reduction::new(node)?;
    let count = if mean {
        reduction.reduced.len() as f32
    } else {
        1.0
    };
    let folded = reduction.fold(from, 0.0, f32::add, |k, sum| to.set(k, sum / count));
    folded.ok_or(Fault::Shape(INPUT))
}

fn extreme(node: &Node<'_>, max: bool) -> Result<(), Fault> {
    match node.input(0)?.element_type() {
        Type::INT8 => extreme_int8(node, max),
        Type::FLOAT32 => extreme_float(node, max),
        _ => Err(Fault::ElementType(Operand::Input(0))),
    }
}

fn extreme_int8(node: &Node<'_>, max: bool) -> Result<(), Fault> {
    if quantization(node, INPUT)? != quantization(node, OUTPUT)? {
        return Err(Fault::Quantization(OUTPUT));
    }
    extreme_of(node, max, Type::INT8, [i8::MAX, i8::MIN])
}

fn extreme_float(node: &Node<'_>, max: bool) -> Result<(), Fault> {
    extreme_of(node, max, Type::FLOAT32, [f32::MAX, f32::MIN])
}

fn extreme_of<T: Number>(
    node: &Node<'_>,
    max: bool,
    element_type: Type,
    [largest, least]: [T; 2],
) -> Result<(), Fault> {
    let from = read::<T>(node, 0, element_type)?;
    let to = write::<T>(node, OUTPUT, element_type)?;
    let start = if max { least } else { largest };
    if from.is_empty() {
        to.fill(start);
        return Ok(());
    }
    let step = |a: T, x: T| {
        let replaces = if max { x > a } else { x < a };
        if replaces { x } else { a }
    };
    let folded = Reduction::new(node)?.fold(from, start, step, |k, x| to.set(k, x));
    folded.ok_or(Fault::Shape(INPUT))
}
