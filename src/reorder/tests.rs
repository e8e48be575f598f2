//! The search against all orders, and what must stay in order against a second opinion.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;

use super::effects::Precedence;
use super::reach::Reach;
use super::*;
use crate::check;
use crate::graph::Graph;
use crate::model::Model;

/// Random numbers that are the same everywhere (xorshift64*, Vigna 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}

/// Up to `n` operators, each with an output that later ones may read, in shapes that models have: chains, branches,
/// state read early and written late, scratch, outputs that nobody reads.
fn random_task(random: &mut Random, n: u64) -> Task {
    let n = 2 + random.below(n - 1);
    let input = Object {
        bytes: 1 + random.below(9),
        at_start: true,
        at_end: random.below(8) == 0,
    };
    let mut objects = vec![input];
    let mut makers: Vec<Option<u32>> = vec![None];
    let mut steps: Vec<Step> = Vec::new();
    for k in 0..n as u32 {
        let mut step = Step::default();
        for _ in 0..random.below(3) {
            let back = random.below(4.min(objects.len() as u64));
            let read = objects.len() - 1 - back as usize;
            step.touches.push(read as u32);
            step.after.extend(makers[read]);
        }
        if random.below(4) == 0 && k > 0 {
            step.after.push(random.below(k.into()) as u32);
        }
        if random.below(4) == 0 {
            step.extra_bytes = random.below(12);
        }
        for _ in 0..[1, 1, 1, 1, 2, 0][random.below(6) as usize] {
            step.touches.push(objects.len() as u32);
            makers.push(Some(k));
            objects.push(Object {
                bytes: 1 + random.below(9),
                at_start: false,
                at_end: random.below(6) == 0,
            });
        }
        steps.push(step);
    }
    let mut task = Task::new(objects, steps);
    save_some(random, &mut task);
    task
}

/// Lets some operators save bytes of something that they are always the first to touch, over what they may be the last to
/// touch.
fn save_some(random: &mut Random, task: &mut Task) {
    let reach = Reach::of(task);
    for k in 0..task.len() as u32 {
        let others = |o: u32| task.touched_by(o).iter().filter(move |&&other| other != k);
        let touches = task.steps()[k as usize].touches.clone();
        let bytes = |o: u32| task.objects()[o as usize].bytes;
        let begun = touches.iter().copied().filter(|&o| {
            let at_start = task.objects()[o as usize].at_start;
            !at_start && others(o).all(|&other| reach.descendants.has(k, other))
        });
        let Some(y) = begun
            .max_by_key(|&o| bytes(o))
            .filter(|_| random.below(3) > 0)
        else {
            continue;
        };
        let savings = touches.iter().copied().filter(|&x| x != y);
        let savings = savings.map(|x| (x, random.below(bytes(x).min(bytes(y)) + 1)));
        let savings: Vec<_> = savings.collect();
        let most = bytes(y);
        task.save(k, savings, most);
    }
}

/// What an operator saves after those that are done.
fn saved(task: &Task, done: &[bool], k: u32) -> u64 {
    let step = &task.steps()[k as usize];
    let is_last = |o: u32| {
        let mut others = task.touched_by(o).iter().filter(|&&other| other != k);
        !task.objects()[o as usize].at_end && others.all(|&other| done[other as usize])
    };
    let savings = step.savings.iter().filter(|&&(o, _)| is_last(o));
    savings
        .map(|&(_, bytes)| bytes)
        .sum::<u64>()
        .min(step.most_saved)
}

