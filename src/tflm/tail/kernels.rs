//! What each operator keeps in the tail: its options, decoded, and its kernel's data.
//!
//! The sizes are those of the structs in TFLM's source, on 64 and on 32 bits, measured by running its reference
//! kernels with every allocation traced. They change when TFLM changes a struct, so the rows follow the release that
//! [`super::Width`] names. Files are in `tensorflow/lite/micro/kernels` unless a row says `signal/`.

use arenaplan_schema::tflite::{BuiltinOperator as Op, TensorType as Type};

use super::{ALIGNMENT, Width};
use crate::graph::{Graph, Operator, Tensor};
use crate::target::Library;
use crate::tflm::scratch::cmsis_nn::kept_sums;
use crate::tflm::scratch::{dim, fft_element_bytes, options};

/// What an operator of one kind keeps, whatever its tensors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel {
    /// Bytes and alignment of the decoded options (`TfLiteConvParams` and the like), by width.
    pub(super) options: Option<ByWidth<Block>>,
    /// Bytes of the struct that `Init` allocates; 0 when there is none.
    pub(super) data: ByWidth<u64>,
}

/// Something on 64 bits, and on 32.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByWidth<T>(T, T);

impl<T: Copy> ByWidth<T> {
    pub(super) fn on(self, width: Width) -> T {
        match width {
            Width::Bits64 => self.0,
            Width::Bits32 => self.1,
        }
    }
}

/// Size and alignment of an allocation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) bytes: u64,
    pub(super) align: u64,
}

/// A row: options of whole numbers, of which the largest decides the alignment, and the kernel's data.
const fn row(option_bytes: u64, option_align: u64, data64: u64, data32: u64) -> Option<Kernel> {
    let block = Block {
        bytes: option_bytes,
        align: option_align,
    };
    let options = if option_bytes == 0 {
        None
    } else {
        Some(ByWidth(block, block))
    };
    Some(Kernel {
        options,
        data: ByWidth(data64, data32),
    })
}

/// A row whose options hold a pointer.
const fn pointers(bytes64: u64, bytes32: u64, data64: u64, data32: u64) -> Option<Kernel> {
    let wide = Block {
        bytes: bytes64,
        align: 8,
    };
    let narrow = Block {
        bytes: bytes32,
        align: 4,
    };
    Some(Kernel {
        options: Some(ByWidth(wide, narrow)),
        data: ByWidth(data64, data32),
    })
}

/// A row with nothing at all.
const NOTHING: Option<Kernel> = row(0, 1, 0, 0);

/// The row of CONCATENATION. SLICE has nothing.
const CONCATENATION: Option<Kernel> = row(8, 4, 80, 24);

