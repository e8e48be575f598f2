//! Where everything goes: the words of the tail, and a place for each tensor.
//!
//! ```text
//! head (while preparing): one record of 16 bytes per buffer
//! tail: a word per tensor | a word per operator | two words per resource | variables | values of resources
//! ```

use arenaplan_schema::view::{self, Model, ONLINE, Vector};

use crate::check;
use crate::error::{Error, Operand};
use crate::greedy::{Buffers, greedy};
use crate::kernel::Kernel;
use crate::memory::ViewMut;
use crate::node::{Node, Tensor};
use crate::prepared::prepared;
use crate::records::{RECORD, Records, UNPLACED};
use crate::resources::resources;
use crate::run::{Numbers, Place, Run, constant};
use crate::types::Type;
use crate::walk::{Visitor, walk};

/// Alignment of the arena and of everything that is placed in it: TFLM's, so that plans mean the same.
pub(crate) const ALIGNMENT: usize = 16;

/// The newest plan that is understood.
const PLAN_VERSION: u32 = 1;

/// Counts that follow from the model alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) tensors: u32,
    pub(crate) operators: u32,
    pub(crate) resources: u32,
    /// Bytes of variable tensors and of the values of resources, each rounded.
    pub(crate) state_bytes: usize,
}

impl Sizes {
    pub(crate) fn of(model: &Model<'_>, kernels: &[Kernel]) -> Result<Self, Error> {
        let mut sizes = Sizes::default();
        let counts = for_each_tensor(model, &mut |id, tensor| {
            if tensor.is_variable()? {
                let bytes = rounded(byte_len(tensor, id)?)?;
                sizes.state_bytes = add(sizes.state_bytes, bytes)?;
            }
            Ok(())
        })?;
        if counts.tensor == u32::MAX || counts.operator == u32::MAX {
            return Err(Error::TooLarge);
        }
        (sizes.tensors, sizes.operators) = (counts.tensor, counts.operator);
        if let Some(resources) = resources(kernels) {
            (resources.count)(model, &mut sizes)?;
        }
        Ok(sizes)
    }

    pub(crate) fn words(&self) -> usize {
        // Each count is below 2^32, and so is what a file can hold.
        (self.tensors as usize)
            .saturating_add(self.operators as usize)
            .saturating_add((self.resources as usize).saturating_mul(2))
    }

    /// Bytes of the tail.
    pub(crate) fn tail(&self) -> Result<usize, Error> {
        let words = rounded(self.words().saturating_mul(4))?;
        add(words, self.state_bytes)
    }
}

pub(crate) fn add(a: usize, b: usize) -> Result<usize, Error> {
    a.checked_add(b).ok_or(Error::TooLarge)
}

pub(crate) fn rounded(bytes: usize) -> Result<usize, Error> {
    bytes
        .checked_next_multiple_of(ALIGNMENT)
        .ok_or(Error::TooLarge)
}

/// Bytes of a tensor; `id` is for the error.
pub(crate) fn byte_len(tensor: &view::Tensor<'_>, id: u32) -> Result<usize, Error> {
    let shape = crate::node::Shape(tensor.shape()?);
    let element = Type(tensor.element_type()?).bytes();
    let bytes = shape
        .elements()
        .zip(element)
        .and_then(|(n, bytes)| n.checked_mul(bytes));
    bytes.ok_or(Error::TensorSize { tensor: id })
}

/// Calls `with` for each tensor of all subgraphs, with its position in the plan; the result counts tensors and operators.
#[inline(never)]
fn for_each_tensor<'a>(
    model: &Model<'a>,
    with: &mut dyn FnMut(u32, &view::Tensor<'a>) -> Result<(), Error>,
) -> Result<Numbers, Error> {
    // By index here and below: less is copied than with an iterator.
    let mut numbers = Numbers::default();
    let subgraphs = model.subgraphs()?;
    for index in 0..subgraphs.len() {
        let subgraph = subgraphs.get(index)?;
        let tensors = subgraph.tensors()?;
        for k in 0..tensors.len() {
            with(numbers.tensor.saturating_add(k as u32), &tensors.get(k)?)?;
        }
        numbers.skip(&subgraph)?;
    }
    Ok(numbers)
}

