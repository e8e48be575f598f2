//! Operators that slide a window over an image.
//!
//! Output pixels are written in order, and while a pixel is written its own window and those of all later pixels may still
//! be read. So the input lies far enough above when, for every pixel, the end of what is written with it is at or below
//! the start of its window. Windows of later pixels that reach lower need no more than is asked for at their own pixel.
//!
//! ```text
//! input   |.......|=====window of pixel e=====|.......
//! output  |before e|e..e + k|.........
//!                           ^ must not be above the window's start
//! ```

use super::{Contract, Overlap, Pair};
use crate::node::{Node, Options};

/// How windows move along one axis.
struct Axis {
    /// Elements of the input and of the output.
    input: usize,
    output: usize,
    stride: usize,
    /// Padding before the first element.
    before: usize,
}

impl Axis {
    /// `None` where the output has not the size that TFLM computes (`ComputeOutSize` in its `padding.h`).
    fn new(
        (input, output): (usize, usize),
        window: usize,
        stride: i32,
        dilation: i32,
        padding: i8,
    ) -> Option<Self> {
        let stride = usize::try_from(stride).ok()?;
        let dilation = usize::try_from(dilation).ok()?;
        let span = window
            .checked_sub(1)?
            .saturating_mul(dilation)
            .saturating_add(1);
        let room = match padding {
            0 => input.saturating_add(stride).checked_sub(1)?,
            1 => input.saturating_add(stride).saturating_sub(span),
            _ => return None,
        };
        if room.checked_div(stride)? != output {
            return None;
        }
        let covered = output
            .checked_sub(1)?
            .saturating_mul(stride)
            .saturating_add(span);
        Some(Self {
            input,
            output,
            stride,
            before: covered.saturating_sub(input) / 2,
        })
    }

    /// The first element that the window at `index` may read.
    fn start(&self, index: usize) -> usize {
        let origin = index.saturating_mul(self.stride);
        let start = origin.saturating_sub(self.before);
        start.min(self.input.saturating_sub(1))
    }

    /// The last window that starts with the first element.
    fn last_at_start(&self) -> usize {
        self.before.checked_div(self.stride).unwrap_or(0)
    }
}

/// Sizes along an axis, of the window and of its way.
struct Along {
    window: usize,
    stride: i32,
    dilation: i32,
}

fn overlap(
    pair: &Pair<'_>,
    padding: i8,
    height: Along,
    width: Along,
    pixels: usize,
) -> Option<Overlap> {
    let [images, h, w, depth] = pair.from.dims()?;
    let [to_images, to_h, to_w, to_depth] = pair.to.dims()?;
    if pair.input != 0 || images != to_images {
        return None;
    }
    let rows = Axis::new(
        (h, to_h),
        height.window,
        height.stride,
        height.dilation,
        padding,
    )?;
    let columns = Axis::new(
        (w, to_w),
        width.window,
        width.stride,
        width.dilation,
        padding,
    )?;
    // Products of an image's dimensions are no larger than the tensors, which are in memory.
    let (read, write) = (depth * pair.from_size, to_depth * pair.to_size);
    let to_image = to_h * to_w;
    let total = images * to_image;
    let (mut needed, mut number) = (0, 0);
    while number < images {
        for y in 0..rows.output {
            let first = number * to_image + y * to_w;
            let row = (number * h + rows.start(y)) * w;
            // Between these, all is linear.
            let corners = [
                columns.last_at_start(),
                columns.last_at_start().saturating_add(1),
                total.saturating_sub(first.saturating_add(pixels)),
                columns.output,
            ];
            for x in corners {
                let x = x.min(columns.output.saturating_sub(1));
                let mut end = (first + x).saturating_add(pixels);
                if number + 1 == images {
                    end = end.min(total);
                }
                let lowest = (row + columns.start(x)) * read;
                needed = needed.max(end.saturating_mul(write).saturating_sub(lowest));
            }
        }
        // Linear from image to image, but for the last one, behind which nothing is written.
        number = (number + 1).max(images.saturating_sub(2));
    }
    Some(pair.above(needed))
}

/// The window of the filter that is input 1, and the options from `dilation` on.
fn filtered(node: &Node<'_>, pair: &Pair<'_>, dilation: u16, pixels: u8) -> Option<Overlap> {
    let options = node.options().ok()?;
    let [_, height, width, _] = node.input(1).ok()?.shape().dims()?;
    let dilated = |slot| options.i32(slot, 1).ok();
    let (height, width) = strides(
        &options,
        (height, width),
        (dilated(dilation + 1)?, dilated(dilation)?),
    )?;
    let padding = options.i8(0, 0).ok()?;
    overlap(pair, padding, height, width, usize::from(pixels))
}

fn strides(
    options: &Options<'_>,
    window: (usize, usize),
    dilation: (i32, i32),
) -> Option<(Along, Along)> {
    let along = |window, stride, dilation| Along {
        window,
        stride,
        dilation,
    };
    Some((
        along(window.0, options.i32(2, 0).ok()?, dilation.0),
        along(window.1, options.i32(1, 0).ok()?, dilation.1),
    ))
}

pub(super) fn convolution(contract: Contract, node: &Node<'_>, pair: &Pair<'_>) -> Option<Overlap> {
    match contract {
        Contract::Convolution { pixels } => filtered(node, pair, 4, pixels),
        _ => None,
    }
}

pub(super) fn depthwise(contract: Contract, node: &Node<'_>, pair: &Pair<'_>) -> Option<Overlap> {
    match contract {
        Contract::Depthwise { pixels } => filtered(node, pair, 5, pixels),
        _ => None,
    }
}

pub(super) fn pooling(_: Contract, node: &Node<'_>, pair: &Pair<'_>) -> Option<Overlap> {
    let options = node.options().ok()?;
    let size = |slot| usize::try_from(options.i32(slot, 0).ok()?).ok();
    let (height, width) = strides(&options, (size(4)?, size(3)?), (1, 1))?;
    overlap(pair, options.i8(0, 0).ok()?, height, width, 1)
}
