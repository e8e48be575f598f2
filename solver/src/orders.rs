//! The orders in which planners consider buffers. Ties go to the lower index, except where said.

use core::cmp::Reverse;

use crate::greedy;
use crate::instance::Instance;

/// The orders worth a try, TFLM's own first.
pub(crate) fn all(instance: &Instance) -> Vec<Vec<u32>> {
    let size = |x: usize| instance.size[x];
    let span = |x: usize| (i64::from(instance.last[x]) - i64::from(instance.first[x]) + 1) as u64;
    let area = |x: usize| u128::from(size(x)) * u128::from(span(x));
    let first = |x: usize| instance.first[x];
    let last = |x: usize| instance.last[x];
    // The bytes a buffer competes with: its own and those of all it conflicts with.
    let pressure: Vec<u128> = (0..instance.len())
        .map(|x| {
            let others = instance
                .neighbours(x)
                .iter()
                .map(|&y| u128::from(size(y as usize)));
            others.sum::<u128>() + u128::from(size(x))
        })
        .collect();
    let degree = |x: usize| instance.neighbours(x).len();
    vec![
        greedy::order(instance),
        sorted(instance, |x| (Reverse(size(x)), first(x))),
        sorted(instance, |x| (Reverse(size(x)), Reverse(span(x)))),
        sorted(instance, |x| Reverse(area(x))),
        sorted(instance, |x| (Reverse(span(x)), Reverse(size(x)))),
        sorted(instance, |x| (first(x), Reverse(size(x)))),
        sorted(instance, |x| (Reverse(last(x)), Reverse(size(x)))),
        sorted(instance, |x| Reverse(pressure[x])),
        sorted(instance, |x| (Reverse(degree(x)), Reverse(size(x)))),
        sorted(instance, |x| {
            Reverse(pressure[x].saturating_mul(u128::from(size(x))))
        }),
    ]
}

/// The free buffers by ascending key.
fn sorted<K: Ord>(instance: &Instance, key: impl Fn(usize) -> K) -> Vec<u32> {
    let free = (0..instance.len()).filter(|&x| instance.is_free(x));
    let mut order: Vec<u32> = free.map(|x| x as u32).collect();
    order.sort_by_cached_key(|&x| key(x as usize));
    order
}
