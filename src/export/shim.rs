//! A header for TFLM's `NonPersistentMemoryPlannerShim`: the model without offsets in it, and its plan as a `BufferPlan`,
//! scratch memory included, so that no planner is linked and nothing is planned on the device.
//!
//! TFLM asks its planner for a buffer for each tensor of all subgraphs that is no constant, no variable and not empty, in
//! file order, then for each scratch request, in the order in which the operators prepare (`CreatePlan` in
//! `micro_allocator.cc`, `InitializeAllocationInfo` in `micro_allocation_info.cc`). [`simulate`] lists them in this order.
//! The shim refuses buffers with an offset, so the model must have no plan in it, but the same order of operators.

use std::borrow::Cow;

use arenaplan_schema::patch::{self, Edit, OperatorOrder, Stamp};

use super::numbers::push_list;
use super::{Export, OnLibrary, c, tensors};
use crate::aliasing::Level;
use crate::check;
use crate::error::Error;
use crate::graph::{Graph, Storage};
use crate::lifetimes::NEVER;
use crate::model::Model;
use crate::stored::StoredPlan;
use crate::tflm::{Simulation, simulate};

/// The buffers as TFLM asks for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Offsets in bytes: tensors, then scratch.
    pub offsets: Vec<i32>,
    /// How many of them are tensors.
    pub tensors: usize,
    /// Bytes of the head.
    pub head_bytes: u64,
}

/// The header.
///
/// # Errors
/// [`Error::Export`] when the target's libraries ask for different scratch memory, or TFLM cannot run the model with a
/// planner of this kind, and what [`model`] says.
pub fn header(export: &Export<'_>) -> Result<String, Error> {
    let buffers = buffers(export)?;
    if buffers.head_bytes > export.figures().map_or(0, |f| f.head_bytes) {
        return Err(Error::Export {
            reason: format!(
                "without the offsets that the plan gives variables the head is {} bytes, more than with them; plan the model \
                 anew with --target",
                buffers.head_bytes
            ),
        });
    }
    let model = model(export)?;
    let capitals = export.name.capitals();
    let mut text = c::opening(
        export,
        "_SHIM",
        "   The array holds the model without its plan, with the operators in the plan's order; the plan is a BufferPlan below,\n   \
         for TFLM's NonPersistentMemoryPlannerShim. With other scratch memory requested than the plan has room for,\n   \
         AllocateTensors() fails, or, if there is less of it, the device computes wrong numbers.",
    );
    c::push_arena(&mut text, export);
    tensors::push(&mut text, export);
    c::push_model(&mut text, export, &model);
    c::push_operators(&mut text, export);
    let name = &export.name;
    text.push_str(&format!(
        "\n#define {capitals}_BUFFERS {}\n\
         #define {capitals}_TENSOR_BUFFERS {}\n\n\
         #if defined(__cplusplus) && defined(__has_include)\n\
         #if __has_include(\"tensorflow/lite/micro/memory_planner/non_persistent_buffer_planner_shim.h\")\n\
         #include \"tensorflow/lite/micro/memory_planner/memory_plan_struct.h\"\n\
         #include \"tensorflow/lite/micro/memory_planner/non_persistent_buffer_planner_shim.h\"\n\n\
         namespace arenaplan {{\nnamespace {name} {{\n\n\
         static_assert(sizeof(tflite::BufferPlan) == 2 * sizeof(int32_t), \"BufferPlan is not what arenaplan knows\");\n\n\
         /* The number of buffers, then their offsets in bytes, in the order in which TFLM asks for them: {} tensors, {} scratch. */\n\
         static const int32_t kBufferPlan[1 + {capitals}_BUFFERS] = {{\n{capitals}_BUFFERS,\n",
        buffers.offsets.len(),
        buffers.tensors,
        buffers.tensors,
        buffers.offsets.len() - buffers.tensors,
    ));
    push_list(&mut text, buffers.offsets.iter().map(|&o| o.into()));
    text.push_str(&format!(
        "}};\n\n\
         inline const tflite::BufferPlan* Plan() {{\n  \
         return reinterpret_cast<const tflite::BufferPlan*>(kBufferPlan);\n}}\n\n\
         /* The planner, for one AllocateTensors(): MicroAllocator::Create(arena, size, &planner), and that allocator for the\n   \
         interpreter. TFLM's shim by itself says that the head takes 0 bytes: TFLM then reserves nothing for it, does not notice\n   \
         an arena that is too small, and leaves the head out of arena_used_bytes(). This one says {capitals}_HEAD_BYTES. */\n\
         class MemoryPlanner : public tflite::NonPersistentMemoryPlannerShim {{\n public:\n  \
         MemoryPlanner() : tflite::NonPersistentMemoryPlannerShim(Plan()) {{}}\n  \
         size_t GetMaximumMemorySize() override {{ return {capitals}_HEAD_BYTES; }}\n\n \
         private:\n  TF_LITE_REMOVE_VIRTUAL_DELETE\n}};\n\n\
         }}  // namespace {name}\n}}  // namespace arenaplan\n\n#endif\n#endif\n\n#endif\n"
    ));
    Ok(text)
}

