//! Bytes and numbers as C text, and text that cannot end a comment.

use std::fmt::Write as _;

/// Appends the elements of a byte array, in lines of at most 100 characters.
///
/// In decimal and without blanks: a third less text than in hexadecimal, which is what compilers take their time for.
pub(super) fn push_bytes(text: &mut String, bytes: &[u8]) {
    push_list(text, bytes.iter().map(|b| i64::from(*b)));
}

/// Appends numbers between commas, in lines of at most 100 characters.
pub(super) fn push_list(text: &mut String, numbers: impl Iterator<Item = i64>) {
    let mut width = 0;
    let mut word = String::new();
    for number in numbers {
        word.clear();
        // Writing to a String does not fail.
        let _ = write!(word, "{number},");
        if width + word.len() > 100 {
            text.push('\n');
            width = 0;
        }
        text.push_str(&word);
        width += word.len();
    }
    if width > 0 {
        text.push('\n');
    }
}

/// A number of type `float`; `None` for what C has no literal for.
pub(super) fn float(number: f32) -> Option<String> {
    number.is_finite().then(|| format!("{number:?}f"))
}

/// A name for a comment: of one line, and without what could end the comment.
pub(super) fn plain(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || " _.,:;+-()[]<>=/".contains(c);
    let shortened = crate::text::shortened(name, 60);
    shortened
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect()
}

/// A string literal: everything but plain characters as octal escapes, which end after three digits.
pub(super) fn literal(text: &str) -> String {
    let mut literal = String::from("\"");
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b" _.,:;+-()[]<>=/".contains(&byte) {
            literal.push(char::from(byte));
        } else {
            let _ = write!(literal, "\\{byte:03o}");
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_short() {
        let mut text = String::new();
        push_bytes(&mut text, &[255; 60]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines.iter().map(|l| l.len()).collect::<Vec<_>>(),
            [100, 100, 40]
        );
        assert_eq!(text.matches("255,").count(), 60);
        assert!(text.ends_with('\n'));
        text.clear();
        push_bytes(&mut text, &[]);
        assert_eq!(text, "");
    }

    #[test]
    fn numbers_are_literals() {
        assert_eq!(float(0.5).as_deref(), Some("0.5f"));
        assert_eq!(float(1e-10).as_deref(), Some("1e-10f"));
        assert_eq!(float(3.0).as_deref(), Some("3.0f"));
        assert_eq!(float(f32::NAN), None);
        assert_eq!(float(f32::INFINITY), None);
    }

    #[test]
    fn names_end_nothing() {
        assert_eq!(plain("a*/b\\\n/*c??/"), "a_/b__/_c__/");
        assert_eq!(literal("a\"\\\n7é"), "\"a\\042\\134\\0127\\303\\251\"");
    }
}
