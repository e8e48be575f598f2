//! Planning with row stripes: rewritings of the file are planned like any file, and the one with the smallest arena wins.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use arenaplan_schema::patch::{self, Edit, Rewrite};
use arenaplan_schema::tflite::BuiltinOperator;

use super::base::Base;
use super::{Options, Planned, plan_base};
use crate::error::Error;
use crate::graph::{Graph, Origin};
use crate::model::Model;
use crate::report::{Outcome, Report, Striped, StripedRegion};
use crate::stripes::cost::Machine;
use crate::stripes::{self, Found, ProofError, prove};

/// How far the estimate of a tail is off at most, in bytes.
const TAIL_ERROR: u64 = 256;

/// Whether layers may be computed in row stripes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stripes {
    /// They may not.
    #[default]
    No,
    /// With at most so much more work, in thousandths of the model's.
    UpTo(u32),
    /// With as much more work as is in proportion to what it saves.
    Auto,
}

impl fmt::Display for Stripes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stripes::No => f.pad("no"),
            Stripes::Auto => f.pad("auto"),
            Stripes::UpTo(thousandths) if thousandths % 10 == 0 => {
                write!(f, "{}%", thousandths / 10)
            }
            Stripes::UpTo(thousandths) => {
                write!(f, "{}.{}%", thousandths / 10, thousandths % 10)
            }
        }
    }
}

/// A text that does not say how much more work stripes may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoStripes(String);

impl fmt::Display for NoStripes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no amount of work: give a percentage of the model's from 0.1% to 1000% with one decimal at most, as 10% or \
             7.5%, or auto, or no",
            self.0
        )
    }
}

impl std::error::Error for NoStripes {}

impl FromStr for Stripes {
    type Err = NoStripes;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let thousandths = |text: &str| {
            let number = text.strip_suffix('%').unwrap_or(text);
            let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
            let is_number = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
            if !is_number(whole) || !is_number(tenth) || tenth.len() > 1 {
                return None;
            }
            let whole: u32 = whole.parse().ok()?;
            let all = whole.checked_mul(10)? + tenth.parse::<u32>().ok()?;
            (1..=10_000).contains(&all).then_some(all)
        };
        match text {
            "no" => Ok(Stripes::No),
            "auto" => Ok(Stripes::Auto),
            _ => match thousandths(text) {
                Some(all) => Ok(Stripes::UpTo(all)),
                None => Err(NoStripes(text.to_owned())),
            },
        }
    }
}

/// The best of `plain`, which has no stripes, and rewritings with them: the one with the smallest arena, and among those the
/// one that adds the least work.
pub(super) fn best(
    graph: &Graph<'_>,
    options: &Options,
    mut plain: Planned,
) -> Result<Planned, Error> {
    if matches!(plain.report.outcome, Outcome::CompiledOffsets { .. }) {
        plain.report.no_stripes = Some("the file has offsets compiled in".into());
        return Ok(plain);
    }
    let found = match stripes::search(graph, options)? {
        Ok(found) => found,
        Err(nothing) => {
            plain.report.no_stripes = Some(nothing.to_string());
            return Ok(plain);
        }
    };
    let original = graph.model.bytes();
    let mut nothing = "no way to cut the layers at the peak makes the arena smaller";
    let mut best: Option<(Planned, Vec<u8>, Rewrite)> = None;
    let mut refused = None;
    for found in &found {
        // Plans are hardly ever below these estimates, so that some cannot win any more.
        let tail = plain
            .report
            .arena_32
            .tail_bytes
            .saturating_add_signed(found.extra_tail);
        let least = (found.least + tail).saturating_sub(TAIL_ERROR);
        let is_above = |best: &Planned| least > best.report.arena_32.arena_bytes;
        if options.stripes != Stripes::Auto && best.as_ref().is_some_and(|(b, ..)| is_above(b)) {
            continue;
        }
        let rewrite = found.net.rewrite(graph)?;
        let edit = Edit {
            rewrite: vec![rewrite.clone()],
            ..Edit::default()
        };
        // Files have more in them than a graph knows of, as tables of a newer schema.
        let bytes = match patch::graft(original, &edit) {
            Ok(bytes) => bytes,
            Err(error) => {
                refused = Some(error);
                continue;
            }
        };
        let rewritten = Graph::read(Model::parse(&bytes)?)?;
        if options.scratch.is_some() && !knows_its_copies(&rewritten) {
            nothing = "copies of some layers cannot be told from others, so that the scratch file does not say what they ask for";
            continue;
        }
        let base = Base {
            graph: &rewritten,
            original,
            rewrite: vec![rewrite.clone()],
            before: Some(&plain.report),
        };
        let mut planned = match plan_base(&base, options, None) {
            Err(Error::TooManySteps { .. }) => {
                nothing = "the model is too large for its plan to be checked";
                continue;
            }
            planned => planned?,
        };
        planned.report.stripes = Some(described(found, graph, &rewritten, options, &plain.report));
        let size = |report: &Report| size(report, options.stripes);
        let is_accepted = size(&planned.report) < size(&plain.report)
            && no_library_is_worse(&planned.report, &plain.report);
        let is_best = best
            .as_ref()
            .is_none_or(|(b, ..)| size(&planned.report) < size(&b.report));
        if is_accepted && is_best {
            best = Some((planned, bytes, rewrite));
        }
    }
    let Some((best, bytes, rewrite)) = best else {
        plain.report.no_stripes = Some(match refused {
            Some(error) => format!("the file cannot be rewritten: {error}"),
            None => nothing.into(),
        });
        return Ok(plain);
    };
    match prove(&bytes, &rewrite, graph) {
        Ok(()) => Ok(best),
        Err(ProofError::NotRun(reason)) => {
            plain.report.no_stripes = Some(format!(
                "stripes are written only where the result was run beside the model, and it {reason}"
            ));
            Ok(plain)
        }
        Err(ProofError::Differs(reason)) => Err(Error::Internal { reason }),
    }
}

