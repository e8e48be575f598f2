//! AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D.
//!
//! The rules are those of TFLM's `pooling_common.cc`, `l2_pool_2d.cc` and `reference/integer_ops/pooling.h`: a window that
//! reaches over the edge has fewer pixels, and the average is over those that it has.

use super::{INPUT, Number, OUTPUT, dims, found, quantization, read, tensor, type_of, write};
use crate::contract::Contract;
use crate::error::Fault;
use crate::fixed::{activation_range, activation_range_f32, clamp};
use crate::kernel::{Code, Kernel};
use crate::memory::{View, ViewMut};
use crate::node::Node;
use crate::types::Type;

/// `AVERAGE_POOL_2D`: `[batch, height, width, channels]` of int8, int16 or float32.
pub const AVERAGE_POOL_2D: Kernel = kernel(Code::AVERAGE_POOL_2D, average);
/// [`AVERAGE_POOL_2D`] of int8 alone.
pub const AVERAGE_POOL_2D_INT8: Kernel = kernel(Code::AVERAGE_POOL_2D, average_int8);
/// [`AVERAGE_POOL_2D`] of int16 alone.
pub const AVERAGE_POOL_2D_INT16: Kernel = kernel(Code::AVERAGE_POOL_2D, average_int16);
/// [`AVERAGE_POOL_2D`] of float32 alone.
pub const AVERAGE_POOL_2D_FLOAT32: Kernel = kernel(Code::AVERAGE_POOL_2D, average_float);
/// `MAX_POOL_2D`: `[batch, height, width, channels]` of int8, int16 or float32.
pub const MAX_POOL_2D: Kernel = kernel(Code::MAX_POOL_2D, max);
/// [`MAX_POOL_2D`] of int8 alone.
pub const MAX_POOL_2D_INT8: Kernel = kernel(Code::MAX_POOL_2D, max_int8);
/// [`MAX_POOL_2D`] of int16 alone.
pub const MAX_POOL_2D_INT16: Kernel = kernel(Code::MAX_POOL_2D, max_int16);
/// [`MAX_POOL_2D`] of float32 alone.
pub const MAX_POOL_2D_FLOAT32: Kernel = kernel(Code::MAX_POOL_2D, max_float);
/// `L2_POOL_2D`, the root of the mean of squares: `[batch, height, width, channels]` of float32.
pub const L2_POOL_2D: Kernel = kernel(Code::L2_POOL_2D, |node| floats(node, l2_of_floats));

const OPTION_ACTIVATION: u16 = 5;

const fn kernel(code: Code, run: fn(&Node<'_>) -> Result<(), Fault>) -> Kernel {
    Kernel::builtin(code, run).with_contract(Contract::Pooling)
}

fn average(node: &Node<'_>) -> Result<(), Fault> {
    match type_of(node, INPUT)? {
        Type::INT8 => average_int8(node),
        Type::INT16 => average_int16(node),
        Type::FLOAT32 => average_float(node),
        _ => Err(Fault::ElementType(INPUT)),
    }
}

fn average_int8(node: &Node<'_>) -> Result<(), Fault> {
    integers::<i8>(node, average_of_pixels)
}

fn average_int16(node: &Node<'_>) -> Result<(), Fault> {
    integers::<i16>(node, average_of_pixels)
}

fn average_float(node: &Node<'_>) -> Result<(), Fault> {
    floats(node, average_of_floats)
}

fn max(node: &Node<'_>) -> Result<(), Fault> {
    match type_of(node, INPUT)? {
        Type::INT8 => max_int8(node),
        Type::INT16 => max_int16(node),
        Type::FLOAT32 => max_float(node),
        _ => Err(Fault::ElementType(INPUT)),
    }
}

fn max_int8(node: &Node<'_>) -> Result<(), Fault> {
    integers::<i8>(node, max_of_pixels)
}

fn max_int16(node: &Node<'_>) -> Result<(), Fault> {
    integers::<i16>(node, max_of_pixels)
}

fn max_float(node: &Node<'_>) -> Result<(), Fault> {
    floats(node, max_of_pixels)
}

/// One axis of the windows.
#[derive(Clone, Copy, Debug)]
struct Axis {
    input: usize,
    output: usize,
    stride: usize,
    filter: usize,
    padding: usize,
}

impl Axis {
    /// `None` if windows have no element.
    fn new(input: usize, output: usize, stride: i32, filter: i32, same: bool) -> Option<Self> {
        let stride = usize::try_from(stride).ok().filter(|&stride| stride > 0)?;
        let filter = usize::try_from(filter).ok().filter(|&filter| filter > 0)?;
        // Of the size that the operator has, whatever the output's.
        let expected = match same {
            true => input.div_ceil(stride),
            false => input.checked_sub(filter)? / stride + 1,
        };
        let reach = expected
            .saturating_sub(1)
            .checked_mul(stride)?
            .checked_add(filter)?;
        let padding = reach.saturating_sub(input) / 2;
        let last = output.saturating_sub(1).checked_mul(stride)?;
        let inside = input > 0 && padding < filter && last < input.checked_add(padding)?;
        inside.then_some(Self {
            input,
            output,
            stride,
            filter,
            padding,
        })
    }

    /// First element and number of elements of the window of output `at`.
    fn window(&self, at: usize) -> (usize, usize) {
        let start = at.wrapping_mul(self.stride);
        let end = start
            .saturating_add(self.filter)
            .saturating_sub(self.padding);
        let start = start.saturating_sub(self.padding);
        (start, end.min(self.input).saturating_sub(start))
    }
}

/// A window's pixels: some columns of some rows.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// The element where it starts.
    start: usize,
    rows: usize,
    columns: usize,
    /// Elements from a row to the next.
    pitch: usize,
    channels: usize,
    /// Which pixel of the output it is for.
    pixel: usize,
}

