//! How sums of int8 and int16 kernels become outputs.

use crate::error::{Fault, Operand};
use crate::fixed::{self, Multiplier};
use crate::memory::ViewMut;
use crate::memory::columns::{Columns, bytes_of_rows, set_row};
use crate::node::{Node, Tensor};
use crate::prepared::{Table, Turned, row};
use crate::schema::view::Vector;
use crate::types::Type;

use super::found;

/// The factor from sums to outputs, the outputs' zero point and range.
#[derive(Default)]
pub(super) struct Scale<'a> {
    factors: Factors<'a>,
    zero_point: i32,
    least: i32,
    largest: i32,
}

/// A factor for all output channels, or one for each.
enum Factors<'a> {
    All(Multiplier),
    /// Worked out before, in scratch memory or by the host.
    Table(Table<'a>),
    /// Worked out when they are needed.
    Scales {
        input: f32,
        filter: Vector<'a, f32>,
        output: f32,
    },
}

/// Bytes of scratch memory for the factors of the channels: none where there is one factor, or one output of each channel,
/// whose factors are worked out when they are needed.
pub(super) fn scratch(node: &Node<'_>) -> Result<usize, Fault> {
    if scales_of_filter(node)? <= 1 {
        return Ok(0);
    }
    let output = node.output(0);
    let output = found(&output)?.shape();
    let rows = output.product(0, output.rank().saturating_sub(1));
    match rows {
        Some(1) => Ok(0),
        _ => bytes_of_rows(output.dim_from_end(0)).ok_or(Fault::Scratch),
    }
}

/// Factors that may be prepared: those of an operator of integers whose filter has a scale for each output channel.
pub(crate) mod factors {
    use super::*;
    use crate::kernel::Code;

    /// The operators whose kernels here have them.
    pub(crate) const CODES: [Code; 3] = [
        Code::CONV_2D,
        Code::DEPTHWISE_CONV_2D,
        Code::FULLY_CONNECTED,
    ];

    /// How many there are, with what they are made of.
    fn of<'a>(node: &Node<'a>) -> Result<(usize, Scale<'a>), Fault> {
        let filter = node.input(1);
        let filter = found(&filter)?;
        let scales = filter.scales();
        let mut scale = Scale::default();
        if scales.len() <= 1 || filter.element_type() == Type::FLOAT32 {
            return Ok((0, scale));
        }
        scale.factors = Factors::Scales {
            input: scale_of(node, Operand::Input(0))?,
            filter: scales,
            output: scale_of(node, Operand::Output(0))?,
        };
        Ok((scales.len(), scale))
    }

    /// Shows them by channel, and returns how many they are.
    pub(crate) fn each(
        node: &Node<'_>,
        show: &mut dyn FnMut(usize, Multiplier),
    ) -> Result<usize, Fault> {
        let (len, scale) = of(node)?;
        for channel in 0..len {
            show(channel, scale.worked_out(channel));
        }
        Ok(len)
    }

    /// Whether they are those of a table with `len` channels.
    #[inline(never)]
    pub(crate) fn equal(node: &Node<'_>, table: Table<'_>, len: usize) -> Result<bool, Fault> {
        let (found, scale) = of(node)?;
        let mut channels = 0..len;
        Ok(found == len
            && channels
                .all(|channel| Turned::from(scale.worked_out(channel)) == table.get(channel)))
    }
}

/// How many scales the filter has.
#[inline(never)]
pub(super) fn scales_of_filter(node: &Node<'_>) -> Result<usize, Fault> {
    Ok(found(&node.input(1))?.scales().len())
}

impl Default for Factors<'_> {
    fn default() -> Self {
        Self::All(Multiplier::default())
    }
}

// Functions of their own, whose tensors are off the stack when they return.

/// The scale of an input, or of the output.
#[inline(never)]
fn scale_of(node: &Node<'_>, operand: Operand) -> Result<f32, Fault> {
    let tensor = match operand {
        Operand::Input(index) => node.input(usize::from(index)),
        Operand::Output(_) => node.output(0),
    };
    found(&tensor)?.scale()
}

