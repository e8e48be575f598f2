//! The reasons for a head, as an object in the output of `arenaplan inspect --format json`.

use serde::Serialize;

use super::explain_text::kind;
use crate::explain::{Cause, Closeness, Explanation, Moment, Present, Role, Shared, Subject};
use crate::graph::{Graph, TensorId};

/// What `why` stands for in JSON.
#[derive(Serialize)]
pub(super) struct Why {
    /// `stored`, or `new` for the plan that would be made.
    plan: &'static str,
    head_bytes: u64,
    steps: Vec<StepItem>,
    shared: Vec<SharedItem>,
    bound_bytes: u64,
    optimal: bool,
    order_proved: bool,
    moment: Option<MomentItem>,
    /// Tensors in one block that is as large as the bound.
    block: Option<Vec<String>>,
    hints: Vec<HintItem>,
    remark: Option<String>,
}

#[derive(Serialize)]
struct StepItem {
    step: &'static str,
    head_bytes: u64,
}

#[derive(Serialize)]
struct SharedItem {
    operator: String,
    input: String,
    output: String,
    kind: &'static str,
    bytes: u64,
    input_above_output: i64,
}

#[derive(Serialize)]
struct MomentItem {
    clock: i32,
    operator: Option<String>,
    tensors: Vec<PresentItem>,
    scratch: Vec<ScratchItem>,
    shared_bytes: u64,
}

#[derive(Serialize)]
struct PresentItem {
    tensor: String,
    bytes: u64,
    role: &'static str,
    /// The next operator that needs it, or the one that is running and holds it.
    needed_by: Option<String>,
    /// For an output, what it may share with each input.
    inputs: Vec<ClosenessItem>,
}

#[derive(Serialize)]
struct ClosenessItem {
    input: String,
    sharing: &'static str,
    least_input_above_output: Option<u64>,
    least_output_above_input: Option<u64>,
}

#[derive(Serialize)]
struct ScratchItem {
    operator: String,
    bytes: u64,
}

#[derive(Serialize)]
struct HintItem {
    flags: String,
    kernels: &'static str,
    head_bytes: u64,
    instead_of_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_cost_percent: Option<f64>,
}

impl Why {
    pub(super) fn new(graph: &Graph<'_>, why: &Explanation) -> Self {
        let label = |t: TensorId| graph.tensor(t).label();
        let (moment, block) = match &why.limit.cause {
            Cause::Moment(moment) => (Some(MomentItem::new(graph, moment)), None),
            Cause::Block(tensors) => (None, Some(tensors.iter().map(|&t| label(t)).collect())),
        };
        Self {
            plan: match why.subject {
                Subject::Stored => "stored",
                Subject::New => "new",
            },
            head_bytes: why.head_bytes,
            steps: why
                .steps
                .iter()
                .map(|&(step, head_bytes)| StepItem {
                    step: step.name(),
                    head_bytes,
                })
                .collect(),
            shared: why
                .shared
                .iter()
                .map(|shared| SharedItem::new(graph, shared))
                .collect(),
            bound_bytes: why.limit.bound_bytes,
            optimal: why.limit.is_proved,
            order_proved: why.limit.order_is_proved,
            moment,
            block,
            hints: why
                .hints
                .iter()
                .map(|hint| HintItem {
                    flags: hint.flags.clone(),
                    kernels: hint.kernels,
                    head_bytes: hint.head_bytes,
                    instead_of_bytes: hint.instead_of_bytes,
                    extra_cost_percent: (hint.extra_percent)
                        .map(|percent| (percent * 100.0).round() / 100.0),
                })
                .collect(),
            remark: why.remark.clone(),
        }
    }
}

impl SharedItem {
    fn new(graph: &Graph<'_>, shared: &Shared) -> Self {
        let taken = &shared.taken;
        Self {
            operator: shared.operator.clone(),
            input: graph.tensor(taken.input).label(),
            output: graph.tensor(taken.output).label(),
            kind: kind(taken.kind),
            bytes: taken.bytes,
            input_above_output: taken.distance,
        }
    }
}

impl MomentItem {
    fn new(graph: &Graph<'_>, moment: &Moment) -> Self {
        let scratch = moment.scratch.iter();
        Self {
            clock: moment.clock,
            operator: moment.operator.clone(),
            tensors: moment
                .tensors
                .iter()
                .map(|present| PresentItem::new(graph, present))
                .collect(),
            scratch: scratch
                .map(|(operator, bytes)| ScratchItem {
                    operator: operator.clone(),
                    bytes: *bytes,
                })
                .collect(),
            shared_bytes: moment.shared_bytes,
        }
    }
}

impl PresentItem {
    fn new(graph: &Graph<'_>, present: &Present) -> Self {
        let (role, needed_by, inputs) = match &present.role {
            Role::LastRead => ("last-read", None, &[][..]),
            Role::Needed(reader) => ("needed", reader.clone(), &[][..]),
            Role::Held(operator) => ("held", Some(operator.clone()), &[][..]),
            Role::Written(inputs) => ("written", None, &inputs[..]),
        };
        let inputs = inputs.iter();
        Self {
            tensor: graph.tensor(present.tensor).label(),
            bytes: present.bytes,
            role,
            needed_by,
            inputs: inputs
                .map(|&(input, closeness)| ClosenessItem::new(graph, input, closeness))
                .collect(),
        }
    }
}

impl ClosenessItem {
    fn new(graph: &Graph<'_>, input: TensorId, closeness: Closeness) -> Self {
        let (sharing, promise) = match closeness {
            Closeness::Merged => ("one-block", None),
            Closeness::Nothing => ("nothing-promised", None),
            Closeness::NeededLater => ("needed-later", None),
            Closeness::Repeated => ("repeated", None),
            Closeness::Apart(promise) => ("apart", Some(promise)),
        };
        Self {
            input: graph.tensor(input).label(),
            sharing,
            least_input_above_output: promise.map(|p| p.input_above_output),
            least_output_above_input: promise.map(|p| p.output_above_input),
        }
    }
}
