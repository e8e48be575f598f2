//! What the checker finds, and how it is said.

use std::fmt;

use crate::graph::{Graph, OpId, Operator, TensorId};
use crate::target::Library;

/// A fault of a layout. Offsets and lengths are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A tensor that needs a place in the arena has none.
    NoPlace {
        /// The tensor.
        tensor: TensorId,
    },
    /// The layout has a place for something that the model does not have, or two for one thing.
    Unexpected {
        /// What the place is for.
        tag: Tag,
    },
    /// A place is smaller than the tensor in it.
    TooShort {
        /// The tensor.
        tensor: TensorId,
        /// Bytes of the place.
        bytes: u64,
        /// Bytes of the tensor.
        needed: u64,
    },
    /// A tensor or scratch buffer does not start at a multiple of its alignment.
    Misaligned {
        /// What lies there.
        tag: Tag,
        /// Its offset.
        offset: u64,
        /// The alignment asked for.
        align: u64,
    },
    /// A tensor or scratch buffer reaches behind the end of the head.
    OutOfBounds {
        /// What lies there.
        tag: Tag,
        /// Its end.
        end: u64,
        /// The size of the head.
        head: u64,
    },
    /// A read finds bytes that something else has overwritten.
    Overwritten {
        /// The tensor or scratch buffer that is read.
        tag: Tag,
        /// When it is read.
        at: Place,
        /// Offset of the first byte that is not its own any more.
        offset: u64,
        /// What lies there now; `None` when different paths leave different things there.
        by: Option<Tag>,
    },
    /// A kernel writes over a byte of one of its inputs that it has not read for the last time.
    ReadTooLate {
        /// The input.
        tensor: TensorId,
        /// The operator.
        operator: OpId,
        /// The library whose kernel does so.
        library: Library,
        /// Offset of a byte that is overwritten too early.
        offset: u64,
        /// The output that is written there.
        by: TensorId,
    },
    /// The model's calls nest too deeply, or take too many steps, to be checked.
    TooDeep {
        /// The operator at which the walk gave up.
        operator: OpId,
    },
}

/// When a read happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// The application has set all inputs.
    BeforeInvoke,
    /// An operator reads its input, or its output is found damaged when it ends.
    Operator(OpId),
    /// Values are copied into or out of a subgraph.
    EndOf(u32),
    /// The application reads after the invoke.
    AfterInvoke,
}

/// Owner of bytes in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Tag {
    /// A tensor.
    Tensor(TensorId),
    /// Scratch memory of an operator's kernel.
    Scratch {
        /// The operator.
        operator: OpId,
        /// Position among its requests.
        request: u32,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::BeforeInvoke => write!(f, "when all inputs are set"),
            Place::Operator(op) => write!(f, "at {op}"),
            Place::EndOf(subgraph) => write!(f, "when subgraph {subgraph} is entered or left"),
            Place::AfterInvoke => write!(f, "after the invoke"),
        }
    }
}

impl Violation {
    /// The fault in words, with the names of tensors and operators.
    pub fn describe(&self, graph: &Graph<'_>) -> String {
        let operator = |op: OpId| {
            let found = graph.subgraphs.get(op.subgraph as usize);
            let found = found.and_then(|s| s.operators.get(op.index as usize));
            found.map_or_else(|| op.to_string(), Operator::label)
        };
        let tensor = |t: TensorId| match graph.tensors.get(t.index()) {
            Some(tensor) => tensor.label(),
            None => format!("tensor number {}, which the model does not have", t.0),
        };
        let name = |tag: &Tag| match *tag {
            Tag::Tensor(t) => tensor(t),
            Tag::Scratch {
                operator: op,
                request,
            } => {
                format!("scratch memory {request} of {}", operator(op))
            }
        };
        match self {
            Violation::NoPlace { tensor: t } => format!("{} has no place in the arena", tensor(*t)),
            Violation::Unexpected { tag } => {
                format!("there is a place too many, for {}", name(tag))
            }
            Violation::TooShort {
                tensor: t,
                bytes,
                needed,
            } => {
                format!(
                    "{} has a place of {bytes} bytes, and needs {needed}",
                    tensor(*t)
                )
            }
            Violation::Misaligned { tag, offset, align } => {
                format!(
                    "{} starts at {offset}, which is not a multiple of {align}",
                    name(tag)
                )
            }
            Violation::OutOfBounds { tag, end, head } => {
                format!(
                    "{} ends at {end}, behind the head of {head} bytes",
                    name(tag)
                )
            }
            Violation::Overwritten {
                tag,
                at,
                offset,
                by,
            } => {
                let at = match at {
                    Place::Operator(op) => format!("at {}", operator(*op)),
                    other => other.to_string(),
                };
                let by = match by {
                    Some(tag) => format!("{} lies there", name(tag)),
                    None => "what lies there depends on the path taken".into(),
                };
                format!(
                    "{} is needed {at}, but at byte {offset} of the arena {by}",
                    name(tag)
                )
            }
            Violation::ReadTooLate {
                tensor: t,
                operator: op,
                library,
                offset,
                by,
            } => {
                format!(
                    "{} is still being read by {} when {} is written over it, at byte {offset} of the arena (kernels: {library})",
                    tensor(*t),
                    operator(*op),
                    tensor(*by)
                )
            }
            Violation::TooDeep { operator: op } => {
                format!(
                    "calls nest too deeply or take too long to check at {}",
                    operator(*op)
                )
            }
        }
    }
}
