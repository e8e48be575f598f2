//! Runs a planned model and does nothing else, to see what of the runtime is linked.
//!
//! With all kernels, it calls all that the runtime offers to an application, and must have no way to panic.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::ptr::addr_of_mut;

use arenaplan_runtime::{Error, Interpreter};
use firmware::{ARENA, KERNELS, MODEL, board};

#[board::entry]
fn main() -> ! {
    let _ = black_box(run());
    #[cfg(feature = "panics")]
    can_panic(black_box(&[]));
    loop {
        black_box(());
    }
}

fn run() -> Result<(), Error> {
    // SAFETY: called once, so that there is no other reference.
    let arena = unsafe { &mut *addr_of_mut!(ARENA) }.as_mut_slice();
    let mut interpreter = Interpreter::new(black_box(&MODEL.0), KERNELS, arena)?;
    interpreter.input::<i8>(0)?.fill(black_box(1));
    interpreter.invoke()?;
    black_box(interpreter.output::<i8>(0)?);
    #[cfg(feature = "all-kernels")]
    firmware::everything::everything(&mut interpreter, black_box(&MODEL.0))?;
    Ok(())
}

#[cfg(feature = "panics")]
#[inline(never)]
fn can_panic(list: &[u8]) {
    black_box(list[black_box(0)]);
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    panic_is_linked()
}

/// In the program only if something can panic; by itself, since the handler may be inlined.
#[inline(never)]
fn panic_is_linked() -> ! {
    loop {
        black_box(());
    }
}
