//! Why a model needs what it needs: what each step of planning saves, which tensors share bytes, and what stands in the way
//! of the next byte.
//!
//! The last is a moment: an operator with all that must be there while it starts, its outputs run into its inputs as far
//! as its kernel lets them.
//!
//! ```text
//!   36,864  input,  read for the last time
//!   36,864  output, from 16 bytes below the input on
//! - 36,848  in common
//! ```

pub(crate) mod words;

use crate::aliasing::{Level, Promises, Sharing, Taken, taken};
use crate::contract::Overlap;
use crate::error::Error;
use crate::graph::{Graph, OpId, Operator, TensorId};
use crate::interference::{Interference, Node, Rules};
use crate::lifetimes::{Lifetimes, Visit};
use crate::model::Model;
use crate::plan::{Options, Planned, Stripes, plan};
use crate::report::{Outcome, Striped};
use crate::steps::{Step, steps};
use crate::stored::{Setting, StoredPlan, Verdict};
use crate::target::Target;
use crate::tflm::ALIGNMENT;

/// Which plan is explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The one in the file.
    Stored,
    /// The one that would be made.
    New,
}

/// Why a model needs what it needs. Operators are named in words, since a new plan may have them in another order than
/// the file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The plan that the rest is about.
    pub subject: Subject,
    /// The file with it, whose tensors are meant: a new plan with row stripes has others than the file that came in.
    pub file: Vec<u8>,
    /// The kernels that it is for.
    pub kernels: Target,
    /// Its head in bytes.
    pub head_bytes: u64,
    /// The head by TFLM's own planner.
    pub greedy_head_bytes: u64,
    /// The head in bytes after each step of planning anew.
    pub steps: Vec<(Step, u64)>,
    /// What shares bytes.
    pub shared: Vec<Shared>,
    /// What stands in the way of a smaller head.
    pub limit: Limit,
    /// Targets and levels that need less.
    pub hints: Vec<Hint>,
    /// Why the file would stay without a new plan, or why that would save nothing.
    pub remark: Option<String>,
}

/// An output that shares bytes with an input of its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shared {
    /// The operator in words.
    pub operator: String,
    /// How, and how much.
    pub taken: Taken,
}

/// What stands in the way of a smaller head.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// Bytes that no placement is below, with these lifetimes and this sharing.
    pub bound_bytes: u64,
    /// Whether the head is proved to be the least even where it is above the bound.
    pub is_proved: bool,
    /// Whether the operators are in an order of which no other one has a lower peak, as far as tensors alone count.
    pub order_is_proved: bool,
    /// What gives the bound.
    pub cause: Cause,
}

/// What gives the bound.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// All that must be there at one time.
    Moment(Moment),
    /// Tensors that lie in one block because they are copies of each other or of its parts.
    Block(Vec<TensorId>),
}

/// All that must be there at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moment {
    /// The clock.
    pub clock: i32,
    /// The operator that starts, in words; `None` before the first one.
    pub operator: Option<String>,
    /// The tensors, largest first.
    pub tensors: Vec<Present>,
    /// The scratch memory, largest first: the operator in words, and its bytes, rounded up.
    pub scratch: Vec<(String, u64)>,
    /// Bytes that several of them have in common.
    pub shared_bytes: u64,
}

/// A tensor that must be there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Present {
    /// The tensor.
    pub tensor: TensorId,
    /// Its bytes, rounded up.
    pub bytes: u64,
    /// Why it is there.
    pub role: Role,
}

/// Why a tensor is there.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Role {
    /// The operator reads it, and nobody does later.
    LastRead,
    /// It is needed after the operator: by the one in words, or, `None`, when its subgraph is done.
    Needed(Option<String>),
    /// The operator in words uses it, and is still running the subgraph of this one.
    Held(String),
    /// The operator writes it. For each input, how far both may share bytes.
    Written(Vec<(TensorId, Closeness)>),
}

