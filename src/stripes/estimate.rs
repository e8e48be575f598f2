//! Bytes alive at each operator of a net, as the planner will reach them.
//!
//! Tensors that are views of each other are one buffer, and each range of its bytes is alive from the first operator that
//! writes it to the last one that reads it:
//!
//! ```text
//! source   [ rows read by stripe 1 | by 1 and 2 | by stripe 2 ]     dies from left to right
//! result   [ part 1                | part 2                   ]     is born from left to right
//! ```
//!
//! It is an estimate from below: buffers are counted, not placed.

use std::collections::BTreeMap;

use super::kernels::{Kernels, Mode};
use super::meetings::meetings;
use super::net::{Kind, Net, NetOperator, NetTensor};
use crate::tflm::ALIGNMENT;

/// Operators in a row, and what is alive around them.
#[derive(Clone, Copy)]
pub(crate) struct Program<'n> {
    /// The net whose tensors they have.
    pub(crate) net: &'n Net,
    /// Tensors numbered behind the net's.
    pub(crate) added: &'n [NetTensor],
    pub(crate) operators: &'n [NetOperator],
    /// Alive from the start.
    pub(crate) before: &'n [u32],
    /// Alive to the end.
    pub(crate) after: &'n [u32],
}

impl<'n> Program<'n> {
    /// All of a net.
    pub(crate) fn of(net: &'n Net) -> Self {
        Self {
            net,
            added: &[],
            operators: &net.operators,
            before: &net.inputs,
            after: &net.outputs,
        }
    }

    pub(super) fn tensor(&self, index: u32) -> &'n NetTensor {
        let index = index as usize;
        match index.checked_sub(self.net.tensors.len()) {
            Some(added) => &self.added[added],
            None => &self.net.tensors[index],
        }
    }
}

impl Program<'_> {
    /// Rows of the input and of the output of a copy; `None` for the file's own operator.
    pub(super) fn rows(&self, op: &NetOperator) -> Option<(i64, i64)> {
        if let Kind::Layer { is_copy: false, .. } = op.kind {
            return None;
        }
        let mut inputs = op.inputs.iter().flatten().map(|&t| self.tensor(t));
        let input = inputs.find(|t| t.is_placed).map_or(0, |t| t.rows);
        let output = op.outputs.first().map_or(0, |&t| self.tensor(t).rows);
        Some((input, output))
    }
}

/// A range of bytes that is alive from one clock to another, both included. The clock is 0 at the start and counts operators
/// from 1, as TFLM's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Alive {
    /// The buffer: its first tensor, as the others are views of that.
    pub(crate) buffer: u32,
    /// The bytes of the buffer.
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) first: u32,
    pub(crate) last: u32,
}

/// A tensor's place: its buffer, and bytes from the start of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) buffer: u32,
    pub(crate) at: i64,
}

/// When which bytes are alive.
#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    /// Bytes at each clock, less what outputs share with inputs.
    pub(crate) curve: Vec<u64>,
    /// What is alive.
    pub(crate) alive: Vec<Alive>,
    /// Where the tensors of the program are, by their numbers; `None` for those that have no place.
    pub(crate) places: Vec<Option<Place>>,
    /// Scratch memory: the clock, and bytes.
    pub(crate) scratch: Vec<(u32, u64)>,
}

impl Estimate {
    /// The most bytes, and the first clock with so many.
    pub(crate) fn peak(&self) -> (u64, usize) {
        let mut peak = (0, 0);
        for (clock, &bytes) in self.curve.iter().enumerate() {
            if bytes > peak.0 {
                peak = (bytes, clock);
            }
        }
        peak
    }
}

/// A use of bytes of a buffer.
#[derive(Clone, Copy)]
struct Use {
    buffer: u32,
    from: i64,
    to: i64,
    clock: u32,
    is_write: bool,
}

const NONE: u32 = u32::MAX;

