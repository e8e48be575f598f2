//! One inference: the model, the memory, and the kernels, as nodes and tensors see them.

use core::cell::Cell;
use core::fmt;

use arenaplan_schema::view::{self, Tables};

use crate::error::{Error, Fault, Operand};
use crate::kernel::{Code, Kernel};
use crate::memory::ViewMut;
use crate::node::{Node, Tensor};

/// Subgraphs nest no deeper.
pub(crate) const MAX_DEPTH: u8 = 16;

/// Where bytes are, in a word of the tail: an offset in the head or in the tail, a number of a resource, or for an operator
/// an offset in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(pub(crate) u32);

impl Place {
    /// Nowhere: a constant, or a tensor that nothing uses.
    pub(crate) const NONE: Place = Place(u32::MAX);
    /// In the word of an operator: it has run, and does not run again.
    pub(crate) const DONE: Place = Place(u32::MAX - 1);
    /// From here on, offsets are in the tail.
    const TAIL: u32 = 1 << 30;
    /// From here on, numbers of resources.
    const RESOURCE: u32 = 1 << 31;

    pub(crate) fn head(offset: usize) -> Option<Place> {
        (offset < Self::TAIL as usize).then_some(Place(offset as u32))
    }

    pub(crate) fn tail(offset: usize) -> Option<Place> {
        (offset < Self::TAIL as usize).then_some(Place(Self::TAIL + offset as u32))
    }

    pub(crate) fn resource(number: u32) -> Place {
        Place(Self::RESOURCE + number)
    }

    /// In the word of an operator, which is no resource's.
    pub(crate) fn file(offset: usize) -> Option<Place> {
        (offset < Self::TAIL as usize).then_some(Place(Self::RESOURCE + offset as u32))
    }

    pub(crate) fn as_file(self) -> Option<usize> {
        let offset = self.0.checked_sub(Self::RESOURCE)?;
        (offset < Self::TAIL).then_some(offset as usize)
    }

    pub(crate) fn as_head(self) -> Option<usize> {
        (self.0 < Self::TAIL).then_some(self.0 as usize)
    }

    pub(crate) fn as_tail(self) -> Option<usize> {
        let offset = self.0.checked_sub(Self::TAIL)?;
        (offset < Self::TAIL).then_some(offset as usize)
    }

    pub(crate) fn as_resource(self) -> Option<u32> {
        (self != Self::NONE && self.0 >= Self::RESOURCE)
            .then_some(self.0.wrapping_sub(Self::RESOURCE))
    }
}

/// Sees the memory before and after each operator.
pub trait Observer {
    /// Called after operator `operator` of subgraph `subgraph` has run, with the head of the arena.
    fn after(&self, subgraph: u32, operator: u32, head: ViewMut<'_, u8>);

    /// Called before operator `operator` of subgraph `subgraph` runs, with the head of the arena.
    fn before(&self, subgraph: u32, operator: u32, head: ViewMut<'_, u8>) {
        let _ = (subgraph, operator, head);
    }
}

/// A subgraph's tensors and operators.
#[derive(Clone, Copy)]
pub(crate) struct Lists<'a> {
    pub(crate) index: u32,
    /// Positions of the first ones.
    pub(crate) first: Numbers,
    pub(crate) tensors: Tables<'a, view::Tensor<'a>>,
    pub(crate) operators: Tables<'a, view::Operator<'a>>,
}

/// What an inference works with.
pub(crate) struct Run<'a> {
    pub(crate) model: &'a view::Model<'a>,
    pub(crate) kernels: &'a [Kernel],
    pub(crate) head: ViewMut<'a, u8>,
    pub(crate) tail: ViewMut<'a, u8>,
    /// A [`Place`] for each tensor, one for each operator, two words for each resource.
    pub(crate) words: ViewMut<'a, u32>,
    pub(crate) tensors: u32,
    pub(crate) operators: u32,
    pub(crate) observer: Option<&'a dyn Observer>,
    pub(crate) depth: Cell<u8>,
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

impl<'a> Run<'a> {
    pub(crate) fn tensor_word(&self, tensor: u32) -> u32 {
        match tensor < self.tensors {
            true => self.word(tensor),
            false => Place::NONE.0,
        }
    }

    pub(crate) fn operator_word(&self, operator: u32) -> u32 {
        self.word(self.tensors.saturating_add(operator))
    }

    pub(crate) fn set_operator_word(&self, operator: u32, word: u32) {
        self.words
            .set(self.tensors.saturating_add(operator) as usize, word);
    }

    fn word(&self, index: u32) -> u32 {
        match (index as usize) < self.words.len() {
            true => self.words.get(index as usize),
            false => Place::NONE.0,
        }
    }

