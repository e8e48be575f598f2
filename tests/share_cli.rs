//! `--share`, `--cascade` and `--link` as a user meets them.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]
#![cfg(feature = "cli")]

mod common;
#[path = "common/split.rs"]
mod split;

use std::fs;
use std::path::Path;

use common::run;

/// A folder with some of the project's models, and the halves of one.
fn workplace(models: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.path().join(format!("{name}.tflite")), bytes).unwrap();
    };
    for name in models {
        write(name, &common::model(name));
    }
    let [front, back] = split::split(&common::model("dscnn_int8"), 4).unwrap();
    write("front", &front);
    write("back", &back);
    folder
}

fn json(folder: &Path, args: &[&str]) -> serde_json::Value {
    let text = run(folder, &[args, &["--format", "json"]].concat());
    let start = text.find("--- stdout\n").unwrap() + 11;
    let end = text.find("--- stderr\n").unwrap();
    serde_json::from_str(&text[start..end]).unwrap()
}

#[test]
fn models_that_take_turns() {
    let folder = workplace(&["streaming_int8", "diamond_a_int8"]);
    let both = [
        "plan",
        "--share",
        "streaming_int8.tflite",
        "diamond_a_int8.tflite",
    ];
    let run = |more: &[&str]| run(folder.path(), &[&both[..], more].concat());
    insta::assert_snapshot!("share", run(&["--out-dir", "out", "--target", "arenaplan"]));
    insta::assert_snapshot!(
        "share_over_limit",
        run(&["--in-place", "--target", "arenaplan", "--arena-limit", "3K"])
    );
    let report = json(
        folder.path(),
        &[&both[..], &["--dry-run", "--target", "arenaplan"]].concat(),
    );
    let report = report.as_array().unwrap();
    let number = |k: usize, key: &str| report[k][key].as_u64().unwrap();
    assert_eq!(report.len(), 3);
    let head = number(0, "head_bytes").max(number(1, "head_bytes"));
    let tails = number(0, "tail_bytes") + number(1, "tail_bytes");
    assert_eq!(number(2, "head_bytes"), head);
    assert_eq!(number(2, "tail_bytes"), tails);
    assert_eq!(number(2, "arena_bytes"), head + tails);
    assert_eq!(
        report[2]["shared"],
        serde_json::json!(["streaming_int8", "diamond_a_int8"])
    );
    // Exactly as much is allowed.
    let limit = (head + tails).to_string();
    let over = (head + tails - 1).to_string();
    for (limit, status) in [(limit, "status: 0"), (over, "status: 1")] {
        let found = run(&[
            "--dry-run",
            "--target",
            "arenaplan",
            "--arena-limit",
            &limit,
        ]);
        assert!(found.starts_with(status), "{found}");
    }
}

#[test]
fn a_cascade() {
    let folder = workplace(&["two_inputs_int8"]);
    let run = |args: &[&str]| run(folder.path(), args);
    let both = ["front.tflite", "back.tflite"];
    insta::assert_snapshot!(
        "cascade",
        run(&[
            &[
                "plan",
                "--cascade",
                "--out-dir",
                "out",
                "--target",
                "arenaplan"
            ],
            &both[..]
        ]
        .concat())
    );
    // The same by naming the link, by name and by place.
    for link in ["front:0=back:0", "0:0=1:0", "front=back"] {
        let args = [
            &[
                "plan",
                "--link",
                link,
                "--out-dir",
                "other",
                "--target",
                "arenaplan",
            ],
            &both[..],
        ]
        .concat();
        let found = run(&args);
        assert!(found.starts_with("status: 0"), "{found}");
        for name in both {
            let read = |out: &str| fs::read(folder.path().join(out).join(name)).unwrap();
            assert_eq!(read("out"), read("other"), "{link}");
        }
    }
    insta::assert_snapshot!(
        "cascade_verify",
        run(&["verify", "--cascade", "out/front.tflite", "out/back.tflite"])
    );
    // Planned alone, the two are right, and do not fit.
    run(&[
        "plan",
        "front.tflite",
        "back.tflite",
        "--out-dir",
        "alone",
        "--target",
        "tflm-reference",
    ]);
    insta::assert_snapshot!(
        "cascade_verify_alone",
        run(&[
            "verify",
            "--cascade",
            "alone/front.tflite",
            "alone/back.tflite"
        ])
    );
    assert!(run(&["verify", "alone/front.tflite", "alone/back.tflite"]).starts_with("status: 0"));
    let inspected = run(&["inspect", "out/back.tflite"]);
    assert!(
        inspected.contains("share=front,back link=front:0=back:0"),
        "{inspected}"
    );
    let report = json(
        folder.path(),
        &[&["plan", "--cascade", "--dry-run"], &both[..]].concat(),
    );
    assert_eq!(report[2]["links"][0]["link"], "front:0=back:0");
    assert_eq!(report[2]["link_cost_bytes"], 0);
}

