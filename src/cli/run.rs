//! `arenaplan run`

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::args::{Format, OutputArgs, RunArgs};
use super::json::{self, Failure};
use super::models::{self, Source};
use super::output::{self, Destination};
use super::text::{Align, count, shown, table, thousands};
use super::{Status, complain, each, npy, print};
use crate::execute::{self, ExecuteError, Feed, Port, Setting, Values, type_name};

/// What a run of one model found.
#[derive(Debug, Serialize)]
struct Ran {
    arenaplan: &'static str,
    model: String,
    invokes: usize,
    /// `zeros`, `noise` or `files`.
    fed_with: &'static str,
    seed: Option<u64>,
    inputs: Vec<PortFigures>,
    outputs: Vec<PortFigures>,
    head_bytes: usize,
    tail_bytes: usize,
    arena_bytes: usize,
}

/// An input or an output.
#[derive(Debug, Serialize)]
struct PortFigures {
    name: String,
    #[serde(rename = "type")]
    element_type: String,
    shape: Vec<usize>,
    scale: Option<f32>,
    zero_point: Option<i32>,
    /// The start of the SHA-256 of an output's bytes after the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// The file that the output was written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<String>,
}

/// A model that ran, or whose arena is too large.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Item {
    Ran(Ran),
    Failure(Failure),
}

pub(super) fn run(args: &RunArgs) -> anyhow::Result<Status> {
    let found = models::find(&args.models.models, None);
    if found.sources.len() > 1 && (args.output.is_some() || !args.input.is_empty()) {
        bail!(
            "--input and --output take one model, {} are given",
            found.sources.len()
        );
    }
    let feed = match (args.random, &args.input[..]) {
        (Some(seed), _) => Feed::Noise(seed),
        (None, []) => Feed::Zeros,
        (None, files) => Feed::Values(files.iter().map(array).collect::<Result<_, _>>()?),
    };
    let (results, mut status) = each(&found, |_, source| one(args, source, &feed))?;
    if results
        .iter()
        .flatten()
        .any(|item| matches!(item, Item::Failure(_)))
    {
        status = status.max(Status::No);
    }
    let text = match args.format {
        Format::Text => results.iter().flatten().map(words).collect(),
        Format::Json => {
            let items = results.into_iter().map(|r| r.unwrap_or_else(Item::Failure));
            json::array(&items.collect::<Vec<_>>())?
        }
    };
    print(&text)?;
    Ok(status)
}

fn array(path: &PathBuf) -> anyhow::Result<Values> {
    let name = || format!("--input {}", shown(&path.display().to_string()));
    let file = fs::read(path).with_context(name)?;
    npy::read(&file).with_context(name)
}

fn one(args: &RunArgs, source: &Source, feed: &Feed) -> anyhow::Result<Item> {
    let bytes = source.read()?;
    let arena = args.arena.map(usize::try_from).transpose()?;
    let mut last = Vec::new();
    let setting = Setting {
        feed: feed.clone(),
        invokes: args.invokes,
        arena_bytes: arena,
        ..Setting::default()
    };
    let run = execute::run(&bytes, &setting, |_, values| last = values);
    let figures = match run {
        Err(e @ ExecuteError::ArenaTooSmall { .. }) => {
            complain(&format!("{}: {e}", source.name()));
            return Ok(Item::Failure(Failure {
                model: source.path_text(),
                error: e.to_string(),
            }));
        }
        other => other?,
    };
    let mut outputs: Vec<PortFigures> = figures.outputs.iter().map(PortFigures::new).collect();
    for (index, (output, values)) in outputs.iter_mut().zip(&last).enumerate() {
        output.digest = Some(digest(values));
        if let Some(folder) = &args.output {
            let path = folder.join(format!("output_{index}.npy"));
            write(args, &path, values)?;
            output.written = Some(path.display().to_string());
        }
    }
    Ok(Item::Ran(Ran {
        arenaplan: json::TOOL_VERSION,
        model: source.path_text(),
        invokes: args.invokes,
        fed_with: match feed {
            Feed::Zeros => "zeros",
            Feed::Noise(_) => "noise",
            Feed::Values(_) => "files",
        },
        seed: args.random,
        inputs: figures.inputs.iter().map(PortFigures::new).collect(),
        outputs,
        head_bytes: figures.head_bytes,
        tail_bytes: figures.tail_bytes,
        arena_bytes: figures.arena_bytes,
    }))
}

fn digest(values: &Values) -> String {
    let digest = Sha256::digest(&values.bytes);
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn write(args: &RunArgs, path: &std::path::Path, values: &Values) -> anyhow::Result<()> {
    let nowhere = OutputArgs {
        output: None,
        out_dir: None,
        in_place: false,
    };
    let file = npy::write(values)?;
    let destination = Destination::File(path.to_owned());
    output::write_over(&destination, &nowhere, args.force, &file, |old| old == file)
}

impl PortFigures {
    fn new(port: &Port) -> Self {
        Self {
            name: port.name.clone(),
            element_type: type_name(port.element_type),
            shape: port.shape.clone(),
            scale: port.quantization.map(|(scale, _)| scale),
            zero_point: port.quantization.map(|(_, zero)| zero),
            digest: None,
            written: None,
        }
    }

    fn row(&self, what: &str, index: usize) -> Vec<String> {
        vec![
            format!("  {what} {index}"),
            self.element_type.clone(),
            format!("{:?}", self.shape),
            self.digest.clone().unwrap_or_default(),
            shown(&crate::text::shortened(&self.name, 40)),
        ]
    }
}

fn words(item: &Item) -> String {
    let Item::Ran(ran) = item else {
        return String::new();
    };
    let fed = match ran.seed {
        Some(seed) => format!("noise of seed {seed}"),
        None => match ran.fed_with {
            "files" => "the given arrays".into(),
            other => other.to_owned(),
        },
    };
    let mut text = format!(
        "{}: {} with {fed}\n",
        shown(&ran.model),
        count(ran.invokes, "run")
    );
    let inputs = ran.inputs.iter().enumerate();
    let outputs = ran.outputs.iter().enumerate();
    let rows: Vec<Vec<String>> = inputs
        .map(|(k, port)| port.row("input", k))
        .chain(outputs.map(|(k, port)| port.row("output", k)))
        .collect();
    let columns = [
        ("  ", Align::Left),
        ("type", Align::Left),
        ("shape", Align::Left),
        ("digest", Align::Left),
        ("name", Align::Left),
    ];
    text.push_str(&table(&columns, &rows));
    text.push_str(&format!(
        "  head {}, tail {}, arena {} bytes\n",
        thousands(ran.head_bytes as u64),
        thousands(ran.tail_bytes as u64),
        thousands(ran.arena_bytes as u64)
    ));
    for path in ran
        .outputs
        .iter()
        .filter_map(|output| output.written.as_deref())
    {
        text.push_str(&format!("  written: {}\n", shown(path)));
    }
    text
}
