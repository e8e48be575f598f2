//! MiniMalloc, measured by its own clock.

use std::path::Path;
use std::process::Command;

use arenaplan_benches::Named;

use super::measure::feed;

/// The most time that it is given, in seconds.
pub(crate) const MOST: u64 = 60;

/// The seconds in which it finds a placement, or `None` if it does not. They do not include reading the file.
pub(crate) fn run(program: &Path, problem: &Named, capacity: u64) -> Result<Option<f64>, String> {
    let wrong = |e: &dyn std::fmt::Display| format!("{}: {e}", program.display());
    let mut command = Command::new(program);
    command
        .arg(format!("--capacity={capacity}"))
        .arg(format!("--timeout={MOST}s"))
        .args(["--input=/dev/stdin", "--output=/dev/null"]);
    let output = feed(&mut command, problem).map_err(|e| wrong(&e))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let Some(seconds) = elapsed(&said) else {
        return Err(wrong(&format!("it does not tell its time, but {said:?}")));
    };
    Ok(output.status.success().then_some(seconds))
}

/// `0.397` out of a line `Elapsed time 0.397s`.
fn elapsed(said: &str) -> Option<f64> {
    let line = said.lines().find_map(|l| l.strip_prefix("Elapsed time "))?;
    line.strip_suffix('s')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_time() {
        assert_eq!(elapsed("Warning\nElapsed time 0.397s\n"), Some(0.397));
        assert_eq!(elapsed("Opening file x failed.\n"), None);
    }
}
