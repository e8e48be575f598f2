//! What the kernels of CMSIS-NN and ESP-NN promise, against models of the order in which they read and write: every
//! distance is enough for the model's order, and where it is said to be exact, none is larger than that needs.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "common/orders.rs"]
mod orders;
#[path = "common/random.rs"]
mod random;
#[path = "common/single.rs"]
mod single;

use arenaplan::contract::{Overlap, overlap};
use arenaplan::graph::Graph;
use arenaplan::model::Model;
use arenaplan::target::{Chip, Core, Library};
use orders::{Events, Product, Row, Window, row, window};
use random::Random;
use single::{Single, build};

/// What `library` promises of an input and the output of an operator (see `common/single.rs` for its line), and the bytes
/// of the two.
fn promise(library: Library, line: &str, input: usize) -> (Overlap, [u64; 2]) {
    let bytes = build(&Single::parse(line));
    let graph = Graph::read(Model::parse(&bytes).unwrap()).unwrap();
    let op = graph.operators().next().unwrap();
    let from = graph.tensor(op.inputs[input].unwrap()).bytes;
    let to = graph.tensor(op.outputs[0]).bytes;
    (overlap(library, &graph, op, input, 0), [from, to])
}

fn nothing(library: Library, line: &str, input: usize) {
    let (found, [from, to]) = promise(library, line, input);
    assert_eq!(found, Overlap::none(from, to), "{library}: {line}");
}

/// The least distance of an input above the output: the output's bytes where nothing is promised.
fn distance(library: Library, line: &str, input: usize) -> u64 {
    let (found, [from, to]) = promise(library, line, input);
    assert!(found.input_above_output <= to, "{library}: {line}");
    assert!(found.output_above_input <= from, "{library}: {line}");
    found.input_above_output
}

const PLAIN: Library = Library::CmsisNn(Core::Plain);
const DSP: Library = Library::CmsisNn(Core::Dsp);
const MVE: Library = Library::CmsisNn(Core::Mve);
const CORES: [Library; 3] = [PLAIN, DSP, MVE];

/// A distance is enough for `events`; equal where it is `exact`.
#[track_caller]
fn check(library: Library, line: &str, events: &Events, exact: bool) {
    let (found, [_, to]) = promise(library, line, 0);
    let needed = events.distance().min(to);
    let found = found.input_above_output;
    match exact {
        true => assert_eq!(found, needed, "{library}: {line}"),
        false => assert!(found >= needed, "{library}: {found} < {needed}: {line}"),
    }
}

#[test]
fn pointwise_convolutions() {
    let mut random = Random(1);
    let mut overlaps = 0;
    for round in 0..400 {
        let strided = round % 2 == 1;
        let w = Window {
            kh: 1,
            kw: 1,
            stride: if strided {
                [2, random.within(1..=2) as i64]
            } else {
                [1, 1]
            },
            ..window(&mut random)
        };
        let line = w.conv("i8").unwrap();
        let ([oh, ow], _) = w.output().unwrap();
        for library in CORES {
            let mut events = Events::default();
            let products = match strided {
                false => vec![(0, 0, w.n * oh * ow)],
                true => (0..w.n * oh)
                    .map(|y| {
                        (
                            ((y / oh) * w.h + y % oh * w.stride[0]) * w.w * w.ci,
                            y * ow * w.co,
                            ow,
                        )
                    })
                    .collect(),
            };
            for (read, write, pixels) in products {
                let step = w.stride[1] * w.ci;
                let (length, co) = (w.ci, w.co);
                Product {
                    read,
                    step,
                    length,
                    write,
                    pixels,
                    co,
                }
                .on(library, &mut events);
            }
            check(library, &line, &events, library != MVE && !strided);
            let (found, [_, to]) = promise(library, &line, 0);
            overlaps += u32::from(found.input_above_output < to);
            // Weights of 4 bits: four channels outermost, or as with 8 bits.
            let packed = w.conv("i4").unwrap();
            match library {
                MVE => check(library, &packed, &events, false),
                _ if !strided => nothing(library, &packed, 0),
                _ => check(library, &packed, &events, false),
            }
        }
    }
    assert!(overlaps > 400, "{overlaps}");
}

