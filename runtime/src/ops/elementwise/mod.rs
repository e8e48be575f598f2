//! Operators that compute each output element from the input elements at the same place.
//!
//! Those with two inputs, and SELECT_V2, broadcast tensors of up to six dimensions.

mod activation;
mod arithmetic;
mod broadcast;
mod compare;
mod convert;
mod real;
mod select;
mod sigmoid;
mod sigmoid_table;

pub use activation::*;
pub use arithmetic::*;
pub use compare::*;
pub use convert::*;
pub use real::*;
pub use select::*;
pub use sigmoid::*;

use crate::contract::Contract;
use crate::error::Fault;
use crate::fixed::Multiplier;
use crate::kernel::{Code, Kernel};
use crate::memory::Element;
use crate::node::{Node, Tensor};
use crate::quantization::Quantized;
use crate::types::Type;

pub(super) const KERNELS: &[Kernel] = &[
    ABS,
    ADD,
    ADD_N,
    CAST,
    CEIL,
    COS,
    DEQUANTIZE,
    DIV,
    ELU,
    EQUAL,
    EXP,
    FLOOR,
    FLOOR_DIV,
    FLOOR_MOD,
    GREATER,
    GREATER_EQUAL,
    HARD_SWISH,
    LEAKY_RELU,
    LESS,
    LESS_EQUAL,
    LOG,
    LOGICAL_AND,
    LOGICAL_NOT,
    LOGICAL_OR,
    LOGISTIC,
    MAXIMUM,
    MINIMUM,
    MUL,
    NEG,
    NOT_EQUAL,
    PRELU,
    QUANTIZE,
    RELU,
    RELU6,
    ROUND,
    RSQRT,
    SELECT_V2,
    SIN,
    SQRT,
    SQUARE,
    SQUARED_DIFFERENCE,
    SUB,
    TANH,
    ZEROS_LIKE,
];

const fn elementwise(code: Code, run: fn(&Node<'_>) -> Result<(), Fault>) -> Kernel {
    Kernel::builtin(code, run).with_contract(Contract::Elementwise)
}

/// The only input, the only output.
struct Pair<'a> {
    input: Tensor<'a>,
    output: Tensor<'a>,
}

impl<'a> Pair<'a> {
    /// The tensors of `node`.
    ///
    /// # Errors
    /// If one is missing, or they do not have the same number of elements.
    #[inline(never)]
    fn new(node: &Node<'a>) -> Result<Self, Fault> {
        let (input, output) = (node.input(0)?, node.output(0)?);
        match input.len() == output.len() {
            true => Ok(Self { input, output }),
            false => Err(output.wrong_shape()),
        }
    }

    /// The tensors of `node`, and the type of both.
    ///
    /// # Errors
    /// As [`new`](Self::new), or [`Fault::ElementType`] if the types differ.
    #[inline(never)]
    fn of_one_type(node: &Node<'a>) -> Result<(Self, Type), Fault> {
        let pair = Self::new(node)?;
        pair.output.expect(pair.input.element_type())?;
        let element_type = pair.input.element_type();
        Ok((pair, element_type))
    }

    /// Computes all elements of the output.
    ///
    /// # Errors
    /// If a tensor is not in memory.
    #[inline(always)]
    fn compute<A: Element, O: Element>(&self, f: impl Fn(A) -> O) -> Result<(), Fault> {
        self.output.write::<O>()?.map(self.input.read::<A>()?, f);
        Ok(())
    }

    /// The input's scale times `factor` over the output's.
    #[inline(never)]
    fn ratio(&self, factor: f32) -> Result<Multiplier, Fault> {
        let (input, output) = (self.input.scale()?, self.output.scale()?);
        Ok(Multiplier::of_scales(input, factor, output))
    }
}

/// `a * b / c`, of which all are above 0, as a factor below 1: `QuantizeMultiplierSmallerThanOneExp`, of something that has to
/// do with `tensor`.
///
/// # Errors
/// [`Fault::Quantization`] if it is not.
#[inline(never)]
fn below_one(a: f32, b: f32, c: f32, tensor: &Tensor<'_>) -> Result<Multiplier, Fault> {
    let factor = Multiplier::of_scales(a, b, c);
    match a > 0.0 && b > 0.0 && c > 0.0 && factor.shift <= 0 {
        true => Ok(factor),
        false => Err(Fault::Quantization(tensor.operand())),
    }
}

/// [`Fault::Quantization`] of a tensor whose zero point is not `zero_point`.
fn expect_zero_point(tensor: &Tensor<'_>, zero_point: i32) -> Result<(), Fault> {
    match tensor.zero_point() == zero_point {
        true => Ok(()),
        false => Err(Fault::Quantization(tensor.operand())),
    }
}
