//! Older versions of ledger objects, in S3 buckets that keep versions.
//!
//! A ledger line and a signature are created once and never removed. So a second version or a deletion marker is tampering,
//! even if the last version looks right. An erasure deletes every version of what it removes.

use std::collections::BTreeMap;

use object_store::path::Path;
use serde::Deserialize;

use super::signed::SignedRequests;

/// This many pages hold ten billion versions.
const PAGES_MAX: usize = 10_000_000;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    #[serde(default)]
    is_truncated: bool,
    next_key_marker: Option<String>,
    next_version_id_marker: Option<String>,
    #[serde(default, rename = "Version")]
    versions: Vec<Version>,
    #[serde(default, rename = "DeleteMarker")]
    markers: Vec<Version>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Version {
    key: String,
    version_id: Option<String>,
    last_modified: String,
}

/// The kept versions of one object.
#[derive(Debug, Default)]
struct Kept {
    versions: Vec<String>,
    deletions: Vec<String>,
}

impl SignedRequests {
    /// `None` if the store does not support versions.
    async fn versions(&self, prefix: &str, after: Option<(String, String)>) -> Result<Option<Page>, String> {
        let mut query = vec![("versions".to_owned(), String::new()), ("prefix".to_owned(), prefix.to_owned())];
        if let Some((key, version)) = after {
            query.extend([("key-marker".to_owned(), key), ("version-id-marker".to_owned(), version)]);
        }
        self.page(query).await
    }

    /// The objects under `prefix` that were overwritten or deleted, each with a description of the change.
    ///
    /// # Errors
    /// Why the store does not show its versions.
    pub(super) async fn rewritten(&self, prefix: &str) -> Result<Vec<(String, String)>, String> {
        let mut all: BTreeMap<String, Kept> = BTreeMap::new();
        let mut after = None;
        for _ in 0..PAGES_MAX {
            let Some(page) = self.versions(prefix, after.take()).await? else { break };
            page.versions.into_iter().for_each(|of| all.entry(of.key).or_default().versions.push(of.last_modified));
            page.markers.into_iter().for_each(|of| all.entry(of.key).or_default().deletions.push(of.last_modified));
            match (page.is_truncated, page.next_key_marker) {
                (true, Some(key)) => after = Some((key, page.next_version_id_marker.unwrap_or_default())),
                _ => break,
            }
        }
        Ok(all.into_iter().filter_map(|(key, kept)| Some((key, kept.fault()?))).collect())
    }
}

impl SignedRequests {
    /// Deletes every version of an object, and every deletion marker.
    ///
    /// # Errors
    /// Why one may stay.
    pub(super) async fn erase(&self, key: &Path) -> Result<(), String> {
        // The list loses the deleted versions, so each request asks for its beginning.
        for _ in 0..PAGES_MAX {
            let Some(page) = self.versions(key.as_ref(), None).await? else { return Ok(()) };
            let is_more = page.is_truncated;
            let found = page.versions.into_iter().chain(page.markers).filter(|version| version.key == key.as_ref());
            let found: Vec<String> = found.filter_map(|version| version.version_id).collect();
            for version in &found {
                let query = vec![("versionId".to_owned(), version.clone())];
                match self.ask("DELETE", key, query).await? {
                    (200 | 204 | 404, _) => {}
                    (other, _) => return Err(format!("a version remains: the store answered {other}")),
                }
            }
            if found.is_empty() || !is_more {
                return Ok(());
            }
        }
        Err("the object has more versions than Annals can list".to_owned())
    }
}

impl Kept {
    /// The forbidden change of a write-once object, if there was one.
    fn fault(&self) -> Option<String> {
        match (self.versions.as_slice(), self.deletions.iter().max()) {
            (_, Some(at)) => Some(format!("was deleted at {at}: a ledger object is never deleted")),
            ([_, _, ..], None) => {
                let (first, last) = (self.versions.iter().min()?, self.versions.iter().max()?);
                Some(format!(
                    "has {} versions, from {first} to {last}: a ledger object is written once, and its first version is the truth",
                    self.versions.len()
                ))
            }
            _ => None,
        }
    }
}
