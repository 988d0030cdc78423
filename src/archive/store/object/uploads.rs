//! Multipart uploads in S3 that a killed process left unfinished. No list of objects shows their parts, and they cost money.

use object_store::path::Path;
use serde::Deserialize;

use super::signed::SignedRequests;

/// This many pages hold a million uploads.
const PAGES_MAX: usize = 1_000;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    #[serde(default)]
    is_truncated: bool,
    next_key_marker: Option<String>,
    next_upload_id_marker: Option<String>,
    #[serde(default, rename = "Upload")]
    uploads: Vec<Started>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Started {
    pub(super) key: String,
    pub(super) upload_id: String,
    /// RFC 3339.
    pub(super) initiated: String,
}

impl SignedRequests {
    /// The unfinished uploads of objects under `prefix`. A store that does not know such a list has none.
    ///
    /// # Errors
    /// Why the store does not show them.
    pub(super) async fn uploads(&self, prefix: &str) -> Result<Vec<Started>, String> {
        let mut found = Vec::new();
        let mut after: Option<(String, String)> = None;
        for _ in 0..PAGES_MAX {
            let mut query = vec![("uploads".to_owned(), String::new()), ("prefix".to_owned(), prefix.to_owned())];
            if let Some((key, id)) = after.take() {
                query.extend([("key-marker".to_owned(), key), ("upload-id-marker".to_owned(), id)]);
            }
            let Some(page) = self.page::<Page>(query).await? else { break };
            found.extend(page.uploads);
            match (page.is_truncated, page.next_key_marker) {
                (true, Some(key)) => after = Some((key, page.next_upload_id_marker.unwrap_or_default())),
                _ => break,
            }
        }
        Ok(found)
    }

    /// Aborts an upload, which deletes its parts.
    ///
    /// # Errors
    /// Why the parts may stay.
    pub(super) async fn abort(&self, key: &Path, id: &str) -> Result<(), String> {
        match self.ask("DELETE", key, vec![("uploadId".to_owned(), id.to_owned())]).await? {
            (200 | 204 | 404, _) => Ok(()),
            (other, _) => Err(format!("the store answered {other}")),
        }
    }
}
