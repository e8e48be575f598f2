//! The compilers for C and C++ of the machine.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::path::Path;
use std::process::Command;

/// Whether there is a compiler; where it must be there (the environment says `CI`), it is a failure that there is none.
pub(crate) fn is_there(compiler: &str) -> bool {
    let found = Command::new(compiler).arg("--version").output();
    if found.is_ok_and(|o| o.status.success()) {
        return true;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "{compiler} is not here: install g++, this test compiles what is exported"
    );
    println!("left out: {compiler} is not here");
    false
}

/// Compiles `source` in `folder` with all warnings as errors and the headers that stand in for TFLM's.
pub(crate) fn compile(folder: &Path, compiler: &str, standard: &str, source: &str, more: &[&str]) {
    let mut command = Command::new(compiler);
    command.args([
        &format!("-std={standard}"),
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
    ]);
    // TFLM's classes have virtual functions and may not be deleted, as in its own builds.
    command.arg("-I").arg(super::root("tests/tflm_headers"));
    let output = command
        .args(more)
        .arg(source)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{compiler} -std={standard} {source}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Compiles a program, runs it and gives what it printed.
pub(crate) fn run(folder: &Path, compiler: &str, standard: &str, source: &str) -> String {
    compile(folder, compiler, standard, source, &["-o", "program"]);
    let output = Command::new(folder.join("program")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{source}: {:?}\n{text}",
        output.status
    );
    text
}
