//! Scratch memory by kernel library: values worked out by hand from the size functions of CMSIS-NN and ESP-NN, and arenas
//! that TFLM with CMSIS-NN really used.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;
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
use arenaplan_schema::tflite::{BuiltinOperator as Op, Padding, TensorType as Type};
use single::{Data, Options, Random, Role, Single, arena, constant};

const SAME: Padding = Padding::SAME;
const VALID: Padding = Padding::VALID;

fn requests(library: Library, single: &Single) -> Vec<u64> {
    single.with_graph(|graph| {
        let scratch = Scratch::of(library, graph);
        assert_eq!(scratch.library(), library);
        scratch.requests().iter().map(|r| r.bytes).collect()
    })
}

/// What the three cores ask for: plain, DSP, MVE.
#[track_caller]
fn on_cores(single: &Single, expected: [&[u64]; 3]) {
    let cores = [Core::Plain, Core::Dsp, Core::Mve];
    for (core, expected) in cores.into_iter().zip(expected) {
        assert_eq!(
            requests(Library::CmsisNn(core), single),
            expected,
            "{core:?}: {single:?}"
        );
    }
}

/// What the three chips ask for: generic, S3, P4.
#[track_caller]
fn on_chips(single: &Single, expected: [&[u64]; 3]) {
    let chips = [Chip::Generic, Chip::S3, Chip::P4];
    for (chip, expected) in chips.into_iter().zip(expected) {
        assert_eq!(
            requests(Library::EspNn(chip), single),
            expected,
            "{chip:?}: {single:?}"
        );
    }
}

/// A CONV_2D from `input` to `output` with a constant filter.
fn conv(
    ty: Type,
    weights: Type,
    shapes: [[i32; 4]; 3],
    padding: Padding,
    stride: [i32; 2],
) -> Single {
    let [input, filter, output] = shapes;
    Single::new(
        Op::CONV_2D,
        vec![arena(ty, &input), constant(weights, &filter)],
        arena(ty, &output),
        Options::Window(padding, stride, [1, 1], 1),
    )
}

fn depthwise(
    ty: Type,
    weights: Type,
    shapes: [[i32; 4]; 3],
    padding: Padding,
    multiplier: i32,
) -> Single {
    let [input, filter, output] = shapes;
    Single::new(
        Op::DEPTHWISE_CONV_2D,
        vec![arena(ty, &input), constant(weights, &filter)],
        arena(ty, &output),
        Options::Window(padding, [1, 1], [1, 1], multiplier),
    )
}

