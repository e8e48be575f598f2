//! What kernels promise about memory: where an output may lie over an input while the kernel runs.
//!
//! A [`Contract`] is data. The device checks plans with it, and the compiler plans with it.

use crate::error::Fault;
use crate::kernel::Kernel;
use crate::node::{Node, Shape, Tensor};

mod borders;
mod lookup;
mod moves;
mod windows;

pub use lookup::{overlap_of, scratch_of};
pub(crate) use lookup::{unplaced, with};

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
    /// Element by element in order, each written after all elements up to it were read for the last time: an input of the
    /// output's number of elements may start where the output starts or above, as far as no element is written over one
    /// still to be read. Inputs with fewer elements, which are read again, lie apart.
    Elementwise,
    /// [`Whole`](Self::Whole), and the output's bytes are the input's: at one address nothing happens, and they
    /// are the same for as long as either is in use. This is RESHAPE.
    View,
    /// The inputs one after another along an axis: CONCATENATION. The output is written from its start to its end, piece
    /// by piece, each moved as a whole. An input may be where it goes in the output, when it is contiguous there.
    Concatenation,
    /// As [`Concatenation`](Self::Concatenation), along a new axis: PACK.
    Pack,
    /// The input's parts along an axis: SPLIT, SPLIT_V. The input is read from its start to its end, piece by piece, each
    /// moved as a whole. An output may be where it is in the input, when it is contiguous there.
    Split,
    /// As [`Split`](Self::Split), along an axis that is dropped: UNPACK.
    Unpack,
    /// A box of the input, of which nothing else is read: SLICE. The output is written from its start to its end, piece by
    /// piece, each moved as a whole. It may be where it is in the input, when it is contiguous there.
    Slice,
    /// As [`Slice`](Self::Slice): STRIDED_SLICE.
    StridedSlice,
    /// The input within a border: PAD, PADV2. The output is written from its start to its end, once, and each row of the input,
    /// which is the innermost axis with a border and all within it, is moved as a whole.
    Padding,
    /// As [`Padding`](Self::Padding), with the border from the input, whose elements are read again for it: MIRROR_PAD.
    MirrorPadding,
    /// CONV_2D: output pixels in order, counted through batch, rows and columns. While a pixel and the `pixels - 1` behind it
    /// are written, its window and those of all later pixels may be read, and windows of earlier pixels not any more. So a
    /// block of that many pixels may be read before it is written, wherever it starts.
    Convolution {
        /// The most pixels that are written after the windows of all of them are read.
        pixels: u8,
    },
    /// DEPTHWISE_CONV_2D, as [`Convolution`](Self::Convolution); a channel of a window is not read again once the outputs of
    /// its pixel that come from it are written, nor one before it.
    Depthwise {
        /// The most pixels that are written after the windows of all of them are read.
        pixels: u8,
    },
    /// AVERAGE_POOL_2D, MAX_POOL_2D: as [`Convolution`](Self::Convolution), pixel by pixel.
    Pooling,
    /// FULLY_CONNECTED: row by row, and a row may be read until the last output of it is written. Weights and biases lie
    /// apart.
    Rows,
    /// SOFTMAX and the like: row by row along the last axis, and within a row each element written after all elements up
    /// to it were read for the last time, as with [`Elementwise`](Self::Elementwise).
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

/// What a contract promises of a pair; `None` where it promises nothing.
pub(crate) type Promise = fn(Contract, &Node<'_>, &Pair<'_>) -> Option<Overlap>;

/// The function for a contract. A kernel has it beside the contract, so that firmware links no others.
pub(crate) const fn promise(contract: Contract) -> Promise {
    match contract {
        Contract::Apart => apart,
        Contract::Whole => whole,
        Contract::Elementwise | Contract::RowsInPlace => elementwise,
        Contract::View => view,
        Contract::Concatenation => moves::concatenation,
        Contract::Pack => moves::pack,
        Contract::Split => moves::split,
        Contract::Unpack => moves::unpack,
        Contract::Slice => moves::slice,
        Contract::StridedSlice => moves::strided_slice,
        Contract::Padding => borders::padding,
        Contract::MirrorPadding => borders::mirror_padding,
        Contract::Convolution { .. } => windows::convolution,
        Contract::Depthwise { .. } => windows::depthwise,
        Contract::Pooling => windows::pooling,
        Contract::Rows => rows,
    }
}

/// What `contract` promises of input `input` and output `output` of `node`; both are in the arena.
///
/// Where one tensor is several inputs of an operator, the promise is about its use in this position alone.
///
/// # Errors
/// If the operator has no such tensors, or their sizes are not known.
pub fn overlap(
    contract: Contract,
    node: &Node<'_>,
    input: usize,
    output: usize,
) -> Result<Overlap, Fault> {
    Pair::of(node, input, output).map(|pair| pair.promised(promise(contract), contract, node))
}

