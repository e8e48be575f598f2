//! Kernels in which a window moves over an image: convolutions, pools, resizing.

use arenaplan_schema::tflite::{Padding, TensorType as Type};

use super::{Kernel, element_bytes, image};

/// Input positions along one axis, by the output position that is the last to read them, in ascending order.
pub(super) struct Axis {
    dead: Vec<Vec<u64>>,
}

impl Axis {
    /// `reads` names the input positions that an output position reads; those outside of the axis do not count.
    pub(super) fn new(
        k: &mut Kernel<'_, '_, '_>,
        outputs: u64,
        inputs: u64,
        mut reads: impl FnMut(u64, &mut Vec<i64>),
    ) -> Option<Self> {
        k.step(outputs.checked_add(inputs)?)?;
        let mut last = vec![None; usize::try_from(inputs).ok()?];
        let mut list = Vec::new();
        for o in 0..outputs {
            list.clear();
            reads(o, &mut list);
            k.step(list.len() as u64)?;
            for &at in &list {
                if let Some(last) = usize::try_from(at).ok().and_then(|at| last.get_mut(at)) {
                    *last = Some(o);
                }
            }
        }
        let mut dead = vec![Vec::new(); usize::try_from(outputs).ok()?];
        for (at, last) in last.into_iter().enumerate() {
            if let Some(o) = last {
                dead[o as usize].push(at as u64);
            }
        }
        Some(Self { dead })
    }

    /// A window of `size` positions, `dilation` apart, that starts `pad` in front of the axis.
    fn sliding(k: &mut Kernel<'_, '_, '_>, outputs: u64, inputs: u64, w: Window) -> Option<Self> {
        k.step(outputs.checked_mul(w.size)?)?;
        let (stride, dilation) = (w.stride as i64, w.dilation as i64);
        Self::new(k, outputs, inputs, |o, list| {
            let origin = o as i64 * stride - w.pad as i64;
            list.extend((0..w.size as i64).map(|f| origin + f * dilation));
        })
    }
}

/// A window along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) size: u64,
    pub(super) stride: u64,
    pub(super) dilation: u64,
    /// Positions in front of the axis that the first window covers (`padding.h`).
    pub(super) pad: u64,
}

impl Window {
    pub(super) fn new(
        inputs: u64,
        size: u64,
        stride: i32,
        dilation: i32,
        padding: Padding,
    ) -> Option<Self> {
        let positive = |n: i32| u64::try_from(n).ok().filter(|&n| n > 0);
        let (stride, dilation) = (positive(stride)?, positive(dilation)?);
        let covered = size.checked_sub(1)?.checked_mul(dilation)? + 1;
        // Beyond this no position is reached, and sums below stay far from overflow.
        if covered > 1 << 31 {
            return None;
        }
        let outputs = match padding {
            Padding::SAME => inputs.div_ceil(stride),
            Padding::VALID => (inputs + stride).checked_sub(covered)? / stride,
            _ => return None,
        };
        let needed = (outputs.checked_sub(1)?).checked_mul(stride)? + covered;
        Some(Self {
            size,
            stride,
            dilation,
            pad: needed.saturating_sub(inputs) / 2,
        })
    }
}

/// An input image, an output image, and which pixels of the one are read for the last time for which of the other.
pub(super) struct Frame {
    /// Position of the image among the operator's inputs.
    pub(super) at: usize,
    pub(super) batches: u64,
    pub(super) height: u64,
    pub(super) width: u64,
    /// Channels of input and output.
    pub(super) ci: u64,
    pub(super) co: u64,
    /// Bytes of an element of input and output.
    pub(super) from: u64,
    pub(super) to: u64,
    rows: Axis,
    columns: Axis,
}

