//! Runs the vendored `flatc` with the arguments given, and ends with its exit code.

use std::env;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let status = Command::new(flatc_fork::flatc())
        .args(env::args_os().skip(1))
        .status();
    match status {
        Ok(status) => ExitCode::from(
            status
                .code()
                .and_then(|c| u8::try_from(c).ok())
                .unwrap_or(1),
        ),
        Err(error) => {
            eprintln!("{}: {error}", flatc_fork::flatc().display());
            ExitCode::FAILURE
        }
    }
}