/// The least peak over all orders that are allowed, counted in the plainest way.
fn least_of_all(task: &Task) -> u64 {
    fn alive(task: &Task, done: &[bool], running: Option<u32>) -> u64 {
        let objects = (0u32..).zip(task.objects());
        let alive = objects.filter(|&(o, object)| {
            let by = task.touched_by(o);
            let ran = |k: &u32| done[*k as usize] || Some(*k) == running;
            let open = |k: &u32| !done[*k as usize] || Some(*k) == running;
            let first = running.is_none() && !done.iter().any(|&d| d) && object.at_start;
            first
                || ((object.at_start || by.iter().any(ran))
                    && (object.at_end || by.iter().any(open)))
        });
        alive.map(|(_, object)| object.bytes).sum()
    }
    fn go(task: &Task, done: &mut Vec<bool>, peak: u64, best: &mut u64) {
        if peak >= *best {
            return;
        }
        if done.iter().all(|&d| d) {
            *best = peak;
            return;
        }
        for k in 0..task.len() as u32 {
            let step = &task.steps()[k as usize];
            if done[k as usize] || !step.after.iter().all(|&p| done[p as usize]) {
                continue;
            }
            let level = alive(task, done, Some(k)) + step.extra_bytes - saved(task, done, k);
            done[k as usize] = true;
            go(task, done, peak.max(level), best);
            done[k as usize] = false;
        }
    }
    let mut done = vec![false; task.len()];
    let start = alive(task, &done, None);
    let mut best = u64::MAX;
    go(task, &mut done, start, &mut best);
    best
}

fn inversions(order: &[u32]) -> usize {
    let pairs = |i: usize| order[i + 1..].iter().filter(|&&k| k < order[i]).count();
    (0..order.len()).map(pairs).sum()
}

#[test]
fn no_order_of_a_small_task_is_better() {
    let mut random = Random(7);
    let (mut kept, mut changed) = (0, 0);
    for round in 0..3000 {
        let task = random_task(&mut random, 8);
        let found = search(&task, &mut Budget::default());
        assert!(task.allows(&found.order), "{round}: {task:?}");
        assert_eq!(found.peak, task.peak(&found.order), "{round}: {task:?}");
        assert_eq!(found.peak, least_of_all(&task), "{round}: {task:?}");
        assert!(found.is_proved(), "{round}");
        if task.peak(&task.own_order()) == found.peak {
            assert_eq!(found.order, task.own_order(), "{round}");
            kept += 1;
        } else {
            changed += 1;
        }
    }
    assert!(
        kept > 300 && changed > 300,
        "{kept} kept, {changed} changed"
    );
}

/// Without joining and splitting, and with no beam to begin with.
#[test]
fn the_exact_search_alone_finds_the_least() {
    let mut random = Random(11);
    for round in 0..2000 {
        let task = random_task(&mut random, 8);
        let reach = reach::Reach::of(&task);
        let least = least_of_all(&task);
        assert!(reach::least_peak(&task, &reach) <= least, "{round}");
        let mut budget = Budget::default();
        match exact::best_first(&task, &reach, 0, u64::MAX, &mut budget) {
            exact::Outcome::Least(Some(order)) => {
                assert!(task.allows(&order), "{round}");
                assert_eq!(task.peak(&order), least, "{round}: {task:?}");
            }
            _ => panic!("{round}: no answer"),
        }
        // And nothing below the least.
        match exact::best_first(&task, &reach, 0, least, &mut budget) {
            exact::Outcome::Least(None) => {}
            _ => panic!("{round}: below the least"),
        }
        if let Some(order) = beam::beam(&task, 100, 0, u64::MAX, &mut budget) {
            assert!(task.allows(&order) && task.peak(&order) >= least, "{round}");
        }
    }
}

#[test]
fn joining_and_splitting_lose_nothing() {
    let mut random = Random(13);
    let (mut smaller, mut cuts) = (0, 0);
    for round in 0..2000 {
        let task = random_task(&mut random, 8);
        let joined = parts::Joined::of(&task, &reach::Reach::of(&task));
        assert_eq!(
            least_of_all(&joined.task),
            least_of_all(&task),
            "{round}: {task:?}"
        );
        smaller += usize::from(joined.task.len() < task.len());
        let expanded = joined.expand(&joined.task.own_order());
        assert!(task.allows(&expanded), "{round}: {task:?}");
        assert!(task.peak(&expanded) <= joined.task.peak(&joined.task.own_order()));
        let reach = reach::Reach::of(&task);
        for part in parts::split_at_cuts(&task) {
            // What is alone is before or after each of the others in every order.
            if let [k] = part[..] {
                let mut others = task.own_order().into_iter().filter(|&o| o != k);
                let related = |o| reach.ancestors.has(k, o) || reach.descendants.has(k, o);
                assert!(others.all(related), "{round}: {task:?}");
                cuts += 1;
            }
        }
    }
    assert!(
        smaller > 500 && cuts > 500,
        "{smaller} smaller, {cuts} cuts"
    );
}

