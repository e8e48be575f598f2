//! Numbers and tables as Markdown.

/// A table. Columns are aligned to the right but for those that are called left.
pub(crate) struct Table {
    header: Vec<&'static str>,
    left: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// No rows yet; the first `left` columns are texts.
    pub(crate) fn new(left: usize, header: &[&'static str]) -> Self {
        Self {
            header: header.to_vec(),
            left,
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.header.len());
        self.rows.push(cells);
    }

    pub(crate) fn markdown(&self) -> String {
        let columns = self.header.len();
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let header: Vec<String> = self.header.iter().map(|&name| name.to_owned()).collect();
        let rule = "-|".repeat(self.left) + &"-:|".repeat(columns - self.left);
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}|{rule}\n{rows}", line(&header))
    }
}

/// `1,048,576`
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Seconds with three digits or so: `0.047`, `0.00021`.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        10.0.. => format!("{seconds:.1}"),
        1.0.. => format!("{seconds:.2}"),
        0.01.. => format!("{seconds:.3}"),
        0.001.. => format!("{seconds:.4}"),
        _ => format!("{seconds:.5}"),
    }
}

/// How far a height is above its bound: `0.8 %`, or `optimal`.
pub(crate) fn gap(height: u64, bound: u64) -> String {
    match height == bound {
        true => "optimal".into(),
        false => format!("{:.2} %", 100.0 * (height - bound) as f64 / bound as f64),
    }
}

/// The middle one, or the mean of the two in the middle; 0 of none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(
            [0, 999, 1000, 1_048_576].map(thousands),
            ["0", "999", "1,000", "1,048,576"]
        );
        assert_eq!(
            [13.72, 2.345, 0.0467, 0.0041, 0.000_213].map(seconds),
            ["13.7", "2.35", "0.047", "0.0041", "0.00021"]
        );
        assert_eq!(gap(1000, 1000), "optimal");
        assert_eq!(gap(1008, 1000), "0.80 %");
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn tables() {
        let mut table = Table::new(1, &["problem", "seconds"]);
        table.row(vec!["A".into(), seconds(0.5)]);
        let expected = "| problem | seconds |\n|-|-:|\n| A | 0.500 |\n";
        assert_eq!(table.markdown(), expected);
    }
}
