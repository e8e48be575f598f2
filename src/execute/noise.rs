//! Numbers that look random and follow from a seed.

use arenaplan_runtime::Type;

/// A sequence of numbers, the same on every machine: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014).
#[derive(Clone, Debug)]
pub struct Noise(u64);

impl Noise {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Sets all bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.word().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }

    /// Elements as they come in inputs, little-endian: floats from -1 to 1, bytes and 16-bit integers of any value, larger
    /// ones of 16 bits, true and false.
    pub(super) fn elements(&mut self, element_type: Type, len: usize, size: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len * size);
        for _ in 0..len {
            let random = self.word();
            let word = match element_type {
                Type::BOOL => random & 1,
                // 24 random bits of each sign, without rounding.
                Type::FLOAT32 => {
                    let signed = (random >> 40) as i32 - (1 << 23);
                    u64::from((signed as f32 / (1 << 23) as f32).to_bits())
                }
                // Half precision: a positive or negative number below 1.
                Type::FLOAT16 => random & 0xbbff,
                Type::INT32 | Type::INT64 => i64::from(random as i16) as u64,
                Type::UINT32 | Type::UINT64 => random & 0xffff,
                _ => random,
            };
            bytes.extend(&word.to_le_bytes()[..size.min(8)]);
        }
        bytes
    }
}
