//! A header for C11 and C++11 or newer: the model as an aligned array, what to reserve, inputs and outputs, and for C++
//! a function that registers the operators with TFLM.

use super::numbers::{literal, plain, push_bytes};
use super::operators::{Used, used};
use super::{Export, tensors};
use crate::report::LibraryHead;
use crate::target::Target;
use crate::text::thousands;

/// How the first line of a header ends that this module writes.
pub const MADE_BY: &str = "made by arenaplan export */";

/// The header of a model with its plan.
pub fn header(export: &Export<'_>) -> String {
    let mut text = opening(export, "", "");
    push_arena(&mut text, export);
    tensors::push(&mut text, export);
    push_model(&mut text, export, export.graph.model.bytes());
    push_operators(&mut text, export);
    text.push_str("\n#endif\n");
    text
}

/// The first lines: what it is, for which kernels, and the guard, which ends with `suffix`.
pub(super) fn opening(export: &Export<'_>, suffix: &str, more: &str) -> String {
    let name = &export.name;
    let kernels = match export.target() {
        Target::Tflm => "It is right with any kernels of TFLM.".into(),
        target if export.report.needs.is_some() => format!(
            "ONLY for {}:\n   with other kernels on the device it computes wrong numbers, without any error message. Check what \
             your build links.",
            target.kernels()
        ),
        target => format!(
            "Planned for {}; the numbers it computes are right with any kernels.",
            target.kernels()
        ),
    };
    let planned = match export.offsets {
        Some(_) => "with its memory plan",
        None => "without a memory plan: TensorFlow Lite Micro plans it on the device",
    };
    format!(
        "/* {name}: a model for TensorFlow Lite Micro {planned}, {MADE_BY}\n\
         /* Target: {}. {kernels}\n{more}\n   Include it in one source file: compilers before C++17 copy the array into each. */\n\
         #ifndef ARENAPLAN_{capitals}{suffix}_H_\n#define ARENAPLAN_{capitals}{suffix}_H_\n\n\
         #include <stdint.h>\n",
        export.target(),
        capitals = name.capitals(),
    )
}

/// What to reserve.
pub(super) fn push_arena(text: &mut String, export: &Export<'_>) {
    let capitals = export.name.capitals();
    let Some(figures) = export.figures() else {
        return;
    };
    let kernels = figures.library;
    let mut others = String::new();
    for other in export.libraries.iter().map(|l| &l.figures) {
        if other.library != kernels && other.arena_32 != figures.arena_32 {
            others.push_str(&format!(
                "\n   With {} kernels: head {}, arena {}.",
                other.library,
                thousands(other.head_bytes),
                thousands(other.arena_32.arena_bytes)
            ));
        }
    }
    if !others.is_empty() && export.target() == Target::Tflm {
        others.push_str("\n   Export with the --target that names the kernels on your device, and they come as constants.");
    }
    let most = match export.libraries.len() {
        1 => "",
        _ => ", which need the most of all",
    };
    let incomplete = match export.report.tail_is_complete {
        true => "",
        false => {
            "\n   Some operators are not TFLM's own, and what their kernels ask for is not counted: reserve more."
        }
    };
    let LibraryHead {
        head_bytes,
        arena_32,
        arena_64,
        ..
    } = figures;
    text.push_str(&format!(
        "\n/* Bytes to reserve, at a multiple of {capitals}_ARENA_ALIGN, with {kernels} kernels{most}. The head,\n   \
         which holds tensors and scratch memory, is exact; the tail is an estimate for TFLM of October 2026. What was really used says\n   \
         MicroInterpreter::arena_used_bytes(); preparing the model can need more than that.{incomplete}{others} */\n\
         #define {capitals}_HEAD_BYTES {head_bytes}\n\
         #define {capitals}_TAIL_BYTES_32 {}\n\
         #define {capitals}_TAIL_BYTES_64 {}\n\
         #define {capitals}_ARENA_BYTES_32 {}\n\
         #define {capitals}_ARENA_BYTES_64 {}\n\
         #define {capitals}_ARENA_ALIGN {}\n\
         #if UINTPTR_MAX > 0xffffffffu\n\
         #define {capitals}_TAIL_BYTES {capitals}_TAIL_BYTES_64\n\
         #define {capitals}_ARENA_BYTES {capitals}_ARENA_BYTES_64\n\
         #else\n\
         #define {capitals}_TAIL_BYTES {capitals}_TAIL_BYTES_32\n\
         #define {capitals}_ARENA_BYTES {capitals}_ARENA_BYTES_32\n\
         #endif\n",
        arena_32.tail_bytes,
        arena_64.tail_bytes,
        arena_32.arena_bytes,
        arena_64.arena_bytes,
        export.align,
    ));
}

