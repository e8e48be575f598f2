use super::Net;
use super::estimate::{Kernels, Mode, Program, estimate};
use super::search::{Budget, Goal, search};
use super::spent::Costs;
use crate::graph::Graph;
use crate::model::Model;
use crate::target::Target;

#[test]
#[ignore = "prints figures of the files in STRIPES_MODELS"]
fn figures() {
    let files = std::env::var("STRIPES_MODELS").unwrap_or_default();
    let budget = match std::env::var("STRIPES_BUDGET").as_deref() {
        Ok("auto") => Budget::Auto,
        Ok(number) => Budget::UpTo(number.parse().unwrap_or(100)),
        Err(_) => Budget::UpTo(100),
    };
    for file in files.split_whitespace() {
        let bytes = std::fs::read(file).expect("a model");
        let Ok(graph) = Model::parse(&bytes).and_then(Graph::read) else {
            continue;
        };
        let net = Net::read(&graph, &[]);
        let costs = Costs::read(&graph, &net);
        for (mode, target) in [
            (Mode::Greedy, Target::Tflm),
            (Mode::Views, Target::Tflm),
            (Mode::Overlap, Target::TflmReference),
        ] {
            let kernels = Kernels::new(&graph, target, mode, &[]);
            let before = estimate(&Program::of(&net), &kernels).peak();
            let goal = Goal {
                kernels: &kernels,
                mode,
                budget,
            };
            let start = std::time::Instant::now();
            let found = search(&net, &costs, &goal);
            let time = start.elapsed();
            let name = file.rsplit('/').next().unwrap_or(file);
            let mut text = format!("{name:36.36} {mode:?} {before:?} -> ");
            match found {
                Ok(found) => {
                    for f in found.iter().take(3) {
                        text += &format!(
                            "{} tail {:+} cost {:+} macs {:+}; ",
                            f.peak,
                            f.tail,
                            f.extra_time * 1000 / costs.whole as i64,
                            f.extra_macs
                        );
                    }
                    text += &format!("{:?}", found[0].regions);
                }
                Err(reason) => text += &format!("{reason:?}"),
            }
            eprintln!("{text} {time:.2?}");
        }
    }
}
