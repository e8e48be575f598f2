//! Flags and their meaning.

use std::path::PathBuf;
use std::time::Duration;

use arenaplan_solver::{Limits, Planner};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::aliasing::Level;
use crate::plan::Stripes;
use crate::report::{Arena, LibraryHead, Report, Striped};
use crate::target::Target;

/// Plans the tensor arena of TensorFlow Lite models offline, so that microcontrollers need less RAM.
#[derive(Debug, Parser)]
#[command(name = "arenaplan", version, max_term_width = 100)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Plan models and write the plans into them
    Plan(PlanArgs),
    /// Show operators, tensors, lifetimes, and what sets the peak
    Inspect(InspectArgs),
    /// Check whether the stored plan is right for its model
    Verify(VerifyArgs),
    /// Take the plan out again: the original bytes
    Strip(StripArgs),
    /// Place the buffers of a problem in MiniMalloc's CSV form
    Solve(SolveArgs),
    /// Run models on this machine, with the runtime that runs them on devices
    Run(RunArgs),
    /// Plan models for several targets, step by step, and compare what each saves
    Compare(CompareArgs),
    /// Write a model with its plan as source code for firmware
    Export(ExportArgs),
}

/// What to work on.
#[derive(Debug, Args)]
pub(super) struct ModelArgs {
    /// A .tflite file, a folder (searched for *.tflite), or - for standard input
    #[arg(value_name = "MODEL", required = true)]
    pub(super) models: Vec<PathBuf>,
}

/// Where to write.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(super) struct OutputArgs {
    /// Write to FILE (for one input only); - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Write each result to DIR under the name of its input
    #[arg(long, value_name = "DIR")]
    pub(super) out_dir: Option<PathBuf>,
    /// Write each result back to where its input was read
    #[arg(long)]
    pub(super) in_place: bool,
}

/// How buffers are placed.
#[derive(Debug, Args)]
pub(super) struct SearchArgs {
    /// How to place buffers
    ///
    /// auto: the best of what is fast, then a search; linear: no reuse; greedy: what TFLM does; best-fit: the smallest gap
    /// that fits; ilp: an integer program, for some twenty buffers; exact: a search that proves its result
    #[arg(long, default_value_t = Planner::Auto, value_name = "SOLVER")]
    pub(super) solver: Planner,
    /// End a search that has looked at this many nodes [default: about a tenth of a second for
    /// auto, some seconds for exact and ilp; none with --time-limit]
    #[arg(long, value_name = "N")]
    pub(super) node_limit: Option<u64>,
    /// End a search after this time; where it strikes, results may differ from run to run
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) time_limit: Option<Duration>,
}

impl SearchArgs {
    /// The limits that the flags ask for.
    pub(super) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.nodes = self.node_limit;
        limits.time = self.time_limit;
        limits
    }
}

/// How tensors may lie.
#[derive(Debug, Args)]
pub(super) struct LayoutArgs {
    /// How much tensors may share bytes: none, views, in-place, overlap [default: what the target's kernels promise]
    ///
    /// none: tensors in use at once share nothing; views: a copy may lie on what it copies; in-place: an output may start
    /// where its input does; overlap: it may run behind its input at a distance
    #[arg(long, value_name = "LEVEL")]
    pub(super) alias: Option<Level>,
    /// Multiple of bytes at which tensors start; less than 16 stands for 16
    #[arg(long, default_value = "16", value_name = "N", value_parser = alignment)]
    pub(super) align: u64,
    /// Scratch memory measured on a device: a file with a line `OPERATOR BYTES...` per operator
    ///
    /// OPERATOR is INDEX in subgraph 0, or SUBGRAPH:INDEX, as `inspect` shows them for the model before it was planned;
    /// BYTES are those of each of its requests. No bytes: it requests nothing. Operators without a line keep the numbers of
    /// the target's kernels. `#` starts a comment. One model at a time.
    #[arg(long, value_name = "FILE")]
    pub(super) scratch: Option<PathBuf>,
}

/// How the device side looks.
#[derive(Debug, Args)]
pub(super) struct DeviceArgs {
    /// The kernels that run the model [default: tflm; for inspect and verify of a file with a plan, what it was made for]
    ///
    /// tflm: any; tflm-reference: TFLM's own portable ones; tflm-cmsis-nn: CMSIS-NN on any Cortex-M, or -plain, -dsp, -mve
    /// for cores without extension (M0 to M3), with DSP (M4, M7), with Helium (M55, M85); tflm-esp-nn: ESP-NN on any chip, or
    /// -generic, -s3, -p4. A plan for other kernels than those on the device computes wrong numbers.
    #[arg(long, value_name = "TARGET")]
    pub(super) target: Option<Target>,
    #[command(flatten)]
    pub(super) layout: LayoutArgs,
    /// Width of the device's pointers, for the estimate of the tail
    #[arg(long, value_enum, default_value_t = Bits::B32)]
    pub(super) bits: Bits,
}

