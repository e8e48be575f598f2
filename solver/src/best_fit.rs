//! Best fit: each buffer goes into the smallest gap that holds it, so that large gaps stay whole
//! for large buffers. The planner that collects the small change between large buffers.

use crate::gaps::Gaps;
use crate::instance::{Instance, NONE};
use crate::orders;

/// Offsets in units: the lowest placement over all orders, the first of equal ones.
pub(crate) fn place(instance: &Instance) -> Vec<u64> {
    let mut best: Option<(u64, Vec<u64>)> = None;
    for order in orders::all(instance) {
        let offsets = place_in_order(instance, &order);
        let height = instance.height(&offsets);
        if best.as_ref().is_none_or(|(least, _)| height < *least) {
            best = Some((height, offsets));
        }
    }
    best.map_or_else(Vec::new, |(_, offsets)| offsets)
}

/// Best fit over one order of the free buffers.
pub(crate) fn place_in_order(instance: &Instance, order: &[u32]) -> Vec<u64> {
    let mut offsets = instance.fixed.clone();
    let fixed = (0..instance.len()).filter(|&x| !instance.is_free(x));
    let mut top = fixed
        .map(|x| offsets[x] + instance.size[x])
        .max()
        .unwrap_or(0);
    let mut gaps = Gaps::default();
    for &x in order {
        let x = x as usize;
        gaps.collect(instance, x, |y| Some(offsets[y]).filter(|&o| o != NONE));
        offsets[x] = gaps.best_fit(instance.size[x], instance.align[x], top);
        top = top.max(offsets[x] + instance.size[x]);
    }
    offsets
}
