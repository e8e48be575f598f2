//! Running models on this machine, with the runtime that runs them on devices.
//!
//! [`run`] gives a model's outputs; [`compare()`] runs a planned model beside the same one without its plan.

use std::fmt;

use arenaplan_runtime as runtime;
use arenaplan_runtime::{Interpreter, Kernel, Type, ops};

use crate::graph::{Graph, OpId, TensorId};
use crate::model::Model;

mod compare;
mod memory;
mod noise;
mod trace;

pub use compare::{Comparison, Difference, compare, without_plan};
pub use memory::Memory;
pub use noise::Noise;
pub(crate) use trace::traces;

/// No arena is made larger, so that a damaged file cannot ask for all memory of this machine.
const LARGEST_ARENA: usize = 1 << 30;

/// The elements of an input or an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// Their type.
    pub element_type: Type,
    /// The dimensions; an element count of their product.
    pub shape: Vec<usize>,
    /// The elements in row-major order, little-endian.
    pub bytes: Vec<u8>,
}

impl Values {
    /// The element `index` in words.
    pub fn element(&self, index: usize) -> String {
        fn words<const N: usize, T: fmt::Display>(
            bytes: &[u8],
            index: usize,
            from: fn([u8; N]) -> T,
        ) -> Option<String> {
            let bytes = bytes.chunks_exact(N).nth(index)?;
            Some(from(bytes.try_into().ok()?).to_string())
        }
        let bytes = &self.bytes[..];
        let words = match self.element_type {
            Type::INT8 => words(bytes, index, i8::from_le_bytes),
            Type::UINT8 | Type::BOOL => words(bytes, index, u8::from_le_bytes),
            Type::INT16 => words(bytes, index, i16::from_le_bytes),
            Type::UINT16 | Type::FLOAT16 => words(bytes, index, u16::from_le_bytes),
            Type::INT32 => words(bytes, index, i32::from_le_bytes),
            Type::UINT32 => words(bytes, index, u32::from_le_bytes),
            Type::INT64 => words(bytes, index, i64::from_le_bytes),
            Type::UINT64 => words(bytes, index, u64::from_le_bytes),
            Type::FLOAT32 => words(bytes, index, f32::from_le_bytes),
            _ => None,
        };
        words.unwrap_or_default()
    }
}

/// What the inputs are set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Feed {
    /// Zeros.
    Zeros,
    /// Noise that follows from this number, other noise for each invoke.
    Noise(u64),
    /// These, for each invoke; one for each input.
    Values(Vec<Values>),
}

/// How models are run.
#[derive(Clone, Debug)]
pub struct Setting<'k> {
    /// The kernels: all that the runtime has, if nothing else is said.
    pub kernels: &'k [Kernel],
    /// What the inputs are set to.
    pub feed: Feed,
    /// How many times.
    pub invokes: usize,
    /// Bytes of the arena, which is otherwise as small as it can be.
    pub arena_bytes: Option<usize>,
}

impl Default for Setting<'_> {
    fn default() -> Self {
        Self {
            kernels: ops::ALL,
            feed: Feed::Zeros,
            invokes: 1,
            arena_bytes: None,
        }
    }
}

/// An input or an output of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Name as stored; empty when there is none.
    pub name: String,
    /// The type of the elements.
    pub element_type: Type,
    /// The dimensions.
    pub shape: Vec<usize>,
    /// Scale and zero point.
    pub quantization: Option<(f32, i32)>,
}

/// What a model needs to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Inputs, in order.
    pub inputs: Vec<Port>,
    /// Outputs, in order.
    pub outputs: Vec<Port>,
    /// Bytes of the head that inferences use.
    pub head_bytes: usize,
    /// Bytes of the tail, with the words of this machine, which are those of a device.
    pub tail_bytes: usize,
    /// Bytes of the smallest arena.
    pub arena_bytes: usize,
}

/// Why a model could not be run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ExecuteError {
    /// The file cannot be read.
    Model(crate::Error),
    /// The runtime cannot run the model; with the operator or the tensors in words.
    Runtime {
        /// The runtime's error.
        error: runtime::Error,
        /// What it says, with names.
        reason: String,
    },
    /// The arena is smaller than the model needs.
    ArenaTooSmall {
        /// Bytes of the smallest arena.
        needed: usize,
        /// Bytes that it may have.
        given: usize,
    },
    /// There are values for another number of inputs than the model has.
    InputCount {
        /// Inputs of the model.
        needed: usize,
        /// Values given.
        given: usize,
    },
    /// The values of an input have another type or shape.
    Input {
        /// The input.
        index: usize,
        /// What is given and what is needed.
        reason: String,
    },
    /// A type of elements that this machine has no numbers for.
    ElementType(Type),
}

