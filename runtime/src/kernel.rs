//! What a kernel is: an operator's code, and what it promises about memory.

use core::fmt;

use crate::check::{PARTS, Parts};
use crate::contract::{Contract, Promise, promise};
use crate::error::Fault;
use crate::node::Node;
use crate::prepared::{Find, find};
use crate::resources::{RESOURCES, Resources};
use crate::walk::{Calls, calls};

/// The number of an operator in the schema's `BuiltinOperator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub i32);

macro_rules! codes {
    ($($name:ident $number:literal)*) => {
        impl Code {
            $(
                #[doc = concat!("`", stringify!($name), "`")]
                pub const $name: Code = Code($number);
            )*
        }

        /// Every code that has a name here, with the name as the schema spells it.
        pub const CODES: &[(Code, &str)] = &[$((Code($number), stringify!($name))),*];
    };
}

codes! {
    ADD 0 AVERAGE_POOL_2D 1 CONCATENATION 2 CONV_2D 3 DEPTHWISE_CONV_2D 4 DEPTH_TO_SPACE 5 DEQUANTIZE 6 FLOOR 8
    FULLY_CONNECTED 9 L2_NORMALIZATION 11 L2_POOL_2D 12 LOGISTIC 14 MAX_POOL_2D 17 MUL 18 RELU 19 RELU6 21 RESHAPE 22
    RESIZE_BILINEAR 23 SOFTMAX 25 SPACE_TO_DEPTH 26 SVDF 27 TANH 28 CUSTOM 32 PAD 34 GATHER 36 BATCH_TO_SPACE_ND 37
    SPACE_TO_BATCH_ND 38 TRANSPOSE 39 MEAN 40 SUB 41 DIV 42 SQUEEZE 43 UNIDIRECTIONAL_SEQUENCE_LSTM 44 STRIDED_SLICE 45
    EXP 47 SPLIT 49 LOG_SOFTMAX 50 CAST 53 PRELU 54 MAXIMUM 55 ARG_MAX 56 MINIMUM 57 LESS 58 NEG 59 PADV2 60 GREATER 61
    GREATER_EQUAL 62 LESS_EQUAL 63 SLICE 65 SIN 66 TRANSPOSE_CONV 67 TILE 69 EXPAND_DIMS 70 EQUAL 71 NOT_EQUAL 72 LOG 73
    SUM 74 SQRT 75 RSQRT 76 SHAPE 77 ARG_MIN 79 REDUCE_MAX 82 PACK 83 LOGICAL_OR 84 LOGICAL_AND 86 LOGICAL_NOT 87
    UNPACK 88 REDUCE_MIN 89 FLOOR_DIV 90 SQUARE 92 ZEROS_LIKE 93 FILL 94 FLOOR_MOD 95 RESIZE_NEAREST_NEIGHBOR 97
    LEAKY_RELU 98 SQUARED_DIFFERENCE 99 MIRROR_PAD 100 ABS 101 SPLIT_V 102 CEIL 104 ADD_N 106 GATHER_ND 107 COS 108
    ELU 111 QUANTIZE 114 ROUND 116 HARD_SWISH 117 IF 118 WHILE 119 SELECT_V2 123 BATCH_MATMUL 126 CUMSUM 128
    CALL_ONCE 129 BROADCAST_TO 130 VAR_HANDLE 142 READ_VARIABLE 143 ASSIGN_VARIABLE 144
}

/// Bytes of scratch memory that an operator takes.
pub(crate) type ScratchBytes = fn(&Node<'_>) -> Result<usize, Fault>;

/// The code of one operator, and what it promises.
///
/// Kernels are constants ([`ops`](crate::ops)); only those that an application lists are linked into it.
#[derive(Clone, Copy)]
pub struct Kernel {
    pub(crate) code: Code,
    pub(crate) custom: &'static str,
    pub(crate) run: fn(&Node<'_>) -> Result<(), Fault>,
    pub(crate) scratch: Option<ScratchBytes>,
    pub(crate) contract: Contract,
    pub(crate) promise: Promise,
    /// Walks through the subgraphs that the operator calls, where it calls any.
    pub(crate) calls: Option<Calls>,
    pub(crate) resources: Option<&'static Resources>,
    /// Tells which parts of its input nobody reads any more, where the operator reads a part.
    pub(crate) parts: Option<&'static Parts>,
    /// Finds prepared data, where the operator may have any.
    pub(crate) prepared: Option<Find>,
}

impl Kernel {
    /// The kernel of a builtin operator, of which nothing is promised.
    pub const fn builtin(code: Code, run: fn(&Node<'_>) -> Result<(), Fault>) -> Self {
        Self {
            code,
            custom: "",
            run,
            scratch: None,
            contract: Contract::Apart,
            promise: promise(Contract::Apart),
            // By the code, so that they are there for an application's own kernels, too.
            calls: match code {
                Code::CALL_ONCE | Code::IF | Code::WHILE => Some(calls),
                _ => None,
            },
            resources: match code {
                Code::VAR_HANDLE => Some(&RESOURCES),
                _ => None,
            },
            parts: None,
            prepared: None,
        }
    }

    /// The kernel of a custom operator, by the name that models have for it.
    pub const fn custom(name: &'static str, run: fn(&Node<'_>) -> Result<(), Fault>) -> Self {
        Self {
            custom: name,
            ..Self::builtin(Code::CUSTOM, run)
        }
    }

    /// With memory of its own while it runs: `bytes` says how many, from shapes, types, options and constants.
    pub const fn with_scratch(mut self, bytes: fn(&Node<'_>) -> Result<usize, Fault>) -> Self {
        self.scratch = Some(bytes);
        self
    }

    /// With factors of channels that may be prepared; an operator that has its own in the file takes no scratch memory.
    pub(crate) const fn with_prepared_factors(mut self) -> Self {
        self.prepared = Some(find);
        self
    }

    /// With what it promises about its inputs and outputs.
    pub const fn with_contract(mut self, contract: Contract) -> Self {
        self.contract = contract;
        self.promise = promise(contract);
        self.parts = match contract {
            Contract::Slice => Some(&PARTS),
            _ => None,
        };
        self
    }

    /// With another function that does the work: one that calls this kernel's own ([`run`](Self::run)), for example.
    pub const fn with_run(mut self, run: fn(&Node<'_>) -> Result<(), Fault>) -> Self {
        self.run = run;
        self
    }

    /// Runs the operator.
    ///
    /// # Errors
    /// What the operator cannot be run for.
    pub fn run(&self, node: &Node<'_>) -> Result<(), Fault> {
        (self.run)(node)
    }

    /// The operator that it runs.
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The name of the custom operator that it runs; empty for a builtin one.
    pub const fn custom_name(&self) -> &'static str {
        self.custom
    }

    /// What it promises about its inputs and outputs.
    pub const fn contract(&self) -> Contract {
        self.contract
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({}{})", self.code.0, self.custom)
    }
}
