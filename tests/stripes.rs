//! Row stripes of random vision models: the outputs are those of the model as it was, to the bit.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

#[path = "common/draft.rs"]
mod draft;
#[path = "common/random.rs"]
mod random;
#[path = "common/vision.rs"]
mod vision;

use std::collections::BTreeMap;

use arenaplan::execute::{self, ExecuteError, Feed, Setting, Values};
use arenaplan::graph::Graph;
use arenaplan::model::Model;
use arenaplan::plan::{Options, plan};
use arenaplan::report::Outcome;
use arenaplan::stripes::{MAX_STRIPES, Net};
use arenaplan::target::Target;
use arenaplan_schema::names::operator_name;
use arenaplan_schema::patch::{self, Edit, NewOperator, NewTensor, Rewrite};
use arenaplan_schema::tflite::{BuiltinOperator as Code, TensorType};
use draft::{Draft, Options as With, Part};
use random::Random;

/// A model and its outputs.
struct Whole {
    seed: u64,
    bytes: Vec<u8>,
    outputs: Vec<Vec<Values>>,
    /// Whether other inputs give other outputs.
    vary: bool,
}

/// What is rewritten in it.
struct Cut {
    rewrite: Rewrite,
    /// In words, to find it again.
    words: String,
}

impl Whole {
    fn new(seed: u64) -> Self {
        let bytes = vision::model(seed);
        let outputs = run(&bytes, seed).unwrap();
        Whole {
            seed,
            vary: outputs[0] != outputs[1],
            outputs,
            bytes,
        }
    }

    /// Up to `most` ways to cut it: random regions, cuts and trims, one or more after another.
    fn cuts(&self, most: usize) -> Vec<Cut> {
        let graph = read(&self.bytes);
        let whole = Net::read(&graph, &[]);
        let mut random = Random(self.seed ^ 0x57_7269_7065);
        let mut all = Vec::new();
        for _ in 0..most {
            let (mut net, mut words) = (whole.clone(), String::new());
            for _ in 0..random.pick(&[1, 1, 1, 2]) {
                if let Some((made, how)) = cut(&net, &mut random) {
                    net = made;
                    words += &how;
                }
            }
            if !words.is_empty() {
                let rewrite = net.rewrite(&graph).unwrap();
                let words = format!("seed {} {words}", self.seed);
                all.push(Cut { rewrite, words });
            }
        }
        all
    }

    fn with(&self, rewrite: &Rewrite) -> Vec<u8> {
        let edit = Edit {
            rewrite: vec![rewrite.clone()],
            ..Edit::default()
        };
        patch::graft(&self.bytes, &edit).unwrap()
    }
}

/// The outputs over two inputs that follow from the seed.
fn run(bytes: &[u8], seed: u64) -> Result<Vec<Vec<Values>>, ExecuteError> {
    let mut outputs = Vec::new();
    execute::run(bytes, &setting(seed), |_, values| outputs.push(values))?;
    Ok(outputs)
}

fn setting(seed: u64) -> Setting<'static> {
    Setting {
        feed: Feed::Noise(seed),
        invokes: 2,
        ..Setting::default()
    }
}

fn read(bytes: &[u8]) -> Graph<'_> {
    Graph::read(Model::parse(bytes).unwrap()).unwrap()
}

/// The net with a random region cut somewhere.
fn cut(net: &Net, random: &mut Random) -> Option<(Net, String)> {
    let regions = net.regions();
    let mut region = regions.get(random.within(0..=regions.len() as u64) as usize)?;
    if random.within(0..=1) == 0 {
        // Rather one with many operators.
        region = regions.iter().max_by_key(|r| r.operators().count())?;
    }
    let rows = net.rows_of_result(region);
    if rows < 2 {
        return None;
    }
    let stripes = random.within(2..=MAX_STRIPES.min(rows as usize) as u64);
    let mut cuts = vec![0, rows];
    while cuts.len() <= stripes as usize {
        let at = random.within(1..=rows as u64 - 1) as i64;
        if !cuts.contains(&at) {
            cuts.push(at);
        }
    }
    cuts.sort_unstable();
    let trim = random.pick(&[0, 0, 1, 2, 4]);
    let made = net.split(region, &cuts, trim)?;
    Some((made, format!("[{region:?} at {cuts:?} trim {trim}]")))
}

