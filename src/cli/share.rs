//! `arenaplan plan --share`, `--cascade`, `--link`, and the same of `verify`: models that take turns on one arena.

use std::collections::BTreeMap;

use anyhow::{Context, anyhow, bail};
use serde::Serialize;

use super::args::{Bits, Choice, Format, PlanArgs, ShareArgs, VerifyArgs};
use super::json::{self, Failure, LibraryFigures, TOOL_VERSION};
use super::models::{Found, Source};
use super::output::{self, Destination};
use super::plan::{Item, Row, about_scratch, destinations, for_file, item, planning};
use super::plan_text::several;
use super::text::{shown, thousands};
use super::{Status, complain};
use crate::plan::Options;
use crate::report::Arena;
use crate::share::{self, Error, Link, Member, Shared, Totals};
use crate::stored::made_for;
use crate::target::Target;

/// The figures of all models together: the last object of the array.
#[derive(Debug, Serialize)]
pub(super) struct SharedFigures {
    arenaplan: &'static str,
    /// The models, in the order in which they are to be prepared, and run where they are linked.
    shared: Vec<String>,
    links: Vec<LinkFigures>,
    target: String,
    greedy_head_bytes: u64,
    head_bytes: u64,
    unlinked_head_bytes: u64,
    link_cost_bytes: u64,
    pointer_bits: u32,
    tail_bytes: u64,
    tail_is_estimate: bool,
    planning_bytes: u64,
    arena_bytes: u64,
    /// With an arena for each model.
    separate_arena_bytes: u64,
    arena_limit: Option<u64>,
    over_limit: bool,
    tail_bytes_32: u64,
    arena_bytes_32: u64,
    tail_bytes_64: u64,
    arena_bytes_64: u64,
    libraries: Vec<LibraryFigures>,
    warnings: Vec<String>,
}

/// A link, and where its bytes are.
#[derive(Debug, Serialize)]
pub(super) struct LinkFigures {
    link: String,
    offset: u64,
    bytes: u64,
}

/// What the models need together with one library.
fn with_library(total: &Totals) -> LibraryFigures {
    LibraryFigures {
        library: total.library.name(),
        greedy_head_bytes: total.greedy_head_bytes,
        head_bytes: total.head_bytes,
        arena_bytes_32: total.arena_32.arena_bytes,
        arena_bytes_64: total.arena_64.arena_bytes,
    }
}

fn arena(bits: Bits, total: &Totals) -> Arena {
    match bits {
        Bits::B32 => total.arena_32,
        Bits::B64 => total.arena_64,
    }
}

/// What was found about planned models that are to share an arena: the last object of `verify`'s array.
#[derive(Debug, Serialize)]
pub(super) struct SharedFinding {
    arenaplan: &'static str,
    shared: Vec<String>,
    links: Vec<String>,
    pub(super) faults: Vec<String>,
}

impl SharedFinding {
    pub(super) fn of(args: &VerifyArgs, found: &Found, options: &Options) -> anyhow::Result<Self> {
        let files = read_all(found)?;
        let names = names(&found.sources);
        let members: Vec<Member<'_>> = (names.iter().zip(&files))
            .map(|(name, bytes)| Member { name, bytes })
            .collect();
        // A file that says nothing, as one that another tool has planned, is judged like the others.
        let telling = files.iter().filter(|bytes| made_for(bytes).is_some());
        let all = telling.map(|bytes| for_file(options, &args.device, bytes));
        let all: Vec<Options> = all.collect();
        let options = all.first().unwrap_or(options);
        if all.iter().any(|o| o.target != options.target) {
            bail!(
                "the models are planned for several targets; models that share an arena run on one"
            );
        }
        let links = links(&args.share, &members, options)?;
        Ok(Self {
            arenaplan: TOOL_VERSION,
            faults: share::check(&members, &links, options)?,
            links: links.iter().map(|link| link.text(&members)).collect(),
            shared: names,
        })
    }

    pub(super) fn words(&self) -> String {
        let names: Vec<_> = self.shared.iter().map(|n| shown(n)).collect();
        let verdict = match self.faults.is_empty() {
            true => "can take turns on one arena",
            false => "can NOT take turns on one arena",
        };
        let mut text = format!("{} {verdict}\n", names.join(", "));
        for link in &self.links {
            text.push_str(&format!("  link {}\n", shown(link)));
        }
        for fault in &self.faults {
            text.push_str(&format!("  wrong: {fault}\n"));
        }
        text
    }
}

/// The names of models by which links call them: files without folder and ending.
pub(super) fn names(sources: &[Source]) -> Vec<String> {
    let stem = |source: &Source| {
        source
            .relative
            .file_stem()
            .map(|s| s.to_string_lossy().into_owned())
    };
    let all = sources.iter().map(|s| stem(s).unwrap_or_default());
    all.collect()
}

