//! What `arenaplan export` writes for C and C++, compiled and run: the numbers must be those of the file and of its plan.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

#[path = "common/cc.rs"]
mod cc;
mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use arenaplan::export::{Export, Name, c, operators, shim};
use arenaplan::graph::{Graph, Storage};
use arenaplan::model::Model;
use arenaplan::plan::{Options, Planned, plan};
use arenaplan::target::{Core, Target};
use arenaplan::{Error, tflm};
use arenaplan_schema::{patch, tflite, view};
use common::root;

fn options(target: Target) -> Options {
    Options {
        target,
        ..Options::default()
    }
}

fn planned(model: &str, target: Target) -> Planned {
    plan(&common::model(model), &options(target)).unwrap()
}

fn export<'f>(file: &'f [u8], target: Target, name: &str) -> Export<'f> {
    Export::new(file, &options(target), Name::new(name).unwrap()).unwrap()
}

/// The offsets that a device reads from a file.
fn offsets(file: &[u8]) -> Option<Vec<i32>> {
    let plan = view::Model::new(file).unwrap().offline_plan().unwrap()?;
    Some(plan.offsets().into_iter().collect())
}

/// FNV-1a, as the compiled programs compute it.
fn hash(bytes: &[u8]) -> u64 {
    let step = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Models with their targets: quantized and not, with variables, resources, subgraphs, scratch, another order, custom
/// operators, scalars, several inputs and outputs, without anything to plan.
const MODELS: [(&str, Target); 13] = [
    ("dscnn_int8", Target::TflmReference),
    ("streaming_int8", Target::TflmReference),
    ("state_in_branch_float32", Target::TflmReference),
    ("lstm_int8", Target::Tflm),
    ("custom_operator_int8", Target::TflmReference),
    ("detection_float32", Target::Tflm),
    ("if_float32", Target::TflmReference),
    ("scalar_float32", Target::Tflm),
    ("two_inputs_int8", Target::TflmCmsisNn(None)),
    ("call_once_float32", Target::TflmReference),
    (
        "old_operator_codes_int8",
        Target::TflmCmsisNn(Some(Core::Mve)),
    ),
    ("newer_operator_int8", Target::Tflm),
    ("passthrough_float32", Target::Tflm),
];

/// A program that prints all that a header says, a line `model key value` each.
fn program(header: &str, name: &str, graph: &Graph<'_>) -> String {
    let mut text = format!("#include \"{header}\"\n");
    let capitals = name.to_uppercase();
    let mut show = String::new();
    let mut number = |key: String, value: String| {
        writeln!(
            show,
            "  printf(\"{name} {key} %lld\\n\", (long long)({value}));"
        )
        .unwrap();
    };
    for key in [
        "MODEL_BYTES",
        "HEAD_BYTES",
        "TAIL_BYTES",
        "TAIL_BYTES_32",
        "TAIL_BYTES_64",
        "ARENA_BYTES",
        "ARENA_BYTES_32",
        "ARENA_BYTES_64",
        "ARENA_ALIGN",
        "INPUTS",
        "OUTPUTS",
        "OPERATORS",
    ] {
        number(key.into(), format!("{capitals}_{key}"));
    }
    number("sizeof".into(), format!("sizeof {name}_model"));
    number("align".into(), format!("(uintptr_t){name}_model % 16"));
    number(
        "hash".into(),
        format!("hash({name}_model, sizeof {name}_model)"),
    );
    let main = &graph.subgraphs[0];
    for (kind, list) in [("input", &main.inputs), ("output", &main.outputs)] {
        for (i, &t) in list.iter().enumerate() {
            let prefix = format!("{capitals}_{}_{i}", kind.to_uppercase());
            number(format!("{kind}_{i}_bytes"), format!("{prefix}_BYTES"));
            number(format!("{kind}_{i}_elements"), format!("{prefix}_ELEMENTS"));
            number(
                format!("{kind}_{i}_element"),
                format!("sizeof({name}_{kind}_{i}_t)"),
            );
            number(format!("{kind}_{i}_rank"), format!("{prefix}_RANK"));
            if !graph.tensor(t).shape.is_empty() {
                writeln!(
                    text,
                    "static const int {name}_{kind}_{i}_dims[{prefix}_RANK] = {prefix}_SHAPE;"
                )
                .unwrap();
                number(
                    format!("{kind}_{i}_dims"),
                    format!("product({name}_{kind}_{i}_dims, {prefix}_RANK)"),
                );
            }
            if graph.tensor(t).scales() > 0 {
                number(
                    format!("{kind}_{i}_zero_point"),
                    format!("{prefix}_ZERO_POINT"),
                );
                number(format!("{kind}_{i}_scale"), format!("bits({prefix}_SCALE)"));
            }
        }
    }
    text + &format!("static void show_{name}(void) {{\n{show}}}\n")
}

/// The same lines, from the file.
fn expected(name: &str, planned: &Planned) -> BTreeMap<String, i64> {
    let graph = Graph::read(Model::parse(&planned.file).unwrap()).unwrap();
    let mut all = BTreeMap::new();
    let mut number = |key: String, value: u64| all.insert(format!("{name} {key}"), value as i64);
    // Of several libraries the one with the largest arena, which suffices for all.
    let largest = planned
        .report
        .libraries
        .iter()
        .rev()
        .max_by_key(|l| l.arena_32.arena_bytes);
    let figures = largest.unwrap();
    number("MODEL_BYTES".into(), planned.file.len() as u64);
    number("HEAD_BYTES".into(), figures.head_bytes);
    for (bits, arena) in [("_32", figures.arena_32), ("_64", figures.arena_64)] {
        number(format!("TAIL_BYTES{bits}"), arena.tail_bytes);
        number(format!("ARENA_BYTES{bits}"), arena.arena_bytes);
    }
    // The tests run on 64 bits.
    number("TAIL_BYTES".into(), figures.arena_64.tail_bytes);
    number("ARENA_BYTES".into(), figures.arena_64.arena_bytes);
    number("ARENA_ALIGN".into(), 16);
    number("sizeof".into(), planned.file.len() as u64);
    number("align".into(), 0);
    number("hash".into(), hash(&planned.file));
    let root = tflite::root_as_model(&planned.file).unwrap();
    let main = root.subgraphs().unwrap().get(0);
    let mut codes = std::collections::BTreeSet::new();
    for subgraph in root.subgraphs().unwrap() {
        codes.extend(
            subgraph
                .operators()
                .unwrap_or_default()
                .iter()
                .map(|op| op.opcode_index()),
        );
    }
    number("OPERATORS".into(), codes.len() as u64);
    for (kind, list) in [("input", main.inputs()), ("output", main.outputs())] {
        let list: Vec<i32> = list.unwrap().iter().collect();
        number(format!("{}S", kind.to_uppercase()), list.len() as u64);
        for (i, &t) in list.iter().enumerate() {
            let tensor = main.tensors().unwrap().get(t as usize);
            let dims: Vec<i32> = tensor.shape().unwrap_or_default().iter().collect();
            let elements: i32 = dims.iter().product();
            let element = match tensor.type_() {
                tflite::TensorType::INT8 | tflite::TensorType::BOOL | tflite::TensorType::UINT8 => {
                    1
                }
                tflite::TensorType::FLOAT32 | tflite::TensorType::INT32 => 4,
                other => panic!("{other:?}"),
            };
            number(format!("{kind}_{i}_bytes"), elements as u64 * element);
            number(format!("{kind}_{i}_elements"), elements as u64);
            number(format!("{kind}_{i}_element"), element);
            number(format!("{kind}_{i}_rank"), dims.len() as u64);
            if !dims.is_empty() {
                number(format!("{kind}_{i}_dims"), elements as u64);
            }
            if let Some(scale) = tensor
                .quantization()
                .and_then(|q| q.scale())
                .filter(|s| !s.is_empty())
            {
                let zero_point = tensor.quantization().unwrap().zero_point().unwrap().get(0);
                number(format!("{kind}_{i}_zero_point"), zero_point as u64);
                number(
                    format!("{kind}_{i}_scale"),
                    u64::from(scale.get(0).to_bits()),
                );
            }
        }
    }
    assert_eq!(
        graph.subgraphs[0].inputs.len(),
        main.inputs().unwrap().len()
    );
    all
}

const HELPERS: &str = r"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static uint64_t hash(const unsigned char* bytes, size_t count) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < count; ++i) h = (h ^ bytes[i]) * 0x100000001b3u;
  return h;
}
static long long product(const int* dims, int rank) {
  long long n = 1;
  for (int i = 0; i < rank; ++i) n *= dims[i];
  return n;
}
static uint32_t bits(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}
";

