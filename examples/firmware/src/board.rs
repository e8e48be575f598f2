//! What differs between boards: how a program starts, and what counts instructions.

#[cfg(target_arch = "arm")]
pub use cortex_m_rt::entry;
#[cfg(target_arch = "riscv32")]
pub use riscv_rt::entry;

#[cfg(target_arch = "arm")]
use core::ptr::{read_volatile, write_volatile};

/// The interrupts of the device, of which none is used: one entry instead of the architecture's 240.
#[cfg(target_arch = "arm")]
#[unsafe(link_section = ".vector_table.interrupts")]
#[unsafe(no_mangle)]
pub static __INTERRUPTS: [u32; 1] = [0];

/// The counter of the FPGA's input and output block, which runs with the clock of the system: 25 MHz or 20 MHz.
#[cfg(any(board = "mps2-an385", board = "mps2-an386"))]
const FPGAIO: (usize, u64) = (0x4002_8000, 25_000_000);
#[cfg(board = "mps2-an505")]
const FPGAIO: (usize, u64) = (0x5030_2000, 20_000_000);
#[cfg(board = "mps3-an547")]
const FPGAIO: (usize, u64) = (0x5930_2000, 20_000_000);

/// Nanoseconds of an instruction, by QEMU's `-icount shift=6`.
#[cfg(target_arch = "arm")]
const NANOSECONDS: u64 = 64;

/// Starts the counter.
pub fn start_counter() {
    #[cfg(any(
        board = "mps2-an385",
        board = "mps2-an386",
        board = "mps2-an505",
        board = "mps3-an547"
    ))]
    // SAFETY: the counter's prescaler, by the manual of the board.
    unsafe {
        write_volatile((FPGAIO.0 + 0x1c) as *mut u32, 0);
    }
    #[cfg(board = "microbit")]
    // SAFETY: registers of TIMER0, by the manual of the nRF51: 32 bits, 16 MHz, start.
    unsafe {
        write_volatile((TIMER0 + 0x508) as *mut u32, 3);
        write_volatile((TIMER0 + 0x510) as *mut u32, 0);
        write_volatile(TIMER0 as *mut u32, 1);
    }
}

#[cfg(board = "microbit")]
const TIMER0: usize = 0x4000_8000;

/// What the counter says.
#[inline(never)]
pub fn counter() -> u32 {
    #[cfg(any(
        board = "mps2-an385",
        board = "mps2-an386",
        board = "mps2-an505",
        board = "mps3-an547"
    ))]
    // SAFETY: the counter, by the manual of the board.
    unsafe {
        read_volatile((FPGAIO.0 + 0x18) as *const u32)
    }
    #[cfg(board = "microbit")]
    // SAFETY: captures and reads TIMER0, by the manual of the nRF51.
    unsafe {
        write_volatile((TIMER0 + 0x40) as *mut u32, 1);
        read_volatile((TIMER0 + 0x540) as *const u32)
    }
    #[cfg(board = "virt")]
    {
        let count: u32;
        // SAFETY: reads the count of retired instructions.
        unsafe { core::arch::asm!("csrr {}, minstret", out(reg) count, options(nomem, nostack)) };
        count
    }
}

/// Instructions between two values of the counter.
pub fn instructions(from: u32, to: u32) -> u32 {
    let ticks = u64::from(to.wrapping_sub(from));
    #[cfg(any(
        board = "mps2-an385",
        board = "mps2-an386",
        board = "mps2-an505",
        board = "mps3-an547"
    ))]
    let ticks = ticks * 1_000_000_000 / (FPGAIO.1 * NANOSECONDS);
    #[cfg(board = "microbit")]
    let ticks = ticks * 1_000_000_000 / (16_000_000 * NANOSECONDS);
    ticks as u32
}
