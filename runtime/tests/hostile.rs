//! Bytes that nobody meant: whatever a file, its plan and its inputs hold, there is an error or a result, and no panic, no
//! endless loop, and nothing is written outside of the arena.
//!
//! A failure names the file and the number of the change; `HOSTILE=NAME:NUMBER` in the environment runs this one again.
#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod common;
#[path = "common/prepared.rs"]
mod entries;

use std::cell::RefCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arenaplan_runtime::schema::view;
use arenaplan_runtime::{Code, Error, Interpreter, ops};
use common::{Memory, Random};

/// Bytes of the arena: what few of the models here need.
const ARENA: usize = 1 << 16;
/// Bytes on both sides of it that nobody may touch.
const GUARD: usize = 64;
/// No case takes that long.
const PATIENCE: Duration = Duration::from_secs(20);

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Whether a model may run for ever, which its author would be free to want.
fn may_loop(model: &[u8]) -> bool {
    let codes = view::Model::new(model).and_then(|m| m.operator_codes());
    codes.is_ok_and(|codes| {
        let codes = codes.into_iter();
        codes.flatten().any(|code| {
            code.builtin_code()
                .is_ok_and(|code| Code(code) == Code::WHILE)
        })
    })
}

/// Prepares and runs a model in `arena`.
fn attempt(model: &[u8], arena: &mut [u8]) -> bool {
    let Ok(mut interpreter) = Interpreter::new(model, ops::ALL, arena) else {
        return false;
    };
    // Inputs are what was in the arena.
    for invoke in 0..3 {
        if invoke == 2 {
            let _ = interpreter.reset();
        }
        let _ = interpreter.invoke();
        for k in 0..interpreter.session().outputs() + 1 {
            let _ = common::output(&mut interpreter, k);
        }
    }
    true
}

/// All that is tried with the bytes of a file; whether they could be prepared.
fn case(bytes: &[u8], memory: &mut Memory, random: &mut Random) -> bool {
    let model = Memory::copy_of(bytes);
    if may_loop(&model) {
        return false;
    }
    let before: Vec<u8> = memory.to_vec();
    let arena = GUARD..GUARD + ARENA;
    let small = random.below(128) * 16 + random.below(2) * 4;
    for len in [0, small] {
        attempt(&model, &mut memory[arena.clone()][..len]);
    }
    let prepared = attempt(&model, &mut memory[arena.clone()]);
    for outside in [0..arena.start, arena.end..memory.len()] {
        assert!(
            memory[outside.clone()] == before[outside],
            "bytes outside of the arena were changed"
        );
    }
    prepared
}

/// Where the bytes of a file are that only this test reads.
fn golden(model: &[u8]) -> Range<usize> {
    let golden = view::Model::new(model).and_then(|m| m.metadata_bytes("golden"));
    match golden {
        Ok(Some(golden)) => {
            let start = golden.as_ptr().addr() - model.as_ptr().addr();
            start..start + golden.len()
        }
        _ => 0..0,
    }
}

/// The bytes with one to four changes, or cut off.
fn changed(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let (mut bytes, spare) = (bytes.to_vec(), golden(bytes));
    if bytes.len() < 4 {
        return bytes;
    }
    if random.below(16) == 0 {
        bytes.truncate(random.below(bytes.len()));
        return bytes;
    }
    const WORDS: [u32; 12] = [
        0,
        1,
        2,
        5,
        0x7f,
        0x80,
        0xffff,
        0x8000,
        i32::MAX as u32,
        i32::MIN as u32,
        u32::MAX,
        0x7f80_0000,
    ];
    let count = 1 + random.below(4);
    let mut done = 0;
    while done < count {
        let at = random.below(bytes.len() / 4) * 4;
        if spare.contains(&at) {
            continue;
        }
        let word = &mut bytes[at..at + 4];
        match random.below(4) {
            0 => word.copy_from_slice(&WORDS[random.below(WORDS.len())].to_le_bytes()),
            1 => word[random.below(4)] = random.next() as u8,
            2 => word[random.below(4)] ^= 1 << random.below(8),
            _ => word[0] = word[0].wrapping_add(random.below(5) as u8).wrapping_sub(2),
        }
        done += 1;
    }
    bytes
}

