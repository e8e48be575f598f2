//! Models that run on this machine: `arenaplan run`, and `verify --run`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

#[path = "common/build.rs"]
mod build;
mod common;

use arenaplan::execute::{self, ExecuteError, Feed, Setting, Values};
use arenaplan::plan::{Options, plan};
use arenaplan_runtime::{Code, Contract, Fault, Kernel, Node, Type, ops};
use arenaplan_schema::patch::{self, Edit};
use arenaplan_schema::tflite::BuiltinOperator;
use build::Plain;

fn noise(invokes: usize) -> Setting<'static> {
    Setting {
        feed: Feed::Noise(1),
        invokes,
        ..Setting::default()
    }
}

/// Each model with a plan beside itself without one.
#[test]
fn plans_change_no_outputs() {
    let (mut seen, mut vary) = (0, 0);
    for sample in common::models() {
        let Ok(planned) = plan(&sample.bytes, &Options::default()) else {
            continue;
        };
        let unplanned = execute::without_plan(&planned.file).unwrap();
        match execute::compare(&planned.file, &unplanned, &noise(3)) {
            Ok(found) => {
                assert_eq!(found.difference, None, "{}", sample.name);
                seen += 1;
                vary += usize::from(found.vary);
            }
            Err(ExecuteError::Runtime { reason, .. }) => println!("{}: {reason}", sample.name),
            Err(e) => panic!("{}: {e}", sample.name),
        }
    }
    assert!(seen >= 60, "only {seen} models ran");
    assert!(vary >= 50, "only {vary} models have outputs that vary");
}

/// An input of eight floats, an operator, an output as large; with what `plan` says of the two.
fn one_operator(code: BuiltinOperator, plan: Option<[i32; 2]>) -> Vec<u8> {
    let mut model = Plain::default();
    let (input, output) = (model.tensor(8), model.tensor(8));
    model.op(code, &[input], &[output]);
    (model.inputs, model.outputs) = (vec![input], vec![output]);
    let edit = Edit {
        plan: plan.map(Vec::from),
        ..Edit::default()
    };
    patch::graft(&model.finish(), &edit).unwrap()
}

fn forwards(node: &Node<'_>) -> Result<(), Fault> {
    let (input, output) = (
        node.input(0)?.read::<f32>()?,
        node.output(0)?.write::<f32>()?,
    );
    for k in 0..input.len() {
        output.set(k, input.get(k));
    }
    Ok(())
}

#[test]
fn a_kernel_that_promises_too_much_is_found() {
    // The output starts in the middle of the input: from there on the kernel reads what it wrote.
    let planned = one_operator(BuiltinOperator::ABS, Some([0, 16]));
    let unplanned = one_operator(BuiltinOperator::ABS, None);
    let kernels = |contract| [Kernel::builtin(Code::ABS, forwards).with_contract(contract)];
    let compare = |contract| {
        let setting = Setting {
            kernels: &kernels(contract),
            ..noise(2)
        };
        execute::compare(&planned, &unplanned, &setting)
    };
    let found = compare(Contract::Whole).unwrap().difference.unwrap();
    assert_eq!(
        (found.invoke, found.output, found.element, found.count),
        (0, 0, 4, 4)
    );
    assert_ne!(found.planned, found.unplanned);
    // A true promise: the runtime does not take the plan.
    let refused = compare(Contract::Elementwise).unwrap_err().to_string();
    assert!(refused.contains("at one place"), "{refused}");
}

#[test]
fn what_a_kernel_finds_where_nothing_is_kept_is_noise() {
    fn remembers(node: &Node<'_>) -> Result<(), Fault> {
        let old = node.scratch::<u32>()?;
        let kept = old.get(0) & 0xff;
        forwards(node)?;
        node.output(0)?.write::<f32>()?.set(0, kept as f32);
        Ok(())
    }
    let kernels = [Kernel::builtin(Code::ABS, remembers).with_scratch(|_| Ok(16))];
    let setting = Setting {
        kernels: &kernels,
        ..noise(4)
    };
    let model = one_operator(BuiltinOperator::ABS, None);
    let found = execute::compare(&model, &model, &setting).unwrap();
    let difference = found.difference.unwrap();
    assert_eq!((difference.element, difference.count), (0, 1));
}

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let model = one_operator(BuiltinOperator::ABS, None);
    let values = |element_type, shape: &[usize], size: usize| Values {
        element_type,
        shape: shape.to_vec(),
        bytes: vec![0; shape.iter().product::<usize>() * size],
    };
    let with = |values: Vec<Values>| {
        let setting = Setting {
            feed: Feed::Values(values),
            kernels: ops::ALL,
            ..Setting::default()
        };
        execute::run(&model, &setting, |_, _| ()).map(|_| ())
    };
    assert_eq!(with(vec![values(Type::FLOAT32, &[8], 4)]), Ok(()));
    let too_few = ExecuteError::InputCount {
        needed: 1,
        given: 0,
    };
    assert_eq!(with(vec![]), Err(too_few));
    for wrong in [
        values(Type::FLOAT32, &[2, 4], 4),
        values(Type::INT32, &[8], 4),
    ] {
        let error = with(vec![wrong]).unwrap_err();
        assert!(
            matches!(error, ExecuteError::Input { index: 0, .. }),
            "{error}"
        );
    }
}

