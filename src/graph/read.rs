//! Reading a graph from a model, with every index checked.

use std::collections::{BTreeMap, BTreeSet};

use arenaplan_schema::tflite;

use super::{
    Graph, MAX_BYTES, OpId, Operator, Origin, Storage, Subgraph, Tensor, TensorId, elements, shapes,
};
use crate::error::Error;
use crate::model::Model;

impl<'a> Graph<'a> {
    /// Reads the graph of `model`.
    ///
    /// # Errors
    /// An index out of range (tensor, operator code, buffer, called subgraph), no subgraph at all, or a tensor too
    /// large for the arena's 31-bit offsets; each with its place.
    pub fn read(model: Model<'a>) -> Result<Self, Error> {
        let root = model.root();
        let tables = root
            .subgraphs()
            .filter(|s| !s.is_empty())
            .ok_or_else(|| Error::Missing {
                what: "subgraphs".into(),
            })?;
        let mut graph = Graph {
            model,
            tensors: Vec::new(),
            subgraphs: Vec::new(),
            original_at: 0,
        };
        for (s, table) in tables.iter().enumerate() {
            let first_tensor = TensorId(graph.tensors.len() as u32);
            for (index, tensor) in table.tensors().into_iter().flatten().enumerate() {
                let id = TensorId(graph.tensors.len() as u32);
                let tensor = read_tensor(&model, id, s as u32, index as u32, tensor)?;
                graph.tensors.push(tensor);
            }
            let tensor_count = graph.tensors.len() as u32 - first_tensor.0;
            let scope = Scope {
                first_tensor,
                tensor_count,
                subgraphs: tables.len(),
            };
            let named =
                |what: &str, list: Option<arenaplan_schema::flatbuffers::Vector<'a, i32>>| {
                    list.into_iter()
                        .flatten()
                        .enumerate()
                        .map(|(k, t)| scope.tensor(t, || format!("{what} {k} of subgraph {s}")))
                        .collect::<Result<Vec<_>, _>>()
                };
            let inputs = named("input", table.inputs())?;
            let outputs = named("output", table.outputs())?;
            let mut operators = Vec::new();
            for (index, op) in table.operators().into_iter().flatten().enumerate() {
                let id = OpId {
                    subgraph: s as u32,
                    index: index as u32,
                };
                operators.push(read_operator(&model, id, &scope, op)?);
            }
            for op in &operators {
                if op.code == tflite::BuiltinOperator::VAR_HANDLE {
                    for t in &op.outputs {
                        let tensor = &mut graph.tensors[t.index()];
                        if tensor.is_planned() {
                            tensor.storage = Storage::ResourceHandle;
                        }
                    }
                }
            }
            shapes::resolve(&mut graph.tensors, &operators);
            graph.check_order(&inputs, &operators)?;
            graph.subgraphs.push(Subgraph {
                name: table.name().unwrap_or(""),
                first_tensor,
                tensor_count,
                inputs,
                outputs,
                operators,
            });
        }
        graph.check_calls()?;
        graph.note_original_order();
        Ok(graph)
    }

    /// Operators and the subgraphs they run must agree on how many values go in and out, as TFLM's kernels demand.
    fn check_calls(&self) -> Result<(), Error> {
        for op in self.operators().filter(|o| !o.calls.is_empty()) {
            let (inputs, outputs) = (op.inputs.len(), op.outputs.len());
            let code = op.code;
            for (k, &called) in op.calls.iter().enumerate() {
                let subgraph = &self.subgraphs[called as usize];
                let (takes, gives) = (subgraph.inputs.len(), subgraph.outputs.len());
                let fits = match (code, k) {
                    (tflite::BuiltinOperator::IF, _) => takes + 1 == inputs && gives == outputs,
                    (tflite::BuiltinOperator::WHILE, 0) => {
                        takes == inputs && inputs == outputs && gives >= 1
                    }
                    (tflite::BuiltinOperator::WHILE, _) => takes == inputs && gives == outputs,
                    _ => inputs == 0 && outputs == 0,
                };
                if !fits {
                    return Err(Error::CallMismatch {
                        operator: op.label(),
                        reason: format!(
                            "its {inputs} inputs and {outputs} outputs do not fit subgraph {called}, which has \
                             {takes} and {gives}"
                        ),
                    });
                }
            }
        }
        Ok(())
    }

    /// Refuses an operator that reads what only itself or a later one writes: nothing could run that.
    fn check_order(&self, inputs: &[TensorId], operators: &[Operator<'a>]) -> Result<(), Error> {
        let inputs: BTreeSet<_> = inputs.iter().copied().collect();
        let mut writer = BTreeMap::new();
        for op in operators {
            for &t in &op.outputs {
                writer.entry(t).or_insert(op);
            }
        }
        for op in operators {
            for t in op.inputs.iter().flatten().filter(|t| !inputs.contains(t)) {
                let tensor = self.tensor(*t);
                if let Some(first) = writer.get(t)
                    && first.id >= op.id
                    && tensor.is_planned()
                {
                    return Err(Error::ReadBeforeWritten {
                        tensor: tensor.label(),
                        reader: op.label(),
                        writer: first.label(),
                    });
                }
            }
        }
        Ok(())
    }
}

