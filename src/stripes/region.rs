//! Regions: runs of operators that can be computed stripe by stripe.

use super::net::{Net, Rule};
use std::ops::RangeInclusive;

/// Consecutive operators into which one computed tensor goes and out of which one comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The operators, by position.
    pub(crate) operators: RangeInclusive<usize>,
    /// The tensor that goes in.
    pub(crate) source: u32,
    /// The tensor that comes out.
    pub(crate) result: u32,
}

impl Region {
    /// The positions of its operators in the net.
    pub fn operators(&self) -> RangeInclusive<usize> {
        self.operators.clone()
    }
}

impl Net {
    /// The region of these operators, if they are one.
    pub fn region(&self, operators: RangeInclusive<usize>) -> Option<Region> {
        let inside = self.operators.get(operators.clone())?;
        let result = *inside.last()?.outputs.first()?;
        let mut source = None;
        for (at, op) in operators.clone().zip(inside) {
            if matches!(self.rule(op), Rule::Whole(_)) {
                return None;
            }
            for input in self.placed_inputs(op) {
                let mut before = inside[..at - operators.start()].iter();
                if before.any(|o| o.outputs.contains(&input)) {
                    continue;
                }
                if source.is_some_and(|s| s != input) {
                    return None;
                }
                source = Some(input);
            }
        }
        // Nothing between is needed elsewhere.
        let between = || {
            let all = inside.iter().flat_map(|o| o.outputs.iter().copied());
            all.filter(|&t| t != result)
        };
        if between().any(|t| self.tensor(t).is_pinned) {
            return None;
        }
        let mut is_read = vec![false; self.tensors.len()];
        for (at, op) in self.operators.iter().enumerate() {
            let is_inside = operators.contains(&at);
            for &input in op.inputs.iter().flatten() {
                is_read[input as usize] |= is_inside;
                if !is_inside && between().any(|t| t == input) {
                    return None;
                }
            }
        }
        if source == Some(result) {
            return None;
        }
        between().all(|t| is_read[t as usize]).then_some(Region {
            operators,
            source: source?,
            result,
        })
    }

    /// All regions, by first and last operator.
    pub fn regions(&self) -> Vec<Region> {
        let uses = Uses::of(self);
        let mut found = Vec::new();
        for first in 0..self.operators.len() {
            uses.regions_from(self, first, |region| found.push(region));
        }
        found
    }

    /// Rows of a region's result.
    pub fn rows_of_result(&self, region: &Region) -> i64 {
        self.tensor(region.result).rows
    }
}

/// Where tensors are written and read.
struct Uses {
    /// The first operator that writes a tensor.
    writer: Vec<Option<usize>>,
    /// The last operator that reads it.
    last_reader: Vec<Option<usize>>,
}

impl Uses {
    fn of(net: &Net) -> Self {
        let mut uses = Self {
            writer: vec![None; net.tensors.len()],
            last_reader: vec![None; net.tensors.len()],
        };
        for (at, op) in net.operators.iter().enumerate() {
            for &t in &op.outputs {
                uses.writer[t as usize].get_or_insert(at);
            }
            for &t in op.inputs.iter().flatten() {
                uses.last_reader[t as usize] = Some(at);
            }
        }
        uses
    }

    /// Gives all regions that begin with an operator, the shortest first.
    fn regions_from(&self, net: &Net, first: usize, mut found: impl FnMut(Region)) {
        let mut source = None;
        // The last reader of what is computed between.
        let mut needed_to = first;
        for (last, op) in net.operators.iter().enumerate().skip(first) {
            let &[result] = &op.outputs[..] else {
                return;
            };
            if matches!(net.rule(op), Rule::Whole(_)) {
                return;
            }
            for input in net.placed_inputs(op) {
                let is_inside =
                    self.writer[input as usize].is_some_and(|w| (first..last).contains(&w));
                if is_inside {
                    continue;
                }
                if source.is_some_and(|s| s != input) {
                    return;
                }
                source = Some(input);
            }
            if let Some(source) = source
                && source != result
                && needed_to <= last
            {
                found(Region {
                    operators: first..=last,
                    source,
                    result,
                });
            }
            match self.last_reader[result as usize] {
                Some(reader) if reader > last && !net.tensor(result).is_pinned => {
                    needed_to = needed_to.max(reader);
                }
                _ => return,
            }
        }
    }
}
