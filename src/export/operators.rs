//! The operators of a model, and how TFLM's `MicroMutableOpResolver` calls the methods that register them.
//!
//! Names as in `micro_mutable_op_resolver.h` of TFLM, August 2026. Methods came one after the other, none ever left.

use std::collections::BTreeMap;

use arenaplan_schema::tflite::BuiltinOperator as Op;

use crate::graph::{Graph, Operator};

/// An operator that a model uses, once for all its uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// `CONV_2D`, the name of a custom operator, or `BUILTIN_N` for one newer than this tool.
    pub name: String,
    /// Whether it is a custom operator, found by its name.
    pub is_custom: bool,
    /// The method that registers it; `None` when TFLM brings no kernel for it.
    pub method: Option<&'static str>,
}

/// The operators of all subgraphs, in the order of their numbers, custom ones last. TFLM looks up those that nothing runs, too.
pub fn used(graph: &Graph<'_>) -> Vec<Used> {
    let mut all = BTreeMap::new();
    for op in graph.operators() {
        let is_custom = op.code == Op::CUSTOM;
        let name = op.name();
        all.entry((is_custom, op.code.0, name.clone()))
            .or_insert_with(|| Used {
                name,
                is_custom,
                method: method(op),
            });
    }
    all.into_values().collect()
}

