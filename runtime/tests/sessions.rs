//! Sessions and interpreters as an application uses them: heads that are shared, arenas of the smallest size, what recordings
//! tell, kernels of the application, and accessors.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;

use std::collections::BTreeMap;

use arenaplan_runtime::schema::flatbuffers::FlatBufferBuilder;
use arenaplan_runtime::schema::patch::{Edit, graft, original_of};
use arenaplan_runtime::schema::{tflite, verify};
use arenaplan_runtime::{
    Contract, Error, Fault, Interpreter, Kernel, Node, Purpose, Recording, Session, Type, View,
    ViewMut, ops, share, tail_bytes,
};
use common::{Memory, Random};

const LARGE: usize = 1 << 16;

/// A model, by its name in the folder of models, or by folder and name.
fn load(name: &str) -> Memory {
    let folder = if name.contains('/') { "" } else { "models/" };
    let path = common::testdata(&format!("{folder}{name}.tflite"));
    Memory::copy_of(&std::fs::read(path).unwrap())
}

/// Sets all inputs to what follows from `seed`, and runs the model; the outputs' bytes.
fn round(session: &mut Session<'_, '_>, head: &mut [u8], seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random(seed);
    for k in 0..session.inputs() {
        let info = session.input_info(k).unwrap();
        let len = info.shape.elements().unwrap();
        let mut byte = || random.next() as i8;
        match info.element_type {
            Type::INT8 => {
                let values: Vec<i8> = (0..len).map(|_| byte()).collect();
                session.set_input(head, k, &values).unwrap();
            }
            _ => {
                let values: Vec<f32> = (0..len).map(|_| f32::from(byte()) / 100.0).collect();
                session.set_input(head, k, &values).unwrap();
            }
        }
    }
    session.invoke(head).unwrap();
    let outputs = 0..session.outputs();
    let output = |k| match session.output_info(k).unwrap().element_type {
        Type::INT8 => {
            let values = session.output::<i8>(head, k).unwrap();
            values.iter().map(|&v| v as u8).collect()
        }
        _ => {
            let values = session.output::<f32>(head, k).unwrap();
            values.iter().flat_map(|v| v.to_le_bytes()).collect()
        }
    };
    outputs.map(output).collect()
}

/// The third round has the first one's inputs.
const SEEDS: [u64; 4] = [1, 2, 1, 3];

fn alone(model: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut head = Memory::noise(LARGE, 5);
    let mut tail = Memory::noise(tail_bytes(model, ops::ALL).unwrap(), 6);
    let mut session = Session::new(model, ops::ALL, &mut head, &mut tail).unwrap();
    let rounds = SEEDS.iter();
    rounds
        .map(|&seed| round(&mut session, &mut head, seed))
        .collect()
}

fn take_turns(first: &str, second: &str) {
    let models = [load(first), load(second)];
    let expected = [alone(&models[0]), alone(&models[1])];
    for (rounds, has_state) in expected.iter().zip([true, false]) {
        assert_ne!(rounds[0], rounds[1], "{first}, {second}: constant outputs");
        assert_eq!(
            rounds[0] != rounds[2],
            has_state,
            "{first}, {second}: outputs do not depend on the past as they should"
        );
    }
    let mut tails = models
        .each_ref()
        .map(|model| Memory::noise(tail_bytes(model, ops::ALL).unwrap(), 9));
    let mut large = Memory::noise(LARGE, 7);
    let mut sessions: Vec<_> = models
        .iter()
        .zip(&mut tails)
        .map(|(model, tail)| Session::new(model, ops::ALL, &mut large, tail).unwrap())
        .collect();
    // Preparing has left nothing in the head that inferences need.
    let mut head = Memory::noise(sessions.iter().map(|s| s.head_bytes()).max().unwrap(), 8);
    for pass in ["", "after reset"] {
        for (k, &seed) in SEEDS.iter().enumerate() {
            for (session, expected) in sessions.iter_mut().zip(&expected) {
                let found = round(session, &mut head, seed);
                assert!(
                    found == expected[k],
                    "{first}, {second}: round {k} {pass} differs"
                );
            }
        }
        sessions[0].reset().unwrap();
    }
}

#[test]
fn sessions_take_turns_on_one_head() {
    take_turns("streaming_int8", "dscnn_int8");
    take_turns("call_once_float32", "dscnn_int8");
    take_turns("svdf_int8", "two_inputs_int8");
    // Its resource starts from zero, not from what CALL_ONCE assigns.
    take_turns("kernels/READ_VARIABLE_float32_sums", "two_inputs_int8");
}

