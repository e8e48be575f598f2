//! Cuts a region into stripes.
//!
//! For each part of the result, backwards which rows of each tensor are needed, then forwards through copies of the
//! operators:
//!
//! ```text
//! source --SLICE--> rows --layer--> rows (some wrong at a cut) --layer--> ... --SLICE--> part --.
//! source --SLICE--> rows --layer--> ...                                             part ---CONCATENATION--> result
//! ```
//!
//! Wrong rows are cut off only where a layer could not go on with them, where operands must have equal rows, or where they
//! are more than the caller wants to carry along.

use std::collections::BTreeMap;

use super::net::{Kind, Net, NetOperator, NetTensor, Rule};
use super::region::Region;
use super::rows::{Given, Rows};

/// TFLM's CONCATENATION takes no more inputs (`kMaxInputNum` in `kernels/concatenation.cc`).
pub const MAX_STRIPES: usize = 10;

/// A tensor of the stripe at hand.
#[derive(Clone, Copy)]
struct Held {
    tensor: u32,
    given: Given,
}

/// What takes the place of a region's operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stripes {
    /// New tensors, numbered behind those of the net.
    pub(crate) tensors: Vec<NetTensor>,
    /// The operators.
    pub(crate) operators: Vec<NetOperator>,
    /// The most rows beyond the wanted ones that a layer computes.
    pub(crate) surplus: i64,
}

/// One stripe in the making.
struct Stripe<'n> {
    net: &'n Net,
    /// New tensors.
    tensors: Vec<NetTensor>,
    surplus: i64,
    operators: Vec<NetOperator>,
    /// What stands for each tensor of the region.
    held: BTreeMap<u32, Held>,
    /// Slices so far, by source and rows.
    slices: BTreeMap<(u32, Rows), Held>,
}

impl Net {
    /// The net with the region's result computed in parts of the rows between `cuts`, which begin with 0 and end with the
    /// number of rows. Wrong rows are cut off as soon as there are `trim` of them; with 0 only where they must be.
    ///
    /// `None` where the cuts are none, or where no input rows give the rows asked for.
    pub fn split(&self, region: &Region, cuts: &[i64], trim: i64) -> Option<Net> {
        let stripes = self.stripes(region, cuts, trim)?;
        let (start, end) = (*region.operators.start(), *region.operators.end() + 1);
        let mut operators = self.operators[..start].to_vec();
        operators.extend(stripes.operators);
        operators.extend_from_slice(&self.operators[end..]);
        let mut tensors = self.tensors.clone();
        tensors.extend(stripes.tensors);
        Some(Net {
            layers: self.layers.clone(),
            tensors,
            operators,
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
            file_tensors: self.file_tensors,
        })
    }

    /// What [`split`](Self::split) puts in place of the region.
    pub(crate) fn stripes(&self, region: &Region, cuts: &[i64], trim: i64) -> Option<Stripes> {
        let rows = self.rows_of_result(region);
        let is_whole = cuts.first() == Some(&0) && cuts.last() == Some(&rows);
        let is_rising = cuts.windows(2).all(|w| w[0] < w[1]);
        if !is_whole || !is_rising || !(3..=MAX_STRIPES + 1).contains(&cuts.len()) {
            return None;
        }
        let mut stripe = Stripe {
            net: self,
            tensors: Vec::new(),
            surplus: 0,
            operators: Vec::new(),
            held: BTreeMap::new(),
            slices: BTreeMap::new(),
        };
        let mut parts = Vec::new();
        for part in cuts.windows(2) {
            parts.push(stripe.compute(region, Rows::new(part[0], part[1]), trim)?);
        }
        stripe.operators.push(NetOperator {
            kind: Kind::Concatenation,
            inputs: parts.into_iter().map(Some).collect(),
            outputs: vec![region.result],
        });
        Some(Stripes {
            tensors: stripe.tensors,
            operators: stripe.operators,
            surplus: stripe.surplus,
        })
    }
}