#[test]
fn pointwise_distances_by_hand() {
    let conv = |input: &str, co: u32, output: &str, options: &str| {
        let ci = input.rsplit_once(',').unwrap().1;
        format!("CONV_2D i8:{input}/1 i8:{co},1,1,{ci}/1! > i8:{output},{co}/1 {options}")
    };
    let one = "padding=0 stride_h=1 stride_w=1";
    // 9 pixels. 72 outputs: all but two are written before the first pixel is read the last time; 27, all but one.
    let line = conv("1,3,3,8", 8, "1,3,3", one);
    assert_eq!([PLAIN, DSP].map(|l| distance(l, &line, 0)), [70, 70]);
    let line = conv("1,3,3,8", 3, "1,3,3", one);
    assert_eq!(distance(DSP, &line, 0), 26);
    // Two channels of outputs and one of inputs: after 8 pixels.
    let line = conv("1,3,3,1", 2, "1,3,3", one);
    assert_eq!(distance(DSP, &line, 0), 8);
    assert_eq!(distance(DSP, &conv("1,3,3,4", 2, "1,3,3", one), 0), 0);
    // Blocks of four: 4 * 8 - 0, 8 * 8 - 4 * 8, 9 * 8 - 8 * 8. From 4 to 8 channels: 32, 48, 40. To 2 from 8: 8.
    assert_eq!(distance(MVE, &conv("1,3,3,8", 8, "1,3,3", one), 0), 32);
    assert_eq!(distance(MVE, &conv("1,3,3,4", 8, "1,3,3", one), 0), 48);
    assert_eq!(distance(MVE, &conv("1,3,3,8", 2, "1,3,3", one), 0), 8);
    // Two rows of outputs, strides of 2, of 4 x 4 pixels: 2 * 8 - 0, 4 * 8 - 2 * 4 * 2.
    let line = conv("1,4,4,2", 8, "1,2,2", "padding=0 stride_h=2 stride_w=2");
    assert_eq!(CORES.map(|l| distance(l, &line, 0)), [16; 3]);
    // FULLY_CONNECTED of three dimensions, 3 rows of 4: the same, as the reference kernel in two dimensions.
    let line = "FULLY_CONNECTED i8:1,3,4/1 i8:8,4/1! > i8:1,3,8/1";
    assert_eq!(CORES.map(|l| distance(l, line, 0)), [22, 22, 24]);
    let line = "FULLY_CONNECTED i8:3,4/1 i8:8,4/1! > i8:3,8/1";
    assert_eq!(CORES.map(|l| distance(l, line, 0)), [15; 3]);
    let line = "FULLY_CONNECTED i8:1,3,5/1 i8:8,5/1! > i8:1,3,8/1";
    assert_eq!(CORES.map(|l| distance(l, line, 0)), [13; 3]);
}

#[test]
fn general_convolutions_stay_within_the_reference_distance() {
    let mut random = Random(2);
    for round in 0..600 {
        let mut w = window(&mut random);
        if round % 5 == 0 {
            w.dilation = [2, 1];
        }
        // Pointwise ones and rows have their own tests.
        if w.kh * w.kw == 1 || w.kh == 1 && w.h == 1 {
            continue;
        }
        let Some(line) = w.conv("i8") else { continue };
        for (library, block) in [(PLAIN, 2), (DSP, 2), (MVE, 4)] {
            let events = w.im2col(block);
            check(library, &line, &events, false);
            check(library, &w.conv("i4").unwrap(), &events, false);
            let reference = distance(Library::Reference, &line, 0);
            assert_eq!(distance(library, &line, 0), reference, "{line}");
        }
    }
}

#[test]
fn row_convolutions() {
    let mut random = Random(3);
    let [mut direct, mut general, mut wrong] = [0; 3];
    for _ in 0..1500 {
        let w = Window {
            h: 1,
            w: random.within(1..=24) as i64,
            kh: 1,
            kw: random.within(2..=7) as i64,
            stride: [1, random.within(1..=3) as i64],
            ..window(&mut random)
        };
        let Some(line) = w.conv("i8") else { continue };
        check(DSP, &line, &w.im2col(2), false);
        if w.stride[1] * w.ci % 4 != 0 {
            check(MVE, &line, &w.im2col(4), false);
            continue;
        }
        match row(&w) {
            Row::Direct(events) => {
                check(MVE, &line, &events, false);
                nothing(MVE, &w.conv("i4").unwrap(), 0);
                direct += 1;
            }
            Row::General => {
                check(MVE, &line, &w.im2col(4), false);
                general += 1;
            }
            Row::Wrong => {
                nothing(MVE, &line, 0);
                wrong += 1;
            }
        }
    }
    assert!(
        direct > 100 && general > 10 && wrong > 50,
        "{direct} {general} {wrong}"
    );
}

