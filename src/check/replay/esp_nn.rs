//! ESP-NN's kernels, where `esp-tflite-micro` calls them (`micro/kernels/esp_nn/*.cc`).
//!
//! They read in larger blocks than the reference kernels before they write, or copy all of their input first: what is right
//! for the reference kernels is right here, but for one.

use arenaplan_schema::tflite::{BuiltinOperator as Op, TensorType as Type};

use super::Kernel;
use super::window::Convolution;
use crate::target::Chip;

/// Whether there is a kernel of its own for this operator, in another order than the reference kernel's.
pub(super) fn has(code: Op) -> bool {
    code == Op::CONV_2D
}

pub(super) fn run(k: &mut Kernel<'_, '_, '_>, chip: Chip) -> Option<()> {
    let is_bytes = |i: usize| k.input(i).is_some_and(|t| t.ty == Type::INT8);
    if chip == Chip::S3 && k.op.code == Op::CONV_2D && is_bytes(0) && is_bytes(1) {
        let conv = Convolution::read(k)?;
        let unit = conv.vertical.stride == 1 && conv.horizontal.stride == 1;
        if conv.is_pointwise() && unit && !conv.frame.ci.is_multiple_of(8) {
            return pointwise(k, &conv);
        }
    }
    super::reference(k)
}

/// Pixels that vectors take at once, and channels.
const VECTOR: u64 = 8;

/// esp_nn_conv_s8_1x1_esp32s3.c: of eight pixels the channels in eights are copied, but the others are read again for each
/// output channel, which is written for all eight. Pixels left over come one by one.
fn pointwise(k: &mut Kernel<'_, '_, '_>, conv: &Convolution) -> Option<()> {
    let frame = &conv.frame;
    let (all, ci, co) = (frame.pixels(), frame.ci, frame.co);
    let copied = ci / VECTOR * VECTOR;
    for batch in 0..frame.batches {
        let mut first = batch * all;
        let end = first + all;
        while first < end {
            let next = if end - first < VECTOR {
                first + 1
            } else {
                first + VECTOR
            };
            let block: Vec<u64> = (first..next).collect();
            frame.read(k, &block, 0, copied)?;
            for &pixel in &block {
                frame.write(k, pixel, 0, co.checked_sub(1)?)?;
            }
            // A single pixel has all of its channels read again.
            let again = if next - first == 1 { 0 } else { copied };
            frame.read(k, &block, again, ci)?;
            for &pixel in &block {
                frame.write(k, pixel, co - 1, co)?;
            }
            first = next;
        }
    }
    Some(())
}
