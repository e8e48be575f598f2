//! What operators cost: estimated instructions of an invoke on a Cortex-M4.
//!
//! An operator whose output has rows takes `fixed + per_row * rows`, whatever rows a copy of it computes: at the top and at
//! the bottom of a stripe its window reaches over the border by as much as it does for all rows.
//!
//! The numbers were fitted to counted instructions (QEMU's `-icount`). Those of the runtime follow its loops
//! (`cost/runtime.rs`) and are within a few percent for a whole model; those of TFLM's kernels (`cost/tflm.rs`) are coarser. All
//! arithmetic is in whole numbers, so that a model's estimate is the same on every machine.

mod runtime;
mod tflm;

use arenaplan_schema::tflite::{BuiltinOperator as Op, Padding, TensorType as Type};

use crate::graph::{Graph, Operator, Storage, Tensor};
use crate::target::{Library, Target};

/// Which kernels are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Machine {
    /// Those of `arenaplan-runtime`, with prepared factors.
    Runtime,
    /// CMSIS-NN, where TFLM calls it, else the reference kernels.
    CmsisNn,
    /// TFLM's reference kernels.
    Reference,
}

impl Machine {
    /// The kernels, in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Runtime => "arenaplan's runtime",
            Self::CmsisNn => "TFLM with CMSIS-NN",
            Self::Reference => "TFLM's reference kernels",
        }
    }

    /// The kernels of a target. For those that may be any, and for ESP-NN's, CMSIS-NN's stand: fast ones, for which the
    /// copies that stripes add weigh more than for slow ones.
    pub fn of(target: Target) -> Self {
        match target.libraries().first() {
            Some(Library::Arenaplan) => Self::Runtime,
            Some(Library::Reference) if target == Target::TflmReference => Self::Reference,
            _ => Self::CmsisNn,
        }
    }
}

/// What an operator takes, in instructions and in multiplications of an input with a weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Instructions of a call, whatever rows it computes; below 0 where what windows reach over the border saves more.
    pub fixed: i64,
    /// Instructions of a row of the output; 0 where it has no rows, which is where it is not of four dimensions with a
    /// batch of one.
    pub per_row: i64,
    /// MACs of an operator whose output has no rows.
    pub macs: u64,
    /// MACs of a row of the output, padding included.
    pub macs_per_row: u64,
}

impl Cost {
    /// Instructions for so many rows; 0 for an output that has none.
    pub fn instructions(&self, rows: u64) -> i64 {
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        self.fixed.saturating_add(self.per_row.saturating_mul(rows))
    }

    /// MACs for so many rows; 0 for an output that has none.
    pub fn macs(&self, rows: u64) -> u64 {
        let of_rows = self.macs_per_row.saturating_mul(rows);
        self.macs.saturating_add(of_rows)
    }
}

/// What an operator of the file takes.
pub fn of(machine: Machine, graph: &Graph<'_>, op: &Operator<'_>) -> Cost {
    let macs = Windows::of(graph, op).map(|w| w.macs_per_row());
    let total = match machine {
        Machine::Runtime => runtime::of(graph, op),
        Machine::CmsisNn | Machine::Reference => tflm::of(machine, graph, op),
    };
    let output = op.outputs.first().map(|&t| graph.tensor(t));
    let rows = output.map_or(0, rows);
    let Parts { fixed, per_row } = total;
    match rows {
        0 => Cost {
            // Whatever has no rows was counted as one.
            fixed: instructions(fixed.saturating_add(per_row)),
            per_row: 0,
            macs: macs_of_weights(graph, op),
            macs_per_row: 0,
        },
        rows => {
            // What rounding leaves is the call's, so that the whole operator's cost is rounded once.
            let each = instructions(per_row);
            let whole = instructions(fixed.saturating_add(per_row.saturating_mul(rows)));
            Cost {
                fixed: whole.saturating_sub(each.saturating_mul(rows)),
                per_row: each,
                macs: 0,
                macs_per_row: macs.unwrap_or(0),
            }
        }
    }
}

