//! Plans the files of a change of sessions, from the state and the draft alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::model::path::{day_start, month_of, year_of};
use crate::model::{Dataset, FileRole, Instant, Range, SessionRow, Stream};

use super::super::output::{Content, Output};
use super::super::salts::Salts;
use super::super::state::TeamState;
use super::super::table::RowsDigest;
use super::super::{FileEntry, SessionsDraft, SessionsRecord};
use super::columns::{Sum, batches, in_order};
use super::new_file::SessionsChange;
use super::place::{LARGE_ROWS, Place, Places, SMALL_ROWS, is_joined};

#[derive(Default)]
struct Changes<'a> {
    inputs: BTreeMap<&'a str, &'a FileEntry>,
    dropped: Vec<&'a SessionRow>,
    added: Vec<&'a SessionRow>,
    is_sealing: bool,
}

/// Changes of session files other than replaced rows.
#[derive(Clone, Copy)]
pub struct FileChanges<'a> {
    /// Years whose files are joined into one.
    pub joining: &'a [Range],
    /// Months that the same commit seals.
    pub sealing: &'a BTreeSet<(Stream, Instant)>,
    /// Files that expire with months.
    pub gone: &'a [String],
}

/// The new files of a change, its ledger record, and files that are removed without a replacement.
pub fn plan(
    state: &TeamState,
    draft: Option<&SessionsDraft>,
    FileChanges { joining, sealing, gone }: FileChanges<'_>,
    salts: &Salts,
) -> Result<(Vec<Output>, Option<SessionsRecord>), String> {
    if let Some(odd) = joining.iter().find(|year| year_of(year.start) != **year) {
        return Err(format!("{odd} is not a calendar year"));
    }
    let is_anew = draft.is_some_and(|draft| draft.is_anew);
    let held = || state.files_of(Dataset::Sessions).filter(|file| !is_anew && !gone.contains(&file.path));
    let placed = Places::of(held(), joining);
    let live: Vec<(Place, &FileEntry)> = held().map(|file| (placed.of_file(file), file)).collect();
    let mut places: BTreeMap<Place, Changes<'_>> = BTreeMap::new();
    for row in draft.iter().flat_map(|draft| &draft.open) {
        places.entry(Place::Open).or_default().added.push(row);
    }
    // Most sessions begin in the same month as the session before.
    let mut last: Option<(Range, Place)> = None;
    for row in draft.iter().flat_map(|draft| &draft.resting) {
        let at = row.first_event_at;
        let (_, place) = *match &mut last {
            Some(last) if last.0.owns(at) => last,
            last => last.insert((month_of(at), placed.of_time(at))),
        };
        places.entry(place).or_default().added.push(row);
    }
    for (path, rows) in draft.iter().flat_map(|draft| &draft.replaced) {
        let file = state.files.get(path).filter(|file| file.dataset == Dataset::Sessions);
        let file = file.ok_or_else(|| format!("{path}: not a live file of sessions"))?;
        let changes = places.entry(placed.of_file(file)).or_default();
        changes.inputs.insert(path, file);
        changes.dropped.extend(rows);
    }
    seal(state, sealing, &live, &mut places);
    join(state, joining, &live, &mut places);
    let mut record = draft.map(|draft| SessionsRecord::none(draft.mark));
    let mut outputs = Vec::new();
    for (place, mut changes) in places {
        let role = absorb(state, sealing, place, &live, &mut changes);
        let output = output(place, role, changes, salts)?;
        if let (Content::Sessions(change), Some(record)) = (&output.content, &mut record) {
            record.count(change);
        }
        outputs.push(output);
    }
    let is_gone = |file: &&FileEntry| is_anew || gone.contains(&file.path);
    if let Some(record) = &mut record {
        let gone = Sum::of_files(state.files_of(Dataset::Sessions).filter(is_gone));
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

/// Whether the place is sealed already.
fn is_sealed(state: &TeamState, place: Place) -> bool {
    match place {
        Place::Open => false,
        Place::Month(start) => state.is_month_sealed(Stream::Connections, start),
        Place::Year(_) => true,
    }
}

/// Whether this commit seals the place's month.
fn is_sealed_now(sealing: &BTreeSet<(Stream, Instant)>, place: Place) -> bool {
    matches!(place, Place::Month(start) if sealing.contains(&(Stream::Connections, start)))
}

/// Joins the small files of each month that this commit seals, next to its large files. Also joins the amendments of earlier
/// sealed months into their files.
fn seal<'a>(
    state: &TeamState,
    sealing: &BTreeSet<(Stream, Instant)>,
    live: &[(Place, &'a FileEntry)],
    places: &mut BTreeMap<Place, Changes<'a>>,
) {
    if !sealing.iter().any(|(stream, _)| *stream == Stream::Connections) {
        return;
    }
    let gained = |at: &Place| {
        let here = || live.iter().filter(|(place, _)| place == at);
        is_sealed(state, *at) && here().any(|(_, file)| file.role == FileRole::Amendment)
    };
    let held: BTreeSet<Place> = live.iter().map(|(place, _)| *place).collect();
    for at in held.iter().filter(|at| is_sealed_now(sealing, **at) || gained(at)) {
        let here = live.iter().filter(|(place, file)| place == at && file.rows < LARGE_ROWS);
        let small: Vec<(&str, &FileEntry)> = here.map(|(_, file)| (file.path.as_str(), *file)).collect();
        // Rewriting a single sealed file would change nothing.
        if small.len() < 2 && small.iter().all(|(_, file)| file.role != FileRole::Part) {
            continue;
        }
        let changes = places.entry(*at).or_default();
        changes.is_sealing = true;
        changes.inputs.extend(small);
    }
}

/// Joins the session files of a year.
fn join<'a>(
    state: &TeamState,
    joining: &[Range],
    live: &[(Place, &'a FileEntry)],
    places: &mut BTreeMap<Place, Changes<'a>>,
) {
    for year in joining.iter().map(|year| Place::Year(year.start)) {
        let here = live.iter().filter(|(place, file)| *place == year && is_joined(state, file));
        let files: Vec<(&str, &FileEntry)> = here.map(|(_, file)| (file.path.as_str(), *file)).collect();
        if files.len() > 1 {
            places.entry(year).or_default().inputs.extend(files);
        }
    }
}

/// Adds small files of the same place to the inputs, and returns the role of the new file.
fn absorb<'a>(
    state: &TeamState,
    sealing: &BTreeSet<(Stream, Instant)>,
    place: Place,
    live: &[(Place, &'a FileEntry)],
    changes: &mut Changes<'a>,
) -> FileRole {
    let here = || live.iter().filter(move |(held, _)| *held == place).map(|(_, file)| *file);
    if place == Place::Open {
        changes.inputs.extend(here().map(|file| (file.path.as_str(), file)));
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
    let is_sealed = changes.is_sealing || is_sealed(state, place) || is_sealed_now(sealing, place);
    let holds_month = changes.inputs.values().any(|file| file.role == FileRole::Month);
    let has_month = here().any(|file| file.role == FileRole::Month);
    match is_sealed {
        false => FileRole::Part,
        true if holds_month || !has_month => FileRole::Month,
        true => FileRole::Amendment,
    }
}

fn output(place: Place, role: FileRole, changes: Changes<'_>, salts: &Salts) -> Result<Output, String> {
    let Changes { inputs, dropped, added: mut rows, .. } = changes;
    let (batches, added) = in_order(&mut rows, salts)?;
    let of_added = rows.iter().map(|row| row.first_event_at).min();
    let times = inputs.values().filter_map(|file| file.first).chain(of_added);
    let start = match (role, place) {
        (FileRole::Month | FileRole::Amendment, Place::Month(start) | Place::Year(start)) => start,
        _ => day_start(times.min().unwrap_or(Instant::EARLIEST)),
    };
    let drop_ids = Arc::new(dropped.iter().map(|row| row.connection_id.clone()).collect());
    let (_, dropped) = self::batches(&dropped, salts)?;
    let inputs = inputs.into_values().cloned().collect();
    let content = Content::Sessions(SessionsChange { inputs, drop_ids, dropped, batches, added });
    Ok(Output { role, start, content })
}
