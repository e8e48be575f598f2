//! A crate as a user has it (`generated_crate`): its build script compiles models, Cargo compiles what was generated, and the
//! program computes what TensorFlow Lite Micro does. It is built again when a model changes, and only then.
//!
//! What Cargo builds stays in its folder for tests, so that only the first time takes long.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

use arenaplan::build::Builder;
use common::{model, root};

const CARGO_TOML: &str = r#"
[package]
name = "user"
version = "0.1.0"
edition = "2024"

[workspace]

[features]
too_small = []

[dependencies]
arenaplan-runtime = { path = "ROOT/runtime" }

[build-dependencies]
arenaplan = { path = "ROOT", default-features = false }

[profile.dev]
debug = false
"#;

/// Files of the crate's models, by those of `testdata/models`.
const MODELS: &[(&str, &str)] = &[
    ("dscnn_int8", "dscnn_int8"),
    ("two_inputs_int8", "two_inputs_int8"),
    ("reductions_int8", "reductions_int8"),
    ("autoencoder_int16x8", "autoencoder_int16x8"),
    ("conv_uint8_io", "conv_uint8_io"),
    ("streaming_float32", "streaming_float32"),
    ("3d größe-v2", "attention_float32"),
    ("svdf_int8", "svdf_int8"),
    ("striped", "conv_int16x8"),
    ("changing", "conv_int8"),
];

struct Crate {
    folder: PathBuf,
}

impl Crate {
    fn new() -> Self {
        let this = Self {
            folder: Path::new(env!("CARGO_TARGET_TMPDIR")).join("generated"),
        };
        fs::create_dir_all(this.folder.join("src")).unwrap();
        fs::create_dir_all(this.folder.join("models")).unwrap();
        let manifest = CARGO_TOML.replace("ROOT", root("").to_str().unwrap().trim_end_matches('/'));
        let source = |name: &str| fs::read(root("tests/generated_crate").join(name)).unwrap();
        this.write("Cargo.toml", manifest.as_bytes());
        this.write("build.rs", &source("build.rs"));
        this.write("src/main.rs", &source("src/main.rs"));
        // The same versions as here.
        this.write("Cargo.lock", &fs::read(root("Cargo.lock")).unwrap());
        for (name, file) in MODELS {
            this.write(&format!("models/{name}.tflite"), &model(file));
        }
        this
    }

    fn write(&self, path: &str, content: &[u8]) {
        fs::write(self.folder.join(path), content).unwrap();
    }

    fn cargo(&self, command: &[&str]) -> Output {
        let mut cargo = Command::new(env!("CARGO"));
        // What Cargo has said to this test is not for this crate.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CARGO_") && name != "CARGO_HOME" {
                cargo.env_remove(name);
            }
        }
        let target = self.folder.join("target");
        cargo
            .args(command)
            .arg("--offline")
            .arg("--target-dir")
            .arg(target);
        cargo.current_dir(&self.folder).output().unwrap()
    }

    /// Removes what was built of the crate itself.
    fn clean(&self) {
        let cleaned = self.cargo(&["clean", "--quiet", "--package", "user"]);
        assert!(cleaned.status.success(), "{}", text(&cleaned.stderr));
    }

    /// What the program prints.
    fn run(&self) -> String {
        let built = self.cargo(&["build", "--quiet"]);
        assert!(built.status.success(), "{}", text(&built.stderr));
        let program = Command::new(self.folder.join("target/debug/user"))
            .arg(root("testdata/runs.bin"))
            .output()
            .unwrap();
        assert!(program.status.success(), "{}", text(&program.stderr));
        text(&program.stdout)
    }

    /// Whether Cargo finds nothing to do for the crate.
    fn is_fresh(&self) -> bool {
        let built = self.cargo(&["build", "--verbose"]);
        let said = text(&built.stderr);
        assert!(built.status.success(), "{said}");
        said.contains("Fresh user v0.1.0")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The generated files: content, and when it was written.
fn files(folder: &str) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| {
        let changed = fs::metadata(&path).unwrap().modified().unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, (fs::read(&path).unwrap(), changed))
    };
    entries.map(of).collect()
}