/// Two and three models, with variables and with resources, in an arena of exactly the largest head and all tails.
#[test]
fn one_arena_has_room_for_all() {
    one_arena(["streaming_int8", "dscnn_int8"]);
    one_arena(["dscnn_int8", "svdf_int8", "call_once_float32"]);
    one_arena(["lstm_int8", "streaming_int8", "svdf_int8"]);
}

fn one_arena<const N: usize>(names: [&str; N]) {
    let models = names.map(load);
    let expected = models.each_ref().map(|model| alone(model));
    let tails = models.each_ref().map(|m| tail_bytes(m, ops::ALL).unwrap());
    // What each needs of the head: the most of running and preparing.
    let heads = models.each_ref().map(|model| {
        let (mut head, mut tail) = (Memory::noise(LARGE, 1), Memory::noise(LARGE, 2));
        let session = Session::new(model, ops::ALL, &mut head, &mut tail).unwrap();
        session.head_bytes().max(session.room_bytes())
    });
    let head_bytes = heads.into_iter().max().unwrap().next_multiple_of(16);
    let all: usize = tails.iter().sum();
    let mut arena = Memory::noise(head_bytes + all, 3);
    let (head, tails_given) = share(&mut arena, tails).unwrap();
    assert_eq!(head.len(), head_bytes);
    let mut sessions: Vec<_> = models
        .iter()
        .zip(tails_given)
        .map(|(model, tail)| Session::new(model, ops::ALL, head, tail).unwrap())
        .collect();
    for (k, &seed) in SEEDS.iter().enumerate() {
        for ((session, expected), name) in sessions.iter_mut().zip(&expected).zip(names) {
            assert!(
                round(session, head, seed) == expected[k],
                "{names:?}: {name}, round {k}"
            );
        }
    }
    drop(sessions);
    // Another 16 bytes less, and the largest finds no room.
    let (head, tails_given) = share(&mut arena[..head_bytes + all - 16], tails).unwrap();
    let mut prepared = models.iter().zip(tails_given);
    let fails = prepared.any(|(model, tail)| Session::new(model, ops::ALL, head, tail).is_err());
    assert!(fails, "{names:?}");
}

#[test]
fn an_arena_is_split_at_multiples_of_16() {
    let mut memory = Memory::noise(208, 1);
    let start = memory.as_ptr().addr();
    let (head, [first, second]) = share(&mut memory[..200], [20, 48]).unwrap();
    let place = |part: &[u8]| part.as_ptr().addr() - start;
    // From the end down: 32 bytes up to 192, 48 below.
    assert_eq!((place(head), head.len()), (0, 112));
    assert_eq!(place(second), 112);
    assert_eq!(place(first), 160);
    assert!(first.len() >= 20 && second.len() == 48);
    assert_eq!(
        share(&mut memory[..32], [20]).map(|(head, _)| head.len()),
        Ok(0)
    );
    for (len, tails, needed) in [
        (31, [20, 0], 32),
        (47, [16, 17], 48),
        (208, [usize::MAX, 1], usize::MAX),
    ] {
        let error = share(&mut memory[..len], tails).map(|_| ());
        assert_eq!(error, Err(Error::ArenaTooSmall { needed, given: len }));
    }
    assert_eq!(share(&mut memory, []).map(|(head, _)| head.len()), Ok(208));
}

#[test]
fn an_arena_of_the_size_that_an_error_names_is_enough() {
    for name in ["streaming_int8", "dscnn_int8", "svdf_int8", "while_float32"] {
        let model = load(name);
        let mut arena = Memory::noise(LARGE, 3);
        let mut len = 0;
        let smallest = loop {
            match Interpreter::new(&model, ops::ALL, &mut arena[..len]).err() {
                None => break len,
                Some(Error::ArenaTooSmall { needed, given }) => {
                    assert_eq!(given, len, "{name}");
                    assert!(needed > len, "{name}: {needed} after {len}");
                    len = needed;
                }
                Some(error) => panic!("{name}: {error}"),
            }
        };
        let error = Interpreter::new(&model, ops::ALL, &mut arena[..smallest - 16]).err();
        let expected = Error::ArenaTooSmall {
            needed: smallest,
            given: smallest - 16,
        };
        assert_eq!(error, Some(expected), "{name}");
        let interpreter = Interpreter::new(&model, ops::ALL, &mut arena[..smallest]).unwrap();
        let session = interpreter.session();
        let head = session.head_bytes().max(session.room_bytes());
        assert_eq!(smallest, head + session.tail_bytes(), "{name}");
    }
}

