//! The checker against TensorFlow Lite Micro itself: `testdata/verdicts.txt` holds plans, most of them wrong in one
//! place, and whether TFLM's outputs with them were those of the model without a plan. `tests/oracle/verdicts.py` makes it.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;

use std::collections::BTreeMap;

use arenaplan::graph::{Graph, Storage};
use arenaplan::lifetimes::Lifetimes;
use arenaplan::model::Model;
use arenaplan::scratch::Scratch;
use arenaplan::stored::{Setting, StoredPlan};
use arenaplan::target::Target;

/// A plan and what became of it.
struct Record {
    line: usize,
    model: String,
    /// `None` for a base as it is, right by construction unless it is `state`.
    moved: Option<String>,
    base: String,
    seen: String,
    offsets: Vec<i32>,
}

fn records() -> Vec<Record> {
    let text = std::fs::read_to_string(common::root("testdata/verdicts.txt")).unwrap();
    let mut bases: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    let mut model = String::new();
    let mut found = Vec::new();
    for (line, text) in (1..).zip(text.lines()).filter(|(_, l)| !l.starts_with('#')) {
        let words: Vec<&str> = text.split(' ').collect();
        if let ["model", name] = words[..] {
            model = name.into();
            bases.clear();
            continue;
        }
        let [kind, base, seen, ref rest @ ..] = words[..] else {
            panic!("line {line}")
        };
        let number = |word: &str| word.parse::<i32>().unwrap();
        let (offsets, moved) = match kind {
            "plan" => {
                let offsets: Vec<i32> = rest.iter().map(|w| number(w)).collect();
                bases.insert(base.into(), offsets.clone());
                (offsets, None)
            }
            "move" => {
                let mut offsets = bases[base].clone();
                for word in rest {
                    let (tensor, offset) = word.split_once('=').unwrap();
                    offsets[tensor.parse::<usize>().unwrap()] = number(offset);
                }
                (offsets, Some(rest.join(" ")))
            }
            other => panic!("line {line}: {other}"),
        };
        found.push(Record {
            line,
            model: model.clone(),
            moved,
            base: base.into(),
            seen: seen.into(),
            offsets,
        });
    }
    found
}

/// What the checker must never do is call a plan right with which TFLM computes something else, crashes or hangs. Plans
/// that are right by construction must pass. Where a wrong plan happens to do no harm, the checker may still object.
#[test]
fn no_plan_with_which_tflm_computes_something_else_is_called_right() {
    let (mut wrong, mut right, mut spared, mut harmless) = (0, 0, 0, 0);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for record in records() {
        let bytes = common::model(&record.model);
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let scratch = Scratch::reference(&graph);
        let planned = record.offsets.iter().zip(&graph.tensors);
        let has_state = planned
            .filter(|(_, t)| t.storage == Storage::Variable)
            .any(|(&o, _)| o != -1);
        let plan = StoredPlan::Offsets(record.offsets);
        let lifetimes = Lifetimes::of(&graph).unwrap();
        let setting = Setting {
            lifetimes: &lifetimes,
            scratch: &scratch,
            align: 16,
            keep: &[],
            kernels: Target::Tflm,
        };
        let faults = plan.judged(&graph, &setting).faults;
        let place = format!(
            "verdicts.txt:{}: {}, {}, {:?}",
            record.line, record.model, record.base, record.moved
        );
        if record.seen != "same" {
            assert!(
                !faults.is_empty(),
                "{place}: TFLM is {}, the checker content",
                record.seen
            );
            wrong += 1;
            *kinds.entry("control flow").or_default() += usize::from(graph.subgraphs.len() > 2);
            *kinds.entry("state").or_default() += usize::from(has_state);
            *kinds.entry("scratch").or_default() += usize::from(!scratch.is_empty());
        } else if record.moved.is_none() && record.base != "state" {
            assert_eq!(faults, Vec::<String>::new(), "{place}");
            right += 1;
        } else if faults.is_empty() {
            harmless += 1;
        } else {
            spared += 1;
        }
    }
    println!(
        "{wrong} wrong, {right} right by construction; of others without harm {harmless} called right, {spared} wrong; \
         {kinds:?}"
    );
    assert!(wrong >= 700 && right >= 60 && harmless >= 200);
    assert!(
        kinds.len() == 3 && kinds.values().all(|&n| n >= 80),
        "{kinds:?}"
    );
}
