//! Runs `.tflite` models on microcontrollers, in memory that was planned beforehand.
//!
//! `arenaplan plan --target arenaplan` decides where each tensor lies, and writes it into the model. On the device the model
//! stays in flash: shapes, options, weights and the plan are read from there, and RAM holds little else than tensors. No
//! allocator, no panic, no C++.
//!
//! ```
//! use arenaplan_runtime::{Aligned, Arena, Interpreter, Kernel, ops};
//!
//! // The model, in flash, at a multiple of 16 bytes.
//! static MODEL: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(
//!     env!("CARGO_MANIFEST_DIR"),
//!     "/../testdata/models/dscnn_int8.tflite"
//! )));
//!
//! // The operators that it needs: what is not listed is not linked.
//! const KERNELS: &[Kernel] = &[
//!     ops::AVERAGE_POOL_2D,
//!     ops::CONV_2D_INT8,
//!     ops::DEPTHWISE_CONV_2D_INT8,
//!     ops::FULLY_CONNECTED_INT8,
//!     ops::RESHAPE,
//!     ops::SOFTMAX,
//! ];
//!
//! # fn main() -> Result<(), arenaplan_runtime::Error> {
//! // As large as `arenaplan plan` says; on a device a `static`.
//! let mut arena = Arena::<8192>::new();
//! let mut interpreter = Interpreter::new(&MODEL.0, KERNELS, arena.as_mut_slice())?;
//! // Inputs share memory with what comes later: they are set before each inference.
//! interpreter.input::<i8>(0)?.fill(1);
//! interpreter.invoke()?;
//! let scores: &[i8] = interpreter.output(0)?;
//! # assert_eq!(scores.len(), interpreter.session().output_info(0)?.shape.elements().unwrap_or(0));
//! # Ok(())
//! # }
//! ```
//!
//! Constants, the list of kernels, and typed access to inputs and outputs need not be written by hand: a build script that uses
//! the crate `arenaplan` generates them, and [`include_model!`] brings them in.
//!
//! # The arena
//!
//! ```text
//! | head: tensors at the plan's offsets, scratch memory between them | ... | tail: places, variables, resources |
//! ```
//!
//! The head is what the plan says. Tensors that it leaves open, and scratch memory, are placed when a [`Session`] is made, by
//! the planner of TensorFlow Lite Micro ([`greedy`]), so that the compiler can tell the head to the byte. The tail holds four bytes
//! for each tensor and each operator, and what lives from one inference to the next. While a session is made, the head
//! holds 16 bytes for each tensor and scratch buffer instead. [`Session::recording`] tells what is used for what.
//!
//! An [`Interpreter`] has an arena to itself. [`Session`]s have a tail each and are lent a head, so that several models can
//! take turns on one.
//!
//! # What is checked
//!
//! A model or a plan of any bytes gives an [`Error`]. When a session is made, the plan is checked: its form, that tensors are
//! aligned and within the memory, and that no two of them lie over each other while both are in use, but where the kernel of
//! an operator promises that it works ([`Contract`]). All memory is reached through checked views ([`View`], [`ViewMut`]),
//! so that even a kernel that is wrong cannot leave the arena.
//!
//! # Numbers
//!
//! Integers are those of TensorFlow Lite Micro's reference kernels, bit for bit. Floating-point results are within 1e-5 of
//! theirs, relative: sums are the same, but functions like `exp` come from `libm` here and from a C library there, whose last
//! bits differ. Where terms of a sum cancel out, the sum keeps the error of its terms, so that a small element of an output
//! may be further off: in a model with attention single elements by 5e-5 of their own value. Such errors are within 1e-5 of
//! the largest value of the output.
//!
//! # Limits
//!
//! Shapes are those of the file: tensors whose dimensions it leaves open, or has wrong, are refused. A `WHILE` runs as long as
//! the model's condition says so: with one that always holds, [`Interpreter::invoke`] never returns. Where the file is not to
//! be trusted, that is for a watchdog.
//!
//! # Kernels of an application
//!
//! ```
//! use arenaplan_runtime::{Contract, Fault, Kernel, Node, Type};
//!
//! /// A custom operator that models call `Double`: each number twice as large.
//! const DOUBLE: Kernel = Kernel::custom("Double", double).with_contract(Contract::Elementwise);
//!
//! fn double(node: &Node<'_>) -> Result<(), Fault> {
//!     let (input, output) = (node.input(0)?, node.output(0)?);
//!     input.expect(Type::FLOAT32)?;
//!     output.expect(Type::FLOAT32)?;
//!     if input.len() != output.len() {
//!         return Err(output.wrong_shape());
//!     }
//!     let (from, to) = (input.read::<f32>()?, output.write::<f32>()?);
//!     for (index, x) in from.iter().enumerate() {
//!         to.set(index, 2.0 * x);
//!     }
//!     Ok(())
//! }
//! ```
#![no_std]

mod check;
pub mod contract;
mod error;
pub mod fixed;
mod generated;
pub mod greedy;
mod kernel;
mod memory;
mod node;
pub mod ops;
mod prepare;
pub mod prepared;
mod quantization;
mod recording;
mod records;
mod resources;
mod run;
pub mod self_test;
mod session;
mod share;
mod types;
mod walk;

pub use arenaplan_schema as schema;
pub use contract::Contract;
pub use error::{Error, Fault, Operand};
#[doc(hidden)]
pub use generated::INTERFACE;
pub use kernel::{CODES, Code, Kernel};
pub use memory::{Aligned, Arena, Element, Iter, View, ViewMut};
pub use node::{Node, Options, Shape, Tensor};
pub use quantization::{Quantized, dequantize, quantize};
pub use recording::{Purpose, Recording, Usage};
pub use run::Observer;
pub use session::{Info, Interpreter, Session, Value, tail_bytes};
pub use share::share;
pub use types::Type;
