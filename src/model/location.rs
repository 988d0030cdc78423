//! The location of an archive: a local directory, or a place in a bucket. Only this module spells and parses it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use thiserror::Error;

/// The kinds of object stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    S3,
    Google,
    Azure,
}

impl Scheme {
    pub const ALL: [Self; 3] = [Self::S3, Self::Google, Self::Azure];

    /// The text before `://`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Google => "gs",
            Self::Azure => "az",
        }
    }

    /// The prefix of the store's environment variables.
    pub const fn variables(self) -> &'static str {
        match self {
            Self::S3 => "AWS_",
            Self::Google => "GOOGLE_",
            Self::Azure => "AZURE_",
        }
    }
}

/// A place in a bucket, such as `s3://bucket/some/prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketLocation {
    scheme: Scheme,
    bucket: String,
    /// Without surrounding slashes; empty for the whole bucket.
    prefix: String,
}

impl BucketLocation {
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The places around this one, up to the whole bucket.
    pub fn parents(&self) -> impl Iterator<Item = Self> {
        let above = |place: &Self| {
            let prefix = place.prefix.rsplit_once('/').map_or("", |(above, _)| above).to_owned();
            (!place.prefix.is_empty()).then(|| Self { prefix, ..place.clone() })
        };
        std::iter::successors(above(self), above)
    }

    /// Whether the two places are equal, or one is inside the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        let is_around = |outer: &str, inner: &str| match inner.strip_prefix(outer) {
            Some(rest) => outer.is_empty() || rest.is_empty() || rest.starts_with('/'),
            None => false,
        };
        (self.scheme, &self.bucket) == (other.scheme, &other.bucket)
            && (is_around(&self.prefix, &other.prefix) || is_around(&other.prefix, &self.prefix))
    }
}

impl fmt::Display for BucketLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        write!(f, "{}://{}{slash}{}", self.scheme.name(), self.bucket, self.prefix)
    }
}

/// The location of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    Local(PathBuf),
    Bucket(BucketLocation),
}

/// The place of a whole archive, or the places of its data and its ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchivePlace {
    pub data: Location,
    /// The place of the ledger, if it lies elsewhere.
    pub ledger: Option<Location>,
}

impl ArchivePlace {
    /// The place of an archive with its ledger inside.
    pub fn whole(data: Location) -> Self {
        Self { data, ledger: None }
    }
}

impl fmt::Display for ArchivePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ledger {
            Some(ledger) => write!(f, "{} with the ledger at {ledger}", self.data),
            None => self.data.fmt(f),
        }
    }
}

/// Why a text is no location. Never repeats text that can contain a credential.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LocationError {
    #[error("{scheme}:// is not supported: use s3://bucket/prefix, gs://, az:// or a local path")]
    Scheme { scheme: String },
    #[error(
        "{text}: looks like an address of a bucket: write {scheme}://bucket/prefix for a bucket, or ./{text} for a path"
    )]
    Slashes { scheme: &'static str, text: String },
    #[error(
        "{scheme}:/… looks like an address: use s3://bucket/prefix, gs://, az:// or a local path, or write ./{scheme}:/… for a path"
    )]
    Address { scheme: String },
    #[error("a bucket's address must not contain credentials: set them in the environment, {variables}…")]
    Credentials { variables: &'static str },
    #[error("{text}: {what}")]
    Form { text: String, what: &'static str },
}

impl Location {
    /// The location that a path names; a path that is not UTF-8 is a local path.
    ///
    /// # Errors
    /// The errors of parsing a text.
    pub fn of_path(path: &Path) -> Result<Self, LocationError> {
        path.to_str().map_or_else(|| Ok(Location::Local(path.to_owned())), str::parse)
    }

    /// The local directory, if it is one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            Location::Local(path) => Some(path),
            Location::Bucket(_) => None,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Local(path) => path.display().fmt(f),
            Location::Bucket(bucket) => bucket.fmt(f),
        }
    }
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((scheme, rest)) = text.split_once("://") {
            return match Scheme::ALL.into_iter().find(|known| known.name() == scheme) {
                Some(scheme) => bucket(scheme, text, rest).map(Location::Bucket),
                None => Err(LocationError::Scheme { scheme: scheme.to_owned() }),
            };
        }
        let is_cut = |scheme: &Scheme| text.strip_prefix(scheme.name()).is_some_and(|rest| rest.starts_with(':'));
        match (Scheme::ALL.iter().find(|scheme| is_cut(scheme)), text.split_once(":/")) {
            (Some(scheme), _) => Err(LocationError::Slashes { scheme: scheme.name(), text: text.to_owned() }),
            (None, Some((scheme, _))) if is_scheme(scheme) => Err(LocationError::Address { scheme: scheme.to_owned() }),
            (None, _) => Ok(Location::Local(text.into())),
        }
    }
}

