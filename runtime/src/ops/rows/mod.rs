//! Operators that go over windows, rows or whole tensors: pooling, reductions, normalisations, recurrent networks.

mod pooling;

pub use pooling::*;

use crate::kernel::Kernel;
use crate::memory::Element;

pub(super) const KERNELS: &[Kernel] = &[AVERAGE_POOL_2D, L2_POOL_2D, MAX_POOL_2D];

/// A number that kernels compute with.
trait Number: Element + PartialOrd {
    /// The sum of many, or of products of two: wraps where the reference does.
    type Sum: Copy + Default;
    /// The least number.
    const LEAST: Self;

    fn add(sum: Self::Sum, x: Self) -> Self::Sum;
}

macro_rules! numbers {
    ($($type:ty: $sum:ty, $least:expr, |$a:ident, $b:ident| $add:expr;)*) => {$(
        impl Number for $type {
            type Sum = $sum;
            const LEAST: Self = $least;

            #[inline(always)]
            fn add($a: $sum, x: Self) -> $sum {
                let $b = <$sum>::from(x);
                $add
            }
        }
    )*};
}

numbers! {
    i8: i32, i8::MIN, |a, b| a.wrapping_add(b);
    i16: i32, i16::MIN, |a, b| a.wrapping_add(b);
    f32: f32, f32::MIN, |a, b| a + b;
}
