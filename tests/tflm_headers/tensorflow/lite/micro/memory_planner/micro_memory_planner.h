// A stand-in for TFLM's header of this name: what exported headers and the pages of doc/ use of it.
#ifndef STANDIN_MICRO_MEMORY_PLANNER_MICRO_MEMORY_PLANNER_H_
#define STANDIN_MICRO_MEMORY_PLANNER_MICRO_MEMORY_PLANNER_H_

#include "tensorflow/lite/c/common.h"
#include "tensorflow/lite/micro/compatibility.h"

namespace tflite {

class MicroMemoryPlanner {
 public:
  MicroMemoryPlanner() {}
  virtual ~MicroMemoryPlanner() {}
  virtual TfLiteStatus AddBuffer(int size, int first, int last) = 0;
  virtual TfLiteStatus AddBuffer(int, int, int, int) { return kTfLiteError; }
  virtual size_t GetMaximumMemorySize() = 0;
  virtual int GetBufferCount() = 0;
  virtual TfLiteStatus GetOffsetForBuffer(int index, int* offset) = 0;
  virtual bool preserves_all_tensors() const = 0;

 private:
  TF_LITE_REMOVE_VIRTUAL_DELETE
};

}  // namespace tflite

#endif
