//! Models of one subgraph, built tensor by tensor and operator by operator, then written by the flatbuffers builder.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use arenaplan_schema::flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};
use arenaplan_schema::tflite::{
    self, ActivationFunctionType, Buffer, BufferArgs, BuiltinOperator, BuiltinOptions,
    Conv2DOptionsArgs, DepthwiseConv2DOptionsArgs, ModelArgs, Operator, OperatorArgs, OperatorCode,
    OperatorCodeArgs, Pool2DOptionsArgs, QuantizationParameters, QuantizationParametersArgs,
    SignatureDef, SignatureDefArgs, SubGraph, SubGraphArgs, Tensor, TensorArgs, TensorMap,
    TensorMapArgs, TensorType,
};

/// A tensor to be.
#[derive(Clone, Debug)]
pub struct Part {
    pub kind: TensorType,
    pub shape: Vec<i32>,
    /// One, or one for each channel; none where nothing is quantized.
    pub scales: Vec<f32>,
    pub zero_point: i64,
    /// The dimension of the channels.
    pub axis: i32,
    /// The bytes of a constant.
    pub data: Option<Vec<u8>>,
}

/// Options that are not the default.
pub enum Options {
    Nothing,
    Conv(Conv2DOptionsArgs),
    Depthwise(DepthwiseConv2DOptionsArgs),
    Pool(Pool2DOptionsArgs),
    /// Of ADD, SUB and MUL.
    Fused(ActivationFunctionType),
    /// Of LEAKY_RELU.
    Slope(f32),
    /// Of CONCATENATION.
    Axis(i32),
    /// Of MEAN.
    KeepDimensions,
}

/// An operator to be.
pub struct Step {
    pub code: BuiltinOperator,
    pub inputs: Vec<i32>,
    pub outputs: Vec<i32>,
    pub options: Options,
}

/// The model.
#[derive(Default)]
pub struct Draft {
    pub tensors: Vec<Part>,
    pub steps: Vec<Step>,
    pub inputs: Vec<i32>,
    pub outputs: Vec<i32>,
    /// Outputs of a signature.
    pub signed: Vec<i32>,
    /// What the last operator names beside its inputs and outputs.
    pub intermediates: Vec<i32>,
}

impl Draft {
    /// Adds a tensor; its index.
    pub fn tensor(&mut self, part: Part) -> i32 {
        self.tensors.push(part);
        self.tensors.len() as i32 - 1
    }

    /// Adds a constant of 32-bit numbers.
    pub fn words(&mut self, shape: &[i32], words: &[i32]) -> i32 {
        self.tensor(Part {
            kind: TensorType::INT32,
            shape: shape.to_vec(),
            scales: Vec::new(),
            zero_point: 0,
            axis: 0,
            data: Some(words.iter().flat_map(|w| w.to_le_bytes()).collect()),
        })
    }

    /// Adds an operator.
    pub fn step(&mut self, code: BuiltinOperator, inputs: &[i32], output: i32, options: Options) {
        self.steps.push(Step {
            code,
            inputs: inputs.to_vec(),
            outputs: vec![output],
            options,
        });
    }

