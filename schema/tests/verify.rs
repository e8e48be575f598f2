//! The verifier: what it must let through, what it must stop, and what that may cost.
#![cfg(feature = "host")]
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use arenaplan_schema::flatbuffers::{
    FlatBufferBuilder, InvalidFlatbuffer, UnionWIPOffset, WIPOffset,
};
use arenaplan_schema::tflite::*;
use arenaplan_schema::verify::{self, InvalidModel};

/// A model of one operator and one tensor, with these numbers in the places of type and union keys.
struct Small {
    operator: i32,
    tensor_type: i8,
    options: Union,
    options_2: Union,
    details: Union,
}

/// Key and value of a union.
#[derive(Clone, Copy)]
struct Union {
    key: u8,
    has_value: bool,
}

const ABSENT: Union = Union {
    key: 0,
    has_value: false,
};

impl Default for Small {
    fn default() -> Self {
        Self {
            operator: BuiltinOperator::CONV_2D.0,
            tensor_type: TensorType::INT8.0,
            options: Union {
                key: BuiltinOptions::Conv2DOptions.0,
                has_value: true,
            },
            options_2: ABSENT,
            details: ABSENT,
        }
    }
}

impl Small {
    fn bytes(&self) -> Vec<u8> {
        let mut fbb = FlatBufferBuilder::new();
        let value = |union: Union, fbb: &mut FlatBufferBuilder<'static>| {
            union.has_value.then(|| {
                let table = Conv2DOptionsArgs {
                    stride_w: 7,
                    ..Default::default()
                };
                WIPOffset::<UnionWIPOffset>::new(Conv2DOptions::create(fbb, &table).value())
            })
        };
        let builtin_options = value(self.options, &mut fbb);
        let builtin_options_2 = value(self.options_2, &mut fbb);
        let details = value(self.details, &mut fbb);
        let quantization = QuantizationParameters::create(
            &mut fbb,
            &QuantizationParametersArgs {
                details_type: QuantizationDetails(self.details.key),
                details,
                ..Default::default()
            },
        );
        let name = fbb.create_string("x");
        let shape = fbb.create_vector(&[1i32, 2]);
        let tensor = Tensor::create(
            &mut fbb,
            &TensorArgs {
                shape: Some(shape),
                type_: TensorType(self.tensor_type),
                name: Some(name),
                quantization: Some(quantization),
                ..Default::default()
            },
        );
        let tensors = fbb.create_vector(&[tensor]);
        let list = fbb.create_vector(&[0i32]);
        let operator = Operator::create(
            &mut fbb,
            &OperatorArgs {
                inputs: Some(list),
                outputs: Some(list),
                builtin_options_type: BuiltinOptions(self.options.key),
                builtin_options,
                builtin_options_2_type: BuiltinOptions2(self.options_2.key),
                builtin_options_2,
                ..Default::default()
            },
        );
        let operators = fbb.create_vector(&[operator]);
        let subgraph = SubGraph::create(
            &mut fbb,
            &SubGraphArgs {
                tensors: Some(tensors),
                operators: Some(operators),
                ..Default::default()
            },
        );
        let subgraphs = fbb.create_vector(&[subgraph]);
        let code = OperatorCode::create(
            &mut fbb,
            &OperatorCodeArgs {
                builtin_code: BuiltinOperator(self.operator),
                ..Default::default()
            },
        );
        let operator_codes = fbb.create_vector(&[code]);
        let model = Model::create(
            &mut fbb,
            &ModelArgs {
                version: 3,
                operator_codes: Some(operator_codes),
                subgraphs: Some(subgraphs),
                ..Default::default()
            },
        );
        finish_model_buffer(&mut fbb, model);
        fbb.finished_data().to_vec()
    }
}

fn operator<'a>(model: &Model<'a>) -> Operator<'a> {
    model
        .subgraphs()
        .unwrap()
        .get(0)
        .operators()
        .unwrap()
        .get(0)
}

fn tensor<'a>(model: &Model<'a>) -> Tensor<'a> {
    model.subgraphs().unwrap().get(0).tensors().unwrap().get(0)
}

/// Reads all there is, by the one function of the generated code that does: `Debug`.
fn read_everything(model: &Model<'_>) -> usize {
    format!("{model:?}").len()
}