/// The row of an operator, or `None` when TFLM has no kernel for it.
///
/// Options are those that `flatbuffer_conversions.cc` allocates while it parses; data is what `Init` allocates.
#[rustfmt::skip]
pub(super) fn kernel(op: &Operator<'_>) -> Option<Kernel> {
    match op.code {
        //                                          options      data: 64, 32 bits
        Op::ABS | Op::RSQRT                  => row( 0, 1,  28,  28), // elementwise.cc
        Op::COS | Op::LOG | Op::SIN | Op::SQRT | Op::SQUARE | Op::LOGICAL_NOT => NOTHING, // elementwise.cc, logical.cc
        Op::ADD                              => row( 8, 4,  60,  60), // add.cc
        Op::ADD_N                            => NOTHING,              // add_n.cc, data in Prepare
        Op::ARG_MAX | Op::ARG_MIN            => row( 4, 4,   0,   0), // arg_min_max.cc
        // The wheel, built for compressed constants, keeps a scratch index; an ordinary build does not.
        Op::ASSIGN_VARIABLE                  => row( 0, 1,   4,   0), // assign_variable.cc
        Op::AVERAGE_POOL_2D | Op::MAX_POOL_2D => row(40, 4, 32,  32), // pooling.cc
        Op::BATCH_MATMUL                     => row( 3, 1,  32,  16), // batch_matmul.cc
        Op::BATCH_TO_SPACE_ND | Op::BROADCAST_ARGS | Op::BROADCAST_TO => NOTHING,
        Op::CALL_ONCE                        => row( 4, 4,   8,   8), // call_once.cc
        Op::CAST                             => row( 8, 4,   0,   0), // cast.cc
        Op::CEIL | Op::FLOOR | Op::ROUND | Op::EXP | Op::NEG | Op::ZEROS_LIKE => NOTHING,
        Op::CONCATENATION                    => CONCATENATION,        // concatenation.cc
        Op::CONV_2D | Op::DEPTHWISE_CONV_2D  => row(28, 4,  80,  56), // conv.h
        Op::CUMSUM                           => row( 2, 1,   0,   0), // cumsum.cc, data in Prepare
        Op::DEPTH_TO_SPACE | Op::SPACE_TO_DEPTH => row(4, 4, 0,   0), // depth_to_space.cc, space_to_depth.cc
        Op::DEQUANTIZE                       => row( 0, 1,  32,  32), // dequantize.cc
        Op::DIV                              => row( 4, 4,  28,  28), // div.cc
        Op::DYNAMIC_UPDATE_SLICE | Op::EMBEDDING_LOOKUP | Op::EXPAND_DIMS | Op::FILL => NOTHING,
        Op::ELU                              => row( 0, 1, 256, 256), // elu.cc, a table of all int8 results
        Op::EQUAL | Op::NOT_EQUAL | Op::GREATER | Op::GREATER_EQUAL | Op::LESS | Op::LESS_EQUAL
                                             => row( 0, 1,  32,  32), // comparisons.cc
        Op::FLOOR_DIV | Op::FLOOR_MOD        => NOTHING,              // floor_div.cc, floor_mod.cc
        Op::FULLY_CONNECTED             => pointers(32, 24, 72,  48), // fully_connected.h
        Op::GATHER                           => row( 8, 4,   0,   0), // gather.cc
        Op::GATHER_ND                        => NOTHING,              // gather_nd.cc
        Op::HARD_SWISH                       => row( 0, 1,  20,  20), // hard_swish.cc
        Op::IF | Op::WHILE                   => row( 8, 4,   8,   8), // if.cc, while.cc
        Op::L2_NORMALIZATION                 => row( 4, 4,   4,   4), // l2norm.cc
        Op::L2_POOL_2D                       => row(40, 4,   0,   0), // l2_pool_2d.cc
        Op::LEAKY_RELU                       => row( 4, 4,  24,  24), // leaky_relu.cc
        Op::LOGICAL_AND | Op::LOGICAL_OR     => NOTHING,              // logical.cc
        Op::LOGISTIC | Op::TANH              => row( 0, 1,  16,  16), // logistic.cc, tanh.cc
        Op::LOG_SOFTMAX                      => NOTHING,              // log_softmax.cc, data in Prepare
        Op::MAXIMUM | Op::MINIMUM            => NOTHING,              // maximum_minimum.cc
        Op::MEAN | Op::SUM | Op::REDUCE_MAX | Op::REDUCE_MIN | Op::REDUCE_ALL
                                             => row( 1, 1,  44,  44), // reduce.cc
        Op::MIRROR_PAD                       => row( 4, 4,  20,  20), // mirror_pad.cc
        Op::MUL                              => row( 4, 4,  36,  36), // mul.cc
        Op::PACK | Op::UNPACK                => row( 8, 4,   0,   0), // pack.cc, unpack.cc
        Op::PAD | Op::PADV2                  => row( 0, 1,  56,  56), // pad_common.cc
        Op::PRELU                            => row( 0, 1,  28,  28), // prelu.cc
        Op::QUANTIZE                         => row( 0, 1,  32,  32), // quantize.cc
        Op::READ_VARIABLE                    => NOTHING,              // read_variable.cc
        Op::RELU                             => row( 0, 1,  28,  28), // activations.cc
        Op::RELU6                            => row( 0, 1,   8,   8), // activations.cc
        Op::RESHAPE | Op::SQUEEZE            => row(36, 4,   0,   0), // reshape.cc, squeeze.cc
        Op::RESIZE_BILINEAR | Op::RESIZE_NEAREST_NEIGHBOR => row(2, 1, 0, 0), // resize_bilinear.cc, ..nearest_neighbor.cc
        Op::REVERSE_V2 | Op::SLICE | Op::TRANSPOSE => NOTHING,
        Op::SELECT_V2                        => row( 0, 1,   1,   1), // select.cc
        Op::SHAPE                            => row( 4, 4,   0,   0), // shape.cc
        Op::SOFTMAX                          => row( 4, 4,  80,  56), // softmax_common.cc
        Op::SPACE_TO_BATCH_ND                => row( 0, 1,   4,   4), // space_to_batch_nd.cc
        Op::SPLIT | Op::SPLIT_V              => row( 4, 4,   0,   0), // split.cc, split_v.cc
        Op::SQUARED_DIFFERENCE               => row( 0, 1, 112, 112), // squared_difference.cc
        Op::STRIDED_SLICE                    => row(24, 4,  84,  84), // strided_slice_common.cc
        Op::SUB                              => row( 8, 4,  52,  52), // sub.cc
        Op::SVDF                             => row(12, 4,  36,  36), // svdf.cc
        Op::TRANSPOSE_CONV                   => row(20, 4,  88,  72), // transpose_conv.cc
        Op::UNIDIRECTIONAL_SEQUENCE_LSTM     => row(16, 4, 688, 688), // unidirectional_sequence_lstm.cc
        Op::VAR_HANDLE                  => pointers(16,  8,  4,   4), // var_handle.cc
        Op::CUSTOM => match op.custom? {
            "CIRCULAR_BUFFER"                     => row(0, 1,   8,   8), // circular_buffer.cc
            "TFLite_Detection_PostProcess"        => row(0, 1, 112, 112), // detection_postprocess.cc
            "TFLM_DECODE"                         => NOTHING,             // decode.cc, data in Prepare
            "SignalDelay"                         => row(0, 1,  32,  20), // signal/ delay.cc
            "SignalEnergy"                        => row(0, 1,   8,   8), // signal/ energy.cc
            "SignalFftAutoScale"                  => NOTHING,             // signal/ fft_auto_scale_kernel.cc
            "SignalFilterBank"                    => row(0, 1,  64,  36), // signal/ filter_bank.cc
            "SignalFilterBankLog"                 => row(0, 1,   8,   8), // signal/ filter_bank_log.cc
            "SignalFilterBankSpectralSubtraction" => row(0, 1,  56,  44), // signal/ filter_bank_spectral_subtraction.cc
            "SignalFilterBankSquareRoot"          => NOTHING,             // signal/ filter_bank_square_root.cc
            "SignalFramer"                        => row(0, 1,  40,  28), // signal/ framer.cc
            "SignalIrfft"                         => row(0, 1,  32,  24), // signal/ irfft.cc
            "SignalOverlapAdd"                    => row(0, 1,  32,  24), // signal/ overlap_add.cc
            "SignalPCAN"                          => row(0, 1,   4,   4), // signal/ pcan.cc
            "SignalRfft"                          => row(0, 1,  48,  32), // signal/ rfft.cc
            "SignalStacker"                       => row(0, 1,  56,  36), // signal/ stacker.cc
            "SignalWindow"                        => row(0, 1,   8,   8), // signal/ window.cc
            _ => None,
        },
        _ => None,
    }
}

