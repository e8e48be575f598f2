// Runs models in turns on one arena of TensorFlow Lite Micro: several interpreters with one allocator.
//
//   shared_arena ARENA_BYTES ROUNDS MODEL...             all inputs are set before each inference
//   shared_arena ARENA_BYTES ROUNDS --cascade MODEL...   the first input of all models but the first is left as it is
//
// Prints the bytes of the arena in use, and for each round and model a digest of the outputs. Exit status 1 if something fails.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "python/tflite_micro/python_ops_resolver.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#include "tensorflow/lite/schema/schema_generated.h"

namespace {

// Bytes at a multiple of 16.
struct Memory {
  explicit Memory(size_t bytes) : owned(bytes + 16), size(bytes) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(owned.data());
    start = owned.data() + (16 - at % 16) % 16;
  }
  std::vector<uint8_t> owned;
  uint8_t* start;
  size_t size;
};

Memory Read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path);
    std::exit(1);
  }
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  Memory memory(bytes.size());
  std::memcpy(memory.start, bytes.data(), bytes.size());
  return memory;
}

// Noise that follows from the seed (xorshift, Marsaglia 2003): floats from -1 to 1, other elements of any bytes.
void Fill(TfLiteTensor* tensor, uint32_t seed) {
  uint32_t state = seed * 0x9e3779b9u | 1;
  auto next = [&state] {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
  };
  if (tensor->type == kTfLiteFloat32) {
    for (size_t i = 0; i < tensor->bytes / 4; i++) {
      tensor->data.f[i] = static_cast<int32_t>(next()) / 2147483648.0f;
    }
  } else {
    for (size_t i = 0; i < tensor->bytes; i++) {
      tensor->data.uint8[i] = static_cast<uint8_t>(next() >> 16);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool is_cascade = false;
  std::vector<const char*> paths;
  for (int i = 3; i < argc; i++) {
    if (std::strcmp(argv[i], "--cascade") == 0) {
      is_cascade = true;
    } else {
      paths.push_back(argv[i]);
    }
  }
  if (paths.empty()) {
    std::fprintf(stderr, "usage: shared_arena ARENA_BYTES ROUNDS [--cascade] MODEL...\n");
    return 1;
  }
  Memory arena(std::strtoull(argv[1], nullptr, 10));
  const unsigned rounds = std::strtoul(argv[2], nullptr, 10);
  std::vector<Memory> models;
  for (const char* path : paths) models.push_back(Read(path));
  tflite::PythonOpsResolver resolver;
  tflite::MicroAllocator* allocator = tflite::MicroAllocator::Create(arena.start, arena.size);
  std::vector<std::unique_ptr<tflite::MicroInterpreter>> interpreters;
  for (const Memory& memory : models) {
    const tflite::Model* model = tflite::GetModel(memory.start);
    // As many as the model has, one more for each VAR_HANDLE of the same resource.
    int handles = 0;
    for (const auto* subgraph : *model->subgraphs()) {
      if (subgraph->operators() == nullptr) continue;
      for (const auto* op : *subgraph->operators()) {
        const auto* code = model->operator_codes()->Get(op->opcode_index());
        handles += code->builtin_code() == tflite::BuiltinOperator_VAR_HANDLE;
      }
    }
    tflite::MicroResourceVariables* variables =
        handles == 0 ? nullptr : tflite::MicroResourceVariables::Create(allocator, handles);
    interpreters.push_back(
        std::make_unique<tflite::MicroInterpreter>(model, resolver, allocator, variables));
    if (interpreters.back()->AllocateTensors() != kTfLiteOk) {
      std::printf("model %zu: AllocateTensors failed\n", interpreters.size() - 1);
      return 1;
    }
  }
  std::printf("used %zu of %zu\n", allocator->used_bytes(), arena.size);
  for (unsigned round = 0; round < rounds; round++) {
    for (size_t k = 0; k < interpreters.size(); k++) {
      tflite::MicroInterpreter& interpreter = *interpreters[k];
      for (size_t i = is_cascade && k > 0 ? 1 : 0; i < interpreter.inputs_size(); i++) {
        Fill(interpreter.input(i), 1000 * round + i + 1);
      }
      if (interpreter.Invoke() != kTfLiteOk) {
        std::printf("model %zu: Invoke failed\n", k);
        return 1;
      }
      uint32_t digest = 0x811c9dc5u;
      for (size_t i = 0; i < interpreter.outputs_size(); i++) {
        const TfLiteTensor* output = interpreter.output(i);
        for (size_t b = 0; b < output->bytes; b++) {
          digest = (digest ^ output->data.uint8[b]) * 0x01000193u;
        }
      }
      std::printf("round %u model %zu digest %08x\n", round, k, digest);
    }
  }
  return 0;
}
