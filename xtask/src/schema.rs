//! `cargo xtask schema`: the generated reader of the format.
//!
//! The code flatc writes calls into the crate `flatbuffers`, and a pair of different versions may
//! compile and still not fit. So the version in `Cargo.lock` decides, and flatc must be of the same.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

const SCHEMA: &str = "schema/tflite.fbs";
const GENERATED: &str = "schema/src/generated.rs";

/// What to do with the code that flatc made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Put it in its place.
    Write,
    /// Only compare it with what is there.
    Check,
}

/// Generates, then writes or compares; the `Ok` text says what was found or done.
pub(crate) fn run(root: &Path, mode: Mode) -> Result<String, String> {
    let lock = read(&root.join("Cargo.lock"))?;
    let wanted = locked_version(&lock, "flatbuffers")
        .ok_or("Cargo.lock has no package `flatbuffers`: nothing says which flatc fits")?;
    let flatc = Flatc::find(root);
    let found = flatc.version()?;
    if found != wanted {
        return Err(format!(
            "flatc is {found}, but the crate `flatbuffers` in Cargo.lock is {wanted}; \
             set FLATC to a flatc {wanted}, or change `flatc-fork` in xtask/flatc/Cargo.toml"
        ));
    }

    let fresh = generate(root, &flatc, wanted)?;
    let path = root.join(GENERATED);
    let old = fs::read_to_string(&path)
        .unwrap_or_default()
        .replace("\r\n", "\n");
    match (mode, first_difference(&old, &fresh)) {
        (_, None) => Ok(format!("{GENERATED} is up to date")),
        (Mode::Check, Some(line)) => Err(format!(
            "{GENERATED} is not what {SCHEMA} generates (first difference in line {line}); \
             run `cargo xtask schema` and commit the result"
        )),
        (Mode::Write, Some(_)) => {
            let new = path.with_extension("rs.new");
            fs::write(&new, &fresh).map_err(|e| format!("{}: {e}", new.display()))?;
            fs::rename(&new, &path).map_err(|e| format!("{}: {e}", path.display()))?;
            Ok(format!(
                "{GENERATED} written ({} lines)",
                fresh.lines().count()
            ))
        }
    }
}

/// The text of the generated file.
fn generate(root: &Path, flatc: &Flatc, version: &str) -> Result<String, String> {
    let out = target_dir(root).join("xtask").join("schema");
    let code = out.join("tflite_generated.rs");
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    if code.exists() {
        fs::remove_file(&code).map_err(|e| format!("{}: {e}", code.display()))?;
    }
    flatc.output(&[
        "--rust".into(),
        "-o".into(),
        out.into_os_string(),
        SCHEMA.into(),
    ])?;
    let code = lenient_unions(&read(&code)?.replace("\r\n", "\n"))?;
    Ok(format!(
        "// By `cargo xtask schema` from `{SCHEMA}`, with flatc {version}.\n\
         // One change: unions are verified by `verify::VisitUnion`, which says why.\n{code}"
    ))
}

/// The code with the union verification of `schema/src/verify.rs` in place of the crate's.
fn lenient_unions(code: &str) -> Result<String, String> {
    const MODULE: &str = "pub mod tflite {\n";
    const CALL: &str = ".visit_union::<";
    const UNKNOWN: &str = "          _ => Ok(()),\n";
    let unexpected =
        |what: &str| format!("flatc writes unions in another way than expected: {what}");

    let (head, body) = code
        .split_once(MODULE)
        .ok_or_else(|| unexpected("no module `tflite`"))?;
    let mut calls = body.split(CALL);
    let mut out = format!("{head}{MODULE}\nuse crate::verify::{{AnyTable, VisitUnion}};\n");
    out.push_str(calls.next().unwrap_or_default());
    let mut count = 0;
    for call in calls {
        let (key, rest) = call
            .split_once(", _>(")
            .ok_or_else(|| unexpected("no type of key"))?;
        let (known, rest) = rest
            .split_once(UNKNOWN)
            .ok_or_else(|| unexpected("no last arm"))?;
        out.push_str(&format!(
            ".visit_lenient_union({key}, {known}          _ => v.verify_union_variant::<\
             ::flatbuffers::ForwardsUOffset<AnyTable>>(\"{key}::unknown\", pos),\n{rest}"
        ));
        count += 1;
    }
    if count == 0 {
        return Err(unexpected("there is none"));
    }
    Ok(out)
}

/// How to start flatc.
struct Flatc {
    command: Vec<OsString>,
    root: std::path::PathBuf,
    hint: &'static str,
}

