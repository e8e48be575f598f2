//! Names for things in the source: identifiers of C and C++ from the names of files.

use std::fmt;

use crate::error::Error;

/// An identifier that may stand alone, be a prefix, and, in capitals, be the prefix of macros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// The name that the user gave.
    ///
    /// # Errors
    /// [`Error::Option`] if it is no identifier, or one that C or C++ keeps for itself (keywords, `_` at the start, `__`).
    pub fn new(text: &str) -> Result<Self, Error> {
        let name = Self::from_stem(text);
        if name.0 == text {
            Ok(name)
        } else {
            Err(Error::Option {
                name: "name",
                reason: format!(
                    "{text:?} cannot be the name of things in C and C++; {:?} can",
                    name.0
                ),
            })
        }
    }

    /// A name made from the stem of a file's name: everything else than letters, digits and `_` becomes `_`.
    pub fn from_stem(stem: &str) -> Self {
        let mut name = String::new();
        for c in stem.chars() {
            if c.is_ascii_alphanumeric() {
                name.push(c);
            } else if !name.is_empty() && !name.ends_with('_') {
                name.push('_');
            }
        }
        let kept = name.trim_end_matches('_').len();
        name.truncate(kept);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            name.insert_str(0, if name.is_empty() { "model" } else { "model_" });
        }
        if KEYWORDS.contains(&name.as_str()) || is_used_in_headers(&name) {
            name.push_str("_model");
        }
        Self(name)
    }

    /// In capitals, for macros.
    pub fn capitals(&self) -> String {
        self.0.to_ascii_uppercase()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether the headers mean something else by a name. They have a namespace of the model's name, which hides it there.
fn is_used_in_headers(name: &str) -> bool {
    let is_of_tflm = |name: &str| name.starts_with("TfLite") || name.starts_with("kTfLite");
    matches!(name, "tflite" | "memcpy" | "MicroPrintf") || is_of_tflm(name) || name.ends_with("_t")
}

/// Words that C11 or C++ up to 2023 do not allow as a name, and macros that are often there.
const KEYWORDS: [&str; 108] = [
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "linux",
    "long",
    "main",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "typeof_unqual",
    "union",
    "unix",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "EOF",
    "INFINITY",
    "NAN",
    "NULL",
    "assert",
    "errno",
    "stdin",
    "stdout",
    "stderr",
    "arm",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_files() {
        for (stem, name) in [
            ("kws_ref_model", "kws_ref_model"),
            ("vww-96.int8 (1)", "vww_96_int8_1"),
            ("96_vww", "model_96_vww"),
            ("__x__", "x"),
            ("_", "model"),
            ("", "model"),
            ("modèle", "mod_le"),
            ("int", "int_model"),
            ("Int", "Int"),
            ("tflite", "tflite_model"),
            ("size_t", "size_t_model"),
            ("TfLiteStatus", "TfLiteStatus_model"),
            ("TFLite", "TFLite"),
            ("*/ #error", "error"),
        ] {
            assert_eq!(Name::from_stem(stem).to_string(), name, "{stem}");
        }
    }

    #[test]
    fn given_names_are_taken_as_they_are_or_refused() {
        assert_eq!(Name::new("Kws2").map(|n| n.capitals()), Ok("KWS2".into()));
        for wrong in ["", "2kws", "a-b", "a__b", "_a", "a_", "class", "ä"] {
            assert!(Name::new(wrong).is_err(), "{wrong}");
        }
        let message = Name::new("my model").unwrap_err().to_string();
        assert!(message.contains("\"my_model\" can"), "{message}");
    }
}
