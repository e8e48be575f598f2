//! The patcher: what a patched file says, that nothing else changed, and that the original comes back.
#![cfg(feature = "host")]
#![allow(clippy::unwrap_used)]

mod models;

use std::borrow::Cow;

use arenaplan_schema::flatbuffers::FlatBufferBuilder;
use arenaplan_schema::patch::{
    Edit, OperatorOrder, PROVENANCE_NAME, PatchError, Stamp, graft, inspect_provenance,
    original_of, strip,
};
use arenaplan_schema::tflite::{
    Buffer, BufferArgs, Model as GeneratedModel, ModelArgs, finish_model_buffer,
};
use arenaplan_schema::verify;
use arenaplan_schema::view::{Error, Field, Model, PLAN_NAME, PREPARED_NAME, TableKind};
use models::{Random, Wanted, build, files, plan_words};

fn stamp() -> Stamp {
    Stamp {
        tool_version: "0.1.0".into(),
        target: "tflm".into(),
        options: "alias=views".into(),
    }
}

fn operators(model: &Model<'_>) -> Vec<usize> {
    let subgraphs = model.subgraphs().unwrap();
    subgraphs
        .iter()
        .map(|subgraph| subgraph.unwrap().operators().unwrap().len())
        .collect()
}

fn tensors(model: &Model<'_>) -> usize {
    let subgraphs = model.subgraphs().unwrap();
    subgraphs
        .iter()
        .map(|subgraph| subgraph.unwrap().tensors().unwrap().len())
        .sum()
}

/// A plan with different offsets, all subgraphs' operators in reverse order.
fn thorough_edit(bytes: &[u8]) -> Edit {
    let model = Model::new(bytes).unwrap();
    let reverse = |(subgraph, operators): (usize, usize)| OperatorOrder {
        subgraph,
        order: (0..operators as u32).rev().collect(),
    };
    Edit {
        plan: Some(
            (0..tensors(&model) as i32)
                .map(|tensor| 16 * tensor - 1)
                .map(|o| o.max(-1))
                .collect(),
        ),
        operator_order: operators(&model)
            .into_iter()
            .enumerate()
            .map(reverse)
            .collect(),
        rewrite: Vec::new(),
        prepared: Some(b"any bytes that are prepared".to_vec()),
        stamp: stamp(),
    }
}

/// A plan that leaves all tensors to the device, and nothing else.
fn online_edit(bytes: &[u8]) -> Edit {
    let plan = vec![-1; tensors(&Model::new(bytes).unwrap())];
    Edit {
        plan: Some(plan),
        stamp: stamp(),
        ..Default::default()
    }
}

/// Models with everything that a patch has to take care of.
fn hand_built() -> Vec<Vec<u8>> {
    let metadata = vec![
        ("min_runtime_version".to_owned(), Some(b"1.5.0".to_vec())),
        (
            PLAN_NAME.to_owned(),
            Some(plan_words(&[1, 2, 5, 0, 0, 0, 0, 0])),
        ),
        ("last".to_owned(), None),
    ];
    let with_metadata = Wanted {
        metadata,
        ..Default::default()
    };
    vec![
        build(&Wanted::default()),
        build(&with_metadata),
        outside_data(),
        minimal(),
    ]
}

/// A model with data behind the FlatBuffer: 4 bytes of a buffer, then 3 of an operator's options.
fn outside_data() -> Vec<u8> {
    let wanted = |at: u64| Wanted {
        outside_buffers: vec![(at, 4), (1, 1), (0, 0)],
        outside_options: Some((at + 4, 3)),
        ..Default::default()
    };
    let at = build(&wanted(1 << 40)).len() as u64;
    let mut bytes = build(&wanted(at));
    bytes.extend(b"DATAopt");
    bytes
}

/// The smallest model: a root table without fields, behind its vtable.
fn minimal() -> Vec<u8> {
    [[12, 0, 0, 0], *b"TFL3", [4, 0, 4, 0], [4, 0, 0, 0]].concat()
}

