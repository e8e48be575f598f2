//! An order of buffers that does not depend on the order in which they were given.
//!
//! Searches break ties by index and at random, so that their result depends on the order of the
//! buffers. In this order, two ways to write down one problem are the same problem.

use crate::instance::Instance;

/// The buffers by lifetime, size, alignment and fixed offset, then by their conflicts: how many
/// and how far, and what these buffers are like. Those that are still equal keep their order; in
/// problems whose conflicts follow from lifetimes, they can be exchanged for each other.
pub(crate) fn order(instance: &Instance) -> Vec<u32> {
    let n = instance.len();
    let own = |x: usize| {
        let times = [instance.first[x], instance.last[x]].map(|t| i64::from(t) as u64);
        let numbers = [instance.size[x], instance.align[x], instance.fixed[x]];
        times.into_iter().chain(numbers).fold(0, stir)
    };
    let mut colour: Vec<u64> = (0..n).map(own).collect();
    // Colour refinement: each round sees one conflict further. Sums do not depend on the order.
    for _ in 0..2 {
        let around = |x: usize| {
            let others = instance.conflicts(x);
            let sum = others.fold(0u64, |sum, (y, below, above)| {
                sum.wrapping_add(stir(stir(colour[y], below as u64), above as u64))
            });
            stir(colour[x], sum)
        };
        colour = (0..n).map(around).collect();
    }
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|&x| {
        let x = x as usize;
        (
            (instance.first[x], instance.last[x]),
            (instance.size[x], instance.align[x], instance.fixed[x]),
            colour[x],
        )
    });
    order
}

/// Mixes a number into a hash, as splitmix64 does.
fn stir(hash: u64, number: u64) -> u64 {
    let mut x =
        hash.wrapping_add(0x9E37_79B9_7F4A_7C15) ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{self, Shape};
    use crate::{BufferId, Problem};

    /// The same problem with its buffers and conflicts in another order.
    fn shuffled(problem: &Problem, seed: u64) -> Problem {
        let buffers: Vec<_> = problem.buffers().map(|(_, b)| *b).collect();
        let (buffers, old) = generate::shuffled(&buffers, seed);
        let mut new = vec![BufferId(0); old.len()];
        for (index, id) in old.iter().enumerate() {
            new[id.index()] = BufferId(index as u32);
        }
        let mut other = Problem::new();
        for buffer in buffers {
            other.add_buffer(buffer);
        }
        let conflicts: Vec<_> = problem.conflicts().collect();
        for (a, b, conflict) in conflicts.into_iter().rev() {
            other
                .add_conflict(new[a.index()], new[b.index()], *conflict)
                .unwrap();
        }
        other
    }

    #[test]
    fn any_order_gives_the_same_instance() {
        let look = |problem: &Problem| {
            let instance = Instance::new(problem).unwrap();
            let instance = instance.ordered(&order(&instance));
            let rows = (0..instance.len()).map(|x| {
                let conflicts: Vec<_> = instance.conflicts(x).collect();
                (
                    instance.size[x],
                    instance.first[x],
                    instance.last[x],
                    instance.fixed[x],
                    conflicts,
                )
            });
            rows.collect::<Vec<_>>()
        };
        for seed in 0..200 {
            let shape = Shape {
                buffers: 30,
                times: 15,
                largest: 100,
                align: if seed % 3 == 0 { 4 } else { 1 },
                fixed_percent: 10,
                ..Shape::default()
            };
            for problem in [
                generate::intervals(&shape, seed).unwrap(),
                generate::overlaps(&shape, seed).unwrap(),
            ] {
                assert_eq!(
                    look(&problem),
                    look(&shuffled(&problem, seed)),
                    "seed {seed}"
                );
            }
        }
    }
}
