// A stand-in for TFLM's header of this name: what exported headers and the pages of doc/ use of it.
#ifndef STANDIN_MICRO_MICRO_MUTABLE_OP_RESOLVER_H_
#define STANDIN_MICRO_MICRO_MUTABLE_OP_RESOLVER_H_

#include <cstring>

#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/schema/schema_generated.h"

struct TFLMRegistration {
  int32_t builtin_code;
  const char* custom_name;
};

namespace tflite {

class MicroOpResolver {
 public:
  virtual const TFLMRegistration* FindOp(BuiltinOperator op) const = 0;
  virtual const TFLMRegistration* FindOp(const char* op) const = 0;
  virtual ~MicroOpResolver() {}
};

// Remembers what was added, each operator once, as many as there is room for.
template <unsigned int tOpCount>
class MicroMutableOpResolver : public MicroOpResolver {
 public:
  const TFLMRegistration* FindOp(BuiltinOperator op) const override {
    for (unsigned int i = 0; i < length_; ++i) {
      if (registrations_[i].builtin_code == op) return &registrations_[i];
    }
    return nullptr;
  }
  const TFLMRegistration* FindOp(const char* op) const override {
    for (unsigned int i = 0; i < length_; ++i) {
      const TFLMRegistration& known = registrations_[i];
      if (known.builtin_code == BuiltinOperator_CUSTOM && std::strcmp(known.custom_name, op) == 0) return &known;
    }
    return nullptr;
  }
  TfLiteStatus AddCustom(const char* name, const TFLMRegistration*) {
    if (FindOp(name) != nullptr || length_ >= tOpCount) return kTfLiteError;
    registrations_[length_++] = TFLMRegistration{BuiltinOperator_CUSTOM, name};
    return kTfLiteOk;
  }
  unsigned int GetRegistrationLength() { return length_; }

