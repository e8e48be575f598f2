//! What can go wrong with a model before a plan exists.

use std::fmt;

use crate::graph::OpId;

/// A model that cannot be read or planned: where, what was found, what was expected.
///
/// Messages name tensors and operators by index; the command line adds the file's name in front.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not a `.tflite` file, or a damaged one.
    Unreadable {
        /// The verifier's words: what is wrong, and where.
        reason: String,
    },
    /// A part that every model needs is absent.
    Missing {
        /// What is absent, for example `subgraphs`.
        what: String,
    },
    /// An index points at nothing.
    IndexOutOfRange {
        /// Where the index stands, for example `operator 3 of subgraph 0, input 1`.
        place: String,
        /// The index found.
        index: i64,
        /// How many there are.
        length: usize,
    },
    /// Subgraphs call each other in a circle, or more than 64 deep.
    Recursion {
        /// The operator whose call goes too deep.
        operator: OpId,
        /// The subgraph it calls.
        subgraph: u32,
    },
    /// Walking through all operators and calls takes more than two million steps.
    TooManySteps {
        /// The operator at which the walk gave up.
        operator: OpId,
    },
    /// An operator and a subgraph that it runs do not fit together: TFLM refuses such a model.
    CallMismatch {
        /// The operator, with its name.
        operator: String,
        /// What does not fit, with the numbers.
        reason: String,
    },
    /// A size does not fit: the arena's offsets are 32-bit signed numbers.
    TooLarge {
        /// What is too large, for example `tensor 7 "conv" of subgraph 0`.
        what: String,
    },
    /// An option has a value that makes no sense.
    Option {
        /// The option's name.
        name: &'static str,
        /// What is wrong with its value.
        reason: String,
    },
    /// A name given by the user fits no tensor.
    NoSuchTensor {
        /// The name or index asked for.
        name: String,
    },
    /// A scratch file that cannot be used.
    Scratch {
        /// The line, from 1; 0 for the file as a whole.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The solver refused the problem.
    Solver {
        /// The solver's words.
        reason: String,
    },
    /// The plan cannot be written into this file, or an old one not be taken out.
    Patch {
        /// The patcher's words.
        reason: String,
    },
    /// The model cannot be written as source code of the kind that is asked for.
    Export {
        /// Why not, and what to do.
        reason: String,
    },
    /// A tensor that should keep its value cannot.
    CannotKeep {
        /// The tensor.
        tensor: String,
        /// What comes to lie on it.
        reason: String,
    },
    /// A tensor cannot have the offset that is asked for.
    CannotFix {
        /// The tensor.
        tensor: String,
        /// Why not.
        reason: String,
    },
    /// A tensor in the head keeps its value from one invoke to the next, and other models use the head in between.
    StateInHead {
        /// The tensor.
        tensor: String,
    },
    /// An operator reads a tensor that only itself or a later operator writes.
    ReadBeforeWritten {
        /// The tensor.
        tensor: String,
        /// The operator that reads it.
        reader: String,
        /// The first operator that writes it.
        writer: String,
    },
    /// The independent checker found a fault in a plan made here. Nothing is written; please report it.
    Internal {
        /// What the checker found.
        reason: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unreadable { reason } => f.write_str(reason),
            Error::Missing { what } => write!(f, "the model has no {what}"),
            Error::IndexOutOfRange {
                place,
                index,
                length,
            } => {
                write!(
                    f,
                    "{place}: index {index} is out of range, there are {length}"
                )
            }
            Error::Recursion { operator, subgraph } => write!(
                f,
                "{operator} calls subgraph {subgraph}, which calls back or nests too deeply to be planned"
            ),
            Error::TooManySteps { operator } => write!(
                f,
                "the model takes too many steps to walk: gave up at {operator}"
            ),
            Error::CallMismatch { operator, reason } => write!(f, "{operator}: {reason}"),
            Error::TooLarge { what } => {
                write!(f, "{what} does not fit into the 31-bit offsets of an arena")
            }
            Error::Option { name, reason } => write!(f, "option {name}: {reason}"),
            Error::NoSuchTensor { name } => write!(
                f,
                "no tensor is named {name:?}; give its whole name, INDEX, or SUBGRAPH:INDEX as `inspect` shows them"
            ),
            Error::Scratch { line: 0, reason } => write!(f, "scratch file: {reason}"),
            Error::Scratch { line, reason } => write!(f, "scratch file, line {line}: {reason}"),
            Error::Solver { reason } => write!(f, "{reason}"),
            Error::Patch { reason } | Error::Export { reason } => write!(f, "{reason}"),
            Error::CannotKeep { tensor, reason } => write!(
                f,
                "{tensor} cannot be kept to the end of an invoke: {reason}"
            ),
            Error::CannotFix { tensor, reason } => {
                write!(f, "{tensor} cannot be given an offset: {reason}")
            }
            Error::StateInHead { tensor } => write!(
                f,
                "{tensor} keeps its value in the arena's head from one invoke to the next, and models that share the arena \
                 would overwrite it: give this model an arena of its own"
            ),
            Error::ReadBeforeWritten {
                tensor,
                reader,
                writer,
            } => write!(
                f,
                "{reader} reads {tensor}, which {writer} is the first to write: operators in this order cannot run"
            ),
            Error::Internal { reason } => write!(
                f,
                "internal error, nothing was written (please report it with the model): {reason}"
            ),
        }
    }
}

impl std::error::Error for Error {}
