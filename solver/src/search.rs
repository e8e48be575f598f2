//! Local search over the order in which first fit places buffers.
//!
//! Every placement pushed down as far as it goes is first fit over some order, so the best one is
//! among them. A move gives one buffer another turn. Only what comes later and conflicts, directly
//! or through others, can be placed differently by it, so only that is placed again:
//! ```text
//! turns:  1   2   3   4   5   6        6 moves before 3:  its neighbours from turn 3 on are
//!         a - b - c - d - e - f        placed again, and their later neighbours if they moved
//! ```
//! A move that would end above the current height is given up at the first buffer that does.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::gaps::Gaps;
use crate::instance::{Instance, NONE};

/// A small deterministic generator (xorshift64*; Vigna, "An experimental exploration of
/// Marsaglia's xorshift generators, scrambled", 2016).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

/// The distance of turns at the start, so that moves find room between two.
const SPACING: u64 = 1 << 32;

/// First fit over an order that can be changed.
pub(crate) struct Search<'a> {
    instance: &'a Instance,
    free: Vec<u32>,
    /// The turn of each buffer. Different for buffers in conflict; fixed ones have 0, others more.
    turn: Vec<u64>,
    offsets: Vec<u64>,
    pub(crate) height: u64,
    gaps: Gaps,
    waiting: BinaryHeap<Reverse<(u64, u32)>>,
    is_waiting: Vec<bool>,
    undo: Vec<(u32, u64)>,
    /// Conflicts looked at so far.
    pub(crate) work: u64,
}

impl<'a> Search<'a> {
    pub(crate) fn new(instance: &'a Instance) -> Self {
        let n = instance.len();
        Self {
            instance,
            free: (0..n as u32)
                .filter(|&x| instance.is_free(x as usize))
                .collect(),
            turn: vec![0; n],
            offsets: Vec::new(),
            height: 0,
            gaps: Gaps::default(),
            waiting: BinaryHeap::new(),
            is_waiting: vec![false; n],
            undo: Vec::new(),
            work: 0,
        }
    }

    /// Starts again from an order of all free buffers.
    pub(crate) fn start(&mut self, order: &[u32]) {
        for (index, &x) in order.iter().enumerate() {
            self.turn[x as usize] = (index as u64 + 1) * SPACING;
        }
        self.offsets = crate::greedy::first_fit(self.instance, order);
        self.height = self.instance.height(&self.offsets);
        self.work += (self.instance.len() + self.instance.entries()) as u64;
    }

    pub(crate) fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// The free buffers by turn.
    pub(crate) fn order(&self) -> Vec<u32> {
        let mut order = self.free.clone();
        order.sort_unstable_by_key(|&x| (self.turn[x as usize], x));
        order
    }

    fn top(&self, x: usize) -> u64 {
        self.offsets[x] + self.instance.size[x]
    }

    fn wait(&mut self, x: usize) {
        if !self.is_waiting[x] {
            self.is_waiting[x] = true;
            self.waiting.push(Reverse((self.turn[x], x as u32)));
        }
    }

    /// Places again what is waiting, and what follows from it. False, and nothing is changed, if
    /// something would end above `limit`.
    fn settle(&mut self, limit: u64) -> bool {
        self.undo.clear();
        let mut fits = true;
        while let Some(Reverse((turn, x))) = self.waiting.pop() {
            let x = x as usize;
            self.is_waiting[x] = false;
            if !fits {
                continue; // empty the heap
            }
            let (turns, offsets) = (&self.turn, &self.offsets);
            self.gaps.collect(self.instance, x, |y| {
                Some(offsets[y]).filter(|_| turns[y] < turn)
            });
            let offset = self.gaps.first_fit(self.instance.align[x]);
            self.work += 1 + self.instance.neighbours(x).len() as u64;
            if offset == self.offsets[x] {
                continue;
            }
            if offset + self.instance.size[x] > limit {
                fits = false;
                continue;
            }
            self.undo.push((x as u32, self.offsets[x]));
            self.offsets[x] = offset;
            for &y in self.instance.neighbours(x) {
                if self.turn[y as usize] > turn {
                    self.wait(y as usize);
                }
            }
        }
        if !fits {
            while let Some((x, offset)) = self.undo.pop() {
                self.offsets[x as usize] = offset;
            }
        }
        fits
    }

    /// Gives `x` the turn right before `y`, one of its neighbours, as far as other neighbours of
    /// `x` are concerned.
    fn turn_before(&mut self, x: usize, y: usize) -> u64 {
        loop {
            let limit = self.turn[y];
            let turns = self
                .instance
                .neighbours(x)
                .iter()
                .map(|&z| self.turn[z as usize]);
            let before = turns.filter(|&t| t < limit).max().unwrap_or(0);
            if limit - before >= 2 {
                return before + (limit - before) / 2;
            }
            // No room between the two: number all turns anew.
            for (index, x) in self.order().into_iter().enumerate() {
                self.turn[x as usize] = (index as u64 + 1) * SPACING;
            }
        }
    }

