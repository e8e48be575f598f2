//! Operators with weights: convolutions and FULLY_CONNECTED.

mod convolution;
mod depthwise;
mod fully_connected;
mod geometry;
mod scale;

pub use convolution::{CONV_2D, CONV_2D_INT8};
pub use depthwise::{DEPTHWISE_CONV_2D, DEPTHWISE_CONV_2D_INT8};
pub use fully_connected::{FULLY_CONNECTED, FULLY_CONNECTED_INT8, FULLY_CONNECTED_INT8_ONE_SCALE};

use crate::error::Fault;
use crate::fixed;
use crate::kernel::Kernel;
use crate::memory::dot::{Factor, Window};
use crate::memory::{Element, View, ViewMut};
use crate::node::{Node, found};
use crate::types::Type;
pub(crate) use scale::factors;

use geometry::Geometry;
use scale::Scale;

pub(super) const KERNELS: &[Kernel] = &[CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED];

/// What all of these operators read before they start. Filled in place, since stacks are small.
#[derive(Default)]
struct Setup<'a> {
    input: View<'a, u8>,
    filter: View<'a, u8>,
    /// Empty where there is none.
    bias: View<'a, u8>,
    output: ViewMut<'a, u8>,
    scale: Scale<'a>,
    /// What is added to each element of the input.
    offset: i32,
}

// Functions of their own, each with one tensor, which is off the stack when they return.
impl<'a> Setup<'a> {
    /// Checks types and finds the elements in memory.
    fn operands(&mut self, node: &Node<'a>, data: Type, filter: Type) -> Result<(), Fault> {
        self.input = bytes(node, 0, data)?;
        self.filter = bytes(node, 1, filter)?;
        self.written(node, data)
    }

    #[inline(never)]
    fn written(&mut self, node: &Node<'a>, data: Type) -> Result<(), Fault> {
        let output = node.output(0);
        let output = found(&output)?;
        output.expect(data)?;
        self.output = output.bytes_mut()?;
        Ok(())
    }

    /// Finds the bias of `channels` output channels.
    #[inline(never)]
    fn bias(&mut self, node: &Node<'a>, bias: Type, channels: usize) -> Result<(), Fault> {
        if !node.has_input(2) {
            return Ok(());
        }
        let tensor = node.input(2);
        let tensor = found(&tensor)?;
        if tensor.len() != channels {
            return Err(tensor.wrong_shape());
        }
        self.bias = tensor.of(bias)?;
        Ok(())
    }

    /// Reads the zero point of an int8 input.
    #[inline(never)]
    fn zero_point(&mut self, node: &Node<'a>) -> Result<(), Fault> {
        let input = node.input(0);
        let input = found(&input)?;
        match i8::try_from(input.zero_point()) {
            Ok(zero) => self.offset = -i32::from(zero),
            Err(_) => return Err(Fault::Quantization(input.operand())),
        }
        Ok(())
    }

    /// Reads all of a convolution but what depends on the type.
    #[inline(never)]
    fn convolution(
        &mut self,
        node: &Node<'a>,
        g: &mut Geometry,
        [data, filter, bias]: [Type; 3],
        depthwise: bool,
    ) -> Result<(), Fault> {
        self.operands(node, data, filter)?;
        g.shapes(node, depthwise)?;
        g.options(node, depthwise)?;
        self.bias(node, bias, g.channels)?;
        match data {
            Type::FLOAT32 => return Ok(()),
            Type::INT8 => self.zero_point(node)?,
            _ => {}
        }
        let axis = if depthwise { 3 } else { 0 };
        let outputs = g.outputs();
        self.scale
            .read(node, (g.channels, axis), outputs, g.activation)
    }
}

/// The bytes of an input of the type.
#[inline(never)]
fn bytes<'a>(node: &Node<'a>, index: usize, element_type: Type) -> Result<View<'a, u8>, Fault> {
    let input = node.input(index);
    let input = found(&input)?;
    match element_type {
        Type::INT4 => input.packed(),
        _ => input.of(element_type),
    }
}

