//! The problem of ordering operators, without anything of a model in it.

use std::collections::{BTreeMap, BTreeSet};

/// Something that takes bytes from the first operator that touches it to the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Object {
    /// Its size as it counts, rounding included.
    pub bytes: u64,
    /// It is there before the first operator.
    pub at_start: bool,
    /// It must still be there after the last operator.
    pub at_end: bool,
}

/// An operator: what it touches, what must run before it, and what it needs besides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Objects that it reads or writes, sorted, none twice.
    pub touches: Vec<u32>,
    /// Operators that must run before it, sorted, none twice.
    pub after: Vec<u32>,
    /// Bytes that only it needs, while it runs: scratch memory, what happens inside a called subgraph.
    pub extra_bytes: u64,
    /// Objects, each with the bytes that it saves if the operator is the last to touch it: what the operator is always the
    /// first to touch may lie over it.
    pub savings: Vec<(u32, u64)>,
    /// The most that the operator saves, whatever it is the last to touch: at most the bytes that it is always the first to
    /// touch.
    pub most_saved: u64,
}

impl Step {
    /// What is saved by being the last to touch an object.
    fn saving(&self, object: u32) -> u64 {
        let of_it = self.savings.iter().filter(|&&(o, _)| o == object);
        of_it.map(|&(_, bytes)| bytes).sum()
    }

    /// No order saves more than this.
    pub(super) fn possible_saving(&self) -> u64 {
        let all: u64 = self.savings.iter().map(|&(_, bytes)| bytes).sum();
        all.min(self.most_saved)
    }
}

/// Operators to be ordered, numbered in an order that is possible: each comes after those in its `after`.
///
/// Several tensors may be one object (a view and what it views), so that precedence is said apart from objects: two
/// operators that write different parts of one object are free unless one is in the other's `after`.
#[derive(Clone, Debug, Default)]
pub struct Task {
    objects: Vec<Object>,
    steps: Vec<Step>,
    /// For each object, the operators that touch it, sorted.
    touched_by: Vec<Vec<u32>>,
    /// For each operator, those that have it in their `after`, sorted.
    before: Vec<Vec<u32>>,
    /// Bytes alive throughout that are no object.
    base: u64,
    /// For each operator, how much there is to look at to know its level.
    work: Vec<usize>,
}

impl Task {
    /// A task of these objects and operators. Lists are sorted and freed of what is twice in them; an `after` that names
    /// the operator itself or a later one, and a touched object that does not exist, are left out.
    pub fn new(objects: Vec<Object>, mut steps: Vec<Step>) -> Self {
        let mut touched_by = vec![Vec::new(); objects.len()];
        let mut before = vec![Vec::new(); steps.len()];
        for (k, step) in (0u32..).zip(&mut steps) {
            step.after.retain(|&p| p < k);
            step.touches.retain(|&o| (o as usize) < objects.len());
            for list in [&mut step.after, &mut step.touches] {
                list.sort_unstable();
                list.dedup();
            }
            for &o in &step.touches {
                touched_by[o as usize].push(k);
            }
            for &p in &step.after {
                before[p as usize].push(k);
            }
        }
        let work = steps.iter().map(|step| {
            let lists = step.touches.iter().map(|&o| touched_by[o as usize].len());
            1 + lists.sum::<usize>()
        });
        Self {
            work: work.collect(),
            objects,
            steps,
            touched_by,
            before,
            base: 0,
        }
    }

    /// Notes what an operator saves.
    pub(super) fn save(&mut self, k: u32, savings: Vec<(u32, u64)>, most_saved: u64) {
        if let Some(step) = self.steps.get_mut(k as usize) {
            step.savings = savings;
            step.savings.retain(|(o, _)| step.touches.contains(o));
            step.most_saved = most_saved;
        }
    }

    /// How many operators there are.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there is no operator.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The objects.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// The operators.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The operators that touch an object, sorted.
    pub fn touched_by(&self, object: u32) -> &[u32] {
        &self.touched_by[object as usize]
    }

    /// The operators that must run after operator `k`, sorted.
    pub fn before(&self, k: u32) -> &[u32] {
        &self.before[k as usize]
    }

    /// How much [`Task::step`] may have to look at for operator `k`.
    pub(super) fn work(&self, k: u32) -> usize {
        self.work[k as usize]
    }

    /// How often operators touch objects.
    pub(super) fn touches(&self) -> usize {
        self.touched_by.iter().map(Vec::len).sum()
    }

    /// Bytes alive throughout that are no object.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// Bytes alive before the first operator, and those of them that are still alive when it starts.
    pub(super) fn start(&self) -> (u64, u64) {
        let (mut all, mut kept) = (self.base, self.base);
        for (object, touched_by) in self.objects.iter().zip(&self.touched_by) {
            if object.at_start {
                all += object.bytes;
                if object.at_end || !touched_by.is_empty() {
                    kept += object.bytes;
                }
            }
        }
        (all, kept)
    }

