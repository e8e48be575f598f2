//! TFLM's clock worked out by hand, and the interference graph against all pairs.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;

use std::collections::BTreeSet;

use arenaplan::graph::Graph;
use arenaplan::interference::{Interference, Node, Rules};
use arenaplan::lifetimes::{Lifetimes, NEVER, Span};
use arenaplan::model::Model;
use arenaplan::scratch::Scratch;
use petgraph::visit::EdgeRef;

fn spans(bytes: &[u8]) -> Vec<(u32, u32, i32, i32)> {
    let graph = Graph::read(Model::parse(bytes).unwrap()).unwrap();
    let lifetimes = Lifetimes::of(&graph).unwrap();
    let all = graph.tensors.iter().map(|t| {
        let span = lifetimes.tensor(t.id);
        (t.subgraph, t.index, span.first, span.last)
    });
    all.collect()
}

/// ```text
/// clock            0    1     2   3     4    5    6    7     8        9    10   11
/// main             in   RELU  IF                                           MUL  ADD
/// then (entered at 3)             in    TANH EXP  SIN
/// else (entered at 7)                                  in    LOGISTIC SUB
/// ```
///
/// RELU: x -> t2; IF: run, x -> t3; MUL: t2, x -> t4; ADD: t3, t4 -> t5. IF reads its inputs until its branches are
/// done, at 9, and its output is there from the start.
#[test]
fn branches_are_walked_one_after_the_other() {
    let expected = [
        (0, 0, 0, 9),
        (0, 1, 0, 10),
        (0, 2, 1, 10),
        (0, 3, 2, 11),
        (0, 4, 10, 11),
        (0, 5, 11, 11),
        (1, 0, 3, 4),
        (1, 1, 4, 5),
        (1, 2, 5, 6),
        (1, 3, 6, 6),
        (2, 0, 7, 9),
        (2, 1, 8, 9),
        (2, 2, 9, 9),
    ];
    assert_eq!(spans(&common::model("if_old_code_float32")), expected);
}

/// Tensors that no operator and no list of inputs or outputs names, and those of a subgraph that nothing calls.
#[test]
fn untouched_tensors_are_never_alive() {
    for (name, least) in [("idle_tensors_float32", 2), ("idle_subgraph_float32", 2)] {
        let bytes = common::model(name);
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let lifetimes = Lifetimes::of(&graph).unwrap();
        let mut touched = BTreeSet::new();
        for s in graph.subgraphs.iter().take(1) {
            touched.extend(s.inputs.iter().chain(&s.outputs).copied());
            for op in &s.operators {
                touched.extend(op.inputs.iter().flatten().chain(&op.outputs).copied());
            }
        }
        let idle: Vec<_> = graph
            .tensors
            .iter()
            .filter(|t| !touched.contains(&t.id))
            .collect();
        assert!(idle.len() >= least, "{name}");
        for t in idle {
            assert_eq!(
                lifetimes.tensor(t.id),
                Span {
                    first: NEVER,
                    last: NEVER
                },
                "{name}"
            );
        }
    }
}

/// The sweep that builds the graph finds the pairs that comparing all with all finds.
#[test]
fn edges_join_what_is_alive_together() {
    for sample in common::models() {
        let graph = Graph::read(Model::parse(&sample.bytes).unwrap()).unwrap();
        let lifetimes = Lifetimes::of(&graph).unwrap();
        let scratch = Scratch::reference(&graph);
        let rules = Rules {
            align: 16,
            granule: 16,
            online: Some(&scratch),
            keep: &[],
            ..Rules::tensors_alone()
        };
        let built = Interference::build(&graph, &lifetimes, rules).unwrap();
        let span = |node: &Node| match node {
            Node::Tensor(t) => lifetimes.tensor(*t),
            Node::Scratch { operator, .. } => lifetimes.operator(*operator),
            other => panic!("unknown node {other:?}"),
        };
        let mut expected = BTreeSet::new();
        for (i, a) in built.nodes.iter().enumerate() {
            for (j, b) in built.nodes.iter().enumerate().skip(i + 1) {
                if span(a).overlaps(span(b)) {
                    expected.insert((i, j));
                }
            }
        }
        let edges = built.problem.graph().edge_references();
        let found: BTreeSet<_> = edges
            .map(|e| (e.source().index(), e.target().index()))
            .map(|(a, b)| (a.min(b), a.max(b)))
            .collect();
        assert_eq!(found, expected, "{}", sample.name);
        let planned = graph
            .tensors
            .iter()
            .filter(|t| t.is_planned() || t.is_left_to_tflm());
        assert_eq!(
            built.nodes.len(),
            planned.count() + scratch.len(),
            "{}",
            sample.name
        );
        let dot = built.to_dot(&graph);
        assert_eq!(
            dot.matches(" -- ").count(),
            expected.len(),
            "{}",
            sample.name
        );
    }
}

/// A tensor that is kept is alive to the end, and so meets everything that is born after it.
#[test]
fn kept_tensors_meet_all_that_follows() {
    let bytes = common::model("conv_int8");
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let lifetimes = Lifetimes::of(&graph).unwrap();
    let input = graph.subgraphs[0].inputs[0];
    let rules = Rules {
        align: 16,
        granule: 16,
        online: None,
        keep: &[input],
        ..Rules::tensors_alone()
    };
    let built = Interference::build(&graph, &lifetimes, rules).unwrap();
    let at = built
        .nodes
        .iter()
        .position(|n| *n == Node::Tensor(input))
        .unwrap();
    let node = petgraph::graph::NodeIndex::new(at);
    assert_eq!(
        built.problem.graph().neighbors(node).count(),
        built.nodes.len() - 1
    );
}
