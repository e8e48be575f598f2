//! What PAD, PADV2 and MIRROR_PAD promise: against their order, over positions, and by the kernels themselves in overlapping
//! memory, for random shapes.
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

use arenaplan_runtime::contract::{Overlap, overlap_of};
use arenaplan_runtime::{Contract, Kernel, ops};
use common::Random;
use orders::{Case, TYPES, between, check, in_turn, kernel, text};
use planned::{Outcome, Planned};

/// A tensor and its border.
struct Border {
    operator: &'static str,
    /// Of a mirror image: whether the outermost elements are left out.
    reflect: isize,
    from: Vec<isize>,
    /// Before and behind, for each dimension.
    pads: Vec<[isize; 2]>,
    ty: &'static str,
    size: isize,
}

impl Border {
    /// With at most `most` elements in the output.
    fn random(random: &mut Random, most: isize) -> Self {
        let (ty, size) = TYPES[random.below(3)];
        let operator = ["PAD", "PADV2", "MIRROR_PAD"][random.below(3)];
        let reflect = random.below(2) as isize;
        loop {
            let rank = random.below(5) + 1;
            let from: Vec<isize> = (0..rank).map(|_| between(random, 1, 4)).collect();
            // Often some dimensions have no border, and sometimes none has.
            let bare = random.below(4);
            let pads = from.iter().map(|&dim| {
                let limit = match operator {
                    "MIRROR_PAD" => (dim - reflect).min(2) as usize,
                    _ => 2,
                };
                [0; 2].map(|_| match random.below(4) < bare {
                    true => 0,
                    false => between(random, 0, limit),
                })
            });
            let border = Border {
                operator,
                reflect,
                pads: pads.collect(),
                from,
                ty,
                size,
            };
            if border.to().iter().product::<isize>() <= most {
                return border;
            }
        }
    }

    fn to(&self) -> Vec<isize> {
        let dims = self.from.iter().zip(&self.pads);
        dims.map(|(dim, [before, after])| before + dim + after)
            .collect()
    }

    fn is_mirror(&self) -> bool {
        self.operator == "MIRROR_PAD"
    }

    fn line(&self) -> String {
        let (ty, rank) = (self.ty, self.from.len());
        let (from, to) = (text(&self.from), text(&self.to()));
        let pads = text(&self.pads.concat());
        let more = match self.operator {
            "PADV2" => format!(" {ty}:1/1!7"),
            _ => String::new(),
        };
        let mode = match self.is_mirror() {
            true => format!(" mode={}", 1 - self.reflect),
            false => String::new(),
        };
        format!(
            "{} {ty}:{from}/1 i32:{rank},2!{pads}{more} > {ty}:{to}/1{mode}",
            self.operator
        )
    }

    /// Indices of the input along an axis, from which the output's come; none for a border that is not from the input.
    fn sources(&self, axis: usize) -> Vec<Option<isize>> {
        let (dim, [before, after]) = (self.from[axis], self.pads[axis]);
        let last = dim - 1;
        let mirrored = |index: isize| self.is_mirror().then_some(index);
        let mut all: Vec<Option<isize>> = (0..before)
            .map(|k| mirrored(k + self.reflect))
            .rev()
            .collect();
        all.extend((0..dim).map(Some));
        all.extend((0..after).map(|k| mirrored(last - k - self.reflect)));
        all
    }

