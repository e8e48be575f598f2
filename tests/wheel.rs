//! Predictions against what the real TensorFlow Lite Micro reported: `testdata/wheel.json`, recorded with the
//! `tflite-micro` wheel (64 bits, reference kernels) by `tests/oracle/golden.py`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]
#![cfg(feature = "cli")]

mod common;

use arenaplan::graph::Graph;
use arenaplan::lifetimes::Lifetimes;
use arenaplan::model::Model;
use arenaplan::plan::{Options, plan};
use arenaplan::scratch::Scratch;
use arenaplan::stored::StoredPlan;
use arenaplan::tflm;
use serde_json::Value;

/// Every model that TFLM runs, with its record.
fn recorded() -> Vec<(common::Sample, Value)> {
    let text = std::fs::read_to_string(common::root("testdata/wheel.json")).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    let mut found = Vec::new();
    for sample in common::models() {
        let record = &all["models"][&sample.name];
        assert!(record.is_object(), "{} is not in wheel.json", sample.name);
        if record["runs"] == true {
            found.push((sample, record.clone()));
        }
    }
    assert!(found.len() >= 40);
    found
}

#[test]
fn head_without_and_with_a_foreign_plan() {
    let mut foreign = 0;
    for (sample, record) in recorded() {
        let graph = Graph::read(Model::parse(&sample.bytes).unwrap()).unwrap();
        let scratch = Scratch::reference(&graph);
        let simulation =
            tflm::simulate(&graph, &Lifetimes::of(&graph).unwrap(), &scratch, None).unwrap();
        assert_eq!(
            Some(simulation.head),
            record["head"].as_u64(),
            "{}",
            sample.name
        );
        if let Some(head) = record["planned"]["head"].as_u64() {
            let StoredPlan::Offsets(offsets) = StoredPlan::read(&graph) else {
                panic!("{}: no plan", sample.name)
            };
            let simulation = tflm::simulate(
                &graph,
                &Lifetimes::of(&graph).unwrap(),
                &scratch,
                Some(&offsets),
            )
            .unwrap();
            assert_eq!(simulation.head, head, "{} with its plan", sample.name);
            foreign += 1;
        }
    }
    assert!(foreign >= 3);
}

#[test]
fn tail_and_smallest_arena() {
    for (sample, record) in recorded() {
        let planned = plan(&sample.bytes, &Options::default()).unwrap();
        let number = |key: &str| record[key].as_u64().unwrap();
        let report = &planned.report;
        assert_eq!(
            report.arena_64.tail_bytes,
            number("tail"),
            "tail of {}",
            sample.name
        );
        // Recorded without a plan: what that needs, less what the plan saves where the head decides.
        let unplanned = report
            .greedy_head_bytes
            .max(report.arena_64.arena_bytes - report.arena_64.tail_bytes)
            + report.arena_64.tail_bytes;
        let smallest = number("min_arena");
        let most = (smallest + 256).max(smallest + smallest / 20);
        assert!(
            (smallest..=most).contains(&unplanned),
            "{}: {unplanned} predicted, {smallest} is the smallest that works",
            sample.name
        );
        assert!(report.arena_64.arena_bytes <= unplanned);
    }
}

#[test]
fn plans_are_never_above_tflm() {
    let mut smaller = 0;
    for (sample, _) in recorded() {
        let report = plan(&sample.bytes, &Options::default()).unwrap().report;
        assert!(
            report.head_bytes <= report.greedy_head_bytes,
            "{}",
            sample.name
        );
        smaller += usize::from(report.head_bytes < report.greedy_head_bytes);
    }
    assert!(smaller >= 8, "only {smaller} models became smaller");
}
