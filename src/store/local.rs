//! The store on a local disk. It syncs every final name with its directory, and every new directory with its parent.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::clock::wall_clock;
use crate::files::{self, Irregular, Links, if_exists};
use crate::model::Instant;
use crate::model::path::{LOCK_OF_NEW, LOCKS, SCRATCH};

use super::directories::{later_name, make_directory};
use super::syncs::{sync_directory, sync_file};
use super::{Blob, FileWriter, Guard, Listed, Store, StoreError, Tail, Verb};

/// Files up to this size are read into memory at once, so that a merge of many small files does not run out of file handles.
const READ_WHOLE_BYTES_MAX: u64 = 256 * 1024;
/// Number of attempts to place a file: `vacuum` can remove its empty directory just before.
const PLACED_MAX: usize = 3;

/// An archive in a directory of a local disk.
#[derive(Debug, Clone)]
pub struct LocalStore {
    root: PathBuf,
}

impl LocalStore {
    /// The store in `root`, which [`LOCK_OF_NEW`] creates. Touches nothing.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    fn full(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Creates a directory below the root. The root must exist: an archive that was moved away, or whose volume is not mounted, must
    /// not begin again in its place.
    fn make_directory(&self, directory: &Path) -> io::Result<()> {
        fs::metadata(&self.root)?;
        make_directory(directory)
    }

    /// Removes empty directories of one team. Another team's writer may need the shared ones at this moment.
    fn prune(&self, path: &str) {
        let mut directory = path;
        while let Some((above, name)) = directory.rsplit_once('/') {
            let is_first = directory == path;
            if !is_first && (!name.contains('=') || fs::remove_dir(self.full(directory)).is_err()) {
                return;
            }
            directory = above;
        }
    }

    fn walk(&self, directory: &Path, prefix: &str, found: &mut Vec<Listed>) -> io::Result<()> {
        let Some(entries) = if_exists(fs::read_dir(directory))? else { return Ok(()) };
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let path = match prefix {
                "" => name.to_string_lossy().into_owned(),
                _ => format!("{prefix}/{}", name.to_string_lossy()),
            };
            if path == LOCKS {
                continue;
            }
            let Some(meta) = if_exists(fs::symlink_metadata(entry.path()))? else { continue };
            if meta.is_dir() {
                self.walk(&entry.path(), &path, found)?;
                continue;
            }
            // The names of its directories count, too.
            let irregular = match entry.path().strip_prefix(&self.root).map(Path::to_str) {
                Ok(Some(_)) => irregularity(&meta),
                _ => Some("its name is not valid UTF-8".to_owned()),
            };
            if prefix == SCRATCH && irregular.is_none() && is_locked(&entry.path()) {
                continue;
            }
            found.push(Listed { irregular, ..Listed::new(path, meta.len(), modified(&meta)) });
        }
        Ok(())
    }

    /// Refuses a path through a symbolic link, which could lead anywhere.
    fn refuse_links(&self, verb: Verb, path: &str) -> Result<(), StoreError> {
        for (at, _) in path.match_indices('/') {
            match fs::symlink_metadata(self.full(&path[..at])) {
                Ok(meta) if meta.is_symlink() => {
                    let what = format!("its parent {} is a symbolic link", &path[..at]);
                    return Err(StoreError::irregular(path, what));
                }
                Ok(_) => {}
                // The operation creates a missing directory, or reports it.
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
                Err(e) => return Err(StoreError::io(verb, path, e)),
            }
        }
        Ok(())
    }

    /// A rename gives a file its final name, and works only within one file system.
    fn check_one_device(&self) -> io::Result<()> {
        let own = fs::metadata(&self.root)?.dev();
        for directory in [SCRATCH, "tables", "ledger"] {
            if let Ok(meta) = fs::metadata(self.full(directory))
                && meta.dev() != own
            {
                let message = format!("{directory}/ is on another file system than the archive's root");
                return Err(io::Error::new(ErrorKind::CrossesDevices, message));
            }
        }
        Ok(())
    }

    /// The last file with the same extension in the directory of `path`, if it is later.
    fn later(&self, path: &str, directory: &Path) -> io::Result<Option<String>> {
        let above = path.rsplit_once('/').map(|(above, _)| format!("{above}/")).unwrap_or_default();
        let names =
            fs::read_dir(directory)?.map(|entry| Ok(format!("{above}{}", entry?.file_name().to_string_lossy())));
        let names = names.collect::<io::Result<Vec<_>>>()?;
        Ok(later_name(path, names.iter().map(String::as_str)).map(str::to_owned))
    }

    /// A new file without a final name. The umask removes the rights of other users. The file is locked until it is closed, so no
    /// list shows it to the writer of another team, which could remove it.
    fn scratch_file(&self) -> io::Result<NamedTempFile> {
        let scratch = self.full(SCRATCH);
        self.make_directory(&scratch)?;
        let file = tempfile::Builder::new().permissions(fs::Permissions::from_mode(0o666)).tempfile_in(&scratch)?;
        file.as_file().lock()?;
        Ok(file)
    }

    /// Gives a finished file its final name. Syncing the directory makes a new name durable.
    fn place(&self, mut file: NamedTempFile, path: &str) -> io::Result<()> {
        let full = self.full(path);
        let directory = full.parent().unwrap_or(&self.root);
        for placed in 1.. {
            self.make_directory(directory)?;
            match file.persist(&full) {
                Ok(_) => break,
                Err(e) if e.error.kind() == ErrorKind::NotFound && placed < PLACED_MAX => file = e.file,
                Err(e) => return Err(e.error),
            }
        }
        sync_directory(directory)
    }
}

