//! The command line. Results go to stdout, progress and warnings to stderr.
//!
//! Exit status: 0 done, 1 the answer is no (over a limit, a plan wrong or missing, a problem that does not fit), 2 error
//! (unreadable, unsupported, bad flags). With several inputs all are tried, and the worst status is the exit status.

mod args;
mod compare;
mod explain_json;
mod explain_text;
mod export;
mod inspect;
mod json;
mod models;
mod npy;
mod output;
mod plan;
mod plan_text;
mod run;
mod share;
mod solve;
mod strip;
mod text;
mod verify;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use json::Failure;
use models::{Found, Source};

/// How a command ended; the worse of two is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    Done,
    No,
    Failed,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        ExitCode::from(status as u8)
    }
}

/// Runs the program with `args`, the first of which is its name.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version are results, everything else is a wrong call. clap prints each where it belongs.
            let status = if e.use_stderr() {
                Status::Failed
            } else {
                Status::Done
            };
            return match e.print() {
                Ok(()) => status.into(),
                Err(_) => Status::Done.into(),
            };
        }
    };
    let result = match cli.command {
        Command::Plan(args) => plan::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Strip(args) => strip::run(&args),
        Command::Solve(args) => solve::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Export(args) => export::run(&args),
    };
    match result {
        Ok(status) => status.into(),
        Err(e) if is_broken_pipe(&e) => Status::Done.into(),
        Err(e) => {
            complain(&format!("error: {e:#}"));
            Status::Failed.into()
        }
    }
}

/// Whether the reader of our output went away, which is its right.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|e| e.downcast_ref::<io::Error>())
        .any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

/// A line on stderr. That it cannot be written is nothing to stop for.
fn complain(line: &str) {
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr, "{line}");
}

/// Writes a result to stdout.
fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Runs `work` on each input. A failure is reported with its file and does not stop the others; only a closed pipe does.
fn each<T>(
    found: &Found,
    mut work: impl FnMut(usize, &Source) -> anyhow::Result<T>,
) -> anyhow::Result<(Vec<Result<T, Failure>>, Status)> {
    let mut results = Vec::new();
    let fail = |name: &str, e: &anyhow::Error| {
        complain(&format!("error: {}: {e:#}", text::shown(name)));
        Err(Failure {
            model: name.to_owned(),
            error: format!("{e:#}"),
        })
    };
    for (name, e) in &found.failures {
        results.push(fail(name, e));
    }
    let progress = Progress::new(found.sources.len());
    for (i, source) in found.sources.iter().enumerate() {
        progress.step(i, source);
        let result = work(i, source);
        progress.clear();
        results.push(match result {
            Ok(value) => Ok(value),
            Err(e) if is_broken_pipe(&e) => return Err(e),
            Err(e) => fail(&source.path_text(), &e),
        });
    }
    let status = if results.iter().any(Result::is_err) {
        Status::Failed
    } else {
        Status::Done
    };
    Ok((results, status))
}

/// A line on stderr that says how far a long run is, when someone is looking.
struct Progress {
    total: usize,
    visible: bool,
}

impl Progress {
    fn new(total: usize) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        Self {
            total,
            visible: total > 1 && io::stderr().is_terminal() && !dumb,
        }
    }

    fn step(&self, done: usize, source: &Source) {
        if self.visible {
            let name = source
                .relative
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let name = text::shortened(&text::shown(&name), 40);
            let mut stderr = io::stderr().lock();
            let _ = write!(stderr, "\r\x1b[K[{}/{}] {name}", done + 1, self.total);
            let _ = stderr.flush();
        }
    }

    fn clear(&self) {
        if self.visible {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
