//! What the reference kernels promise, against `tests/contracts.txt`: distances that `tests/oracle/contracts.py` has tried
//! in the real TensorFlow Lite Micro, with the models that this file builds.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

#[path = "common/single.rs"]
mod single;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use arenaplan::contract::{Overlap, between, overlap};
use arenaplan::graph::Graph;
use arenaplan::model::Model;
use arenaplan::target::{Library, Target};
use single::{Single, build, build_planned};

/// How often the operator stands in a model for the oracle: once for each layout that it tries.
const COPIES: usize = 8;

/// A line of the table.
struct Case<'a> {
    line: &'a str,
    promised: Overlap,
    /// Whether one element closer was seen to be wrong, with the input above the output and below it.
    tight: [Tight; 2],
    input: usize,
    output: usize,
    single: Single<'a>,
}

#[derive(Clone, Copy, PartialEq)]
enum Tight {
    /// Wrong results were seen one element closer.
    Yes,
    /// They were not.
    NotSeen,
    /// There is nothing closer.
    Nothing,
}

fn cases() -> Vec<Case<'static>> {
    include_str!("contracts.txt")
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(|line| {
            let mut words = line.splitn(5, ' ').map(str::trim);
            let mut rest = || words.next().unwrap();
            let distance = |text: &str| -> (u64, Tight) {
                let (number, mark) = text.split_at(text.len() - 1);
                let tight = match mark {
                    "!" => Tight::Yes,
                    "?" => Tight::NotSeen,
                    "." => Tight::Nothing,
                    _ => panic!("{line}"),
                };
                (number.parse().unwrap(), tight)
            };
            let ((above, a), (below, b)) = (distance(rest()), distance(rest()));
            let view = rest();
            let (input, output) = rest().split_once('>').unwrap();
            Case {
                line,
                promised: Overlap {
                    input_above_output: above,
                    output_above_input: below,
                    view_at: (view != "-").then(|| view.parse().unwrap()),
                },
                tight: [a, b],
                input: input.parse().unwrap(),
                output: output.parse().unwrap(),
                single: Single::parse(rest()),
            }
        })
        .collect()
}

/// What the row of the case's operator says, after the promise was asked for all libraries.
fn promised(case: &Case<'_>, graph: &Graph<'_>) -> Overlap {
    let op = graph.operators().next().unwrap();
    overlap(Library::Reference, graph, op, case.input, case.output)
}

#[test]
fn rows_say_what_was_tried() {
    let cases = cases();
    assert!(cases.len() > 1000);
    for case in cases {
        let bytes = build(&case.single);
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        assert_eq!(promised(&case, &graph), case.promised, "{}", case.line);
    }
}

#[test]
fn rows_are_tight() {
    // A `memcpy` of overlapping bytes is undefined, but the machine's own gets most of them right; and what is only
    // promised because versions of a kernel differ, the one at hand may not need.
    let undefined = [
        "BATCH_TO_SPACE_ND",
        "BROADCAST_TO",
        "CONCATENATION",
        "GATHER",
        "RESHAPE",
        "RESIZE_NEAREST_NEIGHBOR",
        "SPACE_TO_BATCH_ND",
        "SQUEEZE",
        "STRIDED_SLICE",
    ];
    let mut operators: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for case in cases() {
        let bytes = build(&case.single);
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let op = graph.operators().next().unwrap();
        let from = graph.tensor(op.inputs[case.input].unwrap()).bytes;
        let to = graph.tensor(op.outputs[case.output]).bytes;
        let promised = case.promised;
        let [tight, tried] = operators.entry(case.single.operator).or_default();
        for (mark, promise, all) in [
            (case.tight[0], promised.input_above_output, to),
            (case.tight[1], promised.output_above_input, from),
        ] {
            // A distance of everything is no promise, and nothing needs to go wrong below it.
            *tight += usize::from(mark == Tight::Yes);
            *tried += usize::from(mark == Tight::Yes || promise > 0 && promise < all);
        }
    }
    for (operator, [tight, tried]) in &operators {
        println!("{operator}: {tight} of {tried} wrong one element closer");
        if !undefined.contains(operator) {
            assert!(3 * tight >= 2 * tried, "{operator}");
        }
    }
    assert!(operators.len() > 70);
}

/// The models that `tests/oracle/contracts.py` runs: with `CONTRACT_MODELS`, the name of a folder, they are written there,
/// numbered as the lines of the table, and with them `index.txt`: a line for each with the operator, the promise, the
/// positions, and the bytes of each tensor of its first copy that is planned, 0 for others.
#[test]
fn models_are_planned() {
    let folder = std::env::var_os("CONTRACT_MODELS").map(PathBuf::from);
    let mut index = String::new();
    for (number, case) in cases().iter().enumerate() {
        let bytes = build_planned(&case.single, COPIES);
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let promised = promised(case, &graph);
        let view = promised
            .view_at
            .map_or("-".to_owned(), |view| view.to_string());
        let (above, below) = (promised.input_above_output, promised.output_above_input);
        let (input, output) = (case.input, case.output);
        let operator = case.single.operator;
        write!(index, "{operator} {above} {below} {view} {input} {output}").unwrap();
        for tensor in &graph.tensors {
            let bytes = if tensor.is_planned() { tensor.bytes } else { 0 };
            write!(index, " {bytes}").unwrap();
        }
        index.push('\n');
        if let Some(folder) = &folder {
            std::fs::write(folder.join(format!("{number:05}.tflite")), &bytes).unwrap();
        }
    }
    if let Some(folder) = &folder {
        std::fs::write(folder.join("index.txt"), index).unwrap();
    }
}

