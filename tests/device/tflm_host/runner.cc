#include "runner.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#include "tensorflow/lite/schema/schema_generated.h"

namespace {

uint32_t state;
uint32_t Noise() {
  state ^= state << 13, state ^= state >> 17, state ^= state << 5;
  return state;
}

void Fill(TfLiteTensor* tensor) {
  for (size_t i = 0; i < tensor->bytes; ++i) tensor->data.uint8[i] = static_cast<uint8_t>(Noise() >> 9);
  if (tensor->type == kTfLiteFloat32) {
    for (size_t i = 0; i < tensor->bytes / 4; ++i) tensor->data.f[i] = static_cast<int32_t>(Noise()) / 2147483648.0f;
  } else if (tensor->type == kTfLiteBool) {
    for (size_t i = 0; i < tensor->bytes; ++i) tensor->data.uint8[i] &= 1;
  } else if (tensor->type == kTfLiteInt32) {
    for (size_t i = 0; i < tensor->bytes / 4; ++i) tensor->data.i32[i] = Noise() % 3;
  } else if (tensor->type == kTfLiteInt64) {
    for (size_t i = 0; i < tensor->bytes / 8; ++i) tensor->data.i64[i] = Noise() % 3;
  }
}

}  // namespace

Result Run(const void* model, const tflite::MicroOpResolver& resolver, size_t arena_bytes, tflite::MicroMemoryPlanner* planner,
           int resources) {
  Result result;
  // Right behind the arena lies what nobody may write to.
  auto* arena = static_cast<uint8_t*>(std::aligned_alloc(4096, (arena_bytes + 64 + 4095) / 4096 * 4096));
  std::memset(arena, 0xA5, arena_bytes + 64);
  auto* allocator = planner ? tflite::MicroAllocator::Create(arena, arena_bytes, planner)
                            : tflite::MicroAllocator::Create(arena, arena_bytes);
  auto* variables = resources ? tflite::MicroResourceVariables::Create(allocator, resources) : nullptr;
  // Never destroyed: TFLM's destructor crashes where an operator was not found.
  auto& interpreter = *new tflite::MicroInterpreter(tflite::GetModel(model), resolver, allocator, variables);
  if (interpreter.AllocateTensors() != kTfLiteOk) return result;
  result.used = interpreter.arena_used_bytes();
  state = 2463534242u;
  for (int invoke = 0; invoke < 3; ++invoke) {
    for (size_t i = 0; i < interpreter.inputs_size(); ++i) Fill(interpreter.input(i));
    if (interpreter.Invoke() != kTfLiteOk) return result;
    for (size_t i = 0; i < interpreter.outputs_size(); ++i) {
      const TfLiteTensor* output = interpreter.output(i);
      result.outputs.insert(result.outputs.end(), output->data.uint8, output->data.uint8 + output->bytes);
    }
  }
  result.ran = true;
  for (int i = 0; i < 64; ++i) result.ran &= arena[arena_bytes + i] == 0xA5;
  return result;
}

int Report(const char* unplanned_path, const void* model, const tflite::MicroOpResolver& resolver, size_t arena_bytes,
           tflite::MicroMemoryPlanner* planner, const std::vector<Buffer>& buffers, int resources) {
  std::ifstream file(unplanned_path, std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  auto* aligned = static_cast<char*>(std::aligned_alloc(64, (bytes.size() + 63) / 64 * 64));
  std::memcpy(aligned, bytes.data(), bytes.size());
  const Result unplanned = Run(aligned, resolver, 16 << 20, nullptr, resources);
  // The header's arena, first with what an application would do, then with a look at the planner.
  const Result planned = Run(model, resolver, arena_bytes, nullptr, resources);
  const Result recorded = Run(model, resolver, arena_bytes, planner, resources);
  std::printf("{\"unplanned_ran\": %d, \"plain_ran\": %d, \"ran\": %d, \"plain_equal\": %d, \"equal\": %d, \"bytes\": %zu, ",
              unplanned.ran, planned.ran, recorded.ran, planned.outputs == unplanned.outputs,
              recorded.outputs == unplanned.outputs, unplanned.outputs.size());
  std::printf("\"unplanned_used\": %zu, \"plain_used\": %zu, \"used\": %zu, \"arena\": %zu, \"buffers\": [", unplanned.used,
              planned.used, recorded.used, arena_bytes);
  for (size_t i = 0; i < buffers.size(); ++i) std::printf("%s[%d, %d]", i ? ", " : "", buffers[i].size, buffers[i].offset);
  std::printf("]}\n");
  return 0;
}
