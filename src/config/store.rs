//! The places of the archive, and settings whose defaults depend on them.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use crate::model::{ArchivePlace, GRACE_BUCKET, GRACE_LOCAL, Location};

use super::file::File;
use super::{Config, ConfigError, DEFAULT_ARCHIVE, Overrides};

const COMMIT_EVERY_LOCAL: Duration = Duration::from_secs(1);
const COMMIT_EVERY_BUCKET: Duration = Duration::from_secs(60);

impl Config {
    /// How long files of the archive at `location` remain after no ledger line names them.
    pub fn grace_at(&self, location: &Location) -> Duration {
        self.grace.unwrap_or(match location {
            Location::Local(_) => GRACE_LOCAL,
            Location::Bucket(_) => GRACE_BUCKET,
        })
    }

    /// The minimum time between two commits of a team. Requests to a bucket cost money.
    pub fn commit_interval(&self) -> Duration {
        let default = if self.is_in_bucket() { COMMIT_EVERY_BUCKET } else { COMMIT_EVERY_LOCAL };
        self.commit_every.unwrap_or(default)
    }

    /// Whether a bucket holds the archive or its ledger.
    pub fn is_in_bucket(&self) -> bool {
        [Some(&self.archive), self.ledger.as_ref()].into_iter().flatten().any(|at| matches!(at, Location::Bucket(_)))
    }
}

/// The archive's place and its ledger's. The file's paths are relative to `directory`, so that they mean the same in every
/// working directory.
pub(super) fn check_place(
    file: &File,
    overrides: &Overrides,
    directory: &Path,
    place: &impl Fn(&str) -> String,
    warnings: &mut Vec<String>,
) -> Result<ArchivePlace, ConfigError> {
    let of_file = |key: &str, text: &str| match check_location(&place(key), Path::new(text))? {
        Location::Local(path) => Ok(Location::Local(directory.join(path))),
        bucket @ Location::Bucket(_) => Ok(bucket),
    };
    let named = file.archive.as_deref().map(|text| of_file("archive", text)).transpose()?;
    let given = overrides.archive.as_deref();
    let given = given.map(|path| check_location("--archive or ANNALS_ARCHIVE", path)).transpose()?;
    let is_other = given.as_ref().zip(named.as_ref()).is_some_and(|(given, named)| !is_same(given, named));
    if let (Some(given), Some(named), true) = (&given, &named, is_other && overrides.is_archive_of_environment) {
        let key = place("archive");
        warnings.push(format!(
            "{key} names {named}, but ANNALS_ARCHIVE names {given}, and the variable wins: unset the variable, or change the key"
        ));
    }
    let data = match given.or(named) {
        Some(data) => data,
        None => of_file("archive", DEFAULT_ARCHIVE)?,
    };
    let (key, ledger) = match (&overrides.ledger, &file.store.ledger) {
        (Some(path), _) => ("--ledger or ANNALS_LEDGER", Some(check_location("--ledger or ANNALS_LEDGER", path)?)),
        (None, Some(_)) if is_other => {
            let message = "belongs to the archive of that file, so the archive of --archive or ANNALS_ARCHIVE is opened without it";
            warnings.push(format!("{} {message}", place("store.ledger")));
            ("", None)
        }
        (None, text) => ("store.ledger", text.as_deref().map(|text| of_file("store.ledger", text)).transpose()?),
    };
    match ledger {
        Some(ledger) if overlaps(&data, &ledger) => {
            let key = if overrides.ledger.is_some() { key.to_owned() } else { place(key) };
            let message = format!(
                "{ledger} and the archive at {data} are one place, or one is inside the other: name another place"
            );
            Err(ConfigError::invalid(key, message))
        }
        ledger => Ok(ArchivePlace { data, ledger }),
    }
}

fn check_location(place: &str, path: &Path) -> Result<Location, ConfigError> {
    if path.as_os_str().is_empty() {
        return Err(ConfigError::invalid(place, "the path is empty"));
    }
    Location::of_path(path).map_err(|error| ConfigError::invalid(place, error.to_string()))
}

fn is_same(one: &Location, two: &Location) -> bool {
    match (one, two) {
        (Location::Local(one), Location::Local(two)) => is_inside(one, two) && is_inside(two, one),
        _ => one == two,
    }
}

/// Whether two places are equal, or one is inside the other.
pub fn overlaps(one: &Location, two: &Location) -> bool {
    match (one, two) {
        (Location::Local(one), Location::Local(two)) => is_inside(one, two) || is_inside(two, one),
        (Location::Bucket(one), Location::Bucket(two)) => one.overlaps(two),
        _ => false,
    }
}

/// Whether `path` is under `directory`, judged by their names and by their real paths.
pub(super) fn is_inside(path: &Path, directory: &Path) -> bool {
    let (paths, directories) = (places(path), places(directory));
    paths.iter().any(|path| directories.iter().any(|directory| path.starts_with(directory)))
}

/// A path by its name alone, by the real path of its parent, and by its own real path: each part can be a link.
fn places(path: &Path) -> [PathBuf; 3] {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let beside = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real_path(parent).join(name),
        _ => real_path(&path),
    };
    [folded(PathBuf::new(), &path), beside, real_path(&path)]
}

/// The real path; parts that do not exist keep their names.
fn real_path(path: &Path) -> PathBuf {
    let known = |place: &Path| Some((place.canonicalize().ok()?, path.strip_prefix(place).ok()?.to_owned()));
    path.ancestors().find_map(known).map_or_else(|| path.to_owned(), |(real, rest)| folded(real, &rest))
}

/// Adds `rest` to `start`; each `..` removes a part.
fn folded(mut start: PathBuf, rest: &Path) -> PathBuf {
    for part in rest.components() {
        match part {
            Component::ParentDir => drop(start.pop()),
            part => start.push(part),
        }
    }
    start
}
