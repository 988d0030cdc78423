//! The requests to a bucket, which block until the answer, and the meaning of their errors.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::sync_channel;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStore as Client, ObjectStoreExt, PutMode, RetryConfig};
use parking_lot::Mutex;
use tokio::runtime::Runtime;

use crate::model::{BucketLocation, Instant};

use super::super::{Blob, Listed, StoreError, Verb};
use super::access;
use super::connection::{Clock, Connector};
use super::failure::{self, FailureKind};
use super::kept_objects::{KEPT_OBJECT_BYTES_MAX, KeptObjects};
use super::signed::SignedRequests;

/// Objects up to this size are read into memory.
pub(super) const READ_WHOLE_BYTES_MAX: u64 = 1 << 20;
/// Number of objects that are fetched in parallel.
const FETCHES_AT_ONCE: usize = 16;
/// Number of attempts to create an object that is missing after the request.
const CREATES_MAX: usize = 4;

/// The tag and the content of an object.
type Fetched = (Option<String>, Bytes);

/// A tag without quotes, which Azure's lists leave out.
fn plain_tag(tag: &str) -> String {
    tag.trim_matches('"').to_owned()
}

/// The outcome of a conditional create.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Created {
    /// The object holds these bytes.
    Ours,
    /// The object holds other bytes.
    Taken,
}

pub(super) struct Bucket {
    pub(super) client: Arc<dyn Client>,
    /// For S3 only.
    pub(super) signed: Option<SignedRequests>,
    pub(super) location: BucketLocation,
    clock: Arc<Clock>,
    runtime: Option<Runtime>,
    /// Bytes of ledgers in memory, of all teams.
    pub(super) kept: AtomicU64,
    /// Objects on this machine's disk, if the bucket is opened for questions.
    kept_objects: Mutex<Option<Arc<KeptObjects>>>,
}

