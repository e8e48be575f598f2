//! Models planned for several targets, step by step: what each step saves, and how far the plans are from their bounds.
//!
//! Targets share what is the same for all of them: the first one shows every step, the others what they add.
//!
//! ```text
//! any kernels                        reference          cmsis-nn
//! TFLM   placement   order   views   in place  overlap  TFLM   in place   overlap
//! ```
//!
//! Where row stripes are allowed, they are the last step of each target.

use crate::aliasing::Level;
use crate::error::Error;
use crate::plan::Options;
use crate::report::{Outcome, Report, Striped};
use crate::steps::{Step, plan_steps};
use crate::target::Target;

/// What is shown of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Group {
    /// The target.
    pub target: Target,
    /// Whether TFLM's own head is shown: not if a target before it has the same kernels.
    pub has_unplanned: bool,
    /// The steps, the last of which takes all that the target promises.
    pub steps: Vec<Step>,
}

/// What to show of each of `targets`, one that is named twice once. The other options are the same for all.
pub fn groups(targets: &[Target], options: &Options) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for &target in targets {
        if groups.iter().any(|g| g.target == target) {
            continue;
        }
        let first_library = |t: Target| t.libraries()[0];
        let is_known = |g: &Group| first_library(g.target) == first_library(target);
        let mut steps = Step::up_to(&with_target(options, target));
        if !groups.is_empty() {
            // Placement, order and views are those of the first target, or nearly.
            let best = steps.iter().rposition(|&step| step != Step::Stripes);
            let all = steps.into_iter().enumerate();
            let new = |&(k, step): &_| Some(k) == best || step > Step::Alias(Level::Views);
            steps = all.filter(new).map(|(_, step)| step).collect();
        }
        groups.push(Group {
            target,
            has_unplanned: !groups.iter().any(is_known),
            steps,
        });
    }
    groups
}

fn with_target(options: &Options, target: Target) -> Options {
    Options {
        target,
        ..options.clone()
    }
}

/// The figures of one model for one target, in bytes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Figures {
    /// The head of TFLM's own planning with the target's kernels.
    pub unplanned_bytes: u64,
    /// The head after each step of the group.
    pub head_bytes: Vec<u64>,
    /// No plan of the last step is below this.
    pub bound_bytes: u64,
    /// Whether the last step's head is proved to be the least.
    pub optimal: bool,
    /// Whether the operators of the last step are in another order than in the file.
    pub reordered: bool,
    /// The work that row stripes add in the last step, in percent of the model's; `None` where nothing was cut.
    pub extra_percent: Option<f64>,
}

impl Figures {
    fn new(reports: &[Report]) -> Option<Self> {
        let last = reports.last()?;
        Some(Self {
            unplanned_bytes: last.greedy_head_bytes,
            head_bytes: reports.iter().map(|r| r.head_bytes).collect(),
            bound_bytes: last.sizes.bound_with_scratch_bytes.min(last.head_bytes),
            optimal: last.optimal,
            reordered: last.reordered,
            extra_percent: last.stripes.as_ref().map(Striped::extra_percent),
        })
    }

    /// The head of the last step.
    pub fn head(&self) -> u64 {
        self.head_bytes.last().copied().unwrap_or(0)
    }

    /// How far the last head is above its bound, in percent of that.
    pub fn gap_percent(&self) -> f64 {
        match self.bound_bytes {
            0 => 0.0,
            bound => 100.0 * (self.head() - bound) as f64 / bound as f64,
        }
    }

    /// What is left of TFLM's head after each step; `None` when one of them is 0.
    fn ratios(&self) -> Option<Vec<f64>> {
        let before = self.unplanned_bytes;
        let is_used = before > 0 && self.head_bytes.iter().all(|&h| h > 0);
        let ratio = |&head: &u64| head as f64 / before as f64;
        is_used.then(|| self.head_bytes.iter().map(ratio).collect())
    }
}

/// One model for all targets.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// The figures, by group.
    pub figures: Vec<Figures>,
    /// Whether offsets that another compiler needs are in the file, which therefore stays as it is.
    pub has_compiled_offsets: bool,
    /// What the user should know, each once.
    pub warnings: Vec<String>,
}

/// Plans one model for all targets.
///
/// # Errors
/// As [`plan`](crate::plan::plan).
pub fn compare(bytes: &[u8], groups: &[Group], options: &Options) -> Result<Comparison, Error> {
    let mut comparison = Comparison {
        figures: Vec::new(),
        has_compiled_offsets: false,
        warnings: Vec::new(),
    };
    for group in groups {
        let planned = plan_steps(bytes, &with_target(options, group.target), &group.steps)?;
        let reports: Vec<Report> = planned.into_iter().map(|p| p.report).collect();
        for report in &reports {
            let is_compiled = matches!(report.outcome, Outcome::CompiledOffsets { .. });
            comparison.has_compiled_offsets |= is_compiled;
            for warning in &report.warnings {
                if !comparison.warnings.contains(warning) {
                    comparison.warnings.push(warning.clone());
                }
            }
        }
        comparison.figures.extend(Figures::new(&reports));
    }
    Ok(comparison)
}

