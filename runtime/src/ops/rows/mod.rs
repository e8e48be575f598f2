//! Operators that go over windows, rows or whole tensors: pooling, reductions, normalisations, recurrent networks.

use crate::kernel::Kernel;

pub(super) const KERNELS: &[Kernel] = &[];
