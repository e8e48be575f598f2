//! Chooses the inputs with which most wrong orders show.

use std::collections::BTreeSet;

use arenaplan_runtime::self_test::{Port, Signal};
use arenaplan_runtime::{Interpreter, Observer, Type};
use arenaplan_schema::view;

use super::orders::{Disorder, Order, Recording, Sharing, sharings, target};
use super::report::{Finding, Report};
use super::{
    INVOKES, INVOKES_WITH_STATE, Known, MOST_INVOKES, Options, SelfTest, SelfTestError, expect,
};
use crate::error::Error;
use crate::execute::{ExecuteError, Memory, Noise, Setting, said, start, without_plan};
use crate::graph::{Graph, Operator, Storage};
use crate::model::Model;

/// Sequences of seeds that are tried,
const SEQUENCES: u64 = 8;
/// as long as no more multiplications are done: some seconds where the runtime is compiled with optimisation.
const WORK: u64 = 1 << 31;

/// How the noise of an invoke is: `narrow` and `hold`. A sequence goes through them, from one on.
const INTEGERS: [(u8, u16); 6] = [(0, 1), (0, 16), (2, 1), (0, 64), (1, 5), (3, 7)];
/// The same for floats: within ±1, ±4, ±1/4, ...
const FLOATS: [(u8, u16); 6] = [(3, 1), (3, 16), (5, 1), (1, 1), (3, 64), (1, 7)];
/// Where values of inputs are indices, they are made as much smaller until the model runs.
const SMALLER: [u8; 5] = [0, 6, 12, 15, 16];

/// All outputs of each invoke.
type Outputs = Vec<Vec<Vec<u8>>>;

pub(super) fn choose(planned: &[u8], options: &Options) -> Result<SelfTest, SelfTestError> {
    let graph = Graph::read(Model::parse(planned)?)?;
    let invokes = invokes(&graph, options)?;
    let sharings = sharings(&graph)?;

    let unplanned = without_plan(planned).map_err(|e| Error::Patch {
        reason: e.to_string(),
    })?;
    let mut original = Runner::new(&unplanned)?;
    let original_graph = Graph::read(Model::parse(&unplanned)?)?;
    let mut original = original.start(&original_graph)?;
    // The plan's order of operators, with all tensors apart.
    let apart = hidden(planned);
    let mut apart = Runner::new(&apart)?;
    let mut apart = apart.start(&graph)?;

    let work = work(&graph);
    let (mut best, mut failed) = (None::<Candidate>, None);
    'smaller: for smaller in SMALLER {
        for sequence in 0..SEQUENCES {
            let signals = signals(&original.inputs, sequence, invokes, smaller);
            let expected = match original.run(&signals, None) {
                Ok(expected) => expected,
                // Inputs with which the model does not run.
                Err(error @ ExecuteError::Runtime { .. }) => {
                    failed = Some(error);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if !is_finite(&original.outputs, &expected) {
                continue;
            }
            let known = original.known(&expected);
            let mut candidate = Candidate::new(signals, known, &expected);
            let found = apart.findings(&graph, &sharings, &candidate, &expected, best.as_ref())?;
            let Some(findings) = found else { continue };
            candidate.findings = findings;
            let is_better = best
                .as_ref()
                .is_none_or(|best| candidate.worth() > best.worth());
            if is_better {
                best = Some(candidate);
            }
            let invokes_so_far = original.invokes + apart.invokes;
            let is_enough = |best: &Candidate| {
                best.is_perfect()
                    || best.distinct >= 2 && invokes_so_far.saturating_mul(work) > WORK
            };
            if best.as_ref().is_some_and(is_enough) {
                break 'smaller;
            }
        }
        if best.is_some() {
            break;
        }
    }
    let Some(best) = best else {
        return Err(match failed {
            Some(error) => error.into(),
            None => {
                nothing("its outputs are infinite, or no numbers, with all inputs that were tried")
            }
        });
    };
    if best.distinct < 2 {
        return Err(nothing(
            "its outputs are the same with all inputs that were tried, so that they would be right with any kernels",
        ));
    }
    let flash_bytes = best.known.iter().map(Known::flash_bytes).sum::<usize>() + 8 * invokes;
    let test = SelfTest {
        inputs: original.inputs.clone(),
        outputs: best.known,
        signals: best.signals,
        runs_once: graph
            .operators()
            .any(|op| op.code == arenaplan_schema::tflite::BuiltinOperator::CALL_ONCE),
        report: Report {
            target: target(planned),
            invokes,
            flash_bytes,
            findings: best.findings,
        },
    };
    passes(planned, &test)?;
    Ok(test)
}

fn nothing(reason: &str) -> SelfTestError {
    SelfTestError::ProvesNothing {
        reason: reason.into(),
    }
}

fn invokes(graph: &Graph<'_>, options: &Options) -> Result<usize, Error> {
    let has_state = graph
        .tensors
        .iter()
        .any(|t| matches!(t.storage, Storage::Variable | Storage::ResourceHandle));
    let usual = match has_state {
        true => INVOKES_WITH_STATE,
        false => INVOKES,
    };
    match options.invokes {
        None => Ok(usual),
        Some(invokes) if (2..=MOST_INVOKES).contains(&invokes) => Ok(invokes),
        Some(invokes) => Err(Error::Option {
            name: "invokes",
            reason: format!(
                "{invokes} is not between 2, to see that outputs vary, and {MOST_INVOKES}"
            ),
        }),
    }
}

/// About how many multiplications an invoke takes: weights of one output channel for each output element, and at least one for
/// each.
fn work(graph: &Graph<'_>) -> u64 {
    let of_operator = |op: &Operator<'_>| {
        let outputs = op.outputs.iter().map(|&output| graph.tensor(output));
        let (elements, channels) = outputs.fold((0, 1), |(elements, _), output| {
            (elements + output.elements(), output.dim(-1).max(1) as u64)
        });
        let inputs = op.inputs.iter().flatten().map(|&t| graph.tensor(t));
        let weights = inputs.filter(|t| t.storage == Storage::Constant && t.shape.len() >= 2);
        let weights = weights.map(|t| t.elements()).max().unwrap_or(0);
        (elements / channels).saturating_mul(weights).max(elements)
    };
    let all = graph.operators().map(of_operator);
    all.fold(1, u64::saturating_add)
}

