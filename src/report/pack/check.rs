//! Checks a pack: every file against `SHA256SUMS`, in a folder or in a zip.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use thiserror::Error;
use zip::ZipArchive;

use crate::files::{self, Irregular, Links};
use crate::model::Digest;

use super::manifest::{FORMAT, VERSION};
use super::tree::sums_line;
use super::{MANIFEST, Manifest, SUMS};
use crate::report::catalog::checked_id;

/// The maximum size of a manifest or list of hashes.
const TEXT_BYTES_MAX: u64 = 64 << 20;
const FILES_MAX: usize = 10_000;
/// The size of an entry of a zip's directory before its name.
const ZIP_ENTRY_BYTES: u64 = 46;
/// The size of a zip's last record.
const ZIP_END_BYTES: usize = 22;
/// The size of the records of Zip64 before the last record.
const ZIP64_END_BYTES: u64 = 76;
/// The maximum size of an entry's attribute with the long sizes of Zip64.
const ZIP64_ENTRY_BYTES_MAX: u64 = 32;

/// Why a pack is invalid.
#[derive(Debug, Error)]
pub enum PackError {
    #[error("{}: {what}", path.display())]
    NotAPack { path: PathBuf, what: String },
    #[error("{}: {file}: its SHA-256 is {found}, but {SUMS} says {listed}", path.display())]
    Altered { path: PathBuf, file: String, found: Digest, listed: Digest },
    #[error("{}: {file}: {SUMS} names this file, but it is missing", path.display())]
    Missing { path: PathBuf, file: String },
    #[error("{}: {file}: {SUMS} does not name this file", path.display())]
    Stranger { path: PathBuf, file: String },
    #[error("{}: {what}: programs can disagree about what this zip holds", path.display())]
    Ambiguous { path: PathBuf, what: String },
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl PackError {
    /// Whether the path is no pack at all, rather than a damaged one.
    pub fn is_wrong_use(&self) -> bool {
        match self {
            PackError::NotAPack { .. } => true,
            PackError::Io { source, .. } => {
                source.kind() == io::ErrorKind::NotFound || Irregular::in_error(source).is_some()
            }
            PackError::Altered { .. }
            | PackError::Missing { .. }
            | PackError::Stranger { .. }
            | PackError::Ambiguous { .. } => false,
        }
    }
}

/// A pack whose files are all unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedPack {
    pub manifest: Manifest,
    /// The digest of `SHA256SUMS`, and so of the whole pack.
    pub sha256: Digest,
}

/// Checks the pack at `path`, a folder or a zip.
///
/// # Errors
/// See [`PackError`].
pub fn check_pack(path: &Path) -> Result<CheckedPack, PackError> {
    let failed = |source| PackError::Io { path: path.to_owned(), source };
    let mut files: Box<dyn Files> = if fs::symlink_metadata(path).map_err(failed)?.is_dir() {
        Box::new(Folder { root: path.to_owned() })
    } else {
        let file = files::open(path, Links::Refuse).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let mut end = [0; ZIP_END_BYTES];
        let end_at = size.saturating_sub(end.len() as u64);
        // A file of fewer bytes is no zip.
        let _ = file.read_at(&mut end, end_at).map_err(failed)?;
        let zip = ZipArchive::new(io::BufReader::new(file));
        let zip = zip.map_err(|e| not_a_pack(path, format!("neither a folder nor a zip file: {e}")))?;
        Box::new(Zipped::of(zip, (size, end), path)?)
    };
    check(path, files.as_mut())
}

