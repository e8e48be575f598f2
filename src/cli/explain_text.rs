//! What `arenaplan inspect` says of the reasons for a head.

use super::text::{Align, shown, table, thousands};
use crate::aliasing::Kind;
use crate::explain::words::{name, present};
use crate::explain::{Cause, Explanation, Limit, Shared, Subject};
use crate::graph::Graph;

/// All of it: steps, what is shared, what stands in the way, and what else could be done.
pub(super) fn words(graph: &Graph<'_>, why: &Explanation) -> String {
    let mut text = steps(why);
    if !why.shared.is_empty() {
        let plan = match why.subject {
            Subject::Stored => "the stored plan",
            Subject::New => "a new plan",
        };
        text.push_str(&format!("\noutputs over inputs, in {plan}\n"));
        text.push_str(&shared(graph, &why.shared));
    }
    text.push_str("\nwhat stands in the way of the next byte\n");
    text.push_str(&obstacle(graph, why));
    for hint in &why.hints {
        let work = match hint.extra_percent {
            Some(percent) => format!(", for {percent:.1} % more work"),
            None => String::new(),
        };
        text.push_str(&format!(
            "  {}: {} bytes instead of {}, with {}{work}\n",
            hint.flags,
            thousands(hint.head_bytes),
            thousands(hint.instead_of_bytes),
            hint.kernels
        ));
    }
    text
}

/// The head after each step of planning.
fn steps(why: &Explanation) -> String {
    let mut before = why.greedy_head_bytes;
    let mut rows = vec![vec![
        "TFLM's own planner".to_owned(),
        thousands(before),
        String::new(),
    ]];
    for &(step, head) in &why.steps {
        let saved = match before.checked_sub(head) {
            Some(0) | None => String::new(),
            Some(saved) => thousands(saved),
        };
        rows.push(vec![step.name().to_owned(), thousands(head), saved]);
        before = head;
    }
    let columns = [
        ("planned anew up to", Align::Left),
        ("head", Align::Right),
        ("saved", Align::Right),
    ];
    table(&columns, &rows)
}

/// A row per output that shares bytes with an input.
fn shared(graph: &Graph<'_>, all: &[Shared]) -> String {
    let columns = [
        ("  operator", Align::Left),
        ("input", Align::Left),
        ("output", Align::Left),
        ("how", Align::Left),
        ("bytes", Align::Right),
        ("input above output", Align::Right),
    ];
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|shared| {
            let taken = &shared.taken;
            let distance = thousands(taken.distance.unsigned_abs());
            vec![
                format!("  {}", shown(&shared.operator)),
                name(graph, taken.input),
                name(graph, taken.output),
                kind(taken.kind).to_owned(),
                thousands(taken.bytes),
                match taken.distance < 0 {
                    true => format!("-{distance}"),
                    false => distance,
                },
            ]
        })
        .collect();
    table(&columns, &rows)
}

/// How two tensors share bytes, in a word.
pub(super) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::View => "view",
        Kind::InPlace => "in place",
        Kind::Overlap => "overlap",
    }
}

fn obstacle(graph: &Graph<'_>, why: &Explanation) -> String {
    let Limit {
        bound_bytes,
        is_proved,
        order_is_proved,
        ref cause,
    } = why.limit;
    let mut text = String::new();
    if let (Some(remark), Subject::New) = (&why.remark, why.subject) {
        text.push_str(&format!("  {remark}\n"));
    }
    if why.head_bytes > bound_bytes {
        let above = why.head_bytes - bound_bytes;
        let percent = 100.0 * above as f64 / bound_bytes.max(1) as f64;
        let end = match is_proved {
            true => "which is proved to be necessary",
            false => "which may be necessary or not: --solver exact looks longer",
        };
        text.push_str(&format!(
            "  the head is {} bytes ({percent:.1} %) above what must be there at one time, {end}\n",
            thousands(above)
        ));
    }
    match cause {
        Cause::Block(tensors) => {
            let names: Vec<String> = tensors.iter().map(|&t| name(graph, t)).collect();
            text.push_str(&format!(
                "  {} bytes are one block: {}\n",
                thousands(bound_bytes),
                names.join(", ")
            ));
        }
        Cause::Moment(moment) => {
            let place = match &moment.operator {
                Some(operator) => format!("{} (clock {})", shown(operator), moment.clock),
                None => "the start".into(),
            };
            text.push_str(&format!(
                "  {} bytes must be there at {place}\n",
                thousands(bound_bytes)
            ));
            text.push_str(&present(graph, why.kernels, moment));
            if order_is_proved {
                text.push_str("  no other order of the operators has a lower peak of tensors\n");
            }
        }
    }
    text
}
