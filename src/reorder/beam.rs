//! Beam search over sets of operators that have run: after each operator only the most promising sets are kept.

use std::collections::HashSet;

use super::reach::{has, set};
use super::search::Budget;
use super::sets::{Fingerprints, newly_ready};
use super::task::Task;

/// What is looked at before the beam is made narrower.
const WORK: usize = 30_000_000;

/// A set of operators that have run.
struct State {
    done: Vec<u64>,
    fingerprint: u128,
    ready: Vec<u32>,
    live: u64,
    /// The most bytes so far.
    peak: u64,
    /// Pairs not in the operators' own order.
    inversions: usize,
    /// The last entry of its trail.
    trail: u32,
}

/// A state to be: one more operator after a state.
struct Next {
    peak: u64,
    live: u64,
    inversions: usize,
    from: u32,
    operator: u32,
    fingerprint: u128,
}

/// An order with a peak below `cutoff`, if one is found; peaks up to `floor` are all equally good.
pub(super) fn beam(
    task: &Task,
    width: usize,
    floor: u64,
    cutoff: u64,
    budget: &mut Budget,
) -> Option<Vec<u32>> {
    let n = task.len();
    let marks = Fingerprints::of(n);
    let start = task.start();
    // Who ran, and the entry before it.
    let mut trail: Vec<(u32, u32)> = vec![(u32::MAX, u32::MAX)];
    let mut states = vec![State {
        done: vec![0; n.div_ceil(64)],
        fingerprint: 0,
        ready: task
            .own_order()
            .into_iter()
            .filter(|&k| task.steps()[k as usize].after.is_empty())
            .collect(),
        live: start.1,
        peak: start.0.max(floor),
        inversions: 0,
        trail: 0,
    }];
    let (mut work, mut width) = (0, width);
    for _ in 0..n {
        let mut next: Vec<Next> = Vec::new();
        for (from, state) in (0u32..).zip(&states) {
            let first = next.len();
            for &k in &state.ready {
                work += task.work(k);
                let (level, live) = task.step(|t| has(&state.done, t), state.live, k);
                let peak = state.peak.max(level);
                if peak >= cutoff {
                    continue;
                }
                if peak == state.peak && live <= state.live {
                    // Nothing is lost by running it now.
                    next.truncate(first);
                }
                next.push(Next {
                    peak,
                    live,
                    inversions: state.inversions + earlier_open(&state.done, k),
                    from,
                    operator: k,
                    fingerprint: state.fingerprint ^ marks.of_operator(k),
                });
                if peak == state.peak && live <= state.live {
                    break;
                }
            }
        }
        next.sort_by_key(|s| (s.peak, s.live, s.inversions, s.from, s.operator));
        let mut seen = HashSet::new();
        next.retain(|s| seen.len() < width && seen.insert(s.fingerprint));
        states = next
            .iter()
            .map(|s| follow(task, &states, s, &mut trail))
            .collect();
        if work > WORK {
            width = (width / 4).max(1);
            if !budget.spend(std::mem::take(&mut work)) {
                return None;
            }
        }
    }
    budget.spend(work);
    let mut at = states.first()?.trail;
    let mut order = Vec::with_capacity(n);
    while at != 0 {
        let (before, operator) = trail[at as usize];
        order.push(operator);
        at = before;
    }
    order.reverse();
    Some(order)
}

fn follow(task: &Task, states: &[State], next: &Next, trail: &mut Vec<(u32, u32)>) -> State {
    let from = &states[next.from as usize];
    let mut done = from.done.clone();
    set(&mut done, next.operator);
    let mut ready = from.ready.clone();
    ready.retain(|&k| k != next.operator);
    newly_ready(task, &done, next.operator, &mut ready);
    ready.sort_unstable();
    trail.push((from.trail, next.operator));
    State {
        done,
        fingerprint: next.fingerprint,
        ready,
        live: next.live,
        peak: next.peak,
        inversions: next.inversions,
        trail: trail.len() as u32 - 1,
    }
}

/// How many operators with a smaller number than `k` have not run.
fn earlier_open(done: &[u64], k: u32) -> usize {
    let (whole, rest) = (k as usize / 64, k % 64);
    let below: u32 = done[..whole].iter().map(|w| w.count_ones()).sum();
    let part = (done[whole] & ((1u64 << rest) - 1)).count_ones();
    k as usize - (below + part) as usize
}
