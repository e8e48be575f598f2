//! The search for the places of what is linked.
//!
//! Each model is planned alone first. Then one place after the other is decided: the offsets that one of its models would choose
//! by itself, the bottom, and the top of a head, are tried, and each model of the place is planned again with that offset
//! fixed. What lets the largest head grow least is taken. Where that is still larger than without links, the places are
//! decided once more, with the borders of all that the models have there as further offsets.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::links::Linked;
use super::totals::heads;
use super::{Error, Member};
use crate::graph::{Graph, TensorId};
use crate::lifetimes::Lifetimes;
use crate::model::Model;
use crate::plan::{Options, Planned, Stripes, plan};
use crate::stored::StoredPlan;
use crate::text::thousands;
use crate::tflm;

/// How many offsets of one place are tried in the second round.
const MAX_TRIED: usize = 24;

/// Why a model has no row stripes that has them alone.
const NOT_TOGETHER: &str = "the arena that the models share would not be smaller";

/// What was found.
pub(super) struct Found {
    pub(super) models: Vec<Planned>,
    /// The offset of each place.
    pub(super) offsets: Vec<u64>,
    pub(super) unlinked_head_bytes: u64,
    /// What the links cost.
    pub(super) warning: Option<String>,
}

/// Tensors with fixed offsets.
type Fixed = Vec<(TensorId, u64)>;

/// What makes one choice better than another: the largest head with the first library, the largest heads with all of them, the
/// heads of all models.
type Rank = (u64, u64, u64);

pub(super) struct Search<'s> {
    members: &'s [Member<'s>],
    linked: &'s Linked,
    options: &'s Options,
    /// Whether layers of a model may be in row stripes.
    stripes: Vec<Stripes>,
    /// Why they are not, where that was asked for.
    no_stripes: Vec<Option<String>>,
    /// What has been planned, by model and fixed offsets; why it could not be.
    known: BTreeMap<(usize, Fixed), Result<Rc<Planned>, crate::Error>>,
}

