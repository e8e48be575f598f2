//! Models of one operator, built from a line of text: `OPERATOR INPUTS > OUTPUTS OPTIONS`.
//!
//! A tensor is `TYPE:SHAPE`, then `/N` for N scales (of 0.5, or `*SCALE`; zero point 0, or `@ZERO`), then `!` for a constant
//! with its values (the last is repeated; 0 if none is given; `r` for random ones; bytes for i4), or `~` for a variable; `-`
//! is an input that is left out. A builtin operator's options that are not named are the default.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "a test may fail, and each uses a part of it"
)]

use arenaplan_schema::flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};
use arenaplan_schema::tflite::{
    self, ActivationFunctionType, Buffer, BufferArgs, BuiltinOperator, BuiltinOptions, Metadata,
    MetadataArgs, MirrorPadMode, ModelArgs, Operator, OperatorArgs, OperatorCode, OperatorCodeArgs,
    Padding, QuantizationParameters, QuantizationParametersArgs, SubGraph, SubGraphArgs, Tensor,
    TensorArgs, TensorType,
};

/// An operator with its tensors and options.
pub struct Single<'a> {
    pub line: &'a str,
    pub operator: &'a str,
    pub inputs: Vec<&'a str>,
    pub outputs: Vec<&'a str>,
    pub options: Vec<(&'a str, &'a str)>,
}

impl<'a> Single<'a> {
    /// Reads a line.
    pub fn parse(line: &'a str) -> Self {
        let mut words = line.split_whitespace();
        let operator = words.next().unwrap();
        let (tensors, options): (Vec<&str>, Vec<&str>) = words.partition(|w| !w.contains('='));
        let (inputs, outputs) = tensors.split_at(tensors.iter().position(|&w| w == ">").unwrap());
        let options = options.iter().map(|w| w.split_once('=').unwrap());
        Self {
            line,
            operator,
            inputs: inputs.to_vec(),
            outputs: outputs[1..].to_vec(),
            options: options.collect(),
        }
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
        "u8" => TensorType::UINT8,
        "u32" => TensorType::UINT32,
        "u64" => TensorType::UINT64,
        "i64" => TensorType::INT64,
        "bool" => TensorType::BOOL,
        _ => panic!("{name}"),
    }
}

/// Bytes of one constant, as they are in the file: `elements` values, of which the last that is given is repeated.
/// `r` stands for random ones: none near 0, which would hide what it is multiplied with, and floats below 1.
fn constant(ty: TensorType, elements: usize, values: &str) -> Vec<u8> {
    let mut state = elements as u32 ^ 0x9E37_79B9;
    let mut random = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match i64::from(state >> 24) - 128 {
            // As two numbers of 4 bits, too.
            small @ -31..32 => small ^ 0x44,
            large => large | 0x44,
        }
    };
    let given: Vec<i64> = match values {
        "r" => (0..elements).map(|_| random()).collect(),
        _ => {
            let given = values.split(',').filter(|v| !v.is_empty());
            given.map(|v| v.parse().unwrap()).collect()
        }
    };
    let scale = if values == "r" { 1.0 / 128.0 } else { 1.0 };
    let value = |i: usize| given.get(i).or(given.last()).copied().unwrap_or(0);
    match ty {
        // Two in each byte; the values are whole bytes.
        TensorType::INT4 => (0..elements.div_ceil(2)).map(|i| value(i) as u8).collect(),
        TensorType::INT8 | TensorType::UINT8 | TensorType::BOOL => {
            (0..elements).map(|i| value(i) as u8).collect()
        }
        TensorType::INT16 => (0..elements)
            .flat_map(|i| (value(i) as i16).to_le_bytes())
            .collect(),
        TensorType::INT32 => (0..elements)
            .flat_map(|i| (value(i) as i32).to_le_bytes())
            .collect(),
        TensorType::INT64 => (0..elements).flat_map(|i| value(i).to_le_bytes()).collect(),
        TensorType::FLOAT32 => (0..elements)
            .flat_map(|i| (value(i) as f32 * scale).to_le_bytes())
            .collect(),
        _ => panic!("no constants of {ty:?}"),
    }
}