/// The same file with the plan's name changed by a letter, which hides it and moves nothing.
fn hidden(planned: &[u8]) -> Vec<u8> {
    let name = view::PLAN_NAME.as_bytes();
    let mut stored = (name.len() as u32).to_le_bytes().to_vec();
    stored.extend(name);
    stored.push(0);
    let mut bytes = planned.to_vec();
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(stored.len()).position(|w| w == stored) {
        at += found + stored.len();
        bytes[at - 2] = b'_';
    }
    bytes
}

/// The signals of a sequence.
fn signals(inputs: &[Port], sequence: u64, invokes: usize, smaller: u8) -> Vec<Signal> {
    let patterns = match inputs.iter().any(|port| port.element_type == Type::FLOAT32) {
        true => FLOATS,
        false => INTEGERS,
    };
    let mut noise = Noise::new(sequence);
    let signal = |invoke| {
        let (narrow, hold) = patterns[(sequence as usize + invoke) % patterns.len()];
        Signal {
            seed: noise.word() as u32 | 1,
            narrow: narrow + smaller,
            hold,
        }
    };
    (0..invokes).map(signal).collect()
}

fn is_finite(outputs: &[Port], invokes: &Outputs) -> bool {
    let floats = outputs.iter().enumerate();
    let mut floats = floats.filter(|(_, port)| port.element_type == Type::FLOAT32);
    floats.all(|(output, _)| {
        let mut numbers = invokes.iter().flat_map(|all| all[output].as_chunks().0);
        numbers.all(|bytes| f32::from_le_bytes(*bytes).is_finite())
    })
}

