//! Merges many sorted files and new rows into one sorted sequence of batches, in bounded memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch, StringArray};
use arrow::compute::{filter_record_batch, interleave_record_batch};

use crate::model::{ConnectionIds, Instant};
use crate::store::Store;

use super::super::{ArchiveError, FileEntry};
use super::order::Order;
use super::{BATCH_BYTES_MAX, BATCH_ROWS_MAX, Selection, TableReader, column, column_of};

/// One sorted input.
pub enum MergeInput {
    File(FileEntry),
    /// Sorted batches. The caller knows their digest.
    Batches(Vec<RecordBatch>),
}

/// The sort order of rows in files; the last member distinguishes inputs.
type Key = (i64, String, i32, usize);

/// Receives the merged rows.
pub type Emit<'a> = dyn FnMut(&RecordBatch) -> Result<(), ArchiveError> + 'a;

/// Merges the inputs, and passes sorted batches to `emit`. Leaves out the sessions of `dropped` connections in files. A file is open
/// only from its first row's time to its last, so files that follow one another in time are read one after another.
pub fn merge(
    store: &dyn Store,
    inputs: Vec<MergeInput>,
    dropped: &ConnectionIds,
    emit: &mut Emit<'_>,
) -> Result<(), ArchiveError> {
    let (cursors, heap, next) = (Vec::new(), BinaryHeap::new(), BatchBuilder::default());
    let mut merger = Merger { store, dropped, cursors, heap, next };
    for input in inputs {
        merger.add(input);
    }
    while let Some(Reverse((time, id, revision, at))) = merger.heap.pop() {
        if merger.cursors[at].head.is_none() {
            merger.load(at, emit)?;
            merger.push(at);
            continue;
        }
        debug_assert!(merger.cursors[at].key(at) == Some((time, id, revision, at)));
        merger.drain(at, emit)?;
    }
    merger.flush(emit)
}

struct Merger<'a> {
    store: &'a dyn Store,
    dropped: &'a ConnectionIds,
    cursors: Vec<Cursor>,
    heap: BinaryHeap<Reverse<Key>>,
    next: BatchBuilder,
}

/// The next merged batch.
#[derive(Default)]
struct BatchBuilder {
    batches: Vec<RecordBatch>,
    /// Its rows, as batch and row numbers.
    indices: Vec<(usize, usize)>,
    bytes: usize,
}

struct Cursor {
    source: Source,
    head: Option<Head>,
}

enum Source {
    Waiting(FileEntry),
    File(TableReader),
    Batches(std::vec::IntoIter<RecordBatch>),
    Done,
}

/// The current batch of a cursor, and its current row.
struct Head {
    batch: RecordBatch,
    /// The index of the batch in the builder.
    slot: usize,
    row: usize,
    order: Order,
    /// The longest text column of the rows.
    text: StringArray,
}

