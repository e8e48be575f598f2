//! What `arenaplan plan` tells people.

use std::collections::BTreeSet;

use super::args::Bits;
use super::plan::Row;
use super::text::{Align, below, common_folder, count, only_for, percent, shown, table, thousands};
use crate::report::{LibraryHead, Outcome, Striped};

/// One model: a line per figure.
pub(super) fn single(row: &Row, bits: Bits) -> String {
    let report = &row.report;
    let arena = bits.of(report);
    let mut text = format!("{}\n", shown(&row.model));
    let mut line = |name: &str, bytes: u64, note: &str| {
        let line = format!("  {name:<22}{:>12} bytes   {note}", thousands(bytes));
        text.push_str(line.trim_end());
        text.push('\n');
    };
    line(
        "head without a plan",
        report.greedy_head_bytes,
        "by TFLM's own planner",
    );
    if report.before_head_bytes != report.greedy_head_bytes {
        line(
            "head before",
            report.before_head_bytes,
            "with the plan that was in the file",
        );
    }
    let proved = match (report.optimal, report.optimal_in_any_order) {
        (true, true) => "proved optimal",
        (true, false) => "proved optimal for this order",
        _ => "",
    };
    let note = match (report.saving_percent(), proved) {
        (saved, proved) if saved <= 0.0 => proved.to_owned(),
        (saved, "") => format!("saves {}", percent(saved)),
        (saved, proved) => format!("saves {}, {proved}", percent(saved)),
    };
    line("head", report.head_bytes, &note);
    if let Some(striped) = &report.stripes {
        line("head without stripes", striped.head_bytes_before, "");
    }
    if report.reordered {
        line(
            "needed in old order",
            report.sizes.file_order_bound_with_scratch_bytes,
            "by what is alive at one time; so operators are reordered",
        );
        let note = match report.order_proved {
            true => "no order of the operators needs less",
            false => "not proved to be the least of all orders",
        };
        line(
            "needed in new order",
            report.sizes.bound_with_scratch_bytes,
            note,
        );
    }
    let bound = report.sizes.bound_with_scratch_bytes;
    if !report.optimal && bound <= report.head_bytes {
        line("lower bound", bound, "no plan of this kind can be below");
    }
    line(
        "tail",
        arena.tail_bytes,
        &match report.tail_is_exact {
            true => "exact, on devices of any width".to_owned(),
            false => format!("estimate for a {}-bit device", bits.number()),
        },
    );
    let note = if arena.planning_bytes > report.head_bytes {
        let who = match report.tail_is_exact {
            true => "the runtime prepares the model",
            false => "TFLM plans",
        };
        format!(
            "{} above the tail are needed while {who}",
            thousands(arena.planning_bytes)
        )
    } else {
        match &report.libraries[..] {
            [first, _, ..] => format!("with {} kernels", first.library),
            _ => String::new(),
        }
    };
    line("arena to reserve", arena.arena_bytes, &note);
    if let Some(striped) = &report.stripes {
        line("arena without stripes", bits.before_stripes(striped), "");
    }
    if report.file_bytes != report.file_bytes_before {
        let added = report.file_bytes - report.file_bytes_before;
        line(
            "file",
            report.file_bytes as u64,
            &format!("larger by {}", thousands(added as u64)),
        );
    }
    if report.prepared_bytes != 0 {
        line(
            "of that prepared",
            report.prepared_bytes as u64,
            "in flash: what the device need not compute",
        );
    }
    let figures = |l: &LibraryHead| (l.head_bytes, l.greedy_head_bytes, bits.of_library(l));
    let mut shown_already = report
        .libraries
        .first()
        .map(figures)
        .into_iter()
        .collect::<Vec<_>>();
    for other in &report.libraries {
        let these = figures(other);
        if shown_already.contains(&these) {
            continue;
        }
        let same = report.libraries.iter().filter(|l| figures(l) == these);
        let names: Vec<_> = same.map(|l| l.library.name()).collect();
        text.push_str(&format!(
            "  with {}: head {} ({} without a plan), arena {}\n",
            names.join(" or "),
            thousands(other.head_bytes),
            thousands(other.greedy_head_bytes),
            thousands(bits.of_library(other))
        ));
        shown_already.push(these);
    }
    if let Some(striped) = &report.stripes {
        text.push_str(&stripes(striped));
    }
    if let Some(why) = &report.no_stripes {
        text.push_str(&format!("  no row stripes: {why}\n"));
    }
    if let Some(kernels) = &report.needs {
        text.push_str(&format!("  {}\n", only_for(kernels)));
    }
    if let Some(why) = report.explanation() {
        text.push_str(&format!("  {why}\n"));
    }
    match (&row.output, &report.outcome) {
        _ if row.over_limit => text.push_str("  over the limit, not written\n"),
        (None, _) => text.push_str("  nothing written\n"),
        (Some(path), Outcome::Planned { .. }) => {
            text.push_str(&format!("  written: {}\n", shown(path)));
        }
        (Some(path), _) if report.stripes.is_some() => {
            text.push_str(&format!("  written with stripes alone: {}\n", shown(path)));
        }
        (Some(path), _) => {
            text.push_str(&format!(
                "  written without a plan of ours: {}\n",
                shown(path)
            ));
        }
    }
    text
}

