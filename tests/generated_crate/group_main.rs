//! The program of the crate that `tests/generated_group.rs` builds: models that take turns compute what was recorded of them
//! alone, and a model that was cut in two what was recorded of the whole.

use arenaplan_runtime::{Arena, Error};

mod models {
    // What generated code must not mind.
    #![deny(warnings, missing_docs, unsafe_code, unreachable_pub)]
    #[allow(dead_code)]
    struct Result;
    #[allow(unused_macros)]
    macro_rules! assert {
        () => {};
    }

    arenaplan_runtime::include_model!("voice");
    arenaplan_runtime::include_model!("pipeline");
}

use models::*;

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

fn count(bytes: &mut &[u8]) -> u32 {
    let (count, rest) = bytes.split_first_chunk().unwrap();
    *bytes = rest;
    u32::from_le_bytes(*count)
}

fn take<'b>(bytes: &mut &'b [u8], len: usize) -> &'b [u8] {
    let (part, rest) = bytes.split_at(len);
    *bytes = rest;
    part
}

fn set(input: &mut [i8], bytes: &mut &[u8]) {
    let values = take(bytes, input.len());
    input
        .iter_mut()
        .zip(values)
        .for_each(|(x, &b)| *x = b as i8);
}

fn is(output: &[i8], bytes: &mut &[u8]) -> bool {
    let expected = take(bytes, output.len());
    output.iter().zip(expected).all(|(&x, &b)| x == b as i8)
}

fn main() -> Result<(), Error> {
    let runs = std::fs::read(std::env::args().nth(1).unwrap()).unwrap();
    let mut right = true;

    let mut arena = Arena::<{ Voice::ARENA_BYTES }>::new();
    let mut voice = Voice::new(&mut arena)?;
    for _ in 0..2 {
        let (mut of_vad, mut of_kws) =
            (record(&runs, "streaming_int8"), record(&runs, "dscnn_int8"));
        let rounds = [count(&mut of_vad), count(&mut of_kws)];
        for round in 0..rounds[0].max(rounds[1]) {
            if round < rounds[0] {
                let mut vad = voice.vad();
                set(vad.input_mut()?, &mut of_vad);
                vad.invoke()?;
                right &= is(vad.output()?, &mut of_vad);
            }
            if round < rounds[1] {
                let mut kws = voice.kws();
                set(kws.input_mut()?, &mut of_kws);
                kws.invoke()?;
                right &= is(kws.output()?, &mut of_kws);
            }
        }
        right &= of_vad.is_empty() && of_kws.is_empty();
        // The first one has state, which a reset makes new.
        voice.vad().reset()?;
    }
    assert_eq!(voice.kws().output(), Err(Error::OutOfTurn));
    voice.vad().invoke()?;
    assert!(voice.vad().output().is_ok());
    voice.kws().input_mut()?;
    assert_eq!(voice.vad().output(), Err(Error::OutOfTurn));
    assert_eq!(voice.vad().self_test(), Ok(()));
    assert_eq!(voice.kws().self_test(), Ok(()));
    println!("voice {}", if right { "right" } else { "WRONG" });

    let mut arena = Arena::<{ Pipeline::ARENA_BYTES }>::new();
    let mut pipeline = Pipeline::new(&mut arena)?;
    let mut of_whole = record(&runs, "dscnn_int8");
    for _ in 0..count(&mut of_whole) {
        set(pipeline.front().input_mut()?, &mut of_whole);
        pipeline.front().invoke()?;
        pipeline.back().invoke()?;
        right &= is(pipeline.back().output()?, &mut of_whole);
    }
    // What is no longer there, or not there yet, is an error and no wrong number.
    assert_eq!(pipeline.front().output(), Err(Error::OutOfTurn));
    assert_eq!(pipeline.back().invoke(), Err(Error::OutOfTurn));
    pipeline.front().invoke()?;
    assert!(pipeline.front().output().is_ok());
    pipeline.front().input_mut()?;
    assert_eq!(pipeline.back().invoke(), Err(Error::OutOfTurn));
    assert_eq!(pipeline.back().output(), Err(Error::OutOfTurn));
    println!("pipeline {}", if right { "right" } else { "WRONG" });

    assert_eq!(Voice::ARENA_BYTES, Voice::HEAD_BYTES + Voice::TAIL_BYTES);
    assert_eq!(Voice::HEAD_BYTES, Vad::HEAD_BYTES.max(Kws::HEAD_BYTES));
    assert_eq!(Voice::TAIL_BYTES, Vad::TAIL_BYTES + Kws::TAIL_BYTES);
    assert_eq!(Front::OUTPUT_LEN, Back::INPUT_LEN);
    let mut small = Arena::<16>::new();
    assert!(Voice::in_memory(small.as_mut_slice()).is_err());

    #[cfg(feature = "set_linked")]
    pipeline.back().input_mut()?.fill(0);
    #[cfg(feature = "too_small")]
    let _ = Voice::new(&mut Arena::<{ Voice::ARENA_BYTES - 1 }>::new());
    Ok(())
}