    /// `len` bytes at a place.
    pub(crate) fn at(&self, place: Place, len: usize) -> Option<ViewMut<'a, u8>> {
        if len == 0 {
            return Some(ViewMut::default());
        }
        if place == Place::NONE || place.as_resource().is_some() {
            return None;
        }
        match place.0.checked_sub(Place::TAIL) {
            Some(offset) => self.tail.part(offset as usize, len),
            None => self.head.part(place.0 as usize, len),
        }
    }

    /// The value of resource `number`.
    pub(crate) fn resource(&self, number: u32) -> Option<ViewMut<'a, u8>> {
        let first =
            (self.tensors.checked_add(self.operators)?).checked_add(number.checked_mul(2)?)?;
        let (place, len) = (self.word(first), self.word(first.checked_add(1)?));
        if place == Place::NONE.0 {
            return None;
        }
        self.at(Place(place), len as usize)
    }

    /// The data of a constant tensor; `None` for a tensor that is computed.
    pub(crate) fn constant(&self, tensor: &view::Tensor<'a>) -> Option<&'a [u8]> {
        constant(self.model, tensor)
    }

    /// The kernel of a node's operator.
    pub(crate) fn kernel(&self, node: &Node<'a>) -> Option<&'a Kernel> {
        self.kernel_or_error(node).ok()
    }

    /// As [`kernel`](Self::kernel), or the error that there is none.
    #[inline(never)]
    pub(crate) fn kernel_or_error(&self, node: &Node<'a>) -> Result<&'a Kernel, Error> {
        let codes = self.model.operator_codes()?;
        let code = codes.get(node.operator.opcode_index()? as usize)?;
        let number = Code(code.builtin_code()?);
        let custom = match number {
            Code::CUSTOM => code.custom_code()?.map(|name| name.as_bytes()),
            _ => Some(&[][..]),
        };
        let mut kernels = self.kernels.iter().rev();
        let found = kernels.find(|k| k.code == number && Some(k.custom.as_bytes()) == custom);
        found.ok_or(Error::NoKernel {
            subgraph: node.subgraph(),
            operator: node.index,
            code: number.0,
        })
    }

    /// Calls `with` for the operators of a subgraph, whose first tensor and operator have the positions `first`.
    #[inline(never)]
    pub(crate) fn for_each_node_of(
        &self,
        index: u32,
        subgraph: &view::SubGraph<'a>,
        first: Numbers,
        with: &mut dyn FnMut(&Node<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let lists = Lists {
            index,
            first,
            tensors: subgraph.tensors()?,
            operators: subgraph.operators()?,
        };
        for k in 0..lists.operators.len() {
            // Results stay where they are, here and below: stacks are small.
            match &self.node(&lists, k) {
                Ok(node) => with(node)?,
                Err(error) => return Err(*error),
            }
        }
        Ok(())
    }

    /// The operator `k` of a subgraph.
    #[inline(never)]
    pub(crate) fn node<'n>(&'n self, lists: &'n Lists<'n>, k: usize) -> Result<Node<'n>, Error> {
        let operator = lists.operators.get(k)?;
        Ok(Node {
            run: self,
            lists,
            index: k as u32,
            operator,
            inputs: operator.inputs()?,
            outputs: operator.outputs()?,
        })
    }

    #[inline(never)]
    pub(crate) fn lists(&self, index: u32) -> Result<Lists<'a>, Error> {
        let (subgraph, first) = Numbers::of(self.model, index)?;
        Ok(Lists {
            index,
            first,
            tensors: subgraph.tensors()?,
            operators: subgraph.operators()?,
        })
    }

    /// Whether there is nothing to run.
    #[inline(never)]
    pub(crate) fn is_empty(&self) -> bool {
        let subgraphs = self.model.subgraphs();
        subgraphs.is_ok_and(|subgraphs| subgraphs.is_empty())
    }

    /// Runs the operators of a subgraph.
    #[inline(never)]
    pub(crate) fn subgraph(&self, index: u32) -> Result<(), Error> {
        let lists = self.lists(index);
        let lists = match &lists {
            Ok(lists) => lists,
            Err(error) => return Err(*error),
        };
        for k in 0..lists.operators.len() {
            self.operator(lists, k)?;
        }
        Ok(())
    }

    #[inline(never)]
    fn operator(&self, lists: &Lists<'_>, k: usize) -> Result<(), Error> {
        let node = self.node(lists, k);
        let node = match &node {
            Ok(node) => node,
            Err(error) => return Err(*error),
        };
        let (subgraph, operator) = (node.subgraph(), node.index);
        let kernel = self.kernel_or_error(node)?;
        if let Some(observer) = self.observer {
            observer.before(subgraph, operator, self.head);
        }
        (kernel.run)(node).map_err(|fault| Error::Operator {
            subgraph,
            operator,
            fault,
        })?;
        if let Some(observer) = self.observer {
            observer.after(subgraph, operator, self.head);
        }
        Ok(())
    }
}

