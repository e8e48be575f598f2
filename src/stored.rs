//! The plan that a file already carries, and whether it is right for the model.

use arenaplan_schema::{patch, view};

use crate::aliasing::{Level, Promises, special, taken};
use crate::check;
use crate::graph::{Graph, Storage, TensorId};
use crate::lifetimes::Lifetimes;
use crate::plan::{Options, Stripes};
use crate::prepared;
use crate::scratch::Scratch;
use crate::target::Target;
use crate::tflm::{self, Simulation};

/// The `OfflineMemoryAllocation` entry of a file as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoredPlan {
    /// There is none.
    Absent,
    /// There is one that cannot be used: TFLM would refuse it, crash, or read past it.
    Broken {
        /// What is wrong with the entry.
        reason: String,
    },
    /// Offsets in bytes, one per tensor of all subgraphs; -1 leaves a tensor to the device.
    Offsets(Vec<i32>),
}

/// What a stored plan is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'s> {
    /// Lifetimes in the file's order of operators.
    pub lifetimes: &'s Lifetimes,
    /// What the kernels ask for.
    pub scratch: &'s Scratch,
    /// Offsets must be multiples of this.
    pub align: u64,
    /// Tensors that must survive to the end of an invoke.
    pub keep: &'s [TensorId],
    /// The kernels for which it must be right.
    pub kernels: Target,
}

/// The target that the file's plan was made for, and the level of sharing that was asked for, if this tool made it.
pub fn made_for(bytes: &[u8]) -> Option<(Target, Option<Level>)> {
    let stamp = patch::inspect_provenance(bytes).ok()??.stamp;
    let level = stamp
        .options
        .split(' ')
        .find_map(|o| o.strip_prefix("alias="));
    Some((
        stamp.target.parse().ok()?,
        level.and_then(|l| l.parse().ok()),
    ))
}

/// How much more work row stripes were allowed to be in the file, if this tool planned it.
pub fn stripes_of(bytes: &[u8]) -> Option<Stripes> {
    let stamp = patch::inspect_provenance(bytes).ok()??.stamp;
    let mut options = stamp.options.split(' ');
    let stripes = options.find_map(|o| o.strip_prefix("stripes="))?;
    stripes.parse().ok()
}

impl StoredPlan {
    /// Reads the plan of the graph's file as a device does: of several entries the last one counts.
    pub fn read(graph: &Graph<'_>) -> Self {
        let broken = |e: view::Error| StoredPlan::Broken {
            reason: e.to_string(),
        };
        match view::Model::new(graph.model.bytes()).and_then(|m| m.offline_plan()) {
            Err(e) => broken(e),
            Ok(None) => StoredPlan::Absent,
            Ok(Some(plan)) => StoredPlan::Offsets(plan.offsets().into_iter().collect()),
        }
    }

