//! What can go wrong with a group of models.

use std::fmt;

use super::Member;

/// Models that cannot share an arena as asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// One of the models cannot be read or planned.
    Model {
        /// Its name.
        name: String,
        /// Why not.
        error: crate::Error,
    },
    /// A link that makes no sense.
    Link {
        /// The link, as `detector:0=classifier:0`.
        link: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Of two models that follow each other, not exactly one output fits one input.
    NoCascade {
        /// The first model.
        from: String,
        /// The second one.
        to: String,
        /// The links that fit; or, where there is none, each with the reason why it does not.
        candidates: Vec<String>,
        /// How many fit.
        fits: usize,
    },
    /// What is wrong with the group as a whole.
    Group {
        /// In words.
        reason: String,
    },
    /// The independent check found a fault in plans made here. Nothing is written; please report it.
    Internal {
        /// What was found.
        reason: String,
    },
}

impl Error {
    pub(super) fn of(member: &Member<'_>, error: crate::Error) -> Self {
        Error::Model {
            name: member.name.to_owned(),
            error,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Model { name, error } => write!(f, "{name}: {error}"),
            Error::Link { link, reason } => write!(f, "link {link}: {reason}"),
            Error::NoCascade {
                from,
                to,
                candidates,
                fits,
            } => {
                match fits {
                    0 => write!(f, "no output of {from} fits an input of {to}")?,
                    n => write!(
                        f,
                        "{n} links from {from} to {to} are possible; say which one is meant"
                    )?,
                }
                candidates.iter().try_for_each(|c| write!(f, "\n  {c}"))
            }
            Error::Group { reason } => f.write_str(reason),
            Error::Internal { reason } => write!(
                f,
                "internal error, nothing was written (please report it with the models): {reason}"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Model { error, .. } => Some(error),
            _ => None,
        }
    }
}
