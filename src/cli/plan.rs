//! `arenaplan plan`

use std::fs;

use anyhow::{Context, bail};
use serde::Serialize;

use super::args::{Bits, DeviceArgs, Format, PlanArgs};
use super::json::{self, Failure, ModelFigures};
use super::models::{self, Source};
use super::output::{self, Destination};
use super::text::{Align, percent, table, thousands};
use super::{Progress, Status, complain, print};
use crate::plan::{Options, Planned, plan};
use crate::report::{Outcome, Report};
use crate::target::Target;

/// What became of one model.
struct Row {
    model: String,
    output: Option<String>,
    report: Report,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item {
    Figures(Box<ModelFigures>),
    Failure(Failure),
}

pub(super) fn run(args: &PlanArgs) -> anyhow::Result<Status> {
    let sources = models::find(&args.models.models)?;
    let destinations = if args.dry_run {
        None
    } else {
        Some(output::destinations(&args.output, &sources)?)
    };
    let options = Options {
        solver: args.solver,
        keep_inputs: args.keep_inputs,
        keep: args.keep.clone(),
        online: args.online.clone(),
        ..options(&args.device)?
    };
    let mut status = Status::Done;
    let mut rows = Vec::new();
    let mut items = Vec::new();
    let progress = Progress::new(sources.len());
    for (i, source) in sources.iter().enumerate() {
        progress.step(i, &source.name());
        let destination = destinations.as_ref().map(|d| &d[i]);
        match one(args, &options, source, destination) {
            Ok((row, row_status)) => {
                status = status.max(row_status);
                progress.clear();
                for warning in &row.report.warnings {
                    complain(&format!("warning: {}: {warning}", row.model));
                }
                items.push(Item::Figures(Box::new(ModelFigures::new(
                    row.model.clone(),
                    row.output.clone(),
                    &row.report,
                    args.device.bits,
                ))));
                rows.push(row);
            }
            Err(e)
                if e.downcast_ref::<std::io::Error>()
                    .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe) =>
            {
                return Err(e);
            }
            Err(e) => {
                status = status.max(Status::Failed);
                progress.clear();
                complain(&format!("error: {}: {e:#}", source.name()));
                items.push(Item::Failure(Failure {
                    model: source.name(),
                    error: format!("{e:#}"),
                }));
            }
        }
    }
    progress.clear();
    let text = match args.format {
        Format::Json => json::array(&items)?,
        Format::Text => match &rows[..] {
            [] => String::new(),
            [row] if sources.len() == 1 => single(row, args.device.bits),
            rows => several(rows, sources.len(), args.device.bits),
        },
    };
    // With the model on standard output, the report goes to the other stream.
    if destinations
        .iter()
        .flatten()
        .any(|d| *d == Destination::Stdout)
    {
        complain(text.trim_end());
    } else {
        print(&text)?;
    }
    Ok(status)
}

/// What the flags about the device say.
pub(super) fn options(device: &DeviceArgs) -> anyhow::Result<Options> {
    let scratch = match &device.scratch {
        None => None,
        Some(path) => Some(
            fs::read_to_string(path)
                .with_context(|| format!("cannot read the scratch file {}", path.display()))?,
        ),
    };
    let target: Target = device.target;
    Ok(Options {
        target,
        align: device.align,
        scratch,
        ..Options::default()
    })
}

fn one(
    args: &PlanArgs,
    options: &Options,
    source: &Source,
    destination: Option<&Destination>,
) -> anyhow::Result<(Row, Status)> {
    let bytes = source.read()?;
    let Planned { file, report } = plan(&bytes, options)?;
    let arena = match args.device.bits {
        Bits::B32 => report.arena_32,
        Bits::B64 => report.arena_64,
    };
    let over = args.arena_limit.filter(|&limit| arena.arena_bytes > limit);
    let mut output = None;
    if let Some(limit) = over {
        complain(&format!(
            "over the limit: {}: the arena needs {} bytes, allowed are {}; not written",
            source.name(),
            thousands(arena.arena_bytes),
            thousands(limit)
        ));
    } else if let Some(destination) = destination {
        if file.is_empty() {
            bail!("the planned file is empty");
        }
        output::write(destination, source, &args.output, args.force, &file)?;
        output = Some(destination.name());
    }
    let status = if over.is_some() {
        Status::No
    } else {
        Status::Done
    };
    Ok((
        Row {
            model: source.name(),
            output,
            report,
        },
        status,
    ))
}

