//! The kernels: a constant for each operator.
//!
//! An application lists those that its model needs, and no others are linked:
//!
//! ```
//! use arenaplan_runtime::{Kernel, ops};
//! const KERNELS: &[Kernel] = &[ops::RESHAPE];
//! ```

mod control;
mod elementwise;
mod movement;
mod rows;
mod windows;

pub use control::*;
pub use elementwise::*;
pub use movement::*;
pub use rows::*;
pub use windows::*;

use crate::kernel::{Code, Kernel};

const GROUPS: &[&[Kernel]] = &[
    windows::KERNELS,
    rows::KERNELS,
    elementwise::KERNELS,
    movement::KERNELS,
    control::KERNELS,
];

/// Every kernel, one for each operator, for all types that it has code for.
pub const ALL: &[Kernel] = &all::<{ count() }>();

// Runs in the compiler.
#[allow(clippy::indexing_slicing)]
const fn count() -> usize {
    let mut count = 0;
    let mut group = 0;
    while group < GROUPS.len() {
        count += GROUPS[group].len();
        group += 1;
    }
    count
}

// Runs in the compiler.
#[allow(clippy::indexing_slicing)]
const fn all<const N: usize>() -> [Kernel; N] {
    let mut all = [Kernel::custom("", |_| Ok(())); N];
    let mut at = 0;
    let mut group = 0;
    while group < GROUPS.len() {
        let mut k = 0;
        while k < GROUPS[group].len() {
            all[at] = GROUPS[group][k];
            at += 1;
            k += 1;
        }
        group += 1;
    }
    all
}

/// The kernel in `kernels` that runs `code`, which is not a custom operator.
pub fn find(kernels: &[Kernel], code: Code) -> Option<&Kernel> {
    kernels.iter().rev().find(|kernel| kernel.code == code)
}
