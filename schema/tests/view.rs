//! The device-side view against the generated reader, and against damaged bytes.
#![cfg(feature = "host")]
#![allow(clippy::unwrap_used)]

mod models;

use arenaplan_schema::flatbuffers::{self, Follow, ForwardsUOffset};
use arenaplan_schema::view::{self, Error, Field, Table, TableKind, Text, Vector};
use arenaplan_schema::{tflite, verify};
use models::{Random, Wanted, build, files, plan_words};

type Generated<'a, T> = Option<flatbuffers::Vector<'a, T>>;

/// An absent vector is an empty one in the view.
fn same<'a, T: view::Scalar, G: Follow<'a>>(
    view: Vector<'_, T>,
    generated: Generated<'a, G>,
    equal: impl Fn(T, G::Inner) -> bool,
) {
    let len = generated.as_ref().map_or(0, |vector| vector.len());
    assert_eq!(view.len(), len);
    assert_eq!(view.iter().len(), len);
    assert!(view.get(len).is_none());
    assert_eq!(view.iter().count(), len);
    for (index, element) in view.iter().enumerate() {
        assert!(
            equal(element, generated.as_ref().unwrap().get(index)),
            "element {index}"
        );
        assert!(equal(
            view.get(index).unwrap(),
            generated.as_ref().unwrap().get(index)
        ));
    }
}

fn same_i32(view: Vector<'_, i32>, generated: Generated<'_, i32>) {
    same(view, generated, |a, b| a == b);
}

fn same_f32(view: Vector<'_, f32>, generated: Generated<'_, f32>) {
    same(view, generated, |a, b| a.to_bits() == b.to_bits());
}

fn same_text(view: Option<Text<'_>>, generated: Option<&str>) {
    assert_eq!(
        view.map(|text| text.as_bytes()),
        generated.map(str::as_bytes)
    );
    assert_eq!(
        view.map(|text| text.to_string()),
        generated.map(str::to_owned)
    );
}

/// The same table is read if it is at the same place.
fn same_table(view: Option<Table<'_>>, generated: Option<flatbuffers::Table<'_>>) {
    assert_eq!(
        view.map(|table| table.position()),
        generated.map(|table| table.loc())
    );
}

fn pairs<'a, V: view::FromTable<'a>, G: Follow<'a> + 'a>(
    view: view::Tables<'a, V>,
    generated: Generated<'a, ForwardsUOffset<G>>,
) -> Vec<(V, G::Inner)> {
    let len = generated.as_ref().map_or(0, |vector| vector.len());
    assert_eq!(view.len(), len);
    assert_eq!(view.iter().len(), len);
    let missing = view.get(len).err().unwrap();
    assert!(matches!(missing, Error::Index { index, len: all, .. } if index == len && all == len));
    let generated = generated.into_iter().flatten();
    view.iter().map(Result::unwrap).zip(generated).collect()
}

