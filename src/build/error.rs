//! Why a build script failed, in words for whoever runs Cargo.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::codegen;
use crate::selftest::SelfTestError;
use crate::share;
use crate::text::thousands;

/// Why models were not compiled: which file, what is wrong, what to do.
///
/// Both [`Display`](fmt::Display) and [`Debug`](fmt::Debug) are a message for people, since Cargo shows the latter.
#[derive(Clone, PartialEq)]
pub struct Error {
    /// The file that it is about, if there is one.
    pub path: Option<PathBuf>,
    /// What is wrong.
    pub kind: ErrorKind,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No model was given.
    NoModels,
    /// There is no `OUT_DIR`: this is no build script.
    NoOutDir,
    /// No name can be made of the file's.
    NoName,
    /// Two models have one name, or their types have.
    SameName {
        /// The name.
        name: String,
        /// The file that had the name first.
        first: PathBuf,
    },
    /// The file cannot be read.
    Read {
        /// What its path is relative to.
        folder: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The file cannot be written.
    Write {
        /// Why not.
        reason: String,
    },
    /// The file only says where Git keeps its content.
    GitLfs,
    /// The model cannot be planned.
    Plan(crate::Error),
    /// There is no code for the model.
    Code(codegen::Error),
    /// There is no self-test for the model.
    SelfTest(SelfTestError),
    /// Models cannot share an arena.
    Share(share::Error),
    /// A group of models that is not one.
    Group {
        /// The group's name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Models that share an arena need a larger one than the limit.
    GroupLimit {
        /// The group's name.
        name: String,
        /// The models.
        models: Vec<String>,
        /// The one with the largest head.
        largest: String,
        /// The [`ErrorKind::ArenaLimit`], with the tails of all.
        kind: Box<ErrorKind>,
    },
    /// The model needs a larger arena than the limit.
    ArenaLimit {
        /// Bytes of the smallest arena.
        needed: usize,
        /// Bytes of the limit.
        limit: usize,
        /// Bytes of the head.
        head: usize,
        /// Bytes of the tail.
        tail: usize,
        /// Whether it is proved that no other plan has a smaller head.
        is_optimal: bool,
        /// Bytes of the head above what must be there at one time.
        above_bound: u64,
        /// What is there when most is, in words.
        moment: String,
    },
}

impl ErrorKind {
    /// The error about a file.
    pub(super) fn of(self, path: &Path) -> Error {
        Error {
            path: Some(path.to_owned()),
            kind: self,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorKind::NoModels => f.write_str("no model was given: add one with `.model(\"models/NAME.tflite\")`"),
            ErrorKind::NoOutDir => f.write_str(
                "the environment has no OUT_DIR, which Cargo sets for build scripts: call this from `build.rs`, or say where \
                 to write with `.out_dir(\"...\")`",
            ),
            ErrorKind::NoName => f.write_str("its name is not that of a file, or not Unicode: give it one with `.named(\"...\")`"),
            ErrorKind::SameName { name, first } => write!(
                f,
                "{name:?} is also what {} is called, or gives a type of the same name: give one of them another name with \
                 `.named(\"...\")`",
                first.display()
            ),
            ErrorKind::Read { folder, reason } => write!(
                f,
                "cannot be read: {reason} (paths are relative to the folder of Cargo.toml, {})",
                folder.display()
            ),
            ErrorKind::Write { reason } => write!(f, "cannot be written: {reason}"),
            ErrorKind::GitLfs => {
                f.write_str("is not the model, but says where Git LFS keeps it: fetch it with `git lfs pull`")
            }
            ErrorKind::Plan(error @ crate::Error::Unreadable { .. }) => {
                write!(f, "is no model that can be read (a .tflite file): {error}")
            }
            ErrorKind::Plan(error) => error.fmt(f),
            ErrorKind::Code(error) => error.fmt(f),
            ErrorKind::SelfTest(error) => write!(f, "{error} (`.self_test(true)` asks for one)"),
            ErrorKind::Share(error) => error.fmt(f),
            ErrorKind::Group { name, reason } => write!(f, "the group {name:?}: {reason}"),
            ErrorKind::GroupLimit {
                name,
                models,
                largest,
                kind,
            } => write!(
                f,
                "{} share an arena, {name:?}. With {largest}, which has the largest head, it {kind}",
                models.join(", ")
            ),
            ErrorKind::ArenaLimit {
                needed,
                limit,
                head,
                tail,
                is_optimal,
                above_bound,
                moment,
            } => {
                let bytes = |n: &usize| thousands(*n as u64);
                write!(
                    f,
                    "needs an arena of {} bytes, and the limit is {}: {} for the head, {} for the tail.\nOf the head, {}",
                    bytes(needed),
                    bytes(limit),
                    bytes(head),
                    bytes(tail),
                    moment
                )?;
                if *above_bound > 0 {
                    writeln!(f, "The head is {} bytes above that.", thousands(*above_bound))?;
                }
                f.write_str(match is_optimal {
                    true => "No plan has a smaller head: make the model smaller, or raise the limit.",
                    false => {
                        "A smaller head is not ruled out: let the solver search longer with \
                         `.solver(arenaplan::build::Planner::Exact)`, make the model smaller, or raise the limit."
                    }
                })
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}: {}", path.display(), self.kind),
            None => self.kind.fmt(f),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self { path: None, kind }
    }
}

impl From<crate::Error> for Error {
    fn from(error: crate::Error) -> Self {
        ErrorKind::Plan(error).into()
    }
}

impl From<codegen::Error> for Error {
    fn from(error: codegen::Error) -> Self {
        match error {
            codegen::Error::Model(error) => error.into(),
            error => ErrorKind::Code(error).into(),
        }
    }
}
