//! Where the test models are, and small helpers.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use std::fs;
use std::path::{Path, PathBuf};

use arenaplan::graph::{Graph, TensorId};
use arenaplan::lifetimes::Lifetimes;
use arenaplan::scratch::Scratch;
use arenaplan::stored::{Setting, StoredPlan, Verdict};
use arenaplan::target::Target;
use arenaplan::tflm;

/// A model file with its name.
pub struct Sample {
    pub name: String,
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

/// A folder below the project's root.
pub fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs the program in `folder` and shows what it said.
#[cfg(feature = "cli")]
pub fn run(folder: &Path, args: &[&str]) -> String {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_arenaplan"))
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "status: {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().unwrap(),
        text(&output.stdout),
        text(&output.stderr)
    )
}

/// All models of a folder, sorted by name.
pub fn folder(path: &Path) -> Vec<Sample> {
    let mut paths: Vec<PathBuf> = fs::read_dir(path)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "tflite"))
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| Sample {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            bytes: fs::read(&path).unwrap(),
            path,
        })
        .collect()
}

/// The project's own models, all of which can be planned.
pub fn models() -> Vec<Sample> {
    let models = folder(&root("testdata/models"));
    assert!(models.len() >= 15, "testdata/models is incomplete");
    models
}

/// One of the project's own models.
pub fn model(name: &str) -> Vec<u8> {
    fs::read(root("testdata/models").join(format!("{name}.tflite"))).unwrap()
}

/// Files that are wrong in one way each.
pub fn malformed() -> Vec<Sample> {
    let samples = folder(&root("testdata/malformed"));
    assert!(!samples.is_empty());
    samples
}

/// The public models beside the project, where that folder is.
pub fn shared_models() -> Option<Vec<Sample>> {
    let path = root("../shared/models");
    if path.is_dir() {
        Some(folder(&path))
    } else {
        println!("not run: {} is not here", path.display());
        None
    }
}

/// The verdict on a plan for a model, with the scratch memory of the reference kernels.
pub fn judged(graph: &Graph<'_>, plan: StoredPlan) -> Verdict {
    let lifetimes = Lifetimes::of(graph).unwrap();
    let setting = Setting {
        lifetimes: &lifetimes,
        scratch: &Scratch::reference(graph),
        align: 16,
        keep: &[],
        kernels: Target::Tflm,
    };
    plan.judged(graph, &setting)
}

/// Where TFLM itself puts the tensors of a model: tensor, offset, bytes.
pub fn tflm_places(graph: &Graph<'_>) -> Vec<(TensorId, u64, u64)> {
    let lifetimes = Lifetimes::of(graph).unwrap();
    let simulation = tflm::simulate(graph, &lifetimes, &Scratch::reference(graph), None).unwrap();
    simulation
        .tensors
        .iter()
        .map(|p| (p.what, p.offset, p.bytes))
        .collect()
}

/// Random numbers that are the same everywhere (xorshift64*, Vigna 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() >> 33) as usize % end
    }
}
