//! Rewritten subgraphs, as the generated reader sees them.
#![cfg(feature = "host")]
#![allow(clippy::unwrap_used)]

mod models;

use std::collections::BTreeSet;
use std::path::Path;

use arenaplan_schema::flatbuffers::FlatBufferBuilder;
use arenaplan_schema::patch::{
    Edit, NewOperator, NewTensor, OperatorOrder, PatchError, Rewrite, Stamp, TensorUse, graft,
    original_of, strip,
};
use arenaplan_schema::tflite::{self, BuiltinOperator, BuiltinOptions, TensorType};
use arenaplan_schema::verify;
use arenaplan_schema::view::{Model, PLAN_NAME};
use models::{Random, Wanted, build, files, stripes};

fn rewriting(rewrite: Rewrite) -> Edit {
    Edit {
        rewrite: vec![rewrite],
        ..Default::default()
    }
}

/// Grafts, and checks what holds for all results.
fn grafted(original: &[u8], edit: &Edit) -> Vec<u8> {
    let file = graft(original, edit).unwrap();
    assert!(graft(original, edit).unwrap() == file, "not deterministic");
    verify::root(&file).unwrap();
    assert!(strip(&file).unwrap() == original);
    assert!(original_of(&file).unwrap() == original);
    assert_eq!((file.len() - original.len()) % 64, 0);
    file
}

fn testdata(name: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::read(root.join("testdata/models").join(name)).unwrap()
}

/// A file that has been verified.
#[derive(Clone, Copy)]
struct Read<'a> {
    bytes: &'a [u8],
    model: tflite::Model<'a>,
}

fn read(bytes: &[u8]) -> Read<'_> {
    let model = verify::root(bytes).unwrap();
    Read { bytes, model }
}

/// Where a table is, counted from the end of the file, which a patch does not change.
fn place(file: Read<'_>, position: usize) -> usize {
    file.bytes.len() - position
}

fn ints(vector: Option<arenaplan_schema::flatbuffers::Vector<'_, i32>>) -> Vec<i32> {
    vector.map_or(Vec::new(), |vector| vector.iter().collect())
}

/// All of a tensor, its data in place of the buffer's index, its quantization by place.
#[derive(Clone, Debug, PartialEq)]
struct TensorFacts {
    shape: Option<Vec<i32>>,
    element_type: TensorType,
    data: Option<Vec<u8>>,
    name: Option<String>,
    quantization: Option<usize>,
    is_variable: bool,
    has_sparsity: bool,
    signature: Option<Vec<i32>>,
    has_rank: bool,
    variants: String,
    external: u32,
}

fn tensor_facts(file: Read<'_>, tensor: tflite::Tensor<'_>) -> TensorFacts {
    // Buffer 0 means "none" in a model without buffers too.
    let buffer = file
        .model
        .buffers()
        .map(|all| all.get(tensor.buffer() as usize));
    let data = buffer.and_then(|buffer| buffer.data());
    let data = data.map(|data| data.bytes().to_vec());
    let outside = buffer.is_some_and(|buffer| buffer.offset() > 1);
    let outside = outside.then(|| b"outside".to_vec());
    TensorFacts {
        shape: tensor.shape().map(|shape| shape.iter().collect()),
        element_type: tensor.type_(),
        data: data.filter(|data| !data.is_empty()).or(outside),
        name: tensor.name().map(str::to_owned),
        quantization: tensor
            .quantization()
            .map(|quantization| place(file, quantization._tab.loc())),
        is_variable: tensor.is_variable(),
        has_sparsity: tensor.sparsity().is_some(),
        signature: tensor.shape_signature().map(|shape| shape.iter().collect()),
        has_rank: tensor.has_rank(),
        variants: format!("{:?}", tensor.variant_tensors()),
        external: tensor.external_buffer(),
    }
}

/// All of an operator: its options by place and by content.
#[derive(Clone, Debug, PartialEq)]
struct OperatorFacts {
    code: (BuiltinOperator, Option<String>),
    inputs: Vec<i32>,
    outputs: Vec<i32>,
    /// Everything else; with the options' place where there are any.
    rest: String,
    options: [Option<usize>; 3],
}

fn code_of(file: Read<'_>, index: u32) -> (BuiltinOperator, Option<String>) {
    let codes = file.model.operator_codes();
    let entry = codes.filter(|codes| (index as usize) < codes.len());
    let Some(entry) = entry.map(|codes| codes.get(index as usize)) else {
        return (BuiltinOperator(-1), None);
    };
    let old = i32::from(entry.deprecated_builtin_code());
    let code = BuiltinOperator(entry.builtin_code().0.max(old));
    (code, entry.custom_code().map(str::to_owned))
}

fn operator_facts(file: Read<'_>, operator: tflite::Operator<'_>) -> OperatorFacts {
    // The text of all fields, without the two that may differ.
    let text = format!("{operator:?}");
    let (before, rest) = text.split_once(", inputs: ").unwrap();
    let (_, after) = rest.split_once(", builtin_options_type: ").unwrap();
    assert!(before.contains("opcode_index"), "{before}");
    OperatorFacts {
        code: code_of(file, operator.opcode_index()),
        inputs: ints(operator.inputs()),
        outputs: ints(operator.outputs()),
        rest: format!("{after}, {}", operator.large_custom_options_size()),
        options: [
            operator.builtin_options().map(|o| place(file, o.loc())),
            operator.builtin_options_2().map(|o| place(file, o.loc())),
            operator
                .custom_options()
                .map(|o| file.bytes.as_ptr_range().end as usize - o.bytes().as_ptr() as usize),
        ],
    }
}

