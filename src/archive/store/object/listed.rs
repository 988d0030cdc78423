//! An object, as a bucket's list shows it.

use crate::model::Instant;

use super::super::Listed;

/// An object in a list.
#[derive(Debug, Clone)]
pub(super) struct Object {
    /// The path within the archive.
    pub(super) path: String,
    pub(super) bytes: u64,
    pub(super) modified: Instant,
    /// The store's mark of the content.
    pub(super) tag: Option<String>,
}

impl Object {
    pub(super) fn listed(self) -> Listed {
        let Self { path, bytes, modified, tag } = self;
        Listed { path, bytes, modified, tag, irregular: None }
    }
}
