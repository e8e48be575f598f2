//! Chores of this repository, run as `cargo xtask <command>`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod compare;
mod schema;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

commands:
  schema           write schema/src/generated.rs from schema/tflite.fbs
  schema --check   fail if the committed file is not what that would write
  bench [OPTION]   measure the planners and write doc/BENCHMARKS.md;
                   --help lists the options
  compare [FOLDER] plan the models of a folder, ../shared/models unless told
                   otherwise, for several targets and write doc/COMPARISON.md
  compare --check [FOLDER]
                   fail if the committed page is not what that would write

environment:
  FLATC            the flatc to use; without it, one is built from xtask/flatc
                   (once, needs cmake and a C++ compiler)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match args.as_slice() {
        ["schema"] => schema::run(&root(), schema::Mode::Write),
        ["schema", "--check"] => schema::run(&root(), schema::Mode::Check),
        ["bench", options @ ..] => bench::run(options),
        ["compare"] => compare::run(compare::FOLDER, compare::Mode::Write),
        ["compare", "--check"] => compare::run(compare::FOLDER, compare::Mode::Check),
        ["compare", "--check", folder] => compare::run(folder, compare::Mode::Check),
        ["compare", folder] if !folder.starts_with('-') => {
            compare::run(folder, compare::Mode::Write)
        }
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(message) => {
            println!("{message}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the workspace.
fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}
