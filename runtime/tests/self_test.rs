//! Inputs made from seeds, and comparisons of outputs. The numbers of the noise are worked out in a few lines of Python.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod common;

use arenaplan_runtime::self_test::{
    Difference, Expected, Output, Port, SelfTest, SelfTestFailure, Signal, digest, number,
};
use arenaplan_runtime::{Interpreter, Type, ops};
use common::Memory;

fn filled(element_type: Type, signal: Signal, elements: usize) -> Vec<u8> {
    let mut bytes = vec![0xaa; elements * element_type.bytes().unwrap()];
    assert!(signal.noise().fill(element_type, &mut bytes));
    bytes
}

/// Words 00042021, 04080601, 9dcca8c5, 1255994f.
fn signal(narrow: u8) -> Signal {
    Signal {
        seed: 1,
        narrow,
        hold: 1,
    }
}

#[test]
fn noise_of_all_types() {
    let all = |element_type, narrow| filled(element_type, signal(narrow), 4);
    assert_eq!(all(Type::INT8, 0), [0i8, 4, -99, 18].map(|x| x as u8));
    assert_eq!(all(Type::INT8, 2), [0i8, 1, -25, 4].map(|x| x as u8));
    assert_eq!(all(Type::UINT8, 0), [128, 132, 29, 146]);
    assert_eq!(all(Type::UINT8, 2), [128, 129, 103, 132]);
    assert_eq!(all(Type::BOOL, 2), [0, 0, 1, 0]);
    let words = |numbers: [i16; 4]| numbers.map(i16::to_le_bytes).concat();
    assert_eq!(all(Type::INT16, 0), words([4, 1032, -25140, 4693]));
    assert_eq!(all(Type::INT16, 2), words([1, 258, -6285, 1173]));
    assert_eq!(
        all(Type::UINT16, 2),
        [32769u16, 33026, 26483, 33941]
            .map(u16::to_le_bytes)
            .concat()
    );
    let indices = [1u32, 258, 10099, 1173];
    for element_type in [Type::INT32, Type::UINT32] {
        assert_eq!(all(element_type, 2), indices.map(u32::to_le_bytes).concat());
    }
    for element_type in [Type::INT64, Type::UINT64] {
        let indices = indices.map(u64::from);
        assert_eq!(all(element_type, 2), indices.map(u64::to_le_bytes).concat());
    }
    let floats = |numbers: [f32; 4]| numbers.map(f32::to_le_bytes).concat();
    assert_eq!(
        all(Type::FLOAT32, 0),
        floats([0.001_007_080_1, 0.251_958_85, -6.137_535, 1.145_897_9])
    );
    assert_eq!(
        all(Type::FLOAT32, 2),
        floats([0.000_251_770_02, 0.062_989_71, -1.534_383_8, 0.286_474_47])
    );
    let mut bytes = [0; 8];
    assert!(!signal(0).noise().fill(Type::FLOAT16, &mut bytes));
    assert!(!signal(0).noise().fill(Type::STRING, &mut bytes));
}

#[test]
fn words_are_held_within_an_input() {
    let signal = Signal {
        hold: 3,
        ..signal(0)
    };
    let mut noise = signal.noise();
    let (mut first, mut second) = ([0; 4], [0; 2]);
    assert!(noise.fill(Type::UINT8, &mut first) && noise.fill(Type::UINT8, &mut second));
    // The second input begins with a word of its own.
    assert_eq!((first, second), ([128, 128, 128, 132], [29, 29]));
    let all = |hold| filled(Type::UINT8, Signal { hold, ..signal }, 3);
    assert_eq!(all(0), all(1));
}

#[test]
fn digests_are_fnv_1a() {
    // Of the page that publishes it.
    assert_eq!(digest(b""), 0x811c_9dc5);
    assert_eq!(digest(b"foobar"), 0xbf9c_f968);
}

