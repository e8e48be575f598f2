//! Random small vision models: images of many rows that pass through chains and branches of windows, pads, and operators that
//! treat each element by itself. TFLM and the runtime take all of them.
//!
//! Values keep their range from layer to layer (weights and scales see to that), since results that are cut off would hide
//! errors. The same seed gives the same file everywhere.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "a test may fail, and each uses a part of it"
)]

use arenaplan_schema::tflite::{
    ActivationFunctionType, BuiltinOperator as Code, Conv2DOptionsArgs, DepthwiseConv2DOptionsArgs,
    Padding, Pool2DOptionsArgs, TensorType,
};

use super::draft::{Draft, Options, Part};
use super::random::Random;

/// How large a model is.
#[derive(Clone, Copy)]
struct Size {
    /// Of the input: from the least to the most rows, columns and channels.
    image: [(i32, i32); 3],
    /// Elements of a tensor, and multiplications of an operator, at most.
    elements: i32,
    products: i32,
}

/// Tests run many of these.
const SMALL: Size = Size {
    image: [(9, 40), (3, 12), (1, 8)],
    elements: 6_000,
    products: 250_000,
};
/// The images are larger than what TFLM keeps for each operator.
const LARGE: Size = Size {
    image: [(24, 80), (16, 40), (1, 8)],
    elements: 48_000,
    products: 4_000_000,
};

/// The model of a seed.
pub fn model(seed: u64) -> Vec<u8> {
    draft(seed, SMALL).finish()
}

/// One with large images.
pub fn large(seed: u64) -> Vec<u8> {
    draft(seed, LARGE).finish()
}

fn draft(seed: u64, size: Size) -> Draft {
    let mut vision = Vision {
        size,
        random: Random(seed),
        draft: Draft::default(),
        reach: Vec::new(),
        values: Vec::new(),
    };
    vision.build();
    vision.draft
}

/// A model under construction; a tensor is known by its index.
struct Vision {
    size: Size,
    random: Random,
    draft: Draft,
    /// About the largest value of each tensor.
    reach: Vec<f32>,
    /// Images that operators may read, oldest first.
    values: Vec<i32>,
}

/// Where a layer's window goes, along height and width.
struct Window {
    kernel: [i32; 2],
    stride: [i32; 2],
    dilation: [i32; 2],
    padding: Padding,
    output: [i32; 2],
}

impl Window {
    /// `None` where not a single window fits.
    fn new(
        size: [i32; 2],
        kernel: [i32; 2],
        stride: [i32; 2],
        dilation: [i32; 2],
        padding: Padding,
    ) -> Option<Self> {
        let output = std::array::from_fn(|k| {
            let span = (kernel[k] - 1) * dilation[k] + 1;
            match padding {
                Padding::SAME => (size[k] + stride[k] - 1) / stride[k],
                _ => (size[k] + stride[k] - span).max(0) / stride[k],
            }
        });
        (output[0] >= 1 && output[1] >= 1).then_some(Window {
            kernel,
            stride,
            dilation,
            padding,
            output,
        })
    }
}

impl Vision {
    fn build(&mut self) {
        use TensorType as T;
        let kind = self
            .random
            .pick(&[T::INT8, T::INT8, T::INT8, T::FLOAT32, T::INT16]);
        let [rows, columns, channels] = self.size.image.map(|(low, high)| self.from(low, high));
        let shape = [1, rows, columns, channels];
        let reach = self.random.pick(&[1.0, 2.0, 2.5]);
        for _ in 0..self.random.pick(&[1, 1, 1, 1, 2]) {
            let input = self.image(kind, shape, reach);
            self.draft.inputs.push(input);
        }
        let wanted = self.from(3, 9) as usize;
        for _ in 0..60 {
            if self.draft.steps.len() >= wanted {
                break;
            }
            // A last image of one row has nothing to be cut.
            if self.shape(*self.values.last().unwrap())[1] < 2 {
                break;
            }
            self.step();
        }
        if self.draft.steps.is_empty() {
            let x = self.draft.inputs[0];
            self.elementwise(x);
        }
        self.end();
    }