/// What preparing found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prepared {
    /// Bytes of the head that inferences use.
    pub(crate) head: usize,
    /// Bytes of the head that preparing used.
    pub(crate) room: usize,
}

/// Fills the words of the tail.
pub(crate) fn prepare(run: &Run<'_>) -> Result<Prepared, Error> {
    let model = &run.model;
    let plan = model.offline_plan_of(run.tensors as usize)?;
    if let Some(plan) = &plan
        && plan.version() > PLAN_VERSION
    {
        return Err(Error::PlanVersion {
            version: plan.version(),
        });
    }
    // Before tensors: without its kernel, what VAR_HANDLE makes would look like a tensor of unknown size.
    for_each_node(run, &mut |node| run.kernel_or_error(node).map(drop))?;
    // All bits of no place are set.
    let words = run.tail.part(0, run.words.len().saturating_mul(4));
    words.unwrap_or_default().fill(u8::MAX);
    let records = run.head.len() / RECORD * RECORD;
    let words = run.head.part(0, records).and_then(ViewMut::cast);
    let mut records = Records::new(words.ok_or(Error::ArenaAlignment)?);
    if let Some(resources) = resources(run.kernels) {
        (resources.number)(run)?;
    }
    if let Some(find) = prepared(run.kernels) {
        find(run)?;
    }
    let offsets = plan.map(|plan| plan.offsets());
    tensors(run, &mut records, offsets)?;
    let tensors = records.len();
    scratch(run, &mut records)?;
    let room = records.len().saturating_mul(RECORD);
    too_small(room, run.head.len())?;

    let mut spans = Spans { run, records };
    walk(run, &mut spans)?;
    // What never runs needs no scratch memory, and TFLM gives it none.
    for index in tensors..records.len() {
        if records.span(index).0 == 0 {
            records.drop_bytes(index);
        }
    }
    let head = greedy(&mut records) as usize;
    too_small(head, run.head.len())?;
    check::plan(run, records)?;

    for index in 0..run.tensors.saturating_add(run.operators) {
        let record = run.words.get(index as usize);
        if let Some(offset) = record_of(&records, record) {
            let place = Place::head(offset as usize).ok_or(Error::TooLarge)?;
            run.words.set(index as usize, place.0);
        }
    }
    place_state(run)?;
    Ok(Prepared { head, room })
}

fn record_of(records: &Records<'_>, word: u32) -> Option<u32> {
    let index = (word as usize) < records.len();
    index.then(|| records.range(word as usize).0)
}

fn too_small(needed: usize, given: usize) -> Result<(), Error> {
    match needed > given {
        true => Err(Error::ArenaTooSmall { needed, given }),
        false => Ok(()),
    }
}

/// A record for each tensor in the head; its number goes into the tensor's word.
fn tensors(
    run: &Run<'_>,
    records: &mut Records<'_>,
    plan: Option<Vector<'_, i32>>,
) -> Result<(), Error> {
    let model = &run.model;
    for_each_tensor(model, &mut |this, tensor| {
        if run.tensor_word(this) != Place::NONE.0 || tensor.is_variable()? {
            return Ok(());
        }
        let element = Type(tensor.element_type()?).bytes().unwrap_or(1).max(1);
        if let Some(data) = constant(model, tensor) {
            return match data.as_ptr().addr().is_multiple_of(element.min(4)) {
                true => Ok(()),
                false => Err(Error::ConstantAlignment { tensor: this }),
            };
        }
        let bytes = byte_len(tensor, this)?;
        if bytes == 0 {
            return Ok(());
        }
        let offset = plan
            .and_then(|plan| plan.get(this as usize))
            .unwrap_or(ONLINE);
        let fixed = match u32::try_from(offset) {
            Err(_) => UNPLACED,
            Ok(fixed) => {
                if !(fixed as usize).is_multiple_of(element)
                    || Place::head(fixed as usize).is_none()
                {
                    return Err(Error::PlanOffset {
                        tensor: this,
                        offset,
                    });
                }
                fixed
            }
        };
        // Where there is no room for it, the record is counted, and lost.
        let record = records.push(bytes, fixed)?;
        run.words.set(this as usize, record);
        Ok(())
    })?;
    Ok(())
}

