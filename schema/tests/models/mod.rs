//! Models for tests: one built by hand that uses every field, and those of the folders that are there.
#![allow(dead_code, unreachable_pub, clippy::print_stdout, clippy::unwrap_used)]

pub mod stripes;

use std::path::{Path, PathBuf};

use arenaplan_schema::flatbuffers::{FlatBufferBuilder, ForwardsUOffset, Vector, WIPOffset};
use arenaplan_schema::tflite::*;

pub type Tables<'a, T> = WIPOffset<Vector<'a, ForwardsUOffset<T>>>;

/// What a test wants of the model that [`build`] makes.
#[derive(Clone, Default)]
pub struct Wanted {
    /// Metadata entries: name and data; no data makes a buffer without any.
    pub metadata: Vec<(String, Option<Vec<u8>>)>,
    /// A field of the root table by slot, beside the known ones.
    pub newer_model_field: Option<(u16, u32)>,
    /// The same for the first subgraph.
    pub newer_subgraph_field: Option<(u16, u32)>,
    /// The same for the last tensor of the first subgraph.
    pub newer_tensor_field: Option<(u16, u32)>,
    /// The same for the custom operator, the second one.
    pub newer_operator_field: Option<(u16, u32)>,
    /// `Buffer.offset` and `size` of one more buffer each.
    pub outside_buffers: Vec<(u64, u64)>,
    /// `Operator.large_custom_options_offset` and `size` of the last operator.
    pub outside_options: Option<(u64, u64)>,
}

/// Bytes of the constants that [`build`] puts in buffers 1 to 3; the last is at a multiple of 16 only by chance.
pub const CONSTANTS: [&[u8]; 3] = [&[1, 2, 3, 4, 5], &[0xaa; 40], &[7]];

/// A name as files have it: not all of it ASCII.
pub const TENSOR_NAME: &str = "größe/α:0";

/// A model with two subgraphs, four operators, five tensors, and a value in every field that the view knows.
pub fn build(wanted: &Wanted) -> Vec<u8> {
    let mut fbb = FlatBufferBuilder::new();
    let b = &mut fbb;

    let custom_code = b.create_string("MyOp");
    let codes = [
        OperatorCode::create(
            b,
            &OperatorCodeArgs {
                deprecated_builtin_code: 3,
                version: 5,
                builtin_code: BuiltinOperator::CONV_2D,
                ..Default::default()
            },
        ),
        OperatorCode::create(
            b,
            &OperatorCodeArgs {
                deprecated_builtin_code: 32,
                custom_code: Some(custom_code),
                builtin_code: BuiltinOperator::CUSTOM,
                ..Default::default()
            },
        ),
        OperatorCode::create(
            b,
            &OperatorCodeArgs {
                deprecated_builtin_code: 127,
                builtin_code: BuiltinOperator::BROADCAST_ARGS,
                ..Default::default()
            },
        ),
        // As in files from before `builtin_code`.
        OperatorCode::create(
            b,
            &OperatorCodeArgs {
                deprecated_builtin_code: 4,
                ..Default::default()
            },
        ),
    ];
    let operator_codes = Some(b.create_vector(&codes));

    let mut buffers = vec![Buffer::create(b, &BufferArgs::default())];
    for data in CONSTANTS {
        buffers.push(data_buffer(b, data));
    }
    for &(offset, size) in &wanted.outside_buffers {
        buffers.push(Buffer::create(
            b,
            &BufferArgs {
                data: None,
                offset,
                size,
            },
        ));
    }
    let mut metadata = Vec::new();
    for (name, data) in &wanted.metadata {
        let name = Some(b.create_string(name));
        let entry = MetadataArgs {
            name,
            buffer: buffers.len() as u32,
        };
        metadata.push(Metadata::create(b, &entry));
        buffers.push(match data {
            Some(data) => data_buffer(b, data),
            None => Buffer::create(b, &BufferArgs::default()),
        });
    }
    let metadata = (!metadata.is_empty()).then(|| b.create_vector(&metadata));
    let buffers = Some(b.create_vector(&buffers));

    let tensors = tensors(b, wanted.newer_tensor_field);
    let operators = operators(b, wanted);
    let main = SubGraphArgs {
        tensors: Some(tensors),
        inputs: Some(b.create_vector(&[0])),
        outputs: Some(b.create_vector(&[3])),
        operators: Some(operators),
        name: Some(b.create_string("main")),
        debug_metadata_index: 6,
    };
    let main = subgraph(b, &main, wanted.newer_subgraph_field);
    let tensor = Tensor::create(b, &TensorArgs::default());
    let second = SubGraphArgs {
        tensors: Some(b.create_vector(&[tensor])),
        ..Default::default()
    };
    let second = subgraph(b, &second, None);
    let subgraphs = Some(b.create_vector(&[main, second]));

    let name = Some(b.create_string("x"));
    let input = TensorMap::create(
        b,
        &TensorMapArgs {
            name,
            tensor_index: 0,
        },
    );
    let name = Some(b.create_string("y"));
    let output = TensorMap::create(
        b,
        &TensorMapArgs {
            name,
            tensor_index: 3,
        },
    );
    let signature = SignatureDefArgs {
        inputs: Some(b.create_vector(&[input])),
        outputs: Some(b.create_vector(&[output])),
        signature_key: Some(b.create_string("serving_default")),
        subgraph_index: 1,
    };
    let signature = SignatureDef::create(b, &signature);
    let signature_defs = Some(b.create_vector(&[signature]));

    let name = Some(b.create_string("weights.bin"));
    let group = ExternalBufferGroup::create(b, &ExternalBufferGroupArgs { name });
    let external_buffer_groups = Some(b.create_vector(&[group]));
    let packing = Some(b.create_string("raw"));
    let external = ExternalBufferArgs {
        id: 9,
        group: 0,
        offset: 1 << 33,
        length: 77,
        packing,
    };
    let external = ExternalBuffer::create(b, &external);
    let external_buffers = Some(b.create_vector(&[external]));

    let metadata_buffer = Some(b.create_vector(&[1, 2]));
    let description = Some(b.create_string("made by hand"));

    let table = b.start_table();
    b.push_slot_always(Model::VT_VERSION, 3_u32);
    push(b, Model::VT_OPERATOR_CODES, operator_codes);
    push(b, Model::VT_SUBGRAPHS, subgraphs);
    push(b, Model::VT_DESCRIPTION, description);
    push(b, Model::VT_BUFFERS, buffers);
    push(b, Model::VT_METADATA_BUFFER, metadata_buffer);
    push(b, Model::VT_METADATA, metadata);
    push(b, Model::VT_SIGNATURE_DEFS, signature_defs);
    push(b, Model::VT_EXTERNAL_BUFFER_GROUPS, external_buffer_groups);
    push(b, Model::VT_EXTERNAL_BUFFERS, external_buffers);
    if let Some((slot, value)) = wanted.newer_model_field {
        b.push_slot_always(4 + 2 * slot, value);
    }
    let root: WIPOffset<Model<'_>> = WIPOffset::new(b.end_table(table).value());
    finish_model_buffer(b, root);
    b.finished_data().to_vec()
}

