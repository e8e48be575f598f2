//! Proves on the device that its kernels keep a model's plan: known inputs, and the outputs that they must give.
//!
//! A plan may put an output over an input of its operator. That is right with kernels that go through memory in the order the
//! plan was made for, and with others numbers are wrong without any error. `arenaplan export --as rust-selftest` chooses inputs
//! with which such numbers show, and writes a [`SelfTest`] as constants; a firmware runs it once after it has made its
//! interpreter.
//!
//! ```
//! use arenaplan_runtime::self_test::{Expected, Output, Port, SelfTest, SelfTestFailure, Signal};
//! use arenaplan_runtime::{Interpreter, Type};
//!
//! static SELF_TEST: SelfTest<'static> = SelfTest {
//!     inputs: &[Port { element_type: Type::INT8, bytes: 4 }],
//!     outputs: &[Output {
//!         port: Port { element_type: Type::INT8, bytes: 2 },
//!         // Two bytes for each invoke.
//!         expected: Expected::Bytes(&[3, 0xfd, 7, 0x80]),
//!     }],
//!     signals: &[Signal { seed: 1, narrow: 0, hold: 1 }, Signal { seed: 2, narrow: 1, hold: 2 }],
//! };
//!
//! fn self_test(interpreter: &mut Interpreter<'_, '_>) -> Result<(), SelfTestFailure> {
//!     SELF_TEST.run(interpreter)
//! }
//! ```

use core::fmt;

use crate::error::Error;
use crate::session::{Info, Interpreter, Session};
use crate::types::Type;

/// Inferences that follow each other from a fresh state, and what they must give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelfTest<'a> {
    /// The model's inputs.
    pub inputs: &'a [Port],
    /// The model's outputs, with their values.
    pub outputs: &'a [Output<'a>],
    /// What the inputs are set to, for each invoke.
    pub signals: &'a [Signal],
}

/// An input or an output, by which another model is told from the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The type of the elements.
    pub element_type: Type,
    /// Bytes of all elements.
    pub bytes: usize,
}

impl Port {
    fn is(&self, info: Result<Info<'_>, Error>) -> bool {
        let Ok(info) = info else { return false };
        let elements = info.shape.elements();
        let size = info.element_type.bytes();
        let bytes = elements.and_then(|elements| elements.checked_mul(size?));
        info.element_type == self.element_type && bytes == Some(self.bytes)
    }
}

/// An output of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Output<'a> {
    /// Type and size.
    pub port: Port,
    /// The values in all invokes.
    pub expected: Expected<'a>,
}

/// What an output must be, in one invoke after the other.
#[derive(Clone, Copy, PartialEq)]
pub enum Expected<'a> {
    /// All bytes, in row-major order and little-endian.
    Bytes(&'a [u8]),
    /// The [`digest`] of all bytes, for each invoke.
    Digests(&'a [u32]),
    /// Numbers that may differ a little: of `float32`, `int8`, `uint8` or `int16`.
    Near {
        /// Every one of so many elements is compared, from the first one on.
        step: usize,
        /// By how much a number may differ, for each invoke.
        within: &'a [f32],
        /// The numbers, as many for each invoke as `step` leaves.
        values: &'a [f32],
    },
}

/// What the inputs of an invoke are set to: noise that follows from a seed.
///
/// A sequence of 32-bit words (xorshift with the shifts 13, 17, 5: Marsaglia, "Xorshift RNGs", 2003) starts from `seed`,
/// without the seed itself. Each input takes its elements from there, in row-major order; a word makes `hold` elements of
/// one input.
///
/// | type | element |
/// |-|-|
/// | `int8`, `int16` | the highest bits of the word, shifted right by `narrow`, with the sign |
/// | `uint8`, `uint16` | the same plus 128 or 32,768 |
/// | `int32`, `uint32`, `int64`, `uint64` | the highest 16 bits, shifted right by `narrow`, without a sign |
/// | `float32` | the highest 24 bits with their sign, times 2 to the power of -20 - `narrow`, so within ±8 for `narrow` 0 |
/// | `bool` | the highest bit |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Where the noise starts; not 0.
    pub seed: u32,
    /// Bits by which numbers are smaller than they could be, at most 31.
    pub narrow: u8,
    /// Elements in a row that are equal; 0 means 1.
    pub hold: u16,
}

impl Signal {
    /// The noise from its start: for the first input.
    pub fn noise(&self) -> Noise {
        Noise {
            word: self.seed,
            signal: *self,
        }
    }
}

/// The noise of a [`Signal`], as far as it was taken.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    word: u32,
    signal: Signal,
}

impl Noise {
    fn advance(&mut self) {
        self.word ^= self.word << 13;
        self.word ^= self.word >> 17;
        self.word ^= self.word << 5;
    }

