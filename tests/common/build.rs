//! Models made by the flatbuffers builder: float32 operators over tensors of given sizes.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use arenaplan_schema::flatbuffers::FlatBufferBuilder;
use arenaplan_schema::tflite::{
    Buffer, BufferArgs, BuiltinOperator, BuiltinOptions, ConcatenationOptions,
    ConcatenationOptionsArgs, Model, ModelArgs, Operator, OperatorArgs, OperatorCode,
    OperatorCodeArgs, SubGraph, SubGraphArgs, Tensor, TensorArgs, TensorType, UnpackOptions,
    UnpackOptionsArgs,
};

/// An operator to be: its code, and its tensors by index.
#[derive(Clone, Debug)]
pub struct Op {
    pub code: BuiltinOperator,
    pub inputs: Vec<i32>,
    pub outputs: Vec<i32>,
    /// The axis of a CONCATENATION or UNPACK.
    pub axis: i32,
}

/// One subgraph.
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// The shape of each tensor, float32.
    pub shapes: Vec<Vec<i32>>,
    /// Tensors of int32 that are constant, with their numbers.
    pub constants: Vec<(i32, Vec<i32>)>,
    /// Tensors whose data is kept in another file.
    pub external: Vec<i32>,
    pub inputs: Vec<i32>,
    pub outputs: Vec<i32>,
    pub ops: Vec<Op>,
    /// The name of custom operators.
    pub custom: &'static str,
}

impl Plain {
    /// A new tensor, by its number of elements.
    pub fn tensor(&mut self, elements: i32) -> i32 {
        self.shaped(&[elements])
    }

    /// A new tensor, by its shape.
    pub fn shaped(&mut self, shape: &[i32]) -> i32 {
        self.shapes.push(shape.to_vec());
        self.shapes.len() as i32 - 1
    }

    /// A new constant of int32.
    pub fn numbers(&mut self, numbers: &[i32]) -> i32 {
        let t = self.tensor(numbers.len() as i32);
        self.constants.push((t, numbers.to_vec()));
        t
    }

    /// A new tensor and the SLICE that takes it from `input`.
    pub fn slice(&mut self, input: i32, begin: &[i32], size: &[i32]) -> i32 {
        let output = self.shaped(size);
        let (begin, size) = (self.numbers(begin), self.numbers(size));
        self.op(BuiltinOperator::SLICE, &[input, begin, size], &[output]);
        output
    }

    /// A new tensor and the CONCATENATION along `axis` that makes it.
    pub fn join(&mut self, inputs: &[i32], axis: usize) -> i32 {
        let mut shape = self.shapes[inputs[0] as usize].clone();
        shape[axis] = (inputs.iter().map(|&t| self.shapes[t as usize][axis])).sum();
        let output = self.shaped(&shape);
        self.op(BuiltinOperator::CONCATENATION, inputs, &[output]);
        if let Some(op) = self.ops.last_mut() {
            op.axis = axis as i32;
        }
        output
    }

    /// A new tensor and the operator that makes it from `inputs` of its shape.
    pub fn made(&mut self, code: BuiltinOperator, inputs: &[i32]) -> i32 {
        let shape = self.shapes[inputs[0] as usize].clone();
        let output = self.shaped(&shape);
        self.op(code, inputs, &[output]);
        output
    }

    pub fn op(&mut self, code: BuiltinOperator, inputs: &[i32], outputs: &[i32]) {
        self.ops.push(Op {
            code,
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
            axis: 0,
        });
    }

    /// The file.
    pub fn finish(&self) -> Vec<u8> {
        let mut b = FlatBufferBuilder::new();
        let mut codes: Vec<BuiltinOperator> = Vec::new();
        let mut operators = Vec::new();
        for op in &self.ops {
            let opcode_index = match codes.iter().position(|c| *c == op.code) {
                Some(at) => at,
                None => {
                    codes.push(op.code);
                    codes.len() - 1
                }
            };
            let inputs = Some(b.create_vector(&op.inputs));
            let outputs = Some(b.create_vector(&op.outputs));
            let (builtin_options_type, builtin_options) = match op.code {
                BuiltinOperator::CONCATENATION => {
                    let args = ConcatenationOptionsArgs {
                        axis: op.axis,
                        ..Default::default()
                    };
                    let options = ConcatenationOptions::create(&mut b, &args).as_union_value();
                    (BuiltinOptions::ConcatenationOptions, Some(options))
                }
                BuiltinOperator::UNPACK => {
                    let args = UnpackOptionsArgs {
                        num: op.outputs.len() as i32,
                        axis: op.axis,
                    };
                    let options = UnpackOptions::create(&mut b, &args).as_union_value();
                    (BuiltinOptions::UnpackOptions, Some(options))
                }
                _ => (BuiltinOptions::NONE, None),
            };
            let args = OperatorArgs {
                opcode_index: opcode_index as u32,
                inputs,
                outputs,
                builtin_options_type,
                builtin_options,
                ..Default::default()
            };
            operators.push(Operator::create(&mut b, &args));
        }
        let tensors: Vec<_> = self
            .shapes
            .iter()
            .enumerate()
            .map(|(i, shape)| {
                let shape = Some(b.create_vector(shape));
                let name = Some(b.create_string(&format!("t{i}")));
                let constant = self.constants.iter().position(|c| c.0 == i as i32);
                let args = TensorArgs {
                    shape,
                    type_: match constant {
                        None => TensorType::FLOAT32,
                        Some(_) => TensorType::INT32,
                    },
                    buffer: constant.map_or(0, |k| k as u32 + 1),
                    name,
                    external_buffer: u32::from(self.external.contains(&(i as i32))),
                    ..Default::default()
                };
                Tensor::create(&mut b, &args)
            })
            .collect();
        let args = SubGraphArgs {
            tensors: Some(b.create_vector(&tensors)),
            inputs: Some(b.create_vector(&self.inputs)),
            outputs: Some(b.create_vector(&self.outputs)),
            operators: Some(b.create_vector(&operators)),
            ..Default::default()
        };
        let subgraph = SubGraph::create(&mut b, &args);
        let codes: Vec<_> = codes
            .iter()
            .map(|&code| {
                let is_custom = code == BuiltinOperator::CUSTOM;
                let args = OperatorCodeArgs {
                    custom_code: is_custom.then(|| b.create_string(self.custom)),
                    deprecated_builtin_code: code.0.min(127) as i8,
                    builtin_code: code,
                    ..Default::default()
                };
                OperatorCode::create(&mut b, &args)
            })
            .collect();
        let mut buffers = vec![Buffer::create(&mut b, &BufferArgs::default())];
        for (_, numbers) in &self.constants {
            let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
            let args = BufferArgs {
                data: Some(b.create_vector(&bytes)),
                ..Default::default()
            };
            buffers.push(Buffer::create(&mut b, &args));
        }
        let args = ModelArgs {
            version: 3,
            operator_codes: Some(b.create_vector(&codes)),
            subgraphs: Some(b.create_vector(&[subgraph])),
            buffers: Some(b.create_vector(&buffers)),
            ..Default::default()
        };
        let model = Model::create(&mut b, &args);
        b.finish(model, Some("TFL3"));
        b.finished_data().to_vec()
    }
}
