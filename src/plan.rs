//! Planning a model: from the bytes of a file to the bytes of the same file with a plan in it.
//!
//! ```text
//! bytes -> Model -> Graph -> Schedule -> Lifetimes -> Interference -> solver -> offsets -> simulate -> check -> patch
//! ```
//!
//! Several ways to plan are tried; each is judged by the head that TFLM will really use with it. The best one is checked
//! independently, and written only if it is not above what TFLM needs without any plan.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Instant;

use arenaplan_schema::patch::{self, PatchError};
use arenaplan_solver::{Limits, Planner, Problem, Stop, solve};

use crate::check::{self, Tag, Violation};
use crate::error::Error;
use crate::graph::{Graph, Storage, TensorId};
use crate::interference::{Interference, Node, Rules, solver_error};
use crate::lifetimes::Lifetimes;
use crate::model::Model;
use crate::report::{Outcome, Report, warnings};
use crate::scratch::Scratch;
use crate::stored::{StoredPlan, Verdict};
use crate::target::Target;
use crate::tflm::{self, Simulation};

mod order;

/// What the user asks of the planner.
#[derive(Clone, Debug)]
pub struct Options {
    /// The device side.
    pub target: Target,
    /// The planner to place buffers with.
    pub solver: Planner,
    /// How long the solver may search. A time limit is for all that is tried with one model; a plan on which it had an
    /// influence says so in [`Report::warnings`].
    pub limits: Limits,
    /// Offsets are multiples of this many bytes: a power of two up to 4,096. TFLM rounds all sizes up to 16, so less
    /// makes no difference there.
    pub align: u64,
    /// Text of a scratch file: bytes measured on a device, which replace the built-in numbers.
    pub scratch: Option<String>,
    /// Graph inputs keep their values until the end of an invoke.
    pub keep_inputs: bool,
    /// Tensors that keep their values until the end of an invoke, by name or index.
    pub keep: Vec<String>,
    /// Tensors that are left to the device's planner, by name or index.
    pub online: Vec<String>,
    /// Operators may be put into another order, where that saves memory.
    pub reorder: bool,
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
            reorder: true,
        }
    }
}

impl Options {
    /// The scratch requests of a model: those of the scratch file, where there is one, else the reference kernels'.
    ///
    /// # Errors
    /// [`Error::Scratch`] for a file that does not fit the model.
    pub fn scratch_of(&self, graph: &Graph<'_>) -> Result<Scratch, Error> {
        match &self.scratch {
            Some(text) => Scratch::with_file(graph, text),
            None => Ok(Scratch::reference(graph)),
        }
    }
}

/// The largest alignment that can be asked for.
const MAX_ALIGN: u64 = 4096;

/// An offset that nothing else reaches.
const OUT_OF_THE_WAY: u64 = 1 << 30;

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
    if !options.align.is_power_of_two() || options.align > MAX_ALIGN {
        return Err(Error::Option {
            name: "align",
            reason: format!(
                "{} is not a power of two from 1 to {MAX_ALIGN}",
                options.align
            ),
        });
    }
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

    let unplanned = tflm::simulate(&graph, &job.lifetimes, &job.scratch, None)?;
    let foreign = StoredPlan::read(&graph).judged(
        &graph,
        &job.lifetimes,
        &job.scratch,
        tflm::ALIGNMENT,
        &job.keep,
    );
    if let Some(op) = graph.operators().find(|o| o.has_compiled_offsets()) {
        let mut report = job.report_compiled(&op.label(), &unplanned, &foreign)?;
        report.warnings.extend(changed.map(|e| e.to_string()));
        return Ok(Planned {
            file: original.to_vec(),
            report,
        });
    }
    let file_sizes = job.sizes()?;
    let schedule = order::search(&job);
    let moved = schedule.as_ref().filter(|s| !s.is_unchanged());
    let moved = moved.map(|s| (graph.reordered(&s.orders), s));
    let other = moved.as_ref().map(|(graph, s)| job.in_order(graph, s));
    let other = other.transpose()?;
    let (best, candidate) = order::better(&job, &file_sizes, other.as_ref())?;

    let outcome = job.choose(&unplanned, &foreign, &candidate);
    let is_planned = matches!(outcome, Outcome::Planned { .. });
    let in_use = if is_planned { best } else { &job };
    let mut report = in_use.report(&unplanned, &foreign, &candidate)?;
    report.outcome = outcome;
    report.reordered = !in_use.orders.is_empty();
    report.file_order_bound_bytes = file_sizes.bound_bytes;
    report.file_order_bound_with_scratch_bytes = file_sizes.bound_with_scratch_bytes;
    let least = other.as_ref().map(Job::sizes).transpose()?;
    let least = least.unwrap_or(file_sizes).bound_with_scratch_bytes;
    report.order_proved = schedule.as_ref().is_some_and(|s| s.is_proved)
        && report.sizes.bound_with_scratch_bytes <= least;
    report
        .warnings
        .extend(changed.map(|e| format!("{e}; its plan is replaced by a new one on top")));
    report.warnings.extend(foreign.fault().map(|fault| {
        let head = foreign
            .simulation
            .as_ref()
            .map(|s| format!(" (head {} bytes)", s.head));
        let head = head.unwrap_or_default();
        format!("the plan that was in the file{head} is wrong and is replaced: {fault}")
    }));
    let file = match report.outcome {
        Outcome::Planned { .. } => in_use.write(&graph, Some(&candidate.offsets))?,
        Outcome::ForeignPlanKept => {
            report.planner = "stored".into();
            report.tensors_planned = foreign.tensors_planned();
            report.head_bytes = foreign.head_if_right().unwrap_or(report.head_bytes);
            report.optimal = report.head_bytes == report.sizes.bound_with_scratch_bytes;
            original.to_vec()
        }
        _ => {
            report.describe_head(&unplanned, false);
            // What another tool wrote into the file is no better than nothing, or it would have been kept.
            if foreign.exists() {
                job.write(&graph, None)?
            } else {
                original.to_vec()
            }
        }
    };
    report.file_bytes_before = original.len();
    report.file_bytes = file.len();
    report.finish(in_use.graph, &in_use.scratch);
    Ok(Planned { file, report })
}

