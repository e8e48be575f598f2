//! `cargo xtask bench`: measures the planners and writes doc/BENCHMARKS.md.

mod machine;
mod measure;
mod minimalloc;
mod page;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use arenaplan_benches::{MINIMALLOC, root};

const USAGE: &str = "\
usage: cargo xtask bench [OPTION...]

Measures the planners and writes a page with tables, by default doc/BENCHMARKS.md. Each measurement is a process of
its own, one after the other.

options:
  --seconds N           the most time for each of MiniMalloc's problems when it is minimised [60]
  --runs N              how often the time for a given capacity is taken; the median counts [5]
  --problems DIR        MiniMalloc's problems, files NAME.CAPACITY.csv [../shared/problems]; without them their
                        tables are left out
  --minimalloc PROGRAM  MiniMalloc, to be measured in the same run
  --out FILE            the page";

/// What is asked for.
struct Options {
    seconds: u64,
    runs: usize,
    problems: PathBuf,
    minimalloc: Option<PathBuf>,
    out: PathBuf,
}

impl Options {
    fn parse(args: &[&str]) -> Result<Self, String> {
        let mut options = Self {
            seconds: 60,
            runs: 5,
            problems: root().join(MINIMALLOC),
            minimalloc: None,
            out: root().join("doc/BENCHMARKS.md"),
        };
        let mut args = args.iter().copied();
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or(format!("{flag} needs a value"));
            let number = |text: &str| match text.parse() {
                Ok(n) if n > 0 => Ok(n),
                _ => Err(format!("{flag} needs a number above 0, not {text:?}")),
            };
            match flag {
                "--seconds" => options.seconds = number(value()?)?,
                "--runs" => options.runs = number(value()?)? as usize,
                "--problems" => options.problems = value()?.into(),
                "--minimalloc" => options.minimalloc = Some(value()?.into()),
                "--out" => options.out = value()?.into(),
                _ => return Err(format!("{flag:?} is unknown\n{USAGE}")),
            }
        }
        Ok(options)
    }

    /// The command that was given, without the folders of this machine.
    fn command(&self) -> String {
        let mut text = format!(
            "cargo xtask bench --seconds {} --runs {}",
            self.seconds, self.runs
        );
        if let Some(name) = self.minimalloc.as_deref().and_then(Path::file_name) {
            text.push_str(&format!(" --minimalloc {}", name.display()));
        }
        text
    }

    fn time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

/// What the command does; the `Ok` text is for standard output.
pub(crate) fn run(args: &[&str]) -> Result<String, String> {
    match args {
        ["--help" | "-h"] => return Ok(USAGE.to_owned()),
        [measure::COMMAND, args @ ..] => return measure::child(args),
        _ => {}
    }
    let options = Options::parse(args)?;
    // What is measured must be built as it is for users.
    if cfg!(debug_assertions) {
        return again(args);
    }
    write(&options)
}

/// The same command with optimisation.
fn again(args: &[&str]) -> Result<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "xtask"])
        .arg("--manifest-path")
        .arg(root().join("Cargo.toml"))
        .args(["--", "bench"])
        .args(args)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("cargo: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()),
        false => Err("no page was written".into()),
    }
}

/// Makes the page and puts it in its place as a whole.
fn write(options: &Options) -> Result<String, String> {
    let text = tables::page(options)?;
    let new = options.out.with_extension("md.new");
    fs::write(&new, text).map_err(|e| format!("{}: {e}", new.display()))?;
    fs::rename(&new, &options.out).map_err(|e| format!("{}: {e}", options.out.display()))?;
    Ok(format!("{} written", options.out.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_on_the_page_leaves_folders_out() {
        let args = ["--minimalloc", "/a/b/minimalloc", "--runs", "3"];
        let expected = "cargo xtask bench --seconds 60 --runs 3 --minimalloc minimalloc";
        assert_eq!(
            Options::parse(&args).map(|o| o.command()),
            Ok(expected.to_owned())
        );
    }

    #[test]
    fn wrong_options() {
        for args in [
            &["--runs", "0"][..],
            &["--runs"],
            &["--fast"],
            &["--seconds", "x"],
        ] {
            assert!(Options::parse(args).is_err(), "{args:?}");
        }
    }
}