/// Whether the planned file passes on this machine, where the runtime accepts its plan.
fn passes(planned: &[u8], test: &SelfTest) -> Result<(), SelfTestError> {
    let graph = Graph::read(Model::parse(planned)?)?;
    let mut runner = Runner::new(planned)?;
    let mut running = match runner.start(&graph) {
        Ok(running) => running,
        // Made for other kernels.
        Err(ExecuteError::Runtime { error, .. }) if error.is_about_plan() => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let result = test.with(|test| test.run(&mut running.interpreter));
    result.map_err(|failure| {
        let reason = format!("with the plan, {failure}");
        Error::Internal { reason }.into()
    })
}

/// Signals, what they give, and what shows with them.
struct Candidate {
    signals: Vec<Signal>,
    known: Vec<Known>,
    /// How many different outputs invokes have; 1 where a device would pass that always has the same.
    distinct: usize,
    /// How many different bytes outputs have.
    bytes: usize,
    findings: Vec<Finding>,
}

impl Candidate {
    fn new(signals: Vec<Signal>, known: Vec<Known>, expected: &Outputs) -> Self {
        let bytes: BTreeSet<u8> = expected.iter().flatten().flatten().copied().collect();
        let varies = known.iter().any(|known| known.vary(signals.len()));
        let distinct = match varies {
            true => expected.iter().collect::<BTreeSet<_>>().len(),
            false => 1,
        };
        Self {
            signals,
            known,
            distinct,
            bytes: bytes.len(),
            findings: Vec::new(),
        }
    }

    fn unseen(&self) -> usize {
        self.findings.iter().filter(|f| f.blindness() != 0).count()
    }

    /// More is better.
    fn worth(&self) -> impl Ord + use<> {
        let unseen = self.findings.iter().map(Finding::blindness).sum::<usize>();
        let seen = self.findings.iter().map(|f| f.seen.len()).sum::<usize>();
        (
            self.distinct >= 2,
            std::cmp::Reverse(self.unseen()),
            std::cmp::Reverse(unseen),
            seen,
            self.distinct,
            self.bytes,
        )
    }

    /// Whether nothing is left to wish for.
    fn is_perfect(&self) -> bool {
        self.unseen() == 0 && self.distinct == self.signals.len()
    }
}

/// A model in memory, and an arena.
struct Runner {
    model: Memory,
    arena: Memory,
}

impl Runner {
    fn new(model: &[u8]) -> Result<Self, Error> {
        Model::parse(model)?;
        Ok(Self {
            model: Memory::holding(model),
            arena: Memory::new(0),
        })
    }

    fn start<'r>(&'r mut self, graph: &'r Graph<'r>) -> Result<Running<'r>, ExecuteError> {
        let setting = Setting::default();
        let interpreter = start(graph, &self.model, &mut self.arena, &setting)?;
        let session = interpreter.session();
        let port = |info: Result<arenaplan_runtime::Info<'_>, _>| {
            let info = info.map_err(|e| said(graph, e))?;
            let size = info.element_type.bytes();
            let elements = info.shape.elements();
            let bytes = size.zip(elements).map(|(size, elements)| size * elements);
            // Half floats have no kernels.
            let known = bytes.filter(|_| info.element_type != Type::FLOAT16);
            let row = info.shape.dim_from_end(0);
            match known {
                Some(bytes) => Ok((
                    Port {
                        element_type: info.element_type,
                        bytes,
                    },
                    row,
                )),
                None => Err(ExecuteError::ElementType(info.element_type)),
            }
        };
        let inputs = (0..session.inputs()).map(|k| port(session.input_info(k)));
        let outputs = (0..session.outputs()).map(|k| port(session.output_info(k)));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let (outputs, rows) = outputs.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        Ok(Running {
            inputs: inputs.into_iter().map(|(port, _)| port).collect(),
            outputs,
            rows,
            has_floats: expect::computes_floats(graph),
            graph,
            interpreter,
            invokes: 0,
        })
    }
}

/// A model that is ready to run.
struct Running<'r> {
    graph: &'r Graph<'r>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    /// The last dimension of each output.
    rows: Vec<usize>,
    has_floats: bool,
    interpreter: Interpreter<'r, 'r>,
    /// Invokes so far.
    invokes: u64,
}

