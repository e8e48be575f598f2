//! The independent check of a new operator order: does every operator still see what it saw?
//!
//! It shares nothing with the search, and nothing with what the search takes for state. Both orders are executed
//! symbolically: a value is a number, and an operator gives each of its outputs the number of "this operator, applied to
//! these values in this state". If each operator finds the same values and the same state in both orders, it does the same,
//! whatever its kernel is.
//!
//! What an operator may find or leave outside its tensors is taken in the widest sense that a model allows:
//!
//! ```text
//! variable tensor          found and changed by each operator that has it among its tensors
//! resource (VAR_HANDLE)    found by READ_VARIABLE, changed by ASSIGN_VARIABLE; all of them changed by a CALL_ONCE and by
//!                          operators with a handle of unknown origin
//! anything                 found and changed by operators that this tool does not know to be without hidden state
//! what ran before          the same at a CIRCULAR_BUFFER, which may end the invoke, and at a TFLM_DECODE, which may write to
//!                          memory outside the arena
//! called subgraphs         count at the operator that calls them, and are compared by themselves
//! ```

use std::collections::{BTreeMap, BTreeSet};

use arenaplan_schema::tflite::{BuiltinOperator as Code, TensorType};

use crate::graph::{Graph, Operator, Storage, Subgraph, TensorId};

/// A difference between two orders of a model's operators.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// The two have not the same operators, tensors, inputs or outputs.
    NotThoseOperators {
        /// The subgraph.
        subgraph: u32,
    },
    /// An operator finds other values or another state than in the first order.
    OtherValues {
        /// The operator, as the second order names it.
        operator: String,
    },
    /// A subgraph ends with other values or another state.
    OtherEnd {
        /// The subgraph.
        subgraph: u32,
    },
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Difference::NotThoseOperators { subgraph } => {
                write!(f, "subgraph {subgraph} has not the operators that it had")
            }
            Difference::OtherValues { operator } => {
                write!(
                    f,
                    "{operator} would find other values or another state than before"
                )
            }
            Difference::OtherEnd { subgraph } => {
                write!(
                    f,
                    "subgraph {subgraph} would end with other values or another state"
                )
            }
        }
    }
}

const MAX_DEPTH: usize = 70;

/// Compares two orders of the operators of one model: the graph of its file, and another one of the same file or of that
/// file with something in front of it. At most one difference for each subgraph.
pub fn compare(first: &Graph<'_>, second: &Graph<'_>) -> Vec<Difference> {
    if first.subgraphs.len() != second.subgraphs.len()
        || tensor_identities(first) != tensor_identities(second)
    {
        return vec![Difference::NotThoseOperators { subgraph: 0 }];
    }
    let starts = [first, second].map(Graph::start_of_original);
    let reach = Reached::of(first);
    let pairs = (0u32..).zip(first.subgraphs.iter().zip(&second.subgraphs));
    pairs
        .filter_map(|(s, (a, b))| {
            let names = [
                identities(first, a, starts[0]),
                identities(second, b, starts[1]),
            ];
            if names[0] == names[1] {
                return (a.inputs != b.inputs || a.outputs != b.outputs)
                    .then_some(Difference::NotThoseOperators { subgraph: s });
            }
            compare_subgraph([first, second], &names, &reach, s)
        })
        .collect()
}

/// Whether the operators of two graphs, of which one may have something in front of its file, are in the same order.
pub fn is_same(first: &Graph<'_>, second: &Graph<'_>) -> bool {
    let all = |graph: &Graph<'_>| -> Vec<Vec<Identity>> {
        let start = graph.start_of_original();
        let subgraphs = graph.subgraphs.iter();
        subgraphs.map(|s| identities(graph, s, start)).collect()
    };
    all(first) == all(second)
}

/// What an operator or a tensor is, wherever it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identity {
    /// A table of the model, counted from the end of the file, where a plan changes nothing.
    Model(usize),
    /// A table that is put in front of the model: all that it says, and where in the model it refers to, from the end.
    InFront(String, Vec<usize>, Vec<u8>),
}