#[test]
fn the_original_comes_back_and_planning_twice_is_planning_once() {
    let mut all: Vec<(String, Vec<u8>)> = files()
        .into_iter()
        .map(|(path, bytes)| (path.display().to_string(), bytes))
        .collect();
    all.extend(
        hand_built()
            .into_iter()
            .enumerate()
            .map(|(i, m)| (format!("hand-built {i}"), m)),
    );
    for (name, original) in all {
        println!("{name}");
        for edit in [
            thorough_edit(&original),
            online_edit(&original),
            Edit::default(),
        ] {
            let patched = graft(&original, &edit).unwrap();
            verify::root(&patched).unwrap();
            let again = original_of(&patched).unwrap();
            assert!(again == original);
            assert!(graft(&again, &edit).unwrap() == patched);
            let provenance = inspect_provenance(&patched).unwrap().unwrap();
            assert_eq!(provenance.stamp, edit.stamp);
            assert_eq!(provenance.original_bytes, original.len() as u64);
            check_unchanged(&original, &patched, &edit);
        }
        let patched = graft(&original, &thorough_edit(&original)).unwrap();
        assert!(strip(&patched).unwrap() == original);
        assert_eq!(strip(&original), Err(PatchError::NotPlanned));
        assert_eq!(inspect_provenance(&original), Ok(None));
        assert!(matches!(original_of(&original), Ok(Cow::Borrowed(bytes)) if bytes == original));
    }
}

