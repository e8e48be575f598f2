//! Prepared data that plans for the bundled runtime carry, and plans of every model for every target.
//!
//! The right factors come from TFLM's arithmetic, in a file that the runtime's tests have.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;
#[path = "../runtime/tests/common/prepared.rs"]
#[allow(dead_code, reason = "the runtime's tests use all of it")]
mod entries;

use arenaplan::execute::{self, ExecuteError};
use arenaplan::graph::Graph;
use arenaplan::lifetimes::Lifetimes;
use arenaplan::model::Model;
use arenaplan::plan::{Options, Planned, plan};
use arenaplan::report::Outcome;
use arenaplan::stored::{Setting, StoredPlan, Verdict};
use arenaplan::target::Target;
use arenaplan_schema::{patch, view};

fn options(precompute: bool) -> Options {
    Options {
        target: Target::Arenaplan,
        precompute,
        ..Options::default()
    }
}

fn planned(bytes: &[u8], precompute: bool) -> Planned {
    plan(bytes, &options(precompute)).unwrap()
}

fn entry(file: &[u8]) -> Option<&[u8]> {
    let model = view::Model::new(file).unwrap();
    model.metadata_bytes(view::PREPARED_NAME).unwrap()
}

/// What the checker, and for the runtime's own data the runtime, say of a file.
fn judged(file: &[u8], options: &Options) -> Verdict {
    let graph = Graph::read(Model::parse(file).unwrap()).unwrap();
    StoredPlan::read(&graph).judged(
        &graph,
        &Setting {
            lifetimes: &Lifetimes::of(&graph).unwrap(),
            scratch: &options.scratch_of(&graph).unwrap(),
            align: 16,
            keep: &[],
            kernels: options.kernels(),
        },
    )
}