#[test]
fn settling_brings_operators_back_without_cost() {
    let mut random = Random(17);
    let mut moved = 0;
    for round in 0..2000 {
        let task = random_task(&mut random, 12);
        // Any order that is allowed.
        let mut order: Vec<u32> = Vec::new();
        while order.len() < task.len() {
            let ready: Vec<u32> = task
                .own_order()
                .into_iter()
                .filter(|k| !order.contains(k))
                .filter(|&k| {
                    task.steps()[k as usize]
                        .after
                        .iter()
                        .all(|p| order.contains(p))
                })
                .collect();
            order.push(ready[random.below(ready.len() as u64) as usize]);
        }
        let limit = task.peak(&order);
        let settled = settle(&task, order.clone(), limit);
        assert!(task.allows(&settled), "{round}");
        assert!(task.peak(&settled) <= limit, "{round}");
        assert!(inversions(&settled) <= inversions(&order), "{round}");
        moved += usize::from(settled != order);
        // With no limit nothing stands in the way.
        assert_eq!(settle(&task, order, u64::MAX), task.own_order(), "{round}");
    }
    assert!(moved > 1000, "{moved}");
}

/// Views: two tensors that are one object are alive together, and writers of different parts of it are free.
#[test]
fn tensors_can_share_an_object() {
    let object = |bytes| Object {
        bytes,
        ..Object::default()
    };
    let step = |touches: &[u32], after: &[u32]| Step {
        touches: touches.to_vec(),
        after: after.to_vec(),
        extra_bytes: 0,
        ..Step::default()
    };
    // Two branches of a large and a small tensor, both ending in one object of 8 bytes, read by the last operator.
    let steps = vec![
        step(&[0], &[]),
        step(&[1], &[]),
        step(&[0, 2], &[0]),
        step(&[1, 2], &[1]),
        step(&[2], &[2, 3]),
    ];
    let task = Task::new(vec![object(100), object(100), object(8)], steps);
    let found = search(&task, &mut Budget::default());
    assert_eq!((task.peak(&task.own_order()), found.peak), (208, 108));
    assert_eq!(found.order, [0, 2, 1, 3, 4]);
}

#[test]
fn without_a_budget_the_order_stays_and_nothing_is_claimed() {
    let mut random = Random(19);
    let mut open = 0;
    for _ in 0..200 {
        let task = random_task(&mut random, 40);
        let found = search(&task, &mut Budget { left: 0 });
        assert!(task.allows(&found.order));
        assert!(found.bound <= search(&task, &mut Budget::default()).peak);
        open += usize::from(!found.is_proved());
    }
    assert!(open > 10, "{open}");
}

/// For each two neighbours of each model: the search lets them change places if and only if the checker, which knows
/// nothing of the search, finds that nothing changes.
#[test]
fn neighbours_may_change_places_where_the_checker_finds_no_difference() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/models");
    let (mut free, mut bound) = (0, 0);
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    for path in paths
        .iter()
        .filter(|p| p.extension().is_some_and(|e| e == "tflite"))
    {
        let bytes = std::fs::read(path).unwrap();
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        if crate::lifetimes::Lifetimes::of(&graph).is_err() {
            continue;
        }
        let mut precedence = Precedence::new(&graph);
        for (s, subgraph) in graph.subgraphs.iter().enumerate() {
            let after = precedence.of(s as u32);
            for (k, after) in after.iter().enumerate().skip(1) {
                let mut orders: Vec<Vec<u32>> = graph
                    .subgraphs
                    .iter()
                    .map(|s| (0..s.operators.len() as u32).collect())
                    .collect();
                orders[s].swap(k - 1, k);
                let swapped = graph.reordered(&orders);
                let differs = !check::order::compare(&graph, &swapped).is_empty();
                let must = after.contains(&(k as u32 - 1));
                let label = subgraph.operators[k].label();
                assert_eq!(must, differs, "{}: {label}", path.display());
                match must {
                    true => bound += 1,
                    false => free += 1,
                }
            }
        }
    }
    assert!(free > 80 && bound > 300, "{free} free, {bound} bound");
}
