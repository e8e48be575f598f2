//! Layouts in which tensors share bytes: the checker lets right ones through, and refuses each of them one step off.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

#[path = "common/build.rs"]
mod build;
mod common;

use arenaplan::check::{Layout, Piece, Place, Tag, Violation, check};
use arenaplan::contract::{self, Overlap};
use arenaplan::graph::{Graph, OpId, Operator, TensorId};
use arenaplan::lifetimes::Lifetimes;
use arenaplan::model::Model;
use arenaplan::plan::{Options, plan};
use arenaplan::scratch::Scratch;
use arenaplan::stored::StoredPlan;
use arenaplan::target::{Chip, Core, Library, Target};
use arenaplan::tflm;
use arenaplan_schema::tflite::BuiltinOperator as Op;

const REFERENCE: &[Library] = &[Library::Reference];

fn place(layout: &Layout, tensor: TensorId) -> Option<(u64, u64)> {
    let mut pieces = layout.pieces.iter();
    let piece = pieces.find(|p| p.tag == Tag::Tensor(tensor))?;
    Some((piece.offset, piece.offset + piece.bytes))
}

/// The layout with one tensor elsewhere, and alignments left out.
fn moved(layout: &Layout, tensor: TensorId, offset: u64) -> Layout {
    let mut layout = layout.clone();
    for piece in &mut layout.pieces {
        piece.align = 1;
        if piece.tag == Tag::Tensor(tensor) {
            piece.offset = offset;
        }
        layout.head = layout.head.max(piece.offset + piece.bytes);
    }
    layout
}

/// Whether the kernel of an operator is found to write over what it still reads.
fn is_too_late(found: &[Violation], op: OpId) -> bool {
    found
        .iter()
        .any(|v| matches!(v, Violation::ReadTooLate { operator, .. } if *operator == op))
}

/// Pairs of an input and an output of an operator that share bytes without being copies of each other.
fn overlapping(graph: &Graph<'_>, layout: &Layout, op: &Operator<'_>) -> Vec<(TensorId, TensorId)> {
    let mut pairs = Vec::new();
    for &input in op.inputs.iter().flatten() {
        for &output in &op.outputs {
            let (Some(from), Some(to)) = (place(layout, input), place(layout, output)) else {
                continue;
            };
            let promised = contract::between(Target::TflmReference, graph, op, input, output);
            let is_view = promised
                .view_at
                .is_some_and(|at| to.0.checked_add_signed(at) == Some(from.0));
            if from.0 < to.1 && to.0 < from.1 && !is_view {
                pairs.push((input, output));
            }
        }
    }
    pairs
}

/// Operators that are run, and that have a kernel with an order.
fn plain<'g, 'a>(graph: &'g Graph<'a>) -> impl Iterator<Item = &'g Operator<'a>> {
    let operators = graph.subgraphs[0].operators.iter();
    operators.filter(|o| o.calls.is_empty() && !o.has_compiled_offsets())
}

/// In a plan with overlaps, each distance cut to one byte less than the kernel needs.
#[test]
fn a_plan_with_one_distance_cut_is_refused() {
    let (mut models, mut cuts) = (0, 0);
    for sample in common::models() {
        let options = Options {
            target: Target::TflmReference,
            ..Options::default()
        };
        let planned = plan(&sample.bytes, &options).unwrap();
        let graph = Graph::read(Model::parse(&planned.file).unwrap()).unwrap();
        let StoredPlan::Offsets(offsets) = StoredPlan::read(&graph) else {
            continue;
        };
        let (lifetimes, scratch) = (Lifetimes::of(&graph).unwrap(), Scratch::reference(&graph));
        let Ok(simulation) = tflm::simulate(&graph, &lifetimes, &scratch, Some(&offsets)) else {
            continue;
        };
        let mut layout = simulation.layout(16, &[]);
        layout.libraries = REFERENCE;
        assert_eq!(check(&graph, &layout), [], "{}", sample.name);
        // Where nothing is known of the kernels, nothing may overlap.
        let mut strict = layout.clone();
        strict.libraries = &[];
        let before = cuts;
        for op in plain(&graph) {
            for (input, output) in overlapping(&graph, &layout, op) {
                assert_ne!(check(&graph, &strict), [], "{}", sample.name);
                let (from, to) = (
                    place(&layout, input).unwrap(),
                    place(&layout, output).unwrap(),
                );
                let promised = contract::between(Target::TflmReference, &graph, op, input, output);
                // Where the output may start anywhere below the input, the first place that is wrong is above it.
                let closer = if from.0 >= to.0 && promised.input_above_output > 0 {
                    (from.0 + 1).checked_sub(promised.input_above_output)
                } else if promised.output_above_input > 0 {
                    Some(from.0 + promised.output_above_input - 1)
                } else {
                    None
                };
                let Some(closer) = closer else { continue };
                let found = check(&graph, &moved(&layout, output, closer));
                let name = format!(
                    "{}: {} {promised:?} {from:?} {to:?} {closer}",
                    sample.name,
                    op.label()
                );
                assert!(is_too_late(&found, op.id), "{name}: {found:?}");
                cuts += 1;
            }
        }
        models += u32::from(cuts > before);
    }
    assert!(models >= 10 && cuts >= 50, "{models} models, {cuts} cuts");
}

