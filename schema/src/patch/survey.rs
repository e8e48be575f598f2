//! What a patch has to know of the model: where its tables are, and that nothing stands in the way.

use std::collections::BTreeSet;

use super::{PROVENANCE_NAME, PatchError};
use crate::view::{Model, PLAN_NAME, PREPARED_NAME, SubGraph, Table, Tables};

/// Slots of the root table known here, the last being `external_buffers`.
pub(super) const MODEL_SLOTS: u16 = 10;

/// A bound on the elements that are looked at in all vectors together.
///
/// An element of a vector of tables takes 4 bytes, so vectors that do not overlap each other cannot
/// have more than a quarter of the file's size. A damaged file whose vectors do overlap could else
/// keep a reader busy for a time that grows with the square of its size.
pub(super) struct Steps {
    left: usize,
    entered: BTreeSet<usize>,
}

impl Steps {
    pub(super) fn for_file(bytes: &[u8]) -> Self {
        Self {
            left: bytes.len() / 4,
            entered: BTreeSet::new(),
        }
    }

    pub(super) fn take(&mut self, elements: usize) -> Result<(), PatchError> {
        self.left = self
            .left
            .checked_sub(elements)
            .ok_or(PatchError::OverlappingVectors)?;
        Ok(())
    }

    /// Whether the vector at `start` has yet to be looked at; tables may share a vector.
    pub(super) fn enter(&mut self, start: usize, elements: usize) -> Result<bool, PatchError> {
        if elements == 0 || !self.entered.insert(start) {
            return Ok(false);
        }
        self.take(elements)?;
        Ok(true)
    }
}

/// The tables of a model; positions are bytes from its start.
pub(super) struct Survey<'a> {
    pub(super) root: Table<'a>,
    pub(super) subgraphs: Tables<'a, SubGraph<'a>>,
    /// Tensors of all subgraphs together.
    pub(super) tensors: usize,
    pub(super) buffers: Vec<usize>,
    /// The metadata entries that stay: all but plans, prepared data and provenance.
    pub(super) metadata: Vec<usize>,
}

impl<'a> Survey<'a> {
    pub(super) fn of(model: &Model<'a>) -> Result<Self, PatchError> {
        let root = model.table();
        if let Some(slot) = (MODEL_SLOTS..root.slots()).find(|slot| root.has(*slot)) {
            return Err(PatchError::NewerModelField { slot });
        }
        let mut steps = Steps::for_file(model.as_bytes());
        let mut buffers = Vec::new();
        steps.take(model.buffers()?.len())?;
        for buffer in model.buffers()? {
            buffers.push(buffer?.table().position());
        }
        let subgraphs = model.subgraphs()?;
        steps.take(subgraphs.len())?;
        let mut tensors = 0_usize;
        for (index, subgraph) in subgraphs.iter().enumerate() {
            let vector = subgraph?.tensors()?;
            tensors = tensors.saturating_add(vector.len());
            if !steps.enter(vector.start(), vector.len())? {
                continue;
            }
            for (tensor, view) in vector.iter().enumerate() {
                let buffer = view?.buffer()?;
                // Buffer 0 means "none", also in a model without buffers.
                if buffer as usize >= buffers.len().max(1) {
                    return Err(PatchError::TensorBuffer {
                        subgraph: index,
                        tensor,
                        buffer,
                        buffers: buffers.len(),
                    });
                }
            }
        }
        let mut metadata = Vec::new();
        let entries = model.metadata()?;
        steps.take(entries.len())?;
        for (index, entry) in entries.iter().enumerate() {
            let entry = entry?;
            let ours = [PLAN_NAME, PREPARED_NAME, PROVENANCE_NAME];
            if entry
                .name()?
                .is_some_and(|name| ours.iter().any(|ours| name == **ours))
            {
                continue;
            }
            let buffer = entry.buffer()?;
            if buffer as usize >= buffers.len() {
                return Err(PatchError::MetadataBuffer {
                    entry: index,
                    buffer,
                    buffers: buffers.len(),
                });
            }
            metadata.push(entry.table().position());
        }
        Ok(Self {
            root,
            subgraphs,
            tensors,
            buffers,
            metadata,
        })
    }
}
