//! The generated reader against `data/format.csv`: every name, number, vtable offset, type and default of
//! the format, as two other packages have them (`data/format.py` says which).
#![cfg(feature = "host")]
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

/// `(name of enum or table, name of member or field in lower case without '_')`.
type Key = (String, String);

const EXPECTED: &str = include_str!("data/format.csv");
/// flatc's Rust has no reflection, but a regular shape.
const GENERATED: &str = include_str!("../src/generated.rs");

fn key(owner: &str, name: &str) -> Key {
    (owner.to_owned(), name.replace('_', "").to_lowercase())
}

/// What the generated code says, in the way of `format.csv`.
#[derive(Default)]
struct Generated {
    /// The integer type of each enum and union.
    repr: BTreeMap<String, String>,
    members: BTreeMap<Key, i64>,
    /// Offset, type, default.
    fields: BTreeMap<Key, (u16, String, String)>,
    tables: Vec<String>,
}

/// The text between two marks, if the line has both.
fn between<'a>(line: &'a str, from: &str, to: &str) -> Option<&'a str> {
    Some(line.split_once(from)?.1.split_once(to)?.0)
}

impl Generated {
    fn parse(code: &str) -> Self {
        let mut found = Self::default();
        let mut owner = "";
        let mut offsets: BTreeMap<(&str, &str), u16> = BTreeMap::new();
        for line in code.lines() {
            if let Some(name) = between(line, "pub struct ", "(pub ") {
                found.repr.insert(
                    name.to_owned(),
                    between(line, "(pub ", ")").unwrap().to_owned(),
                );
            } else if let Some(name) =
                between(line, "impl<'a> ", "<'a> {").filter(|n| !n.contains(' '))
            {
                owner = name;
                found.tables.push(name.to_owned());
            } else if let Some(name) = line
                .strip_prefix("impl ")
                .and_then(|l| l.strip_suffix(" {"))
            {
                owner = name;
            } else if let Some(name) = between(line, "pub const VT_", ": ::flatbuffers::VOffsetT") {
                let offset = between(line, "VOffsetT = ", ";").unwrap();
                offsets.insert((owner, name), offset.parse().unwrap());
            } else if let Some(number) = between(line, ": Self = Self(", ");") {
                let name = between(line, "pub const ", ":").unwrap();
                found
                    .members
                    .insert(key(owner, name), number.parse().unwrap());
            } else if let Some((_, get)) = line.split_once("self._tab.get::<") {
                let (kind, arguments) = get.split_once(&format!(">({owner}::VT_")).unwrap();
                let name = arguments.split_once(',').unwrap().0;
                let default = between(arguments, "Some(", ")").unwrap_or_default();
                let row = (
                    offsets[&(owner, name)],
                    found.kind(kind),
                    found.number(default),
                );
                // flatc writes `type_`, since `type` is a keyword.
                found.fields.insert(key(owner, name), row);
            }
        }
        assert_eq!(
            found.fields.len(),
            offsets.len(),
            "each offset has its accessor"
        );
        found
    }

    /// The type in the way of `format.csv`.
    fn kind(&self, rust: &str) -> String {
        let rust = rust
            .replace("::flatbuffers::", "")
            .replace("<'a>", "")
            .replace("'a, ", "");
        let rust = rust.replace("&'a str", "str").replace("&str", "str");
        let inner = |text: &str, outer: &str| {
            Some(
                text.strip_prefix(outer)?
                    .strip_prefix('<')?
                    .strip_suffix('>')?
                    .to_owned(),
            )
        };
        let Some(target) = inner(&rust, "ForwardsUOffset") else {
            return self.repr.get(&rust).cloned().unwrap_or(rust);
        };
        match inner(&target, "Vector") {
            Some(element) => {
                let element = inner(&element, "ForwardsUOffset").unwrap_or(element);
                format!("[{}]", self.repr.get(&element).unwrap_or(&element))
            }
            None if target == "Table" => "union".to_owned(),
            None => target,
        }
    }

    /// A default as a number: `TensorType::INT32` is 2.
    fn number(&self, rust: &str) -> String {
        match rust.split_once("::") {
            Some((owner, member)) => self.members[&key(owner, member)].to_string(),
            None => match rust {
                "true" => "1",
                "false" => "0",
                number => number.strip_suffix(".0").unwrap_or(number),
            }
            .to_owned(),
        }
    }
}

/// Fields that the packages behind `format.csv` know and `tflite.fbs` does not have yet. Reading skips
/// them, as it does any field added later.
const NEWER: [(&str, &str); 0] = [];

/// Equality of the two, naming what differs and not all of it.
fn assert_same<V: PartialEq + std::fmt::Debug>(
    found: &BTreeMap<Key, V>,
    expected: &BTreeMap<Key, V>,
) {
    for (key, row) in expected {
        assert_eq!(found.get(key), Some(row), "{key:?}");
    }
    for key in found.keys() {
        assert!(expected.contains_key(key), "{key:?} is not in the format");
    }
}

#[test]
fn names_numbers_types_and_defaults_are_those_of_the_format() {
    let found = Generated::parse(GENERATED);
    let (mut members, mut fields) = (BTreeMap::new(), BTreeMap::new());
    let mut tables: Vec<String> = Vec::new();
    for line in EXPECTED.lines() {
        match line.split(',').collect::<Vec<_>>().as_slice() {
            ["enum", owner, name, number] => {
                members.insert(key(owner, name), number.parse::<i64>().unwrap());
            }
            ["field", owner, name, offset, kind, default] => {
                if tables.last().is_none_or(|last| last != owner) {
                    tables.push((*owner).to_owned());
                }
                if !name.is_empty() {
                    let row = (
                        offset.parse().unwrap(),
                        (*kind).to_owned(),
                        (*default).to_owned(),
                    );
                    fields.insert(key(owner, name), row);
                }
            }
            _ => panic!("format.csv: {line}"),
        }
    }
    // As many as the format had when the table was made.
    assert_eq!((found.repr.len(), tables.len()), (20, 170));
    for (owner, name) in NEWER {
        assert!(
            fields.remove(&key(owner, name)).is_some(),
            "{owner}.{name} is in neither"
        );
    }
    assert_same(&found.members, &members);
    assert_same(&found.fields, &fields);
    let mut named = found.tables;
    named.sort();
    tables.sort();
    assert_eq!(named, tables);
}
