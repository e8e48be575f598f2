//! From a net with stripes to what the schema crate writes.
//!
//! Tensors that are gone leave their places to new ones, so that all others keep their numbers.

use std::collections::BTreeMap;

use arenaplan_schema::patch::{NewOperator, NewTensor, Rewrite};

use super::net::{Kind, Net, NetTensor, integers};
use crate::error::Error;
use crate::graph::{Graph, TensorId};

impl Net {
    /// The rewriting of `graph`, of which this net was made.
    ///
    /// # Errors
    /// [`Error::Internal`] when the net does not fit the graph.
    pub fn rewrite(&self, graph: &Graph<'_>) -> Result<Rewrite, Error> {
        let mut emission = Emission {
            net: self,
            graph,
            used: self.used(),
            numbers: BTreeMap::new(),
            free: Vec::new(),
            rewrite: Rewrite {
                subgraph: 0,
                ..Rewrite::default()
            },
            constants: BTreeMap::new(),
        };
        emission.write()?;
        Ok(emission.rewrite)
    }

    /// Which tensors some operator, or the application, reads or writes.
    pub(crate) fn used(&self) -> Vec<bool> {
        let mut used = vec![false; self.tensors.len()];
        let of_operators = self.operators.iter();
        let tensors = of_operators.flat_map(|o| o.inputs.iter().flatten().chain(&o.outputs));
        for &t in tensors.chain(&self.inputs).chain(&self.outputs) {
            used[t as usize] = true;
        }
        used
    }
}

struct Emission<'n, 'a> {
    net: &'n Net,
    graph: &'n Graph<'a>,
    used: Vec<bool>,
    /// The number in the file of each of the net's tensors.
    numbers: BTreeMap<u32, u32>,
    /// Numbers of the file's tensors that are gone, the last one first.
    free: Vec<u32>,
    rewrite: Rewrite,
    constants: BTreeMap<(Vec<i32>, Vec<i32>), i32>,
}

impl Emission<'_, '_> {
    fn write(&mut self) -> Result<(), Error> {
        let (net, graph) = (self.net, self.graph);
        let first = graph.subgraphs[0].first_tensor.0;
        // What an operator of the file touches and none of the net's, and has a place of its own, is gone.
        let mut was_used = vec![false; net.file_tensors];
        for op in &graph.subgraphs[0].operators {
            for t in op.inputs.iter().flatten().chain(&op.outputs) {
                was_used[(t.0 - first) as usize] = true;
            }
        }
        for (index, was_used) in (0..).zip(was_used) {
            match net.tensor(index).is_placed && was_used && !self.used[index as usize] {
                true => self.free.push(index),
                false => {
                    self.numbers.insert(index, index);
                }
            }
        }
        self.free.reverse();
        for (index, tensor) in (0..).zip(&net.tensors).skip(net.file_tensors) {
            if self.used[index as usize] {
                let rows = tensor.first..tensor.first + tensor.rows;
                let new = NewTensor::Like {
                    original: tensor.of,
                    shape: self.shape(tensor)?,
                    name: format!("{} rows {}..{}", tensor.of, rows.start, rows.end),
                };
                let number = self.add(new);
                self.numbers.insert(index, number);
            }
        }
        for op in &net.operators {
            let inputs = op
                .inputs
                .iter()
                .map(|t| t.map_or(Ok(-1), |t| self.number(t)));
            let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
            let outputs = op.outputs.iter().map(|&t| self.number(t));
            let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
            let new = match op.kind {
                Kind::Layer {
                    index,
                    is_copy: false,
                } => NewOperator::Original(index),
                Kind::Layer { index, .. } => NewOperator::Like {
                    original: index,
                    inputs,
                    outputs,
                },
                Kind::Pad { index, top, bottom } => {
                    let mut inputs = inputs;
                    let paddings = self.paddings(index, top, bottom)?;
                    *inputs.get_mut(1).ok_or_else(broken)? = paddings;
                    NewOperator::Like {
                        original: index,
                        inputs,
                        outputs,
                    }
                }
                Kind::Slice { from } => {
                    let (&[source], &[output]) = (&inputs[..], &outputs[..]) else {
                        return Err(broken());
                    };
                    let begin = vec![0, i32::try_from(from).map_err(|_| broken())?, 0, 0];
                    let size = self.shape(net.tensor(*op.outputs.first().ok_or_else(broken)?))?;
                    let inputs = [
                        source,
                        self.constant(vec![4], begin),
                        self.constant(vec![4], size),
                    ];
                    NewOperator::Slice { inputs, output }
                }
                Kind::Concatenation => {
                    let &[output] = &outputs[..] else {
                        return Err(broken());
                    };
                    NewOperator::Concatenation {
                        axis: 1,
                        inputs,
                        output,
                    }
                }
            };
            self.rewrite.operators.push(new);
        }
        match self.free.is_empty() {
            true => Ok(()),
            false => Err(broken()),
        }
    }

    fn number(&self, tensor: u32) -> Result<i32, Error> {
        let number = self.numbers.get(&tensor).ok_or_else(broken)?;
        i32::try_from(*number).map_err(|_| broken())
    }

    /// The number of a new tensor.
    fn add(&mut self, new: NewTensor) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.rewrite.replaced.push((number, new));
                number
            }
            None => {
                self.rewrite.added.push(new);
                (self.net.file_tensors + self.rewrite.added.len()) as u32 - 1
            }
        }
    }

    fn constant(&mut self, shape: Vec<i32>, values: Vec<i32>) -> i32 {
        let key = (shape, values);
        if let Some(&known) = self.constants.get(&key) {
            return known;
        }
        let number = self.add(NewTensor::Constant {
            shape: key.0.clone(),
            values: key.1.clone(),
            name: String::new(),
        }) as i32;
        self.constants.insert(key, number);
        number
    }

    /// The shape of the file's tensor with the rows that there are.
    fn shape(&self, tensor: &NetTensor) -> Result<Vec<i32>, Error> {
        let first = self.graph.subgraphs[0].first_tensor.0;
        let mut shape = self.graph.tensor(TensorId(first + tensor.of)).shape.clone();
        *shape.get_mut(1).ok_or_else(broken)? = i32::try_from(tensor.rows).map_err(|_| broken())?;
        Ok(shape)
    }

    /// The paddings of a PAD of the file with other rows.
    fn paddings(&mut self, index: u32, top: i64, bottom: i64) -> Result<i32, Error> {
        let op = &self.graph.subgraphs[0].operators[index as usize];
        let paddings = op.inputs.get(1).copied().flatten().ok_or_else(broken)?;
        let paddings = self.graph.tensor(paddings);
        let mut values = integers(self.graph, paddings).ok_or_else(broken)?;
        values
            .get_mut(2..4)
            .ok_or_else(broken)?
            .copy_from_slice(&[top, bottom]);
        let narrow = values.into_iter().map(i32::try_from);
        let narrow = narrow
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| broken())?;
        Ok(self.constant(paddings.shape.clone(), narrow))
    }
}

fn broken() -> Error {
    Error::Internal {
        reason: "stripes do not fit the graph".into(),
    }
}