#[test]
fn cmsis_nn_conv_2d() {
    let int8 = |shapes, padding, stride| conv(Type::INT8, Type::INT8, shapes, padding, stride);
    // 3*3*8 = 72 bytes, which is 2 windows of 16 bits, or 4 of 5 vectors.
    let shapes = [[1, 8, 8, 8], [4, 3, 3, 8], [1, 8, 8, 4]];
    on_cores(&int8(shapes, SAME, [1, 1]), [&[288], &[288], &[320]]);
    on_cores(
        &conv(Type::INT8, Type::INT4, shapes, SAME, [1, 1]),
        [&[288], &[288], &[320]],
    );
    on_cores(
        &conv(Type::INT16, Type::INT8, shapes, SAME, [1, 1]),
        [&[288], &[288], &[576]],
    );
    on_cores(
        &conv(Type::FLOAT32, Type::FLOAT32, shapes, SAME, [1, 1]),
        [&[]; 3],
    );
    // 75 bytes, rounded up.
    let shapes = [[1, 9, 9, 3], [2, 5, 5, 3], [1, 5, 5, 2]];
    on_cores(&int8(shapes, VALID, [1, 1]), [&[304], &[304], &[320]]);
    on_cores(
        &conv(Type::INT16, Type::INT8, shapes, VALID, [1, 1]),
        [&[300], &[300], &[640]],
    );
    // Pointwise, with and without strides; not if 16 bits, grouped or dilated.
    let shapes = [[1, 8, 8, 8], [4, 1, 1, 8], [1, 8, 8, 4]];
    on_cores(&int8(shapes, SAME, [1, 1]), [&[]; 3]);
    on_cores(
        &conv(Type::INT16, Type::INT8, shapes, SAME, [1, 1]),
        [&[32], &[32], &[64]],
    );
    let mut dilated = int8(shapes, VALID, [1, 1]);
    dilated.options = Options::Window(VALID, [1, 1], [1, 2], 1);
    on_cores(&dilated, [&[32], &[32], &[64]]);
    let shapes = [[1, 8, 8, 8], [4, 1, 1, 8], [1, 4, 4, 4]];
    on_cores(&int8(shapes, SAME, [2, 2]), [&[]; 3]);
    let shapes = [[1, 8, 8, 8], [4, 1, 1, 4], [1, 8, 8, 4]];
    on_cores(&int8(shapes, SAME, [1, 1]), [&[32], &[32], &[64]]);
    // A row of 16 with a window of 4: 1 column of padding before, 2 after. (4 + 1) columns of 4 bytes.
    let shapes = [[1, 1, 16, 4], [8, 1, 4, 4], [1, 1, 16, 8]];
    on_cores(&int8(shapes, SAME, [1, 1]), [&[64], &[64], &[20]]);
    // A window of 6, 2 before and 3 after: (6 - 1 + 3) columns of 4 bytes.
    let shapes = [[1, 1, 16, 4], [8, 1, 6, 4], [1, 1, 16, 8]];
    on_cores(&int8(shapes, SAME, [1, 1]), [&[96], &[96], &[32]]);
    // Without padding: 4 columns.
    let shapes = [[1, 1, 16, 4], [8, 1, 4, 4], [1, 1, 13, 8]];
    on_cores(&int8(shapes, VALID, [1, 1]), [&[64], &[64], &[16]]);
    // A step that is no multiple of four bytes, and a row with more padding than outputs: the general way.
    let shapes = [[1, 1, 16, 3], [8, 1, 4, 3], [1, 1, 16, 8]];
    on_cores(&int8(shapes, SAME, [1, 1]), [&[48], &[48], &[64]]);
    let shapes = [[1, 1, 2, 4], [8, 1, 5, 4], [1, 1, 2, 8]];
    on_cores(&int8(shapes, SAME, [1, 1]), [&[80], &[80], &[128]]);
}

#[test]
fn cmsis_nn_depthwise_conv_2d() {
    let int8 = |shapes, padding, m| depthwise(Type::INT8, Type::INT8, shapes, padding, m);
    let three = [[1, 8, 8, 8], [1, 3, 3, 8], [1, 8, 8, 8]];
    on_cores(&int8(three, SAME, 1), [&[], &[], &[4464]]);
    on_cores(
        &depthwise(Type::INT8, Type::INT4, three, SAME, 1),
        [&[144], &[144], &[4464]],
    );
    on_cores(
        &depthwise(Type::INT16, Type::INT8, three, SAME, 1),
        [&[]; 3],
    );
    let mut dilated = int8(three, SAME, 1);
    dilated.options = Options::Window(SAME, [1, 1], [2, 2], 1);
    on_cores(&dilated, [&[]; 3]);
    let five = [[1, 8, 8, 8], [1, 5, 5, 8], [1, 8, 8, 8]];
    on_cores(&int8(five, SAME, 1), [&[], &[400], &[12_400]]);
    let two_batches = [[2, 8, 8, 8], [1, 5, 5, 8], [2, 8, 8, 8]];
    on_cores(&int8(two_batches, SAME, 1), [&[]; 3]);
    let doubled = [[1, 8, 8, 8], [1, 5, 5, 16], [1, 8, 8, 16]];
    on_cores(&int8(doubled, SAME, 2), [&[]; 3]);
    // One input channel: with vectors a convolution of 9 bytes, and the filter.
    let spread = [[1, 8, 8, 1], [1, 3, 3, 8], [1, 8, 8, 8]];
    on_cores(&int8(spread, SAME, 8), [&[], &[], &[64 + 72]]);
    on_cores(
        &depthwise(Type::INT8, Type::INT4, spread, SAME, 8),
        [&[]; 3],
    );
    let single_channel = [[1, 8, 8, 1], [1, 5, 5, 1], [1, 8, 8, 1]];
    on_cores(&int8(single_channel, SAME, 1), [&[], &[50], &[12_400]]);
}

