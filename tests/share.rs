//! Models that take turns on one arena.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

#[path = "common/build.rs"]
mod build;
mod common;
#[path = "common/split.rs"]
mod split;

use arenaplan::execute::{Memory, Noise};
use arenaplan::graph::{Graph, TensorId};
use arenaplan::model::Model;
use arenaplan::plan::{Group, Options, Stripes, plan};
use arenaplan::share::{self, Link, Member, Port, Shared};
use arenaplan::target::Target;
use arenaplan_runtime::{Session, ops, tail_bytes};
use arenaplan_schema::tflite::BuiltinOperator as Code;
use arenaplan_schema::view;
use build::Plain;
use split::split;

fn offsets(file: &[u8]) -> Vec<i32> {
    let model = view::Model::new(file).unwrap();
    let plan = model.offline_plan().unwrap().unwrap();
    plan.offsets().into_iter().collect()
}

fn link(from: (usize, usize), to: (usize, usize)) -> Link {
    let port = |(model, index)| Port { model, index };
    Link {
        from: port(from),
        to: port(to),
    }
}

fn members<'a>(files: &'a [(&'a str, &'a [u8])]) -> Vec<Member<'a>> {
    let member = |&(name, bytes): &(&'a str, &'a [u8])| Member { name, bytes };
    files.iter().map(member).collect()
}

fn options(target: Target) -> Options {
    Options {
        target,
        ..Options::default()
    }
}

/// The tensors of a model's inputs and of its outputs, each with its bytes.
fn ports(file: &[u8]) -> [Vec<(u32, usize)>; 2] {
    let graph = Graph::read(Model::parse(file).unwrap()).unwrap();
    let port = |t: &TensorId| (t.0, graph.tensor(*t).bytes as usize);
    let main = &graph.subgraphs[0];
    [&main.inputs, &main.outputs].map(|list| list.iter().map(port).collect())
}

/// Runs planned models one after the other in one arena of exactly the largest head and all tails. What is linked is left where
/// it is; all other inputs are noise. Gives the outputs of the last model, for several rounds.
fn run_in_turns(files: &[&[u8]], links: &[Link], arena_bytes: usize) -> Vec<Vec<u8>> {
    let files: Vec<Memory> = files.iter().map(|f| Memory::holding(f)).collect();
    let tails: Vec<usize> = (files.iter())
        .map(|f| tail_bytes(f.as_slice(), ops::ALL).unwrap())
        .collect();
    let mut arena = Memory::new(arena_bytes);
    let ports: Vec<_> = files.iter().map(|f| ports(f.as_slice())).collect();
    let mut sessions = Vec::new();
    let all: usize = tails.iter().sum();
    let (head, mut rest) = arena.as_mut_slice().split_at_mut(arena_bytes - all);
    for (file, &bytes) in files.iter().zip(&tails) {
        let (tail, others) = rest.split_at_mut(bytes);
        rest = others;
        sessions.push(Session::new(file.as_slice(), ops::ALL, head, tail).unwrap());
    }
    let mut noise = Noise::new(7);
    let mut found = Vec::new();
    for _ in 0..4 {
        let mut last = Vec::new();
        for (k, session) in sessions.iter_mut().enumerate() {
            let [inputs, outputs] = &ports[k];
            let place = |session: &Session<'_, '_>, (tensor, bytes)| {
                let offset = session.head_offset(tensor).unwrap();
                offset..offset + bytes
            };
            for (index, &port) in inputs.iter().enumerate() {
                if !links.iter().any(|l| l.to == (Port { model: k, index })) {
                    noise.fill(&mut head[place(session, port)]);
                }
            }
            session.invoke(head).unwrap();
            let all = outputs.iter().map(|&port| &head[place(session, port)]);
            last = all.collect::<Vec<_>>().concat();
        }
        found.push(last);
    }
    found
}

