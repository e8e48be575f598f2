//! Planning a model: from the bytes of a file to the bytes of the same file with a plan in it.
//!
//! ```text
//! bytes -> Model -> Graph -> Schedule -> Lifetimes -> Interference -> solver -> offsets -> simulate -> check -> patch
//! ```
//!
//! Several ways to plan are tried; each is judged by the head that TFLM will really use with it. The best one is checked
//! independently, and written only if it is not above what TFLM needs without any plan.

mod base;
mod group;
mod scene;
mod search;
mod striped;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use arenaplan_schema::patch::{self, PatchError};
use arenaplan_solver::{Limits, Planner};

use self::base::Base;
use self::group::check_fixed;
use self::scene::Scene;
use self::search::Candidate;
use crate::aliasing::{Level, Promises, Taken, special, taken};
use crate::check;
use crate::error::Error;
use crate::execute::{self, ExecuteError};
use crate::graph::{Graph, OpId, Storage, Tensor, TensorId};
use crate::interference::{Interference, Rules};
use crate::model::Model;
use crate::prepared::{self, Prepared};
use crate::report::{LibraryHead, Outcome, Report, Sizes, warnings};
use crate::scratch::Scratch;
use crate::stored::{Setting, StoredPlan, Verdict, made_for};
use crate::target::{Library, Target};
use crate::tflm::{self, Simulation};

pub use self::group::Group;
pub use self::striped::Stripes;

/// What the user asks of the planner.
#[derive(Clone, Debug)]
pub struct Options {
    /// The device side.
    pub target: Target,
    /// How much tensors may share bytes; `None`: as much as the target's kernels promise. More than that takes what TFLM's
    /// reference kernels promise, and the plan is for them alone.
    pub alias: Option<Level>,
    /// Operators may be put into another order, where that saves memory.
    pub reorder: bool,
    /// Whether layers that set the peak may be computed in row stripes, and how much more work that may be.
    pub stripes: Stripes,
    /// Whether offsets are written into the file. Without them the device's own planner places the tensors, and only stripes
    /// are left to change something.
    pub offsets: bool,
    /// What the device would compute is computed here and stored in flash, where it saves RAM or time: the factors of
    /// channels. Only [`Target::Arenaplan`] has a use for it.
    pub precompute: bool,
    /// The planner to place buffers with.
    pub solver: Planner,
    /// How long the solver may search. A time limit is for all that is tried with one model; a plan on which it had an
    /// influence says so in [`Report::warnings`].
    pub limits: Limits,
    /// Offsets are multiples of this many bytes: a power of two up to 4,096. Less than TFLM's own 16 counts as 16.
    pub align: u64,
    /// Text of a scratch file: bytes measured on a device, which replace the built-in numbers.
    pub scratch: Option<String>,
    /// Graph inputs keep their values until the end of an invoke.
    pub keep_inputs: bool,
    /// Tensors that keep their values until the end of an invoke, by name or index.
    pub keep: Vec<String>,
    /// Tensors that are left to the device's planner, by name or index.
    pub online: Vec<String>,
    /// Tensors that must lie at these offsets, in bytes, multiples of the alignment. A plan is then made whatever its head
    /// is, and what the report says of optimal heads is meant of plans with these offsets.
    pub fixed: Vec<(TensorId, u64)>,
    /// The models that take turns with this one on the arena.
    pub group: Option<Group>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            target: Target::Tflm,
            alias: None,
            reorder: true,
            stripes: Stripes::No,
            offsets: true,
            precompute: true,
            solver: Planner::Auto,
            limits: Limits::default(),
            align: tflm::ALIGNMENT,
            scratch: None,
            keep_inputs: false,
            keep: Vec::new(),
            online: Vec::new(),
            fixed: Vec::new(),
            group: None,
        }
    }
}

