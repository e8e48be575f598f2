//! The checker against another definition of right: no two tensors alive at the same time share a byte.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

#[path = "common/build.rs"]
mod build;
mod common;

use arenaplan::check::{Layout, Piece, Place, Tag, Violation, check};
use arenaplan::graph::{Graph, OpId, Storage, TensorId};
use arenaplan::lifetimes::Lifetimes;
use arenaplan::model::Model;
use arenaplan::plan::{Options, plan};
use arenaplan::report::Outcome;
use arenaplan::scratch::Scratch;
use arenaplan::stored::StoredPlan;
use arenaplan::target::Library;
use arenaplan::tflm;
use arenaplan_schema::tflite::BuiltinOperator;

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
        ..Layout::default()
    }
}

/// Whether one of the two is the other, reshaped.
fn is_reshape(graph: &Graph<'_>, a: TensorId, b: TensorId) -> bool {
    graph
        .operators()
        .filter(|o| o.code == BuiltinOperator::RESHAPE)
        .any(|o| {
            let (from, to) = (o.inputs[0], o.outputs[0]);
            (from, to) == (Some(a), b) || (from, to) == (Some(b), a)
        })
}

/// Random layouts of models without control flow, without tensors that nobody reads, and without an operator whose
/// tensors lie over each other on purpose.
#[test]
fn agrees_with_lifetimes_on_random_layouts() {
    let mut random = common::Random::new(7);
    let (mut right, mut wrong) = (0, 0);
    for sample in common::models() {
        let graph = Graph::read(Model::parse(&sample.bytes).unwrap()).unwrap();
        if graph.subgraphs.len() > 1 || graph.operators().any(|o| o.has_compiled_offsets()) {
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
        let greedy = tflm::simulate(
            &graph,
            &Lifetimes::of(&graph).unwrap(),
            &Scratch::default(),
            None,
        )
        .unwrap();
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
                        && !(a.1 == b.1 && is_reshape(&graph, a.0, b.0))
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

fn only_copies(code: BuiltinOperator) -> bool {
    use BuiltinOperator as Op;
    matches!(
        code,
        Op::RESHAPE
            | Op::SQUEEZE
            | Op::EXPAND_DIMS
            | Op::CONCATENATION
            | Op::PACK
            | Op::SPLIT
            | Op::SPLIT_V
            | Op::UNPACK
            | Op::SLICE
            | Op::STRIDED_SLICE
    )
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
        // An operator that only copies may lie on its input. One that runs subgraphs copies its inputs away first, so
        // its outputs may lie there. One that was compiled knows what lies where.
        for op in graph.subgraphs[0]
            .operators
            .iter()
            .filter(|o| o.calls.is_empty() && !o.has_compiled_offsets())
            .filter(|o| !only_copies(o.code))
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
            let verdict = common::judged(&graph, StoredPlan::Offsets(moved));
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
    let mut places = common::tflm_places(&graph);
    let head = layout_of(&places, 16).head;
    places[0].1 += 1 << 20;
    places[0].1 += 8;
    let moved = places[0].0;
    let mut layout = layout_of(&places, 16);
    layout.head = head;
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
    let places = common::tflm_places(&graph);
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
    let places = common::tflm_places(&graph);
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

/// Everything in the arena, each piece at a place of its own: nothing can be overwritten. Variables are in it too.
fn apart(graph: &Graph<'_>, scratch: &Scratch) -> Layout {
    let mut layout = tflm::simulate(graph, &Lifetimes::of(graph).unwrap(), scratch, None)
        .unwrap()
        .layout(16, &[]);
    let variables = graph
        .tensors
        .iter()
        .filter(|t| t.storage == Storage::Variable);
    layout.pieces.extend(variables.map(|t| Piece {
        tag: Tag::Tensor(t.id),
        offset: 0,
        bytes: t.bytes,
        align: 16,
    }));
    layout.head = 0;
    for piece in &mut layout.pieces {
        piece.offset = layout.head;
        layout.head += piece.bytes.next_multiple_of(16);
    }
    assert_eq!(check(graph, &layout), []);
    layout
}

/// Puts one piece where another one is.
fn onto(layout: &Layout, moved: Tag, other: Tag) -> Layout {
    let mut layout = layout.clone();
    let offset = layout
        .pieces
        .iter()
        .find(|p| p.tag == other)
        .unwrap()
        .offset;
    let piece = layout.pieces.iter_mut().find(|p| p.tag == moved).unwrap();
    piece.offset = offset;
    layout
}

/// The only operator with this code.
fn the(graph: &Graph<'_>, code: BuiltinOperator) -> OpId {
    let mut found = graph.operators().filter(|o| o.code == code);
    let op = found.next().unwrap().id;
    assert!(found.next().is_none());
    op
}

fn input(graph: &Graph<'_>, op: OpId, index: usize) -> TensorId {
    graph.operator(op).inputs[index].unwrap()
}

fn output(graph: &Graph<'_>, op: OpId) -> TensorId {
    graph.operator(op).outputs[0]
}

/// What is read at an operator of subgraph 0 and found to be something else's.
fn lost(found: &[Violation], tensor: TensorId, at: OpId) -> Option<Option<Tag>> {
    found.iter().find_map(|v| match v {
        Violation::Overwritten {
            tag: Tag::Tensor(t),
            at: Place::Operator(op),
            by,
            ..
        } if (*t, *op) == (tensor, at) => Some(*by),
        _ => None,
    })
}

/// `x` is read behind the IF; TANH, EXP and SIN are in the branch "then", LOGISTIC in "else".
#[test]
fn a_tensor_alive_across_an_if_overwritten_in_one_branch() {
    let bytes = common::model("if_old_code_float32");
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let layout = apart(&graph, &Scratch::reference(&graph));
    let reader = the(&graph, BuiltinOperator::MUL);
    let alive = input(&graph, reader, 1);
    assert!(reader.subgraph == 0 && reader > the(&graph, BuiltinOperator::IF));
    for code in [BuiltinOperator::EXP, BuiltinOperator::LOGISTIC] {
        let inside = output(&graph, the(&graph, code));
        let found = check(
            &graph,
            &onto(&layout, Tag::Tensor(inside), Tag::Tensor(alive)),
        );
        // The other branch leaves it whole, so nobody can say what is there.
        assert_eq!(
            lost(&found, alive, reader),
            Some(None),
            "{code:?}: {found:?}"
        );
    }
}

/// The graph's input is read again behind the loop.
#[test]
fn a_tensor_alive_across_a_while_overwritten_by_its_body() {
    let bytes = common::model("if_in_while_float32");
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let layout = apart(&graph, &Scratch::reference(&graph));
    let the_loop = graph.operator(the(&graph, BuiltinOperator::WHILE));
    let [condition, body] = the_loop.calls[..] else {
        panic!("two subgraphs")
    };
    let reader = graph.subgraphs[0].operators.last().unwrap();
    let alive = reader.inputs[1].unwrap();
    assert!(graph.subgraphs[0].inputs.contains(&alive) && reader.id > the_loop.id);
    let sum = output(&graph, the(&graph, BuiltinOperator::SUM));
    assert_eq!(graph.tensor(sum).subgraph, body);
    let less = output(&graph, the(&graph, BuiltinOperator::LESS));
    assert_eq!(graph.tensor(less).subgraph, condition);
    // The body may run or not, the condition always does.
    for (inside, by) in [(sum, None), (less, Some(Tag::Tensor(less)))] {
        let found = check(
            &graph,
            &onto(&layout, Tag::Tensor(inside), Tag::Tensor(alive)),
        );
        assert_eq!(lost(&found, alive, reader.id), Some(by), "{found:?}");
    }
}

/// When a loop's body is over its outputs are copied to the loop's variables one after the other.
#[test]
fn a_variable_of_a_while_overwritten_in_its_body() {
    let bytes = common::model("while_float32");
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let layout = apart(&graph, &Scratch::reference(&graph));
    let the_loop = graph.operator(the(&graph, BuiltinOperator::WHILE));
    let body = &graph.subgraphs[the_loop.calls[1] as usize];
    // The body has its own copy of the variable, which is written anew only when the body is over.
    let target = the_loop.outputs[1];
    let scaled = body.operators[1].outputs[0];
    let onto_variable = onto(&layout, Tag::Tensor(scaled), Tag::Tensor(target));
    assert_eq!(check(&graph, &onto_variable), []);
    // The first variable is written before the second one's new value is read.
    let carried = body.outputs[1];
    let early = onto(
        &layout,
        Tag::Tensor(carried),
        Tag::Tensor(the_loop.outputs[0]),
    );
    assert_ne!(check(&graph, &early), []);
}

/// TFLM runs the subgraph at the first invoke only; what it spoils there is spoilt.
#[test]
fn a_tensor_alive_across_call_once_overwritten_by_its_subgraph() {
    let bytes = common::model("call_once_float32");
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let layout = apart(&graph, &Scratch::reference(&graph));
    let once = the(&graph, BuiltinOperator::CALL_ONCE);
    let reader = the(&graph, BuiltinOperator::MUL);
    let alive = input(&graph, reader, 1);
    assert!(reader > once && alive == output(&graph, OpId { index: 0, ..once }));
    let inside = output(&graph, the(&graph, BuiltinOperator::EXP));
    assert_eq!(graph.tensor(inside).subgraph, 1);
    let found = check(
        &graph,
        &onto(&layout, Tag::Tensor(inside), Tag::Tensor(alive)),
    );
    assert_eq!(lost(&found, alive, reader), Some(None), "{found:?}");
}

/// The output of the last operator lies on the state of the first one, whose turn is over until the next invoke.
#[test]
fn a_variable_in_the_arena_lost_between_two_invokes() {
    let bytes = common::model("svdf_float32");
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let layout = apart(&graph, &Scratch::reference(&graph));
    let first = &graph.subgraphs[0].operators[0];
    let state = first.inputs[4].unwrap();
    assert_eq!(graph.tensor(state).storage, Storage::Variable);
    let last = Tag::Tensor(graph.subgraphs[0].outputs[0]);
    let found = check(&graph, &onto(&layout, last, Tag::Tensor(state)));
    assert_eq!(lost(&found, state, first.id), Some(Some(last)), "{found:?}");
}

#[test]
fn scratch_on_an_input_of_its_operator() {
    let bytes = common::model("svdf_float32");
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let layout = apart(&graph, &Scratch::reference(&graph));
    let op = &graph.subgraphs[0].operators[0];
    let scratch = Tag::Scratch {
        operator: op.id,
        request: 0,
    };
    let x = op.inputs[0].unwrap();
    let found = check(&graph, &onto(&layout, scratch, Tag::Tensor(x)));
    assert_eq!(lost(&found, x, op.id), Some(Some(scratch)), "{found:?}");
    // An output on the scratch: whichever is written last, the other is damaged.
    let found = check(&graph, &onto(&layout, Tag::Tensor(op.outputs[0]), scratch));
    assert!(!found.is_empty());
    // An output of a later operator may lie there.
    let later = Tag::Tensor(graph.subgraphs[0].outputs[0]);
    assert_eq!(check(&graph, &onto(&layout, later, scratch)), []);
}

/// No reference kernel of control flow has scratch, but a scratch file may say that the device's has.
#[test]
fn scratch_of_control_flow_damaged_by_what_it_runs() {
    for (name, code) in [
        ("if_old_code_float32", BuiltinOperator::IF),
        ("while_float32", BuiltinOperator::WHILE),
        ("call_once_float32", BuiltinOperator::CALL_ONCE),
    ] {
        let bytes = common::model(name);
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let op = graph.operator(the(&graph, code));
        let scratch =
            Scratch::with_file(Library::Reference, &graph, &format!("{} 64", op.id.index)).unwrap();
        let layout = apart(&graph, &scratch);
        let tag = Tag::Scratch {
            operator: op.id,
            request: 0,
        };
        for &called in &op.calls {
            let writer = graph.subgraphs[called as usize]
                .operators
                .iter()
                .flat_map(|o| &o.outputs)
                .find(|t| graph.tensor(**t).is_planned());
            let inside = Tag::Tensor(*writer.unwrap());
            let found = check(&graph, &onto(&layout, inside, tag));
            assert!(
                found
                    .iter()
                    .any(|v| matches!(v, Violation::Overwritten { tag: t, at, .. }
                    if (*t, *at) == (tag, Place::Operator(op.id)))),
                "{name}, subgraph {called}: {found:?}"
            );
        }
        // TFLM's own planner keeps it alive while the subgraphs run.
        let greedy =
            tflm::simulate(&graph, &Lifetimes::of(&graph).unwrap(), &scratch, None).unwrap();
        assert_eq!(check(&graph, &greedy.layout(16, &[])), []);
    }
}

/// The condition's result is not what its last operator writes, and is read when all have run.
#[test]
fn the_result_of_a_condition_overwritten_before_it_is_read() {
    let bytes = common::model("while_condition_float32");
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let layout = apart(&graph, &Scratch::reference(&graph));
    let less = output(&graph, the(&graph, BuiltinOperator::LESS));
    let later = output(&graph, the(&graph, BuiltinOperator::ABS));
    let found = check(
        &graph,
        &onto(&layout, Tag::Tensor(later), Tag::Tensor(less)),
    );
    let fault = Violation::Overwritten {
        tag: Tag::Tensor(less),
        at: Place::EndOf(1),
        offset: layout_offset(&layout, less),
        by: Some(Tag::Tensor(later)),
    };
    assert_eq!(found, [fault]);
}

fn layout_offset(layout: &Layout, tensor: TensorId) -> u64 {
    let piece = layout.pieces.iter().find(|p| p.tag == Tag::Tensor(tensor));
    piece.unwrap().offset
}

/// TFLM leaves a copy out when both are at one place, and else copies with `memcpy`.
#[test]
fn copies_into_a_branch() {
    let bytes = common::model("if_float32");
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let layout = apart(&graph, &Scratch::reference(&graph));
    let op = graph.operator(the(&graph, BuiltinOperator::IF));
    let source = op.inputs[2].unwrap();
    assert!(graph.subgraphs[0].inputs.contains(&source));
    let mut shared = layout.clone();
    for &called in &op.calls {
        let target = Tag::Tensor(graph.subgraphs[called as usize].inputs[1]);
        shared = onto(&shared, target, Tag::Tensor(source));
        let mut half = onto(&layout, target, Tag::Tensor(source));
        let piece = half.pieces.iter_mut().find(|p| p.tag == target).unwrap();
        piece.offset += piece.bytes / 2;
        assert_ne!(check(&graph, &half), [], "source and target overlap");
    }
    assert_eq!(check(&graph, &shared), []);
    // Without a copy nothing but the check of the operator's inputs sees that the value is gone.
    let before = op.inputs[1].unwrap();
    let found = check(
        &graph,
        &onto(&shared, Tag::Tensor(before), Tag::Tensor(source)),
    );
    let gone = lost(&found, source, op.id);
    assert_eq!(gone, Some(Some(Tag::Tensor(before))), "{found:?}");
}

/// A kernel may write its outputs in any order, and the application its inputs, so that even one that nobody reads must
/// not lie on another.
#[test]
fn what_nobody_reads_does_its_damage_when_it_is_written() {
    let bytes = common::model("unread_output_float32");
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let layout = apart(&graph, &Scratch::reference(&graph));
    let outputs = &graph.operator(the(&graph, BuiltinOperator::SPLIT)).outputs;
    let pairs = [(0, 1), (1, 0), (1, 2), (2, 1)];
    for (a, b) in pairs.map(|(a, b)| (outputs[a], outputs[b])) {
        assert_ne!(
            check(&graph, &onto(&layout, Tag::Tensor(a), Tag::Tensor(b))),
            []
        );
    }
    let bytes = common::model("unused_input_int8");
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let layout = apart(&graph, &Scratch::reference(&graph));
    let [a, b] = graph.subgraphs[0].inputs[..] else {
        panic!("two inputs")
    };
    for (a, b) in [(a, b), (b, a)] {
        let found = check(&graph, &onto(&layout, Tag::Tensor(a), Tag::Tensor(b)));
        let at_once = |v: &Violation| {
            matches!(
                v,
                Violation::Overwritten {
                    at: Place::BeforeInvoke,
                    ..
                }
            )
        };
        assert!(found.iter().any(at_once), "{found:?}");
    }
}

/// Vela's plan stays as it is, byte for byte: offsets are compiled into the NPU's command stream, whose tensors share
/// memory on purpose. Other tensors must not lie in the memory that the NPU works in.
#[test]
fn plans_for_the_ethos_u() {
    let judged = |bytes: &[u8]| {
        let graph = Graph::read(Model::parse(bytes).unwrap()).unwrap();
        let verdict = common::judged(&graph, StoredPlan::read(&graph));
        assert!(verdict.exists());
        verdict.faults
    };
    let right = common::model("ethos_u_int8");
    assert_eq!(judged(&right), Vec::<String>::new());
    let graph = Graph::read(Model::parse(&right).unwrap()).unwrap();
    let StoredPlan::Offsets(mut offsets) = StoredPlan::read(&graph) else {
        panic!("no plan")
    };
    // What the CPU hands to the NPU must reach it.
    offsets[2] = offsets[1];
    let verdict = common::judged(&graph, StoredPlan::Offsets(offsets));
    let fed = "tensor 1 \"t1\" is needed at operator 2 ethos-u, but at byte 0 of the arena tensor 2 \"t2\" lies there";
    assert_eq!(verdict.fault(), Some(fed));

    let wrong = std::fs::read(common::root("testdata/malformed/ethos_u_wrong.tflite")).unwrap();
    let faults = judged(&wrong);
    assert_eq!(faults.len(), 1, "{faults:?}");
    let fault = "tensor 2 \"t2\" is needed at operator 3 ADD, but at byte 384 of the arena tensor 5 \"scratch\" lies there";
    assert_eq!(faults[0], fault);

    for (bytes, is_wrong) in [(right, false), (wrong, true)] {
        let planned = plan(&bytes, &Options::default()).unwrap();
        let Outcome::CompiledOffsets { operator } = &planned.report.outcome else {
            panic!("{:?}", planned.report.outcome)
        };
        assert_eq!(operator, "operator 2 ethos-u");
        assert!(planned.file == bytes);
        let warned = planned.report.warnings.iter().any(|w| w.contains(fault));
        assert_eq!(warned, is_wrong, "{:?}", planned.report.warnings);
    }
}

/// TFLM's RESHAPE copies nothing when its output lies on its input; every kernel library keeps that. Partly over it is
/// wrong, and so is any other operator's output on its input.
#[test]
fn a_reshape_in_place_is_a_view() {
    let mut model = build::Plain::default();
    let (a, b, c, d) = (
        model.tensor(64),
        model.tensor(64),
        model.tensor(64),
        model.tensor(64),
    );
    model.op(BuiltinOperator::ABS, &[a], &[b]);
    model.op(BuiltinOperator::RESHAPE, &[b], &[c]);
    model.op(BuiltinOperator::NEG, &[c], &[d]);
    model.inputs.push(a);
    model.outputs.push(d);
    let bytes = model.finish();
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let faults = |offsets: [u64; 4]| {
        let places: Vec<_> = (0..4)
            .map(|t| (TensorId(t), offsets[t as usize], 256))
            .collect();
        check(&graph, &layout_of(&places, 16)).len()
    };
    assert_eq!(faults([0, 256, 256, 0]), 0);
    assert_ne!(faults([0, 256, 272, 0]), 0);
    assert_ne!(faults([0, 256, 256, 256]), 0);
    assert_ne!(faults([0, 0, 256, 0]), 0);
    assert_ne!(faults([256, 256, 256, 0]), 0);
}
