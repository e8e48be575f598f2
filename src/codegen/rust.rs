//! A model as a type of Rust.
//!
//! ```text
//! pub struct Kws<'a>          an interpreter in memory that lives for 'a
//!   MODEL, KERNELS, *_BYTES   what the interpreter is made of
//!   INPUT_*, OUTPUT_*         shapes, lengths, scales and zero points
//!   new, in_memory            make one
//!   input_mut, invoke, output an inference
//! ```

use std::fmt::Write;

use super::error::Error;
use super::kernels::{KernelUse, OPS, Operators, OwnKernel};
use super::names::{in_comment, is_file_name, is_path, type_name};
use super::{INTERFACE, Interface, WRITTEN_BY, rust_type};
use crate::execute::{Port, type_name as element_type_name};
use crate::selftest;
use crate::text::thousands;

/// How the code for a model is written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RustOptions {
    /// The visibility of the type: `pub`, `pub(crate)`, or nothing. What the type has is public.
    pub visibility: String,
    /// Which kernels the program gets.
    pub operators: Operators,
    /// Kernels of the application.
    pub own_kernels: Vec<OwnKernel>,
}

impl Default for RustOptions {
    fn default() -> Self {
        Self {
            visibility: "pub".into(),
            operators: Operators::Exact,
            own_kernels: Vec::new(),
        }
    }
}

impl RustOptions {
    /// The visibility, with what separates it from an item.
    pub(super) fn visible(&self) -> String {
        match self.visibility.as_str() {
            "" => String::new(),
            visibility => format!("{visibility} "),
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let text = self.visibility.as_str();
        let inner = text.strip_prefix("pub(").and_then(|t| t.strip_suffix(')'));
        let inner = inner.map(|t| t.strip_prefix("in ").unwrap_or(t));
        match matches!(text, "" | "pub") || inner.is_some_and(is_path) {
            true => Ok(()),
            false => Err(Error::Name {
                what: "visibility",
                name: text.to_owned(),
                reason: "is none of Rust: \"pub\", \"pub(crate)\", or \"\" for private",
            }),
        }
    }
}

/// The code for `model`, the file of a planned model that will lie beside the code as `NAME.tflite`.
///
/// # Errors
/// If the file cannot be read, an operator has no kernel, the runtime refuses the model or its plan, or a name cannot be used.
pub fn rust(name: &str, model: &[u8], options: &RustOptions) -> Result<String, Error> {
    module(
        name,
        &Interface::read(model, &options.own_kernels)?,
        options,
    )
}

/// As [`rust`], of a model whose interface is known.
///
/// # Errors
/// [`Error::Name`].
pub fn module(name: &str, model: &Interface, options: &RustOptions) -> Result<String, Error> {
    options.check()?;
    if !is_file_name(name) {
        return Err(Error::Name {
            what: "model's name",
            name: name.to_owned(),
            reason: "cannot be that of a file: give it another one with `.named(\"...\")`",
        });
    }
    let writer = Writer {
        name,
        type_name: &type_name(name),
        model,
        options,
    };
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writer.write(&mut text);
    Ok(text)
}

/// The beginning of a file: what it is, and that it fits the runtime.
pub(super) fn header(what: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "{WRITTEN_BY}{version}: {what}.\n\nconst _: () = ::core::assert!(\n    ::arenaplan_runtime::INTERFACE == \
         {INTERFACE},\n    \"the code for the model was generated for another version of arenaplan-runtime: give the crates \
         arenaplan and arenaplan-runtime the same version\"\n);\n\n"
    )
}

/// Programs use a part of what is there, and have lints of their own.
pub(super) const ALLOW: &str = "\
#[allow(dead_code, non_snake_case, unreachable_pub, unused_qualifications)]
#[allow(clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]";

pub(super) struct Writer<'w> {
    pub(super) name: &'w str,
    pub(super) type_name: &'w str,
    pub(super) model: &'w Interface,
    pub(super) options: &'w RustOptions,
}

/// An input or an output, and how its items are called.
pub(super) struct Item<'w> {
    port: &'w Port,
    pub(super) index: usize,
    /// `input`, or `input_0` where there are several.
    lower: String,
    /// The same for constants.
    upper: String,
    /// The type of its elements, if they can be reached.
    element: Option<&'static str>,
    pub(super) is_input: bool,
}

