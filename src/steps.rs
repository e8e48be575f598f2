//! What each step of planning saves: the same model planned with less and less left out.
//!
//! ```text
//! unplanned   TFLM's own planner
//! placement   the file's order of operators, nothing shared
//! order       operators reordered
//! views       also copies onto themselves
//! in place    also outputs that start where their input does
//! overlap     also outputs that run behind their input
//! stripes     also layers in row stripes
//! ```

use crate::aliasing::{Level, Promises};
use crate::error::Error;
use crate::graph::Graph;
use crate::model::Model;
use crate::plan::{Options, Planned, Stripes, plan};
use crate::target::Target;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Step {
    /// Tensors are placed better than TFLM does.
    Placement,
    /// Operators run in another order.
    Order,
    /// Tensors share bytes up to this level.
    Alias(Level),
    /// Layers are computed in row stripes.
    Stripes,
}

impl Step {
    /// The steps up to what `options` allow.
    pub fn up_to(options: &Options) -> Vec<Step> {
        let mut steps = vec![Step::Placement];
        if options.reorder {
            steps.push(Step::Order);
        }
        let levels = Level::ALL.into_iter().skip(1);
        steps.extend(levels.filter(|&l| l <= options.level()).map(Step::Alias));
        if options.stripes != Stripes::No {
            steps.push(Step::Stripes);
        }
        steps
    }

    /// The name, as a column's title.
    pub fn name(self) -> &'static str {
        match self {
            Step::Placement => "placement",
            Step::Order => "order",
            Step::Alias(Level::None) => "nothing shared",
            Step::Alias(Level::Views) => "views",
            Step::Alias(Level::InPlace) => "in place",
            Step::Alias(Level::Overlap) => "overlap",
            Step::Stripes => "stripes",
        }
    }

    /// The options with everything up to this step.
    pub fn options(self, options: &Options) -> Options {
        let mut part = options.clone();
        if self != Step::Stripes {
            part.stripes = Stripes::No;
        }
        match self {
            Step::Stripes => {}
            Step::Placement => {
                part.reorder = false;
                part.alias = Some(Level::None);
            }
            Step::Order => part.alias = Some(Level::None),
            Step::Alias(level) if level == options.level() => part.alias = options.alias,
            Step::Alias(level) => part.alias = Some(level),
        }
        part
    }
}

/// Plans a model up to each step that `options` allow, in the order of the steps; each is at most the one before it.
///
/// # Errors
/// As [`plan`].
pub fn steps(bytes: &[u8], options: &Options) -> Result<Vec<(Step, Planned)>, Error> {
    let steps = Step::up_to(options);
    let planned = plan_steps(bytes, options, &steps)?;
    Ok(steps.into_iter().zip(planned).collect())
}

/// Plans a model up to each of `steps`. A level that promises nothing more than the one before it is not planned again.
///
/// # Errors
/// As [`plan`].
pub fn plan_steps(bytes: &[u8], options: &Options, steps: &[Step]) -> Result<Vec<Planned>, Error> {
    let mut all: Vec<Planned> = Vec::with_capacity(steps.len());
    let mut before: Option<(Target, bool, Stripes, Promises)> = None;
    for step in steps {
        let part = step.options(options);
        let graph = Graph::read(Model::parse(bytes)?)?;
        let promises = Promises::allowed(&graph, &part);
        let kernels = match promises.is_empty() {
            true => Target::Tflm,
            false => part.kernels(),
        };
        let same = Some((kernels, part.reorder, part.stripes, promises));
        let mut planned = match all.last() {
            Some(last) if same == before => last.clone(),
            _ => plan(bytes, &part)?,
        };
        planned.report.level = part.level();
        all.push(planned);
        before = same;
    }
    Ok(all)
}
