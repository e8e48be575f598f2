//! TRANSPOSE_CONV, the gradient of a convolution.
//!
//! The rules are those of TFLM's `transpose_conv.cc` and `reference/integer_ops/transpose_conv.h`. TFLM adds each input
//! element to all the outputs that it bears on, which takes a sum for each output in scratch memory; here each output
//! gathers its inputs, in the same order, and no memory is needed.

use super::{dot, dot_of_floats, dot_wide};
use crate::error::{Fault, Operand};
use crate::fixed::{Multiplier, activation_range, activation_range_f32, clamp};
use crate::kernel::{Code, Kernel};
use crate::memory::{Element, View};
use crate::node::{Node, Tensor};
use crate::types::Type;

/// `TRANSPOSE_CONV`: output shape (not read), filter `[out channels, height, width, channels]`, input
/// `[batch, height, width, channels]`, bias `[out channels]` or none.
///
/// int8 with a bias of int32, int16 with a filter of int8 and a bias of int64 or int16, float32.
pub const TRANSPOSE_CONV: Kernel = Kernel::builtin(Code::TRANSPOSE_CONV, transpose_conv);
/// [`TRANSPOSE_CONV`] of int8 alone.
pub const TRANSPOSE_CONV_INT8: Kernel = Kernel::builtin(Code::TRANSPOSE_CONV, int8);
/// [`TRANSPOSE_CONV`] of int16 alone.
pub const TRANSPOSE_CONV_INT16: Kernel = Kernel::builtin(Code::TRANSPOSE_CONV, int16);
/// [`TRANSPOSE_CONV`] of float32 alone.
pub const TRANSPOSE_CONV_FLOAT32: Kernel = Kernel::builtin(Code::TRANSPOSE_CONV, float);

const OPTION_PADDING: u16 = 0;
const OPTION_STRIDE_X: u16 = 1;
const OPTION_STRIDE_Y: u16 = 2;
const OPTION_ACTIVATION: u16 = 3;

fn transpose_conv(node: &Node<'_>) -> Result<(), Fault> {
    match node.input(2)?.element_type() {
        Type::INT8 => int8(node),
        Type::INT16 => int16(node),
        Type::FLOAT32 => float(node),
        _ => Err(Fault::ElementType(Operand::Input(2))),
    }
}

/// One axis of the picture.
#[derive(Clone, Copy, Debug)]
struct Axis {
    input: usize,
    output: usize,
    filter: usize,
    stride: usize,
    padding: usize,
}

impl Axis {
    fn new(input: usize, output: usize, filter: usize, stride: i32, same: bool) -> Option<Self> {
        let stride = usize::try_from(stride).ok().filter(|&stride| stride > 0)?;
        // What a convolution of the output to the input would pad with.
        let (wide, step, window) = (output as i64, stride as i64, filter as i64);
        let windows = match same {
            true => (wide + step - 1).checked_div(step)?,
            false => (wide + step - window).checked_div(step)?,
        };
        let total = (windows - 1) * step + window - wide;
        Some(Self {
            input,
            output,
            filter,
            stride,
            padding: (total.max(0) / 2) as usize,
        })
    }

    /// The first input that output `at` takes from, and the one behind the last.
    fn inputs(&self, at: usize) -> (usize, usize) {
        let reach = at + self.padding;
        let first = (reach + 1).saturating_sub(self.filter);
        let first = first.saturating_add(self.stride - 1);
        let first = first.checked_div(self.stride).unwrap_or(0);
        let last = reach.checked_div(self.stride).unwrap_or(0);
        (first, self.input.min(last + 1))
    }

    /// The place in the filter that `input` is multiplied with for output `at`.
    fn place(&self, at: usize, input: usize) -> usize {
        (at + self.padding).wrapping_sub(input.wrapping_mul(self.stride))
    }
}

