//! Estimates and searches of the test models, worked by hand or by trying everything.

use arenaplan_schema::patch::{self, Edit, NewOperator, NewTensor, Rewrite};

use super::estimate::{Program, estimate};
use super::kernels::{Kernels, Mode};
use super::search::{Budget, Goal, Nothing, Outcome, search};
use super::spent::Costs;
use super::{Net, ProofError, prove};
use crate::graph::Graph;
use crate::model::Model;
use crate::target::Target;

/// The bytes of a model in `testdata`.
fn model(name: &str) -> Vec<u8> {
    let path = format!(
        "{}/testdata/models/{name}.tflite",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read(path).expect("a test model")
}

fn with_graph<R>(name: &str, work: impl FnOnce(&Graph<'_>) -> R) -> R {
    let bytes = model(name);
    let graph = Graph::read(Model::parse(&bytes).expect("a model")).expect("a graph");
    work(&graph)
}

fn target(mode: Mode) -> Target {
    match mode {
        Mode::Overlap => Target::TflmReference,
        _ => Target::Tflm,
    }
}

fn curve(graph: &Graph<'_>, net: &Net, mode: Mode) -> Vec<u64> {
    let kernels = Kernels::new(graph, target(mode), mode, &[]);
    estimate(&Program::of(net), &kernels).curve
}

fn found(graph: &Graph<'_>, mode: Mode, budget: Budget) -> Outcome {
    let net = Net::read(graph, &[]);
    let costs = Costs::read(graph, &net, target(mode), mode != Mode::Greedy);
    let kernels = Kernels::new(graph, target(mode), mode, &[]);
    let goal = Goal {
        kernels: &kernels,
        mode,
        budget,
    };
    search(&net, &costs, &goal)
}

/// `conv_int8`: image [16, 16, 3] -> CONV_2D [16, 16, 8] -> MAX_POOL_2D [8, 8, 8] -> CONV_2D [8, 8, 12] -> CONV_2D [4, 4, 16]
/// -> RESHAPE [256] -> FULLY_CONNECTED [10] -> SOFTMAX [10].
#[test]
fn estimates_of_a_chain() {
    with_graph("conv_int8", |graph| {
        let net = Net::read(graph, &[]);
        let whole = vec![768, 2816, 2560, 1280, 1024, 512, 272, 32];
        assert_eq!(curve(graph, &net, Mode::Greedy), whole);
        // RESHAPE copies its input onto itself.
        let views = vec![768, 2816, 2560, 1280, 1024, 256, 272, 32];
        assert_eq!(curve(graph, &net, Mode::Views), views);
    });
}

/// The first CONV_2D and the MAX_POOL_2D in two halves: 8 rows of the pool's input are 8 rows of the convolution, which reads
/// rows 0..9 and 7..16 of the image (48 bytes each). A SLICE's 9 rows give 9 rows of 128 bytes, of which one is wrong.
///
/// ```text
/// clock  1 SLICE 0..9   2 CONV_2D   3 SLICE 0..8   4 MAX_POOL_2D   5 SLICE 7..16   6 CONV_2D   7 SLICE 1..9   8 MAX_POOL_2D
///        9 CONCATENATION
/// ```
#[test]
fn estimates_of_stripes() {
    with_graph("conv_int8", |graph| {
        let net = Net::read(graph, &[]);
        let region = net.region(0..=1).expect("a region");
        let net = net.split(&region, &[0, 4, 8], 0).expect("stripes");
        // Nine rows of the convolution feed the pool as they are where the wrong one is the last: 9 / 2 rounded up are 5 rows, or
        // with VALID 4. In the second half the wrong row is the first, and must go.
        let kinds: Vec<_> = net.operators.iter().map(|o| o.layer()).collect();
        assert_eq!(
            kinds[..8],
            [None, Some(0), Some(1), None, Some(0), None, Some(1), None]
        );
        let whole = curve(graph, &net, Mode::Greedy);
        let views = curve(graph, &net, Mode::Views);
        // Clock 0: the image. 1: it, and a copy of 9 rows, or a view of them. 2: the convolution's 9 rows as well, with a view
        // the 7 rows that only the other half reads are alive beside the 9.
        assert_eq!(whole[..3], [768, 768 + 432, 768 + 432 + 1152]);
        assert_eq!(views[..3], [768, 768, 768 + 1152]);
        // 3: the pool's 4 rows of 64 bytes; rows 0..7 of the image are gone.
        assert_eq!(whole[3], 768 + 1152 + 256);
        assert_eq!(views[3], 9 * 48 + 1152 + 256);
        // 8: both halves and the result, or the result alone.
        assert_eq!(whole[8], 256 + 256 + 512);
        assert_eq!(views[8], 512);
    });
}

#[test]
fn outputs_run_into_inputs_by_the_rows_of_a_copy() {
    with_graph("conv_int8", |graph| {
        let net = Net::read(graph, &[]);
        let whole = curve(graph, &net, Mode::Overlap);
        // What a plan for the reference kernels reaches: the peak is the convolution's.
        assert_eq!(whole.iter().max(), Some(&2112));
        let region = net.region(0..=1).expect("a region");
        let net = net.split(&region, &[0, 4, 8], 0).expect("stripes");
        let views = curve(graph, &net, Mode::Views);
        let overlap = curve(graph, &net, Mode::Overlap);
        assert_eq!(views.len(), overlap.len());
        assert!(views.iter().zip(&overlap).all(|(v, o)| o <= v));
        // The pool's output starts where its input starts.
        assert_eq!(overlap[3], views[3] - 256);
    });
}

/// The least peak with one region of the file in equal stripes, by trying all of them, within a budget in thousandths.
fn least_by_trying(graph: &Graph<'_>, mode: Mode, budget: i64) -> u64 {
    let net = Net::read(graph, &[]);
    let costs = Costs::read(graph, &net, target(mode), mode != Mode::Greedy);
    let mut least = u64::MAX;
    for region in net.regions() {
        let rows = net.rows_of_result(&region);
        for parts in 2..=rows.min(10) {
            let cuts = (0..=parts).map(|k| (2 * k * rows + parts) / (2 * parts));
            let cuts: Vec<i64> = cuts.collect();
            for trim in [0, 1, 2, 4] {
                let Some(split) = net.split(&region, &cuts, trim) else {
                    continue;
                };
                let spent = costs.of(&split.operators, |t| split.tensor(t));
                let extra = spent.time - costs.whole.time;
                if extra * 1000 <= costs.whole.time * budget {
                    let peak = curve(graph, &split, mode).into_iter().max();
                    least = least.min(peak.unwrap_or(0));
                }
            }
        }
    }
    least
}

#[test]
fn searches_are_no_worse_than_trying_all_single_regions() {
    for name in [
        "conv_int8",
        "mobilenet_v2_int8",
        "dscnn_int8",
        "inception_int8",
    ] {
        for mode in [Mode::Greedy, Mode::Views, Mode::Overlap] {
            with_graph(name, |graph| {
                let least = least_by_trying(graph, mode, 300);
                let mut net = Net::read(graph, &[]);
                let before = curve(graph, &net, mode).into_iter().max().unwrap_or(0);
                let costs = Costs::read(graph, &net, target(mode), mode != Mode::Greedy);
                let kernels = Kernels::new(graph, target(mode), mode, &[]);
                let goal = Goal {
                    kernels: &kernels,
                    mode,
                    budget: Budget::UpTo(300),
                };
                let peaks = super::search::peaks(&net, &costs, &goal);
                let best = peaks.iter().map(|p| p.0).min().unwrap_or(before);
                assert!(
                    best <= least.min(before),
                    "{name} {mode:?}: {best}, {least} by trying"
                );
                // What is said of a choice is what comes out.
                for (peak, split) in peaks {
                    net = split;
                    let curve = curve(graph, &net, mode);
                    assert_eq!(curve.into_iter().max(), Some(peak), "{name} {mode:?}");
                }
            });
        }
    }
}

#[test]
fn what_is_found_keeps_to_the_budget_and_is_the_same_again() {
    with_graph("mobilenet_v2_int8", |graph| {
        let net = Net::read(graph, &[]);
        let before = curve(graph, &net, Mode::Views).into_iter().max();
        for thousandths in [100, 200] {
            let budget = Budget::UpTo(thousandths);
            let first = found(graph, Mode::Views, budget).expect("stripes");
            for f in &first {
                let peak = curve(graph, &f.net, Mode::Views).into_iter().max();
                assert!(peak < before);
                let costs = Costs::read(graph, &net, Target::Tflm, true);
                let spent = costs.of(&f.net.operators, |t| f.net.tensor(t));
                assert_eq!(f.extra_time, spent.time - costs.whole.time);
                assert!(f.extra_time * 1000 <= costs.whole.time * i64::from(thousandths));
                assert_eq!(f.extra_macs, spent.macs as i64 - costs.whole.macs as i64);
                assert!(!f.regions.is_empty());
            }
            let second = found(graph, Mode::Views, budget).expect("stripes");
            let nets = |all: &[super::search::Found]| -> Vec<_> {
                all.iter().map(|f| f.net.operators.clone()).collect()
            };
            assert_eq!(nets(&first), nets(&second));
        }
    });
}

#[test]
fn reasons_why_there_is_nothing() {
    let reason = |name: &str, mode, budget| {
        with_graph(name, |graph| found(graph, mode, budget)).expect_err("nothing")
    };
    let ten = Budget::UpTo(100);
    // Its RELU runs in place over the image of 512 bytes.
    assert_eq!(
        reason("reshape_open_float32", Mode::Overlap, ten),
        Nothing::Inputs { bytes: 512 }
    );
    let cannot = reason("autoencoder_int8", Mode::Views, ten);
    assert!(
        matches!(
            cannot,
            Nothing::Operator {
                reason: super::Reason::Kind,
                ..
            }
        ),
        "{cannot:?}"
    );
    let dear = reason("conv_int8", Mode::Views, Budget::UpTo(1));
    let Nothing::Budget { least, peak } = dear else {
        panic!("{dear:?}");
    };
    assert!(least > 1 && peak < 2816);
    // So much does, as far as the head goes.
    let enough = with_graph("conv_int8", |graph| {
        let net = Net::read(graph, &[]);
        let costs = Costs::read(graph, &net, Target::Tflm, true);
        let kernels = Kernels::new(graph, Target::Tflm, Mode::Views, &[]);
        let goal = Goal {
            kernels: &kernels,
            mode: Mode::Views,
            budget: Budget::UpTo(least),
        };
        super::search::peaks(&net, &costs, &goal)
    });
    assert!(enough.iter().any(|e| e.0 == peak));
}

/// The file with the first three layers in three stripes, and what the proof says of it; `damage` changes what is written.
fn proved(damage: impl FnOnce(&mut Rewrite)) -> Result<(), ProofError> {
    with_graph("conv_int8", |graph| {
        let net = Net::read(graph, &[]);
        let region = net.region(0..=2).expect("a region");
        let net = net.split(&region, &[0, 3, 5, 8], 0).expect("stripes");
        let mut rewrite = net.rewrite(graph).expect("a rewriting");
        damage(&mut rewrite);
        let edit = Edit {
            rewrite: vec![rewrite.clone()],
            ..Edit::default()
        };
        let file = patch::graft(graph.model.bytes(), &edit).expect("a file");
        prove(&file, &rewrite, graph)
    })
}

#[test]
fn wrong_rewritings_are_not_proved() {
    assert!(proved(|_| {}).is_ok());
    // Slices that begin a row higher.
    let one_row_off = |rewrite: &mut Rewrite| {
        let replaced = rewrite.replaced.iter_mut().map(|(_, new)| new);
        for new in replaced.chain(&mut rewrite.added) {
            if let NewTensor::Constant { values, .. } = new
                && let [0, row, 0, 0] = &mut values[..]
                && *row > 0
            {
                *row -= 1;
            }
        }
    };
    let moved = proved(one_row_off);
    assert!(matches!(moved, Err(ProofError::Differs(_))), "{moved:?}");
    // The first and the last stripe in each other's place.
    let swapped = proved(|rewrite| {
        for operator in &mut rewrite.operators {
            if let NewOperator::Concatenation { inputs, .. } = operator {
                inputs.swap(0, 2);
            }
        }
    });
    assert!(
        matches!(swapped, Err(ProofError::Differs(_))),
        "{swapped:?}"
    );
}
