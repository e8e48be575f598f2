//! Writes a memory plan, operator orders and rewritten subgraphs into a model without touching what is
//! there.
//!
//! References of the format are relative and point forward, so nothing has to be re-packed: the new
//! file is a prefix with a new root table, followed by the original file byte for byte.
//!
//! ```text
//! | root table | vectors | tables | plan | prepared | provenance | padding | original file, as it was |
//!      |          |                                                          ^   ^     ^
//!      |          '--- entries: the original's and the new ones -------------'---'     |
//!      '---- operator codes, description, signatures, ... -----------------------------'
//! ```
//!
//! - Fields and tables that this crate has never heard of survive, as nothing of the original is
//!   rewritten.
//! - The prefix's length is a multiple of 64, so constants keep their alignment.
//! - Offsets that count from the start of the file (`Buffer.offset`, large custom options; files
//!   above 2 GB) are moved along. That is the one change to the original's bytes, and [`strip`]
//!   undoes it.
//! - [`strip`] gives back the original file exactly, which it proves by its digest.
//! - The same model and edit give the same bytes, and planning again replaces the plan:
//!   [`original_of`] first.
//!
//! A ZIP archive behind the model (TensorFlow Lite's associated files) stays there. Readers that
//! allow for bytes in front of an archive, as most do, still find its files; its own offsets are not
//! looked at.

mod error;
mod offsets;
mod order;
mod prefix;
mod provenance;
mod rewrite;
mod strip;
mod subgraphs;
mod survey;

use sha2::{Digest, Sha256};

pub use error::{PatchError, TensorUse};
pub use provenance::{PROVENANCE_NAME, Provenance, Stamp, inspect_provenance};
pub use rewrite::{NewOperator, NewTensor, Rewrite};
pub use strip::{original_of, strip};

use crate::view::{Model, ONLINE, PLAN_NAME, PREPARED_NAME, Table};
use prefix::{Label, Prefix, Value};
use rewrite::Rewrites;
use subgraphs::Shared;
use survey::{MODEL_SLOTS, Survey};

/// The version word of the plans written; TensorFlow Lite Micro does not look at it.
const PLAN_VERSION: u32 = 1;

/// What [`graft`] changes in a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// Other tensors and operators for subgraphs, at most one rewrite a subgraph.
    pub rewrite: Vec<Rewrite>,
    /// The memory plan: the offset in the arena, in bytes, of each tensor of all subgraphs (as
    /// rewritten), one subgraph after another; -1 leaves a tensor to the device. With `None` the new file carries
    /// no plan, whether the original has one or not.
    pub plan: Option<Vec<i32>>,
    /// New operator orders, at most one a subgraph. In a subgraph that is rewritten they are of the
    /// rewrite's operators.
    pub operator_order: Vec<OperatorOrder>,
    /// What the runtime of this project would compute otherwise, as its module `prepared` describes it, for the operators in
    /// their new order; not looked at here. With `None` the new file carries none.
    pub prepared: Option<Vec<u8>>,
    /// What to say of the tool in the file's provenance.
    pub stamp: Stamp,
}

/// A new order for the operators of a subgraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorOrder {
    /// Index of the subgraph.
    pub subgraph: usize,
    /// For each new position, the index that the operator has in the original, or in the rewrite.
    pub order: Vec<u32>,
}

