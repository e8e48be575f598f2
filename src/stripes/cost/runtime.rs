//! Instructions of the runtime's kernels on a Cortex-M4, as built for the firmware example.
//!
//! The sums repeat the kernels' loops (`runtime/src/ops`); what each round takes was fitted to the counts of 900 operators
//! of all shapes and types, single operators in a file: 0.1 to 1.4 % root mean square, 6 % at most. What a call takes is from
//! the counts that the tests have, and for operators that those lack by the ratio of the ones most like them.

use arenaplan_schema::tflite::{BuiltinOperator as Op, TensorType as Type};

use super::{Parts, UNIT, Windows, column, elements, input, is_constant, rows, signed};
use crate::graph::{Graph, Operator, Tensor};

/// A CONV_2D, in hundredths. A *block* is four output channels, a *run* a row of the window, as long as it is connected.
struct Convolution {
    call: i64,
    pixel: i64,
    block: i64,
    run: i64,
    /// Four elements of a run, and one that is left.
    word: i64,
    left: i64,
    /// Of a channel that is in no block.
    one: i64,
    one_run: i64,
    one_word: i64,
    one_left: i64,
    /// More for a block whose filters have one scale.
    one_scale: i64,
}

const CONV: [Convolution; 3] = [
    Convolution {
        call: 1_136_000,
        pixel: 20_830,
        block: 18_980,
        run: 1_490,
        word: 2_504,
        left: 1_235,
        one: 12_740,
        one_run: 1_711,
        one_word: 1_118,
        one_left: 740,
        one_scale: 6_960,
    },
    Convolution {
        call: 1_106_000,
        pixel: 21_130,
        block: 55_000,
        run: 2_150,
        word: 13_900,
        left: 3_475,
        one: 16_250,
        one_run: 1_160,
        one_word: 3_580,
        one_left: 895,
        one_scale: -3_500,
    },
    Convolution {
        call: 675_600,
        pixel: 21_170,
        block: 19_950,
        run: 1_260,
        word: 8_400,
        left: 2_100,
        one: 9_730,
        one_run: 1_000,
        one_word: 3_590,
        one_left: 898,
        one_scale: 0,
    },
];

/// Small windows of int8 are copied together.
const COPIED_BYTES: i64 = 40;
const COPIED_ROW: i64 = 16;
const COPY: i64 = 4_246;
const COPY_LINE: i64 = 1_900;
const COPY_RUN: i64 = 3_485;
const COPY_WORD: i64 = 606;
const COPY_LEFT: i64 = 402;
const COPY_FILL: i64 = 7_204;

/// A DEPTHWISE_CONV_2D, in hundredths. A *block* is four channels, from four input channels or from one; a *part* is fewer.
struct Depthwise {
    call: i64,
    pixel: i64,
    block: i64,
    run: i64,
    tap: i64,
    /// A row of three taps, which int8 has a loop for.
    three: i64,
    /// Of a block from one input channel.
    spread_run: i64,
    spread_tap: i64,
    part: i64,
    part_lane: i64,
    part_run: i64,
    part_tap: i64,
    part_lane_tap: i64,
    /// An input channel with several outputs.
    channel: i64,
    one_scale: i64,
}

const DEPTHWISE: [Depthwise; 3] = [
    Depthwise {
        call: 1_137_000,
        pixel: 14_200,
        block: 22_520,
        run: 1_950,
        tap: 1_230,
        three: 3_770,
        spread_run: 1_270,
        spread_tap: 1_330,
        part: 12_490,
        part_lane: 5_320,
        part_run: 1_020,
        part_tap: 1_190,
        part_lane_tap: 1_410,
        channel: 820,
        one_scale: 6_860,
    },
    Depthwise {
        call: 1_054_000,
        pixel: 13_730,
        block: 54_270,
        run: 1_740,
        tap: 6_880,
        three: 22_380,
        spread_run: 1_740,
        spread_tap: 6_880,
        part: 14_160,
        part_lane: 9_230,
        part_run: 1_670,
        part_tap: 1_180,
        part_lane_tap: 1_510,
        channel: 930,
        one_scale: -3_500,
    },
    Depthwise {
        call: 712_700,
        pixel: 13_080,
        block: 18_840,
        run: 800,
        tap: 7_790,
        three: 24_170,
        spread_run: 800,
        spread_tap: 7_790,
        part: 13_920,
        part_lane: 1_350,
        part_run: 410,
        part_tap: 1_240,
        part_lane_tap: 1_790,
        channel: 820,
        one_scale: 0,
    },
];

