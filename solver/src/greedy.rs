//! The planner of TensorFlow Lite Micro (`GreedyMemoryPlanner`), to the letter.
//!
//! Buffers with fixed offsets count as placed first, whatever they overlap. The others follow by
//! descending size; of equal sizes the higher index goes first, since TFLM fills its list from the
//! tail and sorts it with a stable sort. Each goes to the lowest offset at which it fits among the
//! placed buffers it conflicts with. With lifetimes as conflicts and alignment 1, the offsets equal
//! those that TFLM computes on the device from the same sizes.
//!
//! Separations other than the sizes, and alignments, are a generalisation of ours: a buffer goes
//! to the lowest aligned offset that violates no conflict with a placed one.

use crate::gaps::Gaps;
use crate::instance::{Instance, NONE};
use crate::{Error, Placement, Problem};

/// Places the buffers as TensorFlow Lite Micro does. Fixed offsets are taken as they are: if those
/// contradict each other, the placement is wrong in the same way as on the device, where
/// [`solve`](crate::solve()) would give an error. So this is also what simulates TFLM.
///
/// # Errors
/// What [`Problem::validate`] finds.
pub fn greedy(problem: &Problem) -> Result<Placement, Error> {
    let instance = Instance::new(problem)?;
    let offsets = place(&instance);
    Ok(instance.placement(&offsets))
}

/// Offsets in units.
pub(crate) fn place(instance: &Instance) -> Vec<u64> {
    first_fit(instance, &order(instance))
}

/// The free buffers in TFLM's order.
pub(crate) fn order(instance: &Instance) -> Vec<u32> {
    let mut order: Vec<u32> = (0..instance.len() as u32)
        .rev()
        .filter(|&x| instance.is_free(x as usize))
        .collect();
    order.sort_by_key(|&x| core::cmp::Reverse(instance.size[x as usize]));
    order
}

/// Places the free buffers in the given order, each at its lowest possible offset.
pub(crate) fn first_fit(instance: &Instance, order: &[u32]) -> Vec<u64> {
    let mut offsets = instance.fixed.clone();
    let mut gaps = Gaps::default();
    for &x in order {
        let x = x as usize;
        gaps.collect(instance, x, |y| Some(offsets[y]).filter(|&o| o != NONE));
        offsets[x] = gaps.first_fit(instance.align[x]);
    }
    offsets
}
