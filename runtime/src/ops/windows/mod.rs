//! Operators with weights: convolutions and FULLY_CONNECTED.

mod convolution;
mod depthwise;
mod fully_connected;
mod geometry;
mod scale;

pub use convolution::{CONV_2D, CONV_2D_INT8};
pub use depthwise::{DEPTHWISE_CONV_2D, DEPTHWISE_CONV_2D_INT8};
pub use fully_connected::{FULLY_CONNECTED, FULLY_CONNECTED_INT8};

use crate::error::Fault;
use crate::fixed;
use crate::kernel::Kernel;
use crate::memory::dot::{Factor, Window};
use crate::memory::{Element, View};
use crate::node::{Node, Tensor};
use crate::types::Type;
use scale::Scale;

pub(super) const KERNELS: &[Kernel] = &[CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED];

/// The tensors that all of these operators have.
struct Operands<'a> {
    input: Tensor<'a>,
    filter: Tensor<'a>,
    bias: Option<Tensor<'a>>,
    output: Tensor<'a>,
}

impl<'a> Operands<'a> {
    #[inline(never)]
    fn of(node: &Node<'a>) -> Result<Self, Fault> {
        Ok(Self {
            input: node.input(0)?,
            filter: node.input(1)?,
            bias: node.optional_input(2)?,
            output: node.output(0)?,
        })
    }

    /// Checks the types: input and output alike, weights of `filter`.
    fn expect(&self, data: Type, filter: Type) -> Result<(), Fault> {
        self.input.expect(data)?;
        self.filter.expect(filter)?;
        self.output.expect(data)
    }

    /// The bias of each output channel; empty where there is none.
    fn bias<T: Element>(&self, bias: Type, channels: usize) -> Result<View<'a, T>, Fault> {
        let Some(tensor) = &self.bias else {
            return Ok(View::default());
        };
        tensor.expect(bias)?;
        if tensor.len() != channels {
            return Err(tensor.wrong_shape());
        }
        tensor.read()
    }

    /// The input's zero point, which int8 kernels subtract.
    fn zero_point(&self) -> Result<i32, Fault> {
        let zero = self.input.zero_point();
        match i8::try_from(zero) {
            Ok(zero) => Ok(i32::from(zero)),
            Err(_) => Err(Fault::Quantization(self.input.operand())),
        }
    }
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
}

/// int8 with weights of int8.
struct Int8<'a> {
    offset: i32,
    bias: View<'a, i32>,
    scale: Scale<'a>,
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
}

/// int16 with weights of int8.
struct Int16<'a> {
    offset: i32,
    bias: Bias<'a>,
    scale: Scale<'a>,
}

/// The bias of int16 kernels; its type is that of sums.
#[derive(Clone, Copy)]
enum Bias<'a> {
    Int32(View<'a, i32>),
    Int64(View<'a, i64>),
}

impl<'a> Bias<'a> {
    /// Of the operator, or, where it has none, none of the type `accumulator`, which its options have.
    fn of(operands: &Operands<'a>, channels: usize, accumulator: i8) -> Result<Self, Fault> {
        let given = operands.bias.as_ref().map(Tensor::element_type);
        match given.unwrap_or(Type(accumulator)) {
            Type::INT32 => Ok(Bias::Int32(operands.bias(Type::INT32, channels)?)),
            _ => Ok(Bias::Int64(operands.bias(Type::INT64, channels)?)),
        }
    }
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

impl<'a> Float<'a> {
    fn of(
        operands: &Operands<'a>,
        channels: usize,
        (activation, slot): (i8, u8),
    ) -> Result<Self, Fault> {
        operands.expect(Type::FLOAT32, Type::FLOAT32)?;
        let (least, largest) = fixed::activation_range_f32(activation, slot)?;
        Ok(Self {
            bias: operands.bias(Type::FLOAT32, channels)?,
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

impl<'a> Uneven<'a> {
    /// The weights of `filter`; `zero_point` is subtracted from them.
    fn of(filter: &Tensor<'a>, zero_point: i32) -> Result<Self, Fault> {
        let packed = filter.element_type() == Type::INT4;
        Ok(Self {
            weights: if packed {
                filter.packed()?
            } else {
                filter.bytes()?
            },
            packed,
            zero_point,
        })
    }

    fn get(&self, index: usize) -> i32 {
        let weight = if self.packed {
            let byte = self.weights.get(index / 2);
            let high = if index % 2 == 0 { byte << 4 } else { byte };
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

/// The outputs of the `channels` from `from` on, with the weights of a window: written in order from `output` on.
#[inline(always)]
fn channels<A: Arithmetic>(
    arithmetic: &A,
    window: &Window<'_, A::Data>,
    from: usize,
    to: usize,
    mut write: impl FnMut(usize, A::Data),
) {
    let mut channel = from;
    while channel < to {
        let count = (to - channel).min(4);
        let mut sums = [0, 1, 2, 3].map(|k| arithmetic.start(channel.wrapping_add(k)));
        window.add(channel, count, arithmetic.offset(), &mut sums);
        for (k, sum) in sums.into_iter().take(count).enumerate() {
            write(channel + k, arithmetic.finish(channel + k, sum));
        }
        channel += count;
    }
}