/// What is left of TFLM's head, as a geometric mean over models.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Means {
    /// How many models count: those that use their head and that may be planned.
    pub models: usize,
    /// By group, and in it by step; 1 is TFLM alone with the same kernels.
    pub ratios: Vec<Vec<f64>>,
    /// By group, the work with row stripes by that without; 1 is as much.
    pub work: Vec<f64>,
}

impl Means {
    /// The means of `all`, models compared by the same groups; `None` when no model counts.
    pub fn of<'c>(all: impl IntoIterator<Item = &'c Comparison>) -> Option<Self> {
        let mut models = 0;
        let mut sums: Vec<Vec<f64>> = Vec::new();
        let mut work: Vec<f64> = Vec::new();
        for comparison in all.into_iter().filter(|c| !c.has_compiled_offsets) {
            let ratios: Option<Vec<_>> = comparison.figures.iter().map(Figures::ratios).collect();
            let Some(ratios) = ratios else { continue };
            if sums.is_empty() {
                sums = ratios.iter().map(|r| vec![0.0; r.len()]).collect();
                work = vec![0.0; ratios.len()];
            }
            models += 1;
            for (sum, ratio) in sums.iter_mut().flatten().zip(ratios.iter().flatten()) {
                *sum += ratio.ln();
            }
            for (sum, figures) in work.iter_mut().zip(&comparison.figures) {
                *sum += (1.0 + figures.extra_percent.unwrap_or(0.0) / 100.0).ln();
            }
        }
        for sum in sums.iter_mut().flatten().chain(&mut work) {
            *sum = (*sum / models as f64).exp();
        }
        (models > 0).then_some(Self {
            models,
            ratios: sums,
            work,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Stripes;
    use crate::target::Core;

    fn shown(targets: &[Target], options: &Options) -> Vec<(Target, bool, Vec<&'static str>)> {
        let groups = groups(targets, options).into_iter();
        groups
            .map(|g| {
                let steps = g.steps.iter().map(|s| s.name()).collect();
                (g.target, g.has_unplanned, steps)
            })
            .collect()
    }

    #[test]
    fn nothing_is_shown_twice() {
        let plain = Target::TflmCmsisNn(Some(Core::Plain));
        let targets = [Target::Tflm, Target::TflmReference, plain, Target::Tflm];
        assert_eq!(
            shown(&targets, &Options::default()),
            [
                (Target::Tflm, true, vec!["placement", "order", "views"]),
                (Target::TflmReference, false, vec!["in place", "overlap"]),
                (plain, true, vec!["in place", "overlap"]),
            ]
        );
    }

    #[test]
    fn every_target_shows_its_best() {
        let options = Options {
            reorder: false,
            ..Options::default()
        };
        let targets = [Target::TflmReference, Target::Tflm];
        assert_eq!(
            shown(&targets, &options),
            [
                (
                    Target::TflmReference,
                    true,
                    vec!["placement", "views", "in place", "overlap"]
                ),
                (Target::Tflm, false, vec!["views"]),
            ]
        );
        let options = Options {
            alias: Some(Level::None),
            ..Options::default()
        };
        assert_eq!(
            shown(&targets, &options),
            [
                (Target::TflmReference, true, vec!["placement", "order"]),
                (Target::Tflm, false, vec!["order"]),
            ]
        );
    }

    #[test]
    fn stripes_are_the_last_step() {
        let options = Options {
            stripes: Stripes::Auto,
            reorder: false,
            ..Options::default()
        };
        assert_eq!(
            shown(&[Target::Tflm, Target::TflmReference], &options),
            [
                (Target::Tflm, true, vec!["placement", "views", "stripes"]),
                (
                    Target::TflmReference,
                    false,
                    vec!["in place", "overlap", "stripes"]
                ),
            ]
        );
        assert_eq!(
            shown(&[Target::TflmReference, Target::Tflm], &options)[1],
            (Target::Tflm, false, vec!["views", "stripes"])
        );
    }

    #[test]
    fn models_without_a_head_do_not_count() {
        let model = |unplanned_bytes, head_bytes: &[u64], has_compiled_offsets| Comparison {
            figures: vec![Figures {
                unplanned_bytes,
                head_bytes: head_bytes.to_vec(),
                bound_bytes: 0,
                optimal: true,
                reordered: false,
                extra_percent: None,
            }],
            has_compiled_offsets,
            warnings: Vec::new(),
        };
        let all = [
            model(100, &[50, 40], false),
            model(0, &[0, 0], false),
            model(100, &[1, 1], true),
            model(100, &[98, 10], false),
        ];
        let means = Means::of(&all).unwrap_or_else(|| panic!("two models count"));
        assert_eq!(means.models, 2);
        // sqrt(0.5 * 0.98) and sqrt(0.4 * 0.1)
        for (mean, expected) in means.ratios[0].iter().zip([0.7, 0.2]) {
            assert!((mean - expected).abs() < 1e-12, "{mean}");
        }
        assert_eq!(Means::of(&all[1..3]), None);
    }

    #[test]
    fn gaps() {
        let mut figures = Figures {
            unplanned_bytes: 200,
            head_bytes: vec![150, 110],
            bound_bytes: 100,
            optimal: false,
            reordered: false,
            extra_percent: None,
        };
        assert!((figures.gap_percent() - 10.0).abs() < 1e-12);
        figures.bound_bytes = 0;
        assert_eq!(figures.gap_percent(), 0.0);
    }
}