fn push<T>(b: &mut FlatBufferBuilder<'_>, slot: u16, value: Option<WIPOffset<T>>) {
    if let Some(value) = value {
        b.push_slot_always(slot, value);
    }
}

fn data_buffer<'a>(b: &mut FlatBufferBuilder<'a>, data: &[u8]) -> WIPOffset<Buffer<'a>> {
    let data = Some(b.create_vector(data));
    Buffer::create(
        b,
        &BufferArgs {
            data,
            ..Default::default()
        },
    )
}

fn subgraph<'a>(
    b: &mut FlatBufferBuilder<'a>,
    args: &SubGraphArgs<'a>,
    newer: Option<(u16, u32)>,
) -> WIPOffset<SubGraph<'a>> {
    let table = b.start_table();
    push(b, SubGraph::VT_TENSORS, args.tensors);
    push(b, SubGraph::VT_INPUTS, args.inputs);
    push(b, SubGraph::VT_OUTPUTS, args.outputs);
    push(b, SubGraph::VT_OPERATORS, args.operators);
    push(b, SubGraph::VT_NAME, args.name);
    b.push_slot(
        SubGraph::VT_DEBUG_METADATA_INDEX,
        args.debug_metadata_index,
        -1,
    );
    if let Some((slot, value)) = newer {
        b.push_slot_always(4 + 2 * slot, value);
    }
    WIPOffset::new(b.end_table(table).value())
}

