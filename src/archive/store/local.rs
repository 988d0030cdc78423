//! The store on a local disk. Every name that counts is synced with its directory, and those that were made for it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::scope;

use super::{Blob, FileWriter, Guard, Listed, Store, StoreError, Tail, Verb};

/// Files up to this size are read into memory at once, so that merging many small files does not run out of handles.
const READ_WHOLE_BYTES_MAX: u64 = 256 * 1024;
const LOCKS: &str = "locks";
/// Directories that are synced at once.
const SYNCS_AT_ONCE: usize = 4;

/// An archive in a directory of a local disk.
#[derive(Debug, Clone)]
pub struct LocalStore {
    root: PathBuf,
}

impl LocalStore {
    /// The store in `root`, which need not be there yet. Nothing is touched.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    fn full(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Makes a directory and those above it, each synced into the one above.
    fn make_directory(&self, directory: &Path) -> io::Result<()> {
        make_directories(&BTreeMap::from([(directory.to_path_buf(), "")])).map_err(|(_, error)| error)
    }

    /// The directories of some paths, each with the first of its paths.
    fn directories<'p>(&self, paths: impl Iterator<Item = &'p str>) -> Directories<'p> {
        let mut found = Directories::new();
        for path in paths {
            let full = self.full(path);
            found.entry(full.parent().unwrap_or(&self.root).to_path_buf()).or_insert(path);
        }
        found
    }

    /// Takes away directories of one team that became empty. Others may be needed by another team's writer just now.
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
        let entries = match fs::read_dir(directory) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
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
            let meta = match fs::symlink_metadata(entry.path()) {
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                other => other?,
            };
            if meta.is_dir() {
                self.walk(&entry.path(), &path, found)?;
                continue;
            }
            let irregular = match name.to_str() {
                None => Some("its name is not UTF-8".to_owned()),
                Some(_) => irregularity(&meta),
            };
            found.push(Listed { path, bytes: meta.len(), irregular });
        }
        Ok(())
    }

    /// The first directory of a path that is a link, which could lead anywhere.
    fn link_on_the_way<'a>(&self, path: &'a str) -> io::Result<Option<&'a str>> {
        for (at, _) in path.match_indices('/') {
            if fs::symlink_metadata(self.full(&path[..at]))?.is_symlink() {
                return Ok(Some(&path[..at]));
            }
        }
        Ok(None)
    }

    /// Publishing renames, which works within one file system only.
    fn check_one_device(&self) -> io::Result<()> {
        let own = fs::metadata(&self.root)?.dev();
        for directory in ["staging", "data", "recent", "ledger"] {
            if let Ok(meta) = fs::metadata(self.full(directory))
                && meta.dev() != own
            {
                let message = format!("{directory}/ lies on another file system than the archive's root");
                return Err(io::Error::new(ErrorKind::CrossesDevices, message));
            }
        }
        Ok(())
    }

    fn append_file(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        let fail = |verb: Verb, source: io::Error, undone: bool| StoreError::Io {
            verb,
            path: path.to_owned(),
            source,
            undone,
        };
        let full = self.full(path);
        let directory = full.parent().unwrap_or(&self.root);
        self.make_directory(directory).map_err(|e| fail(Verb::Create, e, true))?;
        let file =
            OpenOptions::new().read(true).write(true).create(tail == Tail::default()).truncate(false).open(&full);
        let file = file.map_err(|e| match e.kind() {
            ErrorKind::NotFound => StoreError::Conflict { path: path.to_owned(), expected: tail.keep, found: 0 },
            _ => fail(Verb::Append, e, true),
        })?;
        let len = file.metadata().map_err(|e| fail(Verb::Append, e, true))?.len();
        let is_done = len == tail.keep + bytes.len() as u64 && holds(&file, tail.keep, bytes);
        if len != tail.keep + tail.torn && !is_done {
            return Err(StoreError::Conflict { path: path.to_owned(), expected: tail.keep + tail.torn, found: len });
        }
        if !is_done && tail.torn > 0 {
            file.set_len(tail.keep).map_err(|e| fail(Verb::Append, e, false))?;
        }
        if let Err(e) = file.write_all_at(bytes, tail.keep) {
            let is_restored = !is_done && file.set_len(tail.keep).is_ok();
            return Err(fail(Verb::Append, e, is_restored && tail.torn == 0));
        }
        file.sync_all().map_err(|e| fail(Verb::Sync, e, false))?;
        if tail.keep == 0 {
            sync_directory(directory).map_err(|e| fail(Verb::Sync, e, false))?;
        }
        Ok(())
    }
}

