//! Multipart uploads in S3 that a killed process left unfinished. No list of objects shows their parts, and they cost money.

use object_store::path::Path;

use super::signed::{List, SignedRequests, Started};

impl SignedRequests {
    /// The unfinished uploads of objects under `prefix`.
    pub(super) async fn uploads(&self, prefix: &str) -> Result<Vec<Started>, String> {
        let mut found = Vec::new();
        self.pages(List::Uploads, prefix, |page| found.extend(page.uploads)).await?;
        Ok(found)
    }

    /// Aborts an upload, which deletes its parts.
    pub(super) async fn abort(&self, key: &Path, id: &str) -> Result<(), String> {
        self.delete(key, "uploadId", id).await
    }
}
