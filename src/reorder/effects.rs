//! What must stay in order besides who reads what: state, random numbers, and operators that can end an invoke.
//!
//! State keeps its order for each variable and each resource apart. What an operator does to state:
//!
//! | operator | effect |
//! |-|-|
//! | any | changes the variable tensors that it reads or writes (SVDF, LSTM) |
//! | READ_VARIABLE, ASSIGN_VARIABLE | reads, changes the resource that its handle names |
//! | IF, WHILE | what its subgraphs do |
//! | CALL_ONCE | changes every resource, as what it initialises is used by all others; and what its subgraph does |
//! | an operator whose handle is not made in its own subgraph | changes every resource |
//! | random numbers, hash tables, custom operators not of TFLM, operators newer than this tool | keep their order |
//! | CIRCULAR_BUFFER | nothing passes it: its kernel ends the invoke early in most invokes |
//! | TFLM_DECODE | nothing passes it: its output may be outside the arena, in memory that the next ones use again |

use std::collections::BTreeMap;

use arenaplan_schema::tflite::{BuiltinOperator as Op, TensorType};

use crate::graph::{Graph, Operator, Storage, Subgraph, TensorId};

/// Something outside the arena that operators read or change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// A variable tensor.
    Variable(TensorId),
    /// A resource, by container and shared name.
    Resource(String, String),
    /// Resources as a whole: read by whoever uses one of them, changed by whoever may use any.
    Resources,
    /// What operators that nothing is known of may share.
    Unknown,
}

/// What an operator does to state.
#[derive(Clone, Debug, Default)]
struct Effects {
    /// State that it uses, and whether it may change it.
    uses: BTreeMap<State, bool>,
    /// No operator may pass it.
    is_barrier: bool,
}

impl Effects {
    fn add(&mut self, state: State, changes: bool) {
        *self.uses.entry(state).or_default() |= changes;
    }

    fn absorb(&mut self, other: &Effects) {
        for (state, &changes) in &other.uses {
            self.add(state.clone(), changes);
        }
        self.is_barrier |= other.is_barrier;
    }
}

/// Finds what must stay in order, and remembers what whole subgraphs do.
pub(super) struct Precedence<'g, 'a> {
    graph: &'g Graph<'a>,
    of_subgraphs: Vec<Option<Effects>>,
}

impl<'g, 'a> Precedence<'g, 'a> {
    /// For the subgraphs of a graph; those asked for must not call each other in a circle.
    pub(super) fn new(graph: &'g Graph<'a>) -> Self {
        Self {
            graph,
            of_subgraphs: vec![None; graph.subgraphs.len()],
        }
    }

    /// For each operator of a subgraph, those that must run before it: those whose values it reads or replaces, those that
    /// read what it replaces, and those that share state with it.
    pub(super) fn of(&mut self, subgraph: u32) -> Vec<Vec<u32>> {
        let graph = self.graph;
        let handles = Handles::of(&graph.subgraphs[subgraph as usize]);
        let mut order = Order::default();
        for op in &graph.subgraphs[subgraph as usize].operators {
            let effects = self.of_operator(op, &handles);
            order.begin(op.id.index, effects.is_barrier);
            for &t in op.inputs.iter().flatten() {
                order.uses(Thing::Tensor(t), false);
            }
            for &t in &op.outputs {
                order.uses(Thing::Tensor(t), true);
            }
            for (state, changes) in effects.uses {
                order.uses(Thing::State(state), changes);
            }
        }
        order.after
    }

    /// The effects of an operator, those of its subgraphs included.
    fn of_operator(&mut self, op: &Operator<'a>, handles: &Handles) -> Effects {
        let graph = self.graph;
        let mut effects = Effects::default();
        let tensors = || op.inputs.iter().flatten().chain(&op.outputs).copied();
        for t in tensors().filter(|&t| graph.tensor(t).storage == Storage::Variable) {
            effects.add(State::Variable(t), true);
        }
        match op.code {
            Op::VAR_HANDLE => {}
            Op::READ_VARIABLE | Op::ASSIGN_VARIABLE => {
                let handle = op.inputs.first().copied().flatten();
                match handle.and_then(|t| handles.resource(t)) {
                    Some(resource) => {
                        effects.add(resource, op.code == Op::ASSIGN_VARIABLE);
                        effects.add(State::Resources, false);
                    }
                    None => effects.add(State::Resources, true),
                }
            }
            Op::CALL_ONCE => effects.add(State::Resources, true),
            Op::CUSTOM if op.custom.is_some_and(|name| BARRIERS.contains(&name)) => {
                effects.is_barrier = true;
            }
            _ => {
                if tensors().any(|t| is_handle(graph, t)) {
                    effects.add(State::Resources, true);
                }
                if !keeps_to_itself(op) {
                    effects.add(State::Unknown, true);
                }
            }
        }
        for &called in &op.calls {
            effects.absorb(self.of_subgraph(called));
        }
        effects
    }