/// The bytes with tensors that have no elements, in huge numbers of rows.
fn emptied(bytes: &[u8], number: u64) -> Vec<u8> {
    const HUGE: i32 = i32::MAX;
    let model = Memory::copy_of(bytes);
    let mut changed = bytes.to_vec();
    let subgraphs = view::Model::new(&model).unwrap().subgraphs().unwrap();
    for subgraph in subgraphs {
        for tensor in subgraph.unwrap().tensors().unwrap() {
            let tensor = tensor.unwrap();
            let (dims, len) = (
                tensor.shape().unwrap().as_bytes(),
                tensor.shape().unwrap().len(),
            );
            // Tensors with a buffer are constants, which stay as they are.
            if len < 2 || tensor.buffer().unwrap() != 0 {
                continue;
            }
            let (huge, none) = match number {
                0 => (0..1, len - 1),
                1 => (0..2.min(len - 1), len - 1),
                2 => (0..1, 1),
                3 => (0..2.min(len - 1), 2.min(len - 1)),
                _ => (1..2.min(len - 1), len - 1),
            };
            let start = dims.as_ptr().addr() - model.as_ptr().addr();
            let mut set = |axis: usize, dim: i32| {
                changed[start + 4 * axis..][..4].copy_from_slice(&dim.to_le_bytes());
            };
            huge.for_each(|axis| set(axis, HUGE));
            set(none, 0);
        }
    }
    changed
}

/// Runs numbered cases of files, and fails with the first lines of what went wrong. Returns how many could be prepared.
fn all(files: Vec<PathBuf>, numbers: Range<u64>) -> usize {
    all_of(files, numbers, |bytes, number, random| match number {
        // The first case is the file as it is.
        0 => bytes.to_vec(),
        _ => changed(bytes, random),
    })
}

/// As [`all`], with the bytes that `change` makes of a file and a number.
fn all_of(
    files: Vec<PathBuf>,
    numbers: Range<u64>,
    change: fn(&[u8], u64, &mut Random) -> Vec<u8>,
) -> usize {
    let only = std::env::var("HOSTILE").ok();
    let only = only.as_deref().and_then(|text| text.rsplit_once(':'));
    let only = only.map(|(name, number)| (name.to_owned(), number.parse::<u64>().unwrap()));
    let (at, name) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(Mutex::new(String::new())),
    );
    let (done, waiting) = std::sync::mpsc::channel();
    let (cases, current) = (at.clone(), name.clone());
    let work = move || {
        let mut memory = Memory::noise(ARENA + 2 * GUARD, 7);
        let (mut prepared, mut failures) = (0, Vec::new());
        for path in files {
            let bytes = std::fs::read(&path).unwrap();
            for number in numbers.clone() {
                let which = (common::stem(&path).to_owned(), number);
                if only.as_ref().is_some_and(|only| *only != which) {
                    continue;
                }
                *current.lock().unwrap() = format!("{}:{number}", which.0);
                cases.fetch_add(1, Relaxed);
                let mut random = Random(number ^ bytes.len() as u64);
                let bytes = change(&bytes, number, &mut random);
                let case = AssertUnwindSafe(|| case(&bytes, &mut memory, &mut random));
                match catch_unwind(case) {
                    Ok(ready) => prepared += usize::from(ready),
                    Err(_) => failures.push(format!(
                        "{}:{number}: {}",
                        which.0,
                        PANIC.with_borrow(String::clone)
                    )),
                }
            }
        }
        done.send((prepared, failures)).unwrap();
    };
    // A panic is told with its place, once, at the end.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANIC.with_borrow_mut(|text| *text = info.to_string().replace('\n', " "));
        if std::thread::current().name() != Some("hostile") {
            usual(info);
        }
    }));
    let thread = std::thread::Builder::new().name("hostile".to_owned());
    thread.spawn(work).unwrap();
    let mut seen = 0;
    let (prepared, failures) = loop {
        match waiting.recv_timeout(PATIENCE) {
            Ok(result) => break result,
            Err(RecvTimeoutError::Timeout) if at.load(Relaxed) != seen => seen = at.load(Relaxed),
            Err(_) => panic!("{} does not end", name.lock().unwrap()),
        }
    };
    println!(
        "{} cases, {prepared} prepared, {} failed",
        at.load(Relaxed),
        failures.len()
    );
    assert!(
        failures.is_empty(),
        "{} cases:\n{}",
        failures.len(),
        failures[..failures.len().min(12)].join("\n")
    );
    prepared
}