/// Bytes as elements; they are aligned, since tensors are.
fn elements<T: Element>(bytes: View<'_, u8>) -> View<'_, T> {
    bytes.cast().unwrap_or_default()
}

/// As [`elements`].
fn elements_mut<T: Element>(bytes: ViewMut<'_, u8>) -> ViewMut<'_, T> {
    bytes.cast().unwrap_or_default()
}

/// How sums become outputs, by element type.
trait Arithmetic {
    /// Elements of input and output.
    type Data: Factor;

    /// What is added to each element of the input.
    fn offset(&self) -> i32;

    /// An element of the input that adds nothing to a sum.
    fn padding(&self) -> Self::Data {
        Self::Data::default()
    }

    /// What the sum of an output channel starts with.
    fn start(&self, channel: usize) -> <Self::Data as Factor>::Sum;

    /// The output of a channel.
    fn finish(&self, channel: usize, sum: <Self::Data as Factor>::Sum) -> Self::Data;

    /// As [`start`](Self::start), of the four channels from `channel` on.
    #[inline(always)]
    fn start4(&self, channel: usize) -> [<Self::Data as Factor>::Sum; 4] {
        [0, 1, 2, 3].map(|k| self.start(channel.wrapping_add(k)))
    }

    /// Sets the outputs of the four channels from `channel` on, in order.
    #[inline(always)]
    fn finish4(
        &self,
        channel: usize,
        sums: &[<Self::Data as Factor>::Sum; 4],
        out: ViewMut<'_, Self::Data>,
    ) {
        for (k, sum) in sums.iter().enumerate() {
            out.set(channel + k, self.finish(channel + k, *sum));
        }
    }
}

/// int8 with weights of int8.
struct Int8<'a> {
    offset: i32,
    bias: View<'a, i32>,
    scale: &'a Scale<'a>,
}

impl Arithmetic for Int8<'_> {
    type Data = i8;

    #[inline(always)]
    fn offset(&self) -> i32 {
        self.offset
    }

    fn padding(&self) -> i8 {
        (-self.offset) as i8
    }

    #[inline(always)]
    fn start(&self, channel: usize) -> i32 {
        self.bias.get(channel)
    }

    #[inline(always)]
    fn finish(&self, channel: usize, sum: i32) -> i8 {
        self.scale.narrow(channel, sum) as i8
    }

    #[inline(always)]
    fn start4(&self, channel: usize) -> [i32; 4] {
        match self.bias.part(channel, 4) {
            Some(bias) => [bias.get(0), bias.get(1), bias.get(2), bias.get(3)],
            None => [0; 4],
        }
    }

    #[inline(always)]
    fn finish4(&self, channel: usize, sums: &[i32; 4], out: ViewMut<'_, i8>) {
        self.scale.narrow4(channel, sums, out);
    }
}

/// int16 with weights of int8.
struct Int16<'a> {
    offset: i32,
    bias: Bias<'a>,
    scale: &'a Scale<'a>,
}

/// The bias of int16 kernels; its type is that of sums.
#[derive(Clone, Copy)]
enum Bias<'a> {
    Int32(View<'a, i32>),
    Int64(View<'a, i64>),
}

impl Arithmetic for Int16<'_> {
    type Data = i16;

    #[inline(always)]
    fn offset(&self) -> i32 {
        self.offset
    }

    #[inline(always)]
    fn start(&self, channel: usize) -> i64 {
        match self.bias {
            Bias::Int32(bias) => i64::from(bias.get(channel)),
            Bias::Int64(bias) => bias.get(channel),
        }
    }

    #[inline(always)]
    fn finish(&self, channel: usize, sum: i64) -> i16 {
        match self.bias {
            Bias::Int32(_) => self.scale.narrow(channel, sum as i32) as i16,
            Bias::Int64(_) => self.scale.wide(channel, sum) as i16,
        }
    }
}

/// float32.
struct Float<'a> {
    bias: View<'a, f32>,
    least: f32,
    largest: f32,
}

