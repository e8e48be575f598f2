//! Planning a model: from the bytes of a file to the bytes of the same file with a plan in it.
//!
//! ```text
//! bytes -> Model -> Graph -> Lifetimes -> Interference -> solver -> offsets -> simulate -> check -> patch
//! ```
//!
//! Several ways to plan are tried; each is judged by the head that TFLM will really use with it. The best one is checked
//! independently, and written only if it is not above what TFLM needs without any plan.

use std::borrow::Cow;
use std::collections::BTreeSet;

use arenaplan_schema::patch::{self, PatchError};
use arenaplan_solver::{Limits, Planner, solve};

use crate::check::{self, Layout, Piece, Tag};
use crate::error::Error;
use crate::graph::{Graph, Storage, TensorId};
use crate::interference::{Interference, Node, Rules, solver_error};
use crate::lifetimes::{Lifetimes, NEVER};
use crate::model::Model;
use crate::report::{Outcome, Report, Sizes};
use crate::scratch::Scratch;
use crate::stored::{StoredPlan, Verdict};
use crate::target::Target;
use crate::tflm::{self, Simulation};

/// What the user asks of the planner.
#[derive(Clone, Debug)]
pub struct Options {
    /// The device side.
    pub target: Target,
    /// The planner to place buffers with.
    pub solver: Planner,
    /// How long the solver may search.
    pub limits: Limits,
    /// Offsets are multiples of this many bytes; a power of two.
    pub align: u64,
    /// Text of a scratch file: bytes measured on a device, which replace the built-in numbers.
    pub scratch: Option<String>,
    /// Graph inputs keep their values until the end of an invoke.
    pub keep_inputs: bool,
    /// Tensors that keep their values until the end of an invoke, by name or index.
    pub keep: Vec<String>,
    /// Tensors that are left to the device's planner, by name or index.
    pub online: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            target: Target::Tflm,
            solver: Planner::Auto,
            limits: Limits::default(),
            align: tflm::ALIGNMENT,
            scratch: None,
            keep_inputs: false,
            keep: Vec::new(),
            online: Vec::new(),
        }
    }
}

/// A planned model.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The file to write. When no plan was written into it, the input without a plan of ours.
    pub file: Vec<u8>,
    /// What was done, and the figures.
    pub report: Report,
}

/// Plans `bytes`, a `.tflite` file.
///
/// A file that this tool has planned before is planned again from its original, so the result is the same as planning
/// once. A plan of another tool is replaced, unless it is right and its head smaller, and then kept.
///
/// # Errors
/// The file cannot be read or planned, an option names a tensor that does not exist, or a tensor that should be kept
/// cannot be. [`Error::Internal`] when the plan made here fails its check; then nothing may be written.
pub fn plan(bytes: &[u8], options: &Options) -> Result<Planned, Error> {
    // Before anything else, so that what is no model at all is called that.
    Model::parse(bytes)?;
    let (original, changed) = match patch::original_of(bytes) {
        Ok(original) => (original, None),
        Err(
            e @ (PatchError::ChangedLength { .. }
            | PatchError::ChangedContent
            | PatchError::ProvenanceDamaged),
        ) => (Cow::Borrowed(bytes), Some(e)),
        Err(e) => return Err(patch_error(e)),
    };
    let model = Model::parse(&original)?;
    let graph = Graph::read(model)?;
    let job = Job::new(&graph, options)?;

    let unplanned = tflm::simulate(&graph, &job.scratch, None)?;
    let foreign = StoredPlan::read(&graph).judged(&graph, &job.scratch, tflm::ALIGNMENT, &job.keep);
    if let Some(op) = graph.operators().find(|o| o.has_compiled_offsets()) {
        let report = job.report_compiled(&op.label(), &unplanned, &foreign)?;
        return Ok(Planned {
            file: original.to_vec(),
            report,
        });
    }
    let candidate = job.best_candidate()?;
    job.check(&candidate)?;

    let mut report = job.report(&unplanned, &candidate)?;
    report
        .warnings
        .extend(changed.map(|e| format!("{e}; its plan is replaced by a new one on top")));
    report.warnings.extend(
        foreign.fault().map(|fault| {
            format!("the plan that was in the file is wrong and is replaced: {fault}")
        }),
    );
    report.outcome = job.choose(&unplanned, &foreign, &candidate);
    let file = match report.outcome {
        Outcome::Planned { .. } => job.write(&original, Some(&candidate.offsets))?,
        Outcome::ForeignPlanKept => {
            report.head_bytes = foreign.head_if_right().unwrap_or(report.head_bytes);
            report.optimal = report.head_bytes == report.sizes.bound_with_scratch_bytes;
            original.to_vec()
        }
        _ => {
            report.describe_head(&unplanned, false);
            // What another tool wrote into the file is no better than nothing, or it would have been kept.
            if foreign.exists() {
                job.write(&original, None)?
            } else {
                original.to_vec()
            }
        }
    };
    report.finish(&graph, &job.scratch);
    Ok(Planned { file, report })
}

