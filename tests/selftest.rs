//! Self-tests: that they pass where they should, and fail with kernels of another order.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

#[path = "common/build.rs"]
mod build;
mod common;

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use arenaplan::execute::{ExecuteError, Memory, without_plan};
use arenaplan::plan::{Options as PlanOptions, Stripes, plan};
use arenaplan::selftest::{Options, Order, SelfTest, SelfTestError};
use arenaplan::target::Target;
use arenaplan_runtime::fixed::{Multiplier, activation_range};
use arenaplan_runtime::self_test::{Expected, SelfTestFailure};
use arenaplan_runtime::{Code, Contract, Fault, Interpreter, Kernel, Node, Tensor, Type, ops};
use arenaplan_schema::tflite::BuiltinOperator;
use build::Plain;

fn planned(model: &[u8], target: Target) -> Vec<u8> {
    let options = PlanOptions {
        target,
        ..PlanOptions::default()
    };
    plan(model, &options).unwrap().file
}

fn self_test(file: &[u8]) -> SelfTest {
    SelfTest::of(file, &Options::default()).unwrap()
}

/// Runs a self-test on a file with these kernels.
fn run(test: &SelfTest, file: &[u8], kernels: &[Kernel]) -> Result<(), SelfTestFailure> {
    let (model, mut arena) = (Memory::holding(file), Memory::new(1 << 20));
    let mut it = Interpreter::new(model.as_slice(), kernels, arena.as_mut_slice()).unwrap();
    // What was before must not count.
    it.invoke().unwrap();
    test.with(|test| test.run(&mut it))
}

fn with(kernel: Kernel) -> Vec<Kernel> {
    [ops::ALL, &[kernel]].concat()
}

#[test]
fn plans_of_the_runtime_pass() {
    let (mut passed, mut over) = (0, 0);
    for sample in common::models() {
        let Ok(planned) = plan(
            &sample.bytes,
            &PlanOptions {
                target: Target::Arenaplan,
                ..PlanOptions::default()
            },
        ) else {
            continue;
        };
        match SelfTest::of(&planned.file, &Options::default()) {
            Ok(test) => {
                assert_eq!(
                    run(&test, &planned.file, ops::ALL),
                    Ok(()),
                    "{}",
                    sample.name
                );
                // The file without its plan computes the same.
                let original = without_plan(&planned.file).unwrap();
                assert_eq!(run(&test, &original, ops::ALL), Ok(()), "{}", sample.name);
                passed += 1;
                over += test.report().findings.len();
            }
            Err(SelfTestError::Execute(ExecuteError::Runtime { .. })) => {}
            Err(error) => panic!("{}: {error}", sample.name),
        }
    }
    assert!(passed >= 60, "only {passed} self-tests");
    assert!(
        over >= 100,
        "only {over} operators have outputs over inputs"
    );
}

/// Inputs and outputs are those of the model before it was cut, so that one test fits both.
#[test]
fn a_model_in_stripes_passes_as_the_original_does() {
    let model = common::model("conv_int16x8");
    let options = PlanOptions {
        target: Target::Arenaplan,
        stripes: Stripes::UpTo(200),
        ..PlanOptions::default()
    };
    let striped = plan(&model, &options).unwrap();
    assert!(striped.report.stripes.is_some());
    let original = planned(&model, Target::Arenaplan);
    for made_from in [&striped.file, &original] {
        let test = self_test(made_from);
        for file in [&striped.file, &original] {
            run(&test, file, ops::ALL).unwrap();
        }
    }
}

#[test]
fn plans_for_the_reference_kernels_show_wrong_orders() {
    let (mut seen, mut matter) = (0, 0);
    for name in [
        "dscnn_int8",
        "mobilenet_v2_int8",
        "resnet_int8",
        "inception_int8",
        "unet_int8",
        "tcn_int8",
        "attention_float32",
        "streaming_int8",
    ] {
        let test = self_test(&planned(&common::model(name), Target::TflmReference));
        let report = test.report();
        assert_eq!(report.target, Some(Target::TflmReference));
        assert!(report.flash_bytes <= 600, "{name}: {report}");
        assert!(report.matter() > 0, "{name}: {report}");
        seen += report.seen();
        matter += report.matter();
    }
    assert!(matter >= 40, "{matter}");
    assert_eq!(seen, matter);
}

