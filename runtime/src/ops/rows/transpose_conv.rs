//! TRANSPOSE_CONV, the gradient of a convolution.
//!
//! The rules are those of TFLM's `transpose_conv.cc` and `reference/integer_ops/transpose_conv.h`. TFLM adds each input
//! element to all the outputs that it bears on, which takes a sum for each output in scratch memory; here each output
//! gathers its inputs, in the same order, and no memory is needed.

use arenaplan_schema::view::Vector;

use super::{
    OUTPUT, dims, dot, dot_of_floats, dot_wide, quantization, read, read_optional, tensor, write,
};
use crate::error::{Fault, Operand};
use crate::fixed::{Multiplier, activation_range, activation_range_f32, clamp};
use crate::kernel::{Code, Kernel};
use crate::memory::{Element, View};
use crate::node::Node;
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

/// The operator's shapes and scales.
#[derive(Clone, Copy, Debug)]
struct Layer<'a> {
    batches: usize,
    channels: usize,
    out_channels: usize,
    x: Axis,
    y: Axis,
    filter_scales: Vector<'a, f32>,
}

const FILTER: Operand = Operand::Input(1);
const INPUT: Operand = Operand::Input(2);
const BIAS: u8 = 3;

impl<'a> Layer<'a> {
    #[inline(never)]
    fn new(node: &Node<'a>) -> Result<Self, Fault> {
        let [batches, height, width, channels] = dims(node, INPUT)?;
        let [out_channels, filter_height, filter_width, filter_channels] = dims(node, FILTER)?;
        let [out_batches, out_height, out_width, depth] = dims(node, OUTPUT)?;
        if filter_channels != channels {
            return Err(Fault::Shape(FILTER));
        }
        if out_batches != batches || depth != out_channels {
            return Err(Fault::Shape(OUTPUT));
        }
        let options = node.options()?;
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
            batches,
            channels,
            out_channels,
            x: x.ok_or(Fault::Unsupported(slot_x as u8))?,
            y: y.ok_or(Fault::Unsupported(slot_y as u8))?,
            filter_scales: tensor(node, FILTER)?.scales(),
        })
    }

    /// The factor of an output channel, of the scales of input and output.
    fn factor(&self, channel: usize, scales: (f32, f32)) -> Result<Multiplier, Fault> {
        let index = if self.filter_scales.len() == 1 {
            0
        } else {
            channel
        };
        let scale = self.filter_scales.get(index);
        let scale = scale.ok_or(Fault::Quantization(FILTER))?;
        Ok(Multiplier::of_scales(scales.0, scale, scales.1))
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

#[inline(never)]
fn range(node: &Node<'_>) -> Result<(i32, i32), Fault> {
    let activation = node.options()?.i8(OPTION_ACTIVATION, 0)?;
    activation_range(&tensor(node, OUTPUT)?, activation, OPTION_ACTIVATION as u8)
}

fn int8(node: &Node<'_>) -> Result<(), Fault> {
    let layer = Layer::new(node)?;
    let from = read::<i8>(node, 2, Type::INT8)?;
    let filter = read::<i8>(node, 1, Type::INT8)?;
    let bias = read_optional::<i32>(node, BIAS, Type::INT32, layer.out_channels)?;
    let to = write::<i8>(node, OUTPUT, Type::INT8)?;
    let (least, largest) = range(node)?;
    let (in_scale, in_zero) = quantization(node, INPUT)?;
    let (out_scale, zero_point) = quantization(node, OUTPUT)?;
    let offset = in_zero.wrapping_neg();
    for channel in 0..layer.out_channels {
        let factor = layer.factor(channel, (in_scale, out_scale))?;
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
        gathered.ok_or(Fault::Shape(OUTPUT))?;
    }
    Ok(())
}

/// The biases of int16, which are of int64 or int16.
#[derive(Clone, Copy, Debug, Default)]
struct Biases<'a> {
    wide: Option<View<'a, i64>>,
    narrow: Option<View<'a, i16>>,
}

impl<'a> Biases<'a> {
    #[inline(never)]
    fn new(node: &Node<'a>, len: usize) -> Result<Self, Fault> {
        let bias = node.optional_input(BIAS.into())?;
        let mut biases = Self::default();
        if bias.is_some_and(|bias| bias.element_type() == Type::INT16) {
            biases.narrow = read_optional(node, BIAS, Type::INT16, len)?;
        } else {
            biases.wide = read_optional(node, BIAS, Type::INT64, len)?;
        }
        Ok(biases)
    }

    fn get(&self, channel: usize) -> i64 {
        let narrow = self.narrow.map(|bias| bias.get(channel).into());
        let wide = self.wide.map(|bias| bias.get(channel));
        narrow.or(wide).unwrap_or(0)
    }
}

fn int16(node: &Node<'_>) -> Result<(), Fault> {
    let layer = Layer::new(node)?;
    let from = read::<i16>(node, 2, Type::INT16)?;
    let filter = read::<i8>(node, 1, Type::INT8)?;
    let biases = Biases::new(node, layer.out_channels)?;
    let to = write::<i16>(node, OUTPUT, Type::INT16)?;
    let (least, largest) = range(node)?;
    let scales = (quantization(node, INPUT)?.0, quantization(node, OUTPUT)?.0);
    for channel in 0..layer.out_channels {
        let factor = layer.factor(channel, scales)?;
        let gathered = layer.gather(
            from,
            filter,
            channel,
            biases.get(channel),
            |sum, pixel, weights| sum.wrapping_add(dot_wide(pixel, 0, weights, 0)),
            |k, sum| {
                let scaled = factor.apply_wide(sum);
                to.set(k, clamp(scaled, least, largest) as i16);
            },
        );
        gathered.ok_or(Fault::Shape(OUTPUT))?;
    }
    Ok(())
}

fn float(node: &Node<'_>) -> Result<(), Fault> {
    let layer = Layer::new(node)?;
    let from = read::<f32>(node, 2, Type::FLOAT32)?;
    let filter = read::<f32>(node, 1, Type::FLOAT32)?;
    let bias = read_optional::<f32>(node, BIAS, Type::FLOAT32, layer.out_channels)?;
    let to = write::<f32>(node, OUTPUT, Type::FLOAT32)?;
    let activation = node.options()?.i8(OPTION_ACTIVATION, 0)?;
    let range = activation_range_f32(activation, OPTION_ACTIVATION as u8)?;
    for channel in 0..layer.out_channels {
        let bias = bias.map_or(0.0, |bias| bias.get(channel));
        let gathered = layer.gather(from, filter, channel, 0.0, dot_of_floats, |k, sum| {
            to.set(k, clamp(sum + bias, range.0, range.1))
        });
        gathered.ok_or(Fault::Shape(OUTPUT))?;
    }
    Ok(())
}
