//! The order in which a kernel reads and writes, and what its contract promises, compared.

use std::ops::Range;

use arenaplan_runtime::contract::{Overlap, overlap_of};
use arenaplan_runtime::{Contract, Kernel};

use crate::common::Random;
use crate::single;

/// Some bytes of the output are written, after the input's `own` bytes were read for the last time; bytes in `reads`, which
/// are all that this step or a later one reads, must still be as they were.
pub(crate) struct Step {
    pub(crate) writes: Range<isize>,
    pub(crate) reads: Vec<Range<isize>>,
}

/// Steps that each read, then write.
pub(crate) fn in_turn(moves: Vec<(Range<isize>, Option<Range<isize>>)>) -> Vec<Step> {
    let later = |at: usize| moves[at + 1..].iter().filter_map(|(_, read)| read.clone());
    let step = |at: usize| Step {
        writes: moves[at].0.clone(),
        reads: later(at).collect(),
    };
    (0..moves.len()).map(step).collect()
}

/// Whether nothing is overwritten that is still to be read, with the input `d` bytes above the output.
pub(crate) fn right(steps: &[Step], d: isize) -> bool {
    let apart = |a: &Range<isize>, b: &Range<isize>| a.end <= b.start + d || b.end + d <= a.start;
    let mut steps = steps.iter().filter(|step| !step.writes.is_empty());
    steps.all(|s| s.reads.iter().all(|r| r.is_empty() || apart(&s.writes, r)))
}

/// A case: a model of one operator, and what its kernel does.
pub(crate) struct Case {
    pub(crate) line: String,
    pub(crate) contract: Contract,
    pub(crate) pair: (usize, usize),
    pub(crate) from_bytes: isize,
    pub(crate) to_bytes: isize,
    pub(crate) steps: Vec<Step>,
    /// Whether the distance of an input above is the least one that is right.
    pub(crate) exact: bool,
    /// Where the operator leaves the bytes as they are.
    pub(crate) view_at: Option<isize>,
}

pub(crate) fn kernel(name: &str, contract: Contract) -> Kernel {
    let (code, _) = arenaplan_runtime::CODES
        .iter()
        .find(|(_, known)| *known == name)
        .unwrap();
    Kernel::builtin(*code, |_| Ok(())).with_contract(contract)
}

impl Case {
    fn promise(&self) -> Overlap {
        let single = single::Single::parse(&self.line);
        let model = single::build(&single);
        let kernels = [kernel(single.operator, self.contract)];
        let (input, output) = self.pair;
        overlap_of(&model, &kernels, 0, 0, input, output).unwrap()
    }

    /// Checks the promise; whether it allows any overlap, and whether it forbids any.
    fn check(&self) -> (bool, bool) {
        let promise = self.promise();
        let (line, pair) = (&self.line, self.pair);
        let above = promise.input_above_output as isize;
        let below = promise.output_above_input as isize;
        assert!(
            above <= self.to_bytes && below <= self.from_bytes,
            "{line} {pair:?}"
        );
        for d in -self.from_bytes - 1..=self.to_bytes + 1 {
            if promise.allows(d) {
                assert!(
                    right(&self.steps, d),
                    "{line} {pair:?}: not at {d}, {promise:?}"
                );
            }
        }
        if self.exact && above > 0 {
            let less = above - 1;
            assert!(
                !right(&self.steps, less),
                "{line} {pair:?}: {less} is enough"
            );
        }
        assert_eq!(promise.view_at, self.view_at, "{line} {pair:?}");
        (above < self.to_bytes, above > 0)
    }
}

/// Checks many cases, and that they are not all of one kind.
pub(crate) fn check(seed: u64, rounds: usize, case: impl Fn(&mut Random) -> Vec<Case>) {
    let mut random = Random(seed);
    let (mut some, mut not_all, mut views) = (0, 0, 0);
    for _ in 0..rounds {
        for case in case(&mut random) {
            let (allows, forbids) = case.check();
            some += usize::from(allows);
            not_all += usize::from(forbids);
            views += usize::from(case.view_at.is_some());
        }
    }
    assert!(some > rounds / 8, "{some} of {rounds} allow anything");
    assert!(
        not_all + views > rounds / 8,
        "{not_all} of {rounds} forbid anything"
    );
}

pub(crate) const TYPES: [(&str, isize); 3] = [("i8", 1), ("i16", 2), ("f32", 4)];

pub(crate) fn between(random: &mut Random, low: usize, high: usize) -> isize {
    (low + random.below(high - low + 1)) as isize
}

pub(crate) fn text(dims: &[isize]) -> String {
    let dims: Vec<String> = dims.iter().map(isize::to_string).collect();
    dims.join(",")
}