fn tensors<'a>(b: &mut FlatBufferBuilder<'a>, newer: Option<(u16, u32)>) -> Tables<'a, Tensor<'a>> {
    let details = BlockwiseQuantizationArgs {
        scales: 1,
        zero_points: -1,
        ..Default::default()
    };
    let details = BlockwiseQuantization::create(b, &details);
    let quantization = QuantizationParametersArgs {
        min: Some(b.create_vector(&[-1.5_f32])),
        max: Some(b.create_vector(&[1.25_f32, 2.0])),
        scale: Some(b.create_vector(&[0.5_f32, 0.25, f32::from_bits(0x7fc0_0001)])),
        zero_point: Some(b.create_vector(&[-128_i64, 0, i64::MAX])),
        details_type: QuantizationDetails::BlockwiseQuantization,
        details: Some(details.as_union_value()),
        quantized_dimension: 3,
    };
    let quantization = QuantizationParameters::create(b, &quantization);
    let order = Some(b.create_vector(&[0, 1]));
    let sparsity = SparsityParametersArgs {
        traversal_order: order,
        ..Default::default()
    };
    let sparsity = SparsityParameters::create(b, &sparsity);
    let variant = VariantSubTypeArgs {
        has_rank: true,
        ..Default::default()
    };
    let variant = VariantSubType::create(b, &variant);
    let full = TensorArgs {
        shape: Some(b.create_vector(&[1, 8, 8, 3])),
        type_: TensorType::INT8,
        buffer: 2,
        name: Some(b.create_string(TENSOR_NAME)),
        quantization: Some(quantization),
        is_variable: true,
        sparsity: Some(sparsity),
        shape_signature: Some(b.create_vector(&[-1, 8, 8, 3])),
        has_rank: true,
        variant_tensors: Some(b.create_vector(&[variant])),
        external_buffer: 9,
    };
    let full = Tensor::create(b, &full);
    let mut tensors = vec![full];
    for buffer in [0, 1, 3] {
        let shape = Some(b.create_vector(&[4, buffer as i32]));
        if let (3, Some((slot, value))) = (buffer, newer) {
            let table = b.start_table();
            push(b, Tensor::VT_SHAPE, shape);
            b.push_slot_always(Tensor::VT_BUFFER, buffer);
            b.push_slot_always(4 + 2 * slot, value);
            tensors.push(WIPOffset::new(b.end_table(table).value()));
            continue;
        }
        tensors.push(Tensor::create(
            b,
            &TensorArgs {
                shape,
                buffer,
                ..Default::default()
            },
        ));
    }
    b.create_vector(&tensors)
}

fn operators<'a>(b: &mut FlatBufferBuilder<'a>, wanted: &Wanted) -> Tables<'a, Operator<'a>> {
    let conv = Conv2DOptionsArgs {
        padding: Padding::VALID,
        stride_w: 2,
        stride_h: 3,
        fused_activation_function: ActivationFunctionType::RELU6,
        dilation_w_factor: 4,
        ..Default::default()
    };
    let conv = Conv2DOptions::create(b, &conv);
    let first = OperatorArgs {
        opcode_index: 0,
        inputs: Some(b.create_vector(&[0, -1, 2])),
        outputs: Some(b.create_vector(&[1])),
        builtin_options_type: BuiltinOptions::Conv2DOptions,
        builtin_options: Some(conv.as_union_value()),
        mutating_variable_inputs: Some(b.create_vector(&[true, false, true])),
        intermediates: Some(b.create_vector(&[3])),
        ..Default::default()
    };
    let first = Operator::create(b, &first);
    let second = OperatorArgs {
        opcode_index: 1,
        custom_options: Some(b.create_vector(&[9_u8, 8, 7])),
        debug_metadata_index: 2,
        ..Default::default()
    };
    let second = match wanted.newer_operator_field {
        None => Operator::create(b, &second),
        Some((slot, value)) => {
            let table = b.start_table();
            b.push_slot_always(Operator::VT_OPCODE_INDEX, second.opcode_index);
            push(b, Operator::VT_CUSTOM_OPTIONS, second.custom_options);
            b.push_slot_always(4 + 2 * slot, value);
            WIPOffset::new(b.end_table(table).value())
        }
    };
    let dimensions = Some(b.create_vector(&[5_i64, 6]));
    let options_2 = StablehloBroadcastInDimOptionsArgs {
        broadcast_dimensions: dimensions,
    };
    let options_2 = StablehloBroadcastInDimOptions::create(b, &options_2);
    let third = OperatorArgs {
        opcode_index: 2,
        builtin_options_2_type: BuiltinOptions2::StablehloBroadcastInDimOptions,
        builtin_options_2: Some(options_2.as_union_value()),
        ..Default::default()
    };
    let third = Operator::create(b, &third);
    let (large_custom_options_offset, large_custom_options_size) =
        wanted.outside_options.unwrap_or_default();
    let fourth = OperatorArgs {
        opcode_index: 3,
        large_custom_options_offset,
        large_custom_options_size,
        ..Default::default()
    };
    let fourth = Operator::create(b, &fourth);
    b.create_vector(&[first, second, third, fourth])
}

/// The words of a memory plan, as bytes.
pub fn plan_words(words: &[i32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The models of this project's `testdata`, and real ones from beside the project, where they are.
pub fn files() -> Vec<(PathBuf, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for folder in [root.join("testdata/models"), root.join("../shared/models")] {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            println!(
                "{} is not there: its models are not tested",
                folder.display()
            );
            continue;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            if path
                .extension()
                .is_some_and(|extension| extension == "tflite")
            {
                let bytes = std::fs::read(&path).unwrap();
                found.push((path, bytes));
            }
        }
    }
    found.sort();
    found
}

/// Marsaglia's xorshift64: the same numbers on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