impl Merger<'_> {
    fn add(&mut self, input: MergeInput) {
        let at = self.cursors.len();
        let (first, source) = match input {
            MergeInput::File(entry) => (first_of(&entry), Source::Waiting(entry)),
            MergeInput::Batches(batches) => (i64::MIN, Source::Batches(batches.into_iter())),
        };
        self.cursors.push(Cursor { source, head: None });
        // No row of the input comes before this key.
        self.heap.push(Reverse((first, String::new(), i32::MIN, at)));
    }

    fn push(&mut self, at: usize) {
        self.heap.extend(self.cursors[at].key(at).map(Reverse));
    }

    /// Takes rows from one cursor while its next row sorts before those of all other cursors.
    fn drain(&mut self, at: usize, emit: &mut Emit<'_>) -> Result<(), ArchiveError> {
        loop {
            if self.emit_whole_batch(at, emit)? {
                continue;
            }
            let Some(head) = &mut self.cursors[at].head else { return Ok(()) };
            if let Some(Reverse(next)) = self.heap.peek()
                && head.row_is_after(head.row, next)
            {
                self.push(at);
                return Ok(());
            }
            self.next.indices.push((head.slot, head.row));
            self.next.bytes += head.text.value(head.row).len();
            head.row += 1;
            let is_over = head.row == head.batch.num_rows();
            if self.next.indices.len() >= BATCH_ROWS_MAX || self.next.bytes >= BATCH_BYTES_MAX {
                self.flush(emit)?;
            }
            if is_over {
                self.load(at, emit)?;
            }
        }
    }

    /// Passes a whole batch on unchanged if all of it comes first: window files follow one another in time.
    fn emit_whole_batch(&mut self, at: usize, emit: &mut Emit<'_>) -> Result<bool, ArchiveError> {
        let Some(head) = &self.cursors[at].head else { return Ok(false) };
        let last = head.batch.num_rows() - 1;
        if head.row > 0 || self.heap.peek().is_some_and(|Reverse(next)| head.row_is_after(last, next)) {
            return Ok(false);
        }
        let batch = head.batch.clone();
        self.cursors[at].head = None;
        self.flush(emit)?;
        emit(&batch)?;
        self.load(at, emit)?;
        Ok(true)
    }

    /// Loads the next batch of a cursor, if any.
    fn load(&mut self, at: usize, emit: &mut Emit<'_>) -> Result<(), ArchiveError> {
        let cursor = &mut self.cursors[at];
        if let Source::Waiting(entry) = &cursor.source {
            let reader = TableReader::open(self.store, &entry.path, entry.dataset, Selection::default())?;
            cursor.source = Source::File(reader);
        }
        let batch = match &mut cursor.source {
            Source::File(reader) => next_kept(reader, self.dropped)?,
            Source::Batches(batches) => batches.next(),
            Source::Waiting(..) | Source::Done => None,
        };
        match batch {
            Some(batch) if batch.num_rows() > 0 => {
                let slot = self.next.batches.len();
                self.next.batches.push(batch.clone());
                cursor.head = Some(Head::new(batch, slot)?);
            }
            _ => *cursor = Cursor { source: Source::Done, head: None },
        }
        // Release used batches before they need much memory.
        if self.next.batches.len() > self.cursors.len() + 4 { self.flush(emit) } else { Ok(()) }
    }

    /// Passes the rows of the builder on, and releases used batches.
    fn flush(&mut self, emit: &mut Emit<'_>) -> Result<(), ArchiveError> {
        let next = std::mem::take(&mut self.next);
        if !next.indices.is_empty() {
            let batches: Vec<&RecordBatch> = next.batches.iter().collect();
            let merged = interleave_record_batch(&batches, &next.indices).map_err(|e| bad(e.to_string()))?;
            emit(&merged)?;
        }
        for head in self.cursors.iter_mut().filter_map(|c| c.head.as_mut()) {
            head.slot = self.next.batches.len();
            self.next.batches.push(head.batch.clone());
        }
        Ok(())
    }
}

impl Cursor {
    fn key(&self, at: usize) -> Option<Key> {
        let head = self.head.as_ref()?;
        let row = head.row;
        Some((head.order.times.value(row), head.order.ids.value(row).to_owned(), head.order.revision(row), at))
    }
}

impl Head {
    fn new(batch: RecordBatch, slot: usize) -> Result<Self, ArchiveError> {
        let order = Order::of(&batch).map_err(bad)?;
        let raw = batch.column_by_name(column::RAW).and_then(|c| c.as_string_opt::<i32>());
        let text = raw.unwrap_or(&order.ids).clone();
        Ok(Self { slot, row: 0, order, text, batch })
    }

    fn row_is_after(&self, row: usize, other: &Key) -> bool {
        let own = (self.order.times.value(row), self.order.ids.value(row), self.order.revision(row));
        own > (other.0, other.1.as_str(), other.2)
    }
}

