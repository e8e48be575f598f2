//! Operators that put tensors together along an axis, and take them apart.
//!
//! Seen from the large tensor both are the same: it is a row of pieces, the first of each small tensor, then the second of
//! each, and so on, as many as there are indices before the axis. Pieces are moved in this order, which is that of the
//! bytes of the large tensor, each as a whole. A piece that is where it belongs stays as it is.

use crate::contract::Contract;
use crate::error::Fault;
use crate::fixed::activation;
use crate::kernel::{Code, Kernel};
use crate::memory::{View, ViewMut};
use crate::node::{Node, Tensor, found};
use crate::types::Type;

use super::{Numbers, axis, element_bytes};

/// `CONCATENATION`: inputs of one type, any one, put together along an axis.
///
/// As TFLM, there is no activation, and int8 inputs are quantized as the output is (`kernels/concatenation.cc`).
pub const CONCATENATION: Kernel =
    Kernel::builtin(Code::CONCATENATION, concatenation).with_contract(Contract::Concatenation);
/// `PACK`: inputs of one shape and type, any one, put together along a new axis.
pub const PACK: Kernel = Kernel::builtin(Code::PACK, pack).with_contract(Contract::Pack);
/// `SPLIT`: parts of one size along an axis. Of any type.
pub const SPLIT: Kernel = Kernel::builtin(Code::SPLIT, split).with_contract(Contract::Split);
/// `SPLIT_V`: parts along an axis. Of any type.
pub const SPLIT_V: Kernel = Kernel::builtin(Code::SPLIT_V, split_v).with_contract(Contract::Split);
/// `UNPACK`: parts along an axis, which is dropped. Of any type.
pub const UNPACK: Kernel = Kernel::builtin(Code::UNPACK, unpack).with_contract(Contract::Unpack);

/// As many small tensors are looked up once; others for each piece.
const KNOWN: usize = 8;

fn concatenation(node: &Node<'_>) -> Result<(), Fault> {
    const AXIS: u16 = 0;
    const ACTIVATION: u16 = 1;
    let options = node.options()?;
    if options.i8(ACTIVATION, activation::NONE)? != activation::NONE {
        return Err(Fault::Unsupported(ACTIVATION as u8));
    }
    let output = &node.output(0);
    let output = found(output)?;
    let axis =
        axis(options.i32(AXIS, 0)?, output.shape().rank()).ok_or(Fault::Unsupported(AXIS as u8))?;
    let quantization = output.first_quantization();
    let fits = |input: &Tensor<'_>| match output.element_type() {
        Type::INT8 | Type::UINT8 => input.first_quantization() == quantization,
        Type::INT16 => input.zero_point() == 0 && quantization.1 == 0,
        _ => true,
    };
    join(node, output, axis, false, &fits)
}

fn pack(node: &Node<'_>) -> Result<(), Fault> {
    const COUNT: u16 = 0;
    const AXIS: u16 = 1;
    let options = node.options()?;
    let output = &node.output(0);
    let output = found(output)?;
    let axis =
        axis(options.i32(AXIS, 0)?, output.shape().rank()).ok_or(Fault::Unsupported(AXIS as u8))?;
    if usize::try_from(options.i32(COUNT, 0)?) != Ok(node.inputs()) {
        return Err(Fault::Unsupported(COUNT as u8));
    }
    join(node, output, axis, true, &|_| true)
}

fn split(node: &Node<'_>) -> Result<(), Fault> {
    let input = node.input(1)?;
    let axis = axis_of(&node.input(0)?, &input)?;
    let first = node.output(0)?.shape();
    for index in 1..node.outputs() {
        let output = node.output(index)?;
        if output.shape() != first {
            return Err(output.wrong_shape());
        }
    }
    part(node, &input, axis, false)
}

fn split_v(node: &Node<'_>) -> Result<(), Fault> {
    let input = node.input(0)?;
    let axis = axis_of(&node.input(2)?, &input)?;
    part(node, &input, axis, false)
}

/// The axis of the input in a tensor of one number.
fn axis_of(tensor: &Tensor<'_>, input: &Tensor<'_>) -> Result<usize, Fault> {
    let numbers = Numbers::of(tensor)?;
    match axis(numbers.get(0), input.shape().rank()) {
        Some(axis) if numbers.len() != 0 => Ok(axis),
        _ => Err(tensor.wrong_value()),
    }
}