impl Options {
    /// The scratch requests of a model with the target's first library: those of the scratch file, where there is one and
    /// it names the operator, else the kernels' own.
    ///
    /// # Errors
    /// [`Error::Scratch`] for a file that does not fit the model.
    pub fn scratch_of(&self, graph: &Graph<'_>) -> Result<Scratch, Error> {
        self.scratch_with(
            graph,
            self.kernels().libraries()[0],
            Prepared::stored(graph),
        )
    }

    /// The same of a file without prepared data.
    pub(crate) fn scratch_alone(&self, graph: &Graph<'_>) -> Result<Scratch, Error> {
        self.scratch_with(graph, self.kernels().libraries()[0], Prepared::Nothing)
    }

    /// The same for each of the target's libraries.
    pub(crate) fn scratch_by_library(
        &self,
        graph: &Graph<'_>,
        prepared: Prepared<'_>,
    ) -> Result<Vec<Scratch>, Error> {
        let libraries = self.kernels().libraries().iter();
        let scratch = libraries.map(|&l| self.scratch_with(graph, l, prepared));
        scratch.collect()
    }

    fn scratch_with(
        &self,
        graph: &Graph<'_>,
        library: Library,
        prepared: Prepared<'_>,
    ) -> Result<Scratch, Error> {
        let text = self.scratch.as_deref().unwrap_or_default();
        Scratch::with((library, prepared), graph, text)
    }

    /// What a plan stores beside the offsets.
    pub(crate) fn prepared(&self) -> Prepared<'static> {
        match self.precompute && self.kernels() == Target::Arenaplan {
            true => Prepared::All,
            false => Prepared::Nothing,
        }
    }

    /// What the offsets of a plan are multiples of: TFLM's kernels rely on its own alignment, and a view may lie at any
    /// byte of what it is a part of.
    pub(crate) fn alignment(&self) -> u64 {
        self.align.max(tflm::ALIGNMENT)
    }

    /// How much is shared at most.
    pub fn level(&self) -> Level {
        self.alias.unwrap_or(Level::of(self.target))
    }

    /// The target whose kernels the plan needs: a level above the target's own takes TFLM's reference kernels.
    pub fn kernels(&self) -> Target {
        match self.level() > Level::of(self.target) {
            true => Target::TflmReference,
            false => self.target,
        }
    }
}

/// The largest alignment that can be asked for.
const MAX_ALIGN: u64 = 4096;

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
    let mut graph = Graph::read(Model::parse(&original)?)?;
    if changed.is_some() {
        graph = graph.taken_alone();
    }
    let mut planned = plan_base(&Base::of_file(&graph), options, changed.as_ref())?;
    if options.stripes != Stripes::No {
        planned = striped::best(&graph, options, planned)?;
    }
    if let Some((target, _)) = made_for(bytes).filter(|(target, _)| *target != options.target) {
        planned.report.warnings.push(format!(
            "the file was planned for {target}; this plan is for {}",
            options.target
        ));
    }
    Ok(planned)
}

