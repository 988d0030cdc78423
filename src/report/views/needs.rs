//! The views and files that a query needs. Each named file costs a read of its footer, so the others are left out.

use crate::model::Dataset;
use crate::model::path::month_of;
use crate::model::{InventoryPart, Range};

use super::columns::View;
use super::data::{LiveFile, ViewData};
use crate::report::catalog::Report;
use crate::report::sql::lexer::{self, Kind};

/// Words of statements and functions that use views without their names.
const CATALOG_WORDS: [&str; 10] =
    ["show", "describe", "query", "query_table", "execute", "call", "pragma", "export", "import", "information_schema"];
const CATALOG_PREFIXES: [&str; 5] = ["duckdb_", "pg_", "sqlite_", "pragma_", "json_execute"];

/// The views that a query reads, and the time of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    views: Vec<View>,
    period: Option<Range>,
    /// A report also states coverage and findings, even if its query does not read these views.
    is_report: bool,
}

impl Needs {
    /// These views with all their rows.
    pub fn views(views: &[View]) -> Self {
        Self { views: views.to_vec(), period: None, is_report: false }
    }

    /// Limits events and sessions to the months of `period`. People and computers remain complete.
    #[must_use]
    pub fn within(self, period: Range) -> Self {
        let last = month_of(period.end);
        let end = if last.start < period.end { last.end } else { last.start };
        Self { period: Some(Range { start: month_of(period.start).start, end }), ..self }
    }

    /// The views that `texts` of SQL can use: those that they name, or all views if they can use views without their names.
    pub fn of_sql<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<String> = texts.into_iter().flat_map(names_in).collect();
        let asks_for_names = names.iter().any(|name| {
            CATALOG_WORDS.contains(&name.as_str()) || CATALOG_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        });
        let is_used = |view: &View| asks_for_names || names.iter().any(|name| name == view.as_str());
        Self { views: View::ALL.into_iter().filter(is_used).collect(), period: None, is_report: false }
    }

    /// The needs of a report's query and of its statement.
    pub fn of_report(report: &Report) -> Self {
        Self::of_reports([report])
    }

    /// The needs of several reports.
    pub fn of_reports<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Self {
        let statements = reports.into_iter().flat_map(|report| [&report.rows].into_iter().chain(&report.chart_rows));
        Self { is_report: true, ..Self::of_sql(statements.map(|statement| statement.sql.as_str())) }
    }

    pub(in crate::report) fn needed_views(&self) -> &[View] {
        &self.views
    }

    /// Whether the rows can depend on holds.
    pub fn reads_holds(&self) -> bool {
        self.holds(View::Holds) || self.holds(View::Retention)
    }

    fn holds(&self, view: View) -> bool {
        self.views.contains(&view)
    }

    fn needs_file(&self, dataset: Dataset, file: &LiveFile) -> bool {
        match (dataset, self.period, file.span) {
            (Dataset::Inventory(_) | Dataset::Quarantine, _, _) | (_, None, _) | (_, _, None) => true,
            (_, Some(period), Some((first, last))) => first < period.end && period.start <= last,
        }
    }
}

impl ViewData {
    /// Without the data that `needs` does not name: those views are empty.
    #[must_use]
    pub fn narrowed(&self, needs: &Needs) -> Self {
        let files = self.files.iter().filter(|(dataset, _)| reads_files(&needs.views, **dataset));
        let files = files.map(|(dataset, files)| {
            let needed = files.iter().filter(|file| needs.needs_file(*dataset, file));
            (*dataset, needed.cloned().collect())
        });
        let kept =
            |view: View| needs.holds(view) || (needs.is_report && matches!(view, View::Coverage | View::Findings));
        // The statement says when the roster was last read.
        let states_roster = needs.is_report && needs.views.iter().any(|view| view.as_str().starts_with("inventory_"));
        Self {
            archive: self.archive.clone(),
            root: self.root.clone(),
            remote: self.remote.clone(),
            is_pinned: self.is_pinned,
            has_ledger_elsewhere: self.has_ledger_elsewhere,
            teams: self.teams.clone(),
            files: files.collect(),
            coverage: if kept(View::Coverage) { self.coverage.clone() } else { Vec::new() },
            findings: if kept(View::Findings) { self.findings.clone() } else { Vec::new() },
            inventory_reads: if kept(View::InventoryReads) || states_roster {
                self.inventory_reads.clone()
            } else {
                Vec::new()
            },
            names: self.names.clone(),
            holds: if needs.reads_holds() { self.holds.clone() } else { Vec::new() },
            // Views of coverage and of people exclude expired months by it.
            expired: self.expired.clone(),
            retention: if kept(View::Retention) { self.retention.clone() } else { Vec::new() },
            reviews: if kept(View::Reviews) { self.reviews.clone() } else { Vec::new() },
            erasures: if kept(View::Erasures) { self.erasures.clone() } else { Vec::new() },
        }
    }
}

