//! What a search finds, in the terms of the file.

use std::fmt;

use super::kernels::{Kernels, Mode};
use super::net::{Net, Reason};
use super::search::{self, Budget, Goal};
use super::spent::Costs;
use crate::aliasing::Level;
use crate::error::Error;
use crate::graph::Graph;
use crate::plan::{Options, Stripes};
use crate::text::thousands;

/// A net with stripes, and what it takes.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The net.
    pub(crate) net: Net,
    /// What was cut, in this order.
    pub(crate) regions: Vec<Cut>,
    /// Estimated bytes of the head: no plan is expected to be below.
    pub(crate) least: u64,
    /// Estimated bytes that the tail has more.
    pub(crate) extra_tail: i64,
    /// Multiplications with weights of the file.
    pub(crate) macs: u64,
    /// How many more there are now.
    pub(crate) extra_macs: i64,
    /// Estimated instructions of the file.
    pub(crate) instructions: u64,
    /// How many more there are now.
    pub(crate) extra_instructions: i64,
}

/// A region that was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The first and the last operator of the file in it.
    pub(crate) operators: (u32, u32),
    /// How many layers.
    pub(crate) layers: usize,
    /// The rows of the result at which it is cut.
    pub(crate) cuts: Vec<i64>,
}

/// Why nothing was found.
pub(crate) struct Nothing(String);

impl fmt::Display for Nothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Looks for regions to cut.
///
/// # Errors
/// [`Error::NoSuchTensor`] when the options name one that does not exist.
pub(crate) fn search(
    graph: &Graph<'_>,
    options: &Options,
) -> Result<Result<Vec<Found>, Nothing>, Error> {
    let mut kept = Vec::new();
    for name in &options.keep {
        kept.push(graph.find_tensor(name)?);
    }
    if options.keep_inputs {
        kept.extend(&graph.subgraphs[0].inputs);
    }
    kept.extend(options.group.iter().flat_map(|g| &g.keep));
    let mut pinned = kept.clone();
    for name in &options.online {
        pinned.push(graph.find_tensor(name)?);
    }
    pinned.extend(options.fixed.iter().map(|f| f.0));
    kept.retain(|&t| graph.tensor(t).subgraph == 0);
    let mode = match (options.offsets, options.level()) {
        (false, _) | (true, Level::None) => Mode::Greedy,
        (true, Level::Overlap) => Mode::Overlap,
        (true, _) => Mode::Views,
    };
    let budget = match options.stripes {
        Stripes::No => return Ok(Err(Nothing("stripes were not asked for".into()))),
        Stripes::UpTo(thousandths) => Budget::UpTo(thousandths),
        Stripes::Auto => Budget::Auto,
    };
    let net = Net::read(graph, &pinned);
    let costs = Costs::read(graph, &net, options.target, mode != Mode::Greedy);
    let kernels = Kernels::new(graph, options.kernels(), mode, &kept);
    let goal = Goal {
        kernels: &kernels,
        mode,
        budget,
    };
    let found = match search::search(&net, &costs, &goal) {
        Ok(found) => found,
        Err(nothing) => return Ok(Err(Nothing(sentence(graph, &nothing)))),
    };
    let of_file = |found: search::Found| Found {
        regions: found.regions,
        net: found.net,
        least: found.least,
        extra_tail: found.tail,
        macs: costs.whole.macs,
        extra_macs: found.extra_macs,
        instructions: u64::try_from(costs.whole.time).unwrap_or(0),
        extra_instructions: found.extra_time,
    };
    Ok(Ok(found.into_iter().map(of_file).collect()))
}

fn sentence(graph: &Graph<'_>, nothing: &search::Nothing) -> String {
    use search::Nothing as N;
    let label = |at: u32| graph.subgraphs[0].operators[at as usize].label();
    let percent = |thousandths: u32| match thousandths % 10 {
        0 => format!("{}%", thousandths / 10),
        tenths => format!("{}.{tenths}%", thousandths / 10),
    };
    match *nothing {
        N::Empty => "the model has nothing in the arena's head".into(),
        N::Inputs { bytes } => format!(
            "the model's inputs, which are whole when it starts, take the {} bytes of the peak",
            thousands(bytes)
        ),
        N::Outputs { bytes } => format!(
            "the model's outputs, which are whole when it ends, take the {} bytes of the peak",
            thousands(bytes)
        ),
        N::Operator { operator, reason } => {
            let why = match reason {
                Reason::Kind => "is not known to work row by row".into(),
                Reason::Shape => {
                    "has a tensor that is not of four dimensions with a batch of one".into()
                }
                Reason::Type(ty) => format!(
                    "has tensors of type {}, which TFLM's SLICE and CONCATENATION do not take",
                    arenaplan_schema::names::tensor_type_name(ty)
                ),
                Reason::Inputs => {
                    "has more than its one input, or its weights, computed by the model".into()
                }
                Reason::Operand => "has an operand that differs from row to row".into(),
                Reason::Stored => "has a shape in the file that its kernel does not compute".into(),
            };
            format!("{}, where the peak is, {why}", label(operator))
        }
        N::Regions { operator } => format!(
            "no layers around {}, where the peak is, can be cut: what goes into them or comes out is as large as the peak, is used \
             elsewhere as well, or is more than one tensor",
            label(operator)
        ),
        N::Budget { least, peak } => format!(
            "it takes {} more work to get below the peak, to about {} bytes of head",
            percent(least),
            thousands(peak)
        ),
        N::Tail { saved, tail } => format!(
            "the operators that stripes add take {} bytes of the arena's tail, and the head has {} bytes less",
            thousands(tail),
            thousands(saved)
        ),
    }
}