/// A plan with what TFLM makes of it.
struct Candidate {
    offsets: Vec<i32>,
    simulation: Simulation,
    planner: Planner,
    /// How many buffers were placed together.
    nodes: usize,
}

/// All that planning one model needs.
struct Job<'g, 'a, 'o> {
    graph: &'g Graph<'a>,
    options: &'o Options,
    lifetimes: Lifetimes,
    scratch: Scratch,
    keep: Vec<TensorId>,
    online: BTreeSet<TensorId>,
    warnings: Vec<String>,
}

impl<'g, 'a, 'o> Job<'g, 'a, 'o> {
    fn new(graph: &'g Graph<'a>, options: &'o Options) -> Result<Self, Error> {
        let lifetimes = Lifetimes::of(graph)?;
        let scratch = match &options.scratch {
            Some(text) => Scratch::with_file(graph, text)?,
            None => Scratch::reference(graph),
        };
        let named = |names: &[String]| {
            names
                .iter()
                .map(|n| graph.find_tensor(n))
                .collect::<Result<Vec<_>, _>>()
        };
        let mut keep = named(&options.keep)?;
        if options.keep_inputs {
            keep.extend(&graph.subgraphs[0].inputs);
        }
        keep.retain(|&t| graph.tensor(t).is_planned());
        keep.sort_unstable();
        keep.dedup();
        let mut online: BTreeSet<_> = named(&options.online)?.into_iter().collect();
        online.extend(entries_read_for_variables(graph));
        let warnings = warnings(graph, &lifetimes, &scratch);
        Ok(Self {
            graph,
            options,
            lifetimes,
            scratch,
            keep,
            online,
            warnings,
        })
    }

    fn rules<'r>(&'r self, online: Option<&'r Scratch>) -> Rules<'r> {
        Rules {
            align: self.options.align,
            granule: tflm::ALIGNMENT,
            online,
            keep: &self.keep,
        }
    }

    /// Places tensors with room left for what the device places itself, and tensors alone; the least head that TFLM
    /// then has wins, the earlier one among equals.
    fn best_candidate(&self) -> Result<Candidate, Error> {
        let mut best: Option<Candidate> = None;
        for online in [Some(&self.scratch), None] {
            let interference =
                Interference::build(self.graph, &self.lifetimes, self.rules(online))?;
            if online.is_none()
                && let Some(best) = &best
                && best.nodes == interference.nodes.len()
            {
                break;
            }
            let solution = solve(
                &interference.problem,
                self.options.solver,
                &self.options.limits,
            )
            .map_err(solver_error)?;
            let mut offsets = vec![-1; self.graph.tensors.len()];
            for (node, &offset) in interference.nodes.iter().zip(&solution.placement.offsets) {
                if let Node::Tensor(t) = *node
                    && self.graph.tensor(t).is_planned()
                    && !self.online.contains(&t)
                {
                    offsets[t.index()] = i32::try_from(offset).map_err(|_| Error::TooLarge {
                        what: self.graph.tensor(t).label(),
                    })?;
                }
            }
            let simulation = tflm::simulate(self.graph, &self.scratch, Some(&offsets))?;
            if best
                .as_ref()
                .is_none_or(|b| simulation.head < b.simulation.head)
            {
                let nodes = interference.nodes.len();
                best = Some(Candidate {
                    offsets,
                    simulation,
                    planner: solution.planner,
                    nodes,
                });
            }
        }
        best.ok_or_else(|| Error::Internal {
            reason: "no planner gave an answer".into(),
        })
    }