impl Frame {
    fn new(
        k: &mut Kernel<'_, '_, '_>,
        at: usize,
        axes: impl FnOnce(&mut Kernel<'_, '_, '_>, [u64; 4], [u64; 4]) -> Option<(Axis, Axis)>,
    ) -> Option<Self> {
        let (input, output) = (k.input(at)?, k.output(0)?);
        let (from, to) = (image(input)?, image(output)?);
        if from[0] != to[0] {
            return None;
        }
        let (rows, columns) = axes(k, from, to)?;
        k.stream(at, output)?;
        Some(Self {
            at,
            batches: from[0],
            height: from[1],
            width: from[2],
            ci: from[3],
            co: to[3],
            from: element_bytes(input)?,
            to: element_bytes(output)?,
            rows,
            columns,
        })
    }

    /// Output pixels of one batch.
    pub(super) fn pixels(&self) -> u64 {
        (self.rows.dead.len() * self.columns.dead.len()) as u64
    }

    /// Output pixels of one row.
    pub(super) fn row_pixels(&self) -> u64 {
        self.columns.dead.len() as u64
    }

    /// Calls `run` for every output pixel in order, with its number and the input pixels that it is the last to read.
    pub(super) fn each<'g, 'a, 'e>(
        &self,
        k: &mut Kernel<'g, 'a, 'e>,
        mut run: impl FnMut(&mut Kernel<'g, 'a, 'e>, u64, &[u64]) -> Option<()>,
    ) -> Option<()> {
        (0..self.batches).try_for_each(|batch| self.each_of_batch(k, batch, &mut run))
    }

    /// The same for one batch.
    fn each_of_batch<'g, 'a, 'e>(
        &self,
        k: &mut Kernel<'g, 'a, 'e>,
        batch: u64,
        run: &mut impl FnMut(&mut Kernel<'g, 'a, 'e>, u64, &[u64]) -> Option<()>,
    ) -> Option<()> {
        let mut pixel = batch * self.pixels();
        let mut dead = Vec::new();
        for rows in &self.rows.dead {
            for columns in &self.columns.dead {
                dead.clear();
                for y in rows {
                    let row = (batch * self.height + y) * self.width;
                    dead.extend(columns.iter().map(|x| row + x));
                }
                k.step(1 + dead.len() as u64)?;
                run(k, pixel, &dead)?;
                pixel += 1;
            }
        }
        Some(())
    }

    /// Reads channels `first..end` of pixels in ascending order.
    pub(super) fn read(
        &self,
        k: &mut Kernel<'_, '_, '_>,
        pixels: &[u64],
        first: u64,
        end: u64,
    ) -> Option<()> {
        let byte = |pixel: u64, channel: u64| (pixel * self.ci + channel) * self.from;
        let whole = first == 0 && end == self.ci;
        let mut rest = pixels;
        while let [start, ..] = *rest {
            let mut n = 1;
            while whole && rest.get(n) == Some(&(start + n as u64)) {
                n += 1;
            }
            k.read(self.at, byte(start, first), byte(start + n as u64 - 1, end))?;
            rest = &rest[n..];
        }
        Some(())
    }

    /// Writes channels `first..end` of output pixel `pixel`.
    pub(super) fn write(
        &self,
        k: &mut Kernel<'_, '_, '_>,
        pixel: u64,
        first: u64,
        end: u64,
    ) -> Option<()> {
        let byte = |channel: u64| (pixel * self.co + channel) * self.to;
        k.write(0, byte(first), byte(end))
    }

    /// Pixels in blocks of `block` within each batch: all windows of a block are read, then all its pixels written. The
    /// channels come in `slices`, one after the other within each batch: channels of input and output, `start..end`.
    pub(super) fn in_blocks(
        &self,
        k: &mut Kernel<'_, '_, '_>,
        block: u64,
        slices: &[[(u64, u64); 2]],
    ) -> Option<()> {
        let all = self.pixels();
        for batch in 0..self.batches {
            for &[(read, read_end), (to, to_end)] in slices {
                let mut first = batch * all;
                self.each_of_batch(k, batch, &mut |k, pixel, dead| {
                    self.read(k, dead, read, read_end)?;
                    let in_batch = pixel % all + 1;
                    if in_batch.is_multiple_of(block) || in_batch == all {
                        for pixel in first..=pixel {
                            self.write(k, pixel, to, to_end)?;
                        }
                        first = pixel + 1;
                    }
                    Some(())
                })?;
            }
        }
        Some(())
    }

    /// All channels at once.
    pub(super) fn whole(&self) -> [[(u64, u64); 2]; 1] {
        [[(0, self.ci), (0, self.co)]]
    }

    /// The windows that `axes` make, over input `at`.
    pub(super) fn custom(
        k: &mut Kernel<'_, '_, '_>,
        at: usize,
        rows: impl FnMut(u64, &mut Vec<i64>),
        columns: impl FnMut(u64, &mut Vec<i64>),
    ) -> Option<Self> {
        Self::new(k, at, |k, from, to| {
            Some((
                Axis::new(k, to[1], from[1], rows)?,
                Axis::new(k, to[2], from[2], columns)?,
            ))
        })
    }

    /// Pixel by pixel, and output channel by output channel: each reads the whole window, of its group if there are
    /// several (`conv.h`).
    pub(super) fn by_output_channel(&self, k: &mut Kernel<'_, '_, '_>, groups: u64) -> Option<()> {
        let (read, written) = (self.ci / groups, self.co / groups);
        self.each(k, |k, pixel, dead| {
            if dead.is_empty() {
                return self.write(k, pixel, 0, self.co);
            }
            for group in 0..groups {
                let (first, end) = (group * written, (group + 1) * written);
                self.write(k, pixel, first, end - 1)?;
                self.read(k, dead, group * read, (group + 1) * read)?;
                self.write(k, pixel, end - 1, end)?;
            }
            Some(())
        })
    }

    /// Pixel by pixel, and in each by input channel, which makes `multiplier` output channels, and is read for each.
    pub(super) fn by_input_channel(
        &self,
        k: &mut Kernel<'_, '_, '_>,
        multiplier: u64,
    ) -> Option<()> {
        self.each(k, |k, pixel, dead| {
            if dead.is_empty() {
                return self.write(k, pixel, 0, self.co);
            }
            for channel in 0..self.ci {
                let (to, to_end) = (channel * multiplier, (channel + 1) * multiplier);
                self.write(k, pixel, to, to_end - 1)?;
                self.read(k, dead, channel, channel + 1)?;
                self.write(k, pixel, to_end - 1, to_end)?;
            }
            Some(())
        })
    }
}

/// A convolution's geometry.
pub(super) struct Convolution {
    pub(super) frame: Frame,
    pub(super) groups: u64,
    pub(super) vertical: Window,
    pub(super) horizontal: Window,
}

impl Convolution {
    pub(super) fn read(k: &mut Kernel<'_, '_, '_>) -> Option<Self> {
        let options = k.op.table.builtin_options_as_conv_2_doptions()?;
        let [co, height, width, depth] = image(k.input(1)?)?;
        let [_, in_height, in_width, ci] = image(k.input(0)?)?;
        let window = |inputs, size, stride, dilation| {
            Window::new(inputs, size, stride, dilation, options.padding())
        };
        let vertical = window(
            in_height,
            height,
            options.stride_h(),
            options.dilation_h_factor(),
        )?;
        let horizontal = window(
            in_width,
            width,
            options.stride_w(),
            options.dilation_w_factor(),
        )?;
        let frame = Frame::new(k, 0, |k, from, to| {
            Some((
                Axis::sliding(k, to[1], from[1], vertical)?,
                Axis::sliding(k, to[2], from[2], horizontal)?,
            ))
        })?;
        let groups = ci.checked_div(depth).filter(|&g| g > 0)?;
        (groups * depth == ci && frame.co == co && co.is_multiple_of(groups)).then_some(Self {
            frame,
            groups,
            vertical,
            horizontal,
        })
    }