/// What the bytes of a model are for, found with the reader that flatc makes.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    tensors: usize,
    operators: usize,
    resources: usize,
    resource_bytes: usize,
    variables: usize,
    variable_bytes: usize,
    planned: usize,
    planned_bytes: usize,
    online: usize,
    online_bytes: usize,
}

impl Counts {
    fn of_model(bytes: &[u8]) -> Self {
        let model = verify::root(bytes).unwrap();
        let buffers = model.buffers().unwrap();
        let data = |index: u32| buffers.get(index as usize).data().filter(|d| !d.is_empty());
        let plans = model.metadata().into_iter().flatten();
        let mut plans = plans.filter(|m| m.name() == Some("OfflineMemoryAllocation"));
        let words = plans.next().map(|plan| -> Vec<i32> {
            let bytes = data(plan.buffer()).unwrap().bytes();
            let words = bytes.chunks_exact(4).skip(3);
            words
                .map(|w| i32::from_le_bytes(w.try_into().unwrap()))
                .collect()
        });
        let mut counts = Counts::default();
        let mut resources = BTreeMap::new();
        for subgraph in model.subgraphs().unwrap() {
            let tensors = subgraph.tensors().unwrap();
            let bytes_of = |tensor: tflite::Tensor<'_>| -> usize {
                let element = match tensor.type_() {
                    tflite::TensorType::FLOAT32 | tflite::TensorType::INT32 => 4,
                    tflite::TensorType::INT16 => 2,
                    tflite::TensorType::INT8 | tflite::TensorType::BOOL => 1,
                    other => panic!("{other:?}"),
                };
                let dims = tensor.shape().into_iter().flatten();
                dims.map(|d| d as usize).product::<usize>() * element
            };
            for tensor in tensors {
                let offset = words.as_ref().map_or(-1, |words| words[counts.tensors]);
                counts.tensors += 1;
                let constant = data(tensor.buffer()).is_some();
                if tensor.type_() == tflite::TensorType::RESOURCE || constant {
                    continue;
                }
                let (count, bytes) = match (tensor.is_variable(), offset) {
                    (true, _) => (&mut counts.variables, &mut counts.variable_bytes),
                    (false, -1) => (&mut counts.online, &mut counts.online_bytes),
                    (false, _) => (&mut counts.planned, &mut counts.planned_bytes),
                };
                *count += 1;
                *bytes += bytes_of(tensor);
            }
            let mut handles = BTreeMap::new();
            for operator in subgraph.operators().into_iter().flatten() {
                counts.operators += 1;
                let codes = model.operator_codes().unwrap();
                match codes.get(operator.opcode_index() as usize).builtin_code() {
                    tflite::BuiltinOperator::VAR_HANDLE => {
                        let options = operator.builtin_options_as_var_handle_options().unwrap();
                        let name = (options.container(), options.shared_name());
                        handles.insert(operator.outputs().unwrap().get(0), name);
                    }
                    tflite::BuiltinOperator::ASSIGN_VARIABLE => {
                        let inputs = operator.inputs().unwrap();
                        let bytes = bytes_of(tensors.get(inputs.get(1) as usize));
                        resources.insert(handles[&inputs.get(0)], bytes);
                    }
                    _ => {}
                }
            }
        }
        counts.resources = resources.len();
        counts.resource_bytes = resources.values().sum();
        counts
    }

    fn of_recording(recording: &Recording) -> Self {
        let get = |purpose| {
            let mut found = recording.usage.iter().filter(|u| u.purpose == purpose);
            let usage = found.next().unwrap();
            (usage.count, usage.requested)
        };
        let (resources, resource_bytes) = get(Purpose::Resources);
        let (variables, variable_bytes) = get(Purpose::Variables);
        let (planned, planned_bytes) = get(Purpose::PlannedTensors);
        let (online, online_bytes) = get(Purpose::OnlineTensors);
        assert_eq!(get(Purpose::ResourcePlaces).0, resources);
        Counts {
            tensors: get(Purpose::TensorPlaces).0,
            operators: get(Purpose::OperatorPlaces).0,
            resources,
            resource_bytes,
            variables,
            variable_bytes,
            planned,
            planned_bytes,
            online,
            online_bytes,
        }
    }
}

