//! A model and what it needs, as `build.rs` found them, and the board that it runs on.
#![no_std]

pub mod board;
#[cfg(feature = "all-kernels")]
pub mod everything;
pub mod golden;
pub mod measure;

use arenaplan_runtime::{Aligned, Arena, Kernel, ops};

include!(concat!(env!("OUT_DIR"), "/generated.rs"));

/// All kernels, whatever the model needs.
#[cfg(feature = "all-kernels")]
pub const KERNELS: &[Kernel] = ops::ALL;

/// The model's file.
pub static MODEL: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/model.tflite")));

/// Inputs and outputs to compare with ([`golden`]); empty if there are none.
pub static GOLDEN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/golden"));

/// The memory that the model runs in.
pub static mut ARENA: Arena<ARENA_BYTES> = Arena::new();