/// Pointer width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Bits {
    /// Microcontrollers
    #[value(name = "32")]
    B32,
    /// The machine at hand, and the Python wheel of TFLM
    #[value(name = "64")]
    B64,
}

impl Bits {
    /// The width as a number.
    pub(super) fn number(self) -> u32 {
        match self {
            Bits::B32 => 32,
            Bits::B64 => 64,
        }
    }

    /// The arena in bytes with one kernel library on a device of this width.
    pub(super) fn of_library(self, head: &LibraryHead) -> u64 {
        match self {
            Bits::B32 => head.arena_32.arena_bytes,
            Bits::B64 => head.arena_64.arena_bytes,
        }
    }

    /// The arena in bytes without stripes on a device of this width.
    pub(super) fn before_stripes(self, striped: &Striped) -> u64 {
        match self {
            Bits::B32 => striped.arena_32_bytes_before,
            Bits::B64 => striped.arena_64_bytes_before,
        }
    }

    /// The arena of a model on a device of this width.
    pub(super) fn of(self, report: &Report) -> Arena {
        match self {
            Bits::B32 => report.arena_32,
            Bits::B64 => report.arena_64,
        }
    }
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Text,
    /// One array, an object per model
    Json,
}

/// Whether something may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Choice {
    /// It may
    Yes,
    /// It may not
    No,
}

/// What a plan may change.
#[derive(Debug, Args)]
pub(super) struct FreedomArgs {
    /// Whether operators may be put into another order that needs less memory
    #[arg(long, value_enum, value_name = "yes|no", default_value_t = Choice::Yes, hide_possible_values = true)]
    pub(super) reorder: Choice,
    /// Compute layers at the peak in row stripes, with at most this much more work: a percentage, as 10%, or `auto` for the
    /// best trade
    ///
    /// Stock SLICEs and CONCATENATIONs are put around copies of the layers; the outputs stay the same to the bit, with any
    /// kernels. Work is estimated in instructions of a Cortex-M4.
    #[arg(long, value_name = "PERCENT|auto|no", default_value_t = Stripes::No, allow_hyphen_values = true)]
    pub(super) stripes: Stripes,
    /// Whether offsets are written; without, stripes are all that changes, and the device places the tensors
    #[arg(long = "plan", value_enum, value_name = "yes|no", default_value_t = Choice::Yes, hide_possible_values = true)]
    pub(super) offsets: Choice,
    /// Keep the inputs' values until the end of an invoke
    #[arg(long)]
    pub(super) keep_inputs: bool,
    /// Keep tensors' values until the end of an invoke (name, INDEX, or SUBGRAPH:INDEX; models
    /// come before this list, or after --)
    #[arg(long, value_name = "TENSOR", num_args = 1..)]
    pub(super) keep: Vec<String>,
    /// Leave tensors to the device's planner (name, INDEX, or SUBGRAPH:INDEX; models
    /// come before this list, or after --)
    #[arg(long, value_name = "TENSOR", num_args = 1..)]
    pub(super) online: Vec<String>,
}

/// Models that take turns on one arena.
#[derive(Debug, Args)]
pub(super) struct ShareArgs {
    /// The models take turns on one arena, in which they are prepared in this order: the head is as large as the
    /// largest needs it, the tails are added
    #[arg(long)]
    pub(super) share: bool,
    /// Each model reads an output of the one before it, where that lies (implies --share)
    ///
    /// The models run in this order, with no other in between, and an input that is linked is not set. Where not exactly one
    /// output fits one input, --link says which is meant.
    #[arg(long)]
    pub(super) cascade: bool,
    /// An output of a model is an input of a later one, in the same bytes (implies --share); once for each such pair
    ///
    /// A model is its file's name without .tflite, or its place in the list, from 0 on; N and M count outputs and inputs, from 0
    /// on.
    #[arg(long = "link", value_name = "MODEL:N=MODEL:M")]
    pub(super) links: Vec<String>,
}

impl ShareArgs {
    /// Whether the models share an arena.
    pub(super) fn is_asked(&self) -> bool {
        self.share || self.cascade || !self.links.is_empty()
    }
}