/// Sizes and steps of one direction of a window.
struct Direction {
    input: usize,
    filter: usize,
    output: usize,
    stride: usize,
    dilation: usize,
}

impl Direction {
    /// The element of the input under an element of the filter.
    fn at(&self, output: usize, filter: usize, is_same: bool) -> Option<usize> {
        let needed = (self.output - 1) * self.stride + (self.filter - 1) * self.dilation + 1;
        let padding = match is_same {
            true => needed.saturating_sub(self.input) / 2,
            false => 0,
        };
        let at = (output * self.stride + filter * self.dilation).checked_sub(padding)?;
        (at < self.input).then_some(at)
    }
}

/// CONV_2D and DEPTHWISE_CONV_2D of int8, element by element: from the first one to the last, or from the last to the first.
fn windows(node: &Node<'_>, depthwise: bool, backwards: bool) -> Result<(), Fault> {
    let (input, filter, output) = (node.input(0)?, node.input(1)?, node.output(0)?);
    let options = node.options()?;
    let slots: [u16; 3] = if depthwise { [4, 6, 5] } else { [3, 5, 4] };
    let [activation, height, width] = slots;
    let dim = |tensor: &Tensor<'_>, axis| tensor.shape().dim(axis);
    let direction = |axis, stride, dilation| -> Result<Direction, Fault> {
        Ok(Direction {
            input: dim(&input, axis),
            filter: dim(&filter, axis),
            output: dim(&output, axis),
            stride: options.i32(stride, 1)? as usize,
            dilation: options.i32(dilation, 1)? as usize,
        })
    };
    let (rows, cols) = (direction(1, 2, height)?, direction(2, 1, width)?);
    let (depth, channels) = (dim(&input, 3), dim(&output, 3));
    let is_same = options.i8(0, 0)? == 0;
    let (least, largest) = activation_range(&output, options.i8(activation, 0)?, 0)?;
    let (from, weights) = (input.read::<i8>()?, filter.read::<i8>()?);
    let bias = match node.optional_input(2)? {
        Some(bias) => Some(bias.read::<i32>()?),
        None => None,
    };
    let to = output.write::<i8>()?;
    let element = |index: usize| -> Result<i8, Fault> {
        let channel = index % channels;
        let (x, y) = (
            index / channels % cols.output,
            index / channels / cols.output,
        );
        let (y, batch) = (y % rows.output, y / rows.output);
        let mut sum = bias.map_or(0, |bias| bias.get(channel));
        for row in 0..rows.filter {
            for col in 0..cols.filter {
                let (Some(in_y), Some(in_x)) = (rows.at(y, row, is_same), cols.at(x, col, is_same))
                else {
                    continue;
                };
                let pixel = ((batch * rows.input + in_y) * cols.input + in_x) * depth;
                let sources = match depthwise {
                    true => channel / (channels / depth)..channel / (channels / depth) + 1,
                    false => 0..depth,
                };
                for source in sources {
                    let weight = match depthwise {
                        true => (row * cols.filter + col) * channels + channel,
                        false => {
                            ((channel * rows.filter + row) * cols.filter + col) * depth + source
                        }
                    };
                    let value = i32::from(from.get(pixel + source)) - input.zero_point();
                    sum += value * i32::from(weights.get(weight));
                }
            }
        }
        let scales = filter.scales();
        let scale = scales.get(channel).or(scales.get(0)).unwrap_or(1.0);
        let factor = Multiplier::of_scales(input.scale()?, scale, output.scale()?);
        Ok((factor.apply(sum) + output.zero_point()).clamp(least, largest) as i8)
    };
    for k in 0..to.len() {
        let index = if backwards { to.len() - 1 - k } else { k };
        to.set(index, element(index)?);
    }
    Ok(())
}

