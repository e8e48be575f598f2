//! What contracts promise, against the order that they promise: simulated step by step over positions, for operators of
//! random shapes.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing
)]

mod common;
#[path = "common/orders.rs"]
mod orders;
#[path = "common/planned.rs"]
mod planned;
#[path = "../../tests/common/single.rs"]
mod single;

use std::ops::Range;

use arenaplan_runtime::contract::{Overlap, overlap_of, scratch_of};
use arenaplan_runtime::{Code, Contract, Kernel, ops};
use common::{Random, stem};
use orders::{Case, Step, TYPES, between, check, in_turn, kernel, text};
use planned::{Outcome, Planned};

/// An image, its output, and what each output pixel reads.
struct Image {
    from: [isize; 4],
    to: [isize; 4],
    /// Window, stride, dilation; of rows, then of columns.
    ways: [[isize; 3]; 2],
    padding: isize,
}

impl Image {
    fn random(random: &mut Random, dilated: bool) -> Option<Self> {
        let padding = between(random, 0, 1);
        let mut sizes = [[0; 2]; 2];
        let ways = [0, 1].map(|axis| {
            let input = between(random, 1, 9);
            let (window, stride) = (between(random, 1, 5), between(random, 1, 3));
            let dilation = if dilated { between(random, 1, 2) } else { 1 };
            let span = (window - 1) * dilation + 1;
            let output = match padding {
                0 => (input + stride - 1) / stride,
                _ => (input + stride - span) / stride,
            };
            sizes[axis] = [input, output];
            [window, stride, dilation]
        });
        let images = between(random, 1, 3);
        let (ci, co) = (between(random, 1, 6), between(random, 1, 6));
        let possible = sizes.iter().all(|size| size[1] > 0);
        possible.then_some(Image {
            from: [images, sizes[0][0], sizes[1][0], ci],
            to: [images, sizes[0][1], sizes[1][1], co],
            ways,
            padding,
        })
    }

    /// Elements that a window reads along an axis.
    fn taps(&self, axis: usize, at: isize) -> Vec<isize> {
        let [window, stride, dilation] = self.ways[axis];
        let (input, output) = (self.from[axis + 1], self.to[axis + 1]);
        let covered = (output - 1) * stride + (window - 1) * dilation + 1;
        let before = (covered - input).max(0) / 2;
        let taps = (0..window).map(|k| at * stride - before + k * dilation);
        taps.filter(|tap| (0..input).contains(tap)).collect()
    }

    fn steps(&self, size: isize, pixels: isize) -> Vec<Step> {
        let [images, h, w, ci] = self.from;
        let [_, oh, ow, co] = self.to;
        let mut windows = Vec::new();
        for image in 0..images {
            for (y, x) in (0..oh).flat_map(|y| (0..ow).map(move |x| (y, x))) {
                let rows = self.taps(0, y);
                let columns = self.taps(1, x);
                let taps = rows
                    .iter()
                    .flat_map(|y| columns.iter().map(move |x| (y, x)));
                let pixel = ci * size;
                let starts = taps.map(|(y, x)| ((image * h + y) * w + x) * pixel);
                windows.push(starts.map(|at| at..at + pixel).collect::<Vec<_>>());
            }
        }
        let total = images * oh * ow;
        let step = |e: isize| Step {
            writes: e * co * size..(e + pixels).min(total) * co * size,
            reads: windows[e as usize..].iter().flatten().cloned().collect(),
        };
        (0..total).map(step).collect()
    }

    fn case(
        &self,
        operator: &str,
        contract: Contract,
        pixels: isize,
        which: (&str, isize),
    ) -> Case {
        let (ty, size) = which;
        let [[kh, sh, dh], [kw, sw, dw]] = self.ways;
        let (ci, co) = (self.from[3], self.to[3]);
        let (from, to) = (text(&self.from), text(&self.to));
        let strides = format!("padding={} stride_h={sh} stride_w={sw}", self.padding);
        let filter = match contract {
            Contract::Convolution { .. } => format!(" {ty}:{co},{kh},{kw},{ci}!1"),
            Contract::Depthwise { .. } => format!(" {ty}:1,{kh},{kw},{co}!1"),
            _ => String::new(),
        };
        let more = match contract {
            Contract::Pooling => format!("filter_height={kh} filter_width={kw}"),
            _ => format!("dilation_h_factor={dh} dilation_w_factor={dw}"),
        };
        let images_apart = pixels - 1 <= self.to[1] * self.to[2];
        Case {
            line: format!("{operator} {ty}:{from}{filter} > {ty}:{to} {strides} {more}"),
            contract,
            pair: (0, 0),
            from_bytes: self.from.iter().product::<isize>() * size,
            to_bytes: self.to.iter().product::<isize>() * size,
            steps: self.steps(size, pixels),
            exact: dh == 1 && dw == 1 && images_apart && self.windows_are_inside(),
            view_at: None,
        }
    }

