//! Plans the files of a draft from the state alone, before anything is written.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::RecordBatch;

use crate::model::path::{DataPath, SealUnit, day_start, is_sealed, month_of};
use crate::model::{Dataset, FileRole, Instant, InventoryPart, InventoryRow, RejectRow, Stream, TeamId};

use super::draft_rows::{NewWindows, WindowBatches};
use super::planned_file::{MergedRows, PlannedFile};
use super::seals::{Sealing, sealed_place};
use crate::archive::ledger::rows_sum::RowsSum;
use crate::archive::ledger::state::TeamState;
use crate::archive::salts::Salts;
use crate::archive::sessions;
use crate::archive::table::{BATCH_ROWS_MAX, inventory_batch, reject_batch, summed, summed_batches};
use crate::archive::{Draft, FileEntry, Release, SessionsRecord};

/// Quarantined events are few, but can be large.
const REJECTS_PER_BATCH: usize = 64;

/// The key of a new sealed file. Files are written in the order of these keys.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct SealedFile {
    stream: Stream,
    begins: Instant,
    unit: SealUnit,
    role: FileRole,
}

/// The inputs and the new rows of each sealed file.
type SealedFiles = BTreeMap<SealedFile, (Vec<FileEntry>, MergedRows)>;

/// The live files that become sealed files in this commit.
fn inputs_of(state: &TeamState, sealing: &Sealing) -> SealedFiles {
    let mut files = SealedFiles::new();
    let streams: BTreeSet<Stream> = sealing.iter().map(|(stream, ..)| *stream).collect();
    for (stream, (data, file)) in streams.iter().flat_map(|s| live(state, *s).map(move |found| (*s, found))) {
        if let Some((begins, unit, role)) = sealed_place(state, sealing, stream, data.start) {
            files.entry(SealedFile { stream, begins, unit, role }).or_default().0.push(file.clone());
        }
    }
    files
}

/// The files of a draft, in a fixed order, and the ledger's record of the sessions. No file is written without rows: the
/// commit only removes the inputs. `windows` are the rows of the draft.
pub fn plan(
    state: &TeamState,
    draft: &mut Draft,
    windows: NewWindows,
    salts: &Salts,
) -> Result<(Vec<PlannedFile>, Option<SessionsRecord>), String> {
    let days = draft.body.sealed_days.iter().map(|(stream, day)| (*stream, day.start, SealUnit::Day));
    let months: BTreeSet<(Stream, Instant)> = draft.body.sealed_months.iter().map(|(s, m)| (*s, m.start)).collect();
    let sealing: Sealing = days.chain(months.iter().map(|(s, start)| (*s, *start, SealUnit::Month))).collect();
    let mut sealed = inputs_of(state, &sealing);
    let mut planned = Vec::new();
    for ((stream, start), new) in windows {
        if let Some((begins, unit, role)) = sealed_place(state, &sealing, stream, start) {
            let (_, rows) = sealed.entry(SealedFile { stream, begins, unit, role }).or_default();
            rows.push(new.batches, new.sum);
            continue;
        }
        planned.extend(window_file(state, stream, new));
    }
    for (SealedFile { stream, begins, role, .. }, (inputs, rows)) in sealed {
        if !inputs.is_empty() || !rows.batches.is_empty() {
            planned.push(PlannedFile { dataset: stream.into(), role, start: begins, inputs, rows });
        }
    }
    for (stream, paths) in std::mem::take(&mut draft.join_windows) {
        planned.push(joined_file(state, stream, &paths)?);
    }
    planned.extend(reject_files(&state.team_id, std::mem::take(&mut draft.rejects), salts)?);
    for release in std::mem::take(&mut draft.releases) {
        planned.push(release_file(state, release, salts)?);
    }
    let (changed, record) = sessions::plan(state, draft, &months, salts)?;
    planned.extend(changed);
    for (part, rows) in std::mem::take(&mut draft.inventory) {
        planned.extend(inventory_files(state, part, rows, salts)?);
    }
    Ok((planned, record))
}

