//! Older versions of ledger objects, in S3 buckets that keep versions.
//!
//! A ledger line and a signature are created once and never removed. So a second version or a deletion marker is tampering,
//! even if the last version looks right. An erasure deletes every version of what it removes.

use std::collections::BTreeMap;

use object_store::path::Path;

use super::signed::{List, SignedRequests};

#[derive(Debug, Default)]
struct KeptVersions {
    versions: Vec<String>,
    deletions: Vec<String>,
}

impl SignedRequests {
    /// The objects under `prefix` that were overwritten or deleted, each with a description of the change.
    pub(super) async fn rewritten(&self, prefix: &str) -> Result<Vec<(String, String)>, String> {
        let mut all: BTreeMap<String, KeptVersions> = BTreeMap::new();
        let found = self.pages(List::Versions, prefix).await?;
        found.versions.into_iter().for_each(|of| all.entry(of.key).or_default().versions.push(of.last_modified));
        found.deletions.into_iter().for_each(|of| all.entry(of.key).or_default().deletions.push(of.last_modified));
        Ok(all.into_iter().filter_map(|(key, kept)| Some((key, kept.fault()?))).collect())
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

impl KeptVersions {
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
