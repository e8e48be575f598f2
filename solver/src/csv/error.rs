//! What can be wrong with a table.

use core::fmt;

use super::NAMES;
use crate::{Error, Problem};

/// Why a text is no problem. Lines count from 1; ids and cells are shortened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CsvError {
    /// There is no line in the text.
    Empty,
    /// The header lacks a column.
    MissingColumn {
        /// The line of the header.
        line: usize,
        /// The names it may have.
        names: Vec<&'static str>,
    },
    /// The header has a column that is not known.
    UnknownColumn {
        /// The line of the header.
        line: usize,
        /// Its name.
        name: String,
    },
    /// Two columns of the header have the same meaning.
    DuplicateColumn {
        /// The line of the header.
        line: usize,
        /// Their names, which may be the same.
        names: [String; 2],
    },
    /// A row with more or fewer cells than the header.
    Cells {
        /// The line of the row.
        line: usize,
        /// How many it has.
        found: usize,
        /// How many the header has.
        expected: usize,
    },
    /// A cell that holds what it should not.
    Cell {
        /// The line of the row.
        line: usize,
        /// The name of the column as it was read.
        column: String,
        /// The cell, or the part of it that is wrong.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// An id that an earlier row has.
    DuplicateId {
        /// The line of the row.
        line: usize,
        /// The line of the earlier one.
        first: usize,
        /// The id.
        id: String,
    },
    /// The rows are no problem, or one without a solution.
    Problem {
        /// Why.
        error: Error,
        /// The lines and ids of the buffers that the error names.
        rows: Vec<(usize, String)>,
    },
}

impl fmt::Display for CsvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "line 1: no header, expected columns like {HEADER}"),
            Self::MissingColumn { line, names } => {
                write!(f, "line {line}: there is no column {}", names.join(" or "))
            }
            Self::UnknownColumn { line, name } => {
                write!(
                    f,
                    "line {line}: the column {name:?} is not known, expected some of"
                )?;
                for (index, (known, _)) in NAMES.iter().enumerate() {
                    write!(f, "{} {known}", if index == 0 { "" } else { "," })?;
                }
                Ok(())
            }
            Self::DuplicateColumn { line, names } => write!(
                f,
                "line {line}: the columns {} and {} hold the same, expected one of them",
                names[0], names[1]
            ),
            Self::Cells {
                line,
                found,
                expected,
            } => {
                let s = if *found == 1 { "" } else { "s" };
                write!(
                    f,
                    "line {line}: {found} cell{s}, expected {expected} as in the header"
                )
            }
            Self::Cell {
                line,
                column,
                found,
                expected,
            } => write!(
                f,
                "line {line}, column {column}: found {found:?}, expected {expected}"
            ),
            Self::DuplicateId { line, first, id } => {
                write!(f, "line {line}: the id {id:?} is that of line {first} too")
            }
            Self::Problem { error, rows } => match (error, &rows[..]) {
                (Error::TooLarge { .. }, [(line, id)]) => write!(
                    f,
                    "line {line}: with {id:?} the sizes, alignments and offsets add up to more \
                     than {} bytes",
                    Problem::MAX_BYTES
                ),
                (Error::FixedMisaligned { offset, align, .. }, [(line, id)]) => write!(
                    f,
                    "line {line}: {id:?} is fixed at offset {offset}, which is no multiple of its \
                     alignment {align}"
                ),
                (Error::FixedConflict { .. }, [(line, id), (other_line, other)]) => write!(
                    f,
                    "lines {line} and {other_line}: {id:?} and {other:?} are fixed at offsets \
                     where they overlap"
                ),
                (_, [(line, _), ..]) => write!(f, "line {line}: {error}"),
                (_, []) => fmt::Display::fmt(error, f),
            },
        }
    }
}

impl core::error::Error for CsvError {}

const HEADER: &str = "id,lower,upper,size";

/// The lines of a text with their numbers, without a byte order mark.
pub(super) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    (1..).zip(text.lines())
}

/// A text for a message: a hostile file must not fill the screen.
pub(super) fn excerpt(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
