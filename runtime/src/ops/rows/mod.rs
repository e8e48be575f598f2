//! Operators that go over windows, rows or whole tensors: pooling, reductions, normalisations, recurrent networks.

mod arg;
mod batch_matmul;
mod cumsum;
mod l2_normalization;
mod lookup;
mod lstm;
mod pooling;
mod reduce;
mod softmax;
mod svdf;
mod transpose_conv;

pub use arg::*;
pub use batch_matmul::*;
pub use cumsum::*;
pub use l2_normalization::*;
pub use lstm::*;
pub use pooling::*;
pub use reduce::*;
pub use softmax::*;
pub use svdf::*;
pub use transpose_conv::*;

use crate::error::{Fault, Operand};
use crate::kernel::Kernel;
use crate::memory::{Element, View, ViewMut};
use crate::node::{Node, Tensor};
use crate::types::Type;

pub(super) const KERNELS: &[Kernel] = &[
    ARG_MAX,
    ARG_MIN,
    AVERAGE_POOL_2D,
    BATCH_MATMUL,
    CUMSUM,
    L2_NORMALIZATION,
    L2_POOL_2D,
    LOG_SOFTMAX,
    MAX_POOL_2D,
    MEAN,
    REDUCE_MAX,
    REDUCE_MIN,
    SOFTMAX,
    SUM,
    SVDF,
    TRANSPOSE_CONV,
    UNIDIRECTIONAL_SEQUENCE_LSTM,
];

/// A number that kernels compute with.
trait Number: Element + PartialOrd {
    /// The sum of many, or of products of two: wraps where the reference does.
    type Sum: Copy + Default;
    /// The least number.
    const LEAST: Self;

    fn add(sum: Self::Sum, x: Self) -> Self::Sum;
}

macro_rules! numbers {
    ($($type:ty: $sum:ty, $least:expr, |$a:ident, $b:ident| $add:expr;)*) => {$(
        impl Number for $type {
            type Sum = $sum;
            const LEAST: Self = $least;

            #[inline(always)]
            fn add($a: $sum, x: Self) -> $sum {
                let $b = <$sum>::from(x);
                $add
            }
        }
    )*};
}

numbers! {
    i8: i32, i8::MIN, |a, b| a.wrapping_add(b);
    i16: i32, i16::MIN, |a, b| a.wrapping_add(b);
    f32: f32, f32::MIN, |a, b| a + b;
}

/// Calls `each` with the first element and the length of every row along the last axis, which input and output have alike.
#[inline(never)]
fn rows_of(node: &Node<'_>, each: &mut dyn FnMut(usize, usize) -> Option<()>) -> Result<(), Fault> {
    let (len, depth) = rows_in(node, INPUT)?;
    if rows_in(node, OUTPUT)? != (len, depth) {
        return Err(Fault::Shape(OUTPUT));
    }
    let mut start = 0;
    while start < len {
        each(start, depth).ok_or(Fault::Value(INPUT))?;
        start += depth;
    }
    Ok(())
}

/// Elements, and elements along the last axis.
#[inline(never)]
fn rows_in(node: &Node<'_>, operand: Operand) -> Result<(usize, usize), Fault> {
    let tensor = tensor(node, operand)?;
    match tensor.shape().rank() {
        0 => Err(Fault::Shape(operand)),
        _ => Ok((tensor.len(), tensor.shape().dim_from_end(0))),
    }
}

/// The sum of `(a + a_offset) * (b + b_offset)` over as many elements as both have.
#[inline(never)]
fn dot<A: Element + Into<i32>, B: Element + Into<i32>>(
    a: View<'_, A>,
    a_offset: i32,
    b: View<'_, B>,
    b_offset: i32,
) -> i32 {
    let mut sum = 0i32;
    for k in 0..a.len().min(b.len()) {
        let (a, b): (i32, i32) = (a.get(k).into(), b.get(k).into());
        let product = a
            .wrapping_add(a_offset)
            .wrapping_mul(b.wrapping_add(b_offset));
        sum = sum.wrapping_add(product);
    }
    sum
}

/// The sum of `(x + offset) * weight`, as [`dot`] has it.
#[inline(never)]
fn dot_of_bytes(x: View<'_, i8>, offset: i32, weights: View<'_, i8>) -> i32 {
    // In 16 bits, which is what vector instructions multiply.
    let Some(offset) = i16::try_from(offset)
        .ok()
        .filter(|o| o.unsigned_abs() < 0x7000)
    else {
        return dot(x, offset, weights, 0);
    };
    let mut sum = 0i32;
    for k in 0..x.len().min(weights.len()) {
        let x = i16::from(x.get(k)).wrapping_add(offset);
        sum = sum.wrapping_add(i32::from(x) * i32::from(weights.get(k)));
    }
    sum
}

/// As [`dot`], in 64 bits.
#[inline(never)]
fn dot_wide<A: Element + Into<i32>, B: Element + Into<i32>>(
    a: View<'_, A>,
    a_offset: i32,
    b: View<'_, B>,
    b_offset: i32,
) -> i64 {
    let mut sum = 0i64;
    for k in 0..a.len().min(b.len()) {
        let (a, b): (i32, i32) = (a.get(k).into(), b.get(k).into());
        let product = a
            .wrapping_add(a_offset)
            .wrapping_mul(b.wrapping_add(b_offset));
        sum = sum.wrapping_add(i64::from(product));
    }
    sum
}

