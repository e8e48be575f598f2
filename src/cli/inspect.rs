//! `arenaplan inspect`

use std::collections::BTreeMap;

use serde::Serialize;

use super::args::{Bits, InspectArgs, InspectFormat};
use super::json::{self, Failure, ModelFigures, Writer};
use super::models;
use super::plan::{about_scratch, for_file, options};
use super::text::{Align, count, csv_cell, only_for, shortened, shown, table, thousands};
use super::{Status, complain, each, print};
use super::{explain_json, explain_text};
use crate::aliasing::Promises;
use crate::explain::{Explanation, explain};
use crate::graph::{Graph, Origin, Storage, Tensor};
use crate::inspect::{Inspection, inspect};
use crate::interference::{Interference, Rules};
use crate::lifetimes::Span;
use crate::model::Model;
use crate::plan::Options;
use crate::stored::StoredPlan;
use crate::stripes::Seen;
use crate::tflm::ALIGNMENT;

#[derive(Serialize)]
#[serde(untagged)]
enum Item {
    Model(Box<Detail>),
    Failure(Failure),
}

#[derive(Serialize)]
struct Detail {
    #[serde(flatten)]
    figures: ModelFigures,
    plan: &'static str,
    written_by: Option<Writer>,
    why: Option<explain_json::Why>,
    stripes_in_file: Option<StripesDetail>,
    peak: PeakDetail,
    operator_list: Vec<OperatorDetail>,
    tensor_list: Vec<TensorDetail>,
}

/// The row stripes that the file has.
#[derive(Serialize)]
struct StripesDetail {
    operators_before: usize,
    layers: Vec<LayersDetail>,
    added: BTreeMap<String, usize>,
    /// The most that must be there at an operator, with as much shared as the plan may.
    peak_bytes: Option<u64>,
}

#[derive(Serialize)]
struct LayersDetail {
    /// Positions in the file before planning.
    first: u32,
    last: u32,
    parts: usize,
}

impl StripesDetail {
    fn new(stripes: &Seen, needed: Option<&Vec<u64>>) -> Self {
        let layers = stripes.layers.iter().map(|run| LayersDetail {
            first: run.first,
            last: run.last,
            parts: run.parts,
        });
        Self {
            operators_before: stripes.operators_before,
            layers: layers.collect(),
            added: stripes.added.clone(),
            peak_bytes: needed.and_then(|all| all.iter().max().copied()),
        }
    }
}

#[derive(Serialize)]
struct PeakDetail {
    clock: i32,
    operator: Option<String>,
    bytes: u64,
    tensors: Vec<String>,
    scratch: Vec<String>,
}

#[derive(Serialize)]
struct OperatorDetail {
    clock: i32,
    subgraph: u32,
    index: u32,
    /// `None` for an operator that this tool added.
    original_index: Option<u32>,
    name: String,
    live_bytes: u64,
    scratch_bytes: u64,
    /// What must be there, scratch included, with as much shared as the plan may; of files with row stripes.
    #[serde(skip_serializing_if = "Option::is_none")]
    needed_bytes: Option<u64>,
}

#[derive(Serialize)]
struct TensorDetail {
    subgraph: u32,
    index: u32,
    name: String,
    #[serde(rename = "type")]
    ty: String,
    shape: Vec<i32>,
    storage: &'static str,
    bytes: u64,
    first: Option<i32>,
    last: Option<i32>,
    offset: Option<u64>,
}

pub(super) fn run(args: &InspectArgs) -> anyhow::Result<Status> {
    let found = models::find(&args.models.models, None);
    let options = options(&args.device, &found)?;
    let (results, status) = each(&found, |_, source| {
        let bytes = source.read()?;
        let options = for_file(&options, &args.device, &bytes);
        let graph = Graph::read(Model::parse(&bytes)?)?;
        let seen = inspect(&graph, &options).map_err(|e| about_scratch(e, &args.device.layout))?;
        for warning in &seen.report.warnings {
            complain(&format!("warning: {}: {warning}", source.name()));
        }
        let writer = Writer::of(&bytes).ok().flatten();
        let why = match args.format {
            InspectFormat::Text | InspectFormat::Json => {
                // What cannot be planned can be looked at all the same.
                explain(&bytes, &options).unwrap_or_else(|e| {
                    complain(&format!("warning: {}: not planned: {e}", source.name()));
                    None
                })
            }
            _ => None,
        };
        let explained = match &why {
            Some(why) => Some(Graph::read(Model::parse(&why.file)?)?),
            None => None,
        };
        let about = About {
            graph: &graph,
            seen: &seen,
            why: explained.as_ref().zip(why.as_ref()),
            writer,
            bits: args.device.bits,
        };
        Ok(match args.format {
            InspectFormat::Text => Shown::Text(about.words(&source.name())),
            InspectFormat::Csv => Shown::Text(csv(&source.path_text(), &graph, &seen)),
            InspectFormat::Dot => Shown::Text(dot(&graph, &seen, &options)?),
            InspectFormat::Json => {
                let detail = about.detail(source.path_text());
                Shown::Json(Box::new(detail))
            }
        })
    })?;
    let mut text = String::new();
    if args.format == InspectFormat::Csv {
        text.push_str("model,subgraph,index,name,type,shape,storage,bytes,first,last,offset\n");
    }
    let mut items = Vec::new();
    for result in results {
        match result {
            Ok(Shown::Text(part)) => text.push_str(&part),
            Ok(Shown::Json(detail)) => items.push(Item::Model(detail)),
            Err(failure) => items.push(Item::Failure(failure)),
        }
    }
    if args.format == InspectFormat::Json {
        text = json::array(&items)?;
    }
    print(&text)?;
    Ok(status)
}