/// What an index inside a subgraph may refer to.
struct Scope {
    first_tensor: TensorId,
    tensor_count: u32,
    subgraphs: usize,
}

impl Scope {
    fn tensor(&self, index: i32, place: impl FnOnce() -> String) -> Result<TensorId, Error> {
        match u32::try_from(index) {
            Ok(i) if i < self.tensor_count => Ok(TensorId(self.first_tensor.0 + i)),
            _ => Err(Error::IndexOutOfRange {
                place: place(),
                index: index.into(),
                length: self.tensor_count as usize,
            }),
        }
    }

    fn subgraph(&self, index: i32, operator: impl FnOnce() -> String) -> Result<u32, Error> {
        u32::try_from(index)
            .ok()
            .filter(|&i| (i as usize) < self.subgraphs)
            .ok_or_else(|| Error::IndexOutOfRange {
                place: format!("{}, subgraph to call", operator()),
                index: index.into(),
                length: self.subgraphs,
            })
    }
}

fn read_tensor<'a>(
    model: &Model<'a>,
    id: TensorId,
    subgraph: u32,
    index: u32,
    table: tflite::Tensor<'a>,
) -> Result<Tensor<'a>, Error> {
    let shape: Vec<i32> = table.shape().into_iter().flatten().collect();
    let mut tensor = Tensor {
        id,
        subgraph,
        index,
        name: table.name().unwrap_or(""),
        ty: table.type_(),
        bytes: 0,
        storage: Storage::Arena,
        shape,
        prepared_shape: None,
        table,
    };
    let buffers = model.root().buffers();
    let buffer_count = buffers.map_or(0, |b| b.len());
    let buffer = table.buffer() as usize;
    // A model without any buffer can only say 0, "none".
    if buffer >= buffer_count && buffer != 0 {
        return Err(Error::IndexOutOfRange {
            place: format!("buffer of {}", tensor.label()),
            index: buffer as i64,
            length: buffer_count,
        });
    }
    let buffer = buffers.filter(|b| buffer < b.len()).map(|b| b.get(buffer));
    let inside = buffer.and_then(|b| b.data()).is_some_and(|d| !d.is_empty());
    let outside = buffer.is_some_and(|b| b.offset() > 1) || table.external_buffer() != 0;

    let element = arenaplan_schema::names::tensor_type_size(table.type_());
    let count = elements(&tensor.shape);
    let size = match (count, element) {
        (Some(n), Some(e)) => n.checked_mul(u64::from(e)),
        _ => Some(0),
    };
    // A variable is one whether or not it has data: TFLM gives it memory in any case.
    tensor.storage = if table.is_variable() {
        Storage::Variable
    } else if inside {
        Storage::Constant
    } else if outside {
        Storage::OutsideConstant
    } else if element.is_none() {
        Storage::UnknownType
    } else if tensor.shape.iter().any(|&d| d < 0) {
        Storage::DynamicShape
    } else if tensor.shape.contains(&0) {
        Storage::Empty
    } else {
        Storage::Arena
    };
    // TFLM counts elements and offsets in 32-bit signed numbers.
    let takes_memory = matches!(tensor.storage, Storage::Arena | Storage::Variable);
    let open = tensor.shape.iter().any(|&d| d < 0);
    match size {
        Some(bytes) if bytes <= MAX_BYTES && (count.is_some() || open) => tensor.bytes = bytes,
        _ if takes_memory => {
            return Err(Error::TooLarge {
                what: tensor.label(),
            });
        }
        _ => {}
    }
    if tensor.storage == Storage::DynamicShape {
        // TFLM multiplies on, as signed 32-bit numbers do; what comes out positive gets room.
        let product = tensor.shape.iter().fold(1i32, |n, &d| n.wrapping_mul(d));
        let bytes = u64::try_from(product).unwrap_or(0) * u64::from(element.unwrap_or(0));
        tensor.bytes = if bytes <= MAX_BYTES { bytes } else { 0 };
    }
    Ok(tensor)
}