    /// What nobody reads is an output; now and then an inner image is one, too, or a mean of each channel follows.
    fn end(&mut self) {
        let read: Vec<i32> = self
            .draft
            .steps
            .iter()
            .flat_map(|s| s.inputs.clone())
            .collect();
        let last = *self.values.last().unwrap();
        let images = self.values.iter().copied();
        let mut outputs: Vec<i32> = images
            .filter(|t| !read.contains(t) && !self.draft.inputs.contains(t))
            .collect();
        if self.chance(8) {
            let inner = self.random.pick(&self.values);
            if !outputs.contains(&inner) {
                outputs.push(inner);
            }
        }
        if self.chance(10) && self.part(last).kind != TensorType::INT16 {
            let axes = self.draft.words(&[2], &[1, 2]);
            self.reach.push(0.0);
            let y = self.like(last, [1, 1, 1, self.shape(last)[3]]);
            self.draft
                .step(Code::MEAN, &[last, axes], y, Options::KeepDimensions);
            outputs.push(y);
        }
        self.draft.outputs = outputs;
    }

    fn step(&mut self) {
        let x = match self.chance(85) {
            true => *self.values.last().unwrap(),
            false => self.random.pick(&self.values),
        };
        match self.from(0, 15) {
            0..=4 => _ = self.layer(x),
            5 => _ = self.pool(x),
            6 => _ = self.pad(x),
            7 | 8 => _ = self.binary(x),
            9 | 10 => _ = self.elementwise(x),
            11 => _ = self.with_constant(x),
            12 => _ = self.concatenation(x),
            13 => self.inverted(x),
            _ => self.fork(x),
        }
    }

    // --- choices

    fn from(&mut self, low: i32, high: i32) -> i32 {
        self.random.within(low as u64..=high as u64) as i32
    }

    /// Whether something happens that does so in `percent` of the cases.
    fn chance(&mut self, percent: u64) -> bool {
        self.random.within(0..=99) < percent
    }

    /// A number from `low` up to `high`.
    fn real(&mut self, low: f32, high: f32) -> f32 {
        let part = self.random.within(0..=(1 << 24) - 1) as f32 / (1 << 24) as f32;
        low + (high - low) * part
    }

    fn activation(&mut self) -> ActivationFunctionType {
        use ActivationFunctionType as A;
        self.random.pick(&[A::NONE, A::NONE, A::RELU, A::RELU6])
    }

    // --- tensors

    fn part(&self, t: i32) -> &Part {
        &self.draft.tensors[t as usize]
    }

    fn shape(&self, t: i32) -> [i32; 4] {
        self.part(t).shape[..].try_into().unwrap()
    }

    fn tensor(&mut self, part: Part, reach: f32) -> i32 {
        self.reach.push(reach);
        self.draft.tensor(part)
    }

    /// An image whose values are about as large as `reach`.
    fn image(&mut self, kind: TensorType, shape: [i32; 4], reach: f32) -> i32 {
        let (steps, zero_point) = match kind {
            TensorType::INT8 => (128.0, i64::from(self.from(0, 80)) - 40),
            TensorType::INT16 => (32_768.0, 0),
            _ => (0.0, 0),
        };
        let scale = reach * self.real(0.9, 1.3) / steps;
        let scales = if steps > 0.0 { vec![scale] } else { Vec::new() };
        self.quantized(kind, shape, reach, scales, zero_point)
    }

    fn quantized(
        &mut self,
        kind: TensorType,
        shape: [i32; 4],
        reach: f32,
        scales: Vec<f32>,
        zero_point: i64,
    ) -> i32 {
        let part = Part {
            kind,
            shape: shape.to_vec(),
            scales,
            zero_point,
            axis: 0,
            data: None,
        };
        let t = self.tensor(part, reach);
        self.values.push(t);
        t
    }

    /// An image quantized as another.
    fn like(&mut self, x: i32, shape: [i32; 4]) -> i32 {
        let Part {
            kind,
            scales,
            zero_point,
            ..
        } = self.part(x).clone();
        self.quantized(kind, shape, self.reach[x as usize], scales, zero_point)
    }