impl fmt::Display for ExecuteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecuteError::Model(error) => error.fmt(f),
            ExecuteError::Runtime { reason, .. } => write!(f, "cannot be run: {reason}"),
            ExecuteError::ArenaTooSmall { needed, given } => {
                write!(f, "the arena has {given} bytes, and {needed} are needed")
            }
            ExecuteError::InputCount { needed, given } => {
                write!(f, "the model has {needed} inputs, and {given} are given")
            }
            ExecuteError::Input { index, reason } => write!(f, "input {index}: {reason}"),
            ExecuteError::ElementType(found) => {
                write!(
                    f,
                    "elements of type {} cannot be exchanged",
                    type_name(*found)
                )
            }
        }
    }
}

impl std::error::Error for ExecuteError {}

impl From<crate::Error> for ExecuteError {
    fn from(error: crate::Error) -> Self {
        ExecuteError::Model(error)
    }
}

/// The name of a type in the schema.
pub fn type_name(element_type: Type) -> String {
    use arenaplan_schema::{names, tflite::TensorType};
    names::tensor_type_name(TensorType(element_type.0)).to_string()
}

/// Runs `model`, and shows the outputs of each invoke. The arena is full of noise before.
///
/// # Errors
/// A model that the runtime cannot run, or inputs that do not fit.
pub fn run(
    model: &[u8],
    setting: &Setting<'_>,
    mut show: impl FnMut(usize, Vec<Values>),
) -> Result<Figures, ExecuteError> {
    let graph = Graph::read(Model::parse(model)?)?;
    let model = Memory::holding(model);
    let mut arena = Memory::new(0);
    let mut it = start(&graph, &model, &mut arena, setting)?;
    let figures = Figures::of(&it).map_err(|e| said(&graph, e))?;
    let mut source = Source::new(&setting.feed, &figures.inputs)?;
    for invoke in 0..setting.invokes {
        for (index, port) in figures.inputs.iter().enumerate() {
            set(&mut it, index, &source.next(index, port)?, &graph)?;
        }
        it.invoke().map_err(|e| said(&graph, e))?;
        show(invoke, outputs(&mut it, &figures.outputs, &graph)?);
    }
    Ok(figures)
}

impl Figures {
    fn of(it: &Interpreter<'_, '_>) -> Result<Self, runtime::Error> {
        let session = it.session();
        let (head, tail) = (session.head_bytes(), session.tail_bytes());
        Ok(Self {
            inputs: (0..session.inputs())
                .map(|k| Port::of(session.input_info(k)))
                .collect::<Result<_, _>>()?,
            outputs: (0..session.outputs())
                .map(|k| Port::of(session.output_info(k)))
                .collect::<Result<_, _>>()?,
            head_bytes: head,
            tail_bytes: tail,
            arena_bytes: head.max(session.room_bytes()) + tail,
        })
    }
}

/// An interpreter of `model`, in an arena that is made as large as it needs.
pub(crate) fn start<'m, 'a>(
    graph: &Graph<'_>,
    model: &'m Memory,
    arena: &'a mut Memory,
    setting: &Setting<'m>,
) -> Result<Interpreter<'m, 'a>, ExecuteError> {
    let mut bytes = setting.arena_bytes.unwrap_or(0);
    // What is asked for grows until it is enough.
    loop {
        *arena = Memory::new(bytes);
        Noise::new(u64::MAX).fill(arena.as_mut_slice());
        match Interpreter::new(model.as_slice(), setting.kernels, arena.as_mut_slice()) {
            Ok(_) => break,
            Err(runtime::Error::ArenaTooSmall { needed, .. }) if needed > bytes => {
                if needed > LARGEST_ARENA {
                    return Err(said(graph, runtime::Error::TooLarge));
                }
                bytes = needed;
            }
            Err(e) => return Err(said(graph, e)),
        }
    }
    if let Some(given) = setting.arena_bytes
        && given < bytes
    {
        return Err(ExecuteError::ArenaTooSmall {
            needed: bytes,
            given,
        });
    }
    // The first attempt left its records there.
    Noise::new(u64::MAX).fill(arena.as_mut_slice());
    Interpreter::new(model.as_slice(), setting.kernels, arena.as_mut_slice())
        .map_err(|e| said(graph, e))
}

/// A runtime's error, with the names of what it is about.
pub(crate) fn said(graph: &Graph<'_>, error: runtime::Error) -> ExecuteError {
    let operator = |subgraph, index| {
        let found = graph.subgraphs.get(subgraph as usize);
        match found.and_then(|s| s.operators.get(index as usize)) {
            Some(operator) => operator.label(),
            None => OpId { subgraph, index }.to_string(),
        }
    };
    let tensor = |id: u32| match graph.tensors.get(TensorId(id).index()) {
        _ if id == runtime::Error::SCRATCH => "scratch memory".to_owned(),
        Some(tensor) => tensor.label(),
        None => format!("tensor {id}"),
    };
    let reason = match error {
        runtime::Error::NoKernel {
            subgraph,
            operator: index,
            ..
        } => format!(
            "the runtime has no kernel for {}",
            operator(subgraph, index)
        ),
        runtime::Error::Operator {
            subgraph,
            operator: index,
            fault,
        } => format!("{}: {fault}", operator(subgraph, index)),
        runtime::Error::PlanOverlap { first, second } => format!(
            "the plan has {} and {} at one place while both are in use, which the runtime's kernels do not promise; plan for \
             the target arenaplan",
            tensor(first),
            tensor(second)
        ),
        runtime::Error::PlanOffset { tensor: id, offset } => format!(
            "the plan puts {} at {offset}, where it is not aligned or does not fit",
            tensor(id)
        ),
        runtime::Error::TensorSize { tensor: id } => {
            format!("the size of {} is not known", tensor(id))
        }
        runtime::Error::ConstantAlignment { tensor: id } => {
            format!("the constant {} is not aligned for its type", tensor(id))
        }
        _ => error.to_string(),
    };
    ExecuteError::Runtime { error, reason }
}