    fn of_subgraph(&mut self, subgraph: u32) -> &Effects {
        let at = subgraph as usize;
        if self.of_subgraphs[at].is_none() {
            let called = &self.graph.subgraphs[at];
            let handles = Handles::of(called);
            let mut all = Effects::default();
            for op in &called.operators {
                all.absorb(&self.of_operator(op, &handles));
            }
            self.of_subgraphs[at] = Some(all);
        }
        self.of_subgraphs[at].get_or_insert_default()
    }
}

/// What the handles of a subgraph name.
struct Handles(BTreeMap<TensorId, Option<State>>);

impl Handles {
    fn of(subgraph: &Subgraph<'_>) -> Self {
        let mut handles = BTreeMap::new();
        for op in &subgraph.operators {
            for &t in &op.outputs {
                // A second writer leaves it open.
                let named = if handles.contains_key(&t) {
                    None
                } else {
                    name_in(op)
                };
                handles.insert(t, named);
            }
        }
        // A value from outside may name anything.
        for t in &subgraph.inputs {
            handles.remove(t);
        }
        Self(handles)
    }

    fn resource(&self, handle: TensorId) -> Option<State> {
        self.0.get(&handle).cloned().flatten()
    }
}

/// The resource that a VAR_HANDLE names.
fn name_in(op: &Operator<'_>) -> Option<State> {
    if op.code != Op::VAR_HANDLE {
        return None;
    }
    let options = op.table.builtin_options_as_var_handle_options()?;
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    Some(State::Resource(
        text(options.container()),
        text(options.shared_name()),
    ))
}

fn is_handle(graph: &Graph<'_>, t: TensorId) -> bool {
    let tensor = graph.tensor(t);
    tensor.storage == Storage::ResourceHandle
        || matches!(tensor.ty, TensorType::RESOURCE | TensorType::VARIANT)
}

/// What operators can depend on each other by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Tensor(TensorId),
    State(State),
}

/// Goes through the operators of a subgraph and notes for each one those that must come before it.
#[derive(Default)]
struct Order {
    after: Vec<Vec<u32>>,
    /// Who changed a thing last, and who has read it since.
    last: BTreeMap<Thing, (Option<u32>, Vec<u32>)>,
    barrier: Option<u32>,
}

impl Order {
    fn begin(&mut self, k: u32, is_barrier: bool) {
        self.after.push(self.barrier.into_iter().collect());
        if is_barrier {
            let since = self.barrier.map_or(0, |b| b + 1);
            self.after[k as usize].extend(since..k);
            self.barrier = Some(k);
        }
    }

    /// The operator begun last uses a thing.
    fn uses(&mut self, thing: Thing, changes: bool) {
        let Some((k, after)) = self.after.len().checked_sub(1).zip(self.after.last_mut()) else {
            return;
        };
        let k = k as u32;
        let (changed, read) = self.last.entry(thing).or_default();
        after.extend(changed.iter().filter(|&&p| p != k));
        if changes {
            after.extend(read.drain(..).filter(|&p| p != k));
            *changed = Some(k);
        } else {
            read.push(k);
        }
    }
}

/// Custom operators of TFLM that no other may pass.
const BARRIERS: [&str; 2] = ["CIRCULAR_BUFFER", "TFLM_DECODE"];

/// Other custom operators that TFLM brings. What state they have is their own, so that their order is free.
const TFLM_CUSTOM: [&str; 15] = [
    "SignalDelay",
    "SignalEnergy",
    "SignalFftAutoScale",
    "SignalFilterBank",
    "SignalFilterBankLog",
    "SignalFilterBankSpectralSubtraction",
    "SignalFilterBankSquareRoot",
    "SignalFramer",
    "SignalIrfft",
    "SignalOverlapAdd",
    "SignalPCAN",
    "SignalRfft",
    "SignalStacker",
    "SignalWindow",
    "TFLite_Detection_PostProcess",
];

/// Whether what an operator does depends on nothing but its inputs and its own state.
fn keeps_to_itself(op: &Operator<'_>) -> bool {
    match op.code {
        Op::RANDOM_UNIFORM
        | Op::RANDOM_STANDARD_NORMAL
        | Op::MULTINOMIAL
        | Op::HASHTABLE
        | Op::HASHTABLE_FIND
        | Op::HASHTABLE_IMPORT
        | Op::HASHTABLE_SIZE
        | Op::CALL
        | Op::DELEGATE => false,
        Op::CUSTOM => op.custom.is_some_and(|name| TFLM_CUSTOM.contains(&name)),
        // TFLM runs none of StableHLO's operators, of which some call subgraphs or make random numbers.
        code => code
            .variant_name()
            .is_some_and(|name| !name.starts_with("STABLEHLO_")),
    }
}
