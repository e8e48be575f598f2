//! Moving operators back towards their own order where that costs nothing.

use super::task::Task;

/// What is looked at before the order is left as it is.
const WORK: usize = 20_000_000;
/// Rounds over all operators.
const ROUNDS: usize = 8;

/// An order with a peak of at most `limit`, as `order` has, and fewer pairs that are not in the operators' own order.
pub fn settle(task: &Task, order: Vec<u32>, limit: u64) -> Vec<u32> {
    let mut position = vec![0; order.len()];
    for (at, &k) in (0u32..).zip(&order) {
        position[k as usize] = at;
    }
    let mut live = vec![task.start().1];
    live.extend(task.walk(&order).into_iter().map(|(_, after)| after));
    let mut settling = Settling {
        task,
        order,
        position,
        live,
        limit,
        work: 0,
    };
    for _ in 0..ROUNDS {
        let mut moved = false;
        for k in 0..task.len() as u32 {
            moved |= settling.forward(k);
        }
        for k in (0..task.len() as u32).rev() {
            moved |= settling.back(k);
        }
        if !moved || settling.work > WORK {
            break;
        }
    }
    settling.order
}

struct Settling<'t> {
    task: &'t Task,
    order: Vec<u32>,
    /// Where each operator is in `order`.
    position: Vec<u32>,
    /// Bytes alive before each position, and at the end.
    live: Vec<u64>,
    limit: u64,
    work: usize,
}

impl Settling<'_> {
    /// Moves `k` before operators with larger numbers, none of which it waits for, as far as the limit allows.
    fn forward(&mut self, k: u32) -> bool {
        let start = self.position[k as usize] as usize;
        let (mut at, mut best) = (start, start);
        while at > 0 && self.order[at - 1] > k && self.work <= WORK {
            let (level, passed_level) = self.swap(at - 1);
            at -= 1;
            if passed_level > self.limit {
                break;
            }
            if level <= self.limit {
                best = at;
            }
        }
        for at in at..best {
            self.swap(at);
        }
        best < start
    }

    /// Moves `k` behind operators with smaller numbers, none of which waits for it, as far as the limit allows.
    fn back(&mut self, k: u32) -> bool {
        let start = self.position[k as usize] as usize;
        let (mut at, mut best) = (start, start);
        while at + 1 < self.order.len() && self.order[at + 1] < k && self.work <= WORK {
            let (passed_level, level) = self.swap(at);
            at += 1;
            if passed_level > self.limit {
                break;
            }
            if level <= self.limit {
                best = at;
            }
        }
        for at in (best..at).rev() {
            self.swap(at);
        }
        best > start
    }

    /// Swaps the operators at `at` and behind it, and gives the bytes alive at them then.
    fn swap(&mut self, at: usize) -> (u64, u64) {
        self.order.swap(at, at + 1);
        let (first, second) = (self.order[at], self.order[at + 1]);
        self.work += self.task.work(first) + self.task.work(second);
        self.position[first as usize] = at as u32;
        self.position[second as usize] = at as u32 + 1;
        let position = &self.position;
        let before = |at: usize| move |t: u32| (position[t as usize] as usize) < at;
        let (first_level, between) = self.task.step(before(at), self.live[at], first);
        let (second_level, _) = self.task.step(before(at + 1), between, second);
        self.live[at + 1] = between;
        (first_level, second_level)
    }
}