fn tensors_of(file: Read<'_>, subgraph: usize) -> Vec<tflite::Tensor<'_>> {
    let subgraph = file.model.subgraphs().unwrap().get(subgraph);
    subgraph
        .tensors()
        .map_or(Vec::new(), |t| t.iter().collect())
}

fn operators_of(file: Read<'_>, subgraph: usize) -> Vec<tflite::Operator<'_>> {
    let subgraph = file.model.subgraphs().unwrap().get(subgraph);
    subgraph
        .operators()
        .map_or(Vec::new(), |o| o.iter().collect())
}

/// What the subgraph of the grafted file has to be like, worked out from the original and the edit.
fn check_subgraph(original: Read<'_>, file: Read<'_>, edit: &Edit, index: usize) {
    let rewrite = edit.rewrite.iter().find(|r| r.subgraph == index);
    let (old, new) = (tensors_of(original, index), tensors_of(file, index));
    let mut wanted: Vec<Result<usize, &NewTensor>> = (0..old.len()).map(Ok).collect();
    for (tensor, by) in rewrite.iter().flat_map(|r| &r.replaced) {
        wanted[*tensor as usize] = Err(by);
    }
    wanted.extend(rewrite.iter().flat_map(|r| &r.added).map(Err));
    assert_eq!(wanted.len(), new.len());
    for (wanted, found) in wanted.into_iter().zip(&new) {
        let facts = tensor_facts(file, *found);
        let name_of = |name: &String| (!name.is_empty()).then(|| name.clone());
        let expected = match wanted {
            Ok(kept) => {
                let kept = old[kept]._tab.loc();
                assert_eq!(place(file, found._tab.loc()), place(original, kept));
                continue;
            }
            Err(NewTensor::Like {
                original: like,
                shape,
                name,
            }) => TensorFacts {
                shape: Some(shape.clone()),
                data: None,
                name: name_of(name),
                is_variable: false,
                has_sparsity: false,
                signature: None,
                external: 0,
                ..tensor_facts(original, old[*like as usize])
            },
            Err(NewTensor::Constant {
                shape,
                values,
                name,
            }) => TensorFacts {
                shape: Some(shape.clone()),
                element_type: TensorType::INT32,
                data: (!values.is_empty()).then(|| models::plan_words(values)),
                name: name_of(name),
                quantization: None,
                is_variable: false,
                has_sparsity: false,
                signature: None,
                has_rank: shape.is_empty(),
                variants: "None".into(),
                external: 0,
            },
        };
        assert_eq!(facts, expected);
    }

    let (old, new) = (operators_of(original, index), operators_of(file, index));
    let order = edit.operator_order.iter().find(|o| o.subgraph == index);
    let count = rewrite.map_or(old.len(), |rewrite| rewrite.operators.len());
    assert_eq!(new.len(), count);
    let facts = |operator: u32| operator_facts(original, old[operator as usize]);
    for (position, found) in new.into_iter().enumerate() {
        let from = order.map_or(position, |order| order.order[position] as usize);
        let kept = NewOperator::Original(from as u32);
        let found_facts = operator_facts(file, found);
        match rewrite.map_or(&kept, |rewrite| &rewrite.operators[from]) {
            NewOperator::Original(kept) => {
                let kept = old[*kept as usize]._tab.loc();
                assert_eq!(place(file, found._tab.loc()), place(original, kept));
            }
            NewOperator::Like {
                original,
                inputs,
                outputs,
            } => {
                let expected = OperatorFacts {
                    inputs: inputs.clone(),
                    outputs: outputs.clone(),
                    ..facts(*original)
                };
                assert_eq!(found_facts, expected);
            }
            NewOperator::Slice { inputs, output } => {
                assert_eq!(found_facts.code, (BuiltinOperator::SLICE, None));
                assert_eq!(found_facts.inputs, inputs);
                assert_eq!(found_facts.outputs, [*output]);
                assert!(found.builtin_options_as_slice_options().is_some());
                check_plain(found);
            }
            NewOperator::Concatenation {
                axis,
                inputs,
                output,
            } => {
                assert_eq!(found_facts.code, (BuiltinOperator::CONCATENATION, None));
                assert_eq!(&found_facts.inputs, inputs);
                assert_eq!(found_facts.outputs, [*output]);
                let options = found.builtin_options_as_concatenation_options().unwrap();
                assert_eq!(options.axis(), *axis);
                let none = tflite::ActivationFunctionType::NONE;
                assert_eq!(options.fused_activation_function(), none);
                check_plain(found);
            }
        }
    }

    let [old, new] = [original, file].map(|file| {
        let subgraph = file.model.subgraphs().unwrap().get(index);
        (
            ints(subgraph.inputs()),
            ints(subgraph.outputs()),
            subgraph.name().map(str::to_owned),
            subgraph.debug_metadata_index(),
        )
    });
    assert_eq!(old, new);
}

/// An operator with nothing but its code, tensors and options.
fn check_plain(operator: tflite::Operator<'_>) {
    assert!(operator.custom_options().is_none() && operator.intermediates().is_none());
    assert!(operator.mutating_variable_inputs().is_none());
    assert_eq!(
        operator.builtin_options_2_type(),
        tflite::BuiltinOptions2::NONE
    );
    assert_eq!(operator.debug_metadata_index(), -1);
    assert_eq!(operator.large_custom_options_offset(), 0);
}

/// Buffers, codes, metadata and the plan.
fn check_lists(original: Read<'_>, file: Read<'_>, edit: &Edit) {
    let [old, new] = [original.model, file.model];
    let tables = |file: Read<'_>, positions: Vec<usize>| -> Vec<usize> {
        positions.into_iter().map(|at| place(file, at)).collect()
    };
    let buffers = |model: tflite::Model<'_>| -> Vec<usize> {
        let buffers = model
            .buffers()
            .map(|b| b.iter().map(|b| b._tab.loc()).collect());
        buffers.unwrap_or_default()
    };
    let (kept, all) = (tables(original, buffers(old)), tables(file, buffers(new)));
    assert_eq!(all[..kept.len()], kept);
    for buffer in new.buffers().unwrap().iter().skip(kept.len()) {
        if let Some(data) = buffer.data() {
            let at = data.bytes().as_ptr() as usize - file.bytes.as_ptr() as usize;
            // What words are read from; the plan's and constants' first byte is at a multiple of 16.
            assert_eq!(at % 4, 0);
        }
    }
    for rewrite in &edit.rewrite {
        let tensors = tensors_of(file, rewrite.subgraph);
        let added = tensors.len() - rewrite.added.len()..tensors.len();
        let replaced = rewrite.replaced.iter().map(|(tensor, _)| *tensor as usize);
        for tensor in added.chain(replaced) {
            let buffer = new
                .buffers()
                .unwrap()
                .get(tensors[tensor].buffer() as usize);
            if let Some(data) = buffer.data()
                && !data.is_empty()
            {
                let at = data.bytes().as_ptr() as usize - file.bytes.as_ptr() as usize;
                assert_eq!(at % 16, 0, "data of tensor {tensor}");
            }
        }
    }
    let codes = |model: tflite::Model<'_>| -> Vec<usize> {
        let codes = model.operator_codes();
        codes.map_or(Vec::new(), |c| c.iter().map(|c| c._tab.loc()).collect())
    };
    let (kept, all) = (tables(original, codes(old)), tables(file, codes(new)));
    assert_eq!(all[..kept.len()], kept);
    let mut known: BTreeSet<i32> = BTreeSet::new();
    for (index, _) in all.iter().enumerate() {
        let (code, custom) = code_of(file, index as u32);
        if index >= kept.len() {
            let entry = new.operator_codes().unwrap().get(index);
            assert!(!known.contains(&code.0), "{code:?} was there");
            assert!([BuiltinOperator::SLICE, BuiltinOperator::CONCATENATION].contains(&code));
            assert_eq!(entry.builtin_code(), code);
            assert_eq!(i32::from(entry.deprecated_builtin_code()), code.0);
            assert_eq!((entry.version(), custom), (1, None));
        }
        known.insert(code.0);
    }
    let model = Model::new(file.bytes).unwrap();
    let plan = model.offline_plan().unwrap();
    let plan = plan.map(|plan| plan.offsets().iter().collect::<Vec<i32>>());
    assert_eq!(plan, edit.plan);
    if edit.plan.is_some() {
        let words = model.metadata_data(PLAN_NAME).unwrap().unwrap();
        assert_eq!(
            (words.as_ptr() as usize - file.bytes.as_ptr() as usize) % 16,
            0
        );
    }
    let text = format!("{:?}{:?}", old.signature_defs(), old.metadata_buffer());
    assert_eq!(
        text,
        format!("{:?}{:?}", new.signature_defs(), new.metadata_buffer())
    );
}