fn shared(files: &[(&str, &[u8])], links: &[Link], options: &Options) -> Shared {
    let shared = share::plan(&members(files), links, options).unwrap();
    // Again by another route: the plans as they are in the files.
    for (link, placed) in links.iter().zip(&shared.links) {
        let at =
            |model: usize, tensor: TensorId| offsets(&shared.models[model].file)[tensor.index()];
        let graph = |model: usize| Graph::read(Model::parse(files[model].1).unwrap()).unwrap();
        let from = graph(link.from.model).subgraphs[0].outputs[link.from.index];
        let to = graph(link.to.model).subgraphs[0].inputs[link.to.index];
        assert_eq!(at(link.from.model, from) as u64, placed.offset);
        assert_eq!(at(link.to.model, to) as u64, placed.offset);
    }
    shared
}

/// Models cut in two compute what the whole one does, without a copy, and wherever they are cut.
#[test]
fn halves_compute_what_the_whole_does() {
    let mut cuts = 0;
    for name in [
        "dscnn_int8",
        "mobilenet_v2_int8",
        "resnet_int8",
        "unet_int8",
        "autoencoder_int16x8",
    ] {
        let whole = common::model(name);
        let count = Graph::read(Model::parse(&whole).unwrap())
            .unwrap()
            .operators()
            .count();
        let own = options(Target::Arenaplan);
        let planned = plan(&whole, &own).unwrap();
        let bytes = planned.report.arena_32.arena_bytes as usize;
        let expected = run_in_turns(&[&planned.file], &[], bytes);
        assert!(
            expected.windows(2).any(|w| w[0] != w[1]),
            "{name}: outputs do not vary"
        );
        for cut in 1..count {
            let Some([first, second]) = split(&whole, cut) else {
                continue;
            };
            let files = [("first", &first[..]), ("second", &second[..])];
            let links = share::cascade(&members(&files), &[], &own).unwrap();
            assert_eq!(links, [link((0, 0), (1, 0))]);
            let shared = shared(&files, &links, &own);
            let total = shared.total();
            let files: Vec<&[u8]> = shared.models.iter().map(|m| &m.file[..]).collect();
            let found = run_in_turns(&files, &links, total.arena_32.arena_bytes as usize);
            assert_eq!(found, expected, "{name} cut at {cut}");
            cuts += 1;
        }
    }
    assert!(cuts > 20, "{cuts}");
}

/// The same where layers are also computed in row stripes: what is linked keeps its place in a file that was rewritten.
#[test]
fn halves_in_stripes_compute_what_the_whole_does() {
    let mut striped = [0; 2];
    for name in [
        "conv_float32",
        "conv_int8",
        "mobilenet_v2_int8",
        "resnet_int8",
    ] {
        let whole = common::model(name);
        let planned = plan(&whole, &options(Target::Arenaplan)).unwrap();
        let bytes = planned.report.arena_32.arena_bytes as usize;
        let expected = run_in_turns(&[&planned.file], &[], bytes);
        for target in [Target::Tflm, Target::Arenaplan] {
            let own = Options {
                stripes: Stripes::UpTo(1000),
                ..options(target)
            };
            for cut in [1, 2, 3, 6] {
                let Some([first, second]) = split(&whole, cut) else {
                    continue;
                };
                let files = [("first", &first[..]), ("second", &second[..])];
                let links = [link((0, 0), (1, 0))];
                let shared = shared(&files, &links, &own);
                let is_striped = |k: usize| shared.models[k].report.stripes.is_some();
                for (count, k) in striped.iter_mut().zip(0..) {
                    *count += usize::from(is_striped(k));
                }
                // Never worse than without.
                let plain = share::plan(&members(&files), &links, &options(target)).unwrap();
                let arena = |shared: &Shared| shared.total().arena_32.arena_bytes;
                assert!(arena(&shared) <= arena(&plain), "{name} cut at {cut}");
                // TFLM's tails are larger than the runtime's, but its scratch memory may be smaller.
                let room = arena(&shared) as usize + 1024;
                let files: Vec<&[u8]> = shared.models.iter().map(|m| &m.file[..]).collect();
                let found = run_in_turns(&files, &links, room);
                assert_eq!(found, expected, "{name} cut at {cut} for {target}");
            }
        }
    }
    assert!(striped.iter().all(|&n| n > 1), "{striped:?}");
}

