//! Sessions at rest as columns, and as the file that they become, made before their commit: it then has less to do while
//! others wait for it.

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

    pub fn of_files<'a>(files: impl Iterator<Item = &'a FileEntry>) -> Self {
        let mut sum = Self::default();
        files.for_each(|file| sum.add(file.rows, file.rows_digest.into()));
        sum
    }
}

/// Sessions that begin in one calendar month, in the order of files. There is at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionColumns {
    batches: Vec<RecordBatch>,
    sum: Sum,
    /// The salt of the sum's digest.
    salted: BTreeMap<Instant, Salt>,
    /// As a file that lives until its month is sealed.
    encoded: Option<EncodedTable>,
}

/// Columns hold no number that differs from itself.
impl Eq for SessionColumns {}

impl SessionColumns {
    /// Takes those out of `resting` of whose month there are so many that they become a file of their own.
    ///
    /// # Errors
    /// When a session stands there twice, or a month's salt is lost.
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
        // The commit tries it again, and ends should it fail there, too.
        let encoded =
            encoded.inspect_err(|error| tracing::warn!(%error, "encoding sessions failed; the commit tries it again"));
        Ok(Self { batches, sum, salted: salted.into_iter().collect(), encoded: encoded.ok() })
    }

    pub fn rows(&self) -> u64 {
        self.sum.rows
    }

    /// The rows' number and their digest with these salts. It is known, unless they were made beside another writer, whose
    /// salts no line names.
    ///
    /// # Errors
    /// A sentence naming the salt that is lost.
    pub fn sum(&self, salts: &Salts) -> Result<Sum, String> {
        if salts.gave(&self.salted).map_err(|lost| lost.to_string())? {
            return Ok(self.sum);
        }
        sum_of(&self.batches, salts).map_err(String::from)
    }

    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// The file of just these rows, of this sum, for a file that lives so long.
    pub fn encoded(&self, sum: Sum, tier: Tier) -> Option<EncodedTable> {
        self.encoded.clone().filter(|table| table.is_of(sum.rows, sum.digest, tier))
    }

    /// When the first of them begins.
    pub fn first(&self) -> Result<Instant, String> {
        let first = times_of(self.batches.first().ok_or("columns of no session")?)?;
        Ok(Instant::from_nanos(first.values().first().copied().ok_or("columns of no session")?))
    }

    /// The times of the first events, in microseconds, in order.
    pub fn times(&self) -> Result<Vec<i64>, String> {
        let of = |batch: &RecordBatch| Ok(times_of(batch)?.values().iter().map(|nanos| nanos / 1_000).collect());
        self.batches.iter().map(of).collect::<Result<Vec<Vec<i64>>, String>>().map(|times| times.concat())
    }

    /// The same as rows. Times come back in microseconds.
    pub fn to_rows(&self) -> Result<Vec<SessionRow>, String> {
        self.batches.iter().map(session_rows).collect::<Result<Vec<_>, _>>().map(|rows| rows.concat())
    }
}

/// The columns of sessions, which are put in the order of files: by time and connection.
///
/// # Errors
/// A sentence about one that stands there twice, or a salt that is lost.
pub fn in_order(rows: &mut [&SessionRow], salts: &Salts) -> Result<(Vec<RecordBatch>, Sum), String> {
    fn key(row: &SessionRow) -> (i64, &str) {
        (row.first_event_at.micros(), row.connection_id.as_str())
    }
    rows.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
    if let Some(pair) = rows.windows(2).find(|pair| pair[0].connection_id == pair[1].connection_id) {
        return Err(format!("session {} stands twice", pair[0].connection_id));
    }
    batches(rows, salts)
}

/// The columns of sessions as they stand there.
///
/// # Errors
/// A sentence, should the columns not make a batch, or about a salt that is lost.
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
