//! `coverage` and `findings`: tables that are no datasets. A publisher reads their rows from the ledgers and writes one file a
//! month. A month without changes keeps its file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::archive::{Finding, TeamState, WindowRecord};
use crate::model::Dataset;
use crate::model::path::{data_of, month_of};
use crate::model::{Digest, Instant, LedgerSeq, Stream, TeamId};
use crate::store::{Store, StoreError, get};

use super::LakeError;

/// Digits of a file's hash in its name.
const HASH_DIGITS: usize = 16;

/// The tables whose files the publisher writes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LedgerTable {
    /// A row for each window of each team and stream.
    Coverage,
    /// A row for each finding, gaps among them.
    Findings,
}

impl LedgerTable {
    pub const ALL: [LedgerTable; 2] = [LedgerTable::Coverage, LedgerTable::Findings];

    pub const fn as_str(self) -> &'static str {
        match self {
            LedgerTable::Coverage => "coverage",
            LedgerTable::Findings => "findings",
        }
    }

    /// The columns. Their order is fixed: a new column is added at the end.
    pub fn schema(self) -> SchemaRef {
        let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
        let time = |name: &str, nullable| Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, None), nullable);
        let count = |name: &str| Field::new(name, DataType::Int64, false);
        let fields = match self {
            LedgerTable::Coverage => vec![
                text("team_id", false),
                text("stream", false),
                time("window_start", false),
                time("window_end", false),
                text("state", false),
                count("reads"),
                count("requests"),
                count("events"),
                count("late"),
                time("settled_at", true),
            ],
            LedgerTable::Findings => vec![
                text("team_id", false),
                text("stream", true),
                text("kind", false),
                text("subject", false),
                time("from_time", true),
                time("to_time", true),
                text("reason", false),
                count("count"),
                time("found_at", false),
                count("ledger_seq"),
            ],
        };
        let with_id = |(id, field): (i32, Field)| {
            field.with_metadata([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())].into())
        };
        Arc::new(Schema::new((1..).zip(fields).map(with_id).collect::<Vec<_>>()))
    }
}

/// The state of a window whose month has expired, as the reports name it.
const EXPIRED: &str = "expired";

#[derive(Debug)]
struct CoverageRow {
    team_id: TeamId,
    window: WindowRecord,
    has_expired: bool,
}

/// The rows of both tables, by month.
#[derive(Debug, Default)]
pub struct LedgerRows {
    coverage: BTreeMap<String, Vec<CoverageRow>>,
    findings: BTreeMap<String, Vec<(TeamId, LedgerSeq, Finding)>>,
}

impl LedgerRows {
    /// Adds the rows of a team.
    pub fn add(&mut self, state: &TeamState) {
        for window in state.windows.values() {
            let month = month_of(window.range.start).start;
            let has_expired = state.expired.contains_key(&(Dataset::from(window.stream), month));
            let row = CoverageRow { team_id: state.team_id.clone(), window: window.clone(), has_expired };
            self.coverage.entry(month.month()).or_default().push(row);
        }
        for (seq, finding) in &state.findings {
            let rows = self.findings.entry(finding.found_at.month()).or_default();
            rows.push((state.team_id.clone(), *seq, finding.clone()));
        }
    }

    /// The files of a table by path, each with its rows.
    ///
    /// # Errors
    /// When rows cannot be encoded.
    pub fn files(&self, table: LedgerTable) -> Result<BTreeMap<String, (u64, Bytes)>, LakeError> {
        let file = |month: &String, columns: Vec<ArrayRef>| {
            let wrong = |reason: String| LakeError::damaged(&format!("{} of {month}", table.as_str()), reason);
            let batch = RecordBatch::try_new(table.schema(), columns).map_err(|e| wrong(e.to_string()))?;
            let bytes = encode(&batch).map_err(|e| wrong(e.to_string()))?;
            let path = format!("{}/{month}{}", data_of(table.as_str()), name_end(&bytes));
            Ok((path, (batch.num_rows() as u64, Bytes::from(bytes))))
        };
        match table {
            LedgerTable::Coverage => self.coverage.iter().map(|(month, rows)| file(month, coverage(rows))).collect(),
            LedgerTable::Findings => self.findings.iter().map(|(month, rows)| file(month, findings(rows))).collect(),
        }
    }
}

/// The end of the name of a file with this content.
fn name_end(content: &[u8]) -> String {
    format!("-{}.parquet", &Digest::of(content).to_string()[..HASH_DIGITS])
}

/// The files of a table whose content differs from the hash in their names.
///
/// # Errors
/// When the store fails.
pub fn altered_files(store: &dyn Store, table: LedgerTable) -> Result<BTreeSet<String>, StoreError> {
    let mut altered = BTreeSet::new();
    for entry in store.list(&data_of(table.as_str()))? {
        let is_altered = match get(store, &entry.path) {
            Ok(content) => !entry.path.ends_with(&name_end(&content)),
            Err(StoreError::Irregular { .. }) => true,
            // A vacuum can have removed the file since the listing.
            Err(StoreError::NotFound { .. }) => false,
            Err(error) => return Err(error),
        };
        if is_altered {
            altered.insert(entry.path);
        }
    }
    Ok(altered)
}

fn coverage(rows: &[CoverageRow]) -> Vec<ArrayRef> {
    let windows = || rows.iter().map(|row| &row.window);
    let state = |row: &CoverageRow| if row.has_expired { EXPIRED } else { row.window.state.into_str() };
    vec![
        texts(rows.iter().map(|row| Some(row.team_id.as_str()))),
        texts(windows().map(|window| Some(window.stream.as_str()))),
        times(windows().map(|window| Some(window.range.start))),
        times(windows().map(|window| Some(window.range.end))),
        texts(rows.iter().map(|row| Some(state(row)))),
        counts(windows().map(|window| u64::from(window.reads))),
        counts(windows().map(|window| window.requests)),
        counts(windows().map(|window| window.events)),
        counts(windows().map(|window| window.late)),
        times(windows().map(|window| window.settled_at)),
    ]
}

fn findings(rows: &[(TeamId, LedgerSeq, Finding)]) -> Vec<ArrayRef> {
    let findings = || rows.iter().map(|(_, _, finding)| finding);
    vec![
        texts(rows.iter().map(|(team, _, _)| Some(team.as_str()))),
        texts(findings().map(|finding| finding.stream.map(Stream::as_str))),
        texts(findings().map(|finding| Some(finding.kind.into_str()))),
        texts(findings().map(|finding| Some(finding.subject.as_str()))),
        times(findings().map(|finding| finding.from)),
        times(findings().map(|finding| finding.to)),
        texts(findings().map(|finding| Some(finding.reason.as_str()))),
        counts(findings().map(|finding| finding.count)),
        times(findings().map(|finding| Some(finding.found_at))),
        counts(rows.iter().map(|(_, seq, _)| seq.0)),
    ]
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

fn times(values: impl Iterator<Item = Option<Instant>>) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from_iter(values.map(|at| at.map(Instant::micros))))
}

fn counts(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values.map(|count| i64::try_from(count).unwrap_or(i64::MAX))))
}

/// The same rows give the same bytes.
fn encode(batch: &RecordBatch) -> Result<Vec<u8>, parquet::errors::ParquetError> {
    let properties = WriterProperties::builder()
        .set_created_by("annals".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .build();
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties))?;
    writer.write(batch)?;
    writer.close()?;
    Ok(file)
}