impl Store for LocalStore {
    fn create(&self, path: &str) -> Result<Box<dyn FileWriter>, StoreError> {
        let full = self.full(path);
        let directory = full.parent().unwrap_or(&self.root).to_path_buf();
        self.make_directory(&directory).map_err(|e| StoreError::io(Verb::Create, path, e))?;
        match OpenOptions::new().write(true).create_new(true).open(&full) {
            Ok(file) => Ok(Box::new(LocalWriter { file, directory, path: path.to_owned() })),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(StoreError::Exists { path: path.to_owned() }),
            Err(e) => Err(StoreError::io(Verb::Create, path, e)),
        }
    }

    fn read(&self, path: &str) -> Result<Blob, StoreError> {
        let full = self.full(path);
        let found = |e: io::Error| match e.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => StoreError::NotFound { path: path.to_owned() },
            _ => StoreError::io(Verb::Read, path, e),
        };
        if let Some(link) = self.link_on_the_way(path).map_err(found)? {
            let what = format!("lies behind {link}, which is a symbolic link");
            return Err(StoreError::Irregular { path: path.to_owned(), what });
        }
        let meta = fs::symlink_metadata(&full).map_err(found)?;
        if !meta.is_file() {
            let what = irregularity(&meta).unwrap_or_else(|| "not a plain file".to_owned());
            return Err(StoreError::Irregular { path: path.to_owned(), what });
        }
        let file = File::open(&full).map_err(found)?;
        let len = file.metadata().map_err(found)?.len();
        let blob = Blob::File { file: Arc::new(file), len };
        if len > READ_WHOLE_BYTES_MAX {
            return Ok(blob);
        }
        blob.to_bytes().map(Blob::Bytes).map_err(found)
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        let mut found = Vec::new();
        let full = if directory.is_empty() { self.root.clone() } else { self.full(directory) };
        self.walk(&full, directory, &mut found).map_err(|e| StoreError::io(Verb::List, directory, e))?;
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn publish(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.publish_all(&[(from, to)])
    }

    fn remove(&self, path: &str) -> Result<(), StoreError> {
        self.remove_all(&[path])
    }

    fn publish_all(&self, moves: &[(&str, &str)]) -> Result<(), StoreError> {
        let fail = |(path, e): (&str, io::Error)| StoreError::io(Verb::Publish, path, e);
        let sources = self.directories(moves.iter().map(|(from, _)| *from));
        let targets = self.directories(moves.iter().map(|(_, to)| *to));
        make_directories(&targets).map_err(fail)?;
        for (from, to) in moves {
            match fs::rename(self.full(from), self.full(to)) {
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    if fs::symlink_metadata(self.full(to)).is_err() {
                        return Err(StoreError::NotFound { path: (*to).to_owned() });
                    }
                }
                moved => moved.map_err(|e| fail((to, e)))?,
            }
        }
        // A new name is durable before the old one is gone.
        sync_directories(&targets, sync_directory).map_err(fail)?;
        sync_directories(&sources, sync_if_there).map_err(fail)?;
        sources.values().for_each(|path| self.prune(path));
        Ok(())
    }

    fn remove_all(&self, paths: &[&str]) -> Result<(), StoreError> {
        let fail = |(path, e): (&str, io::Error)| StoreError::io(Verb::Remove, path, e);
        for path in paths {
            match fs::remove_file(self.full(path)) {
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                removed => removed.map_err(|e| fail((path, e)))?,
            }
        }
        let directories = self.directories(paths.iter().copied());
        sync_directories(&directories, sync_if_there).map_err(fail)?;
        directories.values().for_each(|path| self.prune(path));
        Ok(())
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        self.append_file(path, tail, bytes)
    }

    fn lock(&self, name: &str) -> Result<Box<dyn Guard>, StoreError> {
        let path = format!("{LOCKS}/{name}.lock");
        let fail = |e: io::Error| StoreError::io(Verb::Lock, &path, e);
        let full = self.full(&path);
        self.make_directory(full.parent().unwrap_or(&self.root)).map_err(fail)?;
        self.check_one_device().map_err(fail)?;
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&full).map_err(fail)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(LocalGuard(file))),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked { name: name.to_owned() }),
            Err(TryLockError::Error(e)) => Err(fail(e)),
        }
    }
}

