//! What can be wrong with a model, a plan, an arena or a call.

use core::fmt;

use arenaplan_schema::view;

use crate::types::Type;

/// Why a session could not be made, or an inference not be run.
///
/// Tensors are named by their position in the concatenation of all subgraphs' tensors, which is their position in the plan
/// and the number that `arenaplan inspect` shows.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The file is damaged, or its plan has the wrong form.
    Model(view::Error),
    /// The model's bytes must start at a multiple of 16.
    ModelAlignment,
    /// The memory must start at a multiple of 16.
    ArenaAlignment,
    /// The memory is too small; try again with at least `needed` bytes.
    ArenaTooSmall {
        /// Bytes that are needed, of the whole arena, or of its part that the error arose for.
        needed: usize,
        /// Bytes that are there.
        given: usize,
    },
    /// The model's outputs, or those of another one that are its inputs, are no longer there: of models that take turns on one
    /// head, another one has run since, or an input was set.
    OutOfTurn,
    /// More than 65,535 steps, tensors that do not fit an address, or subgraphs nested too deeply.
    TooLarge,
    /// An index in the model is outside of what it counts in.
    Index {
        /// The index.
        index: i32,
        /// How many there are.
        len: usize,
    },
    /// A tensor's size is not known: a dimension that is not, or a type without a fixed size.
    TensorSize {
        /// Position in the plan.
        tensor: u32,
    },
    /// A constant is not aligned for its type.
    ConstantAlignment {
        /// Position in the plan.
        tensor: u32,
    },
    /// No kernel for this operator is registered.
    NoKernel {
        /// The subgraph.
        subgraph: u32,
        /// Position in the subgraph.
        operator: u32,
        /// The operator's number in the schema; 32 for a custom one.
        code: i32,
    },
    /// Subgraphs call each other in a circle.
    Recursion {
        /// The subgraph that is called again.
        subgraph: u32,
    },
    /// The plan has a version that is not known.
    PlanVersion {
        /// The version.
        version: u32,
    },
    /// The plan puts a tensor where its elements cannot be.
    PlanOffset {
        /// Position in the plan.
        tensor: u32,
        /// Bytes from the start of the arena.
        offset: i32,
    },
    /// The plan has two tensors at one place while both are in use, and no kernel says that this is right.
    PlanOverlap {
        /// Position in the plan of the one, or [`SCRATCH`](Self::SCRATCH).
        first: u32,
        /// Position in the plan of the other.
        second: u32,
    },
    /// The prepared data have a version that is not known.
    PreparedVersion {
        /// The version.
        version: u32,
    },
    /// The prepared data are cut off, too long, not aligned, or for another number of operators.
    PreparedForm {
        /// How many bytes they have.
        bytes: usize,
    },
    /// The prepared factors of an operator are not those of the model's scales.
    PreparedFactors {
        /// The subgraph.
        subgraph: u32,
        /// Position in the subgraph.
        operator: u32,
    },
    /// A kernel cannot run an operator.
    Operator {
        /// The subgraph.
        subgraph: u32,
        /// Position in the subgraph.
        operator: u32,
        /// What is wrong.
        fault: Fault,
    },
    /// There is no such input or output of the model.
    NoSuchTensor {
        /// The index asked for.
        index: usize,
        /// How many there are.
        len: usize,
    },
    /// An input or output was asked for with another type of elements than it has.
    ElementType {
        /// The type that it has.
        found: Type,
    },
    /// An input or output was asked for with another shape than it has.
    Shape {
        /// Position in the plan.
        tensor: u32,
        /// How many dimensions it has.
        rank: u16,
        /// The first dimension that differs; `rank` if the number of dimensions does.
        axis: u16,
        /// What that dimension is; 0 if the number of dimensions differs.
        found: u32,
    },
    /// Values given for an input are too few or too many.
    ElementCount {
        /// How many there should be.
        needed: usize,
        /// How many were given.
        given: usize,
    },
}

impl Error {
    /// Whether it is the plan that is wrong, or what was prepared with it, rather than the model or the memory.
    pub fn is_about_plan(&self) -> bool {
        matches!(
            self,
            Error::PlanVersion { .. } | Error::PlanOffset { .. } | Error::PlanOverlap { .. }
        ) || self.is_about_prepared()
    }

    /// Whether it is the prepared data that are wrong.
    pub fn is_about_prepared(&self) -> bool {
        matches!(
            self,
            Error::PreparedVersion { .. }
                | Error::PreparedForm { .. }
                | Error::PreparedFactors { .. }
        )
    }

    /// Stands for scratch memory where a tensor is named.
    pub const SCRATCH: u32 = u32::MAX;
}

