//! Scratch memory that TFLM's kernels request while they prepare: the rows of the reference kernels. Those of the
//! libraries that differ are in `cmsis_nn` and `esp_nn` beside it.
//!
//! A request is one call of `RequestScratchBufferInArena`; TFLM places it on the device, around the plan, for the
//! time of its operator. A request of no bytes takes no room in the head, but counts in the tail and while planning.
//! Rows name the file of TFLM's `tensorflow/lite/micro/kernels` (or `signal/micro/kernels`) that asks.

pub(crate) mod cmsis_nn;
mod esp_nn;
pub(crate) mod flexbuffer;

use arenaplan_schema::tflite::{BuiltinOperator as Op, TensorType as Type};

use crate::graph::{Graph, Operator, Tensor};
use crate::own;
use crate::prepared::Prepared;
use crate::target::Library;
use flexbuffer::Map;

/// Bytes of each scratch request of `op`, in the order in which its kernel in `library` asks.
///
/// Bytes are what the kernel passes, not rounded. Where they depend on the size of a pointer (ADD_N), it is that of
/// 64 bits, the larger one. Nothing for an operator that asks for none, that TFLM does not know, or whose tensors are
/// not what its kernel accepts. Compressed constants (metadata `COMPRESSION_METADATA`) ask for more; they are not counted.
pub fn scratch_requests(library: Library, graph: &Graph<'_>, op: &Operator<'_>) -> Vec<u64> {
    requests(library, graph, op, Prepared::stored(graph))
}

/// As [`scratch_requests`], of a file with more or less prepared data.
pub(crate) fn requests(
    library: Library,
    graph: &Graph<'_>,
    op: &Operator<'_>,
    prepared: Prepared<'_>,
) -> Vec<u64> {
    let own = match library {
        Library::Reference => None,
        Library::CmsisNn(core) => cmsis_nn::requests(core, graph, op),
        Library::EspNn(chip) => esp_nn::requests(chip, graph, op),
        Library::Arenaplan => Some(own::scratch(graph, op, prepared)),
    };
    let mut list = own.or_else(|| reference(graph, op)).unwrap_or_default();
    list.iter_mut()
        .for_each(|bytes| *bytes = (*bytes).min(LIMIT));
    list
}

/// More than any memory, and far from overflow when sizes are added: a file may ask for any size in its options.
const LIMIT: u64 = 1 << 40;

/// The reference kernels' requests; `None` when a tensor or an option that decides is missing.
fn reference(graph: &Graph<'_>, op: &Operator<'_>) -> Option<Vec<u64>> {
    let input = |i: usize| op.inputs.get(i).copied().flatten().map(|t| graph.tensor(t));
    let output = |i: usize| op.outputs.get(i).map(|&t| graph.tensor(t));
    Some(match op.code {
        // conv_common.cc, depthwise_conv_common.cc, fully_connected.cc: int4 weights, unpacked.
        Op::CONV_2D | Op::DEPTHWISE_CONV_2D | Op::FULLY_CONNECTED => {
            let filter = input(1)?;
            if filter.ty == Type::INT4 {
                vec![filter.elements()]
            } else {
                vec![]
            }
        }
        // transpose_conv.cc: a sum for each output element; a 16-bit bias is widened to 64 bits as well.
        Op::TRANSPOSE_CONV => match input(2)?.ty {
            Type::INT8 => vec![words(output(0)?.elements(), 4)],
            Type::INT16 => {
                let sums = words(output(0)?.elements(), 8);
                match input(3).filter(|bias| bias.ty == Type::INT16) {
                    Some(bias) => vec![sums, words(bias.elements(), 8)],
                    None => vec![sums],
                }
            }
            _ => vec![],
        },
        // svdf_common.cc: the filters' activations, and, if quantized, the units' sums.
        Op::SVDF => {
            let (batch, filters) = (dim(input(0)?, 0)?, dim(input(1)?, 0)?);
            let activations = words(batch, 4).saturating_mul(filters);
            if input(0)?.ty == Type::INT8 {
                let rank = op.table.builtin_options_as_svdfoptions()?.rank();
                let units = filters.checked_div(u64::try_from(rank).ok()?)?;
                vec![activations, words(batch, 4).saturating_mul(units)]
            } else {
                vec![activations]
            }
        }
        // unidirectional_sequence_lstm.cc: four gates, each a value of the cell state's type for batch and state.
        Op::UNIDIRECTIONAL_SEQUENCE_LSTM => {
            let time_major = op
                .table
                .builtin_options_as_unidirectional_sequence_lstmoptions()
                .is_some_and(|o| o.time_major());
            let batch = dim(input(0)?, usize::from(time_major))?;
            let (hidden, cell) = (input(18)?, input(19)?);
            let size = u64::from(arenaplan_schema::names::tensor_type_size(cell.ty)?);
            vec![words(batch, size).saturating_mul(dim(hidden, 1)?); 4]
        }
        // reduce_common.cc: sums if quantized, a counter for each dimension, the axes resolved.
        Op::MEAN | Op::SUM => {
            let mut list = index_buffers(input(0)?, input(1)?);
            if matches!(input(0)?.ty, Type::INT8 | Type::INT16) {
                list.insert(0, words(output(0)?.elements(), 4));
            }
            list
        }
        Op::REDUCE_MAX | Op::REDUCE_MIN | Op::REDUCE_ALL => index_buffers(input(0)?, input(1)?),
        // mirror_pad.cc: elements below each dimension, of output and input.
        Op::MIRROR_PAD => vec![words(input(0)?.shape.len() as u64, 4); 2],
        // add_n.cc: a pointer to each input.
        Op::ADD_N => match output(0)?.ty {
            Type::FLOAT32 | Type::INT8 => vec![words(op.inputs.len() as u64, 8)],
            _ => vec![],
        },
        Op::CUSTOM => match op.custom? {
            // rfft.cc: the input, padded to the length of the transform.
            "SignalRfft" => {
                let length = u64::try_from(options(op)?.at(1)?).ok()?;
                vec![words(length, fft_element_bytes(op)?)]
            }
            "TFLite_Detection_PostProcess" => detection(op, input(0)?, input(1)?)?,
            _ => vec![],
        },
        _ => vec![],
    })
}

