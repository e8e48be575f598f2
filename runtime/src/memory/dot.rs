//! Sums of products over windows of memory: what convolutions and FULLY_CONNECTED spend their time on.
//!
//! A window is checked once, when it is made; after that, sums are computed from addresses. Nothing is written while they
//! are, but local variables.

#[cfg(arm_dsp)]
#[path = "dsp.rs"]
mod dsp;

use core::marker::PhantomData;

use super::{View, ViewMut};

/// How far apart runs of elements are that are multiplied: those of the input, and those of the weights.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steps {
    /// From a row of the input to the next one.
    pub(crate) input_row: usize,
    /// From a run of the input to the next one in its row.
    pub(crate) input_col: usize,
    /// From a row of the weights to the next one.
    pub(crate) weight_row: usize,
    /// From a run of the weights to the next one in its row.
    pub(crate) weight_col: usize,
}

/// How many runs a window has, in rows and columns, and how many elements each of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) len: usize,
}

impl Extent {
    /// Elements from the first to behind the last one; `None` if they are too many to count.
    fn end(&self, row: usize, col: usize) -> Option<usize> {
        let rows = self.rows.saturating_sub(1).checked_mul(row)?;
        let cols = self.cols.saturating_sub(1).checked_mul(col)?;
        let end = rows.checked_add(cols)?.checked_add(self.len)?;
        (end <= isize::MAX as usize).then_some(end)
    }

    /// As [`end`](Self::end), of an extent that is no larger than one for which that was something.
    #[inline(always)]
    fn span(&self, row: usize, col: usize) -> usize {
        let rows = self.rows.saturating_sub(1).wrapping_mul(row);
        let cols = self.cols.saturating_sub(1).wrapping_mul(col);
        rows.wrapping_add(cols).wrapping_add(self.len)
    }
}

/// Elements that are multiplied with weights.
pub(crate) trait Factor: super::Element {
    /// The weights' elements.
    type Weight: super::Element;
    /// What sums are kept in.
    type Sum: Copy;

    /// Adds to four sums the products of runs of `len` elements, plus `offset`, and of the weights of as many channels,
    /// which are `stride` apart.
    ///
    /// # Safety
    /// All of the runs can be read, with the weights of each of the four channels.
    unsafe fn dot4(
        runs: &Runs<'_, Self>,
        stride: usize,
        len: usize,
        offset: i32,
        sums: &mut [Self::Sum; 4],
    );

    /// As [`dot4`](Self::dot4), of one run and the weights of one channel.
    ///
    /// # Safety
    /// `input` and `weights` can be read.
    unsafe fn dot(
        input: *const Self,
        weights: *const Self::Weight,
        len: usize,
        offset: i32,
        sum: &mut Self::Sum,
    );

    /// `sum` with `(input + offset) * weight` added.
    fn product(input: Self, weight: Self::Weight, offset: i32, sum: Self::Sum) -> Self::Sum;

    /// Adds to [`LANES`] sums the products of as many channels in a row, of the weights and, unless `spread`, of the
    /// input.
    ///
    /// # Safety
    /// All of the window's runs can be read, with [`LANES`] elements each, or with one of the input if `spread`.
    #[inline(always)]
    unsafe fn taps(
        window: &Runs<'_, Self>,
        (offset, spread): (i32, bool),
        sums: &mut [Self::Sum; LANES],
    ) {
        // SAFETY: as of this function.
        unsafe { some_taps(window, (offset, spread, LANES), sums) }
    }
}

/// How many channels of DEPTHWISE_CONV_2D are computed at a time: what fits the registers.
pub(crate) const LANES: usize = if cfg!(target_pointer_width = "32") {
    4
} else {
    16
};

/// As [`Factor::taps`], of the first `count` sums.
///
/// # Safety
/// As [`Factor::taps`], with `count` elements.
#[inline(always)]
unsafe fn some_taps<T: Factor>(
    window: &Runs<'_, T>,
    (offset, spread, count): (i32, bool, usize),
    sums: &mut [T::Sum; LANES],
) {
    window.each(|x, w| {
        for (k, sum) in sums.iter_mut().take(count).enumerate() {
            // SAFETY: within what this function was given.
            *sum = unsafe {
                let x = if spread { x } else { x.add(k) };
                T::product(x.read(), w.add(k).read(), offset, *sum)
            };
        }
    });
}

/// Where runs of the input and of weights start: with more than one of them in a row where there is more than one.
#[derive(Clone, Copy)]
pub(crate) struct Runs<'f, T: Factor> {
    input: *const T,
    weights: *const T::Weight,
    rows: usize,
    cols: usize,
    steps: Steps,
    of: PhantomData<View<'f, T>>,
}

