//! ESP-NN's kernels, where `esp-tflite-micro` calls them.

use arenaplan_schema::tflite::BuiltinOperator as Op;

use super::Kernel;
use crate::target::Chip;

pub(super) fn run(k: &mut Kernel<'_, '_, '_>, chip: Chip) -> Option<()> {
    let _ = chip;
    super::reference(k)
}

/// Whether there is a kernel of its own for this operator.
pub(super) fn has(code: Op) -> bool {
    let _ = code;
    false
}
