//! A disk that loses power: synced data remains; unsynced data can become anything.
//!
//! It performs the same steps as the local store, in the same order. A new file's content is durable after the file's
//! sync, and its name after its directory's sync. The new name of a renamed file is durable after the target directory's
//! sync, and the removal of the old name after the source directory's sync. A rename never loses the file. For several
//! removed files, each directory is synced once, after all removals. After every step, a `DiskState` records the disk, and
//! tells the possible results of a power loss at that moment. Directories are left out: the store creates and syncs them
//! before it puts a file there.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use fastrand::Rng;
use parking_lot::{Mutex, MutexGuard};

use super::torn_contents::{CONTENTS, torn};
use crate::model::Instant;
use crate::store::{Blob, FileWriter, Guard, Listed, MemoryStore, Store, StoreError, Tail, later_name};

/// Up to this number of unsynced renames, the model tries every combination. For more renames, it tries some.
const CHANGES_ALL_MAX: usize = 2;

/// A step that the disk only claims to have done: a planted bug, which the laws must detect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    None,
    FileSync,
    DirectorySync,
    LedgerSync,
}

#[derive(Debug, Clone)]
struct Inode {
    durable: Bytes,
    now: Bytes,
    /// When it last changed, by the disk's clock. A power loss does not change it.
    modified: Instant,
}

impl Inode {
    fn new(content: &Bytes, modified: Instant) -> Self {
        Self { durable: content.clone(), now: content.clone(), modified }
    }

    fn write(&mut self, content: Bytes, modified: Instant) {
        (self.now, self.modified) = (content, modified);
    }
}

/// A name change that no sync of its directory has made durable.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    Link { path: String, inode: usize },
    Rename { from: String, to: String, inode: usize },
    Unlink { path: String },
}

impl Change {
    /// The two possible effects: the whole change, or only the new name of a rename.
    fn ways(&self, names: &BTreeMap<String, usize>) -> Vec<BTreeMap<String, usize>> {
        let mut done = names.clone();
        let mut half = None;
        match self {
            Change::Link { path, inode } => drop(done.insert(path.clone(), *inode)),
            Change::Unlink { path } => drop(done.remove(path)),
            Change::Rename { from, to, inode } => {
                done.insert(to.clone(), *inode);
                let mut both = done.clone();
                both.entry(from.clone()).or_insert(*inode);
                half = Some(both);
                done.remove(from);
            }
        }
        let half = half.unwrap_or_else(|| done.clone());
        vec![done, half]
    }
}

/// The disk at one moment.
#[derive(Debug, Clone, Default)]
pub struct DiskState {
    inodes: Vec<Inode>,
    durable_names: BTreeMap<String, usize>,
    names: BTreeMap<String, usize>,
    changes: Vec<Change>,
    /// Number of commits acknowledged by then.
    pub acknowledged: usize,
}

pub type Files = BTreeMap<String, Bytes>;