#[test]
fn row_convolutions_by_hand() {
    let line = |input: &str, filter: &str, output: &str, options: &str| {
        format!("CONV_2D i8:{input}/1 i8:{filter}/1! > i8:{output}/1 stride_h=1 {options}")
    };
    // 16 columns of 4, a window of 4, 1 column of padding before, 2 after: 1 output in the padding before, 2 after.
    // Left 8 - 0; middle in blocks of four: (1 + 4) * 8 - 0, ..., (1 + 12) * 8 - 8 * 4, (1 + 13) * 8 - 12 * 4;
    // right (1 + 13) * 8 - 13 * 4.
    let same = line("1,1,16,4", "8,1,4,4", "1,1,16,8", "padding=0 stride_w=1");
    assert_eq!(distance(MVE, &same, 0), 13 * 8 - 8 * 4);
    // The window reaches 2 columns over the end in the first output on the right, which reads past the input.
    let past = line("1,1,15,4", "8,1,4,4", "1,1,8,8", "padding=0 stride_w=2");
    nothing(MVE, &past, 0);
    // A column is not used: some outputs are wrong. Three are not: nothing is written.
    for columns in [14, 16] {
        let input = format!("1,1,{columns},4");
        let out = format!("1,1,{},8", (columns - 3) / 4 + 1);
        nothing(
            MVE,
            &line(&input, "8,1,3,4", &out, "padding=1 stride_w=4"),
            0,
        );
    }
}

#[test]
fn depthwise_convolutions_stay_within_the_reference_distance() {
    let mut random = Random(4);
    for _ in 0..600 {
        let mut w = window(&mut random);
        let multiplier = random.pick(&[1, 1, 1, 2, 4]);
        w.co = w.ci * multiplier;
        let Some(line) = w.depthwise() else { continue };
        for (library, pixels) in [(PLAIN, 1), (DSP, 1), (MVE, 4)] {
            if w.ci == 1 && w.co > 1 && library == MVE {
                continue;
            }
            // One or four channels at a time, or all of a pixel or of four.
            check(library, &line, &w.channels(1), false);
            check(library, &line, &w.channels(4), false);
            if multiplier == 1 && w.n == 1 {
                check(library, &line, &w.im2col(pixels), false);
            }
        }
    }
    // A single input channel becomes a convolution: 64 pixels, 4 outputs each, so after the first 4 * 15 pixels.
    let one = "padding=0 stride_h=1 stride_w=1 depth_multiplier=4";
    let line = format!("DEPTHWISE_CONV_2D i8:1,8,8,1/1 i8:1,1,1,4/1! > i8:1,8,8,4/1 {one}");
    assert_eq!(distance(MVE, &line, 0), 64 * 4 - 60);
    // More channels than a block has: the image is read again.
    let once = "padding=0 stride_h=1 stride_w=1 depth_multiplier=1";
    for (channels, overlaps) in [(124, true), (125, false)] {
        let shape = format!("1,8,8,{channels}");
        let line =
            format!("DEPTHWISE_CONV_2D i8:{shape}/1 i8:1,3,3,{channels}/1! > i8:{shape}/1 {once}");
        // A row of windows and a pixel.
        assert_eq!(distance(DSP, &line, 0), 9 * channels);
        match overlaps {
            true => assert_eq!(distance(MVE, &line, 0), 9 * channels),
            false => nothing(MVE, &line, 0),
        }
    }
}

