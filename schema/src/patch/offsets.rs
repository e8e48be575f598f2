//! Offsets that count from the start of the file, which a prefix moves.
//!
//! All other references of the format are relative. These are `Buffer.offset` and
//! `Operator.large_custom_options_offset`, 64 bits each, which mean something only if they are
//! above 1: converters store 0 or 1 where there is nothing.

use super::PatchError;
use super::survey::Steps;
use crate::view::{Error, Model, Table};

/// Where the offsets of `model` are that mean something: sorted, each once.
///
/// `base` is what has been added to them already. Each must name bytes of the file behind it, and
/// none may share bytes with another.
pub(super) fn find(model: &Model<'_>, base: u64) -> Result<Vec<usize>, PatchError> {
    let mut steps = Steps::for_file(model.as_bytes());
    let mut found = Vec::new();
    let buffers = model.buffers()?;
    steps.take(buffers.len())?;
    for buffer in buffers {
        look(model, buffer?.table(), 1, base, &mut found)?;
    }
    let subgraphs = model.subgraphs()?;
    steps.take(subgraphs.len())?;
    for subgraph in subgraphs {
        let operators = subgraph?.operators()?;
        if !steps.enter(operators.start(), operators.len())? {
            continue;
        }
        for operator in operators {
            look(model, operator?.table(), 9, base, &mut found)?;
        }
    }
    found.sort_unstable();
    found.dedup();
    for pair in found.windows(2) {
        if let [first, second] = *pair
            && second - first < 8
        {
            return Err(PatchError::OverlappingOffsets { position: second });
        }
    }
    Ok(found)
}

/// Notes the offset in `slot` of `table`, whose size is in the next slot.
fn look(
    model: &Model<'_>,
    table: Table<'_>,
    slot: u16,
    base: u64,
    found: &mut Vec<usize>,
) -> Result<(), PatchError> {
    let Some(position) = table.field_position(slot) else {
        return Ok(());
    };
    let offset = table.u64(slot, 0)?;
    if offset <= 1 {
        return Ok(());
    }
    let bytes = table.u64(slot + 1, 0)?;
    let end = offset
        .checked_sub(base)
        .filter(|from| *from > 1)
        .and_then(|from| from.checked_add(bytes));
    if end.is_none_or(|end| end > model.as_bytes().len() as u64) {
        return Err(Error::OutsideData {
            field: table.field(slot),
            position: usize::try_from(offset).unwrap_or(usize::MAX),
        }
        .into());
    }
    found.push(position);
    Ok(())
}

/// Adds `change` to the offsets at `positions`, modulo 2^64, so that the opposite change undoes it.
pub(super) fn shift(bytes: &mut [u8], positions: &[usize], change: u64) {
    for &position in positions {
        if let Some(field) = bytes
            .get_mut(position..)
            .and_then(|rest| rest.first_chunk_mut::<8>())
        {
            *field = u64::from_le_bytes(*field)
                .wrapping_add(change)
                .to_le_bytes();
        }
    }
}