fn check(original: &[u8], edit: &Edit) -> Vec<u8> {
    let bytes = grafted(original, edit);
    let (original, file) = (read(original), read(&bytes));
    let subgraphs = original.model.subgraphs();
    for index in 0..subgraphs.map_or(0, |subgraphs| subgraphs.len()) {
        check_subgraph(original, file, edit, index);
    }
    check_lists(original, file, edit);
    bytes
}

/// The layout worked out by hand, number by number.
#[test]
fn a_convolution_in_two_stripes_reads_as_written() {
    let original = testdata(stripes::MODEL);
    let mut edit = rewriting(stripes::rewrite());
    edit.plan = Some((0..28).map(|tensor| 64 * tensor).collect());
    let file = check(&original, &edit);
    let (old, new) = (tensors_of(read(&original), 0), tensors_of(read(&file), 0));
    assert_eq!((old.len(), new.len()), (16, 28));
    let codes = verify::root(&file).unwrap().operator_codes().unwrap();
    let codes: Vec<i32> = codes.iter().map(|code| code.builtin_code().0).collect();
    assert_eq!(codes, [3, 17, 22, 9, 25, 65, 2]);

    let stripe = new[9];
    assert_eq!(ints(stripe.shape()), [1, 9, 16, 3]);
    assert_eq!(stripe.name(), Some("image, rows 0 to 9"));
    assert_eq!(stripe.type_(), TensorType::INT8);
    assert_eq!(stripe.buffer(), 0);
    let scale =
        |tensor: &tflite::Tensor<'_>| tensor.quantization().unwrap().scale().unwrap().get(0);
    assert_eq!(scale(&stripe), scale(&old[0]));
    assert_eq!(scale(&new[16]), scale(&old[9]));
    assert!(
        new[16].is_variable() == old[9].is_variable() && new[16].has_rank() == old[9].has_rank()
    );
    assert_eq!(new[21].name(), None);

    // The original has 19 buffers. The two equal constants share one of the five behind them.
    let buffers: Vec<u32> = new[22..28].iter().map(|tensor| tensor.buffer()).collect();
    assert_eq!(buffers, [19, 20, 21, 20, 22, 23]);
    let size = verify::root(&file).unwrap().buffers().unwrap().get(20);
    assert_eq!(
        size.data().unwrap().bytes(),
        [1, 0, 0, 0, 9, 0, 0, 0, 16, 0, 0, 0, 3, 0, 0, 0]
    );
    assert_eq!(new[23].type_(), TensorType::INT32);
    assert_eq!(ints(new[23].shape()), [4]);

    let operators = operators_of(read(&file), 0);
    let indices: Vec<(u32, Vec<i32>, Vec<i32>)> = operators
        .iter()
        .map(|o| (o.opcode_index(), ints(o.inputs()), ints(o.outputs())))
        .collect();
    let expected: [(u32, &[i32], &[i32]); 13] = [
        (5, &[0, 22, 23], &[9]),
        (0, &[9, 8, 7], &[16]),
        (1, &[16], &[17]),
        (5, &[0, 24, 25], &[18]),
        (0, &[18, 8, 7], &[19]),
        (5, &[19, 26, 27], &[20]),
        (1, &[20], &[21]),
        (6, &[17, 21], &[10]),
        (0, &[10, 6, 5], &[11]),
        (0, &[11, 4, 3], &[12]),
        (2, &[12, 1], &[13]),
        (3, &[13, 2, -1], &[14]),
        (4, &[14], &[15]),
    ];
    let expected =
        expected.map(|(code, inputs, outputs)| (code, inputs.to_vec(), outputs.to_vec()));
    assert_eq!(indices, expected);
    let conv = operators[4].builtin_options_as_conv_2_doptions().unwrap();
    assert_eq!(conv.padding(), tflite::Padding::SAME);
    assert_eq!((conv.stride_h(), conv.stride_w()), (1, 1));
    let relu = tflite::ActivationFunctionType::RELU;
    assert_eq!(conv.fused_activation_function(), relu);
    let concat = operators[7].builtin_options_as_concatenation_options();
    assert_eq!(concat.unwrap().axis(), 1);
    assert_eq!(
        operators[0].builtin_options_type(),
        BuiltinOptions::SliceOptions
    );

    // The plan's buffer comes behind all of them, and counts the new tensors.
    let model = verify::root(&file).unwrap();
    let entry = model
        .metadata()
        .unwrap()
        .iter()
        .find(|e| e.name() == Some(PLAN_NAME));
    let buffer = entry.unwrap().buffer();
    assert_eq!(buffer, 24);
    let plan = model.buffers().unwrap().get(24).data().unwrap().bytes();
    assert_eq!(plan[4..12], [1, 0, 0, 0, 28, 0, 0, 0]);
}

