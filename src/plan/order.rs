//! Planning with the operators in the file's order and in a better one.

use arenaplan_schema::patch::OperatorOrder;

use super::{Candidate, Job};
use crate::check;
use crate::error::Error;
use crate::graph::Graph;
use crate::reorder::{Objects, Schedule, schedule};
use crate::report::Sizes;

/// The best order of the model's operators, where they may be reordered.
pub(super) fn search(job: &Job<'_, '_, '_>) -> Option<Schedule> {
    let objects = Objects::of_tensors(job.graph);
    job.options
        .reorder
        .then(|| schedule(job.graph, &objects, &job.scratch, &job.keep))
}

impl<'g, 'a, 'o> Job<'g, 'a, 'o> {
    /// The same job for `graph`, in which the operators are in the order of `schedule`.
    pub(super) fn in_order<'h>(
        &self,
        graph: &'h Graph<'a>,
        schedule: &Schedule,
    ) -> Result<Job<'h, 'a, 'o>, Error> {
        let mut job = Job::new(graph, self.options)?;
        // Operators are named as in the file that came in.
        job.warnings.clone_from(&self.warnings);
        job.start = self.start;
        let changed = schedule.orders.iter().enumerate();
        let changed = changed.filter(|(_, order)| !order.is_sorted());
        job.orders = changed
            .map(|(subgraph, order)| OperatorOrder {
                subgraph,
                order: order.clone(),
            })
            .collect();
        Ok(job)
    }

    /// The sizes of the model in this job's order.
    pub(super) fn sizes(&self) -> Result<Sizes, Error> {
        Sizes::of(self.graph, &self.lifetimes, &self.scratch, &self.keep)
    }

    /// Whether a written file has this job's order, and computes what `original` does.
    pub(super) fn check_order(
        &self,
        original: &Graph<'_>,
        written: &Graph<'_>,
    ) -> Result<(), Error> {
        if !check::order::is_same(self.graph, written) {
            let reason = "the operators are not written in the order planned".into();
            return Err(Error::Internal { reason });
        }
        match check::order::compare(original, written).first() {
            None => Ok(()),
            Some(difference) => Err(Error::Internal {
                reason: difference.to_string(),
            }),
        }
    }
}

/// The better of two jobs, by the head that TFLM will use; the file's order among equals.
pub(super) fn better<'j, 'g, 'a, 'o>(
    file: &'j Job<'g, 'a, 'o>,
    file_sizes: &Sizes,
    other: Option<&'j Job<'g, 'a, 'o>>,
) -> Result<(&'j Job<'g, 'a, 'o>, Candidate), Error> {
    let found = other.map(|job| job.best_candidate().map(|candidate| (job, candidate)));
    let found = match found {
        Some(Ok(found)) => Some(found),
        Some(Err(e @ Error::Internal { .. })) => return Err(e),
        // Something cannot be kept in that order.
        Some(Err(_)) | None => None,
    };
    let found = match found {
        // No plan in the file's order reaches that.
        Some(found) if found.1.simulation.head < file_sizes.bound_with_scratch_bytes => {
            return Ok(found);
        }
        other => other,
    };
    match (file.best_candidate(), found) {
        (Ok(in_file_order), Some((job, candidate)))
            if candidate.simulation.head < in_file_order.simulation.head =>
        {
            Ok((job, candidate))
        }
        (Ok(in_file_order), other) => {
            let is_late = in_file_order.is_late || other.is_some_and(|(_, c)| c.is_late);
            Ok((
                file,
                Candidate {
                    is_late,
                    ..in_file_order
                },
            ))
        }
        (Err(Error::CannotKeep { .. }), Some(found)) => Ok(found),
        (Err(e), _) => Err(e),
    }
}
