//! Puts a model, the list of its kernels, the size of its arena and the memory map of a board where the firmware finds them.
//!
//! - `ARENAPLAN_MODEL`: path of the model.
//! - `ARENAPLAN_GOLDEN`: path of inputs and outputs; without it those in the model's metadata entry `golden`, if it has one.
//! - `ARENAPLAN_SELF_TEST`: path of the model's self-test, for the program `self_test`.
//! - `ARENAPLAN_BOARD`: the board, where it is not the usual one of the target.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use arenaplan_runtime::schema::view;
use arenaplan_runtime::{CODES, Code, Interpreter, Type, ops, tail_bytes};

const DEFAULT_MODEL: &str = "../../testdata/models/dscnn_int8.tflite";

/// Kernels of one type alone, which stand in for those of all types.
const NARROW: &[&str] = &[
    "ADD_INT8",
    "AVERAGE_POOL_2D_INT8",
    "CONV_2D_INT8",
    "DEPTHWISE_CONV_2D_INT8",
    "FULLY_CONNECTED_INT8",
    "LOGISTIC_FLOAT32",
    "LOGISTIC_INT16",
    "LOGISTIC_INT8",
    "MAX_POOL_2D_INT8",
    "MUL_INT8",
    "QUANTIZE_FLOAT32",
    "SOFTMAX_INT8",
    "SVDF_INT8",
    "TANH_FLOAT32",
    "TANH_INT16",
    "TANH_INT8",
    "TRANSPOSE_CONV_INT8",
    "UNIDIRECTIONAL_SEQUENCE_LSTM_INT8",
];

/// Target, board, flash and RAM as origin and length. The first row of a target is its usual board.
const BOARDS: &[(&str, &str, [&str; 2], [&str; 2])] = &[
    (
        "thumbv6m",
        "microbit",
        ["0x00000000", "256K"],
        ["0x20000000", "16K"],
    ),
    (
        "thumbv7m",
        "mps2-an385",
        ["0x00000000", "4M"],
        ["0x20000000", "4M"],
    ),
    (
        "thumbv7em",
        "mps2-an386",
        ["0x00000000", "4M"],
        ["0x20000000", "4M"],
    ),
    (
        "thumbv8m",
        "mps2-an505",
        ["0x10000000", "4M"],
        ["0x38000000", "4M"],
    ),
    (
        "thumbv8m",
        "mps3-an547",
        ["0x10000000", "512K"],
        ["0x31000000", "2M"],
    ),
    (
        "riscv32",
        "virt",
        ["0x80000000", "16M"],
        ["0x81000000", "16M"],
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let path = variable("ARENAPLAN_MODEL").unwrap_or_else(|| DEFAULT_MODEL.to_owned());
    println!("cargo:rerun-if-changed={path}");
    let bytes = fs::read(&path).map_err(|e| format!("{path}: {e}"))?;
    let model = view::Model::new(&bytes).map_err(|e| format!("{path}: {e}"))?;

    fs::write(out.join("model.tflite"), &bytes)?;
    let kernels = kernels(&model).map_err(|e| format!("{path}: {e}"))?;
    let arena = arena_bytes(&bytes).map_err(|e| format!("{path}: {e}"))?;
    let generated = format!(
        "/// The kernels that the model needs.\n\
         #[cfg(not(feature = \"all-kernels\"))]\n\
         pub const KERNELS: &[Kernel] = &[{kernels}];\n\
         /// Bytes of the arena, head and tail.\n\
         pub const ARENA_BYTES: usize = {arena};\n"
    );
    fs::write(out.join("generated.rs"), generated)?;

    let golden = match variable("ARENAPLAN_GOLDEN") {
        Some(path) => {
            println!("cargo:rerun-if-changed={path}");
            fs::read(&path).map_err(|e| format!("{path}: {e}"))?
        }
        None => model.metadata_bytes("golden")?.unwrap_or_default().to_vec(),
    };
    fs::write(out.join("golden"), golden)?;

    if let Some(path) = variable("ARENAPLAN_SELF_TEST") {
        println!("cargo:rerun-if-changed={path}");
        fs::copy(&path, out.join("self_test.rs")).map_err(|e| format!("{path}: {e}"))?;
    }
    memory_map(&out)
}

fn variable(name: &str) -> Option<String> {
    println!("cargo:rerun-if-env-changed={name}");
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// A Rust list of the kernels that a model's operators need.
fn kernels(model: &view::Model<'_>) -> Result<String, Box<dyn Error>> {
    let codes = model.operator_codes()?;
    let mut types = BTreeMap::<&str, BTreeSet<&str>>::new();
    for subgraph in model.subgraphs()? {
        let subgraph = subgraph?;
        for operator in subgraph.operators()? {
            let operator = operator?;
            let code = codes.get(operator.opcode_index()? as usize)?;
            let number = Code(code.builtin_code()?);
            if number == Code::CUSTOM {
                let name = code
                    .custom_code()?
                    .map_or(String::new(), |name| name.to_string());
                return Err(format!(
                    "the runtime has no kernel for the custom operator `{name}`: write one, and list it in KERNELS"
                )
                .into());
            }
            let Some(&(_, name)) = CODES.iter().find(|(code, _)| *code == number) else {
                return Err(format!("operator {} is not known", number.0).into());
            };
            let types = types.entry(name).or_default();
            types.insert(data_type(&subgraph, &operator)?);
        }
    }
    let list = types.into_iter().map(|(name, types)| {
        let narrow = types.first().map(|suffix| format!("{name}_{suffix}"));
        match narrow.filter(|narrow| types.len() == 1 && NARROW.contains(&narrow.as_str())) {
            Some(narrow) => format!("ops::{narrow}"),
            None => format!("ops::{name}"),
        }
    });
    Ok(list.collect::<Vec<_>>().join(", "))
}

/// The type that an operator works with, as it stands in the names of kernels; empty for others.
fn data_type(
    subgraph: &view::SubGraph<'_>,
    operator: &view::Operator<'_>,
) -> Result<&'static str, view::Error> {
    let types = |list: view::Vector<'_, i32>| {
        let given = list
            .into_iter()
            .filter_map(|tensor| usize::try_from(tensor).ok());
        let types = given.map(|tensor| subgraph.tensors()?.get(tensor)?.element_type());
        types.collect::<Result<Vec<i8>, view::Error>>()
    };
    let (mut inputs, outputs) = (types(operator.inputs()?)?, types(operator.outputs()?)?);
    // Biases and shapes.
    inputs.retain(|&number| Type(number) != Type::INT32);
    let all = |types: &[Type]| inputs.iter().all(|&number| types.contains(&Type(number)));
    Ok(match outputs.first().map(|&number| Type(number)) {
        // Some have states of int16.
        Some(Type::INT8) if inputs.contains(&Type::INT8.0) && all(&[Type::INT8, Type::INT16]) => {
            "INT8"
        }
        _ if all(&[Type::FLOAT32]) => "FLOAT32",
        _ if all(&[Type::INT16]) => "INT16",
        _ => "",
    })
}

