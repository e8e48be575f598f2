//! Buffers, conflicts between them, and where they end up.

use core::fmt;
use core::ops::Range;

use petgraph::graph::{NodeIndex, UnGraph};
use petgraph::visit::EdgeRef;

use crate::instance::Instance;
use crate::{Error, bound};

/// The index of a buffer in its [`Problem`]: 0 for the first one added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub u32);

impl BufferId {
    /// The id as an index into slices that hold one entry per buffer.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for BufferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl From<NodeIndex<u32>> for BufferId {
    fn from(node: NodeIndex<u32>) -> Self {
        // A `NodeIndex<u32>` is made from a `u32`, so nothing is cut off.
        Self(node.index() as u32)
    }
}

impl From<BufferId> for NodeIndex<u32> {
    fn from(id: BufferId) -> Self {
        NodeIndex::from(id.0)
    }
}

/// When a buffer is in use: all points in time from `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lifetime {
    /// The first point in time.
    pub first: i32,
    /// The last point in time, itself included.
    pub last: i32,
}

impl Lifetime {
    /// A lifetime from `first` to `last`, both included.
    pub fn new(first: i32, last: i32) -> Self {
        Self { first, last }
    }

    /// That it does not end before it starts.
    fn check(self, id: BufferId) -> Result<(), Error> {
        let Self { first, last } = self;
        match first <= last {
            true => Ok(()),
            false => Err(Error::InvertedLifetime { id, first, last }),
        }
    }

    /// Whether some point in time belongs to both.
    pub fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// A block of memory to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Bytes. May be 0.
    pub size: u64,
    /// The offset must be a multiple of this many bytes. At least 1; need not be a power of two.
    pub align: u64,
    /// When it is in use.
    pub lifetime: Lifetime,
    /// The offset in bytes it must have, or `None` if the planner is free.
    pub fixed: Option<u64>,
}

impl Buffer {
    /// A buffer of `size` bytes without alignment or fixed offset.
    pub fn new(size: u64, lifetime: Lifetime) -> Self {
        Self {
            size,
            align: 1,
            lifetime,
            fixed: None,
        }
    }
}

/// How far two buffers `a` and `b` must keep apart, in bytes between their offsets:
/// ```text
/// offset[a] + a_below_b <= offset[b]   or   offset[b] + b_below_a <= offset[a]
/// ```
/// In other words, `offset[a] - offset[b]` is not strictly between `-a_below_b` and `b_below_a`.
/// With the sizes as separations the two share no byte. A smaller separation lets the lower one
/// reach into the upper one, a negative one lets it start above the start of the other one. On an
/// edge of [`Problem::graph`], `a` is the edge's source and `b` its target.
///
/// Buffers of which byte ranges have lifetimes of their own have a conflict for each two ranges in
/// use at once ([`Conflict::of_ranges`]); what no conflict forbids is allowed, also between two
/// that are forbidden:
/// ```text
/// a:  |####|......|####|        the middle is free while b is in use
/// b:         |##|               offset[b] - offset[a]: from 5 to 8, or below, or above
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The least separation when `a` is the lower one.
    pub a_below_b: i64,
    /// The least separation when `b` is the lower one.
    pub b_below_a: i64,
}

impl Conflict {
    /// The conflict of two buffers that may share no byte.
    pub fn disjoint(a: &Buffer, b: &Buffer) -> Self {
        Self {
            a_below_b: separation(a.size),
            b_below_a: separation(b.size),
        }
    }

    /// The conflict of two buffers whose bytes `of_a` and `of_b`, counted from the starts of the
    /// buffers, are in use at once. The ranges are not inverted.
    pub fn of_ranges(of_a: Range<u64>, of_b: Range<u64>) -> Self {
        let distance = |end: u64, start: u64| separation(end).saturating_sub(separation(start));
        Self {
            a_below_b: distance(of_a.end, of_b.start),
            b_below_a: distance(of_b.end, of_a.start),
        }
    }

    /// Whether it forbids nothing: no whole number is strictly between the two separations.
    pub fn is_empty(&self) -> bool {
        self.a_below_b.saturating_add(self.b_below_a) <= 1
    }
}

/// Bytes as a separation. What does not fit is far above [`Problem::MAX_BYTES`].
fn separation(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Buffers and the conflicts between them, as an undirected graph.
///
/// The conflicts say what may not share memory, and nothing else does: two buffers without an edge
/// may lie over each other even if both are alive at once. Lifetimes serve the orders in which
/// planners consider buffers, and the lower bound. Several edges between two buffers must all hold.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    graph: UnGraph<Buffer, Conflict, u32>,
}

