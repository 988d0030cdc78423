//! The syncs of the local store, all in one place: tests count them.

use std::fs::File;
use std::io;
use std::path::Path;

/// Makes a file's content durable.
pub(super) fn sync_file(file: &File) -> io::Result<()> {
    #[cfg(test)]
    count(|syncs| syncs.files += 1);
    file.sync_all()
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    #[cfg(test)]
    count(|syncs| syncs.directories += 1);
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    File::open(directory)?.sync_all()
}

/// How often a thread has synced.
#[cfg(test)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Syncs {
    pub files: usize,
    pub directories: usize,
}

#[cfg(test)]
thread_local! {
    static SYNCS: std::cell::Cell<Syncs> = const { std::cell::Cell::new(Syncs { files: 0, directories: 0 }) };
}

#[cfg(test)]
fn count(change: impl FnOnce(&mut Syncs)) {
    let mut syncs = SYNCS.get();
    change(&mut syncs);
    SYNCS.set(syncs);
}

/// The syncs of this thread during `act`.
#[cfg(test)]
pub fn syncs_of(act: impl FnOnce()) -> Syncs {
    SYNCS.set(Syncs::default());
    act();
    SYNCS.get()
}
