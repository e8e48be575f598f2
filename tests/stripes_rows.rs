//! Row arithmetic of stripes against loops over the taps of small windows.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

use std::ops::Range;

use arenaplan::stripes::{Given, Rows, Window};

/// A layer over the rows of an image.
#[derive(Clone, Copy, Debug)]
struct Layer {
    rows: i64,
    kernel: i64,
    stride: i64,
    dilation: i64,
    same: bool,
}

impl Layer {
    /// For each output row of so many input rows, the rows that its taps read, also those that are padding: below 0, or behind
    /// the last. Counted up without a formula of the padding: SAME has an output row for each `stride` begun, and of the rows
    /// that its windows stick out, the smaller half is at the top.
    fn taps(&self, rows: i64) -> Vec<Vec<i64>> {
        let reach = (self.kernel - 1) * self.dilation;
        let mut starts = Vec::new();
        let mut start = 0;
        while match self.same {
            true => start < rows,
            false => start + reach < rows,
        } {
            starts.push(start);
            start += self.stride;
        }
        let out = starts.last().map_or(0, |last| last + reach + 1 - rows);
        let top = if self.same && out > 0 { out / 2 } else { 0 };
        let taps = |start: &i64| {
            let at = |tap| start - top + tap * self.dilation;
            (0..self.kernel).map(at).collect()
        };
        starts.iter().map(taps).collect()
    }

    fn window(&self) -> Window {
        Window {
            extent: (self.kernel - 1) * self.dilation + 1,
            stride: self.stride,
            same: self.same,
            rows_in: self.rows,
            rows_out: self.taps(self.rows).len() as i64,
        }
    }

    /// What comes out of the rows `part`, of which `right` hold what they should: the first output row, and for each whether it
    /// is right. `None` where they lie between those of the whole, or outside.
    fn computed(&self, part: &Range<i64>, right: &Range<i64>) -> Option<(i64, Vec<bool>)> {
        let (whole, local) = (self.taps(self.rows), self.taps(part.end - part.start));
        let start = local.first()?[0] + part.start;
        let first = whole.iter().position(|taps| taps[0] == start)?;
        let rows = whole.get(first..first + local.len())?;
        // What a tap reads: a row, or padding.
        let read = |taps: &[i64], offset: i64, end: i64| -> Vec<Option<i64>> {
            let row = |&tap: &i64| (0..end).contains(&tap).then_some(tap + offset);
            taps.iter().map(row).collect()
        };
        let is_right = |(whole, local): (&Vec<i64>, &Vec<i64>)| {
            let wanted = read(whole, 0, self.rows);
            let found = read(local, part.start, part.end - part.start);
            wanted == found && found.iter().flatten().all(|row| right.contains(row))
        };
        Some((
            first as i64,
            rows.iter().zip(&local).map(is_right).collect(),
        ))
    }
}

fn layers(most: i64) -> Vec<Layer> {
    let mut all = Vec::new();
    for rows in 1..=most {
        for kernel in 1..=5 {
            for (stride, dilation) in [1, 2, 3].into_iter().flat_map(|s| [(s, 1), (s, 2)]) {
                for same in [true, false] {
                    all.push(Layer {
                        rows,
                        kernel,
                        stride,
                        dilation,
                        same,
                    });
                }
            }
        }
    }
    all
}

/// All ranges of at least one row.
fn ranges(of: Range<i64>) -> impl Iterator<Item = Range<i64>> {
    let end = of.end;
    of.flat_map(move |first| (first + 1..=end).map(move |last| first..last))
}

fn rows(range: &Range<i64>) -> Rows {
    Rows::new(range.start, range.end)
}

#[test]
fn output_rows_are_counted_as_loops_do() {
    for layer in layers(12) {
        let window = layer.window();
        let counted = layer.taps(layer.rows).len() as i64;
        assert_eq!(window.rows_out_of(layer.rows).max(0), counted, "{layer:?}");
    }
}

/// Rows that are called right read what they read in the whole, and no others do.
#[test]
fn right_rows_read_what_they_read_in_the_whole() {
    let (mut right_rows, mut wrong_rows, mut refused) = (0, 0, 0);
    for layer in layers(12) {
        let window = layer.window();
        if window.rows_out == 0 {
            continue;
        }
        for part in ranges(0..layer.rows) {
            // With small images, all parts of the part may be the right one.
            let right: Vec<_> = match layer.rows <= 8 {
                true => ranges(part.clone()).collect(),
                false => vec![part.clone()],
            };
            for right in right {
                let case = format!("{layer:?} rows {part:?} right {right:?}");
                let made = window.forward(Given {
                    rows: rows(&part),
                    right: rows(&right),
                });
                let Some((first, is_right)) = layer.computed(&part, &right) else {
                    assert_eq!(made, None, "{case}");
                    refused += 1;
                    continue;
                };
                let made = made.unwrap_or_else(|| panic!("{case}: refused"));
                let all = first..first + is_right.len() as i64;
                assert_eq!(made.rows, rows(&all), "{case}");
                for (row, is_right) in all.zip(is_right) {
                    let is_claimed = made.right.contain(Rows::new(row, row + 1));
                    assert!(is_right || !is_claimed, "{case}: row {row} is wrong");
                    // A dilated window may jump over what is missing.
                    let may_be_wrong = layer.dilation > 1 && layer.kernel > 1;
                    assert!(
                        !is_right || is_claimed || may_be_wrong,
                        "{case}: row {row} is right"
                    );
                    match is_right {
                        true => right_rows += 1,
                        false => wrong_rows += 1,
                    }
                }
            }
        }
    }
    println!("{right_rows} rows are right, {wrong_rows} wrong; {refused} parts are refused");
    assert!(right_rows.min(wrong_rows).min(refused) > 1_000);
}

/// The input rows of an output part give it, and no smaller ones do.
#[test]
fn input_rows_of_a_part_are_the_least() {
    let (mut parts, mut without) = (0, 0);
    for layer in layers(12) {
        let window = layer.window();
        for wanted in ranges(0..window.rows_out) {
            let case = format!("{layer:?} rows {wanted:?} of the output");
            let gives = |part: &Range<i64>| {
                let Some((first, is_right)) = layer.computed(part, part) else {
                    return false;
                };
                let mut rows = wanted.clone();
                rows.all(|row| {
                    let at = usize::try_from(row - first).ok();
                    at.and_then(|at| is_right.get(at).copied()).unwrap_or(false)
                })
            };
            let least = ranges(0..layer.rows)
                .filter(gives)
                .map(|part| part.end - part.start)
                .min();
            let found = window.backward(rows(&wanted));
            match (found, least) {
                (Some(found), Some(least)) => {
                    assert!(gives(&(found.first..found.end)), "{case}: {found:?}");
                    // As above: what a dilated window jumps over is asked for, too.
                    let is_dilated = layer.dilation > 1 && layer.kernel > 1;
                    let is_least = found.count() == least || is_dilated && found.count() > least;
                    assert!(is_least, "{case}: {found:?}, {least} rows are enough");
                    parts += 1;
                }
                (None, None) => without += 1,
                _ => panic!("{case}: {found:?}, {least:?} rows are enough"),
            }
        }
    }
    println!("{parts} parts, {without} without input rows");
    assert!(parts > 1_000);
}
