//! Inputs and outputs that the kernels of a target let share bytes.

use super::estimate::{Alive, Estimate, Place, Program};
use super::kernels::{Kernels, Mode};
use super::net::{Kind, NetTensor};
use crate::contract::Overlap;
use crate::tflm::ALIGNMENT;

/// An input and an output that may share bytes while their operator runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meeting {
    pub(crate) clock: u32,
    pub(crate) input: Place,
    pub(crate) output: Place,
    pub(crate) input_bytes: i64,
    pub(crate) output_bytes: i64,
    /// How far the input must be above the output.
    pub(crate) input_above_output: i64,
    /// Or the output above the input.
    pub(crate) output_above_input: i64,
}

/// All inputs and outputs that the kernels let share bytes.
pub(crate) fn meetings(
    program: &Program<'_>,
    kernels: &Kernels<'_>,
    estimate: &Estimate,
) -> Vec<Meeting> {
    let mut found = Vec::new();
    if kernels.mode != Mode::Overlap {
        return found;
    }
    let rounded = |bytes: u64| bytes.next_multiple_of(ALIGNMENT) as i64;
    let place = |t: u32| estimate.places.get(t as usize).copied().flatten();
    for (op, clock) in program.operators.iter().zip(1..) {
        let Some(index) = op.layer() else {
            continue;
        };
        for &to in &op.outputs {
            let Some(output) = place(to) else { continue };
            for (k, &from) in op.inputs.iter().enumerate() {
                let Some(from) = from.filter(|_| !op.inputs[..k].contains(&from)) else {
                    continue;
                };
                let Some(input) = place(from).filter(|p| p.buffer != output.buffer) else {
                    continue;
                };
                let bytes = [from, to].map(|t| program.tensor(t).bytes());
                let meeting = Meeting {
                    clock,
                    input,
                    output,
                    input_bytes: rounded(bytes[0]),
                    output_bytes: rounded(bytes[1]),
                    input_above_output: rounded(bytes[1]),
                    output_above_input: rounded(bytes[0]),
                };
                if meeting.ends(&estimate.alive) == (0, 0) {
                    continue;
                }
                let file = |t: u32| program.tensor(t).of;
                let promise = match op.kind {
                    Kind::Pad { top, .. } => {
                        let whole = kernels.promise(index, file(from), file(to), None);
                        let most = program.net.tensor(file(to)).bytes();
                        let is_promised = whole.input_above_output < most;
                        padded(is_promised, top, program.tensor(from), program.tensor(to))
                    }
                    _ => kernels.promise(index, file(from), file(to), program.rows(op)),
                };
                let meeting = Meeting {
                    input_above_output: rounded(promise.input_above_output)
                        .min(meeting.output_bytes),
                    output_above_input: rounded(promise.output_above_input)
                        .min(meeting.input_bytes),
                    ..meeting
                };
                let is_less = meeting.input_above_output < meeting.output_bytes
                    || meeting.output_above_input < meeting.input_bytes;
                if is_less {
                    found.push(meeting);
                }
            }
        }
    }
    found
}

/// The promise of a PAD's copy, whose rows are in a constant of its own: row by row, each where it comes to lie, if the
/// kernel promises that of the file's operator.
fn padded(is_promised: bool, top: i64, input: &NetTensor, output: &NetTensor) -> Overlap {
    let (from, to) = (input.row_bytes as i64, output.row_bytes as i64);
    // All columns that are added may be on the left.
    let below = |row: i64| (top + row) * to + (to - from) - row * from;
    let most = below(0).max(below(input.rows - 1)).max(0) as u64;
    let nothing = Overlap::none(input.bytes(), output.bytes());
    match is_promised {
        true => Overlap {
            input_above_output: most.min(output.bytes()),
            ..nothing
        },
        false => nothing,
    }
}

impl Meeting {
    /// Bytes at the start and at the end of the input that nobody reads later.
    fn ends(&self, alive: &[Alive]) -> (i64, i64) {
        let (buffer, from) = (self.input.buffer, self.input.at);
        let to = from + self.input_bytes;
        let start = alive.partition_point(|a| (a.buffer, a.to) <= (buffer, from));
        let pieces = alive[start..].iter();
        let pieces = pieces.take_while(|a| a.buffer == buffer && a.from < to);
        let (mut low, mut high, mut is_low) = (0, 0, true);
        for piece in pieces {
            let count = piece.to.min(to) - piece.from.max(from);
            match piece.last == self.clock && piece.first < self.clock {
                true => {
                    high += count;
                    low += if is_low { count } else { 0 };
                }
                false => (high, is_low) = (0, false),
            }
        }
        (low, high)
    }

    /// The most bytes that both can share.
    pub(super) fn shared(&self, alive: &[Alive]) -> i64 {
        let (low, high) = self.ends(alive);
        let below = (self.output_bytes - self.input_above_output).min(low);
        let above = (self.input_bytes - self.output_above_input).min(high);
        below.max(above.min(self.output_bytes)).max(0)
    }
}