impl Store for LocalStore {
    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError> {
        let name = format!("{SCRATCH}/");
        self.refuse_links(Verb::Create, &name)?;
        let file = self.scratch_file().map_err(|e| StoreError::io(Verb::Create, &name, e))?;
        Ok(Box::new(LocalWriter { store: self.clone(), file }))
    }

    fn read(&self, path: &str) -> Result<Blob, StoreError> {
        self.refuse_links(Verb::Read, path)?;
        let found = |e: io::Error| match e.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => StoreError::not_found(path),
            _ => irregular(path, &e).unwrap_or_else(|| StoreError::io(Verb::Read, path, e)),
        };
        let file = files::open(&self.full(path), Links::Refuse).map_err(found)?;
        let len = file.metadata().map_err(found)?.len();
        let blob = Blob::File { file: Arc::new(file), len };
        if len > READ_WHOLE_BYTES_MAX {
            return Ok(blob);
        }
        blob.to_bytes().map(Blob::Bytes).map_err(found)
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        let mut found = Vec::new();
        let full = if directory.is_empty() {
            self.root.clone()
        } else {
            self.refuse_links(Verb::List, &format!("{directory}/"))?;
            self.full(directory)
        };
        self.walk(&full, directory, &mut found).map_err(|e| StoreError::io(Verb::List, directory, e))?;
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn remove(&self, paths: &[&str]) -> Result<(), StoreError> {
        let fail = |path: &str, e: io::Error| StoreError::io(Verb::Remove, path, e);
        for path in paths {
            self.refuse_links(Verb::Remove, path)?;
            match fs::remove_file(self.full(path)) {
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                removed => removed.map_err(|e| fail(path, e))?,
            }
        }
        let directories: BTreeMap<&str, &str> =
            paths.iter().map(|path| (path.rsplit_once('/').map_or("", |(directory, _)| directory), *path)).collect();
        for (directory, path) in directories {
            if_exists(sync_directory(&self.full(directory))).map_err(|e| fail(path, e))?;
            self.prune(path);
        }
        Ok(())
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        self.refuse_links(Verb::Append, path)?;
        let full = self.full(path);
        let directory = full.parent().unwrap_or(&self.root);
        self.make_directory(directory).map_err(failed(path, Verb::Create, true))?;
        if let Some(later) = self.later(path, directory).map_err(failed(path, Verb::List, true))? {
            return Err(StoreError::Later { path: path.to_owned(), later });
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(tail == Tail::default()).truncate(false);
        let file = files::open_with(&mut options, &full, Links::Refuse).map_err(|e| match e.kind() {
            ErrorKind::NotFound => StoreError::conflict(path, tail, 0),
            _ => irregular(path, &e).unwrap_or_else(|| failed(path, Verb::Append, true)(e)),
        })?;
        append_to(&file, path, tail, bytes)?;
        if tail.keep == 0 {
            sync_directory(directory).map_err(failed(path, Verb::Sync, false))?;
        }
        Ok(())
    }

    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        let fail = |e: io::Error| StoreError::io(Verb::Create, path, e);
        self.refuse_links(Verb::Create, path)?;
        let full = self.full(path);
        let directory = full.parent().unwrap_or(&self.root);
        self.make_directory(directory).map_err(fail)?;
        let mut file = self.scratch_file().map_err(fail)?;
        file.write_all(bytes).and_then(|()| sync_file(file.as_file())).map_err(fail)?;
        match file.persist_noclobber(&full) {
            Ok(_) => {}
            Err(e) if e.error.kind() == ErrorKind::AlreadyExists => {
                let found = self.read(path)?;
                if found.to_bytes().map_err(fail)? != bytes {
                    return Err(StoreError::conflict(path, Tail::default(), found.size()));
                }
            }
            Err(e) => return Err(fail(e.error)),
        }
        sync_directory(directory).map_err(fail)
    }