    /// Constant numbers from `-reach` to `reach`, quantized with one scale or one for each of the channels of `axis`.
    fn constant(&mut self, kind: TensorType, shape: &[i32], reach: f32, axis: Option<i32>) -> i32 {
        let elements: i32 = shape.iter().product();
        let (most, bytes) = match kind {
            TensorType::INT8 => (127, 1),
            TensorType::INT16 => (32_767, 2),
            _ => (0, 4),
        };
        let mut data = Vec::new();
        for _ in 0..elements {
            match most {
                0 => data.extend(self.real(-reach, reach).to_le_bytes()),
                _ => {
                    data.extend_from_slice(&(self.from(0, 2 * most) - most).to_le_bytes()[..bytes])
                }
            }
        }
        let channels = axis.map_or(1, |axis| shape[axis as usize]);
        let scales = match most {
            0 => Vec::new(),
            _ if channels == 1 => vec![reach / most as f32],
            _ => (0..channels)
                .map(|_| reach / most as f32 * self.real(0.6, 1.4))
                .collect(),
        };
        let part = Part {
            kind,
            shape: shape.to_vec(),
            scales,
            zero_point: 0,
            axis: axis.unwrap_or(0),
            data: Some(data),
        };
        self.tensor(part, reach)
    }

    /// What is added to the sums of a layer, one number for each channel.
    fn bias(&mut self, x: i32, weights: i32, channels: i32) -> i32 {
        let reach = 0.2 * self.reach[x as usize];
        let kind = match self.part(x).kind {
            TensorType::INT8 => TensorType::INT32,
            TensorType::INT16 => TensorType::INT64,
            _ => return self.constant(TensorType::FLOAT32, &[channels], reach, None),
        };
        let scales: Vec<f32> = self.part(weights).scales.clone();
        let scales: Vec<f32> = scales.iter().map(|s| s * self.part(x).scales[0]).collect();
        let bytes = if kind == TensorType::INT32 { 4 } else { 8 };
        let mut data = Vec::new();
        for channel in 0..channels as usize {
            let scale = scales.get(channel).unwrap_or(&scales[0]);
            let value = (self.real(-reach, reach) / scale) as i64;
            data.extend_from_slice(&value.to_le_bytes()[..bytes]);
        }
        let part = Part {
            kind,
            shape: vec![channels],
            scales,
            zero_point: 0,
            axis: 0,
            data: Some(data),
        };
        self.tensor(part, reach)
    }

    // --- operators; each gives the index of its output, or `None` where it does not fit

    fn window(&mut self, x: i32, dilated: bool) -> Option<Window> {
        let [_, h, w, _] = self.shape(x);
        let kernel = [self.random.pick(&[1, 2, 3, 3, 3, 4, 5]), self.from(1, 4)];
        let stride = [
            self.random.pick(&[1, 1, 1, 2, 2, 3]),
            self.random.pick(&[1, 1, 2]),
        ];
        let dilation = match dilated && self.chance(20) {
            true => [2, self.from(1, 2)],
            false => [1, 1],
        };
        let padding = self
            .random
            .pick(&[Padding::SAME, Padding::SAME, Padding::VALID]);
        Window::new([h, w], kernel, stride, dilation, padding)
    }

    fn layer(&mut self, x: i32) -> Option<i32> {
        let window = self.window(x, true)?;
        match self.chance(50) {
            true => {
                let multiplier = self.random.pick(&[1, 1, 1, 2]);
                self.depthwise(x, &window, multiplier)
            }
            false => {
                let channels = self.from(1, 8);
                self.convolution(x, &window, channels)
            }
        }
    }