impl Item<'_> {
    fn len(&self) -> usize {
        match self.port.shape.contains(&0) {
            true => 0,
            false => self.port.shape.iter().product(),
        }
    }

    /// Scale and zero point, of types that `quantize` knows.
    fn quantization(&self) -> Option<(f32, i32)> {
        let known = matches!(self.element, Some("i8" | "u8" | "i16"));
        let (scale, zero_point) = self.port.quantization.filter(|_| known)?;
        (scale.is_finite() && scale > 0.0).then_some((scale, zero_point))
    }

    fn shape(&self) -> String {
        let dims: Vec<_> = self.port.shape.iter().map(usize::to_string).collect();
        match dims.is_empty() {
            true => "a single number".to_owned(),
            false => dims.join(" x "),
        }
    }

    /// What it is, for a comment.
    pub(super) fn words(&self) -> String {
        let name = match self.port.name.is_empty() {
            true => String::new(),
            false => format!(" `{}`", in_comment(&self.port.name)),
        };
        format!(
            "{}{name}: {}, {}",
            self.lower.replace('_', " "),
            self.shape(),
            element_type_name(self.port.element_type).to_lowercase()
        )
    }
}

impl Writer<'_> {
    pub(super) fn items(&self, is_input: bool) -> Vec<Item<'_>> {
        let (ports, what) = match is_input {
            true => (&self.model.inputs, "input"),
            false => (&self.model.outputs, "output"),
        };
        let item = |(index, port)| {
            let lower = match ports.len() {
                1 => what.to_owned(),
                _ => format!("{what}_{index}"),
            };
            let port: &Port = port;
            Item {
                port,
                index,
                upper: lower.to_uppercase(),
                lower,
                element: rust_type(port.element_type),
                is_input,
            }
        };
        ports.iter().enumerate().map(item).collect()
    }

    fn write(&self, f: &mut String) -> std::fmt::Result {
        let Self {
            type_name: name,
            model,
            ..
        } = self;
        let file = in_comment(self.name);
        let visibility = self.options.visible();
        f.push_str(&header(&format!("the model `{file}`")));
        writeln!(
            f,
            "/// The model `{file}`, ready to run in {} bytes of memory.\n///",
            thousands(model.arena_bytes() as u64)
        )?;
        let (inputs, outputs) = (self.items(true), self.items(false));
        for item in inputs.iter().chain(&outputs) {
            writeln!(f, "/// - {}", item.words())?;
        }
        writeln!(
            f,
            "#[derive(::core::fmt::Debug)]\n{ALLOW}\n{visibility}struct {name}<'a> {{\n    interpreter: \
             ::arenaplan_runtime::Interpreter<'static, 'a>,\n}}\n\n{ALLOW}\nimpl<'a> {name}<'a> {{"
        )?;
        self.constants(f)?;
        for item in inputs.iter().chain(&outputs) {
            port_constants(f, item)?;
        }
        self.methods(f)?;
        for item in inputs.iter().chain(&outputs) {
            port_methods(f, item, false)?;
        }
        self.self_test(f, "SELF_TEST.run(&mut self.interpreter)")?;
        f.push_str("}\n");
        Ok(())
    }

    /// The method that proves on the device what the plan relies on; `call` runs what is called `SELF_TEST`.
    pub(super) fn self_test(&self, f: &mut String, call: &str) -> std::fmt::Result {
        let Some(test) = &self.model.self_test else {
            return Ok(());
        };
        f.push_str(
            "\n    /// Proves that the kernels of this device keep the model's plan. State is set back before and after, and inputs \
             have\n    /// to be set again.\n    ///\n",
        );
        for line in test.report().to_string().lines() {
            writeln!(f, "    /// {}", line.replace('`', "'"))?;
        }
        f.push_str(
            "    ///\n    /// # Errors\n    /// The first output that is not as it should be, or why there is none.\n    \
             pub fn self_test(\n        &mut self,\n    ) -> ::core::result::Result<(), \
             ::arenaplan_runtime::self_test::SelfTestFailure> {\n",
        );
        for line in selftest::rust_static(test).lines() {
            writeln!(f, "        {line}")?;
        }
        writeln!(f, "        {call}\n    }}")
    }

    pub(super) fn constants(&self, f: &mut String) -> std::fmt::Result {
        let model = self.model;
        writeln!(
            f,
            "    /// The file with its plan, at a multiple of 16 bytes.\n    pub const MODEL: &'static [u8] = {{\n        \
             static FILE: ::arenaplan_runtime::Aligned<[u8; {}]> =\n            \
             ::arenaplan_runtime::Aligned(*::core::include_bytes!(\"{}.tflite\"));\n        &FILE.0\n    }};",
            model.model_bytes, self.name
        )?;
        self.kernels(f)?;
        for (name, bytes, what) in [
            (
                "ARENA",
                model.arena_bytes(),
                "the smallest arena: head and tail",
            ),
            (
                "HEAD",
                model.head_bytes,
                "the head, which models that take turns can share",
            ),
            (
                "TAIL",
                model.tail_bytes,
                "the tail, which the model has for itself",
            ),
        ] {
            writeln!(
                f,
                "    /// Bytes of {what}.\n    pub const {name}_BYTES: usize = {bytes};"
            )?;
        }
        Ok(())
    }

    fn kernels(&self, f: &mut String) -> std::fmt::Result {
        let start = "pub const KERNELS: &'static [::arenaplan_runtime::Kernel] =";
        let own: Vec<&KernelUse> = self.model.kernels.iter().filter(|k| k.is_own).collect();
        match self.options.operators {
            Operators::Exact => {
                writeln!(
                    f,
                    "    /// The kernels that its operators need.\n    {start} &["
                )?;
                for kernel in &self.model.kernels {
                    writeln!(f, "        {},", kernel.path)?;
                }
                writeln!(f, "    ];")
            }
            Operators::All if own.is_empty() => writeln!(
                f,
                "    /// All kernels that there are.\n    {start} {OPS}ALL;"
            ),
            Operators::All => {
                let count = own.len();
                writeln!(
                    f,
                    "    /// All kernels that there are, and those of the application.\n    {start} &{{\n        const ALL: \
                     &[::arenaplan_runtime::Kernel] = {OPS}ALL;\n        let mut list = [ALL[0]; ALL.len() + \
                     {count}];\n        let mut k = 0;\n        while k < ALL.len() {{\n            list[k] = ALL[k];\n            \
                     k += 1;\n        }}"
                )?;
                for (k, kernel) in own.iter().enumerate() {
                    writeln!(f, "        list[ALL.len() + {k}] = {};", kernel.path)?;
                }
                writeln!(f, "        list\n    }};")
            }
        }
    }

    fn methods(&self, f: &mut String) -> std::fmt::Result {
        let bytes = self.model.arena_bytes();
        f.push_str(&makers(self.type_name, "the model", bytes));
        f.push_str(
            r#"        let interpreter =
            ::arenaplan_runtime::Interpreter::new(Self::MODEL, Self::KERNELS, memory)?;
        ::core::result::Result::Ok(Self { interpreter })
    }

    /// Runs the model once. Inputs are to be set before each time: their memory is used again.
    ///
    /// # Errors
    /// If a kernel cannot run an operator.
    #[inline]
    pub fn invoke(&mut self) -> ::core::result::Result<(), ::arenaplan_runtime::Error> {
        self.interpreter.invoke()
    }

    /// Sets what the model keeps from one inference to the next to what it was before the first.
    ///
    /// # Errors
    /// None with this model.
    #[inline]
    pub fn reset(&mut self) -> ::core::result::Result<(), ::arenaplan_runtime::Error> {
        self.interpreter.reset()
    }

    /// The interpreter that runs the model.
    #[inline]
    pub fn interpreter(&self) -> &::arenaplan_runtime::Interpreter<'static, 'a> {
        &self.interpreter
    }

    /// The interpreter that runs the model.
    #[inline]
    pub fn interpreter_mut(&mut self) -> &mut ::arenaplan_runtime::Interpreter<'static, 'a> {
        &mut self.interpreter
    }
"#,
        );
        Ok(())
    }
}

