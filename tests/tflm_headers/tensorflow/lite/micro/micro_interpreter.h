// A stand-in for TFLM's header of this name: what exported headers and the pages of doc/ use of it.
#ifndef STANDIN_MICRO_MICRO_INTERPRETER_H_
#define STANDIN_MICRO_MICRO_INTERPRETER_H_

#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"

namespace tflite {

class MicroInterpreter {
 public:
  MicroInterpreter(const Model*, const MicroOpResolver&, uint8_t* arena, size_t bytes,
                   MicroResourceVariables* variables = nullptr);
  MicroInterpreter(const Model*, const MicroOpResolver&, MicroAllocator*, MicroResourceVariables* variables = nullptr);
  TfLiteStatus AllocateTensors();
  TfLiteStatus Invoke();
  TfLiteTensor* input(size_t index);
  TfLiteTensor* output(size_t index);
  size_t arena_used_bytes() const;
};

}  // namespace tflite

#endif
