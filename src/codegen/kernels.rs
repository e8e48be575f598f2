//! Which kernels a model needs: one for each kind of operator, for one type of elements where all operators of the kind have
//! that type and the runtime has such a kernel.

use std::collections::{BTreeMap, BTreeSet};

use arenaplan_runtime::{Code, Fault, Kernel, Node, Type, ops};
use arenaplan_schema::tflite::BuiltinOperator;

use super::error::Error;
use super::names::is_path;
use crate::graph::{Graph, Operator};

/// Which kernels a program gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operators {
    /// Those that the model needs.
    #[default]
    Exact,
    /// All that the runtime has.
    All,
}

/// A kernel that the application has, for an operator that the runtime has none for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnKernel {
    /// The operator: the name of a custom one, or that of the schema (`REDUCE_ALL`).
    pub operator: String,
    /// Where the kernel is, as a path of Rust: `crate::REDUCE_ALL`.
    pub path: String,
}

impl OwnKernel {
    /// The kernel at `path`, for the operators called `operator`.
    ///
    /// # Errors
    /// [`Error::Name`] if `path` is no path.
    pub fn new(operator: impl Into<String>, path: impl Into<String>) -> Result<Self, Error> {
        let (operator, path) = (operator.into(), path.into());
        match is_path(&path) {
            true => Ok(Self { operator, path }),
            false => Err(Error::Name {
                what: "kernel",
                name: path,
                reason: "is no path of Rust, such as \"crate::MY_KERNEL\"",
            }),
        }
    }
}

/// A kernel that a model needs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KernelUse {
    /// The operator's name.
    pub operator: String,
    /// Where the kernel is, as a path of Rust.
    pub path: String,
    /// The kernel, or for one of the application what stands for it here: it cannot run, and promises nothing.
    pub kernel: Kernel,
    /// Whether it is one of the application's.
    pub is_own: bool,
}

macro_rules! narrow {
    ($($operator:ident: $($name:ident)*;)*) => {
        /// Kernels that have code for one type alone: the operator, their name, the kernel.
        const NARROW: &[(&str, &str, Kernel)] =
            &[$($((stringify!($operator), stringify!($name), ops::$name),)*)*];
    };
}

narrow! {
    ADD: ADD_INT8;
    AVERAGE_POOL_2D: AVERAGE_POOL_2D_FLOAT32 AVERAGE_POOL_2D_INT16 AVERAGE_POOL_2D_INT8;
    BATCH_MATMUL: BATCH_MATMUL_FLOAT32 BATCH_MATMUL_INT16 BATCH_MATMUL_INT8;
    CONV_2D: CONV_2D_INT8;
    DEPTHWISE_CONV_2D: DEPTHWISE_CONV_2D_INT8;
    FULLY_CONNECTED: FULLY_CONNECTED_INT8 FULLY_CONNECTED_INT8_ONE_SCALE;
    LOGISTIC: LOGISTIC_FLOAT32 LOGISTIC_INT16 LOGISTIC_INT8;
    MAX_POOL_2D: MAX_POOL_2D_FLOAT32 MAX_POOL_2D_INT16 MAX_POOL_2D_INT8;
    MEAN: MEAN_FLOAT32 MEAN_INT16 MEAN_INT8;
    MUL: MUL_INT8;
    QUANTIZE: QUANTIZE_FLOAT32 REQUANTIZE;
    REDUCE_MAX: REDUCE_MAX_FLOAT32 REDUCE_MAX_INT8;
    REDUCE_MIN: REDUCE_MIN_FLOAT32 REDUCE_MIN_INT8;
    SOFTMAX: SOFTMAX_FLOAT32 SOFTMAX_INT16 SOFTMAX_INT8;
    SUM: SUM_FLOAT32 SUM_INT16 SUM_INT8;
    SVDF: SVDF_FLOAT32 SVDF_INT8;
    TANH: TANH_FLOAT32 TANH_INT16 TANH_INT8;
    TRANSPOSE_CONV: TRANSPOSE_CONV_FLOAT32 TRANSPOSE_CONV_INT16 TRANSPOSE_CONV_INT8;
    UNIDIRECTIONAL_SEQUENCE_LSTM: UNIDIRECTIONAL_SEQUENCE_LSTM_FLOAT32 UNIDIRECTIONAL_SEQUENCE_LSTM_INT16
        UNIDIRECTIONAL_SEQUENCE_LSTM_INT8;
}

/// The path of what the runtime has.
pub(super) const OPS: &str = "::arenaplan_runtime::ops::";

