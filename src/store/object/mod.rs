//! The store in a bucket: S3, Google Cloud Storage, Azure.
//!
//! Files are objects under their own names. A bucket has no append, so each ledger line is an object of its own, created on
//! condition that its number is free ([`journal`]). This store presents them to other code as day files. It relies on nothing but
//! that one conditional create. An answer is not the truth: after an error or a missing answer, the store reads the object to
//! learn whether the request had an effect.

mod access;
mod bucket;
mod bucket_test;
mod connection;
mod copies;
mod failure;
mod journal;
mod kept_objects;
mod names;
mod object_end;
mod parts;
mod profile;
mod signed;
#[cfg(test)]
mod tests;
mod upload;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use parking_lot::Mutex;

use crate::model::path::LEDGER;
use crate::model::{BucketLocation, Instant};
use crate::threads::each;

use super::locks::Locks;
use super::{Blob, FileWriter, Guard, Listed, Rewritten, Store, StoreError, Tail, Unerased, UnfinishedUpload, Verb};

pub use bucket_test::{BucketTest, foreign_name, test_bucket};
#[cfg(test)]
pub(crate) use tests::{ministack, s3};

use bucket::{Bucket, Created, READ_WHOLE_BYTES_MAX};
use journal::Journal;
use kept_objects::KeptObjects;
use names::{Extension, LedgerFile, is_hidden};
use signed::List;
use upload::Upload;

/// Number of teams whose ledgers are listed in parallel.
const TEAMS_AT_ONCE: usize = 8;
/// The directories whose files can be so large that they go up in parts.
const UPLOADED: [&str; 2] = ["tables/", "snapshots/"];
/// S3 refuses an upload without a checksum to a bucket that locks its objects. Other stores ignore this setting.
const CHECKSUM: (&str, &str) = ("AWS_CHECKSUM_ALGORITHM", "SHA256");
/// The object that clock requests ask for; it need not exist.
const CLOCK: &str = "scratch/clock";

/// An archive in a bucket. Clones share their cached ledgers.
#[derive(Clone)]
pub struct ObjectStore {
    inner: Arc<Inner>,
}

/// Journals by the team's directory.
type Journals = HashMap<(String, Extension), Arc<Mutex<Journal>>>;

struct Inner {
    bucket: Bucket,
    journals: Mutex<Journals>,
    locks: Locks,
}

impl fmt::Debug for ObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectStore({})", self.inner.bucket.location)
    }
}

impl ObjectStore {
    /// The archive at `location`, with credentials from the environment; `is_ledger`: a ledger apart from its data, which the bucket
    /// may lock. Sends no request.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the environment's settings are invalid.
    pub fn open(location: &BucketLocation, is_ledger: bool) -> Result<Self, StoreError> {
        let fail = |error| StoreError::io(Verb::Open, &location.to_string(), error);
        let mut settings = access::environment(location.scheme()).map_err(fail)?;
        if is_ledger && !settings.iter().any(|(name, _)| name.eq_ignore_ascii_case(CHECKSUM.0)) {
            settings.push((CHECKSUM.0.to_owned(), CHECKSUM.1.to_owned()));
        }
        Self::open_with(location, &settings)
    }

    /// Like [`ObjectStore::open`], with `settings` instead of the environment.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the settings are invalid.
    pub fn open_with(location: &BucketLocation, settings: &[(String, String)]) -> Result<Self, StoreError> {
        Ok(Self::over(Bucket::open(location, settings, access::patient())?))
    }

    /// Keeps listed ledger lines and snapshots in a directory, so that another question does not fetch them again.
    #[must_use]
    pub fn with_object_cache(self, directory: &std::path::Path) -> Self {
        let kept = KeptObjects::new(directory, self.bucket().location.to_string());
        self.bucket().keep_objects(Some(kept));
        self
    }

