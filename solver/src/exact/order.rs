//! The orders in which the search considers buffers with the same earliest offset.

use super::tables::Tables;

/// What a buffer is measured by, the greatest first.
#[derive(Clone, Copy, Debug)]
enum Measure {
    /// The most that is left to place at one of its cuts of time.
    Load,
    /// What is left to place at all of its cuts of time, together.
    Loads,
    /// The points in time it is alive.
    Width,
    /// The cuts of time it is alive at.
    Cuts,
    /// Size times width.
    Area,
    /// The sizes of the buffers left that it is in conflict with.
    Pressure,
    /// Of the starting cuts, the last one.
    Early,
}

/// Measures in turn: the next one decides where all before are equal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order(&'static [Measure]);

/// The orders, in the order in which they are tried. The first three are MiniMalloc's (Moffitt,
/// "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", 2023).
pub(super) const ORDERS: &[Order] = {
    use Measure::{Area, Cuts, Early, Load, Loads, Pressure, Width};
    &[
        Order(&[Load, Width, Area]),
        Order(&[Load, Width]),
        Order(&[Width, Area, Load]),
        Order(&[Load, Area, Width]),
        Order(&[Pressure, Load]),
        Order(&[Early, Area]),
        Order(&[Load, Cuts, Area]),
        Order(&[Loads, Area]),
    ]
};

impl Order {
    /// The key by which buffer `x` is sorted, ascending. `left` is what is left to place of each
    /// stack.
    pub(super) fn key(
        self,
        core: &Tables,
        x: usize,
        left: &[u64],
        is_left: impl Fn(usize) -> bool,
    ) -> [u64; 3] {
        let entries = || core.all_entries()[core.entries(x)].iter();
        let stacks = || entries().map(|e| left[e.stack as usize]);
        let mut key = [0; 3];
        for (key, measure) in key.iter_mut().zip(self.0) {
            let value = match measure {
                Measure::Load => stacks().max().unwrap_or(0),
                Measure::Loads => stacks().fold(0, u64::saturating_add),
                Measure::Width => core.width[x],
                Measure::Cuts => u64::from(core.last[x] - core.first[x]),
                Measure::Area => core.size[x].saturating_mul(core.width[x]),
                Measure::Pressure => {
                    let edges = core.edges(x).iter();
                    let others = edges.map(|e| e.to as usize).filter(|&y| is_left(y));
                    others.map(|y| core.size[y]).fold(0, u64::saturating_add)
                }
                Measure::Early => u64::from(u32::MAX - core.first[x]),
            };
            *key = u64::MAX - value;
        }
        key
    }
}
