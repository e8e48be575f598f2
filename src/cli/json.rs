//! The JSON objects that `plan` and `inspect` print, one per model.

use std::fmt;

use arenaplan_schema::patch::{self, PatchError};
use serde::Serialize;

use super::args::Bits;
use super::text::shown;
use crate::report::{LibraryHead, Outcome, Report, Striped};

/// The version of the tool, for every object.
pub(super) const TOOL_VERSION: &str = env!("CARGO_PKG_VERSION");

/// The keys that both commands share. More may come, none of these is renamed.
#[derive(Debug, Serialize)]
pub(super) struct ModelFigures {
    arenaplan: &'static str,
    model: String,
    output: Option<String>,
    outcome: &'static str,
    target: String,
    alias: &'static str,
    needs: Option<String>,
    solver: String,
    planner: String,
    subgraphs: usize,
    operators: usize,
    tensors: usize,
    tensors_planned: usize,
    sum_bytes: u64,
    bound_bytes: u64,
    file_order_bound_bytes: u64,
    bound_with_scratch_bytes: u64,
    greedy_head_bytes: u64,
    before_head_bytes: u64,
    head_bytes: u64,
    optimal: bool,
    optimal_in_any_order: bool,
    reordered: bool,
    order_proved: bool,
    pointer_bits: u32,
    tail_bytes: u64,
    tail_is_estimate: bool,
    tail_is_complete: bool,
    planning_bytes: u64,
    arena_bytes: u64,
    arena_limit: Option<u64>,
    over_limit: bool,
    tail_bytes_32: u64,
    arena_bytes_32: u64,
    tail_bytes_64: u64,
    arena_bytes_64: u64,
    file_bytes_before: usize,
    file_bytes: usize,
    prepared_bytes: usize,
    libraries: Vec<LibraryFigures>,
    stripes: Option<StripesFigures>,
    no_stripes: Option<String>,
    explanation: Option<String>,
    warnings: Vec<String>,
}

/// The head with one library of the target.
#[derive(Debug, Serialize)]
pub(super) struct LibraryFigures {
    pub(super) library: &'static str,
    pub(super) greedy_head_bytes: u64,
    pub(super) head_bytes: u64,
    pub(super) arena_bytes_32: u64,
    pub(super) arena_bytes_64: u64,
}

impl LibraryFigures {
    fn new(head: &LibraryHead) -> Self {
        Self {
            library: head.library.name(),
            greedy_head_bytes: head.greedy_head_bytes,
            head_bytes: head.head_bytes,
            arena_bytes_32: head.arena_32.arena_bytes,
            arena_bytes_64: head.arena_64.arena_bytes,
        }
    }
}

/// What was cut into row stripes, and what that costs.
#[derive(Debug, Serialize)]
struct StripesFigures {
    regions: Vec<RegionFigures>,
    macs: u64,
    extra_macs: i64,
    extra_macs_percent: f64,
    /// Whose instructions are estimated.
    counted_for: &'static str,
    instructions: u64,
    extra_instructions: i64,
    extra_cost_percent: f64,
    added_operators: usize,
    added_file_bytes: usize,
    added_kinds: Vec<String>,
    head_bytes_before: u64,
    arena_bytes_before: u64,
}

/// Layers that are computed in row stripes: operators of the file that came in.
#[derive(Debug, Serialize)]
struct RegionFigures {
    first: String,
    last: String,
    layers: usize,
    stripes: usize,
    cuts: Vec<i64>,
}

impl StripesFigures {
    fn new(striped: &Striped, bits: Bits) -> Self {
        let regions = striped.regions.iter().map(|region| {
            let [first, last] = region.operators.clone();
            RegionFigures {
                first,
                last,
                layers: region.layers,
                stripes: region.stripes(),
                cuts: region.cuts.clone(),
            }
        });
        let round = |percent: f64| (percent * 100.0).round() / 100.0;
        Self {
            regions: regions.collect(),
            macs: striped.macs,
            extra_macs: striped.extra_macs,
            extra_macs_percent: round(striped.extra_macs_percent()),
            counted_for: striped.machine.name(),
            instructions: striped.instructions,
            extra_instructions: striped.extra_instructions,
            extra_cost_percent: round(striped.extra_percent()),
            added_operators: striped.added_operators,
            added_file_bytes: striped.added_file_bytes,
            added_kinds: striped.added_kinds.clone(),
            head_bytes_before: striped.head_bytes_before,
            arena_bytes_before: bits.before_stripes(striped),
        }
    }
}