    fn over(bucket: Bucket) -> Self {
        Self { inner: Arc::new(Inner { bucket, journals: Mutex::default(), locks: Locks::default() }) }
    }

    fn bucket(&self) -> &Bucket {
        &self.inner.bucket
    }

    fn journal(&self, file: LedgerFile<'_>) -> Arc<Mutex<Journal>> {
        self.journal_of(file.directory, file.extension)
    }

    fn journal_of(&self, directory: &str, extension: Extension) -> Arc<Mutex<Journal>> {
        let key = (directory.to_owned(), extension);
        let new = || Arc::new(Mutex::new(Journal::new(directory, extension)));
        self.inner.journals.lock().entry(key).or_insert_with(new).clone()
    }

    /// The files of a team's ledger, with its days joined from their parts.
    fn list_team(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        let (objects, below) = self.bucket().list_directory(directory)?;
        let mut listed = Vec::new();
        for extension in Extension::ALL {
            let journal = self.journal_of(directory, extension);
            let mut journal = journal.lock();
            if journal.may_exist(&objects, &below) {
                match journal.refresh(self.bucket(), Some((&objects, &below))) {
                    // A list reports irregular objects; reads and appends refuse them.
                    Err(StoreError::Irregular { path, what }) => {
                        let irregular = Some(what);
                        listed.push(Listed { irregular, ..Listed::new(path, 0, self.bucket().newest_time()) });
                    }
                    known => known?,
                }
                listed.extend(journal.days());
            }
        }
        let is_day = |object: &Listed| LedgerFile::parse(&object.path).is_some();
        listed.extend(objects.into_iter().filter(|object| !is_day(object)));
        for place in below {
            if !names::is_place_of_parts(&place) {
                listed.extend(self.bucket().list(&place, None)?);
            }
        }
        Ok(listed)
    }

    /// [`ObjectStore::altered_parts`] of one team.
    fn altered_parts_of(&self, directory: &str) -> Result<Vec<Rewritten>, StoreError> {
        let mut found = Vec::new();
        for extension in Extension::ALL {
            let journal = self.journal_of(directory, extension);
            match journal.lock().altered_parts(self.bucket()) {
                Err(StoreError::Irregular { path, what }) => found.push(Rewritten { path, what }),
                altered => found.extend(altered?),
            }
        }
        Ok(found)
    }

    fn list_unsorted(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        match names::depth_in_ledger(directory) {
            Some(0) => {
                let (mut listed, teams) = self.bucket().list_directory(LEDGER)?;
                listed.extend(each(teams, TEAMS_AT_ONCE, |team| self.list_team(&team))?.into_iter().flatten());
                Ok(listed)
            }
            Some(1) => self.list_team(directory),
            _ if directory.is_empty() => {
                let (mut listed, places) = self.bucket().list_directory("")?;
                for place in places {
                    listed.extend(self.list_unsorted(&place)?);
                }
                Ok(listed)
            }
            _ => {
                let mut listed = self.bucket().list(directory, None)?;
                listed.retain(|entry| !is_hidden(&entry.path));
                Ok(listed)
            }
        }
    }
}

impl ObjectStore {
    /// Like [`Store::read`], for a file that a list has just shown.
    pub(super) fn read_listed(&self, file: &Listed) -> Result<Blob, StoreError> {
        let blob = match LedgerFile::parse(&file.path) {
            Some(day) => self.journal(day).lock().read(self.bucket(), day.day, Some(file.bytes))?,
            None if self.bucket().keeps(file) => self.bucket().get_listed(file)?.map(Blob::Bytes),
            None => self.bucket().read(&file.path)?,
        };
        blob.ok_or_else(|| StoreError::not_found(&file.path))
    }

