//! Models whose operators are put into another order: less memory, the same values, and a way back.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

#[path = "common/build.rs"]
mod build;
mod common;

use arenaplan::aliasing::Level;
use arenaplan::check::order::compare;
use arenaplan::graph::{Graph, TensorId};
use arenaplan::model::Model;
use arenaplan::plan::{Options, Planned, plan};
use arenaplan::report::Outcome;
use arenaplan::scratch::Scratch;
use arenaplan::stored::StoredPlan;
use arenaplan::target::Library;
use arenaplan_schema::patch;
use arenaplan_schema::tflite::BuiltinOperator as Op;

fn graph(bytes: &[u8]) -> Graph<'_> {
    Graph::read(Model::parse(bytes).unwrap()).unwrap()
}

fn nothing_shared() -> Options {
    Options {
        alias: Some(Level::None),
        ..Options::default()
    }
}

fn in_file_order(bytes: &[u8]) -> Planned {
    let options = Options {
        reorder: false,
        ..nothing_shared()
    };
    plan(bytes, &options).unwrap()
}

/// The operators of subgraph 0 by the tensors they write.
fn writes(graph: &Graph<'_>) -> Vec<Vec<TensorId>> {
    let operators = graph.subgraphs[0].operators.iter();
    operators.map(|op| op.outputs.clone()).collect()
}

/// Two branches that the file runs side by side: each one is large first and small in the end.
fn branches() -> build::Plain {
    let mut model = build::Plain::default();
    let input = model.tensor(16);
    let (a, b) = (model.tensor(1000), model.tensor(1000));
    let (small_a, small_b) = (model.tensor(8), model.tensor(8));
    let output = model.tensor(8);
    model.inputs.push(input);
    model.op(Op::PAD, &[input], &[a]);
    model.op(Op::PAD, &[input], &[b]);
    model.op(Op::MAX_POOL_2D, &[a], &[small_a]);
    model.op(Op::MAX_POOL_2D, &[b], &[small_b]);
    model.op(Op::ADD, &[small_a, small_b], &[output]);
    model.outputs.push(output);
    model
}

#[test]
fn branches_are_run_one_after_the_other() {
    let bytes = branches().finish();
    // Side by side both large tensors are alive, with the input or a result.
    assert_eq!(in_file_order(&bytes).report.head_bytes, 4000 + 4000 + 64);
    let planned = plan(&bytes, &Options::default()).unwrap();
    let report = &planned.report;
    // One after the other it is a large one, the input, and the small result.
    assert_eq!(report.head_bytes, 4000 + 64 + 32);
    assert!(report.reordered && report.order_proved && report.optimal);
    assert_eq!(report.sizes.file_order_bound_bytes, 8064);
    assert_eq!(report.sizes.bound_bytes, 4096);

    let written = graph(&planned.file);
    let t = TensorId;
    assert_eq!(writes(&written), [[t(1)], [t(3)], [t(2)], [t(4)], [t(5)]]);
    let original: Vec<u32> = written.operators().map(|op| op.original).collect();
    assert_eq!(original, [0, 2, 1, 3, 4]);
    assert!(written.is_reordered() && !graph(&bytes).is_reordered());
    assert_eq!(
        written.subgraphs[0].operators[1].label(),
        "operator 1 MAX_POOL_2D (2 before planning)"
    );
    assert_eq!(patch::strip(&planned.file).unwrap(), bytes);
    // Planning again, and planning in the file's order, start from the file as it was.
    assert_eq!(
        plan(&planned.file, &Options::default()).unwrap().file,
        planned.file
    );
    assert_eq!(
        in_file_order(&planned.file).file,
        in_file_order(&bytes).file
    );
    let stamp = patch::inspect_provenance(&in_file_order(&bytes).file)
        .unwrap()
        .unwrap();
    assert_eq!(stamp.stamp.options, "alias=none reorder=no");
}

