//! Bounds-checked reading of FlatBuffers bytes: tables, vectors, strings.
//!
//! ```text
//! file:    u32 offset of the root table | 4 identifier bytes | ...
//! table:   i32 distance back to its vtable | fields at the distances the vtable states
//! vtable:  u16 bytes of the vtable | u16 bytes of the table | u16 distance of each field or 0
//! vector:  u32 length | elements
//! ```
//!
//! A reference is a `u32` that counts from its own position and points forward. Nothing here
//! allocates, panics or trusts alignment: each read is checked against the bytes at hand, and a
//! vector is checked once, when it is made, so that its elements cannot fail afterwards. Work is
//! bounded by the bytes: a vector is never longer than the file that holds it.
//!
//! Source of the rules: FlatBuffers' "Internals" page, <https://flatbuffers.dev/internals/>.

mod error;

use core::fmt;
use core::marker::PhantomData;

pub use error::{Error, Field, TableKind};

/// The identifier at byte 4 of each `.tflite` file.
pub(crate) const IDENTIFIER: [u8; 4] = *b"TFL3";

/// The `N` bytes at `position`, if the file has them.
pub(crate) fn bytes_at<const N: usize>(bytes: &[u8], position: usize) -> Option<[u8; N]> {
    bytes.get(position..)?.first_chunk().copied()
}

/// Where the reference stored at `position` points to; `None` where it is damaged, and [`lost`] says how.
///
/// What is read on the way stays in registers, here and below: errors are large, and looked into only when there is one.
#[inline(always)]
fn follow(bytes: &[u8], position: usize) -> Option<usize> {
    let distance = u32::from_le_bytes(bytes_at(bytes, position)?);
    // A `u32` fits `usize` on each supported target; where it did not, the read would be out of
    // bounds too.
    let to = position.checked_add(distance as usize)?;
    (distance != 0 && to < bytes.len()).then_some(to)
}

/// Why the reference stored at `position` points nowhere.
#[cold]
#[inline(never)]
fn lost(bytes: &[u8], position: usize, field: Field) -> Error {
    match bytes_at(bytes, position).map(u32::from_le_bytes) {
        None => Error::OutOfBounds { field, position },
        Some(0) => Error::NullReference { field, position },
        Some(distance) => Error::OutOfBounds {
            field,
            position: position.saturating_add(distance as usize),
        },
    }
}

/// Where the reference stored at `position` points to.
#[inline(always)]
fn target(bytes: &[u8], position: usize, field: Field) -> Result<usize, Error> {
    match follow(bytes, position) {
        Some(to) => Ok(to),
        None => Err(lost(bytes, position, field)),
    }
}

/// The entries of the vtable of the table at `position`.
#[inline(always)]
fn vtable(bytes: &[u8], position: usize) -> Option<&[u8]> {
    let back = i32::from_le_bytes(bytes_at(bytes, position)?) as isize;
    let at = bytes.get(position.checked_add_signed(back.checked_neg()?)?..)?;
    let size = usize::from(u16::from_le_bytes(bytes_at(at, 0)?));
    if size % 2 == 0 { at.get(4..size) } else { None }
}

/// The elements' bytes of the vector that the reference stored at `position` points to.
#[inline(always)]
fn elements_at(bytes: &[u8], position: usize, element_bytes: usize) -> Option<&[u8]> {
    let (elements, data) = bytes.get(follow(bytes, position)?..)?.split_first_chunk()?;
    let elements = u32::from_le_bytes(*elements) as usize;
    data.get(..elements.checked_mul(element_bytes)?)
}

/// A table of any kind, read by slot number.
///
/// An operator's options come as this type: their fields are read by the slot that the schema gives
/// them, with the schema's default. In a table with a union, the union takes two slots: its type,
/// then its value.
#[derive(Clone, Copy)]
pub struct Table<'a> {
    bytes: &'a [u8],
    position: usize,
    /// The vtable's entries, without its two header words.
    entries: &'a [u8],
    kind: TableKind,
}

impl fmt::Debug for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at byte {}", self.kind, self.position)
    }
}

