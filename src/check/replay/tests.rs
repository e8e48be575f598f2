//! Events worked out by hand, and the distances that follow from events against those of [`crate::contract`].
#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../../../tests/common/random.rs"]
mod random;
#[path = "../../../tests/common/single.rs"]
mod single;

mod lines;

use super::{Event, MAX_STEPS, copies, replay};
use crate::contract;
use crate::graph::{Graph, Operator, Storage};
use crate::model::Model;
use crate::target::{Chip, Core, Library};
use lines::{other, rarer, windowed};
use random::Random;

fn with_operator<T>(line: &str, run: impl FnOnce(&Graph<'_>, &Operator<'_>) -> T) -> T {
    let bytes = single::build(&single::Single::parse(line));
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    run(&graph, &graph.subgraphs[0].operators[0])
}

fn events(library: Library, line: &str) -> Option<Vec<Event>> {
    with_operator(line, |graph, op| {
        let mut list = Vec::new();
        let is_known = replay(library, graph, op, &mut |e| list.push(e));
        is_known.then_some(list)
    })
}

/// Least distances with the input above the output, and the other way around, for each input and output.
fn distances(library: Library, graph: &Graph<'_>, op: &Operator<'_>) -> Vec<Vec<(u64, u64)>> {
    let bytes = |t| graph.tensor(t).bytes as i64;
    let from: Vec<i64> = op.inputs.iter().map(|t| t.map_or(0, bytes)).collect();
    let to: Vec<i64> = op.outputs.iter().map(|&t| bytes(t)).collect();
    // Lowest and highest byte of each output that was written so far.
    let mut written: Vec<Option<(i64, i64)>> = vec![None; to.len()];
    let mut wrong = vec![vec![(-1i64, -1i64); to.len()]; from.len()];
    let mut read = |written: &[Option<(i64, i64)>], input: usize, start: i64, end: i64| {
        for (o, range) in written.iter().enumerate() {
            if let Some((low, high)) = range {
                // With the input d above the output, byte r is hit by byte w where w - r = d.
                let worst = &mut wrong[input][o];
                *worst = (worst.0.max(high - start), worst.1.max(end - 1 - low));
            }
        }
    };
    let mut copied = Vec::new();
    let write = |written: &mut [Option<(i64, i64)>], output: usize, start: i64, end: i64| {
        let (low, high) = written[output].unwrap_or((start, end - 1));
        written[output] = Some((low.min(start), high.max(end - 1)));
    };
    let is_known = replay(library, graph, op, &mut |event| match event {
        Event::Read { input, start, end } => read(&written, input, start as i64, end as i64),
        Event::Write { output, start, end } => {
            write(&mut written, output, start as i64, end as i64);
        }
        Event::Copy {
            input,
            from,
            output,
            to,
            bytes,
        } => {
            let (from, to, bytes) = (from as i64, to as i64, bytes as i64);
            read(&written, input, from, from + bytes);
            write(&mut written, output, to, to + bytes);
            // Overlaps are wrong but for the one at equal addresses, which no row counts on unless it is a view.
            copied.push((input, output, to - from + bytes - 1, from - to + bytes - 1));
        }
        Event::Move {
            input,
            from,
            output,
            to,
            bytes,
        } => {
            read(&written, input, from as i64, (from + bytes) as i64);
            write(&mut written, output, to as i64, (to + bytes) as i64);
        }
    });
    for (i, o, above, below) in copied {
        wrong[i][o] = (wrong[i][o].0.max(above), wrong[i][o].1.max(below));
    }
    let clipped = |wrong: i64, bytes: i64| (wrong + 1).clamp(0, bytes) as u64;
    let unknown = |i: usize, o: usize| (to[o] as u64, from[i] as u64);
    (0..from.len())
        .map(|i| {
            (0..to.len())
                .map(|o| match is_known {
                    true => (
                        clipped(wrong[i][o].0, to[o]),
                        clipped(wrong[i][o].1, from[i]),
                    ),
                    false => unknown(i, o),
                })
                .collect()
        })
        .collect()
}

/// Calls `judge` with (promised, replayed) for each input in the arena.
fn compare(library: Library, line: &str, mut judge: impl FnMut((u64, u64), (u64, u64))) {
    with_operator(line, |graph, op| {
        let replayed = distances(library, graph, op);
        for (i, input) in op.inputs.iter().enumerate() {
            if input.is_none_or(|t| graph.tensor(t).storage != Storage::Arena) {
                continue;
            }
            for (o, &found) in replayed[i].iter().enumerate() {
                let promised = contract::overlap(library, graph, op, i, o);
                if library == Library::Reference {
                    let mut views = copies(library, graph, op, &mut { MAX_STEPS }).into_iter();
                    let view = views.find(|v| (v.0, v.1) == (i, o)).map(|v| v.2);
                    assert!(
                        promised.view_at.is_none_or(|at| Some(at) == view),
                        "{line}: {view:?}"
                    );
                }
                judge(
                    (promised.input_above_output, promised.output_above_input),
                    found,
                );
            }
        }
    });
}

