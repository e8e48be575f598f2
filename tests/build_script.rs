//! What build scripts call: the code, the sizes and kernels in it, errors and warnings. `generated.rs` compiles and runs it.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use arenaplan::build::{self, Builder, Error, ErrorKind, Generated, Stripes};
use arenaplan::codegen::{Interface, Operators, OwnKernel, RustOptions, kernels, module};
use arenaplan::execute::{self, Feed, Memory, Setting};
use arenaplan::graph::Graph;
use arenaplan::model::Model;
use arenaplan::solver::Planner;
use arenaplan::target::Target;
use arenaplan_runtime::{Interpreter, Kernel, ops};
use common::{Sample, folder, model, models, root};

/// Models that there is no code for, and a part of what is said instead.
const REFUSED: &[(&str, &str)] = &[
    (
        "conv_hybrid",
        "operator 3 CONV_2D: no kernel for the type of input 1",
    ),
    (
        "custom_operator_int8",
        "no kernel for operator 1 ExampleFilter",
    ),
    (
        "detection_float32",
        "no kernel for operator 1 TFLite_Detection_PostProcess",
    ),
    ("ethos_u_int8", "compiled for an Ethos-U"),
    (
        "idle_open_shape_float32",
        "the size of tensor 1 \"idle\" is not known; the runtime needs shapes",
    ),
    (
        "large_custom_options_float32",
        "no kernel for operator 1 ExampleLarge",
    ),
    (
        "legacy_scalar_float32",
        "operator 1 RESHAPE: the shape of output 0 does not fit",
    ),
    (
        "newer_operator_int8",
        "no kernel for operator 1 BUILTIN_250",
    ),
    (
        "reshape_open_float32",
        "the size of tensor 2 \"open\" is not known",
    ),
    (
        "stored_shape_float32",
        "operator 1 DEPTH_TO_SPACE: the shape of input 0 does not fit",
    ),
    (
        "string_tensor_float32",
        "the size of tensor 1 \"labels\" is not known",
    ),
    (
        "three_levels_float32",
        "no kernel for operator 2 REDUCE_ALL of subgraph 2",
    ),
    (
        "unknown_shape_float32",
        "the size of tensor 2 \"unknown\" is not known",
    ),
];

fn generated(name: &str) -> Generated {
    Builder::new().generate(name, &model(name)).unwrap()
}

fn list(interface: &Interface) -> Vec<Kernel> {
    interface.kernels.iter().map(|k| k.kernel).collect()
}

/// The error of a builder whose models lie in `testdata`.
fn error(builder: &Builder) -> Error {
    builder.generate_all(&root("testdata")).unwrap_err()
}

fn says(error: &Error, parts: &[&str]) {
    let text = format!("{error:?}");
    assert_eq!(text, error.to_string());
    for part in parts {
        assert!(text.contains(part), "no {part:?} in {text:?}");
    }
}

#[test]
fn arenas_are_as_large_as_the_runtime_asks_for() {
    let mut refused = Vec::new();
    for Sample { name, bytes, .. } in models() {
        let found = match Builder::new().generate(&name, &bytes) {
            Ok(found) => found,
            Err(error) => {
                refused.push((name, error.to_string()));
                continue;
            }
        };
        let arena = found.interface.arena_bytes();
        let file = Memory::holding(&found.planned.file);
        let kernels = list(&found.interface);
        let attempt = |bytes: usize| {
            let mut arena = Memory::new(bytes);
            let made = Interpreter::new(file.as_slice(), &kernels, arena.as_mut_slice());
            made.map(|it| it.session().tail_bytes())
        };
        assert_eq!(attempt(arena), Ok(found.interface.tail_bytes), "{name}");
        for less in [1, 16] {
            let Some(given) = arena.checked_sub(less) else {
                continue;
            };
            let expected = arenaplan_runtime::Error::ArenaTooSmall {
                needed: arena,
                given,
            };
            assert_eq!(attempt(given), Err(expected), "{name}");
        }
    }
    for (name, text) in &refused {
        let expected = REFUSED.iter().find(|(which, _)| which == name);
        assert!(
            expected.is_some_and(|(_, part)| text.contains(part)),
            "{name}: {text}"
        );
    }
    assert_eq!(refused.len(), REFUSED.len());
}