#[test]
fn a_known_union_is_read() {
    let bytes = Small::default().bytes();
    let model = verify::root(&bytes).unwrap();
    assert_eq!(
        operator(&model)
            .builtin_options_as_conv_2_doptions()
            .unwrap()
            .stride_w(),
        7
    );
    assert_eq!(model.version(), 3);
}

#[test]
fn unknown_numbers_are_no_error() {
    let unknown = Union {
        key: 250,
        has_value: true,
    };
    let bytes = Small {
        operator: 4000,
        tensor_type: 99,
        options: unknown,
        options_2: unknown,
        details: unknown,
    }
    .bytes();
    let model = verify::root(&bytes).unwrap();
    assert_eq!(
        model.operator_codes().unwrap().get(0).builtin_code(),
        BuiltinOperator(4000)
    );
    assert_eq!(tensor(&model).type_(), TensorType(99));
    assert_eq!(
        tensor(&model).quantization().unwrap().details_type(),
        QuantizationDetails(250)
    );
    let operator = operator(&model);
    assert_eq!(operator.builtin_options_type(), BuiltinOptions(250));
    assert_eq!(operator.builtin_options_2_type(), BuiltinOptions2(250));
    assert!(operator.builtin_options_as_conv_2_doptions().is_none());
    // The table of an unknown kind is there, and has its vtable.
    assert_eq!(
        operator
            .builtin_options()
            .unwrap()
            .vtable()
            .get(Conv2DOptions::VT_STRIDE_W),
        4
    );
    assert!(read_everything(&model) > 0);
}

#[test]
fn half_a_union_is_no_error() {
    // The type of options that are not there: real files have it.
    let conv = BuiltinOptions::Conv2DOptions.0;
    let bytes = Small {
        options: Union {
            key: conv,
            has_value: false,
        },
        ..Default::default()
    }
    .bytes();
    let model = verify::root(&bytes).unwrap();
    assert_eq!(
        operator(&model).builtin_options_type(),
        BuiltinOptions::Conv2DOptions
    );
    assert!(
        operator(&model)
            .builtin_options_as_conv_2_doptions()
            .is_none()
    );
    assert!(operator(&model).builtin_options().is_none());
    assert!(read_everything(&model) > 0);

    // Options without a type.
    let bytes = Small {
        options: Union {
            key: 0,
            has_value: true,
        },
        ..Default::default()
    }
    .bytes();
    let model = verify::root(&bytes).unwrap();
    assert_eq!(
        operator(&model).builtin_options_type(),
        BuiltinOptions::NONE
    );
    assert!(
        operator(&model)
            .builtin_options_as_conv_2_doptions()
            .is_none()
    );
    assert!(read_everything(&model) > 0);
}

#[test]
fn an_unknown_union_value_must_be_a_table_inside_the_file() {
    let small = Small {
        options: Union {
            key: 250,
            has_value: true,
        },
        ..Default::default()
    };
    let good = small.bytes();
    let at = operator(&verify::root(&good).unwrap())
        .builtin_options()
        .unwrap()
        .loc();
    for reference in (0..good.len() - 3).step_by(4) {
        let distance = u32::from_le_bytes(good[reference..reference + 4].try_into().unwrap());
        if reference + distance as usize == at {
            for wrong in [u32::MAX, 0x7fff_0000, (good.len() - reference) as u32 - 1] {
                let mut bad = good.clone();
                bad[reference..reference + 4].copy_from_slice(&wrong.to_le_bytes());
                assert!(
                    matches!(verify::root(&bad), Err(InvalidModel::Structure(_))),
                    "{wrong}"
                );
            }
            return;
        }
    }
    panic!("no reference to the options");
}

#[test]
fn what_is_no_model_is_told_apart() {
    let good = Small::default().bytes();
    assert_eq!(verify::root(&[]).unwrap_err(), InvalidModel::TooShort(0));
    assert_eq!(
        verify::root(&good[..7]).unwrap_err(),
        InvalidModel::TooShort(7)
    );
    let error = verify::root(b"\x89PNG\r\n\x1a\n....").unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a .tflite model: bytes 4 to 8 are \"\\r\\n\\x1a\\n\", expected \"TFL3\""
    );
    let error = verify::root(&good[..good.len() / 2]).unwrap_err();
    assert!(error.to_string().starts_with("damaged model: "), "{error}");
    assert!(
        error.to_string().contains("while verifying table field"),
        "{error}"
    );
    assert!(!error.to_string().ends_with('\n'));
}