/// The model for the shim: the original with the operators in the plan's order, or rewritten as for the plan, and without any
/// offsets.
///
/// # Errors
/// [`Error::Patch`] when the file does not let its plan be taken out.
pub fn model(export: &Export<'_>) -> Result<Vec<u8>, Error> {
    let patch_error = |e: patch::PatchError| Error::Patch {
        reason: e.to_string(),
    };
    let planned = export.graph.model.bytes();
    // Operators of ours are in the planned file alone, so that one goes without its offsets.
    let (original, operator_order) = match export.graph.is_rewritten() {
        true => (Cow::Borrowed(planned), Vec::new()),
        false => (
            patch::original_of(planned).map_err(patch_error)?,
            orders(&export.graph),
        ),
    };
    let has_plan = StoredPlan::read(&Graph::read(Model::parse(&original)?)?) != StoredPlan::Absent;
    if operator_order.is_empty() && !has_plan {
        return Ok(original.into_owned());
    }
    let edit = Edit {
        plan: None,
        operator_order,
        rewrite: Vec::new(),
        prepared: None,
        stamp: Stamp {
            tool_version: env!("CARGO_PKG_VERSION").into(),
            target: export.target().to_string(),
            options: "export=c-shim".into(),
        },
    };
    let file = patch::graft(&original, &edit).map_err(patch_error)?;
    let same_operators = {
        let graph = Graph::read(Model::parse(&file)?)?;
        let key = |g: &Graph<'_>| -> Vec<_> {
            g.operators()
                .map(|op| (op.code, op.inputs.clone(), op.outputs.clone()))
                .collect()
        };
        key(&graph) == key(&export.graph)
    };
    match same_operators {
        true => Ok(file),
        false => Err(Error::Internal {
            reason: "the operators of the model for the shim are not in the plan's order".into(),
        }),
    }
}

/// The orders of the operators of a file that is not rewritten, where they are not the original's.
fn orders(graph: &Graph<'_>) -> Vec<OperatorOrder> {
    let subgraphs = graph.subgraphs.iter().enumerate();
    let moved = subgraphs.filter(|(_, s)| s.operators.iter().any(|op| op.id.index != op.original));
    moved
        .map(|(subgraph, s)| OperatorOrder {
            subgraph,
            order: s.operators.iter().map(|op| op.original).collect(),
        })
        .collect()
}

/// The buffers of the model for the shim.
///
/// # Errors
/// [`Error::Export`]: see [`header`].
pub fn buffers(export: &Export<'_>) -> Result<Buffers, Error> {
    let refuse = |reason: String| Err(Error::Export { reason });
    let Some((first, others)) = export.libraries.split_first() else {
        return refuse("the target names no kernels".into());
    };
    if let Some(other) = (others.iter()).find(|l| l.scratch.requests() != first.scratch.requests())
    {
        let (a, b) = (first.scratch.library(), other.scratch.library());
        return refuse(format!(
            "a BufferPlan holds the scratch memory of one kernel library, and {a} and {b} kernels ask for different ones; \
             say --target with the kernels on the device"
        ));
    }
    if let Some(stray) = (first.scratch.requests().iter())
        .find(|r| export.lifetimes.operator(r.operator).first == NEVER)
    {
        return refuse(format!(
            "{} asks for scratch memory, but nothing runs its subgraph; TFLM does not handle that",
            export.graph.operator(stray.operator).label()
        ));
    }
    let simulation = place(export, first)?;
    let tensors = simulation.tensors.iter().map(|p| p.offset);
    let scratch = simulation.scratch.iter().map(|p| p.offset);
    let offsets: Result<Vec<_>, _> = tensors.chain(scratch).map(i32::try_from).collect();
    let offsets = offsets.map_err(|_| Error::TooLarge {
        what: "the head".into(),
    })?;
    Ok(Buffers {
        tensors: simulation.tensors.len(),
        offsets,
        head_bytes: simulation.head,
    })
}

/// Where everything lies: as TFLM would place it with the plan, but for variables, which a model without offsets keeps in
/// the tail. Checked once more, as it is not what was in the file.
fn place(export: &Export<'_>, on: &OnLibrary) -> Result<Simulation, Error> {
    let variables_online = |offsets: &Vec<i32>| -> Vec<i32> {
        let pairs = export.graph.tensors.iter().zip(offsets);
        pairs
            .map(|(t, &o)| {
                if t.storage == Storage::Variable {
                    -1
                } else {
                    o
                }
            })
            .collect()
    };
    let offsets = export.offsets.as_ref().map(variables_online);
    let simulation = simulate(
        &export.graph,
        &export.lifetimes,
        &on.scratch,
        offsets.as_deref(),
    )?;
    let mut layout = simulation.layout(1, &[]);
    layout.libraries = export.target().libraries();
    layout.views_only = Level::of(export.target()) <= Level::Views;
    match check::check(&export.graph, &layout).first() {
        None => Ok(simulation),
        Some(fault) => Err(Error::Export {
            reason: format!("the plan is wrong: {}", fault.describe(&export.graph)),
        }),
    }
}