    fn convolution(&mut self, x: i32, window: &Window, channels: i32) -> Option<i32> {
        let [_, _, _, deep] = self.shape(x);
        let &Window {
            kernel: [kh, kw],
            output: [oh, ow],
            ..
        } = window;
        if oh * ow * channels > self.size.elements
            || oh * ow * channels * kh * kw * deep > self.size.products
        {
            return None;
        }
        let weights = self.weights(x, [channels, kh, kw, deep], kh * kw * deep, 0);
        let bias = match self.chance(85) {
            true => self.bias(x, weights, channels),
            false => -1,
        };
        let y = self.image(
            self.part(x).kind,
            [1, oh, ow, channels],
            self.reach[x as usize],
        );
        let options = Options::Conv(Conv2DOptionsArgs {
            padding: window.padding,
            stride_h: window.stride[0],
            stride_w: window.stride[1],
            dilation_h_factor: window.dilation[0],
            dilation_w_factor: window.dilation[1],
            fused_activation_function: self.activation(),
            ..Default::default()
        });
        // An input that is left out is the last, or stands as -1: both are in use.
        let inputs = match bias < 0 && self.chance(50) {
            true => vec![x, weights],
            false => vec![x, weights, bias],
        };
        self.draft.step(Code::CONV_2D, &inputs, y, options);
        Some(y)
    }

    fn depthwise(&mut self, x: i32, window: &Window, multiplier: i32) -> Option<i32> {
        let channels = self.shape(x)[3] * multiplier;
        let &Window {
            kernel: [kh, kw],
            output: [oh, ow],
            ..
        } = window;
        if channels > 16 || oh * ow * channels > self.size.elements {
            return None;
        }
        let weights = self.weights(x, [1, kh, kw, channels], kh * kw, 3);
        // TFLM crashes over a depthwise convolution whose bias is left out.
        let bias = self.bias(x, weights, channels);
        let y = self.image(
            self.part(x).kind,
            [1, oh, ow, channels],
            self.reach[x as usize],
        );
        let options = Options::Depthwise(DepthwiseConv2DOptionsArgs {
            padding: window.padding,
            stride_h: window.stride[0],
            stride_w: window.stride[1],
            dilation_h_factor: window.dilation[0],
            dilation_w_factor: window.dilation[1],
            depth_multiplier: multiplier,
            fused_activation_function: self.activation(),
        });
        self.draft
            .step(Code::DEPTHWISE_CONV_2D, &[x, weights, bias], y, options);
        Some(y)
    }

    /// Weights that keep the range of the sums of `fan` products.
    fn weights(&mut self, x: i32, shape: [i32; 4], fan: i32, axis: i32) -> i32 {
        let kind = match self.part(x).kind {
            TensorType::FLOAT32 => TensorType::FLOAT32,
            _ => TensorType::INT8,
        };
        let per_channel = self.chance(70).then_some(axis);
        self.constant(kind, &shape, 1.7 / (fan as f32).sqrt(), per_channel)
    }

    fn pool(&mut self, x: i32) -> Option<i32> {
        let window = self.window(x, false)?;
        let code = self
            .random
            .pick(&[Code::MAX_POOL_2D, Code::AVERAGE_POOL_2D]);
        self.pooled(x, &window, code)
    }

    fn pooled(&mut self, x: i32, window: &Window, code: Code) -> Option<i32> {
        let [oh, ow] = window.output;
        let y = self.like(x, [1, oh, ow, self.shape(x)[3]]);
        if code == Code::AVERAGE_POOL_2D {
            self.reach[y as usize] *= 1.3 / (window.kernel[0] * window.kernel[1]).min(4) as f32;
        }
        let options = Options::Pool(Pool2DOptionsArgs {
            padding: window.padding,
            stride_h: window.stride[0],
            stride_w: window.stride[1],
            filter_height: window.kernel[0],
            filter_width: window.kernel[1],
            fused_activation_function: self.activation(),
        });
        self.draft.step(code, &[x], y, options);
        Some(y)
    }

