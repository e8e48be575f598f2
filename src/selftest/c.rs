//! The C++ header: constants, and a function that runs them in TFLM's interpreter.

use std::fmt::{Display, Write};

use arenaplan_runtime::Type;
use arenaplan_runtime::self_test::Port;

use super::{Known, MADE_BY, SelfTest, Values};
use crate::export::Name;

/// The whole header; `name` is the model's.
pub(super) fn header(test: &SelfTest, name: &str) -> String {
    let name = Name::from_stem(name).to_string();
    let mut text = String::new();
    push_opening(&mut text, test, &name);
    push_tables(&mut text, test);
    push_helpers(&mut text, test);
    push_function(&mut text, test, &name);
    let _ = writeln!(text, "\n#endif  // {}", guard(&name));
    text
}

fn capital(part: &str) -> String {
    let mut chars = part.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

fn push_opening(text: &mut String, test: &SelfTest, name: &str) {
    let guard = guard(name);
    let _ = write!(
        text,
        "/* {name} self-test: for TensorFlow Lite Micro, {MADE_BY}\n\
         // Proves that the kernels of this device keep the model's plan. Call it once, after AllocateTensors():\n\
         //\n\
         //   if (arenaplan::{name}::SelfTest(interpreter) != kTfLiteOk) {{ /* do not trust the outputs */ }}\n\
         //\n"
    );
    text.push_str(match test.runs_once {
        false => {
            "// It sets the model's state back before and after (Reset()); inputs have to be set again. What differs is told by\n\
             // MicroPrintf. Needs C++17; no heap.\n"
        }
        true => {
            "// Call it before any Invoke(), and make the interpreter anew afterwards: the model initialises its variables once, and\n\
             // TFLM's Reset() does not do that again. What differs is told by MicroPrintf. Needs C++17; no heap.\n"
        }
    });
    text.push_str("//\n");
    for line in test.report.to_string().lines() {
        let _ = writeln!(text, "// {}", line.escape_default());
    }
    let _ = write!(
        text,
        "\n#ifndef {guard}\n#define {guard}\n\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n\
         #include \"tensorflow/lite/c/common.h\"\n\
         #include \"tensorflow/lite/micro/micro_interpreter.h\"\n\
         #include \"tensorflow/lite/micro/micro_log.h\"\n\n\
         namespace arenaplan {{\nnamespace {name} {{\nnamespace self_test {{\n\n"
    );
}

fn guard(name: &str) -> String {
    format!("ARENAPLAN_{}_SELF_TEST_H_", name.to_ascii_uppercase())
}

fn push_tables(text: &mut String, test: &SelfTest) {
    let invokes = test.signals.len();
    let _ = write!(
        text,
        "inline constexpr int kInvokes = {invokes};\n\n\
         // Noise for the inputs of an invoke: numbers are smaller by `narrow` bits than they could be, and `hold` in a row are\n\
         // equal.\n\
         struct Signal {{\n  uint32_t seed;\n  uint8_t narrow;\n  uint16_t hold;\n}};\n\
         inline constexpr Signal kSignals[kInvokes] = {{\n"
    );
    for signal in &test.signals {
        let _ = writeln!(
            text,
            "    {{{:#010x}u, {}, {}}},",
            signal.seed, signal.narrow, signal.hold
        );
    }
    text.push_str("};\n\nstruct Port {\n  TfLiteType type;\n  size_t bytes;\n};\n");
    let outputs: Vec<Port> = test.outputs.iter().map(|output| output.port).collect();
    for (what, ports) in [("Input", &test.inputs), ("Output", &outputs)] {
        let count = ports.len();
        let _ = writeln!(text, "inline constexpr size_t k{what}Count = {count};");
        if ports.is_empty() {
            continue;
        }
        let _ = writeln!(text, "inline constexpr Port k{what}s[k{what}Count] = {{");
        for port in ports {
            let _ = writeln!(
                text,
                "    {{{}, {}}},",
                lite_type(port.element_type),
                port.bytes
            );
        }
        text.push_str("};\n");
    }
    text.push('\n');
    for (index, output) in test.outputs.iter().enumerate() {
        push_values(text, index, output, invokes);
    }
}

fn push_values(text: &mut String, index: usize, output: &Known, invokes: usize) {
    match &output.values {
        Values::Bytes(bytes) if bytes.is_empty() => {}
        Values::Bytes(bytes) => {
            let size = bytes.len() / invokes;
            let _ = writeln!(
                text,
                "// All bytes of output {index}.\ninline constexpr uint8_t kBytes{index}[kInvokes][{size}] = {{"
            );
            let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
            push_table(text, &bytes, size, 20);
        }
        Values::Digests(digests) => {
            let _ = writeln!(
                text,
                "// FNV-1a of all bytes of output {index}.\ninline constexpr uint32_t kDigests{index}[kInvokes] = {{"
            );
            let digests = digests.iter().map(|digest| format!("{digest:#010x}u"));
            text.push_str(&rows(&digests.collect::<Vec<_>>(), 8, "    "));
            text.push_str("};\n\n");
        }
        Values::Near {
            step,
            within,
            values,
        } => {
            let floats = |numbers: &[f32]| -> Vec<String> {
                numbers.iter().map(|x| format!("{x:?}f")).collect()
            };
            let size = values.len() / invokes;
            let which = match step {
                1 => "The elements".to_owned(),
                _ => format!("Every {step}th element, from the first one on,"),
            };
            let _ = writeln!(
                text,
                "// {which} of output {index}, which may differ by kWithin{index}.\n\
                 inline constexpr size_t kStep{index} = {step};\n\
                 inline constexpr float kWithin{index}[kInvokes] = {{"
            );
            text.push_str(&rows(&floats(within), 8, "    "));
            text.push_str("};\n");
            if size != 0 {
                let _ = writeln!(
                    text,
                    "inline constexpr float kNumbers{index}[kInvokes][{size}] = {{"
                );
                push_table(text, &floats(values), size, 8);
            }
        }
    }
}

/// The rows of a table, and its end.
fn push_table(text: &mut String, items: &[String], size: usize, in_a_row: usize) {
    for invoke in items.chunks(size) {
        let _ = write!(
            text,
            "    {{\n{}    }},\n",
            rows(invoke, in_a_row, "        ")
        );
    }
    text.push_str("};\n\n");
}

fn rows<T: Display>(items: &[T], in_a_row: usize, indent: &str) -> String {
    let mut text = String::new();
    for row in items.chunks(in_a_row) {
        let row: Vec<String> = row.iter().map(T::to_string).collect();
        let _ = writeln!(text, "{indent}{},", row.join(", "));
    }
    text
}

fn lite_type(element_type: Type) -> &'static str {
    match element_type {
        Type::FLOAT32 => "kTfLiteFloat32",
        Type::INT8 => "kTfLiteInt8",
        Type::UINT8 => "kTfLiteUInt8",
        Type::INT16 => "kTfLiteInt16",
        Type::UINT16 => "kTfLiteUInt16",
        Type::INT32 => "kTfLiteInt32",
        Type::UINT32 => "kTfLiteUInt32",
        Type::INT64 => "kTfLiteInt64",
        Type::UINT64 => "kTfLiteUInt64",
        Type::BOOL => "kTfLiteBool",
        _ => "kTfLiteNoType",
    }
}

