//! Takes a patch off again.

use std::borrow::Cow;

use sha2::{Digest, Sha256};

use super::prefix::ALIGNMENT;
use super::{PatchError, Provenance, inspect_provenance, offsets};
use crate::view::Model;

/// The original file of a patched one, byte for byte.
///
/// # Errors
/// [`PatchError::NotPlanned`] if this tool did not patch the file;
/// [`PatchError::ChangedLength`] and [`PatchError::ChangedContent`] if something changed the file
/// afterwards, so that the original is lost; others as of [`inspect_provenance`].
pub fn strip(bytes: &[u8]) -> Result<Vec<u8>, PatchError> {
    match inspect_provenance(bytes)? {
        Some(provenance) => restore(bytes, &provenance).map(Cow::into_owned),
        None => Err(PatchError::NotPlanned),
    }
}

/// The file that a plan should be made for: the original of a patched file, else the file itself.
///
/// Going through this makes planning twice the same as planning once.
///
/// # Errors
/// As of [`strip`], except that a file without a patch is fine. A file that was changed
/// after it was planned, say by a tool that packed it anew, may be given to [`graft`](super::graft)
/// as it is.
pub fn original_of(bytes: &[u8]) -> Result<Cow<'_, [u8]>, PatchError> {
    match inspect_provenance(bytes)? {
        Some(provenance) => restore(bytes, &provenance),
        None => Ok(Cow::Borrowed(bytes)),
    }
}

fn restore<'a>(bytes: &'a [u8], provenance: &Provenance) -> Result<Cow<'a, [u8]>, PatchError> {
    let original_bytes = provenance.original_bytes;
    let file_bytes = bytes.len() as u64;
    let changed_length = PatchError::ChangedLength {
        file_bytes,
        original_bytes,
    };
    let Some(prefix_bytes) = file_bytes.checked_sub(original_bytes) else {
        return Err(changed_length);
    };
    let original = match usize::try_from(prefix_bytes)
        .ok()
        .and_then(|at| bytes.get(at..))
    {
        Some(original) if prefix_bytes % ALIGNMENT as u64 == 0 => original,
        _ => return Err(changed_length),
    };
    let changed = |_| PatchError::ChangedContent;
    let model = Model::new(original).map_err(|_| PatchError::ChangedContent)?;
    let moved = offsets::find(&model, prefix_bytes).map_err(changed)?;
    let mut original = Cow::Borrowed(original);
    if !moved.is_empty() {
        offsets::shift(original.to_mut(), &moved, prefix_bytes.wrapping_neg());
    }
    let digest: [u8; 32] = Sha256::digest(&original).into();
    if digest != provenance.original_sha256 {
        return Err(PatchError::ChangedContent);
    }
    Ok(original)
}
