//! A model as source code for firmware: for C and C++ with TensorFlow Lite Micro (TFLM).
//!
//! ```text
//! bytes of a file -> Export (its graph, its plan judged, what each kernel library needs) -> c::header, shim::header -> text
//! ```
//!
//! Nothing is planned here: a file is exported as it is, after its plan was found to be right for the kernels it is for.

pub mod c;
mod name;
mod numbers;
pub mod operators;
pub mod shim;
mod tensors;

use arenaplan_schema::patch;
use arenaplan_schema::tflite::BuiltinOperator;

use crate::error::Error;
use crate::graph::Graph;
use crate::inspect::inspect;
use crate::lifetimes::Lifetimes;
use crate::model::Model;
use crate::plan::Options;
use crate::prepared::Prepared;
use crate::report::{LibraryHead, Report};
use crate::scratch::Scratch;
use crate::stored::StoredPlan;
use crate::target::Target;
use crate::tflm;

pub use name::Name;

/// A file that can be exported: its plan, if it has one, is right for the kernels that it is for.
#[derive(Debug)]
pub struct Export<'a> {
    /// What the things in the source are called after.
    pub name: Name,
    /// The file's graph.
    pub graph: Graph<'a>,
    /// The figures, and what the user should know.
    pub report: Report,
    options: Options,
    lifetimes: Lifetimes,
    /// Offsets in bytes, an entry for each tensor, as they stand in the file.
    offsets: Option<Vec<i32>>,
    /// The alignment of the arena in bytes.
    align: u64,
    /// What each library of the target makes of the file.
    libraries: Vec<OnLibrary>,
}

/// The file with one kernel library.
#[derive(Debug)]
struct OnLibrary {
    scratch: Scratch,
    figures: LibraryHead,
}

impl<'a> Export<'a> {
    /// Takes the file `bytes` for the target of `options`. Of the other options, the level of sharing, the alignment and the
    /// scratch file count.
    ///
    /// # Errors
    /// What keeps a model from being read, and [`Error::Export`] for a target that is not TFLM, and for a plan that is wrong
    /// with one of the target's kernel libraries.
    pub fn new(bytes: &'a [u8], options: &Options, name: Name) -> Result<Self, Error> {
        let refuse = |reason: String| Err(Error::Export { reason });
        if options.kernels() == Target::Arenaplan {
            return refuse(
                "a plan for arenaplan's own runtime relies on its kernels, and TensorFlow Lite Micro would compute wrong \
                 numbers with it; --target plans for the kernels on the device (tflm: for any)"
                    .into(),
            );
        }
        let graph = Graph::read(Model::parse(bytes)?)?;
        let inspection = inspect(&graph, options)?;
        if let Some(fault) = inspection.stored.fault() {
            return refuse(format!(
                "the plan in the file is wrong with {}: {fault}; --target plans anew",
                options.kernels().kernels()
            ));
        }
        let offsets = match inspection.stored.plan {
            StoredPlan::Offsets(offsets) => Some(offsets),
            _ => None,
        };
        let mut libraries = Vec::new();
        for scratch in options.scratch_by_library(&graph, Prepared::stored(&graph))? {
            let simulation =
                tflm::simulate(&graph, &inspection.lifetimes, &scratch, offsets.as_deref())?;
            let unplanned = inspection.report.greedy_head_bytes;
            libraries.push(OnLibrary {
                figures: LibraryHead::new(&graph, &scratch, unplanned, simulation.head),
                scratch,
            });
        }
        Ok(Self {
            name,
            report: inspection.report,
            options: options.clone(),
            lifetimes: inspection.lifetimes,
            align: alignment(bytes).max(options.alignment()),
            offsets,
            libraries,
            graph,
        })
    }

    /// The operator for which TFLM writes into the model, which then cannot be constant: `ReshapeOutput` in
    /// `reshape_common.cc` corrects the shape `[0]` by which old files mean a scalar.
    pub fn writes_to_model(&self) -> Option<String> {
        let mut operators = self.graph.operators();
        let writer = operators.find(|op| {
            let output = op.outputs.first().map(|&t| &self.graph.tensor(t).shape[..]);
            op.code == BuiltinOperator::RESHAPE && op.inputs.len() == 1 && output == Some(&[0])
        });
        writer.map(|op| op.label())
    }

    /// The kernels that the file is for.
    pub fn target(&self) -> Target {
        self.options.kernels()
    }

    /// The figures that the header gives as constants: of the library that needs the largest arena, so that they suffice with
    /// each.
    fn figures(&self) -> Option<&LibraryHead> {
        let all = self.libraries.iter().map(|l| &l.figures);
        // Of equals the first one.
        all.rev().max_by_key(|l| l.arena_32.arena_bytes)
    }
}

/// The alignment that a plan of ours was made with, as the file notes it; 1 where it does not.
fn alignment(bytes: &[u8]) -> u64 {
    let provenance = patch::inspect_provenance(bytes).ok().flatten();
    let options = provenance.map(|p| p.stamp.options).unwrap_or_default();
    let noted = options.split(' ').find_map(|o| o.strip_prefix("align="));
    noted
        .and_then(|align| align.parse().ok())
        .filter(|align: &u64| align.is_power_of_two())
        .unwrap_or(1)
}