#[test]
fn pooling_stays_within_the_reference_distance() {
    let mut random = Random(5);
    for _ in 0..600 {
        let mut w = window(&mut random);
        w.co = w.ci;
        let Some(([oh, ow], _)) = w.output() else {
            continue;
        };
        let Window {
            n,
            h,
            ci,
            kh,
            kw,
            stride,
            ..
        } = w;
        let options = format!(
            "padding={} filter_height={kh} filter_width={kw} stride_h={} stride_w={}",
            u8::from(!w.same),
            stride[0],
            stride[1]
        );
        let tensors = format!("i8:{n},{h},{},{ci}/1 > i8:{n},{oh},{ow},{ci}/1", w.w);
        for library in CORES {
            let line = format!("AVERAGE_POOL_2D {tensors} {options}");
            check(library, &line, &w.channels(16), false);
            check(library, &line, &w.channels(1), false);
            let line = format!("MAX_POOL_2D {tensors} {options}");
            check(library, &line, &w.maximum(), false);
            let (found, [from, _]) = promise(library, &line, 0);
            assert_eq!(found.output_above_input, from);
        }
    }
}

#[test]
fn transposed_convolutions() {
    let mut random = Random(6);
    let (mut reversed, mut rows, mut overlaps) = (0, 0, 0);
    for _ in 0..600 {
        let mut size = |most: u64| random.within(1..=most) as i64;
        let (n, h, wide, co) = (size(2), size(6), size(6), size(8));
        let (kh, kw, sh, sw) = (size(4), size(4), size(3), size(3));
        let ci = if size(2) == 1 { 16 + size(8) } else { size(16) };
        let same = size(2) == 1;
        let out = |size: i64, kernel: i64, stride: i64| match same {
            true => size * stride,
            false => (size - 1) * stride + kernel.max(stride),
        };
        let pad = |out: i64, kernel: i64, stride: i64| {
            let steps = if same {
                (out + stride - 1) / stride
            } else {
                (out - kernel) / stride + 1
            };
            ((steps - 1) * stride + kernel - out).max(0) / 2
        };
        let (oh, ow) = (out(h, kh, sh), out(wide, kw, sw));
        let (top, left) = (pad(oh, kh, sh), pad(ow, kw, sw));
        let line = format!(
            "TRANSPOSE_CONV i32:4! i8:{co},{kh},{kw},{ci}/1! i8:{n},{h},{wide},{ci}/1 > i8:{n},{oh},{ow},{co}/1 \
             padding={} stride_h={sh} stride_w={sw}",
            u8::from(!same)
        );
        for (library, block) in [(PLAIN, 2), (DSP, 2), (MVE, 4)] {
            let (found, [_, to]) = promise(library, &line, 2);
            assert_eq!(
                (found.view_at, found.output_above_input),
                (None, (n * h * wide * ci) as u64)
            );
            let found = found.input_above_output;
            let mut events = Events::default();
            if sh <= 2 && sw <= 2 && ci > 16 {
                for batch in 0..n {
                    let pixels: Vec<i64> = (0..oh * ow).collect();
                    for block in pixels.chunks(block) {
                        for pixel in block {
                            let (y, x) = (pixel / ow, pixel % ow);
                            let spread = |at: i64, stride: i64, size: i64| {
                                (at % stride == 0 && (0..size).contains(&(at / stride)))
                                    .then_some(at / stride)
                            };
                            for (ky, kx) in (0..kh).flat_map(|a| (0..kw).map(move |b| (a, b))) {
                                let row = spread(y - (kh - 1 - top) + ky, sh, h);
                                let column = spread(x - (kw - 1 - left) + kx, sw, wide);
                                if let (Some(row), Some(column)) = (row, column) {
                                    events.read(((batch * h + row) * wide + column) * ci, ci);
                                }
                            }
                        }
                        for pixel in block {
                            events.write((batch * oh * ow + pixel) * co, co);
                        }
                    }
                }
                assert_eq!(found, events.distance().min(to), "{library}: {line}");
                reversed += 1;
            } else if top % sh != 0 {
                assert_eq!(found, to, "{library}: {line}");
            } else {
                for batch in 0..n {
                    let mut written = batch * oh;
                    for j in 0..h {
                        events.read((batch * h + j) * wide * ci, wide * ci);
                        let ready = batch * oh + ((j + 1) * sh - top).max(0);
                        events.write(written * ow * co, (ready - written) * ow * co);
                        written = ready;
                    }
                    events.write(written * ow * co, ((batch + 1) * oh - written) * ow * co);
                }
                assert_eq!(found, events.distance().min(to), "{library}: {line}");
                rows += 1;
            }
            overlaps += u32::from(found < to);
        }
    }
    assert!(
        reversed > 100 && rows > 300 && overlaps > 200,
        "{reversed} {rows} {overlaps}"
    );
    // 16 bits: sums in scratch, whatever the library.
    let line = "TRANSPOSE_CONV i32:4! i8:2,3,3,4/1! i16:1,4,4,4/1 > i16:1,8,8,2/1 padding=0 stride_h=2 stride_w=2";
    let anything = Overlap {
        input_above_output: 0,
        output_above_input: 0,
        view_at: None,
    };
    for library in CORES {
        assert_eq!(promise(library, line, 2).0, anything);
    }
}