/// What was cut into row stripes, and what that costs.
fn stripes(striped: &Striped) -> String {
    let mut text = String::from("  row stripes, with the same outputs to the bit:\n");
    for region in &striped.regions {
        let [first, last] = &region.operators;
        let layers = match region.layers {
            1 => shown(first),
            n => format!("{n} layers, {} to {}", shown(first), shown(last)),
        };
        text.push_str(&format!("    {layers}, in {} stripes\n", region.stripes()));
    }
    let signed = |n: i64| match n < 0 {
        true => format!("-{}", thousands(n.unsigned_abs())),
        false => thousands(n.unsigned_abs()),
    };
    let percent = |percent: f64| format!("{percent:.1} %");
    text.push_str(&format!(
        "    {} multiplications more ({}), about {} instructions more ({}), estimated for {} on a Cortex-M4\n",
        signed(striped.extra_macs),
        percent(striped.extra_macs_percent()),
        signed(striped.extra_instructions),
        percent(striped.extra_percent()),
        striped.machine.name()
    ));
    text.push_str(&format!(
        "    {} more, which add {} bytes to the file\n",
        count(striped.added_operators, "operator"),
        thousands(striped.added_file_bytes as u64)
    ));
    if !striped.added_kinds.is_empty() {
        text.push_str(&format!(
            "    the firmware has to register {} as well\n",
            striped.added_kinds.join(" and ")
        ));
    }
    text
}

/// Several models: a row each, then the sum of it.
pub(super) fn several(rows: &[Row], asked: usize, bits: Bits) -> String {
    let mut columns = vec![
        ("model", Align::Left),
        ("before", Align::Right),
        ("head", Align::Right),
        ("saved", Align::Right),
        ("arena", Align::Right),
        ("", Align::Left),
    ];
    let has_stripes = rows.iter().any(|r| r.report.stripes.is_some());
    if has_stripes {
        columns.insert(5, ("more work", Align::Right));
    }
    let folder = common_folder(rows.iter().map(|r| r.model.as_str()));
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let report = &row.report;
            let mut cells = vec![
                below(&folder, &row.model),
                thousands(report.before_head_bytes),
                thousands(report.head_bytes),
                percent(report.saving_percent()),
                thousands(bits.of(report).arena_bytes),
                note(row),
            ];
            if has_stripes {
                let striped = report.stripes.as_ref();
                let work = striped.map(|s| percent(s.extra_percent()));
                cells.insert(5, work.unwrap_or_default());
            }
            cells
        })
        .collect();
    let mut text = String::new();
    if !folder.is_empty() {
        text.push_str(&format!("in {}:\n", shown(&folder)));
    }
    text.push_str(&table(&columns, &cells));
    text.push_str(&summary(rows, asked, bits));
    text
}

/// The last column of a row.
fn note(row: &Row) -> String {
    let report = &row.report;
    let mut note = outcome(row);
    if let Some(striped) = &report.stripes {
        let regions = count(striped.regions.len(), "region");
        note.push_str(&format!(", {regions} in stripes"));
    }
    note
}