    /// What is written in order, and what is read for it, in bytes.
    fn moves(&self) -> Vec<(Range<isize>, Option<Range<isize>>)> {
        // Dimensions without a border, from the last on, are within one piece.
        let bare = self.pads.iter().rev().take_while(|pads| **pads == [0; 2]);
        let outer = self.from.len() - bare.count();
        let piece = self.from[outer..].iter().product::<isize>() * self.size;
        let mut pieces = vec![Some(0)];
        for axis in 0..outer {
            let sources = self.sources(axis);
            let inner = |at: Option<isize>| {
                let place = move |i: Option<isize>| Some(at? * self.from[axis] + i?);
                sources.iter().map(move |&i| place(i)).collect::<Vec<_>>()
            };
            pieces = pieces.into_iter().flat_map(inner).collect();
        }
        let place = |(o, i): (usize, Option<isize>)| {
            let bytes = |k: isize| k * piece..(k + 1) * piece;
            (bytes(o as isize), i.map(bytes))
        };
        let mut moves: Vec<_> = pieces.into_iter().enumerate().map(place).collect();
        if !self.is_mirror() {
            // The pieces of a row go together.
            let row = outer.checked_sub(1).map_or(1, |axis| self.from[axis]) * piece;
            let mut rows: Vec<(Range<isize>, Option<Range<isize>>)> = Vec::new();
            for (to, from) in moves {
                match (rows.last_mut(), &from) {
                    (Some((last, Some(read))), Some(from)) if from.start % row != 0 => {
                        (last.end, read.end) = (to.end, from.end);
                    }
                    _ => rows.push((to, from)),
                }
            }
            moves = rows;
        }
        moves
    }

    fn bytes(&self, dims: &[isize]) -> isize {
        dims.iter().product::<isize>() * self.size
    }

    fn case(&self) -> Case {
        Case {
            line: self.line(),
            contract: match self.is_mirror() {
                true => Contract::MirrorPadding,
                false => Contract::Padding,
            },
            pair: (0, 0),
            from_bytes: self.bytes(&self.from),
            to_bytes: self.bytes(&self.to()),
            steps: in_turn(self.moves()),
            exact: true,
            view_at: None,
        }
    }
}

#[test]
fn borders_are_written_in_order() {
    check(11, 600, |random| vec![Border::random(random, 60).case()]);
}

/// With the kernels' own check of the plan switched off: any distance that is promised computes what is computed apart, and
/// one element less does not, where values differ.
#[test]
fn kernels_are_right_as_close_as_promised_and_not_closer() {
    const ANYWHERE: [Kernel; 3] = [
        ops::PAD.with_contract(Contract::Whole),
        ops::PADV2.with_contract(Contract::Whole),
        ops::MIRROR_PAD.with_contract(Contract::Whole),
    ];
    let mut random = Random(12);
    let (mut right, mut wrong, mut harmless) = (0, 0, 0);
    for _ in 0..400 {
        let border = Border::random(&mut random, 200);
        let line = border.line();
        let mut model = Planned::new(&single::build(&single::Single::parse(&line)));
        let promise = model.promise(&model.ops[0], 0, 0);
        let expected = model.run_plain();
        assert!(
            matches!(expected, Outcome::Ran(Ok(_))),
            "{line}: {expected:?}"
        );
        let (x, y) = (model.inputs[0], model.outputs[0]);
        let at = |model: &mut Planned, kernels: &[Kernel], d: isize| {
            let mut offsets = model.slots();
            offsets[x] = (3 * model.slot()) as i32;
            offsets[y] = offsets[x] - d as i32;
            model.run_with(kernels, &offsets)
        };
        let (from, to) = (border.bytes(&border.from), border.bytes(&border.to()));
        let above = promise.input_above_output as isize;
        let mut distances = vec![above, (above + border.size).min(to), -from];
        distances.push(
            above + random.below(((to - above) / border.size) as usize + 1) as isize * border.size,
        );
        if promise.output_above_input == 0 {
            distances.extend([0, -border.size]);
        }
        for d in distances {
            let found = at(&mut model, ops::ALL, d);
            assert!(found == expected, "{line}: {d}: {found:?}");
            right += 1;
        }
        if above > 0 {
            let less = above - border.size;
            assert!(
                matches!(at(&mut model, ops::ALL, less), Outcome::Refused(_)),
                "{line}"
            );
            match at(&mut model, &ANYWHERE, less) == expected {
                true => harmless += 1,
                false => wrong += 1,
            }
        }
    }
    println!("{right} right, {wrong} wrong one element closer, {harmless} not");
    // A border of zeros, or an image of one element, may be what it is written over.
    assert!(
        right > 1500 && wrong > 200 && harmless < wrong / 10,
        "{right}, {wrong}, {harmless}"
    );
}

fn promised(line: &str, contract: Contract) -> Overlap {
    let single = single::Single::parse(line);
    let kernels = [kernel(single.operator, contract)];
    overlap_of(&single::build(&single), &kernels, 0, 0, 0, 0).unwrap()
}