#[test]
fn recordings_tell_what_is_in_a_model() {
    let names = [
        "streaming_int8",
        "call_once_float32",
        "svdf_int8",
        "dscnn_int8",
        "base_planned_float32",
        "plan_partial_int8",
        "while_float32",
    ];
    let mut all = Vec::new();
    for name in names {
        let model = load(name);
        let mut arena = Memory::noise(LARGE, 4);
        let mut interpreter = Interpreter::new(&model, ops::ALL, &mut arena).unwrap();
        let recording = interpreter.recording().unwrap();
        let expected = Counts::of_model(&model);
        assert_eq!(Counts::of_recording(&recording), expected, "{name}");
        for usage in recording.usage {
            assert!(usage.requested <= usage.used, "{name}: {usage:?}");
            assert_eq!(usage.count == 0, usage.requested == 0, "{name}: {usage:?}");
        }
        let tail = recording.usage.iter().filter(|u| !u.purpose.is_in_head());
        let tail: usize = tail.map(|u| u.used).sum();
        assert_eq!(tail, recording.tail_bytes, "{name}");
        assert_eq!(tail, tail_bytes(&model, ops::ALL).unwrap(), "{name}");
        let session = interpreter.session();
        assert_eq!(recording.head_bytes, session.head_bytes(), "{name}");
        assert_eq!(recording.room_bytes, session.room_bytes(), "{name}");
        all.push(expected);
    }
    assert!(all.iter().any(|c| c.resources > 0 && c.resource_bytes > 0));
    assert!(all.iter().any(|c| c.variables > 0));
    assert!(all.iter().any(|c| c.planned > 0 && c.online > 0));
    assert!(all.iter().any(|c| c.planned > 0 && c.online == 0));
}

const OPTIONS: &[u8] = b"example options";

/// Each element as it is, if scratch memory holds the options of the test's model.
fn example_filter(node: &Node<'_>) -> Result<(), Fault> {
    let (input, output) = (node.input(0)?, node.output(0)?);
    input.expect(Type::INT8)?;
    output.expect(Type::INT8)?;
    let options = node.custom_options()?;
    let scratch = node.scratch::<u8>()?;
    if scratch.len() != options.len() || options.is_empty() {
        return Err(Fault::Custom(1));
    }
    scratch.copy_from(View::of(options));
    let (from, to) = (input.read::<i8>()?, output.write::<i8>()?);
    for (k, x) in from.iter().enumerate() {
        let at = k % OPTIONS.len();
        to.set(k, x ^ (scratch.get(at) ^ OPTIONS[at]) as i8);
    }
    Ok(())
}

fn scratch_of_options(node: &Node<'_>) -> Result<usize, Fault> {
    Ok(node.custom_options()?.len())
}

fn fails(_: &Node<'_>) -> Result<(), Fault> {
    Err(Fault::Custom(7))
}

fn with(kernel: Kernel) -> Vec<Kernel> {
    let mut kernels = ops::ALL.to_vec();
    kernels.push(kernel);
    kernels
}

#[test]
fn a_custom_kernel_is_found_by_name() {
    let filter = Kernel::custom("ExampleFilter", example_filter).with_scratch(scratch_of_options);
    let in_place = with(filter.with_contract(Contract::Elementwise));
    let apart = with(filter);
    let run = |model: &[u8], kernels: &[Kernel]| {
        let mut head = Memory::noise(LARGE, 5);
        let mut tail = Memory::noise(tail_bytes(model, kernels)?, 6);
        let mut session = Session::new(model, kernels, &mut head, &mut tail)?;
        let outputs = SEEDS.map(|seed| round(&mut session, &mut head, seed));
        Ok::<_, Error>(outputs.to_vec())
    };
    let model = load("custom_operator_int8");
    // The same model without the filter.
    let expected = alone(&load("two_inputs_int8"));
    assert!(run(&model, &in_place).unwrap() == expected);
    assert!(run(&model, &apart).unwrap() == expected);

    // The filter's output over its input.
    let plan = vec![0, 128, -1, -1, -1, -1, 384, 512, 640, 384];
    let edit = Edit {
        plan: Some(plan),
        ..Edit::default()
    };
    let planned = graft(&original_of(&model).unwrap(), &edit).unwrap();
    let planned = Memory::copy_of(&planned);
    assert!(run(&planned, &in_place).unwrap() == expected);
    let (first, second) = (6, 9);
    assert_eq!(
        run(&planned, &apart).err(),
        Some(Error::PlanOverlap { first, second })
    );

    let missing = Error::NoKernel {
        subgraph: 0,
        operator: 1,
        code: 32,
    };
    let other = with(Kernel::custom("ExampleFilters", example_filter));
    assert_eq!(run(&model, ops::ALL).err(), Some(missing));
    assert_eq!(run(&model, &other).err(), Some(missing));
}

