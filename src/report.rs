//! The figures of one model, as the command line prints them and build scripts read them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::aliasing::{Level, Promises, Taken, taken};
use crate::error::Error;
use crate::graph::{Graph, Storage, TensorId};
use crate::interference::{Interference, Rules};
use crate::lifetimes::{Lifetimes, NEVER};
use crate::own;
use crate::plan::Options;
use crate::prepared;
use crate::scratch::Scratch;
use crate::stored::{StoredPlan, Verdict};
use crate::stripes::cost::Machine;
use crate::target::Library;
use crate::text::{shortened, thousands};
use crate::tflm::{self, Simulation, room, tail};

/// How the warning begins that the runtime lacks a kernel.
pub(crate) const NO_KERNEL: &str = "arenaplan's runtime has no kernel for";

/// What became of a request to plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// A plan was made and is in the file.
    Planned {
        /// Another tool's plan was in the file and has been replaced.
        replaced: bool,
    },
    /// The plan of another tool is right and smaller than ours; the file stays as it was.
    ForeignPlanKept,
    /// With the plan the head would be larger than without; the file stays without one.
    WorseThanUnplanned {
        /// The head in bytes that the dropped plan would have had.
        head_bytes: u64,
    },
    /// With the plan the head would be larger than without on one of the target's libraries; the file stays without one.
    WorseOnLibrary(LibraryHead),
    /// An operator has arena offsets compiled in (Ethos-U), so the file stays as its compiler made it.
    CompiledOffsets {
        /// The operator, as it is to be named.
        operator: String,
    },
    /// Nothing was planned: the figures describe the file as it is.
    AsStored,
    /// No tensor could be given an offset; the file stays without a plan.
    NothingToPlan,
    /// No offsets were asked for; the device places all tensors.
    LeftToDevice,
}

/// Sizes that follow from the model alone, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sizes {
    /// All tensors in the head, each rounded up to 16: what a plan without reuse takes.
    pub sum_bytes: u64,
    /// Liveness bound: the most that tensors need at one time, in the order of operators and with the sharing that the plan
    /// uses. No such plan is below it.
    pub bound_bytes: u64,
    /// The same for the order of the file and without sharing.
    pub file_order_bound_bytes: u64,
    /// The same with scratch memory and what the user keeps.
    pub file_order_bound_with_scratch_bytes: u64,
    /// No plan of those that were considered has a lower head: with all that the device places itself (scratch memory above
    /// all), and with what the user keeps.
    pub bound_with_scratch_bytes: u64,
}

/// The head that one kernel library needs, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LibraryHead {
    /// The library.
    pub library: Library,
    /// Without a plan.
    pub greedy_head_bytes: u64,
    /// With what the file holds now.
    pub head_bytes: u64,
    /// What to reserve on a device with 32-bit pointers.
    pub arena_32: Arena,
    /// What to reserve on a machine with 64-bit pointers.
    pub arena_64: Arena,
}

impl LibraryHead {
    /// The heads with a library whose kernels ask for `scratch`.
    pub(crate) fn new(graph: &Graph<'_>, scratch: &Scratch, greedy: u64, head: u64) -> Self {
        Self {
            library: scratch.library(),
            greedy_head_bytes: greedy,
            head_bytes: head,
            arena_32: arena(graph, scratch, head, tail::Width::Bits32),
            arena_64: arena(graph, scratch, head, tail::Width::Bits64),
        }
    }
}

