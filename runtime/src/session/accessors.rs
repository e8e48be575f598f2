//! Inputs and outputs, as an application reaches them.

use arenaplan_schema::view;

use super::Session;
use crate::error::Error;
use crate::memory::{Element, View, ViewMut};
use crate::node::Shape;
use crate::prepare::byte_len;
use crate::run::constant;
use crate::types::Type;
use crate::walk::position;

/// A type of Rust that stands for elements of a tensor.
pub trait Value: Element {
    /// Whether tensors of that type have elements of this one.
    fn stands_for(element_type: Type) -> bool;
}

macro_rules! values {
    ($($type:ty: $($element:ident)|*;)*) => {$(
        impl Value for $type {
            fn stands_for(element_type: Type) -> bool {
                matches!(element_type, $(Type::$element)|*)
            }
        }
    )*};
}

values! {
    i8: INT8;
    u8: UINT8 | BOOL;
    i16: INT16;
    u16: UINT16 | FLOAT16;
    i32: INT32;
    u32: UINT32;
    i64: INT64;
    u64: UINT64;
    f32: FLOAT32;
}

impl<'m> Session<'m, '_> {
    /// Number of inputs of the model.
    pub fn inputs(&self) -> usize {
        self.list(true).map_or(0, |list| list.len())
    }

    /// Number of outputs of the model.
    pub fn outputs(&self) -> usize {
        self.list(false).map_or(0, |list| list.len())
    }

    /// Shape, type and quantization of input `index`.
    ///
    /// # Errors
    /// If there is no such input.
    pub fn input_info(&self, index: usize) -> Result<Info<'m>, Error> {
        self.info(true, index)
    }

    /// Shape, type and quantization of output `index`.
    ///
    /// # Errors
    /// If there is no such output.
    pub fn output_info(&self, index: usize) -> Result<Info<'m>, Error> {
        self.info(false, index)
    }

    /// The elements of input `index`, in row-major order, to be set before each inference: an input's memory is used again
    /// as soon as the last operator has read it.
    ///
    /// # Errors
    /// If there is no such input, or its elements are no `T`.
    pub fn input<'h, T: Value>(
        &'h mut self,
        head: &'h mut [u8],
        index: usize,
    ) -> Result<&'h mut [T], Error> {
        let at = self.locate(head, true, index, T::stands_for)?;
        let owner = match at.memory {
            Memory::Head => head,
            Memory::Tail => &mut *self.tail,
            Memory::Model => return Err(Error::TensorSize { tensor: at.tensor }),
        };
        let slice = ViewMut::of(owner).slice_at(at.start, at.bytes / size_of::<T>());
        slice.ok_or(Error::TensorSize { tensor: at.tensor })
    }

    /// The bytes of input `index`, whatever its type: elements in row-major order, little-endian.
    ///
    /// # Errors
    /// If there is no such input.
    pub fn input_bytes<'h>(
        &'h mut self,
        head: &'h mut [u8],
        index: usize,
    ) -> Result<&'h mut [u8], Error> {
        let at = self.locate(head, true, index, |_| true)?;
        let owner = match at.memory {
            Memory::Head => head,
            Memory::Tail => &mut *self.tail,
            Memory::Model => return Err(Error::TensorSize { tensor: at.tensor }),
        };
        let bytes = owner
            .get_mut(at.start..)
            .and_then(|rest| rest.get_mut(..at.bytes));
        bytes.ok_or(Error::TensorSize { tensor: at.tensor })
    }

    /// As [`input`](Self::input), of an input that must have the dimensions `shape`, outermost first.
    ///
    /// # Errors
    /// If there is no such input, it has another shape, or its elements are no `T`.
    pub fn input_shaped<'h, T: Value>(
        &'h mut self,
        head: &'h mut [u8],
        index: usize,
        shape: &[usize],
    ) -> Result<&'h mut [T], Error> {
        self.expect_shape(true, index, shape)?;
        self.input(head, index)
    }

    /// As [`input`](Self::input), as an array: how many elements there are is known when the program is compiled.
    ///
    /// # Errors
    /// If there is no such input, its elements are no `T`, or it has more or fewer.
    #[inline]
    pub fn input_array<'h, T: Value, const LEN: usize>(
        &'h mut self,
        head: &'h mut [u8],
        index: usize,
    ) -> Result<&'h mut [T; LEN], Error> {
        let input = self.input::<T>(head, index)?;
        let given = input.len();
        input
            .try_into()
            .map_err(|_| Error::ElementCount { needed: LEN, given })
    }

    /// Sets the elements of input `index`.
    ///
    /// # Errors
    /// If there is no such input, its elements are no `T`, or it has more or fewer.
    pub fn set_input<T: Value>(
        &mut self,
        head: &mut [u8],
        index: usize,
        values: &[T],
    ) -> Result<(), Error> {
        let input = self.input::<T>(head, index)?;
        if input.len() != values.len() {
            return Err(Error::ElementCount {
                needed: input.len(),
                given: values.len(),
            });
        }
        input.copy_from_slice(values);
        Ok(())
    }

    /// The elements of output `index`, in row-major order, as the last inference left them.
    ///
    /// # Errors
    /// If there is no such output, or its elements are no `T`; [`Error::ConstantAlignment`] if it is a constant that the
    /// file aligns less than Rust does a `T`.
    pub fn output<'h, T: Value>(&'h self, head: &'h [u8], index: usize) -> Result<&'h [T], Error> {
        let at = self.locate(head, false, index, T::stands_for)?;
        let owner = match at.memory {
            Memory::Head => head,
            Memory::Tail => &*self.tail,
            Memory::Model => self.model.as_bytes(),
        };
        let slice = View::of(owner).slice_at(at.start, at.bytes / size_of::<T>());
        // All within the arena is aligned for all types.
        slice.ok_or(Error::ConstantAlignment { tensor: at.tensor })
    }

    /// As [`output`](Self::output), as an array: how many elements there are is known when the program is compiled.
    ///
    /// # Errors
    /// As those of [`output`](Self::output), and if it has more or fewer elements.
    #[inline]
    pub fn output_array<'h, T: Value, const LEN: usize>(
        &'h self,
        head: &'h [u8],
        index: usize,
    ) -> Result<&'h [T; LEN], Error> {
        let output = self.output::<T>(head, index)?;
        output.try_into().map_err(|_| Error::ElementCount {
            needed: LEN,
            given: output.len(),
        })
    }

    /// The bytes of output `index`, whatever its type: elements in row-major order, little-endian.
    ///
    /// # Errors
    /// If there is no such output.
    pub fn output_bytes<'h>(&'h self, head: &'h [u8], index: usize) -> Result<&'h [u8], Error> {
        let at = self.locate(head, false, index, |_| true)?;
        let owner = match at.memory {
            Memory::Head => head,
            Memory::Tail => &*self.tail,
            Memory::Model => self.model.as_bytes(),
        };
        let bytes = owner.get(at.start..).and_then(|rest| rest.get(..at.bytes));
        bytes.ok_or(Error::TensorSize { tensor: at.tensor })
    }

    /// As [`output`](Self::output), of an output that must have the dimensions `shape`, outermost first.
    ///
    /// # Errors
    /// As those of [`output`](Self::output), and if it has another shape.
    pub fn output_shaped<'h, T: Value>(
        &'h self,
        head: &'h [u8],
        index: usize,
        shape: &[usize],
    ) -> Result<&'h [T], Error> {
        self.expect_shape(false, index, shape)?;
        self.output(head, index)
    }

    /// Whether an input or an output has a shape.
    fn expect_shape(&self, inputs: bool, index: usize, shape: &[usize]) -> Result<(), Error> {
        let (tensor, table) = self.table(inputs, index)?;
        let found = Shape(table.shape()?);
        let rank = found.rank();
        let error = |axis: usize, found: usize| {
            Err(Error::Shape {
                tensor,
                rank: u16::try_from(rank).unwrap_or(u16::MAX),
                axis: u16::try_from(axis).unwrap_or(u16::MAX),
                found: found as u32,
            })
        };
        if rank != shape.len() {
            return error(rank, 0);
        }
        for (axis, &dim) in shape.iter().enumerate() {
            if found.dim(axis) != dim {
                return error(axis, found.dim(axis));
            }
        }
        Ok(())
    }

    fn list(&self, inputs: bool) -> Result<view::Vector<'m, i32>, Error> {
        list(self.model.subgraphs()?.get(0)?, inputs)
    }

    fn table(&self, inputs: bool, index: usize) -> Result<(u32, view::Tensor<'m>), Error> {
        let subgraph = self.model.subgraphs()?.get(0)?;
        let list = list(subgraph, inputs)?;
        let Some(tensor) = list.get(index) else {
            return Err(Error::NoSuchTensor {
                index,
                len: list.len(),
            });
        };
        let tensors = subgraph.tensors()?;
        let id = position(0, tensors.len(), tensor)?;
        Ok((id, tensors.get(id as usize)?))
    }

    fn info(&self, inputs: bool, index: usize) -> Result<Info<'m>, Error> {
        let (_, table) = self.table(inputs, index)?;
        Ok(Info {
            element_type: Type(table.element_type()?),
            shape: Shape(table.shape()?),
            table,
        })
    }

    /// Where the elements of an input or an output are.
    ///
    /// Not by the type, so that it is there once.
    fn locate(
        &self,
        head: &[u8],
        inputs: bool,
        index: usize,
        stands_for: fn(Type) -> bool,
    ) -> Result<At, Error> {
        let (id, table) = self.table(inputs, index)?;
        let found = Type(table.element_type()?);
        if !stands_for(found) {
            return Err(Error::ElementType { found });
        }
        let bytes = byte_len(&table, id)?;
        let at = |memory, start| At {
            memory,
            tensor: id,
            start,
            bytes,
        };
        // Without elements, it is nowhere.
        if bytes == 0 {
            return Ok(at(Memory::Head, 0));
        }
        self.check(head)?;
        let place = self.place(id);
        let (found, len) = if let Some(data) = constant(&self.model, &table) {
            let model = self.model.as_bytes().as_ptr().addr();
            let start = data.as_ptr().addr().wrapping_sub(model);
            (at(Memory::Model, start), start.saturating_add(data.len()))
        } else if let Some(start) = place.as_head() {
            (at(Memory::Head, start), head.len())
        } else if let Some(start) = place.as_tail() {
            (at(Memory::Tail, start), self.tail.len())
        } else {
            return Err(Error::TensorSize { tensor: id });
        };
        match found.start.checked_add(bytes) {
            Some(end) if end <= len => Ok(found),
            _ => Err(Error::TensorSize { tensor: id }),
        }
    }
}

