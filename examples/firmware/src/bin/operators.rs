//! Runs a planned model once, and prints the instructions of each operator: `operator 3: 1234`.
//!
//! An operator's figure is what its kernel takes, and what the runtime takes to find it and its tensors. `SLICE` and
//! `CONCATENATION` move nothing where the plan lets tensors lie in each other, so the figures are those of this plan.
#![no_std]
#![no_main]

use core::cell::Cell;
use core::ptr::addr_of_mut;

use arenaplan_runtime::{Error, Interpreter, Observer, ViewMut};
use firmware::golden::{Golden, make_up_inputs};
use firmware::{ARENA, GOLDEN, Model, board};
use semihosting::{println, process};

#[board::entry]
fn main() -> ! {
    board::start_counter();
    match run() {
        Ok(()) => process::exit(0),
        Err(error) => {
            println!("error: {error}");
            process::exit(2)
        }
    }
}

fn run() -> Result<(), Error> {
    // SAFETY: called once, so that there is no other reference.
    let arena = unsafe { &mut *addr_of_mut!(ARENA) }.as_mut_slice();
    let mut interpreter = Interpreter::new(Model::MODEL, Model::KERNELS, arena)?;
    match &mut Golden::new(GOLDEN) {
        Some(golden) => golden.set_inputs(&mut interpreter)?,
        None => make_up_inputs(&mut interpreter, &mut 1)?,
    }
    let since = Since(Cell::new(board::counter()));
    interpreter.invoke_observed(&since)
}

/// When the operator before ended.
struct Since(Cell<u32>);

impl Observer for Since {
    fn after(&self, subgraph: u32, operator: u32, _: ViewMut<'_, u8>) {
        let instructions = board::instructions(self.0.get(), board::counter());
        match subgraph {
            0 => println!("operator {operator}: {instructions}"),
            _ => println!("subgraph {subgraph}, operator {operator}: {instructions}"),
        }
        self.0.set(board::counter());
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    println!("{info}");
    process::exit(3)
}