#[test]
fn striped_models_compute_the_same() {
    let (mut vary, mut all) = (0, 0);
    // How often each operator was copied, by its name.
    let mut copies: BTreeMap<String, usize> = BTreeMap::new();
    let (mut slices, mut nested) = (0, 0);
    for whole in (0..1_000).map(Whole::new) {
        let graph = read(&whole.bytes);
        for Cut { rewrite, words } in whole.cuts(3) {
            let striped = whole.with(&rewrite);
            let found = run(&striped, whole.seed).unwrap_or_else(|e| panic!("{words}: {e}"));
            assert!(found == whole.outputs, "{words}: outputs differ");
            let original = patch::original_of(&striped).unwrap();
            assert!(*original == whole.bytes, "{words}: the original is lost");
            all += 1;
            vary += usize::from(whole.vary);
            nested += usize::from(words.matches(" at ").count() > 1);
            for op in &rewrite.operators {
                match *op {
                    NewOperator::Like { original, .. } => {
                        let code = graph.subgraphs[0].operators[original as usize].code;
                        *copies.entry(operator_name(code).to_string()).or_default() += 1;
                    }
                    NewOperator::Slice { .. } => slices += 1,
                    _ => {}
                }
            }
        }
    }
    println!(
        "{all} rewrites, {nested} of several regions, {slices} slices; outputs of {vary} vary"
    );
    println!("copies: {copies:?}");
    assert!(
        all >= 2_400 && vary * 100 >= all * 97,
        "{all} rewrites, outputs of {vary} vary"
    );
    let expected = [
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "MAX_POOL_2D",
        "AVERAGE_POOL_2D",
        "PAD",
        "PADV2",
        "ADD",
        "SUB",
        "MUL",
        "CONCATENATION",
        "RELU",
        "RELU6",
        "LEAKY_RELU",
        "LOGISTIC",
        "TANH",
        "HARD_SWISH",
        "QUANTIZE",
        "DEQUANTIZE",
    ];
    for name in expected {
        let copies = copies.get(name).copied().unwrap_or(0);
        assert!(copies >= 50, "{name} was copied {copies} times");
    }
}

/// The place and values of the constant that is this tensor of a rewrite.
fn constant(rewrite: &Rewrite, tensor: i32, file_tensors: usize) -> &[i32] {
    let new = match (tensor as usize).checked_sub(file_tensors) {
        Some(added) => &rewrite.added[added],
        None => {
            &rewrite
                .replaced
                .iter()
                .find(|(t, _)| *t == tensor as u32)
                .unwrap()
                .1
        }
    };
    match new {
        NewTensor::Constant { values, .. } => values,
        NewTensor::Like { shape, .. } => panic!("no constant but {shape:?}"),
    }
}

/// Rows of a tensor of a rewrite.
fn rows(rewrite: &Rewrite, tensor: i32, graph: &Graph<'_>) -> i32 {
    let kept = graph.subgraphs[0].tensor_count as usize;
    let replaced = rewrite.replaced.iter().find(|(t, _)| *t == tensor as u32);
    let new = match (tensor as usize).checked_sub(kept) {
        Some(added) => Some(&rewrite.added[added]),
        None => replaced.map(|(_, new)| new),
    };
    match new {
        Some(NewTensor::Like { shape, .. } | NewTensor::Constant { shape, .. }) => shape[1],
        None => graph.tensors[tensor as usize].shape[1],
    }
}

/// The rewrite with one of its slices a row away from where it was; `None` where all sources are taken as a whole.
fn moved(graph: &Graph<'_>, rewrite: &Rewrite, random: &mut Random) -> Option<Rewrite> {
    let kept = graph.subgraphs[0].tensor_count as usize;
    let mut choices = Vec::new();
    for (at, op) in rewrite.operators.iter().enumerate() {
        if let NewOperator::Slice {
            inputs: [source, begin, size],
            ..
        } = *op
        {
            let first = constant(rewrite, begin, kept)[1];
            let end = first + constant(rewrite, size, kept)[1];
            let last = rows(rewrite, source, graph);
            assert!(
                0 <= first && end <= last,
                "a slice of rows {first}..{end} of {last}"
            );
            choices.extend((first > 0).then_some((at, first - 1)));
            choices.extend((end < last).then_some((at, first + 1)));
        }
    }
    if choices.is_empty() {
        return None;
    }
    let (at, first) = random.pick(&choices);
    let mut rewrite = rewrite.clone();
    rewrite.added.push(NewTensor::Constant {
        shape: vec![4],
        values: vec![0, first, 0, 0],
        name: String::new(),
    });
    let tensor = (kept + rewrite.added.len()) as i32 - 1;
    if let NewOperator::Slice { inputs, .. } = &mut rewrite.operators[at] {
        inputs[1] = tensor;
    }
    Some(rewrite)
}

/// Equal outputs say something: where a slice takes rows that are one off, they are hardly ever equal.
#[test]
fn a_slice_of_the_wrong_rows_is_seen() {
    let (mut seen, mut all) = (0, 0);
    for whole in (0..400).map(Whole::new).filter(|w| w.vary) {
        let graph = read(&whole.bytes);
        let mut random = Random(whole.seed);
        for cut in whole.cuts(2) {
            if let Some(wrong) = moved(&graph, &cut.rewrite, &mut random) {
                all += 1;
                let found = run(&whole.with(&wrong), whole.seed).unwrap();
                seen += usize::from(found != whole.outputs);
            }
        }
    }
    println!("{seen} of {all} moved slices are seen");
    assert!(all >= 300 && seen * 10 >= all * 9, "{seen} of {all}");
}