fn unpack(node: &Node<'_>) -> Result<(), Fault> {
    const COUNT: u16 = 0;
    const AXIS: u16 = 1;
    let options = node.options()?;
    let input = node.input(0)?;
    let axis =
        axis(options.i32(AXIS, 0)?, input.shape().rank()).ok_or(Fault::Unsupported(AXIS as u8))?;
    if usize::try_from(options.i32(COUNT, 0)?) != Ok(node.outputs()) {
        return Err(Fault::Unsupported(COUNT as u8));
    }
    part(node, &input, axis, true)
}

/// Bytes of each piece of `small`, of which `large` has as many as indices before the axis; its extent is added to
/// `extent`.
fn piece(
    small: &Tensor<'_>,
    large: &Tensor<'_>,
    axis: usize,
    dropped: bool,
    extent: &mut usize,
) -> Result<usize, Fault> {
    let element = element_bytes(large, small)?;
    let (inner, outer) = (small.shape(), large.shape());
    let mut fits = inner.rank() + usize::from(dropped) == outer.rank();
    for k in 0..outer.rank() {
        let at = k - usize::from(dropped && k > axis);
        fits &= k == axis || inner.dim(at) == outer.dim(k);
    }
    let along = if dropped { 1 } else { inner.dim(axis) };
    *extent = extent.saturating_add(along);
    let within = outer.product(axis + 1, outer.rank());
    match within.and_then(|within| within.checked_mul(along)?.checked_mul(element)) {
        Some(bytes) if fits => Ok(bytes),
        _ => Err(small.wrong_shape()),
    }
}

/// Puts all inputs, each of which must fit, together to the output.
fn join(
    node: &Node<'_>,
    large: &Tensor<'_>,
    axis: usize,
    dropped: bool,
    fits: &dyn Fn(&Tensor<'_>) -> bool,
) -> Result<(), Fault> {
    let output = large.bytes_mut()?;
    let mut known = [(View::default(), 0); KNOWN];
    let mut extent = 0;
    for index in 0..node.inputs() {
        let small = &node.input(index);
        let small = found(small)?;
        if !fits(small) {
            return Err(Fault::Quantization(small.operand()));
        }
        let piece = piece(small, large, axis, dropped, &mut extent)?;
        let bytes = small.bytes()?;
        if let Some(known) = known.get_mut(index) {
            *known = (bytes, piece);
        }
    }
    if extent != large.shape().dim(axis) {
        return Err(large.wrong_shape());
    }
    if large.is_empty() {
        return Ok(());
    }
    let mut to = 0;
    for k in 0..large.shape().product(0, axis).unwrap_or(0) {
        for index in 0..node.inputs() {
            let (bytes, piece) = match known.get(index) {
                Some(known) => *known,
                None => {
                    let small = &node.input(index);
                    let small = found(small)?;
                    let piece = piece(small, large, axis, dropped, &mut extent)?;
                    (small.bytes()?, piece)
                }
            };
            let from = bytes.part(k.wrapping_mul(piece), piece);
            let (Some(from), Some(out)) = (from, output.part(to, piece)) else {
                return Err(large.wrong_shape());
            };
            out.copy_from(from);
            to = to.wrapping_add(piece);
        }
    }
    Ok(())
}

/// Takes all outputs from the input.
fn part(node: &Node<'_>, large: &Tensor<'_>, axis: usize, dropped: bool) -> Result<(), Fault> {
    let input = large.bytes()?;
    let mut known = [(ViewMut::default(), 0); KNOWN];
    let mut extent = 0;
    for index in 0..node.outputs() {
        let small = node.output(index)?;
        let piece = piece(&small, large, axis, dropped, &mut extent)?;
        let bytes = small.bytes_mut()?;
        if let Some(known) = known.get_mut(index) {
            *known = (bytes, piece);
        }
    }
    if extent != large.shape().dim(axis) {
        return Err(large.wrong_shape());
    }
    if large.is_empty() {
        return Ok(());
    }
    let mut from = 0;
    for k in 0..large.shape().product(0, axis).unwrap_or(0) {
        for index in 0..node.outputs() {
            let (bytes, piece) = match known.get(index) {
                Some(known) => *known,
                None => {
                    let small = node.output(index)?;
                    let piece = piece(&small, large, axis, dropped, &mut extent)?;
                    (small.bytes_mut()?, piece)
                }
            };
            let out = bytes.part(k.wrapping_mul(piece), piece);
            let (Some(from_bytes), Some(out)) = (input.part(from, piece), out) else {
                return Err(large.wrong_shape());
            };
            out.copy_from(from_bytes);
            from = from.wrapping_add(piece);
        }
    }
    Ok(())
}
