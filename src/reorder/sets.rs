//! Sets of operators that have run: what can run next, and how to tell two of them apart.

use super::reach::has;
use super::task::Task;

/// A random number for each operator; that of a set is the exclusive or of its members' (Zobrist's hashing). With 128
/// bits two different sets are never seen to have the same one.
pub(super) struct Fingerprints(Vec<u128>);

impl Fingerprints {
    pub(super) fn of(n: usize) -> Self {
        let mut seed = 0u64;
        // SplitMix64 (Steele, Lea and Flood 2014), the same on every machine.
        let mut next = || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            u128::from(z ^ (z >> 31))
        };
        Self((0..n).map(|_| next() << 64 | next()).collect())
    }

    pub(super) fn of_operator(&self, k: u32) -> u128 {
        self.0[k as usize]
    }
}

/// Adds to `ready` what can run now that `k` has, which is in `done` already.
pub(super) fn newly_ready(task: &Task, done: &[u64], k: u32, ready: &mut Vec<u32>) {
    for &s in task.before(k) {
        let after = &task.steps()[s as usize].after;
        if after.iter().all(|&p| has(done, p)) {
            ready.push(s);
        }
    }
}