impl Flatc {
    /// The one in `FLATC`, else the one that the crate in `xtask/flatc` builds.
    fn find(root: &Path) -> Self {
        if let Some(path) = std::env::var_os("FLATC").filter(|p| !p.is_empty()) {
            return Self {
                command: vec![path],
                root: root.to_path_buf(),
                hint: "FLATC must be the path of a flatc",
            };
        }
        let target = target_dir(root).join("flatc");
        if !target.exists() {
            eprintln!("building flatc, once, which takes about a minute");
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let manifest = root.join("xtask").join("flatc").join("Cargo.toml");
        let mut command: Vec<OsString> = vec![cargo];
        command.extend(["run", "--quiet", "--locked", "--manifest-path"].map(OsString::from));
        command.extend([
            manifest.into(),
            "--target-dir".into(),
            target.into(),
            "--".into(),
        ]);
        Self {
            command,
            root: root.to_path_buf(),
            hint: "building flatc needs cmake and a C++ compiler; or set FLATC to a flatc",
        }
    }

    fn version(&self) -> Result<String, String> {
        let text = self.output(&["--version".into()])?;
        parse_version(&text)
            .map(str::to_owned)
            .ok_or_else(|| format!("`flatc --version` said {text:?}; {}", self.hint))
    }

    /// Standard output of flatc with these arguments, in the folder of the workspace.
    fn output(&self, args: &[OsString]) -> Result<String, String> {
        let shown = self.command.join(" ".as_ref());
        let output = Command::new(&self.command[0])
            .args(&self.command[1..])
            .args(args)
            .current_dir(&self.root)
            // Ignored by a flatc that is already there.
            .env(
                "CMAKE_TOOLCHAIN_FILE",
                self.root.join("xtask").join("flatc").join("slim.cmake"),
            )
            .output()
            .map_err(|e| format!("`{}`: {e}; {}", shown.display(), self.hint))?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(stdout);
        }
        Err(format!(
            "`{}` failed ({}); {}\n{stdout}{}",
            shown.display(),
            output.status,
            self.hint,
            String::from_utf8_lossy(&output.stderr)
        ))
    }
}

fn target_dir(root: &Path) -> std::path::PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// `25.12.19` out of `flatc version 25.12.19`.
fn parse_version(text: &str) -> Option<&str> {
    let version = text.trim().strip_prefix("flatc version ")?;
    version
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(version)
}

/// The version of a package in the text of a `Cargo.lock`.
fn locked_version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let quoted = |line: &'a str, key: &str| {
        line.strip_prefix(key)?
            .strip_prefix(" = \"")?
            .strip_suffix('"')
    };
    let mut lines = lock.lines();
    lines.find(|line| quoted(line, "name") == Some(package))?;
    quoted(lines.next()?, "version")
}

/// The number, from 1, of the first line in which the texts differ.
fn first_difference(a: &str, b: &str) -> Option<usize> {
    if a == b {
        return None;
    }
    let same = a.lines().zip(b.lines()).take_while(|(x, y)| x == y).count();
    Some(same + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unions_are_verified_leniently() {
        let code = "a\npub mod tflite {\nb\n     .visit_union::<U, _>(\"u\", |key, v, pos| {\n          \
                    U::A => one,\n          _ => Ok(()),\n  })?\n";
        let expected = "a\npub mod tflite {\n\nuse crate::verify::{AnyTable, VisitUnion};\nb\n     \
                        .visit_lenient_union(U, \"u\", |key, v, pos| {\n          U::A => one,\n          \
                        _ => v.verify_union_variant::<::flatbuffers::ForwardsUOffset<AnyTable>>\
                        (\"U::unknown\", pos),\n  })?\n";
        assert_eq!(lenient_unions(code).as_deref(), Ok(expected));
        assert!(lenient_unions("pub mod tflite {\n").is_err());
        assert!(lenient_unions(&code.replace("_ => Ok", "_ => Err")).is_err());
    }

    #[test]
    fn version_of_flatc() {
        assert_eq!(parse_version("flatc version 25.12.19\n"), Some("25.12.19"));
        assert_eq!(parse_version("gcc (Debian) 12.2.0"), None);
        assert_eq!(parse_version("flatc version "), None);
    }

    #[test]
    fn version_in_a_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"flatbuffers-build\"\nversion = \"0.2.4\"\n\n\
                    [[package]]\nname = \"flatbuffers\"\nversion = \"25.12.19\"\n";
        assert_eq!(locked_version(lock, "flatbuffers"), Some("25.12.19"));
        assert_eq!(locked_version(lock, "flatc"), None);
    }

    #[test]
    fn difference_counts_from_one_and_sees_the_end() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("", "a\n"), Some(1));
        assert_eq!(first_difference("a\n", "a\nb\n"), Some(2));
    }
}
