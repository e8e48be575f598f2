//! Code of models that a build script no longer compiles: Cargo keeps `OUT_DIR`, and `include_model!` would go on with the old model
//! without a word.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::{Error, write};

/// What the calls of this build script have written so far: a set of names for each.
static WRITTEN: Mutex<Vec<BTreeSet<String>>> = Mutex::new(Vec::new());

/// Notes in `out` what this call has written there, and replaces the code of names that the same call wrote in an earlier run of
/// the build script by an error of the compiler.
pub(super) fn mark(out: &Path, names: BTreeSet<String>) -> Result<(), Error> {
    let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    written.push(names);
    mark_last(out, &written)
}

/// The same for the last of the calls.
fn mark_last(out: &Path, calls: &[BTreeSet<String>]) -> Result<(), Error> {
    let list = out.join(format!("arenaplan-{}.txt", calls.len()));
    let known = fs::read_to_string(&list).unwrap_or_default();
    let is_there = |name: &str| calls.iter().any(|names| names.contains(name));
    for name in known.lines().filter(|name| !is_there(name)) {
        let there: Vec<_> = calls.iter().flatten().map(String::as_str).collect();
        let reason = format!(
            "the build script no longer compiles what is called {name:?}; there is {}",
            there.join(", ")
        );
        let code = format!("::core::compile_error!({reason:?});\n");
        write(&out.join(format!("{name}.rs")), code.as_bytes())?;
    }
    let names = calls.last().into_iter().flatten();
    let lines: String = names.map(|name| format!("{name}\n")).collect();
    write(&list, lines.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_is_no_longer_written_does_not_compile() {
        let folder = tempfile::tempdir().unwrap();
        let run = |calls: &[&[&str]]| {
            let calls: Vec<BTreeSet<String>> = (calls.iter())
                .map(|names| names.iter().map(|&n| n.to_owned()).collect())
                .collect();
            for call in 1..=calls.len() {
                for name in &calls[call - 1] {
                    fs::write(folder.path().join(format!("{name}.rs")), name).unwrap();
                }
                mark_last(folder.path(), &calls[..call]).unwrap();
            }
        };
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        run(&[&["kws"], &["vad", "front"]]);
        assert_eq!(
            [read("kws.rs"), read("vad.rs"), read("front.rs")],
            ["kws", "vad", "front"]
        );
        // Another name, one that another call has now, and one that is gone.
        run(&[&["kws_v2", "vad"], &["late"]]);
        assert_eq!(
            read("kws.rs"),
            "::core::compile_error!(\"the build script no longer compiles what is called \\\"kws\\\"; there is kws_v2, vad\");\n"
        );
        assert!(read("front.rs").starts_with("::core::compile_error!("));
        assert_eq!(
            [read("kws_v2.rs"), read("vad.rs"), read("late.rs")],
            ["kws_v2", "vad", "late"]
        );
    }
}
