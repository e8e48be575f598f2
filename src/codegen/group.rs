//! Rust for models that take turns on one arena: a type that owns the arena, and a type for the turn of each model.
//!
//! ```text
//! struct Voice<'a>           ARENA_BYTES, HEAD_BYTES, TAIL_BYTES, new, in_memory; vad, kws: a turn of a model
//! struct Vad<'s, 'a>         what the type of a model alone has: constants, input_mut, invoke, output, reset
//! ```
//!
//! The turn of a model borrows the whole, so that an output that somebody holds is not overwritten by another model, and the whole
//! knows which model has run last: outputs that are no longer there, and linked inputs that are not there yet, are an error.
//! An input that is linked to another model's output has no method that sets it.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Interface;
use super::error::Error;
use super::names::{in_comment, is_file_name, method_name, type_name};
use super::rust::{ALLOW, RustOptions, Writer, header, makers, port_constants, port_methods};
use crate::text::thousands;

/// A model of a group.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'t> {
    /// The name: the file is called `NAME.tflite`.
    pub name: &'t str,
    /// What a program has to know of it.
    pub model: &'t Interface,
    /// Inputs that are outputs of models before it, and not set.
    pub linked: &'t [usize],
    /// The model that has to run directly before it, if it has linked inputs: its place in the group.
    pub after: Option<usize>,
}

/// The code for models that share an arena, of which the head and all tails are the parts, to be written as `NAME.rs`.
///
/// # Errors
/// [`Error::Name`].
pub fn group(name: &str, turns: &[Turn<'_>], options: &RustOptions) -> Result<String, Error> {
    options.check()?;
    for name in turns.iter().map(|t| t.name).chain([name]) {
        if !is_file_name(name) {
            return Err(Error::Name {
                what: "model's name",
                name: name.to_owned(),
                reason: "cannot be that of a file: give it another one with `.named(\"...\")`",
            });
        }
    }
    let (methods, types) = (turns.iter(), turns.iter().map(|t| t.name).chain([name]));
    let methods = methods.map(|t| (t.name, method_name(t.name)));
    let types = types.map(|name| (name, type_name(name)));
    if let Some(twice) = twice(methods).or_else(|| twice(types)) {
        return Err(Error::Name {
            what: "model's name",
            name: twice.to_owned(),
            reason: "gives the same name of Rust as another one: give it another one with `.named(\"...\")`",
        });
    }
    let mut text = String::new();
    let all = Group {
        name,
        type_name: &type_name(name),
        turns,
        options,
    };
    // Writing to a string cannot fail.
    let _ = all.write(&mut text);
    Ok(text)
}

/// The first that gives a name which is there already.
fn twice<'n>(names: impl Iterator<Item = (&'n str, String)>) -> Option<&'n str> {
    let mut known = BTreeSet::new();
    let mut names = names;
    names.find_map(|(name, made)| (!known.insert(made)).then_some(name))
}

struct Group<'g> {
    name: &'g str,
    type_name: &'g str,
    turns: &'g [Turn<'g>],
    options: &'g RustOptions,
}