#[test]
fn a_program_finds_in_the_header_what_is_in_the_file() {
    if !cc::is_there("g++") || !cc::is_there("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The header comes first, so that it includes what it needs.
    let (mut headers, mut source, mut main) = (String::new(), String::from(HELPERS), String::new());
    let mut wanted = BTreeMap::new();
    for (model, target) in MODELS {
        let planned = planned(model, target);
        let export = export(&planned.file, target, model);
        let text = c::header(&export);
        assert!(
            text.lines().all(|l| l.len() <= 120 + 2 * model.len()),
            "{model}"
        );
        fs::write(folder.path().join(format!("{model}.h")), text).unwrap();
        writeln!(headers, "#include \"{model}.h\"").unwrap();
        source.push_str(&program(&format!("{model}.h"), model, &export.graph));
        writeln!(main, "  show_{model}();").unwrap();
        wanted.extend(expected(model, &planned));
    }
    let text = format!("{headers}{source}int main(void) {{\n{main}  return 0;\n}}\n");
    for (compiler, file, standards) in [
        ("gcc", "all.c", &["c11", "c17"][..]),
        ("g++", "all.cc", &["c++11", "c++17", "c++20"]),
    ] {
        fs::write(folder.path().join(file), &text).unwrap();
        for standard in standards {
            let printed = cc::run(folder.path(), compiler, standard, file);
            let found: BTreeMap<String, i64> = printed
                .lines()
                .map(|line| {
                    let (key, value) = line.rsplit_once(' ').unwrap();
                    (key.to_owned(), value.parse().unwrap())
                })
                .collect();
            for (key, value) in &wanted {
                assert_eq!(found.get(key), Some(value), "{standard}: {key}");
            }
            assert_eq!(found.len(), wanted.len(), "{standard}");
        }
    }
}

#[test]
fn the_first_line_says_which_kernels_and_the_constants_are_right_by_hand() {
    // dscnn_int8: 1 x 24 x 24 x 3 bytes in, 4 classes out. README.md has the heads: 4,608 without a plan.
    let planned = planned("dscnn_int8", Target::TflmReference);
    let text = c::header(&export(&planned.file, Target::TflmReference, "dscnn"));
    for line in [
        "/* Target: tflm-reference. ONLY for TFLM's reference kernels:",
        "#define DSCNN_HEAD_BYTES 2320",
        "#define DSCNN_INPUT_0_SHAPE {1, 24, 24, 3}",
        "#define DSCNN_INPUT_0_BYTES 1728",
        "typedef int8_t dscnn_input_0_t;",
        "#define DSCNN_OUTPUT_0_BYTES 4",
        "#define DSCNN_OPERATORS 4",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}");
    }
    // With any kernels allowed, the header says what the others need, and where to get constants.
    let planned = self::planned("dscnn_int8", Target::Tflm);
    let text = c::header(&export(&planned.file, Target::Tflm, "dscnn"));
    assert!(text.contains("/* Target: tflm. It is right with any kernels of TFLM."));
    assert!(text.contains("with cmsis-nn-mve kernels, which need the most of all."));
    assert!(text.contains("With reference kernels: head 3,456, arena 6,736."));
    assert!(!text.contains("ONLY"));
}

