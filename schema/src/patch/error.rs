//! Why a file cannot be patched, or its original not be restored.

use std::fmt;

use crate::view;

/// Why a file cannot be patched, or its original not be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchError {
    /// The model, or a plan in it, is damaged.
    Read(view::Error),
    /// The root table has a field of a schema newer than this version knows. Whether it refers to
    /// something cannot be told, so it can be neither carried over nor left out.
    NewerModelField {
        /// The field's number.
        slot: u16,
    },
    /// A subgraph that gets a new operator order has a field of a schema newer than this version
    /// knows.
    NewerSubgraphField {
        /// The subgraph.
        subgraph: usize,
        /// The field's number.
        slot: u16,
    },
    /// Vectors of the file share bytes, so that reading them all would take more than the file's
    /// size in steps. No writer makes such files.
    OverlappingVectors,
    /// Two different 64-bit offsets of the file share bytes, or an offset shares bytes with what
    /// leads to it.
    OverlappingOffsets {
        /// Where the offset is, in bytes from the start of the file.
        position: usize,
    },
    /// A tensor names a buffer that the model does not have. It could mean one that the patch adds.
    TensorBuffer {
        /// The subgraph.
        subgraph: usize,
        /// The tensor in the subgraph.
        tensor: usize,
        /// The buffer named.
        buffer: u32,
        /// How many buffers the model has.
        buffers: usize,
    },
    /// A metadata entry names a buffer that the model does not have. It could mean one that the
    /// patch adds.
    MetadataBuffer {
        /// The metadata entry.
        entry: usize,
        /// The buffer named.
        buffer: u32,
        /// How many buffers the model has.
        buffers: usize,
    },
    /// The plan given is not as long as the model's subgraphs have tensors together.
    PlanTensorCount {
        /// Offsets given.
        offsets: usize,
        /// Tensors of the model.
        tensors: usize,
    },
    /// The plan given has an offset below -1.
    PlanOffset {
        /// The tensor, counted through all subgraphs.
        tensor: usize,
        /// The offset in bytes.
        offset: i32,
    },
    /// An operator order is given for a subgraph that the model does not have.
    OrderSubgraph {
        /// The subgraph.
        subgraph: usize,
        /// How many subgraphs the model has.
        subgraphs: usize,
    },
    /// Two operator orders are given for one subgraph.
    OrderTwice {
        /// The subgraph.
        subgraph: usize,
    },
    /// The operator order given is not as long as the subgraph has operators.
    OrderLength {
        /// The subgraph.
        subgraph: usize,
        /// Positions given.
        given: usize,
        /// Operators of the subgraph.
        operators: usize,
    },
    /// The operator order given names an operator that does not exist, or names one twice.
    OrderNotPermutation {
        /// The subgraph.
        subgraph: usize,
        /// The position in the new order.
        position: usize,
        /// The operator named there.
        operator: u32,
    },
    /// A text of the stamp is longer than its field can hold.
    TextTooLong {
        /// Which text.
        text: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The most that fits.
        limit: usize,
    },
    /// A reference would reach 2 GiB or more, which FlatBuffers cannot express.
    TooLarge,
    /// The file carries no plan made by this tool.
    NotPlanned,
    /// The file was planned by a newer version of this tool, which stores other facts about the
    /// original.
    ProvenanceVersion {
        /// The version found.
        found: u8,
        /// The newest version known here.
        known: u8,
    },
    /// The entry that says how the file was planned cannot be read.
    ProvenanceDamaged,
    /// The file was changed after it was planned: it is not the original with a prefix in front, so
    /// the original cannot be restored.
    ChangedLength {
        /// Bytes of the file.
        file_bytes: u64,
        /// Bytes of the original.
        original_bytes: u64,
    },
    /// The file was changed after it was planned: what should be the original has another digest.
    ChangedContent,
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PatchError::Read(error) => write!(f, "{error}"),
            PatchError::NewerModelField { slot } => write!(
                f,
                "the model's root table has field {slot}, which is newer than the schema this \
                version knows (fields 0 to 9); a newer version of the tool is needed"
            ),
            PatchError::NewerSubgraphField { subgraph, slot } => write!(
                f,
                "subgraph {subgraph} has field {slot}, which is newer than the schema this \
                version knows (fields 0 to 5); its operators cannot be reordered by this version"
            ),
            PatchError::OverlappingVectors => {
                write!(
                    f,
                    "vectors of the file overlap each other; the file is damaged"
                )
            }
            PatchError::OverlappingOffsets { position } => write!(
                f,
                "the 64-bit offset at byte {position} overlaps other fields; the file is damaged"
            ),
            PatchError::TensorBuffer {
                subgraph,
                tensor,
                buffer,
                buffers,
            } => write!(
                f,
                "tensor {tensor} of subgraph {subgraph} names buffer {buffer}, but the model has \
                {buffers} buffers"
            ),
            PatchError::MetadataBuffer {
                entry,
                buffer,
                buffers,
            } => write!(
                f,
                "metadata entry {entry} names buffer {buffer}, but the model has {buffers} buffers"
            ),
            PatchError::PlanTensorCount { offsets, tensors } => write!(
                f,
                "the plan has {offsets} offsets, but the model's subgraphs have {tensors} tensors"
            ),
            PatchError::PlanOffset { tensor, offset } => write!(
                f,
                "the plan puts tensor {tensor} (counted through all subgraphs) at {offset}, \
                before the arena"
            ),
            PatchError::OrderSubgraph {
                subgraph,
                subgraphs,
            } => write!(
                f,
                "an operator order is given for subgraph {subgraph}, but the model has \
                {subgraphs} subgraphs"
            ),
            PatchError::OrderTwice { subgraph } => {
                write!(f, "two operator orders are given for subgraph {subgraph}")
            }
            PatchError::OrderLength {
                subgraph,
                given,
                operators,
            } => write!(
                f,
                "the operator order for subgraph {subgraph} has {given} positions, but it has \
                {operators} operators"
            ),
            PatchError::OrderNotPermutation {
                subgraph,
                position,
                operator,
            } => write!(
                f,
                "the operator order for subgraph {subgraph} names operator {operator} at position \
                {position}, which does not exist or was named before"
            ),
            PatchError::TextTooLong { text, bytes, limit } => {
                write!(
                    f,
                    "the {text} has {bytes} bytes; at most {limit} can be stored"
                )
            }
            PatchError::TooLarge => write!(
                f,
                "the model is too large to patch: a reference would reach 2 GiB, the limit of the \
                format"
            ),
            PatchError::NotPlanned => write!(f, "the file carries no plan made by this tool"),
            PatchError::ProvenanceVersion { found, known } => write!(
                f,
                "the file was planned by a newer version of this tool (its record has version \
                {found}, this version knows up to {known})"
            ),
            PatchError::ProvenanceDamaged => {
                write!(f, "the record of how the file was planned is damaged")
            }
            PatchError::ChangedLength {
                file_bytes,
                original_bytes,
            } => write!(
                f,
                "the file was changed after planning, so the original cannot be restored: its \
                {file_bytes} bytes are not the {original_bytes} of the original with a plan in \
                front"
            ),
            PatchError::ChangedContent => write!(
                f,
                "the file was changed after planning, so the original cannot be restored: its \
                digest differs"
            ),
        }
    }
}

impl std::error::Error for PatchError {}

impl From<view::Error> for PatchError {
    fn from(error: view::Error) -> Self {
        PatchError::Read(error)
    }
}
