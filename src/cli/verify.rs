//! `arenaplan verify`

use arenaplan_schema::patch;
use serde::Serialize;

use super::args::{Format, VerifyArgs};
use super::json;
use super::models::{self, Source};
use super::plan::options;
use super::text::thousands;
use super::{Progress, Status, complain, print};
use crate::graph::Graph;
use crate::model::Model;
use crate::plan::Options;
use crate::scratch::Scratch;
use crate::stored::StoredPlan;
use crate::tflm;

/// What was found in one file.
#[derive(Debug, Serialize)]
struct Finding {
    model: String,
    /// `right`, `wrong`, `none`, or `unreadable`.
    plan: &'static str,
    /// Who wrote it, when that was us.
    written_by: Option<Writer>,
    head_bytes: Option<u64>,
    greedy_head_bytes: Option<u64>,
    faults: Vec<String>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Writer {
    version: String,
    target: String,
    options: String,
}

pub(super) fn run(args: &VerifyArgs) -> anyhow::Result<Status> {
    let sources = models::find(&args.models.models)?;
    let options = options(&args.device)?;
    let progress = Progress::new(sources.len());
    let mut findings = Vec::new();
    let mut status = Status::Done;
    for (i, source) in sources.iter().enumerate() {
        progress.step(i, &source.name());
        let finding = match examine(source, &options) {
            Ok(finding) => finding,
            Err(e) => {
                progress.clear();
                complain(&format!("error: {}: {e:#}", source.name()));
                Finding {
                    model: source.name(),
                    plan: "unreadable",
                    written_by: None,
                    head_bytes: None,
                    greedy_head_bytes: None,
                    faults: vec![format!("{e:#}")],
                    notes: Vec::new(),
                }
            }
        };
        status = status.max(match finding.plan {
            "right" => Status::Done,
            "unreadable" => Status::Failed,
            _ => Status::No,
        });
        findings.push(finding);
    }
    progress.clear();
    match args.format {
        Format::Json => print(&json::array(&findings)?)?,
        Format::Text => {
            let text: String = findings
                .iter()
                .filter(|f| f.plan != "unreadable")
                .map(words)
                .collect();
            print(&text)?;
        }
    }
    Ok(status)
}

fn examine(source: &Source, options: &Options) -> anyhow::Result<Finding> {
    let bytes = source.read()?;
    let graph = Graph::read(Model::parse(&bytes)?)?;
    let scratch = match &options.scratch {
        Some(text) => Scratch::with_file(&graph, text)?,
        None => Scratch::reference(&graph),
    };
    let verdict = StoredPlan::read(&graph).judged(&graph, &scratch, options.align, &[]);
    let mut notes = verdict.notes.clone();
    let unplanned = tflm::simulate(&graph, &scratch, None)?;
    let written_by = match patch::inspect_provenance(&bytes) {
        Ok(Some(p)) => {
            if let Err(e) = patch::strip(&bytes) {
                notes.push(format!("the original cannot be restored: {e}"));
            }
            Some(Writer {
                version: p.stamp.tool_version,
                target: p.stamp.target,
                options: p.stamp.options,
            })
        }
        Ok(None) => None,
        Err(e) => {
            notes.push(e.to_string());
            None
        }
    };
    let head = verdict.simulation.as_ref().map(|s| s.head);
    if verdict.is_right() && head.is_some_and(|h| h > unplanned.head) {
        notes.push("the head is larger than without any plan".into());
    }
    Ok(Finding {
        model: source.name(),
        plan: match (verdict.exists(), verdict.is_right()) {
            (false, _) => "none",
            (true, true) => "right",
            (true, false) => "wrong",
        },
        written_by,
        head_bytes: head,
        greedy_head_bytes: Some(unplanned.head),
        faults: verdict.faults,
        notes,
    })
}

fn words(finding: &Finding) -> String {
    let bytes = |n: Option<u64>| n.map_or("?".into(), thousands);
    let mut text = match finding.plan {
        "none" => format!("{}: no plan\n", finding.model),
        plan => format!(
            "{}: the plan is {plan}, head {} bytes, {} without it\n",
            finding.model,
            bytes(finding.head_bytes),
            bytes(finding.greedy_head_bytes)
        ),
    };
    if let Some(w) = &finding.written_by {
        text.push_str(&format!(
            "  written by arenaplan {} for target {} ({})\n",
            w.version, w.target, w.options
        ));
    } else if finding.plan != "none" {
        text.push_str("  written by another tool\n");
    }
    for fault in &finding.faults {
        text.push_str(&format!("  wrong: {fault}\n"));
    }
    for note in &finding.notes {
        text.push_str(&format!("  note: {note}\n"));
    }
    text
}
