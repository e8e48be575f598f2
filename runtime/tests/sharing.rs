//! Small graphs with tensors that share bytes for a reason, or for none.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

#[path = "../../tests/common/build.rs"]
mod build;
mod common;
#[path = "common/planned.rs"]
mod planned;

use arenaplan_runtime::Error;
use arenaplan_runtime::schema::tflite::BuiltinOperator as Code;
use build::{Op, Plain};
use planned::{Outcome, Planned};

/// A graph, and the tensors that are placed on purpose; all others lie apart.
struct Graph(Plain);

impl Graph {
    fn new() -> Self {
        Graph(Plain::default())
    }

    fn input(&mut self, shape: &[i32]) -> i32 {
        let tensor = self.0.shaped(shape);
        self.0.inputs.push(tensor);
        tensor
    }

    fn op(&mut self, code: Code, inputs: &[i32], shape: &[i32]) -> i32 {
        let output = self.0.shaped(shape);
        self.0.op(code, inputs, &[output]);
        output
    }

    fn unpack(&mut self, input: i32, count: usize, shape: &[i32]) -> Vec<i32> {
        let outputs: Vec<i32> = (0..count).map(|_| self.0.shaped(shape)).collect();
        self.0.op(Code::UNPACK, &[input], &outputs);
        outputs
    }

    fn output(&mut self, tensor: i32) {
        self.0.outputs.push(tensor);
    }

    /// Runs with the tensors at offsets above a free place.
    fn run(&self, placed: &[(i32, usize)]) -> (Outcome, Outcome) {
        let mut model = Planned::new(&self.0.finish());
        let mut offsets = model.slots();
        let free = model.planned().len() * model.slot();
        for &(tensor, above) in placed {
            offsets[tensor as usize] = (free + above) as i32;
        }
        (model.run(&offsets), model.run_plain())
    }

    fn accepts(&self, placed: &[(i32, usize)]) {
        let (found, expected) = self.run(placed);
        assert!(matches!(expected, Outcome::Ran(Ok(_))), "{expected:?}");
        assert_eq!(found, expected);
    }

    /// The two are named.
    fn refuses(&self, placed: &[(i32, usize)], first: i32, second: i32) {
        let (first, second) = (first as u32, second as u32);
        let (found, _) = self.run(placed);
        assert_eq!(
            found,
            Outcome::Refused(Error::PlanOverlap { first, second })
        );
    }
}

#[test]
fn an_output_of_the_graph_is_not_taken_over() {
    let mut graph = Graph::new();
    let x = graph.input(&[8]);
    let a = graph.op(Code::RELU, &[x], &[8]);
    let b = graph.op(Code::NEG, &[a], &[8]);
    graph.output(b);
    graph.accepts(&[(x, 0), (a, 0), (b, 0)]);
    graph.output(a);
    graph.accepts(&[(x, 0), (a, 0)]);
    graph.refuses(&[(a, 0), (b, 0)], a, b);
}

#[test]
fn a_tensor_that_is_read_later_is_not_taken_over() {
    let mut graph = Graph::new();
    let x = graph.input(&[8]);
    let a = graph.op(Code::NEG, &[x], &[8]);
    let b = graph.op(Code::ADD, &[a, x], &[8]);
    graph.output(b);
    graph.refuses(&[(x, 0), (a, 0)], x, a);
    graph.accepts(&[(x, 0), (b, 0)]);
    graph.accepts(&[(a, 0), (b, 0)]);
    graph.accepts(&[(a, 16), (b, 0)]);
    graph.refuses(&[(a, 0), (b, 16)], a, b);
    // Both operands partly.
    graph.accepts(&[(a, 16), (x, 48), (b, 0)]);
    graph.accepts(&[(a, 48), (x, 16), (b, 0)]);
}

#[test]
fn every_position_of_a_tensor_counts() {
    let mut graph = Graph::new();
    let x = graph.input(&[4]);
    let a = graph.op(Code::NEG, &[x], &[4]);
    let both = graph.op(Code::CONCATENATION, &[a, a], &[8]);
    graph.output(both);
    // At its first place; at its second one, which the first copy does not touch.
    graph.accepts(&[(a, 0), (both, 0)]);
    graph.accepts(&[(a, 16), (both, 0)]);
    graph.accepts(&[(a, 20), (both, 0)]);
    graph.refuses(&[(a, 4), (both, 0)], a, both);
    graph.refuses(&[(a, 0), (both, 4)], a, both);
}