/// Plans one form of a model. `changed` says what another tool did to a file that was planned here.
fn plan_base(
    base: &Base<'_, '_>,
    options: &Options,
    changed: Option<&PatchError>,
) -> Result<Planned, Error> {
    let graph = base.graph;
    let job = Job::new(base, options)?;

    let unplanned = &job.unplanned[0];
    let file = &job.scenes[0];
    let setting = Setting {
        lifetimes: &file.lifetimes,
        scratch: &options.scratch_of(graph)?,
        align: tflm::ALIGNMENT,
        keep: &job.keep,
        kernels: options.kernels(),
    };
    let foreign = StoredPlan::read(graph).judged(graph, &setting);
    if let Some(op) = graph.operators().find(|o| o.has_compiled_offsets()) {
        let mut report = job.report_compiled(&op.label(), &foreign)?;
        report.warnings.extend(changed.map(|e| e.to_string()));
        return Ok(Planned {
            file: base.original.to_vec(),
            report,
        });
    }
    if !options.offsets {
        return job.leave_to_device(&foreign);
    }
    let candidate = job.best_candidate()?;

    let mut report = job.report(&foreign, &candidate)?;
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
    report.outcome = job.choose(&foreign, &candidate);
    let mut scratch = &job.alone[0];
    let file = match report.outcome {
        Outcome::Planned { .. } => {
            scratch = file.first_scratch();
            job.write(Some(&candidate))?
        }
        Outcome::ForeignPlanKept => {
            report.planner = "stored".into();
            report.reordered = false;
            report.tensors_planned = foreign.tensors_planned();
            report.head_bytes = foreign.head_if_right().unwrap_or(report.head_bytes);
            report.optimal = report.head_bytes == report.sizes.bound_with_scratch_bytes;
            report.taken = job.taken_by(&foreign);
            report.needs = foreign.needs(graph, options);
            if let StoredPlan::Offsets(offsets) = &foreign.plan {
                let with = scene::simulate(graph, &file.lifetimes, &job.alone, Some(offsets))?;
                report.libraries = job.heads(&with, &job.alone);
            }
            base.original.to_vec()
        }
        _ => {
            report.describe_head(unplanned, false);
            report.libraries = job.heads(&job.unplanned, &job.alone);
            report.taken.clear();
            report.needs = None;
            report.reordered = false;
            // What another tool wrote into the file is no better than nothing, or it would have been kept.
            if foreign.exists() || base.is_rewritten() {
                job.write(None)?
            } else {
                base.original.to_vec()
            }
        }
    };
    report.file_bytes_before = base.original.len();
    report.file_bytes = file.len();
    report.prepared_bytes = prepared::stored_bytes(&file);
    report.finish(graph, scratch);
    Ok(Planned { file, report })
}

/// All that planning one model needs.
struct Job<'g, 'a, 'o> {
    base: &'g Base<'g, 'a>,
    graph: &'g Graph<'a>,
    options: &'o Options,
    /// The orders of the operators that are tried, the file's first.
    scenes: Vec<Scene<'g, 'a>>,
    /// What each library of the target makes of the model without a plan.
    unplanned: Vec<Simulation>,
    /// The head in bytes with each library that a plan must not be above: what the file that came in needs without one.
    greedy_heads: Vec<u64>,
    /// What the kernels of each library ask for then.
    alone: Vec<Scratch>,
    /// What may be shared, up to each level that is allowed.
    promises: Vec<Promises>,
    /// Whether some views are of a part of a tensor.
    has_partial_views: bool,
    keep: Vec<TensorId>,
    online: BTreeSet<TensorId>,
    warnings: Vec<String>,
    /// What checks have found out of each scene's operators.
    known: RefCell<BTreeMap<usize, check::Known>>,
    /// When the time limit began.
    start: Instant,
}