#[test]
fn an_order_is_of_the_operators_of_the_rewrite() {
    let original = testdata(stripes::MODEL);
    let mut edit = rewriting(stripes::rewrite());
    edit.operator_order = vec![OperatorOrder {
        subgraph: 0,
        order: vec![3, 4, 5, 6, 0, 1, 2, 7, 8, 9, 10, 11, 12],
    }];
    let file = check(&original, &edit);
    let outputs: Vec<i32> = operators_of(read(&file), 0)
        .iter()
        .map(|o| o.outputs().unwrap().get(0))
        .collect();
    assert_eq!(outputs, [18, 19, 20, 21, 9, 16, 17, 10, 11, 12, 13, 14, 15]);

    // As many as the original has is not enough; what it is for the original alone is too much.
    edit.operator_order[0].order = (0..7).rev().collect();
    let wrong = PatchError::OrderLength {
        subgraph: 0,
        given: 7,
        operators: 13,
    };
    assert_eq!(graft(&original, &edit), Err(wrong));
    edit.operator_order.clear();
    edit.plan = Some(vec![0; 16]);
    let wrong = PatchError::PlanTensorCount {
        offsets: 16,
        tensors: 28,
    };
    assert_eq!(graft(&original, &edit), Err(wrong));
}

#[test]
fn codes_that_are_there_are_used() {
    let concat = |output| NewOperator::Concatenation {
        axis: -1,
        inputs: vec![0, 1],
        output,
    };
    // It has CONCATENATION as its second entry; SLICE is appended.
    let original = testdata("diamond_a_int8.tflite");
    let rewrite = Rewrite {
        operators: vec![
            concat(15),
            NewOperator::Slice {
                inputs: [0, 1, 2],
                output: 16,
            },
        ],
        ..Default::default()
    };
    let file = check(&original, &rewriting(rewrite));
    let codes: Vec<u32> = operators_of(read(&file), 0)
        .iter()
        .map(|o| o.opcode_index())
        .collect();
    assert_eq!(codes, [1, 2]);
    // Nothing is appended where nothing is needed.
    let rewrite = Rewrite {
        operators: vec![concat(15)],
        ..Default::default()
    };
    let file = check(&original, &rewriting(rewrite));
    let codes = verify::root(&file).unwrap().operator_codes().unwrap();
    assert_eq!(codes.len(), 2);
    // The greater of the two codes counts: an entry from before `builtin_code` is one, others are none.
    let file = one_tensor(&[(2, 3), (65, 0)], &[None]);
    let slice = Rewrite {
        operators: vec![NewOperator::Slice {
            inputs: [0, 0, 0],
            output: 0,
        }],
        ..Default::default()
    };
    assert_eq!(used_code(&file, &slice), (1, 2));
    let file = one_tensor(&[(2, 3), (65, 130), (127, 65)], &[None]);
    assert_eq!(used_code(&file, &slice), (3, 4));
    let file = one_tensor(&[], &[None]);
    assert_eq!(used_code(&file, &slice), (0, 1));
}

/// The code that the first operator names, and how many there are.
fn used_code(original: &[u8], rewrite: &Rewrite) -> (u32, usize) {
    let file = check(original, &rewriting(rewrite.clone()));
    let codes = verify::root(&file).unwrap().operator_codes().unwrap();
    (operators_of(read(&file), 0)[0].opcode_index(), codes.len())
}