/// All that was there is still there, at its old place behind the prefix, and all that is new is what was asked for.
fn check_unchanged(original: &[u8], patched: &[u8], edit: &Edit) {
    let prefix = patched.len() - original.len();
    assert_eq!(prefix % 64, 0);
    let (old, new) = (Model::new(original).unwrap(), Model::new(patched).unwrap());
    assert_eq!(old.version().unwrap(), new.version().unwrap());
    assert_eq!(old.description().unwrap(), new.description().unwrap());
    macro_rules! same_tables {
        ($($field:ident),*) => {$(
            let at = |model: &Model<'_>| -> Vec<usize> {
                model.$field().unwrap().iter().map(|entry| entry.unwrap().table().position()).collect()
            };
            let moved: Vec<usize> = at(&old).iter().map(|at| at + prefix).collect();
            assert_eq!(at(&new), moved);
        )*};
    }
    same_tables!(
        operator_codes,
        signature_defs,
        external_buffer_groups,
        external_buffers
    );
    let ints: [Vec<i32>; 2] =
        [old, new].map(|model| model.metadata_buffer().unwrap().iter().collect());
    assert_eq!(ints[0], ints[1]);

    let buffers: Vec<_> = new.buffers().unwrap().iter().map(Result::unwrap).collect();
    for (index, before) in old
        .buffers()
        .unwrap()
        .iter()
        .map(Result::unwrap)
        .enumerate()
    {
        assert_eq!(
            buffers[index].table().position(),
            before.table().position() + prefix
        );
        assert_eq!(
            new.buffer_bytes(buffers[index]).unwrap(),
            old.buffer_bytes(before).unwrap()
        );
        if let Some(data) = before.data().unwrap() {
            let place = |file: &[u8], data: &[u8]| data.as_ptr() as usize - file.as_ptr() as usize;
            let after = buffers[index].data().unwrap().unwrap();
            assert_eq!(place(patched, after) % 64, place(original, data) % 64);
        }
    }
    // Tensors name no data by buffer 0, so it is never one of ours.
    assert_eq!(
        new.buffer_bytes(buffers[0]).unwrap().map_or(0, <[u8]>::len),
        0
    );

    let names = |model: &Model<'_>| -> Vec<Option<String>> {
        let entries = model.metadata().unwrap();
        entries
            .iter()
            .map(|e| e.unwrap().name().unwrap().map(|name| name.to_string()))
            .collect()
    };
    let mut expected = names(&old);
    expected.retain(|name| name.as_deref() != Some(PLAN_NAME));
    expected.extend(edit.plan.iter().map(|_| Some(PLAN_NAME.to_owned())));
    expected.extend(edit.prepared.iter().map(|_| Some(PREPARED_NAME.to_owned())));
    expected.push(Some(PROVENANCE_NAME.to_owned()));
    assert_eq!(names(&new), expected);
    let kept = |model: &Model<'_>, ours: bool| -> Vec<usize> {
        let entries = model.metadata().unwrap().iter().map(Result::unwrap);
        let stays = entries.filter(|entry| {
            let name = entry.name().unwrap();
            let is_ours = |n| n == PREPARED_NAME || n == PROVENANCE_NAME;
            !name.is_some_and(|n| n == PLAN_NAME || (ours && is_ours(n)))
        });
        stays.map(|entry| entry.table().position()).collect()
    };
    let moved: Vec<usize> = kept(&old, false).iter().map(|at| at + prefix).collect();
    assert_eq!(kept(&new, true), moved);

    let subgraphs = old.subgraphs().unwrap();
    assert_eq!(new.subgraphs().unwrap().len(), subgraphs.len());
    for (index, before) in subgraphs.iter().map(Result::unwrap).enumerate() {
        let after = new.subgraphs().unwrap().get(index).unwrap();
        let moved = |a: Vec<usize>| -> Vec<usize> { a.into_iter().map(|at| at + prefix).collect() };
        let tensors = [before, after].map(|subgraph| {
            subgraph
                .tensors()
                .unwrap()
                .iter()
                .map(|t| t.unwrap().table().position())
                .collect()
        });
        let [from, to] = tensors;
        assert_eq!(moved(from), to);
        let [mut from, to] = [before, after].map(|subgraph| {
            let operators = subgraph.operators().unwrap();
            operators
                .iter()
                .map(|o| o.unwrap().table().position())
                .collect::<Vec<_>>()
        });
        if let Some(order) = edit
            .operator_order
            .iter()
            .find(|order| order.subgraph == index)
        {
            from = order
                .order
                .iter()
                .map(|operator| from[*operator as usize])
                .collect();
        }
        assert_eq!(moved(from), to);
        assert_eq!(before.name().unwrap(), after.name().unwrap());
        let lists = [before, after].map(|subgraph| {
            let inputs: Vec<i32> = subgraph.inputs().unwrap().iter().collect();
            (
                inputs,
                subgraph.outputs().unwrap().iter().collect::<Vec<i32>>(),
            )
        });
        assert_eq!(lists[0], lists[1]);
        let debug = [before, after].map(|subgraph| subgraph.table().i32(5, -1).unwrap());
        assert_eq!(debug[0], debug[1]);
    }

    let plan = new
        .offline_plan()
        .unwrap()
        .map(|plan| plan.offsets().iter().collect::<Vec<_>>());
    assert_eq!(plan, edit.plan);
    for read in [Model::metadata_bytes, Model::metadata_data] {
        let found = read(&new, PREPARED_NAME).unwrap();
        assert_eq!(found, edit.prepared.as_deref());
        // It is of words.
        let place = found.map_or(0, |found| found.as_ptr() as usize);
        assert!(found.is_none() || (place - patched.as_ptr() as usize).is_multiple_of(4));
    }
    if let Some(offsets) = &edit.plan {
        // As TensorFlow Lite Micro finds it: words at an address that words can be read from.
        let words: Vec<i32> = [1, subgraphs.len() as i32, offsets.len() as i32]
            .iter()
            .chain(offsets)
            .copied()
            .collect();
        let entry = verify::root(patched).unwrap().metadata().unwrap();
        let entry = entry
            .iter()
            .find(|entry| entry.name() == Some(PLAN_NAME))
            .unwrap();
        let buffer = verify::root(patched)
            .unwrap()
            .buffers()
            .unwrap()
            .get(entry.buffer() as usize);
        let data = buffer.data().unwrap().bytes();
        assert_eq!(data, plan_words(&words));
        assert_eq!((data.as_ptr() as usize - patched.as_ptr() as usize) % 16, 0);
    }
}

#[test]
fn the_digest_is_what_sha256sum_says() {
    let provenance = inspect_provenance(&graft(&minimal(), &Edit::default()).unwrap());
    let hex: String = provenance
        .unwrap()
        .unwrap()
        .original_sha256
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(
        hex,
        "f24347ded2d558e08023a950c5b0413840d9385186fb634f30f6c5a08959f289"
    );
}

