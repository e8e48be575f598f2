//! Whole models against TFLM: every model of `testdata/models` that TFLM runs, on the inputs of `testdata/runs.bin`, over
//! several invokes, so that state and control flow are seen.
//!
//! `cargo test -p arenaplan-runtime --test models -- lstm` runs the models whose names have that part.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)]

mod common;

use std::collections::BTreeSet;

use common::{Memory, Tolerance};

/// Models whose floats may be further from TFLM's, with the reason.
const EXCEPTIONS: &[(&str, Tolerance, &str)] = &[(
    "attention_float32",
    Tolerance {
        relative: 5e-5,
        ..Tolerance::USUAL
    },
    "sums in which much cancels, of what SOFTMAX and RSQRT gave: the last bits of expf and sqrt grow",
)];

/// Models that TFLM runs and the runtime does not: what it says instead, and why.
const LEFT_OUT: &[(&str, &str, &str)] = &[
    (
        "detection_float32",
        "no kernel is registered for operator 1 of subgraph 0, which has the code 32",
        "a custom operator that applications may bring",
    ),
    (
        "idle_open_shape_float32",
        "the size of tensor 1 is not known",
        "shapes are read from the file, which leaves dimensions of this one open",
    ),
    (
        "legacy_scalar_float32",
        "invoke 0: operator 1 of subgraph 0: the shape of output 0 does not fit",
        "a tensor of no elements that RESHAPE would have to give one",
    ),
    (
        "plan_odd_header_int8",
        "the plan has the unknown version 7",
        "TFLM does not look at the version",
    ),
    (
        "reshape_open_float32",
        "the size of tensor 2 is not known",
        "shapes are read from the file, which leaves a dimension of this one open",
    ),
    (
        "stored_shape_float32",
        "invoke 0: operator 1 of subgraph 0: the shape of input 0 does not fit",
        "the file has another shape than the kernel makes",
    ),
    (
        "three_levels_float32",
        "no kernel is registered for operator 2 of subgraph 2, which has the code 140",
        "there is no REDUCE_ALL",
    ),
];

/// Takes what a length of 4 bytes stands before.
fn part<'a>(left: &mut &'a [u8]) -> &'a [u8] {
    let (len, rest) = left.split_first_chunk().expect("a length");
    let (part, rest) = rest.split_at(u32::from_le_bytes(*len) as usize);
    *left = rest;
    part
}

/// The models that TFLM runs, by what was recorded when the test data was made.
fn models_that_run() -> BTreeSet<String> {
    let wheel = std::fs::read(common::testdata("wheel.json")).unwrap();
    let wheel: serde_json::Value = serde_json::from_slice(&wheel).unwrap();
    let models = wheel["models"].as_object().expect("models").iter();
    let models = models.filter(|(_, record)| record["runs"] == true);
    models.map(|(name, _)| name.clone()).collect()
}

fn test(name: &str, golden: &[u8]) -> Result<(), String> {
    let path = common::testdata(&format!("models/{name}.tflite"));
    let model = Memory::copy_of(&std::fs::read(path).map_err(|e| e.to_string())?);
    let exception = EXCEPTIONS.iter().find(|&&(which, ..)| which == name);
    let tolerance = exception.map_or(Tolerance::USUAL, |&(_, tolerance, _)| tolerance);
    let result = common::run_golden(&model, golden, tolerance);
    match LEFT_OUT.iter().find(|(which, ..)| *which == name) {
        None => result,
        Some((_, says, _)) if result == Err((*says).to_owned()) => Ok(()),
        Some((_, says, _)) => Err(format!("not \"{says}\" but {result:?}")),
    }
}

fn main() {
    let runs = std::fs::read(common::testdata("runs.bin")).unwrap();
    let mut left = &runs[..];
    let mut tests = Vec::<common::Test>::new();
    while !left.is_empty() {
        let name = str::from_utf8(part(&mut left)).unwrap().to_owned();
        let golden = part(&mut left).to_vec();
        let test_name = name.clone();
        tests.push((test_name, Box::new(move || test(&name, &golden))));
    }
    let names: BTreeSet<_> = tests.iter().map(|(name, _)| name.clone()).collect();
    assert!(
        names == models_that_run() && names.len() == tests.len(),
        "runs.bin has other models than TFLM runs by wheel.json; make it anew with tests/oracle/runs.py"
    );
    common::harness("MODELS", tests);
}
