//! Plans, right and wrong: what the device refuses, and that what it accepts computes what the model computes without one.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing
)]

mod common;
#[path = "common/planned.rs"]
mod planned;

use std::collections::BTreeMap;

use arenaplan_runtime::schema::view;
use arenaplan_runtime::{Error, Interpreter, ops};
use common::{Memory, Random, stem};
use planned::{Outcome, Planned};

/// Models of these folders that run without a plan, and what they compute then.
fn models(folders: &[&str]) -> Vec<(String, Planned, Outcome)> {
    let paths = folders.iter().flat_map(|folder| common::models(folder));
    let mut found = Vec::new();
    for path in paths {
        let file = std::fs::read(&path).unwrap();
        let Ok(()) = arenaplan_runtime::tail_bytes(&file, ops::ALL).map(|_| ()) else {
            continue;
        };
        let planned = Planned::new(&file);
        let expected = planned.run_plain();
        if matches!(expected, Outcome::Ran(Ok(_))) && !planned.planned().is_empty() {
            found.push((stem(&path).to_owned(), planned, expected));
        }
    }
    found
}

/// What became of many plans.
#[derive(Debug, Default)]
struct Tally {
    refused: usize,
    accepted: usize,
    /// Accepted although two tensors have bytes in common.
    shared: usize,
}

impl Tally {
    /// Counts a plan; the error of one that was refused.
    fn count(
        &mut self,
        name: &str,
        (model, expected): (&mut Planned, &Outcome),
        offsets: &[i32],
    ) -> Option<Error> {
        match model.run(offsets) {
            Outcome::Refused(error) => {
                self.refused += 1;
                Some(error)
            }
            ran => {
                assert!(
                    ran == *expected,
                    "{name}: {offsets:?} computes something else"
                );
                self.accepted += 1;
                let planned = model.planned();
                let end = |t: usize| offsets[t] + model.bytes[t] as i32;
                let clash = |&a: &usize, &b: &usize| {
                    a != b
                        && offsets[a] >= 0
                        && offsets[a] < end(b)
                        && offsets[b] < end(a)
                        && offsets[b] >= 0
                };
                let shares = planned.iter().any(|a| planned.iter().any(|b| clash(a, b)));
                self.shared += usize::from(shares);
                None
            }
        }
    }
}

/// Plans that this project's compiler and others have made.
#[test]
fn right_plans_of_committed_models_are_accepted() {
    let mut accepted = 0;
    for name in [
        "base_planned_float32",
        "plan_linear_int8",
        "plan_optimal_int8",
        "plan_partial_int8",
        "plan_twice_int8",
    ] {
        let file = std::fs::read(common::testdata(&format!("models/{name}.tflite"))).unwrap();
        let stored = view::Model::new(&file)
            .unwrap()
            .offline_plan()
            .unwrap()
            .unwrap();
        let offsets: Vec<i32> = stored.offsets().into_iter().collect();
        let mut model = Planned::new(&file);
        let expected = model.run_plain();
        assert_eq!(model.run(&offsets), expected, "{name}");
        accepted += 1;
    }
    assert_eq!(accepted, 5);
}

/// First and last operator that has a tensor, for models of one subgraph: what a tensor is needed for at least.
fn spans(model: &Planned) -> Vec<Option<(usize, usize)>> {
    let mut spans = vec![None; model.bytes.len()];
    let mut touch = |t: usize, at: usize| {
        let (first, _) = spans[t].unwrap_or((at, at));
        spans[t] = Some((first, at));
    };
    model.inputs.iter().for_each(|&t| touch(t, 0));
    for (k, op) in model.ops.iter().enumerate() {
        let tensors = op.inputs.iter().flatten().chain(&op.outputs);
        tensors.for_each(|&t| touch(t, k + 1));
    }
    model
        .outputs
        .iter()
        .for_each(|&t| touch(t, model.ops.len() + 1));
    spans
}

