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

/// Runs each model twice. Where `VISION_MODELS` names a folder, the models are written there, for the wheel.
#[test]
fn models_run_and_their_outputs_vary() {
    let folder = std::env::var_os("VISION_MODELS").map(PathBuf::from);
    let (count, mut vary) = (300, 0);
    for seed in 0..count {
        let bytes = vision::model(seed);
        if let Some(folder) = &folder {
            std::fs::write(folder.join(format!("{seed:04}.tflite")), &bytes).unwrap();
        }
        assert_eq!(bytes, vision::model(seed));
        let setting = Setting {
            feed: Feed::Noise(seed),
            invokes: 2,
            ..Setting::default()
        };
        let mut seen = Vec::new();
        if let Err(e) = execute::run(&bytes, &setting, |_, outputs| seen.push(outputs)) {
            panic!("seed {seed}: {e}");
        }
        vary += usize::from(seen[0] != seen[1]);
    }
    assert!(vary >= 290, "outputs of {vary} of {count} models vary");
}
