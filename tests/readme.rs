//! The figures of the README are what the program computes.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may fail and talk"
)]

mod common;

use std::fs;

use arenaplan::plan::{Options, plan};

#[test]
fn the_table_of_the_readme_is_true() {
    let readme = fs::read_to_string(common::root("README.md")).unwrap();
    let rows: Vec<&str> = readme
        .lines()
        .skip_while(|l| !l.starts_with("<!-- table"))
        .filter(|l| l.starts_with("| ") && l.contains('`'))
        .take_while(|l| l.ends_with("% |"))
        .collect();
    assert!(rows.len() >= 5, "the table is gone");
    let mut samples = common::models();
    samples.extend(common::shared_models().into_iter().flatten());
    let mut seen = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let name = cells[0].split('`').nth(1).unwrap();
        let Some(sample) = samples.iter().find(|s| s.name == name) else {
            continue;
        };
        let report = plan(&sample.bytes, &Options::default()).unwrap().report;
        let number = |text: &str| text.replace(',', "").parse::<u64>().unwrap();
        assert_eq!(number(cells[1]), report.greedy_head_bytes, "{name}");
        assert_eq!(number(cells[2]), report.head_bytes, "{name}");
        assert_eq!(
            cells[3],
            format!("{:.1} %", report.saving_percent()),
            "{name}"
        );
        seen += 1;
    }
    assert!(seen >= 1);
}

#[test]
fn the_arenas_of_the_readme_are_true() {
    let Some(models) = common::shared_models() else {
        return;
    };
    let vww = models.iter().find(|m| m.name == "vww_96_int8").unwrap();
    let report = plan(&vww.bytes, &Options::default()).unwrap().report;
    assert_eq!(report.arena_64.arena_bytes, 85_248);
    assert_eq!(
        report.greedy_head_bytes + report.arena_64.tail_bytes,
        103_680
    );
    let readme = fs::read_to_string(common::root("README.md")).unwrap();
    assert!(readme.contains("in 85,248 bytes instead of 103,680"));
}

#[test]
fn the_number_of_models_is_true() {
    let readme = fs::read_to_string(common::root("README.md")).unwrap();
    let text = format!("plan {} small models", common::models().len());
    assert!(readme.contains(&text), "the README does not say {text:?}");
}