/// Every `step`th file.
fn some(files: Vec<PathBuf>, step: usize) -> Vec<PathBuf> {
    files.into_iter().step_by(step).collect()
}

#[test]
fn wrong_files() {
    all(common::models("malformed"), 0..40);
}

#[test]
fn kernels_with_any_input() {
    assert!(all(common::models("kernels"), 0..1) > 0);
}

#[test]
fn kernels_with_changes() {
    assert!(all(common::models("kernels"), 1..13) > 0);
}

#[test]
fn kernels_without_elements() {
    let prepared = all_of(common::models("kernels"), 0..5, |bytes, number, _| {
        emptied(bytes, number)
    });
    assert!(prepared > 0);
}

#[test]
fn models_with_changes() {
    let mut files = common::models("models");
    files.retain(|path| path.metadata().unwrap().len() < 8 << 10);
    assert!(all(files, 0..40) > 0);
}

/// Prepared data with changes in them, and in the tensors that they are for.
#[test]
fn prepared_data_with_changes() {
    let mut files = common::models("kernels");
    files.retain(|path| entries::prepared(&std::fs::read(path).unwrap()).is_some());
    let prepared = all_of(files, 0..40, |bytes, number, random| {
        let mut file = entries::prepared(bytes).unwrap();
        let model = view::Model::new(&file).unwrap();
        let entry = model.metadata_data(view::PREPARED_NAME).unwrap().unwrap();
        let (start, len) = (entry.as_ptr().addr() - file.as_ptr().addr(), entry.len());
        if number % 4 == 3 {
            return changed(&file, random);
        }
        let mut part = entry.to_vec();
        for _ in 0..number % 4 {
            part = changed(&part, random);
        }
        // What is cut off keeps its place, with another length.
        file[start..start + part.len()].copy_from_slice(&part);
        file[start - 4..start].copy_from_slice(&(part.len() as u32).to_le_bytes());
        assert!(part.len() <= len);
        file
    });
    assert!(prepared > 0);
}

#[test]
fn every_length() {
    let mut memory = Memory::noise(ARENA + 2 * GUARD, 9);
    for path in some(common::models("models"), 16) {
        let bytes = std::fs::read(path).unwrap();
        let ends = (0..bytes.len()).step_by(1 + bytes.len() / 300);
        for end in ends {
            case(&bytes[..end], &mut memory, &mut Random(end as u64));
        }
    }
}

#[test]
fn a_model_must_be_aligned() {
    let bytes = std::fs::read(common::testdata("models/base_float32.tflite")).unwrap();
    let (mut model, mut arena) = (Memory::zeros(bytes.len() + 16), Memory::zeros(ARENA));
    for shift in 1..16 {
        model[shift..][..bytes.len()].copy_from_slice(&bytes);
        let error = Interpreter::new(&model[shift..][..bytes.len()], ops::ALL, &mut arena).err();
        assert_eq!(error, Some(Error::ModelAlignment));
        let error = Interpreter::new(&Memory::copy_of(&bytes), ops::ALL, &mut arena[shift..]).err();
        assert_eq!(error, Some(Error::ArenaAlignment));
    }
}

