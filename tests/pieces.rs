//! Tensors of which operators take rows: what the planner says of them, what the checker says, and what the runtime does.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

#[path = "common/build.rs"]
mod build;
#[path = "common/random.rs"]
mod random;

use arenaplan::aliasing::{Level, Promises};
use arenaplan::check::{Layout, Piece, Tag, check};
use arenaplan::execute::Memory;
use arenaplan::graph::{Graph, TensorId};
use arenaplan::interference::{Interference, Rules};
use arenaplan::lifetimes::Lifetimes;
use arenaplan::model::Model;
use arenaplan::plan::{Options, plan};
use arenaplan::scratch::Scratch;
use arenaplan::target::{Library, Target};
use arenaplan::tflm;
use arenaplan_runtime::{Interpreter, ops};
use arenaplan_schema::patch::{Edit, graft};
use arenaplan_schema::tflite::BuiltinOperator as Op;
use arenaplan_solver::{Limits, Planner, solve_above};
use build::Plain;
use random::Random;

/// Rows of 16 bytes: taken, put together, changed and added, at random.
fn rows(random: &mut Random, operators: u64) -> Plain {
    let mut model = Plain::default();
    let shape = |rows: u64| [1, rows as i32, 1, 4];
    let mut known = vec![model.shaped(&shape(random.within(3..=6)))];
    model.inputs.push(known[0]);
    while (model.ops.len() as u64) < operators {
        let recent = &known[known.len().saturating_sub(4)..];
        let x = random.pick(recent);
        let count = model.shapes[x as usize][1] as u64;
        let made = match random.within(0..=6) {
            0..=2 if count > 1 => {
                let size = random.within(1..=count - 1);
                let begin = random.within(0..=count - size) as i32;
                model.slice(x, &[0, begin, 0, 0], &shape(size))
            }
            3 | 4 => {
                let y = random.pick(recent);
                if x == y || count + model.shapes[y as usize][1] as u64 > 7 {
                    continue;
                }
                model.join(&[x, y], 1)
            }
            5 => {
                let same = |&&t: &&i32| t != x && model.shapes[t as usize][1] as u64 == count;
                match recent.iter().find(same) {
                    Some(&y) => model.made(Op::ADD, &[x, y]),
                    None => continue,
                }
            }
            _ => model.made(random.pick(&[Op::ABS, Op::NEG]), &[x]),
        };
        known.push(made);
    }
    // What nobody reads is an output, but for one now and then.
    let is_read = |t: &i32| model.ops.iter().any(|op| op.inputs.contains(t));
    let mut unread: Vec<i32> = known.iter().copied().filter(|t| !is_read(t)).collect();
    if unread.len() > 1 && random.within(0..=2) == 0 {
        unread.remove(0);
    }
    model.outputs = unread;
    model
}

/// The layout of tensors at these offsets.
fn layout(graph: &Graph<'_>, offsets: &[(TensorId, u64)], target: Target) -> Layout {
    let pieces: Vec<_> = offsets
        .iter()
        .map(|&(t, offset)| Piece {
            tag: Tag::Tensor(t),
            offset,
            bytes: graph.tensor(t).bytes,
            align: 16,
        })
        .collect();
    Layout {
        head: pieces.iter().map(|p| p.offset + p.bytes).max().unwrap_or(0),
        pieces,
        libraries: target.libraries(),
        views_only: target == Target::Tflm,
        ..Layout::default()
    }
}

struct Case {
    promises: Promises,
    built: Interference,
}

impl Case {
    fn new(graph: &Graph<'_>, target: Target, scratch: Option<&Scratch>) -> Self {
        let promises = Promises::of(graph, target, |t| graph.tensor(t).is_planned());
        let rules = Rules {
            align: 16,
            online: scratch,
            promises: &promises,
            parts: true,
            ..Rules::tensors_alone()
        };
        let lifetimes = Lifetimes::of(graph).unwrap();
        let built = Interference::build(graph, &lifetimes, rules).unwrap();
        Self { promises, built }
    }

    /// Whether all conflicts hold with the buffers at these offsets.
    fn holds(&self, offsets: &[u64]) -> bool {
        self.built.problem.conflicts().all(|(a, b, c)| {
            let above = offsets[a.index()] as i64 - offsets[b.index()] as i64;
            above <= -c.a_below_b || c.b_below_a <= above
        })
    }

    fn tensors(&self, offsets: &[u64]) -> Vec<(TensorId, u64)> {
        let nodes = self.built.nodes.iter().zip(offsets);
        let all = nodes.flat_map(|(n, offset)| n.tensors().map(move |(t, at)| (t, offset + at)));
        all.collect()
    }

