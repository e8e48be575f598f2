//! Finding and reading models: files, folders, standard input.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use super::text::shown;

/// A model to work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The file; `-` is standard input.
    pub(super) path: PathBuf,
    /// Its path below the folder that was searched, or its file name: where it goes below an output folder.
    pub(super) relative: PathBuf,
}

impl Source {
    /// The name for JSON: the path as given.
    pub(super) fn path_text(&self) -> String {
        if self.is_stdin() {
            "<stdin>".into()
        } else {
            self.path.display().to_string()
        }
    }

    /// The name for people.
    pub(super) fn name(&self) -> String {
        shown(&self.path_text())
    }

    pub(super) fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// The whole file.
    pub(super) fn read(&self) -> anyhow::Result<Vec<u8>> {
        if self.is_stdin() {
            let mut bytes = Vec::new();
            io::stdin()
                .lock()
                .read_to_end(&mut bytes)
                .context("cannot read standard input")?;
            Ok(bytes)
        } else {
            fs::read(&self.path).context("cannot read the file")
        }
    }
}

/// What the arguments lead to.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The models, folders searched and sorted; a file named twice is taken once.
    pub(super) sources: Vec<Source>,
    /// Arguments that lead to none, with the reason.
    pub(super) failures: Vec<(String, anyhow::Error)>,
}

/// Looks up the arguments. Searches do not enter `skip`, the folder that results go to.
pub(super) fn find(arguments: &[PathBuf], skip: Option<&Path>) -> Found {
    let skip = skip.and_then(|p| fs::canonicalize(p).ok());
    let mut all = Found::default();
    let mut known = BTreeSet::new();
    for path in arguments {
        let mut found = Vec::new();
        if path.is_dir() {
            let mut result =
                search(path, path, skip.as_deref(), &mut found).context("cannot search the folder");
            if result.is_ok() && found.is_empty() {
                result = Err(anyhow!("no *.tflite in this folder"));
            }
            if let Err(e) = result {
                all.failures.push((path.display().to_string(), e));
            }
            found.sort_by(|a, b| a.path.cmp(&b.path));
        } else {
            let relative = match path.file_name() {
                Some(name) if path.as_os_str() != "-" => PathBuf::from(name),
                _ => PathBuf::from("stdin.tflite"),
            };
            found.push(Source {
                path: path.clone(),
                relative,
            });
        }
        all.sources
            .extend(found.into_iter().filter(|s| known.insert(s.path.clone())));
    }
    all
}

fn search(
    root: &Path,
    folder: &Path,
    skip: Option<&Path>,
    found: &mut Vec<Source>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_model = || {
            path.extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("tflite"))
        };
        // Links to folders are not followed: they may lead in a circle.
        if path.is_dir() && !path.is_symlink() {
            if skip.is_none() || fs::canonicalize(&path).ok().as_deref() != skip {
                search(root, &path, skip, found)?;
            }
        } else if path.is_file() && is_model() {
            let relative = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
            found.push(Source { path, relative });
        }
    }
    Ok(())
}