/// Bytes of the struct that an operator's `Init` allocates, 0 where there is none: the reference kernel's, and what those
/// of CMSIS-NN add (`tensorflow/lite/micro/kernels/cmsis_nn/*.cc`). ESP-NN's add a word that fits into the rounding.
pub(super) fn data(library: Library, op: &Operator<'_>, width: Width) -> u64 {
    let own = kernel(op).map_or(0, |row| row.data.on(width));
    let more = match (library, op.code) {
        (Library::CmsisNn(_), Op::AVERAGE_POOL_2D | Op::MAX_POOL_2D) => ByWidth(4, 4),
        (Library::CmsisNn(_), Op::FULLY_CONNECTED) => ByWidth(32, 24),
        (Library::CmsisNn(_), Op::BATCH_MATMUL) => ByWidth(24, 20),
        (Library::CmsisNn(_), Op::UNIDIRECTIONAL_SEQUENCE_LSTM) => ByWidth(320, 220),
        _ => return own,
    };
    own + more.on(width)
}

/// Bytes of the options and of the struct of an operator, each with what its alignment takes at most.
pub(super) fn kept(kernel: Option<Kernel>, data: u64, width: Width) -> u64 {
    let options = kernel.and_then(|row| row.options).map_or(0, |options| {
        let block = options.on(width);
        block.bytes.next_multiple_of(block.align)
    });
    options + data.next_multiple_of(ALIGNMENT)
}