/// detection_postprocess.cc, eleven requests.
fn detection(op: &Operator<'_>, boxes: &Tensor<'_>, scores: &Tensor<'_>) -> Option<Vec<u64>> {
    let options = options(op)?;
    let count = |key| u64::try_from(options.get(key).unwrap_or(0)).ok();
    let (detections, classes) = (count("max_detections")?, count("num_classes")?);
    let n = dim(boxes, 1)?;
    let floats = words(n, 4);
    let per_detection = floats.saturating_mul(detections);
    let all_scores = words(dim(scores, 1)?, 4).saturating_mul(dim(scores, 2)?);
    Some(vec![
        n,                                              // which boxes are still candidates
        words(n, 16),                                   // boxes, decoded
        all_scores,                                     // scores, dequantized
        floats,                                         // scores of one class
        floats,                                         // scores kept
        per_detection,                                  // scores after suppression
        per_detection,                                  // the same, sorted
        floats,                                         // indices kept
        per_detection,                                  // indices, sorted
        floats.saturating_mul(detections.max(classes)), // room to sort in
        floats.saturating_mul(detections.min(n)),       // boxes selected
    ])
}

/// reduce_common.cc: `int` for each dimension of the input, and for each axis.
fn index_buffers(input: &Tensor<'_>, axes: &Tensor<'_>) -> Vec<u64> {
    vec![
        words(input.shape.len() as u64, 4),
        words(axes.elements(), 4),
    ]
}

/// The options of a custom operator.
pub(crate) fn options<'a>(op: &Operator<'a>) -> Option<Map<'a>> {
    Map::root(op.table.custom_options()?.bytes())
}

/// Bytes of the real numbers that a Fourier transform works on: option `T`, a `TensorType`.
pub(crate) fn fft_element_bytes(op: &Operator<'_>) -> Option<u64> {
    match Type(i8::try_from(options(op)?.at(0)?).ok()?) {
        Type::INT16 => Some(2),
        Type::INT32 | Type::FLOAT32 => Some(4),
        _ => None,
    }
}

fn words(count: u64, bytes: u64) -> u64 {
    count.saturating_mul(bytes)
}

/// Dimension `axis`; `None` outside the shape or where it is unknown.
pub(crate) fn dim(tensor: &Tensor<'_>, axis: usize) -> Option<u64> {
    u64::try_from(*tensor.shape.get(axis)?).ok()
}
