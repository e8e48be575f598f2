//! Writing results: whole or not at all, and over nothing that would be lost.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use arenaplan_schema::patch;

use super::args::OutputArgs;
use super::models::Source;

/// Where a result goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    Stdout,
    File(PathBuf),
}

impl Destination {
    /// The path to print; `-` for standard output.
    pub(super) fn name(&self) -> String {
        match self {
            Destination::Stdout => "-".into(),
            Destination::File(path) => path.display().to_string(),
        }
    }
}

/// A destination per source.
///
/// # Errors
/// None given, one file for several models, or two models with one destination.
pub(super) fn destinations(
    args: &OutputArgs,
    sources: &[Source],
) -> anyhow::Result<Vec<Destination>> {
    let all: Vec<Destination> = match (&args.output, &args.out_dir, args.in_place) {
        (Some(path), ..) => {
            if sources.len() != 1 {
                bail!(
                    "-o takes one model, {} are given; use --out-dir or --in-place",
                    sources.len()
                );
            }
            vec![if path.as_os_str() == "-" {
                Destination::Stdout
            } else {
                Destination::File(path.clone())
            }]
        }
        (_, Some(folder), _) => sources
            .iter()
            .map(|s| Destination::File(folder.join(&s.relative)))
            .collect(),
        (.., true) => {
            if sources.iter().any(Source::is_stdin) {
                bail!("--in-place cannot write to standard input; use -o FILE");
            }
            sources
                .iter()
                .map(|s| Destination::File(s.path.clone()))
                .collect()
        }
        _ => bail!(
            "say where to write: -o FILE, --out-dir DIR, or --in-place; plan --dry-run only reports"
        ),
    };
    for (i, destination) in all.iter().enumerate() {
        if let Some(j) = all[..i].iter().position(|d| d == destination) {
            bail!(
                "{} and {} would both be written to {}",
                sources[j].name(),
                sources[i].name(),
                destination.name()
            );
        }
    }
    Ok(all)
}

/// Writes `bytes` to `destination` as a whole file.
///
/// A file that is there already is replaced when it is the source itself (asked for by `--in-place`), when nothing is
/// lost (it holds the same bytes, or a plan of ours for the same model), or with `force`.
pub(super) fn write(
    destination: &Destination,
    source: &Source,
    args: &OutputArgs,
    force: bool,
    bytes: &[u8],
) -> anyhow::Result<()> {
    let path = match destination {
        Destination::Stdout => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(bytes)?;
            stdout.flush()?;
            return Ok(());
        }
        Destination::File(path) => path,
    };
    let context = || format!("cannot write {}", path.display());
    if !force && !args.in_place && path.exists() {
        let old = fs::read(path).with_context(context)?;
        if !same_model(&old, bytes) {
            bail!(
                "{} exists and holds something else; --force replaces it",
                path.display()
            );
        }
    }
    let permissions = if args.in_place {
        Some(
            fs::metadata(&source.path)
                .with_context(context)?
                .permissions(),
        )
    } else {
        None
    };
    whole_file(path, bytes, permissions).with_context(context)
}

/// Whether both hold the same model, with or without a plan of ours.
fn same_model(a: &[u8], b: &[u8]) -> bool {
    a == b
        || matches!(
            (patch::original_of(a), patch::original_of(b)),
            (Ok(x), Ok(y)) if x == y
        )
}

/// Through a temporary file beside it, so that nobody ever sees half of it.
fn whole_file(
    path: &Path,
    bytes: &[u8],
    permissions: Option<fs::Permissions>,
) -> anyhow::Result<()> {
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
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