/// An input and an output of an operator. Promises are asked for only where neither is empty.
pub(crate) struct Pair<'a> {
    /// Position of the input.
    input: usize,
    /// Position of the output.
    output: usize,
    from: Shape<'a>,
    to: Shape<'a>,
    from_bytes: usize,
    to_bytes: usize,
    /// Bytes of an element of the input, and of the output.
    from_size: usize,
    to_size: usize,
}

impl<'a> Pair<'a> {
    pub(crate) fn of(node: &Node<'a>, input: usize, output: usize) -> Result<Self, Fault> {
        let (from, from_bytes, from_size) = sizes(&node.input(input))?;
        let (to, to_bytes, to_size) = sizes(&node.output(output))?;
        Ok(Self {
            input,
            output,
            from,
            to,
            from_bytes,
            to_bytes,
            from_size,
            to_size,
        })
    }

    /// What `kernel`, which runs `node`, promises.
    pub(crate) fn promised_by(&self, kernel: &Kernel, node: &Node<'_>) -> Overlap {
        self.promised(kernel.promise, kernel.contract, node)
    }

    fn promised(&self, promise: Promise, contract: Contract, node: &Node<'_>) -> Overlap {
        if self.from_bytes == 0 || self.to_bytes == 0 {
            return Overlap::ANY;
        }
        promise(contract, node, self).unwrap_or(Overlap {
            input_above_output: self.to_bytes,
            output_above_input: self.from_bytes,
            view_at: None,
        })
    }

    /// With the input at least so many bytes above the output.
    fn above(&self, bytes: usize) -> Overlap {
        Overlap {
            input_above_output: bytes.min(self.to_bytes),
            output_above_input: self.from_bytes,
            view_at: None,
        }
    }
}

#[inline(never)]
fn sizes<'a>(tensor: &Result<Tensor<'a>, Fault>) -> Result<(Shape<'a>, usize, usize), Fault> {
    let tensor = match tensor {
        Ok(tensor) => tensor,
        Err(fault) => return Err(*fault),
    };
    match (tensor.byte_len(), tensor.element_type().bytes()) {
        (Some(bytes), Some(size)) => Ok((tensor.shape(), bytes, size)),
        _ => Err(tensor.wrong_shape()),
    }
}

impl Overlap {
    const ANY: Self = Self {
        input_above_output: 0,
        output_above_input: 0,
        view_at: None,
    };

    /// Whether an input may lie `distance` bytes above its output (below it, when negative).
    pub fn allows(&self, distance: isize) -> bool {
        let bytes = distance.unsigned_abs();
        self.view_at == Some(distance)
            || (distance >= 0 && bytes >= self.input_above_output)
            || (distance <= 0 && bytes >= self.output_above_input)
    }
}

fn apart(_: Contract, _: &Node<'_>, _: &Pair<'_>) -> Option<Overlap> {
    None
}

fn whole(_: Contract, _: &Node<'_>, _: &Pair<'_>) -> Option<Overlap> {
    Some(Overlap::ANY)
}

fn view(_: Contract, _: &Node<'_>, pair: &Pair<'_>) -> Option<Overlap> {
    (pair.input == 0 && pair.from_bytes == pair.to_bytes).then_some(Overlap {
        view_at: Some(0),
        ..Overlap::ANY
    })
}

/// When the last element but one is written, the last one is still to be read.
fn elementwise(_: Contract, _: &Node<'_>, pair: &Pair<'_>) -> Option<Overlap> {
    let elements = pair.from.elements()?;
    let wider = pair.to_size.saturating_sub(pair.from_size);
    // Both factors are small against what the output has in bytes.
    let above = elements.saturating_sub(1).saturating_mul(wider);
    (elements == pair.to.elements()?).then(|| pair.above(above))
}

/// While a row is written, it and those behind it may still be read: linear from row to row, so that the first or the last
/// one needs most.
fn rows(_: Contract, node: &Node<'_>, pair: &Pair<'_>) -> Option<Overlap> {
    let [_, inputs] = node.input(1).ok()?.shape().dims()?;
    let outputs = pair.to.dim_from_end(0);
    let rows = pair.to.elements()?.checked_div(outputs)?;
    if pair.input != 0 || rows.checked_mul(inputs)? != pair.from.elements()? {
        return None;
    }
    let first = outputs.saturating_mul(pair.to_size);
    let before_last = pair
        .from_bytes
        .checked_sub(pair.from_bytes.checked_div(rows)?)?;
    Some(pair.above(first.max(pair.to_bytes.saturating_sub(before_last))))
}
