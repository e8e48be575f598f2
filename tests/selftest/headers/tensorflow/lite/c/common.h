// A stand-in for TFLM's header of this name: what self-tests use of it.
#ifndef STANDIN_C_COMMON_H_
#define STANDIN_C_COMMON_H_

#include <stddef.h>
#include <stdint.h>

enum TfLiteStatus { kTfLiteOk = 0, kTfLiteError = 1 };

enum TfLiteType {
  kTfLiteNoType = 0,
  kTfLiteFloat32 = 1,
  kTfLiteInt32 = 2,
  kTfLiteUInt8 = 3,
  kTfLiteInt64 = 4,
  kTfLiteBool = 6,
  kTfLiteInt16 = 7,
  kTfLiteInt8 = 9,
  kTfLiteUInt64 = 13,
  kTfLiteUInt32 = 16,
  kTfLiteUInt16 = 17,
};

union TfLitePtrUnion {
  uint8_t* uint8;
  void* data;
};

struct TfLiteTensor {
  TfLiteType type;
  TfLitePtrUnion data;
  size_t bytes;
};

#endif
