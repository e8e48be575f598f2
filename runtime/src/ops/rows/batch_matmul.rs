//! BATCH_MATMUL, products of matrices.
//!
//! The rules are those of TFLM's `batch_matmul.cc` and `reference/batch_matmul.h`. TFLM transposes matrices in memory that
//! persists; here they are read as they lie.

use super::{OUTPUT, dot, dot_of_floats, dot_wide, quantization, read, tensor, type_of, write};
use crate::error::{Fault, Operand};
use crate::fixed::{Multiplier, clamp};
use crate::kernel::{Code, Kernel};
use crate::memory::{Element, View};
use crate::node::Node;
use crate::types::Type;

/// `BATCH_MATMUL`: `[.., rows, depth]` by `[.., depth, columns]`, each of them transposed by option, with 2 to 5 dimensions
/// of which those in front of the last two are broadcast. int8, int16 or float32.
pub const BATCH_MATMUL: Kernel =
    Kernel::builtin(Code::BATCH_MATMUL, |node| match type_of(node, LHS)? {
        Type::INT8 => int8(node),
        Type::INT16 => int16(node),
        Type::FLOAT32 => float(node),
        _ => Err(Fault::ElementType(LHS)),
    });
/// [`BATCH_MATMUL`] of int8 alone.
pub const BATCH_MATMUL_INT8: Kernel = Kernel::builtin(Code::BATCH_MATMUL, int8);
/// [`BATCH_MATMUL`] of int16 alone.
pub const BATCH_MATMUL_INT16: Kernel = Kernel::builtin(Code::BATCH_MATMUL, int16);
/// [`BATCH_MATMUL`] of float32 alone.
pub const BATCH_MATMUL_FLOAT32: Kernel = Kernel::builtin(Code::BATCH_MATMUL, float);

const LHS: Operand = Operand::Input(0);
const RHS: Operand = Operand::Input(1);
const OPTION_ADJ_X: u16 = 0;
const OPTION_ADJ_Y: u16 = 1;

/// Where the elements of one operand are.
#[derive(Clone, Copy, Debug)]
struct Side {
    /// Elements from one matrix to the next along the first three dimensions; 0 where one stands for all.
    batches: [usize; 3],
    /// Elements from one row (left) or column (right) to the next.
    outer: usize,
    /// Elements from one factor of a product's sum to the next.
    inner: usize,
}

impl Side {
    fn new(dims: [usize; 5], rows_first: bool) -> Self {
        let [a, b, c, height, width] = dims;
        let matrix = height * width;
        let step = |dim, step| if dim == 1 { 0 } else { step };
        let (outer, inner) = if rows_first { (width, 1) } else { (1, width) };
        Self {
            batches: [
                step(a, b * c * matrix),
                step(b, c * matrix),
                step(c, matrix),
            ],
            outer,
            inner,
        }
    }
}

/// The operator's shapes.
#[derive(Clone, Copy, Debug)]
struct Matrices {
    batches: [usize; 3],
    rows: usize,
    depth: usize,
    columns: usize,
    left: Side,
    right: Side,
}

/// Five dimensions of an operand that has elements, so that no product of them is an overflow.
#[inline(never)]
fn shape(node: &Node<'_>, operand: Operand) -> Result<[usize; 5], Fault> {
    let tensor = tensor(node, operand)?;
    let known = tensor.shape().rank() >= 2 && !tensor.is_empty();
    let dims = tensor.shape().extended().filter(|_| known);
    dims.ok_or(Fault::Shape(operand))
}

impl Matrices {
    #[inline(never)]
    fn new(node: &Node<'_>) -> Result<Self, Fault> {
        let options = node.options()?;
        let adj_x = options.bool(OPTION_ADJ_X, false)?;
        let adj_y = options.bool(OPTION_ADJ_Y, false)?;
        let (lhs, rhs) = (shape(node, LHS)?, shape(node, RHS)?);
        let [a, b, c, height, width] = lhs;
        let [d, e, f, right_height, right_width] = rhs;
        let (rows, depth) = if adj_x {
            (width, height)
        } else {
            (height, width)
        };
        let (right_depth, columns) = match adj_y {
            true => (right_width, right_height),
            false => (right_height, right_width),
        };
        let fits = |x, y| x == y || x == 1 || y == 1;
        if depth != right_depth || !(fits(a, d) && fits(b, e) && fits(c, f)) {
            return Err(Fault::Shape(RHS));
        }
        let batches = [a.max(d), b.max(e), c.max(f)];
        let mut len = Some(rows);
        for factor in [batches[0], batches[1], batches[2], columns] {
            len = len.and_then(|len| len.checked_mul(factor));
        }
        if len != Some(tensor(node, OUTPUT)?.len()) {
            return Err(Fault::Shape(OUTPUT));
        }
        Ok(Self {
            batches,
            rows,
            depth,
            columns,
            left: Side::new(lhs, !adj_x),
            right: Side::new(rhs, adj_y),
        })
    }

