//! Finished sessions, converted to columns and encoded before their commit. Other work waits for the commit, so the commit
//! should be short.

use std::collections::BTreeMap;

use arrow::array::RecordBatch;

use crate::model::{Instant, SessionRow};

use super::super::path::month_of;
use super::super::salts::{Salt, Salts};
use super::super::table::{
    BATCH_ROWS_MAX, DigestError, EncodedTable, RowsDigest, Tier, by_parts, digest_rows, session_batch, session_rows,
    times_of,
};
use super::super::{ArchiveError, Dataset, FileEntry};
use super::place::SMALL_ROWS;

/// The number and digest of some rows.
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

    pub fn of_files<'a>(files: impl Iterator<Item = &'a FileEntry>) -> Self {
        let mut sum = Self::default();
        files.for_each(|file| sum.add(file.rows, file.rows_digest.into()));
        sum
    }
}

/// Sorted sessions that begin in one calendar month; at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionColumns {
    batches: Vec<RecordBatch>,
    sum: Sum,
    /// The salts of the digest.
    salted: BTreeMap<Instant, Salt>,
    /// The encoded file, for use until the month is sealed.
    encoded: Option<EncodedTable>,
}

/// Columns hold no NaN.
impl Eq for SessionColumns {}

impl SessionColumns {
    /// Removes from `resting` the sessions of each month that has enough of them for a file of its own.
    /// # Errors
    /// When a session occurs twice, or a month's salt is lost.
    pub fn take_many(resting: &mut Vec<SessionRow>, salts: &Salts) -> Result<Vec<Self>, ArchiveError> {
        let bad = |detail: String| ArchiveError::Table { path: "sessions made before their commit".to_owned(), detail };
        let mut months: BTreeMap<Instant, Vec<&SessionRow>> = BTreeMap::new();
        let mut last = month_of(Instant::EARLIEST);
        for row in resting.iter() {
            if !last.owns(row.first_event_at) {
                last = month_of(row.first_event_at);
            }
            months.entry(last.start).or_default().push(row);
        }
        months.retain(|_, rows| rows.len() as u64 >= SMALL_ROWS);
        let taken: Vec<Instant> = months.keys().copied().collect();
        let columns = months.into_values().map(|rows| Self::of(rows, salts).map_err(bad)).collect::<Result<_, _>>()?;
        resting.retain(|row| !taken.contains(&month_of(row.first_event_at).start));
        Ok(columns)
    }

    fn of(mut rows: Vec<&SessionRow>, salts: &Salts) -> Result<Self, String> {
        let (batches, sum) = in_order(&mut rows, salts)?;
        let months = rows.first().map(|row| salts.of(row.first_event_at)).transpose();
        let salted = months.map_err(|lost| lost.to_string())?.map(|(month, salt)| (month.start, salt));
        let encoded = EncodedTable::of_rows(Dataset::Sessions, &batches, sum.digest, Tier::Brief, salts);
        // The commit encodes them again, and fails if that fails, too.
        let encoded = encoded
            .inspect_err(|error| tracing::warn!(%error, "cannot encode sessions early; the commit tries it again"));
        Ok(Self { batches, sum, salted: salted.into_iter().collect(), encoded: encoded.ok() })
    }

    pub fn rows(&self) -> u64 {
        self.sum.rows
    }

    /// The number of rows, and their digest with these salts. The digest is already known, unless the rows were made with another
    /// writer's salts that no line names.
    ///
    /// # Errors
    /// A sentence that names the lost salt.
    pub fn sum(&self, salts: &Salts) -> Result<Sum, String> {
        if salts.are_current(&self.salted).map_err(|lost| lost.to_string())? {
            return Ok(self.sum);
        }
        sum_of(&self.batches, salts).map_err(String::from)
    }

    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// The encoded file, if it has this sum and was encoded for this tier.
    pub fn encoded(&self, sum: Sum, tier: Tier) -> Option<EncodedTable> {
        self.encoded.clone().filter(|table| table.is_of(sum.rows, sum.digest, tier))
    }

    /// The time of the first session.
    pub fn first(&self) -> Result<Instant, String> {
        let first = times_of(self.batches.first().ok_or("the columns hold no session")?)?;
        Ok(Instant::from_nanos(first.values().first().copied().ok_or("the columns hold no session")?))
    }

    /// The times of the first events, in microseconds, sorted.
    pub fn times(&self) -> Result<Vec<i64>, String> {
        let of = |batch: &RecordBatch| Ok(times_of(batch)?.values().iter().map(|nanos| nanos / 1_000).collect());
        self.batches.iter().map(of).collect::<Result<Vec<Vec<i64>>, String>>().map(|times| times.concat())
    }

    /// The sessions as rows. Times lose everything below a microsecond.
    pub fn to_rows(&self) -> Result<Vec<SessionRow>, String> {
        self.batches.iter().map(session_rows).collect::<Result<Vec<_>, _>>().map(|rows| rows.concat())
    }
}

/// Sorts sessions by time and connection, and converts them to columns.
///
/// # Errors
/// A sentence about a duplicate session or a lost salt.
pub fn in_order(rows: &mut [&SessionRow], salts: &Salts) -> Result<(Vec<RecordBatch>, Sum), String> {
    fn key(row: &SessionRow) -> (i64, &str) {
        (row.first_event_at.micros(), row.connection_id.as_str())
    }
    rows.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
    if let Some(pair) = rows.windows(2).find(|pair| pair[0].connection_id == pair[1].connection_id) {
        return Err(format!("session {} occurs twice", pair[0].connection_id));
    }
    batches(rows, salts)
}

/// Converts sessions to columns, in the given order.
///
/// # Errors
/// A sentence if the columns make no batch, or a salt is lost.
pub fn batches(rows: &[&SessionRow], salts: &Salts) -> Result<(Vec<RecordBatch>, Sum), String> {
    let batches = by_parts(rows, BATCH_ROWS_MAX, |some| {
        let batch = session_batch(some.iter().copied())?;
        let digest = digest_rows(&batch, salts)?;
        Ok::<_, String>((batch, digest))
    })?;
    let mut sum = Sum::default();
    batches.iter().for_each(|(batch, digest)| sum.add(batch.num_rows() as u64, *digest));
    Ok((batches.into_iter().map(|(batch, _)| batch).collect(), sum))
}

fn sum_of(batches: &[RecordBatch], salts: &Salts) -> Result<Sum, DigestError> {
    let mut sum = Sum::default();
    for batch in batches {
        sum.add(batch.num_rows() as u64, digest_rows(batch, salts)?);
    }
    Ok(sum)
}
