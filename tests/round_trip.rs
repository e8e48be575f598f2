//! Planning changes nothing that it does not own, and can be undone.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;

use arenaplan::aliasing::Level;
use arenaplan::plan::{Options, plan};
use arenaplan::report::Outcome;
use arenaplan::target::Target;
use arenaplan_schema::{patch, view};

fn all() -> Vec<common::Sample> {
    let mut all = common::models();
    all.extend(common::shared_models().into_iter().flatten());
    all
}

#[test]
fn strip_gives_the_original_back_and_planning_twice_changes_nothing() {
    let mut planned = 0;
    for sample in all() {
        let once = plan(&sample.bytes, &Options::default()).unwrap();
        if !matches!(once.report.outcome, Outcome::Planned { .. }) {
            assert_eq!(
                once.file, sample.bytes,
                "{}: nothing planned, yet changed",
                sample.name
            );
            continue;
        }
        planned += 1;
        assert_eq!(
            patch::strip(&once.file).unwrap(),
            sample.bytes,
            "{}",
            sample.name
        );
        let twice = plan(&once.file, &Options::default()).unwrap();
        assert!(
            twice.file == once.file,
            "{}: planning twice differs",
            sample.name
        );
        assert_eq!(twice.report.head_bytes, once.report.head_bytes);
    }
    assert!(planned >= 15, "only {planned} models were planned");
}

/// Planning the planned file with other options replaces the plan instead of piling one on the other.
#[test]
fn another_plan_replaces_the_first() {
    let original = common::model("diamond_a_int8");
    // One library, so that no other one has a say in whether a plan is worse than none.
    let by = |solver: &str| Options {
        solver: solver.parse().unwrap(),
        target: Target::TflmReference,
        alias: Some(Level::None),
        ..Options::default()
    };
    let (linear, greedy) = (by("linear"), by("greedy"));
    let auto = plan(&original, &Options::default()).unwrap();
    let replaced = plan(&auto.file, &greedy).unwrap();
    assert_eq!(patch::strip(&replaced.file).unwrap(), original);
    assert_eq!(replaced.file, plan(&original, &greedy).unwrap().file);
    // A plan without reuse is worse than none and is dropped; then the file is the original.
    let dropped = plan(&auto.file, &linear).unwrap();
    assert!(matches!(
        dropped.report.outcome,
        Outcome::WorseThanUnplanned { .. }
    ));
    assert_eq!(dropped.file, original);
    assert_eq!(dropped.report.head_bytes, dropped.report.greedy_head_bytes);
}

/// Where a buffer's data starts decides whether a kernel may use wide loads on it.
#[test]
fn every_buffer_keeps_its_alignment() {
    for sample in all() {
        let planned = plan(&sample.bytes, &Options::default()).unwrap().file;
        let places = |bytes: &[u8]| -> Vec<Option<usize>> {
            let model = view::Model::new(bytes).unwrap();
            let at = |data: &[u8]| data.as_ptr() as usize - bytes.as_ptr() as usize;
            model
                .buffers()
                .unwrap()
                .into_iter()
                .map(|b| b.unwrap().data().unwrap().filter(|d| !d.is_empty()).map(at))
                .collect()
        };
        let (before, after) = (places(&sample.bytes), places(&planned));
        for (i, (b, a)) in before.iter().zip(&after).enumerate() {
            let (Some(b), Some(a)) = (b, a) else {
                assert_eq!(b, a, "{}: buffer {i}", sample.name);
                continue;
            };
            let align = |at: usize| 1 << at.trailing_zeros().min(6);
            assert!(
                align(*a) >= align(*b),
                "{}: buffer {i} was at {b}, is at {a}",
                sample.name
            );
        }
    }
}

/// The bar for MLPerf Tiny's visual wake words model: at most 1 KB in the file.
#[test]
fn a_plan_is_small() {
    let Some(models) = common::shared_models() else {
        return;
    };
    let vww = models.iter().find(|m| m.name == "vww_96_int8").unwrap();
    let planned = plan(&vww.bytes, &Options::default()).unwrap();
    let added = planned.file.len() - vww.bytes.len();
    assert!(added <= 1024, "the plan adds {added} bytes");
}

