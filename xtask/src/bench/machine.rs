//! What the page says about where and when it was made.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use arenaplan_benches::VERSION;

/// The processor with its cores, and the operating system.
pub(crate) fn machine() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let cores = match cores {
        1 => "1 core".to_owned(),
        n => format!("{n} cores"),
    };
    let arch = std::env::consts::ARCH;
    format!("{}, {cores}, {arch}, {}", processor(), system())
}

fn processor() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|l| l.strip_prefix("model name"));
    let model = model.map(|l| l.trim_start_matches([' ', '\t', ':']).to_owned());
    model
        .or_else(|| say("sysctl", &["-n", "machdep.cpu.brand_string"]))
        .unwrap_or_else(|| "unknown processor".into())
}

fn system() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|l| l.strip_prefix("PRETTY_NAME="));
    let name = name.map(|name| name.trim_matches('"'));
    name.unwrap_or(std::env::consts::OS).to_owned()
}

/// The compiler, which is the one that built this program when `cargo xtask bench` started it.
pub(crate) fn compiler() -> String {
    let version = say("rustc", &["--version"]);
    version.unwrap_or_else(|| "unknown compiler".into())
}

/// Today, in UTC.
pub(crate) fn date() -> String {
    let date = say("date", &["-u", "+%Y-%m-%d"]);
    date.unwrap_or_else(|| "an unknown day".into())
}

/// The version, and the commit where the folder has one.
pub(crate) fn version(root: &Path) -> String {
    let mut text = VERSION.to_owned();
    let root = root.to_string_lossy();
    let git = |args: &[&str]| say("git", &[&["-C", &root], args].concat());
    if let Some(commit) = git(&["rev-parse", "--short=10", "HEAD"]) {
        text.push_str(&format!(", commit {commit}"));
        let is_changed = git(&["status", "--porcelain", "--", ".", ":!doc"]);
        if is_changed.is_some_and(|changes| !changes.is_empty()) {
            text.push_str(" with changes");
        }
    }
    text
}

/// What a program prints, if it is there and all goes well.
fn say(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}
