//! A disk that loses power: what was synced is there, of the rest anything may be.
//!
//! It does under each verb of the store what the store on a local disk does, in the same order: a new file's content is
//! durable once the file is synced, its name once its directory is; a renamed file's new name once the target's directory
//! is synced, the end of the old name once the source's is; a rename never loses the file. After every such step the disk
//! is photographed, and [`Photo::states`] says what a loss of power at that moment can leave. Directories are not part
//! of it: the store makes them, and syncs them, before it puts a file there.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;

use super::super::MemoryStore;
use super::super::store::{Blob, FileWriter, Guard, Listed, Store, StoreError, Tail};

const SECTOR: usize = 512;

/// A step that the disk only says it did: bugs on purpose, which the laws must notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    None,
    FileSync,
    DirectorySync,
    LedgerSync,
}

#[derive(Debug, Clone, Default)]
struct Inode {
    durable: Bytes,
    now: Bytes,
}

/// A change of names that no directory's sync has made durable yet.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    Link { path: String, inode: usize },
    Rename { from: String, to: String, inode: usize },
    Unlink { path: String },
}

/// The disk at one moment.
#[derive(Debug, Clone, Default)]
pub struct Photo {
    inodes: Vec<Inode>,
    durable_names: BTreeMap<String, usize>,
    names: BTreeMap<String, usize>,
    changes: Vec<Change>,
    /// Commits that were answered for by then.
    pub acknowledged: usize,
}

/// What is found of a content, of what was durable of it and what was written.
type Found = fn(&[u8], &[u8]) -> Vec<u8>;

/// How an unsynced content may be found.
const CONTENTS: [Found; 9] = [
    |_, now| now.to_vec(),
    |durable, _| durable.to_vec(),
    // Cut short: in the middle of what is new, after its first byte, before its last.
    |durable, now| now[..durable.len().min(now.len()).midpoint(now.len())].to_vec(),
    |durable, now| now[..(durable.len() + 1).min(now.len())].to_vec(),
    |durable, now| now[..now.len().saturating_sub(1).max(durable.len().min(now.len()))].to_vec(),
    // As long as it should be, and zeros where nothing was written.
    |durable, now| zeroed(durable, now, |_, _| true),
    |durable, now| zeroed(durable, now, |at, _| (at / SECTOR) % 2 == 1),
    |durable, now| zeroed(durable, now, |at, middle| at < middle),
    |durable, now| zeroed(durable, now, |at, middle| at >= middle),
];

fn zeroed(durable: &[u8], now: &[u8], is_lost: impl Fn(usize, usize) -> bool) -> Vec<u8> {
    let kept = durable.iter().zip(now).take_while(|(a, b)| a == b).count();
    let middle = kept.midpoint(now.len());
    let byte = |(at, byte): (usize, &u8)| if at >= kept && is_lost(at, middle) { 0 } else { *byte };
    now.iter().enumerate().map(byte).collect()
}

impl Photo {
    /// What a loss of power at this moment may leave: files by path.
    pub fn states(&self) -> Vec<BTreeMap<String, Bytes>> {
        let mut states = Vec::new();
        for names in self.possible_names() {
            let dirty: Vec<usize> = names.values().copied().filter(|at| self.is_dirty(*at)).collect();
            let ways = if dirty.is_empty() { 1 } else { CONTENTS.len() };
            for way in CONTENTS.iter().take(ways) {
                let content = |at: usize| match self.is_dirty(at) {
                    true => Bytes::from(way(&self.inodes[at].durable, &self.inodes[at].now)),
                    false => self.inodes[at].now.clone(),
                };
                states.push(names.iter().map(|(path, at)| (path.clone(), content(*at))).collect());
            }
        }
        states
    }

    fn is_dirty(&self, inode: usize) -> bool {
        self.inodes[inode].durable != self.inodes[inode].now
    }