/// `start` is where the model begins, without what a plan puts in front of it.
fn identities(graph: &Graph<'_>, subgraph: &Subgraph<'_>, start: usize) -> Vec<Identity> {
    let bytes = graph.model.bytes();
    let operators = subgraph.operators.iter().map(|op| {
        let table = op.table;
        if table._tab.loc() >= start {
            return Identity::Model(bytes.len() - table._tab.loc());
        }
        let custom = table.custom_options();
        let places = [
            table.builtin_options().map(|options| options.loc()),
            table.builtin_options_2().map(|options| options.loc()),
            custom.map(|options| options.bytes().as_ptr() as usize - bytes.as_ptr() as usize),
        ];
        let places = places.into_iter().flatten().filter(|&at| at >= start);
        let places = places.map(|at| bytes.len() - at).collect();
        Identity::InFront(format!("{table:?}"), places, Vec::new())
    });
    operators.collect()
}

fn tensor_identities(graph: &Graph<'_>) -> Vec<Identity> {
    let start = graph.start_of_original();
    let end = graph.model.bytes().len();
    let tensors = graph.tensors.iter().map(|tensor| {
        let table = tensor.table;
        if table._tab.loc() >= start {
            return Identity::Model(end - table._tab.loc());
        }
        let quantization = table.quantization().map(|q| end - q._tab.loc());
        let data = graph.model.buffer_data(table.buffer());
        Identity::InFront(
            format!("{table:?}"),
            quantization.into_iter().collect(),
            data.unwrap_or_default().to_vec(),
        )
    });
    tensors.collect()
}

fn compare_subgraph(
    [first, second]: [&Graph<'_>; 2],
    [names_a, names_b]: &[Vec<Identity>; 2],
    reach: &Reached,
    s: u32,
) -> Option<Difference> {
    let (a, b) = (&first.subgraphs[s as usize], &second.subgraphs[s as usize]);
    let shape = |op: &Operator<'_>| {
        (
            op.code.0,
            op.inputs.clone(),
            op.outputs.clone(),
            op.calls.clone(),
        )
    };
    let mut all_a: Vec<_> = names_a.iter().zip(a.operators.iter().map(shape)).collect();
    let mut all_b: Vec<_> = names_b.iter().zip(b.operators.iter().map(shape)).collect();
    all_a.sort();
    all_b.sort();
    if all_a != all_b || a.inputs != b.inputs || a.outputs != b.outputs {
        return Some(Difference::NotThoseOperators { subgraph: s });
    }
    let mut numbers = Numbers::default();
    let seen = |run: &Run| run.events.iter().copied().collect::<BTreeSet<u32>>();
    // The same number for the same operator.
    let both = names_a.iter().chain(names_b);
    let names: BTreeSet<&Identity> = both.collect();
    let names: BTreeMap<&Identity, u64> = names.into_iter().zip(0..).collect();
    let numbered = |all: &[Identity]| -> Vec<u64> { all.iter().map(|name| names[name]).collect() };
    let one = Run::of(first, reach, s, &numbered(names_a), &mut numbers);
    let other = Run::of(second, reach, s, &numbered(names_b), &mut numbers);
    let before = seen(&one);
    if let Some(at) = other.events.iter().position(|e| !before.contains(e)) {
        let operator = b.operators[at].label();
        return Some(Difference::OtherValues { operator });
    }
    let mut sorted = [one.events, other.events];
    sorted.iter_mut().for_each(|events| events.sort_unstable());
    (sorted[0] != sorted[1] || one.end != other.end).then_some(Difference::OtherEnd { subgraph: s })
}

/// Numbers for values: the same number for what is made in the same way.
#[derive(Default)]
struct Numbers(BTreeMap<Vec<u64>, u32>);

impl Numbers {
    fn of(&mut self, made: Vec<u64>) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(made).or_insert(next)
    }
}

/// Something that keeps a value: a tensor, or state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Tensor(TensorId),
    Resource(String),
    Anything,
}

/// One execution of a subgraph.
struct Run {
    /// For each operator, what it was and found, as a number.
    events: Vec<u32>,
    /// The values of outputs and state at the end.
    end: Vec<(Cell, u32)>,
}

