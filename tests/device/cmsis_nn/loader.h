// Where the host puts things (QEMU's loader device) and what it tells the firmware. Kept in step with device.py.
#pragma once
#include <stdint.h>
#if defined(CORE_M55)
#define BASE_ADDR 0x70000000u   // DDR, secure alias
#define TIMER_ADDR 0x59302000u  // FPGAIO, secure alias
#else
#define BASE_ADDR 0x21000000u   // PSRAM
#define TIMER_ADDR 0x40028000u  // FPGAIO
#endif
#define MODEL_ADDR (BASE_ADDR + 0x00010000u)  // up to 6 MB
#define ARENA_ADDR (BASE_ADDR + 0x00600000u)  // up to 10 MB
#define ARENA_MAX 0x00A00000u

struct Config {
  uint32_t magic;  // "PLN1"
  uint32_t arena_size;
  uint32_t invokes;
  uint32_t seed;
  uint32_t flags;
  uint32_t poison;  // 0: off; else seed of the noise written over the whole head before each invoke's inputs
};
#define MAGIC 0x314e4c50u
#define FLAG_TRACE 1u  // hash each operator's outputs right after it ran
