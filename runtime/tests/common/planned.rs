//! A model with a plan that can be exchanged, and what it computes with one.

// Each test binary uses a part of it.
#![allow(dead_code)]

use arenaplan_runtime::contract::{Overlap, overlap_of};
use arenaplan_runtime::schema::patch::{Edit, graft, original_of};
use arenaplan_runtime::schema::view;
use arenaplan_runtime::{Error, Interpreter, Kernel, Type, ops, tail_bytes};

use crate::common::{Memory, Random, output, set_input};

/// What a plan leads to.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    Refused(Error),
    /// The bytes of all outputs of all invokes, or the error of the first one that failed.
    Ran(Result<Vec<Vec<u8>>, Error>),
}

/// An operator, its tensors by position in the plan.
pub(crate) struct Op {
    pub(crate) place: (usize, usize),
    pub(crate) inputs: Vec<Option<usize>>,
    pub(crate) outputs: Vec<usize>,
}

pub(crate) struct Planned {
    /// The model without a plan.
    pub(crate) plain: Memory,
    file: Memory,
    /// Where the first offset is in the file.
    at: usize,
    /// Bytes of each tensor, and of its elements; 0 where nothing is planned.
    pub(crate) bytes: Vec<usize>,
    pub(crate) element: Vec<usize>,
    pub(crate) ops: Vec<Op>,
    pub(crate) subgraphs: usize,
    /// Of the first subgraph.
    pub(crate) inputs: Vec<usize>,
    pub(crate) outputs: Vec<usize>,
    noise: Memory,
}

/// Where a tensor is left to the device.
const ONLINE: i32 = view::ONLINE;

impl Planned {
    pub(crate) fn new(file: &[u8]) -> Self {
        let original = original_of(file).unwrap();
        let plain = graft(&original, &Edit::default()).unwrap();
        let model = view::Model::new(&plain).unwrap();
        let (mut bytes, mut element, mut ops) = (Vec::new(), Vec::new(), Vec::new());
        let mut ends = None;
        for (s, subgraph) in model.subgraphs().unwrap().into_iter().enumerate() {
            let subgraph = subgraph.unwrap();
            let first = bytes.len();
            let global = |t: i32| first + t as usize;
            let all = |list: view::Vector<'_, i32>| list.into_iter().map(global).collect();
            if s == 0 {
                ends = Some((
                    all(subgraph.inputs().unwrap()),
                    all(subgraph.outputs().unwrap()),
                ));
            }
            for tensor in subgraph.tensors().unwrap() {
                let tensor = tensor.unwrap();
                let ty = Type(tensor.element_type().unwrap());
                let size = ty.bytes().filter(|_| ty != Type::RESOURCE).unwrap_or(0);
                let buffer = model
                    .buffers()
                    .unwrap()
                    .get(tensor.buffer().unwrap() as usize);
                let data = model.buffer_bytes(buffer.unwrap()).unwrap();
                let constant = data.is_some_and(|data| !data.is_empty());
                let dims = tensor.shape().unwrap().into_iter();
                let elements: usize = dims.map(|d| usize::try_from(d).unwrap_or(0)).product();
                let planned = !constant && !tensor.is_variable().unwrap();
                bytes.push(if planned { elements * size } else { 0 });
                element.push(size.max(1));
            }
            for (k, op) in subgraph.operators().unwrap().into_iter().enumerate() {
                let op = op.unwrap();
                let optional = |t: i32| (t >= 0).then(|| global(t));
                ops.push(Op {
                    place: (s, k),
                    inputs: op.inputs().unwrap().into_iter().map(optional).collect(),
                    outputs: op.outputs().unwrap().into_iter().map(global).collect(),
                });
            }
        }
        let marker: Vec<i32> = (0..bytes.len()).map(|k| 0x2a11_0000 + k as i32).collect();
        let words: Vec<u8> = marker.iter().flat_map(|w| w.to_le_bytes()).collect();
        let edit = Edit {
            plan: Some(marker),
            ..Edit::default()
        };
        let file = graft(&original, &edit).unwrap();
        let mut places = file.windows(words.len()).enumerate();
        let (at, _) = places.find(|(_, w)| *w == words).unwrap();
        // Room for each tensor apart from all others, as large as the largest, and for records.
        let slots = bytes.iter().filter(|&&b| b > 0).count() + 4;
        let head = slots * Self::slot_of(&bytes) + bytes.len() * 64 + 32768;
        let (inputs, outputs) = ends.unwrap();
        Self {
            noise: Memory::noise(head + tail_bytes(&plain, ops::ALL).unwrap_or(0), 7),
            subgraphs: model.subgraphs().unwrap().len(),
            plain: Memory::copy_of(&plain),
            file: Memory::copy_of(&file),
            at,
            bytes,
            element,
            ops,
            inputs,
            outputs,
        }
    }

