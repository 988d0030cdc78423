//! Whether an archive's files are for those alone for whom new ones are made.

use std::fs::{read_dir, symlink_metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::files;

use super::output::shell_word;

/// Files and directories with wider modes than new ones get.
#[derive(Debug, Default)]
pub struct Wider {
    pub seen: u64,
    wider: u64,
    first: Option<(PathBuf, u32)>,
    is_for_group: bool,
}

impl Wider {
    /// Looks at a directory and all in it; none where it is not there. No link is followed.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn under(root: &Path, group_readable: bool) -> io::Result<Self> {
        let mut found = Self { is_for_group: group_readable, ..Self::default() };
        let mut waiting = vec![root.to_owned()];
        while let Some(path) = waiting.pop() {
            let meta = match symlink_metadata(&path) {
                // A commit may take files away meanwhile.
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

    /// What is wrong, and the command that ends it; the command leaves the owner's own rights as they are.
    pub fn warning(&self, root: &Path) -> Option<String> {
        let (path, mode) = self.first.as_ref()?;
        let change = if self.is_for_group { "g-w,o=" } else { "go=" };
        Some(format!(
            "{} of {} files and directories are not for {}, as {} ({mode:o}): chmod -R {change} {}",
            self.wider,
            self.seen,
            self.readers(),
            path.display(),
            shell_word(root)
        ))
    }
}