/// The scale of the bias, 0 if it has none; `None` if there is no bias.
#[inline(never)]
fn bias_scale(node: &Node<'_>) -> Result<Option<f32>, Fault> {
    if !node.has_input(2) {
        return Ok(None);
    }
    let bias = node.input(2);
    Ok(Some(found(&bias)?.scales().get(0).unwrap_or_default()))
}

/// The scales of the filter: one, or one for each output channel along `axis`.
#[inline(never)]
fn filter_scales<'a>(
    node: &Node<'a>,
    channels: usize,
    axis: i32,
) -> Result<Vector<'a, f32>, Fault> {
    let filter = node.input(1);
    let filter = found(&filter)?;
    let scales = filter.scales();
    match scales.len() {
        1 => Ok(scales),
        len if len == channels && len != 0 && axis_of(filter)? == axis => Ok(scales),
        _ => Err(Fault::Quantization(filter.operand())),
    }
}

/// The dimension that a tensor is quantized along.
#[inline(never)]
fn axis_of(tensor: &Tensor<'_>) -> Result<i32, Fault> {
    match tensor.table().quantization()? {
        Some(quantization) => Ok(quantization.quantized_dimension()?),
        None => Ok(0),
    }
}

impl<'a> Scale<'a> {
    /// With the factor `input scale * filter scale / output scale` of each channel
    /// (`PopulateConvolutionQuantizationParams` of TFLM's `kernel_util.cc`); the filter is quantized as a whole or along
    /// `axis`. Each channel has so many `outputs`; `None` are too many to count.
    #[inline(always)]
    pub(super) fn read(
        &mut self,
        node: &Node<'a>,
        (channels, axis): (usize, i32),
        outputs: Option<usize>,
        activation: (i8, u8),
    ) -> Result<(), Fault> {
        self.factors = Factors::Scales {
            input: scale_of(node, Operand::Input(0))?,
            filter: filter_scales(node, channels, axis)?,
            output: scale_of(node, Operand::Output(0))?,
        };
        self.range(node, activation)?;
        self.work_out(node, channels, outputs)
    }

    /// With the factor `input scale * filter scale / output scale`, as FULLY_CONNECTED has it (`GetQuantizedConvolutionMultipler`
    /// of TFLM's `kernel_util.cc`, whose product of floats the wheel keeps in a double).
    #[inline(always)]
    pub(super) fn read_rounded(
        &mut self,
        node: &Node<'a>,
        activation: (i8, u8),
    ) -> Result<(), Fault> {
        let input = scale_of(node, Operand::Input(0))?;
        let filter = scale_of(node, Operand::Input(1))?;
        let output = scale_of(node, Operand::Output(0))?;
        let product = input * filter;
        // A bias is counted in units of the product.
        let bias = bias_scale(node)?.unwrap_or(product);
        if product < 0.0 || libm::fabsf(product - bias) > output * 0.02 {
            return Err(Fault::Quantization(Operand::Input(1)));
        }
        self.factors = Factors::All(Multiplier::of_scales(input, filter, output));
        self.range(node, activation)
    }

    /// Works the factors out before they are needed: the one, or all of them if there is scratch memory.
    #[inline(never)]
    fn work_out(
        &mut self,
        node: &Node<'a>,
        channels: usize,
        outputs: Option<usize>,
    ) -> Result<(), Fault> {
        if let Factors::Scales { filter, .. } = &self.factors
            && filter.len() == 1
        {
            self.factors = Factors::All(self.worked_out(0));
            return Ok(());
        }
        if let Some(table) = node.prepared(channels) {
            self.factors = Factors::Table(table);
            return Ok(());
        }
        // As `scratch` has it.
        if outputs != Some(1) {
            let bytes = bytes_of_rows(channels).and_then(|bytes| node.scratch_of(bytes));
            let bytes = bytes.ok_or(Fault::Scratch)?;
            for channel in 0..channels {
                let factor = self.worked_out(channel);
                set_row(bytes, channels, channel, row(factor)).ok_or(Fault::Scratch)?;
            }
            let table = Columns::of(bytes.view(), channels).ok_or(Fault::Scratch)?;
            self.factors = Factors::Table(Table(table));
        }
        Ok(())
    }