/// One model: a line per figure.
fn single(row: &Row, bits: Bits) -> String {
    let report = &row.report;
    let (width, arena) = match bits {
        Bits::B32 => ("32-bit", report.arena_32),
        Bits::B64 => ("64-bit", report.arena_64),
    };
    let mut text = format!("{}\n", row.model);
    let mut line = |name: &str, bytes: u64, note: &str| {
        let note = if note.is_empty() {
            String::new()
        } else {
            format!("   {note}")
        };
        text.push_str(&format!(
            "  {name:<22}{:>12} bytes{note}\n",
            thousands(bytes)
        ));
    };
    let proved = if report.optimal { "proved optimal" } else { "" };
    let bound = report.sizes.bound_with_scratch_bytes;
    line(
        "head without a plan",
        report.greedy_head_bytes,
        "what TFLM's own planner uses",
    );
    let note = match (report.saving_percent(), proved) {
        (0.0, proved) => proved.to_owned(),
        (saved, "") => percent(saved),
        (saved, proved) => format!("{}, {proved}", percent(saved)),
    };
    line("head", report.head_bytes, &note);
    if !report.optimal && bound <= report.head_bytes {
        line(
            "lower bound",
            bound,
            "no plan in this order of operators can be below",
        );
    }
    line(
        "tail",
        arena.tail_bytes,
        &format!("estimate for a {width} device"),
    );
    let note = if arena.planning_bytes > report.head_bytes {
        format!(
            "{} above the tail are needed while TFLM plans",
            thousands(arena.planning_bytes)
        )
    } else {
        String::new()
    };
    line("arena to reserve", arena.arena_bytes, &note);
    if !report.tail_is_complete {
        text.push_str("  the tail does not count what operators unknown to TFLM allocate\n");
    }
    if let Some(why) = report.explanation() {
        text.push_str(&format!("  {why}\n"));
    }
    match &row.output {
        Some(path) => text.push_str(&format!("  written: {path}\n")),
        None => text.push_str("  nothing written\n"),
    }
    text
}

/// Several models: a row each, then the sum of it.
fn several(rows: &[Row], asked: usize, bits: Bits) -> String {
    let columns = [
        ("model", Align::Left),
        ("TFLM head", Align::Right),
        ("head", Align::Right),
        ("saved", Align::Right),
        ("arena", Align::Right),
        ("", Align::Left),
    ];
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let report = &row.report;
            let arena = match bits {
                Bits::B32 => report.arena_32,
                Bits::B64 => report.arena_64,
            };
            let note = match report.outcome {
                Outcome::Planned { .. } if report.optimal => "optimal".to_owned(),
                Outcome::Planned { .. } => {
                    format!("bound {}", thousands(report.sizes.bound_with_scratch_bytes))
                }
                Outcome::ForeignPlanKept => "stored plan kept".into(),
                Outcome::WorseThanUnplanned { .. } => "not written: better without a plan".into(),
                Outcome::NothingToPlan => "nothing to plan".into(),
                Outcome::CompiledOffsets { .. } => "compiled offsets, left as it is".into(),
                Outcome::AsStored => String::new(),
            };
            vec![
                row.model.clone(),
                thousands(report.greedy_head_bytes),
                thousands(report.head_bytes),
                percent(report.saving_percent()),
                thousands(arena.arena_bytes),
                note,
            ]
        })
        .collect();
    let smaller = rows
        .iter()
        .filter(|r| r.report.head_bytes < r.report.greedy_head_bytes)
        .count();
    let mut text = table(&columns, &cells);
    text.push_str(&format!(
        "\n{} models: {smaller} smaller, {} the same{}; arena for {} devices (head + estimated tail)\n",
        rows.len(),
        rows.len() - smaller,
        if asked > rows.len() { format!(", {} failed", asked - rows.len()) } else { String::new() },
        if bits == Bits::B32 { "32-bit" } else { "64-bit" },
    ));
    if let Some(mean) = geometric_mean(rows) {
        text.push_str(&format!(
            "head against TFLM's own, geometric mean: {mean:.3}\n"
        ));
    }
    let folders: Vec<_> = rows.iter().filter_map(|r| r.output.as_ref()).collect();
    match folders.len() {
        0 => text.push_str("nothing written\n"),
        n => text.push_str(&format!("{n} files written\n")),
    }
    text
}

/// Of `head / greedy_head` over the models that have a head.
fn geometric_mean(rows: &[Row]) -> Option<f64> {
    let logs: Vec<f64> = rows
        .iter()
        .filter(|r| r.report.greedy_head_bytes > 0)
        .map(|r| (r.report.head_bytes as f64 / r.report.greedy_head_bytes as f64).ln())
        .collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}