impl Run {
    fn of(
        graph: &Graph<'_>,
        reach: &Reached,
        s: u32,
        names: &[u64],
        numbers: &mut Numbers,
    ) -> Self {
        let subgraph = &graph.subgraphs[s as usize];
        let mut values: BTreeMap<Cell, u32> = BTreeMap::new();
        let mut events = Vec::new();
        // Who ran since the last operator that stands, and that one.
        let (mut history, mut since) = (0, BTreeSet::new());
        for (op, &name) in subgraph.operators.iter().zip(names) {
            let touched = reach.of_operator(graph, op);
            let mut made = vec![name, u64::from(history)];
            if touched.stands {
                made.extend(since.iter().map(|&e: &u32| u64::from(e)));
            }
            let cells = op.inputs.iter().flatten().map(|&t| Cell::Tensor(t));
            for cell in cells.chain(touched.found.iter().cloned()) {
                made.push(u64::from(value_of(&mut values, cell, numbers, reach)));
            }
            let event = numbers.of(made);
            let outputs = op.outputs.iter().map(|&t| Cell::Tensor(t));
            for (k, cell) in (0u64..).zip(outputs.chain(touched.changed.iter().cloned())) {
                values.insert(cell, numbers.of(vec![u64::MAX, event.into(), k]));
            }
            events.push(event);
            since.insert(event);
            if touched.stands {
                history = event;
                since.clear();
            }
        }
        let outputs = subgraph.outputs.iter().map(|&t| Cell::Tensor(t));
        let kept: BTreeSet<Cell> = outputs.chain(reach.all_state.iter().cloned()).collect();
        let end = kept.into_iter().map(|cell| {
            let value = value_of(&mut values, cell.clone(), numbers, reach);
            (cell, value)
        });
        Self {
            end: end.collect(),
            events,
        }
    }
}

/// The value of a cell, which is one of its own as long as nothing has changed it.
fn value_of(
    values: &mut BTreeMap<Cell, u32>,
    cell: Cell,
    numbers: &mut Numbers,
    reach: &Reached,
) -> u32 {
    let made = match &cell {
        Cell::Tensor(t) => vec![u64::MAX - 1, t.0.into()],
        state => {
            let at = reach.all_state.binary_search(state);
            vec![u64::MAX - 2, at.unwrap_or_else(|at| at) as u64]
        }
    };
    *values.entry(cell).or_insert_with(|| numbers.of(made))
}

/// What an operator finds and changes besides its tensors.
#[derive(Clone, Debug, Default)]
struct Touched {
    found: BTreeSet<Cell>,
    changed: BTreeSet<Cell>,
    /// The same must have run before it.
    stands: bool,
}

impl Touched {
    fn change(&mut self, cell: Cell) {
        self.found.insert(cell.clone());
        self.changed.insert(cell);
    }
}

/// What each subgraph that can be run touches, and all state that there is.
struct Reached {
    all_state: Vec<Cell>,
    resources: Vec<Cell>,
    subgraphs: BTreeMap<u32, Touched>,
}

impl Reached {
    fn of(graph: &Graph<'_>) -> Self {
        let handles = graph.operators().filter(|op| op.code == Code::VAR_HANDLE);
        let resources: BTreeSet<Cell> = handles.map(resource).collect();
        let variables = graph
            .tensors
            .iter()
            .filter(|t| t.storage == Storage::Variable);
        let mut all_state: BTreeSet<Cell> = variables.map(|t| Cell::Tensor(t.id)).collect();
        all_state.extend(resources.iter().cloned());
        all_state.insert(Cell::Anything);
        let mut reached = Self {
            all_state: all_state.into_iter().collect(),
            resources: resources.into_iter().collect(),
            subgraphs: BTreeMap::new(),
        };
        // Each round knows the calls that nest one deeper; what nests deeper than this is never run.
        for _ in 0..MAX_DEPTH {
            let mut grown = false;
            for (s, subgraph) in (0u32..).zip(&graph.subgraphs) {
                if reached.subgraphs.contains_key(&s) {
                    continue;
                }
                let calls = subgraph.operators.iter().flat_map(|op| &op.calls);
                if calls
                    .into_iter()
                    .all(|called| reached.subgraphs.contains_key(called))
                {
                    let mut all = Touched::default();
                    for op in &subgraph.operators {
                        let one = reached.of_operator(graph, op);
                        all.found.extend(one.found);
                        all.changed.extend(one.changed);
                        all.stands |= one.stands;
                    }
                    reached.subgraphs.insert(s, all);
                    grown = true;
                }
            }
            if !grown {
                break;
            }
        }
        reached
    }