#[test]
fn cmsis_nn_fully_connected() {
    let layer = |ty, weights: Data, input: &[i32], output: &[i32]| {
        let inputs = vec![arena(ty, input), weights];
        Single::new(
            Op::FULLY_CONNECTED,
            inputs,
            arena(ty, output),
            Options::None,
        )
    };
    let weights = |ty| constant(ty, &[4, 16]);
    // Sums of weights: kept if they are constant, else each time anew.
    let flat = layer(Type::INT8, weights(Type::INT8), &[2, 16], &[2, 4]);
    on_cores(&flat, [&[]; 3]);
    let made = layer(Type::INT8, arena(Type::INT8, &[4, 16]), &[2, 16], &[2, 4]);
    on_cores(&made, [&[], &[], &[16]]);
    let mut biased = flat.clone();
    biased.inputs.push(Some(arena(Type::INT32, &[4])));
    on_cores(&biased, [&[], &[], &[16]]);
    // As a pointwise convolution: a multiplier and a shift for each output, unless the weights have them.
    let deep = layer(Type::INT8, weights(Type::INT8), &[1, 2, 16], &[1, 2, 4]);
    on_cores(&deep, [&[32], &[32], &[32]]);
    let per_channel = Data {
        scales: 4,
        ..weights(Type::INT8)
    };
    on_cores(
        &layer(Type::INT8, per_channel, &[1, 2, 16], &[1, 2, 4]),
        [&[]; 3],
    );
    // 18 is no multiple of 4.
    let odd = constant(Type::INT8, &[4, 18]);
    on_cores(&layer(Type::INT8, odd, &[1, 2, 18], &[1, 2, 4]), [&[]; 3]);
    on_cores(
        &layer(Type::INT8, weights(Type::INT4), &[1, 2, 16], &[1, 2, 4]),
        [&[]; 3],
    );
    on_cores(
        &layer(Type::INT16, weights(Type::INT8), &[1, 2, 16], &[1, 2, 4]),
        [&[]; 3],
    );
}

#[test]
fn cmsis_nn_other_operators() {
    for (ty, expected) in [
        (Type::INT8, [32].as_slice()),
        (Type::INT16, &[32]),
        (Type::FLOAT32, &[]),
    ] {
        let pool = |code| {
            let options = Options::Pool(VALID, [2, 2], [2, 2]);
            Single::new(
                code,
                vec![arena(ty, &[1, 4, 4, 8])],
                arena(ty, &[1, 2, 2, 8]),
                options,
            )
        };
        on_cores(&pool(Op::AVERAGE_POOL_2D), [&[], expected, &[]]);
        on_cores(&pool(Op::MAX_POOL_2D), [&[]; 3]);
    }
    // Two batches, four filters of rank 2.
    let svdf = Single::new(
        Op::SVDF,
        vec![
            arena(Type::INT8, &[2, 8]),
            constant(Type::INT8, &[4, 8]),
            constant(Type::INT16, &[4, 3]),
            constant(Type::INT32, &[2]),
            Data {
                role: Role::Variable,
                ..arena(Type::INT16, &[2, 12])
            },
        ],
        arena(Type::INT8, &[2, 2]),
        Options::Rank(2),
    );
    on_cores(&svdf, [&[32, 16], &[32, 16], &[32, 16]]);
    // Two batches of four units, state of 16 bits.
    let mut lstm = Single {
        code: Op::UNIDIRECTIONAL_SEQUENCE_LSTM,
        inputs: vec![None; 24],
        outputs: vec![arena(Type::INT8, &[2, 5, 4])],
        options: Options::TimeMajor(false),
    };
    let state = |ty| {
        Some(Data {
            role: Role::Variable,
            ..arena(ty, &[2, 4])
        })
    };
    lstm.inputs[0] = Some(arena(Type::INT8, &[2, 5, 3]));
    lstm.inputs[18] = state(Type::INT8);
    lstm.inputs[19] = state(Type::INT16);
    on_cores(&lstm, [&[16, 16, 16]; 3]);
    assert_eq!(requests(Library::Reference, &lstm), [16; 4]);
    lstm.inputs[0] = Some(arena(Type::FLOAT32, &[2, 5, 3]));
    lstm.inputs[19] = state(Type::FLOAT32);
    on_cores(&lstm, [&[32; 4]; 3]);
    for (ty, expected) in [
        (Type::INT8, [20].as_slice()),
        (Type::INT16, &[]),
        (Type::FLOAT32, &[]),
    ] {
        let product = Single::new(
            Op::BATCH_MATMUL,
            vec![arena(ty, &[2, 3, 4]), arena(ty, &[2, 4, 5])],
            arena(ty, &[2, 3, 5]),
            Options::MatMul([false, false]),
        );
        on_cores(&product, [&[], &[], expected]);
    }
}