fn check(path: &Path, files: &mut dyn Files) -> Result<CheckedPack, PackError> {
    let failed = |source| PackError::Io { path: path.to_owned(), source };
    let files_found = files.names().map_err(failed)?;
    if !files_found.contains(SUMS) {
        return Err(not_a_pack(path, format!("not a pack: the file {SUMS} is missing")));
    }
    let sums = text(files, SUMS).map_err(failed)?;
    let listed = parse_sums(&sums).map_err(|line| not_a_pack(path, format!("{SUMS} line {line} is invalid")))?;
    // One spelling: equal files have equal lists, so a pack has one digest.
    if listed.iter().map(|(file, digest)| sums_line(digest, file)).collect::<String>() != sums {
        return Err(not_a_pack(path, format!("{SUMS} is not as Annals writes it: somebody changed its form or order")));
    }
    for (file, listed) in &listed {
        if !files_found.contains(file) {
            return Err(PackError::Missing { path: path.to_owned(), file: file.clone() });
        }
        let mut found = Digest([0; 32]);
        files.read(file, &mut |content| Digest::of_reader(content).map(|digest| found = digest)).map_err(failed)?;
        if found != *listed {
            return Err(PackError::Altered { path: path.to_owned(), file: file.clone(), found, listed: *listed });
        }
    }
    let is_above = |folder: &String| {
        folder.ends_with('/') && listed.range(folder.clone()..).next().is_some_and(|(file, _)| file.starts_with(folder))
    };
    let is_known = |file: &String| file == SUMS || listed.contains_key(file) || is_above(file);
    if let Some(file) = files_found.into_iter().find(|file| !is_known(file)) {
        return Err(PackError::Stranger { path: path.to_owned(), file });
    }
    if !listed.contains_key(MANIFEST) {
        return Err(PackError::Missing { path: path.to_owned(), file: MANIFEST.to_owned() });
    }
    let manifest = text(files, MANIFEST).map_err(failed)?;
    let manifest: Manifest = serde_json::from_str(&manifest)
        .map_err(|e| not_a_pack(path, format!("{MANIFEST} is not a manifest of Annals: {e}")))?;
    if manifest.format != FORMAT || manifest.version != VERSION {
        let (format, version) = (&manifest.format, manifest.version);
        return Err(not_a_pack(
            path,
            format!("{format:?} version {version}, but this program knows {FORMAT:?} version {VERSION}"),
        ));
    }
    // The ledger keeps the ids of a reviewed pack.
    if manifest.reports.iter().any(|report| checked_id(&report.id).is_err()) {
        return Err(not_a_pack(path, format!("{MANIFEST}: the id of a report is invalid")));
    }
    Ok(CheckedPack { manifest, sha256: Digest::of(sums.as_bytes()) })
}

fn not_a_pack(path: &Path, what: String) -> PackError {
    PackError::NotAPack { path: path.to_owned(), what }
}

/// Paths and digests, or the number of the invalid line. A path that leads out of the pack is invalid.
fn parse_sums(text: &str) -> Result<BTreeMap<String, Digest>, usize> {
    let mut found = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let parsed = line.split_once("  ").and_then(|(digest, path)| Some((path, digest.parse().ok()?)));
        match parsed {
            Some((path, digest)) if is_inside(path) && found.insert(path.to_owned(), digest).is_none() => {}
            _ => return Err(at + 1),
        }
    }
    Ok(found)
}

/// Whether a path leads into the folder that it begins at, on every system.
fn is_inside(path: &str) -> bool {
    path.split('/').all(|part| !matches!(part, "" | "." | "..")) && !path.contains('\\')
}

/// The files of a pack by path, in a folder or a zip.
trait Files {
    /// Files, and folders with a `/` at the end.
    fn names(&self) -> io::Result<BTreeSet<String>>;
    fn read(&mut self, name: &str, take: &mut dyn FnMut(&mut dyn Read) -> io::Result<()>) -> io::Result<()>;
}

fn text(files: &mut dyn Files, name: &str) -> io::Result<String> {
    let mut text = String::new();
    files.read(name, &mut |content| content.take(TEXT_BYTES_MAX).read_to_string(&mut text).map(drop))?;
    match text.len() as u64 {
        TEXT_BYTES_MAX => Err(io::Error::other(format!("{name} has {TEXT_BYTES_MAX} bytes or more"))),
        _ => Ok(text),
    }
}

struct Folder {
    root: PathBuf,
}

impl Files for Folder {
    fn names(&self) -> io::Result<BTreeSet<String>> {
        let (mut names, mut waiting) = (BTreeSet::new(), vec![String::new()]);
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(self.root.join(&directory))? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
                match Irregular::of(entry.file_type()?) {
                    None => drop(names.insert(path)),
                    Some(_) if entry.file_type()?.is_dir() => {
                        names.insert(format!("{path}/"));
                        waiting.push(path);
                    }
                    Some(irregular) => return Err(io::Error::other(format!("{path}: {irregular}"))),
                }
                if names.len() + waiting.len() > FILES_MAX {
                    return Err(io::Error::other(format!("more than {FILES_MAX} files")));
                }
            }
        }
        Ok(names)
    }

    fn read(&mut self, name: &str, take: &mut dyn FnMut(&mut dyn Read) -> io::Result<()>) -> io::Result<()> {
        take(&mut files::open(&self.root.join(name), Links::Refuse)?)
    }
}