fn outcome(row: &Row) -> String {
    let report = &row.report;
    match &report.outcome {
        _ if row.over_limit => "over the limit, not written".into(),
        Outcome::Planned { .. } => {
            let mut note = match report.optimal {
                true if report.optimal_in_any_order => "optimal".to_owned(),
                true => "optimal for this order".to_owned(),
                false => format!("bound {}", thousands(report.sizes.bound_with_scratch_bytes)),
            };
            note.push_str(match (report.reordered, report.order_proved) {
                (true, true) => ", reordered",
                (true, false) => ", reordered (not proved)",
                (false, _) => "",
            });
            note
        }
        Outcome::ForeignPlanKept => "stored plan kept".into(),
        Outcome::WorseThanUnplanned { .. } | Outcome::WorseOnLibrary(_) => {
            "no plan: better without".into()
        }
        Outcome::NothingToPlan => "nothing to plan".into(),
        Outcome::LeftToDevice => "no offsets, as asked".into(),
        Outcome::CompiledOffsets { .. } => "compiled offsets, left as it is".into(),
        Outcome::AsStored => String::new(),
    }
}

fn summary(rows: &[Row], asked: usize, bits: Bits) -> String {
    let smaller = |r: &&Row| r.report.head_bytes < r.report.before_head_bytes;
    let larger = |r: &&Row| r.report.head_bytes > r.report.before_head_bytes;
    let (smaller, larger) = (
        rows.iter().filter(smaller).count(),
        rows.iter().filter(larger).count(),
    );
    let over = rows.iter().filter(|r| r.over_limit).count();
    let mut parts = vec![
        format!("{smaller} smaller"),
        format!("{} the same", rows.len() - smaller - larger),
    ];
    for (n, what) in [
        (larger, "larger"),
        (over, "over the limit"),
        (asked - rows.len(), "failed"),
    ] {
        if n > 0 {
            parts.push(format!("{n} {what}"));
        }
    }
    let mut text = format!(
        "\n{}: {}; {}\n",
        count(rows.len(), "model"),
        parts.join(", "),
        match rows.iter().all(|r| r.report.tail_is_exact) {
            true => "arena for devices of any width, with an exact tail".to_owned(),
            false => format!(
                "arena for {}-bit devices, with an estimated tail",
                bits.number()
            ),
        }
    );
    let special = rows.iter().filter_map(|r| r.report.needs.as_ref());
    if let Some(kernels) = special.clone().next() {
        text.push_str(&format!(
            "{} {}\n",
            count(special.count(), "plan"),
            only_for(kernels)
        ));
    }
    if let Some(mean) = geometric_mean(rows) {
        text.push_str(&format!("head against before, geometric mean: {mean:.3}\n"));
    }
    text.push_str(&stripes_summary(rows, bits));
    match rows.iter().filter(|r| r.output.is_some()).count() {
        0 => text.push_str("nothing written\n"),
        n => text.push_str(&format!("{} written\n", count(n, "file"))),
    }
    text
}

/// What stripes save and cost, and what they need, over the models that have them.
fn stripes_summary(rows: &[Row], bits: Bits) -> String {
    let striped: Vec<(&Row, &Striped)> = rows
        .iter()
        .filter_map(|row| Some((row, row.report.stripes.as_ref()?)))
        .collect();
    if striped.is_empty() {
        return match rows.iter().any(|r| r.report.no_stripes.is_some()) {
            true => "no model has row stripes; planned alone, each tells why\n".into(),
            false => String::new(),
        };
    }
    let number = striped.len() as f64;
    let ratio = |&(row, striped): &(&Row, &Striped)| {
        let before = bits.before_stripes(striped).max(1) as f64;
        (bits.of(&row.report).arena_bytes as f64 / before).ln()
    };
    let mean = (striped.iter().map(ratio).sum::<f64>() / number).exp();
    let work = striped.iter().map(|(_, striped)| striped.extra_percent());
    let work = work.sum::<f64>() / number;
    let mut text = format!(
        "row stripes in {}: arena against that without stripes, geometric mean: {mean:.3}; {} more work on average\n",
        count(striped.len(), "model"),
        percent(work)
    );
    let needed: BTreeSet<_> = striped.iter().flat_map(|s| &s.1.added_kinds).collect();
    if !needed.is_empty() {
        let needed: Vec<_> = needed.iter().map(|kind| &kind[..]).collect();
        let who = striped.iter().filter(|s| !s.1.added_kinds.is_empty());
        text.push_str(&format!(
            "the firmware of {} has to register {} as well\n",
            count(who.count(), "model"),
            needed.join(" and ")
        ));
    }
    text
}

/// Of head by head before, over the models that have one.
fn geometric_mean(rows: &[Row]) -> Option<f64> {
    let logs: Vec<f64> = rows
        .iter()
        .filter(|r| r.report.before_head_bytes > 0)
        .map(|r| (r.report.head_bytes as f64 / r.report.before_head_bytes as f64).ln())
        .collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}
