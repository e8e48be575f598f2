//! Orders that may be taken as in the best known placement, since another placement of the same
//! height has them if any has the other ones:
//! - of buffers that differ in nothing, two can change places;
//! - where only sizes keep buffers apart, the whole placement can be turned upside down.

use core::cmp::Reverse;

use crate::instance::Instance;
use crate::pairs::{Order, Pair};

/// Those of `pairs`, by index, whose order may be taken as in `seed`, with that order.
pub(crate) fn free_choices(
    instance: &Instance,
    pairs: &[Pair],
    seed: &[u64],
) -> Vec<(usize, Order)> {
    let n = instance.len();
    // The conflicts of `z` as a set, in which `x` and `y` look the same.
    let seen = |z: usize, x: usize, y: usize| {
        let blur = |(other, below, above)| {
            let other = if other == x || other == y { n } else { other };
            (other, below, above)
        };
        let mut seen: Vec<(usize, i64, i64)> = instance.conflicts(z).map(blur).collect();
        seen.sort_unstable();
        seen
    };
    let twins = |x: usize, y: usize| {
        let same = |of: &[u64]| of[x] == of[y];
        instance.is_free(x)
            && instance.is_free(y)
            && same(&instance.size)
            && same(&instance.align)
            && instance.neighbours(x).len() == instance.neighbours(y).len()
            && seen(x, x, y) == seen(y, x, y)
    };
    let mut choices = Vec::new();
    let mut has_twin = vec![false; n];
    for (at, pair) in pairs.iter().enumerate() {
        if twins(pair.x, pair.y) {
            choices.push((at, pair.order_in(seed)));
            has_twin[pair.x] = true;
            has_twin[pair.y] = true;
        }
    }
    // Turned over, twins would have to change places again, so neither is part of such a pair.
    let alone = |&(_, pair): &(usize, &Pair)| !has_twin[pair.x] && !has_twin[pair.y];
    // One with many neighbours decides the most.
    let neighbours = |x: usize| instance.neighbours(x).len();
    let weight =
        |&(at, pair): &(usize, &Pair)| (neighbours(pair.x).min(neighbours(pair.y)), Reverse(at));
    let turns = |x: usize| instance.is_free(x) && instance.align[x] == 1;
    if instance.is_plain() && (0..n).all(turns) {
        let pair = pairs.iter().enumerate().filter(alone).max_by_key(weight);
        choices.extend(pair.map(|(at, pair)| (at, pair.order_in(seed))));
    }
    choices
}