    fn head(&self, offsets: &[u64]) -> u64 {
        let sizes = self.built.problem.buffers().map(|(_, b)| b.size);
        sizes.zip(offsets).map(|(s, o)| s + o).max().unwrap_or(0)
    }

    /// Whether two tensors of different buffers lie by chance as if one was a view of the other.
    fn has_chance_views(&self, tensors: &[(TensorId, u64)]) -> bool {
        let node_of = |t| (self.built.nodes.iter()).position(|n| n.tensors().any(|(x, _)| x == t));
        let at = |t| tensors.iter().find(|(x, _)| *x == t).map(|x| x.1 as i64);
        self.promises.iter().any(|(input, output, promise)| {
            promise.view_at.is_some()
                && promise.view_at == at(input).zip(at(output)).map(|(i, o)| i - o)
                && node_of(input) != node_of(output)
        })
    }
}

/// For any placement of the buffers: the conflicts hold just where the checker finds nothing, if only views are promised and
/// there are pieces; else the checker may know more. No right one is below the bound.
#[test]
fn conflicts_are_what_the_checker_finds() {
    let mut random = Random(11);
    let (mut right, mut wrong, mut met, mut cut) = (0, 0, 0, 0);
    for round in 0..100 {
        let count = random.within(3..=8);
        let bytes = rows(&mut random, count).finish();
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        for target in [Target::Tflm, Target::TflmReference] {
            let case = Case::new(&graph, target, None);
            cut += usize::from(!case.built.pieces.is_empty());
            let nodes = case.built.nodes.len();
            let lines = case.built.bound / 16 + 2;
            for _ in 0..120 {
                let offsets: Vec<u64> = (0..nodes).map(|_| 16 * random.within(0..=lines)).collect();
                let tensors = case.tensors(&offsets);
                if case.has_chance_views(&tensors) {
                    continue;
                }
                let found = check(&graph, &layout(&graph, &tensors, target));
                let holds = case.holds(&offsets);
                let place = format!("{round} {target}: {tensors:?} {found:?}");
                assert!(found.is_empty() || !holds, "{place}");
                if target == Target::Tflm && !case.built.pieces.is_empty() {
                    assert_eq!(found.is_empty(), holds, "{place}");
                }
                if found.is_empty() {
                    right += 1;
                    assert!(case.head(&offsets) >= case.built.bound || !holds, "{place}");
                } else {
                    wrong += 1;
                }
            }
            let best = solve_above(&case.built.problem, Planner::Auto, 0, &Limits::default());
            let best = best.unwrap().placement;
            assert!(case.holds(&best.offsets) && best.height >= case.built.bound);
            met += usize::from(best.height == case.built.bound);
            let tensors = case.tensors(&best.offsets);
            assert_eq!(
                check(&graph, &layout(&graph, &tensors, target)),
                [],
                "{round}"
            );
        }
    }
    println!("{right} right, {wrong} wrong, {met} at the bound, {cut} with pieces");
    assert!(right > 5000 && wrong > 5000 && met > 150 && cut > 120);
}

/// All placements of few buffers below the bound, as the checker judges them.
#[test]
fn nothing_right_is_below_the_bound() {
    let mut random = Random(12);
    let (mut tried, mut models) = (0, 0);
    while models < 60 {
        let count = random.within(3..=6);
        let bytes = rows(&mut random, count).finish();
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let case = Case::new(&graph, Target::Tflm, None);
        let below = case.built.bound / 16 - 1;
        let sizes = case.built.problem.buffers().map(|(_, b)| b.size / 16);
        let places: Vec<u64> = sizes.map(|s| (below + 1).saturating_sub(s)).collect();
        let all: u64 = places.iter().product();
        if case.built.pieces.is_empty() || !(1..=4000).contains(&all) {
            continue;
        }
        models += 1;
        for number in 0..all {
            let mut rest = number;
            let digits = places.iter().map(|p| (rest % p, rest /= p).0 * 16);
            let offsets: Vec<u64> = digits.collect();
            let tensors = case.tensors(&offsets);
            if !case.has_chance_views(&tensors) {
                let found = check(&graph, &layout(&graph, &tensors, Target::Tflm));
                assert_ne!(found, [], "{models}: {tensors:?} {}", case.built.bound);
                tried += 1;
            }
        }
    }
    println!("{tried} layouts");
    assert!(tried > 10_000);
}

