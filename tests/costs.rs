//! The estimated cost of operators against instructions that were counted on an emulated Cortex-M4.
//!
//! `tests/device/firmware/operators.csv` has the operators of models, counted by `operators.py` beside it. `costs.txt` has single
//! operators, among them the same one with more and with fewer rows. Counted anew:
//!
//! ```text
//! ARENAPLAN_FOLDER=FOLDER cargo test --test costs -- --ignored write_models
//! tests/device/firmware/operators.py FOLDER/*.tflite
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;
#[path = "common/single.rs"]
mod single;

use std::collections::BTreeMap;

use arenaplan::graph::Graph;
use arenaplan::model::Model;
use arenaplan::stripes::cost::{self, Cost, Machine};
use arenaplan::target::Target;
use single::Single;

/// How far an estimate is off, in percent of what was counted.
fn off(estimated: i64, counted: i64) -> f64 {
    100.0 * (estimated as f64 / counted as f64 - 1.0)
}

/// Rows of the first output of an operator, as [`Cost`] counts them.
fn rows(graph: &Graph<'_>, operator: usize) -> u64 {
    let output = graph.subgraphs[0].operators[operator].outputs[0];
    match graph.tensor(output).shape[..] {
        [1, rows, _, _] => u64::try_from(rows).unwrap(),
        _ => 0,
    }
}

fn estimated(machine: Machine, graph: &Graph<'_>) -> Vec<(Cost, u64)> {
    let operators = &graph.subgraphs[0].operators;
    let each = operators.iter().enumerate();
    let each = each.map(|(k, op)| (cost::of(machine, graph, op), rows(graph, k)));
    each.collect()
}

/// Instructions that were counted, by model.
fn counted() -> BTreeMap<String, Vec<i64>> {
    let path = common::root("tests/device/firmware/operators.csv");
    let mut found: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for line in std::fs::read_to_string(path).unwrap().lines().skip(1) {
        let [model, operator, instructions] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let list = found.entry(model.to_owned()).or_default();
        assert_eq!(operator.parse(), Ok(list.len()));
        list.push(instructions.parse().unwrap());
    }
    found
}

/// Whole models within 5 %, and each operator that takes a share of its model within 10 %.
#[test]
fn models() {
    let all = counted();
    assert!(all.len() >= 10);
    for (name, counted) in all {
        let bytes = common::model(&name);
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let costs = estimated(Machine::Runtime, &graph);
        assert_eq!(costs.len(), counted.len(), "{name}");
        let whole: i64 = counted.iter().sum();
        let mut sum = 0;
        for (k, ((cost, rows), counted)) in costs.into_iter().zip(counted).enumerate() {
            let one = cost.instructions(rows);
            sum += one;
            let off = off(one, counted);
            let matters = 20 * counted > whole;
            assert!(
                !matters || off.abs() < 10.0,
                "{name}, operator {k}: {off:.1} %"
            );
        }
        let off = off(sum, whole);
        println!("{name}: {off:+.2} %");
        assert!(off.abs() < 5.0, "{name}: {off:.1} %");
        let (total, _) = cost::of_model(Machine::Runtime, &graph);
        assert_eq!(total, sum);
    }
}

/// Whether an estimate is off by 2 % at most, and 4,000 instructions: what a call takes depends on the file.
fn is_near(estimated: i64, counted: i64) -> bool {
    (estimated - counted).abs() <= 4_000 + counted / 50
}

/// Single operators.
#[test]
fn operators() {
    let mut count = 0;
    for (counted, line) in lines() {
        let bytes = single::build(&Single::parse(line));
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let (cost, rows) = estimated(Machine::Runtime, &graph)[0];
        let one = cost.instructions(rows);
        println!("{:+.2} % {line}", off(one, counted));
        assert!(is_near(one, counted), "{one} for {counted}: {line}");
        count += 1;
    }
    assert!(count >= 20);
}

