// A stand-in for TFLM's header of this name: what exported headers and the pages of doc/ use of it.
#ifndef STANDIN_MICRO_MICRO_RESOURCE_VARIABLE_H_
#define STANDIN_MICRO_MICRO_RESOURCE_VARIABLE_H_

#include "tensorflow/lite/micro/micro_allocator.h"

namespace tflite {

class MicroResourceVariables {
 public:
  static MicroResourceVariables* Create(MicroAllocator* allocator, int variables);
};

}  // namespace tflite

#endif