/// Where another order has the same peak, the file's stays.
#[test]
fn an_order_as_good_as_any_is_kept() {
    let mut model = branches();
    // A tensor as large as both branches makes their order irrelevant.
    let (large, end) = (model.tensor(3000), model.tensor(8));
    let output = model.outputs.pop().unwrap();
    model.op(Op::PAD, &[output], &[large]);
    model.op(Op::MAX_POOL_2D, &[large], &[end]);
    model.outputs.push(end);
    let bytes = model.finish();
    let planned = plan(&bytes, &Options::default()).unwrap();
    assert!(!planned.report.reordered && planned.report.order_proved);
    assert!(!graph(&planned.file).is_reordered());
    assert_eq!(
        planned.report.head_bytes,
        in_file_order(&bytes).report.head_bytes
    );
}

/// What the user wants kept to the end is best made last.
#[test]
fn kept_tensors_count_to_the_end() {
    let bytes = branches().finish();
    for (kept, first) in [("t1", 2), ("t2", 1)] {
        let options = Options {
            keep: vec![kept.into()],
            ..Options::default()
        };
        let planned = plan(&bytes, &options).unwrap();
        assert!(planned.report.reordered && planned.report.order_proved);
        assert_eq!(planned.report.sizes.bound_with_scratch_bytes, 4096);
        let written = graph(&planned.file);
        assert_eq!(writes(&written)[0], [TensorId(first)], "{kept}");
    }
}

/// Random numbers and custom operators keep their order, whatever that costs.
#[test]
fn what_may_share_hidden_state_is_not_reordered() {
    for code in [Op::RANDOM_UNIFORM, Op::MULTINOMIAL, Op(250)] {
        let mut model = branches();
        model.ops[0].code = code;
        model.ops[1].code = code;
        // The second branch is worth running first; its start must stay second all the same.
        model.shapes[1] = vec![10];
        model.ops[3].inputs = vec![2];
        let bytes = model.finish();
        let planned = plan(&bytes, &Options::default()).unwrap();
        let written = graph(&planned.file);
        let at = |t: u32| {
            written.subgraphs[0]
                .operators
                .iter()
                .position(|o| o.outputs == [TensorId(t)])
        };
        assert!(at(1) < at(2), "{code:?}");
    }
}

/// A scratch file names operators as they were, also for a file in which they have moved.
#[test]
fn scratch_files_go_by_the_order_before_planning() {
    let bytes = branches().finish();
    let planned = plan(&bytes, &Options::default()).unwrap();
    let graph = graph(&planned.file);
    let scratch = Scratch::with_file(Library::Reference, &graph, "2 480\n").unwrap();
    let request = scratch.requests().iter().find(|r| r.bytes == 480).unwrap();
    assert_eq!(request.operator.index, 1);
    assert_eq!(graph.operator(request.operator).original, 2);
}

/// Scratch memory counts where it is asked for, so that it decides which order is best.
#[test]
fn scratch_counts() {
    let bytes = branches().finish();
    let options = Options {
        // The first branch's pooling is too large to run while anything else is there.
        scratch: Some("0\n1\n2 4000\n3\n4\n".into()),
        ..Options::default()
    };
    let planned = plan(&bytes, &options).unwrap();
    assert!(planned.report.reordered && planned.report.order_proved);
    // The large tensor, its result, the scratch memory, and the input or the other result.
    assert_eq!(
        planned.report.sizes.bound_with_scratch_bytes,
        4000 + 32 + 4000 + 32
    );
}

/// No plan above the one in the file's order; what is written computes the same, checks out, and can be undone.
fn sound(sample: &common::Sample) -> Option<Planned> {
    let name = &sample.name;
    let planned = plan(&sample.bytes, &nothing_shared()).unwrap();
    let plain = in_file_order(&sample.bytes);
    assert!(
        planned.report.head_bytes <= plain.report.head_bytes,
        "{name}"
    );
    assert!(!plain.report.reordered, "{name}");
    if !planned.report.reordered {
        return None;
    }
    assert!(
        planned.report.head_bytes < plain.report.head_bytes,
        "{name}"
    );
    assert!(
        matches!(planned.report.outcome, Outcome::Planned { .. }),
        "{name}"
    );
    let (before, after) = (graph(&sample.bytes), graph(&planned.file));
    assert_eq!(compare(&before, &after), [], "{name}");
    let verdict = common::judged(&after, StoredPlan::read(&after));
    assert!(verdict.is_right(), "{name}: {:?}", verdict.faults);
    assert_eq!(
        verdict.head_if_right(),
        Some(planned.report.head_bytes),
        "{name}"
    );
    assert_eq!(patch::strip(&planned.file).unwrap(), sample.bytes, "{name}");
    Some(planned)
}