/// `generated.rs` compares what such a model computes with what TFLM did without stripes.
#[test]
fn stripes_bring_their_kernels() {
    let name = "conv_int16x8";
    let plain = generated(name);
    let striped = Builder::new().stripes(Stripes::UpTo(200));
    let striped = striped.generate(name, &model(name)).unwrap();
    let kernels = |g: &Generated| -> Vec<String> {
        let all = g.interface.kernels.iter();
        all.map(|k| k.operator.clone()).collect()
    };
    for kernel in ["SLICE", "CONCATENATION"] {
        assert!(!kernels(&plain).iter().any(|k| k == kernel), "{kernel}");
        assert!(kernels(&striped).iter().any(|k| k == kernel), "{kernel}");
    }
    assert!(striped.interface.arena_bytes() < plain.interface.arena_bytes());
    let why = "no row stripes: ";
    assert!(!striped.warnings.iter().any(|w| w.starts_with(why)));

    let name = "autoencoder_int8";
    let chain = Builder::new().stripes(Stripes::Auto);
    let chain = chain.generate(name, &model(name)).unwrap();
    assert!(
        chain.warnings.iter().any(|w| w.starts_with(why)),
        "{:?}",
        chain.warnings
    );
    assert_eq!(chain.rust, generated(name).rust);
}

#[test]
fn kernels_of_a_model_compute_what_all_kernels_do() {
    let mut narrow = 0;
    let cases = models().into_iter();
    for Sample { name, bytes, .. } in cases.chain(folder(&root("testdata/kernels"))) {
        let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
        let Ok(found) = kernels::exact(&graph, &[]) else {
            continue;
        };
        let is_narrow = |k: &&kernels::KernelUse| !k.path.ends_with(&format!("::{}", k.operator));
        match found.iter().filter(is_narrow).count() {
            // These are the same.
            0 => continue,
            count => narrow += count,
        }
        let kernels: Vec<_> = found.iter().map(|k| k.kernel).collect();
        let run = |kernels: &[Kernel]| {
            let setting = Setting {
                kernels,
                feed: Feed::Noise(7),
                invokes: 1,
                ..Setting::default()
            };
            let mut outputs = Vec::new();
            let result = execute::run(&bytes, &setting, |_, values| outputs.push(values));
            (result.map(|figures| figures.arena_bytes), outputs)
        };
        assert_eq!(run(&kernels), run(ops::ALL), "{name}");
    }
    assert!(narrow > 100, "only {narrow} kernels of one type were tried");
}

/// The runtime's sources have no kernel of one type that models never get.
#[test]
fn all_kernels_of_one_type_are_known() {
    fn collect(folder: &Path, names: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, names);
                continue;
            }
            for line in fs::read_to_string(&path).unwrap().lines() {
                let name = line
                    .strip_prefix("pub const ")
                    .and_then(|l| l.split_once(": Kernel"));
                names.extend(name.map(|(name, _)| name.to_owned()));
            }
        }
    }
    let mut names = Vec::new();
    collect(&root("runtime/src/ops"), &mut names);
    let wide: Vec<_> = arenaplan_runtime::CODES
        .iter()
        .map(|(_, name)| *name)
        .collect();
    names.retain(|name| !wide.contains(&name.as_str()));
    names.sort();
    let mut known: Vec<_> = kernels::narrow_kernels()
        .iter()
        .map(|(_, name, _)| *name)
        .collect();
    known.sort_unstable();
    assert_eq!(names, known);
    assert!(names.len() >= 40);
    for (operator, name, kernel) in kernels::narrow_kernels() {
        let code = arenaplan_runtime::CODES
            .iter()
            .find(|(_, name)| name == operator);
        assert_eq!(Some(kernel.code()), code.map(|(code, _)| *code), "{name}");
    }
}

#[test]
fn operators_without_a_kernel_are_named() {
    let custom = Builder::new().model("models/detection_float32.tflite");
    let error_text = error(&custom);
    says(
        &error_text,
        &[
            "models/detection_float32.tflite: the runtime has no kernel for operator 1 TFLite_Detection_PostProcess.",
            "`.kernel(\"TFLite_Detection_PostProcess\", \"crate::MY_KERNEL\")`",
        ],
    );
    assert!(matches!(
        error_text.kind,
        ErrorKind::Code(arenaplan::codegen::Error::NoKernel { .. })
    ));
    says(
        &error(&Builder::new().model("models/three_levels_float32.tflite")),
        &[
            "operator 2 REDUCE_ALL of subgraph 2",
            "`.kernel(\"REDUCE_ALL\", ",
        ],
    );

    let with = custom.kernel("TFLite_Detection_PostProcess", "crate::detection::KERNEL");
    let found = with.generate_all(&root("testdata")).unwrap().remove(0);
    assert!(found.rust.contains("        crate::detection::KERNEL,\n"));
    assert!(
        !found.warnings.iter().any(|w| w.contains("kernel")),
        "{:?}",
        found.warnings
    );
    let idle = with
        .kernel("Nothing", "crate::NOTHING")
        .generate_all(&root("testdata"))
        .unwrap();
    assert!(
        idle[0]
            .warnings
            .iter()
            .any(|w| w.contains("\"Nothing\"") && w.contains("crate::NOTHING"))
    );
}