/// A model with a tensor, no operator, codes by their two fields, and buffers with such data.
fn one_tensor(codes: &[(i8, i32)], buffers: &[Option<&[u8]>]) -> Vec<u8> {
    let mut fbb = FlatBufferBuilder::new();
    let b = &mut fbb;
    let codes: Vec<_> = codes
        .iter()
        .map(|&(deprecated_builtin_code, code)| {
            let args = tflite::OperatorCodeArgs {
                deprecated_builtin_code,
                builtin_code: BuiltinOperator(code),
                ..Default::default()
            };
            tflite::OperatorCode::create(b, &args)
        })
        .collect();
    let operator_codes = (!codes.is_empty()).then(|| b.create_vector(&codes));
    let buffers: Vec<_> = buffers
        .iter()
        .map(|data| {
            let data = data.map(|data| b.create_vector(data));
            let args = tflite::BufferArgs {
                data,
                ..Default::default()
            };
            tflite::Buffer::create(b, &args)
        })
        .collect();
    let buffers = (!buffers.is_empty()).then(|| b.create_vector(&buffers));
    let tensor = tflite::Tensor::create(b, &tflite::TensorArgs::default());
    let tensors = Some(b.create_vector(&[tensor]));
    let subgraph = tflite::SubGraphArgs {
        tensors,
        ..Default::default()
    };
    let subgraph = tflite::SubGraph::create(b, &subgraph);
    let subgraphs = Some(b.create_vector(&[subgraph]));
    let model = tflite::ModelArgs {
        operator_codes,
        subgraphs,
        buffers,
        ..Default::default()
    };
    let model = tflite::Model::create(b, &model);
    tflite::finish_model_buffer(b, model);
    b.finished_data().to_vec()
}

#[test]
fn tensors_without_data_name_a_buffer_without_data() {
    let like = |name: &str| NewTensor::Like {
        original: 0,
        shape: vec![2],
        name: name.into(),
    };
    let constant = NewTensor::Constant {
        shape: vec![],
        values: vec![-2],
        name: "two".into(),
    };
    let rewrite = Rewrite {
        added: vec![like("a"), constant, like("b")],
        ..Default::default()
    };
    let named = |buffers: &[Option<&[u8]>]| -> Vec<u32> {
        let file = grafted(&one_tensor(&[], buffers), &rewriting(rewrite.clone()));
        let found = tensors_of(read(&file), 0);
        let all = verify::root(&file).unwrap().buffers().unwrap();
        let data = |tensor: usize| all.get(found[tensor].buffer() as usize).data();
        assert!(data(1).is_none() && data(3).is_none());
        assert_eq!(data(2).unwrap().bytes(), [0xfe, 0xff, 0xff, 0xff]);
        assert!(found[2].has_rank() && found[2].shape().unwrap().is_empty());
        found.iter().skip(1).map(|tensor| tensor.buffer()).collect()
    };
    assert_eq!(named(&[None, Some(&[1])]), [0, 2, 0]);
    // A model without buffers gets an empty one first.
    assert_eq!(named(&[]), [0, 1, 0]);
    // Buffer 0 has data: one more buffer, for both.
    assert_eq!(named(&[Some(&[1, 2, 3])]), [1, 2, 1]);
    assert_eq!(named(&[Some(&[1]), None]), [2, 3, 2]);
}

/// A valid rewrite of the first subgraph of the hand-built model: tensor 1 is replaced, operator 0, which names it, copied.
fn hand_rewrite() -> Rewrite {
    Rewrite {
        subgraph: 0,
        replaced: vec![(
            1,
            NewTensor::Like {
                original: 0,
                shape: vec![1, 2, 8, 3],
                name: "half".into(),
            },
        )],
        added: vec![NewTensor::Constant {
            shape: vec![2, 1],
            values: vec![7, -7],
            name: String::new(),
        }],
        operators: vec![
            NewOperator::Like {
                original: 0,
                inputs: vec![0, -1, 4],
                outputs: vec![1],
            },
            NewOperator::Original(2),
            NewOperator::Like {
                original: 1,
                inputs: vec![],
                outputs: vec![],
            },
            NewOperator::Like {
                original: 2,
                inputs: vec![],
                outputs: vec![2],
            },
            NewOperator::Original(3),
        ],
    }
}

/// Every field of a tensor and an operator, data outside the FlatBuffer, and other metadata.
#[test]
fn a_model_with_every_field_is_rewritten() {
    let wanted = |at: u64| Wanted {
        metadata: vec![("entry".into(), Some(vec![1]))],
        outside_buffers: vec![(at, 4)],
        outside_options: Some((at + 4, 3)),
        ..Default::default()
    };
    let at = build(&wanted(1 << 40)).len() as u64;
    let mut original = build(&wanted(at));
    original.extend(b"DATAopt");
    let edit = rewriting(hand_rewrite());
    let file = check(&original, &edit);
    let like = tensors_of(read(&file), 0)[1];
    assert!(!like.is_variable() && like.sparsity().is_none());
    assert_eq!((like.external_buffer(), like.buffer()), (0, 0));
    assert!(like.has_rank() && like.variant_tensors().is_some());
    assert_eq!(like.quantization().unwrap().quantized_dimension(), 3);
    let [first, _, custom, ..] = operators_of(read(&file), 0)[..] else {
        panic!("five operators");
    };
    let mutating: Vec<bool> = first.mutating_variable_inputs().unwrap().iter().collect();
    assert_eq!(mutating, [true, false, true]);
    assert_eq!(ints(first.intermediates()), [3]);
    assert_eq!(custom.custom_options().unwrap().bytes(), [9, 8, 7]);
    assert_eq!(custom.debug_metadata_index(), 2);
    let model = Model::new(&file).unwrap();
    let last = model.subgraphs().unwrap().get(0).unwrap();
    let last = last.operators().unwrap().get(4).unwrap();
    assert_eq!(model.custom_options(last), Ok(Some(&b"opt"[..])));
    let outside = model.buffers().unwrap().get(4).unwrap();
    assert_eq!(model.buffer_bytes(outside), Ok(Some(&b"DATA"[..])));
    assert_eq!(model.metadata_data("entry"), Ok(Some(&[1][..])));
    let [new, ..] = tensors_of(read(&file), 0)[4..] else {
        panic!("five tensors")
    };
    assert_eq!(new.buffer(), 6);

    // A patch on top comes off alone.
    let twice = graft(&file, &edit).unwrap();
    assert!(strip(&twice).unwrap() == file);

    let mut copied = edit;
    copied.rewrite[0].operators[4] = NewOperator::Like {
        original: 3,
        inputs: vec![],
        outputs: vec![],
    };
    let wrong = PatchError::RewriteLargeOptions {
        subgraph: 0,
        operator: 3,
    };
    assert_eq!(graft(&original, &copied), Err(wrong));
}