/// The layout that a model gets with a plan for `target`, if it has one, judged with other kernels.
fn planned_for(
    target: Target,
    bytes: &[u8],
    libraries: &'static [Library],
) -> Option<Vec<Violation>> {
    let options = Options {
        target,
        ..Options::default()
    };
    let planned = plan(bytes, &options).unwrap();
    let graph = Graph::read(Model::parse(&planned.file).unwrap()).unwrap();
    let StoredPlan::Offsets(offsets) = StoredPlan::read(&graph) else {
        return None;
    };
    let lifetimes = Lifetimes::of(&graph).unwrap();
    let scratch = Scratch::of(libraries[0], &graph);
    let simulation = tflm::simulate(&graph, &lifetimes, &scratch, Some(&offsets)).unwrap();
    let mut layout = simulation.layout(16, &[]);
    layout.libraries = libraries;
    Some(check(&graph, &layout))
}

/// Plans for each kind of kernels pass with these kernels. CMSIS-NN reads the whole input of a pointwise convolution again
/// for each pair of output channels, so that a plan for the reference kernels is wrong there.
#[test]
fn plans_for_other_kernels() {
    let reference = Target::TflmReference;
    for target in [
        reference,
        Target::TflmCmsisNn(Some(Core::Dsp)),
        Target::TflmCmsisNn(Some(Core::Mve)),
        Target::TflmEspNn(Some(Chip::S3)),
    ] {
        for sample in common::models() {
            // `plan` itself refuses a plan that the checker does.
            let found = planned_for(target, &sample.bytes, target.libraries());
            assert_eq!(found.unwrap_or_default(), [], "{target}, {}", sample.name);
        }
    }
    let model = common::model("dscnn_int8");
    let dsp = &[Library::CmsisNn(Core::Dsp)];
    let found = planned_for(reference, &model, dsp).unwrap();
    let graph = Graph::read(Model::parse(&model).unwrap()).unwrap();
    let mut late = found.iter().filter_map(|v| match v {
        Violation::ReadTooLate {
            operator, library, ..
        } => Some((graph.operator(*operator).code, *library)),
        _ => None,
    });
    assert!(late.any(|l| l == (Op::CONV_2D, dsp[0])), "{found:?}");
    let found = planned_for(
        reference,
        &model,
        Target::TflmEspNn(Some(Chip::Generic)).libraries(),
    );
    assert_eq!(found.unwrap(), []);
}

