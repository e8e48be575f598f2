//! What TFLM's kernels keep and need, operator by operator: predictions against `tests/kernels.txt`, recorded from the
//! real TensorFlow Lite Micro by `tests/oracle/kernels.py`, which runs the models that this file builds.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;
#[path = "common/single.rs"]
mod single;

use std::path::PathBuf;

use arenaplan::graph::Graph;
use arenaplan::lifetimes::Lifetimes;
use arenaplan::model::Model;
use arenaplan::scratch::Scratch;
use arenaplan::tflm::room::arena_bytes;
use arenaplan::tflm::simulate;
use arenaplan::tflm::tail::{Width, known_in_tflm, tail_bytes};
use arenaplan_schema::tflite::TensorType;
use single::{Single, build};

/// A line of the table.
struct Case<'a> {
    line: &'a str,
    head: u64,
    tail_64: u64,
    arena_64: u64,
    tail_32: u64,
    arena_32: u64,
    single: Single<'a>,
}

fn cases() -> Vec<Case<'static>> {
    include_str!("kernels.txt")
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(case)
        .collect()
}

fn case(line: &str) -> Case<'_> {
    let mut rest = line;
    let mut number = || {
        let (word, after) = rest.trim_start().split_once(' ').unwrap();
        rest = after;
        word.parse().unwrap()
    };
    let [head, tail_64, arena_64, tail_32, arena_32] = std::array::from_fn(|_| number());
    Case {
        line,
        head,
        tail_64,
        arena_64,
        tail_32,
        arena_32,
        single: Single::parse(rest),
    }
}

/// Runs `check` on every case, with its graph and its scratch requests.
fn each(check: impl Fn(&Case<'_>, &Graph<'_>, &Scratch)) {
    let cases = cases();
    assert!(cases.len() > 100);
    for case in cases {
        let bytes = build(&case.single);
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        check(&case, &graph, &Scratch::reference(&graph));
    }
}

/// The models that `tests/oracle/kernels.py` runs: with `KERNEL_MODELS`, the name of a folder, they are written there,
/// numbered as the lines of the table.
#[test]
fn models_are_whole() {
    let folder = std::env::var_os("KERNEL_MODELS").map(PathBuf::from);
    for (index, case) in cases().iter().enumerate() {
        let bytes = build(&case.single);
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        // TFLM takes a constant to be as long as its shape says, and reads on behind a short one.
        for tensor in &graph.tensors {
            if let Some(data) = graph.model.buffer_data(tensor.table.buffer()) {
                // TFLM counts a byte for each INT4, of which the file has two in one.
                let bytes = match tensor.ty {
                    TensorType::INT4 => tensor.bytes.div_ceil(2),
                    _ => tensor.bytes,
                };
                assert_eq!(data.len() as u64, bytes, "{}", case.line);
            }
        }
        if let Some(folder) = &folder {
            let name = format!("{index:03}_{}.tflite", case.single.operator);
            std::fs::write(folder.join(name), &bytes).unwrap();
        }
    }
}

#[test]
fn scratch_makes_the_head_what_tflm_reports() {
    each(|case, graph, scratch| {
        let head = simulate(graph, &Lifetimes::of(graph).unwrap(), scratch, None)
            .unwrap()
            .head;
        // A pointer has 8 bytes there; so do those that ADD_N asks room for.
        assert_eq!(head, case.head, "{}", case.line);
    });
}

#[test]
fn tail_is_what_tflm_reports() {
    each(|case, graph, _| {
        assert_eq!(
            tail_bytes(graph, Width::Bits64).bytes,
            case.tail_64,
            "{}",
            case.line
        );
        let tail = tail_bytes(graph, Width::Bits32);
        assert_eq!(tail.bytes, case.tail_32, "32 bits: {}", case.line);
        let sections = tail.allocator
            + tail.resource_table
            + tail.tensors
            + tail.operators
            + tail.options
            + tail.kernels
            + tail.scratch_handles
            + tail.variables
            + tail.inputs_and_outputs;
        assert_eq!(sections, tail.bytes, "{}", case.line);
    });
}

