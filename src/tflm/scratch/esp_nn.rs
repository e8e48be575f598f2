//! Scratch memory that the ESP-NN kernels of `esp-tflite-micro` request, where it is not what the reference kernels
//! request.
//!
//! From the sources of ESP-NN d45b843 and esp-tflite-micro 99f49e1 (2026): `esp_nn_get_conv_scratch_size` and
//! `esp_nn_get_depthwise_conv_scratch_size` of each chip, and `softmax.cc`. They are asked for 8-bit inputs, whatever the
//! type of the weights and the dilation, although such operators then run on the reference kernels.

use arenaplan_schema::tflite::{BuiltinOperator as Op, TensorType as Type};

use super::dim;
use crate::graph::{Graph, Operator};
use crate::target::Chip;
use crate::tflm::window::{Window, product};

/// The requests of `op`, or `None` where they are the reference kernel's.
pub(super) fn requests(chip: Chip, graph: &Graph<'_>, op: &Operator<'_>) -> Option<Vec<u64>> {
    let input = graph.tensor(op.inputs.first().copied().flatten()?);
    if input.ty != Type::INT8 {
        return None;
    }
    let bytes = match (op.code, chip) {
        (Op::CONV_2D, Chip::S3) => conv_s3(&Window::of(graph, op)?),
        (Op::CONV_2D, Chip::P4) => conv_p4(&Window::of(graph, op)?),
        (Op::DEPTHWISE_CONV_2D, Chip::S3) => {
            let o = op.table.builtin_options_as_depthwise_conv_2_doptions()?;
            let multiplier = u64::try_from(o.depth_multiplier()).ok()?;
            depthwise_s3(&Window::of(graph, op)?, multiplier)
        }
        // softmax.cc takes the input's second dimension for the length of a row.
        (Op::SOFTMAX, _) if graph.tensor(*op.outputs.first()?).ty == Type::INT8 => {
            dim(input, 1)?.saturating_mul(4)
        }
        _ => return None,
    };
    // Unpacked weights come first, by the reference kernel's row.
    let mut list = super::reference(graph, op)?;
    if bytes != 0 {
        list.push(bytes);
    }
    Some(list)
}

/// Up to the next multiple; sizes are far from the largest number, or there already.
fn up(n: u64, multiple: u64) -> u64 {
    n.checked_next_multiple_of(multiple).unwrap_or(u64::MAX)
}

fn sum(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |n, &p| n.saturating_add(p))
}

fn is_pointwise(w: &Window) -> bool {
    w.kernel_h == 1 && w.kernel_w == 1 && !w.is_padded() && w.is_unit_stride()
}

/// What the matrix product of pixels takes: the input with channels rounded up to 8, the filter, a transposed block.
fn pointwise(w: &Window) -> u64 {
    let channels = up(w.in_channels, 8);
    let pixels = product(&[w.in_h, w.in_w]);
    let input = match w.in_channels % 8 {
        0 => 0,
        _ => pixels.saturating_mul(channels),
    };
    let block = if pixels < 8 { 0 } else { 16 * channels };
    sum(&[input, channels.saturating_mul(w.out_channels), block])
}

/// How far the last window of a dimension reaches over the input's end, if the first one starts at its beginning.
fn over(out: u64, stride: u64, kernel: u64, size: u64) -> u64 {
    (out * stride + kernel - 1).saturating_sub(size)
}

/// esp_nn_conv_esp32s3.c
fn conv_s3(w: &Window) -> u64 {
    if is_pointwise(w) {
        return pointwise(w).saturating_add(64);
    }
    let row = w.kernel_w.saturating_mul(w.in_channels);
    let sums = 4 * w.out_channels;
    if row < 16 && w.volume() >= 16 {
        let window = up(w.volume(), 16);
        return sum(&[
            sums,
            16,
            window.saturating_mul(w.out_channels),
            16,
            window,
            64,
        ]);
    }
    let padded = match w.is_padded() {
        true => product(&[
            w.in_w.saturating_add(w.pad_left.saturating_mul(2)),
            w.in_h.saturating_add(w.pad_top.saturating_mul(2)),
            w.in_channels,
        ]),
        false => 0,
    };
    let channels = up(w.in_channels, 16);
    let filter = product(&[w.kernel_w, w.kernel_h, channels, w.out_channels]);
    let aligned_filter = product(&[up(row, 16), w.kernel_h, w.out_channels]);
    let right = over(w.out_w, w.stride_w, w.kernel_w, w.in_w);
    let bottom = over(w.out_h, w.stride_h, w.kernel_h, w.in_h);
    let beyond = match (right, bottom) {
        (0, 0) => 0,
        _ => product(&[
            w.in_w.saturating_add(right),
            w.in_h.saturating_add(bottom),
            w.in_channels,
        ]),
    };
    sum(&[padded, filter, aligned_filter, beyond, 64, sums])
}

