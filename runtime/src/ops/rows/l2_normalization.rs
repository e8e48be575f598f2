//! L2_NORMALIZATION, rows of length 1.
//!
//! The rules are those of TFLM's `l2norm.cc`, `reference/integer_ops/l2normalization.h` and
//! `reference/l2normalization.h`.

use super::rows_of;
use crate::contract::Contract;
use crate::error::{Fault, Operand};
use crate::fixed::logistic::inverse_sqrt;
use crate::fixed::{Multiplier, clamp};
use crate::kernel::{Code, Kernel};
use crate::node::{Node, Tensor};
use crate::types::Type;

/// `L2_NORMALIZATION` along the last of up to 4 axes: int8, whose output has 128 units for 1, or float32.
pub const L2_NORMALIZATION: Kernel =
    Kernel::builtin(Code::L2_NORMALIZATION, l2_normalization).with_contract(Contract::RowsInPlace);

fn l2_normalization(node: &Node<'_>) -> Result<(), Fault> {
    let (input, output) = (node.input(0)?, node.output(0)?);
    output.expect(input.element_type())?;
    if input.shape().rank() > 4 {
        return Err(input.wrong_shape());
    }
    if node.options()?.i8(0, 0)? != 0 {
        return Err(Fault::Unsupported(0));
    }
    match input.element_type() {
        Type::INT8 => int8(&input, &output),
        Type::FLOAT32 => float(&input, &output),
        _ => Err(Fault::ElementType(Operand::Input(0))),
    }
}

fn int8(input: &Tensor<'_>, output: &Tensor<'_>) -> Result<(), Fault> {
    /// The output's units for 1 are 2 to this.
    const OUTPUT_BITS: i32 = 7;
    let zero_point = input.zero_point();
    let (from, to) = (input.read::<i8>()?, output.write::<i8>()?);
    rows_of(input, output, &mut |start, depth| {
        let (row, to) = (from.part(start, depth)?, to.part(start, depth)?);
        let mut squares = 0i32;
        for x in row {
            let x = i32::from(x).wrapping_sub(zero_point);
            squares = squares.wrapping_add(x.wrapping_mul(x));
        }
        let (multiplier, shift) = inverse_sqrt(squares);
        let shift = shift + OUTPUT_BITS;
        let factor = Multiplier { multiplier, shift };
        for (k, x) in row.iter().enumerate() {
            let x = i32::from(x).wrapping_sub(zero_point);
            to.set(k, clamp(factor.apply(x), -128, 127) as i8);
        }
        Some(())
    })
}

fn float(input: &Tensor<'_>, output: &Tensor<'_>) -> Result<(), Fault> {
    /// The least length that rows are taken to have.
    const EPSILON: f32 = 1e-6;
    let (from, to) = (input.read::<f32>()?, output.write::<f32>()?);
    rows_of(input, output, &mut |start, depth| {
        let (row, to) = (from.part(start, depth)?, to.part(start, depth)?);
        let squares = row.iter().fold(0.0, |sum, x| sum + x * x);
        let length = libm::sqrtf(squares);
        let length = if length < EPSILON { EPSILON } else { length };
        for (k, x) in row.iter().enumerate() {
            to.set(k, x / length);
        }
        Some(())
    })
}
