//! A file that is encoded and read back early, before its commit knows whether and where it is needed.

use std::io::{self, Read};

use arrow::array::RecordBatch;
use bytes::Bytes;

use super::super::salts::Salts;
use super::super::store::{Blob, MemoryStore, Store, StoreError, Verb, put};
use super::super::{ArchiveError, Dataset};
use super::compare::rows_again;
use super::{EventColumns, RowsDigest, TableWriter, Tier, Written};

/// Number of bytes that are compared at once.
const PIECE_BYTES: usize = 128 << 10;
const NAME: &str = "rows encoded ahead";

/// A table file in memory, whose values were all read back and compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedTable {
    bytes: Bytes,
    written: Written,
    digest: RowsDigest,
    tier: Tier,
}

impl EncodedTable {
    /// Encodes the rows of one window as the file that is written when the window settles. `None` if the columns overlap in time,
    /// so that one file cannot hold them in order.
    ///
    /// # Errors
    /// When the rows cannot be encoded, or the file reads back differently.
    pub fn of_window(mut columns: Vec<EventColumns>, salts: &Salts) -> Result<Option<Self>, ArchiveError> {
        let tier = Tier::Recent;
        let Some(stream) = columns.first().map(EventColumns::stream) else { return Ok(None) };
        if !EventColumns::sort_disjoint(&mut columns) {
            return Ok(None);
        }
        let dataset = Dataset::from(stream);
        let add = |sum: RowsDigest, some: &EventColumns| Ok(sum.plus(some.digest(salts)?));
        let digest = columns.iter().try_fold(RowsDigest::default(), add);
        let digest = digest.map_err(|detail: String| ArchiveError::Table { path: NAME.to_owned(), detail })?;
        let batches: Vec<RecordBatch> = columns.into_iter().flat_map(EventColumns::into_batches).collect();
        Self::of_rows(dataset, &batches, digest, tier, salts).map(Some)
    }

    /// Encodes sorted rows of a dataset, whose digest is known.
    ///
    /// # Errors
    /// As [`EncodedTable::of_window`].
    pub fn of_rows(
        dataset: Dataset,
        batches: &[RecordBatch],
        digest: RowsDigest,
        tier: Tier,
        salts: &Salts,
    ) -> Result<Self, ArchiveError> {
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let store = MemoryStore::new();
        let mut table = TableWriter::create(&store, dataset, tier, rows, salts.nonce())?;
        batches.iter().try_for_each(|batch| table.write(batch))?;
        let written = table.finish(|_| NAME.to_owned())?;
        if rows_again(&store, NAME, dataset, None, batches)? != Some(rows) {
            let (found, expected) = ("other values".to_owned(), "the rows that were encoded".to_owned());
            return Err(ArchiveError::ReadBack { path: NAME.to_owned(), found, expected });
        }
        let bytes = store.read(NAME)?.to_bytes().map_err(|e| StoreError::io(Verb::Read, NAME, e))?;
        Ok(Self { bytes, written, digest, tier })
    }

    /// Whether the file holds exactly these rows, encoded for this tier.
    pub fn is_of(&self, rows: u64, digest: RowsDigest, tier: Tier) -> bool {
        (self.written.rows, self.digest, self.tier) == (rows, digest, tier)
    }

    pub fn digest(&self) -> RowsDigest {
        self.digest
    }

    pub fn rows(&self) -> u64 {
        self.written.rows
    }

    /// Whether a file holds these bytes.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn is(&self, file: &Blob) -> io::Result<bool> {
        let (mut reader, mut rest) = (file.reader(0), self.bytes.as_ref());
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok(rest.is_empty()),
                n => match rest.split_at_checked(n) {
                    Some((these, others)) if these == &buffer[..n] => rest = others,
                    _ => return Ok(false),
                },
            }
        }
    }

    /// The file's description for the ledger.
    pub fn written(&self) -> Written {
        self.written
    }

    /// Writes the file under a name, and makes it durable.
    ///
    /// # Errors
    /// When the store fails.
    pub fn write(&self, store: &dyn Store, path: &str) -> Result<(), ArchiveError> {
        Ok(put(store, path, &self.bytes)?)
    }
}
