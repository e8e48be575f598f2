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
    /// A subgraph that gets a new operator order, or is rewritten, has a field of a schema newer than this version
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
    /// A rewrite is given for a subgraph that the model does not have.
    RewriteSubgraph {
        /// The subgraph.
        subgraph: usize,
        /// How many subgraphs the model has.
        subgraphs: usize,
    },
    /// Two rewrites are given for one subgraph.
    RewriteTwice {
        /// The subgraph.
        subgraph: usize,
    },
    /// A rewrite replaces a tensor that the subgraph does not have.
    RewriteReplaced {
        /// The subgraph.
        subgraph: usize,
        /// The tensor to replace.
        tensor: u32,
        /// Tensors that the subgraph has in the original.
        tensors: usize,
    },
    /// A rewrite replaces a tensor twice.
    RewriteReplacedTwice {
        /// The subgraph.
        subgraph: usize,
        /// The tensor.
        tensor: u32,
    },
    /// Something that stays names a tensor that a rewrite replaces.
    RewriteReplacedInUse {
        /// The subgraph.
        subgraph: usize,
        /// The tensor.
        tensor: u32,
        /// What names it.
        by: TensorUse,
    },
    /// In a rewritten subgraph, something names a tensor that does not exist. What stays as it is in
    /// the file may name the original's tensors alone.
    RewriteTensor {
        /// The subgraph.
        subgraph: usize,
        /// What names it.
        by: TensorUse,
        /// The index given.
        index: i64,
        /// How many tensors there are.
        tensors: usize,
    },
    /// A new tensor is to be like one that the subgraph does not have in the original.
    RewriteLikeTensor {
        /// The subgraph.
        subgraph: usize,
        /// The new tensor.
        tensor: usize,
        /// The tensor that it is to be like.
        original: u32,
        /// Tensors that the subgraph has in the original.
        tensors: usize,
    },
    /// A new tensor has a negative dimension.
    RewriteDimension {
        /// The subgraph.
        subgraph: usize,
        /// The new tensor.
        tensor: usize,
        /// The dimension.
        dimension: i32,
    },
    /// A new tensor is to be like one with a scale for each index of a dimension, but has not as many
    /// indices there.
    RewriteChannels {
        /// The subgraph.
        subgraph: usize,
        /// The new tensor.
        tensor: usize,
        /// Scales of the tensor that it is to be like.
        scales: usize,
        /// The dimension that they belong to.
        dimension: i32,
    },
    /// A new constant has not as many values as its shape says.
    RewriteConstant {
        /// The subgraph.
        subgraph: usize,
        /// The new tensor.
        tensor: usize,
        /// Elements by the shape; the greatest number if they cannot be counted.
        elements: usize,
        /// Values given.
        values: usize,
    },
    /// A rewrite names an operator that the subgraph does not have in the original.
    RewriteOperator {
        /// The subgraph.
        subgraph: usize,
        /// The position among the new operators.
        position: usize,
        /// The operator of the original named there.
        operator: u32,
        /// Operators that the subgraph has in the original.
        operators: usize,
    },
    /// A rewrite keeps an operator at two positions.
    RewriteOriginalTwice {
        /// The subgraph.
        subgraph: usize,
        /// The second position among the new operators.
        position: usize,
        /// The operator of the original.
        operator: u32,
    },
    /// A rewrite has a `CONCATENATION` of nothing.
    RewriteNoInputs {
        /// The subgraph.
        subgraph: usize,
        /// The position among the new operators.
        position: usize,
    },
    /// A rewrite copies an operator whose custom options are outside the FlatBuffer, which only the
    /// original's own table can refer to.
    RewriteLargeOptions {
        /// The subgraph.
        subgraph: usize,
        /// The operator of the original.
        operator: u32,
    },
    /// A tensor that a new one is to be like has a field of a schema newer than this version knows.
    NewerTensorField {
        /// The subgraph.
        subgraph: usize,
        /// The tensor of the original.
        tensor: u32,
        /// The field's number.
        slot: u16,
    },
    /// An operator to copy has a field of a schema newer than this version knows.
    NewerOperatorField {
        /// The subgraph.
        subgraph: usize,
        /// The operator of the original.
        operator: u32,
        /// The field's number.
        slot: u16,
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

/// What names a tensor of a rewritten subgraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorUse {
    /// The list of the subgraph's inputs.
    Input,
    /// The list of the subgraph's outputs.
    Output,
    /// A signature, by its index in the model.
    Signature(usize),
    /// An operator, by its position among those of the rewrite.
    Operator(usize),
}

