//! Reads a team's archived rows.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{Array, Int32Array, Int64Array, RecordBatch, StringArray};

use crate::model::path::month_of;
use crate::model::{
    ConnectionId, ConnectionIds, Dataset, DeviceId, Digest, EventId, EventRow, Instant, InventoryPart, InventoryRow,
    LedgerSeq, Range, RejectRow, SessionRow, Stream,
};
use crate::store::Store;

use super::sessions::{HeldSession, Lookup};
use super::table::{
    ConnectionColumns, Selection, TableReader, by_parts, column, column_of, event_rows, inventory_rows, reject_rows,
    schema_of, text_at,
};
use super::{ArchiveError, FileEntry};
use crate::archive::ledger::state::TeamState;

/// The identity of an archived event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredEvent {
    pub event_id: EventId,
    /// The SHA-256 of the archived `raw`, computed now; `original` if the archive does not keep `raw`.
    pub digest: Digest,
    pub has_text: bool,
    pub time: Instant,
    pub revision: u32,
    /// The keyed digest of the served text, if `raw` is not that text: see [`Salts::originals`](super::Salts::originals).
    pub original: Option<Digest>,
}

/// The identity of a quarantined event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredReject {
    pub event_id: EventId,
    /// The SHA-256 of the served bytes, computed now.
    pub digest: Digest,
    pub time: Option<Instant>,
    pub reason: String,
    pub first_seen_at: Instant,
    /// As [`StoredEvent::original`].
    pub original: Option<Digest>,
}

/// A team as it was when the reader was opened.
pub struct TeamReader {
    store: Arc<dyn Store>,
    state: TeamState,
    snapshot: Option<LedgerSeq>,
    lookup: Lookup,
}

impl TeamReader {
    pub(super) fn new(store: Arc<dyn Store>, state: TeamState, snapshot: Option<LedgerSeq>) -> Self {
        Self { store, state, snapshot, lookup: Lookup::default() }
    }

    pub(super) fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    pub fn state(&self) -> &TeamState {
        &self.state
    }

    /// The archived rows. Removed files remain for the store's grace: open a new reader before it ends.
    pub fn rows(&self) -> TeamRows<'_> {
        TeamRows { store: self.store(), state: &self.state, lookup: &self.lookup }
    }

    /// The line of the snapshot from which the replay started; `None` if it replayed the whole ledger.
    pub fn snapshot(&self) -> Option<LedgerSeq> {
        self.snapshot
    }
}

/// The rows of a team in the files that are live after a line.
#[derive(Clone, Copy)]
pub struct TeamRows<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) state: &'a TeamState,
    pub(super) lookup: &'a Lookup,
}

impl<'a> TeamRows<'a> {
    /// Passes the rows of a stream whose event time is in `range` to `take`, file by file.
    ///
    /// # Errors
    /// When a file cannot be read; any error of `take`.
    pub fn rows_in(
        self,
        stream: Stream,
        range: Range,
        take: &mut dyn FnMut(EventRow) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        for file in self.files_in(stream, range) {
            for batch in self.open(file, &[], Some(range))? {
                let rows = event_rows(stream, &batch?);
                let rows = rows.map_err(|detail| ArchiveError::Table { path: file.path.clone(), detail })?;
                rows.into_iter().filter(|row| range.owns(row.time)).try_for_each(&mut *take)?;
            }
        }
        Ok(())
    }

    /// The archived events of some connections, each in its range of event time, without `raw`, in any order.
    pub fn connection_rows(self, wanted: &HashMap<ConnectionId, Range>) -> Result<Vec<EventRow>, ArchiveError> {
        let schema = schema_of(Dataset::Connections);
        let columns: Vec<&str> =
            schema.fields().iter().map(|field| field.name().as_str()).filter(|name| *name != column::RAW).collect();
        let asked = |file: &FileEntry| {
            let here = wanted.iter().filter(|(_, range)| may_hold(file, **range));
            let starts = here.clone().map(|(_, range)| range.start).min();
            let range = starts.zip(here.clone().map(|(_, range)| range.end).max());
            Some((range?, Arc::new(here.map(|(id, _)| id.clone()).collect::<ConnectionIds>())))
        };
        self.connection_files(|file| {
            let Some(((start, end), ids)) = asked(file) else { return Ok(Vec::new()) };
            let (range, connections) = (Some(Range::new(start, end)), Some(&ids));
            let selection = Selection { columns: &columns, range, connections, ..Selection::default() };
            let reader = TableReader::open(self.store, &file.path, file.dataset, selection)?;
            reader.rows(|batch| event_rows(Stream::Connections, batch))
        })
    }