/// The data of a constant tensor of `model`; `None` for a tensor that is computed.
pub(crate) fn constant<'a>(model: &view::Model<'a>, tensor: &view::Tensor<'a>) -> Option<&'a [u8]> {
    let buffer = buffer(model, tensor)?;
    let data = model.buffer_bytes(buffer).ok()??;
    (!data.is_empty()).then_some(data)
}

/// The buffer of a tensor that is no variable.
#[inline(never)]
fn buffer<'a>(model: &view::Model<'a>, tensor: &view::Tensor<'a>) -> Option<view::Buffer<'a>> {
    let index = tensor.buffer().ok()?;
    if index == 0 || tensor.is_variable().ok()? {
        return None;
    }
    let buffers = &model.buffers();
    buffers.as_ref().ok()?.get(index as usize).ok()
}

/// Positions of a subgraph's first tensor and operator among those of all subgraphs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) tensor: u32,
    pub(crate) operator: u32,
}

impl Numbers {
    /// A subgraph, and the positions of what is first in it.
    #[inline(never)]
    pub(crate) fn of<'a>(
        model: &view::Model<'a>,
        index: u32,
    ) -> Result<(view::SubGraph<'a>, Self), view::Error> {
        let mut numbers = Numbers::default();
        let subgraphs = model.subgraphs()?;
        for before in 0..index {
            numbers.skip(&subgraphs.get(before as usize)?)?;
        }
        Ok((subgraphs.get(index as usize)?, numbers))
    }

    /// Moves behind a subgraph.
    pub(crate) fn skip(&mut self, subgraph: &view::SubGraph<'_>) -> Result<(), view::Error> {
        self.tensor = self.tensor.saturating_add(subgraph.tensors()?.len() as u32);
        self.operator = self
            .operator
            .saturating_add(subgraph.operators()?.len() as u32);
        Ok(())
    }
}

/// Subgraphs that operators call.
impl<'a> Node<'a> {
    /// The tensor `index` in the inputs of subgraph `subgraph`.
    pub(crate) fn subgraph_input(&self, subgraph: u32, index: usize) -> Result<Tensor<'a>, Fault> {
        self.subgraph_tensor(subgraph, true, index)
    }

    /// The tensor `index` in the outputs of subgraph `subgraph`.
    pub(crate) fn subgraph_output(&self, subgraph: u32, index: usize) -> Result<Tensor<'a>, Fault> {
        self.subgraph_tensor(subgraph, false, index)
    }

    fn subgraph_tensor(
        &self,
        subgraph: u32,
        input: bool,
        index: usize,
    ) -> Result<Tensor<'a>, Fault> {
        let (subgraph, numbers) = Numbers::of(self.run.model, subgraph)?;
        let list = if input {
            subgraph.inputs()?
        } else {
            subgraph.outputs()?
        };
        let (list, operand) = match input {
            true => (list, Operand::Input(index as u8)),
            false => (list, Operand::Output(index as u8)),
        };
        let tensor = list.get(index).ok_or(Fault::Subgraph)?;
        let tensor = usize::try_from(tensor).map_err(|_| Fault::Format)?;
        let table = subgraph.tensors()?.get(tensor)?;
        Tensor::new(self.run, &table, numbers.tensor + tensor as u32, operand)
    }

    /// Numbers of inputs and outputs of subgraph `subgraph`.
    pub(crate) fn subgraph_sizes(&self, subgraph: u32) -> Result<(usize, usize), Fault> {
        let subgraph = self
            .run
            .model
            .subgraphs()?
            .get(subgraph as usize)
            .map_err(|_| Fault::Subgraph)?;
        Ok((subgraph.inputs()?.len(), subgraph.outputs()?.len()))
    }

    /// Runs a subgraph.
    pub(crate) fn call(&self, subgraph: u32) -> Result<(), Fault> {
        let depth = &self.run.depth;
        if depth.get() >= MAX_DEPTH {
            return Err(Fault::Depth);
        }
        depth.set(depth.get() + 1);
        let result = self.run.subgraph(subgraph);
        depth.set(depth.get().saturating_sub(1));
        result.map_err(|error| match error {
            Error::Operator { fault, .. } => fault,
            _ => Fault::Subgraph,
        })
    }
}
