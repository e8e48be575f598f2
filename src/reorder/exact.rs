//! Best-first search over sets of operators that have run, which proves that no order has a lower peak.
//!
//! The key of a set is the least peak with which it is reached, so the first full set taken off the heap is reached by
//! a least order. Bytes alive are a submodular function of the set: where a set can be left by a chain of operators that
//! end with no more alive than before, and no step above the key, following it loses nothing (*closure*). That leaves few
//! sets even for models with hundreds of operators.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use super::reach::{Reach, clear, has, set};
use super::search::Budget;
use super::sets::{Fingerprints, newly_ready};
use super::task::Task;

/// What a search came to.
pub(super) enum Outcome {
    /// An order with the least peak, not below the floor; `None` when nothing is below the cutoff.
    Least(Option<Vec<u32>>),
    /// The limits were hit.
    GivenUp {
        /// No order's peak is below this.
        bound: u64,
    },
}

/// What is looked at before giving up.
const MAX_WORK: usize = 50_000_000;
/// Words of all sets kept, 64 MB.
const MAX_WORDS: usize = 8_000_000;
/// Sets known by their fingerprint, some 80 MB with the heap.
const MAX_REACHED: usize = 1_000_000;

/// A set that has been closed.
struct Node {
    done: Vec<u64>,
    fingerprint: u128,
    count: u32,
    live: u64,
    ready: Vec<u32>,
    /// The set from which it was reached, and the operators in between.
    from: usize,
    way: Vec<u32>,
}

impl Node {
    /// Words of memory that it takes, about.
    fn words(&self) -> usize {
        self.done.len() + (self.ready.len() + self.way.len()) / 2 + size_of::<Self>() / 8
    }
}

/// Looks for the least peak from `floor` up to below `cutoff`.
pub(super) fn best_first(
    task: &Task,
    reach: &Reach,
    floor: u64,
    cutoff: u64,
    budget: &mut Budget,
) -> Outcome {
    let mut search = Search {
        task,
        marks: Fingerprints::of(task.len()),
        work: 0,
        limit: MAX_WORK.min(budget.left),
    };
    let outcome = search.least(reach, floor, cutoff);
    budget.spend(search.work);
    outcome
}

/// The operators from the start to a node.
fn way_to(nodes: &[Node], last: &Node) -> Vec<u32> {
    let mut pieces = vec![&last.way];
    let mut node = last;
    while node.count as usize != node.way.len() {
        node = &nodes[node.from];
        pieces.push(&node.way);
    }
    pieces.into_iter().rev().flatten().copied().collect()
}

/// Whether everything that has run is an ancestor of everything that has not.
fn is_cut(node: &Node, reach: &Reach, n: usize) -> bool {
    node.ready.iter().all(|&k| {
        let row = reach.ancestors.row(k);
        row.iter().map(|w| w.count_ones()).sum::<u32>() == node.count
    }) && (node.count as usize) < n
}

struct Search<'t> {
    task: &'t Task,
    marks: Fingerprints,
    /// What was looked at, and how much of that there may be.
    work: usize,
    limit: usize,
}

