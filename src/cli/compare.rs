//! `arenaplan compare`

use anyhow::bail;
use serde::Serialize;

use super::args::{Choice, CompareArgs, CompareFormat};
use super::json::{self, Failure, TOOL_VERSION};
use super::models;
use super::plan::{about_scratch, planning};
use super::text::{
    Align, below, common_folder, count, csv_cell, percent, shortened, table, thousands,
};
use super::{Status, complain, each, print};
use crate::compare::{Comparison, Figures, Group, Means, compare, groups};
use crate::steps::Step;
use crate::target::Target;

/// What is compared unless told otherwise.
const TARGETS: [Target; 4] = [
    Target::Tflm,
    Target::TflmReference,
    Target::TflmCmsisNn(None),
    Target::TflmEspNn(None),
];

/// Names in a table for people end here.
const NAME_WIDTH: usize = 32;

/// A model with its figures.
struct Row {
    model: String,
    comparison: Comparison,
}

pub(super) fn run(args: &CompareArgs) -> anyhow::Result<Status> {
    let found = models::find(&args.models.models, None);
    if args.freedom.offsets == Choice::No {
        bail!("compare is about plans: --plan no is for `plan` and `export`");
    }
    let options = planning(&args.layout, &args.search, &args.freedom, &found)?;
    let groups = match &args.targets[..] {
        [] => groups(&TARGETS, &options),
        targets => groups(targets, &options),
    };
    let (results, status) = each(&found, |_, source| {
        let bytes = source.read()?;
        let comparison =
            compare(&bytes, &groups, &options).map_err(|e| about_scratch(e, &args.layout))?;
        for warning in &comparison.warnings {
            complain(&format!("warning: {}: {warning}", source.name()));
        }
        Ok(Row {
            model: source.path_text(),
            comparison,
        })
    })?;
    let means = Means::of(results.iter().flatten().map(|row| &row.comparison));
    let text = match args.format {
        CompareFormat::Json => json(results, &groups, means.as_ref())?,
        format => {
            let failed = results.iter().filter(|r| r.is_err()).count();
            let rows: Vec<Row> = results.into_iter().flatten().collect();
            match (&rows[..], format) {
                ([], _) => String::new(),
                (rows, CompareFormat::Csv) => csv(rows, &groups, means.as_ref()),
                (rows, CompareFormat::Markdown) => markdown(rows, &groups, means.as_ref()),
                (rows, _) => words(rows, &groups, means.as_ref(), failed),
            }
        }
    };
    print(&text)?;
    Ok(status)
}

/// One column of figures.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Unplanned,
    /// The step's position in its group.
    Step(usize),
    /// What row stripes cost.
    Work,
    Bound,
    Gap,
}

/// The columns for people, each with its group: those that say nothing new about any model are left out.
fn columns(rows: &[Row], groups: &[Group]) -> Vec<(usize, Column)> {
    let all = |test: &dyn Fn(&[Figures]) -> bool| rows.iter().all(|r| test(&r.comparison.figures));
    let mut columns = Vec::new();
    for (g, group) in groups.iter().enumerate() {
        let is_known = |shown: usize| {
            all(&|f: &[Figures]| f[g].unplanned_bytes == f[shown].unplanned_bytes)
                && columns.contains(&(shown, Column::Unplanned))
        };
        if group.has_unplanned && !(0..g).any(is_known) {
            columns.push((g, Column::Unplanned));
        }
        columns.extend((0..group.steps.len()).map(|step| (g, Column::Step(step))));
        columns.extend(has_stripes(group).then_some((g, Column::Work)));
        if groups.len() == 1 {
            columns.push((g, Column::Bound));
        }
        if groups.len() == 1 || !all(&|f: &[Figures]| f[g].head() == f[g].bound_bytes) {
            columns.push((g, Column::Gap));
        }
    }
    columns
}

/// Whether row stripes are a step of the group.
fn has_stripes(group: &Group) -> bool {
    group.steps.contains(&Step::Stripes)
}

fn title(column: Column, group: &Group) -> &'static str {
    match column {
        Column::Unplanned => "TFLM",
        Column::Step(step) => group.steps[step].name(),
        Column::Work => "more work",
        Column::Bound => "bound",
        Column::Gap => "gap",
    }
}

/// A target as the heading of its columns.
fn heading(target: Target) -> &'static str {
    match target {
        Target::Tflm => "any kernels",
        other => other.name().trim_start_matches("tflm-"),
    }
}

fn cell(column: Column, figures: &Figures) -> String {
    match column {
        Column::Unplanned => thousands(figures.unplanned_bytes),
        Column::Step(step) => thousands(figures.head_bytes[step]),
        Column::Work => figures.extra_percent.map_or("-".into(), percent),
        Column::Bound => thousands(figures.bound_bytes),
        Column::Gap if figures.head() == figures.bound_bytes => "-".into(),
        Column::Gap => format!("{:.1} %", figures.gap_percent()),
    }
}

