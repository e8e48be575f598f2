//! Models of one operator, with types and options: for rules of single kernels.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use arenaplan::graph::Graph;
use arenaplan::model::Model;
use arenaplan_schema::flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};
use arenaplan_schema::tflite::{
    self, Buffer, BufferArgs, BuiltinOperator as Op, BuiltinOptions, OperatorArgs,
    OperatorCodeArgs, Padding, QuantizationParametersArgs, SubGraphArgs, TensorArgs,
    TensorType as Type,
};

/// Where a tensor's values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The arena.
    Arena,
    /// The file.
    Constant,
    /// A variable.
    Variable,
}

/// A tensor to be.
#[derive(Clone, Debug)]
pub struct Data {
    pub ty: Type,
    pub shape: Vec<i32>,
    pub role: Role,
    /// Scales of the quantization; 0 means none at all.
    pub scales: usize,
    /// The values of a constant of numbers of 32 bits; zeros without them.
    pub values: Vec<i32>,
}

/// A tensor in the arena, with one scale.
pub fn arena(ty: Type, shape: &[i32]) -> Data {
    Data {
        ty,
        shape: shape.to_vec(),
        role: Role::Arena,
        scales: 1,
        values: Vec::new(),
    }
}

/// Constant zeros, with one scale.
pub fn constant(ty: Type, shape: &[i32]) -> Data {
    Data {
        role: Role::Constant,
        ..arena(ty, shape)
    }
}

/// Options of the operator.
#[derive(Clone, Copy, Debug)]
pub enum Options {
    None,
    /// Of a convolution: padding, strides and dilations (height, width), multiplier if depthwise.
    Window(Padding, [i32; 2], [i32; 2], i32),
    /// Of a pooling: padding, filter, strides.
    Pool(Padding, [i32; 2], [i32; 2]),
    /// Of BATCH_MATMUL: which operands are adjoint.
    MatMul([bool; 2]),
    /// Of SVDF: its rank.
    Rank(i32),
    /// Of an LSTM: whether time is the first dimension.
    TimeMajor(bool),
}

/// An operator to be.
#[derive(Clone, Debug)]
pub struct Single {
    pub code: Op,
    pub inputs: Vec<Option<Data>>,
    pub outputs: Vec<Data>,
    pub options: Options,
}

impl Single {
    /// With all inputs there.
    pub fn new(code: Op, inputs: Vec<Data>, output: Data, options: Options) -> Self {
        Self {
            code,
            inputs: inputs.into_iter().map(Some).collect(),
            outputs: vec![output],
            options,
        }
    }

    /// Runs `check` on the graph of the model.
    pub fn with_graph<T>(&self, check: impl FnOnce(&Graph<'_>) -> T) -> T {
        let bytes = self.finish();
        check(&Graph::read(Model::parse(&bytes).unwrap()).unwrap())
    }

    /// The file.
    pub fn finish(&self) -> Vec<u8> {
        let mut b = FlatBufferBuilder::new();
        let mut buffers = vec![Buffer::create(&mut b, &BufferArgs::default())];
        let mut tensors = Vec::new();
        let mut put = |b: &mut FlatBufferBuilder<'static>, data: &Data| {
            let bytes = bytes_of(data);
            let content = (data.role == Role::Constant).then(|| b.create_vector(&bytes));
            let args = BufferArgs {
                data: content,
                ..Default::default()
            };
            buffers.push(Buffer::create(b, &args));
            let quantization = (data.scales > 0).then(|| {
                let args = QuantizationParametersArgs {
                    scale: Some(b.create_vector(&vec![0.5f32; data.scales])),
                    zero_point: Some(b.create_vector(&vec![0i64; data.scales])),
                    ..Default::default()
                };
                tflite::QuantizationParameters::create(b, &args)
            });
            let args = TensorArgs {
                shape: Some(b.create_vector(&data.shape)),
                type_: data.ty,
                buffer: buffers.len() as u32 - 1,
                quantization,
                is_variable: data.role == Role::Variable,
                ..Default::default()
            };
            tensors.push(tflite::Tensor::create(b, &args));
            tensors.len() as i32 - 1
        };
        let inputs: Vec<i32> = self
            .inputs
            .iter()
            .map(|d| d.as_ref().map_or(-1, |d| put(&mut b, d)))
            .collect();
        let outputs: Vec<i32> = self.outputs.iter().map(|d| put(&mut b, d)).collect();
        let (builtin_options_type, builtin_options) = self.options(&mut b);
        let args = OperatorArgs {
            inputs: Some(b.create_vector(&inputs)),
            outputs: Some(b.create_vector(&outputs)),
            builtin_options_type,
            builtin_options,
            ..Default::default()
        };
        let operator = tflite::Operator::create(&mut b, &args);
        let args = OperatorCodeArgs {
            deprecated_builtin_code: self.code.0.min(127) as i8,
            builtin_code: self.code,
            ..Default::default()
        };
        let code = tflite::OperatorCode::create(&mut b, &args);
        let in_arena = |d: &Option<Data>| d.as_ref().is_some_and(|d| d.role == Role::Arena);
        let given = self.inputs.iter().zip(&inputs).filter(|(d, _)| in_arena(d));
        let given: Vec<i32> = given.map(|(_, &t)| t).collect();
        let args = SubGraphArgs {
            tensors: Some(b.create_vector(&tensors)),
            inputs: Some(b.create_vector(&given)),
            outputs: Some(b.create_vector(&outputs)),
            operators: Some(b.create_vector(&[operator])),
            ..Default::default()
        };
        let subgraph = tflite::SubGraph::create(&mut b, &args);
        let args = tflite::ModelArgs {
            version: 3,
            operator_codes: Some(b.create_vector(&[code])),
            subgraphs: Some(b.create_vector(&[subgraph])),
            buffers: Some(b.create_vector(&buffers)),
            ..Default::default()
        };
        let model = tflite::Model::create(&mut b, &args);
        b.finish(model, Some("TFL3"));
        b.finished_data().to_vec()
    }

