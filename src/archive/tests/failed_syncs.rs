//! After a failed sync, the file is not trusted. The kernel can drop the unwritten data, mark the pages clean, and report
//! success for the next sync of the same file. So the writer discards the file and writes it again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use parking_lot::{Mutex, MutexGuard};

use super::super::{LedgerLine, VerifyOptions, verify};
use super::*;
use crate::model::TeamKey;
use crate::model::path::SNAPSHOTS;
use crate::store::{FileWriter, MemoryStore, StoreError, Tail, Verb, pass_on};

/// The state of a file since its creation.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Trust {
    Synced,
    Failed,
}

#[derive(Debug, Default)]
struct Log {
    syncs: u64,
    files: BTreeMap<String, Trust>,
    /// Files whose last append failed, and the bytes that must be written again.
    unsure: BTreeMap<String, (u64, Vec<u8>)>,
    /// Files whose sync failed, with their content at that time.
    failed: BTreeSet<(String, Vec<u8>)>,
    /// Files whose sync succeeded, with their content at that time.
    synced: BTreeSet<(String, Vec<u8>)>,
    broken: Vec<String>,
}

/// A store on which one sync fails. All data was written and can be read, but it is not durable.
#[derive(Clone)]
struct Unsyncable {
    inner: MemoryStore,
    fail_at: u64,
    log: Arc<Mutex<Log>>,
}

impl Unsyncable {
    fn new(fail_at: u64) -> Self {
        Self { inner: MemoryStore::new(), fail_at, log: Arc::default() }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock()
    }

    fn next_sync(&self) -> bool {
        let mut log = self.log();
        log.syncs += 1;
        log.syncs - 1 != self.fail_at
    }

    fn content(&self, path: &str) -> Vec<u8> {
        self.inner.read(path).unwrap().to_bytes().unwrap().to_vec()
    }
}

fn failed(path: &str) -> StoreError {
    StoreError::io(Verb::Sync, path, io::Error::from_raw_os_error(5))
}

impl Store for Unsyncable {
    pass_on! { read list remove create_new lock now }

    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError> {
        let inner = self.inner.create()?;
        Ok(Box::new(Writer { store: self.clone(), inner }))
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        let mut log = self.log();
        if let Some((at, lost)) = log.unsure.remove(path)
            && at < tail.keep
        {
            log.broken.push(format!("{} bytes of {path} were never written again after a failed sync", lost.len()));
        }
        let unsynced = named_by(bytes).into_iter().filter(|file| log.files.get(file) != Some(&Trust::Synced));
        let unsynced: Vec<String> =
            unsynced.map(|file| format!("{file} is named by a line, and was not synced")).collect();
        log.broken.extend(unsynced);
        drop(log);
        self.inner.append(path, tail, bytes)?;
        if self.next_sync() {
            return Ok(());
        }
        self.log().unsure.insert(path.to_owned(), (tail.keep, bytes.to_vec()));
        Err(failed(path))
    }
}

struct Writer {
    store: Unsyncable,
    inner: Box<dyn FileWriter>,
}

/// The files that a ledger line adds, and the salts that it names; empty for other bytes.
fn named_by(bytes: &[u8]) -> Vec<String> {
    let line = LedgerLine::decode(bytes.strip_suffix(b"\n").unwrap_or(bytes));
    let Ok((line, _)) = line else { return Vec::new() };
    let salts = line.body.salts.iter().map(|record| record.path(&TeamKey::of(&line.team_id)));
    salts.chain(line.body.adds.iter().map(|file| file.path.clone())).collect()
}

impl Write for Writer {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.inner.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl FileWriter for Writer {
    fn finish(self: Box<Self>, path: &str) -> Result<(), StoreError> {
        let Self { store, inner } = *self;
        inner.finish(path)?;
        let (is_done, content) = (store.next_sync(), store.content(path));
        let mut log = store.log();
        let trust = if is_done { Trust::Synced } else { Trust::Failed };
        log.files.insert(path.to_owned(), trust);
        if is_done {
            log.synced.insert((path.to_owned(), content));
            return Ok(());
        }
        log.failed.insert((path.to_owned(), content));
        Err(failed(path))
    }
}

/// Commits the history, and opens the archive again after each failure, as the program does. Returns the number of failures.
fn history_on(store: &Unsyncable) -> usize {
    let (mut done, mut failures) = (0, 0);
    while done < history().len() {
        assert!(failures < 3, "the commits do not continue after one failed sync");
        let step = || -> Result<usize, ArchiveError> {
            let archive = Archive::open_or_create(Arc::new(store.clone()), || "archive-1".to_owned())?;
            let archive = archive.with_random(Arc::new(|| 7));
            let mut writer = archive.writer(&team())?;
            let done = usize::try_from(writer.state().seq.0).unwrap();
            if done < history().len() {
                let draft = with_sessions(&mut writer, history().swap_remove(done))?;
                let _ = writer.commit(draft, now())?;
            }
            Ok(done + 1)
        };
        match step() {
            Ok(now) => done = now,
            Err(error) => {
                assert!(error.is_transient() && error.to_string().contains("sync"), "{error}");
                failures += 1;
            }
        }
    }
    failures
}

#[test]
fn an_unsynced_file_is_written_again_and_never_synced_again() {
    let whole = Unsyncable::new(u64::MAX);
    assert_eq!(history_on(&whole), 0);
    let syncs = whole.log().syncs;
    let mut given_up = 0;
    for fail_at in 0..syncs {
        let store = Unsyncable::new(fail_at);
        let failures = history_on(&store);
        let log = store.log();
        // The archive needs no snapshot: a commit succeeds without it.
        let is_snapshot = log.failed.iter().any(|(path, _)| path.starts_with(SNAPSHOTS));
        assert_eq!(failures, usize::from(!is_snapshot), "sync {fail_at} of {syncs}");
        assert_eq!(log.broken, Vec::<String>::new(), "sync {fail_at} of {syncs}");
        assert_eq!(log.unsure, BTreeMap::new(), "sync {fail_at} of {syncs}: never written again");
        let anew = log.failed.difference(&log.synced).map(|(path, _)| path).filter(|_| !is_snapshot);
        let anew: Vec<&String> = anew.collect();
        assert_eq!(anew, Vec::<&String>::new(), "sync {fail_at} of {syncs}: not written again with the same bytes");
        given_up += if is_snapshot { 0 } else { log.failed.len() };
        drop(log);
        let disk: Arc<dyn Store> = Arc::new(store.inner.clone());
        let archive = open(&disk);
        let all = ids_after(history().len());
        assert_eq!((ids_in(&archive), sessions_in(&archive)), (all.clone(), all), "sync {fail_at}");
        let report = verify(disk.as_ref(), &VerifyOptions::default()).unwrap();
        assert!(report.is_clean(), "sync {fail_at}: {report:?}");
    }
    assert!(given_up >= 10, "{given_up} files: the test has become thin");
}
