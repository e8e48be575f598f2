//! One problem and planner, in a process of its own, so that the peak of its memory is that of nothing else.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use arenaplan_benches::Named;
use arenaplan_solver::{Limits, Planner, Stop, csv};

/// The argument that makes a process measure. The problem is on its standard input.
pub(crate) const COMMAND: &str = "measure";

/// What to do with a problem.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) planner: Planner,
    /// Bytes. `None`: as low as possible.
    pub(crate) capacity: Option<u64>,
    /// The most time. `None`: the planner's own limit.
    pub(crate) time: Option<Duration>,
}

impl Task {
    pub(crate) fn new(planner: Planner) -> Self {
        Self {
            planner,
            capacity: None,
            time: None,
        }
    }
}

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figures {
    pub(crate) buffers: u64,
    pub(crate) conflicts: u64,
    pub(crate) height: u64,
    pub(crate) bound: u64,
    pub(crate) nodes: u64,
    /// From the rows to the offsets: reading the table, its conflicts, the search, the check.
    pub(crate) seconds: f64,
    /// `none`, `work` or `time`: the limit that ended the search.
    pub(crate) stopped: String,
    /// The most memory of the process in bytes; 0 where the system does not tell.
    pub(crate) peak: u64,
}

impl Figures {
    pub(crate) fn is_optimal(&self) -> bool {
        self.height == self.bound
    }

    fn to_line(&self) -> String {
        format!(
            "buffers={} conflicts={} height={} bound={} nodes={} seconds={} stopped={} peak={}",
            self.buffers,
            self.conflicts,
            self.height,
            self.bound,
            self.nodes,
            self.seconds,
            self.stopped,
            self.peak
        )
    }

    fn from_line(line: &str) -> Option<Self> {
        let pairs = line.split_whitespace().map(|pair| pair.split_once('='));
        let values: BTreeMap<&str, &str> = pairs.collect::<Option<_>>()?;
        let number = |key| values.get(key)?.parse().ok();
        Some(Self {
            buffers: number("buffers")?,
            conflicts: number("conflicts")?,
            height: number("height")?,
            bound: number("bound")?,
            nodes: number("nodes")?,
            seconds: values.get("seconds")?.parse().ok()?,
            stopped: (*values.get("stopped")?).to_owned(),
            peak: number("peak")?,
        })
    }
}

/// Runs a program that reads a problem, all of it before it says anything, and gives what it says.
pub(crate) fn feed(command: &mut Command, problem: &Named) -> io::Result<Output> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(problem.text.as_bytes())?;
    }
    child.wait_with_output()
}

/// Measures in another process.
pub(crate) fn run(problem: &Named, task: Task) -> Result<Figures, String> {
    let wrong = |e: &dyn std::fmt::Display| format!("{}, {}: {e}", problem.name, task.planner);
    let program = std::env::current_exe().map_err(|e| wrong(&e))?;
    let mut command = Command::new(program);
    command
        .args(["bench", COMMAND])
        .arg(task.planner.name())
        .arg(task.capacity.map_or("-".into(), |n| n.to_string()))
        .arg(
            task.time
                .map_or("-".into(), |t| t.as_secs_f64().to_string()),
        );
    let output = feed(&mut command, problem).map_err(|e| wrong(&e))?;
    let said = String::from_utf8_lossy(&output.stdout);
    match Figures::from_line(&said) {
        Some(figures) if output.status.success() => Ok(figures),
        _ => Err(wrong(&String::from_utf8_lossy(&output.stderr).trim_end())),
    }
}

/// What that process does: `PLANNER CAPACITY SECONDS`, the last two may be `-`.
pub(crate) fn child(args: &[&str]) -> Result<String, String> {
    let [planner, capacity, seconds] = args else {
        return Err(format!("{COMMAND} takes PLANNER CAPACITY SECONDS"));
    };
    let planner: Planner = planner.parse().map_err(|e| format!("{e}"))?;
    let capacity: Option<u64> = capacity.parse().ok();
    let mut limits = Limits::default();
    limits.time = seconds.parse().ok().map(Duration::from_secs_f64);
    let mut text = String::new();
    let read = io::stdin().read_to_string(&mut text);
    read.map_err(|e| e.to_string())?;

    let start = Instant::now();
    let table = csv::parse(&text).map_err(|e| e.to_string())?;
    let solution = table.solve(planner, capacity, &limits);
    let solution = solution.map_err(|e| e.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    let figures = Figures {
        buffers: table.problem.len() as u64,
        conflicts: table.problem.conflict_count() as u64,
        height: solution.placement.height,
        bound: solution.lower_bound,
        nodes: solution.nodes,
        seconds,
        stopped: match solution.stopped {
            None => "none".into(),
            Some(Stop::Time) => "time".into(),
            Some(_) => "work".into(),
        },
        peak: peak().unwrap_or(0),
    };
    Ok(figures.to_line())
}

/// The most memory that this process had, in bytes, where the system tells.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_pass_from_process_to_process() {
        let figures = Figures {
            buffers: 3,
            conflicts: 2,
            height: 1000,
            bound: 900,
            nodes: 7,
            seconds: 0.125,
            stopped: "work".into(),
            peak: 4096,
        };
        assert_eq!(Figures::from_line(&figures.to_line()), Some(figures));
        assert_eq!(Figures::from_line("error"), None);
        assert_eq!(Figures::from_line("buffers=3"), None);
    }
}
