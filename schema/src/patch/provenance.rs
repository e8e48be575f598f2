//! The record that a patched file carries of how it was made, so that the original can be restored
//! from it.
//!
//! It is the buffer of the metadata entry [`PROVENANCE_NAME`]:
//!
//! ```text
//! u8         version of this layout: 1
//! u8[32]     SHA-256 of the original file
//! LEB128     bytes of the original file; what is before them is the prefix
//! u8, text   tool version   \
//! u8, text   target          } length in bytes, then UTF-8; the options end with the record
//! text       options        /
//! ```
//!
//! A version that stores more, or otherwise, counts the first byte up.

use super::PatchError;
use crate::view::Model;

/// The name of the metadata entry with the provenance.
pub const PROVENANCE_NAME: &str = "arenaplan";

/// The newest layout known.
const VERSION: u8 = 1;

/// What the tool says of itself in a file that it patches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The tool's version; at most 255 bytes.
    pub tool_version: String,
    /// The target that the plan is for; at most 255 bytes.
    pub target: String,
    /// The options that the plan was made with.
    pub options: String,
}

/// How a file was patched, and what it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provenance {
    /// What the tool said of itself.
    pub stamp: Stamp,
    /// SHA-256 of the original file, as `sha256sum` shows it.
    pub original_sha256: [u8; 32],
    /// Bytes of the original file.
    pub original_bytes: u64,
}

impl Provenance {
    pub(super) fn encode(&self) -> Result<Vec<u8>, PatchError> {
        let mut out = vec![VERSION];
        out.extend(self.original_sha256);
        let mut left = self.original_bytes;
        while left >= 0x80 {
            out.push(left as u8 | 0x80);
            left >>= 7;
        }
        out.push(left as u8);
        let Stamp {
            tool_version,
            target,
            options,
        } = &self.stamp;
        for (name, text) in [("tool version", tool_version), ("target", target)] {
            let Ok(length) = u8::try_from(text.len()) else {
                return Err(PatchError::TextTooLong {
                    text: name,
                    bytes: text.len(),
                    limit: 255,
                });
            };
            out.push(length);
            out.extend(text.as_bytes());
        }
        out.extend(options.as_bytes());
        Ok(out)
    }

    fn decode(record: &[u8]) -> Result<Self, PatchError> {
        match record.first() {
            None | Some(0) => return Err(PatchError::ProvenanceDamaged),
            Some(&found) if found > VERSION => {
                return Err(PatchError::ProvenanceVersion {
                    found,
                    known: VERSION,
                });
            }
            Some(_) => {}
        }
        let read = || {
            let (original_sha256, rest) = record.get(1..)?.split_first_chunk()?;
            let (original_bytes, rest) = read_leb128(rest)?;
            let (tool_length, rest) = rest.split_first()?;
            let (tool_version, rest) = rest.split_at_checked((*tool_length).into())?;
            let (target_length, rest) = rest.split_first()?;
            let (target, options) = rest.split_at_checked((*target_length).into())?;
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
            Some(Self {
                stamp: Stamp {
                    tool_version: text(tool_version)?,
                    target: text(target)?,
                    options: text(options)?,
                },
                original_sha256: *original_sha256,
                original_bytes,
            })
        };
        read().ok_or(PatchError::ProvenanceDamaged)
    }
}

/// The number at the start of `bytes`, in LEB128, and what follows it.
fn read_leb128(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    // Ten groups of seven bits hold 64.
    for (index, byte) in bytes.iter().enumerate().take(10) {
        let group = u64::from(byte & 0x7f);
        let shifted = group << (7 * index);
        if shifted >> (7 * index) != group {
            return None;
        }
        value |= shifted;
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(index + 1..)?));
        }
    }
    None
}

/// Reads how a file was patched; `None` if this tool did not patch it.
///
/// # Errors
/// [`PatchError::ProvenanceVersion`] for a file patched by a newer version,
/// [`PatchError::ProvenanceDamaged`] for a record that makes no sense, [`PatchError::Read`] for a
/// damaged model.
pub fn inspect_provenance(bytes: &[u8]) -> Result<Option<Provenance>, PatchError> {
    match Model::new(bytes)?.metadata_bytes(PROVENANCE_NAME)? {
        Some(record) => Provenance::decode(record).map(Some),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provenance() -> Provenance {
        Provenance {
            stamp: Stamp {
                tool_version: "1.2.3".into(),
                target: "tflm".into(),
                options: "reorder alias=views".into(),
            },
            original_sha256: [7; 32],
            original_bytes: 333_288,
        }
    }

    #[test]
    fn a_record_has_the_documented_layout() {
        let mut expected = vec![1];
        expected.extend([7; 32]);
        // 333,288 = 0b10100_0101011_1101000 in groups of seven bits, the lowest first.
        expected.extend([0b1110_1000, 0b1010_1011, 0b0001_0100]);
        expected.extend(b"\x051.2.3\x04tflmreorder alias=views");
        assert_eq!(provenance().encode().unwrap(), expected);
        assert_eq!(Provenance::decode(&expected), Ok(provenance()));
    }

    #[test]
    fn lengths_up_to_the_largest_are_read_back() {
        for original_bytes in [
            0,
            1,
            127,
            128,
            16_383,
            16_384,
            u64::from(u32::MAX),
            u64::MAX,
        ] {
            let provenance = Provenance {
                original_bytes,
                ..provenance()
            };
            assert_eq!(
                Provenance::decode(&provenance.encode().unwrap()),
                Ok(provenance)
            );
        }
        // One bit more than 64.
        assert_eq!(
            read_leb128(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]),
            None
        );
        assert_eq!(read_leb128(&[0x80; 12]), None);
    }

    #[test]
    fn newer_and_damaged_records_are_told_apart() {
        let record = provenance().encode().unwrap();
        let mut newer = record.clone();
        newer[0] = 2;
        assert_eq!(
            Provenance::decode(&newer),
            Err(PatchError::ProvenanceVersion { found: 2, known: 1 })
        );
        // Shorter than the fields before the options.
        for length in 0..record.len() - "reorder alias=views".len() {
            assert_eq!(
                Provenance::decode(&record[..length]),
                Err(PatchError::ProvenanceDamaged)
            );
        }
        let mut no_text = record;
        no_text[37] = 0xff;
        assert_eq!(
            Provenance::decode(&no_text),
            Err(PatchError::ProvenanceDamaged)
        );
    }

    #[test]
    fn long_texts_are_refused() {
        let mut long = provenance();
        long.stamp.target = "x".repeat(256);
        assert_eq!(
            long.encode(),
            Err(PatchError::TextTooLong {
                text: "target",
                bytes: 256,
                limit: 255
            })
        );
    }
}
