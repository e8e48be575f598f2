//! What a model needs when: its operators with the bytes alive at each, and who sets the peak.

use crate::aliasing::Promises;
use crate::error::Error;
use crate::graph::{Graph, OpId, TensorId};
use crate::interference::{Interference, Rules};
use crate::lifetimes::{Lifetimes, Span, Visit};
use crate::plan::Options;
use crate::report::Report;
use crate::scratch::{Request, Scratch};
use crate::stored::{Setting, StoredPlan, Verdict};
use crate::stripes::{self, Seen};
use crate::tflm::{self, ALIGNMENT, Simulation};

/// One operator as the clock meets it.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Clock, operator, nesting.
    pub visit: Visit,
    /// Bytes of the tensors alive, each rounded up to 16.
    pub live_bytes: u64,
    /// Bytes of scratch memory alive, each request rounded up to 16.
    pub scratch_bytes: u64,
}

/// What is alive at the operator that needs most.
#[derive(Clone, Debug)]
pub struct Peak {
    /// The clock there.
    pub clock: i32,
    /// The operator; `None` when the most is alive before the first one.
    pub operator: Option<OpId>,
    /// Bytes alive, scratch included.
    pub bytes: u64,
    /// Tensors alive, largest first.
    pub tensors: Vec<TensorId>,
    /// Scratch requests alive, largest first.
    pub scratch: Vec<Request>,
}

/// A model taken apart.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// Spans of all tensors and operators.
    pub lifetimes: Lifetimes,
    /// Operators in the order of the clock.
    pub steps: Vec<Step>,
    /// Of a file with row stripes and a right plan, the bytes that must be there at each step, scratch included, with as much
    /// shared as a plan for the target may; bytes that die before their tensor does count as long as they are needed.
    pub needed_bytes: Option<Vec<u64>>,
    /// The row stripes in the file.
    pub stripes: Option<Seen>,
    /// Where the most is alive.
    pub peak: Peak,
    /// Scratch requests.
    pub scratch: Scratch,
    /// The plan in the file, judged.
    pub stored: Verdict,
    /// Where TFLM puts each tensor: with the stored plan when that can be used, else by its own planning.
    pub offsets: Vec<Option<u64>>,
    /// The figures.
    pub report: Report,
}

/// Takes the model of `graph` apart. Of the options, only target, scratch and alignment count.
///
/// # Errors
/// Subgraphs that recurse, sizes that do not add up, a scratch file that does not fit.
pub fn inspect(graph: &Graph<'_>, options: &Options) -> Result<Inspection, Error> {
    let lifetimes = Lifetimes::of(graph)?;
    let scratch = options.scratch_of(graph)?;
    let tensors: Vec<(Span, u64)> = graph
        .tensors
        .iter()
        .filter(|t| t.is_planned())
        .map(|t| (lifetimes.tensor(t.id), t.bytes.next_multiple_of(ALIGNMENT)))
        .collect();
    let scratches: Vec<(Span, u64)> = scratch
        .requests()
        .iter()
        .map(|r| {
            (
                lifetimes.operator(r.operator),
                r.bytes.next_multiple_of(ALIGNMENT),
            )
        })
        .collect();
    let live = Levels::new(&tensors, lifetimes.end);
    let live_scratch = Levels::new(&scratches, lifetimes.end);
    let steps = lifetimes
        .visits
        .iter()
        .map(|&visit| Step {
            visit,
            live_bytes: live.at(visit.clock),
            scratch_bytes: live_scratch.at(visit.clock),
        })
        .collect();
    let clock = (-1..=lifetimes.end)
        .rev()
        .max_by_key(|&c| live.at(c) + live_scratch.at(c))
        .unwrap_or(0);
    let mut alive: Vec<_> = graph
        .tensors
        .iter()
        .filter(|t| t.is_planned() && lifetimes.tensor(t.id).contains(clock))
        .collect();
    alive.sort_by_key(|t| (std::cmp::Reverse(t.bytes), t.id));
    let mut requests: Vec<_> = scratch
        .requests()
        .iter()
        .copied()
        .filter(|r| r.bytes > 0 && lifetimes.operator(r.operator).contains(clock))
        .collect();
    requests.sort_by_key(|r| (std::cmp::Reverse(r.bytes), r.operator, r.index));
    let peak = Peak {
        clock,
        operator: lifetimes
            .visits
            .iter()
            .rev()
            .find(|v| v.clock <= clock)
            .map(|v| v.operator),
        bytes: live.at(clock) + live_scratch.at(clock),
        tensors: alive.iter().map(|t| t.id).collect(),
        scratch: requests,
    };

    let stored = StoredPlan::read(graph).judged(
        graph,
        &Setting {
            lifetimes: &lifetimes,
            scratch: &scratch,
            align: options.align,
            keep: &[],
            kernels: options.kernels(),
        },
    );
    let unplanned = without_plan(graph, options)?;
    // What the device makes of the operators that are there.
    let as_it_is = match &stored.simulation {
        None if graph.is_rewritten() => {
            let scratch = options.scratch_alone(graph)?;
            Some(tflm::simulate(graph, &lifetimes, &scratch, None)?)
        }
        _ => None,
    };
    let device = as_it_is.as_ref().unwrap_or(&unplanned);
    let used = stored.simulation.as_ref().unwrap_or(device);
    let offsets = graph
        .tensors
        .iter()
        .map(|t| used.tensor(t.id).map(|p| p.offset))
        .collect();
    let mut report = Report::of_file(graph, options, &lifetimes, &scratch, &stored, device)?;
    report.greedy_head_bytes = unplanned.head;
    let needed_bytes = match graph.is_rewritten() && stored.is_right() {
        true => Some(needed(graph, options, &lifetimes, &scratch)?),
        false => None,
    };
    Ok(Inspection {
        lifetimes,
        steps,
        needed_bytes,
        stripes: stripes::seen(graph),
        peak,
        scratch,
        offsets,
        stored,
        report,
    })
}

/// The bytes that must be there at each operator, as the planner counts them.
fn needed(
    graph: &Graph<'_>,
    options: &Options,
    lifetimes: &Lifetimes,
    scratch: &Scratch,
) -> Result<Vec<u64>, Error> {
    let rules = Rules {
        align: options.alignment(),
        online: Some(scratch),
        promises: &Promises::allowed(graph, options),
        ..Rules::tensors_alone()
    };
    let clocks: Vec<i32> = lifetimes.visits.iter().map(|v| v.clock).collect();
    Interference::needed(graph, lifetimes, rules, &clocks)
}

/// What TFLM makes of the model without a plan of ours: with the operators that were there before, where they were.
pub(crate) fn without_plan(graph: &Graph<'_>, options: &Options) -> Result<Simulation, Error> {
    let original = graph.in_original_order();
    let scratch = options.scratch_alone(&original)?;
    tflm::simulate(&original, &Lifetimes::of(&original)?, &scratch, None)
}

/// Sums of what is alive at each clock value from -1 to the end.
struct Levels(Vec<u64>);

impl Levels {
    fn new(spans: &[(Span, u64)], end: i32) -> Self {
        let mut change = vec![0i128; end as usize + 3];
        for &(span, bytes) in spans {
            change[(span.first + 1) as usize] += i128::from(bytes);
            change[(span.last + 2) as usize] -= i128::from(bytes);
        }
        let mut sum = 0i128;
        let levels = change.iter().map(|c| {
            sum += c;
            u64::try_from(sum).unwrap_or(0)
        });
        Self(levels.collect())
    }

    fn at(&self, clock: i32) -> u64 {
        self.0[(clock + 1) as usize]
    }
}
