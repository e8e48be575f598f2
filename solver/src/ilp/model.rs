//! The integer program of a part.
//!
//! ```text
//! minimise   height
//! columns    height                        from the bound to the height of the seed
//!            offset[x]
//!            below[x, y]                   0 or 1, for each conflict of which both orders are left
//! rows       offset[x] + size[x] <= height
//!            offset[x] + distance(x, y) <= offset[y] + M (1 - below[x, y])
//!            offset[y] + distance(y, x) <= offset[x] + M below[x, y]
//! stacks     offset[x] >= sum of step[y] over all y below x
//!            offset[x] + step[x] + sum of step[y] over all y above x <= height
//! ```
//! `M` is what the least and the greatest offsets leave. Without the rows of stacks the relaxation
//! knows next to nothing: half of each order gives any height. In a stack each two buffers are in
//! conflict, as jobs are that share a machine, and `step[y]` is the least distance from `y` to
//! another one of it (Potts' formulation for a single machine, 1980).
//!
//! Once the orders are chosen, the rest is a system of differences: its lowest solution is made of
//! whole numbers. It knows alignments only as far as both sides of a conflict share them. Where
//! that is too little, a chain of buffers each of which lies on the next one keeps the top one
//! higher than the program knows, and is added when a solution shows it:
//! ```text
//! chains     offset[top] >= where the chain keeps it, or one of its orders is another one
//! ```
//!
//! All numbers are divided by a power of two, which loses nothing, so that heights are near 1000
//! at most and the tolerances of a solver are far below the least difference of two heights.

use good_lp::{Expression, ProblemVariables, Solver, SolverModel, Variable, variable};

use super::orders::{Chain, Orders};
use super::stack::Stacks;
use crate::instance::Instance;
use crate::pairs::Order;

/// Heights above this, in units, are not told apart by the tolerances of a solver.
pub(crate) const MAX_HEIGHT: u64 = 1 << 24;

/// Heights are divided down to this.
const SCALED_HEIGHT: u64 = 1 << 10;

/// The column of the height.
pub(crate) const HEIGHT: usize = 0;

/// A variable.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) least: f64,
    pub(crate) greatest: f64,
    pub(crate) integer: bool,
    /// Its value in the seed.
    pub(crate) seed: f64,
}

/// A sum of columns times factors that is at most a limit.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    terms: Vec<(usize, f64)>,
    limit: f64,
}

/// An integer program for any backend: the column [`HEIGHT`] is to be minimised.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// What a unit of the instance is here.
    pub(crate) unit: f64,
    /// Per pair: its order, or the column that decides it.
    orders: Vec<Result<Order, usize>>,
}

impl Model {
    /// The program for heights from `lowest` to that of `seed`, the best known placement;
    /// `orders` holds up to the height of the seed, and in it.
    pub(crate) fn new(instance: &Instance, orders: &Orders, lowest: u64, seed: &[u64]) -> Self {
        let height = instance.height(seed);
        let halvings = height.div_ceil(SCALED_HEIGHT).next_power_of_two().ilog2();
        let unit = 0.5f64.powi(halvings as i32);
        let mut model = Self {
            columns: vec![Column {
                least: lowest as f64 * unit,
                greatest: height as f64 * unit,
                integer: false,
                seed: height as f64 * unit,
            }],
            rows: Vec::new(),
            unit,
            orders: Vec::new(),
        };
        let offsets = model.add_offsets(instance, orders, seed);
        model.add_pairs(orders, &offsets, seed);
        let stacks = Stacks::new(instance, orders);
        for stack in stacks.all() {
            if stack.len() > 2 {
                model.add_stack(instance, &stacks, &stack, &offsets);
            }
        }
        model
    }

    fn add_column(&mut self, column: Column) -> usize {
        self.columns.push(column);
        self.columns.len() - 1
    }

    /// Adds `terms <= limit`, with the limit in units.
    fn add_row(&mut self, terms: Vec<(usize, f64)>, limit: i64) {
        let limit = limit as f64 * self.unit;
        self.rows.push(Row { terms, limit });
    }

    fn add_offsets(&mut self, instance: &Instance, orders: &Orders, seed: &[u64]) -> Vec<usize> {
        let mut offsets = Vec::with_capacity(instance.len());
        for (x, &at) in seed.iter().enumerate() {
            let offset = self.add_column(Column {
                least: orders.least[x] as f64 * self.unit,
                greatest: orders.greatest[x] as f64 * self.unit,
                integer: false,
                seed: at as f64 * self.unit,
            });
            offsets.push(offset);
            let size = instance.size[x] as i64;
            self.add_row(vec![(offset, 1.0), (HEIGHT, -1.0)], -size);
        }
        offsets
    }

