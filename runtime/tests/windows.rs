//! Convolutions and FULLY_CONNECTED of random shapes against sums written from their definition.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)]

mod common;

use std::ops::Range;

use arenaplan_runtime::fixed::Multiplier;
use arenaplan_runtime::schema::flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};
use arenaplan_runtime::schema::tflite::{
    ActivationFunctionType, Buffer, BufferArgs, BuiltinOperator, BuiltinOptions, Conv2DOptions,
    Conv2DOptionsArgs, DepthwiseConv2DOptions, DepthwiseConv2DOptionsArgs, FullyConnectedOptions,
    FullyConnectedOptionsArgs, Model, ModelArgs, Operator, OperatorArgs, OperatorCode,
    OperatorCodeArgs, Padding, QuantizationParameters, QuantizationParametersArgs, SubGraph,
    SubGraphArgs, Tensor, TensorArgs, TensorType,
};
use arenaplan_runtime::{Interpreter, Kernel, ops};
use common::{Memory, Random, smallest_arena};

/// The least and the largest number that a random one may be.
fn between(random: &mut Random, range: Range<i64>) -> i64 {
    range.start + random.below((range.end - range.start) as usize) as i64
}

fn scale(random: &mut Random) -> f32 {
    0.002 + random.below(1000) as f32 * 1.7e-5
}

/// A tensor to be; `data` makes it constant.
#[derive(Clone, Default)]
struct Plain {
    shape: Vec<i32>,
    element_type: TensorType,
    scales: Vec<f32>,
    zero_point: i64,
    axis: i32,
    data: Vec<u8>,
}

