//! Large models: still planned, still right, and in a time that nobody minds. Run with `--release -- --nocapture` for
//! the time.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

#[path = "common/build.rs"]
mod build;
mod common;

use std::time::Instant;

use arenaplan::plan::{Options, plan};
use arenaplan::report::Outcome;
use arenaplan_schema::tflite::BuiltinOperator;

/// 6,000 operators with residual connections of many lengths.
fn large() -> Vec<u8> {
    let mut random = common::Random::new(3);
    let mut model = build::Plain::default();
    let first = model.tensor(400);
    model.inputs.push(first);
    let mut made = vec![first];
    for i in 0..6_000 {
        let out = model.tensor(1 + random.below(2_000) as i32);
        let newest = made[made.len() - 1];
        if i % 3 == 2 {
            let back = 1 + random.below(if i % 90 == 2 { 400 } else { 12 });
            let other = made[made.len().saturating_sub(1 + back)];
            model.op(BuiltinOperator::ADD, &[newest, other], &[out]);
        } else {
            model.op(BuiltinOperator::RELU, &[newest], &[out]);
        }
        made.push(out);
    }
    model.outputs.push(made[made.len() - 1]);
    model.finish()
}

#[test]
fn six_thousand_operators() {
    let bytes = large();
    let start = Instant::now();
    let planned = plan(&bytes, &Options::default()).unwrap();
    let report = planned.report;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "6,000 operators: {:.2} s, head {} bytes, TFLM's {}, bound {}",
        seconds, report.head_bytes, report.greedy_head_bytes, report.sizes.bound_bytes
    );
    assert_eq!(report.outcome, Outcome::Planned { replaced: false });
    assert_eq!(report.operators, 6_000);
    // Without optimisation it takes longer, and nobody plans that way.
    assert!(cfg!(debug_assertions) || seconds < 5.0, "{seconds} s");
    assert!(report.head_bytes <= report.greedy_head_bytes);
    assert!(report.head_bytes >= report.sizes.bound_bytes);
}

/// 700 operators in branches that split and join without pattern: nothing is a chain, and nothing cuts the model in two.
fn branching() -> Vec<u8> {
    let mut random = common::Random::new(5);
    let mut model = build::Plain::default();
    let first = model.tensor(400);
    model.inputs.push(first);
    let mut made = vec![first];
    let mut unread = std::collections::BTreeSet::from([first]);
    for _ in 0..699 {
        let out = model.tensor(1 + random.below(2_000) as i32);
        let mut inputs = Vec::new();
        for _ in 0..1 + random.below(2) {
            let back = 1 + random.below(24);
            inputs.push(made[made.len().saturating_sub(back)]);
        }
        inputs.dedup();
        for input in &inputs {
            unread.remove(input);
        }
        let code = [BuiltinOperator::RELU, BuiltinOperator::ADD][inputs.len() - 1];
        model.op(code, &inputs, &[out]);
        unread.insert(out);
        made.push(out);
    }
    let end = model.tensor(10);
    let unread: Vec<i32> = unread.into_iter().collect();
    model.op(BuiltinOperator::CONCATENATION, &unread, &[end]);
    model.outputs.push(end);
    model.finish()
}

#[test]
fn seven_hundred_operators_in_any_order() {
    let bytes = branching();
    let start = Instant::now();
    let planned = plan(&bytes, &Options::default()).unwrap();
    let report = planned.report;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "700 branching operators: {:.2} s, head {} bytes, bound {}, in their own order {}, proved: {}",
        seconds,
        report.head_bytes,
        report.sizes.bound_bytes,
        report.sizes.file_order_bound_bytes,
        report.order_proved
    );
    assert_eq!(report.operators, 700);
    assert!(report.reordered && report.head_bytes < report.sizes.file_order_bound_bytes);
    assert!(cfg!(debug_assertions) || seconds < 10.0, "{seconds} s");
}