fn compare(bytes: &[u8]) {
    let view = view::Model::new(bytes).unwrap();
    let model = verify::root(bytes).unwrap();
    assert_eq!(view.version().unwrap(), model.version());
    same_text(view.description().unwrap(), model.description());
    same_i32(view.metadata_buffer().unwrap(), model.metadata_buffer());
    for (a, b) in pairs(view.operator_codes().unwrap(), model.operator_codes()) {
        assert_eq!(
            a.deprecated_builtin_code().unwrap(),
            b.deprecated_builtin_code()
        );
        assert_eq!(a.extended_builtin_code().unwrap(), b.builtin_code().0);
        let larger = b.builtin_code().0.max(b.deprecated_builtin_code().into());
        assert_eq!(a.builtin_code().unwrap(), larger);
        same_text(a.custom_code().unwrap(), b.custom_code());
        assert_eq!(a.version().unwrap(), b.version());
    }
    for (a, b) in pairs(view.subgraphs().unwrap(), model.subgraphs()) {
        same_i32(a.inputs().unwrap(), b.inputs());
        same_i32(a.outputs().unwrap(), b.outputs());
        same_text(a.name().unwrap(), b.name());
        for (a, b) in pairs(a.tensors().unwrap(), b.tensors()) {
            compare_tensor(a, b);
        }
        for (a, b) in pairs(a.operators().unwrap(), b.operators()) {
            compare_operator(&view, a, b);
        }
    }
    for (a, b) in pairs(view.buffers().unwrap(), model.buffers()) {
        assert_eq!(a.data().unwrap(), b.data().map(|data| data.bytes()));
        assert_eq!(a.offset().unwrap(), b.offset());
        assert_eq!(a.size().unwrap(), b.size());
        if let Some(data) = b.data() {
            assert_eq!(view.buffer_bytes(a).unwrap(), Some(data.bytes()));
        }
    }
    for (a, b) in pairs(view.metadata().unwrap(), model.metadata()) {
        same_text(a.name().unwrap(), b.name());
        assert_eq!(a.buffer().unwrap(), b.buffer());
    }
    for (a, b) in pairs(view.signature_defs().unwrap(), model.signature_defs()) {
        let inputs = pairs(a.inputs().unwrap(), b.inputs());
        for (a, b) in inputs
            .into_iter()
            .chain(pairs(a.outputs().unwrap(), b.outputs()))
        {
            same_text(a.name().unwrap(), b.name());
            assert_eq!(a.tensor_index().unwrap(), b.tensor_index());
        }
        same_text(a.signature_key().unwrap(), b.signature_key());
        assert_eq!(a.subgraph_index().unwrap(), b.subgraph_index());
    }
    let groups = view.external_buffer_groups().unwrap();
    for (a, b) in pairs(groups, model.external_buffer_groups()) {
        same_text(a.name().unwrap(), b.name());
    }
    for (a, b) in pairs(view.external_buffers().unwrap(), model.external_buffers()) {
        assert_eq!(a.id().unwrap(), b.id());
        assert_eq!(a.group().unwrap(), b.group());
        assert_eq!(a.offset().unwrap(), b.offset());
        assert_eq!(a.length().unwrap(), b.length());
        same_text(a.packing().unwrap(), b.packing());
    }
}

fn compare_tensor(a: view::Tensor<'_>, b: tflite::Tensor<'_>) {
    same_i32(a.shape().unwrap(), b.shape());
    assert_eq!(a.element_type().unwrap(), b.type_().0);
    assert_eq!(a.buffer().unwrap(), b.buffer());
    same_text(a.name().unwrap(), b.name());
    assert_eq!(a.is_variable().unwrap(), b.is_variable());
    same_table(a.sparsity().unwrap(), b.sparsity().map(|table| table._tab));
    same_i32(a.shape_signature().unwrap(), b.shape_signature());
    assert_eq!(a.has_rank().unwrap(), b.has_rank());
    assert_eq!(a.external_buffer().unwrap(), b.external_buffer());
    let (a, b) = (a.quantization().unwrap(), b.quantization());
    assert_eq!(a.is_some(), b.is_some());
    if let (Some(a), Some(b)) = (a, b) {
        same_f32(a.min().unwrap(), b.min());
        same_f32(a.max().unwrap(), b.max());
        same_f32(a.scale().unwrap(), b.scale());
        same(a.zero_point().unwrap(), b.zero_point(), |a, b| a == b);
        assert_eq!(a.details_type().unwrap(), b.details_type().0);
        same_table(a.details().unwrap(), b.details());
        assert_eq!(a.quantized_dimension().unwrap(), b.quantized_dimension());
    }
}

