//! What TFLM's kernels keep and need, operator by operator: predictions against `tests/kernels.txt`, recorded from the
//! real TensorFlow Lite Micro.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

use arenaplan::graph::Graph;
use arenaplan::model::Model;
use arenaplan::scratch::Scratch;
use arenaplan::tflm::room::arena_bytes;
use arenaplan::tflm::simulate;
use arenaplan::tflm::tail::{Width, known_in_tflm, tail_bytes};
use arenaplan_schema::flatbuffers::{FlatBufferBuilder, WIPOffset};
use arenaplan_schema::tflite::{
    self, Buffer, BufferArgs, BuiltinOperator, ModelArgs, Operator, OperatorArgs, OperatorCode,
    OperatorCodeArgs, QuantizationParameters, QuantizationParametersArgs, SubGraph, SubGraphArgs,
    Tensor, TensorArgs, TensorType,
};

/// A line of the table.
struct Case<'a> {
    line: &'a str,
    head: u64,
    tail_64: u64,
    arena_64: u64,
    tail_32: u64,
    arena_32: u64,
    operator: &'a str,
    inputs: Vec<&'a str>,
    outputs: Vec<&'a str>,
    options: Vec<(&'a str, i32)>,
}

fn cases() -> Vec<Case<'static>> {
    include_str!("kernels.txt")
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(case)
        .collect()
}

fn case(line: &str) -> Case<'_> {
    let mut words = line.split_whitespace();
    let mut number = || words.next().unwrap().parse().unwrap();
    let [head, tail_64, arena_64, tail_32, arena_32] = std::array::from_fn(|_| number());
    let operator = words.next().unwrap();
    let (tensors, options): (Vec<&str>, Vec<&str>) = words.partition(|w| !w.contains('='));
    let (inputs, outputs) = tensors.split_at(tensors.iter().position(|&w| w == ">").unwrap());
    let options = options.iter().map(|w| w.split_once('=').unwrap());
    Case {
        line,
        head,
        tail_64,
        arena_64,
        tail_32,
        arena_32,
        operator,
        inputs: inputs.to_vec(),
        outputs: outputs[1..].to_vec(),
        options: options.map(|(k, v)| (k, v.parse().unwrap())).collect(),
    }
}

fn code(name: &str) -> BuiltinOperator {
    let known = BuiltinOperator::ENUM_VALUES
        .iter()
        .find(|c| c.variant_name() == Some(name));
    known.copied().unwrap_or(BuiltinOperator::CUSTOM)
}

fn ty(name: &str) -> TensorType {
    match name {
        "f32" => TensorType::FLOAT32,
        "i4" => TensorType::INT4,
        "i8" => TensorType::INT8,
        "i16" => TensorType::INT16,
        "i32" => TensorType::INT32,
        "u32" => TensorType::UINT32,
        "u64" => TensorType::UINT64,
        "bool" => TensorType::BOOL,
        _ => panic!("{name}"),
    }
}

/// A FlexBuffers map of whole numbers, keys in order: every field has 4 bytes.
fn map(options: &[(&str, i32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let starts: Vec<usize> = options
        .iter()
        .map(|(key, _)| {
            bytes.extend_from_slice(key.as_bytes());
            bytes.push(0);
            bytes.len() - key.len() - 1
        })
        .collect();
    let put = |bytes: &mut Vec<u8>, n: i32| bytes.extend_from_slice(&n.to_le_bytes());
    put(&mut bytes, options.len() as i32);
    let keys = bytes.len();
    for start in starts {
        let distance = bytes.len() - start;
        put(&mut bytes, distance as i32);
    }
    let distance = bytes.len() - keys;
    put(&mut bytes, distance as i32);
    put(&mut bytes, 4);
    put(&mut bytes, options.len() as i32);
    let values = bytes.len();
    options
        .iter()
        .for_each(|&(_, value)| put(&mut bytes, value));
    bytes.extend(vec![1 << 2 | 2; options.len()]);
    let distance = bytes.len() - values;
    put(&mut bytes, distance as i32);
    bytes.extend([9 << 2 | 2, 4]);
    bytes
}

struct File<'b> {
    builder: FlatBufferBuilder<'b>,
    buffers: Vec<WIPOffset<Buffer<'b>>>,
    tensors: Vec<WIPOffset<Tensor<'b>>>,
    /// Inputs of the graph: what is neither constant nor variable.
    graph_inputs: Vec<i32>,
}

impl File<'_> {
    /// Adds a tensor; its index.
    fn tensor(&mut self, text: &str, is_input: bool) -> i32 {
        if text == "-" {
            return -1;
        }
        let b = &mut self.builder;
        let plain = text.trim_end_matches(['!', '~']);
        let (plain, scales) = plain.split_once('/').unwrap_or((plain, "0"));
        let (name, shape) = plain.split_once(':').unwrap();
        let shape: Vec<i32> = shape
            .split(',')
            .filter(|d| !d.is_empty())
            .map(|d| d.parse().unwrap())
            .collect();
        let scales = vec![0.5f32; scales.parse().unwrap()];
        let quantization = (!scales.is_empty()).then(|| {
            let zero_point = Some(b.create_vector(&vec![0i64; scales.len()]));
            let scale = Some(b.create_vector(&scales));
            QuantizationParameters::create(
                b,
                &QuantizationParametersArgs {
                    scale,
                    zero_point,
                    ..Default::default()
                },
            )
        });
        let data = text.ends_with('!').then(|| b.create_vector(&[0u8; 16]));
        self.buffers.push(Buffer::create(
            b,
            &BufferArgs {
                data,
                ..Default::default()
            },
        ));
        let shape = Some(b.create_vector(&shape));
        let args = TensorArgs {
            shape,
            type_: ty(name),
            buffer: self.buffers.len() as u32 - 1,
            quantization,
            is_variable: text.ends_with('~'),
            ..Default::default()
        };
        self.tensors.push(Tensor::create(b, &args));
        let index = self.tensors.len() as i32 - 1;
        if is_input && !text.ends_with(['!', '~']) {
            self.graph_inputs.push(index);
        }
        index
    }
}