    fn now(&self) -> Result<Instant, StoreError> {
        Ok(wall_clock())
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Guard>, StoreError> {
        let path = format!("{LOCKS}/{name}.lock");
        let fail = |e: io::Error| StoreError::io(Verb::Lock, &path, e);
        // Check all directories now, so that a writer does not start and fail in the middle of a commit.
        [path.as_str(), "scratch/", "tables/", "ledger/"]
            .iter()
            .try_for_each(|path| self.refuse_links(Verb::Lock, path))?;
        let full = self.full(&path);
        if name == LOCK_OF_NEW {
            make_directory(&self.root).map_err(fail)?;
        }
        self.make_directory(full.parent().unwrap_or(&self.root)).map_err(fail)?;
        self.check_one_device().map_err(fail)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let file = files::open_with(&mut options, &full, Links::Refuse)
            .map_err(|e| irregular(&path, &e).unwrap_or_else(|| fail(e)))?;
        // A process holds this lock for milliseconds. Daemons that start together wait for it.
        let locked = if name == LOCK_OF_NEW { file.lock().map_err(TryLockError::Error) } else { file.try_lock() };
        match locked {
            Ok(()) => Ok(Box::new(LocalGuard(file))),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked { name: name.to_owned() }),
            Err(TryLockError::Error(e)) => Err(fail(e)),
        }
    }
}

struct LocalGuard(File);

impl Drop for LocalGuard {
    /// Unlock explicitly. Closing is not enough: a child process between fork and exec still has the file open.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

struct LocalWriter {
    store: LocalStore,
    file: NamedTempFile,
}

impl Write for LocalWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.file.as_file_mut().write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_file_mut().flush()
    }
}

impl FileWriter for LocalWriter {
    fn finish(self: Box<Self>, path: &str) -> Result<(), StoreError> {
        let Self { store, file } = *self;
        store.refuse_links(Verb::Sync, path)?;
        let synced = sync_file(file.as_file()).and_then(|()| store.place(file, path));
        synced.map_err(|e| StoreError::io(Verb::Sync, path, e))
    }
}

/// Whether a writer still has this file open.
fn is_locked(path: &Path) -> bool {
    let file = files::open(path, Links::Refuse);
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The time of the last write.
fn modified(meta: &fs::Metadata) -> Instant {
    Instant::from_seconds(meta.mtime()).plus(Duration::from_nanos(meta.mtime_nsec().unsigned_abs()))
}

/// The failure of an append; with `undone`, it is known to have changed nothing.
fn failed(path: &str, verb: Verb, undone: bool) -> impl Fn(io::Error) -> StoreError {
    move |source| StoreError::Io { verb, path: path.to_owned(), source, undone }
}

/// Writes `bytes` at their offset in an open file, and syncs it.
fn append_to(file: &File, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
    let meta = file.metadata().map_err(failed(path, Verb::Append, true))?;
    let len = meta.len();
    if len == tail.keep + bytes.len() as u64 && holds(file, tail.keep, bytes) {
        // After a failed sync, only the memory may hold these bytes, and another sync would write nothing. So write them again. The
        // file keeps its time, which tells the age of its last line.
        file.write_all_at(bytes, tail.keep).map_err(failed(path, Verb::Append, false))?;
        if let Ok(modified) = meta.modified() {
            let _ = file.set_modified(modified);
        }
    } else {
        if len != tail.keep + tail.torn {
            return Err(StoreError::conflict(path, tail, len));
        }
        if tail.torn > 0 {
            file.set_len(tail.keep).map_err(failed(path, Verb::Append, false))?;
        }
        if let Err(e) = file.write_all_at(bytes, tail.keep) {
            let is_restored = file.set_len(tail.keep).is_ok();
            return Err(failed(path, Verb::Append, is_restored && tail.torn == 0)(e));
        }
    }
    sync_file(file).map_err(failed(path, Verb::Sync, false))
}

fn holds(file: &File, at: u64, bytes: &[u8]) -> bool {
    let mut found = vec![0; bytes.len()];
    file.read_exact_at(&mut found, at).is_ok() && found == bytes
}

/// The error for a path that is no plain file.
fn irregular(path: &str, error: &io::Error) -> Option<StoreError> {
    Some(StoreError::irregular(path, Irregular::in_error(error)?.to_string()))
}

/// Why a directory entry is not a trustworthy plain file, if so.
fn irregularity(meta: &fs::Metadata) -> Option<String> {
    match Irregular::of(meta.file_type()) {
        Some(irregular) => Some(irregular.to_string()),
        None if meta.nlink() > 1 => Some(format!(
            "a file with {} names (hard links): a write through another name would change it",
            meta.nlink()
        )),
        None => None,
    }
}

#[cfg(test)]
mod tests;