fn compare_operator(model: &view::Model<'_>, a: view::Operator<'_>, b: tflite::Operator<'_>) {
    assert_eq!(a.opcode_index().unwrap(), b.opcode_index());
    same_i32(a.inputs().unwrap(), b.inputs());
    same_i32(a.outputs().unwrap(), b.outputs());
    assert_eq!(a.options_type().unwrap(), b.builtin_options_type().0);
    same_table(a.options().unwrap(), b.builtin_options());
    assert_eq!(
        a.custom_options().unwrap(),
        b.custom_options().map(|data| data.bytes())
    );
    if let Some(data) = b.custom_options() {
        assert_eq!(model.custom_options(a).unwrap(), Some(data.bytes()));
    }
    same(
        a.mutating_variable_inputs().unwrap(),
        b.mutating_variable_inputs(),
        |a, b| a == b,
    );
    same_i32(a.intermediates().unwrap(), b.intermediates());
    assert_eq!(
        a.large_custom_options_offset().unwrap(),
        b.large_custom_options_offset()
    );
    assert_eq!(
        a.large_custom_options_size().unwrap(),
        b.large_custom_options_size()
    );
    assert_eq!(a.options2_type().unwrap(), b.builtin_options_2_type().0);
    same_table(a.options2().unwrap(), b.builtin_options_2());
    // Options by slot: scalars, an enum, defaults.
    if let Some(conv) = b.builtin_options_as_conv_2_doptions() {
        let options = a.options().unwrap().unwrap();
        assert_eq!(options.i8(0, 0).unwrap(), conv.padding().0);
        assert_eq!(options.i32(1, 0).unwrap(), conv.stride_w());
        assert_eq!(options.i32(2, 0).unwrap(), conv.stride_h());
        assert_eq!(
            options.i8(3, 0).unwrap(),
            conv.fused_activation_function().0
        );
        assert_eq!(options.i32(4, 1).unwrap(), conv.dilation_w_factor());
        assert_eq!(options.i32(5, 1).unwrap(), conv.dilation_h_factor());
    }
    if let Some(softmax) = b.builtin_options_as_softmax_options() {
        let options = a.options().unwrap().unwrap();
        assert_eq!(
            options.f32(0, 0.0).unwrap().to_bits(),
            softmax.beta().to_bits()
        );
    }
    if let Some(connected) = b.builtin_options_as_fully_connected_options() {
        let options = a.options().unwrap().unwrap();
        assert_eq!(options.bool(2, false).unwrap(), connected.keep_num_dims());
    }
    if let Some(reshape) = b.builtin_options_as_reshape_options() {
        let shape = a.options().unwrap().unwrap().vector(0).unwrap();
        same_i32(shape.unwrap_or_default(), reshape.new_shape());
    }
    if let Some(broadcast) = b.builtin_options_2_as_stablehlo_broadcast_in_dim_options() {
        let dimensions = a.options2().unwrap().unwrap().vector::<i64>(0).unwrap();
        same(
            dimensions.unwrap_or_default(),
            broadcast.broadcast_dimensions(),
            |a, b| a == b,
        );
    }
}

/// A model with metadata of all kinds, a plan for its five tensors among them.
fn rich() -> Vec<u8> {
    let plan = plan_words(&[1, 2, 5, -1, 0, 192, -1, 64]);
    build(&Wanted {
        metadata: vec![
            ("min_runtime_version".into(), Some(b"1.5.0".to_vec())),
            (view::PLAN_NAME.into(), Some(plan)),
            ("empty".into(), Some(Vec::new())),
            ("none".into(), None),
        ],
        ..Default::default()
    })
}

#[test]
fn the_view_reads_what_the_generated_reader_reads() {
    compare(&rich());
    for (path, bytes) in files() {
        println!("{}", path.display());
        compare(&bytes);
    }
}

#[test]
fn bytes_at_odd_addresses_are_read_the_same() {
    let bytes = rich();
    let mut room = vec![0; bytes.len() + 8];
    let at = usize::from(room.as_ptr().align_offset(8) == 0);
    room[at..at + bytes.len()].copy_from_slice(&bytes);
    let odd = &room[at..at + bytes.len()];
    assert_eq!(odd.as_ptr().align_offset(2), 1);
    let (a, b) = (
        view::Model::new(odd).unwrap(),
        view::Model::new(&bytes).unwrap(),
    );
    assert_eq!(summary(&a), summary(&b));
    let offsets: Vec<i32> = a
        .offline_plan()
        .unwrap()
        .unwrap()
        .offsets()
        .iter()
        .collect();
    assert_eq!(offsets, [-1, 0, 192, -1, 64]);
}

/// All numbers of the model that come by way of a vector.
fn summary(model: &view::Model<'_>) -> Vec<i64> {
    let mut all = Vec::new();
    for subgraph in model.subgraphs().unwrap() {
        let subgraph = subgraph.unwrap();
        for tensor in subgraph.tensors().unwrap() {
            let tensor = tensor.unwrap();
            all.extend(tensor.shape().unwrap().iter().map(i64::from));
            if let Some(quantization) = tensor.quantization().unwrap() {
                all.extend(quantization.zero_point().unwrap());
                let scale = quantization.scale().unwrap();
                all.extend(scale.iter().map(|scale| i64::from(scale.to_bits())));
            }
        }
    }
    all
}

