//! Views of memory that may lie over each other: the one module with `unsafe` code.
//!
//! A plan may put an operator's output over its input, so that neither `&[T]` nor `&mut [T]` can stand for them. A
//! [`View`] is read, a [`ViewMut`] is read and written, and any number of both may cover the same bytes, as with
//! slices of [`Cell`]; for the compiler each write may change what any view reads next, so that kernels run in the
//! order of their source.
//!
//! Nothing here panics: reading outside gives zero, writing outside does nothing, and parts that do not exist are `None`.

#![allow(unsafe_code)]

pub(crate) mod columns;
pub(crate) mod dot;
mod maps;

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;

mod sealed {
    pub trait Sealed {}
}

/// A type that any bytes are a value of.
///
/// All of them are plain numbers of 1, 2, 4 or 8 bytes, which are aligned to their size or less.
pub trait Element: Copy + Default + fmt::Debug + sealed::Sealed + 'static {}

macro_rules! elements {
    ($($type:ty),*) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {}
    )*};
}

elements!(i8, u8, i16, u16, i32, u32, i64, u64, f32);

/// The alignment of elements. Those of 8 bytes are aligned to 4: the converter of TensorFlow writes no more for constants.
const fn alignment<T>() -> usize {
    match align_of::<T>() {
        8 => 4,
        align => align,
    }
}

/// The element at `at`.
///
/// # Safety
/// As for [`NonNull::read`], with [`alignment`].
#[inline(always)]
unsafe fn load<T: Element>(at: NonNull<T>) -> T {
    // SAFETY: the caller's.
    unsafe {
        match alignment::<T>() == align_of::<T>() {
            true => at.read(),
            false => at.read_unaligned(),
        }
    }
}

/// Sets the element at `at`.
///
/// # Safety
/// As for [`NonNull::write`], with [`alignment`].
#[inline(always)]
unsafe fn store<T: Element>(at: NonNull<T>, value: T) {
    // SAFETY: the caller's.
    unsafe {
        match alignment::<T>() == align_of::<T>() {
            true => at.write(value),
            false => at.write_unaligned(value),
        }
    }
}

/// Elements to read, which others may change meanwhile.
pub struct View<'a, T> {
    start: NonNull<T>,
    len: usize,
    of: PhantomData<&'a Cell<T>>,
}

/// Elements to read and write, which others may read and write meanwhile.
pub struct ViewMut<'a, T> {
    start: NonNull<T>,
    len: usize,
    of: PhantomData<&'a Cell<T>>,
}

impl<T> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for View<'_, T> {}

impl<T> Clone for ViewMut<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ViewMut<'_, T> {}

impl<T> Default for View<'_, T> {
    fn default() -> Self {
        Self {
            start: NonNull::dangling(),
            len: 0,
            of: PhantomData,
        }
    }
}

impl<T> Default for ViewMut<'_, T> {
    fn default() -> Self {
        Self {
            start: NonNull::dangling(),
            len: 0,
            of: PhantomData,
        }
    }
}

impl<T> fmt::Debug for View<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({})", self.len)
    }
}

impl<T> fmt::Debug for ViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ViewMut({})", self.len)
    }
}

impl<'a, T: Element> View<'a, T> {
    /// The elements of a slice.
    pub fn of(slice: &'a [T]) -> Self {
        Self {
            start: NonNull::from(slice).cast(),
            len: slice.len(),
            of: PhantomData,
        }
    }

    /// Number of elements.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The element `index`, or zero from the view's length on.
    #[inline(always)]
    pub fn get(self, index: usize) -> T {
        if index < self.len {
            // SAFETY: within the view; all bytes are a value.
            unsafe { load(self.start.add(index)) }
        } else {
            T::default()
        }
    }

    /// `len` elements from `start` on, if the view has them.
    #[inline(always)]
    pub fn part(self, start: usize, len: usize) -> Option<Self> {
        if start <= self.len && len <= self.len - start {
            Some(Self {
                // SAFETY: within the view, or one past its end.
                start: unsafe { self.start.add(start) },
                len,
                of: PhantomData,
            })
        } else {
            None
        }
    }

    /// The elements in order.
    #[inline(always)]
    pub fn iter(self) -> Iter<'a, T> {
        Iter(self)
    }

    /// The elements as others: bytes as words, words as bytes.
    ///
    /// `None` if the bytes are not aligned for `U`, or are no whole number of them.
    pub fn cast<U: Element>(self) -> Option<View<'a, U>> {
        let start = self.start.cast::<U>();
        let bytes = self.len * size_of::<T>();
        let aligned = start.addr().get().is_multiple_of(alignment::<U>());
        if bytes != 0 && (!aligned || !bytes.is_multiple_of(size_of::<U>())) {
            return None;
        }
        Some(View {
            start: if bytes == 0 {
                NonNull::dangling()
            } else {
                start
            },
            len: bytes / size_of::<U>(),
            of: PhantomData,
        })
    }

    /// Where the first element is, for comparing.
    pub fn address(self) -> usize {
        self.start.addr().get()
    }
}

impl<'a, T: Element> IntoIterator for View<'a, T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    #[inline(always)]
    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// The elements of a [`View`] in order.
#[derive(Clone, Debug)]
pub struct Iter<'a, T>(View<'a, T>);