fn conv(backwards: bool) -> Kernel {
    let run = match backwards {
        false => |node: &Node<'_>| windows(node, false, false),
        true => |node: &Node<'_>| windows(node, false, true),
    };
    let contract = Contract::Convolution { pixels: 1 };
    Kernel::builtin(Code::CONV_2D, run).with_contract(contract)
}

fn depthwise(backwards: bool) -> Kernel {
    let run = match backwards {
        false => |node: &Node<'_>| windows(node, true, false),
        true => |node: &Node<'_>| windows(node, true, true),
    };
    let contract = Contract::Depthwise { pixels: 1 };
    Kernel::builtin(Code::DEPTHWISE_CONV_2D, run).with_contract(contract)
}

#[test]
fn kernels_of_another_order_fail() {
    for name in ["dscnn_int8", "mobilenet_v2_int8", "inception_int8"] {
        let file = planned(&common::model(name), Target::Arenaplan);
        let test = self_test(&file);
        let sharing = |code: &str| {
            let findings = &test.report().findings;
            findings
                .iter()
                .any(|f| f.operator.contains(code) && f.seen.contains(&Order::Halves))
        };
        // As good as the runtime's own, so that nothing but the order differs.
        for kernel in [conv(false), depthwise(false)] {
            assert_eq!(run(&test, &file, &with(kernel)), Ok(()), "{name}");
        }
        for (kernel, code) in [
            (conv(true), " CONV_2D"),
            (depthwise(true), " DEPTHWISE_CONV_2D"),
        ] {
            let result = run(&test, &file, &with(kernel));
            assert_eq!(
                matches!(result, Err(SelfTestFailure::Output { .. })),
                sharing(code),
                "{name}{code}: {result:?}"
            );
        }
        // Without the plan, all tensors lie apart, and no order is wrong.
        let original = without_plan(&file).unwrap();
        for kernel in [conv(true), depthwise(true)] {
            assert_eq!(run(&test, &original, &with(kernel)), Ok(()), "{name}");
        }
    }
    // What the above must not be vacuous for.
    let file = planned(&common::model("dscnn_int8"), Target::Arenaplan);
    for kernel in [conv(true), depthwise(true)] {
        let failure = run(&self_test(&file), &file, &with(kernel)).unwrap_err();
        assert!(
            failure
                .to_string()
                .contains("the kernels do not keep the plan"),
            "{failure}"
        );
    }
}

#[test]
fn state_that_is_lost_fails() {
    // SVDF that forgets: its state is set to zero first.
    fn forgets(node: &Node<'_>) -> Result<(), Fault> {
        node.input(4)?.bytes_mut()?.fill(0);
        let svdf = ops::find(ops::ALL, Code::SVDF).ok_or(Fault::Custom(0))?;
        svdf.run(node)
    }
    let file = planned(&common::model("svdf_int8"), Target::Arenaplan);
    let test = self_test(&file);
    let svdf = ops::find(ops::ALL, Code::SVDF).unwrap();
    let failure = run(&test, &file, &with(svdf.with_run(forgets))).unwrap_err();
    // The first invoke has no state yet.
    assert!(
        matches!(failure, SelfTestFailure::Output { invoke, .. } if invoke > 0),
        "{failure}"
    );
}

/// One input of eight floats, one output as large.
fn one_operator(code: BuiltinOperator) -> Vec<u8> {
    let mut model = Plain::default();
    let (input, output) = (model.tensor(8), model.tensor(8));
    model.op(code, &[input], &[output]);
    (model.inputs, model.outputs) = (vec![input], vec![output]);
    model.finish()
}