/// Three parts: the one in the middle has its input and its output fixed.
#[test]
fn thirds_compute_what_the_whole_does() {
    let mut cuts = 0;
    for name in ["dscnn_int8", "resnet_int8", "unet_int8"] {
        let whole = common::model(name);
        for target in [Target::Arenaplan, Target::TflmReference] {
            let own = options(target);
            let planned = plan(&whole, &options(Target::Arenaplan)).unwrap();
            let bytes = planned.report.arena_32.arena_bytes as usize;
            let expected = run_in_turns(&[&planned.file], &[], bytes);
            for (first_cut, second_cut) in [(2, 4), (3, 3), (4, 5), (6, 2), (8, 2)] {
                let parts = split(&whole, first_cut).and_then(|[first, rest]| {
                    let [second, third] = split(&rest, second_cut)?;
                    Some([first, second, third])
                });
                let Some([first, second, third]) = parts else {
                    continue;
                };
                let files = [
                    ("first", &first[..]),
                    ("second", &second[..]),
                    ("third", &third[..]),
                ];
                let links = share::cascade(&members(&files), &[], &own).unwrap();
                assert_eq!(links, [link((0, 0), (1, 0)), link((1, 0), (2, 0))]);
                let shared = shared(&files, &links, &own);
                if target == Target::Arenaplan {
                    let bytes = shared.total().arena_32.arena_bytes as usize;
                    let files: Vec<&[u8]> = shared.models.iter().map(|m| &m.file[..]).collect();
                    let found = run_in_turns(&files, &links, bytes);
                    assert_eq!(found, expected, "{name} cut at {first_cut}, {second_cut}");
                }
                cuts += 1;
            }
        }
    }
    assert!(cuts > 6, "{cuts}");
}

#[test]
fn every_target_puts_what_is_linked_in_one_place() {
    for name in ["dscnn_int8", "resnet_int8"] {
        let whole = common::model(name);
        let [first, second] = (4..).find_map(|cut| split(&whole, cut)).unwrap();
        let files = [("first", &first[..]), ("second", &second[..])];
        let links = [link((0, 0), (1, 0))];
        for target in Target::ALL {
            let shared = shared(&files, &links, &options(target));
            assert_eq!(shared.totals.len(), target.libraries().len());
            let heads = shared.models.iter().map(|m| m.report.head_bytes);
            assert_eq!(shared.total().head_bytes, heads.max().unwrap());
            assert!(shared.total().head_bytes >= shared.unlinked_head_bytes);
            // The same files again: the same result, noted in them.
            let planned: Vec<_> = (files.iter().zip(&shared.models))
                .map(|((name, _), m)| (*name, &m.file[..]))
                .collect();
            let again = share::plan(&members(&planned), &links, &options(target)).unwrap();
            for (a, b) in shared.models.iter().zip(&again.models) {
                assert_eq!(a.file, b.file, "{name} {target}");
            }
            let note = arenaplan_schema::patch::inspect_provenance(planned[1].1)
                .unwrap()
                .unwrap();
            let options = note.stamp.options;
            assert!(
                options.ends_with("share=first,second link=first:0=second:0"),
                "{options}"
            );
        }
    }
}

/// A model of float32 operators in a row, `x` -> ... -> `y`, each with as many elements.
fn chain(codes: &[Code], elements: i32) -> Vec<u8> {
    let mut model = Plain::default();
    let mut last = model.tensor(elements);
    model.inputs.push(last);
    for &code in codes {
        let next = model.tensor(elements);
        model.op(code, &[last], &[next]);
        last = next;
    }
    model.outputs.push(last);
    model.finish()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.chunks_exact(4);
    words
        .map(|w| f32::from_le_bytes(w.try_into().unwrap()))
        .collect()
}

fn error(files: &[(&str, &[u8])], links: &[Link], options: &Options) -> String {
    share::plan(&members(files), links, options)
        .unwrap_err()
        .to_string()
}