impl<T: Factor> Runs<'_, T> {
    /// Calls `visit` with the start of each run.
    #[inline(always)]
    fn each(&self, mut visit: impl FnMut(*const T, *const T::Weight)) {
        self.each_row(|mut x, mut w| {
            for _ in 0..self.cols {
                visit(x, w);
                x = x.wrapping_add(self.steps.input_col);
                w = w.wrapping_add(self.steps.weight_col);
            }
        });
    }

    /// Calls `visit` with the start of each row.
    #[inline(always)]
    fn each_row(&self, mut visit: impl FnMut(*const T, *const T::Weight)) {
        let (mut x, mut w, mut rows) = (self.input, self.weights, self.rows);
        while rows != 0 {
            visit(x, w);
            rows -= 1;
            x = x.wrapping_add(self.steps.input_row);
            w = w.wrapping_add(self.steps.weight_row);
        }
    }
}

/// An input and weights, of which windows are taken; all but their places is checked once.
#[derive(Default)]
pub(crate) struct Field<'a, T: Factor> {
    input: View<'a, T>,
    weights: View<'a, T::Weight>,
    steps: Steps,
    most: Extent,
    /// Output channels with weights of their own, `stride` apart.
    channels: usize,
    stride: usize,
    /// Elements that the weights of a channel have, if the last one has no more.
    room: usize,
}

impl<'a, T: Factor> Field<'a, T> {
    /// Sets all of it, in place, since stacks are small. Windows have no more rows, columns and elements in a run than `most`.
    /// The weights of each of `channels` output channels are `stride` apart.
    #[inline(always)]
    pub(crate) fn set(
        &mut self,
        (input, weights): (View<'a, T>, View<'a, T::Weight>),
        (channels, stride): (usize, usize),
        most: Extent,
        steps: Steps,
    ) -> Option<()> {
        (self.input, self.weights) = (input, weights);
        (self.most, self.steps) = (most, steps);
        (self.channels, self.stride) = (channels, stride);
        let found = self.room();
        // Without room for a window there are none.
        (self.room, self.channels) = (found.unwrap_or(0), found.map_or(0, |_| channels));
        if found.is_none() {
            (self.input, self.weights) = (View::default(), View::default());
        }
        found.map(|_| ())
    }

    #[inline(never)]
    fn room(&self) -> Option<usize> {
        let Self { most, steps, .. } = self;
        most.end(steps.input_row, steps.input_col)?;
        most.end(steps.weight_row, steps.weight_col)?;
        let last = self.channels.checked_sub(1)?.checked_mul(self.stride)?;
        self.weights.len.checked_sub(last)
    }

    /// How far apart runs are.
    #[inline(always)]
    pub(crate) fn steps(&self) -> &Steps {
        &self.steps
    }

    /// The runs of a window: `start` of the input on, and `first` of each channel's weights; `len` elements of the input and
    /// `extent.len` of the weights.
    #[inline(always)]
    fn runs(
        &self,
        (start, len): (usize, usize),
        first: usize,
        extent: Extent,
    ) -> Option<Runs<'_, T>> {
        let Extent {
            mut rows, mut cols, ..
        } = extent;
        if rows == 0 || cols == 0 {
            rows = 0;
        } else {
            let most = &self.most;
            if rows > most.rows || cols > most.cols || extent.len > most.len || len > most.len {
                return None;
            }
            let of_input = Extent { len, ..extent };
            let input = of_input.span(self.steps.input_row, self.steps.input_col);
            if start > self.input.len || input > self.input.len - start {
                return None;
            }
            let weights = extent.span(self.steps.weight_row, self.steps.weight_col);
            if first > self.room || weights > self.room - first {
                return None;
            }
        }
        let mut steps = self.steps;
        if cols == 1 {
            // A column is a row, with other steps.
            (steps.input_col, steps.weight_col) = (steps.input_row, steps.weight_row);
            (rows, cols) = (rows.min(1), rows);
        }
        Some(Runs {
            input: self.input.start.as_ptr().wrapping_add(start),
            weights: self.weights.start.as_ptr().wrapping_add(first),
            rows,
            cols,
            steps,
            of: PhantomData,
        })
    }

    /// The window from `start` of the input and `first` of each channel's weights on. One without rows or columns is right
    /// anywhere: it stands for sums of nothing.
    #[inline(always)]
    pub(crate) fn window(
        &self,
        start: usize,
        first: usize,
        extent: Extent,
    ) -> Option<Window<'_, T>> {
        Some(Window {
            runs: self.runs((start, extent.len), first, extent)?,
            len: extent.len,
            channels: self.channels,
            stride: self.stride,
        })
    }

    /// As [`window`](Self::window), with weights of their own for each element of a run: DEPTHWISE_CONV_2D. Runs of the
    /// input have `depth` elements, and those of the weights as many times `multiplier`.
    #[inline(always)]
    pub(crate) fn taps(
        &self,
        start: usize,
        first: usize,
        (rows, cols): (usize, usize),
        (depth, multiplier): (usize, usize),
    ) -> Option<Taps<'_, T>> {
        let len = depth.checked_mul(multiplier)?;
        Some(Taps {
            runs: self.runs((start, depth), first, Extent { rows, cols, len })?,
            depth,
            len,
            lanes: if multiplier == 1 { len } else { multiplier },
            spread: multiplier != 1,
        })
    }
}

