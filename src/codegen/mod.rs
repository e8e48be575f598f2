//! Source code for a program that runs a planned model: constants, the list of kernels, typed access to inputs and outputs.
//!
//! [`Interface`] is what a program has to know of a model, read from a file as the runtime sees it; [`rust`] writes it as Rust.
//! [`crate::build`] calls both in a build script.

mod error;
mod group;
pub mod kernels;
pub mod names;
mod rust;

use arenaplan_runtime as runtime;
use arenaplan_runtime::Type;
use arenaplan_schema::tflite::BuiltinOperator;

use crate::execute::{self, Port};
use crate::graph::Graph;
use crate::model::Model;
use crate::selftest::{self, SelfTest, SelfTestError};

pub use error::Error;
pub use group::{Turn, group};
pub use kernels::{KernelUse, Operators, OwnKernel};
pub use rust::{RustOptions, module, rust};

/// How the first line of the code begins; the version and, after a colon, the model's name follow.
pub const WRITTEN_BY: &str = "// Written by arenaplan ";

/// What a program has to know of a planned model, to run it with the runtime.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Interface {
    /// Bytes of the file.
    pub model_bytes: usize,
    /// The kernels that its operators need, each once, by name.
    pub kernels: Vec<KernelUse>,
    /// Inputs, in order.
    pub inputs: Vec<Port>,
    /// Outputs, in order.
    pub outputs: Vec<Port>,
    /// Bytes of the head: what inferences use, and what preparing the model uses, if that is more; a multiple of 16.
    pub head_bytes: usize,
    /// Bytes of the tail, a multiple of 16.
    pub tail_bytes: usize,
    /// The self-test that the program gets.
    pub self_test: Option<SelfTest>,
}

impl Interface {
    /// The interface of `model`, the file that will be on the device, with `own` kernels for operators that the runtime has
    /// none for.
    ///
    /// The model is run once, with zeros, so that what the device could not run is found here; not where it has a loop, which
    /// may never end, or own kernels. Sizes are those that the runtime asks for here, which are those that it will ask for on the device. Scratch memory of
    /// own kernels is not among them.
    ///
    /// # Errors
    /// If the file cannot be read, an operator has no kernel, or the runtime refuses the model or its plan.
    pub fn read(model: &[u8], own: &[OwnKernel]) -> Result<Self, Error> {
        let graph = Graph::read(Model::parse(model)?)?;
        let kernels = kernels::exact(&graph, own)?;
        let list: Vec<_> = kernels.iter().map(|k| k.kernel).collect();
        let has_loop = graph
            .operators()
            .any(|op| op.code == BuiltinOperator::WHILE);
        let setting = execute::Setting {
            kernels: &list,
            invokes: usize::from(!has_loop && !kernels.iter().any(|k| k.is_own)),
            ..execute::Setting::default()
        };
        let figures = execute::run(model, &setting, |_, _| {})?;
        Ok(Self {
            model_bytes: model.len(),
            kernels,
            head_bytes: (figures.arena_bytes - figures.tail_bytes).next_multiple_of(16),
            tail_bytes: figures.tail_bytes,
            inputs: figures.inputs,
            outputs: figures.outputs,
            self_test: None,
        })
    }

    /// The same with a self-test of `model`, the file that this is the interface of.
    ///
    /// # Errors
    /// As those of [`SelfTest::of`].
    pub fn with_self_test(
        mut self,
        model: &[u8],
        options: &selftest::Options,
    ) -> Result<Self, SelfTestError> {
        self.self_test = Some(SelfTest::of(model, options)?);
        Ok(self)
    }

    /// Bytes of the smallest arena: head and tail.
    pub fn arena_bytes(&self) -> usize {
        self.head_bytes + self.tail_bytes
    }
}

/// The type of Rust that stands for elements of a type; `None` where the runtime gives no access to them.
pub fn rust_type(element_type: Type) -> Option<&'static str> {
    Some(match element_type {
        Type::INT8 => "i8",
        Type::UINT8 | Type::BOOL => "u8",
        Type::INT16 => "i16",
        Type::UINT16 | Type::FLOAT16 => "u16",
        Type::INT32 => "i32",
        Type::UINT32 => "u32",
        Type::INT64 => "i64",
        Type::UINT64 => "u64",
        Type::FLOAT32 => "f32",
        _ => return None,
    })
}

/// What generated code asks the runtime to be.
const INTERFACE: u32 = runtime::INTERFACE;
