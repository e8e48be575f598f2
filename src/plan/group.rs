//! What models that take turns on one arena ask of the plan of one of them.

use std::collections::BTreeSet;

use super::Options;
use crate::error::Error;
use crate::graph::{Graph, MAX_BYTES, TensorId};

/// Models that take turns on one arena: what that means for one of them. See [`share`](crate::share).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// How the group is noted in the file.
    pub note: String,
    /// Tensors that keep their values until the end of an invoke, for models that run later.
    pub keep: Vec<TensorId>,
}

/// Whether the tensors that are to lie at given offsets can.
pub(super) fn check_fixed(
    graph: &Graph<'_>,
    options: &Options,
    online: &BTreeSet<TensorId>,
) -> Result<(), Error> {
    for (k, &(id, offset)) in options.fixed.iter().enumerate() {
        let Some(tensor) = graph.tensors.get(id.index()) else {
            return Err(Error::NoSuchTensor {
                name: id.0.to_string(),
            });
        };
        let reason = if !tensor.is_planned() {
            "it has no place in the head that a plan could decide".into()
        } else if online.contains(&id) {
            "it is left to the device".into()
        } else if options.fixed[..k].iter().any(|f| f.0 == id) {
            "it is given several".into()
        } else if !offset.is_multiple_of(options.alignment()) {
            let align = options.alignment();
            format!("{offset} is not a multiple of the alignment, {align} bytes")
        } else if offset.saturating_add(tensor.bytes) > MAX_BYTES {
            format!("at {offset} it would end beyond what offsets can tell")
        } else {
            continue;
        };
        return Err(Error::CannotFix {
            tensor: tensor.label(),
            reason,
        });
    }
    Ok(())
}