#[test]
fn a_rewrite_has_to_fit_the_model() {
    let original = build(&Wanted::default());
    let with = |change: &dyn Fn(&mut Rewrite)| {
        let mut rewrite = hand_rewrite();
        change(&mut rewrite);
        let result = graft(&original, &rewriting(rewrite));
        if let Err(error) = result {
            assert!(error.to_string().contains("subgraph"), "{error}");
        }
        result
    };
    let fails = |change: &dyn Fn(&mut Rewrite), wrong: PatchError| {
        assert_eq!(with(change), Err(wrong));
    };
    assert!(with(&|_| {}).is_ok());
    let subgraph = 0;

    let wrong = PatchError::RewriteSubgraph {
        subgraph: 2,
        subgraphs: 2,
    };
    fails(&|r| r.subgraph = 2, wrong);
    let twice = Edit {
        rewrite: vec![hand_rewrite(), hand_rewrite()],
        ..Default::default()
    };
    let wrong = PatchError::RewriteTwice { subgraph };
    assert_eq!(graft(&original, &twice), Err(wrong));

    let wrong = PatchError::RewriteReplaced {
        subgraph,
        tensor: 4,
        tensors: 4,
    };
    fails(&|r| r.replaced[0].0 = 4, wrong);
    let wrong = PatchError::RewriteReplacedTwice {
        subgraph,
        tensor: 1,
    };
    fails(&|r| r.replaced.push(r.replaced[0].clone()), wrong);

    for (tensor, by) in [(0, TensorUse::Input), (3, TensorUse::Operator(0))] {
        let wrong = PatchError::RewriteReplacedInUse {
            subgraph,
            tensor,
            by,
        };
        fails(&|r| r.replaced[0].0 = tensor, wrong);
    }
    let output = PatchError::RewriteReplacedInUse {
        subgraph,
        tensor: 3,
        by: TensorUse::Output,
    };
    let without_first = |r: &mut Rewrite| {
        r.replaced[0].0 = 3;
        r.operators.remove(0);
    };
    fails(&without_first, output);
    for tensor in [1, 2, 3] {
        // Output, input and intermediate of an operator that stays.
        let wrong = PatchError::RewriteReplacedInUse {
            subgraph,
            tensor,
            by: TensorUse::Operator(1),
        };
        let kept = |r: &mut Rewrite| {
            r.replaced[0].0 = tensor;
            r.operators[0] = NewOperator::Original(1);
            r.operators[1] = NewOperator::Original(0);
            r.operators[2] = NewOperator::Original(2);
        };
        fails(&kept, wrong);
    }

    let likes = |original, shape: &[i32]| NewTensor::Like {
        original,
        shape: shape.to_vec(),
        name: String::new(),
    };
    let wrong = PatchError::RewriteLikeTensor {
        subgraph,
        tensor: 1,
        original: 4,
        tensors: 4,
    };
    fails(&|r| r.replaced[0].1 = likes(4, &[]), wrong);
    let wrong = PatchError::RewriteDimension {
        subgraph,
        tensor: 5,
        dimension: -1,
    };
    fails(&|r| r.added.push(likes(3, &[4, -1])), wrong);
    for shape in [&[1, 2, 8][..], &[1, 2, 8, 4]] {
        let wrong = PatchError::RewriteChannels {
            subgraph,
            tensor: 1,
            scales: 3,
            dimension: 3,
        };
        fails(&|r| r.replaced[0].1 = likes(0, shape), wrong);
    }
    for (shape, elements) in [
        (&[2, 2][..], 4),
        (&[], 1),
        (&[0, 2], 0),
        (&[1 << 30, 1 << 30, 1 << 30], usize::MAX),
    ] {
        let constant = NewTensor::Constant {
            shape: shape.to_vec(),
            values: vec![7, -7],
            name: String::new(),
        };
        let wrong = PatchError::RewriteConstant {
            subgraph,
            tensor: 4,
            elements,
            values: 2,
        };
        fails(&|r| r.added[0] = constant.clone(), wrong);
    }

    let wrong = PatchError::RewriteOperator {
        subgraph,
        position: 1,
        operator: 4,
        operators: 4,
    };
    fails(&|r| r.operators[1] = NewOperator::Original(4), wrong);
    let copy = NewOperator::Like {
        original: 4,
        inputs: vec![],
        outputs: vec![],
    };
    fails(&|r| r.operators[1] = copy.clone(), wrong);
    let wrong = PatchError::RewriteOriginalTwice {
        subgraph,
        position: 4,
        operator: 2,
    };
    fails(&|r| r.operators[4] = NewOperator::Original(2), wrong);
    let empty = NewOperator::Concatenation {
        axis: 0,
        inputs: vec![],
        output: 1,
    };
    let wrong = PatchError::RewriteNoInputs {
        subgraph,
        position: 3,
    };
    fails(&|r| r.operators[3] = empty.clone(), wrong);

    // -1 stands for no tensor in the inputs of a copy alone.
    let copy = |inputs: &[i32], outputs: &[i32]| NewOperator::Like {
        original: 1,
        inputs: inputs.to_vec(),
        outputs: outputs.to_vec(),
    };
    let slice = |inputs, output| NewOperator::Slice { inputs, output };
    let concat = |input, output| NewOperator::Concatenation {
        axis: 0,
        inputs: vec![0, input],
        output,
    };
    for (operator, index) in [
        (copy(&[0, 5], &[]), 5),
        (copy(&[-2], &[]), -2),
        (copy(&[], &[0, 5]), 5),
        (copy(&[], &[-1]), -1),
        (slice([0, 1, 5], 0), 5),
        (slice([-1, 1, 2], 0), -1),
        (slice([0, 1, 2], i32::MAX), i64::from(i32::MAX)),
        (concat(5, 0), 5),
        (concat(-1, 0), -1),
        (concat(1, 5), 5),
    ] {
        let wrong = PatchError::RewriteTensor {
            subgraph,
            by: TensorUse::Operator(3),
            index,
            tensors: 5,
        };
        fails(&|r| r.operators[3] = operator.clone(), wrong);
    }
}

