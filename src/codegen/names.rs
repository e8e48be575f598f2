//! Names of Rust made of names of files, and texts from files in source code.

/// Names that a type of a model must not hide where it is brought in: those of the language's prelude, and of the runtime's
/// types that are used beside it. `Self` is a keyword.
const TAKEN: &[&str] = &[
    "Arena", "Box", "Clone", "Copy", "Default", "Drop", "Eq", "Err", "Error", "Fn", "From", "Into",
    "Iterator", "Kernel", "None", "Ok", "Option", "Ord", "Result", "Self", "Send", "Some",
    "String", "Sync", "Vec",
];

/// The name of the type for a model that is called `name`: `KwsRefModel` for `kws_ref_model`.
///
/// Letters and digits stay, and what stands between them is left out, with a capital letter after it. Where that gives no name
/// of a type, or one that is in use, `Model` is put in front.
///
/// ```
/// use arenaplan::codegen::names::type_name;
/// assert_eq!(type_name("person-detect.v2"), "PersonDetectV2");
/// assert_eq!(type_name("3d"), "Model3d");
/// assert_eq!(type_name("größe"), "Größe");
/// ```
pub fn type_name(name: &str) -> String {
    let mut text = String::new();
    let mut is_start = true;
    for c in name.chars() {
        if !is_of_name(c) {
            is_start = true;
        } else if is_start {
            text.extend(c.to_uppercase().filter(|&c| is_of_name(c)));
            is_start = false;
        } else {
            text.push(c);
        }
    }
    let is_digit = |c: char| c.is_ascii_digit();
    if text.is_empty() || text.starts_with(is_digit) || TAKEN.contains(&&text[..]) {
        text.insert_str(0, "Model");
    }
    text
}

/// The name of the method for a model that is called `name`: `kws_ref_model` for `KWS ref-model`.
///
/// Letters and digits stay, as small ones, with `_` for what stands between them. Where that gives no name, or one that is in
/// use, `model_` is put in front.
pub fn method_name(name: &str) -> String {
    let words = name.split(|c: char| !is_of_name(c) && c != '_');
    let words: Vec<_> = words
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect();
    let text = words.join("_");
    let is_digit = |c: char| c.is_ascii_digit();
    match text.is_empty() || text.starts_with(is_digit) || KEYWORDS.contains(&&text[..]) {
        true => format!("model_{text}"),
        false => text,
    }
}

/// Words that cannot be names of methods: those of the language, and the methods that are there anyway.
const KEYWORDS: &[&str] = &[
    "_",
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "head",
    "last_run",
    "if",
    "impl",
    "in",
    "in_memory",
    "let",
    "loop",
    "macro",
    "match",
    "memory",
    "mod",
    "move",
    "mut",
    "new",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// Whether a character may stand anywhere in a name of Rust, but for digits at its start: ASCII, and the letters of large
/// alphabets, of which that is known, without those that the compiler calls uncommon.
fn is_of_name(c: char) -> bool {
    let is_letter = matches!(c,
        '\u{c0}'..='\u{131}' | '\u{134}'..='\u{13e}' | '\u{141}'..='\u{148}' | '\u{14a}'..='\u{17e}' | '\u{218}'..='\u{21b}'
        | '\u{386}'..='\u{3ce}' | '\u{400}'..='\u{45f}' | '\u{48a}'..='\u{4ff}'
        | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}');
    c.is_ascii_alphanumeric() || (is_letter && c.is_alphabetic())
}

/// Whether `name` can be that of a file in any folder.
pub(crate) fn is_file_name(name: &str) -> bool {
    let is_wrong = |c: char| {
        c.is_control() || matches!(c, '/' | '\\' | ':' | '"' | '<' | '>' | '|' | '?' | '*')
    };
    !name.is_empty() && !name.starts_with('.') && !name.contains(is_wrong)
}

/// Whether `path` is the path of an item.
pub(crate) fn is_path(path: &str) -> bool {
    let is_name = |name: &str| {
        let mut chars = name.strip_prefix("r#").unwrap_or(name).chars();
        let first = |c: char| c == '_' || c.is_alphabetic();
        chars.next().is_some_and(first) && chars.all(|c| c == '_' || c.is_alphanumeric())
    };
    path.strip_prefix("::")
        .unwrap_or(path)
        .split("::")
        .all(is_name)
}

/// A text as it can stand in a comment: in one line, and short.
pub(crate) fn in_comment(text: &str) -> String {
    crate::text::shown(&crate::text::shortened(text, 60)).replace('`', "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_names_of_rust() {
        let cases = [
            ("kws", "Kws"),
            ("KWS", "KWS"),
            ("kws_ref_model", "KwsRefModel"),
            ("person-detect (final).v2", "PersonDetectFinalV2"),
            ("3d", "Model3d"),
            ("2024-01-31", "Model20240131"),
            ("---", "Model"),
            ("", "Model"),
            ("self", "ModelSelf"),
            ("result", "ModelResult"),
            ("type", "Type"),
            ("größe", "Größe"),
            ("ßig", "SSig"),
            ("语音", "语音"),
            // Not of a name: a superscript, a letter in a circle, a combining mark.
            ("x²", "X"),
            // A letter that is two.
            ("\u{1c6}bc", "Bc"),
            ("ⓐbc", "Bc"),
            ("o\u{308}l", "OL"),
            ("a\u{202e}b", "AB"),
        ];
        for (name, expected) in cases {
            assert_eq!(type_name(name), expected, "{name}");
        }
    }

    #[test]
    fn methods_have_names_of_rust() {
        let cases = [
            ("kws", "kws"),
            ("KWS ref-model.v2", "kws_ref_model_v2"),
            ("wake_word", "wake_word"),
            ("3d", "model_3d"),
            ("type", "model_type"),
            ("new", "model_new"),
            ("--", "model_"),
            ("Größe", "größe"),
        ];
        for (name, expected) in cases {
            assert_eq!(method_name(name), expected, "{name}");
        }
    }

    #[test]
    fn paths_are_told_from_other_text() {
        for path in ["X", "crate::X", "::own_kernels::a::B2", "self::r#type"] {
            assert!(is_path(path), "{path}");
        }
        for path in ["", "crate::", "a b", "2x", "x()", "a:b", "x, y"] {
            assert!(!is_path(path), "{path}");
        }
    }

    #[test]
    fn files_have_names_that_stay_in_their_folder() {
        for name in ["kws", "kws v2", "语音"] {
            assert!(is_file_name(name), "{name}");
        }
        for name in ["", "..", "a/b", "a\\b", "a\"b", "a\nb", ".hidden"] {
            assert!(!is_file_name(name), "{name}");
        }
    }
}
