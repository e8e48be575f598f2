//! Memory that starts at a multiple of 16.

/// Bytes that start at a multiple of 16, as models and arenas must.
#[derive(Debug, Default)]
pub struct Memory {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Clone for Memory {
    /// Elsewhere, the bytes start at a multiple of 16 in another place.
    fn clone(&self) -> Self {
        Self::holding(self.as_slice())
    }
}

impl Memory {
    /// As many zeros.
    pub fn new(len: usize) -> Self {
        let bytes = vec![0; len + 15];
        Self {
            start: bytes.as_ptr().addr().next_multiple_of(16) - bytes.as_ptr().addr(),
            bytes,
            len,
        }
    }

    /// The same bytes.
    pub fn holding(bytes: &[u8]) -> Self {
        let mut memory = Self::new(bytes.len());
        memory.as_mut_slice().copy_from_slice(bytes);
        memory
    }

    /// All of it.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..][..self.len]
    }

    /// All of it, to write.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.len]
    }
}