/// What a model's main subgraph takes, as instructions and MACs.
pub fn of_model(machine: Machine, graph: &Graph<'_>) -> (i64, u64) {
    let operators = graph.subgraphs.first().map_or(&[][..], |s| &s.operators);
    operators
        .iter()
        .fold((0i64, 0u64), |(instructions, macs), op| {
            let output = op.outputs.first().map(|&t| graph.tensor(t));
            let rows = output.map_or(0, rows).unsigned_abs();
            let cost = of(machine, graph, op);
            (
                instructions.saturating_add(cost.instructions(rows)),
                macs.saturating_add(cost.macs(rows)),
            )
        })
}

/// Instructions of a SLICE that takes rows: so many `pixels` with so many `bytes`. One `in_place` lies on its source.
pub fn slice(machine: Machine, pixels: u64, bytes: u64, in_place: bool) -> i64 {
    let (pixels, bytes) = (signed(pixels), signed(bytes));
    instructions(match machine {
        Machine::Runtime => runtime::slice(bytes, in_place),
        // They copy in any case, pixel by pixel.
        Machine::CmsisNn | Machine::Reference => tflm::slice(machine, pixels, bytes),
    })
}

/// Instructions of a CONCATENATION of rows: so many `parts` with so many `bytes` together. All parts of one `in_place` lie
/// in the output.
pub fn concatenation(machine: Machine, parts: u64, bytes: u64, in_place: bool) -> i64 {
    let (parts, bytes) = (signed(parts), signed(bytes));
    instructions(match machine {
        Machine::Runtime => runtime::concatenation(parts, bytes, in_place),
        Machine::CmsisNn | Machine::Reference => tflm::concatenation(machine, parts, bytes),
    })
}

/// In the tables, numbers are hundredths of an instruction.
const UNIT: i64 = 100;

fn instructions(hundredths: i64) -> i64 {
    hundredths.saturating_add(UNIT / 2).div_euclid(UNIT)
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Hundredths of instructions of a call and of a row. Operators whose output has no rows count as one of one row.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    fixed: i64,
    per_row: i64,
}

impl Parts {
    /// A call that takes so much, in which `of_all` of the rows take so much together.
    fn spread(fixed: i64, of_all: i64, rows: i64) -> Self {
        let rows = rows.max(1);
        let per_row = of_all / rows;
        Self {
            fixed: fixed.saturating_add(of_all % rows),
            per_row,
        }
    }
}

/// Rows of a tensor of four dimensions with a batch of one, 0 for others.
fn rows(tensor: &Tensor<'_>) -> i64 {
    match tensor.shape[..] {
        [1, rows, _, _] if tensor.bytes > 0 && tensor.prepared_shape.is_none() => {
            rows.max(0).into()
        }
        _ => 0,
    }
}

/// The input at a place, if there is one.
fn input<'g, 'a>(graph: &'g Graph<'a>, op: &Operator<'_>, index: usize) -> Option<&'g Tensor<'a>> {
    let tensor = op.inputs.get(index).copied().flatten()?;
    Some(graph.tensor(tensor))
}

fn is_constant(tensor: &Tensor<'_>) -> bool {
    matches!(tensor.storage, Storage::Constant | Storage::OutsideConstant)
}

/// MACs of operators that multiply with weights and have no windows: each weight once for each row of the output.
fn macs_of_weights(graph: &Graph<'_>, op: &Operator<'_>) -> u64 {
    if let Some(w) = Windows::of(graph, op) {
        let rows = (w.height.output as u64).saturating_mul(w.batches as u64);
        return w.macs_per_row().saturating_mul(rows);
    }
    match (op.code, op.outputs.first(), input(graph, op, 1)) {
        (Op::FULLY_CONNECTED, Some(&output), Some(weights)) => {
            let outputs = graph.tensor(output).elements();
            let depth = weights.dim(-1).unsigned_abs();
            outputs.saturating_mul(depth)
        }
        _ => 0,
    }
}