/// An output that two models read stays where it is while the first of them runs, which would otherwise compute in place.
#[test]
fn an_output_for_two_models_survives_the_first() {
    let files = [
        ("source", &chain(&[Code::RELU], 8)[..]),
        ("first", &chain(&[Code::NEG, Code::NEG, Code::NEG], 8)[..]),
        ("second", &chain(&[Code::ABS], 8)[..]),
    ];
    let own = options(Target::Arenaplan);
    let links = [link((0, 0), (1, 0)), link((0, 0), (2, 0))];
    let found = shared(&files, &links, &own);
    assert_eq!(found.links[0].offset, found.links[1].offset);
    let planned: Vec<&[u8]> = found.models.iter().map(|m| &m.file[..]).collect();
    let bytes = found.total().arena_32.arena_bytes as usize;
    let results = run_in_turns(&planned, &links, bytes);
    // The second model reads what the source has left, and not its negative.
    let mut noise = Noise::new(7);
    for result in results {
        let mut input = [0; 32];
        noise.fill(&mut input);
        let expected: Vec<f32> = floats(&input).iter().map(|x| x.max(0.0).abs()).collect();
        assert_eq!(floats(&result), expected);
    }
    // In the one in between, nothing lies on its input; by itself it takes 32 bytes.
    assert_eq!(found.models[1].report.head_bytes, 64);
    assert_eq!(found.unlinked_head_bytes, 32);
    assert_eq!(found.link_cost_bytes(), 32);
    assert!(
        found
            .warnings
            .iter()
            .any(|w| w.contains("64 bytes instead of 32")),
        "{:?}",
        found.warnings
    );

    // The check knows: planned alone, the first model overwrites it.
    let mut wrong = planned.clone();
    let careless = Options {
        fixed: vec![(TensorId(0), found.links[0].offset)],
        ..own.clone()
    };
    let careless = plan(files[1].1, &careless).unwrap().file;
    wrong[1] = &careless;
    let names = ["source", "first", "second"];
    let wrong: Vec<_> = names.into_iter().zip(wrong).collect();
    let faults = share::check(&members(&wrong), &links, &own).unwrap();
    assert!(
        faults.iter().any(|f| f.starts_with("first: ")),
        "{faults:?}"
    );
    let right: Vec<_> = names.into_iter().zip(planned).collect();
    assert_eq!(
        share::check(&members(&right), &links, &own).unwrap(),
        [""; 0]
    );

    // Past a model that does not read it, it is not planned.
    let links = [link((0, 0), (2, 0)), link((1, 0), (2, 0))];
    assert_eq!(
        error(&files, &links, &own),
        "link first:0=second:0: another link ends at this input already"
    );
    let mut two = Plain::default();
    let (a, b) = (two.tensor(8), two.tensor(8));
    let sum = two.tensor(8);
    two.op(Code::ADD, &[a, b], &[sum]);
    (two.inputs, two.outputs) = (vec![a, b], vec![sum]);
    let two = two.finish();
    let files = [files[0], files[1], ("second", &two[..])];
    let links = [link((0, 0), (2, 0)), link((1, 0), (2, 1))];
    assert_eq!(
        error(&files, &links, &own),
        "link source:0=second:0: first runs in between and would overwrite it: link the output to an input of first as \
         well, give first another place in the order, or copy the output"
    );
}