impl Bucket {
    pub(super) fn open(
        location: &BucketLocation,
        settings: &[(String, String)],
        retry: RetryConfig,
    ) -> Result<Self, StoreError> {
        let fail = |source| StoreError::io(Verb::Open, &location.to_string(), source);
        let connector = Connector::default();
        let clock = connector.clock.clone();
        let (client, signed) =
            access::client(location, settings, retry, connector).map_err(|e| fail(failure::setting_error(&e)))?;
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).thread_name("annals-store").enable_all().build().map_err(fail)?;
        let (location, runtime) = (location.clone(), Some(runtime));
        Ok(Self { client, signed, location, clock, runtime, kept: AtomicU64::new(0), kept_objects: Mutex::default() })
    }

    /// Sets where this machine keeps listed objects; `None` ends it.
    pub(super) fn keep_objects(&self, kept: Option<KeptObjects>) {
        *self.kept_objects.lock() = kept.map(Arc::new);
    }

    fn kept_objects(&self) -> Option<Arc<KeptObjects>> {
        self.kept_objects.lock().clone()
    }

    /// Whether this machine keeps such a listed object.
    pub(super) fn keeps(&self, object: &Listed) -> bool {
        object.bytes <= KEPT_OBJECT_BYTES_MAX && self.kept_objects().is_some()
    }

    /// The time in the newest answer.
    pub(super) fn newest_time(&self) -> Instant {
        self.clock.newest().unwrap_or(Instant::EARLIEST)
    }

    pub(super) fn key(&self, path: &str) -> Path {
        match self.location.prefix() {
            "" => Path::from(path),
            prefix => Path::from(format!("{prefix}/{path}")),
        }
    }

    /// Runs work on the store's own threads and waits for it: the caller can be inside another runtime.
    pub(super) fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let (send, receive) = sync_channel(1);
        let runtime = self.runtime.as_ref().expect("BUG: the runtime lives as long as the bucket");
        runtime.spawn(async move {
            let _ = send.send(work.await);
        });
        receive.recv().expect("BUG: no request panics")
    }

    pub(super) fn fail(&self, verb: Verb, path: &str, error: &Error) -> StoreError {
        StoreError::io(verb, &format!("{}/{path}", self.location), failure::io_error(error))
    }

    /// The failure of a signed request.
    pub(super) fn refused(&self, verb: Verb, path: &str, why: &str) -> StoreError {
        StoreError::io(verb, &format!("{}/{path}", self.location), std::io::Error::other(why))
    }

    /// The answer, or `None` if the object does not exist.
    fn found<T>(&self, path: &str, answer: Result<T, Error>) -> Result<Option<T>, StoreError> {
        match answer {
            Ok(found) => Ok(Some(found)),
            Err(error) if failure::failure_kind(&error) == FailureKind::Missing => Ok(None),
            Err(error) => Err(self.fail(Verb::Read, path, &error)),
        }
    }

    pub(super) fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(self.get_all(&[path.to_owned()])?.and_then(|mut all| all.pop()).map(|(_, content)| content))
    }

    /// The last bytes of an object of `size` bytes, at most `most`.
    pub(super) fn get_end(&self, path: &str, size: u64, most: u64) -> Result<Option<Bytes>, StoreError> {
        let (client, key) = (self.client.clone(), self.key(path));
        let answer = self.run(async move { client.get_range(&key, size.saturating_sub(most)..size).await });
        self.found(path, answer)
    }

    /// Like [`Bucket::get_all_listed`], for one object.
    pub(super) fn get_listed(&self, object: &Listed) -> Result<Option<Bytes>, StoreError> {
        Ok(self.get_all_listed(&[object])?.and_then(|mut all| all.pop()))
    }

    /// Like [`Bucket::get_all`], for objects that a list has just shown. Fetches only those that this machine does not keep.
    pub(super) fn get_all_listed(&self, objects: &[&Listed]) -> Result<Option<Vec<Bytes>>, StoreError> {
        let kept = self.kept_objects();
        let mut contents: Vec<Option<Bytes>> = objects.iter().map(|object| kept.as_ref()?.get(object)).collect();
        let lacking: Vec<usize> = (0..objects.len()).filter(|at| contents[*at].is_none()).collect();
        let paths: Vec<String> = lacking.iter().map(|at| objects[*at].path.clone()).collect();
        let Some(fetched) = self.get_all(&paths)? else { return Ok(None) };
        for (at, (tag, content)) in lacking.into_iter().zip(fetched) {
            // Another process can have replaced the object since the list.
            if let Some(kept) = kept.as_ref().filter(|_| tag == objects[at].tag) {
                kept.put(objects[at], &content);
            }
            contents[at] = Some(content);
        }
        Ok(contents.into_iter().collect())
    }

    /// Fetches several objects in parallel, in order; `None` if one is missing.
    pub(super) fn get_all(&self, paths: &[String]) -> Result<Option<Vec<Fetched>>, StoreError> {
        let keys: Vec<Path> = paths.iter().map(|path| self.key(path)).collect();
        let client = self.client.clone();
        let answer = self.run(async move {
            let fetched = stream::iter(keys).map(|key| {
                let client = client.clone();
                async move {
                    let object = client.get(&key).await?;
                    Ok((object.meta.e_tag.as_deref().map(plain_tag), object.bytes().await?))
                }
            });
            fetched.buffered(FETCHES_AT_ONCE).try_collect::<Vec<_>>().await
        });
        self.found(paths.first().map_or("", String::as_str), answer)
    }

    /// A small object is read into memory, a large one into a local file without a name.
    pub(super) fn read(&self, path: &str) -> Result<Option<Blob>, StoreError> {
        let (client, key) = (self.client.clone(), self.key(path));
        let answer = self.run(async move {
            let object = client.get(&key).await?;
            if object.meta.size <= READ_WHOLE_BYTES_MAX {
                return Ok(Ok(Blob::Bytes(object.bytes().await?)));
            }
            let mut file = match tempfile::tempfile() {
                Ok(file) => file,
                Err(error) => return Ok(Err(error)),
            };
            let (mut chunks, mut len) = (object.into_stream(), 0);
            while let Some(chunk) = chunks.try_next().await? {
                len += chunk.len() as u64;
                if let Err(error) = file.write_all(&chunk) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(Blob::File { file: Arc::new(file), len }))
        });
        let blob = self.found(path, answer)?;
        blob.transpose().map_err(|e| StoreError::io(Verb::Read, &format!("{}/{path}", self.location), e))
    }

    pub(super) fn put(&self, path: &str, bytes: Bytes) -> Result<(), StoreError> {
        let (client, key) = (self.client.clone(), self.key(path));
        let answer = self.run(async move { client.put(&key, bytes.into()).await });
        answer.map(drop).map_err(|e| self.fail(Verb::Write, path, &e))
    }

    /// One conditional create, with its plain answer.
    pub(super) async fn try_create(client: Arc<dyn Client>, key: Path, bytes: Bytes) -> Result<(), Error> {
        client.put_opts(&key, bytes.into(), PutMode::Create.into()).await.map(drop)
    }

    /// Creates an object whose name must be free. After any answer but success, reads the object to learn the outcome.
    pub(super) fn create(&self, path: &str, bytes: &Bytes) -> Result<Created, StoreError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let created = self.run(Self::try_create(self.client.clone(), self.key(path), bytes.clone()));
            let Err(error) = created else { return Ok(Created::Ours) };
            match self.get(path) {
                Ok(Some(found)) if found == *bytes => return Ok(Created::Ours),
                Ok(Some(_)) => return Ok(Created::Taken),
                Ok(None) if failure::failure_kind(&error) == FailureKind::Unclear && tries < CREATES_MAX => {}
                _ => return Err(self.fail(Verb::Append, path, &error)),
            }
        }
    }

    /// Every object under a directory, sorted; only those after `after`, if given.
    pub(super) fn list(&self, directory: &str, after: Option<&str>) -> Result<Vec<Listed>, StoreError> {
        let (client, prefix) = (self.client.clone(), self.key(directory));
        let offset = after.map(|after| self.key(after));
        let answer = self.run(async move {
            let listed = match &offset {
                Some(offset) => client.list_with_offset(Some(&prefix), offset),
                None => client.list(Some(&prefix)),
            };
            listed.try_collect::<Vec<ObjectMeta>>().await
        });
        let listed = answer.map_err(|e| self.fail(Verb::List, directory, &e))?;
        let objects = listed.into_iter().filter_map(|meta| self.object(meta));
        // Not every store honours the start of a list.
        Ok(objects.filter(|object| after.is_none_or(|after| object.path.as_str() > after)).collect())
    }

    /// The objects and directories directly in a directory.
    pub(super) fn list_directory(&self, directory: &str) -> Result<(Vec<Listed>, Vec<String>), StoreError> {
        let (client, prefix) = (self.client.clone(), self.key(directory));
        let answer = self.run(async move { client.list_with_delimiter(Some(&prefix)).await });
        let listed = answer.map_err(|e| self.fail(Verb::List, directory, &e))?;
        let below = listed.common_prefixes.iter().filter_map(|path| self.path(path)).collect();
        Ok((listed.objects.into_iter().filter_map(|meta| self.object(meta)).collect(), below))
    }

    fn object(&self, meta: ObjectMeta) -> Option<Listed> {
        let nanos = meta.last_modified.timestamp_nanos_opt().unwrap_or(0);
        let tag = meta.e_tag.as_deref().map(plain_tag);
        Some(Listed { tag, ..Listed::new(self.path(&meta.location)?, meta.size, Instant::from_nanos(nanos)) })
    }

    /// A key's path within the archive.
    pub(super) fn path(&self, key: &Path) -> Option<String> {
        match self.location.prefix() {
            "" => Some(key.to_string()),
            prefix => Some(key.as_ref().strip_prefix(prefix)?.strip_prefix('/')?.to_owned()),
        }
    }

    /// Deletes objects. A missing object counts as deleted.
    pub(super) fn delete_all(&self, paths: &[&str]) -> Result<(), StoreError> {
        if paths.is_empty() {
            return Ok(());
        }
        let keys: Vec<Result<Path, Error>> = paths.iter().map(|path| Ok(self.key(path))).collect();
        let client = self.client.clone();
        let answers: Vec<_> =
            self.run(async move { client.delete_stream(stream::iter(keys).boxed()).collect::<Vec<_>>().await });
        let failed = answers.into_iter().filter_map(Result::err);
        let mut failed = failed.filter(|error| failure::failure_kind(error) != FailureKind::Missing);
        let which =
            || if let [path] = paths { (*path).to_owned() } else { format!("{} of {} objects", paths[0], paths.len()) };
        failed.next().map_or(Ok(()), |error| Err(self.fail(Verb::Remove, &which(), &error)))
    }

    /// The store's clock, from a fresh answer to a request for `path`, which need not exist.
    pub(super) fn now(&self, path: &str) -> Result<Instant, StoreError> {
        let (client, key) = (self.client.clone(), self.key(path));
        if let Err(error) = self.run(async move { client.head(&key).await })
            && failure::failure_kind(&error) != FailureKind::Missing
        {
            return Err(self.fail(Verb::Clock, path, &error));
        }
        let silent = || std::io::Error::other("the store's answers have no Date header");
        self.clock.newest().ok_or_else(|| StoreError::io(Verb::Clock, &self.location.to_string(), silent()))
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
