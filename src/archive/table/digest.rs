//! The digest of rows, which does not depend on their order and encoding.
//!
//! The digest of one row is the SHA-256 of `annals row v1\n`, the 32 bytes of the salt of the row's month, and its values in the
//! order of columns. A null is the byte 0. A text or a blob is the byte 1, its length as an unsigned LEB128, and its bytes. An
//! integer or a time is the byte 2 and its value as 8 bytes (little-endian, two's complement). A boolean is the byte 3 and
//! the byte 0 or 1. `raw` is the byte 4 and the SHA-256 of its bytes, which Annals computes when it reads the event. The digest of
//! many rows is the sum of the row digests as big-endian 256-bit integers, modulo 2^256.
//!
//! The month of a row is the month of its sort time: `event_time_ns` for events, `first_seen_at` for an event without a time,
//! `first_event_at` for sessions, `seen_at` for the inventory.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayIter, ArrayRef, AsArray, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use rayon::iter::{ParallelBridge, ParallelIterator};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::model::path::month_of;
use crate::model::{Digest, Instant, Range};
use crate::store::Store;

use super::super::salts::{Salt, Salts};
use super::super::{ArchiveError, LostSalt};
use super::column::{FIRST_SEEN_AT, RAW};
use super::order::times_of;
use super::{BATCH_ROWS_MAX, Selection, TableReader, by_parts};
use crate::archive::FileEntry;
use crate::archive::ledger::rows_sum::RowsSum;

const DOMAIN: &[u8] = b"annals row v1\n";

/// The number of some rows, and their sum or the salt that its digest lacks.
pub type FileRows = (u64, Result<RowsSum, LostSalt>);