impl Sizes {
    /// The sizes of a model; tensors in `keep` stay alive to the end.
    pub(crate) fn of(
        graph: &Graph<'_>,
        lifetimes: &Lifetimes,
        scratch: &Scratch,
        keep: &[TensorId],
    ) -> Result<Self, Error> {
        let rules = Rules::tensors_alone();
        let tensors = Interference::build(graph, lifetimes, rules)?;
        let online = Some(scratch);
        let all = Interference::build(
            graph,
            lifetimes,
            Rules {
                online,
                keep,
                ..rules
            },
        )?;
        let planned = graph.tensors.iter().filter(|t| t.is_planned());
        Ok(Self {
            sum_bytes: planned
                .map(|t| t.bytes.next_multiple_of(tflm::ALIGNMENT))
                .sum(),
            bound_bytes: tensors.bound,
            file_order_bound_bytes: tensors.bound,
            file_order_bound_with_scratch_bytes: all.bound,
            bound_with_scratch_bytes: all.bound,
        })
    }
}

/// What an arena needs on a device with pointers of one width, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arena {
    /// What persists: an estimate from the layout of TFLM's structures.
    pub tail_bytes: u64,
    /// What TFLM needs above the tail while it plans.
    pub planning_bytes: u64,
    /// What to reserve.
    pub arena_bytes: u64,
}

/// The figures of one model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// What became of the request.
    pub outcome: Outcome,
    /// The target's name.
    pub target: String,
    /// The solver asked for.
    pub solver: String,
    /// The planner that gave the placement.
    pub planner: String,
    /// Number of subgraphs.
    pub subgraphs: usize,
    /// Number of operators in all subgraphs.
    pub operators: usize,
    /// Number of tensors in all subgraphs.
    pub tensors: usize,
    /// Number of tensors with an offset.
    pub tensors_planned: usize,
    /// Sizes that follow from the model.
    pub sizes: Sizes,
    /// The head of TFLM's own planning, scratch included.
    pub greedy_head_bytes: u64,
    /// The head of TFLM with the file as it came in: with the plan of another tool, if that was right.
    pub before_head_bytes: u64,
    /// The head of TFLM with what the file now holds, scratch included.
    pub head_bytes: u64,
    /// The same for each library of the target, the one that all other figures are for first.
    pub libraries: Vec<LibraryHead>,
    /// Whether `head_bytes` is proved to be the least possible with the sharing that is allowed, in the orders of operators
    /// that were considered.
    pub optimal: bool,
    /// Whether the operators are in another order than in the file that came in.
    pub reordered: bool,
    /// Whether no order of the operators has a lower peak, with as much shared as was taken into account.
    pub order_proved: bool,
    /// Whether `head_bytes` is proved to be the least possible in whatever order of operators.
    pub optimal_in_any_order: bool,
    /// How much tensors may share.
    pub level: Level,
    /// What shares bytes.
    pub taken: Vec<Taken>,
    /// The kernels without which the model computes wrong numbers, in words; `None` when any kernels will do.
    pub needs: Option<String>,
    /// Whether the model is a chain: one subgraph, in which each operator needs the one before it.
    pub is_chain: bool,
    /// Whether every operator is one whose persistent memory is known; otherwise the tails may be too small.
    pub tail_is_complete: bool,
    /// Whether the tails are what the device takes, to the byte, rather than an estimate.
    pub tail_is_exact: bool,
    /// A device with 32-bit pointers.
    pub arena_32: Arena,
    /// A machine with 64-bit pointers.
    pub arena_64: Arena,
    /// Bytes of the file without a plan of ours.
    pub file_bytes_before: usize,
    /// Bytes of the file with what was done to it.
    pub file_bytes: usize,
    /// Bytes of the prepared data among them, which a device leaves in flash.
    pub prepared_bytes: usize,
    /// What was cut into row stripes.
    pub stripes: Option<Striped>,
    /// Why nothing was cut, where that was asked for.
    pub no_stripes: Option<String>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// What was cut into row stripes, and what that costs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Striped {
    /// The regions, in the order in which they were cut. A later one may lie in an earlier one.
    pub regions: Vec<StripedRegion>,
    /// Multiplications with weights in the file that came in.
    pub macs: u64,
    /// How many more there are now; below 0 where rows that nobody reads are left out.
    pub extra_macs: i64,
    /// Whose instructions are estimated.
    pub machine: Machine,
    /// Estimated instructions of the model that came in, on a Cortex-M4.
    pub instructions: u64,
    /// How many more there are now.
    pub extra_instructions: i64,
    /// Operators added.
    pub added_operators: usize,
    /// Bytes by which the file grew, without plan and provenance.
    pub added_file_bytes: usize,
    /// Kinds of operators that were not in the file, which the application has to register.
    pub added_kinds: Vec<String>,
    /// The head in bytes with the same options and no stripes.
    pub head_bytes_before: u64,
    /// What to reserve then, on a device with 32-bit pointers, in bytes.
    pub arena_32_bytes_before: u64,
    /// The same on a machine with 64-bit pointers.
    pub arena_64_bytes_before: u64,
}