#[test]
fn views_of_views_share_bytes_for_as_long_as_they_are_in_use() {
    let mut graph = Graph::new();
    let (x, y) = (graph.input(&[4]), graph.input(&[4]));
    let a = graph.op(Code::NEG, &[x], &[4]);
    let b = graph.op(Code::RESHAPE, &[a], &[2, 2]);
    let c = graph.op(Code::RESHAPE, &[b], &[4]);
    let d = graph.op(Code::CONCATENATION, &[c, y], &[8]);
    let e = graph.op(Code::RESHAPE, &[d], &[2, 4]);
    let parts = graph.unpack(e, 2, &[4]);
    let sum = graph.op(Code::ADD, &[a, parts[1]], &[4]);
    for output in [b, parts[0], sum] {
        graph.output(output);
    }
    let all = [
        (a, 0),
        (b, 0),
        (c, 0),
        (d, 0),
        (e, 0),
        (parts[0], 0),
        (parts[1], 16),
    ];
    graph.accepts(&all);
    // One that is elsewhere breaks the chain.
    let without = |tensor: i32| -> Vec<(i32, usize)> {
        let all = all.iter().copied();
        all.filter(|&(t, _)| t != tensor).collect()
    };
    graph.refuses(&without(c), a, d);
    graph.refuses(&without(d), a, e);
    graph.accepts(&without(parts[1]));
    // The second part in the place of the first: all that share these bytes are in use.
    let mut wrong = without(parts[1]);
    wrong.push((parts[1], 0));
    graph.refuses(&wrong, a, parts[1]);
    // The sum replaces what is no longer in use, but not what is an output.
    let mut taken = all.to_vec();
    taken.push((sum, 16));
    graph.accepts(&taken);
    taken.pop();
    taken.push((sum, 0));
    graph.refuses(&taken, b, sum);
}

#[test]
fn a_chain_has_all_bytes_that_its_ends_share() {
    let mut graph = Graph::new();
    let (x, y) = (graph.input(&[2, 4]), graph.input(&[4]));
    let a = graph.op(Code::NEG, &[x], &[2, 4]);
    let parts = graph.unpack(a, 2, &[4]);
    let first = graph.op(Code::CONCATENATION, &[parts[0], y], &[8]);
    let second = graph.op(Code::CONCATENATION, &[y, parts[0]], &[8]);
    for output in [a, parts[1], first, second] {
        graph.output(output);
    }
    // The second half of `first` is `y`, not the second part.
    graph.refuses(&[(a, 16), (parts[0], 16), (first, 16)], a, first);
    // Here the two share the part alone.
    graph.accepts(&[(a, 16), (parts[0], 16), (second, 0)]);
    graph.refuses(&[(a, 16), (second, 0)], a, second);
    graph.refuses(&[(a, 16), (parts[0], 16), (second, 4)], a, second);
}

#[test]
fn a_view_of_a_tensor_with_two_writers_is_a_copy() {
    let mut graph = Graph::new();
    let (x, y) = (graph.input(&[4]), graph.input(&[4]));
    let a = graph.op(Code::NEG, &[x], &[4]);
    let b = graph.op(Code::RESHAPE, &[a], &[2, 2]);
    graph.0.ops.push(Op {
        code: Code::ABS,
        inputs: vec![y],
        outputs: vec![a],
        axis: 0,
    });
    let sum = graph.op(Code::SUB, &[a, b], &[2, 2]);
    graph.0.shapes[sum as usize] = vec![4];
    graph.0.shapes[b as usize] = vec![4];
    graph.output(sum);
    graph.accepts(&[]);
    graph.refuses(&[(a, 0), (b, 0)], a, b);
    graph.refuses(&[(x, 0), (a, 0)], x, a);
}

#[test]
fn a_view_of_an_input_that_is_written_later_is_a_copy() {
    let mut graph = Graph::new();
    let x = graph.input(&[4]);
    let a = graph.0.shaped(&[4]);
    let b = graph.op(Code::RESHAPE, &[a], &[4]);
    graph.0.op(Code::NEG, &[x], &[a]);
    let sum = graph.op(Code::ADD, &[a, b], &[4]);
    graph.output(sum);
    graph.refuses(&[(a, 0), (b, 0)], a, b);
}

#[test]
fn a_view_of_an_input_of_the_graph() {
    let mut graph = Graph::new();
    let x = graph.input(&[4]);
    let a = graph.op(Code::RESHAPE, &[x], &[2, 2]);
    let b = graph.op(Code::NEG, &[a], &[2, 2]);
    let c = graph.op(Code::RELU, &[x], &[4]);
    for output in [b, c] {
        graph.output(output);
    }
    graph.accepts(&[(x, 0), (a, 0), (c, 0)]);
    // `a` is not read again, but `x` is.
    graph.refuses(&[(x, 0), (a, 0), (b, 0)], x, b);
}

/// What the device places on top of a tensor between two multiples of 16 is aligned nevertheless.
#[test]
fn a_plan_with_odd_offsets_leaves_aligned_places() {
    let file = std::fs::read(common::testdata("models/two_inputs_int8.tflite")).unwrap();
    let mut model = Planned::new(&file);
    let expected = model.run_plain();
    for odd in [1, 5, 49] {
        let mut offsets = vec![-1; model.bytes.len()];
        offsets[0] = odd;
        assert_eq!(model.run(&offsets), expected, "{odd}");
    }
}

#[test]
fn neighbours_may_share_what_rounding_adds() {
    let mut graph = Graph::new();
    let (x, y) = (graph.input(&[3]), graph.input(&[3]));
    let a = graph.op(Code::CONCATENATION, &[x, y], &[6]);
    graph.output(a);
    graph.accepts(&[(x, 0), (y, 12), (a, 0)]);
    graph.accepts(&[(x, 0), (y, 12), (a, 24)]);
    graph.refuses(&[(x, 0), (y, 8)], x, y);
}
