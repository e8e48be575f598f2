//! `arenaplan solve` as a user meets it.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]
#![cfg(feature = "cli")]

mod common;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder with some of the project's problems in it.
fn workplace(problems: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in problems {
        let name = format!("{name}.csv");
        let from = common::root("testdata/problems").join(&name);
        fs::copy(from, folder.path().join(&name)).unwrap();
    }
    folder
}

fn write(folder: &TempDir, name: &str, text: &str) {
    fs::write(folder.path().join(name), text).unwrap();
}

fn read(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap()
}

/// Runs the program; seconds are blotted out.
fn run(folder: &TempDir, args: &[&str]) -> String {
    let said = common::run(folder.path(), args);
    let lines = said.lines().map(|line| {
        if line.trim_start().starts_with("\"seconds\": ") {
            return "    \"seconds\": (some),".to_owned();
        }
        let is_seconds = |word: &&str| {
            word.split_once('.')
                .is_some_and(|(whole, part)| whole.parse::<u32>().is_ok() && part.len() == 3)
        };
        match line.split(' ').find(is_seconds) {
            Some(word) => line.replace(word, "(some)"),
            None => line.to_owned(),
        }
    });
    lines.map(|line| line + "\n").collect()
}

/// The JSON array that the program prints, and its exit status.
fn json(folder: &TempDir, args: &[&str]) -> (Vec<Value>, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_arenaplan"))
        .arg("solve")
        .args(args)
        .args(["--format", "json"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let items = serde_json::from_slice(&output.stdout).unwrap();
    (items, output.status.code().unwrap())
}

#[test]
fn help() {
    insta::assert_snapshot!("help", run(&workplace(&[]), &["solve", "--help"]));
}

/// The figures of testdata/problems/README.md, the last three worked out by hand.
#[test]
fn heights_of_the_problem_files() {
    let folder = workplace(&["block", "branches", "chain", "names", "gaps", "windows"]);
    let (items, status) = json(&folder, &["."]);
    assert_eq!(status, 0);
    let found: Vec<(&str, u64)> = items
        .iter()
        .map(|item| {
            assert_eq!(item["optimal"], true, "{item}");
            (
                item["problem"].as_str().unwrap(),
                item["height_bytes"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("./block.csv", 4096),
        ("./branches.csv", 114_960),
        ("./chain.csv", 275_008),
        ("./gaps.csv", 70),
        ("./names.csv", 164),
        ("./windows.csv", 74),
    ];
    assert_eq!(found, expected);
    let readme = fs::read_to_string(common::root("testdata/problems/README.md")).unwrap();
    for (_, height) in expected {
        let digits = height.to_string();
        let thousands = match digits.len() {
            ..4 => digits,
            n => format!("{},{}", &digits[..n - 3], &digits[n - 3..]),
        };
        assert!(readme.contains(&format!("| {thousands}")), "{thousands}");
    }
}

#[test]
fn one_problem_in_every_format() {
    let folder = workplace(&["windows"]);
    for format in ["text", "csv", "json"] {
        let args = ["solve", "windows.csv", "--format", format];
        insta::assert_snapshot!(format!("format_{format}"), run(&folder, &args));
    }
    let args = ["solve", "windows.csv", "-o", "out.csv"];
    insta::assert_snapshot!("written", run(&folder, &args));
    let printed = run(&folder, &["solve", "windows.csv", "--format", "csv"]);
    let streams = printed.split_once("--- stdout\n").unwrap().1;
    assert_eq!(streams, read(&folder, "out.csv") + "--- stderr\n");
    // What was written is a problem whose offsets are all fixed.
    let args = ["solve", "out.csv", "--format", "csv"];
    assert_eq!(run(&folder, &args), printed);
}

#[test]
fn the_example_of_the_readme_is_true() {
    let readme = fs::read_to_string(common::root("README.md")).unwrap();
    let blotted = readme.replace("  0.000\n", "  (some)\n");
    let (_, example) = blotted.split_once("$ arenaplan solve ").unwrap();
    let (command, output) = example.split_once('\n').unwrap();
    let folder = workplace(&[]);
    let problems = folder.path().join("testdata/problems");
    fs::create_dir_all(&problems).unwrap();
    let file = "testdata/problems/block.csv";
    fs::copy(common::root(file), folder.path().join(file)).unwrap();
    let args: Vec<&str> = std::iter::once("solve").chain(command.split(' ')).collect();
    let said = run(&folder, &args);
    let (output, _) = output.split_once("```").unwrap();
    assert_eq!(said, format!("status: 0\n--- stdout\n{output}--- stderr\n"));
}

#[test]
fn capacities() {
    let folder = workplace(&["block"]);
    let solve = |args: &[&str]| run(&folder, &[&["solve", "block.csv"], args].concat());
    let fits = solve(&["--capacity", "4KiB", "-o", "fits.csv"]);
    insta::assert_snapshot!("capacity_fits", fits);
    assert!(folder.path().join("fits.csv").exists());
    // Proven not to fit, and not found by a planner that finds little.
    let no = solve(&["--capacity", "4095", "-o", "no.csv"]);
    insta::assert_snapshot!("capacity_too_small", no);
    let greedy = ["--capacity", "5000", "--solver", "greedy", "-o", "no.csv"];
    insta::assert_snapshot!("capacity_not_found", solve(&greedy));
    assert!(!folder.path().join("no.csv").exists());

    let figures = |args: &[&str]| {
        let (items, status) = json(&folder, &[&["block.csv"], args].concat());
        let item = &items[0];
        assert_eq!(item.get("offsets").is_some(), status == 0, "{item}");
        let keys = ["capacity", "fits", "bound_bytes", "greedy_height_bytes"];
        (keys.map(|key| item[key].clone()), status)
    };
    let expected = |capacity: Value, fits: Value, status: i32| {
        ([capacity, fits, 4096.into(), 5696.into()], status)
    };
    assert_eq!(figures(&[]), expected(Value::Null, Value::Null, 0));
    assert_eq!(
        figures(&["--minimize"]),
        expected(Value::Null, Value::Null, 0)
    );
    assert_eq!(
        figures(&["--capacity", "4096"]),
        expected(4096.into(), true.into(), 0)
    );
    assert_eq!(
        figures(&["--capacity", "4095"]),
        expected(4095.into(), false.into(), 1)
    );
    assert_eq!(figures(&greedy[..4]), expected(5000.into(), Value::Null, 1));
}

#[test]
fn limits() {
    let folder = workplace(&[]);
    let mut random = common::Random::new(1);
    let mut rows = String::from("id,lower,upper,size\n");
    for i in 0..150 {
        let lower = random.below(100);
        let upper = lower + 1 + random.below(30);
        let size = 1 + random.below(1000);
        writeln!(rows, "{i},{lower},{upper},{size}").unwrap();
    }
    write(&folder, "hard.csv", &rows);
    // A time limit of 0 ends the search after its first try; one of an hour is never reached.
    let limited = ["hard.csv", "--node-limit", "0", "--time-limit"];
    let (items, status) = json(&folder, &[&limited[..], &["0"]].concat());
    let warning = "the time limit ended the search; another run may give another result";
    assert_eq!((&items[0]["stopped"], status), (&"time".into(), 0));
    assert_eq!(items[0]["warnings"], serde_json::json!([warning]));
    assert_eq!(items[0]["optimal"], false);
    let height = items[0]["height_bytes"].as_u64().unwrap();
    let text = run(&folder, &[&["solve"], &limited[..], &["0"]].concat());
    assert!(text.contains("  time limit\n"), "{text}");
    let told = format!("--- stderr\nwarning: hard.csv: {warning}\n");
    assert!(text.contains(&told), "{text}");
    let (items, _) = json(&folder, &[&limited[..], &["3600"]].concat());
    assert_eq!(items[0]["stopped"], "work");
    assert_eq!(items[0]["warnings"], serde_json::json!([]));
    assert!(items[0]["height_bytes"].as_u64().unwrap() <= height);
}

#[test]
fn a_window_below_that_of_a_buffer_that_starts_lower() {
    let folder = workplace(&[]);
    let rows = "id,lower,upper,size,gaps,offset\nb,0,4,9,0-4@5:9,\na,0,4,8,0-4@0:3,2\n";
    write(&folder, "apart.csv", rows);
    insta::assert_snapshot!("apart", run(&folder, &["solve", "apart.csv"]));
}

#[test]
fn a_folder() {
    let folder = workplace(&["gaps", "fixed"]);
    fs::create_dir(folder.path().join("deeper")).unwrap();
    write(&folder, "deeper/one.csv", "id,lower,upper,size\na,0,1,8\n");
    write(&folder, "deeper/wrong.csv", "id,lower,upper,size\na,0,1\n");
    insta::assert_snapshot!("folder", run(&folder, &["solve", ".", "--out-dir", "out"]));
    assert_eq!(
        read(&folder, "out/deeper/one.csv"),
        "id,lower,upper,size,offset\na,0,1,8,0\n"
    );
    // What is there now is not taken for problems.
    let (items, status) = json(&folder, &[".", "--out-dir", "out", "--capacity", "64"]);
    assert_eq!((items.len(), status), (4, 2));
    let failed: Vec<&Value> = items.iter().filter(|i| i.get("error").is_some()).collect();
    assert_eq!(failed[0]["problem"], "./deeper/wrong.csv");
    assert_eq!(failed.len(), 2);
    insta::assert_snapshot!(
        "folder_capacity",
        run(
            &folder,
            &["solve", ".", "--out-dir", "out", "--capacity", "64"]
        )
    );
}

#[test]
fn standard_streams() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_arenaplan"))
        .args(["solve", "-", "-o", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let text = "\u{feff}buffer,begin,end,size\r\na,0,1,4\r\n\r\nb,1,1,6";
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        "buffer,begin,end,size,offset\na,0,1,4,6\nb,1,1,6,0\n"
    );
    let report = String::from_utf8(output.stderr).unwrap();
    assert!(
        report.contains("<stdin>") && report.contains("optimal"),
        "{report}"
    );
}

#[test]
fn nothing_is_overwritten_unasked() {
    let folder = workplace(&["gaps"]);
    let status = |args: &[&str]| {
        let said = run(&folder, &[&["solve"], args].concat());
        said.lines().next().unwrap().to_owned()
    };
    write(&folder, "notes.txt", "precious");
    assert_eq!(status(&["gaps.csv", "-o", "notes.txt"]), "status: 2");
    assert_eq!(read(&folder, "notes.txt"), "precious");
    assert_eq!(
        status(&["gaps.csv", "-o", "notes.txt", "--force"]),
        "status: 0"
    );
    // Over an earlier result, or the problem without offsets, nothing is lost.
    let greedy = ["gaps.csv", "-o", "notes.txt", "--solver", "linear"];
    assert_eq!(status(&greedy), "status: 0");
    assert_eq!(status(&["gaps.csv", "-o", "gaps.csv"]), "status: 0");
    assert!(read(&folder, "gaps.csv").starts_with("id,lower,upper,size,gaps,offset\n"));
    // Which offsets are fixed would be lost.
    let some = "id,lower,upper,size,offset\na,0,1,8,8\nb,0,1,8,\n";
    write(&folder, "some.csv", some);
    assert_eq!(status(&["some.csv", "-o", "some.csv"]), "status: 2");
    assert_eq!(read(&folder, "some.csv"), some);
    assert_eq!(status(&["some.csv", "--in-place"]), "status: 0");
    assert_eq!(
        read(&folder, "some.csv"),
        "id,lower,upper,size,offset\na,0,1,8,8\nb,0,1,8,0\n"
    );
    // Over the result of another problem.
    assert_eq!(status(&["gaps.csv", "-o", "some.csv"]), "status: 2");
}

#[test]
fn wrong_calls() {
    let folder = workplace(&["gaps", "names"]);
    for (name, args) in [
        ("both", &["gaps.csv", "--minimize", "--capacity", "8"][..]),
        ("csv_and_file", &["gaps.csv", "--format", "csv", "-o", "o"]),
        ("csv_of_two", &["gaps.csv", "names.csv", "--format", "csv"]),
        ("one_file_for_two", &[".", "-o", "out.csv"]),
        ("solver", &["gaps.csv", "--solver", "magic"]),
        ("no_such_file", &["missing.csv"]),
    ] {
        let said = run(&folder, &[&["solve"], args].concat());
        insta::assert_snapshot!(format!("wrong_{name}"), said);
    }
}

/// Nonsense is an error with its line. What each message says is tested where the table is read.
#[test]
fn nonsense() {
    let folder = workplace(&[]);
    let header = "id,lower,upper,size,alignment,hint,gaps,offset\n";
    let row = |row: &str| format!("{header}a,0,9,8,,,,\n{row}\n").into_bytes();
    let most = i64::MAX;
    let line = |n: usize| format!("error: it.csv: line {n}");
    let lines = |a: usize, b: usize| format!("error: it.csv: lines {a} and {b}: ");
    for (bytes, message) in [
        (Vec::new(), line(1)),
        (b"\xff\xfei\0d\0".to_vec(), line(1)),
        (
            b"id,lower,upper,size\na,0,1,8\n\xe9,0,1,8\n".to_vec(),
            line(3),
        ),
        (b"\0\0\0\0".to_vec(), line(1)),
        (b"id,lower,upper\n".to_vec(), line(1)),
        (b"id,size,lower,upper,start\n".to_vec(), line(1)),
        (row("b,0,1,-8,,,,"), line(3)),
        (row("b,5,5,8,,,,"), line(3)),
        (row("b,5,4,8,,,,"), line(3)),
        (row(&format!("b,{},{},8,,,,", i64::MIN, i64::MIN)), line(3)),
        (row("a,0,1,8,,,,"), line(3)),
        (row("b,0,1,8,0,,,"), line(3)),
        (row("b,0,1,8"), line(3)),
        (row("b,0,1,8,,,,,"), line(3)),
        (row(&format!("b,0,1,{most},,,,")), line(3)),
        (row(&format!("b,0,1,{},,,,", u64::MAX)), line(3)),
        (row(&format!("b,0,1,8,{most},,,")), line(3)),
        (row(&format!("b,0,1,8,,,,{most}")), line(3)),
        (row(&format!("b,0,1,{},,,,", 1u64 << 61)), line(3)),
        (row("b,0,1,8,16,,,8"), line(3)),
        (row("b,0,1,8,,,0-1@0:9,"), line(3)),
        (row("b,0,9,8,,,1-3 2-4,"), line(3)),
        (row("b,0,9,8,,,8-10,"), line(3)),
        (row("b,0,1,8,,,,0\nc,0,1,8,,,,7"), lines(3, 4)),
        (row(&"9".repeat(1 << 20)), line(3)),
        (row(&",".repeat(1 << 20)), line(3)),
        (
            row(&format!("b,0,9,8,,,{},", "1-2 ".repeat(1 << 18))),
            line(3),
        ),
    ] {
        fs::write(folder.path().join("it.csv"), &bytes).unwrap();
        let said = run(&folder, &["solve", "it.csv"]);
        let expected = format!("status: 2\n--- stdout\n--- stderr\n{message}");
        assert!(said.starts_with(&expected), "{said:?} is not {message:?}");
        assert!(said.len() < 400, "{said}");
    }
}

/// Large and extreme, but right.
#[test]
fn large_tables() {
    let folder = workplace(&[]);
    let mut rows = String::from("id,lower,end,size,gaps\n");
    for i in 0..20_000i64 {
        let first = i64::MIN + i * 1_000_000_000_000;
        let size = 16 + i % 7 * 16;
        let end = first + 2_000_000_000_000;
        writeln!(rows, "b{i},{first},{end},{size},{first}-{first}").unwrap();
    }
    writeln!(rows, "last,{},{},{},", i64::MAX, i64::MAX, 1u64 << 60).unwrap();
    write(&folder, "large.csv", &rows);
    let (items, status) = json(&folder, &["large.csv", "-o", "out.csv"]);
    assert_eq!(status, 0);
    assert_eq!(items[0]["buffers"], 20_001);
    // Each one ends where the next but one starts, with a gap.
    assert_eq!(items[0]["conflicts"], 19_999);
    assert_eq!(items[0]["height_bytes"], 1u64 << 60);
    assert_eq!(read(&folder, "out.csv").lines().count(), 20_002);

    // All at once: more conflicts than memory should hold.
    let rows: String = (0..20_000).map(|i| format!("{i},0,1,1\n")).collect();
    write(
        &folder,
        "dense.csv",
        &format!("id,lower,upper,size\n{rows}"),
    );
    let said = run(&folder, &["solve", "dense.csv"]);
    assert!(
        said.starts_with("status: 2") && said.contains("199990000 conflicts"),
        "{said}"
    );
}