    /// Reads all files of connections, several in parallel.
    fn connection_files<R: Send>(
        self,
        read: impl Fn(&FileEntry) -> Result<Vec<R>, ArchiveError> + Send + Sync,
    ) -> Result<Vec<R>, ArchiveError> {
        let files: Vec<&FileEntry> = self.state.files_of(Dataset::Connections).collect();
        Ok(by_parts(&files, 1, |files| read(files[0]))?.into_iter().flatten().collect())
    }

    /// The archived connection events whose time is in `range`, without their text, file by file.
    pub fn connection_columns(self, range: Range) -> Result<Vec<ConnectionColumns>, ArchiveError> {
        let (columns, as_dictionaries) = (ConnectionColumns::names(), ConnectionColumns::dictionaries());
        let selection = Selection {
            columns: &columns,
            range: Some(range),
            as_dictionaries: &as_dictionaries,
            ..Selection::default()
        };
        self.connection_files(|file| {
            if !may_hold(file, range) {
                return Ok(Vec::new());
            }
            TableReader::open(self.store, &file.path, file.dataset, selection)?.rows(|batch| {
                let columns = ConnectionColumns::of(&self.state.team_id, batch, range)?;
                Ok(Vec::from_iter(Some(columns).filter(|columns| !columns.is_empty())))
            })
        })
    }

    /// The identities of the archived rows of a stream whose event time is in `range`. Needs memory for the result and one batch.
    pub fn events_in(self, stream: Stream, range: Range) -> Result<Vec<StoredEvent>, ArchiveError> {
        let columns = [column::EVENT_ID, column::EVENT_TIME_NS, column::REVISION, column::RAW, column::SERVED_DIGEST];
        let mut found = Vec::new();
        for file in self.files_in(stream, range) {
            found.extend(self.open(file, &columns, Some(range))?.rows(|batch| identities(batch, range))?);
        }
        Ok(found)
    }

    /// The identities of all quarantined rows of a stream.
    pub fn rejects(self, stream: Stream) -> Result<Vec<StoredReject>, ArchiveError> {
        let mut found = Vec::new();
        for file in self.state.files_of(Dataset::Quarantine) {
            for row in self.rejects_of(&file.path)?.into_iter().filter(|row| row.stream == stream) {
                let digest = Digest::of(&row.raw);
                let original = row.erased.and_then(|mark| mark.original.parse().ok());
                let RejectRow { event_id, time, reason, first_seen_at, .. } = row;
                found.push(StoredReject { event_id, digest, time, reason, first_seen_at, original });
            }
        }
        Ok(found)
    }

    /// All rows of one live file of quarantine.
    pub fn rejects_of(self, path: &str) -> Result<Vec<RejectRow>, ArchiveError> {
        TableReader::open(self.store, path, Dataset::Quarantine, Selection::default())?.rows(reject_rows)
    }

    /// The event types of a stream's archived events whose event time is in `range`.
    pub fn event_types_in(self, stream: Stream, range: Range) -> Result<BTreeSet<String>, ArchiveError> {
        Ok(self.texts_in(stream, range, column::EVENT_TYPE)?.into_iter().flatten().collect())
    }

    /// The computers of the archived connection events whose event time is in `range`. `None`: an event names no computer.
    pub fn computers_in(self, range: Range) -> Result<BTreeSet<Option<DeviceId>>, ArchiveError> {
        let ids = self.texts_in(Stream::Connections, range, column::DEVICE_ID)?;
        let computer = |id: Option<String>| id.filter(|id| !id.is_empty()).map(|id| DeviceId::from(id.as_str()));
        Ok(ids.into_iter().map(computer).collect())
    }

    /// The different values of a column of texts.
    fn texts_in(self, stream: Stream, range: Range, name: &str) -> Result<BTreeSet<Option<String>>, ArchiveError> {
        let mut found = BTreeSet::new();
        for file in self.files_in(stream, range) {
            let texts = self.open(file, &[column::EVENT_TIME_NS, name], Some(range))?.rows(|batch| {
                let times = column_of::<Int64Array>(batch, column::EVENT_TIME_NS)?.values();
                let texts = column_of::<StringArray>(batch, name)?;
                let rows = (0..batch.num_rows()).filter(|at| range.owns(Instant::from_nanos(times[*at])));
                let distinct: BTreeSet<_> = rows.map(|at| text_at(texts, at)).collect();
                Ok(distinct.into_iter().map(|text| text.map(str::to_owned)).collect())
            })?;
            found.extend(texts);
        }
        Ok(found)
    }

