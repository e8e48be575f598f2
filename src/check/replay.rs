//! What a kernel reads and writes, in its order: the independent half of the proof that an overlap is harmless.
//!
//! For an operator and a kernel library the loops of the kernel are run over positions instead of values. Reads and
//! writes come out as byte ranges inside the tensors; whoever knows the addresses can tell whether a byte is read after
//! something else was written over it. Nothing is shared with the formulas of [`crate::contract`], which must come to
//! the same distances.
//!
//! Of the reads of one byte only the last one counts: if that one still finds the byte, so did the others. So loops do
//! not run over windows, but over the positions that the window leaves for good, and a convolution takes as many
//! events as it has input and output pixels.
//!
//! ```text
//! convolution, a pixel     write channels 0..n-1, read what no later pixel reads, write channel n-1
//! depthwise, a pixel       for each channel: read the channel of what no later pixel reads, write the channel
//! softmax, a row           for each element: read it, write it; what the passes before read is read again
//! memcpy                   a copy of its own kind: nothing happens when source and target are the same bytes, and
//!                          nobody knows what happens when they overlap otherwise
//! ```
//!
//! Sources: TFLM's `micro/kernels/*.cc` and `kernels/internal/reference/**`, CMSIS-NN's `Source/**`, ESP-NN's `src/**`.

mod cmsis_nn;
mod copies;
mod element;
mod esp_nn;
mod moves;
mod own;
mod places;
mod rows;
#[cfg(test)]
mod tests;
mod window;

use arenaplan_schema::tflite::{BuiltinOperator as Op, TensorType as Type};

use crate::graph::{Graph, Operator, Storage, Tensor};
use crate::target::Library;

pub(crate) use copies::copies;

/// One access of a kernel. Ranges are bytes inside the tensor, `start..end`; `input` and `output` are positions in the
/// operator's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// These bytes are read, for the last time at this place of the order.
    Read { input: usize, start: u64, end: u64 },
    /// These bytes are written.
    Write { output: usize, start: u64, end: u64 },
    /// `memcpy` of `bytes` from `from` in the input to `to` in the output.
    Copy {
        input: usize,
        from: u64,
        output: usize,
        to: u64,
        bytes: u64,
    },
    /// `memmove` of the same: all is read before anything is written, and nothing happens at equal addresses.
    Move {
        input: usize,
        from: u64,
        output: usize,
        to: u64,
        bytes: u64,
    },
}

/// Steps of loops that one operator may take. Every model for a microcontroller takes far fewer.
const MAX_STEPS: u64 = 12_000_000;

/// Runs the kernel of `op` in `library`. Returns false for an operator whose order is not known, also if some events
/// were emitted before that was found out: then every input byte may be read after every write.
#[cfg(test)]
pub(crate) fn replay(
    library: Library,
    graph: &Graph<'_>,
    op: &Operator<'_>,
    emit: &mut dyn FnMut(Event),
) -> bool {
    replay_within(library, graph, op, &mut { MAX_STEPS }, emit)
}

/// The same with a limit on steps, from which those taken are subtracted.
pub(crate) fn replay_within(
    library: Library,
    graph: &Graph<'_>,
    op: &Operator<'_>,
    steps: &mut u64,
    emit: &mut dyn FnMut(Event),
) -> bool {
    let limit = MAX_STEPS.min(*steps);
    let mut kernel = Kernel::new(graph, op, emit);
    kernel.left = limit;
    run(library, kernel, steps)
}

/// As [`replay_within`], where it does not matter in which order bytes are moved: a SLICE's come in one piece where they are one.
pub(crate) fn replay_moves(
    library: Library,
    graph: &Graph<'_>,
    op: &Operator<'_>,
    steps: &mut u64,
    emit: &mut dyn FnMut(Event),
) -> bool {
    let mut kernel = Kernel::new(graph, op, emit);
    kernel.left = MAX_STEPS.min(*steps);
    kernel.is_coarse = true;
    run(library, kernel, steps)
}

fn run(library: Library, mut kernel: Kernel<'_, '_, '_>, steps: &mut u64) -> bool {
    let limit = kernel.left;
    let done = match library {
        Library::Reference => reference(&mut kernel),
        Library::CmsisNn(core) => cmsis_nn::run(&mut kernel, core),
        Library::EspNn(chip) => esp_nn::run(&mut kernel, chip),
        Library::Arenaplan => own::run(&mut kernel),
    };
    let done = done.and_then(|()| kernel.finish());
    *steps -= limit - kernel.left;
    done.is_some()
}

/// Start and end of the bytes that `op` reads of its `input`-th input, where that is not all of it: SLICE with every library.
/// `None` also where that is not known, or takes more steps than there are.
pub(crate) fn part_read(
    graph: &Graph<'_>,
    op: &Operator<'_>,
    input: usize,
    steps: &mut u64,
) -> Option<Vec<(u64, u64)>> {
    if op.code != Op::SLICE || input != 0 || op.outputs.len() != 1 {
        return None;
    }
    let limit = MAX_STEPS.min(*steps);
    let mut nothing = |_| {};
    let mut kernel = Kernel::new(graph, op, &mut nothing);
    kernel.left = limit;
    let ranges = moves::slice_ranges(&mut kernel);
    *steps -= limit - kernel.left;
    ranges
}