    fn pad(&mut self, x: i32) -> Option<i32> {
        let [n, h, w, c] = self.shape(x);
        let around: [i32; 4] = std::array::from_fn(|_| self.from(0, 2));
        let [top, bottom, left, right] = around;
        let shape = [n, h + top + bottom, w + left + right, c];
        if shape.iter().product::<i32>() > self.size.elements {
            return None;
        }
        let kind = self.part(x).kind;
        let words = [0, 0, top, bottom, left, right, 0, 0];
        let paddings = self.draft.words(&[4, 2], &words);
        self.reach.push(0.0);
        // TFLM pads images of 16 bits with zeros alone.
        let value = (kind != TensorType::INT16 && self.chance(40)).then(|| {
            let data = match kind {
                TensorType::FLOAT32 => self.real(-1.0, 1.0).to_le_bytes().to_vec(),
                _ => vec![self.from(0, 255) as u8],
            };
            let part = Part {
                shape: vec![1],
                data: Some(data),
                ..self.part(x).clone()
            };
            self.tensor(part, 0.0)
        });
        let y = self.like(x, shape);
        match value {
            Some(value) => {
                self.draft
                    .step(Code::PADV2, &[x, paddings, value], y, Options::Nothing);
            }
            None => self
                .draft
                .step(Code::PAD, &[x, paddings], y, Options::Nothing),
        }
        Some(y)
    }

    fn elementwise(&mut self, x: i32) -> Option<i32> {
        use TensorType as T;
        let (shape, kind, reach) = (self.shape(x), self.part(x).kind, self.reach[x as usize]);
        let code = self.random.pick(&[
            Code::RELU,
            Code::RELU6,
            Code::LEAKY_RELU,
            Code::LOGISTIC,
            Code::TANH,
            Code::HARD_SWISH,
            Code::QUANTIZE,
        ]);
        let code = match (code, kind) {
            (Code::HARD_SWISH, T::INT16) => Code::LEAKY_RELU,
            // Floats go on as floats, most of the time.
            (Code::QUANTIZE, T::FLOAT32) if self.chance(60) => Code::HARD_SWISH,
            (Code::QUANTIZE, T::INT8 | T::INT16) if self.chance(20) => Code::DEQUANTIZE,
            _ => code,
        };
        let y = match (code, kind) {
            (Code::QUANTIZE, T::FLOAT32) => {
                let to = self.random.pick(&[T::INT8, T::INT8, T::INT16]);
                self.image(to, shape, reach)
            }
            (Code::QUANTIZE, _) => {
                let to = self.random.pick(&[T::INT8, T::INT8, T::INT16]);
                self.image(to, shape, reach)
            }
            (Code::DEQUANTIZE, _) => self.image(T::FLOAT32, shape, reach),
            (Code::LOGISTIC, T::INT8) => self.quantized(kind, shape, 1.0, vec![1.0 / 256.0], -128),
            (Code::TANH, T::INT8) => self.quantized(kind, shape, 1.0, vec![1.0 / 128.0], 0),
            (Code::LOGISTIC | Code::TANH, T::INT16) => {
                self.quantized(kind, shape, 1.0, vec![1.0 / 32_768.0], 0)
            }
            _ => self.image(kind, shape, reach),
        };
        let options = match code {
            Code::LEAKY_RELU => Options::Slope(0.3),
            _ => Options::Nothing,
        };
        self.draft.step(code, &[x], y, options);
        Some(y)
    }

    /// ADD, SUB or MUL of an image and an earlier one.
    fn binary(&mut self, x: i32) -> Option<i32> {
        let fitting = |t: &i32| {
            *t != x && self.shape(*t) == self.shape(x) && self.part(*t).kind == self.part(x).kind
        };
        let fit: Vec<i32> = self.values.iter().copied().filter(fitting).collect();
        if fit.is_empty() {
            return None;
        }
        let other = self.random.pick(&fit);
        Some(self.arithmetic(x, other))
    }

    fn arithmetic(&mut self, x: i32, other: i32) -> i32 {
        let code = self
            .random
            .pick(&[Code::ADD, Code::ADD, Code::SUB, Code::MUL]);
        let (a, b) = (self.reach[x as usize], self.reach[other as usize]);
        let reach = match code {
            Code::MUL => a * b,
            _ => 0.8 * (a + b),
        };
        let y = self.image(self.part(x).kind, self.shape(x), reach);
        let inputs = match self.chance(50) {
            true => [x, other],
            false => [other, x],
        };
        let options = Options::Fused(self.activation());
        self.draft.step(code, &inputs, y, options);
        y
    }

