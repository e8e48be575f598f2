//! The command line as a user meets it: exit status, standard output, standard error.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]
#![cfg(feature = "cli")]

mod common;

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use common::run;

/// A folder with some of the project's models in it.
fn workplace(models: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in models {
        let from = ["models", "malformed"]
            .map(|f| {
                common::root("testdata")
                    .join(f)
                    .join(format!("{name}.tflite"))
            })
            .into_iter()
            .find(|p| p.exists())
            .unwrap_or_else(|| panic!("no test model {name}"));
        fs::copy(from, folder.path().join(format!("{name}.tflite"))).unwrap();
    }
    folder
}

fn read(folder: &tempfile::TempDir, name: &str) -> Vec<u8> {
    fs::read(folder.path().join(name)).unwrap()
}

#[test]
fn help() {
    let folder = workplace(&[]);
    insta::assert_snapshot!("help", run(folder.path(), &["--help"]));
    insta::assert_snapshot!("help_plan", run(folder.path(), &["plan", "--help"]));
}

#[test]
fn operators_in_another_order() {
    let folder = workplace(&["streaming_int8"]);
    let run = |args: &[&str]| run(folder.path(), args);
    let model = "streaming_int8.tflite";
    insta::assert_snapshot!("reorder_plan", run(&["plan", model, "-o", "out.tflite"]));
    insta::assert_snapshot!(
        "reorder_no",
        run(&["plan", model, "--dry-run", "--reorder", "no"])
    );
    insta::assert_snapshot!("reorder_verify", run(&["verify", "out.tflite"]));
    insta::assert_snapshot!("reorder_inspect", run(&["inspect", "out.tflite"]));
    run(&["strip", "out.tflite", "-o", "back.tflite"]);
    assert_eq!(read(&folder, "back.tflite"), read(&folder, model));
}

#[test]
fn plan_one_model() {
    let folder = workplace(&["diamond_a_int8", "unet_int8"]);
    insta::assert_snapshot!(
        "plan_saves",
        run(
            folder.path(),
            &["plan", "diamond_a_int8.tflite", "-o", "out.tflite"]
        )
    );
    insta::assert_snapshot!(
        "plan_chain_saves_nothing",
        run(folder.path(), &["plan", "unet_int8.tflite", "--dry-run"])
    );
    insta::assert_snapshot!(
        "plan_json",
        run(
            folder.path(),
            &[
                "plan",
                "diamond_a_int8.tflite",
                "--dry-run",
                "--format",
                "json"
            ]
        )
    );
    insta::assert_snapshot!(
        "verify_right",
        run(folder.path(), &["verify", "out.tflite"])
    );
    insta::assert_snapshot!(
        "strip",
        run(folder.path(), &["strip", "out.tflite", "-o", "back.tflite"])
    );
    assert_eq!(
        read(&folder, "back.tflite"),
        read(&folder, "diamond_a_int8.tflite")
    );
}

#[test]
fn plan_a_folder() {
    let folder = workplace(&["diamond_a_int8", "unet_int8", "half", "plan_overlap"]);
    fs::create_dir(folder.path().join("deeper")).unwrap();
    fs::copy(
        folder.path().join("unet_int8.tflite"),
        folder.path().join("deeper/unet_int8.tflite"),
    )
    .unwrap();
    // The damaged file is reported, the others are planned, and the status is the worst.
    insta::assert_snapshot!(
        "plan_folder",
        run(folder.path(), &["plan", ".", "--out-dir", "out"])
    );
    // What is there now is not taken for models to plan.
    let again = run(folder.path(), &["plan", ".", "--out-dir", "out"]);
    assert!(again.contains("4 files written"), "{again}");
    assert!(!folder.path().join("out/out").exists());
}

