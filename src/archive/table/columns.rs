//! New rows as columns from the start. A backfill has so many rows that a row of strings for each would take more time than
//! everything else.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;

use crate::model::{EventRow, Instant, RowRef, Stream, TeamId};

use super::super::salts::{Salt, Salts};
use super::RowsDigest;
use super::batch::EventBuilder;
use super::column::{CONNECTION_ID, DEVICE_ID, EVENT_ID, EVENT_TIME_NS, EVENT_TYPE, RAW};
use super::digest::RowsHasher;
use super::digest::digest_rows;
use super::rows::event_rows;
use super::tuning::{BATCH_BYTES_MAX, BATCH_ROWS_MAX};

/// Sorted new rows of one stream of a team, by time, then by id; at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct EventColumns {
    team: TeamId,
    stream: Stream,
    batches: Vec<RecordBatch>,
    digest: RowsDigest,
    /// The salts of the digest.
    salted: BTreeMap<Instant, Salt>,
    types: BTreeSet<String>,
}

/// Columns hold no NaN.
impl Eq for EventColumns {}

/// The parts of one row that other code reads.
#[derive(Debug, Clone, Copy)]
pub struct ColumnsRow<'a> {
    pub time: Instant,
    pub event_id: &'a str,
    pub event_type: &'a str,
    /// `None` if the event names no connection, and in streams without connections.
    pub connection_id: Option<&'a str>,
    /// Like `connection_id`.
    pub device_id: Option<&'a str>,
    pub raw: &'a str,
}

impl EventColumns {
    pub fn team(&self) -> &TeamId {
        &self.team
    }

    pub fn stream(&self) -> Stream {
        self.stream
    }

    pub fn count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The event types.
    pub fn types(&self) -> &BTreeSet<String> {
        &self.types
    }

    /// All rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = ColumnsRow<'_>> {
        self.batches.iter().flat_map(|batch| {
            let columns = RowColumns::of(batch);
            (0..batch.num_rows()).map(move |at| columns.row(at))
        })
    }

    /// The times of the first row and of the last row.
    pub fn times(&self) -> (Instant, Instant) {
        (self.first().time, self.last().time)
    }

    pub fn first(&self) -> ColumnsRow<'_> {
        RowColumns::of(self.batches.first().expect("BUG: there is at least one row")).row(0)
    }

    pub fn last(&self) -> ColumnsRow<'_> {
        let batch = self.batches.last().expect("BUG: there is at least one row");
        RowColumns::of(batch).row(batch.num_rows() - 1)
    }

    /// Sorts `some` by time. Returns whether no two of them overlap in time.
    pub fn sort_disjoint(some: &mut [Self]) -> bool {
        some.sort_by_key(Self::times);
        some.windows(2).all(|pair| {
            let (before, after) = (pair[0].last(), pair[1].first());
            (before.time, before.event_id) < (after.time, after.event_id)
        })
    }

    /// Converts the columns to rows. `first_seen_at` loses everything below a microsecond.
    pub fn to_rows(&self) -> Vec<EventRow> {
        let rows = self.batches.iter().map(|batch| event_rows(self.stream, batch));
        rows.flat_map(|rows| rows.expect("BUG: they were built of the stream's columns")).collect()
    }

    /// The digest of the rows with these salts. It is already known, unless the columns were made with another writer's salts that no
    /// line names.
    ///
    /// # Errors
    /// A sentence that names the lost salt.
    pub fn digest(&self, salts: &Salts) -> Result<RowsDigest, String> {
        if salts.are_current(&self.salted).map_err(|lost| lost.to_string())? {
            return Ok(self.digest);
        }
        let add = |sum: RowsDigest, batch: &RecordBatch| Ok(sum.plus(digest_rows(batch, salts)?));
        self.batches.iter().try_fold(RowsDigest::default(), add)
    }

    pub fn into_batches(self) -> Vec<RecordBatch> {
        self.batches
    }
}

struct RowColumns<'a> {
    times: &'a Int64Array,
    ids: &'a StringArray,
    types: &'a StringArray,
    connections: Option<&'a StringArray>,
    devices: Option<&'a StringArray>,
    raw: &'a StringArray,
}