/// A plan with what TFLM makes of it.
struct Candidate {
    offsets: Vec<i32>,
    simulation: Simulation,
    planner: Planner,
    /// Whether the time limit ended the search.
    is_late: bool,
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
    /// When the time limit began.
    start: Instant,
    /// Orders to write, of the subgraphs whose operators are not in the file's order.
    orders: Vec<patch::OperatorOrder>,
}

impl<'g, 'a, 'o> Job<'g, 'a, 'o> {
    fn new(graph: &'g Graph<'a>, options: &'o Options) -> Result<Self, Error> {
        let lifetimes = Lifetimes::of(graph)?;
        let scratch = options.scratch_of(graph)?;
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
        // What is outside the arena keeps its value anyway.
        keep.retain(|&t| {
            !matches!(
                graph.tensor(t).storage,
                Storage::Constant | Storage::Variable | Storage::ResourceHandle | Storage::Empty
            )
        });
        if let Some(&t) = keep.iter().find(|&&t| !graph.tensor(t).is_planned()) {
            return Err(Error::CannotKeep {
                tensor: graph.tensor(t).label(),
                reason: "it is left to the device".into(),
            });
        }
        keep.sort_unstable();
        keep.dedup();
        let mut online: BTreeSet<_> = named(&options.online)?.into_iter().collect();
        online.extend(tflm::entries_read_for_variables(graph));
        let mut warnings = warnings(graph, &lifetimes, &scratch);
        if !keep.is_empty() {
            warnings.push(
                "what is kept is safe from the scratch memory of TFLM's reference kernels; with other kernels, give \
                 theirs with --scratch"
                    .into(),
            );
        }
        for tensor in named(&options.online)?.into_iter().map(|t| graph.tensor(t)) {
            if !tensor.is_planned() {
                warnings.push(format!(
                    "{} would not have been planned anyway",
                    tensor.label()
                ));
            }
        }
        Ok(Self {
            graph,
            options,
            lifetimes,
            scratch,
            keep,
            online,
            warnings,
            start: Instant::now(),
            orders: Vec::new(),
        })
    }

    /// What is left of the limits.
    fn limits(&self) -> Limits {
        let limits = self.options.limits.clone();
        match limits.time {
            Some(time) => limits.with_time(time.saturating_sub(self.start.elapsed())),
            None => limits,
        }
    }

    fn rules<'r>(&'r self, online: Option<&'r Scratch>) -> Rules<'r> {
        Rules {
            align: self.options.align,
            granule: tflm::ALIGNMENT,
            online,
            keep: &self.keep,
        }
    }

