//! From one type to another: QUANTIZE, DEQUANTIZE, CAST.
//!
//! QUANTIZE and CAST read a few elements as 32-bit words, whatever their type, and write words as whatever type is asked for,
//! rather than have a loop for each pair of types.

use super::{Pair, Quantized, elementwise};
use crate::error::Fault;
use crate::fixed::clamp;
use crate::kernel::{Code, Kernel};
use crate::memory::{Element, View, ViewMut};
use crate::node::{Node, Tensor};
use crate::quantization;
use crate::types::Type;

/// `QUANTIZE` (`quantize.cc`): float32 to int8 and int16, and from one quantization to another: int8 to int8, uint8, int16 and
/// int32; uint8 to int8; int16 to int8, int16 and int32; int32 to int8 and int16.
pub const QUANTIZE: Kernel = elementwise(Code::QUANTIZE, |node| {
    let pair = quantize_pair(node)?;
    match pair.input.element_type() {
        Type::FLOAT32 => quantize(&pair),
        _ => requantize(&pair),
    }
});
/// [`QUANTIZE`] of float32 alone.
pub const QUANTIZE_FLOAT32: Kernel =
    elementwise(Code::QUANTIZE, |node| quantize(&quantize_pair(node)?));
/// [`QUANTIZE`] from one quantization to another alone.
pub const REQUANTIZE: Kernel =
    elementwise(Code::QUANTIZE, |node| requantize(&quantize_pair(node)?));
/// `DEQUANTIZE`, of int8, uint8 and int16, to float32 (`dequantize.cc`).
pub const DEQUANTIZE: Kernel = elementwise(Code::DEQUANTIZE, dequantize);
/// `CAST`, of int8, int16, int32, uint32, float32 and bool, to all of them but bool (`cast.cc`).
///
/// Integers lose their upper bits; floats beyond what int32 or uint32 hold become the nearest that there is.
pub const CAST: Kernel = elementwise(Code::CAST, cast);

fn quantize_pair<'a>(node: &Node<'a>) -> Result<Pair<'a>, Fault> {
    let pair = Pair::new(node)?;
    match pair.output.scales().len() {
        1 => Ok(pair),
        _ => Err(Fault::Quantization(pair.output.operand())),
    }
}

fn quantize(pair: &Pair<'_>) -> Result<(), Fault> {
    fn to<T: Quantized>(pair: &Pair<'_>) -> Result<(), Fault> {
        let (scale, zero_point) = (pair.output.scale()?, pair.output.zero_point());
        pair.compute(|x: f32| quantization::quantize::<T>(x, scale, zero_point))
    }
    pair.input.expect(Type::FLOAT32)?;
    match pair.output.element_type() {
        Type::INT8 => to::<i8>(pair),
        Type::INT16 => to::<i16>(pair),
        _ => Err(pair.output.wrong_type()),
    }
}

fn requantize(pair: &Pair<'_>) -> Result<(), Fault> {
    let (from, to) = (pair.input.element_type(), pair.output.element_type());
    let known = match from {
        Type::INT8 => matches!(to, Type::INT8 | Type::UINT8 | Type::INT16 | Type::INT32),
        Type::UINT8 => to == Type::INT8,
        Type::INT16 => matches!(to, Type::INT8 | Type::INT16 | Type::INT32),
        Type::INT32 => matches!(to, Type::INT8 | Type::INT16),
        _ => return Err(pair.input.wrong_type()),
    };
    if !known {
        return Err(pair.output.wrong_type());
    }
    let factor = pair.ratio(1.0)?;
    let (from, to) = (pair.input.zero_point(), pair.output.zero_point());
    let (least, largest) = match pair.output.element_type() {
        Type::INT8 => (i8::LEAST, i8::LARGEST),
        Type::UINT8 => (u8::LEAST, u8::LARGEST),
        Type::INT16 => (i16::LEAST, i16::LARGEST),
        _ => (i32::MIN, i32::MAX),
    };
    convert(pair, |words| {
        for word in words {
            let scaled = factor.apply(word.wrapping_sub(from));
            *word = clamp(scaled.wrapping_add(to), least, largest);
        }
    })
}