/// How far an output may lie over an input, and why not further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Closeness {
    /// They are one block: bytes are copied onto themselves.
    Merged,
    /// The kernel promises nothing that this level of sharing takes.
    Nothing,
    /// The kernel would allow it, but the input is needed later.
    NeededLater,
    /// The kernel would allow it, but the operator runs more than once, or something else writes one of the two.
    Repeated,
    /// The kernel keeps these distances.
    Apart(Overlap),
}

/// Other flags that need less.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Hint {
    /// The flags for `plan`.
    pub flags: String,
    /// The kernels that must be on the device.
    pub kernels: &'static str,
    /// The head in bytes.
    pub head_bytes: u64,
    /// The head of the plan that is explained, with the same kernels.
    pub instead_of_bytes: u64,
    /// The work that row stripes add, in percent of the model's.
    pub extra_percent: Option<f64>,
}

/// Explains the plan in the file `bytes`, if it has one that is right for the kernels that `options` name, else the one that
/// would be made. `None` when no plan is possible.
///
/// # Errors
/// As [`plan`].
pub fn explain(bytes: &[u8], options: &Options) -> Result<Option<Explanation>, Error> {
    let planned = steps(bytes, options)?;
    let Some((_, last)) = planned.last() else {
        return Ok(None);
    };
    if matches!(
        last.report.outcome,
        Outcome::CompiledOffsets { .. } | Outcome::NothingToPlan
    ) {
        return Ok(None);
    }
    let stored = Graph::read(Model::parse(bytes)?)?;
    let stored_verdict = judged(&stored, options)?;
    let new = Graph::read(Model::parse(&last.file)?)?;
    let (subject, graph, verdict) = match stored_verdict.is_right() {
        true => (Subject::Stored, &stored, stored_verdict),
        false => (Subject::New, &new, judged(&new, options)?),
    };
    let has_plan = verdict.is_right();
    let head_bytes = match &verdict.simulation {
        Some(simulation) if has_plan => simulation.head,
        _ => last.report.head_bytes,
    };
    let promises = Promises::allowed(graph, options);
    let place = |t| Some(verdict.simulation.as_ref()?.tensor(t)?.offset);
    let shared = taken(graph, &promises, place).into_iter();
    let shared = shared.map(|taken| Shared {
        operator: graph.operator(taken.operator).label(),
        taken,
    });
    let mut limit = limit(graph, options, &promises)?;
    limit.is_proved = head_bytes == last.report.head_bytes && last.report.optimal;
    limit.order_is_proved =
        last.report.order_proved && graph.is_reordered() == last.report.reordered;
    let file = match subject {
        Subject::Stored => bytes.to_vec(),
        Subject::New => last.file.clone(),
    };
    Ok(Some(Explanation {
        subject,
        file,
        kernels: options.kernels(),
        head_bytes,
        greedy_head_bytes: last.report.greedy_head_bytes,
        steps: planned
            .iter()
            .map(|(step, planned)| (*step, planned.report.head_bytes))
            .collect(),
        shared: shared.filter(|_| has_plan).collect(),
        limit,
        hints: hints(bytes, options, head_bytes, last)?,
        remark: last.report.explanation(),
    }))
}

/// What stands in the way of a smaller head for the file `bytes`, with its own order of operators and with as much shared as
/// `options` allow. Whether something is proved is not looked at.
///
/// # Errors
/// A file that cannot be read, or a scratch file that does not fit it.
pub fn limit_of(bytes: &[u8], options: &Options) -> Result<Limit, Error> {
    let graph = Graph::read(Model::parse(bytes)?)?;
    limit(&graph, options, &Promises::allowed(&graph, options))
}

fn judged(graph: &Graph<'_>, options: &Options) -> Result<Verdict, Error> {
    let setting = Setting {
        lifetimes: &Lifetimes::of(graph)?,
        scratch: &options.scratch_of(graph)?,
        align: ALIGNMENT,
        keep: &[],
        kernels: options.kernels(),
    };
    Ok(StoredPlan::read(graph).judged(graph, &setting))
}