struct LocalGuard(File);

impl Guard for LocalGuard {}

impl Drop for LocalGuard {
    /// Closing alone would leave the lock to a program that is being started just now: it has the file, too, until it runs.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

struct LocalWriter {
    file: File,
    directory: PathBuf,
    path: String,
}

impl Write for LocalWriter {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.file.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl FileWriter for LocalWriter {
    fn finish(self: Box<Self>) -> Result<(), StoreError> {
        let synced = self.file.sync_all().and_then(|()| sync_directory(&self.directory));
        synced.map_err(|e| StoreError::io(Verb::Sync, &self.path, e))
    }
}

/// Directories, each with a path in it that errors name.
type Directories<'p> = BTreeMap<PathBuf, &'p str>;

/// Makes those that are missing, and those above them; then each is synced into the one above.
fn make_directories<'p>(wanted: &Directories<'p>) -> Result<(), (&'p str, io::Error)> {
    let mut made: Vec<&Path> = Vec::new();
    let mut gained = Directories::new();
    for (directory, path) in wanted {
        let is_missing = |it: &&Path| !it.as_os_str().is_empty() && !fs::metadata(it).is_ok_and(|meta| meta.is_dir());
        let missing: Vec<&Path> = directory.ancestors().take_while(is_missing).collect();
        for directory in missing.into_iter().rev() {
            match fs::create_dir(directory) {
                Ok(()) => made.push(directory),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err((path, e)),
            }
            gained.entry(directory.parent().unwrap_or(Path::new("")).to_path_buf()).or_insert(*path);
        }
    }
    // A directory whose name may not be durable is not left to be found there the next time.
    sync_directories(&gained, sync_directory)
        .inspect_err(|_| made.iter().rev().for_each(|directory| drop(fs::remove_dir(directory))))
}

/// Syncs several at once: file systems write down together what they are asked for together.
fn sync_directories<'p>(
    directories: &Directories<'p>,
    sync: impl Fn(&Path) -> io::Result<()> + Sync,
) -> Result<(), (&'p str, io::Error)> {
    let each = directories.len().div_ceil(SYNCS_AT_ONCE).max(1);
    let all: Vec<(&PathBuf, &'p str)> = directories.iter().map(|(directory, path)| (directory, *path)).collect();
    let some = |some: &[(&PathBuf, &'p str)]| {
        some.iter().try_for_each(|(directory, path)| sync(directory).map_err(|error| (*path, error)))
    };
    let mut parts = all.chunks(each);
    let first = parts.next().unwrap_or_default();
    scope(|scope| {
        let others: Vec<_> = parts.map(|part| scope.spawn(|| some(part))).collect();
        let first = some(first);
        let others = others.into_iter().map(|thread| thread.join().expect("BUG: syncing does not panic"));
        others.fold(first, Result::and)
    })
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(directory)?.sync_all()
}

/// What became empty may be gone already.
fn sync_if_there(directory: &Path) -> io::Result<()> {
    match sync_directory(directory) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        synced => synced,
    }
}

fn holds(file: &File, at: u64, bytes: &[u8]) -> bool {
    let mut found = vec![0; bytes.len()];
    file.read_exact_at(&mut found, at).is_ok() && found == bytes
}

/// Why a directory entry cannot be trusted to be the file that was written, if it cannot.
fn irregularity(meta: &fs::Metadata) -> Option<String> {
    if meta.file_type().is_symlink() {
        Some("a symbolic link, not a file".to_owned())
    } else if !meta.is_file() {
        Some("not a plain file".to_owned())
    } else if meta.nlink() > 1 {
        Some(format!("a file of {} names (hard links): it can be changed through the others", meta.nlink()))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between `fork` and `exec` a child has every open file; so has whoever was handed a copy.
    #[test]
    fn a_lock_that_is_given_back_is_free_though_another_has_its_file_open() {
        let directory = tempfile::tempdir().unwrap();
        let store = LocalStore::new(directory.path());
        let file = File::create(directory.path().join("held")).unwrap();
        file.try_lock().unwrap();
        let inherited = file.try_clone().unwrap();
        drop(LocalGuard(file));
        File::open(directory.path().join("held")).unwrap().try_lock().unwrap();
        drop(inherited);
        let guard = store.lock("team=a").unwrap();
        assert!(matches!(store.lock("team=a").err(), Some(StoreError::Locked { .. })));
        drop(guard);
        let _again = store.lock("team=a").unwrap();
    }
}