#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    pub(super) models: ModelArgs,
    #[command(flatten)]
    pub(super) share: ShareArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// Plan and report, write nothing
    #[arg(long, conflicts_with_all = ["output", "out_dir", "in_place"])]
    pub(super) dry_run: bool,
    /// Overwrite files that hold something else
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) device: DeviceArgs,
    #[command(flatten)]
    pub(super) search: SearchArgs,
    /// Fail a model whose arena is larger than this, and do not write it; models that share one, by what they need together
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) arena_limit: Option<u64>,
    #[command(flatten)]
    pub(super) freedom: FreedomArgs,
    /// Whether factors are computed now and stored in the file, rather than on the device, which saves RAM and time; for the
    /// target arenaplan
    #[arg(long, value_enum, value_name = "yes|no", default_value_t = Choice::Yes, hide_possible_values = true)]
    pub(super) precompute: Choice,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

/// How `inspect` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum InspectFormat {
    /// For people: operators with live bytes, and the peak
    Text,
    /// One array, an object per model
    Json,
    /// One row per tensor
    Csv,
    /// The interference graph for Graphviz
    Dot,
}

#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    #[command(flatten)]
    pub(super) models: ModelArgs,
    #[command(flatten)]
    pub(super) device: DeviceArgs,
    /// How to print
    #[arg(long, value_enum, default_value_t = InspectFormat::Text)]
    pub(super) format: InspectFormat,
}

#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    pub(super) models: ModelArgs,
    #[command(flatten)]
    pub(super) share: ShareArgs,
    #[command(flatten)]
    pub(super) device: DeviceArgs,
    /// Run the models as well, with and without their plans, and compare the outputs byte for byte
    ///
    /// With the plan, every byte that belongs to no tensor in use is spoilt before each operator.
    #[arg(long)]
    pub(super) run: bool,
    /// Run them N times, which shows what they keep from one time to the next
    #[arg(long, value_name = "N", default_value_t = 3, requires = "run", value_parser = times)]
    pub(super) invokes: usize,
    /// The seed of the noise that the inputs are set to
    #[arg(long, value_name = "SEED", default_value_t = 0, requires = "run")]
    pub(super) random: u64,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) models: ModelArgs,
    /// Set the inputs to these arrays in NumPy's format, one file for each input, in order (models
    /// come before this list, or after --) [default: zeros]
    #[arg(long, value_name = "FILE.npy", num_args = 1.., conflicts_with = "random")]
    pub(super) input: Vec<PathBuf>,
    /// Set the inputs to noise, which this number decides, new noise for each run
    #[arg(long, value_name = "SEED")]
    pub(super) random: Option<u64>,
    /// Write the outputs of the last run to DIR, as output_0.npy, output_1.npy, ...
    #[arg(long, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// Overwrite files that hold something else
    #[arg(long)]
    pub(super) force: bool,
    /// Run the model N times; what it keeps from one time to the next stays
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = times)]
    pub(super) invokes: usize,
    /// Fail a model that needs a larger arena than this
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) arena: Option<u64>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
}

#[derive(Debug, Args)]
pub(super) struct StripArgs {
    #[command(flatten)]
    pub(super) models: ModelArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// Overwrite files that hold something else
    #[arg(long)]
    pub(super) force: bool,
}

/// How `solve` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SolveFormat {
    /// For people: a row per problem
    Text,
    /// The problem itself with its offsets, as -o writes it (one problem only)
    Csv,
    /// One array, an object per problem
    Json,
}

#[derive(Debug, Args)]
pub(super) struct SolveArgs {
    /// A .csv file, a folder (searched for *.csv), or - for standard input
    ///
    /// A row is a buffer. Columns: id (or buffer, buffer_id), lower (begin, start), upper (or end, the last point in time
    /// itself), size, and if need be alignment, hint (not used), gaps, offset (where the buffer must be). A gap is
    /// lower-upper, or lower-upper@bottom:top where only these bytes of the buffer are in use.
    #[arg(value_name = "PROBLEM", required = true)]
    pub(super) problems: Vec<PathBuf>,
    /// Find a placement in SIZE bytes or prove that there is none; 64K and 1MiB are sizes too
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) capacity: Option<u64>,
    /// Find the lowest placement: what is done without --capacity
    #[arg(long, conflicts_with = "capacity")]
    pub(super) minimize: bool,
    #[command(flatten)]
    pub(super) search: SearchArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// Overwrite files that hold something else
    #[arg(long)]
    pub(super) force: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = SolveFormat::Text)]
    pub(super) format: SolveFormat,
}

