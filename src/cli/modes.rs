//! Finds files of an archive that more users can read than the configuration allows, or that another user owns.

use std::fs::{Metadata, metadata, read_dir, symlink_metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::files;

use super::output::shell_word;

/// The root of a separate file system holds this directory, which belongs to root.
const LOST_AND_FOUND: &str = "lost+found";

/// Counts the files and directories whose modes are wider than those of new ones, and those of another user than the root's.
#[derive(Debug, Default)]
pub struct FileModes {
    pub seen: u64,
    wider: u64,
    first: Option<(PathBuf, u32)>,
    is_for_group: bool,
    owner: u32,
    foreign: u64,
    first_foreign: Option<(PathBuf, u32)>,
}

impl FileModes {
    /// Checks `root` and everything below it; nothing if `root` does not exist. Follows no link.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn under(root: &Path, group_readable: bool) -> io::Result<Self> {
        let owner = match metadata(root) {
            Err(e) if e.kind() == ErrorKind::NotFound => 0,
            meta => meta?.uid(),
        };
        Self { is_for_group: group_readable, owner, ..Self::default() }.counting(root)
    }

    fn counting(mut self, root: &Path) -> io::Result<Self> {
        let mut waiting = vec![root.to_owned()];
        while let Some(path) = waiting.pop() {
            let meta = match symlink_metadata(&path) {
                // A commit can remove files meanwhile.
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                other => other?,
            };
            if (meta.is_symlink() && path != root) || path == root.join(LOST_AND_FOUND) {
                continue;
            }
            if meta.is_dir() || path == root {
                match read_dir(&path) {
                    Err(e) if e.kind() == ErrorKind::NotFound => continue,
                    entries => {
                        for entry in entries? {
                            waiting.push(entry?.path());
                        }
                    }
                }
            }
            self.add(path, &meta);
        }
        Ok(self)
    }

    #[allow(clippy::useless_conversion, reason = "a mode has 16 bits on macOS")]
    fn add(&mut self, path: PathBuf, meta: &Metadata) {
        self.seen += 1;
        if meta.is_symlink() {
            return;
        }
        if meta.uid() != self.owner {
            self.foreign += 1;
            self.first_foreign.get_or_insert_with(|| (path.clone(), meta.uid()));
        }
        let mode = meta.permissions().mode();
        if mode & u32::from(files::umask(self.is_for_group).bits()) != 0 {
            self.wider += 1;
            self.first.get_or_insert((path, mode & 0o777));
        }
    }

    pub const fn readers(&self) -> &'static str {
        if self.is_for_group { "their owner and group" } else { "their owner alone" }
    }

    /// The warnings, each with the command that corrects the files.
    pub fn warnings(&self, root: &Path) -> Vec<String> {
        self.of_modes(root).into_iter().chain(self.of_owners(root)).collect()
    }

    /// The command keeps the owner's rights.
    fn of_modes(&self, root: &Path) -> Option<String> {
        let (path, mode) = self.first.as_ref()?;
        let change = if self.is_for_group { "g-w,o=" } else { "go=" };
        Some(format!(
            "{} of {} files and directories are open to more than {}, such as {} ({mode:o}): run chmod -R {change} {}",
            self.wider,
            self.seen,
            self.readers(),
            path.display(),
            shell_word(root)
        ))
    }

    /// Files have mode 0600, so the user that runs Annals cannot read another user's files.
    fn of_owners(&self, root: &Path) -> Option<String> {
        let (path, uid) = self.first_foreign.as_ref()?;
        Some(format!(
            "{} of {} files and directories belong to another user than the archive, such as {} (user {uid}): run chown -R {} {}, \
             and run Annals as user {} only",
            self.foreign,
            self.seen,
            path.display(),
            self.owner,
            shell_word(root),
            self.owner
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_another_user_than_the_root_are_counted_and_one_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("archive");
        std::fs::create_dir_all(root.join(LOST_AND_FOUND)).unwrap();
        std::fs::File::create(root.join("archive.json")).unwrap();
        let none = FileModes::under(&root, false).unwrap();
        assert_eq!((none.seen, none.foreign), (2, 0));
        let ours = metadata(&root).unwrap().uid();
        let found = FileModes { owner: ours + 1, ..FileModes::default() }.counting(&root).unwrap();
        let warnings = found.warnings(&root);
        let warning = warnings.last().unwrap();
        for part in ["2 of 2 files", &format!("archive (user {ours})"), &format!("run chown -R {} ", ours + 1)] {
            assert!(warning.contains(part), "{part}: {warnings:?}");
        }
        assert_eq!(FileModes::under(&root.join("none"), false).unwrap().seen, 0);
    }
}