    /// Like [`ObjectStore::read_listed`], for several files of one directory. Fetches the small files of past days side by side: these
    /// objects never change.
    pub(super) fn read_all_listed(&self, files: &[Listed]) -> Result<Vec<Blob>, StoreError> {
        let small_day = |file: &Listed| {
            let day = LedgerFile::parse(&file.path).filter(|_| file.bytes <= READ_WHOLE_BYTES_MAX)?;
            self.journal(day).lock().whole_day(day.day).cloned()
        };
        let small: Vec<Option<Listed>> = files.iter().map(small_day).collect();
        let fetched = self.bucket().get_all_listed(&small.iter().flatten().collect::<Vec<_>>())?;
        let Some(fetched) = fetched else { return files.iter().map(|file| self.read_listed(file)).collect() };
        let mut fetched = fetched.into_iter();
        let read = |(file, small): (&Listed, Option<Listed>)| match small.and_then(|_| fetched.next()) {
            Some(content) => Ok(Blob::Bytes(content)),
            None => self.read_listed(file),
        };
        files.iter().zip(small).map(read).collect()
    }

    /// Drops all cached content, so that later reads see the stored bytes themselves.
    pub fn forget(&self) {
        self.bucket().keep_objects(None);
        let journals: Vec<_> = self.inner.journals.lock().values().cloned().collect();
        journals.iter().for_each(|journal| journal.lock().forget());
    }

    /// Deletes all versions of removed files. Returns the files that may still have a version.
    pub(super) fn erase_versions(&self, paths: &[&str]) -> Vec<Unerased> {
        let bucket = self.bucket();
        let unerased = |path: &str, why: String| Unerased { path: path.to_owned(), why };
        let Some(signed) = bucket.signed.clone() else {
            let why = "the store does not say whether it keeps deleted objects for a while".to_owned();
            return paths.first().map(|_| unerased(&bucket.location.to_string(), why)).into_iter().collect();
        };
        let erase = |path: &&str| {
            let (signed, key) = (signed.clone(), bucket.key(path));
            let erased = bucket.run(async move { signed.erase(&key).await });
            erased.err().map(|why| unerased(path, why))
        };
        paths.iter().filter_map(erase).collect()
    }

    /// The uploads under way, and those that a killed process left unfinished. Only S3 knows them.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the store refuses to show them.
    pub fn unfinished_uploads(&self) -> Result<Vec<UnfinishedUpload>, StoreError> {
        let bucket = self.bucket();
        let Some(signed) = bucket.signed.clone() else { return Ok(Vec::new()) };
        let prefix = bucket.key("").to_string();
        let found = bucket.run(async move { signed.pages(List::Uploads, &prefix).await });
        let found = found.map_err(|why| bucket.refused(Verb::List, "unfinished uploads", &why))?;
        let ours = found.uploads.into_iter().filter_map(|started| {
            let path = bucket.path(&Path::from(started.key))?;
            let is_ours = UPLOADED.iter().any(|of| path.starts_with(of));
            let since = started.initiated.parse().ok().filter(|_| is_ours)?;
            Some(UnfinishedUpload { path, id: started.upload_id, since })
        });
        Ok(ours.collect())
    }

    /// Aborts an upload, which removes its parts. A missing one counts as aborted.
    pub fn abort_upload(&self, upload: &UnfinishedUpload) -> Result<(), StoreError> {
        let bucket = self.bucket();
        let Some(signed) = bucket.signed.clone() else { return Ok(()) };
        let (key, id) = (bucket.key(&upload.path), upload.id.clone());
        let aborted = bucket.run(async move { signed.delete(&key, "uploadId", &id).await });
        aborted.map_err(|why| bucket.refused(Verb::Remove, &upload.path, &why))
    }

    /// The stored objects of the ledger that somebody altered or deleted, although copies still show readers the whole file.
    pub fn altered_parts(&self) -> Result<Vec<Rewritten>, StoreError> {
        let (_, teams) = self.bucket().list_directory(LEDGER)?;
        Ok(each(teams, TEAMS_AT_ONCE, |team| self.altered_parts_of(&team))?.into_iter().flatten().collect())
    }