    /// Sets the elements of the next input; `false` for a type that has no numbers here.
    pub fn fill(&mut self, element_type: Type, bytes: &mut [u8]) -> bool {
        let Some(size) = element_type.bytes().filter(|&size| size != 0) else {
            return false;
        };
        let mut left = 0;
        for element in bytes.chunks_exact_mut(size) {
            if left == 0 {
                self.advance();
                left = self.signal.hold.max(1);
            }
            left = left.saturating_sub(1);
            let Some(value) = element_of(element_type, self.word, self.signal.narrow) else {
                return false;
            };
            // Whatever is larger than a word has zeros above it.
            element.fill(0);
            for (to, from) in element.iter_mut().zip(value.to_le_bytes()) {
                *to = from;
            }
        }
        true
    }
}

/// The element that a word makes, in the lowest bytes.
fn element_of(element_type: Type, word: u32, narrow: u8) -> Option<u32> {
    let narrow = u32::from(narrow.min(31));
    let signed = |shift: u32| (word as i32 >> shift >> narrow) as u32;
    Some(match element_type {
        Type::INT8 => signed(24),
        Type::UINT8 => signed(24).wrapping_add(1 << 7),
        Type::INT16 => signed(16),
        Type::UINT16 => signed(16).wrapping_add(1 << 15),
        Type::INT32 | Type::UINT32 | Type::INT64 | Type::UINT64 => word >> 16 >> narrow,
        Type::BOOL => word >> 31,
        // 24 bits and a power of two: nothing is rounded.
        Type::FLOAT32 => {
            let unit = f32::from_bits((107u32.saturating_sub(narrow)) << 23);
            ((word as i32 >> 8) as f32 * unit).to_bits()
        }
        _ => return None,
    })
}

/// FNV-1a of 32 bits (Fowler, Noll, Vo).
pub fn digest(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |digest, &byte| {
        (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Where a self-test failed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SelfTestFailure {
    /// The interpreter runs another model: this input has another type or size, or the number of inputs differs.
    Input {
        /// The input.
        input: usize,
    },
    /// The interpreter runs another model: this output has another type or size, or the number of outputs differs.
    OutputPort {
        /// The output.
        output: usize,
    },
    /// The model could not be run.
    Run {
        /// The invoke, from 0.
        invoke: usize,
        /// Why.
        error: Error,
    },
    /// An output is another one than it should be.
    Output {
        /// The invoke, from 0.
        invoke: usize,
        /// The output.
        output: usize,
        /// How it differs.
        difference: Difference,
    },
}

impl fmt::Display for SelfTestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelfTestFailure::Input { input } => {
                write!(
                    f,
                    "input {input} is not the one of the model that the self-test is for"
                )
            }
            SelfTestFailure::OutputPort { output } => {
                write!(
                    f,
                    "output {output} is not the one of the model that the self-test is for"
                )
            }
            SelfTestFailure::Run { invoke, error } => write!(f, "invoke {invoke}: {error}"),
            SelfTestFailure::Output {
                invoke,
                output,
                difference,
            } => write!(
                f,
                "invoke {invoke}, output {output}: {difference}; the kernels do not keep the plan, or something else writes \
                 into the arena"
            ),
        }
    }
}

impl core::error::Error for SelfTestFailure {}

/// How an output differs from what it should be.
#[derive(Clone, Copy, PartialEq)]
pub enum Difference {
    /// A byte.
    Byte {
        /// Position in the output's bytes.
        at: usize,
        /// What is there.
        found: u8,
        /// What should be there.
        expected: u8,
    },
    /// The digest of all bytes.
    Digest {
        /// What it is.
        found: u32,
        /// What it should be.
        expected: u32,
    },
    /// A number.
    Element {
        /// The element.
        at: usize,
        /// What it is.
        found: f32,
        /// What it should be.
        expected: f32,
    },
    /// There are no values for this invoke, or none of this type.
    NoValues,
}

// Without decimal fractions, of which the standard code can panic; here and below.
impl fmt::Debug for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Byte {
                at,
                found,
                expected,
            } => {
                write!(f, "byte {at} is {found} instead of {expected}")
            }
            Difference::Digest { found, expected } => {
                write!(f, "the digest is {found:08x} instead of {expected:08x}")
            }
            Difference::Element {
                at,
                found,
                expected,
            } => match [found, expected].map(|x| (*x as i32, *x == *x as i32 as f32)) {
                [(found, true), (expected, true)] => {
                    write!(f, "element {at} is {found} instead of {expected}")
                }
                // As bits, so that no code for decimal fractions is linked.
                _ => write!(
                    f,
                    "element {at} has the bits {:08x} instead of {:08x}",
                    found.to_bits(),
                    expected.to_bits()
                ),
            },
            Difference::NoValues => f.write_str("the self-test has no values for it"),
        }
    }
}

impl fmt::Debug for Expected<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Bytes(bytes) => f.debug_tuple("Bytes").field(bytes).finish(),
            Expected::Digests(digests) => f.debug_tuple("Digests").field(digests).finish(),
            Expected::Near { step, values, .. } => f
                .debug_struct("Near")
                .field("step", step)
                .field("values", &values.len())
                .finish_non_exhaustive(),
        }
    }
}