/// The least arena that the model runs in: what the runtime asks for here is what it will ask for on the device.
fn arena_bytes(model: &[u8]) -> Result<usize, arenaplan_runtime::Error> {
    let aligned = |bytes: usize| vec![0u8; bytes + 16];
    let mut owned = aligned(model.len());
    let start = owned.as_ptr().align_offset(16);
    let copy = &mut owned[start..][..model.len()];
    copy.copy_from_slice(model);
    let mut bytes = 0;
    loop {
        let mut arena = aligned(bytes);
        let start = arena.as_ptr().align_offset(16);
        match Interpreter::new(copy, ops::ALL, &mut arena[start..][..bytes]) {
            Ok(interpreter) => {
                let session = interpreter.session();
                let head = session.head_bytes().max(session.room_bytes());
                return Ok(head.next_multiple_of(16) + tail_bytes(copy, ops::ALL)?);
            }
            Err(arenaplan_runtime::Error::ArenaTooSmall { needed, .. }) if needed > bytes => {
                bytes = needed.next_multiple_of(16);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Writes the linker script that says where the board has flash and RAM.
fn memory_map(out: &Path) -> Result<(), Box<dyn Error>> {
    let target = env::var("TARGET")?;
    let asked = variable("ARENAPLAN_BOARD");
    let row = BOARDS.iter().find(|(prefix, board, ..)| {
        target.starts_with(prefix) && asked.as_deref().is_none_or(|name| name == *board)
    });
    let Some((_, board, flash, ram)) = row else {
        return Err(format!("no board {} for {target}", asked.unwrap_or_default()).into());
    };
    // What the linker script of cortex-m-rt includes for a device: it has no interrupts here.
    fs::write(out.join("device.x"), "")?;
    let mut script = format!(
        "MEMORY {{\n  FLASH : ORIGIN = {}, LENGTH = {}\n  RAM : ORIGIN = {}, LENGTH = {}\n}}\n",
        flash[0], flash[1], ram[0], ram[1]
    );
    if target.starts_with("riscv32") {
        for (region, memory) in [
            ("TEXT", "FLASH"),
            ("RODATA", "FLASH"),
            ("DATA", "RAM"),
            ("BSS", "RAM"),
            ("HEAP", "RAM"),
            ("STACK", "RAM"),
        ] {
            script += &format!("REGION_ALIAS(\"REGION_{region}\", {memory});\n");
        }
    }
    fs::write(out.join("memory.x"), script)?;
    println!("cargo:rustc-link-search={}", out.display());
    println!(
        "cargo:rustc-check-cfg=cfg(board, values(\"microbit\", \"mps2-an385\", \"mps2-an386\", \"mps2-an505\", \"mps3-an547\", \"virt\"))"
    );
    println!("cargo:rustc-cfg=board=\"{board}\"");
    Ok(())
}