/// A model that could not be worked on.
#[derive(Debug, Serialize)]
pub(super) struct Failure {
    pub(super) model: String,
    pub(super) error: String,
}

impl ModelFigures {
    pub(super) fn new(
        model: String,
        output: Option<String>,
        report: &Report,
        bits: Bits,
        arena_limit: Option<u64>,
    ) -> Self {
        let arena = bits.of(report);
        Self {
            arenaplan: TOOL_VERSION,
            model,
            output,
            outcome: match report.outcome {
                Outcome::Planned { replaced: false } => "planned",
                Outcome::Planned { replaced: true } => "replaced",
                Outcome::ForeignPlanKept => "kept",
                Outcome::WorseThanUnplanned { .. } | Outcome::WorseOnLibrary(_) => "dropped",
                Outcome::NothingToPlan => "nothing-to-plan",
                Outcome::LeftToDevice => "left-to-device",
                Outcome::CompiledOffsets { .. } => "compiled-offsets",
                Outcome::AsStored => "as-stored",
            },
            target: report.target.clone(),
            alias: report.level.name(),
            needs: report.needs.clone(),
            solver: report.solver.clone(),
            planner: report.planner.clone(),
            subgraphs: report.subgraphs,
            operators: report.operators,
            tensors: report.tensors,
            tensors_planned: report.tensors_planned,
            sum_bytes: report.sizes.sum_bytes,
            bound_bytes: report.sizes.bound_bytes,
            file_order_bound_bytes: report.sizes.file_order_bound_bytes,
            bound_with_scratch_bytes: report.sizes.bound_with_scratch_bytes,
            greedy_head_bytes: report.greedy_head_bytes,
            before_head_bytes: report.before_head_bytes,
            head_bytes: report.head_bytes,
            optimal: report.optimal,
            optimal_in_any_order: report.optimal_in_any_order,
            reordered: report.reordered,
            order_proved: report.order_proved,
            pointer_bits: bits.number(),
            tail_bytes: arena.tail_bytes,
            tail_is_estimate: !report.tail_is_exact,
            tail_is_complete: report.tail_is_complete,
            planning_bytes: arena.planning_bytes,
            arena_bytes: arena.arena_bytes,
            arena_limit,
            over_limit: false,
            tail_bytes_32: report.arena_32.tail_bytes,
            arena_bytes_32: report.arena_32.arena_bytes,
            tail_bytes_64: report.arena_64.tail_bytes,
            arena_bytes_64: report.arena_64.arena_bytes,
            file_bytes_before: report.file_bytes_before,
            file_bytes: report.file_bytes,
            prepared_bytes: report.prepared_bytes,
            libraries: report.libraries.iter().map(LibraryFigures::new).collect(),
            stripes: report
                .stripes
                .as_ref()
                .map(|striped| StripesFigures::new(striped, bits)),
            no_stripes: report.no_stripes.clone(),
            explanation: report.explanation(),
            warnings: report.warnings.clone(),
        }
    }
}

impl ModelFigures {
    /// The same, with whether some arena of the target is above the limit.
    pub(super) fn over_limit(self, over_limit: bool) -> Self {
        Self { over_limit, ..self }
    }
}

/// One JSON array over all inputs, with a line break at the end.
pub(super) fn array<T: Serialize>(items: &[T]) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(items)? + "\n")
}

/// Who wrote a plan, when that was this tool.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Writer {
    version: String,
    target: String,
    options: String,
}

impl Writer {
    /// The writer of the plan in a file.
    pub(super) fn of(bytes: &[u8]) -> Result<Option<Self>, PatchError> {
        let provenance = patch::inspect_provenance(bytes)?;
        Ok(provenance.map(|p| Self {
            version: p.stamp.tool_version,
            target: p.stamp.target,
            options: p.stamp.options,
        }))
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = match &self.options[..] {
            "" => "default options",
            options => options,
        };
        write!(
            f,
            "written by arenaplan {} for target {} ({})",
            shown(&self.version),
            shown(&self.target),
            shown(options)
        )
    }
}