/// A pooling operator, in hundredths: blocks of four channels, and single ones.
struct Pool {
    call: i64,
    pixel: i64,
    block: i64,
    run: i64,
    tap: i64,
    one: i64,
    one_run: i64,
    one_tap: i64,
}

const fn pool([call, pixel, block, run, tap, one, one_run, one_tap]: [i64; 8]) -> Pool {
    Pool {
        call,
        pixel,
        block,
        run,
        tap,
        one,
        one_run,
        one_tap,
    }
}

const MAX_POOL: [Pool; 3] = [
    pool([629_000, 9_810, 9_210, 1_740, 5_060, 1_510, 1_900, 1_170]),
    pool([647_000, 10_750, 10_030, 1_520, 5_190, 3_760, 160, 1_400]),
    pool([411_000, 9_750, 11_630, 2_500, 5_830, 3_080, 970, 1_200]),
];
const AVERAGE_POOL: [Pool; 3] = [
    pool([629_000, 10_600, 18_370, 460, 4_280, 4_110, 1_290, 850]),
    pool([636_000, 10_550, 18_110, 1_520, 4_540, 4_570, 1_090, 870]),
    pool([415_000, 10_260, 10_430, 1_890, 4_790, 3_110, 1_020, 890]),
];

/// FULLY_CONNECTED: a call, an output row, and then as [`Convolution`].
const CONNECTED: [[i64; 5]; 3] = [
    [1_221_600, 4_700, 27_400, 2_500, 1_220],
    [1_238_000, 4_800, 54_700, 14_400, 3_600],
    [607_400, 4_800, 21_200, 8_400, 2_100],
];
/// Less for a call and a block whose filters have a scale each, since factors are prepared.
const CONNECTED_SCALES: [[i64; 2]; 3] = [[265_000, 6_960], [250_000, -3_500], [0, 0]];
const CONNECTED_ONE: [[i64; 3]; 3] = [
    [13_100, 1_110, 700],
    [16_400, 3_580, 895],
    [10_500, 3_590, 898],
];

/// A SLICE in hundredths, and each byte that it copies.
const SLICE: (i64, i64) = (518_000, 106);
/// A CONCATENATION in hundredths, each part, and each byte that is copied.
const JOIN: (i64, i64, i64) = (57_000, 209_000, 88);
/// More for each piece where parts are joined pixel by pixel.
const PIECE: i64 = 6_900;
/// A RESHAPE in hundredths: a plan puts the output where the input is.
const RESHAPE: i64 = 203_000;
/// A PAD in hundredths, each row, and each byte of it where rows are whole words, and where not.
const PAD: (i64, i64, i64, i64) = (415_000, 28_300, 102, 320);

pub(super) fn slice(bytes: i64, in_place: bool) -> i64 {
    let copied = if in_place { 0 } else { bytes };
    SLICE.0.saturating_add(copied.saturating_mul(SLICE.1))
}

pub(super) fn concatenation(parts: i64, bytes: i64, in_place: bool) -> i64 {
    let copied = if in_place { 0 } else { bytes };
    JOIN.0
        .saturating_add(parts.saturating_mul(JOIN.1))
        .saturating_add(copied.saturating_mul(JOIN.2))
}

pub(super) fn of(graph: &Graph<'_>, op: &Operator<'_>) -> Parts {
    known(graph, op).unwrap_or_else(|| unknown(graph, op))
}