fn build(case: &Case<'_>) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let buffers = vec![Buffer::create(&mut builder, &BufferArgs::default())];
    let mut file = File {
        builder,
        buffers,
        tensors: Vec::new(),
        graph_inputs: Vec::new(),
    };
    let inputs: Vec<i32> = case.inputs.iter().map(|t| file.tensor(t, true)).collect();
    let outputs: Vec<i32> = case.outputs.iter().map(|t| file.tensor(t, false)).collect();
    let File {
        builder: mut b,
        buffers,
        tensors,
        graph_inputs,
    } = file;
    let custom_options = (!case.options.is_empty()).then(|| b.create_vector(&map(&case.options)));
    let args = OperatorArgs {
        inputs: Some(b.create_vector(&inputs)),
        outputs: Some(b.create_vector(&outputs)),
        custom_options,
        ..Default::default()
    };
    let operator = Operator::create(&mut b, &args);
    let builtin_code = code(case.operator);
    let custom_code =
        (builtin_code == BuiltinOperator::CUSTOM).then(|| b.create_string(case.operator));
    let args = OperatorCodeArgs {
        deprecated_builtin_code: builtin_code.0.min(127) as i8,
        builtin_code,
        custom_code,
        ..Default::default()
    };
    let operator_code = OperatorCode::create(&mut b, &args);
    let args = SubGraphArgs {
        tensors: Some(b.create_vector(&tensors)),
        inputs: Some(b.create_vector(&graph_inputs)),
        outputs: Some(b.create_vector(&outputs)),
        operators: Some(b.create_vector(&[operator])),
        ..Default::default()
    };
    let subgraph = SubGraph::create(&mut b, &args);
    let args = ModelArgs {
        version: 3,
        operator_codes: Some(b.create_vector(&[operator_code])),
        subgraphs: Some(b.create_vector(&[subgraph])),
        buffers: Some(b.create_vector(&buffers)),
        ..Default::default()
    };
    let model = tflite::Model::create(&mut b, &args);
    b.finish(model, Some("TFL3"));
    b.finished_data().to_vec()
}

/// Runs `check` on every case, with its graph and its scratch requests.
fn each(check: impl Fn(&Case<'_>, &Graph<'_>, &Scratch)) {
    let cases = cases();
    assert!(cases.len() > 100);
    for case in cases {
        let bytes = build(&case);
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        check(&case, &graph, &Scratch::reference(&graph));
    }
}

#[test]
fn scratch_makes_the_head_what_tflm_reports() {
    each(|case, graph, scratch| {
        let head = simulate(graph, scratch, None).unwrap().head;
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
        let arena = arena_bytes(graph, case.head, scratch.len(), Width::Bits64);
        assert!(
            range(case.arena_64).contains(&arena),
            "{arena}: {}",
            case.line
        );
        let arena = arena_bytes(graph, case.head, scratch.len(), Width::Bits32);
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
        let bytes = build(&case(&line));
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
            let bytes = build(&case(&line));
            let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
            let scratch = Scratch::reference(&graph);
            for width in [Width::Bits32, Width::Bits64] {
                let arena = arena_bytes(&graph, 0, scratch.len(), width);
                assert!(arena > tail_bytes(&graph, width).bytes);
            }
        }
    }
}