#[test]
fn offsets_from_the_start_of_the_file_move_with_the_data() {
    let original = outside_data();
    let patched = graft(&original, &online_edit(&original)).unwrap();
    let prefix = (patched.len() - original.len()) as u64;
    let at = original.len() as u64 - 7;
    let model = Model::new(&patched).unwrap();
    let offsets: Vec<(u64, u64)> = model
        .buffers()
        .unwrap()
        .iter()
        .map(|buffer| {
            (
                buffer.unwrap().offset().unwrap(),
                buffer.unwrap().size().unwrap(),
            )
        })
        .collect();
    // Offsets of 0 and 1 mean nothing, and stay.
    assert_eq!(offsets[4..7], [(at + prefix, 4), (1, 1), (0, 0)]);
    assert_eq!(
        model.buffer_bytes(model.buffers().unwrap().get(4).unwrap()),
        Ok(Some(&b"DATA"[..]))
    );
    let main = model.subgraphs().unwrap().get(0).unwrap();
    let last = main.operators().unwrap().get(3).unwrap();
    assert_eq!(last.large_custom_options_offset().unwrap(), at + 4 + prefix);
    assert_eq!(model.custom_options(last), Ok(Some(&b"opt"[..])));
    // Nothing but the two offsets differs from the original.
    let different: Vec<usize> = (0..original.len())
        .filter(|&at| original[at] != patched[prefix as usize + at])
        .collect();
    assert!((1..=16).contains(&different.len()), "{different:?}");
    assert!(strip(&patched).unwrap() == original);
}

#[test]
fn an_offset_of_a_shared_table_moves_once() {
    let mut b = FlatBufferBuilder::new();
    let buffer = Buffer::create(
        &mut b,
        &BufferArgs {
            offset: 16,
            size: 8,
            ..Default::default()
        },
    );
    let buffers = Some(b.create_vector(&[buffer, buffer, buffer]));
    let root = GeneratedModel::create(
        &mut b,
        &ModelArgs {
            buffers,
            ..Default::default()
        },
    );
    finish_model_buffer(&mut b, root);
    let original = b.finished_data();
    let patched = graft(original, &Edit::default()).unwrap();
    let prefix = (patched.len() - original.len()) as u64;
    let buffers = Model::new(&patched).unwrap().buffers().unwrap();
    for index in 0..3 {
        assert_eq!(buffers.get(index).unwrap().offset(), Ok(16 + prefix));
    }
    assert_eq!(strip(&patched).unwrap(), original);
}

#[test]
fn an_offset_outside_the_file_is_an_error() {
    let original = outside_data();
    let cut = &original[..original.len() - 1];
    let field = Field {
        table: TableKind::Operator,
        slot: Some(9),
    };
    let position = original.len() - 3;
    let outside = PatchError::Read(Error::OutsideData { field, position });
    assert_eq!(graft(cut, &Edit::default()), Err(outside));
    let field = Field {
        table: TableKind::Buffer,
        slot: Some(1),
    };
    for (offset, bytes) in [
        (u64::MAX, 1),
        (2, u64::MAX),
        (1 << 63, 1 << 63),
        (100_000, 0),
    ] {
        let wanted = Wanted {
            outside_buffers: vec![(offset, bytes)],
            ..Default::default()
        };
        let outside = PatchError::Read(Error::OutsideData {
            field,
            position: usize::try_from(offset).unwrap(),
        });
        assert_eq!(graft(&build(&wanted), &Edit::default()), Err(outside));
    }
}

#[test]
fn offsets_that_share_bytes_are_an_error() {
    let word = |value: u32| value.to_le_bytes();
    let half = |value: u16| value.to_le_bytes();
    // A model with two Buffer tables at `first` and `second`, whose `offset` is 4 bytes behind their start.
    let file = |first: u32, second: u32, rest: &[[u8; 4]]| {
        let mut bytes = [word(24), *b"TFL3"].concat();
        bytes.extend([14, 8, 0, 0, 0, 0, 4, 0].map(half).concat());
        bytes.extend(
            [
                word(16),
                word(4),
                word(2),
                word(first - 36),
                word(second - 40),
            ]
            .concat(),
        );
        bytes.extend([8, 12, 0, 4].map(half).concat());
        bytes.extend(rest.concat());
        bytes
    };
    // Apart: tables at 52 and 64.
    let (vtable, offset) = (44, 12);
    let apart = [
        word(52 - vtable),
        word(offset),
        word(0),
        word(64 - vtable),
        word(9),
        word(0),
    ];
    let apart = file(52, 64, &apart);
    assert_eq!(
        strip(&graft(&apart, &Edit::default()).unwrap()).unwrap(),
        apart
    );
    // The second table's reference to its vtable is the first one's offset, 12, which moving changes.
    let lead = file(
        52,
        56,
        &[word(52 - vtable), word(56 - vtable), word(0), word(0)],
    );
    assert_eq!(
        graft(&lead, &Edit::default()),
        Err(PatchError::OverlappingOffsets { position: 56 })
    );
    // Two offsets a byte apart, 0x200 at 68 and 2 at 69: the table at 60 has a vtable of its own.
    let vtable = [half(8), half(20), half(0), half(9)].concat();
    let vtable = [0, 4].map(|at| vtable[at..at + 4].try_into().unwrap());
    let rest = [
        vtable[0],
        vtable[1],
        word(60 - 52),
        word(64 - 44),
        word(0x200),
    ];
    let mut apart_by_one = file(64, 60, &rest);
    apart_by_one.resize(0x200, 0);
    assert_eq!(
        graft(&apart_by_one, &Edit::default()),
        Err(PatchError::OverlappingOffsets { position: 69 })
    );
}

