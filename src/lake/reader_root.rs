//! The addresses of files in a table's metadata: absolute, under the address that readers use for the archive.

use crate::model::path::ArchivePath;
use crate::model::{Location, Scheme};

/// `az://` names only a container.
const NO_ACCOUNT: &str = "engines need the storage account too: set publish.location to \
    abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX";
/// Engines cut an address at these characters.
const NOT_AN_ADDRESS: &str = "engines cannot open a path with ? or #, or one that is not UTF-8: move the archive, or set \
    publish.location to another address of it";

/// The address of the archive's root for readers, without a trailing slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderRoot(String);

impl ReaderRoot {
    /// The configured address, else the archive's own. The path of a directory must be absolute.
    ///
    /// # Errors
    /// The reason why engines cannot use the archive's own address.
    pub fn new(configured: Option<&str>, archive: &Location) -> Result<Self, &'static str> {
        let address = match (configured, archive) {
            (Some(address), _) => address.to_owned(),
            (None, Location::Local(path)) => match path.to_str().filter(|path| !path.contains(['?', '#'])) {
                Some(path) => format!("file://{path}"),
                None => return Err(NOT_AN_ADDRESS),
            },
            (None, Location::Bucket(bucket)) if bucket.scheme() == Scheme::Azure => return Err(NO_ACCOUNT),
            (None, Location::Bucket(bucket)) => bucket.to_string(),
        };
        Ok(Self(address.trim_end_matches('/').to_owned()))
    }

    /// The address that a table at `location` was published for.
    pub fn of_table(table: &str, location: &str) -> Option<Self> {
        location.strip_suffix(&format!("/tables/{table}")).map(|address| Self(address.to_owned()))
    }

    /// The address of a path within the archive.
    pub fn address(&self, path: &str) -> String {
        format!("{}/{path}", self.0)
    }

    /// The path within the archive of an address. It must be the path of an archive's file: a store would follow `..` and
    /// absolute paths out of the archive.
    pub fn path(&self, address: &str) -> Result<String, String> {
        let path = address.strip_prefix(&self.0).and_then(|rest| rest.strip_prefix('/'));
        let path = path.ok_or_else(|| format!("names {address}, which is not under {}", self.0))?;
        let known = ArchivePath::parse(path).map(|_| path.to_owned());
        known.ok_or_else(|| format!("names {address}, which is no file of an archive"))
    }
}