#[test]
fn errors_say_which_file_what_was_found_and_what_to_do() {
    says(
        &error(&Builder::new().model("models/absent.tflite")),
        &[
            "models/absent.tflite: cannot be read: ",
            "Cargo.toml",
            "testdata",
        ],
    );
    says(
        &error(&Builder::new().model("README.md")),
        &["README.md: is no model that can be read (a .tflite file): "],
    );
    says(&error(&Builder::new()), &["no model was given", ".model("]);
    says(
        &error(
            &Builder::new()
                .model("models/dscnn_int8.tflite")
                .model("./models/dscnn_int8.tflite"),
        ),
        &[
            "./models/dscnn_int8.tflite: \"dscnn_int8\" is also what models/dscnn_int8.tflite is called",
            ".named(",
        ],
    );
    let dscnn = || Builder::new().model("models/dscnn_int8.tflite");
    for other in ["DSCNN_INT8", "dscnn-int8"] {
        let builder = dscnn().model("models/tcn_int8.tflite").named(other);
        says(&error(&builder), &["models/tcn_int8.tflite", other]);
    }
    for name in ["", "a/b", "../x", "a\"b"] {
        says(
            &error(&dscnn().named(name)),
            &["models/dscnn_int8.tflite", &format!("{name:?}"), ".named("],
        );
    }
    says(
        &error(&dscnn().visibility("public")),
        &["visibility", "\"public\"", "pub(crate)"],
    );
    says(
        &error(&dscnn().kernel("X", "not a path")),
        &["\"not a path\"", "crate::MY_KERNEL"],
    );
    says(
        &error(&dscnn().alignment(24)),
        &["models/dscnn_int8.tflite", "align", "24"],
    );
    says(
        &Builder::new()
            .generate(
                "x",
                b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
            )
            .unwrap_err(),
        &["git lfs pull"],
    );
    // A plan that shares more than the kernels of the runtime allow.
    says(
        &error(&dscnn().target(Target::TflmReference)),
        &["models/dscnn_int8.tflite", "target arenaplan"],
    );
}

#[test]
fn an_arena_above_the_limit_fails_with_the_tensors_that_are_there() {
    let needed = generated("diamond_c_int8").interface.arena_bytes();
    let limited = |bytes| {
        Builder::new()
            .model("models/diamond_c_int8.tflite")
            .arena_limit(bytes)
    };
    assert!(limited(needed).generate_all(&root("testdata")).is_ok());
    let error = error(&limited(needed - 1));
    says(
        &error,
        &["models/diamond_c_int8.tflite: needs an arena of "],
    );

    // The numbers by the model's shapes, and who reads what by its operators.
    let text = error.to_string();
    let planned = generated("diamond_c_int8").planned;
    let graph = Graph::read(Model::parse(&planned.file).unwrap()).unwrap();
    let number = |text: &str| text.replace(',', "").parse::<u64>().unwrap();
    let (_, rest) = text.split_once("Of the head, ").unwrap();
    let (peak, rest) = rest
        .split_once(" bytes must be there at one time, while operator ")
        .unwrap();
    let (operator, lines) = rest.split_once(" CONV_2D runs:\n").unwrap();
    let running = &graph.subgraphs[0].operators[operator.parse::<usize>().unwrap()];
    let (mut sum, mut tensors) = (0, 0);
    for line in lines.lines().take_while(|line| line.starts_with("  ")) {
        let (bytes, what) = match line.trim_start().strip_prefix("- ") {
            Some(common) => {
                let (common, _) = common.trim_start().split_once("  ").unwrap();
                sum -= number(common);
                continue;
            }
            None => line.trim_start().split_once("  ").unwrap(),
        };
        sum += number(bytes);
        let Some(tensor) = what.strip_prefix("tensor ") else {
            continue;
        };
        let (id, _) = tensor.split_once(' ').unwrap();
        let tensor = &graph.tensors[id.parse::<usize>().unwrap()];
        let elements: i32 = tensor.shape.iter().product();
        assert_eq!(
            number(bytes),
            (elements as u64).next_multiple_of(16),
            "{line}"
        );
        assert!(
            what.contains(tensor.name) || tensor.name.len() > 60,
            "{line}"
        );
        let user = match what.split_once("needed by operator ") {
            Some((_, reader)) => {
                let (reader, _) = reader.split_once(' ').unwrap();
                &graph.subgraphs[0].operators[reader.parse::<usize>().unwrap()]
            }
            None => running,
        };
        assert!(
            user.inputs.contains(&Some(tensor.id)) || user.outputs.contains(&tensor.id),
            "{line}"
        );
        tensors += 1;
    }
    assert_eq!(sum, number(peak), "{text}");
    assert!(tensors >= 3, "{text}");
}

