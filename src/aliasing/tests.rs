use arenaplan_schema::tflite::BuiltinOperator;
use arenaplan_solver::{Limits, Planner, solve_above};

use super::*;
use crate::interference::{Interference, Node, Rules};
use crate::model::Model;
use crate::target::Target;

#[path = "../../tests/common/build.rs"]
mod build;

use build::Plain;

fn id(t: i32) -> TensorId {
    TensorId(t as u32)
}

/// A promise of a view alone.
fn view(graph: &Graph<'_>, input: i32, output: i32, at: i64) -> (TensorId, TensorId, Overlap) {
    let promise = Overlap {
        view_at: Some(at),
        ..nothing(graph, id(input), id(output))
    };
    (id(input), id(output), promise)
}

fn overlap(
    graph: &Graph<'_>,
    input: i32,
    output: i32,
    distance: u64,
) -> (TensorId, TensorId, Overlap) {
    let promise = Overlap {
        input_above_output: distance,
        ..nothing(graph, id(input), id(output))
    };
    (id(input), id(output), promise)
}

/// The interference graph with these promises.
fn built(
    graph: &Graph<'_>,
    promises: impl IntoIterator<Item = (TensorId, TensorId, Overlap)>,
) -> Interference {
    let lifetimes = Lifetimes::of(graph).unwrap();
    let promises: Promises = promises.into_iter().collect();
    let rules = Rules {
        align: 16,
        promises: &promises,
        parts: true,
        ..Rules::tensors_alone()
    };
    Interference::build(graph, &lifetimes, rules).unwrap()
}

/// The blocks of more than one tensor, as (tensor, offset).
fn blocks(built: &Interference) -> Vec<Vec<(u32, u64)>> {
    let merged = built.nodes.iter().filter(|n| matches!(n, Node::Merged(_)));
    merged
        .map(|n| n.tensors().map(|(t, at)| (t.0, at)).collect())
        .collect()
}

/// Two halves made by ADD, joined, and read. Shapes are in floats: 16 are 64 bytes.
fn halves(first: i32, second: i32) -> (Plain, [i32; 5]) {
    let mut plain = Plain::default();
    let x = plain.tensor(first);
    let a = plain.tensor(first);
    let b = plain.tensor(second);
    let joined = plain.tensor(first + second);
    let y = plain.tensor(first + second);
    plain.inputs = vec![x];
    plain.outputs = vec![y];
    plain.op(BuiltinOperator::ABS, &[x], &[a]);
    plain.op(BuiltinOperator::PAD, &[a], &[b]);
    plain.op(BuiltinOperator::CONCATENATION, &[a, b], &[joined]);
    plain.op(BuiltinOperator::ABS, &[joined], &[y]);
    (plain, [x, a, b, joined, y])
}

#[test]
fn inputs_of_a_concatenation_get_their_slots() {
    let (plain, [x, a, b, joined, y]) = halves(16, 32);
    let bytes = plain.finish();
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let views = [view(&graph, a, joined, 0), view(&graph, b, joined, 64)];
    let built = built(&graph, views);
    let expected = vec![(a as u32, 0), (b as u32, 64), (joined as u32, 0)];
    assert_eq!(blocks(&built), [expected]);
    assert_eq!(built.nodes.len(), 3, "{x} and {y} are alone");
    // 192 bytes joined and as many behind; apart it would be the same at the end and more before.
    assert_eq!(built.bound, 384);
    // While only `a` is alive, `x` may lie where `b` will be: next to the block it would need 64 more.
    let solution = solve_above(
        &built.problem,
        Planner::Auto,
        built.bound,
        &Limits::default(),
    )
    .unwrap();
    assert_eq!(solution.placement.height, 384);
}

#[test]
fn a_slot_that_is_not_aligned_stays_a_copy() {
    let (plain, [_, a, b, joined, _]) = halves(6, 16);
    let bytes = plain.finish();
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let views = [view(&graph, a, joined, 0), view(&graph, b, joined, 24)];
    let built = built(&graph, views);
    assert_eq!(blocks(&built), [vec![(a as u32, 0), (joined as u32, 0)]]);
}

