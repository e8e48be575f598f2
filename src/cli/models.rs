//! Finding and reading models and problems: files, folders, standard input.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use super::text::shown;

/// A file to work on.
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
    /// The files, folders searched and sorted; a file named twice is taken once.
    pub(super) sources: Vec<Source>,
    /// Arguments that lead to none, with the reason.
    pub(super) failures: Vec<(String, anyhow::Error)>,
}

/// Looks up models. Searches do not enter `skip`, the folder that results go to.
pub(super) fn find(arguments: &[PathBuf], skip: Option<&Path>) -> Found {
    find_files(arguments, skip, "tflite")
}

/// Looks up placement problems, in the same way.
pub(super) fn find_problems(arguments: &[PathBuf], skip: Option<&Path>) -> Found {
    find_files(arguments, skip, "csv")
}

fn find_files(arguments: &[PathBuf], skip: Option<&Path>, extension: &str) -> Found {
    let skip = skip.and_then(|p| fs::canonicalize(p).ok());
    let mut all = Found::default();
    let mut known = BTreeSet::new();
    for path in arguments {
        let mut found = Vec::new();
        if path.is_dir() {
            let search = Search {
                root: path,
                skip: skip.as_deref(),
                extension,
            };
            let mut result = search
                .run(path, &mut found)
                .context("cannot search the folder");
            if result.is_ok() && found.is_empty() {
                result = Err(anyhow!("no *.{extension} in this folder"));
            }
            if let Err(e) = result {
                all.failures.push((path.display().to_string(), e));
            }
            found.sort_by(|a, b| a.path.cmp(&b.path));
        } else {
            let relative = match path.file_name() {
                Some(name) if path.as_os_str() != "-" => PathBuf::from(name),
                _ => PathBuf::from(format!("stdin.{extension}")),
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

/// A search of a folder and all below it.
struct Search<'a> {
    root: &'a Path,
    skip: Option<&'a Path>,
    extension: &'a str,
}

impl Search<'_> {
    fn run(&self, folder: &Path, found: &mut Vec<Source>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let is_wanted = || {
                path.extension()
                    .is_some_and(|e| e.eq_ignore_ascii_case(self.extension))
            };
            // Links to folders are not followed: they may lead in a circle.
            if path.is_dir() && !path.is_symlink() {
                if self.skip.is_none() || fs::canonicalize(&path).ok().as_deref() != self.skip {
                    self.run(&path, found)?;
                }
            } else if path.is_file() && is_wanted() {
                let relative = path.strip_prefix(self.root).unwrap_or(&path).to_path_buf();
                found.push(Source { path, relative });
            }
        }
        Ok(())
    }
}