#[test]
fn the_plan_has_to_fit_the_model() {
    let original = build(&Wanted::default());
    let with = |plan: Vec<i32>| {
        graft(
            &original,
            &Edit {
                plan: Some(plan),
                ..Default::default()
            },
        )
    };
    assert!(with(vec![0, -1, 16, 32, 0]).is_ok());
    for offsets in [0, 4, 6] {
        let wrong = PatchError::PlanTensorCount {
            offsets,
            tensors: 5,
        };
        assert_eq!(with(vec![0; offsets]), Err(wrong));
    }
    let wrong = PatchError::PlanOffset {
        tensor: 2,
        offset: -2,
    };
    assert_eq!(with(vec![0, -1, -2, -3, 0]), Err(wrong));
}

#[test]
fn an_operator_order_has_to_be_a_permutation() {
    let original = build(&Wanted::default());
    let with = |orders: &[(usize, &[u32])]| {
        let order = |(subgraph, order): &(usize, &[u32])| OperatorOrder {
            subgraph: *subgraph,
            order: order.to_vec(),
        };
        let operator_order = orders.iter().map(order).collect();
        graft(
            &original,
            &Edit {
                operator_order,
                ..Default::default()
            },
        )
    };
    assert!(with(&[(0, &[3, 1, 0, 2]), (1, &[])]).is_ok());
    // Its own order is no new order.
    assert_eq!(with(&[(0, &[0, 1, 2, 3])]), with(&[]));
    for (order, position, operator) in [
        ([0, 1, 1, 2], 2, 1),
        ([0, 1, 2, 4], 3, 4),
        ([u32::MAX, 0, 1, 2], 0, u32::MAX),
    ] {
        let wrong = PatchError::OrderNotPermutation {
            subgraph: 0,
            position,
            operator,
        };
        assert_eq!(with(&[(0, &order)]), Err(wrong));
    }
    let wrong = PatchError::OrderLength {
        subgraph: 0,
        given: 3,
        operators: 4,
    };
    assert_eq!(with(&[(0, &[2, 1, 0])]), Err(wrong));
    let wrong = PatchError::OrderSubgraph {
        subgraph: 2,
        subgraphs: 2,
    };
    assert_eq!(with(&[(2, &[])]), Err(wrong));
    assert_eq!(
        with(&[(1, &[]), (1, &[])]),
        Err(PatchError::OrderTwice { subgraph: 1 })
    );
}

#[test]
fn newer_fields_are_kept_or_named() {
    let newer_model = |slot| {
        build(&Wanted {
            newer_model_field: Some((slot, 7)),
            ..Default::default()
        })
    };
    for slot in [10, 13] {
        let wrong = PatchError::NewerModelField { slot };
        assert_eq!(graft(&newer_model(slot), &Edit::default()), Err(wrong));
        assert!(
            wrong.to_string().contains(&format!("field {slot}")),
            "{wrong}"
        );
    }
    let original = build(&Wanted {
        newer_subgraph_field: Some((8, 77)),
        ..Default::default()
    });
    // A subgraph's table that stays keeps fields that nobody here knows.
    let patched = graft(&original, &online_edit(&original)).unwrap();
    let main = Model::new(&patched)
        .unwrap()
        .subgraphs()
        .unwrap()
        .get(0)
        .unwrap();
    assert_eq!(main.table().u32(8, 0), Ok(77));
    let wrong = PatchError::NewerSubgraphField {
        subgraph: 0,
        slot: 8,
    };
    assert_eq!(graft(&original, &thorough_edit(&original)), Err(wrong));
}