/// A window of the input, and the weights of each output channel.
pub(crate) struct Window<'f, T: Factor> {
    runs: Runs<'f, T>,
    len: usize,
    channels: usize,
    stride: usize,
}

impl<T: Factor> Window<'_, T> {
    /// The runs with the weights of the `count` channels from `channel` on, if there are such.
    #[inline(always)]
    fn of(&self, channel: usize, count: usize) -> Option<Runs<'_, T>> {
        if channel >= self.channels || count > self.channels - channel {
            return None;
        }
        let weights = channel.wrapping_mul(self.stride);
        Some(Runs {
            weights: self.runs.weights.wrapping_add(weights),
            ..self.runs
        })
    }

    /// Adds the products of the four channels from `channel` on.
    #[inline(always)]
    pub(crate) fn add4(&self, channel: usize, offset: i32, sums: &mut [T::Sum; 4]) {
        if let Some(runs) = self.of(channel, 4) {
            let (stride, len) = (self.stride, self.len);
            // SAFETY: `Field::runs` found that all runs lie within the views, those of the last channel's weights as well,
            // and the channels are some of them.
            unsafe { T::dot4(&runs, stride, len, offset, sums) };
        }
    }

    /// Adds the products of one channel.
    #[inline(never)]
    pub(crate) fn add(&self, channel: usize, offset: i32, sum: &mut T::Sum) {
        if let Some(runs) = self.of(channel, 1) {
            // SAFETY: as in `add4`.
            runs.each(|x, w| unsafe { T::dot(x, w, self.len, offset, sum) });
        }
    }
}

/// A window of which each channel is multiplied with weights of its own: DEPTHWISE_CONV_2D.
pub(crate) struct Taps<'f, T: Factor> {
    runs: Runs<'f, T>,
    depth: usize,
    len: usize,
    /// How many output channels, from a multiple of it on, are computed from one input channel, or from one each.
    lanes: usize,
    spread: bool,
}

impl<T: Factor> Taps<'_, T> {
    /// Adds to the first of the sums the products of the `count` output channels from the one `lane` of those of
    /// `input_channel` on. They belong to one input channel, or each to its own when there is one for each; `count` is at
    /// most [`LANES`].
    #[inline(always)]
    pub(crate) fn add(
        &self,
        (input_channel, lane): (usize, usize),
        count: usize,
        offset: i32,
        sums: &mut [T::Sum; LANES],
    ) {
        if input_channel >= self.depth || lane >= self.lanes || count > self.lanes - lane {
            return;
        }
        // Below the number of output channels.
        let channel = input_channel.wrapping_mul(self.lanes).wrapping_add(lane);
        let input_channel = if self.spread { input_channel } else { channel };
        if count > self.len.saturating_sub(channel) || input_channel >= self.depth {
            return;
        }
        let runs = Runs {
            input: self.runs.input.wrapping_add(input_channel),
            weights: self.runs.weights.wrapping_add(channel),
            ..self.runs
        };
        // SAFETY: `Field::runs` found that all runs lie within the views, of each channel; an input channel is below their
        // number, since the output channel is.
        unsafe {
            if count == LANES {
                T::taps(&runs, (offset, self.spread), sums);
            } else {
                some_taps(&runs, (offset, self.spread, count), sums);
            }
        }
    }
}

