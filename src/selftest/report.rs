//! What a self-test proves.

use std::fmt;

use super::Order;
use crate::target::Target;

/// What a self-test proves, and what it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The target that the plan was made for; `None` for a file without a plan of this tool.
    pub target: Option<Target>,
    /// Invokes.
    pub invokes: usize,
    /// Bytes of flash that inputs and outputs take, without code.
    pub flash_bytes: usize,
    /// Each operator that has an output over an input, in the order in which they run; copies onto themselves are none.
    pub findings: Vec<Finding>,
}

/// An operator that has an output over an input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The operator: `operator 3 CONV_2D`.
    pub operator: String,
    /// Whether it runs at all with the inputs of the test: it may be in a branch that is not taken.
    pub runs: bool,
    /// Orders with which it would compute something else, and the test fails.
    pub seen: Vec<Order>,
    /// Orders with which it would compute something else, and the test passes.
    pub unseen: Vec<Order>,
}

impl Finding {
    /// Whether the test fails with each order that makes a difference, and some does.
    pub fn is_seen(&self) -> bool {
        self.unseen.is_empty() && !self.seen.is_empty()
    }

    /// Whether it runs, and no order makes a difference.
    pub fn is_harmless(&self) -> bool {
        self.runs && self.unseen.is_empty() && self.seen.is_empty()
    }

    /// How much of it the test is blind for: more is worse.
    pub(super) fn blindness(&self) -> usize {
        match self.runs {
            true => self.unseen.len(),
            false => Order::ALL.len(),
        }
    }
}

impl Report {
    /// Operators with which an order that is not the plan's would show.
    pub fn seen(&self) -> usize {
        self.findings.iter().filter(|f| f.is_seen()).count()
    }

    /// Operators that compute something else with some other order, or may do so where they do not run in the test.
    pub fn matter(&self) -> usize {
        self.findings.iter().filter(|f| !f.is_harmless()).count()
    }

    /// Lines of text: what is proved, and what is not.
    pub fn lines(&self) -> Vec<String> {
        let over = self.findings.len();
        if over == 0 {
            return vec![
                "no operator has an output over an input: no kernel needs an order".into(),
            ];
        }
        let mut lines = vec![format!(
            "operators with outputs over their inputs: {over}; the order of their kernels matters for {}, and a wrong one \
             would be caught for {}",
            self.matter(),
            self.seen()
        )];
        for finding in &self.findings {
            let orders = |orders: &[Order]| {
                let orders: Vec<String> = orders.iter().map(Order::to_string).collect();
                orders.join(", ")
            };
            if !finding.runs {
                lines.push(format!(
                    "not caught: {}: it does not run with the test's inputs",
                    finding.operator
                ));
            } else if !finding.unseen.is_empty() {
                lines.push(format!(
                    "not caught: {}: {}",
                    finding.operator,
                    orders(&finding.unseen)
                ));
            } else if finding.is_harmless() {
                lines.push(format!("right in any order: {}", finding.operator));
            }
        }
        lines
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "self-test: {} invokes, {} bytes of flash for data",
            self.invokes, self.flash_bytes
        )?;
        for line in self.lines() {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}