    /// Whether every window reads something.
    fn windows_are_inside(&self) -> bool {
        let inside = |axis| (0..self.to[axis + 1]).all(|at| !self.taps(axis, at).is_empty());
        inside(0) && inside(1)
    }
}

#[test]
fn windows_are_read_until_the_last_pixel_that_needs_them() {
    check(1, 120, |random| {
        let Some(mut image) = Image::random(random, true) else {
            return Vec::new();
        };
        let which = TYPES[random.below(3)];
        let pixels = between(random, 1, 5);
        let byte = pixels as u8;
        let convolution = Contract::Convolution { pixels: byte };
        let depthwise = Contract::Depthwise { pixels: byte };
        let mut cases = vec![
            image.case("CONV_2D", convolution, pixels, which),
            image.case("DEPTHWISE_CONV_2D", depthwise, pixels, which),
        ];
        image.ways[0][2] = 1;
        image.ways[1][2] = 1;
        let sizes = [0, 1].map(|axis| {
            let [window, stride, _] = image.ways[axis];
            let input = image.from[axis + 1];
            match image.padding {
                0 => (input + stride - 1) / stride,
                _ => (input + stride - window) / stride,
            }
        });
        image.to = [image.to[0], sizes[0], sizes[1], image.from[3]];
        cases.push(image.case("AVERAGE_POOL_2D", Contract::Pooling, 1, which));
        cases
    });
}

#[test]
fn rows_are_read_for_each_of_their_outputs() {
    check(2, 400, |random| {
        let (rows, inputs, outputs) = (
            between(random, 1, 5),
            between(random, 1, 9),
            between(random, 1, 9),
        );
        let (ty, size) = TYPES[random.below(3)];
        let row = |b: isize, n: isize| b * n * size..(b + 1) * n * size;
        let step = |b: isize| Step {
            writes: row(b, outputs),
            reads: (b..rows).map(|b| row(b, inputs)).collect(),
        };
        vec![Case {
            line: format!(
                "FULLY_CONNECTED {ty}:{rows},{inputs} {ty}:{outputs},{inputs}!1 > {ty}:{rows},{outputs}"
            ),
            contract: Contract::Rows,
            pair: (0, 0),
            from_bytes: rows * inputs * size,
            to_bytes: rows * outputs * size,
            steps: (0..rows).map(step).collect(),
            exact: true,
            view_at: None,
        }]
    });
}

#[test]
fn elements_are_written_when_they_were_read() {
    check(3, 400, |random| {
        let (rows, columns) = (between(random, 1, 4), between(random, 1, 8));
        let (elements, (from, from_size), (to, to_size)) = (
            rows * columns,
            TYPES[random.below(3)],
            TYPES[random.below(3)],
        );
        let range = |i: isize, size: isize| i * size..(i + 1) * size;
        let moves = |size| {
            let moves = (0..elements).map(|i| (range(i, to_size), Some(range(i, size))));
            in_turn(moves.collect())
        };
        let (from_bytes, to_bytes) = (elements * from_size, elements * to_size);
        let case = |line: String, contract, pair, steps, exact| Case {
            line,
            contract,
            pair,
            from_bytes,
            to_bytes,
            steps,
            exact,
            view_at: None,
        };
        let all = 0..elements * from_size;
        let fixed = |_| Step {
            writes: 0..to_bytes,
            reads: vec![all.clone()],
        };
        let (a, b) = (
            format!("{from}:{rows},{columns}"),
            format!("{to}:{rows},{columns}"),
        );
        let mut cases = vec![
            case(
                format!("CAST {a} > {b}"),
                Contract::Elementwise,
                (0, 0),
                moves(from_size),
                true,
            ),
            case(
                format!("SOFTMAX {a} > {b}"),
                Contract::RowsInPlace,
                (0, 0),
                moves(from_size),
                true,
            ),
            case(
                format!("SVDF {a} > {b}"),
                Contract::Whole,
                (0, 0),
                Vec::new(),
                true,
            ),
            case(
                format!("SVDF {a} > {b}"),
                Contract::Apart,
                (0, 0),
                vec![fixed(())],
                true,
            ),
        ];
        if rows > 1 {
            let line = format!("ADD {from}:{columns} {a} > {b}");
            cases.push(case(
                line.clone(),
                Contract::Elementwise,
                (1, 0),
                moves(from_size),
                true,
            ));
            // Read again for each row.
            let row = 0..columns * from_size;
            cases.push(Case {
                from_bytes: columns * from_size,
                ..case(
                    line,
                    Contract::Elementwise,
                    (0, 0),
                    vec![Step {
                        writes: 0..to_bytes,
                        reads: vec![row],
                    }],
                    true,
                )
            });
        }
        cases
    });
}

