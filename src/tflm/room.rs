//! The room that TFLM needs while it prepares a model, and the smallest arena that works.
//!
//! Before the head exists, its place is used for temporaries: requests for scratch, tensors that kernels look at in
//! `Prepare`, the table of lifetimes, and the planner's lists. For models with small tensors this, not the head,
//! decides how large the arena must be:
//!
//! ```text
//! arena start                                                                                     arena end
//! preparing  | scratch requests + 12 | tensors of one operator |            free             | tail so far |
//! planning   | scratch requests + 12 | subgraphs | lifetimes | planner's lists |    free     | tail so far |
//! running    | head                                                        |      free       | tail        |
//! ```
//!
//! Rules: `micro_allocator.cc` (`CommitStaticMemoryPlan`, `FinishPrepareNodeAllocations`), `micro_allocation_info.cc`,
//! `greedy_memory_planner.h`, `single_arena_buffer_allocator.cc`. No reference kernel uses temporaries while it runs.
//!
//! TFLM does not notice when what a kernel keeps grows into the temporaries of the same `Prepare`, and reads damaged
//! ones. Such an arena may seem to work; here both are counted, so the prediction can be a little above it (48 bytes
//! at most on TFLM's kernels one by one, with BATCH_MATMUL).

use arenaplan_schema::tflite::{BuiltinOperator as Op, TensorType as Type};

use super::tail::{Walk, Width, quantized_channels, tail_bytes_with};
use crate::graph::{Graph, Operator, TensorId};
use crate::scratch::Scratch;

/// Scratch requests that TFLM keeps room for beyond those already made: `kMaxScratchBuffersPerOp`.
const SPARE_REQUESTS: u64 = 12;

/// Bytes of the planner's lists for one buffer: `GreedyMemoryPlanner::per_buffer_size()`, ten `int`.
const PLANNER_BYTES_PER_BUFFER: u64 = 40;

/// Bytes that must be free between the arena's start and the *finished* tail for TFLM to get through preparing and
/// planning.
///
/// The tail is still smaller at that time, so this is the least `room` with `arena = room + tail` that suffices.
pub fn planning_room(graph: &Graph<'_>, scratch: &Scratch, width: Width) -> u64 {
    let walk = Walk::of(graph, scratch, width);
    let planning = planning_temporaries(graph, scratch.len(), width)
        .saturating_add(walk.at_planning.next_multiple_of(16));
    let preparing = preparing_arena(graph, &walk, scratch, width);
    planning.max(preparing).saturating_sub(walk.estimate.bytes)
}

/// The smallest arena in which TFLM's `AllocateTensors` and `Invoke` succeed, given the `head` that the plan leads to;
/// a multiple of 16. The arena must start at a multiple of 16 as well.
pub fn arena_bytes(graph: &Graph<'_>, head: u64, scratch: &Scratch, width: Width) -> u64 {
    let tail = tail_bytes_with(graph, scratch, width).bytes;
    let room = planning_room(graph, scratch, width);
    head.max(room)
        .saturating_add(tail)
        .checked_next_multiple_of(16)
        .unwrap_or(u64::MAX)
}

/// What lies on both sides of the tail while one model after the other is prepared by one allocator.
///
/// TFLM's `MicroAllocator` can be given to several interpreters (its `docs/memory_management.md` calls them multi-tenant): the
/// head is as large as the largest needs it, tails are added, and the allocator itself is there once. The temporaries of
/// each lie where the head of those before it is, above all tails made so far, so that the order in which `AllocateTensors`
/// is called matters where temporaries are larger than heads.
#[derive(Clone, Copy, Debug)]
pub struct Turns {
    width: Width,
    used: u64,
    head: u64,
    preparing: u64,
}

impl Turns {
    /// No model yet.
    pub fn new(width: Width) -> Self {
        Self {
            width,
            used: 0,
            head: 0,
            preparing: 0,
        }
    }

    /// Adds the next model, whose plan leads to `head`.
    pub fn add(&mut self, graph: &Graph<'_>, head: u64, scratch: &Scratch) {
        let walk = Walk::following(self.used, graph, scratch, self.width);
        let planning = planning_temporaries(graph, scratch.len(), self.width)
            .saturating_add(walk.at_planning.next_multiple_of(16));
        let preparing = preparing_arena(graph, &walk, scratch, self.width);
        self.used = walk.used;
        self.head = self.head.max(head);
        self.preparing = self.preparing.max(planning).max(preparing);
    }

    /// Bytes of all tails together.
    pub fn tail_bytes(&self) -> u64 {
        self.used
    }

    /// Bytes that must be free above all tails for TFLM to get through preparing and planning each model in its turn.
    pub fn planning_room(&self) -> u64 {
        self.preparing.saturating_sub(self.used)
    }

    /// The smallest arena for all models, a multiple of 16.
    pub fn arena_bytes(&self) -> u64 {
        let room = self.head.max(self.planning_room());
        room.saturating_add(self.used)
            .checked_next_multiple_of(16)
            .unwrap_or(u64::MAX)
    }
}

/// What lies above the tail while the head is planned.
fn planning_temporaries(graph: &Graph<'_>, scratch_count: usize, width: Width) -> u64 {
    let scratch = scratch_count as u64;
    // What takes part in the plan: see `simulate`.
    let planned = graph
        .tensors
        .iter()
        .filter(|t| t.is_planned() || t.is_left_to_tflm());
    let buffers = planned.count() as u64 + scratch;
    let pointer = width.pointer();
    let mut temp = Temp(request_bytes(width) * (scratch + SPARE_REQUESTS));
    temp.take(pointer * graph.subgraphs.len() as u64, pointer);
    // AllocationInfo: bytes, where to put the pointer, and five words.
    let entry = 2 * pointer + 16;
    temp.take(entry * (graph.tensors.len() as u64 + scratch), pointer);
    temp.take(PLANNER_BYTES_PER_BUFFER * buffers, 16);
    temp.0
}

