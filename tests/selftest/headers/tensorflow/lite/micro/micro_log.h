// A stand-in for TFLM's header of this name: what self-tests use of it.
#ifndef STANDIN_MICRO_MICRO_LOG_H_
#define STANDIN_MICRO_MICRO_LOG_H_

// Prints a line, as printf does.
__attribute__((format(printf, 1, 2))) void MicroPrintf(const char* format, ...);

#endif
