//! The SQL text of the views, the same for our engine and for other clients.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::archive::{ExpiredRecord, Finding, Hold, InventoryRead, ReviewRecord};
use crate::model::path::month_of;
use crate::model::{Dataset, Instant, InventoryPart, Stream, TeamId};

use super::columns::{Column, View};
use super::data::{CoverageRow, ErasureRow, LiveFile, Recorded, RetainedRow, ViewData, plain_pattern};
use super::lookup::{Lookup, ROWS_FUNCTION};
use crate::report::ReportError;
use crate::report::error::ARCHIVE_FAILED;
use crate::report::sql::one_spelling::SPELLING_FUNCTION;
use crate::report::sql::zone::ZONE_FUNCTION;

/// Minimum number of files in one branch of a view. A query reads the footers of a branch's files unless the branch's time range
/// excludes all rows; but each branch costs planning. `docs/decisions/0007-months.md` has the measurement.
const BRANCH_FILES_MIN: usize = 12;

/// Macros for queries, the same for our engine and for other clients. `json_strings` lists the strings of a JSON text, keys too,
/// without escapes. A string can hold JSON text, and a string in that text again: it lists their strings as well.
pub const MACROS: &str = r#"CREATE OR REPLACE MACRO json_spelled_strings(json_text) AS [
  CASE WHEN contains(x, '\') THEN coalesce(TRY(json_extract_string('"' || x || '"', '$')), x) ELSE x END
  FOR x IN regexp_extract_all(json_text, '"((?:[^"\\]|\\.)*)"', 1)];
