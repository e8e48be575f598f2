//! Inputs and outputs as constants: types, shapes, sizes, scales and zero points.

use arenaplan_schema::names::tensor_type_name;
use arenaplan_schema::tflite::TensorType;

use super::numbers::{float, plain};
use super::{Export, Name};
use crate::graph::{Tensor, TensorId};

/// Appends the constants of all inputs and outputs.
pub(super) fn push(text: &mut String, export: &Export<'_>) {
    let main = &export.graph.subgraphs[0];
    for (kind, list) in [("input", &main.inputs), ("output", &main.outputs)] {
        let capitals = export.name.capitals();
        text.push_str(&format!(
            "\n#define {capitals}_{}S {}\n",
            kind.to_uppercase(),
            list.len()
        ));
        for (i, &id) in list.iter().enumerate() {
            push_one(text, export, kind, i, id);
        }
    }
}

fn push_one(text: &mut String, export: &Export<'_>, kind: &str, i: usize, id: TensorId) {
    let tensor = export.graph.tensor(id);
    let (name, capitals) = (&export.name, export.name.capitals());
    let prefix = format!("{capitals}_{}_{i}", kind.to_uppercase());
    let shape = shape(tensor);
    let dims: Vec<_> = shape.iter().map(i32::to_string).collect();
    text.push_str(&format!(
        "/* {kind} {i}: {} [{}] {} */\n",
        tensor_type_name(tensor.ty).to_string().to_lowercase(),
        dims.join(", "),
        plain(tensor.name)
    ));
    text.push_str(&element_type(name, kind, i, tensor.ty));
    text.push_str(&format!("#define {prefix}_BYTES {}\n", tensor.bytes));
    if let Some(elements) = elements(tensor) {
        text.push_str(&format!("#define {prefix}_ELEMENTS {elements}\n"));
    }
    text.push_str(&format!("#define {prefix}_RANK {}\n", dims.len()));
    if !dims.is_empty() {
        text.push_str(&format!("#define {prefix}_SHAPE {{{}}}\n", dims.join(", ")));
    }
    // As TFLM does, which takes the first of several, and none without a zero point.
    let quantization = tensor.table.quantization();
    let scale = quantization.and_then(|q| q.scale()?.iter().next());
    let zero_point = quantization.and_then(|q| q.zero_point()?.iter().next());
    if let (Some(scale), Some(zero_point)) = (scale.and_then(float), zero_point) {
        text.push_str(&format!(
            "#define {prefix}_SCALE {scale}\n#define {prefix}_ZERO_POINT {}\n",
            zero_point as i32
        ));
    }
}

/// The shape that the interpreter shows.
fn shape<'t>(tensor: &'t Tensor<'_>) -> &'t [i32] {
    tensor.prepared_shape.as_deref().unwrap_or(&tensor.shape)
}

fn elements(tensor: &Tensor<'_>) -> Option<u64> {
    let size = u64::from(arenaplan_schema::names::tensor_type_size(tensor.ty)?);
    tensor.bytes.checked_div(size)
}

/// The type of an element, where C has it.
fn element_type(name: &Name, kind: &str, i: usize, ty: TensorType) -> String {
    let word = match ty {
        TensorType::FLOAT32 => "float",
        TensorType::FLOAT64 => "double",
        TensorType::INT8 => "int8_t",
        TensorType::UINT8 => "uint8_t",
        TensorType::INT16 => "int16_t",
        TensorType::UINT16 => "uint16_t",
        TensorType::INT32 => "int32_t",
        TensorType::UINT32 => "uint32_t",
        TensorType::INT64 => "int64_t",
        TensorType::UINT64 => "uint64_t",
        // `bool` is a word of C only with a header.
        TensorType::BOOL => "uint8_t",
        _ => return String::new(),
    };
    format!("typedef {word} {name}_{kind}_{i}_t;\n")
}
