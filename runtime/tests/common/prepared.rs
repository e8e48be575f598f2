//! Prepared data for a model, from TFLM's arithmetic written once more: `QuantizeMultiplier` of doubles.

use arenaplan_runtime::schema::patch::{Edit, graft, original_of};
use arenaplan_runtime::schema::view;
use arenaplan_runtime::{Code, Type};

/// The data of one operator: a multiplier and a shift for each channel. Empty where there is none.
pub(crate) type Factors = Vec<(i32, i8)>;

/// `QuantizeMultiplier` of TFLM's `quantization_util.cc`.
fn quantize_multiplier(real: f64) -> (i32, i8) {
    if real == 0.0 {
        return (0, 0);
    }
    // `frexp`: both are exact.
    let (mut fraction, mut shift) = (real, 0);
    while fraction.abs() >= 1.0 {
        (fraction, shift) = (fraction / 2.0, shift + 1);
    }
    while fraction.abs() < 0.5 {
        (fraction, shift) = (fraction * 2.0, shift - 1);
    }
    let mut fixed = (fraction * f64::from(1u32 << 31)).round() as i64;
    if fixed == 1 << 31 {
        (fixed, shift) = (fixed / 2, shift + 1);
    }
    if shift < -31 {
        (fixed, shift) = (0, 0);
    }
    (fixed as i32, shift)
}

/// The factors of all operators that may have any, in the file's order.
pub(crate) fn factors(model: &[u8]) -> Vec<Factors> {
    let model = view::Model::new(model).unwrap();
    let mut all = Vec::new();
    for subgraph in model.subgraphs().unwrap() {
        let subgraph = subgraph.unwrap();
        let tensors = subgraph.tensors().unwrap();
        let scales = |tensor: i32| -> Vec<f64> {
            let tensor = tensors.get(tensor as usize).unwrap();
            let quantization = tensor.quantization().unwrap();
            let scales = quantization.map(|q| q.scale().unwrap()).unwrap_or_default();
            scales.into_iter().map(f64::from).collect()
        };
        for operator in subgraph.operators().unwrap() {
            let operator = operator.unwrap();
            let codes = model.operator_codes().unwrap();
            let code = codes.get(operator.opcode_index().unwrap() as usize);
            let code = Code(code.unwrap().builtin_code().unwrap());
            let with_weights = [
                Code::CONV_2D,
                Code::DEPTHWISE_CONV_2D,
                Code::FULLY_CONNECTED,
            ];
            if !with_weights.contains(&code) {
                all.push(Vec::new());
                continue;
            }
            let at = |list: view::Vector<'_, i32>, k| list.get(k).unwrap();
            let inputs = operator.inputs().unwrap();
            let filter = at(inputs, 1);
            let element_type = tensors.get(filter as usize).unwrap().element_type();
            let filters = scales(filter);
            if filters.len() < 2 || Type(element_type.unwrap()) == Type::FLOAT32 {
                all.push(Vec::new());
                continue;
            }
            let ends = [at(inputs, 0), at(operator.outputs().unwrap(), 0)];
            let ends = ends.map(|tensor| scales(tensor).first().copied());
            // Floats between them, of weights of bytes.
            let [Some(input), Some(output)] = ends else {
                all.push(Vec::new());
                continue;
            };
            let factors = filters.iter();
            let factors = factors.map(|w| quantize_multiplier(input * w / output));
            all.push(factors.collect());
        }
    }
    all
}

/// The layout of the entry.
pub(crate) fn entry(version: u32, factors: &[Factors]) -> Vec<u8> {
    let mut entry = version.to_le_bytes().to_vec();
    entry.extend((factors.len() as u32).to_le_bytes());
    entry.extend(factors.iter().flat_map(|f| (f.len() as u16).to_le_bytes()));
    for factors in factors {
        entry.resize(entry.len().next_multiple_of(4), 0);
        entry.extend(factors.iter().flat_map(|(m, _)| m.to_le_bytes()));
        entry.extend(factors.iter().map(|(_, shift)| (-1 - shift) as u8));
    }
    entry.resize(entry.len().next_multiple_of(4), 0);
    entry
}

/// The model, without its plan, with these prepared data.
pub(crate) fn with_entry(model: &[u8], entry: Vec<u8>) -> Vec<u8> {
    let edit = Edit {
        prepared: Some(entry),
        ..Edit::default()
    };
    let original = original_of(model).unwrap();
    graft(&original, &edit).unwrap()
}

/// The model with the data that are right for it; `None` where no operator has any.
pub(crate) fn prepared(model: &[u8]) -> Option<Vec<u8>> {
    let factors = factors(model);
    let any = factors.iter().any(|f| !f.is_empty());
    any.then(|| with_entry(model, entry(1, &factors)))
}