fn known(graph: &Graph<'_>, op: &Operator<'_>) -> Option<Parts> {
    let first = input(graph, op, 0)?;
    let output = graph.tensor(*op.outputs.first()?);
    let bytes = signed(output.bytes);
    let of_output = |fixed: i64, of_all: i64| Parts::spread(fixed, of_all, rows(output));
    Some(match op.code {
        Op::CONV_2D => convolution(&Windows::of(graph, op)?, first.ty, has_scales(graph, op)),
        Op::DEPTHWISE_CONV_2D => {
            depthwise(&Windows::of(graph, op)?, first.ty, has_scales(graph, op))
        }
        Op::MAX_POOL_2D => pooling(
            &Windows::of(graph, op)?,
            column(first.ty, [0, 1, 2]),
            &MAX_POOL,
        ),
        Op::AVERAGE_POOL_2D | Op::L2_POOL_2D => pooling(
            &Windows::of(graph, op)?,
            column(first.ty, [0, 1, 2]),
            &AVERAGE_POOL,
        ),
        Op::FULLY_CONNECTED => {
            connected(first, input(graph, op, 1)?, output, has_scales(graph, op))
        }
        Op::SLICE | Op::STRIDED_SLICE => of_output(SLICE.0, bytes.saturating_mul(SLICE.1)),
        Op::SPLIT | Op::SPLIT_V | Op::UNPACK | Op::PACK => {
            let parts = signed((op.inputs.len().max(op.outputs.len())) as u64);
            let moved = match op.code {
                Op::PACK => bytes,
                _ => bytes.saturating_mul(parts),
            };
            let fixed = JOIN.0.saturating_add(parts.saturating_mul(JOIN.1));
            of_output(fixed, moved.saturating_mul(JOIN.2))
        }
        Op::CONCATENATION => {
            let parts = signed(op.inputs.len() as u64);
            let axis = op.table.builtin_options_as_concatenation_options();
            let axis = axis.map_or(0, |o| o.axis());
            let axis = if axis < 0 {
                axis + output.shape.len() as i32
            } else {
                axis
            };
            let before = output
                .shape
                .iter()
                .take(axis.max(0).unsigned_abs() as usize);
            let pieces = before
                .fold(1i64, |n, &d| n.saturating_mul(d.into()))
                .saturating_mul(parts);
            let fixed = JOIN.0.saturating_add(parts.saturating_mul(JOIN.1));
            let moved = bytes.saturating_mul(JOIN.2);
            of_output(
                fixed,
                moved.saturating_add(pieces.saturating_sub(parts).max(0).saturating_mul(PIECE)),
            )
        }
        Op::PAD | Op::PADV2 => {
            let height = rows(output).max(1);
            let row = bytes / height;
            let pixel = output
                .dim(-1)
                .saturating_mul(bytes / elements(output).max(1));
            let byte = if pixel % 4 == 0 { PAD.2 } else { PAD.3 };
            of_output(
                PAD.0,
                height.saturating_mul(row.saturating_mul(byte).saturating_add(PAD.1)),
            )
        }
        Op::RESHAPE | Op::SQUEEZE | Op::EXPAND_DIMS => of_output(RESHAPE, 0),
        Op::SOFTMAX => {
            let [call, row, element] = column(
                first.ty,
                [
                    [561_000, 4_000, 37_300],
                    [526_000, 10_000, 5_500],
                    [317_000, 2_200, 7_050],
                ],
            );
            let elements = elements(output);
            let rows = elements / output.dim(-1).max(1);
            let of_rows = rows.saturating_mul(row);
            of_output(
                call,
                of_rows.saturating_add(elements.saturating_mul(element)),
            )
        }
        Op::MEAN | Op::SUM | Op::REDUCE_MAX | Op::REDUCE_MIN => {
            let [call, element, result] = column(
                first.ty,
                [
                    [706_000, 1_050, 4_500],
                    [707_000, 1_000, 4_700],
                    [487_000, 1_150, 2_600],
                ],
            );
            let read = elements(first).saturating_mul(element);
            of_output(
                call,
                read.saturating_add(elements(output).saturating_mul(result)),
            )
        }
        Op::RESIZE_NEAREST_NEIGHBOR => {
            let pixels = elements(output) / output.dim(-1).max(1);
            let row = output
                .dim(-1)
                .saturating_mul(bytes / elements(output).max(1));
            of_output(
                633_000,
                pixels.saturating_mul(row.saturating_mul(80).saturating_add(7_200)),
            )
        }
        Op::RESIZE_BILINEAR => of_output(1_571_000, elements(output).saturating_mul(9_000)),
        Op::TRANSPOSE => of_output(415_000, elements(output).saturating_mul(560)),
        _ => {
            let (call, element) = elementwise(op.code, first.ty)?;
            let elements = elements(output);
            // Where an operand is repeated, its place is worked out again and again.
            let repeats = op.inputs.iter().flatten().any(|&t| {
                let operand = graph.tensor(t);
                operand.elements() > 1 && operand.shape != output.shape
            });
            let repeats = if repeats && op.code != Op::PRELU {
                2_800
            } else {
                0
            };
            of_output(call, elements.saturating_mul(element + repeats))
        }
    })
}