/// The statements that make a word an element, and copy it to `to`.
fn element(element_type: Type) -> String {
    let integer = |kind: &str, value: &str| {
        format!("{{ const {kind} x = static_cast<{kind}>({value}); memcpy(to, &x, sizeof(x)); }}")
    };
    let top = |bits: u32| format!("(static_cast<int32_t>(word) >> {bits}) >> signal.narrow");
    match element_type {
        Type::INT8 => integer("int8_t", &top(24)),
        Type::UINT8 => integer("uint8_t", &format!("({}) + 128", top(24))),
        Type::INT16 => integer("int16_t", &top(16)),
        Type::UINT16 => integer("uint16_t", &format!("({}) + 32768", top(16))),
        Type::INT32 | Type::UINT32 => integer("uint32_t", "(word >> 16) >> signal.narrow"),
        Type::INT64 | Type::UINT64 => integer("uint64_t", "(word >> 16) >> signal.narrow"),
        Type::BOOL => integer("uint8_t", "word >> 31"),
        // 24 bits and a power of two: nothing is rounded.
        _ => "{ const uint32_t bits = (107u - signal.narrow) << 23; float unit; memcpy(&unit, &bits, sizeof(unit));\n          \
              const float x = static_cast<float>(static_cast<int32_t>(word) >> 8) * unit; memcpy(to, &x, sizeof(x)); }"
            .into(),
    }
}

