//! `arenaplan export`

use std::borrow::Cow;
use std::path::Path;

use anyhow::bail;

use super::args::{ExportArgs, ExportFormat, OutputArgs};
use super::models::{self, Source};
use super::output::{self, Destination};
use super::plan::{about_scratch, planning, without_offsets};
use super::text::{shown, thousands};
use super::{Status, complain, each, print};
use crate::codegen::{self, RustOptions};
use crate::export::{Export, Name, c, shim};
use crate::graph::Graph;
use crate::model::Model;
use crate::plan::{Options, plan};
use crate::selftest::{self, SelfTest};
use crate::stored::{StoredPlan, made_for};
use crate::target::Target;

pub(super) fn run(args: &ExportArgs) -> anyhow::Result<Status> {
    if args.model.is_dir() {
        bail!(
            "export takes one model, and {} is a folder",
            args.model.display()
        );
    }
    let found = models::find(std::slice::from_ref(&args.model), None);
    without_offsets(&args.freedom, &args.layout, &args.search)?;
    let options = planning(&args.layout, &args.search, &args.freedom, &found)?;
    let (_, status) = each(&found, |_, source| one(args, &options, source))?;
    Ok(status)
}

/// Exports the model and writes the source.
fn one(args: &ExportArgs, options: &Options, source: &Source) -> anyhow::Result<()> {
    let name = match &args.name {
        Some(name) => Name::new(name)?,
        None => {
            let path = match source.is_stdin() {
                true => Path::new("model"),
                false => &source.path,
            };
            Name::from_stem(&path.file_stem().unwrap_or_default().to_string_lossy())
        }
    };
    let bytes = source.read()?;
    let is_self_test = matches!(
        args.format,
        ExportFormat::CSelftest | ExportFormat::RustSelftest
    );
    if args.invokes.is_some() && !is_self_test {
        bail!("--invokes is for self-tests");
    }
    let (file, options) = chosen(args, options, source, &bytes)?;
    let is_planned_now = matches!(file, Cow::Owned(_));
    let for_tflm = |name| exported(args, &options, source, &file, is_planned_now, name);
    let text = match args.format {
        ExportFormat::C => c::header(&for_tflm(name)?),
        ExportFormat::CShim => shim::header(&for_tflm(name)?)?,
        ExportFormat::CSelftest => {
            // A plan that is wrong by itself needs no device to show it.
            let export = for_tflm(name)?;
            self_test(args, source, &file)?.to_c(&export.name.to_string())
        }
        ExportFormat::RustSelftest => self_test(args, source, &file)?.to_rust(&name.to_string()),
        ExportFormat::Rust => {
            let text = codegen::rust(&name.to_string(), &file, &RustOptions::default())?;
            if options.target != Target::Arenaplan && args.target.is_none() {
                complain(&format!(
                    "{}: its plan was made for {}; --target arenaplan plans it for this runtime, which may need less",
                    source.name(),
                    options.target
                ));
            }
            return write_rust(args, source, &text, &name.to_string(), &file);
        }
    };
    write(args, &text)
}

/// The model's self-test; what it proves is told.
fn self_test(args: &ExportArgs, source: &Source, file: &[u8]) -> anyhow::Result<SelfTest> {
    let options = selftest::Options {
        invokes: args.invokes,
    };
    let test = SelfTest::of(file, &options)?;
    for line in test.report().to_string().lines() {
        complain(&format!("{}: {line}", source.name()));
    }
    Ok(test)
}

/// Writes the code, and the planned model beside it, where the code looks for it.
fn write_rust(
    args: &ExportArgs,
    source: &Source,
    text: &str,
    name: &str,
    file: &[u8],
) -> anyhow::Result<()> {
    let Some(path) = args.output.as_deref().filter(|p| p.as_os_str() != "-") else {
        bail!("the planned model is to lie beside the code: -o FILE says where");
    };
    let model = path.with_file_name(format!("{name}.tflite"));
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let differs = || std::fs::read(&model).is_ok_and(|old| old != file);
    if !args.force
        && !source.is_stdin()
        && real(&model).is_some_and(|m| Some(m) == real(&source.path))
        && differs()
    {
        bail!(
            "the planned model, which is to lie beside the code, would replace the model itself: write to another folder, or \
             say --name; --force replaces it"
        );
    }
    let destination = Destination::File(model.clone());
    let output = OutputArgs {
        output: Some(model),
        out_dir: None,
        in_place: false,
    };
    output::write(&destination, &output, args.force, file)?;
    print(&written(&destination, file.len()))?;
    write(args, text)
}

