//! `arenaplan solve`

use std::path::Path;
use std::str;
use std::time::Instant;

use anyhow::bail;
use arenaplan_solver::csv::{self, Table};
use arenaplan_solver::{Solution, Stop, greedy};
use serde::{Serialize, Serializer};

use super::args::{SolveArgs, SolveFormat};
use super::json;
use super::models::{self, Found, Source};
use super::output::{self, Destination};
use super::text::{Align, common_folder, count, percent, shown, table, thousands};
use super::{Status, complain, each};

/// What became of one problem.
struct Row {
    /// Its path.
    problem: String,
    buffers: usize,
    conflicts: usize,
    solution: Solution,
    /// The height of TFLM's own planner.
    greedy_height: u64,
    seconds: f64,
    /// Whether it fits into the capacity that was asked for; `None` inside if that is not known.
    fits: Option<Option<bool>>,
    /// Where the result was written.
    output: Option<String>,
    /// The result, for JSON that says it itself.
    offsets: Option<Offsets>,
    warnings: Vec<String>,
}

impl Row {
    /// Whether the answer is no, or none was found.
    fn is_no(&self) -> bool {
        self.fits.is_some_and(|fits| fits != Some(true))
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item {
    Figures(Box<Figures>),
    Failure { problem: String, error: String },
}

/// The JSON object of a problem. More keys may come, none of these is renamed.
#[derive(Serialize)]
struct Figures {
    arenaplan: &'static str,
    problem: String,
    output: Option<String>,
    solver: String,
    planner: String,
    buffers: usize,
    conflicts: usize,
    capacity: Option<u64>,
    fits: Option<bool>,
    height_bytes: u64,
    bound_bytes: u64,
    greedy_height_bytes: u64,
    optimal: bool,
    nodes: u64,
    seconds: f64,
    stopped: Option<&'static str>,
    warnings: Vec<String>,
    /// By id, in the order of the rows. Only of a placement that was asked for and is not in `output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    offsets: Option<Offsets>,
}

struct Offsets(Vec<(String, u64)>);

impl Serialize for Offsets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(id, offset)| (id, offset)))
    }
}

pub(super) fn run(args: &SolveArgs) -> anyhow::Result<Status> {
    let found = models::find_problems(&args.problems, args.output.out_dir.as_deref());
    let destinations = destinations(args, &found)?;
    let (results, mut status) = each(&found, |i, source| {
        let row = one(args, source, destinations.as_ref().map(|d| &d[i]))?;
        for warning in &row.warnings {
            complain(&format!("warning: {}: {warning}", source.name()));
        }
        Ok(row)
    })?;
    if results.iter().flatten().any(Row::is_no) {
        status = status.max(Status::No);
    }
    let text = match args.format {
        SolveFormat::Csv => String::new(),
        SolveFormat::Json => {
            let items = results.into_iter().map(|result| match result {
                Ok(row) => Item::Figures(Box::new(figures(row, args))),
                Err(failure) => Item::Failure {
                    problem: failure.model,
                    error: failure.error,
                },
            });
            json::array(&items.collect::<Vec<_>>())?
        }
        SolveFormat::Text => {
            let asked = results.len();
            let rows: Vec<Row> = results.into_iter().flatten().collect();
            match rows.is_empty() {
                true => String::new(),
                false => words(&rows, asked, destinations.is_some()),
            }
        }
    };
    output::report(&text, destinations.iter().flatten())?;
    Ok(status)
}

/// Where the results go; `None` if they are only reported.
fn destinations(args: &SolveArgs, found: &Found) -> anyhow::Result<Option<Vec<Destination>>> {
    let to = &args.output;
    let is_given = to.output.is_some() || to.out_dir.is_some() || to.in_place;
    match args.format {
        SolveFormat::Csv if is_given => {
            bail!(
                "--format csv prints the result itself, and files are CSV anyway; give one of them"
            )
        }
        SolveFormat::Csv if found.sources.len() > 1 => bail!(
            "--format csv takes one problem, {} are given; use --out-dir or --in-place",
            found.sources.len()
        ),
        SolveFormat::Csv => Ok(Some(vec![Destination::Stdout; found.sources.len()])),
        _ if is_given => output::destinations(to, &found.sources, "").map(Some),
        _ => Ok(None),
    }
}