/// A signature of the hand-built model is of the second subgraph, and names a tensor that is not there.
#[test]
fn signatures_keep_their_tensors() {
    let original = build(&Wanted::default());
    let like = NewTensor::Like {
        original: 0,
        shape: vec![],
        name: String::new(),
    };
    let with = |replaced: Vec<(u32, NewTensor)>| {
        let rewrite = Rewrite {
            subgraph: 1,
            replaced,
            ..Default::default()
        };
        graft(&original, &rewriting(rewrite))
    };
    let by = TensorUse::Signature(0);
    let wrong = PatchError::RewriteReplacedInUse {
        subgraph: 1,
        tensor: 0,
        by,
    };
    assert_eq!(with(vec![(0, like)]), Err(wrong));
    // It would come to mean one that is added.
    let wrong = PatchError::RewriteTensor {
        subgraph: 1,
        by,
        index: 3,
        tensors: 1,
    };
    assert_eq!(with(vec![]), Err(wrong));
}

#[test]
fn newer_fields_that_would_be_lost_are_errors() {
    let wanted = Wanted {
        newer_subgraph_field: Some((6, 1)),
        ..Default::default()
    };
    let result = graft(&build(&wanted), &rewriting(hand_rewrite()));
    let wrong = PatchError::NewerSubgraphField {
        subgraph: 0,
        slot: 6,
    };
    assert_eq!(result, Err(wrong));

    let original = build(&Wanted {
        newer_tensor_field: Some((11, 5)),
        newer_operator_field: Some((14, 5)),
        ..Default::default()
    });
    // Tables that stay keep them.
    let mut edit = rewriting(hand_rewrite());
    edit.rewrite[0].operators[2] = NewOperator::Original(1);
    let file = grafted(&original, &edit);
    let main = Model::new(&file).unwrap().subgraphs().unwrap();
    let main = main.get(0).unwrap();
    let tensor = main.tensors().unwrap().get(3).unwrap().table();
    assert_eq!(tensor.u32(11, 0), Ok(5));
    let operator = main.operators().unwrap().get(2).unwrap().table();
    assert_eq!(operator.u32(14, 0), Ok(5));

    let wrong = PatchError::NewerOperatorField {
        subgraph: 0,
        operator: 1,
        slot: 14,
    };
    assert_eq!(graft(&original, &rewriting(hand_rewrite())), Err(wrong));
    edit.rewrite[0].added.push(NewTensor::Like {
        original: 3,
        shape: vec![],
        name: String::new(),
    });
    let wrong = PatchError::NewerTensorField {
        subgraph: 0,
        tensor: 3,
        slot: 11,
    };
    assert_eq!(graft(&original, &edit), Err(wrong));
}