    fn of_operator(&self, graph: &Graph<'_>, op: &Operator<'_>) -> Touched {
        let mut touched = Touched::default();
        let tensors = || op.inputs.iter().flatten().chain(&op.outputs).copied();
        for t in tensors().filter(|&t| graph.tensor(t).storage == Storage::Variable) {
            touched.change(Cell::Tensor(t));
        }
        let named = || {
            let handle = op.inputs.first().copied().flatten()?;
            named_by(&graph.subgraphs[op.id.subgraph as usize], handle)
        };
        match op.code {
            Code::READ_VARIABLE | Code::ASSIGN_VARIABLE => match named() {
                Some(cell) if op.code == Code::READ_VARIABLE => {
                    touched.found.insert(cell);
                }
                Some(cell) => touched.change(cell),
                None => self
                    .resources
                    .iter()
                    .for_each(|c| touched.change(c.clone())),
            },
            Code::VAR_HANDLE => {}
            Code::CALL_ONCE => self
                .resources
                .iter()
                .for_each(|c| touched.change(c.clone())),
            _ => {
                let handed = |t: TensorId| {
                    let tensor = graph.tensor(t);
                    tensor.storage == Storage::ResourceHandle
                        || [TensorType::RESOURCE, TensorType::VARIANT].contains(&tensor.ty)
                };
                if tensors().any(handed) {
                    self.resources
                        .iter()
                        .for_each(|c| touched.change(c.clone()));
                }
                let name = op.name();
                if op.code == Code::CUSTOM && (name == "CIRCULAR_BUFFER" || name == "TFLM_DECODE") {
                    touched.stands = true;
                } else if may_have_hidden_state(op) {
                    touched.change(Cell::Anything);
                }
            }
        }
        for inner in op
            .calls
            .iter()
            .filter_map(|called| self.subgraphs.get(called))
        {
            touched.found.extend(inner.found.iter().cloned());
            inner.changed.iter().for_each(|c| touched.change(c.clone()));
            touched.stands |= inner.stands;
        }
        touched
    }
}

/// The resource of a VAR_HANDLE.
fn resource(op: &Operator<'_>) -> Cell {
    let options = op.table.builtin_options_as_var_handle_options();
    let container = options.and_then(|o| o.container()).unwrap_or("");
    let name = options.and_then(|o| o.shared_name()).unwrap_or("");
    Cell::Resource(format!("{}:{container}{name}", container.len()))
}

/// The resource that a handle names for sure.
fn named_by(subgraph: &Subgraph<'_>, handle: TensorId) -> Option<Cell> {
    let mut makers = subgraph
        .operators
        .iter()
        .filter(|op| op.outputs.contains(&handle));
    let maker = makers.next().filter(|op| op.code == Code::VAR_HANDLE)?;
    let is_only = makers.next().is_none() && !subgraph.inputs.contains(&handle);
    is_only.then(|| resource(maker))
}

/// Whether more than its tensors may decide what an operator does, or more than its tensors may be changed by it.
fn may_have_hidden_state(op: &Operator<'_>) -> bool {
    let name = op.name();
    match op.code {
        // TFLM's own: those of the signal library keep what they have to themselves.
        Code::CUSTOM => !name.starts_with("Signal") && name != "TFLite_Detection_PostProcess",
        _ => {
            [
                "RANDOM",
                "MULTINOMIAL",
                "HASHTABLE",
                "STABLEHLO",
                "BUILTIN",
                "DELEGATE",
            ]
            .iter()
            .any(|part| name.starts_with(part) && name != "HASHTABLE_LOOKUP")
                || name == "CALL"
        }
    }
}
