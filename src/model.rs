//! A `.tflite` file, verified once.
//!
//! [`Model::parse`] runs the FlatBuffers verifier over the whole file. Everything read through a `Model` afterwards is
//! in bounds, so later layers report only what is wrong with the *contents* (an index out of range, a missing vector),
//! never with the encoding.

use arenaplan_schema::tflite;

use crate::error::Error;

/// A verified model: borrowed bytes and the root table inside them.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    bytes: &'a [u8],
    root: tflite::Model<'a>,
}

impl<'a> Model<'a> {
    /// Verifies `bytes` as a `.tflite` file.
    ///
    /// # Errors
    /// [`Error::Unreadable`] when the file identifier is not `TFL3` or the FlatBuffers structure is broken (truncated,
    /// an offset out of range, a vector longer than the file).
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let root = arenaplan_schema::verify::root(bytes).map_err(|e| Error::Unreadable {
            reason: one_line(&e.to_string()),
        })?;
        Ok(Self { bytes, root })
    }

    /// The whole file.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The root table, read through the generated code.
    pub fn root(&self) -> tflite::Model<'a> {
        self.root
    }

    /// The data of buffer `index`: `None` when the buffer does not exist or holds nothing inside the FlatBuffer.
    pub fn buffer_data(&self, index: u32) -> Option<&'a [u8]> {
        let buffers = self.root.buffers()?;
        if index as usize >= buffers.len() {
            return None;
        }
        let data = buffers.get(index as usize).data()?.bytes();
        (!data.is_empty()).then_some(data)
    }
}

/// The verifier describes nesting in lines of its own; a message is one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
