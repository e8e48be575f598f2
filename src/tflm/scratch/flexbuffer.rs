//! The little of FlexBuffers that the options of custom operators need: whole numbers in a map, by position or by key.
//!
//! A map is a vector of values, all of one width, with a vector of keys beside it; positions in files point backwards:
//!
//! ```text
//! ... | distance to the keys | width of the keys | n | value 0 ... value n-1 | n type bytes | ... | distance | type | width
//!                                                    ^ the map                                 ^ the root
//! ```
//!
//! Keys are sorted, so TFLM's kernels read most options by position (`FlexbufferWrapper` in `flatbuffer_utils.cc`).
//! Source of the format: `flexbuffers.h` of FlatBuffers.

/// A map, and the width of its values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map<'a> {
    bytes: &'a [u8],
    start: usize,
    width: usize,
}

impl<'a> Map<'a> {
    /// The map at the root of `bytes`; `None` when there is none, or it does not fit.
    pub(crate) fn root(bytes: &'a [u8]) -> Option<Self> {
        let [.., kind, root_width] = *bytes else {
            return None;
        };
        let root_width = usize::from(root_width);
        if kind >> 2 != MAP {
            return None;
        }
        let root = bytes.len().checked_sub(2 + root_width)?;
        let distance = unsigned(bytes, root, root_width)?;
        let start = root.checked_sub(usize::try_from(distance).ok()?)?;
        Some(Self {
            bytes,
            start,
            width: 1 << (kind & 3),
        })
    }

    fn len(&self) -> Option<usize> {
        usize::try_from(unsigned(
            self.bytes,
            self.start.checked_sub(self.width)?,
            self.width,
        )?)
        .ok()
    }

    fn value(&self, index: usize) -> Option<usize> {
        if index >= self.len()? {
            return None;
        }
        self.start.checked_add(index.checked_mul(self.width)?)
    }

    /// Value `index`, read as a whole number whatever its type, as the signal kernels do.
    pub(crate) fn at(&self, index: usize) -> Option<i64> {
        signed(self.bytes, self.value(index)?, self.width)
    }

    /// The value of `key` if it is a whole number; `None` when it is missing or of another type.
    pub(crate) fn get(&self, key: &str) -> Option<i64> {
        let keys_at = self.start.checked_sub(3 * self.width)?;
        let distance = usize::try_from(unsigned(self.bytes, keys_at, self.width)?).ok()?;
        let keys = keys_at.checked_sub(distance)?;
        let key_width = unsigned(self.bytes, keys_at + self.width, self.width)?;
        let key_width = usize::try_from(key_width).ok()?;
        let len = self.len()?;
        // Each value has a type byte, so no honest map has more of them than bytes.
        for index in 0..len.min(self.bytes.len()) {
            let entry = keys.checked_add(index.checked_mul(key_width)?)?;
            let distance = usize::try_from(unsigned(self.bytes, entry, key_width)?).ok()?;
            let text = self.bytes.get(entry.checked_sub(distance)?..)?;
            if text
                .strip_prefix(key.as_bytes())
                .is_none_or(|rest| rest.first() != Some(&0))
            {
                continue;
            }
            let types = self.start.checked_add(len.checked_mul(self.width)?)?;
            let kind = *self.bytes.get(types.checked_add(index)?)?;
            return matches!(kind >> 2, INT | UINT | BOOL).then(|| self.at(index))?;
        }
        None
    }
}

const INT: u8 = 1;
const UINT: u8 = 2;
const MAP: u8 = 9;
const BOOL: u8 = 26;

fn unsigned(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(width)?)?;
    matches!(width, 1 | 2 | 4 | 8)
        .then(|| field.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
}

fn signed(bytes: &[u8], at: usize, width: usize) -> Option<i64> {
    let unused = 64 - 8 * width as u32;
    unsigned(bytes, at, width).map(|n| (n << unused) as i64 >> unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by the `flexbuffers` module of FlatBuffers' Python package from
    /// `{"num_classes": 2, "T": 7, "far": -300, "flag": True, "f": 0.5}`.
    const SAMPLE: &[u8] = &[
        110, 117, 109, 95, 99, 108, 97, 115, 115, 101, 115, 0, 84, 0, 102, 97, 114, 0, 102, 108,
        97, 103, 0, 102, 0, 5, 14, 4, 14, 11, 30, 0, 6, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 7, 0, 0,
        0, 0, 0, 0, 63, 212, 254, 255, 255, 1, 0, 0, 0, 2, 0, 0, 0, 6, 14, 6, 106, 6, 25, 38, 1,
    ];

    #[test]
    fn reads_by_position_in_key_order_and_by_key() {
        let map = Map::root(SAMPLE).unwrap();
        // Sorted: T, f, far, flag, num_classes.
        assert_eq!(
            (map.at(0), map.at(2), map.at(4), map.at(5)),
            (Some(7), Some(-300), Some(2), None)
        );
        assert_eq!(
            (map.get("num_classes"), map.get("T"), map.get("far")),
            (Some(2), Some(7), Some(-300))
        );
        assert_eq!(map.get("flag"), Some(1));
        // Not a whole number, a prefix of a key, and no key at all.
        assert_eq!(
            (map.get("f"), map.get("num"), map.get("fa"), map.get("")),
            (None, None, None, None)
        );
    }

    #[test]
    fn survives_every_truncation_and_every_changed_byte() {
        let read = |bytes: &[u8]| {
            if let Some(map) = Map::root(bytes) {
                (0..8).for_each(|i| _ = map.at(i));
                ["T", "num_classes", "missing"]
                    .iter()
                    .for_each(|k| _ = map.get(k));
            }
        };
        for end in 0..SAMPLE.len() {
            read(&SAMPLE[..end]);
        }
        for at in 0..SAMPLE.len() {
            for value in [0, 1, 2, 4, 8, 37, 127, 128, 255] {
                let mut bytes = SAMPLE.to_vec();
                bytes[at] = value;
                read(&bytes);
            }
        }
    }
}