fn transposed(ty: Type, shapes: [[i32; 4]; 3], stride: [i32; 2]) -> Single {
    let [input, filter, output] = shapes;
    Single::new(
        Op::TRANSPOSE_CONV,
        vec![
            constant(Type::INT32, &[4]),
            constant(Type::INT8, &filter),
            arena(ty, &input),
        ],
        arena(ty, &output),
        Options::Window(SAME, stride, [1, 1], 1),
    )
}

#[test]
fn cmsis_nn_transpose_conv() {
    // Rows of sums: (3 * 2 + 3) columns of 3 channels, 3 rows.
    let shapes = [[1, 4, 4, 8], [3, 3, 3, 8], [1, 8, 8, 3]];
    on_cores(&transposed(Type::INT8, shapes, [2, 2]), [&[324, 0]; 3]);
    // The wider of the filter's width and the vertical stride: (3 + 3) columns of 3 channels, 3 rows.
    let shapes = [[1, 4, 4, 8], [3, 2, 2, 8], [1, 12, 4, 3]];
    on_cores(&transposed(Type::INT8, shapes, [3, 1]), [&[216, 0]; 3]);
    // As a convolution: windows of 180 bytes, and a filter of three of them.
    let shapes = [[1, 4, 4, 20], [3, 3, 3, 20], [1, 8, 8, 3]];
    on_cores(
        &transposed(Type::INT8, shapes, [2, 2]),
        [&[720, 540], &[720, 540], &[768, 540]],
    );
    on_cores(&transposed(Type::INT16, shapes, [2, 2]), [&[8 * 192]; 3]);
    assert_eq!(
        requests(Library::Reference, &transposed(Type::INT8, shapes, [2, 2])),
        [4 * 192]
    );
}