/// `sum` and the products over as many elements as both have, added one by one.
#[inline(never)]
fn dot_of_floats(mut sum: f32, a: View<'_, f32>, b: View<'_, f32>) -> f32 {
    for k in 0..a.len().min(b.len()) {
        sum += a.get(k) * b.get(k);
    }
    sum
}

/// The sums of products of `x` with each of `weights`, over as many elements as all have, added one by one.
#[inline(never)]
fn four_dots_of_floats(x: View<'_, f32>, weights: &[View<'_, f32>; 4]) -> [f32; 4] {
    let [a, b, c, d] = *weights;
    let len = x.len().min(a.len()).min(b.len()).min(c.len()).min(d.len());
    let mut sums = [0.0; 4];
    for k in 0..len {
        let x = x.get(k);
        for (sum, weights) in sums.iter_mut().zip([a, b, c, d]) {
            *sum += x * weights.get(k);
        }
    }
    sums
}

/// The axis that input 1 names: how often its elements start anew, how many it has, and how far they are apart. Of an
/// input that has elements.
#[inline(never)]
fn along(node: &Node<'_>) -> Result<(usize, usize, usize), Fault> {
    let axis = read::<i32>(node, 1, Type::INT32)?;
    let tensor = tensor(node, INPUT)?;
    let shape = tensor.shape();
    if axis.is_empty() || tensor.is_empty() {
        return Err(Fault::Shape(INPUT));
    }
    let (number, rank) = (axis.get(0), shape.rank() as i32);
    let number = if number < 0 { number + rank } else { number };
    if number < 0 || number >= rank {
        return Err(Fault::Value(Operand::Input(1)));
    }
    let at = number as usize;
    let outer = shape.product(0, at).unwrap_or(0);
    let inner = shape.product(at + 1, shape.rank()).unwrap_or(0);
    Ok((outer, shape.dim(at), inner))
}

// Tensors take much of the stack, so that kernels get what they need of one by the functions below, which return little.

#[inline(never)]
fn tensor<'a>(node: &Node<'a>, operand: Operand) -> Result<Tensor<'a>, Fault> {
    match operand {
        Operand::Input(index) => node.input(index.into()),
        Operand::Output(index) => node.output(index.into()),
    }
}

/// Dimensions of a tensor with `N` of them, and elements.
#[inline(never)]
fn dims<const N: usize>(node: &Node<'_>, operand: Operand) -> Result<[usize; N], Fault> {
    let shape = tensor(node, operand)?.shape();
    let some = shape.elements().is_some_and(|elements| elements > 0);
    shape.dims().filter(|_| some).ok_or(Fault::Shape(operand))
}

/// A tensor, looked at where it is: stacks are small.
fn found<'t, 'a>(tensor: &'t Result<Tensor<'a>, Fault>) -> Result<&'t Tensor<'a>, Fault> {
    tensor.as_ref().map_err(|fault| *fault)
}

/// Scale and zero point.
#[inline(never)]
fn quantization(node: &Node<'_>, operand: Operand) -> Result<(f32, i32), Fault> {
    let tensor = tensor(node, operand);
    let tensor = found(&tensor)?;
    Ok((tensor.scale()?, tensor.zero_point()))
}

#[inline(never)]
fn type_of(node: &Node<'_>, operand: Operand) -> Result<Type, Fault> {
    Ok(tensor(node, operand)?.element_type())
}

/// The elements of input `index`, whose type is given.
#[inline(never)]
fn read<'a, T: Element>(node: &Node<'a>, index: u8, expected: Type) -> Result<View<'a, T>, Fault> {
    let tensor = tensor(node, Operand::Input(index));
    let tensor = found(&tensor)?;
    tensor.expect(expected)?;
    tensor.read()
}

/// As [`read`] of an input of `len` elements, or `None` if it is not given.
#[inline(never)]
fn read_optional<'a, T: Element>(
    node: &Node<'a>,
    index: u8,
    expected: Type,
    len: usize,
) -> Result<Option<View<'a, T>>, Fault> {
    let Some(tensor) = node.optional_input(index.into())? else {
        return Ok(None);
    };
    tensor.expect(expected)?;
    match tensor.len() == len {
        true => tensor.read().map(Some),
        false => Err(tensor.wrong_shape()),
    }
}

/// The elements of a tensor to write, whose type is given.
#[inline(never)]
fn write<'a, T: Element>(
    node: &Node<'a>,
    operand: Operand,
    expected: Type,
) -> Result<ViewMut<'a, T>, Fault> {
    let tensor = tensor(node, operand);
    let tensor = found(&tensor)?;
    tensor.expect(expected)?;
    tensor.write()
}

/// A variable's elements, `len` of the given type.
#[inline(never)]
fn state<'a, T: Element>(
    node: &Node<'a>,
    index: u8,
    expected: Type,
    len: usize,
) -> Result<ViewMut<'a, T>, Fault> {
    let tensor = tensor(node, Operand::Input(index))?;
    tensor.expect(expected)?;
    if !tensor.table().is_variable()? {
        return Err(tensor.wrong_value());
    }
    match tensor.len() == len {
        true => tensor.write(),
        false => Err(tensor.wrong_shape()),
    }
}

/// The first input, which all operators here but TRANSPOSE_CONV compute of.
const INPUT: Operand = Operand::Input(0);
const OUTPUT: Operand = Operand::Output(0);
