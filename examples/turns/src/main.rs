//! Models that take turns on one arena give the same outputs as alone, in the memory of the largest head and all tails; and the
//! second half of a model goes on with what the first has left there, without a copy.
#![no_std]
#![no_main]

use core::ptr::addr_of_mut;

use arenaplan_runtime::{Aligned, Arena, Error, Session, Type, ops, share, tail_bytes};
use cortex_m_rt::entry;
use semihosting::{println, process};

include!(concat!(env!("OUT_DIR"), "/generated.rs"));

static WHOLE: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/whole.tflite")));

/// The interrupts of the device, of which none is used.
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
pub static __INTERRUPTS: [u32; 1] = [0];

/// Rounds of inferences; the third one has the inputs of the first, so that state shows.
const SEEDS: [u32; 4] = [1, 2, 1, 3];

static mut TURNS_ARENA: Arena<TURNS_ARENA_BYTES> = Arena::new();
static mut CASCADE_ARENA: Arena<CASCADE_ARENA_BYTES> = Arena::new();
/// For models by themselves, and without plans.
static mut LARGE: Arena<0x10_0000> = Arena::new();

#[entry]
fn main() -> ! {
    let code = match turns().and_then(|right| Ok(right && cascade()?)) {
        Ok(true) => {
            println!("PASS");
            0
        }
        Ok(false) => {
            println!("FAIL");
            1
        }
        Err(error) => {
            println!("error: {error}");
            2
        }
    };
    process::exit(code)
}

/// What a model computes by itself in each round.
fn alone(model: &'static [u8]) -> Result<[u32; SEEDS.len()], Error> {
    // SAFETY: the only reference, gone when this function ends.
    let arena = unsafe { &mut *addr_of_mut!(LARGE) }.as_mut_slice();
    let tail = tail_bytes(model, ops::ALL)?;
    let (head, [tail]) = share(arena, [tail])?;
    let mut session = Session::new(model, ops::ALL, head, tail)?;
    let mut digests = [0; SEEDS.len()];
    for (digest, &seed) in digests.iter_mut().zip(&SEEDS) {
        *digest = round(&mut session, head, seed)?;
    }
    Ok(digests)
}

fn turns() -> Result<bool, Error> {
    // SAFETY: called once, so that there is no other reference.
    let arena = unsafe { &mut *addr_of_mut!(TURNS_ARENA) }.as_mut_slice();
    let mut expected = [[0; SEEDS.len()]; TURNS.len()];
    for (expected, model) in expected.iter_mut().zip(TURNS_ALONE) {
        *expected = alone(&model.0)?;
    }
    let mut tails = [0; TURNS.len()];
    for (tail, model) in tails.iter_mut().zip(TURNS) {
        *tail = tail_bytes(&model.0, ops::ALL)?;
    }
    let all: usize = tails.iter().sum();
    println!(
        "turns: arena {} = head {} + tails {}",
        arena.len(),
        TURNS_HEAD_BYTES,
        all
    );
    let mut right = arena.len() == TURNS_HEAD_BYTES + all;
    let (head, tails) = share(arena, tails)?;
    let mut sessions = [const { None }; TURNS.len()];
    for ((slot, model), tail) in sessions.iter_mut().zip(TURNS).zip(tails) {
        *slot = Some(Session::new(&model.0, ops::ALL, head, tail)?);
    }
    for (k, &seed) in SEEDS.iter().enumerate() {
        let all = sessions
            .iter_mut()
            .flatten()
            .zip(&expected)
            .zip(TURNS_NAMES);
        for ((session, expected), name) in all {
            let digest = round(session, head, seed)?;
            let is_right = digest == expected[k];
            println!("round {k}: {name}: digest {digest:08x} {}", word(is_right));
            right &= is_right;
        }
    }
    // The outputs say something, and some models have state.
    let has_state = expected.iter().any(|e| e[0] != e[2]);
    Ok(right && has_state && expected.iter().all(varies))
}

fn cascade() -> Result<bool, Error> {
    let expected = alone(&WHOLE.0)?;
    // SAFETY: called once, so that there is no other reference.
    let arena = unsafe { &mut *addr_of_mut!(CASCADE_ARENA) }.as_mut_slice();
    let [front, back] = CASCADE;
    let tails = [
        tail_bytes(&front.0, ops::ALL)?,
        tail_bytes(&back.0, ops::ALL)?,
    ];
    let all: usize = tails.iter().sum();
    println!(
        "cascade: arena {} = head {} + tails {}",
        arena.len(),
        CASCADE_HEAD_BYTES,
        all
    );
    let mut right = arena.len() == CASCADE_HEAD_BYTES + all;
    let (head, [front_tail, back_tail]) = share(arena, tails)?;
    let mut front = Session::new(&front.0, ops::ALL, head, front_tail)?;
    let mut back = Session::new(&back.0, ops::ALL, head, back_tail)?;
    for (k, &seed) in SEEDS.iter().enumerate() {
        set_inputs(&mut front, head, seed)?;
        front.invoke(head)?;
        back.invoke(head)?;
        let digest = digest(&mut back, head)?;
        let is_right = digest == expected[k];
        println!(
            "round {k}: {}: digest {digest:08x} {}",
            CASCADE_NAMES[1],
            word(is_right)
        );
        right &= is_right;
    }
    Ok(right && varies(&expected))
}

fn varies(digests: &[u32; SEEDS.len()]) -> bool {
    digests.iter().any(|&digest| digest != digests[0])
}

fn word(is_right: bool) -> &'static str {
    if is_right { "as alone" } else { "DIFFERS" }
}

fn round(session: &mut Session<'_, '_>, head: &mut [u8], seed: u32) -> Result<u32, Error> {
    set_inputs(session, head, seed)?;
    session.invoke(head)?;
    digest(session, head)
}

/// Noise that follows from the seed (xorshift, Marsaglia 2003).
fn set_inputs(session: &mut Session<'_, '_>, head: &mut [u8], seed: u32) -> Result<(), Error> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 16) as i8
    };
    for index in 0..session.inputs() {
        match session.input_info(index)?.element_type {
            Type::FLOAT32 => {
                let values = session.input::<f32>(head, index)?;
                values.fill_with(|| f32::from(next()) / 128.0);
            }
            _ => session.input::<i8>(head, index)?.fill_with(&mut next),
        }
    }
    Ok(())
}

/// A digest of all outputs (FNV-1a).
fn digest(session: &mut Session<'_, '_>, head: &mut [u8]) -> Result<u32, Error> {
    let mut digest = 0x811c_9dc5u32;
    let mut add = |byte: u8| digest = (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    for index in 0..session.outputs() {
        match session.output_info(index)?.element_type {
            Type::FLOAT32 => {
                let values = session.output::<f32>(head, index)?.iter();
                values.flat_map(|v| v.to_le_bytes()).for_each(&mut add);
            }
            Type::UINT8 => {
                let values = session.output::<u8>(head, index)?.iter();
                values.copied().for_each(&mut add);
            }
            _ => session
                .output::<i8>(head, index)?
                .iter()
                .for_each(|&v| add(v as u8)),
        }
    }
    Ok(digest)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    println!("{info}");
    process::exit(3)
}