/// Sizes of parts along an axis of a tensor.
struct Parts {
    whole: Vec<isize>,
    axis: usize,
    dims: Vec<isize>,
    ty: &'static str,
    size: isize,
}

impl Parts {
    fn random(random: &mut Random) -> Self {
        let rank = random.below(4) + 1;
        let axis = random.below(rank);
        let (ty, size) = TYPES[random.below(3)];
        let dims: Vec<isize> = (0..=random.below(3))
            .map(|_| between(random, 1, 3))
            .collect();
        let mut whole: Vec<isize> = (0..rank).map(|_| between(random, 1, 3)).collect();
        // Often with nothing before the axis.
        if random.below(2) == 0 {
            whole[..axis].fill(1);
        }
        whole[axis] = dims.iter().sum();
        Parts {
            whole,
            axis,
            dims,
            ty,
            size,
        }
    }

    fn outer(&self) -> isize {
        self.whole[..self.axis].iter().product()
    }

    fn inner(&self) -> isize {
        self.whole[self.axis + 1..].iter().product::<isize>() * self.size
    }

    fn bytes(&self) -> isize {
        self.whole.iter().product::<isize>() * self.size
    }

    fn shape(&self, part: usize) -> Vec<isize> {
        let mut shape = self.whole.clone();
        shape[self.axis] = self.dims[part];
        shape
    }

    fn before(&self, part: usize) -> isize {
        self.dims[..part].iter().sum::<isize>() * self.inner()
    }

    /// Pieces in order: which part, where in the whole, and where in the part.
    fn pieces(&self) -> Vec<(usize, Range<isize>, Range<isize>)> {
        let block = self.whole[self.axis] * self.inner();
        let mut pieces = Vec::new();
        for o in 0..self.outer() {
            for (part, dim) in self.dims.iter().enumerate() {
                let bytes = dim * self.inner();
                let at = o * block + self.before(part);
                pieces.push((part, at..at + bytes, o * bytes..(o + 1) * bytes));
            }
        }
        pieces
    }

    fn view(&self, part: usize) -> Option<isize> {
        let one = self.outer() == 1 || self.dims[part] == self.whole[self.axis];
        one.then_some(self.before(part))
    }

    fn joined(&self, line: String, contract: Contract) -> impl Iterator<Item = Case> + '_ {
        (0..self.dims.len()).map(move |part| {
            let pieces = self.pieces().into_iter();
            let moves = pieces.map(|(p, whole, own)| (whole, (p == part).then_some(own)));
            Case {
                line: line.clone(),
                contract,
                pair: (part, 0),
                from_bytes: self.shape(part).iter().product::<isize>() * self.size,
                to_bytes: self.bytes(),
                steps: in_turn(moves.collect()),
                exact: true,
                view_at: self.view(part),
            }
        })
    }

    fn parted(
        &self,
        line: String,
        contract: Contract,
        input: usize,
    ) -> impl Iterator<Item = Case> + '_ {
        (0..self.dims.len()).map(move |part| {
            let pieces = self.pieces().into_iter();
            let moves = pieces.map(|(p, whole, own)| match p == part {
                true => (own, Some(whole)),
                false => (0..0, Some(whole)),
            });
            Case {
                line: line.clone(),
                contract,
                pair: (input, part),
                from_bytes: self.bytes(),
                to_bytes: self.shape(part).iter().product::<isize>() * self.size,
                steps: in_turn(moves.collect()),
                exact: true,
                view_at: self.view(part).map(|at| -at),
            }
        })
    }
}