#[test]
fn links_that_make_no_sense_are_refused() {
    let (eight, nine) = (chain(&[Code::RELU], 8), chain(&[Code::RELU], 9));
    let coder = common::model("autoencoder_int8");
    let files = [
        ("a", &eight[..]),
        ("b", &eight[..]),
        ("n", &nine[..]),
        ("c", &coder[..]),
        ("d", &coder[..]),
    ];
    let refused = |l: Link, expected: &str| {
        let found = error(&files, &[l], &Options::default());
        assert!(found.contains(expected), "{found}");
    };
    refused(
        link((0, 1), (1, 0)),
        "link a:1=b:0: there is no output 1; the model has 1 outputs, from 0 on",
    );
    refused(link((0, 0), (1, 3)), "there is no input 3");
    refused(link((0, 0), (9, 0)), "there are 5 models, from 0 on");
    refused(link((1, 0), (0, 0)), "a link leads to a later model");
    refused(link((0, 0), (0, 0)), "a link leads to a later model");
    refused(
        link((0, 0), (2, 0)),
        "the output has 32 bytes, shape [8], the input 36, shape [9]",
    );
    refused(
        link((0, 0), (3, 0)),
        "the output is FLOAT32, the input INT8",
    );
    // The same bytes would be other numbers.
    let graph = Graph::read(Model::parse(&coder).unwrap()).unwrap();
    let main = &graph.subgraphs[0];
    let quantization = |t: TensorId| {
        let q = graph.tensor(t).table.quantization().unwrap();
        (q.scale().unwrap().get(0), q.zero_point().unwrap().get(0))
    };
    let (from, to) = (quantization(main.outputs[0]), quantization(main.inputs[0]));
    assert_ne!(from, to);
    refused(
        link((3, 0), (4, 0)),
        &format!(
            "the output has scale {} and zero point {}, the input scale {} and zero point {}, so that",
            from.0, from.1, to.0, to.1
        ),
    );
    // What the device places itself may be anywhere.
    let online = Options {
        online: vec!["t1".into()],
        ..Options::default()
    };
    let found = error(&files[..2], &[link((0, 0), (1, 0))], &online);
    assert!(
        found.contains("tensor 1 \"t1\" is left to the device's planner"),
        "{found}"
    );
    // Two inputs of one model in the same bytes.
    let mut two = Plain::default();
    let (a, b, sum) = (two.tensor(8), two.tensor(8), two.tensor(8));
    two.op(Code::ADD, &[a, b], &[sum]);
    (two.inputs, two.outputs) = (vec![a, b], vec![sum]);
    let two = two.finish();
    let files = [("a", &eight[..]), ("two", &two[..])];
    let found = error(
        &files,
        &[link((0, 0), (1, 0)), link((0, 0), (1, 1))],
        &Options::default(),
    );
    assert!(
        found.contains("link a:0=two:1: two tensors of one model"),
        "{found}"
    );
    // Which of the two is meant?
    let found = share::cascade(&members(&files), &[], &Options::default()).unwrap_err();
    assert_eq!(
        found.to_string(),
        "2 links from a to two are possible; say which one is meant\n  a:0=two:0\n  a:0=two:1"
    );
    let said = [link((0, 0), (1, 1))];
    assert_eq!(
        share::cascade(&members(&files), &said, &Options::default()).unwrap(),
        said
    );
    let found = error(&[("a", b"no model at all")], &[], &Options::default());
    assert!(found.starts_with("a: "), "{found}");
    assert!(share::plan(&[], &[], &Options::default()).is_err());
}

/// What comes in goes out again as it is, and on to the next: three models, one place.
#[test]
fn an_input_that_is_also_an_output_is_passed_on() {
    let mut middle = Plain::default();
    let (x, y) = (middle.tensor(8), middle.tensor(8));
    middle.op(Code::NEG, &[x], &[y]);
    (middle.inputs, middle.outputs) = (vec![x], vec![x, y]);
    let middle = middle.finish();
    let ends = chain(&[Code::RELU], 8);
    let files = [("a", &ends[..]), ("b", &middle[..]), ("c", &ends[..])];
    // In either order of the links.
    let links = [link((1, 0), (2, 0)), link((0, 0), (1, 0))];
    for links in [links, [links[1], links[0]]] {
        let found = shared(&files, &links, &options(Target::Arenaplan));
        assert_eq!(found.links[0].offset, found.links[1].offset);
        let planned: Vec<&[u8]> = found.models.iter().map(|m| &m.file[..]).collect();
        let bytes = found.total().arena_32.arena_bytes as usize;
        let mut noise = Noise::new(7);
        for result in run_in_turns(&planned, &links, bytes) {
            let mut input = [0; 32];
            noise.fill(&mut input);
            let expected: Vec<f32> = floats(&input).iter().map(|x| x.max(0.0)).collect();
            assert_eq!(floats(&result), expected);
        }
    }
}