/// Whether `library` runs the reference kernel of an operator, or one in the same order.
pub(crate) fn is_reference(library: Library, code: Op) -> bool {
    match library {
        Library::Reference => true,
        Library::CmsisNn(_) => !cmsis_nn::has(code),
        Library::EspNn(_) => !esp_nn::has(code),
        Library::Arenaplan => false,
    }
}

/// The portable kernels.
fn reference(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    match k.op.code {
        Op::CONV_2D => window::convolution(k),
        Op::DEPTHWISE_CONV_2D => window::depthwise(k),
        Op::AVERAGE_POOL_2D | Op::MAX_POOL_2D | Op::L2_POOL_2D => window::pool(k),
        Op::RESIZE_BILINEAR => window::resize_bilinear(k),
        Op::RESIZE_NEAREST_NEIGHBOR => window::resize_nearest_neighbor(k),
        Op::TRANSPOSE_CONV => window::transpose_convolution(k),
        Op::FULLY_CONNECTED => rows::fully_connected(k),
        Op::MEAN | Op::SUM | Op::REDUCE_MAX | Op::REDUCE_MIN | Op::REDUCE_ALL => rows::reduce(k),
        Op::ARG_MAX | Op::ARG_MIN => rows::arg(k),
        Op::SVDF => rows::consume_then_write(k),
        Op::BATCH_MATMUL => rows::batch_matmul(k, true),
        Op::CUMSUM => rows::cumulative_sum(k),
        Op::UNIDIRECTIONAL_SEQUENCE_LSTM => rows::lstm(k),
        Op::RESHAPE | Op::SQUEEZE => moves::memcpy(k),
        Op::CONCATENATION => moves::concatenation(k),
        Op::PACK => moves::pack(k),
        Op::SPLIT | Op::SPLIT_V => moves::split(k),
        Op::UNPACK => moves::unpack(k),
        Op::PAD | Op::PADV2 => moves::pad(k),
        Op::SLICE => moves::slice(k),
        Op::STRIDED_SLICE => moves::strided_slice(k),
        Op::TRANSPOSE => moves::transpose(k),
        Op::SPACE_TO_DEPTH | Op::DEPTH_TO_SPACE => moves::blocks(k),
        Op::GATHER => places::gather(k),
        Op::MIRROR_PAD => places::mirror_pad(k),
        Op::BROADCAST_TO => places::broadcast_to(k),
        Op::SPACE_TO_BATCH_ND | Op::BATCH_TO_SPACE_ND => places::space_and_batch(k),
        _ => element::run(k),
    }
}

/// A kernel while it runs.
struct Kernel<'g, 'a, 'e> {
    graph: &'g Graph<'a>,
    op: &'g Operator<'a>,
    emit: &'e mut dyn FnMut(Event),
    /// Steps that may still be taken.
    left: u64,
    /// Bytes written to each output so far.
    written: Vec<u64>,
    /// Inputs whose reads are told by events. All others are taken to be read once more when everything is written.
    streamed: Vec<bool>,
    /// Whether it is one of `arenaplan-runtime`.
    is_own: bool,
    /// Whether bytes may be moved in other pieces than the kernel's.
    is_coarse: bool,
}

impl<'g, 'a, 'e> Kernel<'g, 'a, 'e> {
    fn new(graph: &'g Graph<'a>, op: &'g Operator<'a>, emit: &'e mut dyn FnMut(Event)) -> Self {
        Self {
            graph,
            op,
            emit,
            left: MAX_STEPS,
            written: vec![0; op.outputs.len()],
            streamed: vec![false; op.inputs.len()],
            is_own: false,
            is_coarse: false,
        }
    }

    /// Input `i`; `None` when it is absent.
    fn input(&self, i: usize) -> Option<&'g Tensor<'a>> {
        self.op
            .inputs
            .get(i)
            .copied()
            .flatten()
            .map(|t| self.graph.tensor(t))
    }

    fn output(&self, i: usize) -> Option<&'g Tensor<'a>> {
        self.op.outputs.get(i).map(|&t| self.graph.tensor(t))
    }

    /// The reads of input `i` will be told, in order with the writes to `output`. Nothing is promised where the
    /// compiler may take accesses of the two for accesses of different memory.
    fn stream(&mut self, i: usize, output: &Tensor<'_>) -> Option<()> {
        let input = self.input(i)?;
        self.streamed[i] = self.is_own || may_alias(input.ty, output.ty);
        Some(())
    }

    /// Counts a step of a loop.
    fn step(&mut self, steps: u64) -> Option<()> {
        let left = self.left.checked_sub(steps);
        self.left = left.unwrap_or(0);
        left.map(|_| ())
    }

