//! The kernels of `arenaplan-runtime` (`runtime/src/ops`).
//!
//! They are written in Rust, over views that may share bytes whatever their types are, and copy with `memmove`.

use arenaplan_schema::tflite::BuiltinOperator as Op;

use super::window::{self, Frame};
use super::{Kernel, element_bytes, product};
use super::{element, moves, places, rows};

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
        Op::PAD | Op::PADV2 => pad(k),
        Op::MIRROR_PAD => mirror_pad(k),
        _ => element::run(k),
    }
}

/// Row by row, each moved as a whole: the innermost axis with a border, and all that is within it.
fn pad(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    if k.input(0)?.ty != k.output(0)?.ty {
        return None;
    }
    let (from, to, front) = moves::padded(k)?;
    let axis = (0..to.len()).rev().find(|&d| from[d] != to[d]).unwrap_or(0);
    let inner = product(&to[axis + 1..])?.checked_mul(element_bytes(k.output(0)?)?)?;
    let bytes = |count: u64| count.checked_mul(inner);
    let (before, row, whole) = (bytes(front[axis])?, bytes(from[axis])?, bytes(to[axis])?);
    k.streamed[0] = true;
    let (mut next, mut at) = (0, 0);
    for line in 0..product(&to[..axis])? {
        k.step(1)?;
        let end = at + whole;
        if moves::is_inside(line, &from[..axis], &to[..axis], &front[..axis]) {
            k.write(0, at, at + before)?;
            k.copy(0, next, 0, at + before, row)?;
            next += row;
            at += before + row;
        }
        k.write(0, at, end)?;
        at = end;
    }
    Some(())
}

/// Element by element as far as order goes; without a border, it is one move.
fn mirror_pad(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    match k.constant(1)?.iter().all(|&n| n == 0) {
        true => moves::memcpy(k),
        false => places::mirror_pad(k),
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