fn mean_cell(column: Column, ratios: &[f64], work: f64) -> String {
    match column {
        Column::Unplanned => "1.000".into(),
        Column::Step(step) => format!("{:.3}", ratios[step]),
        Column::Work => percent(100.0 * (work - 1.0)),
        Column::Bound | Column::Gap => String::new(),
    }
}

fn mean_name(means: &Means) -> String {
    format!("geometric mean of {}", means.models)
}

/// The columns' cells of one model.
fn cells(columns: &[(usize, Column)], comparison: &Comparison) -> Vec<String> {
    let cell = |&(g, column): &(usize, Column)| cell(column, &comparison.figures[g]);
    columns.iter().map(cell).collect()
}

fn mean_cells(columns: &[(usize, Column)], means: &Means) -> Vec<String> {
    let cell = |&(g, column): &(usize, Column)| mean_cell(column, &means.ratios[g], means.work[g]);
    columns.iter().map(cell).collect()
}

fn words(rows: &[Row], groups: &[Group], means: Option<&Means>, failed: usize) -> String {
    let columns = columns(rows, groups);
    let mut group_line = vec![("", Align::Left)];
    let mut titles = vec!["model".to_owned()];
    let mut last = None;
    for &(g, column) in &columns {
        let name = match last == Some(g) {
            true => "",
            false => heading(groups[g].target),
        };
        group_line.push((name, Align::Right));
        titles.push(title(column, &groups[g]).to_owned());
        last = Some(g);
    }
    let folder = common_folder(rows.iter().map(|r| r.model.as_str()));
    let mut lines = vec![titles];
    for row in rows {
        let name = below(&folder, &row.model);
        let name = name.strip_suffix(".tflite").unwrap_or(&name);
        let mut line = vec![shortened(name, NAME_WIDTH)];
        line.extend(cells(&columns, &row.comparison));
        lines.push(line);
    }
    if let Some(means) = means {
        let mut line = vec![mean_name(means)];
        line.extend(mean_cells(&columns, means));
        lines.push(line);
    }
    let mut text = String::new();
    if !folder.is_empty() {
        text.push_str(&format!("in {}:\n", super::text::shown(&folder)));
    }
    text.push_str(&table(&group_line, &lines));
    text.push_str(&format!("\n{}", count(rows.len(), "model")));
    if failed > 0 {
        text.push_str(&format!(", {failed} more failed"));
    }
    text.push_str(
        ". Heads in bytes, scratch memory included; TFLM: without a plan; gap: how far heads may be above the least possible\n",
    );
    if groups.iter().any(has_stripes) {
        text.push_str(
            "stripes: layers in row stripes, where that makes the arena smaller; more work: instructions, estimated. The arena's \
             tail, which grows, is not in the heads\n",
        );
    }
    if let Some(line) = not_counted(rows, means) {
        text.push_str(&format!("{line}\n"));
    }
    text
}

/// What the means are of, when that is not all models.
fn not_counted(rows: &[Row], means: Option<&Means>) -> Option<String> {
    let counted = means.map_or(0, |m| m.models);
    (counted < rows.len()).then(|| {
        format!(
            "The means leave out {}: no head, or offsets that are compiled in",
            count(rows.len() - counted, "model")
        )
    })
}

fn markdown(rows: &[Row], groups: &[Group], means: Option<&Means>) -> String {
    let columns = columns(rows, groups);
    let mut titles = vec!["model".to_owned()];
    titles.extend(columns.iter().map(|&(g, column)| {
        let name = title(column, &groups[g]);
        match (g, column) {
            (0, _) | (_, Column::Gap) => name.to_owned(),
            _ => format!("{}: {name}", heading(groups[g].target)),
        }
    }));
    let folder = common_folder(rows.iter().map(|r| r.model.as_str()));
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&titles);
    text.push_str(&format!("|-|{}\n", "-:|".repeat(columns.len())));
    for row in rows {
        let name = below(&folder, &row.model).replace(['|', '`'], "_");
        let name = name.strip_suffix(".tflite").unwrap_or(&name);
        let mut all = vec![format!("`{name}`")];
        all.extend(cells(&columns, &row.comparison));
        text.push_str(&line(&all));
    }
    if let Some(means) = means {
        let mut all = vec![mean_name(means)];
        all.extend(mean_cells(&columns, means));
        text.push_str(&line(&all));
    }
    text
}

