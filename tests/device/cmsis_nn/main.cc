// Runs the model that the host loaded, and prints what a plan must not change. The lines are read by device.py.
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

#include "loader.h"
#include "python/tflite_micro/python_ops_resolver.h"
#include "tensorflow/lite/micro/arena_allocator/single_arena_buffer_allocator.h"
#include "tensorflow/lite/micro/debug_log.h"
#include "tensorflow/lite/micro/memory_planner/greedy_memory_planner.h"
#include "tensorflow/lite/micro/memory_helpers.h"
#include "tensorflow/lite/micro/micro_allocator.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_interpreter_graph.h"
#include "tensorflow/lite/micro/micro_profiler_interface.h"
#include "tensorflow/lite/micro/micro_resource_variable.h"
#include "tensorflow/lite/schema/schema_generated.h"

extern "C" {
void sh_puts(const char* s);
void sh_exit(int code);
}

extern "C" void DebugLog(const char* format, va_list args) {
  static char line[512];
  vsnprintf(line, sizeof line, format, args);
  sh_puts(line);
  if (strncmp(line, "HALTED", 6) == 0) {  // TFLITE_ABORT would loop for ever now
    sh_puts("\n");
    sh_exit(72);
  }
}
extern "C" int DebugVsnprintf(char* b, size_t n, const char* f, va_list v) { return vsnprintf(b, n, f, v); }

namespace {

__attribute__((format(printf, 1, 2))) void Print(const char* format, ...) {
  static char line[512];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  sh_puts(line);
}

[[noreturn]] void Fail(const char* what) {
  Print("FAILED %s\n", what);
  sh_exit(1);
  for (;;) {
  }
}

uint64_t Fnv(const uint8_t* p, size_t n) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3ull;
  return h;
}

struct Lcg {
  uint32_t x;
  uint32_t Next() { return x = x * 1664525u + 1013904223u; }
};

// Even invokes: uniform noise. Odd invokes: a random walk, so that neighbours are alike as in a picture or a spectrum.
// Three levels of amplitude, two invokes each, where the type has the room, so that some of them do not saturate.
void FillInput(TfLiteTensor* t, uint32_t seed, uint32_t invoke, uint32_t index) {
  Lcg g{seed * 2654435761u + invoke * 40503u * 65537u + index * 977u + 1u};
  uint8_t* p = t->data.uint8;
  const int level = static_cast<int>(invoke / 2 % 3);
  uint32_t walk = g.Next() >> 24;
  auto byte = [&]() -> uint32_t {
    const uint32_t b = g.Next() >> 24;
    if (invoke % 2 == 0) return b;
    walk = (walk + (b >> 3) - 16u) & 0xff;
    return walk;
  };
  switch (t->type) {
    case kTfLiteFloat32:
      for (size_t i = 0; i < t->bytes / 4; i++)
        t->data.f[i] = (static_cast<int>(byte()) - 128) / 128.0f * (1 << 6 * level);  // exact on any host
      break;
    case kTfLiteInt16:  // high byte patterned, low byte derived from it: the full range
      for (size_t i = 0; i < t->bytes / 2; i++) {
        const uint32_t b = byte();
        t->data.i16[i] = static_cast<int16_t>(static_cast<int16_t>(b << 8 | (b * 37u & 0xff)) >> 4 * level);
      }
      break;
    case kTfLiteInt32:
    case kTfLiteUInt32:
      for (size_t i = 0; i < t->bytes / 4; i++) t->data.i32[i] = static_cast<int32_t>(byte() >> 6);
      break;
    case kTfLiteInt64:
      for (size_t i = 0; i < t->bytes / 8; i++) t->data.i64[i] = static_cast<int64_t>(byte() >> 6);
      break;
    case kTfLiteBool:
      for (size_t i = 0; i < t->bytes; i++) p[i] = static_cast<uint8_t>(byte() >> 7);
      break;
    case kTfLiteInt8:
    case kTfLiteUInt8:
      for (size_t i = 0; i < t->bytes; i++) p[i] = static_cast<uint8_t>(byte());
      break;
    default:
      memset(p, 0, t->bytes);
  }
}

