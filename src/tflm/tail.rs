//! The tail of TFLM's arena: what persists between invokes, growing down from the arena's end.
//!
//! TFLM allocates one after the other, each at the next lower address that is aligned:
//!
//! ```text
//! arena end | allocator, planner | resources | per subgraph: tensors, operators | options | kernel data | scratch
//!           | handles | variable tensors | tensors of inputs and outputs | ... temporary room ... | head | arena start
//! ```
//!
//! [`tail_bytes`] repeats this with the sizes of TFLM's structs; the rules are those of `micro_allocator.cc`,
//! `micro_interpreter.cc` and the kernels' `Init` and `Prepare`. The arena is taken to start and end at multiples of
//! 16; with an end that is not, up to 15 bytes more are lost.

mod kernels;

use std::collections::{BTreeMap, BTreeSet};

use arenaplan_schema::tflite::BuiltinOperator as Op;

use crate::graph::{Graph, OpId, Operator, TensorId};
use crate::scratch::Scratch;
use crate::target::Library;
use crate::tflm::scratch::scratch_requests;
pub(super) use kernels::quantized_channels;
use kernels::{buffers, data, kept, kept_by_concatenation, kernel};

/// Alignment of everything that kernels allocate: `MicroArenaBufferAlignment()`.
const ALIGNMENT: u64 = 16;

/// Which build of TFLM the sizes of structs are for.
///
/// Both follow the release of October 2026. Older ones take less for FULLY_CONNECTED, by 16 bytes on 64 bits and 8 on
/// 32; a newer one may differ in any row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// A 32-bit device: `MicroInterpreter`, without compression, structs as on RISC-V or Xtensa, where an `enum` has 4
    /// bytes. Bare-metal Arm compilers use 1, and take up to 12 bytes less for some operators' options. A
    /// `RecordingMicroInterpreter` takes 104 bytes more, before rounding.
    Bits32,
    /// The interpreter of TFLM's Python package on x86-64: recording allocator, compression built in. So it can be
    /// compared with what that package reports, and is an upper bound for plain builds on 64 bits.
    Bits64,
}

impl Width {
    /// Bytes of a pointer or a `size_t`.
    pub(super) fn pointer(self) -> u64 {
        self.pick(8, 4)
    }

    fn pick(self, bits64: u64, bits32: u64) -> u64 {
        match self {
            Width::Bits64 => bits64,
            Width::Bits32 => bits32,
        }
    }

    /// `TfLiteEvalTensor`: pointers to data and dimensions, and the type.
    fn eval_tensor(self) -> u64 {
        self.pick(24, 12)
    }

    /// `TfLiteTensor`.
    pub(super) fn tensor(self) -> u64 {
        self.pick(64, 40)
    }

    /// `TfLiteAffineQuantization`.
    pub(super) fn quantization(self) -> u64 {
        self.pick(24, 12)
    }
}

/// Bytes of the tail, and what they are for. Each section includes the bytes lost to its alignment, so that they add
/// up to `bytes`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TailEstimate {
    /// The whole tail.
    pub bytes: u64,
    /// The allocator and the planner themselves.
    pub allocator: u64,
    /// `MicroResourceVariables`: a table of the resources that VAR_HANDLE names. Its owner is the application, which
    /// may keep it elsewhere; it is counted as the Python package and TFLM's examples do.
    pub resource_table: u64,
    /// An entry for each subgraph and each tensor of the model, constants included.
    pub tensors: u64,
    /// An entry for each operator.
    pub operators: u64,
    /// The operators' options, decoded.
    pub options: u64,
    /// The kernels' own data, and the values of resources.
    pub kernels: u64,
    /// A pointer to each scratch buffer.
    pub scratch_handles: u64,
    /// Variable tensors.
    pub variables: u64,
    /// Tensors of the graph's inputs and outputs, as the application sees them, with their quantization.
    pub inputs_and_outputs: u64,
    /// Operators that TFLM has no kernel for. Only their entry is counted; the application's kernel adds to it.
    pub unknown_operators: Vec<OpId>,
}

/// The tail that a model will take with the reference kernels.
///
/// It is what `MicroInterpreter` has used after `AllocateTensors()`; `input()` and `output()` add nothing. Variable
/// tensors are taken to be planned online (-1), as they should be.
pub fn tail_bytes(graph: &Graph<'_>, width: Width) -> TailEstimate {
    tail_bytes_with(graph, &Scratch::reference(graph), width)
}

