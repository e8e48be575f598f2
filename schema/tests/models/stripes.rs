//! A rewrite worked out by hand: the first layers of `testdata/models/conv_int8.tflite` in two row stripes.
//!
//! ```text
//! image 16x16x3 (0) -> CONV_2D 3x3, SAME -> 16x16x8 (9) -> MAX_POOL_2D 2x2, VALID -> 8x8x8 (10)
//!
//! rows  0..9 (9)  -> CONV_2D, rows 0..9, the last one wrong (16) -> pool, rows 0..4 (17) -----------------.
//! rows 7..16 (18) -> CONV_2D, rows 7..16, the first one wrong (19) -> rows 8..16 (20) -> rows 4..8 (21) ---'-> (10)
//! ```
#![allow(unreachable_pub, reason = "test binaries of two crates use it")]

use arenaplan_schema::patch::{NewOperator, NewTensor, Rewrite};

pub const MODEL: &str = "conv_int8.tflite";

fn like(original: u32, shape: [i32; 4], name: &str) -> NewTensor {
    let (shape, name) = (shape.to_vec(), name.to_owned());
    NewTensor::Like {
        original,
        shape,
        name,
    }
}

fn constant(values: [i32; 4], name: &str) -> NewTensor {
    NewTensor::Constant {
        shape: vec![4],
        values: values.to_vec(),
        name: name.to_owned(),
    }
}

fn copy(original: u32, inputs: &[i32], output: i32) -> NewOperator {
    NewOperator::Like {
        original,
        inputs: inputs.to_vec(),
        outputs: vec![output],
    }
}

fn slice(inputs: [i32; 3], output: i32) -> NewOperator {
    NewOperator::Slice { inputs, output }
}

pub fn rewrite() -> Rewrite {
    let (image, weights, bias) = (0, 8, 7);
    let mut operators = vec![
        slice([image, 22, 23], 9),
        copy(0, &[9, weights, bias], 16),
        copy(1, &[16], 17),
        slice([image, 24, 25], 18),
        copy(0, &[18, weights, bias], 19),
        slice([19, 26, 27], 20),
        copy(1, &[20], 21),
        NewOperator::Concatenation {
            axis: 1,
            inputs: vec![17, 21],
            output: 10,
        },
    ];
    operators.extend((2..7).map(NewOperator::Original));
    Rewrite {
        subgraph: 0,
        replaced: vec![(9, like(0, [1, 9, 16, 3], "image, rows 0 to 9"))],
        added: vec![
            like(9, [1, 9, 16, 8], "conv, rows 0 to 9"),
            like(10, [1, 4, 8, 8], "pool, rows 0 to 4"),
            like(0, [1, 9, 16, 3], "image, rows 7 to 16"),
            like(9, [1, 9, 16, 8], "conv, rows 7 to 16"),
            like(9, [1, 8, 16, 8], "conv, rows 8 to 16"),
            like(10, [1, 4, 8, 8], ""),
            constant([0, 0, 0, 0], "begin"),
            constant([1, 9, 16, 3], "size"),
            constant([0, 7, 0, 0], "begin"),
            constant([1, 9, 16, 3], "the same size"),
            constant([0, 1, 0, 0], ""),
            constant([1, 8, 16, 8], ""),
        ],
        operators,
    }
}
