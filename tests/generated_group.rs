//! A crate as a user has it (`generated_crate/group_main.rs`) whose models share arenas: it is built, and the program computes what TensorFlow
//! Lite Micro does with each model alone.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;
#[path = "common/split.rs"]
mod split;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use arenaplan::build::{Builder, GeneratedGroup};
use common::{model, root};
use split::split;

const CARGO_TOML: &str = r#"
[package]
name = "group"
version = "0.1.0"
edition = "2018"

[workspace]

[features]
set_linked = []
too_small = []

[dependencies]
arenaplan-runtime = { path = "ROOT/runtime" }

[build-dependencies]
arenaplan = { path = "ROOT", default-features = false }

[profile.dev]
debug = false
"#;

/// A folder with the models in it.
fn place(folder: &Path) {
    let models = folder.join("models");
    fs::create_dir_all(&models).unwrap();
    let write =
        |name: &str, bytes: &[u8]| fs::write(models.join(format!("{name}.tflite")), bytes).unwrap();
    for name in ["streaming_int8", "dscnn_int8"] {
        write(name, &model(name));
    }
    let [front, back] = split(&model("dscnn_int8"), 4).unwrap();
    write("front", &front);
    write("back", &back);
}

fn cargo(folder: &Path, command: &[&str]) -> Output {
    let mut cargo = Command::new(env!("CARGO"));
    // What Cargo has said to this test is not for this crate.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_") && name != "CARGO_HOME" {
            cargo.env_remove(name);
        }
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("generated/target");
    cargo
        .args(command)
        .arg("--offline")
        .arg("--target-dir")
        .arg(target);
    cargo.current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_crate_with_models_that_share_arenas() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("group");
    fs::create_dir_all(folder.join("src")).unwrap();
    place(&folder);
    let manifest = CARGO_TOML.replace("ROOT", root("").to_str().unwrap().trim_end_matches('/'));
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    for (from, to) in [
        ("group_build.rs", "build.rs"),
        ("group_main.rs", "src/main.rs"),
    ] {
        fs::copy(root("tests/generated_crate").join(from), folder.join(to)).unwrap();
    }
    let built = cargo(&folder, &["build", "--quiet"]);
    assert!(built.status.success(), "{}", text(&built.stderr));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("generated/target/debug/group");
    let program = Command::new(target)
        .arg(root("testdata/runs.bin"))
        .output()
        .unwrap();
    assert!(program.status.success(), "{}", text(&program.stderr));
    assert_eq!(text(&program.stdout), "voice right\npipeline right\n");

    // What another model leaves there is set by nobody.
    let failed = cargo(&folder, &["check", "--quiet", "--features", "set_linked"]);
    assert!(!failed.status.success());
    assert!(
        text(&failed.stderr).contains("no method named `input_mut`"),
        "{}",
        text(&failed.stderr)
    );
    let failed = cargo(&folder, &["build", "--quiet", "--features", "too_small"]);
    assert!(!failed.status.success());
    assert!(
        text(&failed.stderr).contains("Voice needs an arena of "),
        "{}",
        text(&failed.stderr)
    );
}

fn builder() -> Builder {
    let builder = Builder::new()
        .model("models/streaming_int8.tflite")
        .named("vad");
    builder.model("models/dscnn_int8.tflite").named("kws")
}

fn temporary() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    place(folder.path());
    let path = folder.path().to_owned();
    (folder, path)
}