/// The bound of the graph's order of operators, and what gives it.
fn limit(graph: &Graph<'_>, options: &Options, promises: &Promises) -> Result<Limit, Error> {
    let lifetimes = &Lifetimes::of(graph)?;
    let scratch = options.scratch_of(graph)?;
    let rules = Rules {
        align: options.alignment(),
        online: Some(&scratch),
        promises,
        ..Rules::tensors_alone()
    };
    let found = Interference::with_least_bound(graph, lifetimes, rules)?;
    let cause = match found.bound_clock {
        Some(clock) => {
            let sharing = Sharing::new(graph, lifetimes, rules);
            Cause::Moment(moment(&sharing, lifetimes, &found, clock))
        }
        None => {
            let size = |k: &usize| found.buffer(*k).map(|b| b.size);
            let largest = (0..found.nodes.len()).max_by_key(size);
            let node = largest.map(|k| &found.nodes[k]);
            let tensors = node.into_iter().flat_map(Node::tensors);
            Cause::Block(tensors.map(|(t, _)| t).collect())
        }
    };
    Ok(Limit {
        bound_bytes: found.bound,
        is_proved: false,
        order_is_proved: false,
        cause,
    })
}

/// All that is there at `clock`, which gives the bound of `found`.
fn moment(
    sharing: &Sharing<'_, '_>,
    lifetimes: &Lifetimes,
    found: &Interference,
    clock: i32,
) -> Moment {
    let graph = sharing.graph();
    let visit = lifetimes.visits.iter().rev().find(|v| v.clock == clock);
    let operator = visit.map(|v| v.operator);
    let mut tensors = Vec::new();
    let mut scratch = Vec::new();
    for (k, node) in found.nodes.iter().enumerate() {
        for (t, _) in node.tensors() {
            let pieces = sharing.pieces(t).filter(|p| p.span.contains(clock));
            let bytes = pieces.map(|p| p.size).sum();
            if bytes > 0 {
                tensors.push(Present {
                    tensor: t,
                    bytes,
                    role: role(sharing, lifetimes, found, operator, clock, t),
                });
            }
        }
        if let &Node::Scratch { operator, .. } = node
            && lifetimes.operator(operator).contains(clock)
        {
            let bytes = found.buffer(k).map_or(0, |b| b.size);
            scratch.push((graph.operator(operator).label(), bytes));
        }
    }
    tensors.sort_by_key(|p| (std::cmp::Reverse(p.bytes), p.tensor));
    scratch.retain(|&(_, bytes)| bytes > 0);
    scratch.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    let sum: u64 = tensors.iter().map(|p| p.bytes).sum();
    let sum = sum + scratch.iter().map(|&(_, bytes)| bytes).sum::<u64>();
    Moment {
        clock,
        operator: operator.map(|op| graph.operator(op).label()),
        tensors,
        scratch,
        shared_bytes: sum.saturating_sub(found.bound),
    }
}

/// Why a tensor is there at `clock`, when `operator` starts.
fn role(
    sharing: &Sharing<'_, '_>,
    lifetimes: &Lifetimes,
    found: &Interference,
    operator: Option<OpId>,
    clock: i32,
    tensor: TensorId,
) -> Role {
    let graph = sharing.graph();
    let operator = operator.map(|op| graph.operator(op));
    let is_written = operator.is_some_and(|op| op.outputs.contains(&tensor));
    let span = sharing.span(tensor);
    if let Some(op) = operator.filter(|_| is_written && span.first == clock) {
        let mut pairs: Vec<(TensorId, Closeness)> = Vec::new();
        for &input in op.inputs.iter().flatten() {
            let is_there = graph.tensor(input).is_planned() && sharing.span(input).contains(clock);
            if is_there && input != tensor && pairs.iter().all(|&(i, _)| i != input) {
                pairs.push((input, closeness(sharing, found, clock, input, tensor)));
            }
        }
        return Role::Written(pairs);
    }
    let is_read = operator.is_some_and(|op| op.inputs.contains(&Some(tensor)));
    if is_read && span.last == clock && !sharing.is_read_at_end(tensor) {
        return Role::LastRead;
    }
    let uses =
        |op: &Operator<'_>| op.inputs.contains(&Some(tensor)) || op.outputs.contains(&tensor);
    let visits = || lifetimes.visits.iter();
    let operator_at = |v: &Visit| graph.operator(v.operator);
    let mut later = visits().filter(|v| v.clock > clock).map(operator_at);
    if let Some(reader) = later.find(|op| op.inputs.contains(&Some(tensor))) {
        return Role::Needed(Some(reader.label()));
    }
    let mut running = visits().filter(|v| v.clock < clock).map(operator_at);
    let holder = running.find(|op| uses(op) && lifetimes.operator(op.id).contains(clock));
    match holder.filter(|_| !sharing.is_read_at_end(tensor)) {
        Some(op) => Role::Held(op.label()),
        None => Role::Needed(None),
    }
}