/// Puts `edit` in front of the model `original` and gives the new file.
///
/// Metadata entries named `OfflineMemoryAllocation` are left out of the new file's list, as are
/// provenance and prepared data of this tool; their bytes stay in the original part. A file that this tool has
/// already patched should go through [`original_of`] first; else the patch comes on top, and
/// [`strip`] takes that one off alone.
///
/// # Errors
/// [`PatchError::Read`] for a damaged model; the `Plan...`, `Order...` and `Rewrite...` errors for an
/// edit that does not fit the model; the others for what cannot be patched, as each says. The plan
/// is not checked for sense.
pub fn graft(original: &[u8], edit: &Edit) -> Result<Vec<u8>, PatchError> {
    let model = Model::new(original)?;
    let survey = Survey::of(&model)?;
    let rewrites = Rewrites::new(&model, &survey, &edit.rewrite)?;
    let moved = offsets::find(&model, 0)?;
    let plan = edit
        .plan
        .as_deref()
        .map(|offsets| plan_data(&survey, &rewrites, offsets))
        .transpose()?;
    let orders = order::other_orders(&survey, &rewrites, &edit.operator_order)?;
    let new_subgraphs = !orders.is_empty() || !rewrites.of_subgraph.is_empty();
    let new_codes = !rewrites.codes.appended.is_empty();
    let record = Provenance {
        stamp: edit.stamp.clone(),
        original_sha256: Sha256::digest(original).into(),
        original_bytes: original.len() as u64,
    }
    .encode()?;

    let (mut prefix, root) = Prefix::new();
    let (subgraphs, buffers, metadata) = (prefix.label(), prefix.label(), prefix.label());
    let codes = prefix.label();
    let mut fields = [Value::Absent; MODEL_SLOTS as usize];
    for (slot, field) in (0..).zip(&mut fields) {
        *field = match slot {
            0 => scalar(survey.root, slot)?,
            1 if new_codes => Value::To(codes),
            2 if new_subgraphs => Value::To(subgraphs),
            4 => Value::To(buffers),
            6 => Value::To(metadata),
            _ => referred(survey.root, slot)?,
        };
    }
    prefix.table(root, &fields)?;
    let mut shared = Shared::new(&survey, &rewrites);
    if new_subgraphs {
        subgraphs::write(
            &mut prefix,
            subgraphs,
            &survey,
            &rewrites,
            &orders,
            &mut shared,
        )?;
    }
    if new_codes {
        subgraphs::write_codes(&mut prefix, codes, &rewrites.codes)?;
    }
    let mut entries = Vec::new();
    entries.extend(plan.as_deref().map(|data| Entry {
        name: PLAN_NAME,
        data,
        alignment: 16,
    }));
    // The schema asks for 16 of all buffers. These two are of words and of bytes, and nobody else reads them.
    entries.extend(edit.prepared.as_deref().map(|data| Entry {
        name: PREPARED_NAME,
        data,
        alignment: 4,
    }));
    entries.push(Entry {
        name: PROVENANCE_NAME,
        data: &record,
        alignment: 4,
    });
    write_metadata(&mut prefix, buffers, metadata, &survey, shared, &entries)?;

    let mut file = prefix.finish()?;
    let prefix_bytes = file.len();
    file.extend_from_slice(original);
    if !moved.is_empty() {
        move_offsets(&mut file, prefix_bytes, &moved)?;
    }
    Ok(file)
}

/// The plan in TensorFlow Lite Micro's layout: version, number of subgraphs, number of offsets,
/// offsets.
fn plan_data(
    survey: &Survey<'_>,
    rewrites: &Rewrites<'_>,
    offsets: &[i32],
) -> Result<Vec<u8>, PatchError> {
    let tensors = survey.tensors.saturating_add(rewrites.added_tensors);
    if offsets.len() != tensors {
        return Err(PatchError::PlanTensorCount {
            offsets: offsets.len(),
            tensors,
        });
    }
    if let Some((tensor, &offset)) = offsets
        .iter()
        .enumerate()
        .find(|(_, offset)| **offset < ONLINE)
    {
        return Err(PatchError::PlanOffset { tensor, offset });
    }
    let word = |count: usize| u32::try_from(count).map_err(|_| PatchError::TooLarge);
    let header = [
        PLAN_VERSION,
        word(survey.subgraphs.len())?,
        word(offsets.len())?,
    ];
    let mut data: Vec<u8> = header.into_iter().flat_map(u32::to_le_bytes).collect();
    data.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
    Ok(data)
}

