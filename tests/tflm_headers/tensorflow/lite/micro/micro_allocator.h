// A stand-in for TFLM's header of this name: what exported headers and the pages of doc/ use of it.
#ifndef STANDIN_MICRO_MICRO_ALLOCATOR_H_
#define STANDIN_MICRO_MICRO_ALLOCATOR_H_

#include "tensorflow/lite/micro/memory_planner/micro_memory_planner.h"

namespace tflite {

class MicroAllocator {
 public:
  static MicroAllocator* Create(uint8_t* arena, size_t bytes);
  static MicroAllocator* Create(uint8_t* arena, size_t bytes, MicroMemoryPlanner* planner);
};

}  // namespace tflite

#endif