impl<'s> Search<'s> {
    pub(super) fn new(members: &'s [Member<'s>], linked: &'s Linked, options: &'s Options) -> Self {
        Self {
            members,
            linked,
            options,
            stripes: vec![options.stripes; members.len()],
            no_stripes: vec![None; members.len()],
            known: BTreeMap::new(),
        }
    }

    /// The options for one of the models.
    fn options_of(&self, model: usize) -> Options {
        Options {
            stripes: self.stripes[model],
            ..self.options.clone()
        }
    }

    /// Leaves row stripes to models with which they make the arena for all smaller: the head is the largest of all, but what
    /// stripes add to the tails counts with each. For each head that the arena may have, a model takes what has the smaller
    /// tail of what fits.
    ///
    /// Gives each model's plan without links.
    fn choose_stripes(&mut self) -> Result<Vec<Planned>, Error> {
        let mut plans = Vec::new();
        for member in self.members {
            let with = |stripes| {
                let options = Options {
                    stripes,
                    ..self.options.clone()
                };
                plan(member.bytes, &options).map_err(|e| Error::of(member, e))
            };
            let plain = with(Stripes::No)?;
            let striped = match self.options.stripes {
                Stripes::No => plain.clone(),
                stripes => with(stripes)?,
            };
            plans.push([plain, striped]);
        }
        let need = |planned: &Planned| {
            let report = &planned.report;
            (report.head_bytes, report.arena_32.tail_bytes)
        };
        let needs: Vec<_> = plans.iter().map(|both| both.each_ref().map(need)).collect();
        let fitting = |head: u64| -> Option<(u64, Vec<bool>)> {
            let mut sum = head;
            let mut striped = Vec::new();
            for [plain, stripes] in &needs {
                let fits = |need: &(u64, u64)| need.0 <= head;
                let is_striped = match (fits(plain), fits(stripes)) {
                    (true, true) => stripes.1 < plain.1,
                    (false, true) => true,
                    (true, false) => false,
                    (false, false) => return None,
                };
                sum += if is_striped { stripes.1 } else { plain.1 };
                striped.push(is_striped);
            }
            Some((sum, striped))
        };
        let heads = needs.iter().flatten().map(|need| need.0);
        let best = heads.filter_map(fitting).min();
        let chosen = best.map_or_else(Vec::new, |(_, striped)| striped);
        let mut alone = Vec::new();
        for (model, [plain, striped]) in plans.into_iter().enumerate() {
            alone.push(match chosen.get(model) {
                Some(true) => striped,
                _ => {
                    self.stripes[model] = Stripes::No;
                    self.no_stripes[model] = match striped.report.stripes {
                        Some(_) => Some(NOT_TOGETHER.into()),
                        None => striped.report.no_stripes,
                    };
                    plain
                }
            });
        }
        Ok(alone)
    }

    pub(super) fn run(mut self) -> Result<Found, Error> {
        let mut unlinked_head_bytes = 0;
        for (model, alone) in self.choose_stripes()?.into_iter().enumerate() {
            unlinked_head_bytes = unlinked_head_bytes.max(alone.report.head_bytes);
            if self.linked.keep[model].is_empty() {
                self.known.insert((model, Vec::new()), Ok(Rc::new(alone)));
            }
        }
        let mut offsets: Vec<Option<u64>> = vec![None; self.linked.places.len()];
        for place in 0..offsets.len() {
            let tried = self.likely(place, &offsets)?;
            self.decide(place, &mut offsets, &tried)?;
        }
        for place in 0..offsets.len() {
            match self.rank(&offsets) {
                Ok((head, ..)) if head > unlinked_head_bytes => {
                    let tried = self.borders(place, &offsets, head)?;
                    self.decide(place, &mut offsets, &tried)?;
                }
                _ => break,
            }
        }
        let mut models = Vec::new();
        for model in 0..self.members.len() {
            let mut planned = (*self.planned(model, &offsets)?).clone();
            if let Some(why) = &self.no_stripes[model] {
                planned.report.no_stripes = Some(why.clone());
            }
            models.push(planned);
        }
        let head = models
            .iter()
            .map(|m| m.report.head_bytes)
            .max()
            .unwrap_or(0);
        let warning = (head > unlinked_head_bytes).then(|| {
            format!(
                "the links make the largest head {} bytes instead of {}; no better place was found for what is linked",
                thousands(head),
                thousands(unlinked_head_bytes)
            )
        });
        Ok(Found {
            models,
            offsets: offsets.into_iter().map(Option::unwrap_or_default).collect(),
            unlinked_head_bytes,
            warning,
        })
    }

    /// Takes the best of the offsets for a place, and of what it has already.
    fn decide(
        &mut self,
        place: usize,
        offsets: &mut [Option<u64>],
        tried: &[u64],
    ) -> Result<(), Error> {
        let mut least = 0;
        for model in 0..self.members.len() {
            let mut free = offsets.to_vec();
            free[place] = None;
            if let Ok(planned) = self.planned(model, &free) {
                least = least.max(planned.report.head_bytes);
            }
        }
        let mut best: Option<(Rank, u64)> = None;
        let mut fault = None;
        let known: Vec<u64> = offsets[place].into_iter().collect();
        for &offset in known.iter().chain(tried) {
            offsets[place] = Some(offset);
            match self.rank(offsets) {
                Ok(rank) if best.is_none_or(|(b, _)| rank < b) => best = Some((rank, offset)),
                Ok(_) => {}
                Err(e) => fault = fault.or(Some(e)),
            }
            // The solver can do no better without this place.
            if best.is_some_and(|((head, ..), _)| head <= least) {
                break;
            }
        }
        match (best, fault) {
            (Some((_, offset)), _) => {
                offsets[place] = Some(offset);
                Ok(())
            }
            (None, Some(fault)) => Err(fault),
            (None, None) => Err(Error::Group {
                reason: "no place was found for what is linked".into(),
            }),
        }
    }

    fn rank(&mut self, offsets: &[Option<u64>]) -> Result<Rank, Error> {
        let libraries = self.options.kernels().libraries().len();
        let mut largest = vec![0; libraries];
        let mut sum = 0;
        for model in 0..self.members.len() {
            let planned = self.planned(model, offsets)?;
            for (k, largest) in largest.iter_mut().enumerate() {
                *largest = heads(&planned, k).0.max(*largest);
            }
            sum += planned.report.head_bytes;
        }
        let first = largest.first().copied().unwrap_or(0);
        Ok((first, largest.iter().sum(), sum))
    }

    /// A model's plan with the places that have an offset.
    fn planned(&mut self, model: usize, offsets: &[Option<u64>]) -> Result<Rc<Planned>, Error> {
        let mut fixed = Fixed::new();
        for (place, offset) in self.linked.places.iter().zip(offsets) {
            for &(_, tensor) in place.tensors.iter().filter(|t| t.0 == model) {
                fixed.extend(offset.map(|o| (tensor, o)));
            }
        }
        fixed.sort_unstable();
        let key = (model, fixed);
        let member = &self.members[model];
        let result = match self.known.get(&key) {
            Some(known) => known.clone(),
            None => {
                let new = self.plan(model, &key.1).map(Rc::new);
                self.known.insert(key, new.clone());
                new
            }
        };
        result.map_err(|error| Error::of(member, error))
    }

    fn plan(&self, model: usize, fixed: &Fixed) -> Result<Planned, crate::Error> {
        let mut options = self.options_of(model);
        options.fixed.extend(fixed);
        if let Some(group) = &mut options.group {
            group.keep.clone_from(&self.linked.keep[model]);
        }
        let planned = plan(self.members[model].bytes, &options)?;
        // A file may also be left as it is, with a plan that nobody can change.
        let graph = Graph::read(Model::parse(&planned.file)?)?;
        let stored = StoredPlan::read(&graph);
        for &(tensor, offset) in fixed {
            let found = match &stored {
                StoredPlan::Offsets(all) => all.get(tensor.index()).copied(),
                _ => None,
            };
            if found.map(i64::from) != i64::try_from(offset).ok() {
                return Err(crate::Error::CannotFix {
                    tensor: graph.tensor(tensor).label(),
                    reason: "the plan in the file cannot be changed".into(),
                });
            }
        }
        Ok(planned)
    }

    /// Where all tensors of a plan lie, with the first library: tensor, offset, bytes.
    fn layout(&self, model: usize, planned: &Planned) -> Result<Vec<(TensorId, u64, u64)>, Error> {
        let places = || {
            let graph = Graph::read(Model::parse(&planned.file)?)?;
            let scratch = self.options.scratch_of(&graph)?;
            let offsets = match StoredPlan::read(&graph) {
                StoredPlan::Offsets(offsets) => Some(offsets),
                _ => None,
            };
            let lifetimes = Lifetimes::of(&graph)?;
            let found = tflm::simulate(&graph, &lifetimes, &scratch, offsets.as_deref())?;
            let places = found.tensors.iter();
            Ok(places.map(|p| (p.what, p.offset, p.bytes)).collect())
        };
        places().map_err(|error| Error::of(&self.members[model], error))
    }

    /// Where a place's models would have it, the one with the largest head first; the bottom; the tops of heads; and above
    /// them, which is always possible.
    fn likely(&mut self, place: usize, offsets: &[Option<u64>]) -> Result<Vec<u64>, Error> {
        let align = self.options.alignment();
        let bytes = self.linked.places[place].bytes;
        let mut plans = Vec::new();
        for &(model, tensor) in &self.linked.places[place].tensors.clone() {
            let planned = self.planned(model, offsets)?;
            let at = self.layout(model, &planned)?;
            let at = at.iter().find(|p| p.0 == tensor).map(|p| p.1);
            plans.push((planned.report.head_bytes, at));
        }
        plans.sort_by_key(|p| std::cmp::Reverse(p.0));
        let own = plans.iter().filter_map(|p| p.1);
        let tops = plans.iter().filter_map(|p| p.0.checked_sub(bytes));
        let tops = tops.map(|top| top / align * align);
        let all = own.map(|o| o / align * align).chain([0]).chain(tops);
        // Above all else it is in nobody's way.
        let above = plans.iter().map(|p| p.0.next_multiple_of(align)).max();
        let all = all.chain(above);
        let mut known = BTreeSet::new();
        Ok(all.filter(|&o| known.insert(o)).collect())
    }

    /// Where something starts or ends in the plans of a place's models, as far as that can lead below `head`.
    fn borders(
        &mut self,
        place: usize,
        offsets: &[Option<u64>],
        head: u64,
    ) -> Result<Vec<u64>, Error> {
        let align = self.options.alignment();
        let bytes = self.linked.places[place].bytes;
        let mut free = offsets.to_vec();
        free[place] = None;
        let mut all = BTreeSet::new();
        for &(model, _) in &self.linked.places[place].tensors.clone() {
            let planned = self.planned(model, &free)?;
            for (_, offset, size) in self.layout(model, &planned)? {
                let below = (offset / align * align).checked_sub(bytes.next_multiple_of(align));
                let above = (offset + size).next_multiple_of(align);
                all.extend(below.into_iter().chain([offset / align * align, above]));
            }
        }
        let useful = all.into_iter().filter(|&o| o + bytes < head);
        Ok(useful.take(MAX_TRIED).collect())
    }
}