/// The removed files that no new file merges: the files of expired months, the files that a release divides, and all session files if
/// the commit makes all sessions again.
pub fn dropped_paths(state: &TeamState, draft: &Draft) -> Vec<String> {
    let expired = draft.body.expired.iter().filter(|record| record.dataset != Dataset::Sessions);
    let expired = expired.flat_map(|record| state.files_of_month(record.dataset, record.month));
    let is_anew = draft.sessions.as_ref().is_some_and(|sessions| sessions.is_anew);
    let files = expired.chain(state.files_of(Dataset::Sessions).filter(|_| is_anew)).map(|file| &file.path);
    let divided = draft.releases.iter().map(|release| &release.path);
    files.chain(&draft.expired_sessions).chain(divided).cloned().collect()
}

fn window_file(state: &TeamState, stream: Stream, new: WindowBatches) -> Option<PlannedFile> {
    let WindowBatches { window, compact, batches, sum } = new;
    let start = window.start;
    let inputs: Vec<FileEntry> = match compact {
        true => live(state, stream).filter(|(data, _)| data.start == start).map(|(_, file)| file.clone()).collect(),
        false => Vec::new(),
    };
    let is_settled_already = matches!(inputs.as_slice(), [] | [FileEntry { role: FileRole::Window, .. }]);
    if batches.is_empty() && is_settled_already {
        return None;
    }
    let role = if compact { FileRole::Window } else { FileRole::Part };
    let rows = MergedRows::new((batches, sum));
    Some(PlannedFile { dataset: stream.into(), role, start, inputs, rows })
}

/// Joins several files of settled windows into one. The new file takes the place of the first window, so all windows must be of
/// one month: the sealed file of that month will replace it.
fn joined_file(state: &TeamState, stream: Stream, paths: &[String]) -> Result<PlannedFile, String> {
    let of_windows = |path: &String| {
        let mut files = live(state, stream).filter(|(data, _)| data.role == FileRole::Window);
        files.find(|(_, file)| file.path == *path).ok_or_else(|| format!("{path}: not a live file of settled windows"))
    };
    let mut files = paths.iter().map(of_windows).collect::<Result<Vec<_>, _>>()?;
    files.sort_by_key(|(data, file)| (data.start, file.first));
    let first = files.first().map(|(data, _)| data.start).ok_or("the list of files to join is empty")?;
    if let Some((_, file)) = files.iter().find(|(data, _)| month_of(data.start) != month_of(first)) {
        return Err(format!("{}: not in the month of {}", file.path, first.day()));
    }
    let inputs = files.into_iter().map(|(_, file)| file.clone()).collect();
    let (dataset, role, rows) = (stream.into(), FileRole::Window, MergedRows::default());
    Ok(PlannedFile { dataset, role, start: first, inputs, rows })
}

/// Live files of a dataset that are not sealed, with their parsed paths.
fn live(state: &TeamState, dataset: impl Into<Dataset>) -> impl Iterator<Item = (DataPath, &FileEntry)> {
    let unsealed = state.files_of(dataset.into()).filter(|file| !is_sealed(file.role));
    unsealed.filter_map(|file| Some((DataPath::parse(&file.path)?, file)))
}

fn reject_files(team: &TeamId, rejects: Vec<RejectRow>, salts: &Salts) -> Result<Vec<PlannedFile>, String> {
    let mut days: BTreeMap<Instant, Vec<RejectRow>> = BTreeMap::new();
    for row in rejects {
        if row.team_id != *team {
            return Err(format!("event {} belongs to team {}", row.event_id, row.team_id));
        }
        days.entry(day_start(row.first_seen_at)).or_default().push(row);
    }
    days.into_iter().map(|(start, rows)| rejects_file(start, rows, salts)).collect()
}

fn rejects_file(start: Instant, mut rows: Vec<RejectRow>, salts: &Salts) -> Result<PlannedFile, String> {
    rows.sort_by(|a, b| {
        (a.time, a.stream, a.event_id.as_str(), &a.raw).cmp(&(b.time, b.stream, b.event_id.as_str(), &b.raw))
    });
    let (dataset, role, inputs) = (Dataset::Quarantine, FileRole::Part, Vec::new());
    Ok(PlannedFile { dataset, role, start, inputs, rows: MergedRows::new(reject_batches(&rows, salts)?) })
}