#[test]
fn operators_are_registered_once_and_models_share_a_resolver() {
    if !cc::is_there("g++") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (model, target) in [
        ("dscnn_int8", Target::TflmReference),
        ("streaming_int8", Target::TflmReference),
        ("custom_operator_int8", Target::TflmReference),
        ("detection_float32", Target::Tflm),
    ] {
        let planned = planned(model, target);
        let text = c::header(&export(&planned.file, target, model));
        fs::write(folder.path().join(format!("{model}.h")), text).unwrap();
    }
    let source = r#"
#include "custom_operator_int8.h"
#include "detection_float32.h"
#include "dscnn_int8.h"
#include "streaming_int8.h"
#include <cstdio>
int main() {
  tflite::MicroMutableOpResolver<DSCNN_INT8_OPERATORS> exact;
  if (arenaplan::dscnn_int8::RegisterOps(exact) != kTfLiteOk) return 1;
  // Once more: nothing is left to do.
  if (arenaplan::dscnn_int8::RegisterOps(exact) != kTfLiteOk || exact.GetRegistrationLength() != 4) return 2;
  if (exact.FindOp(tflite::BuiltinOperator_CONV_2D) == nullptr || exact.FindOp(tflite::BuiltinOperator_SOFTMAX)) return 3;
  tflite::MicroMutableOpResolver<DSCNN_INT8_OPERATORS + STREAMING_INT8_OPERATORS> shared;
  if (arenaplan::dscnn_int8::RegisterOps(shared) != kTfLiteOk) return 4;
  if (arenaplan::streaming_int8::RegisterOps(shared) != kTfLiteOk) return 5;
  // FULLY_CONNECTED is in both.
  if (shared.GetRegistrationLength() != DSCNN_INT8_OPERATORS + STREAMING_INT8_OPERATORS - 1) return 6;
  // Too small a resolver is an error: three of the four fit beside one that is there already.
  tflite::MicroMutableOpResolver<DSCNN_INT8_OPERATORS> full;
  if (full.AddTanh() != kTfLiteOk || arenaplan::dscnn_int8::RegisterOps(full) != kTfLiteError) return 7;
  // Custom operators that TFLM knows are registered, others are left to the application, with room for them.
  tflite::MicroMutableOpResolver<DETECTION_FLOAT32_OPERATORS> detection;
  if (arenaplan::detection_float32::RegisterOps(detection) != kTfLiteOk) return 8;
  if (detection.FindOp("TFLite_Detection_PostProcess") == nullptr) return 9;
  tflite::MicroMutableOpResolver<CUSTOM_OPERATOR_INT8_OPERATORS> custom;
  if (arenaplan::custom_operator_int8::RegisterOps(custom) != kTfLiteOk) return 10;
  std::printf("%u of %d\n", custom.GetRegistrationLength(), CUSTOM_OPERATOR_INT8_OPERATORS);
  return 0;
}
"#;
    fs::write(folder.path().join("ops.cc"), source).unwrap();
    let printed = cc::run(folder.path(), "g++", "c++17", "ops.cc");
    let text = fs::read_to_string(folder.path().join("custom_operator_int8.h")).unwrap();
    let file = common::model("custom_operator_int8");
    let graph = Graph::read(Model::parse(&file).unwrap()).unwrap();
    let own = operators::used(&graph)
        .into_iter()
        .filter(|op| op.method.is_none())
        .count();
    let all = operators::used(&graph).len();
    assert_eq!(own, 1);
    assert_eq!(printed, format!("{} of {all}\n", all - own));
    assert!(text.contains("resolver.AddCustom("), "{text}");
}