/// A graph of one operator.
fn with_graph(line: &str, check: impl Fn(&Graph<'_>)) {
    let bytes = build(&Single::parse(line));
    check(&Graph::read(Model::parse(&bytes).unwrap()).unwrap());
}

#[test]
fn every_position_of_a_tensor_counts() {
    // The sum of a tensor and itself: positions 0 and 1 are one tensor in the second graph.
    let line = "ADD f32:2,3 f32:3 > f32:2,3 fused_activation_function=0";
    with_graph(line, |graph| {
        let op = graph.operators().next().unwrap();
        let promise = |input| overlap(Library::Reference, graph, op, input, 0);
        assert_eq!(promise(0).input_above_output, 0);
        // The last row reads all of it again.
        assert_eq!(promise(1).input_above_output, 12);
        let mut twice = op.clone();
        twice.inputs[1] = twice.inputs[0];
        let (from, to) = (op.inputs[0].unwrap(), op.outputs[0]);
        let target = Target::TflmReference;
        assert_eq!(between(target, graph, op, from, to), promise(0));
        // The shapes are equal now, so that nothing is read twice.
        assert_eq!(between(target, graph, &twice, from, to), promise(0));
    });
    let line = "CONCATENATION i8:1,2/1 i8:1,2/1 > i8:1,4/1 axis=1";
    with_graph(line, |graph| {
        let op = graph.operators().next().unwrap();
        let (from, to) = (op.inputs[0].unwrap(), op.outputs[0]);
        let target = Target::TflmReference;
        assert_eq!(between(target, graph, op, from, to).view_at, Some(0));
        let mut twice = op.clone();
        twice.inputs[1] = twice.inputs[0];
        let both = between(target, graph, &twice, from, to);
        // It cannot lie in both places at once.
        assert_eq!(both.view_at, None);
        assert_eq!(both.input_above_output, 4);
    });
}

#[test]
fn any_library_keeps_views_and_nothing_else() {
    for case in cases() {
        with_graph(case.line.splitn(5, ' ').last().unwrap(), |graph| {
            let op = graph.operators().next().unwrap();
            let (from, to) = (op.inputs[case.input].unwrap(), op.outputs[case.output]);
            let (size_in, size_out) = (graph.tensor(from).bytes, graph.tensor(to).bytes);
            let promise = between(Target::Tflm, graph, op, from, to);
            let none = Overlap::none(size_in, size_out);
            assert_eq!(
                (promise.input_above_output, promise.output_above_input),
                (none.input_above_output, none.output_above_input),
                "{}",
                case.line
            );
            let copies = match case.single.operator {
                "RESHAPE" | "SQUEEZE" | "EXPAND_DIMS" | "CONCATENATION" | "PACK" | "SPLIT"
                | "SPLIT_V" | "UNPACK" | "SLICE" => true,
                "STRIDED_SLICE" => !case.single.outputs[0].starts_with("i16"),
                _ => false,
            };
            let view = case.promised.view_at.filter(|_| copies);
            assert_eq!(promise.view_at, view, "{}", case.line);
        });
    }
}

#[test]
fn nothing_is_promised_of_tensors_outside_the_arena() {
    // A constant operand, an absent one, and an operator without a row.
    for (line, input) in [
        (
            "ADD i8:2/1 i8:2/1!1 > i8:2/1 fused_activation_function=0",
            1,
        ),
        ("FULLY_CONNECTED i8:1,3/1 i8:2,3/1!1 - > i8:1,2/1", 2),
        ("SUM f32:2,3 i32:1!1 > f32:2 keep_dims=false", 0),
        // float32 and int16 share no bytes in a compiler's eyes.
        ("QUANTIZE f32:4 > i16:4/1", 0),
    ] {
        with_graph(line, |graph| {
            let op = graph.operators().next().unwrap();
            let bytes = |t| graph.tensor(t).bytes;
            let from = op.inputs[input].map_or(0, bytes);
            let promise = overlap(Library::Reference, graph, op, input, 0);
            assert_eq!(promise, Overlap::none(from, bytes(op.outputs[0])), "{line}");
        });
    }
}

/// The oracle cannot try SPACE_TO_BATCH_ND with padding, for TFLM never sets what it pads with. So pixel by pixel:
#[test]
fn padding_of_space_to_batch_is_written_too() {
    let mut state = 3u64;
    let mut random = |n: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((state >> 33) as usize % n) as i64
    };
    for _ in 0..300 {
        let (n, h, w, c) = (1 + random(2), 1 + random(5), 1 + random(5), 1 + random(2));
        let (block_h, block_w, top, left) = (1 + random(3), 1 + random(3), random(3), random(3));
        let fill =
            |size: i64, block: i64, more: i64| (size + block - 1) / block * block + more * block;
        let padded_h = fill(h + top, block_h, random(2));
        let padded_w = fill(w + left, block_w, random(2));
        let (oh, ow) = (padded_h / block_h, padded_w / block_w);
        let (bottom, right) = (padded_h - h - top, padded_w - w - left);
        // What each pixel of the output is copied from, in the order of the output.
        let mut copies = Vec::new();
        for batch in 0..n * block_h * block_w {
            let shift = batch / n;
            for (y, x) in (0..oh).flat_map(|y| (0..ow).map(move |x| (y, x))) {
                let from_y = y * block_h + shift / block_w - top;
                let from_x = x * block_w + shift % block_w - left;
                let inside = (0..h).contains(&from_y) && (0..w).contains(&from_x);
                copies.push(inside.then_some(((batch % n * h + from_y) * w + from_x) * c));
            }
        }
        let (mut above, mut below) = (0, 0);
        for at in 0..copies.len() {
            let write = at as i64 * c;
            for read in copies[at..].iter().flatten() {
                above = above.max(write + c - read);
                below = below.max(read + c - write);
            }
        }
        let line = format!(
            "SPACE_TO_BATCH_ND i8:{n},{h},{w},{c}/1 i32:2!{block_h},{block_w} i32:2,2!{top},{bottom},{left},{right} > \
             i8:{},{oh},{ow},{c}/1",
            n * block_h * block_w
        );
        with_graph(&line, |graph| {
            let op = graph.operators().next().unwrap();
            let promise = overlap(Library::Reference, graph, op, 0, 0);
            let to = graph.tensor(op.outputs[0]).bytes;
            let from = graph.tensor(op.inputs[0].unwrap()).bytes;
            assert_eq!(promise.input_above_output, (above as u64).min(to), "{line}");
            assert_eq!(
                promise.output_above_input,
                (below as u64).min(from),
                "{line}"
            );
        });
    }
}