#[test]
fn rows_of_matrices() {
    let mut random = Random(8);
    for _ in 0..300 {
        let mut size = |most: u64| random.within(1..=most) as i64;
        let (rows, from, to) = (size(6), size(12), size(12));
        for (library, block) in [(PLAIN, 3), (DSP, 2), (MVE, 4)] {
            let mut events = Events::default();
            for row in 0..rows {
                let outputs: Vec<i64> = (0..to).collect();
                for block in outputs.chunks(block) {
                    events.read(row * from, from);
                    events.write(row * to + block[0], block.len() as i64);
                }
            }
            let line =
                format!("FULLY_CONNECTED i8:{rows},{from}/1 i8:{to},{from}/1! > i8:{rows},{to}/1");
            check(library, &line, &events, false);
            let line =
                format!("BATCH_MATMUL i8:{rows},{from}/1 i8:{from},{to}/1 > i8:{rows},{to}/1");
            check(library, &line, &events, false);
            // Element by element it is exact.
            let product = (rows - 1) * (to - from).max(0) + to - 1;
            assert_eq!(distance(library, &line, 0), product as u64, "{line}");
        }
    }
    let line = |options: &str, left: &str, right: &str| {
        format!("BATCH_MATMUL i8:{left}/1 i8:{right}/1 > i8:2,3,5/1 {options}")
    };
    for library in CORES {
        // The right side is transposed first, or read again for each row; the left one likewise.
        let plain = line("adj_x=false", "2,3,4", "2,4,5");
        assert_eq!(promise(library, &plain, 1).0.input_above_output, 0);
        assert_eq!(promise(library, &plain, 1).0.output_above_input, 0);
        nothing(library, &line("adj_y=true", "2,3,4", "2,5,4"), 1);
        assert_eq!(
            distance(library, &line("adj_x=true", "2,4,3", "2,4,5"), 0),
            0
        );
        // One left side for two right ones.
        nothing(library, &line("adj_x=false", "1,3,4", "2,4,5"), 0);
    }
}

#[test]
fn classes_without_overlap() {
    let one = "padding=0 stride_h=1 stride_w=1";
    let grouped = |ty: &str| format!("CONV_2D {ty}:1,4,4,8/1 i8:8,3,3,4/1! > {ty}:1,4,4,8/1 {one}");
    for library in CORES {
        nothing(library, &grouped("i8"), 0);
        nothing(library, &grouped("i16"), 0);
        // Weights are read for each pixel.
        nothing(
            library,
            &format!("CONV_2D i8:1,4,4,8/1 i8:8,3,3,8/1 > i8:1,4,4,8/1 {one}"),
            1,
        );
        nothing(library, "TRANSPOSE i8:4,6/1 i32:2!1,0 > i8:6,4/1", 0);
        nothing(
            library,
            "MEAN i8:1,4,4,8/1 i32:2!1,2 > i8:1,1,1,8/1 keep_dims=true",
            0,
        );
        nothing(
            library,
            "MEAN f32:1,4,4,8 i32:2!1,2 > f32:1,1,1,8 keep_dims=true",
            0,
        );
        nothing(
            library,
            "PAD i8:1,1,2,2,2/1 i32:5,2!0,0,0,0,1,1,1,1,0,0 > i8:1,1,4,4,2/1",
            0,
        );
        // The operand of the output's shape, and the one that is spread over it.
        let line = "MAXIMUM i8:1,4,4,8/1 i8:8/1 > i8:1,4,4,8/1";
        assert_eq!(distance(library, line, 0), 0);
        nothing(library, line, 1);
    }
}