fn csv(rows: &[Row], groups: &[Group], means: Option<&Means>) -> String {
    let mut columns = Vec::new();
    for (g, group) in groups.iter().enumerate() {
        columns.push((g, Column::Unplanned));
        columns.extend((0..group.steps.len()).map(|step| (g, Column::Step(step))));
        columns.extend(has_stripes(group).then_some((g, Column::Work)));
        columns.extend([(g, Column::Bound), (g, Column::Gap)]);
    }
    let mut text = String::from("model");
    for &(g, column) in &columns {
        let name = match column {
            Column::Unplanned => "greedy".into(),
            Column::Gap => "gap_percent".into(),
            Column::Work => "extra_cost_percent".into(),
            other => title(other, &groups[g]).replace(' ', "-"),
        };
        text.push_str(&format!(",{}:{name}", groups[g].target));
    }
    text.push('\n');
    for row in rows {
        text.push_str(&csv_cell(&row.model));
        for &(g, column) in &columns {
            let figures = &row.comparison.figures[g];
            text.push_str(&match column {
                Column::Unplanned => format!(",{}", figures.unplanned_bytes),
                Column::Step(step) => format!(",{}", figures.head_bytes[step]),
                Column::Work => match figures.extra_percent {
                    Some(percent) => format!(",{percent:.2}"),
                    None => ",".into(),
                },
                Column::Bound => format!(",{}", figures.bound_bytes),
                Column::Gap => format!(",{:.2}", figures.gap_percent()),
            });
        }
        text.push('\n');
    }
    if let Some(means) = means {
        text.push_str(&mean_name(means));
        for &(g, column) in &columns {
            text.push_str(&match column {
                Column::Work => format!(",{:.2}", 100.0 * (means.work[g] - 1.0)),
                _ => format!(",{}", mean_cell(column, &means.ratios[g], means.work[g])),
            });
        }
        text.push('\n');
    }
    text
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item {
    Model(ModelItem),
    Failure(Failure),
    Means { geometric_means: MeansItem },
}

#[derive(Serialize)]
struct ModelItem {
    arenaplan: &'static str,
    model: String,
    compiled_offsets: bool,
    targets: Vec<TargetItem>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct TargetItem {
    target: &'static str,
    kernels: &'static str,
    greedy_head_bytes: u64,
    steps: Vec<StepItem>,
    head_bytes: u64,
    bound_bytes: u64,
    gap_percent: f64,
    optimal: bool,
    reordered: bool,
    /// What row stripes cost; `None` where nothing was cut.
    extra_cost_percent: Option<f64>,
}

#[derive(Serialize)]
struct StepItem {
    step: &'static str,
    head_bytes: u64,
}

#[derive(Serialize)]
struct MeansItem {
    models: usize,
    targets: Vec<MeanTargetItem>,
}

#[derive(Serialize)]
struct MeanTargetItem {
    target: &'static str,
    steps: Vec<MeanStepItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_cost_percent: Option<f64>,
}

#[derive(Serialize)]
struct MeanStepItem {
    step: &'static str,
    ratio: f64,
}

fn json(
    results: Vec<Result<Row, Failure>>,
    groups: &[Group],
    means: Option<&Means>,
) -> anyhow::Result<String> {
    let round = |x: f64, digits: f64| (x * digits).round() / digits;
    let model = |row: Row| ModelItem {
        arenaplan: TOOL_VERSION,
        model: row.model,
        compiled_offsets: row.comparison.has_compiled_offsets,
        targets: groups
            .iter()
            .zip(&row.comparison.figures)
            .map(|(group, figures)| TargetItem {
                target: group.target.name(),
                kernels: group.target.kernels(),
                greedy_head_bytes: figures.unplanned_bytes,
                steps: group
                    .steps
                    .iter()
                    .zip(&figures.head_bytes)
                    .map(|(step, &head_bytes)| StepItem {
                        step: step.name(),
                        head_bytes,
                    })
                    .collect(),
                head_bytes: figures.head(),
                bound_bytes: figures.bound_bytes,
                gap_percent: round(figures.gap_percent(), 100.0),
                optimal: figures.optimal,
                reordered: figures.reordered,
                extra_cost_percent: figures.extra_percent.map(|p| round(p, 100.0)),
            })
            .collect(),
        warnings: row.comparison.warnings,
    };
    let mut items: Vec<Item> = results
        .into_iter()
        .map(|result| match result {
            Ok(row) => Item::Model(model(row)),
            Err(failure) => Item::Failure(failure),
        })
        .collect();
    items.extend(means.map(|means| {
        let targets = groups.iter().zip(&means.ratios).zip(&means.work);
        let targets = targets.map(|((group, ratios), work)| MeanTargetItem {
            target: group.target.name(),
            extra_cost_percent: has_stripes(group).then(|| round(100.0 * (work - 1.0), 100.0)),
            steps: group
                .steps
                .iter()
                .zip(ratios)
                .map(|(step, &ratio)| MeanStepItem {
                    step: step.name(),
                    ratio: round(ratio, 10_000.0),
                })
                .collect(),
        });
        Item::Means {
            geometric_means: MeansItem {
                models: means.models,
                targets: targets.collect(),
            },
        }
    }));
    json::array(&items)
}