    /// Calls `each` with every sum of products in order: by `row` of two rows of elements, else one by one with `step`.
    #[inline(always)]
    fn multiply<'a, T: Element, A: Copy>(
        &self,
        lhs: View<'a, T>,
        rhs: View<'a, T>,
        zero: A,
        row: impl Fn(View<'a, T>, View<'a, T>) -> A,
        step: impl Fn(A, T, T) -> A,
        mut each: impl FnMut(usize, A),
    ) -> Option<()> {
        const BLOCK: usize = if cfg!(target_pointer_width = "32") {
            4
        } else {
            16
        };
        let (left, right, depth) = (self.left, self.right, self.depth);
        let mut output = 0;
        let mut one = |lhs_start: usize, rhs_start: usize| {
            for i in 0..self.rows {
                let lhs_row = lhs_start + i * left.outer;
                let mut column = 0;
                while column < self.columns {
                    let mut at = rhs_start + column * right.outer;
                    if left.inner == 1 && right.inner == 1 {
                        each(output, row(lhs.part(lhs_row, depth)?, rhs.part(at, depth)?));
                        output += 1;
                        column += 1;
                        continue;
                    }
                    // Neighbouring columns at once, where they lie side by side.
                    if right.outer == 1 && self.columns - column >= BLOCK {
                        let mut sums = [zero; BLOCK];
                        for k in 0..depth {
                            let x = lhs.get(lhs_row + k * left.inner);
                            let row = rhs.part(at, BLOCK)?;
                            for (k, sum) in sums.iter_mut().enumerate() {
                                *sum = step(*sum, x, row.get(k));
                            }
                            at += right.inner;
                        }
                        for sum in sums {
                            each(output, sum);
                            output += 1;
                        }
                        column += BLOCK;
                        continue;
                    }
                    let mut sum = zero;
                    for k in 0..depth {
                        let x = lhs.get(lhs_row + k * left.inner);
                        sum = step(sum, x, rhs.get(at));
                        at += right.inner;
                    }
                    each(output, sum);
                    output += 1;
                    column += 1;
                }
            }
            Some(())
        };
        let [a, b, c] = self.batches;
        for i in 0..a {
            for j in 0..b {
                for k in 0..c {
                    let start = |side: &Side| {
                        let [x, y, z] = side.batches;
                        i * x + j * y + k * z
                    };
                    one(start(&left), start(&right))?;
                }
            }
        }
        Some(())
    }
}

/// The factor of sums of products, as `GetQuantizedConvolutionMultipler` has it, and the zero points.
#[inline(never)]
fn scaling(node: &Node<'_>) -> Result<(Multiplier, [i32; 3]), Fault> {
    let (lhs, lhs_zero) = quantization(node, LHS)?;
    let (rhs, rhs_zero) = quantization(node, RHS)?;
    let (output, zero_point) = quantization(node, OUTPUT)?;
    let factor = Multiplier::of_scales(lhs, rhs, output);
    Ok((factor, [lhs_zero, rhs_zero, zero_point]))
}

fn int8(node: &Node<'_>) -> Result<(), Fault> {
    let (factor, [lhs_zero, rhs_zero, zero_point]) = scaling(node)?;
    let (lhs_offset, rhs_offset) = (lhs_zero.wrapping_neg(), rhs_zero.wrapping_neg());
    let to = write::<i8>(node, OUTPUT, Type::INT8)?;
    let multiplied = Matrices::new(node)?.multiply(
        read::<i8>(node, 0, Type::INT8)?,
        read::<i8>(node, 1, Type::INT8)?,
        0i32,
        |a, b| dot(a, lhs_offset, b, rhs_offset),
        |sum, a, b| {
            let (a, b) = (i32::from(a), i32::from(b));
            sum.wrapping_add(
                a.wrapping_add(lhs_offset)
                    .wrapping_mul(b.wrapping_add(rhs_offset)),
            )
        },
        |k, sum| {
            let scaled = factor.apply(sum).wrapping_add(zero_point);
            to.set(k, clamp(scaled, -128, 127) as i8);
        },
    );
    multiplied.ok_or(Fault::Shape(OUTPUT))
}

fn int16(node: &Node<'_>) -> Result<(), Fault> {
    let (factor, zero_points) = scaling(node)?;
    for (zero_point, operand) in zero_points.into_iter().zip([LHS, RHS, OUTPUT]) {
        if zero_point != 0 {
            return Err(Fault::Quantization(operand));
        }
    }
    let to = write::<i16>(node, OUTPUT, Type::INT16)?;
    let multiplied = Matrices::new(node)?.multiply(
        read::<i16>(node, 0, Type::INT16)?,
        read::<i16>(node, 1, Type::INT16)?,
        0i64,
        |a, b| dot_wide(a, 0, b, 0),
        |sum, a, b| sum.wrapping_add(i64::from(i32::from(a) * i32::from(b))),
        |k, sum| to.set(k, clamp(factor.apply_wide(sum), -32768, 32767) as i16),
    );
    multiplied.ok_or(Fault::Shape(OUTPUT))
}

fn float(node: &Node<'_>) -> Result<(), Fault> {
    let to = write::<f32>(node, OUTPUT, Type::FLOAT32)?;
    let multiplied = Matrices::new(node)?.multiply(
        read::<f32>(node, 0, Type::FLOAT32)?,
        read::<f32>(node, 1, Type::FLOAT32)?,
        0.0,
        |a, b| dot_of_floats(0.0, a, b),
        |sum, a, b| sum + a * b,
        |k, sum| to.set(k, sum),
    );
    multiplied.ok_or(Fault::Shape(OUTPUT))
}
