//! Which files a change of sessions becomes: decided from the state and the draft alone.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;

use crate::model::{ConnectionId, Instant, SessionRow, Stream};

use super::super::path::{ArchivePath, day_start, month_of};
use super::super::plan::{Content, Output};
use super::super::state::TeamState;
use super::super::table::{BATCH_ROWS_MAX, MergeInput, RowsDigest, by_parts, column, digest_rows, session_batch};
use super::super::{ArchiveError, Dataset, FileEntry, FileRole, SessionsDraft, SessionsRecord};

/// Smaller files of a month go up in the next one that the month gains.
const SMALL_ROWS: u64 = 4096;
/// Larger files stay what they are when their month is sealed: a question takes longer to read one than to open it, and
/// making one of them would encode every session of a backfill twice.
const LARGE_ROWS: u64 = 8_192;

/// Some rows, counted and digested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    pub rows: u64,
    pub digest: RowsDigest,
}

impl Sum {
    fn add(&mut self, rows: u64, digest: RowsDigest) {
        self.rows += rows;
        self.digest = self.digest.plus(digest);
    }

    fn of_files<'a>(files: impl Iterator<Item = &'a FileEntry>) -> Self {
        let mut sum = Self::default();
        files.for_each(|file| sum.add(file.rows, file.rows_digest.into()));
        sum
    }
}

/// Live files that go up in one, less the rows that are dropped, with those that are new.
#[derive(Debug)]
pub struct SessionsChange {
    pub inputs: Vec<FileEntry>,
    /// Each stands in one of the inputs.
    drop_ids: HashSet<ConnectionId>,
    pub dropped: Sum,
    batches: Vec<RecordBatch>,
    pub added: Sum,
}

impl SessionsChange {
    pub fn rows(&self) -> u64 {
        let held: u64 = self.inputs.iter().map(|file| file.rows).sum();
        (held + self.added.rows).saturating_sub(self.dropped.rows)
    }

    /// The rows of the new file, where all of them are new.
    pub fn only_new(&self) -> Option<Vec<RecordBatch>> {
        self.inputs.is_empty().then(|| self.batches.clone())
    }

    /// What is merged into the new file.
    pub fn into_inputs(self) -> Vec<MergeInput> {
        let drop_ids = self.drop_ids;
        let keep = Arc::new(move |batch: &RecordBatch| without(batch, &drop_ids));
        let files = self.inputs.into_iter().map(|file| MergeInput::Some(file, keep.clone()));
        files.chain([MergeInput::Batches(self.batches)]).collect()
    }
}

/// Where sessions stand: none is the file of the open ones, else a month by its start.
type Place = Option<Instant>;

#[derive(Default)]
struct Changes<'a> {
    inputs: BTreeMap<&'a str, &'a FileEntry>,
    dropped: Vec<&'a SessionRow>,
    added: Vec<&'a SessionRow>,
    is_sealing: bool,
}

/// The files that a change becomes, what the ledger says of it, and files that go without another in their place.
/// `sealing` are the months that the same commit seals.
///
/// # Errors
/// A sentence about what does not fit the archive.
pub fn plan(
    state: &TeamState,
    draft: Option<&SessionsDraft>,
    sealing: &BTreeSet<(Stream, Instant)>,
) -> Result<(Vec<Output>, Option<SessionsRecord>), String> {
    let is_anew = draft.is_some_and(|draft| draft.is_anew);
    let live: Vec<(Place, &FileEntry)> =
        state.files_of(Dataset::Sessions).filter(|_| !is_anew).map(|file| (place_of(file), file)).collect();
    let mut places: BTreeMap<Place, Changes<'_>> = BTreeMap::new();
    for row in draft.iter().flat_map(|draft| &draft.open) {
        places.entry(None).or_default().added.push(row);
    }
    for row in draft.iter().flat_map(|draft| &draft.resting) {
        places.entry(Some(month_of(row.first_event_at).start)).or_default().added.push(row);
    }
    for (path, rows) in draft.iter().flat_map(|draft| &draft.replaced) {
        let file = state.files.get(path).filter(|file| file.dataset == Dataset::Sessions);
        let file = file.ok_or_else(|| format!("{path}: no live file of sessions"))?;
        let changes = places.entry(place_of(file)).or_default();
        changes.inputs.insert(path, file);
        changes.dropped.extend(rows);
    }
    seal(state, sealing, &live, &mut places);
    let mut record = draft.map(|draft| SessionsRecord::none(draft.mark));
    let mut outputs = Vec::new();
    for (place, mut changes) in places {
        let role = absorb(state, sealing, place, &live, &mut changes);
        let output = output(place, role, changes)?;
        if let (Content::Sessions(change), Some(record)) = (&output.content, &mut record) {
            record.count(change);
        }
        outputs.push(output);
    }
    if let Some(record) = record.as_mut().filter(|_| is_anew) {
        let gone = Sum::of_files(state.files_of(Dataset::Sessions));
        record.replaced += gone.rows;
        record.replaced_digest = gone.digest.plus(record.replaced_digest.into()).into();
    }
    Ok((outputs, record))
}

impl SessionsRecord {
    fn none(mark: super::super::SessionsMark) -> Self {
        let digest = RowsDigest::default().into();
        Self { mark, replaced: 0, replaced_digest: digest, added: 0, added_digest: digest }
    }

    fn count(&mut self, change: &SessionsChange) {
        self.replaced += change.dropped.rows;
        self.replaced_digest = change.dropped.digest.plus(self.replaced_digest.into()).into();
        self.added += change.added.rows;
        self.added_digest = change.added.digest.plus(self.added_digest.into()).into();
    }
}