    fn add_pairs(&mut self, orders: &Orders, offsets: &[usize], seed: &[u64]) {
        for pair in &orders.pairs {
            let [x, y] = [pair.x, pair.y].map(|x| offsets[x]);
            if pair.order != Order::Open {
                let (lower, upper, distance) = pair.ends(pair.order);
                let terms = vec![(offsets[lower], 1.0), (offsets[upper], -1.0)];
                self.add_row(terms, -distance);
                self.orders.push(Ok(pair.order));
                continue;
            }
            let below = self.add_column(Column {
                least: 0.0,
                greatest: 1.0,
                integer: true,
                seed: f64::from(u8::from(pair.order_in(seed) == Order::Below)),
            });
            self.orders.push(Err(below));
            // Left and right of `<=` as in the drawing above, the M that is enough on the left.
            let most = orders.greatest[pair.x] + pair.below - orders.least[pair.y];
            let terms = vec![(x, 1.0), (y, -1.0), (below, most as f64 * self.unit)];
            self.add_row(terms, most - pair.below);
            let most = orders.greatest[pair.y] + pair.above - orders.least[pair.x];
            let terms = vec![(y, 1.0), (x, -1.0), (below, -most as f64 * self.unit)];
            self.add_row(terms, -pair.above);
        }
    }

    /// The column of an offset.
    fn offset(x: usize) -> usize {
        HEIGHT + 1 + x
    }

    /// Whether a solution has a buffer below where a chain keeps it.
    pub(crate) fn violates(&self, values: &[f64], chain: &Chain) -> bool {
        values[Self::offset(chain.top)] < (chain.offset as f64 - 0.5) * self.unit
    }

    /// Adds that the top of a chain is at its offset, or one of the orders is another one.
    pub(crate) fn add_chain(&mut self, chain: &Chain) {
        let top = Self::offset(chain.top);
        let column = &self.columns[top];
        // Above its greatest offset no buffer is looked for, so a unit more is as good as any.
        let offset = (chain.offset as f64 * self.unit).min(column.greatest + self.unit);
        let raise = offset - column.least;
        // offset[top] >= least + raise * (1 - the number of other orders)
        let mut terms = vec![(top, -1.0)];
        let mut limit = -offset;
        for &(at, order) in &chain.orders {
            match self.orders[at] {
                Ok(known) if known == order => {}
                Ok(_) => return,
                Err(below) if order == Order::Below => {
                    terms.push((below, raise));
                    limit += raise;
                }
                Err(below) => terms.push((below, -raise)),
            }
        }
        self.rows.push(Row { terms, limit });
    }

    fn add_stack(
        &mut self,
        instance: &Instance,
        stacks: &Stacks<'_>,
        stack: &[usize],
        offsets: &[usize],
    ) {
        let size = |x: usize| instance.size[x] as i64;
        // One that is known to be the top has no step, and takes its size as one.
        let step = |&x: &usize| {
            let others = stack.iter().filter(|&&y| y != x);
            let least = others.filter_map(|&y| stacks.distance(x, y)).min();
            least.map_or(size(x), |least| least as i64)
        };
        let steps: Vec<i64> = stack.iter().map(step).collect();
        // The top adds its size to the height and not its step, which may be greater.
        let excess = stack.iter().zip(&steps).map(|(&x, step)| step - size(x));
        let excess = excess.max().unwrap_or(0).max(0);
        for (&x, &own) in stack.iter().zip(&steps) {
            let mut under = (vec![(offsets[x], -1.0)], 0);
            let mut over = (vec![(offsets[x], 1.0), (HEIGHT, -1.0)], excess - own);
            for (&y, &step) in stack.iter().zip(&steps) {
                let Some(at) = stacks.pair(x, y) else {
                    continue; // x itself
                };
                let factor = step as f64 * self.unit;
                // The order that has y below x, and the sum that counts y if the column is 0.
                let y_below = if y < x { Order::Below } else { Order::Above };
                match self.orders[at] {
                    Ok(order) if order == y_below => under.1 -= step,
                    Ok(_) => over.1 -= step,
                    Err(below) if y_below == Order::Below => {
                        under.0.push((below, factor));
                        over.0.push((below, -factor));
                        over.1 -= step;
                    }
                    Err(below) => {
                        under.0.push((below, -factor));
                        under.1 -= step;
                        over.0.push((below, factor));
                    }
                }
            }
            self.add_row(under.0, under.1);
            self.add_row(over.0, over.1);
        }
    }

    /// The model of a backend, and the variables of the columns in it.
    pub(crate) fn build<S: Solver>(&self, solver: S) -> (S::Model, Vec<Variable>) {
        let mut variables = ProblemVariables::new();
        let columns: Vec<Variable> = self
            .columns
            .iter()
            .map(|column| {
                let definition = variable().clamp(column.least, column.greatest);
                let definition = definition.initial(column.seed);
                variables.add(if column.integer {
                    definition.integer()
                } else {
                    definition
                })
            })
            .collect();
        let mut model = variables.minimise(columns[HEIGHT]).using(solver);
        for row in &self.rows {
            let mut sum = Expression::with_capacity(row.terms.len());
            for &(column, factor) in &row.terms {
                sum.add_mul(factor, columns[column]);
            }
            model.add_constraint(sum.leq(row.limit));
        }
        (model, columns)
    }

    /// The orders that the values of the columns give.
    pub(crate) fn orders(&self, values: &[f64]) -> Vec<Order> {
        let order = |&order: &Result<Order, usize>| match order {
            Ok(order) => order,
            Err(below) if values[below] > 0.5 => Order::Below,
            Err(_) => Order::Above,
        };
        self.orders.iter().map(order).collect()
    }
}