/// A copy with other rows costs what the operator with all rows says.
#[test]
fn rows_of_copies() {
    let mut by_kind: BTreeMap<String, Vec<(Cost, u64, i64)>> = BTreeMap::new();
    for (counted, line) in lines() {
        let bytes = single::build(&Single::parse(line));
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let (cost, rows) = estimated(Machine::Runtime, &graph)[0];
        // But for the numbers of rows, lines of one operator are equal.
        let operator = graph.operators().next().unwrap();
        let shape = |t| graph.tensor(t).shape[2..].to_vec();
        let tensors = operator.inputs.iter().flatten().chain(&operator.outputs);
        let shapes: Vec<_> = tensors
            .filter(|&&t| graph.tensor(t).shape.len() == 4)
            .map(|&t| (graph.tensor(t).ty, shape(t)))
            .collect();
        let options = line.split(" padding=").nth(1);
        let kind = format!("{} {shapes:?} {options:?}", operator.name());
        by_kind.entry(kind).or_default().push((cost, rows, counted));
    }
    let mut pairs = 0;
    for (kind, list) in by_kind {
        for &(cost, rows, _) in &list {
            for &(_, other, counted) in list.iter().filter(|other| other.1 != rows) {
                let one = cost.instructions(other);
                println!("{:+.2} % {kind}: {other} rows by {rows}", off(one, counted));
                assert!(
                    is_near(one, counted),
                    "{one} for {counted}: {kind}, {other} rows by {rows}"
                );
                pairs += 1;
            }
        }
    }
    assert!(pairs >= 14);
}

/// Counted instructions, and the operator.
fn lines() -> impl Iterator<Item = (i64, &'static str)> {
    include_str!("costs.txt").lines().map(|line| {
        let (counted, line) = line.split_once(' ').unwrap();
        (counted.parse().unwrap(), line)
    })
}

/// Writes the models of `costs.txt`, to count them anew.
#[test]
#[ignore = "writes files"]
fn write_models() {
    let folder = std::path::PathBuf::from(std::env::var("ARENAPLAN_FOLDER").unwrap());
    for (k, (_, line)) in lines().enumerate() {
        let path = folder.join(format!("{k:02}.tflite"));
        std::fs::write(path, single::build(&Single::parse(line))).unwrap();
    }
}

/// MACs, worked by hand.
#[test]
fn macs() {
    for (line, fixed, per_row) in [
        (
            "CONV_2D i8:1,8,10,3/1*0.05 i8:4,3,5,3/4*0.01!r i32:4/4*0.0005!r > i8:1,4,5,4/1*0.4 padding=0 stride_h=2 stride_w=2 dilation_h_factor=1 dilation_w_factor=1",
            0,
            5 * 4 * 3 * 5 * 3,
        ),
        (
            "DEPTHWISE_CONV_2D i8:1,8,10,3/1*0.05 i8:1,3,3,6/6*0.01!r i32:6/6*0.0005!r > i8:1,8,10,6/1*0.4 depth_multiplier=2 padding=0 stride_h=1 stride_w=1 dilation_h_factor=1 dilation_w_factor=1",
            0,
            10 * 6 * 9,
        ),
        // Two images: not by rows.
        (
            "CONV_2D f32:2,4,4,3 f32:4,1,1,3!r f32:4!r > f32:2,4,4,4 padding=0 stride_h=1 stride_w=1 dilation_h_factor=1 dilation_w_factor=1",
            2 * 4 * 4 * 4 * 3,
            0,
        ),
        (
            "FULLY_CONNECTED i8:3,10/1*0.05 i8:7,10/1*0.01!r i32:7/1*0.0005!r > i8:3,7/1*0.4",
            3 * 7 * 10,
            0,
        ),
        (
            "MAX_POOL_2D i8:1,8,8,8/1*0.05 > i8:1,4,4,8/1*0.05 padding=1 filter_height=2 filter_width=2 stride_h=2 stride_w=2",
            0,
            0,
        ),
    ] {
        let bytes = single::build(&Single::parse(line));
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        for machine in [Machine::Runtime, Machine::CmsisNn, Machine::Reference] {
            let (cost, rows) = estimated(machine, &graph)[0];
            assert_eq!((cost.macs, cost.macs_per_row), (fixed, per_row), "{line}");
            assert_eq!(cost.per_row == 0, rows == 0, "{line}");
            assert!(cost.instructions(rows) > 0);
        }
    }
}

/// SLICE and CONCATENATION, copying 4,608 and 9,216 bytes, and with nothing to move, as counted in a striped model.
#[test]
fn copies() {
    for (estimated, counted) in [
        (cost::slice(Machine::Runtime, 576, 4_608, false), 10_105),
        (cost::slice(Machine::Runtime, 576, 4_608, true), 5_168),
        (
            cost::concatenation(Machine::Runtime, 4, 9_216, false),
            17_051,
        ),
        (cost::concatenation(Machine::Runtime, 2, 9_216, true), 4_757),
    ] {
        assert!(
            off(estimated, counted).abs() < 3.0,
            "{estimated} for {counted}"
        );
    }
    for machine in [Machine::CmsisNn, Machine::Reference] {
        let copies = cost::slice(machine, 576, 4_608, true);
        assert_eq!(copies, cost::slice(machine, 576, 4_608, false));
    }
    // Nothing is moved: only the calls are left.
    assert_eq!(
        cost::slice(Machine::Runtime, 576, 4_608, true),
        cost::slice(Machine::Runtime, 1, 0, false)
    );
}

