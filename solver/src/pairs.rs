//! Pairs of buffers in conflict, and which one of a pair is the lower one.

use crate::instance::{Instance, NONE, gcd};

/// Which one of a pair is the lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Open,
    /// `x` of the pair.
    Below,
    /// `y` of the pair.
    Above,
}

/// A conflict, of which at least one side is free.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) x: usize,
    pub(crate) y: usize,
    /// How far `y` is at least above `x` if `x` is the lower one, and the other way round: the
    /// separations, rounded up to what both offsets are multiples of.
    pub(crate) below: i64,
    pub(crate) above: i64,
    pub(crate) order: Order,
}

impl Pair {
    /// The lower one, the upper one, and their least distance.
    pub(crate) fn ends(&self, order: Order) -> (usize, usize, i64) {
        match order {
            Order::Above => (self.y, self.x, self.above),
            _ => (self.x, self.y, self.below),
        }
    }

    /// The order in a placement that keeps the conflict.
    pub(crate) fn order_in(&self, offsets: &[u64]) -> Order {
        if offsets[self.x] as i64 + self.below <= offsets[self.y] as i64 {
            Order::Below
        } else {
            Order::Above
        }
    }
}

/// A number that each possible offset of `x` is a multiple of; 0 if it is fixed at 0.
fn grid(instance: &Instance, x: usize) -> u64 {
    match instance.fixed[x] {
        NONE => instance.align[x],
        offset => offset,
    }
}

/// The least multiple of `step` that is not below `value`.
pub(crate) fn up(value: i64, step: i64) -> i64 {
    value + (-value).rem_euclid(step)
}

/// All conflicts that a planner can decide, open, in an order that depends on the problem only.
pub(crate) fn pairs(instance: &Instance) -> Vec<Pair> {
    let mut pairs = Vec::with_capacity(instance.entries() / 2);
    for x in 0..instance.len() {
        for (y, below, above) in instance.conflicts(x) {
            // Fixed ones agree already; a range without an integer inside forbids nothing.
            let free = instance.is_free(x) || instance.is_free(y);
            if x < y && free && below + above > 1 {
                let step = gcd(grid(instance, x), grid(instance, y)).max(1) as i64;
                pairs.push(Pair {
                    x,
                    y,
                    below: up(below, step),
                    above: up(above, step),
                    order: Order::Open,
                });
            }
        }
    }
    pairs
}
