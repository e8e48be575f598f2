//! What kernels promise about memory: where an output may lie over an input while the kernel runs.
//!
//! A [`Contract`] is data. The device checks plans with it, and the compiler plans with it.

use crate::error::Fault;
use crate::node::{Node, Tensor};

/// What a kernel promises of each of its inputs in the arena and each of its outputs.
///
/// Let `d` be the address of the input less that of the output, in bytes. Whatever the contract, input and output may
/// lie apart, and inputs may share bytes with each other, as may not outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Contract {
    /// Nothing: no byte in common.
    Apart,
    /// All that is read of an input is read before the first byte of an output is written, or the bytes are moved as a
    /// whole: any overlap is right.
    Whole,
    /// Element by element in order, each written after it was read: an input of the output's number of elements may
    /// start where the output starts or above, as far as no element is written over one still to be read. Inputs with
    /// fewer elements, which are read again, lie apart.
    Elementwise,
    /// [`Whole`](Self::Whole), and the output's bytes are the input's: at one address nothing happens, and they
    /// are the same for as long as either is in use. This is RESHAPE.
    View,
    /// The inputs one after another along an axis: CONCATENATION. Each may be where it goes in the output, when it is
    /// contiguous there.
    Concatenation,
    /// As [`Concatenation`](Self::Concatenation), along a new axis: PACK.
    Pack,
    /// The input's parts along an axis: SPLIT, SPLIT_V. Each may be where it is in the input, when it is contiguous
    /// there.
    Split,
    /// As [`Split`](Self::Split), along an axis that is dropped: UNPACK.
    Unpack,
    /// A box of the input: SLICE. It may be where it is in the input, when it is contiguous there.
    Slice,
    /// As [`Slice`](Self::Slice): STRIDED_SLICE.
    StridedSlice,
    /// CONV_2D: output pixels in order, `pixels` at a time; an input's pixel is not read again once all outputs that
    /// need it are written.
    Convolution {
        /// `k`: while any byte of the output pixels from `e` to before `e + k` is written, the windows of these and all
        /// later pixels may still be read, and never those of pixels before `e`. With 1, a pixel's channels are written
        /// one after another, and all of its window may be read again for each.
        pixels: u8,
    },
    /// DEPTHWISE_CONV_2D, as [`Convolution`](Self::Convolution); a channel of a window is not read again once the outputs of
    /// its pixel that come from it are written, nor one before it.
    Depthwise {
        /// As [`Convolution`](Self::Convolution).
        pixels: u8,
    },
    /// AVERAGE_POOL_2D, MAX_POOL_2D: output pixels in order.
    Pooling,
    /// FULLY_CONNECTED: row by row, and each row is read for each output of it.
    Rows,
    /// SOFTMAX and the like: row by row along the last axis, in place.
    RowsInPlace,
}

/// How close an input and an output of one operator may lie, in bytes. With `d` as above:
///
/// ```text
/// d >= input_above_output      right
/// -d >= output_above_input     right
/// d == view_at                 right, and both then have the same bytes in common
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// At most the output's bytes, which is always right.
    pub input_above_output: usize,
    /// At most the input's bytes, which is always right.
    pub output_above_input: usize,
    /// Where the operator copies bytes onto themselves.
    pub view_at: Option<isize>,
}

/// What `contract` promises of input `input` and output `output` of `node`; both are in the arena.
///
/// # Errors
/// If the operator has no such tensors, or shapes and options that its kernel refuses.
pub fn overlap(
    contract: Contract,
    node: &Node<'_>,
    input: usize,
    output: usize,
) -> Result<Overlap, Fault> {
    let _ = contract;
    let bytes = |tensor: Tensor<'_>| tensor.byte_len().ok_or(Fault::Shape(tensor.operand()));
    Ok(Overlap {
        input_above_output: bytes(node.output(output)?)?,
        output_above_input: bytes(node.input(input)?)?,
        view_at: None,
    })
}