#[test]
fn a_tensor_in_two_concatenations_is_in_the_slot_of_one() {
    let (mut plain, [_, a, b, joined, y]) = halves(16, 16);
    let c = plain.tensor(16);
    let second = plain.tensor(32);
    let z = plain.tensor(32);
    plain.op(BuiltinOperator::ABS, &[b], &[c]);
    plain.op(BuiltinOperator::CONCATENATION, &[a, c], &[second]);
    plain.op(BuiltinOperator::ADD, &[second, joined], &[z]);
    plain.outputs = vec![y, z];
    let bytes = plain.finish();
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let views = [
        view(&graph, a, joined, 0),
        view(&graph, b, joined, 64),
        view(&graph, a, second, 0),
        view(&graph, c, second, 64),
    ];
    let built = built(&graph, views);
    // `joined` and `second` are alive at once and differ behind `a`.
    let first = vec![(a as u32, 0), (b as u32, 64), (joined as u32, 0)];
    assert_eq!(
        blocks(&built),
        [first, vec![(c as u32, 64), (second as u32, 0)]]
    );
}

#[test]
fn reshapes_of_reshapes_are_one_block() {
    let mut plain = Plain::default();
    let t: Vec<i32> = (0..5).map(|_| plain.tensor(32)).collect();
    plain.inputs = vec![t[0]];
    plain.outputs = vec![t[4]];
    plain.op(BuiltinOperator::ABS, &[t[0]], &[t[1]]);
    plain.op(BuiltinOperator::RESHAPE, &[t[1]], &[t[2]]);
    plain.op(BuiltinOperator::SQUEEZE, &[t[2]], &[t[3]]);
    plain.op(BuiltinOperator::ADD, &[t[1], t[3]], &[t[4]]);
    let bytes = plain.finish();
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let views = [view(&graph, t[1], t[2], 0), view(&graph, t[2], t[3], 0)];
    let built = built(&graph, views);
    assert_eq!(blocks(&built), [vec![(1, 0), (2, 0), (3, 0)]]);
    assert_eq!(built.bound, 256);
}

/// `source` is split, its first half joined with something new that is made while `source` is still alive: the new half
/// would lie on the second half of `source`.
#[test]
fn a_chain_of_views_does_not_hide_what_is_overwritten() {
    for source_is_read_later in [false, true] {
        let mut plain = Plain::default();
        let [x, source, first, second, new, joined, y] =
            [32, 32, 16, 16, 16, 32, 32].map(|n| plain.tensor(n));
        plain.inputs = vec![x];
        plain.outputs = vec![y, second];
        plain.op(BuiltinOperator::ABS, &[x], &[source]);
        plain.op(BuiltinOperator::SPLIT, &[source], &[first, second]);
        plain.op(BuiltinOperator::ABS, &[first], &[new]);
        plain.op(BuiltinOperator::CONCATENATION, &[first, new], &[joined]);
        let other = if source_is_read_later { source } else { x };
        plain.op(BuiltinOperator::ADD, &[joined, other], &[y]);
        let bytes = plain.finish();
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let views = [
            view(&graph, source, first, 0),
            view(&graph, first, joined, 0),
            view(&graph, new, joined, 64),
        ];
        let merged = blocks(&built(&graph, views));
        let with_source = merged
            .iter()
            .find(|b| b.contains(&(source as u32, 0)))
            .unwrap();
        assert_eq!(
            with_source.iter().any(|&(t, _)| t == joined as u32),
            !source_is_read_later,
            "{merged:?}"
        );
    }
}

/// Operators that write a tensor again leave a copy of what it was.
#[test]
fn a_tensor_that_is_written_twice_has_no_views() {
    for (written, is_merged) in [(3, true), (0, false), (1, false)] {
        let mut plain = Plain::default();
        let [x, a, copy, other, y] = [32; 5].map(|n| plain.tensor(n));
        plain.inputs = vec![x];
        plain.outputs = vec![y];
        plain.op(BuiltinOperator::ABS, &[x], &[a]);
        let source = if written == 0 { x } else { a };
        plain.op(BuiltinOperator::RESHAPE, &[source], &[copy]);
        let again = [x, a, copy, other][written];
        plain.op(BuiltinOperator::NEG, &[a], &[again]);
        plain.op(BuiltinOperator::ADD, &[copy, again], &[y]);
        let bytes = plain.finish();
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let merged = blocks(&built(&graph, [view(&graph, source, copy, 0)]));
        assert_eq!(!merged.is_empty(), is_merged, "{written}: {merged:?}");
    }
}