fn library(r: &mut Random) -> Library {
    r.pick(&Library::ALL)
}

/// Calls `judge` with random operators of all kinds.
fn each_line(seed: u64, rounds: u32, mut judge: impl FnMut(&mut Random, String)) {
    let mut r = Random(seed);
    for _ in 0..rounds {
        for kind in ["conv", "depthwise", "pool"] {
            let ty = r.pick(&["f32", "i8", "i16"]);
            if let Some(line) = windowed(&mut r, ty, kind) {
                judge(&mut r, line);
            }
        }
        let line = other(&mut r);
        judge(&mut r, line);
        let line = rarer(&mut r);
        judge(&mut r, line);
    }
}

fn none_wrong(mut wrong: Vec<String>) {
    let count = wrong.len();
    wrong.truncate(40);
    assert!(wrong.is_empty(), "{count}\n{}", wrong.join("\n"));
}

/// The reference kernels' rows are exact: what they promise is right, and nothing less is.
#[test]
fn reference_rows_are_exact() {
    let mut compared = 0;
    let mut wrong = Vec::new();
    each_line(1, 1000, |_, line| {
        // Of int8 each element is read before its sum is written, also one that the sum leaves out; its row is for all types.
        let is_more = line.starts_with("CUMSUM i8") && line.contains("exclusive=true");
        compare(Library::Reference, &line, |promised, replayed| {
            let at_least = promised.0 >= replayed.0 && promised.1 >= replayed.1;
            if promised != replayed && !(is_more && at_least) {
                wrong.push(format!("{promised:?} {replayed:?} {line}"));
            }
            compared += 1;
        });
    });
    none_wrong(wrong);
    assert!(compared > 4_000, "{compared}");
}

/// What the other libraries' rows promise is right.
#[test]
fn rows_of_all_libraries_are_right() {
    let mut wrong = Vec::new();
    each_line(2, 1000, |r, line| {
        let library = library(r);
        compare(library, &line, |promised, replayed| {
            if promised.0 < replayed.0 || promised.1 < replayed.1 {
                wrong.push(format!("{library}: {promised:?} {replayed:?} {line}"));
            }
        });
    });
    none_wrong(wrong);
}

/// The runtime's borders are as close as its loops allow.
#[test]
fn own_borders_are_exact() {
    let (mut wrong, mut whole, mut padded, mut mirrored) = (Vec::new(), 0, 0, 0);
    each_line(7, 6000, |_, line| {
        match line.split_once(' ') {
            Some(("PAD", _)) => padded += 1,
            Some(("MIRROR_PAD", _)) => mirrored += 1,
            _ => return,
        }
        compare(Library::Arenaplan, &line, |promised, replayed| {
            whole += u32::from(promised == (0, 0));
            if promised != replayed {
                wrong.push(format!("{promised:?} {replayed:?} {line}"));
            }
        });
    });
    none_wrong(wrong);
    let counts = [whole, padded, mirrored];
    assert!(counts.iter().all(|&n| n > 25), "{counts:?}");
}

/// The kernel moves a row with all its channels, which the reference kernel moves one by one.
#[test]
fn own_rows_within_borders() {
    let line = "PAD i16:2,2,3/1 i32:3,2!1,0,0,1,0,0 > i16:3,3,3/1";
    let moved = |from, to| Event::Move {
        input: 0,
        from,
        output: 0,
        to,
        bytes: 12,
    };
    let expected = vec![
        write(0, 18),
        moved(0, 18),
        write(30, 36),
        moved(12, 36),
        write(48, 54),
    ];
    assert_eq!(of_tensors(events(Library::Arenaplan, line)), expected);
    // Two columns of one row: nothing is read any more when the first byte is written.
    let line = "PAD i8:1,1,2/1 i32:3,2!0,2,0,0,0,0 > i8:3,1,2/1";
    let moved = Event::Move {
        input: 0,
        from: 0,
        output: 0,
        to: 0,
        bytes: 2,
    };
    assert_eq!(
        of_tensors(events(Library::Arenaplan, line)),
        vec![moved, write(2, 6)]
    );
}

fn read(start: u64, end: u64) -> Event {
    Event::Read {
        input: 0,
        start,
        end,
    }
}