/// Whether a filter has a scale for each output channel.
fn has_scales(graph: &Graph<'_>, op: &Operator<'_>) -> bool {
    input(graph, op, 1).is_some_and(|filter| filter.scales() > 1)
}

fn convolution(w: &Windows, ty: Type, has_scales: bool) -> Parts {
    let c = &CONV[column(ty, [0, 1, 2])];
    let bytes = !matches!(ty, Type::INT16 | Type::FLOAT32);
    let groups = (w.depth / w.filter_depth.max(1)).max(1);
    let run = w.filter_depth;
    let weight_row = w.width.kernel.saturating_mul(run);
    let filter = w.height.kernel.saturating_mul(weight_row);
    let is_dense = groups == 1 && w.width.dilation == 1;
    let is_copied = bytes
        && groups == 1
        && w.height.kernel > 1
        && weight_row < COPIED_ROW
        && filter <= COPIED_BYTES;
    let block = c.block + if has_scales { 0 } else { c.one_scale };
    let filters = w.channels / groups;
    let (blocks, ones) = (groups * (filters / 4), groups * (filters % 4));
    w.sum(c.call, |rows, cols| {
        let (mut runs, mut len) = (rows * cols, run);
        if is_dense {
            (runs, len) = (rows, cols * run);
            if w.height.dilation == 1 && len == w.width.input * w.depth && len == weight_row {
                (runs, len) = (rows.min(1), len * rows);
            }
        }
        let mut pixel = c.pixel;
        if is_copied {
            pixel += COPY + rows * COPY_LINE;
            pixel += runs * (COPY_RUN + len / 4 * COPY_WORD + len % 4 * COPY_LEFT);
            if rows * cols != w.taps() {
                pixel += COPY_FILL;
            }
            (runs, len) = (1, filter);
        }
        let (words, left) = (len / 4, len % 4);
        let of_block = block + runs * (c.run + words * c.word + left * c.left);
        let of_one = c.one + runs * (c.one_run + words * c.one_word + left * c.one_left);
        pixel
            .saturating_add(blocks.saturating_mul(of_block))
            .saturating_add(ones.saturating_mul(of_one))
    })
}

fn depthwise(w: &Windows, ty: Type, has_scales: bool) -> Parts {
    let c = &DEPTHWISE[column(ty, [0, 1, 2])];
    let multiplier = (w.channels / w.depth.max(1)).max(1);
    let block = c.block + if has_scales { 0 } else { c.one_scale };
    let (groups, lanes) = match multiplier {
        1 => (1, w.depth),
        _ => (w.depth, multiplier),
    };
    let (blocks, rest) = (groups * (lanes / 4), lanes % 4);
    let parts = if rest == 0 { 0 } else { groups };
    let pixel = c.pixel + if groups > 1 { groups * c.channel } else { 0 };
    w.sum(c.call, |rows, cols| {
        // A column is a row.
        let (runs, taps) = if cols == 1 {
            (rows.min(1), rows)
        } else {
            (rows, cols)
        };
        let of_block = if multiplier != 1 {
            runs * (c.spread_run + taps * c.spread_tap)
        } else if cols == 3 {
            runs * c.three
        } else {
            runs * (c.run + taps * c.tap)
        };
        let of_part = c.part
            + rest * c.part_lane
            + runs * (c.part_run + taps * (c.part_tap + rest * c.part_lane_tap));
        pixel
            .saturating_add(blocks.saturating_mul(block + of_block))
            .saturating_add(parts.saturating_mul(of_part))
    })
}

fn pooling(w: &Windows, column: usize, table: &[Pool; 3]) -> Parts {
    let c = &table[column];
    let (blocks, ones) = (w.channels / 4, w.channels % 4);
    w.sum(c.call, |rows, cols| {
        let of_block = c.block + rows * (c.run + cols * c.tap);
        let of_one = c.one + rows * (c.one_run + cols * c.one_tap);
        c.pixel
            .saturating_add(blocks.saturating_mul(of_block))
            .saturating_add(ones.saturating_mul(of_one))
    })
}