impl DiskState {
    /// The possible results of a power loss at this moment, if all unsynced contents change in the same way.
    pub fn alike(&self) -> impl Iterator<Item = Files> + '_ {
        self.possible_names().into_iter().flat_map(move |names| {
            let ways = if names.values().any(|at| self.is_dirty(*at)) { CONTENTS.len() } else { 1 };
            CONTENTS.iter().take(ways).map(move |way| self.files(&names, way))
        })
    }

    /// Whether a power loss at this moment changes nothing.
    pub fn is_settled(&self) -> bool {
        self.changes.is_empty() && !self.names.values().any(|at| self.is_dirty(*at))
    }

    fn files(&self, names: &BTreeMap<String, usize>, mut found: impl FnMut(&[u8], &[u8]) -> Vec<u8>) -> Files {
        let mut content = |at: usize| match self.is_dirty(at) {
            true => Bytes::from(found(&self.inodes[at].durable, &self.inodes[at].now)),
            false => self.inodes[at].now.clone(),
        };
        names.iter().map(|(path, at)| (path.clone(), content(*at))).collect()
    }

    /// A possible result in which each name and each content changes in its own way.
    pub fn draw(&self, chance: &mut Rng) -> Files {
        let kept = chance.f64();
        let mut names = self.durable_names.clone();
        for change in &self.changes {
            if chance.f64() < kept {
                names = change.ways(&names).swap_remove(usize::from(chance.bool()));
            }
        }
        self.files(&names, |durable, now| match chance.usize(..4 * CONTENTS.len()) {
            way if way < CONTENTS.len() => CONTENTS[way](durable, now),
            _ => torn(durable, now, chance),
        })
    }

    fn is_dirty(&self, inode: usize) -> bool {
        self.inodes[inode].durable != self.inodes[inode].now
    }

    /// Combinations of kept and lost name changes: all, or the two extremes if there are many.
    fn possible_names(&self) -> Vec<BTreeMap<String, usize>> {
        if self.changes.len() > CHANGES_ALL_MAX {
            return vec![self.durable_names.clone(), self.names.clone()];
        }
        let mut found = vec![self.durable_names.clone()];
        for change in &self.changes {
            found = found.into_iter().flat_map(|names| [vec![names.clone()], change.ways(&names)].concat()).collect();
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

/// What happens while a writer stalls.
type Meanwhile = Box<dyn FnOnce() + Send>;

struct Inner {
    disk: DiskState,
    moments: Vec<DiskState>,
    /// The disk's clock. It begins in 1970.
    clock: Instant,
    /// The writer of the next new line stalls before its append.
    stall: Option<Meanwhile>,
}

impl TornDisk {
    /// A disk with these files, all durable.
    pub fn new(files: &BTreeMap<String, Bytes>, acknowledged: usize, lie: Lie) -> Self {
        let (mut disk, clock) = (DiskState { acknowledged, ..DiskState::default() }, Instant::from_nanos(0));
        for (path, content) in files {
            disk.names.insert(path.clone(), disk.inodes.len());
            disk.inodes.push(Inode::new(content, clock));
        }
        disk.durable_names = disk.names.clone();
        Self { inner: Arc::new(Mutex::new(Inner { disk, moments: Vec::new(), clock, stall: None })), lie }
    }

    pub fn set_now(&self, now: Instant) {
        self.inner().clock = now;
    }

    /// The writer of the next new line stalls after its files and before its append; `meanwhile` happens.
    pub fn stall_before_append(&self, meanwhile: Meanwhile) {
        self.inner().stall = Some(meanwhile);
    }

    pub fn acknowledge(&self) {
        self.inner().disk.acknowledged += 1;
    }

    pub fn moments(&self) -> Vec<DiskState> {
        std::mem::take(&mut self.inner().moments)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Performs one step at the disk's time, and records the disk.
    fn step<T>(&self, act: impl FnOnce(&mut DiskState, Instant) -> T) -> T {
        let mut inner = self.inner();
        let clock = inner.clock;
        let answer = act(&mut inner.disk, clock);
        let moment = inner.disk.clone();
        inner.moments.push(moment);
        answer
    }

    fn inode(&self, path: &str) -> Option<usize> {
        self.inner().disk.names.get(path).copied()
    }

    fn sync_file(&self, inode: usize, lie: Lie) {
        if self.lie != lie {
            self.step(|disk, _| disk.inodes[inode].durable = disk.inodes[inode].now.clone());
        }
    }

    /// Syncs each directory once.
    fn sync_directories_of<'p>(&self, paths: impl Iterator<Item = &'p str>) {
        let directories: BTreeSet<&str> =
            paths.map(|path| path.rsplit_once('/').map_or("", |(above, _)| above)).collect();
        if self.lie != Lie::DirectorySync {
            directories.into_iter().for_each(|directory| self.step(|disk, _| disk.sync_directory(directory)));
        }
    }
}

impl Store for TornDisk {
    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError> {
        let (inode, scratch) = self.step(|disk, now| {
            let inode = disk.inodes.len();
            let scratch = format!("scratch/{inode}");
            disk.inodes.push(Inode::new(&Bytes::new(), now));
            disk.names.insert(scratch.clone(), inode);
            disk.changes.push(Change::Link { path: scratch.clone(), inode });
            (inode, scratch)
        });
        Ok(Box::new(TornWriter { disk: self.clone(), inode, scratch }))
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
        let entry = |(path, at): (&String, &usize)| {
            let Inode { now, modified, .. } = &inner.disk.inodes[*at];
            Listed { path: path.clone(), bytes: now.len() as u64, modified: *modified, tag: None, irregular: None }
        };
        Ok(under.map(entry).collect())
    }

    fn remove(&self, paths: &[&str]) -> Result<(), StoreError> {
        for path in paths.iter().copied().filter(|path| self.inode(path).is_some()) {
            self.step(|disk, _| {
                disk.names.remove(path);
                disk.changes.push(Change::Unlink { path: path.to_owned() });
            });
        }
        self.sync_directories_of(paths.iter().copied());
        Ok(())
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        let later = later_name(path, self.inner().disk.names.keys().map(String::as_str)).map(str::to_owned);
        if let Some(later) = later {
            return Err(StoreError::Later { path: path.to_owned(), later });
        }
        let keep = usize::try_from(tail.keep).unwrap();
        let found = self.inode(path).map_or_else(Bytes::new, |at| self.inner().disk.inodes[at].now.clone());
        let is_done = found.len() == keep + bytes.len() && &found[keep..] == bytes;
        let stall = if is_done { None } else { self.inner().stall.take() };
        if let Some(meanwhile) = stall {
            meanwhile();
            return self.append(path, tail, bytes);
        }
        if found.len() as u64 != tail.keep + tail.torn && !is_done {
            let expected = tail.keep + tail.torn;
            return Err(StoreError::Conflict { path: path.to_owned(), expected, found: found.len() as u64 });
        }
        let inode = match self.inode(path) {
            Some(inode) => inode,
            None => self.step(|disk, now| {
                disk.inodes.push(Inode::new(&Bytes::new(), now));
                let inode = disk.inodes.len() - 1;
                disk.names.insert(path.to_owned(), inode);
                disk.changes.push(Change::Link { path: path.to_owned(), inode });
                inode
            }),
        };
        if !is_done && tail.torn > 0 {
            self.step(|disk, now| disk.inodes[inode].write(found.slice(..keep), now));
        }
        if !is_done {
            self.step(|disk, now| disk.inodes[inode].write([&found[..keep], bytes].concat().into(), now));
        }
        self.sync_file(inode, Lie::LedgerSync);
        if keep == 0 {
            self.sync_directories_of([path].into_iter());
        }
        Ok(())
    }

    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.append(path, Tail::default(), bytes)
    }

    fn lock(&self, _: &str) -> Result<Box<dyn Guard>, StoreError> {
        Ok(Box::new(()))
    }

    fn now(&self) -> Result<Instant, StoreError> {
        Ok(self.inner().clock)
    }
}

struct TornWriter {
    disk: TornDisk,
    inode: usize,
    scratch: String,
}

impl Write for TornWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let inode = self.inode;
        self.disk.step(|disk, now| {
            let content = [&disk.inodes[inode].now, buffer].concat();
            disk.inodes[inode].write(content.into(), now);
        });
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FileWriter for TornWriter {
    fn finish(self: Box<Self>, path: &str) -> Result<(), StoreError> {
        let Self { disk, inode, scratch } = *self;
        disk.sync_file(inode, Lie::FileSync);
        disk.step(|disk, _| {
            disk.names.remove(&scratch);
            disk.names.insert(path.to_owned(), inode);
            disk.changes.push(Change::Rename { from: scratch, to: path.to_owned(), inode });
        });
        disk.sync_directories_of([path].into_iter());
        Ok(())
    }
}

/// The store after the power comes back.
pub fn store_of(files: &BTreeMap<String, Bytes>) -> MemoryStore {
    let store = MemoryStore::new();
    for (path, content) in files {
        store.tamper(path, Some(content.clone()));
    }
    store
}
