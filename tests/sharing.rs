//! Plans in which tensors share bytes: never above those in which they share less, and never above no plan.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

#[path = "common/build.rs"]
mod build;
mod common;

use arenaplan::aliasing::Level;
use arenaplan::check::{self, Tag, Violation};
use arenaplan::graph::{Graph, TensorId};
use arenaplan::lifetimes::Lifetimes;
use arenaplan::model::Model;
use arenaplan::plan::{Options, plan};
use arenaplan::report::{Outcome, Report};
use arenaplan::scratch::Scratch;
use arenaplan::target::{Library, Target};
use arenaplan::tflm;
use arenaplan_schema::tflite::BuiltinOperator;
use arenaplan_schema::view;

fn report(bytes: &[u8], target: Target, alias: Option<Level>, reorder: bool) -> Report {
    let options = Options {
        target,
        alias,
        reorder,
        ..Options::default()
    };
    plan(bytes, &options).unwrap().report
}

/// The more may be shared, the lower the head; with each target and with each of its libraries at most what it is without a
/// plan; and no warning tells of something that went wrong.
#[test]
fn more_sharing_never_takes_more() {
    let mut smaller = [0; Level::ALL.len()];
    let every = [
        Target::Tflm,
        Target::TflmReference,
        Target::TflmCmsisNn(None),
        Target::TflmEspNn(None),
    ];
    let ours = common::models()
        .into_iter()
        .map(|sample| (sample, &every[..]));
    let public = common::shared_models().into_iter().flatten();
    let public = public.map(|sample| (sample, &every[..1]));
    for (sample, targets) in ours.chain(public) {
        for &target in targets {
            let mut before = report(&sample.bytes, target, Some(Level::None), false);
            if matches!(before.outcome, Outcome::CompiledOffsets { .. }) {
                continue; // as its own compiler arranged it
            }
            let levels = Level::ALL.into_iter().filter(|&l| l <= Level::of(target));
            for level in levels {
                let now = report(&sample.bytes, target, Some(level), true);
                let name = format!("{} for {target} with {level}", sample.name);
                assert!(now.head_bytes <= before.head_bytes, "{name}");
                assert!(now.head_bytes <= now.greedy_head_bytes, "{name}");
                for head in &now.libraries {
                    assert!(
                        head.head_bytes <= head.greedy_head_bytes,
                        "{name}: {head:?}"
                    );
                }
                let most = now.taken.iter().map(|t| t.kind.level()).max();
                assert!(
                    most.unwrap_or(Level::None) <= level,
                    "{name}: {:?}",
                    now.taken
                );
                smaller[level as usize] += usize::from(now.head_bytes < before.head_bytes);
                before = now;
            }
        }
    }
    println!("smaller than with less: {smaller:?}");
    assert!(smaller.iter().all(|&n| n >= 2), "{smaller:?}");
}

/// What only some kernels keep is said, and what all keep is not.
#[test]
fn plans_for_certain_kernels_say_so() {
    let bytes = common::model("dscnn_int8");
    let any = report(&bytes, Target::Tflm, None, true);
    assert_eq!(any.needs, None);
    assert!(any.warnings.is_empty(), "{:?}", any.warnings);
    let reference = report(&bytes, Target::TflmReference, None, true);
    assert!(reference.head_bytes < any.head_bytes);
    assert_eq!(reference.needs.as_deref(), Some("TFLM's reference kernels"));
    assert!(reference.warnings.is_empty(), "{:?}", reference.warnings);
    let raised = report(&bytes, Target::Tflm, Some(Level::Overlap), true);
    let warning = raised.warnings.join("\n");
    assert!(
        warning.contains("the target tflm does not promise"),
        "{warning}"
    );
    let named = |t: &arenaplan::aliasing::Taken| {
        warning.contains(&format!("operator {} ", t.operator.index))
    };
    assert!(
        !raised.taken.is_empty() && raised.taken.iter().all(named),
        "{warning}"
    );
    assert_eq!(raised.needs.as_deref(), Some("TFLM's reference kernels"));
    let lowered = report(&bytes, Target::TflmReference, Some(Level::None), true);
    assert_eq!((lowered.needs, lowered.taken), (None, vec![]));
}

