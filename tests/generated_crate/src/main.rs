//! The program of the crate that `tests/generated.rs` builds: runs each model on recorded inputs, and compares the outputs.

use arenaplan_runtime::{Arena, Error};

mod models {
    // What generated code must not mind.
    #![deny(warnings, missing_docs, unsafe_code, unreachable_pub)]
    #[allow(dead_code)]
    struct Result;
    #[allow(dead_code)]
    struct Option;

    arenaplan_runtime::include_model!("two_inputs_int8");
    arenaplan_runtime::include_model!("reductions_int8");
    arenaplan_runtime::include_model!("autoencoder_int16x8");
    arenaplan_runtime::include_model!("conv_uint8_io");
    arenaplan_runtime::include_model!("streaming_float32");
    arenaplan_runtime::include_model!("3d größe-v2");
    arenaplan_runtime::include_model!("type");
    arenaplan_runtime::include_model!("changing");
    arenaplan_runtime::include_model!("striped");
}

arenaplan_runtime::include_model!("dscnn_int8");

use models::*;

trait Number: Copy {
    fn read(bytes: &mut &[u8]) -> Self;
    fn is(self, expected: Self) -> bool;
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Number for $type {
            fn read(bytes: &mut &[u8]) -> Self {
                let (first, rest) = bytes.split_first_chunk().unwrap();
                *bytes = rest;
                Self::from_le_bytes(*first)
            }
            // Floats of some models are only as near as the runtime promises.
            #[allow(clippy::float_cmp)]
            fn is(self, expected: Self) -> bool {
                let (x, y) = (self as f64, expected as f64);
                self == expected || (size_of::<Self>() == 4 && (x - y).abs() <= 5e-5 * y.abs().max(1e-2))
            }
        }
    )*};
}

numbers!(i8 u8 i16 f32);

fn set<T: Number>(input: &mut [T], bytes: &mut &[u8]) {
    for element in input {
        *element = T::read(bytes);
    }
}

fn compare<T: Number>(output: &[T], bytes: &mut &[u8]) -> bool {
    // All are read, also after one that differs.
    output
        .iter()
        .filter(|element| !element.is(T::read(bytes)))
        .count()
        == 0
}

/// The record of a model in `runs.bin`: see `testdata/README.md`.
fn record<'r>(mut runs: &'r [u8], name: &str) -> &'r [u8] {
    let mut part = || {
        let len = i32::from_le_bytes(*runs.split_first_chunk().unwrap().0) as usize;
        let part = &runs[4..][..len];
        runs = &runs[4 + len..];
        part
    };
    loop {
        let (found, record) = (part(), part());
        if found == name.as_bytes() {
            return record;
        }
    }
}

macro_rules! run {
    ($runs:expr, $type:ident, $name:literal, [$($input:ident)*], [$($output:ident)*]) => {{
        let mut arena = Arena::<{ $type::ARENA_BYTES }>::new();
        let mut model = $type::new(&mut arena)?;
        let mut right = true;
        // The second time after a reset, which must make the model new.
        for _ in 0..2 {
            let mut bytes = record($runs, $name);
            let (invokes, rest) = bytes.split_first_chunk().unwrap();
            bytes = rest;
            for _ in 0..u32::from_le_bytes(*invokes) {
                $(set(&mut model.$input()?[..], &mut bytes);)*
                model.invoke()?;
                $(right &= compare(&model.$output()?[..], &mut bytes);)*
            }
            right &= bytes.is_empty();
            model.reset()?;
        }
        println!("{} {}", $name, if right { "right" } else { "WRONG" });
    }};
}

fn main() -> Result<(), Error> {
    let runs = std::fs::read(std::env::args().nth(1).unwrap()).unwrap();
    let runs = &runs[..];
    run!(runs, DscnnInt8, "dscnn_int8", [input_mut], [output]);
    run!(runs, TwoInputsInt8, "two_inputs_int8", [input_0_mut input_1_mut], [output]);
    run!(runs, ReductionsInt8, "reductions_int8", [input_mut], [output_0 output_1 output_2 output_3]);
    run!(
        runs,
        AutoencoderInt16x8,
        "autoencoder_int16x8",
        [input_mut],
        [output]
    );
    run!(runs, ConvUint8Io, "conv_uint8_io", [input_mut], [output]);
    run!(runs, Striped, "conv_int16x8", [input_mut], [output]);
    run!(
        runs,
        StreamingFloat32,
        "streaming_float32",
        [input_mut],
        [output]
    );
    run!(
        runs,
        Model3dGrößeV2,
        "attention_float32",
        [input_mut],
        [output]
    );
    run!(runs, Type, "svdf_int8", [input_mut], [output]);

    // State is carried on, and set back.
    let mut arena = Arena::<{ StreamingFloat32::ARENA_BYTES }>::new();
    let mut model = StreamingFloat32::new(&mut arena)?;
    for _ in 0..2 {
        assert_eq!(model.self_test(), Ok(()));
        model.input_mut()?.fill(0.5);
        model.invoke()?;
    }

    // By the model's description in `testdata/tf_models.py`.
    assert_eq!(DscnnInt8::INPUT_SHAPE, [1, 24, 24, 3]);
    assert_eq!(
        (DscnnInt8::INPUT_LEN, DscnnInt8::OUTPUT_LEN),
        (24 * 24 * 3, 4)
    );
    assert_eq!(DscnnInt8::MODEL.as_ptr().addr() % 16, 0);
    assert_eq!(
        DscnnInt8::ARENA_BYTES,
        DscnnInt8::HEAD_BYTES + DscnnInt8::TAIL_BYTES
    );
    let real = DscnnInt8::INPUT_SCALE * (100 - DscnnInt8::INPUT_ZERO_POINT) as f32;
    assert_eq!(DscnnInt8::quantize_input(real), 100);
    assert_eq!(DscnnInt8::quantize_input(1e9), 127);
    let zero = DscnnInt8::OUTPUT_ZERO_POINT as i8;
    assert_eq!(
        DscnnInt8::dequantize_output(zero + 10),
        10.0 * DscnnInt8::OUTPUT_SCALE
    );

    // A slice will do, and two outputs at a time.
    let mut arena = Arena::<{ ReductionsInt8::ARENA_BYTES }>::new();
    let mut model = ReductionsInt8::in_memory(arena.as_mut_slice())?;
    model.invoke()?;
    let (first, last) = (model.output_0()?, model.output_3()?);
    assert_eq!(
        (first.len(), last.len()),
        (ReductionsInt8::OUTPUT_0_LEN, ReductionsInt8::OUTPUT_3_LEN)
    );
    let session = model.interpreter().session();
    assert_eq!(session.tail_bytes(), ReductionsInt8::TAIL_BYTES);
    assert!(ReductionsInt8::in_memory(Arena::<16>::new().as_mut_slice()).is_err());

    #[cfg(feature = "too_small")]
    let _ = DscnnInt8::new(&mut Arena::<{ DscnnInt8::ARENA_BYTES - 1 }>::new());

    println!(
        "changing {} {}",
        Changing::MODEL.len(),
        Changing::ARENA_BYTES
    );
    println!("out {}", env!("OUT_DIR"));
    Ok(())
}