/// esp_nn_conv_esp32p4.c
fn conv_p4(w: &Window) -> u64 {
    const BUDGET: u64 = 32 * 1024;
    let sums = 4 * w.out_channels;
    if is_pointwise(w) {
        return match w.in_channels < 16 {
            true => sum(&[sums, 16 * w.out_channels, 32, 32]),
            false => pointwise(w).saturating_add(32),
        };
    }
    let area = w.kernel_h.saturating_mul(w.kernel_w);
    let row = w.kernel_w.saturating_mul(w.in_channels);
    let filter = product(&[area, up(w.in_channels, 16), w.out_channels]);
    if !w.is_padded() && row >= 16 {
        return sum(&[filter, 32, sums]);
    }
    if w.volume() >= 16 {
        return sum(&[sums, w.volume(), 32]);
    }
    // A window of less than 16 bytes: as many channels as make a vector of a row.
    let spread = up(16_u64.div_ceil(w.kernel_w), 16);
    let spread_filter = product(&[area, spread, w.out_channels]);
    if !w.is_padded() {
        return sum(&[sums, spread_filter, product(&[w.in_h, w.in_w, spread]), 32]);
    }
    let width = w.in_w.saturating_add(w.pad_left.saturating_mul(2));
    let height = w.in_h.saturating_add(w.pad_top.saturating_mul(2));
    let whole = product(&[width, height, w.in_channels]);
    if whole.saturating_add(sums) <= BUDGET {
        return sum(&[whole, filter, 32, sums]);
    }
    // Tiles of output rows, as many as fit; a row of the window has less than 16 bytes here.
    let tile_row = width.saturating_mul(spread);
    let room = BUDGET.saturating_sub(sum(&[sums, spread_filter]));
    let first = w.kernel_h.saturating_mul(tile_row);
    let tiles = match room.checked_sub(first) {
        Some(rest) if room > 0 => (rest / product(&[w.stride_h, tile_row]).max(1) + 1).min(w.out_h),
        _ => 1,
    };
    let rows = sum(&[
        (tiles - 1) * w.stride_h,
        w.kernel_h,
        w.pad_top.saturating_mul(2),
    ]);
    sum(&[rows.saturating_mul(tile_row), spread_filter, 32, sums])
}

/// esp_nn_depthwise_conv_s8_esp32s3.c; `multiplier` is the option's.
fn depthwise_s3(w: &Window, multiplier: u64) -> u64 {
    let channels = w.in_channels;
    let area = w.kernel_h.saturating_mul(w.kernel_w);
    let filter = product(&[area, channels, multiplier]);
    let input = product(&[w.in_h, w.in_w, channels]);
    // Filter and input in 16 bits.
    let wide = filter.saturating_add(input).saturating_mul(2);
    let three = w.kernel_h == 3 && w.kernel_w == 3;
    let right = over(w.out_w, w.stride_w, w.kernel_w, w.in_w);
    let bottom = over(w.out_h, w.stride_h, w.kernel_h, w.in_h);
    let (twice_left, twice_top) = (w.pad_left.saturating_mul(2), w.pad_top.saturating_mul(2));
    match multiplier {
        1 if channels.is_multiple_of(16) && three => {
            let (more_w, more_h) = match w.is_padded() {
                true => (twice_left, twice_top),
                false => (right, bottom),
            };
            let width = w.in_w.saturating_add(more_w);
            let copied = match (more_w, more_h) {
                (0, 0) => 0,
                _ => match product(&[width, w.in_h.saturating_add(more_h), channels]) {
                    whole if whole <= 40 * 1024 => whole,
                    _ => product(&[width, w.kernel_h, channels]),
                },
            };
            sum(&[filter, copied, 16])
        }
        1 if channels.is_multiple_of(8) && three && channels >= 12 => {
            let channels = up(channels, 16);
            let width = sum(&[w.in_w, twice_left, right]);
            let height = sum(&[w.in_h, twice_top, bottom]);
            sum(&[
                9 * channels,
                product(&[width, height, channels]),
                product(&[w.out_w, w.out_h, channels]),
                64,
            ])
        }
        1 if channels.is_multiple_of(8) && (three || wide <= 48 * 1024) => wide.saturating_add(32),
        // Too much: the rows of one window.
        1 if channels.is_multiple_of(8) => sum(&[
            filter.saturating_mul(2),
            product(&[2, w.in_w, w.kernel_h, channels]),
            32,
        ]),
        1 if channels > 3 => {
            let channels = up(channels, 8);
            let input = up(product(&[2, area, channels]), 16);
            let output = up(sum(&[input, product(&[2, w.in_w, w.in_h, channels])]), 16);
            let bias = up(sum(&[output, product(&[w.out_w, w.out_h, channels])]), 16);
            sum(&[bias, 12 * channels, 16])
        }
        m if m.is_multiple_of(4) => wide.saturating_add(32),
        _ => 32,
    }
}
