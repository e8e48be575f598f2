//! Kernels that make one output element after the other from the elements at the same place.

use arenaplan_schema::tflite::BuiltinOperator as Op;

use super::{Kernel, element_bytes, product, shape};

/// Operators with one operand, with two that are broadcast, and with several of one shape.
pub(super) fn run(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    match k.op.code {
        // elementwise.cc, activations.cc, activations_common.cc, logistic_common.cc, tanh.cc, elu.cc, exp.cc, neg.cc,
        // hard_swish_common.cc, leaky_relu_common.cc, ceil.cc, floor.cc, round.cc, cast.cc, quantize_common.cc,
        // dequantize.cc, expand_dims.cc. Each loop over a row of softmax.h, log_softmax.h and l2normalization.h but the
        // last one, or the last but one that fills the output, only reads.
        Op::ABS
        | Op::SIN
        | Op::COS
        | Op::LOG
        | Op::SQRT
        | Op::RSQRT
        | Op::SQUARE
        | Op::LOGICAL_NOT
        | Op::RELU
        | Op::RELU6
        | Op::LOGISTIC
        | Op::TANH
        | Op::ELU
        | Op::EXP
        | Op::NEG
        | Op::HARD_SWISH
        | Op::LEAKY_RELU
        | Op::CEIL
        | Op::FLOOR
        | Op::ROUND
        | Op::CAST
        | Op::QUANTIZE
        | Op::DEQUANTIZE
        | Op::EXPAND_DIMS
        | Op::SOFTMAX
        | Op::LOG_SOFTMAX
        | Op::L2_NORMALIZATION => same_shape(k, &[0], 1),
        Op::ADD
        | Op::SUB
        | Op::MUL
        | Op::DIV
        | Op::FLOOR_DIV
        | Op::FLOOR_MOD
        | Op::MAXIMUM
        | Op::MINIMUM
        | Op::SQUARED_DIFFERENCE
        | Op::LOGICAL_AND
        | Op::LOGICAL_OR
        | Op::EQUAL
        | Op::NOT_EQUAL
        | Op::GREATER
        | Op::GREATER_EQUAL
        | Op::LESS
        | Op::LESS_EQUAL
        | Op::PRELU => broadcast(k),
        Op::SELECT | Op::SELECT_V2 => same_shape(k, &[0, 1, 2], 1),
        Op::ADD_N => same_shape(k, &(0..k.op.inputs.len()).collect::<Vec<_>>(), 1),
        Op::ZEROS_LIKE => {
            // Only the shape of the input is looked at.
            k.stream(0, k.output(0)?)?;
            k.write_all(0)
        }
        _ => None,
    }
}

/// All operands have as many elements as the output: `block` at a time are read, then written.
pub(super) fn same_shape(k: &mut Kernel<'_, '_, '_>, operands: &[usize], block: u64) -> Option<()> {
    let output = k.output(0)?;
    let (all, to) = (product(&shape(output)?)?, element_bytes(output)?);
    let mut from = Vec::new();
    for &i in operands {
        let input = k.input(i)?;
        if product(&shape(input)?)? != all {
            return None;
        }
        k.stream(i, output)?;
        from.push(element_bytes(input)?);
    }
    let mut first = 0;
    while first < all {
        let end = all.min(first + block);
        for (&i, bytes) in operands.iter().zip(&from) {
            k.read(i, first * bytes, end * bytes)?;
        }
        k.write(0, first * to, end * to)?;
        first = end;
    }
    Some(())
}

/// broadcast_loop.h, and the loops over four or five dimensions that it has replaced: the output in order. The new loops
/// read an operand that stands still in the innermost one once in front of it, the old ones each time.
fn broadcast(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let output = k.output(0)?;
    let inputs = [k.input(0)?, k.input(1)?];
    let (to, from) = (
        element_bytes(output)?,
        [element_bytes(inputs[0])?, element_bytes(inputs[1])?],
    );
    let to_dims = shape(output)?;
    let strides = [
        strides(&shape(inputs[0])?, &to_dims)?,
        strides(&shape(inputs[1])?, &to_dims)?,
    ];
    k.stream(0, output)?;
    k.stream(1, output)?;
    let mut index = vec![0; to_dims.len()];
    let mut at = [0u64; 2];
    for element in 0..product(&to_dims)? {
        for operand in 0..2 {
            let start = at[operand] * from[operand];
            k.read(operand, start, start + from[operand])?;
        }
        k.write(0, element * to, (element + 1) * to)?;
        for d in (0..to_dims.len()).rev() {
            index[d] += 1;
            for operand in 0..2 {
                at[operand] += strides[operand][d];
            }
            if index[d] < to_dims[d] {
                break;
            }
            for operand in 0..2 {
                at[operand] -= strides[operand][d] * to_dims[d];
            }
            index[d] = 0;
        }
    }
    Some(())
}

/// Elements that an operand moves on for a step in each dimension of the output: none where it has only one.
fn strides(operand: &[u64], output: &[u64]) -> Option<Vec<u64>> {
    // Dimensions of 1 in front are none.
    let missing = operand.len().saturating_sub(output.len());
    let (front, operand) = operand.split_at(missing);
    if front.iter().any(|&d| d != 1) {
        return None;
    }
    let skipped = output.len() - operand.len();
    let mut strides = vec![0; output.len()];
    let mut whole = 1u64;
    for d in (0..operand.len()).rev() {
        strides[skipped + d] = match operand[d] {
            n if n == output[skipped + d] => whole,
            1 => 0,
            _ => return None,
        };
        whole = whole.checked_mul(operand[d])?;
    }
    Some(strides)
}
