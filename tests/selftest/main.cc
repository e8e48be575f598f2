// Runs a self-test on a device that goes wrong in the way that the argument says. `recording.h` has what the model computes.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording.h"
#include "self_test.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_log.h"

void MicroPrintf(const char* format, ...) {
  va_list list;
  va_start(list, format);
  vprintf(format, list);
  va_end(list);
  printf("\n");
}

namespace {

const char* mode = "";
size_t invoke = 0;
size_t resets = 0;
uint8_t input_bytes[kInputBytes + 1];
uint8_t output_bytes[kOutputBytes + 1];

TfLiteStatus OnReset() {
  if (strcmp(mode, "no-reset") == 0) return kTfLiteError;
  invoke = 0;
  ++resets;
  return kTfLiteOk;
}

TfLiteStatus OnInvoke() {
  if (strcmp(mode, "no-invoke") == 0 && invoke == 1) return kTfLiteError;
  if (resets != 1 || invoke >= kInvokes) return kTfLiteError;
  if (memcmp(input_bytes, kInputs[invoke], kInputBytes) != 0) {
    printf("invoke %d: other inputs than the runtime has\n", static_cast<int>(invoke));
    return kTfLiteError;
  }
  const bool is_stale = strcmp(mode, "no-state") == 0;
  memcpy(output_bytes, is_stale ? kStale[invoke] : kOutputs[invoke], kOutputBytes);
  // The last byte of the last invoke is the hardest to see.
  if (strcmp(mode, "byte") == 0 && invoke + 1 == kInvokes) output_bytes[kChanged] ^= 0x40;
  ++invoke;
  return kTfLiteOk;
}

}  // namespace

int main(int, char** argv) {
  mode = argv[1];
  // One too many, so that there is always one.
  TfLiteTensor inputs[kInputCount + 1] = {};
  TfLiteTensor outputs[kOutputCount + 1] = {};
  uint8_t* at = input_bytes;
  for (size_t k = 0; k < kInputCount; ++k) {
    inputs[k].type = kInputTypes[k];
    inputs[k].bytes = kInputSizes[k];
    inputs[k].data.uint8 = at;
    at += kInputSizes[k];
  }
  at = output_bytes;
  for (size_t k = 0; k < kOutputCount; ++k) {
    outputs[k].type = kOutputTypes[k];
    outputs[k].bytes = kOutputSizes[k];
    outputs[k].data.uint8 = at;
    at += kOutputSizes[k];
  }
  if (strcmp(mode, "type") == 0) inputs[0].type = kTfLiteNoType;
  if (strcmp(mode, "size") == 0) outputs[0].bytes += 1;
  tflite::MicroInterpreter interpreter;
  interpreter.inputs = inputs;
  interpreter.outputs = outputs;
  interpreter.input_count = kInputCount + (strcmp(mode, "count") == 0 ? 1 : 0);
  interpreter.output_count = kOutputCount;
  interpreter.on_invoke = OnInvoke;
  interpreter.on_reset = OnReset;
  const TfLiteStatus status = arenaplan::SELFTEST_NAME::SelfTest(interpreter);
  // State is set back before and after.
  if (status == kTfLiteOk && (resets != 2 || invoke != 0)) return 3;
  printf("%s\n", status == kTfLiteOk ? "passed" : "failed");
  return 0;
}
