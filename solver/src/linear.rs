//! No reuse at all: each buffer behind the one before. For debugging, and as the worst case.

use crate::gaps::align_up;
use crate::instance::Instance;

/// Offsets in units: the free buffers in index order above all fixed ones.
pub(crate) fn place(instance: &Instance) -> Vec<u64> {
    // A conflict can ask for more distance than the size of the lower buffer.
    let reach = |x: usize| {
        instance
            .conflicts(x)
            .map(|(_, below, _)| below.max(0) as u64)
            .fold(instance.size[x], u64::max)
    };
    let mut offsets = instance.fixed.clone();
    let fixed = (0..instance.len()).filter(|&x| !instance.is_free(x));
    let mut next = fixed.map(|x| offsets[x] + reach(x)).max().unwrap_or(0);
    for x in (0..instance.len()).filter(|&x| instance.is_free(x)) {
        offsets[x] = align_up(next, instance.align[x]);
        next = offsets[x] + reach(x);
    }
    offsets
}