    /// Every way in which unsynced changes of names may have been kept or lost.
    fn possible_names(&self) -> Vec<BTreeMap<String, usize>> {
        let mut found = vec![self.durable_names.clone()];
        for change in &self.changes {
            let with = |names: &BTreeMap<String, usize>| {
                let mut kept = names.clone();
                match change {
                    Change::Link { path, inode } => drop(kept.insert(path.clone(), *inode)),
                    Change::Unlink { path } => drop(kept.remove(path)),
                    Change::Rename { from, to, inode } => {
                        kept.insert(to.clone(), *inode);
                        let mut both = kept.clone();
                        kept.remove(from);
                        both.entry(from.clone()).or_insert(*inode);
                        return vec![names.clone(), kept, both];
                    }
                }
                vec![names.clone(), kept]
            };
            found = found.iter().flat_map(with).collect();
        }
        found
    }

    fn sync_directory(&mut self, directory: &str) {
        let is_in = |path: &str| path.rsplit_once('/').map_or("", |(above, _)| above) == directory;
        let mut left = Vec::new();
        for change in std::mem::take(&mut self.changes) {
            match change {
                Change::Link { path, inode } if is_in(&path) => drop(self.durable_names.insert(path, inode)),
                Change::Unlink { path } if is_in(&path) => drop(self.durable_names.remove(&path)),
                Change::Rename { from, to, inode } if is_in(&to) => {
                    self.durable_names.insert(to, inode);
                    match is_in(&from) {
                        true => drop(self.durable_names.remove(&from)),
                        false => left.push(Change::Unlink { path: from }),
                    }
                }
                other => left.push(other),
            }
        }
        self.changes = left;
    }
}

/// The disk of a running process.
#[derive(Clone)]
pub struct TornDisk {
    inner: Arc<Mutex<Inner>>,
    lie: Lie,
}

struct Inner {
    disk: Photo,
    photos: Vec<Photo>,
}

impl TornDisk {
    /// A disk with these files, all durable.
    pub fn new(files: &BTreeMap<String, Bytes>, acknowledged: usize, lie: Lie) -> Self {
        let mut disk = Photo { acknowledged, ..Photo::default() };
        for (path, content) in files {
            disk.names.insert(path.clone(), disk.inodes.len());
            disk.inodes.push(Inode { durable: content.clone(), now: content.clone() });
        }
        disk.durable_names = disk.names.clone();
        Self { inner: Arc::new(Mutex::new(Inner { disk, photos: Vec::new() })), lie }
    }

    pub fn acknowledge(&self) {
        self.inner().disk.acknowledged += 1;
    }

    pub fn photos(&self) -> Vec<Photo> {
        std::mem::take(&mut self.inner().photos)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// One step, and a photo after it.
    fn step<T>(&self, act: impl FnOnce(&mut Photo) -> T) -> T {
        let mut inner = self.inner();
        let answer = act(&mut inner.disk);
        let photo = inner.disk.clone();
        inner.photos.push(photo);
        answer
    }

    fn inode(&self, path: &str) -> Option<usize> {
        self.inner().disk.names.get(path).copied()
    }

    fn sync_file(&self, inode: usize, lie: Lie) {
        if self.lie != lie {
            self.step(|disk| disk.inodes[inode].durable = disk.inodes[inode].now.clone());
        }
    }

    fn sync_directory_of(&self, path: &str) {
        let directory = path.rsplit_once('/').map_or("", |(above, _)| above);
        if self.lie != Lie::DirectorySync {
            self.step(|disk| disk.sync_directory(directory));
        }
    }
}

impl Store for TornDisk {
    fn create(&self, path: &str) -> Result<Box<dyn FileWriter>, StoreError> {
        if self.inode(path).is_some() {
            return Err(StoreError::Exists { path: path.to_owned() });
        }
        let inode = self.step(|disk| {
            let inode = disk.inodes.len();
            disk.inodes.push(Inode::default());
            disk.names.insert(path.to_owned(), inode);
            disk.changes.push(Change::Link { path: path.to_owned(), inode });
            inode
        });
        Ok(Box::new(TornWriter { disk: self.clone(), inode, path: path.to_owned() }))
    }

