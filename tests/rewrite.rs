//! Files in which operators of this tool stand in the place of others: they compute the same, and say where they come from.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail, and says what it leaves out"
)]

#[path = "common/build.rs"]
mod build;
mod common;
#[path = "../schema/tests/models/stripes.rs"]
mod stripes;

use arenaplan::check::order::{Difference, compare, is_same};
use arenaplan::execute::{self, Feed, Setting};
use arenaplan::export::{Export, Name, shim};
use arenaplan::graph::{Graph, Origin};
use arenaplan::inspect::inspect;
use arenaplan::model::Model;
use arenaplan::plan::{Options, plan};
use arenaplan::scratch::Scratch;
use arenaplan::stored::StoredPlan;
use arenaplan::target::Library;
use arenaplan_schema::patch::{Edit, NewOperator, NewTensor, OperatorOrder, Rewrite, graft, strip};
use arenaplan_schema::tflite::BuiltinOperator as Op;
use build::Plain;

fn graph(bytes: &[u8]) -> Graph<'_> {
    Graph::read(Model::parse(bytes).unwrap()).unwrap()
}

fn original() -> Vec<u8> {
    std::fs::read(common::root("testdata/models").join(stripes::MODEL)).unwrap()
}

fn striped(rewrite: Rewrite) -> Edit {
    Edit {
        rewrite: vec![rewrite],
        ..Edit::default()
    }
}

/// The second stripe first, and each tensor at a place of its own.
fn planned(original: &[u8], rewrite: Rewrite) -> Vec<u8> {
    let mut edit = striped(rewrite);
    edit.operator_order = vec![OperatorOrder {
        subgraph: 0,
        order: vec![3, 4, 5, 6, 0, 1, 2, 7, 8, 9, 10, 11, 12],
    }];
    let file = graft(original, &edit).unwrap();
    let mut end = 0;
    let unplanned = graph(&file);
    let offsets = unplanned.tensors.iter().map(|tensor| {
        if !tensor.is_planned() {
            return -1;
        }
        let offset = end;
        end += tensor.bytes.next_multiple_of(16) as i32;
        offset
    });
    edit.plan = Some(offsets.collect());
    graft(original, &edit).unwrap()
}

/// The first row of the second stripe is wrong, and is taken for a right one.
fn a_row_off() -> Rewrite {
    let mut rewrite = stripes::rewrite();
    let NewTensor::Constant { values, .. } = &mut rewrite.added[10] else {
        panic!("tensor 26 is where the last slice begins");
    };
    assert_eq!(values[1], 1);
    values[1] = 0;
    rewrite
}

#[test]
fn stripes_compute_what_the_whole_does() {
    let original = original();
    let setting = Setting {
        feed: Feed::Noise(5),
        invokes: 8,
        ..Setting::default()
    };
    let compared = |file: &[u8]| execute::compare(file, &original, &setting).unwrap();
    let file = graft(&original, &striped(stripes::rewrite())).unwrap();
    let planned_file = planned(&original, stripes::rewrite());
    for file in [&file, &planned_file] {
        let found = compared(file);
        assert_eq!(found.difference, None);
        assert!(found.vary);
    }
    assert!(
        compared(&planned(&original, a_row_off()))
            .difference
            .is_some()
    );
    assert!(execute::without_plan(&planned_file).unwrap() == original);
}

#[test]
fn operators_say_where_they_come_from() {
    let bytes = original();
    let file = graft(&bytes, &striped(stripes::rewrite())).unwrap();
    let striped = graph(&file);
    let found: Vec<(u32, Origin)> = striped
        .operators()
        .map(|op| (op.original, op.origin))
        .collect();
    use Origin::{Added, Copy, File};
    let expected = [
        (0, Added),
        (0, Copy),
        (1, Copy),
        (3, Added),
        (0, Copy),
        (5, Added),
        (1, Copy),
        (7, Added),
        (2, File),
        (3, File),
        (4, File),
        (5, File),
        (6, File),
    ];
    assert_eq!(found, expected);
    let labels: Vec<String> = [3, 4, 8]
        .map(|k| striped.subgraphs[0].operators[k].label())
        .to_vec();
    assert_eq!(
        labels,
        [
            "operator 3 SLICE",
            "operator 4 CONV_2D (a part of 0 before planning)",
            "operator 8 CONV_2D (2 before planning)"
        ]
    );
    assert!(striped.is_rewritten() && !striped.is_reordered());
    let other_order = planned(&bytes, stripes::rewrite());
    assert!(!graph(&other_order).is_reordered(), "only copies moved");

    let before = striped.in_original_order();
    let (before, was) = (before.as_ref(), graph(&bytes));
    assert!(!was.is_rewritten() && !before.is_rewritten());
    let names = |graph: &Graph<'_>| -> Vec<String> {
        let operators = graph.operators();
        operators
            .map(|op| format!("{} {:?} {:?}", op.label(), op.inputs, op.outputs))
            .collect()
    };
    assert_eq!(names(before), names(&was));
}