    /// Reads the zero point and range of the output.
    #[inline(never)]
    fn range(&mut self, node: &Node<'a>, (activation, slot): (i8, u8)) -> Result<(), Fault> {
        let output = node.output(0);
        let output = found(&output)?;
        (self.least, self.largest) = fixed::activation_range(output, activation, slot)?;
        self.zero_point = output.zero_point();
        Ok(())
    }

    #[inline(always)]
    fn factor(&self, channel: usize) -> Turned {
        match &self.factors {
            Factors::All(factor) => (*factor).into(),
            Factors::Table(table) => table.get(channel),
            Factors::Scales { .. } => self.worked_out(channel).into(),
        }
    }

    /// The output of a sum of 32 bits.
    #[inline(never)]
    pub(super) fn narrow(&self, channel: usize, sum: i32) -> i32 {
        self.output(scaled(self.factor(channel), sum))
    }

    /// The outputs of sums of the four channels from `channel` on.
    #[inline(always)]
    pub(super) fn narrow4(&self, channel: usize, sums: &[i32; 4], out: ViewMut<'_, i8>) {
        let Some(out) = out.part(channel, 4) else {
            return;
        };
        let Self {
            zero_point,
            least,
            largest,
            ..
        } = *self;
        let Factors::Table(table) = &self.factors else {
            return self.slow4(channel, sums, out);
        };
        let Some(table) = table.part(channel, 4) else {
            return;
        };
        let one = |k: usize, sum: i32| {
            let shifted = scaled(table.get(k), sum).wrapping_add(zero_point);
            out.set(k, fixed::clamp(shifted, least, largest) as i8);
        };
        let [a, b, c, d] = *sums;
        one(0, a);
        one(1, b);
        one(2, c);
        one(3, d);
    }

    /// As [`narrow4`](Self::narrow4), without a table: where sums are long, or few.
    #[inline(never)]
    fn slow4(&self, channel: usize, sums: &[i32; 4], out: ViewMut<'_, i8>) {
        for (k, sum) in sums.iter().enumerate() {
            out.set(k, self.narrow(channel.wrapping_add(k), *sum) as i8);
        }
    }

    #[cold]
    #[inline(never)]
    fn worked_out(&self, channel: usize) -> Multiplier {
        match self.factors {
            Factors::Scales {
                input,
                filter,
                output,
            } => Multiplier::of_scales(input, filter.get(channel).unwrap_or_default(), output),
            _ => Multiplier::default(),
        }
    }

    /// The output of a sum of 64 bits.
    #[inline(never)]
    pub(super) fn wide(&self, channel: usize, sum: i64) -> i32 {
        self.output(multiplier(self.factor(channel)).apply_wide(sum))
    }

    #[inline(always)]
    fn output(&self, scaled: i32) -> i32 {
        let shifted = scaled.wrapping_add(self.zero_point);
        fixed::clamp(shifted, self.least, self.largest)
    }
}

#[inline(always)]
fn multiplier(factor: Turned) -> Multiplier {
    Multiplier {
        multiplier: factor.multiplier,
        shift: !factor.turned,
    }
}

/// [`Multiplier::apply`], with few instructions for a shift to the right, which is the rule.
#[inline(always)]
fn scaled(factor: Turned, sum: i32) -> i32 {
    let below = factor.turned as u32;
    if below > 30 {
        return unusual(factor, sum);
    }
    // Half up.
    let product = i64::from(sum) * i64::from(factor.multiplier) + (1 << 30);
    let high = (product >> 31) as i32;
    // Half away from zero, the shift to the right being 1 + `below`.
    (high
        .wrapping_add((product >> 63) as i32)
        .wrapping_shr(below)
        .wrapping_add(1))
        >> 1
}

#[cold]
#[inline(never)]
fn unusual(factor: Turned, sum: i32) -> i32 {
    multiplier(factor).apply(sum)
}