#[test]
fn values_are_those_the_model_was_built_with() {
    let bytes = rich();
    let model = view::Model::new(&bytes).unwrap();
    let codes: Vec<i32> = model
        .operator_codes()
        .unwrap()
        .iter()
        .map(|c| c.unwrap().builtin_code().unwrap())
        .collect();
    // CONV_2D, CUSTOM, BROADCAST_ARGS, and DEPTHWISE_CONV_2D in the old field alone.
    assert_eq!(codes, [3, 32, 145, 4]);
    let tensor = model
        .subgraphs()
        .unwrap()
        .get(0)
        .unwrap()
        .tensors()
        .unwrap()
        .get(0)
        .unwrap();
    assert_eq!(tensor.name().unwrap().unwrap(), models::TENSOR_NAME);
    assert_eq!(tensor.shape_signature().unwrap().get(0), Some(-1));
    assert_eq!(tensor.external_buffer().unwrap(), 9);
    assert_eq!(
        model.metadata_bytes("min_runtime_version").unwrap(),
        Some(&b"1.5.0"[..])
    );
    assert_eq!(model.metadata_bytes("empty").unwrap(), Some(&[][..]));
    assert_eq!(model.metadata_bytes("none").unwrap(), None);
    assert_eq!(model.metadata_bytes("absent").unwrap(), None);
    let plan = model.offline_plan().unwrap().unwrap();
    assert_eq!((plan.version(), plan.subgraphs()), (1, 2));
    assert_eq!(
        plan.offsets().iter().collect::<Vec<_>>(),
        [-1, 0, 192, -1, 64]
    );
}

#[test]
fn data_outside_the_flatbuffer_is_found_by_its_offset() {
    let wanted = |at: u64| Wanted {
        outside_buffers: vec![(at, 4), (1, 1), (0, 0), (at + 1, 1)],
        outside_options: Some((at + 4, 3)),
        ..Default::default()
    };
    let at = build(&wanted(1 << 40)).len() as u64;
    let mut bytes = build(&wanted(at));
    bytes.extend(b"DATAopt");
    let model = view::Model::new(&bytes).unwrap();
    let buffer = |index: usize| {
        model
            .buffer_bytes(model.buffers().unwrap().get(index).unwrap())
            .unwrap()
    };
    assert_eq!(buffer(4), Some(&b"DATA"[..]));
    // Offset and size count only above 1.
    assert_eq!((buffer(5), buffer(6), buffer(7)), (None, None, None));
    let main = model.subgraphs().unwrap().get(0).unwrap();
    let last = main.operators().unwrap().get(3).unwrap();
    assert_eq!(model.custom_options(last).unwrap(), Some(&b"opt"[..]));

    let cut = view::Model::new(&bytes[..bytes.len() - 1]).unwrap();
    let field = Field {
        table: TableKind::Operator,
        slot: Some(9),
    };
    let outside = Error::OutsideData {
        field,
        position: at as usize + 4,
    };
    assert_eq!(cut.custom_options(last), Err(outside));
}

fn plan_of(metadata: Vec<(&str, Option<Vec<u8>>)>) -> Result<Option<Vec<i32>>, Error> {
    let metadata = metadata
        .into_iter()
        .map(|(name, data)| (name.to_owned(), data))
        .collect();
    let bytes = build(&Wanted {
        metadata,
        ..Default::default()
    });
    let plan = view::Model::new(&bytes).unwrap().offline_plan()?;
    Ok(plan.map(|plan| plan.offsets().iter().collect()))
}

#[test]
fn the_plan_is_found_by_its_exact_name_and_the_last_wins() {
    let plan = |first: i32| Some(plan_words(&[1, 2, 5, first, -1, -1, -1, -1]));
    let name = view::PLAN_NAME;
    assert_eq!(plan_of(vec![]), Ok(None));
    assert_eq!(plan_of(vec![("OfflineMemoryAllocatio", None)]), Ok(None));
    assert_eq!(plan_of(vec![("OfflineMemoryAllocation2", None)]), Ok(None));
    assert_eq!(
        plan_of(vec![(name, plan(16))]),
        Ok(Some(vec![16, -1, -1, -1, -1]))
    );
    let two = vec![(name, plan(16)), ("other", plan(32)), (name, plan(48))];
    assert_eq!(plan_of(two), Ok(Some(vec![48, -1, -1, -1, -1])));
    // TensorFlow Lite Micro stops at the first wrong one, though it would not use it.
    let wrong = vec![(name, Some(plan_words(&[1, 2, 0]))), (name, plan(48))];
    assert_eq!(
        plan_of(wrong),
        Err(Error::PlanTensorCount {
            stated: 0,
            tensors: 5
        })
    );
    // More words than offsets are ignored, as are a version and a subgraph count of any value.
    let odd = plan_words(&[9, 7, 5, 0, 0, 0, 0, 0, 1234]);
    assert_eq!(plan_of(vec![(name, Some(odd))]), Ok(Some(vec![0; 5])));
}

