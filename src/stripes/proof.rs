//! The proof of a rewriting: it is run beside the model that it was made of.
//!
//! Not only the outputs are compared, but every tensor that both have, as its operator leaves it. So a wrong row is seen where
//! it is computed, even if later layers round it away.

use arenaplan_schema::patch::Rewrite;

use crate::execute::{Feed, Setting, traces, without_plan};
use crate::graph::{Graph, TensorId};

/// With how many inputs both are run.
const INVOKES: usize = 3;

/// Why a rewriting may not be written.
#[derive(Debug)]
pub(crate) enum ProofError {
    /// The runtime cannot run the model, as it says.
    NotRun(String),
    /// The rewriting computes something else than the model, or cannot be run though the model can.
    Differs(String),
}

/// Runs `rewritten`, a file that `rewrite` was put into, and the model of `graph` on several inputs.
pub(crate) fn prove(
    rewritten: &[u8],
    rewrite: &Rewrite,
    graph: &Graph<'_>,
) -> Result<(), ProofError> {
    let differs = |reason: String| Err(ProofError::Differs(reason));
    let unplanned = match without_plan(graph.model.bytes()) {
        Ok(unplanned) => unplanned,
        Err(error) => return differs(error.to_string()),
    };
    let setting = Setting {
        feed: Feed::Noise(1),
        invokes: INVOKES,
        ..Setting::default()
    };
    // Tensors of the main subgraph come first, so that both number them alike.
    let count = graph.subgraphs[0].tensor_count;
    let is_kept = |t: TensorId| {
        t.0 < count
            && rewrite
                .replaced
                .iter()
                .all(|(replaced, _)| *replaced != t.0)
    };
    let expected = match traces(&unplanned, &setting, is_kept) {
        Ok(expected) => expected,
        Err(error) => return Err(ProofError::NotRun(error.to_string())),
    };
    let found = match traces(rewritten, &setting, is_kept) {
        Ok(found) => found,
        Err(error) => return differs(format!("the model with stripes {error}")),
    };
    for (found, expected) in found.iter().zip(&expected) {
        let mut tensors = expected.tensors.iter();
        if let Some((&tensor, _)) = tensors.find(|(t, bytes)| found.tensors.get(t) != Some(bytes)) {
            let label = graph.tensor(tensor).label();
            return differs(format!("with stripes, {label} is computed otherwise"));
        }
        if found.outputs != expected.outputs {
            return differs("with stripes, the outputs are others".into());
        }
    }
    Ok(())
}
