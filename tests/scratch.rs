//! Scratch memory by kernel library: values worked out by hand from the size functions of CMSIS-NN and ESP-NN, and arenas
//! that TFLM with CMSIS-NN really used.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;
#[path = "common/random.rs"]
mod random;
#[path = "common/single.rs"]
mod single;

use arenaplan::graph::Graph;
use arenaplan::lifetimes::Lifetimes;
use arenaplan::model::Model;
use arenaplan::scratch::Scratch;
use arenaplan::target::{Chip, Core, Library};
use arenaplan::tflm::room::arena_bytes;
use arenaplan::tflm::simulate;
use arenaplan::tflm::tail::{Width, tail_bytes, tail_bytes_with};
use random::Random;
use single::{Single, build};

/// Runs `check` on the graph of an operator (see `common/single.rs` for its line).
fn with_graph<T>(line: &str, check: impl FnOnce(&Graph<'_>) -> T) -> T {
    let bytes = build(&Single::parse(line));
    check(&Graph::read(Model::parse(&bytes).unwrap()).unwrap())
}

fn requests(library: Library, line: &str) -> Vec<u64> {
    with_graph(line, |graph| {
        let scratch = Scratch::of(library, graph);
        assert_eq!(scratch.library(), library);
        scratch.requests().iter().map(|r| r.bytes).collect()
    })
}

/// What the three cores ask for: plain, DSP, MVE.
#[track_caller]
fn on_cores(line: &str, expected: [&[u64]; 3]) {
    for (core, expected) in [Core::Plain, Core::Dsp, Core::Mve]
        .into_iter()
        .zip(expected)
    {
        let found = requests(Library::CmsisNn(core), line);
        assert_eq!(found, expected, "{core:?}: {line}");
    }
}

/// What the three chips ask for: generic, S3, P4.
#[track_caller]
fn on_chips(line: &str, expected: [&[u64]; 3]) {
    for (chip, expected) in [Chip::Generic, Chip::S3, Chip::P4]
        .into_iter()
        .zip(expected)
    {
        let found = requests(Library::EspNn(chip), line);
        assert_eq!(found, expected, "{chip:?}: {line}");
    }
}

/// Padding SAME, or VALID, and strides of 1.
const SAME: &str = "padding=0 stride_h=1 stride_w=1";
const VALID: &str = "padding=1 stride_h=1 stride_w=1";

#[test]
fn cmsis_nn_conv_2d() {
    let check = |types: [&str; 2], shapes: [&str; 3], options: &str, expected: [&[u64]; 3]| {
        let ([ty, weights], [input, filter, output]) = (types, shapes);
        let line =
            format!("CONV_2D {ty}:{input}/1 {weights}:{filter}/1! > {ty}:{output}/1 {options}");
        on_cores(&line, expected);
    };
    let (int8, int4, int16) = (["i8", "i8"], ["i8", "i4"], ["i16", "i8"]);
    // 3*3*8 = 72 bytes, which is 2 windows of 16 bits, or 4 of 5 vectors.
    let shapes = ["1,8,8,8", "4,3,3,8", "1,8,8,4"];
    check(int8, shapes, SAME, [&[288], &[288], &[320]]);
    check(int4, shapes, SAME, [&[288], &[288], &[320]]);
    check(int16, shapes, SAME, [&[288], &[288], &[576]]);
    check(["f32", "f32"], shapes, SAME, [&[]; 3]);
    // 75 bytes, rounded up.
    let shapes = ["1,9,9,3", "2,5,5,3", "1,5,5,2"];
    check(int8, shapes, VALID, [&[304], &[304], &[320]]);
    check(int16, shapes, VALID, [&[300], &[300], &[640]]);
    // Pointwise, with and without strides; not if 16 bits, dilated or grouped.
    let shapes = ["1,8,8,8", "4,1,1,8", "1,8,8,4"];
    check(int8, shapes, SAME, [&[]; 3]);
    check(int16, shapes, SAME, [&[32], &[32], &[64]]);
    let dilated = format!("{VALID} dilation_w_factor=2");
    check(int8, shapes, &dilated, [&[32], &[32], &[64]]);
    let shapes = ["1,8,8,8", "4,1,1,8", "1,4,4,4"];
    check(int8, shapes, "padding=0 stride_h=2 stride_w=2", [&[]; 3]);
    let shapes = ["1,8,8,8", "4,1,1,4", "1,8,8,4"];
    check(int8, shapes, SAME, [&[32], &[32], &[64]]);
    // A row of 16 with a window of 4: 1 column of padding before, 2 after. (4 + 1) columns of 4 bytes.
    let shapes = ["1,1,16,4", "8,1,4,4", "1,1,16,8"];
    check(int8, shapes, SAME, [&[64], &[64], &[20]]);
    // A window of 6, 2 before and 3 after: (6 - 1 + 3) columns of 4 bytes.
    let shapes = ["1,1,16,4", "8,1,6,4", "1,1,16,8"];
    check(int8, shapes, SAME, [&[96], &[96], &[32]]);
    // Without padding: 4 columns.
    let shapes = ["1,1,16,4", "8,1,4,4", "1,1,13,8"];
    check(int8, shapes, VALID, [&[64], &[64], &[16]]);
    // A step that is no multiple of four bytes, and a row with more padding than outputs: the general way.
    let shapes = ["1,1,16,3", "8,1,4,3", "1,1,16,8"];
    check(int8, shapes, SAME, [&[48], &[48], &[64]]);
    let shapes = ["1,1,2,4", "8,1,5,4", "1,1,2,8"];
    check(int8, shapes, SAME, [&[80], &[80], &[128]]);
}

#[test]
fn cmsis_nn_depthwise_conv_2d() {
    let check = |types: [&str; 2], shapes: [&str; 3], options: &str, expected: [&[u64]; 3]| {
        let ([ty, weights], [input, filter, output]) = (types, shapes);
        on_cores(
            &format!(
                "DEPTHWISE_CONV_2D {ty}:{input}/1 {weights}:{filter}/1! > {ty}:{output}/1 {SAME} {options}"
            ),
            expected,
        );
    };
    let (int8, int4, once) = (["i8", "i8"], ["i8", "i4"], "depth_multiplier=1");
    let shapes = ["1,8,8,8", "1,3,3,8", "1,8,8,8"];
    check(int8, shapes, once, [&[], &[], &[4464]]);
    check(int4, shapes, once, [&[144], &[144], &[4464]]);
    check(["i16", "i8"], shapes, once, [&[]; 3]);
    check(
        int8,
        shapes,
        "depth_multiplier=1 dilation_h_factor=2",
        [&[]; 3],
    );
    let shapes = ["1,8,8,8", "1,5,5,8", "1,8,8,8"];
    check(int8, shapes, once, [&[], &[400], &[12_400]]);
    // Two batches, and two outputs for each channel.
    check(int8, ["2,8,8,8", "1,5,5,8", "2,8,8,8"], once, [&[]; 3]);
    let shapes = ["1,8,8,8", "1,5,5,16", "1,8,8,16"];
    check(int8, shapes, "depth_multiplier=2", [&[]; 3]);
    // One input channel: with vectors a convolution of 9 bytes, and the filter.
    let shapes = ["1,8,8,1", "1,3,3,8", "1,8,8,8"];
    check(int8, shapes, "depth_multiplier=8", [&[], &[], &[64 + 72]]);
    check(int4, shapes, "depth_multiplier=8", [&[]; 3]);
    let shapes = ["1,8,8,1", "1,5,5,1", "1,8,8,1"];
    check(int8, shapes, once, [&[], &[50], &[12_400]]);
}

#[test]
fn cmsis_nn_fully_connected() {
    // Sums of weights: kept if they are constant, else each time anew.
    let line = "FULLY_CONNECTED i8:2,16/1 i8:4,16/1! > i8:2,4/1";
    on_cores(line, [&[]; 3]);
    let line = "FULLY_CONNECTED i8:2,16/1 i8:4,16/1 > i8:2,4/1";
    on_cores(line, [&[], &[], &[16]]);
    let line = "FULLY_CONNECTED i8:2,16/1 i8:4,16/1! i32:4/1! > i8:2,4/1";
    on_cores(line, [&[]; 3]);
    let line = "FULLY_CONNECTED i8:2,16/1 i8:4,16/1! i32:4/1 > i8:2,4/1";
    on_cores(line, [&[], &[], &[16]]);
    // As a pointwise convolution: a multiplier and a shift for each output, unless the weights have them.
    let line = "FULLY_CONNECTED i8:1,2,16/1 i8:4,16/1! > i8:1,2,4/1";
    on_cores(line, [&[32]; 3]);
    let line = "FULLY_CONNECTED i8:1,2,16/1 i8:4,16/4! > i8:1,2,4/1";
    on_cores(line, [&[]; 3]);
    // 18 is no multiple of 4; other types.
    let line = "FULLY_CONNECTED i8:1,2,18/1 i8:4,18/1! > i8:1,2,4/1";
    on_cores(line, [&[]; 3]);
    let line = "FULLY_CONNECTED i8:1,2,16/1 i4:4,16/1! > i8:1,2,4/1";
    on_cores(line, [&[]; 3]);
    let line = "FULLY_CONNECTED i16:1,2,16/1 i8:4,16/1! > i16:1,2,4/1";
    on_cores(line, [&[]; 3]);
}

#[test]
fn cmsis_nn_other_operators() {
    let half = "padding=1 filter_height=2 filter_width=2 stride_h=2 stride_w=2";
    let pool =
        |operator: &str, ty: &str| format!("{operator} {ty}:1,4,4,8/1 > {ty}:1,2,2,8/1 {half}");
    on_cores(&pool("AVERAGE_POOL_2D", "i8"), [&[], &[32], &[]]);
    on_cores(&pool("AVERAGE_POOL_2D", "i16"), [&[], &[32], &[]]);
    on_cores(&pool("AVERAGE_POOL_2D", "f32"), [&[]; 3]);
    on_cores(&pool("MAX_POOL_2D", "i8"), [&[]; 3]);
    // Two batches, four filters of rank 2.
    let line = "SVDF i8:2,8/1 i8:4,8/1! i16:4,3/1! i32:2/1! i16:2,12/1~ > i8:2,2/1 rank=2";
    on_cores(line, [&[32, 16]; 3]);
    // Two batches of four units, state of 16 bits; as floats.
    let lstm = |ty: &str, state: &str| {
        format!(
            "UNIDIRECTIONAL_SEQUENCE_LSTM {ty}:2,5,3/1 {}{ty}:2,4/1~ {state}:2,4/1~ > {ty}:2,5,4/1",
            "- ".repeat(17)
        )
    };
    on_cores(&lstm("i8", "i16"), [&[16; 3]; 3]);
    assert_eq!(requests(Library::Reference, &lstm("i8", "i16")), [16; 4]);
    on_cores(&lstm("i16", "i16"), [&[16; 3]; 3]);
    on_cores(&lstm("f32", "f32"), [&[32; 4]; 3]);
    let product = |ty: &str| format!("BATCH_MATMUL {ty}:2,3,4/1 {ty}:2,4,5/1 > {ty}:2,3,5/1");
    on_cores(&product("i8"), [&[], &[], &[20]]);
    on_cores(&product("i16"), [&[]; 3]);
    on_cores(&product("f32"), [&[]; 3]);
}

#[test]
fn cmsis_nn_transpose_conv() {
    let line = |ty: &str, shapes: [&str; 3], strides: [u8; 2]| {
        let ([input, filter, output], [h, w]) = (shapes, strides);
        format!(
            "TRANSPOSE_CONV i32:4! i8:{filter}/1! {ty}:{input}/1 > {ty}:{output}/1 padding=0 stride_h={h} stride_w={w}"
        )
    };
    // Rows of sums: (3 * 2 + 3) columns of 3 channels, 3 rows.
    let shapes = ["1,4,4,8", "3,3,3,8", "1,8,8,3"];
    on_cores(&line("i8", shapes, [2, 2]), [&[324, 0]; 3]);
    // The larger of the filter's width and the vertical stride: (3 + 3) columns of 3 channels, 3 rows.
    let shapes = ["1,4,4,8", "3,2,2,8", "1,12,4,3"];
    on_cores(&line("i8", shapes, [3, 1]), [&[216, 0]; 3]);
    // As a convolution: windows of 180 bytes, and a filter of three of them.
    let shapes = ["1,4,4,20", "3,3,3,20", "1,8,8,3"];
    let int8 = line("i8", shapes, [2, 2]);
    on_cores(&int8, [&[720, 540], &[720, 540], &[768, 540]]);
    on_cores(&line("i16", shapes, [2, 2]), [&[8 * 192]; 3]);
    assert_eq!(requests(Library::Reference, &int8), [4 * 192]);
}

#[test]
fn esp_nn_conv_2d() {
    let check = |shapes: [&str; 3], options: &str, expected: [&[u64]; 3]| {
        let [input, filter, output] = shapes;
        let line = format!("CONV_2D i8:{input}/1 i8:{filter}/1! > i8:{output}/1 {options}");
        on_chips(&line, expected);
    };
    // Pointwise: 8 channels, 6, too few pixels for a block, 16 channels.
    let shapes = ["1,4,4,8", "4,1,1,8", "1,4,4,4"];
    check(shapes, SAME, [&[], &[32 + 128 + 64], &[16 + 64 + 32 + 32]]);
    let shapes = ["1,4,4,6", "4,1,1,6", "1,4,4,4"];
    check(shapes, SAME, [&[], &[128 + 32 + 128 + 64], &[144]]);
    let shapes = ["1,2,2,8", "4,1,1,8", "1,2,2,4"];
    check(shapes, SAME, [&[], &[32 + 64], &[144]]);
    let shapes = ["1,4,4,16", "4,1,1,16", "1,4,4,4"];
    check(shapes, SAME, [&[], &[64 + 256 + 64], &[64 + 256 + 32]]);
    // Rows of 9 bytes, windows of 27.
    let shapes = ["1,8,8,3", "8,3,3,3", "1,8,8,8"];
    let s3 = 32 + 16 + 8 * 32 + 16 + 32 + 64;
    check(shapes, SAME, [&[], &[s3], &[32 + 27 + 32]]);
    // Padded: 10 x 10 pixels, the filter twice, 10 x 10 pixels again, sums.
    let shapes = ["1,8,8,8", "4,3,3,8", "1,8,8,4"];
    let s3 = 800 + 576 + 384 + 800 + 64 + 16;
    check(shapes, SAME, [&[], &[s3], &[16 + 72 + 32]]);
    let shapes = ["1,8,8,8", "4,3,3,8", "1,6,6,4"];
    check(
        shapes,
        VALID,
        [&[], &[576 + 384 + 64 + 16], &[576 + 32 + 16]],
    );
    // Windows of 9 bytes.
    let shapes = ["1,8,8,1", "4,3,3,1", "1,6,6,4"];
    let s3 = 576 + 16 * 3 * 4 + 64 + 16;
    check(shapes, VALID, [&[], &[s3], &[16 + 576 + 1024 + 32]]);
    let shapes = ["1,8,8,1", "4,3,3,1", "1,8,8,4"];
    let s3 = 100 + 576 + 192 + 100 + 64 + 16;
    check(shapes, SAME, [&[], &[s3], &[100 + 576 + 32 + 16]]);
    // In tiles of 7 output rows: 6 + 3 + 2 input rows of 202 pixels of 16 channels.
    let shapes = ["1,200,200,1", "4,3,3,1", "1,200,200,4"];
    let s3 = 202 * 202 + 576 + 192 + 202 * 202 + 64 + 16;
    check(shapes, SAME, [&[], &[s3], &[11 * 202 * 16 + 576 + 32 + 16]]);
    // Weights of 4 bits are unpacked as well; other types are the reference kernels'.
    let line = format!("CONV_2D i8:1,4,4,8/1 i4:4,1,1,8/1! > i8:1,4,4,4/1 {SAME}");
    on_chips(&line, [&[32], &[32, 224], &[32, 144]]);
    let line = format!("CONV_2D i16:1,4,4,8/1 i8:4,1,1,8/1! > i16:1,4,4,4/1 {SAME}");
    on_chips(&line, [&[]; 3]);
}

#[test]
fn esp_nn_depthwise_conv_2d() {
    let check = |size: i32, kernel: i32, channels: i32, multiplier: i32, options: &str, s3: u64| {
        let out = if options == SAME {
            size
        } else {
            size - kernel + 1
        };
        let made = channels * multiplier;
        let line = format!(
            "DEPTHWISE_CONV_2D i8:1,{size},{size},{channels}/1 i8:1,{kernel},{kernel},{made}/1! \
             > i8:1,{out},{out},{made}/1 {options} depth_multiplier={multiplier}"
        );
        on_chips(&line, [&[], &[s3], &[]]);
    };
    // Channels in sixteens: the filter, the padded input, or three rows of it.
    check(8, 3, 16, 1, SAME, 144 + 1600 + 16);
    check(8, 3, 16, 1, VALID, 144 + 16);
    check(64, 3, 16, 1, SAME, 144 + 66 * 3 * 16 + 16);
    // Rounded up to 32 channels: 12 x 12 pixels, and the output.
    check(8, 3, 24, 1, SAME, 288 + 144 * 32 + 64 * 32 + 64);
    // In 16 bits.
    check(8, 3, 8, 1, SAME, 2 * (72 + 512) + 32);
    check(8, 5, 8, 1, SAME, 2 * (200 + 512) + 32);
    check(64, 5, 8, 1, SAME, 400 + 2 * 64 * 5 * 8 + 32);
    // Six channels as eight: filter, input, output, and 12 bytes a channel.
    check(8, 3, 6, 1, SAME, 144 + 1024 + 512 + 96 + 16);
    check(8, 3, 2, 4, SAME, 2 * (72 + 128) + 32);
    check(8, 3, 2, 2, SAME, 32);
    check(8, 3, 3, 1, SAME, 32);
}

#[test]
fn esp_nn_softmax() {
    on_chips("SOFTMAX i8:1,10/1 > i8:1,10/1 beta=1", [&[40]; 3]);
    on_chips("SOFTMAX i8:1,1,1,10/1 > i8:1,1,1,10/1 beta=1", [&[4]; 3]);
    on_chips("SOFTMAX i8:1,10/1 > i16:1,10/1 beta=1", [&[]; 3]);
    on_chips("SOFTMAX i16:1,10/1 > i16:1,10/1 beta=1", [&[]; 3]);
}

#[test]
fn a_scratch_file_goes_before_the_library() {
    let line = format!("CONV_2D i8:1,8,8,8/1 i8:4,3,3,8/1! > i8:1,8,8,4/1 {SAME}");
    with_graph(&line, |graph| {
        let library = Library::CmsisNn(Core::Dsp);
        let bytes = |text| {
            let scratch = Scratch::with_file(library, graph, text).unwrap();
            let list: Vec<_> = scratch.requests().iter().map(|r| r.bytes).collect();
            list
        };
        assert_eq!(bytes(""), [288]);
        assert_eq!(bytes("0 7 9"), [7, 9]);
        assert!(bytes("0").is_empty());
    });
}

#[test]
fn what_cmsis_nn_keeps_in_the_tail() {
    let tails = |line: &str| {
        with_graph(line, |graph| {
            let reference = tail_bytes(graph, Width::Bits32).bytes.cast_signed();
            [Core::Plain, Core::Dsp, Core::Mve].map(|core| {
                let scratch = Scratch::of(Library::CmsisNn(core), graph);
                let tail = tail_bytes_with(graph, &scratch, Width::Bits32).bytes;
                tail.cast_signed() - reference
            })
        })
    };
    // The kernel's data grows from 48 bytes to 72, so to 80. Sums for 40 outputs with vectors.
    let line = "FULLY_CONNECTED i8:1,16/1 i8:40,16/1! > i8:1,40/1";
    assert_eq!(tails(line), [32, 32, 32 + 160]);
    // Sums for 4 filters.
    let line = "SVDF i8:2,8/1 i8:4,8/1! i16:4,3/1! i32:2/1! i16:2,12/1~ > i8:2,2/1 rank=2";
    assert_eq!(tails(line), [0, 0, 16]);
    // No multiplier and shift for each of 8 channels where they are floats.
    let filter = format!("f32:1,3,3,8! > f32:1,8,8,8 {SAME}");
    let line = format!("DEPTHWISE_CONV_2D f32:1,8,8,8 {filter} depth_multiplier=1");
    assert_eq!(tails(&line), [-64; 3]);
    let line = format!("CONV_2D f32:1,8,8,4 f32:8,3,3,4! > f32:1,8,8,8 {SAME}");
    assert_eq!(tails(&line), [-64; 3]);
    // With 16 bits they are needed. A handle of scratch memory fits into the rounding.
    let line = format!("CONV_2D i16:1,8,8,4/1 i8:8,3,3,4/8! > i16:1,8,8,8/1 {SAME}");
    assert_eq!(tails(&line), [0; 3]);
}

#[test]
fn arenas_used_on_a_cortex_m4() {
    // `arena_used_bytes()` of TFLM with CMSIS-NN, built for mps2-an386, without a plan. The structs that bare-metal Arm
    // compilers make smaller leave a tolerance of an eighth of the tail.
    let used = [
        ("kws_ref_model", 22_820),
        ("vww_96_int8", 100_708),
        ("pretrainedResnet_quant", 54_996),
        ("ad01_int8", 2580),
        ("str_ww_ref_model", 16_596),
        ("micro_speech_quantized", 6836),
        ("person_detect", 82_308),
    ];
    let Some(models) = common::shared_models() else {
        return;
    };
    for (name, used) in used {
        let model = models.iter().find(|m| m.name == name);
        let bytes = &model.unwrap_or_else(|| panic!("{name} is missing")).bytes;
        let graph = Graph::read(Model::parse(bytes).unwrap()).unwrap();
        let scratch = Scratch::of(Library::CmsisNn(Core::Dsp), &graph);
        let lifetimes = Lifetimes::of(&graph).unwrap();
        let head = simulate(&graph, &lifetimes, &scratch, None).unwrap().head;
        let tail = tail_bytes_with(&graph, &scratch, Width::Bits32).bytes;
        println!(
            "{name}: {head} + {tail} = {} predicted, {used} used",
            head + tail
        );
        assert!(
            (head + tail).abs_diff(used) <= (tail / 8).max(32),
            "{name}: {head} + {tail} predicted, {used} used"
        );
    }
}

#[test]
fn absurd_shapes_do_not_overflow() {
    let mut random = Random(7);
    let sizes = ["1", "1", "2", "3", "255", "65535", "2147483647"];
    for _ in 0..60 {
        let mut size = || random.pick(&sizes);
        let mut shape = || [size(), size(), size(), size()].join(",");
        // Tensors in the arena must fit into it; constants need not.
        let [input, filter, output] = [shape(), shape(), shape()];
        let steps = format!("padding=0 stride_h={} stride_w={}", size(), size());
        let dilated = format!(
            "{steps} dilation_h_factor={} dilation_w_factor={}",
            size(),
            size()
        );
        let lines = [
            format!("CONV_2D i8:{input}! i8:{filter}! > i8:{output}! {dilated}"),
            format!("CONV_2D i16:{input}! i8:{filter}! > i16:{output}! {dilated}"),
            format!(
                "DEPTHWISE_CONV_2D i8:{input}! i8:{filter}! > i8:{output}! {dilated} depth_multiplier={}",
                size()
            ),
            format!("TRANSPOSE_CONV i32:4! i8:{filter}! i8:{input}! > i8:{output}! {steps}"),
        ];
        for line in &lines {
            with_graph(line, |graph| {
                let lifetimes = Lifetimes::of(graph).unwrap();
                for library in Library::ALL {
                    let scratch = Scratch::of(library, graph);
                    let head = simulate(graph, &lifetimes, &scratch, None).unwrap().head;
                    arena_bytes(graph, head, &scratch, Width::Bits32);
                }
            });
        }
    }
}
