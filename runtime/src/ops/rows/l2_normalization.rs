//! L2_NORMALIZATION, rows of length 1.
//!
//! The rules are those of TFLM's `l2norm.cc`, `reference/integer_ops/l2normalization.h` and
//! `reference/l2normalization.h`.

use super::{INPUT, OUTPUT, quantization, read, rows_of, tensor, type_of, write};
use crate::contract::Contract;
use crate::error::Fault;
use crate::fixed::logistic::inverse_sqrt;
use crate::fixed::{Multiplier, clamp};
use crate::kernel::{Code, Kernel};
use crate::node::Node;
use crate::types::Type;

/// `L2_NORMALIZATION` along the last of up to 4 axes: int8, whose output has 128 units for 1, or float32.
pub const L2_NORMALIZATION: Kernel =
    Kernel::builtin(Code::L2_NORMALIZATION, l2_normalization).with_contract(Contract::RowsInPlace);

fn l2_normalization(node: &Node<'_>) -> Result<(), Fault> {
    if tensor(node, INPUT)?.shape().rank() > 4 {
        return Err(Fault::Shape(INPUT));
    }
    if node.options()?.i8(0, 0)? != 0 {
        return Err(Fault::Unsupported(0));
    }
    match type_of(node, INPUT)? {
        Type::INT8 => int8(node),
        Type::FLOAT32 => float(node),
        _ => Err(Fault::ElementType(INPUT)),
    }
}

fn int8(node: &Node<'_>) -> Result<(), Fault> {
    /// The output's units for 1 are 2 to this.
    const OUTPUT_BITS: i32 = 7;
    let zero_point = quantization(node, INPUT)?.1;
    let from = read::<i8>(node, 0, Type::INT8)?;
    let to = write::<i8>(node, OUTPUT, Type::INT8)?;
    rows_of(node, &mut |start, depth| {
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

fn float(node: &Node<'_>) -> Result<(), Fault> {
    /// The least length that rows are taken to have.
    const EPSILON: f32 = 1e-6;
    let from = read::<f32>(node, 0, Type::FLOAT32)?;
    let to = write::<f32>(node, OUTPUT, Type::FLOAT32)?;
    rows_of(node, &mut |start, depth| {
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