/// The names and keywords in a text of SQL, in lower case.
fn names_in(sql: &str) -> impl Iterator<Item = String> {
    let tokens = lexer::tokens(sql).into_iter().filter(|token| matches!(token.kind, Kind::Word | Kind::Name));
    tokens.map(|token| sql[token.range].trim_matches('"').to_ascii_lowercase())
}

/// Whether one of the views reads the files of this dataset.
pub fn reads_files(views: &[View], dataset: Dataset) -> bool {
    views.iter().any(|view| match view {
        View::InventoryAddresses => dataset == Dataset::Inventory(InventoryPart::Users),
        view => view.as_str() == dataset.as_str(),
    })
}

/// The computers' names at all times.
pub const COMPUTERS: View = View::Inventory(InventoryPart::Computers);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Instant;

    fn at(text: &str) -> Instant {
        text.parse().unwrap()
    }

    fn data() -> ViewData {
        let file = |from: &str, to: &str| LiveFile { path: from.to_owned(), span: Some((at(from), at(to))) };
        let files = vec![
            file("2026-01-02T00:00:00Z", "2026-01-30T00:00:00Z"),
            file("2026-02-02T00:00:00Z", "2026-02-27T00:00:00Z"),
            file("2026-03-01T00:00:00Z", "2026-03-30T00:00:00Z"),
            LiveFile { path: "no times".to_owned(), span: None },
        ];
        let of = |dataset| (dataset, files.clone());
        let datasets = [Dataset::Sessions, Dataset::Connections, Dataset::Inventory(InventoryPart::Computers)];
        ViewData { files: datasets.map(of).into(), ..ViewData::default() }
    }

    #[test]
    fn files_of_other_views_and_months_are_omitted() {
        let needs = Needs::views(&[View::Sessions, COMPUTERS]);
        let period = Range { start: at("2026-02-10T00:00:00Z"), end: at("2026-03-01T00:00:00Z") };
        let narrowed = data().narrowed(&needs.clone().within(period));
        assert_eq!(narrowed.files[&Dataset::Sessions].len(), 2, "February's, and the one without times");
        assert_eq!(narrowed.files[&Dataset::Inventory(InventoryPart::Computers)].len(), 4, "whole");
        assert!(!narrowed.files.contains_key(&Dataset::Connections));
        let longer = Range { end: at("2026-03-01T00:00:01Z"), ..period };
        assert_eq!(data().narrowed(&needs.clone().within(longer)).files[&Dataset::Sessions].len(), 3);
        assert_eq!(data().narrowed(&needs).files[&Dataset::Sessions].len(), 4);
    }

    #[test]
    fn a_view_made_from_another_one_reads_its_files() {
        let users = Dataset::Inventory(InventoryPart::Users);
        let (views, empty) = (Needs::of_sql(["FROM inventory_addresses"]).views, Needs::of_sql(["FROM ledger"]).views);
        assert!(reads_files(&views, users) && !reads_files(&views, Dataset::Sessions) && !reads_files(&empty, users));
    }

    #[test]
    fn a_possibly_named_view_is_needed() {
        let needs = |sql: &str| Needs::of_sql([sql]);
        assert_eq!(needs("SELECT * FROM Sessions -- billing"), Needs::views(&[View::Sessions]));
        let quoted = "SELECT count(*) FROM \"Coverage\" c JOIN findings f ON true";
        assert_eq!(needs(quoted), Needs::views(&[View::Coverage, View::Findings]));
        assert_eq!(needs("SELECT 'connections', /* activity */ 1"), Needs::views(&[]));
        for sql in [
            "FROM query_table('sess' || 'ions')",
            "FROM query('from ' || 'billing')",
            "SHOW TABLES",
            "DESCRIBE",
            "PRAGMA show_tables",
            "SELECT * FROM duckdb_views()",
        ] {
            assert_eq!(needs(sql), Needs::views(&View::ALL), "{sql}");
        }
    }
}