#[test]
fn parts_are_moved_piece_by_piece() {
    check(4, 400, |random| {
        let parts = Parts::random(random);
        let (ty, axis, count) = (parts.ty, parts.axis, parts.dims.len());
        let signed = match random.below(2) {
            0 => axis as isize,
            _ => axis as isize - parts.whole.len() as isize,
        };
        let shapes: Vec<String> = (0..count)
            .map(|k| format!("{ty}:{}", text(&parts.shape(k))))
            .collect();
        let shapes = shapes.join(" ");
        let whole = format!("{ty}:{}", text(&parts.whole));
        let sizes = text(&parts.dims);
        let join = format!("CONCATENATION {shapes} > {whole} axis={signed}");
        let part = format!(
            "SPLIT_V {whole} i32:{count}!{sizes} i32:1!{signed} > {shapes} num_splits={count}"
        );
        let mut cases: Vec<Case> = parts.joined(join, Contract::Concatenation).collect();
        cases.extend(parts.parted(part, Contract::Split, 0));
        let units = Parts {
            whole: parts.whole.clone(),
            dims: vec![1; parts.whole[axis] as usize],
            ..parts
        };
        let mut thin = parts.whole.clone();
        thin.remove(axis);
        let thin = vec![format!("{ty}:{}", text(&thin)); units.dims.len()].join(" ");
        let count = units.dims.len();
        let pack = format!("PACK {thin} > {whole} values_count={count} axis={signed}");
        let unpack = format!("UNPACK {whole} > {thin} num={count} axis={signed}");
        cases.extend(units.joined(pack, Contract::Pack));
        cases.extend(units.parted(unpack, Contract::Unpack, 0));
        let halves = vec![format!("{ty}:{}", text(&units.shape(0))); count].join(" ");
        let split = format!("SPLIT i32:1!{signed} {whole} > {halves} num_splits={count}");
        cases.extend(units.parted(split, Contract::Split, 1));
        cases
    });
}

#[test]
fn boxes_are_moved_upwards() {
    check(5, 600, |random| {
        let rank = random.below(4) + 1;
        let (ty, size) = TYPES[random.below(3)];
        let from: Vec<isize> = (0..rank).map(|_| between(random, 1, 5)).collect();
        let strided = random.below(2) == 0;
        // Of each dimension: start, count, step.
        let taken: Vec<[isize; 3]> = from
            .iter()
            .map(|&dim| {
                let start = random.below(dim as usize) as isize;
                let step = if strided { between(random, 1, 2) } else { 1 };
                let most = (dim - start + step - 1) / step;
                match random.below(3) {
                    0 => [0, (dim + step - 1) / step, step],
                    1 => [start, 1, step],
                    _ => [start, between(random, 1, most as usize), step],
                }
            })
            .collect();
        let to: Vec<isize> = taken.iter().map(|t| t[1]).collect();
        let mut starts = vec![0];
        let mut stride = from.iter().product::<isize>() * size;
        for (&dim, &[start, count, step]) in from.iter().zip(&taken) {
            stride /= dim;
            let more = |at: isize| (0..count).map(move |k| at + (start + k * step) * stride);
            starts = starts.into_iter().flat_map(more).collect();
        }
        let moves = starts.iter().enumerate().map(|(k, &at)| {
            let k = k as isize * size;
            (k..k + size, Some(at..at + size))
        });
        let contiguous = starts.windows(2).all(|pair| pair[1] - pair[0] == size);
        let list = |at: fn(&[isize; 3]) -> isize| text(&taken.iter().map(at).collect::<Vec<_>>());
        let begin = list(|t| t[0]);
        let (from_text, to_text) = (text(&from), text(&to));
        let (line, contract) = match strided {
            true => {
                // Every way to say where it ends.
                let mut end_mask = 0;
                let ends: Vec<isize> = taken
                    .iter()
                    .zip(&from)
                    .enumerate()
                    .map(|(axis, (&[start, count, step], &dim))| {
                        let end = start + (count - 1) * step + 1;
                        match random.below(3) {
                            0 if start + count * step >= dim => {
                                end_mask |= 1 << axis;
                                1
                            }
                            1 if end < dim => end - dim,
                            _ => end,
                        }
                    })
                    .collect();
                let (ends, steps) = (text(&ends), list(|t| t[2]));
                let line = format!(
                    "STRIDED_SLICE {ty}:{from_text} i32:{rank}!{begin} i32:{rank}!{ends} i32:{rank}!{steps} \
                     > {ty}:{to_text} end_mask={end_mask}"
                );
                (line, Contract::StridedSlice)
            }
            false => {
                let sizes = list(|t| t[1]);
                let line = format!(
                    "SLICE {ty}:{from_text} i32:{rank}!{begin} i64:{rank}!{sizes} > {ty}:{to_text}"
                );
                (line, Contract::Slice)
            }
        };
        vec![Case {
            line,
            contract,
            pair: (0, 0),
            from_bytes: from.iter().product::<isize>() * size,
            to_bytes: to.iter().product::<isize>() * size,
            steps: in_turn(moves.collect()),
            exact: true,
            view_at: contiguous.then(|| -starts[0]),
        }]
    });
}

