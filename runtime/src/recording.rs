//! What an arena's bytes are for, as TFLM's `RecordingMicroInterpreter` tells it.
//!
//! Nothing is recorded while a session works: the figures follow from the model, its plan and the kernels, and are worked
//! out when they are asked for. An application that never asks does not link this.

use core::fmt;

use arenaplan_schema::view::ONLINE;

use crate::error::Error;
use crate::node::{Node, Tensor};
use crate::prepare::{ALIGNMENT, for_each_node};
use crate::run::{Place, Run};
use crate::session::Session;

/// What memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Purpose {
    /// Tensors in the head to which the plan gives offsets.
    PlannedTensors,
    /// Tensors in the head that were placed on the device.
    OnlineTensors,
    /// Scratch memory of kernels, in the head, placed on the device.
    Scratch,
    /// In the tail: where each tensor is.
    TensorPlaces,
    /// In the tail: where each operator's scratch memory is.
    OperatorPlaces,
    /// In the tail: where each resource is.
    ResourcePlaces,
    /// In the tail: variable tensors.
    Variables,
    /// In the tail: values of resources.
    Resources,
}

impl Purpose {
    /// Whether the memory is in the head, where several things may share bytes; else it is in the tail.
    pub fn is_in_head(self) -> bool {
        matches!(
            self,
            Purpose::PlannedTensors | Purpose::OnlineTensors | Purpose::Scratch
        )
    }

    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::PlannedTensors => "planned tensors",
            Purpose::OnlineTensors => "online tensors",
            Purpose::Scratch => "scratch",
            Purpose::TensorPlaces => "tensor places",
            Purpose::OperatorPlaces => "operator places",
            Purpose::ResourcePlaces => "resource places",
            Purpose::Variables => "variables",
            Purpose::Resources => "resources",
        }
    }
}

/// Memory for one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// What it is for.
    pub purpose: Purpose,
    /// Bytes asked for.
    pub requested: usize,
    /// Bytes taken, with what rounding adds. In the head, bytes that are shared count for each that has them.
    pub used: usize,
    /// How many things are kept.
    pub count: usize,
}

/// What an arena's bytes are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Bytes of the head that inferences use.
    pub head_bytes: usize,
    /// Bytes of the head that preparing used.
    pub room_bytes: usize,
    /// Bytes of the tail: what its purposes use.
    pub tail_bytes: usize,
    /// Memory by purpose, in the order of [`Purpose`].
    pub usage: [Usage; 8],
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "head {} bytes, {} while preparing; tail {} bytes",
            self.head_bytes, self.room_bytes, self.tail_bytes
        )?;
        for usage in self.usage {
            writeln!(
                f,
                "{:<16} {:>8} requested {:>8} used {:>6} times",
                usage.purpose.name(),
                usage.requested,
                usage.used,
                usage.count
            )?;
        }
        Ok(())
    }
}

impl Session<'_, '_> {
    /// What the session's bytes are for.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn recording(&mut self) -> Result<Recording, Error> {
        let (head_bytes, room_bytes, tail_bytes) =
            (self.head_bytes(), self.room_bytes(), self.tail_bytes());
        let sizes = self.sizes();
        let run = self.assemble(&mut [], None)?;
        let mut books = Books::new();
        let words = [
            (Purpose::TensorPlaces, sizes.tensors, 4),
            (Purpose::OperatorPlaces, sizes.operators, 4),
            (Purpose::ResourcePlaces, sizes.resources, 8),
        ];
        for (purpose, count, bytes) in words {
            books.many(purpose, count as usize, bytes);
        }
        tensors(&run, &mut books)?;
        for_each_node(&run, &mut |node| scratch(node, &mut books))?;
        for number in 0..sizes.resources {
            let value = run.resource(number).map_or(0, |value| value.len());
            books.one(Purpose::Resources, value);
        }
        // The words are rounded together.
        let words = sizes.words().saturating_mul(4);
        if let Some(last) = books.0.get_mut(Purpose::OperatorPlaces as usize) {
            last.used = last
                .used
                .saturating_add(words.next_multiple_of(ALIGNMENT) - words);
        }
        Ok(Recording {
            head_bytes,
            room_bytes,
            tail_bytes,
            usage: books.0,
        })
    }
}

fn tensors(run: &Run<'_>, books: &mut Books) -> Result<(), Error> {
    let plan = run.model.offline_plan()?.map(|plan| plan.offsets());
    let mut id = 0u32;
    for subgraph in run.model.subgraphs()? {
        for table in subgraph?.tensors()? {
            let (table, this) = (table?, id);
            id = id.saturating_add(1);
            let place = Place(run.tensor_word(this));
            if place == Place::NONE || place.as_resource().is_some() {
                continue;
            }
            let size = Error::TensorSize { tensor: this };
            let operand = crate::error::Operand::Input(0);
            let tensor = Tensor::new(run, &table, this, operand).map_err(|_| size)?;
            let offset = plan.and_then(|plan| plan.get(this as usize));
            let purpose = match place.as_head() {
                None => Purpose::Variables,
                Some(_) if offset.is_some_and(|offset| offset != ONLINE) => Purpose::PlannedTensors,
                Some(_) => Purpose::OnlineTensors,
            };
            books.one(purpose, tensor.byte_len().unwrap_or(0));
        }
    }
    Ok(())
}

fn scratch(node: &Node<'_>, books: &mut Books) -> Result<(), Error> {
    let kernel = node.run.kernel_or_error(node)?;
    let is_prepared = Place(node.run.operator_word(node.number()))
        .as_file()
        .is_some();
    if let Some(bytes) = kernel.scratch.filter(|_| !is_prepared)
        && let Ok(bytes) = bytes(node)
        && bytes != 0
    {
        books.one(Purpose::Scratch, bytes);
    }
    Ok(())
}

struct Books([Usage; 8]);

impl Books {
    fn new() -> Self {
        Self(
            [
                Purpose::PlannedTensors,
                Purpose::OnlineTensors,
                Purpose::Scratch,
                Purpose::TensorPlaces,
                Purpose::OperatorPlaces,
                Purpose::ResourcePlaces,
                Purpose::Variables,
                Purpose::Resources,
            ]
            .map(|purpose| Usage {
                purpose,
                requested: 0,
                used: 0,
                count: 0,
            }),
        )
    }

    /// One thing, rounded by itself.
    fn one(&mut self, purpose: Purpose, bytes: usize) {
        let used = bytes.checked_next_multiple_of(ALIGNMENT).unwrap_or(bytes);
        self.add(purpose, bytes, used, 1);
    }

    /// Several things of the same size, side by side.
    fn many(&mut self, purpose: Purpose, count: usize, bytes: usize) {
        let all = count.saturating_mul(bytes);
        self.add(purpose, all, all, count);
    }

    fn add(&mut self, purpose: Purpose, requested: usize, used: usize, count: usize) {
        if let Some(usage) = self.0.get_mut(purpose as usize) {
            usage.requested = usage.requested.saturating_add(requested);
            usage.used = usage.used.saturating_add(used);
            usage.count = usage.count.saturating_add(count);
        }
    }
}