impl Search<'_> {
    /// The search itself.
    fn least(&mut self, reach: &Reach, floor: u64, cutoff: u64) -> Outcome {
        let task = self.task;
        let n = task.len();
        let (at_start, live) = task.start();
        let own = task.own_order();
        let is_ready = |k: &u32| task.steps()[*k as usize].after.is_empty();
        let mut first = Node {
            done: vec![0; n.div_ceil(64)],
            fingerprint: 0,
            count: 0,
            live,
            ready: own.into_iter().filter(is_ready).collect(),
            from: 0,
            way: Vec::new(),
        };
        let floor = floor.max(at_start);
        if floor >= cutoff {
            return Outcome::Least(None);
        }
        self.close(&mut first, floor);
        let mut nodes: Vec<Node> = Vec::new();
        // Key, operators that have not run, a number for ties, the node left and the operator that leaves it.
        let mut heap = BinaryHeap::new();
        let mut reached: HashMap<u128, u64> = HashMap::new();
        let mut closed: HashSet<u128> = HashSet::new();
        let (mut ties, mut words) = (0u64, 0);
        let mut key = floor;
        let mut node = Some(first);
        loop {
            if let Some(node) = node.take()
                && closed.insert(node.fingerprint)
            {
                if node.count as usize == n {
                    return Outcome::Least(Some(way_to(&nodes, &node)));
                }
                if is_cut(&node, reach, n) {
                    // Every order comes by here, and this is the least peak with which one does. What was reached before by
                    // a chain that runs past here is reached again.
                    heap.clear();
                    reached.clear();
                    closed.clear();
                    closed.insert(node.fingerprint);
                }
                for &k in &node.ready {
                    let (level, _) = self.step(&node.done, node.live, k);
                    let key = key.max(level);
                    let fingerprint = node.fingerprint ^ self.marks.of_operator(k);
                    let known = reached.get(&fingerprint).copied().unwrap_or(u64::MAX);
                    if key < cutoff && key < known && !closed.contains(&fingerprint) {
                        reached.insert(fingerprint, key);
                        ties += 1;
                        let open = n as u32 - node.count;
                        heap.push(Reverse((key, open, ties, nodes.len(), k)));
                    }
                }
                words += node.words();
                nodes.push(node);
            }
            let Some(Reverse((next_key, _, _, from, k))) = heap.pop() else {
                return Outcome::Least(None);
            };
            key = next_key;
            if self.work > self.limit || words > MAX_WORDS || reached.len() > MAX_REACHED {
                return Outcome::GivenUp { bound: key };
            }
            let before = &nodes[from];
            if closed.contains(&(before.fingerprint ^ self.marks.of_operator(k))) {
                continue;
            }
            let mut next = Node {
                done: before.done.clone(),
                ready: before.ready.clone(),
                way: Vec::new(),
                from,
                ..*before
            };
            self.run(&mut next, k);
            self.close(&mut next, key);
            node = Some(next);
        }
    }

    fn step(&mut self, done: &[u64], live: u64, k: u32) -> (u64, u64) {
        self.work += self.task.work(k);
        self.task.step(|t| has(done, t), live, k)
    }

    /// Runs one operator.
    fn run(&mut self, node: &mut Node, k: u32) {
        node.live = self.step(&node.done, node.live, k).1;
        set(&mut node.done, k);
        node.fingerprint ^= self.marks.of_operator(k);
        node.count += 1;
        node.way.push(k);
        node.ready.retain(|&r| r != k);
        newly_ready(self.task, &node.done, k, &mut node.ready);
        node.ready.sort_unstable();
    }

    /// Follows chains that lose nothing, as long as there are any.
    fn close(&mut self, node: &mut Node, key: u64) {
        while let Some(chain) = self.chain(node, key) {
            for k in chain {
                self.run(node, k);
            }
        }
    }

    /// A ready operator and those that it alone makes ready, up to where no more is alive than now.
    fn chain(&mut self, node: &mut Node, key: u64) -> Option<Vec<u32>> {
        let mut chain = Vec::new();
        let mut opened = Vec::new();
        for i in 0..node.ready.len() {
            chain.clear();
            let (mut k, mut live) = (node.ready[i], node.live);
            let closes = loop {
                let (level, after) = self.step(&node.done, live, k);
                if level > key {
                    break false;
                }
                live = after;
                chain.push(k);
                set(&mut node.done, k);
                if live <= node.live {
                    break true;
                }
                opened.clear();
                newly_ready(self.task, &node.done, k, &mut opened);
                match opened[..] {
                    [only] => k = only,
                    _ => break false,
                }
            };
            for &k in &chain {
                clear(&mut node.done, k);
            }
            if closes {
                return Some(chain);
            }
        }
        None
    }
}
