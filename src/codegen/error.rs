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
            Error::Runtime(error) => error.fmt(f),
            Error::NoKernel { names, operator } => {
                let first = names.first().map_or("", |name| name);
                write!(
                    f,
                    "the runtime has no kernel for {} ({operator}). Write one, as a constant of type \
                     `arenaplan_runtime::Kernel`, and say where it is: `.kernel({first:?}, \"crate::MY_KERNEL\")`",
                    names.join(", ")
                )?;
                match names.len() {
                    0 | 1 => Ok(()),
                    _ => f.write_str(", and so for the others"),
                }
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