#[test]
fn an_input_that_is_needed_later_is_not_overlapped() {
    let mut plain = Plain::default();
    let [x, a, y, z] = [64, 64, 64, 64].map(|n| plain.tensor(n));
    plain.inputs = vec![x];
    plain.op(BuiltinOperator::ABS, &[x], &[a]);
    plain.op(BuiltinOperator::ABS, &[a], &[y]);
    plain.op(BuiltinOperator::ADD, &[y, y], &[z]);
    // (graph outputs, bytes needed): the last operator's input may itself be an output of the graph.
    for (outputs, expected) in [(vec![z], 256), (vec![z, a], 512), (vec![z, y], 512)] {
        plain.outputs = outputs;
        let bytes = plain.finish();
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let in_place = [
            overlap(&graph, x, a, 0),
            overlap(&graph, a, y, 0),
            overlap(&graph, y, z, 0),
        ];
        let built = built(&graph, in_place);
        assert_eq!(built.bound, expected, "{:?}", plain.outputs);
        let solution = solve_above(&built.problem, Planner::Auto, 0, &Limits::default()).unwrap();
        assert_eq!(solution.placement.height, expected, "{:?}", plain.outputs);
    }
}

/// Rows of 16 bytes: x has 6, of which 0..4 are taken, made into `a`, then 2..5, made into `b`; nobody reads row 5.
fn stripes(also_whole: bool, is_output: bool) -> (Plain, [i32; 6]) {
    let mut plain = Plain::default();
    let i = plain.shaped(&[1, 6, 1, 4]);
    let x = plain.made(BuiltinOperator::ABS, &[i]);
    let first = plain.slice(x, &[0, 0, 0, 0], &[1, 4, 1, 4]);
    let a = plain.made(BuiltinOperator::ABS, &[first]);
    let second = plain.slice(x, &[0, 2, 0, 0], &[1, 3, 1, 4]);
    let b = plain.made(BuiltinOperator::ABS, &[second]);
    let joined = plain.join(&[a, b], 1);
    if also_whole {
        let whole = plain.made(BuiltinOperator::ABS, &[x]);
        plain.outputs.push(whole);
    }
    plain.inputs = vec![i];
    plain.outputs.push(joined);
    plain.outputs.extend(is_output.then_some(x));
    (plain, [x, first, a, second, b, joined])
}

#[test]
fn rows_live_until_they_are_taken() {
    for (also_whole, is_output) in [(false, false), (true, false), (false, true)] {
        let (plain, [x, ..]) = stripes(also_whole, is_output);
        let bytes = plain.finish();
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let lifetimes = Lifetimes::of(&graph).unwrap();
        let all = Promises::of(&graph, Target::Tflm, |_| true);
        let pieces = |promises: &Promises, keep: &[TensorId]| {
            let rules = Rules {
                align: 16,
                promises,
                keep,
                parts: true,
                ..Rules::tensors_alone()
            };
            let built = Interference::build(&graph, &lifetimes, rules).unwrap();
            let of_x = built.pieces.iter().filter(|p| p.0 == id(x));
            let of_x = of_x.flat_map(|p| &p.1);
            of_x.map(|p| (p.at / 16, p.end() / 16, p.span.first, p.span.last))
                .collect::<Vec<_>>()
        };
        // ABS is 1, the first SLICE 2, the second 4; row 5 is written and that is all.
        let expected = match also_whole || is_output {
            false => vec![(0, 2, 1, 2), (2, 5, 1, 4), (5, 6, 1, 1)],
            true => vec![],
        };
        assert_eq!(pieces(&all, &[]), expected);
        assert_eq!(pieces(&all, &[id(x)]), [], "kept");
        assert_eq!(pieces(&all.up_to(Level::Views, &graph), &[]), expected);
        assert_eq!(pieces(&all.up_to(Level::None, &graph), &[]), []);
        assert_eq!(
            pieces(&Promises::of(&graph, Target::Tflm, |t| t != id(x)), &[]),
            []
        );
    }
}