/// Whether a text before `:/` begins an address. One letter can be a directory.
fn is_scheme(text: &str) -> bool {
    text.len() > 1
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

fn bucket(scheme: Scheme, text: &str, rest: &str) -> Result<BucketLocation, LocationError> {
    if rest.contains(['@', '?']) {
        return Err(LocationError::Credentials { variables: scheme.variables() });
    }
    let form = |what| Err(LocationError::Form { text: text.to_owned(), what });
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    let is_plain =
        |part: &str| part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'='));
    if bucket.is_empty() {
        return form("the name of the bucket is missing");
    }
    if !is_plain(bucket) {
        return form("the name of a bucket can contain only letters, digits, dots, dashes and underscores");
    }
    if !prefix.is_empty() && prefix.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return form("a prefix cannot contain an empty part, . or ..");
    }
    if !prefix.split('/').all(is_plain) {
        return form("a prefix can contain only letters, digits, dots, dashes, underscores and =");
    }
    Ok(BucketLocation { scheme, bucket: bucket.to_owned(), prefix: prefix.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_locations_round_trip() {
        for (text, scheme, bucket, prefix) in [
            ("s3://b", Scheme::S3, "b", ""),
            ("s3://b/", Scheme::S3, "b", ""),
            ("gs://my-bucket.eu/a/b=1", Scheme::Google, "my-bucket.eu", "a/b=1"),
            ("az://container/archive/", Scheme::Azure, "container", "archive"),
        ] {
            let Ok(Location::Bucket(found)) = text.parse() else { panic!("{text}") };
            assert_eq!((found.scheme(), found.bucket(), found.prefix()), (scheme, bucket, prefix));
            assert_eq!(found.to_string(), text.trim_end_matches('/'));
            assert_eq!(found.to_string().parse(), Ok(Location::Bucket(found)));
        }
    }

    #[test]
    fn places_overlap_if_one_is_inside_the_other() {
        let bucket = |text: &str| match text.parse() {
            Ok(Location::Bucket(bucket)) => bucket,
            other => panic!("{text}: {other:?}"),
        };
        for (one, two, is_overlap) in [
            ("s3://b/x", "s3://b/x", true),
            ("s3://b/x", "s3://b/x/ledger", true),
            ("s3://b", "s3://b/x", true),
            ("s3://b/x", "s3://b/xy", false),
            ("s3://b/x/a", "s3://b/x/b", false),
            ("s3://b/x", "s3://c/x", false),
            ("s3://b/x", "gs://b/x", false),
        ] {
            let (one, two) = (bucket(one), bucket(two));
            assert_eq!((one.overlaps(&two), two.overlaps(&one)), (is_overlap, is_overlap), "{one} {two}");
        }
        let parents = |text| bucket(text).parents().map(|parent| parent.to_string()).collect::<Vec<_>>();
        assert_eq!(parents("s3://b/x/y"), ["s3://b/x", "s3://b"]);
        assert_eq!(parents("s3://b"), [""; 0]);
    }

    #[test]
    fn other_texts_are_local_paths() {
        for text in
            ["archive", "/var/lib/annals", "./s3:/x", "a:b", "a:/b", "ab:c", "1a:/b", "s3", "s3/bucket", "../gs"]
        {
            assert_eq!(text.parse(), Ok(Location::Local(text.into())), "{text}");
        }
    }

    #[test]
    fn invalid_locations_are_refused_without_credentials() {
        for (text, said) in [
            ("s3:/x", "looks like an address of a bucket"),
            ("gs:bucket/x", "looks like an address of a bucket"),
            ("https:/key:secret/x", "https:/… looks like an address"),
            ("file:/x", "write ./file:/… for a path"),
            ("S3:/bucket", "S3:/… looks"),
            ("ftp://host/x", "ftp:// is not supported"),
            ("https://bucket.s3.amazonaws.com/x", "https:// is not supported"),
            ("S3://bucket/x", "S3:// is not supported"),
            ("file:///x", "file:// is not supported"),
            ("s3://", "name of the bucket is missing"),
            ("s3:///x", "name of the bucket is missing"),
            ("s3://b//x", "an empty part"),
            ("s3://b/../x", "an empty part"),
            ("s3://b/a b", "can contain only"),
            ("s3://b:9000/x", "can contain only"),
            ("s3://key:secret@bucket/x", "must not contain credentials"),
            ("az://c/x?sig=secret", "must not contain credentials"),
        ] {
            let error = text.parse::<Location>().unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains("secret") && !error.contains('\n'), "{text}: {error}");
        }
    }
}