/// Every operator of every model, with its output exactly where its kernel allows it, and one byte closer.
#[test]
fn distances_are_what_the_checker_finds() {
    let mut tried = 0;
    for sample in common::models() {
        let graph = Graph::read(Model::parse(&sample.bytes).unwrap()).unwrap();
        let layout = apart(&graph);
        for op in plain(&graph) {
            for &input in op.inputs.iter().flatten() {
                for &output in op.outputs.iter().filter(|&&o| o != input) {
                    let (Some(from), Some(to)) = (place(&layout, input), place(&layout, output))
                    else {
                        continue;
                    };
                    let promised =
                        contract::between(Target::TflmReference, &graph, op, input, output);
                    let at = |d: i64| {
                        let offset = from.0.checked_add_signed(-d).unwrap();
                        let found = check(&graph, &moved(&layout, output, offset));
                        is_too_late(&found, op.id)
                    };
                    let above = promised.input_above_output as i64;
                    let below = promised.output_above_input as i64;
                    let name = format!("{}: {}, {promised:?}", sample.name, op.label());
                    for d in [above, -below] {
                        let offset = from.0.checked_add_signed(-d).unwrap();
                        let found = check(&graph, &moved(&layout, output, offset));
                        assert!(
                            !is_too_late(&found, op.id),
                            "{name} {input:?} {output:?} {found:?}"
                        );
                    }
                    // Where no row says anything, the checker may know more.
                    if promised == Overlap::none(from.1 - from.0, to.1 - to.0) {
                        continue;
                    }
                    let is_view = |d: i64| promised.view_at == Some(d);
                    // An input without bytes in common has nothing to lose.
                    let shares = |d: i64| d < (to.1 - to.0) as i64 && -d < (from.1 - from.0) as i64;
                    let many = op.inputs.iter().flatten().filter(|&&t| t == input).count();
                    if above > 0 && !is_view(above - 1) && shares(above - 1) && many == 1 {
                        assert!(at(above - 1), "{name}");
                        tried += 1;
                    }
                    if below > 0 && !is_view(1 - below) && shares(1 - below) && many == 1 {
                        assert!(at(1 - below), "{name}");
                        tried += 1;
                    }
                }
            }
        }
    }
    assert!(tried > 300, "{tried}");
}

/// Everything at a place of its own, with room around it.
fn apart(graph: &Graph<'_>) -> Layout {
    let lifetimes = Lifetimes::of(graph).unwrap();
    let simulation = tflm::simulate(graph, &lifetimes, &Scratch::reference(graph), None).unwrap();
    let mut layout = simulation.layout(16, &[]);
    let largest = layout.pieces.iter().map(|p| p.bytes).max().unwrap_or(0);
    let room = 2 * largest.next_multiple_of(16) + 16;
    layout.head = room;
    for piece in &mut layout.pieces {
        piece.offset = layout.head;
        layout.head += piece.bytes.next_multiple_of(16) + room;
    }
    layout.libraries = REFERENCE;
    assert_eq!(check(graph, &layout), []);
    layout
}

/// A model and its tensors, which all have 16 numbers unless their shape says otherwise.
struct Views {
    bytes: Vec<u8>,
}

impl Views {
    fn new(model: &build::Plain) -> Self {
        Self {
            bytes: model.finish(),
        }
    }

    /// Faults of a layout, by the offset of each tensor: with reference kernels, and with those that nobody knows.
    fn faults(&self, offsets: &[u64]) -> Vec<Violation> {
        let graph = Graph::read(Model::parse(&self.bytes).unwrap()).unwrap();
        let planned = || graph.tensors.iter().filter(|t| t.is_planned());
        assert_eq!(offsets.len(), planned().count());
        let pieces: Vec<_> = offsets
            .iter()
            .zip(planned())
            .map(|(&offset, tensor)| Piece {
                tag: Tag::Tensor(tensor.id),
                offset,
                bytes: tensor.bytes,
                align: 16,
            })
            .collect();
        let head = pieces.iter().map(|p| p.offset + p.bytes).max().unwrap();
        let mut layout = Layout {
            pieces,
            head,
            libraries: REFERENCE,
            ..Layout::default()
        };
        let found = check(&graph, &layout);
        layout.libraries = Target::Tflm.libraries();
        layout.views_only = true;
        let of_any = check(&graph, &layout);
        // These models have nothing but views.
        assert_eq!(found.is_empty(), of_any.is_empty(), "{found:?}, {of_any:?}");
        found
    }

    fn is_right(&self, offsets: &[u64]) -> bool {
        self.faults(offsets).is_empty()
    }
}