#[test]
fn buffers_lie_in_what_is_free_of_others() {
    let (plain, [x, first, a, second, b, joined]) = stripes(false, false);
    let bytes = plain.finish();
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let lifetimes = Lifetimes::of(&graph).unwrap();
    let promises = Promises::of(&graph, Target::Tflm, |_| true);
    let rules = Rules {
        align: 16,
        promises: &promises,
        parts: true,
        ..Rules::tensors_alone()
    };
    let built = Interference::build(&graph, &lifetimes, rules).unwrap();
    let of = |t: i32, rows: u64| (t as u32, rows * 16);
    let expected = [
        vec![of(x, 0), of(first, 0), of(second, 2)],
        vec![of(a, 0), of(b, 4), of(joined, 0)],
    ];
    assert_eq!(blocks(&built), expected);
    // At the first operator the input and x, 6 rows each; at the last 7 and nothing else; while `b` is made, 3 rows are
    // read, 4 wait and 3 are written.
    assert_eq!(built.bound, 12 * 16);
    let node = |t: i32| {
        let mut nodes = built.nodes.iter();
        nodes
            .position(|n| n.tensors().any(|(x, _)| x == id(t)))
            .unwrap() as u32
    };
    let found = built.problem.conflicts().find_map(|(p, q, c)| {
        let (below, above) = (-c.a_below_b / 16, c.b_below_a / 16);
        match (p.0 == node(x), q.0 == node(joined)) {
            (true, true) => Some((below, above)),
            _ if p.0 == node(joined) && q.0 == node(x) => Some((-above, -below)),
            _ => None,
        }
    });
    // Offset of x less that of joined, in rows: `a` (rows 0..4) clears rows 0..5 of x while it is made, and rows 2..5 after;
    // `b` (rows 4..7) clears rows 2..5.
    assert_eq!(found, Some((-5, 5)));
}

#[test]
fn intervals_join_where_nothing_fits_between() {
    let joined = |intervals: &[(i64, i64)], step| conflicts::joined(intervals.to_vec(), step);
    assert_eq!(joined(&[(0, 16), (16, 32)], 16), [(0, 16), (16, 32)]);
    assert_eq!(joined(&[(8, 24), (0, 15)], 16), [(0, 24)]);
    assert_eq!(joined(&[(0, 15), (17, 40)], 16), [(0, 15), (17, 40)]);
    assert_eq!(joined(&[(0, 17), (31, 40)], 16), [(0, 40)]);
    assert_eq!(joined(&[(-40, -17), (-15, 3)], 16), [(-40, -17), (-15, 3)]);
    assert_eq!(joined(&[(-40, -15), (-1, 3)], 16), [(-40, 3)]);
    assert_eq!(joined(&[(0, 10), (2, 5)], 1), [(0, 10)]);
    assert_eq!(joined(&[(0, 10), (10, 12)], 1), [(0, 10), (10, 12)]);
}

#[test]
fn levels_take_less_and_less() {
    let (plain, [x, a, b, joined, y]) = halves(16, 16);
    let bytes = plain.finish();
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let all: Promises = [
        overlap(&graph, x, a, 0),
        view(&graph, a, joined, 0),
        overlap(&graph, b, joined, 48),
        overlap(&graph, joined, y, 0),
    ]
    .into_iter()
    .collect();
    let pairs = |level| {
        let left = all.up_to(level, &graph);
        left.iter()
            .map(|(i, o, _)| (i.0 as i32, o.0 as i32))
            .collect::<Vec<_>>()
    };
    assert_eq!(pairs(Level::None), []);
    assert_eq!(pairs(Level::Views), [(a, joined)]);
    assert_eq!(pairs(Level::InPlace), [(x, a), (a, joined), (joined, y)]);
    assert_eq!(
        pairs(Level::Overlap),
        [(x, a), (a, joined), (b, joined), (joined, y)]
    );
}