/// A file with a plan of Vela's stays as it is, and says nothing of a target.
#[test]
fn a_file_that_names_no_target_is_judged_like_the_others() {
    let folder = workplace(&["ethos_u_int8"]);
    let both = ["front.tflite", "ethos_u_int8.tflite"];
    let target = ["--target", "tflm-reference"];
    let plan = [&["plan", "--share", "--out-dir", "out"], &target[..], &both].concat();
    assert!(run(folder.path(), &plan).starts_with("status: 0"));
    let found = run(
        &folder.path().join("out"),
        &[&["verify", "--share"], &both[..]].concat(),
    );
    assert!(
        found.starts_with("status: 0")
            && found.contains("front, ethos_u_int8 can take turns on one arena"),
        "{found}"
    );
}

/// The plan of the second would be written over that of the first, and both are needed.
#[test]
fn one_file_holds_no_two_plans() {
    let folder = workplace(&[]);
    let before = std::fs::read(folder.path().join("front.tflite")).unwrap();
    let refused = |other: &str| {
        let args = ["plan", "--share", "--in-place", "front.tflite", other];
        let found = run(folder.path(), &args);
        assert!(
            found.starts_with("status: 2") && found.contains("are one file"),
            "{found}"
        );
    };
    refused("./front.tflite");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("front.tflite", folder.path().join("link.tflite")).unwrap();
        refused("link.tflite");
    }
    assert_eq!(
        std::fs::read(folder.path().join("front.tflite")).unwrap(),
        before
    );
}

#[test]
fn what_cannot_be_linked() {
    let folder = workplace(&["two_inputs_int8"]);
    let run = |args: &[&str]| run(folder.path(), &[&["plan", "--dry-run"], args].concat());
    insta::assert_snapshot!(
        "cascade_nothing_fits",
        run(&["--cascade", "back.tflite", "two_inputs_int8.tflite"])
    );
    let refused = |args: &[&str], words: &str| {
        let found = run(&[args, &["front.tflite", "back.tflite"]].concat());
        assert!(found.starts_with("status: 2"), "{found}");
        assert!(found.contains(words), "{found}");
    };
    refused(
        &["--link", "front:0"],
        "link front:0: give it as MODEL:OUTPUT=MODEL:INPUT",
    );
    refused(
        &["--link", "front:0=nobody:0"],
        "no model is called nobody; there are front, back",
    );
    refused(
        &["--link", "front:x=back:0"],
        "\"front:x\" has no number behind the colon",
    );
    refused(
        &["--link", "front:0=back:7"],
        "link front:0=back:7: there is no input 7",
    );
    refused(
        &["--link", "back:0=front:0"],
        "a link leads to a later model",
    );
    let found = run(&["--share", "front.tflite"]);
    assert!(
        found.contains("models that share an arena are at least two"),
        "{found}"
    );
    let found = run(&["--share", "front.tflite", "gone.tflite"]);
    assert!(
        found.starts_with("status: 2") && found.contains("gone.tflite"),
        "{found}"
    );
    let found = run(&["--share", "front.tflite", "gone.tflite", "--format", "json"]);
    assert!(found.contains("\"error\""), "{found}");
}