fn push_helpers(text: &mut String, test: &SelfTest) {
    text.push_str(
        "// Whether a tensor has the type and the size of the model's.\n\
         inline bool IsPort(const TfLiteTensor* tensor, const Port& port, const char* what, size_t index) {\n  \
           if (tensor != nullptr && tensor->type == port.type && tensor->bytes == port.bytes) return true;\n  \
           MicroPrintf(\"self-test: %s %d is not that of the model that the test is for\", what, static_cast<int>(index));\n  \
           return false;\n}\n\n",
    );
    let types = test.inputs.iter().map(|input| input.element_type);
    let types: std::collections::BTreeSet<Type> = types.collect();
    if !types.is_empty() {
        text.push_str(
            "// Sets an input to noise: xorshift, of which a word makes `hold` elements.\n\
             inline void Fill(const Signal& signal, uint32_t& word, TfLiteTensor* tensor) {\n  \
               uint8_t* const start = static_cast<uint8_t*>(tensor->data.data);\n  \
               size_t size = 0;\n  \
               switch (tensor->type) {\n",
        );
        for &element_type in &types {
            let size = element_type.bytes().unwrap_or(1);
            let _ = writeln!(
                text,
                "    case {}: size = {size}; break;",
                lite_type(element_type)
            );
        }
        text.push_str(
            "    default: return;\n  }\n  uint16_t left = 0;\n  \
             for (size_t at = 0; at + size <= tensor->bytes; at += size) {\n    \
             if (left == 0) {\n      word ^= word << 13;\n      word ^= word >> 17;\n      word ^= word << 5;\n      \
             left = signal.hold;\n    }\n    --left;\n    uint8_t* const to = start + at;\n    switch (tensor->type) {\n",
        );
        for &element_type in &types {
            let _ = writeln!(
                text,
                "      case {}:\n        {}\n        break;",
                lite_type(element_type),
                element(element_type)
            );
        }
        text.push_str("      default: break;\n    }\n  }\n}\n\n");
    }
    let has = |is: fn(&Values) -> bool| test.outputs.iter().any(|output| is(&output.values));
    if has(|values| matches!(values, Values::Bytes(bytes) if !bytes.is_empty())) {
        text.push_str(
            "inline bool SameBytes(int invoke, int output, const TfLiteTensor* tensor, const uint8_t* expected) {\n  \
               const uint8_t* const found = static_cast<const uint8_t*>(tensor->data.data);\n  \
               for (size_t at = 0; at < tensor->bytes; ++at) {\n    \
                 if (found[at] == expected[at]) continue;\n    \
                 MicroPrintf(\"self-test: invoke %d, output %d: byte %d is %d instead of %d\", invoke, output,\n                \
                 static_cast<int>(at), found[at], expected[at]);\n    \
                 return false;\n  }\n  return true;\n}\n\n",
        );
    }
    if has(|values| matches!(values, Values::Digests(_))) {
        text.push_str(
            "inline bool SameDigest(int invoke, int output, const TfLiteTensor* tensor, uint32_t expected) {\n  \
               const uint8_t* const found = static_cast<const uint8_t*>(tensor->data.data);\n  \
               uint32_t digest = 0x811c9dc5u;\n  \
               for (size_t at = 0; at < tensor->bytes; ++at) digest = (digest ^ found[at]) * 0x01000193u;\n  \
               if (digest == expected) return true;\n  \
               MicroPrintf(\"self-test: invoke %d, output %d: the digest is %x instead of %x\", invoke, output,\n              \
               static_cast<unsigned>(digest), static_cast<unsigned>(expected));\n  \
               return false;\n}\n\n",
        );
    }
    if has(|values| matches!(values, Values::Near { .. })) {
        push_near(text, test);
    }
}

