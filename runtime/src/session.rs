//! Sessions and interpreters: what an application holds.

mod accessors;

use core::cell::Cell;
use core::fmt;

use arenaplan_schema::view;

use crate::error::Error;
use crate::kernel::Kernel;
use crate::memory::{View, ViewMut};
use crate::prepare::{ALIGNMENT, Sizes, prepare, reset};
use crate::recording::Recording;
use crate::run::{Observer, Place, Run};

pub use accessors::{Info, Value};

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
        let Self {
            model,
            kernels,
            tail,
            sizes,
            ..
        } = self;
        let tail = ViewMut::of(tail);
        let words = tail.part(0, sizes.words().saturating_mul(4));
        let words = words.and_then(ViewMut::cast).ok_or(Error::ArenaAlignment)?;
        Ok(Run {
            model,
            kernels,
            head: ViewMut::of(head),
            tail,
            words,
            tensors: sizes.tensors,
            operators: sizes.operators,
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

fn aligned(bytes: &[u8]) -> bool {
    bytes.is_empty() || bytes.as_ptr().addr().is_multiple_of(ALIGNMENT)
}

/// A model that is ready to run, with an arena of its own: the head from its start, the tail at its end.
pub struct Interpreter<'m, 'a> {
    session: Session<'m, 'a>,
    head: &'a mut [u8],
}

impl fmt::Debug for Interpreter<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interpreter")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
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

    /// As [`Session::input_shaped`].
    ///
    /// # Errors
    /// If there is no such input, it has another shape, or its elements are no `T`.
    pub fn input_shaped<T: Value>(
        &mut self,
        index: usize,
        shape: &[usize],
    ) -> Result<&mut [T], Error> {
        self.session.input_shaped(self.head, index, shape)
    }

    /// As [`Session::input_array`].
    ///
    /// # Errors
    /// If there is no such input, its elements are no `T`, or it has more or fewer.
    #[inline]
    pub fn input_array<T: Value, const LEN: usize>(
        &mut self,
        index: usize,
    ) -> Result<&mut [T; LEN], Error> {
        self.session.input_array(self.head, index)
    }

    /// As [`Session::set_input`].
    ///
    /// # Errors
    /// If there is no such input, its elements are no `T`, or it has more or fewer.
    pub fn set_input<T: Value>(&mut self, index: usize, values: &[T]) -> Result<(), Error> {
        self.session.set_input(self.head, index, values)
    }

    /// As [`Session::output`].
    ///
    /// # Errors
    /// As those of [`Session::output`].
    pub fn output<T: Value>(&self, index: usize) -> Result<&[T], Error> {
        self.session.output(self.head, index)
    }

    /// As [`Session::output_array`].
    ///
    /// # Errors
    /// As those of [`Session::output_array`].
    #[inline]
    pub fn output_array<T: Value, const LEN: usize>(
        &self,
        index: usize,
    ) -> Result<&[T; LEN], Error> {
        self.session.output_array(self.head, index)
    }

    /// As [`Session::output_shaped`].
    ///
    /// # Errors
    /// As those of [`Session::output_shaped`].
    pub fn output_shaped<T: Value>(&self, index: usize, shape: &[usize]) -> Result<&[T], Error> {
        self.session.output_shaped(self.head, index, shape)
    }
}