/// The operator's tensors and its shapes.
#[derive(Clone, Copy, Debug)]
struct Layer<'a> {
    filter: Tensor<'a>,
    input: Tensor<'a>,
    bias: Option<Tensor<'a>>,
    output: Tensor<'a>,
    activation: i8,
    batches: usize,
    channels: usize,
    out_channels: usize,
    x: Axis,
    y: Axis,
}

impl<'a> Layer<'a> {
    #[inline(never)]
    fn new(node: &Node<'a>) -> Result<Self, Fault> {
        let (filter, input, bias) = (node.input(1)?, node.input(2)?, node.optional_input(3)?);
        let (output, options) = (node.output(0)?, node.options()?);
        let [batches, height, width, channels] = input.shape().dims().ok_or(input.wrong_shape())?;
        let [out_channels, filter_height, filter_width, filter_channels] =
            filter.shape().dims().ok_or(filter.wrong_shape())?;
        let [out_batches, out_height, out_width, depth] =
            output.shape().dims().ok_or(output.wrong_shape())?;
        if filter_channels != channels || filter.is_empty() {
            return Err(filter.wrong_shape());
        }
        if out_batches != batches || depth != out_channels || input.is_empty() {
            return Err(output.wrong_shape());
        }
        if bias.is_some_and(|bias| bias.len() != out_channels) {
            return Err(Fault::Shape(Operand::Input(3)));
        }
        output.expect(input.element_type())?;
        let same = match options.i8(OPTION_PADDING, 0)? {
            0 => true,
            1 => false,
            _ => return Err(Fault::Unsupported(OPTION_PADDING as u8)),
        };
        let (slot_x, slot_y) = (OPTION_STRIDE_X, OPTION_STRIDE_Y);
        let x = Axis::new(
            width,
            out_width,
            filter_width,
            options.i32(slot_x, 0)?,
            same,
        );
        let y = Axis::new(
            height,
            out_height,
            filter_height,
            options.i32(slot_y, 0)?,
            same,
        );
        Ok(Self {
            filter,
            input,
            bias,
            output,
            activation: options.i8(OPTION_ACTIVATION, 0)?,
            batches,
            channels,
            out_channels,
            x: x.ok_or(Fault::Unsupported(slot_x as u8))?,
            y: y.ok_or(Fault::Unsupported(slot_y as u8))?,
        })
    }

    fn activation_range(&self) -> Result<(i32, i32), Fault> {
        activation_range(&self.output, self.activation, OPTION_ACTIVATION as u8)
    }

    /// The factor of an output channel.
    fn factor(&self, channel: usize) -> Result<Multiplier, Fault> {
        let scales = self.filter.scales();
        let index = if scales.len() == 1 { 0 } else { channel };
        let wrong = Fault::Quantization(self.filter.operand());
        let scale = f64::from(scales.get(index).ok_or(wrong)?);
        let product = f64::from(self.input.scale()?) * scale;
        Ok(Multiplier::new(product / f64::from(self.output.scale()?)))
    }

    /// For each output of a channel, adds up what `products` makes of input and filter pixels, and gives the element's
    /// index and the sum to `each`.
    #[inline(always)]
    fn gather<T: Element, W: Element, A: Copy>(
        &self,
        input: View<'a, T>,
        filter: View<'a, W>,
        channel: usize,
        zero: A,
        products: impl Fn(A, View<'a, T>, View<'a, W>) -> A,
        mut each: impl FnMut(usize, A),
    ) -> Option<()> {
        let (x, y, channels) = (self.x, self.y, self.channels);
        if self.output.is_empty() {
            return Some(());
        }
        let mut at = channel;
        for batch in 0..self.batches {
            for row in 0..y.output {
                let (first_row, end_row) = y.inputs(row);
                for column in 0..x.output {
                    let (first_column, end_column) = x.inputs(column);
                    let mut sum = zero;
                    for in_row in first_row..end_row {
                        let line = (batch * y.input + in_row) * x.input;
                        let filter_row = channel * y.filter + y.place(row, in_row);
                        let filter_line = filter_row * x.filter;
                        for in_column in first_column..end_column {
                            let place = filter_line + x.place(column, in_column);
                            let pixel = input.part((line + in_column) * channels, channels)?;
                            let weights = filter.part(place * channels, channels)?;
                            sum = products(sum, pixel, weights);
                        }
                    }
                    each(at, sum);
                    at += self.out_channels;
                }
            }
        }
        Some(())
    }
}