#[test]
fn absurd_shapes_and_options_are_harmless() {
    let mut state = 7u64;
    let mut random = |n: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % n
    };
    let dims = [
        "0",
        "1",
        "2",
        "3",
        "7",
        "200",
        "65535",
        "300000",
        "-1",
        "2147483647",
    ];
    let values = ["0", "1", "-1", "2", "-7", "2147483647", "-2147483648"];
    let mut read = 0;
    for case in cases() {
        for _ in 0..4 {
            let mut line = vec![case.single.operator.to_owned()];
            let mut change = |text: &str, choices: &[&str], list: bool| {
                let parts = text.split(',').map(|part| match random(4) {
                    0 if !part.is_empty() => choices[random(choices.len())],
                    _ => part,
                });
                let mut parts: Vec<&str> = parts.collect();
                if list && random(12) == 0 {
                    parts.pop();
                }
                parts.join(",")
            };
            let (inputs, outputs) = (case.single.inputs.iter(), case.single.outputs.iter());
            for &text in inputs.chain([&">"]).chain(outputs) {
                line.push(match (text.split_once(':'), text.split_once('!')) {
                    // The numbers of a constant, but not how many: the file would be as large.
                    (_, Some((plain, numbers))) if numbers != "r" => {
                        format!("{plain}!{}", change(numbers, &values, false))
                    }
                    (Some((ty, rest)), None) => {
                        let end = rest.find(['/', '~']).unwrap_or(rest.len());
                        format!("{ty}:{}{}", change(&rest[..end], &dims, true), &rest[end..])
                    }
                    _ => text.to_owned(),
                });
            }
            for (name, value) in &case.single.options {
                let whole = value.parse::<i32>().is_ok() && !name.contains("fused");
                let value = if whole {
                    change(value, &values, false)
                } else {
                    (*value).to_owned()
                };
                let value = if ["padding", "mode"].contains(name) {
                    "1".to_owned()
                } else {
                    value
                };
                line.push(format!("{name}={value}"));
            }
            let line = line.join(" ");
            let bytes = build(&Single::parse(&line));
            let Ok(graph) = Graph::read(Model::parse(&bytes).unwrap()) else {
                continue;
            };
            read += 1;
            let op = graph.operators().next().unwrap();
            for (input, output) in
                (0..op.inputs.len()).flat_map(|i| (0..op.outputs.len()).map(move |o| (i, o)))
            {
                let Some(from) = op.inputs[input] else {
                    continue;
                };
                let promise = overlap(Library::Reference, &graph, op, input, output);
                assert!(
                    promise.input_above_output <= graph.tensor(op.outputs[output]).bytes,
                    "{line}"
                );
                assert!(
                    promise.output_above_input <= graph.tensor(from).bytes,
                    "{line}"
                );
                if let Some(view) = promise.view_at {
                    let (size_in, size_out) = (
                        graph.tensor(from).bytes as i64,
                        graph.tensor(op.outputs[output]).bytes as i64,
                    );
                    assert!(-size_in < view && view < size_out, "{line}");
                }
            }
        }
    }
    assert!(read > 2000, "{read}");
}
