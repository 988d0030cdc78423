//! The engine reads local files only. For an archive in a bucket, it pins the files of a query in the cache, which fetches missing
//! ones.

use std::sync::Arc;

use crate::archive::{Archive, Cache, CacheError, FileEntry, PinnedFiles};

use super::columns::View;
use super::data::{LiveFile, ViewData};
use super::needs::{Needs, reads_files};
use super::pruning::{Pruned, pruned};
use crate::report::ReportError;
use crate::report::error::ARCHIVE_FAILED;

impl ViewData {
    /// This snapshot with cached files for some views, and without the files of other views. A snapshot of a local
    /// archive does not change.
    ///
    /// # Errors
    /// When the cache is too small, the bucket cannot be read, or a file differs from the ledger.
    pub fn pinned(&self, views: &[View]) -> Result<(Self, Option<Arc<PinnedFiles>>), ReportError> {
        let (Some(remote), Some(archive)) = (&self.remote, &self.archive) else { return Ok((self.clone(), None)) };
        let wanted = || self.files.iter().filter(|(dataset, _)| reads_files(views, **dataset));
        let entry = |file: &LiveFile| remote.entries.get(&file.path).expect("BUG: every live file has an entry");
        let entries: Vec<FileEntry> = wanted().flat_map(|(_, files)| files).map(|file| entry(file).clone()).collect();
        let pinned = pin_files(&remote.cache, archive, &entries)?;
        let local = |file: &LiveFile| {
            let place = pinned.path_of(entry(file));
            let path = place.to_str().ok_or_else(|| ReportError::Path { path: place.display().to_string() })?;
            Ok::<_, ReportError>(LiveFile { path: path.to_owned(), span: file.span })
        };
        let files = wanted().map(|(dataset, files)| Ok((*dataset, files.iter().map(local).collect::<Result<_, _>>()?)));
        let files = files.collect::<Result<_, ReportError>>()?;
        let root = pinned.directory().to_string_lossy().into_owned();
        Ok((Self { files, root, remote: None, is_pinned: true, ..self.clone() }, Some(Arc::new(pinned))))
    }

    /// Whether the files are in a bucket, and fetched when a query needs them.
    pub fn is_remote(&self) -> bool {
        self.remote.is_some()
    }
}

/// Pins files of an archive in a bucket.
///
/// # Errors
/// As [`ViewData::pinned`].
pub fn pin_files(cache: &Cache, archive: &Archive, files: &[FileEntry]) -> Result<PinnedFiles, ReportError> {
    cache.pin(archive.store().as_ref(), files).map_err(|error| match error {
        CacheError::Archive(error) => ReportError::Engine(format!("{ARCHIVE_FAILED}{error}")),
        CacheError::TooSmall { .. } => ReportError::TooLarge(error.to_string()),
        CacheError::Io { .. } | CacheError::Full { .. } => ReportError::Cache(error.to_string()),
    })
}

/// A snapshot whose files remain on this machine while it lives.
#[derive(Debug, Clone)]
pub struct PinnedSnapshot {
    pub data: Arc<ViewData>,
    _files: Option<Arc<PinnedFiles>>,
}

impl PinnedSnapshot {
    /// The snapshot with the files that `sql` may need.
    ///
    /// # Errors
    /// As [`ViewData::pinned`].
    pub fn of(snapshot: Arc<ViewData>, sql: &str) -> Result<Self, ReportError> {
        if !snapshot.is_remote() {
            return Ok(Self { data: snapshot, _files: None });
        }
        let needs = Needs::of_sql([sql]);
        let views = needs.needed_views();
        let (data, files) = match pruned(sql, &snapshot) {
            Some(Pruned { left: (dataset, left), .. }) => {
                let mut fewer = ViewData::clone(&snapshot);
                fewer.files.insert(dataset, left);
                fewer.pinned(views)?
            }
            None => snapshot.pinned(views)?,
        };
        Ok(Self { data: Arc::new(data), _files: files })
    }
}