/// The code that has `part` in it, among the documentation of the crate.
fn example(part: &str) -> String {
    let source = fs::read_to_string(root("src/lib.rs")).unwrap();
    let doc: Vec<&str> = source
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    let text = doc.join("\n");
    let block = text.split("\n```").find(|block| block.contains(part));
    let (_, code) = block.unwrap().split_once('\n').unwrap();
    code.to_owned()
}

/// What the documentation of the crate says, word by word.
fn tutorial(user: &Crate) {
    user.write("build.rs", example("build::compile(").as_bytes());
    user.write("src/main.rs", example("include_model!(").as_bytes());
    user.write("models/kws.tflite", &model("dscnn_int8"));
    // With all ones, in the wheel.
    assert_eq!(user.run(), "[127, 27, -127, 47]\n");
    // What the build script compiled before is not taken for something that it still does.
    let old = "arenaplan_runtime::include_model!(\"dscnn_int8\");\nfn main() {}\n";
    user.write("src/main.rs", old.as_bytes());
    let built = user.cargo(&["build"]);
    assert!(!built.status.success());
    let said = text(&built.stderr);
    assert!(
        said.contains("no longer compiles what is called \"dscnn_int8\"; there is kws"),
        "{said}"
    );
}

#[test]
fn a_crate_with_a_build_script() {
    let user = Crate::new();
    user.clean();
    let said = user.run();
    let lines: Vec<&str> = said.lines().collect();
    let (verdicts, rest) = lines.split_at(9);
    assert!(
        verdicts.iter().all(|line| line.ends_with(" right")),
        "{said}"
    );
    let changing = |name| {
        let found = Builder::new().generate("changing", &model(name)).unwrap();
        format!(
            "changing {} {}",
            found.planned.file.len(),
            found.interface.arena_bytes()
        )
    };
    assert_eq!(rest[0], changing("conv_int8"));
    let out = rest[1].strip_prefix("out ").unwrap();

    // Nothing changed, or nothing that matters.
    assert!(user.is_fresh());
    let before = files(out);
    // And a list of names for each call.
    assert_eq!(before.len(), 2 * MODELS.len() + 4, "{:?}", before.keys());
    user.write("models/other.tflite", b"");
    user.write(
        "src/notes.txt",
        format!("{:?}", SystemTime::now()).as_bytes(),
    );
    assert!(user.is_fresh());

    // Two builds give the same bytes.
    user.clean();
    user.run();
    let again = files(out);
    let content = |files: &BTreeMap<String, (Vec<u8>, SystemTime)>| -> Vec<_> {
        files
            .iter()
            .map(|(name, (bytes, _))| (name.clone(), bytes.clone()))
            .collect()
    };
    assert!(content(&before) == content(&again));

    // Another model: its files are written, and no others.
    user.write("models/changing.tflite", &model("diamond_c_int8"));
    assert!(!user.is_fresh());
    assert!(user.run().contains(&changing("diamond_c_int8")));
    for (name, (bytes, changed)) in files(out) {
        let (bytes_before, changed_before) = &again[&name];
        let is_changing = name.starts_with("changing.");
        assert_eq!(bytes != *bytes_before, is_changing, "{name}");
        assert_eq!(changed != *changed_before, is_changing, "{name}");
    }

    // What is no model fails the build, with words, and a right one mends it.
    user.write("models/changing.tflite", b"no model");
    let failed = user.cargo(&["build"]);
    let said = text(&failed.stderr);
    assert!(!failed.status.success());
    assert!(
        said.contains("Error: models/changing.tflite: is no model that can be read"),
        "{said}"
    );
    user.write("models/changing.tflite", &model("conv_int8"));
    assert!(user.run().contains(&changing("conv_int8")));

    // An arena that is too small does, too.
    let failed = user.cargo(&["build", "--features", "too_small"]);
    let said = text(&failed.stderr);
    assert!(!failed.status.success());
    assert!(
        said.contains("DscnnInt8 needs an arena of ")
            && said.contains("see DscnnInt8::ARENA_BYTES"),
        "{said}"
    );

    tutorial(&user);
}
