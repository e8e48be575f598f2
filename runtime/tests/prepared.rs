//! Prepared data: kernels compute the same with them, in less memory, and data that are not the model's are refused.
//!
//! The right factors come from TFLM's arithmetic in `common/prepared.rs`.
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

use arenaplan_runtime::schema::view;
use arenaplan_runtime::{
    Code, Error, Fault, Interpreter, Kernel, Node, Purpose, ops, prepared, tail_bytes,
};
use common::{Memory, Tolerance};
use entries::{Factors, entry, factors};

fn load(folder: &str, name: &str) -> Memory {
    let path = common::testdata(folder).join(format!("{name}.tflite"));
    Memory::copy_of(&std::fs::read(path).unwrap())
}

fn with_entry(model: &[u8], bytes: Vec<u8>) -> Memory {
    Memory::copy_of(&entries::with_entry(model, bytes))
}

/// Bytes of scratch memory, and of the head.
fn memory(model: &[u8]) -> (usize, usize) {
    let mut arena = common::smallest_arena(model, 3).unwrap();
    let mut interpreter = Interpreter::new(model, ops::ALL, &mut arena).unwrap();
    let usage = interpreter.recording().unwrap().usage;
    let scratch = usage.iter().find(|usage| usage.purpose == Purpose::Scratch);
    (
        scratch.unwrap().requested,
        interpreter.session().head_bytes(),
    )
}

/// Every operator with a scale for each channel in `testdata/kernels`.
#[test]
fn kernels_compute_what_tflm_does_from_factors_in_the_file() {
    let (mut files, mut operators, mut less) = (0, 0, 0);
    for path in common::models("kernels") {
        let plain = Memory::copy_of(&std::fs::read(&path).unwrap());
        let Some(model) = entries::prepared(&plain) else {
            continue;
        };
        let model = Memory::copy_of(&model);
        let golden = view::Model::new(&model).unwrap().metadata_bytes("golden");
        let result = common::run_golden(&model, golden.unwrap().unwrap(), Tolerance::USUAL);
        assert_eq!(result, Ok(()), "{}", path.display());
        assert_eq!(tail_bytes(&model, ops::ALL), tail_bytes(&plain, ops::ALL));
        let ((before, head_before), (after, head)) = (memory(&plain), memory(&model));
        assert!(after <= before && head <= head_before);
        files += 1;
        operators += factors(&plain).iter().filter(|f| !f.is_empty()).count();
        less += usize::from(after == 0 && before > 0);
    }
    println!("{operators} operators in {files} files, {less} without scratch memory now");
    assert!(files >= 10 && operators >= 80 && less >= 5);
}

/// Without data the factors take 5 bytes a channel of scratch memory, and with them none.
#[test]
fn factors_in_the_file_take_no_memory() {
    let plain = load("models", "dscnn_int8");
    let channels = factors(&plain);
    let channels: Vec<usize> = channels.iter().map(Factors::len).collect();
    // The last one, FULLY_CONNECTED with a row of four, takes none: it needs each factor once.
    let (row, convolutions) = channels.split_last().unwrap();
    assert_eq!(*row, 4);
    let (scratch, head_before) = memory(&plain);
    let (none, head) = memory(&Memory::copy_of(&entries::prepared(&plain).unwrap()));
    assert_eq!(scratch, convolutions.iter().sum::<usize>() * 5);
    assert_eq!(none, 0);
    assert!(head <= head_before);
}

fn refused(model: &[u8]) -> Option<Error> {
    let mut arena = Memory::noise(1 << 16, 1);
    let error = Interpreter::new(model, ops::ALL, &mut arena).err();
    // What the host asks says the same.
    assert_eq!(prepared::check(model, ops::ALL).err(), error);
    error
}

/// A model with several operators that have data, some that have none, and the data.
fn sample() -> (Memory, Vec<Factors>) {
    let model = load("models", "dscnn_int8");
    let factors = factors(&model);
    assert!(factors.iter().filter(|f| !f.is_empty()).count() > 3);
    assert!(factors.iter().any(Vec::is_empty));
    (model, factors)
}