/// A model of one operator: input, filter, bias, output.
fn model(
    code: BuiltinOperator,
    tensors: &[Plain; 4],
    options: impl Fn(&mut FlatBufferBuilder<'_>) -> (BuiltinOptions, WIPOffset<UnionWIPOffset>),
) -> Memory {
    let mut b = FlatBufferBuilder::new();
    let mut buffers = vec![Buffer::create(&mut b, &BufferArgs::default())];
    let mut tables = Vec::new();
    for tensor in tensors {
        let mut buffer = 0;
        if !tensor.data.is_empty() {
            b.push(0u64);
            // Aligned as converters do it.
            let padding = vec![0u8; (16 - tensor.data.len() % 16) % 16];
            let data = Some(b.create_vector(&[&tensor.data[..], &padding].concat()));
            buffer = buffers.len() as u32;
            buffers.push(Buffer::create(
                &mut b,
                &BufferArgs {
                    data,
                    ..Default::default()
                },
            ));
        }
        let quantization = (!tensor.scales.is_empty()).then(|| {
            let zero_points = vec![tensor.zero_point; tensor.scales.len()];
            let args = QuantizationParametersArgs {
                scale: Some(b.create_vector(&tensor.scales)),
                zero_point: Some(b.create_vector(&zero_points)),
                quantized_dimension: tensor.axis,
                ..Default::default()
            };
            QuantizationParameters::create(&mut b, &args)
        });
        let args = TensorArgs {
            shape: Some(b.create_vector(&tensor.shape)),
            type_: tensor.element_type,
            buffer,
            quantization,
            ..Default::default()
        };
        tables.push(Tensor::create(&mut b, &args));
    }
    let (builtin_options_type, options) = options(&mut b);
    let bias = if tensors[2].data.is_empty() { -1 } else { 2 };
    let args = OperatorArgs {
        inputs: Some(b.create_vector(&[0, 1, bias])),
        outputs: Some(b.create_vector(&[3])),
        builtin_options_type,
        builtin_options: Some(options),
        ..Default::default()
    };
    let operator = Operator::create(&mut b, &args);
    let args = SubGraphArgs {
        tensors: Some(b.create_vector(&tables)),
        inputs: Some(b.create_vector(&[0])),
        outputs: Some(b.create_vector(&[3])),
        operators: Some(b.create_vector(&[operator])),
        ..Default::default()
    };
    let subgraph = SubGraph::create(&mut b, &args);
    let args = OperatorCodeArgs {
        deprecated_builtin_code: code.0 as i8,
        builtin_code: code,
        ..Default::default()
    };
    let code = OperatorCode::create(&mut b, &args);
    let args = ModelArgs {
        version: 3,
        operator_codes: Some(b.create_vector(&[code])),
        subgraphs: Some(b.create_vector(&[subgraph])),
        buffers: Some(b.create_vector(&buffers)),
        ..Default::default()
    };
    let model = Model::create(&mut b, &args);
    b.finish(model, Some("TFL3"));
    Memory::copy_of(b.finished_data())
}

/// A convolution, of one kind or the other.
#[derive(Clone, Debug)]
struct Shape {
    depthwise: bool,
    batches: usize,
    input: [usize; 2],
    filter: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    same: bool,
    /// Input and output channels, and groups of them.
    depth: usize,
    channels: usize,
    groups: usize,
}

impl Shape {
    fn random(random: &mut Random, depthwise: bool) -> Self {
        loop {
            let groups = [1, 1, 1, 2, 3][random.below(5)];
            let depth = groups * (1 + random.below(if depthwise { 24 } else { 9 }));
            let channels = match depthwise {
                true => depth * [1, 1, 2, 4, 5][random.below(5)],
                false => groups * (1 + random.below(9)),
            };
            let mut two = |limit: usize| [0, 1].map(|_| 1 + random.below(limit));
            let shape = Shape {
                depthwise,
                batches: two(2)[0],
                input: two(9),
                filter: two(5),
                stride: two(3),
                dilation: two(2),
                same: two(2)[0] == 1,
                depth,
                channels,
                groups: if depthwise { depth } else { groups },
            };
            if (0..2).all(|k| shape.output(k) > 0) {
                return shape;
            }
        }
    }

    /// Elements that a filter spans.
    fn span(&self, k: usize) -> usize {
        (self.filter[k] - 1) * self.dilation[k] + 1
    }

    fn output(&self, k: usize) -> usize {
        match self.same {
            true => self.input[k].div_ceil(self.stride[k]),
            false => (self.input[k] + 1)
                .saturating_sub(self.span(k))
                .div_ceil(self.stride[k]),
        }
    }

    fn padding(&self, k: usize) -> usize {
        let covered = (self.output(k) - 1) * self.stride[k] + self.span(k);
        match self.same {
            true => covered.saturating_sub(self.input[k]) / 2,
            false => 0,
        }
    }

    fn filter_depth(&self) -> usize {
        self.depth / self.groups
    }

    fn filter_shape(&self) -> Vec<i32> {
        let [h, w] = self.filter.map(|x| x as i32);
        match self.depthwise {
            true => vec![1, h, w, self.channels as i32],
            false => vec![self.channels as i32, h, w, self.filter_depth() as i32],
        }
    }

    fn image(&self, sizes: [usize; 2], depth: usize) -> Vec<i32> {
        [self.batches, sizes[0], sizes[1], depth]
            .map(|x| x as i32)
            .to_vec()
    }

    /// For each output in order, the numbers of the input's elements and of the weights that are multiplied.
    fn products(&self) -> Vec<(usize, Vec<(usize, usize)>)> {
        let mut outputs = Vec::new();
        for b in 0..self.batches {
            for y in 0..self.output(0) {
                for x in 0..self.output(1) {
                    for c in 0..self.channels {
                        outputs.push((c, self.of_output(b, [y, x], c)));
                    }
                }
            }
        }
        outputs
    }

    fn of_output(&self, b: usize, at: [usize; 2], c: usize) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        let group = c / (self.channels / self.groups);
        for fy in 0..self.filter[0] {
            for fx in 0..self.filter[1] {
                let place = |k: usize, f: usize| {
                    let from_edge = at[k] * self.stride[k] + f * self.dilation[k];
                    let inside = from_edge.checked_sub(self.padding(k));
                    inside.filter(|&x| x < self.input[k])
                };
                let (Some(y), Some(x)) = (place(0, fy), place(1, fx)) else {
                    continue;
                };
                for k in 0..self.filter_depth() {
                    let channel = group * self.filter_depth() + k;
                    let pixel = (b * self.input[0] + y) * self.input[1] + x;
                    let tap = fy * self.filter[1] + fx;
                    let weight = match self.depthwise {
                        true => tap * self.channels + c,
                        false => {
                            let taps = self.filter[0] * self.filter[1];
                            (c * taps + tap) * self.filter_depth() + k
                        }
                    };
                    pairs.push((pixel * self.depth + channel, weight));
                }
            }
        }
        pairs
    }

    fn options(
        &self,
        activation: ActivationFunctionType,
    ) -> impl Fn(&mut FlatBufferBuilder<'_>) -> (BuiltinOptions, WIPOffset<UnionWIPOffset>) {
        let padding = if self.same {
            Padding::SAME
        } else {
            Padding::VALID
        };
        let [stride_h, stride_w] = self.stride.map(|x| x as i32);
        let [dilation_h_factor, dilation_w_factor] = self.dilation.map(|x| x as i32);
        let depth_multiplier = (self.channels / self.depth) as i32;
        let depthwise = self.depthwise;
        move |b| {
            if depthwise {
                let args = DepthwiseConv2DOptionsArgs {
                    padding,
                    stride_w,
                    stride_h,
                    depth_multiplier,
                    fused_activation_function: activation,
                    dilation_w_factor,
                    dilation_h_factor,
                };
                let options = DepthwiseConv2DOptions::create(b, &args);
                (
                    BuiltinOptions::DepthwiseConv2DOptions,
                    options.as_union_value(),
                )
            } else {
                let args = Conv2DOptionsArgs {
                    padding,
                    stride_w,
                    stride_h,
                    fused_activation_function: activation,
                    dilation_w_factor,
                    dilation_h_factor,
                    ..Default::default()
                };
                let options = Conv2DOptions::create(b, &args);
                (BuiltinOptions::Conv2DOptions, options.as_union_value())
            }
        }
    }

    fn code(&self) -> BuiltinOperator {
        match self.depthwise {
            true => BuiltinOperator::DEPTHWISE_CONV_2D,
            false => BuiltinOperator::CONV_2D,
        }
    }
}