/// What the device places itself keeps away from whole tensors: where a solution has room for it, the device finds that.
#[test]
fn scratch_memory_keeps_away_from_dead_bytes() {
    let mut random = Random(13);
    let mut with_pieces = 0;
    for _ in 0..200 {
        let count = random.within(3..=9);
        let bytes = rows(&mut random, count).finish();
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let lifetimes = Lifetimes::of(&graph).unwrap();
        let mut requests = String::new();
        for op in 0..count {
            if random.within(0..=2) == 0 {
                requests += &format!("{op} {}\n", 16 * random.within(1..=3));
            }
        }
        let scratch = Scratch::with_file(Library::Reference, &graph, &requests).unwrap();
        let case = Case::new(&graph, Target::TflmReference, Some(&scratch));
        with_pieces += usize::from(!case.built.pieces.is_empty() && !scratch.is_empty());
        let solution = solve_above(&case.built.problem, Planner::Auto, 0, &Limits::default());
        let placement = solution.unwrap().placement;
        let mut offsets = vec![-1; graph.tensors.len()];
        for (t, offset) in case.tensors(&placement.offsets) {
            offsets[t.index()] = offset as i32;
        }
        let simulated = tflm::simulate(&graph, &lifetimes, &scratch, Some(&offsets)).unwrap();
        assert!(simulated.head <= placement.height, "{offsets:?} {requests}");
        let mut layout = simulated.layout(16, &[]);
        layout.libraries = Target::TflmReference.libraries();
        assert_eq!(check(&graph, &layout), []);
    }
    assert!(with_pieces > 80, "{with_pieces}");
}

/// The plans of all targets are right, by the checker and by the runtime (`plan` asks both), and are what pieces are for.
#[test]
fn plans_take_what_is_free() {
    let mut random = Random(14);
    let mut lower = 0;
    for _ in 0..60 {
        let count = random.within(4..=10);
        let bytes = rows(&mut random, count).finish();
        let head = |target, alias| {
            let options = Options {
                target,
                alias,
                ..Options::default()
            };
            plan(&bytes, &options).unwrap().report.head_bytes
        };
        let none = head(Target::Tflm, Some(Level::None));
        let views = head(Target::Tflm, None);
        assert!(views <= none);
        assert!(head(Target::TflmReference, None) <= views);
        assert!(head(Target::Arenaplan, None) <= views);
        lower += usize::from(views < none);
    }
    assert!(lower > 20, "{lower}");
}

/// The runtime refuses what the checker refuses, and what it lets through computes what the model does without a plan.
#[test]
fn the_runtime_agrees() {
    let mut random = Random(15);
    let (mut both, mut neither, mut strict) = (0, 0, 0);
    for _ in 0..200 {
        let count = random.within(3..=8);
        let bytes = rows(&mut random, count).finish();
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let expected = run(&bytes).unwrap();
        let case = Case::new(&graph, Target::Arenaplan, None);
        let best = solve_above(&case.built.problem, Planner::Auto, 0, &Limits::default());
        let best = best.unwrap().placement.offsets;
        for round in 0..40 {
            // From the best layout, or from anywhere, some elsewhere.
            let lines = case.built.bound / 16 + 2;
            let mut offsets = case.tensors(&best);
            for (_, offset) in &mut offsets {
                if random.within(0..=5) == 0 || round % 4 == 3 {
                    *offset = 16 * random.within(0..=lines);
                }
            }
            let found = check(&graph, &layout(&graph, &offsets, Target::Arenaplan));
            let mut plan = vec![-1; graph.tensors.len()];
            for &(t, offset) in &offsets {
                plan[t.index()] = offset as i32;
            }
            let edit = Edit {
                plan: Some(plan),
                ..Edit::default()
            };
            let file = graft(&bytes, &edit).unwrap();
            match run(&file) {
                Ok(outputs) => {
                    assert_eq!(outputs, expected, "{offsets:?}");
                    assert_eq!(found, [], "{offsets:?}");
                    both += 1;
                }
                Err(_) if found.is_empty() => strict += 1,
                Err(_) => neither += 1,
            }
        }
    }
    println!("{both} right, {neither} wrong, {strict} right, but refused");
    assert!(both > 1000 && neither > 1000 && strict * 20 < both);
}

/// The outputs of two invokes in the runtime, in noise.
fn run(file: &[u8]) -> Result<Vec<Vec<f32>>, arenaplan_runtime::Error> {
    let file = Memory::holding(file);
    let mut arena = Memory::holding(&[0x5a; 1 << 14]);
    let mut found = Interpreter::new(file.as_slice(), ops::ALL, arena.as_mut_slice())?;
    let mut all = Vec::new();
    let mut next = 0.5f32;
    for _ in 0..2 {
        for value in found.input::<f32>(0)? {
            next += 1.25;
            *value = next;
        }
        found.invoke()?;
        for k in 0..found.session().outputs() {
            all.push(found.output::<f32>(k)?.to_vec());
        }
    }
    Ok(all)
}