#[test]
fn arena_is_the_smallest_that_works_or_a_little_more() {
    // TFLM does not notice when what a kernel keeps grows into the temporaries above it, and runs on; so the smallest
    // arena that "works" may be too small by as much.
    let range = |smallest: u64| smallest..=smallest + 48;
    each(|case, graph, scratch| {
        let arena = arena_bytes(graph, case.head, scratch, Width::Bits64);
        assert!(
            range(case.arena_64).contains(&arena),
            "{arena}: {}",
            case.line
        );
        let arena = arena_bytes(graph, case.head, scratch, Width::Bits32);
        // The head there has room for larger pointers.
        let smallest = case.arena_32;
        assert!(
            (smallest..=smallest + 48).contains(&arena),
            "32 bits, {arena}: {}",
            case.line
        );
    });
}

#[test]
fn every_operator_of_the_table_is_known_and_no_other() {
    each(|case, graph, _| {
        let operator = graph.operators().next().unwrap();
        assert!(known_in_tflm(operator), "{}", case.line);
        assert_eq!(tail_bytes(graph, Width::Bits64).unknown_operators, []);
    });
    // TFLM has no kernel for these.
    for name in ["TILE", "LSTM", "SignalUnheardOf"] {
        let line = format!("0 0 0 0 0 {name} f32:4 > f32:4");
        let bytes = build(&case(&line).single);
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let operator = graph.operators().next().unwrap();
        assert!(!known_in_tflm(operator));
        assert_eq!(
            tail_bytes(&graph, Width::Bits64).unknown_operators,
            [operator.id]
        );
        // What the package needed for an operator without options and data (ROUND, one input, one output).
        assert_eq!(tail_bytes(&graph, Width::Bits64).bytes, 752);
    }
}

#[test]
fn absurd_options_do_not_overflow() {
    let huge = i32::MAX;
    for name in [
        "SignalRfft",
        "SignalFramer",
        "SignalDelay",
        "SignalStacker",
        "SignalFilterBank",
    ] {
        for options in [[huge, huge, huge, huge], [-1; 4], [0; 4], [7, huge, 0, 1]] {
            let [a, b, c, d] = options;
            let line = format!("0 0 0 0 0 {name} i16:2,160 > i16:2,160 a={a} b={b} c={c} d={d}");
            let bytes = build(&case(&line).single);
            let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
            let scratch = Scratch::reference(&graph);
            for width in [Width::Bits32, Width::Bits64] {
                let arena = arena_bytes(&graph, 0, &scratch, width);
                assert!(arena > tail_bytes(&graph, width).bytes);
            }
        }
    }
}

#[test]
fn cortex_m4_tails() {
    // Public models (MLPerf Tiny, TFLM's examples), run by TFLM built for a Cortex-M4 (mps2-an386) with a
    // `RecordingMicroInterpreter`: the tail that it reported. Bare-metal Arm compilers make some structs smaller, and
    // the recording takes 104 bytes of its own; hence the tolerance.
    let recorded = [
        ("kws_ref_model", 6868),
        ("vww_96_int8", 27_028),
        ("pretrainedResnet_quant", 5284),
        ("ad01_int8", 1604),
        ("str_ww_ref_model", 8708),
        ("micro_speech_quantized", 932),
        ("person_detect", 27_092),
    ];
    let Some(models) = common::shared_models() else {
        return;
    };
    for (name, tail) in recorded {
        let model = models.iter().find(|m| m.name == name);
        let bytes = &model.unwrap_or_else(|| panic!("{name} is missing")).bytes;
        let graph = Graph::read(Model::parse(bytes).unwrap()).unwrap();
        let predicted = tail_bytes(&graph, Width::Bits32).bytes;
        println!("{name}: {predicted} predicted, {tail} recorded");
        assert!(
            predicted.abs_diff(tail) <= (tail / 20).max(128),
            "{name}: {predicted} predicted, {tail} recorded"
        );
    }
}