fn first_of(file: &FileEntry) -> i64 {
    file.first.map_or(i64::MIN, Instant::nanos)
}

fn next_kept(reader: &mut TableReader, dropped: &ConnectionIds) -> Result<Option<RecordBatch>, ArchiveError> {
    for batch in reader {
        let batch = without(batch?, dropped)?;
        if batch.num_rows() > 0 {
            return Ok(Some(batch));
        }
    }
    Ok(None)
}

/// The rows of a batch without the sessions of these connections.
fn without(batch: RecordBatch, dropped: &ConnectionIds) -> Result<RecordBatch, ArchiveError> {
    if dropped.is_empty() {
        return Ok(batch);
    }
    let ids: &StringArray = column_of(&batch, column::CONNECTION_ID).map_err(bad)?;
    let kept: BooleanArray = (0..ids.len()).map(|at| Some(!dropped.contains(ids.value(at)))).collect();
    filter_record_batch(&batch, &kept).map_err(|e| bad(e.to_string()))
}

fn bad(detail: String) -> ArchiveError {
    ArchiveError::Table { path: "merged rows".to_owned(), detail }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::super::tests::{event, events, now, salts};
    use super::super::{event_batches, event_rows};
    use super::*;
    use crate::model::{EventRow, Stream};
    use crate::store::MemoryStore;

    /// For all inputs: the output is sorted, and no batch is larger than the memory limit.
    #[test]
    fn overlapping_inputs_are_merged_in_order_and_in_bounded_batches() {
        let stream = Stream::Connections;
        let merged = |inputs: &[&[EventRow]]| {
            let inputs = inputs
                .iter()
                .map(|rows| MergeInput::Batches(event_batches(stream, rows, &salts()).unwrap().0))
                .collect();
            let mut batches: Vec<Vec<EventRow>> = Vec::new();
            let mut take = |batch: &RecordBatch| {
                batches.push(event_rows(stream, batch).map_err(bad)?);
                Ok(())
            };
            merge(&MemoryStore::new(), inputs, &ConnectionIds::default(), &mut take).unwrap();
            batches
        };
        let every = |rows: &[EventRow], at: usize, of: usize| rows.iter().skip(at).step_by(of).cloned().collect();
        let many = events("2026-11-01", 0, 2 * BATCH_ROWS_MAX as u64 + 2);
        let text = Bytes::from(vec![b' '; BATCH_BYTES_MAX / 2]);
        let large: Vec<EventRow> =
            events("2026-11-01", 0, 6).into_iter().map(|row| EventRow { raw: text.clone().into(), ..row }).collect();
        for (rows, inputs) in [(&many, 2), (&many, 3), (&large, 2), (&large, 6)] {
            let parts: Vec<Vec<EventRow>> = (0..inputs).map(|at| every(rows, at, inputs)).collect();
            let batches = merged(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
            for batch in &batches {
                let bytes: usize = batch.iter().map(|row| row.raw.len()).sum();
                assert!(
                    batch.len() <= BATCH_ROWS_MAX && bytes <= BATCH_BYTES_MAX,
                    "{} rows, {bytes} bytes",
                    batch.len()
                );
            }
            assert!(batches.concat() == *rows, "{inputs} inputs");
        }
        // The earlier revision of an event comes first, in whichever input it is.
        let revision = |revision| vec![EventRow { revision, ..event("e", now()) }];
        let rows = merged(&[&revision(2), &revision(3), &revision(1)]).concat();
        assert_eq!(rows.iter().map(|row| row.revision).collect::<Vec<_>>(), [1, 2, 3]);
        // Inputs that follow one another pass through unchanged.
        let (before, after) = many.split_at(100);
        assert_eq!(merged(&[after, before]).iter().map(Vec::len).collect::<Vec<_>>(), [100, 4096, 3998]);
        assert_eq!(merged(&[&[], &[]]), Vec::<Vec<EventRow>>::new());
    }
}
