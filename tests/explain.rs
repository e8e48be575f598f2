//! What `inspect` says of the reasons for a head: sums against the file's own offsets and lifetimes, figures against `plan`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;

use arenaplan::aliasing::{Kind, Level};
use arenaplan::explain::{Cause, Closeness, Explanation, Role, Subject, explain};
use arenaplan::graph::{Graph, TensorId};
use arenaplan::lifetimes::Lifetimes;
use arenaplan::model::Model;
use arenaplan::plan::{Options, Stripes, plan};
use arenaplan::stored::StoredPlan;
use arenaplan::target::Target;

fn rounded(bytes: u64) -> u64 {
    bytes.next_multiple_of(16)
}

fn for_target(target: Target) -> Options {
    Options {
        target,
        ..Options::default()
    }
}

/// The project's models, and the small ones of the public models where they are: without optimisation all take a minute.
fn samples() -> Vec<common::Sample> {
    let mut all = common::models();
    all.extend(common::shared_models().into_iter().flatten());
    all.retain(|s| s.bytes.len() < 60_000);
    all
}

/// Bytes that an input and an output of an operator have in common in a planned file, by the offsets in it.
fn common_bytes(graph: &Graph<'_>, offsets: &[i32]) -> Vec<(TensorId, TensorId, u64)> {
    let place = |t: TensorId| {
        let start = u64::try_from(offsets[t.index()]).ok()?;
        Some(start..start + graph.tensor(t).bytes)
    };
    let mut found = Vec::new();
    for op in graph.operators() {
        for &output in &op.outputs {
            for &input in op.inputs.iter().flatten() {
                let (Some(a), Some(b)) = (place(input), place(output)) else {
                    continue;
                };
                let bytes = a.end.min(b.end).saturating_sub(a.start.max(b.start));
                if bytes > 0 && input != output && !found.contains(&(input, output, bytes)) {
                    found.push((input, output, bytes));
                }
            }
        }
    }
    found.sort_unstable();
    found
}

/// The moment that gives the bound: everything alive then, and nothing else, adds up.
fn check_moment(name: &str, graph: &Graph<'_>, why: &Explanation) {
    let Cause::Moment(moment) = &why.limit.cause else {
        return;
    };
    let lifetimes = Lifetimes::of(graph).unwrap();
    let mut alive: Vec<TensorId> = graph
        .tensors
        .iter()
        .filter(|t| t.is_planned() || t.is_left_to_tflm())
        .map(|t| t.id)
        .filter(|&t| lifetimes.tensor(t).contains(moment.clock))
        .collect();
    let mut named: Vec<TensorId> = moment.tensors.iter().map(|p| p.tensor).collect();
    alive.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, alive, "{name}");
    let tensors: u64 = alive.iter().map(|&t| rounded(graph.tensor(t).bytes)).sum();
    let scratch: u64 = moment.scratch.iter().map(|&(_, bytes)| bytes).sum();
    assert_eq!(
        tensors + scratch - moment.shared_bytes,
        why.limit.bound_bytes,
        "{name}"
    );
}

#[test]
fn sums_are_right() {
    let (mut plans, mut overlaps, mut moments) = (0, 0, 0);
    for sample in samples() {
        for target in [Target::Tflm, Target::TflmReference] {
            let (name, options) = (&sample.name, for_target(target));
            let Some(why) = explain(&sample.bytes, &options).unwrap() else {
                continue;
            };
            let planned = plan(&sample.bytes, &options).unwrap();
            // The steps end where the plan does, and none takes back what another one saved.
            let heads: Vec<u64> = why.steps.iter().map(|&(_, head)| head).collect();
            assert_eq!(heads.last(), Some(&planned.report.head_bytes), "{name}");
            assert!(heads.is_sorted_by(|a, b| a >= b), "{name} {heads:?}");
            assert!(why.head_bytes >= why.limit.bound_bytes, "{name}");
            if why.subject != Subject::New {
                continue;
            }
            assert_eq!(why.head_bytes, planned.report.head_bytes, "{name}");
            let graph = Graph::read(Model::parse(&planned.file).unwrap()).unwrap();
            check_moment(name, &graph, &why);
            moments += usize::from(matches!(why.limit.cause, Cause::Moment(_)));
            let StoredPlan::Offsets(offsets) = StoredPlan::read(&graph) else {
                assert!(why.shared.is_empty(), "{name}");
                continue;
            };
            // What the device places itself may share bytes too, but has no offset in the file.
            let has_offset = |t: TensorId| offsets[t.index()] != -1;
            let mut shared: Vec<_> = why.shared.iter().map(|s| s.taken).collect();
            shared.retain(|t| has_offset(t.input) && has_offset(t.output));
            let mut shared: Vec<_> = shared
                .iter()
                .map(|t| (t.input, t.output, t.bytes))
                .collect();
            shared.sort_unstable();
            shared.dedup();
            assert_eq!(shared, common_bytes(&graph, &offsets), "{name}");
            let is_overlap = |s: &&arenaplan::explain::Shared| s.taken.kind == Kind::Overlap;
            let found = why.shared.iter().filter(is_overlap).count();
            assert!(target == Target::TflmReference || found == 0, "{name}");
            overlaps += found;
            plans += 1;
        }
    }
    assert!(
        plans >= 100 && overlaps >= 50 && moments >= 100,
        "{plans} {overlaps} {moments}"
    );
}