/// [`kept`] of an operator that does not exist yet: CONCATENATION, with the kernels of any library.
pub(super) fn kept_by_concatenation(width: Width) -> u64 {
    let data = CONCATENATION.map_or(0, |row| row.data.on(width));
    kept(CONCATENATION, data, width)
}

/// Further buffers that an operator's `Init` and `Prepare` allocate, in order, each aligned to 16: what depends on its
/// tensors.
///
/// Resources (ASSIGN_VARIABLE) belong to the whole model and are counted by the caller. Nothing where a tensor or an
/// option that decides is missing.
pub(super) fn buffers(
    library: Library,
    graph: &Graph<'_>,
    op: &Operator<'_>,
    width: Width,
) -> Vec<u64> {
    let mut list = list(graph, op, width).unwrap_or_default();
    if let Library::CmsisNn(core) = library {
        if matches!(op.code, Op::CONV_2D | Op::DEPTHWISE_CONV_2D) && !is_quantized(graph, op) {
            // cmsis_nn/conv.cc, cmsis_nn/depthwise_conv.cc: multipliers and shifts only where they are used.
            list.clear();
        }
        list.extend(kept_sums(core, graph, op));
    }
    list
}

/// Whether an operator's first input has whole numbers of 8 or 16 bits.
fn is_quantized(graph: &Graph<'_>, op: &Operator<'_>) -> bool {
    let input = op.inputs.first().copied().flatten();
    input.is_some_and(|t| matches!(graph.tensor(t).ty, Type::INT8 | Type::INT16))
}

