//! The checker against another definition of right: no two tensors alive at the same time share a byte.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;

use arenaplan::check::{Layout, Piece, Tag, Violation, check};
use arenaplan::graph::{Graph, TensorId};
use arenaplan::lifetimes::Lifetimes;
use arenaplan::model::Model;
use arenaplan::plan::{Options, plan};
use arenaplan::scratch::Scratch;
use arenaplan::stored::StoredPlan;
use arenaplan::tflm;

fn layout_of(offsets: &[(TensorId, u64, u64)], align: u64) -> Layout {
    let pieces: Vec<_> = offsets
        .iter()
        .map(|&(t, offset, bytes)| Piece {
            tag: Tag::Tensor(t),
            offset,
            bytes,
            align,
        })
        .collect();
    let head = pieces.iter().map(|p| p.offset + p.bytes).max().unwrap_or(0);
    Layout {
        pieces,
        head,
        keep: Vec::new(),
    }
}

/// Random layouts of models without control flow and without tensors that nobody reads.
#[test]
fn agrees_with_lifetimes_on_random_layouts() {
    let mut random = common::Random::new(7);
    let (mut right, mut wrong) = (0, 0);
    for sample in common::models() {
        let graph = Graph::read(Model::parse(&sample.bytes).unwrap()).unwrap();
        if graph.subgraphs.len() > 1 {
            continue;
        }
        let lifetimes = Lifetimes::of(&graph).unwrap();
        let is_read = |id: TensorId| {
            graph.operators().any(|o| o.inputs.contains(&Some(id)))
                || graph.subgraphs[0].outputs.contains(&id)
        };
        let planned: Vec<_> = graph.tensors.iter().filter(|t| t.is_planned()).collect();
        if planned.is_empty() || !planned.iter().all(|t| is_read(t.id)) {
            continue;
        }
        let greedy = tflm::simulate(&graph, &Scratch::default(), None).unwrap();
        for _ in 0..200 {
            // From a right layout, move a few tensors to random places.
            let mut places: Vec<_> = planned
                .iter()
                .map(|t| (t.id, greedy.tensor(t.id).unwrap().offset, t.bytes))
                .collect();
            for _ in 0..random.below(3) {
                let at = random.below(places.len());
                places[at].1 = random.below(greedy.head as usize + 64) as u64;
            }
            let clash = places.iter().enumerate().any(|(i, a)| {
                places[..i].iter().any(|b| {
                    a.1 < b.1 + b.2
                        && b.1 < a.1 + a.2
                        && lifetimes.tensor(a.0).overlaps(lifetimes.tensor(b.0))
                })
            });
            let found = check(&graph, &layout_of(&places, 1));
            assert_eq!(
                !found.is_empty(),
                clash,
                "{}: {places:?} {found:?}",
                sample.name
            );
            if clash { wrong += 1 } else { right += 1 }
        }
    }
    assert!(right > 1000 && wrong > 1000, "{right} right, {wrong} wrong");
}

/// Every plan of ours becomes wrong when a tensor is moved onto another one that is alive.
#[test]
fn finds_a_tensor_moved_onto_another() {
    for sample in common::models() {
        let planned = plan(&sample.bytes, &Options::default()).unwrap();
        let graph = Graph::read(Model::parse(&planned.file).unwrap()).unwrap();
        let StoredPlan::Offsets(offsets) = StoredPlan::read(&graph) else {
            continue;
        };
        // One that runs subgraphs copies its inputs away first, so its outputs may lie there.
        for op in graph.subgraphs[0]
            .operators
            .iter()
            .filter(|o| o.calls.is_empty())
        {
            let (Some(input), Some(&output)) = (
                op.inputs
                    .iter()
                    .flatten()
                    .find(|t| offsets[t.index()] != -1),
                op.outputs.iter().find(|t| offsets[t.index()] != -1),
            ) else {
                continue;
            };
            let mut moved = offsets.clone();
            moved[output.index()] = moved[input.index()];
            let verdict =
                StoredPlan::Offsets(moved).judged(&graph, &Scratch::reference(&graph), 16, &[]);
            assert!(
                !verdict.faults.is_empty(),
                "{}: {} unseen",
                sample.name,
                op.label()
            );
        }
    }
}

