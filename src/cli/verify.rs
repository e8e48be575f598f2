//! `arenaplan verify`

use arenaplan_schema::patch;
use serde::Serialize;

use super::args::{DeviceArgs, Format, VerifyArgs};
use super::json::{self, Failure, Writer};
use super::models::{self, Source};
use super::plan::{about_scratch, for_file, options};
use super::share::SharedFinding;
use super::text::{count, only_for, shown, thousands};
use super::{Status, complain, each, print};
use crate::execute::{self, Difference, ExecuteError, Feed};
use crate::graph::Graph;
use crate::inspect::without_plan;
use crate::lifetimes::Lifetimes;
use crate::model::Model;
use crate::plan::Options;
use crate::stored::{Setting, StoredPlan};
use crate::tflm;

/// What there is to say of a stored plan in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// It is right for its model.
    Right,
    /// It is not.
    Wrong,
    /// There is none.
    None,
    /// There is none, and no tensor that could be planned either.
    NothingToPlan,
    /// There is none, but layers are in row stripes, as was asked for.
    StripesAlone,
}

/// What was found in one file.
#[derive(Debug, Serialize)]
struct Finding {
    model: String,
    plan: State,
    /// Who wrote it, when that was us.
    written_by: Option<Writer>,
    /// The kernels without which the model computes wrong numbers; none when any will do.
    needs: Option<String>,
    /// Whether the kernels were named on the command line, and not by the file.
    #[serde(skip)]
    is_asked: bool,
    /// Operators are not where they were before the file was planned.
    reordered: bool,
    /// Layers are computed in row stripes.
    striped: bool,
    head_bytes: Option<u64>,
    greedy_head_bytes: u64,
    faults: Vec<String>,
    notes: Vec<String>,
    /// What running the model showed, where that was asked for and there is a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunFigures>,
    /// Why it could not be run.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_error: Option<String>,
}

/// The model with its plan beside the one without it.
#[derive(Debug, Serialize)]
struct RunFigures {
    invokes: usize,
    /// Whether it was run without the plan's offsets, which the runtime's kernels do not keep: the stripes alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stripes_alone: bool,
    output_bytes: usize,
    vary: bool,
    equal: bool,
    difference: Option<DifferenceFigures>,
}

/// The first element that differs.
#[derive(Debug, Serialize)]
struct DifferenceFigures {
    invoke: usize,
    output: usize,
    element: usize,
    count: usize,
    planned: String,
    unplanned: String,
}