/// Copies a window of `input` from `start` on to where its weights are, `first` and on, and writes `padding` elsewhere.
#[inline(never)]
pub(crate) fn copy<T: Factor>(
    (input, mut start): (View<'_, T>, usize),
    (extent, steps): (Extent, &Steps),
    (to, mut first): (ViewMut<'_, T>, usize),
    padding: T,
) -> Option<()> {
    if extent
        .rows
        .wrapping_mul(extent.cols)
        .wrapping_mul(extent.len)
        != to.len
    {
        to.fill(padding);
    }
    for _ in 0..extent.rows {
        let (mut x, mut w) = (start, first);
        for _ in 0..extent.cols {
            let (from, to) = (input.part(x, extent.len)?, to.part(w, extent.len)?);
            // Few elements, for which a call would take longer.
            let (from, to) = (from.start, to.start);
            let mut k = 0;
            // SAFETY: both parts have that many elements.
            unsafe {
                if size_of::<T>() == 1 {
                    while extent.len - k >= 4 {
                        let four = from.add(k).cast::<u32>().read_unaligned();
                        to.add(k).cast::<u32>().write_unaligned(four);
                        k += 4;
                    }
                }
                while k < extent.len {
                    to.add(k).write(from.add(k).read());
                    k += 1;
                }
            }
            x = x.wrapping_add(steps.input_col);
            w = w.wrapping_add(steps.weight_col);
        }
        start = start.wrapping_add(steps.input_row);
        first = first.wrapping_add(steps.weight_row);
    }
    Some(())
}

macro_rules! plain_dots {
    () => {
        #[inline(always)]
        unsafe fn dot4(
            runs: &Runs<'_, Self>,
            stride: usize,
            len: usize,
            offset: i32,
            sums: &mut [Self::Sum; 4],
        ) {
            let [mut a, mut b, mut c, mut d] = *sums;
            runs.each(|input, w0| {
                let w1 = w0.wrapping_add(stride);
                let (w2, w3) = (w1.wrapping_add(stride), w1.wrapping_add(2 * stride));
                for k in 0..len {
                    // SAFETY: as of this function.
                    unsafe {
                        let x = input.add(k).read();
                        a = Self::product(x, w0.add(k).read(), offset, a);
                        b = Self::product(x, w1.add(k).read(), offset, b);
                        c = Self::product(x, w2.add(k).read(), offset, c);
                        d = Self::product(x, w3.add(k).read(), offset, d);
                    }
                }
            });
            *sums = [a, b, c, d];
        }

        #[inline(always)]
        unsafe fn dot(
            input: *const Self,
            weights: *const Self::Weight,
            len: usize,
            offset: i32,
            sum: &mut Self::Sum,
        ) {
            for k in 0..len {
                // SAFETY: as of this function.
                *sum = unsafe {
                    Self::product(input.add(k).read(), weights.add(k).read(), offset, *sum)
                };
            }
        }
    };
}

impl Factor for f32 {
    type Weight = f32;
    type Sum = f32;

    #[inline(always)]
    fn product(input: f32, weight: f32, _: i32, sum: f32) -> f32 {
        sum + input * weight
    }

    plain_dots!();
}

impl Factor for i16 {
    type Weight = i8;
    type Sum = i64;

    #[inline(always)]
    fn product(input: i16, weight: i8, offset: i32, sum: i64) -> i64 {
        // 8 times 17 bits.
        let x = i32::from(input).wrapping_add(offset);
        sum.wrapping_add(i64::from(x.wrapping_mul(i32::from(weight))))
    }

    plain_dots!();
}

impl Factor for i8 {
    type Weight = i8;
    type Sum = i32;

    #[inline(always)]
    fn product(input: i8, weight: i8, offset: i32, sum: i32) -> i32 {
        // With an offset of 8 bits, this fits 16 bits, which is what vector instructions multiply.
        let x = i16::from(input).wrapping_add(offset as i16);
        sum.wrapping_add(i32::from(x) * i32::from(weight))
    }

    #[cfg(not(arm_dsp))]
    plain_dots!();

    #[cfg(arm_dsp)]
    #[inline(always)]
    unsafe fn dot4(
        runs: &Runs<'_, i8>,
        stride: usize,
        len: usize,
        offset: i32,
        sums: &mut [i32; 4],
    ) {
        // SAFETY: as of this function.
        unsafe { dsp::dot4(runs, stride, len, offset, sums) }
    }

    #[cfg(arm_dsp)]
    #[inline(always)]
    unsafe fn dot(input: *const i8, weights: *const i8, len: usize, offset: i32, sum: &mut i32) {
        // SAFETY: as of this function.
        unsafe { dsp::dot(input, weights, len, offset, sum) }
    }

    #[cfg(arm_dsp)]
    #[inline(always)]
    unsafe fn taps(window: &Runs<'_, i8>, (offset, spread): (i32, bool), sums: &mut [i32; LANES]) {
        // SAFETY: as of this function.
        unsafe { dsp::taps(window, (offset, spread), sums) }
    }
}