impl From<view::Error> for Error {
    fn from(error: view::Error) -> Self {
        Error::Model(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Error::Model(error) => error.fmt(f),
            Error::ModelAlignment => f.write_str("the model must start at a multiple of 16 bytes"),
            Error::ArenaAlignment => f.write_str("the arena must start at a multiple of 16 bytes"),
            Error::ArenaTooSmall { needed, given } => {
                write!(f, "the arena has {given} bytes, and {needed} are needed")
            }
            Error::OutOfTurn => f.write_str(
                "another model has run on the arena since, or an input was set: run the model again, after those whose outputs it reads",
            ),
            Error::TooLarge => f.write_str("the model is too large for a device"),
            Error::Index { index, len } => {
                write!(
                    f,
                    "the model has the index {index} of a list with {len} entries"
                )
            }
            Error::TensorSize { tensor } => write!(f, "the size of tensor {tensor} is not known"),
            Error::ConstantAlignment { tensor } => {
                write!(
                    f,
                    "the constant tensor {tensor} is not aligned for its type"
                )
            }
            Error::NoKernel {
                subgraph,
                operator,
                code,
            } => write!(
                f,
                "no kernel is registered for operator {operator} of subgraph {subgraph}, which has the code {code}"
            ),
            Error::Recursion { subgraph } => write!(f, "subgraph {subgraph} calls itself"),
            Error::PlanVersion { version } => {
                write!(f, "the plan has the unknown version {version}")
            }
            Error::PlanOffset { tensor, offset } => write!(
                f,
                "the plan puts tensor {tensor} at {offset}, where it is not aligned or does not fit; plan the model again"
            ),
            Error::PlanOverlap { first, second } => {
                f.write_str("the plan puts ")?;
                for (tensor, rest) in [(first, " and "), (second, "")] {
                    match tensor {
                        Error::SCRATCH => write!(f, "scratch memory{rest}")?,
                        tensor => write!(f, "tensor {tensor}{rest}")?,
                    }
                }
                f.write_str(" at one place while both are in use; plan the model again, for the target arenaplan")
            }
            Error::PreparedVersion { version } => {
                write!(f, "the prepared data have the unknown version {version}")
            }
            Error::PreparedForm { bytes } => write!(
                f,
                "the prepared data ({bytes} bytes) are damaged or for another model; plan the model again"
            ),
            Error::PreparedFactors { subgraph, operator } => write!(
                f,
                "the prepared factors of operator {operator} of subgraph {subgraph} are not those of the model's scales; plan the \
                 model again"
            ),
            Error::Operator {
                subgraph,
                operator,
                fault,
            } => write!(f, "operator {operator} of subgraph {subgraph}: {fault}"),
            Error::NoSuchTensor { index, len } => {
                write!(f, "there is no number {index}, the model has {len}")
            }
            Error::ElementType { found } => {
                write!(f, "the elements have the type number {}", found.0)
            }
            Error::Shape {
                tensor,
                rank,
                axis,
                found,
            } => match axis < rank {
                true => write!(f, "dimension {axis} of tensor {tensor} is {found}"),
                false => write!(f, "tensor {tensor} has {rank} dimensions"),
            },
            Error::ElementCount { needed, given } => {
                write!(f, "{given} values are given for {needed} elements")
            }
        }
    }
}

impl core::error::Error for Error {}

/// A tensor of an operator, by its position in the operator's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// An input.
    Input(u8),
    /// An output.
    Output(u8),
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Input(k) => write!(f, "input {k}"),
            Operand::Output(k) => write!(f, "output {k}"),
        }
    }
}

/// Why a kernel cannot run an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The file is damaged here.
    Format,
    /// The tensor is not given.
    Missing(Operand),
    /// The kernel has no code for the type of the tensor's elements, or not together with the others'.
    ElementType(Operand),
    /// The tensor's shape does not fit the operator.
    Shape(Operand),
    /// The tensor's scales or zero points are missing or not what the operator needs.
    Quantization(Operand),
    /// Values that the operator is steered by (axes, sizes, indices) are outside of what they refer to, or are not
    /// constant where they must be.
    Value(Operand),
    /// The tensor has no place in memory.
    NoMemory(Operand),
    /// The option in this slot of the operator's options has a value that no kernel has code for.
    Unsupported(u8),
    /// The operator has no options, or those of another operator.
    Options,
    /// Scratch memory is missing.
    Scratch,
    /// A subgraph that is called does not exist, or has other inputs and outputs than the caller.
    Subgraph,
    /// Subgraphs are nested too deeply.
    Depth,
    /// What a custom kernel has to say.
    Custom(u8),
}

impl From<view::Error> for Fault {
    /// A session has read all of the model before, and had the chance to say more.
    fn from(_: view::Error) -> Self {
        Fault::Format
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Format => f.write_str("the file is damaged"),
            Fault::Missing(operand) => write!(f, "{operand} is missing"),
            Fault::ElementType(operand) => write!(f, "no kernel for the type of {operand}"),
            Fault::Shape(operand) => write!(f, "the shape of {operand} does not fit"),
            Fault::Quantization(operand) => write!(f, "the quantization of {operand} does not fit"),
            Fault::Value(operand) => write!(f, "values of {operand} are out of range"),
            Fault::NoMemory(operand) => write!(f, "{operand} has no place in memory"),
            Fault::Unsupported(slot) => write!(f, "option {slot} has an unsupported value"),
            Fault::Options => f.write_str("options are missing"),
            Fault::Scratch => f.write_str("scratch memory is missing"),
            Fault::Subgraph => f.write_str("the called subgraph does not fit"),
            Fault::Depth => f.write_str("subgraphs are nested too deeply"),
            Fault::Custom(number) => write!(f, "the custom kernel failed with {number}"),
        }
    }
}

impl core::error::Error for Fault {}
