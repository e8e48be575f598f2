//! Text for people: numbers with separators, aligned tables.

/// `73728` as `73,728`.
pub(super) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(c);
    }
    text
}

/// A saving in percent: `-25.0 %`, or `0 %` when there is none.
pub(super) fn percent(saved: f64) -> String {
    if saved == 0.0 {
        "0 %".into()
    } else {
        format!("{:+.1} %", -saved)
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
    fn thousands_are_separated() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (73728, "73,728"),
            (1_048_576, "1,048,576"),
        ];
        for (n, text) in cases {
            assert_eq!(thousands(n), text);
        }
    }

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
