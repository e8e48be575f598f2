//! The command line: see [`arenaplan::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    arenaplan::cli::run(std::env::args_os())
}