macro_rules! scalar_fields {
    ($($name:ident: $type:ty;)*) => {$(
        #[doc = concat!("Reads the `", stringify!($type), "` field `slot`, or `default`.")]
        ///
        /// # Errors
        /// [`Error::OutOfBounds`] if the field lies outside the file.
        pub fn $name(&self, slot: u16, default: $type) -> Result<$type, Error> {
            let bytes = self.scalar(slot, size_of::<$type>())?;
            Ok(<$type>::first(bytes).unwrap_or(default))
        }
    )*};
}

impl<'a> Table<'a> {
    /// The root table of a `.tflite` file.
    pub(crate) fn root(bytes: &'a [u8]) -> Result<Self, Error> {
        if bytes_at(bytes, 4) != Some(IDENTIFIER) {
            return Err(Error::NotTflite {
                file_bytes: bytes.len(),
            });
        }
        let field = Field {
            table: TableKind::Model,
            slot: None,
        };
        Self::at(bytes, target(bytes, 0, field)?, TableKind::Model)
    }

    /// The table at `position`, once its vtable has been found within the file.
    pub(crate) fn at(bytes: &'a [u8], position: usize, kind: TableKind) -> Result<Self, Error> {
        match vtable(bytes, position) {
            Some(entries) => Ok(Self {
                bytes,
                position,
                entries,
                kind,
            }),
            None => Err(Self::damage(bytes, position, kind)),
        }
    }

    /// Why there is no table at `position`.
    #[cold]
    #[inline(never)]
    fn damage(bytes: &[u8], position: usize, kind: TableKind) -> Error {
        let field = Field {
            table: kind,
            slot: None,
        };
        match bytes_at::<4>(bytes, position) {
            None => Error::OutOfBounds { field, position },
            Some(_) => Error::Vtable { field, position },
        }
    }

    /// Where the table is, in bytes from the start of the file.
    pub fn position(&self) -> usize {
        self.position
    }

    /// How many slots the table's vtable has; fields from there on are absent.
    pub fn slots(&self) -> u16 {
        // A vtable's size is a `u16`.
        (self.entries.len() / 2) as u16
    }

    /// Whether the field `slot` is stored.
    pub fn has(&self, slot: u16) -> bool {
        self.field_position(slot).is_some()
    }

    /// Where the field `slot` is, if it is stored; not yet checked against the file's end.
    pub(crate) fn field_position(&self, slot: u16) -> Option<usize> {
        let distance = u16::from_le_bytes(bytes_at(self.entries, usize::from(slot) * 2)?);
        (distance != 0).then(|| self.position.saturating_add(usize::from(distance)))
    }

    pub(crate) fn field(&self, slot: u16) -> Field {
        Field {
            table: self.kind,
            slot: Some(slot),
        }
    }