impl<T: Element> Iterator for Iter<'_, T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        if self.0.len == 0 {
            return None;
        }
        // SAFETY: there is an element, so that its end is within the view or one past its end.
        unsafe {
            let value = load(self.0.start);
            self.0.start = self.0.start.add(1);
            self.0.len -= 1;
            Some(value)
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len, Some(self.0.len))
    }
}

impl<T: Element> ExactSizeIterator for Iter<'_, T> {}

impl<'a, T: Element> ViewMut<'a, T> {
    /// The elements of a slice, which nothing else uses while views of it are there.
    pub fn of(slice: &'a mut [T]) -> Self {
        Self {
            len: slice.len(),
            start: NonNull::from(slice).cast(),
            of: PhantomData,
        }
    }

    /// The same elements, to read.
    #[inline(always)]
    pub fn view(self) -> View<'a, T> {
        View {
            start: self.start,
            len: self.len,
            of: PhantomData,
        }
    }

    /// Number of elements.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The element `index`, or zero from the view's length on.
    #[inline(always)]
    pub fn get(self, index: usize) -> T {
        self.view().get(index)
    }

    /// Writes the element `index`; nothing happens from the view's length on.
    #[inline(always)]
    pub fn set(self, index: usize, value: T) {
        if index < self.len {
            // SAFETY: within the view, whose bytes may be written for `'a`.
            unsafe { store(self.start.add(index), value) }
        }
    }

    /// Writes all elements.
    pub fn fill(self, value: T) {
        for index in 0..self.len {
            // SAFETY: within the view, whose bytes may be written for `'a`.
            unsafe { store(self.start.add(index), value) }
        }
    }

    /// Copies as many elements as both have, as if by way of another place: the two may lie over each other.
    pub fn copy_from(self, from: View<'_, T>) {
        let len = self.len.min(from.len);
        // As bytes, since elements of 8 need not be aligned to them.
        let (from, to) = (from.start.cast::<u8>(), self.start.cast::<u8>());
        // A view of another tensor is there already.
        if from == to {
            return;
        }
        // SAFETY: both views have that many elements, and `copy_to` allows them to overlap.
        unsafe { from.copy_to(to, len * size_of::<T>()) }
    }

    /// `len` elements from `start` on, if the view has them.
    #[inline(always)]
    pub fn part(self, start: usize, len: usize) -> Option<Self> {
        self.view().part(start, len).map(Self::writable)
    }

    /// As [`View::cast`].
    pub fn cast<U: Element>(self) -> Option<ViewMut<'a, U>> {
        self.view().cast().map(ViewMut::writable)
    }

    /// Where the first element is, for comparing.
    pub fn address(self) -> usize {
        self.start.addr().get()
    }

    /// Of a view that was made from one that can be written.
    fn writable(view: View<'a, T>) -> Self {
        Self {
            start: view.start,
            len: view.len,
            of: PhantomData,
        }
    }
}

impl<'a> View<'a, u8> {
    /// `len` elements from byte `start` on, as a slice; `None` if they are not there, or not aligned.
    ///
    /// For a view that was just made of a slice, which nothing writes for `'a`.
    pub(crate) fn slice_at<T: Element>(self, start: usize, len: usize) -> Option<&'a [T]> {
        let bytes = len.checked_mul(size_of::<T>())?;
        let found = self.part(start, bytes)?.cast::<T>()?;
        if !found.start.is_aligned() {
            return None;
        }
        // SAFETY: within what the view was made of, which is borrowed for `'a`; aligned; any bytes are values.
        Some(unsafe { core::slice::from_raw_parts(found.start.as_ptr(), found.len) })
    }
}

impl<'a> ViewMut<'a, u8> {
    /// `len` elements from byte `start` on, as a slice; `None` if they are not there, or not aligned.
    ///
    /// For a view that was just made of a slice and is not used again.
    pub(crate) fn slice_at<T: Element>(self, start: usize, len: usize) -> Option<&'a mut [T]> {
        let bytes = len.checked_mul(size_of::<T>())?;
        let found = self.part(start, bytes)?.cast::<T>()?;
        if !found.start.is_aligned() {
            return None;
        }
        // SAFETY: within what the view was made of, which is borrowed for `'a` and for nobody else; aligned; any bytes
        // are values.
        Some(unsafe { core::slice::from_raw_parts_mut(found.start.as_ptr(), found.len) })
    }
}

/// Memory for an arena, aligned to 16 bytes.
///
/// ```
/// use arenaplan_runtime::Arena;
/// static mut ARENA: Arena<4096> = Arena::new();
/// let mut arena = Arena::<1024>::new();
/// assert_eq!(arena.as_mut_slice().len(), 1024);
/// ```
#[repr(C, align(16))]
#[derive(Clone, Debug)]
pub struct Arena<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> Arena<BYTES> {
    /// Memory full of zeros, which takes no room in flash.
    pub const fn new() -> Self {
        Self([0; BYTES])
    }

    /// All of it.
    pub const fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl<const BYTES: usize> Default for Arena<BYTES> {
    fn default() -> Self {
        Self::new()
    }
}

/// Bytes with the alignment that a model needs, for `include_bytes!`.
///
/// ```
/// use arenaplan_runtime::Aligned;
/// static MODEL: &Aligned<[u8]> = &Aligned(*b"the bytes of a file");
/// assert_eq!(MODEL.0.as_ptr().addr() % 16, 0);
/// ```
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub struct Aligned<T: ?Sized>(pub T);