/// `z = [x, y]`, where x and y are made and z is read by others.
fn concatenation() -> Views {
    let mut model = build::Plain::default();
    let (a, x, y) = (model.tensor(16), model.tensor(16), model.tensor(16));
    let (z, out) = (model.tensor(32), model.tensor(32));
    model.op(Op::ABS, &[a], &[x]);
    model.op(Op::NEG, &[a], &[y]);
    model.op(Op::CONCATENATION, &[x, y], &[z]);
    model.op(Op::ABS, &[z], &[out]);
    model.inputs.push(a);
    model.outputs.push(out);
    Views::new(&model)
}

#[test]
fn inputs_of_a_concatenation_in_their_slots() {
    let views = concatenation();
    // a at 0, z at 64, out at 192.
    let with = |x: u64, y: u64| views.is_right(&[0, x, y, 64, 192]);
    assert!(with(64, 128), "both");
    assert!(with(64, 192), "the first");
    assert!(with(256, 128), "the second");
    assert!(with(192, 256), "none");
    assert!(!with(128, 64), "the other way around");
    assert!(!with(80, 192), "a step beside the slot");
    assert!(
        !with(48, 192),
        "a step beside the slot, over an input that is still read"
    );
    assert!(!with(64, 112), "the second over the first");
    assert!(!with(192, 64), "in the slot of the other");
}

/// The copy onto itself leaves one value for two tensors: whoever writes on one has destroyed both.
#[test]
fn a_view_is_lost_with_what_it_is_a_view_of() {
    let mut model = build::Plain::default();
    let (a, x, y) = (model.tensor(16), model.tensor(16), model.tensor(16));
    let (z, w, out) = (model.tensor(32), model.tensor(16), model.tensor(32));
    let last = model.tensor(16);
    model.op(Op::ABS, &[a], &[x]);
    model.op(Op::NEG, &[a], &[y]);
    model.op(Op::CONCATENATION, &[x, y], &[z]);
    model.op(Op::ABS, &[x], &[w]);
    model.op(Op::ABS, &[z], &[out]);
    model.op(Op::ABS, &[x], &[last]);
    model.inputs.push(a);
    model.outputs.extend([out, w, last]);
    let views = Views::new(&model);
    let with = |w: u64, out: u64, last: u64| views.faults(&[0, 64, 128, 64, w, out, last]);
    assert_eq!(with(192, 256, 384), []);
    // In place on x, while z is still to be read.
    let found = with(64, 256, 384);
    let late = |v: &Violation| matches!(v, Violation::Overwritten { at: Place::Operator(o), .. } if o.index >= 3);
    assert!(found.iter().any(late), "{found:?}");
    // Over y's part of z.
    assert_ne!(with(128, 256, 384), []);
    // Over z when z has been read, but x has not.
    assert_ne!(with(192, 64, 384), []);
    // Over y's part of z when z has been read.
    assert_ne!(
        with(192, 128, 384),
        [],
        "an output of the graph has 32 numbers, and z is read while it is written"
    );
}

/// A tensor may be in the slots of two concatenations at once; then what is beside it is one place for two values.
#[test]
fn one_tensor_in_two_concatenations() {
    let build = |second_first: bool| {
        let mut model = build::Plain::default();
        let (a, x, y, w) = (
            model.tensor(16),
            model.tensor(16),
            model.tensor(16),
            model.tensor(16),
        );
        let (z1, z2) = (model.tensor(32), model.tensor(32));
        let (out1, out2) = (model.tensor(32), model.tensor(32));
        model.op(Op::ABS, &[a], &[x]);
        model.op(Op::NEG, &[a], &[y]);
        model.op(Op::CONCATENATION, &[x, y], &[z1]);
        if second_first {
            model.op(Op::EXP, &[a], &[w]);
            model.op(Op::ABS, &[z1], &[out1]);
        } else {
            model.op(Op::ABS, &[z1], &[out1]);
            model.op(Op::EXP, &[a], &[w]);
        }
        model.op(Op::CONCATENATION, &[x, w], &[z2]);
        model.op(Op::ABS, &[z2], &[out2]);
        model.inputs.push(a);
        model.outputs.extend([out1, out2]);
        Views::new(&model)
    };
    let shared = [0, 64, 128, 128, 64, 64, 256, 384];
    let apart = [0, 64, 128, 512, 64, 576, 256, 384];
    assert!(build(false).is_right(&shared));
    assert!(
        !build(true).is_right(&shared),
        "z1 is read after w is written"
    );
    assert!(build(true).is_right(&apart));
    // The second one where its second slot is on the first one's second, and its first slot on nothing.
    assert!(!build(true).is_right(&[0, 64, 128, 128, 64, 48, 256, 384]));
}