#[test]
fn two_tensors_at_one_place_are_named_unless_they_may_be_there() {
    let mut random = Random(1);
    let mut tally = Tally::default();
    let mut needless = 0;
    for (name, mut model, expected) in models(&["models", "kernels"]) {
        let slots = model.slots();
        let error = tally.count(&name, (&mut model, &expected), &slots);
        assert_eq!(error, None, "{name}: all apart");
        let planned = model.planned();
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (k, &b) in planned.iter().enumerate() {
            pairs.extend(planned[..k].iter().map(|&a| (a, b)));
        }
        while pairs.len() > 24 {
            pairs.swap_remove(random.below(pairs.len()));
        }
        let spans = spans(&model);
        for (a, b) in pairs {
            let mut offsets = slots.clone();
            offsets[b] = offsets[a];
            let error = tally.count(&name, (&mut model, &expected), &offsets);
            let Some(error) = error else {
                continue;
            };
            let (first, second) = (a as u32, b as u32);
            assert_eq!(error, Error::PlanOverlap { first, second }, "{name}");
            if let (1, Some(a), Some(b)) = (model.subgraphs, spans[a], spans[b]) {
                let together = a.0 <= b.1 && b.0 <= a.1;
                needless += usize::from(!together);
                assert!(
                    together,
                    "{name}: {first} and {second} are never in use together"
                );
            }
        }
    }
    println!("{tally:?}, {needless}");
    assert!(tally.refused > 1000 && tally.shared > 400, "{tally:?}");
}

/// Moves tensors in a plan, so that they lie over others at distances that may be right, or at any.
fn disturb(model: &Planned, random: &mut Random, offsets: &mut [i32]) {
    let op = &model.ops[random.below(model.ops.len())];
    let planned = |t: &usize| model.bytes[*t] > 0;
    let pick = |random: &mut Random, list: Vec<(usize, usize)>| match list.len() {
        0 => None,
        n => Some(list[random.below(n)]),
    };
    let inputs = op.inputs.iter().enumerate();
    let inputs = inputs.filter_map(|(k, t)| t.filter(planned).map(|t| (k, t)));
    let outputs = op.outputs.iter().copied().enumerate();
    let outputs = outputs.filter(|(_, t)| planned(t));
    let (inputs, outputs) = (inputs.collect(), outputs.collect());
    let (Some((i, x)), Some((o, y))) = (pick(random, inputs), pick(random, outputs)) else {
        return;
    };
    let promise = model.promise(op, i, o);
    let step = model.element[x].max(model.element[y]) as i32;
    let distance = match random.below(8) {
        0 => 0,
        1 => -(promise.output_above_input as i32),
        2 => step * random.below(1 + model.bytes[y] / step as usize) as i32,
        3 => -step * random.below(1 + model.bytes[x] / step as usize) as i32,
        4 | 5 => promise.input_above_output as i32 / step * step + step * random.below(3) as i32,
        _ => promise.view_at.unwrap_or(0) as i32,
    };
    if random.below(2) == 0 {
        offsets[x] = (offsets[y] + distance).max(0);
    } else {
        offsets[y] = (offsets[x] - distance).max(0);
    }
}

#[test]
fn what_is_accepted_computes_what_the_model_does() {
    let mut random = Random(2);
    let mut tally = Tally::default();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for (folder, rounds) in [("models", 60), ("kernels", 8)] {
        for (name, mut model, expected) in models(&[folder]) {
            for round in 0..rounds {
                let mut offsets = model.slots();
                // Sometimes not from a right plan: each anywhere in a small arena.
                if round % 6 == 5 {
                    let planned = model.planned();
                    let all: usize = planned
                        .iter()
                        .map(|&t| model.bytes[t].next_multiple_of(16))
                        .sum();
                    for t in planned {
                        offsets[t] = (random.below(all / 16 + 1) * 16) as i32;
                    }
                }
                for _ in 0..1 + random.below(4) {
                    disturb(&model, &mut random, &mut offsets);
                }
                let error = tally.count(&name, (&mut model, &expected), &offsets);
                let kind = match error {
                    None => "accepted",
                    Some(Error::PlanOverlap { .. }) => "overlap",
                    Some(Error::PlanOffset { .. }) => "offset",
                    Some(other) => panic!("{name}: {offsets:?}: {other}"),
                };
                *kinds.entry(kind).or_default() += 1;
            }
        }
    }
    println!("{tally:?}, {kinds:?}");
    assert!(tally.shared > 1000 && tally.refused > 1000, "{tally:?}");
}