#[test]
fn every_method_is_one_of_the_resolver() {
    // The stand-in was made from TFLM's own header, and tests/device/tflm_host compares the two.
    let header = root("tests/tflm_headers/tensorflow/lite/micro/micro_mutable_op_resolver.h");
    let header = fs::read_to_string(header).unwrap();
    // `TfLiteStatus AddConv2D() { return AddBuiltin(BuiltinOperator_CONV_2D); }`
    let rows: BTreeMap<&str, &str> = header
        .lines()
        .filter_map(|l| {
            l.trim()
                .strip_prefix("TfLiteStatus ")?
                .split_once("() { return ")
        })
        .map(|(method, what)| {
            let what = what.split_once('(').unwrap().1;
            let what = what
                .trim_start_matches("BuiltinOperator_")
                .trim_start_matches('"');
            (what.split([')', '"']).next().unwrap(), method)
        })
        .collect();
    assert!(rows.len() > 115, "{}", rows.len());
    let file = common::model("dscnn_int8");
    let graph = Graph::read(Model::parse(&file).unwrap()).unwrap();
    let mut op = graph.subgraphs[0].operators[0].clone();
    let mut found = 0;
    for code in tflite::BuiltinOperator::ENUM_VALUES {
        op.code = *code;
        let name = code.variant_name().unwrap();
        assert_eq!(operators::method(&op), rows.get(name).copied(), "{name}");
        found += usize::from(operators::method(&op).is_some());
        // Nothing that the estimate of the tail calls one of TFLM's own is left out.
        assert!(
            !tflm::tail::known_in_tflm(&op) || operators::method(&op).is_some(),
            "{name}"
        );
    }
    op.code = tflite::BuiltinOperator::CUSTOM;
    for (name, method) in &rows {
        op.custom = Some(name);
        if let Some(known) = operators::method(&op) {
            assert_eq!(known, *method);
            found += 1;
        }
    }
    assert_eq!(found, rows.len());
    op.custom = Some("Mine");
    assert_eq!(operators::method(&op), None);
}

/// Offsets of the buffers by the compiled shim, with the bytes and the hash of the model in the header.
fn compiled_shim(export: &Export<'_>) -> (Vec<i32>, usize, u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.h"), shim::header(export).unwrap()).unwrap();
    let source = format!(
        r#"#include "m.h"
#include "tensorflow/lite/micro/micro_allocator.h"
{HELPERS}
int main() {{
  arenaplan::m::MemoryPlanner planner;
  // As TFLM goes about it.
  for (int i = 0; i < M_BUFFERS; ++i) if (planner.AddBuffer(16, 0, 0) != kTfLiteOk) return 1;
  tflite::MicroMemoryPlanner& tflm = planner;
  if (tflm.AddBuffer(16, 0, 0) != kTfLiteError || tflm.AddBuffer(16, 0, 0, 0) != kTfLiteError) return 2;
  printf("%d %d %zu %zu %llu\n", planner.GetBufferCount(), M_TENSOR_BUFFERS, planner.GetMaximumMemorySize(), sizeof m_model,
         (unsigned long long)hash(m_model, sizeof m_model));
  for (int i = 0, offset; i < M_BUFFERS; ++i) {{
    if (planner.GetOffsetForBuffer(i, &offset) != kTfLiteOk) return 3;
    printf("%d\n", offset);
  }}
  (void)product, (void)bits;
  return arenaplan::m::Plan()->buffer_count != M_BUFFERS;
}}
"#
    );
    fs::write(folder.path().join("shim.cc"), source).unwrap();
    cc::compile(
        folder.path(),
        "g++",
        "c++11",
        "shim.cc",
        &["-c", "-o", "shim.o"],
    );
    let printed = cc::run(folder.path(), "g++", "c++17", "shim.cc");
    let numbers: Vec<u64> = printed
        .split_whitespace()
        .map(|w| w.parse().unwrap())
        .collect();
    let offsets: Vec<i32> = numbers[5..].iter().map(|&n| n as i32).collect();
    assert_eq!(offsets.len() as u64, numbers[0]);
    (offsets, numbers[1] as usize, numbers[2], numbers[4])
}

