//! Sessions and interpreters: what an application holds.

use core::cell::Cell;
use core::fmt;

use arenaplan_schema::view;

use crate::error::Error;
use crate::kernel::Kernel;
use crate::memory::{Element, View, ViewMut};
use crate::node::Shape;
use crate::prepare::{ALIGNMENT, Sizes, byte_len, prepare, reset};
use crate::recording::Recording;
use crate::run::{Observer, Place, Run, constant};
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

/// A model that is ready to run, with a tail of its own. The head is lent to each call, so that sessions can take turns on
/// one.
///
/// What a head holds between two calls is the session's inputs or outputs; when another session has run on it, inputs have
/// to be set again.
pub struct Session<'m, 't> {
    model: view::Model<'m>,
    kernels: &'m [Kernel],
    tail: &'t mut [u8],
    sizes: Sizes,
    head_bytes: usize,
    room_bytes: usize,
}

impl fmt::Debug for Session<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("head_bytes", &self.head_bytes)
            .field("tail_bytes", &self.tail.len())
            .finish_non_exhaustive()
    }
}

/// Bytes of the tail of a model's session with `kernels`, a multiple of 16.
///
/// # Errors
/// If the file is damaged, or too large for a device.
pub fn tail_bytes(model: &[u8], kernels: &[Kernel]) -> Result<usize, Error> {
    Sizes::of(&view::Model::new(model)?, kernels)?.tail()
}

impl<'m, 't> Session<'m, 't> {
    /// Prepares `model` to be run by `kernels`.
    ///
    /// Both memories start at multiples of 16. `head` must have room for the plan, and for 16 bytes for each tensor and
    /// each scratch buffer; `tail` has [`tail_bytes`] or more. After an error, both can be used again.
    ///
    /// # Errors
    /// If the file is damaged, the plan wrong, a kernel missing, or the memory too small.
    pub fn new(
        model: &'m [u8],
        kernels: &'m [Kernel],
        head: &mut [u8],
        tail: &'t mut [u8],
    ) -> Result<Self, Error> {
        let model = view::Model::new(model)?;
        let sizes = Sizes::of(&model, kernels)?;
        let mut session = Self::unprepared(model, sizes, kernels, tail);
        session.prepare(head).map(|()| session)
    }

    fn unprepared(
        model: view::Model<'m>,
        sizes: Sizes,
        kernels: &'m [Kernel],
        tail: &'t mut [u8],
    ) -> Self {
        Session {
            model,
            kernels,
            tail,
            sizes,
            head_bytes: 0,
            room_bytes: 0,
        }
    }

    fn prepare(&mut self, head: &mut [u8]) -> Result<(), Error> {
        if !aligned(self.model.as_bytes()) {
            return Err(Error::ModelAlignment);
        }
        if !aligned(head) || !aligned(self.tail) {
            return Err(Error::ArenaAlignment);
        }
        let needed = self.sizes.tail()?;
        let given = self.tail.len();
        match core::mem::take(&mut self.tail).get_mut(..needed) {
            Some(tail) => self.tail = tail,
            None => return Err(Error::ArenaTooSmall { needed, given }),
        }
        let run = self.assemble(head, None)?;
        let prepared = prepare(&run)?;
        reset(&run)?;
        self.head_bytes = prepared.head;
        self.room_bytes = prepared.room;
        Ok(())
    }

    /// Bytes of the head that inferences use.
    pub fn head_bytes(&self) -> usize {
        self.head_bytes
    }

    /// Bytes of the head that [`Session::new`] used while it prepared the model, which may be more.
    pub fn room_bytes(&self) -> usize {
        self.room_bytes
    }

    pub(crate) fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Bytes of the tail.
    pub fn tail_bytes(&self) -> usize {
        self.tail.len()
    }

    /// Where a tensor starts in the head, in bytes, by its position in the plan; `None` if it is not there.
    pub fn head_offset(&self, tensor: u32) -> Option<usize> {
        self.place(tensor).as_head()
    }

    fn place(&self, tensor: u32) -> Place {
        let words = View::of(&*self.tail).part(0, self.sizes.words().saturating_mul(4));
        match words.and_then(View::cast::<u32>) {
            Some(words) if tensor < self.sizes.tensors => Place(words.get(tensor as usize)),
            _ => Place::NONE,
        }
    }

    /// Runs the model once.
    ///
    /// # Errors
    /// If a kernel cannot run an operator.
    pub fn invoke(&mut self, head: &mut [u8]) -> Result<(), Error> {
        invoke(self.run(head, None))
    }

    /// As [`invoke`](Self::invoke), and shows the memory to `observer` around each operator.
    ///
    /// # Errors
    /// If a kernel cannot run an operator.
    pub fn invoke_observed(
        &mut self,
        head: &mut [u8],
        observer: &dyn Observer,
    ) -> Result<(), Error> {
        invoke(self.run(head, Some(observer)))
    }

