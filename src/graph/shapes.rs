//! Shapes that TFLM's kernels set themselves.
//!
//! TFLM takes the size of a tensor from the shape in the file, with a few exceptions: while they prepare, some kernels
//! replace the shape of their output by what follows from their input. Then that is what is planned. Files in which the
//! two differ are rare and not refused by TFLM; planned by the stored shape, they would compute wrong numbers.

use std::collections::BTreeMap;

use arenaplan_schema::tflite::{BuiltinOperator as Op, Padding};

use super::{MAX_BYTES, Operator, Storage, Tensor, TensorId};

/// Sets the sizes of outputs whose kernels decide them, in the order in which TFLM prepares the operators of a subgraph.
pub(super) fn resolve(tensors: &mut [Tensor<'_>], operators: &[Operator<'_>]) {
    let mut prepared: BTreeMap<TensorId, Vec<i64>> = BTreeMap::new();
    for op in operators {
        let Some(&output) = op.outputs.first() else {
            continue;
        };
        let Some(shape) = output_shape(op, tensors, &prepared) else {
            continue;
        };
        let tensor = &mut tensors[output.index()];
        let stored: Vec<i64> = tensor.shape.iter().map(|&d| d.into()).collect();
        let element = arenaplan_schema::names::tensor_type_size(tensor.ty).map_or(0, u64::from);
        let bytes = shape
            .iter()
            .try_fold(element, |n, &d| n.checked_mul(u64::try_from(d).ok()?))
            .filter(|&bytes| bytes <= MAX_BYTES);
        let (Some(bytes), true) = (bytes, shape != stored) else {
            continue;
        };
        match tensor.storage {
            Storage::Arena if bytes == 0 => tensor.storage = Storage::Empty,
            Storage::Arena | Storage::DynamicShape | Storage::Empty => {}
            _ => continue,
        }
        tensor.bytes = bytes;
        // Each dimension divides a number of bytes that fits.
        tensor.prepared_shape = shape.iter().map(|&d| i32::try_from(d).ok()).collect();
        prepared.insert(output, shape);
    }
}

/// The shape that the kernel of `op` gives its first output; `None` where it leaves the stored one.
fn output_shape(
    op: &Operator<'_>,
    tensors: &[Tensor<'_>],
    prepared: &BTreeMap<TensorId, Vec<i64>>,
) -> Option<Vec<i64>> {
    let dims = |t: TensorId| match prepared.get(&t) {
        Some(shape) => shape.clone(),
        None => tensors[t.index()].shape.iter().map(|&d| d.into()).collect(),
    };
    let input = |k: usize| op.inputs.get(k).copied().flatten().map(dims);
    let product = |shape: &[i64]| shape.iter().try_fold(1i64, |n, &d| n.checked_mul(d));
    match op.code {
        // reshape_common.cc: one open dimension follows from the number of elements; without an input for the shape,
        // [0] is how old files write a scalar.
        Op::RESHAPE => {
            let output = dims(*op.outputs.first()?);
            if op.inputs.len() == 1 && output == [0] {
                return Some(Vec::new());
            }
            let open = output.iter().position(|&d| d == -1)?;
            let mut shape = output;
            shape[open] = 1;
            let (all, others) = (product(&input(0)?)?, product(&shape)?);
            shape[open] = all
                .checked_div(others)
                .filter(|n| n.checked_mul(others) == Some(all))?;
            shape.iter().all(|&d| d >= 0).then_some(shape)
        }
        // depth_to_space.cc, space_to_depth.cc
        Op::DEPTH_TO_SPACE | Op::SPACE_TO_DEPTH => {
            let [batch, height, width, depth] = input(0)?[..] else {
                return None;
            };
            let block = |block: i32| {
                let block = i64::from(block);
                block
                    .checked_mul(block)
                    .filter(|&area| area > 0)
                    .map(|area| (block, area))
            };
            if op.code == Op::DEPTH_TO_SPACE {
                let options = op.table.builtin_options_as_depth_to_space_options()?;
                let (block, area) = block(options.block_size())?;
                Some(vec![
                    batch,
                    height.checked_mul(block)?,
                    width.checked_mul(block)?,
                    depth / area,
                ])
            } else {
                let options = op.table.builtin_options_as_space_to_depth_options()?;
                let (block, area) = block(options.block_size())?;
                Some(vec![
                    batch,
                    height / block,
                    width / block,
                    depth.checked_mul(area)?,
                ])
            }
        }
        // l2_pool_2d.cc
        Op::L2_POOL_2D => {
            let options = op.table.builtin_options_as_pool_2_doptions()?;
            let [batch, height, width, depth] = input(0)?[..] else {
                return None;
            };
            let out = |size: i64, filter: i32, stride: i32| {
                let (filter, stride) = (i64::from(filter), i64::from(stride));
                match options.padding() {
                    Padding::SAME => (size + stride - 1).checked_div(stride),
                    _ => (size + stride - filter).checked_div(stride),
                }
            };
            let height = out(height, options.filter_height(), options.stride_h())?;
            let width = out(width, options.filter_width(), options.stride_w())?;
            Some(vec![batch, height, width, depth])
        }
        // gather.cc
        Op::GATHER => {
            let options = op.table.builtin_options_as_gather_options();
            let (params, indices) = (input(0)?, input(1)?);
            let axis = from_end(options.map_or(0, |o| o.axis()), params.len())?;
            let batch = from_end(options.map_or(0, |o| o.batch_dims()), indices.len())?;
            let (before, after) = (params.get(..axis)?, params.get(axis + 1..)?);
            Some([before, indices.get(batch..)?, after].concat())
        }
        // gather_nd.cc
        Op::GATHER_ND => {
            let (params, indices) = (input(0)?, input(1)?);
            let (&depth, outer) = indices.split_last()?;
            Some([outer, params.get(usize::try_from(depth).ok()?..)?].concat())
        }
        _ => None,
    }
}

/// An axis, counted from the end when negative.
fn from_end(axis: i32, rank: usize) -> Option<usize> {
    match usize::try_from(axis) {
        Ok(axis) => Some(axis),
        Err(_) => rank.checked_sub(axis.unsigned_abs() as usize),
    }
}