#[test]
fn wrong_entries_are_named_errors() {
    let (model, right) = sample();
    let with = |entry| refused(&with_entry(&model, entry));
    assert_eq!(with(entry(1, &right)), None);
    for version in [0, 2, 256, u32::MAX] {
        let error = Some(Error::PreparedVersion { version });
        assert_eq!(with(entry(version, &right)), error);
    }
    let full: Vec<usize> = (0..right.len()).filter(|&k| !right[k].is_empty()).collect();
    let (first, second) = (full[0], full[1]);
    let of = |operator: usize| {
        Some(Error::PreparedFactors {
            subgraph: 0,
            operator: operator as u32,
        })
    };
    for (at, channel) in [(first, 0), (second, 3), (full[2], right[full[2]].len() - 1)] {
        for (multiplier, shift) in [(1, 0), (-1, 0), (0, 1), (0, -1), (i32::MIN, 0)] {
            let mut wrong = right.clone();
            let factor = &mut wrong[at][channel];
            *factor = (factor.0.wrapping_add(multiplier), factor.1 + shift);
            assert_eq!(with(entry(1, &wrong)), of(at));
        }
    }
    // Two of the same operator.
    let mut wrong = right.clone();
    wrong[first].swap(0, 1);
    assert_eq!(with(entry(1, &wrong)), of(first));
    // One operator's for another, and more or fewer channels than there are.
    let mut wrong = right.clone();
    wrong.swap(first, second);
    assert_eq!(with(entry(1, &wrong)), of(first));
    let mut wrong = right.clone();
    let last = wrong[second].pop().unwrap();
    assert_eq!(with(entry(1, &wrong)), of(second));
    wrong[second].extend([last, last]);
    assert_eq!(with(entry(1, &wrong)), of(second));
    // For an operator that has no use for any.
    let mut wrong = right.clone();
    let none = right.iter().position(Vec::is_empty).unwrap();
    wrong[none] = right[first].clone();
    assert_eq!(with(entry(1, &wrong)), of(none));
    // None for one that has: it is computed on the device.
    let mut fewer = right.clone();
    fewer[second].clear();
    assert_eq!(with(entry(1, &fewer)), None);
    // For fewer or more operators, and more bytes than there should be.
    let form = |error: Option<Error>| matches!(error, Some(Error::PreparedForm { .. }));
    assert!(form(with(entry(1, &right[..right.len() - 1]))));
    let mut wrong = right.clone();
    wrong.push(Vec::new());
    assert!(form(with(entry(1, &wrong))));
    wrong.push(Vec::new());
    assert!(form(with(entry(1, &wrong))));
    let mut long = entry(1, &right);
    long.extend([0; 4]);
    assert!(form(with(long)));
    for count in [u32::MAX, 1 << 31, 1 << 16] {
        let mut wrong = entry(1, &right);
        wrong[4..8].copy_from_slice(&count.to_le_bytes());
        assert!(form(with(wrong)));
    }
}

#[test]
fn entries_that_are_cut_off_are_errors() {
    let (model, right) = sample();
    let whole = entry(1, &right);
    // An entry without bytes is as good as none.
    for len in 1..whole.len() {
        let error = refused(&with_entry(&model, whole[..len].to_vec()));
        assert_eq!(error, Some(Error::PreparedForm { bytes: len }), "{len}");
    }
}

#[test]
fn no_byte_may_change_but_padding() {
    let (model, right) = sample();
    let whole = entry(1, &right);
    // Where other data give other bytes.
    let mut other: Vec<Factors> = right.clone();
    other.iter_mut().flatten().for_each(|f| *f = (!f.0, !f.1));
    let other = entry(!1, &other);
    let header = 8 + 2 * right.len();
    for at in 0..whole.len() {
        let padding = at >= header && other[at] == whole[at];
        for change in [1, 0x80, 0xff] {
            let mut wrong = whole.clone();
            wrong[at] ^= change;
            let error = refused(&with_entry(&model, wrong));
            let error = error.filter(Error::is_about_prepared);
            assert_eq!(error.is_none(), padding, "byte {at}: {error:?}");
        }
    }
}

