//! States of the search that are known to have no solution.
//!
//! A state is which buffers are left to place and what is known of each. Many sequences lead to
//! the same state: two columns of buffers in another order leave the same tops. A state is kept as
//! a fingerprint of 128 bits and the capacity at which it failed; it fails at any lower one too.

/// Entries at most: a power of two.
const MOST: usize = 1 << 18;

/// A fingerprint: a sum over buffers, so that their order does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Key(u64, u64);

impl Key {
    /// Adds what is known of one buffer.
    pub(super) fn add(&mut self, buffer: u32, est: u64, pending: u64, postponed: bool) {
        let seed = mix(u64::from(buffer) << 1 | u64::from(postponed));
        let a = mix(seed ^ est);
        let a = if pending == 0 { a } else { mix(a ^ !pending) };
        self.0 = self.0.wrapping_add(a);
        self.1 = self.1.wrapping_add(mix(a ^ 0x5851_F42D_4C95_7F2D));
    }
}

/// The finalizer of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014): every bit of the input changes half of the output's.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The states, as a table in which a new one replaces an old one in its place.
#[derive(Debug, Default)]
pub(super) struct Memo {
    entries: Vec<(Key, u64)>,
    stored: usize,
}

impl Memo {
    fn slot(&self, key: Key) -> usize {
        key.0 as usize & (self.entries.len() - 1)
    }

    /// Whether the state is known to fail at `capacity`.
    pub(super) fn fails(&self, key: Key, capacity: u64) -> bool {
        match self.entries.is_empty() {
            true => false,
            false => {
                let (known, at) = self.entries[self.slot(key)];
                known == key && capacity <= at
            }
        }
    }

    /// Notes that the state fails at `capacity`.
    pub(super) fn note(&mut self, key: Key, capacity: u64) {
        if self.stored * 2 >= self.entries.len() && self.entries.len() < MOST {
            let larger = vec![(Key::default(), 0); (self.entries.len() * 4).max(1 << 8)];
            let old = core::mem::replace(&mut self.entries, larger);
            for (key, at) in old.into_iter().filter(|e| e.0 != Key::default()) {
                let slot = self.slot(key);
                self.entries[slot] = (key, at);
            }
        }
        let slot = self.slot(key);
        let entry = &mut self.entries[slot];
        self.stored += usize::from(entry.0 == Key::default());
        let at = if entry.0 == key {
            entry.1.max(capacity)
        } else {
            capacity
        };
        *entry = (key, at);
    }
}
