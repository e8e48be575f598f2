//! Numbers that look random and are always the same.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use std::ops::RangeInclusive;

/// A generator (SplitMix64), by its state.
pub struct Random(pub u64);

impl Random {
    /// A number in `range`.
    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        range.start() + (z ^ (z >> 31)) % (range.end() - range.start() + 1)
    }

    /// One of `items`.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.within(0..=items.len() as u64 - 1) as usize]
    }
}