/// A file like any other: its provenance under a name that says nothing.
fn as_a_file_of_its_own(mut striped: Vec<u8>) -> Vec<u8> {
    let name = patch::PROVENANCE_NAME.as_bytes();
    let starts = striped.windows(name.len()).enumerate();
    let starts: Vec<usize> = starts
        .filter(|(_, w)| *w == name)
        .map(|(at, _)| at)
        .collect();
    assert!(!starts.is_empty());
    for at in starts {
        striped[at] = b'_';
    }
    striped
}

/// Plans share memory between a tensor and its slices and between the parts and what joins them.
#[test]
fn plans_of_striped_models_compute_the_same() {
    let targets = [Target::Tflm, Target::TflmReference, Target::Arenaplan];
    let mut counts = [[0; 3]; 3];
    for whole in (0..60).map(Whole::new) {
        // Plans of many operators take long.
        let mut cuts = whole.cuts(3).into_iter();
        let Some(Cut { rewrite, words }) = cuts.find(|c| c.rewrite.operators.len() <= 25) else {
            continue;
        };
        let striped = as_a_file_of_its_own(whole.with(&rewrite));
        for (target, counts) in targets.into_iter().zip(&mut counts) {
            let what = format!("{words} {target:?}");
            let options = Options {
                target,
                ..Options::default()
            };
            let planned = plan(&striped, &options).unwrap_or_else(|e| panic!("{what}: {e}"));
            let [all, same, refused] = counts;
            if !matches!(planned.report.outcome, Outcome::Planned { .. }) {
                continue;
            }
            *all += 1;
            // In memory that is spoilt where no tensor in use is.
            match execute::compare(&planned.file, &whole.bytes, &setting(whole.seed)) {
                Ok(found) => {
                    assert_eq!(found.difference, None, "{what}");
                    *same += 1;
                }
                // TFLM's kernels keep more than the runtime's promise.
                Err(ExecuteError::Runtime { reason, .. })
                    if target == Target::TflmReference && reason.contains("at one place") =>
                {
                    *refused += 1;
                }
                Err(e) => panic!("{what}: {e}"),
            }
        }
    }
    println!("planned, the same, refused by the runtime: {counts:?}");
    for (target, [all, same, _]) in targets.into_iter().zip(counts) {
        assert!(
            all >= 12 && same >= 6,
            "{target:?}: {all} planned, {same} run"
        );
    }
}

fn image(draft: &mut Draft, kind: TensorType, shape: &[i32]) -> i32 {
    draft.tensor(Part {
        kind,
        shape: shape.to_vec(),
        scales: Vec::new(),
        zero_point: 0,
        axis: 0,
        data: None,
    })
}

/// Regions, by first and last operator, of a model of operators on images of these shapes. Each operator has one image, the
/// first one the input, and what `with` adds.
fn regions(draft: &Draft) -> Vec<(usize, usize)> {
    let bytes = draft.finish();
    let net = Net::read(&read(&bytes), &[]);
    let ends = |r: &arenaplan::stripes::Region| (*r.operators().start(), *r.operators().end());
    net.regions().iter().map(ends).collect()
}

/// RELU, an operator between images of these shapes and with these constants, RELU.
fn between(
    code: Code,
    kind: TensorType,
    [from, to]: [&[i32]; 2],
    constants: &[&[i32]],
    options: With,
) -> Draft {
    let mut draft = Draft::default();
    let [a, b] = [from, from].map(|shape| image(&mut draft, kind, shape));
    let [c, d] = [to, to].map(|shape| image(&mut draft, kind, shape));
    let mut inputs = vec![b];
    for shape in constants {
        let elements = shape.iter().product::<i32>();
        let constant = draft.tensor(Part {
            kind,
            shape: shape.to_vec(),
            scales: Vec::new(),
            zero_point: 0,
            axis: 0,
            data: Some(vec![0; 4 * elements as usize]),
        });
        inputs.push(constant);
    }
    draft.step(Code::RELU, &[a], b, With::Nothing);
    draft.step(code, &inputs, c, options);
    draft.step(Code::RELU, &[c], d, With::Nothing);
    (draft.inputs, draft.outputs) = (vec![a], vec![d]);
    draft
}