impl Problem {
    /// The most bytes that the sizes, separations, alignments and fixed offsets of one problem may
    /// add up to. Below it no sum in any planner overflows.
    pub const MAX_BYTES: u64 = 1 << 61;

    /// The most conflicts of one problem (as many as 4,000 buffers have that are all alive at
    /// once), so that a hostile model cannot use up all memory.
    pub const MAX_CONFLICTS: usize = 1 << 23;

    /// A problem without buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a buffer; it has no conflicts yet.
    pub fn add_buffer(&mut self, buffer: Buffer) -> BufferId {
        self.graph.add_node(buffer).into()
    }

    /// Adds a conflict between `a` and `b`.
    ///
    /// # Errors
    /// [`Error::UnknownBuffer`], [`Error::SelfConflict`], [`Error::TooManyConflicts`].
    pub fn add_conflict(
        &mut self,
        a: BufferId,
        b: BufferId,
        conflict: Conflict,
    ) -> Result<(), Error> {
        for id in [a, b] {
            if id.index() >= self.len() {
                return Err(Error::UnknownBuffer {
                    id,
                    len: self.len(),
                });
            }
        }
        if a == b {
            return Err(Error::SelfConflict { id: a });
        }
        if self.graph.edge_count() >= Self::MAX_CONFLICTS {
            return Err(Error::TooManyConflicts {
                count: self.graph.edge_count() as u64 + 1,
            });
        }
        self.graph.add_edge(a.into(), b.into(), conflict);
        Ok(())
    }

    /// The problem in which two buffers share no byte if their lifetimes overlap. Ids are the
    /// indices into `buffers`. Takes time in proportion to the number of conflicts, plus sorting.
    ///
    /// # Errors
    /// [`Error::InvertedLifetime`], [`Error::ZeroAlignment`], [`Error::TooManyConflicts`],
    /// [`Error::TooLarge`].
    pub fn from_lifetimes(buffers: Vec<Buffer>) -> Result<Self, Error> {
        for (index, buffer) in buffers.iter().enumerate() {
            buffer.lifetime.check(BufferId(index as u32))?;
        }
        // Conflicts are counted before any is made: hostile input must not cost memory.
        let count = overlapping_pairs(buffers.iter().map(|b| b.lifetime));
        if count > Self::MAX_CONFLICTS as u64 {
            return Err(Error::TooManyConflicts { count });
        }
        let mut by_first: Vec<u32> = (0..buffers.len() as u32).collect();
        by_first.sort_by_key(|&i| buffers[i as usize].lifetime.first);
        let mut graph = UnGraph::with_capacity(buffers.len(), count as usize);
        for buffer in &buffers {
            graph.add_node(*buffer);
        }
        // Sweep: whoever ended before this start leaves for good, the others are conflicts.
        let mut alive: Vec<u32> = Vec::new();
        for &b in &by_first {
            let starting = &buffers[b as usize];
            alive.retain(|&a| buffers[a as usize].lifetime.last >= starting.lifetime.first);
            for &a in &alive {
                let conflict = Conflict::disjoint(&buffers[a as usize], starting);
                graph.add_edge(NodeIndex::from(a), NodeIndex::from(b), conflict);
            }
            alive.push(b);
        }
        let problem = Self { graph };
        problem.validate()?;
        Ok(problem)
    }

    /// The graph: a node per buffer, an edge per conflict.
    pub fn graph(&self) -> &UnGraph<Buffer, Conflict, u32> {
        &self.graph
    }

    /// The number of buffers.
    pub fn len(&self) -> usize {
        self.graph.node_count()
    }

    /// Whether there is no buffer.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The buffer with this id.
    pub fn buffer(&self, id: BufferId) -> Option<&Buffer> {
        self.graph.node_weight(id.into())
    }

    /// All ids with their buffers, in order.
    pub fn buffers(&self) -> impl ExactSizeIterator<Item = (BufferId, &Buffer)> {
        let weights = self.graph.raw_nodes().iter();
        weights
            .enumerate()
            .map(|(index, node)| (BufferId(index as u32), &node.weight))
    }

    /// The number of conflicts.
    pub fn conflict_count(&self) -> usize {
        self.graph.edge_count()
    }

    /// All conflicts as `(a, b, conflict)`, in the order in which they were added.
    pub fn conflicts(&self) -> impl Iterator<Item = (BufferId, BufferId, &Conflict)> {
        self.graph
            .edge_references()
            .map(|e| (e.source().into(), e.target().into(), e.weight()))
    }

