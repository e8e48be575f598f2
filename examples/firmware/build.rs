//! Puts a model, the list of its kernels, the size of its arena and the memory map of a board where the firmware finds them.
//!
//! - `ARENAPLAN_MODEL`: path of the model.
//! - `ARENAPLAN_GOLDEN`: path of inputs and outputs; without it those in the model's metadata entry `golden`, if it has one.
//! - `ARENAPLAN_SELF_TEST`: path of the model's self-test, for the program `self_test`.
//! - `ARENAPLAN_BOARD`: the board, where it is not the usual one of the target.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use arenaplan::codegen::{Interface, Operators, RustOptions, module};
use arenaplan::schema::view;

const DEFAULT_MODEL: &str = "../../testdata/models/dscnn_int8.tflite";

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

    // As it is: what is measured was planned before, or is to be seen without a plan.
    let interface = Interface::read(&bytes, &[]).map_err(|e| format!("{path}: {e}"))?;
    let mut options = RustOptions::default();
    if env::var_os("CARGO_FEATURE_ALL_KERNELS").is_some() {
        options.operators = Operators::All;
    }
    let code = module("model", &interface, &options)?;
    fs::write(out.join("model.tflite"), &bytes)?;
    fs::write(out.join("model.rs"), code)?;

    let model = view::Model::new(&bytes).map_err(|e| format!("{path}: {e}"))?;
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
