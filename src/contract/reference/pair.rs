//! An input and an output of an operator, as the rows look at them.

use arenaplan_schema::names::tensor_type_size;
use arenaplan_schema::tflite::TensorType as Type;

use super::order::{Needs, Nest};
use crate::contract::Overlap;
use crate::graph::{Graph, Operator, Storage, Tensor};

/// Rounds of a loop that are looked at one by one, and constants that are read: more than any model's, and soon done.
pub(super) const MOST: i64 = 1 << 18;

/// An input and an output, both in the arena, with the shapes that the kernel sees.
pub(super) struct Pair<'p, 'a> {
    pub(super) graph: &'p Graph<'a>,
    pub(super) op: &'p Operator<'a>,
    /// Position of the input.
    pub(super) input: usize,
    /// Position of the output.
    pub(super) output: usize,
    pub(super) from: &'p Tensor<'a>,
    pub(super) to: &'p Tensor<'a>,
    /// Shape of the input; every dimension is at least 1.
    pub(super) from_dims: Vec<i64>,
    /// Shape of the output.
    pub(super) to_dims: Vec<i64>,
    /// Bytes of an element of the input.
    pub(super) from_size: i64,
    /// Bytes of an element of the output.
    pub(super) to_size: i64,
}

impl<'p, 'a> Pair<'p, 'a> {
    /// `None` when one of them is absent, not in the arena, or of no known size.
    pub(super) fn new(
        graph: &'p Graph<'a>,
        op: &'p Operator<'a>,
        input: usize,
        output: usize,
    ) -> Option<Self> {
        let from = graph.tensor(op.inputs.get(input).copied().flatten()?);
        let to = graph.tensor(*op.outputs.get(output)?);
        // Two elements of INT4 may share a byte.
        let whole = |t: &Tensor<'_>| t.is_planned() && t.ty != Type::INT4;
        if !whole(from) || !whole(to) {
            return None;
        }
        let (from_dims, from_size) = measured(from)?;
        let (to_dims, to_size) = measured(to)?;
        Some(Self {
            graph,
            op,
            input,
            output,
            from,
            to,
            from_dims,
            to_dims,
            from_size,
            to_size,
        })
    }

    /// The promise of a kernel that needs these distances.
    pub(super) fn overlap(&self, needs: Needs) -> Overlap {
        let least =
            |need: Option<i64>, most: u64| u64::try_from(need.unwrap_or(0)).unwrap_or(0).min(most);
        Overlap {
            input_above_output: least(needs.input_above, self.to.bytes),
            output_above_input: least(needs.output_above, self.from.bytes),
            view_at: None,
        }
    }

    /// The promise of a kernel with these loops.
    pub(super) fn nest(&self, nest: &Nest) -> Overlap {
        self.overlap(nest.needs())
    }

    /// The promise of a kernel that copies by these loops, and may copy bytes onto themselves.
    pub(super) fn copy(&self, nest: &Nest) -> Overlap {
        Overlap {
            view_at: nest.view(),
            ..self.nest(nest)
        }
    }

    /// The promise of a kernel that has taken in its whole input before it writes anything.
    pub(super) fn any(&self) -> Overlap {
        self.overlap(Needs::default())
    }

    /// The promise of one `memcpy` of everything, by which nothing but the very same place is allowed.
    pub(super) fn whole_copy(&self) -> Overlap {
        Overlap {
            view_at: Some(0),
            ..Overlap::none(self.from.bytes, self.to.bytes)
        }
    }

    /// Whether both have one type.
    pub(super) fn same_type(&self) -> bool {
        self.from.ty == self.to.ty
    }

    /// Whether a compiler must keep the order of accesses to the two where they share bytes.
    ///
    /// It must for accesses of one type, signed or not, and where one of them is through a type of characters. Otherwise
    /// strict aliasing lets it take the two for strangers: QUANTIZE from float32 to int16 over its own input has been seen
    /// to go wrong. `bool` has the size of a character, but is none.
    pub(super) fn ordered_types(&self) -> bool {
        let character = |ty| matches!(ty, Type::INT8 | Type::UINT8);
        let signed = |ty| match ty {
            Type::UINT16 => Type::INT16,
            Type::UINT32 => Type::INT32,
            Type::UINT64 => Type::INT64,
            other => other,
        };
        let (from, to) = (self.from.ty, self.to.ty);
        signed(from) == signed(to) || character(from) || character(to)
    }

    /// Elements of the input.
    pub(super) fn elements_in(&self) -> i64 {
        product(&self.from_dims)
    }

    /// Elements of the output.
    pub(super) fn elements_out(&self) -> i64 {
        product(&self.to_dims)
    }

    /// The tensor at another position of the inputs.
    pub(super) fn tensor(&self, input: usize) -> Option<&'p Tensor<'a>> {
        let id = self.op.inputs.get(input).copied().flatten()?;
        Some(self.graph.tensor(id))
    }

    /// The shape of the tensor at another position of the inputs.
    pub(super) fn dims(&self, input: usize) -> Option<Vec<i64>> {
        Some(measured(self.tensor(input)?)?.0)
    }

    /// The numbers of a constant input.
    pub(super) fn constant(&self, input: usize) -> Option<Vec<i64>> {
        let tensor = self.tensor(input)?;
        if tensor.storage != Storage::Constant {
            return None;
        }
        let count = usize::try_from(tensor.elements()).ok()?;
        if count as i64 > MOST {
            return None;
        }
        let data = self.graph.model.buffer_data(tensor.table.buffer())?;
        match tensor.ty {
            Type::INT32 => numbers(data, count, |b| i32::from_le_bytes(b).into()),
            Type::INT64 => numbers(data, count, i64::from_le_bytes),
            _ => None,
        }
    }
}

fn numbers<const N: usize>(
    data: &[u8],
    count: usize,
    read: impl Fn([u8; N]) -> i64,
) -> Option<Vec<i64>> {
    let chunks = data.as_chunks::<N>().0.get(..count)?;
    Some(chunks.iter().map(|&bytes| read(bytes)).collect())
}

/// A tensor's shape and element size, if all its bytes are accounted for.
fn measured(tensor: &Tensor<'_>) -> Option<(Vec<i64>, i64)> {
    let size = i64::from(tensor_type_size(tensor.ty)?);
    let shape = tensor.prepared_shape.as_ref().unwrap_or(&tensor.shape);
    let dims: Vec<i64> = shape.iter().map(|&d| d.into()).collect();
    let bytes = dims
        .iter()
        .try_fold(size, |n, &d| n.checked_mul(d).filter(|_| d > 0))?;
    (u64::try_from(bytes) == Ok(tensor.bytes)).then_some((dims, size))
}

/// Elements of a shape whose bytes are known to be few.
pub(super) fn product(dims: &[i64]) -> i64 {
    dims.iter().product()
}

/// Bytes from one index to the next, for each dimension.
pub(super) fn strides(dims: &[i64], size: i64) -> Vec<i64> {
    let mut strides = vec![size; dims.len()];
    for k in (1..dims.len()).rev() {
        strides[k - 1] = strides[k] * dims[k];
    }
    strides
}

/// An axis, counted from the end when negative; `None` outside.
pub(super) fn axis(axis: i64, rank: usize) -> Option<usize> {
    let at = if axis < 0 { axis + rank as i64 } else { axis };
    usize::try_from(at).ok().filter(|&at| at < rank)
}