impl Port {
    fn of(info: Result<runtime::Info<'_>, runtime::Error>) -> Result<Self, runtime::Error> {
        let info = info?;
        let name = info.table.name().ok().flatten();
        Ok(Self {
            name: name.map_or_else(String::new, |name| {
                String::from_utf8_lossy(name.as_bytes()).into_owned()
            }),
            element_type: info.element_type,
            shape: (0..info.shape.rank()).map(|k| info.shape.dim(k)).collect(),
            quantization: info.quantization(),
        })
    }

    fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    fn values(&self, bytes: Vec<u8>) -> Values {
        Values {
            element_type: self.element_type,
            shape: self.shape.clone(),
            bytes,
        }
    }
}

/// Where an input's values come from.
enum Source<'f> {
    Zeros,
    Noise(Noise),
    Values(&'f [Values]),
}

impl<'f> Source<'f> {
    fn new(feed: &'f Feed, inputs: &[Port]) -> Result<Self, ExecuteError> {
        let values = match feed {
            Feed::Zeros => return Ok(Source::Zeros),
            Feed::Noise(seed) => return Ok(Source::Noise(Noise::new(*seed))),
            Feed::Values(values) => values,
        };
        if values.len() != inputs.len() {
            return Err(ExecuteError::InputCount {
                needed: inputs.len(),
                given: values.len(),
            });
        }
        for (index, (values, port)) in values.iter().zip(inputs).enumerate() {
            let described = |element_type, shape| format!("{} {shape:?}", type_name(element_type));
            let given = described(values.element_type, &values.shape);
            let needed = described(port.element_type, &port.shape);
            if given != needed {
                return Err(ExecuteError::Input {
                    index,
                    reason: format!("{given} is given, and {needed} is needed"),
                });
            }
        }
        Ok(Source::Values(values))
    }

    /// The next values of input `index`.
    fn next(&mut self, index: usize, port: &Port) -> Result<Values, ExecuteError> {
        let size = port.element_type.bytes();
        let size = size.ok_or(ExecuteError::ElementType(port.element_type))?;
        let bytes = match self {
            Source::Zeros => vec![0; port.elements() * size],
            Source::Noise(noise) => noise.elements(port.element_type, port.elements(), size),
            Source::Values(values) => return Ok(values[index].clone()),
        };
        Ok(port.values(bytes))
    }
}

/// Does `$with` for the Rust type that stands for a type of elements.
macro_rules! with_type {
    ($element_type:expr, $with:ident) => {
        match $element_type {
            Type::INT8 => $with!(i8),
            Type::UINT8 | Type::BOOL => $with!(u8),
            Type::INT16 => $with!(i16),
            Type::UINT16 | Type::FLOAT16 => $with!(u16),
            Type::INT32 => $with!(i32),
            Type::UINT32 => $with!(u32),
            Type::INT64 => $with!(i64),
            Type::UINT64 => $with!(u64),
            Type::FLOAT32 => $with!(f32),
            other => return Err(ExecuteError::ElementType(other)),
        }
    };
}

fn set(
    it: &mut Interpreter<'_, '_>,
    index: usize,
    values: &Values,
    graph: &Graph<'_>,
) -> Result<(), ExecuteError> {
    macro_rules! set {
        ($type:ty) => {{
            let chunks = values.bytes.as_chunks().0.iter();
            let elements: Vec<$type> = chunks.map(|c| <$type>::from_le_bytes(*c)).collect();
            it.set_input(index, &elements)
        }};
    }
    with_type!(values.element_type, set).map_err(|e| said(graph, e))
}

fn outputs(
    it: &mut Interpreter<'_, '_>,
    ports: &[Port],
    graph: &Graph<'_>,
) -> Result<Vec<Values>, ExecuteError> {
    let mut all = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        macro_rules! get {
            ($type:ty) => {
                it.output::<$type>(index)
                    .map(|found| found.iter().flat_map(|v| v.to_le_bytes()).collect())
            };
        }
        let bytes: Vec<u8> = with_type!(port.element_type, get).map_err(|e| said(graph, e))?;
        all.push(port.values(bytes));
    }
    Ok(all)
}
