//! Problems as text, in the comma-separated form of MiniMalloc.
//!
//! ```text
//! id,lower,upper,size,gaps
//! b1,0,3,4,
//! b2,3,9,4,5-7 8-9@0:2
//! ```
//! A row is a buffer, alive from `lower` up to but not including `upper`. The columns, in any
//! order:
//!
//! | column | other names | if missing | a cell |
//! |-|-|-|-|
//! | `id` | `buffer`, `buffer_id` | an error | any text, once |
//! | `lower` | `begin`, `start` | an error | the first point in time, 64 bits |
//! | `upper` | | an error | the first point in time after the last one |
//! | `end` | | `upper` is there | the last point in time |
//! | `size` | | an error | bytes |
//! | `alignment` | | 1 | the offset is a multiple of this many bytes; empty: 1 |
//! | `hint` | | none | an offset to try first, kept but not used here; empty or negative: none |
//! | `gaps` | | none | gaps, separated by blanks |
//! | `offset` | | free | where the buffer must be; empty: free |
//!
//! A gap `lower-upper` is a time in which the buffer uses nothing, a gap `lower-upper@bottom:top`
//! one in which it uses only the bytes from `bottom` up to but not including `top` of its own. In
//! a table with the column `end`, gaps include their last point in time too.
//!
//! Two buffers are in conflict if both use something at one time. One of them is then below the
//! other at all these times, by as much as the parts in use ask for at the worst of them. This is
//! what MiniMalloc's validator checks. It may start above the start of the other one.
//!
//! Rows end with `\n` or `\r\n`; blank lines, blanks around cells and a byte order mark are
//! skipped. There are no quotes: a cell cannot hold a comma.

mod error;
mod pieces;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub use error::CsvError;
use error::{excerpt, numbered};
use pieces::{Piece, Window};

use crate::solve::solve_known;
use crate::{Buffer, Error, Lifetime, Limits, Placement, Planner, Problem, Solution};

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Id,
    Lower,
    Upper,
    Size,
    Alignment,
    Hint,
    Gaps,
    Offset,
}

const END: &str = "end";
const OFFSET: &str = "offset";

/// All names of columns.
const NAMES: [(&str, Column); 13] = [
    ("id", Column::Id),
    ("buffer", Column::Id),
    ("buffer_id", Column::Id),
    ("lower", Column::Lower),
    ("begin", Column::Lower),
    ("start", Column::Lower),
    ("upper", Column::Upper),
    (END, Column::Upper),
    ("size", Column::Size),
    ("alignment", Column::Alignment),
    ("hint", Column::Hint),
    ("gaps", Column::Gaps),
    (OFFSET, Column::Offset),
];

/// A problem with the rows that it was read from.
#[derive(Clone, Debug)]
pub struct Table {
    /// The buffers in the order of the rows, and the conflicts that follow from lifetimes and gaps.
    ///
    /// Lifetimes are the times of the table where those fit into 32 bits, else their ranks. They
    /// reach from the first to the last use of a buffer.
    pub problem: Problem,
    /// The greatest of the bytes in use at one time and the tops that buffers have in any case.
    live_bytes: u64,
    header: Header,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    /// The line, 1 for the first one of the text.
    line: usize,
    /// As many as the header has; a missing alignment or hint is filled in.
    cells: Vec<String>,
}

