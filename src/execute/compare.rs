//! A planned model beside the same one without its plan.
//!
//! The planned one runs in memory that is spoilt: before each operator, every byte of the head that belongs to no tensor
//! in use is set to noise; before the first one that is all but the inputs. What a tensor loses by the plan is then seen in
//! the outputs, and so is what an operator expects to find where nothing is kept.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use arenaplan_runtime::{Observer, Session, ViewMut};
use arenaplan_schema::{patch, view};

use super::{
    ExecuteError, Figures, Memory, Noise, Setting, Source, Values, outputs, said, set, start,
};
use crate::graph::{Graph, OpId, Storage};
use crate::lifetimes::Lifetimes;
use crate::model::Model;

/// What a comparison found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// How many invokes were run.
    pub invokes: usize,
    /// Bytes of all outputs of an invoke.
    pub output_bytes: usize,
    /// Whether some invoke had other outputs than the one before; where none has, equal outputs say little.
    pub vary: bool,
    /// The first difference.
    pub difference: Option<Difference>,
}

/// An element of an output that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The invoke, from 0.
    pub invoke: usize,
    /// The output, from 0.
    pub output: usize,
    /// Its first element that differs, in row-major order.
    pub element: usize,
    /// How many of its elements differ.
    pub count: usize,
    /// The element with the plan.
    pub planned: String,
    /// The element without it.
    pub unplanned: String,
}

/// The model without any plan: as it was before it was planned here, or with the plan of another tool taken out.
///
/// # Errors
/// A file that cannot be patched.
pub fn without_plan(planned: &[u8]) -> Result<Cow<'_, [u8]>, patch::PatchError> {
    let original = patch::original_of(planned).unwrap_or(Cow::Borrowed(planned));
    let has_plan = view::Model::new(&original)
        .and_then(|m| m.offline_plan())
        .map_or(true, |plan| plan.is_some());
    match has_plan {
        false => Ok(original),
        true => patch::graft(&original, &patch::Edit::default()).map(Cow::Owned),
    }
}

/// Runs `planned` and `unplanned` with the same inputs, and compares the outputs byte for byte, to the first difference.
///
/// # Errors
/// A model that the runtime cannot run, or two models with other inputs or outputs.
pub fn compare(
    planned: &[u8],
    unplanned: &[u8],
    setting: &Setting<'_>,
) -> Result<Comparison, ExecuteError> {
    let mut comparison = Comparison {
        invokes: setting.invokes,
        output_bytes: 0,
        vary: false,
        difference: None,
    };
    let mut expected = Vec::new();
    super::run(unplanned, setting, |_, values| expected.push(values))?;
    comparison.output_bytes = expected
        .first()
        .map_or(0, |values| values.iter().map(|v| v.bytes.len()).sum());
    comparison.vary = expected.windows(2).any(|two| two[0] != two[1]);

    let graph = Graph::read(Model::parse(planned)?)?;
    let model = Memory::holding(planned);
    let mut arena = Memory::new(0);
    let mut it = start(&graph, &model, &mut arena, setting)?;
    let poison = Poison::new(&graph, it.session())?;
    let figures = Figures::of(&it).map_err(|e| said(&graph, e))?;
    let mut source = Source::new(&setting.feed, &figures.inputs)?;
    for (invoke, expected) in expected.iter().enumerate() {
        for (index, port) in figures.inputs.iter().enumerate() {
            set(&mut it, index, &source.next(index, port)?, &graph)?;
        }
        it.invoke_observed(&poison).map_err(|e| said(&graph, e))?;
        let found = outputs(&mut it, &figures.outputs, &graph)?;
        if let Some(difference) = difference(invoke, &found, expected) {
            comparison.difference = Some(difference);
            break;
        }
    }
    Ok(comparison)
}

/// The first difference between the outputs of an invoke.
fn difference(invoke: usize, planned: &[Values], unplanned: &[Values]) -> Option<Difference> {
    if planned.len() != unplanned.len() {
        return Some(Difference {
            invoke,
            output: planned.len().min(unplanned.len()),
            element: 0,
            count: 0,
            planned: String::new(),
            unplanned: String::new(),
        });
    }
    let mut pairs = planned.iter().zip(unplanned).enumerate();
    let (output, (found, expected)) = pairs.find(|(_, (a, b))| a != b)?;
    let size = expected.element_type.bytes().unwrap_or(1);
    let chunks = |values: &Values| values.bytes.chunks(size).map(<[u8]>::to_vec).collect();
    let (found_elements, expected_elements): (Vec<Vec<u8>>, Vec<Vec<u8>>) =
        (chunks(found), chunks(expected));
    let differs = |&k: &usize| found_elements.get(k) != expected_elements.get(k);
    let all = 0..found_elements.len().max(expected_elements.len());
    let element = all.clone().find(differs).unwrap_or(0);
    Some(Difference {
        invoke,
        output,
        element,
        count: all.filter(differs).count(),
        planned: found.element(element),
        unplanned: expected.element(element),
    })
}

/// Sets what is not in use to noise.
struct Poison {
    /// For each operator, the bytes of the head that hold something when it starts, in order.
    in_use: BTreeMap<OpId, Vec<Range<usize>>>,
    noise: RefCell<Noise>,
}

impl Poison {
    fn new(graph: &Graph<'_>, session: &Session<'_, '_>) -> Result<Self, ExecuteError> {
        let lifetimes = Lifetimes::of(graph)?;
        let mut in_use = BTreeMap::<OpId, Vec<Range<usize>>>::new();
        for visit in &lifetimes.visits {
            // An operator that several calls reach needs what any of them has.
            let ranges = in_use.entry(visit.operator).or_default();
            for tensor in &graph.tensors {
                let span = lifetimes.tensor(tensor.id);
                let is_in_use = span.first < visit.clock && visit.clock <= span.last;
                if is_in_use || tensor.storage == Storage::Variable {
                    let start = session.head_offset(tensor.id.0);
                    ranges.extend(start.map(|start| start..start + tensor.bytes as usize));
                }
            }
        }
        for ranges in in_use.values_mut() {
            ranges.sort_by_key(|range| (range.start, range.end));
        }
        Ok(Self {
            in_use,
            noise: RefCell::new(Noise::new(u64::MAX / 2)),
        })
    }
}

impl Observer for Poison {
    fn before(&self, subgraph: u32, operator: u32, head: ViewMut<'_, u8>) {
        let id = OpId {
            subgraph,
            index: operator,
        };
        let mut noise = self.noise.borrow_mut();
        let mut spoil = |start: usize, end: usize| {
            for at in (start..end).step_by(8) {
                for (at, byte) in (at..end).zip(noise.word().to_le_bytes()) {
                    head.set(at, byte);
                }
            }
        };
        let mut at = 0;
        for range in self.in_use.get(&id).into_iter().flatten() {
            spoil(at, range.start);
            at = at.max(range.end);
        }
        spoil(at, head.len());
    }

    fn after(&self, _: u32, _: u32, _: ViewMut<'_, u8>) {}
}