/// When which bytes of a program are alive.
pub(crate) fn estimate(program: &Program<'_>, kernels: &Kernels<'_>) -> Estimate {
    let mut work = Work {
        program,
        kernels,
        places: vec![None; program.net.tensors.len() + program.added.len()],
        uses: Vec::new(),
    };
    work.place();
    if kernels.mode != Mode::Greedy {
        work.merge();
    }
    work.collect();
    let alive = work.alive();
    let mut steps = vec![0i64; program.operators.len() + 2];
    for piece in &alive {
        steps[piece.first as usize] += piece.to - piece.from;
        steps[piece.last as usize + 1] -= piece.to - piece.from;
    }
    let mut now = 0;
    let mut curve: Vec<u64> = Vec::with_capacity(steps.len());
    for step in &steps[..=program.operators.len()] {
        now += step;
        curve.push(now as u64);
    }
    let scratch = work.scratch();
    for &(clock, bytes) in &scratch {
        curve[clock as usize] += bytes;
    }
    let mut estimate = Estimate {
        curve,
        alive,
        places: work.places,
        scratch,
    };
    let mut shared: BTreeMap<(u32, Place), (i64, i64)> = BTreeMap::new();
    for meeting in meetings(program, kernels, &estimate) {
        let key = (meeting.clock, meeting.output);
        let all = shared.entry(key).or_insert((0, meeting.output_bytes));
        all.0 += meeting.shared(&estimate.alive);
    }
    for ((clock, _), (bytes, most)) in shared {
        let now = &mut estimate.curve[clock as usize];
        *now = now.saturating_sub(bytes.min(most).max(0) as u64);
    }
    estimate
}

struct Work<'w, 'n, 'a> {
    program: &'w Program<'n>,
    kernels: &'w Kernels<'a>,
    places: Vec<Option<Place>>,
    uses: Vec<Use>,
}

