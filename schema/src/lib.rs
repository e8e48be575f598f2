//! The `.tflite` format.
#![cfg_attr(not(feature = "host"), no_std)]

/// The code flatc makes, as it makes it: the one place of this crate where its lints do not apply.
#[cfg(feature = "host")]
#[rustfmt::skip]
#[allow(
    unsafe_code,
    missing_docs,
    missing_debug_implementations,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used
)]
mod generated;

pub mod names;
#[cfg(feature = "host")]
pub mod patch;
#[cfg(feature = "host")]
pub mod verify;
pub mod view;
mod wire;

#[cfg(feature = "host")]
pub use flatbuffers;
#[cfg(feature = "host")]
pub use generated::tflite;