/// Parts of a tensor, one of them reshaped, put together again: nothing is copied at all.
#[test]
fn a_chain_of_views() {
    let mut model = build::Plain::default();
    let a = model.shaped(&[2, 16]);
    let u = model.shaped(&[2, 16]);
    let (p, q) = (model.tensor(16), model.tensor(16));
    let r = model.tensor(16);
    let (z, out) = (model.tensor(32), model.tensor(32));
    model.op(Op::ABS, &[a], &[u]);
    model.op(Op::UNPACK, &[u], &[p, q]);
    model.op(Op::RESHAPE, &[p], &[r]);
    model.op(Op::CONCATENATION, &[r, q], &[z]);
    model.op(Op::NEG, &[z], &[out]);
    model.inputs.push(a);
    model.outputs.push(out);
    let views = Views::new(&model);
    // a, u, p, q, r, z, out
    assert!(views.is_right(&[0, 128, 128, 192, 128, 128, 256]));
    assert!(views.is_right(&[0, 128, 256, 192, 256, 384, 0]));
    assert!(!views.is_right(&[0, 128, 192, 128, 192, 384, 0]), "swapped");
    assert!(
        !views.is_right(&[0, 128, 128, 192, 192, 384, 0]),
        "the second part under the first reshaped"
    );
}

/// A view of a tensor that is written once more is a view of the old value, which is gone.
#[test]
fn a_view_of_a_tensor_that_is_written_again() {
    let build = |again: bool| {
        let mut model = build::Plain::default();
        let (a, t, v, out) = (
            model.tensor(16),
            model.tensor(16),
            model.tensor(16),
            model.tensor(16),
        );
        model.op(Op::ABS, &[a], &[t]);
        model.op(Op::RESHAPE, &[t], &[v]);
        if again {
            model.op(Op::NEG, &[a], &[t]);
        }
        model.op(Op::ABS, &[v], &[out]);
        model.inputs.push(a);
        model.outputs.push(out);
        Views::new(&model)
    };
    assert!(build(false).is_right(&[0, 64, 64, 128]));
    assert!(build(true).is_right(&[0, 64, 128, 192]));
    assert!(!build(true).is_right(&[0, 64, 64, 128]));
}

/// Rows of `x` are taken in two parts with a row in common, and each is made into something else:
///
/// ```text
/// x: rows 0 1 2 3 4 5      first: 0..4   second: 3..6
/// ```
///
/// The order of operators is: x, first, a = f(first), second, b = f(second), [a, b]. Offsets are rows of 16 bytes, of
/// x (from 8 on), first, a, second, b, out; the input `i` is far away.
fn stripes() -> Views {
    let mut model = build::Plain::default();
    let i = model.shaped(&[1, 6, 1, 4]);
    let x = model.made(Op::ABS, &[i]);
    let first = model.slice(x, &[0, 0, 0, 0], &[1, 4, 1, 4]);
    let a = model.made(Op::NEG, &[first]);
    let second = model.slice(x, &[0, 3, 0, 0], &[1, 3, 1, 4]);
    let b = model.made(Op::NEG, &[second]);
    let out = model.join(&[a, b], 1);
    model.inputs.push(i);
    model.outputs.push(out);
    Views::new(&model)
}