impl Table {
    /// The ids of the buffers, in the order of the rows.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = &str> {
        self.rows.iter().map(|row| self.header.id(row))
    }

    /// Finds a placement that is as low as possible, or one that fits into `capacity` bytes, and
    /// then ends. [`Solution::lower_bound`] counts what is in use at one time, which
    /// [`Problem::liveness_bound`] does not see through gaps.
    ///
    /// # Errors
    /// [`CsvError::Problem`], as [`solve`](crate::solve()).
    pub fn solve(
        &self,
        planner: Planner,
        capacity: Option<u64>,
        limits: &Limits,
    ) -> Result<Solution, CsvError> {
        let solution = solve_known(&self.problem, planner, capacity, self.live_bytes, limits);
        solution.map_err(|error| locate(error, &self.header, &self.rows))
    }

    /// The table with the offsets of `placement` in the column `offset`, which is put last if there
    /// was none. All other cells are as they were read, but without blanks around them, and with
    /// `1` for an empty alignment and `-1` for an empty hint, so that MiniMalloc reads it.
    pub fn with_offsets(&self, placement: &Placement) -> String {
        self.text(Some(&placement.offsets))
    }

    /// Whether the other table has the same columns and rows, whatever the offsets are.
    pub fn is_same_problem(&self, other: &Self) -> bool {
        self.text(None) == other.text(None)
    }

    /// The table with these offsets, or without any.
    fn text(&self, offsets: Option<&[u64]>) -> String {
        let at = self.header.position(Column::Offset);
        let mut text = String::new();
        let mut add = |cells: &[String], offset: &str| {
            let mut cells: Vec<&str> = cells.iter().map(String::as_str).collect();
            match (at, offsets) {
                (Some(at), Some(_)) => cells[at] = offset,
                (Some(at), None) => drop(cells.remove(at)),
                (None, Some(_)) => cells.push(offset),
                (None, None) => {}
            }
            text += &cells.join(",");
            text.push('\n');
        };
        add(&self.header.names, OFFSET);
        for (index, row) in self.rows.iter().enumerate() {
            let offset = offsets.and_then(|all| all.get(index));
            add(&row.cells, &offset.map_or(String::new(), u64::to_string));
        }
        text
    }
}

/// The first line.
#[derive(Clone, Debug)]
struct Header {
    /// The names as they were read.
    names: Vec<String>,
    columns: Vec<Column>,
    /// Whether lifetimes and gaps include their last point in time.
    inclusive: bool,
    id_at: usize,
}

impl Header {
    fn parse(line: usize, text: &str) -> Result<Self, CsvError> {
        let mut header = Self {
            names: Vec::new(),
            columns: Vec::new(),
            inclusive: false,
            id_at: 0,
        };
        for name in text.split(',').map(str::trim) {
            let known = NAMES.iter().find(|(known, _)| *known == name);
            let Some(&(known, column)) = known else {
                let name = excerpt(name);
                return Err(CsvError::UnknownColumn { line, name });
            };
            if let Some(at) = header.position(column) {
                let names = [header.names[at].clone(), name.to_owned()];
                return Err(CsvError::DuplicateColumn { line, names });
            }
            header.inclusive |= known == END;
            header.names.push(name.to_owned());
            header.columns.push(column);
        }
        for needed in [Column::Id, Column::Lower, Column::Upper, Column::Size] {
            if header.position(needed).is_none() {
                let named = NAMES.iter().filter(|(_, column)| *column == needed);
                let names = named.map(|(name, _)| *name).collect();
                return Err(CsvError::MissingColumn { line, names });
            }
        }
        header.id_at = header.position(Column::Id).unwrap_or(0);
        Ok(header)
    }

    fn position(&self, column: Column) -> Option<usize> {
        self.columns.iter().position(|&c| c == column)
    }

    fn id<'a>(&self, row: &'a Row) -> &'a str {
        &row.cells[self.id_at]
    }
}

/// A row while it is read.
struct Cells<'a> {
    header: &'a Header,
    line: usize,
    cells: Vec<&'a str>,
}

impl<'a> Cells<'a> {
    fn split(header: &'a Header, line: usize, text: &'a str) -> Result<Self, CsvError> {
        let expected = header.names.len();
        let found = text.split(',').count();
        if found != expected {
            return Err(CsvError::Cells {
                line,
                found,
                expected,
            });
        }
        let cells = text.split(',').map(str::trim).collect();
        Ok(Self {
            header,
            line,
            cells,
        })
    }

