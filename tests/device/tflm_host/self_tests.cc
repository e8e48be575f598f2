// Runs a model's self-test on TensorFlow Lite Micro, on this machine, with kernels of another order.
//
// usage: program MODEL right | conv-forwards | conv-backwards | depthwise-forwards | depthwise-backwards | again OPERATOR
//
// `again` invokes the kernel of all operators of a kind (`ADD`, say) twice, so that the second time it reads what the first time wrote over its inputs.
// Prints what the self-test prints, then `passed` or `failed`.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "python/tflite_micro/python_ops_resolver.h"
#include "self_test.h"
#include "tensorflow/lite/kernels/internal/common.h"
#include "tensorflow/lite/micro/compatibility.h"
#include "tensorflow/lite/micro/kernels/conv.h"
#include "tensorflow/lite/micro/kernels/kernel_util.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#include "tensorflow/lite/schema/schema_generated.h"

namespace {

constexpr size_t kArenaBytes = 16 << 20;
alignas(16) uint8_t arena[kArenaBytes];

bool is_backwards = false;
// TFLM's own kernel of the operator.
TfLiteStatus (*invoke_once)(TfLiteContext*, TfLiteNode*) = nullptr;

// Sizes and steps of one direction of a window.
struct Direction {
  int input, filter, output, stride, dilation, padding;
  int At(int o, int f) const { return o * stride + f * dilation - padding; }
  bool Has(int at) const { return at >= 0 && at < input; }
};

// CONV_2D and DEPTHWISE_CONV_2D of int8, element by element, from the first or from the last; other types as TFLM does.
template <bool kDepthwise>
TfLiteStatus Windows(TfLiteContext* context, TfLiteNode* node) {
  const auto& data = *static_cast<const tflite::OpDataConv*>(node->user_data);
  const auto* input = tflite::micro::GetEvalInput(context, node, 0);
  const auto* filter = tflite::micro::GetEvalInput(context, node, 1);
  const auto* bias = tflite::NumInputs(node) > 2 ? tflite::micro::GetEvalInput(context, node, 2) : nullptr;
  auto* output = tflite::micro::GetEvalOutput(context, node, 0);
  if (input->type != kTfLiteInt8 || filter->type != kTfLiteInt8) return invoke_once(context, node);
  int strides[2], dilations[2];
  if (kDepthwise) {
    const auto& p = *static_cast<const TfLiteDepthwiseConvParams*>(node->builtin_data);
    strides[0] = p.stride_height, strides[1] = p.stride_width;
    dilations[0] = p.dilation_height_factor, dilations[1] = p.dilation_width_factor;
  } else {
    const auto& p = *static_cast<const TfLiteConvParams*>(node->builtin_data);
    strides[0] = p.stride_height, strides[1] = p.stride_width;
    dilations[0] = p.dilation_height_factor, dilations[1] = p.dilation_width_factor;
  }
  const auto in = tflite::micro::GetTensorShape(input), out = tflite::micro::GetTensorShape(output);
  const auto window = tflite::micro::GetTensorShape(filter);
  const Direction rows{in.Dims(1), window.Dims(1), out.Dims(1), strides[0], dilations[0], data.padding.height};
  const Direction cols{in.Dims(2), window.Dims(2), out.Dims(2), strides[1], dilations[1], data.padding.width};
  const int depth = in.Dims(3), channels = out.Dims(3), sources = window.Dims(3);
  const int8_t* from = tflite::micro::GetTensorData<int8_t>(input);
  const int8_t* weights = tflite::micro::GetTensorData<int8_t>(filter);
  const int32_t* biases = bias == nullptr ? nullptr : tflite::micro::GetTensorData<int32_t>(bias);
  int8_t* to = tflite::micro::GetTensorData<int8_t>(output);
  const int count = out.FlatSize();
  for (int k = 0; k < count; ++k) {
    const int index = is_backwards ? count - 1 - k : k;
    const int channel = index % channels, x = index / channels % cols.output;
    const int y = index / channels / cols.output % rows.output;
    const int batch = index / channels / cols.output / rows.output;
    // Input channels that this output channel reads: its own, or those of its group.
    const int first = kDepthwise ? channel / (channels / depth) : channel / (channels / (depth / sources)) * sources;
    const int last = kDepthwise ? first + 1 : first + sources;
    int32_t sum = biases == nullptr ? 0 : biases[channel];
    for (int row = 0; row < rows.filter; ++row) {
      for (int col = 0; col < cols.filter; ++col) {
        const int in_y = rows.At(y, row), in_x = cols.At(x, col);
        if (!rows.Has(in_y) || !cols.Has(in_x)) continue;
        const int8_t* pixel = from + ((batch * rows.input + in_y) * cols.input + in_x) * depth;
        for (int c = first; c < last; ++c) {
          const int weight = kDepthwise ? (row * cols.filter + col) * channels + channel
                                        : ((channel * rows.filter + row) * cols.filter + col) * sources + c - first;
          sum += (pixel[c] - data.input_zero_point) * weights[weight];
        }
      }
    }
    int32_t value = tflite::MultiplyByQuantizedMultiplier(sum, data.per_channel_output_multiplier[channel],
                                                          data.per_channel_output_shift[channel]);
    value += data.output_zero_point;
    if (value < data.output_activation_min) value = data.output_activation_min;
    if (value > data.output_activation_max) value = data.output_activation_max;
    to[index] = static_cast<int8_t>(value);
  }
  return kTfLiteOk;
}

TfLiteStatus Twice(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteStatus status = invoke_once(context, node);
  return status == kTfLiteOk ? invoke_once(context, node) : status;
}

// All operators, one of them with another kernel.
class Resolver : public tflite::PythonOpsResolver {
 public:
  const TFLMRegistration* FindOp(tflite::BuiltinOperator op) const override {
    return has_other_ && op == code_ ? &other_ : tflite::PythonOpsResolver::FindOp(op);
  }
  bool Replace(tflite::BuiltinOperator op, TfLiteStatus (*invoke)(TfLiteContext*, TfLiteNode*)) {
    const TFLMRegistration* found = tflite::PythonOpsResolver::FindOp(op);
    if (found == nullptr) return false;
    other_ = *found;
    invoke_once = found->invoke;
    other_.invoke = invoke;
    code_ = op;
    has_other_ = true;
    return true;
  }