impl fmt::Display for TensorUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorUse::Input => write!(f, "the list of inputs"),
            TensorUse::Output => write!(f, "the list of outputs"),
            TensorUse::Signature(index) => write!(f, "signature {index}"),
            TensorUse::Operator(position) => write!(f, "its operator {position}"),
        }
    }
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
                version knows (fields 0 to 5); it cannot be reordered or rewritten by this version"
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
            PatchError::RewriteSubgraph {
                subgraph,
                subgraphs,
            } => write!(
                f,
                "a rewrite is given for subgraph {subgraph}, but the model has {subgraphs} \
                subgraphs"
            ),
            PatchError::RewriteTwice { subgraph } => {
                write!(f, "two rewrites are given for subgraph {subgraph}")
            }
            PatchError::RewriteReplaced {
                subgraph,
                tensor,
                tensors,
            } => write!(
                f,
                "the rewrite of subgraph {subgraph} replaces tensor {tensor}, but it has {tensors} \
                tensors"
            ),
            PatchError::RewriteReplacedTwice { subgraph, tensor } => write!(
                f,
                "the rewrite of subgraph {subgraph} replaces tensor {tensor} twice"
            ),
            PatchError::RewriteReplacedInUse {
                subgraph,
                tensor,
                by,
            } => write!(
                f,
                "the rewrite of subgraph {subgraph} replaces tensor {tensor}, but {by}, which \
                stays, names it"
            ),
            PatchError::RewriteTensor {
                subgraph,
                by,
                index,
                tensors,
            } => write!(
                f,
                "in the rewrite of subgraph {subgraph}, {by} names tensor {index}, but there are \
                {tensors} that it can name"
            ),
            PatchError::RewriteLikeTensor {
                subgraph,
                tensor,
                original,
                tensors,
            } => write!(
                f,
                "in the rewrite of subgraph {subgraph}, tensor {tensor} is to be like tensor \
                {original}, but the original has {tensors} tensors there"
            ),
            PatchError::RewriteDimension {
                subgraph,
                tensor,
                dimension,
            } => write!(
                f,
                "in the rewrite of subgraph {subgraph}, tensor {tensor} has the dimension \
                {dimension}"
            ),
            PatchError::RewriteChannels {
                subgraph,
                tensor,
                scales,
                dimension,
            } => write!(
                f,
                "in the rewrite of subgraph {subgraph}, tensor {tensor} takes over {scales} scales \
                for the indices of dimension {dimension}, which its shape does not have"
            ),
            PatchError::RewriteConstant {
                subgraph,
                tensor,
                elements,
                values,
            } => write!(
                f,
                "in the rewrite of subgraph {subgraph}, tensor {tensor} has {values} values, but \
                its shape has {elements} elements"
            ),
            PatchError::RewriteOperator {
                subgraph,
                position,
                operator,
                operators,
            } => write!(
                f,
                "in the rewrite of subgraph {subgraph}, position {position} names operator \
                {operator}, but the original has {operators} operators there"
            ),
            PatchError::RewriteOriginalTwice {
                subgraph,
                position,
                operator,
            } => write!(
                f,
                "the rewrite of subgraph {subgraph} keeps operator {operator} twice, again at \
                position {position}"
            ),
            PatchError::RewriteNoInputs { subgraph, position } => write!(
                f,
                "in the rewrite of subgraph {subgraph}, the CONCATENATION at position {position} \
                has no inputs"
            ),
            PatchError::RewriteLargeOptions { subgraph, operator } => write!(
                f,
                "operator {operator} of subgraph {subgraph} has its custom options outside the \
                FlatBuffer; a rewrite cannot copy it, only keep it"
            ),
            PatchError::NewerTensorField {
                subgraph,
                tensor,
                slot,
            } => write!(
                f,
                "tensor {tensor} of subgraph {subgraph} has field {slot}, which is newer than the \
                schema this version knows (fields 0 to 10); it cannot be copied by this version"
            ),
            PatchError::NewerOperatorField {
                subgraph,
                operator,
                slot,
            } => write!(
                f,
                "operator {operator} of subgraph {subgraph} has field {slot}, which is newer than \
                the schema this version knows (fields 0 to 13); it cannot be copied by this version"
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