#[test]
fn names_alignment_bounds_and_missing_places() {
    let bytes = common::model("conv_int8");
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let greedy = tflm::simulate(&graph, &Scratch::reference(&graph), None).unwrap();
    let mut places: Vec<_> = greedy
        .tensors
        .iter()
        .map(|p| (p.what, p.offset, p.bytes))
        .collect();
    places[0].1 += 1 << 20;
    places[0].1 += 8;
    let moved = places[0].0;
    let mut layout = layout_of(&places, 16);
    layout.head = greedy.head;
    let found = check(&graph, &layout);
    let tag = Tag::Tensor(moved);
    assert!(
        found
            .iter()
            .any(|v| matches!(v, Violation::Misaligned { tag: t, align: 16, .. } if *t == tag))
    );
    assert!(
        found
            .iter()
            .any(|v| matches!(v, Violation::OutOfBounds { tag: t, .. } if *t == tag))
    );
    layout.pieces.retain(|p| p.tag != tag);
    let found = check(&graph, &layout);
    assert_eq!(found, [Violation::NoPlace { tensor: moved }]);
}

/// TFLM copies the inputs of a WHILE to the condition's inputs, and then to its outputs, one after the other. A place that
/// an early copy writes must not be one that a later copy reads: stock TFLM computes wrong numbers with both of these.
#[test]
fn copies_into_a_loop_do_not_destroy_what_is_copied_next() {
    let bytes = common::model("while_float32");
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let greedy = tflm::simulate(&graph, &Scratch::reference(&graph), None).unwrap();
    let places: Vec<_> = greedy
        .tensors
        .iter()
        .map(|p| (p.what, p.offset, p.bytes))
        .collect();
    assert_eq!(check(&graph, &layout_of(&places, 16)), []);
    let op = graph.operators().find(|o| o.calls.len() == 2).unwrap();
    let inputs: Vec<TensorId> = op.inputs.iter().flatten().copied().collect();
    let condition = &graph.subgraphs[op.calls[0] as usize].inputs;
    let mut wrong = 0;
    for (targets, name) in [(&op.outputs, "output"), (condition, "condition's input")] {
        for (i, &target) in targets.iter().enumerate() {
            for (j, &source) in inputs.iter().enumerate() {
                let is_in_arena = |t: TensorId| graph.tensor(t).is_planned();
                if !is_in_arena(target) || !is_in_arena(source) || target == source || i == j {
                    continue;
                }
                let mut moved = places.clone();
                let offset = moved.iter().find(|p| p.0 == source).unwrap().1;
                moved.iter_mut().find(|p| p.0 == target).unwrap().1 = offset;
                let found = check(&graph, &layout_of(&moved, 16));
                assert!(!found.is_empty(), "{name} {i} on input {j}");
                wrong += 1;
            }
        }
    }
    assert!(wrong >= 4);
}

/// What a checker must not believe of the layout it is given.
#[test]
fn sizes_and_names_are_checked_against_the_model() {
    let bytes = common::model("conv_int8");
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let greedy = tflm::simulate(&graph, &Scratch::reference(&graph), None).unwrap();
    let places: Vec<_> = greedy
        .tensors
        .iter()
        .map(|p| (p.what, p.offset, p.bytes))
        .collect();
    let right = layout_of(&places, 16);
    assert_eq!(check(&graph, &right), []);

    let mut empty = right.clone();
    empty
        .pieces
        .iter_mut()
        .for_each(|p| (p.offset, p.bytes) = (0, 0));
    let found = check(&graph, &empty);
    assert!(
        found
            .iter()
            .all(|v| matches!(v, Violation::TooShort { .. })),
        "{found:?}"
    );
    assert_eq!(found.len(), places.len());

    let mut twice = right.clone();
    twice.pieces.push(right.pieces[0]);
    assert!(check(&graph, &twice).contains(&Violation::Unexpected {
        tag: right.pieces[0].tag
    }));

    let mut unknown = right.clone();
    let tag = Tag::Tensor(TensorId(9_999));
    unknown.pieces.push(Piece {
        tag,
        ..right.pieces[0]
    });
    unknown.keep.push(TensorId(9_999));
    assert_eq!(check(&graph, &unknown), [Violation::Unexpected { tag }]);
}
