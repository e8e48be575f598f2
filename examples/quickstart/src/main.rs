//! Runs a model on a board that QEMU emulates, and prints what it says.
#![no_std]
#![no_main]

use arenaplan_runtime::{Arena, Error};
use semihosting::{println, process};

arenaplan_runtime::include_model!("mobilenet_v2_int8");

#[cortex_m_rt::entry]
fn main() -> ! {
    static mut ARENA: Arena<{ MobilenetV2Int8::ARENA_BYTES }> = Arena::new();
    match scores(ARENA) {
        Ok(scores) => println!("scores: {scores:?}"),
        Err(error) => println!("error: {error}"),
    }
    process::exit(0)
}

fn scores(arena: &mut Arena<{ MobilenetV2Int8::ARENA_BYTES }>) -> Result<[i8; 3], Error> {
    let mut model = MobilenetV2Int8::new(arena)?;
    for (k, pixel) in model.input_mut()?.iter_mut().enumerate() {
        *pixel = (k * 7) as i8;
    }
    model.invoke()?;
    Ok(*model.output()?)
}