/// Bytes of the head that the runtime uses; `None` if it cannot run the model.
fn head(file: &[u8]) -> Option<u64> {
    let setting = execute::Setting {
        invokes: 0,
        ..execute::Setting::default()
    };
    match execute::run(file, &setting, |_, _| {}) {
        Ok(figures) => Some(figures.head_bytes as u64),
        Err(ExecuteError::Runtime { error, .. }) => {
            assert!(!error.is_about_plan(), "{error}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn every_model_can_be_planned_for_every_target() {
    let mut plans = 0;
    for sample in common::models() {
        for target in Target::ALL {
            let options = Options {
                target,
                ..Options::default()
            };
            let planned = match plan(&sample.bytes, &options) {
                Ok(planned) => planned,
                Err(e) => panic!("{} for {target}: {e}", sample.name),
            };
            let has_entry = entry(&planned.file).is_some();
            assert!(!has_entry || target == Target::Arenaplan);
            if matches!(planned.report.outcome, Outcome::Planned { .. }) {
                let verdict = judged(&planned.file, &options);
                let faults = &verdict.faults;
                assert!(
                    verdict.is_right(),
                    "{} for {target}: {faults:?}",
                    sample.name
                );
                assert_eq!(verdict.head_if_right(), Some(planned.report.head_bytes));
                plans += 1;
            }
        }
    }
    println!("{plans} plans");
    assert!(plans > 700);
}

#[test]
fn the_factors_are_those_of_tflm_in_the_order_of_the_file() {
    let (mut files, mut reordered) = (0, 0);
    for sample in common::models() {
        let Planned { file, report } = planned(&sample.bytes, true);
        let factors = entries::factors(&file);
        let any = factors.iter().any(|f| !f.is_empty());
        let expected = any.then(|| entries::entry(1, &factors));
        let is_planned = matches!(report.outcome, Outcome::Planned { .. });
        let expected = expected.filter(|_| is_planned);
        assert!(entry(&file) == expected.as_deref(), "{}", sample.name);
        assert_eq!(report.prepared_bytes, expected.map_or(0, |e| e.len()));
        files += usize::from(report.prepared_bytes > 0);
        reordered += usize::from(report.prepared_bytes > 0 && report.reordered);
    }
    println!("{files} files with data, {reordered} of them reordered");
    assert!(files >= 10 && reordered >= 2);
}

#[test]
fn the_runtime_takes_the_head_that_the_plan_says() {
    let mut smaller = 0;
    for sample in common::models() {
        let with = planned(&sample.bytes, true);
        if with.report.prepared_bytes == 0 {
            continue;
        }
        let without = planned(&sample.bytes, false);
        assert_eq!(without.report.prepared_bytes, 0);
        assert_eq!(entry(&without.file), None);
        for planned in [&with, &without] {
            let head = head(&planned.file);
            assert!(
                head.is_none_or(|head| head == planned.report.head_bytes),
                "{}: {head:?}, {}",
                sample.name,
                planned.report.head_bytes
            );
        }
        assert!(with.report.head_bytes <= without.report.head_bytes);
        assert_eq!(
            with.report.greedy_head_bytes,
            without.report.greedy_head_bytes
        );
        smaller += usize::from(with.report.head_bytes < without.report.head_bytes);
        assert_eq!(
            with.report.arena_32.tail_bytes,
            without.report.arena_32.tail_bytes
        );
    }
    println!("{smaller} heads are smaller");
    assert!(smaller >= 5);
}

/// Eleven operators, of which ten have factors, of 8, 8, 16 * 4, 24 * 2, 32 and 4 channels.
#[test]
fn the_figures_of_a_small_model() {
    let original = common::model("dscnn_int8");
    let with = planned(&original, true);
    let bytes = 32 + 5 * (8 + 8 + 16 * 4 + 24 * 2 + 32 + 4);
    assert_eq!(with.report.prepared_bytes, bytes);
    let without = planned(&original, false);
    // The peak is at an operator with 16.
    let saved = without.report.head_bytes - with.report.head_bytes;
    assert_eq!(saved, 5 * 16);
    assert_eq!(head(&with.file), Some(with.report.head_bytes));
}

#[test]
fn the_original_comes_back_and_planning_again_replaces() {
    let original = common::model("dscnn_int8");
    let (with, without) = (planned(&original, true), planned(&original, false));
    assert!(entry(&with.file).is_some());
    for file in [&with.file, &without.file] {
        assert!(patch::strip(file).unwrap() == original);
        assert!(planned(file, true).file == with.file);
        assert!(planned(file, false).file == without.file);
        let tflm = plan(file, &Options::default()).unwrap();
        assert_eq!(entry(&tflm.file), None);
    }
    let text = |file: &[u8]| {
        patch::inspect_provenance(file)
            .unwrap()
            .unwrap()
            .stamp
            .options
    };
    assert_eq!(text(&with.file), "");
    assert_eq!(text(&without.file), "precompute=no");
    // Other targets have no use for it, and do not note it.
    let other = Options {
        precompute: false,
        ..Options::default()
    };
    assert_eq!(text(&plan(&original, &other).unwrap().file), "");
}

/// The file with a change at a byte of the entry.
fn spoilt(file: &[u8], at: usize) -> Vec<u8> {
    let entry = entry(file).unwrap();
    let start = entry.as_ptr().addr() - file.as_ptr().addr();
    let mut file = file.to_vec();
    file[start + at] ^= 1;
    file
}

#[test]
fn verify_calls_wrong_data_wrong() {
    let file = planned(&common::model("dscnn_int8"), true).file;
    let options = options(true);
    assert!(judged(&file, &options).is_right());
    let len = entry(&file).unwrap().len();
    for at in [0, 4, 8, 32, 32 + 4 * 8, len - 1] {
        let verdict = judged(&spoilt(&file, at), &options);
        let said = verdict.faults.iter().any(|f| f.contains("prepared"));
        assert!(said, "byte {at}: {:?}", verdict.faults);
    }
    // A file that was changed outside of the original part still comes off, and is planned anew.
    let again = planned(&spoilt(&file, 32), true);
    assert!(again.file == file);
}

#[cfg(feature = "cli")]
#[test]
fn the_command_line_says_what_is_prepared() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("m.tflite"), common::model("dscnn_int8")).unwrap();
    let run = |args: &[&str]| common::run(folder.path(), args);
    let target = ["--target", "arenaplan"];
    let said = run(&[&["plan", "m.tflite", "-o", "with.tflite"][..], &target].concat());
    assert!(
        said.contains("of that prepared               852 bytes"),
        "{said}"
    );
    let no = ["plan", "m.tflite", "-o", "no.tflite", "--precompute", "no"];
    let said = run(&[&no[..], &target].concat());
    assert!(!said.contains("prepared"), "{said}");
    for (name, bytes) in [("with", 852), ("no", 0)] {
        let said = run(&["inspect", &format!("{name}.tflite"), "--format", "json"]);
        assert!(
            said.contains(&format!("\"prepared_bytes\": {bytes},")),
            "{said}"
        );
        let said = run(&["verify", &format!("{name}.tflite"), "--run"]);
        assert!(said.starts_with("status: 0"), "{said}");
    }
    let file = std::fs::read(path("with.tflite")).unwrap();
    std::fs::write(path("wrong.tflite"), spoilt(&file, 32)).unwrap();
    let said = run(&["verify", "wrong.tflite"]);
    assert!(said.starts_with("status: 1"), "{said}");
    assert!(
        said.contains("wrong: the prepared factors of operator 0 of subgraph 0"),
        "{said}"
    );
}