    /// The bytes of the field `slot`, as many as asked for; none if it is not stored. For scalars of all types, so that
    /// they share the code.
    #[inline(never)]
    pub(crate) fn scalar(&self, slot: u16, len: usize) -> Result<&'a [u8], Error> {
        let Some(position) = self.field_position(slot) else {
            return Ok(&[]);
        };
        match self
            .bytes
            .get(position..)
            .and_then(|bytes| bytes.get(..len))
        {
            Some(value) => Ok(value),
            None => Err(Error::OutOfBounds {
                field: self.field(slot),
                position,
            }),
        }
    }

    scalar_fields! {
        u8: u8;
        i8: i8;
        u16: u16;
        i16: i16;
        u32: u32;
        i32: i32;
        u64: u64;
        i64: i64;
        f32: f32;
        f64: f64;
    }

    /// Reads the boolean field `slot`, or `default` where it is absent; any byte but 0 is true.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] if the field lies outside the file.
    pub fn bool(&self, slot: u16, default: bool) -> Result<bool, Error> {
        Ok(self.u8(slot, u8::from(default))? != 0)
    }

    /// Where the reference in field `slot` points to.
    pub(crate) fn reference(&self, slot: u16) -> Result<Option<usize>, Error> {
        match self.field_position(slot) {
            Some(position) => target(self.bytes, position, self.field(slot)).map(Some),
            None => Ok(None),
        }
    }

    /// Reads the table in field `slot`.
    ///
    /// # Errors
    /// If the reference, or the table's vtable, is not within the file.
    pub fn table(&self, slot: u16) -> Result<Option<Table<'a>>, Error> {
        self.table_of(slot, TableKind::Other)
    }

    pub(crate) fn table_of(&self, slot: u16, kind: TableKind) -> Result<Option<Table<'a>>, Error> {
        match self.reference(slot)? {
            Some(position) => Table::at(self.bytes, position, kind).map(Some),
            None => Ok(None),
        }
    }

    /// The elements' bytes of the vector in field `slot`.
    #[inline(never)]
    fn elements(&self, slot: u16, element_bytes: usize) -> Result<Option<&'a [u8]>, Error> {
        let Some(position) = self.field_position(slot) else {
            return Ok(None);
        };
        match elements_at(self.bytes, position, element_bytes) {
            Some(data) => Ok(Some(data)),
            None => Err(self.no_vector(slot, position)),
        }
    }

    /// Why the reference stored at `position`, the field `slot`, leads to no vector.
    #[cold]
    #[inline(never)]
    fn no_vector(&self, slot: u16, position: usize) -> Error {
        let field = self.field(slot);
        match target(self.bytes, position, field) {
            Err(error) => error,
            Ok(position) => match bytes_at::<4>(self.bytes, position) {
                None => Error::OutOfBounds { field, position },
                Some(_) => Error::VectorLength { field, position },
            },
        }
    }

    /// Reads the vector of scalars in field `slot`; `None` where it is absent.
    ///
    /// # Errors
    /// If the reference, or the vector with all of its elements, is not within the file.
    pub fn vector<T: Scalar>(&self, slot: u16) -> Result<Option<Vector<'a, T>>, Error> {
        let elements = self.elements(slot, T::BYTES)?;
        Ok(elements.map(Vector::new))
    }

    /// Reads the vector of bytes in field `slot`; `None` where it is absent.
    ///
    /// # Errors
    /// If the reference, or the vector with all of its elements, is not within the file.
    pub fn byte_vector(&self, slot: u16) -> Result<Option<&'a [u8]>, Error> {
        self.elements(slot, 1)
    }

    /// Reads the string in field `slot`; `None` where it is absent.
    ///
    /// # Errors
    /// If the reference, or the string with all of its bytes, is not within the file.
    pub fn text(&self, slot: u16) -> Result<Option<Text<'a>>, Error> {
        Ok(self.byte_vector(slot)?.map(Text))
    }

    /// The vector of tables in field `slot`; empty where it is absent.
    pub(crate) fn tables<T: FromTable<'a>>(&self, slot: u16) -> Result<Tables<'a, T>, Error> {
        let list = self.list(slot)?;
        Ok(Tables {
            list,
            of: PhantomData,
        })
    }

    #[inline(never)]
    fn list(&self, slot: u16) -> Result<List<'a>, Error> {
        let Some(data) = self.elements(slot, 4)? else {
            return Ok(List {
                bytes: self.bytes,
                start: 0,
                len: 0,
            });
        };
        Ok(List {
            bytes: self.bytes,
            // A part of the bytes.
            start: (data.as_ptr().addr()).wrapping_sub(self.bytes.as_ptr().addr()),
            len: data.len() / 4,
        })
    }
}

/// A text of the file: UTF-8 by the format's rules, which nothing enforces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a>(&'a [u8]);

impl<'a> Text<'a> {
    /// The bytes as they are in the file, without the terminating zero.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The text, if it is UTF-8.
    pub fn to_str(&self) -> Option<&'a str> {
        core::str::from_utf8(self.0).ok()
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

/// Bytes that are not UTF-8 are shown as U+FFFD.
impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            f.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                f.write_str("\u{fffd}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A scalar that a [`Vector`] can hold.
pub trait Scalar: Copy + fmt::Debug + sealed::Sealed {
    /// Bytes of an element in the file.
    const BYTES: usize;

    /// The value of the first [`Self::BYTES`] of `bytes`.
    #[doc(hidden)]
    fn first(bytes: &[u8]) -> Option<Self>;
}

macro_rules! scalars {
    ($($type:ty),*) => {$(
        impl sealed::Sealed for $type {}
        impl Scalar for $type {
            const BYTES: usize = size_of::<$type>();
            fn first(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|chunk| <$type>::from_le_bytes(*chunk))
            }
        }
    )*};
}

scalars!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

impl sealed::Sealed for bool {}
impl Scalar for bool {
    const BYTES: usize = 1;
    fn first(bytes: &[u8]) -> Option<Self> {
        bytes.first().map(|byte| *byte != 0)
    }
}

/// A vector of scalars, decoded element by element from the file.
#[derive(Clone, Copy)]
pub struct Vector<'a, T> {
    /// The elements; `T::BYTES` each.
    data: &'a [u8],
    of: PhantomData<T>,
}

