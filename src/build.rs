//! For build scripts: plans models, and writes a type of Rust for each, which `arenaplan_runtime::include_model!` brings in.
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), arenaplan::build::Error> {
//!     arenaplan::build::compile("models/kws.tflite")
//! }
//! ```
//!
//! With more to say, by a [`Builder`]:
//!
//! ```no_run
//! # fn main() -> Result<(), arenaplan::build::Error> {
//! arenaplan::build::Builder::new()
//!     .model("models/wake_word.tflite")
//!     .model("models/commands-v3-final.tflite")
//!     .named("commands")
//!     .arena_limit(32 * 1024)
//!     .compile()
//! # }
//! ```
//!
//! Into Cargo's `OUT_DIR` go `commands.tflite`, the planned model, and `commands.rs`, which [`crate::codegen`] describes: a type
//! `Commands` with constants for sizes, shapes, scales and zero points, the list of the kernels that the model needs, and
//! methods that run it. Files are written only when they change, and the same model gives the same bytes on every machine.
//! Cargo runs the build script again when a model has changed.
//!
//! Build scripts are compiled without optimisation unless a profile says otherwise. Where that is felt, with models of hundreds
//! of operators or a solver that searches long:
//!
//! ```toml
//! [profile.dev.build-override]
//! opt-level = 2
//!
//! [profile.release.build-override]
//! opt-level = 2
//! ```

mod error;
mod group;
mod stale;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::codegen::{self, Interface, Operators, OwnKernel, RustOptions, names};
use crate::explain::{self, Cause, words};
use crate::graph::Graph;
use crate::model::Model;
use crate::plan::{Options, Planned, plan};
use crate::report;
use crate::selftest;
use crate::text::thousands;

pub use arenaplan_solver::{Limits, Planner};
pub use error::{Error, ErrorKind};

pub use crate::plan::Stripes;
pub use crate::target::Target;
pub use group::GeneratedGroup;

/// Plans a model for this project's runtime, and writes what `arenaplan_runtime::include_model!` brings in.
///
/// `path` is relative to the folder of `Cargo.toml`. See [`Builder`] for more.
///
/// # Errors
/// As those of [`Builder::compile`].
pub fn compile(path: impl AsRef<Path>) -> Result<(), Error> {
    Builder::new().model(path).compile()
}

/// The code that [`compile`] writes for a model called `name`, without files and without a build script.
///
/// # Errors
/// As those of [`Builder::generate`].
pub fn generate(name: &str, model: &[u8]) -> Result<String, Error> {
    Ok(Builder::new().generate(name, model)?.rust)
}

/// Which models are compiled, and how.
#[derive(Clone, Debug)]
pub struct Builder {
    models: Vec<Source>,
    options: Options,
    arena_limit: Option<usize>,
    accept_unproved: bool,
    self_test: bool,
    code: RustOptions,
    kernels: Vec<(String, String)>,
    out_dir: Option<PathBuf>,
    groups: Vec<group::Group>,
}

#[derive(Clone, Debug)]
struct Source {
    path: PathBuf,
    name: Option<String>,
}

/// What is written for a model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Generated {
    /// The name: files are called `NAME.rs` and `NAME.tflite`.
    pub name: String,
    /// The code; empty for a model of a group, which has code for all.
    pub rust: String,
    /// The planned model, and the figures of its plan.
    pub planned: Planned,
    /// What the code says of the model.
    pub interface: Interface,
    /// What the user should know, a line each.
    pub warnings: Vec<String>,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// No models yet; plans are for this project's runtime.
    pub fn new() -> Self {
        let options = Options {
            target: Target::Arenaplan,
            ..Options::default()
        };
        Self {
            models: Vec::new(),
            options,
            arena_limit: None,
            accept_unproved: false,
            self_test: false,
            code: RustOptions::default(),
            kernels: Vec::new(),
            out_dir: None,
            groups: Vec::new(),
        }
    }

    /// Adds a model: the path of a `.tflite` file, relative to the folder of `Cargo.toml`. It is called as the file, without
    /// the extension.
    pub fn model(mut self, path: impl AsRef<Path>) -> Self {
        self.models.push(Source {
            path: path.as_ref().to_owned(),
            name: None,
        });
        self
    }

    /// Calls the model that was added last `name`: `include_model!("name")` brings in the type `Name`.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        if let Some(source) = self.models.last_mut() {
            source.name = Some(name.into());
        }
        self
    }

    /// Plans for a target, instead of [`Target::Arenaplan`]. The runtime refuses plans that share more than its kernels
    /// allow, which is an error of the build.
    pub fn target(mut self, target: Target) -> Self {
        self.options.target = target;
        self
    }

    /// Places tensors with this solver.
    pub fn solver(mut self, solver: Planner) -> Self {
        self.options.solver = solver;
        self
    }

    /// How long the solver may search. Limits of nodes give the same plan on every machine, limits of time do not.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Offsets of tensors are multiples of this many bytes: a power of two from 16 to 4,096. More than 16 means something only
    /// in memory that is aligned so far, which [`arenaplan_runtime::Arena`] is not.
    pub fn alignment(mut self, bytes: u64) -> Self {
        self.options.align = bytes;
        self
    }

    /// All that planning can be told. Replaces what was said by [`target`](Self::target), [`solver`](Self::solver),
    /// [`limits`](Self::limits), [`alignment`](Self::alignment) and [`stripes`](Self::stripes).
    pub fn plan_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Computes layers that set the peak in row stripes, with at most so much more work ([`Stripes`]): `.stripes(Stripes::UpTo(100))`
    /// is 10 %. The outputs stay the same to the bit; the kernels of SLICE and CONCATENATION come with it. A warning says why
    /// where nothing could be cut. Work is estimated in instructions of a Cortex-M4.
    pub fn stripes(mut self, stripes: Stripes) -> Self {
        self.options.stripes = stripes;
        self
    }

    /// Accepts plans that are not proved to be the smallest, which are warned of otherwise.
    pub fn accept_unproved(mut self) -> Self {
        self.accept_unproved = true;
        self
    }

    /// Fails the build if a model needs an arena of more bytes, with what is there when most is.
    pub fn arena_limit(mut self, bytes: usize) -> Self {
        self.arena_limit = Some(bytes);
        self
    }

    /// Gives the types a method `self_test`, which proves on the device that its kernels keep the plan
    /// ([`SelfTest`](crate::selftest::SelfTest)), for some hundred bytes of flash. It makes builds slower: a model runs some
    /// hundred times.
    pub fn self_test(mut self, yes: bool) -> Self {
        self.self_test = yes;
        self
    }

    /// The models called so take turns on one arena, in which all of them are prepared: `include_model!("voice")` brings in the
    /// type `Voice`, which owns the arena, and a type for the turn of each model. See [`crate::share`].
    ///
    /// ```no_run
    /// # fn main() -> Result<(), arenaplan::build::Error> {
    /// arenaplan::build::Builder::new()
    ///     .model("models/vad.tflite")
    ///     .model("models/kws.tflite")
    ///     .share("voice", &["vad", "kws"])
    ///     .compile()
    /// # }
    /// ```
    ///
    /// In the program, `Voice::new(&mut arena)?` prepares them, and `voice.vad()` is a turn of the first, with the methods of a
    /// type of a model alone.
    pub fn share(mut self, name: impl Into<String>, models: &[&str]) -> Self {
        self.groups
            .push(group::Group::new(name.into(), models, false));
        self
    }

    /// As [`share`](Self::share), and each model reads an output of the one before it where that lies: the input that fits has
    /// no method that sets it. Models run in this order, with no other in between.
    pub fn cascade(mut self, name: impl Into<String>, models: &[&str]) -> Self {
        self.groups
            .push(group::Group::new(name.into(), models, true));
        self
    }

    /// In the group that was added last, an output of a model is an input of a later one: `.link("detector:0=classifier:0")`.
    pub fn link(mut self, link: impl Into<String>) -> Self {
        match self.groups.last_mut() {
            Some(group) => group.links.push(link.into()),
            // Refused below, as a link that is left out would be missed on the device alone.
            None => self.groups.push(group::Group::stray(link.into())),
        }
        self
    }

    /// Which kernels the program gets: those that the model needs, or all.
    pub fn operators(mut self, operators: Operators) -> Self {
        self.code.operators = operators;
        self
    }

    /// A kernel of the application: `.kernel("Double", "crate::DOUBLE")` for a custom operator that models call `Double`, or
    /// for an operator of the schema that the runtime has no kernel for. `path` is that of a constant of type
    /// [`arenaplan_runtime::Kernel`], seen from where the model is brought in. Its scratch memory is not counted in the
    /// constants for memory.
    pub fn kernel(mut self, operator: impl Into<String>, path: impl Into<String>) -> Self {
        self.kernels.push((operator.into(), path.into()));
        self
    }

    /// The visibility of the types, in place of `pub`.
    pub fn visibility(mut self, visibility: impl Into<String>) -> Self {
        self.code.visibility = visibility.into();
        self
    }

    /// Writes into this folder instead of Cargo's `OUT_DIR`, relative to the folder of `Cargo.toml`. `include!` brings in the
    /// code then.
    pub fn out_dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.out_dir = Some(folder.as_ref().to_owned());
        self
    }

    /// Plans all models, writes them and their code, and tells Cargo what they depend on.
    ///
    /// # Errors
    /// If a file cannot be read or written, a model cannot be planned or run, two models have one name, or an arena is above
    /// the limit. [`Debug`](std::fmt::Debug) of the error, which is what Cargo shows, is a message for people.
    pub fn compile(&self) -> Result<(), Error> {
        let root = env::var_os("CARGO_MANIFEST_DIR").map_or_else(PathBuf::new, PathBuf::from);
        let out = match (&self.out_dir, env::var_os("OUT_DIR")) {
            (Some(folder), _) => root.join(folder),
            (None, Some(folder)) => PathBuf::from(folder),
            (None, None) => return Err(ErrorKind::NoOutDir.into()),
        };
        // Before anything can fail, so that the script runs again when the file is right.
        for source in &self.models {
            tell(&format!("rerun-if-changed={}", source.path.display()));
        }
        let file = |name: &str, extension: &str| out.join(format!("{name}.{extension}"));
        let mut names = BTreeSet::new();
        let put = |generated: &Generated| {
            for warning in &generated.warnings {
                tell(&format!("warning={warning}"));
            }
            write(&file(&generated.name, "tflite"), &generated.planned.file)
        };
        for generated in self.generate_all(&root)? {
            put(&generated)?;
            write(&file(&generated.name, "rs"), generated.rust.as_bytes())?;
            names.insert(generated.name);
        }
        for group in self.generate_groups(&root)? {
            for warning in &group.warnings {
                tell(&format!("warning={warning}"));
            }
            group.models.iter().try_for_each(put)?;
            write(&file(&group.name, "rs"), group.rust.as_bytes())?;
            names.insert(group.name);
        }
        match &self.out_dir {
            // The folder is not ours alone.
            Some(_) => Ok(()),
            None => stale::mark(&out, names),
        }
    }

    /// What [`compile`](Self::compile) writes for models that share their arena with no other, with paths relative to `root`.
    ///
    /// # Errors
    /// As those of [`compile`](Self::compile).
    pub fn generate_all(&self, root: &Path) -> Result<Vec<Generated>, Error> {
        if self.models.is_empty() {
            return Err(ErrorKind::NoModels.into());
        }
        let mut known: Vec<(String, String, &Path)> = Vec::new();
        for group in &self.groups {
            let name = &group.name;
            let made = (name.to_lowercase(), names::type_name(name));
            if let Some((.., first)) =
                (known.iter()).find(|(file, of_type, _)| *file == made.0 || *of_type == made.1)
            {
                return Err(ErrorKind::SameName {
                    name: name.clone(),
                    first: (*first).to_owned(),
                }
                .into());
            }
            known.push((made.0, made.1, Path::new(name)));
        }
        let mut all = Vec::new();
        for source in &self.models {
            let path = &source.path;
            let name = source.name()?;
            let type_name = names::type_name(&name);
            // Some file systems do not tell capital letters from others.
            let file_name = name.to_lowercase();
            if let Some((.., first)) = (known.iter())
                .find(|(file, of_type, _)| *file == file_name || *of_type == type_name)
            {
                return Err(ErrorKind::SameName {
                    name,
                    first: (*first).to_owned(),
                }
                .of(path));
            }
            known.push((file_name, type_name, path));
            if self.groups.iter().any(|group| group.has(&name)) {
                continue;
            }
            let bytes = source.read(root)?;
            let generated = self.generate(&name, &bytes);
            let mut generated = generated.map_err(|e| e.kind.of(path))?;
            for warning in &mut generated.warnings {
                *warning = format!("{}: {warning}", path.display());
            }
            all.push(generated);
        }
        let in_groups = !self.groups.is_empty();
        let used = |name: &str| {
            let mut kernels = all.iter().flat_map(|g: &Generated| &g.interface.kernels);
            kernels.any(|kernel| kernel.is_own && kernel.operator == name)
        };
        // With groups, others may use them.
        let idle = self
            .kernels
            .iter()
            .filter(|(name, _)| !in_groups && !used(name));
        let idle: Vec<_> = idle
            .map(|(name, path)| {
                format!("no operator of a model is called {name:?}, for which {path} is given")
            })
            .collect();
        if let Some(last) = all.last_mut() {
            last.warnings.extend(idle);
        }
        Ok(all)
    }

    /// What is written for one model, of its bytes: no file is read or written.
    ///
    /// # Errors
    /// If the bytes are no model, it cannot be planned or run, or the arena is above the limit.
    pub fn generate(&self, name: &str, model: &[u8]) -> Result<Generated, Error> {
        if is_git_lfs(model) {
            return Err(ErrorKind::GitLfs.into());
        }
        let code = self.code()?;
        let planned = plan(model, &self.options)?;
        let interface = self.interface(&planned.file, &code)?;
        if let Some(limit) = self
            .arena_limit
            .filter(|&limit| interface.arena_bytes() > limit)
        {
            return Err(self.above(limit, &interface, &planned)?.into());
        }
        let mut warnings = warnings(&planned);
        warnings.retain(|w| !(self.accept_unproved && w.starts_with(UNPROVED)));
        Ok(Generated {
            name: name.to_owned(),
            rust: codegen::module(name, &interface, &code)?,
            warnings,
            planned,
            interface,
        })
    }

    /// What the code has to know of a planned file.
    fn interface(&self, file: &[u8], code: &RustOptions) -> Result<Interface, Error> {
        let interface = Interface::read(file, &code.own_kernels)?;
        match self.self_test {
            true => interface.with_self_test(file, &selftest::Options::default()),
            false => return Ok(interface),
        }
        .map_err(|e| ErrorKind::SelfTest(e).into())
    }

    /// How code is written.
    fn code(&self) -> Result<RustOptions, Error> {
        let own = self.kernels.iter();
        let own = own.map(|(operator, path)| OwnKernel::new(operator, path));
        Ok(RustOptions {
            own_kernels: own.collect::<Result<_, _>>()?,
            ..self.code.clone()
        })
    }

    /// The error for an arena above the limit.
    fn above(
        &self,
        limit_bytes: usize,
        interface: &Interface,
        planned: &Planned,
    ) -> Result<ErrorKind, crate::Error> {
        let limit = explain::limit_of(&planned.file, &self.options)?;
        let graph = Graph::read(Model::parse(&planned.file)?)?;
        let moment = match &limit.cause {
            Cause::Moment(moment) => {
                let place = match &moment.operator {
                    Some(operator) => format!("while {operator} runs"),
                    None => "at the start".to_owned(),
                };
                let present = words::present(&graph, self.options.kernels(), moment);
                format!(
                    "{} bytes must be there at one time, {place}:\n{present}",
                    thousands(limit.bound_bytes)
                )
            }
            Cause::Block(tensors) => {
                let names = tensors.iter().map(|&t| graph.tensor(t).label());
                format!(
                    "{} bytes are one block, of copies or parts of each other: {}\n",
                    thousands(limit.bound_bytes),
                    names.collect::<Vec<_>>().join(", ")
                )
            }
        };
        Ok(ErrorKind::ArenaLimit {
            needed: interface.arena_bytes(),
            limit: limit_bytes,
            head: interface.head_bytes,
            tail: interface.tail_bytes,
            is_optimal: planned.report.optimal,
            above_bound: planned.report.head_bytes.saturating_sub(limit.bound_bytes),
            moment,
        })
    }
}