#[test]
fn what_proves_nothing_is_said_to() {
    let message = |model: &[u8]| {
        SelfTest::of(model, &Options::default())
            .unwrap_err()
            .to_string()
    };
    let constant = message(&one_operator(BuiltinOperator::ZEROS_LIKE));
    assert_eq!(
        constant,
        "a self-test would prove nothing: its outputs are the same with all inputs that were tried, so that they would be \
         right with any kernels"
    );
    // The root of the root of ... is 1, or the number before it, by which one cannot tell a device that always says 1.
    let mut roots = Plain::default();
    let input = roots.tensor(8);
    let mut last = roots.tensor(8);
    roots.op(BuiltinOperator::ABS, &[input], &[last]);
    for _ in 0..40 {
        let root = roots.tensor(8);
        roots.op(BuiltinOperator::SQRT, &[last], &[root]);
        last = root;
    }
    (roots.inputs, roots.outputs) = (vec![input], vec![last]);
    assert_eq!(message(&roots.finish()), constant);
    // Some of eight numbers are always negative.
    let infinite = message(&one_operator(BuiltinOperator::LOG));
    assert!(infinite.contains("no numbers"), "{infinite}");
    let custom = message(&common::model("custom_operator_int8"));
    assert!(
        custom.starts_with("no self-test, since its outputs are computed on this machine: ")
            && custom.ends_with("no kernel for operator 1 ExampleFilter"),
        "{custom}"
    );
    assert!(
        message(b"no model").contains("not a"),
        "{}",
        message(b"no model")
    );
}

#[test]
fn invokes_are_as_many_as_asked_for() {
    let invokes = |name: &str, invokes| {
        let test = SelfTest::of(&common::model(name), &Options { invokes })?;
        Ok::<usize, SelfTestError>(test.report().invokes)
    };
    assert_eq!(invokes("conv_int8", None), Ok(4));
    assert_eq!(invokes("svdf_int8", None), Ok(6));
    assert_eq!(invokes("svdf_int8", Some(3)), Ok(3));
    for wrong in [0, 1, 1001] {
        let error = invokes("svdf_int8", Some(wrong)).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("option invokes: {wrong} is not between 2")),
            "{error}"
        );
    }
}

#[test]
fn another_model_is_told() {
    let file = planned(&common::model("conv_int8"), Target::Arenaplan);
    let other = planned(&common::model("dscnn_int8"), Target::Arenaplan);
    let result = run(&self_test(&file), &other, ops::ALL);
    assert_eq!(result, Err(SelfTestFailure::Input { input: 0 }));
    let other = planned(&common::model("two_inputs_int8"), Target::Arenaplan);
    let result = run(&self_test(&other), &file, ops::ALL);
    assert!(
        matches!(result, Err(SelfTestFailure::Input { .. })),
        "{result:?}"
    );
}

/// The generated Rust is the module of this test that compiles it; see there.
#[test]
fn rust_sources_are_those_that_are_compiled() {
    let file = planned(&common::model("dscnn_int8"), Target::Arenaplan);
    let path = common::root("tests/selftest/dscnn_int8.rs");
    let text = self_test(&file).to_rust("dscnn_int8");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    // `UPDATE=1 cargo test` writes it anew.
    assert_eq!(text, fs::read_to_string(&path).unwrap());
    let (model, mut arena) = (Memory::holding(&file), Memory::new(1 << 16));
    let mut it = Interpreter::new(model.as_slice(), ops::ALL, arena.as_mut_slice()).unwrap();
    assert_eq!(dscnn_int8::self_test(&mut it), Ok(()));
    assert!(self_test(&file).with(|test| *test == dscnn_int8::SELF_TEST));
    // Names that would end the comment.
    let text = self_test(&file).to_rust("*/ fn\n");
    assert!(text.starts_with("/* __ fn\\n self-test: "), "{text}");
}

#[allow(unreachable_pub, reason = "a firmware may export it")]
#[rustfmt::skip]
#[path = "selftest/dscnn_int8.rs"]
mod dscnn_int8;

mod cpp {
    use super::*;

    /// Whether there is a compiler; where it must be there (the environment says `CI`), it is a failure that there is none.
    fn is_there() -> bool {
        let found = Command::new("g++").arg("--version").output();
        if found.is_ok_and(|o| o.status.success()) {
            return true;
        }
        let must = std::env::var_os("CI").is_some();
        assert!(
            !must,
            "g++ is not here: install it, this test compiles self-tests"
        );
        false
    }

