//! Views whose rows are read from the archive only when a query uses them: the ledger's lines, the live files, the result of
//! `verify`, and the unfinished orders. Seven years of ledger lines are too many rows for every query.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::DataType;
use duckdb::vscalar::{ArrowFunctionSignature, VArrowScalar};
use parking_lot::RwLock;
use serde_json::{Value, json};

use crate::archive::{AddedFile, Archive, CommitSummary, PendingOrder, VerifyFault, VerifyReport, verify};
use crate::lake;
use crate::model::{Instant, LedgerSeq, TeamId, TeamKey};

use super::columns::View;
use super::data::ViewData;
use crate::report::error::{ARCHIVE_FAILED, OUT_OF_REACH};

/// `annals_rows(view VARCHAR) -> VARCHAR`: the rows of a view as a JSON list.
pub const ROWS_FUNCTION: &str = "annals_rows";

/// The source of the rows.
#[derive(Default)]
pub struct Lookup {
    archive: Option<Archive>,
    /// The ledger is in a place that this process cannot reach.
    is_out_of_reach: bool,
    /// The last line of each team in this snapshot.
    teams: Vec<(TeamId, LedgerSeq)>,
    /// Verify reads everything, so its result is kept for the snapshot.
    verified: OnceLock<Result<VerifyReport, String>>,
}

/// The engine's current snapshot, shared with its function.
#[derive(Clone, Default)]
pub struct CurrentLookup(Arc<RwLock<Arc<Lookup>>>);

impl CurrentLookup {
    pub fn new(lookup: Lookup) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(lookup))))
    }

    pub fn replace(&self, lookup: Lookup) {
        *self.0.write() = Arc::new(lookup);
    }

    pub fn get(&self) -> Arc<Lookup> {
        Arc::clone(&self.0.read())
    }
}

impl Lookup {
    pub fn of(data: &ViewData) -> Self {
        let teams = data.teams.iter().map(|team| (team.team_id.clone(), team.seq)).collect();
        let is_out_of_reach = (data.is_pinned || data.has_ledger_elsewhere) && data.archive.is_none();
        Self { archive: data.archive.clone(), is_out_of_reach, teams, verified: OnceLock::new() }
    }

    /// The rows of one of [`View::LOOKED_UP`].
    pub fn rows(&self, view: View) -> Result<Vec<Value>, String> {
        if self.is_out_of_reach {
            return Err(format!("the page cannot read {} {OUT_OF_REACH}", view.as_str()));
        }
        match view {
            View::Ledger => self.of_teams(|archive, team, last| {
                let lines = archive.lines(team, last).map_err(|e| e.to_string())?.lines;
                Ok(lines.iter().map(|line| line_values(team, line)).collect())
            }),
            View::ArchiveFiles => self.of_teams(|archive, team, last| {
                let files = archive.lines(team, last).map_err(|e| e.to_string())?.files;
                Ok(files.values().map(|file| file_values(team, file)).collect())
            }),
            View::Verification => Ok(self.verified()?.map_or_else(Vec::new, fault_values)),
            View::VerificationVerdict => Ok(self.verified()?.map(verdict_values).into_iter().collect()),
            View::UnfinishedErasures => self.unfinished_erasures(),
            other => Err(format!("view {} is not looked up", other.as_str())),
        }
    }

    fn of_teams(
        &self,
        rows: impl Fn(&Archive, &TeamId, LedgerSeq) -> Result<Vec<Value>, String>,
    ) -> Result<Vec<Value>, String> {
        let Some(archive) = &self.archive else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for (team, last) in &self.teams {
            found.extend(rows(archive, team, *last)?);
        }
        Ok(found)
    }

    fn unfinished_erasures(&self) -> Result<Vec<Value>, String> {
        let Some(archive) = &self.archive else { return Ok(Vec::new()) };
        let mut rows = Vec::new();
        for PendingOrder { order, teams, .. } in archive.pending_orders().map_err(|e| e.to_string())? {
            let shown = teams.iter().filter(|team| self.teams.iter().any(|(of, _)| of == *team));
            rows.extend(shown.map(|team| json!({"team_id": team.as_str(), "order_id": order})));
        }
        Ok(rows)
    }

    /// The result of `verify`; `None` without an archive.
    pub fn verified(&self) -> Result<Option<&VerifyReport>, String> {
        let Some(archive) = &self.archive else { return Ok(None) };
        let check = || {
            let mut report = verify(archive.store().as_ref(), &archive.checks).map_err(|e| e.to_string())?;
            lake::verify_tables(archive, &mut report);
            Ok(report)
        };
        self.verified.get_or_init(check).as_ref().map(Some).map_err(Clone::clone)
    }

    #[cfg(test)]
    pub fn has_verified(&self) -> bool {
        self.verified.get().is_some()
    }
}