/// A plan that suits the first library of a target and not another one is not written.
#[test]
fn no_library_of_a_target_is_worse_off() {
    // On an ESP32-S3 the convolutions ask for more scratch memory than all tensors take.
    let dropped = report(&common::model("conv_int8"), Target::Tflm, None, true);
    let Outcome::WorseOnLibrary(head) = dropped.outcome else {
        panic!("{:?}", dropped.outcome);
    };
    assert_eq!(head.library.name(), "esp-nn-s3");
    assert!(head.head_bytes > head.greedy_head_bytes, "{head:?}");
    let why = dropped.explanation().unwrap();
    assert!(
        why.contains("with esp-nn-s3 kernels the head would be"),
        "{why}"
    );
    let alone = report(
        &common::model("conv_int8"),
        Target::TflmReference,
        None,
        true,
    );
    assert!(matches!(alone.outcome, Outcome::Planned { .. }));
}

/// A part of a tensor is a view only where its first byte is a place for a tensor, whatever alignment is asked for.
#[test]
fn views_start_at_multiples_of_sixteen_at_least() {
    for sample in common::models() {
        for target in [Target::Tflm, Target::TflmReference] {
            let with = |align| {
                let options = Options {
                    target,
                    align,
                    ..Options::default()
                };
                plan(&sample.bytes, &options).map(|p| p.report.head_bytes)
            };
            let (name, expected) = (&sample.name, with(16).unwrap());
            assert_eq!(with(1).unwrap(), expected, "{name} for {target}");
            assert_eq!(with(4).unwrap(), expected, "{name} for {target}");
        }
    }
}

/// CIRCULAR_BUFFER adds to what its output holds since the invoke before, whether or not that is a variable: nothing else
/// may lie there at any time.
#[test]
fn a_circular_buffer_has_its_bytes_to_itself() {
    let mut plain = build::Plain {
        custom: "CIRCULAR_BUFFER",
        ..build::Plain::default()
    };
    let [x, slot, state, y, z] = [8, 8, 24, 24, 24].map(|n| plain.tensor(n));
    plain.inputs = vec![x];
    plain.outputs = vec![z];
    plain.op(BuiltinOperator::ABS, &[x], &[slot]);
    plain.op(BuiltinOperator::CUSTOM, &[slot], &[state]);
    plain.op(BuiltinOperator::ABS, &[state], &[y]);
    plain.op(BuiltinOperator::ABS, &[y], &[z]);
    let bytes = plain.finish();
    for target in [Target::Tflm, Target::TflmReference] {
        let options = Options {
            target,
            ..Options::default()
        };
        let planned = plan(&bytes, &options).unwrap();
        let file = view::Model::new(&planned.file).unwrap();
        let offsets = file.offline_plan().unwrap().unwrap().offsets();
        let offsets: Vec<u64> = offsets.into_iter().map(|o| o.try_into().unwrap()).collect();
        let at = |t: i32| {
            let bytes = 4 * plain.shapes[t as usize][0] as u64;
            offsets[t as usize]..offsets[t as usize] + bytes
        };
        for other in [x, slot, y, z] {
            let (state, other) = (at(state), at(other));
            let apart = state.end <= other.start || other.end <= state.start;
            assert!(apart, "{target}: {state:?} and {other:?}");
        }
        assert!(planned.report.warnings[0].contains("holds state and is no variable"));
    }
    // The next input, laid over it, is found.
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let none = Scratch::of(Library::Reference, &graph);
    let lifetimes = Lifetimes::of(&graph).unwrap();
    for (offsets, is_right) in [
        ([96, 128, 0, 160, 256], true),
        ([0, 96, 0, 128, 224], false),
    ] {
        let layout = tflm::simulate(&graph, &lifetimes, &none, Some(&offsets)).unwrap();
        let found = check::check(&graph, &layout.layout(16, &[]));
        let lost = Tag::Tensor(TensorId(state as u32));
        let is_found =
            |v: &Violation| matches!(v, Violation::Overwritten { tag, .. } if *tag == lost);
        assert_eq!(found.is_empty(), is_right, "{found:?}");
        assert!(found.iter().all(is_found), "{found:?}");
    }
}
