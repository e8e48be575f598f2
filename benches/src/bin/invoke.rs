//! `invoke MODEL INPUTS [--operators]`: times inferences of a model in the runtime.
//!
//! INPUTS holds the bytes of all inputs, one behind the other. For each line of the standard input, which is a number of
//! inferences, prints the median of their times in nanoseconds: `Interpreter::invoke` alone, with the inputs set anew
//! before. With `--operators`, prints instead what each operator takes, the median of 100 inferences, which are a little
//! slower when they are watched.
#![allow(clippy::print_stdout)]

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, Write};
use std::time::Instant;

use arenaplan_runtime::{Error, Interpreter, Observer, Type, ViewMut, ops};
use arenaplan_schema::names;
use arenaplan_schema::tflite::BuiltinOperator;
use arenaplan_schema::view::Model;

/// Bytes that start at a multiple of 16.
struct Memory {
    bytes: Vec<u8>,
    start: usize,
}

impl Memory {
    fn new(len: usize) -> Self {
        let bytes = vec![0; len + 15];
        let start = bytes.as_ptr().addr().next_multiple_of(16) - bytes.as_ptr().addr();
        Self { bytes, start }
    }

    fn get(&mut self) -> &mut [u8] {
        let end = self.bytes.len() - (15 - self.start);
        &mut self.bytes[self.start..end]
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, model, inputs, rest @ ..] = &args[..] else {
        return Err("usage: invoke MODEL INPUTS [--operators]".into());
    };
    let (file, inputs) = (std::fs::read(model)?, std::fs::read(inputs)?);
    let mut model = Memory::new(file.len());
    model.get().copy_from_slice(&file);
    let mut arena = Memory::new(0);
    loop {
        match Interpreter::new(model.get(), ops::ALL, arena.get()) {
            Err(Error::ArenaTooSmall { needed, given }) if needed > given => {
                arena = Memory::new(needed);
            }
            Err(error) => return Err(error.to_string().into()),
            Ok(_) => break,
        }
    }
    let mut it = Interpreter::new(model.get(), ops::ALL, arena.get())?;
    if rest.iter().any(|word| word == "--operators") {
        return operators(&file, &mut it, &inputs);
    }
    for line in io::stdin().lock().lines() {
        let count: usize = line?.trim().parse()?;
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            set(&mut it, &inputs)?;
            let start = Instant::now();
            it.invoke()?;
            times.push(start.elapsed().as_nanos());
        }
        println!("{}", median(&mut times));
        io::stdout().flush()?;
    }
    Ok(())
}

fn median(times: &mut [u128]) -> u128 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Sets all inputs from their bytes.
fn set(it: &mut Interpreter<'_, '_>, mut bytes: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
    for index in 0..it.session().inputs() {
        macro_rules! fill {
            ($type:ty) => {
                for to in it.input::<$type>(index)? {
                    let (from, rest) =
                        bytes.split_first_chunk().ok_or("too few bytes of inputs")?;
                    (*to, bytes) = (<$type>::from_ne_bytes(*from), rest);
                }
            };
        }
        match it.session().input_info(index)?.element_type {
            Type::INT8 => fill!(i8),
            Type::UINT8 | Type::BOOL => fill!(u8),
            Type::INT16 => fill!(i16),
            Type::INT32 => fill!(i32),
            Type::INT64 => fill!(i64),
            Type::FLOAT32 => fill!(f32),
            other => return Err(format!("inputs of type {other:?} are not set").into()),
        }
    }
    Ok(())
}

/// Times from before to after each operator, in the order in which they end.
struct Watch {
    started: Cell<Instant>,
    seen: RefCell<Vec<(u32, u32, u128)>>,
}

impl Observer for Watch {
    fn before(&self, _: u32, _: u32, _: ViewMut<'_, u8>) {
        self.started.set(Instant::now());
    }

    fn after(&self, subgraph: u32, operator: u32, _: ViewMut<'_, u8>) {
        let time = self.started.get().elapsed().as_nanos();
        self.seen.borrow_mut().push((subgraph, operator, time));
    }
}

fn operators(
    file: &[u8],
    it: &mut Interpreter<'_, '_>,
    inputs: &[u8],
) -> Result<(), Box<dyn std::error::Error>> {
    let mut runs = Vec::new();
    // The first one initialises variables.
    set(it, inputs)?;
    it.invoke()?;
    for _ in 0..100 {
        set(it, inputs)?;
        let watch = Watch {
            started: Cell::new(Instant::now()),
            seen: RefCell::default(),
        };
        it.invoke_observed(&watch)?;
        runs.push(watch.seen.into_inner());
    }
    let model = Model::new(file)?;
    for (k, (subgraph, operator, _)) in runs[0].iter().enumerate() {
        let mut times: Vec<u128> = runs.iter().filter_map(|run| Some(run.get(k)?.2)).collect();
        let found = model.subgraphs()?.get(*subgraph as usize)?;
        let found = found.operators()?.get(*operator as usize)?;
        let code = model
            .operator_codes()?
            .get(found.opcode_index()? as usize)?;
        let name = names::operator_name(BuiltinOperator(code.builtin_code()?));
        println!(
            "{:>12} ns  {subgraph}.{operator} {name}",
            median(&mut times)
        );
    }
    Ok(())
}