impl Stripe<'_> {
    /// The tensor with these rows of the region's result.
    fn compute(&mut self, region: &Region, part: Rows, trim: i64) -> Option<u32> {
        let net = self.net;
        let operators = &net.operators[region.operators.clone()];
        let needed = self.needed(region, part)?;
        self.held.clear();
        let source = net.tensor(region.source);
        let whole = Held {
            tensor: region.source,
            given: Given::right(Rows::new(0, source.rows)),
        };
        self.held.insert(region.source, whole);
        let first = self.cut(region.source, *needed.get(&region.source)?)?;
        self.held.insert(region.source, first);
        for op in operators {
            let output = *op.outputs.first()?;
            let wanted = *needed.get(&output)?;
            let made = match net.rule(op) {
                Rule::Window { .. } => self.window(op, wanted)?,
                Rule::EachRow => self.each_row(op, wanted)?,
                Rule::Pad { top, bottom } => self.pad(op, wanted, (top, bottom))?,
                Rule::Whole(_) => return None,
            };
            if !made.given.right.contain(wanted) {
                return None;
            }
            self.held.insert(output, made);
            let surplus = made.given.rows.count() - wanted.count();
            if output != region.result {
                self.surplus = self.surplus.max(surplus);
            }
            if output != region.result && trim > 0 && surplus >= trim {
                let cut = self.cut(output, wanted)?;
                self.held.insert(output, cut);
            }
        }
        Some(self.cut(region.result, part)?.tensor)
    }

    /// Backwards: the rows of each tensor that the part needs.
    fn needed(&self, region: &Region, part: Rows) -> Option<BTreeMap<u32, Rows>> {
        let mut needed = BTreeMap::from([(region.result, part)]);
        for op in self.net.operators[region.operators.clone()].iter().rev() {
            let wanted = *needed.get(op.outputs.first()?)?;
            let rows = match self.net.rule(op) {
                Rule::Window { .. } => self.net.window(op)?.backward(wanted)?,
                Rule::EachRow => wanted,
                Rule::Pad { top, .. } => {
                    let input = self.net.tensor(*op.inputs.first()?.as_ref()?);
                    let moved = Rows::new(wanted.first - top, wanted.end - top);
                    moved.common(Rows::new(0, input.rows))
                }
                Rule::Whole(_) => return None,
            };
            if rows.count() < 1 {
                return None;
            }
            for input in self.net.placed_inputs(op) {
                let all = needed.entry(input).or_insert(rows);
                *all = all.hull(rows);
            }
        }
        Some(needed)
    }

    /// What stands for `tensor`, cut to these rows.
    fn cut(&mut self, tensor: u32, rows: Rows) -> Option<Held> {
        let held = *self.held.get(&tensor)?;
        if held.given.rows == rows {
            return Some(held);
        }
        if !held.given.right.contain(rows) {
            return None;
        }
        if let Some(&slice) = self.slices.get(&(held.tensor, rows)) {
            return Some(slice);
        }
        let slice = Held {
            tensor: self.tensor(tensor, rows),
            given: Given::right(rows),
        };
        self.operators.push(NetOperator {
            kind: Kind::Slice {
                from: rows.first - held.given.rows.first,
            },
            inputs: vec![Some(held.tensor)],
            outputs: vec![slice.tensor],
        });
        self.slices.insert((held.tensor, rows), slice);
        Some(slice)
    }

    /// A new tensor with these rows of `whole`.
    fn tensor(&mut self, whole: u32, rows: Rows) -> u32 {
        let whole = *self.net.tensor(whole);
        self.tensors.push(NetTensor {
            is_whole: false,
            is_pinned: false,
            first: whole.first + rows.first,
            rows: rows.count(),
            ..whole
        });
        (self.net.tensors.len() + self.tensors.len()) as u32 - 1
    }

    /// A copy of `op` with other tensors.
    fn copy(&mut self, op: &NetOperator, made: Given, inputs: Vec<Option<u32>>) -> Option<Held> {
        let output = self.tensor(*op.outputs.first()?, made.rows);
        let kind = match op.kind {
            Kind::Layer { index, .. } => Kind::Layer {
                index,
                is_copy: true,
            },
            other => other,
        };
        self.operators.push(NetOperator {
            kind,
            inputs,
            outputs: vec![output],
        });
        Some(Held {
            tensor: output,
            given: made,
        })
    }

    /// The inputs of a copy: what is held now for those of the original.
    fn inputs(&self, op: &NetOperator, held: &BTreeMap<u32, Held>) -> Vec<Option<u32>> {
        let inputs = op.inputs.iter();
        inputs
            .map(|input| input.map(|t| held.get(&t).map_or(t, |h| h.tensor)))
            .collect()
    }

    fn window(&mut self, op: &NetOperator, wanted: Rows) -> Option<Held> {
        let window = self.net.window(op)?;
        let input = (*op.inputs.first()?)?;
        let mut held = *self.held.get(&input)?;
        let enough = |made: &Given| made.right.contain(wanted);
        let made = match window.forward(held.given).filter(enough) {
            Some(made) => made,
            None => {
                held = self.cut(input, window.backward(wanted)?)?;
                window.forward(held.given).filter(enough)?
            }
        };
        let inputs = self.inputs(op, &BTreeMap::from([(input, held)]));
        self.copy(op, made, inputs)
    }

    fn each_row(&mut self, op: &NetOperator, wanted: Rows) -> Option<Held> {
        let inputs = self.net.placed_inputs(op);
        let mut held = BTreeMap::new();
        for &input in &inputs {
            held.insert(input, *self.held.get(&input)?);
        }
        let mut rows = held.values().map(|h| h.given.rows);
        let first = rows.next()?;
        if !rows.all(|r| r == first) {
            for &input in &inputs {
                held.insert(input, self.cut(input, wanted)?);
            }
        }
        let given = held.values().map(|h| h.given);
        let made = given.reduce(|a, b| Given {
            rows: a.rows,
            right: a.right.common(b.right),
        })?;
        let inputs = self.inputs(op, &held);
        self.copy(op, made, inputs)
    }

    /// Rows at the border get the PAD's own rows there, as far as they are wanted.
    fn pad(&mut self, op: &NetOperator, wanted: Rows, (top, bottom): (i64, i64)) -> Option<Held> {
        let input = (*op.inputs.first()?)?;
        let count = self.net.tensor(input).rows;
        let Held { tensor, given } = *self.held.get(&input)?;
        let top_here = (top - wanted.first).max(0);
        let bottom_here = (wanted.end - (count + top)).clamp(0, bottom);
        let is_right = (top_here == 0 || given.rows.first == 0 && given.right.first == 0)
            && (bottom_here == 0 || given.rows.end == count && given.right.end == count);
        if !is_right {
            return None;
        }
        let grown =
            |rows: Rows| Rows::new(rows.first + top - top_here, rows.end + top + bottom_here);
        let made = Given {
            rows: grown(given.rows),
            right: grown(given.right),
        };
        let (Kind::Layer { index, .. } | Kind::Pad { index, .. }) = op.kind else {
            return None;
        };
        let copied = NetOperator {
            kind: Kind::Pad {
                index,
                top: top_here,
                bottom: bottom_here,
            },
            ..op.clone()
        };
        let held = Held { tensor, given };
        let inputs = self.inputs(op, &BTreeMap::from([(input, held)]));
        self.copy(&copied, made, inputs)
    }
}