fn list(graph: &Graph<'_>, op: &Operator<'_>, width: Width) -> Option<Vec<u64>> {
    let input = |i: usize| op.inputs.get(i).copied().flatten().map(|t| graph.tensor(t));
    let output = |i: usize| op.outputs.get(i).map(|&t| graph.tensor(t));
    let pointer = width.pointer();
    Some(match op.code {
        // conv_common.cc, depthwise_conv_common.cc, transpose_conv.cc: multiplier and shift of each output channel.
        Op::CONV_2D | Op::TRANSPOSE_CONV => vec![mul(dim(input(1)?, 0)?, 4); 2],
        Op::DEPTHWISE_CONV_2D => vec![mul(dim(input(1)?, 3)?, 4); 2],
        // fully_connected_common.cc: the same, if the weights have more than one scale.
        Op::FULLY_CONNECTED => match (input(0)?.ty, quantized_channels(input(1)?)) {
            (Type::FLOAT32, _) | (_, None | Some(1)) => vec![],
            (_, Some(channels)) => vec![mul(channels, 4); 2],
        },
        // Kernels that set dimensions of their output move these to RAM (`CreateWritableTensorDimsWithCopy`).
        Op::DEPTH_TO_SPACE | Op::SPACE_TO_DEPTH | Op::GATHER | Op::GATHER_ND | Op::L2_POOL_2D => {
            vec![dimensions(output(0)?)]
        }
        // reshape_common.cc: only where one is left open.
        Op::RESHAPE if output(0)?.shape.contains(&-1) => vec![dimensions(output(0)?)],
        // embedding_lookup.cc
        Op::EMBEDDING_LOOKUP => vec![dimensions(output(0)?), 2 * pointer],
        // batch_matmul.cc: operands are multiplied transposed, the left one as it is and the right one adjoint.
        Op::BATCH_MATMUL => {
            let o = op.table.builtin_options_as_batch_mat_mul_options();
            let (adj_x, adj_y) = o.map_or((false, false), |o| (o.adj_x(), o.adj_y()));
            let mut list = Vec::new();
            if matches!(input(0)?.ty, Type::INT8 | Type::INT16) {
                list.push(28);
            }
            for (transposed, tensor) in [(adj_x, input(0)?), (!adj_y, input(1)?)] {
                if transposed {
                    list.extend([width.eval_tensor(), dimensions(tensor), tensor.bytes]);
                }
            }
            list.push(dimensions(output(0)?));
            list
        }
        // add_n.cc, cumsum.cc, log_softmax.cc: data only if quantized.
        Op::ADD_N if output(0)?.ty == Type::INT8 => vec![40],
        Op::CUMSUM if output(0)?.ty == Type::INT8 => vec![36],
        Op::LOG_SOFTMAX if input(0)?.ty == Type::INT8 => vec![ByWidth(40, 28).on(width)],
        // softmax_common.cc: two tables of 513 values.
        Op::SOFTMAX if input(0)?.ty == Type::INT16 => vec![1026; 2],
        Op::CUSTOM => custom(graph, op, width, input(0)?)?,
        _ => vec![],
    })
}

/// The custom operators that come with TFLM.
fn custom(
    graph: &Graph<'_>,
    op: &Operator<'_>,
    width: Width,
    input: &Tensor<'_>,
) -> Option<Vec<u64>> {
    let option = |i: usize| u64::try_from(options(op)?.at(i)?).ok();
    let pointer = width.pointer();
    let inner = input
        .shape
        .last()
        .and_then(|&d| u64::try_from(d).ok())
        .unwrap_or(1);
    Some(match op.custom? {
        "TFLM_DECODE" => decode(graph, op, width)?,
        // delay.cc, framer.cc: two arrays of pointers, and a circular buffer for each row.
        "SignalDelay" => circular(input, inner, inner.saturating_add(option(0)?), width),
        "SignalFramer" => {
            let (frame, step) = (option(0)?, option(1)?);
            circular(input, inner, frame.checked_next_multiple_of(step)?, width)
        }
        // stacker.cc: channels times the frames before, after, and now.
        "SignalStacker" => {
            let frames = option(1)?.saturating_add(option(2)?).saturating_add(1);
            vec![circular_buffer(mul(option(0)?, frames), width)]
        }
        "SignalFilterBank" => vec![mul(option(0)?.saturating_add(1), 8)], // filter_bank.cc
        "SignalFilterBankSpectralSubtraction" => vec![mul(option(4)?, 4)],
        // overlap_add.cc: a frame for each row, and a pointer to it.
        "SignalOverlapAdd" => {
            let frames = dim(input, input.shape.len().checked_sub(2)?)?;
            let rows = input.elements().checked_div(mul(inner, frames))?;
            vec![
                mul(rows, pointer),
                rounded(mul(inner, fft_element_bytes(op)?), rows),
            ]
        }
        "SignalRfft" => vec![fft_state(option(1)?, fft_element_bytes(op)?, width)],
        // irfft_float.cc keeps the length, and a pointer, in front of the state.
        "SignalIrfft" => {
            let float = input.ty == Type::FLOAT32;
            let extra = if float { 2 * pointer } else { 0 };
            vec![fft_state(option(1)?, fft_element_bytes(op)?, width).saturating_add(extra)]
        }
        _ => vec![],
    })
}

