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
}