/// Every truncation and every flipped bit gives an error or a model that can be read to the end.
#[test]
fn damaged_bytes_never_panic() {
    let good = Small {
        options: Union {
            key: 250,
            has_value: true,
        },
        ..Default::default()
    }
    .bytes();
    let (mut whole, mut broken) = (0, 0);
    let mut look = |bytes: &[u8]| match verify::root(bytes) {
        Ok(model) => {
            read_everything(&model);
            whole += 1;
        }
        Err(_) => broken += 1,
    };
    for len in 0..good.len() {
        look(&good[..len]);
    }
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        look(&bytes);
    }
    // Both happen, so both were tried.
    assert!(
        whole > 100 && broken > 100,
        "{whole} whole, {broken} broken"
    );
}

/// Many references to one vector of many references and so on unfold to far more than the file.
#[test]
fn a_file_that_unfolds_is_stopped() {
    const N: usize = 2000;
    let mut fbb = FlatBufferBuilder::new();
    let operator = Operator::create(&mut fbb, &OperatorArgs::default());
    let operators = fbb.create_vector(&[operator; N]);
    let subgraph = SubGraph::create(
        &mut fbb,
        &SubGraphArgs {
            operators: Some(operators),
            ..Default::default()
        },
    );
    let subgraphs = fbb.create_vector(&[subgraph; N]);
    let model = Model::create(
        &mut fbb,
        &ModelArgs {
            subgraphs: Some(subgraphs),
            ..Default::default()
        },
    );
    finish_model_buffer(&mut fbb, model);
    let bytes = fbb.finished_data();
    // 4 million operators in 16 KiB.
    assert!(bytes.len() < 4 * (2 * N + 100), "{}", bytes.len());
    let stopped = verify::root(bytes).unwrap_err();
    let InvalidModel::Structure(limit) = &stopped else {
        panic!("{stopped}")
    };
    assert!(
        matches!(
            limit,
            InvalidFlatbuffer::TooManyTables | InvalidFlatbuffer::ApparentSizeTooLarge
        ),
        "{stopped}"
    );
}

/// A model as large as any seen, 6000 operators with a tensor and a buffer each, is inside the limits
/// even where every table is as small as it can be.
#[test]
fn a_large_model_of_small_tables_passes() {
    const N: usize = 6000;
    let mut fbb = FlatBufferBuilder::new();
    let buffers: Vec<_> = (0..N)
        .map(|_| Buffer::create(&mut fbb, &BufferArgs::default()))
        .collect();
    let buffers = fbb.create_vector(&buffers);
    let tensors: Vec<_> = (0..N)
        .map(|_| Tensor::create(&mut fbb, &TensorArgs::default()))
        .collect();
    let tensors = fbb.create_vector(&tensors);
    let operators: Vec<_> = (0..N)
        .map(|i| {
            let list = fbb.create_vector(&[i as i32]);
            let args = OperatorArgs {
                inputs: Some(list),
                outputs: Some(list),
                ..Default::default()
            };
            Operator::create(&mut fbb, &args)
        })
        .collect();
    let operators = fbb.create_vector(&operators);
    let args = SubGraphArgs {
        tensors: Some(tensors),
        operators: Some(operators),
        ..Default::default()
    };
    let subgraph = SubGraph::create(&mut fbb, &args);
    let subgraphs = fbb.create_vector(&[subgraph]);
    let args = ModelArgs {
        subgraphs: Some(subgraphs),
        buffers: Some(buffers),
        ..Default::default()
    };
    let model = Model::create(&mut fbb, &args);
    finish_model_buffer(&mut fbb, model);
    let model = verify::root(fbb.finished_data()).unwrap();
    assert_eq!(
        model.subgraphs().unwrap().get(0).operators().unwrap().len(),
        N
    );
}

/// Public models, where they are kept beside the project.
#[test]
fn real_models_pass() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/models");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: no folder ../shared/models beside the project");
        return;
    };
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "tflite"));
    paths.sort();
    for path in &paths {
        let bytes = std::fs::read(path).unwrap();
        let model = verify::root(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(model.version(), 3, "{}", path.display());
        assert!(read_everything(&model) > 0);
    }
    assert!(!paths.is_empty());
}