/// The kernels that the operators of `graph` need, by name.
///
/// # Errors
/// [`Error::NoKernel`] with all operators that neither the runtime nor `own` has a kernel for.
pub fn exact(graph: &Graph<'_>, own: &[OwnKernel]) -> Result<Vec<KernelUse>, Error> {
    // A custom operator may have the name of a builtin one.
    let mut kinds = BTreeMap::<(String, i32), Kind<'_, '_>>::new();
    for operator in graph.operators() {
        let key = (operator.name(), operator.code.0);
        let narrow = narrow(graph, operator);
        let kind = kinds.entry(key).or_insert_with(|| Kind {
            first: operator,
            narrow: narrow.clone(),
        });
        kind.narrow.retain(|name| narrow.contains(name));
    }
    let mut list = Vec::new();
    let mut missing = Vec::new();
    for ((name, _), kind) in kinds {
        match kind.kernel(&name, own) {
            Some(found) => list.push(found),
            None => missing.push((name, kind.first.label())),
        }
    }
    match missing.first() {
        None => Ok(list),
        Some((_, operator)) => Err(Error::NoKernel {
            operator: operator.clone(),
            names: missing.into_iter().map(|(name, _)| name).collect(),
        }),
    }
}

/// All operators of one name.
struct Kind<'g, 'a> {
    first: &'g Operator<'a>,
    /// The kernels of one type that run all of them, that with the least code first.
    narrow: Vec<&'static str>,
}

impl Kind<'_, '_> {
    fn kernel(&self, name: &str, own: &[OwnKernel]) -> Option<KernelUse> {
        let found = |path: String, kernel, is_own| KernelUse {
            operator: name.to_owned(),
            path,
            kernel,
            is_own,
        };
        if let Some(own) = own.iter().rev().find(|own| own.operator == name) {
            return Some(found(own.path.clone(), self.stand_in(name), true));
        }
        if let Some(name) = self.narrow.first()
            && let Some((_, name, kernel)) = NARROW.iter().find(|(_, n, _)| n == name)
        {
            return Some(found(format!("{OPS}{name}"), *kernel, false));
        }
        let kernel = match self.first.code {
            // The runtime has none of them.
            BuiltinOperator::CUSTOM => None,
            code => ops::find(ops::ALL, Code(code.0)),
        }?;
        Some(found(format!("{OPS}{name}"), *kernel, false))
    }

    /// What is as large as the application's kernel: one of the runtime for the same operator, or one that does nothing.
    fn stand_in(&self, name: &str) -> Kernel {
        fn none(_: &Node<'_>) -> Result<(), Fault> {
            Err(Fault::Options)
        }
        match self.first.code {
            BuiltinOperator::CUSTOM => Kernel::custom(interned(name), none),
            code => match ops::find(ops::ALL, Code(code.0)) {
                Some(kernel) => *kernel,
                None => Kernel::builtin(Code(code.0), none),
            },
        }
    }
}

/// The kernels of one type that run an operator, that with the least code first.
fn narrow(graph: &Graph<'_>, operator: &Operator<'_>) -> Vec<&'static str> {
    let name = operator.name();
    let element_type = |tensor| Type(graph.tensor(tensor).ty.0);
    let inputs = operator.inputs.iter().flatten().map(|&t| element_type(t));
    // Biases, shapes and axes are left out.
    let data: Vec<Type> = inputs.filter(|&t| t != Type::INT32).collect();
    let output = operator.outputs.first().map(|&t| element_type(t));
    let all = |types: &[Type]| !data.is_empty() && data.iter().all(|t| types.contains(t));
    let suffix = match output {
        _ if name == "QUANTIZE" && all(&[Type::FLOAT32]) => "FLOAT32",
        _ if name == "QUANTIZE" => "",
        // Some have states of int16.
        Some(Type::INT8) if data.contains(&Type::INT8) && all(&[Type::INT8, Type::INT16]) => "INT8",
        Some(Type::FLOAT32) if all(&[Type::FLOAT32]) => "FLOAT32",
        Some(Type::INT16) if all(&[Type::INT16]) => "INT16",
        _ => return Vec::new(),
    };
    let mut wanted = Vec::new();
    if suffix.is_empty() {
        wanted.push("REQUANTIZE".to_owned());
    }
    let filter = operator.inputs.get(1).copied().flatten();
    if filter.is_some_and(|filter| graph.tensor(filter).scales() <= 1) {
        wanted.push(format!("{name}_{suffix}_ONE_SCALE"));
    }
    wanted.push(format!("{name}_{suffix}"));
    let known = |wanted: &String| {
        let found = NARROW
            .iter()
            .find(|(of, name, _)| *of == operator.name() && name == wanted);
        found.map(|&(_, name, _)| name)
    };
    wanted.iter().filter_map(known).collect()
}

/// The name of a custom operator as kernels have it. Each is kept once, for as long as the program runs.
fn interned(name: &str) -> &'static str {
    use std::sync::{Mutex, PoisonError};
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.get(name) {
        Some(name) => name,
        None => {
            let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
            names.insert(kept);
            kept
        }
    }
}

/// Every kernel of one type that is known here: the operator, the kernel's name in [`arenaplan_runtime::ops`], and the kernel.
pub fn narrow_kernels() -> &'static [(&'static str, &'static str, Kernel)] {
    NARROW
}