/// The links that the flags ask for. What is wrong with the words of one is an error.
pub(super) fn links(
    args: &ShareArgs,
    members: &[Member<'_>],
    options: &Options,
) -> anyhow::Result<Vec<Link>> {
    let parse = |text: &String| Link::parse(text, members);
    let links: Vec<Link> = args.links.iter().map(parse).collect::<Result<_, _>>()?;
    match args.cascade {
        true => share::cascade(members, &links, options).map_err(|e| match e {
            Error::NoCascade { .. } => anyhow!("--cascade: {e}"),
            e => e.into(),
        }),
        false => Ok(links),
    }
}

/// Every file, or none: a group is planned as a whole.
pub(super) fn read_all(found: &Found) -> anyhow::Result<Vec<Vec<u8>>> {
    if let Some((name, error)) = found.failures.first() {
        bail!("{}: {error:#}", shown(name));
    }
    if found.sources.len() < 2 {
        bail!("models that share an arena are at least two");
    }
    let read = |source: &Source| source.read().with_context(|| source.name());
    found.sources.iter().map(read).collect()
}

pub(super) fn run(args: &PlanArgs, found: &Found) -> anyhow::Result<Status> {
    let destinations = destinations(args, found)?;
    if args.freedom.offsets == Choice::No {
        bail!(
            "--plan no is for models that have an arena each: those that share one are planned together"
        );
    }
    apart(destinations.iter().flatten())?;
    let options = Options {
        target: args.device.target.unwrap_or(Target::Tflm),
        ..planning(&args.device.layout, &args.search, &args.freedom, found)?
    };
    let (rows, figures, text) = match together(args, found, &options, destinations.as_deref()) {
        Ok(done) => done,
        Err(e) if args.format == Format::Json => {
            complain(&format!("error: {e:#}"));
            let names: Vec<_> = found.sources.iter().map(Source::path_text).collect();
            let failure = Item::Failure(Failure {
                model: names.join(", "),
                error: format!("{e:#}"),
            });
            output::report(&json::array(&[failure])?, destinations.iter().flatten())?;
            return Ok(Status::Failed);
        }
        Err(e) => return Err(e),
    };
    let status = match figures.over_limit {
        true => Status::No,
        false => Status::Done,
    };
    let text = match args.format {
        Format::Text => text,
        Format::Json => {
            let items = rows.into_iter().map(|row| item(Ok(row), args));
            let all = items.chain([Item::Shared(Box::new(figures))]);
            json::array(&all.collect::<Vec<_>>())?
        }
    };
    output::report(&text, destinations.iter().flatten())?;
    Ok(status)
}

/// That no two plans go into one file, by whatever paths: each model of a group has a plan of its own.
fn apart<'d>(destinations: impl Iterator<Item = &'d Destination>) -> anyhow::Result<()> {
    let mut known = BTreeMap::new();
    for destination in destinations {
        let Destination::File(path) = destination else {
            continue;
        };
        // What is not there yet has no other path.
        let Ok(file) = path.canonicalize() else {
            continue;
        };
        if let Some(other) = known.insert(file, path) {
            bail!(
                "{} and {} are one file, which cannot hold the plans of two models: give a copy",
                shown(&other.display().to_string()),
                shown(&path.display().to_string())
            );
        }
    }
    Ok(())
}

/// Plans all models, writes them unless they are over the limit, and says so.
fn together(
    args: &PlanArgs,
    found: &Found,
    options: &Options,
    destinations: Option<&[Destination]>,
) -> anyhow::Result<(Vec<Row>, SharedFigures, String)> {
    let files = read_all(found)?;
    let names = names(&found.sources);
    let members: Vec<Member<'_>> = (names.iter().zip(&files))
        .map(|(name, bytes)| Member { name, bytes })
        .collect();
    let links = links(&args.share, &members, options)?;
    let shared = share::plan(&members, &links, options).map_err(|error| match error {
        Error::Model { name, error } => {
            about_scratch(error, &args.device.layout).context(shown(&name))
        }
        error => error.into(),
    })?;
    for warning in &shared.warnings {
        complain(&format!("warning: {warning}"));
    }
    let bits = args.device.bits;
    let (needed, with) = largest(&shared, options.target, bits);
    let over_limit = args.arena_limit.is_some_and(|limit| needed > limit);
    if let Some(limit) = args.arena_limit.filter(|_| over_limit) {
        complain(&format!(
            "over the limit: {}: the arena that they share needs {} bytes{with}, allowed are {}; not written",
            names.join(", "),
            thousands(needed),
            thousands(limit)
        ));
    }
    let figures = figures(&shared, &names, args, over_limit);
    let text = words(&shared, &figures, bits);
    let mut rows = Vec::new();
    for (k, (source, planned)) in found.sources.iter().zip(shared.models).enumerate() {
        for warning in &planned.report.warnings {
            complain(&format!("warning: {}: {warning}", source.name()));
        }
        let mut written = None;
        if let Some(destination) = destinations.and_then(|d| d.get(k)).filter(|_| !over_limit) {
            output::write(destination, &args.output, args.force, &planned.file)
                .with_context(|| source.name())?;
            written = Some(destination.path_text());
        }
        rows.push(Row {
            model: source.path_text(),
            output: written,
            report: planned.report,
            over_limit,
        });
    }
    let text = several(&rows, rows.len(), bits) + &text;
    Ok((rows, figures, text))
}

