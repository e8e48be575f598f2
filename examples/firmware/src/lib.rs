//! A model and what it needs, as `build.rs` found them, and the board that it runs on.
#![no_std]

pub mod board;
#[cfg(feature = "all-kernels")]
pub mod everything;
pub mod golden;
pub mod measure;

use arenaplan_runtime::Arena;

arenaplan_runtime::include_model!("model");

/// Inputs and outputs to compare with ([`golden`]); empty if there are none.
pub static GOLDEN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/golden"));

/// The memory that the model runs in.
pub static mut ARENA: Arena<{ Model::ARENA_BYTES }> = Arena::new();
