//! The writer compares what it reads back with what it wrote, before the ledger names a file.

use std::io::{self, Write};

use bytes::Bytes;

use crate::model::RawText;
use crate::store::{FileWriter, MemoryStore, StoreError, pass_on};

use super::super::{VerifyOptions, verify};
use super::*;
use crate::archive::commit::stage::compare;
use crate::archive::ledger::rows_sum::RowsSum;

/// A disk that changes one byte of each staged file, at this percentage of the file.
struct Lying {
    inner: MemoryStore,
    hundredths: usize,
}

struct Writer {
    inner: Box<dyn FileWriter>,
    content: Vec<u8>,
    hundredths: usize,
}

impl Store for Lying {
    pass_on! { read list remove append create_new lock now }

    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError> {
        let inner = self.inner.create()?;
        Ok(Box::new(Writer { inner, content: Vec::new(), hundredths: self.hundredths }))
    }
}

impl Write for Writer {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.content.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FileWriter for Writer {
    fn finish(mut self: Box<Self>, path: &str) -> Result<(), StoreError> {
        let at = (self.content.len() - 1) * self.hundredths / 100;
        self.content[at] ^= 1;
        self.inner.write_all(&self.content).unwrap();
        self.inner.finish(path)
    }
}

#[test]
fn a_text_that_differs_from_its_digest_is_not_committed() {
    let archive = open(&(Arc::new(MemoryStore::new()) as Arc<dyn Store>));
    let mut writer = writer(&archive);
    let row = event("e", at("2026-11-03T10:00:00Z"));
    let text = |bytes: Bytes| EventRow { raw: RawText::new(bytes, row.raw.digest()), ..row.clone() };
    let changed = Bytes::from(row.raw.to_ascii_uppercase());
    let draft = |row| Draft {
        rows: vec![WindowRows::new(Stream::Connections, day("2026-11-03"), vec![row], true)],
        ..Draft::default()
    };
    let refused = commit(&mut writer, draft(text(changed)));
    assert!(matches!(refused, Err(ArchiveError::ReadBack { .. })), "{refused:?}");
    let _ = commit(&mut writer, draft(text(Bytes::clone(&row.raw)))).unwrap();
}

#[test]
fn a_file_that_differs_when_it_is_read_back_is_not_committed() {
    for step in 0..history().len() {
        let honest = MemoryStore::new();
        let shared: Arc<dyn Store> = Arc::new(honest.clone());
        let mut before = writer(&open(&shared));
        for draft in history().into_iter().take(step) {
            let _ = commit(&mut before, draft).unwrap();
        }
        let state = before.state().clone();
        drop(before);
        for hundredths in [0, 20, 50, 90, 100] {
            let disk = Lying { inner: honest.snapshot(), hundredths };
            let shared: Arc<dyn Store> = Arc::new(disk.inner.clone());
            let archive = Archive::open(Arc::new(disk)).unwrap();
            let error = commit(&mut writer(&archive), history().swap_remove(step)).unwrap_err();
            let is_named = matches!(error, ArchiveError::ReadBack { .. } | ArchiveError::Table { .. });
            assert!(is_named, "step {step}, {hundredths} %: {error}");
            assert_eq!(archive.read(&team()).unwrap().state(), &state, "step {step}, {hundredths} %");
            // The same disk after its repair.
            let _ = commit(&mut writer(&open(&shared)), history().swap_remove(step)).unwrap();
            assert!(verify(shared.as_ref(), &VerifyOptions::default()).unwrap().is_clean(), "step {step}");
        }
    }
}

#[test]
fn rows_read_back_must_have_the_same_number_and_content() {
    let sum = |rows: u64, number: u8| RowsSum::new(rows, crate::model::Digest([number; 32]));
    assert!(compare("file", sum(3, 1), sum(3, 1)).is_ok());
    for found in [sum(2, 1), sum(4, 1), sum(3, 2), RowsSum::default()] {
        let refused = compare("file", found, sum(3, 1));
        assert!(matches!(refused, Err(ArchiveError::ReadBack { .. })), "{found:?}");
    }
}
