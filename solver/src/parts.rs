//! Making problems smaller without losing anything.
//!
//! - [`parts`]: buffers that no chain of conflicts connects do not see each other. Buffers with
//!   fixed offsets connect nothing, since they do not move; each part sees them.
//! - [`peel`] and [`put_back`]: a buffer that fits below the target wherever the others are is left
//!   out and placed last.

use crate::gaps::Gaps;
use crate::instance::{Instance, NONE};

/// The parts of the free buffers that no conflict connects, each with the fixed buffers it
/// conflicts with; the parts with the most bytes first.
pub(crate) fn parts(instance: &Instance) -> Vec<Vec<u32>> {
    let n = instance.len();
    let mut seen = vec![false; n];
    let mut parts: Vec<(u128, Vec<u32>)> = Vec::new();
    for start in (0..n).filter(|&x| instance.is_free(x)) {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let mut members = vec![start as u32];
        let mut next = 0;
        while let Some(&x) = members.get(next) {
            next += 1;
            if !instance.is_free(x as usize) {
                continue;
            }
            for &y in instance.neighbours(x as usize) {
                if !seen[y as usize] {
                    seen[y as usize] = true;
                    members.push(y);
                }
            }
        }
        members.sort_unstable();
        for &x in &members {
            seen[x as usize] = instance.is_free(x as usize); // other parts see the fixed ones too
        }
        let bytes = members
            .iter()
            .map(|&x| u128::from(instance.size[x as usize]))
            .sum();
        parts.push((bytes, members));
    }
    parts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    parts.into_iter().map(|(_, members)| members).collect()
}

/// Splits the buffers into those worth a search and the free ones that fit below `target`
/// wherever the others are, in the order in which they are to be put back.
///
/// A conflict takes at most a certain number of aligned offsets away. If all conflicts of a buffer
/// together take away fewer than there are below the target, one is left; and without that buffer
/// others may become as easy.
pub(crate) fn peel(instance: &Instance, target: u64) -> (Vec<u32>, Vec<u32>) {
    let n = instance.len();
    let taken = |x: usize, below: i64, above: i64| {
        let inside = (below + above - 1).max(0) as u64;
        u128::from(inside.div_ceil(instance.align[x]))
    };
    let mut room: Vec<i128> = (0..n)
        .map(|x| {
            let Some(highest) = target.checked_sub(instance.size[x]) else {
                return i128::MIN / 2; // never, whoever leaves
            };
            let offsets = u128::from(highest / instance.align[x]) + 1;
            let all: u128 = instance.conflicts(x).map(|(_, b, a)| taken(x, b, a)).sum();
            offsets as i128 - all as i128
        })
        .collect();
    let mut easy: Vec<u32> = (0..n as u32)
        .filter(|&x| instance.is_free(x as usize) && room[x as usize] > 0)
        .collect();
    let mut is_easy = vec![false; n];
    for &x in &easy {
        is_easy[x as usize] = true;
    }
    let mut next = 0;
    while let Some(&x) = easy.get(next) {
        next += 1;
        for (y, below, above) in instance.conflicts(x as usize) {
            if is_easy[y] || !instance.is_free(y) {
                continue;
            }
            room[y] += taken(y, above, below) as i128;
            if room[y] > 0 {
                is_easy[y] = true;
                easy.push(y as u32);
            }
        }
    }
    easy.reverse();
    (
        (0..n as u32).filter(|&x| !is_easy[x as usize]).collect(),
        easy,
    )
}

/// The placement of all from that of the core.
pub(crate) fn put_back(
    instance: &Instance,
    core: &[u32],
    easy: &[u32],
    offsets: &[u64],
) -> Vec<u64> {
    let mut whole = vec![NONE; instance.len()];
    for (&x, &offset) in core.iter().zip(offsets) {
        whole[x as usize] = offset;
    }
    let mut gaps = Gaps::default();
    for &x in easy {
        let x = x as usize;
        gaps.collect(instance, x, |y| Some(whole[y]).filter(|&o| o != NONE));
        whole[x] = gaps.first_fit(instance.align[x]);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{self, Shape};
    use crate::greedy;
    use crate::search::{Random, order_of};

    /// Whatever order the core is placed in, the others end at or below the target.
    #[test]
    fn what_is_left_out_fits_below_the_target() {
        let (mut tight, mut left_out) = (0, 0);
        for seed in 0..4000 {
            let shape = Shape {
                buffers: 4 + seed as usize % 5,
                times: 4,
                largest: 4,
                align: if seed % 3 == 0 { 4 } else { 1 },
                fixed_percent: if seed % 4 == 0 { 20 } else { 0 },
                ..Shape::default()
            };
            let problem = generate::overlaps(&shape, seed).unwrap();
            let instance = Instance::new(&problem).unwrap();
            let mut random = Random::new(seed);
            let target = 1 + random.below(24) as u64;
            let (core, easy) = peel(&instance, target);
            left_out += easy.len();
            let inner = instance.part(&core, &mut Vec::new());
            for _ in 0..5 {
                let mut order = order_of(&inner, &vec![0; inner.len()]);
                for i in (1..order.len()).rev() {
                    order.swap(i, random.below(i + 1));
                }
                let offsets = greedy::first_fit(&inner, &order);
                let whole = put_back(&instance, &core, &easy, &offsets);
                for &x in &easy {
                    let top = whole[x as usize] + instance.size[x as usize];
                    assert!(
                        top <= target,
                        "seed {seed}: {x} ends at {top}, above {target}"
                    );
                    tight += usize::from(top == target);
                }
            }
        }
        assert!(
            left_out > 2000 && tight > 100,
            "{left_out} left out, {tight} of them tight"
        );
    }

    #[test]
    fn parts_share_no_conflict_and_miss_no_buffer() {
        for seed in 0..200 {
            let shape = Shape {
                buffers: 20,
                times: 30,
                fixed_percent: 10,
                ..Shape::default()
            };
            let problem = generate::intervals(&shape, seed).unwrap();
            let instance = Instance::new(&problem).unwrap();
            let mut part_of = vec![None; instance.len()];
            for (index, members) in parts(&instance).iter().enumerate() {
                for &x in members.iter().filter(|&&x| instance.is_free(x as usize)) {
                    assert_eq!(part_of[x as usize].replace(index), None, "seed {seed}");
                    for y in instance.neighbours(x as usize) {
                        assert!(members.contains(y), "seed {seed}: {y} is not with {x}");
                    }
                }
            }
            for x in (0..instance.len()).filter(|&x| instance.is_free(x)) {
                assert!(part_of[x].is_some(), "seed {seed}: {x} is in no part");
            }
        }
    }
}