    /// Of several ways to plan, the one that is right and gives TFLM the least head, the earlier one among equals.
    fn best_candidate(&self) -> Result<Candidate, Error> {
        let with_scratch = self.interference(self.rules(Some(&self.scratch)))?;
        let mut tries = vec![self.solve(&with_scratch, &[])?];
        let tensors_alone = self.interference(self.rules(None))?;
        if tensors_alone.nodes.len() < with_scratch.nodes.len() {
            tries.push(self.solve(&tensors_alone, &[])?);
        }
        if !self.keep.is_empty() {
            // TFLM frees a kept tensor after its last reader, and puts scratch into the lowest gap. Above everything
            // else a kept tensor is safe from that.
            tries.push(self.solve(&with_scratch, &self.keep)?);
        }
        // Also what lost might have won with more time.
        let is_late = tries.iter().any(|candidate| candidate.is_late);
        let mut best: Option<Candidate> = None;
        let mut fault = None;
        for candidate in tries {
            if best
                .as_ref()
                .is_some_and(|b| b.simulation.head <= candidate.simulation.head)
            {
                continue;
            }
            match self.check(&candidate) {
                Ok(()) => best = Some(candidate),
                Err(e @ (Error::TooManySteps { .. } | Error::Internal { .. })) => return Err(e),
                Err(e) => fault = fault.or(Some(e)),
            }
        }
        let best = best.map(|best| Candidate { is_late, ..best });
        best.ok_or_else(|| {
            fault.unwrap_or(Error::Internal {
                reason: "no planner gave an answer".into(),
            })
        })
    }

    fn interference(&self, rules: Rules<'_>) -> Result<Interference, Error> {
        Interference::build(self.graph, &self.lifetimes, rules)
    }

    /// Places the nodes and simulates the plan; tensors in `above` go on top of all others.
    fn solve(&self, interference: &Interference, above: &[TensorId]) -> Result<Candidate, Error> {
        let is_above = |node: &Node| matches!(node, Node::Tensor(t) if above.contains(t));
        let below: Vec<usize> = (0..interference.nodes.len())
            .filter(|&i| !is_above(&interference.nodes[i]))
            .collect();
        let buffers: Vec<_> = interference.problem.buffers().map(|(_, b)| *b).collect();
        let problem = match below.len() == buffers.len() {
            true => None,
            false => {
                let part = below.iter().map(|&i| buffers[i]).collect();
                Some(Problem::from_lifetimes(part).map_err(solver_error)?)
            }
        };
        let problem = problem.as_ref().unwrap_or(&interference.problem);
        let solution = solve(problem, self.options.solver, &self.limits()).map_err(solver_error)?;
        let mut offsets = vec![-1; self.graph.tensors.len()];
        let placed = below.iter().zip(&solution.placement.offsets);
        for (&i, &offset) in placed {
            self.set(&mut offsets, &interference.nodes[i], offset)?;
        }
        let lift = |offsets: &mut [i32], mut top: u64| -> Result<(), Error> {
            for (node, buffer) in interference
                .nodes
                .iter()
                .zip(&buffers)
                .filter(|(n, _)| is_above(n))
            {
                top = top.next_multiple_of(buffer.align);
                self.set(offsets, node, top)?;
                top += buffer.size;
            }
            Ok(())
        };
        if !above.is_empty() {
            // Where TFLM ends that knows nothing of them, which may be higher than planned.
            lift(&mut offsets, OUT_OF_THE_WAY)?;
            let others = self.simulate(&offsets)?;
            let tensors = others.tensors.iter().filter(|p| !above.contains(&p.what));
            let tensors = tensors.map(|p| p.offset + p.bytes);
            let tops = tensors.chain(others.scratch.iter().map(|p| p.offset + p.bytes));
            lift(&mut offsets, tops.max().unwrap_or(0))?;
        }
        let simulation = self.simulate(&offsets)?;
        Ok(Candidate {
            offsets,
            simulation,
            planner: solution.planner,
            is_late: solution.stopped == Some(Stop::Time),
        })
    }

    /// What TFLM makes of these offsets.
    fn simulate(&self, offsets: &[i32]) -> Result<Simulation, Error> {
        tflm::simulate(self.graph, &self.lifetimes, &self.scratch, Some(offsets))
    }

    /// Notes the offset of a tensor that the plan may place.
    fn set(&self, offsets: &mut [i32], node: &Node, offset: u64) -> Result<(), Error> {
        if let Node::Tensor(t) = *node
            && self.graph.tensor(t).is_planned()
            && !self.online.contains(&t)
        {
            offsets[t.index()] = i32::try_from(offset).map_err(|_| Error::TooLarge {
                what: self.graph.tensor(t).label(),
            })?;
        }
        Ok(())
    }