impl Running<'_> {
    /// Runs the model once.
    fn invoke(
        &mut self,
        signal: &Signal,
        observer: Option<&dyn Observer>,
    ) -> Result<Vec<Vec<u8>>, ExecuteError> {
        let fails = |error| said(self.graph, error);
        self.invokes += 1;
        let mut noise = signal.noise();
        for (index, port) in self.inputs.iter().enumerate() {
            let bytes = self.interpreter.input_bytes(index).map_err(fails)?;
            if !noise.fill(port.element_type, bytes) {
                return Err(ExecuteError::ElementType(port.element_type));
            }
        }
        match observer {
            Some(observer) => self.interpreter.invoke_observed(observer),
            None => self.interpreter.invoke(),
        }
        .map_err(fails)?;
        let outputs = 0..self.outputs.len();
        let outputs = outputs.map(|k| self.interpreter.output_bytes(k).map(<[u8]>::to_vec));
        outputs.collect::<Result<_, _>>().map_err(fails)
    }

    /// Runs the model for each signal, from a fresh state.
    fn run(
        &mut self,
        signals: &[Signal],
        observer: Option<&dyn Observer>,
    ) -> Result<Outputs, ExecuteError> {
        let reset = self.interpreter.reset();
        reset.map_err(|error| said(self.graph, error))?;
        let invokes = signals.iter().map(|signal| self.invoke(signal, observer));
        invokes.collect()
    }

    fn known(&self, expected: &Outputs) -> Vec<Known> {
        let outputs = self.outputs.iter().zip(&self.rows).enumerate();
        let known = |(output, (&port, &row)): (usize, (&Port, &usize))| {
            let invokes: Vec<&[u8]> = expected.iter().map(|all| &all[output][..]).collect();
            expect::known(port, row, self.outputs.len(), self.has_floats, &invokes)
        };
        outputs.map(known).collect()
    }

    /// Which wrong orders show with a candidate; `None` as soon as it is no better than another one.
    fn findings(
        &mut self,
        graph: &Graph<'_>,
        sharings: &[Sharing],
        candidate: &Candidate,
        expected: &Outputs,
        best: Option<&Candidate>,
    ) -> Result<Option<Vec<Finding>>, SelfTestError> {
        let recording = Recording::new(graph, self.interpreter.session(), sharings);
        if self.run(&candidate.signals, Some(&recording))? != *expected {
            let reason = "the plan's order of operators computes something else than the file's";
            return Err(Error::Internal {
                reason: reason.into(),
            }
            .into());
        }
        let mut findings = Vec::new();
        for sharing in sharings {
            let mut finding = Finding {
                operator: sharing.label.clone(),
                runs: recording.has_run(sharing.operator),
                seen: Vec::new(),
                unseen: Vec::new(),
            };
            for order in Order::ALL {
                let session = self.interpreter.session();
                let disorder = Disorder::new(sharing, order, &recording, session);
                match (self.shows(candidate, &disorder)?, disorder.has_harmed()) {
                    (true, _) => finding.seen.push(order),
                    (false, true) => finding.unseen.push(order),
                    (false, false) => {}
                }
            }
            findings.push(finding);
            let unseen = findings.iter().filter(|f| f.blindness() != 0).count();
            if best.is_some_and(|best| best.distinct >= 2 && unseen > best.unseen()) {
                return Ok(None);
            }
        }
        Ok(Some(findings))
    }

    /// Whether the test fails when an operator has another order.
    fn shows(
        &mut self,
        candidate: &Candidate,
        disorder: &Disorder<'_>,
    ) -> Result<bool, ExecuteError> {
        let reset = self.interpreter.reset();
        reset.map_err(|error| said(self.graph, error))?;
        for (invoke, signal) in candidate.signals.iter().enumerate() {
            let found = match self.invoke(signal, Some(disorder)) {
                Ok(found) => found,
                // Indices that are none: no device would go on with them.
                Err(_) => return Ok(true),
            };
            let differs = |(known, bytes): (&Known, &Vec<u8>)| {
                let compared =
                    (known.output().expected).compare(known.port.element_type, bytes, invoke);
                compared.is_err()
            };
            if candidate.known.iter().zip(&found).any(differs) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