    /// The same with a constant, which as a rule has no rows of its own.
    fn with_constant(&mut self, x: i32) -> Option<i32> {
        let [_, h, w, c] = self.shape(x);
        let rows = if self.chance(10) { h } else { 1 };
        let shapes: [&[i32]; 5] = [&[c], &[1, 1, c], &[1, 1, 1, 1], &[1, rows, w, c], &[w, c]];
        let shape = self.random.pick(&shapes);
        let reach = self.reach[x as usize];
        let other = self.constant(self.part(x).kind, shape, reach, None);
        Some(self.arithmetic(x, other))
    }

    fn concatenation(&mut self, x: i32) -> Option<i32> {
        let [n, h, w, c] = self.shape(x);
        let fits = |t: &i32| {
            let ([_, rows, columns, _], part) = (self.shape(*t), self.part(*t));
            let as_x = self.part(x);
            (rows, columns, part.kind) == (h, w, as_x.kind)
                && (&part.scales, part.zero_point) == (&as_x.scales, as_x.zero_point)
        };
        let fit: Vec<i32> = self.values.iter().copied().filter(fits).collect();
        let mut inputs = vec![x];
        for _ in 0..self.from(1, 2) {
            inputs.push(self.random.pick(&fit));
        }
        self.joined(&inputs, [n, h, w, c])
    }

    fn joined(&mut self, inputs: &[i32], [n, h, w, _]: [i32; 4]) -> Option<i32> {
        let channels: i32 = inputs.iter().map(|t| self.shape(*t)[3]).sum();
        if channels > 16 || h * w * channels > self.size.elements {
            return None;
        }
        let y = self.like(inputs[0], [n, h, w, channels]);
        let axis = self.random.pick(&[3, -1]);
        self.draft
            .step(Code::CONCATENATION, inputs, y, Options::Axis(axis));
        Some(y)
    }

    /// An inverted residual: wider, through a window, narrower, and added to what came in.
    fn inverted(&mut self, x: i32) {
        let [_, h, w, c] = self.shape(x);
        let point = Window::new([h, w], [1, 1], [1, 1], [1, 1], Padding::SAME).unwrap();
        let kernel = self.random.pick(&[3, 3, 5]);
        let window = Window::new([h, w], [kernel, 3], [1, 1], [1, 1], Padding::SAME).unwrap();
        let deep = (2 * c).min(12);
        let wide = self.convolution(x, &point, deep);
        let filtered = wide.and_then(|t| self.depthwise(t, &window, 1));
        if let Some(narrow) = filtered.and_then(|t| self.convolution(t, &point, c)) {
            self.arithmetic(x, narrow);
        }
    }

    /// Two layers that read the same image, and what joins them.
    fn fork(&mut self, x: i32) {
        let [_, h, w, c] = self.shape(x);
        let stride = [self.random.pick(&[1, 1, 2, 3]), self.from(1, 2)];
        let layer = |v: &mut Self| {
            let kernel = [v.from(1, 5), v.from(1, 3)];
            let window = Window::new([h, w], kernel, stride, [1, 1], Padding::SAME).unwrap();
            match v.from(0, 3) {
                0 => v.pooled(x, &window, Code::MAX_POOL_2D),
                1 => v.pooled(x, &window, Code::AVERAGE_POOL_2D),
                2 => v.depthwise(x, &window, 1),
                _ => v.convolution(x, &window, c),
            }
        };
        let (Some(a), Some(b)) = (layer(self), layer(self)) else {
            return;
        };
        let of = |v: &Self, t: i32| (v.part(t).scales.clone(), v.part(t).zero_point);
        if self.chance(50) && of(self, a) == of(self, b) {
            self.joined(&[a, b], self.shape(a));
        } else {
            self.arithmetic(a, b);
        }
    }
}