/// The lines of `testdata/verdicts.txt`: model, what TFLM made of the plan, offsets.
fn verdicts() -> Vec<(String, String, Vec<i32>, usize)> {
    let text = std::fs::read_to_string(common::testdata("verdicts.txt")).unwrap();
    let mut bases: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    let mut model = "";
    let mut found = Vec::new();
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, l)| !l.starts_with('#'));
    for (line, text) in lines {
        let mut words = text.split(' ');
        let kind = words.next().unwrap();
        let first = words.next().unwrap();
        if kind == "model" {
            model = first;
            bases.clear();
            continue;
        }
        let seen = words.next().unwrap();
        let offsets = if kind == "plan" {
            let offsets: Vec<i32> = words.map(|w| w.parse().unwrap()).collect();
            bases.insert(first, offsets.clone());
            offsets
        } else {
            let mut offsets = bases[first].clone();
            for word in words {
                let (tensor, offset) = word.split_once('=').unwrap();
                offsets[tensor.parse::<usize>().unwrap()] = offset.parse().unwrap();
            }
            offsets
        };
        found.push((model.to_owned(), seen.to_owned(), offsets, line + 1));
    }
    found
}

/// TFLM checks no plans, so that some crash it or change its outputs.
#[test]
fn no_plan_that_misleads_tflm_misleads_this_crate() {
    let mut known: BTreeMap<String, (Planned, Outcome)> = BTreeMap::new();
    for (name, model, expected) in models(&["models"]) {
        known.insert(name, (model, expected));
    }
    let (mut tally, mut wrong, mut unknown) = (Tally::default(), 0, 0);
    for (name, seen, offsets, line) in verdicts() {
        let Some((model, expected)) = known.get_mut(&name) else {
            unknown += 1;
            continue;
        };
        let place = format!("verdicts.txt:{line}: {name}");
        let error = tally.count(&place, (model, &*expected), &offsets);
        wrong += usize::from(seen != "same");
        if let Some(error) = error {
            assert!(
                matches!(error, Error::PlanOverlap { .. }),
                "{place}: {error}"
            );
        }
    }
    println!("{tally:?}, {wrong} wrong, {unknown} of models that do not run here");
    assert!(wrong > 300 && tally.accepted > 100 && unknown < 200);
}

#[test]
fn offsets_must_be_in_the_arena_and_aligned() {
    let file = std::fs::read(common::testdata("models/base_float32.tflite")).unwrap();
    let mut model = Planned::new(&file);
    let slots = model.slots();
    for t in model.planned() {
        let mut at = |offset| {
            let mut offsets = slots.clone();
            offsets[t] = offset;
            match model.run(&offsets) {
                Outcome::Refused(error) => error,
                Outcome::Ran(_) => panic!("{offset} is accepted"),
            }
        };
        let tensor = t as u32;
        for offset in [1, 2, 3, 1025, 0x7fff_ffff, 1 << 30, 0x7fff_fff0] {
            assert_eq!(at(offset), Error::PlanOffset { tensor, offset });
        }
        for offset in [1 << 20, (1 << 30) - 16, (1 << 30) - 4] {
            let Error::ArenaTooSmall { needed, given } = at(offset) else {
                panic!("{offset} is out of bounds");
            };
            assert!(needed > offset as usize && given < 1 << 20);
        }
        assert!(matches!(at(-2), Error::Model(_)));
    }
}

#[test]
fn a_plan_of_the_wrong_form_is_refused() {
    let mut refused = 0;
    for path in common::models("malformed") {
        if !stem(&path).starts_with("plan_") {
            continue;
        }
        let model = Memory::copy_of(&std::fs::read(&path).unwrap());
        let mut arena = Memory::noise(1 << 17, 3);
        let result = Interpreter::new(&model, ops::ALL, &mut arena);
        // Misaligned for a vector, not for an element; places of variables, which a plan has no say in.
        let harmless = [
            "plan_misaligned",
            "plan_subgraph0_entry",
            "plan_variable_offset",
        ];
        let error = result.err();
        assert_eq!(
            error.is_none(),
            harmless.contains(&stem(&path)),
            "{}: {error:?}",
            stem(&path)
        );
        refused += usize::from(error.is_some());
    }
    assert!(refused >= 15, "{refused}");
}
