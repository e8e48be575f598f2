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
