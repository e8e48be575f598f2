//! Inputs and outputs of a model: those that were recorded elsewhere, to compare with, or made up.
//!
//! A record is the number of inferences (a little-endian `u32`), then for each inference the bytes of all inputs and of all
//! outputs, in the model's order and little-endian.

use arenaplan_runtime::{Error, Interpreter, Type};

/// A type of elements, as bytes.
trait Bytes: arenaplan_runtime::Element + arenaplan_runtime::Value {
    const SIZE: usize = size_of::<Self>();
    fn of(bytes: &[u8]) -> Self;
    fn put(self, to: &mut dyn FnMut(&[u8]));
    /// Whether it is the number that was expected.
    fn is(self, expected: Self) -> bool;
    /// From a random byte.
    fn made_up(byte: u8) -> Self;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Bytes for $type {
            fn of(bytes: &[u8]) -> Self {
                <[u8; size_of::<Self>()]>::try_from(bytes).map_or(0, Self::from_le_bytes)
            }
            fn put(self, to: &mut dyn FnMut(&[u8])) {
                to(&self.to_le_bytes());
            }
            fn is(self, expected: Self) -> bool {
                self == expected
            }
            fn made_up(byte: u8) -> Self {
                byte as i8 as Self
            }
        }
    )*};
}

integers!(i8, u8, i16, u16, i32, u32, i64, u64);

impl Bytes for f32 {
    fn of(bytes: &[u8]) -> Self {
        <[u8; 4]>::try_from(bytes).map_or(0.0, Self::from_le_bytes)
    }
    fn put(self, to: &mut dyn FnMut(&[u8])) {
        to(&self.to_le_bytes());
    }
    fn is(self, expected: Self) -> bool {
        let difference = (self - expected).abs();
        self == expected || difference <= 1e-5 * expected.abs() || difference <= 1e-7
    }
    fn made_up(byte: u8) -> Self {
        f32::from(byte as i8) / 128.0
    }
}

/// Calls a generic function for the type of Rust that stands for a tensor's type.
macro_rules! for_type {
    ($element_type:expr, $call:ident($($argument:expr),*)) => {
        match $element_type {
            Type::INT8 => $call::<i8>($($argument),*),
            Type::UINT8 | Type::BOOL => $call::<u8>($($argument),*),
            Type::INT16 => $call::<i16>($($argument),*),
            Type::UINT16 | Type::FLOAT16 => $call::<u16>($($argument),*),
            Type::INT32 => $call::<i32>($($argument),*),
            Type::UINT32 => $call::<u32>($($argument),*),
            Type::INT64 => $call::<i64>($($argument),*),
            Type::UINT64 => $call::<u64>($($argument),*),
            Type::FLOAT32 => $call::<f32>($($argument),*),
            found => Err(Error::ElementType { found }),
        }
    };
}

/// The inferences of a record, one after the other.
#[derive(Debug)]
pub struct Golden<'g> {
    rest: &'g [u8],
    /// Inferences in the record.
    pub invokes: u32,
}

impl<'g> Golden<'g> {
    /// The record in `bytes`; `None` if there is none.
    pub fn new(bytes: &'g [u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk()?;
        Some(Self {
            rest,
            invokes: u32::from_le_bytes(*count),
        })
    }

    /// Sets the inputs of the next inference.
    pub fn set_inputs(&mut self, interpreter: &mut Interpreter<'_, '_>) -> Result<(), Error> {
        for index in 0..interpreter.session().inputs() {
            let element_type = interpreter.session().input_info(index)?.element_type;
            for_type!(element_type, set(interpreter, index, &mut self.rest))?;
        }
        Ok(())
    }

    /// Compares the outputs; the first element that is wrong, as output and position.
    pub fn compare(
        &mut self,
        interpreter: &mut Interpreter<'_, '_>,
    ) -> Result<Option<(usize, usize)>, Error> {
        let mut wrong = None;
        for index in 0..interpreter.session().outputs() {
            let element_type = interpreter.session().output_info(index)?.element_type;
            let at = for_type!(element_type, compare(interpreter, index, &mut self.rest))?;
            wrong = wrong.or(at.map(|at| (index, at)));
        }
        Ok(wrong)
    }

    /// Whether the record has been read to its end.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

fn take<'g, T: Bytes>(rest: &mut &'g [u8], count: usize) -> Result<&'g [u8], Error> {
    let given = rest.len() / T::SIZE;
    let needed = count.saturating_mul(T::SIZE);
    let (taken, after) = rest.split_at_checked(needed).ok_or(Error::ElementCount {
        needed: count,
        given,
    })?;
    *rest = after;
    Ok(taken)
}

fn set<T: Bytes>(
    interpreter: &mut Interpreter<'_, '_>,
    index: usize,
    rest: &mut &[u8],
) -> Result<(), Error> {
    let input = interpreter.input::<T>(index)?;
    let bytes = take::<T>(rest, input.len())?;
    for (element, bytes) in input.iter_mut().zip(bytes.chunks_exact(T::SIZE)) {
        *element = T::of(bytes);
    }
    Ok(())
}

fn compare<T: Bytes>(
    interpreter: &mut Interpreter<'_, '_>,
    index: usize,
    rest: &mut &[u8],
) -> Result<Option<usize>, Error> {
    let output = interpreter.output::<T>(index)?;
    let bytes = take::<T>(rest, output.len())?;
    let mut pairs = output.iter().zip(bytes.chunks_exact(T::SIZE));
    Ok(pairs.position(|(element, bytes)| !element.is(T::of(bytes))))
}

/// Sets all inputs to made-up numbers, which follow from `seed` and change it.
pub fn make_up_inputs(interpreter: &mut Interpreter<'_, '_>, seed: &mut u32) -> Result<(), Error> {
    for index in 0..interpreter.session().inputs() {
        let element_type = interpreter.session().input_info(index)?.element_type;
        for_type!(element_type, make_up(interpreter, index, seed))?;
    }
    Ok(())
}

fn make_up<T: Bytes>(
    interpreter: &mut Interpreter<'_, '_>,
    index: usize,
    seed: &mut u32,
) -> Result<(), Error> {
    for element in interpreter.input::<T>(index)? {
        // A linear congruential generator, of which the high bits are good.
        *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *element = T::made_up((*seed >> 24) as u8);
    }
    Ok(())
}

/// Calls `to` with the bytes of an output, element by element.
pub fn output_bytes(
    interpreter: &mut Interpreter<'_, '_>,
    index: usize,
    to: &mut dyn FnMut(&[u8]),
) -> Result<(), Error> {
    let element_type = interpreter.session().output_info(index)?.element_type;
    for_type!(element_type, bytes_of(interpreter, index, to))
}

fn bytes_of<T: Bytes>(
    interpreter: &mut Interpreter<'_, '_>,
    index: usize,
    to: &mut dyn FnMut(&[u8]),
) -> Result<(), Error> {
    for &element in interpreter.output::<T>(index)? {
        element.put(to);
    }
    Ok(())
}