/// The least offset at which `bytes` fit between `taken` (offset, bytes), as TFLM's greedy planner goes through them.
fn first_gap(taken: &mut [(i32, i32)], bytes: i32) -> i32 {
    taken.sort_unstable();
    let mut at = 0;
    for &(offset, size) in taken.iter() {
        if offset - at >= bytes {
            return at;
        }
        at = at.max(offset + size);
    }
    at
}

#[test]
fn buffers_are_in_the_order_in_which_tflm_asks_worked_out_by_hand() {
    if !cc::is_there("g++") {
        return;
    }
    // state_in_branch_float32, tensors by their number in the whole list:
    //   subgraph 0:  0 x, 1 run, 2 t2, 3 t3, 4 t4
    //   subgraph 1:  5 state (variable), 6 a, 7 to 9 constants, 10 t5
    //   subgraph 2:  11 x, 12 t1
    // TFLM looks up the variable at entry 0, its number in subgraph 1, so x of subgraph 0 is -1, left to the device. SVDF in
    // subgraph 1 asks for 64 bytes of scratch: 4 bytes for each of its 16 filters.
    let planned = planned("state_in_branch_float32", Target::TflmReference);
    let plan = offsets(&planned.file).unwrap();
    assert_eq!(plan.len(), 13);
    assert_eq!([plan[0], plan[5], plan[7], plan[8], plan[9]], [-1; 5]);
    let export = export(&planned.file, Target::TflmReference, "m");
    let (found, tensors, head, _) = compiled_shim(&export);

    // Online are, of equal size, scratch first, as it comes later in the list. The clock: RELU 1 (x -> t2), IF 2, SVDF 4
    // (a, state -> t5), TANH 6, ADD 7.
    let alive = |ids: &[usize]| -> Vec<(i32, i32)> {
        ids.iter()
            .map(|&i| (plan[i], if i == 1 { 16 } else { 64 }))
            .collect()
    };
    // At 4: run to 6 (it is read by IF, after its subgraphs), t2 and t3 to 7, a, t5.
    let scratch = first_gap(&mut alive(&[1, 2, 3, 6, 10]), 64);
    // x, from 0 to 1: run from 0, t2 from 1.
    let x = first_gap(&mut alive(&[1, 2]), 64);
    let order = [
        x, plan[1], plan[2], plan[3], plan[4], plan[6], plan[10], plan[11], plan[12], scratch,
    ];
    assert_eq!(found, order);
    assert_eq!(tensors, 9);
    let tops = found
        .iter()
        .zip([64, 16, 64, 64, 64, 64, 64, 64, 64, 64])
        .map(|(o, s)| o + s);
    assert_eq!(head, tops.max().unwrap() as u64);
    assert_eq!(head, planned.report.head_bytes);
}

