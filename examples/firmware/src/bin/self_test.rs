//! Runs the model's self-test: with the runtime's kernels, with which it must pass, and with a convolution that does not keep
//! the plan, with which it must fail.
//!
//! `ARENAPLAN_SELF_TEST` is the path of what `arenaplan export --as rust-selftest` wrote for the model.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::ptr::addr_of_mut;

use arenaplan_runtime::self_test::SelfTestFailure;
use arenaplan_runtime::{Fault, Interpreter, Kernel, Node, ops};
use firmware::measure::measure;
use firmware::{ARENA, Model, board};
use semihosting::{println, process};

include!(concat!(env!("OUT_DIR"), "/self_test.rs"));

/// Computes the output, and then again from what lies over the input by now.
fn twice(node: &Node<'_>) -> Result<(), Fault> {
    ops::CONV_2D_INT8.run(node)?;
    ops::CONV_2D_INT8.run(node)
}

const KERNELS: &[Kernel] = Model::KERNELS;

/// The last of two kernels of an operator counts.
const WRONG: [Kernel; KERNELS.len() + 1] = {
    let mut all = [ops::CONV_2D_INT8.with_run(twice); KERNELS.len() + 1];
    let mut k = 0;
    while k < KERNELS.len() {
        all[k] = KERNELS[k];
        k += 1;
    }
    all
};

#[board::entry]
fn main() -> ! {
    board::start_counter();
    let right = tested(KERNELS);
    let wrong = tested(&WRONG);
    process::exit(match (right, wrong) {
        (Ok(()), Err(SelfTestFailure::Output { .. })) => 0,
        _ => 1,
    })
}

fn tested(kernels: &'static [Kernel]) -> Result<(), SelfTestFailure> {
    // SAFETY: an interpreter is gone before the next one is made, and there is no other reference.
    let arena = unsafe { &mut *addr_of_mut!(ARENA) }.as_mut_slice();
    let made = Interpreter::new(black_box(Model::MODEL), kernels, arena);
    let mut interpreter = made.map_err(|error| SelfTestFailure::Run { invoke: 0, error })?;
    let (result, cost) = measure(self_test, &mut interpreter);
    match &result {
        Ok(()) => println!(
            "self-test: passed, {} instructions, {} bytes of stack",
            cost.instructions, cost.stack
        ),
        Err(failure) => println!("self-test: {failure}"),
    }
    result
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    println!("{info}");
    process::exit(3)
}