/// The largest arena that the `Prepare` of some operator needs.
fn preparing_arena(graph: &Graph<'_>, walk: &Walk, scratch: &Scratch, width: Width) -> u64 {
    let mut requests = scratch.requests().iter().peekable();
    let mut made = 0;
    let mut most = 0;
    for (&(_, tail), op) in walk.prepared.iter().zip(graph.operators()) {
        let mut temp = Temp(request_bytes(width) * (made + SPARE_REQUESTS));
        for id in prepare_tensors(graph, op) {
            temp.take(width.tensor(), width.pointer());
            if let Some(channels) = quantized_channels(graph.tensor(id)) {
                temp.take(width.quantization(), width.pointer());
                temp.take(4 + 4 * channels, 4);
            }
        }
        most = most.max(temp.0.saturating_add(tail));
        while requests.next_if(|r| r.operator == op.id).is_some() {
            made += 1;
        }
    }
    most
}

/// `ScratchBufferRequest`: bytes, operator, subgraph.
fn request_bytes(width: Width) -> u64 {
    width.pointer() + 8
}

/// The temporary area, growing up from the arena's start.
struct Temp(u64);

impl Temp {
    /// `SingleArenaBufferAllocator::AllocateTemp`.
    fn take(&mut self, bytes: u64, align: u64) {
        self.0 = self.0.next_multiple_of(align).saturating_add(bytes);
    }
}

/// The tensors that an operator's `Prepare` has made for it, in order, each time it asks: none is given back before
/// the operator is done.
fn prepare_tensors(graph: &Graph<'_>, op: &Operator<'_>) -> Vec<TensorId> {
    let input = |i: usize| op.inputs.get(i).copied().flatten();
    let output = |i: usize| op.outputs.get(i).copied();
    let ty = |t: Option<TensorId>| t.map(|t| graph.tensor(t).ty);
    let list: Vec<Option<TensorId>> = match op.code {
        // conv_common.cc, depthwise_conv_common.cc: once for the shapes, once for the quantization.
        Op::CONV_2D | Op::DEPTHWISE_CONV_2D => {
            vec![
                output(0),
                input(0),
                input(1),
                input(0),
                input(1),
                input(2),
                output(0),
            ]
        }
        // transpose_conv.cc: the same if quantized; input 0 is the shape.
        Op::TRANSPOSE_CONV => {
            let mut list = vec![output(0), input(2), input(1)];
            if ty(input(2)) != Some(Type::FLOAT32) {
                list.extend([input(2), input(1), input(3), output(0)]);
            }
            list
        }
        // reduce_common.cc
        Op::MEAN | Op::SUM => {
            let mut list = vec![input(0), output(0), input(1), input(0), input(1)];
            if ty(input(0)) == Some(Type::INT8) {
                list.push(output(0));
            }
            list
        }
        Op::REDUCE_MAX | Op::REDUCE_MIN | Op::REDUCE_ALL => {
            let mut list = vec![input(0), input(1)];
            if ty(input(0)) == Some(Type::INT8) {
                list.push(output(0));
            }
            list.extend([input(0), output(0), input(1)]);
            list
        }
        // concatenation.cc: the first input and the output, then every input, then the output.
        Op::CONCATENATION => {
            let mut list = vec![input(0), output(0)];
            list.extend(&op.inputs);
            list
        }
        // tanh.cc: the input once more, for its scale.
        Op::TANH => vec![input(0), output(0), input(0)],
        // activations.cc, comparisons.cc, detection_postprocess.cc: inputs alone.
        Op::RELU6
        | Op::EQUAL
        | Op::NOT_EQUAL
        | Op::GREATER
        | Op::GREATER_EQUAL
        | Op::LESS
        | Op::LESS_EQUAL => op.inputs.clone(),
        Op::CUSTOM if op.custom == Some("TFLite_Detection_PostProcess") => op.inputs.clone(),
        // if.cc, split.cc: the condition, the axis.
        Op::IF | Op::SPLIT => vec![input(0)],
        Op::SPLIT_V => vec![input(2)],
        // batch_to_space_nd.cc, space_to_batch_nd.cc, reshape_common.cc
        Op::BATCH_TO_SPACE_ND | Op::SPACE_TO_BATCH_ND | Op::RESHAPE => vec![input(0), output(0)],
        // assign_variable.cc, read_variable.cc
        Op::ASSIGN_VARIABLE => vec![input(1)],
        Op::READ_VARIABLE => vec![output(0)],
        // Kernels without a Prepare, or with one that looks at no tensor.
        Op::ARG_MAX
        | Op::ARG_MIN
        | Op::CALL_ONCE
        | Op::FLOOR
        | Op::LOGICAL_AND
        | Op::LOGICAL_OR
        | Op::MAXIMUM
        | Op::MINIMUM
        | Op::NEG
        | Op::PACK
        | Op::SHAPE
        | Op::UNPACK
        | Op::VAR_HANDLE
        | Op::WHILE => vec![],
        // The others: every input that is there, and every output. So are unknown kernels taken.
        _ => op
            .inputs
            .iter()
            .copied()
            .chain(op.outputs.iter().map(|&t| Some(t)))
            .collect(),
    };
    list.into_iter().flatten().collect()
}