    fn options(
        &self,
        b: &mut FlatBufferBuilder<'_>,
    ) -> (BuiltinOptions, Option<WIPOffset<UnionWIPOffset>>) {
        macro_rules! table {
            ($table:ident, $args:ident { $($field:ident: $value:expr),+ }) => {{
                #[allow(clippy::needless_update, reason = "some tables have these fields alone")]
                let args = tflite::$args { $($field: $value,)+ ..Default::default() };
                let table = tflite::$table::create(b, &args).as_union_value();
                (BuiltinOptions::$table, Some(table))
            }};
        }
        match (self.code, self.options) {
            (_, Options::None) => (BuiltinOptions::NONE, None),
            (Op::CONV_2D, Options::Window(padding, stride, dilation, _)) => table!(
                Conv2DOptions,
                Conv2DOptionsArgs {
                    padding: padding,
                    stride_h: stride[0],
                    stride_w: stride[1],
                    dilation_h_factor: dilation[0],
                    dilation_w_factor: dilation[1]
                }
            ),
            (Op::DEPTHWISE_CONV_2D, Options::Window(padding, stride, dilation, multiplier)) => {
                table!(
                    DepthwiseConv2DOptions,
                    DepthwiseConv2DOptionsArgs {
                        padding: padding,
                        stride_h: stride[0],
                        stride_w: stride[1],
                        depth_multiplier: multiplier,
                        dilation_h_factor: dilation[0],
                        dilation_w_factor: dilation[1]
                    }
                )
            }
            (Op::TRANSPOSE_CONV, Options::Window(padding, stride, ..)) => table!(
                TransposeConvOptions,
                TransposeConvOptionsArgs {
                    padding: padding,
                    stride_h: stride[0],
                    stride_w: stride[1]
                }
            ),
            (_, Options::Pool(padding, filter, stride)) => table!(
                Pool2DOptions,
                Pool2DOptionsArgs {
                    padding: padding,
                    filter_height: filter[0],
                    filter_width: filter[1],
                    stride_h: stride[0],
                    stride_w: stride[1]
                }
            ),
            (_, Options::MatMul([adj_x, adj_y])) => table!(
                BatchMatMulOptions,
                BatchMatMulOptionsArgs {
                    adj_x: adj_x,
                    adj_y: adj_y
                }
            ),
            (_, Options::Rank(rank)) => table!(SVDFOptions, SVDFOptionsArgs { rank: rank }),
            (_, Options::TimeMajor(time_major)) => table!(
                UnidirectionalSequenceLSTMOptions,
                UnidirectionalSequenceLSTMOptionsArgs {
                    time_major: time_major
                }
            ),
            (code, options) => panic!("{options:?} are not of {code:?}"),
        }
    }
}

/// The constant's content, as long as its shape says; two values of 4 bits to a byte.
fn bytes_of(data: &Data) -> Vec<u8> {
    let sizes = data.shape.iter().map(|&d| d.max(0) as usize);
    let count = sizes.fold(1, usize::saturating_mul);
    let bits = match data.ty {
        Type::INT4 => 4,
        Type::INT8 => 8,
        Type::INT16 => 16,
        Type::INT64 => 64,
        _ => 32,
    };
    let mut bytes: Vec<u8> = data.values.iter().flat_map(|v| v.to_le_bytes()).collect();
    // Hostile shapes are tried as well.
    let length = count.saturating_mul(bits).div_ceil(8).min(1 << 10);
    bytes.resize(length.max(1), 0);
    bytes
}

/// Numbers that look random, always the same.
pub struct Random(pub u64);

impl Random {
    /// A number in `range`.
    pub fn within(&mut self, range: std::ops::RangeInclusive<u64>) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        range.start() + (z ^ (z >> 31)) % (range.end() - range.start() + 1)
    }
}