fn dequantize(node: &Node<'_>) -> Result<(), Fault> {
    fn from<T: Quantized>(pair: &Pair<'_>) -> Result<(), Fault> {
        let (scale, zero_point) = (pair.input.scale()?, pair.input.zero_point());
        pair.compute(|x: T| quantization::dequantize(x, scale, zero_point))
    }
    let pair = Pair::new(node)?;
    pair.output.expect(Type::FLOAT32)?;
    match pair.input.element_type() {
        Type::INT8 => from::<i8>(&pair),
        Type::UINT8 => from::<u8>(&pair),
        Type::INT16 => from::<i16>(&pair),
        _ => Err(pair.input.wrong_type()),
    }
}

/// Elements that are words at a time.
const LANES: usize = 16;

/// Reads elements as words, lets `f` change them, and writes them as elements, a block at a time.
#[inline(always)]
fn convert(pair: &Pair<'_>, f: impl Fn(&mut [i32; LANES])) -> Result<(), Fault> {
    let (from, to) = (pair.input.bytes()?, pair.output.bytes_mut()?);
    let mut words = [0; LANES];
    let mut start = 0;
    while start < pair.output.len() {
        load(&pair.input, from, start, &mut words);
        f(&mut words);
        store(&pair.output, to, start, &words);
        start += LANES;
    }
    Ok(())
}

/// Reads elements from `start` on: integers as they are, 32 bits of any type as they are, bool as 0 or 1.
#[inline(never)]
fn load(tensor: &Tensor<'_>, bytes: View<'_, u8>, start: usize, words: &mut [i32; LANES]) {
    fn all<T: Element>(
        bytes: View<'_, u8>,
        start: usize,
        words: &mut [i32; LANES],
        f: impl Fn(T) -> i32,
    ) {
        let elements = bytes.cast::<T>().unwrap_or_default().skip(start);
        for (word, element) in words.iter_mut().zip(elements) {
            *word = f(element);
        }
    }
    match tensor.element_type() {
        Type::INT8 => all(bytes, start, words, |x: i8| x.into()),
        Type::UINT8 => all(bytes, start, words, |x: u8| x.into()),
        Type::BOOL => all(bytes, start, words, |x: u8| (x != 0).into()),
        Type::INT16 => all(bytes, start, words, |x: i16| x.into()),
        _ => all(bytes, start, words, |x: i32| x),
    }
}

/// Writes the low bits of words to elements from `start` on.
#[inline(never)]
fn store(tensor: &Tensor<'_>, bytes: ViewMut<'_, u8>, start: usize, words: &[i32; LANES]) {
    fn all<T: Element>(
        bytes: ViewMut<'_, u8>,
        start: usize,
        words: &[i32; LANES],
        f: impl Fn(i32) -> T,
    ) {
        let elements = bytes.cast::<T>().unwrap_or_default();
        let left = elements.len().saturating_sub(start);
        let elements = elements.part(start, left).unwrap_or_default();
        elements.map(View::of(words), f);
    }
    match tensor.element_type().bytes() {
        Some(1) => all(bytes, start, words, |x| x as u8),
        Some(2) => all(bytes, start, words, |x| x as u16),
        _ => all(bytes, start, words, |x| x),
    }
}

fn cast(node: &Node<'_>) -> Result<(), Fault> {
    let pair = Pair::new(node)?;
    let (from, to) = (pair.input.element_type(), pair.output.element_type());
    match from {
        Type::INT8 | Type::INT16 | Type::INT32 | Type::UINT32 | Type::FLOAT32 | Type::BOOL => {}
        _ => return Err(pair.input.wrong_type()),
    }
    match to {
        Type::INT8 | Type::INT16 | Type::INT32 | Type::UINT32 | Type::FLOAT32 => {}
        _ => return Err(pair.output.wrong_type()),
    }
    convert(&pair, |words| match (from, to) {
        (Type::FLOAT32, Type::FLOAT32) => {}
        (Type::FLOAT32, Type::UINT32) => {
            each(words, |x| f32::from_bits(x as u32) as u32 as i32);
        }
        (Type::FLOAT32, _) => each(words, |x| f32::from_bits(x as u32) as i32),
        (Type::UINT32, Type::FLOAT32) => each(words, |x| (x as u32 as f32).to_bits() as i32),
        (_, Type::FLOAT32) => each(words, |x| (x as f32).to_bits() as i32),
        _ => {}
    })
}

#[inline(always)]
fn each(words: &mut [i32; LANES], f: impl Fn(i32) -> i32) {
    for word in words {
        *word = f(*word);
    }
}