#[test]
fn rows_that_were_taken_are_free() {
    let views = stripes();
    let with = |first: u64, a: u64, second: u64, b: u64, out: u64| {
        let rows = [100, 8, first, a, second, b, out];
        views.faults(&rows.map(|row| row * 16))
    };
    // x is at 8..14, and rows 11..14 are needed by the second part.
    let lost = |found: &[Violation], operator: u32, row: u64| {
        let is_lost = |v: &Violation| match v {
            Violation::Overwritten {
                at: Place::Operator(op),
                offset,
                ..
            }
            | Violation::ReadTooLate {
                operator: op,
                offset,
                ..
            } => op.index == operator && *offset == row * 16,
            _ => false,
        };
        assert!(found.iter().any(is_lost), "{found:?}");
    };
    assert_eq!(with(20, 24, 28, 32, 40), [], "all apart");
    assert_eq!(
        with(20, 7, 28, 32, 40),
        [],
        "a over rows that are done with"
    );
    assert_eq!(with(20, 4, 28, 32, 40), [], "and less of them");
    lost(&with(20, 8, 28, 32, 40), 3, 11);
    lost(&with(20, 9, 28, 32, 40), 3, 11);
    assert_eq!(with(20, 14, 28, 32, 40), [], "a behind x");
    lost(&with(20, 13, 28, 32, 40), 3, 13);
    // The parts where they are in x.
    assert_eq!(with(8, 4, 11, 32, 40), [], "two views");
    assert_eq!(with(8, 4, 28, 32, 40), [], "one view");
    lost(&with(8, 12, 28, 32, 40), 3, 12);
    assert_eq!(with(20, 7, 11, 32, 40), [], "the other");
    lost(&with(9, 24, 28, 32, 40), 1, 9);
    assert_eq!(with(20, 24, 7, 32, 40), []);
    // The second part is taken over rows of x that nobody reads then, but not over its own.
    assert_eq!(with(20, 24, 8, 32, 40), []);
    lost(&with(20, 24, 12, 32, 40), 3, 12);
    // b is written when all of x is done with; a is still to be joined.
    assert_eq!(with(20, 7, 28, 11, 40), []);
    lost(&with(20, 7, 28, 10, 40), 5, 10);
    // In their slots, and x over what is not written yet.
    assert_eq!(with(20, 4, 28, 8, 4), []);
    assert_eq!(with(8, 4, 11, 8, 4), []);
    assert_ne!(with(8, 4, 11, 8, 5), [], "a row beside the slots");
    // What is written one operator earlier, when the rows are still to be taken.
    lost(&with(11, 24, 28, 32, 40), 1, 11);
    // The first part over rows that are still to be taken by the second.
    lost(&with(12, 24, 28, 32, 40), 3, 12);
}

/// Bytes that a slice leaves out between those that it takes.
#[test]
fn columns_that_nobody_takes_are_free() {
    let mut model = build::Plain::default();
    let i = model.shaped(&[1, 3, 2, 4]);
    let x = model.made(Op::ABS, &[i]);
    let y = model.shaped(&[1, 1, 1, 4]);
    let small = model.shaped(&[1, 1, 1, 4]);
    model.op(Op::NEG, &[small], &[y]);
    let left = model.slice(x, &[0, 0, 0, 0], &[1, 3, 1, 4]);
    let out = model.made(Op::ABS, &[left]);
    model.inputs.extend([i, small]);
    model.outputs.extend([out, y]);
    let views = Views::new(&model);
    // y lies on a row of the right column of x, which has rows 8, 10 and 12 in the left one.
    for (y, is_right) in [
        (7, true),
        (8, false),
        (9, true),
        (10, false),
        (11, true),
        (13, true),
    ] {
        let rows = [100, 8, y, 50, 20, 30];
        assert_eq!(views.is_right(&rows.map(|row| row * 16)), is_right, "{y}");
    }
    // Too early: what is written before x is gone, wherever x has bytes.
    let mut early = build::Plain::default();
    let i = early.shaped(&[1, 3, 2, 4]);
    let y = early.made(Op::ABS, &[i]);
    let x = early.made(Op::ABS, &[i]);
    let left = early.slice(x, &[0, 0, 0, 0], &[1, 3, 1, 4]);
    let out = early.made(Op::ABS, &[left]);
    early.inputs.push(i);
    early.outputs.extend([out, y]);
    let views = Views::new(&early);
    for (y, is_right) in [(2, true), (4, false), (13, false), (14, true)] {
        let rows = [100, y, 8, 30, 40];
        assert_eq!(views.is_right(&rows.map(|row| row * 16)), is_right, "{y}");
    }
}