    /// A height in bytes that no placement can be below: 0 for a problem that [`Self::validate`]
    /// refuses.
    ///
    /// It is the greatest of
    /// - each size, and each fixed offset + size;
    /// - for each conflict, the lower of the two ways to stack the pair;
    /// - for the points in time, the height of a stack of buffers that are alive there and each
    ///   two of which are in conflict. If all buffers alive at once conflict with their sizes as
    ///   separations (as in [`Self::from_lifetimes`]) and alignments do not matter, this is the
    ///   *liveness bound*: the greatest sum of sizes alive at once. Where a separation is below
    ///   the size, that buffer counts with its least separation only; of buffers that may lie over
    ///   each other one counts; and what all alignments have in common rounds each step up.
    ///
    /// A conflict with a negative separation does not count, so of buffers made of pieces, what is
    /// in use at one time may be more than this: give that to [`solve_above`](crate::solve_above).
    ///
    /// The result is rounded up to what divides all sizes, separations and fixed offsets. It
    /// holds for every right placement; if fixed offsets contradict each other, there is none.
    pub fn liveness_bound(&self) -> u64 {
        Instance::new(self).map_or(0, |i| bound::lower_bound(&i) * i.unit)
    }

    /// Checks what the types do not: lifetimes, alignments, and that no sum of sizes can overflow.
    ///
    /// # Errors
    /// [`Error::InvertedLifetime`], [`Error::ZeroAlignment`], [`Error::TooLarge`].
    pub fn validate(&self) -> Result<(), Error> {
        // A buffer's reach: the distance at which nothing above it is in its way any more.
        let mut reach: Vec<u64> = self.buffers().map(|(_, b)| b.size).collect();
        for (a, b, conflict) in self.conflicts() {
            if conflict.is_empty() {
                continue;
            }
            let below = |separation: i64| separation.max(0) as u64;
            reach[a.index()] = reach[a.index()].max(below(conflict.a_below_b));
            reach[b.index()] = reach[b.index()].max(below(conflict.b_below_a));
        }
        // Every planner puts a buffer at 0 or at the reach of another one, aligned. So no offset
        // plus reach is above the highest fixed one plus all the others on top of it.
        let mut sum = 0u64;
        let mut top_fixed = 0u64;
        for (id, buffer) in self.buffers() {
            buffer.lifetime.check(id)?;
            if buffer.align == 0 {
                return Err(Error::ZeroAlignment { id });
            }
            let too_large = Error::TooLarge { id };
            let reach = reach[id.index()];
            let grown = match buffer.fixed {
                Some(offset) => offset.checked_add(reach).map(|top| {
                    top_fixed = top_fixed.max(top);
                    sum
                }),
                None => reach
                    .checked_add(buffer.align)
                    .and_then(|r| sum.checked_add(r)),
            };
            sum = grown.ok_or(too_large.clone())?;
            if sum
                .checked_add(top_fixed)
                .is_none_or(|total| total > Self::MAX_BYTES)
            {
                return Err(too_large);
            }
        }
        Ok(())
    }
}

/// The number of pairs of lifetimes that overlap, without looking at the pairs.
pub(crate) fn overlapping_pairs(lifetimes: impl Iterator<Item = Lifetime>) -> u64 {
    let (mut firsts, mut lasts): (Vec<i32>, Vec<i32>) = lifetimes
        .filter(|l| l.first <= l.last)
        .map(|l| (l.first, l.last))
        .unzip();
    firsts.sort_unstable();
    lasts.sort_unstable();
    // The k-th start overlaps all earlier starts but those that have ended before it.
    let mut ended = 0;
    let mut pairs = 0;
    for (started, &first) in firsts.iter().enumerate() {
        while lasts[ended] < first {
            ended += 1;
        }
        pairs += (started - ended) as u64;
    }
    pairs
}

/// An offset for each buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The offset of each buffer in bytes, by buffer index.
    pub offsets: Vec<u64>,
    /// Bytes needed: the greatest offset + size.
    pub height: u64,
}

impl Placement {
    /// The placement with these offsets (bytes, by buffer index) and the height that follows. It
    /// may be wrong: [`check`](crate::check()) tells.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if a sum of offset and size is above [`Problem::MAX_BYTES`].
    pub fn from_offsets(problem: &Problem, offsets: Vec<u64>) -> Result<Self, Error> {
        let mut height = 0;
        for ((id, buffer), &offset) in problem.buffers().zip(&offsets) {
            let top = offset
                .checked_add(buffer.size)
                .filter(|&top| top <= Problem::MAX_BYTES);
            height = height.max(top.ok_or(Error::TooLarge { id })?);
        }
        Ok(Self { offsets, height })
    }
}
