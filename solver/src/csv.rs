//! Problems as text, in the comma-separated form of MiniMalloc.
//!
//! ```text
//! id,lower,upper,size
//! b1,0,3,4
//! b2,3,9,4
//! ```
//! A row is a buffer, alive from `lower` up to but not including `upper`. Columns may be in any
//! order; `alignment` and `offset` (a fixed one) are understood, `hint` is skipped, and the names
//! `begin`, `start`, `end`, `buffer` and `buffer_id` are too.

use core::fmt;

use crate::{Buffer, Error, Lifetime, Problem};

/// What is wrong with the text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CsvError {
    /// The header lacks a column, or has one that is not known.
    Column {
        /// Its name.
        name: String,
        /// Whether it is missing rather than unknown.
        missing: bool,
    },
    /// A cell that is no number in range.
    Cell {
        /// The line, 1 for the header.
        line: usize,
        /// The column's name as understood here.
        column: &'static str,
        /// What was found.
        found: String,
    },
    /// The buffers are no problem.
    Problem(Error),
}

impl fmt::Display for CsvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column {
                name,
                missing: true,
            } => write!(f, "line 1: there is no column {name}"),
            Self::Column {
                name,
                missing: false,
            } => {
                write!(f, "line 1: the column {name:?} is not known")
            }
            Self::Cell {
                line,
                column,
                found,
            } => {
                write!(f, "line {line}: {found:?} is no {column} in range")
            }
            Self::Problem(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl core::error::Error for CsvError {}

const ID: &str = "id";
const LOWER: &str = "lower";
const UPPER: &str = "upper";
const SIZE: &str = "size";
const ALIGNMENT: &str = "alignment";
const OFFSET: &str = "offset";
const HINT: &str = "hint";

fn column(name: &str) -> Option<&'static str> {
    Some(match name {
        "id" | "buffer" | "buffer_id" => ID,
        "lower" | "begin" | "start" => LOWER,
        "upper" | "end" => UPPER,
        "size" => SIZE,
        "alignment" => ALIGNMENT,
        "offset" => OFFSET,
        "hint" => HINT,
        _ => return None,
    })
}

/// Reads a problem: buffers in the order of the rows, in conflict where their lifetimes overlap.
///
/// # Errors
/// [`CsvError`], with the line.
pub fn parse(text: &str) -> Result<Problem, CsvError> {
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let header = lines.next().map_or("", |(_, line)| line);
    let columns = header.split(',').map(|name| {
        let name = name.trim();
        column(name).ok_or_else(|| CsvError::Column {
            name: name.to_owned(),
            missing: false,
        })
    });
    let columns: Vec<&'static str> = columns.collect::<Result<_, _>>()?;
    for needed in [LOWER, UPPER, SIZE] {
        if !columns.contains(&needed) {
            return Err(CsvError::Column {
                name: needed.to_owned(),
                missing: true,
            });
        }
    }
    let mut buffers = Vec::new();
    for (index, line) in lines {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let cell = |name: &str| {
            let at = columns.iter().position(|&c| c == name)?;
            Some(cells.get(at).copied().unwrap_or(""))
        };
        let wrong = |column: &'static str| CsvError::Cell {
            line: index + 1,
            column,
            found: cell(column).unwrap_or("").to_owned(),
        };
        let time = |column| {
            cell(column)
                .and_then(|c| c.parse::<i32>().ok())
                .ok_or(wrong(column))
        };
        let bytes = |column| {
            cell(column)
                .and_then(|c| c.parse::<u64>().ok())
                .ok_or(wrong(column))
        };
        let given = |column| cell(column).is_some_and(|c| !c.is_empty());
        let first = time(LOWER)?;
        let last = time(UPPER)?.checked_sub(1).filter(|&last| last >= first);
        buffers.push(Buffer {
            size: bytes(SIZE)?,
            align: if given(ALIGNMENT) {
                bytes(ALIGNMENT)?
            } else {
                1
            },
            lifetime: Lifetime::new(first, last.ok_or(wrong(UPPER))?),
            fixed: if given(OFFSET) {
                Some(bytes(OFFSET)?)
            } else {
                None
            },
        });
    }
    Problem::from_lifetimes(buffers).map_err(CsvError::Problem)
}

/// Writes the buffers of a problem, ids as numbers. Columns `alignment` and `offset` are there if
/// a buffer needs them. Conflicts are not written: they are those of the lifetimes.
pub fn write(problem: &Problem) -> String {
    let aligned = problem.buffers().any(|(_, b)| b.align != 1);
    let fixed = problem.buffers().any(|(_, b)| b.fixed.is_some());
    let mut text = format!("{ID},{LOWER},{UPPER},{SIZE}");
    text += if aligned { ",alignment" } else { "" };
    text += if fixed { ",offset\n" } else { "\n" };
    for (id, buffer) in problem.buffers() {
        let Lifetime { first, last } = buffer.lifetime;
        text += &format!("{id},{first},{},{}", i64::from(last) + 1, buffer.size);
        if aligned {
            text += &format!(",{}", buffer.align);
        }
        if fixed {
            text += &buffer
                .fixed
                .map_or(",".to_owned(), |offset| format!(",{offset}"));
        }
        text += "\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_minimalloc() {
        let text = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\n";
        let problem = parse(text).unwrap();
        let expected = [(0, 2), (3, 8), (0, 8)]
            .map(|(first, last)| Buffer::new(4, Lifetime::new(first, last)));
        assert!(problem.buffers().map(|(_, b)| *b).eq(expected));
        assert_eq!(problem.liveness_bound(), 8);
        assert_eq!(problem.conflict_count(), 2, "b1 ends where b2 starts");
    }

    #[test]
    fn other_names_and_columns() {
        let text = "size, begin ,end,buffer_id,alignment,offset,hint\r\n16,-2,0,x,8,,0\r\n\r\n\
                    4,1,2,y,,32,\r\n";
        let problem = parse(text).unwrap();
        let buffers: Vec<Buffer> = problem.buffers().map(|(_, b)| *b).collect();
        let first = Buffer {
            align: 8,
            ..Buffer::new(16, Lifetime::new(-2, -1))
        };
        let second = Buffer {
            fixed: Some(32),
            ..Buffer::new(4, Lifetime::new(1, 1))
        };
        assert_eq!(buffers, [first, second]);
        let again = parse(&write(&problem)).unwrap();
        assert!(again.buffers().map(|(_, b)| *b).eq(buffers));
    }

    #[test]
    fn errors_name_line_and_column() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(message(""), "line 1: the column \"\" is not known");
        assert_eq!(message("id,lower,upper"), "line 1: there is no column size");
        assert_eq!(
            message("lower,upper,size,gaps"),
            "line 1: the column \"gaps\" is not known"
        );
        let rows = |row: &str| message(&format!("lower,upper,size\n0,1,1\n{row}"));
        assert_eq!(rows("0,1,-1"), "line 3: \"-1\" is no size in range");
        assert_eq!(rows("0,1"), "line 3: \"\" is no size in range");
        assert_eq!(rows("5,5,1"), "line 3: \"5\" is no upper in range");
        assert_eq!(
            rows("0,-2147483648,1"),
            "line 3: \"-2147483648\" is no upper in range"
        );
        assert_eq!(rows("0,1,99999999999999999999"), {
            "line 3: \"99999999999999999999\" is no size in range"
        });
    }
}
