//! Operators that make each output element of the input elements at the same place.

use arenaplan_schema::tflite::TensorType as Type;

use super::order::{Loop, Needs, Nest};
use super::pair::Pair;
use super::rows::spread;
use crate::contract::Overlap;

/// One element after the other: read, then written.
///
/// SOFTMAX, LOG_SOFTMAX and L2_NORMALIZATION are of this kind, too: before they write a row in this order, they read it
/// once or twice, and what they write a second time is their own output.
pub(super) fn unary(pair: &Pair<'_, '_>) -> Option<Overlap> {
    if pair.input != 0 || !pair.ordered_types() || pair.elements_in() != pair.elements_out() {
        return None;
    }
    Some(forward(pair))
}

fn forward(pair: &Pair<'_, '_>) -> Overlap {
    let (from, to) = (pair.from_size, pair.to_size);
    pair.nest(&Nest {
        loops: vec![Loop::new(pair.elements_out(), to, from)],
        write_at: 0,
        read_at: 0,
        read_bytes: from,
        write_bytes: to,
        block: false,
    })
}

/// add_n.h: every input is read at an element before that is written.
pub(super) fn add_n(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let alike = pair.same_type() && pair.from_dims == pair.to_dims;
    alike.then(|| forward(pair))
}

/// broadcast_loop.h: output elements in order; an input stays where its dimension is 1.
///
/// Versions differ in whether an input that stays is read once or for each element; the promise holds for both.
pub(super) fn binary(pair: &Pair<'_, '_>) -> Option<Overlap> {
    if pair.input > 1 || !pair.ordered_types() {
        return None;
    }
    let (a, b) = (pair.dims(0)?, pair.dims(1)?);
    if broadcast(&a, &b)? != pair.to_dims {
        return None;
    }
    Some(pair.nest(&Nest {
        loops: spread(&pair.to_dims, &pair.from_dims, pair.to_size, pair.from_size)?,
        write_at: 0,
        read_at: 0,
        read_bytes: pair.from_size,
        write_bytes: pair.to_size,
        block: false,
    }))
}

/// The shape of what two shapes give together.
fn broadcast(a: &[i64], b: &[i64]) -> Option<Vec<i64>> {
    let rank = a.len().max(b.len());
    let dim = |shape: &[i64], k: usize| match (k + shape.len()).checked_sub(rank) {
        Some(at) => shape[at],
        None => 1,
    };
    (0..rank)
        .map(|k| match (dim(a, k), dim(b, k)) {
            (x, y) if x == y || y == 1 => Some(x),
            (1, y) => Some(y),
            _ => None,
        })
        .collect()
}

/// select.h, three inputs of one shape. With broadcasting it may copy whole rows of one or the other, or fill.
pub(super) fn select(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let alike = (0..3).all(|k| pair.dims(k).as_ref() == Some(&pair.to_dims));
    (alike && pair.input < 3 && pair.ordered_types()).then(|| forward(pair))
}

/// zeros_like.cc looks at nothing but the input's shape.
pub(super) fn zeros_like(pair: &Pair<'_, '_>) -> Option<Overlap> {
    Some(pair.overlap(Needs::default()))
}

/// Types that EXPAND_DIMS copies element by element.
pub(super) fn expand_dims(pair: &Pair<'_, '_>) -> Option<Overlap> {
    let supported = matches!(pair.from.ty, Type::INT8 | Type::INT16 | Type::FLOAT32);
    let alike = pair.same_type() && pair.elements_in() == pair.elements_out();
    (pair.input == 0 && supported && alike).then(|| Overlap {
        view_at: Some(0),
        ..forward(pair)
    })
}