/// The subgraph's inputs, or its outputs.
fn list(subgraph: view::SubGraph<'_>, inputs: bool) -> Result<view::Vector<'_, i32>, Error> {
    Ok(match inputs {
        true => subgraph.inputs()?,
        false => subgraph.outputs()?,
    })
}

/// The memory that a tensor is in.
enum Memory {
    Head,
    Tail,
    Model,
}

/// Where elements are: bytes from the start of a memory, and how many bytes.
struct At {
    memory: Memory,
    tensor: u32,
    start: usize,
    bytes: usize,
}

/// Shape, type and quantization of an input or an output.
#[derive(Clone, Copy, Debug)]
pub struct Info<'m> {
    /// The type of the elements.
    pub element_type: Type,
    /// The dimensions.
    pub shape: Shape<'m>,
    /// The table in the file, with the name.
    pub table: view::Tensor<'m>,
}

impl Info<'_> {
    /// Scale and zero point: `real = scale * (integer - zero_point)`; `None` where the elements are the numbers that they
    /// stand for.
    pub fn quantization(&self) -> Option<(f32, i32)> {
        let quantization = self.table.quantization().ok()??;
        let scale = quantization.scale().ok()?.get(0)?;
        let zero_point = quantization.zero_point().ok()?.get(0).unwrap_or(0);
        Some((scale, zero_point as i32))
    }
}