#[test]
fn the_projects_models() {
    let reordered: Vec<String> = common::models()
        .iter()
        .filter_map(|sample| sound(sample).map(|_| sample.name.clone()))
        .collect();
    println!("reordered: {}", reordered.join(", "));
    assert!(reordered.len() >= 3);
}

/// Least peaks of public models, which a search of another kind found too.
#[test]
fn public_models() {
    let Some(models) = common::shared_models() else {
        return;
    };
    let known = [
        ("esphome_v1_alexa", 14_208),
        ("esphome_v2_vad", 1_248),
        ("esphome_v2_okay_nabu", 2_944),
        ("lyra_soundstream_encoder", 41_472),
        ("hand_recrop", 1_310_720),
    ];
    let mut seen = 0;
    for sample in &models {
        let planned = sound(sample);
        if let Some((_, head)) = known.iter().find(|(name, _)| *name == sample.name) {
            let report = planned.unwrap().report;
            assert_eq!(report.head_bytes, *head, "{}", sample.name);
            assert!(report.order_proved && report.optimal, "{}", sample.name);
            seen += 1;
        }
    }
    assert_eq!(seen, known.len());
}

/// For each variable, every use finds as many writes before it as it did, and runs after what initialises it; two reads may
/// change places.
#[test]
fn state_keeps_its_order() {
    let mut samples = common::models();
    samples.extend(common::shared_models().into_iter().flatten());
    let uses = |graph: &Graph<'_>| {
        let mut written = std::collections::BTreeMap::new();
        let mut initialised = 0;
        let mut uses = Vec::new();
        for op in &graph.subgraphs[0].operators {
            if op.code == Op::CALL_ONCE {
                initialised += 1;
            }
            if [Op::READ_VARIABLE, Op::ASSIGN_VARIABLE].contains(&op.code) {
                let writes = written.entry(op.inputs[0].unwrap()).or_insert(0);
                uses.push((op.original, *writes, initialised));
                *writes += i32::from(op.code == Op::ASSIGN_VARIABLE);
            }
        }
        uses.sort_unstable();
        uses
    };
    let mut moved = 0;
    for sample in samples {
        let Ok(planned) = plan(&sample.bytes, &Options::default()) else {
            continue;
        };
        let (before, after) = (graph(&sample.bytes), graph(&planned.file));
        let (first, then) = (uses(&before), uses(&after));
        assert_eq!(first, then, "{}", sample.name);
        moved += usize::from(planned.report.reordered && !first.is_empty());
    }
    assert!(moved >= 3, "{moved}");
}

/// An order in which an operator finds something else than before is refused.
#[test]
fn the_checker_finds_a_read_moved_behind_a_write() {
    let bytes = common::model("streaming_float32");
    let before = graph(&bytes);
    let operators = &before.subgraphs[0].operators;
    let position = |code: Op| operators.iter().position(|o| o.code == code).unwrap() as u32;
    let (read, assign) = (position(Op::READ_VARIABLE), position(Op::ASSIGN_VARIABLE));
    assert!(read < assign);
    let mut order: Vec<u32> = (0..operators.len() as u32).filter(|&k| k != read).collect();
    order.insert(assign as usize, read);
    let mut orders: Vec<Vec<u32>> = before
        .subgraphs
        .iter()
        .map(|s| (0..s.operators.len() as u32).collect())
        .collect();
    orders[0] = order;
    let found = compare(&before, &before.reordered(&orders));
    assert_eq!(found.len(), 1, "{found:?}");
    // And another model is not an order of this one.
    let other = common::model("call_once_float32");
    assert_ne!(compare(&before, &graph(&other)), []);
}