#[test]
fn regions_are_of_operators_that_work_row_by_row() {
    use TensorType as T;
    let all = vec![(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)];
    let ends = vec![(0, 0), (2, 2)];
    let (shape, other) = (&[1, 8, 4, 2][..], &[1, 8, 4, 4][..]);
    let same = [shape, shape];
    let none = With::Nothing;
    let fused = || With::Fused(arenaplan_schema::tflite::ActivationFunctionType::NONE);
    let case = |code, kind, shapes, constants: &[&[i32]], with| {
        regions(&between(code, kind, shapes, constants, with))
    };
    assert_eq!(case(Code::TANH, T::FLOAT32, same, &[], none), all);
    // Constants: without rows, with rows that are broadcast, and with rows of their own.
    for (constant, expected) in [
        (&[2][..], &all),
        (&[4, 2], &all),
        (&[1, 4, 2], &all),
        (&[1, 1, 4, 2], &all),
        (&[8, 4, 2], &ends),
        (&[1, 8, 1, 1], &ends),
        (&[1, 8, 4, 2], &ends),
    ] {
        let found = case(Code::ADD, T::FLOAT32, same, &[constant], fused());
        assert_eq!(&found, expected, "{constant:?}");
    }
    // Rows are the second of four dimensions, of one image.
    let batch = &[2, 8, 4, 2][..];
    assert_eq!(
        case(Code::TANH, T::FLOAT32, [batch; 2], &[], With::Nothing),
        []
    );
    let flat = &[8, 4, 2][..];
    assert_eq!(
        case(Code::TANH, T::FLOAT32, [flat; 2], &[], With::Nothing),
        []
    );
    // Types that SLICE and CONCATENATION of TFLM do not take.
    assert_eq!(case(Code::TANH, T::UINT8, same, &[], With::Nothing), []);
    // Along the channels, and along the rows.
    let mut joined = between(
        Code::CONCATENATION,
        T::FLOAT32,
        [shape, other],
        &[],
        With::Axis(3),
    );
    joined.steps[1].inputs = vec![1, 1];
    assert_eq!(regions(&joined), all);
    let longer = &[1, 16, 4, 2][..];
    let mut joined = between(
        Code::CONCATENATION,
        T::FLOAT32,
        [shape, longer],
        &[],
        With::Axis(1),
    );
    joined.steps[1].inputs = vec![1, 1];
    assert_eq!(regions(&joined), ends);
    // Operators that mix rows.
    assert_eq!(
        case(Code::SOFTMAX, T::FLOAT32, same, &[], With::Nothing),
        ends
    );
    // Tensors between that the application reads, or an operator outside.
    let mut read_inside = between(Code::TANH, T::FLOAT32, same, &[], With::Nothing);
    read_inside.outputs.push(1);
    assert_eq!(regions(&read_inside), [(0, 0), (1, 1), (1, 2), (2, 2)]);
    // Or that a signature names, or an operator among its intermediates.
    let mut signed = between(Code::TANH, T::FLOAT32, same, &[], With::Nothing);
    signed.signed = vec![1];
    assert_eq!(regions(&signed), [(0, 0), (1, 1), (1, 2), (2, 2)]);
    let mut named = between(Code::TANH, T::FLOAT32, same, &[], With::Nothing);
    named.intermediates = vec![2];
    assert_eq!(regions(&named), [(0, 0), (0, 1), (1, 1), (2, 2)]);
    let mut read_later = between(Code::TANH, T::FLOAT32, same, &[], With::Nothing);
    let sum = image(&mut read_later, T::FLOAT32, shape);
    read_later.step(Code::ADD, &[1, 3], sum, fused());
    read_later.outputs = vec![sum];
    // (0, 3) has one input; (1, 2) and (1, 3) begin behind what is read twice.
    let found = regions(&read_later);
    assert_eq!(found, [(0, 0), (0, 3), (1, 1), (1, 2), (1, 3), (2, 2)]);
}

/// Cuts that do not go from the first row to the last in rising order give nothing.
#[test]
fn cuts_that_leave_rows_out_are_refused() {
    let shape = &[1, 8, 4, 2][..];
    let draft = between(
        Code::TANH,
        TensorType::FLOAT32,
        [shape; 2],
        &[],
        With::Nothing,
    );
    let bytes = draft.finish();
    let net = Net::read(&read(&bytes), &[]);
    let region = net.region(0..=2).unwrap();
    for good in [&[0, 4, 8][..], &[0, 1, 8], &[0, 1, 2, 3, 4, 5, 6, 7, 8]] {
        assert!(net.split(&region, good, 0).is_some(), "{good:?}");
    }
    for wrong in [
        &[][..],
        &[0],
        &[0, 8],
        &[0, 4],
        &[4, 8],
        &[1, 4, 8],
        &[0, 4, 7],
        &[0, 4, 9],
        &[0, 4, 4, 8],
        &[0, 5, 4, 8],
        &[-1, 4, 8],
        &[0, 2, 1, 3, 8],
    ] {
        assert!(net.split(&region, wrong, 0).is_none(), "{wrong:?}");
    }
}