#[test]
fn files_that_do_not_belong_together_are_found() {
    let whole = common::model("dscnn_int8");
    let [first, second] = split(&whole, 4).unwrap();
    let files = [("first", &first[..]), ("second", &second[..])];
    let links = [link((0, 0), (1, 0))];
    let any = Options::default();
    let found = shared(&files, &links, &any);
    let input = ports(&second)[0][0].0;
    for offset in [found.links[0].offset + 16, 1 << 16] {
        let other = Options {
            fixed: vec![(TensorId(input), offset)],
            ..Options::default()
        };
        let other = plan(&second, &other).unwrap().file;
        let both = [("first", &found.models[0].file[..]), ("second", &other[..])];
        let faults = share::check(&members(&both), &links, &any).unwrap();
        let expected = format!(
            "link first:0=second:0: the output lies at {}, the input at {offset}",
            found.links[0].offset
        );
        assert_eq!(faults, [expected]);
    }
    // Without plans nobody knows where anything lies.
    let faults = share::check(&members(&files), &links, &any).unwrap();
    assert!(faults[0].contains("both ends need an offset"), "{faults:?}");
    assert!(share::check(&members(&files), &[link((0, 0), (1, 1))], &any).is_err());
}

/// CIRCULAR_BUFFER keeps its values in the head, which belongs to others until the next invoke.
#[test]
fn models_with_state_in_the_head_are_refused() {
    let mut model = Plain {
        custom: "CIRCULAR_BUFFER",
        ..Plain::default()
    };
    let (x, y) = (model.tensor(8), model.tensor(32));
    model.op(Code::CUSTOM, &[x], &[y]);
    (model.inputs, model.outputs) = (vec![x], vec![y]);
    let state = model.finish();
    let other = chain(&[Code::RELU], 8);
    let files = [("other", &other[..]), ("state", &state[..])];
    let found = error(&files, &[], &Options::default());
    assert!(
        found.starts_with("state: tensor 1 \"t1\" keeps its value in the arena's head"),
        "{found}"
    );
    let alone = plan(&state, &Options::default()).unwrap().file;
    let files = [("other", &other[..]), ("state", &alone[..])];
    let faults = share::check(&members(&files), &[], &Options::default()).unwrap();
    assert!(
        faults
            .iter()
            .any(|f| f.starts_with("state: ") && f.contains("holds state")),
        "{faults:?}"
    );
}

/// Tensors stay where they are told to, alone and as a part of what is merged, and the plan around them is right.
#[test]
fn fixed_offsets_are_kept() {
    let names = [
        "inception_int8",
        "split_pack_float32",
        "tcn_int8",
        "streaming_int8",
        "diamond_b_int8",
        "lstm_int8",
        "if_in_while_float32",
        "reductions_int8",
    ];
    let mut random = common::Random::new(3);
    let mut merged = 0;
    for name in names {
        let original = common::model(name);
        let graph = Graph::read(Model::parse(&original).unwrap()).unwrap();
        let free = plan(&original, &Options::default()).unwrap();
        let planned: Vec<TensorId> = (graph.tensors.iter().map(|t| t.id))
            .filter(|t| offsets(&free.file)[t.index()] != -1)
            .collect();
        for _ in 0..6 {
            let tensor = planned[random.below(planned.len())];
            let offset = 16 * random.below(free.report.head_bytes as usize / 8) as u64;
            let options = Options {
                fixed: vec![(tensor, offset)],
                ..Options::default()
            };
            let found = plan(&original, &options).unwrap();
            assert_eq!(
                offsets(&found.file)[tensor.index()] as u64,
                offset,
                "{name} {tensor:?}"
            );
            let written = Graph::read(Model::parse(&found.file).unwrap()).unwrap();
            let verdict = common::judged(&written, arenaplan::stored::StoredPlan::read(&written));
            assert!(
                verdict.is_right(),
                "{name} {tensor:?} at {offset}: {:?}",
                verdict.faults
            );
            assert!(found.report.head_bytes >= offset + graph.tensor(tensor).bytes);
            merged += usize::from(
                found
                    .report
                    .taken
                    .iter()
                    .any(|t| t.input == tensor || t.output == tensor),
            );
        }
        // Where a plan would have it anyway, it costs nothing.
        let tensor = planned[random.below(planned.len())];
        let options = Options {
            fixed: vec![(tensor, offsets(&free.file)[tensor.index()] as u64)],
            ..Options::default()
        };
        assert_eq!(
            plan(&original, &options).unwrap().report.head_bytes,
            free.report.head_bytes,
            "{name}"
        );
    }
    assert!(merged > 0);
}