/// A file that something else changed after planning cannot be restored, but can be planned again.
#[test]
fn a_changed_file_is_planned_as_it_is() {
    let original = common::model("diamond_a_int8");
    let mut changed = plan(&original, &Options::default()).unwrap().file;
    // A weight: data of the largest constant.
    let at = {
        let model = view::Model::new(&changed).unwrap();
        let largest = model
            .buffers()
            .unwrap()
            .into_iter()
            .filter_map(|b| b.unwrap().data().unwrap())
            .max_by_key(|d| d.len())
            .unwrap();
        largest.as_ptr() as usize - changed.as_ptr() as usize
    };
    changed[at] ^= 0x55;
    assert_eq!(
        patch::strip(&changed),
        Err(patch::PatchError::ChangedContent)
    );
    let again = plan(&changed, &Options::default()).unwrap();
    assert!(
        again
            .report
            .warnings
            .iter()
            .any(|w| w.contains("changed after planning"))
    );
    assert_eq!(patch::strip(&again.file).unwrap(), changed);
    assert_eq!(
        plan(&again.file, &Options::default()).unwrap().file,
        again.file
    );
}

/// What another tool left in the file: a smaller plan stays, a larger or wrong one goes, whatever comes in its place.
#[test]
fn plans_of_other_tools() {
    let outcome = |name: &str, solver: &str| {
        let bytes = common::model(name);
        let options = Options {
            solver: solver.parse().unwrap(),
            ..Options::default()
        };
        let planned = plan(&bytes, &options).unwrap();
        let stored = view::Model::new(&planned.file)
            .unwrap()
            .offline_plan()
            .unwrap()
            .is_some();
        (
            planned.report.outcome,
            stored,
            planned.file == bytes,
            planned.report.head_bytes,
        )
    };
    let replaced = Outcome::Planned { replaced: true };
    // 7,808 without a plan, 6,912 with the best: see testdata/README.md.
    assert_eq!(
        outcome("plan_linear_int8", "auto"),
        (replaced.clone(), true, false, 6_912)
    );
    assert_eq!(
        outcome("plan_optimal_int8", "auto"),
        (replaced, true, false, 6_912)
    );
    assert_eq!(
        outcome("plan_optimal_int8", "greedy"),
        (Outcome::ForeignPlanKept, true, true, 6_912)
    );
    // Ours without reuse is above none, and theirs too: the file ends without any.
    let (dropped, stored, same, head) = outcome("plan_linear_int8", "linear");
    assert!(
        matches!(dropped, Outcome::WorseThanUnplanned { .. }),
        "{dropped:?}"
    );
    assert_eq!((stored, same, head), (false, false, 7_808));
}

/// A plan of another tool that shares more than the options ask for, or starts tensors elsewhere, goes however small it is.
#[test]
fn plans_of_other_tools_keep_to_the_options() {
    let reference = Options {
        target: Target::TflmReference,
        reorder: false,
        ..Options::default()
    };
    let mut bytes = plan(&common::model("dscnn_int8"), &reference).unwrap().file;
    // Under another name the note of who made it is none.
    let name = [&9u32.to_le_bytes()[..], b"arenaplan\0"].concat();
    let at = bytes.windows(name.len()).position(|w| w == name).unwrap();
    bytes[at + 4] = b'_';
    let with = |alias, align, solver: &str| {
        let options = Options {
            alias,
            align,
            solver: solver.parse().unwrap(),
            ..reference.clone()
        };
        plan(&bytes, &options).unwrap().report
    };
    // First fit finds less than what is there.
    let kept = with(None, 16, "linear");
    assert_eq!(
        (kept.outcome, kept.head_bytes),
        (Outcome::ForeignPlanKept, 2_320)
    );
    assert!(kept.needs.is_some());
    for (alias, align) in [
        (Some(Level::None), 16),
        (Some(Level::Views), 16),
        (None, 64),
    ] {
        let report = with(alias, align, "auto");
        let name = format!("{alias:?}, {align}");
        assert_eq!(
            report.outcome,
            Outcome::Planned { replaced: true },
            "{name}"
        );
        assert!(report.head_bytes > 2_320, "{name}");
        assert!(report.warnings.is_empty(), "{name}: {:?}", report.warnings);
    }
}