#[test]
fn buffers_that_do_not_exist_are_not_taken_for_new_ones() {
    let original = build(&Wanted {
        metadata: vec![("entry".into(), Some(vec![1]))],
        ..Default::default()
    });
    let model = Model::new(&original).unwrap();
    assert_eq!(model.buffers().unwrap().len(), 5);
    let patched_at = |position: usize, value: u8| {
        let mut bytes = original.clone();
        let field = (position + 4..position + 12).find(|&at| bytes[at..at + 4] == [value, 0, 0, 0]);
        bytes[field.unwrap()] = 5;
        graft(&bytes, &Edit::default())
    };
    let entry = model.metadata().unwrap().get(0).unwrap().table().position();
    let wrong = PatchError::MetadataBuffer {
        entry: 0,
        buffer: 5,
        buffers: 5,
    };
    assert_eq!(patched_at(entry, 4), Err(wrong));
    let tensor = model
        .subgraphs()
        .unwrap()
        .get(0)
        .unwrap()
        .tensors()
        .unwrap()
        .get(3)
        .unwrap();
    assert_eq!(tensor.buffer(), Ok(3));
    let wrong = PatchError::TensorBuffer {
        subgraph: 0,
        tensor: 3,
        buffer: 5,
        buffers: 5,
    };
    assert_eq!(patched_at(tensor.table().position(), 3), Err(wrong));
}

#[test]
fn a_changed_file_is_told_from_one_without_a_plan() {
    for original in [build(&Wanted::default()), outside_data()] {
        let patched = graft(&original, &thorough_edit(&original)).unwrap();
        let original_bytes = original.len() as u64;
        let mut longer = patched.clone();
        longer.push(0);
        let file_bytes = longer.len() as u64;
        let wrong = PatchError::ChangedLength {
            file_bytes,
            original_bytes,
        };
        assert_eq!(strip(&longer), Err(wrong));
        assert_eq!(original_of(&longer), Err(wrong));
        longer.resize(patched.len() + 64, 0);
        assert_eq!(strip(&longer), Err(PatchError::ChangedContent));
        // Each byte of the original counts; the plan in front may be edited.
        let mut random = Random(7);
        for _ in 0..500 {
            let mut changed = patched.clone();
            let at = patched.len() - 1 - random.below(original.len());
            changed[at] ^= 1 << random.below(8);
            assert_eq!(
                strip(&changed),
                Err(PatchError::ChangedContent),
                "byte {at}"
            );
        }
    }
}

#[test]
fn a_patch_on_top_of_a_patch_comes_off_alone() {
    for original in hand_built() {
        let first = graft(&original, &online_edit(&original)).unwrap();
        let second = graft(&first, &thorough_edit(&first)).unwrap();
        assert!(strip(&second).unwrap() == first);
        let third = graft(&second, &online_edit(&second)).unwrap();
        assert!(strip(&third).unwrap() == second);
        for (file, expected) in [(&second, 3), (&third, 2)] {
            let model = Model::new(file).unwrap();
            let ours = model.metadata().unwrap().iter().filter(|entry| {
                let name = entry.unwrap().name().unwrap();
                let all = [PROVENANCE_NAME, PREPARED_NAME, PLAN_NAME];
                name.is_some_and(|name| all.iter().any(|ours| name == **ours))
            });
            assert_eq!(ours.count(), expected);
        }
    }
}

#[test]
fn a_newer_record_is_not_taken_for_damage() {
    let original = build(&Wanted::default());
    let mut patched = graft(&original, &Edit::default()).unwrap();
    let record = Model::new(&patched)
        .unwrap()
        .metadata_bytes(PROVENANCE_NAME)
        .unwrap()
        .unwrap();
    let at = record.as_ptr() as usize - patched.as_ptr() as usize;
    assert_eq!(patched[at], 1);
    patched[at] = 9;
    let newer = PatchError::ProvenanceVersion { found: 9, known: 1 };
    assert_eq!(inspect_provenance(&patched), Err(newer));
    assert_eq!(strip(&patched), Err(newer));
    assert_eq!(original_of(&patched), Err(newer));
    patched[at] = 0;
    assert_eq!(strip(&patched), Err(PatchError::ProvenanceDamaged));
    // Another's entry of the same name.
    let foreign = Wanted {
        metadata: vec![(PROVENANCE_NAME.into(), None)],
        ..Default::default()
    };
    assert_eq!(strip(&build(&foreign)), Err(PatchError::NotPlanned));
}

