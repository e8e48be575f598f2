//! `arenaplan plan`

use std::fs;

use anyhow::{Context, bail};
use arenaplan_solver::{Limits, Planner};
use serde::Serialize;

use super::args::{
    Bits, Choice, DeviceArgs, Format, FreedomArgs, LayoutArgs, PlanArgs, SearchArgs,
};
use super::json::{self, Failure, ModelFigures};
use super::models::{self, Found, Source};
use super::output::{self, Destination};
use super::plan_text::{several, single};
use super::share::SharedFigures;
use super::text::thousands;
use super::{Status, complain, each, share};
use crate::error::Error;
use crate::plan::{Options, Stripes, plan};
use crate::report::Report;
use crate::stored::{made_for, stripes_of};
use crate::target::Target;
use crate::tflm;

/// What became of one model.
pub(super) struct Row {
    /// Its path.
    pub(super) model: String,
    /// Where the result was written.
    pub(super) output: Option<String>,
    /// The figures.
    pub(super) report: Report,
    /// Its arena is over the limit, so it was not written.
    pub(super) over_limit: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Item {
    Figures(Box<ModelFigures>),
    Failure(Failure),
    /// All models of a group together.
    Shared(Box<SharedFigures>),
}

/// Where the planned models go; nowhere, if nothing is to be written.
pub(super) fn destinations(
    args: &PlanArgs,
    found: &Found,
) -> anyhow::Result<Option<Vec<Destination>>> {
    let otherwise = "; --dry-run only reports";
    match args.dry_run {
        true => Ok(None),
        false => output::destinations(&args.output, &found.sources, otherwise).map(Some),
    }
}

pub(super) fn run(args: &PlanArgs) -> anyhow::Result<Status> {
    let found = models::find(&args.models.models, args.output.out_dir.as_deref());
    if args.share.is_asked() {
        return share::run(args, &found);
    }
    let destinations = destinations(args, &found)?;
    without_offsets(&args.freedom, &args.device.layout, &args.search)?;
    let options = Options {
        target: args.device.target.unwrap_or(Target::Tflm),
        precompute: args.precompute == Choice::Yes,
        ..planning(&args.device.layout, &args.search, &args.freedom, &found)?
    };
    let (results, mut status) = each(&found, |i, source| {
        let row = one(args, &options, source, destinations.as_ref().map(|d| &d[i]))?;
        for warning in &row.report.warnings {
            complain(&format!("warning: {}: {warning}", source.name()));
        }
        Ok(row)
    })?;
    if results.iter().flatten().any(|row| row.over_limit) {
        status = status.max(Status::No);
    }
    let text = match args.format {
        Format::Json => {
            let items: Vec<Item> = results
                .into_iter()
                .map(|result| item(result, args))
                .collect();
            json::array(&items)?
        }
        Format::Text => {
            let asked = results.len();
            let rows: Vec<Row> = results.into_iter().flatten().collect();
            match &rows[..] {
                [] => String::new(),
                [row] if asked == 1 => single(row, args.device.bits),
                rows => several(rows, asked, args.device.bits),
            }
        }
    };
    output::report(&text, destinations.iter().flatten())?;
    Ok(status)
}

pub(super) fn item(result: Result<Row, Failure>, args: &PlanArgs) -> Item {
    match result {
        Ok(row) => {
            let Row {
                model,
                output,
                report,
                over_limit,
            } = row;
            let (bits, limit) = (args.device.bits, args.arena_limit);
            let figures = ModelFigures::new(model, output, &report, bits, limit);
            Item::Figures(Box::new(figures.over_limit(over_limit)))
        }
        Err(failure) => Item::Failure(failure),
    }
}

/// That `--plan no` leaves something to do, and that no flag is about the offsets that it leaves out.
pub(super) fn without_offsets(
    freedom: &FreedomArgs,
    layout: &LayoutArgs,
    search: &SearchArgs,
) -> anyhow::Result<()> {
    if freedom.offsets == Choice::Yes {
        return Ok(());
    }
    if freedom.stripes == Stripes::No {
        bail!(
            "--plan no leaves nothing to do: --stripes PERCENT cuts layers into row stripes, and `strip` takes a plan out"
        );
    }
    let default = Limits::default();
    let about_offsets = [
        ("--keep-inputs", freedom.keep_inputs),
        ("--keep", !freedom.keep.is_empty()),
        ("--online", !freedom.online.is_empty()),
        ("--alias", layout.alias.is_some()),
        ("--align", layout.align != tflm::ALIGNMENT),
        ("--solver", search.solver != Planner::Auto),
        ("--node-limit", search.node_limit != default.nodes),
        ("--time-limit", search.time_limit != default.time),
    ];
    match about_offsets.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => bail!(
            "{flag} is about the offsets of tensors, and --plan no writes none: the device's own planner places them"
        ),
        None => Ok(()),
    }
}

