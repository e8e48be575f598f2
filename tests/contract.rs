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

use arenaplan::contract::{Overlap, overlap};
use arenaplan::graph::Graph;
use arenaplan::model::Model;
use arenaplan::target::Library;
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
