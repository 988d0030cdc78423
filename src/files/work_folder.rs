//! Folders for unfinished work, such as the engine's spill files or a pack that is being written. Each is removed with its owner.
//!
//! A killed process leaves its folder behind. A process holds a lock on its folder while it lives, so the next run
//! recognises stale folders and removes them.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tempfile::TempDir;

/// Another process can take a new, not yet locked directory for a stale one and remove it: then try again.
const MAKE_TRIES_MAX: u32 = 16;
/// The engine's threads can still write while the folder is being removed.
const REMOVE_TRIES_MAX: u32 = 50;

/// The folders of this process, for [`remove_work_folders`].
static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A new folder for its owner alone. Removed with its content on drop.
pub struct WorkFolder {
    directory: TempDir,
    /// Holds the lock; the system releases it when the process ends.
    _lock: File,
}

impl WorkFolder {
    /// Creates a folder under `parent`, and removes this user's stale folders with that prefix there.
    ///
    /// # Errors
    /// When `parent` is not writable.
    pub fn make(parent: &Path, prefix: &str) -> io::Result<Self> {
        remove_stale_folders(parent, prefix);
        for _ in 0..MAKE_TRIES_MAX {
            let private = fs::Permissions::from_mode(0o700);
            let directory = tempfile::Builder::new().prefix(prefix).permissions(private).tempdir_in(parent)?;
            let lock = match File::open(directory.path()) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            // Some network disks lock no folder: then no process takes this folder for a stale one.
            let is_taken = matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
            if is_taken || !is_same(&lock, directory.path()) {
                continue;
            }
            LIVE.lock().push(directory.path().to_owned());
            return Ok(Self { directory, _lock: lock });
        }
        Err(io::Error::other("another program removes each new directory at once"))
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        let path = self.directory.path();
        remove(path);
        LIVE.lock().retain(|other| other != path);
    }
}

/// Removes all folders of this process, just before it ends.
pub fn remove_work_folders() {
    for path in LIVE.lock().drain(..) {
        remove(&path);
    }
}

/// The next run removes the rest as stale.
fn remove(path: &Path) {
    for _ in 0..REMOVE_TRIES_MAX {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            _ => return,
        }
    }
}

fn is_same(open: &File, path: &Path) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let (open, there) = (open.metadata().map(identity), fs::symlink_metadata(path).map(identity));
    matches!((open, there), (Ok(open), Ok(there)) if open == there)
}

/// Removes the folders of this user under `parent` that begin with `prefix`, and that no process holds a lock on. Links do not count, so
/// nothing outside can be removed.
pub fn remove_stale_folders(parent: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let user = rustix::process::geteuid().as_raw();
    for entry in entries.filter_map(Result::ok) {
        if !entry.file_name().to_string_lossy().starts_with(prefix) {
            continue;
        }
        let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW;
        let open = fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(entry.path());
        let Ok(open) = open else { continue };
        let is_ours = open.metadata().is_ok_and(|found| found.is_dir() && found.uid() == user);
        if is_ours && open.try_lock().is_ok() && is_same(&open, &entry.path()) {
            tracing::debug!("removing {}, left by a process that was killed", entry.path().display());
            remove(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "annals-sql-";

    fn entries(parent: &Path) -> Vec<String> {
        let names = fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_work_folder_is_removed_with_its_content() {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::make(parent.path(), PREFIX).unwrap();
        File::create(folder.path().join("duckdb_temp_storage-0.tmp")).unwrap();
        assert_eq!(entries(parent.path()).len(), 1);
        let mode = fs::metadata(folder.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "only the owner can read spilled files, under any umask");
        drop(folder);
        assert!(entries(parent.path()).is_empty());
    }

    #[test]
    fn only_unlocked_work_folders_are_stale() {
        let parent = tempfile::tempdir().unwrap();
        let place = |name: &str| parent.path().join(name);
        let stale = place("annals-sql-stale");
        fs::create_dir(&stale).unwrap();
        File::create(stale.join("duckdb_temp_storage-0.tmp")).unwrap();
        fs::create_dir(place("annals-other")).unwrap();
        fs::create_dir(place("elsewhere")).unwrap();
        File::create(place("elsewhere").join("kept")).unwrap();
        std::os::unix::fs::symlink(place("elsewhere"), place("annals-sql-link")).unwrap();
        File::create(place("annals-sql-file")).unwrap();
        let held = WorkFolder::make(parent.path(), PREFIX).unwrap();
        let other = WorkFolder::make(parent.path(), PREFIX).unwrap();
        assert!(!stale.try_exists().unwrap());
        assert!(place("elsewhere").join("kept").is_file());
        assert!(held.path().is_dir() && other.path().is_dir());
        let kept = entries(parent.path());
        assert_eq!(kept.len(), 6, "{kept:?}");
    }
}
