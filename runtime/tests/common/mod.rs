//! What the tests that run models share: memory with the alignment that a device gives it, tensors as bytes, and the
//! comparison of outputs with expected ones.

// Each test binary uses a part of it.
#![allow(dead_code)]
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::fmt::Write;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use arenaplan_runtime::{Error, Interpreter, Type, ops};

/// Bytes that start at a multiple of 16.
pub(crate) struct Memory {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Memory {
    pub(crate) fn zeros(len: usize) -> Self {
        let bytes = vec![0; len + 15];
        let start = bytes.as_ptr().align_offset(16);
        Memory { bytes, start, len }
    }

    pub(crate) fn copy_of(bytes: &[u8]) -> Self {
        let mut memory = Self::zeros(bytes.len());
        memory.copy_from_slice(bytes);
        memory
    }

    /// Full of bytes that depend on `seed`.
    pub(crate) fn noise(len: usize, seed: u64) -> Self {
        let (mut memory, mut random) = (Self::zeros(len), Random(seed));
        memory.fill_with(|| random.next() as u8);
        memory
    }
}

impl Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..][..self.len]
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.len]
    }
}

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// A folder or file of the test data.
pub(crate) fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../testdata")
        .join(name)
}

/// The models of a folder of the test data, sorted by name.
pub(crate) fn models(folder: &str) -> Vec<PathBuf> {
    let folder = testdata(folder);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "tflite"));
    paths.sort();
    assert!(!paths.is_empty(), "no models in {}", folder.display());
    paths
}

/// Name of a file without folder and extension.
pub(crate) fn stem(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

/// An arena full of noise that is as large as [`Interpreter::new`] says that it must be.
pub(crate) fn smallest_arena(model: &[u8], seed: u64) -> Result<Memory, Error> {
    let mut arena = Memory::zeros(0);
    // Each attempt gets further than the one before: the tail, room to prepare, the head.
    for _ in 0..8 {
        let error = Interpreter::new(model, ops::ALL, &mut arena).err();
        match error {
            None => return Ok(Memory::noise(arena.len, seed)),
            Some(Error::ArenaTooSmall { needed, given }) => {
                assert_eq!(given, arena.len, "the arena's size is told wrongly");
                assert!(
                    given < needed && needed < 1 << 28,
                    "{needed} bytes are asked for"
                );
                arena = Memory::noise(needed, seed);
            }
            Some(error) => return Err(error),
        }
    }
    panic!(
        "an arena of {} bytes is too small, as were all that were asked for",
        arena.len
    );
}

macro_rules! by_type {
    ($element_type:expr, $T:ident => $then:expr) => {
        match $element_type {
            Type::FLOAT32 => by_type!(@ $T = f32; $then),
            Type::INT8 => by_type!(@ $T = i8; $then),
            Type::UINT8 | Type::BOOL => by_type!(@ $T = u8; $then),
            Type::INT16 => by_type!(@ $T = i16; $then),
            Type::UINT16 | Type::FLOAT16 => by_type!(@ $T = u16; $then),
            Type::INT32 => by_type!(@ $T = i32; $then),
            Type::UINT32 => by_type!(@ $T = u32; $then),
            Type::INT64 => by_type!(@ $T = i64; $then),
            Type::UINT64 => by_type!(@ $T = u64; $then),
            found => Err(Error::ElementType { found }),
        }
    };
    (@ $T:ident = $type:ty; $then:expr) => {{
        type $T = $type;
        $then
    }};
}

/// Sets an input to little-endian elements.
pub(crate) fn set_input(
    interpreter: &mut Interpreter<'_, '_>,
    index: usize,
    bytes: &[u8],
) -> Result<(), Error> {
    let element_type = interpreter.session().input_info(index)?.element_type;
    by_type!(element_type, T => {
        let elements = bytes.chunks_exact(size_of::<T>());
        let values: Vec<T> = elements.map(|b| T::from_le_bytes(b.try_into().unwrap())).collect();
        interpreter.set_input(index, &values)
    })
}

/// The little-endian elements of an output.
pub(crate) fn output(
    interpreter: &mut Interpreter<'_, '_>,
    index: usize,
) -> Result<Vec<u8>, Error> {
    let element_type = interpreter.session().output_info(index)?.element_type;
    by_type!(element_type, T => {
        let values = interpreter.output::<T>(index)?;
        Ok(values.iter().flat_map(|v| v.to_le_bytes()).collect())
    })
}

/// How far floats may be from the expected ones: `|a - b| <= relative * max(|a|, |b|)`, or both below `floor`.
#[derive(Clone, Copy)]
pub(crate) struct Tolerance {
    pub(crate) relative: f32,
    pub(crate) floor: f32,
}

impl Tolerance {
    pub(crate) const USUAL: Self = Self {
        relative: 1e-5,
        floor: 1e-9,
    };

    fn allows(self, a: f32, b: f32) -> bool {
        let magnitude = a.abs().max(b.abs());
        a == b
            || a.is_nan() && b.is_nan()
            || magnitude.is_finite() && (a - b).abs() <= self.relative * magnitude
            || magnitude < self.floor
    }
}

/// What differs between little-endian elements and the expected ones, in a line; integers may not differ at all.
pub(crate) fn difference(
    element_type: Type,
    expected: &[u8],
    got: &[u8],
    tolerance: Tolerance,
) -> Option<String> {
    if expected.len() != got.len() {
        return Some(format!("{} bytes instead of {}", got.len(), expected.len()));
    }
    let size = element_type.bytes().unwrap();
    let pairs = expected.chunks_exact(size).zip(got.chunks_exact(size));
    let float = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
    let integer = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(bytes);
        let signed = !matches!(
            element_type,
            Type::UINT8 | Type::UINT16 | Type::UINT32 | Type::UINT64 | Type::BOOL
        );
        let unused = 64 - 8 * size as u32;
        match signed {
            true => i128::from((i64::from_le_bytes(wide) << unused) >> unused),
            false => i128::from(u64::from_le_bytes(wide)),
        }
    };
    let wrong = |(_, (a, b)): &(usize, (&[u8], &[u8]))| match element_type {
        Type::FLOAT32 => !tolerance.allows(float(a), float(b)),
        _ => a != b,
    };
    let mut wrong = pairs.enumerate().filter(wrong).peekable();
    let &(at, (a, b)) = wrong.peek()?;
    let mut line = format!("element {at} is ");
    match element_type {
        Type::FLOAT32 => write!(line, "{:e} instead of {:e}", float(b), float(a)),
        _ => write!(line, "{} instead of {}", integer(b), integer(a)),
    }
    .unwrap();
    let (count, all) = (wrong.count(), expected.len() / size);
    write!(line, " ({count} of {all} differ)").unwrap();
    Some(line)
}