fn push_near(text: &mut String, test: &SelfTest) {
    text.push_str(
        "// Numbers of one element each, as floats.\n\
         inline bool Near(int invoke, int output, const TfLiteTensor* tensor, size_t step, float within, const float* expected) {\n  \
           const uint8_t* const start = static_cast<const uint8_t*>(tensor->data.data);\n  \
           size_t size = 0;\n  switch (tensor->type) {\n",
    );
    let near = test
        .outputs
        .iter()
        .filter(|output| matches!(output.values, Values::Near { .. }));
    let types: std::collections::BTreeSet<Type> =
        near.map(|output| output.port.element_type).collect();
    for &element_type in &types {
        let size = element_type.bytes().unwrap_or(1);
        let _ = writeln!(
            text,
            "    case {}: size = {size}; break;",
            lite_type(element_type)
        );
    }
    text.push_str(
        "    default: return false;\n  }\n  \
         for (size_t k = 0; k * step * size + size <= tensor->bytes; ++k) {\n    \
         const uint8_t* const from = start + k * step * size;\n    float found = 0;\n    switch (tensor->type) {\n",
    );
    for &element_type in &types {
        let kind = match element_type {
            Type::INT8 => "int8_t",
            Type::UINT8 => "uint8_t",
            Type::INT16 => "int16_t",
            _ => "float",
        };
        let _ = writeln!(
            text,
            "      case {}: {{ {kind} x; memcpy(&x, from, sizeof(x)); found = static_cast<float>(x); }} break;",
            lite_type(element_type)
        );
    }
    text.push_str(
        "      default: break;\n    }\n    \
         const float difference = found > expected[k] ? found - expected[k] : expected[k] - found;\n    \
         // What is no number is not near anything.\n    \
         if (difference <= within) continue;\n    \
         const int element = static_cast<int>(k * step);\n    \
         if (tensor->type != kTfLiteFloat32) {\n      \
           MicroPrintf(\"self-test: invoke %d, output %d: element %d is %d instead of %d\", invoke, output, element,\n                  \
             static_cast<int>(found), static_cast<int>(expected[k]));\n      \
           return false;\n    }\n    \
         uint32_t bits[2];\n    memcpy(&bits[0], &found, 4);\n    memcpy(&bits[1], &expected[k], 4);\n    \
         // As bits: small C libraries print no fractions.\n    \
         MicroPrintf(\"self-test: invoke %d, output %d: element %d has the bits %x instead of %x\", invoke, output, element,\n                \
         static_cast<unsigned>(bits[0]), static_cast<unsigned>(bits[1]));\n    \
         return false;\n  }\n  return true;\n}\n\n",
    );
}

fn push_function(text: &mut String, test: &SelfTest, name: &str) {
    text.push_str(
        "}  // namespace self_test\n\n\
         // Returns kTfLiteOk if all outputs are as they should be.\n\
         inline TfLiteStatus SelfTest(tflite::MicroInterpreter& interpreter) {\n  \
           using namespace self_test;  // NOLINT: constants and functions of this header alone.\n  \
           if (interpreter.inputs_size() != kInputCount || interpreter.outputs_size() != kOutputCount) {\n    \
             MicroPrintf(\"self-test: the model has other inputs or outputs than the one that the test is for\");\n    \
             return kTfLiteError;\n  }\n",
    );
    for (what, count) in [("input", test.inputs.len()), ("output", test.outputs.len())] {
        if count == 0 {
            continue;
        }
        let capital = capital(what);
        let _ = writeln!(
            text,
            "  for (size_t k = 0; k < k{capital}Count; ++k) {{\n    \
               if (!IsPort(interpreter.{what}(k), k{capital}s[k], \"{what}\", k)) return kTfLiteError;\n  }}"
        );
    }
    text.push_str(
        "  if (interpreter.Reset() != kTfLiteOk) {\n    \
           MicroPrintf(\"self-test: the state cannot be reset\");\n    return kTfLiteError;\n  }\n  \
         for (int invoke = 0; invoke < kInvokes; ++invoke) {\n",
    );
    if !test.inputs.is_empty() {
        text.push_str(
            "    uint32_t word = kSignals[invoke].seed;\n    \
             for (size_t k = 0; k < kInputCount; ++k) Fill(kSignals[invoke], word, interpreter.input(k));\n",
        );
    }
    text.push_str(
        "    if (interpreter.Invoke() != kTfLiteOk) {\n      \
           MicroPrintf(\"self-test: invoke %d failed\", invoke);\n      return kTfLiteError;\n    }\n",
    );
    for (index, output) in test.outputs.iter().enumerate() {
        let call = match &output.values {
            Values::Bytes(bytes) if bytes.is_empty() => continue,
            Values::Near { values, .. } if values.is_empty() => continue,
            Values::Bytes(_) => {
                format!(
                    "SameBytes(invoke, {index}, interpreter.output({index}), kBytes{index}[invoke])"
                )
            }
            Values::Digests(_) => format!(
                "SameDigest(invoke, {index}, interpreter.output({index}), kDigests{index}[invoke])"
            ),
            Values::Near { .. } => format!(
                "Near(invoke, {index}, interpreter.output({index}), kStep{index}, kWithin{index}[invoke],\n              \
                 kNumbers{index}[invoke])"
            ),
        };
        let _ = writeln!(text, "    if (!{call}) return kTfLiteError;");
    }
    let _ = write!(
        text,
        "  }}\n  return interpreter.Reset();\n}}\n\n}}  // namespace {name}\n}}  // namespace arenaplan\n"
    );
}
