//! What the options of the planner promise, and what a plan leaves to the device.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;

use arenaplan::Error;
use arenaplan::aliasing::Level;
use arenaplan::graph::{Graph, Storage};
use arenaplan::lifetimes::Lifetimes;
use arenaplan::model::Model;
use arenaplan::plan::{Options, plan};
use arenaplan::report::Outcome;
use arenaplan::target::Target;
use arenaplan_schema::view;

fn offsets(file: &[u8]) -> Vec<i32> {
    let model = view::Model::new(file).unwrap();
    model
        .offline_plan()
        .unwrap()
        .unwrap()
        .offsets()
        .into_iter()
        .collect()
}

/// Kept tensors, checked without the checker: nothing that is written after a kept tensor lies on it.
fn assert_kept(original: &[u8], file: &[u8], kept: &[&str]) {
    let graph = Graph::read(Model::parse(original).unwrap()).unwrap();
    let lifetimes = Lifetimes::of(&graph).unwrap();
    let offsets = offsets(file);
    for name in kept {
        let a = graph.find_tensor(name).unwrap();
        for b in graph.tensors.iter().filter(|t| t.is_planned() && t.id != a) {
            if lifetimes.tensor(b.id).last < lifetimes.tensor(a).first
                || offsets[b.id.index()] == -1
            {
                continue;
            }
            let range = |t: &arenaplan::graph::Tensor<'_>| {
                let start = offsets[t.id.index()] as u64;
                start..start + t.bytes
            };
            let (x, y) = (range(graph.tensor(a)), range(b));
            assert!(
                x.end <= y.start || y.end <= x.start,
                "{name} and {}",
                b.label()
            );
        }
    }
}

#[test]
fn kept_tensors_and_inputs_survive_to_the_end() {
    let original = common::model("diamond_a_int8");
    let graph = Graph::read(Model::parse(&original).unwrap()).unwrap();
    let input = format!("{}", graph.tensor(graph.subgraphs[0].inputs[0]).index);
    let middle = format!(
        "0:{}",
        graph
            .tensor(graph.subgraphs[0].operators[3].outputs[0])
            .index
    );
    let plain = plan(&original, &Options::default()).unwrap();
    let options = Options {
        keep: vec![middle.clone()],
        keep_inputs: true,
        // What is kept may need more room than TFLM's own planning, which keeps nothing.
        ..Options::default()
    };
    let kept = plan(&original, &options).unwrap();
    match kept.report.outcome {
        Outcome::Planned { .. } => assert_kept(&original, &kept.file, &[&input, &middle]),
        ref other => panic!("{other:?}"),
    }
    assert!(kept.report.head_bytes >= plain.report.head_bytes);
    assert!(
        kept.report.sizes.bound_with_scratch_bytes >= plain.report.sizes.bound_with_scratch_bytes
    );
}

#[test]
fn tensors_asked_to_be_online_have_no_offset() {
    let original = common::model("diamond_b_int8");
    let graph = Graph::read(Model::parse(&original).unwrap()).unwrap();
    let output = graph.subgraphs[0].outputs[0];
    let name = graph.tensor(output).name.to_owned();
    let options = Options {
        online: vec![name],
        ..Options::default()
    };
    let planned = plan(&original, &options).unwrap();
    assert_eq!(offsets(&planned.file)[output.index()], -1);
    assert_eq!(
        planned.report.tensors_planned + 1,
        plan(&original, &Options::default())
            .unwrap()
            .report
            .tensors_planned
    );
}

#[test]
fn offsets_are_multiples_of_the_alignment() {
    for align in [1, 4, 16, 64, 256] {
        let original = common::model("diamond_c_int8");
        let planned = plan(
            &original,
            &Options {
                align,
                ..Options::default()
            },
        )
        .unwrap();
        if let Outcome::Planned { .. } = planned.report.outcome {
            let offsets = offsets(&planned.file);
            assert!(
                offsets
                    .iter()
                    .all(|&o| o == -1 || (o as u64).is_multiple_of(align)),
                "{align}"
            );
        }
    }
}