/// What the flags about planning say.
pub(super) fn planning(
    layout: &LayoutArgs,
    search: &SearchArgs,
    freedom: &FreedomArgs,
    found: &Found,
) -> anyhow::Result<Options> {
    Ok(Options {
        solver: search.solver,
        limits: search.limits(),
        keep_inputs: freedom.keep_inputs,
        keep: freedom.keep.clone(),
        online: freedom.online.clone(),
        reorder: freedom.reorder == Choice::Yes,
        stripes: freedom.stripes,
        offsets: freedom.offsets == Choice::Yes,
        ..laid_out(layout, found)?
    })
}

/// What the flags about the device say.
pub(super) fn options(device: &DeviceArgs, found: &Found) -> anyhow::Result<Options> {
    Ok(Options {
        target: device.target.unwrap_or(Target::Tflm),
        ..laid_out(&device.layout, found)?
    })
}

fn laid_out(layout: &LayoutArgs, found: &Found) -> anyhow::Result<Options> {
    let scratch = match &layout.scratch {
        None => None,
        Some(_) if found.sources.len() > 1 => {
            bail!(
                "--scratch names operators of one model, {} are given",
                found.sources.len()
            )
        }
        Some(path) => Some(
            fs::read_to_string(path)
                .with_context(|| format!("cannot read the scratch file {}", path.display()))?,
        ),
    };
    Ok(Options {
        alias: layout.alias,
        align: layout.align,
        scratch,
        ..Options::default()
    })
}

/// The options for a file that may carry a plan of ours: without a target on the command line it is judged by what it was
/// made for.
pub(super) fn for_file(options: &Options, device: &DeviceArgs, bytes: &[u8]) -> Options {
    let mut options = options.clone();
    if device.target.is_none()
        && let Some((target, alias)) = made_for(bytes)
    {
        options.target = target;
        options.alias = options.alias.or(alias);
    }
    if let Some(stripes) = stripes_of(bytes) {
        options.stripes = stripes;
    }
    options
}

/// Names the scratch file in an error about it.
pub(super) fn about_scratch(error: Error, layout: &LayoutArgs) -> anyhow::Error {
    match (&error, &layout.scratch) {
        (Error::Scratch { .. }, Some(path)) => {
            let context = path.display().to_string();
            anyhow::Error::new(error).context(context)
        }
        _ => error.into(),
    }
}

/// What a limit of the arena is about, with words about the kernels: the largest of the arenas that the target's libraries
/// need. Where any kernels may run, that of the reference kernels, as there is no largest.
fn largest_arena(report: &Report, target: Target, bits: Bits) -> (u64, String) {
    let libraries = report.libraries.iter().filter(|_| target != Target::Tflm);
    let largest = libraries.max_by_key(|l| bits.of_library(l));
    match largest.filter(|_| report.libraries.len() > 1) {
        Some(head) => (
            bits.of_library(head),
            format!(" with {} kernels", head.library),
        ),
        None => (bits.of(report).arena_bytes, String::new()),
    }
}

fn one(
    args: &PlanArgs,
    options: &Options,
    source: &Source,
    destination: Option<&Destination>,
) -> anyhow::Result<Row> {
    let bytes = source.read()?;
    let planned = plan(&bytes, options).map_err(|e| about_scratch(e, &args.device.layout))?;
    let (arena_bytes, with) = largest_arena(&planned.report, options.target, args.device.bits);
    let over = args.arena_limit.filter(|&limit| arena_bytes > limit);
    let mut output = None;
    if let Some(limit) = over {
        complain(&format!(
            "over the limit: {}: the arena needs {} bytes{with}, allowed are {}; not written",
            source.name(),
            thousands(arena_bytes),
            thousands(limit)
        ));
    } else if let Some(destination) = destination {
        output::write(destination, &args.output, args.force, &planned.file)?;
        output = Some(destination.path_text());
    }
    let model = source.path_text();
    Ok(Row {
        model,
        output,
        report: planned.report,
        over_limit: over.is_some(),
    })
}