impl<'a> RowColumns<'a> {
    fn of(batch: &'a RecordBatch) -> Self {
        let text = |name: &str| batch.column_by_name(name).map(AsArray::as_string::<i32>);
        let always = |name: &str| text(name).expect("BUG: events of every stream have it");
        let times = batch.column_by_name(EVENT_TIME_NS).expect("BUG: events of every stream have it");
        Self {
            times: times.as_primitive::<Int64Type>(),
            ids: always(EVENT_ID),
            types: always(EVENT_TYPE),
            connections: text(CONNECTION_ID),
            devices: text(DEVICE_ID),
            raw: always(RAW),
        }
    }

    fn row(&self, at: usize) -> ColumnsRow<'a> {
        let named = |ids: Option<&'a StringArray>| ids.and_then(|ids| ids.is_valid(at).then(|| ids.value(at)));
        ColumnsRow {
            time: Instant::from_nanos(self.times.value(at)),
            event_id: self.ids.value(at),
            event_type: self.types.value(at),
            connection_id: named(self.connections),
            device_id: named(self.devices),
            raw: self.raw.value(at),
        }
    }
}

/// Builds [`EventColumns`] row by row.
pub struct ColumnsBuilder {
    team: TeamId,
    stream: Stream,
    batches: Vec<RecordBatch>,
    rows: EventBuilder,
    /// Estimated number of rows and bytes of text that are still to come.
    rest: (usize, usize),
    hasher: RowsHasher,
    types: BTreeSet<String>,
    last: Option<(Instant, String)>,
}

impl ColumnsBuilder {
    /// For rows of the salts' team, with an estimate of their number and bytes of text.
    pub fn new(salts: &Salts, stream: Stream, rest: (usize, usize)) -> Self {
        Self {
            team: salts.team().clone(),
            stream,
            batches: Vec::new(),
            rows: next_batch(stream, rest),
            rest,
            hasher: RowsHasher::new(salts),
            types: BTreeSet::new(),
            last: None,
        }
    }

    /// Adds a row, which must come after all earlier rows in sort order.
    ///
    /// # Errors
    /// A sentence that names a row in a wrong place, of another team, or unfit for the stream's columns; or the lost salt.
    /// After a lost salt, discard the builder.
    pub fn add(&mut self, row: &RowRef<'_>) -> Result<(), String> {
        if row.team_id != self.team.as_str() {
            return Err(format!("event {} belongs to team {}", row.event_id, row.team_id));
        }
        if let Some((time, id)) = &self.last
            && (*time, id.as_str()) >= (row.time, row.event_id)
        {
            return Err(format!(
                "event {} of {} comes after one of {time}, so the rows are not sorted",
                row.event_id, row.time
            ));
        }
        let is_full = self.rows.rows() > 0 && self.rows.raw_bytes() + row.raw.len() > BATCH_BYTES_MAX;
        if is_full || self.rows.rows() >= BATCH_ROWS_MAX {
            self.end_batch()?;
        }
        self.rows.add(row)?;
        self.hasher.add(row).map_err(|lost| lost.to_string())?;
        let (time, id) = self.last.get_or_insert_with(|| (row.time, String::new()));
        *time = row.time;
        id.clear();
        id.push_str(row.event_id);
        if !self.types.contains(row.event_type) {
            self.types.insert(row.event_type.to_owned());
        }
        Ok(())
    }

    fn end_batch(&mut self) -> Result<(), String> {
        let (rows, bytes) = (self.rows.rows(), self.rows.raw_bytes());
        self.rest = (self.rest.0.saturating_sub(rows), self.rest.1.saturating_sub(bytes));
        let full = std::mem::replace(&mut self.rows, next_batch(self.stream, self.rest));
        self.batches.push(full.finish()?);
        Ok(())
    }

    /// The columns; `None` if no row was added.
    ///
    /// # Errors
    /// A sentence if the columns make no batch.
    pub fn finish(mut self) -> Result<Option<EventColumns>, String> {
        if self.rows.rows() > 0 {
            self.batches.push(self.rows.finish()?);
        }
        let Self { team, stream, batches, hasher, types, .. } = self;
        let (digest, salted) = hasher.finish();
        Ok((!batches.is_empty()).then_some(EventColumns { team, stream, batches, digest, salted, types }))
    }
}

fn next_batch(stream: Stream, (rows, bytes): (usize, usize)) -> EventBuilder {
    let now = rows.min(BATCH_ROWS_MAX);
    // Reserve this batch's share of the text, and a little more. Room for all the rest would stay allocated with the rows.
    let share = if now < rows { bytes / rows * now + bytes / 16 } else { bytes };
    EventBuilder::new(stream, now, share.min(bytes).min(BATCH_BYTES_MAX))
}