fn reject_batches(rows: &[RejectRow], salts: &Salts) -> Result<(Vec<RecordBatch>, RowsSum), String> {
    summed_batches(rows, REJECTS_PER_BATCH, |some| summed(reject_batch(some)?, salts))
}

/// The file of the kept rows, which replaces the file of the release.
fn release_file(state: &TeamState, release: Release, salts: &Salts) -> Result<PlannedFile, String> {
    let Release { path, released, kept } = release;
    let mut files = live(state, Dataset::Quarantine);
    let (place, file) =
        files.find(|(_, file)| file.path == path).ok_or_else(|| format!("{path}: not a live file of quarantine"))?;
    if released.is_empty() || file.rows != (released.len() + kept.len()) as u64 {
        let (leave, stay) = (released.len(), kept.len());
        return Err(format!(
            "{path}: {leave} released and {stay} kept rows are not the {} rows of the file",
            file.rows
        ));
    }
    rejects_file(place.start, kept, salts)
}

pub fn released(releases: &[Release], salts: &Salts) -> Result<Option<RowsSum>, String> {
    let mut sum = RowsSum::default();
    for release in releases {
        sum = sum.plus(reject_batches(&release.released, salts)?.1);
    }
    Ok(Some(sum).filter(|sum| sum.rows > 0))
}

/// One file for each day, which replaces the earlier file of that day; and one final file for each past month.
fn inventory_files(
    state: &TeamState,
    part: InventoryPart,
    mut rows: Vec<InventoryRow>,
    salts: &Salts,
) -> Result<Vec<PlannedFile>, String> {
    let dataset = Dataset::Inventory(part);
    let instant = |row: &InventoryRow| Instant::from_micros(row.seen_at);
    let held_to = state.files_of(dataset).filter_map(|file| file.last).max();
    if let Some(row) = rows.iter().find(|row| held_to.is_some_and(|held| instant(row) <= held)) {
        return Err(format!("a row of {dataset} seen at {} is not later than the archived rows", instant(row)));
    }
    rows.sort_by(|a, b| (a.seen_at, &a.key).cmp(&(b.seen_at, &b.key)));
    if let Some(pair) = rows.windows(2).find(|pair| (pair[0].seen_at, &pair[0].key) == (pair[1].seen_at, &pair[1].key))
    {
        return Err(format!("a row of {dataset} seen at {} is in the draft twice", instant(&pair[0])));
    }
    let Some(newest) = rows.last().map(instant) else { return Ok(Vec::new()) };
    let columns = |some: &[InventoryRow]| summed(inventory_batch(&state.team_id, part, some)?, salts);
    let file = |role, start, inputs, rows: &[InventoryRow]| {
        let rows = MergedRows::new(summed_batches(rows, BATCH_ROWS_MAX, columns)?);
        Ok::<_, String>(PlannedFile { dataset, role, start, inputs, rows })
    };
    let mut planned = Vec::new();
    let past: BTreeSet<Instant> = live(state, dataset).map(|(data, _)| month_of(data.start).start).collect();
    for start in past.into_iter().filter(|start| *start < month_of(newest).start) {
        let inputs = live(state, dataset).filter(|(data, _)| month_of(data.start).start == start);
        planned.push(file(FileRole::Month, start, inputs.map(|(_, file)| file.clone()).collect(), &[])?);
    }
    let mut days: BTreeMap<Instant, Vec<InventoryRow>> = BTreeMap::new();
    for row in rows {
        days.entry(day_start(instant(&row))).or_default().push(row);
    }
    for (start, rows) in days {
        let inputs = live(state, dataset).filter(|(data, _)| data.start == start);
        planned.push(file(FileRole::Part, start, inputs.map(|(_, file)| file.clone()).collect(), &rows)?);
    }
    Ok(planned)
}