    fn read(&mut self, input: usize, start: u64, end: u64) -> Option<()> {
        self.step(1)?;
        if end > self.input(input)?.bytes || start > end {
            return None;
        }
        if start < end && self.streamed[input] {
            (self.emit)(Event::Read { input, start, end });
        }
        Some(())
    }

    fn write(&mut self, output: usize, start: u64, end: u64) -> Option<()> {
        self.step(1)?;
        if end > self.output(output)?.bytes || start > end {
            return None;
        }
        if start < end {
            self.written[output] += end - start;
            (self.emit)(Event::Write { output, start, end });
        }
        Some(())
    }

    /// `memcpy`, or `memmove` by the runtime's own kernels.
    fn copy(&mut self, input: usize, from: u64, output: usize, to: u64, bytes: u64) -> Option<()> {
        self.step(1)?;
        let fits = |at: u64, all: u64| at.checked_add(bytes).is_some_and(|end| end <= all);
        if !fits(from, self.input(input)?.bytes) || !fits(to, self.output(output)?.bytes) {
            return None;
        }
        if bytes > 0 {
            self.written[output] += bytes;
            (self.emit)(match self.is_own {
                false => Event::Copy {
                    input,
                    from,
                    output,
                    to,
                    bytes,
                },
                true => Event::Move {
                    input,
                    from,
                    output,
                    to,
                    bytes,
                },
            });
        }
        Some(())
    }

    fn read_all(&mut self, input: usize) -> Option<()> {
        self.read(input, 0, self.input(input)?.bytes)
    }

    fn write_all(&mut self, output: usize) -> Option<()> {
        self.write(output, 0, self.output(output)?.bytes)
    }

    /// The reads that no loop told, and whether the loops wrote everything: one that does not is not understood.
    fn finish(&mut self) -> Option<()> {
        for output in 0..self.op.outputs.len() {
            if self.written[output] < self.output(output)?.bytes {
                return None;
            }
        }
        for input in 0..self.op.inputs.len() {
            if let Some(bytes) = self.input(input).map(|t| t.bytes)
                && !self.streamed[input]
            {
                (self.emit)(Event::Read {
                    input,
                    start: 0,
                    end: bytes,
                });
            }
        }
        Some(())
    }

    /// The numbers in a constant input of 32 or 64 bits.
    fn constant(&self, input: usize) -> Option<Vec<i64>> {
        let tensor = self.input(input)?;
        if tensor.storage != Storage::Constant {
            return None;
        }
        let buffers = self.graph.model.root().buffers()?;
        let at = tensor.table.buffer() as usize;
        let data = (at < buffers.len()).then(|| buffers.get(at))?.data()?;
        let bytes = data.bytes();
        let count = usize::try_from(tensor.elements()).ok()?;
        let read: Vec<i64> = match tensor.ty {
            Type::INT32 => bytes
                .as_chunks()
                .0
                .iter()
                .map(|&b| i64::from(i32::from_le_bytes(b)))
                .collect(),
            Type::INT64 => bytes
                .as_chunks()
                .0
                .iter()
                .map(|&b| i64::from_le_bytes(b))
                .collect(),
            _ => return None,
        };
        (read.len() == count).then_some(read)
    }
}

/// Whether a C++ compiler must take memory read as `a` and memory written as `b` for the same memory: types that differ
/// in more than the sign do not alias, unless one of them is a character.
fn may_alias(a: Type, b: Type) -> bool {
    let class = |t| match t {
        Type::UINT16 => Type::INT16,
        Type::UINT32 => Type::INT32,
        Type::UINT64 => Type::INT64,
        t => t,
    };
    let is_char = |t| matches!(t, Type::INT8 | Type::UINT8 | Type::INT4);
    is_char(a) || is_char(b) || class(a) == class(b)
}

/// Bytes of an element.
fn element_bytes(tensor: &Tensor<'_>) -> Option<u64> {
    arenaplan_schema::names::tensor_type_size(tensor.ty).map(u64::from)
}

/// The shape by which the kernel runs; `None` if it is not known, or if it does not fit the tensor's bytes.
fn shape(tensor: &Tensor<'_>) -> Option<Vec<u64>> {
    let shape = tensor.prepared_shape.as_ref().unwrap_or(&tensor.shape);
    let shape: Vec<u64> = shape
        .iter()
        .map(|&d| u64::try_from(d).ok())
        .collect::<Option<_>>()?;
    (product(&shape)?.checked_mul(element_bytes(tensor)?)? == tensor.bytes).then_some(shape)
}

/// The shape with four dimensions, as `RuntimeShape` demands it of an image.
fn image(tensor: &Tensor<'_>) -> Option<[u64; 4]> {
    shape(tensor)?.try_into().ok()
}

/// The shape with ones in front.
fn extended<const N: usize>(shape: &[u64]) -> Option<[u64; N]> {
    let front = N.checked_sub(shape.len())?;
    let mut all = [1; N];
    all[front..].copy_from_slice(shape);
    Some(all)
}

fn product(dims: &[u64]) -> Option<u64> {
    dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d))
}