#[test]
fn plans_that_are_not_proved_optimal_are_warned_of() {
    let builder = Builder::new().target(Target::Tflm).solver(Planner::Greedy);
    let found = builder
        .generate("diamond_c_int8", &model("diamond_c_int8"))
        .unwrap();
    assert!(!found.planned.report.optimal);
    assert!(
        found
            .warnings
            .iter()
            .any(|w| w.contains("not proved to be the smallest"))
    );
    let accepted = builder
        .accept_unproved()
        .generate("diamond_c_int8", &model("diamond_c_int8"));
    assert_eq!(accepted.unwrap().warnings, Vec::<String>::new());
    assert_eq!(generated("dscnn_int8").warnings, Vec::<String>::new());
}

#[test]
fn the_same_model_gives_the_same_bytes() {
    let (first, second) = (generated("dscnn_int8"), generated("dscnn_int8"));
    assert_eq!(first.rust, second.rust);
    assert_eq!(first.planned.file, second.planned.file);
    // Whether it was planned before or not.
    let again = Builder::new()
        .generate("dscnn_int8", &first.planned.file)
        .unwrap();
    assert_eq!(first.rust, again.rust);
    assert_eq!(first.planned.file, again.planned.file);
    assert_eq!(
        build::generate("dscnn_int8", &model("dscnn_int8")).unwrap(),
        first.rust
    );
}

#[test]
fn files_are_written_when_they_change_and_only_then() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("net.tflite");
    let out = folder.path().join("new/out");
    fs::write(&source, model("dscnn_int8")).unwrap();
    let compile = || Builder::new().model(&source).out_dir(&out).compile();
    let long_ago = SystemTime::UNIX_EPOCH;
    let is_old = |name: &str| fs::metadata(out.join(name)).unwrap().modified().unwrap() == long_ago;
    let make_old = || {
        for name in ["net.rs", "net.tflite"] {
            let file = fs::File::options()
                .write(true)
                .open(out.join(name))
                .unwrap();
            file.set_modified(long_ago).unwrap();
        }
    };
    compile().unwrap();
    let expected = generated("dscnn_int8");
    assert_eq!(
        fs::read(out.join("net.tflite")).unwrap(),
        expected.planned.file
    );
    make_old();
    compile().unwrap();
    assert!(is_old("net.rs") && is_old("net.tflite"));
    fs::write(&source, model("tcn_int8")).unwrap();
    compile().unwrap();
    assert!(!is_old("net.rs") && !is_old("net.tflite"));
    assert_eq!(
        fs::read_to_string(out.join("net.rs")).unwrap(),
        build::generate("net", &model("tcn_int8")).unwrap()
    );
}

#[test]
fn all_kernels_can_be_asked_for() {
    let builder = Builder::new().operators(Operators::All);
    let text = builder
        .generate("dscnn_int8", &model("dscnn_int8"))
        .unwrap()
        .rust;
    assert!(text.contains("= ::arenaplan_runtime::ops::ALL;") && !text.contains("ops::CONV"));
}

#[test]
fn code_of_a_model() {
    let mut found = generated("two_inputs_int8");
    // Sizes that depend on the planner and on the form of plans.
    found.interface.model_bytes = 1_000;
    found.interface.head_bytes = 400;
    found.interface.tail_bytes = 100;
    let options = RustOptions::default();
    insta::assert_snapshot!(module("two_inputs_int8", &found.interface, &options).unwrap());
}

#[test]
fn own_kernels_are_checked() {
    assert!(OwnKernel::new("Double", "crate::DOUBLE").is_ok());
    assert!(OwnKernel::new("Double", "crate::").is_err());
}
