//! The Rust file: constants, and a call of the runtime's own loop.

use std::fmt::{Display, Write};

use arenaplan_runtime::self_test::Port;

use super::{Known, MADE_BY, SelfTest, Values, type_constant};

/// The whole file; `name` is the model's.
pub(super) fn file(test: &SelfTest, name: &str) -> String {
    // What ends the comment early is no part of a name.
    let name = name.replace(['/', '*'], "_").escape_default().to_string();
    let mut text = format!("/* {name} self-test: for arenaplan-runtime, {MADE_BY}\n");
    for line in test.report.to_string().lines() {
        let _ = writeln!(text, "// {line}");
    }
    text.push('\n');
    text.push_str(&rust_items(test));
    text
}

/// The items of a Rust module for `arenaplan-runtime`: a static `SELF_TEST` and a function `self_test`. They name everything by
/// its full path, so that they can stand beside any others.
pub fn rust_items(test: &SelfTest) -> String {
    let mut text = String::from("/// Inputs and the outputs that they must give.\npub ");
    text.push_str(&rust_static(test));
    text.push_str(
        "\n/// Proves that the kernels of this device keep the model's plan. Run it once, after the interpreter is made: state is set\n\
         /// back before and after, and inputs have to be set again.\n\
         ///\n\
         /// # Errors\n\
         /// The first output that is not as it should be, or why there is none.\n\
         pub fn self_test(\n    interpreter: &mut ::arenaplan_runtime::Interpreter<'_, '_>,\n\
         ) -> ::core::result::Result<(), ::arenaplan_runtime::self_test::SelfTestFailure> {\n    \
         SELF_TEST.run(interpreter)\n}\n",
    );
    text
}

/// A static `SELF_TEST`, which names everything by its full path.
pub(crate) fn rust_static(test: &SelfTest) -> String {
    let mut text = String::from(
        "static SELF_TEST: ::arenaplan_runtime::self_test::SelfTest<'static> = ::arenaplan_runtime::self_test::SelfTest {\n",
    );
    text.push_str("    inputs: &[\n");
    for input in &test.inputs {
        let _ = writeln!(text, "        {},", port(input));
    }
    text.push_str("    ],\n    outputs: &[\n");
    for output in &test.outputs {
        push_output(&mut text, output);
    }
    text.push_str("    ],\n    signals: &[\n");
    for signal in &test.signals {
        let _ = writeln!(
            text,
            "        ::arenaplan_runtime::self_test::Signal {{ seed: {:#010x}, narrow: {}, hold: {} }},",
            signal.seed, signal.narrow, signal.hold
        );
    }
    text.push_str("    ],\n};\n");
    text
}

fn port(port: &Port) -> String {
    format!(
        "::arenaplan_runtime::self_test::Port {{ element_type: ::arenaplan_runtime::Type::{}, bytes: {} }}",
        type_constant(port.element_type),
        port.bytes
    )
}

fn push_output(text: &mut String, output: &Known) {
    let _ = writeln!(
        text,
        "        ::arenaplan_runtime::self_test::Output {{\n            port: {},",
        port(&output.port)
    );
    text.push_str("            expected: ::arenaplan_runtime::self_test::Expected::");
    match &output.values {
        Values::Bytes(bytes) => {
            let _ = write!(text, "Bytes(&[\n{}            ])", rows(bytes, 20));
        }
        Values::Digests(digests) => {
            let digests = digests.iter().map(|digest| format!("{digest:#010x}"));
            let digests: Vec<String> = digests.collect();
            let _ = write!(text, "Digests(&[\n{}            ])", rows(&digests, 8));
        }
        Values::Near {
            step,
            within,
            values,
        } => {
            let debug = |numbers: &[f32]| -> Vec<String> {
                numbers.iter().map(|x| format!("{x:?}")).collect()
            };
            let _ = write!(
                text,
                "Near {{\n                step: {step},\n                within: &[\n{}                ],\n                values: &[\n{}                ],\n            }}",
                rows(&debug(within), 8),
                rows(&debug(values), 8)
            );
        }
    }
    text.push_str(",\n        },\n");
}

/// Lines of so many numbers each.
fn rows<T: Display>(items: &[T], in_a_row: usize) -> String {
    let mut text = String::new();
    for row in items.chunks(in_a_row) {
        let row: Vec<String> = row.iter().map(T::to_string).collect();
        let _ = writeln!(text, "                {},", row.join(", "));
    }
    text
}
