//! The same graph with its operators in another order, and what was there before this tool changed it.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use arenaplan_schema::{patch, view};

use super::{Graph, OpId, Operator, Origin, Subgraph};
use crate::model::Model;

impl<'a> Graph<'a> {
    /// The graph with the operators of each subgraph in another order: for each subgraph and new position, the position
    /// that the operator has now. Tensors keep their numbers. A subgraph whose entry is not a permutation is left as it is.
    pub fn reordered(&self, orders: &[Vec<u32>]) -> Self {
        let mut graph = self.clone();
        for (subgraph, order) in graph.subgraphs.iter_mut().zip(orders) {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if !sorted
                .iter()
                .copied()
                .eq(0..subgraph.operators.len() as u32)
            {
                continue;
            }
            let moved = order.iter().enumerate().map(|(at, &k)| {
                let operator = &subgraph.operators[k as usize];
                Operator {
                    id: OpId {
                        index: at as u32,
                        ..operator.id
                    },
                    ..operator.clone()
                }
            });
            subgraph.operators = moved.collect();
        }
        graph
    }

    /// The graph as it was before this tool planned the file: with its operators where they were, and without those that the
    /// tool put in the place of others.
    pub fn in_original_order(&self) -> Cow<'_, Self> {
        if self.is_rewritten() {
            return match self.before_planning() {
                Some(graph) => Cow::Owned(graph),
                None => Cow::Borrowed(self),
            };
        }
        if !self.is_reordered() {
            return Cow::Borrowed(self);
        }
        let order_of = |subgraph: &Subgraph<'_>| {
            let mut order: Vec<&Operator<'_>> = subgraph.operators.iter().collect();
            order.sort_by_key(|op| op.original);
            order.iter().map(|op| op.id.index).collect()
        };
        let orders: Vec<Vec<u32>> = self.subgraphs.iter().map(order_of).collect();
        Cow::Owned(self.reordered(&orders))
    }

    /// Whether operators that were there before this tool planned the file run in another order than then.
    pub fn is_reordered(&self) -> bool {
        self.subgraphs.iter().any(|subgraph| {
            let operators = subgraph.operators.iter();
            let kept = operators.filter(|op| op.origin == Origin::File);
            !kept.map(|op| op.original).is_sorted()
        })
    }

    /// Whether this tool put operators of its own in the place of others.
    pub fn is_rewritten(&self) -> bool {
        self.operators().any(|op| op.origin != Origin::File)
    }

    /// Where the file begins that this tool planned, in bytes from the start; 0 in a file that it did not plan.
    pub(crate) fn start_of_original(&self) -> usize {
        self.original_at
    }

    /// The graph of a file that is planned as it is, whatever this tool once did to it: another tool changed it since.
    pub(crate) fn taken_alone(mut self) -> Self {
        self.original_at = 0;
        for op in self.subgraphs.iter_mut().flat_map(|s| &mut s.operators) {
            (op.original, op.origin) = (op.id.index, Origin::File);
        }
        self
    }

    fn find_original(&self) -> usize {
        let bytes = self.model.bytes();
        let Ok(Some(provenance)) = patch::inspect_provenance(bytes) else {
            return 0;
        };
        let length = usize::try_from(provenance.original_bytes).ok();
        length
            .and_then(|length| bytes.len().checked_sub(length))
            .unwrap_or(0)
    }

    /// The graph of the file that this tool planned. Data outside the FlatBuffer are not where that one says, but nothing of
    /// a graph depends on what they are.
    fn before_planning(&self) -> Option<Graph<'a>> {
        let bytes = self.model.bytes().get(self.start_of_original()..)?;
        Graph::read(Model::parse(bytes).ok()?).ok()
    }

    /// Fills in where each operator was before this tool planned the file. Whatever does not fit is left as it is: the
    /// numbers are for people.
    pub(super) fn note_original_order(&mut self) {
        self.original_at = self.find_original();
        let start = self.original_at;
        if start == 0 {
            return;
        }
        let bytes = self.model.bytes();
        let Ok(original) = view::Model::new(&bytes[start..]) else {
            return;
        };
        for s in 0..self.subgraphs.len() {
            if let Some(found) = self.origins(&original, start, s) {
                let operators = &mut self.subgraphs[s].operators;
                for (op, (original, origin)) in operators.iter_mut().zip(found) {
                    (op.original, op.origin) = (original, origin);
                }
            }
        }
    }

    /// Where the operators of subgraph `s` come from; `None` if some cannot have been in the file at `start`.
    fn origins(
        &self,
        original: &view::Model<'_>,
        start: usize,
        s: usize,
    ) -> Option<Vec<(u32, Origin)>> {
        let operators = original.subgraphs().ok()?.get(s).ok()?.operators().ok()?;
        // One table may stand for several operators.
        let mut known: BTreeMap<usize, VecDeque<u32>> = BTreeMap::new();
        for (k, operator) in (0u32..).zip(operators.iter()) {
            if let Ok(operator) = operator {
                let at = start + operator.table().position();
                known.entry(at).or_default().push_back(k);
            }
        }
        let ours = |op: &Operator<'_>| op.table._tab.loc() < start;
        let subgraph = &self.subgraphs[s];
        let models = match subgraph.operators.iter().any(ours) {
            true => {
                let before = self.before_planning()?;
                Models::of(&before, before.subgraphs.get(s)?, start)
            }
            false => Models::default(),
        };
        let origin = |op: &Operator<'_>| match ours(op) {
            false => Some((
                known.get_mut(&op.table._tab.loc())?.pop_front()?,
                Origin::File,
            )),
            true => Some(match models.find(self, op) {
                Some(original) => (original, Origin::Copy),
                None => (op.id.index, Origin::Added),
            }),
        };
        subgraph.operators.iter().map(origin).collect()
    }
}