fn write(start: u64, end: u64) -> Event {
    Event::Write {
        output: 0,
        start,
        end,
    }
}

/// The filter and the bias are constants, and read to the end.
fn of_tensors(events: Option<Vec<Event>>) -> Vec<Event> {
    let events = events.unwrap();
    let is_streamed = |e: &Event| !matches!(e, Event::Read { input: 1.., .. });
    events.into_iter().filter(is_streamed).collect()
}

/// Three pixels of two channels, a window of two, two output channels.
#[test]
fn a_convolution_reads_what_no_later_pixel_needs() {
    let line = "CONV_2D i8:1,1,3,2/1 i8:2,1,2,2/1! > i8:1,1,2,2/1 padding=1 stride_h=1 stride_w=1";
    let expected = [
        write(0, 1), // the first output reads everything and is read again for the second
        read(0, 2),
        write(1, 2),
        write(2, 3),
        read(2, 6),
        write(3, 4),
    ];
    assert_eq!(of_tensors(events(Library::Reference, line)), expected);
    // CMSIS-NN copies two windows before it writes.
    let expected = [read(0, 2), read(2, 6), write(0, 2), write(2, 4)];
    let dsp = Library::CmsisNn(Core::Dsp);
    assert_eq!(of_tensors(events(dsp, line)), expected);
}

#[test]
fn a_depthwise_convolution_reads_channel_by_channel() {
    let line = "DEPTHWISE_CONV_2D i8:1,1,2,2/1 i8:1,1,1,4/1! > i8:1,1,2,4/1 stride_h=1 stride_w=1 depth_multiplier=2";
    let pixel = |from: u64, to: u64| {
        [
            write(to, to + 1),
            read(from, from + 1),
            write(to + 1, to + 2),
            write(to + 2, to + 3),
            read(from + 1, from + 2),
            write(to + 3, to + 4),
        ]
    };
    let expected = [pixel(0, 0), pixel(2, 4)].concat();
    assert_eq!(of_tensors(events(Library::Reference, line)), expected);
}

/// Two pixels of two channels, three output channels: two at a time, each time over all pixels.
#[test]
fn a_pointwise_convolution_of_cmsis_nn_reads_everything_again() {
    let line = "CONV_2D i8:1,1,2,2/1 i8:3,1,1,2/1! > i8:1,1,2,3/1 stride_h=1 stride_w=1";
    let expected = [
        write(0, 2),
        write(3, 5),
        read(0, 2),
        write(2, 3),
        read(2, 4),
        write(5, 6),
    ];
    let dsp = Library::CmsisNn(Core::Dsp);
    assert_eq!(of_tensors(events(dsp, line)), expected);
    // With vectors, pixels that are fewer than four come one by one.
    let expected = [read(0, 2), write(0, 3), read(2, 4), write(3, 6)];
    let mve = Library::CmsisNn(Core::Mve);
    assert_eq!(of_tensors(events(mve, line)), expected);
    let generic = Library::EspNn(Chip::Generic);
    let expected = [
        write(0, 2),
        read(0, 2),
        write(2, 3),
        write(3, 5),
        read(2, 4),
        write(5, 6),
    ];
    assert_eq!(of_tensors(events(generic, line)), expected);
}

/// Least distances of the classes that CMSIS-NN does not run in the reference kernel's order, worked out for a few shapes.
#[test]
fn distances_of_the_classes_that_cmsis_nn_runs_otherwise() {
    let above = |library, line: &str| {
        with_operator(line, |graph, op| distances(library, graph, op)[0][0].0)
    };
    let [plain, dsp, mve] = [Core::Plain, Core::Dsp, Core::Mve].map(Library::CmsisNn);
    let conv = |n: u64, ci: i64, co: i64, stride: u64| {
        let out = n.div_ceil(stride);
        format!(
            "CONV_2D i8:1,{n},{n},{ci}/1 i8:{co},1,1,{ci}/1! > i8:1,{out},{out},{co}/1 stride_h={stride} \
             stride_w={stride}"
        )
    };
    for (ci, co) in [(8, 8), (16, 7), (4, 12), (1, 3)] {
        // 25 pixels; with channels in pairs only the last one or two of the last pixel may still be read.
        let expected = 25 * co - if co % 2 == 1 { 1 } else { 2 };
        let line = conv(5, ci, co, 1);
        for library in [plain, dsp] {
            assert_eq!(above(library, &line) as i64, expected, "{ci} {co}");
            compare(library, &line, |promised, replayed| {
                assert_eq!(promised.0, replayed.0)
            });
        }
        // Blocks of four pixels, of which the last one is alone: everything of a block is written but its last channel.
        let blocks = (0..6i64).map(|b| (4 * b + 4) * co - 1 - 4 * b * ci);
        let alone = 24 * co + (co - 1) / 4 * 4 - 24 * ci;
        let most = blocks.chain([alone]).max().unwrap();
        assert_eq!(above(mve, &line) as i64, most, "{ci} {co}");
    }
    // With a stride each output row is a product of its own: three rows of three pixels from rows 0, 2, 4 of five.
    let rows = (0..3u64).map(|y| (y + 1) * 3 * 8 - 2 - y * 2 * 5 * 2).max();
    assert_eq!(above(dsp, &conv(5, 2, 8, 2)), rows.unwrap());
    // Depthwise with vectors: 124 channels at a time. The second block reads the first pixel when all have been written.
    let wide = "DEPTHWISE_CONV_2D i8:1,4,4,130/1 i8:1,1,1,130/1! > i8:1,4,4,130/1 stride_h=1 stride_w=1 depth_multiplier=1";
    assert_eq!(above(dsp, wide), 0);
    assert_eq!(above(mve, wide), 15 * 130);
}

