//! Arrays in NumPy's file format (`numpy/lib/_format_impl.py`): read in any version of it, written in version 1.0.
//!
//! ```text
//! "\x93NUMPY" | version, 2 bytes | length of the header, 2 bytes (4 from version 2.0 on) | header, up to a line break | elements
//! ```

use anyhow::{Context, anyhow, bail};
use arenaplan_runtime::Type;

use crate::execute::{Values, type_name};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Types of elements and NumPy's names for them, little-endian where that matters.
const TYPES: &[(Type, &str)] = &[
    (Type::FLOAT32, "<f4"),
    (Type::FLOAT16, "<f2"),
    (Type::INT32, "<i4"),
    (Type::UINT8, "|u1"),
    (Type::INT64, "<i8"),
    (Type::BOOL, "|b1"),
    (Type::INT16, "<i2"),
    (Type::INT8, "|i1"),
    (Type::UINT64, "<u8"),
    (Type::UINT32, "<u4"),
    (Type::UINT16, "<u2"),
];

/// The file of an array.
pub(super) fn write(values: &Values) -> anyhow::Result<Vec<u8>> {
    let found = TYPES.iter().find(|(ty, _)| *ty == values.element_type);
    let Some((_, descr)) = found else {
        bail!(
            "NumPy has no elements of type {}",
            type_name(values.element_type)
        );
    };
    let shape = match &values.shape[..] {
        [dim] => format!("({dim},)"),
        dims => {
            let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
            format!("({})", dims.join(", "))
        }
    };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // The elements start at a multiple of 64 bytes.
    let before = MAGIC.len() + 4;
    let whole = (before + header.len() + 1).next_multiple_of(64);
    header.push_str(&" ".repeat(whole - before - header.len() - 1));
    header.push('\n');
    let length = u16::try_from(header.len()).context("an array with so many dimensions")?;
    let mut file = [MAGIC, &[1, 0], &length.to_le_bytes(), header.as_bytes()].concat();
    file.extend(&values.bytes);
    Ok(file)
}

/// The array in a file.
pub(super) fn read(file: &[u8]) -> anyhow::Result<Values> {
    let not_numpy = || anyhow!("not an array in NumPy's format");
    let rest = file.strip_prefix(MAGIC).ok_or_else(not_numpy)?;
    let ([major, _minor], rest) = rest.split_first_chunk::<2>().ok_or_else(not_numpy)?;
    let (length, rest) = match major {
        1 => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(not_numpy)?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        2 | 3 => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(not_numpy)?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        major => bail!("version {major} of NumPy's format, of which 1 to 3 are known"),
    };
    let (header, elements) = rest.split_at_checked(length).ok_or_else(not_numpy)?;
    let header = std::str::from_utf8(header).map_err(|_| not_numpy())?;

    let descr = field(header, "descr").ok_or_else(not_numpy)?;
    let descr = descr
        .strip_prefix(['\'', '"'])
        .ok_or_else(|| anyhow!("elements with several fields, of which an input has none"))?;
    let descr = descr.split(['\'', '"']).next().unwrap_or_default();
    // One byte has no order, whatever the file says.
    let order = if descr.ends_with('1') { "|" } else { "<" };
    let plain = descr.trim_start_matches(['<', '|', '=']);
    let known = TYPES
        .iter()
        .find(|(_, name)| *name == format!("{order}{plain}"));
    let Some(&(element_type, _)) = known else {
        bail!("elements of NumPy's type {descr:?}, which no input has, or which are big-endian");
    };
    if !field(header, "fortran_order").is_some_and(|order| order.starts_with("False")) {
        bail!("elements in Fortran's order; save numpy.ascontiguousarray(...) of the array");
    }
    let shape = field(header, "shape").and_then(|shape| shape.strip_prefix('('));
    let (shape, _) = shape
        .and_then(|shape| shape.split_once(')'))
        .ok_or_else(not_numpy)?;
    let dims = shape
        .split(',')
        .map(str::trim)
        .filter(|dim| !dim.is_empty());
    let shape: Vec<usize> = dims
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| not_numpy())?;
    let size = element_type.bytes().unwrap_or(0);
    let needed = shape
        .iter()
        .try_fold(size, |bytes, &dim| bytes.checked_mul(dim));
    if needed != Some(elements.len()) {
        bail!(
            "the file has {} bytes of elements, which is not what its shape {shape:?} takes",
            elements.len()
        );
    }
    Ok(Values {
        element_type,
        shape,
        bytes: elements.to_vec(),
    })
}

/// What follows a key of the header, which is a dictionary in Python's notation.
fn field<'h>(header: &'h str, key: &str) -> Option<&'h str> {
    let quoted = ['\'', '"'].map(|quote| format!("{quote}{key}{quote}"));
    let (_, rest) = quoted.iter().find_map(|key| header.split_once(key))?;
    Some(rest.trim_start().strip_prefix(':')?.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `numpy.save` of NumPy 2.4 writes `numpy.array([[1, -2, 3]], "int16")`.
    fn saved() -> Vec<u8> {
        let header = "{'descr': '<i2', 'fortran_order': False, 'shape': (1, 3), }";
        let blanks = " ".repeat(58);
        let parts: [&[u8]; 5] = [
            b"\x93NUMPY\x01\x00v\x00",
            header.as_bytes(),
            blanks.as_bytes(),
            b"\n",
            b"\x01\x00\xfe\xff\x03\x00",
        ];
        parts.concat()
    }

    #[test]
    fn what_numpy_saves() {
        let values = read(&saved()).unwrap();
        assert_eq!(values.element_type, Type::INT16);
        assert_eq!(values.shape, [1, 3]);
        assert_eq!(values.bytes, [1, 0, 0xfe, 0xff, 3, 0]);
        assert_eq!(write(&values).unwrap(), saved());
    }

    #[test]
    fn shapes() {
        for shape in [vec![], vec![4], vec![2, 2], vec![0, 3]] {
            let len: usize = shape.iter().product();
            let values = Values {
                element_type: Type::INT8,
                shape,
                bytes: vec![7; len],
            };
            let file = write(&values).unwrap();
            assert_eq!((file.len() - len) % 64, 0);
            assert_eq!(read(&file).unwrap(), values);
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let replaced = |from: &str, to: &str| {
            let text: String = saved().iter().map(|&b| char::from(b)).collect();
            let text = text.replacen(from, to, 1);
            read(&text.chars().map(|c| c as u8).collect::<Vec<u8>>())
        };
        for (from, to, words) in [
            ("NUMPY", "NUMPI", "not an array"),
            ("<i2", ">i2", "big-endian"),
            ("<i2", "<c8", "which no input has"),
            ("False", "True ", "Fortran"),
            ("(1, 3)", "(2, 3)", "which is not what its shape"),
            ("(1, 3)", "(1, x)", "not an array"),
        ] {
            let error = replaced(from, to).unwrap_err().to_string();
            assert!(error.contains(words), "{from} {to}: {error}");
        }
        for len in 0..saved().len() {
            assert!(read(&saved()[..len]).is_err(), "{len}");
        }
    }
}
