//! What can be wrong with the bytes of a model, and where.

use core::fmt;

/// A kind of table of the `.tflite` format, to say in an error what was being read.
///
/// A word, as all of an error and of a table view, so that they are copied in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u32)]
pub enum TableKind {
    /// The root table.
    Model,
    /// An entry of `Model.operator_codes`.
    OperatorCode,
    /// An entry of `Model.subgraphs`.
    SubGraph,
    /// An entry of `SubGraph.tensors`.
    Tensor,
    /// A tensor's scales and zero points.
    QuantizationParameters,
    /// An entry of `SubGraph.operators`.
    Operator,
    /// An entry of `Model.buffers`.
    Buffer,
    /// An entry of `Model.metadata`.
    Metadata,
    /// An entry of `Model.signature_defs`.
    SignatureDef,
    /// A named input or output of a signature.
    TensorMap,
    /// An entry of `Model.external_buffer_groups`.
    ExternalBufferGroup,
    /// An entry of `Model.external_buffers`.
    ExternalBuffer,
    /// A table read by slot number alone, such as an operator's options.
    Other,
}

/// A field of a table: its slot, or the table itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The table that holds the field.
    pub table: TableKind,
    /// The field's number in the table, counted from 0 in the order of the schema; `None` means the
    /// table itself.
    pub slot: Option<u16>,
}

impl Field {
    fn name(self) -> Option<&'static str> {
        let names: &[&'static str] = match self.table {
            TableKind::Model => &[
                "version",
                "operator_codes",
                "subgraphs",
                "description",
                "buffers",
                "metadata_buffer",
                "metadata",
                "signature_defs",
                "external_buffer_groups",
                "external_buffers",
            ],
            TableKind::OperatorCode => &[
                "deprecated_builtin_code",
                "custom_code",
                "version",
                "builtin_code",
            ],
            TableKind::SubGraph => &[
                "tensors",
                "inputs",
                "outputs",
                "operators",
                "name",
                "debug_metadata_index",
            ],
            TableKind::Tensor => &[
                "shape",
                "type",
                "buffer",
                "name",
                "quantization",
                "is_variable",
                "sparsity",
                "shape_signature",
                "has_rank",
                "variant_tensors",
                "external_buffer",
            ],
            TableKind::QuantizationParameters => &[
                "min",
                "max",
                "scale",
                "zero_point",
                "details_type",
                "details",
                "quantized_dimension",
            ],
            TableKind::Operator => &[
                "opcode_index",
                "inputs",
                "outputs",
                "builtin_options_type",
                "builtin_options",
                "custom_options",
                "custom_options_format",
                "mutating_variable_inputs",
                "intermediates",
                "large_custom_options_offset",
                "large_custom_options_size",
                "builtin_options_2_type",
                "builtin_options_2",
                "debug_metadata_index",
            ],
            TableKind::Buffer => &["data", "offset", "size"],
            TableKind::Metadata => &["name", "buffer"],
            TableKind::SignatureDef => &[
                "inputs",
                "outputs",
                "signature_key",
                "deprecated_tag",
                "subgraph_index",
            ],
            TableKind::TensorMap => &["name", "tensor_index"],
            TableKind::ExternalBufferGroup => &["name"],
            TableKind::ExternalBuffer => &["id", "group", "offset", "length", "packing"],
            TableKind::Other => &[],
        };
        names.get(usize::from(self.slot?)).copied()
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.slot, self.table) {
            (Some(name), _, table) => write!(f, "{table:?}.{name}"),
            (None, Some(slot), TableKind::Other) => write!(f, "field {slot} of an options table"),
            (None, Some(slot), table) => write!(f, "field {slot} of {table:?}"),
            (None, None, TableKind::Other) => write!(f, "an options table"),
            (None, None, table) => write!(f, "a {table:?} table"),
        }
    }
}