/// [`tail_bytes`] with other scratch requests, and with what the kernels of their library keep.
pub fn tail_bytes_with(graph: &Graph<'_>, scratch: &Scratch, width: Width) -> TailEstimate {
    Walk::of(graph, scratch, width).estimate
}

/// Bytes of one more tensor: its entry.
pub fn bytes_of_tensor(width: Width) -> u64 {
    width.eval_tensor()
}

/// Bytes of one more operator like `op`, with the kernels of `library`, and without its tensors. It is exact but for
/// alignment: any number of operators together take up to 15 bytes more or fewer. Resources are not counted.
pub fn bytes_of_operator(
    graph: &Graph<'_>,
    op: &Operator<'_>,
    library: Library,
    width: Width,
) -> u64 {
    let mut bytes = bytes_of_slice(width);
    bytes += kept(kernel(op), data(library, op, width), width);
    for buffer in buffers(library, graph, op, width) {
        let rounded = buffer.checked_next_multiple_of(ALIGNMENT);
        bytes = bytes.saturating_add(rounded.unwrap_or(LIMIT)).min(LIMIT);
    }
    let handles = scratch_requests(library, graph, op).len() as u64;
    bytes + handles * width.pointer()
}

/// As [`bytes_of_operator`], of a SLICE, which has neither options nor data.
pub fn bytes_of_slice(width: Width) -> u64 {
    width.pick(64, 32)
}

/// As [`bytes_of_operator`], of a CONCATENATION.
pub fn bytes_of_concatenation(width: Width) -> u64 {
    bytes_of_slice(width) + kept_by_concatenation(width)
}

/// How many resources the model's VAR_HANDLE operators name: what `MicroResourceVariables` needs room for.
pub fn resources(graph: &Graph<'_>) -> usize {
    resource_names(graph).len()
}

/// Whether TFLM's resolver of all operators (`MicroMutableOpResolver`) has a kernel for it.
pub fn known_in_tflm(op: &Operator<'_>) -> bool {
    kernel(op).is_some()
}

/// The allocations in order, and how far the tail had grown on the way.
pub(super) struct Walk {
    pub(super) estimate: TailEstimate,
    /// Used bytes in the end.
    pub(super) used: u64,
    /// Used bytes after the `Prepare` of each operator, in the order of preparation.
    pub(super) prepared: Vec<(OpId, u64)>,
    /// Used bytes when the head is planned.
    pub(super) at_planning: u64,
}

impl Walk {
    pub(super) fn of(graph: &Graph<'_>, scratch: &Scratch, width: Width) -> Self {
        Self::following(0, graph, scratch, width)
    }