    /// Sets variables and resources to what they were before the first inference.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn reset(&mut self) -> Result<(), Error> {
        let run = self.assemble(&mut [], None)?;
        reset(&run)
    }

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
        Ok(ViewMut::of(owner).slice_at(at.start, at.bytes / size_of::<T>()))
    }

    /// The elements of output `index`, in row-major order, as the last inference left them.
    ///
    /// # Errors
    /// If there is no such output, or its elements are no `T`.
    pub fn output<'h, T: Value>(
        &'h mut self,
        head: &'h mut [u8],
        index: usize,
    ) -> Result<&'h [T], Error> {
        let at = self.locate(head, false, index, T::stands_for)?;
        let owner = match at.memory {
            Memory::Head => &*head,
            Memory::Tail => &*self.tail,
            Memory::Model => self.model.as_bytes(),
        };
        Ok(View::of(owner).slice_at(at.start, at.bytes / size_of::<T>()))
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

    /// Whether inferences can use the head.
    fn check(&self, head: &[u8]) -> Result<(), Error> {
        if head.len() < self.head_bytes {
            return Err(Error::ArenaTooSmall {
                needed: self.head_bytes,
                given: head.len(),
            });
        }
        if !aligned(head) {
            return Err(Error::ArenaAlignment);
        }
        Ok(())
    }

    pub(crate) fn run<'r>(
        &'r mut self,
        head: &'r mut [u8],
        observer: Option<&'r dyn Observer>,
    ) -> Result<Run<'r>, Error> {
        self.check(head)?;
        self.assemble(head, observer)
    }

    /// As [`run`](Self::run), for what needs no head, or only parts of it.
    pub(crate) fn assemble<'r>(
        &'r mut self,
        head: &'r mut [u8],
        observer: Option<&'r dyn Observer>,
    ) -> Result<Run<'r>, Error> {
        let tail = ViewMut::of(&mut *self.tail);
        let words = tail.part(0, self.sizes.words().saturating_mul(4));
        let words = words.and_then(ViewMut::cast).ok_or(Error::ArenaAlignment)?;
        Ok(Run {
            model: self.model,
            kernels: self.kernels,
            head: ViewMut::of(head),
            tail,
            words,
            tensors: self.sizes.tensors,
            operators: self.sizes.operators,
            observer,
            depth: Cell::new(0),
        })
    }
}

/// Runs the model. The result is looked at where it is, since stacks are small.
#[inline(always)]
fn invoke(run: Result<Run<'_>, Error>) -> Result<(), Error> {
    match &run {
        Ok(run) if run.is_empty() => Ok(()),
        Ok(run) => run.subgraph(0),
        Err(error) => Err(*error),
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

fn aligned(bytes: &[u8]) -> bool {
    bytes.is_empty() || bytes.as_ptr().addr().is_multiple_of(ALIGNMENT)
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

/// A model that is ready to run, with an arena of its own: the head from its start, the tail at its end.
#[derive(Debug)]
pub struct Interpreter<'m, 'a> {
    session: Session<'m, 'a>,
    head: &'a mut [u8],
}

impl<'m, 'a> Interpreter<'m, 'a> {
    /// Prepares `model` to be run by `kernels` in `arena`, which starts at a multiple of 16.
    ///
    /// After an error, the arena can be used again, with [`Error::ArenaTooSmall`] a larger one.
    ///
    /// # Errors
    /// If the file is damaged, the plan wrong, a kernel missing, or the arena too small.
    pub fn new(model: &'m [u8], kernels: &'m [Kernel], arena: &'a mut [u8]) -> Result<Self, Error> {
        let model = view::Model::new(model)?;
        let sizes = Sizes::of(&model, kernels)?;
        let tail = sizes.tail()?;
        let given = arena.len();
        let split = given
            .checked_sub(tail)
            .map(|head| head / ALIGNMENT * ALIGNMENT);
        let parts = split.and_then(|split| arena.split_at_mut_checked(split));
        let Some((head, tail_part)) = parts else {
            return Err(Error::ArenaTooSmall {
                needed: tail,
                given,
            });
        };
        let room = head.len();
        let session = Session::unprepared(model, sizes, kernels, tail_part);
        let mut interpreter = Self { session, head };
        match interpreter.session.prepare(interpreter.head) {
            Ok(()) => Ok(interpreter),
            // In terms of the whole arena.
            Err(Error::ArenaTooSmall { needed, given: at }) if at == room => {
                Err(Error::ArenaTooSmall {
                    needed: needed.saturating_add(tail),
                    given,
                })
            }
            Err(error) => Err(error),
        }
    }

    /// The session, to ask for sizes, shapes and types.
    pub fn session(&self) -> &Session<'m, 'a> {
        &self.session
    }

    /// As [`Session::invoke`].
    ///
    /// # Errors
    /// If a kernel cannot run an operator.
    pub fn invoke(&mut self) -> Result<(), Error> {
        self.session.invoke(self.head)
    }

    /// As [`Session::invoke_observed`].
    ///
    /// # Errors
    /// If a kernel cannot run an operator.
    pub fn invoke_observed(&mut self, observer: &dyn Observer) -> Result<(), Error> {
        self.session.invoke_observed(self.head, observer)
    }

    /// As [`Session::reset`].
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn reset(&mut self) -> Result<(), Error> {
        self.session.reset()
    }

    /// As [`Session::recording`].
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn recording(&mut self) -> Result<Recording, Error> {
        self.session.recording()
    }

    /// As [`Session::input`].
    ///
    /// # Errors
    /// If there is no such input, or its elements are no `T`.
    pub fn input<T: Value>(&mut self, index: usize) -> Result<&mut [T], Error> {
        self.session.input(self.head, index)
    }

    /// Sets the elements of input `index`.
    ///
    /// # Errors
    /// If there is no such input, its elements are no `T`, or it has more or fewer.
    pub fn set_input<T: Value>(&mut self, index: usize, values: &[T]) -> Result<(), Error> {
        let input = self.input::<T>(index)?;
        if input.len() != values.len() {
            return Err(Error::ElementCount {
                needed: input.len(),
                given: values.len(),
            });
        }
        input.copy_from_slice(values);
        Ok(())
    }

    /// As [`Session::output`].
    ///
    /// # Errors
    /// If there is no such output, or its elements are no `T`.
    pub fn output<T: Value>(&mut self, index: usize) -> Result<&[T], Error> {
        self.session.output(self.head, index)
    }
}
