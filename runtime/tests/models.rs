//! Whole models against TFLM: every model of `testdata/models` that TFLM runs, on the inputs of `testdata/runs.bin`, over
//! several invokes, so that state and control flow are seen.
//!
//! `cargo test -p arenaplan-runtime --test models -- lstm` runs the models whose names have that part.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;

use std::collections::BTreeSet;

use common::{Memory, Tolerance};

/// Models whose floats may be further from TFLM's, with the reason.
const EXCEPTIONS: &[(&str, Tolerance, &str)] = &[];

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
    common::run_golden(&model, golden, tolerance)
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
