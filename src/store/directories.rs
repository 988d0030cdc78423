//! Creates and syncs the directories of a local store.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::syncs::sync_directory;

/// Creates a directory and its missing parents, and syncs each into its parent.
pub(super) fn make_directory(directory: &Path) -> io::Result<()> {
    let is_missing = |it: &&Path| !it.as_os_str().is_empty() && !fs::metadata(it).is_ok_and(|meta| meta.is_dir());
    let missing: Vec<&Path> = directory.ancestors().take_while(is_missing).collect();
    for directory in missing.into_iter().rev() {
        match fs::create_dir(directory) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
            // Remove a directory whose name may not be durable: the next call must not find it.
            made => sync_directory(directory.parent().unwrap_or(Path::new("")))
                .inspect_err(|_| drop(made.and_then(|()| fs::remove_dir(directory))))?,
        }
    }
    Ok(())
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
