// One exported header: -DHEADER="\"kws.h\"" -DNAME=kws -DCAPITALS=KWS, -DSHIM for a header of `c-shim`,
// -DRESOURCES where the model has some, -DMORE_OPERATORS where it has operators that TFLM has no kernel for.
#include HEADER

#include "runner.h"
#include "tensorflow/lite/micro/memory_planner/greedy_memory_planner.h"

#define JOINED(a, b) a##b
#define JOIN(a, b) JOINED(a, b)
#define CONSTANT(what) JOIN(CAPITALS, what)

int main(int count, char** arguments) {
  if (count != 2) return 2;
  static tflite::MicroMutableOpResolver<CONSTANT(_OPERATORS)> resolver;
  if (arenaplan::NAME::RegisterOps(resolver) != kTfLiteOk) return 3;
#ifndef MORE_OPERATORS
  if (resolver.GetRegistrationLength() != CONSTANT(_OPERATORS)) return 4;
#endif
#ifdef SHIM
  static Recorder<arenaplan::NAME::MemoryPlanner> planner;
#else
  static Recorder<tflite::GreedyMemoryPlanner> planner;
#endif
#ifdef RESOURCES
  const int resources = CONSTANT(_RESOURCES);
#else
  const int resources = 0;
#endif
  return Report(arguments[1], JOIN(NAME, _model), resolver, CONSTANT(_ARENA_BYTES), &planner, planner.buffers, resources);
}