/// Why a model, or the memory plan in it, cannot be read.
///
/// Positions are bytes from the start of the file. Small, since devices hand it on from each read, and of whole words, so
/// that this takes few instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u32)]
pub enum Error {
    /// The file has no `TFL3` at byte 4, so it is no `.tflite` model (or is shorter than 8 bytes).
    NotTflite {
        /// How long the file is.
        file_bytes: usize,
    },
    /// What a field states lies outside the file: the file is truncated or damaged.
    OutOfBounds {
        /// What was being read.
        field: Field,
        /// Where the bytes were expected.
        position: usize,
    },
    /// A table's vtable lies outside the file, or states an impossible size.
    Vtable {
        /// The table.
        field: Field,
        /// Where the table is.
        position: usize,
    },
    /// A vector or string states more elements than the file has bytes for.
    VectorLength {
        /// The field that refers to the vector.
        field: Field,
        /// Where the vector's length is.
        position: usize,
    },
    /// A reference that is present is 0, which would make it point to itself.
    NullReference {
        /// The field, or the table that a vector's element should refer to.
        field: Field,
        /// Where the reference is.
        position: usize,
    },
    /// An index is not below the length of the vector that it counts in.
    Index {
        /// The kind of element that was asked for.
        table: TableKind,
        /// The index.
        index: usize,
        /// The vector's length.
        len: usize,
    },
    /// The bytes that `Buffer.offset` and `size`, or the two fields for large custom options, name
    /// are not all in the file.
    OutsideData {
        /// The field with the offset.
        field: Field,
        /// The offset, from the start of the file.
        position: usize,
    },
    /// The `OfflineMemoryAllocation` entry names a buffer that the model does not have.
    PlanBufferIndex {
        /// The buffer named.
        buffer: u32,
        /// How many buffers there are.
        buffers: usize,
    },
    /// The buffer of the `OfflineMemoryAllocation` entry has no data; TensorFlow Lite Micro crashes
    /// on this.
    PlanWithoutData {
        /// The buffer named.
        buffer: u32,
    },
    /// The plan is shorter than its three header words; TensorFlow Lite Micro reads past its end.
    PlanHeader {
        /// Bytes of the buffer.
        bytes: usize,
    },
    /// The plan holds fewer offsets than it states; TensorFlow Lite Micro reads past its end.
    PlanTruncated {
        /// Offsets stated by the third word.
        stated: u32,
        /// Offsets that fit in the buffer.
        present: usize,
    },
    /// The plan states another number of tensors than all subgraphs of the model have together.
    PlanTensorCount {
        /// Offsets stated by the third word.
        stated: u32,
        /// Tensors of the model.
        tensors: usize,
    },
    /// An offset of the plan is below -1, so that it lies before the arena.
    PlanOffset {
        /// The tensor, counted through all subgraphs.
        tensor: usize,
        /// The offset in bytes.
        offset: i32,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Error::NotTflite { file_bytes } => {
                write!(
                    f,
                    "not a .tflite model: no \"TFL3\" at byte 4 (the file has {file_bytes} bytes)"
                )
            }
            Error::OutOfBounds { field, position } => {
                write!(
                    f,
                    "{field}: byte {position} is outside the file; it is truncated or damaged"
                )
            }
            Error::Vtable { field, position } => {
                write!(
                    f,
                    "{field} at byte {position} has no valid vtable; the file is damaged"
                )
            }
            Error::VectorLength { field, position } => write!(
                f,
                "{field}: a vector at byte {position} states more elements than the file holds"
            ),
            Error::NullReference { field, position } => {
                write!(
                    f,
                    "{field}: the reference at byte {position} is 0; the file is damaged"
                )
            }
            Error::Index { table, index, len } => {
                write!(f, "{table:?} {index} does not exist: the model has {len}")
            }
            Error::OutsideData { field, position } => {
                write!(
                    f,
                    "{field}: the data from byte {position} on are not all in the file; it is truncated"
                )
            }
            Error::PlanBufferIndex { buffer, buffers } => write!(
                f,
                "the memory plan is in buffer {buffer}, but the model has {buffers} buffers"
            ),
            Error::PlanWithoutData { buffer } => {
                write!(f, "the memory plan's buffer {buffer} has no data")
            }
            Error::PlanHeader { bytes } => {
                write!(
                    f,
                    "the memory plan has {bytes} bytes, fewer than the 12 of its header"
                )
            }
            Error::PlanTruncated { stated, present } => {
                write!(
                    f,
                    "the memory plan states {stated} offsets but holds {present}"
                )
            }
            Error::PlanTensorCount { stated, tensors } => write!(
                f,
                "the memory plan is for {stated} tensors, but the model's subgraphs have {tensors}"
            ),
            Error::PlanOffset { tensor, offset } => write!(
                f,
                "the memory plan puts tensor {tensor} (counted through all subgraphs) at \
                {offset}, before the arena"
            ),
        }
    }
}

impl core::error::Error for Error {}