impl Source {
    fn read(&self, root: &Path) -> Result<Vec<u8>, Error> {
        fs::read(root.join(&self.path)).map_err(|e| {
            ErrorKind::Read {
                folder: root.to_owned(),
                reason: e.to_string(),
            }
            .of(&self.path)
        })
    }

    /// What the model is called.
    fn name(&self) -> Result<String, Error> {
        match (&self.name, self.path.file_stem()) {
            (Some(name), _) => Ok(name.clone()),
            (None, Some(stem)) => match stem.to_str() {
                Some(name) => Ok(name.to_owned()),
                None => Err(ErrorKind::NoName.of(&self.path)),
            },
            (None, None) => Err(ErrorKind::NoName.of(&self.path)),
        }
    }
}

/// Whether it is not the model, but what Git LFS keeps in its place.
fn is_git_lfs(model: &[u8]) -> bool {
    model.starts_with(b"version https://git-lfs")
}

/// What the planner has to say.
fn warnings(planned: &Planned) -> Vec<String> {
    let report = &planned.report;
    let mut warnings = report.warnings.clone();
    // Without a kernel of the application there is an error.
    warnings.retain(|warning| !warning.starts_with(report::NO_KERNEL));
    warnings.extend((report.no_stripes.iter()).map(|why| format!("no row stripes: {why}")));
    if !report.optimal {
        warnings.push(format!(
            "{UNPROVED}: the head has {} bytes, and none can be below {}; `.accept_unproved()` accepts it \
             without a word",
            thousands(report.head_bytes),
            thousands(report.sizes.bound_with_scratch_bytes)
        ));
    }
    warnings
}

/// How the warning begins that a plan may not be the smallest.
const UNPROVED: &str = "the plan is not proved to be the smallest";

/// Writes a file, if it is not what it should be already: what depends on it is compiled again otherwise.
fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    if fs::read(path).is_ok_and(|known| known == content) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, content))
        .map_err(|e| {
            ErrorKind::Write {
                reason: e.to_string(),
            }
            .of(path)
        })
}

/// Tells Cargo something, in one line.
#[allow(
    clippy::print_stdout,
    reason = "Cargo reads the output of build scripts"
)]
fn tell(text: &str) {
    println!("cargo::{}", text.replace(['\n', '\r'], " "));
}
