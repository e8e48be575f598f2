//! Puts a model, the list of its kernels, the size of its arena and the memory map of a board where the firmware finds them.
//!
//! - `ARENAPLAN_MODEL`: path of the model.
//! - `ARENAPLAN_GOLDEN`: path of inputs and outputs; without it those in the model's metadata entry `golden`, if it has one.
//! - `ARENAPLAN_BOARD`: the board, where it is not the usual one of the target.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use arenaplan_runtime::schema::view;
use arenaplan_runtime::{CODES, Code, Interpreter, Type, ops, tail_bytes};

const DEFAULT_MODEL: &str = "../../testdata/models/dscnn_int8.tflite";

/// Operators that have a kernel for int8 alone, named with `_INT8` behind it.
const INT8: &[&str] = &[
    "ADD",
    "AVERAGE_POOL_2D",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "FULLY_CONNECTED",
    "LOGISTIC",
    "MAX_POOL_2D",
    "MUL",
    "SOFTMAX",
    "SVDF",
    "TANH",
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
    memory_map(&out)
}

fn variable(name: &str) -> Option<String> {
    println!("cargo:rerun-if-env-changed={name}");
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// A Rust list of the kernels that a model's operators need.
fn kernels(model: &view::Model<'_>) -> Result<String, Box<dyn Error>> {
    let codes = model.operator_codes()?;
    let mut names = BTreeSet::new();
    for subgraph in model.subgraphs()? {
        let subgraph = subgraph?;
        for operator in subgraph.operators()? {
            let operator = operator?;
            let number = Code(
                codes
                    .get(operator.opcode_index()? as usize)?
                    .builtin_code()?,
            );
            let Some(&(_, name)) = CODES.iter().find(|(code, _)| *code == number) else {
                return Err(format!("operator {} is not known", number.0).into());
            };
            names.insert((name, is_int8(&subgraph, &operator)?));
        }
    }
    let mut list = Vec::new();
    for &(name, int8) in &names {
        let narrow = int8 && INT8.contains(&name) && !names.contains(&(name, false));
        let suffix = if narrow { "_INT8" } else { "" };
        let item = format!("ops::{name}{suffix}");
        if !list.contains(&item) {
            list.push(item);
        }
    }
    Ok(list.join(", "))
}

/// Whether an operator goes from int8 to int8, with weights of int8 as well.
fn is_int8(
    subgraph: &view::SubGraph<'_>,
    operator: &view::Operator<'_>,
) -> Result<bool, view::Error> {
    let is = |list: view::Vector<'_, i32>, positions: usize| {
        for tensor in list.into_iter().take(positions) {
            if let Ok(tensor) = usize::try_from(tensor)
                && Type(subgraph.tensors()?.get(tensor)?.element_type()?) != Type::INT8
            {
                return Ok(false);
            }
        }
        Ok(true)
    };
    Ok(is(operator.inputs()?, 2)? && is(operator.outputs()?, 1)?)
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
                return Ok(head.next_multiple_of(16) + tail_bytes(copy)?);
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