    /// Bytes alive while operator `k` runs and after it, when `live` are before it and `is_done` says what ran already.
    pub(super) fn step(&self, is_done: impl Fn(u32) -> bool, live: u64, k: u32) -> (u64, u64) {
        let step = &self.steps[k as usize];
        let (mut taken, mut freed, mut saved) = (0, 0, 0);
        for &o in &step.touches {
            let object = self.objects[o as usize];
            let (mut first, mut last) = (!object.at_start, !object.at_end);
            for &other in &self.touched_by[o as usize] {
                if !first && !last {
                    break;
                }
                if other != k {
                    match is_done(other) {
                        true => first = false,
                        false => last = false,
                    }
                }
            }
            if first {
                taken += object.bytes;
            }
            if last {
                freed += object.bytes;
                saved += step.saving(o);
            }
        }
        (
            (live + taken + step.extra_bytes).saturating_sub(saved.min(step.most_saved)),
            (live + taken).saturating_sub(freed),
        )
    }

    /// Bytes alive at each operator of an order, extra bytes included.
    pub fn levels(&self, order: &[u32]) -> Vec<u64> {
        self.walk(order)
            .into_iter()
            .map(|(level, _)| level)
            .collect()
    }

    /// Bytes alive at each operator of an order, and after it.
    pub(super) fn walk(&self, order: &[u32]) -> Vec<(u64, u64)> {
        let mut live = self.start().1;
        let mut open: Vec<usize> = self.touched_by.iter().map(Vec::len).collect();
        let mut begun: Vec<bool> = self.objects.iter().map(|o| o.at_start).collect();
        let levels = order.iter().map(|&k| {
            let step = &self.steps[k as usize];
            let (mut freed, mut saved) = (0, 0);
            for &o in &step.touches {
                let object = self.objects[o as usize];
                if !std::mem::replace(&mut begun[o as usize], true) {
                    live += object.bytes;
                }
                open[o as usize] = open[o as usize].saturating_sub(1);
                if open[o as usize] == 0 && !object.at_end {
                    freed += object.bytes;
                    saved += step.saving(o);
                }
            }
            let level = (live + step.extra_bytes).saturating_sub(saved.min(step.most_saved));
            live = live.saturating_sub(freed);
            (level, live)
        });
        levels.collect()
    }

    /// The most bytes alive at one time in an order, before the first operator included.
    pub fn peak(&self, order: &[u32]) -> u64 {
        let levels = self.levels(order);
        levels.into_iter().fold(self.start().0, u64::max)
    }

    /// The order in which the operators are numbered.
    pub fn own_order(&self) -> Vec<u32> {
        (0..self.len() as u32).collect()
    }

    /// Whether an order has every operator once, each after those in its `after`.
    pub fn allows(&self, order: &[u32]) -> bool {
        let mut done = vec![false; self.len()];
        let fits = order.iter().all(|&k| {
            let Some(step) = self.steps.get(k as usize) else {
                return false;
            };
            let ready = step.after.iter().all(|&p| done[p as usize]);
            ready && !std::mem::replace(&mut done[k as usize], true)
        });
        fits && order.len() == self.len()
    }

    /// The operators in `members` alone, sorted: of the others, those in `earlier` have run, the rest come later, and
    /// `live` bytes are alive when the first of them starts.
    pub(super) fn part(&self, members: &[u32], earlier: impl Fn(u32) -> bool, live: u64) -> Task {
        let inside = |k: u32| members.binary_search(&k).ok();
        let mut numbers = BTreeMap::new();
        let mut objects = Vec::new();
        let mut base = live;
        let touched = members
            .iter()
            .flat_map(|&k| &self.steps[k as usize].touches);
        for &o in touched.collect::<BTreeSet<_>>() {
            let object = self.objects[o as usize];
            let mut part = object;
            for &k in self.touched_by(o).iter().filter(|&&k| inside(k).is_none()) {
                match earlier(k) {
                    true => part.at_start = true,
                    false => part.at_end = true,
                }
            }
            if part.at_start {
                base = base.saturating_sub(object.bytes);
            }
            numbers.insert(o, objects.len() as u32);
            objects.push(part);
        }
        let steps = members.iter().map(|&k| {
            let step = &self.steps[k as usize];
            let inner = step.after.iter().filter_map(|&p| inside(p));
            Step {
                touches: step.touches.iter().map(|o| numbers[o]).collect(),
                after: inner.map(|i| i as u32).collect(),
                extra_bytes: step.extra_bytes,
                savings: step
                    .savings
                    .iter()
                    .map(|&(o, bytes)| (numbers[&o], bytes))
                    .collect(),
                most_saved: step.most_saved,
            }
        });
        let mut part = Task::new(objects, steps.collect());
        part.base = base;
        part
    }
}