/// Words of the entry that are not aligned.
#[test]
fn entries_must_be_aligned() {
    let (model, right) = sample();
    let whole = entry(1, &right);
    let mut file = with_entry(&model, [&[7; 4][..], &whole].concat()).to_vec();
    let places = file.windows(whole.len()).position(|part| part == whole);
    let at = places.unwrap();
    // The vector begins two bytes later, or earlier, with its length in front of it.
    let len = (whole.len() as u32).to_le_bytes();
    for (start, found) in [(at - 2, false), (at, true)] {
        let mut file = file.clone();
        file[start..start + whole.len()].copy_from_slice(&whole);
        file[start - 4..start].copy_from_slice(&len);
        move_vector(&mut file, at - 8, start - 4);
        let error = refused(&Memory::copy_of(&file));
        let form = Error::PreparedForm { bytes: whole.len() };
        assert_eq!(error, Some(form).filter(|_| !found));
    }
    file.clear();
}

/// Lets all references to `from` in the first bytes of a file refer to `to`.
fn move_vector(file: &mut [u8], from: usize, to: usize) {
    let mut moved = 0;
    for at in (0..from).step_by(4) {
        let word: [u8; 4] = file[at..at + 4].try_into().unwrap();
        if at + u32::from_le_bytes(word) as usize == from {
            file[at..at + 4].copy_from_slice(&((to - at) as u32).to_le_bytes());
            moved += 1;
        }
    }
    assert_eq!(moved, 1);
}

#[test]
fn data_of_another_model_are_refused() {
    let (model, right) = sample();
    let other = load("models", "resnet_int8");
    let error = refused(&with_entry(&other, entry(1, &right))).unwrap();
    assert!(
        error.is_about_prepared() && error.is_about_plan(),
        "{error}"
    );
    assert!(!Error::TooLarge.is_about_prepared());
    // A scale that changed behind its back.
    let file = Memory::copy_of(&entries::prepared(&model).unwrap());
    let scales = {
        let view = view::Model::new(&file).unwrap();
        let subgraph = view.subgraphs().unwrap().get(0).unwrap();
        let first = subgraph.operators().unwrap().get(0).unwrap();
        let filter = first.inputs().unwrap().get(1).unwrap();
        let filter = subgraph.tensors().unwrap().get(filter as usize).unwrap();
        let scales = filter.quantization().unwrap().unwrap().scale().unwrap();
        scales.as_bytes().as_ptr().addr() - file.as_ptr().addr()
    };
    let mut changed = Memory::copy_of(&file);
    changed[scales + 2] ^= 1;
    let error = Error::PreparedFactors {
        subgraph: 0,
        operator: 0,
    };
    assert_eq!(refused(&changed), Some(error));
    assert!(error.to_string().contains("plan the model again"));
}

fn nothing(_: &Node<'_>) -> Result<(), Fault> {
    Ok(())
}

/// A kernel of the application's own computes what it needs itself.
#[test]
fn other_kernels_leave_the_data_alone() {
    let (model, right) = sample();
    let mut wrong = right;
    wrong.iter_mut().flatten().for_each(|factor| factor.0 += 1);
    let model = with_entry(&model, entry(1, &wrong));
    let mut kernels = ops::ALL.to_vec();
    kernels.push(Kernel::builtin(Code::CONV_2D, nothing));
    kernels.push(Kernel::builtin(Code::DEPTHWISE_CONV_2D, nothing));
    kernels.push(Kernel::builtin(Code::FULLY_CONNECTED, nothing));
    assert_eq!(prepared::check(&model, &kernels), Ok(()));
    assert!(refused(&model).is_some());
}
