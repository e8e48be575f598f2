//! Moves of pieces from places at regular distances.

use crate::memory::{Element, View, ViewMut};

/// As many dimensions as a walk has after its merging.
const RANK: usize = 8;

/// Pieces of the input that make up the output in its order: nested loops, the outermost first.
///
/// All numbers are bytes, but for the counts. Neighbouring loops that go over contiguous bytes, and loops of one turn, are
/// merged, so that a piece is as large as it can be; each is moved as a whole, as if by way of another place.
pub(super) struct Moves {
    rank: usize,
    counts: [usize; RANK],
    /// Bytes of the input from one turn of a loop to the next.
    steps: [isize; RANK],
    /// Where the first piece starts in the input.
    start: usize,
    /// Whether there is nothing to move.
    empty: bool,
    /// There were too many loops.
    overflow: bool,
}

impl Moves {
    pub(super) fn new() -> Self {
        Self {
            rank: 0,
            counts: [1; RANK],
            steps: [0; RANK],
            start: 0,
            empty: false,
            overflow: false,
        }
    }

    /// The first piece starts at this byte of the input.
    pub(super) fn start_at(&mut self, start: usize) {
        self.start = start;
    }

    /// Adds a loop within those that are there.
    #[inline(never)]
    pub(super) fn push(&mut self, count: usize, step: isize) {
        self.empty |= count == 0;
        if count == 1 {
            return;
        }
        if let Some(last) = self.rank.checked_sub(1)
            && let (Some(outer_count), Some(outer_step)) =
                (self.counts.get_mut(last), self.steps.get_mut(last))
            && *outer_step == step.wrapping_mul(count as isize)
        {
            *outer_count = outer_count.wrapping_mul(count);
            *outer_step = step;
            return;
        }
        match (
            self.counts.get_mut(self.rank),
            self.steps.get_mut(self.rank),
        ) {
            (Some(at_count), Some(at_step)) => {
                (*at_count, *at_step) = (count, step);
                self.rank += 1;
            }
            _ => self.overflow = true,
        }
    }

    /// Moves all pieces, the smallest of which are `element` bytes. Whether that was possible.
    #[inline(never)]
    pub(super) fn run(
        &mut self,
        input: View<'_, u8>,
        output: ViewMut<'_, u8>,
        element: usize,
    ) -> bool {
        if self.overflow {
            return false;
        }
        if self.empty {
            return true;
        }
        // The innermost loop goes over one piece, or is left with a count of 1.
        let mut piece = element;
        let mut inner = (1, 0);
        if let Some(last) = self.rank.checked_sub(1)
            && let (Some(&count), Some(&step)) = (self.counts.get(last), self.steps.get(last))
        {
            self.rank = last;
            inner = (count, step);
            if step == element as isize {
                piece = element.wrapping_mul(count);
                inner = (1, 0);
                if let Some(last) = last.checked_sub(1)
                    && let (Some(&count), Some(&step)) =
                        (self.counts.get(last), self.steps.get(last))
                {
                    self.rank = last;
                    inner = (count, step);
                }
            }
        }
        let (count, step) = inner;
        let run = piece.wrapping_mul(count);
        let mut turns = [0usize; RANK];
        let (mut from, mut to) = (self.start, 0usize);
        loop {
            let Some(out) = output.part(to, run) else {
                return false;
            };
            if !row(input, out, from, step, piece) {
                return false;
            }
            to = to.wrapping_add(run);
            // As a counter with one digit for each loop.
            let mut digit = self.rank;
            loop {
                let Some(next) = digit.checked_sub(1) else {
                    return to == output.len();
                };
                digit = next;
                let (Some(turn), Some(&count), Some(&step)) = (
                    turns.get_mut(digit),
                    self.counts.get(digit),
                    self.steps.get(digit),
                ) else {
                    return false;
                };
                *turn += 1;
                from = from.wrapping_add_signed(step);
                if *turn < count {
                    break;
                }
                from = from.wrapping_add_signed(step.wrapping_mul(count as isize).wrapping_neg());
                *turn = 0;
            }
        }
    }
}

/// Fills `output` with pieces that start in the input at `from` and every `step` bytes from there.
pub(super) fn row(
    input: View<'_, u8>,
    output: ViewMut<'_, u8>,
    from: usize,
    step: isize,
    piece: usize,
) -> bool {
    let done = match piece {
        1 => elements::<u8>(input, output, from, step),
        2 => elements::<u16>(input, output, from, step),
        4 => elements::<u32>(input, output, from, step),
        8 => elements::<u64>(input, output, from, step),
        _ => false,
    };
    done || pieces(input, output, from, step, piece)
}

fn pieces(
    input: View<'_, u8>,
    output: ViewMut<'_, u8>,
    mut from: usize,
    step: isize,
    piece: usize,
) -> bool {
    let mut to = 0;
    while let (Some(input), Some(out)) = (input.part(from, piece), output.part(to, piece)) {
        out.copy_from(input);
        to = to.wrapping_add(piece);
        if piece == 0 || to >= output.len() {
            break;
        }
        from = from.wrapping_add_signed(step);
    }
    to == output.len()
}

/// [`pieces`] of one element each, if all of them are aligned; most often they are.
fn elements<T: Element>(
    input: View<'_, u8>,
    output: ViewMut<'_, u8>,
    from: usize,
    step: isize,
) -> bool {
    let size = size_of::<T>();
    if !from.is_multiple_of(size) || step % size as isize != 0 {
        return false;
    }
    let (Some(input), Some(output)) = (input.cast::<T>(), output.cast::<T>()) else {
        return false;
    };
    let (mut from, step) = (from / size, step / size as isize);
    for to in 0..output.len() {
        output.set(to, input.get(from));
        from = from.wrapping_add_signed(step);
    }
    true
}
