//! From real numbers to the integers that stand for them, and back.

use crate::fixed::clamp;
use crate::memory::Element;

/// An integer that stands for a real number, `scale * (integer - zero_point)`.
pub trait Quantized: Element + Into<i32> {
    /// The least integer.
    const LEAST: i32;
    /// The largest integer.
    const LARGEST: i32;

    /// The low bits.
    #[doc(hidden)]
    fn truncated(x: i32) -> Self;

    /// The nearest integer that there is.
    #[doc(hidden)]
    #[inline(always)]
    fn saturated(x: i32) -> Self {
        Self::truncated(clamp(x, Self::LEAST, Self::LARGEST))
    }
}

macro_rules! quantized {
    ($($type:ident)*) => {$(
        impl Quantized for $type {
            const LEAST: i32 = $type::MIN as i32;
            const LARGEST: i32 = $type::MAX as i32;

            #[inline(always)]
            fn truncated(x: i32) -> Self {
                x as $type
            }
        }
    )*};
}

quantized!(i8 u8 i16);

/// The nearest integer, half away from zero; 0 of what is not a number.
#[inline(always)]
fn round(x: f32) -> i32 {
    // The float below one half: one half itself would take the one below to 1.
    (x + 0.499_999_97_f32.copysign(x)) as i32
}

/// The integer that stands for `real`, or the nearest that there is, as `QUANTIZE` computes it.
///
/// ```
/// assert_eq!(arenaplan_runtime::quantize::<i8>(0.5, 0.25, -10), -8);
/// assert_eq!(arenaplan_runtime::quantize::<i8>(1e9, 0.25, -10), 127);
/// ```
#[inline]
pub fn quantize<T: Quantized>(real: f32, scale: f32, zero_point: i32) -> T {
    T::saturated(round(real / scale).saturating_add(zero_point))
}

/// The real number that `integer` stands for, as `DEQUANTIZE` computes it.
///
/// ```
/// assert_eq!(arenaplan_runtime::dequantize(-8i8, 0.25, -10), 0.5);
/// ```
#[inline]
pub fn dequantize<T: Quantized>(integer: T, scale: f32, zero_point: i32) -> f32 {
    // TFLM multiplies doubles, which is exact, and rounds then: the same.
    scale * integer.into().wrapping_sub(zero_point) as f32
}