CREATE OR REPLACE MACRO json_strings(json_text) AS CASE WHEN contains(json_text, '\') THEN
  list_transform([json_spelled_strings(json_text)], lambda a:
    list_transform([flatten([json_spelled_strings(x) FOR x IN a IF contains(x, '"')])], lambda b:
      list_concat(a, b, flatten([json_spelled_strings(x) FOR x IN b IF contains(x, '"')])))[1])[1]
  ELSE regexp_extract_all(json_text, '"((?:[^"\\]|\\.)*)"', 1) END;
"#;

/// The statements that create all views of `data`, except those that are looked up.
pub fn views_sql(data: &ViewData) -> String {
    views_sql_of(data, &View::ALL.into_iter().filter(|view| !View::LOOKED_UP.contains(view)).collect::<Vec<_>>())
}

/// The statements that create `views`. A looked-up view reads its rows when a query uses it, which only our engine can
/// do.
pub fn views_sql_of(data: &ViewData, views: &[View]) -> String {
    let mut sql = String::new();
    for view in views {
        push_view(&mut sql, *view, &body(data, *view));
    }
    sql
}

fn body(data: &ViewData, view: View) -> String {
    let files = |dataset: Dataset| data.files.get(&dataset).map_or(&[][..], Vec::as_slice);
    match view {
        View::Activity => over_files(view, files(Dataset::Activity)),
        View::Connections => over_files(view, files(Dataset::Connections)),
        View::Billing => over_files(view, files(Dataset::Billing)),
        View::Sessions => over_files(view, files(Dataset::Sessions)),
        View::Quarantine => over_files(view, files(Dataset::Quarantine)),
        View::Coverage => over_rows(view, data.coverage.iter().map(coverage_values)),
        View::Findings => over_rows(view, data.findings.iter().map(finding_values)),
        View::Inventory(part) => {
            let dataset = Dataset::Inventory(part);
            let mut cuts = BTreeMap::new();
            for row in data.expired.iter().filter(|row| row.record.dataset == dataset) {
                let end = month_of(row.record.month).end;
                let cut = cuts.entry(&row.team_id).or_insert(end);
                *cut = end.max(*cut);
            }
            versions(part, files(dataset), &cuts)
        }
        View::InventoryAddresses => addresses(&body(data, View::Inventory(InventoryPart::Users))),
        View::InventoryReads => over_rows(view, data.inventory_reads.iter().map(inventory_read_values)),
        View::Reviews => over_rows(view, data.reviews.iter().map(review_values)),
        View::Holds => over_rows(view, data.holds.iter().map(hold_values)),
        View::Expired => over_rows(view, data.expired.iter().map(expired_values)),
        View::Retention => over_rows(view, data.retention.iter().map(|row| retained_values(row, data.kept_by(row)))),
        View::Erasures => over_rows(view, data.erasures.iter().map(erasure_values)),
        View::Ledger
        | View::ArchiveFiles
        | View::Verification
        | View::VerificationVerdict
        | View::UnfinishedErasures => {
            // The engine would evaluate a constant when it creates the view.
            let asked = format!("FROM (VALUES ('{}')) AS asked(view)", view.as_str());
            from_json(view, &format!("{ROWS_FUNCTION}(asked.view)"), &asked)
        }
    }
}

/// The same views for any DuckDB client, with the time zone function under its name in our engine. Without the result of `verify`
/// and the form of a text for comparison, which only Annals can compute.
///
/// # Errors
/// [`ReportError::Engine`] when a ledger cannot be read.
pub fn client_sql(data: &ViewData) -> Result<String, ReportError> {
    let mut views = views_sql(data);
    let lookup = Lookup::of(data);
    for view in [View::Ledger, View::ArchiveFiles, View::UnfinishedErasures] {
        let rows = lookup.rows(view).map_err(|message| ReportError::Engine(format!("{ARCHIVE_FAILED}{message}")))?;
        push_view(&mut views, view, &over_rows(view, rows.into_iter()));
    }
    Ok(format!(
        "-- The views of an Annals archive at the time of this text. Run `annals connect` again to see later commits.\n\
         -- Only Annals has {SPELLING_FUNCTION}(text) and the views of `annals verify`.\n\
         -- {ZONE_FUNCTION}(utc_time, zone) is the only statement here that needs the icu extension.\n\
         CREATE OR REPLACE MACRO {ZONE_FUNCTION}(utc_time, zone) AS timezone(zone, timezone('UTC', utc_time));\n{MACROS}{views}"
    ))
}

fn push_view(sql: &mut String, view: View, body: &str) {
    sql.push_str(&format!("CREATE OR REPLACE VIEW {} AS\n{body};\n", view.as_str()));
}

/// The view's columns by name and type, without other columns of the source.
fn typed(columns: &[Column]) -> String {
    let each = columns.iter().map(|column| format!("{0}::{1} AS {0}", quoted_name(column.name), column.sql_type));
    each.collect::<Vec<_>>().join(", ")
}

fn empty(view: View) -> String {
    let nulls =
        view.columns().iter().map(|c| format!("NULL::{} AS {}", c.sql_type, quoted_name(c.name))).collect::<Vec<_>>();
    format!("SELECT {} WHERE false", nulls.join(", "))
}

pub fn over_files(view: View, files: &[LiveFile]) -> String {
    let (mut timed, timeless): (Vec<&LiveFile>, Vec<&LiveFile>) = files.iter().partition(|file| file.span.is_some());
    timed.sort_by(|a, b| (a.span, &a.path).cmp(&(b.span, &b.path)));
    let columns = typed(&view.columns());
    // A quarantined event can have no time, so no range holds all rows. For sessions, checking a range on every row costs more than it
    // saves: see `docs/decisions/0007-months.md`.
    let time = match view {
        View::Quarantine | View::Sessions => None,
        _ => Some("event_time"),
    };
    let branch_files = match time {
        Some(_) => BRANCH_FILES_MIN.max(timed.len().isqrt()),
        None => files.len().max(1),
    };
    let mut branches: Vec<String> = Vec::new();
    for files in timed.chunks(branch_files) {
        branches.push(branch(&columns, files, time.and_then(|time| Some((time, common_span(files)?)))));
    }
    for files in timeless.chunks(branch_files) {
        branches.push(branch(&columns, files, None));
    }
    if branches.is_empty() { empty(view) } else { branches.join("\nUNION ALL\n") }
}

/// Converts changes to dated versions: each is valid until the next version of its key. A thing that is gone has no valid version.
/// `cuts` gives the end of each team's last expired month. The first row of a key since then begins a version, even if it only
/// repeats the state. A version from before, which a hold kept, ends at the first read since then.
fn versions(part: InventoryPart, files: &[LiveFile], cuts: &BTreeMap<&TeamId, Instant>) -> String {
    let view = View::Inventory(part);
    if files.is_empty() {
        return empty(view);
    }
    let key = std::iter::once("team_id").chain(part.keys().iter().copied()).map(quoted_name);
    let key = key.collect::<Vec<_>>().join(", ");
    let columns = typed(&view.columns());
    let paths = files.iter().map(|file| quoted_path(&file.path)).collect::<Vec<_>>().join(",\n  ");
    let changes = format!("read_parquet([\n  {paths}], hive_partitioning = false)");
    let next = format!("lead(seen_at) OVER (PARTITION BY {key} ORDER BY seen_at)");
    let cuts = cuts.iter().map(|(team, cut)| format!("({}, {})", quoted_text(team.as_str()), timestamp(*cut)));
    let cuts = cuts.collect::<Vec<_>>().join(", ");
    let (valid_to, changes) = match cuts.as_str() {
        "" => (next, format!("{changes} WHERE NOT repeats")),
        cuts => (
            format!("least({next}, CASE WHEN seen_at < cut_at THEN resumed_at END)"),
            format!(
                "(SELECT *, row_number() OVER (PARTITION BY {key}, seen_at >= cut_at ORDER BY seen_at) AS nth, \
                 min(seen_at) FILTER (WHERE seen_at >= cut_at) OVER (PARTITION BY team_id) AS resumed_at \
                 FROM {changes} LEFT JOIN (VALUES {cuts}) AS cut(team_id, cut_at) USING (team_id)) \
                 WHERE NOT repeats OR nth = 1"
            ),
        ),
    };
    format!(
        "SELECT {columns} FROM (SELECT *, seen_at AS valid_from, {valid_to} AS valid_to FROM {changes}) WHERE present"
    )
}

/// Who had which email address, from the view of people. The first holder also has it before, and each holder keeps it until the
/// roster gives it to somebody.
fn addresses(users: &str) -> String {
    format!(
        "WITH holder AS (SELECT team_id, lower(trim(email)) AS email, user_id, valid_from, valid_to FROM ({users}) \
         WHERE trim(email) <> '')
SELECT h.team_id, h.email, h.user_id, h.valid_from,
  CASE WHEN h.valid_from > min(h.valid_from) OVER (PARTITION BY h.team_id, h.email) THEN h.valid_from END AS held_from,
  (SELECT min(greatest(n.valid_from, h.valid_to)) FROM holder n WHERE h.valid_to IS NOT NULL AND n.team_id = h.team_id
    AND n.email = h.email AND (n.valid_to IS NULL OR n.valid_to > h.valid_to)) AS held_to
FROM holder h"
    )
}

/// The range is true for every row. It helps the planner: a query about another time skips the branch.
fn branch(columns: &str, files: &[&LiveFile], span: Option<(&str, (Instant, Instant))>) -> String {
    let paths = files.iter().map(|file| quoted_path(&file.path)).collect::<Vec<_>>().join(",\n  ");
    let range = span.map_or_else(String::new, |(time, (first, last))| {
        format!(" WHERE {time} BETWEEN {} AND {}", timestamp(first), timestamp(last))
    });
    format!("SELECT {columns} FROM read_parquet([\n  {paths}], hive_partitioning = false){range}")
}

fn common_span(files: &[&LiveFile]) -> Option<(Instant, Instant)> {
    let first = files.iter().filter_map(|file| file.span).map(|(first, _)| first).min()?;
    let last = files.iter().filter_map(|file| file.span).map(|(_, last)| last).max()?;
    Some((first, last))
}

/// Rows as one JSON text: the engine's parser would take tens of times longer for as many literals.
fn over_rows(view: View, rows: impl Iterator<Item = Value>) -> String {
    let rows: Vec<Value> = rows.collect();
    if rows.is_empty() {
        return empty(view);
    }
    from_json(view, &quoted_text(&Value::Array(rows).to_string()), "")
}

/// The rows of a JSON list, from the SQL expression `json` over `source`.
fn from_json(view: View, json: &str, source: &str) -> String {
    // Times are microseconds since the epoch.
    let (mut shape, mut columns) = (Vec::new(), Vec::new());
    for column in view.columns() {
        let (wire_type, value) = match column.sql_type {
            "TIMESTAMP" => ("BIGINT", format!("make_timestamp(r.{})", quoted_name(column.name))),
            other => (other, format!("r.{}", quoted_name(column.name))),
        };
        shape.push(format!("\"{}\":\"{wire_type}\"", column.name));
        columns.push(format!("{value} AS {}", quoted_name(column.name)));
    }
    format!(
        "SELECT {} FROM (SELECT unnest(from_json({json},\n  '[{{{}}}]')) AS r {source})",
        columns.join(", "),
        shape.join(",")
    )
}

fn coverage_values(row: &CoverageRow) -> Value {
    let window = &row.window;
    json!({
        "team_id": row.team_id.as_str(),
        "stream": window.stream.as_str(),
        "window_start": window.range.start.micros(),
        "window_end": window.range.end.micros(),
        "state": if row.has_expired { "expired" } else { window.state.into_str() },
        "reads": window.reads,
        "requests": window.requests,
        "events": window.events,
        "new": window.events.saturating_sub(window.late),
        "late": window.late,
        "gaps": row.gaps,
        "settled_at": window.settled_at.map(Instant::micros),
    })
}

fn finding_values(row: &Recorded<Finding>) -> Value {
    let finding = &row.record;
    json!({
        "team_id": row.team_id.as_str(),
        "stream": finding.stream.map(Stream::as_str),
        "kind": finding.kind.into_str(),
        "subject": finding.subject,
        "from_time": finding.from.map(Instant::micros),
        "to_time": finding.to.map(Instant::micros),
        "reason": finding.reason,
        "count": finding.count,
        "found_at": finding.found_at.micros(),
        "ledger_seq": row.ledger_seq.0,
    })
}

fn inventory_read_values((team_id, read): &(TeamId, InventoryRead)) -> Value {
    json!({
        "team_id": team_id.as_str(),
        "part": read.part.as_str(),
        "read_at": read.read_at.micros(),
        "visible": read.visible,
        "entities": read.entities,
    })
}

fn review_values(row: &Recorded<ReviewRecord>) -> Value {
    let review = &row.record;
    json!({
        "team_id": row.team_id.as_str(),
        "reviewed_at": review.reviewed_at.micros(),
        "reviewer": review.reviewer,
        "pack_sha256": review.pack_sha256,
        "period_from": review.period_from.micros(),
        "period_to": review.period_to.micros(),
        "reports": json!(review.reports).to_string(),
        "findings": review.findings,
        "outcome": review.outcome.into_str(),
        "ticket": review.ticket,
        "ledger_seq": row.ledger_seq.0,
    })
}

fn erasure_values(row: &ErasureRow) -> Value {
    let part = &row.part;
    json!({
        "team_id": row.team_id.as_str(),
        "order_id": row.order_id,
        "erased_at": row.erased_at.micros(),
        "dataset": part.dataset.as_str(),
        "files": part.files,
        "rows": part.rows,
        "first_event_at": part.first.map(Instant::micros),
        "last_event_at": part.last.map(Instant::micros),
        "ledger_seq": row.ledger_seq.0,
        "salts_replaced": row.salts_replaced,
    })
}

fn hold_values((team_id, hold): &(TeamId, Hold)) -> Value {
    let (added, released) = (&hold.added, hold.released.as_ref());
    json!({
        "team_id": team_id.as_str(),
        "hold_id": added.id,
        "scope": added.scope.into_str(),
        "held_from": added.from.map(Instant::micros),
        "held_to": added.to.map(Instant::micros),
        "by_subject": added.subject.is_some(),
        "reason": added.reason,
        "requested_by": added.by,
        "added_at": added.at.micros(),
        "released_at": released.map(|release| release.at.micros()),
        "release_reason": released.map(|release| &release.reason),
        "ledger_seq": hold.seq.0,
    })
}

fn expired_values(row: &Recorded<ExpiredRecord>) -> Value {
    let record = &row.record;
    json!({
        "team_id": row.team_id.as_str(),
        "dataset": record.dataset.as_str(),
        "month_start": record.month.micros(),
        "policy": record.policy,
        "files": record.files,
        "rows": record.rows,
        "rows_digest": record.rows_digest.to_string(),
        "expired_at": record.at.micros(),
        "ledger_seq": row.ledger_seq.0,
    })
}

fn retained_values(row: &RetainedRow, kept_by: Option<String>) -> Value {
    json!({
        "team_id": row.team_id.as_str(),
        "dataset": row.dataset.as_str(),
        "month_start": row.month.micros(),
        "policy": row.policy,
        "files": row.files,
        "rows": row.rows,
        "bytes": row.bytes,
        // The engine's latest time means never.
        "due_at": Some(row.due_at.micros()).filter(|_| row.due_at < Instant::LATEST),
        "kept_by": kept_by,
    })
}

fn timestamp(at: Instant) -> String {
    // The files hold microseconds, rounded down.
    let micros = Instant::from_micros(at.micros()).to_string();
    format!("TIMESTAMP '{}'", micros.trim_end_matches('Z').replace('T', " "))
}

fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

pub fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A path for the file itself, not as a pattern.
pub fn quoted_path(path: &str) -> String {
    quoted_text(&plain_pattern(path))
}