/// Whether of each copy of a layer it is known what it is a copy of.
fn knows_its_copies(rewritten: &Graph<'_>) -> bool {
    let is_ours = |code| {
        matches!(
            code,
            BuiltinOperator::SLICE | BuiltinOperator::CONCATENATION
        )
    };
    let mut all = rewritten.operators();
    all.all(|op| op.origin != Origin::Added || is_ours(op.code))
}

/// What is to be small: what to reserve on a device with 32-bit pointers, where the user gave no budget with the added work
/// weighed in, then the head, then that work.
fn size(report: &Report, stripes: Stripes) -> (u128, u64, i64) {
    let striped = report.stripes.as_ref();
    let (added, all) = striped.map_or((0, 1), |s| (s.extra_instructions, s.instructions.max(1)));
    let arena = u128::from(report.arena_32.arena_bytes) * 1000;
    let weighed = match stripes {
        Stripes::Auto => {
            let all = u128::from(all);
            let work = u128::from(added.max(0).unsigned_abs()) * u128::from(stripes::WEIGHT);
            arena + arena * work / (1000 * all)
        }
        _ => arena,
    };
    (weighed, report.head_bytes, added)
}

/// Whether no library of the target needs more than it does with the file that came in: without a plan, or with the plan
/// without stripes, where that is more because something is kept.
fn no_library_is_worse(striped: &Report, plain: &Report) -> bool {
    let mut libraries = striped.libraries.iter().zip(&plain.libraries);
    libraries
        .all(|(with, without)| with.head_bytes <= with.greedy_head_bytes.max(without.head_bytes))
}

/// What is told of a rewriting.
fn described(
    found: &Found,
    graph: &Graph<'_>,
    rewritten: &Graph<'_>,
    options: &Options,
    plain: &Report,
) -> Striped {
    let operators = |graph: &Graph<'_>| graph.operators().count();
    let kinds = |graph: &Graph<'_>| {
        let all = graph.operators();
        all.map(|op| op.name()).collect::<BTreeSet<_>>()
    };
    let added_kinds = kinds(rewritten)
        .difference(&kinds(graph))
        .cloned()
        .collect();
    let label = |at: u32| graph.subgraphs[0].operators[at as usize].label();
    let regions = found.regions.iter().map(|region| StripedRegion {
        operators: [label(region.operators.0), label(region.operators.1)],
        layers: region.layers,
        cuts: region.cuts.clone(),
    });
    Striped {
        regions: regions.collect(),
        machine: Machine::of(options.kernels()),
        macs: found.macs,
        extra_macs: found.extra_macs,
        instructions: found.instructions,
        extra_instructions: found.extra_instructions,
        added_operators: operators(rewritten) - operators(graph),
        added_file_bytes: rewritten.model.bytes().len() - graph.model.bytes().len(),
        added_kinds,
        head_bytes_before: plain.head_bytes,
        arena_32_bytes_before: plain.arena_32.arena_bytes,
        arena_64_bytes_before: plain.arena_64.arena_bytes,
    }
}