impl<'a, T: Scalar> Vector<'a, T> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self {
            data,
            of: PhantomData,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.data.len() / T::BYTES
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The element `index`, or `None` from the vector's length on.
    pub fn get(&self, index: usize) -> Option<T> {
        T::first(self.data.get(index.checked_mul(T::BYTES)?..)?)
    }

    /// The elements in order.
    pub fn iter(&self) -> Scalars<'a, T> {
        Scalars(*self)
    }

    /// The elements' bytes, little-endian, at whatever alignment they have in the file.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.data
    }
}

impl<T> Default for Vector<'_, T> {
    fn default() -> Self {
        Self {
            data: &[],
            of: PhantomData,
        }
    }
}

impl<T: Scalar> fmt::Debug for Vector<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Scalar> IntoIterator for Vector<'a, T> {
    type Item = T;
    type IntoIter = Scalars<'a, T>;

    fn into_iter(self) -> Scalars<'a, T> {
        self.iter()
    }
}

/// The elements of a [`Vector`] in order.
#[derive(Clone, Debug)]
pub struct Scalars<'a, T: Scalar>(Vector<'a, T>);

impl<T: Scalar> Iterator for Scalars<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let value = T::first(self.0.data)?;
        self.0.data = self.0.data.get(T::BYTES..)?;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len(), Some(self.0.len()))
    }
}

impl<T: Scalar> ExactSizeIterator for Scalars<'_, T> {}

/// A typed view of a table, which [`Tables`] gives out.
pub trait FromTable<'a>: sealed::Sealed + Sized {
    /// What the table is, for errors.
    #[doc(hidden)]
    const KIND: TableKind;

    /// The view of `table`.
    #[doc(hidden)]
    fn from_table(table: Table<'a>) -> Self;
}

/// Makes a struct around a [`Table`] one of the kinds of table that a [`Tables`] can hold.
macro_rules! table_view {
    ($name:ident) => {
        impl crate::wire::Sealed for $name<'_> {}
        impl<'a> crate::wire::FromTable<'a> for $name<'a> {
            const KIND: TableKind = TableKind::$name;
            fn from_table(table: Table<'a>) -> Self {
                Self(table)
            }
        }

        impl<'a> $name<'a> {
            /// The table itself, to read fields by slot number.
            pub fn table(&self) -> Table<'a> {
                self.0
            }
        }
    };
}
pub(crate) use sealed::Sealed;
pub(crate) use table_view;

/// A vector of tables, read one by one from the file.
#[derive(Clone, Copy)]
pub struct Tables<'a, T> {
    list: List<'a>,
    of: PhantomData<T>,
}

/// A vector of tables of any kind, so that all kinds share the code.
#[derive(Clone, Copy, Debug)]
struct List<'a> {
    bytes: &'a [u8],
    /// Where the first reference is; all `len` of them have been found to be within `bytes`.
    start: usize,
    len: usize,
}

impl<'a> List<'a> {
    #[inline(never)]
    fn table(&self, index: usize, kind: TableKind) -> Result<Table<'a>, Error> {
        if index >= self.len {
            return Err(Error::Index {
                table: kind,
                index,
                len: self.len,
            });
        }
        let position = self.start.saturating_add(index.saturating_mul(4));
        let field = Field {
            table: kind,
            slot: None,
        };
        Table::at(self.bytes, target(self.bytes, position, field)?, kind)
    }
}

