//! Planning with row stripes: rewritings of the file are planned like any file, and the one with the smallest arena wins.

use std::fmt;
use std::str::FromStr;

use arenaplan_schema::patch::{self, Edit};

use super::base::Base;
use super::{Options, Planned, patch_error, plan_base};
use crate::error::Error;
use crate::execute::{self, Feed, Setting};
use crate::graph::Graph;
use crate::model::Model;
use crate::report::{Outcome, Report};

/// How many rewritings are planned: the best ones by their estimates.
const MAX_PLANNED: usize = 4;

/// How many inputs a rewriting is run with beside the file that came in.
const PROOF_INVOKES: usize = 3;

/// Whether layers may be computed in row stripes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stripes {
    /// They may not.
    #[default]
    No,
    /// With at most so much more work, in thousandths of the model's.
    UpTo(u32),
    /// With as much more work as is in proportion to what it saves.
    Auto,
}

impl fmt::Display for Stripes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stripes::No => f.pad("no"),
            Stripes::Auto => f.pad("auto"),
            Stripes::UpTo(thousandths) if thousandths % 10 == 0 => {
                write!(f, "{}%", thousandths / 10)
            }
            Stripes::UpTo(thousandths) => {
                write!(f, "{}.{}%", thousandths / 10, thousandths % 10)
            }
        }
    }
}

/// A text that does not say how much more work stripes may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoStripes(String);

impl fmt::Display for NoStripes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no amount of work: give a percentage of the model's from 0.1% to 1000% with one decimal at most, as 10% or \
             7.5%, or auto, or no",
            self.0
        )
    }
}

impl std::error::Error for NoStripes {}

impl FromStr for Stripes {
    type Err = NoStripes;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let thousandths = |text: &str| {
            let number = text.strip_suffix('%').unwrap_or(text);
            let (whole, tenth) = number.split_once('.').unwrap_or((number, "0"));
            let is_number = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
            if !is_number(whole) || !is_number(tenth) || tenth.len() > 1 {
                return None;
            }
            let whole: u32 = whole.parse().ok()?;
            let all = whole.checked_mul(10)? + tenth.parse::<u32>().ok()?;
            (1..=10_000).contains(&all).then_some(all)
        };
        match text {
            "no" => Ok(Stripes::No),
            "auto" => Ok(Stripes::Auto),
            _ => match thousandths(text) {
                Some(all) => Ok(Stripes::UpTo(all)),
                None => Err(NoStripes(text.to_owned())),
            },
        }
    }
}