/// A record for each operator with scratch memory; its number goes into the operator's word.
fn scratch(run: &Run<'_>, records: &mut Records<'_>) -> Result<(), Error> {
    for_each_node(run, &mut |node| {
        let Some(bytes) = run.kernel(node).and_then(|kernel| kernel.scratch) else {
            return Ok(());
        };
        // What the file has needs no memory.
        if run.operator_word(node.number()) != Place::NONE.0 {
            return Ok(());
        }
        let bytes = bytes(node).map_err(|fault| Error::Operator {
            subgraph: node.subgraph(),
            operator: node.index,
            fault,
        })?;
        if bytes != 0 {
            let record = records.push(bytes, UNPLACED)?;
            run.set_operator_word(node.number(), record);
        }
        Ok(())
    })
}

/// Calls `with` for each operator of all subgraphs.
pub(crate) fn for_each_node(
    run: &Run<'_>,
    with: &mut dyn FnMut(&Node<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut first = Numbers::default();
    let subgraphs = run.model.subgraphs()?;
    for index in 0..subgraphs.len() {
        let subgraph = subgraphs.get(index)?;
        run.for_each_node_of(index as u32, &subgraph, first, with)?;
        first.skip(&subgraph)?;
    }
    Ok(())
}

/// Fills in first and last uses.
struct Spans<'s, 'a> {
    run: &'s Run<'a>,
    records: Records<'a>,
}

impl Spans<'_, '_> {
    fn record(&self, word: u32) -> Option<usize> {
        Some(word as usize).filter(|&index| index < self.records.len())
    }
}

impl Visitor for Spans<'_, '_> {
    fn create(&mut self, tensor: u32, clock: u16) -> Result<(), Error> {
        let clock = clock.checked_add(1).ok_or(Error::TooLarge)?;
        if let Some(index) = self.record(self.run.tensor_word(tensor))
            && let (0, last) = self.records.span(index)
        {
            self.records.set_span(index, clock, last.max(clock));
        }
        Ok(())
    }

    fn touch(&mut self, tensor: u32, clock: u16) -> Result<(), Error> {
        let clock = clock.checked_add(1).ok_or(Error::TooLarge)?;
        if let Some(index) = self.record(self.run.tensor_word(tensor)) {
            let (first, _) = self.records.span(index);
            self.records.set_span(index, first, clock);
        }
        Ok(())
    }

    fn operator(&mut self, operator: u32, first: u16, last: u16) -> Result<(), Error> {
        let word = self.run.operator_word(operator);
        if let Some(index) = self.record(word) {
            let (before, _) = self.records.span(index);
            let first = if before == 0 { first + 1 } else { before };
            let last = last.checked_add(1).ok_or(Error::TooLarge)?;
            self.records.set_span(index, first, last);
        }
        Ok(())
    }
}

/// Places variables and values of resources in the tail.
fn place_state(run: &Run<'_>) -> Result<(), Error> {
    let mut next = rounded(run.words.len().saturating_mul(4))?;
    for_each_tensor(run.model, &mut |this, tensor| {
        if tensor.is_variable()? {
            let place = Place::tail(next).ok_or(Error::TooLarge)?;
            run.words.set(this as usize, place.0);
            next = add(next, rounded(byte_len(tensor, this)?)?)?;
        }
        Ok(())
    })?;
    if let Some(resources) = resources(run.kernels) {
        next = (resources.place)(run, next)?;
    }
    too_small(next, run.tail.len())
}

/// Variables and resources as they are before the first inference: the byte that stands for zero, as in TFLM.
pub(crate) fn reset(run: &Run<'_>) -> Result<(), Error> {
    for_each_tensor(run.model, &mut |this, table| {
        if !table.is_variable()? {
            return Ok(());
        }
        let tensor = Tensor::new(run, table, this, Operand::Input(0))
            .map_err(|_| Error::TensorSize { tensor: this })?;
        let value = match tensor.element_type() {
            Type::INT8 => tensor.zero_point() as u8,
            _ => 0,
        };
        if let Ok(bytes) = tensor.bytes_mut() {
            bytes.fill(value);
        }
        Ok(())
    })?;
    for operator in 0..run.operators {
        if run.operator_word(operator) == Place::DONE.0 {
            run.set_operator_word(operator, Place::NONE.0);
        }
    }
    match resources(run.kernels) {
        Some(resources) => (resources.reset)(run),
        None => Ok(()),
    }
}
