//! Which of two buffers is the lower one, as far as whole numbers tell.
//!
//! Up to a given height each buffer has a least and a greatest offset. A conflict that is left one
//! way only narrows them, which may leave other conflicts one way only:
//! ```text
//! x below y:   least[y]    >= least[x]    + below, rounded up to the alignment of y
//!              greatest[x] <= greatest[y] - below, rounded down to the alignment of x
//! ```

use crate::instance::Instance;
use crate::pairs::{Order, Pair, pairs, up};

/// How often all open pairs are tried at most: what a round finds may help the next one.
const ROUNDS: usize = 4;

/// How often all pairs are looked at for conclusions: where separations are negative, a circle that
/// nothing can keep may go up by small steps.
const MOST_PASSES: usize = 1000;

/// All pairs, and where their buffers can be.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) pairs: Vec<Pair>,
    pub(crate) least: Vec<i64>,
    pub(crate) greatest: Vec<i64>,
    align: Vec<i64>,
}

impl Orders {
    /// What holds in each placement of at most this height, or `None` if there is none.
    pub(crate) fn new(instance: &Instance, height: u64) -> Option<Self> {
        let n = instance.len();
        let mut orders = Self {
            pairs: pairs(instance),
            least: vec![0; n],
            greatest: vec![0; n],
            align: instance.align.iter().map(|&a| a as i64).collect(),
        };
        for x in 0..n {
            if instance.is_free(x) {
                let highest = height.checked_sub(instance.size[x])?;
                orders.greatest[x] = (highest - highest % instance.align[x]) as i64;
            } else {
                orders.least[x] = instance.fixed[x] as i64;
                orders.greatest[x] = orders.least[x];
            }
        }
        orders.follow().then_some(orders)
    }

    /// The number of open pairs.
    pub(crate) fn count_open(&self) -> usize {
        self.pairs.iter().filter(|p| p.order == Order::Open).count()
    }

    /// Draws conclusions from what is known, all unless that takes very long. False if nothing is
    /// left.
    fn follow(&mut self) -> bool {
        let Self {
            pairs,
            least,
            greatest,
            align,
        } = self;
        for _ in 0..MOST_PASSES {
            let mut changed = false;
            for pair in pairs.iter_mut() {
                let (x, y) = (pair.x, pair.y);
                if pair.order == Order::Open {
                    let can_below = least[x] + pair.below <= greatest[y];
                    let can_above = least[y] + pair.above <= greatest[x];
                    pair.order = match (can_below, can_above) {
                        (true, true) => continue,
                        (true, false) => Order::Below,
                        (false, true) => Order::Above,
                        (false, false) => return false,
                    };
                }
                let (lower, upper, distance) = pair.ends(pair.order);
                let up = least[lower] + distance;
                let up = self::up(up, align[upper]);
                let down = greatest[upper] - distance;
                let down = down - down.rem_euclid(align[lower]);
                if up > least[upper] {
                    least[upper] = up;
                    changed = true;
                }
                if down < greatest[lower] {
                    greatest[lower] = down;
                    changed = true;
                }
                if least[upper] > greatest[upper] || least[lower] > greatest[lower] {
                    return false;
                }
            }
            if !changed {
                break;
            }
        }
        true
    }

    /// Takes an order for granted. False if it leaves nothing.
    pub(crate) fn assume(&mut self, at: usize, order: Order) -> bool {
        self.pairs[at].order = order;
        self.follow()
    }

    /// Tries both orders of each open pair: where one leaves nothing, the other one holds. False
    /// if nothing is left.
    pub(crate) fn probe(&mut self) -> bool {
        for _ in 0..ROUNDS {
            let mut changed = false;
            for at in 0..self.pairs.len() {
                if self.pairs[at].order != Order::Open {
                    continue;
                }
                let tried = [Order::Below, Order::Above].map(|order| {
                    let mut tried = self.clone();
                    tried.assume(at, order).then_some(tried)
                });
                *self = match tried {
                    [Some(_), Some(_)] => continue,
                    [Some(only), None] | [None, Some(only)] => only,
                    [None, None] => return false,
                };
                changed = true;
            }
            if !changed {
                break;
            }
        }
        true
    }

    /// The lowest placement with these orders of the pairs; `None` if they go in a circle.
    pub(crate) fn push_down(&self, instance: &Instance, orders: &[Order]) -> Option<Pushed> {
        let n = instance.len();
        let lowest = |x: usize| {
            if instance.is_free(x) {
                0
            } else {
                instance.fixed[x]
            }
        };
        let mut pushed = Pushed {
            offsets: (0..n).map(lowest).collect(),
            fits: true,
            rests_on: vec![None; n],
        };
        for _ in 0..=n {
            let mut changed = false;
            for (at, (pair, &order)) in self.pairs.iter().zip(orders).enumerate() {
                let (lower, upper, distance) = pair.ends(order);
                let up = pushed.offsets[lower] as i64 + distance;
                let up = up.max(0) as u64;
                if up > pushed.offsets[upper] {
                    pushed.rests_on[upper] = Some((at, lower));
                    pushed.offsets[upper] = up.next_multiple_of(instance.align[upper]);
                    pushed.fits &= instance.is_free(upper);
                    changed = true;
                }
            }
            if !changed {
                return Some(pushed);
            }
        }
        None
    }
}

/// A placement pushed down, and why it is not lower.
#[derive(Debug)]
pub(crate) struct Pushed {
    pub(crate) offsets: Vec<u64>,
    /// Whether no buffer would have to go above its fixed offset.
    pub(crate) fits: bool,
    /// The pair that keeps a buffer up, and the lower one of it.
    rests_on: Vec<Option<(usize, usize)>>,
}

/// Orders of pairs that alone keep a buffer at an offset.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) orders: Vec<(usize, Order)>,
    pub(crate) top: usize,
    pub(crate) offset: u64,
}

impl Pushed {
    /// The chains of those buffers that were rounded up to their alignment.
    pub(crate) fn chains(&self, orders: &Orders, chosen: &[Order]) -> impl Iterator<Item = Chain> {
        let rounded = |&x: &usize| {
            self.rests_on[x].is_some_and(|(at, lower)| {
                let (_, _, distance) = orders.pairs[at].ends(chosen[at]);
                self.offsets[lower] as i64 + distance != self.offsets[x] as i64
            })
        };
        let n = self.offsets.len();
        (0..n).filter(rounded).map(move |top| {
            let below = |&(_, lower): &(usize, usize)| self.rests_on[lower];
            let chain = core::iter::successors(self.rests_on[top], below).take(n);
            Chain {
                orders: chain.map(|(at, _)| (at, chosen[at])).collect(),
                top,
                offset: self.offsets[top],
            }
        })
    }
}