impl Striped {
    /// The multiplications that stripes add, in percent of the model's.
    pub fn extra_macs_percent(&self) -> f64 {
        match self.macs {
            0 => 0.0,
            all => 100.0 * self.extra_macs as f64 / all as f64,
        }
    }

    /// The instructions that stripes add, in percent of the model's.
    pub fn extra_percent(&self) -> f64 {
        match self.instructions {
            0 => 0.0,
            all => 100.0 * self.extra_instructions as f64 / all as f64,
        }
    }
}

/// Layers that are computed in row stripes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StripedRegion {
    /// The first and the last operator of the file in it, as they are to be named.
    pub operators: [String; 2],
    /// How many layers.
    pub layers: usize,
    /// The rows of the result at which it is cut: 0, ..., all rows.
    pub cuts: Vec<i64>,
}

impl StripedRegion {
    /// How many stripes.
    pub fn stripes(&self) -> usize {
        self.cuts.len().saturating_sub(1)
    }
}

impl Report {
    pub(crate) fn new(graph: &Graph<'_>, options: &Options, sizes: Sizes) -> Self {
        Self {
            outcome: Outcome::NothingToPlan,
            target: options.target.to_string(),
            solver: options.solver.to_string(),
            planner: String::new(),
            subgraphs: graph.subgraphs.len(),
            operators: graph.operators().count(),
            tensors: graph.tensors.len(),
            tensors_planned: 0,
            sizes,
            greedy_head_bytes: 0,
            before_head_bytes: 0,
            head_bytes: 0,
            libraries: Vec::new(),
            reordered: false,
            order_proved: false,
            optimal_in_any_order: false,
            optimal: false,
            level: options.level(),
            taken: Vec::new(),
            needs: None,
            is_chain: is_chain(graph),
            tail_is_complete: true,
            tail_is_exact: false,
            arena_32: Arena::default(),
            arena_64: Arena::default(),
            file_bytes_before: 0,
            file_bytes: 0,
            prepared_bytes: 0,
            stripes: None,
            no_stripes: None,
            warnings: Vec::new(),
        }
    }

    /// The figures of a file as it is, with whatever plan it carries.
    pub(crate) fn of_file(
        graph: &Graph<'_>,
        options: &Options,
        lifetimes: &Lifetimes,
        scratch: &Scratch,
        stored: &Verdict,
        unplanned: &Simulation,
    ) -> Result<Self, Error> {
        let mut sizes = Sizes::of(graph, lifetimes, scratch, &[])?;
        if let Cow::Owned(original) = graph.in_original_order() {
            let scratch = options.scratch_of(&original)?;
            let before = Sizes::of(&original, &Lifetimes::of(&original)?, &scratch, &[])?;
            sizes.file_order_bound_bytes = before.file_order_bound_bytes;
            sizes.file_order_bound_with_scratch_bytes = before.file_order_bound_with_scratch_bytes;
        }
        let mut report = Self::new(graph, options, sizes);
        report.outcome = Outcome::AsStored;
        report.warnings = warnings(graph, lifetimes, scratch);
        report.reordered = graph.is_reordered();
        report.greedy_head_bytes = unplanned.head;
        report.before_head_bytes = stored.head_if_right().unwrap_or(unplanned.head);
        report.file_bytes_before = graph.model.bytes().len();
        report.file_bytes = report.file_bytes_before;
        report.prepared_bytes = prepared::stored_bytes(graph.model.bytes());
        match (&stored.plan, &stored.simulation) {
            (StoredPlan::Offsets(_), Some(simulation)) => {
                report.tensors_planned = stored.tensors_planned();
                if stored.is_right() {
                    report.describe_sharing(graph, options, lifetimes, scratch, simulation)?;
                    report.needs = stored.needs(graph, options);
                }
                report.planner = "stored".into();
                report.describe_head(simulation, true);
            }
            _ => report.describe_head(unplanned, false),
        }
        report.optimal &= stored.faults.is_empty();
        report.finish(graph, scratch);
        Ok(report)
    }