    fn read(&self, path: &str) -> Result<Blob, StoreError> {
        let inner = self.inner();
        let found = inner.disk.names.get(path).map(|at| inner.disk.inodes[*at].now.clone());
        found.map(Blob::Bytes).ok_or_else(|| StoreError::NotFound { path: path.to_owned() })
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        let prefix = if directory.is_empty() { String::new() } else { format!("{directory}/") };
        let inner = self.inner();
        let under = inner.disk.names.iter().filter(|(path, _)| path.starts_with(&prefix));
        let bytes = |at: &usize| inner.disk.inodes[*at].now.len() as u64;
        Ok(under.map(|(path, at)| Listed { path: path.clone(), bytes: bytes(at), irregular: None }).collect())
    }

    fn publish(&self, from: &str, to: &str) -> Result<(), StoreError> {
        match (self.inode(from), self.inode(to)) {
            (Some(inode), _) => self.step(|disk| {
                disk.names.remove(from);
                disk.names.insert(to.to_owned(), inode);
                disk.changes.push(Change::Rename { from: from.to_owned(), to: to.to_owned(), inode });
            }),
            (None, Some(_)) => {}
            (None, None) => return Err(StoreError::NotFound { path: to.to_owned() }),
        }
        self.sync_directory_of(to);
        self.sync_directory_of(from);
        Ok(())
    }

    fn remove(&self, path: &str) -> Result<(), StoreError> {
        if self.inode(path).is_some() {
            self.step(|disk| {
                disk.names.remove(path);
                disk.changes.push(Change::Unlink { path: path.to_owned() });
            });
        }
        self.sync_directory_of(path);
        Ok(())
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        let keep = usize::try_from(tail.keep).unwrap();
        let found = self.inode(path).map_or_else(Bytes::new, |at| self.inner().disk.inodes[at].now.clone());
        let is_done = found.len() == keep + bytes.len() && &found[keep..] == bytes;
        if found.len() as u64 != tail.keep + tail.torn && !is_done {
            let expected = tail.keep + tail.torn;
            return Err(StoreError::Conflict { path: path.to_owned(), expected, found: found.len() as u64 });
        }
        let inode = match self.inode(path) {
            Some(inode) => inode,
            None => self.step(|disk| {
                disk.inodes.push(Inode::default());
                let inode = disk.inodes.len() - 1;
                disk.names.insert(path.to_owned(), inode);
                disk.changes.push(Change::Link { path: path.to_owned(), inode });
                inode
            }),
        };
        if !is_done && tail.torn > 0 {
            self.step(|disk| disk.inodes[inode].now.truncate(keep));
        }
        self.step(|disk| disk.inodes[inode].now = [&found[..keep], bytes].concat().into());
        self.sync_file(inode, Lie::LedgerSync);
        if keep == 0 {
            self.sync_directory_of(path);
        }
        Ok(())
    }

    fn lock(&self, _: &str) -> Result<Box<dyn Guard>, StoreError> {
        Ok(Box::new(NoGuard))
    }
}

struct NoGuard;

impl Guard for NoGuard {}

struct TornWriter {
    disk: TornDisk,
    inode: usize,
    path: String,
}

impl Write for TornWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let inode = self.inode;
        self.disk.step(|disk| {
            let content = [&disk.inodes[inode].now, buffer].concat();
            disk.inodes[inode].now = content.into();
        });
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FileWriter for TornWriter {
    fn finish(self: Box<Self>) -> Result<(), StoreError> {
        self.disk.sync_file(self.inode, Lie::FileSync);
        self.disk.sync_directory_of(&self.path);
        Ok(())
    }
}

/// The store that a process finds after the power came back.
pub fn store_of(files: &BTreeMap<String, Bytes>) -> MemoryStore {
    let store = MemoryStore::new();
    for (path, content) in files {
        store.tamper(path, Some(content.clone()));
    }
    store
}

/// The states of some photos, each once, with the commits that were answered for.
pub fn distinct_states(photos: &[Photo]) -> Vec<(usize, BTreeMap<String, Bytes>)> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for photo in photos {
        for state in photo.states() {
            let mut text = Vec::new();
            for (path, content) in &state {
                text.extend_from_slice(path.as_bytes());
                text.extend_from_slice(&crate::model::Digest::of(content).0);
            }
            if seen.insert((photo.acknowledged, crate::model::Digest::of(&text))) {
                found.push((photo.acknowledged, state));
            }
        }
    }
    found
}
