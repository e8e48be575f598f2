//! The kernels of `arenaplan-runtime` (`runtime/src/ops`).
//!
//! They are written in Rust, over views that may share bytes whatever their types are, and copy with `memmove`.

use arenaplan_schema::tflite::BuiltinOperator as Op;

use super::Kernel;
use super::window::{self, Frame};
use super::{element, moves, rows};

pub(super) fn run(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    k.is_own = true;
    match k.op.code {
        Op::CONV_2D => {
            let conv = window::Convolution::read(k)?;
            ahead(k, &conv.frame, CONVOLUTION_PIXELS)
        }
        Op::DEPTHWISE_CONV_2D => {
            let conv = window::Depthwise::read(k)?;
            ahead(k, &conv.frame, DEPTHWISE_PIXELS)
        }
        Op::AVERAGE_POOL_2D | Op::MAX_POOL_2D | Op::L2_POOL_2D => {
            let (frame, _) = window::pool_frame(k)?;
            ahead(k, &frame, 1)
        }
        Op::FULLY_CONNECTED => rows::fully_connected(k),
        Op::SVDF => rows::consume_then_write(k),
        Op::RESHAPE | Op::SQUEEZE | Op::EXPAND_DIMS => moves::memcpy(k),
        Op::CONCATENATION => moves::concatenation(k),
        Op::PACK => moves::pack_by_blocks(k),
        Op::SPLIT | Op::SPLIT_V => moves::split(k),
        Op::UNPACK => moves::unpack_by_blocks(k),
        Op::SLICE => moves::slice(k),
        Op::STRIDED_SLICE => moves::strided_slice(k),
        _ => element::run(k),
    }
}

/// Output pixels that CONV_2D computes at a time, at most: `ops/windows/convolution.rs`.
const CONVOLUTION_PIXELS: u64 = 1;

/// The same of DEPTHWISE_CONV_2D: `ops/windows/depthwise.rs`.
const DEPTHWISE_PIXELS: u64 = 1;

/// Pixels in order, of which any `pixels` that follow each other may be written before the first one's window is read for
/// the last time.
fn ahead(k: &mut Kernel<'_, '_, '_>, frame: &Frame, pixels: u64) -> Option<()> {
    let all = frame.batches.checked_mul(frame.pixels())?;
    let mut written = 0;
    frame.each(k, |k, pixel, dead| {
        while written < all.min(pixel + pixels) {
            frame.write(k, written, 0, frame.co)?;
            written += 1;
        }
        frame.read(k, dead, 0, frame.ci)
    })
}