/// A reader of all, an output of the graph, and a part that is not constant keep the whole alive.
#[test]
fn who_reads_all_keeps_all() {
    let build = |also: Option<Op>, is_output: bool, is_constant: bool| {
        let mut model = build::Plain::default();
        let i = model.shaped(&[1, 4, 1, 4]);
        let x = model.made(Op::ABS, &[i]);
        let first = model.slice(x, &[0, 0, 0, 0], &[1, 2, 1, 4]);
        if !is_constant {
            model.constants.remove(0);
            let begin = model.ops[1].inputs[1];
            model.inputs.push(begin);
        }
        let a = model.made(Op::NEG, &[first]);
        model.inputs.push(i);
        model.outputs.push(a);
        if let Some(code) = also {
            let all = model.made(code, &[x]);
            model.outputs.push(all);
        }
        model.outputs.extend(is_output.then_some(x));
        (Views::new(&model), is_constant)
    };
    // a on x, from row 8 on.
    let is_right = |(views, is_constant): (Views, bool), a: u64| {
        let mut rows = vec![100, 8, 20, a, 30];
        if !is_constant {
            rows.insert(3, 60);
        }
        let graph = Graph::read(Model::parse(&views.bytes).unwrap()).unwrap();
        rows.truncate(graph.tensors.iter().filter(|t| t.is_planned()).count());
        views.is_right(&rows.iter().map(|row| row * 16).collect::<Vec<_>>())
    };
    for a in [8, 10] {
        assert!(is_right(build(None, false, true), a));
        assert!(!is_right(build(Some(Op::ABS), false, true), a));
        assert!(!is_right(build(None, true, true), a));
        assert!(is_right(build(None, false, false), a), "read before a is");
    }
    // While the operator itself writes, all is still to be read if it may be.
    let overlapping = |(views, is_constant): (Views, bool)| {
        let mut rows = vec![100, 8, 10, 40];
        if !is_constant {
            rows.insert(3, 60);
        }
        views.is_right(&rows.iter().map(|row| row * 16).collect::<Vec<_>>())
    };
    assert!(
        overlapping(build(None, false, true)),
        "on rows that nobody takes"
    );
    assert!(!overlapping(build(None, false, false)));
}

/// What a kernel does in place is right with known kernels, and wrong where any kernel may run.
#[test]
fn in_place_only_with_known_kernels() {
    let mut model = build::Plain::default();
    let (a, b, c) = (model.tensor(16), model.tensor(16), model.tensor(16));
    model.op(Op::ABS, &[a], &[b]);
    model.op(Op::NEG, &[b], &[c]);
    model.inputs.push(a);
    model.outputs.push(c);
    let bytes = model.finish();
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let faults = |libraries: &'static [Library], views_only: bool, offsets: [u64; 3]| {
        let pieces = (0..3).map(|t| Piece {
            tag: Tag::Tensor(TensorId(t)),
            offset: offsets[t as usize],
            bytes: 64,
            align: 4,
        });
        let layout = Layout {
            pieces: pieces.collect(),
            head: 192,
            libraries,
            views_only,
            ..Layout::default()
        };
        check(&graph, &layout)
    };
    let all = Target::Tflm.libraries();
    for (offsets, is_right) in [
        ([0, 0, 0], true),  // in place
        ([8, 4, 0], true),  // each a number lower than its input
        ([0, 4, 8], false), // each a number higher
        ([0, 60, 64], false),
    ] {
        assert_eq!(
            faults(all, false, offsets).is_empty(),
            is_right,
            "{offsets:?}"
        );
        assert!(!faults(all, true, offsets).is_empty(), "{offsets:?}");
        assert!(!faults(&[], false, offsets).is_empty(), "{offsets:?}");
    }
    let found = faults(REFERENCE, false, [0, 4, 68]);
    let fault = Violation::ReadTooLate {
        tensor: TensorId(0),
        operator: OpId {
            subgraph: 0,
            index: 0,
        },
        library: Library::Reference,
        offset: 4,
        by: TensorId(1),
    };
    assert_eq!(found[0], fault);
    let text = "tensor 0 \"t0\" is still being read by operator 0 ABS when tensor 1 \"t1\" is written over it, at byte 4 of the arena \
                (kernels: reference)";
    assert_eq!(fault.describe(&graph), text);
}
