//! The model's operators by TensorFlow Lite Micro's clock, which says when each tensor is in use.
//!
//! One clock runs through the whole model: 0 at the start, one more before each operator and before each subgraph that
//! an operator calls. Spans include both ends. Inputs of a subgraph live from its start, outputs to its end, everything
//! else from the operator that writes it to the last one that reads it, with all that the operator calls.

use arenaplan_schema::view::{Model, Operator, SubGraph};

use crate::error::Error;
use crate::kernel::Code;
use crate::node::Node;
use crate::run::{MAX_DEPTH, Numbers, Run};

/// Learns when things are in use. Positions are those among tensors, and operators, of all subgraphs.
pub(crate) trait Visitor {
    /// A tensor is written first at `clock`, or earlier.
    fn create(&mut self, tensor: u32, clock: u16) -> Result<(), Error>;
    /// A tensor is in use at `clock`.
    fn touch(&mut self, tensor: u32, clock: u16) -> Result<(), Error>;
    /// An operator runs from `first` to `last`.
    fn operator(&mut self, operator: u32, first: u16, last: u16) -> Result<(), Error>;
}

/// Walks through the subgraphs that an operator calls. Kernels that call none have no such function, so that firmware without
/// control flow does not link it.
pub(crate) type Calls =
    fn(&mut Walk<'_>, &Node<'_>, &Running<'_>, &mut dyn Visitor) -> Result<(), Error>;

/// Walks through the model from its first subgraph. All of its operators have a kernel.
pub(crate) fn walk<'a>(run: &'a Run<'a>, visitor: &mut dyn Visitor) -> Result<(), Error> {
    if run.model.subgraphs()?.is_empty() {
        return Ok(());
    }
    let mut walk = Walk {
        run,
        calls: run.kernels.iter().find_map(|kernel| kernel.calls),
        clock: 0,
    };
    walk.subgraph(0, None, visitor)
}

pub(crate) struct Walk<'a> {
    run: &'a Run<'a>,
    calls: Option<Calls>,
    clock: u16,
}

/// A subgraph that is being walked through, and the one that called it.
#[derive(Clone, Copy)]
pub(crate) struct Running<'c> {
    subgraph: u32,
    depth: u8,
    caller: Option<&'c Running<'c>>,
}

impl Running<'_> {
    fn contains(&self, subgraph: u32) -> bool {
        self.subgraph == subgraph || self.caller.is_some_and(|caller| caller.contains(subgraph))
    }
}

impl Walk<'_> {
    fn subgraph(
        &mut self,
        index: u32,
        caller: Option<&Running<'_>>,
        visitor: &mut dyn Visitor,
    ) -> Result<(), Error> {
        let depth = caller.map_or(0, |caller| caller.depth + 1);
        if depth >= MAX_DEPTH {
            return Err(Error::TooLarge);
        }
        let running = Running {
            subgraph: index,
            depth,
            caller,
        };
        let run = self.run;
        let (subgraph, first) = Numbers::of(run.model, index)?;
        self.ends(&subgraph, first, true, visitor)?;
        run.for_each_node_of(index, &subgraph, first, &mut |node| {
            self.operator(node, &running, visitor)
        })?;
        self.ends(&subgraph, first, false, visitor)
    }

    fn operator(
        &mut self,
        node: &Node<'_>,
        running: &Running<'_>,
        visitor: &mut dyn Visitor,
    ) -> Result<(), Error> {
        let (numbers, tensors) = (node.first_tensor(), node.tensors().len());
        self.tick()?;
        let first = self.clock;
        for tensor in node.outputs {
            visitor.create(position(numbers, tensors, tensor)?, first)?;
        }
        if let Some(calls) = self.calls {
            calls(self, node, running, visitor)?;
        }
        for tensor in node.inputs {
            if tensor != -1 {
                visitor.touch(position(numbers, tensors, tensor)?, self.clock)?;
            }
        }
        for tensor in node.outputs {
            visitor.touch(position(numbers, tensors, tensor)?, self.clock)?;
        }
        visitor.operator(node.number(), first, self.clock)
    }

    /// The subgraph's inputs, or its outputs.
    fn ends(
        &mut self,
        subgraph: &SubGraph<'_>,
        numbers: Numbers,
        inputs: bool,
        visitor: &mut dyn Visitor,
    ) -> Result<(), Error> {
        let list = match inputs {
            true => subgraph.inputs()?,
            false => subgraph.outputs()?,
        };
        let len = subgraph.tensors()?.len();
        for tensor in list {
            let id = position(numbers.tensor, len, tensor)?;
            visitor.create(id, self.clock)?;
            visitor.touch(id, self.clock)?;
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), Error> {
        self.clock = self.clock.checked_add(1).ok_or(Error::TooLarge)?;
        Ok(())
    }
}

/// The position in the plan of a tensor of a subgraph with `len` of them.
#[inline(never)]
pub(crate) fn position(first: u32, len: usize, tensor: i32) -> Result<u32, Error> {
    match usize::try_from(tensor) {
        Ok(at) if at < len => Ok(first.saturating_add(at as u32)),
        _ => Err(Error::Index { index: tensor, len }),
    }
}

/// Walks through the subgraphs that `node` calls.
pub(crate) fn calls(
    walk: &mut Walk<'_>,
    node: &Node<'_>,
    running: &Running<'_>,
    visitor: &mut dyn Visitor,
) -> Result<(), Error> {
    let mut calls = [None; 2];
    called(walk.run.model, &node.operator, &mut calls)?;
    for called in calls.into_iter().flatten() {
        walk.tick()?;
        if running.contains(called) {
            return Err(Error::Recursion { subgraph: called });
        }
        walk.subgraph(called, Some(running), visitor)?;
    }
    Ok(())
}

/// The subgraphs that an operator calls, in the order in which TFLM walks through them.
fn called(
    model: &Model<'_>,
    operator: &Operator<'_>,
    calls: &mut [Option<u32>; 2],
) -> Result<(), Error> {
    let code = model
        .operator_codes()?
        .get(operator.opcode_index()? as usize)?;
    let slots: &[u16] = match Code(code.builtin_code()?) {
        // The two branches; condition and body.
        Code::IF | Code::WHILE => &[0, 1],
        Code::CALL_ONCE => &[0],
        _ => return Ok(()),
    };
    let options = operator.options()?;
    for (&slot, call) in slots.iter().zip(calls) {
        let subgraph = match &options {
            Some(options) => options.i32(slot, 0)?,
            None => 0,
        };
        let len = model.subgraphs()?.len();
        match u32::try_from(subgraph) {
            Ok(index) if (index as usize) < len => *call = Some(index),
            _ => {
                return Err(Error::Index {
                    index: subgraph,
                    len,
                });
            }
        }
    }
    Ok(())
}
