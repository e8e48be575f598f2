//! Self-tests: what a firmware runs once to prove that its kernels keep the plan.
//!
//! A plan that puts outputs over inputs is right only with kernels that go through memory in the order it was made for; with
//! others the device computes wrong numbers, and says nothing. A [`SelfTest`] has inputs, and the outputs that they must give.
//! [`SelfTest::to_c`] writes it as a C++ header for TFLM, [`SelfTest::to_rust`] as a Rust file for `arenaplan-runtime`.
//!
//! - **Inputs** are noise that the device makes from a seed ([`arenaplan_runtime::self_test::Signal`]): eight bytes of flash for
//!   each invoke. Invokes differ in how large and how steady the noise is. They follow each other from a fresh state.
//! - **Outputs** are those of the model without its plan, in the runtime of this project, whose integers are those of TFLM's
//!   reference kernels bit for bit. Small outputs are stored as they are, and of larger ones a digest. Floats are compared with a
//!   tolerance of 1e-5 of the largest value of the output; of large outputs every so-many-th element is stored. Integers that
//!   a model computes from floats may differ by 1.
//! - **What it proves** is measured: each operator whose output lies over an input is run as a kernel of another order would
//!   compute it ([`Order`]), and the test must fail. Of several sequences of seeds the one that sees the most is taken, and the
//!   [`Report`] names the operators that it is blind for.

use std::fmt;

use arenaplan_runtime as runtime;
use arenaplan_runtime::Type;
use arenaplan_runtime::self_test::{Expected, Output, Port, Signal};

use crate::error::Error;
use crate::execute::ExecuteError;

mod c;
mod choose;
mod expect;
mod orders;
mod report;
mod rust;

pub use orders::Order;
pub use report::{Finding, Report};
pub use rust::rust_items;
pub(crate) use rust::rust_static;

/// Invokes of a model without state, unless told otherwise.
const INVOKES: usize = 4;
/// And of one with state: late enough to see that it is carried on.
const INVOKES_WITH_STATE: usize = 6;
/// More are refused: each costs flash.
const MOST_INVOKES: usize = 1000;

/// How the first line of a generated file ends.
const MADE_BY: &str = crate::export::c::MADE_BY;

/// How a self-test is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How many invokes; without it 4, and 6 for a model that carries state from one to the next. At least 2.
    pub invokes: Option<usize>,
}

/// Why there is no self-test.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SelfTestError {
    /// The file cannot be read, or an option makes no sense.
    Model(Error),
    /// The model cannot be run on this machine, which is where the outputs come from.
    Execute(ExecuteError),
    /// Any firmware would pass: the reason, in words.
    ProvesNothing {
        /// Why.
        reason: String,
    },
}

impl fmt::Display for SelfTestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelfTestError::Model(error) => error.fmt(f),
            SelfTestError::Execute(error) => write!(
                f,
                "no self-test, since its outputs are computed on this machine: {error}"
            ),
            SelfTestError::ProvesNothing { reason } => {
                write!(f, "a self-test would prove nothing: {reason}")
            }
        }
    }
}

impl std::error::Error for SelfTestError {}

impl From<Error> for SelfTestError {
    fn from(error: Error) -> Self {
        SelfTestError::Model(error)
    }
}

impl From<ExecuteError> for SelfTestError {
    fn from(error: ExecuteError) -> Self {
        SelfTestError::Execute(error)
    }
}

/// Inputs and outputs of some invokes of a planned model, and what they prove.
#[derive(Clone, Debug, PartialEq)]
pub struct SelfTest {
    inputs: Vec<Port>,
    outputs: Vec<Known>,
    signals: Vec<Signal>,
    /// Whether the model has operators that run once in the life of an interpreter.
    runs_once: bool,
    report: Report,
}

/// An output and its values.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    port: Port,
    values: Values,
}

/// The values of an output, of one invoke after the other.
#[derive(Clone, Debug, PartialEq)]
enum Values {
    Bytes(Vec<u8>),
    Digests(Vec<u32>),
    Near {
        step: usize,
        within: Vec<f32>,
        values: Vec<f32>,
    },
}

impl Known {
    fn output(&self) -> Output<'_> {
        let expected = match &self.values {
            Values::Bytes(bytes) => Expected::Bytes(bytes),
            Values::Digests(digests) => Expected::Digests(digests),
            Values::Near {
                step,
                within,
                values,
            } => Expected::Near {
                step: *step,
                within,
                values,
            },
        };
        let port = self.port;
        Output { port, expected }
    }

    /// Whether no values, the same in each of `invokes` invokes, would do.
    fn vary(&self, invokes: usize) -> bool {
        match &self.values {
            Values::Bytes(bytes) => {
                let mut all = bytes.chunks_exact((bytes.len() / invokes.max(1)).max(1));
                let first = all.next();
                all.any(|other| Some(other) != first)
            }
            Values::Digests(digests) => digests.windows(2).any(|pair| pair[0] != pair[1]),
            Values::Near { within, values, .. } => {
                let elements = values.len() / invokes.max(1);
                let mut columns = (0..elements).map(|element| {
                    let column = values.iter().skip(element).step_by(elements).zip(within);
                    column.fold((f32::NEG_INFINITY, f32::INFINITY), |(low, high), (v, w)| {
                        (low.max(v - w), high.min(v + w))
                    })
                });
                columns.any(|(low, high)| low > high)
            }
        }
    }

    /// Bytes of flash that the values take.
    fn flash_bytes(&self) -> usize {
        match &self.values {
            Values::Bytes(bytes) => bytes.len(),
            Values::Digests(digests) => 4 * digests.len(),
            Values::Near { within, values, .. } => 4 * (within.len() + values.len()),
        }
    }
}

impl SelfTest {
    /// Chooses inputs for a planned model (one without a plan is tested, too), and finds the outputs.
    ///
    /// Takes some hundred inferences, as many as operators have outputs over their inputs, a few times over.
    ///
    /// # Errors
    /// A model that cannot be read or run here, or one whose outputs do not depend on its inputs.
    pub fn of(planned: &[u8], options: &Options) -> Result<Self, SelfTestError> {
        choose::choose(planned, options)
    }

    /// What the test proves.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// As the runtime runs it.
    pub fn with<R>(&self, with: impl FnOnce(&runtime::self_test::SelfTest<'_>) -> R) -> R {
        let outputs: Vec<_> = self.outputs.iter().map(Known::output).collect();
        with(&runtime::self_test::SelfTest {
            inputs: &self.inputs,
            outputs: &outputs,
            signals: &self.signals,
        })
    }

    /// A C++ header for TFLM, with a function `NAME::SelfTest`. What no identifier can have in `name` becomes `_`, as
    /// by [`Name::from_stem`](crate::export::Name::from_stem).
    pub fn to_c(&self, name: &str) -> String {
        c::header(self, name)
    }

    /// A Rust file for `arenaplan-runtime`, with a function `self_test`; `name` is the model's, for the comment.
    pub fn to_rust(&self, name: &str) -> String {
        rust::file(self, name)
    }
}

/// What a type of elements is called in the generated sources.
fn type_constant(element_type: Type) -> &'static str {
    match element_type {
        Type::FLOAT32 => "FLOAT32",
        Type::INT8 => "INT8",
        Type::UINT8 => "UINT8",
        Type::INT16 => "INT16",
        Type::UINT16 => "UINT16",
        Type::INT32 => "INT32",
        Type::UINT32 => "UINT32",
        Type::INT64 => "INT64",
        Type::UINT64 => "UINT64",
        Type::BOOL => "BOOL",
        _ => "FLOAT16",
    }
}