fn connected(
    first: &Tensor<'_>,
    weights: &Tensor<'_>,
    output: &Tensor<'_>,
    has_scales: bool,
) -> Parts {
    let [mut call, row, mut block, word, left] = column(first.ty, CONNECTED);
    if has_scales {
        let [of_call, of_block] = column(first.ty, CONNECTED_SCALES);
        (call, block) = (call - of_call, block - of_block);
    }
    let [one, one_word, one_left] = column(first.ty, CONNECTED_ONE);
    let (depth, outputs) = (weights.dim(-1).max(0), weights.dim(0).max(1));
    let count = elements(output) / outputs;
    let (words, rest) = (depth / 4, depth % 4);
    let of_block = block + words * word + rest * left;
    let of_one = one + words * one_word + rest * one_left;
    let of_row = (outputs / 4)
        .saturating_mul(of_block)
        .saturating_add(outputs % 4 * of_one + row);
    Parts::spread(call, count.saturating_mul(of_row), rows(output))
}

/// A call and an element of an operator that computes each element by itself, in hundredths.
#[rustfmt::skip]
fn elementwise(code: Op, ty: Type) -> Option<(i64, i64)> {
    let [int8, int16, float32] = match code {
        Op::ADD | Op::SUB            => [(645_000,  8_880), (645_000, 8_690), (380_000, 1_890)],
        Op::MUL                      => [(494_000,  4_700), (570_000, 4_700), (360_000, 1_900)],
        Op::DIV                      => [(494_000,  9_000), (570_000, 9_000), (360_000, 3_000)],
        Op::SQUARED_DIFFERENCE       => [(645_000,  9_500), (645_000, 9_500), (380_000, 1_900)],
        Op::MAXIMUM | Op::MINIMUM    => [(340_000,  1_500), (340_000, 1_500), (340_000, 1_600)],
        Op::PRELU                    => [(590_000,  7_340), (590_000, 7_340), (430_000, 4_580)],
        Op::ABS | Op::NEG            => [(487_000,  2_200), (487_000, 2_200), (355_000,   500)],
        Op::RELU | Op::RELU_0_TO_1 | Op::RELU_N1_TO_1
                                     => [(482_000,  2_300), (540_000, 2_300), (350_000,   800)],
        Op::RELU6                    => [(411_000,  1_100), (411_000, 1_100), (350_000, 1_200)],
        Op::LEAKY_RELU               => [(568_000,  2_710), (575_000, 2_700), (378_000,   900)],
        Op::HARD_SWISH               => [(535_000,  5_000), (535_000, 5_000), (352_000, 1_500)],
        Op::LOGISTIC                 => [(444_000, 33_200), (548_000, 2_600), (347_000, 5_970)],
        Op::TANH | Op::ELU           => [(410_000, 33_900), (474_000, 2_700), (333_000, 8_280)],
        Op::QUANTIZE                 => [(525_000,  5_060), (525_000, 5_220), (446_000, 1_500)],
        Op::DEQUANTIZE               => [(335_000,    800), (335_000,   800), (335_000,   800)],
        _ => return None,
    };
    Some(column(ty, [int8, int16, float32]))
}

/// An operator that is not known better: by what it reads and writes, and each weight once.
fn unknown(graph: &Graph<'_>, op: &Operator<'_>) -> Parts {
    const CALL: i64 = 4_700 * UNIT;
    const ELEMENT: i64 = 20 * UNIT;
    const WEIGHT: i64 = 4 * UNIT;
    let mut of_all = 0i64;
    for &tensor in op.inputs.iter().flatten().chain(&op.outputs) {
        let tensor = graph.tensor(tensor);
        let each = match is_constant(tensor) {
            true => WEIGHT,
            false => ELEMENT,
        };
        of_all = of_all.saturating_add(elements(tensor).saturating_mul(each));
    }
    let output = op.outputs.first().map(|&t| graph.tensor(t));
    Parts::spread(CALL, of_all, output.map_or(0, rows))
}