#[test]
fn outputs_are_compared() {
    let bytes = Expected::Bytes(&[1, 2, 3, 4]);
    assert_eq!(bytes.compare(Type::INT8, &[1, 2], 0), Ok(()));
    assert_eq!(bytes.compare(Type::INT8, &[3, 4], 1), Ok(()));
    let difference = Difference::Byte {
        at: 1,
        found: 5,
        expected: 4,
    };
    assert_eq!(bytes.compare(Type::INT8, &[3, 5], 1), Err(difference));
    assert_eq!(difference.to_string(), "byte 1 is 5 instead of 4");
    assert_eq!(
        bytes.compare(Type::INT8, &[3, 4], 2),
        Err(Difference::NoValues)
    );

    let digests = Expected::Digests(&[0xbf9c_f968]);
    assert_eq!(digests.compare(Type::INT8, b"foobar", 0), Ok(()));
    let difference = digests.compare(Type::INT8, b"foobaz", 0).unwrap_err();
    assert!(
        difference.to_string().ends_with("instead of bf9cf968"),
        "{difference}"
    );

    // The elements 0 and 2 of each of two invokes.
    let near = Expected::Near {
        step: 2,
        within: &[0.5, 1.0],
        values: &[1.0, 2.0, 3.0, 4.0],
    };
    let floats = |numbers: [f32; 3]| numbers.map(f32::to_le_bytes).concat();
    let compare = |numbers, invoke| near.compare(Type::FLOAT32, &floats(numbers), invoke);
    assert_eq!(compare([1.5, 100.0, 1.5], 0), Ok(()));
    assert_eq!(compare([2.0, 100.0, 5.0], 1), Ok(()));
    let element = |found, expected| Difference::Element {
        at: 2,
        found,
        expected,
    };
    assert_eq!(compare([1.0, 0.0, 2.75], 0), Err(element(2.75, 2.0)));
    assert_eq!(
        element(2.75, 2.0).to_string(),
        "element 2 has the bits 40300000 instead of 40000000"
    );
    assert_eq!(
        element(3.0, -2.0).to_string(),
        "element 2 is 3 instead of -2"
    );
    for wrong in [f32::NAN, f32::INFINITY] {
        assert!(compare([1.0, 0.0, wrong], 0).is_err());
    }
    assert_eq!(compare([1.0, 0.0, 2.0], 2), Err(Difference::NoValues));
    assert_eq!(
        near.compare(Type::INT8, &[0xff, 9, 2], 0),
        Err(Difference::Element {
            at: 0,
            found: -1.0,
            expected: 1.0
        })
    );
    assert_eq!(
        near.compare(Type::INT64, &[0; 24], 0),
        Err(Difference::NoValues)
    );
    assert_eq!(number(Type::INT16, &[0, 0x80]), Some(-32768.0));
    assert_eq!(number(Type::UINT8, &[0xff]), Some(255.0));
    assert_eq!(number(Type::FLOAT32, &[0; 3]), None);
    assert_eq!(number(Type::INT8, &[]), None);
}

#[test]
fn a_test_without_enough_in_it_fails() {
    let file = std::fs::read(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../testdata/models/conv_int8.tflite"
    ))
    .unwrap();
    let (model, mut arena) = (Memory::copy_of(&file), Memory::zeros(1 << 16));
    let mut it = Interpreter::new(&model, ops::ALL, &mut arena).unwrap();
    let port = |info: arenaplan_runtime::Info<'_>| Port {
        element_type: info.element_type,
        bytes: info.shape.elements().unwrap() * info.element_type.bytes().unwrap(),
    };
    let inputs = [port(it.session().input_info(0).unwrap())];
    let output = port(it.session().output_info(0).unwrap());
    let signals = [signal(0); 2];
    let zeros = vec![0; output.bytes];
    for expected in [
        Expected::Bytes(&[]),
        Expected::Digests(&[]),
        Expected::Near {
            step: 0,
            within: &[],
            values: &[],
        },
    ] {
        let outputs = [Output {
            port: output,
            expected,
        }];
        let test = SelfTest {
            inputs: &inputs,
            outputs: &outputs,
            signals: &signals,
        };
        let failure = SelfTestFailure::Output {
            invoke: 0,
            output: 0,
            difference: Difference::NoValues,
        };
        assert_eq!(test.run(&mut it), Err(failure));
    }
    // Another model: more inputs, other outputs, another size.
    let outputs = [Output {
        port: output,
        expected: Expected::Bytes(&zeros),
    }];
    let test = SelfTest {
        inputs: &[],
        outputs: &outputs,
        signals: &signals,
    };
    assert_eq!(test.run(&mut it), Err(SelfTestFailure::Input { input: 0 }));
    let test = SelfTest {
        inputs: &inputs,
        outputs: &[],
        ..test
    };
    assert_eq!(
        test.run(&mut it),
        Err(SelfTestFailure::OutputPort { output: 0 })
    );
    let smaller = [Output {
        port: Port {
            bytes: output.bytes - 1,
            ..output
        },
        expected: Expected::Bytes(&zeros),
    }];
    let test = SelfTest {
        outputs: &smaller,
        ..test
    };
    assert_eq!(
        test.run(&mut it),
        Err(SelfTestFailure::OutputPort { output: 0 })
    );
}