impl Work<'_, '_, '_> {
    fn bytes(&self, tensor: u32) -> i64 {
        self.program.tensor(tensor).bytes() as i64
    }

    /// Each tensor in a buffer of its own.
    fn place(&mut self) {
        let program = self.program;
        let of_operators = program.operators.iter();
        let all = of_operators.flat_map(|o| o.inputs.iter().flatten().chain(&o.outputs));
        for &t in all.chain(program.before).chain(program.after) {
            if program.tensor(t).is_placed {
                self.places[t as usize] = Some(Place { buffer: t, at: 0 });
            }
        }
    }

    /// The buffer that a tensor ended up in.
    fn find(&self, tensor: u32) -> Option<Place> {
        let mut place = Place {
            buffer: tensor,
            at: 0,
        };
        loop {
            let up = self.places.get(place.buffer as usize).copied().flatten()?;
            place.at += up.at;
            if up.buffer == place.buffer {
                return Some(place);
            }
            place.buffer = up.buffer;
        }
    }

    /// Views: parts of a CONCATENATION come first, since they are born in their places only there.
    fn merge(&mut self) {
        let program = self.program;
        for op in program.operators {
            match op.kind {
                Kind::Concatenation => {
                    let mut at = 0;
                    for &part in op.inputs.iter().flatten() {
                        self.join(part, op.outputs[0], at);
                        at += self.bytes(part);
                    }
                }
                Kind::Layer {
                    index,
                    is_copy: false,
                } => {
                    for &(input, output, at) in &self.kernels.views[index as usize] {
                        match at >= 0 && self.bytes(input) < self.bytes(output) {
                            true => self.join(input, output, at),
                            false => self.join(output, input, -at),
                        }
                    }
                }
                _ => {}
            }
        }
        for op in program.operators {
            if let Kind::Slice { from } = op.kind
                && let [Some(source)] = op.inputs[..]
            {
                let at = from * program.tensor(source).row_bytes as i64;
                self.join(op.outputs[0], source, at);
            }
        }
    }

    /// Puts `part`, with all that is in its buffer, at `at` bytes of `whole`.
    fn join(&mut self, part: u32, whole: u32, at: i64) {
        let (Some(small), Some(large)) = (self.find(part), self.find(whole)) else {
            return;
        };
        // Another tensor's bytes around the part would lie over its neighbours.
        let is_alone = small.at == 0 && self.bytes(small.buffer) == self.bytes(part);
        let is_input = self.program.before.contains(&small.buffer);
        let is_other = small.buffer != large.buffer;
        let at = at + large.at;
        if is_alone && is_other && !is_input && at >= 0 && at % ALIGNMENT as i64 == 0 {
            self.places[small.buffer as usize] = Some(Place {
                buffer: large.buffer,
                at,
            });
        }
    }

    /// Lists all writes and reads.
    fn collect(&mut self) {
        let program = self.program;
        for t in 0..self.places.len() as u32 {
            if self.places[t as usize].is_some() {
                self.places[t as usize] = self.find(t);
            }
        }
        let end = program.operators.len() as u32;
        let mut uses = Vec::with_capacity(4 * program.operators.len() + 4);
        let mut push = |t: u32, (from, to): (i64, i64), clock: u32, is_write: bool| {
            if let Some(place) = self.places[t as usize] {
                uses.push(Use {
                    buffer: place.buffer,
                    from: place.at + from,
                    to: place.at + to,
                    clock,
                    is_write,
                });
            }
        };
        let whole = |t: u32| (0, self.bytes(t));
        for &t in program.before {
            push(t, whole(t), 0, true);
        }
        let mut clock = 0;
        for op in program.operators {
            clock += 1;
            for &t in &op.outputs {
                push(t, whole(t), clock, true);
            }
            for &t in op.inputs.iter().flatten() {
                let range = match op.kind {
                    Kind::Slice { from } if self.kernels.mode != Mode::Greedy => {
                        let row = program.tensor(t).row_bytes as i64;
                        (from * row, from * row + self.bytes(op.outputs[0]))
                    }
                    _ => whole(t),
                };
                push(t, range, clock, false);
            }
        }
        for &t in program.after.iter().chain(&self.kernels.kept) {
            if (t as usize) < self.places.len() {
                push(t, whole(t), end, false);
            }
        }
        // By buffer; within, the order does not matter.
        uses.sort_by_key(|u| u.buffer);
        self.uses = uses;
    }

    fn alive(&self) -> Vec<Alive> {
        let mut alive = Vec::with_capacity(self.uses.len());
        let mut cuts: Vec<i64> = Vec::new();
        for uses in self.uses.chunk_by(|a, b| a.buffer == b.buffer) {
            cuts.clear();
            cuts.extend(uses.iter().flat_map(|u| [u.from, u.to]));
            cuts.sort_unstable();
            cuts.dedup();
            for range in cuts.windows(2) {
                let (mut first, mut last) = (NONE, 0);
                for u in uses
                    .iter()
                    .filter(|u| u.from <= range[0] && range[1] <= u.to)
                {
                    if u.is_write {
                        first = first.min(u.clock);
                    }
                    last = last.max(u.clock);
                }
                // Read and never written: it is no one's.
                if first == NONE {
                    first = last;
                }
                alive.push(Alive {
                    buffer: uses[0].buffer,
                    from: range[0],
                    to: range[1],
                    first,
                    last,
                });
            }
            if let (Some(piece), Some(&end)) = (alive.last_mut(), cuts.last())
                && piece.to == end
                && piece.buffer == uses[0].buffer
            {
                piece.to = (end as u64).next_multiple_of(ALIGNMENT) as i64;
            }
        }
        alive
    }

    /// Scratch memory: clocks and bytes.
    fn scratch(&self) -> Vec<(u32, u64)> {
        let program = self.program;
        let all = program.operators.iter().zip(1..).map(|(op, clock)| {
            let bytes = op.layer().map_or(0, |index| {
                let rows = program.rows(op);
                self.kernels.scratch(index, rows)
            });
            (clock, bytes)
        });
        all.filter(|s| s.1 > 0).collect()
    }
}
