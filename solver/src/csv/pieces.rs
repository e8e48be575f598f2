//! Lifetimes with gaps, as pieces of time in which the part in use does not change.
//!
//! ```text
//!        first                    last
//! whole    |========================|          bytes 0..size
//! gaps         |----|     |--2:5--|
//! pieces   |==|      |===||==2:5==||=|
//! ```

use crate::problem::overlapping_pairs;
use crate::{Buffer, BufferId, Conflict, Error, Lifetime, Problem};

/// The bytes of a buffer that are in use, from its own offset on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// The lowest one.
    pub(super) bottom: u64,
    /// The one after the highest one.
    pub(super) top: u64,
}

/// A time in which the bytes in use are the same: from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) window: Window,
}

/// What is left of `whole` with its gaps, which are sorted, inside of it and do not overlap. The
/// flag of a gap says that it has a window, and so is a piece itself.
pub(super) fn cut(whole: Piece, gaps: &[(Piece, bool)]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut next = Some(whole.first);
    for &(gap, has_window) in gaps {
        // A gap inside of the lifetime starts above the lowest time, if something is before it.
        if let Some(first) = next.filter(|&first| first < gap.first) {
            let last = gap.first - 1;
            pieces.push(Piece {
                first,
                last,
                ..whole
            });
        }
        pieces.extend(has_window.then_some(gap));
        next = gap.last.checked_add(1);
    }
    if let Some(first) = next.filter(|&first| first <= whole.last) {
        pieces.push(Piece { first, ..whole });
    }
    pieces
}

/// The problem of buffers whose pieces are given with the buffer's index, those of each buffer by
/// time and together.
pub(super) fn problem(
    mut buffers: Vec<Buffer>,
    pieces: &[(usize, Piece)],
) -> Result<Problem, Error> {
    let times = times(pieces);
    // Who is never in use is at time 0, where it is in nobody's way.
    let mut used = vec![false; buffers.len()];
    for (&(index, _), time) in pieces.iter().zip(&times) {
        let lifetime = &mut buffers[index].lifetime;
        if !used[index] {
            *lifetime = *time;
        }
        lifetime.last = time.last;
        used[index] = true;
    }
    let is_whole = |&(index, piece): &(usize, Piece)| {
        piece.window.bottom == 0 && piece.window.top == buffers[index].size
    };
    let without_gaps = pieces.len() == buffers.len()
        && used.iter().all(|&used| used)
        && pieces.iter().all(is_whole);
    if without_gaps {
        return Problem::from_lifetimes(buffers);
    }
    let mut problem = Problem::new();
    for buffer in buffers {
        problem.add_buffer(buffer);
    }
    problem.validate()?;
    for Pair {
        ids: [a, b],
        conflict,
    } in separations(pieces, &times)?
    {
        problem.add_conflict(a, b, conflict)?;
    }
    Ok(problem)
}

/// The lifetimes of the pieces: their times if all fit, else the ranks of those, which overlap in
/// the same way.
fn times(pieces: &[(usize, Piece)]) -> Vec<Lifetime> {
    let short = |time: i64| i32::try_from(time).ok();
    let as_they_are =
        |(_, piece): &(usize, Piece)| Some(Lifetime::new(short(piece.first)?, short(piece.last)?));
    if let Some(times) = pieces.iter().map(as_they_are).collect() {
        return times;
    }
    // A piece ends where the next one may start; past the last time there is one more point.
    let after = |piece: &Piece| i128::from(piece.last) + 1;
    let mut points: Vec<i128> = pieces
        .iter()
        .flat_map(|(_, piece)| [i128::from(piece.first), after(piece)])
        .collect();
    points.sort_unstable();
    points.dedup();
    // Two points a piece: a text would have to be larger than memory to have more than 2^31.
    let rank = |point: i128| points.partition_point(|&p| p < point) as i32;
    let ranked = |(_, piece): &(usize, Piece)| {
        Lifetime::new(rank(piece.first.into()), rank(after(piece)) - 1)
    };
    pieces.iter().map(ranked).collect()
}

/// How far two buffers must keep apart.
struct Pair {
    ids: [BufferId; 2],
    conflict: Conflict,
}

/// The pairs of buffers in use at one time, by ids, each with the most that it needs at any time.
fn separations(pieces: &[(usize, Piece)], times: &[Lifetime]) -> Result<Vec<Pair>, Error> {
    // Counted before any is made: hostile input must not cost memory.
    let count = overlapping_pairs(times.iter().copied());
    if count > Problem::MAX_CONFLICTS as u64 {
        return Err(Error::TooManyConflicts { count });
    }
    let mut by_first: Vec<usize> = (0..pieces.len()).collect();
    by_first.sort_by_key(|&i| times[i].first);
    let mut pairs = Vec::with_capacity(count as usize);
    let mut alive: Vec<usize> = Vec::new();
    for &starting in &by_first {
        alive.retain(|&i| times[i].last >= times[starting].first);
        for &other in &alive {
            // Pieces of one buffer never overlap, so these are of two.
            let (a, b) = match pieces[other].0 < pieces[starting].0 {
                true => (pieces[other], pieces[starting]),
                false => (pieces[starting], pieces[other]),
            };
            let range = |window: Window| window.bottom..window.top;
            pairs.push(Pair {
                ids: [BufferId(a.0 as u32), BufferId(b.0 as u32)],
                conflict: Conflict::of_ranges(range(a.1.window), range(b.1.window)),
            });
        }
        alive.push(starting);
    }
    pairs.sort_by_key(|pair| pair.ids);
    pairs.dedup_by(|later, kept| {
        let same = later.ids == kept.ids;
        if same {
            let (kept, later) = (&mut kept.conflict, later.conflict);
            kept.a_below_b = kept.a_below_b.max(later.a_below_b);
            kept.b_below_a = kept.b_below_a.max(later.b_below_a);
        }
        same
    });
    Ok(pairs)
}

/// The most bytes that are in use at one time; that of hostile fixed buffers is cut off.
pub(super) fn live_bytes(pieces: &[(usize, Piece)]) -> u64 {
    let mut events: Vec<(i64, bool, u64)> = Vec::with_capacity(2 * pieces.len());
    for (_, piece) in pieces {
        let bytes = piece.window.top - piece.window.bottom;
        events.extend([(piece.first, false, bytes), (piece.last, true, bytes)]);
    }
    events.sort_unstable(); // at one point in time: starts before ends
    let (mut alive, mut most) = (0u128, 0);
    for (_, ends, bytes) in events {
        let bytes = u128::from(bytes);
        alive = if ends { alive - bytes } else { alive + bytes };
        most = most.max(alive);
    }
    u64::try_from(most).unwrap_or(u64::MAX)
}