#[test]
fn the_error_of_a_custom_kernel_reaches_the_application() {
    let kernels = with(Kernel::custom("ExampleFilter", fails));
    let model = load("custom_operator_int8");
    let mut arena = Memory::noise(LARGE, 2);
    let mut interpreter = Interpreter::new(&model, &kernels, &mut arena).unwrap();
    let error = Error::Operator {
        subgraph: 0,
        operator: 1,
        fault: Fault::Custom(7),
    };
    assert_eq!(interpreter.invoke(), Err(error));
}

#[test]
fn accessors_check_index_type_count_and_shape() {
    let model = load("two_inputs_int8");
    let mut arena = Memory::noise(LARGE, 2);
    let mut interpreter = Interpreter::new(&model, ops::ALL, &mut arena).unwrap();
    let found = Type::INT8;
    let no_input = Error::NoSuchTensor { index: 2, len: 2 };
    let no_output = Error::NoSuchTensor { index: 1, len: 1 };
    let i = &mut interpreter;
    assert_eq!(i.input::<f32>(0), Err(Error::ElementType { found }));
    assert_eq!(i.input::<u8>(0), Err(Error::ElementType { found }));
    assert_eq!(i.output::<f32>(0), Err(Error::ElementType { found }));
    assert_eq!(i.input::<i8>(2), Err(no_input));
    assert_eq!(i.output::<i8>(1), Err(no_output));
    assert_eq!(i.input_shaped::<i8>(2, &[]), Err(no_input));
    assert_eq!(i.output_shaped::<i8>(1, &[]), Err(no_output));
    let shape = [1, 4, 4, 8];
    assert_eq!(
        i.input_shaped::<f32>(0, &shape),
        Err(Error::ElementType { found })
    );
    assert_eq!(
        i.set_input(0, &[0f32; 128]),
        Err(Error::ElementType { found })
    );

    i.input::<i8>(0).unwrap().fill(9);
    for given in [0, 127, 129] {
        let needed = 128;
        assert_eq!(
            i.set_input(0, &vec![1i8; given]),
            Err(Error::ElementCount { needed, given })
        );
    }
    assert_eq!(i.input::<i8>(0), Ok(&mut [9; 128][..]));

    assert_eq!(i.input_shaped::<i8>(0, &shape), Ok(&mut [9; 128][..]));
    assert_eq!(i.input_shaped::<i8>(1, &[1, 8, 8, 4]).unwrap().len(), 256);
    assert_eq!(i.output_shaped::<i8>(0, &shape).unwrap().len(), 128);
    let wrong = |tensor, axis, found| {
        Err::<&[i8], _>(Error::Shape {
            tensor,
            rank: 4,
            axis,
            found,
        })
    };
    // Of as many elements, too.
    for (shape, axis, found) in [
        (&[1, 8, 4, 8][..], 2, 8),
        (&[2, 8, 8, 4], 0, 1),
        (&[1, 8, 8, 8], 3, 4),
        (&[8, 8, 4], 4, 0),
        (&[1, 8, 8, 4, 1], 4, 0),
        (&[], 4, 0),
    ] {
        let input = i.input_shaped::<i8>(1, shape).map(|values| &*values);
        assert_eq!(input, wrong(1, axis, found), "{shape:?}");
    }
    assert_eq!(i.output_shaped::<i8>(0, &[1, 4, 5, 8]), wrong(8, 2, 4));
    assert_eq!(
        wrong(8, 2, 4).unwrap_err().to_string(),
        "dimension 2 of tensor 8 is 4"
    );
    assert_eq!(
        wrong(8, 4, 0).unwrap_err().to_string(),
        "tensor 8 has 4 dimensions"
    );
}