// MicroInterpreter::GetTensor refuses unless all tensors are preserved, which would change the plan.
class Interpreter : public tflite::MicroInterpreter {
 public:
  using MicroInterpreter::MicroInterpreter;
  TfLiteEvalTensor* EvalTensors() const {
    auto& graph = static_cast<tflite::MicroInterpreterGraph&>(tflite::GetMicroContext(&context())->graph());
    return graph.GetAllocations()[0].tensors;
  }
};

// Hashes each operator's inputs right before and its outputs right after it runs. Events nest when an operator calls a
// subgraph: only the outermost ones belong to subgraph 0.
class Tracer : public tflite::MicroProfilerInterface {
 public:
  uint32_t BeginEvent(const char* tag) override {
    if (depth_++ == 0 && interpreter != nullptr) {
      tag_ = tag;
      PrintTensors("in", model->subgraphs()->Get(0)->operators()->Get(op_)->inputs());
    }
    return 0;
  }
  void EndEvent(uint32_t) override {
    if (--depth_ != 0 || interpreter == nullptr) return;
    PrintTensors("op", model->subgraphs()->Get(0)->operators()->Get(op_)->outputs());
    op_++;
  }
  void Restart() { op_ = 0; }
  Interpreter* interpreter = nullptr;
  const tflite::Model* model = nullptr;

 private:
  void PrintTensors(const char* what, const flatbuffers::Vector<int32_t>* indices) const {
    if (indices == nullptr) return;
    for (const int32_t index : *indices) {
      if (index < 0) continue;
      const TfLiteEvalTensor* t = &interpreter->EvalTensors()[index];
      size_t bytes = 0;
      if (t->data.raw == nullptr || t->dims == nullptr || tflite::TfLiteEvalTensorByteLength(t, &bytes) != kTfLiteOk)
        continue;
      const uint8_t* p = reinterpret_cast<const uint8_t*>(t->data.raw);
      const ptrdiff_t at = p - reinterpret_cast<uint8_t*>(ARENA_ADDR);
      if (at < 0 || at >= static_cast<ptrdiff_t>(ARENA_MAX)) continue;  // a constant
      Print("%s %d %s tensor %d bytes %u at %d hash %016llx\n", what, op_, tag_, static_cast<int>(index),
            static_cast<unsigned>(bytes), static_cast<int>(at), Fnv(p, bytes));
    }
  }
  int depth_ = 0, op_ = 0;
  const char* tag_ = "";
};

// VAR_HANDLE operators of one name share a resource.
int CountResources(const tflite::Model& model) {
  constexpr int kMost = 64;
  const char* names[kMost];
  int count = 0;
  for (const auto* graph : *model.subgraphs()) {
    if (graph->operators() == nullptr) continue;
    for (const auto* op : *graph->operators()) {
      const auto* options = op->builtin_options_as_VarHandleOptions();
      if (options == nullptr) continue;
      const char* name = options->shared_name() == nullptr ? "" : options->shared_name()->c_str();
      int known = 0;
      while (known < count && strcmp(names[known], name) != 0) known++;
      if (known < count) continue;
      if (count == kMost) Fail("too many resources");
      names[count++] = name;
    }
  }
  return count;
}

volatile uint32_t* const kCounter = reinterpret_cast<volatile uint32_t*>(TIMER_ADDR + 0x18);
volatile uint32_t* const kPrescale = reinterpret_cast<volatile uint32_t*>(TIMER_ADDR + 0x1c);

}  // namespace