/// What stands in the way of `dscnn_int8` with the reference kernels, by hand: operator 2, a convolution 1 x 1 of 12 x 12
/// pixels from 8 to 16 channels. It reads a pixel again for each channel, so that when it writes the last but one channel of
/// pixel 143, at byte 143 * 16 + 14, the input from byte 143 * 8 on must still be there.
#[test]
fn an_output_is_as_near_as_its_kernel_allows() {
    let bytes = common::model("dscnn_int8");
    let why = explain(&bytes, &for_target(Target::TflmReference))
        .unwrap()
        .unwrap();
    assert_eq!(why.head_bytes, why.limit.bound_bytes);
    assert!(why.limit.is_proved);
    let Cause::Moment(moment) = &why.limit.cause else {
        panic!("{:?}", why.limit);
    };
    let written: Vec<_> = moment
        .tensors
        .iter()
        .filter_map(|p| match &p.role {
            Role::Written(inputs) => Some((p.tensor, inputs)),
            _ => None,
        })
        .collect();
    let [(output, inputs)] = &written[..] else {
        panic!("{written:?}");
    };
    let [(input, Closeness::Apart(promise))] = inputs[..] else {
        panic!("{inputs:?}");
    };
    assert_eq!(promise.input_above_output, 143 * 16 + 14 + 1 - 143 * 8);
    // Two tensors at the distance that the kernel keeps, rounded up to where tensors may start.
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let (input, output) = (graph.tensor(input).bytes, graph.tensor(*output).bytes);
    let below = (rounded(promise.input_above_output) + input).max(output);
    let above = (rounded(promise.output_above_input) + output).max(input);
    assert_eq!(rounded(below.min(above)), why.limit.bound_bytes);
}

#[test]
fn hints_are_what_plan_gives() {
    let bytes = common::model("dscnn_int8");
    let head = |target| plan(&bytes, &for_target(target)).unwrap().report.head_bytes;
    let why = explain(&bytes, &for_target(Target::Tflm)).unwrap().unwrap();
    let hints: Vec<_> = why
        .hints
        .iter()
        .map(|h| (&h.flags[..], h.head_bytes))
        .collect();
    let reference = head(Target::TflmReference);
    assert!(reference < why.head_bytes);
    assert!(
        hints.contains(&("--target tflm-reference", reference)),
        "{hints:?}"
    );
    // Less than the target allows: more of it is what is named.
    let options = Options {
        alias: Some(Level::Views),
        ..for_target(Target::TflmReference)
    };
    let why = explain(&bytes, &options).unwrap().unwrap();
    let hints: Vec<_> = why
        .hints
        .iter()
        .map(|h| (&h.flags[..], h.head_bytes))
        .collect();
    let striped = Options {
        stripes: Stripes::UpTo(100),
        ..options.clone()
    };
    let striped = plan(&bytes, &striped).unwrap().report;
    assert!(striped.head_bytes < why.head_bytes);
    assert_eq!(
        hints,
        [
            ("--alias overlap", reference),
            ("--stripes 10%", striped.head_bytes)
        ]
    );
    let work = why.hints.iter().map(|h| h.extra_percent);
    let extra = striped.stripes.map(|s| s.extra_percent());
    assert_eq!(work.collect::<Vec<_>>(), [None, extra]);
    assert!(extra.is_some_and(|percent| percent <= 10.0));
    // With all that there is, nothing is left to say.
    let why = explain(&bytes, &for_target(Target::TflmReference))
        .unwrap()
        .unwrap();
    assert_eq!(why.hints, []);
}

/// The plan in the file is explained where it is right for the kernels asked about.
#[test]
fn stored_plans() {
    let options = for_target(Target::TflmReference);
    let planned = plan(&common::model("dscnn_int8"), &options).unwrap();
    let stored = explain(&planned.file, &options).unwrap().unwrap();
    assert_eq!(stored.subject, Subject::Stored);
    assert_eq!(stored.head_bytes, planned.report.head_bytes);
    assert!(!stored.shared.is_empty());
    let other = explain(&planned.file, &for_target(Target::Tflm))
        .unwrap()
        .unwrap();
    assert_eq!(other.subject, Subject::New);
    assert!(other.head_bytes > stored.head_bytes);
    // Vela's offsets leave nothing to plan.
    let compiled = explain(&common::model("ethos_u_int8"), &options).unwrap();
    assert!(compiled.is_none());
}
