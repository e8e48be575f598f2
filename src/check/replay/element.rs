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

/// How an operand moves in a loop over one dimension of the output, or over several that make one.
#[derive(Clone, Copy, PartialEq)]
struct Loop {
    count: u64,
    /// Elements that each operand moves on.
    strides: [u64; 2],
}

/// `BroadcastBinaryOpSimple`, broadcast_loop.h, which comes to a single loop where the shapes are the same. An operand
/// that stands still in the innermost loop is read once in front of it.
fn broadcast(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let output = k.output(0)?;
    let inputs = [k.input(0)?, k.input(1)?];
    let (to, from) = (
        element_bytes(output)?,
        [element_bytes(inputs[0])?, element_bytes(inputs[1])?],
    );
    let loops = loops([&shape(inputs[0])?, &shape(inputs[1])?], &shape(output)?)?;
    k.stream(0, output)?;
    k.stream(1, output)?;
    let (inner, outer) = loops.split_first()?;
    let rows = outer.iter().try_fold(1u64, |n, l| n.checked_mul(l.count))?;
    for row in 0..rows {
        // The place of the row in each operand.
        let (mut rest, mut at) = (row, [0u64; 2]);
        for l in outer {
            let index = rest % l.count;
            rest /= l.count;
            for (at, stride) in at.iter_mut().zip(l.strides) {
                *at += index * stride;
            }
        }
        let element = |operand: usize, i: u64| {
            let start = (at[operand] + i) * from[operand];
            (start, start + from[operand])
        };
        let moves = inner.strides.map(|s| s != 0);
        for operand in (0..2).filter(|&o| !moves[o]) {
            let (start, end) = element(operand, 0);
            k.read(operand, start, end)?;
        }
        for i in 0..inner.count {
            for operand in (0..2).filter(|&o| moves[o]) {
                let (start, end) = element(operand, i);
                k.read(operand, start, end)?;
            }
            let start = (row * inner.count + i) * to;
            k.write(0, start, start + to)?;
        }
    }
    Some(())
}

/// The loops over the output, innermost first, with neighbours made one where both operands go on as if they were.
fn loops(operands: [&[u64]; 2], output: &[u64]) -> Option<Vec<Loop>> {
    let rank = output.len().max(operands[0].len()).max(operands[1].len());
    let dim = |shape: &[u64], from_end: usize| {
        shape
            .len()
            .checked_sub(from_end + 1)
            .map_or(1, |i| shape[i])
    };
    let mut loops: Vec<Loop> = Vec::new();
    let mut whole = [1u64; 2];
    for i in 0..rank {
        let out = dim(output, i);
        let mut strides = [0; 2];
        for (o, operand) in operands.iter().enumerate() {
            strides[o] = match dim(operand, i) {
                1 if out != 1 => 0,
                n if n == out => whole[o],
                _ => return None,
            };
        }
        if strides == [0, 0] {
            return None;
        }
        let goes_on = |o: usize, last: &Loop| match last.strides[o] {
            0 => strides[o] == 0,
            _ => strides[o] == whole[o],
        };
        match loops.last_mut() {
            Some(last) if out == 1 || (goes_on(0, last) && goes_on(1, last)) => {
                last.count = last.count.checked_mul(out)?;
            }
            _ => loops.push(Loop {
                count: out,
                strides,
            }),
        }
        for (o, operand) in operands.iter().enumerate() {
            whole[o] = whole[o].checked_mul(dim(operand, i))?;
        }
    }
    if loops.is_empty() {
        loops.push(Loop {
            count: 1,
            strides: [1, 1],
        });
    }
    Some(loops)
}