/// decode.cc: a pointer for each output, and the state of its decoder, which the first byte of the ancillary tensor
/// chooses. A decoder of the application's own allocates what it likes.
fn decode(graph: &Graph<'_>, op: &Operator<'_>, width: Width) -> Option<Vec<u64>> {
    let mut list = vec![mul(op.outputs.len() as u64, width.pointer())];
    for (pair, &output) in op.inputs.chunks_exact(2).zip(&op.outputs) {
        let ancillary = graph.tensor(pair[1]?).table.buffer();
        match graph.model.buffer_data(ancillary)?.first()? {
            0 => list.push(ByWidth(72, 36).on(width)), // decode_state_lut.h
            1 => list.push(ByWidth(56, 28).on(width)), // decode_state_huffman.h
            2 => {
                // decode_state_prune.cc: and a copy of the zero points, if there are many and not all 0.
                list.push(ByWidth(80, 40).on(width));
                let output = graph.tensor(output);
                let zero_points = output.table.quantization().and_then(|q| q.zero_point());
                match quantized_channels(output) {
                    Some(channels)
                        if channels > 1
                            && zero_points.is_some_and(|z| z.iter().any(|z| z != 0)) =>
                    {
                        list.push(channels);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Some(list)
}

/// The state of a real Fourier transform of `length`: header, complex plan, and twiddle factors (KISS FFT 1.3.0,
/// `kiss_fftr_alloc` and `kiss_fft_alloc`).
fn fft_state(length: u64, element: u64, width: Width) -> u64 {
    let (complex, half) = (2 * element, length / 2);
    let plan = 264u64.saturating_add(mul(complex, half));
    (3 * width.pointer())
        .saturating_add(plan)
        .saturating_add(mul(complex, half + half / 2))
}

/// Arrays and circular buffers for the rows (`inner` elements each) of `input`.
fn circular(input: &Tensor<'_>, inner: u64, capacity: u64, width: Width) -> Vec<u64> {
    let rows = input.elements().checked_div(inner).unwrap_or(0);
    let pointers = mul(rows, width.pointer());
    vec![
        pointers,
        pointers,
        rounded(circular_buffer(capacity, width), rows),
    ]
}

/// A circular buffer of `capacity` 16-bit values, kept twice (`signal/src/circular_buffer.cc`).
fn circular_buffer(capacity: u64, width: Width) -> u64 {
    mul(capacity, 4).saturating_add(ByWidth(40, 24).on(width))
}

/// `count` buffers of `bytes`, each rounded up to 16.
fn rounded(bytes: u64, count: u64) -> u64 {
    mul(
        bytes.checked_next_multiple_of(16).unwrap_or(u64::MAX),
        count,
    )
}

/// A list of dimensions: its length, and each of them.
fn dimensions(tensor: &Tensor<'_>) -> u64 {
    4 + 4 * tensor.shape.len() as u64
}

/// How many scales a tensor has, if TFLM takes its quantization: both scale and zero point present.
pub(in crate::tflm) fn quantized_channels(tensor: &Tensor<'_>) -> Option<u64> {
    let quantization = tensor.table.quantization()?;
    let scales = quantization.scale()?.len() as u64;
    (scales > 0 && !quantization.zero_point()?.is_empty()).then_some(scales)
}

fn mul(count: u64, bytes: u64) -> u64 {
    count.saturating_mul(bytes)
}
