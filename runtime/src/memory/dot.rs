//! Sums of products over windows of memory: what convolutions and FULLY_CONNECTED spend their time on.
//!
//! A window is checked once, when it is made; after that, sums are computed from addresses. Nothing is written while they
//! are, but local variables.

use core::marker::PhantomData;

#[cfg(arm_dsp)]
#[path = "dsp.rs"]
mod dsp;

use super::View;

/// Which elements of an input and of weights are multiplied: `rows` times `cols` runs of `len` elements in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) len: usize,
    /// From a row of the input to the next one.
    pub(crate) input_row: usize,
    /// From a run of the input to the next one in its row.
    pub(crate) input_col: usize,
    pub(crate) weight_row: usize,
    pub(crate) weight_col: usize,
}

impl Reach {
    fn end(&self, row: usize, col: usize) -> Option<usize> {
        let rows = self.rows.checked_sub(1)?.checked_mul(row)?;
        let cols = self.cols.checked_sub(1)?.checked_mul(col)?;
        rows.checked_add(cols)?.checked_add(self.len)
    }
}

/// Elements that are multiplied with weights.
pub(crate) trait Factor: super::Element {
    /// The weights' elements.
    type Weight: super::Element;
    /// What sums are kept in.
    type Sum: Copy;

    /// Adds to four sums `len` products of `input` plus `offset` with as many weights, which are `stride` apart.
    ///
    /// # Safety
    /// `input` and each of the four rows of weights can be read.
    unsafe fn dot4(
        input: *const Self,
        weights: *const Self::Weight,
        stride: usize,
        len: usize,
        offset: i32,
        sums: &mut [Self::Sum; 4],
    );

