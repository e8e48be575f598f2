//! Runs a planned model once and does nothing else, to see what of the runtime is linked.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::ptr::addr_of_mut;

use arenaplan_runtime::{Error, Interpreter};
use firmware::{ARENA, KERNELS, MODEL, board};

#[board::entry]
fn main() -> ! {
    let _ = black_box(run());
    loop {}
}

fn run() -> Result<(), Error> {
    // SAFETY: called once, so that there is no other reference.
    let arena = unsafe { &mut *addr_of_mut!(ARENA) }.as_mut_slice();
    Interpreter::new(black_box(&MODEL.0), KERNELS, arena)?.invoke()
}

/// Not linked unless something can panic.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
