//! How outputs are stored: whole, as digests, or as numbers that may differ a little.

use arenaplan_runtime::Type;
use arenaplan_runtime::self_test::{Port, digest, number};
use arenaplan_schema::tflite::{BuiltinOperator, TensorType};

use super::{Known, Values};
use crate::graph::Graph;

/// Outputs of at most so many bytes are stored as they are, so that the device can say which byte differs.
const WHOLE_BYTES: usize = 64;
/// So many numbers of all outputs of an invoke are stored, where they may differ, but not less than `LEAST` of each output.
const NUMBERS: usize = 32;
const LEAST: usize = 8;
/// How much floats may differ, of the largest value of the output in that invoke: `exp` and the like have other last bits
/// in each C library.
const CLOSE: f32 = 1e-5;
/// How much integers may differ that come from floats.
const STEP: f32 = 1.0;

/// Whether some operator computes with floats, beyond converting integers from and to them.
pub(super) fn computes_floats(graph: &Graph<'_>) -> bool {
    graph.operators().any(|op| {
        let converts = matches!(
            op.code,
            BuiltinOperator::QUANTIZE | BuiltinOperator::DEQUANTIZE
        );
        let outputs = op.outputs.iter();
        !converts
            && outputs
                .into_iter()
                .any(|&t| graph.tensor(t).ty == TensorType::FLOAT32)
    })
}

/// The form for the values of one of `outputs` outputs, `row` elements of which are next to each other, of all invokes.
pub(super) fn known(
    port: Port,
    row: usize,
    outputs: usize,
    has_floats: bool,
    invokes: &[&[u8]],
) -> Known {
    let near = match port.element_type {
        Type::FLOAT32 => true,
        Type::INT8 | Type::UINT8 | Type::INT16 => has_floats,
        _ => false,
    };
    let values = if near {
        let size = port.element_type.bytes().unwrap_or(1);
        let numbers = (NUMBERS / outputs.max(1)).max(LEAST);
        let step = step(port.bytes / size, row, numbers);
        let all = |bytes: &[u8]| -> Vec<f32> {
            let elements = bytes.chunks_exact(size);
            elements
                .filter_map(|e| number(port.element_type, e))
                .collect()
        };
        let numbers: Vec<Vec<f32>> = invokes.iter().map(|bytes| all(bytes)).collect();
        let within = |numbers: &Vec<f32>| match port.element_type {
            Type::FLOAT32 => {
                let largest = numbers.iter().fold(1e-30f32, |most, x| most.max(x.abs()));
                CLOSE * largest
            }
            _ => STEP,
        };
        Values::Near {
            step,
            within: numbers.iter().map(within).collect(),
            values: numbers
                .iter()
                .flat_map(|numbers| numbers.iter().step_by(step).copied())
                .collect(),
        }
    } else if port.bytes <= WHOLE_BYTES {
        Values::Bytes(invokes.concat())
    } else {
        Values::Digests(invokes.iter().map(|bytes| digest(bytes)).collect())
    };
    Known { port, values }
}

/// Every so-many-th of `elements` is stored, `numbers` or less: of each column of a row of `row` elements some.
fn step(elements: usize, row: usize, numbers: usize) -> usize {
    let gcd = |mut a: usize, mut b: usize| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let mut step = elements.div_ceil(numbers).max(1);
    while step > 1 && row > 1 && step < elements && gcd(step, row) != 1 {
        step += 1;
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_reach_all_columns() {
        assert_eq!(step(0, 1, 32), 1);
        assert_eq!(step(32, 8, 32), 1);
        assert_eq!(step(33, 11, 32), 2);
        // 2 would see every other column alone.
        assert_eq!(step(64, 8, 32), 3);
        assert_eq!(step(4096, 64, 32), 129);
        assert_eq!(step(4096, 64, 8), 513);
    }

    #[test]
    fn small_integers_are_stored_whole_and_large_ones_as_a_digest() {
        let port = |element_type, bytes| Port {
            element_type,
            bytes,
        };
        let known =
            |port, has_floats, bytes: &[u8]| known(port, 1, 1, has_floats, &[bytes, bytes]).values;
        assert_eq!(
            known(port(Type::INT8, 2), false, &[1, 2]),
            Values::Bytes(vec![1, 2, 1, 2])
        );
        // FNV-1a of nothing but zeros is worked out by a few lines of Python.
        let digests = Values::Digests(vec![0x83e7_9215; 2]);
        assert_eq!(known(port(Type::INT32, 68), true, &[0; 68]), digests);
        let near = Values::Near {
            step: 1,
            within: vec![1.0; 2],
            values: vec![-1.0, 2.0, -1.0, 2.0],
        };
        assert_eq!(known(port(Type::INT8, 2), true, &[255, 2]), near);
        let bytes = [2.0f32, -4.0].map(f32::to_le_bytes).concat();
        let near = Values::Near {
            step: 1,
            within: vec![4e-5; 2],
            values: vec![2.0, -4.0, 2.0, -4.0],
        };
        assert_eq!(known(port(Type::FLOAT32, 8), false, &bytes), near);
    }
}
