//! Making a task smaller before it is searched, without losing a least order.
//!
//! - An operator that needs no bytes at all and waits for nothing but such operators runs first.
//! - One that only takes memory (a READ_VARIABLE) waits for the first that needs it, where it is known which that is:
//!   the two become one. One that only gives memory back runs at once after the last that it waits for.
//! - An operator to which all others are related, a *cut*, has its place in every order; what lies between two cuts is
//!   ordered by itself.

use std::collections::BTreeSet;

use super::reach::Reach;
use super::task::{Step, Task};

/// A task with operators that run together, and what was in it.
pub(super) struct Joined {
    /// The smaller task.
    pub(super) task: Task,
    /// Operators of the larger task that run before all others, in order.
    first: Vec<u32>,
    /// For each operator of the smaller task, those of the larger, in order.
    groups: Vec<Vec<u32>>,
}

impl Joined {
    /// Joins what can run together in a least order.
    pub(super) fn of(task: &Task, reach: &Reach) -> Self {
        let n = task.len();
        let is_small = |k: u32| task.steps()[k as usize].extra_bytes == 0;
        let mut is_first = vec![false; n];
        for k in 0..n as u32 {
            let step = &task.steps()[k as usize];
            is_first[k as usize] = step.touches.is_empty()
                && is_small(k)
                && step.after.iter().all(|&p| is_first[p as usize]);
        }
        // With which operator each one runs; that one stands for the group in the smaller task.
        let mut with: Vec<u32> = (0..n as u32).collect();
        let mut sources: Vec<Vec<u32>> = vec![Vec::new(); n];
        let mut sinks: Vec<Vec<u32>> = vec![Vec::new(); n];
        for k in (0..n as u32).rev() {
            if is_first[k as usize] || !is_small(k) {
                continue;
            }
            let next: BTreeSet<u32> = task.before(k).iter().map(|&s| with[s as usize]).collect();
            let frees_nothing = task.steps()[k as usize].touches.iter().all(|&o| {
                let by = task.touched_by(o);
                task.objects()[o as usize].at_end
                    || task.before(k).iter().any(|s| by.binary_search(s).is_ok())
            });
            let Some(&host) = next.first().filter(|_| frees_nothing) else {
                continue;
            };
            if next
                .iter()
                .all(|&s| s == host || reach.descendants.has(host, s))
            {
                with[k as usize] = host;
                sources[host as usize].push(k);
            }
        }
        for k in 0..n as u32 {
            let step = &task.steps()[k as usize];
            let hosts_none = sources[k as usize].is_empty();
            if is_first[k as usize] || !is_small(k) || with[k as usize] != k || !hosts_none {
                continue;
            }
            let last: BTreeSet<u32> = step
                .after
                .iter()
                .filter(|&&p| !is_first[p as usize])
                .map(|&p| with[p as usize])
                .collect();
            let takes_nothing = step.touches.iter().all(|&o| {
                let by = task.touched_by(o);
                task.objects()[o as usize].at_start
                    || step.after.iter().any(|p| by.binary_search(p).is_ok())
            });
            let Some(&host) = last.last().filter(|_| takes_nothing) else {
                continue;
            };
            if last
                .iter()
                .all(|&p| p == host || reach.ancestors.has(host, p))
            {
                with[k as usize] = host;
                sinks[host as usize].push(k);
            }
        }
        Self::build(task, &is_first, &with, &sources, &sinks)
    }

    fn build(
        task: &Task,
        is_first: &[bool],
        with: &[u32],
        sources: &[Vec<u32>],
        sinks: &[Vec<u32>],
    ) -> Self {
        let all = 0..task.len() as u32;
        let hosts: Vec<u32> = all
            .clone()
            .filter(|&k| with[k as usize] == k && !is_first[k as usize])
            .collect();
        let mut number = vec![u32::MAX; task.len()];
        for (i, &host) in (0u32..).zip(&hosts) {
            number[host as usize] = i;
        }
        let mut groups = Vec::new();
        let mut steps = Vec::new();
        for &host in &hosts {
            let (before, after) = (&sources[host as usize], &sinks[host as usize]);
            // Sources were found from the last to the first.
            let group = before.iter().rev().chain([&host]).chain(after);
            let group: Vec<u32> = group.copied().collect();
            let mut step = Step {
                extra_bytes: task.steps()[host as usize].extra_bytes,
                most_saved: task.steps()[host as usize].most_saved,
                ..Step::default()
            };
            // What runs right after it and touches the same is the last to do so.
            let is_later = |o: &u32| {
                after
                    .iter()
                    .any(|&k| task.steps()[k as usize].touches.contains(o))
            };
            let savings = task.steps()[host as usize].savings.iter();
            step.savings = savings.filter(|(o, _)| !is_later(o)).copied().collect();
            for &k in &group {
                let part = &task.steps()[k as usize];
                step.touches.extend(&part.touches);
                let outside = part.after.iter().map(|&p| with[p as usize]);
                let outside = outside.filter(|&p| p != host && !is_first[p as usize]);
                step.after.extend(outside.map(|p| number[p as usize]));
            }
            steps.push(step);
            groups.push(group);
        }
        Self {
            task: Task::new(task.objects().to_vec(), steps),
            first: all.filter(|&k| is_first[k as usize]).collect(),
            groups,
        }
    }

    /// The order of the larger task that an order of the smaller one stands for.
    pub(super) fn expand(&self, order: &[u32]) -> Vec<u32> {
        let groups = order.iter().flat_map(|&g| &self.groups[g as usize]);
        self.first.iter().chain(groups).copied().collect()
    }
}

/// The operators between cuts, and the cuts themselves alone, in the order in which they run; each list sorted.
pub(super) fn split_at_cuts(task: &Task) -> Vec<Vec<u32>> {
    let n = task.len();
    let forward = alone(n, |k| &task.steps()[k as usize].after, |k| task.before(k));
    let backward = alone(n, |k| task.before(k), |k| &task.steps()[k as usize].after);
    let mut parts: Vec<Vec<u32>> = Vec::new();
    let mut current = Vec::new();
    for k in 0..n as u32 {
        let (a, b) = (forward[k as usize], backward[k as usize]);
        // What ran before it both ways is everything else, nothing of it twice.
        if a.zip(b).is_some_and(|(a, b)| a + b + 1 == n) {
            if !current.is_empty() {
                parts.push(std::mem::take(&mut current));
            }
            parts.push(vec![k]);
        } else {
            current.push(k);
        }
    }
    if !current.is_empty() {
        parts.push(current);
    }
    parts
}

/// Runs all operators in one order or the other and notes how many ran before each one that is at its turn the only
/// one that could run.
fn alone<'t>(
    n: usize,
    after: impl Fn(u32) -> &'t [u32],
    before: impl Fn(u32) -> &'t [u32],
) -> Vec<Option<usize>> {
    let mut waits: Vec<usize> = (0..n as u32).map(|k| after(k).len()).collect();
    let mut ready: Vec<u32> = (0..n as u32).filter(|&k| waits[k as usize] == 0).collect();
    let mut found = vec![None; n];
    let mut done = 0;
    while let Some(k) = ready.pop() {
        if ready.is_empty() {
            found[k as usize] = Some(done);
        }
        done += 1;
        for &s in before(k) {
            waits[s as usize] -= 1;
            if waits[s as usize] == 0 {
                ready.push(s);
            }
        }
    }
    found
}