impl DifferenceFigures {
    fn new(difference: Difference) -> Self {
        Self {
            invoke: difference.invoke,
            output: difference.output,
            element: difference.element,
            count: difference.count,
            planned: difference.planned,
            unplanned: difference.unplanned,
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item {
    Finding(Box<Finding>),
    Failure(Failure),
    Shared(SharedFinding),
}

pub(super) fn run(args: &VerifyArgs) -> anyhow::Result<Status> {
    let found = models::find(&args.models.models, None);
    let options = options(&args.device, &found)?;
    let (results, mut status) = each(&found, |_, source| examine(source, &options, args))?;
    let findings = || results.iter().flatten();
    let differs = |f: &Finding| f.run.as_ref().is_some_and(|run| !run.equal);
    if findings().any(|f| matches!(f.plan, State::Wrong | State::None) || differs(f)) {
        status = status.max(Status::No);
    }
    if findings().any(|f| f.run_error.is_some()) {
        status = Status::Failed;
    }
    let shared = match args.share.is_asked() && status != Status::Failed {
        true => Some(SharedFinding::of(args, &found, &options)?),
        false => None,
    };
    if shared.as_ref().is_some_and(|s| !s.faults.is_empty()) {
        status = status.max(Status::No);
    }
    let text = match args.format {
        Format::Text => {
            let mut text: String = findings().map(words).collect();
            if results.len() > 1 {
                text.push_str(&summary(&results));
            }
            text.extend(shared.iter().map(SharedFinding::words));
            text
        }
        Format::Json => {
            let items = results.into_iter().map(|r| match r {
                Ok(finding) => Item::Finding(Box::new(finding)),
                Err(failure) => Item::Failure(failure),
            });
            let items = items.chain(shared.map(Item::Shared));
            json::array(&items.collect::<Vec<_>>())?
        }
    };
    print(&text)?;
    Ok(status)
}

fn examine(source: &Source, options: &Options, args: &VerifyArgs) -> anyhow::Result<Finding> {
    let device: &DeviceArgs = &args.device;
    let bytes = source.read()?;
    let options = &for_file(options, device, &bytes);
    let graph = Graph::read(Model::parse(&bytes)?)?;
    let scratch = options
        .scratch_of(&graph)
        .map_err(|e| about_scratch(e, &device.layout))?;
    let lifetimes = Lifetimes::of(&graph)?;
    let verdict = StoredPlan::read(&graph).judged(
        &graph,
        &Setting {
            lifetimes: &lifetimes,
            scratch: &scratch,
            align: options.align,
            keep: &[],
            kernels: options.kernels(),
        },
    );
    let mut notes = verdict.notes.clone();
    let unplanned = without_plan(&graph, options)?;
    let written_by = match Writer::of(&bytes) {
        Ok(written_by) => {
            if written_by.is_some() {
                notes.extend(patch::strip(&bytes).err().map(|e| e.to_string()));
            }
            written_by
        }
        Err(e) => {
            notes.push(e.to_string());
            None
        }
    };
    let head = verdict.simulation.as_ref().map(|s| s.head);
    let alone = match graph.is_rewritten() && !verdict.exists() {
        true => {
            let scratch = options.scratch_alone(&graph)?;
            Some(tflm::simulate(&graph, &lifetimes, &scratch, None)?.head)
        }
        false => None,
    };
    if verdict.is_right() && head.is_some_and(|h| h > unplanned.head) {
        notes.push("the head is larger than without any plan".into());
    }
    let mut run = None;
    let mut run_error = None;
    let striped = graph.is_rewritten();
    if args.run && (verdict.exists() || striped) {
        match compare(&bytes, striped, args) {
            Ok(figures) => run = Some(figures),
            // That a wrong plan cannot be run is no news.
            Err(e) if verdict.exists() && !verdict.is_right() => notes.push(format!("{e:#}")),
            Err(e) => {
                complain(&format!("error: {}: {e:#}", source.name()));
                run_error = Some(format!("{e:#}"));
            }
        }
    }
    Ok(Finding {
        model: source.path_text(),
        plan: match (verdict.exists(), verdict.is_right()) {
            (true, true) => State::Right,
            (true, false) => State::Wrong,
            (false, _) if striped => State::StripesAlone,
            (false, _) if graph.tensors.iter().any(|t| t.is_planned()) => State::None,
            (false, _) => State::NothingToPlan,
        },
        written_by,
        needs: verdict.needs(&graph, options),
        is_asked: device.target.is_some(),
        reordered: graph.is_reordered(),
        striped,
        head_bytes: head.or(alone),
        greedy_head_bytes: unplanned.head,
        faults: verdict.faults,
        notes,
        run,
        run_error,
    })
}

/// Runs the model with its plan, and without it. One with row stripes whose plan is for kernels that promise more than the
/// runtime's is run with the stripes alone.
fn compare(planned: &[u8], striped: bool, args: &VerifyArgs) -> anyhow::Result<RunFigures> {
    let unplanned = execute::without_plan(planned)?;
    let setting = execute::Setting {
        feed: Feed::Noise(args.random),
        invokes: args.invokes,
        ..execute::Setting::default()
    };
    let run = |file: &[u8]| execute::compare(file, &unplanned, &setting);
    let (comparison, stripes_alone) = match run(planned) {
        Err(ExecuteError::Runtime { error, .. }) if striped && error.is_about_plan() => {
            let alone = patch::graft(planned, &patch::Edit::default())?;
            (run(&alone)?, true)
        }
        comparison => (comparison?, false),
    };
    Ok(RunFigures {
        stripes_alone,
        invokes: comparison.invokes,
        output_bytes: comparison.output_bytes,
        vary: comparison.vary,
        equal: comparison.difference.is_none(),
        difference: comparison.difference.map(DifferenceFigures::new),
    })
}

impl RunFigures {
    /// `other` is what the model was run beside.
    fn words(&self, other: &str) -> String {
        let mut runs = count(self.invokes, "time");
        if self.stripes_alone {
            runs.push_str(
                " with the stripes alone, as the plan is for other kernels than the runtime's",
            );
        }
        match &self.difference {
            None if self.output_bytes == 0 => {
                format!("run {runs}: there are no outputs to compare")
            }
            None if !self.vary && self.invokes > 1 => format!(
                "run {runs}: the same outputs as {other}, but the same each time, which says little"
            ),
            None => format!("run {runs}: the same outputs as {other}"),
            Some(difference) => format!(
                "run {runs}: OTHER outputs than {other}: at run {}, output {}, element {} is {} instead of {}, one of \
                 {} that differ",
                difference.invoke + 1,
                difference.output,
                thousands(difference.element as u64),
                difference.planned,
                difference.unplanned,
                thousands(difference.count as u64)
            ),
        }
    }
}

fn words(finding: &Finding) -> String {
    let name = shown(&finding.model);
    let without = thousands(finding.greedy_head_bytes);
    let head = finding.head_bytes.map_or("of unknown size".into(), |n| {
        format!("{} bytes", thousands(n))
    });
    let mut text = match finding.plan {
        State::None => format!("{name}: no plan\n"),
        State::NothingToPlan => format!("{name}: no plan, and nothing to plan\n"),
        State::StripesAlone => {
            format!("{name}: no plan, row stripes alone, head {head}, {without} without them\n")
        }
        State::Right => format!("{name}: the plan is right, head {head}, {without} without it\n"),
        State::Wrong => format!("{name}: the plan is WRONG, head {head}, {without} without it\n"),
    };
    if let Some(writer) = &finding.written_by {
        let reordered = match finding.reordered {
            true => ", operators reordered",
            false => "",
        };
        let striped = match finding.striped {
            true => ", layers in row stripes",
            false => "",
        };
        text.push_str(&format!("  {writer}{reordered}{striped}\n"));
    } else if matches!(finding.plan, State::Right | State::Wrong) {
        text.push_str("  written by another tool\n");
    }
    if let Some(kernels) = &finding.needs {
        let words = match finding.is_asked {
            true => format!("judged for {kernels}; with others it may compute wrong numbers"),
            false => only_for(kernels),
        };
        text.push_str(&format!("  {words}\n"));
    }
    if let Some(run) = &finding.run {
        let other = match finding.striped {
            true => "the model before planning",
            false => "without the plan",
        };
        text.push_str(&format!("  {}\n", run.words(other)));
    }
    if let Some(error) = &finding.run_error {
        text.push_str(&format!("  {error}\n"));
    }
    for fault in &finding.faults {
        text.push_str(&format!("  wrong: {fault}\n"));
    }
    for note in &finding.notes {
        text.push_str(&format!("  note: {note}\n"));
    }
    text
}

fn summary(results: &[Result<Finding, Failure>]) -> String {
    let number = |state| results.iter().flatten().filter(|f| f.plan == state).count();
    let mut parts = vec![format!("{} right", number(State::Right))];
    for (n, what) in [
        (number(State::Wrong), "wrong"),
        (number(State::None), "without a plan"),
        (number(State::NothingToPlan), "with nothing to plan"),
        (number(State::StripesAlone), "with row stripes alone"),
        (results.iter().filter(|r| r.is_err()).count(), "unreadable"),
    ] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    format!("{}: {}\n", count(results.len(), "model"), parts.join(", "))
}