  TfLiteStatus AddAdd() { return AddBuiltin(BuiltinOperator_ADD); }
  TfLiteStatus AddAveragePool2D() { return AddBuiltin(BuiltinOperator_AVERAGE_POOL_2D); }
  TfLiteStatus AddConcatenation() { return AddBuiltin(BuiltinOperator_CONCATENATION); }
  TfLiteStatus AddConv2D() { return AddBuiltin(BuiltinOperator_CONV_2D); }
  TfLiteStatus AddDepthwiseConv2D() { return AddBuiltin(BuiltinOperator_DEPTHWISE_CONV_2D); }
  TfLiteStatus AddDepthToSpace() { return AddBuiltin(BuiltinOperator_DEPTH_TO_SPACE); }
  TfLiteStatus AddDequantize() { return AddBuiltin(BuiltinOperator_DEQUANTIZE); }
  TfLiteStatus AddEmbeddingLookup() { return AddBuiltin(BuiltinOperator_EMBEDDING_LOOKUP); }
  TfLiteStatus AddFloor() { return AddBuiltin(BuiltinOperator_FLOOR); }
  TfLiteStatus AddFullyConnected() { return AddBuiltin(BuiltinOperator_FULLY_CONNECTED); }
  TfLiteStatus AddL2Normalization() { return AddBuiltin(BuiltinOperator_L2_NORMALIZATION); }
  TfLiteStatus AddL2Pool2D() { return AddBuiltin(BuiltinOperator_L2_POOL_2D); }
  TfLiteStatus AddLogistic() { return AddBuiltin(BuiltinOperator_LOGISTIC); }
  TfLiteStatus AddMaxPool2D() { return AddBuiltin(BuiltinOperator_MAX_POOL_2D); }
  TfLiteStatus AddMul() { return AddBuiltin(BuiltinOperator_MUL); }
  TfLiteStatus AddRelu() { return AddBuiltin(BuiltinOperator_RELU); }
  TfLiteStatus AddRelu6() { return AddBuiltin(BuiltinOperator_RELU6); }
  TfLiteStatus AddReshape() { return AddBuiltin(BuiltinOperator_RESHAPE); }
  TfLiteStatus AddResizeBilinear() { return AddBuiltin(BuiltinOperator_RESIZE_BILINEAR); }
  TfLiteStatus AddSoftmax() { return AddBuiltin(BuiltinOperator_SOFTMAX); }
  TfLiteStatus AddSpaceToDepth() { return AddBuiltin(BuiltinOperator_SPACE_TO_DEPTH); }
  TfLiteStatus AddSvdf() { return AddBuiltin(BuiltinOperator_SVDF); }
  TfLiteStatus AddTanh() { return AddBuiltin(BuiltinOperator_TANH); }
  TfLiteStatus AddPad() { return AddBuiltin(BuiltinOperator_PAD); }
  TfLiteStatus AddGather() { return AddBuiltin(BuiltinOperator_GATHER); }
  TfLiteStatus AddBatchToSpaceNd() { return AddBuiltin(BuiltinOperator_BATCH_TO_SPACE_ND); }
  TfLiteStatus AddSpaceToBatchNd() { return AddBuiltin(BuiltinOperator_SPACE_TO_BATCH_ND); }
  TfLiteStatus AddTranspose() { return AddBuiltin(BuiltinOperator_TRANSPOSE); }
  TfLiteStatus AddMean() { return AddBuiltin(BuiltinOperator_MEAN); }
  TfLiteStatus AddSub() { return AddBuiltin(BuiltinOperator_SUB); }
  TfLiteStatus AddDiv() { return AddBuiltin(BuiltinOperator_DIV); }
  TfLiteStatus AddSqueeze() { return AddBuiltin(BuiltinOperator_SQUEEZE); }
  TfLiteStatus AddUnidirectionalSequenceLSTM() { return AddBuiltin(BuiltinOperator_UNIDIRECTIONAL_SEQUENCE_LSTM); }
  TfLiteStatus AddStridedSlice() { return AddBuiltin(BuiltinOperator_STRIDED_SLICE); }
  TfLiteStatus AddExp() { return AddBuiltin(BuiltinOperator_EXP); }
  TfLiteStatus AddSplit() { return AddBuiltin(BuiltinOperator_SPLIT); }
  TfLiteStatus AddLogSoftmax() { return AddBuiltin(BuiltinOperator_LOG_SOFTMAX); }
  TfLiteStatus AddCast() { return AddBuiltin(BuiltinOperator_CAST); }
  TfLiteStatus AddPrelu() { return AddBuiltin(BuiltinOperator_PRELU); }
  TfLiteStatus AddMaximum() { return AddBuiltin(BuiltinOperator_MAXIMUM); }
  TfLiteStatus AddArgMax() { return AddBuiltin(BuiltinOperator_ARG_MAX); }
  TfLiteStatus AddMinimum() { return AddBuiltin(BuiltinOperator_MINIMUM); }
  TfLiteStatus AddLess() { return AddBuiltin(BuiltinOperator_LESS); }
  TfLiteStatus AddNeg() { return AddBuiltin(BuiltinOperator_NEG); }
  TfLiteStatus AddPadV2() { return AddBuiltin(BuiltinOperator_PADV2); }
  TfLiteStatus AddGreater() { return AddBuiltin(BuiltinOperator_GREATER); }
  TfLiteStatus AddGreaterEqual() { return AddBuiltin(BuiltinOperator_GREATER_EQUAL); }
  TfLiteStatus AddLessEqual() { return AddBuiltin(BuiltinOperator_LESS_EQUAL); }
  TfLiteStatus AddSlice() { return AddBuiltin(BuiltinOperator_SLICE); }
  TfLiteStatus AddSin() { return AddBuiltin(BuiltinOperator_SIN); }
  TfLiteStatus AddTransposeConv() { return AddBuiltin(BuiltinOperator_TRANSPOSE_CONV); }
  TfLiteStatus AddExpandDims() { return AddBuiltin(BuiltinOperator_EXPAND_DIMS); }
  TfLiteStatus AddEqual() { return AddBuiltin(BuiltinOperator_EQUAL); }
  TfLiteStatus AddNotEqual() { return AddBuiltin(BuiltinOperator_NOT_EQUAL); }
  TfLiteStatus AddLog() { return AddBuiltin(BuiltinOperator_LOG); }
  TfLiteStatus AddSum() { return AddBuiltin(BuiltinOperator_SUM); }
  TfLiteStatus AddSqrt() { return AddBuiltin(BuiltinOperator_SQRT); }
  TfLiteStatus AddRsqrt() { return AddBuiltin(BuiltinOperator_RSQRT); }
  TfLiteStatus AddShape() { return AddBuiltin(BuiltinOperator_SHAPE); }
  TfLiteStatus AddArgMin() { return AddBuiltin(BuiltinOperator_ARG_MIN); }
  TfLiteStatus AddReduceMax() { return AddBuiltin(BuiltinOperator_REDUCE_MAX); }
  TfLiteStatus AddPack() { return AddBuiltin(BuiltinOperator_PACK); }
  TfLiteStatus AddLogicalOr() { return AddBuiltin(BuiltinOperator_LOGICAL_OR); }
  TfLiteStatus AddLogicalAnd() { return AddBuiltin(BuiltinOperator_LOGICAL_AND); }
  TfLiteStatus AddLogicalNot() { return AddBuiltin(BuiltinOperator_LOGICAL_NOT); }
  TfLiteStatus AddUnpack() { return AddBuiltin(BuiltinOperator_UNPACK); }
  TfLiteStatus AddReduceMin() { return AddBuiltin(BuiltinOperator_REDUCE_MIN); }
  TfLiteStatus AddFloorDiv() { return AddBuiltin(BuiltinOperator_FLOOR_DIV); }
  TfLiteStatus AddSquare() { return AddBuiltin(BuiltinOperator_SQUARE); }
  TfLiteStatus AddZerosLike() { return AddBuiltin(BuiltinOperator_ZEROS_LIKE); }
  TfLiteStatus AddFill() { return AddBuiltin(BuiltinOperator_FILL); }
  TfLiteStatus AddFloorMod() { return AddBuiltin(BuiltinOperator_FLOOR_MOD); }
  TfLiteStatus AddResizeNearestNeighbor() { return AddBuiltin(BuiltinOperator_RESIZE_NEAREST_NEIGHBOR); }
  TfLiteStatus AddLeakyRelu() { return AddBuiltin(BuiltinOperator_LEAKY_RELU); }
  TfLiteStatus AddSquaredDifference() { return AddBuiltin(BuiltinOperator_SQUARED_DIFFERENCE); }
  TfLiteStatus AddMirrorPad() { return AddBuiltin(BuiltinOperator_MIRROR_PAD); }
  TfLiteStatus AddAbs() { return AddBuiltin(BuiltinOperator_ABS); }
  TfLiteStatus AddSplitV() { return AddBuiltin(BuiltinOperator_SPLIT_V); }
  TfLiteStatus AddCeil() { return AddBuiltin(BuiltinOperator_CEIL); }
  TfLiteStatus AddReverseV2() { return AddBuiltin(BuiltinOperator_REVERSE_V2); }
  TfLiteStatus AddAddN() { return AddBuiltin(BuiltinOperator_ADD_N); }
  TfLiteStatus AddGatherNd() { return AddBuiltin(BuiltinOperator_GATHER_ND); }
  TfLiteStatus AddCos() { return AddBuiltin(BuiltinOperator_COS); }
  TfLiteStatus AddElu() { return AddBuiltin(BuiltinOperator_ELU); }
  TfLiteStatus AddQuantize() { return AddBuiltin(BuiltinOperator_QUANTIZE); }
  TfLiteStatus AddRound() { return AddBuiltin(BuiltinOperator_ROUND); }
  TfLiteStatus AddHardSwish() { return AddBuiltin(BuiltinOperator_HARD_SWISH); }
  TfLiteStatus AddIf() { return AddBuiltin(BuiltinOperator_IF); }
  TfLiteStatus AddWhile() { return AddBuiltin(BuiltinOperator_WHILE); }
  TfLiteStatus AddSelectV2() { return AddBuiltin(BuiltinOperator_SELECT_V2); }
  TfLiteStatus AddBatchMatMul() { return AddBuiltin(BuiltinOperator_BATCH_MATMUL); }
  TfLiteStatus AddCumSum() { return AddBuiltin(BuiltinOperator_CUMSUM); }
  TfLiteStatus AddCallOnce() { return AddBuiltin(BuiltinOperator_CALL_ONCE); }
  TfLiteStatus AddBroadcastTo() { return AddBuiltin(BuiltinOperator_BROADCAST_TO); }
  TfLiteStatus AddReduceAll() { return AddBuiltin(BuiltinOperator_REDUCE_ALL); }
  TfLiteStatus AddVarHandle() { return AddBuiltin(BuiltinOperator_VAR_HANDLE); }
  TfLiteStatus AddReadVariable() { return AddBuiltin(BuiltinOperator_READ_VARIABLE); }
  TfLiteStatus AddAssignVariable() { return AddBuiltin(BuiltinOperator_ASSIGN_VARIABLE); }
  TfLiteStatus AddBroadcastArgs() { return AddBuiltin(BuiltinOperator_BROADCAST_ARGS); }
  TfLiteStatus AddDynamicUpdateSlice() { return AddBuiltin(BuiltinOperator_DYNAMIC_UPDATE_SLICE); }