#[test]
fn what_a_kernel_refuses_is_promised_nothing() {
    let lines = [
        (
            "CONV_2D i8:1,4,4,1 i8:1,3,3,1!1 > i8:1,3,4,1 stride_h=1 stride_w=1",
            "another size",
        ),
        (
            "CONV_2D i8:1,4,4,1 i8:1,3,3,1!1 > i8:1,4,4,1 stride_h=0 stride_w=1",
            "no stride",
        ),
        (
            "CONV_2D i8:1,4,4,1 i8:1,3,3,1!1 > i8:1,4,4,1 stride_h=-1 stride_w=1",
            "no stride",
        ),
        (
            "CONV_2D i8:1,4,4,1 i8:9!1 > i8:1,4,4,1 stride_h=1 stride_w=1",
            "no filter",
        ),
        (
            "CONV_2D i8:1,4,4,1 i8:1,3,3,1!1 > i8:16 stride_h=1 stride_w=1",
            "no image",
        ),
    ];
    for (line, why) in lines {
        let single = single::Single::parse(line);
        let kernels = [kernel("CONV_2D", Contract::Convolution { pixels: 1 })];
        let found = overlap_of(&single::build(&single), &kernels, 0, 0, 0, 0).unwrap();
        let outputs = single.outputs[0].split_once(':').unwrap().1;
        let bytes = outputs
            .split(',')
            .map(|d| d.parse::<usize>().unwrap())
            .product();
        assert_eq!(found.input_above_output, bytes, "{why}");
        assert_eq!(found.output_above_input, 16, "{why}");
        assert_eq!(found.view_at, None, "{why}");
    }
}

#[test]
fn a_reshape_is_a_view_of_its_first_input() {
    let single = single::Single::parse("RESHAPE i8:4,4 i32:1 > i8:16");
    let model = single::build(&single);
    let of = |input| overlap_of(&model, &[ops::RESHAPE], 0, 0, input, 0).unwrap();
    let values = Overlap {
        input_above_output: 0,
        output_above_input: 0,
        view_at: Some(0),
    };
    assert_eq!(of(0), values);
    let shape = Overlap {
        input_above_output: 16,
        output_above_input: 4,
        view_at: None,
    };
    assert_eq!(of(1), shape);
}

#[test]
fn operators_of_a_file_are_looked_up_at_any_alignment() {
    const SVDF: Kernel = Kernel::builtin(Code::SVDF, |_| Ok(()))
        .with_contract(Contract::Whole)
        .with_scratch(|node| Ok(node.input(0)?.len() * 4));
    let model = single::build(&single::Single::parse("SVDF i8:3,5 > i8:7"));
    for shift in 0..8 {
        let mut bytes = vec![0; shift];
        bytes.extend(&model);
        let model = &bytes[shift..];
        assert_eq!(scratch_of(model, &[SVDF], 0, 0), Ok(60));
        assert_eq!(
            scratch_of(model, &[kernel("SVDF", Contract::Apart)], 0, 0),
            Ok(0)
        );
        assert!(overlap_of(model, &[SVDF], 0, 0, 0, 0).unwrap().allows(0));
        assert!(overlap_of(model, &[SVDF], 0, 0, 1, 0).is_err());
        assert!(overlap_of(model, &[SVDF], 0, 0, 0, 1).is_err());
        assert!(overlap_of(model, &[SVDF], 0, 1, 0, 0).is_err());
        assert!(overlap_of(model, &[SVDF], 1, 0, 0, 0).is_err());
        assert!(overlap_of(model, &[], 0, 0, 0, 0).is_err());
    }
}