impl Arithmetic for Float<'_> {
    type Data = f32;

    #[inline(always)]
    fn offset(&self) -> i32 {
        0
    }

    #[inline(always)]
    fn start(&self, _: usize) -> f32 {
        0.0
    }

    #[inline(always)]
    fn finish(&self, channel: usize, sum: f32) -> f32 {
        fixed::clamp(sum + self.bias.get(channel), self.least, self.largest)
    }
}

impl<'a> Int8<'a> {
    fn of(setup: &'a Setup<'a>) -> Self {
        Self {
            offset: setup.offset,
            bias: elements(setup.bias),
            scale: &setup.scale,
        }
    }
}

impl<'a> Int16<'a> {
    fn of(setup: &'a Setup<'a>, accumulator: Type) -> Self {
        Self {
            offset: setup.offset,
            bias: match accumulator {
                Type::INT32 => Bias::Int32(elements(setup.bias)),
                _ => Bias::Int64(elements(setup.bias)),
            },
            scale: &setup.scale,
        }
    }
}

/// The type of sums of int16: that of the bias, or where there is none the one in the options.
fn accumulator(node: &Node<'_>, slot: u16) -> Result<Type, Fault> {
    let found = match node.optional_input(2)? {
        Some(bias) => bias.element_type(),
        None => Type(node.options()?.i8(slot, 0)?),
    };
    Ok(match found {
        Type::INT32 => found,
        _ => Type::INT64,
    })
}

impl<'a> Float<'a> {
    fn of(setup: &Setup<'a>, (activation, slot): (i8, u8)) -> Result<Self, Fault> {
        let (least, largest) = fixed::activation_range_f32(activation, slot)?;
        Ok(Self {
            bias: elements(setup.bias),
            least,
            largest,
        })
    }
}

/// Weights of 4 bits, or with a zero point: one by one, since they are rare.
#[derive(Clone, Copy)]
struct Uneven<'a> {
    weights: View<'a, u8>,
    /// Two in a byte.
    packed: bool,
    zero_point: i32,
}

impl Uneven<'_> {
    fn get(&self, index: usize) -> i32 {
        let weight = if self.packed {
            let byte = self.weights.get(index / 2);
            let high = if index.is_multiple_of(2) {
                byte << 4
            } else {
                byte
            };
            (high as i8) >> 4
        } else {
            self.weights.get(index) as i8
        };
        i32::from(weight).wrapping_sub(self.zero_point)
    }

    /// The sum of the input's elements, plus `offset`, times the weights from `first` on.
    #[inline(never)]
    fn dot(&self, input: View<'_, i8>, first: usize, offset: i32) -> i32 {
        let mut sum = 0i32;
        for (k, x) in input.iter().enumerate() {
            let x = i32::from(x).wrapping_add(offset);
            sum = sum.wrapping_add(x.wrapping_mul(self.get(first.wrapping_add(k))));
        }
        sum
    }
}

/// Works out the outputs of the channels from `from` to before `to`, with the weights of a window; in order.
#[inline(always)]
fn channels<A: Arithmetic>(
    arithmetic: &A,
    window: &Window<'_, A::Data>,
    (from, to): (usize, usize),
    out: ViewMut<'_, A::Data>,
) {
    let mut channel = from;
    while to - channel >= 4 {
        four(arithmetic, window, channel, out);
        channel += 4;
    }
    while channel < to {
        one(arithmetic, window, channel, out);
        channel += 1;
    }
}

#[inline(never)]
fn four<A: Arithmetic>(
    arithmetic: &A,
    window: &Window<'_, A::Data>,
    channel: usize,
    out: ViewMut<'_, A::Data>,
) {
    let mut sums = arithmetic.start4(channel);
    window.add4(channel, arithmetic.offset(), &mut sums);
    arithmetic.finish4(channel, &sums, out);
}

#[inline(never)]
fn one<A: Arithmetic>(
    arithmetic: &A,
    window: &Window<'_, A::Data>,
    channel: usize,
    out: ViewMut<'_, A::Data>,
) {
    let mut sum = arithmetic.start(channel);
    window.add(channel, arithmetic.offset(), &mut sum);
    out.set(channel, arithmetic.finish(channel, sum));
}
