//! Names of operators and types, sizes of elements, and the rule for operator codes.
//!
//! Numbers come from files, so each function takes any number. What the schema does not know has no
//! size, and is shown as its number: `BUILTIN_212`, `TYPE_40`.

#[cfg(feature = "host")]
use core::fmt;

#[cfg(feature = "host")]
use crate::tflite::{BuiltinOperator, TensorType};

/// The operator of an `OperatorCode`: the greater of its two fields.
///
/// Operators were one byte at first (`deprecated_builtin_code`), which ends at 127. A file from that
/// time has nothing, 0, in `builtin_code`; a newer one has at most the placeholder 127 in the byte.
/// Either way the field that counts is the greater one. Source: the comments of `OperatorCode` in the
/// format's schema, and `GetBuiltinCode` in TensorFlow Lite's `schema_utils.cc`.
#[must_use]
pub const fn builtin_code(deprecated: i8, code: i32) -> i32 {
    // `From` is not const.
    let deprecated = deprecated as i32;
    if deprecated > code { deprecated } else { code }
}

/// Bytes of one element of the `TensorType` of this number, as TensorFlow Lite Micro counts them.
///
/// `INT4` counts a byte an element there: what it plans and allocates is the unpacked tensor, although
/// a constant has two elements to the byte in the file. `None` is what TFLM refuses to give a size to,
/// so that a model with such a tensor does not run: `STRING`, `VARIANT`, `INT2`, `UINT4`,
/// `FLOAT8_E4M3FN`, `FLOAT8_E5M2`, and unknown numbers.
/// Source: `TfLiteTypeSizeOf` in `tensorflow/lite/micro/memory_helpers.cc`, which is given every type
/// of the schema by `ConvertTensorType` in `tensorflow/lite/core/api/flatbuffer_conversions.cc`.
#[must_use]
pub const fn element_bytes(tensor_type: i8) -> Option<u32> {
    Some(match tensor_type {
        // UINT8, BOOL, INT8, INT4.
        3 | 6 | 9 | 17 => 1,
        // FLOAT16, INT16, UINT16, BFLOAT16.
        1 | 7 | 16 | 18 => 2,
        // FLOAT32, INT32, RESOURCE (an index), UINT32.
        0 | 2 | 13 | 15 => 4,
        // INT64, COMPLEX64, FLOAT64, UINT64.
        4 | 8 | 10 | 12 => 8,
        // COMPLEX128.
        11 => 16,
        _ => return None,
    })
}

/// [`element_bytes`] of a type.
///
/// ```
/// # #[cfg(feature = "host")] {
/// use arenaplan_schema::{names::tensor_type_size, tflite::TensorType};
/// assert_eq!(tensor_type_size(TensorType::INT16), Some(2));
/// assert_eq!(tensor_type_size(TensorType::STRING), None);
/// # }
/// ```
#[cfg(feature = "host")]
#[must_use]
pub const fn tensor_type_size(tensor_type: TensorType) -> Option<u32> {
    element_bytes(tensor_type.0)
}

/// The name of an operator, to be displayed: `CONV_2D`, or `BUILTIN_212` if the schema has none.
///
/// ```
/// # #[cfg(feature = "host")] {
/// use arenaplan_schema::{names::operator_name, tflite::BuiltinOperator};
/// assert_eq!(operator_name(BuiltinOperator::CONV_2D).to_string(), "CONV_2D");
/// assert_eq!(operator_name(BuiltinOperator(212)).to_string(), "BUILTIN_212");
/// # }
/// ```
#[cfg(feature = "host")]
#[must_use]
pub fn operator_name(operator: BuiltinOperator) -> Name {
    Name {
        known: operator.variant_name(),
        prefix: "BUILTIN_",
        number: operator.0,
    }
}

/// The name of a type, to be displayed: `INT8`, or `TYPE_40` if the schema has none.
#[cfg(feature = "host")]
#[must_use]
pub fn tensor_type_name(tensor_type: TensorType) -> Name {
    Name {
        known: tensor_type.variant_name(),
        prefix: "TYPE_",
        number: i32::from(tensor_type.0),
    }
}

/// A name, or a number where there is none; `Display` shows it, and pads like a string.
#[cfg(feature = "host")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    known: Option<&'static str>,
    prefix: &'static str,
    number: i32,
}

#[cfg(feature = "host")]
impl Name {
    /// The name as the schema spells it; `None` if the schema has none for the number.
    #[must_use]
    pub const fn known(&self) -> Option<&'static str> {
        self.known
    }
}

#[cfg(feature = "host")]
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known {
            Some(name) => f.pad(name),
            None => f.pad(&format!("{}{}", self.prefix, self.number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greater_code_counts() {
        // A file from before `builtin_code`: CONV_2D.
        assert_eq!(builtin_code(3, 0), 3);
        // New writers fill both.
        assert_eq!(builtin_code(3, 3), 3);
        // VAR_HANDLE, with and without the placeholder.
        assert_eq!(builtin_code(127, 142), 142);
        assert_eq!(builtin_code(0, 142), 142);
        // ADD is 0 in both.
        assert_eq!(builtin_code(0, 0), 0);
        assert_eq!(builtin_code(-1, 0), 0);
        assert_eq!(builtin_code(-1, -1), -1);
    }

    #[cfg(feature = "host")]
    #[test]
    fn sizes_are_those_of_tflm() {
        // `TfLiteTypeSizeOf`, case by case.
        let sizes = [
            (TensorType::FLOAT32, 4),
            (TensorType::FLOAT16, 2),
            (TensorType::INT32, 4),
            (TensorType::UINT8, 1),
            (TensorType::INT64, 8),
            (TensorType::BOOL, 1),
            (TensorType::INT16, 2),
            (TensorType::COMPLEX64, 8),
            (TensorType::INT8, 1),
            (TensorType::FLOAT64, 8),
            (TensorType::COMPLEX128, 16),
            (TensorType::UINT64, 8),
            (TensorType::RESOURCE, 4),
            (TensorType::UINT32, 4),
            (TensorType::UINT16, 2),
            (TensorType::INT4, 1),
            (TensorType::BFLOAT16, 2),
        ];
        for number in i8::MIN..=i8::MAX {
            let listed = sizes
                .iter()
                .find(|(t, _)| t.0 == number)
                .map(|&(_, bytes)| bytes);
            assert_eq!(tensor_type_size(TensorType(number)), listed, "{number}");
        }
    }

    #[cfg(feature = "host")]
    #[test]
    fn unknown_numbers_are_shown() {
        assert_eq!(operator_name(BuiltinOperator::ADD).known(), Some("ADD"));
        assert_eq!(
            operator_name(BuiltinOperator::STABLEHLO_CASE).to_string(),
            "STABLEHLO_CASE"
        );
        assert_eq!(operator_name(BuiltinOperator(210)).known(), None);
        assert_eq!(
            operator_name(BuiltinOperator(i32::MIN)).to_string(),
            "BUILTIN_-2147483648"
        );
        assert_eq!(
            tensor_type_name(TensorType::FLOAT8_E5M2).to_string(),
            "FLOAT8_E5M2"
        );
        assert_eq!(
            format!("{:>9}", tensor_type_name(TensorType(40))),
            "  TYPE_40"
        );
        assert_eq!(
            format!("{:<5}|", tensor_type_name(TensorType::INT8)),
            "INT8 |"
        );
    }
}