    /// The independent check of what TFLM will make of a plan, and that this is the plan.
    fn check(&self, candidate: &Candidate) -> Result<(), Error> {
        let internal = |reason| Err(Error::Internal { reason });
        for (tensor, &offset) in self.graph.tensors.iter().zip(&candidate.offsets) {
            let placed = candidate
                .simulation
                .tensor(tensor.id)
                .map(|p| p.offset as i64);
            if offset != -1 && placed != Some(offset.into()) {
                return internal(format!("{} is not where the plan puts it", tensor.label()));
            }
        }
        let align = self.options.align.max(tflm::ALIGNMENT);
        let layout = candidate.simulation.layout(align, &self.keep);
        match check::check(self.graph, &layout).into_iter().next() {
            None => Ok(()),
            Some(Violation::TooDeep { operator }) => Err(Error::TooManySteps { operator }),
            // TFLM frees a kept tensor after its last reader; something it places itself may then come to lie there.
            Some(
                fault @ Violation::Overwritten {
                    tag: Tag::Tensor(tensor),
                    ..
                },
            ) if self.keep.contains(&tensor) => Err(Error::CannotKeep {
                tensor: self.graph.tensor(tensor).label(),
                reason: fault.describe(self.graph),
            }),
            Some(fault) => internal(fault.describe(self.graph)),
        }
    }

    /// Whether our plan, the one in the file, or none gives TFLM the smallest head. Ours wins against an equal one, and
    /// whatever does not keep what the user asked for is out.
    fn choose(&self, unplanned: &Simulation, foreign: &Verdict, ours: &Candidate) -> Outcome {
        let none = check::check(self.graph, &unplanned.layout(1, &self.keep))
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

    fn report(
        &self,
        unplanned: &Simulation,
        foreign: &Verdict,
        candidate: &Candidate,
    ) -> Result<Report, Error> {
        let mut report = Report::new(self.graph, self.options, self.sizes()?);
        report.greedy_head_bytes = unplanned.head;
        report.before_head_bytes = foreign.head_if_right().unwrap_or(unplanned.head);
        report.planner = candidate.planner.to_string();
        report.tensors_planned = candidate.offsets.iter().filter(|&&o| o != -1).count();
        report.warnings = self.warnings.clone();
        if candidate.is_late {
            report.warnings.push(
                "the time limit ended the search for a plan; another run may give another one"
                    .into(),
            );
        }
        report.describe_head(&candidate.simulation, true);
        Ok(report)
    }

    /// Grafts the plan, or takes another tool's out, then reads the file back the way a device does and undoes it, before
    /// anyone gets the bytes.
    fn write(&self, original: &Graph<'_>, offsets: Option<&[i32]>) -> Result<Vec<u8>, Error> {
        let bytes = original.model.bytes();
        let edit = patch::Edit {
            plan: offsets.map(<[i32]>::to_vec),
            operator_order: self.orders.clone(),
            stamp: patch::Stamp {
                tool_version: env!("CARGO_PKG_VERSION").into(),
                target: self.options.target.to_string(),
                options: options_text(self.options),
            },
        };
        let file = patch::graft(bytes, &edit).map_err(patch_error)?;
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
        self.check_order(original, &Graph::read(Model::parse(&file)?)?)?;
        if patch::strip(&file).map_err(patch_error)? != bytes {
            return Err(internal(
                "taking the plan out does not give the original back".into(),
            ));
        }
        Ok(file)
    }
}

/// The options that differ from the defaults, as they are noted in the file, which should stay small.
fn options_text(options: &Options) -> String {
    let defaults = Options::default();
    let mut text = String::new();
    if options.solver != defaults.solver {
        text.push_str(&format!(" solver={}", options.solver));
    }
    if let Some(nodes) = options.limits.nodes {
        text.push_str(&format!(" node-limit={nodes}"));
    }
    if let Some(time) = options.limits.time {
        text.push_str(&format!(" time-limit={}", time.as_secs_f64()));
    }
    if options.align != defaults.align {
        text.push_str(&format!(" align={}", options.align));
    }
    if !options.reorder {
        text.push_str(" reorder=no");
    }
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
    text.trim_start().to_owned()
}

/// The patcher's error in this crate's terms.
pub(crate) fn patch_error(error: PatchError) -> Error {
    Error::Patch {
        reason: error.to_string(),
    }
}
