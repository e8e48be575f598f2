//! Why there is no code for a model.

use std::fmt;

use crate::execute::ExecuteError;

/// Why there is no code for a model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    Model(crate::Error),
    /// The runtime has no kernel for some operators, and none was named.
    NoKernel {
        /// The names of the operators, each once, sorted.
        names: Vec<String>,
        /// The first of them in words.
        operator: String,
    },
    /// The runtime refuses the model or its plan.
    Runtime(ExecuteError),
    /// A name that cannot be used.
    Name {
        /// What it is the name of.
        what: &'static str,
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Model(error) => error.fmt(f),
            Error::Runtime(error) => {
                write!(f, "{error}")?;
                match error {
                    ExecuteError::Runtime {
                        error: arenaplan_runtime::Error::TensorSize { .. },
                        ..
                    } => f.write_str(
                        "; the runtime needs shapes and types of fixed sizes: export the model with such",
                    ),
                    _ => Ok(()),
                }
            }
            Error::NoKernel { names, .. } if names.iter().any(|name| name == "ethos-u") => f
                .write_str(
                    "the model was compiled for an Ethos-U, whose commands the runtime cannot run: give the file from \
                     before that",
                ),
            Error::NoKernel { names, operator } => {
                write!(f, "the runtime has no kernel for {operator}")?;
                if names.len() > 1 {
                    write!(f, ", and none for some others: in all {}", names.join(", "))?;
                }
                write!(
                    f,
                    ". Write one, a constant of type `arenaplan_runtime::Kernel`, and say in the build script where it is: \
                     `.kernel({:?}, \"crate::MY_KERNEL\")`",
                    names.first().map_or("", |name| name)
                )
            }
            Error::Name { what, name, reason } => write!(f, "the {what} {name:?} {reason}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<crate::Error> for Error {
    fn from(error: crate::Error) -> Self {
        Error::Model(error)
    }
}

impl From<ExecuteError> for Error {
    fn from(error: ExecuteError) -> Self {
        match error {
            ExecuteError::Model(error) => Error::Model(error),
            error => Error::Runtime(error),
        }
    }
}
