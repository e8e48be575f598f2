//! Element types, by the numbers of the schema.

use arenaplan_schema::names;

/// The type of a tensor's elements: a number of the schema's `TensorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Type(pub i8);

impl Type {
    /// 32-bit floating point.
    pub const FLOAT32: Type = Type(0);
    /// 16-bit floating point; no kernel computes with it.
    pub const FLOAT16: Type = Type(1);
    /// 32-bit signed integer.
    pub const INT32: Type = Type(2);
    /// 8-bit unsigned integer.
    pub const UINT8: Type = Type(3);
    /// 64-bit signed integer.
    pub const INT64: Type = Type(4);
    /// Texts of any length, which no arena holds.
    pub const STRING: Type = Type(5);
    /// One byte, 0 or not.
    pub const BOOL: Type = Type(6);
    /// 16-bit signed integer.
    pub const INT16: Type = Type(7);
    /// 8-bit signed integer.
    pub const INT8: Type = Type(9);
    /// 64-bit floating point; no kernel computes with it.
    pub const FLOAT64: Type = Type(10);
    /// 64-bit unsigned integer.
    pub const UINT64: Type = Type(12);
    /// A handle of a resource variable.
    pub const RESOURCE: Type = Type(13);
    /// 32-bit unsigned integer.
    pub const UINT32: Type = Type(15);
    /// 16-bit unsigned integer.
    pub const UINT16: Type = Type(16);
    /// 4-bit signed integer, two in a byte, the first one in the low half; constants alone.
    pub const INT4: Type = Type(17);

    /// Bytes of an element in the arena; `None` for a type without a fixed size, or one newer than this crate.
    pub fn bytes(self) -> Option<usize> {
        names::element_bytes(self.0).map(|bytes| bytes as usize)
    }
}