/// A FlexBuffers map of numbers, keys in order: every field has 4 bytes. A value with a point is a float.
fn map(options: &[(&str, &str)]) -> Vec<u8> {
    const INT: u8 = 1;
    const FLOAT: u8 = 3;
    assert!(options.is_sorted(), "keys must be in order: {options:?}");
    let values = options.iter().map(|(_, value)| match value.parse() {
        Ok(whole) => (INT, i32::to_le_bytes(whole)),
        Err(_) => (FLOAT, f32::to_le_bytes(value.parse().unwrap())),
    });
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
    let start = bytes.len();
    values.clone().for_each(|(_, field)| bytes.extend(field));
    bytes.extend(values.map(|(kind, _)| kind << 2 | 2));
    let distance = bytes.len() - start;
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
        let (plain, values) = match text.split_once('!') {
            Some((plain, values)) => (plain, Some(values)),
            None => (text.trim_end_matches('~'), None),
        };
        let (plain, zero_point) = plain.split_once('@').unwrap_or((plain, "0"));
        let (plain, scale) = plain.split_once('*').unwrap_or((plain, "0.5"));
        let (plain, channels) = plain.split_once('/').unwrap_or((plain, "0"));
        let (name, shape) = plain.split_once(':').unwrap();
        let channels: usize = channels.parse().unwrap();
        let shape: Vec<i32> = shape
            .split(',')
            .filter(|d| !d.is_empty())
            .map(|d| d.parse().unwrap())
            .collect();
        let quantization = (channels > 0).then(|| {
            let zero_point = vec![zero_point.parse::<i64>().unwrap(); channels];
            let zero_point = Some(b.create_vector(&zero_point));
            let scale = vec![scale.parse::<f32>().unwrap(); channels];
            let scale = Some(b.create_vector(&scale));
            let axis = shape.iter().position(|&d| d as usize == channels);
            QuantizationParameters::create(
                b,
                &QuantizationParametersArgs {
                    scale,
                    zero_point,
                    // With one scale it says nothing.
                    quantized_dimension: axis.filter(|_| channels > 1).unwrap_or(0) as i32,
                    ..Default::default()
                },
            )
        });
        // A constant of an absurd shape has less data than that asks for.
        let sizes = shape.iter().map(|&d| usize::try_from(d).unwrap_or(0));
        let elements = sizes.fold(1, usize::saturating_mul).min(1 << 16);
        let data = values.map(|values| b.create_vector(&constant(ty(name), elements, values)));
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
        if is_input && data.is_none() && !text.ends_with('~') {
            self.graph_inputs.push(index);
        }
        index
    }
}

/// A value of an option.
trait Value: Sized {
    fn read(text: &str) -> Option<Self>;
}

macro_rules! values {
    ($($ty:ty: $read:expr;)+) => {
        $(impl Value for $ty {
            fn read(text: &str) -> Option<Self> {
                let read: fn(&str) -> Option<$ty> = $read;
                read(text)
            }
        })+
    };
}

values! {
    i32: |t| t.parse().ok();
    f32: |t| t.parse().ok();
    bool: |t| t.parse().ok();
    Padding: |t| t.parse().ok().map(Padding);
    MirrorPadMode: |t| t.parse().ok().map(MirrorPadMode);
    ActivationFunctionType: |t| t.parse().ok().map(ActivationFunctionType);
}

