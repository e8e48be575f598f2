//! Buffers each two of which are in conflict lie in one stack.
//!
//! The least height of a stack over all orders, with alignments, separations and fixed offsets,
//! from sets that grow by one buffer (Held and Karp's scheme for tours, 1962):
//! ```text
//! lowest[set, top] = the lowest offset of `top` above all others of `set`
//!                  = min over the next lower one of: align(lowest[set - top, lower] + distance)
//! ```
//! In each placement the buffers of a stack have such an order: of each two one is the lower one,
//! and a tournament has a path through all.

use core::cmp::Reverse;

use super::orders::Orders;
use crate::instance::Instance;
use crate::pairs::{Order, Pair};

/// Buffers of a stack that are ordered in all ways: 2^12 sets.
const MOST: usize = 12;

/// The conflicts between buffers as a matrix.
pub(crate) struct Stacks<'a> {
    instance: &'a Instance,
    orders: &'a Orders,
    /// The index of a pair for each two buffers, or `u32::MAX`.
    pair_of: Vec<u32>,
}

impl<'a> Stacks<'a> {
    pub(crate) fn new(instance: &'a Instance, orders: &'a Orders) -> Self {
        let n = instance.len();
        let mut pair_of = vec![u32::MAX; n * n];
        let is_order = |pair: &Pair| pair.below >= 0 && pair.above >= 0;
        for (at, pair) in (0..).zip(&orders.pairs).filter(|(_, pair)| is_order(pair)) {
            pair_of[pair.x * n + pair.y] = at;
            pair_of[pair.y * n + pair.x] = at;
        }
        Self {
            instance,
            orders,
            pair_of,
        }
    }

    /// The pair of two buffers one of which is the lower one; one of them if there are several.
    pub(crate) fn pair(&self, x: usize, y: usize) -> Option<usize> {
        let at = self.pair_of[x * self.instance.len() + y];
        (at != u32::MAX).then_some(at as usize)
    }

    /// How far `y` is at least above `x`, if it is above and not known to be below.
    pub(crate) fn distance(&self, x: usize, y: usize) -> Option<u64> {
        let pair = &self.orders.pairs[self.pair(x, y)?];
        let (distance, order) = if pair.x == x {
            (pair.below, Order::Below)
        } else {
            (pair.above, Order::Above)
        };
        (pair.order == Order::Open || pair.order == order).then_some(distance as u64)
    }

    /// A stack for each point in time at which something starts, none part of another one: of
    /// those alive the largest first, each that conflicts with all before it.
    pub(crate) fn all(&self) -> Vec<Vec<usize>> {
        let instance = self.instance;
        let mut by_size: Vec<usize> = (0..instance.len()).collect();
        by_size.sort_by_key(|&x| (Reverse(instance.size[x]), x));
        let mut times = instance.first.clone();
        times.sort_unstable();
        times.dedup();
        let mut stacks: Vec<Vec<usize>> = Vec::new();
        for time in times {
            let mut stack: Vec<usize> = Vec::new();
            for &x in &by_size {
                let alive = instance.first[x] <= time && time <= instance.last[x];
                if alive && stack.iter().all(|&y| self.pair(x, y).is_some()) {
                    stack.push(x);
                }
            }
            let within = |a: &[usize], b: &[usize]| a.iter().all(|x| b.contains(x));
            if stack.len() > 1 && !stacks.iter().any(|other| within(&stack, other)) {
                stacks.retain(|other| !within(other, &stack));
                stacks.push(stack);
            }
        }
        stacks
    }

    /// A height that no placement with the known orders is below, as far as the first buffers of
    /// a stack tell. `None` if they leave no placement.
    pub(crate) fn least_height(&self, stack: &[usize]) -> Option<u64> {
        const NEVER: u64 = u64::MAX;
        let instance = self.instance;
        let stack = &stack[..stack.len().min(MOST)];
        let count = stack.len();
        // The lowest offset at or above `low`.
        let lift = |x: usize, low: u64| {
            let low = low.max(self.orders.least[x] as u64);
            let offset = if instance.is_free(x) {
                low.next_multiple_of(instance.align[x])
            } else {
                low
            };
            if offset <= self.orders.greatest[x] as u64 {
                offset
            } else {
                NEVER
            }
        };
        let mut lowest = vec![NEVER; count << count];
        for (i, &x) in stack.iter().enumerate() {
            lowest[(count << i) + i] = lift(x, 0);
        }
        let distances: Vec<Option<u64>> = stack
            .iter()
            .flat_map(|&x| stack.iter().map(move |&y| self.distance(x, y)))
            .collect();
        for set in 1..1usize << count {
            for top in (0..count).filter(|&top| set >> top & 1 == 1) {
                let offset = lowest[set * count + top];
                if offset == NEVER {
                    continue;
                }
                for next in (0..count).filter(|&next| set >> next & 1 == 0) {
                    if let Some(distance) = distances[top * count + next] {
                        let entry = (set | 1 << next) * count + next;
                        lowest[entry] = lowest[entry].min(lift(stack[next], offset + distance));
                    }
                }
            }
        }
        let whole = &lowest[((1 << count) - 1) * count..];
        let tops = whole
            .iter()
            .zip(stack)
            .filter(|&(&offset, _)| offset != NEVER);
        tops.map(|(offset, &x)| offset + instance.size[x]).min()
    }
}