fn read_operator<'a>(
    model: &Model<'a>,
    id: OpId,
    scope: &Scope,
    table: tflite::Operator<'a>,
) -> Result<Operator<'a>, Error> {
    let codes = model.root().operator_codes();
    let count = codes.map_or(0, |c| c.len());
    let index = table.opcode_index() as usize;
    let Some(code) = codes.filter(|_| index < count).map(|c| c.get(index)) else {
        return Err(Error::IndexOutOfRange {
            place: format!("operator code of {id}"),
            index: index as i64,
            length: count,
        });
    };
    let stored_code = code.builtin_code();
    let resolved = tflite::BuiltinOperator(arenaplan_schema::names::builtin_code(
        code.deprecated_builtin_code(),
        stored_code.0,
    ));
    let mut operator = Operator {
        id,
        original: id.index,
        origin: Origin::File,
        code: resolved,
        stored_code,
        custom: code.custom_code(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        calls: Vec::new(),
        table,
    };
    let label = || operator.label();
    let inputs = table
        .inputs()
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(k, t)| match t {
            -1 => Ok(None),
            _ => scope
                .tensor(t, || format!("{}, input {k}", label()))
                .map(Some),
        });
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let outputs = table.outputs().into_iter().flatten().enumerate();
    let outputs = outputs
        .map(|(k, t)| scope.tensor(t, || format!("{}, output {k}", label())))
        .collect::<Result<Vec<_>, _>>()?;
    let calls = called_subgraphs(&operator)
        .into_iter()
        .map(|s| scope.subgraph(s, label));
    let calls = calls.collect::<Result<Vec<_>, _>>()?;
    (operator.inputs, operator.outputs, operator.calls) = (inputs, outputs, calls);
    Ok(operator)
}

/// Subgraphs that a control-flow operator runs. One without options is read as calling subgraph 0, as the format's
/// defaults say, which the recursion check then refuses.
fn called_subgraphs(op: &Operator<'_>) -> Vec<i32> {
    match op.code {
        tflite::BuiltinOperator::IF => {
            let o = op.table.builtin_options_as_if_options();
            vec![
                o.map_or(0, |o| o.then_subgraph_index()),
                o.map_or(0, |o| o.else_subgraph_index()),
            ]
        }
        tflite::BuiltinOperator::WHILE => {
            let o = op.table.builtin_options_as_while_options();
            vec![
                o.map_or(0, |o| o.cond_subgraph_index()),
                o.map_or(0, |o| o.body_subgraph_index()),
            ]
        }
        tflite::BuiltinOperator::CALL_ONCE => {
            vec![
                op.table
                    .builtin_options_as_call_once_options()
                    .map_or(0, |o| o.init_subgraph_index()),
            ]
        }
        _ => Vec::new(),
    }
}