/// The options of a builtin operator that needs some that are not the default.
fn builtin_options(
    b: &mut FlatBufferBuilder<'_>,
    single: &Single<'_>,
) -> (BuiltinOptions, Option<WIPOffset<UnionWIPOffset>>) {
    /// The option, or what it is without being named.
    fn option<T: Value>(single: &Single<'_>, name: &str, default: T) -> T {
        match single.options.iter().find(|(k, _)| *k == name) {
            Some((_, text)) => T::read(text).unwrap_or_else(|| panic!("{name}: {}", single.line)),
            None => default,
        }
    }
    macro_rules! table {
        ($table:ident, $args:ident, $($field:ident)+) => {{
            let names = [$(stringify!($field)),+];
            let known = single.options.iter().all(|(name, _)| names.contains(name));
            assert!(known, "{}", single.line);
            #[allow(clippy::needless_update, reason = "some tables have these fields alone")]
            let args = {
                let default = tflite::$args::default();
                tflite::$args {
                    $($field: option(single, stringify!($field), default.$field),)+
                    ..default
                }
            };
            let table = tflite::$table::create(b, &args).as_union_value();
            (BuiltinOptions::$table, Some(table))
        }};
    }
    match single.operator {
        _ if single.options.is_empty() => (BuiltinOptions::NONE, None),
        "ADD" => table!(AddOptions, AddOptionsArgs, fused_activation_function),
        "SUB" => table!(SubOptions, SubOptionsArgs, fused_activation_function),
        "MUL" => table!(MulOptions, MulOptionsArgs, fused_activation_function),
        "DIV" => table!(DivOptions, DivOptionsArgs, fused_activation_function),
        "BATCH_MATMUL" => table!(BatchMatMulOptions, BatchMatMulOptionsArgs, adj_x adj_y),
        "CONCATENATION" => table!(ConcatenationOptions, ConcatenationOptionsArgs, axis),
        "CONV_2D" => table!(
            Conv2DOptions, Conv2DOptionsArgs,
            padding stride_h stride_w dilation_h_factor dilation_w_factor
        ),
        "CUMSUM" => table!(CumsumOptions, CumsumOptionsArgs, exclusive reverse),
        "DEPTHWISE_CONV_2D" => table!(
            DepthwiseConv2DOptions, DepthwiseConv2DOptionsArgs,
            depth_multiplier padding stride_h stride_w dilation_h_factor dilation_w_factor
        ),
        "DEPTH_TO_SPACE" => table!(DepthToSpaceOptions, DepthToSpaceOptionsArgs, block_size),
        "FULLY_CONNECTED" => {
            table!(
                FullyConnectedOptions,
                FullyConnectedOptionsArgs,
                keep_num_dims
            )
        }
        "GATHER" => table!(GatherOptions, GatherOptionsArgs, axis batch_dims),
        "AVERAGE_POOL_2D" | "L2_POOL_2D" | "MAX_POOL_2D" => table!(
            Pool2DOptions, Pool2DOptionsArgs,
            padding filter_height filter_width stride_h stride_w
        ),
        "LEAKY_RELU" => table!(LeakyReluOptions, LeakyReluOptionsArgs, alpha),
        "MEAN" | "REDUCE_MAX" | "SUM" => table!(ReducerOptions, ReducerOptionsArgs, keep_dims),
        "MIRROR_PAD" => table!(MirrorPadOptions, MirrorPadOptionsArgs, mode),
        "PACK" => table!(PackOptions, PackOptionsArgs, values_count axis),
        "RESIZE_BILINEAR" => table!(
            ResizeBilinearOptions, ResizeBilinearOptionsArgs, align_corners half_pixel_centers
        ),
        "RESIZE_NEAREST_NEIGHBOR" => table!(
            ResizeNearestNeighborOptions, ResizeNearestNeighborOptionsArgs,
            align_corners half_pixel_centers
        ),
        "SOFTMAX" => table!(SoftmaxOptions, SoftmaxOptionsArgs, beta),
        "SPACE_TO_DEPTH" => table!(SpaceToDepthOptions, SpaceToDepthOptionsArgs, block_size),
        "SPLIT" => table!(SplitOptions, SplitOptionsArgs, num_splits),
        "SPLIT_V" => table!(SplitVOptions, SplitVOptionsArgs, num_splits),
        "STRIDED_SLICE" => table!(
            StridedSliceOptions, StridedSliceOptionsArgs, begin_mask end_mask shrink_axis_mask
        ),
        "SVDF" => table!(SVDFOptions, SVDFOptionsArgs, rank fused_activation_function),
        "TRANSPOSE_CONV" => {
            table!(TransposeConvOptions, TransposeConvOptionsArgs, padding stride_h stride_w)
        }
        "UNIDIRECTIONAL_SEQUENCE_LSTM" => table!(
            UnidirectionalSequenceLSTMOptions, UnidirectionalSequenceLSTMOptionsArgs,
            time_major cell_clip fused_activation_function
        ),
        "UNPACK" => table!(UnpackOptions, UnpackOptionsArgs, num axis),
        _ => panic!("options that are not known here: {}", single.line),
    }
}

