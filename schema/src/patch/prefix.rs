//! Writes the FlatBuffers tables and vectors that go in front of the original file.
//!
//! References point forward, so a thing is written before what it refers to. Each thing therefore
//! has a label, made before it is written; references to labels and into the original file are
//! filled in when the prefix is complete and its length known.

use std::collections::BTreeMap;

use super::PatchError;
use crate::wire::bytes_at;

/// The prefix's length is a multiple of this, so that what the original file aligns stays aligned.
///
/// The format asks for 16 at most; 64 keeps what a cache line, a DMA engine or a vector unit may
/// have been given by a more careful writer.
pub(super) const ALIGNMENT: usize = 64;

/// What a field of a new table holds.
#[derive(Clone, Copy)]
pub(super) enum Value {
    /// Nothing: the field stays absent.
    Absent,
    /// A scalar of 4 bytes.
    Scalar([u8; 4]),
    /// A reference to a position of the original file.
    Original(usize),
    /// A reference to a new thing.
    To(Label),
}

/// A thing of the prefix, written or yet to be.
#[derive(Clone, Copy)]
pub(super) struct Label(usize);

pub(super) struct Prefix {
    bytes: Vec<u8>,
    /// Where the things with labels are; 0 until they are written.
    places: Vec<usize>,
    /// Where the references to labels are.
    to_label: Vec<(usize, Label)>,
    /// Where the references into the original file are, each holding the position there until the
    /// end. 4 bytes an element, as in the vector that it comes from.
    to_original: Vec<u32>,
    /// The vtables so far, which tables with the same fields share.
    vtables: BTreeMap<Vec<u16>, usize>,
}

impl Prefix {
    /// Begins with a reference to the root table, whose label it gives, and the file identifier.
    pub(super) fn new() -> (Self, Label) {
        let mut prefix = Self {
            bytes: Vec::new(),
            places: Vec::new(),
            to_label: Vec::new(),
            to_original: Vec::new(),
            vtables: BTreeMap::new(),
        };
        let root = prefix.label();
        prefix.to_label.push((0, root));
        prefix.bytes.extend([0; 4]);
        prefix.bytes.extend(crate::wire::IDENTIFIER);
        (prefix, root)
    }

    /// A label for a thing that will be written.
    pub(super) fn label(&mut self) -> Label {
        self.places.push(0);
        Label(self.places.len() - 1)
    }

    fn align(&mut self, alignment: usize) {
        self.bytes
            .resize(self.bytes.len().next_multiple_of(alignment), 0);
    }

    /// Lets `label` stand for what is written next.
    fn place(&mut self, label: Label) {
        if let Some(place) = self.places.get_mut(label.0) {
            *place = self.bytes.len();
        }
    }

    fn u32(&mut self, value: usize) -> Result<(), PatchError> {
        let value = u32::try_from(value).map_err(|_| PatchError::TooLarge)?;
        self.bytes.extend(value.to_le_bytes());
        Ok(())
    }

    fn value(&mut self, value: Value) -> Result<(), PatchError> {
        match value {
            Value::Absent => {}
            Value::Scalar(scalar) => self.bytes.extend(scalar),
            Value::Original(position) => {
                let at = u32::try_from(self.bytes.len()).map_err(|_| PatchError::TooLarge)?;
                self.to_original.push(at);
                self.u32(position)?;
            }
            Value::To(label) => {
                self.to_label.push((self.bytes.len(), label));
                self.bytes.extend([0; 4]);
            }
        }
        Ok(())
    }

    /// Writes a table with the fields given by slot, all of 4 bytes.
    pub(super) fn table(&mut self, label: Label, fields: &[Value]) -> Result<(), PatchError> {
        let mut table_bytes: u16 = 4;
        let mut vtable = vec![0, 0];
        let mut vtable_entries = vtable.len();
        for field in fields {
            if matches!(field, Value::Absent) {
                vtable.push(0);
            } else {
                vtable.push(table_bytes);
                table_bytes += 4;
                vtable_entries = vtable.len();
            }
        }
        vtable.truncate(vtable_entries);
        vtable[0] = 2 * vtable_entries as u16;
        vtable[1] = table_bytes;
        let vtable_at = match self.vtables.get(&vtable) {
            Some(at) => *at,
            None => {
                self.align(2);
                let at = self.bytes.len();
                self.bytes
                    .extend(vtable.iter().flat_map(|entry| entry.to_le_bytes()));
                self.vtables.insert(vtable, at);
                at
            }
        };
        self.align(4);
        self.place(label);
        // How far back the vtable is: a signed number that is positive here.
        let back = i32::try_from(self.bytes.len() - vtable_at).map_err(|_| PatchError::TooLarge)?;
        self.bytes.extend(back.to_le_bytes());
        for field in fields {
            self.value(*field)?;
        }
        Ok(())
    }

