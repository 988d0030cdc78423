//! The spill directories of the engine: each engine has its own, which is removed with it.
//!
//! A killed process leaves its directory behind. A process holds a lock on its directory while it lives, so the next run
//! recognises stale directories and removes them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tempfile::TempDir;

use crate::report::ReportError;

const PREFIX: &str = "annals-sql-";
/// Another process can take a new, not yet locked directory for a stale one and remove it: then try again.
const MAKE_TRIES_MAX: u32 = 16;
/// The engine's threads can still write while the directory is being removed.
const REMOVE_TRIES_MAX: u32 = 50;

/// The directories of this process, for [`remove_spills`].
static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// One engine's directory. Removed with its content on drop.
pub struct Spill {
    directory: TempDir,
    /// Holds the lock; the system releases it when the process ends.
    _lock: File,
}

impl Spill {
    /// Creates a directory under `parent`, and removes stale directories of this user there.
    ///
    /// # Errors
    /// When `parent` is not writable, or its path is not UTF-8.
    pub fn make(parent: &Path) -> Result<Self, ReportError> {
        let failed = |source| ReportError::Spill { directory: parent.to_owned(), source };
        remove_stale_spills(parent);
        for _ in 0..MAKE_TRIES_MAX {
            let private = fs::Permissions::from_mode(0o700);
            let mut builder = tempfile::Builder::new();
            let directory = builder.prefix(PREFIX).permissions(private).tempdir_in(parent).map_err(failed)?;
            let lock = match File::open(directory.path()) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            };
            if lock.try_lock().is_err() || !is_same(&lock, directory.path()) {
                continue;
            }
            let spill = Self { directory, _lock: lock };
            spill.path()?;
            LIVE.lock().push(spill.directory.path().to_owned());
            return Ok(spill);
        }
        Err(failed(io::Error::other("another program removes each new directory at once")))
    }

    /// The directory's path for the engine.
    pub fn path(&self) -> Result<&str, ReportError> {
        let path = self.directory.path();
        path.to_str().ok_or_else(|| ReportError::Path { path: path.display().to_string() })
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        let path = self.directory.path();
        remove(path);
        LIVE.lock().retain(|other| other != path);
    }
}

/// Removes the directories of all engines, just before the process ends.
pub fn remove_spills() {
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

/// Removes the directories of this user under `parent` that no process holds a lock on. Links do not count, so nothing outside can be
/// removed.
pub fn remove_stale_spills(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let user = rustix::process::geteuid().as_raw();
    for entry in entries.filter_map(Result::ok) {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
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

    fn entries(parent: &Path) -> Vec<String> {
        let names = fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_spill_directory_is_removed_with_its_content() {
        let parent = tempfile::tempdir().unwrap();
        let spill = Spill::make(parent.path()).unwrap();
        File::create(Path::new(spill.path().unwrap()).join("duckdb_temp_storage-0.tmp")).unwrap();
        assert_eq!(entries(parent.path()).len(), 1);
        let mode = fs::metadata(spill.path().unwrap()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "only the owner can read spilled files, under any umask");
        drop(spill);
        assert!(entries(parent.path()).is_empty());
    }

    #[test]
    fn only_unlocked_spill_directories_are_stale() {
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
        let held = Spill::make(parent.path()).unwrap();
        let other = Spill::make(parent.path()).unwrap();
        assert!(!stale.try_exists().unwrap());
        assert!(place("elsewhere").join("kept").is_file());
        for kept in [held.path().unwrap(), other.path().unwrap()] {
            assert!(Path::new(kept).is_dir(), "{kept}");
        }
        let kept = entries(parent.path());
        assert_eq!(kept.len(), 6, "{kept:?}");
    }

    #[test]
    fn an_unwritable_spill_directory_is_named() {
        let error = Spill::make(Path::new("/nowhere/at all")).err().expect("there is no such place");
        assert!(error.to_string().contains("/nowhere/at all"), "{error}");
    }
}