    /// Moves `x` to a turn, unless it ends above `limit`.
    fn try_turn(&mut self, x: usize, turn: u64, limit: u64) -> bool {
        let old = self.turn[x];
        let from = old.min(turn);
        let until = old.max(turn);
        self.turn[x] = turn;
        self.wait(x);
        for &y in self.instance.neighbours(x) {
            let t = self.turn[y as usize];
            if t > from && t < until {
                self.wait(y as usize);
            }
        }
        let fits = self.settle(limit);
        if !fits {
            self.turn[x] = old;
        }
        fits
    }

    /// Tries moves until `target` is reached, `moves` were tried or `work` conflicts looked at. A
    /// move that does not end higher is kept, also if it gains nothing: most gains need several
    /// moves. Gives the number of moves tried.
    pub(crate) fn run(&mut self, random: &mut Random, target: u64, moves: u64, work: u64) -> u64 {
        let work = self.work.saturating_add(work);
        let mut tops: Vec<u32> = Vec::new();
        let mut tried = 0;
        while self.height > target && tried < moves && self.work < work {
            if tops.is_empty() {
                let at_top = |&x: &u32| self.top(x as usize) == self.height;
                tops.extend(self.free.iter().copied().filter(at_top));
                self.work += self.free.len() as u64 / 4;
            }
            tried += 1;
            let Some(&top) = tops.get(random.below(tops.len().max(1))) else {
                break; // a fixed buffer makes the height
            };
            let x = self.choose(random, top as usize);
            let neighbours = self.instance.neighbours(x);
            let Some(&y) = neighbours.get(random.below(neighbours.len().max(1))) else {
                continue;
            };
            if !self.instance.is_free(y as usize) {
                continue;
            }
            let turn = self.turn_before(x, y as usize);
            if self.try_turn(x, turn, self.height) && !self.undo.is_empty() {
                tops.clear();
                self.height = self.instance.height(&self.offsets);
            }
        }
        tried
    }

    /// A buffer whose turn may matter to one at the top: itself, or one a few conflicts away.
    fn choose(&self, random: &mut Random, top: usize) -> usize {
        let mut x = top;
        if random.below(4) > 0 {
            for _ in 0..=random.below(4) {
                let neighbours = self.instance.neighbours(x);
                let Some(&y) = neighbours.get(random.below(neighbours.len().max(1))) else {
                    break;
                };
                if self.instance.is_free(y as usize) {
                    x = y as usize;
                }
            }
        }
        x
    }
}

/// An order for which first fit is at most as high as the placement: by offset.
pub(crate) fn order_of(instance: &Instance, offsets: &[u64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..instance.len() as u32)
        .filter(|&x| instance.is_free(x as usize))
        .collect();
    order.sort_by_key(|&x| offsets[x as usize]);
    debug_assert!(order.iter().all(|&x| offsets[x as usize] != NONE));
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{self, Shape};
    use crate::greedy::first_fit;

    /// What is placed again after each move must be what a placement from scratch gives.
    #[test]
    fn moves_equal_placing_from_scratch() {
        let mut moved = 0;
        for seed in 0..200 {
            let shape = Shape {
                buffers: 20,
                times: 10,
                align: if seed % 2 == 0 { 1 } else { 4 },
                fixed_percent: if seed % 3 == 0 { 15 } else { 0 },
                ..Shape::default()
            };
            let problem = generate::overlaps(&shape, seed).unwrap();
            let instance = Instance::new(&problem).unwrap();
            let mut search = Search::new(&instance);
            search.start(&crate::greedy::order(&instance));
            let mut random = Random::new(seed);
            for _ in 0..20 {
                let before = search.offsets().to_vec();
                search.run(&mut random, 0, 5, u64::MAX);
                assert_eq!(
                    first_fit(&instance, &search.order()),
                    search.offsets(),
                    "seed {seed}"
                );
                assert_eq!(
                    instance.height(search.offsets()),
                    search.height,
                    "seed {seed}"
                );
                moved += usize::from(before != search.offsets());
            }
        }
        assert!(moved > 400, "only {moved} rounds moved anything");
    }

    #[test]
    fn turns_are_numbered_anew_when_there_is_no_room() {
        let problem = generate::all_at_once(4, 1).unwrap();
        let instance = Instance::new(&problem).unwrap();
        let mut search = Search::new(&instance);
        search.start(&[0, 1, 2, 3]);
        // 3 and 2 in turn right before the other: halves the room each time.
        for round in 0..100 {
            let (x, y) = if round % 2 == 0 { (3, 2) } else { (2, 3) };
            let turn = search.turn_before(x, y);
            search.try_turn(x, turn, u64::MAX);
            let last = if round % 2 == 0 { [3, 2] } else { [2, 3] };
            assert_eq!(
                search.order(),
                [&[0, 1], &last[..]].concat(),
                "round {round}"
            );
            assert_eq!(first_fit(&instance, &search.order()), search.offsets());
        }
    }
}