/// The largest arena that the target's libraries need, as for a single model.
fn largest(shared: &Shared, target: Target, bits: Bits) -> (u64, String) {
    let needed = |total: &Totals| arena(bits, total).arena_bytes;
    let known = shared.totals.iter().filter(|_| target != Target::Tflm);
    match known
        .max_by_key(|t| needed(t))
        .filter(|_| shared.totals.len() > 1)
    {
        Some(total) => (needed(total), format!(" with {} kernels", total.library)),
        None => (needed(&shared.total()), String::new()),
    }
}

fn figures(shared: &Shared, names: &[String], args: &PlanArgs, over_limit: bool) -> SharedFigures {
    let bits = args.device.bits;
    let total = shared.total();
    let arena = arena(bits, &total);
    let separate = shared.models.iter().map(|m| bits.of(&m.report).arena_bytes);
    SharedFigures {
        arenaplan: TOOL_VERSION,
        shared: names.to_vec(),
        links: shared.links.iter().map(LinkFigures::new).collect(),
        target: shared
            .models
            .first()
            .map_or_else(String::new, |m| m.report.target.clone()),
        greedy_head_bytes: total.greedy_head_bytes,
        head_bytes: total.head_bytes,
        unlinked_head_bytes: shared.unlinked_head_bytes,
        link_cost_bytes: shared.link_cost_bytes(),
        pointer_bits: bits.number(),
        tail_bytes: arena.tail_bytes,
        tail_is_estimate: !shared.models.iter().all(|m| m.report.tail_is_exact),
        planning_bytes: arena.planning_bytes,
        arena_bytes: arena.arena_bytes,
        separate_arena_bytes: separate.sum(),
        arena_limit: args.arena_limit,
        over_limit,
        tail_bytes_32: total.arena_32.tail_bytes,
        arena_bytes_32: total.arena_32.arena_bytes,
        tail_bytes_64: total.arena_64.tail_bytes,
        arena_bytes_64: total.arena_64.arena_bytes,
        libraries: shared.totals.iter().map(with_library).collect(),
        warnings: shared.warnings.clone(),
    }
}

impl LinkFigures {
    fn new(placed: &share::Placed) -> Self {
        Self {
            link: placed.text.clone(),
            offset: placed.offset,
            bytes: placed.bytes,
        }
    }
}

/// What the group is together.
fn words(shared: &Shared, figures: &SharedFigures, bits: Bits) -> String {
    let mut text = String::from("\none arena for all, by turns:\n");
    let mut line = |name: &str, bytes: u64, note: &str| {
        let line = format!("  {name:<22}{:>12} bytes   {note}", thousands(bytes));
        text.push_str(line.trim_end());
        text.push('\n');
    };
    let heads = shared.models.iter().map(|m| m.report.head_bytes);
    let owners = figures.shared.iter().zip(heads);
    let owners: Vec<_> = owners
        .filter(|(_, head)| *head == figures.head_bytes)
        .map(|(name, _)| shown(name))
        .collect();
    line(
        "head",
        figures.head_bytes,
        &format!("the largest, of {}", owners.join(" and ")),
    );
    let note = match figures.tail_is_estimate {
        true => format!("the sum, estimate for {}-bit devices", bits.number()),
        false => "the sum, exact on devices of any width".into(),
    };
    line("tails", figures.tail_bytes, &note);
    let note = match figures.planning_bytes > figures.head_bytes {
        true => format!(
            "{} above the tails are needed while the models are prepared",
            thousands(figures.planning_bytes)
        ),
        false => String::new(),
    };
    line("arena to reserve", figures.arena_bytes, &note);
    line("with one arena each", figures.separate_arena_bytes, "");
    for link in &figures.links {
        text.push_str(&format!(
            "  link {}: {} bytes at {}, set by nobody else\n",
            shown(&link.link),
            thousands(link.bytes),
            thousands(link.offset)
        ));
    }
    if !figures.links.is_empty() {
        text.push_str(&match figures.link_cost_bytes {
            0 => "  the links cost no byte\n".to_owned(),
            n => format!(
                "  the links cost {} bytes: without them the head is {}\n",
                thousands(n),
                thousands(figures.unlinked_head_bytes)
            ),
        });
    }
    let names: Vec<_> = figures.shared.iter().map(|n| shown(n)).collect();
    let names = names.join(", ");
    text.push_str(&match (figures.links.is_empty(), figures.tail_is_estimate) {
        (true, false) => "  prepare all of them before the first runs\n".to_owned(),
        (true, true) => format!("  prepare all of them in this order, before the first runs: {names}\n"),
        (false, _) => format!(
            "  prepare all of them in this order, before the first runs: {names}; linked models run in this order, with no \
             other in between\n"
        ),
    });
    text
}