    /// Write-once objects, such as ledger lines, that somebody overwrote or deleted. A bucket without versions finds none.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the store refuses to show its versions.
    pub fn rewritten(&self) -> Result<Vec<Rewritten>, StoreError> {
        let bucket = self.bucket();
        let Some(signed) = bucket.signed.clone() else { return Ok(Vec::new()) };
        let prefix = format!("{}/", bucket.key(LEDGER));
        let found = bucket.run(async move { signed.rewritten(&prefix).await });
        let found = found.map_err(|why| bucket.refused(Verb::List, LEDGER, &format!("versions: {why}")))?;
        let in_ledger = found.into_iter().filter_map(|(key, what)| Some((bucket.path(&Path::from(key))?, what)));
        let once = in_ledger.filter(|(path, _)| names::is_written_once(path));
        Ok(once.map(|(path, what)| Rewritten { path, what }).collect())
    }

    /// The files under a directory that have any version, also removed files, which no list shows. A bucket without versions shows
    /// none.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the store refuses to show its versions.
    pub fn with_versions(&self, directory: &str) -> Result<Vec<String>, StoreError> {
        let bucket = self.bucket();
        let Some(signed) = bucket.signed.clone() else { return Ok(Vec::new()) };
        let prefix = format!("{}/", bucket.key(directory));
        let found = bucket.run(async move { signed.keys(&prefix).await });
        let found = found.map_err(|why| bucket.refused(Verb::List, directory, &format!("versions: {why}")))?;
        Ok(found.into_iter().filter_map(|key| bucket.path(&Path::from(key))).collect())
    }
}

impl Store for ObjectStore {
    fn create(&self) -> Result<Box<dyn FileWriter>, StoreError> {
        Ok(Box::new(Upload::begin(self.clone())?))
    }

    fn read(&self, path: &str) -> Result<Blob, StoreError> {
        let blob = match LedgerFile::parse(path) {
            None => self.bucket().read(path)?,
            Some(file) => self.journal(file).lock().read(self.bucket(), file.day, None)?,
        };
        blob.ok_or_else(|| StoreError::not_found(path))
    }

    fn list(&self, directory: &str) -> Result<Vec<Listed>, StoreError> {
        let mut listed = self.list_unsorted(directory)?;
        listed.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(listed)
    }

    fn remove(&self, paths: &[&str]) -> Result<(), StoreError> {
        if let Some(path) = paths.iter().find(|path| LedgerFile::parse(path).is_some() || is_hidden(path)) {
            return Err(StoreError::irregular(path, "a ledger line in a bucket is never removed"));
        }
        self.bucket().delete_all(paths)
    }

    fn append(&self, path: &str, tail: Tail, bytes: &[u8]) -> Result<(), StoreError> {
        let Some(file) = LedgerFile::parse(path) else {
            return Err(StoreError::irregular(path, "a bucket supports appends to ledgers only"));
        };
        self.journal(file).lock().append(self.bucket(), file.day, tail, bytes)
    }

    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<(), StoreError> {
        match self.bucket().create(path, &Bytes::copy_from_slice(bytes))? {
            Created::Ours => Ok(()),
            Created::Taken => {
                let found = self.bucket().get(path)?.map_or(0, |found| found.len() as u64);
                Err(StoreError::conflict(path, Tail::default(), found))
            }
        }
    }

    /// A bucket has no locks: this lock excludes writers of the same process. The append fences writers of other processes.
    fn lock(&self, name: &str) -> Result<Box<dyn Guard>, StoreError> {
        self.inner.locks.take(name)
    }

    fn has_process_locks(&self) -> bool {
        false
    }

    fn now(&self) -> Result<Instant, StoreError> {
        self.bucket().now(CLOCK)
    }

    fn bucket_of(&self, _: &str) -> Option<&ObjectStore> {
        Some(self)
    }
}
