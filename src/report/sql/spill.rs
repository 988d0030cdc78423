//! The folders for what the engine spills.

use std::path::Path;

use crate::files::{WorkFolder, remove_stale_folders};
use crate::report::ReportError;

const PREFIX: &str = "annals-sql-";

/// Creates a folder for one engine, and removes the folders of killed processes.
///
/// # Errors
/// When `parent` is not writable, or its path is not UTF-8.
pub fn make_spill(parent: &Path) -> Result<(WorkFolder, String), ReportError> {
    let failed = |source| ReportError::Spill { directory: parent.to_owned(), source };
    let folder = WorkFolder::make(parent, PREFIX).map_err(failed)?;
    match folder.path().to_str().map(str::to_owned) {
        Some(path) => Ok((folder, path)),
        None => Err(ReportError::Path { path: folder.path().display().to_string() }),
    }
}

/// Removes what killed processes spilled under `parent`.
pub fn remove_stale_spills(parent: &Path) {
    remove_stale_folders(parent, PREFIX);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unwritable_spill_directory_is_named() {
        let error = make_spill(Path::new("/nowhere/at all")).err().expect("there is no such place");
        assert!(error.to_string().contains("/nowhere/at all"), "{error}");
    }
}
