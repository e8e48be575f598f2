//! Numbers and names for people.

/// `73728` as `73,728`.
pub(crate) fn thousands(n: u64) -> String {
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

/// A name cut in the middle to at most `width` characters.
pub(crate) fn shortened(name: &str, width: usize) -> String {
    let all: Vec<char> = name.chars().collect();
    if all.len() <= width {
        return name.to_owned();
    }
    let tail = width / 2;
    let head = width - tail - 1;
    let (first, last) = (&all[..head], &all[all.len() - tail..]);
    first.iter().chain(['…'].iter()).chain(last).collect()
}

/// A name with its control characters escaped, those that turn the direction of writing included.
pub(crate) fn shown(name: &str) -> String {
    let is_control = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    name.chars()
        .flat_map(|c| {
            let plain = (!is_control(c)).then_some(c);
            let escaped = is_control(c)
                .then(|| c.escape_default())
                .into_iter()
                .flatten();
            plain.into_iter().chain(escaped)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_in_the_middle() {
        assert_eq!(shortened("abcdefghij", 7), "abc…hij");
        assert_eq!(shortened("abc", 7), "abc");
    }

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
    fn names_are_made_harmless() {
        assert_eq!(shown("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(shown("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(shown("grün.tflite"), "grün.tflite");
    }
}