struct Zipped {
    zip: ZipArchive<io::BufReader<File>>,
    /// Maps the path within the pack to the path within the zip.
    names: BTreeMap<String, String>,
}

impl Zipped {
    /// A pack's zip has a single folder that contains all files. Refuses a zip that another program can read differently: it could show
    /// a reviewer other files than those that are checked here.
    fn of(
        mut zip: ZipArchive<io::BufReader<File>>,
        (size, end): (u64, [u8; ZIP_END_BYTES]),
        path: &Path,
    ) -> Result<Self, PackError> {
        let ambiguous = |what: String| PackError::Ambiguous { path: path.to_owned(), what };
        zip.validate_header_consistency().map_err(|e| ambiguous(e.to_string()))?;
        let mut names = BTreeMap::new();
        let (mut folders, mut first, mut names_bytes) = (BTreeSet::new(), None, 0);
        for at in 0..zip.len() {
            let entry = zip.by_index_raw(at);
            let entry = entry.map_err(|e| PackError::Io { path: path.to_owned(), source: e.into() })?;
            first = first.into_iter().chain([entry.header_start()]).min();
            names_bytes += ZIP_ENTRY_BYTES + entry.name_raw().len() as u64;
            // Without ASCII, a name has another form in some programs.
            let name = String::from_utf8_lossy(entry.name_raw());
            if entry.is_symlink() || !name.is_ascii() || !is_inside(name.strip_suffix('/').unwrap_or(&name)) {
                return Err(ambiguous(format!("{name}: a link, or a name that some programs change")));
            }
            let (folder, inside) = name.split_once('/').unwrap_or(("", &name));
            folders.insert(folder.to_owned());
            if folders.len() > 1 || folder.is_empty() {
                return Err(not_a_pack(path, "the zip must hold exactly one folder with a pack".to_owned()));
            }
            if !inside.is_empty() {
                names.insert(inside.to_owned(), name.clone().into_owned());
            }
        }
        if first.is_some_and(|first| first > 0) {
            return Err(ambiguous("bytes come before the first entry".to_owned()));
        }
        if !is_end(zip.len(), zip.central_directory_start(), names_bytes, size, end) {
            return Err(ambiguous("its directory and its last record hold more than Annals writes".to_owned()));
        }
        Ok(Self { names, zip })
    }
}

/// Whether a zip of `size` bytes ends with a directory that holds its entries and nothing else, and with the record `end`, which
/// points to that directory and has no comment: then every program finds this directory. `names` counts the bytes of the entries.
fn is_end(entries: usize, start: u64, names: u64, size: u64, end: [u8; ZIP_END_BYTES]) -> bool {
    let is_zip64 = entries > usize::from(u16::MAX) || u32::try_from(start).is_err();
    let records = end.len() as u64 + if is_zip64 { ZIP64_END_BYTES } else { 0 };
    let attributes_max = if u32::try_from(size).is_err() { ZIP64_ENTRY_BYTES_MAX * entries as u64 } else { 0 };
    let directory = size.saturating_sub(start.saturating_add(records));
    let or_max = |number: u64| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
    let count = u16::try_from(entries).unwrap_or(u16::MAX).to_le_bytes();
    let bytes = or_max(if is_zip64 { u64::MAX } else { directory });
    let expected = [b"PK\x05\x06\0\0\0\0".as_slice(), &count, &count, &bytes, &or_max(start), &[0, 0]].concat();
    expected == end && (names..=names + attributes_max).contains(&directory)
}

impl Files for Zipped {
    fn names(&self) -> io::Result<BTreeSet<String>> {
        Ok(self.names.keys().cloned().collect())
    }

    fn read(&mut self, name: &str, take: &mut dyn FnMut(&mut dyn Read) -> io::Result<()>) -> io::Result<()> {
        let held = self.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        take(&mut self.zip.by_name(held)?)
    }
}

#[cfg(test)]
mod tests;
