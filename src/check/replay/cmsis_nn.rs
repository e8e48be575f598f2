//! CMSIS-NN's kernels, where TFLM calls them.

use arenaplan_schema::tflite::BuiltinOperator as Op;

use super::Kernel;
use crate::target::Core;

pub(super) fn run(k: &mut Kernel<'_, '_, '_>, core: Core) -> Option<()> {
    let _ = core;
    super::reference(k)
}

/// Whether there is a kernel of its own for this operator.
pub(super) fn has(code: Op) -> bool {
    let _ = code;
    false
}