    /// The cell, if it holds something.
    fn given(&self, column: Column) -> Option<&'a str> {
        let at = self.header.position(column)?;
        Some(self.cells[at]).filter(|cell| !cell.is_empty())
    }

    fn wrong(&self, column: Column, found: &str, expected: impl Into<String>) -> CsvError {
        let at = self.header.position(column).unwrap_or(0);
        CsvError::Cell {
            line: self.line,
            column: self.header.names[at].clone(),
            found: excerpt(found),
            expected: expected.into(),
        }
    }

    fn bytes(&self, column: Column, least: u64) -> Result<Option<u64>, CsvError> {
        let Some(cell) = self.given(column) else {
            return Ok(None);
        };
        let in_range = |n: &u64| (least..=Problem::MAX_BYTES).contains(n);
        match cell.parse().ok().filter(in_range) {
            Some(n) => Ok(Some(n)),
            None => Err(self.wrong(column, cell, format!("bytes, from {least} to 2^61"))),
        }
    }

    fn time(&self, column: Column) -> Result<i64, CsvError> {
        let cell = self.given(column).unwrap_or("");
        let wrong = |_| self.wrong(column, cell, "a point in time, a number of 64 bits");
        cell.parse().map_err(wrong)
    }

    /// The last point in time of what ends at `upper`, if there is one from `first` on.
    fn last(&self, first: i64, upper: i64) -> Option<i64> {
        let last = match self.header.inclusive {
            true => Some(upper),
            false => upper.checked_sub(1),
        };
        last.filter(|&last| last >= first)
    }

    /// The buffer, with a lifetime to be filled in, and the pieces of its time in which it is used.
    fn read(&self) -> Result<(Buffer, Vec<Piece>), CsvError> {
        if self.given(Column::Id).is_none() {
            return Err(self.wrong(Column::Id, "", "a name"));
        }
        let size = self.bytes(Column::Size, 0)?;
        let size = size.ok_or_else(|| self.wrong(Column::Size, "", "bytes, from 0 to 2^61"))?;
        let buffer = Buffer {
            size,
            align: self.bytes(Column::Alignment, 1)?.unwrap_or(1),
            lifetime: Lifetime::new(0, 0),
            fixed: self.bytes(Column::Offset, 0)?,
        };
        if let Some(hint) = self.given(Column::Hint)
            && hint.parse::<i64>().is_err()
        {
            return Err(self.wrong(
                Column::Hint,
                hint,
                "an offset, or a negative number for none",
            ));
        }
        let first = self.time(Column::Lower)?;
        let upper = self.time(Column::Upper)?;
        let Some(last) = self.last(first, upper) else {
            let found = self.given(Column::Upper).unwrap_or("");
            let expected = match self.header.inclusive {
                true => format!("a point in time from {first} on, where the lifetime starts"),
                false => format!("a point in time after {first}, where the lifetime starts"),
            };
            return Err(self.wrong(Column::Upper, found, expected));
        };
        let whole = Piece {
            first,
            last,
            window: Window {
                bottom: 0,
                top: size,
            },
        };
        let gaps = self.gaps(whole)?;
        Ok((buffer, pieces::cut(whole, &gaps)))
    }

    /// The gaps of a buffer, by time.
    fn gaps(&self, whole: Piece) -> Result<Vec<(Piece, bool)>, CsvError> {
        let mut gaps = Vec::new();
        for text in self.given(Column::Gaps).unwrap_or("").split_whitespace() {
            let wrong = |expected: String| self.wrong(Column::Gaps, text, expected);
            let form = || wrong("a gap, lower-upper or lower-upper@bottom:top".into());
            let (times, window) = match text.split_once('@') {
                Some((times, window)) => (times, Some(window)),
                None => (text, None),
            };
            let (first, upper) = split_times(times).ok_or_else(form)?;
            let Some(last) = self.last(first, upper) else {
                return Err(wrong("a gap that ends after it starts".into()));
            };
            if first < whole.first || last > whole.last {
                return Err(wrong("a gap inside the lifetime".into()));
            }
            let mut gap = Piece {
                first,
                last,
                ..whole
            };
            if let Some(window) = window {
                let parts = window.split_once(':').ok_or_else(form)?;
                let bottom = parts.0.parse().map_err(|_| form())?;
                let top = parts.1.parse().map_err(|_| form())?;
                if bottom >= top || top > whole.window.top {
                    let size = whole.window.top;
                    return Err(wrong(format!("a window of some of the {size} bytes")));
                }
                gap.window = Window { bottom, top };
            }
            gaps.push((gap, window.is_some(), text));
        }
        gaps.sort_by_key(|(gap, ..)| gap.first);
        for pair in gaps.windows(2) {
            let [(before, ..), (after, _, text)] = pair else {
                continue;
            };
            if after.first <= before.last {
                let expected = "a gap that overlaps no other one";
                return Err(self.wrong(Column::Gaps, text, expected));
            }
        }
        let gaps = gaps.into_iter().map(|(gap, window, _)| (gap, window));
        Ok(gaps.collect())
    }

    fn into_row(self) -> Row {
        let filled = |(at, &cell): (usize, &&str)| match (self.header.columns[at], cell) {
            (Column::Alignment, "") => "1".to_owned(),
            (Column::Hint, "") => "-1".to_owned(),
            _ => cell.to_owned(),
        };
        Row {
            line: self.line,
            cells: self.cells.iter().enumerate().map(filled).collect(),
        }
    }
}

