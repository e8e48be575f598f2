//! How sums of int8 and int16 kernels become outputs.

use crate::error::Fault;
use crate::fixed::{self, Multiplier};
use crate::memory::{View, ViewMut};
use crate::schema::view::Vector;

use super::Operands;

/// The factor from sums to outputs, the outputs' zero point and range.
pub(super) struct Scale<'a> {
    factors: Factors<'a>,
    zero_point: i32,
    least: i32,
    largest: i32,
}

/// A factor for all output channels, or one for each.
enum Factors<'a> {
    All(Multiplier),
    /// Worked out before, in scratch memory.
    Table(View<'a, u64>),
    /// Worked out when they are needed.
    Scales {
        input: f32,
        filter: Vector<'a, f32>,
        output: f32,
    },
}

/// Bytes of scratch memory that hold the factor of a channel.
pub(super) const FACTOR_BYTES: usize = 8;

impl<'a> Scale<'a> {
    /// With the factor `input scale * filter scale / output scale` of each channel
    /// (`PopulateConvolutionQuantizationParams` of TFLM's `kernel_util.cc`); filters are quantized as a whole or along
    /// `axis`. `table` is memory for the factors; where it is empty, they are worked out for each output.
    pub(super) fn of(
        operands: &Operands<'a>,
        (channels, axis): (usize, i32),
        table: Option<ViewMut<'a, u64>>,
        (activation, slot): (i8, u8),
    ) -> Result<Self, Fault> {
        let filter = operands.filter.scales();
        let fault = Fault::Quantization(operands.filter.operand());
        if filter.len() > 1 {
            let quantization = operands.filter.table().quantization()?.ok_or(fault)?;
            if filter.len() != channels || quantization.quantized_dimension()? != axis {
                return Err(fault);
            }
        }
        let (input, output) = (operands.input.scale()?, operands.output.scale()?);
        let factors = match (filter.len(), table) {
            (0, _) => return Err(fault),
            (1, _) => Factors::All(Multiplier::of_scales(
                input,
                operands.filter.scale()?,
                output,
            )),
            (_, Some(table)) if table.len() >= channels => {
                for (channel, filter) in filter.into_iter().enumerate() {
                    table.set(channel, pack(Multiplier::of_scales(input, filter, output)));
                }
                Factors::Table(table.view())
            }
            _ => Factors::Scales {
                input,
                filter,
                output,
            },
        };
        Self::with(operands, factors, (activation, slot))
    }

    /// With one factor.
    pub(super) fn with_factor(
        operands: &Operands<'a>,
        factor: Multiplier,
        activation: (i8, u8),
    ) -> Result<Self, Fault> {
        Self::with(operands, Factors::All(factor), activation)
    }

    fn with(
        operands: &Operands<'a>,
        factors: Factors<'a>,
        (activation, slot): (i8, u8),
    ) -> Result<Self, Fault> {
        let (least, largest) = fixed::activation_range(&operands.output, activation, slot)?;
        Ok(Self {
            factors,
            zero_point: operands.output.zero_point(),
            least,
            largest,
        })
    }

    /// Whether a table of factors is of use.
    pub(super) fn needs_table(operands: &Operands<'_>) -> bool {
        operands.filter.scales().len() > 1
    }

    #[inline(always)]
    fn factor(&self, channel: usize) -> Multiplier {
        match &self.factors {
            Factors::All(factor) => *factor,
            Factors::Table(table) => unpack(table.get(channel)),
            Factors::Scales {
                input,
                filter,
                output,
            } => Multiplier::of_scales(*input, filter.get(channel).unwrap_or_default(), *output),
        }
    }

    /// The output of a sum of 32 bits.
    #[inline(always)]
    pub(super) fn narrow(&self, channel: usize, sum: i32) -> i32 {
        self.output(scaled(self.factor(channel), sum))
    }

    /// The output of a sum of 64 bits.
    #[inline(always)]
    pub(super) fn wide(&self, channel: usize, sum: i64) -> i32 {
        self.output(self.factor(channel).apply_wide(sum))
    }

    #[inline(always)]
    fn output(&self, scaled: i32) -> i32 {
        let shifted = scaled.wrapping_add(self.zero_point);
        fixed::clamp(shifted, self.least, self.largest)
    }
}

#[inline(always)]
fn pack(factor: Multiplier) -> u64 {
    u64::from(factor.multiplier as u32) << 32 | u64::from(factor.shift as u32)
}

#[inline(always)]
fn unpack(word: u64) -> Multiplier {
    Multiplier {
        multiplier: (word >> 32) as i32,
        shift: word as i32,
    }
}

/// [`Multiplier::apply`], with few instructions for a shift to the right, which is the rule.
#[inline(always)]
fn scaled(factor: Multiplier, sum: i32) -> i32 {
    let below = (-1i32).wrapping_sub(factor.shift) as u32;
    if below > 30 {
        return unusual(factor, sum);
    }
    // Half up.
    let product = i64::from(sum) * i64::from(factor.multiplier) + (1 << 30);
    let high = (product >> 31) as i32;
    // Half away from zero, `shift` being 1 + `below`.
    (high
        .wrapping_add(high >> 31)
        .wrapping_shr(below)
        .wrapping_add(1))
        >> 1
}

#[cold]
#[inline(never)]
fn unusual(factor: Multiplier, sum: i32) -> i32 {
    factor.apply(sum)
}