/// The array.
pub(super) fn push_model(text: &mut String, export: &Export<'_>, bytes: &[u8]) {
    let (name, capitals) = (&export.name, export.name.capitals());
    text.reserve(bytes.len() * 4);
    if let Some(operator) = export.writes_to_model() {
        text.push_str(&format!(
            "\n/* TFLM corrects a shape in the model for {}, which crashes where the array is in flash:\n   copy it to RAM, at a \
             multiple of 16, and give TFLM the copy. */",
            plain(&operator)
        ));
    }
    text.push_str(&format!(
        "\n#define {capitals}_MODEL_BYTES {}\n\
         #if defined(__cplusplus) && __cplusplus >= 201703L\n\
         alignas(16) inline const unsigned char {name}_model[{capitals}_MODEL_BYTES] = {{\n\
         #elif defined(__cplusplus)\n\
         alignas(16) static const unsigned char {name}_model[{capitals}_MODEL_BYTES] = {{\n\
         #else\n\
         _Alignas(16) static const unsigned char {name}_model[{capitals}_MODEL_BYTES] = {{\n\
         #endif\n",
        bytes.len()
    ));
    push_bytes(text, bytes);
    text.push_str("};\n");
}

/// The number of operators, and what registers them.
pub(super) fn push_operators(text: &mut String, export: &Export<'_>) {
    let (name, capitals) = (&export.name, export.name.capitals());
    let used = used(&export.graph);
    let resources = crate::tflm::tail::resources(&export.graph);
    text.push_str(&format!("\n#define {capitals}_OPERATORS {}\n", used.len()));
    if resources > 0 {
        text.push_str(&format!(
            "/* The interpreter needs a MicroResourceVariables::Create(allocator, {capitals}_RESOURCES). */\n\
             #define {capitals}_RESOURCES {resources}\n"
        ));
    }
    text.push_str(&format!(
        "\n#if defined(__cplusplus) && defined(__has_include)\n\
         #if __has_include(\"tensorflow/lite/micro/micro_mutable_op_resolver.h\")\n\
         #include \"tensorflow/lite/micro/micro_mutable_op_resolver.h\"\n\n\
         namespace arenaplan {{\nnamespace {name} {{\n\n\
         /* Registers what the model needs and is not registered yet, and nothing else. Models can share a resolver. */\n\
         template <unsigned int kSize>\n\
         TfLiteStatus RegisterOps(tflite::MicroMutableOpResolver<kSize>& resolver) {{\n  \
         static_assert(kSize >= {capitals}_OPERATORS, \"MicroMutableOpResolver<{capitals}_OPERATORS> at least\");\n"
    ));
    if !used.iter().any(|op| op.method.is_some()) {
        text.push_str("  (void)resolver;\n");
    }
    for op in &used {
        push_registration(text, op);
    }
    text.push_str(&format!(
        "  return kTfLiteOk;\n}}\n\n}}  // namespace {name}\n}}  // namespace arenaplan\n\n#endif\n#endif\n"
    ));
}

fn push_registration(text: &mut String, op: &Used) {
    let key = match op.is_custom {
        true => literal(&op.name),
        false => format!("tflite::BuiltinOperator_{}", op.name),
    };
    let line = match (op.method, op.is_custom) {
        (Some(method), _) => format!(
            "  if (resolver.FindOp({key}) == nullptr &&\n      resolver.{method}() != kTfLiteOk)\n    return kTfLiteError;\n"
        ),
        (None, true) => format!(
            "  /* Yours: a custom operator that TFLM has no kernel for. Register it before or after this call:\n     \
             resolver.AddCustom({key}, your_registration), with your kernel's TFLMRegistration. */\n"
        ),
        (None, false) => format!(
            "  /* {}: TFLM of August 2026 has no kernel for it and refuses the model, unless yours is newer. */\n",
            plain(&op.name)
        ),
    };
    text.push_str(&line);
}