/// Sizes at the end of what a file can say.
#[test]
fn huge() {
    for line in [
        "MAX_POOL_2D i8:1,1000000,1,1/1*0.05 > i8:1,1000000,1,1/1*0.05 padding=0 filter_height=2147483647 filter_width=2147483647 stride_h=1 stride_w=1",
        "MAX_POOL_2D i8:1,1,1000000000,1/1*0.05 > i8:1,1,1000000000,1/1*0.05 padding=0 filter_height=1 filter_width=1000000000 stride_h=1 stride_w=1",
        "MAX_POOL_2D i8:1,4,4,1/1*0.05 > i8:1,4,500000000,1/1*0.05 padding=0 filter_height=1 filter_width=3 stride_h=1 stride_w=1",
        "CONV_2D i8:1,40000,40000,1/1*0.05 i8:1,1,2,1/1*0.01!r i32:1/1*0.0005!r > i8:1,40000,40000,1/1*0.4 padding=0 stride_h=1 stride_w=1 dilation_h_factor=2147483647 dilation_w_factor=2147483647",
        "CONV_2D i8:1,2,2,1/1*0.05 i8:1,1,1,1/1*0.01!r i32:1/1*0.0005!r > i8:1,2,2,1/1*0.4 padding=0 stride_h=-2147483648 stride_w=0 dilation_h_factor=-1 dilation_w_factor=0",
        "RELU i8:1,46340,46340,1/1*0.05 > i8:1,46340,46340,1/1*0.05",
        "SOFTMAX i8:2147400000,1/1*0.05 > i8:2147400000,1/1*0.05 beta=1",
    ] {
        let bytes = single::build(&Single::parse(line));
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        for machine in [Machine::Runtime, Machine::CmsisNn, Machine::Reference] {
            let (cost, rows) = estimated(machine, &graph)[0];
            assert!(cost.instructions(rows) > 0, "{line}");
            assert!(cost::of_model(machine, &graph).0 > 0);
        }
    }
}

#[test]
fn machines() {
    assert_eq!(Machine::of(Target::Arenaplan), Machine::Runtime);
    assert_eq!(Machine::of(Target::TflmReference), Machine::Reference);
    // The first library of `tflm` is the reference, but any other may be there.
    for target in [
        Target::Tflm,
        Target::TflmCmsisNn(None),
        Target::TflmEspNn(None),
    ] {
        assert_eq!(Machine::of(target), Machine::CmsisNn);
    }
}

/// TFLM's kernels on published models, where their folder is: instructions with the reference kernels and with CMSIS-NN (GCC 12,
/// `-O2`).
#[test]
fn kernels_of_tflm() {
    const COUNTED: [(&str, i64, i64); 7] = [
        ("kws_ref_model", 43_042_470, 7_699_891),
        ("vww_96_int8", 100_250_552, 24_101_961),
        ("pretrainedResnet_quant", 107_404_883, 29_863_357),
        ("ad01_int8", 1_952_291, 582_943),
        ("str_ww_ref_model", 8_284_979, 2_227_098),
        ("micro_speech_quantized", 9_310_570, 1_495_381),
        ("person_detect", 95_660_735, 22_928_448),
    ];
    let Some(models) = common::shared_models() else {
        println!("left out: the models are not here");
        return;
    };
    let mut count = 0;
    for sample in models {
        let Some((_, reference, cmsis_nn)) = COUNTED.iter().find(|row| row.0 == sample.name) else {
            continue;
        };
        let graph = Graph::read(Model::parse(&sample.bytes).unwrap()).unwrap();
        let off = |machine, counted| off(cost::of_model(machine, &graph).0, counted);
        let off = [
            off(Machine::Reference, *reference),
            off(Machine::CmsisNn, *cmsis_nn),
        ];
        println!("{}: {off:.1?} %", sample.name);
        assert!(
            off.iter().all(|off| off.abs() < 6.0),
            "{}: {off:.1?} %",
            sample.name
        );
        count += 1;
    }
    println!("{count} models");
}
