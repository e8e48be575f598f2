//! Text for people: aligned tables, names that cannot disturb a terminal.

use std::path::Path;

pub(super) use crate::text::{shortened, shown, thousands};

/// A saving in percent of what there was before.
pub(super) fn percent(saved: f64) -> String {
    if saved == 0.0 {
        "-".into()
    } else {
        format!("{saved:.1} %")
    }
}

/// `1 model`, `2 models`.
pub(super) fn count(n: usize, what: &str) -> String {
    format!(
        "{} {what}{}",
        thousands(n as u64),
        if n == 1 { "" } else { "s" }
    )
}

/// The warning about a plan that is right with some kernels only.
pub(super) fn only_for(kernels: &str) -> String {
    format!("ONLY for {kernels}: with others the model computes wrong numbers")
}

/// A path below `folder`, for people.
pub(super) fn below(folder: &str, path: &str) -> String {
    let path = Path::new(path);
    let path = path.strip_prefix(folder).unwrap_or(path);
    shown(&path.display().to_string())
}

/// The longest folder that all paths share; empty when there is none.
pub(super) fn common_folder<'a>(paths: impl Iterator<Item = &'a str>) -> String {
    let mut folders = paths.map(|path| Path::new(path).parent().unwrap_or(Path::new("")));
    let first = folders.next().unwrap_or(Path::new(""));
    let common = folders.fold(first.to_path_buf(), |common, folder| {
        let same = common
            .components()
            .zip(folder.components())
            .take_while(|(a, b)| a == b);
        same.map(|(a, _)| a).collect()
    });
    common.display().to_string()
}

/// A cell by RFC 4180: quoted when it needs to be.
pub(super) fn csv_cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// How a column is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Rows under a heading, columns as wide as their widest cell, two blanks between.
pub(super) fn table(columns: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let width = |c: usize| {
        rows.iter()
            .filter_map(|r| r.get(c))
            .map(|cell| cell.chars().count())
            .chain([columns[c].0.chars().count()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    let heading: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    for row in std::iter::once(&heading).chain(rows) {
        let mut line = String::new();
        for (c, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[c].saturating_sub(cell.chars().count()));
            match columns[c].1 {
                Align::Left => line.push_str(&format!("{cell}{pad}")),
                Align::Right => line.push_str(&format!("{pad}{cell}")),
            }
            line.push_str("  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let columns = [("name", Align::Left), ("bytes", Align::Right)];
        let rows = vec![
            vec!["a".into(), "1".into()],
            vec!["longer".into(), "1,000".into()],
        ];
        assert_eq!(
            table(&columns, &rows),
            "name    bytes\na           1\nlonger  1,000\n"
        );
    }
}