/// The word in the plan of a model that stands for the offset of a tensor.
pub fn marker(tensor: usize) -> i32 {
    0x7A11_0000 + tensor as i32
}

/// A model of the operator alone.
pub fn build(single: &Single<'_>) -> Vec<u8> {
    assemble(single, 1, false)
}

/// A model in which the operator stands several times, with tensors of its own but the same constants, and with a plan of
/// [`marker`]s.
pub fn build_planned(single: &Single<'_>, copies: usize) -> Vec<u8> {
    assemble(single, copies, true)
}

fn assemble(single: &Single<'_>, copies: usize, planned: bool) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let buffers = vec![Buffer::create(&mut builder, &BufferArgs::default())];
    let mut file = File {
        builder,
        buffers,
        tensors: Vec::new(),
        graph_inputs: Vec::new(),
    };
    let mut lists: Vec<(Vec<i32>, Vec<i32>)> = Vec::new();
    for _ in 0..copies {
        let inputs = single.inputs.iter().enumerate();
        let inputs = inputs.map(|(k, text)| match lists.first() {
            Some((first, _)) if text.contains('!') => first[k],
            _ => file.tensor(text, true),
        });
        let inputs = inputs.collect();
        let outputs = single.outputs.iter().map(|t| file.tensor(t, false));
        lists.push((inputs, outputs.collect()));
    }
    let File {
        builder: mut b,
        mut buffers,
        tensors,
        graph_inputs,
    } = file;
    let metadata = planned.then(|| {
        let words = [1, 1, tensors.len() as i32];
        let words = words.into_iter().chain((0..tensors.len()).map(marker));
        let bytes: Vec<u8> = words.flat_map(i32::to_le_bytes).collect();
        let data = Some(b.create_vector(&bytes));
        buffers.push(Buffer::create(
            &mut b,
            &BufferArgs {
                data,
                ..Default::default()
            },
        ));
        let args = MetadataArgs {
            name: Some(b.create_string("OfflineMemoryAllocation")),
            buffer: buffers.len() as u32 - 1,
        };
        let entry = Metadata::create(&mut b, &args);
        b.create_vector(&[entry])
    });
    let builtin_code = code(single.operator);
    let is_custom = builtin_code == BuiltinOperator::CUSTOM;
    let (builtin_options_type, builtin_options) = if is_custom {
        (BuiltinOptions::NONE, None)
    } else {
        builtin_options(&mut b, single)
    };
    let custom_options =
        (is_custom && !single.options.is_empty()).then(|| b.create_vector(&map(&single.options)));
    let operators: Vec<_> = lists
        .iter()
        .map(|(inputs, outputs)| {
            let args = OperatorArgs {
                inputs: Some(b.create_vector(inputs)),
                outputs: Some(b.create_vector(outputs)),
                builtin_options_type,
                builtin_options,
                custom_options,
                ..Default::default()
            };
            Operator::create(&mut b, &args)
        })
        .collect();
    let custom_code = is_custom.then(|| b.create_string(single.operator));
    let args = OperatorCodeArgs {
        deprecated_builtin_code: builtin_code.0.min(127) as i8,
        builtin_code,
        custom_code,
        ..Default::default()
    };
    let operator_code = OperatorCode::create(&mut b, &args);
    let outputs: Vec<i32> = lists.iter().flat_map(|(_, o)| o.clone()).collect();
    let args = SubGraphArgs {
        tensors: Some(b.create_vector(&tensors)),
        inputs: Some(b.create_vector(&graph_inputs)),
        outputs: Some(b.create_vector(&outputs)),
        operators: Some(b.create_vector(&operators)),
        ..Default::default()
    };
    let subgraph = SubGraph::create(&mut b, &args);
    let args = ModelArgs {
        version: 3,
        operator_codes: Some(b.create_vector(&[operator_code])),
        subgraphs: Some(b.create_vector(&[subgraph])),
        buffers: Some(b.create_vector(&buffers)),
        metadata,
        ..Default::default()
    };
    let model = tflite::Model::create(&mut b, &args);
    b.finish(model, Some("TFL3"));
    b.finished_data().to_vec()
}