/// `lower-upper`, each perhaps with a sign.
fn split_times(text: &str) -> Option<(i64, i64)> {
    let (at, _) = text.char_indices().skip(1).find(|(_, c)| *c == '-')?;
    Some((text[..at].parse().ok()?, text[at + 1..].parse().ok()?))
}

/// Reads a problem: buffers in the order of the rows, in conflict where both are in use.
///
/// # Errors
/// [`CsvError`], with the line. Offsets that contradict each other are no error here but one of
/// [`Table::solve`].
pub fn parse(text: &str) -> Result<Table, CsvError> {
    let mut lines = numbered(text).filter(|(_, line)| !line.trim().is_empty());
    let (line, header) = lines.next().ok_or(CsvError::Empty)?;
    let header = Header::parse(line, header)?;
    let mut rows = Vec::new();
    let mut buffers = Vec::new();
    let mut pieces = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (line, text) in lines {
        let cells = Cells::split(&header, line, text)?;
        let (buffer, used) = cells.read()?;
        if let Some(first) = known.insert(cells.cells[header.id_at], line) {
            let id = excerpt(cells.cells[header.id_at]);
            return Err(CsvError::DuplicateId { line, first, id });
        }
        pieces.extend(used.into_iter().map(|piece| (buffers.len(), piece)));
        buffers.push(buffer);
        rows.push(cells.into_row());
    }
    let live_bytes = live_bytes(&buffers, &pieces);
    let problem =
        pieces::problem(buffers, &pieces).map_err(|error| locate(error, &header, &rows))?;
    Ok(Table {
        problem,
        live_bytes,
        header,
        rows,
    })
}

/// The greatest of the bytes in use at one time and the top of each buffer by itself.
fn live_bytes(buffers: &[Buffer], pieces: &[(usize, Piece)]) -> u64 {
    let top = |b: &Buffer| b.size + b.fixed.unwrap_or(0);
    let tops = buffers.iter().map(top).max().unwrap_or(0);
    tops.max(pieces::live_bytes(pieces))
}

fn locate(error: Error, header: &Header, rows: &[Row]) -> CsvError {
    let ids = match error {
        Error::TooLarge { id }
        | Error::ZeroAlignment { id }
        | Error::InvertedLifetime { id, .. }
        | Error::FixedMisaligned { id, .. } => vec![id],
        Error::FixedConflict { a, b } => vec![a.min(b), a.max(b)],
        _ => Vec::new(),
    };
    let rows = ids.iter().filter_map(|id| rows.get(id.index()));
    let rows = rows.map(|row| (row.line, excerpt(header.id(row))));
    let rows = rows.collect();
    CsvError::Problem { error, rows }
}

/// Writes the buffers of a problem, ids as numbers. Columns `alignment` and `offset` are there if
/// a buffer needs them. Conflicts are not written: they are those of the lifetimes.
pub fn write(problem: &Problem) -> String {
    let aligned = problem.buffers().any(|(_, b)| b.align != 1);
    let fixed = problem.buffers().any(|(_, b)| b.fixed.is_some());
    let mut text = String::from("id,lower,upper,size");
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