/// The line that tells of a file.
fn written(destination: &Destination, bytes: usize) -> String {
    match destination {
        Destination::File(path) => format!(
            "written: {} ({} bytes)\n",
            shown(&path.display().to_string()),
            thousands(bytes as u64)
        ),
        Destination::Stdout => String::new(),
    }
}

/// The file to export, and the options that it is to be judged by: as it is when it carries a plan and no target is named,
/// else planned.
fn chosen<'b>(
    args: &ExportArgs,
    options: &Options,
    source: &Source,
    bytes: &'b [u8],
) -> anyhow::Result<(Cow<'b, [u8]>, Options)> {
    let mut options = options.clone();
    let has_plan = || {
        let graph = Graph::read(Model::parse(bytes)?)?;
        anyhow::Ok(StoredPlan::read(&graph) != StoredPlan::Absent || graph.is_rewritten())
    };
    if args.target.is_none() && has_plan()? {
        if args.asks_for_planning() {
            bail!(
                "the file carries a plan, which is exported as it is; flags about planning need --target, which plans it anew"
            );
        }
        if let Some((target, alias)) = made_for(bytes) {
            (options.target, options.alias) = (target, alias);
        }
        return Ok((Cow::Borrowed(bytes), options));
    }
    options.target = args.target.unwrap_or(args.format.default_target());
    let planned = plan(bytes, &options).map_err(|e| about_scratch(e, &args.layout))?;
    let without = match args.target {
        Some(_) => "",
        None => " (--target names the device's kernels)",
    };
    complain(&format!(
        "{}: planned for {}{without}: head {} bytes, without a plan {}",
        source.name(),
        options.kernels().kernels(),
        thousands(planned.report.head_bytes),
        thousands(planned.report.greedy_head_bytes)
    ));
    for warning in &planned.report.warnings {
        complain(&format!("warning: {}: {warning}", source.name()));
    }
    Ok((Cow::Owned(planned.file), options))
}

/// The model for TFLM in C and C++.
fn exported<'f>(
    args: &ExportArgs,
    options: &Options,
    source: &Source,
    file: &'f [u8],
    is_planned_now: bool,
    name: Name,
) -> anyhow::Result<Export<'f>> {
    let export = Export::new(file, options, name).map_err(|e| about_scratch(e, &args.layout))?;
    if let Some(operator) = export.writes_to_model() {
        complain(&format!(
            "warning: {}: TFLM writes into the model for {operator}: it has to be copied to RAM",
            source.name()
        ));
    }
    // After planning they have been told.
    if !is_planned_now {
        for warning in &export.report.warnings {
            complain(&format!("warning: {}: {warning}", source.name()));
        }
    }
    Ok(export)
}

/// Writes the source; an older export of a model of the same name, which the first words tell, may be replaced.
fn write(args: &ExportArgs, text: &str) -> anyhow::Result<()> {
    let destination = match &args.output {
        Some(path) if path.as_os_str() != "-" => Destination::File(path.clone()),
        _ => Destination::Stdout,
    };
    let output = OutputArgs {
        output: args.output.clone(),
        out_dir: None,
        in_place: false,
    };
    let opening = |text: &[u8]| {
        let line = text.split(|&b| b == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line).into_owned();
        if let Some(generated) = line.strip_prefix(codegen::WRITTEN_BY) {
            return generated.split_once(':').map(|(_, name)| name.to_owned());
        }
        let name = line.split(':').next().map(str::to_owned);
        line.trim_end()
            .ends_with(c::MADE_BY)
            .then_some(name)
            .flatten()
    };
    let is_older = |old: &[u8]| {
        old == text.as_bytes() || opening(old).is_some_and(|o| Some(o) == opening(text.as_bytes()))
    };
    output::write_over(&destination, &output, args.force, text.as_bytes(), is_older)?;
    print(&written(&destination, text.len()))?;
    Ok(())
}