impl<'g, 'a, 'o> Job<'g, 'a, 'o> {
    fn new(base: &'g Base<'g, 'a>, options: &'o Options) -> Result<Self, Error> {
        let graph = base.graph;
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
        let state = graph.operators().filter(|op| op.updates_its_output());
        let state = state.flat_map(|op| op.outputs.iter().copied());
        let state: Vec<_> = state.filter(|&t| graph.tensor(t).is_planned()).collect();
        keep.extend(&state);
        if let Some(group) = &options.group {
            keep.extend(&group.keep);
            if let [first, ..] = state[..] {
                return Err(Error::StateInHead {
                    tensor: graph.tensor(first).label(),
                });
            }
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
        check_fixed(graph, options, &online)?;
        let may_share = |t: TensorId| graph.tensor(t).is_planned() && !online.contains(&t);
        let promises = match options.level() {
            Level::None => Promises::NONE,
            _ => Promises::of(graph, options.kernels(), may_share),
        };
        let levels = Level::ALL.iter().filter(|&&level| level <= options.level());
        let promises: Vec<_> = levels.map(|&level| promises.up_to(level, graph)).collect();
        let has_partial_views = promises.iter().any(|p| !p.partial_views(graph).is_empty());
        let mut most: Vec<(Level, &Promises)> = Vec::new();
        for level in [Level::Views, options.level()] {
            // A level that promises no more than another one is the same.
            if let Some(promises) = promises.get(level as usize)
                && most.iter().all(|(_, known)| *known != promises)
            {
                most.push((level, promises));
            }
        }
        let scenes = match base.is_rewritten() {
            // Stripes are written in the order that they are for.
            true => vec![Scene::of_file(graph, options)?],
            false => scene::scenes(graph, options, &keep, &most)?,
        };
        let scene = &scenes[0];
        let alone = options.scratch_by_library(graph, Prepared::Nothing)?;
        let unplanned = scene::simulate(graph, &scene.lifetimes, &alone, None)?;
        let heads = || unplanned.iter().map(|s| s.head).collect();
        let greedy_heads = base.greedy_heads().unwrap_or_else(heads);
        let mut warnings = warnings(graph, &scene.lifetimes, scene.first_scratch());
        if let [first, ..] = state[..] {
            warnings.push(format!(
                "{} holds state and is no variable: TFLM keeps it to the next invoke only by this plan",
                graph.tensor(first).label()
            ));
        }
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
            base,
            graph,
            options,
            unplanned,
            greedy_heads,
            alone,
            scenes,
            promises,
            has_partial_views,
            keep,
            online,
            warnings,
            known: RefCell::default(),
            start: Instant::now(),
        })
    }

    /// Whether our plan, the one in the file, or none gives TFLM the smallest head. Ours wins against an equal one, and
    /// whatever does not keep what the user asked for is out.
    fn choose(&self, foreign: &Verdict, ours: &Candidate) -> Outcome {
        let unplanned = &self.unplanned[0];
        let none = check::check(self.graph, &unplanned.layout(1, &self.keep))
            .is_empty()
            .then_some(self.greedy_heads[0]);
        // A library on which the plan would be larger than nothing, and which the first one does not show.
        let heads = self.heads(&ours.simulations, &self.scenes[0].scratch);
        let heads = heads.into_iter().skip(1);
        let worse = heads
            .filter(|h| h.greedy_head_bytes < h.head_bytes)
            .max_by_key(|h| h.head_bytes - h.greedy_head_bytes);
        let theirs = foreign
            .head_if_right()
            .filter(|_| self.options.online.is_empty() && self.suits(foreign));
        let ours_head = ours.head();
        if ours.offsets.iter().all(|&o| o == -1) {
            Outcome::NothingToPlan
        } else if !self.options.fixed.is_empty() {
            Outcome::Planned {
                replaced: foreign.exists(),
            }
        } else if theirs.is_some_and(|t| t < ours_head && none.is_none_or(|n| t <= n)) {
            Outcome::ForeignPlanKept
        } else if none.is_some_and(|n| n < ours_head) {
            Outcome::WorseThanUnplanned {
                head_bytes: ours_head,
            }
        } else if let Some(worse) = worse.filter(|_| none.is_some()) {
            Outcome::WorseOnLibrary(worse)
        } else {
            Outcome::Planned {
                replaced: foreign.exists(),
            }
        }
    }

    /// Whether the plan in the file, if it is right, also starts tensors where the options ask for it, and shares no more.
    fn suits(&self, foreign: &Verdict) -> bool {
        let StoredPlan::Offsets(offsets) = &foreign.plan else {
            return false;
        };
        let is_aligned = |&o: &i32| i64::from(o).rem_euclid(self.options.alignment() as i64) == 0;
        let planned = || self.graph.tensors.iter().zip(offsets);
        let has_state = |(t, &o): (&Tensor<'_>, &i32)| t.storage == Storage::Variable && o != -1;
        if self.options.group.is_some() && planned().any(has_state) {
            return false;
        }
        let mut planned = planned().filter(|(t, o)| t.is_planned() && **o != -1);
        planned.all(|(_, o)| is_aligned(o))
            && (self.taken_by(foreign).iter()).all(|t| t.kind.level() <= self.options.level())
    }

    /// What the plan in the file shares.
    fn taken_by(&self, foreign: &Verdict) -> Vec<Taken> {
        let promises = Promises::of(self.graph, self.options.kernels(), |_| true);
        let place = |t| foreign.simulation.as_ref()?.tensor(t).map(|p| p.offset);
        taken(self.graph, &promises, place)
    }

    /// The report of a model whose operator has arena offsets compiled in.
    fn report_compiled(&self, operator: &str, foreign: &Verdict) -> Result<Report, Error> {
        let scene = &self.scenes[0];
        let mut report = Report::of_file(
            self.graph,
            self.options,
            &scene.lifetimes,
            scene.first_scratch(),
            foreign,
            &self.unplanned[0],
        )?;
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

    fn report(&self, foreign: &Verdict, candidate: &Candidate) -> Result<Report, Error> {
        let file = &self.scenes[0];
        let scene = &self.scenes[candidate.scene];
        let promises = &self.promises[candidate.level as usize];
        let mut sizes = Sizes::of(
            self.graph,
            &file.lifetimes,
            file.first_scratch(),
            &self.keep,
        )?;
        let used = Rules {
            promises,
            parts: true,
            ..Rules::tensors_alone()
        };
        sizes.bound_bytes = Interference::build(&scene.graph, &scene.lifetimes, used)?.bound;
        sizes.bound_with_scratch_bytes = candidate.bound;
        let mut report = Report::new(self.graph, self.options, sizes);
        report.greedy_head_bytes = self.greedy_heads[0];
        report.before_head_bytes = foreign.head_if_right().unwrap_or(self.greedy_heads[0]);
        report.planner = candidate.planner.to_string();
        report.reordered = !scene.orders.is_empty();
        report.order_proved = self.is_order_proved(candidate);
        report.tensors_planned = candidate.offsets.iter().filter(|&&o| o != -1).count();
        let places = &candidate.simulations[0];
        report.taken = taken(&scene.graph, promises, |t| {
            places.tensor(t).map(|p| p.offset)
        });
        report.warnings = self.warnings.clone();
        if candidate.is_late {
            report.warnings.push(
                "the time limit ended the search for a plan; another run may give another one"
                    .into(),
            );
        }
        report.describe_head(&candidate.simulations[0], true);
        // A head that only the solver has proved, above what is alive at one time, says nothing of other orders.
        let is_least = report.order_proved && candidate.head() == candidate.least;
        report.optimal_in_any_order = report.optimal && (report.is_chain || is_least);
        report.libraries = self.heads(&candidate.simulations, &file.scratch);
        self.describe_needs(&mut report, &scene.graph);
        Ok(report)
    }

    /// The head with each library of the target.
    fn heads(&self, simulations: &[Simulation], scratch: &[Scratch]) -> Vec<LibraryHead> {
        let heads = self.greedy_heads.iter().zip(simulations).zip(scratch);
        let heads = heads.map(|((&without, with), scratch)| {
            LibraryHead::new(self.graph, scratch, without, with.head)
        });
        heads.collect()
    }

    /// Whether no order of the operators needs less than the plan's with as much shared as the options allow.
    fn is_order_proved(&self, candidate: &Candidate) -> bool {
        // Levels that promise nothing more are the same.
        let most = self.promises.last();
        let same = |l: Level| self.promises.get(l as usize) == most;
        let proved = self.scenes.iter().flat_map(|s| &s.proved);
        proved
            .into_iter()
            .any(|&(level, least)| same(level) && candidate.least <= least)
    }

    /// Which kernels the plan depends on.
    fn describe_needs(&self, report: &mut Report, graph: &Graph<'_>) {
        let kernels = self.options.kernels();
        let special = special(graph, &report.taken);
        if special.is_empty() {
            return;
        }
        report.needs = Some(kernels.kernels().into());
        if self.options.level() > Level::of(self.options.target) {
            let mut by_name: BTreeMap<String, BTreeSet<OpId>> = BTreeMap::new();
            for t in &special {
                let name = graph.operator(t.operator).name();
                by_name.entry(name).or_default().insert(t.operator);
            }
            let place = |op: &OpId| match op.subgraph {
                0 => op.index.to_string(),
                s => format!("{s}:{}", op.index),
            };
            let names: Vec<_> = by_name
                .iter()
                .map(|(name, ops)| {
                    let places: Vec<_> = ops.iter().map(place).collect();
                    format!("{name} ({})", places.join(", "))
                })
                .collect();
            report.warnings.push(format!(
                "the target {} does not promise what the plan needs of {}: with other kernels than {} they compute wrong \
                 numbers",
                self.options.target,
                names.join(", "),
                kernels.kernels()
            ));
        }
    }

    /// Leaves all placing to the device.
    fn leave_to_device(&self, foreign: &Verdict) -> Result<Planned, Error> {
        let scene = &self.scenes[0];
        let unplanned = &self.unplanned[0];
        let (graph, options) = (self.graph, self.options);
        let scratch = &self.alone[0];
        let mut report = Report::of_file(
            graph,
            options,
            &scene.lifetimes,
            scratch,
            foreign,
            unplanned,
        )?;
        report.outcome = Outcome::LeftToDevice;
        report.libraries = self.heads(&self.unplanned, &self.alone);
        report.greedy_head_bytes = self.greedy_heads[0];
        report.before_head_bytes = self.greedy_heads[0];
        let file = match self.base.is_rewritten() {
            true => self.write(None)?,
            false => self.base.original.to_vec(),
        };
        report.file_bytes_before = self.base.original.len();
        report.file_bytes = file.len();
        Ok(Planned { file, report })
    }

    /// Grafts the plan, or takes another tool's out, then reads the file back the way a device does and undoes it, before
    /// anyone gets the bytes.
    fn write(&self, plan: Option<&Candidate>) -> Result<Vec<u8>, Error> {
        let original = self.base.original;
        let offsets = plan.map(|p| &p.offsets[..]);
        let scene = &self.scenes[plan.map_or(0, |p| p.scene)];
        let edit = patch::Edit {
            plan: offsets.map(<[i32]>::to_vec),
            rewrite: self.base.rewrite.clone(),
            operator_order: scene.orders.clone(),
            prepared: match (plan, self.options.prepared()) {
                (Some(_), Prepared::All) => prepared::entry(&scene.graph),
                _ => None,
            },
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
        let written = Graph::read(Model::parse(&file)?)?;
        scene.check_written(self.graph, &written)?;
        if let Some(fault) = prepared::fault(&written) {
            return Err(internal(fault));
        }
        if self.options.target == Target::Arenaplan {
            // What the device will say of the plan. Models that the runtime cannot run have warnings of their own.
            let not_once = execute::Setting {
                invokes: 0,
                ..execute::Setting::default()
            };
            match execute::run(&file, &not_once, |_, _| {}) {
                Err(ExecuteError::Runtime { error, reason }) if error.is_about_plan() => {
                    return Err(internal(format!("the runtime refuses the plan: {reason}")));
                }
                _ => {}
            }
        }
        if patch::strip(&file).map_err(patch_error)? != original {
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
    if let Some(level) = options.alias.filter(|&l| l != Level::of(options.target)) {
        text.push_str(&format!(" alias={level}"));
    }
    if !options.reorder {
        text.push_str(" reorder=no");
    }
    if options.stripes != defaults.stripes {
        text.push_str(&format!(" stripes={}", options.stripes));
    }
    if !options.offsets {
        text.push_str(" plan=no");
    }
    if !options.precompute && options.target == Target::Arenaplan {
        text.push_str(" precompute=no");
    }
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
    for (tensor, offset) in &options.fixed {
        text.push_str(&format!(" fixed={}@{offset}", tensor.0));
    }
    if let Some(group) = options.group.as_ref().filter(|g| !g.note.is_empty()) {
        text.push_str(&format!(" {}", group.note));
    }
    text.trim_start().to_owned()
}

/// The patcher's error in this crate's terms.
pub(crate) fn patch_error(error: PatchError) -> Error {
    Error::Patch {
        reason: error.to_string(),
    }
}