#[test]
fn nothing_is_overwritten_unasked() {
    let folder = workplace(&["diamond_a_int8", "unet_int8"]);
    fs::write(folder.path().join("notes.txt"), "precious").unwrap();
    let args = ["plan", "diamond_a_int8.tflite", "-o", "notes.txt"];
    insta::assert_snapshot!("refuses_to_overwrite", run(folder.path(), &args));
    assert_eq!(read(&folder, "notes.txt"), b"precious");
    let forced = run(
        folder.path(),
        &[
            "plan",
            "diamond_a_int8.tflite",
            "-o",
            "notes.txt",
            "--force",
        ],
    );
    assert!(forced.starts_with("status: 0"), "{forced}");
    // Over an earlier result for the same model nothing is lost.
    let again = run(folder.path(), &args);
    assert!(again.starts_with("status: 0"), "{again}");
    // Over the result for another model it would be.
    let other = run(
        folder.path(),
        &["plan", "unet_int8.tflite", "-o", "notes.txt"],
    );
    assert!(other.starts_with("status: 2"), "{other}");
    // No half-written or temporary files stay behind.
    let mut names: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["diamond_a_int8.tflite", "notes.txt", "unet_int8.tflite"]
    );
}

#[test]
fn in_place_and_back() {
    let folder = workplace(&["diamond_a_int8"]);
    let before = read(&folder, "diamond_a_int8.tflite");
    let planned = run(
        folder.path(),
        &["plan", "diamond_a_int8.tflite", "--in-place"],
    );
    assert!(planned.starts_with("status: 0"), "{planned}");
    assert_ne!(read(&folder, "diamond_a_int8.tflite"), before);
    let stripped = run(
        folder.path(),
        &["strip", "diamond_a_int8.tflite", "--in-place"],
    );
    assert!(stripped.starts_with("status: 0"), "{stripped}");
    assert_eq!(read(&folder, "diamond_a_int8.tflite"), before);
}