/// Constants, variables, resource handles and whatever has no known size stay -1, and so does every entry that TFLM
/// looks up for a variable of another subgraph.
#[test]
fn only_tensors_of_the_head_get_offsets() {
    let mut samples = common::models();
    samples.extend(common::shared_models().into_iter().flatten());
    let mut seen = std::collections::BTreeSet::new();
    for sample in samples {
        let planned = plan(&sample.bytes, &Options::default()).unwrap();
        if !matches!(planned.report.outcome, Outcome::Planned { .. }) {
            continue;
        }
        let graph = Graph::read(Model::parse(&sample.bytes).unwrap()).unwrap();
        let offsets = offsets(&planned.file);
        assert_eq!(offsets.len(), graph.tensors.len());
        for tensor in &graph.tensors {
            seen.insert(tensor.storage);
            if tensor.storage != Storage::Arena {
                assert_eq!(
                    offsets[tensor.id.index()],
                    -1,
                    "{}: {}",
                    sample.name,
                    tensor.label()
                );
            }
            if tensor.subgraph > 0 && tensor.table.is_variable() {
                assert_eq!(
                    offsets[tensor.index as usize],
                    -1,
                    "{}: {}",
                    sample.name,
                    tensor.label()
                );
            }
        }
    }
    for storage in [
        Storage::Arena,
        Storage::Constant,
        Storage::OutsideConstant,
        Storage::Variable,
        Storage::ResourceHandle,
        Storage::Empty,
        Storage::DynamicShape,
        Storage::UnknownType,
    ] {
        assert!(seen.contains(&storage), "no test model has {storage:?}");
    }
}