/// One model in the format asked for.
enum Shown {
    Text(String),
    Json(Box<Detail>),
}

fn type_name(tensor: &Tensor<'_>) -> String {
    arenaplan_schema::names::tensor_type_name(tensor.ty).to_string()
}

fn storage_name(storage: Storage) -> &'static str {
    match storage {
        Storage::Arena => "arena",
        Storage::Constant => "constant",
        Storage::OutsideConstant => "constant-outside",
        Storage::Variable => "variable",
        Storage::ResourceHandle => "resource-handle",
        Storage::Empty => "empty",
        Storage::DynamicShape => "dynamic",
        Storage::UnknownType => "unknown-type",
    }
}

fn plan_state(seen: &Inspection) -> &'static str {
    match (&seen.stored.plan, seen.stored.is_right()) {
        (StoredPlan::Absent, _) => "none",
        (_, true) => "right",
        (_, false) => "wrong",
    }
}

fn span_of(seen: &Inspection, tensor: &Tensor<'_>) -> Option<Span> {
    let span = seen.lifetimes.tensor(tensor.id);
    (span != Span::UNTOUCHED).then_some(span)
}

/// One model, and all that is to be said of it.
struct About<'m, 'a> {
    graph: &'m Graph<'a>,
    seen: &'m Inspection,
    /// Why it needs what it needs, and the graph that this is about.
    why: Option<(&'m Graph<'m>, &'m Explanation)>,
    writer: Option<Writer>,
    bits: Bits,
}

impl About<'_, '_> {
    fn detail(&self, model: String) -> Detail {
        let &Self {
            graph,
            seen,
            why,
            bits,
            ..
        } = self;
        let operator_list = seen.steps.iter().enumerate().map(|(k, step)| {
            let op = graph.operator(step.visit.operator);
            OperatorDetail {
                clock: step.visit.clock,
                subgraph: op.id.subgraph,
                index: op.id.index,
                original_index: (op.origin != Origin::Added).then_some(op.original),
                name: op.name(),
                live_bytes: step.live_bytes,
                scratch_bytes: step.scratch_bytes,
                needed_bytes: seen.needed_bytes.as_ref().and_then(|n| n.get(k).copied()),
            }
        });
        let tensor_list = graph.tensors.iter().map(|t| {
            let span = span_of(seen, t);
            TensorDetail {
                subgraph: t.subgraph,
                index: t.index,
                name: t.name.to_owned(),
                ty: type_name(t),
                shape: t.shape.clone(),
                storage: storage_name(t.storage),
                bytes: t.bytes,
                first: span.map(|s| s.first),
                last: span.map(|s| s.last),
                offset: seen.offsets[t.id.index()],
            }
        });
        Detail {
            figures: ModelFigures::new(model, None, &seen.report, bits, None),
            plan: plan_state(seen),
            written_by: self.writer.clone(),
            why: why.map(|(graph, why)| explain_json::Why::new(graph, why)),
            stripes_in_file: (seen.stripes.as_ref())
                .map(|s| StripesDetail::new(s, seen.needed_bytes.as_ref())),
            peak: PeakDetail {
                clock: seen.peak.clock,
                operator: seen.peak.operator.map(|o| graph.operator(o).label()),
                bytes: seen.peak.bytes,
                tensors: seen
                    .peak
                    .tensors
                    .iter()
                    .map(|&t| graph.tensor(t).label())
                    .collect(),
                scratch: seen
                    .peak
                    .scratch
                    .iter()
                    .map(|r| {
                        format!(
                            "{} bytes of {}",
                            r.bytes,
                            graph.operator(r.operator).label()
                        )
                    })
                    .collect(),
            },
            operator_list: operator_list.collect(),
            tensor_list: tensor_list.collect(),
        }
    }