fn line_values(team: &TeamId, line: &CommitSummary) -> Value {
    json!({
        "team_id": team.as_str(),
        "seq": line.seq.0,
        "at": line.at.micros(),
        "kind": line.kind,
        "files_added": line.files_added,
        "files_removed": line.files_removed,
        "rows_added": line.rows_added,
        "sha256": line.sha256,
        "prev": line.prev,
    })
}

fn file_values(team: &TeamId, file: &AddedFile) -> Value {
    let AddedFile { entry, added_seq } = file;
    json!({
        "team_id": team.as_str(),
        "dataset": entry.dataset.as_str(),
        "role": entry.role,
        "path": entry.path,
        "rows": entry.rows,
        "bytes": entry.bytes,
        "sha256": entry.sha256,
        "first_event_at": entry.first.map(Instant::micros),
        "last_event_at": entry.last.map(Instant::micros),
        "added_seq": added_seq.0,
    })
}

/// The team whose place in the archive a fault names: `team=` and its key.
pub fn place_of(fault: &VerifyFault) -> Option<&str> {
    fault.object.split(['/', ' ']).find(|part| part.starts_with("team="))
}

fn fault_values(report: &VerifyReport) -> Vec<Value> {
    let ids = report.teams.iter().filter_map(|team| team.team_id.as_ref());
    let teams: BTreeMap<String, &TeamId> = ids.map(|id| (format!("team={}", TeamKey::of(id)), id)).collect();
    // A team without a readable ledger is still a team of its own.
    let team_of = |place: &str| match teams.get(place) {
        Some(id) => id.to_string(),
        None => place.strip_prefix("team=").unwrap_or(place).to_owned(),
    };
    let values = report.faults.iter().map(|fault| {
        json!({
            "team_id": place_of(fault).map(team_of),
            "code": fault.code.into_str(),
            "subject": fault.object,
            "detail": fault.detail,
        })
    });
    values.collect()
}

fn verdict_values(report: &VerifyReport) -> Value {
    json!({
        "clean": report.is_clean(),
        "verdict": report.verdict_text(),
        "files": report.files.total,
        "files_good": report.files.good,
        "rows": report.rows.total,
        "rows_good": report.rows.good,
        "lines": report.commits.total,
        "lines_good": report.commits.good,
        "retired": report.retired,
        "unnamed": report.unnamed,
        "faults": report.faults.len(),
    })
}

pub struct ArchiveRows;

impl VArrowScalar for ArchiveRows {
    type State = CurrentLookup;

    fn invoke(current: &CurrentLookup, input: RecordBatch) -> Result<ArrayRef, Box<dyn Error>> {
        let names = input.column(0).as_any().downcast_ref::<StringArray>();
        let names = names.ok_or_else(|| format!("{ROWS_FUNCTION} needs the name of a view"))?;
        let lookup = current.get();
        let mut texts = Vec::with_capacity(names.len());
        for row in 0..names.len() {
            let view =
                View::LOOKED_UP.into_iter().find(|view| !names.is_null(row) && view.as_str() == names.value(row));
            let view = view.ok_or_else(|| format!("{ROWS_FUNCTION} needs the name of a view"))?;
            let rows = lookup.rows(view).map_err(|message| format!("{ARCHIVE_FAILED}{message}"))?;
            texts.push(Value::Array(rows).to_string());
        }
        Ok(Arc::new(StringArray::from(texts)))
    }

    fn signatures() -> Vec<ArrowFunctionSignature> {
        vec![ArrowFunctionSignature::exact(vec![DataType::Utf8], DataType::Utf8)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{FaultCode, TeamReport};

    #[test]
    fn a_fault_belongs_to_the_team_whose_place_it_names() {
        let ledger = "ledger/team=.41cme".to_owned();
        let teams = vec![TeamReport { team_id: Some(TeamId::from("Acme")), ledger, ..TeamReport::default() }];
        let cases = [
            ("ledger/team=.41cme seq 5", json!("Acme")),
            ("ledger/team=.41cme/2026-10-10.jsonl line 1", json!("Acme")),
            ("annals/archive-1/team=.41cme", json!("Acme")),
            ("tables/connections/team=other/month=2026-10/x.parquet", json!("other")),
            ("archive.json", Value::Null),
        ];
        let fault = |object: &str| VerifyFault {
            code: FaultCode::OrphanFile,
            object: object.to_owned(),
            detail: String::new(),
        };
        let faults = cases.iter().map(|(object, _)| fault(object)).collect();
        let rows = fault_values(&VerifyReport { teams, faults, ..VerifyReport::default() });
        for ((object, team), row) in cases.iter().zip(rows) {
            assert_eq!(row["team_id"], *team, "{object}");
        }
    }
}