#[test]
fn the_shim_has_the_plans_offsets_and_a_model_without_them() {
    if !cc::is_there("g++") {
        return;
    }
    let mut scratch = 0;
    let mut reordered = 0;
    for (model, target) in [
        ("streaming_int8", Target::TflmReference),
        ("lstm_int8", Target::TflmReference),
        ("diamond_a_int8", Target::TflmReference),
        ("dscnn_int8", Target::TflmCmsisNn(Some(Core::Dsp))),
        ("plan_optimal_int8", Target::TflmReference),
        ("three_levels_float32", Target::TflmReference),
    ] {
        let planned = planned(model, target);
        let export = export(&planned.file, target, "m");
        let (found, tensors, head, hash_of_model) = compiled_shim(&export);
        assert_eq!(head, planned.report.head_bytes, "{model}");
        // All that TFLM asks for: no constants, no variables, nothing empty, no handles.
        let plan = offsets(&planned.file).unwrap();
        let asked: Vec<_> = (export.graph.tensors.iter())
            .filter(|t| t.storage == Storage::Arena)
            .collect();
        assert_eq!(asked.len(), tensors, "{model}");
        for (tensor, &offset) in asked.iter().zip(&found) {
            let planned = plan[tensor.id.index()];
            assert!(
                planned == offset || planned == -1,
                "{model}: {}",
                tensor.label()
            );
        }
        scratch += found.len() - tensors;

        let file = shim::model(&export).unwrap();
        assert_eq!(hash(&file), hash_of_model, "{model}");
        assert_eq!(offsets(&file), None, "{model}");
        assert_eq!(
            patch::original_of(&file).unwrap(),
            patch::original_of(&planned.file).unwrap(),
            "{model}"
        );
        let graph = Graph::read(Model::parse(&file).unwrap()).unwrap();
        let outputs =
            |g: &Graph<'_>| -> Vec<_> { g.operators().map(|op| op.outputs.clone()).collect() };
        assert_eq!(outputs(&graph), outputs(&export.graph), "{model}");
        if planned.report.reordered {
            let original = common::model(model);
            let original = Graph::read(Model::parse(&original).unwrap()).unwrap();
            assert_ne!(outputs(&graph), outputs(&original), "{model}");
            reordered += 1;
        } else if model != "plan_optimal_int8" {
            assert_eq!(file, common::model(model));
        }
    }
    assert!(scratch > 4 && reordered > 0, "{scratch} {reordered}");
}

#[test]
fn what_cannot_be_exported_says_why() {
    let refused = |file: &[u8], target: Target| -> String {
        match Export::new(file, &options(target), Name::from_stem("m")) {
            Err(Error::Export { reason }) => reason,
            Ok(export) => match shim::header(&export) {
                Err(Error::Export { reason }) => reason,
                other => panic!("{:?}", other.map(|t| t.len())),
            },
            Err(e) => panic!("{e}"),
        }
    };
    let own = plan(&common::model("dscnn_int8"), &options(Target::Arenaplan))
        .unwrap()
        .file;
    assert!(refused(&own, Target::Arenaplan).contains("arenaplan's own runtime"));
    // For other kernels than the plan was made for.
    let overlapping = planned("dscnn_int8", Target::TflmReference).file;
    assert!(
        refused(&overlapping, Target::Tflm)
            .contains("the plan in the file is wrong with any kernels")
    );
    // One BufferPlan for kernels that ask for different scratch memory.
    let any = planned("dscnn_int8", Target::Tflm).file;
    assert!(refused(&any, Target::Tflm).contains("say --target"));
    let dsp_or_not = planned("dscnn_int8", Target::TflmCmsisNn(None)).file;
    assert!(refused(&dsp_or_not, Target::TflmCmsisNn(None)).contains("cmsis-nn"));
    // TFLM writes through a pointer that it never set: scratch memory of an operator that nothing runs.
    let stray = Options {
        scratch: Some("1:0 64".into()),
        ..options(Target::TflmReference)
    };
    let file = common::model("idle_subgraph_float32");
    let export = Export::new(&file, &stray, Name::from_stem("m")).unwrap();
    let error = shim::header(&export).unwrap_err().to_string();
    assert!(error.contains("nothing runs its subgraph"), "{error}");
}

#[test]
fn a_model_that_tflm_writes_to_is_not_for_flash() {
    let planned = planned("legacy_scalar_float32", Target::TflmReference);
    let text = c::header(&export(&planned.file, Target::TflmReference, "m"));
    assert!(text.contains("copy it to RAM"));
    // A RESHAPE that tells its shape by a tensor, or an ordinary one, is not touched.
    for model in ["reshape_open_float32", "lstm_int8"] {
        let planned = self::planned(model, Target::TflmReference);
        let export = export(&planned.file, Target::TflmReference, "m");
        assert_eq!(export.writes_to_model(), None, "{model}");
    }
}

#[test]
fn an_alignment_above_16_is_one_of_the_arena() {
    let wide = Options {
        align: 64,
        ..options(Target::TflmReference)
    };
    let planned = plan(&common::model("dscnn_int8"), &wide).unwrap();
    // Read from the file, without being told.
    let text = c::header(&export(&planned.file, Target::TflmReference, "m"));
    assert!(text.contains("#define M_ARENA_ALIGN 64\n"));
}