    fn words(&self, name: &str) -> String {
        let &Self {
            graph,
            seen,
            why,
            bits,
            ..
        } = self;
        let report = &seen.report;
        let arena = bits.of(report);
        let mut text = format!(
            "{name}: {}, {}, {}\n\n",
            count(report.subgraphs, "subgraph"),
            count(report.operators, "operator"),
            count(report.tensors, "tensor")
        );
        if let Some(stripes) = &seen.stripes {
            text.push_str(&stripes_words(stripes));
        }
        let mut columns = vec![
            ("clock", Align::Right),
            ("operator", Align::Left),
            ("live bytes", Align::Right),
            ("scratch", Align::Right),
            ("", Align::Left),
        ];
        if seen.needed_bytes.is_some() {
            columns.insert(4, ("needed", Align::Right));
        }
        let levels: Vec<u64> = match &seen.needed_bytes {
            Some(needed) => needed.clone(),
            None => (seen.steps.iter())
                .map(|s| s.live_bytes + s.scratch_bytes)
                .collect(),
        };
        let most = levels.iter().copied().max().unwrap_or(0);
        let peak_bytes = match &seen.needed_bytes {
            Some(_) => most,
            None => seen.peak.bytes,
        };
        let rows: Vec<Vec<String>> = (seen.steps.iter().zip(&levels))
            .map(|(step, &sum)| {
                let op = graph.operator(step.visit.operator);
                let bar = if most == 0 {
                    0
                } else {
                    (sum * 30).div_ceil(most) as usize
                };
                let peak = if sum == peak_bytes { " peak" } else { "" };
                let mut cells = vec![
                    step.visit.clock.to_string(),
                    format!("{}{}", "  ".repeat(step.visit.depth as usize), op.label()),
                    thousands(step.live_bytes),
                    if step.scratch_bytes == 0 {
                        String::new()
                    } else {
                        thousands(step.scratch_bytes)
                    },
                    format!("{}{peak}", "#".repeat(bar)),
                ];
                if seen.needed_bytes.is_some() {
                    cells.insert(4, thousands(sum));
                }
                cells
            })
            .collect();
        text.push_str(&table(&columns, &rows));
        if seen.needed_bytes.is_some() {
            text.push_str(&format!(
                "\nneeded: with scratch, and with as much shared as the plan may; rows of a tensor as long as they are used\n\
                 peak of what is needed: {} bytes\n",
                thousands(most)
            ));
        }
        let place = match seen.peak.operator {
            Some(op) => format!(
                "at {} (clock {})",
                graph.operator(op).label(),
                seen.peak.clock
            ),
            None => "before the first operator".into(),
        };
        text.push_str(&format!(
            "\npeak, nothing shared: {} bytes {place}, set by\n",
            thousands(seen.peak.bytes)
        ));
        for &t in &seen.peak.tensors {
            let tensor = graph.tensor(t);
            let span = seen.lifetimes.tensor(t);
            text.push_str(&format!(
                "  {:>12}  {}  {} {:?}, alive {}..={}\n",
                thousands(tensor.bytes.next_multiple_of(ALIGNMENT)),
                tensor.label(),
                type_name(tensor),
                tensor.shape,
                span.first,
                span.last
            ));
        }
        for request in &seen.peak.scratch {
            text.push_str(&format!(
                "  {:>12}  scratch memory of {}\n",
                thousands(request.bytes.next_multiple_of(ALIGNMENT)),
                graph.operator(request.operator).label()
            ));
        }
        text.push_str(&format!("\n{}", tensor_table(graph, seen)));
        let mut line = |what: &str, bytes: u64| {
            text.push_str(&format!("{what:<34}{:>12} bytes\n", thousands(bytes)));
        };
        line("\nall tensors without reuse", report.sizes.sum_bytes);
        let nothing_shared = match seen.stripes {
            Some(_) => "liveness bound, before planning",
            None => "liveness bound, nothing shared",
        };
        line(nothing_shared, report.sizes.file_order_bound_bytes);
        if report.sizes.bound_bytes != report.sizes.file_order_bound_bytes {
            line("liveness bound, as far as shared", report.sizes.bound_bytes);
        }
        line(
            "liveness bound with scratch",
            report.sizes.bound_with_scratch_bytes,
        );
        line("head by TFLM's own planner", report.greedy_head_bytes);
        match plan_state(seen) {
            "none" => {}
            state => line(
                &format!("head with the stored plan ({state})"),
                report.head_bytes,
            ),
        }
        let (tail, above) = match report.tail_is_exact {
            true => ("tail", "above it while the runtime prepares"),
            false => ("tail, estimated", "above it while TFLM plans"),
        };
        line(tail, arena.tail_bytes);
        line(above, arena.planning_bytes);
        line("arena to reserve", arena.arena_bytes);
        if let Some(writer) = &self.writer {
            text.push_str(&format!("the stored plan: {writer}\n"));
        }
        if let Some(kernels) = &report.needs {
            text.push_str(&format!("{}\n", only_for(kernels)));
        }
        for fault in &seen.stored.faults {
            text.push_str(&format!("the stored plan is wrong: {fault}\n"));
        }
        if let Some((graph, why)) = why {
            text.push_str(&format!("\n{}", explain_text::words(graph, why)));
        }
        text.push('\n');
        text
    }
}

/// What of the model is computed in row stripes.
fn stripes_words(stripes: &Seen) -> String {
    let mut text = format!(
        "row stripes: {} before planning\n",
        count(stripes.operators_before, "operator")
    );
    for run in &stripes.layers {
        let first = format!("{} {}", run.first, shown(&run.first_name));
        let names = match run.first == run.last {
            true => format!("operator {first}"),
            false => format!(
                "operators {first} to {} {}",
                run.last,
                shown(&run.last_name)
            ),
        };
        text.push_str(&format!(
            "  {names} before planning: in {}\n",
            count(run.parts, "part")
        ));
    }
    let added = stripes.added.iter();
    let added: Vec<_> = added
        .map(|(name, n)| format!("{} {}", thousands(*n as u64), shown(name)))
        .collect();
    text.push_str(&format!("  added: {}\n\n", added.join(", ")));
    text
}

/// Every tensor that is not a constant: what it is, when it is alive, and where TFLM puts it.
fn tensor_table(graph: &Graph<'_>, seen: &Inspection) -> String {
    let offset = match seen.stored.simulation {
        Some(_) => "offset in the plan",
        None => "offset by TFLM",
    };
    let columns = [
        ("tensor", Align::Right),
        ("name", Align::Left),
        ("type", Align::Left),
        ("shape", Align::Left),
        ("bytes", Align::Right),
        ("alive", Align::Right),
        (offset, Align::Right),
    ];
    let rows: Vec<Vec<String>> = graph
        .tensors
        .iter()
        .filter(|t| t.storage != Storage::Constant)
        .map(|t| {
            let place = match t.subgraph {
                0 => t.index.to_string(),
                s => format!("{s}:{}", t.index),
            };
            let alive =
                span_of(seen, t).map_or("never".into(), |s| format!("{}..={}", s.first, s.last));
            let offset = match (t.storage, seen.offsets[t.id.index()]) {
                (_, Some(offset)) => thousands(offset),
                (storage, None) => storage_name(storage).to_owned(),
            };
            vec![
                place,
                shortened(&shown(t.name), 48),
                type_name(t),
                format!("{:?}", t.shape),
                thousands(t.bytes),
                alive,
                offset,
            ]
        })
        .collect();
    table(&columns, &rows)
}

fn csv(name: &str, graph: &Graph<'_>, seen: &Inspection) -> String {
    let mut text = String::new();
    for t in &graph.tensors {
        let shape: Vec<_> = t.shape.iter().map(i32::to_string).collect();
        let span = span_of(seen, t);
        let number = |n: Option<String>| n.unwrap_or_default();
        let cells = [
            name.to_owned(),
            t.subgraph.to_string(),
            t.index.to_string(),
            t.name.to_owned(),
            type_name(t),
            shape.join("x"),
            storage_name(t.storage).to_owned(),
            t.bytes.to_string(),
            number(span.map(|s| s.first.to_string())),
            number(span.map(|s| s.last.to_string())),
            number(seen.offsets[t.id.index()].map(|o| o.to_string())),
        ];
        text.push_str(&cells.map(|c| csv_cell(&c)).join(","));
        text.push('\n');
    }
    text
}

fn dot(graph: &Graph<'_>, seen: &Inspection, options: &Options) -> anyhow::Result<String> {
    let promises = Promises::allowed(graph, options);
    let rules = Rules {
        align: options.align,
        granule: ALIGNMENT,
        online: Some(&seen.scratch),
        keep: &[],
        others: &[],
        promises: &promises,
        parts: true,
        fixed: &[],
    };
    Ok(Interference::build(graph, &seen.lifetimes, rules)?.to_dot(graph))
}
