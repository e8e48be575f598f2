//! Runs a planned model, compares its outputs, and prints what memory and how many instructions that took.
#![no_std]
#![no_main]

use core::hint::black_box;
use core::ptr::addr_of_mut;

use arenaplan_runtime::{Error, Interpreter};
use firmware::golden::{Golden, make_up_inputs, output_bytes};
use firmware::measure::{Cost, measure};
use firmware::{ARENA, GOLDEN, Model, board};
use semihosting::{print, println, process};

/// Bytes of an output that are shown.
const SHOWN: usize = 64;
/// Inferences when nothing was recorded.
const INVOKES: u32 = 2;

#[board::entry]
fn main() -> ! {
    board::start_counter();
    let code = match run() {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(error) => {
            println!("error: {error}");
            2
        }
    };
    process::exit(code)
}

/// Runs all inferences; whether all outputs are right.
fn run() -> Result<bool, Error> {
    // SAFETY: called once, so that there is no other reference.
    let arena = unsafe { &mut *addr_of_mut!(ARENA) }.as_mut_slice();
    let given = arena.len();
    let mut slot = Slot {
        arena: Some(arena),
        interpreter: None,
    };
    let (result, cost) = measure(Slot::prepare, &mut slot);
    result?;
    let Some(mut interpreter) = slot.interpreter else {
        return Ok(false);
    };
    show("prepare", cost);
    let session = interpreter.session();
    println!("arena: {given}");
    println!("head: {}", session.head_bytes());
    println!("room: {}", session.room_bytes());
    println!("tail: {}", session.tail_bytes());

    let mut golden = Golden::new(GOLDEN);
    let mut seed = 1;
    let mut right = true;
    for invoke in 0..golden.as_ref().map_or(INVOKES, |golden| golden.invokes) {
        match &mut golden {
            Some(golden) => golden.set_inputs(&mut interpreter)?,
            None => make_up_inputs(&mut interpreter, &mut seed)?,
        }
        let (result, cost) = measure(Interpreter::invoke, &mut interpreter);
        result?;
        show("invoke", cost);
        for index in 0..interpreter.session().outputs() {
            show_output(&mut interpreter, index)?;
        }
        if let Some(golden) = &mut golden
            && let Some((output, element)) = golden.compare(&mut interpreter)?
        {
            println!("invoke {invoke}: output {output} differs at element {element}");
            right = false;
        }
    }
    if let Some(golden) = golden {
        right &= golden.is_empty();
        println!("{}", if right { "PASS" } else { "FAIL" });
    }
    Ok(right)
}

/// What an interpreter is made in.
struct Slot {
    arena: Option<&'static mut [u8]>,
    interpreter: Option<Interpreter<'static, 'static>>,
}

impl Slot {
    #[inline(never)]
    fn prepare(&mut self) -> Result<(), Error> {
        let arena = self.arena.take().unwrap_or_default();
        // The compiler must not look into the model, which it could run in part.
        self.interpreter = Some(Interpreter::new(
            black_box(Model::MODEL),
            Model::KERNELS,
            arena,
        )?);
        Ok(())
    }
}

fn show(what: &str, cost: Cost) {
    println!(
        "{what}: {} instructions, {} bytes of stack",
        cost.instructions, cost.stack
    );
}

/// Prints an output's length, a digest of its bytes (FNV-1a), and the first ones.
fn show_output(interpreter: &mut Interpreter<'_, '_>, index: usize) -> Result<(), Error> {
    let (mut len, mut digest) = (0usize, 0x811c_9dc5u32);
    output_bytes(interpreter, index, &mut |bytes| {
        for &byte in bytes {
            digest = (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193);
            len += 1;
        }
    })?;
    print!("output {index}: {len} bytes, digest {digest:08x},");
    let mut at = 0;
    output_bytes(interpreter, index, &mut |bytes| {
        for &byte in bytes {
            if at < SHOWN {
                print!(" {byte:02x}");
            }
            at += 1;
        }
    })?;
    println!("{}", if len > SHOWN { " ..." } else { "" });
    Ok(())
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    println!("{info}");
    process::exit(3)
}