/// Parts of a tensor that are merged with it lie at fixed distances; where given offsets say otherwise, they are copied.
#[test]
fn fixed_offsets_break_what_is_merged() {
    let mut model = Plain::default();
    let (x, y) = (model.tensor(8), model.tensor(8));
    let (a, b, both) = (model.tensor(8), model.tensor(8), model.tensor(16));
    model.op(Code::NEG, &[x], &[a]);
    model.op(Code::NEG, &[y], &[b]);
    model.op(Code::CONCATENATION, &[a, b], &[both]);
    (model.inputs, model.outputs) = (vec![x, y], vec![both]);
    let file = model.finish();
    let fixed = |fixed: &[(i32, u64)]| {
        let own = Options {
            fixed: fixed
                .iter()
                .map(|&(t, o)| (TensorId(t as u32), o))
                .collect(),
            ..options(Target::Arenaplan)
        };
        let planned = plan(&file, &own).unwrap();
        (offsets(&planned.file), planned.report.head_bytes)
    };
    // Both parts in their places, all in 64 bytes; also higher up.
    let (free, head) = fixed(&[]);
    assert_eq!((free[b as usize] - free[a as usize], head), (32, 64));
    let (found, head) = fixed(&[(b, 96)]);
    assert_eq!((found[b as usize], head), (96, 128));
    // Too low for the whole to begin below it, and at another distance.
    assert_eq!(fixed(&[(b, 16)]).0[b as usize], 16);
    let (found, _) = fixed(&[(a, 0), (b, 80)]);
    assert_eq!((found[a as usize], found[b as usize]), (0, 80));
}

#[test]
fn offsets_that_cannot_be_are_refused() {
    let file = chain(&[Code::RELU, Code::RELU], 8);
    let fixed = |fixed: &[(u32, u64)], align| {
        let options = Options {
            fixed: fixed.iter().map(|&(t, o)| (TensorId(t), o)).collect(),
            align,
            ..Options::default()
        };
        plan(&file, &options)
            .map(|p| offsets(&p.file))
            .map_err(|e| e.to_string())
    };
    assert_eq!(
        fixed(&[(0, 64), (1, 0)], 16).map(|o| o[..2].to_vec()),
        Ok(vec![64, 0])
    );
    let refused = |list: &[(u32, u64)], align, expected: &str| {
        let found = fixed(list, align).unwrap_err();
        assert!(found.contains(expected), "{found}");
    };
    refused(
        &[(0, 8)],
        16,
        "tensor 0 \"t0\" cannot be given an offset: 8 is not a multiple of the alignment, 16 bytes",
    );
    refused(
        &[(0, 16)],
        64,
        "16 is not a multiple of the alignment, 64 bytes",
    );
    refused(&[(0, 1 << 31)], 16, "beyond what offsets can tell");
    refused(&[(0, 0), (0, 32)], 16, "it is given several");
    refused(&[(77, 0)], 16, "77");
    // Input and output of one operator, which any kernel may read and write in turn.
    refused(&[(0, 0), (1, 16)], 16, "fixed");
    let reference = Options {
        fixed: vec![(TensorId(0), 0), (TensorId(1), 0)],
        ..options(Target::TflmReference)
    };
    assert_eq!(offsets(&plan(&file, &reference).unwrap().file)[..2], [0, 0]);
    let grouped = Options {
        group: Some(Group {
            note: "share=a,b".into(),
            keep: vec![TensorId(0)],
        }),
        ..Options::default()
    };
    let kept = offsets(&plan(&file, &grouped).unwrap().file);
    assert!(
        kept[1..]
            .iter()
            .all(|&o| o >= kept[0] + 32 || o + 32 <= kept[0]),
        "{kept:?}"
    );
}