    fn check(&self, candidate: &Candidate) -> Result<(), Error> {
        let layout = layout(&candidate.simulation, self.options.align, &self.keep);
        match check::check(self.graph, &layout).first() {
            None => Ok(()),
            // TFLM frees a kept tensor after its last reader; something it places itself may then come to lie there.
            Some(fault @ check::Violation::Overwritten { tensor, .. })
                if self.keep.contains(tensor) =>
            {
                Err(Error::CannotKeep {
                    tensor: self.graph.tensor(*tensor).label(),
                    reason: fault.describe(self.graph),
                })
            }
            Some(fault) => Err(Error::Internal {
                reason: fault.describe(self.graph),
            }),
        }
    }

    /// Whether our plan, the one in the file, or none gives TFLM the smallest head. Ours wins against an equal one, and
    /// whatever does not keep what the user asked for is out.
    fn choose(&self, unplanned: &Simulation, foreign: &Verdict, ours: &Candidate) -> Outcome {
        let none = check::check(self.graph, &layout(unplanned, 1, &self.keep))
            .is_empty()
            .then_some(unplanned.head);
        let theirs = foreign
            .head_if_right()
            .filter(|_| self.options.online.is_empty());
        let ours_head = ours.simulation.head;
        if ours.offsets.iter().all(|&o| o == -1) {
            Outcome::NothingToPlan
        } else if theirs.is_some_and(|t| t < ours_head && none.is_none_or(|n| t <= n)) {
            Outcome::ForeignPlanKept
        } else if none.is_some_and(|n| n < ours_head) {
            Outcome::WorseThanUnplanned {
                head_bytes: ours_head,
            }
        } else {
            Outcome::Planned {
                replaced: foreign.exists(),
            }
        }
    }

    /// The report of a model whose operator has arena offsets compiled in.
    fn report_compiled(
        &self,
        operator: &str,
        unplanned: &Simulation,
        foreign: &Verdict,
    ) -> Result<Report, Error> {
        let (graph, lifetimes, scratch) = (self.graph, &self.lifetimes, &self.scratch);
        let mut report =
            Report::of_file(graph, self.options, lifetimes, scratch, foreign, unplanned)?;
        report.outcome = Outcome::CompiledOffsets {
            operator: operator.to_owned(),
        };
        let faults = foreign
            .faults
            .iter()
            .map(|f| format!("the plan in the file is wrong: {f}"));
        report.warnings.extend(faults);
        if !foreign.exists() {
            report.warnings.push(format!(
                "{operator} needs the plan that its compiler writes, and there is none"
            ));
        }
        Ok(report)
    }

    fn report(&self, unplanned: &Simulation, candidate: &Candidate) -> Result<Report, Error> {
        let sizes = Sizes::of(self.graph, &self.lifetimes, &self.scratch, &self.keep)?;
        let mut report = Report::new(self.graph, self.options, sizes);
        report.greedy_head_bytes = unplanned.head;
        report.planner = candidate.planner.to_string();
        report.tensors_planned = candidate.offsets.iter().filter(|&&o| o != -1).count();
        report.warnings = self.warnings.clone();
        report.describe_head(&candidate.simulation, true);
        Ok(report)
    }

    /// Grafts the plan, or takes another tool's out, then reads the file back the way a device does and undoes it, before
    /// anyone gets the bytes.
    fn write(&self, original: &[u8], offsets: Option<&[i32]>) -> Result<Vec<u8>, Error> {
        let edit = patch::Edit {
            plan: offsets.map(<[i32]>::to_vec),
            operator_order: Vec::new(),
            stamp: patch::Stamp {
                tool_version: env!("CARGO_PKG_VERSION").into(),
                target: self.options.target.to_string(),
                options: options_text(self.options),
            },
        };
        let file = patch::graft(original, &edit).map_err(patch_error)?;
        let internal = |reason: String| Error::Internal { reason };
        let view =
            arenaplan_schema::view::Model::new(&file).map_err(|e| internal(e.to_string()))?;
        let read = view.offline_plan().map_err(|e| internal(e.to_string()))?;
        let read: Option<Vec<i32>> = read.map(|p| p.offsets().into_iter().collect());
        if read.as_deref() != offsets {
            return Err(internal(
                "the plan read back from the file is not the one written".into(),
            ));
        }
        if patch::strip(&file).map_err(patch_error)? != original {
            return Err(internal(
                "taking the plan out does not give the original back".into(),
            ));
        }
        Ok(file)
    }
}

