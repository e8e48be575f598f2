//! One arena for several sessions.

use crate::error::Error;
use crate::prepare::ALIGNMENT;

/// Splits an arena into one head and the tails of several sessions, which take turns on the head.
///
/// ```text
/// | head: as long as what is left | ... | tails[2] | tails[1] | tails[0] |
/// ```
///
/// `tails` are what [`tail_bytes`](crate::tail_bytes) tells of the models. The arena starts at a multiple of 16, and needs the
/// largest head and all tails, which `arenaplan plan --share` adds up. All sessions are made before the first one runs, since
/// making one uses the head.
///
/// ```
/// # use arenaplan_runtime::{Error, Session, ops, share, tail_bytes};
/// # fn example(front: &[u8], back: &[u8], arena: &mut [u8]) -> Result<(), Error> {
/// let tails = [tail_bytes(front, ops::ALL)?, tail_bytes(back, ops::ALL)?];
/// let (head, [front_tail, back_tail]) = share(arena, tails)?;
/// let mut first = Session::new(front, ops::ALL, head, front_tail)?;
/// let mut second = Session::new(back, ops::ALL, head, back_tail)?;
/// first.input::<i8>(head, 0)?.fill(1);
/// first.invoke(head)?;
/// // Planned with `--cascade`, the second model's input is the first one's output, and is not set.
/// second.invoke(head)?;
/// let scores: &[i8] = second.output(head, 0)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the arena is too small for the tails.
pub fn share<const N: usize>(
    arena: &mut [u8],
    tails: [usize; N],
) -> Result<(&mut [u8], [&mut [u8]; N]), Error> {
    let given = arena.len();
    let mut needed = 0usize;
    let mut rest = arena;
    let parts = tails.map(|bytes| {
        let rounded = bytes
            .checked_next_multiple_of(ALIGNMENT)
            .unwrap_or(usize::MAX);
        needed = needed.saturating_add(rounded);
        // From the end down; what is left always ends at a multiple of 16.
        let end = rest.len() / ALIGNMENT * ALIGNMENT;
        let whole = core::mem::take(&mut rest);
        let start = end.checked_sub(rounded);
        let (left, tail) = start
            .and_then(|start| whole.split_at_mut_checked(start))
            .unwrap_or_default();
        rest = left;
        tail
    });
    match needed > given / ALIGNMENT * ALIGNMENT {
        true => Err(Error::ArenaTooSmall { needed, given }),
        false => Ok((rest, parts)),
    }
}