/// Calls `each` with the windows of all output pixels in order.
#[inline(never)]
fn windows(node: &Node<'_>, each: &mut dyn FnMut(Window) -> Option<()>) -> Result<(), Fault> {
    let options = node.options()?;
    let [batches, height, width, channels] = dims(node, INPUT)?;
    let [out_batches, out_height, out_width, out_channels] = dims(node, OUTPUT)?;
    if batches != out_batches || channels != out_channels {
        return Err(Fault::Shape(OUTPUT));
    }
    let same = match options.i8(0, 0)? {
        0 => true,
        1 => false,
        _ => return Err(Fault::Unsupported(0)),
    };
    let axis = |input, output, slot| -> Result<_, Fault> {
        Ok(Axis::new(
            input,
            output,
            options.i32(slot, 0)?,
            options.i32(slot + 2, 0)?,
            same,
        ))
    };
    let x = axis(width, out_width, 1)?.ok_or(Fault::Shape(OUTPUT))?;
    let y = axis(height, out_height, 2)?.ok_or(Fault::Shape(OUTPUT))?;
    let pitch = width * channels;
    let mut pixel = 0;
    for batch in 0..batches {
        for row in 0..y.output {
            let (first_row, rows) = y.window(row);
            for column in 0..x.output {
                let (first_column, columns) = x.window(column);
                let window = Window {
                    start: (batch * height + first_row) * pitch + first_column * channels,
                    rows,
                    columns,
                    pitch,
                    channels,
                    pixel,
                };
                each(window).ok_or(Fault::Shape(INPUT))?;
                pixel += 1;
            }
        }
    }
    Ok(())
}

/// Reduces the pixels of a window to one, which is limited to a range.
type Reduce<'a, T, R> = fn(View<'a, T>, Window, ViewMut<'a, T>, (R, R)) -> Option<()>;

fn integers<'a, T: Integer>(node: &Node<'a>, reduce: Reduce<'a, T, i32>) -> Result<(), Fault> {
    pool(node, reduce, T::TYPE, range_of_integers(node)?)
}

#[inline(never)]
fn range_of_integers(node: &Node<'_>) -> Result<(i32, i32), Fault> {
    let (scale, zero_point) = quantization(node, INPUT)?;
    let (out_scale, out_zero) = quantization(node, OUTPUT)?;
    let same_scale = (scale - out_scale).abs() <= 1e-6;
    if !same_scale || zero_point != out_zero {
        return Err(Fault::Quantization(OUTPUT));
    }
    let activation = node.options()?.i8(OPTION_ACTIVATION, 0)?;
    let output = tensor(node, OUTPUT);
    activation_range(found(&output)?, activation, OPTION_ACTIVATION as u8)
}

fn floats<'a>(node: &Node<'a>, reduce: Reduce<'a, f32, f32>) -> Result<(), Fault> {
    let activation = node.options()?.i8(OPTION_ACTIVATION, 0)?;
    let range = activation_range_f32(activation, OPTION_ACTIVATION as u8)?;
    pool(node, reduce, Type::FLOAT32, range)
}

fn pool<'a, T: Number, R: Copy>(
    node: &Node<'a>,
    reduce: Reduce<'a, T, R>,
    element_type: Type,
    range: (R, R),
) -> Result<(), Fault> {
    let from = read::<T>(node, 0, element_type)?;
    let to = write::<T>(node, OUTPUT, element_type)?;
    windows(node, &mut |window| {
        let to = to.part(window.pixel * window.channels, window.channels)?;
        reduce(from, window, to, range)
    })
}