    /// With `used` bytes of the tail taken by models that share the allocator and were prepared before: all figures count
    /// from the arena's end, and the allocator is there already.
    pub(super) fn following(used: u64, graph: &Graph<'_>, scratch: &Scratch, width: Width) -> Self {
        let library = scratch.library();
        let mut tail = Tail(used);
        let mut section = Sections(used);
        let mut estimate = TailEstimate::default();
        let pointer = width.pointer();

        // MicroAllocator::Create: SingleArenaBufferAllocator, GreedyMemoryPlanner, MicroAllocator.
        if used == 0 {
            for (bits64, bits32) in [(104, 36), (72, 44), (272, 36)] {
                tail.take(width.pick(bits64, bits32), pointer);
            }
        }
        estimate.allocator = section.end(tail);

        // MicroResourceVariables::Create.
        let resources = resource_names(graph);
        if !resources.is_empty() {
            tail.take(width.pick(16, 12), ALIGNMENT);
            tail.take(width.pick(40, 20) * resources.len() as u64, ALIGNMENT);
        }
        estimate.resource_table = section.end(tail);

        // MicroAllocator::StartModelAllocation: MicroBuiltinDataAllocator, SubgraphAllocations, eval tensors, nodes.
        tail.take(2 * pointer, pointer);
        estimate.allocator += section.end(tail);
        tail.take(width.pick(24, 8) * graph.subgraphs.len() as u64, pointer);
        for subgraph in &graph.subgraphs {
            tail.take(
                width.eval_tensor() * u64::from(subgraph.tensor_count),
                pointer,
            );
        }
        estimate.tensors = section.end(tail);
        for subgraph in &graph.subgraphs {
            tail.take(
                bytes_of_slice(width) * subgraph.operators.len() as u64,
                pointer,
            );
        }
        estimate.operators = section.end(tail);

        // MicroInterpreter::PrepareNodeAndRegistrationDataFromFlatbuffer.
        for op in graph.operators() {
            match kernel(op) {
                None => estimate.unknown_operators.push(op.id),
                Some(row) => {
                    if let Some(options) = row.options {
                        let block = options.on(width);
                        tail.take(block.bytes, block.align);
                    }
                }
            }
        }
        estimate.options = section.end(tail);

        // MicroInterpreterGraph::InitSubgraphs, PrepareSubgraphs.
        for op in graph.operators() {
            let data = data(library, op, width);
            if data != 0 {
                tail.take(data, ALIGNMENT);
            }
        }
        let mut prepared = Vec::new();
        let mut values = Resources::default();
        for op in graph.operators() {
            for bytes in buffers(library, graph, op, width) {
                tail.take(bytes, ALIGNMENT);
            }
            if let Some(bytes) = values.prepare(graph, op) {
                tail.take(bytes, ALIGNMENT);
            }
            prepared.push((op.id, tail.0));
        }
        estimate.kernels = section.end(tail);

        // MicroAllocator::FinishModelAllocation: scratch handles, then variables of each subgraph.
        if !scratch.is_empty() {
            tail.take(pointer * scratch.len() as u64, pointer);
        }
        estimate.scratch_handles = section.end(tail);
        for tensor in graph.tensors.iter().filter(|t| t.table.is_variable()) {
            tail.take(tensor.bytes, ALIGNMENT);
        }
        estimate.variables = section.end(tail);
        let at_planning = tail.0;

        // MicroInterpreter::AllocateTensors, after the plan.
        let main = &graph.subgraphs[0];
        for list in [&main.inputs, &main.outputs] {
            tail.take(pointer * list.len() as u64, ALIGNMENT);
            for &id in list {
                tail.take(width.tensor(), pointer);
                if let Some(channels) = quantized_channels(graph.tensor(id)) {
                    tail.take(width.quantization(), pointer);
                    tail.take(4 + 4 * channels, 4);
                }
            }
        }
        estimate.inputs_and_outputs = section.end(tail);
        estimate.bytes = tail.0 - used;
        Self {
            used: tail.0,
            estimate,
            prepared,
            at_planning,
        }
    }
}

/// How many bytes the tail has, counted from the arena's end. It stops growing at [`LIMIT`].
#[derive(Clone, Copy)]
struct Tail(u64);

/// More than any memory, and far from overflow when sizes are added: a file may ask for any size in its options.
const LIMIT: u64 = 1 << 60;

impl Tail {
    /// `SingleArenaBufferAllocator::AllocatePersistentBuffer`.
    fn take(&mut self, bytes: u64, align: u64) {
        let end = self.0.saturating_add(bytes).min(LIMIT);
        self.0 = end.next_multiple_of(align);
    }
}

/// Splits the tail into sections as it grows.
struct Sections(u64);

impl Sections {
    fn end(&mut self, tail: Tail) -> u64 {
        let bytes = tail.0 - self.0;
        self.0 = tail.0;
        bytes
    }
}

fn shared_name<'a>(op: &Operator<'a>) -> &'a str {
    op.table
        .builtin_options_as_var_handle_options()
        .and_then(|o| o.shared_name())
        .unwrap_or("")
}

/// Names of all resources: VAR_HANDLE operators of one name share one.
fn resource_names<'a>(graph: &Graph<'a>) -> BTreeSet<&'a str> {
    graph
        .operators()
        .filter(|op| op.code == Op::VAR_HANDLE)
        .map(shared_name)
        .collect()
}

/// Values of resources, allocated by the first ASSIGN_VARIABLE whose handle is known when it prepares
/// (`micro_resource_variable.cc`, `assign_variable.cc`). A handle that comes from another subgraph is not.
#[derive(Default)]
struct Resources<'a> {
    handles: BTreeMap<TensorId, &'a str>,
    allocated: BTreeSet<&'a str>,
}

impl<'a> Resources<'a> {
    fn prepare(&mut self, graph: &Graph<'a>, op: &Operator<'a>) -> Option<u64> {
        match op.code {
            Op::VAR_HANDLE => {
                self.handles.insert(*op.outputs.first()?, shared_name(op));
                None
            }
            Op::ASSIGN_VARIABLE => {
                let [Some(handle), Some(value)] = op.inputs[..] else {
                    return None;
                };
                let name = self.handles.get(&handle)?;
                self.allocated
                    .insert(name)
                    .then(|| graph.tensor(value).bytes)
            }
            _ => None,
        }
    }
}