    /// As [`dot4`](Self::dot4), of one row of weights.
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
    /// All that `reach` says can be read, with [`LANES`] elements for its length.
    #[inline(always)]
    unsafe fn taps(
        input: *const Self,
        weights: *const Self::Weight,
        reach: &Reach,
        (offset, spread): (i32, bool),
        sums: &mut [Self::Sum; LANES],
    ) {
        // SAFETY: as of this function.
        unsafe { some_taps(input, weights, reach, (offset, spread, LANES), sums) }
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
/// All that `reach` says can be read, with `count` elements for its length.
#[inline(always)]
unsafe fn some_taps<T: Factor>(
    mut input: *const T,
    mut weights: *const T::Weight,
    reach: &Reach,
    (offset, spread, count): (i32, bool, usize),
    sums: &mut [T::Sum; LANES],
) {
    for _ in 0..reach.rows {
        let (mut x, mut w) = (input, weights);
        for _ in 0..reach.cols {
            for (k, sum) in sums.iter_mut().take(count).enumerate() {
                // SAFETY: within what this function was given.
                *sum = unsafe {
                    let x = if spread { x } else { x.add(k) };
                    T::product(x.read(), w.add(k).read(), offset, *sum)
                };
            }
            x = x.wrapping_add(reach.input_col);
            w = w.wrapping_add(reach.weight_col);
        }
        input = input.wrapping_add(reach.input_row);
        weights = weights.wrapping_add(reach.weight_row);
    }
}

/// A window of the input, and the weights of each output channel.
pub(crate) struct Window<'a, T: Factor> {
    input: *const T,
    weights: *const T::Weight,
    stride: usize,
    channels: usize,
    reach: Reach,
    of: PhantomData<View<'a, T>>,
}

impl<'a, T: Factor> Window<'a, T> {
    /// What `reach` says of `input` from `start` on, and of the weights of `channels` output channels, which are `stride`
    /// apart, from `first` on in each. A reach without rows, columns or elements stands for sums of nothing.
    #[inline(always)]
    pub(crate) fn new(
        (input, start): (View<'a, T>, usize),
        (weights, first): (View<'a, T::Weight>, usize),
        (channels, stride): (usize, usize),
        mut reach: Reach,
    ) -> Option<Self> {
        if reach.rows == 0 || reach.cols == 0 || channels == 0 {
            reach.rows = 0;
        } else {
            let end = reach.end(reach.input_row, reach.input_col)?;
            if end.checked_add(start)? > input.len {
                return None;
            }
            let end = reach.end(reach.weight_row, reach.weight_col)?;
            let last = (channels - 1).checked_mul(stride)?;
            if end.checked_add(first)?.checked_add(last)? > weights.len {
                return None;
            }
        }
        Some(Self {
            input: input.start.as_ptr().wrapping_add(start),
            weights: weights.start.as_ptr().wrapping_add(first),
            stride,
            channels,
            reach,
            of: PhantomData,
        })
    }

    /// Adds the products of the `count` channels from `channel` on to the first of the sums; `count` is at most 4.
    #[inline(always)]
    pub(crate) fn add(&self, channel: usize, count: usize, offset: i32, sums: &mut [T::Sum; 4]) {
        let Reach {
            rows, cols, len, ..
        } = self.reach;
        if channel >= self.channels || count > self.channels - channel {
            return;
        }
        let mut weights = self.weights.wrapping_add(channel * self.stride);
        let mut input = self.input;
        for _ in 0..rows {
            let (mut x, mut w) = (input, weights);
            for _ in 0..cols {
                // SAFETY: `new` found that all rows and columns lie within the views for each channel, and the channels
                // are below the number that it was given.
                unsafe {
                    if count == 4 {
                        T::dot4(x, w, self.stride, len, offset, sums);
                    } else {
                        for (k, sum) in sums.iter_mut().take(count).enumerate() {
                            T::dot(x, w.wrapping_add(k * self.stride), len, offset, sum);
                        }
                    }
                }
                x = x.wrapping_add(self.reach.input_col);
                w = w.wrapping_add(self.reach.weight_col);
            }
            input = input.wrapping_add(self.reach.input_row);
            weights = weights.wrapping_add(self.reach.weight_row);
        }
    }
}

/// A window of which each channel is multiplied with weights of its own: DEPTHWISE_CONV_2D.
///
/// `reach.len` is the number of output channels; the weights of one are as far apart as the runs of the input.
pub(crate) struct Taps<'a, T: Factor> {
    input: *const T,
    weights: *const T::Weight,
    /// Output channels for each input channel, at least 1.
    multiplier: usize,
    reach: Reach,
    of: PhantomData<View<'a, T>>,
}

impl<'a, T: Factor> Taps<'a, T> {
    /// What `reach` says of `input` from `start` on, whose runs have `depth` elements, and of `weights` from `first` on.
    #[inline(always)]
    pub(crate) fn new(
        (input, start): (View<'a, T>, usize),
        (weights, first): (View<'a, T::Weight>, usize),
        (depth, multiplier): (usize, usize),
        mut reach: Reach,
    ) -> Option<Self> {
        if depth.checked_mul(multiplier)? != reach.len || multiplier == 0 {
            return None;
        }
        if reach.rows == 0 || reach.cols == 0 {
            reach.rows = 0;
        } else {
            let of_input = Reach {
                len: depth,
                ..reach
            };
            let end = of_input.end(reach.input_row, reach.input_col)?;
            if end.checked_add(start)? > input.len {
                return None;
            }
            let end = reach.end(reach.weight_row, reach.weight_col)?;
            if end.checked_add(first)? > weights.len {
                return None;
            }
        }
        Some(Self {
            input: input.start.as_ptr().wrapping_add(start),
            weights: weights.start.as_ptr().wrapping_add(first),
            multiplier,
            reach,
            of: PhantomData,
        })
    }
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
        let spread = self.multiplier != 1;
        let channel = input_channel
            .wrapping_mul(self.multiplier)
            .wrapping_add(lane);
        let len = self.reach.len;
        let lanes = if spread { self.multiplier } else { len };
        if input_channel >= len || channel >= len || count > len - channel || lane + count > lanes {
            return;
        }
        let input_channel = if spread { input_channel } else { channel };
        let input = self.input.wrapping_add(input_channel);
        let weights = self.weights.wrapping_add(channel);
        // SAFETY: `new` found that all rows and columns lie within the views, for each channel.
        unsafe {
            if count == LANES {
                T::taps(input, weights, &self.reach, (offset, spread), sums);
            } else {
                let how = (offset, spread, count);
                some_taps(input, weights, &self.reach, how, sums);
            }
        }
    }
}

macro_rules! plain_dots {
    () => {
        #[inline(always)]
        unsafe fn dot4(
            input: *const Self,
            weights: *const Self::Weight,
            stride: usize,
            len: usize,
            offset: i32,
            sums: &mut [Self::Sum; 4],
        ) {
            let [mut a, mut b, mut c, mut d] = *sums;
            let (w0, w1) = (weights, weights.wrapping_add(stride));
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
        input: *const i8,
        weights: *const i8,
        stride: usize,
        len: usize,
        offset: i32,
        sums: &mut [i32; 4],
    ) {
        // SAFETY: as of this function.
        unsafe { dsp::dot4(input, weights, stride, len, offset, sums) }
    }

    #[cfg(arm_dsp)]
    #[inline(always)]
    unsafe fn dot(input: *const i8, weights: *const i8, len: usize, offset: i32, sum: &mut i32) {
        // SAFETY: as of this function.
        unsafe { dsp::dot(input, weights, len, offset, sum) }
    }

    #[cfg(arm_dsp)]
    #[inline(always)]
    unsafe fn taps(
        input: *const i8,
        weights: *const i8,
        reach: &Reach,
        (offset, spread): (i32, bool),
        sums: &mut [i32; LANES],
    ) {
        // SAFETY: as of this function.
        unsafe { dsp::taps(input, weights, reach, (offset, spread), sums) }
    }
}