/// An integer that is pooled.
trait Integer: Number<Sum = i32> + Into<i32> {
    const TYPE: Type;

    fn narrow(x: i32) -> Self;
}

impl Integer for i8 {
    const TYPE: Type = Type::INT8;

    #[inline(always)]
    fn narrow(x: i32) -> Self {
        x as i8
    }
}

impl Integer for i16 {
    const TYPE: Type = Type::INT16;

    #[inline(always)]
    fn narrow(x: i32) -> Self {
        x as i16
    }
}

/// Channels that are reduced at once, so that what they have come to stays in registers.
const BLOCK: usize = if cfg!(target_pointer_width = "32") {
    4
} else {
    16
};

/// Folds a window's pixels channel by channel, and gives each result to `each`.
#[inline(always)]
fn fold<'a, T: Number, A: Copy>(
    from: View<'a, T>,
    window: Window,
    zero: A,
    step: impl Fn(A, T) -> A,
    mut each: impl FnMut(usize, A),
) -> Option<()> {
    let Window {
        channels, columns, ..
    } = window;
    let mut channel = 0;
    while channels - channel >= BLOCK {
        let mut block = [zero; BLOCK];
        let mut start = window.start + channel;
        for _ in 0..window.rows {
            let mut at = start;
            for _ in 0..columns {
                let pixel = from.part(at, BLOCK)?;
                for (k, folded) in block.iter_mut().enumerate() {
                    *folded = step(*folded, pixel.get(k));
                }
                at += channels;
            }
            start += window.pitch;
        }
        for folded in block {
            each(channel, folded);
            channel += 1;
        }
    }
    while channel < channels {
        let mut folded = zero;
        let mut start = window.start + channel;
        for _ in 0..window.rows {
            let mut at = start;
            for _ in 0..columns {
                folded = step(folded, from.get(at));
                at += channels;
            }
            start += window.pitch;
        }
        each(channel, folded);
        channel += 1;
    }
    Some(())
}

fn max_of_pixels<T: Number + Limit>(
    from: View<'_, T>,
    window: Window,
    to: ViewMut<'_, T>,
    (least, largest): (T::Range, T::Range),
) -> Option<()> {
    let larger = |a: T, b: T| if b > a { b } else { a };
    fold(from, window, T::LEAST, larger, |channel, max| {
        to.set(channel, max.limit(least, largest));
    })
}

/// A number and the range that an activation leaves of it.
trait Limit: Copy {
    type Range: Copy;

    fn limit(self, least: Self::Range, largest: Self::Range) -> Self;
}

impl<T: Integer> Limit for T {
    type Range = i32;

    #[inline(always)]
    fn limit(self, least: i32, largest: i32) -> Self {
        T::narrow(clamp(self.into(), least, largest))
    }
}

impl Limit for f32 {
    type Range = f32;

    #[inline(always)]
    fn limit(self, least: f32, largest: f32) -> Self {
        clamp(self, least, largest)
    }
}

fn average_of_pixels<T: Integer>(
    from: View<'_, T>,
    window: Window,
    to: ViewMut<'_, T>,
    (least, largest): (i32, i32),
) -> Option<()> {
    let count = (window.rows * window.columns) as i32;
    fold(from, window, 0, T::add, |channel, sum| {
        to.set(
            channel,
            T::narrow(clamp(rounded_quotient(sum, count), least, largest)),
        );
    })
}

/// `sum / count`, half away from 0, of a count above 0.
#[inline(never)]
fn rounded_quotient(sum: i32, count: i32) -> i32 {
    let half = count / 2;
    let nudged = match sum > 0 {
        true => sum.wrapping_add(half),
        false => sum.wrapping_sub(half),
    };
    nudged.checked_div(count).unwrap_or(0)
}

fn average_of_floats(
    from: View<'_, f32>,
    window: Window,
    to: ViewMut<'_, f32>,
    (least, largest): (f32, f32),
) -> Option<()> {
    let count = (window.rows * window.columns) as f32;
    fold(
        from,
        window,
        0.0,
        |sum: f32, x: f32| sum + x,
        |channel, sum| {
            to.set(channel, clamp(sum / count, least, largest));
        },
    )
}

fn l2_of_floats(
    from: View<'_, f32>,
    window: Window,
    to: ViewMut<'_, f32>,
    (least, largest): (f32, f32),
) -> Option<()> {
    let count = (window.rows * window.columns) as f32;
    fold(
        from,
        window,
        0.0,
        |sum: f32, x: f32| sum + x * x,
        |channel, sum| {
            to.set(channel, clamp(libm::sqrtf(sum / count), least, largest));
        },
    )
}