#[test]
fn the_code_on_the_pages_compiles() {
    if !cc::is_there("g++") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let planned = planned("dscnn_int8", Target::TflmEspNn(None));
    let text = c::header(&export(&planned.file, Target::TflmEspNn(None), "kws"));
    fs::write(folder.path().join("kws.h"), text).unwrap();
    let platform = root("tests/platform_headers");
    let platform = platform.to_str().unwrap();
    for (page, standards) in [
        ("ESP-IDF", ["c++17", "c++20"]),
        ("ZEPHYR", ["c++11", "c++17"]),
        ("ARDUINO", ["c++11", "c++17"]),
    ] {
        let text = fs::read_to_string(root("doc").join(format!("{page}.md"))).unwrap();
        let code: Vec<_> = text
            .split("```cpp\n")
            .skip(1)
            .map(|c| c.split("```").next().unwrap())
            .collect();
        assert_eq!(code.len(), 1, "{page}");
        // What the page says of another place for the arena is true as well.
        let other = code[0].replace(
            "static uint8_t arena",
            "static EXT_RAM_BSS_ATTR uint8_t arena",
        );
        let codes = if page == "ESP-IDF" {
            vec![code[0], &other]
        } else {
            vec![code[0]]
        };
        for code in codes {
            fs::write(folder.path().join("page.cc"), code).unwrap();
            for standard in standards {
                cc::compile(
                    folder.path(),
                    "g++",
                    standard,
                    "page.cc",
                    &["-I", platform, "-c", "-o", "page.o"],
                );
            }
        }
        // The targets that it names exist.
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        for word in words.filter(|w| w.starts_with("tflm-")) {
            assert!(word.parse::<Target>().is_ok(), "{page}: {word}");
        }
    }
}

#[cfg(feature = "cli")]
mod cli {
    use super::*;
    use common::run;