    /// What the tensors of a right plan share, and the bounds for so much sharing.
    fn describe_sharing(
        &mut self,
        graph: &Graph<'_>,
        options: &Options,
        lifetimes: &Lifetimes,
        scratch: &Scratch,
        simulation: &Simulation,
    ) -> Result<(), Error> {
        let promises = &Promises::allowed(graph, options);
        let alone = Rules {
            align: options.alignment(),
            promises,
            ..Rules::tensors_alone()
        };
        let all = Rules {
            online: Some(scratch),
            ..alone
        };
        let bound = |rules| {
            Interference::with_least_bound(graph, lifetimes, rules).map(|found| found.bound)
        };
        self.sizes.bound_bytes = bound(alone)?;
        self.sizes.bound_with_scratch_bytes = bound(all)?;
        self.taken = taken(graph, promises, |t| simulation.tensor(t).map(|p| p.offset));
        Ok(())
    }

    pub(crate) fn describe_head(&mut self, simulation: &Simulation, planned: bool) {
        self.head_bytes = simulation.head;
        self.optimal = simulation.head == self.sizes.bound_with_scratch_bytes;
        if !planned {
            self.tensors_planned = 0;
            self.planner = "greedy".into();
        }
    }

    /// Fills in what depends on the final head.
    pub(crate) fn finish(&mut self, graph: &Graph<'_>, scratch: &Scratch) {
        let own = scratch.library() == Library::Arenaplan;
        let unknown = match own {
            true => {
                let all = graph.operators().filter(|op| !own::is_known(op));
                all.map(|op| op.id).collect()
            }
            false => tail::tail_bytes(graph, tail::Width::Bits32).unknown_operators,
        };
        self.tail_is_complete = own || unknown.is_empty();
        self.tail_is_exact = own;
        let names: BTreeSet<_> = unknown
            .iter()
            .map(|&op| graph.operator(op).name())
            .collect();
        let names: Vec<_> = names.iter().map(|name| shortened(name, 60)).collect();
        if !names.is_empty() && own {
            self.warnings.push(format!(
                "{NO_KERNEL} {}: the application has to register one, whose scratch memory is not counted",
                names.join(", ")
            ));
        } else if !names.is_empty() {
            self.warnings.push(format!(
                "TFLM's reference kernels do not include {}: the memory that these operators' kernels ask for is not \
                 counted",
                names.join(", ")
            ));
        }
        self.arena_32 = arena(graph, scratch, self.head_bytes, tail::Width::Bits32);
        self.arena_64 = arena(graph, scratch, self.head_bytes, tail::Width::Bits64);
    }

