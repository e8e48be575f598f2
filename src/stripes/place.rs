//! Heads of nets: what is alive is placed, quickly, to tell good choices from those that leave gaps.

use std::collections::BTreeMap;

use arenaplan_solver::{Buffer, BufferId, Conflict, Lifetime, Limits, Planner, Problem};

use super::estimate::{Alive, Estimate, Program};
use super::kernels::{Kernels, Mode};
use super::meetings::{Meeting, meetings};
use crate::aliasing::{Interval, joined};
use crate::tflm::ALIGNMENT;

/// Bytes of a head for this program, of which `estimate` was made, and how many nodes that took of the solver's, at most
/// `nodes`.
///
/// `None` when the solver refuses it.
pub(crate) fn head(
    program: &Program<'_>,
    kernels: &Kernels<'_>,
    estimate: &Estimate,
    nodes: u64,
) -> Option<(u64, u64)> {
    let mut problem = Problem::new();
    let mut ids: BTreeMap<u32, BufferId> = BTreeMap::new();
    let pieces = &estimate.alive;
    for buffer in pieces.chunk_by(|a, b| a.buffer == b.buffer) {
        let first = buffer.iter().map(|p| p.first).min()?;
        let last = buffer.iter().map(|p| p.last).max()?;
        let size = buffer.iter().map(|p| p.to).max()?;
        let added = problem.add_buffer(Buffer {
            size: size as u64,
            align: ALIGNMENT,
            lifetime: Lifetime::new(first as i32, last as i32),
            fixed: None,
        });
        ids.insert(buffer[0].buffer, added);
    }
    let mut forbidden: BTreeMap<(BufferId, BufferId), Vec<Interval>> = BTreeMap::new();
    let meetings = meetings(program, kernels, estimate);
    // Pieces that are alive at once.
    let mut order: Vec<&Alive> = pieces.iter().collect();
    order.sort_by_key(|p| (p.first, p.buffer, p.from));
    let mut alive: Vec<&Alive> = Vec::new();
    for piece in order {
        alive.retain(|a| a.last >= piece.first);
        for other in alive.iter().filter(|a| a.buffer != piece.buffer) {
            let (a, b) = match piece.buffer < other.buffer {
                true => (piece, *other),
                false => (*other, piece),
            };
            let interval = apart(a, b, &meetings);
            if interval.0 < interval.1 {
                let pair = (*ids.get(&a.buffer)?, *ids.get(&b.buffer)?);
                forbidden.entry(pair).or_default().push(interval);
            }
        }
        alive.push(piece);
    }
    for ((a, b), intervals) in forbidden {
        for (least, most) in joined(intervals, ALIGNMENT) {
            let conflict = Conflict {
                a_below_b: -least,
                b_below_a: most,
            };
            problem.add_conflict(a, b, conflict).ok()?;
        }
    }
    // Scratch memory keeps away from all of a buffer.
    for &(clock, bytes) in &estimate.scratch {
        let lifetime = Lifetime::new(clock as i32, clock as i32);
        let scratch = Buffer::new(bytes, lifetime);
        let id = problem.add_buffer(scratch);
        for &other in ids.values() {
            let whole = *problem.buffer(other)?;
            if whole.lifetime.overlaps(lifetime) {
                let conflict = Conflict::disjoint(&whole, &scratch);
                problem.add_conflict(other, id, conflict).ok()?;
            }
        }
    }
    let planner = match kernels.mode() {
        Mode::Greedy => Planner::Greedy,
        _ => Planner::Auto,
    };
    let limits = Limits::default().with_nodes(nodes);
    let bound = estimate.peak().0;
    let solved = match planner {
        Planner::Greedy => arenaplan_solver::solve(&problem, planner, &limits),
        _ => arenaplan_solver::solve_above(&problem, planner, bound, &limits),
    };
    let solved = solved.ok()?;
    Some((solved.placement.height, solved.nodes))
}

/// What the offset of `a`'s buffer less that of `b`'s must not be for two pieces that are alive at once.
fn apart(a: &Alive, b: &Alive, meetings: &[Meeting]) -> Interval {
    let whole = (b.from - a.to, b.to - a.from);
    for (input, output, sign) in [(a, b, 1), (b, a, -1)] {
        if input.last != output.first || input.first >= output.first {
            continue;
        }
        let found = meetings.iter().find(|m| {
            m.clock == output.first
                && m.input.buffer == input.buffer
                && m.output.buffer == output.buffer
                && (m.input.at < input.to && input.from < m.input.at + m.input_bytes)
                && (m.output.at < output.to && output.from < m.output.at + m.output_bytes)
        });
        let Some(m) = found else {
            continue;
        };
        // The input's address less the output's must not be between these.
        let by = m.output.at - m.input.at;
        let (least, most) = (by - m.output_above_input, by + m.input_above_output);
        let (least, most) = match sign {
            1 => (least, most),
            _ => (-most, -least),
        };
        return (whole.0.max(least), whole.1.min(most));
    }
    whole
}