/// Why rows have no digest.
#[derive(Debug, Error)]
pub enum DigestError {
    #[error("{0}")]
    Columns(String),
    #[error(transparent)]
    Salt(#[from] LostSalt),
}

impl From<DigestError> for String {
    fn from(error: DigestError) -> Self {
        error.to_string()
    }
}

fn put_bytes(row: &mut Vec<u8>, value: &[u8]) {
    row.push(1);
    put_leb128(row, value.len());
    row.extend_from_slice(value);
}

/// Writes the digest of the text.
fn put_raw(row: &mut Vec<u8>, digest: Digest) {
    row.push(4);
    row.extend_from_slice(&digest.0);
}

/// Seven bits in each byte, the lowest first; all bytes but the last have the highest bit set.
fn put_leb128(row: &mut Vec<u8>, mut value: usize) {
    while value > 0x7f {
        row.push(0x80 | value.to_le_bytes()[0]);
        value >>= 7;
    }
    row.push(value.to_le_bytes()[0]);
}

/// The values of a column, from the first row to the last.
enum Values<'a> {
    Raw(ArrayIter<&'a StringArray>),
    Text(ArrayIter<&'a StringArray>),
    Blob(ArrayIter<&'a BinaryArray>),
    Int(ArrayIter<&'a Int64Array>),
    SmallInt(ArrayIter<&'a Int32Array>),
    Time(ArrayIter<&'a TimestampMicrosecondArray>),
    Truth(ArrayIter<&'a BooleanArray>),
}

impl<'a> Values<'a> {
    fn all_of(batch: &'a RecordBatch) -> Result<Vec<Self>, DigestError> {
        let values = |(field, array): (&Arc<Field>, &'a ArrayRef)| {
            let unknown =
                || DigestError::Columns(format!("a column has the type {}, which has no digest", array.data_type()));
            Self::of(field, array.as_ref()).ok_or_else(unknown)
        };
        batch.schema_ref().fields().iter().zip(batch.columns()).map(values).collect()
    }

    fn of(field: &Field, array: &'a dyn Array) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Utf8 if field.name() == RAW => Self::Raw(array.as_string_opt()?.iter()),
            DataType::Utf8 => Self::Text(array.as_string_opt()?.iter()),
            DataType::Binary => Self::Blob(array.as_binary_opt()?.iter()),
            DataType::Int64 => Self::Int(array.as_primitive_opt::<Int64Type>()?.iter()),
            DataType::Int32 => Self::SmallInt(array.as_primitive_opt::<Int32Type>()?.iter()),
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                Self::Time(array.as_primitive_opt::<TimestampMicrosecondType>()?.iter())
            }
            DataType::Boolean => Self::Truth(array.as_boolean_opt()?.iter()),
            _ => return None,
        })
    }

    /// Writes the value of the next row. `text` is the digest of its `raw`, if it is known.
    fn put_next(&mut self, text: Option<Digest>, row: &mut Vec<u8>) {
        let digest = |value: &str| text.unwrap_or_else(|| Digest::of(value.as_bytes()));
        let value = match self {
            Self::Raw(rows) => rows.next().flatten().map(|value| put_raw(row, digest(value))),
            Self::Text(rows) => rows.next().flatten().map(|value| put_bytes(row, value.as_bytes())),
            Self::Blob(rows) => rows.next().flatten().map(|value| put_bytes(row, value)),
            Self::Int(rows) => rows.next().flatten().map(|value| put_int(row, value)),
            Self::SmallInt(rows) => rows.next().flatten().map(|value| put_int(row, i64::from(value))),
            Self::Time(rows) => rows.next().flatten().map(|value| put_int(row, value)),
            Self::Truth(rows) => rows.next().flatten().map(|value| row.extend_from_slice(&[3, u8::from(value)])),
        };
        if value.is_none() {
            row.push(0);
        }
    }
}

fn put_int(row: &mut Vec<u8>, value: i64) {
    row.push(2);
    row.extend_from_slice(&value.to_le_bytes());
}

pub fn digest_rows(batch: &RecordBatch, salts: &Salts) -> Result<RowsSum, DigestError> {
    digest_new_rows(batch, &[], salts)
}

/// The sum of new rows. `texts` are the digests of their `raw`, from the reading of the events.
pub fn digest_new_rows(batch: &RecordBatch, texts: &[Digest], salts: &Salts) -> Result<RowsSum, DigestError> {
    let mut columns = Values::all_of(batch)?;
    let mut last: Option<(Range, Salt)> = None;
    let mut sum = RowsSum::default();
    let mut row = Vec::with_capacity(1024);
    for (at, time) in row_times(batch).map_err(DigestError::Columns)?.into_iter().enumerate() {
        // Most rows have the same month as the row before.
        let (_, salt) = match last.filter(|(month, _)| month.owns(time)) {
            Some(last) => last,
            None => *last.insert(salts.of(time)?),
        };
        row.clear();
        row.extend_from_slice(DOMAIN);
        row.extend_from_slice(&salt.0);
        columns.iter_mut().for_each(|column| column.put_next(texts.get(at).copied(), &mut row));
        sum = sum.plus(RowsSum::new(1, Digest(Sha256::digest(&row).into())));
    }
    Ok(sum)
}

/// A batch with the sum of its rows.
pub fn summed(batch: RecordBatch, salts: &Salts) -> Result<(RecordBatch, RowsSum), String> {
    let sum = digest_rows(&batch, salts)?;
    Ok((batch, sum))
}

/// Converts items to columns, `length` at a time and in order, on several threads if they are many. Also gives the sum of all rows.
pub fn summed_batches<T: Sync>(
    items: &[T],
    length: usize,
    convert: impl Fn(&[T]) -> Result<(RecordBatch, RowsSum), String> + Send + Sync,
) -> Result<(Vec<RecordBatch>, RowsSum), String> {
    let (batches, sums): (Vec<RecordBatch>, Vec<RowsSum>) = by_parts(items, length, convert)?.into_iter().unzip();
    Ok((batches, sums.into_iter().fold(RowsSum::default(), RowsSum::plus)))
}

pub fn digest_file(store: &dyn Store, file: &FileEntry, salts: &Salts) -> Result<FileRows, ArchiveError> {
    let path = file.path.as_str();
    let of_batch = |batch: Result<RecordBatch, ArchiveError>| {
        let batch = batch?;
        let sum = match digest_rows(&batch, salts) {
            Ok(sum) => Ok(sum),
            Err(DigestError::Salt(lost)) => Err(lost),
            Err(DigestError::Columns(detail)) => return Err(ArchiveError::Table { path: path.to_owned(), detail }),
        };
        Ok((batch.num_rows() as u64, sum))
    };
    let none = || (0, Ok(RowsSum::default()));
    let both = |a: FileRows, b: FileRows| Ok((a.0 + b.0, a.1.and_then(|sum| Ok(sum.plus(b.1?)))));
    let batches = TableReader::open(store, path, file.dataset, Selection::default())?;
    match file.rows <= BATCH_ROWS_MAX as u64 {
        // For a single batch, threads cost more than they save.
        true => batches.map(of_batch).try_fold(none(), |sum, batch| both(sum, batch?)),
        false => batches.par_bridge().map(of_batch).try_reduce(none, both),
    }
}

/// The sort time of each row of a batch; the salt of its month is part of the row's digest.
fn row_times(batch: &RecordBatch) -> Result<Vec<Instant>, String> {
    let times = times_of(batch)?;
    let seen = batch.column_by_name(FIRST_SEEN_AT).and_then(|c| c.as_primitive_opt::<TimestampMicrosecondType>());
    let nanos = |at: usize| match seen {
        Some(seen) if times.is_null(at) => seen.value(at).saturating_mul(1_000),
        _ => times.value(at),
    };
    Ok((0..batch.num_rows()).map(|at| Instant::from_nanos(nanos(at))).collect())
}

/// The first instants of the months whose salts the digests of a batch's rows include.
pub fn salt_months(batch: &RecordBatch) -> Result<BTreeSet<Instant>, String> {
    Ok(row_times(batch)?.into_iter().map(|time| month_of(time).start).collect())
}

#[cfg(test)]
mod tests {
    use super::super::event_batches;
    use super::*;
    use crate::model::{Detail, EventRow, Stream};

    fn text(length: &[u8], text: &str) -> Vec<u8> {
        [&[1], length, text.as_bytes()].concat()
    }

    fn int(value: i64) -> Vec<u8> {
        [&[2][..], &value.to_le_bytes()].concat()
    }

    /// The ledgers of archives hold these digests: any change of these bytes needs a new format version.
    #[test]
    fn the_bytes_of_a_row_follow_the_format() {
        let (raw, payload) = (br#"{"id":"e"}"#, "x".repeat(300));
        let detail = Detail::Activity { token_info: None, payload: Some(payload.clone()) };
        let row = EventRow {
            team_id: "t".into(),
            event_id: "e".into(),
            time: Instant::from_nanos(1_700_000_000_000_001_002),
            event_type: "kind".into(),
            revision: 3,
            first_seen_at: Instant::from_nanos(1_700_000_000_500_000_000),
            redacted: true,
            raw: raw.to_vec().into(),
            served_digest: None,
            detail,
        };
        let short = |value: &str| text(&[u8::try_from(value.len()).unwrap()], value);
        let raw = [&[4][..], &Digest::of(raw).0].concat();
        let (micros, nanos) = (int(1_700_000_000_000_001), int(row.time.nanos()));
        let salts = Salts::of_test("t".into());
        let (month, salt) = salts.of(row.time).unwrap();
        assert_eq!(month.start.month(), "2023-11");
        let before =
            [DOMAIN.to_vec(), salt.0.to_vec(), short("t"), short("e"), micros, nanos, short("kind"), int(3)].concat();
        let payload = text(&[0xac, 0x02], &payload);
        let bytes = [before, int(1_700_000_000_500_000), vec![3, 1], raw, vec![0], payload, vec![0, 0]].concat();
        let (batches, sum) = event_batches(Stream::Activity, std::slice::from_ref(&row), &salts).unwrap();
        assert_eq!(sum, RowsSum::new(1, Digest::of(&bytes)));
        assert_eq!(digest_rows(&batches[0], &salts).unwrap(), sum);
    }
}