fn one(
    args: &SolveArgs,
    source: &Source,
    destination: Option<&Destination>,
) -> anyhow::Result<Row> {
    let bytes = source.read()?;
    let table = parse(&bytes)?;
    let start = Instant::now();
    let solution = table.solve(args.search.solver, args.capacity, &args.search.limits())?;
    let seconds = start.elapsed().as_secs_f64();
    let mut warnings: Vec<String> = Vec::new();
    if solution.stopped == Some(Stop::Time) {
        warnings
            .push("the time limit ended the search; another run may give another result".into());
    }
    let mut row = Row {
        problem: source.path_text(),
        buffers: table.problem.len(),
        conflicts: table.problem.conflict_count(),
        greedy_height: greedy(&table.problem)?.height,
        seconds: (seconds * 1e6).round() / 1e6,
        fits: args.capacity.map(|capacity| solution.fits(capacity)),
        solution,
        output: None,
        offsets: None,
        warnings,
    };
    if let Some(capacity) = args.capacity.filter(|_| row.is_no()) {
        let unwritten = match destination {
            Some(_) => "; not written",
            None => "",
        };
        complain(&format!(
            "{}: {}{unwritten}",
            source.name(),
            refusal(&row.solution, capacity)
        ));
    } else if let Some(destination) = destination {
        let text = table.with_offsets(&row.solution.placement);
        let is_same = |old: &[u8]| is_result(old, &table);
        output::write_over(
            destination,
            &args.output,
            args.force,
            text.as_bytes(),
            is_same,
        )?;
        row.output = Some(destination.path_text());
    } else if args.format == SolveFormat::Json {
        let offsets = row.solution.placement.offsets.iter().copied();
        row.offsets = Some(Offsets(
            table.ids().map(str::to_owned).zip(offsets).collect(),
        ));
    }
    Ok(row)
}

/// Why there is no placement in `capacity` bytes: it is proven, or the search was ended before.
fn refusal(solution: &Solution, capacity: u64) -> String {
    let bound = thousands(solution.lower_bound);
    let height = thousands(solution.placement.height);
    let capacity_text = thousands(capacity);
    match solution.fits(capacity) {
        Some(_) => {
            format!("does not fit into {capacity_text} bytes: no placement is below {bound}")
        }
        None => format!(
            "not found in {capacity_text} bytes: the best placement found takes {height}, and it is only proven that none \
             is below {bound}"
        ),
    }
}

fn parse(bytes: &[u8]) -> anyhow::Result<Table> {
    match str::from_utf8(bytes) {
        Ok(text) => Ok(csv::parse(text)?),
        Err(e) => {
            let lines = bytes[..e.valid_up_to()].iter().filter(|&&b| b == b'\n');
            bail!("line {}: this is no UTF-8 text", lines.count() + 1)
        }
    }
}

/// Whether a file holds the same problem, and no choice of offsets that would be lost: none are fixed, or all are, as in
/// a result.
fn is_result(old: &[u8], table: &Table) -> bool {
    let Ok(old) = parse(old) else { return false };
    let fixed = old.problem.buffers().filter(|(_, b)| b.fixed.is_some());
    let fixed = fixed.count();
    old.is_same_problem(table) && (fixed == 0 || fixed == old.problem.len())
}

fn figures(row: Row, args: &SolveArgs) -> Figures {
    Figures {
        arenaplan: json::TOOL_VERSION,
        problem: row.problem,
        output: row.output,
        solver: args.search.solver.to_string(),
        planner: row.solution.planner.to_string(),
        buffers: row.buffers,
        conflicts: row.conflicts,
        capacity: args.capacity,
        fits: row.fits.flatten(),
        height_bytes: row.solution.placement.height,
        bound_bytes: row.solution.lower_bound,
        greedy_height_bytes: row.greedy_height,
        optimal: row.solution.optimal(),
        nodes: row.solution.nodes,
        seconds: row.seconds,
        stopped: row.solution.stopped.map(stop_name),
        warnings: row.warnings,
        offsets: row.offsets,
    }
}

