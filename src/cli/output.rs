//! Writing results: whole or not at all, and over nothing that would be lost.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use arenaplan_schema::patch;

use super::args::OutputArgs;
use super::models::Source;
use super::text::shown;
use super::{complain, print};

/// Where a result goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Destination {
    Stdout,
    File(PathBuf),
}

impl Destination {
    /// The path for JSON; `-` for standard output.
    pub(super) fn path_text(&self) -> String {
        match self {
            Destination::Stdout => "-".into(),
            Destination::File(path) => path.display().to_string(),
        }
    }
}

/// A destination per source. `otherwise` says what to do instead of writing, if there is something.
///
/// # Errors
/// None given, one file for several sources, or two sources with one destination.
pub(super) fn destinations(
    args: &OutputArgs,
    sources: &[Source],
    otherwise: &str,
) -> anyhow::Result<Vec<Destination>> {
    let all: Vec<Destination> = match (&args.output, &args.out_dir, args.in_place) {
        (Some(path), ..) => {
            if sources.len() > 1 {
                bail!(
                    "-o takes one input, {} are given; use --out-dir or --in-place",
                    sources.len()
                );
            }
            let is_stdout = path.as_os_str() == "-";
            let destination = if is_stdout {
                Destination::Stdout
            } else {
                Destination::File(path.clone())
            };
            sources.iter().map(|_| destination.clone()).collect()
        }
        (_, Some(folder), _) => {
            if folder.exists() && !folder.is_dir() {
                bail!("--out-dir: {} is not a folder", folder.display());
            }
            sources
                .iter()
                .map(|s| Destination::File(folder.join(&s.relative)))
                .collect()
        }
        (.., true) => {
            if sources.iter().any(Source::is_stdin) {
                bail!("--in-place cannot write to standard input; use -o FILE");
            }
            sources
                .iter()
                .map(|s| Destination::File(s.path.clone()))
                .collect()
        }
        _ => bail!("say where to write: -o FILE, --out-dir DIR, or --in-place{otherwise}"),
    };
    let mut taken = BTreeMap::new();
    for (source, destination) in sources.iter().zip(&all) {
        if let Some(other) = taken.insert(destination, source) {
            bail!(
                "{} and {} would both be written to {}; take them one by one, or name a folder above both",
                Source::name(other),
                source.name(),
                shown(&destination.path_text())
            );
        }
    }
    Ok(all)
}

/// Writes a model to `destination`; a file that holds the same one, with or without a plan of ours, may be replaced.
pub(super) fn write(
    destination: &Destination,
    args: &OutputArgs,
    force: bool,
    bytes: &[u8],
) -> anyhow::Result<()> {
    write_over(destination, args, force, bytes, |old| {
        same_model(old, bytes)
    })
}

/// Prints a report: on standard output, or where a result goes there, on the other stream.
pub(super) fn report<'d>(
    text: &str,
    mut destinations: impl Iterator<Item = &'d Destination>,
) -> anyhow::Result<()> {
    match destinations.any(|d| *d == Destination::Stdout) {
        false => print(text),
        true => {
            if !text.is_empty() {
                complain(text.trim_end());
            }
            Ok(())
        }
    }
}

/// Writes `bytes` to `destination`: a file as a whole, anything else (a device, a pipe) as it comes.
///
/// A file that is there already is replaced when it is the source itself (asked for by `--in-place`), when nothing is
/// lost (it holds the same, as `is_same` finds from its bytes), or with `force`. It keeps its permissions; through a link,
/// the file that the link leads to is replaced.
pub(super) fn write_over(
    destination: &Destination,
    args: &OutputArgs,
    force: bool,
    bytes: &[u8],
    is_same: impl Fn(&[u8]) -> bool,
) -> anyhow::Result<()> {
    let path = match destination {
        Destination::Stdout => {
            let mut stdout = io::stdout().lock();
            stdout
                .write_all(bytes)
                .and_then(|()| stdout.flush())
                .context("cannot write standard output")?;
            return Ok(());
        }
        Destination::File(path) => path,
    };
    let name = || shown(&path.display().to_string());
    let context = || format!("cannot write {}", name());
    let Ok(old) = fs::metadata(path) else {
        return whole_file(path, bytes, None).with_context(context);
    };
    if old.is_dir() {
        bail!("cannot write {}: it is a folder", name());
    }
    if !old.is_file() {
        let mut device = fs::OpenOptions::new()
            .write(true)
            .open(path)
            .with_context(context)?;
        return device.write_all(bytes).with_context(context);
    }
    if !force {
        // What is added to an input is small; a file that is so much longer need not be read.
        let may_be_same = old.len() / 4 <= bytes.len() as u64 + 65_536;
        let holds_same =
            || anyhow::Ok(may_be_same && is_same(&fs::read(path).with_context(context)?));
        if !args.in_place && !holds_same()? {
            bail!(
                "{} exists and holds something else; --force replaces it",
                name()
            );
        }
        if old.permissions().readonly() {
            bail!("{} is write-protected; --force replaces it", name());
        }
    }
    let target = fs::canonicalize(path).with_context(context)?;
    whole_file(&target, bytes, Some(old.permissions())).with_context(context)
}

/// Whether both are the same model, with or without a plan of ours.
fn same_model(old: &[u8], new: &[u8]) -> bool {
    let originals = (patch::original_of(old), patch::original_of(new));
    old == new || matches!(originals, (Ok(a), Ok(b)) if a == b)
}

/// Through a temporary file beside it, so that nobody ever sees half of it.
fn whole_file(path: &Path, bytes: &[u8], permissions: Option<fs::Permissions>) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".arenaplan-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As for any new file: what the umask leaves of this.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // The temporary name says nothing to the user.
    let mut file = builder
        .tempfile_in(folder)
        .map_err(|e| io::Error::from(e.kind()))?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}
