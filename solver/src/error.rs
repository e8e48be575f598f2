//! What can be wrong with a problem.

use core::fmt;

use crate::BufferId;
use crate::check::Violation;

/// Why a problem cannot be built or solved.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A conflict names a buffer that the problem does not have.
    UnknownBuffer {
        /// The id that was given.
        id: BufferId,
        /// How many buffers the problem has.
        len: usize,
    },
    /// A buffer cannot be in conflict with itself.
    SelfConflict {
        /// The buffer.
        id: BufferId,
    },
    /// An alignment of zero.
    ZeroAlignment {
        /// The buffer.
        id: BufferId,
    },
    /// A lifetime that ends before it starts.
    InvertedLifetime {
        /// The buffer.
        id: BufferId,
        /// Its first point in time.
        first: i32,
        /// Its last point in time.
        last: i32,
    },
    /// Up to and including this buffer the sizes, separations and alignments add up to more than
    /// [`Problem::MAX_BYTES`](crate::Problem::MAX_BYTES).
    TooLarge {
        /// The buffer at which the sum went over.
        id: BufferId,
    },
    /// More conflicts than [`Problem::MAX_CONFLICTS`](crate::Problem::MAX_CONFLICTS).
    TooManyConflicts {
        /// How many there would be.
        count: u64,
    },
    /// The fixed offset of a buffer is not a multiple of its alignment, so no placement is right.
    FixedMisaligned {
        /// The buffer.
        id: BufferId,
        /// Its fixed offset, in bytes.
        offset: u64,
        /// Its alignment, in bytes.
        align: u64,
    },
    /// Two buffers at fixed offsets violate the conflict between them, so no placement is right.
    FixedConflict {
        /// One of the two.
        a: BufferId,
        /// The other.
        b: BufferId,
    },
    /// A planner's placement did not pass [`check`](crate::check()): a defect of this crate.
    BadPlacement {
        /// The first violation found.
        violation: Violation,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownBuffer { id, len } => {
                write!(
                    f,
                    "buffer {id} does not exist: the problem has {len} buffers"
                )
            }
            Self::SelfConflict { id } => write!(f, "buffer {id} is in conflict with itself"),
            Self::ZeroAlignment { id } => {
                write!(f, "buffer {id} has alignment 0, expected at least 1")
            }
            Self::InvertedLifetime { id, first, last } => {
                write!(
                    f,
                    "buffer {id} is alive from {first} to {last}, which is no range"
                )
            }
            Self::TooLarge { id } => write!(
                f,
                "the sizes up to buffer {id} add up to more than {} bytes",
                crate::Problem::MAX_BYTES
            ),
            Self::TooManyConflicts { count } => write!(
                f,
                "{count} conflicts between buffers, more than the {} that fit in memory",
                crate::Problem::MAX_CONFLICTS
            ),
            Self::FixedMisaligned { id, offset, align } => write!(
                f,
                "buffer {id} is fixed at offset {offset}, which is no multiple of its alignment \
                 {align}"
            ),
            Self::FixedConflict { a, b } => {
                write!(
                    f,
                    "buffers {a} and {b} are fixed at offsets that violate their conflict"
                )
            }
            Self::BadPlacement { violation } => {
                write!(
                    f,
                    "the planner made a wrong placement ({violation}); please report this"
                )
            }
        }
    }
}

impl core::error::Error for Error {}
