//! TFLM's planning of the head, repeated on the host.
//!
//! TFLM lists everything that needs a place, tensors of all subgraphs in file order and then scratch requests, takes
//! those with an offline offset as fixed, and packs the rest around them with its greedy planner, whose code here is the one
//! that `arenaplan-runtime` has on the device.

use arenaplan_runtime::greedy::{Buffers, greedy};

use crate::check::{Layout, Piece, Tag};
use crate::error::Error;
use crate::graph::{Graph, Storage, TensorId};
use crate::lifetimes::{Lifetimes, NEVER, Span};
use crate::scratch::{Request, Scratch};

/// TFLM's buffer alignment, `MicroArenaBufferAlignment()`.
pub const ALIGNMENT: u64 = 16;

/// A buffer in the head: where it ended up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placed<T> {
    /// The tensor or the scratch request.
    pub what: T,
    /// Bytes from the start of the arena.
    pub offset: u64,
    /// Bytes, not rounded.
    pub bytes: u64,
    /// The offset is the plan's; else the device's planner chose it.
    pub is_fixed: bool,
}

/// The head as TFLM will lay it out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Simulation {
    /// Bytes of the head: the largest offset plus rounded size.
    pub head: u64,
    /// Places of the tensors that take part, by [`TensorId`].
    pub tensors: Vec<Placed<TensorId>>,
    /// Places of the scratch requests.
    pub scratch: Vec<Placed<Request>>,
}

impl Simulation {
    /// How many buffers TFLM's planner handles.
    pub fn buffers(&self) -> usize {
        self.tensors.len() + self.scratch.len()
    }

    /// The layout for the checker: what the plan fixed is at multiples of `align`, the rest of TFLM's own alignment;
    /// tensors in `keep` are read after an invoke.
    pub fn layout(&self, align: u64, keep: &[TensorId]) -> Layout {
        let piece = |tag, offset, bytes, is_fixed| Piece {
            tag,
            offset,
            bytes,
            align: if is_fixed { align } else { ALIGNMENT },
        };
        let tensors = self
            .tensors
            .iter()
            .map(|p| piece(Tag::Tensor(p.what), p.offset, p.bytes, p.is_fixed));
        let scratch = self.scratch.iter().map(|p| {
            let tag = Tag::Scratch {
                operator: p.what.operator,
                request: p.what.index,
            };
            piece(tag, p.offset, p.bytes, false)
        });
        Layout {
            pieces: tensors.chain(scratch).collect(),
            head: self.head,
            keep: keep.to_vec(),
            libraries: &[],
            views_only: false,
        }
    }

    /// The place of a tensor, if it is in the head.
    pub fn tensor(&self, id: TensorId) -> Option<Placed<TensorId>> {
        let at = self.tensors.binary_search_by_key(&id, |p| p.what).ok()?;
        Some(self.tensors[at])
    }
}

/// Lays out the head as TFLM does, with `offline` offsets (an entry per tensor, -1 for "plan it online") or without.
///
/// Tensors that TFLM cannot size (dynamic shape, a type without a size) are left out; TFLM refuses such models.
///
/// # Errors
/// An offset below -1, a wrong number of offsets, or sizes that do not add up.
pub fn simulate(
    graph: &Graph<'_>,
    lifetimes: &Lifetimes,
    scratch: &Scratch,
    offline: Option<&[i32]>,
) -> Result<Simulation, Error> {
    if let Some(offsets) = offline
        && offsets.len() != graph.tensors.len()
    {
        return Err(Error::IndexOutOfRange {
            place: "offsets of the plan".into(),
            index: offsets.len() as i64,
            length: graph.tensors.len(),
        });
    }
    let mut buffers = Vec::new();
    let mut tensors = Vec::new();
    let mut push = |bytes: u64, span: Span, fixed: Option<u64>| {
        buffers.push(Buffer {
            size: bytes.next_multiple_of(ALIGNMENT),
            span,
            offset: fixed,
            next: None,
        });
    };
    for tensor in &graph.tensors {
        let entry = offline.map_or(-1, |o| o[tensor.id.index()]);
        let takes_part = match tensor.storage {
            Storage::Variable => entry != -1 && tensor.bytes != 0,
            _ => tensor.is_planned() || tensor.is_left_to_tflm(),
        };
        if !takes_part {
            continue;
        }
        let fixed = match entry {
            -1 => None,
            _ => Some(u64::try_from(entry).map_err(|_| Error::IndexOutOfRange {
                place: format!("offset of {}", tensor.label()),
                index: entry.into(),
                length: i32::MAX as usize,
            })?),
        };
        let span = lifetimes.tensor(tensor.id);
        push(tensor.bytes, span, fixed);
        tensors.push(Placed {
            what: tensor.id,
            offset: 0,
            bytes: tensor.bytes,
            is_fixed: fixed.is_some(),
        });
    }
    let mut requests: Vec<_> = scratch
        .requests()
        .iter()
        // In a subgraph that nothing runs, TFLM never fills such a request in.
        .filter(|r| lifetimes.operator(r.operator).first != NEVER)
        .map(|&r| Placed {
            what: r,
            offset: 0,
            bytes: r.bytes,
            is_fixed: false,
        })
        .collect();
    for request in &requests {
        push(
            request.bytes,
            lifetimes.operator(request.what.operator),
            None,
        );
    }
    let all = buffers
        .iter()
        .try_fold(0u64, |sum, b| sum.checked_add(b.size));
    let mut buffers = List(buffers);
    let head = greedy(&mut buffers);
    // Not so high that sums would have stopped at the largest number.
    if all.is_none() || head > MAX_HEAD {
        return Err(Error::IndexOutOfRange {
            place: "head of the arena".into(),
            index: i64::MAX,
            length: MAX_HEAD as usize,
        });
    }
    let offsets: Vec<u64> = buffers.0.iter().map(|b| b.offset.unwrap_or(0)).collect();
    let (first, rest) = offsets.split_at(tensors.len());
    for (placed, &offset) in tensors.iter_mut().zip(first) {
        placed.offset = offset;
    }
    for (placed, &offset) in requests.iter_mut().zip(rest) {
        placed.offset = offset;
    }
    Ok(Simulation {
        head,
        tensors,
        scratch: requests,
    })
}

/// More than any machine has.
const MAX_HEAD: u64 = 1 << 62;

/// A buffer for the greedy planner.
struct Buffer {
    size: u64,
    span: Span,
    offset: Option<u64>,
    next: Option<usize>,
}

struct List(Vec<Buffer>);

impl Buffers for List {
    type Bytes = u64;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn size(&self, index: usize) -> u64 {
        self.0[index].size
    }

    fn conflict(&self, a: usize, b: usize) -> bool {
        self.0[a].span.overlaps(self.0[b].span)
    }

    fn offset(&self, index: usize) -> Option<u64> {
        self.0[index].offset
    }

    fn place(&mut self, index: usize, offset: u64) {
        self.0[index].offset = Some(offset);
    }

    fn next(&self, index: usize) -> Option<usize> {
        self.0[index].next
    }

    fn set_next(&mut self, index: usize, next: Option<usize>) {
        self.0[index].next = next;
    }
}
