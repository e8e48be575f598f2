//! What TensorFlow Lite Micro will do with a model: where it puts things, and how much room it takes.
//!
//! [`simulate`] repeats TFLM's planning of the head with or without an offline plan, [`scratch`] knows what the
//! reference kernels ask for, [`tail`] estimates what persists, and [`room`] what planning itself needs.

pub mod room;
pub mod scratch;
mod simulate;
pub mod tail;

pub use simulate::{ALIGNMENT, Placed, Simulation, simulate};
