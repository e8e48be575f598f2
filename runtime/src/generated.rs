//! Where generated code comes in, and what it goes by.

/// What code that `arenaplan` generates may rely on: it is checked where such code is compiled, and raised with each change
/// that older code does not fit.
#[doc(hidden)]
pub const INTERFACE: u32 = 1;

/// Brings in the type that a build script generated of a model: `include_model!("kws")` that of `kws.tflite`.
///
/// In `build.rs`, with the crate `arenaplan` among the build dependencies:
///
/// ```ignore
/// fn main() -> Result<(), arenaplan::build::Error> {
///     arenaplan::build::compile("models/kws.tflite")
/// }
/// ```
///
/// In the program:
///
/// ```ignore
/// use arenaplan_runtime::{Arena, Error};
///
/// arenaplan_runtime::include_model!("kws");
///
/// fn spot(arena: &mut Arena<{ Kws::ARENA_BYTES }>, sound: &[i8; 490]) -> Result<[i8; 12], Error> {
///     let mut kws = Kws::new(arena)?;
///     *kws.input_mut()? = *sound;
///     kws.invoke()?;
///     Ok(*kws.output()?)
/// }
/// ```
#[macro_export]
macro_rules! include_model {
    ($name:literal) => {
        ::core::include!(::core::concat!(::core::env!("OUT_DIR"), "/", $name, ".rs"));
    };
}