fn place_of(file: &FileEntry) -> Place {
    match (file.role, ArchivePath::parse(&file.path)) {
        (FileRole::Open, _) | (_, None) => None,
        (_, Some(ArchivePath::Data(data))) => Some(month_of(data.start).start),
        (_, Some(_)) => None,
    }
}

/// A month that is sealed becomes one file beside its large ones, and what the months before it have gained goes up in
/// theirs.
fn seal<'a>(
    state: &TeamState,
    sealing: &BTreeSet<(Stream, Instant)>,
    live: &[(Place, &'a FileEntry)],
    places: &mut BTreeMap<Place, Changes<'a>>,
) {
    let sealed_now = |start: &Instant| sealing.contains(&(Stream::Connections, *start));
    if !sealing.iter().any(|(stream, _)| *stream == Stream::Connections) {
        return;
    }
    let gained = |month: &Instant| {
        let here = || live.iter().filter(|(place, _)| *place == Some(*month));
        state.is_month_sealed(Stream::Connections, *month) && here().any(|(_, file)| file.role == FileRole::Amendment)
    };
    let months: BTreeSet<Instant> = live.iter().filter_map(|(place, _)| *place).collect();
    for month in months.iter().filter(|month| sealed_now(month) || gained(month)) {
        let here = live.iter().filter(|(place, file)| *place == Some(*month) && file.rows < LARGE_ROWS);
        let small: Vec<(&str, &FileEntry)> = here.map(|(_, file)| (file.path.as_str(), *file)).collect();
        // One that is sealed already would become itself again.
        if small.len() < 2 && small.iter().all(|(_, file)| file.role != FileRole::Part) {
            continue;
        }
        let changes = places.entry(Some(*month)).or_default();
        changes.is_sealing = true;
        changes.inputs.extend(small);
    }
}

/// Takes in small files beside which the new one would stand, and says what it is to the archive.
fn absorb<'a>(
    state: &TeamState,
    sealing: &BTreeSet<(Stream, Instant)>,
    place: Place,
    live: &[(Place, &'a FileEntry)],
    changes: &mut Changes<'a>,
) -> FileRole {
    let here = || live.iter().filter(move |(held, _)| *held == place).map(|(_, file)| *file);
    let Some(month) = place else {
        changes.inputs.extend(here().map(|file| (file.path.as_str(), file)));
        return FileRole::Open;
    };
    let mut small: Vec<&FileEntry> = here().filter(|file| file.rows < SMALL_ROWS).collect();
    small.sort_by_key(|file| (file.rows, &file.path));
    let mut rows = changes.added.len() as u64 + changes.inputs.values().map(|file| file.rows).sum::<u64>();
    for file in small {
        if file.rows <= rows.saturating_mul(2) && changes.inputs.insert(&file.path, file).is_none() {
            rows += file.rows;
        }
    }
    let is_sealed = changes.is_sealing
        || state.is_month_sealed(Stream::Connections, month)
        || sealing.contains(&(Stream::Connections, month));
    let holds_month = changes.inputs.values().any(|file| file.role == FileRole::Month);
    let has_month = here().any(|file| file.role == FileRole::Month);
    match is_sealed {
        false => FileRole::Part,
        true if holds_month || !has_month => FileRole::Month,
        true => FileRole::Amendment,
    }
}

fn output(place: Place, role: FileRole, changes: Changes<'_>) -> Result<Output, String> {
    let Changes { inputs, dropped, mut added, .. } = changes;
    let times = inputs.values().filter_map(|file| file.first).chain(added.iter().map(|row| row.first_event_at));
    let start = match (role, place) {
        (FileRole::Month | FileRole::Amendment, Some(month)) => month,
        _ => day_start(times.min().unwrap_or(Instant::EARLIEST)),
    };
    added.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
    if let Some(pair) = added.windows(2).find(|pair| pair[0].connection_id == pair[1].connection_id) {
        return Err(format!("session {} stands twice", pair[0].connection_id));
    }
    let (batches, added) = batches(&added)?;
    let drop_ids = dropped.iter().map(|row| row.connection_id.clone()).collect();
    let (_, dropped) = self::batches(&dropped)?;
    let inputs = inputs.into_values().cloned().collect();
    let content = Content::Sessions(SessionsChange { inputs, drop_ids, dropped, batches, added });
    Ok(Output { role, start, content })
}

/// By time and connection: the order of rows in files.
fn key(row: &SessionRow) -> (i64, &str) {
    (row.first_event_at.micros(), row.connection_id.as_str())
}

fn batches(rows: &[&SessionRow]) -> Result<(Vec<RecordBatch>, Sum), String> {
    let batches = by_parts(rows, BATCH_ROWS_MAX, |some| {
        let batch = session_batch(some.iter().copied())?;
        let digest = digest_rows(&batch)?;
        Ok::<_, String>((batch, digest))
    })?;
    let mut sum = Sum::default();
    batches.iter().for_each(|(batch, digest)| sum.add(batch.num_rows() as u64, *digest));
    Ok((batches.into_iter().map(|(batch, _)| batch).collect(), sum))
}

fn without(batch: &RecordBatch, dropped: &HashSet<ConnectionId>) -> Result<RecordBatch, ArchiveError> {
    let bad = |detail: String| ArchiveError::Table { path: "merged sessions".to_owned(), detail };
    if dropped.is_empty() {
        return Ok(batch.clone());
    }
    let ids = batch.column_by_name(column::CONNECTION_ID).and_then(|c| c.as_string_opt::<i32>());
    let ids = ids.ok_or_else(|| bad("connection ids that are not text".to_owned()))?;
    let kept: BooleanArray = (0..ids.len()).map(|at| Some(!dropped.contains(ids.value(at)))).collect();
    filter_record_batch(batch, &kept).map_err(|e| bad(e.to_string()))
}