pub(super) fn port_constants(f: &mut String, item: &Item<'_>) -> std::fmt::Result {
    let Item { upper, port, .. } = item;
    let dims: Vec<_> = port.shape.iter().map(usize::to_string).collect();
    writeln!(
        f,
        "    /// The dimensions of {}.\n    pub const {upper}_SHAPE: [usize; {}] = [{}];\n    /// Its number of \
         elements.\n    pub const {upper}_LEN: usize = {};",
        item.words(),
        dims.len(),
        dims.join(", "),
        item.len()
    )?;
    if let Some((scale, zero_point)) = item.quantization() {
        writeln!(
            f,
            "    /// Its scale: an element `q` stands for `scale * (q - zero_point)`.\n    pub const {upper}_SCALE: f32 = \
             {scale:?};\n    /// Its zero point.\n    pub const {upper}_ZERO_POINT: i32 = {zero_point};"
        )?;
    }
    Ok(())
}

/// The methods that prepare `what` in an arena; the text ends where the body of the second begins.
pub(super) fn makers(type_name: &str, what: &str, arena_bytes: usize) -> String {
    format!(
        r#"
    /// Prepares {what} in `arena`, which is large enough, or the program is not compiled.
    ///
    /// # Errors
    /// None: what is there was prepared on the host in the same way.
    #[inline]
    pub fn new<const BYTES: usize>(
        arena: &'a mut ::arenaplan_runtime::Arena<BYTES>,
    ) -> ::core::result::Result<Self, ::arenaplan_runtime::Error> {{
        const {{
            ::core::assert!(
                BYTES >= Self::ARENA_BYTES,
                "{type_name} needs an arena of {arena_bytes} bytes: see {type_name}::ARENA_BYTES"
            )
        }};
        Self::in_memory(arena.as_mut_slice())
    }}

    /// Prepares {what} in `memory`, which starts at a multiple of 16 and has [`Self::ARENA_BYTES`] or more.
    ///
    /// # Errors
    /// If the memory is too small or not aligned.
    pub fn in_memory(
        memory: &'a mut [u8],
    ) -> ::core::result::Result<Self, ::arenaplan_runtime::Error> {{
"#
    )
}

/// Methods for one input or output; `is_turn`: of a turn, which has a session and a head in place of an interpreter.
pub(super) fn port_methods(f: &mut String, item: &Item<'_>, is_turn: bool) -> std::fmt::Result {
    // The state of the turn is looked at first.
    let (access, head, sets, reads) = match is_turn {
        true => (
            "self.session.",
            "self.head, ",
            "self.start();\n        ",
            "self.check()?;\n        ",
        ),
        false => ("self.interpreter.", "", "", ""),
    };
    let errors = match is_turn {
        true => {
            "[`OutOfTurn`](::arenaplan_runtime::Error::OutOfTurn) if the model was not run last, or an input was set since."
        }
        false => "None with this model.",
    };
    let Item {
        lower,
        upper,
        index,
        ..
    } = item;
    let len = item.len();
    let words = item.words();
    let what = lower.replace('_', " ");
    let until = match is_turn {
        true => ", until another model runs",
        false => "",
    };
    let Some(element) = item.element else {
        return Ok(());
    };
    match item.is_input {
        true => f.push_str(&format!(
            r#"
    /// The elements of {words}; to be set before each inference.
    ///
    /// # Errors
    /// None with this model.
    #[inline]
    pub fn {lower}_mut(
        &mut self,
    ) -> ::core::result::Result<&mut [{element}; {len}], ::arenaplan_runtime::Error> {{
        {sets}{access}input_array({head}{index})
    }}
"#
        )),
        false => f.push_str(&format!(
            r#"
    /// The elements of {words}, as the last inference left them{until}.
    ///
    /// # Errors
    /// {errors}
    #[inline]
    pub fn {lower}(
        &self,
    ) -> ::core::result::Result<&[{element}; {len}], ::arenaplan_runtime::Error> {{
        {reads}{access}output_array({head}{index})
    }}
"#
        )),
    }
    if item.quantization().is_some() {
        f.push_str(&match item.is_input {
            true => format!(
                r#"
    /// The element of {what} that stands for `real`, or comes nearest.
    #[inline]
    pub fn quantize_{lower}(real: f32) -> {element} {{
        ::arenaplan_runtime::quantize(real, Self::{upper}_SCALE, Self::{upper}_ZERO_POINT)
    }}
"#
            ),
            false => format!(
                r#"
    /// The real number that `element` of {what} stands for.
    #[inline]
    pub fn dequantize_{lower}(element: {element}) -> f32 {{
        ::arenaplan_runtime::dequantize(element, Self::{upper}_SCALE, Self::{upper}_ZERO_POINT)
    }}
"#
            ),
        });
    }
    Ok(())
}