/// What tells which operator another one is a copy of: its kind and options, and, where several share these, where its output
/// has its quantization from or which inputs it has behind the first.
type Likeness = (u32, [Option<usize>; 3], Option<Clue>);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Clue {
    Quantization(usize),
    Inputs(Vec<i32>),
}

/// The operators of a subgraph by what a copy has in common with them; `None` where several have it.
#[derive(Default)]
struct Models(BTreeMap<Likeness, Option<u32>>);

impl Models {
    /// The operators of a file that begins at `start`.
    fn of(graph: &Graph<'_>, subgraph: &Subgraph<'_>, start: usize) -> Self {
        let mut models = Self::default();
        for op in &subgraph.operators {
            for likeness in likenesses(graph, op, start) {
                let known = models.0.entry(likeness);
                known.and_modify(|k| *k = None).or_insert(Some(op.id.index));
            }
        }
        models
    }

    fn find(&self, graph: &Graph<'_>, op: &Operator<'_>) -> Option<u32> {
        likenesses(graph, op, 0).find_map(|likeness| self.0.get(&likeness).copied().flatten())
    }
}

/// What may be the same of an operator and its copy, the surest first. Places are counted from `start` bytes before the file.
fn likenesses(
    graph: &Graph<'_>,
    op: &Operator<'_>,
    start: usize,
) -> impl Iterator<Item = Likeness> {
    let table = op.table;
    let place = |at: usize| start + at;
    let bytes = graph.model.bytes().as_ptr() as usize;
    let custom = table
        .custom_options()
        .map(|options| options.bytes().as_ptr() as usize - bytes);
    let options = [
        table.builtin_options().map(|options| place(options.loc())),
        table
            .builtin_options_2()
            .map(|options| place(options.loc())),
        custom.map(place),
    ];
    let output = op.outputs.first().map(|&output| graph.tensor(output).table);
    let quantization = output.and_then(|tensor| tensor.quantization());
    let quantization = quantization.map(|q| Clue::Quantization(place(q._tab.loc())));
    let inputs: Vec<i32> = table.inputs().into_iter().flatten().skip(1).collect();
    let inputs = (!inputs.is_empty()).then_some(Clue::Inputs(inputs));
    let clues = [quantization, inputs].into_iter().flatten().map(Some);
    let code = table.opcode_index();
    clues.chain([None]).map(move |clue| (code, options, clue))
}
