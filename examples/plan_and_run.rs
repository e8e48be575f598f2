//! Plans a model, runs it on this machine with the runtime that runs it on a device, and shows memory and outputs.
//!
//! ```text
//! cargo run --example plan_and_run -- model.tflite
//! ```

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;

use arenaplan::codegen::Interface;
use arenaplan::execute::Memory;
use arenaplan::plan::{Options, plan};
use arenaplan::target::Target;
use arenaplan_runtime::{Interpreter, ops};

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args().nth(1);
    let path = given.unwrap_or_else(|| "testdata/models/dscnn_int8.tflite".into());

    // What a build script does.
    let options = Options {
        target: Target::Arenaplan,
        ..Options::default()
    };
    let planned = plan(&std::fs::read(&path)?, &options)?;
    let interface = Interface::read(&planned.file, &[])?;
    println!("head    {:>7} bytes", interface.head_bytes);
    println!("tail    {:>7} bytes", interface.tail_bytes);
    for kernel in &interface.kernels {
        println!("kernel  {}", kernel.path);
    }

    // What a device does.
    let model = Memory::holding(&planned.file);
    let mut arena = Memory::new(interface.arena_bytes());
    let mut interpreter = Interpreter::new(model.as_slice(), ops::ALL, arena.as_mut_slice())?;
    if let Ok(input) = interpreter.input::<i8>(0) {
        input.fill(1);
    }
    interpreter.invoke()?;
    for (index, port) in interface.outputs.iter().enumerate() {
        println!("output {index} of shape {:?}", port.shape);
        if let Ok(output) = interpreter.output::<i8>(index) {
            println!("  {output:?}");
        } else if let Ok(output) = interpreter.output::<f32>(index) {
            println!("  {output:?}");
        }
    }
    Ok(())
}
