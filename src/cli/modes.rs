//! Finds files of an archive that more users can read than the configuration allows.

use std::fs::{read_dir, symlink_metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::files;

use super::output::shell_word;

/// Counts the files and directories whose modes are wider than those of new ones.
#[derive(Debug, Default)]
pub struct WideModes {
    pub seen: u64,
    wider: u64,
    first: Option<(PathBuf, u32)>,
    is_for_group: bool,
}

impl WideModes {
    /// Checks `root` and everything below it; nothing if `root` does not exist. Follows no link.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn under(root: &Path, group_readable: bool) -> io::Result<Self> {
        let mut found = Self { is_for_group: group_readable, ..Self::default() };
        let mut waiting = vec![root.to_owned()];
        while let Some(path) = waiting.pop() {
            let meta = match symlink_metadata(&path) {
                // A commit can remove files meanwhile.
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                other => other?,
            };
            if meta.is_symlink() && path != root {
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
            found.add(path, meta.permissions().mode(), meta.is_symlink());
        }
        Ok(found)
    }

    fn add(&mut self, path: PathBuf, mode: u32, is_link: bool) {
        self.seen += 1;
        if !is_link && mode & files::umask(self.is_for_group).bits() != 0 {
            self.wider += 1;
            self.first = self.first.take().or(Some((path, mode & 0o777)));
        }
    }

    pub const fn readers(&self) -> &'static str {
        if self.is_for_group { "their owner and group" } else { "their owner alone" }
    }

    /// The warning, with the command that fixes the modes; the command keeps the owner's rights.
    pub fn warning(&self, root: &Path) -> Option<String> {
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
}