  TfLiteStatus AddCircularBuffer() { return AddCustom("CIRCULAR_BUFFER", nullptr); }
  TfLiteStatus AddDelay() { return AddCustom("SignalDelay", nullptr); }
  TfLiteStatus AddEnergy() { return AddCustom("SignalEnergy", nullptr); }
  TfLiteStatus AddFftAutoScale() { return AddCustom("SignalFftAutoScale", nullptr); }
  TfLiteStatus AddFilterBank() { return AddCustom("SignalFilterBank", nullptr); }
  TfLiteStatus AddFilterBankLog() { return AddCustom("SignalFilterBankLog", nullptr); }
  TfLiteStatus AddFilterBankSpectralSubtraction() { return AddCustom("SignalFilterBankSpectralSubtraction", nullptr); }
  TfLiteStatus AddFilterBankSquareRoot() { return AddCustom("SignalFilterBankSquareRoot", nullptr); }
  TfLiteStatus AddFramer() { return AddCustom("SignalFramer", nullptr); }
  TfLiteStatus AddIrfft() { return AddCustom("SignalIrfft", nullptr); }
  TfLiteStatus AddOverlapAdd() { return AddCustom("SignalOverlapAdd", nullptr); }
  TfLiteStatus AddPCAN() { return AddCustom("SignalPCAN", nullptr); }
  TfLiteStatus AddRfft() { return AddCustom("SignalRfft", nullptr); }
  TfLiteStatus AddStacker() { return AddCustom("SignalStacker", nullptr); }
  TfLiteStatus AddWindow() { return AddCustom("SignalWindow", nullptr); }
  TfLiteStatus AddDecode() { return AddCustom("TFLM_DECODE", nullptr); }
  TfLiteStatus AddDetectionPostprocess() { return AddCustom("TFLite_Detection_PostProcess", nullptr); }
  TfLiteStatus AddEthosU() { return AddCustom("ethos-u", nullptr); }

 private:
  TfLiteStatus AddBuiltin(BuiltinOperator op) {
    if (FindOp(op) != nullptr || length_ >= tOpCount) return kTfLiteError;
    registrations_[length_++] = TFLMRegistration{op, nullptr};
    return kTfLiteOk;
  }

  TFLMRegistration registrations_[tOpCount];
  unsigned int length_ = 0;
};

}  // namespace tflite

#endif