/// An input that is left to the device is freed by TFLM after its last reader, and scratch may land on it.
#[test]
fn what_cannot_be_kept_is_an_error() {
    let original = common::model("transpose_conv_int8");
    let options = Options {
        keep_inputs: true,
        online: vec!["0".into()],
        ..Options::default()
    };
    match plan(&original, &options) {
        Err(Error::CannotKeep { .. }) => {}
        Ok(planned) => {
            // If it could be kept after all, nothing may lie on it.
            panic!("kept with a head of {}", planned.report.head_bytes);
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_name_that_fits_nothing_is_named() {
    let original = common::model("conv_int8");
    for options in [
        Options {
            keep: vec!["nobody".into()],
            ..Options::default()
        },
        Options {
            online: vec!["9:9".into()],
            ..Options::default()
        },
    ] {
        let error = plan(&original, &options).unwrap_err();
        assert!(matches!(error, Error::NoSuchTensor { .. }), "{error}");
    }
}

/// With each planner the head is the one that the wheel-checked simulation gives, and none is above TFLM's own.
#[test]
fn every_planner_is_right() {
    for sample in common::models() {
        let auto = plan(&sample.bytes, &Options::default()).unwrap().report;
        for name in ["linear", "greedy", "best-fit"] {
            let options = Options {
                solver: name.parse().unwrap(),
                ..Options::default()
            };
            let report = plan(&sample.bytes, &options).unwrap().report;
            assert!(
                report.head_bytes >= auto.head_bytes,
                "{} {name}",
                sample.name
            );
            assert!(
                report.head_bytes <= report.greedy_head_bytes,
                "{} {name}",
                sample.name
            );
        }
    }
}

/// Whatever is asked for holds in the file, or is refused as something that cannot be had; never as a defect of ours.
/// Where tensors overlap, distances between them are no multiples of 16 by themselves.
#[test]
fn an_alignment_below_that_of_the_device_counts_as_the_devices() {
    let mut shared = 0;
    for sample in common::models() {
        let [own, less, least] = [16, 4, 1].map(|align| {
            let options = Options {
                align,
                target: Target::TflmReference,
                ..Options::default()
            };
            plan(&sample.bytes, &options).map_err(|e| e.to_string())
        });
        let own = own.unwrap();
        for other in [less, least] {
            let other = other.unwrap_or_else(|e| panic!("{}: {e}", sample.name));
            assert_eq!(
                other.report.head_bytes, own.report.head_bytes,
                "{}",
                sample.name
            );
        }
        shared += usize::from(own.report.needs.is_some());
    }
    assert!(shared > 10, "{shared} plans in which tensors overlap");
}

#[test]
fn every_model_with_every_option() {
    let (mut planned_files, mut refused) = (0, 0);
    for sample in common::models() {
        // A view of what is kept may lie there as well; what shares bytes otherwise is told apart in `tests/sharing.rs`.
        let nothing_shared = |options| Options {
            alias: Some(Level::None),
            ..options
        };
        for options in [
            Options {
                keep_inputs: true,
                ..Options::default()
            },
            Options {
                align: 32,
                ..Options::default()
            },
            Options {
                align: 64,
                keep_inputs: true,
                ..Options::default()
            },
            Options {
                align: 1,
                solver: "best-fit".parse().unwrap(),
                ..Options::default()
            },
            Options {
                online: vec!["0".into()],
                ..Options::default()
            },
        ]
        .map(nothing_shared)
        {
            let planned = match plan(&sample.bytes, &options) {
                Ok(planned) => planned,
                Err(Error::CannotKeep { .. }) => {
                    assert!(options.keep_inputs);
                    refused += 1;
                    continue;
                }
                Err(e) => panic!("{} with {options:?}: {e}", sample.name),
            };
            if !matches!(planned.report.outcome, Outcome::Planned { .. }) {
                continue;
            }
            planned_files += 1;
            let offsets = offsets(&planned.file);
            assert!(
                offsets
                    .iter()
                    .all(|&o| o == -1 || (o as u64).is_multiple_of(options.align))
            );
            if !options.online.is_empty() {
                assert_eq!(offsets[0], -1);
            }
            if options.keep_inputs {
                let graph = Graph::read(Model::parse(&sample.bytes).unwrap()).unwrap();
                let inputs = &graph.subgraphs[0].inputs;
                let names: Vec<String> = inputs
                    .iter()
                    .map(|&t| graph.tensor(t).index.to_string())
                    .collect();
                let kept: Vec<&str> = names.iter().map(String::as_str).collect();
                // An input that TFLM looks up for a variable must be -1, and is checked by simulation alone.
                if inputs.iter().all(|t| offsets[t.index()] != -1) {
                    assert_kept(&sample.bytes, &planned.file, &kept);
                }
            }
        }
    }
    assert!(
        planned_files > 200 && refused <= 2,
        "{planned_files} planned, {refused} refused"
    );
    println!("{planned_files} planned, {refused} refused");
}

/// A smaller plan of another tool does not count when it has an offset for what is to be left to the device.
#[test]
fn a_foreign_plan_does_not_overrule_online() {
    let original = common::model("plan_optimal_int8");
    let graph = Graph::read(Model::parse(&original).unwrap()).unwrap();
    let output = graph.subgraphs[0].outputs[0];
    let options = Options {
        solver: "greedy".parse().unwrap(),
        online: vec![graph.tensor(output).index.to_string()],
        ..Options::default()
    };
    let planned = plan(&original, &options).unwrap();
    assert!(matches!(
        planned.report.outcome,
        Outcome::Planned { replaced: true }
    ));
    assert_eq!(offsets(&planned.file)[output.index()], -1);
}

/// The arena of a model with an operator that TFLM does not bring is short of what that kernel takes; that is said.
#[test]
fn operators_of_unknown_need_are_named() {
    for (name, operator) in [
        ("newer_operator_int8", Some("BUILTIN_250")),
        ("ethos_u_int8", Some("ethos-u")),
        ("conv_int8", None),
    ] {
        let report = plan(&common::model(name), &Options::default())
            .unwrap()
            .report;
        assert_eq!(report.tail_is_complete, operator.is_none(), "{name}");
        let said = |w: &&String| w.contains("is not counted") && w.contains(operator.unwrap_or(""));
        let warnings = report.warnings.iter().filter(said).count();
        assert_eq!(warnings, usize::from(operator.is_some()), "{name}");
    }
}

/// More time for the search starts from what it finds without, and ends with no more.
#[test]
fn more_time_never_takes_more() {
    let original = common::model("diamond_b_int8");
    let mut options = Options::default();
    let short = plan(&original, &options).unwrap().report;
    options.limits = options.limits.with_time(std::time::Duration::from_secs(1));
    let long = plan(&original, &options).unwrap().report;
    assert!(!short.optimal, "there is something to search for");
    assert!(long.head_bytes <= short.head_bytes, "{}", long.head_bytes);
}
