//! `--stripes` and `--plan no` as a user meets them.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]
#![cfg(feature = "cli")]

mod common;

use std::fs;
use std::path::Path;

use common::run;
use serde_json::Value;

/// Models of the project, copied into a folder.
fn workplace(models: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in models {
        let path = folder.path().join(format!("{name}.tflite"));
        fs::write(path, common::model(name)).unwrap();
    }
    folder
}

/// What a run printed as JSON.
fn json(folder: &Path, args: &[&str]) -> Value {
    let said = run(folder, &[args, &["--format", "json"]].concat());
    let start = said.find("--- stdout\n").unwrap() + "--- stdout\n".len();
    let end = said.find("--- stderr").unwrap();
    serde_json::from_str(&said[start..end]).unwrap_or_else(|e| panic!("{e}: {said}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

const MODEL: &str = "mobilenet_v2_int8.tflite";

#[test]
fn one_model() {
    let folder = workplace(&["mobilenet_v2_int8"]);
    let run = |args: &[&str]| run(folder.path(), args);
    let plan = ["plan", MODEL, "--stripes", "20%", "-o", "out.tflite"];
    insta::assert_snapshot!("plan", run(&plan));
    insta::assert_snapshot!("verify", run(&["verify", "--run", "out.tflite"]));
    insta::assert_snapshot!("inspect", run(&["inspect", "out.tflite"]));
    // Views alone: right with whatever kernels.
    for target in [
        "tflm-reference",
        "tflm-cmsis-nn",
        "tflm-esp-nn",
        "arenaplan",
    ] {
        let said = run(&["verify", "out.tflite", "--target", target]);
        assert!(said.starts_with("status: 0"), "{said}");
    }
    assert!(run(&["strip", "out.tflite", "-o", "back.tflite"]).starts_with("status: 0"));
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("back.tflite"), read(MODEL));
    // Planned again as if for the first time.
    let again = [
        "plan",
        "out.tflite",
        "--stripes",
        "20%",
        "-o",
        "again.tflite",
    ];
    assert!(run(&again).starts_with("status: 0"));
    assert_eq!(read("again.tflite"), read("out.tflite"));
}

#[test]
fn figures_for_scripts() {
    let folder = workplace(&["mobilenet_v2_int8", "autoencoder_int8"]);
    let folder = folder.path();
    let plan = ["plan", MODEL, "--stripes", "20%", "-o", "out.tflite"];
    let all = json(folder, &plan);
    let found = &all[0];
    insta::assert_snapshot!(
        "json",
        serde_json::to_string_pretty(&found["stripes"]).unwrap()
    );
    assert_eq!(found["no_stripes"], Value::Null);
    // What is said to be before is what there is without stripes.
    let plain = &json(folder, &["plan", MODEL, "--dry-run"])[0];
    let stripes = &found["stripes"];
    assert_eq!(stripes["head_bytes_before"], plain["head_bytes"]);
    assert_eq!(stripes["arena_bytes_before"], plain["arena_bytes"]);
    assert!(number(&found["arena_bytes"]) < number(&plain["arena_bytes"]));
    assert_eq!(plain["stripes"], Value::Null);
    assert_eq!(plain["no_stripes"], Value::Null);
    // The operators added are in the file.
    let seen = &json(folder, &["inspect", "out.tflite"])[0];
    let added = number(&stripes["added_operators"]);
    assert_eq!(
        number(&seen["operators"]),
        number(&plain["operators"]) + added
    );
    let percent = 100.0 * number(&stripes["extra_macs"]) as f64 / number(&stripes["macs"]) as f64;
    assert!((stripes["extra_macs_percent"].as_f64().unwrap() - percent).abs() < 0.01);
    // 64 bits.
    let wide = &json(
        folder,
        &[&plan[..4], &["--dry-run", "--bits", "64"]].concat(),
    )[0];
    let plain = &json(folder, &["plan", MODEL, "--dry-run", "--bits", "64"])[0];
    assert_eq!(wide["stripes"]["arena_bytes_before"], plain["arena_bytes"]);

    let chain = [
        "plan",
        "autoencoder_int8.tflite",
        "--stripes",
        "auto",
        "--dry-run",
    ];
    let chain = &json(folder, &chain)[0];
    assert_eq!(chain["stripes"], Value::Null);
    assert!(chain["no_stripes"].as_str().unwrap().contains("operator"));
}

/// The peak that `inspect` shows of a striped file is the bound of the plan in it, and all that shares bytes counts once.
#[test]
fn the_peak_is_what_the_planner_counts() {
    for (model, target) in [
        ("mobilenet_v2_int8", "tflm"),
        ("resnet_int8", "tflm"),
        ("diamond_c_int8", "tflm"),
        ("conv_float32", "tflm-reference"),
        ("conv_int16x8", "arenaplan"),
    ] {
        let folder = workplace(&[model]);
        let folder = folder.path();
        let file = format!("{model}.tflite");
        let plan = ["plan", &file, "--stripes", "20%", "--target", target];
        let planned = &json(folder, &[&plan[..], &["-o", "out.tflite"]].concat())[0];
        assert_ne!(planned["stripes"], Value::Null, "{model}");
        let seen = &json(folder, &["inspect", "out.tflite"])[0];
        let needed = seen["operator_list"].as_array().unwrap().iter();
        let needed = needed.map(|op| number(&op["needed_bytes"])).max().unwrap();
        assert_eq!(
            needed,
            number(&planned["bound_with_scratch_bytes"]),
            "{model}"
        );
        assert_eq!(number(&seen["stripes_in_file"]["peak_bytes"]), needed);
        assert!(needed <= number(&seen["head_bytes"]));
        assert_eq!(seen["greedy_head_bytes"], planned["greedy_head_bytes"]);
    }
}

#[test]
fn a_folder() {
    let folder = workplace(&["autoencoder_int8", "conv_int8", "dscnn_int8"]);
    let said = run(
        folder.path(),
        &["plan", ".", "--stripes", "20%", "--dry-run"],
    );
    insta::assert_snapshot!("folder", said);
    let none = [
        "plan",
        "autoencoder_int8.tflite",
        "--stripes",
        "20%",
        "--dry-run",
    ];
    insta::assert_snapshot!("nothing_to_cut", run(folder.path(), &none));
}

#[test]
fn stripes_alone() {
    let folder = workplace(&["mobilenet_v2_int8", "autoencoder_int8"]);
    let run = |args: &[&str]| run(folder.path(), args);
    let alone = [
        "plan",
        MODEL,
        "--stripes",
        "20%",
        "--plan",
        "no",
        "-o",
        "out.tflite",
    ];
    insta::assert_snapshot!("alone", run(&alone));
    insta::assert_snapshot!("alone_verify", run(&["verify", "--run", "out.tflite"]));
    // The file goes as it is.
    let export = ["export", "out.tflite", "--as", "c"];
    assert!(run(&export).contains("resolver.AddSlice()"));
    // Nothing to cut: the file itself.
    let chain = [
        "plan",
        "autoencoder_int8.tflite",
        "--stripes",
        "20%",
        "--plan",
        "no",
    ];
    let said = run(&[&chain[..], &["-o", "chain.tflite"]].concat());
    assert!(said.starts_with("status: 0"), "{said}");
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert_eq!(read("chain.tflite"), read("autoencoder_int8.tflite"));
}

/// A file with stripes that another tool changed is a file like any other.
#[test]
fn a_changed_file_is_planned_as_it_is() {
    let folder = workplace(&["mobilenet_v2_int8"]);
    let said = |args: &[&str]| run(folder.path(), args);
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let plan = ["plan", MODEL, "--stripes", "20%", "-o", "striped.tflite"];
    assert!(said(&plan).starts_with("status: 0"));
    let mut longer = read("striped.tflite");
    longer.extend([0; 16]);
    fs::write(folder.path().join("changed.tflite"), &longer).unwrap();
    for options in [&[][..], &["--stripes", "20%"]] {
        let plan = ["plan", "changed.tflite", "-o", "out.tflite", "--force"];
        let answer = said(&[&plan[..], options].concat());
        assert!(answer.starts_with("status: 0"), "{answer}");
        assert!(
            answer.contains("its plan is replaced by a new one on top"),
            "{answer}"
        );
        let answer = said(&["verify", "--run", "out.tflite"]);
        assert!(answer.starts_with("status: 0"), "{answer}");
        assert!(
            said(&["strip", "out.tflite", "-o", "back.tflite", "--force"]).starts_with("status: 0")
        );
        assert_eq!(read("back.tflite"), longer);
    }
}

/// What `inspect` says of a new plan is about that plan's tensors, of which the file at hand may have fewer.
#[test]
fn a_new_plan_is_explained() {
    let folder = workplace(&["mobilenet_v2_int8"]);
    let said = |args: &[&str]| {
        let said = run(folder.path(), args);
        assert!(said.starts_with("status: 0"), "{said}");
        said
    };
    let tensors = |file: &str| {
        let seen = &json(folder.path(), &["inspect", file])[0];
        number(&seen["tensors"])
    };
    let plan = ["plan", MODEL, "--stripes", "auto"];
    said(&[&plan[..], &["-o", "planned.tflite"]].concat());
    said(&[&plan[..], &["--plan", "no", "-o", "alone.tflite"]].concat());
    assert!(tensors("alone.tflite") < tensors("planned.tflite"));
    // The same words as of the file with that plan, but for the plan that they are about.
    let why = |file: &str| {
        let said = said(&["inspect", file]);
        let start = said.find("what stands in the way").unwrap();
        let end = start + said[start..].find("\n\n").unwrap();
        said[start..end].to_owned()
    };
    assert_eq!(why("alone.tflite"), why("planned.tflite"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = workplace(&["mobilenet_v2_int8"]);
    let refused = |args: &[&str], expected: &str| {
        let said = run(
            folder.path(),
            &[&["plan", MODEL, "--dry-run"], args].concat(),
        );
        assert!(said.starts_with("status: 2"), "{said}");
        assert!(said.contains(expected), "{said}");
    };
    for text in [
        "0%", "0", "-5%", "10 %", "abc", "2000%", "1000.1%", "10.55%", ".5%", "", "%",
    ] {
        refused(
            &["--stripes", text],
            &format!("{text:?} is no amount of work"),
        );
    }
    refused(&["--plan", "no"], "--plan no leaves nothing to do");
    let alone = ["--stripes", "10%", "--plan", "no"];
    for flags in [
        &["--keep-inputs"][..],
        &["--keep", "0"],
        &["--online", "0"],
        &["--alias", "views"],
        &["--align", "32"],
        &["--solver", "greedy"],
        &["--node-limit", "5"],
        &["--time-limit", "5"],
    ] {
        let expected = format!("{} is about the offsets of tensors", flags[0]);
        refused(&[&alone[..], flags].concat(), &expected);
    }
    let compare = ["compare", MODEL, "--stripes", "10%", "--plan", "no"];
    assert!(run(folder.path(), &compare).starts_with("status: 2"));
    let share = ["plan", "--share", MODEL, MODEL, "--dry-run"];
    let said = run(folder.path(), &[&share[..], &alone].concat());
    assert!(said.starts_with("status: 2"), "{said}");
    for good in ["0.1%", "7.5", "1000%", "auto", "no"] {
        let said = run(
            folder.path(),
            &["plan", MODEL, "--dry-run", "--stripes", good],
        );
        assert!(said.starts_with("status: 0"), "{said}");
    }
}

/// The plan is for other kernels than the runtime's, but what was rewritten can be run.
#[test]
fn a_plan_for_other_kernels() {
    let folder = workplace(&["conv_float32"]);
    let run = |args: &[&str]| run(folder.path(), args);
    let plan = [
        "plan",
        "conv_float32.tflite",
        "--stripes",
        "20%",
        "-o",
        "out.tflite",
    ];
    let planned = run(&[&plan[..], &["--target", "tflm-reference"]].concat());
    assert!(planned.contains("row stripes, "), "{planned}");
    insta::assert_snapshot!("other_kernels", run(&["verify", "--run", "out.tflite"]));
    let any = run(&["verify", "--target", "tflm", "out.tflite"]);
    assert!(any.starts_with("status: 1"), "{any}");
}

/// What was measured of a layer counts for each of its copies, with and without the stripes.
#[test]
fn measured_scratch_memory() {
    let folder = workplace(&["mobilenet_v2_int8", "ethos_u_int8"]);
    let folder = folder.path();
    fs::write(folder.join("scratch.txt"), "2 1000\n6 1000\n").unwrap();
    let plan = [
        "plan",
        MODEL,
        "--stripes",
        "20%",
        "--scratch",
        "scratch.txt",
    ];
    let planned = &json(folder, &[&plan[..], &["-o", "out.tflite"]].concat())[0];
    assert_ne!(planned["stripes"], Value::Null);
    let inspect = ["inspect", "out.tflite", "--scratch", "scratch.txt"];
    let seen = &json(folder, &inspect)[0];
    let operators = seen["operator_list"].as_array().unwrap().iter();
    let asking = operators.filter(|op| [2, 6].map(Value::from).contains(&op["original_index"]));
    let asking: Vec<u64> = asking.map(|op| number(&op["scratch_bytes"])).collect();
    // Two layers, in two parts each; 1,000 bytes, rounded up.
    assert_eq!(asking, [1008; 4]);
    assert_eq!(seen["head_bytes"], planned["head_bytes"]);

    let compiled = [
        "plan",
        "ethos_u_int8.tflite",
        "--stripes",
        "20%",
        "--dry-run",
    ];
    let compiled = &json(folder, &compiled)[0];
    assert_eq!(compiled["no_stripes"], "the file has offsets compiled in");
}

#[test]
fn compared() {
    let folder = workplace(&["autoencoder_int8", "conv_int8", "dscnn_int8"]);
    let targets = ["--target", "tflm", "--target", "tflm-reference"];
    for format in ["text", "csv", "markdown"] {
        let compare = ["compare", ".", "--stripes", "20%", "--format", format];
        let said = run(folder.path(), &[&compare[..], &targets].concat());
        insta::assert_snapshot!(format!("compare_{format}"), said);
    }
    // A column is what `plan` gives.
    let file = "conv_int8.tflite";
    let compared = json(
        folder.path(),
        &["compare", file, "--stripes", "20%", "--target", "tflm"],
    );
    let compared = &compared[0]["targets"][0];
    let planned = json(
        folder.path(),
        &["plan", file, "--stripes", "20%", "--dry-run"],
    );
    assert_eq!(compared["head_bytes"], planned[0]["head_bytes"]);
    assert_eq!(
        compared["extra_cost_percent"],
        planned[0]["stripes"]["extra_cost_percent"]
    );
    let steps = compared["steps"].as_array().unwrap();
    let head = |k: usize| number(&steps[k]["head_bytes"]);
    assert_eq!(steps[steps.len() - 1]["step"], "stripes");
    let plain = json(folder.path(), &["plan", file, "--dry-run"]);
    assert_eq!(head(steps.len() - 2), number(&plain[0]["head_bytes"]));
}

/// Only the model with the largest head is cut: with the other, the tails would grow for nothing.
#[test]
fn an_arena_for_several() {
    let folder = workplace(&["mobilenet_v2_int8", "dscnn_int8"]);
    let arena = |args: &[&str]| {
        let share = ["plan", "--share", MODEL, "dscnn_int8.tflite"];
        let all = json(folder.path(), &[&share[..], args].concat());
        let cut = [0, 1].map(|k: usize| all[k]["stripes"] != Value::Null);
        (number(&all[2]["arena_bytes"]), cut)
    };
    let (plain, cut) = arena(&["--dry-run"]);
    assert_eq!(cut, [false; 2]);
    let (striped, cut) = arena(&["--stripes", "20%", "--out-dir", "out"]);
    assert_eq!(cut, [true, false]);
    assert!(striped < plain);
    let out = ["out/mobilenet_v2_int8.tflite", "out/dscnn_int8.tflite"];
    let said = run(
        folder.path(),
        &[&["verify", "--run", "--share"], &out[..]].concat(),
    );
    assert!(said.starts_with("status: 0"), "{said}");
}

#[test]
fn exported() {
    let folder = workplace(&["conv_int16x8", "dscnn_int8"]);
    let run = |args: &[&str]| run(folder.path(), args);
    let stripes = ["--stripes", "20%", "--target"];
    let plan = ["plan", "dscnn_int8.tflite", "-o", "cut.tflite"];
    let planned = run(&[&plan[..], &stripes, &["tflm-cmsis-nn-dsp"]].concat());
    assert!(planned.starts_with("status: 0"), "{planned}");
    for format in ["c", "c-shim"] {
        let said = run(&["export", "cut.tflite", "--as", format]);
        for method in ["AddSlice()", "AddConcatenation()", "AddConv2D()"] {
            assert!(said.contains(method), "{format}: {said}");
        }
    }
    let said = run(&["export", "cut.tflite", "--as", "c-selftest"]);
    assert!(said.starts_with("status: 0"), "{said}");
    // Planned and exported at once.
    let rust = [
        "export",
        "conv_int16x8.tflite",
        "--as",
        "rust",
        "-o",
        "out/conv.rs",
    ];
    fs::create_dir(folder.path().join("out")).unwrap();
    let said = run(&[&rust[..], &stripes, &["arenaplan"]].concat());
    assert!(said.starts_with("status: 0"), "{said}");
    let code = fs::read_to_string(folder.path().join("out/conv.rs")).unwrap();
    for kernel in ["SLICE", "CONCATENATION"] {
        assert!(code.contains(&format!("ops::{kernel}")), "{code}");
    }
}

#[test]
fn inputs_that_are_kept_stand_in_no_way() {
    let folder = workplace(&["mobilenet_v2_int8"]);
    let planned = |stripes: &str| {
        let args = ["plan", MODEL, "--keep-inputs", "--dry-run"];
        json(
            folder.path(),
            &[&args[..], &["--stripes", stripes]].concat(),
        )[0]
        .clone()
    };
    let (without, with) = (planned("no"), planned("20%"));
    // TFLM's own planner keeps nothing, so that both are above it.
    let heads = [&with, &without].map(|f| number(&f["head_bytes"]));
    assert!(number(&without["greedy_head_bytes"]) < heads[1]);
    assert!(heads[0] < heads[1], "{heads:?}");
    assert!(!with["stripes"].is_null());
}
