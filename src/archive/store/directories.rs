//! Creates and syncs the directories of a local store, several in parallel.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread::scope;

/// Number of directories that are synced in parallel.
const SYNCS_AT_ONCE: usize = 4;

/// Directories, each with one of its paths for error messages.
pub(super) type Directories<'p> = BTreeMap<PathBuf, &'p str>;

/// Creates missing directories and their parents, then syncs each into its parent.
pub(super) fn make_directories<'p>(wanted: &Directories<'p>) -> Result<(), (&'p str, io::Error)> {
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
    // Remove directories whose names may not be durable: the next call must not find them.
    sync_directories(&gained, sync_directory)
        .inspect_err(|_| made.iter().rev().for_each(|directory| drop(fs::remove_dir(directory))))
}

/// Syncs several in parallel: a file system commits concurrent syncs together.
pub(super) fn sync_directories<'p>(
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

pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(directory)?.sync_all()
}

/// Ignores a missing directory: another process can have removed it as empty.
pub(super) fn sync_if_there(directory: &Path) -> io::Result<()> {
    match sync_directory(directory) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        synced => synced,
    }
}

/// The last path in `paths` with the same directory and extension that is later than `path`, if any.
pub fn later_name<'p>(path: &str, paths: impl Iterator<Item = &'p str>) -> Option<&'p str> {
    fn kind(path: &str) -> (&str, Option<&str>) {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        (directory, name.rsplit_once('.').map(|(_, extension)| extension))
    }
    paths.filter(|other| *other > path && kind(other) == kind(path)).max()
}

#[cfg(test)]
mod tests {
    use super::later_name;

    #[test]
    fn a_later_file_has_the_same_directory_and_extension() {
        let days =
            ["l/t=1/1.heads", "l/t=1/1.jsonl", "l/t=1/2.jsonl", "l/t=1/3.jsonl", "l/t=1/4.heads", "l/t=2/5.jsonl"];
        for (path, later) in [
            ("l/t=1/1.jsonl", Some("l/t=1/3.jsonl")),
            ("l/t=1/3.jsonl", None),
            ("l/t=1/4.jsonl", None),
            ("l/t=1/3.heads", Some("l/t=1/4.heads")),
            ("l/t=2/4.jsonl", Some("l/t=2/5.jsonl")),
            ("l/t=3/4.jsonl", None),
        ] {
            assert_eq!(later_name(path, days.into_iter()), later, "{path}");
        }
    }
}
