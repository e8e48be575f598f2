// A stand-in for TFLM's header of this name: an interpreter that plays back what was recorded.
#ifndef STANDIN_MICRO_MICRO_INTERPRETER_H_
#define STANDIN_MICRO_MICRO_INTERPRETER_H_

#include "tensorflow/lite/c/common.h"

namespace tflite {

class MicroInterpreter {
 public:
  // An entry for each input and output.
  TfLiteTensor* inputs = nullptr;
  TfLiteTensor* outputs = nullptr;
  size_t input_count = 0;
  size_t output_count = 0;
  // What a call does.
  TfLiteStatus (*on_invoke)() = nullptr;
  TfLiteStatus (*on_reset)() = nullptr;

  size_t inputs_size() const { return input_count; }
  size_t outputs_size() const { return output_count; }
  TfLiteTensor* input(size_t index) { return index < input_count ? &inputs[index] : nullptr; }
  TfLiteTensor* output(size_t index) { return index < output_count ? &outputs[index] : nullptr; }
  TfLiteStatus Invoke() { return on_invoke(); }
  TfLiteStatus Reset() { return on_reset(); }
};

}  // namespace tflite

#endif