#[test]
fn damaged_files_give_an_error_or_a_patch_that_comes_off() {
    let originals = hand_built();
    let mut random = Random(0x1234_5678_9abc_def1);
    let (mut errors, mut patches) = (0, 0);
    for round in 0..10_000 {
        let mut damaged = originals[round % originals.len()].clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(damaged.len());
            damaged[at] ^= 1 << random.below(8);
        }
        let Ok(model) = Model::new(&damaged) else {
            continue;
        };
        let subgraphs = model.subgraphs();
        let fits = subgraphs.is_ok_and(|all| {
            all.iter()
                .all(|s| s.is_ok_and(|s| s.tensors().is_ok() && s.operators().is_ok()))
        });
        let edit = if fits {
            thorough_edit(&damaged)
        } else {
            Edit::default()
        };
        match graft(&damaged, &edit) {
            Ok(patched) => {
                assert!(strip(&patched).unwrap() == damaged);
                patches += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                errors += 1;
            }
        }
    }
    assert!(
        errors > 1_000 && patches > 1_000,
        "{errors} errors, {patches} patches"
    );
}

#[test]
fn damaged_patched_files_give_the_original_or_an_error() {
    let mut random = Random(0xfeed_beef_0bad_cafe);
    let (mut errors, mut originals) = (0, 0);
    for original in hand_built() {
        let patched = graft(&original, &thorough_edit(&original)).unwrap();
        for length in 0..patched.len() {
            assert!(strip(&patched[..length]).is_err());
        }
        for _ in 0..3_000 {
            let mut damaged = patched.clone();
            let at = random.below(damaged.len());
            damaged[at] ^= 1 << random.below(8);
            match strip(&damaged) {
                Ok(found) => {
                    assert!(found == original);
                    originals += 1;
                }
                Err(_) => errors += 1,
            }
        }
    }
    assert!(
        errors > 1_000 && originals > 100,
        "{errors} errors, {originals} originals"
    );
}

/// 8,000 subgraphs, each with 4,096 operators in a vector of its own, all in 100 KiB: the bytes of an area of equal
/// words are vectors, tables and vtables at once, at whatever word one begins.
#[test]
fn overlapping_vectors_cost_no_more_than_the_file_is_long() {
    let word = |value: usize| (value as u32).to_le_bytes();
    let subgraphs = 8_000;
    let area = 44 + 12 * subgraphs;
    let mut bytes = [word(20), *b"TFL3"].concat();
    // The root's vtable (field 2), the root, the subgraphs' vtable (field 3).
    bytes.extend([10_u16, 8, 0, 0, 4, 0].map(u16::to_le_bytes).concat());
    bytes.extend([word(12), word(16)].concat());
    bytes.extend([12_u16, 8, 0, 0, 0, 4].map(u16::to_le_bytes).concat());
    bytes.extend(word(subgraphs));
    let tables = 44 + 4 * subgraphs;
    for index in 0..subgraphs {
        bytes.extend(word(tables + 8 * index - bytes.len()));
    }
    for index in 0..subgraphs {
        bytes.extend(word(bytes.len() - 28));
        bytes.extend(word(area + 4 * index - bytes.len()));
    }
    assert_eq!(bytes.len(), area);
    bytes.extend([4, 16, 0, 0].repeat(subgraphs + 3 * 4100));
    let model = Model::new(&bytes).unwrap();
    assert_eq!(operators(&model), vec![4100; subgraphs]);
    let last = model.subgraphs().unwrap().get(subgraphs - 1).unwrap();
    assert!(
        last.operators()
            .unwrap()
            .iter()
            .all(|operator| operator.is_ok())
    );
    assert_eq!(
        graft(&bytes, &Edit::default()),
        Err(PatchError::OverlappingVectors)
    );
}

#[test]
fn a_plan_for_vww_adds_at_most_a_kibibyte() {
    let Some((_, original)) = files()
        .into_iter()
        .find(|(path, _)| path.ends_with("vww_96_int8.tflite"))
    else {
        println!("vww_96_int8.tflite is not there: its patch is not measured");
        return;
    };
    let patched = graft(&original, &online_edit(&original)).unwrap();
    let added = patched.len() - original.len();
    assert!(added <= 1024, "{added} bytes");
}