#[test]
fn each_wrong_plan_has_its_own_error() {
    let plan = |data: Option<Vec<u8>>| plan_of(vec![(view::PLAN_NAME, data)]);
    assert_eq!(plan(None), Err(Error::PlanWithoutData { buffer: 4 }));
    assert_eq!(plan(Some(vec![])), Err(Error::PlanHeader { bytes: 0 }));
    assert_eq!(
        plan(Some(plan_words(&[1, 2]))),
        Err(Error::PlanHeader { bytes: 8 })
    );
    assert_eq!(
        plan(Some(vec![0; 11])),
        Err(Error::PlanHeader { bytes: 11 })
    );
    let mut short = plan_words(&[1, 2, 5, 0, 0, 0, 0, 0]);
    short.pop();
    assert_eq!(
        plan(Some(short)),
        Err(Error::PlanTruncated {
            stated: 5,
            present: 4
        })
    );
    let huge = plan_words(&[1, 2, -1, 0]);
    assert_eq!(
        plan(Some(huge)),
        Err(Error::PlanTruncated {
            stated: u32::MAX,
            present: 1
        })
    );
    for (words, stated) in [
        (vec![1, 2, 4, 0, 0, 0, 0, 0], 4),
        (vec![1, 2, 6, 0, 0, 0, 0, 0, 0], 6),
    ] {
        let wrong = Error::PlanTensorCount { stated, tensors: 5 };
        assert_eq!(plan(Some(plan_words(&words))), Err(wrong));
    }
    let before = plan_words(&[1, 2, 5, 0, -1, 0, -2, 0]);
    assert_eq!(
        plan(Some(before)),
        Err(Error::PlanOffset {
            tensor: 3,
            offset: -2
        })
    );
}

#[test]
fn a_plan_in_a_buffer_that_does_not_exist_is_an_error() {
    let mut bytes = rich();
    let entry = view::Model::new(&bytes)
        .unwrap()
        .metadata()
        .unwrap()
        .get(1)
        .unwrap();
    assert_eq!(entry.buffer(), Ok(5));
    // The field is in the 8 bytes behind the table's start, and the only 5 there.
    let at = entry.table().position();
    let field = (at + 4..at + 12)
        .step_by(4)
        .find(|&at| bytes[at..at + 4] == [5, 0, 0, 0])
        .unwrap();
    bytes[field] = 200;
    let plan = view::Model::new(&bytes).unwrap().offline_plan();
    assert_eq!(
        plan.unwrap_err(),
        Error::PlanBufferIndex {
            buffer: 200,
            buffers: 8
        }
    );
}

