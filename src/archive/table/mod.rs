//! Rows in files: the schema, reading and writing Parquet, row digests, merging.

mod batch;
mod columns;
mod connections;
mod digest;
mod inventory;
mod merge;
mod order;
mod reader;
mod rows;
mod schema;
mod sessions;
mod tuning;
mod writer;

use rayon::prelude::*;

#[cfg(test)]
pub use batch::event_batch;
pub use batch::{event_batches, reject_batch};
pub use columns::{column_of, text_at};
pub use connections::ConnectionColumns;
pub use digest::{digest_file, digest_rows, salt_months, summed, summed_batches};
pub use inventory::{inventory_batch, inventory_rows};
pub use merge::{MergeInput, merge};
pub use order::{sort_rows, times_of};
pub use reader::{ConnectionFilters, Selection, TableReader};
pub use rows::{event_rows, reject_rows};
pub use schema::{column, schema_of};
pub use sessions::{session_batch, session_rows};
pub use tuning::{BATCH_BYTES_MAX, BATCH_ROWS_MAX, GROUP_ROWS_MAX};
pub use writer::{TableWriter, Written};

/// Maximum number of files written or checked in parallel: each holds a row group in memory.
const FILES_AT_ONCE: usize = 4;
/// For fewer rows, a thread costs more than it saves.
const ROWS_A_THREAD_MIN: u64 = 4_000;

/// Applies `make` to each part of `length` items, in order, on several threads if there are several parts.
pub fn by_parts<T: Sync, R: Send, E: Send>(
    items: &[T],
    length: usize,
    make: impl Fn(&[T]) -> Result<R, E> + Send + Sync,
) -> Result<Vec<R>, E> {
    match items.len() <= length {
        // For so few items, threads cost more than they save.
        true => items.chunks(length).map(make).collect(),
        false => items.par_chunks(length).map(make).collect(),
    }
}

/// The number of files to write or to check in parallel, for files with these numbers of rows.
pub fn threads_for(rows: impl Iterator<Item = u64>) -> usize {
    // A hostile ledger can contain any number.
    let rows = rows.fold(0_u64, u64::saturating_add);
    usize::try_from(rows / ROWS_A_THREAD_MIN).unwrap_or(usize::MAX).min(FILES_AT_ONCE)
}

/// The version of the files' schema, in their metadata.
pub const TABLE_VERSION: &str = "1";

/// A file of these events in a new store, encoded as a sealed file with all its filters.
#[cfg(test)]
fn file_of(rows: &[crate::model::EventRow]) -> crate::store::MemoryStore {
    let store = crate::store::MemoryStore::new();
    let dataset = crate::model::Dataset::Connections;
    let mut table = TableWriter::create(&store, dataset, 1_000_000, super::random::Nonce(7)).unwrap();
    for some in rows.chunks(BATCH_ROWS_MAX) {
        table.write(&event_batch(crate::model::Stream::Connections, some).unwrap()).unwrap();
    }
    table.finish(|_| "file".to_owned()).unwrap();
    store
}
