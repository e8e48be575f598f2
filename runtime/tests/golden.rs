//! Every kernel against TFLM's reference kernels: each model of `testdata/kernels` has several operators of one kind and
//! type, and carries inputs and the outputs that TFLM gave for them.
//!
//! `cargo test -p arenaplan-runtime --test golden -- ADD_int8` runs the files whose names have that part, and so does
//! `GOLDEN=ADD_int8` in the environment.

mod common;

use arenaplan_runtime::schema::view;
use common::{Memory, Tolerance};

/// Operators whose floats may be further from TFLM's, with the reason.
const EXCEPTIONS: &[(&str, Tolerance, &str)] = &[];

fn test(path: &std::path::Path) -> Result<(), String> {
    let model = Memory::copy_of(&std::fs::read(path).map_err(|e| e.to_string())?);
    let golden = view::Model::new(&model).and_then(|m| m.metadata_bytes("golden"));
    let golden = golden
        .map_err(|e| e.to_string())?
        .ok_or("no golden data in the file")?;
    let exceptions = EXCEPTIONS
        .iter()
        .filter(|(name, _, _)| common::stem(path).starts_with(name));
    let tolerance = exceptions
        .map(|&(_, tolerance, _)| tolerance)
        .next()
        .unwrap_or(Tolerance::USUAL);
    common::run_golden(&model, golden, tolerance)
}

fn main() {
    let tests = common::models("kernels").into_iter().map(|path| {
        let test: Box<dyn Fn() -> Result<(), String>> = Box::new({
            let path = path.clone();
            move || test(&path)
        });
        (common::stem(&path).to_owned(), test)
    });
    common::harness("GOLDEN", tests.collect());
}