    /// All bytes of all inputs, and those of all outputs, of each invoke.
    struct Recording {
        inputs: Vec<Vec<u8>>,
        outputs: Vec<Vec<u8>>,
        /// Outputs of a device that loses its state.
        stale: Vec<Vec<u8>>,
    }

    impl Recording {
        fn of(test: &SelfTest, file: &[u8]) -> Self {
            let (model, mut arena) = (Memory::holding(file), Memory::new(1 << 20));
            let mut it =
                Interpreter::new(model.as_slice(), ops::ALL, arena.as_mut_slice()).unwrap();
            test.with(|test| {
                let mut run = |is_stale: bool| {
                    let (mut all_inputs, mut all_outputs) = (Vec::new(), Vec::new());
                    it.reset().unwrap();
                    for signal in test.signals {
                        if is_stale {
                            it.reset().unwrap();
                        }
                        let (mut noise, mut inputs, mut outputs) = (signal.noise(), vec![], vec![]);
                        for (k, port) in test.inputs.iter().enumerate() {
                            let bytes = it.input_bytes(k).unwrap();
                            assert!(noise.fill(port.element_type, bytes));
                            inputs.extend(&*bytes);
                        }
                        it.invoke().unwrap();
                        for k in 0..test.outputs.len() {
                            outputs.extend(it.output_bytes(k).unwrap());
                        }
                        all_inputs.push(inputs);
                        all_outputs.push(outputs);
                    }
                    (all_inputs, all_outputs)
                };
                let (inputs, outputs) = run(false);
                Recording {
                    inputs,
                    outputs,
                    stale: run(true).1,
                }
            })
        }

        fn header(&self, test: &SelfTest) -> String {
            test.with(|test| {
                let name = |element_type: Type| match element_type {
                    Type::FLOAT32 => "kTfLiteFloat32",
                    Type::INT8 => "kTfLiteInt8",
                    Type::UINT8 => "kTfLiteUInt8",
                    Type::INT16 => "kTfLiteInt16",
                    Type::INT32 => "kTfLiteInt32",
                    Type::INT64 => "kTfLiteInt64",
                    Type::BOOL => "kTfLiteBool",
                    Type::UINT32 => "kTfLiteUInt32",
                    other => panic!("{other:?}"),
                };
                let mut text = String::from("#include \"tensorflow/lite/c/common.h\"\n");
                let outputs: Vec<_> = test.outputs.iter().map(|output| output.port).collect();
                for (what, ports) in [("Input", test.inputs), ("Output", &outputs)] {
                    let types: Vec<_> = ports.iter().map(|p| name(p.element_type)).collect();
                    let sizes: Vec<_> = ports.iter().map(|p| p.bytes.to_string()).collect();
                    let _ = writeln!(
                        text,
                        "constexpr size_t k{what}Count = {};\nconstexpr TfLiteType k{what}Types[] = {{{}}};\n\
                         constexpr size_t k{what}Sizes[] = {{{}}};\nconstexpr size_t k{what}Bytes = {};",
                        ports.len(),
                        types.join(", "),
                        sizes.join(", "),
                        ports.iter().map(|p| p.bytes).sum::<usize>(),
                    );
                }
                let _ = writeln!(text, "constexpr size_t kInvokes = {};", test.signals.len());
                for (what, bytes, invokes) in [
                    ("Inputs", "Input", &self.inputs),
                    ("Outputs", "Output", &self.outputs),
                    ("Stale", "Output", &self.stale),
                ] {
                    let _ = writeln!(text, "constexpr uint8_t k{what}[kInvokes][k{bytes}Bytes] = {{");
                    for invoke in invokes {
                        let bytes: Vec<_> = invoke.iter().map(u8::to_string).collect();
                        let _ = writeln!(text, "{{{}}},", bytes.join(", "));
                    }
                    text.push_str("};\n");
                }
                // The last byte that is compared, and the highest of its element.
                let (last, others) = test.outputs.split_last().unwrap();
                let before: usize = others.iter().map(|output| output.port.bytes).sum();
                let size = last.port.element_type.bytes().unwrap();
                let within = match last.expected {
                    Expected::Near { step, .. } => {
                        let elements = last.port.bytes / size;
                        (elements - 1) / step * step * size + size - 1
                    }
                    _ => last.port.bytes - 1,
                };
                let _ = writeln!(text, "constexpr size_t kChanged = {};", before + within);
                text
            })
        }
    }