    /// The rows of the two newest months of a part of the inventory, oldest first. They give its current state: each existing
    /// thing has a row in every month, and one round of reads can reach into the next month.
    pub fn inventory(self, part: InventoryPart) -> Result<Vec<InventoryRow>, ArchiveError> {
        let files = self.state.files_of(Dataset::Inventory(part));
        let months: BTreeSet<Instant> = files.filter_map(|file| Some(month_of(file.first?).start)).collect();
        self.inventory_since(part, months.iter().rev().nth(1).or(months.first()).copied())
    }

    /// All rows of a part of the inventory, oldest first. Only they tell what the archive holds of a person who was away.
    pub fn whole_inventory(self, part: InventoryPart) -> Result<Vec<InventoryRow>, ArchiveError> {
        self.inventory_since(part, None)
    }

    fn inventory_since(self, part: InventoryPart, since: Option<Instant>) -> Result<Vec<InventoryRow>, ArchiveError> {
        let files = self.state.files_of(Dataset::Inventory(part));
        let mut files: Vec<&FileEntry> = files.filter(|file| file.first >= since).collect();
        files.sort_by_key(|file| file.first);
        let mut rows = Vec::new();
        for file in files {
            rows.extend(self.open(file, &[], None)?.rows(|batch| inventory_rows(part, batch))?);
        }
        Ok(rows)
    }

    fn files_in(self, stream: Stream, range: Range) -> impl Iterator<Item = &'a FileEntry> {
        self.state.files_of(stream.into()).filter(move |file| may_hold(file, range))
    }

    fn open(self, file: &FileEntry, columns: &[&str], range: Option<Range>) -> Result<TableReader, ArchiveError> {
        let selection = Selection { columns, range, ..Selection::default() };
        TableReader::open(self.store, &file.path, file.dataset, selection)
    }

    /// The wanted ones of the sessions that can still receive events. A busy team has a hundred thousand of them.
    pub fn open_sessions(self, is_wanted: impl Fn(&SessionRow) -> bool) -> Result<Vec<HeldSession>, ArchiveError> {
        Lookup::open(self.store, self.state, is_wanted)
    }

    pub fn latest_connection_event(self) -> Option<Instant> {
        self.state.files_of(Dataset::Connections).filter_map(|file| file.last).max()
    }

    /// The finished sessions of `ids`. For most files, the lookup reads only the bloom filter.
    pub fn finished_sessions(self, ids: &[&ConnectionId]) -> Result<Vec<HeldSession>, ArchiveError> {
        self.lookup.finished(self.store, self.state, ids)
    }
}

fn may_hold(file: &FileEntry, range: Range) -> bool {
    match (file.first, file.last) {
        (Some(first), Some(last)) => first < range.end && range.start <= last,
        _ => true,
    }
}

fn identities(batch: &RecordBatch, range: Range) -> Result<Vec<StoredEvent>, String> {
    let text = |name: &str| column_of::<StringArray>(batch, name);
    let (ids, raw, originals) = (text(column::EVENT_ID)?, text(column::RAW)?, text(column::SERVED_DIGEST)?);
    let times = column_of::<Int64Array>(batch, column::EVENT_TIME_NS)?;
    let revisions = column_of::<Int32Array>(batch, column::REVISION)?;
    let identity = |at: usize| {
        let has_text = raw.is_valid(at);
        let original: Option<Digest> = text_at(originals, at).and_then(|digest| digest.parse().ok());
        StoredEvent {
            event_id: ids.value(at).into(),
            digest: match original {
                Some(original) if !has_text => original,
                _ => Digest::of(raw.value(at).as_bytes()),
            },
            has_text,
            time: Instant::from_nanos(times.value(at)),
            revision: u32::try_from(revisions.value(at)).unwrap_or(0),
            original,
        }
    };
    let rows = (0..batch.num_rows()).filter(|at| range.owns(Instant::from_nanos(times.value(*at))));
    Ok(rows.map(identity).collect())
}
