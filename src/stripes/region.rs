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
        let mut found = Vec::new();
        for first in 0..self.operators.len() {
            for last in first..self.operators.len() {
                if matches!(self.rule(&self.operators[last]), Rule::Whole(_)) {
                    break;
                }
                found.extend(self.region(first..=last));
            }
        }
        found
    }

    /// Rows of a region's result.
    pub fn rows_of_result(&self, region: &Region) -> i64 {
        self.tensor(region.result).rows
    }
}