#[test]
fn padding_is_as_in_the_reference_kernel_with_a_row_to_spare() {
    // Rows of 6 bytes: the last one of four goes from 18 to (1 * 4 + 3) * 10 + ... : one row of padding above, one
    // column of 2 bytes on each side. (1 + 3) * 10 + 2 - 18.
    let line = "PAD i8:1,4,3,2/1 i32:4,2!0,0,1,1,1,1,0,0 > i8:1,6,5,2/1";
    assert_eq!(distance(Library::Reference, line, 0), 24);
    // A row is one `memcpy`, and a pixel where channels are added: one of 2 bytes, of which the last goes from 22 to 33.
    let wider = "PAD i8:1,4,3,2/1 i32:4,2!0,0,0,0,0,0,1,0 > i8:1,4,3,3/1";
    assert_eq!(distance(Library::Reference, wider, 0), 34 - 22);
    for library in CORES {
        assert_eq!(distance(library, line, 0), 24 + 6);
        assert_eq!(distance(library, wider, 0), 34 - 22 + 2);
    }
}

#[test]
fn elementwise_operators_forwards() {
    let lstm = |ty: &str, x: u32, h: u32, options: &str| {
        let absent = "- ".repeat(17);
        format!(
            "UNIDIRECTIONAL_SEQUENCE_LSTM {ty}:2,5,{x}/1 {absent}{ty}:2,{h}/1~ i16:2,{h}/1~ > {ty}:2,5,{h}/1 {options}"
        )
    };
    for library in CORES {
        for line in [
            "ADD i8:1,4,4,8/1 i8:1,4,4,8/1 > i8:1,4,4,8/1",
            "MUL i16:1,4,4,8/1 i16:1,4,4,8/1 > i16:1,4,4,8/1",
            "MINIMUM i8:1,4,4,8/1 i8:1,4,4,8/1 > i8:1,4,4,8/1",
            "SOFTMAX i8:2,10/1 > i8:2,10/1 beta=1",
            "LOGISTIC i8:2,10/1 > i8:2,10/1",
        ] {
            let (found, [from, _]) = promise(library, line, 0);
            assert_eq!(
                (found.input_above_output, found.view_at),
                (0, None),
                "{line}"
            );
            // An element above, where the next one is still to be read.
            assert!(found.output_above_input + 1 >= from, "{line}");
        }
        // 20 elements become 40 bytes: the last but one ends where the last one starts.
        assert_eq!(
            distance(library, "SOFTMAX i8:2,10/1 > i16:2,10/1 beta=1", 0),
            19
        );
        // Ten steps, each from 3 bytes to 5; five steps, each from 6 to 10. 16 bits were not looked into.
        assert_eq!(
            distance(library, &lstm("i8", 3, 5, "time_major=false"), 0),
            9 * 2
        );
        assert_eq!(
            distance(library, &lstm("i8", 5, 3, "time_major=false"), 0),
            0
        );
        nothing(library, &lstm("i16", 3, 5, "time_major=false"), 0);
        // A view is a copy of TFLM's own.
        let line = "RESHAPE i8:1,4,4,8/1 i32:2!1,128 > i8:1,128/1";
        assert_eq!(promise(library, line, 0).0.view_at, Some(0));
    }
}

