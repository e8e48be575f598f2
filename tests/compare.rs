//! `arenaplan compare`: each figure is what `plan` gives with the flags that the column stands for.
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

/// Models of the project, copied into a folder.
fn workplace(models: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in models {
        let path = folder.path().join(format!("{name}.tflite"));
        fs::write(path, common::model(name)).unwrap();
    }
    folder
}

const MODELS: [&str; 5] = [
    "diamond_a_int8",
    "idle_tensors_float32",
    "resnet_int8",
    "split_pack_float32",
    "svdf_int8",
];

/// What a run printed on standard output.
fn stdout(said: &str) -> &str {
    let start = said.find("--- stdout\n").unwrap() + "--- stdout\n".len();
    &said[start..said.find("--- stderr").unwrap()]
}

#[test]
fn every_format() {
    let folder = workplace(&MODELS);
    for format in ["text", "csv", "markdown"] {
        let said = run(folder.path(), &["compare", ".", "--format", format]);
        insta::assert_snapshot!(format!("format_{format}"), said);
    }
    let args = ["compare", "diamond_a_int8.tflite", "--format", "json"];
    insta::assert_snapshot!("format_json", run(folder.path(), &args));
    insta::assert_snapshot!("help", run(folder.path(), &["compare", "--help"]));
}

#[test]
fn one_target_with_its_bound() {
    let folder = workplace(&["diamond_a_int8", "resnet_int8"]);
    let args = ["compare", ".", "--target", "tflm-reference"];
    insta::assert_snapshot!("one_target", run(folder.path(), &args));
    let fewer = run(
        folder.path(),
        &[&args[..], &["--reorder", "no", "--alias", "views"]].concat(),
    );
    let titles = stdout(&fewer).lines().nth(2).unwrap();
    let titles: Vec<&str> = titles.split_whitespace().collect();
    assert_eq!(
        titles,
        ["model", "TFLM", "placement", "views", "bound", "gap"]
    );
}

/// A file that is no model is reported by its name, the others are compared, and the status is the worst.
#[test]
fn failures() {
    let folder = workplace(&["diamond_a_int8"]);
    fs::write(folder.path().join("half.tflite"), b"TFL3").unwrap();
    insta::assert_snapshot!("failures", run(folder.path(), &["compare", "."]));
    let json = run(folder.path(), &["compare", ".", "--format", "json"]);
    assert!(json.starts_with("status: 2\n"), "{json}");
    let items: serde_json::Value = serde_json::from_str(stdout(&json)).unwrap();
    let failed = items
        .as_array()
        .unwrap()
        .iter()
        .find(|i| i.get("error").is_some());
    assert_eq!(failed.unwrap()["model"], "./half.tflite");
    let nothing = run(folder.path(), &["compare", "half.tflite"]);
    assert!(
        nothing.starts_with("status: 2\n--- stdout\n--- stderr\n"),
        "{nothing}"
    );
    let unknown = run(folder.path(), &["compare", ".", "--target", "toaster"]);
    assert!(
        unknown.starts_with("status: 2") && unknown.contains("unknown target"),
        "{unknown}"
    );
}

/// A head by `plan` itself.
fn planned(folder: &Path, model: &str, flags: &[&str], key: &str) -> u64 {
    let args = [&["plan", model, "--dry-run", "--format", "json"][..], flags].concat();
    let said = run(folder, &args);
    let figures: serde_json::Value = serde_json::from_str(stdout(&said)).unwrap();
    figures[0][key].as_u64().unwrap()
}

#[test]
fn figures_are_those_of_plan() {
    let folder = workplace(&MODELS);
    let said = run(folder.path(), &["compare", ".", "--format", "csv"]);
    let mut lines = stdout(&said)
        .lines()
        .map(|l| l.split(',').collect::<Vec<_>>());
    let titles = lines.next().unwrap();
    let mut rows: Vec<Vec<&str>> = lines.collect();
    let means = rows.pop().unwrap();
    assert_eq!(rows.len(), MODELS.len());
    let number = |cell: &str| cell.parse::<u64>().unwrap();
    for row in &rows {
        for (title, cell) in titles.iter().zip(row).skip(1) {
            let (target, figure) = title.split_once(':').unwrap();
            let mut flags = vec!["--target", target];
            let key = match figure {
                "greedy" => "greedy_head_bytes",
                "bound" => "bound_with_scratch_bytes",
                "gap_percent" => continue,
                _ => "head_bytes",
            };
            match figure {
                "placement" => flags.extend(["--reorder", "no", "--alias", "none"]),
                "order" => flags.extend(["--alias", "none"]),
                "views" | "in-place" => flags.extend(["--alias", figure]),
                _ => {}
            }
            let expected = planned(folder.path(), row[0], &flags, key);
            assert_eq!(number(cell), expected, "{} {title}", row[0]);
        }
    }
    // The means, with the heads that are not 0, against what TFLM needs with the same kernels.
    let mut greedy = 0;
    for (column, title) in titles.iter().enumerate().skip(1) {
        let figure = title.split_once(':').unwrap().1;
        match figure {
            "greedy" => greedy = column,
            "bound" | "gap_percent" => {
                assert_eq!(means[column], "");
                continue;
            }
            _ => {}
        }
        let used: Vec<_> = rows.iter().filter(|r| number(r[greedy]) > 0).collect();
        assert_eq!(means[0], format!("geometric mean of {}", used.len()));
        let product: f64 = used
            .iter()
            .map(|r| number(r[column]) as f64 / number(r[greedy]) as f64)
            .product();
        let mean = product.powf(1.0 / used.len() as f64);
        assert_eq!(means[column], format!("{mean:.3}"), "{title}");
    }
}