    /// Why the file has no plan, or why the plan saves nothing; `None` when it does save.
    pub fn explanation(&self) -> Option<String> {
        match &self.outcome {
            Outcome::CompiledOffsets { operator } => Some(format!(
                "the file is left as it is: {operator} has arena offsets compiled into its command stream, which only \
                 its own compiler can change"
            )),
            Outcome::LeftToDevice => {
                Some("no offsets are written, as asked: the device places the tensors".into())
            }
            Outcome::NothingToPlan => {
                Some("nothing to plan: no tensor can be given a place in the arena's head".into())
            }
            Outcome::WorseThanUnplanned { head_bytes } => Some(format!(
                "left without a plan: with one, the options given and the scratch memory that the device places \
                 itself, the head would be {} bytes; without it is {}",
                thousands(*head_bytes),
                thousands(self.head_bytes)
            )),
            Outcome::WorseOnLibrary(head) => Some(format!(
                "left without a plan: with {} kernels the head would be {} bytes instead of {}; --target plans for the \
                 kernels on the device alone",
                head.library,
                thousands(head.head_bytes),
                thousands(head.greedy_head_bytes)
            )),
            Outcome::ForeignPlanKept => Some(format!(
                "the plan that was in the file is right and smaller than ours, and is kept ({} bytes)",
                thousands(self.head_bytes)
            )),
            Outcome::AsStored => None,
            Outcome::Planned { .. } if self.head_bytes < self.before_head_bytes => None,
            Outcome::Planned { .. } if self.head_bytes > self.before_head_bytes => Some(
                "larger than before, when the file did not do what the options ask for".into(),
            ),
            Outcome::Planned { replaced: true }
                if self.before_head_bytes != self.greedy_head_bytes =>
            {
                Some(
                "nothing to save against the plan that was in the file; it is replaced by ours".into(),
            )
            }
            Outcome::Planned { .. } if self.optimal && self.is_chain => Some(
                "nothing to save: the operators form a chain, so their order is forced, and TFLM's own plan is optimal"
                    .into(),
            ),
            Outcome::Planned { .. } if self.optimal && self.order_proved => Some(
                "nothing to save: TFLM's own planner already reaches the least that is alive at the peak, in any order of the \
                 operators"
                    .into(),
            ),
            Outcome::Planned { .. } if self.optimal => Some(
                "nothing to save: TFLM's own planner already reaches the least that is alive at the peak".into(),
            ),
            Outcome::Planned { .. } => Some(format!(
                "no plan smaller than TFLM's own was found; none is below {} bytes",
                thousands(self.sizes.bound_with_scratch_bytes)
            )),
        }
    }

    /// What the head lost against `before_head_bytes`, in percent of that; negative when it grew.
    pub fn saving_percent(&self) -> f64 {
        if self.before_head_bytes == 0 {
            return 0.0;
        }
        let saved = self.before_head_bytes as f64 - self.head_bytes as f64;
        100.0 * saved / self.before_head_bytes as f64
    }
}

/// The arena that a model with this head needs.
fn arena(graph: &Graph<'_>, scratch: &Scratch, head: u64, width: tail::Width) -> Arena {
    if scratch.library() == Library::Arenaplan {
        return own::arena(graph, scratch, head);
    }
    Arena {
        tail_bytes: tail::tail_bytes_with(graph, scratch, width).bytes,
        planning_bytes: room::planning_room(graph, scratch, width),
        arena_bytes: room::arena_bytes(graph, head, scratch, width),
    }
}

/// Whether each operator of the only subgraph reads what the one before it wrote.
fn is_chain(graph: &Graph<'_>) -> bool {
    graph.subgraphs.len() == 1
        && graph.subgraphs[0].operators.windows(2).all(|pair| {
            let made: BTreeSet<_> = pair[0].outputs.iter().collect();
            pair[1].inputs.iter().flatten().any(|t| made.contains(t))
        })
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
    for tensor in &graph.tensors {
        if let (Some(shape), false) = (&tensor.prepared_shape, tensor.shape.contains(&-1)) {
            warnings.push(format!(
                "{} is stored with the shape {:?}, but its operator makes it {shape:?}; TFLM goes by the latter",
                tensor.label(),
                tensor.shape
            ));
        }
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
            "{}: its code stands only in `deprecated_builtin_code`; TFLM versions before autumn 2026 overlook the subgraphs \
             it runs, and compute wrong numbers without a plan",
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