 private:
  TF_LITE_REMOVE_VIRTUAL_DELETE
  bool has_other_ = false;
  tflite::BuiltinOperator code_ = tflite::BuiltinOperator_ADD;
  TFLMRegistration other_ = {};
};

bool Apply(const char* mode, const char* name, Resolver& resolver) {
  is_backwards = strstr(mode, "backwards") != nullptr;
  if (strcmp(mode, "right") == 0) return true;
  if (strncmp(mode, "conv", 4) == 0) return resolver.Replace(tflite::BuiltinOperator_CONV_2D, Windows<false>);
  if (strncmp(mode, "depthwise", 9) == 0) {
    return resolver.Replace(tflite::BuiltinOperator_DEPTHWISE_CONV_2D, Windows<true>);
  }
  if (strcmp(mode, "again") != 0) return false;
  for (const auto op : tflite::EnumValuesBuiltinOperator()) {
    if (strcmp(tflite::EnumNameBuiltinOperator(op), name) == 0) return resolver.Replace(op, Twice);
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // Models start at a multiple of 16.
  char* const model = static_cast<char*>(aligned_alloc(16, (bytes.size() + 15) / 16 * 16));
  memcpy(model, bytes.data(), bytes.size());
  Resolver resolver;
  if (!Apply(argv[2], argc > 3 ? argv[3] : "", resolver)) return 2;
  auto* allocator = tflite::MicroAllocator::Create(arena, kArenaBytes);
  auto* variables = tflite::MicroResourceVariables::Create(allocator, 16);
  tflite::MicroInterpreter interpreter(tflite::GetModel(model), resolver, allocator, variables);
  if (interpreter.AllocateTensors() != kTfLiteOk) return 2;
  const TfLiteStatus status = arenaplan::model::SelfTest(interpreter);
  printf("%s\n", status == kTfLiteOk ? "passed" : "failed");
  return 0;
}