    /// A depthwise convolution of one input channel is a convolution.
    pub(super) fn of_depthwise(conv: Depthwise) -> Self {
        Self {
            frame: conv.frame,
            groups: 1,
            vertical: conv.vertical,
            horizontal: conv.horizontal,
        }
    }

    /// A filter of one pixel without padding, dilation and groups.
    pub(super) fn is_pointwise(&self) -> bool {
        let point = |w: Window| w.size == 1 && w.pad == 0 && w.dilation == 1;
        point(self.vertical) && point(self.horizontal) && self.groups == 1
    }
}

/// conv.cc
pub(super) fn convolution(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let conv = Convolution::read(k)?;
    conv.frame.by_output_channel(k, conv.groups)
}

/// A depthwise convolution's geometry.
pub(super) struct Depthwise {
    pub(super) frame: Frame,
    pub(super) multiplier: u64,
    pub(super) vertical: Window,
    pub(super) horizontal: Window,
}

impl Depthwise {
    pub(super) fn read(k: &mut Kernel<'_, '_, '_>) -> Option<Self> {
        let options = k.op.table.builtin_options_as_depthwise_conv_2_doptions()?;
        let [_, height, width, co] = image(k.input(1)?)?;
        let [_, in_height, in_width, ci] = image(k.input(0)?)?;
        let window = |inputs, size, stride, dilation| {
            Window::new(inputs, size, stride, dilation, options.padding())
        };
        let vertical = window(
            in_height,
            height,
            options.stride_h(),
            options.dilation_h_factor(),
        )?;
        let horizontal = window(
            in_width,
            width,
            options.stride_w(),
            options.dilation_w_factor(),
        )?;
        let frame = Frame::new(k, 0, |k, from, to| {
            Some((
                Axis::sliding(k, to[1], from[1], vertical)?,
                Axis::sliding(k, to[2], from[2], horizontal)?,
            ))
        })?;
        let multiplier = u64::try_from(options.depth_multiplier()).ok()?;
        (multiplier.checked_mul(ci)? == co && frame.co == co && co > 0).then_some(Self {
            frame,
            multiplier,
            vertical,
            horizontal,
        })
    }
}

/// depthwise_conv.cc
pub(super) fn depthwise(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let conv = Depthwise::read(k)?;
    conv.frame.by_input_channel(k, conv.multiplier)
}

/// A pool's geometry: image, and windows along height and width.
pub(super) fn pool_frame(k: &mut Kernel<'_, '_, '_>) -> Option<(Frame, [Window; 2])> {
    let options = k.op.table.builtin_options_as_pool_2_doptions()?;
    let [_, height, width, _] = image(k.input(0)?)?;
    let window = |inputs, size, stride| {
        Window::new(
            inputs,
            u64::try_from(size).ok()?,
            stride,
            1,
            options.padding(),
        )
    };
    let vertical = window(height, options.filter_height(), options.stride_h())?;
    let horizontal = window(width, options.filter_width(), options.stride_w())?;
    let frame = Frame::new(k, 0, |k, from, to| {
        Some((
            Axis::sliding(k, to[1], from[1], vertical)?,
            Axis::sliding(k, to[2], from[2], horizontal)?,
        ))
    })?;
    (frame.ci == frame.co).then_some((frame, [vertical, horizontal]))
}

/// pooling.cc, l2_pool_2d.cc
pub(super) fn pool(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    pool_frame(k)?.0.by_input_channel(k, 1)
}

/// resize_bilinear.cc: each output element reads its own channel of up to four pixels.
pub(super) fn resize_bilinear(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let options = k.op.table.builtin_options_as_resize_bilinear_options()?;
    let (corners, half) = (options.align_corners(), options.half_pixel_centers());
    let ty = k.input(0)?.ty;
    let frame = Frame::new(k, 0, |k, from, to| {
        let mut axis = |inputs: u64, outputs: u64| -> Option<Axis> {
            // Positions and sizes are 32-bit integers there.
            let (n, m) = (i32::try_from(inputs).ok()?, i32::try_from(outputs).ok()?);
            if ty == Type::FLOAT32 {
                Axis::new(k, outputs, inputs, |o, list| {
                    interpolated(o, n, m, corners, half, list);
                })
            } else {
                // Products of the size and 1024 must not overflow, nor may the last position.
                if inputs.max(outputs) >= 1 << 20 {
                    return None;
                }
                Axis::new(k, outputs, inputs, |o, list| {
                    interpolated_in_integers(o as i64, n.into(), m.into(), corners, half, list);
                })
            }
        };
        Some((axis(from[1], to[1])?, axis(from[2], to[2])?))
    })?;
    if frame.ci != frame.co {
        return None;
    }
    frame.by_input_channel(k, 1)
}

/// `ComputeInterpolationValues`, resize_bilinear.h. A compiler may round the product and the difference once or twice
/// (`-ffp-contract`), which moves a position by one where it falls on a pixel: what either reads is read.
fn interpolated(o: u64, n: i32, m: i32, corners: bool, half: bool, list: &mut Vec<i64>) {
    let scale = if corners && m > 1 {
        (n - 1) as f32 / (m - 1) as f32
    } else {
        n as f32 / m as f32
    };
    let value = o as f32;
    let positions = if half {
        [
            (value + 0.5) * scale - 0.5,
            (value + 0.5).mul_add(scale, -0.5),
        ]
    } else {
        [value * scale; 2]
    };
    for at in positions {
        list.push((at.floor() as i64).max(0));
        list.push((at.ceil() as i64).min(i64::from(n) - 1));
    }
}

/// `ComputeInterpolationValuesInteger`, resize_bilinear.h: positions in units of 1/1024.
fn interpolated_in_integers(
    o: i64,
    n: i64,
    m: i64,
    corners: bool,
    half: bool,
    list: &mut Vec<i64>,
) {
    let scale = if corners && m > 1 {
        (1024 * (n - 1) + (m - 1) / 2) / (m - 1)
    } else {
        (1024 * n + m / 2) / m
    };
    let at = if half {
        o * scale + scale / 2 - 512
    } else {
        o * scale
    };
    list.push((at / 1024).max(0));
    list.push(((at + 1023) / 1024).min(n - 1));
}

/// resize_nearest_neighbor.cc: a `memcpy` of one pixel for each output pixel.
pub(super) fn resize_nearest_neighbor(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let options =
        k.op.table
            .builtin_options_as_resize_nearest_neighbor_options()?;
    let (corners, half) = (options.align_corners(), options.half_pixel_centers());
    let (input, output) = (k.input(0)?, k.output(0)?);
    let ([batches, height, width, depth], to) = (image(input)?, image(output)?);
    let bytes = depth.checked_mul(element_bytes(input)?)?;
    if input.ty != output.ty || to[0] != batches || to[3] != depth {
        return None;
    }
    k.streamed[0] = true;
    let mut pixel = 0;
    for batch in 0..batches {
        for y in 0..to[1] {
            let row = batch * height + nearest(y, height, to[1], corners, half);
            for x in 0..to[2] {
                let from = row * width + nearest(x, width, to[2], corners, half);
                k.copy(0, from * bytes, 0, pixel * bytes, bytes)?;
                pixel += 1;
            }
        }
    }
    Some(())
}

/// `GetNearestNeighbor`, resize_nearest_neighbor.h.
fn nearest(o: u64, n: u64, m: u64, corners: bool, half: bool) -> u64 {
    let scale = if corners && m > 1 {
        (n as f32 - 1.0) / (m as f32 - 1.0)
    } else {
        n as f32 / m as f32
    };
    let at = (o as f32 + if half { 0.5 } else { 0.0 }) * scale;
    let at = if corners { at.round() } else { at.floor() };
    (at as u64).min(n.saturating_sub(1))
}

/// transpose_conv.cc: integers are summed in scratch memory, and written when the input has been read; numbers with a
/// point are summed in the output, which is cleared first.
pub(super) fn transpose_convolution(k: &mut Kernel<'_, '_, '_>) -> Option<()> {
    let (input, output) = (k.input(2)?, k.output(0)?);
    if matches!(input.ty, Type::INT8 | Type::INT16) {
        k.stream(2, output)?;
        k.read_all(2)?;
    }
    k.write_all(0)
}