impl Expected<'_> {
    /// Compares an output after invoke `invoke`.
    ///
    /// # Errors
    /// The first difference.
    pub fn compare(
        &self,
        element_type: Type,
        bytes: &[u8],
        invoke: usize,
    ) -> Result<(), Difference> {
        match *self {
            Expected::Bytes(all) => {
                let start = invoke.saturating_mul(bytes.len());
                let expected = all.get(start..).and_then(|all| all.get(..bytes.len()));
                let expected = expected.ok_or(Difference::NoValues)?;
                let mut pairs = bytes.iter().zip(expected).enumerate();
                match pairs.find(|(_, (found, expected))| found != expected) {
                    Some((at, (&found, &expected))) => Err(Difference::Byte {
                        at,
                        found,
                        expected,
                    }),
                    None => Ok(()),
                }
            }
            Expected::Digests(all) => {
                let &expected = all.get(invoke).ok_or(Difference::NoValues)?;
                match digest(bytes) {
                    found if found == expected => Ok(()),
                    found => Err(Difference::Digest { found, expected }),
                }
            }
            Expected::Near {
                step,
                within,
                values,
            } => {
                let step = step.max(1);
                let size = element_type.bytes().unwrap_or(1).max(1);
                let elements = bytes.chunks_exact(size).step_by(step);
                let start = invoke.saturating_mul(elements.len());
                let values = values.get(start..).unwrap_or_default();
                let &within = within.get(invoke).ok_or(Difference::NoValues)?;
                if values.len() < elements.len() {
                    return Err(Difference::NoValues);
                }
                for (k, (element, &expected)) in elements.zip(values).enumerate() {
                    let found = number(element_type, element).ok_or(Difference::NoValues)?;
                    // What is no number is not near anything.
                    if (found - expected).abs() <= within {
                        continue;
                    }
                    let at = k.saturating_mul(step);
                    return Err(Difference::Element {
                        at,
                        found,
                        expected,
                    });
                }
                Ok(())
            }
        }
    }
}

/// An element as a number that `f32` has exactly.
pub fn number(element_type: Type, element: &[u8]) -> Option<f32> {
    let &first = element.first()?;
    Some(match element_type {
        Type::FLOAT32 => f32::from_le_bytes(element.try_into().ok()?),
        Type::INT16 => f32::from(i16::from_le_bytes(element.try_into().ok()?)),
        Type::INT8 => f32::from(first as i8),
        Type::UINT8 => f32::from(first),
        _ => return None,
    })
}

impl SelfTest<'_> {
    /// Runs the model as often as there are signals, from a fresh state, and compares its outputs. Leaves a fresh state
    /// behind; inputs are to be set again.
    ///
    /// # Errors
    /// The first thing that is not as it should be.
    pub fn run(&self, interpreter: &mut Interpreter<'_, '_>) -> Result<(), SelfTestFailure> {
        let (session, head) = interpreter.parts();
        self.run_session(session, head)
    }

    /// As [`run`](Self::run), of a session on a head that is lent to it.
    ///
    /// # Errors
    /// The first thing that is not as it should be.
    pub fn run_session(
        &self,
        session: &mut Session<'_, '_>,
        head: &mut [u8],
    ) -> Result<(), SelfTestFailure> {
        self.check(session)?;
        let fails = |invoke| move |error| SelfTestFailure::Run { invoke, error };
        session.reset().map_err(fails(0))?;
        for (invoke, signal) in self.signals.iter().enumerate() {
            self.invoke(session, head, signal).map_err(fails(invoke))?;
            for (output, known) in self.outputs.iter().enumerate() {
                let bytes = session.output_bytes(head, output).map_err(fails(invoke))?;
                let compared = known
                    .expected
                    .compare(known.port.element_type, bytes, invoke);
                compared.map_err(|difference| SelfTestFailure::Output {
                    invoke,
                    output,
                    difference,
                })?;
            }
        }
        session.reset().map_err(fails(self.signals.len()))
    }

    /// Whether the session runs the model that the test is for.
    fn check(&self, session: &Session<'_, '_>) -> Result<(), SelfTestFailure> {
        for input in 0..self.inputs.len().max(session.inputs()) {
            let known = self.inputs.get(input);
            if !known.is_some_and(|port| port.is(session.input_info(input))) {
                return Err(SelfTestFailure::Input { input });
            }
        }
        for output in 0..self.outputs.len().max(session.outputs()) {
            let known = self.outputs.get(output);
            if !known.is_some_and(|known| known.port.is(session.output_info(output))) {
                return Err(SelfTestFailure::OutputPort { output });
            }
        }
        Ok(())
    }

    fn invoke(
        &self,
        session: &mut Session<'_, '_>,
        head: &mut [u8],
        signal: &Signal,
    ) -> Result<(), Error> {
        let mut noise = signal.noise();
        for (input, port) in self.inputs.iter().enumerate() {
            let bytes = session.input_bytes(head, input)?;
            if !noise.fill(port.element_type, bytes) {
                let found = port.element_type;
                return Err(Error::ElementType { found });
            }
        }
        session.invoke(head)
    }
}