/// A metadata entry to add, with its buffer.
struct Entry<'a> {
    name: &'a str,
    data: &'a [u8],
    alignment: usize,
}

/// Writes the buffer and the metadata vectors, each with the original's entries first. Then come what
/// new tensors need, and the buffers and entries of `entries`.
fn write_metadata(
    prefix: &mut Prefix,
    buffers: Label,
    metadata: Label,
    survey: &Survey<'_>,
    shared: Shared,
    entries: &[Entry<'_>],
) -> Result<(), PatchError> {
    let new: Vec<[Label; 4]> = entries
        .iter()
        .map(|_| [(); 4].map(|()| prefix.label()))
        .collect();
    // The first buffer stands for "no data", so it cannot be one of ours.
    let sentinel = survey.buffers.is_empty().then(|| prefix.label());
    let of_tensors: Vec<Value> = shared.buffers().collect();
    let first = survey.buffers.len() + usize::from(sentinel.is_some()) + of_tensors.len();
    let elements = of_original(&survey.buffers)
        .chain(sentinel.map(Value::To))
        .chain(of_tensors)
        .chain(new.iter().map(|[_, _, buffer, _]| Value::To(*buffer)));
    prefix.vector(buffers, elements.map(Ok))?;
    let elements =
        of_original(&survey.metadata).chain(new.iter().map(|[entry, ..]| Value::To(*entry)));
    prefix.vector(metadata, elements.map(Ok))?;

    if let Some(sentinel) = sentinel {
        prefix.table(sentinel, &[])?;
    }
    shared.write(prefix)?;
    for (index, [entry, name, buffer, data]) in (first..).zip(&new) {
        let index = u32::try_from(index).map_err(|_| PatchError::TooLarge)?;
        prefix.table(
            *entry,
            &[Value::To(*name), Value::Scalar(index.to_le_bytes())],
        )?;
        prefix.table(*buffer, &[Value::To(*data)])?;
    }
    for (entry, [_, name, ..]) in entries.iter().zip(&new) {
        prefix.string(*name, entry.name)?;
    }
    for (entry, [.., data]) in entries.iter().zip(&new) {
        prefix.data(*data, entry.data, entry.alignment)?;
    }
    Ok(())
}

fn of_original(tables: &[usize]) -> impl Iterator<Item = Value> {
    tables.iter().map(|table| Value::Original(*table))
}

/// Moves the offsets at `positions` of the original part along, and makes sure that [`strip`] will
/// find the same.
fn move_offsets(
    file: &mut [u8],
    prefix_bytes: usize,
    positions: &[usize],
) -> Result<(), PatchError> {
    let original = file.get_mut(prefix_bytes..).unwrap_or_default();
    offsets::shift(original, positions, prefix_bytes as u64);
    // In a damaged file an offset can share bytes with a table's place, which moving it then
    // changes.
    let overlap = PatchError::OverlappingOffsets {
        position: positions.first().copied().unwrap_or(0),
    };
    let again = Model::new(original).map_err(PatchError::from);
    match again.and_then(|model| offsets::find(&model, prefix_bytes as u64)) {
        Ok(found) if found == positions => Ok(()),
        _ => Err(overlap),
    }
}

/// The 4-byte scalar in field `slot`, as it is.
fn scalar(table: Table<'_>, slot: u16) -> Result<Value, PatchError> {
    Ok(if table.has(slot) {
        Value::Scalar(table.u32(slot, 0)?.to_le_bytes())
    } else {
        Value::Absent
    })
}

/// A field of 1 byte. It takes up 4; readers look at the first.
fn byte(value: u8) -> Value {
    Value::Scalar([value, 0, 0, 0])
}

fn int(value: i32) -> Value {
    Value::Scalar(value.to_le_bytes())
}

/// What field `slot` of the original refers to.
fn referred(table: Table<'_>, slot: u16) -> Result<Value, PatchError> {
    Ok(table
        .reference(slot)?
        .map_or(Value::Absent, Value::Original))
}