#[test]
fn sizes_and_links_of_groups() {
    let (_folder, root) = temporary();
    let groups = builder()
        .share("voice", &["kws", "vad"])
        .generate_groups(&root)
        .unwrap();
    let [
        GeneratedGroup {
            models,
            head_bytes,
            tail_bytes,
            rust,
            ..
        },
    ] = &groups[..]
    else {
        panic!("{}", groups.len());
    };
    assert_eq!(
        models.iter().map(|m| &m.name[..]).collect::<Vec<_>>(),
        ["kws", "vad"]
    );
    let heads = models.iter().map(|m| m.interface.head_bytes);
    assert_eq!(*head_bytes, heads.max().unwrap());
    assert_eq!(
        *tail_bytes,
        models.iter().map(|m| m.interface.tail_bytes).sum::<usize>()
    );
    assert!(rust.contains(&format!(
        "pub const ARENA_BYTES: usize = {};",
        head_bytes + tail_bytes
    )));
    // Models of a group have no code of their own, and no other model is forgotten.
    let all = builder()
        .model("models/front.tflite")
        .share("voice", &["kws", "vad"]);
    let alone = all.generate_all(&root).unwrap();
    assert_eq!(
        alone.iter().map(|g| &g.name[..]).collect::<Vec<_>>(),
        ["front"]
    );
    // By a link that is named, and by a cascade: the same.
    let halves = || {
        Builder::new()
            .model("models/front.tflite")
            .model("models/back.tflite")
    };
    let cascade = halves()
        .cascade("pipeline", &["front", "back"])
        .generate_groups(&root)
        .unwrap();
    let linked = halves()
        .share("pipeline", &["front", "back"])
        .link("front:0=back:0");
    assert_eq!(
        cascade[0].rust,
        linked.generate_groups(&root).unwrap()[0].rust
    );
    assert_eq!(cascade[0].rust.matches("fn input_mut").count(), 1);
    assert_eq!(cascade[0].rust.matches("fn output").count(), 2);
}

#[test]
fn groups_that_are_none_are_refused() {
    let (_folder, root) = temporary();
    let refused = |builder: Builder, parts: &[&str]| {
        let all = builder
            .generate_all(&root)
            .and_then(|_| builder.generate_groups(&root));
        let said = format!("{:?}", all.map(|_| ()).unwrap_err());
        for part in parts {
            assert!(said.contains(part), "no {part:?} in {said}");
        }
    };
    refused(
        builder().share("voice", &["vad", "dscnn"]),
        &["the group \"voice\": no model is called \"dscnn\"; there are vad, kws"],
    );
    refused(
        builder().share("voice", &["vad", "vad"]),
        &["\"vad\" is there already"],
    );
    refused(
        builder().share("a", &["vad"]).share("b", &["vad", "kws"]),
        &["in another group"],
    );
    refused(
        builder().share("voice", &[]),
        &["the group \"voice\": it has no models"],
    );
    refused(
        builder().share("kws", &["vad", "kws"]),
        &["\"kws\" is also what kws is called"],
    );
    refused(
        builder()
            .link("vad:0=kws:0")
            .share("voice", &["vad", "kws"]),
        &["the link \"vad:0=kws:0\" comes before any `.share` or `.cascade`"],
    );
    // The second would be written over the first.
    refused(
        builder().share("voice", &["vad"]).share("Voice", &["kws"]),
        &["\"Voice\" is also what voice is called"],
    );
    // `model_type` is what a method for `type` is called.
    refused(
        builder()
            .model("models/front.tflite")
            .named("type")
            .model("models/back.tflite")
            .named("model-type")
            .share("voice", &["type", "model-type"]),
        &["\"model-type\" gives the same name of Rust as another one"],
    );
    refused(
        builder().cascade("voice", &["vad", "kws"]),
        &["no output of vad fits an input of kws"],
    );
    refused(
        builder()
            .share("voice", &["vad", "kws"])
            .link("vad:0=kws:1"),
        &["link vad:0=kws:1: there is no input 1"],
    );
    refused(
        builder().share("voice", &["vad", "kws"]).arena_limit(2000),
        &[
            "vad, kws share an arena, \"voice\". With kws, which has the largest head, it needs an arena of ",
            "and the limit is 2,000",
            "must be there at one time",
        ],
    );
    refused(
        builder()
            .model("models/gone.tflite")
            .share("voice", &["vad", "gone"]),
        &["models/gone.tflite: cannot be read"],
    );
}
