//! The figures of the README are what the program computes.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;

use std::fs;

use arenaplan::plan::{Options, Stripes, plan};
use arenaplan::report::Report;
use arenaplan::target::Target;

/// The table's rows, cell by cell.
fn table(text: &str) -> Vec<Vec<String>> {
    table_below(text, "<!-- table")
}

/// The rows of the table below a comment that begins so.
fn table_below(text: &str, comment: &str) -> Vec<Vec<String>> {
    text.lines()
        .skip_while(|l| !l.starts_with(comment))
        .skip(1)
        .take_while(|l| l.starts_with('|'))
        .map(|row| {
            let cells = row.trim_matches('|').split('|');
            cells.map(|c| c.trim().to_owned()).collect()
        })
        .collect()
}

fn number(text: &str) -> u64 {
    text.replace(',', "").parse().unwrap()
}

fn report(bytes: &[u8], target: Target) -> Report {
    let options = Options {
        target,
        ..Options::default()
    };
    plan(bytes, &options).unwrap().report
}

#[test]
fn the_table_of_the_readme_is_true() {
    let readme = fs::read_to_string(common::root("README.md")).unwrap();
    let rows = table(&readme);
    let rows: Vec<_> = rows.iter().filter(|r| r[0].contains('`')).collect();
    assert!(rows.len() >= 8, "the table is gone");
    let mut samples = common::models();
    samples.extend(common::shared_models().into_iter().flatten());
    let mut seen = 0;
    for row in rows {
        let name = row[0].split('`').nth(1).unwrap();
        let Some(sample) = samples.iter().find(|s| s.name == name) else {
            continue;
        };
        let any = report(&sample.bytes, Target::Tflm);
        let reference = report(&sample.bytes, Target::TflmReference);
        assert_eq!(number(&row[1]), any.greedy_head_bytes, "{name}");
        assert_eq!(number(&row[2]), any.head_bytes, "{name}");
        assert_eq!(number(&row[3]), reference.head_bytes, "{name}");
        seen += 1;
    }
    assert!(seen >= 1);
}

/// The first rows: those of models that are cut in little time.
#[test]
fn the_table_of_stripes_is_true() {
    let readme = fs::read_to_string(common::root("README.md")).unwrap();
    let rows = table_below(&readme, "<!-- stripes");
    let rows = rows.iter().filter(|r| r[0].contains('`'));
    let Some(models) = common::shared_models() else {
        return;
    };
    for row in rows.take(3) {
        let name = row[0].trim_matches('`');
        let model = models.iter().find(|m| m.name == name).unwrap();
        let alone = Options {
            offsets: false,
            ..Options::default()
        };
        let alone = plan(&model.bytes, &alone).unwrap().report;
        assert_eq!(number(&row[1]), alone.arena_32.arena_bytes, "{name}");
        for (k, target) in [(2, Target::Tflm), (5, Target::TflmReference)] {
            let options = Options {
                target,
                stripes: Stripes::UpTo(200),
                ..Options::default()
            };
            let report = plan(&model.bytes, &options).unwrap().report;
            let stripes = report.stripes.unwrap();
            assert_eq!(number(&row[k]), stripes.arena_32_bytes_before, "{name}");
            assert_eq!(number(&row[k + 1]), report.arena_32.arena_bytes, "{name}");
            let work = format!("{:.1} %", stripes.extra_percent());
            assert_eq!(row[k + 2], work, "{name}");
        }
    }
}

/// Instructions and memory on an emulated device, as they were measured last.
#[test]
fn the_figures_of_the_runtime_are_those_measured() {
    let readme = fs::read_to_string(common::root("README.md")).unwrap();
    let measured = fs::read_to_string(common::root("tests/device/firmware/figures.csv")).unwrap();
    let (_, table) = readme.split_once("<!-- device:").unwrap();
    let rows = table.lines().skip(3).take_while(|l| l.starts_with('|'));
    let mut seen = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let name = cells[0].trim_matches('`');
        let line = measured
            .lines()
            .find(|l| l.starts_with(&format!("{name},M4,")))
            .unwrap();
        // model, core, head, tail, stack, prepare, invoke, ...
        let figures: Vec<&str> = line.split(',').collect();
        let figure = |k: usize| figures[k].parse::<u64>().unwrap();
        assert_eq!(number(cells[1]), figure(6), "{name}");
        assert_eq!(number(cells[4]), figure(2) + figure(3), "{name}");
        seen += 1;
    }
    assert_eq!(seen, 7);
}

/// The last row is that of the page with all models.
#[test]
fn the_means_of_the_readme_are_those_of_the_comparison() {
    let readme = fs::read_to_string(common::root("README.md")).unwrap();
    let page = fs::read_to_string(common::root("doc/COMPARISON.md")).unwrap();
    let cells = |line: &str| -> Vec<String> {
        let cells = line.trim_matches('|').split('|');
        cells.map(|c| c.trim().to_owned()).collect()
    };
    let titles = cells(page.lines().find(|l| l.starts_with("| model")).unwrap());
    let means = page.lines().find(|l| l.starts_with("| geometric mean of"));
    let means = cells(means.unwrap());
    let column = |title: &str| &means[titles.iter().position(|t| t == title).unwrap()];
    let rows = table(&readme);
    let expected = [
        &format!("{} public models", means[0]),
        column("TFLM"),
        column("views"),
        column("reference: overlap"),
    ];
    assert_eq!(rows.last().unwrap().iter().collect::<Vec<_>>(), expected);
}

#[test]
fn the_arenas_of_the_readme_are_true() {
    let Some(models) = common::shared_models() else {
        return;
    };
    let vww = models.iter().find(|m| m.name == "vww_96_int8").unwrap();
    let report = report(&vww.bytes, Target::TflmReference);
    assert_eq!(report.arena_64.arena_bytes, 66_832);
    assert_eq!(
        report.greedy_head_bytes + report.arena_64.tail_bytes,
        103_680
    );
    let readme = fs::read_to_string(common::root("README.md")).unwrap();
    let readme = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(readme.contains("in 66,832 bytes instead of 103,680"));
}

#[test]
fn the_number_of_models_is_true() {
    let readme = fs::read_to_string(common::root("README.md")).unwrap();
    let text = format!("plan {} small models", common::models().len());
    assert!(readme.contains(&text), "the README does not say {text:?}");
}
