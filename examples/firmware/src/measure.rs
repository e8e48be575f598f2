//! Instructions and stack of a call.

use core::arch::asm;
use core::hint::black_box;
use core::ptr::addr_of;

use crate::board;

/// What a call took.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Instructions, by QEMU's count.
    pub instructions: u32,
    /// Bytes of stack, from the call's own frame on.
    pub stack: usize,
}

/// No call uses more stack than this.
const DEPTH: usize = 32 * 1024;
const PAINT: u32 = 0xa5a5_a5a5;

unsafe extern "C" {
    /// The end of static memory, from the linker script of the runtime for the core.
    static __sheap: u8;
}

/// Calls `f(with)`; `f` has a stack frame of its own, since the compiler does not know it.
#[inline(never)]
pub fn measure<T: ?Sized, R>(f: fn(&mut T) -> R, with: &mut T) -> (R, Cost) {
    let nothing: fn(&mut T) = |_| ();
    let (nothing, f) = (black_box(nothing), black_box(f));
    let before = board::counter();
    nothing(with);
    let overhead = board::instructions(before, board::counter());

    let sp: usize;
    #[cfg(target_arch = "arm")]
    // SAFETY: reads the stack pointer.
    unsafe {
        asm!("mov {}, sp", out(reg) sp, options(nomem, nostack))
    };
    #[cfg(target_arch = "riscv32")]
    // SAFETY: reads the stack pointer.
    unsafe {
        asm!("mv {}, sp", out(reg) sp, options(nomem, nostack))
    };
    let lowest = sp.saturating_sub(DEPTH).max(addr_of!(__sheap).addr());
    let lowest = lowest.next_multiple_of(4);
    let mut at = lowest;
    while at < sp {
        // SAFETY: free memory between static memory and this function's frame; nothing is called meanwhile.
        unsafe { (at as *mut u32).write_volatile(PAINT) };
        at += 4;
    }
    let before = board::counter();
    let result = f(with);
    let after = board::counter();
    let mut at = lowest;
    // SAFETY: as above.
    while at < sp && unsafe { (at as *const u32).read_volatile() } == PAINT {
        at += 4;
    }
    let instructions = board::instructions(before, after).saturating_sub(overhead);
    (
        result,
        Cost {
            instructions,
            stack: sp - at,
        },
    )
}