#[cfg(feature = "cli")]
mod cli {
    use std::fs;

    use super::common::{self, run};

    fn workplace(models: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in models {
            let file = format!("{name}.tflite");
            let found =
                ["models", "malformed"].map(|f| common::root("testdata").join(f).join(&file));
            let from = found.into_iter().find(|p| p.exists()).unwrap();
            fs::copy(from, folder.path().join(file)).unwrap();
        }
        folder
    }

    #[test]
    fn runs() {
        let folder = workplace(&["two_inputs_int8", "svdf_int8", "custom_operator_int8"]);
        let run = |args: &[&str]| run(folder.path(), args);
        insta::assert_snapshot!("run_help", run(&["run", "--help"]));
        insta::assert_snapshot!("run_zeros", run(&["run", "two_inputs_int8.tflite"]));
        insta::assert_snapshot!(
            "run_noise",
            run(&["run", "svdf_int8.tflite", "--random", "7", "--invokes", "5"])
        );
        insta::assert_snapshot!(
            "run_json",
            run(&["run", ".", "--random", "7", "--format", "json"])
        );
        insta::assert_snapshot!(
            "run_too_small",
            run(&["run", "svdf_int8.tflite", "--arena", "100"])
        );
    }

    #[test]
    fn arrays_go_in_and_out() {
        let folder = workplace(&["softmax_int8", "two_inputs_int8"]);
        let run = |args: &[&str]| run(folder.path(), args);
        let outputs = |args: &[&str]| {
            let all = [&["run", "softmax_int8.tflite", "--output", "out"], args].concat();
            run(&all)
        };
        insta::assert_snapshot!("run_output", outputs(&["--random", "3"]));
        let noise = fs::read(folder.path().join("out/output_0.npy")).unwrap();
        insta::assert_snapshot!("run_keeps_files", outputs(&[]));
        assert_eq!(
            fs::read(folder.path().join("out/output_0.npy")).unwrap(),
            noise
        );
        assert!(outputs(&["--force"]).starts_with("status: 0"));
        let zeros = fs::read(folder.path().join("out/output_0.npy")).unwrap();
        assert_ne!(zeros, noise);

        // An output of the first run as an input of the others.
        fs::rename(
            folder.path().join("out/output_0.npy"),
            folder.path().join("a.npy"),
        )
        .unwrap();
        insta::assert_snapshot!(
            "run_wrong_shape",
            run(&["run", "two_inputs_int8.tflite", "--input", "a.npy", "a.npy"])
        );
        insta::assert_snapshot!(
            "run_wrong_count",
            run(&["run", "two_inputs_int8.tflite", "--input", "a.npy"])
        );
        fs::write(folder.path().join("b.npy"), "no array").unwrap();
        insta::assert_snapshot!(
            "run_no_array",
            run(&["run", "two_inputs_int8.tflite", "--input", "b.npy", "a.npy"])
        );
    }

    #[test]
    fn plans_are_run() {
        let folder = workplace(&["streaming_int8", "custom_operator_int8", "plan_overlap"]);
        let run = |args: &[&str]| run(folder.path(), args);
        run(&["plan", ".", "--in-place"]);
        insta::assert_snapshot!(
            "verify_run",
            run(&["verify", "streaming_int8.tflite", "--run"])
        );
        insta::assert_snapshot!(
            "verify_run_no_kernel",
            run(&["verify", "custom_operator_int8.tflite", "--run"])
        );
        let folder = workplace(&["plan_overlap", "softmax_int8"]);
        insta::assert_snapshot!(
            "verify_run_wrong",
            common::run(folder.path(), &["verify", ".", "--run", "--format", "json"])
        );
    }
}
