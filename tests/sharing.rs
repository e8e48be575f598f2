//! Plans in which tensors share bytes: never above those in which they share less, and never above no plan.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;

use arenaplan::aliasing::Level;
use arenaplan::plan::{Options, plan};
use arenaplan::report::{Outcome, Report};
use arenaplan::target::Target;

fn report(bytes: &[u8], target: Target, alias: Option<Level>, reorder: bool) -> Report {
    let options = Options {
        target,
        alias,
        reorder,
        ..Options::default()
    };
    plan(bytes, &options).unwrap().report
}

/// The more may be shared, the lower the head; with each target and with each of its libraries at most what it is without a
/// plan; and no warning tells of something that went wrong.
#[test]
fn more_sharing_never_takes_more() {
    let mut smaller = [0; Level::ALL.len()];
    let every = [
        Target::Tflm,
        Target::TflmReference,
        Target::TflmCmsisNn(None),
        Target::TflmEspNn(None),
    ];
    let ours = common::models()
        .into_iter()
        .map(|sample| (sample, &every[..]));
    let public = common::shared_models().into_iter().flatten();
    let public = public.map(|sample| (sample, &every[..1]));
    for (sample, targets) in ours.chain(public) {
        for &target in targets {
            let mut before = report(&sample.bytes, target, Some(Level::None), false);
            if matches!(before.outcome, Outcome::CompiledOffsets { .. }) {
                continue; // as its own compiler arranged it
            }
            let levels = Level::ALL.into_iter().filter(|&l| l <= Level::of(target));
            for level in levels {
                let now = report(&sample.bytes, target, Some(level), true);
                let name = format!("{} for {target} with {level}", sample.name);
                assert!(now.head_bytes <= before.head_bytes, "{name}");
                assert!(now.head_bytes <= now.greedy_head_bytes, "{name}");
                for head in &now.libraries {
                    assert!(
                        head.head_bytes <= head.greedy_head_bytes,
                        "{name}: {head:?}"
                    );
                }
                let most = now.taken.iter().map(|t| t.kind.level()).max();
                assert!(
                    most.unwrap_or(Level::None) <= level,
                    "{name}: {:?}",
                    now.taken
                );
                smaller[level as usize] += usize::from(now.head_bytes < before.head_bytes);
                before = now;
            }
        }
    }
    println!("smaller than with less: {smaller:?}");
    assert!(smaller.iter().all(|&n| n >= 2), "{smaller:?}");
}

/// What only some kernels keep is said, and what all keep is not.
#[test]
fn plans_for_certain_kernels_say_so() {
    let bytes = common::model("dscnn_int8");
    let any = report(&bytes, Target::Tflm, None, true);
    assert_eq!(any.needs, None);
    assert!(any.warnings.is_empty(), "{:?}", any.warnings);
    let reference = report(&bytes, Target::TflmReference, None, true);
    assert!(reference.head_bytes < any.head_bytes);
    assert_eq!(reference.needs.as_deref(), Some("TFLM's reference kernels"));
    assert!(reference.warnings.is_empty(), "{:?}", reference.warnings);
    let raised = report(&bytes, Target::Tflm, Some(Level::Overlap), true);
    let warning = raised.warnings.join("\n");
    assert!(
        warning.contains("the target tflm does not promise"),
        "{warning}"
    );
    let named = |t: &arenaplan::aliasing::Taken| {
        warning.contains(&format!("operator {} ", t.operator.index))
    };
    assert!(
        !raised.taken.is_empty() && raised.taken.iter().all(named),
        "{warning}"
    );
    assert_eq!(raised.needs.as_deref(), Some("TFLM's reference kernels"));
    let lowered = report(&bytes, Target::TflmReference, Some(Level::None), true);
    assert_eq!((lowered.needs, lowered.taken), (None, vec![]));
}

/// A plan that suits the first library of a target and not another one is not written.
#[test]
fn no_library_of_a_target_is_worse_off() {
    // On an ESP32-S3 the convolutions ask for more scratch memory than all tensors take.
    let dropped = report(&common::model("conv_int8"), Target::Tflm, None, true);
    let Outcome::WorseOnLibrary(head) = dropped.outcome else {
        panic!("{:?}", dropped.outcome);
    };
    assert_eq!(head.library.name(), "esp-nn-s3");
    assert!(head.head_bytes > head.greedy_head_bytes, "{head:?}");
    let why = dropped.explanation().unwrap();
    assert!(
        why.contains("with esp-nn-s3 kernels the head would be"),
        "{why}"
    );
    let alone = report(
        &common::model("conv_int8"),
        Target::TflmReference,
        None,
        true,
    );
    assert!(matches!(alone.outcome, Outcome::Planned { .. }));
}