    fn compile(folder: &Path, name: &str, standard: &str) {
        let mut command = Command::new("g++");
        command.args([
            &format!("-std={standard}"),
            "-O1",
            "-fno-exceptions",
            "-fno-rtti",
        ]);
        command.args([
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Wconversion",
            "-Wshadow",
            "-Werror",
        ]);
        command.arg(format!("-DSELFTEST_NAME={name}"));
        command
            .arg("-I")
            .arg(common::root("tests/selftest/headers"));
        command.args(["-I", ".", "-o", "program"]);
        command.arg(common::root("tests/selftest/main.cc"));
        let output = command.current_dir(folder).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
    }

    /// What the program says of a device that goes wrong in this way.
    fn outcome(folder: &Path, mode: &str) -> String {
        let output = Command::new(folder.join("program"))
            .arg(mode)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{mode}: {:?} {text}",
            output.status
        );
        text
    }

    #[test]
    fn headers_tell_right_devices_from_wrong_ones() {
        if !is_there() {
            return;
        }
        let model = |name: &str| common::root("testdata/models").join(format!("{name}.tflite"));
        let kernel = |name: &str| common::root("testdata/kernels").join(format!("{name}.tflite"));
        for (path, name, form, stale) in [
            (model("dscnn_int8"), "dscnn_int8", "byte 3 is ", false),
            (
                model("streaming_int8"),
                "streaming_int8",
                "element 3 is ",
                true,
            ),
            (
                model("svdf_float32"),
                "svdf_float32",
                "element 4 has the bits ",
                true,
            ),
            (model("conv_uint8_io"), "conv_uint8_io", "byte ", false),
            (model("softmax_int8"), "softmax_int8", "", false),
            (
                model("autoencoder_int16x8"),
                "autoencoder_int16x8",
                "",
                false,
            ),
            (model("unused_input_int8"), "unused_input_int8", "", false),
            (
                model("reductions_float32"),
                "reductions_float32",
                "element ",
                false,
            ),
            (kernel("PACK_int64"), "PACK_int64", "", false),
            (kernel("CAST_uint32"), "CAST_uint32", "", false),
            (kernel("LOGICAL_AND_bool"), "LOGICAL_AND_bool", "", false),
        ] {
            let file = fs::read(path).unwrap();
            let test = self_test(&file);
            let recording = Recording::of(&test, &file);
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("self_test.h"), test.to_c(name)).unwrap();
            fs::write(folder.path().join("recording.h"), recording.header(&test)).unwrap();
            compile(folder.path(), name, "c++17");
            let said = |mode: &str| outcome(folder.path(), mode);
            assert_eq!(said("right"), "passed\n", "{name}");
            let byte = said("byte");
            assert!(byte.ends_with("failed\n"), "{name}: {byte}");
            let invoke = format!("self-test: invoke {}, output ", test.report().invokes - 1);
            assert!(
                byte.starts_with(&invoke) && byte.contains(form),
                "{name}: {byte}"
            );
            assert_eq!(
                said("no-invoke"),
                "self-test: invoke 1 failed\nfailed\n",
                "{name}"
            );
            let port = "is not that of the model that the test is for\nfailed\n";
            assert_eq!(said("type"), format!("self-test: input 0 {port}"), "{name}");
            assert_eq!(
                said("size"),
                format!("self-test: output 0 {port}"),
                "{name}"
            );
            assert_eq!(
                said("count"),
                "self-test: the model has other inputs or outputs than the one that the test is for\nfailed\n"
            );
            assert_eq!(
                said("no-reset"),
                "self-test: the state cannot be reset\nfailed\n"
            );
            let state = said("no-state");
            match stale {
                true => {
                    assert!(state.starts_with("self-test: invoke ") && state.ends_with("failed\n"))
                }
                false => assert_eq!(state, "passed\n", "{name}"),
            }
        }
    }
}
