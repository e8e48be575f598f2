//! Operators with weights: convolutions and FULLY_CONNECTED.

use crate::kernel::Kernel;

pub(super) const KERNELS: &[Kernel] = &[];
