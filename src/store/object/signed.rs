//! Requests to S3 that the client library does not know: it signs them, and this module sends them.
//!
//! Some find older versions of ledger objects. A ledger line and a signature are created once and never removed. So a second version or
//! a deletion marker is tampering, even if the last version looks right. An erasure deletes every version of what it removes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use object_store::client::{HttpClient, HttpRequest, HttpRequestBody};
use object_store::path::Path;
use object_store::signer::{SignedUrlOptions, Signer};
use serde::Deserialize;

/// Lifetime of a signed request.
const SIGNED_FOR: Duration = Duration::from_secs(300);
/// This many pages hold ten billion versions.
const PAGES_MAX: usize = 10_000_000;
const NOT_IMPLEMENTED: u16 = 501;

/// Sends signed requests with the client of the bucket: by the same proxy, and with the same certificates.
#[derive(Clone)]
pub(super) struct SignedRequests {
    pub(super) signer: Arc<dyn Signer>,
    pub(super) client: HttpClient,
}

impl SignedRequests {
    async fn ask(&self, method: &str, path: &Path, query: Vec<(String, String)>) -> Result<(u16, Bytes), String> {
        let options = SignedUrlOptions::default().with_query(query);
        let verb = || method.parse().expect("BUG: every caller names a method of HTTP");
        let url = self.signer.signed_url_opts(verb(), path, SIGNED_FOR, &options).await.map_err(|e| e.to_string())?;
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.method_mut() = verb();
        *request.uri_mut() = url.as_str().parse().map_err(|_| "the address of the bucket is invalid".to_owned())?;
        // The address contains the signature, so no error may show it.
        let answer = self.client.execute(request).await.map_err(|_| "the store gave no answer".to_owned())?;
        let status = answer.status().as_u16();
        let body = answer.into_body().bytes().await.map_err(|_| "the answer broke off".to_owned())?;
        Ok((status, body))
    }

    /// Deletes a version or an upload of an object.
    pub(super) async fn delete(&self, key: &Path, name: &str, id: &str) -> Result<(), String> {
        match self.ask("DELETE", key, vec![(name.to_owned(), id.to_owned())]).await? {
            (200 | 204 | 404, _) => Ok(()),
            (other, _) => Err(format!("the store answered {other}")),
        }
    }

    /// All pages of a list of objects under `prefix`, as one. A store that does not know such a list has none.
    pub(super) async fn pages(&self, list: List, prefix: &str) -> Result<Page, String> {
        let (name, marker) = match list {
            List::Uploads => ("uploads", "upload-id-marker"),
            List::Versions => ("versions", "version-id-marker"),
        };
        let (mut all, mut after) = (Page::default(), Vec::new());
        for _ in 0..PAGES_MAX {
            let mut query = vec![(name.to_owned(), String::new()), ("prefix".to_owned(), prefix.to_owned())];
            query.append(&mut after);
            let (status, body) = self.ask("GET", &Path::default(), query).await?;
            let page: Page = match status {
                200 => quick_xml::de::from_str(&String::from_utf8_lossy(&body))
                    .map_err(|e| format!("the answer is not a list: {e}"))?,
                NOT_IMPLEMENTED => break,
                other => return Err(format!("the store answered {other}")),
            };
            all.uploads.extend(page.uploads);
            all.versions.extend(page.versions);
            all.deletions.extend(page.deletions);
            let Some(key) = page.next_key_marker.filter(|_| page.is_truncated) else { break };
            after.extend([("key-marker".to_owned(), key), (marker.to_owned(), page.next_marker)]);
        }
        Ok(all)
    }

    /// The objects under `prefix` that were overwritten or deleted, each with a description of the change.
    pub(super) async fn rewritten(&self, prefix: &str) -> Result<Vec<(String, String)>, String> {
        let mut all: BTreeMap<String, KeptVersions> = BTreeMap::new();
        let found = self.pages(List::Versions, prefix).await?;
        for of in found.versions {
            all.entry(of.key).or_default().versions.insert((of.last_modified, of.version_id));
        }
        found.deletions.into_iter().for_each(|of| all.entry(of.key).or_default().deletions.push(of.last_modified));
        Ok(all.into_iter().filter_map(|(key, kept)| Some((key, kept.fault()?))).collect())
    }

    /// The keys of all objects under `prefix`, also of deleted ones.
    pub(super) async fn keys(&self, prefix: &str) -> Result<BTreeSet<String>, String> {
        let found = self.pages(List::Versions, prefix).await?;
        Ok(found.versions.into_iter().chain(found.deletions).map(|of| of.key).collect())
    }

    /// Deletes every version of an object, and every deletion marker.
    pub(super) async fn erase(&self, key: &Path) -> Result<(), String> {
        let found = self.pages(List::Versions, key.as_ref()).await?;
        let versions = found.versions.into_iter().chain(found.deletions);
        for version in versions.filter(|version| version.key == key.as_ref()) {
            let id = version.version_id.unwrap_or_default();
            self.delete(key, "versionId", &id).await.map_err(|why| format!("a version remains: {why}"))?;
        }
        Ok(())
    }
}

/// The lists of S3 that the client library does not know.
#[derive(Debug, Clone, Copy)]
pub(super) enum List {
    /// The multipart uploads that a killed process left unfinished. No list of objects shows their parts, and they cost money.
    Uploads,
    Versions,
}

/// A page of such a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct Page {
    is_truncated: bool,
    next_key_marker: Option<String>,
    #[serde(alias = "NextUploadIdMarker", alias = "NextVersionIdMarker")]
    next_marker: String,
    #[serde(rename = "Upload")]
    pub(super) uploads: Vec<Started>,
    #[serde(rename = "Version")]
    pub(super) versions: Vec<Version>,
    #[serde(rename = "DeleteMarker")]
    pub(super) deletions: Vec<Version>,
}

/// An unfinished upload.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Started {
    pub(super) key: String,
    pub(super) upload_id: String,
    /// RFC 3339.
    pub(super) initiated: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Version {
    pub(super) key: String,
    pub(super) version_id: Option<String>,
    pub(super) last_modified: String,
}

#[derive(Debug, Default)]
struct KeptVersions {
    /// The time and the id of each version. A store can show the last version of a page on the next page, too.
    versions: BTreeSet<(String, Option<String>)>,
    deletions: Vec<String>,
}

impl KeptVersions {
    /// The forbidden change of a write-once object, if there was one.
    fn fault(&self) -> Option<String> {
        match (self.versions.len(), self.deletions.iter().max()) {
            (_, Some(at)) => Some(format!("was deleted at {at}: a ledger object is never deleted")),
            (2.., None) => {
                let ((first, _), (last, _)) = (self.versions.first()?, self.versions.last()?);
                Some(format!(
                    "has {} versions, from {first} to {last}: a ledger object is written once, and its first version is the truth",
                    self.versions.len()
                ))
            }
            _ => None,
        }
    }
}
