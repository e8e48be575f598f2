//! The random vision models themselves: they can be read and run, and their outputs vary.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

#[path = "common/draft.rs"]
mod draft;
#[path = "common/random.rs"]
mod random;
#[path = "common/vision.rs"]
mod vision;

use std::path::PathBuf;

use arenaplan::execute::{self, Feed, Setting};

/// Runs each model twice. Where `VISION_MODELS` names a folder, some large ones are written there, for the wheel.
#[test]
fn models_run_and_their_outputs_vary() {
    let (count, mut vary) = (300, 0);
    for seed in 0..count {
        let bytes = vision::model(seed);
        assert_eq!(bytes, vision::model(seed));
        vary += usize::from(varies(&bytes, seed));
    }
    assert!(vary >= 290, "outputs of {vary} of {count} models vary");
    let folder = std::env::var_os("VISION_MODELS").map(PathBuf::from);
    for seed in 0..100 {
        let bytes = vision::large(seed);
        match &folder {
            Some(folder) => {
                std::fs::write(folder.join(format!("{seed:04}.tflite")), bytes).unwrap()
            }
            None if seed < 10 => _ = varies(&bytes, seed),
            None => {}
        }
    }
}

/// Whether two inputs have different outputs.
fn varies(model: &[u8], seed: u64) -> bool {
    let setting = Setting {
        feed: Feed::Noise(seed),
        invokes: 2,
        ..Setting::default()
    };
    let mut seen = Vec::new();
    if let Err(e) = execute::run(model, &setting, |_, outputs| seen.push(outputs)) {
        panic!("seed {seed}: {e}");
    }
    seen[0] != seen[1]
}