fn closeness(
    sharing: &Sharing<'_, '_>,
    found: &Interference,
    clock: i32,
    input: TensorId,
    output: TensorId,
) -> Closeness {
    let has = |node: &Node, tensor| node.tensors().any(|(t, _)| t == tensor);
    if found
        .nodes
        .iter()
        .any(|node| has(node, input) && has(node, output))
    {
        return Closeness::Merged;
    }
    let Some(promise) = sharing.promises().get(input, output) else {
        return Closeness::Nothing;
    };
    let bytes = |t| sharing.graph().tensor(t).bytes;
    let is_nothing =
        promise.input_above_output == bytes(output) && promise.output_above_input == bytes(input);
    if is_nothing {
        return Closeness::Nothing;
    }
    match sharing.overlap(input, output) {
        Some((from, _, promise)) if from == input => Closeness::Apart(promise),
        _ if sharing.span(input).last > clock || sharing.is_read_at_end(input) => {
            Closeness::NeededLater
        }
        _ => Closeness::Repeated,
    }
}

/// As many row stripes as are tried for a hint.
const HINTED: Stripes = Stripes::UpTo(100);

/// Other targets, and more of the same, that need less.
fn hints(
    bytes: &[u8],
    options: &Options,
    head_bytes: u64,
    last: &Planned,
) -> Result<Vec<Hint>, Error> {
    let mut trials = Vec::new();
    let level = Level::of(options.target);
    if options.level() < level {
        let mut free = options.clone();
        free.alias = None;
        trials.push((format!("--alias {level}"), free));
    }
    if !options.reorder {
        let mut free = options.clone();
        free.reorder = true;
        trials.push(("--reorder yes".to_owned(), free));
    }
    let others = [
        Target::TflmReference,
        Target::TflmCmsisNn(None),
        Target::TflmEspNn(None),
    ];
    for target in Target::ALL {
        let knows_more = match (options.target, target) {
            (Target::TflmCmsisNn(None), Target::TflmCmsisNn(core)) => core.is_some(),
            (Target::TflmEspNn(None), Target::TflmEspNn(chip)) => chip.is_some(),
            (Target::Tflm, other) => others.contains(&other),
            _ => false,
        };
        if knows_more {
            let mut other = options.clone();
            other.target = target;
            other.alias = None;
            trials.push((format!("--target {target}"), other));
        }
    }
    if options.stripes == Stripes::No && matches!(last.report.outcome, Outcome::Planned { .. }) {
        let mut striped = options.clone();
        striped.stripes = HINTED;
        trials.push((format!("--stripes {HINTED}"), striped));
    }
    let mut hints = Vec::new();
    for (flags, trial) in trials {
        let report = plan(bytes, &trial)?.report;
        let library = trial.target.libraries()[0];
        let known = last.report.libraries.iter().find(|l| l.library == library);
        let instead_of_bytes = match known {
            Some(known) if head_bytes == last.report.head_bytes => known.head_bytes,
            _ if library == options.target.libraries()[0] => head_bytes,
            _ => continue,
        };
        if report.head_bytes < instead_of_bytes {
            hints.push(Hint {
                flags,
                kernels: trial.kernels().kernels(),
                head_bytes: report.head_bytes,
                instead_of_bytes,
                extra_percent: report.stripes.as_ref().map(Striped::extra_percent),
            });
        }
    }
    Ok(hints)
}