#[test]
fn esp_nn_conv_2d() {
    let int8 = |shapes, padding| conv(Type::INT8, Type::INT8, shapes, padding, [1, 1]);
    // Pointwise: 8 channels, 6, and too few pixels for a block.
    let shapes = [[1, 4, 4, 8], [4, 1, 1, 8], [1, 4, 4, 4]];
    on_chips(
        &int8(shapes, SAME),
        [&[], &[32 + 128 + 64], &[16 + 64 + 32 + 32]],
    );
    let shapes = [[1, 4, 4, 6], [4, 1, 1, 6], [1, 4, 4, 4]];
    on_chips(&int8(shapes, SAME), [&[], &[128 + 32 + 128 + 64], &[144]]);
    let shapes = [[1, 2, 2, 8], [4, 1, 1, 8], [1, 2, 2, 4]];
    on_chips(&int8(shapes, SAME), [&[], &[32 + 64], &[144]]);
    let shapes = [[1, 4, 4, 16], [4, 1, 1, 16], [1, 4, 4, 4]];
    on_chips(
        &int8(shapes, SAME),
        [&[], &[64 + 256 + 64], &[64 + 256 + 32]],
    );
    // Rows of 9 bytes, windows of 27.
    let shapes = [[1, 8, 8, 3], [8, 3, 3, 3], [1, 8, 8, 8]];
    on_chips(
        &int8(shapes, SAME),
        [&[], &[32 + 16 + 8 * 32 + 16 + 32 + 64], &[32 + 27 + 32]],
    );
    // Padded: 10 x 10 pixels, the filter twice, 10 x 10 pixels again, sums.
    let shapes = [[1, 8, 8, 8], [4, 3, 3, 8], [1, 8, 8, 4]];
    on_chips(
        &int8(shapes, SAME),
        [&[], &[800 + 576 + 384 + 800 + 64 + 16], &[16 + 72 + 32]],
    );
    let shapes = [[1, 8, 8, 8], [4, 3, 3, 8], [1, 6, 6, 4]];
    on_chips(
        &int8(shapes, VALID),
        [&[], &[576 + 384 + 64 + 16], &[576 + 32 + 16]],
    );
    // Windows of 9 bytes.
    let shapes = [[1, 8, 8, 1], [4, 3, 3, 1], [1, 6, 6, 4]];
    on_chips(
        &int8(shapes, VALID),
        [&[], &[576 + 16 * 3 * 4 + 64 + 16], &[16 + 576 + 1024 + 32]],
    );
    let shapes = [[1, 8, 8, 1], [4, 3, 3, 1], [1, 8, 8, 4]];
    on_chips(
        &int8(shapes, SAME),
        [
            &[],
            &[100 + 576 + 192 + 100 + 64 + 16],
            &[100 + 576 + 32 + 16],
        ],
    );
    // In tiles of 7 output rows: 6 + 3 + 2 input rows of 202 pixels of 16 channels.
    let shapes = [[1, 200, 200, 1], [4, 3, 3, 1], [1, 200, 200, 4]];
    let s3 = 202 * 202 + 576 + 192 + 202 * 202 + 64 + 16;
    on_chips(
        &int8(shapes, SAME),
        [&[], &[s3], &[11 * 202 * 16 + 576 + 32 + 16]],
    );
    // Weights of 4 bits are unpacked as well; other types are the reference kernels'.
    let shapes = [[1, 4, 4, 8], [4, 1, 1, 8], [1, 4, 4, 4]];
    let packed = conv(Type::INT8, Type::INT4, shapes, SAME, [1, 1]);
    on_chips(&packed, [&[32], &[32, 224], &[32, 144]]);
    on_chips(
        &conv(Type::INT16, Type::INT8, shapes, SAME, [1, 1]),
        [&[]; 3],
    );
}

#[test]
fn esp_nn_depthwise_conv_2d_and_softmax() {
    let s3 = |size: i32, kernel: i32, channels: i32, padding: Padding, multiplier: i32| {
        let out = if padding == SAME {
            size
        } else {
            size - kernel + 1
        };
        let shapes = [
            [1, size, size, channels],
            [1, kernel, kernel, channels * multiplier],
            [1, out, out, channels * multiplier],
        ];
        let single = depthwise(Type::INT8, Type::INT8, shapes, padding, multiplier);
        for chip in [Chip::Generic, Chip::P4] {
            assert!(requests(Library::EspNn(chip), &single).is_empty());
        }
        requests(Library::EspNn(Chip::S3), &single)
    };
    // Channels in sixteens: the filter, the padded input, or three rows of it.
    assert_eq!(s3(8, 3, 16, SAME, 1), [144 + 1600 + 16]);
    assert_eq!(s3(8, 3, 16, VALID, 1), [144 + 16]);
    assert_eq!(s3(64, 3, 16, SAME, 1), [144 + 66 * 3 * 16 + 16]);
    // Rounded up to 32 channels: 12 x 12 pixels, and the output.
    assert_eq!(s3(8, 3, 24, SAME, 1), [288 + 144 * 32 + 64 * 32 + 64]);
    // In 16 bits.
    assert_eq!(s3(8, 3, 8, SAME, 1), [2 * (72 + 512) + 32]);
    assert_eq!(s3(8, 5, 8, SAME, 1), [2 * (200 + 512) + 32]);
    assert_eq!(s3(64, 5, 8, SAME, 1), [400 + 2 * 64 * 5 * 8 + 32]);
    // Six channels as eight: filter, input, output, and 12 bytes a channel.
    assert_eq!(s3(8, 3, 6, SAME, 1), [144 + 1024 + 512 + 96 + 16]);
    assert_eq!(s3(8, 3, 2, SAME, 4), [2 * (72 + 128) + 32]);
    assert_eq!(s3(8, 3, 2, SAME, 2), [32]);
    assert_eq!(s3(8, 3, 3, SAME, 1), [32]);

    let softmax = |from, to, shape: &[i32]| {
        Single::new(
            Op::SOFTMAX,
            vec![arena(from, shape)],
            arena(to, shape),
            Options::None,
        )
    };
    on_chips(&softmax(Type::INT8, Type::INT8, &[1, 10]), [&[40]; 3]);
    on_chips(&softmax(Type::INT8, Type::INT8, &[1, 1, 1, 10]), [&[4]; 3]);
    on_chips(&softmax(Type::INT8, Type::INT16, &[1, 10]), [&[]; 3]);
    on_chips(&softmax(Type::INT16, Type::INT16, &[1, 10]), [&[]; 3]);
}