/// Operators without options are told apart by what else they have.
#[test]
fn copies_that_cannot_be_told_apart_are_added() {
    let mut model = Plain::default();
    let all: Vec<i32> = (0..8).map(|_| model.tensor(8)).collect();
    model.op(Op::RELU, &[all[0]], &[all[1]]);
    model.op(Op::RELU, &[all[1]], &[all[2]]);
    model.op(Op::ABS, &[all[2]], &[all[3]]);
    model.op(Op::PRELU, &[all[3], all[6]], &[all[4]]);
    model.op(Op::PRELU, &[all[4], all[7]], &[all[5]]);
    model.inputs = vec![all[0], all[6], all[7]];
    model.outputs = vec![all[5]];
    let copy = |original, inputs: &[i32], output| NewOperator::Like {
        original,
        inputs: inputs.to_vec(),
        outputs: vec![output],
    };
    let rewrite = Rewrite {
        operators: vec![
            copy(0, &[0], 1),
            copy(1, &[1], 2),
            copy(2, &[2], 3),
            copy(3, &[3, 6], 4),
            copy(4, &[4, 7], 5),
        ],
        ..Rewrite::default()
    };
    let file = graft(&model.finish(), &striped(rewrite)).unwrap();
    let found = graph(&file);
    let origins: Vec<_> = found
        .operators()
        .map(|op| (op.original, op.origin))
        .collect();
    use Origin::{Added, Copy};
    let expected = [(0, Added), (1, Added), (2, Copy), (3, Copy), (4, Copy)];
    assert_eq!(origins, expected);
}

#[test]
fn the_check_of_orders_knows_new_operators_again() {
    let bytes = original();
    let first = graft(&bytes, &striped(stripes::rewrite())).unwrap();
    let second = planned(&bytes, stripes::rewrite());
    assert_ne!(first.len(), second.len());
    let (first, second) = (graph(&first), graph(&second));
    assert_eq!(compare(&first, &second), []);
    assert!(!is_same(&first, &second));
    let mut edit = striped(stripes::rewrite());
    edit.plan = Some(vec![-1; 28]);
    let again = graft(&bytes, &edit).unwrap();
    assert!(is_same(&first, &graph(&again)));

    // Other constants, another axis, another operator copied: other operators, though all else is the same.
    let other = [Difference::NotThoseOperators { subgraph: 0 }];
    let file = graft(&bytes, &striped(a_row_off())).unwrap();
    assert_eq!(compare(&first, &graph(&file)), other);
    let mut rewrite = stripes::rewrite();
    let NewOperator::Concatenation { axis, .. } = &mut rewrite.operators[7] else {
        panic!("operator 7 is the CONCATENATION");
    };
    *axis = -3;
    let file = graft(&bytes, &striped(rewrite)).unwrap();
    assert_eq!(compare(&first, &graph(&file)), other);
    let mut rewrite = stripes::rewrite();
    let NewOperator::Like { original, .. } = &mut rewrite.operators[4] else {
        panic!("operator 4 is a CONV_2D");
    };
    // It has the same options, in a table of its own.
    *original = 2;
    let file = graft(&bytes, &striped(rewrite)).unwrap();
    assert_eq!(compare(&first, &graph(&file)), other);
    // Not a word of what is different in the model without stripes.
    assert_eq!(compare(&graph(&bytes), &first), other);
}

#[test]
fn figures_without_a_plan_are_of_the_original() {
    let bytes = original();
    let options = Options::default();
    let whole = inspect(&graph(&bytes), &options).unwrap();
    let file = planned(&bytes, stripes::rewrite());
    let seen = inspect(&graph(&file), &options).unwrap();
    // As the wheel says: 2816 bytes.
    assert_eq!(whole.report.greedy_head_bytes, 2816);
    assert_eq!(seen.report.greedy_head_bytes, 2816);
    assert!(seen.stored.is_right(), "{:?}", seen.stored.faults);
    assert_eq!(seen.report.tensors_planned, 14);
    // Without offsets the device places the tensors that are there: 2608 bytes, as the wheel says.
    let file = graft(&bytes, &striped(stripes::rewrite())).unwrap();
    let seen = inspect(&graph(&file), &options).unwrap();
    assert_eq!(seen.report.greedy_head_bytes, 2816);
    assert_eq!(seen.report.head_bytes, 2608);
    let placed = seen.offsets.iter().flatten().count();
    assert_eq!(placed, 14);
}

#[test]
fn planning_and_stripping_start_from_the_original() {
    let bytes = original();
    let file = planned(&bytes, stripes::rewrite());
    assert!(strip(&file).unwrap() == bytes);
    let options = Options::default();
    let [from_file, from_original] = [&file, &bytes].map(|bytes| plan(bytes, &options).unwrap());
    assert!(from_file.file == from_original.file);
}

#[test]
fn the_model_for_the_shim_is_rewritten_too() {
    let bytes = original();
    let file = planned(&bytes, stripes::rewrite());
    let name = Name::new("m").unwrap();
    let export = Export::new(&file, &Options::default(), name).unwrap();
    let model = shim::model(&export).unwrap();
    let (found, wanted) = (graph(&model), graph(&file));
    let operators = |graph: &Graph<'_>| -> Vec<_> {
        let operators = graph.operators();
        operators
            .map(|op| (op.code, op.inputs.clone(), op.outputs.clone()))
            .collect()
    };
    assert_eq!(operators(&found), operators(&wanted));
    assert!(StoredPlan::read(&found) == StoredPlan::Absent);
    let setting = Setting {
        feed: Feed::Noise(5),
        ..Setting::default()
    };
    let compared = execute::compare(&model, &bytes, &setting).unwrap();
    assert_eq!(compared.difference, None);
}

/// A scratch file names the operators of the original: it serves for the parts of a layer, and not for what was added.
#[test]
fn measured_scratch_is_of_the_layers_of_the_original() {
    let file = graft(&original(), &striped(stripes::rewrite())).unwrap();
    let text = "0 64\n3 100\n5 7 9\n";
    let scratch = Scratch::with_file(Library::Reference, &graph(&file), text).unwrap();
    let found: Vec<(u32, u64)> = scratch
        .requests()
        .iter()
        .map(|request| (request.operator.index, request.bytes))
        .collect();
    // Two parts of operator 0; operators 3 and 5 are at 9 and 11 now, and SLICEs where they were.
    assert_eq!(found, [(1, 64), (4, 64), (9, 100), (11, 7), (11, 9)]);
}