    fn workplace(model: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("model.tflite"), common::model(model)).unwrap();
        folder
    }

    #[test]
    fn a_header_is_written_and_replaces_an_older_one_only() {
        let folder = workplace("dscnn_int8");
        let run = |args: &[&str]| run(folder.path(), args);
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        insta::assert_snapshot!("export_help", run(&["export", "--help"]));
        let unplanned = ["export", "model.tflite", "--as", "c", "-o", "model.h"];
        insta::assert_snapshot!("export_unplanned", run(&unplanned));
        let any = read("model.h");
        assert!(any.contains("Target: tflm. "));
        // The same name: an older export of it is replaced.
        let reference = [
            "export",
            "model.tflite",
            "--as",
            "c",
            "--target",
            "tflm-reference",
            "-o",
            "model.h",
        ];
        insta::assert_snapshot!("export_target", run(&reference));
        assert_ne!(read("model.h"), any);
        // Another one, and anything else, is not.
        insta::assert_snapshot!(
            "export_other_name",
            run(&[
                "export",
                "model.tflite",
                "--as",
                "c",
                "--name",
                "kws",
                "-o",
                "model.h"
            ])
        );
        fs::write(
            folder.path().join("main.c"),
            "int main(void) { return 0; }\n",
        )
        .unwrap();
        let over = ["export", "model.tflite", "--as", "c", "-o", "main.c"];
        assert!(run(&over).starts_with("status: 2\n"));
        assert_eq!(read("main.c").len(), 29);
        assert!(run(&[&over[..], &["--force"]].concat()).starts_with("status: 0\n"));
        assert_eq!(read("main.c"), any);
        // The same bytes on standard output, and nothing else there.
        let printed = run(&["export", "model.tflite", "--as", "c"]);
        let printed = printed.split("--- stdout\n").nth(1).unwrap();
        assert_eq!(printed.split("--- stderr\n").next().unwrap(), any);
    }

    #[test]
    fn rust_comes_with_the_planned_model_beside_it() {
        let folder = workplace("dscnn_int8");
        let run = |args: &[&str]| run(folder.path(), args);
        let rust = ["export", "model.tflite", "--as", "rust", "--name", "kws"];
        assert!(run(&rust).starts_with("status: 2\n"));
        let written = run(&[&rust[..], &["-o", "generated.rs"]].concat());
        assert!(written.starts_with("status: 0\n"), "{written}");
        let text = fs::read_to_string(folder.path().join("generated.rs")).unwrap();
        assert!(text.contains("pub struct Kws<"));
        assert!(text.contains("include_bytes!(\"kws.tflite\")"));
        let model = fs::read(folder.path().join("kws.tflite")).unwrap();
        assert!(offsets(&model).is_some());
        let original = patch::strip(&model).unwrap();
        assert!(original == common::model("dscnn_int8"));
        // The source is not replaced by what is planned from it.
        let over = ["export", "model.tflite", "--as", "rust", "-o", "model.rs"];
        let refused = run(&over);
        assert!(
            refused.starts_with("status: 2\n") && refused.contains("--name"),
            "{refused}"
        );
        let kept = fs::read(folder.path().join("model.tflite")).unwrap();
        assert!(kept == common::model("dscnn_int8"));
        // A plan for kernels that share more than the runtime's do is refused, here and not on the device.
        run(&[
            "plan",
            "model.tflite",
            "--target",
            "tflm-reference",
            "-o",
            "other.tflite",
        ]);
        let other = [
            "export",
            "other.tflite",
            "--as",
            "rust",
            "-o",
            "generated.rs",
        ];
        let refused = run(&other);
        assert!(refused.starts_with("status: 2\n"), "{refused}");
        // A plan anew, over an older file of the same name alone.
        let anew = [&other[..], &["--target", "arenaplan"]].concat();
        let refused = run(&anew);
        assert!(
            refused.starts_with("status: 2\n") && refused.contains("--force"),
            "{refused}"
        );
        assert!(run(&[&anew[..], &["--name", "kws"]].concat()).starts_with("status: 0\n"));
    }

    #[test]
    fn self_tests_are_written_with_what_they_prove() {
        let folder = workplace("dscnn_int8");
        let run = |args: &[&str]| run(folder.path(), args);
        let test = |format, target| {
            let path = format!("{format}.txt");
            let told = run(&[
                "export",
                "model.tflite",
                "--as",
                format,
                "--target",
                target,
                "--invokes",
                "3",
                "-o",
                &path,
            ]);
            assert!(told.starts_with("status: 0\n"), "{told}");
            assert!(told.contains("self-test: 3 invokes"), "{told}");
            fs::read_to_string(folder.path().join(path)).unwrap()
        };
        assert!(test("c-selftest", "tflm-reference").contains("SelfTest("));
        assert!(test("rust-selftest", "arenaplan").contains("pub fn self_test("));
        // Where it means nothing.
        let told = run(&["export", "model.tflite", "--as", "c", "--invokes", "3"]);
        assert!(told.starts_with("status: 2\n") && told.contains("--invokes"));
        let once = [
            "export",
            "model.tflite",
            "--as",
            "c-selftest",
            "--invokes",
            "1",
        ];
        assert!(run(&once).starts_with("status: 2\n"));
    }

    #[test]
    fn a_plan_in_the_file_is_exported_as_it_is() {
        let folder = workplace("dscnn_int8");
        let run = |args: &[&str]| run(folder.path(), args);
        run(&[
            "plan",
            "model.tflite",
            "--target",
            "tflm-reference",
            "-o",
            "planned.tflite",
        ]);
        // No word of planning, and the target that the file was planned for.
        insta::assert_snapshot!(
            "export_planned",
            run(&[
                "export",
                "planned.tflite",
                "--as",
                "c-shim",
                "-o",
                "planned.h"
            ])
        );
        let text = fs::read_to_string(folder.path().join("planned.h")).unwrap();
        assert!(text.contains("Target: tflm-reference. ONLY for"));
        assert!(text.starts_with("/* planned: "));
        insta::assert_snapshot!(
            "export_flags_without_target",
            run(&["export", "planned.tflite", "--as", "c", "--reorder", "no"])
        );
        // Named, the target plans anew.
        let anew = run(&[
            "export",
            "planned.tflite",
            "--as",
            "c",
            "--target",
            "tflm",
            "-o",
            "anew.h",
        ]);
        assert!(
            anew.contains("the file was planned for tflm-reference; this plan is for tflm"),
            "{anew}"
        );
        run(&[
            "plan",
            "model.tflite",
            "--target",
            "arenaplan",
            "-o",
            "own.tflite",
        ]);
        insta::assert_snapshot!(
            "export_own",
            run(&["export", "own.tflite", "--as", "c", "-o", "own.h"])
        );
        assert!(!folder.path().join("own.h").exists());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let folder = workplace("dscnn_int8");
        let run = |args: &[&str]| run(folder.path(), args);
        insta::assert_snapshot!(
            "export_shim_any",
            run(&["export", "model.tflite", "--as", "c-shim", "-o", "m.h"])
        );
        insta::assert_snapshot!(
            "export_name",
            run(&[
                "export",
                "model.tflite",
                "--as",
                "c",
                "--name",
                "2 kws",
                "-o",
                "m.h"
            ])
        );
        for args in [
            &["export", "model.tflite"][..],
            &["export", "model.tflite", "--as", "pascal"],
            &["export", ".", "--as", "c"],
            &["export", "nothing.tflite", "--as", "c"],
            &["export", "model.tflite", "model.tflite", "--as", "c"],
        ] {
            assert!(
                run(args).starts_with("status: 2\n--- stdout\n--- stderr\n"),
                "{args:?}"
            );
        }
        assert!(!folder.path().join("m.h").exists());
    }
}
