//! Runs a planned model and does nothing else, to see what of the runtime is linked.
//!
//! With all kernels, it calls all that the runtime offers to an application, and must have no way to panic.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::ptr::addr_of_mut;

use arenaplan_runtime::Error;
use firmware::{ARENA, Model, board};

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
    let arena = unsafe { &mut *addr_of_mut!(ARENA) };
    let mut model = Model::new(arena)?;
    let interpreter = model.interpreter_mut();
    interpreter.input::<i8>(0)?.fill(black_box(1));
    interpreter.invoke()?;
    black_box(interpreter.output::<i8>(0)?);
    #[cfg(feature = "all-kernels")]
    firmware::everything::everything(interpreter, black_box(Model::MODEL))?;
    #[cfg(feature = "typed")]
    typed(&mut model)?;
    Ok(())
}

#[cfg(feature = "typed")]
static mut OTHER: arenaplan_runtime::Arena<{ Model::ARENA_BYTES }> =
    arenaplan_runtime::Arena::new();

/// Calls all that generated code offers for a quantized model with one input and one output.
#[cfg(feature = "typed")]
#[inline(never)]
fn typed(model: &mut Model<'_>) -> Result<(), Error> {
    *model.input_mut()? = black_box([Model::quantize_input(black_box(0.5)); Model::INPUT_LEN]);
    model.invoke()?;
    for &element in model.output()? {
        black_box(Model::dequantize_output(element));
    }
    model.reset()?;
    black_box(model.interpreter().session().head_bytes());
    // SAFETY: called once, so that there is no other reference.
    let other = unsafe { &mut *addr_of_mut!(OTHER) };
    black_box(Model::in_memory(black_box(other.as_mut_slice()))?);
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