/// How `compare` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CompareFormat {
    /// For people: a row per model, the geometric means below
    Text,
    /// The same with a column for each figure, for spreadsheets
    Csv,
    /// One array, an object per model, the geometric means in the last one
    Json,
    /// The table for a page of documentation
    Markdown,
}

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    #[command(flatten)]
    pub(super) models: ModelArgs,
    /// The kernels to plan for, as for `plan`; several in several flags, the order is that of the columns [default: tflm,
    /// tflm-reference, tflm-cmsis-nn, tflm-esp-nn]
    #[arg(long = "target", value_name = "TARGET")]
    pub(super) targets: Vec<Target>,
    #[command(flatten)]
    pub(super) layout: LayoutArgs,
    #[command(flatten)]
    pub(super) search: SearchArgs,
    #[command(flatten)]
    pub(super) freedom: FreedomArgs,
    /// How to print
    #[arg(long, value_enum, default_value_t = CompareFormat::Text)]
    pub(super) format: CompareFormat,
}

/// What `export` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportFormat {
    /// A header for C11 and C++: the model as an array, what to reserve, and TFLM's operators
    C,
    /// The same with the plan as a BufferPlan for TFLM's NonPersistentMemoryPlannerShim instead of offsets in the model
    CShim,
    /// A header for C++ with a function that proves, on the device, that its kernels keep the plan
    CSelftest,
    /// What a build script generates for the runtime of this project; the planned model is written beside it
    Rust,
    /// The self-test for the runtime of this project
    RustSelftest,
}

impl ExportFormat {
    /// What a model without a plan is planned for.
    pub(super) fn default_target(self) -> Target {
        match self {
            ExportFormat::C | ExportFormat::CShim | ExportFormat::CSelftest => Target::Tflm,
            ExportFormat::Rust | ExportFormat::RustSelftest => Target::Arenaplan,
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// A .tflite file, or - for standard input
    #[arg(value_name = "MODEL")]
    pub(super) model: PathBuf,
    /// What to write
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    pub(super) format: ExportFormat,
    /// Write to FILE [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Overwrite a file that holds something else than an older export of a model of this name
    #[arg(long)]
    pub(super) force: bool,
    /// What to call things in the source, an identifier [default: made from the file's name]
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// How many inferences a self-test runs [default: 4, or 6 where the model keeps state]
    #[arg(long, value_name = "N")]
    pub(super) invokes: Option<usize>,
    /// Plan the model first, for these kernels, as `plan` does [default: the plan in the file, as it is; without one, tflm
    /// for C and C++, and arenaplan for Rust]
    #[arg(long, value_name = "TARGET")]
    pub(super) target: Option<Target>,
    #[command(flatten)]
    pub(super) layout: LayoutArgs,
    #[command(flatten)]
    pub(super) search: SearchArgs,
    #[command(flatten)]
    pub(super) freedom: FreedomArgs,
}

impl ExportArgs {
    /// Whether a flag has been given that only planning goes by.
    pub(super) fn asks_for_planning(&self) -> bool {
        let FreedomArgs {
            reorder,
            stripes,
            offsets,
            keep_inputs,
            keep,
            online,
        } = &self.freedom;
        self.search.solver != Planner::Auto
            || self.search.node_limit.is_some()
            || self.search.time_limit.is_some()
            || self.layout.alias.is_some()
            || self.layout.align != 16
            || *reorder == Choice::No
            || *stripes != Stripes::No
            || *offsets == Choice::No
            || *keep_inputs
            || !keep.is_empty()
            || !online.is_empty()
    }
}

/// Bytes, with an optional binary suffix: `65536`, `64K`, `64KiB`, `1MiB`.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ if digits.is_empty() => return Err("not a size in bytes, like 65536, 64KiB or 1M".into()),
        _ => {
            return Err(format!(
                "unknown unit {unit:?}; use K, KiB, M, MiB, G or GiB"
            ));
        }
    };
    digits
        .replace(['_', ','], "")
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(factor))
        .ok_or_else(|| "not a size in bytes, like 65536, 64KiB or 1M".into())
}

/// Seconds, with a fraction if need be.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "not a number of seconds, like 60 or 0.5".into())
}

fn times(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("not a number of times, from 1 on".into()),
    }
}

fn alignment(text: &str) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(n) if n.is_power_of_two() && n <= 4096 => Ok(n),
        _ => Err("not a power of two from 1 to 4096".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_with_fractions() {
        assert_eq!(seconds("60"), Ok(Duration::from_secs(60)));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        for wrong in ["", "-1", "NaN", "inf", "1e30", "1s"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_with_units() {
        assert_eq!(size("65536"), Ok(65536));
        assert_eq!(size("64K"), Ok(65536));
        assert_eq!(size("64KiB"), Ok(65536));
        assert_eq!(size("64k"), Ok(65536));
        assert_eq!(size("1MiB"), Ok(1_048_576));
        assert!(size("").is_err());
        assert!(size("-1").is_err());
        assert!(size("64kb").is_err());
        assert!(size("99999999999999GiB").is_err());
    }
}