    /// The file.
    pub fn finish(&self) -> Vec<u8> {
        let mut b = FlatBufferBuilder::new();
        // Makes the whole file begin at a multiple of 8, for constants of 64-bit numbers.
        b.push(0_u64);
        let mut buffers = vec![Buffer::create(&mut b, &BufferArgs::default())];
        let mut tensors = Vec::new();
        for (index, part) in self.tensors.iter().enumerate() {
            let buffer = match &part.data {
                None => 0,
                Some(data) => {
                    // The builder goes from the end to the start: padding that makes the data begin at a multiple of 8.
                    while !(b.unfinished_data().len() + data.len()).is_multiple_of(8) {
                        b.push(0_u8);
                    }
                    let data = Some(b.create_vector(data));
                    buffers.push(Buffer::create(
                        &mut b,
                        &BufferArgs {
                            data,
                            ..Default::default()
                        },
                    ));
                    buffers.len() as u32 - 1
                }
            };
            tensors.push(tensor(&mut b, index, part, buffer));
        }
        let mut codes: Vec<BuiltinOperator> = Vec::new();
        let mut operators = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            if !codes.contains(&step.code) {
                codes.push(step.code);
            }
            let opcode_index = codes.iter().take_while(|c| **c != step.code).count() as u32;
            let (builtin_options_type, builtin_options) = options(&mut b, step);
            let args = OperatorArgs {
                opcode_index,
                inputs: Some(b.create_vector(&step.inputs)),
                outputs: Some(b.create_vector(&step.outputs)),
                builtin_options_type,
                builtin_options,
                intermediates: (at + 1 == self.steps.len() && !self.intermediates.is_empty())
                    .then(|| b.create_vector(&self.intermediates)),
                ..Default::default()
            };
            operators.push(Operator::create(&mut b, &args));
        }
        let args = SubGraphArgs {
            tensors: Some(b.create_vector(&tensors)),
            inputs: Some(b.create_vector(&self.inputs)),
            outputs: Some(b.create_vector(&self.outputs)),
            operators: Some(b.create_vector(&operators)),
            ..Default::default()
        };
        let subgraph = SubGraph::create(&mut b, &args);
        let codes: Vec<_> = codes
            .iter()
            .map(|&builtin_code| {
                let args = OperatorCodeArgs {
                    deprecated_builtin_code: builtin_code.0.min(127) as i8,
                    builtin_code,
                    ..Default::default()
                };
                OperatorCode::create(&mut b, &args)
            })
            .collect();
        let maps: Vec<_> = self
            .signed
            .iter()
            .map(|&tensor| {
                let args = TensorMapArgs {
                    tensor_index: tensor as u32,
                    ..Default::default()
                };
                TensorMap::create(&mut b, &args)
            })
            .collect();
        let args = SignatureDefArgs {
            outputs: Some(b.create_vector(&maps)),
            ..Default::default()
        };
        let signature = SignatureDef::create(&mut b, &args);
        let signatures = Some(b.create_vector(&[signature]));
        let args = ModelArgs {
            version: 3,
            signature_defs: signatures.filter(|_| !self.signed.is_empty()),
            operator_codes: Some(b.create_vector(&codes)),
            subgraphs: Some(b.create_vector(&[subgraph])),
            buffers: Some(b.create_vector(&buffers)),
            ..Default::default()
        };
        let model = tflite::Model::create(&mut b, &args);
        b.finish(model, Some("TFL3"));
        b.finished_data().to_vec()
    }
}

fn tensor<'b>(
    b: &mut FlatBufferBuilder<'b>,
    index: usize,
    part: &Part,
    buffer: u32,
) -> WIPOffset<Tensor<'b>> {
    let quantization = (!part.scales.is_empty()).then(|| {
        let args = QuantizationParametersArgs {
            scale: Some(b.create_vector(&part.scales)),
            zero_point: Some(b.create_vector(&vec![part.zero_point; part.scales.len()])),
            quantized_dimension: part.axis,
            ..Default::default()
        };
        QuantizationParameters::create(b, &args)
    });
    let args = TensorArgs {
        shape: Some(b.create_vector(&part.shape)),
        type_: part.kind,
        name: Some(b.create_string(&format!("t{index}"))),
        buffer,
        quantization,
        ..Default::default()
    };
    Tensor::create(b, &args)
}

fn options(
    b: &mut FlatBufferBuilder<'_>,
    step: &Step,
) -> (BuiltinOptions, Option<WIPOffset<UnionWIPOffset>>) {
    macro_rules! table {
        ($table:ident, $args:expr) => {
            (
                BuiltinOptions::$table,
                Some(tflite::$table::create(b, $args).as_union_value()),
            )
        };
    }
    match (&step.options, step.code) {
        (Options::Nothing, BuiltinOperator::PAD) => table!(PadOptions, &Default::default()),
        (Options::Nothing, _) => (BuiltinOptions::NONE, None),
        (Options::Conv(args), _) => table!(Conv2DOptions, args),
        (Options::Depthwise(args), _) => table!(DepthwiseConv2DOptions, args),
        (Options::Pool(args), _) => table!(Pool2DOptions, args),
        (&Options::Fused(fused_activation_function), BuiltinOperator::ADD) => table!(
            AddOptions,
            &tflite::AddOptionsArgs {
                fused_activation_function,
                ..Default::default()
            }
        ),
        (&Options::Fused(fused_activation_function), BuiltinOperator::SUB) => table!(
            SubOptions,
            &tflite::SubOptionsArgs {
                fused_activation_function,
                ..Default::default()
            }
        ),
        (&Options::Fused(fused_activation_function), _) => table!(
            MulOptions,
            &tflite::MulOptionsArgs {
                fused_activation_function
            }
        ),
        (&Options::Slope(alpha), _) => {
            table!(LeakyReluOptions, &tflite::LeakyReluOptionsArgs { alpha })
        }
        (&Options::Axis(axis), _) => table!(
            ConcatenationOptions,
            &tflite::ConcatenationOptionsArgs {
                axis,
                ..Default::default()
            }
        ),
        (Options::KeepDimensions, _) => table!(
            ReducerOptions,
            &tflite::ReducerOptionsArgs { keep_dims: true }
        ),
    }
}