fn stop_name(stop: Stop) -> &'static str {
    match stop {
        Stop::Time => "time",
        _ => "work",
    }
}

/// A row per problem, then where the results are.
fn words(rows: &[Row], asked: usize, is_written: bool) -> String {
    let columns = [
        ("problem", Align::Left),
        ("buffers", Align::Right),
        ("conflicts", Align::Right),
        ("solver", Align::Left),
        ("height", Align::Right),
        ("bound", Align::Right),
        ("gap", Align::Right),
        ("nodes", Align::Right),
        ("seconds", Align::Right),
        ("", Align::Left),
    ];
    let folder = match rows {
        [_] => String::new(),
        rows => common_folder(rows.iter().map(|r| r.problem.as_str())),
    };
    let name = |row: &Row| {
        let path = Path::new(&row.problem);
        shown(
            &path
                .strip_prefix(&folder)
                .unwrap_or(path)
                .display()
                .to_string(),
        )
    };
    let cells = rows.iter().map(|row| {
        vec![
            name(row),
            thousands(row.buffers as u64),
            thousands(row.conflicts as u64),
            row.solution.planner.to_string(),
            thousands(row.solution.placement.height),
            thousands(row.solution.lower_bound),
            gap(&row.solution),
            thousands(row.solution.nodes),
            format!("{:.3}", row.seconds),
            note(row),
        ]
    });
    let cells: Vec<Vec<String>> = cells.collect();
    let mut text = String::new();
    if !folder.is_empty() {
        text.push_str(&format!("in {}:\n", shown(&folder)));
    }
    text.push_str(&table(&columns, &cells));
    if asked > 1 {
        text.push_str(&summary(rows, asked));
    }
    let written: Vec<&str> = rows.iter().filter_map(|r| r.output.as_deref()).collect();
    match written[..] {
        [] if is_written || rows.iter().all(Row::is_no) => text.push_str("nothing written\n"),
        [] if asked == 1 => text.push_str("nothing written; -o FILE writes the offsets\n"),
        [] => text.push_str("nothing written; --out-dir DIR writes the offsets\n"),
        [path] => text.push_str(&format!("written: {}\n", shown(path))),
        _ => text.push_str(&format!("{} written\n", count(written.len(), "file"))),
    }
    text
}

/// How far above the bound the height is.
fn gap(solution: &Solution) -> String {
    let (height, bound) = (solution.placement.height, solution.lower_bound);
    match solution.optimal() {
        true => "optimal".into(),
        false => percent(100.0 * (height - bound) as f64 / bound as f64),
    }
}

/// The last column of a row: what there is to say against it.
fn note(row: &Row) -> String {
    let mut notes = match row.fits {
        None => vec![],
        Some(Some(true)) => vec!["fits"],
        Some(Some(false)) => vec!["does not fit"],
        Some(None) => vec!["not found"],
    };
    match row.solution.stopped {
        None => {}
        Some(Stop::Time) => notes.push("time limit"),
        Some(_) => notes.push("work limit"),
    }
    notes.join(", ")
}

fn summary(rows: &[Row], asked: usize) -> String {
    let number = |what: fn(&Row) -> bool| rows.iter().filter(|row| what(row)).count();
    let mut parts = Vec::new();
    for (n, what) in [
        (
            number(|r| r.fits.is_none() && r.solution.optimal()),
            "optimal",
        ),
        (
            number(|r| r.fits.is_none() && !r.solution.optimal()),
            "not proved optimal",
        ),
        (number(|r| r.fits == Some(Some(true))), "fitting"),
        (number(|r| r.fits == Some(Some(false))), "not fitting"),
        (number(|r| r.fits == Some(None)), "not found"),
        (asked - rows.len(), "failed"),
    ] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    format!("\n{}: {}\n", count(asked, "problem"), parts.join(", "))
}