/// Windows that reach further are taken to lie on the input, which spares a walk over the outputs for which they do not.
const FAR: i64 = 1 << 12;

/// No window is taken for one that reads more elements than that, so that nothing overflows.
const LARGE: i64 = 1 << 32;

/// One direction of a window.
#[derive(Clone, Copy, Debug)]
struct Axis {
    input: i64,
    output: i64,
    kernel: i64,
    stride: i64,
    dilation: i64,
    pad: i64,
}

impl Axis {
    fn new(
        [input, output, kernel]: [i64; 3],
        [stride, dilation]: [i32; 2],
        padding: Padding,
    ) -> Option<Self> {
        let (stride, dilation) = (i64::from(stride), i64::from(dilation));
        if [input, output, kernel, stride, dilation]
            .iter()
            .any(|&n| n < 1)
        {
            return None;
        }
        // Below 2^31, all of them.
        let reach = (kernel - 1) * dilation + 1;
        let covered = (output - 1) * stride + reach;
        if output > (input - 1) / stride + 1 {
            return None;
        }
        let pad = match padding {
            Padding::SAME => (covered - input).max(0) / 2,
            _ => 0,
        };
        Some(Self {
            input,
            output,
            kernel,
            stride,
            dilation,
            pad,
        })
    }

    /// How many of the kernel's taps lie on the input, for an output.
    fn taps(&self, at: i64) -> i64 {
        let start = at * self.stride - self.pad;
        // Taps before the input, and those before its end.
        let before = match start {
            0.. => 0,
            _ => (-start + self.dilation - 1) / self.dilation,
        };
        let room = self.input - start;
        let until = match room {
            ..=0 => 0,
            _ => (room + self.dilation - 1) / self.dilation,
        };
        (until.min(self.kernel) - before).max(0)
    }

    /// How many outputs have so many taps, as pairs.
    fn by_taps(&self) -> Vec<(i64, i64)> {
        let reach = (self.kernel - 1) * self.dilation + 1;
        if reach > FAR {
            return vec![(self.kernel.min(self.input), self.output)];
        }
        // Outputs whose windows lie on the input have all taps; the others are at the ends.
        let mut counts: Vec<(i64, i64)> = Vec::new();
        let first = ((self.pad + self.stride - 1) / self.stride).min(self.output);
        let last = match self.input + self.pad - reach {
            room @ 0.. => (room / self.stride + 1).min(self.output),
            _ => 0,
        };
        let last = last.max(first);
        let mut add = |taps: i64, outputs: i64| match counts.iter_mut().find(|(t, _)| *t == taps) {
            Some((_, count)) => *count += outputs,
            None => counts.push((taps, outputs)),
        };
        add(self.kernel, last - first);
        for at in (0..first).chain(last..self.output) {
            add(self.taps(at), 1);
        }
        counts.retain(|&(_, count)| count != 0);
        counts
    }
}

/// The windows of a convolution or of a pooling operator.
#[derive(Clone, Copy, Debug)]
struct Windows {
    batches: i64,
    height: Axis,
    width: Axis,
    /// Channels of the input, of a filter, and of the output.
    depth: i64,
    filter_depth: i64,
    channels: i64,
    /// Whether nothing is multiplied.
    is_pool: bool,
}