/// Inputs and expected outputs of some invokes: their number in 4 bytes, then for each the elements of all inputs and of
/// all outputs, little-endian, without padding.
pub(crate) struct Golden<'a>(pub(crate) &'a [u8]);

impl<'a> Golden<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self
            .0
            .split_at_checked(len)
            .ok_or("the golden data ends early")?;
        self.0 = rest;
        Ok(taken)
    }

    /// Runs all invokes, and adds what differs to `failures`.
    pub(crate) fn run(
        mut self,
        interpreter: &mut Interpreter<'_, '_>,
        tolerance: Tolerance,
        failures: &mut Vec<String>,
    ) -> Result<(), String> {
        let text = |error: Error| error.to_string();
        let invokes = u32::from_le_bytes(self.take(4)?.try_into().unwrap());
        if invokes == 0 {
            return Err("golden data without an invoke".to_owned());
        }
        for invoke in 0..invokes {
            for k in 0..interpreter.session().inputs() {
                let info = interpreter.session().input_info(k).map_err(text)?;
                let bytes = self.take(bytes_of(&info))?;
                set_input(interpreter, k, bytes).map_err(|e| format!("input {k}: {e}"))?;
            }
            interpreter
                .invoke()
                .map_err(|e| format!("invoke {invoke}: {e}"))?;
            for k in 0..interpreter.session().outputs() {
                let info = interpreter.session().output_info(k).map_err(text)?;
                let expected = self.take(bytes_of(&info))?;
                let element_type = info.element_type;
                let name = info.table.name().ok().flatten();
                let name = name.map_or(String::new(), |name| {
                    format!(" ({})", String::from_utf8_lossy(name.as_bytes()))
                });
                let got = output(interpreter, k).map_err(|e| format!("output {k}: {e}"))?;
                if let Some(line) = difference(element_type, expected, &got, tolerance) {
                    failures.push(format!("output {k}{name}, invoke {invoke}: {line}"));
                }
            }
        }
        match self.0.len() {
            0 => Ok(()),
            rest => Err(format!(
                "{rest} bytes of golden data are left after {invokes} invokes"
            )),
        }
    }
}

fn bytes_of(info: &arenaplan_runtime::Info<'_>) -> usize {
    let elements = info
        .shape
        .elements()
        .expect("inputs and outputs have a shape");
    elements * info.element_type.bytes().expect("and a type")
}

/// Runs a golden model in noise twice, with a reset between; the error says in a few lines what differs.
pub(crate) fn run_golden(model: &[u8], golden: &[u8], tolerance: Tolerance) -> Result<(), String> {
    let mut arena = smallest_arena(model, 1).map_err(|e| e.to_string())?;
    let mut interpreter =
        Interpreter::new(model, ops::ALL, &mut arena).map_err(|e| e.to_string())?;
    for pass in ["", "after reset: "] {
        let mut failures = Vec::new();
        let end = Golden(golden).run(&mut interpreter, tolerance, &mut failures);
        let count = failures.len();
        failures.truncate(6);
        if count > failures.len() {
            failures.push(format!("and {} more", count - failures.len()));
        }
        failures.extend(end.err());
        if !failures.is_empty() {
            return Err(pass.to_owned() + &failures.join("\n"));
        }
        interpreter.reset().map_err(|e| format!("reset: {e}"))?;
    }
    Ok(())
}

/// A test with its name.
pub(crate) type Test = (String, Box<dyn Fn() -> Result<(), String>>);

/// A harness like the standard one, for tests that are found at run time: runs those whose names have a part that is
/// given as an argument or in the environment variable `filter`, and fails if one fails.
pub(crate) fn harness(filter: &str, tests: Vec<Test>) {
    assert!(!tests.is_empty(), "no tests");
    let mut parts: Vec<_> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    parts.extend(std::env::var(filter));
    if std::env::args().any(|a| a == "--list") {
        tests.iter().for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in &tests {
        if !parts.is_empty() && !parts.iter().any(|part| name.contains(part)) {
            continue;
        }
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(test));
        match result.unwrap_or_else(|_| Err("panic, see above".to_owned())) {
            Ok(()) => {
                passed += 1;
                println!("test {name} ... ok");
            }
            Err(text) => {
                failed += 1;
                println!("test {name} ... FAILED");
                text.lines().for_each(|line| println!("    {line}"));
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed > 0 {
        std::process::exit(1);
    }
}
