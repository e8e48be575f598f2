//! Row stripes.

pub mod cost;
pub mod tail;
