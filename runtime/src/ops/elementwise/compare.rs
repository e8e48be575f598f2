//! The larger, the smaller, comparisons and logic.

use super::arithmetic::Scaled;
use super::broadcast::Operands;
use super::{Pair, elementwise};
use crate::error::Fault;
use crate::kernel::{Code, Kernel};
use crate::memory::Element;
use crate::node::Node;
use crate::types::Type;

/// `MAXIMUM`, of int8, int16, int32, int64 and float32, whatever their scales (`maximum_minimum.cc`).
pub const MAXIMUM: Kernel = elementwise(Code::MAXIMUM, |node| choose(node, &Larger));
/// `MINIMUM`, of int8, int16, int32, int64 and float32, whatever their scales (`maximum_minimum.cc`).
pub const MINIMUM: Kernel = elementwise(Code::MINIMUM, |node| choose(node, &Smaller));

/// Makes one of two numbers of a type.
trait Choice {
    fn of<T: PartialOrd>(&self, a: T, b: T) -> T;
}

struct Larger;
struct Smaller;

impl Choice for Larger {
    #[inline(always)]
    fn of<T: PartialOrd>(&self, a: T, b: T) -> T {
        if a > b { a } else { b }
    }
}

impl Choice for Smaller {
    #[inline(always)]
    fn of<T: PartialOrd>(&self, a: T, b: T) -> T {
        if a < b { a } else { b }
    }
}

#[inline(always)]
fn choose(node: &Node<'_>, choice: &impl Choice) -> Result<(), Fault> {
    fn of<T: Element + PartialOrd>(t: &Operands<'_>, choice: &impl Choice) -> Result<(), Fault> {
        t.compute(|a: T, b: T| choice.of(a, b))
    }
    // Looked at where it is, since stacks are small.
    let t = Operands::new(node);
    let t = t.as_ref().map_err(|fault| *fault)?;
    match t.one_type()? {
        Type::INT8 => of::<i8>(t, choice),
        Type::FLOAT32 => of::<f32>(t, choice),
        Type::INT16 => of::<i16>(t, choice),
        Type::INT32 => of::<i32>(t, choice),
        Type::INT64 => of::<i64>(t, choice),
        _ => Err(t.output.wrong_type()),
    }
}

/// Compares two numbers of a type.
trait Comparison {
    fn holds<T: PartialOrd>(&self, a: T, b: T) -> bool;
}

#[inline(always)]
fn compare(node: &Node<'_>, comparison: &impl Comparison, of_bool: bool) -> Result<(), Fault> {
    fn of<T: Element + PartialOrd>(
        t: &Operands<'_>,
        comparison: &impl Comparison,
    ) -> Result<(), Fault> {
        t.compute(|a: T, b: T| u8::from(comparison.holds(a, b)))
    }
    // Looked at where it is, since stacks are small.
    let t = Operands::new(node);
    let t = t.as_ref().map_err(|fault| *fault)?;
    t.output.expect(Type::BOOL)?;
    t.b.expect(t.a.element_type())?;
    match t.a.element_type() {
        Type::INT8 => {
            let scaled = Scaled::new(t, 8, 1.0)?;
            t.compute(|a: i8, b: i8| {
                let (a, b) = scaled.of(a.into(), b.into());
                u8::from(comparison.holds(a, b))
            })
        }
        Type::FLOAT32 => of::<f32>(t, comparison),
        Type::INT32 => of::<i32>(t, comparison),
        Type::INT64 => of::<i64>(t, comparison),
        Type::BOOL if of_bool => {
            t.compute(|a: u8, b: u8| u8::from(comparison.holds(a != 0, b != 0)))
        }
        _ => Err(t.a.wrong_type()),
    }
}

macro_rules! comparisons {
    ($($name:ident $type:ident $operator:tt $of_bool:literal, $doc:literal;)*) => {$(
        #[doc = $doc]
        ///
        /// Of int8, which are compared at their scales, both below 1; int32, int64 and float32 (`comparisons.cc`).
        pub const $name: Kernel = elementwise(Code::$name, |node| compare(node, &$type, $of_bool));

        struct $type;

        impl Comparison for $type {
            #[inline(always)]
            fn holds<T: PartialOrd>(&self, a: T, b: T) -> bool {
                a $operator b
            }
        }
    )*};
}

comparisons! {
    EQUAL Equal == true, "`EQUAL`, also of bool.";
    NOT_EQUAL NotEqual != true, "`NOT_EQUAL`, also of bool.";
    GREATER Greater > false, "`GREATER`.";
    GREATER_EQUAL GreaterEqual >= false, "`GREATER_EQUAL`.";
    LESS Less < false, "`LESS`.";
    LESS_EQUAL LessEqual <= false, "`LESS_EQUAL`.";
}

/// `LOGICAL_AND`, of bool (`logical.cc`).
pub const LOGICAL_AND: Kernel = elementwise(Code::LOGICAL_AND, |node| logical(node, |a, b| a && b));
/// `LOGICAL_OR`, of bool (`logical.cc`).
pub const LOGICAL_OR: Kernel = elementwise(Code::LOGICAL_OR, |node| logical(node, |a, b| a || b));
/// `LOGICAL_NOT`, of bool (`elementwise.cc`).
pub const LOGICAL_NOT: Kernel = elementwise(Code::LOGICAL_NOT, |node| {
    let (pair, element_type) = Pair::of_one_type(node)?;
    match element_type {
        Type::BOOL => pair.compute(|x: u8| u8::from(x == 0)),
        _ => Err(pair.input.wrong_type()),
    }
});

#[inline(always)]
fn logical(node: &Node<'_>, f: impl Fn(bool, bool) -> bool) -> Result<(), Fault> {
    // Looked at where it is, since stacks are small.
    let t = Operands::new(node);
    let t = t.as_ref().map_err(|fault| *fault)?;
    match t.one_type()? {
        Type::BOOL => t.compute(|a: u8, b: u8| u8::from(f(a != 0, b != 0))),
        _ => Err(t.output.wrong_type()),
    }
}