#[test]
fn a_scratch_file_goes_before_the_library() {
    let shapes = [[1, 8, 8, 8], [4, 3, 3, 8], [1, 8, 8, 4]];
    let single = conv(Type::INT8, Type::INT8, shapes, SAME, [1, 1]);
    single.with_graph(|graph| {
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
    // Sums for 40 outputs: 160 bytes with vectors. The kernel's data grows from 48 bytes to 72, so to 80.
    let single = Single::new(
        Op::FULLY_CONNECTED,
        vec![arena(Type::INT8, &[1, 16]), constant(Type::INT8, &[40, 16])],
        arena(Type::INT8, &[1, 40]),
        Options::None,
    );
    single.with_graph(|graph| {
        let reference = tail_bytes(graph, Width::Bits32).bytes;
        let on = |core| {
            let scratch = Scratch::of(Library::CmsisNn(core), graph);
            tail_bytes_with(graph, &scratch, Width::Bits32).bytes
        };
        assert_eq!(on(Core::Plain), reference + 32);
        assert_eq!(on(Core::Dsp), reference + 32);
        assert_eq!(on(Core::Mve), reference + 32 + 160);
    });
}

/// No plan: TFLM's own head with the scratch of CMSIS-NN for a Cortex-M4, and the tail of a device with 32 bits.
fn used_on_cortex_m4(bytes: &[u8]) -> (u64, u64) {
    let graph = Graph::read(Model::parse(bytes).unwrap()).unwrap();
    let scratch = Scratch::of(Library::CmsisNn(Core::Dsp), &graph);
    let lifetimes = Lifetimes::of(&graph).unwrap();
    let head = simulate(&graph, &lifetimes, &scratch, None).unwrap().head;
    let tail = tail_bytes_with(&graph, &scratch, Width::Bits32).bytes;
    (head, tail)
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
        let (head, tail) = used_on_cortex_m4(bytes);
        println!(
            "{name}: head {head}, tail {tail}, together {}, used {used}",
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
    let sizes = [1, 1, 2, 3, 255, 65_535, i32::MAX];
    for round in 0..1000 {
        let mut size = || sizes[random.within(0..=sizes.len() as u64 - 1) as usize];
        let mut shape = |rank: usize| (0..rank).map(|_| size()).collect::<Vec<i32>>();
        let (filter, stride, dilation) = (shape(4), shape(2), shape(2));
        // Tensors in the arena must fit into it; constants need not.
        let (input, output) = (
            constant(Type::INT8, &shape(4)),
            constant(Type::INT8, &shape(4)),
        );
        let filter = constant([Type::INT8, Type::INT4][round % 2], &filter);
        let padding = [SAME, VALID][round / 2 % 2];
        let code = [Op::CONV_2D, Op::DEPTHWISE_CONV_2D, Op::TRANSPOSE_CONV][round % 3];
        let window = Options::Window(
            padding,
            [stride[0], stride[1]],
            [dilation[0], dilation[1]],
            stride[0],
        );
        let inputs = match code {
            Op::TRANSPOSE_CONV => vec![constant(Type::INT32, &[4]), filter, input],
            _ => vec![input, filter],
        };
        let single = Single::new(code, inputs, output, window);
        single.with_graph(|graph| {
            for library in Library::ALL {
                let scratch = Scratch::of(library, graph);
                let lifetimes = Lifetimes::of(graph).unwrap();
                let simulation = simulate(graph, &lifetimes, &scratch, None).unwrap();
                arena_bytes(graph, simulation.head, &scratch, Width::Bits32);
            }
        });
    }
}