/// The layout of a simulated head, for the checker.
pub(crate) fn layout(simulation: &Simulation, align: u64, keep: &[TensorId]) -> Layout {
    let tensors = simulation.tensors.iter().map(|p| Piece {
        tag: Tag::Tensor(p.what),
        offset: p.offset,
        bytes: p.bytes,
    });
    let scratch = simulation.scratch.iter().map(|p| Piece {
        tag: Tag::Scratch(p.what.operator),
        offset: p.offset,
        bytes: p.bytes,
    });
    Layout {
        pieces: tensors.chain(scratch).collect(),
        head: simulation.head,
        align,
        keep: keep.to_vec(),
    }
}

/// Entries that must be -1 because TFLM reads them for a variable of another subgraph: `AllocateVariables` looks up
/// the `i`-th variable of any subgraph in the `i`-th entry of the whole list. Where that is not -1, a variable of a
/// later subgraph never gets memory.
pub(crate) fn entries_read_for_variables(graph: &Graph<'_>) -> BTreeSet<TensorId> {
    graph
        .tensors
        .iter()
        .filter(|t| t.subgraph != 0 && t.table.is_variable())
        .map(|t| TensorId(t.index))
        .collect()
}

/// What the user should know about tensors that cannot be planned, and about models that TFLM cannot run.
pub(crate) fn warnings(graph: &Graph<'_>, lifetimes: &Lifetimes, scratch: &Scratch) -> Vec<String> {
    let mut warnings = Vec::new();
    for tensor in &graph.tensors {
        let reason = match tensor.storage {
            Storage::DynamicShape => {
                let shape: Vec<_> = tensor.shape.iter().map(i32::to_string).collect();
                format!(
                    "has the shape [{}]: a size that is known only at run time cannot be planned (-1, left to the device)",
                    shape.join(", ")
                )
            }
            Storage::UnknownType => format!(
                "has the type {}, which has no fixed size and cannot be planned",
                arenaplan_schema::names::tensor_type_name(tensor.ty)
            ),
            Storage::OutsideConstant => {
                "is a constant kept outside the FlatBuffer, which TFLM cannot read".into()
            }
            _ => continue,
        };
        warnings.push(format!("{} {reason}", tensor.label()));
    }
    let version = graph.model.root().version();
    if version != SCHEMA_VERSION {
        warnings.push(format!(
            "the schema version is {version}; TFLM runs version {SCHEMA_VERSION}"
        ));
    }
    for op in graph
        .operators()
        .filter(|o| !o.calls.is_empty() && o.code != o.stored_code)
    {
        warnings.push(format!(
            "{}: its code stands only in `deprecated_builtin_code`; TFLM of before autumn 2026 overlooks the subgraphs \
             it runs, and computes wrong numbers without a plan",
            op.label()
        ));
    }
    let mut stray: Vec<_> = scratch
        .requests()
        .iter()
        .filter(|r| lifetimes.operator(r.operator).first == NEVER)
        .map(|r| r.operator)
        .collect();
    stray.dedup();
    for op in stray {
        warnings.push(format!(
            "{} asks for scratch memory, but nothing runs its subgraph; TFLM does not handle that",
            graph.operator(op).label()
        ));
    }
    warnings
}

/// `TFLITE_SCHEMA_VERSION`, the only version that TFLM and LiteRT read.
const SCHEMA_VERSION: u32 = 3;

/// The options that shape a plan, as they are noted in the file.
fn options_text(options: &Options) -> String {
    let mut text = format!("solver={} align={}", options.solver, options.align);
    if options.keep_inputs {
        text.push_str(" keep-inputs");
    }
    for (flag, names) in [("keep", &options.keep), ("online", &options.online)] {
        for name in names {
            text.push_str(&format!(" {flag}={name}"));
        }
    }
    if options.scratch.is_some() {
        text.push_str(" scratch=file");
    }
    text
}

/// The patcher's error in this crate's terms.
pub(crate) fn patch_error(error: PatchError) -> Error {
    Error::Patch {
        reason: error.to_string(),
    }
}
