// A stand-in for TFLM's header of this name: what exported headers and the pages of doc/ use of it.
#ifndef STANDIN_MICRO_MEMORY_PLANNER_NON_PERSISTENT_BUFFER_PLANNER_SHIM_H_
#define STANDIN_MICRO_MEMORY_PLANNER_NON_PERSISTENT_BUFFER_PLANNER_SHIM_H_

#include "tensorflow/lite/micro/memory_planner/memory_plan_struct.h"
#include "tensorflow/lite/micro/memory_planner/micro_memory_planner.h"

namespace tflite {

// Answers from a plan that was made elsewhere.
class NonPersistentMemoryPlannerShim : public MicroMemoryPlanner {
 public:
  explicit NonPersistentMemoryPlannerShim(const BufferPlan* plan) : plan_(plan), requests_(0) {}
  ~NonPersistentMemoryPlannerShim() override {}
  TfLiteStatus AddBuffer(int, int, int) override {
    return ++requests_ > plan_->buffer_count ? kTfLiteError : kTfLiteOk;
  }
  TfLiteStatus GetOffsetForBuffer(int index, int* offset) override {
    if (index >= plan_->buffer_count) return kTfLiteError;
    *offset = plan_->buffer_plan_entries[index].offset;
    return kTfLiteOk;
  }
  size_t GetMaximumMemorySize() override { return 0; }
  int GetBufferCount() override { return plan_->buffer_count; }
  bool preserves_all_tensors() const override { return false; }

 private:
  const BufferPlan* plan_;
  int requests_;

  TF_LITE_REMOVE_VIRTUAL_DELETE
};

}  // namespace tflite

#endif
