//! The parts of the guide that repeat lists of the program: columns, metrics, views, findings and faults.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use annals::archive::{FaultCode, FindingKind};
use annals::lake::{TableFault, TableId, TableSchema};
use annals::model::{RejectReason, SessionOutcome};
use annals::report::View;
use annals::web::metric_names;
use strum::VariantNames;

use super::{put, root};

/// Compares the end of a page, from its mark on, with `generated`. If the environment asks for it, passes the old end to `check`
/// and then writes the new one.
fn follows(page: &str, mark: &str, generated: &str, check: impl FnOnce(&str)) {
    let path = root().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let (before, held) = text.split_once(mark).expect("the page marks the part that the program writes");
    if std::env::var_os("ANNALS_GUIDE_WRITE").is_some() {
        check(held);
        return put(&path, &format!("{before}{mark}{generated}"));
    }
    assert_eq!(held, generated, "{page} is out of date: ANNALS_GUIDE_WRITE=1 writes this part again");
}

/// The columns of every dataset, as the program writes them.
fn columns_of_tables() -> String {
    let mut text = String::new();
    for table in TableId::all() {
        let name = table.as_str();
        text.push_str(&format!("\n### `{name}`\n\n| id | column | type | may be null |\n|---|---|---|---|\n"));
        let schema = TableSchema::of(&table.schema()).unwrap();
        for column in schema.fields {
            let nullable = if column.required { "no" } else { "yes" };
            text.push_str(&format!("| {} | `{}` | {} | {nullable} |\n", column.id, column.name, column.kind));
        }
    }
    text
}

/// The rows of each table's columns.
fn columns_by_table(page: &str) -> BTreeMap<&str, Vec<&str>> {
    let tables = page.split("\n### ").skip(1).filter_map(|part| part.split_once('\n'));
    tables.map(|(name, rows)| (name, rows.lines().filter(|line| line.starts_with("| ")).collect())).collect()
}

/// Tables that no longer have the columns of the old page, in their order.
fn broken_tables<'a>(old: &'a str, new: &str) -> Vec<&'a str> {
    let new = columns_by_table(new);
    let keeps = |table: &str, old: &[&str]| new.get(table).is_some_and(|new| new.starts_with(old));
    columns_by_table(old).into_iter().filter(|(table, old)| !keeps(table, old)).map(|(table, _)| table).collect()
}

#[test]
fn a_rewrite_of_the_page_keeps_the_columns_that_it_names() {
    let page = columns_of_tables();
    let added = page.replacen("\n### ", "| 99 | `new` | string | yes |\n\n### ", 3);
    assert_eq!(broken_tables(&page, &added), [""; 0]);
    for (from, to) in [
        ("| 1 | `team_id` |", "| 2 | `team_id` |"),
        ("`event_time`", "`at`"),
        ("| timestamp |", "| long |"),
        ("### `billing`", "### `bills`"),
    ] {
        assert!(page.contains(from), "{from}");
        assert_ne!(broken_tables(&page, &page.replace(from, to)), [""; 0], "{from}");
    }
}

#[test]
fn the_page_of_open_tables_names_every_column() {
    let columns = columns_of_tables();
    follows("docs/tables.md", "<!-- columns -->\n", &columns, |held| {
        let broken = broken_tables(held, &columns);
        assert!(broken.is_empty(), "{broken:?}: published columns are a contract. Add new columns at the end only");
    });
}

#[test]
fn the_page_of_metrics_names_every_metric() {
    let mut text = "\n| metric | type | labels | value |\n|---|---|---|---|\n".to_owned();
    for metric in metric_names::ALL {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let kind = format!("{:?}", metric.kind).to_lowercase();
        text.push_str(&format!("| `{}` | {kind} | {} | {} |\n", metric.name, labels.join(", "), metric.help));
    }
    follows("docs/metrics.md", "<!-- metrics -->\n", &text, |_| {});
}

/// The codes in the first column of the tables of a section.
fn codes(page: &str, heading: &str) -> BTreeSet<String> {
    let (_, section) = page.split_once(&format!("## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let code = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    section.lines().filter_map(code).collect()
}

#[test]
fn the_page_of_findings_explains_every_kind_and_code() {
    let page = fs::read_to_string(root().join("docs/findings.md")).unwrap();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(codes(&page, "Findings"), names(FindingKind::VARIANTS));
    assert_eq!(codes(&page, "Quarantine"), names(RejectReason::VARIANTS));
    let (faults, notices) = (codes(&page, "Faults"), codes(&page, "Notices"));
    let explained: BTreeSet<_> = faults.union(&notices).cloned().collect();
    assert_eq!(explained, &names(FaultCode::VARIANTS) | &names(TableFault::VARIANTS));
}

#[test]
fn the_page_of_views_explains_every_column() {
    let page = fs::read_to_string(root().join("docs/views.md")).unwrap();
    let sections: BTreeMap<&str, &str> =
        page.split("\n### `").skip(1).filter_map(|section| section.split_once("`\n")).collect();
    let views = View::ALL.map(View::as_str);
    assert_eq!(sections.keys().copied().collect::<BTreeSet<_>>(), views.into());
    for view in View::ALL {
        let table = sections[view.as_str()].split("\n## ").next().unwrap().split("| outcome").next().unwrap();
        let cell =
            |line: &str| line.strip_prefix("| `")?.rsplit_once(" | ").map(|(cells, _)| cells.replace("` | ", " "));
        let explained: Vec<String> = table.lines().filter_map(cell).collect();
        let columns = view.columns().into_iter().map(|column| format!("{} {}", column.name, column.sql_type));
        assert_eq!(explained, columns.collect::<Vec<_>>(), "{}", view.as_str());
    }
    let outcomes = codes(&page, "Sessions");
    assert!(SessionOutcome::ALL.iter().all(|outcome| outcomes.contains(outcome.as_str())), "{outcomes:?}");
}
