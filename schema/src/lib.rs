//! The `.tflite` format, for the host and for devices.
//!
//! | module | for | what |
//! |-|-|-|
//! | [`view`] | device and host | reads the few tables that running a model takes; no allocator, no `unsafe`, no dependency; every read is checked |
//! | [`names`] | device and host | operator codes, names, bytes of an element |
//! | `tflite` | host | the generated reader of every table, from `tflite.fbs` |
//! | `verify` | host | verifies a file once, so that the generated reader cannot fail |
//! | `patch` | host | writes a plan and operator orders into a file, and takes them out again |
//!
//! The feature `host` (on by default) brings the parts for the host, which need an allocator. Without it the crate is
//! `no_std` and has no dependencies.
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
