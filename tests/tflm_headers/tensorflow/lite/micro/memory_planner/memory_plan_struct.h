// A stand-in for TFLM's header of this name: what exported headers and the pages of doc/ use of it.
#ifndef STANDIN_MICRO_MEMORY_PLANNER_MEMORY_PLAN_STRUCT_H_
#define STANDIN_MICRO_MEMORY_PLANNER_MEMORY_PLAN_STRUCT_H_

#include <cstdint>

namespace tflite {

struct BufferDescriptor {
  int32_t offset;
};

struct BufferPlan {
  int32_t buffer_count;
  BufferDescriptor buffer_plan_entries[1];
};

}  // namespace tflite

#endif