    /// Bytes for each tensor in [`slots`](Self::slots).
    pub(crate) fn slot(&self) -> usize {
        Self::slot_of(&self.bytes)
    }

    fn slot_of(bytes: &[usize]) -> usize {
        bytes.iter().max().unwrap().next_multiple_of(16)
    }

    /// Planned tensors.
    pub(crate) fn planned(&self) -> Vec<usize> {
        (0..self.bytes.len())
            .filter(|&t| self.bytes[t] > 0)
            .collect()
    }

    /// A plan in which each tensor has as much memory as the largest one needs.
    pub(crate) fn slots(&self) -> Vec<i32> {
        let mut offsets = vec![ONLINE; self.bytes.len()];
        for (k, t) in self.planned().into_iter().enumerate() {
            offsets[t] = (k * Self::slot_of(&self.bytes)) as i32;
        }
        offsets
    }

    /// What the contract says of a pair of positions.
    pub(crate) fn promise(&self, op: &Op, input: usize, output: usize) -> Overlap {
        let (s, k) = op.place;
        overlap_of(&self.plain, ops::ALL, s, k, input, output).unwrap()
    }

    /// Runs the model with a plan.
    pub(crate) fn run(&mut self, offsets: &[i32]) -> Outcome {
        self.run_with(ops::ALL, offsets)
    }

    /// The same with other kernels.
    pub(crate) fn run_with(&mut self, kernels: &[Kernel], offsets: &[i32]) -> Outcome {
        assert_eq!(offsets.len(), self.bytes.len());
        for (k, offset) in offsets.iter().enumerate() {
            self.file[self.at + 4 * k..][..4].copy_from_slice(&offset.to_le_bytes());
        }
        let mut arena = Memory::copy_of(&self.noise);
        outcome(&self.file, kernels, &mut arena)
    }

    /// Runs the model without a plan.
    pub(crate) fn run_plain(&self) -> Outcome {
        let mut arena = Memory::copy_of(&self.noise);
        outcome(&self.plain, ops::ALL, &mut arena)
    }
}

fn outcome(model: &[u8], kernels: &[Kernel], arena: &mut [u8]) -> Outcome {
    match Interpreter::new(model, kernels, arena) {
        Err(error) => Outcome::Refused(error),
        Ok(mut interpreter) => Outcome::Ran(invokes(&mut interpreter)),
    }
}

/// Three invokes with random inputs, the same each time: whole numbers are small, so that counters and indices are.
fn invokes(interpreter: &mut Interpreter<'_, '_>) -> Result<Vec<Vec<u8>>, Error> {
    let mut random = Random(5);
    let mut outputs = Vec::new();
    for _ in 0..3 {
        for k in 0..interpreter.session().inputs() {
            let info = interpreter.session().input_info(k)?;
            let ty = info.element_type;
            let elements = info.shape.elements().unwrap();
            let mut element = || -> Vec<u8> {
                let byte = random.next() as u8;
                match ty {
                    Type::FLOAT32 => (f32::from(byte) / 80.0 - 1.6).to_le_bytes().to_vec(),
                    Type::INT8 | Type::UINT8 => vec![byte],
                    Type::BOOL => vec![byte & 1],
                    Type::INT16 => (i16::from(byte as i8) * 200).to_le_bytes().to_vec(),
                    _ => {
                        let mut bytes = vec![0; ty.bytes().unwrap()];
                        bytes[0] = byte & 3;
                        bytes
                    }
                }
            };
            let bytes: Vec<u8> = (0..elements).flat_map(|_| element()).collect();
            set_input(interpreter, k, &bytes)?;
        }
        interpreter.invoke()?;
        for k in 0..interpreter.session().outputs() {
            outputs.push(output(interpreter, k)?);
        }
    }
    Ok(outputs)
}