/// The method of `MicroMutableOpResolver` that registers the operator.
pub fn method(op: &Operator<'_>) -> Option<&'static str> {
    match op.code {
        Op::CUSTOM => custom(op.custom?),
        code => builtin(code),
    }
}

fn builtin(code: Op) -> Option<&'static str> {
    Some(match code {
        Op::ABS => "AddAbs",
        Op::ADD => "AddAdd",
        Op::ADD_N => "AddAddN",
        Op::ARG_MAX => "AddArgMax",
        Op::ARG_MIN => "AddArgMin",
        Op::ASSIGN_VARIABLE => "AddAssignVariable",
        Op::AVERAGE_POOL_2D => "AddAveragePool2D",
        Op::BATCH_MATMUL => "AddBatchMatMul",
        Op::BATCH_TO_SPACE_ND => "AddBatchToSpaceNd",
        Op::BROADCAST_ARGS => "AddBroadcastArgs",
        Op::BROADCAST_TO => "AddBroadcastTo",
        Op::CALL_ONCE => "AddCallOnce",
        Op::CAST => "AddCast",
        Op::CEIL => "AddCeil",
        Op::CONCATENATION => "AddConcatenation",
        Op::CONV_2D => "AddConv2D",
        Op::COS => "AddCos",
        Op::CUMSUM => "AddCumSum",
        Op::DEPTHWISE_CONV_2D => "AddDepthwiseConv2D",
        Op::DEPTH_TO_SPACE => "AddDepthToSpace",
        Op::DEQUANTIZE => "AddDequantize",
        Op::DIV => "AddDiv",
        Op::DYNAMIC_UPDATE_SLICE => "AddDynamicUpdateSlice",
        Op::ELU => "AddElu",
        Op::EMBEDDING_LOOKUP => "AddEmbeddingLookup",
        Op::EQUAL => "AddEqual",
        Op::EXP => "AddExp",
        Op::EXPAND_DIMS => "AddExpandDims",
        Op::FILL => "AddFill",
        Op::FLOOR => "AddFloor",
        Op::FLOOR_DIV => "AddFloorDiv",
        Op::FLOOR_MOD => "AddFloorMod",
        Op::FULLY_CONNECTED => "AddFullyConnected",
        Op::GATHER => "AddGather",
        Op::GATHER_ND => "AddGatherNd",
        Op::GREATER => "AddGreater",
        Op::GREATER_EQUAL => "AddGreaterEqual",
        Op::HARD_SWISH => "AddHardSwish",
        Op::IF => "AddIf",
        Op::L2_NORMALIZATION => "AddL2Normalization",
        Op::L2_POOL_2D => "AddL2Pool2D",
        Op::LEAKY_RELU => "AddLeakyRelu",
        Op::LESS => "AddLess",
        Op::LESS_EQUAL => "AddLessEqual",
        Op::LOG => "AddLog",
        Op::LOGICAL_AND => "AddLogicalAnd",
        Op::LOGICAL_NOT => "AddLogicalNot",
        Op::LOGICAL_OR => "AddLogicalOr",
        Op::LOGISTIC => "AddLogistic",
        Op::LOG_SOFTMAX => "AddLogSoftmax",
        Op::MAXIMUM => "AddMaximum",
        Op::MAX_POOL_2D => "AddMaxPool2D",
        Op::MEAN => "AddMean",
        Op::MINIMUM => "AddMinimum",
        Op::MIRROR_PAD => "AddMirrorPad",
        Op::MUL => "AddMul",
        Op::NEG => "AddNeg",
        Op::NOT_EQUAL => "AddNotEqual",
        Op::PACK => "AddPack",
        Op::PAD => "AddPad",
        Op::PADV2 => "AddPadV2",
        Op::PRELU => "AddPrelu",
        Op::QUANTIZE => "AddQuantize",
        Op::READ_VARIABLE => "AddReadVariable",
        Op::REDUCE_ALL => "AddReduceAll",
        Op::REDUCE_MAX => "AddReduceMax",
        Op::REDUCE_MIN => "AddReduceMin",
        Op::RELU => "AddRelu",
        Op::RELU6 => "AddRelu6",
        Op::RESHAPE => "AddReshape",
        Op::RESIZE_BILINEAR => "AddResizeBilinear",
        Op::RESIZE_NEAREST_NEIGHBOR => "AddResizeNearestNeighbor",
        Op::REVERSE_V2 => "AddReverseV2",
        Op::ROUND => "AddRound",
        Op::RSQRT => "AddRsqrt",
        Op::SELECT_V2 => "AddSelectV2",
        Op::SHAPE => "AddShape",
        Op::SIN => "AddSin",
        Op::SLICE => "AddSlice",
        Op::SOFTMAX => "AddSoftmax",
        Op::SPACE_TO_BATCH_ND => "AddSpaceToBatchNd",
        Op::SPACE_TO_DEPTH => "AddSpaceToDepth",
        Op::SPLIT => "AddSplit",
        Op::SPLIT_V => "AddSplitV",
        Op::SQRT => "AddSqrt",
        Op::SQUARE => "AddSquare",
        Op::SQUARED_DIFFERENCE => "AddSquaredDifference",
        Op::SQUEEZE => "AddSqueeze",
        Op::STRIDED_SLICE => "AddStridedSlice",
        Op::SUB => "AddSub",
        Op::SUM => "AddSum",
        Op::SVDF => "AddSvdf",
        Op::TANH => "AddTanh",
        Op::TRANSPOSE => "AddTranspose",
        Op::TRANSPOSE_CONV => "AddTransposeConv",
        Op::UNIDIRECTIONAL_SEQUENCE_LSTM => "AddUnidirectionalSequenceLSTM",
        Op::UNPACK => "AddUnpack",
        Op::VAR_HANDLE => "AddVarHandle",
        Op::WHILE => "AddWhile",
        Op::ZEROS_LIKE => "AddZerosLike",
        _ => return None,
    })
}

fn custom(name: &str) -> Option<&'static str> {
    Some(match name {
        "CIRCULAR_BUFFER" => "AddCircularBuffer",
        "SignalDelay" => "AddDelay",
        "SignalEnergy" => "AddEnergy",
        "SignalFftAutoScale" => "AddFftAutoScale",
        "SignalFilterBank" => "AddFilterBank",
        "SignalFilterBankLog" => "AddFilterBankLog",
        "SignalFilterBankSpectralSubtraction" => "AddFilterBankSpectralSubtraction",
        "SignalFilterBankSquareRoot" => "AddFilterBankSquareRoot",
        "SignalFramer" => "AddFramer",
        "SignalIrfft" => "AddIrfft",
        "SignalOverlapAdd" => "AddOverlapAdd",
        "SignalPCAN" => "AddPCAN",
        "SignalRfft" => "AddRfft",
        "SignalStacker" => "AddStacker",
        "SignalWindow" => "AddWindow",
        "TFLM_DECODE" => "AddDecode",
        "TFLite_Detection_PostProcess" => "AddDetectionPostprocess",
        "ethos-u" => "AddEthosU",
        _ => return None,
    })
}
