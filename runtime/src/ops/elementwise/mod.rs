//! Operators that compute each output element from the input elements at the same place.

use crate::kernel::Kernel;

pub(super) const KERNELS: &[Kernel] = &[];