#[test]
fn distances_by_hand() {
    let of = |line: &str| {
        let contract = match line.starts_with("MIRROR") {
            true => Contract::MirrorPadding,
            false => Contract::Padding,
        };
        let found = promised(line, contract);
        [found.input_above_output, found.output_above_input]
    };
    // 3 x 3 in 5 x 5: the last row goes from 6 to 16.
    assert_eq!(of("PAD i8:3,3 i32:2,2!1,1,1,1 > i8:5,5"), [10, 9]);
    // As an image of int16 with two channels, behind which nothing comes: from 6 * 4 to 8 * 4.
    let line = "PAD i16:1,3,3,2 i32:4,2!0,0,0,1,0,1,0,0 > i16:1,4,4,2";
    assert_eq!(of(line), [8, 36]);
    // All rows in one piece, behind 4 bytes, and before them.
    assert_eq!(of("PAD i8:1,3,4 i32:3,2!0,0,1,1,0,0 > i8:1,5,4"), [4, 12]);
    assert_eq!(of("PAD i8:1,3,4 i32:3,2!0,0,0,2,0,0 > i8:1,5,4"), [0, 0]);
    assert_eq!(of("PAD i8:3,4 i64:2,2!0 > i8:3,4"), [0, 0]);
    // 1 0 1 2 1: element 1 is read again after four elements.
    assert_eq!(of("MIRROR_PAD i8:3 i32:1,2!1,1 > i8:5 mode=0"), [3, 3]);
    // 0 0 1 2 2: element 2 after four.
    assert_eq!(of("MIRROR_PAD i8:3 i32:1,2!1,1 > i8:5 mode=1"), [2, 3]);
    assert_eq!(of("MIRROR_PAD i8:3 i32:1,2!2,0 > i8:5 mode=0"), [2, 3]);
    assert_eq!(of("MIRROR_PAD f32:3,2 i32:2,2!0 > f32:3,2 mode=0"), [0, 0]);
}

#[test]
fn what_is_refused_is_promised_nothing() {
    for (line, why) in [
        ("PAD i8:3,3 i32:2,2!1,1,1,1 > i8:5,6", "another size"),
        ("PAD i8:3,3 i32:2,2!-1,3,1,1 > i8:5,5", "no padding"),
        ("PAD i8:3,3 i32:2!1,1 > i8:5,5", "too few paddings"),
        ("PAD i8:3,3 i32:3,2!1 > i8:5,5", "too many paddings"),
        ("PAD i8:3,3 i32:2,2!1 > u8:5,5", "another type"),
        ("PAD i8:3,3 i32:2,2 > i8:5,5", "unknown paddings"),
        ("PAD i8:3,3 i16:2,2!1 > i8:5,5", "paddings of a type"),
        ("PAD i8:3,3 i32:2,2!1 > i16:5,5", "another type"),
        ("PAD i8:3,3 i32:2,2!1 > i8:25", "another rank"),
        (
            "PAD i8:1,1,1,1,3,3 i32:6,2!0,0,0,0,0,0,0,0,1 > i8:1,1,1,1,5,5",
            "six dimensions",
        ),
        (
            "MIRROR_PAD i8:3 i32:1,2!0,3 > i8:6 mode=0",
            "more than there is",
        ),
        (
            "MIRROR_PAD i8:3 i32:1,2!0,4 > i8:7 mode=1",
            "more than there is",
        ),
    ] {
        let contract = match line.starts_with("MIRROR") {
            true => Contract::MirrorPadding,
            false => Contract::Padding,
        };
        let found = promised(line, contract);
        let bytes = |tensor: &str| {
            let (ty, dims) = tensor.split_once(':').unwrap();
            let dims = dims.split(',').map(|d| d.parse::<usize>().unwrap());
            dims.product::<usize>() * if ty == "i16" { 2 } else { 1 }
        };
        let single = single::Single::parse(line);
        let none = Overlap {
            input_above_output: bytes(single.outputs[0]),
            output_above_input: bytes(single.inputs[0]),
            view_at: None,
        };
        assert_eq!(found, none, "{why}");
    }
}