impl Group<'_> {
    fn head_bytes(&self) -> usize {
        let heads = self.turns.iter().map(|t| t.model.head_bytes);
        heads.max().unwrap_or(0)
    }

    fn tail_bytes(&self) -> usize {
        self.turns.iter().map(|t| t.model.tail_bytes).sum()
    }

    fn write(&self, f: &mut String) -> std::fmt::Result {
        let &Self {
            type_name: name,
            turns,
            options,
            ..
        } = self;
        let names: Vec<_> = turns
            .iter()
            .map(|t| format!("`{}`", in_comment(t.name)))
            .collect();
        let names = names.join(", ");
        let arena = self.head_bytes() + self.tail_bytes();
        f.push_str(&header(&format!("models that share an arena, {names}")));
        let visibility = options.visible();
        writeln!(
            f,
            "/// The models {names}, which take turns on one arena of {} bytes (`{}`).\n///\n/// When another model \
             has run, nothing of a model is left but what it keeps: inputs are set before each inference, and outputs read \
             before the next model runs.",
            thousands(arena as u64),
            in_comment(self.name)
        )?;
        if turns.iter().any(|t| !t.linked.is_empty()) {
            writeln!(
                f,
                "/// Linked models run in this order, with no other in between: inputs that have no method are outputs of a \
                 model before."
            )?;
        }
        writeln!(
            f,
            "#[derive(::core::fmt::Debug)]\n{ALLOW}\n{visibility}struct {name}<'a> {{\n    head: &'a mut [u8],\n    last_run: usize,"
        )?;
        for turn in turns {
            let field = method_name(turn.name);
            writeln!(f, "    {field}: ::arenaplan_runtime::Session<'static, 'a>,")?;
        }
        writeln!(f, "}}\n\n{ALLOW}\nimpl<'a> {name}<'a> {{")?;
        for (constant, bytes, what) in [
            ("ARENA", arena, "the smallest arena: the head and all tails"),
            (
                "HEAD",
                self.head_bytes(),
                "the head, on which the models take turns",
            ),
            ("TAIL", self.tail_bytes(), "all tails"),
        ] {
            writeln!(
                f,
                "    /// Bytes of {what}.\n    pub const {constant}_BYTES: usize = {bytes};"
            )?;
        }
        self.makers(f, arena)?;
        for turn in turns {
            let (method, turn_type) = (method_name(turn.name), type_name(turn.name));
            writeln!(
                f,
                "\n    /// A turn of the model `{}`.\n    #[inline]\n    pub fn {method}(&mut self) -> {turn_type}<'_, 'a> \
                 {{\n        {turn_type} {{ session: &mut self.{method}, head: self.head, last_run: &mut self.last_run }}\n    }}",
                in_comment(turn.name)
            )?;
        }
        f.push_str("}\n");
        let mut turns = turns.iter().enumerate();
        turns.try_for_each(|(number, turn)| self.turn(f, number, turn))
    }

    fn makers(&self, f: &mut String, arena: usize) -> std::fmt::Result {
        let name = self.type_name;
        let turns = || self.turns.iter();
        let list =
            |words: fn(&Turn<'_>) -> String| turns().map(words).collect::<Vec<_>>().join(", ");
        let fields = list(|t| method_name(t.name));
        let tails = list(|t| format!("{}::TAIL_BYTES", type_name(t.name)));
        f.push_str(&makers(name, "all models", arena));
        writeln!(
            f,
            "        let (head, [{fields}]) = ::arenaplan_runtime::share(memory, [{tails}])?;"
        )?;
        for turn in turns() {
            let (field, turn_type) = (method_name(turn.name), type_name(turn.name));
            writeln!(
                f,
                "        let {field} = ::arenaplan_runtime::Session::new({turn_type}::MODEL, {turn_type}::KERNELS, head, \
                 {field})?;"
            )?;
        }
        writeln!(
            f,
            "        ::core::result::Result::Ok(Self {{ head, last_run: 0, {fields} }})\n    }}"
        )
    }

    fn turn(&self, f: &mut String, number: usize, turn: &Turn<'_>) -> std::fmt::Result {
        let name = type_name(turn.name);
        let (file, owner) = (in_comment(turn.name), self.type_name);
        let visibility = self.options.visible();
        let writer = Writer {
            name: turn.name,
            type_name: &name,
            model: turn.model,
            options: self.options,
        };
        let (inputs, outputs) = (writer.items(true), writer.items(false));
        writeln!(f, "\n/// A turn of the model `{file}` of [`{owner}`].\n///")?;
        for item in inputs.iter().chain(&outputs) {
            let is_linked = item.is_input && turn.linked.contains(&item.index);
            let note = match is_linked {
                true => " (left there by the model before)",
                false => "",
            };
            writeln!(f, "/// - {}{note}", item.words())?;
        }
        writeln!(
            f,
            "#[derive(::core::fmt::Debug)]\n{ALLOW}\n{visibility}struct {name}<'s, 'a> {{\n    session: &'s mut \
             ::arenaplan_runtime::Session<'static, 'a>,\n    head: &'s mut [u8],\n    last_run: &'s mut usize,\n}}\n\n{ALLOW}\nimpl<'s, 'a> {name}<'s, 'a> {{"
        )?;
        writer.constants(f)?;
        for item in inputs.iter().chain(&outputs) {
            port_constants(f, item)?;
        }
        let out_of_turn = "[`OutOfTurn`](::arenaplan_runtime::Error::OutOfTurn)";
        let this = number + 1;
        let (errors, condition) = match turn.after {
            Some(before) => (
                format!(
                    "If a kernel cannot run an operator; {out_of_turn} if the model before has not run directly before, or \
                     has had an input set since."
                ),
                format!(
                    "if *self.last_run != {} {{\n            return \
                     ::core::result::Result::Err(::arenaplan_runtime::Error::OutOfTurn);\n        }}\n        ",
                    before + 1
                ),
            ),
            None => (
                "If a kernel cannot run an operator.".to_owned(),
                String::new(),
            ),
        };
        // Inputs that are set beside linked ones leave those alone.
        let kept = match turn.after {
            Some(before) => format!(
                "if *self.last_run != {} {{\n            *self.last_run = 0;\n        }}",
                before + 1
            ),
            None => "*self.last_run = 0;".to_owned(),
        };
        write!(
            f,
            r#"
    /// Runs the model once. Inputs are to be set before each time: their memory is used again.
    ///
    /// # Errors
    /// {errors}
    #[inline]
    pub fn invoke(&mut self) -> ::core::result::Result<(), ::arenaplan_runtime::Error> {{
        {condition}*self.last_run = 0;
        self.session.invoke(self.head)?;
        *self.last_run = {this};
        ::core::result::Result::Ok(())
    }}

    /// That the head holds this model's outputs.
    #[inline]
    fn check(&self) -> ::core::result::Result<(), ::arenaplan_runtime::Error> {{
        match *self.last_run {{
            {this} => ::core::result::Result::Ok(()),
            _ => ::core::result::Result::Err(::arenaplan_runtime::Error::OutOfTurn),
        }}
    }}

    /// An input is set, and what other models have left in the head may be lost.
    #[inline]
    fn start(&mut self) {{
        {kept}
    }}
"#
        )?;
        f.push_str(
            r#"

    /// Sets what the model keeps from one inference to the next to what it was before the first.
    ///
    /// # Errors
    /// None with this model.
    #[inline]
    pub fn reset(&mut self) -> ::core::result::Result<(), ::arenaplan_runtime::Error> {
        self.session.reset()
    }

    /// The session that runs the model.
    #[inline]
    pub fn session(&self) -> &::arenaplan_runtime::Session<'static, 'a> {
        self.session
    }
"#,
        );
        let is_set = |index| !turn.linked.contains(&index);
        for item in inputs.iter().filter(|i| is_set(i.index)).chain(&outputs) {
            port_methods(f, item, true)?;
        }
        writer.self_test(
            f,
            "*self.last_run = 0;\n        SELF_TEST.run_session(self.session, self.head)",
        )?;
        f.push_str("}\n");
        Ok(())
    }
}