/// A rewrite that fits the subgraph, or nothing.
fn random_rewrite(original: Read<'_>, subgraph: usize, random: &mut Random) -> Rewrite {
    let (tensors, operators) = (
        tensors_of(original, subgraph),
        operators_of(original, subgraph),
    );
    let model = original.model;
    let table = model.subgraphs().unwrap().get(subgraph);
    let mut used: BTreeSet<i32> = ints(table.inputs()).into_iter().collect();
    used.extend(ints(table.outputs()));
    for signature in model.signature_defs().iter().flatten() {
        if signature.subgraph_index() as usize == subgraph {
            let maps = [signature.inputs(), signature.outputs()];
            let maps = maps.into_iter().flatten().flatten();
            used.extend(maps.map(|map| map.tensor_index() as i32));
        }
    }
    let mut kept: Vec<u32> = (0..operators.len() as u32).collect();
    kept.retain(|_| random.below(3) > 0);
    for operator in &kept {
        let operator = operators[*operator as usize];
        for list in [
            operator.inputs(),
            operator.outputs(),
            operator.intermediates(),
        ] {
            used.extend(ints(list));
        }
    }
    let copies: Vec<u32> = (0..random.below(6))
        .filter(|_| !operators.is_empty())
        .map(|_| random.below(operators.len()) as u32)
        .filter(|copy| operators[*copy as usize].large_custom_options_offset() <= 1)
        .collect();
    for copy in &copies {
        used.extend(ints(operators[*copy as usize].intermediates()));
    }
    let new_tensor = |random: &mut Random| {
        let name = ["", "a", "bc", "größe"][random.below(4)].to_owned();
        let mut shape: Vec<i32> = (0..random.below(5))
            .map(|_| random.below(4) as i32)
            .collect();
        if random.below(2) == 0 || tensors.is_empty() {
            let elements: i32 = shape.iter().product();
            let values = (0..elements).map(|_| random.below(3) as i32 - 1).collect();
            return NewTensor::Constant {
                shape,
                values,
                name,
            };
        }
        let original = random.below(tensors.len());
        let quantization = tensors[original].quantization();
        if let Some(scales) = quantization.and_then(|q| q.scale())
            && scales.len() > 1
        {
            let dimension = quantization.unwrap().quantized_dimension() as usize;
            shape.resize(shape.len().max(dimension + 1), 1);
            shape[dimension] = scales.len() as i32;
        }
        NewTensor::Like {
            original: original as u32,
            shape,
            name,
        }
    };
    let mut replaced = Vec::new();
    for tensor in (0..tensors.len() as u32).rev() {
        if !used.contains(&(tensor as i32)) && random.below(2) == 0 {
            replaced.push((tensor, new_tensor(random)));
        }
    }
    let added: Vec<NewTensor> = (0..random.below(6)).map(|_| new_tensor(random)).collect();
    let count = tensors.len() + added.len();
    let mut new: Vec<NewOperator> = kept.into_iter().map(NewOperator::Original).collect();
    let indices = |random: &mut Random, least: usize| -> Vec<i32> {
        (0..least + random.below(4))
            .map(|_| random.below(count) as i32)
            .collect()
    };
    if count > 0 {
        for original in copies {
            let copy = NewOperator::Like {
                original,
                inputs: indices(random, 0),
                outputs: indices(random, 0),
            };
            new.insert(random.below(new.len() + 1), copy);
        }
        for _ in 0..random.below(4) {
            let slice = NewOperator::Slice {
                inputs: [(); 3].map(|()| random.below(count) as i32),
                output: random.below(count) as i32,
            };
            new.insert(random.below(new.len() + 1), slice);
            let concat = NewOperator::Concatenation {
                axis: random.below(5) as i32 - 1,
                inputs: indices(random, 1),
                output: random.below(count) as i32,
            };
            if random.below(2) == 0 {
                new.insert(random.below(new.len() + 1), concat);
            }
        }
    }
    Rewrite {
        subgraph,
        replaced,
        added,
        operators: new,
    }
}

fn random_edit(original: Read<'_>, random: &mut Random) -> Edit {
    let subgraphs = original.model.subgraphs().unwrap().len();
    let mut edit = Edit {
        stamp: Stamp {
            tool_version: "0.1.0".into(),
            ..Default::default()
        },
        ..Default::default()
    };
    let mut tensors = 0;
    for subgraph in 0..subgraphs {
        tensors += tensors_of(original, subgraph).len();
        let mut operators = operators_of(original, subgraph).len();
        if random.below(4) > 0 {
            let rewrite = random_rewrite(original, subgraph, random);
            tensors += rewrite.added.len();
            operators = rewrite.operators.len();
            edit.rewrite.push(rewrite);
        }
        if random.below(2) == 0 {
            let mut order: Vec<u32> = (0..operators as u32).collect();
            for at in (1..operators).rev() {
                order.swap(at, random.below(at + 1));
            }
            edit.operator_order.push(OperatorOrder { subgraph, order });
        }
    }
    if random.below(2) == 0 {
        edit.rewrite.reverse();
        let plan = (0..tensors).map(|tensor| 16 * tensor as i32 - 1);
        edit.plan = Some(plan.map(|offset| offset.max(-1)).collect());
    }
    edit
}

#[test]
fn random_rewrites_read_as_written() {
    let mut originals: Vec<Vec<u8>> = files()
        .into_iter()
        .map(|(_, bytes)| bytes)
        .filter(|bytes| bytes.len() < 20_000)
        .collect();
    originals.push(one_tensor(&[], &[]));
    originals.push(one_tensor(&[(2, 2)], &[Some(&[1])]));
    assert!(originals.len() > 20);
    let mut random = Random(0x0bad_5eed_1234_5678);
    let (mut rewrites, mut tensors, mut operators) = (0, 0, 0);
    for original in &originals {
        for _ in 0..6 {
            let edit = random_edit(read(original), &mut random);
            check(original, &edit);
            rewrites += edit.rewrite.len();
            for rewrite in &edit.rewrite {
                tensors += rewrite.replaced.len() + rewrite.added.len();
                let is_new = |o: &&NewOperator| !matches!(o, NewOperator::Original(_));
                operators += rewrite.operators.iter().filter(is_new).count();
            }
        }
    }
    assert!(
        rewrites > 300 && tensors > 1_000 && operators > 1_000,
        "{rewrites} rewrites, {tensors} tensors, {operators} operators"
    );
}

#[test]
fn damaged_files_give_an_error_or_a_rewrite_that_comes_off() {
    let originals = [
        (build(&Wanted::default()), hand_rewrite()),
        (testdata(stripes::MODEL), stripes::rewrite()),
    ];
    let mut random = Random(0x1357_9bdf_0246_8ace);
    let (mut errors, mut patches) = (0, 0);
    for round in 0..6_000 {
        let (original, rewrite) = &originals[round % 2];
        let mut damaged = original.clone();
        // Tables are at both ends of a file.
        for _ in 0..1 + random.below(3) {
            let at = random.below(damaged.len().min(2_000));
            let at = if random.below(2) == 0 {
                at
            } else {
                damaged.len() - 1 - at
            };
            damaged[at] ^= 1 << random.below(8);
        }
        match graft(&damaged, &rewriting(rewrite.clone())) {
            Ok(patched) => {
                assert!(strip(&patched).unwrap() == damaged);
                patches += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                errors += 1;
            }
        }
    }
    assert!(
        errors > 500 && patches > 500,
        "{errors} errors, {patches} patches"
    );
}