/// `sum * factor`, where the factor has 31 bits: the high half of twice the product rounded half up, then divided by a power
/// of 2 with halves away from zero.
fn requantized(sum: i64, real: f64) -> i64 {
    let exponent = real.log2().floor() as i32 + 1;
    let fixed = (real / 2f64.powi(exponent) * 2f64.powi(31)).round() as i64;
    let (left, right) = (exponent.max(0), (-exponent).max(0));
    let high = ((sum << left) * fixed + (1 << 30)).div_euclid(1 << 31);
    let divided = (high.abs() * 2 + (1 << right)) / (2 << right);
    if right == 0 {
        high
    } else {
        high.signum() * divided
    }
}

/// As [`requantized`], of 16 bits, where the factor has 15 and there is one rounding.
fn requantized_wide(sum: i64, real: f64) -> i64 {
    let exponent = real.log2().floor() as i32 + 1;
    let fixed = (real / 2f64.powi(exponent) * 2f64.powi(31)).round() as i64;
    let fixed = if fixed < 0x7fff_0000 {
        (fixed + (1 << 15)) >> 16
    } else {
        0x7fff
    };
    let shift = 15 - exponent;
    (sum * fixed + (1 << (shift - 1))).div_euclid(1 << shift)
}

fn run<T: ValueLike>(model: &Memory, kernels: &[Kernel], input: &[T]) -> Vec<T> {
    let mut arena = smallest_arena(model, 7).unwrap();
    let mut interpreter = Interpreter::new(model, kernels, &mut arena).unwrap();
    T::run(&mut interpreter, input)
}

/// What [`run`] is called with.
trait ValueLike: Sized {
    fn run(interpreter: &mut Interpreter<'_, '_>, input: &[Self]) -> Vec<Self>;
}

macro_rules! values {
    ($($type:ty)*) => {$(
        impl ValueLike for $type {
            fn run(interpreter: &mut Interpreter<'_, '_>, input: &[Self]) -> Vec<Self> {
                interpreter.set_input(0, input).unwrap();
                interpreter.invoke().unwrap();
                interpreter.output::<$type>(0).unwrap().to_vec()
            }
        }
    )*};
}

values!(i8 i16 f32);