/// Head and tails of the runtime by hand; and, for TFLM, those of one model are those of a group of one.
#[test]
fn totals() {
    let names = ["streaming_int8", "dscnn_int8", "lstm_int8"];
    let models: Vec<_> = names.iter().map(|name| common::model(name)).collect();
    let files: Vec<_> = names
        .into_iter()
        .zip(models.iter().map(|m| &m[..]))
        .collect();
    let own = share::plan(&members(&files), &[], &options(Target::Arenaplan)).unwrap();
    let reports = || own.models.iter().map(|m| &m.report);
    let head = reports().map(|r| r.head_bytes).max().unwrap();
    let tails: u64 = reports().map(|r| r.arena_32.tail_bytes).sum();
    assert_eq!(
        own.total().arena_32.arena_bytes,
        head.next_multiple_of(16) + tails
    );
    assert_eq!(own.total().arena_32, own.total().arena_64);

    for sample in common::models() {
        let Ok(found) = share::plan(
            &members(&[("only", &sample.bytes)]),
            &[],
            &Options::default(),
        ) else {
            continue;
        };
        let report = &found.models[0].report;
        if !report.reordered {
            assert_eq!(found.total().arena_32, report.arena_32, "{}", sample.name);
            assert_eq!(found.total().arena_64, report.arena_64, "{}", sample.name);
        }
    }
}

/// `4096` as `4,096`.
fn text(bytes: u64) -> String {
    format!("{},{:03}", bytes / 1000, bytes % 1000)
}

/// TFLM prepares a model above the tails of those before it: what needs much room for that comes first.
#[test]
fn the_order_of_preparation_counts() {
    // Of 40 operators, preparing takes more than running; the other model has a larger head and a smaller tail.
    let (long, large) = (chain(&[Code::RELU; 40], 8), chain(&[Code::RELU], 256));
    let arena = |files: &[(&str, &[u8])]| {
        let found = share::plan(&members(files), &[], &Options::default()).unwrap();
        let alone: Vec<_> = found.models.iter().map(|m| m.report.arena_32).collect();
        (found.total().arena_32, found.total().head_bytes, alone)
    };
    let (first, head, alone) = arena(&[("long", &long), ("large", &large)]);
    let (last, _, _) = arena(&[("large", &large), ("long", &long)]);
    // MicroAllocator, its planner and its memory: 116 bytes on 32 bits, there once.
    let tails = alone[0].tail_bytes + alone[1].tail_bytes - 116;
    assert!(first.tail_bytes.abs_diff(tails) < 16 && last.tail_bytes.abs_diff(tails) < 16);
    // The long one's room is above its own tail, or above both.
    let room = alone[0].planning_bytes;
    assert!(room > head, "{room} {head}");
    let expected = [(room + alone[0].tail_bytes).max(head + tails), room + tails];
    assert!(
        first.arena_bytes.abs_diff(expected[0]) < 32,
        "{first:?} {expected:?}"
    );
    assert!(
        last.arena_bytes.abs_diff(expected[1]) < 32,
        "{last:?} {expected:?}"
    );
    assert!(first.arena_bytes + 64 < last.arena_bytes);
    // Who gives them in the worse order is told.
    let warned = |files: &[(&str, &[u8])]| {
        let found = share::plan(&members(files), &[], &Options::default()).unwrap();
        let told = found
            .warnings
            .iter()
            .find(|w| w.contains("prepared in the order long, large"));
        told.map(|w| w.contains(&text(first.arena_bytes)) && w.contains(&text(last.arena_bytes)))
    };
    assert_eq!(warned(&[("large", &large), ("long", &long)]), Some(true));
    assert_eq!(warned(&[("long", &long), ("large", &large)]), None);
}
