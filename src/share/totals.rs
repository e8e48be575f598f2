//! The figures of all models together.

use super::{Error, Member, graphs};
use crate::own;
use crate::plan::{Options, Planned};
use crate::prepared::Prepared;
use crate::report::Arena;
use crate::target::Library;
use crate::text::thousands;
use crate::tflm::{room::Turns, tail};

/// What models that share an arena need, with one kernel library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// The library.
    pub library: Library,
    /// The largest head in bytes: where the tails may begin.
    pub head_bytes: u64,
    /// The largest head of the models without plans.
    pub greedy_head_bytes: u64,
    /// A device with 32-bit pointers: the sum of the tails, the room for preparing all models in their order above them, and
    /// the arena to reserve.
    pub arena_32: Arena,
    /// A machine with 64-bit pointers.
    pub arena_64: Arena,
}

impl Default for Totals {
    fn default() -> Self {
        Self {
            library: Library::Reference,
            head_bytes: 0,
            greedy_head_bytes: 0,
            arena_32: Arena::default(),
            arena_64: Arena::default(),
        }
    }
}

/// The totals for each library of the target, from the files as they will be on the device.
pub(super) fn totals(
    files: &[Member<'_>],
    planned: &[Planned],
    options: &Options,
) -> Result<Vec<Totals>, Error> {
    let graphs = graphs(files)?;
    let mut all = Vec::new();
    for (k, &library) in options.kernels().libraries().iter().enumerate() {
        let mut total = Totals {
            library,
            ..Totals::default()
        };
        let mut turns = [tail::Width::Bits32, tail::Width::Bits64].map(Turns::new);
        let mut own = Arena::default();
        for ((file, graph), planned) in files.iter().zip(&graphs).zip(planned) {
            let (head, greedy) = heads(planned, k);
            total.head_bytes = total.head_bytes.max(head);
            total.greedy_head_bytes = total.greedy_head_bytes.max(greedy);
            let scratch = options.scratch_by_library(graph, Prepared::stored(graph));
            let scratch = scratch.map_err(|error| Error::of(file, error))?;
            let Some(scratch) = scratch.get(k) else {
                continue;
            };
            if library == Library::Arenaplan {
                // Any model's preparation uses the head alone.
                let arena = own::arena(graph, scratch, head);
                own.tail_bytes += arena.tail_bytes;
                own.planning_bytes = own.planning_bytes.max(arena.planning_bytes);
            } else {
                turns.iter_mut().for_each(|t| t.add(graph, head, scratch));
            }
        }
        [total.arena_32, total.arena_64] = match library {
            Library::Arenaplan => {
                let head = total.head_bytes.max(own.planning_bytes);
                own.arena_bytes = head.next_multiple_of(16).saturating_add(own.tail_bytes);
                [own; 2]
            }
            _ => turns.map(|t| Arena {
                tail_bytes: t.tail_bytes(),
                planning_bytes: t.planning_room(),
                arena_bytes: t.arena_bytes(),
            }),
        };
        all.push(total);
    }
    Ok(all)
}

/// The order of preparation in which a 32-bit device with TFLM needs a smaller arena than in the one given, if there is one.
///
/// A model is prepared above its own tail and those of all before it. So what needs the most room goes first: of two
/// neighbours, the one with more room then has fewer tails below it, and the other one not more than that one had before.
pub(super) fn better_order(
    files: &[Member<'_>],
    planned: &[Planned],
    options: &Options,
) -> Result<Option<String>, Error> {
    let mut order: Vec<usize> = (0..files.len()).collect();
    let room = |&model: &usize| planned.get(model).map(|p| p.report.arena_32.planning_bytes);
    order.sort_by_key(|model| std::cmp::Reverse(room(model)));
    let arena = |order: &[usize]| {
        let files: Vec<_> = order
            .iter()
            .filter_map(|&m| files.get(m).copied())
            .collect();
        let planned: Vec<_> = order
            .iter()
            .filter_map(|&m| planned.get(m).cloned())
            .collect();
        let found = totals(&files, &planned, options)?;
        Ok(found.first().map_or(0, |t| t.arena_32.arena_bytes))
    };
    let given: Vec<usize> = (0..files.len()).collect();
    let (now, then) = (arena(&given)?, arena(&order)?);
    let names: Vec<_> = order
        .iter()
        .filter_map(|&m| files.get(m))
        .map(|f| f.name)
        .collect();
    Ok((then < now).then(|| {
        format!(
            "prepared in the order {}, they need an arena of {} bytes instead of {} on a 32-bit device; the order in which \
             models run may be another one",
            names.join(", "),
            thousands(then),
            thousands(now)
        )
    }))
}

/// The head with the `k`-th library of the target, with and without the plan.
pub(super) fn heads(planned: &Planned, k: usize) -> (u64, u64) {
    let report = &planned.report;
    match report.libraries.get(k) {
        Some(library) => (library.head_bytes, library.greedy_head_bytes),
        None => (report.head_bytes, report.greedy_head_bytes),
    }
}