/// Reads everything that can be reached, whatever errors come on the way; gives how many values that were.
fn read_all(bytes: &[u8]) -> usize {
    let mut count = 0;
    let Ok(model) = view::Model::new(bytes) else {
        return 0;
    };
    let _ = (
        model.version(),
        model
            .description()
            .map(|text| text.map(|text| text.to_string())),
    );
    let _ = (
        model.metadata_buffer(),
        model.offline_plan(),
        model.metadata_bytes("none"),
    );
    for code in model.operator_codes().into_iter().flatten().flatten() {
        let _ = (code.builtin_code(), code.version(), code.custom_code());
        count += 1;
    }
    for subgraph in model.subgraphs().into_iter().flatten().flatten() {
        let _ = (subgraph.inputs(), subgraph.outputs(), subgraph.name());
        for tensor in subgraph.tensors().into_iter().flatten().flatten() {
            count += tensor.shape().map_or(0, |shape| shape.iter().count());
            count += tensor
                .shape_signature()
                .map_or(0, |shape| shape.iter().count());
            let _ = (
                tensor.element_type(),
                tensor.buffer(),
                tensor.name(),
                tensor.has_rank(),
            );
            let _ = (
                tensor.sparsity(),
                tensor.external_buffer(),
                tensor.is_variable(),
            );
            if let Ok(Some(quantization)) = tensor.quantization() {
                count += quantization.scale().map_or(0, |scale| scale.iter().count());
                count += quantization
                    .zero_point()
                    .map_or(0, |zero| zero.iter().count());
                let _ = (
                    quantization.min(),
                    quantization.max(),
                    quantization.details(),
                );
                let _ = (
                    quantization.details_type(),
                    quantization.quantized_dimension(),
                );
            }
        }
        for operator in subgraph.operators().into_iter().flatten().flatten() {
            count += operator.inputs().map_or(0, |inputs| inputs.iter().count());
            count += operator
                .outputs()
                .map_or(0, |outputs| outputs.iter().count());
            let _ = (
                operator.intermediates(),
                operator.mutating_variable_inputs(),
            );
            let _ = (
                operator.opcode_index(),
                operator.options_type(),
                operator.options2_type(),
            );
            let _ = model
                .custom_options(operator)
                .map(|data| data.map(|data| data.to_vec()));
            for options in [operator.options(), operator.options2()]
                .into_iter()
                .flatten()
                .flatten()
            {
                for slot in 0..options.slots() {
                    let _ = (
                        options.i32(slot, 1),
                        options.f64(slot, 0.0),
                        options.table(slot),
                    );
                    let _ = (options.vector::<i64>(slot), options.text(slot));
                    count += 1;
                }
            }
        }
    }
    for buffer in model.buffers().into_iter().flatten().flatten() {
        count += model
            .buffer_bytes(buffer)
            .map_or(0, |data| data.map_or(0, <[u8]>::len));
    }
    for entry in model.metadata().into_iter().flatten().flatten() {
        let _ = (entry.name(), entry.buffer());
    }
    for signature in model.signature_defs().into_iter().flatten().flatten() {
        let _ = (signature.signature_key(), signature.subgraph_index());
        for maps in [signature.inputs(), signature.outputs()]
            .into_iter()
            .flatten()
        {
            count += maps
                .iter()
                .flatten()
                .filter(|map| map.name().is_ok())
                .count();
        }
    }
    for external in model.external_buffers().into_iter().flatten().flatten() {
        let _ = (
            external.id(),
            external.offset(),
            external.length(),
            external.packing(),
        );
    }
    count
}

#[test]
fn truncation_at_every_length_is_survived() {
    let bytes = rich();
    let whole = read_all(&bytes);
    assert!(whole > 50, "{whole} values");
    for length in 0..bytes.len() {
        // What is cut off is at the end of some vector or table, but never in the root's first bytes.
        let read = read_all(&bytes[..length]);
        assert!(read <= whole);
        if length < 8 {
            let error = Error::NotTflite { file_bytes: length };
            assert_eq!(view::Model::new(&bytes[..length]).unwrap_err(), error);
        }
    }
}

#[test]
fn flipped_bytes_are_survived() {
    let bytes = rich();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut differences = 0;
    for _ in 0..20_000 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(damaged.len());
            damaged[at] ^= 1 << random.below(8);
        }
        differences += usize::from(read_all(&damaged) != read_all(&bytes));
    }
    assert!(
        differences > 1_000,
        "{differences} of the damaged models read differently"
    );
}

#[test]
fn errors_say_what_was_read_and_where() {
    let bytes = rich();
    let model = view::Model::new(&bytes).unwrap();
    // Cut within the metadata vector, whose place the error then names.
    let entries = model.metadata().unwrap().len() as u32;
    let root = model.table().position();
    let at = (root..root + 60)
        .step_by(4)
        .map(|at| at + u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize)
        .find(|&at| {
            at + 4 < bytes.len() && bytes[at..at + 4] == entries.to_le_bytes() && at > root + 44
        })
        .unwrap();
    let cut = view::Model::new(&bytes[..at + 6]).unwrap();
    let error = cut.metadata().unwrap_err();
    let field = Field {
        table: TableKind::Model,
        slot: Some(6),
    };
    assert_eq!(
        error,
        Error::VectorLength {
            field,
            position: at
        }
    );
    let text = error.to_string();
    assert!(
        text.starts_with("Model.metadata: a vector at byte "),
        "{text}"
    );
}