impl<'a, T: FromTable<'a>> Tables<'a, T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.list.len
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.list.len == 0
    }

    /// Where the vector's first element is in the file; 0 if the vector is absent.
    #[cfg(feature = "host")]
    pub(crate) fn start(&self) -> usize {
        self.list.start
    }

    /// The element `index`.
    ///
    /// # Errors
    /// [`Error::Index`] from the vector's length on; others if the reference or the table
    /// is not within the file.
    pub fn get(&self, index: usize) -> Result<T, Error> {
        self.list.table(index, T::KIND).map(T::from_table)
    }

    /// The elements in order, each read when it is asked for.
    pub fn iter(&self) -> TablesIter<'a, T> {
        TablesIter {
            tables: Tables {
                list: self.list,
                of: PhantomData,
            },
            next: 0,
        }
    }
}

impl<'a, T: FromTable<'a>> IntoIterator for Tables<'a, T> {
    type Item = Result<T, Error>;
    type IntoIter = TablesIter<'a, T>;

    fn into_iter(self) -> TablesIter<'a, T> {
        TablesIter {
            tables: self,
            next: 0,
        }
    }
}

impl<T> fmt::Debug for Tables<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tables at byte {}", self.list.len, self.list.start)
    }
}

/// The elements of a [`Tables`] in order.
#[derive(Clone, Debug)]
pub struct TablesIter<'a, T> {
    tables: Tables<'a, T>,
    next: usize,
}

impl<'a, T: FromTable<'a>> Iterator for TablesIter<'a, T> {
    type Item = Result<T, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let index = self.next;
        if index >= self.tables.list.len {
            return None;
        }
        self.next = index.saturating_add(1);
        Some(self.tables.get(index))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.tables.list.len.saturating_sub(self.next);
        (left, Some(left))
    }
}

impl<'a, T: FromTable<'a>> ExactSizeIterator for TablesIter<'a, T> {}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::ToString;

    use super::*;

    #[test]
    fn text_that_is_not_utf_8_is_shown_as_far_as_it_is() {
        let text = Text(b"a\xffb\xc3");
        assert_eq!(text.to_string(), "a\u{fffd}b\u{fffd}");
        assert_eq!(text.to_str(), None);
        assert_eq!(text.as_bytes(), b"a\xffb\xc3");
        assert_eq!(Text("größe".as_bytes()).to_str(), Some("größe"));
    }

    #[test]
    fn vtables_before_the_file_and_of_odd_size_are_errors() {
        let table = |bytes: &[u8], position: usize| {
            Table::at(bytes, position, TableKind::Other).map(|table| table.position())
        };
        let field = Field {
            table: TableKind::Other,
            slot: None,
        };
        let vtable = |position: usize| Err(Error::Vtable { field, position });
        assert_eq!(table(&[4, 0, 4, 0, 4, 0, 0, 0], 4), Ok(4));
        assert_eq!(table(&[5, 0, 4, 0, 4, 0, 0, 0], 4), vtable(4), "odd");
        assert_eq!(
            table(&[2, 0, 4, 0, 4, 0, 0, 0], 4),
            vtable(4),
            "shorter than its header"
        );
        assert_eq!(
            table(&[10, 0, 4, 0, 4, 0, 0, 0], 4),
            vtable(4),
            "longer than the file"
        );
        assert_eq!(
            table(&[4, 0, 4, 0, 5, 0, 0, 0], 4),
            vtable(4),
            "before the file"
        );
        assert_eq!(
            table(&[4, 0, 4, 0, 0xfc, 0xff, 0xff, 0xff], 4),
            vtable(4),
            "behind the file"
        );
        assert_eq!(
            table(&[0, 0, 0, 0x80, 0, 0], 0),
            vtable(0),
            "the farthest there is"
        );
        assert_eq!(
            table(&[4, 0, 4], 0),
            Err(Error::OutOfBounds { field, position: 0 })
        );
    }

    #[test]
    fn a_reference_to_itself_is_an_error() {
        let field = Field {
            table: TableKind::Model,
            slot: None,
        };
        let error = Table::root(b"\0\0\0\0TFL3").unwrap_err();
        assert_eq!(error, Error::NullReference { field, position: 0 });
        let error = Table::root(b"\x08\0\0\0TFL3").unwrap_err();
        assert_eq!(error, Error::OutOfBounds { field, position: 8 });
    }
}
