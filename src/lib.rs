//! Offline memory plans for TensorFlow Lite models on microcontrollers.
//!
//! TensorFlow Lite Micro (TFLM) keeps all tensors of a model in one block of RAM, the tensor arena. It decides on the
//! device, greedily, which tensor lies where, unless the file says so: TFLM reads offsets from a metadata entry named
//! `OfflineMemoryAllocation`. This crate computes those offsets on the host, checks them independently, and writes them
//! into the file.
//!
//! ```no_run
//! use arenaplan::plan::{Options, plan};
//!
//! let model = std::fs::read("model.tflite")?;
//! let planned = plan(&model, &Options::default())?;
//! println!("head: {} bytes, was {}", planned.report.head_bytes, planned.report.greedy_head_bytes);
//! std::fs::write("planned.tflite", planned.file)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # In a Rust firmware
//!
//! With the target [`Arenaplan`](target::Target::Arenaplan), models run without TFLM, in the crate `arenaplan-runtime`: no C++, no
//! allocator, no panic. A build script plans the model and writes a type for it, so that the program knows sizes and shapes when
//! it is compiled.
//!
//! ```toml
//! [dependencies]
//! arenaplan-runtime = "0.1"
//!
//! [build-dependencies]
//! arenaplan = { version = "0.1", default-features = false }
//! ```
//!
//! `build.rs`:
//!
//! ```no_run
//! fn main() -> Result<(), arenaplan::build::Error> {
//!     arenaplan::build::compile("models/kws.tflite")
//! }
//! ```
//!
//! `src/main.rs`:
//!
//! ```ignore
//! use arenaplan_runtime::{Arena, Error};
//!
//! arenaplan_runtime::include_model!("kws");
//!
//! fn main() -> Result<(), Error> {
//!     let mut arena = Arena::<{ Kws::ARENA_BYTES }>::new(); // a `static` on a device
//!     let mut kws = Kws::new(&mut arena)?;
//!     kws.input_mut()?.fill(1);
//!     kws.invoke()?;
//!     println!("{:?}", kws.output()?);
//!     Ok(())
//! }
//! ```
//!
//! [`build`] has more to choose: several models, limits for the arena, kernels of the application. [`codegen`] gives the code
//! without files. `examples/quickstart` in the repository is such a firmware for a Cortex-M4.
//!
//! # Layers
//!
//! Each in a module: [`model`] (verified bytes) -> [`graph`] (operators and tensors) -> [`lifetimes`] (TFLM's
//! clock) -> [`interference`] (who may not share bytes, a petgraph graph) -> the solver crate -> [`mod@plan`] (offsets, judged
//! by [`tflm`], which repeats what TFLM will do, and by [`mod@check`], which trusts none of the others).

pub mod aliasing;
pub mod build;
pub mod check;
pub mod codegen;
pub mod compare;
pub mod contract;
pub mod error;
pub mod execute;
pub mod explain;
pub mod export;
pub mod graph;
pub mod inspect;
pub mod interference;
pub mod lifetimes;
pub mod model;
mod own;
pub mod plan;
mod prepared;
pub mod reorder;
pub mod report;
pub mod scratch;
pub mod selftest;
pub mod share;
pub mod steps;
pub mod stored;
pub mod stripes;
pub mod target;
mod text;
pub mod tflm;

#[cfg(feature = "cli")]
pub mod cli;

pub use arenaplan_schema as schema;
pub use arenaplan_solver as solver;
pub use error::Error;