#[test]
fn esp_nn() {
    const S3: Library = Library::EspNn(Chip::S3);
    let chips = [Library::EspNn(Chip::Generic), S3, Library::EspNn(Chip::P4)];
    let mut random = Random(9);
    for _ in 0..400 {
        let w = Window {
            kh: 1,
            kw: 1,
            stride: [1, 1],
            ..window(&mut random)
        };
        let line = w.conv("i8").unwrap();
        let reference = distance(Library::Reference, &line, 0);
        // A block of eight pixels, with the channels that do not fill eight read again for each output.
        let mut events = Events::default();
        let pixels = w.h * w.w;
        for batch in 0..w.n {
            let (read, write) = (batch * pixels * w.ci, batch * pixels * w.co);
            let (step, length, co) = (w.ci, w.ci, w.co);
            Product {
                read,
                step,
                length,
                write,
                pixels,
                co,
            }
            .blocks(&mut events, 8, 1);
        }
        for chip in chips {
            match chip == S3 && w.ci % 8 != 0 {
                true => check(chip, &line, &events, false),
                false => assert_eq!(distance(chip, &line, 0), reference, "{line}"),
            }
            // 4 bits, dilations and 16 bits are the reference kernels'.
            for other in [w.conv("i4").unwrap(), line.replace("i8:", "i16:")] {
                let known = promise(Library::Reference, &other, 0);
                assert_eq!(promise(chip, &other, 0), known, "{other}");
            }
        }
    }
    let one = "padding=0 stride_h=1 stride_w=1";
    // 9 pixels of 4 channels to 8: 8 * 8 - 0, 9 * 8 - 8 * 4.
    let line = format!("CONV_2D i8:1,3,3,4/1 i8:8,1,1,4/1! > i8:1,3,3,8/1 {one}");
    assert_eq!(distance(S3, &line, 0), 64);
    for chip in chips {
        nothing(
            chip,
            &format!("CONV_2D i8:1,4,4,8/1 i8:8,3,3,4/1! > i8:1,4,4,8/1 {one}"),
            0,
        );
        assert_eq!(distance(chip, "SOFTMAX i8:2,10/1 > i8:2,10/1 beta=1", 0), 0);
        nothing(chip, "SOFTMAX i8:1,1,2,10/1 > i8:1,1,2,10/1 beta=1", 0);
        let line = format!(
            "DEPTHWISE_CONV_2D i8:1,8,8,16/1 i8:1,3,3,16/1! > i8:1,8,8,16/1 {one} depth_multiplier=1"
        );
        assert_eq!(distance(chip, &line, 0), 9 * 16);
        let (found, [from, _]) = promise(chip, &line, 0);
        assert_eq!(found.output_above_input, from);
        // The reference kernel, exactly.
        let line = "TRANSPOSE_CONV i32:4! i8:2,3,3,4/1! i8:1,4,4,4/1 > i8:1,8,8,2/1 padding=0 stride_h=2 stride_w=2";
        assert_eq!(promise(chip, line, 2), promise(Library::Reference, line, 2));
    }
}

#[test]
fn tensors_that_do_not_belong_together() {
    let mut random = Random(10);
    for _ in 0..120 {
        let sizes = ["1", "1", "2", "3", "4", "16", "17", "100"];
        let huge = ["1", "2", "3", "65536", "2147483647"];
        let (mut shape, mut size) = {
            let mut random = Random(random.within(0..=u64::MAX - 1));
            let mut other = Random(random.within(0..=u64::MAX - 1));
            (
                move || [0; 4].map(|_| random.pick(&sizes)).join(","),
                move || other.pick(&huge),
            )
        };
        let [input, filter, output] = [shape(), shape(), shape()];
        let padding = random.within(0..=1);
        let steps = format!("padding={padding} stride_h={} stride_w={}", size(), size());
        let dilated = format!(
            "{steps} dilation_h_factor={} dilation_w_factor={}",
            size(),
            size()
        );
        let weights = random.pick(&["i8", "i4"]);
        let lines = [
            (
                0,
                format!("CONV_2D i8:{input} {weights}:{filter}! > i8:{output} {dilated}"),
            ),
            (
                0,
                format!(
                    "DEPTHWISE_CONV_2D i8:{input} {weights}:{filter}! > i8:{output} {dilated} depth_multiplier={}",
                    size()
                ),
            ),
            (
                2,
                format!("TRANSPOSE_CONV i32:4! i8:{filter}! i8:{input} > i8:{output} {steps}"),
            ),
            (
                0,
                format!("FULLY_CONNECTED i8:{input} i8:{filter}! > i8:{output}"),
            ),
            (
                0,
                format!("BATCH_MATMUL i8:{input} i8:{filter} > i8:{output}"),
            ),
            (0, format!("MAXIMUM i8:{input} i8:{filter} > i8:{output}")),
            (0, format!("PAD i8:{input} i32:4,2!1 > i8:{output}")),
            (0, format!("SOFTMAX i8:{input} > i8:{output} beta=1")),
        ];
        for library in Library::ALL {
            for (input, line) in &lines {
                distance(library, line, *input);
            }
        }
    }
}
