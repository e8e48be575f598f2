//! Runs `.tflite` models in memory that was planned beforehand.
#![no_std]

mod check;
pub mod contract;
mod error;
pub mod fixed;
pub mod greedy;
mod kernel;
mod memory;
mod node;
pub mod ops;
mod prepare;
mod recording;
mod records;
mod run;
mod session;
mod types;
mod walk;

pub use arenaplan_schema as schema;
pub use contract::Contract;
pub use error::{Error, Fault, Operand};
pub use kernel::{CODES, Code, Kernel};
pub use memory::{Aligned, Arena, Element, Iter, View, ViewMut};
pub use node::{Node, Options, Shape, Tensor};
pub use recording::{Purpose, Recording, Usage};
pub use run::Observer;
pub use session::{Info, Interpreter, Session, Value, tail_bytes};
pub use types::Type;
