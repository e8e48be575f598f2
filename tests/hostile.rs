//! Damaged and hostile files: an error or a right plan, never a panic.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

#[path = "common/build.rs"]
mod build;
mod common;

use arenaplan::graph::Graph;
use arenaplan::model::Model;
use arenaplan::plan::{Options, plan};
use arenaplan::stored::StoredPlan;

/// Plans `bytes`; a plan that is written must be judged right when the file is read anew.
fn survives(bytes: &[u8]) -> bool {
    let Ok(planned) = plan(bytes, &Options::default()) else {
        return false;
    };
    let graph = Graph::read(Model::parse(&planned.file).unwrap()).unwrap();
    let verdict = common::judged(&graph, StoredPlan::read(&graph));
    if let arenaplan::report::Outcome::Planned { .. } = planned.report.outcome {
        assert_eq!(verdict.faults, Vec::<String>::new());
        assert!(verdict.is_right());
    }
    true
}

#[test]
fn truncated_at_every_length() {
    let bytes = common::model("diamond_a_int8");
    assert!(survives(&bytes));
    for length in 0..bytes.len() {
        survives(&bytes[..length]);
    }
}

#[test]
fn ten_thousand_byte_flips() {
    let samples = common::models();
    let mut random = common::Random::new(1);
    let (mut planned, mut refused) = (0, 0);
    for _ in 0..10_000 {
        let sample = &samples[random.below(samples.len())];
        let mut bytes = sample.bytes.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        match survives(&bytes) {
            true => planned += 1,
            false => refused += 1,
        }
    }
    // Both must occur, or the test would prove nothing.
    assert!(
        planned > 1000 && refused > 100,
        "{planned} planned, {refused} refused"
    );
}

/// Bytes in front decide most: the root, vtables, and a graft's own tables. They get more than their share here.
#[test]
fn byte_flips_in_planned_files() {
    let original = common::model("diamond_a_int8");
    let planned = plan(&original, &Options::default()).unwrap().file;
    let front = planned.len() - original.len() + 64;
    let mut random = common::Random::new(2);
    for _ in 0..3_000 {
        let mut bytes = planned.clone();
        let at = random.below(front);
        bytes[at] = random.next() as u8;
        survives(&bytes);
    }
}

#[test]
fn each_malformed_file_is_an_error_or_gets_a_right_plan() {
    for sample in common::malformed() {
        let ok = survives(&sample.bytes);
        // A wrong plan is no obstacle to a right one.
        if sample.name.starts_with("plan_") {
            assert!(ok, "{}", sample.name);
        }
    }
}

/// What becomes of each malformed file: the error, or the outcome with its warnings.
#[test]
fn what_becomes_of_malformed_files() {
    let mut text = String::new();
    for sample in common::malformed() {
        let said = match plan(&sample.bytes, &Options::default()) {
            Err(e) => format!("error: {e}"),
            Ok(planned) => {
                let report = planned.report;
                let warnings: String = report
                    .warnings
                    .iter()
                    .map(|w| format!("\n    {w}"))
                    .collect();
                format!("{:?}, head {}{warnings}", report.outcome, report.head_bytes)
            }
        };
        text.push_str(&format!("{}: {said}\n", sample.name));
    }
    insta::assert_snapshot!("malformed", text);
}

/// `verify` says of each of these plans that it is wrong; all are built so that TFLM refuses, crashes or computes
/// wrong numbers with them, except those that only waste memory.
#[test]
fn wrong_plans_are_found() {
    let harmless = ["plan_offset_large"];
    for sample in common::malformed()
        .iter()
        .filter(|s| s.name.starts_with("plan_"))
    {
        let graph = Graph::read(Model::parse(&sample.bytes).unwrap()).unwrap();
        let verdict = common::judged(&graph, StoredPlan::read(&graph));
        assert!(verdict.exists(), "{}", sample.name);
        assert_eq!(
            verdict.is_right(),
            harmless.contains(&&*sample.name),
            "{}: {verdict:?}",
            sample.name
        );
    }
}

/// A shape whose bytes overflow 64 bits in between must not become a divisor of zero, or a small number.
#[test]
fn shapes_that_overflow() {
    use arenaplan_schema::tflite::BuiltinOperator;
    let huge = 1 << 30;
    for shape in [
        &[huge, huge, 4, -1][..],
        &[huge, huge, huge, -1],
        &[huge, huge, 16],
        &[i32::MAX, i32::MAX, i32::MAX, i32::MAX],
        &[i32::MIN, -1],
        &[0, -1],
        &[-1, -1],
    ] {
        let mut model = build::Plain::default();
        let (x, y, z) = (model.tensor(64), model.shaped(shape), model.tensor(64));
        model.op(BuiltinOperator::RESHAPE, &[x], &[y]);
        model.op(BuiltinOperator::RELU, &[y], &[z]);
        model.inputs.push(x);
        model.outputs.push(z);
        let planned = survives(&model.finish());
        assert_eq!(planned, shape.iter().any(|&d| d < 0), "{shape:?}");
    }
}

/// An output that no operator writes has no value; it gets room, and nothing is wrong with the plan.
#[test]
fn an_output_that_nobody_writes() {
    use arenaplan_schema::tflite::BuiltinOperator;
    let mut model = build::Plain::default();
    let (x, y, z) = (model.tensor(64), model.tensor(64), model.tensor(64));
    model.op(BuiltinOperator::RELU, &[x], &[y]);
    model.inputs.push(x);
    model.outputs.extend([y, z]);
    assert!(survives(&model.finish()));
}

/// A constant in another file is none of the planner's business, and TFLM cannot read it.
#[test]
fn a_constant_in_another_file() {
    use arenaplan_schema::tflite::BuiltinOperator;
    let mut model = build::Plain::default();
    let (x, weights, y) = (model.tensor(64), model.tensor(64), model.tensor(64));
    model.external.push(weights);
    model.op(BuiltinOperator::MUL, &[x, weights], &[y]);
    model.inputs.push(x);
    model.outputs.push(y);
    let bytes = model.finish();
    let planned = plan(&bytes, &Options::default()).unwrap();
    assert_eq!(planned.report.tensors_planned, 2);
    assert!(planned.report.warnings[0].contains("outside the FlatBuffer"));
    assert!(survives(&bytes));
}

/// A variable with an offset takes room like any other tensor, and must end where TFLM's numbers do.
#[test]
fn a_variable_that_ends_too_far() {
    let bytes = common::model("svdf_int8");
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let mut offsets = vec![-1; graph.tensors.len()];
    let variable = graph
        .tensors
        .iter()
        .find(|t| t.table.is_variable())
        .unwrap();
    offsets[variable.id.index()] = i32::MAX - 15;
    let verdict = common::judged(&graph, StoredPlan::Offsets(offsets));
    assert!(
        verdict
            .faults
            .iter()
            .any(|f| f.contains("32-bit numbers cannot hold")),
        "{verdict:?}"
    );
}
