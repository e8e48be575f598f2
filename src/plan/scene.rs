//! One order of the operators, and what follows from it.

use std::borrow::Cow;

use crate::error::Error;
use crate::graph::Graph;
use crate::lifetimes::Lifetimes;
use crate::plan::Options;
use crate::scratch::Scratch;
use crate::tflm::{self, Simulation};

/// One order of the operators.
pub(super) struct Scene<'g, 'a> {
    /// The model with its operators in this order.
    pub(super) graph: Cow<'g, Graph<'a>>,
    pub(super) lifetimes: Lifetimes,
    /// What the kernels of each library of the target ask for.
    pub(super) scratch: Vec<Scratch>,
}

impl<'g, 'a> Scene<'g, 'a> {
    /// The model as it is.
    pub(super) fn of_file(graph: &'g Graph<'a>, options: &Options) -> Result<Self, Error> {
        Ok(Self {
            lifetimes: Lifetimes::of(graph)?,
            scratch: options.scratch_by_library(graph)?,
            graph: Cow::Borrowed(graph),
        })
    }

    /// What TFLM makes of these offsets with each library of the target; without offsets, what it plans itself.
    pub(super) fn simulate(&self, offsets: Option<&[i32]>) -> Result<Vec<Simulation>, Error> {
        let mut simulations: Vec<Simulation> = Vec::with_capacity(self.scratch.len());
        for (k, scratch) in self.scratch.iter().enumerate() {
            // Most operators ask for the same with several libraries.
            let known = self.scratch[..k].iter().position(|s| s == scratch);
            simulations.push(match known {
                Some(same) => simulations[same].clone(),
                None => tflm::simulate(&self.graph, &self.lifetimes, scratch, offsets)?,
            });
        }
        Ok(simulations)
    }

    /// Scratch memory of the library that figures are for.
    pub(super) fn first_scratch(&self) -> &Scratch {
        &self.scratch[0]
    }
}