/// Plans that are wrong, and what the error is; `None`: TFLM stumbles over them, the runtime does not.
const PLANS: &[(&str, Option<&str>)] = &[
    ("plan_all_zero", Some("PlanOverlap { first: 0, second: 1 }")),
    ("plan_buffer_range", Some("Model(")),
    ("plan_buffer_zero", Some("Model(")),
    ("plan_count_high", Some("Model(")),
    ("plan_count_low", Some("Model(")),
    ("plan_count_negative", Some("Model(")),
    ("plan_empty", Some("Model(")),
    ("plan_misaligned", None),
    ("plan_no_data", Some("Model(")),
    ("plan_odd_length", Some("Model(")),
    ("plan_offset_large", Some("PlanOffset {")),
    ("plan_offset_lowest", Some("Model(")),
    ("plan_offset_minus2", Some("Model(")),
    ("plan_offset_overflow", Some("PlanOffset {")),
    ("plan_overlap", Some("PlanOverlap { first: 1, second: 2 }")),
    ("plan_short", Some("Model(")),
    ("plan_short_header", Some("Model(")),
    ("plan_subgraph0_entry", None),
    ("plan_twice_last_wrong", Some("PlanOverlap {")),
    ("plan_variable_offset", None),
];

/// Outputs of some invokes on inputs that depend on the invoke's number only.
fn outputs(model: &[u8], noise: u64) -> Result<Vec<Vec<u8>>, Error> {
    let mut arena = Memory::noise(ARENA, noise);
    let mut interpreter = Interpreter::new(model, ops::ALL, &mut arena)?;
    let mut all = Vec::new();
    for invoke in 0..4 {
        let mut random = Random(invoke);
        for k in 0..interpreter.session().inputs() {
            let info = interpreter.session().input_info(k)?;
            let bytes = info.shape.elements().unwrap() * info.element_type.bytes().unwrap();
            // Floats between -1 and 1.
            let word = || ((random.next() as i32) as f32 / 2f32.powi(31)).to_le_bytes();
            let values: Vec<u8> = std::iter::repeat_with(word).flatten().take(bytes).collect();
            common::set_input(&mut interpreter, k, &values)?;
        }
        interpreter.invoke()?;
        for k in 0..interpreter.session().outputs() {
            all.push(common::output(&mut interpreter, k)?);
        }
    }
    Ok(all)
}

#[test]
fn wrong_plans_are_named_errors() {
    let plans = common::models("malformed").into_iter();
    let plans = plans.filter(|path| common::stem(path).starts_with("plan_"));
    let names: Vec<_> = plans.map(|path| common::stem(&path).to_owned()).collect();
    let known: Vec<_> = PLANS.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(names, known);
    for &(name, expected) in PLANS {
        let path = common::testdata(&format!("malformed/{name}.tflite"));
        let model = Memory::copy_of(&std::fs::read(path).unwrap());
        let result = outputs(&model, 1);
        match (expected, &result) {
            (Some(expected), Err(error)) => {
                let error = format!("{error:?}");
                assert!(error.starts_with(expected), "{name}: {error}");
            }
            (None, Ok(planned)) => {
                // The same without the plan, whose name is spoilt.
                let mut model = Memory::copy_of(&model);
                let at = model
                    .windows(23)
                    .position(|part| part == b"OfflineMemoryAllocation");
                model[at.unwrap()] = b'_';
                assert!(
                    view::Model::new(&model)
                        .unwrap()
                        .offline_plan()
                        .unwrap()
                        .is_none()
                );
                assert!(
                    *planned == outputs(&model, 2).unwrap(),
                    "{name}: the plan changes the results"
                );
                assert!(
                    planned.iter().any(|output| output != &planned[0]),
                    "{name}: constant results"
                );
            }
            _ => panic!("{name}: {:?} instead of {expected:?}", result.err()),
        }
    }
}