int main() {
  const Config& config = *reinterpret_cast<const Config*>(BASE_ADDR);
  if (config.magic != MAGIC) Fail("config");
  const tflite::Model* model = tflite::GetModel(reinterpret_cast<const void*>(MODEL_ADDR));
  if (model->version() != TFLITE_SCHEMA_VERSION) Fail("schema");
  static tflite::PythonOpsResolver resolver;
  uint8_t* const arena = reinterpret_cast<uint8_t*>(ARENA_ADDR);
  const size_t arena_size = config.arena_size;
  if (arena_size > ARENA_MAX) Fail("arena size");

  // The steps of MicroAllocator::Create(arena, size), one by one, to keep hold of the buffer allocator.
  auto* buffers = tflite::SingleArenaBufferAllocator::Create(arena, arena_size);
  if (buffers == nullptr) Fail("arena");
  auto* planner = new (buffers->AllocatePersistentBuffer(sizeof(tflite::GreedyMemoryPlanner),
                                                         alignof(tflite::GreedyMemoryPlanner)))
      tflite::GreedyMemoryPlanner();
  auto* allocator = tflite::MicroAllocator::Create(buffers, planner);

  // Resource variables take arena: only for models that have some.
  const int resource_count = CountResources(*model);
  tflite::MicroResourceVariables* resources =
      resource_count > 0 ? tflite::MicroResourceVariables::Create(allocator, resource_count) : nullptr;

  static Tracer tracer;
  static Interpreter interpreter(model, resolver, allocator, resources,
                                 config.flags & FLAG_TRACE ? &tracer : nullptr);
  if (interpreter.AllocateTensors() != kTfLiteOk) Fail("AllocateTensors");
  const size_t head = buffers->GetNonPersistentUsedBytes();
  const size_t tail = buffers->GetPersistentUsedBytes();
  Print("arena_used %u\nhead %u\ntail %u\n", static_cast<unsigned>(interpreter.arena_used_bytes()),
        static_cast<unsigned>(head), static_cast<unsigned>(tail));
  for (size_t i = 0; i < interpreter.inputs_size(); i++) {
    const TfLiteTensor* t = interpreter.input(i);
    Print("input %u type %s bytes %u\n", static_cast<unsigned>(i), TfLiteTypeGetName(t->type),
          static_cast<unsigned>(t->bytes));
  }

  // Nothing may be written between the head and the tail.
  uint8_t *const gap = arena + head, *const gap_end = arena + arena_size - tail;
  memset(gap, 0xa5, gap_end - gap);

  tracer.model = model;
  tracer.interpreter = &interpreter;
  for (uint32_t n = 0; n < config.invokes; n++) {
    if (config.poison != 0) {
      Lcg g{config.poison + n * 7919u};
      for (size_t i = 0; i < head; i++) arena[i] = static_cast<uint8_t>(g.Next() >> 24);
    }
    for (size_t i = 0; i < interpreter.inputs_size(); i++)
      FillInput(interpreter.input(i), config.seed, n, static_cast<uint32_t>(i));
    tracer.Restart();
    *kPrescale = 0;
    const uint32_t before = *kCounter;
    const TfLiteStatus status = interpreter.Invoke();
    const uint32_t ticks = *kCounter - before;
    if (status != kTfLiteOk) Fail("Invoke");
    Print("ticks %u\n", static_cast<unsigned>(ticks));
    for (size_t i = 0; i < interpreter.outputs_size(); i++) {
      const TfLiteTensor* t = interpreter.output(i);
      const uint8_t* p = t->data.uint8;
      Print("output %u %u type %s bytes %u hash %016llx\n", static_cast<unsigned>(n), static_cast<unsigned>(i),
            TfLiteTypeGetName(t->type), static_cast<unsigned>(t->bytes), Fnv(p, t->bytes));
    }
    for (const uint8_t* p = gap; p < gap_end; p++)
      if (*p != 0xa5) {
        Print("gap_written %u\n", static_cast<unsigned>(p - arena));
        memset(gap, 0xa5, gap_end - gap);
        break;
      }
  }
  Print("done\n");
  return 0;
}