#[test]
fn standard_streams() {
    let model = common::model("diamond_a_int8");
    let mut child = Command::new(env!("CARGO_BIN_EXE_arenaplan"))
        .args(["plan", "-", "-o", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&model).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(
        arenaplan_schema::patch::strip(&output.stdout).unwrap(),
        model
    );
    // The report must not mix with the model.
    assert!(String::from_utf8_lossy(&output.stderr).contains("head"));
}

#[test]
fn verify_finds_wrong_and_missing_plans() {
    let folder = workplace(&[
        "plan_overlap",
        "plan_offset_minus2",
        "plan_no_data",
        "unet_int8",
        "half",
    ]);
    insta::assert_snapshot!("verify_wrong", run(folder.path(), &["verify", "."]));
    insta::assert_snapshot!(
        "verify_json",
        run(
            folder.path(),
            &["verify", "plan_overlap.tflite", "--format", "json"]
        )
    );
}

#[test]
fn strip_without_a_plan_is_no() {
    let folder = workplace(&["unet_int8"]);
    insta::assert_snapshot!(
        "strip_nothing",
        run(
            folder.path(),
            &["strip", "unet_int8.tflite", "-o", "out.tflite"]
        )
    );
    assert!(!folder.path().join("out.tflite").exists());
}

#[test]
fn inspect_in_every_format() {
    let folder = workplace(&["if_float32", "svdf_int8"]);
    for format in ["text", "json", "csv", "dot"] {
        insta::assert_snapshot!(
            format!("inspect_{format}"),
            run(
                folder.path(),
                &["inspect", "if_float32.tflite", "--format", format]
            )
        );
    }
    insta::assert_snapshot!(
        "inspect_scratch",
        run(folder.path(), &["inspect", "svdf_int8.tflite"])
    );
}

/// A plan that lays outputs over inputs: the kernels that it needs are named wherever it is looked at.
#[test]
fn plans_for_certain_kernels() {
    let folder = workplace(&["dscnn_int8"]);
    let args = ["plan", "dscnn_int8.tflite", "-o", "out.tflite"];
    let said = run(
        folder.path(),
        &[&args[..], &["--target", "tflm-reference"]].concat(),
    );
    assert!(said.starts_with("status: 0"), "{said}");
    let verify = ["verify", "out.tflite"];
    insta::assert_snapshot!("kernels_verify", run(folder.path(), &verify));
    let json = run(
        folder.path(),
        &[&verify[..], &["--format", "json"]].concat(),
    );
    assert!(
        json.contains("\"needs\": \"TFLM's reference kernels\""),
        "{json}"
    );
    let others = run(
        folder.path(),
        &[&verify[..], &["--target", "tflm"]].concat(),
    );
    assert!(
        others.starts_with("status: 1") && others.contains("the plan is WRONG"),
        "{others}"
    );
    let inspect = ["inspect", "out.tflite"];
    insta::assert_snapshot!("kernels_inspect", run(folder.path(), &inspect));
    let json = run(
        folder.path(),
        &[&inspect[..], &["--format", "json"]].concat(),
    );
    let start = json.find("  \"why\"").unwrap_or_else(|| panic!("{json}"));
    let end = json.find("  \"peak\"").unwrap_or_else(|| panic!("{json}"));
    insta::assert_snapshot!("kernels_inspect_why", &json[start..end]);
}

#[test]
fn wrong_calls() {
    let folder = workplace(&["unet_int8", "diamond_a_int8"]);
    for (name, args) in [
        ("no_destination", &["plan", "unet_int8.tflite"][..]),
        ("one_file_for_two", &["plan", ".", "-o", "out.tflite"]),
        ("no_such_file", &["plan", "missing.tflite", "--dry-run"]),
        (
            "no_such_solver",
            &["plan", "unet_int8.tflite", "--dry-run", "--solver", "magic"],
        ),
        (
            "no_such_tensor",
            &["plan", "unet_int8.tflite", "--dry-run", "--keep", "nobody"],
        ),
        (
            "bad_alignment",
            &["plan", "unet_int8.tflite", "--dry-run", "--align", "12"],
        ),
        (
            "bad_size",
            &[
                "plan",
                "unet_int8.tflite",
                "--dry-run",
                "--arena-limit",
                "lots",
            ],
        ),
    ] {
        insta::assert_snapshot!(format!("wrong_{name}"), run(folder.path(), args));
    }
}

/// A list of tensors takes what follows; models come before it, or after `--`.
#[test]
fn lists_of_tensors() {
    let folder = workplace(&["diamond_a_int8"]);
    let model = "diamond_a_int8.tflite";
    for args in [
        &[
            "plan",
            model,
            "--dry-run",
            "--online",
            "0",
            "0:1",
            "--format",
            "json",
        ][..],
        &[
            "plan",
            "--dry-run",
            "--format",
            "json",
            "--online",
            "0",
            "--online",
            "1",
            "--",
            model,
        ],
    ] {
        let said = run(folder.path(), args);
        assert!(said.starts_with("status: 0"), "{said}");
        assert!(said.contains("\"tensors_planned\": 11"), "{said}");
    }
}

#[test]
fn arena_limit() {
    let folder = workplace(&["unet_int8"]);
    let args = [
        "plan",
        "unet_int8.tflite",
        "-o",
        "out.tflite",
        "--arena-limit",
        "1K",
    ];
    insta::assert_snapshot!("over_the_limit", run(folder.path(), &args));
    assert!(!folder.path().join("out.tflite").exists());
    let enough = run(
        folder.path(),
        &[
            "plan",
            "unet_int8.tflite",
            "-o",
            "o",
            "--arena-limit",
            "64KiB",
        ],
    );
    assert!(enough.starts_with("status: 0"), "{enough}");
}

/// A limit of nodes counts, a limit of time may change the plan: both are noted in the file, and the second is told when
/// it struck. At 0 it strikes where the first placement is not at the bound.
#[test]
fn limits_of_the_search() {
    let folder = workplace(&["lstm_int8", "base_float32"]);
    let limits = ["--node-limit", "0", "--time-limit", "0"];
    let said = |args: &[&str]| run(folder.path(), &[args, &limits].concat());
    let warning = "the time limit ended the search for a plan; another run may give another one";
    let late = said(&["plan", "lstm_int8.tflite", "--dry-run", "--align", "32"]);
    assert!(late.starts_with("status: 0"), "{late}");
    let line = format!("--- stderr\nwarning: lstm_int8.tflite: {warning}\n");
    assert!(late.contains(&line), "{late}");
    let json = said(&[
        "plan",
        "lstm_int8.tflite",
        "--dry-run",
        "--align",
        "32",
        "--format",
        "json",
    ]);
    let listed = format!("\"warnings\": [\n      \"{warning}\"\n    ]");
    assert!(json.contains(&listed), "{json}");
    // Nothing to search for, nothing to tell.
    let early = said(&["plan", "base_float32.tflite", "-o", "o"]);
    assert!(early.ends_with("--- stderr\n"), "{early}");
    let verified = run(folder.path(), &["verify", "o"]);
    let noted = "for target tflm (node-limit=0 time-limit=0)\n";
    assert!(verified.contains(noted), "{verified}");
    for wrong in ["-1", "soon"] {
        let limit = format!("--time-limit={wrong}");
        let said = run(
            folder.path(),
            &["plan", "base_float32.tflite", "--dry-run", &limit],
        );
        assert!(
            said.starts_with("status: 2") && said.contains("not a number of seconds"),
            "{said}"
        );
    }
}

#[test]
fn a_scratch_file_replaces_the_built_in_numbers() {
    let folder = workplace(&["unet_int8"]);
    fs::write(folder.path().join("scratch.txt"), "# measured\n0 1024\n").unwrap();
    fs::write(folder.path().join("wrong.txt"), "0 1024\n99 5\n").unwrap();
    let args = ["inspect", "unet_int8.tflite", "--scratch", "scratch.txt"];
    insta::assert_snapshot!("scratch_file", run(folder.path(), &args));
    let args = ["inspect", "unet_int8.tflite", "--scratch", "wrong.txt"];
    insta::assert_snapshot!("scratch_file_wrong", run(folder.path(), &args));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_arenaplan"))
        .args(["inspect", "--format", "json"])
        .arg(common::root("testdata/models"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"));
}

/// Links, devices and protected files are what users point at, not what they want replaced.
#[cfg(unix)]
#[test]
fn only_plain_files_are_replaced() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = workplace(&["diamond_a_int8"]);
    let path = |name: &str| folder.path().join(name);
    let original = read(&folder, "diamond_a_int8.tflite");

    // Through a link the file behind it is planned, and the link stays.
    symlink("diamond_a_int8.tflite", path("link.tflite")).unwrap();
    let said = run(folder.path(), &["plan", "link.tflite", "--in-place"]);
    assert!(said.starts_with("status: 0"), "{said}");
    assert!(path("link.tflite").is_symlink());
    assert_ne!(read(&folder, "diamond_a_int8.tflite"), original);

    // A device takes the bytes.
    let said = run(
        folder.path(),
        &["plan", "link.tflite", "-o", "/dev/null", "--force"],
    );
    assert!(said.starts_with("status: 0"), "{said}");
    assert!(!fs::metadata("/dev/null").unwrap().is_file());

    // A protected file needs --force, and stays protected.
    fs::write(path("kept.tflite"), &original).unwrap();
    fs::set_permissions(path("kept.tflite"), fs::Permissions::from_mode(0o444)).unwrap();
    let args = ["plan", "link.tflite", "-o", "kept.tflite"];
    let said = run(folder.path(), &args);
    assert!(
        said.starts_with("status: 2") && said.contains("write-protected"),
        "{said}"
    );
    assert_eq!(read(&folder, "kept.tflite"), original);
    let forced = run(
        folder.path(),
        &["plan", "link.tflite", "-o", "kept.tflite", "--force"],
    );
    assert!(forced.starts_with("status: 0"), "{forced}");
    let mode = fs::metadata(path("kept.tflite"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o444);

    // A folder is no file.
    fs::create_dir(path("folder")).unwrap();
    let said = run(folder.path(), &["plan", "link.tflite", "-o", "folder"]);
    assert!(
        said.starts_with("status: 2") && said.contains("is a folder"),
        "{said}"
    );
}
