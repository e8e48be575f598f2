//! BATCH_MATMUL, products of matrices.
//!
//! The rules are those of TFLM's `batch_matmul.cc` and `reference/batch_matmul.h`. TFLM transposes matrices in memory that
//! persists; here they are read as they lie.

use super::{dot, dot_of_floats, dot_wide};
use crate::error::{Fault, Operand};
use crate::fixed::{Multiplier, clamp};
use crate::kernel::{Code, Kernel};
use crate::memory::{Element, View};
use crate::node::{Node, Tensor};
use crate::types::Type;

/// `BATCH_MATMUL`: `[.., rows, depth]` by `[.., depth, columns]`, each of them transposed by option, with 2 to 5 dimensions
/// of which those in front of the last two are broadcast. int8, int16 or float32.
pub const BATCH_MATMUL: Kernel = Kernel::builtin(Code::BATCH_MATMUL, batch_matmul);
/// [`BATCH_MATMUL`] of int8 alone.
pub const BATCH_MATMUL_INT8: Kernel =
    Kernel::builtin(Code::BATCH_MATMUL, |node| int8(&Matrices::new(node)?));
/// [`BATCH_MATMUL`] of int16 alone.
pub const BATCH_MATMUL_INT16: Kernel =
    Kernel::builtin(Code::BATCH_MATMUL, |node| int16(&Matrices::new(node)?));
/// [`BATCH_MATMUL`] of float32 alone.
pub const BATCH_MATMUL_FLOAT32: Kernel =
    Kernel::builtin(Code::BATCH_MATMUL, |node| float(&Matrices::new(node)?));

const OPTION_ADJ_X: u16 = 0;
const OPTION_ADJ_Y: u16 = 1;

fn batch_matmul(node: &Node<'_>) -> Result<(), Fault> {
    let matrices = Matrices::new(node)?;
    match matrices.lhs.element_type() {
        Type::INT8 => int8(&matrices),
        Type::INT16 => int16(&matrices),
        Type::FLOAT32 => float(&matrices),
        _ => Err(Fault::ElementType(Operand::Input(0))),
    }
}

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

/// The operator's tensors and shapes.
#[derive(Clone, Copy, Debug)]
struct Matrices<'a> {
    lhs: Tensor<'a>,
    rhs: Tensor<'a>,
    output: Tensor<'a>,
    batches: [usize; 3],
    rows: usize,
    depth: usize,
    columns: usize,
    left: Side,
    right: Side,
}

impl<'a> Matrices<'a> {
    #[inline(never)]
    fn new(node: &Node<'a>) -> Result<Self, Fault> {
        let (lhs, rhs, output) = (node.input(0)?, node.input(1)?, node.output(0)?);
        rhs.expect(lhs.element_type())?;
        output.expect(lhs.element_type())?;
        let options = node.options()?;
        let transposed = [
            options.bool(OPTION_ADJ_X, false)?,
            options.bool(OPTION_ADJ_Y, false)?,
        ];
        let dims = |tensor: &Tensor<'a>| {
            let shape = tensor.shape();
            // Also that products of dimensions are no overflow.
            let known = shape.rank() >= 2 && !tensor.is_empty();
            shape
                .extended::<5>()
                .filter(|_| known)
                .ok_or(tensor.wrong_shape())
        };
        let [a, b, c, height, width] = dims(&lhs)?;
        let [d, e, f, right_height, right_width] = dims(&rhs)?;
        let (rows, depth) = if transposed[0] {
            (width, height)
        } else {
            (height, width)
        };
        let (right_depth, columns) = match transposed[1] {
            true => (right_width, right_height),
            false => (right_height, right_width),
        };
        let fits = |x, y| x == y || x == 1 || y == 1;
        if depth != right_depth || !(fits(a, d) && fits(b, e) && fits(c, f)) {
            return Err(rhs.wrong_shape());
        }
        let batches = [a.max(d), b.max(e), c.max(f)];
        let mut len = Some(rows);
        for factor in [batches[0], batches[1], batches[2], columns] {
            len = len.and_then(|len| len.checked_mul(factor));
        }
        if len != Some(output.len()) {
            return Err(output.wrong_shape());
        }
        Ok(Self {
            lhs,
            rhs,
            output,
            batches,
            rows,
            depth,
            columns,
            left: Side::new([a, b, c, height, width], !transposed[0]),
            right: Side::new([d, e, f, right_height, right_width], transposed[1]),
        })
    }

    /// The factor of sums of products, as `GetQuantizedConvolutionMultipler` has it.
    fn factor(&self) -> Result<Multiplier, Fault> {
        let product = self.lhs.scale()? * self.rhs.scale()?;
        Ok(Multiplier::new(
            f64::from(product) / f64::from(self.output.scale()?),
        ))
    }

    /// Calls `each` with every sum of products in order: by `row` of two rows of elements, else one by one with `step`.
    #[inline(always)]
    fn multiply<T: Element, A: Copy>(
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

fn int8(matrices: &Matrices<'_>) -> Result<(), Fault> {
    let (lhs, rhs, output) = (matrices.lhs, matrices.rhs, matrices.output);
    lhs.expect(Type::INT8)?;
    let factor = matrices.factor()?;
    let lhs_offset = lhs.zero_point().wrapping_neg();
    let rhs_offset = rhs.zero_point().wrapping_neg();
    let zero_point = output.zero_point();
    let to = output.write::<i8>()?;
    let multiplied = matrices.multiply(
        lhs.read::<i8>()?,
        rhs.read::<i8>()?,
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
    multiplied.ok_or(output.wrong_shape())
}

fn int16(matrices: &Matrices<'_>) -> Result<(), Fault> {
    let (lhs, rhs, output) = (matrices.lhs, matrices.rhs, matrices.output);
    lhs.expect(Type::INT16)?;
    for tensor in [&lhs, &rhs, &output] {
        if tensor.zero_point() != 0 {
            return Err(Fault::Quantization(tensor.operand()));
        }
    }
    let factor = matrices.factor()?;
    let to = output.write::<i16>()?;
    let multiplied = matrices.multiply(
        lhs.read::<i16>()?,
        rhs.read::<i16>()?,
        0i64,
        |a, b| dot_wide(a, 0, b, 0),
        |sum, a, b| sum.wrapping_add(i64::from(i32::from(a) * i32::from(b))),
        |k, sum| to.set(k, clamp(factor.apply_wide(sum), -32768, 32767) as i16),
    );
    multiplied.ok_or(output.wrong_shape())
}

fn float(matrices: &Matrices<'_>) -> Result<(), Fault> {
    let output = matrices.output;
    output.expect(Type::FLOAT32)?;
    let to = output.write::<f32>()?;
    let multiplied = matrices.multiply(
        matrices.lhs.read::<f32>()?,
        matrices.rhs.read::<f32>()?,
        0.0,
        |a, b| dot_of_floats(0.0, a, b),
        |sum, a, b| sum + a * b,
        |k, sum| to.set(k, sum),
    );
    multiplied.ok_or(output.wrong_shape())
}
