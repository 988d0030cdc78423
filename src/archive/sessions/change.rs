//! Plans the files of a change of sessions, from the state and the draft alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::path::{day_start, month_of, year_of};
use crate::model::{Dataset, FileRole, Instant, Range, SessionRow, Stream};

use super::super::salts::Salts;
use super::super::table::{BATCH_ROWS_MAX, session_batch, summed, summed_batches};
use super::super::{Draft, FileEntry, SessionsRecord};
use super::partition::{JoinedYears, LARGE_ROWS, SMALL_ROWS, SessionPartition, is_joined};
use crate::archive::commit::planned_file::{MergedRows, PlannedFile};
use crate::archive::ledger::rows_sum::RowsSum;
use crate::archive::ledger::state::TeamState;

#[derive(Default)]
struct Changes<'a> {
    inputs: BTreeMap<&'a str, &'a FileEntry>,
    dropped: Vec<&'a SessionRow>,
    added: Vec<&'a SessionRow>,
    is_sealing: bool,
}

impl<'a> Changes<'a> {
    fn take(&mut self, files: impl IntoIterator<Item = &'a FileEntry>) {
        self.inputs.extend(files.into_iter().map(|file| (file.path.as_str(), file)));
    }
}

/// The new session files of a draft, and its ledger record of the sessions. `sealing` are the months that the commit seals.
pub fn plan(
    state: &TeamState,
    draft: &Draft,
    sealing: &BTreeSet<(Stream, Instant)>,
    salts: &Salts,
) -> Result<(Vec<PlannedFile>, Option<SessionsRecord>), String> {
    let Draft { sessions: draft, join_years: joining, expired_sessions: gone, .. } = draft;
    if let Some(odd) = joining.iter().find(|year| year_of(year.start) != **year) {
        return Err(format!("{odd} is not a calendar year"));
    }
    let is_anew = draft.as_ref().is_some_and(|draft| draft.is_anew);
    let held = || state.files_of(Dataset::Sessions).filter(|file| !is_anew && !gone.contains(&file.path));
    let years = JoinedYears::of(held(), joining);
    let live: Vec<(SessionPartition, &FileEntry)> = held().map(|file| (years.of_file(file), file)).collect();
    let mut partitions: BTreeMap<SessionPartition, Changes<'_>> = BTreeMap::new();
    for row in draft.iter().flat_map(|draft| &draft.open) {
        partitions.entry(SessionPartition::Open).or_default().added.push(row);
    }
    // Most sessions begin in the same month as the session before.
    let mut last: Option<(Range, SessionPartition)> = None;
    for row in draft.iter().flat_map(|draft| &draft.finished) {
        let at = row.first_event_at;
        let (_, partition) = *match &mut last {
            Some(last) if last.0.owns(at) => last,
            last => last.insert((month_of(at), years.of_time(at))),
        };
        partitions.entry(partition).or_default().added.push(row);
    }
    // A large file stays apart from others. If replaced rows joined large files, a month of a busy team would become one file,
    // and each chunk of its backfill would write that file again.
    let mut reduced: Vec<(SessionPartition, Changes<'_>)> = Vec::new();
    for (path, rows) in draft.iter().flat_map(|draft| &draft.replaced) {
        let file = state.files.get(path).filter(|file| file.dataset == Dataset::Sessions);
        let file = file.ok_or_else(|| format!("{path}: not a live file of sessions"))?;
        let partition = years.of_file(file);
        let is_joining = joining.iter().any(|year| partition == SessionPartition::Year(year.start));
        if file.role == FileRole::Part && file.rows >= LARGE_ROWS && !is_joining {
            let inputs = BTreeMap::from([(path.as_str(), file)]);
            reduced.push((partition, Changes { inputs, dropped: rows.iter().collect(), ..Changes::default() }));
            continue;
        }
        let changes = partitions.entry(partition).or_default();
        changes.inputs.insert(path, file);
        changes.dropped.extend(rows);
    }
    seal(state, sealing, &live, &mut partitions);
    join(state, joining, &live, &mut partitions);
    let gone = |file: &&FileEntry| is_anew || gone.contains(&file.path);
    let mut replaced = RowsSum::of_files(state.files_of(Dataset::Sessions).filter(gone));
    let mut added = RowsSum::default();
    let mut planned = Vec::new();
    let rest = partitions.into_iter().map(|(partition, mut changes)| {
        let role = absorb(state, sealing, partition, &live, &mut changes);
        (partition, role, changes)
    });
    for (partition, role, changes) in
        rest.chain(reduced.into_iter().map(|(partition, changes)| (partition, FileRole::Part, changes)))
    {
        let start = start_of(partition, role, &changes);
        let Changes { inputs, dropped, added: mut new, .. } = changes;
        let rows = merged_rows(&dropped, &mut new, salts)?;
        (replaced, added) = (replaced.plus(rows.dropped), added.plus(rows.added));
        let (dataset, inputs) = (Dataset::Sessions, inputs.into_values().cloned().collect());
        planned.push(PlannedFile { dataset, role, start, inputs, rows });
    }
    Ok((planned, draft.as_ref().map(|draft| SessionsRecord::new(draft.mark, replaced, added))))
}

fn is_sealed(state: &TeamState, partition: SessionPartition) -> bool {
    match partition {
        SessionPartition::Open => false,
        SessionPartition::Month(start) => state.is_month_sealed(Stream::Connections, start),
        SessionPartition::Year(_) => true,
    }
}

fn is_sealed_now(sealing: &BTreeSet<(Stream, Instant)>, partition: SessionPartition) -> bool {
    matches!(partition, SessionPartition::Month(start) if sealing.contains(&(Stream::Connections, start)))
}

/// Joins the small files of each month that this commit seals, next to its large files. Also joins the amendments of earlier
/// sealed months into their files.
fn seal<'a>(
    state: &TeamState,
    sealing: &BTreeSet<(Stream, Instant)>,
    live: &[(SessionPartition, &'a FileEntry)],
    partitions: &mut BTreeMap<SessionPartition, Changes<'a>>,
) {
    if !sealing.iter().any(|(stream, _)| *stream == Stream::Connections) {
        return;
    }
    let gained = |at: &SessionPartition| {
        let here = || live.iter().filter(|(partition, _)| partition == at);
        is_sealed(state, *at) && here().any(|(_, file)| file.role == FileRole::Amendment)
    };
    let held: BTreeSet<SessionPartition> = live.iter().map(|(partition, _)| *partition).collect();
    for at in held.iter().filter(|at| is_sealed_now(sealing, **at) || gained(at)) {
        let here = live.iter().filter(|(partition, file)| partition == at && file.rows < LARGE_ROWS);
        let small: Vec<&FileEntry> = here.map(|(_, file)| *file).collect();
        // Rewriting a single sealed file would change nothing.
        if small.len() < 2 && small.iter().all(|file| file.role != FileRole::Part) {
            continue;
        }
        let changes = partitions.entry(*at).or_default();
        changes.is_sealing = true;
        changes.take(small);
    }
}

/// Joins the session files of a year.
fn join<'a>(
    state: &TeamState,
    joining: &[Range],
    live: &[(SessionPartition, &'a FileEntry)],
    partitions: &mut BTreeMap<SessionPartition, Changes<'a>>,
) {
    for year in joining.iter().map(|year| SessionPartition::Year(year.start)) {
        let here = live.iter().filter(|(partition, file)| *partition == year && is_joined(state, file));
        let files: Vec<&FileEntry> = here.map(|(_, file)| *file).collect();
        if files.len() > 1 {
            partitions.entry(year).or_default().take(files);
        }
    }
}

/// Adds small files of the same partition to the inputs, and returns the role of the new file.
fn absorb<'a>(
    state: &TeamState,
    sealing: &BTreeSet<(Stream, Instant)>,
    partition: SessionPartition,
    live: &[(SessionPartition, &'a FileEntry)],
    changes: &mut Changes<'a>,
) -> FileRole {
    let here = || live.iter().filter(move |(held, _)| *held == partition).map(|(_, file)| *file);
    if partition == SessionPartition::Open {
        changes.take(here());
        return FileRole::Open;
    }
    let mut small: Vec<&FileEntry> = here().filter(|file| file.rows < SMALL_ROWS).collect();
    small.sort_by_key(|file| (file.rows, &file.path));
    let mut rows = changes.added.len() as u64 + changes.inputs.values().map(|file| file.rows).sum::<u64>();
    for file in small {
        if file.rows <= rows.saturating_mul(2) && changes.inputs.insert(&file.path, file).is_none() {
            rows += file.rows;
        }
    }
    let is_sealed = changes.is_sealing || is_sealed(state, partition) || is_sealed_now(sealing, partition);
    let holds_month = changes.inputs.values().any(|file| file.role == FileRole::Month);
    let has_month = here().any(|file| file.role == FileRole::Month);
    match is_sealed {
        false => FileRole::Part,
        true if holds_month || !has_month => FileRole::Month,
        true => FileRole::Amendment,
    }
}

/// The start of the new file's period.
fn start_of(partition: SessionPartition, role: FileRole, changes: &Changes<'_>) -> Instant {
    match (role, partition) {
        (FileRole::Month | FileRole::Amendment, SessionPartition::Month(start) | SessionPartition::Year(start)) => {
            start
        }
        _ => {
            let of_added = changes.added.iter().map(|row| row.first_event_at);
            let times = changes.inputs.values().filter_map(|file| file.first).chain(of_added);
            day_start(times.min().unwrap_or(Instant::EARLIEST))
        }
    }
}

/// The new rows of a session file. Sorts the added sessions by time and connection.
fn merged_rows(dropped: &[&SessionRow], added: &mut [&SessionRow], salts: &Salts) -> Result<MergedRows, String> {
    fn key<'a>(row: &&'a SessionRow) -> (i64, &'a str) {
        (row.first_event_at.micros(), row.connection_id.as_str())
    }
    added.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
    if let Some(pair) = added.windows(2).find(|pair| pair[0].connection_id == pair[1].connection_id) {
        return Err(format!("session {} occurs twice", pair[0].connection_id));
    }
    let drop_ids = dropped.iter().map(|row| row.connection_id.clone()).collect();
    let columns = |some: &[&SessionRow]| summed(session_batch(some.iter().copied())?, salts);
    let (_, dropped) = summed_batches(dropped, BATCH_ROWS_MAX, columns)?;
    let (batches, added) = summed_batches(added, BATCH_ROWS_MAX, columns)?;
    Ok(MergedRows { batches, added, drop_ids, dropped })
}