/// Runs an operator of integers and compares.
fn integers(
    random: &mut Random,
    wide: bool,
    (code, label): (BuiltinOperator, &str),
    shapes: [Vec<i32>; 3],
    (channels, axis): (usize, i32),
    products: &[(usize, Vec<(usize, usize)>)],
    options: impl Fn(&mut FlatBufferBuilder<'_>) -> (BuiltinOptions, WIPOffset<UnionWIPOffset>),
) {
    let elements = |shape: &[i32]| shape.iter().product::<i32>() as usize;
    let [input_shape, filter_shape, output_shape] = shapes;
    let per_channel = channels > 1 && random.below(4) != 0;
    let (in_scale, out_scale) = (scale(random), 4.0 * scale(random));
    // The scale of a filter as a whole must fit that of the bias, which has none here.
    let filter_scales: Vec<f32> = (0..if per_channel { channels } else { 1 })
        .map(|_| scale(random))
        .collect();
    let zero = |random: &mut Random| match wide {
        true => 0,
        false => between(random, -128..128),
    };
    let (in_zero, out_zero) = (zero(random), zero(random));
    let limit = if wide { 1 << 15 } else { 128 };
    let input: Vec<i64> = (0..elements(&input_shape))
        .map(|_| between(random, -limit..limit))
        .collect();
    let weights: Vec<i64> = (0..elements(&filter_shape))
        .map(|_| between(random, -127..128))
        .collect();
    let biased = random.below(3) != 0;
    let bias: Vec<i64> = (0..channels)
        .map(|_| {
            if biased {
                between(random, -20000..20000)
            } else {
                0
            }
        })
        .collect();
    let data_type = if wide {
        TensorType::INT16
    } else {
        TensorType::INT8
    };
    let bias_type = if wide {
        TensorType::INT64
    } else {
        TensorType::INT32
    };
    let bias_data = match (biased, wide) {
        (false, _) => Vec::new(),
        (_, true) => bias.iter().flat_map(|x| x.to_le_bytes()).collect(),
        (_, false) => bias
            .iter()
            .flat_map(|&x| (x as i32).to_le_bytes())
            .collect(),
    };
    let data = |shape: &[i32], scale: f32, zero_point: i64| Plain {
        shape: shape.to_vec(),
        element_type: data_type,
        scales: vec![scale],
        zero_point,
        ..Default::default()
    };
    let tensors = [
        data(&input_shape, in_scale, in_zero),
        Plain {
            shape: filter_shape.clone(),
            element_type: TensorType::INT8,
            scales: filter_scales.clone(),
            axis,
            data: weights.iter().map(|&x| x as i8 as u8).collect(),
            ..Default::default()
        },
        Plain {
            shape: vec![channels as i32],
            element_type: bias_type,
            scales: vec![in_scale * filter_scales[0]],
            data: bias_data,
            ..Default::default()
        },
        data(&output_shape, out_scale, out_zero),
    ];
    let model = model(code, &tensors, options);
    let expected: Vec<i64> = products
        .iter()
        .map(|(channel, pairs)| {
            let mut sum = bias[*channel];
            for &(x, w) in pairs {
                sum += (input[x] - in_zero) * weights[w];
            }
            let filter_scale = filter_scales[if per_channel { *channel } else { 0 }];
            let real = match (code, per_channel) {
                (BuiltinOperator::FULLY_CONNECTED, false) => f64::from(in_scale * filter_scale),
                _ => f64::from(in_scale) * f64::from(filter_scale),
            };
            let real = real / f64::from(out_scale);
            let scaled = match wide {
                true => requantized_wide(sum, real),
                false => requantized(sum, real),
            };
            (scaled + out_zero).clamp(-limit, limit - 1)
        })
        .collect();
    let all = ops::ALL;
    let narrow = [
        ops::CONV_2D_INT8,
        ops::DEPTHWISE_CONV_2D_INT8,
        ops::FULLY_CONNECTED_INT8,
    ];
    for kernels in if wide {
        vec![all]
    } else {
        vec![all, &narrow[..]]
    } {
        let got: Vec<i64> = match wide {
            true => {
                let input: Vec<i16> = input.iter().map(|&x| x as i16).collect();
                run(&model, kernels, &input)
                    .into_iter()
                    .map(i64::from)
                    .collect()
            }
            false => {
                let input: Vec<i8> = input.iter().map(|&x| x as i8).collect();
                run(&model, kernels, &input)
                    .into_iter()
                    .map(i64::from)
                    .collect()
            }
        };
        let wrong = got.iter().zip(&expected).position(|(a, b)| a != b);
        assert_eq!(got.len(), expected.len());
        assert_eq!(
            wrong, None,
            "{label}, wide {wide}, per channel {per_channel}"
        );
    }
}

fn convolutions(depthwise: bool, wide: bool, count: usize) {
    let mut random = Random(3 + u64::from(depthwise) * 2 + u64::from(wide));
    for _ in 0..count {
        let shape = Shape::random(&mut random, depthwise);
        let sizes = [shape.output(0), shape.output(1)];
        integers(
            &mut random,
            wide,
            (shape.code(), &format!("{shape:?}")),
            [
                shape.image(shape.input, shape.depth),
                shape.filter_shape(),
                shape.image(sizes, shape.channels),
            ],
            (shape.channels, if depthwise { 3 } else { 0 }),
            &shape.products(),
            shape.options(ActivationFunctionType::NONE),
        );
    }
}

#[test]
fn convolutions_of_int8() {
    convolutions(false, false, 300);
}

#[test]
fn convolutions_of_int16() {
    convolutions(false, true, 100);
}

#[test]
fn depthwise_convolutions_of_int8() {
    convolutions(true, false, 300);
}

#[test]
fn depthwise_convolutions_of_int16() {
    convolutions(true, true, 100);
}

#[test]
fn fully_connected() {
    let mut random = Random(9);
    for k in 0..300 {
        let (rows, depth) = (1 + random.below(3), 1 + random.below(40));
        let channels = 1 + random.below(11);
        let mut products = Vec::new();
        for row in 0..rows {
            for channel in 0..channels {
                let pairs = (0..depth).map(|d| (row * depth + d, channel * depth + d));
                products.push((channel, pairs.collect()));
            }
        }
        let [r, d, c] = [rows, depth, channels].map(|x| x as i32);
        integers(
            &mut random,
            k % 4 == 0,
            (
                BuiltinOperator::FULLY_CONNECTED,
                &format!("{rows} {depth} {channels}"),
            ),
            [vec![r, d], vec![c, d], vec![r, c]],
            (channels, 0),
            &products,
            |b| {
                let options =
                    FullyConnectedOptions::create(b, &FullyConnectedOptionsArgs::default());
                (
                    BuiltinOptions::FullyConnectedOptions,
                    options.as_union_value(),
                )
            },
        );
    }
}

#[test]
fn convolutions_of_floats() {
    let mut random = Random(5);
    for k in 0..200 {
        let shape = Shape::random(&mut random, k % 2 == 0);
        let mut floats = |len: usize| -> Vec<f32> {
            (0..len)
                .map(|_| random.below(2001) as f32 / 1000.0 - 1.0)
                .collect()
        };
        let input = floats(shape.batches * shape.input[0] * shape.input[1] * shape.depth);
        let filter_shape = shape.filter_shape();
        let weights = floats(filter_shape.iter().product::<i32>() as usize);
        let bias = floats(shape.channels);
        let bytes = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let plain = |shape: Vec<i32>, data: Vec<u8>| Plain {
            shape,
            data,
            ..Default::default()
        };
        let sizes = [shape.output(0), shape.output(1)];
        let tensors = [
            plain(shape.image(shape.input, shape.depth), Vec::new()),
            plain(filter_shape, bytes(&weights)),
            plain(vec![shape.channels as i32], bytes(&bias)),
            plain(shape.image(sizes, shape.channels), Vec::new()),
        ];
        let relu6 = ActivationFunctionType::RELU6;
        let model = model(shape.code(), &tensors, shape.options(relu6));
        let got = run(&model, ops::ALL, &input);
        let products = shape.products();
        assert_eq!(got.len(), products.len());
        for (got, (channel, pairs)) in got.iter().zip(products) {
            let products = pairs
                .iter()
                .map(|&(x, w)| f64::from(input[x]) * f64::from(weights[w]));
            let sum = products.sum::<f64>() + f64::from(bias[channel]);
            let error = (f64::from(*got) - sum.clamp(0.0, 6.0)).abs();
            assert!(error < 1e-5, "{shape:?}: off by {error}");
        }
    }
}

/// The factor of three scales is that of their quotient in f64.
#[test]
fn factors_of_scales() {
    let mut random = Random(1);
    let of_bits = |random: &mut Random| match random.below(20) {
        0 => 0.0,
        1 => f32::from_bits(random.next() as u32 & 0x807f_ffff),
        2 => f32::from_bits(random.next() as u32 & 0xff80_0000 | 1),
        3..10 => f32::from_bits(random.next() as u32 >> 9 | 0x3c00_0000),
        _ => f32::from_bits(random.next() as u32),
    };
    let mut checked = 0;
    while checked < 200_000 {
        let [a, b, c] = [0; 3].map(|_| of_bits(&mut random));
        let real = f64::from(a) * f64::from(b) / f64::from(c);
        if ![a, b, c].iter().all(|x| x.is_finite()) || !real.is_finite() {
            continue;
        }
        for of_scales in [Multiplier::of_scales, Multiplier::of_scales_in_integers] {
            let got = of_scales(a, b, c);
            assert_eq!(got, Multiplier::new(real), "{a:e} * {b:e} / {c:e}");
        }
        checked += 1;
    }
    // Quotients halfway between two of 31 bits, or of 53.
    for numerator in 0x80_0001..0x80_0400u32 {
        for c in [0.5f32, 3.0, 0.75, 1.0 + f32::EPSILON] {
            let (a, b) = (numerator as f32, (numerator ^ 0x155) as f32);
            let real = f64::from(a) * f64::from(b) / f64::from(c) / 2f64.powi(50);
            let a = a * 2f32.powi(-50);
            let got = Multiplier::of_scales_in_integers(a, b, c);
            assert_eq!(got, Multiplier::new(real));
        }
    }
}