    /// Writes a vector of references.
    pub(super) fn vector(
        &mut self,
        label: Label,
        elements: impl Iterator<Item = Result<Value, PatchError>>,
    ) -> Result<(), PatchError> {
        self.align(4);
        self.place(label);
        let length_at = self.bytes.len();
        self.u32(0)?;
        let mut length = 0_u32;
        for element in elements {
            self.value(element?)?;
            length = length.checked_add(1).ok_or(PatchError::TooLarge)?;
        }
        set(&mut self.bytes, length_at, length);
        Ok(())
    }

    /// Writes a string.
    pub(super) fn string(&mut self, label: Label, text: &str) -> Result<(), PatchError> {
        self.align(4);
        self.place(label);
        self.u32(text.len())?;
        self.bytes.extend(text.as_bytes());
        self.bytes.push(0);
        Ok(())
    }

    /// Writes a vector of bytes whose first is at a multiple of `alignment`, which is at least 4.
    pub(super) fn data(
        &mut self,
        label: Label,
        data: &[u8],
        alignment: usize,
    ) -> Result<(), PatchError> {
        let first = (self.bytes.len() + 4).next_multiple_of(alignment);
        self.bytes.resize(first - 4, 0);
        self.place(label);
        self.u32(data.len())?;
        self.bytes.extend(data);
        Ok(())
    }

    /// The finished prefix, with its references into the original file, which will be right behind
    /// it.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, PatchError> {
        self.align(ALIGNMENT);
        for (at, label) in self.to_label {
            let distance = forward(at, self.places.get(label.0).copied())?;
            set(&mut self.bytes, at, distance);
        }
        for at in self.to_original {
            let at = at as usize;
            let position = bytes_at(&self.bytes, at).map_or(0, u32::from_le_bytes);
            let distance = forward(at, self.bytes.len().checked_add(position as usize))?;
            set(&mut self.bytes, at, distance);
        }
        Ok(self.bytes)
    }
}

fn set(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(field) = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *field = value.to_le_bytes();
    }
}

/// The distance that a reference at `at` stores for `target`.
///
/// C++'s verifier takes it for a signed number, so it has to be below 2 GiB, though the field is
/// unsigned.
fn forward(at: usize, target: Option<usize>) -> Result<u32, PatchError> {
    target
        .and_then(|target| u32::try_from(target.checked_sub(at)?).ok())
        .filter(|distance| *distance <= i32::MAX as u32)
        .ok_or(PatchError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_reach_below_two_gibibytes() {
        assert_eq!(forward(16, Some(16 + 0x7fff_ffff)), Ok(0x7fff_ffff));
        assert_eq!(
            forward(16, Some(16 + 0x8000_0000)),
            Err(PatchError::TooLarge)
        );
        assert_eq!(forward(16, None), Err(PatchError::TooLarge));
    }

    #[test]
    fn original_positions_count_from_the_end_of_the_prefix() {
        let (mut prefix, root) = Prefix::new();
        prefix
            .table(root, &[Value::Absent, Value::Original(20)])
            .unwrap();
        let bytes = prefix.finish().unwrap();
        assert_eq!(bytes.len(), 64);
        // The root's reference, the identifier, a vtable of four entries, and the table with one
        // field.
        let words: Vec<u32> = bytes
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(words[0], 16);
        assert_eq!(&bytes[4..8], b"TFL3");
        assert_eq!(&bytes[8..16], &[8, 0, 8, 0, 0, 0, 4, 0]);
        assert_eq!(words[4], 8, "distance back to the vtable");
        assert_eq!(
            words[5],
            64 + 20 - 20,
            "from byte 20 to byte 20 of the original"
        );
    }
}