    /// Lays the head out with this plan and checks it.
    pub fn judged(self, graph: &Graph<'_>, setting: &Setting<'_>) -> Verdict {
        let mut verdict = Verdict {
            faults: Vec::new(),
            notes: Vec::new(),
            simulation: None,
            plan: self,
        };
        let offsets = match &verdict.plan {
            StoredPlan::Absent => return verdict,
            StoredPlan::Broken { reason } => {
                verdict.faults.push(reason.clone());
                return verdict;
            }
            StoredPlan::Offsets(offsets) => offsets.clone(),
        };
        if offsets.len() != graph.tensors.len() {
            verdict.faults.push(format!(
                "the plan is for {} tensors, but the model has {}",
                offsets.len(),
                graph.tensors.len()
            ));
            return verdict;
        }
        for tensor in &graph.tensors {
            let offset = offsets[tensor.id.index()];
            if offset < -1 {
                verdict.faults.push(format!(
                    "{} has the offset {offset}: TFLM would use memory before the arena",
                    tensor.label()
                ));
            }
            let end = i64::from(offset) + tensor.bytes as i64;
            let takes_room = tensor.is_planned() || tensor.storage == Storage::Variable;
            if takes_room && end > i64::from(i32::MAX) {
                verdict.faults.push(format!(
                    "{} ends at {end}, which TFLM's 32-bit numbers cannot hold",
                    tensor.label()
                ));
            }
            match tensor.storage {
                _ if offset == -1 => {}
                Storage::Constant => verdict.notes.push(format!(
                    "{} is a constant; its offset {offset} is ignored",
                    tensor.label()
                )),
                Storage::ResourceHandle => verdict.notes.push(format!(
                    "{} is a resource handle; its offset {offset} is ignored",
                    tensor.label()
                )),
                _ => {}
            }
        }
        for id in tflm::entries_read_for_variables(graph) {
            if offsets.get(id.index()).is_some_and(|&o| o != -1) {
                verdict.faults.push(format!(
                    "{} must be -1: TFLM reads this entry for a variable of a later subgraph, which would get no memory",
                    graph.tensor(id).label()
                ));
            }
        }
        let entries = graph.model.root().metadata().into_iter().flatten();
        if entries
            .filter(|e| e.name() == Some(view::PLAN_NAME))
            .count()
            > 1
        {
            verdict.notes.push(format!(
                "there are several {} entries; the last one counts",
                view::PLAN_NAME
            ));
        }
        verdict.faults.extend(prepared::fault(graph));
        if offsets.iter().any(|&o| o < -1) {
            return verdict;
        }
        match tflm::simulate(graph, setting.lifetimes, setting.scratch, Some(&offsets)) {
            Err(e) => verdict.faults.push(e.to_string()),
            Ok(simulation) => {
                let mut layout = simulation.layout(setting.align, setting.keep);
                layout.libraries = setting.kernels.libraries();
                layout.views_only = Level::of(setting.kernels) <= Level::Views;
                let faults = check::check(graph, &layout);
                verdict
                    .faults
                    .extend(faults.iter().map(|f| f.describe(graph)));
                verdict.simulation = Some(simulation);
            }
        }
        verdict
    }
}

/// What is to be said of a stored plan.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verdict {
    /// The plan as stored.
    pub plan: StoredPlan,
    /// Why it is wrong; empty when it is right, or when there is none.
    pub faults: Vec<String>,
    /// Oddities that do no harm.
    pub notes: Vec<String>,
    /// The head that TFLM uses with it, where it can be told.
    pub simulation: Option<Simulation>,
}

impl Verdict {
    /// Whether the file carries a plan, right or wrong.
    pub fn exists(&self) -> bool {
        self.plan != StoredPlan::Absent
    }

    /// Whether the file carries a plan that is right for its model.
    pub fn is_right(&self) -> bool {
        self.exists() && self.faults.is_empty()
    }

    /// The head in bytes that TFLM uses with it, when it is right.
    pub fn head_if_right(&self) -> Option<u64> {
        self.simulation
            .as_ref()
            .filter(|_| self.is_right())
            .map(|s| s.head)
    }

    /// The kernels of `options`, in words, when the plan is right and some others would compute wrong numbers with it.
    pub fn needs(&self, graph: &Graph<'_>, options: &Options) -> Option<String> {
        if options.kernels() == Target::Tflm {
            return None;
        }
        let simulation = self.simulation.as_ref().filter(|_| self.is_right())?;
        let promises = Promises::allowed(graph, options);
        let taken = taken(graph, &promises, |t| simulation.tensor(t).map(|p| p.offset));
        let is_special = !special(graph, &taken).is_empty();
        is_special.then(|| options.kernels().kernels().into())
    }

    /// How many tensors have an offset.
    pub fn tensors_planned(&self) -> usize {
        match &self.plan {
            StoredPlan::Offsets(offsets) => offsets.iter().filter(|&&o| o != -1).count(),
            _ => 0,
        }
    }

    /// The first fault.
    pub fn fault(&self) -> Option<&str> {
        self.faults.first().map(String::as_str)
    }
}
