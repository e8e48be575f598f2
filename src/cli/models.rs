//! Finding and reading models: files, folders, standard input.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// A model to work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// The file; `-` is standard input.
    pub(super) path: PathBuf,
    /// Its path below the folder that was searched, or its file name: where it goes below an output folder.
    pub(super) relative: PathBuf,
}

impl Source {
    /// The name to print.
    pub(super) fn name(&self) -> String {
        if self.is_stdin() {
            "<stdin>".into()
        } else {
            self.path.display().to_string()
        }
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

/// All models that the arguments name, folders searched and sorted; a file named twice is taken once.
pub(super) fn find(arguments: &[PathBuf]) -> anyhow::Result<Vec<Source>> {
    let mut sources: Vec<Source> = Vec::new();
    for path in arguments {
        let mut found = Vec::new();
        if path.is_dir() {
            search(path, path, &mut found)
                .with_context(|| format!("cannot search {}", path.display()))?;
            if found.is_empty() {
                bail!("{}: no *.tflite in this folder", path.display());
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
        for source in found {
            if !sources.iter().any(|s| s.path == source.path) {
                sources.push(source);
            }
        }
    }
    Ok(sources)
}

fn search(root: &Path, folder: &Path, found: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // Links to folders are not followed: they may lead in a circle.
        if path.is_dir() && !path.is_symlink() {
            search(root, &path, found)?;
        } else if path.is_file() && path.extension().is_some_and(|e| e == "tflite") {
            let relative = path.strip_prefix(root).unwrap_or(&path).to_path_buf();
            found.push(Source { path, relative });
        }
    }
    Ok(())
}