#[test]
fn accessors_check_the_head() {
    let model = load("two_inputs_int8");
    let mut head = Memory::noise(LARGE, 2);
    let mut tail = Memory::noise(tail_bytes(&model, ops::ALL).unwrap(), 2);
    let mut session = Session::new(&model, ops::ALL, &mut head, &mut tail).unwrap();
    let needed = session.head_bytes();
    let given = needed - 1;
    let small = Error::ArenaTooSmall { needed, given };
    assert_eq!(session.input::<i8>(&mut head[..given], 0), Err(small));
    assert_eq!(session.output::<i8>(&head[..given], 0), Err(small));
    assert_eq!(session.invoke(&mut head[..given]), Err(small));
    let values = [1i8; 128];
    let result = session.set_input(&mut head[1..], 0, &values);
    assert_eq!(result, Err(Error::ArenaAlignment));
    session.set_input(&mut head[..needed], 0, &values).unwrap();
    assert_eq!(session.input::<i8>(&mut head, 0).unwrap(), values);
}

/// A model of one constant that is its output: two numbers of 64 bits.
fn constant_output(values: [i64; 2], description: &str) -> Memory {
    let mut b = FlatBufferBuilder::new();
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let args = tflite::BufferArgs {
        data: Some(b.create_vector(&data)),
        ..Default::default()
    };
    let empty = tflite::Buffer::create(&mut b, &Default::default());
    let buffer = tflite::Buffer::create(&mut b, &args);
    let args = tflite::TensorArgs {
        shape: Some(b.create_vector(&[2])),
        type_: tflite::TensorType::INT64,
        buffer: 1,
        ..Default::default()
    };
    let tensor = tflite::Tensor::create(&mut b, &args);
    let args = tflite::SubGraphArgs {
        tensors: Some(b.create_vector(&[tensor])),
        outputs: Some(b.create_vector(&[0])),
        ..Default::default()
    };
    let subgraph = tflite::SubGraph::create(&mut b, &args);
    let args = tflite::ModelArgs {
        version: 3,
        subgraphs: Some(b.create_vector(&[subgraph])),
        buffers: Some(b.create_vector(&[empty, buffer])),
        description: Some(b.create_string(description)),
        ..Default::default()
    };
    let model = tflite::Model::create(&mut b, &args);
    b.finish(model, Some("TFL3"));
    Memory::copy_of(b.finished_data())
}

#[test]
fn a_constant_output_that_is_not_aligned_is_named() {
    let values = [-5, i64::MAX - 3];
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut seen = [0, 0];
    for len in (0..32).step_by(4) {
        let model = constant_output(values, &"x".repeat(len));
        let at = model.windows(16).position(|w| w == data).unwrap();
        assert_eq!(at % 4, 0);
        let mut arena = Memory::noise(1024, 2);
        let interpreter = Interpreter::new(&model, ops::ALL, &mut arena).unwrap();
        let expected = match at % 8 {
            0 => Ok(&values[..]),
            _ => Err(Error::ConstantAlignment { tensor: 0 }),
        };
        assert_eq!(interpreter.output::<i64>(0), expected);
        assert_eq!(interpreter.output_shaped::<i64>(0, &[2]), expected);
        seen[at % 8 / 4] += 1;
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
}

#[test]
fn elements_of_8_bytes_are_copied_wherever_they_are() {
    let mut memory = Memory::zeros(64);
    let all = ViewMut::of(&mut memory);
    let at = |start: usize| all.part(start, 32).unwrap().cast::<i64>().unwrap();
    let values = [3, -1 << 40, 5, i64::MIN];
    // To lower and to higher addresses, by a part of an element and by a whole one.
    for (from, to) in [(4, 24), (8, 12), (12, 8), (4, 12), (20, 4), (4, 4)] {
        let (from, to) = (at(from), at(to));
        values.iter().enumerate().for_each(|(k, &v)| from.set(k, v));
        to.copy_from(from.view());
        assert!(to.view().iter().eq(values));
    }
}

#[test]
fn an_interpreter_is_shown_without_its_memory() {
    let model = load("two_inputs_int8");
    let mut arena = Memory::noise(LARGE, 2);
    let interpreter = Interpreter::new(&model, ops::ALL, &mut arena).unwrap();
    let text = format!("{interpreter:?}");
    assert!(
        text.starts_with("Interpreter {") && text.len() < 120,
        "{text:.200}"
    );
}
