//! The way into the generated reader: bytes are verified once, after which reading cannot fail.
//!
//! The verifier follows every reference of the file and checks that it stays inside. References may
//! be shared, so a small hostile file can unfold to a gigantic tree; the limits here are taken from
//! the size of the file, which makes the work linear in it.

use core::fmt;

use flatbuffers::{
    InvalidFlatbuffer, TableVerifier, VOffsetT, Verifiable, Verifier, VerifierOptions,
};

use crate::tflite::{MODEL_IDENTIFIER, Model};

/// Why bytes are not a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidModel {
    /// Shorter than the reference to the root and the identifier, 8 bytes; the length is given.
    TooShort(usize),
    /// Bytes 4 to 8 are these, and not `TFL3`.
    Identifier([u8; 4]),
    /// A reference, length or alignment is wrong; the error says in which field.
    Structure(InvalidFlatbuffer),
}

impl fmt::Display for InvalidModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooShort(len) => {
                write!(
                    f,
                    "not a .tflite model: {len} bytes, but the header alone has 8"
                )
            }
            Self::Identifier(found) => write!(
                f,
                "not a .tflite model: bytes 4 to 8 are \"{}\", expected \"{MODEL_IDENTIFIER}\"",
                found.escape_ascii()
            ),
            Self::Structure(error) => {
                // The verifier's text has one line per level of nesting and ends with a line break.
                write!(f, "damaged model: {}", error.to_string().trim_end())
            }
        }
    }
}

// No source: the message already has the verifier's text in it.
impl core::error::Error for InvalidModel {}

/// Verifies the bytes of a `.tflite` file and gives its root.
///
/// What the schema does not know (enum values, union members, fields added later) is no error.
/// That indices lie inside of their lists, shapes make sense, and data is as long as a shape says, is
/// not looked at: it is the graph's business.
///
/// # Errors
/// [`InvalidModel`] for anything but a whole FlatBuffer with the identifier `TFL3`.
pub fn root(bytes: &[u8]) -> Result<Model<'_>, InvalidModel> {
    match bytes
        .get(4..8)
        .and_then(|found| <[u8; 4]>::try_from(found).ok())
    {
        None => return Err(InvalidModel::TooShort(bytes.len())),
        Some(found) if found != MODEL_IDENTIFIER.as_bytes() => {
            return Err(InvalidModel::Identifier(found));
        }
        Some(_) => {}
    }
    let options = options(bytes.len());
    crate::tflite::root_as_model_with_opts(&options, bytes).map_err(InvalidModel::Structure)
}

/// The verifier's limits for a file of so many bytes.
///
/// - Depth: the schema is not recursive; its deepest chain (model, subgraph, tensor, sparsity,
///   dimension, indices) has 6 tables.
/// - Tables: each is referred to by 4 bytes of the file, so without shared parents there are no more
///   than a quarter of its bytes.
/// - Apparent size: what is read, vtables counted each time they are used, which writers share. Real
///   files come to 0.97 to 1.6 times their size. The bound is 8 times, and not below 64 KiB.
pub fn options(file_bytes: usize) -> VerifierOptions {
    VerifierOptions {
        max_depth: 16,
        max_tables: file_bytes / 4 + 1,
        max_apparent_size: file_bytes.saturating_mul(8).max(1 << 16),
        ignore_missing_null_terminator: false,
    }
}

/// What flatc's code calls instead of the crate's `visit_union`, see `xtask/src/schema.rs`.
///
/// The crate rejects a union of which only the type or only the value is there. Files like that are
/// in use (an operator names the type of its options, then has none), and the verifiers of the other
/// languages accept them. What the crate does not look at, a value whose type the schema does not
/// know, is checked to be a table here, so that the accessor which gives it as one cannot fail.
pub(crate) trait VisitUnion: Sized {
    /// Verifies type and value, where present; a missing type is type 0, `NONE`.
    #[allow(clippy::too_many_arguments)]
    fn visit_lenient_union<Key>(
        self,
        key: impl FnOnce(u8) -> Key,
        key_name: &'static str,
        key_field: VOffsetT,
        value_name: &'static str,
        value_field: VOffsetT,
        required: bool,
        verify_value: impl FnOnce(Key, &mut Verifier, usize) -> Result<(), InvalidFlatbuffer>,
    ) -> Result<Self, InvalidFlatbuffer>;
}

impl VisitUnion for TableVerifier<'_, '_, '_> {
    fn visit_lenient_union<Key>(
        mut self,
        key: impl FnOnce(u8) -> Key,
        _key_name: &'static str,
        key_field: VOffsetT,
        value_name: &'static str,
        value_field: VOffsetT,
        required: bool,
        verify_value: impl FnOnce(Key, &mut Verifier, usize) -> Result<(), InvalidFlatbuffer>,
    ) -> Result<Self, InvalidFlatbuffer> {
        let key_position = self.deref(key_field)?;
        let value_position = self.deref(value_field)?;
        let number = key_position.map_or(Ok(0), |at| self.verifier().get_u8(at))?;
        match value_position {
            Some(at) => verify_value(key(number), self.verifier(), at)?,
            None if required => return InvalidFlatbuffer::new_missing_required(value_name),
            None => {}
        }
        Ok(self)
    }
}

/// A table of which nothing is known: that it has a vtable is all there is to verify.
pub(crate) struct AnyTable;

impl Verifiable for AnyTable {
    fn run_verifier(verifier: &mut Verifier, position: usize) -> Result<(), InvalidFlatbuffer> {
        verifier.visit_table(position)?.finish();
        Ok(())
    }
}