/// Options and shapes of hostile files end in no time, and without a panic.
#[test]
fn hostile_shapes() {
    let start = std::time::Instant::now();
    for line in [
        "CONV_2D i8:1,40000,40000,1/1 i8:1,1,1,1/1! > i8:1,40000,40000,1/1 stride_h=1 stride_w=1",
        "CONV_2D i8:1,1,1,1/1 i8:1,1,1,1/1! > i8:1,9,9,1/1 stride_h=0 stride_w=-1",
        "CONV_2D i8:1,5,5,3/1 i8:1,1,1,2/1! > i8:1,5,5,1/1 stride_h=1 stride_w=1",
        "CONV_2D i8:1,5,5,3/1 i8:1,3,3,3/1! > i8:1,5,5,1/1 dilation_h_factor=2147483647 stride_h=2147483647 stride_w=1",
        "DEPTHWISE_CONV_2D i8:1,5,5,3/1 i8:1,3,3,3/1! > i8:1,5,5,3/1 stride_h=1 stride_w=1 depth_multiplier=-1",
        "AVERAGE_POOL_2D i8:1,9,9,1/1 > i8:1,9,9,1/1 filter_height=2147483647 filter_width=-5 stride_h=1 stride_w=1",
        "SLICE i8:4,4/1 i32:2!-1,9 i32:2!-9,2147483647 > i8:4,4/1",
        "STRIDED_SLICE i8:4,4/1 i32:2!-99,9 i32:2!-9,2147483647 i32:2!0,-2147483648 > i8:4,4/1 begin_mask=-1",
        "PAD i8:4,4/1 i32:2,2!-1,2147483647,0,0 > i8:4,4/1",
        "GATHER i8:4,4/1 i32:2!-1,2147483647 > i8:2,4/1 axis=-9 batch_dims=-9",
        "TRANSPOSE i8:4,4/1 i32:2!7,-1 > i8:4,4/1",
        "MIRROR_PAD i8:4,4/1 i32:2,2!99,-5,2147483647,0 > i8:4,4/1 mode=1",
        "SPACE_TO_BATCH_ND i8:1,4,4,1/1 i32:2!0,-1 i32:2,2!0 > i8:4,2,2,1/1",
        "RESIZE_BILINEAR i8:1,4,4,1/1 i32:2!9,9 > i8:1,4,9999999,1/1 half_pixel_centers=true",
        "BATCH_MATMUL i8:2,3/1 i8:9,9/1 > i8:5,5/1 adj_x=true",
        "TRANSPOSE_CONV i32:4! i8:1,9,9,1/1! i8:1,2,2,1/1 > i8:1,2,2,1/1 padding=1 stride_h=1 stride_w=0",
        "CONCATENATION i8:4,4/1 i8:4,5/1 > i8:4,4/1 axis=-77",
        "SPLIT i32:!-5 i8:4,4/1 > i8:4,4/1 num_splits=9",
        "ADD i8:4,4/1 i8:3,5/1 > i8:4,4/1",
    ] {
        with_operator(line, |graph, op| {
            let others = [Library::CmsisNn(Core::Mve), Library::EspNn(Chip::S3)];
            for library in others.into_iter().chain([Library::Reference]) {
                let known = replay(library, graph, op, &mut |_| {});
                // The reference TRANSPOSE_CONV reads everything before it looks at its options.
                let is_lax = library != Library::Reference || line.starts_with("TRANSPOSE_CONV");
                assert!(!known || is_lax, "{line}");
                copies(library, graph, op, &mut { MAX_STEPS });
            }
        });
    }
    assert!(start.elapsed().as_secs() < 60);
}