/// Every kernel with golden data, with an input and an output in one piece of memory.
#[test]
fn kernels_keep_their_promises() {
    let mut random = Random(6);
    let mut files = Vec::new();
    let (mut ran, mut refused) = (0, 0);
    for path in common::models("kernels") {
        let mut model = Planned::new(&std::fs::read(&path).unwrap());
        let expected = model.run_plain();
        let mut over = 0;
        // What SLICE does not read, its output may lie on at any distance.
        let is_part = stem(&path).starts_with("SLICE_");
        // Those of other subgraphs may run several times.
        let main = model.ops.iter().filter(|op| op.place.0 == 0).count();
        for op in 0..main {
            for (offsets, allowed) in overlapping(&model, op, &mut random) {
                match model.run(&offsets) {
                    Outcome::Refused(error) => {
                        let overlap = matches!(error, arenaplan_runtime::Error::PlanOverlap { .. });
                        assert!(
                            overlap && !allowed,
                            "{}: operator {op}: {error}",
                            stem(&path)
                        );
                        refused += 1;
                    }
                    found => {
                        assert!(
                            allowed || is_part,
                            "{}: operator {op}: {offsets:?} is accepted",
                            stem(&path)
                        );
                        assert!(
                            found == expected,
                            "{}: operator {op}: {offsets:?}",
                            stem(&path)
                        );
                        over += 1;
                    }
                }
            }
        }
        ran += over;
        if over > 0 {
            files.push(stem(&path).to_owned());
        }
    }
    println!("{ran} right, {refused} refused, of {} files", files.len());
    assert!(ran > 4000 && refused > 4000, "{ran}, {refused}");
    for name in [
        "ADD_int8",
        "AVERAGE_POOL_2D_int8",
        "CONCATENATION_int8",
        "CONV_2D_int8",
        "CONV_2D_int16",
        "CONV_2D_float32",
        "DEPTHWISE_CONV_2D_int8",
        "FULLY_CONNECTED_int8",
        "MIRROR_PAD_int8",
        "MAX_POOL_2D_float32",
        "PACK_int8",
        "PADV2_int8",
        "PAD_float32",
        "QUANTIZE_",
        "RESHAPE_",
        "SLICE_int8",
        "SOFTMAX_int8",
        "SPLIT_V_",
        "STRIDED_SLICE_int8",
        "SVDF_int8",
        "UNPACK_int8",
    ] {
        assert!(
            files.iter().any(|file| file.starts_with(name)),
            "{name} is not tested"
        );
    }
}

/// Plans in which an input and an output of the operator have bytes in common, and whether they are to be accepted.
fn overlapping(model: &Planned, op: usize, random: &mut Random) -> Vec<(Vec<i32>, bool)> {
    let op = &model.ops[op];
    let mut plans = Vec::new();
    let lone = |t: &usize| {
        let uses = model.ops.iter().flat_map(|op| op.inputs.iter().flatten());
        model.bytes[*t] > 0 && !model.outputs.contains(t) && uses.filter(|&u| u == t).count() == 1
    };
    let inputs = op.inputs.iter().enumerate();
    let inputs = inputs.filter_map(|(i, t)| t.filter(lone).map(|t| (i, t)));
    for (i, x) in inputs {
        for (o, &y) in op
            .outputs
            .iter()
            .enumerate()
            .filter(|&(_, &y)| model.bytes[y] > 0)
        {
            let promise = model.promise(op, i, o);
            let step = model.element[x].max(model.element[y]) as isize;
            let (x_bytes, y_bytes) = (model.bytes[x] as isize, model.bytes[y] as isize);
            let above = (promise.input_above_output as isize + step - 1) / step * step;
            let below = (promise.output_above_input as isize + step - 1) / step * step;
            let mut distances = vec![
                above,
                above + step,
                above - step,
                above / step / 2 * step,
                -below,
                step - below,
                -step,
            ];
            distances.extend(promise.view_at);
            for _ in 0..2 {
                let steps = |bytes: isize| random.below((bytes / step) as usize + 1) as isize;
                let mut steps = steps;
                distances.push(above + step * steps((y_bytes - above).max(0)));
                distances.push(step * (steps(x_bytes + y_bytes)) - x_bytes / step * step);
            }
            distances.sort_unstable();
            distances.dedup();
            for d in distances
                .into_iter()
                .filter(|&d| d > -x_bytes && d < y_bytes)
            {
                let mut offsets = model.slots();
                let free = model.planned().len() + 1;
                offsets[x] = (free * model.slot()) as i32;
                offsets[y] = offsets[x] - d as i32;
                plans.push((offsets, promise.allows(d)));
            }
        }
    }
    plans
}
