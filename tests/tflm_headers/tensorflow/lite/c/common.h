// A stand-in for TFLM's header of this name: what exported headers and the pages of doc/ use of it.
#ifndef STANDIN_C_COMMON_H_
#define STANDIN_C_COMMON_H_

#include <cstddef>
#include <cstdint>

enum TfLiteStatus { kTfLiteOk = 0, kTfLiteError = 1 };

union TfLitePtrUnion {
  int8_t* int8;
  uint8_t* uint8;
  int16_t* i16;
  float* f;
  void* data;
};

struct TfLiteTensor {
  TfLitePtrUnion data;
  size_t bytes;
};

#endif