fn int8(node: &Node<'_>) -> Result<(), Fault> {
    let layer = Layer::new(node)?;
    let (input, output) = (layer.input, layer.output);
    input.expect(Type::INT8)?;
    layer.filter.expect(Type::INT8)?;
    let bias = match layer.bias {
        Some(bias) => {
            bias.expect(Type::INT32)?;
            Some(bias.read::<i32>()?)
        }
        None => None,
    };
    let (least, largest) = layer.activation_range()?;
    let offset = input.zero_point().wrapping_neg();
    let zero_point = output.zero_point();
    let (from, filter) = (input.read::<i8>()?, layer.filter.read::<i8>()?);
    let to = output.write::<i8>()?;
    for channel in 0..layer.out_channels {
        let factor = layer.factor(channel)?;
        let start = bias.map_or(0, |bias| bias.get(channel));
        let gathered = layer.gather(
            from,
            filter,
            channel,
            start,
            |sum, pixel, weights| sum.wrapping_add(dot(pixel, offset, weights, 0)),
            |k, sum| {
                let scaled = factor.apply(sum).wrapping_add(zero_point);
                to.set(k, clamp(scaled, least, largest) as i8);
            },
        );
        gathered.ok_or(output.wrong_shape())?;
    }
    Ok(())
}

fn int16(node: &Node<'_>) -> Result<(), Fault> {
    let layer = Layer::new(node)?;
    let (input, output) = (layer.input, layer.output);
    input.expect(Type::INT16)?;
    layer.filter.expect(Type::INT8)?;
    let bias_of = |channel| -> Result<i64, Fault> {
        match layer.bias {
            None => Ok(0),
            Some(bias) if bias.element_type() == Type::INT16 => {
                Ok(bias.read::<i16>()?.get(channel).into())
            }
            Some(bias) => {
                bias.expect(Type::INT64)?;
                Ok(bias.read::<i64>()?.get(channel))
            }
        }
    };
    let (least, largest) = layer.activation_range()?;
    let (from, filter) = (input.read::<i16>()?, layer.filter.read::<i8>()?);
    let to = output.write::<i16>()?;
    for channel in 0..layer.out_channels {
        let factor = layer.factor(channel)?;
        let gathered = layer.gather(
            from,
            filter,
            channel,
            bias_of(channel)?,
            |sum, pixel, weights| sum.wrapping_add(dot_wide(pixel, 0, weights, 0)),
            |k, sum| {
                let scaled = factor.apply_wide(sum);
                to.set(k, clamp(scaled, least, largest) as i16);
            },
        );
        gathered.ok_or(output.wrong_shape())?;
    }
    Ok(())
}

fn float(node: &Node<'_>) -> Result<(), Fault> {
    let layer = Layer::new(node)?;
    let (input, output) = (layer.input, layer.output);
    input.expect(Type::FLOAT32)?;
    layer.filter.expect(Type::FLOAT32)?;
    let bias = match layer.bias {
        Some(bias) => {
            bias.expect(Type::FLOAT32)?;
            Some(bias.read::<f32>()?)
        }
        None => None,
    };
    let range = activation_range_f32(layer.activation, OPTION_ACTIVATION as u8)?;
    let (from, filter) = (input.read::<f32>()?, layer.filter.read::<f32>()?);
    let to = output.write::<f32>()?;
    for channel in 0..layer.out_channels {
        let bias = bias.map_or(0.0, |bias| bias.get(channel));
        let gathered = layer.gather(from, filter, channel, 0.0, dot_of_floats, |k, sum| {
            to.set(k, clamp(sum + bias, range.0, range.1))
        });
        gathered.ok_or(output.wrong_shape())?;
    }
    Ok(())
}