impl Windows {
    fn of(graph: &Graph<'_>, op: &Operator<'_>) -> Option<Self> {
        let image = dims(input(graph, op, 0)?)?;
        let output = dims(graph.tensor(*op.outputs.first()?))?;
        let (strides, dilations, padding, kernel, filter_depth) = match op.code {
            Op::CONV_2D => {
                let o = op.table.builtin_options_as_conv_2_doptions()?;
                let [_, h, w, depth] = dims(input(graph, op, 1)?)?;
                (
                    [o.stride_h(), o.stride_w()],
                    [o.dilation_h_factor(), o.dilation_w_factor()],
                    o.padding(),
                    [h, w],
                    depth,
                )
            }
            Op::DEPTHWISE_CONV_2D => {
                let o = op.table.builtin_options_as_depthwise_conv_2_doptions()?;
                let [_, h, w, _] = dims(input(graph, op, 1)?)?;
                (
                    [o.stride_h(), o.stride_w()],
                    [o.dilation_h_factor(), o.dilation_w_factor()],
                    o.padding(),
                    [h, w],
                    1,
                )
            }
            Op::MAX_POOL_2D | Op::AVERAGE_POOL_2D | Op::L2_POOL_2D => {
                let o = op.table.builtin_options_as_pool_2_doptions()?;
                let kernel = [o.filter_height().into(), o.filter_width().into()];
                ([o.stride_h(), o.stride_w()], [1, 1], o.padding(), kernel, 1)
            }
            _ => return None,
        };
        let axis = |k: usize| {
            let sizes = [image[k + 1], output[k + 1], kernel[k]];
            Axis::new(sizes, [strides[k], dilations[k]], padding)
        };
        let windows = Self {
            batches: output[0],
            height: axis(0)?,
            width: axis(1)?,
            depth: image[3],
            filter_depth,
            channels: output[3],
            is_pool: matches!(
                op.code,
                Op::MAX_POOL_2D | Op::AVERAGE_POOL_2D | Op::L2_POOL_2D
            ),
        };
        let read = windows.taps().saturating_mul(filter_depth);
        (read <= LARGE).then_some(windows)
    }

    /// Taps of a window.
    fn taps(&self) -> i64 {
        self.height.kernel.saturating_mul(self.width.kernel)
    }

    /// Outputs of a row.
    fn outputs_per_row(&self) -> i64 {
        self.width.output.saturating_mul(self.channels)
    }

    fn macs_per_row(&self) -> u64 {
        if self.is_pool {
            return 0;
        }
        let of_output = self.taps().saturating_mul(self.filter_depth);
        self.outputs_per_row()
            .saturating_mul(of_output)
            .unsigned_abs()
    }

    /// Hundredths for all rows, where `row(rows, cols)` are those of a window with so many rows and columns: the call's part
    /// and that of a row.
    fn sum(&self, call: i64, window: impl Fn(i64, i64) -> i64) -> Parts {
        let columns = self.width.by_taps();
        let row = |rows: i64| -> i64 {
            let each = columns
                .iter()
                .map(|&(cols, count)| window(rows, cols).saturating_mul(count));
            each.fold(0, i64::saturating_add)
        };
        let inner = row(self.height.kernel);
        let missing = self
            .height
            .by_taps()
            .iter()
            .fold(0i64, |sum, &(taps, count)| {
                sum.saturating_add((inner - row(taps)).saturating_mul(count))
            });
        Parts {
            fixed: call.saturating_sub(missing.saturating_mul(self.batches)),
            per_row: match self.batches {
                1 => inner,
                // Counted as one row.
                batches => inner
                    .saturating_mul(self.height.output)
                    .saturating_mul(batches),
            },
        }
    }
}

/// The dimensions of a tensor that has four.
fn dims(tensor: &Tensor<'_>) -> Option<[i64; 4]> {
    let dims: [i32; 4] = tensor.shape.as_slice().try_into().ok()?;
    dims.iter().all(|&d| d > 0).then(|| dims.map(i64::from))
}

/// Elements of a tensor.
fn elements(tensor: &Tensor<'_>) -> i64 {
    signed(tensor.elements())
}

/// What a type has in a table with columns for int8, int16 and float32.
fn column<T>(ty: Type, [int8, int16, float32]: [T; 3]) -> T {
    match ty {
        Type::FLOAT32 => float32,
        Type::INT16 => int16,
        _ => int8,
    }
}
