// Runs a model in TFLM and remembers what the memory planner was asked for and answered.
#ifndef RUNNER_H_
#define RUNNER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_op_resolver.h"

struct Buffer {
  int size, offset;
};

// A planner that is told of every request and every answer. TFLM's own one passes requests with an offset on to this as well.
template <class Planner>
class Recorder : public Planner {
 public:
  TfLiteStatus AddBuffer(int size, int first, int last) override {
    buffers.push_back({size, -1});
    return Planner::AddBuffer(size, first, last);
  }
  TfLiteStatus GetOffsetForBuffer(int index, int* offset) override {
    TfLiteStatus status = Planner::GetOffsetForBuffer(index, offset);
    buffers.at(index).offset = *offset;
    return status;
  }
  std::vector<Buffer> buffers;

 private:
  TF_LITE_REMOVE_VIRTUAL_DELETE
};

struct Result {
  bool ran = false;
  size_t used = 0;
  std::vector<uint8_t> outputs;  // of all invokes, one after the other
};

// Three invokes with the same noise each time this is called; `planner` null: TFLM's own.
Result Run(const void* model, const tflite::MicroOpResolver& resolver, size_t arena_bytes, tflite::MicroMemoryPlanner* planner,
           int resources);

// The same with what the macros of the header say; compares and prints.
int Report(const char* unplanned_path, const void* model, const tflite::MicroOpResolver& resolver, size_t arena_bytes,
           tflite::MicroMemoryPlanner* planner, const std::vector<Buffer>& buffers, int resources);

#endif
