//! The independent checker: looks at a problem and a placement, and at nothing that made it.

use core::fmt;

use crate::{BufferId, Placement, Problem};

/// One way in which a placement is wrong. Offsets and sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Violation {
    /// A buffer without an offset.
    MissingOffset {
        /// The buffer.
        id: BufferId,
    },
    /// More offsets than buffers.
    ExtraOffsets {
        /// How many offsets there are.
        offsets: usize,
        /// How many buffers there are.
        buffers: usize,
    },
    /// An offset that is not a multiple of the buffer's alignment.
    Misaligned {
        /// The buffer.
        id: BufferId,
        /// Its offset.
        offset: u64,
        /// Its alignment.
        align: u64,
    },
    /// A buffer that is not where it is fixed.
    NotAtFixed {
        /// The buffer.
        id: BufferId,
        /// Its offset.
        offset: u64,
        /// Where it should be.
        fixed: u64,
    },
    /// Two buffers in conflict that are too close: `b` would have to be at `offset_a + a_below_b`
    /// or higher, or `a` at `offset_b + b_below_a` or higher.
    Overlap {
        /// One of the two.
        a: BufferId,
        /// The other.
        b: BufferId,
        /// The offset of `a`.
        offset_a: u64,
        /// The offset of `b`.
        offset_b: u64,
        /// The least separation when `a` is the lower one.
        a_below_b: i64,
        /// The least separation when `b` is the lower one.
        b_below_a: i64,
    },
    /// A buffer that ends above the placement's height.
    HeightTooSmall {
        /// The buffer.
        id: BufferId,
        /// Where it ends: offset + size (more than 64 bits if the offset is nonsense).
        end: u128,
        /// The placement's height.
        height: u64,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingOffset { id } => write!(f, "buffer {id} has no offset"),
            Self::ExtraOffsets { offsets, buffers } => {
                write!(f, "{offsets} offsets for {buffers} buffers")
            }
            Self::Misaligned { id, offset, align } => {
                write!(
                    f,
                    "buffer {id} is at {offset}, expected a multiple of {align}"
                )
            }
            Self::NotAtFixed { id, offset, fixed } => {
                write!(
                    f,
                    "buffer {id} is at {offset}, expected its fixed offset {fixed}"
                )
            }
            Self::Overlap {
                a,
                b,
                offset_a,
                offset_b,
                a_below_b,
                b_below_a,
            } => write!(
                f,
                "buffers {a} at {offset_a} and {b} at {offset_b} are too close: expected {b} {} {a}, \
                 or {a} {} {b}",
                Above(*a_below_b),
                Above(*b_below_a)
            ),
            Self::HeightTooSmall { id, end, height } => {
                write!(f, "buffer {id} ends at {end}, above the height {height}")
            }
        }
    }
}

/// Where one offset is allowed, as seen from another one.
struct Above(i64);

impl fmt::Display for Above {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes @ 0.. => write!(f, "at least {bytes} bytes above"),
            bytes => write!(f, "at most {} bytes below", bytes.unsigned_abs()),
        }
    }
}

/// All violations of `placement`, buffers by index first, then conflicts in the problem's order.
/// An empty list means that every buffer is inside the height, aligned, at its fixed offset if it
/// has one, and that every conflict holds. A height above what is needed is no violation.
pub fn check(problem: &Problem, placement: &Placement) -> Vec<Violation> {
    let mut violations = Vec::new();
    let graph = problem.graph();
    let offsets = &placement.offsets;
    for node in graph.node_indices() {
        let buffer = graph[node];
        let id = BufferId::from(node);
        let Some(&offset) = offsets.get(node.index()) else {
            violations.push(Violation::MissingOffset { id });
            continue;
        };
        if buffer.align == 0 || offset % buffer.align != 0 {
            violations.push(Violation::Misaligned {
                id,
                offset,
                align: buffer.align,
            });
        }
        if let Some(fixed) = buffer.fixed
            && fixed != offset
        {
            violations.push(Violation::NotAtFixed { id, offset, fixed });
        }
        let end = u128::from(offset) + u128::from(buffer.size);
        if end > u128::from(placement.height) {
            violations.push(Violation::HeightTooSmall {
                id,
                end,
                height: placement.height,
            });
        }
    }
    if offsets.len() > graph.node_count() {
        violations.push(Violation::ExtraOffsets {
            offsets: offsets.len(),
            buffers: graph.node_count(),
        });
    }
    for edge in graph.edge_indices() {
        let Some((a, b)) = graph.edge_endpoints(edge) else {
            continue;
        };
        let (Some(&offset_a), Some(&offset_b)) = (offsets.get(a.index()), offsets.get(b.index()))
        else {
            continue; // reported above
        };
        let conflict = graph[edge];
        let (at_a, at_b) = (i128::from(offset_a), i128::from(offset_b));
        let a_lower = at_a + i128::from(conflict.a_below_b) <= at_b;
        let b_lower = at_b + i128::from(conflict.b_below_a) <= at_a;
        if !a_lower && !b_lower {
            violations.push(Violation::Overlap {
                a: a.into(),
                b: b.into(),
                offset_a,
                offset_b,
                a_below_b: conflict.a_below_b,
                b_below_a: conflict.b_below_a,
            });
        }
    }
    violations
}
