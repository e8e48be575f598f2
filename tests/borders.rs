//! Random operators that put a border around a tensor, planned for the bundled runtime: the checker, which runs the kernels'
//! loops, and the kernels themselves find the plans right, which let most inputs lie under their outputs.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

#[path = "common/random.rs"]
mod random;
#[path = "common/single.rs"]
mod single;

use arenaplan::execute::{Feed, Setting, compare};
use arenaplan::plan::{Options, plan};
use arenaplan::report::Outcome;
use arenaplan::target::Target;
use random::Random;
use single::{Single, build};

fn list(dims: &[u64]) -> String {
    let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
    dims.join(",")
}

/// The operator's line, and the bytes of its output.
fn line(r: &mut Random) -> (String, u64) {
    let (ty, size) = r.pick(&[("i8", 1), ("i16", 2), ("f32", 4)]);
    let operator = r.pick(&["PAD", "PADV2", "MIRROR_PAD"]);
    let from: Vec<u64> = (0..r.within(1..=5)).map(|_| r.within(2..=5)).collect();
    let (mut to, mut pads) = (Vec::new(), Vec::new());
    for dim in &from {
        let [before, after] = [(); 2].map(|()| r.pick(&[0, 0, 1, 1, dim - 1]));
        to.push(before + dim + after);
        pads.extend([before, after]);
    }
    let (value, mode) = match operator {
        "PADV2" => (format!(" {ty}:1/1!7"), String::new()),
        "MIRROR_PAD" => (String::new(), format!(" mode={}", r.within(0..=1))),
        _ => (String::new(), String::new()),
    };
    let (rank, pads) = (from.len(), list(&pads));
    let (from, shape) = (list(&from), list(&to));
    let line =
        format!("{operator} {ty}:{from}/1 i32:{rank},2!{pads}{value} > {ty}:{shape}/1{mode}");
    (line, to.iter().product::<u64>() * size)
}

#[test]
fn inputs_lie_under_their_outputs() {
    let mut r = Random(3);
    let options = Options {
        target: Target::Arenaplan,
        ..Options::default()
    };
    let setting = Setting {
        feed: Feed::Noise(5),
        invokes: 2,
        ..Setting::default()
    };
    let (mut planned, mut under) = (0, 0);
    for _ in 0..300 {
        let (line, output_bytes) = line(&mut r);
        let model = build(&Single::parse(&line));
        let made = plan(&model, &options).unwrap();
        // A plan that the checker refuses would be dropped with a warning.
        assert!(
            made.report.warnings.is_empty(),
            "{line}: {:?}",
            made.report.warnings
        );
        if !matches!(made.report.outcome, Outcome::Planned { .. }) {
            continue;
        }
        planned += 1;
        let found = compare(&made.file, &model, &setting).unwrap();
        assert_eq!(found.difference, None, "{line}");
        let least = output_bytes.next_multiple_of(16);
        under += u32::from(made.report.head_bytes <= least + 16 && output_bytes > 64);
    }
    println!("{planned} planned, {under} in the output's bytes");
    assert!(planned > 200 && under > 100, "{planned}, {under}");
}
